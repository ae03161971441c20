//! Rounds of episodes follow from earlier results. All coordinators plan the same rounds.

use std::collections::BTreeSet;

use arbiter_coordinator::db::editions::Edition;
use arbiter_coordinator::db::matches::Match;
use arbiter_coordinator::db::results::SeatedResult;
use arbiter_coordinator::queue::{Queue, ReportStatus};
use arbiter_coordinator::tournament::rounds::plan_next_round;
use arbiter_games::{Score, SeatResult, blackjack};
use arbiter_proto::ids::WorkerId;

use crate::fixture::{
    kill_planner, listed_matches, listed_results, plan_size, planned_matches, start_tournament,
    tournament_file,
};
use crate::play::RandomWorkers;
use crate::support::test_clock::AtTime as _;
use crate::support::{Database, START, report};

/// A planned table: the bots in its seats, and their chips.
type Table = (Vec<usize>, Vec<i64>);

fn table(planned: &Match) -> Table {
    let bots: Vec<_> = planned.seats.0.iter().map(|bot| usize::try_from(bot.0).unwrap()).collect();
    let chips = planned.carried.clone().unwrap_or_else(|| vec![200; bots.len()]);
    (bots, chips)
}

/// The results of the seats of a match, as the rules of episodes read them.
fn seat_results(played: &SeatedResult) -> Vec<SeatResult> {
    let bad_answers = played.bad_answers.clone().unwrap_or_else(|| vec![0; played.seats.0.len()]);
    let seats = played.scores.iter().zip(bad_answers);
    let seat_result = |(chips, bad_answers): (&i64, i32)| SeatResult {
        score: Score(vec![*chips]),
        forfeit: None,
        bad_answers: bad_answers.try_into().unwrap(),
    };
    seats.map(seat_result).collect()
}

/// The rules of episodes and the results give the plan of each round. The score of a bot is the sum
/// of its chips at the end of each episode.
#[tokio::test]
async fn rounds_follow_from_the_rules_and_the_results() {
    let database = Database::new().await;
    let file = tournament_file(blackjack::game(), "[schedule]\nepisodes = 4");
    let (tournament, edition) = start_tournament(&database, &file, 11).await;
    assert_eq!((edition.matches, edition.open_ended), (4 * 3, true));
    RandomWorkers::new(&database, edition.id, "episodes").await.play().await;
    let planned = listed_matches(&database, &tournament, edition.id).await;
    let results = listed_results(&database, &tournament, edition.id).await;
    let seeds = (1..=4).map(|number| tournament.seed.derive(&format!("episode {number}")));
    let mut episodes: Vec<_> = seeds.map(|seed| file.params.episode(11, seed).unwrap()).collect();
    let mut first = 0;
    for _ in 0..5 {
        let expected_tables: Vec<_> = episodes
            .iter()
            .enumerate()
            .flat_map(|(number, episode)| {
                episode.tables().iter().map(move |table| (number, table.clone()))
            })
            .collect();
        let round = first..first + expected_tables.len();
        let planned_tables: BTreeSet<Table> = planned[round.clone()].iter().map(table).collect();
        for (number, episode_table) in expected_tables {
            let chips = episode_table.bots.iter().map(|bot| episodes[number].bots()[*bot].score);
            let expected = (episode_table.bots.clone(), chips.collect());
            assert!(planned_tables.contains(&expected), "{expected:?}");
            let index =
                planned[round.clone()].iter().position(|planned| table(planned) == expected);
            let result = &results[first + index.unwrap()];
            episodes[number].finish(episode_table.table, &seat_results(result));
        }
        first = round.end;
    }
    assert_eq!(first, planned.len());
    // Only parameters that differ from the tournament's are stored. Later rounds have other chips.
    assert!(planned[..12].iter().all(|planned| planned.params.is_none()));
    assert!(planned.iter().flat_map(|planned| &planned.params).all(|params| {
        let keys: Vec<_> = params.as_object().unwrap().keys().collect();
        keys.iter().all(|key| ["chips", "bad_answers"].contains(&key.as_str()))
    }));
    let expected_scores =
        (0..11).map(|bot| episodes.iter().map(|episode| episode.bots()[bot].score).sum::<i64>());
    let statement = "
        SELECT score[1]::bigint FROM standings JOIN entrants USING (edition, entrant)
        ORDER BY place";
    let scores: Vec<i64> = sqlx::query_scalar(statement).fetch_all(&database.pool).await.unwrap();
    assert_eq!(scores, expected_scores.collect::<Vec<_>>());
}

