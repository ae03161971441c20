//! Runs the rules of a game package as a process in the sandbox: one process for each match.
//!
//! The process has the limits of a bot, but more room for its output. It is not stopped between
//! two questions, because it only waits for the next one. It runs on the processors of the thread
//! that plays the match, so that it takes no time from the bots of another slot.
//!
//! A process starts while the bots of its match start, before any clock runs. It does not start
//! earlier, beside another match: it would take processor time from bots whose replies are timed.

use std::sync::Arc;

use arbiter_games::{ClockKind, Forfeit, Framing, Micros, Seed};
use arbiter_packages::{RulesHost, RulesSession};

use crate::fault::Fault;
use crate::sandbox::{
    BotSource, Host, Jail, JailConfig, Ponder, ScratchDir, Workdir, thread_cores,
};
use crate::seat::{OutputLimits, SeatDriver, SeatFailure, StdioSeat, StopSignal, TimedReply};

/// How long the rules may take for an answer.
const ANSWER_LIMIT: Micros = Micros::from_millis(10_000);

/// The output of the rules: an answer, and all of them in a match. The match itself ends earlier.
const OUTPUT: OutputLimits = OutputLimits { reply: 4 << 20, total: 512 << 20 };

/// Maximum length of the standard error that a message quotes, in bytes.
const MAX_STDERR: usize = 400;

/// The program of the rules.
#[derive(Debug)]
pub(crate) struct RulesProgram {
    pub(crate) host: Arc<Host>,
    pub(crate) source: BotSource,
    /// The program and its arguments; never empty.
    pub(crate) argv: Vec<String>,
    pub(crate) stop: Arc<StopSignal>,
    /// Keeps the files of `source`.
    pub(crate) _files: Arc<ScratchDir>,
}

/// The rules of one match. Dropping it kills the process.
#[derive(Debug)]
struct RulesProcess {
    seat: StdioSeat,
}

impl RulesProgram {
    fn start(&self) -> Result<Result<StdioSeat, Box<dyn SeatDriver>>, Fault> {
        let workdir = Workdir::new(&self.source)?;
        let config =
            JailConfig { ponder: Ponder::Allow, cores: thread_cores(), ..JailConfig::default() };
        let jail = Jail::open(&self.host, workdir, &config)?;
        let stop = Arc::clone(&self.stop);
        StdioSeat::start_with(jail, &self.argv, Framing::Line, ClockKind::Wall, stop, OUTPUT)
    }
}

impl RulesHost for RulesProgram {
    fn begin(&self, _seed: Seed) -> Result<Box<dyn RulesSession>, String> {
        match self.start().map_err(|fault| fault.to_string())? {
            Ok(seat) => Ok(Box::new(RulesProcess { seat })),
            Err(mut absent) => {
                let reply = absent.ask("", ANSWER_LIMIT).map_err(|fault| fault.to_string())?;
                let failure = reply.reply.err().map(|failure| failure.detail);
                Err(failure.unwrap_or_else(|| "they cannot be started".to_owned()))
            }
        }
    }
}

impl RulesSession for RulesProcess {
    fn ask(&mut self, question: &str) -> Result<String, String> {
        let TimedReply { reply, spent } =
            self.seat.ask(question, ANSWER_LIMIT).map_err(|fault| fault.to_string())?;
        let late = || format!("they gave no answer within {ANSWER_LIMIT}");
        match reply {
            Ok(_) if spent.wall > ANSWER_LIMIT => Err(late()),
            Ok(answer) => {
                String::from_utf8(answer).map_err(|_| "their answer is not UTF-8".to_owned())
            }
            Err(SeatFailure { forfeit, detail }) => {
                let cause = match forfeit {
                    Forfeit::Clock if detail.is_empty() => {
                        format!("{}; if they answered, flush standard output", late())
                    }
                    Forfeit::Clock => format!("{}; {detail}", late()),
                    Forfeit::Illegal => format!(
                        "a second line; write nothing but one answer to standard output, and \
                         messages to standard error ({detail})"
                    ),
                    _ => detail,
                };
                Err(match self.last_words() {
                    words if words.is_empty() => cause,
                    words => format!("{cause}: {words}"),
                })
            }
        }
    }
}

impl RulesProcess {
    /// The end of the standard error, in one line.
    fn last_words(&self) -> String {
        let stderr = self.seat.stderr();
        let end = &stderr[stderr.len().saturating_sub(MAX_STDERR)..];
        String::from_utf8_lossy(end).trim().replace('\n', " | ")
    }
}
