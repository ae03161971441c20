//! When bots join and leave, the matches of the other bots stay the same.

use arbiter_games::{bitwa, gomoku, tricks, wojna};

use crate::fixture::Change::{Submit, Withdraw};
use crate::fixture::{Field, Leaves, file};

const BOTS: u16 = 12;

#[tokio::test]
async fn a_round_robin_plays_only_new_matches() {
    let random = "[schedule]\nsides = \"random\"\nboards = [\"pole\", \"kolosy\"]";
    let wojna = "params.seats = 2\n[schedule]\nkind = \"round_robin\"\nsides = \"both\"";
    for (game, lines, each) in [
        (gomoku::game(), "state = \"none\"", 2),
        (gomoku::game(), "", 2),
        (bitwa::game(), random, 2),
        (wojna::game(), wojna, 2),
        (tricks::game(), "[schedule]\nlegs = 2", 2),
    ] {
        let told = format!("{game} {lines}");
        let cup = file(&game, lines);
        let mut field = Field::new(&cup, BOTS, Leaves::Nothing).await;
        let first = field.start().await;
        field.finish(&first).await;
        let joined = field.reopen(&[Submit(BOTS, 1)]).await;
        field.finish(&joined).await;
        assert_eq!(field.met(&joined).len(), each * usize::from(BOTS), "{told}");
        let left = field.reopen(&[Withdraw(3)]).await;
        field.finish(&left).await;
        assert_eq!(field.met(&left).len(), 0, "{told}");
        let changes = [Submit(BOTS, 1), Withdraw(3)];
        let scratch = Field::from_scratch(&cup, BOTS, Leaves::Nothing, &changes).await;
        assert_eq!(field.export(left.id).await, scratch, "{told}");
    }
}

/// With balanced sides in an odd number of legs, a new bot swaps the sides of a few other pairs.
#[tokio::test]
async fn a_new_bot_changes_the_sides_of_a_few_pairs_only() {
    let cup = file(tricks::game(), "");
    let mut field = Field::new(&cup, BOTS, Leaves::Nothing).await;
    let first = field.start().await;
    field.finish(&first).await;
    let changes = [Submit(BOTS, 1), Submit(BOTS + 1, 1), Withdraw(3), Withdraw(8)];
    for (change, own) in changes.into_iter().zip([BOTS, BOTS + 1, 0, 0]) {
        let next = field.reopen(&[change]).await;
        field.finish(&next).await;
        let others = field.met(&next).len() - usize::from(own);
        assert!(others <= usize::from(BOTS) / 2, "{change:?}: {others} more");
    }
    let scratch = Field::from_scratch(&cup, BOTS, Leaves::Nothing, &changes).await;
    assert_eq!(field.export(field.official().await).await, scratch);
}
