//! Replays a record through the rules, and compares it with the plan and the report. Pure.

use std::fmt::Debug;
use std::io::{BufReader, Read as _};

use arbiter_games::{ClockRules, Forfeit, Games, Params, SeatResult};
use arbiter_proto::assignment::{MatchAssignment, SeatAssignment};
use arbiter_replay::{Difference, Verified, verify};

use crate::db::results::MatchResult;

/// Maximum length of a record, in bytes of text. The output of a bot is limited to 16 MiB a match,
/// and a byte takes at most six characters of JSON.
const MAX_RECORD_LEN: u64 = 512 << 20;
/// Maximum zstd window of a record, as a power of two: 8 MiB. Workers of this program use less.
const MAX_WINDOW_LOG: u32 = 23;
/// Maximum length of the description of a difference, in characters.
const MAX_DESCRIPTION_LEN: usize = 500;

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Record and report agree.
    Agreed,
    /// They differ, as described.
    Disagreed(String),
    /// The record is invalid, as described.
    Unreadable(String),
}

/// Replays a compressed record.
///
/// # Errors
/// The finding, if the record is invalid or breaks the rules.
pub(crate) fn replay(games: &Games, record: &[u8]) -> Result<Verified, Finding> {
    let unreadable = |error: std::io::Error| Finding::Unreadable(error.to_string());
    let mut text = zstd::Decoder::new(record).map_err(unreadable)?;
    text.window_log_max(MAX_WINDOW_LOG).map_err(unreadable)?;
    verify(games, BufReader::new(text.take(MAX_RECORD_LEN))).map_err(
        |difference| match difference {
            Difference::Unreadable(_) | Difference::Line { line: 1, .. } => {
                Finding::Unreadable(describe(&difference))
            }
            Difference::Line { .. } => Finding::Disagreed(describe(&difference)),
        },
    )
}

/// Describes a difference in a short, printable text. It may quote data of a dishonest worker.
fn describe(difference: &Difference) -> String {
    let text = difference.to_string();
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(MAX_DESCRIPTION_LEN).map(printable).collect()
}

/// Replays the compressed record of a match, and compares it with the planned match, its clock and
/// the report.
pub(crate) fn compare(
    games: &Games,
    record: &[u8],
    (clock, planned): &(ClockRules, MatchAssignment<Params>),
    (level, reported): (&str, &MatchResult),
) -> Finding {
    let difference = match replay(games, record) {
        Ok(verified) => difference(&verified, (*clock, planned), (level, reported)),
        Err(finding) => return finding,
    };
    difference.map_or(Finding::Agreed, Finding::Disagreed)
}

/// The first difference of a record from the plan and the report.
fn difference(
    verified: &Verified,
    (clock, planned): (ClockRules, &MatchAssignment<Params>),
    (level, reported): (&str, &MatchResult),
) -> Option<String> {
    let Verified { header, standings, transcript, .. } = verified;
    let seats: Vec<_> =
        header.seats.iter().map(|seat| (seat.bot.to_string(), seat.digest.clone())).collect();
    let planned_seat =
        |seat: &SeatAssignment| (seat.bot.to_string(), seat.digest.to_hex().to_string());
    let planned_seats: Vec<_> = planned.seats.iter().map(planned_seat).collect();
    unequal("parameters", &header.params, &planned.params)
        .or_else(|| {
            let is_same = header.seed == planned.seed;
            (!is_same).then(|| "seed: it is not that of the match".to_owned())
        })
        .or_else(|| unequal("clock", &header.clock, &clock))
        .or_else(|| unequal("bots", &seats, &planned_seats))
        .or_else(|| unequal("sandbox", &header.sandbox.as_str(), &level))
        .or_else(|| result_difference(standings, reported))
        .or_else(|| {
            let is_same = *transcript.as_bytes() == reported.transcript;
            (!is_same).then(|| "transcript: its hash is not the one that was reported".to_owned())
        })
}

/// The first difference of a recorded result from the report.
fn result_difference(standings: &[SeatResult], reported: &MatchResult) -> Option<String> {
    let scores: Vec<i64> =
        standings.iter().flat_map(|standing| standing.score.0.iter().copied()).collect();
    let seats = || 0..standings.len();
    let forfeits: Vec<_> = standings.iter().map(|standing| standing.forfeit).collect();
    let reported_forfeits: Vec<Option<Forfeit>> =
        seats().map(|seat| reported.forfeit(seat)).collect();
    let bad: Vec<_> = standings.iter().map(|standing| i64::from(standing.bad_answers)).collect();
    let reported_bad: Vec<_> = seats().map(|seat| i64::from(reported.bad_answers(seat))).collect();
    unequal("scores", &scores, &reported.scores)
        .or_else(|| unequal("forfeits", &forfeits, &reported_forfeits))
        .or_else(|| unequal("bad replies", &bad, &reported_bad))
}

/// Describes the difference between a recorded and the correct value, if there is one.
fn unequal<T: PartialEq + Debug>(name: &str, recorded: &T, correct: &T) -> Option<String> {
    (recorded != correct).then(|| format!("{name}: the record gives {recorded:?}, not {correct:?}"))
}
