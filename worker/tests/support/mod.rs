//! A scripted coordinator over real gRPC, and a worker for it.

#![allow(dead_code, reason = "each test file uses its own part of this module")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arbiter_games::Games;
use arbiter_proto::settings::{Settings, StateScope};
use arbiter_proto::v1::coordinator_message::Payload as CoordinatorPayload;
use arbiter_proto::v1::worker_message::Payload;
use arbiter_proto::v1::worker_service_server::{WorkerService, WorkerServiceServer};
use arbiter_proto::v1::{self, BundlePiece, CoordinatorMessage, FetchBundleRequest, WorkerMessage};
use arbiter_worker::bot::Bot;
use arbiter_worker::bundle::Bundle;
use arbiter_worker::connect::ConnectOptions;
use arbiter_worker::metrics::Metrics;
use arbiter_worker::sandbox::Policy;
use arbiter_worker::spool::Spool;
use arbiter_worker::worker::{MAX_MESSAGE_LEN, Shutdown, Worker, WorkerConfig, WorkerError};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::timeout;
use tokio_stream::Stream;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

/// The time limit of all waits on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The data that the coordinator serves.
#[derive(Clone)]
struct Script {
    bundles: Arc<Mutex<HashMap<Vec<u8>, Vec<u8>>>>,
    fetches: Arc<Mutex<BTreeMap<Vec<u8>, usize>>>,
    streams: mpsc::UnboundedSender<WorkerStream>,
    refusal: Arc<Mutex<Option<Status>>>,
    token: Option<String>,
}

/// A coordinator.
pub(crate) struct Coordinator {
    script: Script,
    streams: mpsc::UnboundedReceiver<WorkerStream>,
    pub(crate) address: String,
    server: AbortHandle,
}

/// The coordinator's end of a worker's stream. Dropping it breaks the stream.
pub(crate) struct WorkerStream {
    from: Streaming<WorkerMessage>,
    to: mpsc::Sender<Result<CoordinatorMessage, Status>>,
    /// All received messages.
    pub(crate) received: Vec<Payload>,
}

impl Coordinator {
    pub(crate) async fn start() -> Self {
        Self::start_for(None).await
    }

    /// A coordinator that requires a token.
    pub(crate) async fn start_for(token: Option<&str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (sender, streams) = mpsc::unbounded_channel();
        let script = Script {
            bundles: Arc::default(),
            fetches: Arc::default(),
            streams: sender,
            refusal: Arc::default(),
            token: token.map(str::to_owned),
        };
        let service = WorkerServiceServer::new(script.clone())
            .max_decoding_message_size(MAX_MESSAGE_LEN)
            .max_encoding_message_size(MAX_MESSAGE_LEN);
        let served = Server::builder()
            .add_service(service)
            .serve_with_incoming(TcpListenerStream::new(listener));
        let server = tokio::spawn(async { served.await.unwrap() }).abort_handle();
        Self { script, streams, address, server }
    }

    /// Refuses all later streams.
    pub(crate) fn refuse(&self, status: Status) {
        *self.script.refusal.lock().unwrap() = Some(status);
    }

    /// Ends the refusals.
    pub(crate) fn stop_refusing(&self) {
        *self.script.refusal.lock().unwrap() = None;
    }

    /// The next stream of a worker, not yet welcomed.
    pub(crate) async fn accept(&mut self) -> WorkerStream {
        timeout(TIMEOUT, self.streams.recv()).await.unwrap().unwrap()
    }

    /// The next stream of a worker, after its Hello and the welcome.
    pub(crate) async fn welcome(&mut self) -> WorkerStream {
        let mut stream = self.accept().await;
        stream.until(|message| matches!(message, Payload::Hello(_)).then_some(())).await;
        stream
            .send(CoordinatorPayload::Welcome(v1::Welcome {
                worker: 1,
                lease_ms: 900,
                database: "the test's".to_owned(),
            }))
            .await;
        stream
    }

    /// Serves a bundle, and returns its digest.
    pub(crate) fn serve(&self, bytes: &[u8]) -> Vec<u8> {
        let digest = blake3::hash(bytes).as_bytes().to_vec();
        self.script.bundles.lock().unwrap().insert(digest.clone(), bytes.to_vec());
        digest
    }

    /// Packs and serves the bot in a directory, and returns its digest.
    pub(crate) fn submit(&self, path: &Path) -> Vec<u8> {
        self.serve(Bundle::of(&Bot::load(path).unwrap()).unwrap().bytes())
    }

