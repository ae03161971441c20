//! A bot that runs for the whole match and talks through its standard input and output.
//!
//! # Theory of operation
//!
//! One request is under way at a time. Before it is written, what the bot wrote unasked is
//! looked at: white space is dropped, anything else is an answer to no question. The time of an
//! answer runs from the moment the request is fully written to the moment a wait finds its last
//! byte readable; the clock is read right after that wait, before the byte itself.
//!
//! A program that ended has perhaps answered before it did: what is in its pipe is read to the
//! end first, and a complete answer counts. Its end itself is noticed through a process
//! descriptor, since a child that it left behind may hold the pipe open.
//!
//! Between its answers a bot rests: it is stopped, unless it may think on its opponent's time. It
//! is told to stop as soon as it has answered, and seen to stand before another bot is asked. It is
//! woken before its request is written, and pays for none of that.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Instant;

use arbiter_games::{ClockKind, Forfeit, Framing, Micros};

use super::framing::{MAX_OUTPUT_LEN, MAX_REPLY_LEN, ReplyFramer};
use super::pipes::{self, Drained, For, StopSignal, since};
use super::program::{Outcome, Program};
use super::{SeatDriver, SeatFailure, SeatUsage, TimedReply};
use crate::fault::Fault;
use crate::sandbox::{Exit, Jail};

/// How much of what a bot wrote is quoted to its author, in bytes.
const QUOTED: usize = 60;

/// A bot with standing pipes: a referee's end of a conversation with its program.
#[derive(Debug)]
pub struct StdioSeat {
    program: Program,
    frames: ReplyFramer,
    answered: bool,
    /// The request being written, with its newline; kept for its room.
    line: Vec<u8>,
}

/// An answer or its failure, and how long it was waited for.
type Listened = Result<(Micros, Result<Vec<u8>, SeatFailure>), Fault>;

impl StdioSeat {
    /// Starts `argv` in `jail`, to be charged by `clock`. A program that cannot be started forfeits
    /// at its first request.
    pub fn start(
        jail: Jail,
        argv: &[String],
        framing: Framing,
        clock: ClockKind,
        stop: Arc<StopSignal>,
    ) -> Result<Box<dyn SeatDriver>, Fault> {
        let program = match Program::start(jail, argv, clock, stop)? {
            Ok(program) => program,
            Err(absent) => return Ok(absent),
        };
        let frames = ReplyFramer::new(framing);
        Ok(Box::new(Self { program, frames, answered: false, line: Vec::new() }))
    }

    /// Reads what was written unasked: nothing but white space may have been.
    fn listen_before(&mut self) -> Outcome<()> {
        let mut closed = false;
        while !self.frames.flooded() {
            match self.program.buffer.read(&self.program.process.stdout)? {
                Drained::Bytes(count) => self.frames.push(self.program.buffer.front(count)),
                Drained::Nothing => break,
                Drained::End => {
                    closed = true;
                    break;
                }
            }
        }
        if self.frames.flooded() {
            return Ok(Err(self.flood()));
        }
        if let Some(surplus) = self.frames.surplus() {
            let detail =
                format!("wrote {} bytes without being asked: {}", surplus.len(), quote(surplus));
            self.frames.drop_surplus();
            return Ok(Err(SeatFailure { forfeit: Forfeit::Illegal, detail }));
        }
        if closed { self.program.gone("closed its standard output").map(Err) } else { Ok(Ok(())) }
    }

