//! What organisers may change about a tournament after its creation, and what a change does.
//!
//! # Theory of operation
//!
//! - Editions share matches. A key that decides how a match is played (`[params]`, `[clock]`,
//!   `[limits]`, …)
//!   could make an edition consist of matches with different limits, and its leaderboard would
//!   depend on what was played before it. So these keys change only before the first edition.
//! - The game and the schedule decide which matches there are, and the seed and the beacon were
//!   published at the creation. They never change.
//! - The value of a beacon may be known when entry has closed. From then on nothing changes that
//!   decides which bots play or how, or who is ranked. Entry never closes later than announced: an
//!   organiser who knows the value could enter house bots until the plan suits them.
//! - Whether house bots are ranked changes no match. But an official leaderboard changes only with
//!   its edition, so such a change applies from the next edition on.

use serde_json::Value;
use time::OffsetDateTime;

use super::file::{EditedFile, FileError, Moment, TournamentFile};
use crate::db::tournaments::Replays;

/// The circumstances of an edit.
#[derive(Clone, Copy, Debug)]
pub struct EditContext {
    /// Whether an edition was opened.
    pub has_edition: bool,
    /// Whether the tournament is a rehearsal. No bot can enter or leave it.
    pub is_rehearsal: bool,
    /// The time of the edit.
    pub now: OffsetDateTime,
}

/// Keys that decide how bots enter and leave, and when such a change opens an edition.
const ENTRY_KEYS: [&str; 5] = [
    "rerun",
    "submissions.closes",
    "submissions.per_hour",
    "submissions.preflight",
    "submissions.window",
];

/// A changed key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyChange {
    /// The key with dots, such as `limits.memory`.
    pub key: String,
    /// The value before; null if there was none.
    pub before: Value,
    /// The value afterwards; null if there is none.
    pub after: Value,
    /// What the change does, in one line.
    pub effect: String,
}

