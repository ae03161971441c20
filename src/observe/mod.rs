//! What services show of themselves: figures, whether they are well, and traces.

mod process;
mod server;
pub(crate) mod traces;

use std::sync::Arc;

use arbiter_coordinator::metrics::Observer;
use arbiter_worker::metrics::Metrics;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::worker_process::{FigureSource, Figures};
use traces::Traces;

/// What of this process can be observed.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// The coordinator, if there is one.
    pub(crate) coordinator: Option<Observer>,
    /// The worker, if there is one.
    pub(crate) worker: Option<WorkerSource>,
}

/// A worker that can be observed.
#[derive(Clone, Debug)]
pub(crate) enum WorkerSource {
    /// It runs in this process.
    Here(Arc<Metrics>),
    /// It is a process of its own.
    Process(FigureSource),
}

impl WorkerSource {
    async fn figures(&self) -> Figures {
        match self {
            Self::Here(metrics) => Figures::of(metrics),
            Self::Process(process) => process.figures().await,
        }
    }
}

/// Ready to be observed, before there is anything to be seen.
#[derive(Debug)]
pub(crate) struct Observing {
    pub(crate) listener: Option<TcpListener>,
    pub(crate) traces: Option<Traces>,
}

/// Being observed.
#[derive(Debug)]
pub(crate) struct Observed {
    server: Option<JoinHandle<()>>,
    traces: Option<Traces>,
}

impl Observing {
    /// Shows what there is to be seen.
    pub(crate) fn of(self, sources: Sources) -> Observed {
        let Self { listener, traces } = self;
        let server = listener.map(|listener| tokio::spawn(server::serve(listener, sources)));
        Observed { server, traces }
    }
}

impl Observed {
    /// Ends, after the last spans were sent.
    pub(crate) async fn end(self) {
        if let Some(server) = self.server {
            server.abort();
        }
        if let Some(traces) = self.traces {
            traces.end().await;
        }
    }
}
