//! Rounds follow from earlier results: of knockouts, Swiss tournaments, gauntlets, ladders and
//! stages. The leaderboard of a knockout follows from the round reached.

use std::collections::BTreeMap;

use arbiter_coordinator::db::editions::{self, Edition};
use arbiter_coordinator::db::plan_ranks;
use arbiter_coordinator::leaderboard_cache::LeaderboardCache;
use arbiter_coordinator::match_invalidation;
use arbiter_coordinator::queue::{Queue, ReportStatus};
use arbiter_coordinator::tournament::rounds::{plan_next_round, rank_differences, stored_plan};
use arbiter_coordinator::tournament::{IfRunning, OpenRequest, open_edition};
use arbiter_games::{Games, Score, gomoku, wojna};
use arbiter_proto::ids::{EditionId, MatchNumber, WorkerId};
use arbiter_ranking::Entrant;
use arbiter_schedule::{Bot, NameKey, RoundPlan};

use crate::fixture::{
    self, kill_planner, listed_matches, listed_results, plan_size, planned_matches,
    start_tournament, tournament_file,
};
use crate::play::RandomWorkers;
use crate::support::test_clock::AtTime as _;
use crate::support::{Database, START, report, report_all, wait_until};

/// A Swiss tournament, a round robin of its best bots, and a final.
const STAGES: &str = "[[stage]]\nkind = \"swiss\"\nrounds = 3\nadvance = 4\n\
    [[stage]]\nkind = \"round_robin\"\nsides = \"both\"\nadvance = 2\n\
    [[stage]]\nkind = \"knockout\"\nbest_of = 4";

const FINALS: &str = "[schedule]\nkind = \"knockout\"\nbest_of = 2";

/// Reports and counts all lots that can be leased. In each match the bot that entered first wins,
/// or all draw.
async fn play_round(queue: &Queue, edition: &Edition, worker: WorkerId, draws: bool) {
    report_round(queue, edition, worker, draws).await;
    while queue.count(edition.tournament).await.unwrap() > 0 {}
}

/// Like [`play_round`], without counting.
async fn report_round(queue: &Queue, edition: &Edition, worker: WorkerId, draws: bool) {
    loop {
        let lots = queue.lease_at(edition.tournament, 64, START).await.unwrap();
        if lots.is_empty() {
            break;
        }
        for lot in lots {
            let mut reported = report(&lot, worker);
            for result in &mut reported.results {
                let statement = "SELECT seats[1] < seats[2] FROM matches WHERE number = $1";
                let query = sqlx::query_scalar(statement).bind(result.number.0);
                let is_first: bool = query.fetch_one(queue.pool()).await.unwrap();
                let wins = if is_first { vec![2, 0] } else { vec![0, 2] };
                result.scores = if draws { vec![1, 1] } else { wins };
                result.forfeits = Vec::new();
            }
            assert_eq!(report_all(queue, &[reported]).await, [ReportStatus::Accepted]);
        }
    }
}

/// The leaderboard of an edition: the rank of each entrant, whether it is shared.
async fn leaderboard(
    cache: &LeaderboardCache,
    edition: EditionId,
    database: &Database,
) -> BTreeMap<i32, (usize, bool)> {
    let edition = editions::get(&database.pool, edition).await.unwrap().unwrap();
    let board = cache.get(&edition).await.unwrap();
    let place = |place: &arbiter_ranking::RankedContestant| {
        (place.contestant.entrant.0, (place.rank.unwrap(), place.tied))
    };
    board.places.iter().map(place).collect()
}

/// The schedule and the results give the plan of each round, and the ranks.
#[tokio::test]
async fn every_round_follows_from_the_seed_and_the_results() {
    let swiss = "[schedule]\nkind = \"swiss\"\nrounds = 4";
    let double = "[schedule]\nkind = \"swiss\"\ngames = 2\nseeding = \"entry\"";
    let gauntlet = "[schedule]\nkind = \"gauntlet\"\npanel = [\"bot-1\", \"bot-2\"]";
    let ladder = "[schedule]\nkind = \"ladder\"\nrounds = 3";
    for (lines, first_round) in [
        (FINALS, 2 * 3),
        (swiss, 5),
        (double, 2 * 5),
        (gauntlet, 2 * 18),
        (ladder, 2 * 5),
        (STAGES, 5),
    ] {
        check_rounds(lines, first_round).await;
    }
}

