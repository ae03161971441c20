//! Creation, start, cancellation and closing of tournaments, and the errors of each.

use arbiter_coordinator::db::editions::{self, EditionState};
use arbiter_coordinator::db::lots::{self, LotState};
use arbiter_coordinator::db::tournaments::TournamentState;
use arbiter_coordinator::db::{bots, versions};
use arbiter_coordinator::tournament::{IfRunning, OpenRequest, edition, lifecycle};
use arbiter_games::{Seed, bitwa, blackjack, gomoku, tricks, wojna};
use arbiter_proto::ids::TournamentId;

use crate::fixture::{cancel, close, file, made, open, running};
use crate::support::test_clock::AtTime as _;
use crate::support::{Database, START, poll_at_most};

#[tokio::test]
async fn a_tournament_name_is_unique() {
    let database = Database::new().await;
    let pool = &database.pool;
    let cup = file(gomoku::game(), "");
    let made = lifecycle::create(&mut pool.acquire().await.unwrap(), &cup, START).await.unwrap();
    assert_eq!((made.seed, made.settings.clone()), (Seed::of_text("stage"), cup.to_json()));
    assert_eq!(made.seed_hash, blake3::hash(&made.seed.0).as_bytes());
    assert_eq!(lifecycle::find(pool, "gomoku-cup").await.unwrap(), made);
    let taken = lifecycle::create(&mut pool.acquire().await.unwrap(), &cup, START)
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(taken, "a tournament gomoku-cup exists already; choose another name");
    let unknown = lifecycle::find(pool, "chess-cup").await.unwrap_err().to_string();
    let told = "there is no tournament chess-cup; `arbiter tournament list` shows all of them";
    assert_eq!(unknown, told);
}

