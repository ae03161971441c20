//! The time from a submission to the leaderboard that includes it, compared with the time of the
//! matches. One of 100 bots submits a new version:
//! `cargo bench -p arbiter-coordinator --bench rerun`.
//!
//! Workers do not play matches: a slot waits as long as the matches of a lot would take, and
//! reports the lot. The coordinator does its usual work: it opens the edition when it is due,
//! dispatches lots, batches reports, counts in maintenance, and changes the official leaderboard.
//! The shortest possible time follows from the plan: the bot's matches are divided among the slots,
//! or played one after the other if bots leave files for later matches.

use std::time::{Duration, Instant};

use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::db::editions::{self, Edition};
use arbiter_coordinator::maintenance::Maintenance;
use arbiter_coordinator::queue::{
    Dispatcher, LeasePolicy, LeasedLot, Queue, Report, ReportSender, Task,
};
use arbiter_coordinator::tournament::{
    EditionOpener, IfRunning, OpenRequest, TournamentFile, lifecycle, open_edition,
};
use arbiter_games::Games;
use arbiter_proto::ids::{MatchNumber, TournamentId, WorkerId};
use arbiter_proto::level::Level;
use sqlx::PgPool;
use tokio::task::JoinSet;

use support::{NOW, result, submit};

mod support;

/// The number of bots of a tournament.
const BOTS: i32 = 100;
/// The number of slots.
const SLOTS: u32 = 16;

/// A tournament to measure.
struct Case {
    file: &'static str,
    /// The time of a match.
    match_time: Duration,
    /// The minimum number of matches that are played one after the other.
    chain: u32,
}

const CASES: [Case; 2] = [
    // 99 matches of the bot that changed.
    Case {
        file: "name = \"tricks\"\ngame = \"tricks\"\n[submissions]\nwindow = \"0s\"",
        match_time: Duration::from_millis(2500),
        chain: 99_u32.div_ceil(SLOTS),
    },
    // 198 matches, each of which waits for the match before.
    Case {
        file: "name = \"gomoku\"\ngame = \"gomoku\"\n[submissions]\nwindow = \"0s\"",
        match_time: Duration::from_millis(300),
        chain: 198,
    },
];

fn main() {
    support::run(async |_, pool| {
        let worker = support::worker(&pool).await;
        for case in &CASES {
            measure(&pool, worker, case).await;
        }
    });
}

async fn measure(pool: &PgPool, worker: WorkerId, case: &Case) {
    let queue = Queue::new(pool.clone(), Games::built_in(), LeasePolicy::DEFAULT);
    let file = TournamentFile::parse(&Games::built_in(), case.file).expect("a tournament file");
    let tournament =
        lifecycle::create(&mut pool.acquire().await.expect("a connection"), &file, NOW)
            .await
            .expect("a tournament")
            .id;
    for bot in 0..BOTS {
        submit(pool, tournament, bot, 1).await;
    }
    let first = open_edition::open(&queue, OpenRequest::new(tournament, IfRunning::Refuse), NOW)
        .await
        .expect("the edition opens");
    serve(&queue, worker, tournament, &first, Duration::ZERO).await;

    submit(pool, tournament, BOTS / 2, 2).await;
    let start = Instant::now();
    let opener = EditionOpener::new(queue.clone(), Clock::fixed(|| NOW));
    let outcomes = opener.open_all_due().await.expect("the database answers");
    assert_eq!(outcomes.len(), 1, "one edition is due");
    let opening_seconds = start.elapsed().as_secs_f64();
    let all_editions = editions::of_tournament(pool, tournament).await.expect("editions");
    serve(&queue, worker, tournament, &all_editions[0], case.match_time).await;
    let seconds = start.elapsed().as_secs_f64();
    let min_seconds = case.match_time.as_secs_f64() * f64::from(case.chain);
    println!(
        "{}: {seconds:.2} s, of which {opening_seconds:.2} s are the opening; {min_seconds:.2} s is the \
         minimum: {:.1} % more, {:.1} ms for each match in a row",
        file.name,
        100.0 * (seconds / min_seconds - 1.0),
        1000.0 * (seconds - min_seconds) / f64::from(case.chain)
    );
}

/// Runs a coordinator and its workers until this edition is the official one.
async fn serve(
    queue: &Queue,
    worker: WorkerId,
    tournament: TournamentId,
    edition: &Edition,
    match_time: Duration,
) {
    let (dispatcher, allocator) = Dispatcher::new(queue.clone());
    let (reporter, batcher) = ReportSender::new(queue.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(allocator.run(std::future::pending(), |error| panic!("{error}")));
    tasks.spawn(batcher.run(std::future::pending()));
    let maintenance = Maintenance::new(queue.clone(), Clock::fixed(|| NOW));
    let maintenance_dispatcher = dispatcher.clone();
    tasks.spawn(async move {
        maintenance.run(tokio::time::Instant::now(), |_| maintenance_dispatcher.news()).await;
    });
    for _ in 0..SLOTS {
        let dispatcher = dispatcher.clone();
        let reporter = reporter.clone();
        tasks.spawn(async move {
            while let Some(task) = dispatcher.next().await {
                let Task::Lot(work) = task else { panic!("there are no trials here") };
                tokio::time::sleep(match_time * work.lot.count.unsigned_abs()).await;
                reporter.report(report(&work.lot, worker)).await.expect("a status");
                dispatcher.news();
            }
        });
    }
    while editions::official(queue.pool(), tournament).await.expect("the database answers")
        != Some(edition.id)
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tasks.shutdown().await;
}

fn report(lot: &LeasedLot, worker: WorkerId) -> Report {
    let numbers = (lot.first_match().0..).take(usize::try_from(lot.count).expect("a small number"));
    Report {
        lease: lot.lease,
        worker,
        results: numbers
            .map(|number| {
                let mut result = result(MatchNumber(number));
                result.scores.resize(usize::try_from(lot.score_len).expect("a small number"), 0);
                result
            })
            .collect(),
        records: Vec::new(),
        level: Level::A,
        files: Vec::new(),
        at: NOW,
        evidence: Vec::new(),
    }
}
