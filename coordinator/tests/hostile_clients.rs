//! Hostile clients of the gRPC port. They send too much data, hold connections open, or open very
//! many watches. Each is refused or costs little, and other clients get responses.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use arbiter_coordinator::access::Role;
use arbiter_coordinator::coordinator::Coordinator;
use arbiter_coordinator::metrics::Observer;
use arbiter_proto::v1::bot_service_client::BotServiceClient;
use arbiter_proto::v1::submit_version_request::Part;
use arbiter_proto::v1::tournament_service_client::TournamentServiceClient;
use arbiter_proto::v1::{
    CancelTournamentRequest, CreateTournamentRequest, ListTournamentsRequest, StartEditionRequest,
    Submission, SubmitVersionRequest, WatchEditionRequest,
};
use axum::body::{Body, Bytes};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::{Database, config};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, MutexGuard, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tonic::codegen::Service as _;
use tonic::codegen::http;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

/// The time limit of each wait.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The limit of open files. The server uses a quarter of it for connections to this port.
const FILES: u64 = 2048;

/// The tests run one at a time, because they measure the memory of the whole process.
static ONE_TEST: Mutex<()> = Mutex::const_new(());

struct Server {
    address: SocketAddr,
    organiser: String,
    player: String,
    observer: Observer,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    _database: Database,
    _one_test: MutexGuard<'static, ()>,
}

impl Server {
    async fn start() -> Self {
        let one_test = ONE_TEST.lock().await;
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: Some(FILES), maximum }).unwrap();
        let database = Database::new().await;
        let coordinator = Coordinator::prepare(database.options(), config()).await.unwrap();
        let token = async |role: Role| coordinator.create_token(role, role.as_str()).await.unwrap();
        let organiser = token(Role::Organiser).await.text().to_owned();
        let player = token(Role::Player).await.text().to_owned();
        let observer = coordinator.observer();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            coordinator.run(listener, async { drop(stopped.await) }).await.unwrap();
        });
        Self {
            address,
            organiser,
            player,
            observer,
            stop,
            task,
            _database: database,
            _one_test: one_test,
        }
    }

    fn endpoint(&self) -> Endpoint {
        Channel::from_shared(format!("http://{}", self.address)).unwrap()
    }

    async fn channel(&self) -> Channel {
        self.endpoint().connect().await.unwrap()
    }

    /// Checks that a new client gets a response from the database.
    async fn check_response(&self) {
        let mut client = TournamentServiceClient::new(self.channel().await);
        let call = client.list_tournaments(ListTournamentsRequest {});
        tokio::time::timeout(TIMEOUT, call).await.unwrap().unwrap();
    }

    /// Creates a tournament of gomoku with a running edition. There are no workers.
    async fn create_tournament(&self) {
        let channel = self.channel().await;
        let mut tournaments = TournamentServiceClient::new(channel.clone());
        let file = "name = \"cup\"\ngame = \"gomoku\"\nstate = \"none\"\n".to_owned();
        let create = with_token(&self.organiser, CreateTournamentRequest { file });
        tournaments.create_tournament(create).await.unwrap();
        for bot in ["one", "two"] {
            let submission =
                Submission { tournament: "cup".to_owned(), bot: bot.to_owned(), house: true };
            let parts = [Part::Submission(submission), Part::Bundle(b"a bundle".to_vec())];
            submit(channel.clone(), &self.organiser, parts).await.unwrap();
        }
        let start = StartEditionRequest { tournament: "cup".to_owned(), fresh: false };
        tournaments.start_edition(with_token(&self.organiser, start)).await.unwrap();
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        tokio::time::timeout(TIMEOUT, self.task).await.unwrap().unwrap();
    }
}

/// A request with a token.
fn with_token<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    request
}

async fn submit(
    channel: Channel,
    token: &str,
    parts: impl IntoIterator<Item = Part, IntoIter: Send + 'static>,
) -> Result<(), Status> {
    let messages = parts.into_iter().map(|part| SubmitVersionRequest { part: Some(part) });
    let request = with_token(token, tokio_stream::iter(messages));
    BotServiceClient::new(channel).submit_version(request).await.map(drop)
}