/// When a key may change.
enum Freedom {
    /// At any time.
    Always,
    /// Until the first edition is opened.
    BeforeEditions,
    /// Never; with the remedy.
    Never(&'static str),
}

/// When a key may change.
fn freedom(key: &str) -> Freedom {
    match key.split_once('.').unwrap_or(("", key)) {
        ("", "state" | "ponder")
        | ("params" | "clock" | "limits", _)
        | ("submissions", "separate_owners") => Freedom::BeforeEditions,
        ("", "title" | "description" | "rerun" | "expected")
        | ("public" | "audit" | "submissions", _)
        | ("house", "ranked") => Freedom::Always,
        ("", "name") => Freedom::Never("addresses and commands contain it"),
        ("", "seed" | "beacon") => Freedom::Never("it was published when it was created"),
        ("house", _) => Freedom::Never("submit house bots with arbiter submit T PATH --house"),
        ("package", _) => {
            Freedom::Never("replace the package with arbiter tournament package T DIR")
        }
        _ => Freedom::Never("the matches follow from it; create another tournament"),
    }
}

/// The keys that differ, if they may change now.
///
/// # Errors
/// If one of them may not: the key with its line, the reason and the remedy.
pub fn changes(
    current: &TournamentFile,
    edited: &EditedFile,
    context: EditContext,
) -> Result<Vec<KeyChange>, FileError> {
    let mut before = current.values();
    let mut pairs: Vec<_> = edited
        .file
        .values()
        .into_iter()
        .map(|(key, after)| (before.remove(&key).unwrap_or_default(), key, after))
        .collect();
    pairs.extend(before.into_iter().map(|(key, value)| (value, key, Value::Null)));
    pairs.retain(|(before, _, after)| before != after);
    pairs.sort_by(|one, other| one.1.cmp(&other.1));
    let change = |(before, key, after): (Value, String, Value)| {
        let checked = check(current, &edited.file, &key, context);
        checked.map_err(|cause| edited.blame(&key, &cause))?;
        let effect = effect(current, &edited.file, &key, context);
        Ok(KeyChange { key, before, after, effect })
    };
    pairs.into_iter().map(change).collect()
}

/// Checks that a key may change now.
fn check(
    current: &TournamentFile,
    edited: &TournamentFile,
    key: &str,
    context: EditContext,
) -> Result<(), String> {
    let is_past = |moment: Option<Moment>| moment.is_some_and(|moment| moment.0 <= context.now);
    let freedom = freedom(key);
    match freedom {
        Freedom::Never(remedy) => {
            return Err(format!("it cannot change in an existing tournament: {remedy}"));
        }
        Freedom::BeforeEditions if context.has_edition => {
            return Err("it cannot change after the first edition was opened, because editions \
                        share matches; create another tournament"
                .to_owned());
        }
        Freedom::BeforeEditions | Freedom::Always => {}
    }
    let closes = current.submissions.closes;
    let decides_matches = matches!(freedom, Freedom::BeforeEditions)
        || ["submissions.closes", "submissions.window", "rerun", "house.ranked"].contains(&key)
        || key.starts_with("submissions.stand_down_");
    if let Some(closed) = closes.filter(|_| current.beacon.is_some() && decides_matches)
        && closed.0 <= context.now
    {
        return Err(format!(
            "entry closed at {closed}, so the value of the beacon may be known; it cannot change \
             any more"
        ));
    }
    match key {
        "submissions.closes" => {
            let new = edited.submissions.closes;
            if is_past(new) {
                return Err("this time is past; write a later one".to_owned());
            }
            if let (Some(_), Some(old), Some(new)) = (&current.beacon, closes, new)
                && new > old
            {
                return Err(format!(
                    "the beacon may be published after {old}, and bots must not enter when its \
                     value is known; keep {old}, or write an earlier time"
                ));
            }
            Ok(())
        }
        "submissions.freeze" if is_past(edited.submissions.freeze) => {
            Err("this time is past, and the public has seen newer leaderboards; write a later one"
                .to_owned())
        }
        _ => Ok(()),
    }
}

/// What a change does, in one line.
fn effect(
    current: &TournamentFile,
    edited: &TournamentFile,
    key: &str,
    context: EditContext,
) -> String {
    let is_past = |moment: Option<Moment>| moment.is_some_and(|moment| moment.0 <= context.now);
    let fixed = match key {
        key if context.is_rehearsal && ENTRY_KEYS.contains(&key) => {
            "has no effect, because no bot can enter or leave a rehearsal"
        }
        "title" | "description" => "everyone sees it at once",
        "rerun" => "decides when later editions open",
        "expected" => "changes only estimates",
        "submissions.preflight" | "submissions.per_hour" => {
            "applies to versions that are submitted from now on"
        }
        "submissions.window" => "applies to the next edition that a change opens",
        "submissions.stand_down_percent" | "submissions.stand_down_after" => {
            "applies when results are counted next; a suspended bot stays suspended"
        }
        "submissions.closes" => {
            let reopened = is_past(current.submissions.closes);
            return closes_effect(edited.submissions.closes, reopened);
        }
        "submissions.freeze" => {
            let lifted = is_past(current.submissions.freeze);
            return freeze_effect(edited.submissions.freeze, lifted);
        }
        "public.replays" => match edited.replays() {
            Replays::Never => "only organisers and owners see replays from now on",
            Replays::AfterClose => "everyone sees the replays when the tournament is over",
            Replays::Always => "everyone sees the replays of all visible matches at once",
        },
        "house.ranked" if edited.house.ranked => {
            "house bots have ranks from the next edition on; earlier leaderboards stay as they are"
        }
        "house.ranked" => {
            "house bots have no ranks from the next edition on, and the ranks of others skip them; \
             earlier leaderboards stay as they are"
        }
        key if key.starts_with("audit.") => "applies to results that are counted from now on",
        _ => "applies from edition 1 on; versions that passed their trials are not tried again",
    };
    fixed.to_owned()
}

fn closes_effect(closes: Option<Moment>, reopened: bool) -> String {
    match (closes, reopened) {
        (Some(closes), true) => format!("entry opens again until {closes}"),
        (None, true) => "entry opens again until the tournament is over".to_owned(),
        (Some(closes), false) => {
            format!("owners can enter, change and withdraw bots until {closes}")
        }
        (None, false) => "entry stays open until the tournament is over".to_owned(),
    }
}

fn freeze_effect(freeze: Option<Moment>, lifted: bool) -> String {
    match (freeze, lifted) {
        (Some(freeze), true) => {
            format!("everyone sees the newest leaderboard again at once, until {freeze}")
        }
        (None, true) => "everyone sees the newest leaderboard again at once".to_owned(),
        (Some(freeze), false) => format!(
            "from {freeze} until the tournament is over only organisers see editions that are not \
             complete by then"
        ),
        (None, false) => "the leaderboard is never frozen".to_owned(),
    }
}

#[cfg(test)]
mod tests;
