//! The expected contents of records: the plan derived from the seed, and the exported results.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufRead as _, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arbiter_games::{ClockRules, EntrantName, Games, Params, Seed};
use arbiter_replay::{Header, RecordedPackage, Verified};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::plan_derivation::{MATCHES, RECORDS, record_path};
use crate::play::record_file;

/// Maximum length of a record's first line, in bytes.
const MAX_HEADER: u64 = 1 << 20;
/// Maximum length of a printed parameter value, in characters.
const MAX_VALUE: usize = 100;
/// The difference of a record that its export should not have.
const UNKNOWN_MATCH: &str = "the edition has no match of this number";

/// The game of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExportedGame {
    pub(super) name: String,
    /// The digest of its package; `None` if it is built in.
    pub(super) package: Option<String>,
}

impl fmt::Display for ExportedGame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, package } = self;
        match package {
            Some(digest) => write!(f, "the game package {name} of digest {digest}"),
            None => f.write_str(name),
        }
    }
}

/// The expected contents of a match's record.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExpectedMatch {
    /// The number of the match in its export: its position in the schedule of the edition.
    pub(super) number: i64,
    /// Its bots, seat 1 first.
    pub(super) bots: Vec<String>,
    /// The plan of the match, if the seed is published.
    pub(super) plan: Option<MatchPlan>,
    /// The exported result.
    pub(super) result: Option<ExportedResult>,
}

/// The plan of one match, derived from the tournament file and the seed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MatchPlan {
    pub(super) seed: Seed,
    /// The tournament's parameters, with the board and the chips of the match.
    pub(super) params: Arc<Params>,
    pub(super) clock: ClockRules,
}

/// The exported result of a match. Absent parts are not compared.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct ExportedResult {
    pub(super) scores: Vec<Vec<i64>>,
    #[serde(default)]
    pub(super) forfeits: Option<Vec<Option<String>>>,
    #[serde(default)]
    pub(super) bad_answers: Vec<i64>,
    #[serde(default)]
    pub(super) transcript: Option<String>,
}

impl ExpectedMatch {
    /// The first difference in the first line of a record.
    fn header_difference(&self, header: &Header) -> Option<String> {
        let Self { number, bots, plan, .. } = self;
        if let Some(MatchPlan { seed, params, clock }) = plan {
            if header.seed != *seed {
                let recorded = header.seed;
                return Some(format!(
                    "match {number} has the seed {recorded}, the published seed gives {seed}"
                ));
            }
            if let Some(difference) = params_difference(&header.params, params) {
                return Some(format!("match {number} was played with {difference}"));
            }
            if header.clock != *clock {
                let recorded = shorten(&json(&header.clock));
                let expected = shorten(&json(clock));
                return Some(format!(
                    "match {number} was played with the clock {recorded}, the tournament has \
                     {expected}"
                ));
            }
        }
        let recorded_bots: Vec<_> = header.seats.iter().map(|seat| seat.bot.to_string()).collect();
        let origin = if plan.is_some() { "the published seed" } else { MATCHES };
        let in_matches = |bot: &String| {
            let name = bot.parse::<EntrantName>().ok();
            name.map_or_else(|| bot.clone(), |name| name.in_matches().to_string())
        };
        let expected_bots: Vec<_> = bots.iter().map(in_matches).collect();
        (recorded_bots != expected_bots).then(|| {
            let recorded = recorded_bots.join(", ");
            let expected = expected_bots.join(", ");
            format!("match {number} seats {recorded}, {origin} gives {expected}")
        })
    }

