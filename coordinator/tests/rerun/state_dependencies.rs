//! If files pass between matches, a result is reused if none of the matches before it changed.

use std::collections::BTreeSet;

use arbiter_coordinator::db::editions::Edition;
use arbiter_coordinator::db::matches::{self, Match};
use arbiter_games::gomoku;
use arbiter_proto::ids::MatchNumber;
use arbiter_ranking::Entrant;

use crate::fixture::Change::{self, Submit};
use crate::fixture::{Field, Leaves, file};

const PAIRING: &str = "state = \"pairing\"\n[schedule]\nlegs = 2";

/// A finished edition, and the one after these changes, finished too.
async fn twice(lines: &str, leaves: Leaves, changes: &[Change]) -> (Field, Edition) {
    let cup = file(gomoku::game(), lines);
    let mut field = Field::new(&cup, 9, leaves).await;
    let first = field.start().await;
    field.finish(&first).await;
    let second = field.reopen(changes).await;
    field.finish(&second).await;
    let scratch = Field::from_scratch(&cup, 9, leaves, changes).await;
    assert_eq!(field.export(second.id).await, scratch, "{lines} {leaves:?}");
    (field, second)
}

async fn plan(field: &Field, edition: &Edition) -> Vec<Match> {
    let pool = &field.database.pool;
    matches::range(pool, edition.id, MatchNumber(0), i32::MAX).await.unwrap()
}

#[tokio::test]
async fn without_files_only_the_matches_of_the_changed_bot_are_played() {
    for (lines, own) in [("", 16), (PAIRING, 32)] {
        let (field, second) = twice(lines, Leaves::Nothing, &[Submit(4, 2)]).await;
        assert_eq!(field.met(&second).len(), own, "{lines}");
    }
}

#[tokio::test]
async fn matches_that_depend_on_a_changed_match_are_played_again() {
    for lines in ["", PAIRING] {
        let (field, second) = twice(lines, Leaves::Notes, &[Submit(4, 2)]).await;
        let mut changed = BTreeSet::new();
        for planned in plan(&field, &second).await {
            let from = planned.state_from.unwrap();
            if planned.seats.0.contains(&Entrant(4))
                || from.iter().flatten().any(|before| changed.contains(before))
            {
                changed.insert(planned.number.0);
            }
        }
        let played = field.met(&second).len();
        assert_eq!(played, changed.len(), "{lines}");
        assert!(played < usize::try_from(second.matches).unwrap(), "{lines}");
        // What was left in those that were taken over is there, too.
        let files = "SELECT count(*) FROM bot_state WHERE edition = 2";
        assert_eq!(field.database.number(files).await, 2 * second.matches);
    }
}

/// A version returns, and all results that depend on it are reused.
#[tokio::test]
async fn a_returning_version_reuses_the_matches_that_depend_on_it() {
    let changes = [Submit(4, 2), Submit(4, 1)];
    let cup = file(gomoku::game(), "");
    let mut field = Field::new(&cup, 7, Leaves::Notes).await;
    let first = field.start().await;
    field.finish(&first).await;
    for change in changes {
        let next = field.reopen(&[change]).await;
        field.finish(&next).await;
        let played = field.met(&next).len();
        assert_eq!(played == 0, change == changes[1], "{played}");
    }
    let scratch = Field::from_scratch(&cup, 7, Leaves::Notes, &changes).await;
    assert_eq!(field.export(field.official().await).await, scratch);
}
