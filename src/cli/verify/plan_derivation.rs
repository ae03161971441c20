//! Derives the matches of an export again from its published seed: pairings, parameters and the
//! seed of each match. Needs no coordinator.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arbiter_coordinator::db::matches::{Match, Seats};
use arbiter_coordinator::db::results::{Forfeits, SeatedResult};
use arbiter_coordinator::tournament::TournamentFile;
use arbiter_coordinator::tournament::beacon::seed_origin;
use arbiter_coordinator::tournament::lot_assignment::deal_seed;
use arbiter_coordinator::tournament::plan_derivation::{Commitment, EditionSource};
use arbiter_coordinator::tournament::report_check::Checker;
use arbiter_games::{ClockRules, Games, Params, Seed};
use arbiter_proto::ids::MatchNumber;
use arbiter_proto::v1;
use arbiter_ranking::Entrant;
use serde::Deserialize;
use serde_json::Value;

use super::expectations::{ExpectedMatch, ExportedGame, ExportedResult, MatchPlan};

/// The files of an export besides its records.
const TOURNAMENT: &str = "tournament.json";
const RANKING: &str = "ranking.json";
pub(super) const MATCHES: &str = "matches.jsonl";
/// The folder of its records.
pub(super) const RECORDS: &str = "records";
/// Maximum number of reported differences of an export.
const MAX_DIFFERENCES: usize = 1000;

/// Whether this directory is an export.
pub(super) fn is_export(directory: &Path) -> bool {
    [TOURNAMENT, MATCHES].iter().all(|name| directory.join(name).is_file())
}

/// The record of a match in an export.
pub(super) fn record_path(export: &Path, number: i64) -> PathBuf {
    export.join(RECORDS).join(format!("{number:06}.jsonl"))
}

/// The result of checking an export.
#[derive(Debug)]
pub(super) struct CheckedExport {
    /// Its game.
    pub(super) game: ExportedGame,
    /// The expected contents of its records.
    pub(super) expected: Vec<ExpectedMatch>,
    /// Contradictions within the export or with its published seed.
    pub(super) differences: Vec<String>,
    /// Where its seed comes from.
    pub(super) seed_origin: String,
    /// Why no matches were derived from the seed.
    pub(super) not_derived: Option<&'static str>,
    /// Why its seed is not the seed of the tournament's final edition.
    pub(super) not_final: Option<String>,
}

/// The parts of `tournament.json` that determine the matches.
#[derive(Debug, Deserialize)]
struct ExportedTournament {
    edition: i32,
    /// The state of the edition.
    state: String,
    /// The state of the tournament; older versions did not write it.
    #[serde(default)]
    tournament_state: Option<String>,
    seed_hash: Seed,
    seed: Option<Seed>,
    #[serde(default)]
    beacon: Option<Beacon>,
    settings: Value,
    #[serde(default)]
    source: Option<EditionSource>,
}

#[derive(Debug, Deserialize)]
struct Beacon {
    #[serde(default)]
    name: String,
    value: Option<String>,
    first_edition: Option<i32>,
}

impl ExportedTournament {
    /// Its game.
    fn game(&self) -> ExportedGame {
        let text = |pointer: &str| Some(self.settings.pointer(pointer)?.as_str()?.to_owned());
        ExportedGame { name: text("/game").unwrap_or_default(), package: text("/package/digest") }
    }

    /// The origin of the edition's seed, as text.
    fn seed_origin(&self) -> String {
        let beacon = self.beacon.as_ref().map(|beacon| v1::Beacon {
            name: beacon.name.clone(),
            value: beacon.value.clone().unwrap_or_default(),
            set_at_us: 0,
            first_edition: beacon.first_edition.unwrap_or(i32::MAX),
        });
        seed_origin(beacon.as_ref(), self.edition)
    }

    /// The difference between its beacon and the one in its settings.
    fn beacon_difference(&self) -> Option<String> {
        let setting = self.settings.get("beacon").and_then(Value::as_str)?;
        match &self.beacon {
            Some(beacon) if beacon.name == setting => None,
            Some(beacon) => Some(format!(
                "the settings name the beacon \"{setting}\", {TOURNAMENT} has \"{}\"",
                beacon.name
            )),
            None => {
                Some(format!("the settings name the beacon \"{setting}\", {TOURNAMENT} has none"))
            }
        }
    }