/// Plays a tournament of 11 bots, and plans its rounds again from the stored results.
async fn check_rounds(lines: &str, first_round: i64) {
    let database = Database::new().await;
    let file = tournament_file(gomoku::game(), lines);
    let (tournament, edition) = start_tournament(&database, &file, 11).await;
    assert_eq!((edition.matches, edition.open_ended), (first_round, true), "{lines}");
    RandomWorkers::new(&database, edition.id, "knockout").await.play().await;
    let planned = listed_matches(&database, &tournament, edition.id).await;
    let results = listed_results(&database, &tournament, edition.id).await;
    // Bots of tests are named after their numbers.
    let names =
        sqlx::query_scalar("SELECT name FROM bots JOIN entrants ON bot = id ORDER BY place");
    let names: Vec<String> = names.fetch_all(&database.pool).await.unwrap();
    let names: Vec<_> = names.iter().map(|name| NameKey::of(tournament.seed, name)).collect();
    let mut plan = file.schedule.rounds(&names, tournament.seed).unwrap().unwrap();
    let mut first = 0;
    while !plan.is_over() {
        let round = plan.matches();
        let stored = &planned[first..first + round.len()];
        let seats = |seats: &[Entrant]| -> Vec<Bot> {
            seats.iter().map(|bot| bot.0.try_into().unwrap()).collect()
        };
        for (expected, stored) in round.iter().zip(stored) {
            assert_eq!(expected.seats(), seats(&stored.seats.0));
        }
        let scores = |scores: &Vec<i64>| -> Vec<Score> {
            scores.chunks(scores.len() / 2).map(|score| Score(score.to_vec())).collect()
        };
        let played = &results[first..first + round.len()];
        let played: Vec<_> = played.iter().map(|played| scores(&played.scores)).collect();
        plan.finish(&played).unwrap();
        first += round.len();
    }
    assert_eq!(first, planned.len());
    let stored = plan_ranks::of_edition(&database.pool, edition.id).await.unwrap();
    assert_eq!(stored.into_values().collect::<Vec<_>>(), plan.ranks());
    let differences = rank_differences(&database.queue(), edition.id).await.unwrap();
    assert_eq!(differences, [""; 0]);
}

/// The ranks change when a round is over, and the cached leaderboard follows.
#[tokio::test]
async fn the_leaderboard_shows_the_round_reached() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let file = tournament_file(gomoku::game(), &format!("{FINALS}\nseeding = \"entry\""));
    let (_, edition) = start_tournament(&database, &file, 6).await;
    let cache = LeaderboardCache::new(database.pool.clone(), Games::built_in());
    let ranks = async || -> Vec<_> {
        leaderboard(&cache, edition.id, &database).await.into_values().collect()
    };
    assert_eq!(ranks().await, [(1, true); 6]);
    let mut expected = [(1, true); 6];
    for losers in [vec![(4, 5), (5, 5)], vec![(2, 3), (3, 3)]] {
        play_round(&queue, &edition, worker, false).await;
        assert!(!queue.complete(edition.id, START).await.unwrap());
        assert!(plan_next_round(&queue, edition.id).await.unwrap());
        for (bot, rank) in losers {
            expected[bot] = (rank, true);
        }
        let stored = plan_ranks::of_edition(&database.pool, edition.id).await.unwrap();
        let stored: Vec<_> = stored.into_values().collect();
        let expected = expected.map(|(rank, _)| u32::try_from(rank).unwrap());
        assert_eq!(stored, expected);
        assert_eq!(rank_differences(&queue, edition.id).await.unwrap(), [""; 0]);
    }
    play_round(&queue, &edition, worker, false).await;
    // The final is counted, and the winner follows in the next step. The edition is not complete
    // before, so its official leaderboard always has a winner.
    assert!(!queue.complete(edition.id, START).await.unwrap());
    assert!(plan_next_round(&queue, edition.id).await.unwrap());
    assert!(queue.complete(edition.id, START).await.unwrap());
    let expected = [(1, false), (2, false), (3, true), (3, true), (5, true), (5, true)];
    assert_eq!(ranks().await, expected);
    assert_eq!(plan_size(&database, edition.id).await, (2 * 5, false));
    // A tampered rank is found.
    let statement = "UPDATE plan_ranks SET rank = 2 WHERE rank = 1";
    sqlx::query(statement).execute(&database.pool).await.unwrap();
    let differences = rank_differences(&queue, edition.id).await.unwrap();
    let expected = "entrant 1: its stored rank is 2, the results give 1";
    assert_eq!(differences, [expected]);
}

