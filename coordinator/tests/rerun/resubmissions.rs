//! After a new version of a bot only its own matches are played.

use arbiter_coordinator::db::{bots, editions, standings};
use arbiter_coordinator::leaderboard_cache::LeaderboardCache;
use arbiter_games::{Games, bitwa, blackjack, tricks, wojna};
use arbiter_proto::ids::EditionId;

use crate::fixture::Change::Submit;
use crate::fixture::{Field, Leaves, file, name};

/// The opponents of a bot.
fn of(met: &[Vec<String>], bot: u16) -> usize {
    met.iter().filter(|names| names.contains(&name(bot))).count()
}

#[tokio::test]
async fn only_the_matches_of_the_changed_bot_are_played() {
    for (game, lines, bots, own) in [
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
        let told = format!("{game} {lines}");
        let cup = file(game, lines);
        let mut field = Field::new(&cup, bots, Leaves::Nothing).await;
        let first = field.start().await;
        assert_eq!(field.due().await, None, "{told}");
        field.finish(&first).await;
        let before = field.export(first.id).await;

        let changes = [Submit(7, 2)];
        let second = field.reopen(&changes).await;
        assert_eq!((second.number, second.matches), (2, first.matches), "{told}");
        // The official leaderboard is the former one until the last match is counted.
        let lots = field.lease(&second, 1).await;
        field.play(&lots).await;
        assert!(!field.tend(&second).await, "{told}");
        assert_eq!(field.official().await, first.id, "{told}");
        assert_eq!(field.export(first.id).await, before, "{told}");
        field.finish(&second).await;
        assert_eq!(field.official().await, second.id, "{told}");

        let met = field.met(&second);
        assert_eq!((met.len(), of(met, 7)), (own, own), "{told}");
        let scratch = Field::from_scratch(&cup, bots, Leaves::Nothing, &changes).await;
        assert_eq!(field.export(second.id).await, scratch, "{told}");
    }
}

/// A version that played before returns: no match is played.
#[tokio::test]
async fn a_returning_version_plays_no_match_again() {
    let cup = file(tricks::game(), "");
    let mut field = Field::new(&cup, 8, Leaves::Nothing).await;
    let first = field.start().await;
    field.finish(&first).await;
    let second = field.reopen(&[Submit(3, 2)]).await;
    field.finish(&second).await;
    let third = field.reopen(&[Submit(3, 1)]).await;
    field.finish(&third).await;
    assert_eq!((field.met(&second).len(), field.met(&third).len()), (7, 0));
    let changes = [Submit(3, 2), Submit(3, 1)];
    let scratch = Field::from_scratch(&cup, 8, Leaves::Nothing, &changes).await;
    assert_eq!(field.export(third.id).await, scratch);
    // Each result names the match that was played, not one that was taken over.
    let chains = "SELECT count(*) FROM results r JOIN results s
        ON s.edition = r.source_edition AND s.number = r.source_number
        WHERE s.source_edition IS NOT NULL OR s.transcript <> r.transcript";
    assert_eq!(field.database.number(chains).await, 0);
    let taken = "SELECT count(*) FROM results WHERE source_edition IS NOT NULL";
    assert_eq!(field.database.number(taken).await, 21 + 28);
    let editions = [third.id, second.id, first.id];
    for bot in 0..8 {
        histories_are_those_of_the_leaderboards(&field, bot, &editions).await;
    }
}

/// The history of a bot equals the leaderboards, newest first.
async fn histories_are_those_of_the_leaderboards(field: &Field, bot: u16, editions: &[EditionId]) {
    let pool = &field.database.pool;
    let boards = LeaderboardCache::new(pool.clone(), Games::built_in());
    let found = bots::find(pool, field.tournament.id, &name(bot)).await.unwrap().unwrap();
    let past = standings::of_bot(pool, found.id, None).await.unwrap();
    assert_eq!(past.iter().map(|past| past.edition).collect::<Vec<_>>(), editions);
    for _ in 0..2 {
        let ranks = boards.ranks(&tricks::game(), editions).await.unwrap();
        for past in &past {
            let edition = editions::get(pool, past.edition).await.unwrap().unwrap();
            let board = boards.get(&edition).await.unwrap();
            let place = board.place(past.entrant).unwrap();
            let named = board.roster.get(past.entrant).unwrap();
            assert_eq!((&named.name, named.version), (&name(bot), past.version));
            assert_eq!(place.contestant.tally, past.tally);
            let index = usize::try_from(past.entrant.0).unwrap();
            assert_eq!(ranks[&past.edition][index], (place.rank, place.tied));
        }
    }
    let ended = editions::get(pool, editions[1]).await.unwrap().unwrap().ended_at;
    let until = standings::of_bot(pool, found.id, ended).await.unwrap();
    assert_eq!(until, past[1..], "what was over then");
}

/// Only voided matches are played again.
#[tokio::test]
async fn voided_results_are_not_reused() {
    let mut field = Field::new(&file(tricks::game(), ""), 8, Leaves::Nothing).await;
    let first = field.start().await;
    field.finish(&first).await;
    let second = field.reopen(&[Submit(3, 2)]).await;
    field.finish(&second).await;
    let statement = "
        INSERT INTO invalidated_matches (edition, number, at, reason)
        SELECT edition, number, $1, 'a worker lied' FROM results
        WHERE source_edition IS NULL AND number IN (5, 6) ORDER BY edition";
    let voided = sqlx::query(statement).bind(field.now).execute(&field.database.pool).await;
    assert!(voided.unwrap().rows_affected() >= 2);
    let id = field.tournament.id;
    let pool = &field.database.pool;
    arbiter_coordinator::db::tournaments::mark_changed(pool, id, field.now).await.unwrap();
    let third = field.due().await.unwrap();
    field.finish(&third).await;
    assert_eq!(field.met(&third).len(), 2);
    assert_eq!(field.export(third.id).await, field.export(second.id).await);
}

/// Blackjack: a table is reused if its bots, chips and deal are the same.
#[tokio::test]
async fn episodes_reuse_equal_tables() {
    let cup = file(blackjack::game(), "[schedule]\nepisodes = 6");
    let mut field = Field::new(&cup, 23, Leaves::Nothing).await;
    let first = field.start().await;
    field.finish(&first).await;
    let changes = [Submit(11, 2)];
    let second = field.reopen(&changes).await;
    field.finish(&second).await;
    let played = field.met(&second).len();
    let all = field.met(&first).len();
    // One table of six in the first round, and those whom it dealt other chips in later ones.
    assert!((6 * 5..all).contains(&played), "{played} of {all}");
    let first_round = "SELECT count(*) FROM results r JOIN matches m USING (edition, number)
        WHERE edition = 2 AND carried IS NULL AND source_edition IS NULL";
    assert_eq!(field.database.number(first_round).await, 6);
    let scratch = Field::from_scratch(&cup, 23, Leaves::Nothing, &changes).await;
    assert_eq!(field.export(second.id).await, scratch);
}