    /// Why the beacon did not decide the edition's seed, if the tournament has a beacon.
    fn before_beacon(&self) -> Option<String> {
        let Beacon { name, value, first_edition } = self.beacon.as_ref()?;
        match (value, first_edition) {
            (Some(_), Some(first)) if self.edition >= *first => None,
            (Some(_), Some(first)) => Some(format!(
                "edition {} comes before edition {first}, the first one that the beacon \"{name}\" \
                 decides, so the organiser chose its seed",
                self.edition
            )),
            _ => {
                Some(format!("the beacon \"{name}\" has no value, so the organiser chose the seed"))
            }
        }
    }

    /// Whether the tournament was closed (not cancelled).
    fn is_closed(&self) -> bool {
        match &self.tournament_state {
            Some(state) => state == "closed",
            None => self.seed.is_some(),
        }
    }
}

/// A line of `matches.jsonl`.
#[derive(Debug, Deserialize)]
struct Line {
    #[serde(rename = "match")]
    number: i64,
    seats: Vec<Seat>,
    #[serde(flatten)]
    outcome: ExportedResult,
    deal: Option<i64>,
    seed: Option<Seed>,
}

#[derive(Debug, Deserialize)]
struct Seat {
    bot: String,
}

/// Checks the seed of an export and, if it is published, derives the matches again.
pub(super) fn check(games: &Games, export: &Path) -> io::Result<CheckedExport> {
    let path = export.join(TOURNAMENT);
    let tournament: ExportedTournament = serde_json::from_str(&fs::read_to_string(path)?)
        .map_err(|error| malformed_tournament(&error))?;
    let lines = BufReader::new(File::open(export.join(MATCHES))?).lines();
    let mut checked = CheckedExport {
        game: tournament.game(),
        expected: Vec::new(),
        differences: tournament.beacon_difference().into_iter().collect(),
        seed_origin: tournament.seed_origin(),
        not_derived: None,
        not_final: None,
    };
    match tournament.before_beacon() {
        Some(reason) if tournament.is_closed() => checked
            .differences
            .push(format!("{reason}; the tournament is closed, so export its official edition")),
        reason => checked.not_final = reason,
    }
    match (tournament.seed, &tournament.source) {
        (None, _) => {
            checked.not_derived = Some("its tournament was open, so the seed was not published");
            read_results(lines, &mut checked)?;
        }
        (_, None) => {
            checked.not_derived = Some("an older version wrote it; export the tournament again");
            read_results(lines, &mut checked)?;
        }
        (Some(seed), Some(source)) => {
            derive(games, export, &tournament, (seed, source), lines, &mut checked)?;
        }
    }
    checked.differences.truncate(MAX_DIFFERENCES);
    Ok(checked)
}

fn malformed_tournament(error: &dyn fmt::Display) -> io::Error {
    io::Error::other(format!("{TOURNAMENT} is malformed: {error}"))
}

/// Reads the results of an export whose matches cannot be derived. Its records are still compared
/// with these results.
fn read_results(
    lines: impl Iterator<Item = io::Result<String>>,
    checked: &mut CheckedExport,
) -> io::Result<()> {
    for text in lines {
        let line = parse_line(&text?).map_err(io::Error::other)?;
        checked.expected.push(ExpectedMatch {
            number: line.number,
            bots: line.bots(),
            plan: None,
            result: line.result(),
        });
    }
    Ok(())
}

