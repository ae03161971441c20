//! Public beacons: editions before the value is given have the committed seed, and the final one is
//! played anew with the seed keyed with it.

use std::collections::HashSet;
use std::fmt::Display;

use arbiter_coordinator::db::editions::{self, Edition, EditionState};
use arbiter_coordinator::db::tournaments::{self, Tournament, TournamentState};
use arbiter_coordinator::db::{bots, versions};
use arbiter_coordinator::tournament::beacon::{self, keyed_seed};
use arbiter_coordinator::tournament::derivation::EditionSource;
use arbiter_coordinator::tournament::lot_assignment::deal_seed;
use arbiter_coordinator::tournament::{
    BeaconError, IfRunning, OpenRequest, TournamentFile, edition, lifecycle,
};
use arbiter_games::{Games, Seed, bitwa, blackjack, gomoku, tricks, wojna};
use arbiter_proto::ids::EditionId;
use time::{Duration, OffsetDateTime};

use crate::fixture::{cancel, close, file, made, matches, open, running};
use crate::play::{Troupe, all};
use crate::support::test_clock::AtTime as _;
use crate::support::{Database, START};

const BEACON: &str = "beacon = \"Bitcoin block 900000 hash\"\n";
const CLOSES: &str = "[submissions]\ncloses = \"2026-01-02T12:00:00Z\"\n";
const VALUE: &str = "1a17d";
/// The same as its source publishes it.
const PUBLISHED: &str = " 0x00000000000000000001A17D\n";
/// When entry has closed.
const CLOSED: OffsetDateTime = START.saturating_add(Duration::DAY);

/// A tournament of this game whose file names a beacon.
fn with_beacon(game: impl Display, lines: &str) -> TournamentFile {
    file(game, &format!("{BEACON}{lines}\n{CLOSES}"))
}

async fn now(database: &Database, tournament: &Tournament) -> Tournament {
    tournaments::get(&database.pool, tournament.id).await.unwrap().unwrap()
}

/// Opens an edition with what is submitted by now, and plays what of it was not played before.
async fn replay(database: &Database, tournament: &Tournament) -> Edition {
    let opened = open(&database.queue(), tournament).await.unwrap();
    play(database, &opened).await;
    opened
}

async fn play(database: &Database, edition: &Edition) {
    let troupe = Troupe::new(database, edition.id, "beacon").await;
    let closed = edition.created_at >= CLOSED;
    let troupe = if closed { troupe.at(|| CLOSED) } else { troupe };
    troupe.play().await;
    let ended = editions::get(&database.pool, edition.id).await.unwrap().unwrap();
    assert_eq!(ended.state, EditionState::Complete);
}

/// How many results of an edition were taken over.
async fn taken(database: &Database, edition: EditionId) -> i64 {
    let statement =
        "SELECT count(*) FROM results WHERE edition = $1 AND source_edition IS NOT NULL";
    sqlx::query_scalar(statement).bind(edition.0).fetch_one(&database.pool).await.unwrap()
}

/// What the matches of an edition follow from gives the matches that are stored.
async fn derived(database: &Database, tournament: &Tournament, edition: &Edition) {
    let file = TournamentFile::from_json(&Games::built_in(), &tournament.settings).unwrap();
    let mut connection = database.pool.acquire().await.unwrap();
    let source = EditionSource::of_edition(&mut connection, tournament, &file, edition).await;
    let source = source.unwrap();
    // As others are told, who have nothing else.
    let text = serde_json::to_string(&source).unwrap();
    assert_eq!(serde_json::from_str::<EditionSource>(&text).unwrap(), source);
    let source = EditionSource::try_from(arbiter_proto::v1::EditionSource::from(source)).unwrap();
    let played = all(database, edition.id).await;
    let mut found = Vec::new();
    let see = |due: arbiter_coordinator::db::matches::Match| {
        let place = played.binary_search_by_key(&due.number, |played| played.number);
        found.push(due);
        Ok(place.ok().map(|place| played[place].clone()))
    };
    source.derive(&file, see).unwrap();
    assert_eq!(found, matches(database, edition.id).await);
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
        let (tournament, first) = running(&database, &with_beacon(&game, lines), 6).await;
        play(&database, &first).await;
        let second = replay(&database, &tournament).await;
        let second = editions::get(&database.pool, second.id).await.unwrap().unwrap();
        assert_eq!(taken(&database, second.id).await, second.matches, "{game}: reuse goes on");

        let given = beacon::set_value(&queue, tournament.id, VALUE, None, CLOSED).await.unwrap();
        let (after, opened) = given;
        let opened = opened.unwrap();
        assert_eq!((opened.number, opened.state), (3, EditionState::Running));
        assert_eq!(taken(&database, opened.id).await, 0, "{game}: nothing is taken over");
        play(&database, &opened).await;
        assert_eq!(taken(&database, opened.id).await, 0, "{game}: nor later");

        let committed = Seed::of_text("stage");
        let keyed = keyed_seed(committed, VALUE);
        let seeds = [1, 2, 3, 4].map(|number| after.edition_seed(number));
        assert_eq!(seeds, [committed, committed, keyed, keyed]);
        assert_eq!((after.seed, after.next_seed()), (committed, keyed));
        assert_eq!(after.seed_hash, tournament.seed_hash);
        let dealt = async |edition: EditionId, seed: Seed| -> HashSet<Seed> {
            let planned = matches(&database, edition).await;
            planned.iter().map(|planned| deal_seed(seed, planned.seed_key)).collect()
        };
        let before = dealt(first.id, committed).await;
        assert!(before.is_disjoint(&dealt(opened.id, keyed).await), "{game}: all deals differ");

        let fourth = replay(&database, &tournament).await;
        let fourth = editions::get(&database.pool, fourth.id).await.unwrap().unwrap();
        assert_eq!(taken(&database, fourth.id).await, fourth.matches, "{game}: and goes on again");
        for edition in editions::of_tournament(&database.pool, tournament.id).await.unwrap() {
            derived(&database, &after, &edition).await;
        }
        let closed = close(&queue, tournament.id, CLOSED).await.unwrap();
        assert_eq!((closed.state, closed.seed), (TournamentState::Closed, committed));
    }
}

