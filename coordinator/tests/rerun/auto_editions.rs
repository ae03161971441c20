//! Automatic editions, and the running edition that they replace.

use arbiter_coordinator::access::{self, Role};
use arbiter_coordinator::db::editions::{self, EditionState};
use arbiter_coordinator::db::invalidated_matches::Wanted;
use arbiter_coordinator::db::lots::{self, LotState};
use arbiter_coordinator::db::tournaments;
use arbiter_coordinator::match_invalidation;
use arbiter_coordinator::queue::ReportStatus;
use arbiter_coordinator::tournament::auto_edition::{OpenOutcome, open_due};
use arbiter_coordinator::tournament::{IfRunning, OpenRequest, PlanMode, edition, lifecycle};
use arbiter_games::{Dice, Game, Seed, blackjack, gomoku, tricks, wojna};
use time::Duration;

use crate::fixture::Change::{self, Submit, Withdraw};
use crate::fixture::{Field, Leaves, file};
use crate::support::test_clock::AtTime as _;

/// The number of matches that were played more than once in all editions.
const TWICE: &str = "
    SELECT count(*) FROM (
        SELECT FROM results r JOIN matches m USING (edition, number)
        WHERE r.source_edition IS NULL
        GROUP BY m.seed_key, m.board, m.carried, m.params::text, seat_programs(m.edition, m.seats),
            coalesce(initial_state(m.edition, m.seats, m.state_from), '{}')
        HAVING count(*) > 1) AS twice";

async fn state(field: &Field, edition: &editions::Edition) -> EditionState {
    editions::get(&field.database.pool, edition.id).await.unwrap().unwrap().state
}

/// The number of matches of an edition in lots of this state.
async fn matches(field: &Field, edition: &editions::Edition, state: LotState) -> i64 {
    let census = lots::census(&field.database.pool, edition.id).await.unwrap();
    census.iter().filter(|line| line.state == state).map(|line| line.matches).sum()
}

#[tokio::test]
async fn changes_within_the_window_make_one_edition() {
    let mut field = Field::new(&file(tricks::game(), ""), 5, Leaves::Nothing).await;
    assert!(field.due().await.is_none(), "no edition was started");
    let first = field.start().await;
    let id = field.tournament.id;
    assert!(field.due().await.is_none(), "it shows all bots");
    for bot in 0..4 {
        field.change(Submit(bot, 2)).await;
        assert!(open_due(&field.queue, id, field.now).await.unwrap().is_none(), "too early");
    }
    // Many coordinators look at once, five seconds after the first change.
    field.now += Duration::seconds(2);
    let queue = field.queue.clone();
    let now = field.now;
    let looks = [(); 4].map(|()| open_due(&queue, id, now));
    let [a, b, c, d] = looks;
    let (a, b, c, d) = tokio::join!(a, b, c, d);
    let opened: Vec<_> = [a, b, c, d].into_iter().filter_map(Result::unwrap).collect();
    let [OpenOutcome::Opened(second)] = &opened[..] else { panic!("{opened:?}") };
    assert_eq!((second.number, second.matches), (2, 10));
    assert_eq!(state(&field, &first).await, EditionState::Cancelled);
    assert_eq!(field.database.number("SELECT count(*) FROM edition_triggers").await, 0);
    // Something changes, and changes back.
    field.change(Submit(9, 1)).await;
    field.change(Withdraw(9)).await;
    assert!(field.due().await.is_none(), "nothing is new");
    assert_eq!(field.database.number("SELECT count(*) FROM edition_triggers").await, 0);
    field.finish(second).await;
}

#[tokio::test]
async fn with_manual_rerun_no_edition_opens_by_itself() {
    let cup = file(tricks::game(), "rerun = \"manual\"");
    let mut field = Field::new(&cup, 5, Leaves::Nothing).await;
    let first = field.start().await;
    field.change(Submit(2, 2)).await;
    assert!(field.due().await.is_none());
    assert_eq!(state(&field, &first).await, EditionState::Running);
    assert_eq!(field.start().await.number, 2);
}

