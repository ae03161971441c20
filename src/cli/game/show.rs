//! `arbiter game show`: the descriptor of a game.

use arbiter_games::{
    Allowance, Framing, Game, Games, Micros, PairSeats, ParamInfo, ParamKind, Params, Protocol,
    ScheduleKind, Value, seat_counts,
};
use arbiter_packages::{Carrier, PackageClock, PackageSchedule};
use arbiter_worker::package::Package;
use clap::Args;
use serde_json::{Map, Value as Json, json};

use super::subject::Subject;
use crate::failure::Failure;
use crate::output::{Columns, Output, merge, print};

/// Show everything that is known about a game: seats, score, clock, parameters.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter game show gomoku
  arbiter game show games/packages/connect4 --json")]
pub(super) struct Show {
    /// The name of a built-in game, or the folder or file of a package.
    #[arg(value_name = "GAME|PACKAGE")]
    subject: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        let subject = Subject::find(games, &self.subject)?;
        print(|out| {
            if self.json {
                return out.json(&object(&subject));
            }
            for (key, text) in facts(&subject) {
                out.line(&format!("{key:<9}  {text}"))?;
            }
            params(&subject.game, out)
        })
    }
}

/// The facts as lines of a key and a text.
fn facts(subject: &Subject) -> Vec<(&'static str, String)> {
    let game = &subject.game;
    let mut facts = vec![
        ("name", game.name.to_string()),
        ("title", game.title.to_string()),
        ("version", game.rules_version.to_string()),
        ("package", game.package.as_deref().unwrap_or("none, it is built in").to_owned()),
        ("seats", seat_counts(&game.seats)),
        ("score", format!("{} (more is better)", game.columns.join(", then "))),
        ("schedule", schedule(subject)),
        ("bots", format!("{}; {}", protocol(game), framing(&game.bots.framing))),
    ];
    if let Some(Package { descriptor, .. }) = &subject.package {
        facts.push(("clock", clock(&descriptor.clock)));
        facts.push(("rules", carrier(&descriptor.carrier)));
    }
    facts.push(("match", format!("about {}", Micros::from_millis(match_ms(game)))));
    facts
}

/// The expected time of an official match in milliseconds.
fn match_ms(game: &Game) -> i64 {
    game.time.of(&Params::official(game).values())
}

fn schedule(subject: &Subject) -> String {
    let text = match &subject.package {
        Some(package) => match package.descriptor.schedule {
            PackageSchedule::RoundRobin => "round robin",
            PackageSchedule::Tables => "tables",
            PackageSchedule::Solo => "every bot plays alone",
            PackageSchedule::Episodes => "episodes",
        },
        None => match subject.game.official.schedule {
            ScheduleKind::RoundRobin(PairSeats::Balanced) => "round robin, seats balanced",
            ScheduleKind::RoundRobin(PairSeats::Both) => "round robin, in both orders of seats",
            ScheduleKind::RoundRobin(PairSeats::Random) => "round robin, seats random",
            ScheduleKind::Foursomes => "tables of four",
            ScheduleKind::Tables(seats) => return format!("tables of {seats}"),
            ScheduleKind::Solo => "every bot plays alone",
            ScheduleKind::Episodes(number) => return format!("{number} episodes of all bots"),
        },
    };
    text.to_owned()
}

fn protocol(game: &Game) -> &'static str {
    match game.bots.protocol {
        Protocol::Stdio if game.bots.http => "one program for a match, or an HTTP client",
        Protocol::Stdio => "one program for a match",
        Protocol::Exec => "one execution for each decision",
        Protocol::Http => "an HTTP client",
    }
}

fn framing(framing: &Framing) -> String {
    match framing {
        Framing::Line => "a reply is one line".to_owned(),
        Framing::Gtp => "a reply is one of GTP, and ends with an empty line".to_owned(),
        Framing::BlankLine => "a reply ends with an empty line".to_owned(),
        Framing::EndsWith(words) => {
            format!("a reply ends with a line that begins with {}", words.join(" or "))
        }
    }
}

fn clock(clock: &PackageClock) -> String {
    let time = match clock.allowance {
        Allowance::Move(limit) => format!("{limit} for each reply"),
        Allowance::Bank(bank) if clock.increment > Micros::ZERO => {
            format!("{bank} for a match, and {} more after each reply", clock.increment)
        }
        Allowance::Bank(bank) => format!("{bank} for a match"),
    };
    match &clock.announcement {
        Some(text) => format!("{time}; each request is preceded by `{text}`"),
        None => time,
    }
}

fn carrier(carrier: &Carrier) -> String {
    match carrier {
        Carrier::Run(command) => format!("program {}", command.join(" ")),
        Carrier::Wasm(file) => format!("WebAssembly module {file}"),
    }
}

