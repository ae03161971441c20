//! Reads the descriptor of a package from its file `game.toml`.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use arbiter_games::{Allowance, Framing, Micros, ParamInfo, ParamKind, Protocol, Text, Value};
use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

use crate::clock::PackageClock;
use crate::descriptor::{Carrier, Descriptor, PackageSchedule};
use crate::episodes::PackageEpisodes;
use crate::params;
use crate::rules::FRAMES;

/// The name of the descriptor in the folder of a package.
pub const GAME_TOML: &str = "game.toml";

/// Maximum number of seats of a table.
const MAX_SEATS: usize = arbiter_games::MAX_SEATS as usize;
/// Maximum number of components of a score.
const MAX_COLUMNS: usize = 8;
/// The limit of a reply if the descriptor has no clock.
const DEFAULT_LIMIT: Micros = Micros::from_millis(500);
/// The expected time of a match in milliseconds, if the descriptor does not say it.
const DEFAULT_MATCH_MS: i64 = 2000;

/// Why a descriptor is not valid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line} of {GAME_TOML}: {cause}")]
pub struct DescriptorError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, with the remedy.
    pub cause: String,
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDescriptor {
    name: Option<Spanned<String>>,
    title: Option<String>,
    version: Option<Spanned<String>>,
    seats: Option<Spanned<[usize; 2]>>,
    #[serde(default)]
    score: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    schedule: Option<Spanned<String>>,
    rules: Option<Spanned<RawRules>>,
    #[serde(default)]
    frames: bool,
    #[serde(default)]
    bot: RawBot,
    #[serde(default)]
    clock: Option<Spanned<RawClock>>,
    #[serde(default)]
    params: BTreeMap<Spanned<String>, RawParam>,
    #[serde(default)]
    episodes: Option<Spanned<PackageEpisodes>>,
    #[serde(default)]
    trial: BTreeMap<Spanned<String>, Value>,
    #[serde(default)]
    match_time: Option<Micros>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRules {
    run: Option<Spanned<Vec<String>>>,
    wasm: Option<Spanned<String>>,
    build: Option<Spanned<Vec<String>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBot {
    protocol: Option<Spanned<String>>,
    framing: Option<Spanned<RawFraming>>,
    #[serde(default)]
    arguments: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum RawFraming {
    Name(String),
    EndsWith(RawEnd),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEnd {
    ends_with: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClock {
    #[serde(rename = "move")]
    limit: Option<Micros>,
    bank: Option<Micros>,
    increment: Option<Micros>,
    announce: Option<String>,
}

/// A parameter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawParam {
    #[serde(rename = "type")]
    kind: Option<RawKind>,
    default: Option<Value>,
    min: Option<f64>,
    max: Option<f64>,
    choices: Option<Vec<String>>,
    help: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RawKind {
    Integer,
    Number,
    Boolean,
    Text,
    Choice,
    Duration,
    PerSeat,
}

impl Descriptor {
    /// Reads a descriptor.
    ///
    /// # Errors
    /// The first mistake, with its line.
    pub fn parse(text: &str) -> Result<Self, DescriptorError> {
        let at = |span: Range<usize>, cause: String| {
            let line = 1 + text[..span.start.min(text.len())].matches('\n').count();
            DescriptorError { line, cause }
        };
        let span = |error: &toml::de::Error| error.span().unwrap_or(0..0);
        if let Err(error) = toml::from_str::<toml::Table>(text) {
            return Err(at(span(&error), error.message().to_owned()));
        }
        let raw: RawDescriptor = toml::from_str(text).map_err(|error| {
            let span = span(&error);
            let cause = remedy(text, span.start).unwrap_or_else(|| error.message().to_owned());
            at(span, cause)
        })?;
        raw.check().map_err(|(span, cause)| at(span, cause))
    }
}

/// How to write the value of a key, for values of another type.
const REMEDIES: [(&str, &str); 5] = [
    ("rules", "write { run = [\"python3\", \"rules.py\"] } or { wasm = \"rules.wasm\" }"),
    ("seats", "write the least and the most at a table, as in [2, 4]"),
    ("score", "write a list, as in [\"value\"]"),
    ("version", "write it in quotes, as in \"1\""),
    ("type", "write integer, number, boolean, text, choice, duration or per_seat"),
];

/// How to write the value at byte `start` of the text, for some keys.
fn remedy(text: &str, start: usize) -> Option<String> {
    let line = text.get(..start)?.rsplit('\n').next()?;
    let key = line.split('=').next()?.trim();
    // Keys of sections may have the same names, but `type` is only in sections.
    let is_in_section = text[..start].lines().any(|line| line.starts_with('['));
    let is_meant = |name: &str| name == key && (name == "type") == is_in_section;
    let (_, remedy) = REMEDIES.into_iter().find(|(name, _)| is_meant(name))?;
    Some(format!("{key}: {remedy}"))
}

/// The value of a required key. `example` is its line with a value.
fn required<T>(value: Option<T>, example: &str) -> Result<T, String> {
    let key = || example.split(' ').next().unwrap_or_default();
    value.ok_or_else(|| format!("{} is missing: add a line such as {example}", key()))
}

/// A mistake at these bytes of the text.
type Mistake = (Range<usize>, String);

impl RawDescriptor {
    fn check(self) -> Result<Descriptor, Mistake> {
        let at_start = |cause| (0..0, cause);
        let name = required(self.name, "name = \"connect4\"").map_err(at_start)?;
        check_name(&name).map_err(|cause| (name.span(), cause))?;
        let title = required(self.title, "title = \"Connect Four\"").map_err(at_start)?;
        let version = required(self.version, "version = \"1\"").map_err(at_start)?;
        if !(1..=64).contains(&version.get_ref().len()) {
            let cause = "version: write 1 to 64 characters, as in \"1\"";
            return Err((version.span(), cause.to_owned()));
        }
        let seats = required(self.seats, "seats = [2, 2]").map_err(at_start)?;
        let [least, most] = *seats.get_ref();
        if least < 1 || least > most || most > MAX_SEATS {
            let cause = format!(
                "seats: write the least and the most at a table, from 1 to {MAX_SEATS}, as in [2, 2]"
            );
            return Err((seats.span(), cause));
        }
        let columns = match self.score {
            Some(columns) => check_columns(&columns)
                .map_err(|cause| (columns.span(), cause))
                .map(|()| columns.into_inner())?,
            None => vec!["points".to_owned()],
        };
        let raw_rules = required(self.rules, "rules = { run = [\"python3\", \"rules.py\"] }");
        let (carrier, build) = rules(raw_rules.map_err(at_start)?)?;
        let schedule = schedule(self.schedule, self.episodes.is_some(), least, most)?;
        let has_arguments = self.bot.arguments;
        let (protocol, framing) = bot(self.bot)?;
        let params = params(self.params, self.frames)?;
        let episodes = episodes(self.episodes, &params, &(least..=most), &columns)?;
        let trial = trial(self.trial, &params)?;
        Ok(Descriptor {
            name: name.into_inner(),
            title,
            version: version.into_inner(),
            seats: least..=most,
            columns,
            carrier,
            build,
            schedule,
            protocol,
            framing,
            has_arguments,
            clock: clock(self.clock)?,
            params,
            episodes,
            trial,
            match_time: self.match_time.unwrap_or(Micros::from_millis(DEFAULT_MATCH_MS)),
        })
    }
}

/// Names stand in commands, addresses and file names.
fn check_name(name: &Spanned<String>) -> Result<(), String> {
    let name = name.get_ref();
    let valid =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    if (1..=32).contains(&name.len())
        && name.chars().all(valid)
        && name.starts_with(|first: char| first.is_ascii_lowercase())
    {
        return Ok(());
    }
    Err("name: write 1 to 32 lowercase letters, digits and `-`, beginning with a letter, as in \
         \"connect4\""
        .to_owned())
}

fn is_column(name: &str) -> bool {
    (1..=32).contains(&name.len()) && !name.contains(char::is_control)
}

fn check_columns(columns: &Spanned<Vec<String>>) -> Result<(), String> {
    let columns = columns.get_ref();
    if (1..=MAX_COLUMNS).contains(&columns.len()) && columns.iter().all(|name| is_column(name)) {
        return Ok(());
    }
    Err(format!("score: write 1 to {MAX_COLUMNS} names of columns, as in [\"points\"]"))
}

fn check_command(key: &str, command: Spanned<Vec<String>>) -> Result<Vec<String>, Mistake> {
    if command.get_ref().first().is_some_and(|program| !program.is_empty()) {
        return Ok(command.into_inner());
    }
    let cause =
        format!("{key}: write a program and its arguments, as in [\"python3\", \"rules.py\"]");
    Err((command.span(), cause))
}

fn rules(raw: Spanned<RawRules>) -> Result<(Carrier, Option<Vec<String>>), Mistake> {
    let span = raw.span();
    let RawRules { run, wasm, build } = raw.into_inner();
    let carrier = match (run, wasm) {
        (Some(run), None) => Carrier::Run(check_command("rules.run", run)?),
        (None, Some(wasm)) if !wasm.get_ref().is_empty() => Carrier::Wasm(wasm.into_inner()),
        _ => {
            let cause = "rules: write either run = [\"python3\", \"rules.py\"] or \
                         wasm = \"rules.wasm\"";
            return Err((span, cause.to_owned()));
        }
    };
    let build = build.map(|build| check_command("rules.build", build)).transpose()?;
    Ok((carrier, build))
}

fn schedule(
    raw: Option<Spanned<String>>,
    has_episodes: bool,
    least: usize,
    most: usize,
) -> Result<PackageSchedule, Mistake> {
    let Some(raw) = raw else {
        return Ok(match (least, most) {
            _ if has_episodes => PackageSchedule::Episodes,
            (1, 1) => PackageSchedule::Solo,
            (..=2, 2..) => PackageSchedule::RoundRobin,
            _ => PackageSchedule::Tables,
        });
    };
    match raw.get_ref().as_str() {
        "episodes" if has_episodes => Ok(PackageSchedule::Episodes),
        "episodes" => {
            let cause = "schedule: \"episodes\" needs the section [episodes]";
            Err((raw.span(), cause.to_owned()))
        }
        _ if has_episodes => {
            let cause = "schedule: a game with [episodes] needs \"episodes\"";
            Err((raw.span(), cause.to_owned()))
        }
        "round_robin" if (least..=most).contains(&2) => Ok(PackageSchedule::RoundRobin),
        "round_robin" => {
            let cause = "schedule: \"round_robin\" needs a game for two; write \"tables\"";
            Err((raw.span(), cause.to_owned()))
        }
        "tables" => Ok(PackageSchedule::Tables),
        "solo" => Ok(PackageSchedule::Solo),
        _ => {
            let cause = "schedule: write \"round_robin\" (all pairs), \"tables\" or \"solo\"";
            Err((raw.span(), cause.to_owned()))
        }
    }
}

fn bot(raw: RawBot) -> Result<(Protocol, Framing), Mistake> {
    let protocol = match raw.protocol {
        None => Protocol::Stdio,
        Some(name) => match name.get_ref().as_str() {
            "stdio" => Protocol::Stdio,
            "exec" => Protocol::Exec,
            _ => {
                let cause = "bot.protocol: write \"stdio\" (one program for a match) or \"exec\" \
                             (one execution for each decision)";
                return Err((name.span(), cause.to_owned()));
            }
        },
    };
    let Some(framing) = raw.framing else { return Ok((protocol, Framing::Line)) };
    let span = framing.span();
    let framing = match framing.into_inner() {
        RawFraming::Name(name) if name == "line" => Framing::Line,
        RawFraming::Name(name) if name == "blank_line" => Framing::BlankLine,
        RawFraming::Name(name) if name == "gtp" => Framing::Gtp,
        RawFraming::EndsWith(RawEnd { ends_with: words })
            if !words.is_empty()
                && words
                    .iter()
                    .all(|word| !word.is_empty() && !word.contains(char::is_whitespace)) =>
        {
            Framing::EndsWith(words.into_iter().map(Text::from).collect())
        }
        _ => {
            let cause = "bot.framing: write \"line\", \"blank_line\", \"gtp\", or the words that \
                         begin the last line of a reply, as in { ends_with = [\"bestmove\"] }";
            return Err((span, cause.to_owned()));
        }
    };
    Ok((protocol, framing))
}

/// The parameters, and `frames` if the rules draw.
fn params(
    raw: BTreeMap<Spanned<String>, RawParam>,
    has_frames: bool,
) -> Result<Vec<ParamInfo>, Mistake> {
    let mut params = Vec::new();
    // In the order of the file.
    let mut raw: Vec<_> = raw.into_iter().collect();
    raw.sort_by_key(|(key, _)| key.span().start);
    for (key, param) in raw {
        let span = key.span();
        if key.get_ref() == FRAMES {
            let cause = "params.frames: choose another name; `frames = true` adds this parameter";
            return Err((span, cause.to_owned()));
        }
        params.push(param.check(key.into_inner()).map_err(|cause| (span, cause))?);
    }
    if has_frames {
        params.push(ParamInfo {
            key: FRAMES.into(),
            kind: ParamKind::Boolean,
            default: Some(Value::Boolean(true)),
            help: "record pictures for replays".into(),
        });
    }
    Ok(params)
}

fn episodes(
    raw: Option<Spanned<PackageEpisodes>>,
    params: &[ParamInfo],
    seats: &RangeInclusive<usize>,
    columns: &[String],
) -> Result<Option<PackageEpisodes>, Mistake> {
    let Some(raw) = raw else { return Ok(None) };
    let span = raw.span();
    let episodes = raw.into_inner();
    if !is_column(&episodes.column) || columns.iter().any(|name| *name == episodes.column) {
        let cause =
            "episodes.column: write 1 to 32 characters that no other column has as its name";
        return Err((span, cause.to_owned()));
    }
    episodes.check(params, seats).map_err(|cause| (span, cause))?;
    Ok(Some(episodes))
}

fn trial(
    raw: BTreeMap<Spanned<String>, Value>,
    params: &[ParamInfo],
) -> Result<Vec<(Text, Value)>, Mistake> {
    let check = |(key, value): (Spanned<String>, Value)| {
        let span = key.span();
        let param = params.iter().find(|param| param.key == key.get_ref().as_str());
        let Some(param) = param else {
            return Err((span, format!("trial: there is no parameter `{}`", key.get_ref())));
        };
        let value = params::check(param, &value).map_err(|cause| (span, format!("trial: {cause}")));
        Ok((key.into_inner().into(), value?))
    };
    raw.into_iter().map(check).collect()
}

fn clock(raw: Option<Spanned<RawClock>>) -> Result<PackageClock, Mistake> {
    let Some(raw) = raw else {
        let allowance = Allowance::Move(DEFAULT_LIMIT);
        return Ok(PackageClock { allowance, increment: Micros::ZERO, announcement: None });
    };
    let span = raw.span();
    let RawClock { limit, bank, increment, announce } = raw.into_inner();
    let some = |time: Micros| time > Micros::ZERO;
    let allowance = match (limit, bank) {
        (Some(limit), None) if some(limit) && increment.is_none() => Allowance::Move(limit),
        (None, Some(bank)) if some(bank) => Allowance::Bank(bank),
        _ => {
            let cause = "clock: write either move = \"500ms\" or bank = \"3min\", and with a bank \
                         maybe increment = \"1s\"";
            return Err((span, cause.to_owned()));
        }
    };
    let increment = increment.unwrap_or(Micros::ZERO);
    Ok(PackageClock { allowance, increment, announcement: announce })
}

impl RawParam {
    fn check(self, key: String) -> Result<ParamInfo, String> {
        let Self { kind, default, min, max, choices, help } = self;
        let in_param = |cause| format!("params.{key}: {cause}");
        let kind = required(kind, "type = \"integer\"").map_err(in_param)?;
        let default = required(default, "default = 7").map_err(in_param)?;
        let help = required(help, "help = \"columns of the board\"").map_err(in_param)?;
        match (kind, &choices) {
            (RawKind::Choice, None) => {
                let remedy = "add `choices = [\"a\", \"b\"]`, which type \"choice\" needs";
                return Err(format!("params.{key}: {remedy}"));
            }
            (RawKind::Choice, Some(_)) | (_, None) => {}
            _ => return Err(format!("params.{key}: only type \"choice\" has `choices`")),
        }
        let kind = match kind {
            RawKind::Integer => ParamKind::Integer(whole(min, i64::MIN)?..=whole(max, i64::MAX)?),
            RawKind::PerSeat => ParamKind::PerSeat(whole(min, i64::MIN)?..=whole(max, i64::MAX)?),
            RawKind::Number => ParamKind::Number(min.unwrap_or(f64::MIN)..=max.unwrap_or(f64::MAX)),
            _ if min.or(max).is_some() => {
                return Err(format!("params.{key}: only numbers have `min` and `max`"));
            }
            RawKind::Boolean => ParamKind::Boolean,
            RawKind::Text => ParamKind::Text,
            RawKind::Choice => {
                let choices = choices.into_iter().flatten();
                ParamKind::Choice(choices.map(Into::into).collect())
            }
            RawKind::Duration => ParamKind::Duration,
        };
        let param = ParamInfo { key: key.into(), kind, default: None, help: help.into() };
        let default = params::check(&param, &default)
            .map_err(|cause| format!("params.{}: the default: {cause}", param.key))?;
        Ok(ParamInfo { default: Some(default), ..param })
    }
}

/// A bound of a whole number.
fn whole(bound: Option<f64>, otherwise: i64) -> Result<i64, String> {
    let Some(bound) = bound else { return Ok(otherwise) };
    #[expect(clippy::cast_possible_truncation, reason = "it is checked")]
    let number = bound as i64;
    #[expect(clippy::cast_precision_loss, reason = "a bound beyond 2^53 is refused")]
    let exact = number as f64;
    if bound.abs() <= 9_007_199_254_740_992.0 && (exact - bound).abs() < f64::EPSILON {
        return Ok(number);
    }
    Err(format!("{bound} is not a whole number; the bounds of an integer are"))
}

#[cfg(test)]
mod tests;