#[tokio::test]
async fn an_edition_that_cannot_open_is_reported_once() {
    let mut field = Field::new(&file(wojna::game(), ""), 4, Leaves::Nothing).await;
    let first = field.start().await;
    field.change(Withdraw(2)).await;
    field.now += Duration::seconds(5);
    let id = field.tournament.id;
    let found = open_due(&field.queue, id, field.now).await.unwrap();
    assert!(matches!(found, Some(OpenOutcome::Failed(..))), "{found:?}");
    assert!(open_due(&field.queue, id, field.now).await.unwrap().is_none());
    let pool = field.database.pool.clone();
    let trouble = tournaments::get(&pool, id).await.unwrap().unwrap().last_error;
    let told = "cannot plan cup: too few bots for foursomes: 3; enter at least 4";
    assert_eq!(trouble.as_deref(), Some(told));
    // The edition that runs goes on.
    assert_eq!(state(&field, &first).await, EditionState::Running);
    field.reopen(&[Submit(7, 1)]).await;
    assert_eq!(tournaments::get(&pool, id).await.unwrap().unwrap().last_error, None);
}

/// A stored plan may be damaged: here a bot has the tables of another bot as well.
#[tokio::test]
async fn a_plan_that_breaks_its_guarantee_is_never_started() {
    let cup = file(wojna::game(), "[schedule]\ngames = 10");
    let mut field = Field::new(&cup, 13, Leaves::Nothing).await;
    let first = field.start().await;
    let pool = field.database.pool.clone();
    let id = field.tournament.id;
    let apart = "
        SELECT min(a) FROM generate_series(1, 12) AS pairs (a) WHERE NOT EXISTS (
            SELECT FROM matches WHERE edition = $1 AND seats @> ARRAY[0, a])";
    let apart: i32 = sqlx::query_scalar(apart).bind(first.id.0).fetch_one(&pool).await.unwrap();
    let tamper = "
        UPDATE editions SET plan_history = jsonb_set(plan_history, ARRAY['bots', $2::text],
            plan_history->'bots'->0) WHERE id = $1";
    let tamper = sqlx::query(tamper).bind(first.id.0).bind(apart);
    assert_eq!(tamper.execute(&pool).await.unwrap().rows_affected(), 1);
    field.change(Withdraw(u16::try_from(apart).unwrap())).await;
    field.now += Duration::seconds(5);
    let found = open_due(&field.queue, id, field.now).await.unwrap();
    assert!(matches!(found, Some(OpenOutcome::Failed(..))), "{found:?}");
    let trouble = tournaments::get(&pool, id).await.unwrap().unwrap().last_error.unwrap();
    assert!(
        trouble.starts_with("cannot start cup: its plan breaks a guarantee of its schedule ("),
        "{trouble}"
    );
    assert!(trouble.contains("two bots' matches") && trouble.contains("--fresh"), "{trouble}");
    assert_eq!(state(&field, &first).await, EditionState::Running);
    assert_eq!(field.database.number("SELECT count(*) FROM editions").await, 1);
    // The remedy it names.
    let fresh = edition::open(
        &field.queue,
        OpenRequest { mode: PlanMode::Fresh, ..OpenRequest::new(id, IfRunning::Replace) },
        field.now,
    );
    assert_eq!(fresh.await.unwrap().matches, 10);
    assert_eq!(tournaments::get(&pool, id).await.unwrap().unwrap().last_error, None);
}

