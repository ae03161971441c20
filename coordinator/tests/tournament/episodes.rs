//! Rounds of episodes follow from earlier results, and every coordinator plans them alike.

use std::collections::BTreeSet;

use arbiter_coordinator::db::editions;
use arbiter_coordinator::db::matches::Match;
use arbiter_coordinator::db::results::Played;
use arbiter_coordinator::queue::{Queue, ReportStatus};
use arbiter_coordinator::tournament::episodes::plan_next_round;
use arbiter_games::{Score, SeatResult, blackjack};
use arbiter_proto::ids::{EditionId, WorkerId};

use crate::fixture::{file, matches, running};
use crate::play::{Troupe, all};
use crate::support::test_clock::AtTime as _;
use crate::support::{Database, START, poll_at_most, report};

/// A table as it is planned: who sits there, and what they bring.
type Seated = (Vec<usize>, Vec<i64>);

fn seated(planned: &Match) -> Seated {
    let bots: Vec<_> = planned.seats.0.iter().map(|bot| usize::try_from(bot.0).unwrap()).collect();
    let chips = planned.carried.clone().unwrap_or_else(|| vec![200; bots.len()]);
    (bots, chips)
}

fn standings(played: &Played) -> Vec<SeatResult> {
    let bad = played.bad_answers.clone().unwrap_or_else(|| vec![0; played.seats.0.len()]);
    let seats = played.scores.iter().zip(bad);
    let standing = |(chips, bad): (&i64, i32)| SeatResult {
        score: Score(vec![*chips]),
        forfeit: None,
        bad_answers: bad.try_into().unwrap(),
    };
    seats.map(standing).collect()
}

/// The rules of episodes, applied to the results, give the plan that was played; and what is ranked
/// are the chips that each episode ends with.
#[tokio::test]
async fn rounds_follow_from_the_rules_and_the_results() {
    let database = Database::new().await;
    let file = file(blackjack::game(), "[schedule]\nepisodes = 4");
    let (tournament, edition) = running(&database, &file, 11).await;
    assert_eq!((edition.matches, edition.open_ended), (4 * 3, true));
    Troupe::new(&database, edition.id, "episodes").await.play().await;
    let planned = matches(&database, edition.id).await;
    let played = all(&database, edition.id).await;
    let keys = (1..=4).map(|number| tournament.seed.derive(&format!("episode {number}")));
    let mut episodes: Vec<_> = keys.map(|seed| file.params.episode(11, seed).unwrap()).collect();
    let mut first = 0;
    for _ in 0..5 {
        let due: Vec<_> = episodes
            .iter()
            .enumerate()
            .flat_map(|(number, episode)| {
                episode.tables().iter().map(move |table| (number, table.clone()))
            })
            .collect();
        let round = first..first + due.len();
        let found: BTreeSet<Seated> = planned[round.clone()].iter().map(seated).collect();
        for (number, table) in due {
            let chips = table.bots.iter().map(|bot| episodes[number].bots()[*bot].score);
            let seated = (table.bots.clone(), chips.collect());
            assert!(found.contains(&seated), "{seated:?}");
            let place =
                planned[round.clone()].iter().position(|planned| self::seated(planned) == seated);
            let result = &played[first + place.unwrap()];
            episodes[number].finish(table.table, &standings(result));
        }
        first = round.end;
    }
    assert_eq!(first, planned.len());
    // Only parameters that differ are stored: none in the first round, chips in others.
    assert!(planned[..12].iter().all(|planned| planned.params.is_none()));
    assert!(planned.iter().flat_map(|planned| &planned.params).all(|params| {
        let keys: Vec<_> = params.as_object().unwrap().keys().collect();
        keys.iter().all(|key| ["chips", "bad_answers"].contains(&key.as_str()))
    }));
    let sums =
        (0..11).map(|bot| episodes.iter().map(|episode| episode.bots()[bot].score).sum::<i64>());
    let statement = "SELECT score[1]::bigint FROM standings ORDER BY entrant";
    let ranked: Vec<i64> = sqlx::query_scalar(statement).fetch_all(&database.pool).await.unwrap();
    assert_eq!(ranked, sums.collect::<Vec<_>>());
}

/// Reports all lots that may be leased, everybody ending with so many chips.
async fn play_round(queue: &Queue, edition: EditionId, worker: WorkerId, chips: i64) {
    loop {
        let lots = queue.lease_at(edition, 64, START).await.unwrap();
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
                .all(|fate| *fate == ReportStatus::Accepted)
        );
    }
    while queue.count(edition).await.unwrap() > 0 {}
}

