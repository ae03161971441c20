//! A program that runs for the whole match, whatever it speaks: how it is started, stopped between
//! its answers, measured, and how its end is told.

use std::sync::Arc;
use std::time::Instant;

use arbiter_games::{ClockKind, Forfeit, Micros, TimeSpent};

use super::cpu_time::CpuCounter;
use super::pipes::{self, Buffer, Drained, ENDING, For, StopSignal, Tail, micros};
use super::{
    AbsentSeat, ProtocolWarnings, SeatDriver, SeatFailure, SeatUsage, TimedReply, remains,
    would_not_stop,
};
use crate::fault::Fault;
use crate::sandbox::{Exit, Jail, Process, Stdin};

/// How long an answer takes before the whole process tree's time is measured.
const WORTH_MEASURING: Micros = Micros::from_millis(1);

/// Whether a step towards an answer succeeded, or why the bot forfeits.
pub(super) type Outcome<T> = Result<Result<T, SeatFailure>, Fault>;

/// A running program of a bot.
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
    /// Starts `argv` in `jail`, to be charged by `clock`; the seat in its place if it cannot be run.
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
        let (stderr, buffer, cpu) = (Tail::default(), Buffer::new(), CpuCounter::default());
        Ok(Ok(Self { jail, process, stderr, buffer, stop, clock, cpu }))
    }

    /// The processor time since it was last measured, of all processes if `whole`. Where it is not
    /// charged, an answer that was there at once leaves children no time worth that price: theirs
    /// is found with a later one.
    fn measure(&mut self, whole: bool) -> Micros {
        match self.jail.leader_cpu_time() {
            Some(leaders) => self.cpu.advance(leaders, whole.then(|| self.jail.cpu_time())),
            None => self.cpu.advance(Micros::ZERO, Some(self.jail.cpu_time())),
        }
    }

    /// Wakes it for an answer.
    pub(super) fn wake(&mut self) -> Result<(), Fault> {
        if self.clock == ClockKind::Cpu {
            // What it burnt while it owed nothing is not this answer's to pay.
            self.measure(true);
        }
        self.jail.resume()
    }

    /// Lets it rest after a reply that took so long on the wall: the answer of a bot that is whole,
    /// and stopped if that had to be waited for.
    pub(super) fn rest(
        &mut self,
        wall: Micros,
        reply: Result<Vec<u8>, SeatFailure>,
    ) -> Result<TimedReply, Fault> {
        self.jail.pause()?;
        if self.clock == ClockKind::Cpu {
            // Read while it stands, the account is exact.
            self.jail.wait_until_idle()?;
        }
        let whole = self.clock == ClockKind::Cpu || reply.is_err() || wall >= WORTH_MEASURING;
        let cpu = self.measure(whole);
        let reply = match self.stuck() {
            None => self.whole(reply)?,
            Some(failure) => Err(failure),
        };
        Ok(TimedReply { reply, spent: TimeSpent { wall, cpu } })
    }

    /// Waits until it rests, before another bot is asked.
    pub(super) fn settle(&mut self) -> Result<(), Fault> {
        self.jail.pause()?;
        self.jail.wait_until_idle().map(drop)
    }

    /// The failure of a bot that would not stop when it was told to.
    pub(super) fn stuck(&self) -> Option<SeatFailure> {
        self.jail.is_stuck().then(would_not_stop)
    }

    /// Takes in what it wrote to its standard error.
    pub(super) fn drain_stderr(&mut self) -> Result<(), Fault> {
        self.stderr.drain(&mut self.process, &mut self.buffer)
    }

    /// The failure of a bot that is gone or closed a pipe, with its exit if it has one.
    pub(super) fn gone(&mut self, seen: &str) -> Result<SeatFailure, Fault> {
        self.jail.resume()?;
        let start = Instant::now();
        let exit = loop {
            if let Some(exit) = self.exit() {
                break Some(exit);
            }
            let ready = pipes::wait(&self.process, For::End, &self.stop, start, ENDING)?;
            if ready.stderr {
                self.drain_stderr()?;
            }
            if ready.waited > ENDING {
                break None;
            }
        };
        let detail = match (self.jail.kill_cause()?, exit) {
            (Some(cause), exit) => Exit::by(&cause, exit),
            (None, Some(exit)) => exit.to_string(),
            (None, None) => format!("{seen}, but runs on"),
        };
        Ok(SeatFailure { forfeit: Forfeit::Gone, detail })
    }

    /// The reply of a bot none of whose processes was killed for want of memory. Its first one may
    /// have answered all the same; but it is not the program any more that its author wrote.
    fn whole(&mut self, reply: Result<Vec<u8>, SeatFailure>) -> Outcome<Vec<u8>> {
        let Some(cause) = self.jail.check_oom_kill()? else { return Ok(reply) };
        self.jail.end_process(&mut self.process);
        let detail = Exit::by(&cause, None);
        Ok(Err(SeatFailure { forfeit: Forfeit::Gone, detail }))
    }

    /// Reads on until the program has ended, at most until `deadline`: one that is stuck in writing
    /// could not end by itself.
    pub(super) fn farewell(&mut self, deadline: Instant) -> Result<(), Fault> {
        let limit = micros(deadline.saturating_duration_since(Instant::now()));
        self.jail.resume()?;
        let start = Instant::now();
        let mut what = For::Output;
        while self.exit().is_none() {
            let ready = pipes::wait(&self.process, what, &self.stop, start, limit)?;
            if ready.waited > limit {
                break;
            }
            if ready.stdout && self.buffer.read(&self.process.stdout)? == Drained::End {
                what = For::End;
            }
            if ready.stderr {
                self.drain_stderr()?;
            }
        }
        self.drain_stderr()
    }

    /// How it ended, if it has.
    pub(super) fn exit(&mut self) -> Option<Exit> {
        self.process.exit().or_else(|| self.jail.reap(&mut self.process))
    }

    /// Kills what still runs, and tells what is left.
    pub(super) fn close(self, manners: ProtocolWarnings) -> Result<SeatUsage, Fault> {
        remains(self.jail, self.stderr, manners)
    }
}