/// The table of parameters.
fn params(game: &Game, out: &mut Output) -> Result<(), Failure> {
    let header = ["PARAMETER", "VALUES", "DEFAULT", "TRIAL", "MEANING"];
    let mut table = Columns::new(header, &[0, 1, 2, 3, 4]);
    let official = Params::official(game).values();
    for param in &game.params {
        let default = param.default.as_ref().or_else(|| official.get(&param.key));
        let default = default.map_or_else(|| "-".to_owned(), plain);
        let trial = trial(game, param).map_or_else(|| "-".to_owned(), plain);
        let help = param.help.to_string();
        table.push(vec![param.key.to_string(), kind(&param.kind).1, default, trial, help]);
    }
    if table.is_empty() {
        return out.line("parameters  none");
    }
    out.line("")?;
    out.table(&table)
}

fn trial<'a>(game: &'a Game, param: &ParamInfo) -> Option<&'a Value> {
    game.trial.iter().find(|(key, _)| *key == param.key).map(|(_, value)| value)
}

/// A value as it is written after `--set KEY=`.
fn plain(value: &Value) -> String {
    match value {
        Value::Text(text) => text.lines().next().unwrap_or_default().to_owned(),
        value => value.to_string(),
    }
}

/// The type of a parameter, and its values in words.
fn kind(kind: &ParamKind) -> (&'static str, String) {
    let bound = |bound: &i64| match *bound {
        i64::MIN | i64::MAX => "any".to_owned(),
        bound => bound.to_string(),
    };
    match kind {
        ParamKind::Integer(range) => {
            ("integer", format!("{} to {}", bound(range.start()), bound(range.end())))
        }
        ParamKind::PerSeat(range) => {
            let least = bound(range.start());
            let most = bound(range.end());
            ("per_seat", format!("{least} to {most}, or one for each seat"))
        }
        ParamKind::Number(range) if *range.start() > f64::MIN || *range.end() < f64::MAX => {
            ("number", format!("{} to {}", range.start(), range.end()))
        }
        ParamKind::Number(_) => ("number", "any number".to_owned()),
        ParamKind::Boolean => ("boolean", "true or false".to_owned()),
        ParamKind::Text => ("text", "text".to_owned()),
        ParamKind::Choice(choices) => ("choice", choices.join(", ")),
        ParamKind::Duration => ("duration", "duration, as in 500ms".to_owned()),
    }
}

/// Everything as JSON.
fn object(subject: &Subject) -> Json {
    let game = &subject.game;
    let official = Params::official(game).values();
    let params: Vec<_> = game
        .params
        .iter()
        .map(|param| {
            let default = param.default.as_ref().or_else(|| official.get(&param.key));
            let object = json!({"key": param.key, "type": kind(&param.kind).0,
                "default": default, "trial": trial(game, param), "help": param.help});
            merge(object, limits(&param.kind))
        })
        .collect();
    let object = json!({
        "name": game.name, "title": game.title, "version": game.rules_version,
        "digest": game.package, "seats": [game.seats.start(), game.seats.end()],
        "score": game.columns, "schedule": schedule(subject),
        "bot": {"protocol": game.bots.protocol, "http": game.bots.http,
            "framing": framing_json(&game.bots.framing)},
        "params": params, "match_ms": match_ms(game),
    });
    let Some(Package { descriptor, .. }) = &subject.package else { return object };
    let clock = match descriptor.clock.allowance {
        Allowance::Move(limit) => json!({"move": limit.to_string()}),
        Allowance::Bank(bank) => {
            let increment = descriptor.clock.increment.to_string();
            json!({"bank": bank.to_string(), "increment": increment})
        }
    };
    let clock = merge(clock, json!({"announce": descriptor.clock.announcement}));
    let rules = match &descriptor.carrier {
        Carrier::Run(command) => json!({"run": command}),
        Carrier::Wasm(file) => json!({"wasm": file}),
    };
    let rules = merge(rules, json!({"build": descriptor.build}));
    merge(object, json!({"clock": clock, "rules": rules}))
}

/// The limits of a parameter.
fn limits(kind: &ParamKind) -> Json {
    match kind {
        ParamKind::Integer(range) | ParamKind::PerSeat(range) => {
            json!({"min": range.start(), "max": range.end()})
        }
        ParamKind::Number(range) => json!({"min": range.start(), "max": range.end()}),
        ParamKind::Choice(choices) => json!({"choices": choices}),
        ParamKind::Boolean | ParamKind::Text | ParamKind::Duration => Json::Object(Map::new()),
    }
}

fn framing_json(framing: &Framing) -> Json {
    match framing {
        Framing::Line => json!("line"),
        Framing::Gtp => json!("gtp"),
        Framing::BlankLine => json!("blank_line"),
        Framing::EndsWith(words) => json!({"ends_with": &words[..]}),
    }
}
