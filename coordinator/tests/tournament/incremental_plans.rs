//! Editions of foursomes whose bots join and leave: stable tables, guarantees, and estimates.

use std::collections::BTreeSet;

use arbiter_coordinator::access::{self, Role};
use arbiter_coordinator::db::editions::{self, Edition};
use arbiter_coordinator::db::tournaments::{self, Tournament};
use arbiter_coordinator::db::{bots, plan_histories, progress_samples, versions, workers};
use arbiter_coordinator::tournament::entry_outlook::EntryOutlook;
use arbiter_coordinator::tournament::estimate::{self, CompletionEstimate, NextEdition};
use arbiter_coordinator::tournament::{
    IfRunning, OpenRequest, PlanMode, TournamentFile, open_edition, plan_history,
};
use arbiter_games::{Games, tricks, wojna};
use arbiter_proto::ids::{BotId, TokenId};
use arbiter_schedule::{Certificate, Plan};
use serde_json::json;
use time::Duration;

use crate::fixture::{create_tournament, listed_matches, start_tournament, tournament_file};
use crate::play::RandomWorkers;
use crate::support::{Database, START};

/// Opens an edition that replaces the running one.
async fn next_edition(database: &Database, tournament: &Tournament, mode: PlanMode) -> Edition {
    let queue = database.queue();
    open_edition::open(
        &queue,
        OpenRequest { mode, ..OpenRequest::new(tournament.id, IfRunning::Replace) },
        START,
    )
    .await
    .unwrap()
}

/// The tables of an edition as ids of bots. Checks the guarantees of the plan.
async fn tables(database: &Database, tournament: &Tournament, edition: &Edition) -> Vec<[i32; 4]> {
    let entrants = editions::entrants(&database.pool, edition.id).await.unwrap();
    let planned = listed_matches(database, tournament, edition.id).await;
    let seats = planned.iter().map(|planned| -> Vec<u16> {
        planned.seats.0.iter().map(|seat| seat.0.try_into().unwrap()).collect()
    });
    let mut db = database.pool.acquire().await.unwrap();
    let guarantees = estimate::plan_guarantees(&mut db, &Games::built_in(), tournament, edition.id)
        .await
        .unwrap();
    let bots = guarantees.field.bots();
    let owners = guarantees.field.owners();
    let certificate = Certificate::count(bots, guarantees.seats, owners, seats).unwrap();
    certificate.prove(&guarantees.claim.unwrap()).unwrap();
    let bot = |place: i32| entrants[usize::try_from(place).unwrap()].bot.0;
    let tables = planned.iter().map(|planned| {
        let seats: Vec<_> = planned.seats.0.iter().map(|seat| bot(seat.0)).collect();
        seats.try_into().unwrap()
    });
    tables.collect()
}

/// How a plan was made.
async fn history_summary(database: &Database, edition: &Edition) -> String {
    let mut db = database.pool.acquire().await.unwrap();
    let row = tournaments::get(&mut *db, edition.tournament).await.unwrap().unwrap();
    let file = TournamentFile::from_json(&Games::built_in(), &row.settings).unwrap();
    plan_history::summary(&mut db, &file, edition.id).await.unwrap().unwrap()
}

/// Creates a bot and submits its first version.
async fn enter(
    database: &Database,
    tournament: &Tournament,
    owner: Option<TokenId>,
    name: &str,
) -> BotId {
    let bot = bots::create(&database.pool, tournament.id, owner, name, START).await.unwrap();
    versions::submit(&database.pool, bot, &[1; 32], START).await.unwrap();
    bot
}