    /// The first difference between a verified record's result and the exported one.
    fn result_difference(&self, verified: &Verified) -> Option<String> {
        let standings = &verified.standings;
        let Some(result) = &self.result else {
            let is_planned = self.plan.is_some();
            return is_planned
                .then(|| format!("match {}: {MATCHES} does not contain its result", self.number));
        };
        let scores: Vec<_> = standings.iter().map(|seat| &seat.score).collect();
        let forfeits: Vec<_> = standings
            .iter()
            .map(|seat| seat.forfeit.map(|kind| kind.as_str().to_owned()))
            .collect();
        let bad_answers: Vec<_> = standings.iter().map(|seat| seat.bad_answers).collect();
        let exported_bad_answers = Some(&result.bad_answers).filter(|counts| !counts.is_empty());
        let transcript = verified.transcript.to_string();
        let difference = part_difference("scores", &scores, Some(&result.scores))
            .or_else(|| part_difference("forfeits", &forfeits, result.forfeits.as_ref()))
            .or_else(|| part_difference("bad replies", &bad_answers, exported_bad_answers))
            .or_else(|| part_difference("transcript", &transcript, result.transcript.as_ref()));
        difference.map(|difference| format!("match {}: {difference}", self.number))
    }
}

/// The difference between a part of a result and the exported part.
fn part_difference(
    what: &str,
    recorded: &impl Serialize,
    exported: Option<&impl Serialize>,
) -> Option<String> {
    let recorded = json(recorded);
    let exported = exported.map(json).filter(|exported| *exported != recorded)?;
    Some(format!("its record gives the {what} {recorded}, {MATCHES} has {exported}"))
}

/// The first parameter that differs from the plan.
fn params_difference(recorded: &Params, expected: &Params) -> Option<String> {
    if recorded == expected {
        return None;
    }
    if recorded.game() != expected.game() {
        return Some(format!("{}, the tournament plays {}", recorded.game(), expected.game()));
    }
    let recorded = json(recorded);
    let expected = json(expected);
    let mut keys =
        [&expected, &recorded].into_iter().filter_map(Value::as_object).flat_map(Map::keys);
    let Some(key) = keys.find(|key| recorded.get(*key) != expected.get(*key)) else {
        return Some("other parameters than the tournament and its plan give".to_owned());
    };
    let value = |params: &Value| params.get(key).map_or("nothing".to_owned(), shorten);
    Some(format!(
        "{key} = {}, the tournament and its plan give {}",
        value(&recorded),
        value(&expected)
    ))
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// A value as text, shortened to fit a line.
fn shorten(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The expected contents of all records of exports.
#[derive(Debug, Default)]
pub(super) struct Expectations {
    by_path: HashMap<PathBuf, ExpectedMatch>,
    /// The record folders of exports, with their games. They may contain only expected records.
    folders: HashMap<PathBuf, ExportedGame>,
}

impl Expectations {
    /// Adds the matches of an export.
    pub(super) fn add(&mut self, export: &Path, game: ExportedGame, expected: Vec<ExpectedMatch>) {
        let paths = expected.into_iter().map(|item| (record_path(export, item.number), item));
        self.by_path.extend(paths);
        self.folders.insert(export.join(RECORDS), game);
    }

    /// The difference between the package that a record names and the game of its export.
    pub(super) fn package_difference(
        &self,
        path: &Path,
        package: RecordedPackage,
    ) -> Option<String> {
        let game = self.folders.get(path.parent()?)?;
        let Some(ExpectedMatch { number, .. }) = self.by_path.get(path) else {
            return Some(UNKNOWN_MATCH.to_owned());
        };
        let RecordedPackage { game: name, digest, .. } = package;
        let recorded = ExportedGame { name, package: Some(digest) };
        (recorded != *game).then(|| {
            format!("match {number} was played with {recorded}, the tournament plays {game}")
        })
    }

    /// The first difference in the first line of a record.
    pub(super) fn header_difference(
        &self,
        games: &Games,
        path: &Path,
    ) -> io::Result<Option<String>> {
        let Some(expected) = self.by_path.get(path) else {
            let is_exported = path.parent().is_some_and(|folder| self.folders.contains_key(folder));
            return Ok(is_exported.then(|| UNKNOWN_MATCH.to_owned()));
        };
        let mut first = String::new();
        record_file::open(path)?.take(MAX_HEADER).read_line(&mut first)?;
        // The replay reports a malformed first line.
        let header = Header::parse(games, &first).ok();
        Ok(header.and_then(|header| expected.header_difference(&header)))
    }

    /// The first difference between a verified record's result and the exported one.
    pub(super) fn result_difference(&self, path: &Path, verified: &Verified) -> Option<String> {
        self.by_path.get(path)?.result_difference(verified)
    }
}
