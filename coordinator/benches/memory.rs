//! The peak memory of a coordinator under demanding clients:
//! `cargo bench -p arbiter-coordinator --bench memory`.
//!
//! The coordinator is a separate process of this program, so that the memory of its clients does
//! not count.

use std::env;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use arbiter_coordinator::access::Role;
use arbiter_coordinator::coordinator::Coordinator;
use arbiter_coordinator::db::matches::{Match, Seats};
use arbiter_coordinator::db::{editions, versions};
use arbiter_coordinator::postgres::Postgres;
use arbiter_coordinator::queue::{LeasePolicy, NewLot, Queue};
use arbiter_games::{Games, RULES_VERSION};
use arbiter_proto::ids::{LotNumber, MatchNumber};
use arbiter_proto::v1::coordinator_message::Payload as CoordinatorPayload;
use arbiter_proto::v1::ranking_service_client::RankingServiceClient;
use arbiter_proto::v1::worker_message::Payload;
use arbiter_proto::v1::worker_service_client::WorkerServiceClient;
use arbiter_proto::v1::{
    Capacity, CoordinatorMessage, FetchBundleRequest, GetHeadToHeadRequest, Hello, LeaderboardRef,
    Lot, MatchResult, Report, SeatResult, WorkerMessage,
};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, PgPool};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Request, Streaming};

use support::measure::{memory, reset_peak_memory};
use support::planning::{Plan, Planning as _};
use support::server::config;
use support::{edition, name, play_at_once, running, tournament_of};

mod support;

/// The argument that makes this program the coordinator, before the address of its database.
const SERVE: &str = "serve";
/// The size of the bundle of all bots, in bytes.
const BUNDLE: usize = 40_000_000;
/// The number of clients that fetch the bundle, but do not read it.
const FETCHES: usize = 30;
/// The number of reports over one stream.
const REPORTS: i64 = 400;
/// The size of the record of a report, in bytes.
const RECORD: usize = 4_000_000;
/// The number of matches with bot state that are leased to a worker that does not read.
const CHAINED: i64 = 512;
/// The bot state of a seat, in bytes.
const FILES: usize = 1 << 20;
/// The number of bots of the edition whose head-to-head results are counted.
const BOTS: i32 = 2000;
/// The number of matches of this edition.
const MATCHES: i64 = 2_000_000;
/// The number of empty results in a report. Each takes two bytes.
const EMPTY_RESULTS: usize = 4 << 20;
/// How long the coordinator takes to become idle.
const IDLE_AFTER: Duration = Duration::from_secs(5);

fn main() {
    let mut arguments = env::args().skip(1);
    if arguments.next().as_deref() == Some(SERVE) {
        serve(&arguments.next().expect("the address of the database"));
        return;
    }
    support::run(async |postgres, pool| {
        versions::store_bundle(&pool, &[0; 32], &noise(BUNDLE))
            .await
            .expect("the bundle is stored");
        reports(postgres, &pool).await;
        fetches(postgres, &pool).await;
        files(postgres, &pool).await;
        meetings(postgres, &pool).await;
        empty_results(postgres, &pool).await;
    });
}

/// Bytes that cannot be compressed.
fn noise(bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    blake3::Hasher::new().finalize_xof().fill(&mut noise);
    noise
}

/// Serves until the parent process closes the standard input.
fn serve(database: &str) {
    let options: PgConnectOptions = database.parse().expect("an address");
    Runtime::new().expect("a runtime can be created").block_on(async {
        let coordinator =
            Coordinator::prepare(options, config()).await.expect("the database can be used");
        let name = format!("memory-{}", std::process::id());
        let token = coordinator.create_token(Role::Worker, &name).await.expect("a token");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        println!("{} {}", listener.local_addr().expect("the port is bound"), token.text());
        let stop = tokio::task::spawn_blocking(|| drop(std::io::stdin().read(&mut [0])));
        coordinator
            .run(listener, async { drop(stop.await) })
            .await
            .expect("the coordinator serves");
    });
}

