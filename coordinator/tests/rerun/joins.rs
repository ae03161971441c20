//! When bots join and leave, the matches of the other bots stay the same.

use arbiter_games::{bitwa, gomoku, tricks, wojna};

use crate::fixture::Change::{Submit, Withdraw};
use crate::fixture::{Fixture, Leaves, tournament_file};

const BOTS: u16 = 12;

#[tokio::test]
async fn a_round_robin_plays_only_new_matches() {
    let random = "[schedule]\nsides = \"random\"\nboards = [\"pole\", \"kolosy\"]";
    let wojna = "params.seats = 2\n[schedule]\nkind = \"round_robin\"\nsides = \"both\"";
    for (game, lines, per_pair) in [
        (gomoku::game(), "state = \"none\"", 2),
        (gomoku::game(), "", 2),
        (bitwa::game(), random, 2),
        (wojna::game(), wojna, 2),
        (tricks::game(), "[schedule]\nlegs = 2", 2),
    ] {
        let case = format!("{game} {lines}");
        let cup = tournament_file(&game, lines);
        let mut fixture = Fixture::new(&cup, BOTS, Leaves::Nothing).await;
        let first = fixture.start().await;
        fixture.finish(&first).await;
        let after_join = fixture.reopen(&[Submit(BOTS, 1)]).await;
        fixture.finish(&after_join).await;
        assert_eq!(fixture.played(&after_join).len(), per_pair * usize::from(BOTS), "{case}");
        let after_leave = fixture.reopen(&[Withdraw(3)]).await;
        fixture.finish(&after_leave).await;
        assert_eq!(fixture.played(&after_leave).len(), 0, "{case}");
        let changes = [Submit(BOTS, 1), Withdraw(3)];
        let scratch = Fixture::from_scratch(&cup, BOTS, Leaves::Nothing, &changes).await;
        assert_eq!(fixture.export(after_leave.id).await, scratch, "{case}");
    }
}

/// A new bot meets its neighbours, and half as many of their pairs are too far apart now.
#[tokio::test]
async fn neighbours_play_only_new_pairs() {
    let cup = tournament_file(gomoku::game(), "state = \"none\"\n[schedule]\nopponents = 4");
    let mut fixture = Fixture::new(&cup, BOTS, Leaves::Nothing).await;
    let first = fixture.start().await;
    fixture.finish(&first).await;
    assert_eq!(fixture.played(&first).len(), 2 * 24);
    // Each pair plays two matches.
    for (change, pairs) in [(Submit(BOTS, 1), 4), (Withdraw(BOTS), 0), (Withdraw(3), 2)] {
        let edition = fixture.reopen(&[change]).await;
        fixture.finish(&edition).await;
        assert_eq!(fixture.played(&edition).len(), 2 * pairs, "{change:?}");
    }
    let scratch = Fixture::from_scratch(&cup, BOTS, Leaves::Nothing, &[Withdraw(3)]).await;
    assert_eq!(fixture.export(fixture.official().await).await, scratch);
}

/// At tables of three a bot that joins takes three seats in each leg, and the bots that it replaces
/// get a new table.
#[tokio::test]
async fn tables_play_only_exchanged_tables() {
    let lines = "params.seats = 3\n[schedule]\nkind = \"tables\"\nlegs = 2";
    let cup = tournament_file(wojna::game(), lines);
    let mut fixture = Fixture::new(&cup, BOTS, Leaves::Nothing).await;
    let first = fixture.start().await;
    fixture.finish(&first).await;
    assert_eq!(fixture.played(&first).len(), 2 * usize::from(BOTS));
    for (change, new) in [(Submit(BOTS, 1), 8), (Withdraw(3), 6), (Submit(7, 2), 6)] {
        let edition = fixture.reopen(&[change]).await;
        fixture.finish(&edition).await;
        let played = fixture.played(&edition).len();
        // A table that changes twice needs one match less.
        assert!((new - 1..=new).contains(&played), "{change:?}: {played}");
    }
}

/// With balanced sides in an odd number of legs, a new bot swaps the sides of a few other pairs.
#[tokio::test]
async fn a_new_bot_changes_the_sides_of_a_few_pairs_only() {
    let cup = tournament_file(tricks::game(), "");
    let mut fixture = Fixture::new(&cup, BOTS, Leaves::Nothing).await;
    let first = fixture.start().await;
    fixture.finish(&first).await;
    let changes = [Submit(BOTS, 1), Submit(BOTS + 1, 1), Withdraw(3), Withdraw(8)];
    for (change, own_matches) in changes.into_iter().zip([BOTS, BOTS + 1, 0, 0]) {
        let edition = fixture.reopen(&[change]).await;
        fixture.finish(&edition).await;
        let other_matches = fixture.played(&edition).len() - usize::from(own_matches);
        assert!(
            other_matches <= usize::from(BOTS) / 2,
            "{change:?}: {other_matches} matches of other bots"
        );
    }
    let scratch = Fixture::from_scratch(&cup, BOTS, Leaves::Nothing, &changes).await;
    assert_eq!(fixture.export(fixture.official().await).await, scratch);
}
