//! Checks that involve several keys.

use std::ops::RangeInclusive;

use arbiter_games::{BotName, EntrantName, Micros, Seed, StartError};
use arbiter_proto::limits::Bytes;
use arbiter_proto::settings::StateScope;
use arbiter_schedule::{Knockout, Schedule, Seeding, SwissRules};

use super::toml_tree::Source;
use super::{FileError, TournamentFile, stages};

/// The longest name, in characters.
const MAX_NAME: usize = 64;
/// The least memory and disk space with which a program can run.
const MIN_BYTES: Bytes = Bytes::megabytes(1);
/// Descriptors that a program needs to start: three streams, its file and its libraries.
const MIN_DESCRIPTORS: u64 = 8;
/// Processes and threads of a bot. With fewer no program starts, and a higher limit has no effect.
const PROCESSES: RangeInclusive<u32> = 4..=32_768;
/// Minimum number of files in the working directory of a sandbox.
const MIN_FILES: u64 = 16;
/// Maximum number of processors of a bot: more than any machine has.
const MAX_CPUS: usize = 1024;
/// The longest time of a match, and the longest window of submissions.
const MAX_TIME: Micros = Micros::from_millis(24 * 3_600_000);
/// The maximum number of seats of a table whose bots leave files. A stream to a worker has memory
/// for the largest files of this many seats.
const MAX_STATE_SEATS: usize = 8;
/// The largest percentage.
const MAX_PERCENT: u8 = 100;

/// Checks the file as a whole.
pub(super) fn validate(
    mut file: TournamentFile,
    source: &Source,
) -> Result<TournamentFile, FileError> {
    name(&file, source)?;
    kind(&file, source)?;
    limits(&file, source)?;
    state(&file, source)?;
    submissions(&file, source)?;
    beacon(&file, source)?;
    start(&file).map_err(|error| source.blame_section("params", &error))?;
    if file.expected.is_some_and(|time| time <= Micros::ZERO || time > MAX_TIME) {
        return Err(source.blame("", "expected", "write a time from 1us to 24h, or leave it out"));
    }
    // A single board is an ordinary parameter.
    if let [board] = &file.boards[..] {
        let params = file.params.with(file.board_key(), board.as_str());
        file.params = params.expect("the board was read");
        file.boards = Vec::new();
    }
    Ok(file)
}

/// Checks limits of new files. Stored ones of former releases may exceed them.
pub(super) fn new_file(file: &TournamentFile, source: &Source) -> Result<(), FileError> {
    match &file.schedule {
        Schedule::Foursomes(config) => {
            let checked = config.check_new().map(drop);
            checked.map_err(|error| source.blame("schedule", "meetings", &error))
        }
        Schedule::Knockout(Knockout { seeding: Seeding::Rank, .. })
        | Schedule::Swiss(SwissRules { seeding: Seeding::Rank, .. }) => {
            let cause = "there is no former stage; write \"draw\" or \"entry\"";
            Err(source.blame("schedule", "seeding", cause))
        }
        Schedule::Gauntlet(rules) => panel(&rules.panel, source),
        Schedule::Stages(stages) => stages::new_stages(stages, source),
        _ => Ok(()),
    }
}

/// Checks the names of a panel.
fn panel(names: &[String], source: &Source) -> Result<(), FileError> {
    if names.is_empty() {
        let cause = "it is empty; name the bots that all others meet";
        return Err(source.blame("schedule", "panel", cause));
    }
    let check = |name: &String| {
        let checked = name.parse::<EntrantName>().map(drop);
        checked.map_err(|error| source.blame("schedule", "panel", &format!("{name}: {error}")))
    };
    names.iter().try_for_each(check)
}

fn name(file: &TournamentFile, source: &Source) -> Result<(), FileError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_allowed = (1..=MAX_NAME).contains(&file.name.len()) && file.name.bytes().all(allowed);
    if is_allowed && ![".", ".."].contains(&file.name.as_str()) {
        return Ok(());
    }
    let cause = format!("use 1 to {MAX_NAME} of A-Z a-z 0-9 . _ - but not `.` or `..`");
    Err(source.blame("", "name", &cause))
}

