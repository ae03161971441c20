//! A bot process that runs for the whole match, independent of the protocol: start, stop between
//! replies, measurement and exit.

use std::sync::Arc;
use std::time::Instant;

use arbiter_games::{ClockKind, Forfeit, Micros, TimeSpent};

use super::cpu_time::CpuCounter;
use super::pipes::{self, Buffer, EXIT_TIMEOUT, ReadResult, StopSignal, Tail, WaitFor, micros};
use super::{
    AbsentSeat, ProtocolWarnings, SeatDriver, SeatFailure, SeatUsage, TimedReply, seat_usage,
    would_not_stop,
};
use crate::fault::Fault;
use crate::sandbox::{Exit, Jail, Process, Stdin};

/// Duration of a reply from which the driver measures the whole process tree.
const MEASURE_TREE_FROM: Micros = Micros::from_millis(1);

/// The result of a step of an exchange, or why the bot forfeits.
pub(super) type StepResult<T> = Result<Result<T, SeatFailure>, Fault>;

/// A running process of a bot.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) jail: Jail,
    pub(super) process: Process,
    pub(super) stderr: Tail,
    pub(super) buffer: Buffer,
    pub(super) stop: Arc<StopSignal>,
    clock: ClockKind,
    cpu: CpuCounter,
}

impl Program {
    /// Starts `argv` in `jail`. If the program cannot start, returns a seat driver that forfeits.
    pub(super) fn start(
        mut jail: Jail,
        argv: &[String],
        clock: ClockKind,
        stop: Arc<StopSignal>,
    ) -> Result<Result<Self, Box<dyn SeatDriver>>, Fault> {
        let process = match jail.start(argv, Stdin::Pipe)? {
            Ok(process) => process,
            Err(reason) => return Ok(Err(AbsentSeat::boxed(reason, Some(jail)))),
        };
        let stderr = Tail::default();
        let buffer = Buffer::new();
        let cpu = CpuCounter::default();
        Ok(Ok(Self { jail, process, stderr, buffer, stop, clock, cpu }))
    }

    /// Processor time since the last measurement, of the whole process tree if `whole_tree`.
    /// Measuring the tree is slow. If a quick reply is not charged by processor time, a later
    /// measurement includes the children.
    fn measure(&mut self, whole_tree: bool) -> Micros {
        match self.jail.leader_cpu_time() {
            Some(leaders) => self.cpu.advance(leaders, whole_tree.then(|| self.jail.cpu_time())),
            None => self.cpu.advance(Micros::ZERO, Some(self.jail.cpu_time())),
        }
    }

    /// Resumes the bot for a request.
    pub(super) fn resume(&mut self) -> Result<(), Fault> {
        if self.clock == ClockKind::Cpu {
            // Processor time between two replies must not count for the next reply.
            self.measure(true);
        }
        self.jail.resume()
    }

    /// Stops the bot after a reply and measures it. The reply becomes a failure if the bot did not
    /// stop or lost a process.
    pub(super) fn finish_reply(
        &mut self,
        wall: Micros,
        reply: Result<Vec<u8>, SeatFailure>,
    ) -> Result<TimedReply, Fault> {
        self.jail.pause()?;
        if self.clock == ClockKind::Cpu {
            // The measurement is exact only while the bot is stopped.
            self.jail.wait_until_idle()?;
        }
        let whole_tree =
            self.clock == ClockKind::Cpu || reply.is_err() || wall >= MEASURE_TREE_FROM;
        let cpu = self.measure(whole_tree);
        let reply = match self.stop_failure() {
            None => self.check_oom_kill(reply)?,
            Some(failure) => Err(failure),
        };
        Ok(TimedReply { reply, spent: TimeSpent { wall, cpu } })
    }

    /// Waits until the bot is stopped, before the referee asks another bot.
    pub(super) fn wait_until_stopped(&mut self) -> Result<(), Fault> {
        self.jail.pause()?;
        self.jail.wait_until_idle().map(drop)
    }

    /// The failure of a bot that did not stop when requested.
    pub(super) fn stop_failure(&self) -> Option<SeatFailure> {
        self.jail.is_stuck().then(would_not_stop)
    }

    /// Reads its standard error.
    pub(super) fn drain_stderr(&mut self) -> Result<(), Fault> {
        self.stderr.drain(&mut self.process, &mut self.buffer)
    }

    /// The failure of a bot that exited or closed a pipe, with its exit status if it has one.
    pub(super) fn exit_failure(&mut self, observation: &str) -> Result<SeatFailure, Fault> {
        self.jail.resume()?;
        let start = Instant::now();
        let exit = loop {
            if let Some(exit) = self.exit() {
                break Some(exit);
            }
            let ready = pipes::wait(&self.process, WaitFor::Exit, &self.stop, start, EXIT_TIMEOUT)?;
            if ready.stderr {
                self.drain_stderr()?;
            }
            if ready.waited > EXIT_TIMEOUT {
                break None;
            }
        };
        // Its last words, which say why it exited.
        self.drain_stderr()?;
        let detail = match (self.jail.kill_cause()?, exit) {
            (Some(cause), exit) => Exit::by(&cause, exit),
            (None, Some(exit)) => exit.to_string(),
            (None, None) => format!("{observation}, but is still running"),
        };
        Ok(SeatFailure { forfeit: Forfeit::Gone, detail })
    }

    /// Turns the reply into a failure if a process of the bot was killed for its memory use.
    /// Without that process the bot possibly does not work as its author intended.
    fn check_oom_kill(&mut self, reply: Result<Vec<u8>, SeatFailure>) -> StepResult<Vec<u8>> {
        let Some(cause) = self.jail.check_oom_kill()? else { return Ok(reply) };
        self.jail.end_process(&mut self.process);
        let detail = Exit::by(&cause, None);
        Ok(Err(SeatFailure { forfeit: Forfeit::Gone, detail }))
    }

    /// Waits until the process has exited, at most until `deadline`. Reads its output meanwhile, so
    /// that a full pipe does not block the exit.
    pub(super) fn wait_for_exit(&mut self, deadline: Instant) -> Result<(), Fault> {
        let limit = micros(deadline.saturating_duration_since(Instant::now()));
        self.jail.resume()?;
        let start = Instant::now();
        let mut events = WaitFor::Output;
        while self.exit().is_none() {
            let ready = pipes::wait(&self.process, events, &self.stop, start, limit)?;
            if ready.waited > limit {
                break;
            }
            if ready.stdout && self.buffer.read(&self.process.stdout)? == ReadResult::End {
                events = WaitFor::Exit;
            }
            if ready.stderr {
                self.drain_stderr()?;
            }
        }
        self.drain_stderr()
    }

    /// The exit status, if the process has exited.
    pub(super) fn exit(&mut self) -> Option<Exit> {
        self.process.exit().or_else(|| self.jail.reap(&mut self.process))
    }

    /// Kills the remaining processes and returns the usage.
    pub(super) fn close(self, warnings: ProtocolWarnings) -> Result<SeatUsage, Fault> {
        seat_usage(self.jail, self.stderr, warnings)
    }
}
