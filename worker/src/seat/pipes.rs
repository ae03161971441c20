//! Polling and reading a bot's pipes.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use arbiter_games::Micros;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pipe::PipeFlags;

use crate::fault::{Context as _, Fault};
use crate::sandbox::{Process, is_runtime_notice};

/// Number of stored bytes of a bot's standard error.
const TAIL: usize = 64 * 1024;

/// How long to wait for the exit status of a bot that closed its output.
pub(crate) const EXIT_TIMEOUT: Micros = Micros::from_millis(500);

/// Size of a read, in bytes: the capacity of a pipe.
const CHUNK: usize = 64 * 1024;

/// A request to stop matches early. Once [`StopHandle`] is used or dropped, every wait of every
/// seat returns [`Fault::Abandoned`].
#[derive(Debug)]
pub struct StopSignal(pub(super) OwnedFd);

impl StopSignal {
    /// A signal from the read end of a pipe.
    pub fn new(reader: OwnedFd) -> Self {
        Self(reader)
    }

    /// A signal with its handle.
    pub fn new_pair() -> io::Result<(Self, StopHandle)> {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        Ok((Self(reader), StopHandle(writer)))
    }

    /// Returns [`Fault::Abandoned`] if a stop was requested.
    pub fn check(&self) -> Result<(), Fault> {
        let mut fd = [PollFd::new(&self.0, PollFlags::IN)];
        match rustix::event::poll(&mut fd, Some(&Timespec::default())) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(()),
            Ok(_) => Err(Fault::Abandoned),
            Err(error) => Err(Fault::new("cannot poll the stop signal", error)),
        }
    }
}

/// Triggers a [`StopSignal`]. Dropping it does the same.
#[derive(Debug)]
pub struct StopHandle(OwnedFd);

impl StopHandle {
    /// Triggers the signal. It writes a byte, because a newly forked child may still have a copy of
    /// the write end, so that closing it is not enough.
    pub fn stop(self) {
        // It fails if the match has ended already.
        let _result = rustix::io::write(&self.0, &[1]);
    }
}

/// The time since `start`.
pub(crate) fn since(start: Instant) -> Micros {
    micros(start.elapsed())
}

/// A duration in whole microseconds.
pub(crate) fn micros(span: Duration) -> Micros {
    Micros(i64::try_from(span.as_micros()).unwrap_or(i64::MAX))
}

/// The result of a wait.
#[expect(clippy::struct_excessive_bools, reason = "one for each polled descriptor")]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ready {
    /// Time since the start of the wait, measured when a descriptor became ready.
    pub(crate) waited: Micros,
    pub(crate) stdin: bool,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
    /// The program has exited.
    pub(crate) ended: bool,
}

/// The events to wait for, besides the program's exit and its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitFor {
    /// Standard output.
    Output,
    /// Standard output, or free space in standard input.
    InputSpace,
    /// No further event.
    Exit,
}

/// Waits for an event on the pipes of `process`, at most until `limit` after `start`.
pub(crate) fn wait(
    process: &Process,
    events: WaitFor,
    stop: &StopSignal,
    start: Instant,
    limit: Micros,
) -> Result<Ready, Fault> {
    let stdin = process.stdin.as_ref().filter(|_| events == WaitFor::InputSpace);
    let stdout = (events != WaitFor::Exit).then_some(&process.stdout);
    // An unused entry polls the stop signal for no events.
    let unused = || PollFd::new(&stop.0, PollFlags::empty());
    let mut fds = [
        PollFd::new(&stop.0, PollFlags::IN),
        stdout.map_or_else(unused, |pipe| PollFd::new(pipe, PollFlags::IN)),
        process.stderr.as_ref().map_or_else(unused, |pipe| PollFd::new(pipe, PollFlags::IN)),
        PollFd::from_borrowed_fd(process.exit_fd(), PollFlags::IN),
        stdin.map_or_else(unused, |pipe| PollFd::new(pipe, PollFlags::OUT)),
    ];
    let Some(waited) = poll(&mut fds, start, limit)? else {
        return Ok(Ready { waited: since(start), ..Ready::default() });
    };
    let [is_stopped, stdout_ready, stderr_ready, ended, stdin_ready] =
        fds.map(|fd| !fd.revents().is_empty());
    if is_stopped {
        return Err(Fault::Abandoned);
    }
    Ok(Ready {
        waited,
        stdin: stdin_ready && stdin.is_some(),
        stdout: stdout_ready && stdout.is_some(),
        stderr: stderr_ready && process.stderr.is_some(),
        ended,
    })
}

