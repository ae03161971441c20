//! The settings of a tournament in words, for its About page.

use std::fmt;

use arbiter_games::{ClockKind, ClockRules, Micros, ParamInfo, ParamKind, Params, Protocol, Value};
use arbiter_proto::limits::{Bytes, Limits, Ponder};
use arbiter_proto::settings::StateScope;
use arbiter_schedule::foursomes::FoursomesConfig;
use arbiter_schedule::{Knockout, RoundRobin, Schedule, Sides, Stage, StageSchedule};

use super::layout::{count, format_time};
use super::parameter_words;
use super::tournament_form::{plain_text, value_in_words};
use crate::db::tournaments::Replays;
use crate::tournament::file::{Rerun, Submissions, TournamentFile};

/// A topic and what the settings say about it, in one or two sentences.
pub(super) type Topic = (&'static str, String);

/// What is said of house bots without ranks.
const HOUSE_UNRANKED: &str = "House bots play and are listed at their places, without a rank. The \
    ranks of the other bots skip them.";

/// All topics of a tournament file.
pub(super) fn topics(file: &TournamentFile) -> Vec<Topic> {
    let mut topics = vec![
        ("Game", game(&file.params)),
        ("Who meets", schedule(&file.schedule)),
        ("Clock", clock_and_times(file)),
        ("Limits", limits(&file.limits)),
        ("Files", files(file.state).to_owned()),
        ("Entry", entry(&file.submissions)),
        ("Freeze", freeze(&file.submissions)),
        ("Replays", replays(file.presentation.replays).to_owned()),
        ("New editions", rerun(file)),
        ("Suspension", suspension(&file.submissions)),
        ("Audits", audits(file)),
    ];
    if !file.house.ranked {
        topics.push(("House bots", HOUSE_UNRANKED.to_owned()));
    }
    topics
}

/// The game, and its parameters that differ from the official ones.
fn game(params: &Params) -> String {
    let game = params.game();
    let official = Params::official(game).values();
    let values = params.values();
    let different = values.iter().filter(|(key, value)| official.get(key) != Some(*value));
    let in_words = |(key, value): (&str, &Value)| {
        game.params.iter().find(|param| param.key == key).map_or_else(
            || format!("{key} = {}", plain_text(value)),
            |param| format!("{} = {}", parameter_words::name(param), value_in_words(param, value)),
        )
    };
    let different: Vec<_> = different.map(in_words).collect();
    if different.is_empty() {
        format!("{} with its default parameters.", game.title)
    } else {
        format!("{}. Different from its defaults: {}.", game.title, different.join("; "))
    }
}

/// Which bots meet, and how often.
pub(super) fn schedule(schedule: &Schedule) -> String {
    match schedule {
        Schedule::RoundRobin(rules) => round_robin(rules),
        Schedule::Foursomes(config) => foursomes(*config),
        Schedule::Tables(tables) => format!(
            "Tables of {}. Every bot has each seat {}.",
            tables.seats.get(),
            times(tables.legs.get())
        ),
        Schedule::Solo(solo) => {
            format!("Every bot plays alone, in {}.", matches(solo.legs.get()))
        }
        Schedule::Episodes(episodes) => format!(
            "{}: in each, the bots play round after round at changing tables, with the chips they \
             have.",
            count(episodes.episodes.get(), "episode", "episodes")
        ),
        Schedule::Knockout(rules) => knockout(*rules),
        Schedule::Swiss(rules) => match rules.rounds {
            Some(rounds) => format!("Swiss tournament of {}.", rounds_text(rounds.get())),
            None => "Swiss tournament with as many rounds as one winner needs.".to_owned(),
        },
        Schedule::Gauntlet(gauntlet) => format!(
            "Gauntlet: every bot meets each bot of the panel ({}) {} on both sides.",
            gauntlet.panel.join(", "),
            times(gauntlet.legs.get())
        ),
        Schedule::Ladder(rules) => format!(
            "Ladder of {}: in each, bots of similar strength meet.",
            rounds_text(rules.rounds.get())
        ),
        Schedule::Stages(stages) => {
            let stages = (1..).zip(stages.list()).map(|(number, one)| stage(number, one));
            stages.collect::<Vec<_>>().join(" ")
        }
    }
}

fn stage(number: usize, stage: &Stage) -> String {
    let text = schedule(&Schedule::from(stage.schedule));
    let advance = stage.advance.map(|advance| format!(" The best {advance} advance."));
    let kind = match stage.schedule {
        StageSchedule::RoundRobin(_) => "Round robin. ",
        _ => "",
    };
    format!("Stage {number}: {kind}{text}{}", advance.unwrap_or_default())
}

fn round_robin(rules: &RoundRobin) -> String {
    let opponents = match rules.opponents {
        None => "Every bot meets every other bot".to_owned(),
        Some(number) => format!("Every bot meets {} others", number.get()),
    };
    let boards = match rules.boards.get() {
        1 => String::new(),
        boards => format!(" on each of {boards} boards"),
    };
    let sides = match rules.sides {
        Sides::Both if boards.is_empty() => " on each side",
        Sides::Both => " and on each side",
        Sides::Random => ", with random sides",
        Sides::Balanced => ", with balanced sides",
    };
    format!("{opponents} {}{boards}{sides}.", times(rules.legs.get()))
}

fn foursomes(config: FoursomesConfig) -> String {
    match config {
        FoursomesConfig::Least => {
            "Tables of four. Every pair of bots meets equally often, as seldom as possible."
                .to_owned()
        }
        FoursomesConfig::Meetings(number) => {
            format!("Tables of four. Every pair of bots meets {}.", times(number.get()))
        }
        FoursomesConfig::Games(number) => {
            format!("{number} tables of four. Bots meet as evenly as possible.")
        }
    }
}

fn knockout(rules: Knockout) -> String {
    let third = if rules.third_place {
        " If there are two losing semi-finalists, they play for third place."
    } else {
        ""
    };
    format!("Knockout: the loser of a meeting of {} is out.{third}", matches(rules.best_of.get()))
}

/// The times that the game's parameters give, and how time is charged.
fn clock_and_times(file: &TournamentFile) -> String {
    let game = file.params.game();
    let values = file.params.values();
    let is_time = |param: &&ParamInfo| matches!(param.kind, ParamKind::Duration);
    let times = game.params.iter().filter(is_time).filter_map(|param| {
        let time = value_in_words(param, values.get(&param.key)?);
        Some(format!("{}: {time}. ", parameter_words::label(param)))
    });
    times.collect::<String>() + &clock(&file.clock, file.ponder, game.bots.protocol)
}

/// How time is charged, and what a bot may do between its replies. A bot that is started for each
/// decision has no time to start up, and no program of it runs between decisions.
pub(super) fn clock(rules: &ClockRules, ponder: Ponder, protocol: Protocol) -> String {
    let kind = match rules.kind {
        ClockKind::Wall => "Wall-clock time counts",
        ClockKind::Cpu => "Processor time counts, and ten times as much wall-clock time is allowed",
    };
    let startup = match protocol {
        Protocol::Exec => {
            "The bot is started for each decision, and its start counts: the first decision has \
             no more time than the others."
                .to_owned()
        }
        Protocol::Stdio | Protocol::Http => {
            format!("A bot has {} more for its first reply.", duration(rules.startup))
        }
    };
    let between = match (protocol, ponder) {
        (Protocol::Exec, _) => "Between its decisions no program of a bot runs.",
        (_, Ponder::Freeze) => "A bot is paused while no reply is due.",
        (_, Ponder::Allow) => "A bot may compute while no reply is due.",
    };
    format!(
        "{kind}. {startup} For delays of the referee, a bot has {} more: for each reply, or once \
         for a whole time bank. {between}",
        duration(rules.margin)
    )
}

/// What a bot may use.
pub(super) fn limits(limits: &Limits) -> String {
    format!(
        "A bot may use {} of memory, {}, {}, and {} of disk for at most {} files. Each of its \
         processes may have {} open. It has no network.",
        amount(limits.memory),
        count(u64::try_from(limits.cpus).unwrap_or(u64::MAX), "processor", "processors"),
        count(limits.processes, "process or thread", "processes and threads"),
        amount(limits.disk),
        limits.files,
        count(limits.descriptors, "file", "files")
    )
}

fn files(scope: StateScope) -> &'static str {
    match scope {
        StateScope::None => "What a bot writes is deleted after each match.",
        StateScope::Pairing => {
            "A bot finds the files that it left in its previous match against the same opponent."
        }
        StateScope::Tournament => "A bot finds the files that it left in its previous match.",
    }
}