/// Derives the matches of an export again.
fn derive(
    games: &Games,
    export: &Path,
    tournament: &ExportedTournament,
    (seed, source): (Seed, &EditionSource),
    lines: impl Iterator<Item = io::Result<String>>,
    checked: &mut CheckedExport,
) -> io::Result<()> {
    let file = TournamentFile::from_json(games, &tournament.settings)
        .map_err(|error| malformed_tournament(&error))?;
    let beacon = tournament
        .beacon
        .as_ref()
        .and_then(|beacon| Some((beacon.value.as_deref()?, beacon.first_edition?)));
    let commitment = Commitment { seed_hash: &tournament.seed_hash.0, seed, beacon };
    checked.differences.extend(commitment.differences(tournament.edition, source.seed));
    if source.edition != tournament.edition {
        checked.differences.push(format!(
            "edition {} is exported with the source of edition {}",
            tournament.edition, source.edition
        ));
    }
    let mut comparison = Comparison {
        source,
        complete: tournament.state == "complete",
        lines: lines.peekable(),
        params: MatchParams::new(&file),
        clock: file.clock,
        checked,
    };
    let end = source.derive(&file, |planned| comparison.compare(&planned));
    // Ranks of an edition that is not complete follow its results a moment later.
    let is_complete = comparison.complete;
    if let Some(ranks) = comparison.finish(end).filter(|_| is_complete) {
        checked.differences.extend(rank_differences(export, source, &file, &ranks)?);
    }
    Ok(())
}

/// The places of `ranking.json`.
#[derive(Debug, Deserialize)]
struct ExportedRanking {
    places: Vec<ExportedPlace>,
}

#[derive(Debug, Deserialize)]
struct ExportedPlace {
    /// None for a house bot without a rank.
    rank: Option<u32>,
    bot: String,
    /// Exports of former versions do not say it.
    #[serde(default)]
    house: bool,
}

/// The differences between the exported leaderboard and the ranks that follow from the plan and its
/// results, in the order of the bots.
fn rank_differences(
    export: &Path,
    source: &EditionSource,
    file: &TournamentFile,
    ranks: &[u32],
) -> io::Result<Vec<String>> {
    let text = fs::read_to_string(export.join(RANKING))?;
    let ranking: ExportedRanking = serde_json::from_str(&text)
        .map_err(|error| io::Error::other(format!("{RANKING} is malformed: {error}")))?;
    let exported: HashMap<_, _> =
        ranking.places.iter().map(|place| (place.bot.as_str(), place)).collect();
    let is_ranked =
        |bot: &str| file.house.ranked || !exported.get(bot).is_some_and(|place| place.house);
    let bots = source.bots.iter().map(|bot| bot.name.as_str());
    let ranked = bots.clone().zip(ranks).filter(|(bot, _)| is_ranked(bot));
    let mut sorted: Vec<_> = ranked.map(|(_, rank)| *rank).collect();
    sorted.sort_unstable();
    let text =
        |rank: Option<usize>| rank.map_or("no rank".to_owned(), |rank| format!("rank {rank}"));
    let difference = |(bot, rank): (&str, &u32)| {
        let better = sorted.partition_point(|other| other < rank);
        let expected = is_ranked(bot).then_some(better + 1);
        let found = exported.get(bot).and_then(|place| place.rank);
        let found = found.map(|rank| usize::try_from(rank).unwrap_or(usize::MAX));
        (found != expected).then(|| {
            format!("{RANKING}: {bot} has {}, the results give {}", text(found), text(expected))
        })
    };
    Ok(bots.zip(ranks).filter_map(difference).collect())
}

fn parse_line(text: &str) -> Result<Line, String> {
    serde_json::from_str(text).map_err(|error| format!("{MATCHES}: not a match: {error}: {text}"))
}

impl Line {
    fn bots(&self) -> Vec<String> {
        self.seats.iter().map(|seat| seat.bot.clone()).collect()
    }

    /// The result of the match; `None` if it was hidden from the exporting user.
    fn result(&self) -> Option<ExportedResult> {
        let is_visible = self.outcome.scores.iter().any(|score| !score.is_empty());
        is_visible.then(|| self.outcome.clone())
    }
}

/// A cache of match parameters, which most matches of an edition share.
struct MatchParams {
    checker: Checker,
    of_boards: HashMap<Option<i16>, Arc<Params>>,
}

impl MatchParams {
    fn new(file: &TournamentFile) -> Self {
        Self { checker: Checker::new(file), of_boards: HashMap::new() }
    }

