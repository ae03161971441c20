//! The coordinators of a database, as a worker calls them: the same one until it is gone, and then
//! the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arbiter_proto::v1::worker_service_client::WorkerServiceClient;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

use crate::connect::{Access, Bearer, ConnectError};

/// The largest message, in bytes: a report with the records of its matches.
pub const LONGEST_MESSAGE: usize = 512 << 20;

/// Calls a coordinator.
pub(crate) type Caller = WorkerServiceClient<InterceptedService<Channel, Bearer>>;

/// Calls the coordinators of a database.
#[derive(Clone, Debug)]
pub(crate) struct Callers {
    all: Arc<[Caller]>,
    /// How often one was gone.
    gone: Arc<AtomicUsize>,
}

impl Callers {
    pub(crate) fn new(access: &Access) -> Result<Self, ConnectError> {
        let caller = |one: Access| {
            let (channel, bearer) = (one.lazy_channel()?, one.bearer()?);
            let caller = WorkerServiceClient::with_interceptor(channel, bearer);
            Ok(caller
                .max_decoding_message_size(LONGEST_MESSAGE)
                .max_encoding_message_size(LONGEST_MESSAGE))
        };
        let all = access.each().map(caller).collect::<Result<_, ConnectError>>()?;
        Ok(Self { all, gone: Arc::default() })
    }

    /// The one that is called now.
    pub(crate) fn current(&self) -> Caller {
        self.all[self.gone.load(Ordering::Relaxed) % self.all.len()].clone()
    }

    /// It is gone: the next one will be called.
    pub(crate) fn pass(&self) {
        self.gone.fetch_add(1, Ordering::Relaxed);
    }
}