/// Tied meetings get extra games, then the number in the bracket decides.
#[tokio::test]
async fn tied_meetings_get_extra_games() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let file = tournament_file(gomoku::game(), &format!("{FINALS}\nseeding = \"entry\""));
    let (_, edition) = start_tournament(&database, &file, 3).await;
    for (draws, planned) in [(true, 4), (true, 6), (false, 6)] {
        play_round(&queue, &edition, worker, draws).await;
        assert!(plan_next_round(&queue, edition.id).await.unwrap());
        let is_open_ended = draws;
        assert_eq!(plan_size(&database, edition.id).await, (planned, is_open_ended));
    }
    assert!(queue.complete(edition.id, START).await.unwrap());
    let keys = "SELECT count(DISTINCT (seed_key, seats)) FROM matches";
    assert_eq!(database.number(keys).await, 6, "extra games have other seeds");
}

#[tokio::test]
async fn concurrent_planners_plan_a_round_once() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let (_, edition) =
        start_tournament(&database, &tournament_file(gomoku::game(), FINALS), 8).await;
    for expected in [(12, true), (14, true), (14, false)] {
        play_round(&queue, &edition, worker, false).await;
        let [a, b, c, d] = [(); 4].map(|()| plan_next_round(&queue, edition.id));
        let (a, b, c, d) = tokio::join!(a, b, c, d);
        let planners =
            [a, b, c, d].into_iter().filter(|planned| *planned.as_ref().unwrap()).count();
        assert_eq!(planners, 1);
        assert_eq!(plan_size(&database, edition.id).await, expected);
    }
}

/// While an edition is planned, the edition before it goes on, and may get another round.
#[tokio::test]
async fn a_round_that_is_added_while_an_edition_opens_keeps_its_numbers() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let (tournament, first) =
        start_tournament(&database, &tournament_file(gomoku::game(), FINALS), 8).await;
    play_round(&queue, &first, worker, false).await;
    // The opening waits until its bots can be stored. Then its row of the edition exists.
    let mut blocker = database.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE entrants IN SHARE MODE").execute(&mut *blocker).await.unwrap();
    let opening = tokio::spawn({
        let queue = queue.clone();
        let request = OpenRequest::new(tournament.id, IfRunning::Replace);
        async move { open_edition::open(&queue, request, START).await }
    });
    wait_until("the edition is being opened", async || database.has_waiting_session().await).await;
    assert!(plan_next_round(&queue, first.id).await.unwrap());
    assert_eq!(plan_size(&database, first.id).await, (12, true));
    blocker.rollback().await.unwrap();
    let opened = opening.await.unwrap().unwrap();
    // It has the first round of the edition before, with its results.
    assert_eq!((opened.matches, opened.counted), (8, 8));
    assert_eq!((opened.first_match, opened.end_match), (12, 12));
    RandomWorkers::new(&database, opened.id, "after").await.play().await;
    assert_eq!(rank_differences(&queue, opened.id).await.unwrap(), [""; 0]);
}

/// If the planner crashes, a round and its ranks are stored, or nothing.
#[tokio::test]
async fn a_killed_planner_stores_all_of_a_round_or_nothing() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let (_, edition) =
        start_tournament(&database, &tournament_file(gomoku::game(), FINALS), 8).await;
    play_round(&queue, &edition, worker, false).await;
    let ones = "SELECT count(*) FROM plan_ranks WHERE rank = 1";
    for table in ["plan_ranks", "matches", "lots", "progress", "editions"] {
        kill_planner(&queue, edition.id, table).await;
        assert_eq!(plan_size(&database, edition.id).await, (8, true), "{table}");
        assert_eq!(database.number(ones).await, 8, "{table}");
    }
    assert!(plan_next_round(&queue, edition.id).await.unwrap());
    assert_eq!(plan_size(&database, edition.id).await, (12, true));
    assert_eq!(database.number(ones).await, 4);
}

