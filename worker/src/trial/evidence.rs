//! What led to a forfeit, for the bot's author.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use arbiter_games::{Forfeit, Framing, Game};
use arbiter_replay::LONGEST_LINE;
use serde::Deserialize;

use super::TrialFailure;
use crate::bounded_read::open_regular;
use crate::match_runner::SeatSummary;

/// How many lines of the conversation are shown, from its end.
const TURNS: usize = 8;

/// How many lines of standard error are shown, from its end.
const STDERR: usize = 12;

/// The longest line that is shown, in characters.
const LONGEST: usize = 300;

/// What is read of a line of a record.
#[derive(Debug, Deserialize)]
struct Line {
    seat: Option<usize>,
    send: Option<String>,
    reply: Option<String>,
}

/// Why the bot at `seat`, from 1, failed the match at `place`.
pub(super) fn failing(
    game: &Game,
    forfeit: Forfeit,
    place: &str,
    seat: usize,
    report: &SeatSummary,
    record: &Path,
) -> TrialFailure {
    let detail = report.detail.clone().unwrap_or_else(|| forfeit.to_string());
    let Conversation { turns, answers } = conversation(record, seat);
    let verdict = format!("{place}: it forfeits, {detail}");
    let mut evidence = vec![format!("{place}, after {answers} answers: {detail}")];
    evidence.extend(turns.iter().map(|turn| format!("  {turn}")));
    evidence.extend(expected(game, forfeit, &detail, answers).map(str::to_owned));
    let stderr = String::from_utf8_lossy(&report.remains.stderr);
    let lines: Vec<_> = stderr.lines().collect();
    if !lines.is_empty() {
        evidence.push("the end of its standard error:".to_owned());
        let end = &lines[lines.len().saturating_sub(STDERR)..];
        evidence.extend(end.iter().map(|line| format!("  {}", cut(line))));
    }
    TrialFailure { verdict, evidence: evidence.join("\n") }
}

/// The end of a conversation.
#[derive(Debug, Default)]
struct Conversation {
    /// The last turns, in order: what was said to the bot, `>`, and what it answered, `<`.
    turns: VecDeque<String>,
    /// How many answers there were in all.
    answers: usize,
}

/// What was said to the bot and what it answered, read line by line: a record may be long.
fn conversation(record: &Path, seat: usize) -> Conversation {
    let mut found = Conversation::default();
    // Without a record there is less to show.
    let Ok(file) = open_regular(record) else { return found };
    let (mut lines, mut text) = (BufReader::new(file), Vec::new());
    while lines.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut text).is_ok_and(|read| read > 0)
    {
        if let Ok(line) = serde_json::from_slice::<Line>(&text)
            && line.seat == Some(seat)
        {
            found.answers += usize::from(line.send.is_none() && line.reply.is_some());
            let said = line.send.map(|text| format!("> {}", cut(&text)));
            found.turns.extend(said.or_else(|| line.reply.map(|text| format!("< {}", cut(&text)))));
            if found.turns.len() > TURNS {
                found.turns.pop_front();
            }
        }
        text.clear();
    }
    found
}

/// The beginning of a text, in one line.
fn cut(text: &str) -> String {
    let mut shown: String = text.chars().take(LONGEST).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown.replace('\n', "⏎")
}

/// What the referee would have expected, where that helps.
fn expected(game: &Game, forfeit: Forfeit, detail: &str, answers: usize) -> Option<&'static str> {
    let gtp = game.bots.framing == Framing::Gtp;
    match forfeit {
        Forfeit::Clock if detail.contains("without the end of an answer") && gtp => {
            Some("expected: an answer that begins with `=` and ends with an empty line")
        }
        Forfeit::Clock if detail.contains("without the end of an answer") => {
            Some("expected: an answer that ends with a newline")
        }
        Forfeit::Clock if answers == 0 => Some(
            "nothing came: if it did answer, its output is buffered; flush it after each answer",
        ),
        Forfeit::Illegal if detail.contains("more than one answer") => {
            Some("expected: one answer to each request, and nothing besides")
        }
        Forfeit::Illegal if detail.contains("without being asked") => {
            Some("expected: nothing on standard output but answers; use standard error")
        }
        Forfeit::Gone if answers == 0 => {
            Some("it ended before its first answer: does it run in an empty environment?")
        }
        _ => None,
    }
}
