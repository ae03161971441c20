//! Public beacons. Editions before the value is set use the committed seed. The final edition is
//! played again with a seed that is keyed with the value.

use std::collections::HashSet;
use std::fmt::Display;

use arbiter_coordinator::db::editions::{self, Edition, EditionState};
use arbiter_coordinator::db::tournaments::{self, Tournament, TournamentState};
use arbiter_coordinator::db::{bots, plan_histories, versions};
use arbiter_coordinator::tournament::beacon::{self, keyed_seed};
use arbiter_coordinator::tournament::lot_assignment::deal_seed;
use arbiter_coordinator::tournament::plan_derivation::EditionSource;
use arbiter_coordinator::tournament::{
    BeaconError, IfRunning, OpenRequest, TournamentFile, lifecycle, open_edition,
};
use arbiter_games::{Games, Seed, bitwa, blackjack, gomoku, tricks, wojna};
use arbiter_proto::ids::EditionId;
use time::{Duration, OffsetDateTime};

use crate::fixture::{
    cancel_tournament, close_tournament, create_tournament, listed_matches, listed_results,
    open_edition, planned_matches, shared_matches, start_tournament, tournament_file,
};
use crate::play::RandomWorkers;
use crate::support::test_clock::AtTime as _;
use crate::support::{Database, START};

const BEACON: &str = "beacon = \"Bitcoin block 900000 hash\"\n";
const CLOSES: &str = "[submissions]\ncloses = \"2026-01-02T12:00:00Z\"\n";
const VALUE: &str = "1a17d";
/// The same value in the spelling of its source.
const PUBLISHED: &str = " 0x00000000000000000001A17D\n";
/// The time at which entry closes.
const CLOSED: OffsetDateTime = START.saturating_add(Duration::DAY);

/// A tournament of this game whose file names a beacon.
fn with_beacon(game: impl Display, lines: &str) -> TournamentFile {
    tournament_file(game, &format!("{BEACON}{lines}\n{CLOSES}"))
}

/// The current row of a tournament.
async fn current_row(database: &Database, tournament: &Tournament) -> Tournament {
    tournaments::get(&database.pool, tournament.id).await.unwrap().unwrap()
}

/// Opens an edition with the newest versions, and plays it to its end.
async fn play_next_edition(database: &Database, tournament: &Tournament) -> Edition {
    let edition = open_edition(&database.queue(), tournament).await.unwrap();
    play_edition(database, &edition).await;
    edition
}

/// Plays an edition to its end.
async fn play_edition(database: &Database, edition: &Edition) {
    let workers = RandomWorkers::new(database, edition.id, "beacon").await;
    let is_entry_closed = edition.created_at >= CLOSED;
    let workers = if is_entry_closed { workers.with_clock(|| CLOSED) } else { workers };
    workers.play().await;
    let row = editions::get(&database.pool, edition.id).await.unwrap().unwrap();
    assert_eq!(row.state, EditionState::Complete);
}

/// Checks that the stored matches of an edition can be derived from its published source.
async fn check_derivation(database: &Database, tournament: &Tournament, edition: &Edition) {
    let file = TournamentFile::from_json(&Games::built_in(), &tournament.settings).unwrap();
    let mut connection = database.pool.acquire().await.unwrap();
    let source =
        EditionSource::of_edition(&mut connection, tournament, &file, edition).await.unwrap();
    // The source survives the conversion to JSON and to the published message.
    let text = serde_json::to_string(&source).unwrap();
    assert_eq!(serde_json::from_str::<EditionSource>(&text).unwrap(), source);
    let message = arbiter_proto::v1::EditionSource::from(source);
    let published = EditionSource::try_from(message).unwrap();
    let results = listed_results(database, tournament, edition.id).await;
    let mut derived = Vec::new();
    let visit = |planned: arbiter_coordinator::db::matches::Match| {
        let index = results.binary_search_by_key(&planned.number, |result| result.number);
        derived.push(planned);
        Ok::<_, String>(index.ok().map(|index| results[index].clone()))
    };
    published.derive(&file, visit).unwrap();
    assert_eq!(derived, listed_matches(database, tournament, edition.id).await);
}