/// A value replaces the running edition, whose matches in play are cancelled.
#[tokio::test]
async fn a_beacon_value_replaces_the_running_edition() {
    let database = Database::new().await;
    let queue = database.queue();
    let (tournament, first) = running(&database, &with_beacon(tricks::game(), ""), 5).await;
    let held = queue.lease_at(first.id, 2, START).await.unwrap();
    assert_eq!(held.len(), 2);
    let (_, opened) = beacon::set_value(&queue, tournament.id, VALUE, None, CLOSED).await.unwrap();
    let opened = opened.unwrap();
    let first = editions::get(&database.pool, first.id).await.unwrap().unwrap();
    assert_eq!(first.state, EditionState::Cancelled);
    assert_eq!(database.number("SELECT count(*) FROM pending_reuse").await, 0);
    let going = "SELECT count(*) FROM lots WHERE edition = 1 AND state = 'leased'";
    assert_eq!(database.number(going).await, 0, "what was leased is of no use");
    let leased = queue.lease_at(opened.id, 64, CLOSED).await.unwrap();
    let count: i32 = leased.iter().map(|lot| lot.count).sum();
    assert_eq!(i64::from(count), opened.matches, "all matches are played");
}

#[tokio::test]
async fn a_beacon_value_before_the_first_edition_applies_to_all_editions() {
    let database = Database::new().await;
    let queue = database.queue();
    let tournament = made(&database, &with_beacon(bitwa::game(), ""), 4).await;
    let (after, opened) =
        beacon::set_value(&queue, tournament.id, VALUE, None, CLOSED).await.unwrap();
    assert_eq!((opened, after.beacon_value().unwrap().first_edition), (None, 1));
    let first = open(&queue, &tournament).await.unwrap();
    derived(&database, &after, &first).await;
    assert_eq!(after.edition_seed(1), keyed_seed(tournament.seed, VALUE));
}

#[tokio::test]
async fn a_beacon_value_is_set_once_and_only_after_entry_has_closed() {
    let database = Database::new().await;
    let queue = database.queue();
    let (tournament, first) = running(&database, &with_beacon(tricks::game(), ""), 4).await;
    let give = async |value: &str, at| {
        beacon::set_value(&queue, tournament.id, value, None, at).await.map_err(|e| e.to_string())
    };
    let early = give(VALUE, CLOSED - Duration::SECOND).await.unwrap_err();
    assert!(early.contains("has not closed") && early.contains("2026-01-02T12:00:00Z"), "{early}");
    for (value, told) in [
        ("", "1 to 1000"),
        (" \n", "1 to 1000"),
        ("a\nb", "on one line"),
        ("1a\u{200b}17d", "character 3"),
    ] {
        let refused = give(value, CLOSED).await.unwrap_err();
        assert!(refused.contains(told), "{refused}");
    }
    let long = give(&"x".repeat(1001), CLOSED).await.unwrap_err();
    assert!(long.contains("1 to 1000"), "{long}");
    play(&database, &first).await;
    let refused = close(&queue, tournament.id, CLOSED).await.unwrap_err().to_string();
    assert!(refused.contains("arbiter tournament beacon tricks-cup VALUE"), "{refused}");
    // The database refuses it as well, from every client.
    let statement = "UPDATE tournaments SET state = 'closed', ended_at = created_at";
    let refused = sqlx::query(statement).execute(&database.pool).await.unwrap_err().to_string();
    assert!(refused.contains("closed_tournament_has_beacon_value"), "{refused}");

    // All its spellings are one value, so that no organiser can choose between seeds.
    let (given, opened) = give(PUBLISHED, CLOSED).await.unwrap();
    assert_eq!(given.beacon_value().unwrap().text, VALUE);
    let refused = close(&queue, tournament.id, CLOSED).await.unwrap_err().to_string();
    assert!(refused.contains("is still running"), "{refused}");
    for again in [VALUE, PUBLISHED] {
        assert_eq!(give(again, CLOSED + Duration::HOUR).await.unwrap(), (given.clone(), None));
    }
    let other = give("00000000000000000001a17e", CLOSED).await.unwrap_err();
    assert!(other.contains(VALUE) && other.contains("never changes"), "{other}");
    assert_eq!(now(&database, &tournament).await, given);
    let noted = "SELECT count(*) FROM audit_log WHERE action = 'tournament beacon'";
    assert_eq!(database.number(noted).await, 1);
    play(&database, &opened.unwrap()).await;
    close(&queue, tournament.id, CLOSED).await.unwrap();
    let over = give(VALUE, CLOSED).await.unwrap_err();
    assert_eq!(over, "tournament tricks-cup was closed; create another one");
}

