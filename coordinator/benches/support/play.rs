//! Lots leased and reported as fast as it goes, by workers that play nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arbiter_coordinator::queue::{LeasedLot, Queue, Report, ReportSender, ReportStatus};
use arbiter_proto::ids::{EditionId, MatchNumber, WorkerId};
use arbiter_proto::level::Level;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::{NOW, result};

/// Tasks that report, each one lot at a time.
const REPORTERS: usize = 192;

/// Leases and reports everything.
pub(crate) async fn play(queue: &Queue, worker: WorkerId, edition: EditionId, matches: i64) {
    let (reporter, collector) = ReportSender::new(queue.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(collector.run(std::future::pending()));
    let hands = Arc::new(Hands {
        queue: queue.clone(),
        edition,
        leased: Mutex::new(Vec::new()),
        left: AtomicI64::new(matches),
    });
    for _ in 0..REPORTERS {
        let hands = Arc::clone(&hands);
        let reporter = reporter.clone();
        tasks.spawn(async move {
            while let Some(lot) = hands.next().await {
                let verdict = reporter.report(report(&lot, worker)).await.expect("a verdict");
                assert_eq!(verdict, ReportStatus::Accepted);
            }
        });
    }
    drop(reporter);
    tasks.join_all().await;
}

/// Hands out lots that were leased many at a time.
struct Hands {
    queue: Queue,
    edition: EditionId,
    leased: Mutex<Vec<LeasedLot>>,
    left: AtomicI64,
}

impl Hands {
    async fn next(&self) -> Option<LeasedLot> {
        let mut leased = self.leased.lock().await;
        if leased.is_empty() && self.left.load(Ordering::Relaxed) > 0 {
            *leased = self.queue.lease(self.edition, 1024).await.expect("lots are leased");
        }
        let lot = leased.pop()?;
        self.left.fetch_sub(lot.count.into(), Ordering::Relaxed);
        Some(lot)
    }
}

fn report(lot: &LeasedLot, worker: WorkerId) -> Report {
    let numbers = (lot.first_match.0..).take(usize::try_from(lot.count).expect("a small number"));
    Report {
        lease: lot.lease,
        worker,
        at: NOW,
        results: numbers.map(|number| result(MatchNumber(number))).collect(),
        records: Vec::new(),
        level: Level::A,
        files: Vec::new(),
        evidence: Vec::new(),
    }
}
