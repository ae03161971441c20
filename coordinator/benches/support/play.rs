//! Leases and reports lots at full speed without playing the matches.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arbiter_coordinator::queue::{LeasedLot, Queue, Report, ReportSender, ReportStatus};
use arbiter_proto::ids::{MatchNumber, TournamentId, WorkerId};
use arbiter_proto::level::Level;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::{NOW, result};

/// The number of tasks that report. Each reports one lot at a time.
const REPORTERS: usize = 192;

/// Leases and reports all lots of a tournament.
pub(crate) async fn play(queue: &Queue, worker: WorkerId, tournament: TournamentId, matches: i64) {
    let (reporter, batcher) = ReportSender::new(queue.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(batcher.run(std::future::pending()));
    let source = Arc::new(LotSource {
        queue: queue.clone(),
        tournament,
        leased: Mutex::new(Vec::new()),
        matches_left: AtomicI64::new(matches),
    });
    for _ in 0..REPORTERS {
        let source = Arc::clone(&source);
        let reporter = reporter.clone();
        tasks.spawn(async move {
            while let Some(lot) = source.next().await {
                let status = reporter.report(report(&lot, worker)).await.expect("a status");
                assert_eq!(status, ReportStatus::Accepted);
            }
        });
    }
    drop(reporter);
    tasks.join_all().await;
}

/// Returns single lots, which it leases many at a time.
struct LotSource {
    queue: Queue,
    tournament: TournamentId,
    leased: Mutex<Vec<LeasedLot>>,
    matches_left: AtomicI64,
}

impl LotSource {
    async fn next(&self) -> Option<LeasedLot> {
        let mut leased = self.leased.lock().await;
        if leased.is_empty() && self.matches_left.load(Ordering::Relaxed) > 0 {
            *leased = self.queue.lease(self.tournament, 1024).await.expect("lots are leased");
        }
        let lot = leased.pop()?;
        self.matches_left.fetch_sub(lot.count.into(), Ordering::Relaxed);
        Some(lot)
    }
}

fn report(lot: &LeasedLot, worker: WorkerId) -> Report {
    let numbers = (lot.first_match().0..).take(usize::try_from(lot.count).expect("a small number"));
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