/// Waits until a descriptor is ready. Returns the time since `start`, or `None` after `limit`.
pub(super) fn poll(
    fds: &mut [PollFd<'_>],
    start: Instant,
    limit: Micros,
) -> Result<Option<Micros>, Fault> {
    loop {
        // One microsecond more, so that a timed-out wait has exceeded its limit.
        let Micros(remaining) = limit - since(start) + Micros(1);
        if remaining <= 0 {
            return Ok(None);
        }
        let timeout =
            Timespec { tv_sec: remaining / 1_000_000, tv_nsec: remaining % 1_000_000 * 1000 };
        match rustix::event::poll(fds, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(Some(since(start))),
            Err(error) => return Err(Fault::new("cannot poll a bot", error)),
        }
    }
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadResult {
    /// Number of bytes at the front of the buffer.
    Bytes(usize),
    /// No data at the moment.
    Nothing,
    /// End of file.
    End,
}

/// A read buffer, reused for all reads of a seat.
#[derive(Debug)]
pub(crate) struct Buffer(Vec<u8>);

impl Buffer {
    pub(crate) fn new() -> Self {
        Self(vec![0; CHUNK])
    }

    /// Reads the available data of a pipe.
    pub(crate) fn read(&mut self, mut pipe: &File) -> Result<ReadResult, Fault> {
        loop {
            match pipe.read(&mut self.0[..]) {
                Ok(0) => return Ok(ReadResult::End),
                Ok(count) => return Ok(ReadResult::Bytes(count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(ReadResult::Nothing);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                error @ Err(_) => return error.map(ReadResult::Bytes).fault("cannot read a pipe"),
            }
        }
    }

    /// The first `count` bytes read.
    pub(crate) fn front(&self, count: usize) -> &[u8] {
        &self.0[..count]
    }
}

/// The last bytes of a bot's standard error.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    dropped: usize,
}

impl Tail {
    /// Number of all bytes.
    pub(crate) fn total(&self) -> usize {
        self.dropped + self.bytes.len()
    }

    /// Adds bytes. Drops the older half only at twice the tail's size, so that much output costs
    /// little time.
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

    /// Adds output of a program, without the lines that a language runtime writes because of the
    /// environment of programs: no author can avoid them.
    pub(crate) fn push_output(&mut self, bytes: &[u8]) {
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        lines.filter(|line| !is_runtime_notice(line)).for_each(|line| self.push(line));
    }

    /// Reads the available standard error, at most one pipe's capacity. Closes it at end of file.
    pub(crate) fn drain(
        &mut self,
        process: &mut Process,
        buffer: &mut Buffer,
    ) -> Result<(), Fault> {
        let Some(stderr) = &process.stderr else { return Ok(()) };
        match buffer.read(stderr)? {
            ReadResult::Bytes(count) => self.push_output(buffer.front(count)),
            ReadResult::Nothing => {}
            ReadResult::End => process.stderr = None,
        }
        Ok(())
    }

    /// The last bytes.
    pub(crate) fn last(&self) -> &[u8] {
        &self.bytes[self.bytes.len().saturating_sub(TAIL)..]
    }

    /// The last bytes, and the number of bytes before them.
    pub(crate) fn finish(mut self) -> (Vec<u8>, usize) {
        self.cut();
        (self.bytes, self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_keeps_the_last_bytes() {
        let mut tail = Tail::default();
        for chunk in 0..300_u32 {
            tail.push(&[u8::try_from(chunk % 251).unwrap(); 1000]);
        }
        let (bytes, dropped) = tail.finish();
        assert_eq!((bytes.len(), dropped), (TAIL, 300_000 - TAIL));
        assert_eq!(bytes.last(), Some(&u8::try_from(299 % 251).unwrap()));
    }

    #[test]
    fn a_tail_has_no_notices_of_the_environment() {
        let mut tail = Tail::default();
        let notice = "Picked up JAVA_TOOL_OPTIONS: -Xmx250m -XX:+UseSerialGC -XX:-UsePerfData\n";
        tail.push_output(format!("{notice}one\n").as_bytes());
        tail.push_output(notice.as_bytes());
        let own = "Picked up JAVA_TOOL_OPTIONS: -Xmx9m\ntwo";
        tail.push_output(own.as_bytes());
        assert_eq!(tail.finish(), (format!("one\n{own}").into_bytes(), 0));
    }
}
