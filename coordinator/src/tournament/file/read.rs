//! Reads the keys of a tournament file.

use std::fmt::Display;

use arbiter_games::{Games, Micros, Params, Seed};
use arbiter_schedule::Schedule;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::super::beacon::{MAX_NAME, single_line};
use super::official::{OFFICIAL, board, boards, count, schedule_keys};
use super::toml_tree::{SECTIONS, Source};
use super::{FileError, Submissions, TournamentFile, object, validate};

/// The keys at the top of the file.
const TOP: [&str; 8] = ["name", "game", "seed", "beacon", "state", "ponder", "rerun", "expected"];

/// The keys of `[schedule]` besides `kind`, by kind.
const KINDS: [(&str, &[&str]); 3] = [
    ("round_robin", &["legs", "sides", "boards"]),
    ("foursomes", &["meetings", "games"]),
    ("episodes", &["episodes"]),
];

impl TournamentFile {
    /// Reads a parsed tournament file.
    pub(super) fn read(games: &Games, source: &Source) -> Result<Self, FileError> {
        let known: Vec<_> = TOP.into_iter().chain(SECTIONS).collect();
        if let Some(key) = source.root.keys().find(|key| !known.contains(&key.as_str())) {
            let keys = format!(
                "there is no such key; at the top there are {}, and the sections {}",
                list(&TOP),
                list(&SECTIONS)
            );
            return Err(source.blame("", key, &keys));
        }
        let name = required(source, "name", "every tournament has one")?;
        let game = required(source, "game", &games.list())?;
        let game = games.find(&game).map_err(|error| source.blame("", "game", &error))?;
        let official = Self::official(&name, &game);
        let params = params(source, &official)?;
        let (schedule, boards) = schedule(source, &official)?;
        let clock = object(&official.clock);
        let limits = object(&official.limits);
        let audit = object(&official.audit);
        let file = Self {
            name,
            params,
            schedule,
            boards,
            clock: section(source, "clock", &clock, &keys(&clock), from_value)?,
            limits: section(source, "limits", &limits, &keys(&limits), from_value)?,
            state: top(source, "state")?.unwrap_or(official.state),
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

/// The names of keys, for a message.
fn list(names: &[&str]) -> String {
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
fn top<T: DeserializeOwned>(source: &Source, key: &'static str) -> Result<Option<T>, FileError> {
    let value = source.root.get(key).map(T::deserialize);
    value.transpose().map_err(|error| source.blame("", key, &error))
}

/// The name of the beacon.
fn beacon(source: &Source) -> Result<Option<String>, FileError> {
    let Some(written) = top::<String>(source, "beacon")? else { return Ok(None) };
    let named =
        single_line(&written, MAX_NAME).map_err(|cause| source.blame("", "beacon", &cause))?;
    Ok(Some(named.to_owned()))
}

/// Reads a section, merged over the official values.
///
/// If that fails, the keys are tried one by one, so that the error names the first wrong one. If
/// each is right by itself, the error is about the section.
fn section<T, E: Display>(
    source: &Source,
    name: &'static str,
    official: &Map<String, Value>,
    known: &[&str],
    read: impl Fn(Map<String, Value>) -> Result<T, E>,
) -> Result<T, FileError> {
    let written = source.section(name)?;
    check_keys(source, name, "", &written, known)?;
    merge(source, name, official, &written, read)
}

/// Refuses unknown keys.
fn check_keys(
    source: &Source,
    section: &'static str,
    whose: &str,
    written: &Map<String, Value>,
    known: &[&str],
) -> Result<(), FileError> {
    match written.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            let cause = format!("there is no such key; [{section}]{whose} has {}", list(known));
            Err(source.blame(section, key, &cause))
        }
    }
}

/// Merges `written` over `official` and reads the result.
fn merge<T, E: Display>(
    source: &Source,
    section: &'static str,
    official: &Map<String, Value>,
    written: &Map<String, Value>,
    read: impl Fn(Map<String, Value>) -> Result<T, E>,
) -> Result<T, FileError> {
    let mut all = official.clone();
    all.extend(written.clone());
    let error = match read(all) {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    for (key, value) in written {
        let mut one = official.clone();
        one.insert(key.clone(), value.clone());
        if let Err(error) = read(one) {
            return Err(source.blame(section, key, &error));
        }
    }
    Err(source.blame_section(section, &error))
}

fn params(source: &Source, official: &TournamentFile) -> Result<Params, FileError> {
    let game = official.game();
    let known = game.param_keys();
    let written = source.section("params")?;
    check_keys(source, "params", &format!(" of {game}"), &written, &known)?;
    merge(source, "params", &object(&official.params), &written, |keys| {
        Params::read(game, Value::Object(keys))
    })
}

/// The schedule and its boards.
fn schedule(
    source: &Source,
    official: &TournamentFile,
) -> Result<(Schedule, Vec<String>), FileError> {
    let mut written = source.section("schedule")?;
    let kind = match written.get("kind") {
        None => object(&official.schedule)["kind"].as_str().unwrap_or_default().to_owned(),
        Some(kind) => kind.as_str().unwrap_or_default().to_owned(),
    };
    let Some((_, known)) = KINDS.into_iter().find(|(name, _)| *name == kind) else {
        let names = KINDS.map(|(name, _)| name);
        let cause = format!("the kinds are {}", list(&names));
        return Err(source.blame("schedule", "kind", &cause));
    };
    let known: Vec<_> = ["kind"].iter().chain(known).copied().collect();
    check_keys(source, "schedule", &format!(" of kind {kind}"), &written, &known)?;
    let boards = match written.shift_remove("boards") {
        Some(written) => board_list(source, official, &written)?,
        None if kind == "round_robin" && !params_have_board(source, official)? => {
            official.boards.clone()
        }
        None => Vec::new(),
    };
    let mut base = schedule_keys(&official.schedule, &kind);
    if let Some(count) = count(boards.len()).filter(|_| kind == "round_robin") {
        base.insert("boards".to_owned(), json!(count));
    }
    let schedule = merge(source, "schedule", &base, &written, from_value)?;
    Ok((schedule, boards))
}

/// Whether `[params]` names one board for all matches.
fn params_have_board(source: &Source, official: &TournamentFile) -> Result<bool, FileError> {
    Ok(source.section("params")?.contains_key(official.board_key()))
}

/// Reads `boards`: the word `official`, or a list of names and texts.
fn board_list(
    source: &Source,
    official: &TournamentFile,
    written: &Value,
) -> Result<Vec<String>, FileError> {
    let blame = |cause: String| source.blame("schedule", "boards", &cause);
    let Some(info) = &official.game().boards else {
        return Err(blame(format!("{} has no boards; leave it out", official.game())));
    };
    if params_have_board(source, official)? {
        let cause = "[params] board already names the board of all matches; keep one of the two";
        return Err(blame(cause.to_owned()));
    }
    let texts = match written {
        Value::String(word) if word == OFFICIAL => return Ok(boards(&official.params)),
        Value::Array(texts) => texts,
        _ => {
            let cause = "write a list of boards, as in [\"pole\", \"maraton\"], or \"official\"";
            return Err(blame(cause.to_owned()));
        }
    };
    let read = |(place, text): (usize, &Value)| {
        board(&official.params, info, text)
            .map_err(|error| blame(format!("board {place}: {error}")))
    };
    let boards: Vec<_> = (1..).zip(texts).map(read).collect::<Result<_, _>>()?;
    if count(boards.len()).is_none() {
        let cause = format!("{} boards are not possible; name 1 to 1000 of them", boards.len());
        return Err(blame(cause));
    }
    Ok(boards)
}

fn submissions(source: &Source, official: &TournamentFile) -> Result<Submissions, FileError> {
    let official = object(&official.submissions);
    let known: Vec<_> = keys(&official).into_iter().chain(["closes", "freeze"]).collect();
    section(source, "submissions", &official, &known, from_value)
}

fn house(source: &Source) -> Result<Vec<String>, FileError> {
    let mut none = Map::new();
    none.insert("bots".to_owned(), json!([]));
    section(source, "house", &none, &["bots"], |mut keys| {
        Vec::deserialize(keys.shift_remove("bots").unwrap_or_default())
    })
}
