//! Automatic editions, and the running edition that a new edition replaces.

use arbiter_coordinator::access::{self, Role};
use arbiter_coordinator::db::editions::{self, EditionState};
use arbiter_coordinator::db::invalidated_matches::MatchFilter;
use arbiter_coordinator::db::lots::{self, LotState};
use arbiter_coordinator::db::tournaments;
use arbiter_coordinator::match_invalidation;
use arbiter_coordinator::queue::ReportStatus;
use arbiter_coordinator::tournament::auto_edition::{OpenOutcome, open_due};
use arbiter_coordinator::tournament::{IfRunning, OpenRequest, PlanMode, lifecycle, open_edition};
use arbiter_games::{gomoku, tricks, wojna};
use time::Duration;

use crate::fixture::Change::{Submit, Withdraw};
use crate::fixture::{Fixture, Leaves, tournament_file};
use crate::support::test_clock::AtTime as _;

/// Counts the matches that were played more than once in all editions.
const REPLAYED_MATCHES: &str = "
    SELECT count(*) FROM (
        SELECT FROM results r JOIN matches m USING (tournament, number)
        GROUP BY m.seed_key, m.board, m.carried, m.params::text, m.seats,
            coalesce(initial_state(m.tournament, m.seats, m.state_from), '{}')
        HAVING count(*) > 1) AS replayed";

async fn edition_state(fixture: &Fixture, edition: &editions::Edition) -> EditionState {
    editions::get(&fixture.database.pool, edition.id).await.unwrap().unwrap().state
}

/// The number of matches of the tournament in lots of this state.
async fn count_matches(fixture: &Fixture, state: LotState) -> i64 {
    let census = lots::census(&fixture.database.pool, fixture.tournament.id).await.unwrap();
    census.iter().filter(|row| row.state == state).map(|row| row.matches).sum()
}

#[tokio::test]
async fn changes_within_the_window_make_one_edition() {
    let mut fixture = Fixture::new(&tournament_file(tricks::game(), ""), 5, Leaves::Nothing).await;
    assert!(fixture.open_if_due().await.is_none(), "the first edition has not started");
    let first = fixture.start().await;
    let id = fixture.tournament.id;
    assert!(fixture.open_if_due().await.is_none(), "the edition has all bots");
    for bot in 0..4 {
        fixture.change(Submit(bot, 2)).await;
        assert!(open_due(&fixture.queue, id, fixture.now).await.unwrap().is_none(), "too early");
    }
    // Four coordinators try at once, five seconds after the first change.
    fixture.now += Duration::seconds(2);
    let queue = fixture.queue.clone();
    let now = fixture.now;
    let [a, b, c, d] = [(); 4].map(|()| open_due(&queue, id, now));
    let (a, b, c, d) = tokio::join!(a, b, c, d);
    let opened: Vec<_> = [a, b, c, d].into_iter().filter_map(Result::unwrap).collect();
    let [OpenOutcome::Opened(second)] = &opened[..] else { panic!("{opened:?}") };
    assert_eq!((second.number, second.matches), (2, 10));
    assert_eq!(edition_state(&fixture, &first).await, EditionState::Cancelled);
    assert_eq!(fixture.database.number("SELECT count(*) FROM edition_triggers").await, 0);
    // A change that is undone opens no edition.
    fixture.change(Submit(9, 1)).await;
    fixture.change(Withdraw(9)).await;
    assert!(fixture.open_if_due().await.is_none(), "the entrants are the same");
    assert_eq!(fixture.database.number("SELECT count(*) FROM edition_triggers").await, 0);
    fixture.finish(second).await;
}

#[tokio::test]
async fn manual_rerun_opens_no_automatic_edition() {
    let cup = tournament_file(tricks::game(), "rerun = \"manual\"");
    let mut fixture = Fixture::new(&cup, 5, Leaves::Nothing).await;
    let first = fixture.start().await;
    fixture.change(Submit(2, 2)).await;
    assert!(fixture.open_if_due().await.is_none());
    assert_eq!(edition_state(&fixture, &first).await, EditionState::Running);
    assert_eq!(fixture.start().await.number, 2);
}