fn entry(rules: &Submissions) -> String {
    let trial = if rules.preflight {
        "Each version of a player's bot is built and tried before it enters."
    } else {
        "Versions enter at once, without a trial."
    };
    let per_hour = match rules.per_hour {
        0 => String::new(),
        per_hour => {
            let versions = count(per_hour, "version", "versions");
            format!(" An owner may submit {versions} an hour.")
        }
    };
    let closes = match rules.closes {
        Some(closes) => format!(" Entry deadline: {}.", format_time(closes.0)),
        None => String::new(),
    };
    format!("{trial}{per_hour}{closes}")
}

fn freeze(rules: &Submissions) -> String {
    match rules.freeze {
        None => "Leaderboards are never frozen.".to_owned(),
        Some(freeze) => format!(
            "From {} until the tournament is over, only organisers see newer results.",
            format_time(freeze.0)
        ),
    }
}

fn replays(replays: Replays) -> &'static str {
    match replays {
        Replays::Never => "Only organisers and the owners of the bots in a match see its replay.",
        Replays::AfterClose => "Everyone sees the replays when the tournament is over.",
        Replays::Always => "Everyone sees the replay of a match when it is over.",
    }
}

fn rerun(file: &TournamentFile) -> String {
    match file.rerun {
        Rerun::EverySubmission => format!(
            "After the first edition, every change opens a new one within {}. Only matches that the \
             change affects are played.",
            duration(file.submissions.window)
        ),
        Rerun::Manual => "An organiser starts each edition.".to_owned(),
    }
}

