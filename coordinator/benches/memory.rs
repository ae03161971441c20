//! The peak memory of a coordinator under demanding clients:
//! `cargo bench -p arbiter-coordinator --bench memory`.
//!
//! The coordinator is a separate process of this program: the memory of its clients does not count.

use std::env;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use arbiter_coordinator::access::Role;
use arbiter_coordinator::coordinator::Coordinator;
use arbiter_coordinator::db::matches::{Match, Seats};
use arbiter_coordinator::db::versions;
use arbiter_coordinator::postgres::Postgres;
use arbiter_coordinator::queue::{LeasePolicy, NewLot, Plan, Queue};
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
use arbiter_ranking::Entrant;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, PgPool};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Request, Streaming};

use support::measure::{forget_most_memory, memory};
use support::server::config;
use support::{edition, name, play_at_once, running};

mod support;

/// The argument that makes this program the coordinator, before the address of its database.
const SERVE: &str = "serve";
/// The size of the bundle of all bots, in bytes.
const BUNDLE: usize = 40_000_000;
/// Clients that fetch it, but do not read it.
const FETCHES: usize = 30;
/// Reports over one stream, and the record of each in bytes.
const REPORTS: i64 = 400;
const RECORD: usize = 4_000_000;
/// Matches whose seats have bot state, leased at once to a worker that does not read.
const CHAINED: i64 = 512;
/// The bot state of a seat, in bytes.
const FILES: usize = 1 << 20;
/// Bots that all meet, and their matches.
const FIELD: i32 = 2000;
const MET: i64 = 2_000_000;
/// Empty results in a report: two bytes each.
const EMPTY: usize = 4 << 20;
/// How long the coordinator takes to become idle.
const CALM: Duration = Duration::from_secs(5);

