//! Reads the keys of a tournament file.

use std::collections::BTreeSet;
use std::fmt::Display;

use arbiter_games::{Game, Games, Micros, Params, Seed};
use arbiter_proto::settings::{GamePackage, StateScope};
use arbiter_schedule::Schedule;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::super::beacon::{MAX_NAME, single_line};
use super::game_defaults::{OFFICIAL, board, boards, count, schedule_keys};
use super::toml_tree::{SECTIONS, STAGE, Source};
use super::{
    FileError, House, Submissions, TournamentFile, object, presentation, stages, validate,
};
use crate::game_package;

/// The keys at the top of the file.
const TOP: [&str; 10] = [
    "name",
    "title",
    "description",
    "game",
    "seed",
    "beacon",
    "state",
    "ponder",
    "rerun",
    "expected",
];

/// The keys of `[house]`.
const HOUSE_KEYS: [&str; 2] = ["bots", "ranked"];

/// The keys of `[schedule]` besides `kind`, by kind.
pub(super) const KINDS: [(&str, &[&str]); 9] = [
    ("round_robin", &["legs", "sides", "boards", "opponents"]),
    ("foursomes", &["meetings", "games"]),
    ("tables", &["seats", "legs"]),
    ("solo", &["legs"]),
    ("episodes", &["episodes"]),
    ("knockout", &["best_of", "extra_pairs", "third_place", "seeding"]),
    ("swiss", &["rounds", "games", "accelerated", "seeding"]),
    ("gauntlet", &["panel", "legs"]),
    ("ladder", &["rounds"]),
];

impl TournamentFile {
    /// Reads a parsed tournament file.
    pub(super) fn read(games: &Games, source: &Source) -> Result<Self, FileError> {
        let allowed: Vec<_> = TOP.into_iter().chain(SECTIONS).chain([STAGE]).collect();
        if let Some(key) = source.root.keys().find(|key| !allowed.contains(&key.as_str())) {
            let keys = format!(
                "there is no such key; at the top there are {}, and the sections {} and [[stage]]",
                list(&TOP),
                list(&SECTIONS)
            );
            return Err(source.blame("", key, &keys));
        }
        let name = required(source, "name", "every tournament has one")?;
        let game = required(source, "game", &games.list())?;
        let package = package(source)?;
        let game = game_package::find(games, &game, package.as_ref())
            .map_err(|error| source.blame("", "game", &error))?;
        let official = Self::official(&name, &game);
        let params = params(source, &official)?;
        let (schedule, boards) = schedule(source, &official, &params)?;
        // No later match begins with the files of an earlier one where results decide who meets.
        let state = if schedule.depends_on_results() { StateScope::None } else { official.state };
        let clock = object(&official.clock);
        let limits = object(&official.limits);
        let audit = object(&official.audit);
        let file = Self {
            name,
            presentation: presentation::read(source)?,
            params,
            package,
            schedule,
            boards,
            clock: section(source, "clock", &clock, &keys(&clock), from_value)?,
            limits: section(source, "limits", &limits, &keys(&limits), from_value)?,
            state: top(source, "state")?.unwrap_or(state),
            ponder: top(source, "ponder")?.unwrap_or(official.ponder),
            seed: top::<String>(source, "seed")?.map(|text| Seed::of_text(&text)),
            beacon: beacon(source)?,
            rerun: top(source, "rerun")?.unwrap_or(official.rerun),
            submissions: submissions(source, &official)?,
            audit: section(source, "audit", &audit, &keys(&audit), from_value)?,
            house: house(source)?,
            expected: top::<Micros>(source, "expected")?,
        };
        validate::validate(file, source)
    }
}

/// The names of all keys of a file for a game, with dots, such as `limits.memory`: those that
/// people write. Keys of stages and of packages are left out.
pub(super) fn known_keys(game: &Game) -> BTreeSet<String> {
    let official = TournamentFile::official("any", game);
    let section = |name: &str, keys: Vec<&str>| -> Vec<String> {
        keys.into_iter().map(|key| format!("{name}.{key}")).collect()
    };
    let kinds = KINDS.iter().flat_map(|(_, keys)| keys.iter().copied());
    let sections = [
        section("params", game.param_keys()),
        section("schedule", ["kind"].into_iter().chain(kinds).collect()),
        section("clock", keys(&object(&official.clock))),
        section("limits", keys(&object(&official.limits))),
        section("submissions", submission_keys(&object(&official.submissions))),
        section("public", vec!["replays"]),
        section("audit", keys(&object(&official.audit))),
        section("house", HOUSE_KEYS.to_vec()),
    ];
    TOP.into_iter().map(ToOwned::to_owned).chain(sections.into_iter().flatten()).collect()
}