/// Checks that the game can be played in the matches of the schedule.
fn kind(file: &TournamentFile, source: &Source) -> Result<(), FileError> {
    let game = file.game();
    let cause = match (&game.episodes, &game.seats_param, file.schedule.table_seats()) {
        (Some(_), _, None) => return Ok(()),
        (Some(_), _, Some(_)) => format!("{game} is played in episodes; write kind = \"episodes\""),
        (None, Some(key), Some(expected)) => return seats(file, key, expected, source),
        (None, Some(key), None) => format!(
            "{game} is played by four; write kind = \"foursomes\", or \"round_robin\" and [params] \
             {key} = 2"
        ),
        (None, None, Some(seats)) if game.seats.contains(&seats) => return Ok(()),
        (None, None, _) => match game.seats.clone().into_inner() {
            (1, 1) => "it is a game for one; write kind = \"solo\"".to_owned(),
            (2, 2) => "it is a game for two; write kind = \"round_robin\"".to_owned(),
            (4, 4) => "it is a game for four; write kind = \"foursomes\"".to_owned(),
            (least, most) if least == most => {
                format!("it is a game for {least}; write kind = \"tables\"")
            }
            (least, most) => format!(
                "it is a game for {least} to {most}; write kind = \"tables\" and seats = {most}"
            ),
        },
    };
    let cause = format!("{game}: {cause}");
    Err(match file.schedule {
        Schedule::Stages(_) => source.blame_stage(1, "kind", &cause),
        Schedule::Tables(_) => source.blame("schedule", "seats", &cause),
        _ => source.blame("schedule", "kind", &cause),
    })
}

/// Checks that the parameter of this key has the number of seats of the schedule.
fn seats(
    file: &TournamentFile,
    key: &str,
    expected: usize,
    source: &Source,
) -> Result<(), FileError> {
    if *file.params.seats().start() == expected {
        return Ok(());
    }
    let cause = match file.schedule {
        Schedule::Foursomes(_) => {
            "foursomes seat four; write 4, or 2 and [schedule] kind = \"round_robin\"".to_owned()
        }
        Schedule::RoundRobin(_) => {
            "a round robin seats two; write 2, or 4 and [schedule] kind = \"foursomes\"".to_owned()
        }
        Schedule::Knockout(_)
        | Schedule::Swiss(_)
        | Schedule::Gauntlet(_)
        | Schedule::Ladder(_) => "the meetings of [schedule] seat two; write 2".to_owned(),
        Schedule::Stages(_) => {
            format!("the matches of the stages have {expected}; write the same number in both")
        }
        _ => format!("the tables of [schedule] have {expected}; write the same number in both"),
    };
    Err(source.blame("params", key, &cause))
}

fn limits(file: &TournamentFile, source: &Source) -> Result<(), FileError> {
    let limits = &file.limits;
    let too_small = |cause: &str| format!("{cause}; write {MIN_BYTES} or more");
    let checks = [
        ("memory", limits.memory < MIN_BYTES, too_small("too little memory to run a program")),
        ("disk", limits.disk < MIN_BYTES, too_small("too little disk space for a program")),
        (
            "processes",
            !PROCESSES.contains(&limits.processes),
            format!(
                "a bot needs several processes; write {} to {}",
                PROCESSES.start(),
                PROCESSES.end()
            ),
        ),
        (
            "files",
            limits.files < MIN_FILES,
            format!("a bot's working directory needs some files; write {MIN_FILES} or more"),
        ),
        (
            "descriptors",
            limits.descriptors < MIN_DESCRIPTORS,
            format!("too few descriptors to start a program; write {MIN_DESCRIPTORS} or more"),
        ),
        (
            "cpus",
            !(1..=MAX_CPUS).contains(&limits.cpus),
            format!("a bot runs on 1 to {MAX_CPUS} processors"),
        ),
    ];
    match checks.into_iter().find(|(_, wrong, _)| *wrong) {
        Some((key, _, cause)) => Err(source.blame("limits", key, &cause)),
        None => Ok(()),
    }
}

