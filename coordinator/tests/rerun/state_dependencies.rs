//! If bots pass files from match to match, a result is reused only if no match that it depends on
//! has changed.

use std::collections::BTreeSet;

use arbiter_coordinator::access::{self, Role};
use arbiter_coordinator::db::editions::Edition;
use arbiter_coordinator::db::entrants::Roster;
use arbiter_coordinator::db::matches::{self, Match};
use arbiter_coordinator::match_invalidation;
use arbiter_coordinator::queue::ReportStatus;
use arbiter_games::gomoku;
use arbiter_proto::ids::MatchNumber;

use crate::fixture::Change::{self, Submit};
use crate::fixture::{Fixture, Leaves, name, tournament_file};

const PAIRING: &str = "state = \"pairing\"\n[schedule]\nlegs = 2";

/// Plays an edition, applies changes, and plays the next edition. Returns the next edition.
async fn play_twice(lines: &str, leaves: Leaves, changes: &[Change]) -> (Fixture, Edition) {
    let cup = tournament_file(gomoku::game(), lines);
    let mut fixture = Fixture::new(&cup, 9, leaves).await;
    let first = fixture.start().await;
    fixture.finish(&first).await;
    let second = fixture.reopen(changes).await;
    fixture.finish(&second).await;
    let scratch = Fixture::from_scratch(&cup, 9, leaves, changes).await;
    assert_eq!(fixture.export(second.id).await, scratch, "{lines} {leaves:?}");
    (fixture, second)
}

async fn planned_matches(fixture: &Fixture, edition: &Edition) -> Vec<Match> {
    let pool = &fixture.database.pool;
    matches::planned(pool, edition.scope(), MatchNumber(0), None, u32::MAX).await.unwrap()
}

#[tokio::test]
async fn without_files_only_the_matches_of_the_changed_bot_are_played() {
    for (lines, expected) in [("", 16), (PAIRING, 32)] {
        let (fixture, second) = play_twice(lines, Leaves::Nothing, &[Submit(4, 2)]).await;
        assert_eq!(fixture.played(&second).len(), expected, "{lines}");
    }
}

#[tokio::test]
async fn matches_that_depend_on_a_changed_match_are_played_again() {
    for lines in ["", PAIRING] {
        let (fixture, second) = play_twice(lines, Leaves::Notes, &[Submit(4, 2)]).await;
        let roster = Roster::of(&fixture.database.pool, second.id).await.unwrap();
        let changed_bot = roster.find(&name(4)).unwrap();
        let mut changed_matches = BTreeSet::new();
        for planned in planned_matches(&fixture, &second).await {
            let state_from = planned.state_from.unwrap();
            if planned.seats.0.contains(&changed_bot)
                || state_from.iter().flatten().any(|before| changed_matches.contains(before))
            {
                changed_matches.insert(planned.number.0);
            }
        }
        let played_count = fixture.played(&second).len();
        assert_eq!(played_count, changed_matches.len(), "{lines}");
        assert!(played_count < usize::try_from(second.matches).unwrap(), "{lines}");
        // Each played match has left its files once.
        let files = "SELECT count(*) FROM bot_state";
        let all = second.matches + i64::try_from(played_count).unwrap();
        assert_eq!(fixture.database.number(files).await, 2 * all);
    }
}

/// An earlier version returns. All its results are reused, and the results that depend on them.
#[tokio::test]
async fn a_returning_version_reuses_dependent_results() {
    let changes = [Submit(4, 2), Submit(4, 1)];
    let cup = tournament_file(gomoku::game(), "");
    let mut fixture = Fixture::new(&cup, 7, Leaves::Notes).await;
    let first = fixture.start().await;
    fixture.finish(&first).await;
    for change in changes {
        let edition = fixture.reopen(&[change]).await;
        fixture.finish(&edition).await;
        let played_count = fixture.played(&edition).len();
        assert_eq!(
            played_count == 0,
            change == changes[1],
            "{change:?}: {played_count} matches were played"
        );
    }
    let scratch = Fixture::from_scratch(&cup, 7, Leaves::Notes, &changes).await;
    assert_eq!(fixture.export(fixture.official().await).await, scratch);
}

/// The match before is void, and leaves the same files when it is played again. So the match that
/// was leased before is still needed.
#[tokio::test]
async fn a_match_in_play_goes_on_if_it_begins_with_the_same_files() {
    let cup = tournament_file(gomoku::game(), PAIRING);
    let mut fixture = Fixture::new(&cup, 2, Leaves::Notes).await;
    let first = fixture.start().await;
    let before = fixture.lease(&first, 1).await;
    assert_eq!(fixture.play(&before).await, [ReportStatus::Accepted]);
    let in_play = fixture.lease(&first, 64).await;
    assert!(!in_play.is_empty());

    let mut db = fixture.database.pool.acquire().await.unwrap();
    let (by, _) = access::create(&mut *db, Role::Organiser, "o", fixture.now).await.unwrap();
    let void = [before[0].first_match()];
    let id = fixture.tournament.id;
    match_invalidation::apply(&mut db, id, &void, by, "a clock", fixture.now).await.unwrap();
    drop(db);
    let second = fixture.start().await;
    assert!(!fixture.maintain(&second).await);
    let again = fixture.lease(&second, 64).await;
    assert_eq!(fixture.play(&again).await, [ReportStatus::Accepted]);
    assert!(!fixture.maintain(&second).await);
    assert_eq!(fixture.lease(&second, 64).await, []);
    let statuses = fixture.play(&in_play).await;
    assert!(statuses.iter().all(|status| *status == ReportStatus::Accepted), "{statuses:?}");
    fixture.finish(&second).await;
}
