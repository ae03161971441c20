//! Reads the `[[stage]]` sections of a tournament file: `[schedule]` with several stages.
//!
//! In JSON, stages are stored as a schedule of kind `stages`.

use arbiter_games::Params;
use arbiter_schedule::{Schedule, Stage, StageSchedule, Stages, StagesError};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::game_defaults::schedule_keys;
use super::parse_keys::{KINDS, list};
use super::toml_tree::{STAGE, Source};
use super::{FileError, TournamentFile};

/// The kind of a stored schedule with stages.
const STAGES: &str = "stages";

/// The kinds of `[schedule]` that a stage cannot have.
const NO_STAGES: [&str; 3] = ["solo", "episodes", "gauntlet"];

/// The keys of a stage that are not keys of its schedule.
const OWN_KEYS: [&str; 2] = ["advance", "points"];

/// The schedule, if the file has stages.
pub(super) fn read(
    source: &Source,
    official: &TournamentFile,
    params: &Params,
) -> Result<Option<Schedule>, FileError> {
    let schedule = source.section("schedule")?;
    if schedule.get("kind") == Some(&json!(STAGES)) {
        let stages = Schedule::deserialize(Value::Object(schedule));
        return stages.map(Some).map_err(|error| source.blame_section("schedule", &error));
    }
    let list = match source.root.get(STAGE) {
        None => return Ok(None),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(source.blame("", STAGE, "write [[stage]], once for each stage")),
    };
    if !schedule.is_empty() {
        let cause = "the [[stage]] sections are the schedule; keep one of the two";
        return Err(source.blame_section("schedule", cause));
    }
    let stages = (1..).zip(list).map(|(number, keys)| {
        let Value::Object(keys) = keys else {
            return Err(source.blame("", STAGE, "write [[stage]], once for each stage"));
        };
        stage(source, official, params, number, keys)
    });
    let stages = Stages::new(stages.collect::<Result<_, _>>()?);
    stages.map(|stages| Some(Schedule::Stages(stages))).map_err(|error| blame(source, &error))
}

/// Checks what may be in a stored file and not in a new one.
pub(super) fn new_stages(stages: &Stages, source: &Source) -> Result<(), FileError> {
    if !source.root.contains_key(STAGE) {
        let cause = "write [[stage]] sections, and no [schedule]";
        return Err(source.blame("schedule", "kind", cause));
    }
    for (number, stage) in (1..).zip(stages.list()) {
        if let StageSchedule::Foursomes(config) = stage.schedule {
            let checked = config.check_new();
            checked.map_err(|error| source.blame_stage(number, "meetings", &error))?;
        }
    }
    Ok(())
}

/// The error for stages that do not fit together.
fn blame(source: &Source, error: &StagesError) -> FileError {
    let (number, key) = match error {
        StagesError::Count(_) => (1, ""),
        StagesError::NoAdvance(number) => (*number, ""),
        StagesError::LastAdvance(number) => (*number, "advance"),
        StagesError::FewAdvance { stage, .. } | StagesError::ManyAdvance { stage, .. } => {
            (*stage, "advance")
        }
        StagesError::Points(number) => (*number, "points"),
        StagesError::Seeding { stage, .. } => (*stage, "seeding"),
        StagesError::Seats { stage, .. } => (*stage, "kind"),
    };
    source.blame_stage(number, key, error)
}

/// Reads a stage, numbered from 1.
fn stage(
    source: &Source,
    official: &TournamentFile,
    params: &Params,
    number: usize,
    keys: &Map<String, Value>,
) -> Result<Stage, FileError> {
    let blame = |key: &str, cause: &str| source.blame_stage(number, key, cause);
    let kinds = KINDS.into_iter().filter(|(kind, _)| !NO_STAGES.contains(kind));
    let kind = keys.get("kind").and_then(Value::as_str).unwrap_or_default();
    let Some((_, allowed)) = kinds.clone().find(|(name, _)| *name == kind) else {
        let names: Vec<_> = kinds.map(|(name, _)| name).collect();
        return Err(blame("kind", &format!("the kinds of a stage are {}", list(&names))));
    };
    // Boards are for tournaments of one stage.
    let of_schedule = allowed.iter().copied().filter(|key| *key != "boards");
    let allowed: Vec<_> = ["kind"].into_iter().chain(of_schedule).chain(OWN_KEYS).collect();
    if let Some(key) = keys.keys().find(|key| !allowed.contains(&key.as_str())) {
        let cause = format!("there is no such key; a stage of kind {kind} has {}", list(&allowed));
        return Err(blame(key, &cause));
    }
    let defaults = defaults(official, params, kind, number);
    let read = |keys: &Map<String, Value>| of_keys(&defaults, keys);
    let error = match read(keys) {
        Ok(stage) => return Ok(stage),
        Err(error) => error,
    };
    for (key, value) in keys {
        if let Err(error) = read(&Map::from_iter([(key.clone(), value.clone())])) {
            return Err(blame(key, &error.to_string()));
        }
    }
    Err(blame("", &error.to_string()))
}

/// The defaults of the schedule of a stage.
fn defaults(
    official: &TournamentFile,
    params: &Params,
    kind: &str,
    number: usize,
) -> Map<String, Value> {
    let mut keys = schedule_keys(&official.schedule, kind);
    match kind {
        "tables" => {
            keys.entry("seats").or_insert_with(|| json!(params.seats().end()));
        }
        "knockout" | "swiss" if number > 1 => {
            keys.insert("seeding".to_owned(), json!("rank"));
        }
        _ => {}
    }
    keys
}

/// The stage of these keys.
fn of_keys(
    defaults: &Map<String, Value>,
    keys: &Map<String, Value>,
) -> Result<Stage, serde_json::Error> {
    let mut schedule = defaults.clone();
    let mut stage = Map::new();
    for (key, value) in keys {
        let part = if OWN_KEYS.contains(&key.as_str()) { &mut stage } else { &mut schedule };
        part.insert(key.clone(), value.clone());
    }
    // Its own error names the key; as a part of the stage it would not.
    StageSchedule::deserialize(Value::Object(schedule.clone()))?;
    stage.insert("schedule".to_owned(), Value::Object(schedule));
    Stage::deserialize(Value::Object(stage))
}