#[tokio::test]
async fn the_final_edition_is_played_again_with_the_keyed_seed() {
    for (game, lines) in [
        (wojna::game(), ""),
        (bitwa::game(), "[schedule]\nboards = [\"pole\", \"kolosy\"]"),
        (tricks::game(), ""),
        (blackjack::game(), "[schedule]\nepisodes = 3"),
        (gomoku::game(), "state = \"none\""),
        (gomoku::game(), "state = \"tournament\""),
    ] {
        let database = Database::new().await;
        let queue = database.queue();
        let (tournament, first) = start_tournament(&database, &with_beacon(&game, lines), 6).await;
        play_edition(&database, &first).await;
        let second = play_next_edition(&database, &tournament).await;
        let second = editions::get(&database.pool, second.id).await.unwrap().unwrap();
        assert_eq!(
            shared_matches(&database, second.id).await,
            second.matches,
            "{game}: all matches are shared before the value is set"
        );

        let (after, opened) =
            beacon::set_value(&queue, tournament.id, VALUE, None, CLOSED).await.unwrap();
        let third = opened.unwrap();
        assert_eq!((third.number, third.state), (3, EditionState::Running));
        assert_eq!(
            shared_matches(&database, third.id).await,
            0,
            "{game}: no match is shared after the value is set"
        );
        play_edition(&database, &third).await;
        assert_eq!(
            shared_matches(&database, third.id).await,
            0,
            "{game}: no match is shared during play"
        );

        let committed = Seed::of_text("stage");
        let keyed = keyed_seed(committed, VALUE);
        let seeds = [1, 2, 3, 4].map(|number| after.edition_seed(number));
        assert_eq!(seeds, [committed, committed, keyed, keyed]);
        assert_eq!((after.seed, after.next_seed()), (committed, keyed));
        assert_eq!(after.seed_hash, tournament.seed_hash);
        let deals = async |edition: EditionId, seed: Seed| -> HashSet<Seed> {
            let planned = planned_matches(&database, edition).await;
            planned.iter().map(|planned| deal_seed(seed, planned.seed_key)).collect()
        };
        let old_deals = deals(first.id, committed).await;
        assert!(old_deals.is_disjoint(&deals(third.id, keyed).await), "{game}: all deals differ");

        let fourth = play_next_edition(&database, &tournament).await;
        let fourth = editions::get(&database.pool, fourth.id).await.unwrap().unwrap();
        assert_eq!(
            shared_matches(&database, fourth.id).await,
            fourth.matches,
            "{game}: matches with the keyed seed are shared"
        );
        for edition in editions::of_tournament(&database.pool, tournament.id).await.unwrap() {
            check_derivation(&database, &after, &edition).await;
        }
        let closed_tournament = close_tournament(&queue, tournament.id, CLOSED).await.unwrap();
        assert_eq!(
            (closed_tournament.state, closed_tournament.seed),
            (TournamentState::Closed, committed)
        );
    }
}

/// A beacon value replaces the running edition and cancels its matches in play.
#[tokio::test]
async fn a_beacon_value_replaces_the_running_edition() {
    let database = Database::new().await;
    let queue = database.queue();
    let (tournament, first) =
        start_tournament(&database, &with_beacon(tricks::game(), ""), 5).await;
    let leased_before = queue.lease_at(tournament.id, 2, START).await.unwrap();
    assert_eq!(leased_before.len(), 2);
    let (_, opened) = beacon::set_value(&queue, tournament.id, VALUE, None, CLOSED).await.unwrap();
    let second = opened.unwrap();
    let first = editions::get(&database.pool, first.id).await.unwrap().unwrap();
    assert_eq!(first.state, EditionState::Cancelled);
    let leased_lots = "SELECT count(*) FROM lots WHERE state = 'leased'";
    assert_eq!(
        database.number(leased_lots).await,
        0,
        "leased lots of the first edition are cancelled"
    );
    let leased = queue.lease_at(tournament.id, 64, CLOSED).await.unwrap();
    let count: i32 = leased.iter().map(|lot| lot.count).sum();
    assert_eq!(i64::from(count), second.matches, "all matches of the second edition can be leased");
}

