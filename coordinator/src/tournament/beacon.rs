//! Public beacons: values that an organiser cannot have known when they committed to a seed.
//!
//! A tournament file may name a value that others publish after entry has closed, such as the hash
//! of a block or the numbers of a lottery. Until the value is known, editions use the committed
//! seed, and share matches as usual. Then an edition opens whose seed is keyed with the value.
//! It plays every match again. So an organiser has no advantage from trying many seeds.

use arbiter_games::{Games, Seed};
use arbiter_proto::ids::{TokenId, TournamentId};
use arbiter_proto::v1;
use serde_json::json;
use sqlx::{Error, PgConnection};
use time::OffsetDateTime;
use tokio::runtime::Handle;

use super::PlanMode;
use super::file::{Moment, Submissions};
use super::lifecycle::{self, LifecycleError};
use super::open_edition::{self, OpenError};
use crate::db::editions::{self, Edition};
use crate::db::tournaments::{self, Tournament};
use crate::db::{self, audit_log, edition_triggers};
use crate::queue::Queue;

/// The longest name of a beacon, in characters.
pub const MAX_NAME: usize = 200;
/// The longest value of a beacon, in characters.
pub const MAX_VALUE: usize = 1000;

/// The seed of the editions that use a beacon: the BLAKE3 hash, keyed with the committed seed, of
/// `beacon/` and the value as [`canonical`] spells it.
pub fn keyed_seed(committed: Seed, value: &str) -> Seed {
    committed.derive(&format!("beacon/{value}"))
}

/// The origin of an edition's seed, for people; number 0 means the next edition.
pub fn seed_origin(beacon: Option<&v1::Beacon>, edition: i32) -> String {
    let Some(v1::Beacon { name, value, first_edition, .. }) = beacon else {
        return "seed: chosen by the organiser; no public beacon".to_owned();
    };
    if value.is_empty() {
        format!(
            "seed: chosen by the organiser; the final edition is keyed with the public beacon \
             \"{name}\", awaited"
        )
    } else if edition == 0 || edition >= *first_edition {
        format!("seed: keyed with the public beacon \"{name}\", value \"{value}\"")
    } else {
        format!(
            "seed: chosen by the organiser; editions from {first_edition} on are keyed with the \
             public beacon \"{name}\", value \"{value}\""
        )
    }
}

/// Trims a text and checks that it is one line of 1 to `max` characters.
pub(super) fn single_line(text: &str, max: usize) -> Result<&str, String> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > max || text.chars().any(char::is_control) {
        return Err(format!("write 1 to {max} characters on one line"));
    }
    Ok(text)
}

/// The canonical spelling of a value: digits and ASCII letters in lower case, without a leading
/// `0x` and leading zeros. White space around the value is ignored. With two spellings of the same
/// value, an organiser could choose between two seeds.
///
/// # Errors
/// The position of the first invalid character, the character and the remedy.
pub fn canonical(text: &str) -> Result<String, String> {
    let value = single_line(text, MAX_VALUE)?;
    let invalid = (1..).zip(value.chars()).find(|(_, c)| !c.is_ascii_alphanumeric());
    if let Some((position, character)) = invalid {
        return Err(format!(
            "character {position} is {} (U+{:04X}); write ASCII letters and digits only, without \
             spaces and punctuation",
            describe_char(character),
            u32::from(character)
        ));
    }
    let lower = value.to_ascii_lowercase();
    let digits = lower.strip_prefix("0x").unwrap_or(&lower).trim_start_matches('0');
    Ok(if digits.is_empty() { "0" } else { digits }.to_owned())
}

/// Describes a character for people, since some characters are invisible.
fn describe_char(character: char) -> String {
    match character {
        ' ' => "a space".to_owned(),
        c if c.is_ascii_graphic() => format!("\"{c}\""),
        _ => "not an ASCII letter or digit".to_owned(),
    }
}