async fn planned(database: &Database, edition: EditionId) -> (i64, bool) {
    let edition = editions::get(&database.pool, edition).await.unwrap().unwrap();
    (edition.matches, edition.open_ended)
}

#[tokio::test]
async fn a_round_waits_for_all_matches_of_the_round_before() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let lines = "expected = \"1h\"\n[schedule]\nepisodes = 2";
    let (_, edition) = running(&database, &file(blackjack::game(), lines), 5).await;
    assert!(!plan_next_round(&queue, edition.id).await.unwrap());
    // One match is still being played.
    let held = queue.lease_at(edition.id, 1, START).await.unwrap();
    play_round(&queue, edition.id, worker, 100).await;
    assert!(!plan_next_round(&queue, edition.id).await.unwrap());
    queue.return_leases(None, &[held[0].lease]).await.unwrap();
    play_round(&queue, edition.id, worker, 100).await;
    assert!(plan_next_round(&queue, edition.id).await.unwrap());
    assert_eq!(planned(&database, edition.id).await, (8, true));
    assert!(!plan_next_round(&queue, edition.id).await.unwrap());
    assert!(!queue.complete(edition.id, START).await.unwrap());
}

#[tokio::test]
async fn concurrent_planners_plan_a_round_once() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let (_, edition) = running(&database, &file(blackjack::game(), ""), 9).await;
    for round in 2..=5 {
        play_round(&queue, edition.id, worker, 300).await;
        let tries = [(); 4].map(|()| plan_next_round(&queue, edition.id));
        let [a, b, c, d] = tries;
        let (a, b, c, d) = tokio::join!(a, b, c, d);
        let grown = [a, b, c, d].into_iter().filter(|grown| *grown.as_ref().unwrap()).count();
        assert_eq!(grown, 1);
        assert_eq!(planned(&database, edition.id).await, (75 * round, round < 5));
    }
    play_round(&queue, edition.id, worker, 300).await;
    assert!(queue.complete(edition.id, START).await.unwrap());
}

/// After a crash of the planner a round is stored as a whole or not at all.
#[tokio::test]
async fn a_killed_planner_stores_all_of_a_round_or_nothing() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let lines = "[schedule]\nepisodes = 3";
    let (_, edition) = running(&database, &file(blackjack::game(), lines), 6).await;
    play_round(&queue, edition.id, worker, 300).await;
    let mut patience = 0;
    loop {
        let ended = poll_at_most(patience, plan_next_round(&queue, edition.id));
        if let Some(grown) = ended.await {
            // It is there already if only the answer to the commit was not awaited.
            let grown = grown.unwrap();
            assert!(grown || patience > 0);
            break;
        }
        let (matches, _) = planned(&database, edition.id).await;
        assert!([6, 12].contains(&matches), "{matches}");
        patience += 1;
    }
    assert!(patience > 3, "it was killed {patience} times");
    assert_eq!(planned(&database, edition.id).await, (12, true));
    let numbers = "SELECT count(DISTINCT number) + max(number) FROM matches";
    assert_eq!(database.number(numbers).await, 23);
}

/// All bots are broke after the first round, so there is no second one.
#[tokio::test]
async fn an_edition_ends_when_all_bots_are_broke() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let (_, edition) = running(&database, &file(blackjack::game(), ""), 6).await;
    play_round(&queue, edition.id, worker, 0).await;
    assert!(!queue.complete(edition.id, START).await.unwrap());
    assert!(plan_next_round(&queue, edition.id).await.unwrap());
    assert_eq!(planned(&database, edition.id).await, (50, false));
    assert!(queue.complete(edition.id, START).await.unwrap());
    // All of them were broke once in each episode.
    let broke = "SELECT min(score[2])::bigint + max(score[2])::bigint FROM standings";
    assert_eq!(database.number(broke).await, -50);
}

/// Tables of different sizes are never in one lot.
#[tokio::test]
async fn lots_have_tables_of_one_size() {
    let database = Database::new().await;
    let lines = "expected = \"1ms\"\n[schedule]\nepisodes = 100";
    let (_, edition) = running(&database, &file(blackjack::game(), lines), 7).await;
    let planned = matches(&database, edition.id).await;
    assert!(planned[..100].iter().all(|planned| planned.seats.0.len() == 4));
    assert!(planned[100..].iter().all(|planned| planned.seats.0.len() == 3));
    let widths = "SELECT count(*) FROM lots WHERE (first_match < 100) <> (score_len = 4)
        OR (first_match < 100 AND first_match + count > 100)";
    assert_eq!(database.number(widths).await, 0);
    assert!(database.number("SELECT max(count)::bigint FROM lots").await > 1);
}
