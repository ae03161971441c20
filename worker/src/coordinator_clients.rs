//! gRPC clients for all coordinators of one database. A worker uses one client until its connection
//! fails, and then the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arbiter_proto::v1::worker_service_client::WorkerServiceClient;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

use crate::connect::{BearerToken, ConnectError, ConnectOptions};

/// Maximum size of a message, in bytes: a report with the records of its matches.
pub const MAX_MESSAGE_LEN: usize = 512 << 20;

/// A client for one coordinator.
pub(crate) type CoordinatorClient = WorkerServiceClient<InterceptedService<Channel, BearerToken>>;

/// Clients for all coordinators of one database.
#[derive(Clone, Debug)]
pub(crate) struct CoordinatorClients {
    clients: Arc<[CoordinatorClient]>,
    /// Number of failovers.
    failovers: Arc<AtomicUsize>,
}

impl CoordinatorClients {
    pub(crate) fn new(options: &ConnectOptions) -> Result<Self, ConnectError> {
        let client = |options: ConnectOptions| {
            let channel = options.connect_lazy()?;
            let client = WorkerServiceClient::with_interceptor(channel, options.bearer()?);
            Ok(client
                .max_decoding_message_size(MAX_MESSAGE_LEN)
                .max_encoding_message_size(MAX_MESSAGE_LEN))
        };
        let clients = options.each().map(client).collect::<Result<_, ConnectError>>()?;
        Ok(Self { clients, failovers: Arc::default() })
    }

    /// The client of the current coordinator.
    pub(crate) fn current(&self) -> CoordinatorClient {
        self.clients[self.failovers.load(Ordering::Relaxed) % self.clients.len()].clone()
    }

    /// Switches to the next coordinator.
    pub(crate) fn fail_over(&self) {
        self.failovers.fetch_add(1, Ordering::Relaxed);
    }
}
