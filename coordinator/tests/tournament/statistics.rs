//! Statistics of editions that are being played: which results they are from, and means per
//! episode.

use arbiter_coordinator::access::{self, Role};
use arbiter_coordinator::db;
use arbiter_coordinator::db::editions::{self, Edition};
use arbiter_coordinator::leaderboard_cache::LeaderboardCache;
use arbiter_coordinator::match_invalidation;
use arbiter_coordinator::queue::{LeasedLot, Queue};
use arbiter_coordinator::service::CountedResults;
use arbiter_coordinator::tournament::{IfRunning, OpenRequest, open_edition};
use arbiter_games::{Games, Seed, blackjack, gomoku};
use arbiter_proto::ids::{EditionId, MatchNumber, TournamentId};
use arbiter_ranking::Entrant;

use crate::fixture::{start_tournament, tournament_file};
use crate::support::test_clock::AtTime as _;
use crate::support::{Database, START, report, report_all};

/// The entrants of an edition, in ascending order.
async fn entrants(database: &Database, edition: EditionId) -> Vec<Entrant> {
    let rows = editions::entrants(&database.pool, edition).await.unwrap();
    let mut entrants: Vec<_> = rows.into_iter().map(|row| row.entrant).collect();
    entrants.sort_unstable();
    entrants
}

/// Results with those that were counted since.
async fn updated(results: CountedResults, database: &Database) -> CountedResults {
    let mut snapshot = db::snapshot(&database.pool).await.unwrap();
    let edition = editions::get(&mut *snapshot, results.edition()).await.unwrap().unwrap();
    results.updated(&mut snapshot, &edition).await.unwrap()
}

/// All counted results of an edition.
async fn read_all(database: &Database, edition: EditionId) -> CountedResults {
    updated(CountedResults::new(edition, false), database).await
}

/// Expects that results give exactly the statistics that follow from a new reading.
async fn expect_statistics_of_all(database: &Database, results: &mut CountedResults) {
    let edition = results.edition();
    let entrants = entrants(database, edition).await;
    let seed = Seed::of_text("statistics");
    let mut all = read_all(database, edition).await;
    assert_eq!((results.counted(), results.can_grow()), (all.counted(), all.can_grow()));
    let [kept, new] =
        [results, &mut all].map(|results| results.statistics(&entrants, |_| true, seed));
    assert_eq!(kept.ratings, new.ratings);
    let numbers = [&kept, &new].map(|all| {
        let all = &all.statistics;
        (all.basis, all.matches, all.distinct_matches, all.blocks)
    });
    assert_eq!(numbers[0], numbers[1]);
    let [kept, new] = [kept.statistics, new.statistics];
    assert_eq!(kept.entrants, new.entrants);
    for (first, second) in entrants.iter().zip(&entrants[1..]) {
        assert_eq!(kept.pair(*first, *second), new.pair(*first, *second));
    }
}

/// Reports lots and counts nothing.
async fn report_lots(database: &Database, queue: &Queue, lots: &[LeasedLot]) {
    let worker = database.worker("w").await;
    let reports: Vec<_> = lots.iter().map(|lot| report(lot, worker)).collect();
    report_all(queue, &reports).await;
}

async fn count_all(queue: &Queue, tournament: TournamentId) {
    while queue.count(tournament).await.unwrap() > 0 {}
}

/// Plays all matches of the queue.
async fn play_rest(database: &Database, queue: &Queue, tournament: TournamentId) {
    loop {
        let lots = queue.lease_at(tournament, 64, START).await.unwrap();
        if lots.is_empty() {
            return count_all(queue, tournament).await;
        }
        report_lots(database, queue, &lots).await;
    }
}

async fn declare_void(database: &Database, tournament: TournamentId, number: MatchNumber) {
    let token = access::create(&database.pool, Role::Organiser, "o", START).await.unwrap().0;
    let mut db = database.pool.begin().await.unwrap();
    let voided =
        match_invalidation::apply(&mut db, tournament, &[number], token, "its clock", START).await;
    assert_eq!(voided.unwrap(), 1);
    db.commit().await.unwrap();
}

/// A running tournament with a match in each lot. No match waits for another one.
async fn gomoku_cup(database: &Database) -> Edition {
    let lines = "state = \"none\"\nexpected = \"1h\"\n[schedule]\nlegs = 8";
    start_tournament(database, &tournament_file(gomoku::game(), lines), 5).await.1
}

