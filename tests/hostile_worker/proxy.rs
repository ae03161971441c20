//! A lying worker: a real worker behind a proxy that changes its reports and nothing else.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arbiter_proto::v1::worker_message::Payload;
use arbiter_proto::v1::worker_service_client::WorkerServiceClient;
use arbiter_proto::v1::worker_service_server::{WorkerService, WorkerServiceServer};
use arbiter_proto::v1::{
    BundlePiece, CoordinatorMessage, FetchBundleRequest, Forfeit, MatchResult, WorkerMessage,
};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status, Streaming};

/// Larger than any message.
const LARGEST: usize = 512 << 20;

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// How a result is changed.
pub(crate) type Lie = fn(&mut MatchResult) -> bool;

/// A lying proxy. Dropping it stops it.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    lies: Arc<AtomicUsize>,
    _runtime: Runtime,
}

impl Proxy {
    /// A proxy before the coordinator at `server`, which changes results by `lie`.
    pub(crate) fn start(server: &str, lie: Lie) -> Self {
        let runtime = Runtime::new().unwrap();
        let lies = Arc::new(AtomicUsize::new(0));
        let endpoint = Channel::from_shared(server.to_owned()).unwrap();
        let liar = {
            let _inside = runtime.enter();
            Liar { upstream: endpoint.connect_lazy(), lie, lies: Arc::clone(&lies) }
        };
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let service = WorkerServiceServer::new(liar)
            .max_decoding_message_size(LARGEST)
            .max_encoding_message_size(LARGEST);
        runtime.spawn(async move {
            let incoming = TcpListenerStream::new(listener);
            Server::builder().add_service(service).serve_with_incoming(incoming).await.unwrap();
        });
        Self { address, lies, _runtime: runtime }
    }

    /// The number of changed results so far.
    pub(crate) fn lies(&self) -> usize {
        self.lies.load(Ordering::Relaxed)
    }
}

struct Liar {
    upstream: Channel,
    lie: Lie,
    lies: Arc<AtomicUsize>,
}

impl Liar {
    fn client(&self) -> WorkerServiceClient<Channel> {
        WorkerServiceClient::new(self.upstream.clone())
            .max_decoding_message_size(LARGEST)
            .max_encoding_message_size(LARGEST)
    }
}

#[tonic::async_trait]
impl WorkerService for Liar {
    type WorkStream = Answers<CoordinatorMessage>;
    type FetchBundleStream = Answers<BundlePiece>;

    async fn work(
        &self,
        request: Request<Streaming<WorkerMessage>>,
    ) -> Result<Response<Self::WorkStream>, Status> {
        let token = token(&request);
        let lie = self.lie;
        let lies = Arc::clone(&self.lies);
        let messages = request.into_inner().take_while(Result::is_ok).filter_map(move |message| {
            let mut message = message.ok()?;
            if let Some(Payload::Report(report)) = &mut message.payload {
                let lied = report.results.iter_mut().filter_map(|result| lie(result).then_some(()));
                lies.fetch_add(lied.count(), Ordering::Relaxed);
            }
            Some(message)
        });
        let mut passed_on = Request::new(messages);
        passed_on.metadata_mut().insert("authorization", token);
        let responses = self.client().work(passed_on).await?.into_inner();
        Ok(Response::new(Box::pin(responses)))
    }

    async fn fetch_bundle(
        &self,
        request: Request<FetchBundleRequest>,
    ) -> Result<Response<Self::FetchBundleStream>, Status> {
        let token = token(&request);
        let mut passed_on = Request::new(request.into_inner());
        passed_on.metadata_mut().insert("authorization", token);
        let pieces = self.client().fetch_bundle(passed_on).await?.into_inner();
        Ok(Response::new(Box::pin(pieces)))
    }
}

fn token<T>(request: &Request<T>) -> MetadataValue<Ascii> {
    request.metadata().get("authorization").unwrap().clone()
}

/// Gives each seat the score of the next one in the report and in the last line of its record,
/// with a valid seal. Returns whether that changes the result.
pub(crate) fn swap_scores(result: &mut MatchResult) -> bool {
    let before: Vec<_> = result.seats.iter().map(|seat| seat.score.clone()).collect();
    let mut after = before.clone();
    after.rotate_left(1);
    if before == after {
        return false;
    }
    for (seat, score) in result.seats.iter_mut().zip(&after) {
        seat.score.clone_from(score);
    }
    if result.record.is_empty() {
        return true;
    }
    let text = String::from_utf8(zstd::decode_all(&result.record[..]).unwrap()).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let (last, others) = lines.split_last().unwrap();
    let mut over: serde_json::Value = serde_json::from_str(last).unwrap();
    over["scores"] = serde_json::json!(after);
    let doctored = format!("{}\n{over}\n", others.join("\n"));
    result.record = zstd::encode_all(doctored.as_bytes(), 3).unwrap();
    true
}

/// The same without a record, so that a recount is impossible, and with a loss on time for seat 1.
pub(crate) fn invent_time_losses(result: &mut MatchResult) -> bool {
    result.record.clear();
    let swapped = swap_scores(result);
    if swapped {
        result.seats[0].set_forfeit(Forfeit::Clock);
    }
    swapped
}