#[tokio::test]
async fn a_seed_is_drawn_if_none_is_given() {
    let database = Database::new().await;
    let mut seeds = Vec::new();
    for name in ["a", "b"] {
        let mut cup = file(gomoku::game(), "");
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
            "cannot plan wojna-cup: too few bots for foursomes: 3; enter at least 4",
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
    for (game, bots, told) in cases {
        let tournament = made(&database, &file(game, ""), bots).await;
        assert_eq!(open(&queue, &tournament).await.unwrap_err().to_string(), told);
        // Nothing half-made is left behind.
        let left = editions::of_tournament(&database.pool, tournament.id).await.unwrap();
        assert_eq!(left, []);
    }
    let unknown =
        edition::open(&queue, OpenRequest::new(TournamentId(99), IfRunning::Refuse), START).await;
    assert_eq!(unknown.unwrap_err().to_string(), "there is no such tournament");
}

#[tokio::test]
async fn one_edition_runs_unless_it_is_replaced() {
    let database = Database::new().await;
    let queue = database.queue();
    let (tournament, first) = running(&database, &file(tricks::game(), ""), 5).await;
    assert_eq!((first.number, first.state, first.matches), (1, EditionState::Running, 10));
    let refused = open(&queue, &tournament).await.unwrap_err().to_string();
    let told = "edition 1 of tricks-cup is still running; wait for it, or cancel the tournament";
    assert_eq!(refused, told);
    let refused = close(&queue, tournament.id, START).await.unwrap_err().to_string();
    assert_eq!(refused, told);

    // A bot submits another version, one withdraws, and a new one comes.
    let pool = &database.pool;
    versions::store_bundle(pool, &[2; 32], b"better").await.unwrap();
    let all = bots::list(pool, tournament.id).await.unwrap();
    let better = versions::submit(pool, all[2].id, &[2; 32], START).await.unwrap();
    bots::withdraw(pool, all[0].id, START).await.unwrap();
    let new = bots::create(pool, tournament.id, None, "new", START).await.unwrap();
    let newest = versions::submit(pool, new, &[2; 32], START).await.unwrap();
    queue.lease_at(first.id, 1, START).await.unwrap();
    let second = edition::open(&queue, OpenRequest::new(tournament.id, IfRunning::Replace), START)
        .await
        .unwrap();
    assert_eq!((second.number, second.state, second.matches), (2, EditionState::Running, 10));
    let entrants = editions::entrants(pool, second.id).await.unwrap();
    let versions: Vec<_> = entrants.iter().map(|entrant| entrant.version).collect();
    assert_eq!((entrants.len(), versions[1], versions[4]), (5, better, newest));
    assert_eq!(entrants[0].bot, all[1].id);
    let first = editions::get(pool, first.id).await.unwrap().unwrap();
    assert_eq!(first.state, EditionState::Cancelled);
    let census = lots::census(pool, first.id).await.unwrap();
    assert!(census.iter().all(|line| line.state == LotState::Cancelled), "{census:?}");
}

#[tokio::test]
async fn concurrent_starts_open_one_edition() {
    let database = Database::new().await;
    let queue = database.queue();
    let tournament = made(&database, &file(gomoku::game(), ""), 6).await;
    let tries = [(); 4].map(|()| open(&queue, &tournament));
    let [a, b, c, d] = tries;
    let (a, b, c, d) = tokio::join!(a, b, c, d);
    let opened = [a, b, c, d].into_iter().flatten().count();
    assert_eq!(opened, 1);
    assert_eq!(database.number("SELECT count(*) FROM matches").await, 30);
}

/// The client may disconnect: an edition opens as a whole or not at all.
#[tokio::test]
async fn an_edition_opens_even_if_the_client_disconnects() {
    let database = Database::new().await;
    let queue = database.queue();
    let tournament = made(&database, &file(gomoku::game(), ""), 6).await;
    assert!(poll_at_most(1, open(&queue, &tournament)).await.is_none());
    while database.number("SELECT count(*) FROM editions WHERE state = 'running'").await == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(database.number("SELECT count(*) FROM lots").await, 30);
}

#[tokio::test]
async fn cancelling_a_tournament_cancels_its_edition() {
    let database = Database::new().await;
    let queue = database.queue();
    let (tournament, edition) = running(&database, &file(bitwa::game(), ""), 4).await;
    let cancelled = cancel(&queue, tournament.id, START).await.unwrap();
    assert_eq!((cancelled.state, cancelled.ended_at), (TournamentState::Cancelled, Some(START)));
    assert_eq!(queue.lease_at(edition.id, 1, START).await.unwrap(), []);
    let over = "tournament bitwa-cup was cancelled; create another one";
    let again = cancel(&queue, tournament.id, START).await.unwrap_err().to_string();
    assert_eq!(again, over);
    assert_eq!(open(&queue, &tournament).await.unwrap_err().to_string(), over);
    let unknown = close(&queue, TournamentId(99), START).await.unwrap_err().to_string();
    assert_eq!(unknown, "there is no such tournament");
}

#[tokio::test]
async fn a_closed_tournament_opens_no_edition() {
    let database = Database::new().await;
    let queue = database.queue();
    let tournament = made(&database, &file(wojna::game(), ""), 4).await;
    let unplayed = close(&queue, tournament.id, START).await.unwrap_err().to_string();
    assert!(unplayed.starts_with("no edition of wojna-cup is complete"), "{unplayed}");
    let edition = editions::create(&database.pool, tournament.id, 1, false, START).await.unwrap();
    let statement = "
        UPDATE editions SET state = 'complete', matches = 1, ended_at = created_at WHERE id = $1";
    sqlx::query(statement).bind(edition.0).execute(&database.pool).await.unwrap();
    let closed = close(&queue, tournament.id, START).await.unwrap();
    assert_eq!((closed.state, closed.seed), (TournamentState::Closed, tournament.seed));
    let over = "tournament wojna-cup was closed; create another one";
    assert_eq!(open(&queue, &tournament).await.unwrap_err().to_string(), over);
}
