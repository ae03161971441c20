//! Creation, start, cancellation and closing of tournaments, and the errors of each.

use std::collections::BTreeSet;

use arbiter_coordinator::db::editions::{self, Edition, EditionState};
use arbiter_coordinator::db::lots::{self, LotState};
use arbiter_coordinator::db::tournaments::{self, TournamentState};
use arbiter_coordinator::db::{bots, versions};
use arbiter_coordinator::tournament::{IfRunning, OpenRequest, lifecycle, open_edition};
use arbiter_games::{RULES_VERSION, Seed, bitwa, blackjack, gomoku, tricks, wojna};
use arbiter_proto::ids::TournamentId;

use crate::fixture::{
    cancel_tournament, close_tournament, create_tournament, open_edition, planned_matches,
    start_tournament, tournament_file,
};
use crate::support::test_clock::AtTime as _;
use crate::support::{Database, START, poll_at_most, wait_until};

#[tokio::test]
async fn a_tournament_name_is_unique() {
    let database = Database::new().await;
    let pool = &database.pool;
    let cup = tournament_file(gomoku::game(), "");
    let tournament =
        lifecycle::create(&mut pool.acquire().await.unwrap(), &cup, START).await.unwrap();
    assert_eq!(
        (tournament.seed, tournament.settings.clone()),
        (Seed::of_text("stage"), cup.to_json())
    );
    assert_eq!(tournament.seed_hash, blake3::hash(&tournament.seed.0).as_bytes());
    assert_eq!(tournaments::find(pool, "gomoku-cup").await.unwrap(), Some(tournament));
    let error = lifecycle::create(&mut pool.acquire().await.unwrap(), &cup, START)
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(error, "a tournament gomoku-cup exists already; choose another name");
    assert_eq!(tournaments::find(pool, "chess-cup").await.unwrap(), None);
}

#[tokio::test]
async fn a_tournament_file_without_a_seed_gets_a_random_seed() {
    let database = Database::new().await;
    let mut seeds = Vec::new();
    for name in ["a", "b"] {
        let mut cup = tournament_file(gomoku::game(), "");
        cup.name = name.to_owned();
        cup.seed = None;
        seeds.push(
            lifecycle::create(&mut database.pool.acquire().await.unwrap(), &cup, START)
                .await
                .unwrap()
                .seed,
        );
    }
    assert_ne!(seeds[0], seeds[1]);
    assert!(!seeds.contains(&Seed([0; 32])));
}

#[tokio::test]
async fn the_error_for_too_few_bots_says_how_many_are_needed() {
    let database = Database::new().await;
    let queue = database.queue();
    let cases = [
        (
            wojna::game(),
            3,
            "cannot plan wojna-cup: too few bots for tables of four: 3; enter at least 4",
        ),
        (
            tricks::game(),
            1,
            "cannot plan tricks-cup: too few bots for a round robin: 1; enter at least 2",
        ),
        (
            blackjack::game(),
            0,
            "cannot plan blackjack-cup: too few bots for episodes: 0; enter at least 1",
        ),
    ];
    for (game, bots, expected) in cases {
        let tournament = create_tournament(&database, &tournament_file(game, ""), bots).await;
        assert_eq!(open_edition(&queue, &tournament).await.unwrap_err().to_string(), expected);
        // The failed start leaves no edition.
        let editions = editions::of_tournament(&database.pool, tournament.id).await.unwrap();
        assert_eq!(editions, []);
    }
    let result =
        open_edition::open(&queue, OpenRequest::new(TournamentId(99), IfRunning::Refuse), START)
            .await;
    assert_eq!(result.unwrap_err().to_string(), "there is no such tournament");
}

#[tokio::test]
async fn one_edition_runs_unless_it_is_replaced() {
    let database = Database::new().await;
    let queue = database.queue();
    let (tournament, first) =
        start_tournament(&database, &tournament_file(tricks::game(), ""), 5).await;
    assert_eq!((first.number, first.state, first.matches), (1, EditionState::Running, 10));
    let error = open_edition(&queue, &tournament).await.unwrap_err().to_string();
    let expected =
        "edition 1 of tricks-cup is still running; wait for it, or cancel the tournament";
    assert_eq!(error, expected);
    let error = close_tournament(&queue, tournament.id, START).await.unwrap_err().to_string();
    assert_eq!(error, expected);

    // One bot submits a new version, one bot withdraws, and a new bot enters.
    let pool = &database.pool;
    versions::store_bundle(pool, &[2; 32], b"better").await.unwrap();
    let bots_in_order = bots::list(pool, tournament.id).await.unwrap();
    let better = versions::submit(pool, bots_in_order[2].id, &[2; 32], START).await.unwrap();
    bots::withdraw(pool, bots_in_order[0].id, START).await.unwrap();
    let new_bot = bots::create(pool, tournament.id, None, "new", START).await.unwrap();
    let newest = versions::submit(pool, new_bot, &[2; 32], START).await.unwrap();
    queue.lease_at(tournament.id, 1, START).await.unwrap();
    let second =
        open_edition::open(&queue, OpenRequest::new(tournament.id, IfRunning::Replace), START)
            .await
            .unwrap();
    assert_eq!((second.number, second.state, second.matches), (2, EditionState::Running, 10));
    let entrants = editions::entrants(pool, second.id).await.unwrap();
    let versions: Vec<_> = entrants.iter().map(|entrant| entrant.version).collect();
    assert_eq!((entrants.len(), versions[1], versions[4]), (5, better, newest));
    assert_eq!(entrants[0].bot, bots_in_order[1].id);
    let first = editions::get(pool, first.id).await.unwrap().unwrap();
    assert_eq!(first.state, EditionState::Cancelled);
    // The queue has the matches of the second edition only.
    let numbers = async |edition: &Edition| -> BTreeSet<i64> {
        let planned = planned_matches(&database, edition.id).await;
        planned.into_iter().map(|planned| planned.number.0).collect()
    };
    let needed = numbers(&second).await;
    let gone: BTreeSet<_> = numbers(&first).await.difference(&needed).copied().collect();
    assert!((7..10).contains(&gone.len()), "seven pairs do not meet again: {gone:?}");
    let in_queue = async |is_cancelled: bool| -> BTreeSet<i64> {
        let statement = "
            SELECT generate_series(number, number + count - 1) FROM lots
            WHERE (state = 'cancelled') = $1";
        let query = sqlx::query_scalar(statement).bind(is_cancelled);
        query.fetch_all(pool).await.unwrap().into_iter().collect()
    };
    assert_eq!((in_queue(false).await, in_queue(true).await), (needed, gone));
    let census = lots::census(pool, tournament.id).await.unwrap();
    let open = census.iter().filter(|count| count.state != LotState::Cancelled);
    assert_eq!(open.map(|count| count.matches).sum::<i64>(), second.matches, "{census:?}");
}