#[tokio::test]
async fn results_that_were_counted_since_give_the_same_statistics_as_all_results() {
    let database = Database::new().await;
    let queue = database.queue();
    let edition = gomoku_cup(&database).await;
    let cup = edition.tournament;
    let lots = queue.lease_at(cup, 64, START).await.unwrap();
    assert!(lots.len() > 12 && lots.iter().all(|lot| lot.count == 1));
    let mut results = read_all(&database, edition.id).await;
    for part in 0..3 {
        // With gaps between them.
        let part_lots: Vec<_> = lots.iter().skip(part).step_by(3).copied().collect();
        report_lots(&database, &queue, &part_lots).await;
        results = updated(results, &database).await;
        assert_eq!(results.newly_read(), 0, "results that are not counted are left out");
        count_all(&queue, cup).await;
        results = updated(results, &database).await;
        assert_eq!(results.newly_read(), part_lots.len(), "only new results are read");
        expect_statistics_of_all(&database, &mut results).await;
        if part == 0 {
            // It stays counted in this edition.
            declare_void(&database, cup, lots[0].first_match()).await;
        }
    }
    play_rest(&database, &queue, cup).await;
    results = updated(results, &database).await;
    assert!(!results.can_grow());
    expect_statistics_of_all(&database, &mut results).await;
}

/// The next edition has another match in place of a void one, and the other results at once.
#[tokio::test]
async fn the_edition_after_a_void_match_has_its_own_results() {
    let database = Database::new().await;
    let queue = database.queue();
    let first = gomoku_cup(&database).await;
    let cup = first.tournament;
    let lots = queue.lease_at(cup, 8, START).await.unwrap();
    report_lots(&database, &queue, &lots).await;
    count_all(&queue, cup).await;
    let of_first = read_all(&database, first.id).await;
    declare_void(&database, cup, lots[0].first_match()).await;
    let request = OpenRequest::new(cup, IfRunning::Replace);
    let second = open_edition::open(&queue, request, START).await.unwrap();
    let mut results = read_all(&database, second.id).await;
    assert_eq!((of_first.newly_read(), results.newly_read()), (8, 7));
    play_rest(&database, &queue, cup).await;
    results = updated(results, &database).await;
    assert_eq!(i64::try_from(results.newly_read()).unwrap(), second.matches - 7);
    expect_statistics_of_all(&database, &mut results).await;
    // The first edition was cancelled. It has the results that were played for the second one too.
    let mut of_first = updated(of_first, &database).await;
    assert!(!of_first.can_grow());
    expect_statistics_of_all(&database, &mut of_first).await;
}

#[tokio::test]
async fn everything_is_read_again_if_results_do_not_fit_their_count() {
    let database = Database::new().await;
    let queue = database.queue();
    let edition = gomoku_cup(&database).await;
    let cup = edition.tournament;
    let lots = queue.lease_at(cup, 8, START).await.unwrap();
    report_lots(&database, &queue, &lots).await;
    count_all(&queue, cup).await;
    let mut results = read_all(&database, edition.id).await;
    let statement = "
        WITH lost AS (DELETE FROM results WHERE number = $1 RETURNING number)
        UPDATE progress SET counted = counted - (SELECT count(*) FROM lost)";
    let lost = lots[3].first_match();
    sqlx::query(statement).bind(lost).execute(&database.pool).await.unwrap();
    results = updated(results, &database).await;
    assert_eq!(results.newly_read(), 7);
    expect_statistics_of_all(&database, &mut results).await;
}

/// While the first round is played, bots have played some of the episodes.
#[tokio::test]
async fn the_mean_of_an_episode_is_over_the_episodes_that_a_bot_has_played() {
    let database = Database::new().await;
    let queue = database.queue();
    let lines = "expected = \"1h\"\n[schedule]\nepisodes = 4";
    let file = tournament_file(blackjack::game(), lines);
    let (_, edition) = start_tournament(&database, &file, 11).await;
    let worker = database.worker("w").await;
    let lots = queue.lease_at(edition.tournament, 64, START).await.unwrap();
    assert_eq!(lots.len(), 12);
    for (part, lots) in [&lots[..5], &lots[5..]].into_iter().enumerate() {
        for lot in lots {
            let mut report = report(lot, worker);
            for result in &mut report.results {
                result.scores = vec![250; usize::try_from(lot.score_len).unwrap()];
                result.forfeits = Vec::new();
            }
            report_all(&queue, &[report]).await;
        }
        count_all(&queue, edition.tournament).await;
        let edition = editions::get(&database.pool, edition.id).await.unwrap().unwrap();
        let boards = LeaderboardCache::new(database.pool.clone(), Games::built_in());
        let board = boards.get(&edition).await.unwrap();
        let results = CountedResults::new(edition.id, true);
        let mut results = updated(results, &database).await;
        let entrants = entrants(&database, edition.id).await;
        let statistics = results.statistics(&entrants, |_| true, Seed::of_text("s")).statistics;
        let matches: Vec<_> = statistics.entrants.iter().map(|known| known.matches).collect();
        assert_eq!(matches.iter().all(|matches| *matches == 4), part == 1, "{matches:?}");
        for known in &statistics.entrants {
            let tally = &board.place(known.entrant).unwrap().contestant.tally;
            let expected = if known.matches > 0 { 250.0 } else { 0.0 };
            assert_eq!((board.mean(tally), known.mean), (expected, expected), "{tally:?}");
        }
    }
}
