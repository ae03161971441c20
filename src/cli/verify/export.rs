//! What `arbiter tournament export` has written, derived again from the seed that it publishes: who
//! meets whom, and the seed of each match. No coordinator is asked.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::iter::Peekable;
use std::path::{Path, PathBuf};

use arbiter_coordinator::db::matches::{Match, Seats};
use arbiter_coordinator::db::results::{Forfeits, Played};
use arbiter_coordinator::tournament::TournamentFile;
use arbiter_coordinator::tournament::derivation::{Commitment, EditionSource};
use arbiter_coordinator::tournament::handout::deal_seed;
use arbiter_games::Seed;
use arbiter_proto::ids::{Entrant, MatchNumber};
use arbiter_worker::record::Header;
use serde::Deserialize;
use serde_json::Value;

/// The files of an export besides its records.
const TOURNAMENT: &str = "tournament.json";
const MATCHES: &str = "matches.jsonl";
/// The folder of its records.
pub(super) const RECORDS: &str = "records";
/// The longest first line of a record, in bytes.
const LONGEST_HEADER: u64 = 1 << 20;
/// How many differences are told of an export at most.
const MOST: usize = 1000;

/// Whether an export was written into this directory.
pub(super) fn is_export(directory: &Path) -> bool {
    [TOURNAMENT, MATCHES].iter().all(|name| directory.join(name).is_file())
}

/// The record of a match in an export.
pub(super) fn record_path(export: &Path, number: i64) -> PathBuf {
    export.join(RECORDS).join(format!("{number:06}.jsonl"))
}

/// What a record must begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    /// The match.
    pub(super) number: i64,
    /// Its seed.
    pub(super) seed: Seed,
    /// Its bots, seat 1 first.
    pub(super) bots: Vec<String>,
}

/// What an export comes to.
#[derive(Debug)]
pub(super) enum Derived {
    /// Its tournament was open when it was written, or an older program wrote it.
    Unpublished(&'static str),
    /// All its matches, and where the export differs from them.
    Matches { expected: Vec<Expected>, differences: Vec<String> },
}

/// `tournament.json`, as far as matches follow from it.
#[derive(Debug, Deserialize)]
struct Tournament {
    edition: i32,
    state: String,
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
    value: Option<String>,
    first_edition: Option<i32>,
}

/// A line of `matches.jsonl`.
#[derive(Debug, Deserialize)]
struct Line {
    #[serde(rename = "match")]
    number: i64,
    seats: Vec<Seat>,
    scores: Vec<Vec<i64>>,
    #[serde(default)]
    bad_answers: Vec<i32>,
    deal: Option<i64>,
    seed: Option<Seed>,
}

#[derive(Debug, Deserialize)]
struct Seat {
    bot: String,
}

/// Derives the matches of an export again.
pub(super) fn derive(export: &Path) -> io::Result<Derived> {
    let path = export.join(TOURNAMENT);
    let senseless = |error: &dyn std::fmt::Display| {
        io::Error::other(format!("{TOURNAMENT} makes no sense: {error}"))
    };
    let tournament: Tournament =
        serde_json::from_str(&fs::read_to_string(path)?).map_err(|error| senseless(&error))?;
    let Some(seed) = tournament.seed else {
        return Ok(Derived::Unpublished("its tournament was open, and the seed is not published"));
    };
    let Some(source) = tournament.source else {
        return Ok(Derived::Unpublished("an older version wrote it; export the tournament again"));
    };
    let file = TournamentFile::from_json(&tournament.settings).map_err(|e| senseless(&e))?;
    let beacon = tournament.beacon.as_ref();
    let beacon = beacon.and_then(|beacon| Some((beacon.value.as_deref()?, beacon.first_edition?)));
    let commitment = Commitment { seed_hash: &tournament.seed_hash.0, seed, beacon };
    let mut differences = commitment.differences(tournament.edition, source.seed);
    if source.edition != tournament.edition {
        differences.push(format!(
            "edition {} is exported with the source of edition {}",
            tournament.edition, source.edition
        ));
    }
    let lines = BufReader::new(File::open(export.join(MATCHES))?).lines();
    let mut comparison = Comparison {
        source: &source,
        complete: tournament.state == "complete",
        lines: lines.peekable(),
        expected: Vec::new(),
        differences,
    };
    let end = source.derive(&file, |due| comparison.meet(&due));
    comparison.finish(end);
    let Comparison { expected, mut differences, .. } = comparison;
    differences.truncate(MOST);
    Ok(Derived::Matches { expected, differences })
}

/// The exported matches beside those that are derived.
struct Comparison<'a, L: Iterator<Item = io::Result<String>>> {
    source: &'a EditionSource,
    /// Whether all its matches were played.
    complete: bool,
    lines: Peekable<L>,
    expected: Vec<Expected>,
    differences: Vec<String>,
}

