//! Hostile clients of the gRPC port: they send too much, hold connections open, and watch in large
//! numbers. Each is refused or costs little, and other clients are served.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

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

/// The time limit of all waits.
const PATIENCE: Duration = Duration::from_secs(120);

/// The limit of open files: the server uses a quarter of it for connections to this port.
const FILES: u64 = 2048;

/// One test at a time, because they measure the whole process.
static ALONE: Mutex<()> = Mutex::const_new(());

struct Server {
    address: SocketAddr,
    organiser: String,
    player: String,
    observer: Observer,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
    _database: Database,
    _alone: MutexGuard<'static, ()>,
}

impl Server {
    async fn start() -> Self {
        let alone = ALONE.lock().await;
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
        let serving = tokio::spawn(async move {
            coordinator.run(listener, async { drop(stopped.await) }).await.unwrap();
        });
        Self {
            address,
            organiser,
            player,
            observer,
            stop,
            serving,
            _database: database,
            _alone: alone,
        }
    }

    fn endpoint(&self) -> Endpoint {
        Channel::from_shared(format!("http://{}", self.address)).unwrap()
    }

    async fn channel(&self) -> Channel {
        self.endpoint().connect().await.unwrap()
    }

    /// Checks that a new client gets a response from the database.
    async fn answers(&self) {
        let mut client = TournamentServiceClient::new(self.channel().await);
        let asked = client.list_tournaments(ListTournamentsRequest {});
        tokio::time::timeout(PATIENCE, asked).await.unwrap().unwrap();
    }

    /// A tournament of gomoku with an edition that no worker plays.
    async fn tournament(&self) {
        let channel = self.channel().await;
        let mut tournaments = TournamentServiceClient::new(channel.clone());
        let file = "name = \"cup\"\ngame = \"gomoku\"\nstate = \"none\"\n".to_owned();
        let create = with(&self.organiser, CreateTournamentRequest { file });
        tournaments.create_tournament(create).await.unwrap();
        for bot in ["one", "two"] {
            let submission =
                Submission { tournament: "cup".to_owned(), bot: bot.to_owned(), house: true };
            let parts = [Part::Submission(submission), Part::Bundle(b"a bundle".to_vec())];
            submit(channel.clone(), &self.organiser, parts).await.unwrap();
        }
        let start = StartEditionRequest { tournament: "cup".to_owned(), fresh: false };
        tournaments.start_edition(with(&self.organiser, start)).await.unwrap();
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        tokio::time::timeout(PATIENCE, self.serving).await.unwrap().unwrap();
    }
}

fn with<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    request
}

async fn submit(
    channel: Channel,
    token: &str,
    parts: impl IntoIterator<Item = Part, IntoIter: Send + 'static>,
) -> Result<(), Status> {
    let parts = parts.into_iter().map(|part| SubmitVersionRequest { part: Some(part) });
    let request = with(token, tokio_stream::iter(parts));
    BotServiceClient::new(channel).submit_version(request).await.map(drop)
}