#[tokio::test]
async fn concurrent_starts_open_one_edition() {
    let database = Database::new().await;
    let queue = database.queue();
    let tournament = create_tournament(&database, &tournament_file(gomoku::game(), ""), 6).await;
    let [a, b, c, d] = [(); 4].map(|()| open_edition(&queue, &tournament));
    let (a, b, c, d) = tokio::join!(a, b, c, d);
    let opened = [a, b, c, d].into_iter().flatten().count();
    assert_eq!(opened, 1);
    assert_eq!(database.number("SELECT count(*) FROM matches").await, 30);
}

/// The client disconnects while the edition opens. The edition opens completely.
#[tokio::test]
async fn an_edition_opens_even_if_the_client_disconnects() {
    let database = Database::new().await;
    let queue = database.queue();
    let tournament = create_tournament(&database, &tournament_file(gomoku::game(), ""), 6).await;
    assert!(poll_at_most(1, open_edition(&queue, &tournament)).await.is_none());
    while database.number("SELECT count(*) FROM editions WHERE state = 'running'").await == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(database.number("SELECT count(*) FROM lots").await, 30);
}

#[tokio::test]
async fn cancelling_a_tournament_cancels_its_edition() {
    let database = Database::new().await;
    let queue = database.queue();
    let (tournament, edition) =
        start_tournament(&database, &tournament_file(bitwa::game(), ""), 4).await;
    let cancelled = cancel_tournament(&queue, tournament.id, START).await.unwrap();
    assert_eq!((cancelled.state, cancelled.ended_at), (TournamentState::Cancelled, Some(START)));
    assert_eq!(queue.lease_at(edition.tournament, 1, START).await.unwrap(), []);
    let expected = "tournament bitwa-cup was cancelled; create another one";
    let error = cancel_tournament(&queue, tournament.id, START).await.unwrap_err().to_string();
    assert_eq!(error, expected);
    assert_eq!(open_edition(&queue, &tournament).await.unwrap_err().to_string(), expected);
    let error = close_tournament(&queue, TournamentId(99), START).await.unwrap_err().to_string();
    assert_eq!(error, "there is no such tournament");
}

#[tokio::test]
async fn a_closed_tournament_opens_no_edition() {
    let database = Database::new().await;
    let queue = database.queue();
    let tournament = create_tournament(&database, &tournament_file(wojna::game(), ""), 4).await;
    let error = close_tournament(&queue, tournament.id, START).await.unwrap_err().to_string();
    assert!(error.starts_with("no edition of wojna-cup is complete"), "{error}");
    let edition = editions::create(&database.pool, tournament.id, 1, false, RULES_VERSION, START)
        .await
        .unwrap();
    let statement = "
        UPDATE editions SET state = 'complete', matches = 1, ended_at = created_at WHERE id = $1";
    sqlx::query(statement).bind(edition.0).execute(&database.pool).await.unwrap();
    let closed = close_tournament(&queue, tournament.id, START).await.unwrap();
    assert_eq!((closed.state, closed.seed), (TournamentState::Closed, tournament.seed));
    let expected = "tournament wojna-cup was closed; create another one";
    assert_eq!(open_edition(&queue, &tournament).await.unwrap_err().to_string(), expected);
}

/// A large edition takes long to store. Meanwhile other tournaments go on.
#[tokio::test]
async fn an_edition_opens_while_another_tournament_stores_one() {
    let database = Database::new().await;
    let queue = database.queue();
    let slow = tournament_file(gomoku::game(), "");
    let slow = create_tournament(&database, &slow, 4).await;
    let quick = tournament_file(tricks::game(), "");
    let quick = create_tournament(&database, &quick, 4).await;
    // The first edition waits until it is decided whether its first lot exists already.
    let mut blocker = database.pool.begin().await.unwrap();
    let lot = "
        INSERT INTO lots (tournament, number, count, expected_ms, score_len)
        VALUES ($1, 0, 1, 1, 2)";
    sqlx::query(lot).bind(slow.id).execute(&mut *blocker).await.unwrap();
    let opening = tokio::spawn({
        let queue = queue.clone();
        async move { open_edition(&queue, &slow).await }
    });
    let is_waiting = async || database.has_waiting_session().await;
    wait_until("the first edition is being stored", is_waiting).await;
    let opened = open_edition(&queue, &quick).await.unwrap();
    assert_eq!(opened.matches, 6);
    assert!(!opening.is_finished(), "the first edition still waits");
    blocker.rollback().await.unwrap();
    assert_eq!(opening.await.unwrap().unwrap().matches, 12);
}