    /// How often a bundle was fetched.
    pub(crate) fn fetch_count(&self, digest: &[u8]) -> usize {
        self.script.fetches.lock().unwrap().get(digest).copied().unwrap_or(0)
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl WorkerStream {
    pub(crate) async fn send(&self, payload: CoordinatorPayload) {
        self.to.send(Ok(CoordinatorMessage { payload: Some(payload) })).await.unwrap();
    }

    /// Receives messages until one matches.
    pub(crate) async fn until<T>(&mut self, mut select: impl FnMut(&Payload) -> Option<T>) -> T {
        loop {
            let received = timeout(TIMEOUT, self.from.message()).await.unwrap().unwrap();
            let message = received.expect("the worker keeps the stream open").payload.unwrap();
            let result = select(&message);
            self.received.push(message);
            if let Some(result) = result {
                return result;
            }
        }
    }

    /// Receives messages until the worker closes the stream, and returns them.
    pub(crate) async fn receive_all(&mut self) -> Vec<Payload> {
        let mut messages = Vec::new();
        while let Some(message) = timeout(TIMEOUT, self.from.message()).await.unwrap().unwrap() {
            messages.push(message.payload.unwrap());
        }
        messages
    }

    pub(crate) async fn capacity(&mut self) -> u32 {
        self.until(|message| match message {
            Payload::Capacity(room) => Some(room.slots),
            _ => None,
        })
        .await
    }

    pub(crate) async fn report(&mut self) -> v1::Report {
        self.until(|message| match message {
            Payload::Report(report) => Some(report.clone()),
            _ => None,
        })
        .await
    }

    pub(crate) async fn fault(&mut self) -> v1::Fault {
        self.until(|message| match message {
            Payload::Fault(fault) => Some(fault.clone()),
            _ => None,
        })
        .await
    }

    pub(crate) async fn renewed_leases(&mut self) -> Vec<v1::Lease> {
        self.until(|message| match message {
            Payload::RenewLeases(renew) => Some(renew.leases.clone()),
            _ => None,
        })
        .await
    }

    pub(crate) async fn respond(&self, lease: Option<v1::Lease>, status: v1::ReportStatus) {
        self.send(CoordinatorPayload::ReportResponse(v1::ReportResponse {
            lease,
            status: status.into(),
            reason: String::new(),
        }))
        .await;
    }
}

#[tonic::async_trait]
impl WorkerService for Script {
    type WorkStream = ReceiverStream<Result<CoordinatorMessage, Status>>;
    type FetchBundleStream = Pin<Box<dyn Stream<Item = Result<BundlePiece, Status>> + Send>>;

    async fn work(
        &self,
        request: Request<Streaming<WorkerMessage>>,
    ) -> Result<Response<Self::WorkStream>, Status> {
        self.admit(request.metadata())?;
        if let Some(status) = self.refusal.lock().unwrap().clone() {
            return Err(status);
        }
        let (to, messages) = mpsc::channel(16);
        let stream = WorkerStream { from: request.into_inner(), to, received: Vec::new() };
        self.streams.send(stream).map_err(|_| Status::unavailable("the test is over"))?;
        Ok(Response::new(ReceiverStream::new(messages)))
    }

    async fn fetch_bundle(
        &self,
        request: Request<FetchBundleRequest>,
    ) -> Result<Response<Self::FetchBundleStream>, Status> {
        self.admit(request.metadata())?;
        let digest = request.into_inner().digest;
        *self.fetches.lock().unwrap().entry(digest.clone()).or_default() += 1;
        let bytes = self.bundles.lock().unwrap().get(&digest).cloned();
        let bytes = bytes.ok_or_else(|| Status::not_found("no such bundle"))?;
        let pieces: Vec<_> =
            bytes.chunks(1000).map(|piece| Ok(BundlePiece { bytes: piece.to_vec() })).collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(pieces))))
    }
}

impl Script {
    fn admit(&self, metadata: &tonic::metadata::MetadataMap) -> Result<(), Status> {
        let actual = metadata.get("authorization").and_then(|value| value.to_str().ok());
        let expected = self.token.as_ref().map(|token| format!("Bearer {token}"));
        if expected.is_none() || actual == expected.as_deref() {
            return Ok(());
        }
        Err(Status::unauthenticated("no such token"))
    }
}

