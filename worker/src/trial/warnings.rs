//! What a referee puts up with, and a bot had better not do: other referees may not, and it is
//! often the first sign of something worse.

use arbiter_games::Game;
use arbiter_proto::limits::Bytes;

use crate::match_runner::SeatSummary;
use crate::sandbox::Limits;

/// A first answer that takes longer than this, in microseconds, is worth a warning.
const SLOW_START: u64 = 2_000_000;

/// So much of the memory that it may use, in percent, is worth a warning.
const MUCH_MEMORY: u64 = 80;

/// What one match showed of a bot.
pub(super) fn of(game: &Game, bad_answers: u32, report: &SeatSummary) -> Vec<String> {
    let mut found = Vec::new();
    let manners = report.remains.manners;
    if manners.carriage_returns {
        found.push("its lines end in CR LF: write LF alone".to_owned());
    }
    if manners.trailing_blanks {
        found.push("there are blanks at the ends of its lines: write none".to_owned());
    }
    if manners.leading_blanks {
        found.push("there are blanks or empty lines before its answers: write none".to_owned());
    }
    if bad_answers > 0 {
        found.push(format!("{game} put up with answers that broke its rules: see its page"));
    }
    let stderr = String::from_utf8_lossy(&report.remains.stderr);
    if let Some(first) = stderr.lines().find(|line| !line.trim().is_empty()) {
        let first: String = first.chars().take(80).collect();
        found.push(format!("it writes to standard error: {first}"));
    }
    found
}

/// What is to be said about the figures of all matches.
pub(super) fn of_figures(
    start_us: Option<u64>,
    memory: Option<u64>,
    limits: &Limits,
) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(start) = start_us.filter(|start| *start > SLOW_START) {
        found.push(format!("it starts slowly: its first answer took {} ms", start / 1000));
    }
    let Bytes(most) = limits.memory;
    if let Some(peak) = memory.filter(|peak| peak / 100 >= most / 10_000 * MUCH_MEMORY) {
        found.push(format!(
            "it uses {} MiB of the {} MiB that it may",
            peak >> 20,
            limits.memory.mebibytes()
        ));
    }
    found
}