#[tokio::test]
async fn a_tournament_without_a_beacon_refuses_a_value() {
    let database = Database::new().await;
    let queue = database.queue();
    let (tournament, _) = running(&database, &file(tricks::game(), CLOSES), 4).await;
    let refused = beacon::set_value(&queue, tournament.id, VALUE, None, CLOSED).await.unwrap_err();
    assert!(matches!(refused, BeaconError::Unnamed { .. }), "{refused}");
    // One that was named is cancelled without a value, if it has to be.
    let mut other = with_beacon(tricks::game(), "");
    other.name = "other".to_owned();
    let (tournament, _) = running(&database, &other, 4).await;
    cancel(&queue, tournament.id, START).await.unwrap();
    // A beacon whose value may be known is none.
    other.name = "late".to_owned();
    let refused = lifecycle::create(&mut database.pool.acquire().await.unwrap(), &other, CLOSED)
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("may already be known"), "{refused}");
}

/// If the edition cannot open, the value is not stored.
#[tokio::test]
async fn a_beacon_value_is_stored_only_if_its_edition_opens() {
    let database = Database::new().await;
    let queue = database.queue();
    let (tournament, _) = running(&database, &with_beacon(wojna::game(), ""), 4).await;
    for bot in bots::list(&database.pool, tournament.id).await.unwrap() {
        bots::withdraw(&database.pool, bot.id, CLOSED).await.unwrap();
    }
    let refused = beacon::set_value(&queue, tournament.id, VALUE, None, CLOSED).await.unwrap_err();
    assert!(refused.to_string().contains("too few bots"), "{refused}");
    assert_eq!(now(&database, &tournament).await, tournament);
}

/// Extended plans of foursomes, with owners kept apart, follow from published data.
#[tokio::test]
async fn extended_plans_are_derived_from_published_data() {
    let database = Database::new().await;
    let queue = database.queue();
    let lines = format!("{BEACON}{CLOSES}separate_owners = true\n");
    let tournament = made(&database, &file(wojna::game(), &lines), 40).await;
    let statement = "
        INSERT INTO tokens (hash, role, name, created_at)
        SELECT sha256(n::text::bytea), 'player'::role, 'p' || n, $1 FROM generate_series(1, 3) n";
    sqlx::query(statement).bind(START).execute(&database.pool).await.unwrap();
    let statement = "
        UPDATE bots SET owner = (SELECT max(id) FROM tokens) - bots.id % 3 WHERE bots.id % 4 > 0";
    sqlx::query(statement).execute(&database.pool).await.unwrap();
    let first = open(&queue, &tournament).await.unwrap();
    derived(&database, &tournament, &first).await;
    let all = bots::list(&database.pool, tournament.id).await.unwrap();
    for number in [3, 7] {
        bots::withdraw(&database.pool, all[number].id, START + Duration::HOUR).await.unwrap();
    }
    let new = bots::create(&database.pool, tournament.id, None, "new", START).await.unwrap();
    versions::submit(&database.pool, new, &[1; 32], START).await.unwrap();
    let second = edition::open(&queue, OpenRequest::new(tournament.id, IfRunning::Replace), START)
        .await
        .unwrap();
    let lineage = editions::plan_history_of(&database.pool, second.id).await.unwrap().unwrap();
    assert_eq!(lineage["steps"].as_array().unwrap().len(), 1, "{lineage}");
    derived(&database, &tournament, &second).await;
    let (after, third) =
        beacon::set_value(&queue, tournament.id, VALUE, None, CLOSED).await.unwrap();
    let third = third.unwrap();
    let lineage = editions::plan_history_of(&database.pool, third.id).await.unwrap().unwrap();
    assert_eq!(lineage["steps"].as_array().unwrap().len(), 0, "planned from the beginning");
    derived(&database, &after, &third).await;
    // A value published by others may be anything.
    let file = TournamentFile::from_json(&Games::built_in(), &after.settings).unwrap();
    let mut connection = database.pool.acquire().await.unwrap();
    let source = EditionSource::of_edition(&mut connection, &after, &file, &third).await.unwrap();
    for (key, value) in [("base", "99999999999999999"), ("bots", "[]"), ("steps", "[{}]")] {
        let mut forged = source.clone();
        forged.lineage.as_mut().unwrap()[key] = serde_json::from_str(value).unwrap();
        forged.derive(&file, |_| Ok(None)).unwrap_err();
    }
    let forged = EditionSource { entrants: usize::MAX, ..source };
    forged.derive(&file, |_| Ok(None)).unwrap_err();
}