/// A coordinator in a separate process.
struct Server {
    process: Child,
    address: String,
    token: String,
    /// The coordinator stops when this is closed.
    stop: ChildStdin,
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "this program again, not a bot")]
    fn start(postgres: &Postgres) -> Self {
        let program = env::current_exe().expect("this program has a path");
        let database = postgres.options("postgres").to_url_lossy();
        let mut process = Command::new(program)
            .args([SERVE, database.as_str()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the coordinator starts");
        let mut line = String::new();
        let output = process.stdout.take().expect("it is a pipe");
        BufReader::new(output).read_line(&mut line).expect("the coordinator prints its address");
        let (address, token) = line.trim().split_once(' ').expect("an address and a token");
        let address = format!("http://{address}");
        let token = token.to_owned();
        let stop = process.stdin.take().expect("it is a pipe");
        Self { process, address, token, stop }
    }

    async fn channel(&self) -> Channel {
        let endpoint = Channel::from_shared(self.address.clone()).expect("an address");
        endpoint.connect().await.expect("the coordinator answers")
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let token = format!("Bearer {}", self.token).parse().expect("letters and digits");
        request.metadata_mut().insert("authorization", token);
        request
    }

    /// A worker that has sent its hello.
    async fn worker(&self, slots: u32) -> Worker {
        let (outgoing, messages) = mpsc::channel(1);
        let name = name();
        let build = "bench".to_owned();
        let sandbox = "none".to_owned();
        let rules = RULES_VERSION.to_owned();
        let hello = Hello { name, build, sandbox, rules, slots, ..Hello::default() };
        let stream = tokio::spawn({
            let request = self.request(ReceiverStream::new(messages));
            let mut client = WorkerServiceClient::new(self.channel().await);
            async move { client.work(request).await.expect("the worker is admitted").into_inner() }
        });
        let worker = Worker { outgoing, incoming: stream };
        worker.send(Payload::Hello(hello)).await;
        worker.send(Payload::Capacity(Capacity { slots })).await;
        worker
    }

    /// Prints how much `load` increases the peak memory, and the memory before.
    async fn measure(self, name: &str, load: impl AsyncFnOnce(&Self)) {
        sleep(IDLE_AFTER).await;
        let id = self.process.id().to_string();
        let before = reset_peak_memory(&id);
        load(&self).await;
        let peak = memory(&id, "VmHWM:");
        println!("{name}: {} MB beside {before} MB", peak.saturating_sub(before));
        let mut process = self.process;
        drop(self.stop);
        process.wait().expect("the coordinator ends");
    }
}

struct Worker {
    outgoing: mpsc::Sender<WorkerMessage>,
    incoming: tokio::task::JoinHandle<Streaming<CoordinatorMessage>>,
}

impl Worker {
    async fn send(&self, payload: Payload) {
        self.outgoing
            .send(WorkerMessage { payload: Some(payload) })
            .await
            .expect("the coordinator listens");
    }
}

/// The next `count` lots that a worker receives.
async fn lots(incoming: &mut Streaming<CoordinatorMessage>, count: i64) -> Vec<Lot> {
    let mut lots = Vec::new();
    while i64::try_from(lots.len()).expect("few") < count {
        let message = incoming.message().await.expect("the stream is open").expect("a message");
        if let Some(CoordinatorPayload::Lot(lot)) = message.payload {
            lots.push(lot);
        }
    }
    lots
}

/// The report of a lot of one match, with a record.
fn report(lot: &Lot, record: &[u8]) -> Report {
    let seat = |score| SeatResult { score: vec![score], ..SeatResult::default() };
    let result = MatchResult {
        number: lot.matches[0].number,
        seats: [2, 0].map(seat).to_vec(),
        transcript: vec![1; 32],
        wall_ms: 1000,
        record: record.to_vec(),
    };
    let level = "A".to_owned();
    let trace = String::new();
    Report { lease: lot.lease, results: vec![result], level, trial: None, trace }
}

async fn reports(postgres: &Postgres, pool: &PgPool) {
    let server = Server::start(postgres);
    running(pool, &name(), 100, REPORTS, 1).await;
    let name = format!("{REPORTS} reports of {} MB over one stream", RECORD / 1_000_000);
    let load = async |server: &Server| {
        let Worker { outgoing, incoming } = server.worker(400).await;
        let mut incoming = incoming.await.expect("the stream opens");
        let lots = lots(&mut incoming, REPORTS).await;
        let record = noise(RECORD);
        let reporting = tokio::spawn(async move {
            for lot in lots {
                let message =
                    WorkerMessage { payload: Some(Payload::Report(report(&lot, &record))) };
                outgoing.send(message).await.expect("the coordinator listens");
            }
            outgoing
        });
        for _ in 0..REPORTS {
            incoming.message().await.expect("the stream is open").expect("a message");
        }
        drop(reporting.await);
    };
    server.measure(&name, load).await;
}

async fn fetches(postgres: &Postgres, pool: &PgPool) {
    let server = Server::start(postgres);
    running(pool, &name(), 100, REPORTS, 1).await;
    let name = format!("{FETCHES} bundles of {} MB, fetched slowly", BUNDLE / 1_000_000);
    let load = async |server: &Server| {
        let worker = server.worker(1).await;
        let mut incoming = worker.incoming.await.expect("the stream opens");
        drop(lots(&mut incoming, 1).await);
        let mut streams = Vec::new();
        for _ in 0..FETCHES {
            let mut client = WorkerServiceClient::new(server.channel().await);
            let request = server.request(FetchBundleRequest { digest: vec![0; 32] });
            streams.push(
                client
                    .fetch_bundle(request)
                    .await
                    .expect("the lease needs the bundle")
                    .into_inner(),
            );
        }
        sleep(IDLE_AFTER).await;
    };
    server.measure(&name, load).await;
}

async fn files(postgres: &Postgres, pool: &PgPool) {
    let server = Server::start(postgres);
    let edition = edition(pool, &name(), 100).await;
    let tournament = tournament_of(pool, edition).await;
    let entrants = editions::entrants(pool, edition).await.expect("the database answers");
    let seats = |number: i64| {
        let first = usize::try_from(number % 100).expect("small");
        Seats(vec![entrants[first].entrant, entrants[(first + 1) % 100].entrant])
    };
    let chained = |number: i64| Match {
        number: MatchNumber(number),
        seed_key: number,
        board: None,
        seats: seats(number % CHAINED),
        carried: None,
        state_from: Some(vec![(number >= CHAINED).then(|| number - CHAINED); 2]),
        params: None,
    };
    let lot = |number: i64| NewLot {
        number: LotNumber(number),
        count: 1,
        expected_ms: 1000,
        score_len: 2,
        blockers: 0,
        has_dependents: false,
    };
    let matches = (0..2 * CHAINED).map(chained);
    let lots = (0..2 * CHAINED).map(lot);
    let plan = Plan { matches, lots, order: std::iter::empty(), open_ended: false };
    let queue = Queue::new(pool.clone(), Games::built_in(), LeasePolicy::DEFAULT);
    queue.plan(edition, plan).await.expect("the plan is stored");
    let statement = "
        WITH snapshot AS (INSERT INTO snapshots VALUES ($2, $3) RETURNING digest)
        INSERT INTO bot_state (number, tournament, seat, digest)
        SELECT number, $1, seat, digest
        FROM snapshot, generate_series(0, $4 - 1) AS number, generate_series(1, 2) AS seat";
    let insert = sqlx::query(statement).bind(tournament.0).bind(vec![5_u8; 32]).bind(noise(FILES));
    insert.bind(CHAINED).execute(pool).await.expect("the files are stored");
    play_at_once(pool, edition, CHAINED).await;
    assert!(queue.start(edition).await.expect("the plan is valid"));
    let name = format!("{CHAINED} lots with {} MiB of files each, one claim", (2 * FILES) >> 20);
    let load = async |server: &Server| {
        let worker = server.worker(u32::try_from(CHAINED).expect("few")).await;
        let _unread = worker.incoming.await.expect("the stream opens");
        sleep(2 * IDLE_AFTER).await;
    };
    server.measure(&name, load).await;
}

async fn meetings(postgres: &Postgres, pool: &PgPool) {
    let tournament = name();
    let edition = running(pool, &tournament, BOTS, MATCHES, 500).await;
    play_at_once(pool, edition, MATCHES).await;
    let server = Server::start(postgres);
    let id = tournament_of(pool, edition).await;
    let statement = "SELECT count(*) FROM lots WHERE tournament = $1 AND state <> 'counted'";
    loop {
        let uncounted: i64 =
            sqlx::query_scalar(statement).bind(id.0).fetch_one(pool).await.expect("a number");
        if uncounted == 0 {
            break;
        }
        sleep(IDLE_AFTER / 10).await;
    }
    let name = format!("the head-to-head results of a bot, of {MATCHES} matches of {BOTS}");
    let load = async |server: &Server| {
        let board = Some(LeaderboardRef { tournament, edition: None });
        let request = GetHeadToHeadRequest { leaderboard: board, bot: "bot-0".to_owned() };
        let mut client = RankingServiceClient::new(server.channel().await);
        let start = std::time::Instant::now();
        let response =
            client.get_head_to_head(request).await.expect("the results are counted").into_inner();
        assert!(response.results.len() > 900, "{} others", response.results.len());
        println!("the results are counted within {} ms", start.elapsed().as_millis());
    };
    server.measure(&name, load).await;
}

async fn empty_results(postgres: &Postgres, _pool: &PgPool) {
    let server = Server::start(postgres);
    let name = format!("a report of {} MiB of empty results", (2 * EMPTY_RESULTS) >> 20);
    let load = async |server: &Server| {
        let Worker { outgoing, incoming } = server.worker(1).await;
        let results = vec![MatchResult::default(); EMPTY_RESULTS];
        let report = Report { results, ..Report::default() };
        outgoing
            .send(WorkerMessage { payload: Some(Payload::Report(report)) })
            .await
            .expect("the coordinator listens");
        let mut incoming = incoming.await.expect("the stream opens");
        while let Ok(Some(_)) = incoming.message().await {}
    };
    server.measure(&name, load).await;
}