/// Announces a message of `length` bytes, and sends it until the server ends the call.
async fn send_message(
    mut channel: Channel,
    method: &str,
    token: Option<&str>,
    length: u32,
) -> Result<(), Status> {
    const PIECE: u32 = 64 << 10;
    let header = [&[0][..], &length.to_be_bytes()].concat();
    let piece = Bytes::from(vec![0; PIECE as usize]);
    let pieces = (0..length / PIECE).map(move |_| piece.clone());
    let frames = [Bytes::from(header)].into_iter().chain(pieces).map(Ok::<_, std::io::Error>);
    let body = tonic::body::Body::new(Body::from_stream(tokio_stream::iter(frames)));
    let mut request = http::Request::post(format!("/arbiter.v1.{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    std::future::poll_fn(|context| channel.poll_ready(context)).await.unwrap();
    let call = channel.call(request.body(body).unwrap());
    let response = tokio::time::timeout(TIMEOUT, call).await.unwrap();
    let response = response.map_err(|error| Status::from_error(error.into()))?;
    Status::from_header_map(response.headers()).map_or(Ok(()), Err)
}

/// The peak memory of this process since [`reset_peak_memory`], in MiB.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

fn reset_peak_memory() {
    fs::write("/proc/self/clear_refs", "5").unwrap();
}

#[tokio::test]
async fn no_message_is_read_before_authentication() {
    let server = Server::start().await;
    server.check_response().await;
    let mut calls = JoinSet::new();
    reset_peak_memory();
    let before = peak_memory();
    let methods = ["WorkerService/FetchBundle", "WorkerService/Work", "BotService/SubmitVersion"];
    for (number, method) in methods.into_iter().cycle().take(12).enumerate() {
        let channel = server.channel().await;
        let token = (number >= 6).then(|| "arb_wrong".to_owned());
        calls
            .spawn(async move { send_message(channel, method, token.as_deref(), 512 << 20).await });
    }
    while let Some(result) = calls.join_next().await {
        assert_eq!(result.unwrap().unwrap_err().code(), Code::Unauthenticated);
    }
    // Calls without a token take almost no memory either.
    for method in ["RankingService/GetRanking", "TournamentService/WatchEdition", "No/Such"] {
        let error =
            send_message(server.channel().await, method, None, 512 << 20).await.unwrap_err();
        let codes = [Code::ResourceExhausted, Code::Unimplemented];
        assert!(codes.contains(&error.code()), "{method}: {error}");
    }
    let growth = peak_memory() - before;
    assert!(growth < 48, "refused calls used {growth} MiB");
    server.check_response().await;
    server.stop().await;
}

#[tokio::test]
async fn players_cannot_send_more_than_a_bundle() {
    let server = Server::start().await;
    server.create_tournament().await;
    let channel = server.channel().await;
    let submission =
        || Submission { tournament: "cup".to_owned(), bot: "mine".to_owned(), house: false };
    let opening = || [Part::Submission(submission())].into_iter();
    let pieces = opening().chain((0..65).map(|_| Part::Bundle(vec![7; 1 << 20 >> 1])));
    submit(channel.clone(), &server.player, pieces.take(10)).await.unwrap();
    let pieces = opening().chain((0..2000).map(|_| Part::Bundle(vec![7; 256 << 10])));
    let error = submit(channel.clone(), &server.player, pieces).await.unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert!(error.message().contains("64 MiB"), "{error}");
    let pieces = opening().chain([Part::Bundle(vec![7; 2 << 20])]);
    let error = submit(channel.clone(), &server.player, pieces).await.unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert!(error.message().contains("at most 1 MiB"), "{error}");
    let result = send_message(channel, "WorkerService/Work", Some(&server.player), 512 << 20).await;
    assert_eq!(result.unwrap_err().code(), Code::PermissionDenied);
    server.stop().await;
}

#[tokio::test]
async fn idle_connections_are_closed_and_block_no_client() {
    let server = Server::start().await;
    server.check_response().await;
    let mut idle = Vec::new();
    for number in 0..1000 {
        let mut connection = TcpStream::connect(server.address).await.unwrap();
        // Half of the connections send nothing, half send the start of an HTTP/2 preface.
        if number % 2 == 0 {
            connection.write_all(b"PRI * HTTP/2.0\r\n\r\nSM").await.unwrap();
        }
        idle.push(connection);
    }
    server.check_response().await;
    for mut connection in idle.drain(..).step_by(100).chain([]) {
        let mut bytes = Vec::new();
        let read = connection.read_to_end(&mut bytes);
        // The server may close or reset the connection.
        drop(tokio::time::timeout(TIMEOUT, read).await.unwrap());
    }
    server.check_response().await;
    server.stop().await;
}

#[tokio::test]
async fn an_edition_is_read_once_for_all_watchers() {
    const WATCHERS: usize = 3000;
    let server = Server::start().await;
    server.create_tournament().await;
    let mut channels = Vec::new();
    for host in 2..=16 {
        let source = std::net::IpAddr::from([127, 0, 0, host]);
        let endpoint = server.endpoint().local_address(Some(source));
        channels.push(endpoint.connect().await.unwrap());
    }
    let mut watchers = JoinSet::new();
    for channel in channels.iter().cycle().take(WATCHERS) {
        let mut client = TournamentServiceClient::new(channel.clone());
        let watch = WatchEditionRequest { tournament: "cup".to_owned(), edition: None };
        let mut states = client.watch_edition(watch).await.unwrap().into_inner();
        let first = states.message().await.unwrap().unwrap();
        assert_eq!(first.state, "running");
        watchers.spawn(async move {
            let mut last = first;
            while let Some(state) = states.message().await.unwrap() {
                last = state;
            }
            last.state
        });
    }
    let mut organiser = TournamentServiceClient::new(server.channel().await);
    let cancel = CancelTournamentRequest { tournament: "cup".to_owned() };
    organiser.cancel_tournament(with_token(&server.organiser, cancel)).await.unwrap();
    while let Some(state) = watchers.join_next().await {
        assert_eq!(state.unwrap(), "cancelled");
    }
    let mut metrics = String::new();
    server.observer.encode(&mut metrics).await.unwrap();
    let prefix = "arbiter_edition_watch_reads_total ";
    let value = metrics.lines().find_map(|line| line.strip_prefix(prefix)).unwrap();
    let reads: usize = value.parse().unwrap();
    // The server reads the edition once a second and after each change.
    assert!(reads < WATCHERS / 4, "the edition was read {reads} times for {WATCHERS} watchers");
    server.stop().await;
}

#[tokio::test]
async fn calls_without_a_token_are_limited_per_address() {
    let server = Server::start().await;
    server.create_tournament().await;
    let mut channels = Vec::new();
    let mut watches = Vec::new();
    let error = loop {
        if watches.len() % 200 == 0 {
            channels.push(server.channel().await);
        }
        let mut client = TournamentServiceClient::new(channels.last().unwrap().clone());
        let watch = WatchEditionRequest { tournament: "cup".to_owned(), edition: None };
        match client.watch_edition(watch).await {
            Ok(states) => watches.push(states),
            Err(error) => break error,
        }
        assert!(watches.len() < 5000, "5000 open calls from one address");
    };
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert!(error.message().contains("open calls, and at most"), "{error}");
    // The limit does not apply to calls with a token.
    let mut organiser = TournamentServiceClient::new(server.channel().await);
    let cancel = CancelTournamentRequest { tournament: "cup".to_owned() };
    organiser.cancel_tournament(with_token(&server.organiser, cancel)).await.unwrap();
    drop(watches);
    server.stop().await;
}
