//! The columns of the CSV files, and what each contains. Headers of files and the description of an
//! archive are made from these tables.

use std::fmt::Write as _;

use arbiter_games::Forfeit;
use arbiter_ranking::statistics::MAX_TOP;

/// A column of a CSV file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::web) struct Column {
    /// Its name in the first line of the file.
    pub(super) name: String,
    /// What it contains, in one line.
    meaning: String,
}

/// Names and meanings of columns.
type Table = [(&'static str, &'static str)];

const STANDING: &Table = &[
    ("rank", "rank of the bot, from 1; empty for a house bot that has no rank"),
    ("tied", "true if another bot has the same rank"),
    ("bot", "name of the bot"),
    ("version", "number of its version"),
    ("matches", "number of its counted matches"),
];

const MATCH: &Table = &[
    ("match", "the match, as TOURNAMENT/NUMBER"),
    ("seed_key", "block: matches with the same key have the same seed"),
    (
        "leg",
        "how many matches of the same bots on the same board come before this one; empty in a \
         list of forfeits",
    ),
    ("board", "index of the tournament's board, from 0; empty if there is one"),
    ("seat", "number of the seat, from 1"),
    ("bot", "name of the bot in this seat"),
    ("version", "number of its version"),
    ("owner", "name of its owner; empty for a house bot"),
];

const RESULT: &Table = &[
    ("forfeit", "how the bot forfeited: clock, illegal, gone or flood; empty if it did not"),
    ("bad_answers", "number of its bad replies that were no forfeits"),
    ("wall_ms", "wall-clock time of the match, in milliseconds"),
    ("level", "isolation level of the sandbox: A to D"),
    ("transcript", "BLAKE3 hash of the transcript, in hexadecimal digits"),
    ("number", "number of the match in the tournament"),
    ("edition", "number of the edition that added the match; later editions may share it"),
    ("stage", "stage, from 1, in schedules with rounds that follow from results"),
    ("round", "round in the stage, from 1, if the stage has several"),
    ("params", "parameters that differ from the tournament's, as a JSON object"),
    ("digest", "BLAKE3 hash of the version's bundle, in hexadecimal digits"),
    ("reported_at", "when the result was stored, in UTC (RFC 3339)"),
    ("state", "counted: the result is in the standings; played: not yet"),
];

const BOT: &Table = &[
    ("bot", "name of the bot"),
    ("owner", "name of its owner; empty for a house bot"),
    ("version", "number of its newest version that entered"),
    ("digest", "BLAKE3 hash of the version's bundle, in hexadecimal digits"),
    ("submitted_at", "when this version was submitted, in UTC (RFC 3339)"),
    ("withdrawn", "true if the bot was withdrawn"),
    ("suspended", "true if it is suspended because it forfeited too often or caused faults"),
];

const STATISTICS: &Table = &[
    ("distinct_matches", "number of its different matches"),
    ("mean", "mean of the first component of its score"),
    ("interval95", "half the width of the 95 % interval of the mean; empty if there is none"),
    ("no_interval", "why there is no interval"),
    ("best_rank", "best rank that the results leave possible, at 95 %"),
    ("worst_rank", "worst rank that the results leave possible, at 95 %"),
];

const RATING: &Table = &[
    ("matches_needed", "estimated number of matches until its rank is certain"),
    ("rating", "rating on the scale of Elo"),
    ("rating_interval95", "half the width of the 95 % interval of the rating"),
];

fn columns(table: &Table) -> impl Iterator<Item = Column> {
    table.iter().map(|(name, meaning)| column(*name, *meaning))
}

fn column(name: impl Into<String>, meaning: impl Into<String>) -> Column {
    Column { name: name.into(), meaning: meaning.into() }
}

/// The components of a score with these names.
fn score(names: &[impl AsRef<str>], of: &str) -> Vec<Column> {
    let describe = |(place, name): (usize, &str)| {
        column(name, format!("{of}, component {place}; the first one is the most important"))
    };
    (1..).zip(names.iter().map(AsRef::as_ref)).map(describe).collect()
}

/// The columns of a leaderboard with these components of scores.
pub(in crate::web) fn ranking(components: &[impl AsRef<str>]) -> Vec<Column> {
    let mut all: Vec<_> = columns(STANDING).collect();
    all.extend(score(components, "sum of its scores"));
    all.push(column("mean", "mean of the first component of its score"));
    all.extend(Forfeit::ALL.map(|kind| {
        column(kind.as_str(), format!("number of its forfeits of the kind {}", kind.as_str()))
    }));
    all.push(column("bad_answers", "number of its bad replies that were no forfeits"));
    all.push(column("owner", "name of its owner; empty for a house bot"));
    all
}

/// The columns of statistics.
pub(in crate::web) fn statistics() -> Vec<Column> {
    let mut all: Vec<_> = columns(STANDING).chain(columns(STATISTICS)).collect();
    all.extend((1..=MAX_TOP).map(|top| {
        column(format!("top_{top}"), format!("probability that its true rank is {top} or better"))
    }));
    all.extend(columns(RATING));
    all
}

/// The columns of matches with these components of scores.
pub(in crate::web) fn matches(components: &[impl AsRef<str>]) -> Vec<Column> {
    let score = score(components, "score of the seat");
    columns(MATCH).chain(score).chain(columns(RESULT)).collect()
}

/// The columns of bots.
pub(in crate::web) fn bots() -> Vec<Column> {
    columns(BOT).collect()
}

/// The names of columns.
pub(super) fn names(columns: &[Column]) -> impl Iterator<Item = &str> {
    columns.iter().map(|column| &column.name[..])
}

/// One line of text for each column.
pub(in crate::web) fn describe(columns: &[Column]) -> String {
    let width = columns.iter().map(|column| column.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Column { name, meaning } in columns {
        writeln!(text, "  {name:width$}  {meaning}").expect("writing to a string");
    }
    text
}
