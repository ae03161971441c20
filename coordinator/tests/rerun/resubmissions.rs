//! After a bot submits a new version, only the matches of this bot are played.

use arbiter_coordinator::db::{bots, editions, matches, standings};
use arbiter_coordinator::leaderboard_cache::LeaderboardCache;
use arbiter_coordinator::tournament::beacon;
use arbiter_games::{Games, bitwa, blackjack, tricks, wojna};
use arbiter_proto::ids::{EditionId, MatchNumber};

use crate::fixture::Change::Submit;
use crate::fixture::{BEACON, Fixture, Leaves, name, tournament_file};

/// The number of matches of a bot.
fn count_matches(played: &[Vec<String>], bot: u16) -> usize {
    played.iter().filter(|names| names.contains(&name(bot))).count()
}

#[tokio::test]
async fn only_the_matches_of_the_changed_bot_are_played() {
    for (game, lines, bots, expected) in [
        (tricks::game(), "", 30, 29),
        (tricks::game(), "[schedule]\nlegs = 2", 30, 58),
        (bitwa::game(), "[schedule]\nboards = [\"pole\", \"kolosy\"]", 12, 22),
        (
            wojna::game(),
            "params.seats = 2\n[schedule]\nkind = \"round_robin\"\nsides = \"both\"",
            9,
            16,
        ),
        (wojna::game(), "", 13, 4),
        (wojna::game(), "", 12, 11),
    ] {
        let case = format!("{game} {lines}");
        let cup = tournament_file(game, lines);
        let mut fixture = Fixture::new(&cup, bots, Leaves::Nothing).await;
        let first = fixture.start().await;
        assert_eq!(fixture.open_if_due().await, None, "{case}");
        fixture.finish(&first).await;
        let before = fixture.export(first.id).await;

        let changes = [Submit(7, 2)];
        let second = fixture.reopen(&changes).await;
        assert_eq!((second.number, second.matches), (2, first.matches), "{case}");
        // The former leaderboard stays official until all matches are counted.
        let lots = fixture.lease(&second, 1).await;
        fixture.play(&lots).await;
        assert!(!fixture.maintain(&second).await, "{case}");
        assert_eq!(fixture.official().await, first.id, "{case}");
        assert_eq!(fixture.export(first.id).await, before, "{case}");
        fixture.finish(&second).await;
        assert_eq!(fixture.official().await, second.id, "{case}");

        let played = fixture.played(&second);
        assert_eq!((played.len(), count_matches(played, 7)), (expected, expected), "{case}");
        let scratch = Fixture::from_scratch(&cup, bots, Leaves::Nothing, &changes).await;
        assert_eq!(fixture.export(second.id).await, scratch, "{case}");
    }
}

/// A version that played before returns: no match is played.
#[tokio::test]
async fn a_returning_version_plays_no_match_again() {
    let cup = tournament_file(tricks::game(), "");
    let mut fixture = Fixture::new(&cup, 8, Leaves::Nothing).await;
    let first = fixture.start().await;
    fixture.finish(&first).await;
    let second = fixture.reopen(&[Submit(3, 2)]).await;
    fixture.finish(&second).await;
    let third = fixture.reopen(&[Submit(3, 1)]).await;
    fixture.finish(&third).await;
    assert_eq!((fixture.played(&second).len(), fixture.played(&third).len()), (7, 0));
    let changes = [Submit(3, 2), Submit(3, 1)];
    let scratch = Fixture::from_scratch(&cup, 8, Leaves::Nothing, &changes).await;
    assert_eq!(fixture.export(third.id).await, scratch);
    let results = "SELECT count(*) FROM results";
    assert_eq!(fixture.database.number(results).await, 28 + 7);
    let editions = [third.id, second.id, first.id];
    for bot in 0..8 {
        check_history(&fixture, bot, &editions).await;
    }
}

/// Checks that the history of a bot agrees with the leaderboards, newest first.
async fn check_history(fixture: &Fixture, bot: u16, editions: &[EditionId]) {
    let pool = &fixture.database.pool;
    let leaderboards = LeaderboardCache::new(pool.clone(), Games::built_in());
    let bot_row = bots::find(pool, fixture.tournament.id, &name(bot)).await.unwrap().unwrap();
    let history = standings::of_bot(pool, bot_row.id, None).await.unwrap();
    assert_eq!(history.iter().map(|row| row.edition).collect::<Vec<_>>(), editions);
    for _ in 0..2 {
        let ranks = leaderboards.ranks(&tricks::game(), editions).await.unwrap();
        for row in &history {
            let edition = editions::get(pool, row.edition).await.unwrap().unwrap();
            let leaderboard = leaderboards.get(&edition).await.unwrap();
            let place = leaderboard.place(row.entrant).unwrap();
            let entrant = leaderboard.roster.get(row.entrant).unwrap();
            assert_eq!((&entrant.name, entrant.version), (&name(bot), row.version));
            assert_eq!(place.contestant.tally, row.tally);
            assert_eq!(ranks[&row.edition].of(row.entrant), Some((place.rank, place.tied)));
        }
    }
    let ended = editions::get(pool, editions[1]).await.unwrap().unwrap().ended_at;
    let earlier = standings::of_bot(pool, bot_row.id, ended).await.unwrap();
    assert_eq!(earlier, history[1..], "expected the editions before that time");
}