#[tokio::test]
async fn an_edition_that_cannot_open_is_reported_once() {
    let mut fixture = Fixture::new(&tournament_file(wojna::game(), ""), 4, Leaves::Nothing).await;
    let first = fixture.start().await;
    fixture.change(Withdraw(2)).await;
    fixture.now += Duration::seconds(5);
    let id = fixture.tournament.id;
    let outcome = open_due(&fixture.queue, id, fixture.now).await.unwrap();
    assert!(matches!(outcome, Some(OpenOutcome::Failed(..))), "{outcome:?}");
    assert!(open_due(&fixture.queue, id, fixture.now).await.unwrap().is_none());
    let pool = fixture.database.pool.clone();
    let last_error = tournaments::get(&pool, id).await.unwrap().unwrap().last_error;
    let expected = "cannot plan cup: too few bots for tables of four: 3; enter at least 4";
    assert_eq!(last_error.as_deref(), Some(expected));
    // The running edition continues.
    assert_eq!(edition_state(&fixture, &first).await, EditionState::Running);
    fixture.reopen(&[Submit(7, 1)]).await;
    assert_eq!(tournaments::get(&pool, id).await.unwrap().unwrap().last_error, None);
}

/// Four bots can meet four times, five bots only three or six times.
#[tokio::test]
async fn a_fifth_bot_plays_although_its_number_of_meetings_is_not_possible() {
    let cup = tournament_file(wojna::game(), "[schedule]\nmeetings = 4");
    let mut fixture = Fixture::new(&cup, 4, Leaves::Nothing).await;
    let first = fixture.start().await;
    fixture.finish(&first).await;
    let second = fixture.reopen(&[Submit(4, 1)]).await;
    fixture.finish(&second).await;
    assert_eq!((first.matches, second.matches), (4, 10));
    let pool = fixture.database.pool.clone();
    let last_error =
        tournaments::get(&pool, fixture.tournament.id).await.unwrap().unwrap().last_error;
    assert_eq!(last_error, None);
}

/// The stored plan history is damaged: one bot has the tables of another bot.
#[tokio::test]
async fn a_plan_that_breaks_its_guarantee_is_never_started() {
    let cup = tournament_file(wojna::game(), "[schedule]\ngames = 10");
    let mut fixture = Fixture::new(&cup, 13, Leaves::Nothing).await;
    let first = fixture.start().await;
    let pool = fixture.database.pool.clone();
    let id = fixture.tournament.id;
    let statement = "
        SELECT min(a) FROM generate_series(1, 12) AS pairs (a) WHERE NOT EXISTS (
            SELECT FROM matches WHERE tournament = $1 AND seats @> ARRAY[1, a + 1])";
    let other_bot: i32 = sqlx::query_scalar(statement).bind(id).fetch_one(&pool).await.unwrap();
    let tamper = "
        UPDATE editions SET plan_history = jsonb_set(plan_history, ARRAY['bots', $2::text],
            plan_history->'bots'->0) WHERE id = $1";
    let query = sqlx::query(tamper).bind(first.id.0).bind(other_bot);
    assert_eq!(query.execute(&pool).await.unwrap().rows_affected(), 1);
    fixture.change(Withdraw(u16::try_from(other_bot).unwrap())).await;
    fixture.now += Duration::seconds(5);
    let outcome = open_due(&fixture.queue, id, fixture.now).await.unwrap();
    assert!(matches!(outcome, Some(OpenOutcome::Failed(..))), "{outcome:?}");
    let last_error = tournaments::get(&pool, id).await.unwrap().unwrap().last_error.unwrap();
    assert!(
        last_error.starts_with("cannot start cup: its plan breaks a guarantee of its schedule ("),
        "{last_error}"
    );
    assert!(
        last_error.contains("two bots' matches") && last_error.contains("--fresh"),
        "{last_error}"
    );
    assert_eq!(edition_state(&fixture, &first).await, EditionState::Running);
    assert_eq!(fixture.database.number("SELECT count(*) FROM editions").await, 1);
    // The error names this remedy.
    let fresh = open_edition::open(
        &fixture.queue,
        OpenRequest { mode: PlanMode::Fresh, ..OpenRequest::new(id, IfRunning::Replace) },
        fixture.now,
    );
    assert_eq!(fresh.await.unwrap().matches, 10);
    assert_eq!(tournaments::get(&pool, id).await.unwrap().unwrap().last_error, None);
}