#[tokio::test]
async fn a_beacon_value_before_the_first_edition_applies_to_all_editions() {
    let database = Database::new().await;
    let queue = database.queue();
    let tournament = create_tournament(&database, &with_beacon(bitwa::game(), ""), 4).await;
    let (after, opened) =
        beacon::set_value(&queue, tournament.id, VALUE, None, CLOSED).await.unwrap();
    assert_eq!((opened, after.beacon_value().unwrap().first_edition), (None, 1));
    let first = open_edition(&queue, &tournament).await.unwrap();
    check_derivation(&database, &after, &first).await;
    assert_eq!(after.edition_seed(1), keyed_seed(tournament.seed, VALUE));
}

#[tokio::test]
async fn a_beacon_value_is_set_once_and_only_after_entry_has_closed() {
    let database = Database::new().await;
    let queue = database.queue();
    let (tournament, first) =
        start_tournament(&database, &with_beacon(tricks::game(), ""), 4).await;
    let set_value = async |value: &str, at| {
        beacon::set_value(&queue, tournament.id, value, None, at).await.map_err(|e| e.to_string())
    };
    let error = set_value(VALUE, CLOSED - Duration::SECOND).await.unwrap_err();
    assert!(error.contains("has not closed") && error.contains("2026-01-02T12:00:00Z"), "{error}");
    for (value, expected) in [
        ("", "1 to 1000"),
        (" \n", "1 to 1000"),
        ("a\nb", "on one line"),
        ("1a\u{200b}17d", "character 3"),
    ] {
        let error = set_value(value, CLOSED).await.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let error = set_value(&"x".repeat(1001), CLOSED).await.unwrap_err();
    assert!(error.contains("1 to 1000"), "{error}");
    play_edition(&database, &first).await;
    let error = close_tournament(&queue, tournament.id, CLOSED).await.unwrap_err().to_string();
    assert!(error.contains("arbiter tournament beacon tricks-cup VALUE"), "{error}");
    // The database refuses it as well.
    let statement = "UPDATE tournaments SET state = 'closed', ended_at = created_at";
    let error = sqlx::query(statement).execute(&database.pool).await.unwrap_err().to_string();
    assert!(error.contains("closed_tournament_has_beacon_value"), "{error}");

    // All spellings are one value, so that no organiser can choose between seeds.
    let (tournament_after, opened) = set_value(PUBLISHED, CLOSED).await.unwrap();
    assert_eq!(tournament_after.beacon_value().unwrap().text, VALUE);
    let error = close_tournament(&queue, tournament.id, CLOSED).await.unwrap_err().to_string();
    assert!(error.contains("is still running"), "{error}");
    for spelling in [VALUE, PUBLISHED] {
        assert_eq!(
            set_value(spelling, CLOSED + Duration::HOUR).await.unwrap(),
            (tournament_after.clone(), None)
        );
    }
    let error = set_value("00000000000000000001a17e", CLOSED).await.unwrap_err();
    assert!(error.contains(VALUE) && error.contains("never changes"), "{error}");
    assert_eq!(current_row(&database, &tournament).await, tournament_after);
    let audit_entries = "SELECT count(*) FROM audit_log WHERE action = 'tournament beacon'";
    assert_eq!(database.number(audit_entries).await, 1);
    play_edition(&database, &opened.unwrap()).await;
    close_tournament(&queue, tournament.id, CLOSED).await.unwrap();
    let error = set_value(VALUE, CLOSED).await.unwrap_err();
    assert_eq!(error, "tournament tricks-cup was closed; create another one");
}

#[tokio::test]
async fn a_tournament_without_a_beacon_refuses_a_value() {
    let database = Database::new().await;
    let queue = database.queue();
    let (tournament, _) =
        start_tournament(&database, &tournament_file(tricks::game(), CLOSES), 4).await;
    let error = beacon::set_value(&queue, tournament.id, VALUE, None, CLOSED).await.unwrap_err();
    assert!(matches!(error, BeaconError::NoBeacon { .. }), "{error}");
    // A tournament with a beacon can be cancelled before its value is set.
    let mut other = with_beacon(tricks::game(), "");
    other.name = "other".to_owned();
    let (tournament, _) = start_tournament(&database, &other, 4).await;
    cancel_tournament(&queue, tournament.id, START).await.unwrap();
    // A tournament cannot have a beacon whose value may already be known.
    other.name = "late".to_owned();
    let error = lifecycle::create(&mut database.pool.acquire().await.unwrap(), &other, CLOSED)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("may already be known"), "{error}");
}