/// Checks that files can pass from match to match in the scope of `state`.
fn state(file: &TournamentFile, source: &Source) -> Result<(), FileError> {
    let cause = match (file.state, &file.schedule) {
        (StateScope::None, _)
        | (
            StateScope::Tournament,
            Schedule::RoundRobin(_) | Schedule::Foursomes(_) | Schedule::Solo(_),
        ) => return Ok(()),
        (StateScope::Tournament, Schedule::Tables(tables))
            if tables.seats.get() <= MAX_STATE_SEATS =>
        {
            return Ok(());
        }
        (StateScope::Tournament, Schedule::Tables(_)) => {
            "files pass between tables of at most 8 seats, because a worker gets the files of all \
             seats at once; write \"none\""
        }
        (StateScope::Pairing, Schedule::RoundRobin(rules)) if rules.meetings() > 1 => return Ok(()),
        (StateScope::Pairing, Schedule::RoundRobin(_)) => {
            "each pair meets once, so there is no next match; write sides = \"both\" or more legs"
        }
        (StateScope::Pairing, Schedule::Foursomes(_)) => {
            "the same four bots rarely meet again; write \"tournament\" or \"none\""
        }
        (StateScope::Pairing, Schedule::Tables(_)) => {
            "the same bots rarely meet again at a table; write \"tournament\" or \"none\""
        }
        (StateScope::Pairing, Schedule::Solo(_)) => {
            "bots that play alone are no pairs; write \"tournament\" or \"none\""
        }
        (_, Schedule::Episodes(_)) => {
            "episodes are played at the same time, so no match is the next one; write \"none\""
        }
        (
            _,
            Schedule::Knockout(_)
            | Schedule::Swiss(_)
            | Schedule::Gauntlet(_)
            | Schedule::Ladder(_)
            | Schedule::Stages(_),
        ) => "matches are planned in rounds, so files do not pass between them; write \"none\"",
    };
    Err(source.blame("", "state", &cause))
}

fn submissions(file: &TournamentFile, source: &Source) -> Result<(), FileError> {
    let blame = |key, cause| Err(source.blame("submissions", key, cause));
    let rules = &file.submissions;
    if rules.window < Micros::ZERO || rules.window > MAX_TIME {
        return blame("window", "write a time from 0ms to 24h");
    }
    if rules.stand_down_percent > MAX_PERCENT {
        return blame("stand_down_percent", "write 0 to 100; with 100 no bot is suspended");
    }
    if rules.stand_down_after == 0 {
        return blame(
            "stand_down_after",
            "write 1 or more; without matches there is no share of forfeits",
        );
    }
    if rules.separate_owners && !matches!(file.schedule, Schedule::Foursomes(_)) {
        let cause = "only kind = \"foursomes\" keeps owners apart; leave it out";
        return blame("separate_owners", cause);
    }
    Ok(())
}

/// Checks that entry closes if there is a beacon, because its value must be published later.
fn beacon(file: &TournamentFile, source: &Source) -> Result<(), FileError> {
    if file.beacon.is_none() || file.submissions.closes.is_some() {
        return Ok(());
    }
    let cause = "the value of a beacon must be published after entry has closed; write \
        [submissions] closes = \"…\", a time before then";
    Err(source.blame("", "beacon", &cause))
}

/// Checks that a match can start, at a table of the schedule.
fn start(file: &TournamentFile) -> Result<(), StartError> {
    let seed = Seed::of_text("any");
    if file.game().episodes.is_some() {
        return file.params.episode(1, seed).map(drop);
    }
    let seats = file.schedule.table_seats().unwrap_or(*file.params.seats().start());
    let names = (1..=seats).map(|seat| format!("bot-{seat}").parse());
    let names: Vec<BotName> = names.collect::<Result<_, _>>().expect("these are names");
    file.params.start(&names, seed).map(drop)
}
