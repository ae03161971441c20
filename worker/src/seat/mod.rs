//! Seats: how words reach a bot and its answers come back.
//!
//! A seat knows bytes, pipes and time; it knows no rule. What a bot does wrong comes back as a
//! [`Failure`] inside the answer, what goes wrong on our side as a [`Fault`].

mod absent;
mod cpu_time;
mod exec;
mod framing;
mod http;
pub(crate) mod pipes;
mod program;
mod stdio;

use std::time::{Duration, Instant};

use arbiter_games::{Forfeit, Micros, TimeSpent};

use crate::fault::Fault;
use crate::sandbox::{Bytes, Exit, Jail};

pub(crate) use absent::AbsentSeat;
pub use arbiter_games::Framing;
pub use exec::ExecSeat;
pub use framing::{Frames, LONGEST_ANSWER, MOST_OUTPUT, Manners};
pub use http::HttpSeat;
pub use pipes::{Cord, Stop};
pub use stdio::StdioSeat;

/// How long a bot has to end when nothing more will come.
pub const GRACE: Duration = Duration::from_millis(500);

/// What a bot made of a request.
#[derive(Debug)]
pub struct Answer {
    /// The answer without its frame, or why there is none.
    pub reply: Result<Vec<u8>, Failure>,
    /// What it took.
    pub spent: TimeSpent,
}

impl Answer {
    /// No answer, for a reason that took no time.
    fn failed(forfeit: Forfeit, detail: String) -> Self {
        Failure { forfeit, detail }.into()
    }
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Self {
        Self { reply: Err(failure), spent: TimeSpent::default() }
    }
}

/// The absence of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the bot did.
    pub forfeit: Forfeit,
    /// The evidence, in words for the bot's author.
    pub detail: String,
}

/// What is left when a bot is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// The last 64 KiB of its standard error.
    pub stderr: Vec<u8>,
    /// How many bytes of standard error were dropped before those.
    pub stderr_dropped: usize,
    /// Processor time of the whole process tree, in the whole match.
    pub cpu: Micros,
    /// The most memory it used at a time, where that is measured.
    pub memory: Option<Bytes>,
    /// What was put up with.
    pub manners: Manners,
    /// What it did when it was asked nothing more: evidence, and no forfeit, since what the match
    /// came to was known.
    pub late_failure: Option<Failure>,
}

/// One place at the table, with a bot on it.
pub trait Seat {
    /// Puts `text` to the bot and waits for its answer, at most `limit` of time on the wall.
    fn ask(&mut self, text: &str, limit: Micros) -> Result<Answer, Fault>;

    /// Sees to it that nothing of the bot takes a turn from others until it is asked again, unless
    /// it may think on: before another bot is asked. One that will not stop is killed, and forfeits
    /// what it is asked next; the time that this takes is charged to nobody.
    fn settle(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// Tells the bot something that owes no answer. Whether it listens does not matter.
    fn tell(&mut self, _text: &str) {}

    /// Whether the next answer is the first of a process whose start-up is not charged.
    fn starting_up(&self) -> bool {
        false
    }

    /// What the bot wrote to its standard error so far, or the end of it. What it wrote since its
    /// last answer may not be there yet.
    fn stderr(&self) -> &[u8] {
        &[]
    }

    /// How the bot's program ended, if it had a standing one and that has ended.
    fn exit(&mut self) -> Option<Exit> {
        None
    }

    /// Kills the bot.
    fn dismiss(&mut self);

    /// Lets the bot know that nothing more will come.
    fn hang_up(&mut self) {}

    /// Waits until the bot has ended, at most until `deadline`.
    fn farewell(&mut self, _deadline: Instant) -> Result<(), Fault> {
        Ok(())
    }

    /// Kills what still runs, and cleans up.
    fn close(self: Box<Self>) -> Result<Remains, Fault>;
}

/// The failure of a bot that was in the kernel when it was to stop, and stayed there.
fn would_not_stop() -> Failure {
    let detail = "would not stop: its processes went on in the kernel when it owed nothing";
    Failure { forfeit: Forfeit::Gone, detail: detail.to_owned() }
}

/// Closes a jail, and gathers what is left.
fn remains(jail: Jail, stderr: pipes::Tail, manners: Manners) -> Result<Remains, Fault> {
    let (cpu, memory, is_stuck) = (jail.cpu_time(), jail.peak_memory(), jail.is_stuck());
    let lingers = jail.close()?.lingers;
    let would_not_end = || {
        let detail = "would not end: its processes went on in the kernel when they were killed";
        Failure { forfeit: Forfeit::Gone, detail: detail.to_owned() }
    };
    let late_failure = if is_stuck { Some(would_not_stop()) } else { lingers.then(would_not_end) };
    let (stderr, stderr_dropped) = stderr.finish();
    Ok(Remains { stderr, stderr_dropped, cpu, memory, manners, late_failure })
}
