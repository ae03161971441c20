//! Editions of foursomes whose bots join and leave: stable tables, guarantees, cost and estimated
//! completion.

use std::collections::BTreeSet;

use arbiter_coordinator::access::{self, Role};
use arbiter_coordinator::db::editions::{self, Edition};
use arbiter_coordinator::db::tournaments::Tournament;
use arbiter_coordinator::db::{bots, progress_samples, versions, workers};
use arbiter_coordinator::tournament::estimate::{self, CompletionEstimate, NextEdition};
use arbiter_coordinator::tournament::{
    IfRunning, OpenError, OpenRequest, PlanMode, edition, plan_history,
};
use arbiter_games::{Games, tricks, wojna};
use arbiter_proto::ids::{BotId, TokenId};
use arbiter_schedule::{Certificate, Plan};
use time::Duration;

use crate::fixture::{file, made, matches, running};
use crate::play::Troupe;
use crate::support::{Database, START};

/// Opens an edition that replaces the running one.
async fn next(database: &Database, tournament: &Tournament, mode: PlanMode) -> Edition {
    let queue = database.queue();
    edition::open(
        &queue,
        OpenRequest { mode, ..OpenRequest::new(tournament.id, IfRunning::Replace) },
        START,
    )
    .await
    .unwrap()
}

/// The tables of an edition, after checking its guarantees.
async fn tables(database: &Database, tournament: &Tournament, edition: &Edition) -> Vec<[i32; 4]> {
    let entrants = editions::entrants(&database.pool, edition.id).await.unwrap();
    let planned = matches(database, edition.id).await;
    let seats = planned.iter().map(|planned| {
        let seats: Vec<u16> =
            planned.seats.0.iter().map(|seat| seat.0.try_into().unwrap()).collect();
        seats
    });
    let mut db = database.pool.acquire().await.unwrap();
    let promise = estimate::plan_guarantees(&mut db, &Games::built_in(), tournament, edition.id)
        .await
        .unwrap();
    let bots = promise.field.bots();
    let owners = promise.field.owners();
    let counted = Certificate::count(bots, promise.seats, owners, seats).unwrap();
    counted.prove(&promise.claim.unwrap()).unwrap();
    let bot = |entrant: i32| entrants[usize::try_from(entrant).unwrap()].bot.0;
    let tables = planned.iter().map(|planned| {
        let seats: Vec<_> = planned.seats.0.iter().map(|seat| bot(seat.0)).collect();
        seats.try_into().unwrap()
    });
    tables.collect()
}

/// The summary of a plan's history.
async fn told(database: &Database, edition: &Edition) -> String {
    let stored = editions::plan_history_of(&database.pool, edition.id).await.unwrap();
    plan_history::summary(&stored.unwrap())
}

/// Enters a bot.
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
    let (cup, first) = running(&database, &file(wojna::game(), ""), 13).await;
    let begun = tables(&database, &cup, &first).await;
    assert_eq!(begun.len(), 13);
    assert_eq!(told(&database, &first).await, "new plan: the first plan");
    // The same bots, the same plan.
    let again = next(&database, &cup, PlanMode::Incremental).await;
    assert_eq!(tables(&database, &cup, &again).await, begun);
    // One joins.
    let new = enter(&database, &cup, None, "new").await;
    let joined = next(&database, &cup, PlanMode::Incremental).await;
    let grown = tables(&database, &cup, &joined).await;
    assert_eq!((&grown[..13], grown.len()), (&begun[..], 18));
    assert!(grown[13..].iter().all(|table| table.contains(&new.0)));
    assert_eq!(told(&database, &joined).await, "extends a plan for 13 bots: 1 joined, 0 left");
    // One leaves.
    let left = bots::list(pool, cup.id).await.unwrap()[4].id;
    bots::withdraw(pool, left, START + Duration::MINUTE).await.unwrap();
    let fewer = next(&database, &cup, PlanMode::Incremental).await;
    let stayed: Vec<_> = grown.iter().filter(|table| !table.contains(&left.0)).copied().collect();
    assert_eq!(tables(&database, &cup, &fewer).await[..stayed.len()], stayed);
    // It comes back: what was planned then is the plan again.
    let back = "UPDATE bots SET withdrawn_at = NULL WHERE id = $1";
    sqlx::query(back).bind(left.0).execute(pool).await.unwrap();
    let back = next(&database, &cup, PlanMode::Incremental).await;
    assert_eq!(tables(&database, &cup, &back).await, grown);
    // All anew, and exact.
    let fresh = next(&database, &cup, PlanMode::Fresh).await;
    assert_eq!(tables(&database, &cup, &fresh).await.len(), 91);
    assert_eq!(told(&database, &fresh).await, "new plan: an organiser requested it");
}

