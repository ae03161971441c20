//! The assignment of lots to workers.

use arbiter_coordinator::db::editions::Edition;
use arbiter_coordinator::db::{bots, versions};
use arbiter_coordinator::queue::{Dispatcher, LeasedLot, Queue};
use arbiter_coordinator::tournament::lot_assignment::deal_seed;
use arbiter_coordinator::tournament::{AssignmentBuilder, TournamentFile};
use arbiter_games::{Games, bitwa, gomoku, tricks, wojna};
use arbiter_proto::ids::{EditionId, MatchNumber};
use arbiter_proto::settings::Settings;
use arbiter_proto::v1;
use tokio::task::JoinSet;

use crate::fixture::{planned_matches, start_tournament, tournament_file};
use crate::play::params;
use crate::support::test_clock::AtTime as _;
use crate::support::{Database, START, report};

/// The next lot, as the worker receives it.
async fn next_lot(queue: &Queue, assignments: &AssignmentBuilder) -> v1::Lot {
    let (dispatcher, allocator) = Dispatcher::new(queue.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(allocator.run(std::future::pending(), |error| panic!("{error}")));
    let work = dispatcher.next().await.unwrap().into_work().unwrap();
    assignments.assign_lot(work, 60_000, &assignments.state_budget()).await.unwrap().lot
}

/// Starts a tournament in a new database.
async fn start(file: &TournamentFile, bots: i32) -> (Database, Edition, AssignmentBuilder) {
    let database = Database::new().await;
    let (_, edition) = start_tournament(&database, file, bots).await;
    let assignments = AssignmentBuilder::new(database.pool.clone(), Games::built_in());
    (database, edition, assignments)
}

#[tokio::test]
async fn a_lot_contains_everything_needed_to_play_it() {
    let file = tournament_file(tricks::game(), "expected = \"1s\"\n[limits]\nmemory = \"1GB\"");
    let (database, edition, assignments) = start(&file, 20).await;
    let lot = next_lot(&database.queue(), &assignments).await;
    let lease = lot.lease.unwrap();
    assert_eq!((lease.tournament, lease.attempt), (edition.tournament.0, 1));
    assert_eq!((lot.game.as_str(), lot.lease_ms, lot.expected_ms), ("tricks", 60_000, 2000));
    let settings: Settings = serde_json::from_str(&lot.settings).unwrap();
    assert_eq!(settings, file.settings());
    let planned = planned_matches(&database, edition.id).await;
    assert_eq!(lot.matches.len(), 2);
    for assigned in lot.matches {
        let planned_match = &planned[usize::try_from(assigned.number).unwrap()];
        assert_eq!(assigned.seed, deal_seed(file.seed.unwrap(), planned_match.seed_key).0);
        assert_eq!(assigned.params, "");
        let seats = planned_match.seats.0.iter().map(|entrant| v1::Seat {
            // The first version has the number 1, and its bot the name bot-0.
            bot: format!("bot-{}", entrant.0 - 1),
            digest: vec![1; 32],
            files: Vec::new(),
            program: Vec::new(),
        });
        assert_eq!(assigned.seats, seats.collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn each_match_of_bitwa_has_its_board() {
    let custom_board = "3 2 9 1 #A. .a#";
    let lines =
        format!("[params]\nrounds = 7\n[schedule]\nboards = [\"maraton\", \"{custom_board}\"]");
    let file = tournament_file(bitwa::game(), &lines);
    let (database, edition, assignments) = start(&file, 3).await;
    let planned = planned_matches(&database, edition.id).await;
    for _ in 0..6 {
        let lot = next_lot(&database.queue(), &assignments).await;
        let settings: Settings = serde_json::from_str(&lot.settings).unwrap();
        for assigned in &lot.matches {
            let match_params = params(&bitwa::game(), &settings, assigned).values();
            let board = planned[usize::try_from(assigned.number).unwrap()].board.unwrap();
            let text = ["maraton", custom_board][usize::try_from(board).unwrap()];
            assert_eq!(match_params.get("board"), Some(&arbiter_games::Value::from(text)));
            assert!(match_params.get("rounds").is_some());
        }
    }
}

/// The files of a bot go to its seat in the next match.
#[tokio::test]
async fn seats_begin_with_the_files_of_their_bots() {
    let (database, edition, assignments) = start(&tournament_file(gomoku::game(), ""), 2).await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let first = next_lot(&queue, &assignments).await;
    assert_eq!(first.matches[0].seats.len(), 2);
    assert!(first.matches[0].seats.iter().all(|seat| seat.files.is_empty()));
    assert_eq!(queue.lease_at(edition.tournament, 1, START).await.unwrap(), []);
    let lease = first.lease.unwrap().try_into().unwrap();
    let leased = LeasedLot {
        lease,
        edition: Some(edition.id),
        count: 1,
        score_len: 2,
        expected_ms: 1,
        holder: None,
    };
    let mut report_with_files = report(&leased, worker);
    report_with_files.files = vec![(MatchNumber(0), 1, b"mine".to_vec())];
    crate::support::report_all(&queue, &[report_with_files]).await;
    let second = next_lot(&queue, &assignments).await;
    let seats = |lot: &v1::Lot| {
        let seats = lot.matches[0].seats.iter();
        seats.map(|seat| (seat.bot.clone(), seat.files.clone())).collect::<Vec<_>>()
    };
    let first_seats = seats(&first);
    let second_seats = seats(&second);
    assert_eq!(second_seats[1], (first_seats[0].0.clone(), b"mine".to_vec()));
    assert_eq!(second_seats[0], (first_seats[1].0.clone(), Vec::new()));
}

/// Later submissions do not change the versions of an edition.
#[tokio::test]
async fn an_edition_plays_the_versions_it_was_opened_with() {
    let (database, edition, assignments) = start(&tournament_file(wojna::game(), ""), 5).await;
    let bots = bots::list(&database.pool, edition.tournament).await.unwrap();
    versions::store_bundle(&database.pool, &[2; 32], b"better").await.unwrap();
    for bot in bots {
        versions::submit(&database.pool, bot.id, &[2; 32], START).await.unwrap();
    }
    let lot = next_lot(&database.queue(), &assignments).await;
    assert_eq!(lot.matches[0].seats.len(), 4);
    assert!(lot.matches[0].seats.iter().all(|seat| seat.digest == [1; 32]));
}

#[tokio::test]
async fn inconsistent_lots_are_not_assigned() {
    let (database, edition, assignments) = start(&tournament_file(tricks::game(), ""), 3).await;
    let other_assignments = AssignmentBuilder::new(database.pool.clone(), Games::built_in());
    let memory = assignments.state_budget();
    let (dispatcher, allocator) = Dispatcher::new(database.queue());
    let mut tasks = JoinSet::new();
    tasks.spawn(allocator.run(std::future::pending(), |error| panic!("{error}")));
    let mut work = dispatcher.next().await.unwrap().into_work().unwrap();
    work.matches[0].seats.0[1].0 = 77;
    let error = assignments.assign_lot(work.clone(), 1, &memory).await.unwrap_err().to_string();
    assert_eq!(
        error,
        format!("lot {} is inconsistent: there is no entrant 77", work.lot.lease.lot)
    );
    work.matches[0].seats.0[1].0 = 1;
    work.matches[0].board = Some(3);
    let error = assignments.assign_lot(work.clone(), 1, &memory).await.unwrap_err().to_string();
    assert!(error.ends_with("there is no board 3"), "{error}");
    let other = EditionId(edition.id.0 + 1);
    work.lot.edition = Some(other);
    let error = other_assignments.assign_lot(work, 1, &memory).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot read edition {other}")), "{error}");
}