/// A round waits for a match that an organiser has to decide about.
#[tokio::test]
async fn a_match_that_is_set_aside_delays_the_next_round() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let (_, edition) =
        start_tournament(&database, &tournament_file(gomoku::game(), FINALS), 4).await;
    let aside = "UPDATE lots SET state = 'aside' WHERE number = (SELECT min(number) FROM lots)";
    sqlx::query(aside).execute(&database.pool).await.unwrap();
    play_round(&queue, &edition, worker, false).await;
    assert!(!plan_next_round(&queue, edition.id).await.unwrap());
    let retry = "UPDATE lots SET state = 'pending' WHERE state = 'aside'";
    sqlx::query(retry).execute(&database.pool).await.unwrap();
    play_round(&queue, &edition, worker, false).await;
    assert!(plan_next_round(&queue, edition.id).await.unwrap());
}

/// Otherwise the bracket would show a round that the leaderboard and the schedule do not have yet.
#[tokio::test]
async fn a_bracket_follows_from_counted_results_alone() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let (_, edition) =
        start_tournament(&database, &tournament_file(gomoku::game(), FINALS), 4).await;
    let rounds = async || {
        let mut db = database.pool.acquire().await.unwrap();
        let edition = editions::get(&mut *db, edition.id).await.unwrap().unwrap();
        match stored_plan(&mut db, queue.games(), &edition).await.unwrap() {
            Some(RoundPlan::Knockout(bracket)) => bracket.rounds().len(),
            other => panic!("{other:?}"),
        }
    };
    report_round(&queue, &edition, worker, false).await;
    assert_eq!(rounds().await, 1);
    while queue.count(edition.tournament).await.unwrap() > 0 {}
    assert!(plan_next_round(&queue, edition.id).await.unwrap());
    assert_eq!(rounds().await, 2);
}

/// A void match reopens its round, so the plan decides no rank from this round on.
#[tokio::test]
async fn without_void_matches_a_round_is_open_again() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let file = tournament_file(gomoku::game(), &format!("{FINALS}\nseeding = \"entry\""));
    let (_, edition) = start_tournament(&database, &file, 4).await;
    for _ in 0..2 {
        play_round(&queue, &edition, worker, false).await;
        assert!(plan_next_round(&queue, edition.id).await.unwrap());
    }
    assert!(queue.complete(edition.id, START).await.unwrap());
    let scope = editions::scope(&database.pool, edition.id).await.unwrap();
    let games = Games::built_in();
    for (void, expected) in [(None, [1, 2, 3, 3]), (Some(5), [1, 1, 3, 3]), (Some(0), [1; 4])] {
        let void: Vec<_> = void.map(MatchNumber).into_iter().collect();
        let preview = match_invalidation::preview(&database.pool, &games, scope, &void).await;
        let preview = preview.unwrap();
        let now: Vec<_> = preview.places.iter().map(|place| place.now.0).collect();
        let without: Vec<_> = preview.places.iter().map(|place| place.without.0).collect();
        assert_eq!((now, without), ([1, 2, 3, 3].map(Some).to_vec(), expected.map(Some).to_vec()));
        assert_eq!(preview.note.is_some(), !void.is_empty());
    }
}

/// Only the matches of a changed bot are played, and those of bots that meet for the first time.
#[tokio::test]
async fn an_edition_reuses_the_matches_of_unchanged_versions() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let lines = format!("params.seats = 2\n{FINALS}\nseeding = \"entry\"");
    let file = tournament_file(wojna::game(), &lines);
    let (tournament, first) = start_tournament(&database, &file, 8).await;
    let finish = async |edition: &Edition| {
        loop {
            play_round(&queue, edition, worker, false).await;
            while plan_next_round(&queue, edition.id).await.unwrap() {}
            if queue.complete(edition.id, START).await.unwrap() {
                return;
            }
        }
    };
    finish(&first).await;
    assert_eq!(plan_size(&database, first.id).await, (14, false));
    let results = "SELECT count(*) FROM results";
    assert_eq!(database.number(results).await, 14);
    // The two matches of a pair have the same deals.
    let keys = "SELECT count(DISTINCT seed_key) FROM matches";
    assert_eq!(database.number(keys).await, 7);
    let second = fixture::open_edition(&queue, &tournament).await.unwrap();
    finish(&second).await;
    assert_eq!(database.number(results).await, 14, "nothing is played again");
    let numbers = |planned: Vec<arbiter_coordinator::db::matches::Match>| -> Vec<_> {
        planned.into_iter().map(|planned| planned.number).collect()
    };
    let first_matches = numbers(planned_matches(&database, first.id).await);
    assert_eq!(numbers(planned_matches(&database, second.id).await), first_matches);
}
