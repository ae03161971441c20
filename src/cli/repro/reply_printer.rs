//! Prints the replies of a replayed seat, and whether the bot fails again where it failed.

use std::sync::Arc;

use arbiter_games::{Forfeit, Game};
use arbiter_worker::bot::Bot;
use arbiter_worker::hints::{ObservedFailure, last_stderr_lines};
use arbiter_worker::repro::{ReplyComparison, ReplyVerdict};
use arbiter_worker::seat::{SeatFailure, TimedReply};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output::{Output, millis, printable};

/// Maximum length of a request in the summary, in characters.
const MAX_REQUEST: usize = 60;

/// Prints replies and counts the differences.
pub(super) struct ReplyPrinter {
    out: Output,
    json: bool,
    game: Game,
    bot: Arc<Bot>,
    replies: usize,
    /// The numbers of the replies that differ, without those below.
    differing: Vec<usize>,
    /// The first reply that failed now, in the record, or both.
    failed: Option<FailedReply>,
}

/// A reply that failed now, in the record, or both.
struct FailedReply {
    number: usize,
    verdict: ReplyVerdict,
    /// The start of the request.
    request: String,
    /// What failed, or the new reply.
    now: String,
    /// What failed in the record.
    recorded: String,
}

impl ReplyPrinter {
    pub(super) fn new(game: Game, bot: Arc<Bot>, json: bool) -> Self {
        let differing = Vec::new();
        Self { out: Output::new(), json, game, bot, replies: 0, differing, failed: None }
    }

    /// Prints a reply, if `all` or if there is something to see.
    pub(super) fn show(&mut self, ply: &ReplyComparison, all: bool) -> Result<(), Failure> {
        let verdict = ply.verdict();
        self.replies = ply.number;
        match verdict {
            ReplyVerdict::Same => {}
            ReplyVerdict::Differs => self.differing.push(ply.number),
            ReplyVerdict::FailsAgain | ReplyVerdict::RepliesNow | ReplyVerdict::Fails => {
                self.failed.get_or_insert_with(|| FailedReply {
                    number: ply.number,
                    verdict,
                    request: start(&ply.request),
                    now: text(&ply.replayed, ply.replayed_illegal.as_deref()),
                    recorded: text(&ply.recorded, ply.recorded_illegal.as_deref()),
                });
            }
        }
        if self.json {
            let object = self.ply_json(ply, verdict);
            self.out.json(&object)?;
        } else if verdict != ReplyVerdict::Same {
            self.line('@', &format!("@ {} @@ {}", ply.number, ply.request))?;
            self.timed('-', &ply.recorded, ply.recorded_illegal.as_deref())?;
            self.timed('+', &ply.replayed, ply.replayed_illegal.as_deref())?;
            self.show_cause(ply)?;
        } else if all {
            let times = format!(
                "{} → {}",
                millis(ply.recorded.spent.wall),
                millis(ply.replayed.spent.wall)
            );
            self.line(' ', &format!("{}: {}  ({times})", ply.number, text(&ply.replayed, None)))?;
        }
        // Flush each reply, because the next one may take long.
        self.out.flush()
    }

    /// Prints the end of the bot's standard error and a hint, if it failed now.
    fn show_cause(&mut self, ply: &ReplyComparison) -> Result<(), Failure> {
        let stderr = last_stderr_lines(&ply.stderr);
        if !stderr.is_empty() {
            self.out.line("last lines of its standard error:")?;
            stderr.iter().try_for_each(|line| self.out.line(&format!("  {}", printable(line))))?;
        }
        self.hint(ply).map_or(Ok(()), |hint| self.out.line(&format!("hint: {}", printable(&hint))))
    }

    /// A hint for the author, if the bot failed now.
    fn hint(&self, ply: &ReplyComparison) -> Option<String> {
        let failure = match (&ply.replayed.reply, &ply.replayed_illegal) {
            (Err(failure), _) => failure,
            (Ok(_), Some(why)) => &SeatFailure { forfeit: Forfeit::Illegal, detail: why.clone() },
            (Ok(_), None) => return None,
        };
        let replies = ply.number - 1;
        let bot = Some(&*self.bot);
        let has_stderr = !ply.stderr.is_empty();
        let game = &self.game;
        ObservedFailure { game, bot, failure, replies, has_stderr }.hint()
    }

