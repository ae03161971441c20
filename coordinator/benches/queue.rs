//! Leases and reports through the queue with durable commits, against what the same Postgres makes
//! of the same rows by a raw `COPY` and by single-row inserts, all in one run:
//! `cargo bench -p arbiter-coordinator --bench queue`.
//!
//! Workers play nothing. The lots are leased and reported on the same connections and cores as
//! everything else; reports are handed to the collector one lot at a time, by more tasks than make
//! up a batch, and each waits for its verdict. A second figure has the standings counted meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Instant;

use arbiter_coordinator::db::matches::{Match, Seats};
use arbiter_coordinator::db::results::{self, MatchResult};
use arbiter_coordinator::db::tournaments::NewTournament;
use arbiter_coordinator::db::{self, bots, editions, tournaments, versions, workers};
use arbiter_coordinator::postgres::{Durability, Postgres};
use arbiter_coordinator::queue::{Leased, NewLot, Plan, Queue, Report, Reporter, Terms, Verdict};
use arbiter_games::{GameName, Seed};
use arbiter_proto::ids::{EditionId, Entrant, LotNumber, MatchNumber, WorkerId};
use arbiter_proto::level::Level;
use serde_json::json;
use sqlx::PgPool;
use time::{Duration, OffsetDateTime};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

/// When everything happens.
const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;
/// Bots of an edition.
const BOTS: i32 = 1000;
/// Rows of the raw copy, and matches of an edition with great lots.
const MANY: i64 = 1_000_000;
/// Matches of an edition with lots of one.
const FEW: i64 = 200_000;
/// Single-row inserts.
const SINGLE: i64 = 4_000;
/// Connections that insert single rows at the same time.
const INSERTERS: i64 = 8;
/// Tasks that report, each one lot at a time.
const REPORTERS: usize = 192;

/// What is measured against what.
struct Bench {
    pool: PgPool,
    queue: Queue,
    worker: WorkerId,
    editions: i32,
}

fn main() {
    let directory = tempfile::tempdir().expect("a directory for the data can be made");
    let postgres = Postgres::start(directory.path(), Durability::Synced).expect("Postgres runs");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        let pool = db::connect(postgres.options("postgres"), 16).await.expect("it answers");
        db::migrate(&pool).await.expect("the tables are made");
        let worker = workers::greet(&pool, "bench", "none", "bench", NOW).await.expect("a worker");
        let queue = Queue::new(pool.clone(), Terms::USUAL);
        Bench { pool, queue, worker, editions: 0 }.run().await;
    });
    drop(runtime);
    postgres.stop();
}

impl Bench {
    async fn run(mut self) {
        let copy = self.copy().await;
        let inserts = self.single_inserts().await;
        println!("raw COPY of results               {copy:>9.0} rows/s");
        println!("single-row inserts, {INSERTERS} sessions    {inserts:>9.0} rows/s");
        for (per_lot, matches, target) in [(1, FEW, 30_000.0), (64, MANY, 250_000.0)] {
            for counting in [false, true] {
                let speed = self.queue(per_lot, matches, counting).await;
                let counted = if counting { ", counted meanwhile" } else { "" };
                println!(
                    "lots of {per_lot:>2}{counted:<19}     {speed:>9.0} matches/s, {:.2} of COPY, \
                    {:.1} × inserts, {:.2} of the target",
                    speed / copy,
                    speed / inserts,
                    speed / target
                );
            }
        }
    }

    /// The speed of a raw copy of results, in rows a second.
    async fn copy(&mut self) -> f64 {
        let edition = self.edition().await;
        let rows: Vec<_> = (0..MANY).map(|number| result(MatchNumber(number))).collect();
        let mut connection = self.pool.acquire().await.expect("a connection");
        let begin = Instant::now();
        let batch: results::Batch = rows.iter().map(|row| (edition, Level::A, row)).collect();
        results::copy_in(&mut connection, batch).await.expect("they are copied");
        speed(MANY, begin)
    }

    /// The speed of inserts of one result each, committed one by one, in rows a second.
    async fn single_inserts(&mut self) -> f64 {
        let edition = self.edition().await;
        let begin = Instant::now();
        let mut tasks = JoinSet::new();
        for first in 0..INSERTERS {
            let pool = self.pool.clone();
            tasks.spawn(async move {
                for number in (first..SINGLE).step_by(8) {
                    insert(&pool, edition, &result(MatchNumber(number))).await;
                }
            });
        }
        tasks.join_all().await;
        speed(SINGLE, begin)
    }

    /// The speed of leasing and reporting an edition, in matches a second.
    async fn queue(&mut self, per_lot: i32, matches: i64, counting: bool) -> f64 {
        let edition = self.edition().await;
        self.queue.plan(edition, plan(matches, per_lot)).await.expect("the plan is stored");
        self.queue.start(edition).await.expect("the plan makes sense");
        let over = Arc::new(AtomicBool::new(false));
        let mut counter = JoinSet::new();
        if counting {
            let (queue, over) = (self.queue.clone(), Arc::clone(&over));
            counter.spawn(async move {
                let mut done = 0;
                while done < matches || !over.load(Ordering::Relaxed) {
                    done += queue.count(edition).await.expect("they are counted");
                }
            });
        }
        let begin = Instant::now();
        self.play(edition, matches).await;
        over.store(true, Ordering::Relaxed);
        let speed = speed(matches, begin);
        let lag = Instant::now();
        counter.join_all().await;
        if counting {
            println!("  the last results are counted {:.2} s later", lag.elapsed().as_secs_f64());
            let wrong = self.queue.check(edition).await.expect("it can be checked");
            assert!(wrong.is_empty(), "{wrong:?}");
        }
        speed
    }

