//! Hints for the authors of bots in a local run, each once: the likely cause of a forfeit or bad
//! reply, the end of standard error, and tolerated protocol errors. Trials give the same hints.

use std::collections::HashSet;

use arbiter_worker::hints::{last_stderr_lines, tolerated};
use arbiter_worker::match_runner::SeatSummary;

use crate::output::printable;
use crate::play::plan::Plan;
use crate::play::run::PlayedMatch;

/// The hint for the bot in this seat, if it failed for a likely cause.
pub(crate) fn hint(plan: &Plan, played: &PlayedMatch, seat: usize) -> Option<String> {
    let summary = &played.outcome.seats[seat];
    summary.hint(plan.params.game(), Some(&plan.entries[played.seats[seat]].bot))
}

/// Which hints were shown.
#[derive(Debug, Default)]
pub(crate) struct AuthorHints {
    /// Entries by position, with the hints about them.
    shown: HashSet<(usize, String)>,
    /// Entries whose standard error was shown.
    with_stderr: HashSet<usize>,
}

impl AuthorHints {
    /// The new hints about the bot in this seat, one per line. `stderr_is_shown` says whether the
    /// user sees all of its standard error.
    pub(crate) fn lines(
        &mut self,
        plan: &Plan,
        played: &PlayedMatch,
        seat: usize,
        stderr_is_shown: bool,
    ) -> Vec<String> {
        let entry = played.seats[seat];
        let SeatSummary { failure, usage, .. } = &played.outcome.seats[seat];
        let label = printable(&plan.labels[entry]);
        let mut lines = Vec::new();
        if failure.is_some() && !stderr_is_shown && self.with_stderr.insert(entry) {
            let stderr = last_stderr_lines(&usage.stderr);
            if !stderr.is_empty() {
                lines.push(format!("last lines of {label}'s standard error:"));
                lines.extend(stderr.iter().map(|line| format!("  {}", printable(line))));
            }
        }
        let hint = hint(plan, played, seat).map(|hint| format!("hint for {label}: {hint}"));
        let warnings = tolerated(usage.warnings).into_iter();
        let remarks =
            hint.into_iter().chain(warnings.map(|text| format!("warning: {label}: {text}")));
        let is_new = |line: &String| self.shown.insert((entry, line.clone()));
        lines.extend(remarks.filter(is_new).map(|line| printable(&line)));
        lines
    }
}
