//! Shared code of the database tests: a private cluster for each test binary, a new database for
//! each test, and test tournaments with plans, results and reports.

#![allow(dead_code, reason = "each test binary uses its part")]

mod models;
pub(crate) mod planning;
pub(crate) mod test_clock;
pub(crate) mod tricks_player;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use arbiter_coordinator::access::{self, Role};
use arbiter_coordinator::coordinator::{Config, Records};
use arbiter_coordinator::db::matches::{Match, Seats};
use arbiter_coordinator::db::results::MatchResult;
use arbiter_coordinator::db::tournaments::{NewTournament, Presentation};
use arbiter_coordinator::db::{self, bots, editions, tournaments, versions, workers};
use arbiter_coordinator::postgres::{Durability, Postgres};
use arbiter_coordinator::queue::{
    LeasePolicy, LeasedLot, NewLot, Order, Queue, Report, ReportStatus, UploadedRecords,
};
use arbiter_games::{Game, Games, RULES_VERSION, Seed, gomoku};
use arbiter_proto::ids::{
    EditionId, LotNumber, MatchNumber, TokenId, TournamentId, VersionId, WorkerId,
};
use arbiter_proto::level::Level;
use arbiter_ranking::Entrant;
use serde_json::json;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool};
use tempfile::TempDir;
use time::{Duration, OffsetDateTime};
use tokio::sync::Mutex;

use planning::{Plan, Planning as _};

/// The start time of the tests. They set the clock themselves.
pub(crate) const START: OffsetDateTime = time::macros::datetime!(2026-01-01 12:00 UTC);

/// A running Postgres server. It is stopped and deleted after the last test that uses it.
#[derive(Debug)]
struct Cluster {
    postgres: Postgres,
    _directory: TempDir,
}

/// The shared cluster of this test binary. It is stopped when no test uses it.
static CLUSTER: Mutex<Weak<Cluster>> = Mutex::const_new(Weak::new());
/// Maximum number of connections to a test's database. Statements take turns on all of them, and
/// each connection looks up the tables for itself, so more of them would cost time.
const CONNECTIONS: u32 = 6;
/// The number of databases created so far. It makes their names unique.
static DATABASES: AtomicUsize = AtomicUsize::new(0);

impl Cluster {
    async fn get() -> Arc<Self> {
        let mut current = CLUSTER.lock().await;
        if let Some(cluster) = current.upgrade() {
            return cluster;
        }
        let directory = tempfile::tempdir().unwrap();
        models::copy_cluster_to(directory.path());
        let postgres = Postgres::start(directory.path(), Durability::Unsynced).unwrap();
        let cluster = Arc::new(Self { postgres, _directory: directory });
        cluster.execute("CREATE DATABASE model TEMPLATE postgres").await;
        let pool = db::connect(cluster.postgres.options("model"), 1).await.unwrap();
        db::migrate(&pool).await.unwrap();
        sqlx::raw_sql(test_clock::INSTALL).execute(&pool).await.unwrap();
        pool.close().await;
        *current = Arc::downgrade(&cluster);
        cluster
    }

    async fn execute(&self, statement: &str) {
        let options = self.postgres.options("postgres");
        let mut connection = PgConnection::connect_with(&options).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }
}

/// A new database for a test.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) pool: PgPool,
    name: String,
    cluster: Arc<Cluster>,
}

impl Database {
    pub(crate) async fn new() -> Self {
        let cluster = Cluster::get().await;
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        // Postgres refuses to copy a template that has another connection: one copy at a time.
        let template_lock = CLUSTER.lock().await;
        cluster.execute(&format!("CREATE DATABASE {name} TEMPLATE model")).await;
        drop(template_lock);
        let pool = db::connect(cluster.postgres.options(&name), CONNECTIONS).await.unwrap();
        Self { pool, name, cluster }
    }

    /// The connection options of this database.
    pub(crate) fn options(&self) -> PgConnectOptions {
        self.cluster.postgres.options(&self.name)
    }

    /// A queue of this database with the default lease policy.
    pub(crate) fn queue(&self) -> Queue {
        Queue::new(self.pool.clone(), Games::built_in(), LeasePolicy::DEFAULT)
    }

