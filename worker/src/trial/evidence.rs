//! Evidence of a forfeit, for the bot's author.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use arbiter_games::{Forfeit, Framing, Game};
use arbiter_replay::MAX_LINE;
use serde::Deserialize;

use super::TrialFailure;
use crate::bounded_read::open_regular;
use crate::match_runner::SeatSummary;

/// Maximum number of lines from the end of the dialogue.
const DIALOGUE_LINES: usize = 8;

/// Maximum number of lines from the end of standard error.
const STDERR_LINES: usize = 12;

/// Maximum length of a line in the evidence, in characters.
const MAX_LINE_LEN: usize = 300;

/// The fields of a record's line that the evidence uses.
#[derive(Debug, Deserialize)]
struct Line {
    seat: Option<usize>,
    send: Option<String>,
    reply: Option<String>,
}

/// Describes the forfeit of the bot at `seat`, from 1. `match_name` names the match.
pub(super) fn describe(
    game: &Game,
    forfeit: Forfeit,
    match_name: &str,
    seat: usize,
    summary: &SeatSummary,
    record: &Path,
) -> TrialFailure {
    let detail = summary.detail.clone().unwrap_or_else(|| forfeit.to_string());
    let Dialogue { lines: dialogue, replies } = read_dialogue(record, seat);
    let reason = format!("{match_name}: forfeit, {detail}");
    let replies_text = if replies == 1 { "1 reply" } else { &format!("{replies} replies") };
    let mut evidence = vec![format!("{match_name}, after {replies_text}: {detail}")];
    evidence.extend(dialogue.iter().map(|line| format!("  {line}")));
    let stderr = String::from_utf8_lossy(&summary.usage.stderr);
    let lines: Vec<_> = stderr.lines().collect();
    if !lines.is_empty() {
        evidence.push("last lines of its standard error:".to_owned());
        let end = &lines[lines.len().saturating_sub(STDERR_LINES)..];
        evidence.extend(end.iter().map(|line| format!("  {}", truncate(line))));
    }
    evidence.extend(hint(game, forfeit, &detail, replies).map(str::to_owned));
    TrialFailure { reason, evidence: evidence.join("\n") }
}

/// The end of the dialogue with a bot.
#[derive(Debug, Default)]
struct Dialogue {
    /// The last lines, in order: `>` requests and `<` replies.
    lines: VecDeque<String>,
    /// Number of all replies.
    replies: usize,
}

/// Reads a dialogue from a record, line by line because a record may be long.
fn read_dialogue(record: &Path, seat: usize) -> Dialogue {
    let mut dialogue = Dialogue::default();
    // Without a record the evidence has no dialogue.
    let Ok(file) = open_regular(record) else { return dialogue };
    let mut lines = BufReader::new(file);
    let mut text = Vec::new();
    while lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut text).is_ok_and(|read| read > 0) {
        if let Ok(line) = serde_json::from_slice::<Line>(&text)
            && line.seat == Some(seat)
        {
            dialogue.replies += usize::from(line.send.is_none() && line.reply.is_some());
            let request = line.send.map(|text| format!("> {}", truncate(&text)));
            let reply = || line.reply.map(|text| format!("< {}", truncate(&text)));
            dialogue.lines.extend(request.or_else(reply));
            if dialogue.lines.len() > DIALOGUE_LINES {
                dialogue.lines.pop_front();
            }
        }
        text.clear();
    }
    dialogue
}

/// Truncates a text and joins its lines.
fn truncate(text: &str) -> String {
    let mut truncated: String = text.chars().take(MAX_LINE_LEN).collect();
    if truncated.len() < text.len() {
        truncated.push('…');
    }
    truncated.replace('\n', "⏎")
}

/// A hint for the author, if there is a likely cause.
fn hint(game: &Game, forfeit: Forfeit, detail: &str, replies: usize) -> Option<&'static str> {
    let is_gtp = game.bots.framing == Framing::Gtp;
    match forfeit {
        Forfeit::Clock if detail.contains("without the end of a reply") && is_gtp => {
            Some("expected: a reply that begins with `=` and ends with an empty line")
        }
        Forfeit::Clock if detail.contains("without the end of a reply") => {
            Some("expected: a reply that ends with a newline")
        }
        Forfeit::Clock if replies == 0 => {
            Some("no output arrived: if it did reply, flush standard output after each reply")
        }
        Forfeit::Illegal if detail.contains("more than one reply") => {
            Some("expected: one reply to each request, and nothing else")
        }
        Forfeit::Illegal if detail.contains("without being asked") => {
            Some("expected: only replies on standard output; write logs to standard error")
        }
        Forfeit::Gone if replies == 0 => {
            Some("it exited before its first reply: does it run in an empty environment?")
        }
        _ => None,
    }
}