#[tokio::test]
async fn tables_stay_when_bots_join_and_leave() {
    let database = Database::new().await;
    let pool = &database.pool;
    let (cup, first) = start_tournament(&database, &tournament_file(wojna::game(), ""), 13).await;
    let first_tables = tables(&database, &cup, &first).await;
    assert_eq!(first_tables.len(), 13);
    assert_eq!(history_summary(&database, &first).await, "new plan: the first plan");
    // Without a change the plan stays the same.
    let second = next_edition(&database, &cup, PlanMode::Incremental).await;
    assert_eq!(tables(&database, &cup, &second).await, first_tables);
    // A bot joins.
    let new_bot = enter(&database, &cup, None, "new").await;
    let after_join = next_edition(&database, &cup, PlanMode::Incremental).await;
    let extended_tables = tables(&database, &cup, &after_join).await;
    assert_eq!((&extended_tables[..13], extended_tables.len()), (&first_tables[..], 18));
    assert!(extended_tables[13..].iter().all(|table| table.contains(&new_bot.0)));
    assert_eq!(
        history_summary(&database, &after_join).await,
        "extends a plan for 13 bots: 1 joined, 0 left"
    );
    // A bot leaves.
    let leaving_bot = bots::list(pool, cup.id).await.unwrap()[4].id;
    bots::withdraw(pool, leaving_bot, START + Duration::MINUTE).await.unwrap();
    let after_leave = next_edition(&database, &cup, PlanMode::Incremental).await;
    let remaining_tables: Vec<_> =
        extended_tables.iter().filter(|table| !table.contains(&leaving_bot.0)).copied().collect();
    assert_eq!(
        tables(&database, &cup, &after_leave).await[..remaining_tables.len()],
        remaining_tables
    );
    // The bot returns: the earlier plan applies again.
    let statement = "UPDATE bots SET withdrawn_at = NULL WHERE id = $1";
    sqlx::query(statement).bind(leaving_bot.0).execute(pool).await.unwrap();
    let after_return = next_edition(&database, &cup, PlanMode::Incremental).await;
    assert_eq!(tables(&database, &cup, &after_return).await, extended_tables);
    // A new plan is exactly balanced.
    let fresh = next_edition(&database, &cup, PlanMode::Fresh).await;
    assert_eq!(tables(&database, &cup, &fresh).await.len(), 91);
    assert_eq!(history_summary(&database, &fresh).await, "new plan: an organiser requested it");
}

#[tokio::test]
async fn a_plan_for_other_rules_says_what_changed() {
    let database = Database::new().await;
    let (cup, first) = start_tournament(&database, &tournament_file(wojna::game(), ""), 13).await;
    let statement = "UPDATE editions SET rules = 'former' WHERE id = $1";
    sqlx::query(statement).bind(first.id).execute(&database.pool).await.unwrap();
    // Results of the same rules are used again, so some matches may not be played again.
    let changed = "the rules changed";
    let mut db = database.pool.acquire().await.unwrap();
    let games = Games::built_in();
    let next = NextEdition::plan(&mut db, &games, cup.clone(), PlanMode::Incremental).await;
    assert_eq!(next.unwrap().summary().unwrap(), changed);
    let second = next_edition(&database, &cup, PlanMode::Incremental).await;
    assert_eq!(history_summary(&database, &second).await, changed);
    let third = next_edition(&database, &cup, PlanMode::Fresh).await;
    assert_eq!(history_summary(&database, &third).await, "new plan: an organiser requested it");
}

#[tokio::test]
async fn a_plan_that_cannot_be_extended_is_planned_again() {
    let database = Database::new().await;
    let (cup, _) = start_tournament(&database, &tournament_file(wojna::game(), ""), 5).await;
    enter(&database, &cup, None, "new").await;
    let new_plan = next_edition(&database, &cup, PlanMode::Incremental).await;
    let reason = "new plan: the earlier plan had too few bots to change it";
    assert_eq!(history_summary(&database, &new_plan).await, reason);
    // Plans of matches with two seats have no history.
    let (_, pairs) = start_tournament(&database, &tournament_file(tricks::game(), ""), 5).await;
    assert_eq!(plan_histories::of_edition(&database.pool, pairs.id).await.unwrap(), None);
}

/// No plan lets all pairs of 14 bots meet exactly once, but a plan for 13 bots can be extended.
#[tokio::test]
async fn an_impossible_number_of_meetings_is_rounded_up_and_stated() {
    let database = Database::new().await;
    let once = tournament_file(wojna::game(), "[schedule]\nmeetings = 1");
    let (cup, first) = start_tournament(&database, &once, 13).await;
    assert_eq!(history_summary(&database, &first).await, "new plan: the first plan");
    let extended = "every pair of bots meets at least once, as requested, and some may meet more \
        often because bots joined or left";
    assert_eq!(outlook(&database, &cup).await.as_deref(), Some(extended));
    enter(&database, &cup, None, "new").await;
    let edition = next_edition(&database, &cup, PlanMode::Incremental).await;
    assert_eq!(edition.matches, 18);
    let summary = history_summary(&database, &edition).await;
    assert_eq!(summary, format!("extends a plan for 13 bots: 1 joined, 0 left; {extended}"));
    let rounded = "every pair of bots meets 6 times instead of once, because 14 bots at tables of \
        four cannot all meet exactly once";
    let fresh = next_edition(&database, &cup, PlanMode::Fresh).await;
    assert_eq!(tables(&database, &cup, &fresh).await.len(), 91);
    let summary = history_summary(&database, &fresh).await;
    assert_eq!(summary, format!("new plan: an organiser requested it; {rounded}"));
}

/// What the next edition lacks if one more bot enters.
async fn outlook(database: &Database, tournament: &Tournament) -> Option<String> {
    let mut db = database.pool.acquire().await.unwrap();
    let outlook = EntryOutlook::default();
    outlook.with_new_bot(&mut db, &Games::built_in(), tournament, None).await.unwrap()
}