fn main() {
    let mut arguments = env::args().skip(1);
    if arguments.next().as_deref() == Some(SERVE) {
        serve(&arguments.next().expect("the address of the database"));
        return;
    }
    support::run(async |postgres, pool| {
        versions::store_bundle(&pool, &[0; 32], &noise(BUNDLE)).await.expect("it is stored");
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

/// Serves until the process that started it closes its standard input.
fn serve(database: &str) {
    let options: PgConnectOptions = database.parse().expect("an address");
    Runtime::new().expect("a runtime can be made").block_on(async {
        let coordinator = Coordinator::prepare(options, config()).await.expect("it can be used");
        let name = format!("memory-{}", std::process::id());
        let token = coordinator.create_token(Role::Worker, &name).await.expect("a token");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        println!("{} {}", listener.local_addr().expect("it is bound"), token.text());
        let stop = tokio::task::spawn_blocking(|| drop(std::io::stdin().read(&mut [0])));
        coordinator.run(listener, async { drop(stop.await) }).await.expect("it serves");
    });
}

/// A coordinator in a separate process.
struct Server {
    process: Child,
    address: String,
    token: String,
    until: ChildStdin,
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
            .expect("it starts");
        let mut line = String::new();
        let said = process.stdout.take().expect("it is a pipe");
        BufReader::new(said).read_line(&mut line).expect("it says where it is");
        let (address, token) = line.trim().split_once(' ').expect("an address and a token");
        let address = format!("http://{address}");
        let token = token.to_owned();
        let until = process.stdin.take().expect("it is a pipe");
        Self { process, address, token, until }
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
        let hello = Hello { name, build, sandbox, rules: RULES_VERSION.to_owned(), slots };
        let stream = tokio::spawn({
            let request = self.request(ReceiverStream::new(messages));
            let mut client = WorkerServiceClient::new(self.channel().await);
            async move { client.work(request).await.expect("it may work").into_inner() }
        });
        let worker = Worker { outgoing, incoming: stream };
        worker.send(Payload::Hello(hello)).await;
        worker.send(Payload::Capacity(Capacity { slots })).await;
        worker
    }

    /// Prints the peak memory beside the memory before.
    async fn measure(self, what: &str, act: impl AsyncFnOnce(&Self)) {
        sleep(CALM).await;
        let id = self.process.id().to_string();
        let before = forget_most_memory(&id);
        act(&self).await;
        let most = memory(&id, "VmHWM:");
        println!("{what}: {} MB beside {before} MB", most.saturating_sub(before));
        let mut process = self.process;
        drop(self.until);
        process.wait().expect("it ends");
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

/// The next lots that a worker receives.
async fn lots(incoming: &mut Streaming<CoordinatorMessage>, count: i64) -> Vec<Lot> {
    let mut lots = Vec::new();
    while i64::try_from(lots.len()).expect("few") < count {
        let message = incoming.message().await.expect("the stream holds").expect("it goes on");
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
    let what = format!("{REPORTS} reports of {} MB over one stream", RECORD / 1_000_000);
    let act = async |server: &Server| {
        let Worker { outgoing, incoming } = server.worker(400).await;
        let mut incoming = incoming.await.expect("it is there");
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
            incoming.message().await.expect("the stream holds").expect("it goes on");
        }
        drop(reporting.await);
    };
    server.measure(&what, act).await;
}

async fn fetches(postgres: &Postgres, pool: &PgPool) {
    let server = Server::start(postgres);
    running(pool, &name(), 100, REPORTS, 1).await;
    let what = format!("{FETCHES} bundles of {} MB, fetched slowly", BUNDLE / 1_000_000);
    let act = async |server: &Server| {
        let worker = server.worker(1).await;
        let mut incoming = worker.incoming.await.expect("it is there");
        drop(lots(&mut incoming, 1).await);
        let mut streams = Vec::new();
        for _ in 0..FETCHES {
            let mut client = WorkerServiceClient::new(server.channel().await);
            let request = server.request(FetchBundleRequest { digest: vec![0; 32] });
            streams.push(client.fetch_bundle(request).await.expect("it needs it").into_inner());
        }
        sleep(CALM).await;
    };
    server.measure(&what, act).await;
}

async fn files(postgres: &Postgres, pool: &PgPool) {
    let server = Server::start(postgres);
    let edition = edition(pool, &name(), 100).await;
    let seats = |number: i64| {
        let first = i32::try_from(number % 100).expect("small");
        Seats(vec![Entrant(first), Entrant((first + 1) % 100)])
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
        first_match: MatchNumber(number),
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
    let left = "
        WITH snapshot AS (INSERT INTO snapshots VALUES ($2, $3) RETURNING digest)
        INSERT INTO bot_state (number, edition, seat, digest)
        SELECT number, $1, seat, digest
        FROM snapshot, generate_series(0, $4 - 1) AS number, generate_series(1, 2) AS seat";
    let left = sqlx::query(left).bind(edition.0).bind(vec![5_u8; 32]).bind(noise(FILES));
    left.bind(CHAINED).execute(pool).await.expect("they are stored");
    play_at_once(pool, edition, CHAINED).await;
    assert!(queue.start(edition).await.expect("the plan makes sense"));
    let what = format!("{CHAINED} lots with {} MiB of files each, one claim", (2 * FILES) >> 20);
    let act = async |server: &Server| {
        let worker = server.worker(u32::try_from(CHAINED).expect("few")).await;
        let _unread = worker.incoming.await.expect("it is there");
        sleep(2 * CALM).await;
    };
    server.measure(&what, act).await;
}

async fn meetings(postgres: &Postgres, pool: &PgPool) {
    let tournament = name();
    let edition = running(pool, &tournament, FIELD, MET, 500).await;
    play_at_once(pool, edition, MET).await;
    let server = Server::start(postgres);
    let counted = "SELECT count(*) FROM lots WHERE edition = $1 AND state <> 'counted'";
    loop {
        let left: i64 =
            sqlx::query_scalar(counted).bind(edition.0).fetch_one(pool).await.expect("a number");
        if left == 0 {
            break;
        }
        sleep(CALM / 10).await;
    }
    let what = format!("the meetings of a bot, of {MET} matches of {FIELD}");
    let act = async |server: &Server| {
        let board = Some(LeaderboardRef { tournament, edition: None });
        let request = GetHeadToHeadRequest { leaderboard: board, bot: "bot-0".to_owned() };
        let mut client = RankingServiceClient::new(server.channel().await);
        let begin = std::time::Instant::now();
        let met = client.get_head_to_head(request).await.expect("they are counted").into_inner();
        assert!(met.results.len() > 900, "{} others", met.results.len());
        println!("they are counted within {} ms", begin.elapsed().as_millis());
    };
    server.measure(&what, act).await;
}

async fn empty_results(postgres: &Postgres, _pool: &PgPool) {
    let server = Server::start(postgres);
    let what = format!("a report of {} MiB of empty results", (2 * EMPTY) >> 20);
    let act = async |server: &Server| {
        let Worker { outgoing, incoming } = server.worker(1).await;
        let results = vec![MatchResult::default(); EMPTY];
        let report = Report { results, ..Report::default() };
        outgoing
            .send(WorkerMessage { payload: Some(Payload::Report(report)) })
            .await
            .expect("it listens");
        let mut incoming = incoming.await.expect("it is there");
        while let Ok(Some(_)) = incoming.message().await {}
    };
    server.measure(&what, act).await;
}