    pub(crate) async fn tournament(&self, name: &str, game: Game) -> TournamentId {
        let new = NewTournament {
            rehearsal_of: None,
            name,
            game: game.as_str(),
            settings: &json!({ "schedule": { "kind": "round_robin" } }),
            seed: Seed::of_text(name),
            seed_hash: [7; 32],
            beacon: None,
            presentation: &Presentation::default(),
        };
        tournaments::create(&self.pool, &new, START).await.unwrap()
    }

    /// Enters bots in a tournament, each one second after the other. Returns their versions.
    pub(crate) async fn versions(&self, tournament: TournamentId, bots: i32) -> Vec<VersionId> {
        let digest = [1; 32];
        versions::store_bundle(&self.pool, &digest, b"bundle").await.unwrap();
        let mut submitted_versions = Vec::new();
        for number in 0..bots {
            let at = START + Duration::seconds(number.into());
            let name = format!("bot-{number}");
            let bot = bots::create(&self.pool, tournament, None, &name, at).await.unwrap();
            let version = versions::submit(&self.pool, bot, &digest, at).await.unwrap();
            submitted_versions.push(version);
        }
        submitted_versions
    }

    /// A new edition of gomoku with this many bots and without a plan.
    pub(crate) async fn edition(&self, bots: i32) -> EditionId {
        let tournament = self.tournament("cup", gomoku::game()).await;
        let versions = self.versions(tournament, bots).await;
        let edition =
            editions::create(&self.pool, tournament, 1, false, RULES_VERSION, START).await.unwrap();
        editions::enter(&self.pool, edition, &versions).await.unwrap();
        edition
    }

    /// The tournament of an edition.
    pub(crate) async fn tournament_of(&self, edition: EditionId) -> TournamentId {
        editions::scope(&self.pool, edition).await.unwrap().tournament
    }

    /// A running edition of five bots with this many matches, at most `per_lot` in each lot.
    pub(crate) async fn running_edition(&self, matches: i64, per_lot: i32) -> EditionId {
        let edition = self.edition(5).await;
        let queue = self.queue();
        queue.plan(edition, plan(matches, per_lot)).await.unwrap();
        assert!(queue.start(edition).await.unwrap());
        edition
    }

    /// The worker of this name. The first call creates the worker and its token.
    pub(crate) async fn worker(&self, name: &str) -> WorkerId {
        let token = match workers::owner(&self.pool, name).await.unwrap() {
            Some(token) => token,
            None => self.worker_token(name).await,
        };
        workers::register(&self.pool, token, name, "A", "test", START).await.unwrap().unwrap()
    }

    /// A new token for workers.
    pub(crate) async fn worker_token(&self, name: &str) -> TokenId {
        access::create(&self.pool, Role::Worker, name, START).await.unwrap().0
    }

    /// The number that a statement returns.
    pub(crate) async fn number(&self, statement: &'static str) -> i64 {
        sqlx::query_scalar(statement).fetch_one(&self.pool).await.unwrap()
    }

    /// Whether a session of this database waits for a lock.
    pub(crate) async fn has_waiting_session(&self) -> bool {
        let waiting = "
            SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        self.number(waiting).await > 0
    }
}

/// The default options of a coordinator.
pub(crate) fn config() -> Config {
    Config {
        games: Games::built_in(),
        tls: None,
        lease_policy: LeasePolicy::DEFAULT,
        connections: 8,
        proxies: Vec::new(),
        records: Records::default(),
    }
}

/// Matches between five bots. The pairs take turns.
pub(crate) fn duels(matches: i64) -> impl Iterator<Item = Match> {
    (0..matches).map(|number| {
        let first = i32::try_from(number % 5).unwrap();
        let second = (first + 1 + i32::try_from(number / 5 % 4).unwrap()) % 5;
        Match {
            number: MatchNumber(number),
            seed_key: number / 2,
            board: None,
            // The versions of a new database have the ids from 1 on.
            seats: Seats(vec![Entrant(first + 1), Entrant(second + 1)]),
            carried: None,
            state_from: None,
            params: None,
        }
    })
}

/// Lots of at most `per_lot` matches. Each lot has a longer expected duration than the one before.
pub(crate) fn lots(matches: i64, per_lot: i32) -> impl Iterator<Item = NewLot> {
    (0..).zip((0..matches).step_by(usize::try_from(per_lot).unwrap())).map(move |(lot, first)| {
        NewLot {
            number: LotNumber(first),
            count: i32::try_from(i64::from(per_lot).min(matches - first)).unwrap(),
            expected_ms: lot,
            score_len: 2,
            blockers: 0,
            has_dependents: false,
        }
    })
}