/// Matches in play while an edition is replaced are reused, unless they changed.
#[tokio::test]
async fn matches_in_play_are_waited_for_and_reused() {
    for (game, lines) in [
        (tricks::game(), "expected = \"1ms\"\n[schedule]\nlegs = 4"),
        (gomoku::game(), ""),
        (wojna::game(), "expected = \"1ms\"\n[schedule]\ngames = 300"),
    ] {
        let told = format!("{game} {lines}");
        let cup = file(&game, lines);
        let mut field = Field::new(&cup, 12, Leaves::Nothing).await;
        let first = field.start().await;
        let lots = field.lease(&first, 2).await;
        field.play(&lots).await;
        let reported = field.lease(&first, 4).await;
        let lost = field.lease(&first, 1).await;
        let back = field.lease(&first, 1).await;
        let changes = [Submit(6, 2)];
        let second = field.reopen(&changes).await;
        assert_eq!(matches(&field, &first, LotState::Pending).await, 0, "{told}");
        // What has nothing but matches of the bot that changed is not played on.
        let held = field
            .queue
            .renew_at(
                None,
                &[&reported[..], &lost, &back]
                    .concat()
                    .iter()
                    .map(|lot| lot.lease)
                    .collect::<Vec<_>>(),
                field.now,
            )
            .await
            .unwrap();
        field.tend(&second).await;
        let waiting = matches(&field, &second, LotState::CheckingReuse).await;
        assert!(waiting > 0, "{told}");
        let verdicts = field.play(&reported).await;
        for (lot, verdict) in reported.iter().zip(verdicts) {
            let due =
                if held.contains(&lot.lease) { ReportStatus::Accepted } else { ReportStatus::Late };
            assert_eq!(verdict, due, "{told}");
        }
        field.queue.return_leases(None, &[back[0].lease]).await.unwrap();
        field.queue.expire_at(field.now + Duration::minutes(2)).await.unwrap();
        field.tend(&second).await;
        assert_eq!(matches(&field, &second, LotState::CheckingReuse).await, 0, "{told}");
        for state in [LotState::Leased, LotState::Pending, LotState::Delayed, LotState::Split] {
            assert_eq!(matches(&field, &first, state).await, 0, "{told}: {state:?}");
        }
        let verdicts = field.play(&lost).await;
        assert_eq!(verdicts, [ReportStatus::Late], "{told}");
        field.finish(&second).await;
        assert_eq!(field.database.number(TWICE).await, 0, "{told}");
        let scratch = Field::from_scratch(&cup, 12, Leaves::Nothing, &changes).await;
        assert_eq!(field.export(second.id).await, scratch, "{told}");
    }
}

/// A voided result is not reused, even if the next edition already waits for it.
#[tokio::test]
async fn a_voided_result_is_not_reused_by_a_waiting_edition() {
    for (game, leaves) in [(tricks::game(), Leaves::Nothing), (gomoku::game(), Leaves::Notes)] {
        let mut field = Field::new(&file(&game, "expected = \"1ms\""), 8, leaves).await;
        let first = field.start().await;
        let lots = field.lease(&first, 4).await;
        let second = field.reopen(&[Submit(7, 2)]).await;
        field.tend(&second).await;
        assert!(matches(&field, &second, LotState::CheckingReuse).await > 0, "{game}");
        let verdicts = field.play(&lots).await;
        assert!(verdicts.contains(&ReportStatus::Accepted), "{game}");
        let all = Wanted { worker: Some("w".to_owned()), ..Wanted::default() };
        let mut db = field.database.pool.begin().await.unwrap();
        let void = match_invalidation::find(&mut db, field.tournament.id, &all, &[]).await.unwrap();
        let made = access::create(&field.database.pool, Role::Organiser, "o", field.now).await;
        let by = made.unwrap().0;
        let id = field.tournament.id;
        let now = field.now;
        match_invalidation::apply(&mut db, id, &void, by, "a clock", now).await.unwrap();
        db.commit().await.unwrap();
        field.tend(&second).await;
        let taken = "
            SELECT count(*) FROM results r
            JOIN invalidated_matches v ON v.edition = r.source_edition AND v.number = r.source_number";
        assert_eq!(field.database.number(taken).await, 0, "{game}");
        field.finish(&second).await;
        assert_eq!(field.database.number(taken).await, 0, "{game}");
        let mut db = field.database.pool.acquire().await.unwrap();
        assert!(!editions::keeps_void(&mut db, second.id).await.unwrap(), "{game}");
    }
}

#[tokio::test]
async fn a_cancelled_tournament_accepts_no_reports() {
    let mut field = Field::new(&file(tricks::game(), ""), 8, Leaves::Nothing).await;
    let first = field.start().await;
    let lots = field.lease(&first, 8).await;
    let second = field.reopen(&[Submit(7, 2)]).await;
    assert!(matches(&field, &first, LotState::Leased).await > 0);
    let mut transaction = field.queue.pool().begin().await.unwrap();
    lifecycle::cancel(&mut transaction, field.tournament.id, field.now).await.unwrap();
    transaction.commit().await.unwrap();
    for edition in [&first, &second] {
        assert_eq!(matches(&field, edition, LotState::Cancelled).await, edition.matches);
    }
    assert!(field.play(&lots).await.iter().all(|verdict| *verdict == ReportStatus::Late));
}

