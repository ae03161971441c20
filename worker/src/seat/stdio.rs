//! Seat driver for a bot that runs for the whole match and uses standard input and output.
//!
//! # Theory of operation
//!
//! One request is pending at a time. Before it is written, unrequested output of the bot is
//! checked: white space is dropped, other output is a forfeit. The time of a
//! reply starts when the request is fully written, and ends when a wait reports the reply's last
//! byte as readable. The clock is read directly after that wait, before the byte itself.
//!
//! A program may reply before it exits. The driver first reads its pipe to the end, and a complete
//! reply counts. It detects the exit through a process descriptor, because a child process may hold
//! the pipe open.
//!
//! Between its replies a bot is stopped, unless it may ponder. The driver requests the stop
//! directly after the reply, and waits for it before the referee asks another bot. It resumes the
//! bot before it writes the next request. None of this counts as the bot's time.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Instant;

use arbiter_games::{ClockKind, Forfeit, Framing, Micros};

use super::framing::{OutputLimits, ReplyFramer};
use super::pipes::{self, ReadResult, StopSignal, WaitFor, since};
use super::program::{Program, StepResult};
use super::{SeatDriver, SeatFailure, SeatUsage, TimedReply};
use crate::fault::Fault;
use crate::sandbox::{Exit, Jail};

/// Maximum number of quoted bytes in an evidence text.
const MAX_QUOTED: usize = 60;

/// The driver of one bot.
#[derive(Debug)]
pub struct StdioSeat {
    program: Program,
    framer: ReplyFramer,
    has_replied: bool,
    /// Buffer for the request with its newline, reused.
    line: Vec<u8>,
}

/// A reply or failure, and how long the driver waited for it.
type ReplyWithTime = Result<(Micros, Result<Vec<u8>, SeatFailure>), Fault>;

impl StdioSeat {
    /// Starts `argv` in `jail`. A program that cannot be started forfeits at its first request.
    pub fn start(
        jail: Jail,
        argv: &[String],
        framing: Framing,
        clock: ClockKind,
        stop: Arc<StopSignal>,
    ) -> Result<Box<dyn SeatDriver>, Fault> {
        let limits = OutputLimits::of(&framing);
        Ok(match Self::start_with(jail, argv, framing, clock, stop, limits)? {
            Ok(seat) => Box::new(seat),
            Err(absent) => absent,
        })
    }

    /// Like [`StdioSeat::start`], with these limits of output. Returns the driver of an absent bot
    /// if the program cannot be started.
    pub(crate) fn start_with(
        jail: Jail,
        argv: &[String],
        framing: Framing,
        clock: ClockKind,
        stop: Arc<StopSignal>,
        limits: OutputLimits,
    ) -> Result<Result<Self, Box<dyn SeatDriver>>, Fault> {
        let framer = ReplyFramer::new(framing, limits);
        let program = Program::start(jail, argv, clock, stop)?;
        let new = |program| Self { program, framer, has_replied: false, line: Vec::new() };
        Ok(program.map(new))
    }

    /// Reads unrequested output, which must be white space.
    fn check_unrequested_output(&mut self) -> StepResult<()> {
        let mut is_closed = false;
        while !self.framer.flooded() {
            match self.program.buffer.read(&self.program.process.stdout)? {
                ReadResult::Bytes(count) => self.framer.push(self.program.buffer.front(count)),
                ReadResult::Nothing => break,
                ReadResult::End => {
                    is_closed = true;
                    break;
                }
            }
        }
        if self.framer.flooded() {
            return Ok(Err(self.flood()));
        }
        if let Some(surplus) = self.framer.surplus() {
            let detail =
                format!("wrote {} bytes without being asked: {}", surplus.len(), quote(surplus));
            self.framer.drop_surplus();
            return Ok(Err(SeatFailure { forfeit: Forfeit::Illegal, detail }));
        }
        if is_closed {
            self.program.exit_failure("closed its standard output").map(Err)
        } else {
            Ok(Ok(()))
        }
    }