/// A plan with boxed iterators, so that all test plans have one type.
pub(crate) type AnyPlan = Plan<
    Box<dyn Iterator<Item = Match> + Send>,
    Box<dyn Iterator<Item = NewLot> + Send>,
    Box<dyn Iterator<Item = Order> + Send>,
>;

/// A plan to which no matches will be added.
pub(crate) fn final_plan(
    matches: impl Iterator<Item = Match> + Send + 'static,
    lots: impl Iterator<Item = NewLot> + Send + 'static,
    order: impl IntoIterator<Item = Order, IntoIter: Send + 'static>,
) -> AnyPlan {
    Plan {
        matches: Box::new(matches),
        lots: Box::new(lots),
        order: Box::new(order.into_iter()),
        open_ended: false,
    }
}

/// A plan of [`duels`] in [`lots`]. No lot waits for another.
pub(crate) fn plan(matches: i64, per_lot: i32) -> AnyPlan {
    final_plan(duels(matches), lots(matches, per_lot), [])
}

/// The result of a match. It depends on the number of the match only.
pub(crate) fn result(number: MatchNumber) -> MatchResult {
    let wins = number.0 % 3;
    let forfeit = (number.0 % 7 == 0).then_some(arbiter_games::Forfeit::Clock);
    let mut transcript = [0; 32];
    transcript[..8].copy_from_slice(&number.0.to_be_bytes());
    MatchResult {
        number,
        wall_ms: 12,
        scores: vec![wins, 2 - wins],
        transcript,
        forfeits: if forfeit.is_some() { vec![None, forfeit] } else { Vec::new() },
        bad_answers: Vec::new(),
    }
}

/// The report of a leased lot.
pub(crate) fn report(lot: &LeasedLot, worker: WorkerId) -> Report {
    let numbers =
        (lot.first_match().0..).take(usize::try_from(lot.count).unwrap()).map(MatchNumber);
    Report {
        lease: lot.lease,
        worker,
        at: START,
        results: numbers.map(result).collect(),
        records: Vec::new(),
        level: Level::A,
        files: Vec::new(),
        evidence: Vec::new(),
    }
}

/// Reports lots. The database stores their records.
pub(crate) async fn report_all(queue: &Queue, reports: &[Report]) -> Vec<ReportStatus> {
    queue.report(reports, &UploadedRecords::default()).await.unwrap()
}

/// Reports one lot.
pub(crate) async fn report_one(queue: &Queue, report: &Report) -> ReportStatus {
    report_all(queue, std::slice::from_ref(report)).await[0]
}

/// The time limit of [`wait_until`].
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);
/// The time between two checks of a condition.
const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);

/// Waits until a condition is true. The description completes "timeout: waited until ...".
pub(crate) async fn wait_until(description: &str, mut condition: impl AsyncFnMut() -> bool) {
    let poll = async {
        while !condition().await {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    let result = tokio::time::timeout(TIMEOUT, poll).await;
    assert!(result.is_ok(), "timeout: waited until {description}");
}

/// Polls a future at most `max_polls` times, then drops it. Returns its output if it is ready.
pub(crate) async fn poll_at_most<T>(
    max_polls: usize,
    future: impl Future<Output = T>,
) -> Option<T> {
    let mut future = pin!(future);
    let mut remaining = max_polls;
    let poll = poll_fn(|context| {
        if remaining == 0 {
            return Poll::Ready(None);
        }
        remaining -= 1;
        future.as_mut().poll(context).map(Some)
    });
    poll.await
}

/// Ends the database session of `work` when it wants to write to a table. Returns the output of
/// `work`.
pub(crate) async fn kill_at_table<T>(
    pool: &PgPool,
    table: &str,
    work: impl Future<Output = T>,
) -> T {
    let mut blocker = pool.begin().await.unwrap();
    let lock = format!("LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE");
    sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut *blocker).await.unwrap();
    let statement = "
        SELECT count(*) FROM pg_stat_activity
        WHERE CASE WHEN datname = current_database() AND usename = current_user
            AND wait_event_type = 'Lock' THEN pg_terminate_backend(pid) END";
    let kill = wait_until("a session waits for the table", async || {
        let killed: i64 = sqlx::query_scalar(statement).fetch_one(pool).await.unwrap();
        killed > 0
    });
    let (output, ()) = tokio::join!(work, kill);
    blocker.rollback().await.unwrap();
    output
}