fn suspension(rules: &Submissions) -> String {
    match rules.stand_down_percent {
        100 => "No bot is suspended for forfeits.".to_owned(),
        percent => format!(
            "A version that forfeits more than {percent}\u{a0}% of its matches is suspended, once it \
             has played {}.",
            matches(rules.stand_down_after)
        ),
    }
}

fn audits(file: &TournamentFile) -> String {
    if file.audit.replay.of_ten_thousand() == 0 && file.audit.shadow.of_ten_thousand() == 0 {
        return "No record is replayed, and no match is played twice.".to_owned();
    }
    let percent = |share: &dyn fmt::Display| share.to_string().replace('%', "\u{a0}%");
    format!(
        "The coordinator replays {} of the records, and a second worker plays {} of the matches \
         again.",
        percent(&file.audit.replay),
        percent(&file.audit.shadow)
    )
}

fn duration(time: Micros) -> String {
    parameter_words::with_spaced_units(&time.to_string())
}

/// An amount with a no-break space before its unit: `400 MB`.
fn amount(bytes: Bytes) -> String {
    bytes.to_string().replace(' ', "\u{a0}")
}

/// `once`, `twice`, `3 times`.
fn times(number: u32) -> String {
    match number {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        number => format!("{number} times"),
    }
}

fn matches(number: u32) -> String {
    count(number, "match", "matches")
}

fn rounds_text(number: u32) -> String {
    count(number, "round", "rounds")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bot_that_is_started_for_each_decision_has_no_time_to_start_up() {
        let words = |ponder, protocol| clock(&ClockRules::OFFICIAL, ponder, protocol);
        for ponder in [Ponder::Freeze, Ponder::Allow] {
            let text = words(ponder, Protocol::Exec);
            assert!(
                text.contains("its start counts") && text.contains("20\u{a0}ms more"),
                "{text}"
            );
            for wrong in ["10\u{a0}s", "A bot is paused", "may compute"] {
                assert!(!text.contains(wrong), "{wrong}: {text}");
            }
            for protocol in [Protocol::Stdio, Protocol::Http] {
                let other = words(ponder, protocol);
                assert!(other.contains("A bot has 10\u{a0}s more for its first reply."), "{other}");
                assert_eq!(other.contains("A bot is paused"), ponder == Ponder::Freeze, "{other}");
            }
        }
    }
}