/// Sends a message with this announced length, as much of it as the server accepts.
async fn send(
    mut channel: Channel,
    method: &str,
    token: Option<&str>,
    length: u32,
) -> Result<(), Status> {
    const PIECE: u32 = 64 << 10;
    let announced = [&[0][..], &length.to_be_bytes()].concat();
    let piece = Bytes::from(vec![0; PIECE as usize]);
    let pieces = (0..length / PIECE).map(move |_| piece.clone());
    let pieces = [Bytes::from(announced)].into_iter().chain(pieces).map(Ok::<_, std::io::Error>);
    let body = tonic::body::Body::new(Body::from_stream(tokio_stream::iter(pieces)));
    let mut request = http::Request::post(format!("/arbiter.v1.{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    std::future::poll_fn(|context| channel.poll_ready(context)).await.unwrap();
    let answered = channel.call(request.body(body).unwrap());
    let answer = tokio::time::timeout(PATIENCE, answered).await.unwrap();
    let answer = answer.map_err(|error| Status::from_error(error.into()))?;
    Status::from_header_map(answer.headers()).map_or(Ok(()), Err)
}

/// The peak memory of this process since [`forget_peak`], in MiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

fn forget_peak() {
    fs::write("/proc/self/clear_refs", "5").unwrap();
}

#[tokio::test]
async fn no_message_is_read_before_authentication() {
    let server = Server::start().await;
    server.answers().await;
    let mut calls = JoinSet::new();
    forget_peak();
    let before = peak();
    let methods = ["WorkerService/FetchBundle", "WorkerService/Work", "BotService/SubmitVersion"];
    for (number, method) in methods.into_iter().cycle().take(12).enumerate() {
        let channel = server.channel().await;
        let token = (number >= 6).then(|| "arb_wrong".to_owned());
        calls.spawn(async move { send(channel, method, token.as_deref(), 512 << 20).await });
    }
    while let Some(refused) = calls.join_next().await {
        assert_eq!(refused.unwrap().unwrap_err().code(), Code::Unauthenticated);
    }
    // What everybody may call takes next to nothing.
    for method in ["RankingService/GetRanking", "TournamentService/WatchEdition", "No/Such"] {
        let refused = send(server.channel().await, method, None, 512 << 20).await.unwrap_err();
        let codes = [Code::ResourceExhausted, Code::Unimplemented];
        assert!(codes.contains(&refused.code()), "{method}: {refused}");
    }
    let grown = peak() - before;
    assert!(grown < 48, "{grown} MiB for calls that were refused");
    server.answers().await;
    server.stop().await;
}

#[tokio::test]
async fn players_cannot_send_more_than_a_bundle() {
    let server = Server::start().await;
    server.tournament().await;
    let channel = server.channel().await;
    let submission =
        || Submission { tournament: "cup".to_owned(), bot: "mine".to_owned(), house: false };
    let opening = || [Part::Submission(submission())].into_iter();
    let pieces = opening().chain((0..65).map(|_| Part::Bundle(vec![7; 1 << 20 >> 1])));
    submit(channel.clone(), &server.player, pieces.take(10)).await.unwrap();
    let pieces = opening().chain((0..2000).map(|_| Part::Bundle(vec![7; 256 << 10])));
    let refused = submit(channel.clone(), &server.player, pieces).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("64 MiB"), "{refused}");
    let pieces = opening().chain([Part::Bundle(vec![7; 2 << 20])]);
    let refused = submit(channel.clone(), &server.player, pieces).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("at most 1 MiB"), "{refused}");
    let refused = send(channel, "WorkerService/Work", Some(&server.player), 512 << 20).await;
    assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
    server.stop().await;
}

#[tokio::test]
async fn idle_connections_are_closed_and_lock_out_no_client() {
    let server = Server::start().await;
    server.answers().await;
    let mut idle = Vec::new();
    for number in 0..1000 {
        let mut connection = TcpStream::connect(server.address).await.unwrap();
        // Some say nothing, some begin.
        if number % 2 == 0 {
            connection.write_all(b"PRI * HTTP/2.0\r\n\r\nSM").await.unwrap();
        }
        idle.push(connection);
    }
    server.answers().await;
    for mut connection in idle.drain(..).step_by(100).chain([]) {
        let mut rest = Vec::new();
        let ended = connection.read_to_end(&mut rest);
        // It may be broken off rather than ended.
        drop(tokio::time::timeout(PATIENCE, ended).await.unwrap());
    }
    server.answers().await;
    server.stop().await;
}

#[tokio::test]
async fn an_edition_is_read_once_for_all_watchers() {
    const WATCHERS: usize = 3000;
    let server = Server::start().await;
    server.tournament().await;
    let mut channels = Vec::new();
    for host in 2..=16 {
        let from = std::net::IpAddr::from([127, 0, 0, host]);
        let endpoint = server.endpoint().local_address(Some(from));
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
    organiser.cancel_tournament(with(&server.organiser, cancel)).await.unwrap();
    while let Some(last) = watchers.join_next().await {
        assert_eq!(last.unwrap(), "cancelled");
    }
    let mut figures = String::new();
    server.observer.encode(&mut figures).await.unwrap();
    let reads = "arbiter_edition_watch_reads_total ";
    let reads = figures.lines().find_map(|line| line.strip_prefix(reads)).unwrap();
    let reads: usize = reads.parse().unwrap();
    // Once a second, and when something changed.
    assert!(reads < WATCHERS / 4, "the edition was read {reads} times for {WATCHERS} watchers");
    server.stop().await;
}

#[tokio::test]
async fn calls_from_one_address_are_limited() {
    let server = Server::start().await;
    server.tournament().await;
    let mut channels = Vec::new();
    let mut open = Vec::new();
    let refused = loop {
        if open.len() % 200 == 0 {
            channels.push(server.channel().await);
        }
        let mut client = TournamentServiceClient::new(channels.last().unwrap().clone());
        let watch = WatchEditionRequest { tournament: "cup".to_owned(), edition: None };
        match client.watch_edition(watch).await {
            Ok(states) => open.push(states),
            Err(refused) => break refused,
        }
        assert!(open.len() < 5000, "the limit is never reached");
    };
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("open calls, and at most"), "{refused}");
    // Those with a token are not meant.
    let mut organiser = TournamentServiceClient::new(server.channel().await);
    let cancel = CancelTournamentRequest { tournament: "cup".to_owned() };
    organiser.cancel_tournament(with(&server.organiser, cancel)).await.unwrap();
    drop(open);
    server.stop().await;
}