/// Matches that are in play when their edition is replaced go on, unless their bots changed.
#[tokio::test]
async fn a_new_edition_leaves_matches_in_play_alone() {
    for (game, lines) in [
        (tricks::game(), "expected = \"1ms\"\n[schedule]\nlegs = 4"),
        (gomoku::game(), ""),
        (wojna::game(), "expected = \"1ms\"\n[schedule]\ngames = 300"),
    ] {
        let case = format!("{game} {lines}");
        let cup = tournament_file(&game, lines);
        let mut fixture = Fixture::new(&cup, 12, Leaves::Nothing).await;
        let first = fixture.start().await;
        let lots = fixture.lease(&first, 2).await;
        fixture.play(&lots).await;
        let reported_lots = fixture.lease(&first, 4).await;
        let lost_lots = fixture.lease(&first, 1).await;
        let returned_lots = fixture.lease(&first, 1).await;
        let changes = [Submit(6, 2)];
        let second = fixture.reopen(&changes).await;
        // Lots with matches of the changed bot only are cancelled, so their leases cannot be
        // renewed.
        let in_play = [&reported_lots[..], &lost_lots, &returned_lots].concat();
        let leases: Vec<_> = in_play.iter().map(|lot| lot.lease).collect();
        let renewed = fixture.queue.renew_at(None, &leases, fixture.now).await.unwrap();
        assert!(!renewed.is_empty(), "{case}");
        fixture.maintain(&second).await;
        let statuses = fixture.play(&reported_lots).await;
        for (lot, status) in reported_lots.iter().zip(statuses) {
            let expected = if renewed.contains(&lot.lease) {
                ReportStatus::Accepted
            } else {
                ReportStatus::Late
            };
            assert_eq!(status, expected, "{case}");
        }
        fixture.queue.return_leases(None, &[returned_lots[0].lease]).await.unwrap();
        fixture.queue.expire_at(fixture.now + Duration::minutes(2)).await.unwrap();
        fixture.maintain(&second).await;
        assert_eq!(count_matches(&fixture, LotState::Leased).await, 0, "{case}");
        let statuses = fixture.play(&lost_lots).await;
        assert_eq!(statuses, [ReportStatus::Late], "{case}");
        // The matches of the lost lot rest for a second.
        fixture.queue.expire_at(fixture.now + Duration::minutes(3)).await.unwrap();
        fixture.finish(&second).await;
        for state in [LotState::Pending, LotState::Delayed, LotState::Checking] {
            assert_eq!(count_matches(&fixture, state).await, 0, "{case}: {state:?}");
        }
        assert_eq!(fixture.database.number(REPLAYED_MATCHES).await, 0, "{case}");
        let scratch = Fixture::from_scratch(&cup, 12, Leaves::Nothing, &changes).await;
        assert_eq!(fixture.export(second.id).await, scratch, "{case}");
    }
}

/// A match that becomes void while its edition is played is played again by the next edition.
#[tokio::test]
async fn a_void_match_of_a_running_edition_is_played_again() {
    for (game, leaves) in [(tricks::game(), Leaves::Nothing), (gomoku::game(), Leaves::Notes)] {
        let mut fixture =
            Fixture::new(&tournament_file(&game, "expected = \"1ms\""), 8, leaves).await;
        let first = fixture.start().await;
        let lots = fixture.lease(&first, 4).await;
        let second = fixture.reopen(&[Submit(7, 2)]).await;
        fixture.maintain(&second).await;
        let statuses = fixture.play(&lots).await;
        assert!(statuses.contains(&ReportStatus::Accepted), "{game}");
        let filter = MatchFilter { worker: Some("w".to_owned()), ..MatchFilter::default() };
        let mut db = fixture.database.pool.begin().await.unwrap();
        let void =
            match_invalidation::find(&mut db, fixture.tournament.id, &filter, &[]).await.unwrap();
        let token = access::create(&fixture.database.pool, Role::Organiser, "o", fixture.now).await;
        let token_id = token.unwrap().0;
        let id = fixture.tournament.id;
        let now = fixture.now;
        match_invalidation::apply(&mut db, id, &void, token_id, "a clock", now).await.unwrap();
        db.commit().await.unwrap();
        assert!(!void.is_empty(), "{game}");
        fixture.finish(&second).await;
        let third = fixture.open_if_due().await.unwrap();
        fixture.finish(&third).await;
        assert!(fixture.played(&third).len() >= void.len(), "{game}");
        let mut db = fixture.database.pool.acquire().await.unwrap();
        assert!(!editions::keeps_void_result(&mut db, third.id).await.unwrap(), "{game}");
    }
}

#[tokio::test]
async fn a_cancelled_tournament_accepts_no_reports() {
    let mut fixture = Fixture::new(&tournament_file(tricks::game(), ""), 8, Leaves::Nothing).await;
    let first = fixture.start().await;
    let lots = fixture.lease(&first, 8).await;
    let second = fixture.reopen(&[Submit(7, 2)]).await;
    assert!(count_matches(&fixture, LotState::Leased).await > 0);
    let mut transaction = fixture.queue.pool().begin().await.unwrap();
    lifecycle::cancel(&mut transaction, fixture.tournament.id, fixture.now).await.unwrap();
    transaction.commit().await.unwrap();
    // The second edition shares all matches but those of one bot.
    assert_eq!(count_matches(&fixture, LotState::Cancelled).await, second.matches + 7);
    assert!(fixture.play(&lots).await.iter().all(|status| *status == ReportStatus::Late));
}
