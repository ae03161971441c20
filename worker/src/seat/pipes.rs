//! Waiting on a bot's pipes.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use arbiter_games::Micros;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pipe::PipeFlags;

use crate::fault::{Context as _, Fault};
use crate::sandbox::Process;

/// How much of a bot's standard error is kept, in bytes.
const TAIL: usize = 64 * 1024;

/// How long a bot that closed its output may take to end, so that its exit can be told.
pub(crate) const ENDING: Micros = Micros::from_millis(50);

/// How much is read at once, in bytes: the size of a pipe.
const CHUNK: usize = 64 * 1024;

/// Ends matches early: once its other end is written to or closed, every wait of every seat ends
/// in [`Fault::Abandoned`].
#[derive(Debug)]
pub struct StopSignal(pub(super) OwnedFd);

impl StopSignal {
    /// Watches the reading end of a pipe.
    pub fn new(reader: OwnedFd) -> Self {
        Self(reader)
    }

    /// A stop, and the cord that pulls it.
    pub fn new_pair() -> io::Result<(Self, StopHandle)> {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        Ok((Self(reader), StopHandle(writer)))
    }

    /// Goes on, unless it was pulled.
    /// [`Fault::Abandoned`] if it was.
    pub fn check(&self) -> Result<(), Fault> {
        let mut fd = [PollFd::new(&self.0, PollFlags::IN)];
        match rustix::event::poll(&mut fd, Some(&Timespec::default())) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(()),
            Ok(_) => Err(Fault::Abandoned),
            Err(error) => Err(Fault::new("cannot watch for a stop", error)),
        }
    }
}

/// Pulls a [`StopSignal`]; losing it does so too.
#[derive(Debug)]
pub struct StopHandle(OwnedFd);

impl StopHandle {
    /// Ends everything that watches the stop. It is a written byte and not the closed end that
    /// says so: a child that is just being forked may hold a copy of that a moment longer.
    pub fn stop(self) {
        let _over_already = rustix::io::write(&self.0, &[1]);
    }
}

/// The time that has passed since `start`.
pub(crate) fn since(start: Instant) -> Micros {
    micros(start.elapsed())
}

/// A span in whole microseconds.
pub(crate) fn micros(span: Duration) -> Micros {
    Micros(i64::try_from(span.as_micros()).unwrap_or(i64::MAX))
}

/// What a wait ended with.
#[expect(clippy::struct_excessive_bools, reason = "one for each descriptor that was watched")]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ready {
    /// When it ended, read right after readiness.
    pub(crate) waited: Micros,
    pub(crate) stdin: bool,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
    /// The program has ended.
    pub(crate) ended: bool,
}

/// What to wait for, besides the program's end and its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    /// Standard output.
    Output,
    /// Standard output, or room in standard input.
    Room,
    /// The program's end alone: its output does not matter any more.
    End,
}

/// Waits until something happens at the pipes of `process`, at most until `limit` after `start`.
pub(crate) fn wait(
    process: &Process,
    what: For,
    stop: &StopSignal,
    start: Instant,
    limit: Micros,
) -> Result<Ready, Fault> {
    let room = process.stdin.as_ref().filter(|_| what == For::Room);
    let stdout = (what != For::End).then_some(&process.stdout);
    // A place without a pipe watches the stop for nothing.
    let nothing = || PollFd::new(&stop.0, PollFlags::empty());
    let mut fds = [
        PollFd::new(&stop.0, PollFlags::IN),
        stdout.map_or_else(nothing, |pipe| PollFd::new(pipe, PollFlags::IN)),
        process.stderr.as_ref().map_or_else(nothing, |pipe| PollFd::new(pipe, PollFlags::IN)),
        PollFd::from_borrowed_fd(process.exit_fd(), PollFlags::IN),
        room.map_or_else(nothing, |pipe| PollFd::new(pipe, PollFlags::OUT)),
    ];
    let Some(waited) = poll(&mut fds, start, limit)? else {
        return Ok(Ready { waited: since(start), ..Ready::default() });
    };
    let [stopped, stdout, stderr, ended, stdin] = fds.map(|fd| !fd.revents().is_empty());
    if stopped {
        return Err(Fault::Abandoned);
    }
    let (stdout, stderr) = (stdout && what != For::End, stderr && process.stderr.is_some());
    Ok(Ready { waited, stdin: stdin && room.is_some(), stdout, stderr, ended })
}