/// The page of a tournament shows the outlook, so each view asks for it.
#[tokio::test]
async fn an_outlook_is_computed_once_for_the_same_bots_and_newest_edition() {
    let database = Database::new().await;
    let once = tournament_file(wojna::game(), "[schedule]\nmeetings = 1");
    let (cup, first) = start_tournament(&database, &once, 13).await;
    let outlook = EntryOutlook::default();
    let games = Games::built_in();
    let read = async || {
        let mut db = database.pool.acquire().await.unwrap();
        outlook.with_new_bot(&mut db, &games, &cup, None).await.unwrap()
    };
    let computed = read().await;
    assert!(computed.is_some());
    // Without the history of its plan, the next plan would be a new one.
    let history = plan_histories::of_edition(&database.pool, first.id).await.unwrap().unwrap();
    plan_histories::set(&database.pool, first.id, &json!({})).await.unwrap();
    assert_eq!(read().await, computed, "it is computed again");
    enter(&database, &cup, None, "new").await;
    let rounded = "every pair of bots meets 6 times instead of once, because 15 bots at tables of \
        four cannot all meet exactly once";
    assert_eq!(read().await.as_deref(), Some(rounded), "another bot entered");
    plan_histories::set(&database.pool, first.id, &history).await.unwrap();
    next_edition(&database, &cup, PlanMode::Fresh).await;
    assert_ne!(read().await.as_deref(), Some(rounded), "another edition opened");
}

#[tokio::test]
async fn a_new_bot_hears_what_the_next_edition_lacks() {
    let database = Database::new().await;
    let create = async |game, name: &str, lines: &str, bots| {
        let file = TournamentFile { name: name.to_owned(), ..tournament_file(game, lines) };
        create_tournament(&database, &file, bots).await
    };
    let wojna = wojna::game();
    let cup = create(wojna.clone(), "two", "", 2).await;
    let text = "a table needs 4 bots, and 3 have entered with this one; when 1 more enters, an \
        organiser can start the first edition";
    assert_eq!(outlook(&database, &cup).await.as_deref(), Some(text));
    enter(&database, &cup, None, "new").await;
    assert_eq!(outlook(&database, &cup).await, None, "four bots are enough");
    enter(&database, &cup, None, "newer").await;
    next_edition(&database, &cup, PlanMode::Incremental).await;
    for bot in &bots::list(&database.pool, cup.id).await.unwrap()[..3] {
        bots::withdraw(&database.pool, bot.id, START).await.unwrap();
    }
    let text = "a table needs 4 bots, and 2 have entered with this one; when 2 more enter, the \
        next edition opens";
    assert_eq!(outlook(&database, &cup).await.as_deref(), Some(text));
    let manual = create(wojna, "manual", "rerun = \"manual\"\n[schedule]\ngames = 2", 11).await;
    let text = "3 matches are planned instead of 2, so that each of the 12 bots plays";
    assert_eq!(outlook(&database, &manual).await.as_deref(), Some(text));
    let pairs = create(tricks::game(), "pairs", "[schedule]\nopponents = 3", 4).await;
    let text =
        "every bot meets 4 others instead of 3, because 5 bots cannot all meet exactly 3 others";
    assert_eq!(outlook(&database, &pairs).await.as_deref(), Some(text));
    let edition = next_edition(&database, &pairs, PlanMode::Incremental).await;
    assert_eq!(edition.matches, 6);
    enter(&database, &pairs, None, "new").await;
    let edition = next_edition(&database, &pairs, PlanMode::Incremental).await;
    assert_eq!(history_summary(&database, &edition).await, text);
}

/// Keeping owners apart changes a plan only if an owner has several bots.
#[tokio::test]
async fn an_exact_plan_without_common_owners_lacks_nothing() {
    let database = Database::new().await;
    let lines = "[schedule]\nmeetings = 1\n[submissions]\nseparate_owners = true";
    let cup = create_tournament(&database, &tournament_file(wojna::game(), lines), 12).await;
    let token = access::create(&database.pool, Role::Player, "ada", START).await;
    let (ada, _) = token.unwrap();
    enter(&database, &cup, Some(ada), "first").await;
    let edition = next_edition(&database, &cup, PlanMode::Incremental).await;
    assert_eq!(history_summary(&database, &edition).await, "new plan: the first plan");
    bots::withdraw(&database.pool, bots::list(&database.pool, cup.id).await.unwrap()[0].id, START)
        .await
        .unwrap();
    enter(&database, &cup, Some(ada), "second").await;
    let edition = next_edition(&database, &cup, PlanMode::Fresh).await;
    let apart = "new plan: an organiser requested it; every pair of bots without a common \
        owner meets at least once, as requested, and some may meet more often because owners are \
        kept apart";
    assert_eq!(history_summary(&database, &edition).await, apart);
    let games = Games::built_in();
    let mut db = database.pool.acquire().await.unwrap();
    let next = NextEdition::plan(&mut db, &games, cup.clone(), PlanMode::Fresh).await.unwrap();
    assert_eq!(next.summary().as_deref(), Some(apart));
}