#[tokio::test]
async fn a_plan_that_cannot_be_extended_is_planned_again() {
    let database = Database::new().await;
    let (cup, _) = running(&database, &file(wojna::game(), ""), 5).await;
    enter(&database, &cup, None, "new").await;
    let anew = next(&database, &cup, PlanMode::Incremental).await;
    let reason = "new plan: the earlier plan had too few bots to add one";
    assert_eq!(told(&database, &anew).await, reason);
    // Pairs of 14 cannot meet exactly once, but one may join 13.
    let mut exact = file(wojna::game(), "[schedule]\nmeetings = 1");
    exact.name = "exact".to_owned();
    let (exact, _) = running(&database, &exact, 13).await;
    enter(&database, &exact, None, "new").await;
    let queue = database.queue();
    let fresh = edition::open(
        &queue,
        OpenRequest { mode: PlanMode::Fresh, ..OpenRequest::new(exact.id, IfRunning::Replace) },
        START,
    )
    .await;
    assert!(matches!(fresh, Err(OpenError::Schedule { .. })), "{fresh:?}");
    assert_eq!(next(&database, &exact, PlanMode::Incremental).await.matches, 18);
    // Matches of two have no lineage.
    let (_, pairs) = running(&database, &file(tricks::game(), ""), 5).await;
    assert_eq!(editions::plan_history_of(&database.pool, pairs.id).await.unwrap(), None);
}

#[tokio::test]
async fn bots_of_one_owner_do_not_meet() {
    let database = Database::new().await;
    let cup = file(wojna::game(), "[submissions]\nseparate_owners = true");
    // House bots have no owner.
    let cup = made(&database, &cup, 7).await;
    let mut families = Vec::new();
    for owner in ["ada", "bob", "cyd"] {
        let made = access::create(&database.pool, Role::Player, owner, START).await;
        let (id, _) = made.unwrap();
        let mut family = BTreeSet::new();
        for number in 0..3 {
            let name = format!("{owner}-{number}");
            family.insert(enter(&database, &cup, Some(id), &name).await.0);
        }
        families.push(family);
    }
    let edition = next(&database, &cup, PlanMode::Incremental).await;
    let tables = tables(&database, &cup, &edition).await;
    for family in families {
        assert!(
            tables
                .iter()
                .all(|table| { table.iter().filter(|bot| family.contains(bot)).count() <= 1 })
        );
    }
}

#[tokio::test]
async fn the_next_edition_is_estimated_before_it_starts() {
    let database = Database::new().await;
    let (cup, first) = running(&database, &file(wojna::game(), ""), 13).await;
    Troupe::new(&database, first.id, "calm").await.play().await;
    enter(&database, &cup, None, "new").await;
    let mut db = database.pool.acquire().await.unwrap();
    let next =
        NextEdition::plan(&mut db, &Games::built_in(), cup, PlanMode::Incremental).await.unwrap();
    let Plan::Matches(planned) = next.matches().unwrap() else { panic!("they are listed") };
    let estimate = next.estimate(&mut db).await.unwrap();
    assert_eq!((estimate.bots, estimate.matches, estimate.to_play), (14, planned.total(), 5));
    assert!(estimate.measured && estimate.bytes > 0, "{estimate:?}");
    assert_eq!(database.number("SELECT count(*) FROM editions").await, 1, "nothing was stored");
}

#[tokio::test]
async fn the_completion_is_estimated_from_progress() {
    let database = Database::new().await;
    let pool = &database.pool;
    let (_, edition) = running(&database, &file(tricks::game(), ""), 5).await;
    assert_eq!(progress_samples::of_edition(pool, edition.id).await.unwrap(), None);
    assert_eq!(progress_samples::mark(pool, START).await.unwrap(), 1);
    assert_eq!(
        progress_samples::mark(pool, START + Duration::SECOND).await.unwrap(),
        0,
        "too early"
    );
    Troupe::new(&database, edition.id, "calm").await.play().await;
    let pace = progress_samples::of_edition(pool, edition.id).await.unwrap().unwrap();
    assert_eq!((pace.played, pace.before, pace.before_at), (10, 0, START));
    let now = START + Duration::seconds(20);
    let forecast = CompletionEstimate::new(5, Some(pace), 0, 1.0, now).unwrap();
    assert_eq!(forecast.eta, now + Duration::seconds(10));
}

#[tokio::test]
async fn connected_workers_have_slots() {
    let database = Database::new().await;
    let pool = &database.pool;
    let one = database.worker("one").await;
    let two = database.worker("two").await;
    let first = workers::connect(pool, one, 4, START).await.unwrap();
    let later = START + Duration::MINUTE;
    workers::connect(pool, two, 8, later).await.unwrap();
    assert_eq!(workers::slots(pool, START).await.unwrap(), 12);
    // The first has not been heard of for too long, until it is seen.
    assert_eq!(workers::slots(pool, later).await.unwrap(), 8);
    workers::see(pool, one, later).await.unwrap();
    assert_eq!(workers::slots(pool, later).await.unwrap(), 12);
    // The end of an old stream says nothing of the new one.
    let second = workers::connect(pool, one, 4, later).await.unwrap();
    workers::disconnect(pool, one, first).await.unwrap();
    assert_eq!(workers::slots(pool, later).await.unwrap(), 12);
    workers::disconnect(pool, one, second).await.unwrap();
    assert_eq!(workers::slots(pool, later).await.unwrap(), 8);
}
