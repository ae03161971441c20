//! Evidence of a forfeit, for the bot's author.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use arbiter_games::{Forfeit, Game};
use arbiter_replay::MAX_LINE;
use serde::Deserialize;

use super::TrialFailure;
use crate::bot::Contestant;
use crate::bounded_read::open_regular;
use crate::hints::{self, shorten};
use crate::match_runner::SeatSummary;
use crate::seat::SeatFailure;

/// Maximum number of lines from the end of the dialogue.
const DIALOGUE_LINES: usize = 8;

/// The fields of a record's line that the evidence uses.
#[derive(Debug, Deserialize)]
struct Line {
    seat: Option<usize>,
    send: Option<String>,
    reply: Option<String>,
}

/// Describes the forfeit of a bot at `seat`, from 1. `match_name` names the match.
pub(super) fn describe(
    game: &Game,
    contestant: &Contestant,
    forfeit: Forfeit,
    match_name: &str,
    seat: usize,
    summary: &SeatSummary,
    record: &Path,
) -> TrialFailure {
    let failure = summary.failure.clone();
    let failure = failure.unwrap_or_else(|| SeatFailure { forfeit, detail: String::new() });
    let Dialogue { lines: dialogue, replies } = read_dialogue(record, seat);
    let reason = format!("{match_name}: forfeit, {failure}");
    let replies_text = if replies == 1 { "1 reply" } else { &format!("{replies} replies") };
    let mut evidence = vec![format!("{match_name}, after {replies_text}: {failure}")];
    evidence.extend(dialogue.iter().map(|line| format!("  {line}")));
    let stderr = hints::last_stderr_lines(&summary.usage.stderr);
    if !stderr.is_empty() {
        evidence.push("last lines of its standard error:".to_owned());
        evidence.extend(stderr.iter().map(|line| format!("  {line}")));
    }
    evidence.extend(hint(game, contestant, summary));
    TrialFailure { reason, evidence: evidence.join("\n") }
}

/// The hint about the failure of a bot in a match.
pub(super) fn hint(game: &Game, contestant: &Contestant, summary: &SeatSummary) -> Option<String> {
    let bot = match contestant {
        Contestant::Bot(bot) => Some(&**bot),
        Contestant::Unplayable { .. } | Contestant::Person => None,
    };
    summary.hint(game, bot)
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
            let request = line.send.map(|text| format!("> {}", shorten(&text)));
            let reply = || line.reply.map(|text| format!("< {}", shorten(&text)));
            dialogue.lines.extend(request.or_else(reply));
            if dialogue.lines.len() > DIALOGUE_LINES {
                dialogue.lines.pop_front();
            }
        }
        text.clear();
    }
    dialogue
}
