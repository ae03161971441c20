//! Leases and reports through the queue with durable commits, compared with a raw `COPY` and
//! single-row inserts of the same rows in the same Postgres, all in one run:
//! `cargo bench -p arbiter-coordinator --bench queue`.
//!
//! Workers play nothing. The lots are leased and reported on the same connections and cores as
//! everything else. More tasks than fit in a batch hand reports to the batcher, one lot each, and
//! wait for the verdict. A second figure includes counting the standings meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use arbiter_coordinator::queue::{LeasePolicy, Queue};
use arbiter_games::Games;
use arbiter_proto::ids::WorkerId;
use sqlx::PgPool;
use time::Duration;
use tokio::task::JoinSet;

use support::measure::speed;
use support::play::play;
use support::{edition, name, raw_copy, running, single_inserts};

mod support;

/// Bots of an edition.
const BOTS: i32 = 1000;
/// Matches of an edition with large lots.
const MANY: i64 = 1_000_000;
/// Matches of an edition with lots of one.
const FEW: i64 = 200_000;
/// Sessions that insert single rows at the same time.
const INSERTERS: i64 = 8;

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
        let floor = edition(&self.pool, &name(), BOTS).await;
        let copy = raw_copy(&self.pool, floor).await;
        let floor = edition(&self.pool, &name(), BOTS).await;
        let inserts = single_inserts(&self.pool, floor, INSERTERS).await;
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

    /// The speed of leasing and reporting an edition, in matches a second.
    async fn queue(&self, per_lot: i32, matches: i64, counting: bool) -> f64 {
        let edition = running(&self.pool, &name(), BOTS, matches, per_lot).await;
        let over = Arc::new(AtomicBool::new(false));
        let mut counter = JoinSet::new();
        if counting {
            let queue = self.queue.clone();
            let over = Arc::clone(&over);
            counter.spawn(async move {
                let mut done = 0;
                while done < matches || !over.load(Ordering::Relaxed) {
                    done += queue.count(edition).await.expect("they are counted");
                }
            });
        }
        let begin = Instant::now();
        play(&self.queue, self.worker, edition, matches).await;
        over.store(true, Ordering::Relaxed);
        let speed = speed(matches, begin);
        let lag = Instant::now();
        counter.join_all().await;
        if counting {
            println!("  the last results are counted {:.2} s later", lag.elapsed().as_secs_f64());
            let wrong = self.queue.verify_standings(edition).await.expect("it can be checked");
            assert!(wrong.is_empty(), "{wrong:?}");
        }
        speed
    }
}

/// A lease is valid for the whole run.
const _: () =
    assert!(LeasePolicy::DEFAULT.lease.whole_seconds() >= Duration::MINUTE.whole_seconds());