impl<L: Iterator<Item = io::Result<String>>> Comparison<'_, L> {
    /// The exported match of this number, if it was played.
    fn line(&mut self, number: i64) -> Result<Option<Line>, String> {
        let Some(text) = self.lines.peek() else { return Ok(None) };
        let text = text.as_ref().map_err(|error| format!("{MATCHES}: {error}"))?;
        let line: Line = serde_json::from_str(text)
            .map_err(|error| format!("{MATCHES}: not a match: {error}: {text}"))?;
        if line.number > number {
            return Ok(None);
        }
        self.lines.next();
        if line.number < number {
            return Err(format!("{MATCHES}: match {} comes after match {number}", line.number));
        }
        Ok(Some(line))
    }

    /// Compares one match, and says what it came to.
    fn meet(&mut self, due: &Match) -> Result<Option<Played>, String> {
        let number = due.number.0;
        let seed = deal_seed(self.source.seed, due.deal);
        let name = |entrant: &Entrant| {
            let place = usize::try_from(entrant.0).unwrap_or(usize::MAX);
            self.source.bots.get(place).map(|bot| bot.name.clone()).unwrap_or_default()
        };
        let bots: Vec<_> = due.seats.0.iter().map(name).collect();
        let line = self.line(number)?;
        if let Some(line) = &line {
            let seated: Vec<_> = line.seats.iter().map(|seat| seat.bot.clone()).collect();
            let told = |seed: Option<Seed>| seed.map_or("none".to_owned(), |seed| seed.to_string());
            if line.seed != Some(seed) || line.deal != Some(due.deal) {
                let found = told(line.seed);
                self.differences.push(format!(
                    "match {number}: it is exported with the seed {found}, the published seed gives \
                     {seed}"
                ));
            }
            if seated != bots {
                self.differences.push(format!(
                    "match {number}: it is exported with {} in its seats, the published seed gives {}",
                    seated.join(", "),
                    bots.join(", ")
                ));
            }
        }
        if line.is_none() && self.complete {
            self.differences.push(format!("match {number} is missing in {MATCHES}"));
        }
        self.expected.push(Expected { number, seed, bots });
        Ok(line.map(|line| played(due.number, &due.seats, line)))
    }

    /// Notes why no more matches follow, or what is exported besides those that do.
    fn finish(&mut self, end: Result<(), String>) {
        match end {
            Err(reason) => self.differences.push(reason),
            Ok(()) => {
                if let Some(Ok(text)) = self.lines.next() {
                    self.differences.push(format!(
                        "{MATCHES}: this does not follow from the published seed: {text}"
                    ));
                }
            }
        }
    }
}

fn played(number: MatchNumber, seats: &Seats, line: Line) -> Played {
    Played {
        number,
        seats: seats.clone(),
        carried: None,
        scores: line.scores.concat(),
        forfeits: Forfeits::default(),
        bad_answers: Some(line.bad_answers).filter(|bad| !bad.is_empty()),
    }
}

/// What the records of exports must begin with.
#[derive(Debug, Default)]
pub(super) struct Expectations {
    of_records: HashMap<PathBuf, Expected>,
    /// The folders of records of which each must be expected.
    folders: HashSet<PathBuf>,
}

impl Expectations {
    /// Adds what was derived for an export.
    pub(super) fn add(&mut self, export: &Path, expected: Vec<Expected>) {
        let paths = expected.into_iter().map(|one| (record_path(export, one.number), one));
        self.of_records.extend(paths);
        self.folders.insert(export.join(RECORDS));
    }

    /// What is wrong with the beginning of a record.
    pub(super) fn difference(&self, path: &Path) -> io::Result<Option<String>> {
        let Some(expected) = self.of_records.get(path) else {
            let due = path.parent().is_some_and(|folder| self.folders.contains(folder));
            return Ok(due.then(|| "the edition has no match of this number".to_owned()));
        };
        let mut first = String::new();
        BufReader::new(File::open(path)?).take(LONGEST_HEADER).read_line(&mut first)?;
        // What is no header at all is told by whoever replays it.
        let Ok(header) = serde_json::from_str::<Header>(&first) else { return Ok(None) };
        let Expected { number, seed, bots } = expected;
        if header.seed != *seed {
            let found = header.seed;
            return Ok(Some(format!(
                "match {number} has the seed {found}, the published seed gives {seed}"
            )));
        }
        let seated: Vec<_> = header.seats.iter().map(|seat| seat.bot.to_string()).collect();
        Ok((seated != *bots).then(|| {
            let (found, due) = (seated.join(", "), bots.join(", "));
            format!("match {number} seats {found}, the published seed gives {due}")
        }))
    }
}