/// The names of keys, for a message.
pub(super) fn list(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

fn keys(map: &Map<String, Value>) -> Vec<&str> {
    map.keys().map(String::as_str).collect()
}

fn from_value<T: DeserializeOwned>(keys: Map<String, Value>) -> Result<T, serde_json::Error> {
    T::deserialize(Value::Object(keys))
}

/// A required text at the top; `remedy` says what to write.
fn required(source: &Source, key: &'static str, remedy: &str) -> Result<String, FileError> {
    let missing = || source.blame("", key, &format!("it is missing; {remedy}"));
    top(source, key)?.ok_or_else(missing)
}

/// A key at the top.
pub(super) fn top<T: DeserializeOwned>(
    source: &Source,
    key: &'static str,
) -> Result<Option<T>, FileError> {
    let value = source.root.get(key).map(T::deserialize);
    value.transpose().map_err(|error| source.blame("", key, &error))
}

/// The game package. The command line writes this section when it packs a folder.
fn package(source: &Source) -> Result<Option<GamePackage>, FileError> {
    let keys = source.section("package")?;
    if keys.is_empty() {
        return Ok(None);
    }
    check_keys(source, "package", "", &keys, &["bundle", "digest", "descriptor"])?;
    let package = from_value(keys).map_err(|error| source.blame_section("package", &error))?;
    Ok(Some(package))
}

/// The name of the beacon.
fn beacon(source: &Source) -> Result<Option<String>, FileError> {
    let Some(text) = top::<String>(source, "beacon")? else { return Ok(None) };
    let name = single_line(&text, MAX_NAME).map_err(|cause| source.blame("", "beacon", &cause))?;
    Ok(Some(name.to_owned()))
}

/// Reads a section, merged over the official values.
///
/// If that fails, the keys are tried one by one, so that the error names the first wrong key. If
/// each key alone is valid, the error is about the section.
pub(super) fn section<T, E: Display>(
    source: &Source,
    name: &'static str,
    official: &Map<String, Value>,
    allowed: &[&str],
    read: impl Fn(Map<String, Value>) -> Result<T, E>,
) -> Result<T, FileError> {
    let keys = source.section(name)?;
    check_keys(source, name, "", &keys, allowed)?;
    merge(source, name, official, &keys, read)
}

/// Refuses unknown keys. The error shows `kind` after the name of the section.
fn check_keys(
    source: &Source,
    section: &'static str,
    kind: &str,
    keys: &Map<String, Value>,
    allowed: &[&str],
) -> Result<(), FileError> {
    match keys.keys().find(|key| !allowed.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            let cause = format!("there is no such key; [{section}]{kind} has {}", list(allowed));
            Err(source.blame(section, key, &cause))
        }
    }
}

/// Merges `keys` over `official` and reads the result.
fn merge<T, E: Display>(
    source: &Source,
    section: &'static str,
    official: &Map<String, Value>,
    keys: &Map<String, Value>,
    read: impl Fn(Map<String, Value>) -> Result<T, E>,
) -> Result<T, FileError> {
    let mut merged = official.clone();
    merged.extend(keys.clone());
    let error = match read(merged) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    for (key, value) in keys {
        let mut single = official.clone();
        single.insert(key.clone(), value.clone());
        if let Err(error) = read(single) {
            let cause = with_example(error.to_string(), key, official);
            return Err(source.blame(section, key, &cause));
        }
    }
    Err(source.blame_section(section, &error))
}

/// A cause, with the official text if the key should have a text, such as a time with its unit.
fn with_example(cause: String, key: &str, official: &Map<String, Value>) -> String {
    let needs_text = cause.ends_with(", expected a string");
    match official.get(key).and_then(Value::as_str).filter(|_| needs_text) {
        Some(text) => format!("write a text in quotes, as in {key} = \"{text}\""),
        None => cause,
    }
}

