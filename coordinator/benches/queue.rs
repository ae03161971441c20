//! The speed of leases and reports through the queue with durable commits, compared with a raw
//! `COPY` and single-row inserts of the same rows in the same Postgres:
//! `cargo bench -p arbiter-coordinator --bench queue`.
//!
//! No matches are played. All operations use the same connections and processors. Each task reports
//! one lot at a time to the batcher and waits for the status. There are more tasks than lots in a
//! batch. A second measurement counts the standings at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use arbiter_coordinator::db::editions;
use arbiter_coordinator::queue::{LeasePolicy, Queue};
use arbiter_games::Games;
use arbiter_proto::ids::WorkerId;
use sqlx::PgPool;
use time::Duration;
use tokio::task::JoinSet;

use support::measure::speed;
use support::play::play;
use support::{edition, name, raw_copy, running, single_inserts, tournament_of};

mod support;

/// The number of bots of an edition.
const BOTS: i32 = 1000;
/// The number of matches of an edition with large lots.
const LARGE_LOTS_MATCHES: i64 = 1_000_000;
/// The number of matches of an edition with lots of one match.
const SMALL_LOTS_MATCHES: i64 = 200_000;
/// The number of sessions that insert single rows at the same time.
const INSERT_SESSIONS: i64 = 8;

/// The measurements.
struct Bench {
    pool: PgPool,
    queue: Queue,
    worker: WorkerId,
}

fn main() {
    support::run(async |_, pool| {
        let worker = support::worker(&pool).await;
        let queue = Queue::new(pool.clone(), Games::built_in(), LeasePolicy::DEFAULT);
        Bench { pool, queue, worker }.run().await;
    });
}

impl Bench {
    async fn run(self) {
        let baseline = edition(&self.pool, &name(), BOTS).await;
        let copy = raw_copy(&self.pool, baseline).await;
        let baseline = edition(&self.pool, &name(), BOTS).await;
        let inserts = single_inserts(&self.pool, baseline, INSERT_SESSIONS).await;
        println!("raw COPY of results               {copy:>9.0} rows/s");
        println!("single-row inserts, {INSERT_SESSIONS} sessions    {inserts:>9.0} rows/s");
        for (per_lot, matches, target) in
            [(1, SMALL_LOTS_MATCHES, 30_000.0), (64, LARGE_LOTS_MATCHES, 250_000.0)]
        {
            for counts in [false, true] {
                let speed = self.queue(per_lot, matches, counts).await;
                let suffix = if counts { ", counted meanwhile" } else { "" };
                println!(
                    "lots of {per_lot:>2}{suffix:<19}     {speed:>9.0} matches/s, {:.2} of COPY, \
                    {:.1} × inserts, {:.2} of the target",
                    speed / copy,
                    speed / inserts,
                    speed / target
                );
            }
        }
    }

    /// The speed of leasing and reporting an edition, in matches a second.
    async fn queue(&self, per_lot: i32, matches: i64, counts: bool) -> f64 {
        let edition = running(&self.pool, &name(), BOTS, matches, per_lot).await;
        let tournament = tournament_of(&self.pool, edition).await;
        let is_over = Arc::new(AtomicBool::new(false));
        let mut counter = JoinSet::new();
        if counts {
            let queue = self.queue.clone();
            let is_over = Arc::clone(&is_over);
            counter.spawn(async move {
                let mut counted = 0;
                while counted < matches || !is_over.load(Ordering::Relaxed) {
                    counted += queue.count(tournament).await.expect("the results are counted");
                }
            });
        }
        let start = Instant::now();
        play(&self.queue, self.worker, tournament, matches).await;
        is_over.store(true, Ordering::Relaxed);
        let speed = speed(matches, start);
        let count_start = Instant::now();
        counter.join_all().await;
        if counts {
            println!(
                "  the last results are counted {:.2} s later",
                count_start.elapsed().as_secs_f64()
            );
            let scope = editions::scope(&self.pool, edition).await.expect("the edition exists");
            let differences =
                self.queue.verify_standings(scope).await.expect("the standings can be checked");
            assert!(differences.is_empty(), "{differences:?}");
        }
        speed
    }
}

// A lease is valid for the whole run.
const _: () =
    assert!(LeasePolicy::DEFAULT.lease.whole_seconds() >= Duration::MINUTE.whole_seconds());