#[tokio::test]
async fn bots_of_one_owner_do_not_meet() {
    let database = Database::new().await;
    let file = tournament_file(wojna::game(), "[submissions]\nseparate_owners = true");
    // House bots have no owner.
    let cup = create_tournament(&database, &file, 7).await;
    let mut bots_by_owner = Vec::new();
    for owner in ["ada", "bob", "cyd"] {
        let token = access::create(&database.pool, Role::Player, owner, START).await;
        let (id, _) = token.unwrap();
        let mut owned_bots = BTreeSet::new();
        for number in 0..3 {
            let name = format!("{owner}-{number}");
            owned_bots.insert(enter(&database, &cup, Some(id), &name).await.0);
        }
        bots_by_owner.push(owned_bots);
    }
    let edition = next_edition(&database, &cup, PlanMode::Incremental).await;
    let tables = tables(&database, &cup, &edition).await;
    for owned_bots in bots_by_owner {
        assert!(
            tables
                .iter()
                .all(|table| { table.iter().filter(|bot| owned_bots.contains(bot)).count() <= 1 })
        );
    }
}

#[tokio::test]
async fn the_next_edition_is_estimated_before_it_starts() {
    let database = Database::new().await;
    let (cup, first) = start_tournament(&database, &tournament_file(wojna::game(), ""), 13).await;
    RandomWorkers::new(&database, first.id, "calm").await.play().await;
    enter(&database, &cup, None, "new").await;
    let mut db = database.pool.acquire().await.unwrap();
    let next =
        NextEdition::plan(&mut db, &Games::built_in(), cup, PlanMode::Incremental).await.unwrap();
    let Plan::Matches(planned) = next.matches().unwrap() else {
        panic!("expected a list of matches")
    };
    let estimate = next.estimate(&mut db).await.unwrap();
    let matches = estimate.matches.unsigned_abs();
    assert_eq!((estimate.bots, matches, estimate.to_play), (14, planned.total(), 5));
    assert!(estimate.measured && estimate.bytes > 0, "{estimate:?}");
    assert_eq!(
        database.number("SELECT count(*) FROM editions").await,
        1,
        "the estimate stored an edition"
    );
}

#[tokio::test]
async fn the_completion_is_estimated_from_progress() {
    let database = Database::new().await;
    let pool = &database.pool;
    let (_, edition) = start_tournament(&database, &tournament_file(tricks::game(), ""), 5).await;
    assert_eq!(progress_samples::of_edition(pool, edition.id).await.unwrap(), None);
    assert_eq!(progress_samples::mark(pool, START).await.unwrap(), 1);
    assert_eq!(
        progress_samples::mark(pool, START + Duration::SECOND).await.unwrap(),
        0,
        "a sample was taken a second ago"
    );
    RandomWorkers::new(&database, edition.id, "calm").await.play().await;
    let progress = progress_samples::of_edition(pool, edition.id).await.unwrap().unwrap();
    assert_eq!((progress.played, progress.before, progress.before_at), (10, 0, START));
    let now = START + Duration::seconds(20);
    let estimate = CompletionEstimate::new(5, Some(progress), 0, 1.0, now).unwrap();
    assert_eq!(estimate.eta, now + Duration::seconds(10));
}

#[tokio::test]
async fn only_slots_of_connected_workers_count() {
    let database = Database::new().await;
    let pool = &database.pool;
    let one = database.worker("one").await;
    let two = database.worker("two").await;
    let first = workers::connect(pool, one, 4, START).await.unwrap();
    let later = START + Duration::MINUTE;
    workers::connect(pool, two, 8, later).await.unwrap();
    assert_eq!(workers::slots(pool, START).await.unwrap(), 12);
    // The last message of the first worker is too old. A new message makes its slots count again.
    assert_eq!(workers::slots(pool, later).await.unwrap(), 8);
    workers::record_contact(pool, one, later).await.unwrap();
    assert_eq!(workers::slots(pool, later).await.unwrap(), 12);
    // The end of an old stream does not disconnect a worker that has a new stream.
    let second = workers::connect(pool, one, 4, later).await.unwrap();
    workers::disconnect(pool, one, first).await.unwrap();
    assert_eq!(workers::slots(pool, later).await.unwrap(), 12);
    workers::disconnect(pool, one, second).await.unwrap();
    assert_eq!(workers::slots(pool, later).await.unwrap(), 8);
}
