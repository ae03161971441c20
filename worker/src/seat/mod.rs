//! Seat drivers: they send a bot its requests and read its replies.
//!
//! A driver handles bytes, pipes and time, but no rules. An error of the bot is a
//! [`SeatFailure`] inside the reply; an error of the system is a [`Fault`].

mod absent;
mod cpu_time;
mod exec;
mod framing;
pub(crate) mod pipes;
mod program;
mod stdio;
mod tricks_http;

use std::fmt;
use std::time::{Duration, Instant};

use arbiter_games::{Forfeit, Micros, TimeSpent};

use crate::fault::Fault;
use crate::sandbox::{Bytes, Exit, Jail};

pub(crate) use absent::AbsentSeat;
pub use arbiter_games::Framing;
pub use exec::ExecSeat;
pub use framing::{MAX_OUTPUT_LEN, MAX_REPLY_LEN, OutputLimits, ProtocolWarnings, ReplyFramer};
pub use pipes::{StopHandle, StopSignal};
pub use stdio::StdioSeat;
pub use tricks_http::TricksHttpSeat;

/// How long a bot may take to exit after the match.
pub const GRACE: Duration = Duration::from_millis(500);

/// A bot's reply to a request, and the time that it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedReply {
    /// The reply without its frame, or why there is none.
    pub reply: Result<Vec<u8>, SeatFailure>,
    /// Wall-clock and processor time of the reply.
    pub spent: TimeSpent,
}

impl TimedReply {
    /// A failure that took no time.
    fn failed(forfeit: Forfeit, detail: String) -> Self {
        SeatFailure { forfeit, detail }.into()
    }

    /// Whether both replies are the same, or both are the same forfeit. Times and the text of the
    /// evidence may differ.
    pub fn agrees(&self, other: &Self) -> bool {
        match (&self.reply, &other.reply) {
            (Ok(one), Ok(other)) => one == other,
            (Err(own), Err(other)) => own.forfeit == other.forfeit,
            _ => false,
        }
    }

    /// How the seat forfeited, if it did.
    pub fn forfeit(&self) -> Option<Forfeit> {
        self.reply.as_ref().err().map(|failure| failure.forfeit)
    }
}

impl From<SeatFailure> for TimedReply {
    fn from(failure: SeatFailure) -> Self {
        Self { reply: Err(failure), spent: TimeSpent::default() }
    }
}

/// Why a bot gave no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatFailure {
    /// The kind of forfeit.
    pub forfeit: Forfeit,
    /// The evidence, for the bot's author.
    pub detail: String,
}

impl fmt::Display for SeatFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { forfeit, detail } = self;
        if detail.is_empty() { write!(f, "{forfeit}") } else { write!(f, "{forfeit}: {detail}") }
    }
}

/// Output and resource usage of a seat in a whole match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeatUsage {
    /// The last 64 KiB of its standard error.
    pub stderr: Vec<u8>,
    /// Number of earlier bytes of standard error, which were dropped.
    pub stderr_dropped: usize,
    /// Processor time of the whole process tree.
    pub cpu: Micros,
    /// Peak memory, where it is measured.
    pub memory: Option<Bytes>,
    /// Tolerated deviations from the protocol.
    pub warnings: ProtocolWarnings,
    /// A failure after the last reply. It is evidence but no forfeit: the match was over.
    pub late_failure: Option<SeatFailure>,
}

/// Drives the occupant of one seat.
pub trait SeatDriver {
    /// Sends a request and waits for the reply, at most `limit` of wall-clock time.
    fn ask(&mut self, text: &str, limit: Micros) -> Result<TimedReply, Fault>;

    /// Waits until all processes of the bot are stopped, unless it may ponder. The referee calls
    /// this before it asks another bot, so that this bot uses none of the other's processor time. A
    /// bot that does not stop is killed and forfeits its next request. The wait counts for no bot.
    fn wait_until_stopped(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// Sends a message that needs no reply. Ignores whether the bot reads it.
    fn notify(&mut self, _text: &str) {}

    /// Whether the next reply is the first of a process. A first reply has a start-up allowance.
    fn is_starting_up(&self) -> bool {
        false
    }

    /// The last bytes of the bot's standard error. Output since the last reply may be missing.
    fn stderr(&self) -> &[u8] {
        &[]
    }

    /// How the process of a bot that runs for the whole match ended, if it has ended.
    fn exit(&mut self) -> Option<Exit> {
        None
    }

    /// Kills the bot.
    fn dismiss(&mut self);

    /// Closes the bot's input: no more requests follow.
    fn close_input(&mut self) {}

    /// Waits until the bot has exited, at most until `deadline`.
    fn wait_for_exit(&mut self, _deadline: Instant) -> Result<(), Fault> {
        Ok(())
    }

    /// Kills all remaining processes and cleans up.
    fn close(self: Box<Self>) -> Result<SeatUsage, Fault>;
}

/// The failure of a bot whose processes stayed in a kernel call when they were stopped.
fn would_not_stop() -> SeatFailure {
    let detail = "would not stop: its processes stayed in a kernel call after its reply";
    SeatFailure { forfeit: Forfeit::Gone, detail: detail.to_owned() }
}

/// Closes a jail and collects the usage of its seat.
fn seat_usage(
    jail: Jail,
    stderr: pipes::Tail,
    warnings: ProtocolWarnings,
) -> Result<SeatUsage, Fault> {
    let cpu = jail.cpu_time();
    let memory = jail.peak_memory();
    let is_stuck = jail.is_stuck();
    let lingers = jail.close()?.lingers;
    let would_not_end = || {
        let detail = "would not end: its processes stayed in a kernel call after they were killed";
        SeatFailure { forfeit: Forfeit::Gone, detail: detail.to_owned() }
    };
    let late_failure = if is_stuck { Some(would_not_stop()) } else { lingers.then(would_not_end) };
    let (stderr, stderr_dropped) = stderr.finish();
    Ok(SeatUsage { stderr, stderr_dropped, cpu, memory, warnings, late_failure })
}