/// Waits until one of these is ready, and says how long after `start` that was; none if that was
/// not before `limit`.
pub(super) fn poll(
    fds: &mut [PollFd<'_>],
    start: Instant,
    limit: Micros,
) -> Result<Option<Micros>, Fault> {
    loop {
        // One microsecond more, so that a wait that times out has passed its limit.
        let left = limit - since(start) + Micros(1);
        if left <= Micros::ZERO {
            return Ok(None);
        }
        let left = Timespec { tv_sec: left.0 / 1_000_000, tv_nsec: left.0 % 1_000_000 * 1000 };
        match rustix::event::poll(fds, Some(&left)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(Some(since(start))),
            Err(error) => return Err(Fault::new("cannot wait for a bot", error)),
        }
    }
}

/// What a pipe had to offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    /// So many bytes, at the front of the buffer.
    Bytes(usize),
    /// Nothing for now.
    Nothing,
    /// Its end.
    End,
}

/// A buffer for reading, reused for every read of a seat.
#[derive(Debug)]
pub(crate) struct Buffer(Vec<u8>);

impl Buffer {
    pub(crate) fn new() -> Self {
        Self(vec![0; CHUNK])
    }

    /// Reads what a pipe offers now.
    pub(crate) fn read(&mut self, mut pipe: &File) -> Result<Drained, Fault> {
        loop {
            match pipe.read(&mut self.0[..]) {
                Ok(0) => return Ok(Drained::End),
                Ok(count) => return Ok(Drained::Bytes(count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Drained::Nothing);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                error @ Err(_) => return error.map(Drained::Bytes).fault("cannot read a pipe"),
            }
        }
    }

    /// The first `count` bytes read.
    pub(crate) fn front(&self, count: usize) -> &[u8] {
        &self.0[..count]
    }
}

/// The end of what a bot wrote to its standard error.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    dropped: usize,
}

impl Tail {
    /// How many bytes were taken in.
    pub(crate) fn total(&self) -> usize {
        self.dropped + self.bytes.len()
    }

    /// Takes in what was written. Twice the tail is held before its older half goes, so that a
    /// flood costs no more than it must.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > 2 * TAIL {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let surplus = self.bytes.len().saturating_sub(TAIL);
        self.bytes.drain(..surplus);
        self.dropped += surplus;
    }

    /// Reads what standard error offers now, one pipe's worth at the most; closes it at its end.
    pub(crate) fn drain(
        &mut self,
        process: &mut Process,
        buffer: &mut Buffer,
    ) -> Result<(), Fault> {
        let Some(stderr) = &process.stderr else { return Ok(()) };
        match buffer.read(stderr)? {
            Drained::Bytes(count) => self.push(buffer.front(count)),
            Drained::Nothing => {}
            Drained::End => process.stderr = None,
        }
        Ok(())
    }

    /// The last bytes written so far.
    pub(crate) fn last(&self) -> &[u8] {
        &self.bytes[self.bytes.len().saturating_sub(TAIL)..]
    }

    /// The last bytes written, and how many came before them.
    pub(crate) fn finish(mut self) -> (Vec<u8>, usize) {
        self.cut();
        (self.bytes, self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_keeps_the_end() {
        let mut tail = Tail::default();
        for chunk in 0..300_u32 {
            tail.push(&[u8::try_from(chunk % 251).unwrap(); 1000]);
        }
        let (bytes, dropped) = tail.finish();
        assert_eq!((bytes.len(), dropped), (TAIL, 300_000 - TAIL));
        assert_eq!(bytes.last(), Some(&u8::try_from(299 % 251).unwrap()));
    }
}