/// If the edition cannot open, the value is not stored.
#[tokio::test]
async fn a_beacon_value_is_stored_only_if_its_edition_opens() {
    let database = Database::new().await;
    let queue = database.queue();
    let (tournament, _) = start_tournament(&database, &with_beacon(wojna::game(), ""), 4).await;
    for bot in bots::list(&database.pool, tournament.id).await.unwrap() {
        bots::withdraw(&database.pool, bot.id, CLOSED).await.unwrap();
    }
    let error = beacon::set_value(&queue, tournament.id, VALUE, None, CLOSED).await.unwrap_err();
    assert!(error.to_string().contains("too few bots"), "{error}");
    assert_eq!(current_row(&database, &tournament).await, tournament);
}

/// Extended plans of foursomes with separate owners can be derived from published data.
#[tokio::test]
async fn extended_plans_are_derived_from_published_data() {
    let database = Database::new().await;
    let queue = database.queue();
    let lines = format!("{BEACON}{CLOSES}separate_owners = true\n");
    let tournament =
        create_tournament(&database, &tournament_file(wojna::game(), &lines), 40).await;
    let statement = "
        INSERT INTO tokens (hash, role, name, created_at)
        SELECT sha256(n::text::bytea), 'player'::role, 'p' || n, $1 FROM generate_series(1, 3) n";
    sqlx::query(statement).bind(START).execute(&database.pool).await.unwrap();
    let statement = "
        UPDATE bots SET owner = (SELECT max(id) FROM tokens) - bots.id % 3 WHERE bots.id % 4 > 0";
    sqlx::query(statement).execute(&database.pool).await.unwrap();
    let first = open_edition(&queue, &tournament).await.unwrap();
    check_derivation(&database, &tournament, &first).await;
    let bots_in_order = bots::list(&database.pool, tournament.id).await.unwrap();
    for number in [3, 7] {
        bots::withdraw(&database.pool, bots_in_order[number].id, START + Duration::HOUR)
            .await
            .unwrap();
    }
    let new_bot = bots::create(&database.pool, tournament.id, None, "new", START).await.unwrap();
    versions::submit(&database.pool, new_bot, &[1; 32], START).await.unwrap();
    let second =
        open_edition::open(&queue, OpenRequest::new(tournament.id, IfRunning::Replace), START)
            .await
            .unwrap();
    let history = plan_histories::of_edition(&database.pool, second.id).await.unwrap().unwrap();
    assert_eq!(history["steps"].as_array().unwrap().len(), 1, "{history}");
    check_derivation(&database, &tournament, &second).await;
    let (after, opened) =
        beacon::set_value(&queue, tournament.id, VALUE, None, CLOSED).await.unwrap();
    let third = opened.unwrap();
    let history = plan_histories::of_edition(&database.pool, third.id).await.unwrap().unwrap();
    assert_eq!(history["steps"].as_array().unwrap().len(), 0, "the final edition has a new plan");
    check_derivation(&database, &after, &third).await;
    // A forged source causes an error, not a panic.
    let file = TournamentFile::from_json(&Games::built_in(), &after.settings).unwrap();
    let mut connection = database.pool.acquire().await.unwrap();
    let source = EditionSource::of_edition(&mut connection, &after, &file, &third).await.unwrap();
    for (key, value) in [("base", "99999999999999999"), ("bots", "[]"), ("steps", "[{}]")] {
        let mut forged = source.clone();
        forged.lineage.as_mut().unwrap()[key] = serde_json::from_str(value).unwrap();
        forged.derive(&file, |_| Ok::<_, String>(None)).unwrap_err();
    }
    let forged = EditionSource { entrants: usize::MAX, ..source };
    forged.derive(&file, |_| Ok::<_, String>(None)).unwrap_err();
}