fn params(source: &Source, official: &TournamentFile) -> Result<Params, FileError> {
    let game = official.game();
    let allowed = game.param_keys();
    let keys = source.section("params")?;
    check_keys(source, "params", &format!(" of {game}"), &keys, &allowed)?;
    merge(source, "params", &object(&official.params), &keys, |merged| {
        Params::read(game, Value::Object(merged))
    })
}

/// The schedule and its boards.
fn schedule(
    source: &Source,
    official: &TournamentFile,
    params: &Params,
) -> Result<(Schedule, Vec<String>), FileError> {
    if let Some(stages) = stages::read(source, official, params)? {
        return Ok((stages, Vec::new()));
    }
    let mut keys = source.section("schedule")?;
    let kind = match keys.get("kind") {
        None => object(&official.schedule)["kind"].as_str().unwrap_or_default().to_owned(),
        Some(kind) => kind.as_str().unwrap_or_default().to_owned(),
    };
    let Some((_, allowed)) = KINDS.into_iter().find(|(name, _)| *name == kind) else {
        let names = KINDS.map(|(name, _)| name);
        let cause = format!("the kinds are {}", list(&names));
        return Err(source.blame("schedule", "kind", &cause));
    };
    let allowed: Vec<_> = ["kind"].iter().chain(allowed).copied().collect();
    check_keys(source, "schedule", &format!(" of kind {kind}"), &keys, &allowed)?;
    let boards = match keys.shift_remove("boards") {
        Some(boards) => board_list(source, official, &boards)?,
        None if kind == "round_robin" && !params_have_board(source, official)? => {
            official.boards.clone()
        }
        None => Vec::new(),
    };
    let mut base = schedule_keys(&official.schedule, &kind);
    if let Some(count) = count(boards.len()).filter(|_| kind == "round_robin") {
        base.insert("boards".to_owned(), json!(count));
    }
    if kind == "tables" {
        base.entry("seats").or_insert_with(|| json!(params.seats().end()));
    }
    let schedule = merge(source, "schedule", &base, &keys, from_value)?;
    Ok((schedule, boards))
}

/// Whether `[params]` names one board for all matches.
fn params_have_board(source: &Source, official: &TournamentFile) -> Result<bool, FileError> {
    Ok(source.section("params")?.contains_key(official.board_key()))
}

/// Reads `boards`: the word `official`, or a list of names and boards in the notation of the game.
fn board_list(
    source: &Source,
    official: &TournamentFile,
    boards_key: &Value,
) -> Result<Vec<String>, FileError> {
    let blame = |cause: String| source.blame("schedule", "boards", &cause);
    let Some(info) = &official.game().boards else {
        return Err(blame(format!("{} has no boards; leave it out", official.game())));
    };
    if params_have_board(source, official)? {
        let cause = "[params] board already names the board of all matches; keep one of the two";
        return Err(blame(cause.to_owned()));
    }
    let items = match boards_key {
        Value::String(word) if word == OFFICIAL => return Ok(boards(&official.params)),
        Value::Array(items) => items,
        _ => {
            let cause = "write a list of boards, as in [\"pole\", \"maraton\"], or \"official\"";
            return Err(blame(cause.to_owned()));
        }
    };
    let read = |(number, item): (usize, &Value)| {
        board(&official.params, info, item)
            .map_err(|error| blame(format!("board {number}: {error}")))
    };
    let boards: Vec<_> = (1..).zip(items).map(read).collect::<Result<_, _>>()?;
    if count(boards.len()).is_none() {
        let cause = format!("{} boards are not possible; name 1 to 1000 of them", boards.len());
        return Err(blame(cause));
    }
    Ok(boards)
}

fn submissions(source: &Source, official: &TournamentFile) -> Result<Submissions, FileError> {
    let official = object(&official.submissions);
    section(source, "submissions", &official, &submission_keys(&official), from_value)
}

/// The keys of `[submissions]`. `official` has those with defaults.
fn submission_keys(official: &Map<String, Value>) -> Vec<&str> {
    keys(official).into_iter().chain(["closes", "freeze"]).collect()
}

fn house(source: &Source) -> Result<House, FileError> {
    section(source, "house", &object(&House::OFFICIAL), &HOUSE_KEYS, from_value)
}
