//! Seat driver for a bot that is executed once per request: the arguments are the request, the
//! whole standard output is the reply, and the time includes the start of the process.

use std::sync::Arc;
use std::time::Instant;

use arbiter_games::{Forfeit, Micros, TimeSpent};

use super::framing::{MAX_OUTPUT_LEN, MAX_REPLY_LEN};
use super::pipes::{self, Buffer, EXIT_TIMEOUT, ReadResult, StopSignal, Tail, WaitFor};
use super::{
    ProtocolWarnings, SeatDriver, SeatFailure, SeatUsage, TimedReply, seat_usage, would_not_stop,
};
use crate::fault::Fault;
use crate::sandbox::{Exit, Jail, Process, Stdin};

/// The driver of one bot.
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
    /// A driver that runs the bot as `argv`, followed by the words of each request.
    pub fn new(jail: Jail, argv: Vec<String>, stop: Arc<StopSignal>) -> Self {
        let stderr = Tail::default();
        Self { jail, argv, total: 0, stderr, buffer: Buffer::new(), stop }
    }

    /// Reads the output of `process` until end of file or exit. Returns the time and the reply.
    fn read_output(
        &mut self,
        process: &mut Process,
        start: Instant,
        limit: Micros,
    ) -> Result<(Micros, Result<Vec<u8>, SeatFailure>), Fault> {
        let mut output = Vec::new();
        loop {
            let ready = pipes::wait(process, WaitFor::Output, &self.stop, start, limit)?;
            if ready.stderr {
                self.stderr.drain(process, &mut self.buffer)?;
            }
            let read =
                if ready.stdout { self.buffer.read(&process.stdout)? } else { ReadResult::Nothing };
            if let ReadResult::Bytes(count) = read {
                output.extend_from_slice(self.buffer.front(count));
                self.total += count;
            }
            if output.len() > MAX_REPLY_LEN || self.total > MAX_OUTPUT_LEN {
                let detail = format!(
                    "wrote {} bytes; the maximum is {MAX_REPLY_LEN} per reply and \
                     {MAX_OUTPUT_LEN} per match",
                    output.len()
                );
                return Ok((ready.waited, Err(SeatFailure { forfeit: Forfeit::Flood, detail })));
            }
            // A child of an exited program may hold the pipe open. Then the reply is the output
            // until the program's exit.
            if read == ReadResult::End || (ready.ended && read == ReadResult::Nothing) {
                return Ok((ready.waited, Ok(output.trim_ascii().to_vec())));
            }
            if ready.waited > limit {
                let detail = match output.len() {
                    0 => String::new(),
                    bytes => format!("{bytes} bytes received, but the program did not exit"),
                };
                return Ok((ready.waited, Err(SeatFailure { forfeit: Forfeit::Clock, detail })));
            }
        }
    }
}

/// The reply of an exited program. It is a failure if the program crashed without output, or if a
/// process of it was killed for `cause`.
fn reply_of_exited(
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
            let detail = format!("{exit} without output");
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
        let cpu_before = self.jail.cpu_time();
        let mut argv = self.argv.clone();
        argv.extend(text.split(' ').map(str::to_owned));
        let start = Instant::now();
        let mut process = match self.jail.start(&argv, Stdin::Null)? {
            Ok(process) => process,
            Err(reason) => return Ok(TimedReply::failed(Forfeit::Gone, reason)),
        };
        let time_and_output = self.read_output(&mut process, start, limit);
        if matches!(&time_and_output, Ok((_, Ok(output))) if output.is_empty()) {
            // A dying program's pipe closes a moment before the program can be reaped. So wait for
            // the exit to find out whether it crashed. This wait does not count as the bot's time.
            let wait_start = Instant::now();
            while pipes::wait(&process, WaitFor::Exit, &self.stop, wait_start, EXIT_TIMEOUT)?.stderr
            {
                self.stderr.drain(&mut process, &mut self.buffer)?;
            }
        }
        self.stderr.drain(&mut process, &mut self.buffer)?;
        let exit = self.jail.end_process(&mut process);
        let (wall, reply) = time_and_output?;
        if self.jail.is_stuck() {
            let spent = TimeSpent { wall, cpu: self.jail.cpu_time() - cpu_before };
            return Ok(TimedReply { reply: Err(would_not_stop()), spent });
        }
        let cause = if exit == Some(Exit::Code(0)) {
            self.jail.check_oom_kill()?
        } else {
            self.jail.kill_cause()?
        };
        let reply = reply_of_exited(reply, exit, cause);
        Ok(TimedReply { reply, spent: TimeSpent { wall, cpu: self.jail.cpu_time() - cpu_before } })
    }

    fn wait_until_stopped(&mut self) -> Result<(), Fault> {
        // No process runs between replies, unless one could not be killed.
        self.jail.wait_until_idle().map(drop)
    }

    fn stderr(&self) -> &[u8] {
        self.stderr.last()
    }

    fn dismiss(&mut self) {
        self.jail.kill();
    }

    fn close(self: Box<Self>) -> Result<SeatUsage, Fault> {
        seat_usage(self.jail, self.stderr, ProtocolWarnings::default())
    }
}