    /// Writes a request; its time has not begun yet, but a bot that reads nothing runs out of it
    /// all the same.
    fn deliver(&mut self, text: &str, limit: Micros) -> Outcome<()> {
        self.line.clear();
        self.line.extend_from_slice(text.as_bytes());
        self.line.push(b'\n');
        let start = Instant::now();
        let mut written = 0;
        loop {
            let Some(stdin) = &mut self.program.process.stdin else {
                unreachable!("open until the farewell")
            };
            match stdin.write(&self.line[written..]) {
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let ready = pipes::wait(
                        &self.program.process,
                        For::Room,
                        &self.program.stop,
                        start,
                        limit,
                    )?;
                    if ready.stderr {
                        self.program.drain_stderr()?;
                    }
                    if ready.ended {
                        return self.program.gone("ended").map(Err);
                    }
                    if ready.waited > limit {
                        let all = self.line.len();
                        let detail =
                            format!("read only {written} of {all} bytes of its standard input");
                        return Ok(Err(SeatFailure { forfeit: Forfeit::Clock, detail }));
                    }
                    if ready.stdout && !ready.stdin {
                        // It answers before it has read the question; its room may come yet.
                        if let Err(failure) = self.listen_before()? {
                            return Ok(Err(failure));
                        }
                    }
                }
                Err(_) => return self.program.gone("closed its standard input").map(Err),
            }
            if written == self.line.len() {
                return Ok(Ok(()));
            }
        }
    }

    /// Waits for the answer, and says when its last byte was there.
    fn listen(&mut self, start: Instant, limit: Micros) -> Listened {
        loop {
            let ready =
                pipes::wait(&self.program.process, For::Output, &self.program.stop, start, limit)?;
            if ready.stderr {
                self.program.drain_stderr()?;
            }
            let mut closed = false;
            if ready.stdout {
                match self.program.buffer.read(&self.program.process.stdout)? {
                    Drained::Bytes(count) => self.frames.push(self.program.buffer.front(count)),
                    Drained::Nothing => {}
                    Drained::End => closed = true,
                }
            }
            if let Some(answer) = self.frames.take() {
                return Ok((ready.waited, self.only(answer)));
            }
            if self.frames.flooded() {
                return Ok((ready.waited, Err(self.flood())));
            }
            if closed {
                return Ok((ready.waited, Err(self.program.gone("closed its standard output")?)));
            }
            // Whether it ended is asked last: what it wrote before is read first, all of it.
            if ready.ended && !ready.stdout {
                return Ok((ready.waited, Err(self.program.gone("ended")?)));
            }
            if ready.waited > limit {
                let detail = match self.frames.unfinished() {
                    0 => String::new(),
                    bytes => format!("{bytes} bytes came, without the end of an answer"),
                };
                return Ok((ready.waited, Err(SeatFailure { forfeit: Forfeit::Clock, detail })));
            }
        }
    }

    /// The answer, if nothing came with it.
    fn only(&mut self, answer: Vec<u8>) -> Result<Vec<u8>, SeatFailure> {
        let Some(surplus) = self.frames.surplus() else { return Ok(answer) };
        let detail = format!(
            "wrote {} bytes more than one answer: {} behind {}",
            surplus.len(),
            quote(surplus),
            quote(&answer)
        );
        self.frames.drop_surplus();
        Err(SeatFailure { forfeit: Forfeit::Illegal, detail })
    }

    fn flood(&self) -> SeatFailure {
        let detail = if self.frames.unfinished() > MAX_REPLY_LEN {
            format!("wrote more than {MAX_REPLY_LEN} bytes without ending an answer")
        } else {
            format!(
                "wrote {} bytes in one match; {MAX_OUTPUT_LEN} is the most",
                self.frames.total()
            )
        };
        SeatFailure { forfeit: Forfeit::Flood, detail }
    }
}

impl SeatDriver for StdioSeat {
    fn ask(&mut self, text: &str, limit: Micros) -> Result<TimedReply, Fault> {
        self.answered = true;
        if let Some(failure) = self.program.stuck() {
            return Ok(failure.into());
        }
        if let Err(failure) = self.listen_before()? {
            return Ok(failure.into());
        }
        self.program.wake()?;
        let begun = Instant::now();
        let (wall, reply) = match self.deliver(text, limit)? {
            Ok(()) => self.listen(Instant::now(), limit)?,
            Err(failure) => (since(begun), Err(failure)),
        };
        self.program.rest(wall, reply)
    }

    fn settle(&mut self) -> Result<(), Fault> {
        self.program.settle()
    }

    fn tell(&mut self, text: &str) {
        if let Some(stdin) = &mut self.program.process.stdin {
            // A bot that is gone, or whose pipe is full, misses news it does not care for.
            drop(stdin.write(format!("{text}\n").as_bytes()));
        }
    }

    fn starting_up(&self) -> bool {
        !self.answered
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

    fn hang_up(&mut self) {
        self.program.process.stdin = None;
    }

    fn farewell(&mut self, deadline: Instant) -> Result<(), Fault> {
        self.program.farewell(deadline)
    }

    fn close(self: Box<Self>) -> Result<SeatUsage, Fault> {
        self.program.close(self.frames.manners())
    }
}

/// A bot's bytes for a message: escaped, and cut if they are long.
fn quote(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(QUOTED)];
    let more = if shown.len() < bytes.len() { "…" } else { "" };
    format!("{:?}{more}", String::from_utf8_lossy(shown))
}