/// The settings of a tournament of quick matches of gomoku.
pub(crate) fn settings(state: StateScope) -> String {
    let settings = Settings {
        params: serde_json::Map::new(),
        clock: arbiter_games::ClockRules::OFFICIAL,
        limits: arbiter_proto::limits::Limits::OFFICIAL,
        ponder: arbiter_proto::limits::Ponder::Freeze,
        state,
        package: None,
    };
    serde_json::to_string(&settings).unwrap()
}

/// A lease of tournament 3.
pub(crate) fn lease(lot: i64) -> v1::Lease {
    v1::Lease { tournament: 3, lot, attempt: 1 }
}

/// A lot of one match for each table of bots with these digests; the bots' names are `seat1` and
/// so on.
pub(crate) fn lot(number: i64, game: &str, tables: &[&[Vec<u8>]]) -> v1::Lot {
    let matches = tables.iter().enumerate().map(|(index, table)| v1::Match {
        number: 100 + i64::try_from(index).unwrap(),
        seed: vec![u8::try_from(index).unwrap(); 32],
        seats: (1..)
            .zip(*table)
            .map(|(seat, digest): (u32, _)| v1::Seat {
                bot: format!("seat{seat}"),
                digest: digest.clone(),
                files: Vec::new(),
                program: Vec::new(),
            })
            .collect(),
        params: String::new(),
    });
    v1::Lot {
        lease: Some(lease(number)),
        game: game.to_owned(),
        settings: settings(StateScope::None),
        matches: matches.collect(),
        lease_ms: 900,
        expected_ms: 1000,
        trace: String::new(),
    }
}

/// A running worker.
pub(crate) struct RunningWorker {
    pub(crate) shutdown: watch::Sender<Shutdown>,
    pub(crate) metrics: Arc<Metrics>,
    task: JoinHandle<Result<(), WorkerError>>,
}

/// The directory of a worker's files and of test bots.
pub(crate) struct TestDirectory(TempDir);

impl TestDirectory {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn spool(&self) -> PathBuf {
        self.path().join("spool")
    }

    /// The configuration of a worker in this directory.
    pub(crate) fn config(&self, coordinator: &Coordinator, slots: usize) -> WorkerConfig {
        WorkerConfig {
            games: Games::built_in(),
            coordinator: ConnectOptions::new(&coordinator.address),
            name: None,
            slots,
            spool: self.spool(),
            cache: self.spool().join("cache"),
            policy: Policy::Off,
            drain: Duration::from_secs(60),
        }
    }

    /// Starts a worker.
    pub(crate) fn work(&self, coordinator: &Coordinator, slots: usize) -> RunningWorker {
        RunningWorker::start(self.config(coordinator, slots))
    }

    /// A bot that is a shell script.
    pub(crate) fn bot(&self, name: &str, script: &str) -> PathBuf {
        let directory = self.path().join(name);
        fs::create_dir(&directory).unwrap();
        let manifest = format!("name = \"{name}\"\nrun = [\"./bot.sh\"]\n");
        fs::write(directory.join("bot.toml"), manifest).unwrap();
        let program = directory.join("bot.sh");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        directory
    }
}

impl RunningWorker {
    pub(crate) fn start(config: WorkerConfig) -> Self {
        let (shutdown, receiver) = watch::channel(Shutdown::None);
        let worker = Worker::prepare(config).unwrap();
        let metrics = worker.metrics();
        Self { shutdown, metrics, task: tokio::spawn(worker.run(receiver)) }
    }

    /// The result of the worker.
    pub(crate) async fn end(self) -> Result<(), WorkerError> {
        timeout(TIMEOUT, self.task).await.unwrap().unwrap()
    }

    /// Aborts the worker, and waits until its threads have released the spool.
    pub(crate) async fn kill(self, directory: &TestDirectory) {
        let Self { shutdown: _shutdown, metrics, task } = self;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        // Threads of the worker share the metrics and may still use the spool.
        drop(metrics);
        let closed = async {
            while Spool::open(&directory.spool()).is_err() {
                tokio::task::yield_now().await;
            }
        };
        timeout(TIMEOUT, closed).await.unwrap();
    }
}

/// A bot of the repository.
pub(crate) fn shipped(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../bots").join(path)
}

/// A bot that never replies.
pub(crate) const SILENT: &str = "exec sleep 1000";