/// Why a beacon's value is refused.
#[derive(Debug, thiserror::Error)]
pub enum BeaconError {
    /// The tournament has ended or does not exist.
    #[error(transparent)]
    State(#[from] LifecycleError),
    /// The tournament names no beacon.
    #[error(
        "the tournament {0} has no beacon: a tournament file names one at creation, as in beacon = \
         \"Bitcoin block 900000 hash\""
    )]
    NoBeacon(String),
    /// Entry has not closed, so the value may still change who enters.
    #[error(
        "entry to {0} has not closed: enter the value of its beacon after {1}, when no bot can \
         enter any more"
    )]
    Early(String, String),
    /// The beacon already has another value.
    #[error(
        "the beacon of {0} already has the value \"{1}\", and a value never changes; if it is \
         wrong, cancel the tournament and create another one"
    )]
    HasOtherValue(String, String),
    /// The value is not valid.
    #[error("the value of a beacon: {0}")]
    Value(String),
    /// No edition can be opened with the value.
    #[error("the value is not stored, since an edition cannot be opened with it: {0}")]
    Open(#[source] OpenError),
    /// The stored tournament file is not valid for this release.
    #[error("cannot read the settings of {0}: {1}")]
    Settings(String, #[source] serde_json::Error),
    /// The database failed.
    #[error("cannot store the value of a beacon: {0}")]
    Database(#[from] Error),
    /// The coordinator is stopping.
    #[error("the coordinator is stopping")]
    Stopped,
}

/// Stores the value of a tournament's beacon, and opens an edition with it, which replaces a
/// running one. If the tournament has no edition yet, none is opened. If the beacon already has
/// this value, in any spelling, nothing changes. `token` is the token of the organiser, for the
/// audit log.
///
/// # Errors
/// If the tournament has ended or has no beacon, if entry has not closed, if the beacon has another
/// value, or if no edition can be opened.
pub async fn set_value(
    queue: &Queue,
    tournament: TournamentId,
    value: &str,
    token: Option<TokenId>,
    now: OffsetDateTime,
) -> Result<(Tournament, Option<Edition>), BeaconError> {
    let value = canonical(value).map_err(BeaconError::Value)?;
    let queue = queue.clone();
    let runtime = Handle::current();
    // On a separate thread, since the plan of an edition is computed while it is stored.
    let work = move || runtime.block_on(set_value_here(&queue, tournament, &value, token, now));
    tokio::task::spawn_blocking(work).await.map_err(|_| BeaconError::Stopped)?
}

async fn set_value_here(
    queue: &Queue,
    id: TournamentId,
    value: &str,
    token: Option<TokenId>,
    now: OffsetDateTime,
) -> Result<(Tournament, Option<Edition>), BeaconError> {
    let mut transaction = queue.pool().begin().await?;
    let db = &mut *transaction;
    db::lift_time_limits(&mut *db).await?;
    let before = lifecycle::lock_open(db, id).await?;
    if !is_new_value(&before, value, now)? {
        return Ok((before, None));
    }
    let seed = keyed_seed(before.seed, value);
    tournaments::set_beacon(&mut *db, id, (value, seed), now).await?;
    let after = tournaments::get(&mut *db, id).await?.ok_or(LifecycleError::Unknown)?;
    let edition = open_keyed_edition(db, queue.games(), &after, now).await?;
    let detail = json!({
        "before": {"beacon": before.beacon.as_ref().map(|beacon| &beacon.name), "value": null},
        "after": {"value": value, "first_edition": after.beacon_value().map(|v| v.first_edition)},
    });
    audit_log::write(&mut *db, token, "tournament beacon", &after.name, Some(&detail), now).await?;
    transaction.commit().await?;
    Ok((after, edition))
}

/// Whether this value must be stored. False if it is already stored.
fn is_new_value(
    tournament: &Tournament,
    value: &str,
    now: OffsetDateTime,
) -> Result<bool, BeaconError> {
    let name = tournament.name.clone();
    let Some(beacon) = &tournament.beacon else { return Err(BeaconError::NoBeacon(name)) };
    match &beacon.value {
        Some(stored) if stored.text == value => return Ok(false),
        Some(stored) => return Err(BeaconError::HasOtherValue(name, stored.text.clone())),
        None => {}
    }
    let rules = Submissions::stored(&tournament.settings)
        .map_err(|cause| BeaconError::Settings(name.clone(), cause))?;
    match rules.closes {
        Some(Moment(closes)) if closes <= now => Ok(true),
        closes => {
            let closes =
                closes.map_or_else(|| "the close of entry".to_owned(), |at| at.to_string());
            Err(BeaconError::Early(name, closes))
        }
    }
}

/// Opens the first edition with the new seed. It reuses no results, so tables get a new plan.
async fn open_keyed_edition(
    db: &mut PgConnection,
    games: &Games,
    tournament: &Tournament,
    now: OffsetDateTime,
) -> Result<Option<Edition>, BeaconError> {
    let all = editions::of_tournament(&mut *db, tournament.id).await?;
    if all.is_empty() {
        return Ok(None);
    }
    let changes = edition_triggers::of_tournament(&mut *db, tournament.id).await?;
    let running = editions::running(&mut *db, tournament.id).await?;
    let edition =
        open_edition::open_locked(db, games, tournament, running.as_ref(), PlanMode::Fresh, now)
            .await
            .map_err(BeaconError::Open)?;
    edition_triggers::delete(&mut *db, &changes).await?;
    Ok(Some(edition))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The formula is published, so the seeds must never change. They were computed with another
    /// implementation of BLAKE3.
    #[test]
    fn the_formula_is_fixed() {
        let committed = Seed::of_text("spring");
        let keyed = keyed_seed(committed, "00000000000000000001a17d");
        let expected = "42a575e8778b3be77a0b36ba65f01a69fe9ec6ad393e9f4b0705e25a586d6b42";
        assert_eq!(keyed.to_string(), expected);
        assert_ne!(keyed, keyed_seed(committed, "00000000000000000001a17e"));
        assert_ne!(keyed, keyed_seed(Seed::of_text("summer"), "00000000000000000001a17d"));
        let value = canonical(" 0x00000000000000000001A17D\n").unwrap();
        let without_zeros = "8829e6b0025f092452a7ac77386afefa28188937f23a5678067c380b1816aa18";
        assert_eq!(keyed_seed(committed, &value).to_string(), without_zeros);
    }

    /// If there were two spellings, an organiser could choose between two seeds.
    #[test]
    fn a_value_has_one_spelling() {
        for (text, value) in [
            ("0000001a17d", "1a17d"),
            ("1A17d", "1a17d"),
            ("0x001A17D", "1a17d"),
            ("0X1a17d\n", "1a17d"),
            (" Round42 ", "round42"),
            ("031722", "31722"),
            ("000", "0"),
            ("0x", "0"),
        ] {
            assert_eq!(canonical(text).as_deref(), Ok(value), "{text}");
            assert_eq!(canonical(value).as_deref(), Ok(value), "{text}: it is already canonical");
        }
    }

    #[test]
    fn characters_that_look_alike_are_refused() {
        for (text, expected) in [
            ("1a 17d", "character 3 is a space (U+0020)"),
            ("1a\u{200b}17d", "character 3 is not an ASCII letter or digit (U+200B)"),
            ("1a17\u{ff44}", "character 5 is not an ASCII letter or digit (U+FF44)"),
            ("3-17-22", "character 2 is \"-\" (U+002D)"),
        ] {
            let error = canonical(text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
            assert!(error.contains("write ASCII letters and digits only"), "{error}");
        }
        assert!(canonical(" \n").unwrap_err().contains("1 to 1000"));
        assert!(canonical("a\nb").unwrap_err().contains("on one line"));
    }
}