#[tokio::test]
async fn a_result_that_leaves_before_it_is_counted_comes_back_once() {
    let cup = tournament_file(tricks::game(), "");
    let mut fixture = Fixture::new(&cup, 4, Leaves::Nothing).await;
    let first = fixture.start().await;
    fixture.play_available(&first).await;
    let third = fixture.reopen(&[Submit(3, 2), Submit(3, 1)]).await;
    fixture.finish(&third).await;
    assert_eq!((fixture.played(&first).len(), fixture.played(&third).len()), (6, 0));
}

/// The value of a beacon changes the seeds of all later editions.
#[tokio::test]
async fn results_with_another_seed_are_not_reused() {
    for (game, lines) in [(tricks::game(), ""), (blackjack::game(), "\n[schedule]\nepisodes = 9")] {
        let cup = tournament_file(&game, &format!("{BEACON}{lines}"));
        let mut fixture = Fixture::new(&cup, 3, Leaves::Nothing).await;
        let first = fixture.start().await;
        fixture.finish(&first).await;
        let id = fixture.tournament.id;
        let queue = &fixture.queue;
        let (_, second) = beacon::set_value(queue, id, "2a", None, fixture.now).await.unwrap();
        let second = second.unwrap();
        fixture.finish(&second).await;
        let third = fixture.reopen(&[Submit(1, 2), Submit(1, 1)]).await;
        fixture.finish(&third).await;
        let pool = &fixture.database.pool;
        let planned = matches::planned(pool, third.scope(), MatchNumber(0), None, 1).await;
        let least = planned.unwrap()[0].number.0;
        assert!(least >= second.first_match, "{game}: match {least} has another seed");
    }
}

/// Only void matches are played again.
#[tokio::test]
async fn void_results_are_not_reused() {
    let mut fixture = Fixture::new(&tournament_file(tricks::game(), ""), 8, Leaves::Nothing).await;
    let first = fixture.start().await;
    fixture.finish(&first).await;
    let second = fixture.reopen(&[Submit(3, 2)]).await;
    fixture.finish(&second).await;
    let statement = "
        INSERT INTO invalidated_matches (tournament, number, at, reason)
        SELECT tournament, number, $1, 'a worker lied' FROM results WHERE number IN (5, 6)";
    let result = sqlx::query(statement).bind(fixture.now).execute(&fixture.database.pool).await;
    assert!(result.unwrap().rows_affected() >= 2);
    let id = fixture.tournament.id;
    let pool = &fixture.database.pool;
    arbiter_coordinator::db::tournaments::mark_changed(pool, id, fixture.now).await.unwrap();
    let third = fixture.open_if_due().await.unwrap();
    fixture.finish(&third).await;
    assert_eq!(fixture.played(&third).len(), 2);
    assert_eq!(fixture.export(third.id).await, fixture.export(second.id).await);
}

/// In blackjack, a result is reused if the bots, the chips and the deal are the same.
#[tokio::test]
async fn episodes_reuse_equal_tables() {
    let cup = tournament_file(blackjack::game(), "[schedule]\nepisodes = 6");
    let mut fixture = Fixture::new(&cup, 23, Leaves::Nothing).await;
    let first = fixture.start().await;
    fixture.finish(&first).await;
    let changes = [Submit(11, 2)];
    let second = fixture.reopen(&changes).await;
    fixture.finish(&second).await;
    let played_count = fixture.played(&second).len();
    let all_count = fixture.played(&first).len();
    // The changed bot plays at one table in each episode. In later rounds more tables differ,
    // because other bots have other chips.
    assert!(
        (6 * 5..all_count).contains(&played_count),
        "{played_count} of {all_count} matches were played"
    );
    let first_round = "SELECT count(*) FROM matches m
        JOIN editions e ON e.first_match <= m.number AND m.number < e.end_match
        WHERE e.number = 2 AND m.carried IS NULL";
    assert_eq!(fixture.database.number(first_round).await, 6);
    let scratch = Fixture::from_scratch(&cup, 23, Leaves::Nothing, &changes).await;
    assert_eq!(fixture.export(second.id).await, scratch);
}