    /// Leases and reports everything.
    async fn play(&self, edition: EditionId, matches: i64) {
        let (reporter, collector) = Reporter::new(self.queue.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(collector.run());
        let hands = Arc::new(Hands {
            queue: self.queue.clone(),
            edition,
            leased: Mutex::new(Vec::new()),
            left: AtomicI64::new(matches),
        });
        for _ in 0..REPORTERS {
            let (hands, reporter, worker) = (Arc::clone(&hands), reporter.clone(), self.worker);
            tasks.spawn(async move {
                while let Some(lot) = hands.next().await {
                    let verdict = reporter.report(report(&lot, worker)).await.expect("a verdict");
                    assert_eq!(verdict, Verdict::Accepted);
                }
            });
        }
        drop(reporter);
        tasks.join_all().await;
    }

    /// An edition of its own tournament.
    async fn edition(&mut self) -> EditionId {
        self.editions += 1;
        let name = format!("bench-{}", self.editions);
        let new = NewTournament {
            name: &name,
            game: GameName::Gomoku.word(),
            settings: &json!({}),
            seed: Seed::of_text(&name),
            seed_hash: [0; 32],
        };
        let tournament = tournaments::create(&self.pool, &new, NOW).await.expect("a tournament");
        let edition = editions::create(&self.pool, tournament, 1, false, NOW).await;
        let edition = edition.expect("an edition");
        versions::store_bundle(&self.pool, &[0; 32], b"bundle").await.expect("a bundle");
        let mut entered = Vec::new();
        let mut transaction = self.pool.begin().await.expect("a transaction");
        for bot in 0..BOTS {
            let name = format!("bot-{bot}");
            let bot = bots::create(&mut *transaction, tournament, None, &name, NOW).await;
            let version = versions::submit(&mut *transaction, bot.expect("a bot"), &[0; 32], NOW);
            entered.push(version.await.expect("a version"));
        }
        transaction.commit().await.expect("they are stored");
        editions::enter(&self.pool, edition, &entered).await.expect("they take part");
        edition
    }
}

/// Hands out lots that were leased many at a time.
struct Hands {
    queue: Queue,
    edition: EditionId,
    leased: Mutex<Vec<Leased>>,
    left: AtomicI64,
}

impl Hands {
    async fn next(&self) -> Option<Leased> {
        let mut leased = self.leased.lock().await;
        if leased.is_empty() && self.left.load(Ordering::Relaxed) > 0 {
            *leased = self.queue.lease(self.edition, 1024, NOW).await.expect("lots are leased");
        }
        let lot = leased.pop()?;
        self.left.fetch_sub(lot.count.into(), Ordering::Relaxed);
        Some(lot)
    }
}

/// So many things since then, a second.
#[expect(clippy::cast_precision_loss, reason = "a few digits are enough")]
fn speed(things: i64, since: Instant) -> f64 {
    things as f64 / since.elapsed().as_secs_f64()
}

async fn insert(pool: &PgPool, edition: EditionId, result: &MatchResult) {
    let statement = "INSERT INTO results (number, edition, wall_ms, level, scores, transcript)
        VALUES ($1, $2, $3, 'A', $4, $5)";
    sqlx::query(statement)
        .bind(result.number.0)
        .bind(edition.0)
        .bind(result.wall_ms)
        .bind(&result.scores)
        .bind(result.transcript.as_slice())
        .execute(pool)
        .await
        .expect("it is inserted");
}

/// A plan of so many matches, so many in a lot.
fn plan(
    matches: i64,
    per_lot: i32,
) -> Plan<
    impl Iterator<Item = Match>,
    impl Iterator<Item = NewLot>,
    impl Iterator<Item = arbiter_coordinator::queue::Order>,
> {
    let seat = |number: i64| Entrant(i32::try_from(number % i64::from(BOTS)).expect("few bots"));
    let seats =
        move |number: i64| Seats(vec![seat(number), seat(number + 1 + number / 1000 % 999)]);
    let step = usize::try_from(per_lot).expect("a small number");
    Plan {
        matches: (0..matches).map(move |number| Match {
            number: MatchNumber(number),
            deal: number,
            board: None,
            seats: seats(number),
            carried: None,
            files_from: None,
            params: None,
        }),
        lots: (0..).zip((0..matches).step_by(step)).map(move |(lot, first)| NewLot {
            number: LotNumber(lot),
            first: MatchNumber(first),
            count: i32::try_from(i64::from(per_lot).min(matches - first)).expect("a small number"),
            expected_ms: 1000,
            width: 2,
            waits: 0,
            feeds: false,
        }),
        order: std::iter::empty(),
        growing: false,
    }
}

fn result(number: MatchNumber) -> MatchResult {
    let seed = Seed::of_text("bench").0;
    let wins = number.0 % 3;
    MatchResult {
        number,
        wall_ms: 1000,
        scores: vec![wins, 2 - wins],
        transcript: seed,
        forfeits: Vec::new(),
        bad_answers: Vec::new(),
    }
}

fn report(lot: &Leased, worker: WorkerId) -> Report {
    let numbers = (lot.first.0..).take(usize::try_from(lot.count).expect("a small number"));
    Report {
        lease: lot.lease,
        worker,
        results: numbers.map(|number| result(MatchNumber(number))).collect(),
        records: Vec::new(),
        level: Level::A,
        files: Vec::new(),
    }
}

/// A lease is good for the whole run.
const _: () = assert!(Terms::USUAL.lease.whole_seconds() >= Duration::MINUTE.whole_seconds());