/// Leases and reports all lots. Each bot ends its match with this many chips.
async fn play_round(queue: &Queue, edition: &Edition, worker: WorkerId, chips: i64) {
    loop {
        let lots = queue.lease_at(edition.tournament, 64, START).await.unwrap();
        if lots.is_empty() {
            break;
        }
        let reports: Vec<_> = lots
            .iter()
            .map(|lot| {
                let mut report = report(lot, worker);
                for result in &mut report.results {
                    result.scores = vec![chips; usize::try_from(lot.score_len).unwrap()];
                    result.forfeits = Vec::new();
                }
                report
            })
            .collect();
        assert!(
            crate::support::report_all(queue, &reports)
                .await
                .iter()
                .all(|status| *status == ReportStatus::Accepted)
        );
    }
    while queue.count(edition.tournament).await.unwrap() > 0 {}
}

#[tokio::test]
async fn a_round_waits_for_all_matches_of_the_round_before() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let lines = "expected = \"1h\"\n[schedule]\nepisodes = 2";
    let (_, edition) =
        start_tournament(&database, &tournament_file(blackjack::game(), lines), 5).await;
    assert!(!plan_next_round(&queue, edition.id).await.unwrap());
    // A worker still plays one match.
    let leased = queue.lease_at(edition.tournament, 1, START).await.unwrap();
    play_round(&queue, &edition, worker, 100).await;
    assert!(!plan_next_round(&queue, edition.id).await.unwrap());
    queue.return_leases(None, &[leased[0].lease]).await.unwrap();
    play_round(&queue, &edition, worker, 100).await;
    assert!(plan_next_round(&queue, edition.id).await.unwrap());
    assert_eq!(plan_size(&database, edition.id).await, (8, true));
    assert!(!plan_next_round(&queue, edition.id).await.unwrap());
    assert!(!queue.complete(edition.id, START).await.unwrap());
}

#[tokio::test]
async fn concurrent_planners_plan_a_round_once() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let (_, edition) =
        start_tournament(&database, &tournament_file(blackjack::game(), ""), 9).await;
    for round in 2..=5 {
        play_round(&queue, &edition, worker, 300).await;
        let [a, b, c, d] = [(); 4].map(|()| plan_next_round(&queue, edition.id));
        let (a, b, c, d) = tokio::join!(a, b, c, d);
        let planners =
            [a, b, c, d].into_iter().filter(|planned| *planned.as_ref().unwrap()).count();
        assert_eq!(planners, 1);
        assert_eq!(plan_size(&database, edition.id).await, (75 * round, round < 5));
    }
    play_round(&queue, &edition, worker, 300).await;
    assert!(queue.complete(edition.id, START).await.unwrap());
}

/// If the planner crashes, all of a round is stored or nothing.
#[tokio::test]
async fn a_killed_planner_stores_all_of_a_round_or_nothing() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let lines = "[schedule]\nepisodes = 3";
    let (_, edition) =
        start_tournament(&database, &tournament_file(blackjack::game(), lines), 6).await;
    play_round(&queue, &edition, worker, 300).await;
    for table in ["matches", "lots", "progress", "editions"] {
        kill_planner(&queue, edition.id, table).await;
        assert_eq!(plan_size(&database, edition.id).await, (6, true), "{table}");
    }
    assert!(plan_next_round(&queue, edition.id).await.unwrap());
    assert_eq!(plan_size(&database, edition.id).await, (12, true));
    let numbers = "SELECT count(DISTINCT number) + max(number) FROM matches";
    assert_eq!(database.number(numbers).await, 23);
}

/// All bots lose all chips in the first round, so there is no second round.
#[tokio::test]
async fn an_edition_ends_when_no_bot_has_chips() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let (_, edition) =
        start_tournament(&database, &tournament_file(blackjack::game(), ""), 6).await;
    play_round(&queue, &edition, worker, 0).await;
    assert!(!queue.complete(edition.id, START).await.unwrap());
    assert!(plan_next_round(&queue, edition.id).await.unwrap());
    assert_eq!(plan_size(&database, edition.id).await, (50, false));
    assert!(queue.complete(edition.id, START).await.unwrap());
    // Each bot lost all its chips once in each episode.
    let broke = "SELECT min(score[2])::bigint + max(score[2])::bigint FROM standings";
    assert_eq!(database.number(broke).await, -50);
}

#[tokio::test]
async fn a_lot_has_tables_of_one_size() {
    let database = Database::new().await;
    let lines = "expected = \"1ms\"\n[schedule]\nepisodes = 100";
    let (_, edition) =
        start_tournament(&database, &tournament_file(blackjack::game(), lines), 7).await;
    let planned = planned_matches(&database, edition.id).await;
    assert!(planned[..100].iter().all(|planned| planned.seats.0.len() == 4));
    assert!(planned[100..].iter().all(|planned| planned.seats.0.len() == 3));
    let mixed_lots = "SELECT count(*) FROM lots WHERE (number < 100) <> (score_len = 4)
        OR (number < 100 AND number + count > 100)";
    assert_eq!(database.number(mixed_lots).await, 0);
    assert!(database.number("SELECT max(count)::bigint FROM lots").await > 1);
}