    /// Writes a request. The time of the reply starts afterwards. But a bot that does not read the
    /// request forfeits on time as well.
    fn write_request(&mut self, text: &str, limit: Micros) -> StepResult<()> {
        self.line.clear();
        self.line.extend_from_slice(text.as_bytes());
        self.line.push(b'\n');
        let start = Instant::now();
        let mut written = 0;
        loop {
            let Some(stdin) = &mut self.program.process.stdin else {
                unreachable!("open until close_input")
            };
            match stdin.write(&self.line[written..]) {
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let ready = pipes::wait(
                        &self.program.process,
                        WaitFor::InputSpace,
                        &self.program.stop,
                        start,
                        limit,
                    )?;
                    if ready.stderr {
                        self.program.drain_stderr()?;
                    }
                    if ready.ended {
                        return self.program.exit_failure("ended").map(Err);
                    }
                    if ready.waited > limit {
                        let all = self.line.len();
                        let detail =
                            format!("read only {written} of {all} bytes of its standard input");
                        return Ok(Err(SeatFailure { forfeit: Forfeit::Clock, detail }));
                    }
                    if ready.stdout && !ready.stdin {
                        // The bot wrote output before it read the whole request. It may read the
                        // remaining part later.
                        if let Err(failure) = self.check_unrequested_output()? {
                            return Ok(Err(failure));
                        }
                    }
                }
                Err(_) => return self.program.exit_failure("closed its standard input").map(Err),
            }
            if written == self.line.len() {
                return Ok(Ok(()));
            }
        }
    }

    /// Waits for the reply. Returns the time until its last byte arrived.
    fn read_reply(&mut self, start: Instant, limit: Micros) -> ReplyWithTime {
        loop {
            let ready = pipes::wait(
                &self.program.process,
                WaitFor::Output,
                &self.program.stop,
                start,
                limit,
            )?;
            if ready.stderr {
                self.program.drain_stderr()?;
            }
            let mut is_closed = false;
            if ready.stdout {
                match self.program.buffer.read(&self.program.process.stdout)? {
                    ReadResult::Bytes(count) => self.framer.push(self.program.buffer.front(count)),
                    ReadResult::Nothing => {}
                    ReadResult::End => is_closed = true,
                }
            }
            if let Some(reply) = self.framer.take() {
                return Ok((ready.waited, self.single_reply(reply)));
            }
            if self.framer.flooded() {
                return Ok((ready.waited, Err(self.flood())));
            }
            if is_closed {
                return Ok((
                    ready.waited,
                    Err(self.program.exit_failure("closed its standard output")?),
                ));
            }
            // Check the exit last, after all of the program's output was read.
            if ready.ended && !ready.stdout {
                return Ok((ready.waited, Err(self.program.exit_failure("ended")?)));
            }
            if ready.waited > limit {
                let detail = match self.framer.unfinished() {
                    0 => String::new(),
                    bytes => format!("{bytes} bytes received, without the end of a reply"),
                };
                return Ok((ready.waited, Err(SeatFailure { forfeit: Forfeit::Clock, detail })));
            }
        }
    }

    /// Returns the reply if no other output came with it.
    fn single_reply(&mut self, reply: Vec<u8>) -> Result<Vec<u8>, SeatFailure> {
        let Some(surplus) = self.framer.surplus() else { return Ok(reply) };
        let detail = format!(
            "wrote {} bytes more than one reply: {} after {}",
            surplus.len(),
            quote(surplus),
            quote(&reply)
        );
        self.framer.drop_surplus();
        Err(SeatFailure { forfeit: Forfeit::Illegal, detail })
    }

    fn flood(&self) -> SeatFailure {
        let OutputLimits { reply, total } = self.framer.limits();
        let detail = if self.framer.unfinished() > reply {
            format!("wrote more than {reply} bytes without ending a reply")
        } else {
            let bytes = self.framer.total();
            format!("wrote {bytes} bytes in one match; the maximum is {total}")
        };
        SeatFailure { forfeit: Forfeit::Flood, detail }
    }
}

impl SeatDriver for StdioSeat {
    fn ask(&mut self, text: &str, limit: Micros) -> Result<TimedReply, Fault> {
        self.has_replied = true;
        if let Some(failure) = self.program.stop_failure() {
            return Ok(failure.into());
        }
        if let Err(failure) = self.check_unrequested_output()? {
            return Ok(failure.into());
        }
        self.program.resume()?;
        let write_start = Instant::now();
        let (wall, reply) = match self.write_request(text, limit)? {
            Ok(()) => self.read_reply(Instant::now(), limit)?,
            Err(failure) => (since(write_start), Err(failure)),
        };
        self.program.finish_reply(wall, reply)
    }

    fn wait_until_stopped(&mut self) -> Result<(), Fault> {
        self.program.wait_until_stopped()
    }

    fn notify(&mut self, text: &str) {
        if let Some(stdin) = &mut self.program.process.stdin {
            // A bot that is gone or does not read misses the message.
            drop(stdin.write(format!("{text}\n").as_bytes()));
        }
    }

    fn is_starting_up(&self) -> bool {
        !self.has_replied
    }

    fn stderr(&self) -> &[u8] {
        self.program.stderr.last()
    }

    fn exit(&mut self) -> Option<Exit> {
        self.program.exit()
    }

    fn dismiss(&mut self) {
        self.program.jail.kill();
    }

    fn close_input(&mut self) {
        self.program.process.stdin = None;
    }

    fn wait_for_exit(&mut self, deadline: Instant) -> Result<(), Fault> {
        self.program.wait_for_exit(deadline)
    }

    fn close(self: Box<Self>) -> Result<SeatUsage, Fault> {
        self.program.close(self.framer.warnings())
    }
}

/// Quotes bytes for a message: escaped and truncated.
fn quote(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(MAX_QUOTED)];
    let ellipsis = if start.len() < bytes.len() { "…" } else { "" };
    format!("{:?}{ellipsis}", String::from_utf8_lossy(start))
}