    /// Prints a reply with its times; each line starts with `mark`.
    fn timed(
        &mut self,
        mark: char,
        timed: &TimedReply,
        illegal: Option<&str>,
    ) -> Result<(), Failure> {
        let wall = millis(timed.spent.wall);
        let cpu = millis(timed.spent.cpu);
        self.line(mark, &format!("{}  ({wall}, CPU {cpu})", text(timed, illegal)))
    }

    fn line(&mut self, mark: char, text: &str) -> Result<(), Failure> {
        text.lines().try_for_each(|line| self.out.line(&printable(&format!("{mark}{line}"))))
    }

    /// Prints the summary, which decides the exit code.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let replies = if self.replies == 1 { "reply" } else { "replies" };
        let count = self.differing.len();
        let differ = if count == 1 { "differs" } else { "differ" };
        let differences = self.differing.first().map(|first| {
            format!("{count} of {} {replies} {differ}, first number {first}", self.replies)
        });
        let failed = self.failed.take().map(|failed| (failed.verdict, failed.describe()));
        match (failed, differences) {
            (Some((ReplyVerdict::FailsAgain | ReplyVerdict::Fails, failed)), None) => {
                self.negative(&failed)
            }
            (Some((_, failed)), Some(differences)) => {
                self.negative(&format!("{differences}; {failed}"))
            }
            (None, Some(differences)) => self.negative(&differences),
            (Some((_, failed)), None) => {
                let others = if self.replies > 1 { ", the others are the same" } else { "" };
                self.positive(&format!("{} {replies}: {failed}{others}", self.replies))
            }
            (None, None) => self.positive(&format!("{} {replies}, all the same", self.replies)),
        }
    }

    fn positive(&mut self, summary: &str) -> Result<(), Failure> {
        if !self.json {
            self.out.line(&printable(summary))?;
        }
        self.out.flush()
    }

    fn negative(&mut self, summary: &str) -> Result<(), Failure> {
        self.out.flush()?;
        Err(Failure::Negative(printable(summary)))
    }

    fn ply_json(&self, ply: &ReplyComparison, verdict: ReplyVerdict) -> Value {
        let timed = |timed: &TimedReply, illegal: &Option<String>| {
            let reply = timed.reply.as_ref().map(|reply| String::from_utf8_lossy(reply));
            let failure = timed.reply.as_ref().err();
            json!({
                "reply": reply.ok(),
                "forfeit": failure.map(|failure| failure.forfeit),
                "detail": failure.map(|failure| &failure.detail),
                "illegal": illegal,
                "wall_us": timed.spent.wall.0,
                "cpu_us": timed.spent.cpu.0,
            })
        };
        json!({
            "ply": ply.number,
            "told": ply.request,
            "same": ply.recorded.agrees(&ply.replayed),
            "verdict": verdict.as_str(),
            "expected": timed(&ply.recorded, &ply.recorded_illegal),
            "got": timed(&ply.replayed, &ply.replayed_illegal),
            "stderr": last_stderr_lines(&ply.stderr),
            "hint": self.hint(ply),
        })
    }
}

impl FailedReply {
    fn describe(&self) -> String {
        let Self { number, request, now, recorded, .. } = self;
        let place = format!("reply {number}, after `{request}`");
        match self.verdict {
            ReplyVerdict::FailsAgain if now == recorded => {
                format!("the bot fails again at the same place ({place}): {now}")
            }
            ReplyVerdict::FailsAgain => format!(
                "the bot fails again at the same place ({place}): {now}; in the record: {recorded}"
            ),
            ReplyVerdict::Fails => {
                format!("the bot fails where it replied in the record ({place}): {now}")
            }
            ReplyVerdict::RepliesNow | ReplyVerdict::Same | ReplyVerdict::Differs => {
                format!("the bot now replies where it failed ({place}); in the record: {recorded}")
            }
        }
    }
}

/// The first line of a request, shortened.
fn start(request: &str) -> String {
    let line = request.lines().next().unwrap_or_default();
    let mut start: String = line.chars().take(MAX_REQUEST).collect();
    if start.len() < request.len() {
        start.push('…');
    }
    start
}

/// A reply, or what failed, as text.
fn text(timed: &TimedReply, illegal: Option<&str>) -> String {
    match (&timed.reply, illegal) {
        (Ok(reply), Some(why)) => {
            format!("{}  forfeit: illegal: {why}", String::from_utf8_lossy(reply))
        }
        (Ok(reply), None) => String::from_utf8_lossy(reply).into_owned(),
        (Err(failure), _) => format!("forfeit: {failure}"),
    }
}
