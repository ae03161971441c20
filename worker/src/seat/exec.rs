//! A bot that is executed once per decision: the request is its arguments, the answer its whole
//! standard output, and its time includes the start of the process.

use std::sync::Arc;
use std::time::Instant;

use arbiter_games::{Forfeit, Micros, TimeSpent};

use super::framing::{MAX_OUTPUT_LEN, MAX_REPLY_LEN};
use super::pipes::{self, Buffer, Drained, ENDING, For, StopSignal, Tail};
use super::{
    ProtocolWarnings, SeatDriver, SeatFailure, SeatUsage, TimedReply, remains, would_not_stop,
};
use crate::fault::Fault;
use crate::sandbox::{Exit, Jail, Process, Stdin};

/// A bot without a standing process.
#[derive(Debug)]
pub struct ExecSeat {
    jail: Jail,
    argv: Vec<String>,
    /// Bytes of output in this match.
    total: usize,
    stderr: Tail,
    buffer: Buffer,
    stop: Arc<StopSignal>,
}

impl ExecSeat {
    /// A bot that is run as `argv` with the words of each request behind it.
    pub fn new(jail: Jail, argv: Vec<String>, stop: Arc<StopSignal>) -> Self {
        let (stderr, buffer) = (Tail::default(), Buffer::new());
        Self { jail, argv, total: 0, stderr, buffer, stop }
    }

    /// Reads the output of `process` to its end, or to the program's end.
    fn listen(
        &mut self,
        process: &mut Process,
        start: Instant,
        limit: Micros,
    ) -> Result<(Micros, Result<Vec<u8>, SeatFailure>), Fault> {
        let mut output = Vec::new();
        loop {
            let ready = pipes::wait(process, For::Output, &self.stop, start, limit)?;
            if ready.stderr {
                self.stderr.drain(process, &mut self.buffer)?;
            }
            let drained =
                if ready.stdout { self.buffer.read(&process.stdout)? } else { Drained::Nothing };
            if let Drained::Bytes(count) = drained {
                output.extend_from_slice(self.buffer.front(count));
                self.total += count;
            }
            if output.len() > MAX_REPLY_LEN || self.total > MAX_OUTPUT_LEN {
                let detail = format!(
                    "wrote {} bytes; {MAX_REPLY_LEN} an answer and {MAX_OUTPUT_LEN} a match are \
                     the most",
                    output.len()
                );
                return Ok((ready.waited, Err(SeatFailure { forfeit: Forfeit::Flood, detail })));
            }
            // A program that ended may have left a child that holds the pipe open: what is in
            // the pipe by then is the answer.
            if drained == Drained::End || (ready.ended && drained == Drained::Nothing) {
                return Ok((ready.waited, Ok(output.trim_ascii().to_vec())));
            }
            if ready.waited > limit {
                let detail = match output.len() {
                    0 => String::new(),
                    bytes => format!("{bytes} bytes came, but the program did not end"),
                };
                return Ok((ready.waited, Err(SeatFailure { forfeit: Forfeit::Clock, detail })));
            }
        }
    }
}

/// The answer of a program that ended by itself: none if it crashed before it wrote anything, or
/// was killed for a `cause`.
fn answered(
    reply: Result<Vec<u8>, SeatFailure>,
    exit: Option<Exit>,
    cause: Option<String>,
) -> Result<Vec<u8>, SeatFailure> {
    if let Some(cause) = cause {
        return Err(SeatFailure { forfeit: Forfeit::Gone, detail: Exit::by(&cause, exit) });
    }
    let output = reply?;
    match exit {
        Some(exit) if output.is_empty() && exit != Exit::Code(0) => {
            let detail = format!("{exit}, and wrote nothing");
            Err(SeatFailure { forfeit: Forfeit::Gone, detail })
        }
        _ => Ok(output),
    }
}

impl SeatDriver for ExecSeat {
    fn ask(&mut self, text: &str, limit: Micros) -> Result<TimedReply, Fault> {
        if self.jail.is_stuck() {
            return Ok(would_not_stop().into());
        }
        let before = self.jail.cpu_time();
        let mut argv = self.argv.clone();
        argv.extend(text.split(' ').map(str::to_owned));
        let start = Instant::now();
        let mut process = match self.jail.start(&argv, Stdin::Null)? {
            Ok(process) => process,
            Err(reason) => return Ok(TimedReply::failed(Forfeit::Gone, reason)),
        };
        let listened = self.listen(&mut process, start, limit);
        if matches!(&listened, Ok((_, Ok(output))) if output.is_empty()) {
            // Its pipe closes a moment before a dying program can be reaped: whether it crashed
            // must not depend on which is seen first. An answer has this time for nothing.
            let closed = Instant::now();
            while pipes::wait(&process, For::End, &self.stop, closed, ENDING)?.stderr {
                self.stderr.drain(&mut process, &mut self.buffer)?;
            }
        }
        self.stderr.drain(&mut process, &mut self.buffer)?;
        let exit = self.jail.end_process(&mut process);
        let (wall, reply) = listened?;
        if self.jail.is_stuck() {
            let spent = TimeSpent { wall, cpu: self.jail.cpu_time() - before };
            return Ok(TimedReply { reply: Err(would_not_stop()), spent });
        }
        let cause = if exit == Some(Exit::Code(0)) {
            self.jail.check_oom_kill()?
        } else {
            self.jail.kill_cause()?
        };
        let reply = answered(reply, exit, cause);
        Ok(TimedReply { reply, spent: TimeSpent { wall, cpu: self.jail.cpu_time() - before } })
    }

    fn settle(&mut self) -> Result<(), Fault> {
        // Between its answers nothing of it runs, unless that would not end.
        self.jail.wait_until_idle().map(drop)
    }

    fn stderr(&self) -> &[u8] {
        self.stderr.last()
    }

    fn dismiss(&mut self) {
        self.jail.kill();
    }

    fn close(self: Box<Self>) -> Result<SeatUsage, Fault> {
        remains(self.jail, self.stderr, ProtocolWarnings::default())
    }
}