/// The state of a bot in the tournament.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whereabouts {
    Away,
    Here,
    /// A bot that has left does not come back under the same name.
    Gone,
}

/// Draws the bot that enters, changes or leaves next; `None` if the drawn bot cannot.
fn draw(dice: &mut Dice, bots: &mut [Whereabouts]) -> Option<Change> {
    let bot = dice.index(bots.len());
    let number = u16::try_from(bot).unwrap();
    let here = bots.iter().filter(|place| **place == Whereabouts::Here).count();
    match bots[bot] {
        Whereabouts::Gone => None,
        Whereabouts::Here if here > 6 && dice.below(4) == 0 => {
            bots[bot] = Whereabouts::Gone;
            Some(Withdraw(number))
        }
        _ => {
            bots[bot] = Whereabouts::Here;
            Some(Submit(number, 1 + u8::try_from(dice.below(3)).unwrap()))
        }
    }
}

/// Bots join, change and leave at random, while matches are played, lost and reported late. The
/// last leaderboard equals that of a tournament with the final versions from the beginning, and no
/// match is played twice.
async fn at_random(game: Game, lines: &str, leaves: Leaves, chaos: &str) {
    let told = format!("{game} {lines} {leaves:?} {chaos}");
    let cup = file(&game, lines);
    let mut dice = Seed::of_text(chaos).dice(0);
    let mut field = Field::new(&cup, 8, leaves).await;
    let mut edition = field.start().await;
    let mut bots = [Whereabouts::Here; 11];
    bots[8..].fill(Whereabouts::Away);
    let mut changes = Vec::new();
    let mut kept = Vec::new();
    for _ in 0..40 {
        match dice.below(5) {
            0 => {
                let Some(change) = draw(&mut dice, &mut bots) else { continue };
                field.change(change).await;
                changes.push(change);
                if let Some(opened) = field.due().await {
                    edition = opened;
                }
            }
            1 => {
                field.now += Duration::seconds(dice.below(50).into());
                field.queue.expire_at(field.now).await.unwrap();
            }
            2 => {
                dice.shuffle(&mut kept);
                let late = kept.split_off(dice.index(kept.len() + 1));
                assert!(!field.play(&late).await.contains(&ReportStatus::Malformed), "{told}");
            }
            _ => {
                kept.extend(field.lease(&edition, 1 << dice.below(4)).await);
                field.tend(&edition).await;
            }
        }
    }
    field.play(&kept).await;
    if state(&field, &edition).await == EditionState::Running {
        field.queue.expire_at(field.now + Duration::minutes(2)).await.unwrap();
        field.queue.expire_at(field.now + Duration::minutes(4)).await.unwrap();
        field.finish(&edition).await;
    }
    if game == wojna::game() {
        // Tables that grew with the field are not those of a plan for the field as it is.
        field.final_run().await;
    }
    assert_eq!(field.database.number(TWICE).await, 0, "{told}");
    let scratch = Field::from_scratch(&cup, 8, leaves, &changes).await;
    assert_eq!(field.export(field.official().await).await, scratch, "{told} {changes:?}");
}

#[tokio::test]
async fn reuse_never_changes_a_leaderboard() {
    let tricks = "expected = \"1ms\"\n[schedule]\nlegs = 5";
    for (game, lines, leaves) in [
        (tricks::game(), tricks, Leaves::Nothing),
        (gomoku::game(), "", Leaves::Notes),
        (gomoku::game(), "", Leaves::Nothing),
        (blackjack::game(), "[schedule]\nepisodes = 3", Leaves::Nothing),
        (wojna::game(), "expected = \"5s\"", Leaves::Nothing),
    ] {
        let chaos = format!("{game} {leaves:?}");
        at_random(game, lines, leaves, &chaos).await;
    }
}