    fn of(&mut self, planned: &Match) -> Result<Arc<Params>, String> {
        let shared = planned.params.is_none();
        if shared && let Some(cached) = self.of_boards.get(&planned.board) {
            return Ok(Arc::clone(cached));
        }
        let params = Arc::new(self.checker.params_of(planned)?);
        if shared {
            self.of_boards.insert(planned.board, Arc::clone(&params));
        }
        Ok(params)
    }
}

/// Compares exported matches with derived ones.
struct Comparison<'a, L: Iterator<Item = io::Result<String>>> {
    source: &'a EditionSource,
    /// Whether all its matches were played.
    complete: bool,
    lines: Peekable<L>,
    params: MatchParams,
    clock: ClockRules,
    checked: &'a mut CheckedExport,
}

impl<L: Iterator<Item = io::Result<String>>> Comparison<'_, L> {
    /// The exported match with this number, if it was played.
    fn line(&mut self, number: i64) -> Result<Option<Line>, String> {
        let Some(text) = self.lines.peek() else { return Ok(None) };
        let text = text.as_ref().map_err(|error| format!("{MATCHES}: {error}"))?;
        let line = parse_line(text)?;
        if line.number > number {
            return Ok(None);
        }
        self.lines.next();
        if line.number < number {
            return Err(format!("{MATCHES}: match {} comes after match {number}", line.number));
        }
        Ok(Some(line))
    }

    /// Compares one match and returns its exported result.
    fn compare(&mut self, planned: &Match) -> Result<Option<SeatedResult>, String> {
        let number = planned.number.0;
        let seed = deal_seed(self.source.seed, planned.seed_key);
        let name = |entrant: &Entrant| {
            let index = usize::try_from(entrant.0).unwrap_or(usize::MAX);
            self.source.bots.get(index).map(|bot| bot.name.clone()).unwrap_or_default()
        };
        let bots: Vec<_> = planned.seats.0.iter().map(name).collect();
        let line = self.line(number)?;
        if let Some(line) = &line {
            let exported_bots = line.bots();
            let seed_text =
                |seed: Option<Seed>| seed.map_or("none".to_owned(), |seed| seed.to_string());
            if line.seed != Some(seed) || line.deal != Some(planned.seed_key) {
                let exported_seed = seed_text(line.seed);
                self.checked.differences.push(format!(
                    "match {number}: it is exported with the seed {exported_seed}, the published \
                     seed gives {seed}"
                ));
            }
            if exported_bots != bots {
                self.checked.differences.push(format!(
                    "match {number}: it is exported with {} in its seats, the published seed \
                     gives {}",
                    exported_bots.join(", "),
                    bots.join(", ")
                ));
            }
        }
        if line.is_none() && self.complete {
            self.checked.differences.push(format!("match {number} is missing in {MATCHES}"));
        }
        let plan = MatchPlan { seed, params: self.params.of(planned)?, clock: self.clock };
        let result = line.as_ref().and_then(Line::result);
        self.checked.expected.push(ExpectedMatch { number, bots, plan: Some(plan), result });
        Ok(line.map(|line| to_played(planned.number, &planned.seats, &line)))
    }

    /// Reports why the derivation stopped. If it did not stop early, reports an exported match that
    /// does not follow from the seed. Returns the ranks of the bots if the plan decides them.
    fn finish(mut self, end: Result<Option<Vec<u32>>, String>) -> Option<Vec<u32>> {
        match end {
            Err(reason) => {
                self.checked.differences.push(reason);
                None
            }
            Ok(ranks) => {
                if let Some(Ok(text)) = self.lines.next() {
                    self.checked.differences.push(format!(
                        "{MATCHES}: this does not follow from the published seed: {text}"
                    ));
                }
                ranks
            }
        }
    }
}

fn to_played(number: MatchNumber, seats: &Seats, line: &Line) -> SeatedResult {
    let to_i32 = |count: &i64| i32::try_from(*count).unwrap_or(i32::MAX);
    let bad_answers: Vec<_> = line.outcome.bad_answers.iter().map(to_i32).collect();
    SeatedResult {
        number,
        seats: seats.clone(),
        carried: None,
        scores: line.outcome.scores.concat(),
        forfeits: Forfeits::default(),
        bad_answers: Some(bad_answers).filter(|bad_answers| !bad_answers.is_empty()),
    }
}
