//! A bot that is a client of tricks over HTTP, and plays against an address.
//!
//! # Theory of operation
//!
//! The bot is told an address and a token in one line on its standard input, which then ends. It
//! finds the address in its own network, where there is nothing else (see the sandbox's door), and
//! sends the requests of the house's server there: one with the token, which begins the match, and
//! then each move. What the referee asks is the answer to the request before, and the cards of the
//! next request are the bot's reply. So the bot is always owed exactly one answer while others are
//! asked, and owes exactly one request while it is.
//!
//! When the bot is asked, and so when a request is answered, is for the game to say: against a bot
//! of lines when every table that is not over waits for the client, as at the house's server
//! ([`TurnPolicy::AllTables`](arbiter_games::TurnPolicy)). Between two clients it is as soon as
//! *some* table waits, and tables that do not show `_`: in a match every deal is played twice with
//! the first attack exchanged, so that at the start half the tables wait for either, and both would
//! wait for each other for ever. A seat needs to know neither rules nor its rival.
//!
//! A request that means nothing is answered with a line `error: …` and costs nothing but time; so
//! does one that comes while another is not answered, over another connection. The time of an
//! answer runs from when it is asked for, which is when the answer before was written, to when a
//! wait finds the last byte of the request readable. The first includes the start.
//!
//! The last answer of a connection is followed by the end of the stream, for clients that read up
//! to it: where the client asks for that, where it will send nothing more, and at the end of the
//! match.

mod connection;
mod request;

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Instant;

use arbiter_games::{ClockKind, Forfeit, Micros};
use arbiter_proto::tricks_http::{Format, PATH, Request as Wish};
use rustix::event::{PollFd, PollFlags};

use super::framing::MAX_OUTPUT_LEN;
use super::pipes::{self, Drained, StopSignal, since};
use super::program::Program;
use super::{ProtocolWarnings, SeatDriver, SeatFailure, SeatUsage, TimedReply};
use crate::fault::{Context as _, Fault};
use crate::sandbox::{Exit, Jail, LoopbackListener};
use connection::Connection;
use request::{Refused, Request};

/// What the bot calls itself by. Nobody else can reach the address.
const TOKEN: &str = "player";

/// How many connections a bot may have at a time, besides as many that have had their last answer
/// and are not closed by the bot.
const MOST_CONNECTIONS: usize = 16;

/// How much is read of a connection at once, in bytes.
const CHUNK: usize = 16 * 1024;

/// A client of HTTP: a referee's end of the connections with its program.
#[derive(Debug)]
pub struct HttpSeat {
    program: Program,
    /// Where connections come in, until the end.
    door: Option<LoopbackListener>,
    connections: Vec<Connection>,
    /// How many there were.
    visits: u64,
    stage: Stage,
    /// The reply that was not handed over yet.
    reply: Option<Vec<u8>>,
    answered: bool,
    /// Bytes that came, by connections and standard output.
    total: usize,
    /// Whether standard output is still open.
    speaks: bool,
    chunk: Vec<u8>,
}

/// How far the conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The bot has not begun.
    Strange,
    /// It waits for an answer.
    Waiting(Owed),
    /// It was answered, and is to move.
    Told,
}

/// A request that is to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owed {
    connection: u64,
    format: Format,
    keeps_alive: bool,
}

/// Whether what was waited for has come, or why the bot forfeits; and after what time.
type Attended = Result<(Micros, Result<(), SeatFailure>), Fault>;

/// What a round of waiting found.
#[derive(Clone, Copy, Debug)]
struct Round {
    waited: Micros,
    /// The program has ended, and nothing else happened.
    ended: bool,
}

impl HttpSeat {
    /// Starts `argv` in `jail`, to be charged by `clock`, and tells it where the door is. A program
    /// that cannot be started forfeits at its first request.
    pub fn start(
        jail: Jail,
        door: LoopbackListener,
        argv: &[String],
        clock: ClockKind,
        stop: Arc<StopSignal>,
    ) -> Result<Box<dyn SeatDriver>, Fault> {
        let mut program = match Program::start(jail, argv, clock, stop)? {
            Ok(program) => program,
            Err(absent) => return Ok(absent),
        };
        if let Some(mut stdin) = program.process.stdin.take() {
            // A pipe has room for a line; who does not read it will not find us.
            drop(writeln!(stdin, "http://{}{PATH} {TOKEN}", door.address));
        }
        Ok(Box::new(Self {
            program,
            door: Some(door),
            connections: Vec::new(),
            visits: 0,
            stage: Stage::Strange,
            reply: None,
            answered: false,
            total: 0,
            speaks: true,
            chunk: vec![0; CHUNK],
        }))
    }

    /// Answers the request that waits, and waits for the next one.
    fn converse(&mut self, text: &str, limit: Micros) -> Attended {
        let begun = Instant::now();
        let (wall, met) = self.attend(begun, limit, |seat| seat.stage != Stage::Strange)?;
        if met.is_err() {
            return Ok((wall, met));
        }
        // Only the answer itself is waited for: what else a bot leaves unread is on its own time.
        let answered = self.respond(text, true);
        let is_writing = |seat: &Self| answered.is_some_and(|number| seat.is_writing(number));
        let (wall, met) = self.attend(begun, limit, |seat| !is_writing(seat))?;
        if met.is_err() {
            return Ok((wall, met));
        }
        let start = if self.answered { Instant::now() } else { begun };
        self.attend(start, limit, |seat| seat.reply.is_some())
    }

    /// Waits until something is so, at most until `limit` after `start`.
    fn attend(
        &mut self,
        start: Instant,
        limit: Micros,
        is_met: impl Fn(&Self) -> bool,
    ) -> Attended {
        let mut waited = since(start);
        while !is_met(self) {
            let round = self.round(start, limit)?;
            waited = round.waited;
            if is_met(self) {
                break;
            }
            if let Some(detail) = self.flood() {
                return Ok((waited, Err(SeatFailure { forfeit: Forfeit::Flood, detail })));
            }
            if round.ended {
                return Ok((waited, Err(self.program.gone("ended")?)));
            }
            if waited > limit {
                let failure = SeatFailure { forfeit: Forfeit::Clock, detail: self.progress() };
                return Ok((waited, Err(failure)));
            }
        }
        Ok((waited, Ok(())))
    }

    /// Waits until something happens, and takes it in.
    fn round(&mut self, start: Instant, limit: Micros) -> Result<Round, Fault> {
        let nothing = || PollFd::new(&self.program.stop.0, PollFlags::empty());
        let process = &self.program.process;
        let stderr = process.stderr.as_ref();
        let door = self.door.as_ref().map(|door| &door.listener);
        let mut fds = vec![
            PollFd::new(&self.program.stop.0, PollFlags::IN),
            PollFd::from_borrowed_fd(process.exit_fd(), PollFlags::IN),
            stderr.map_or_else(nothing, |pipe| PollFd::new(pipe, PollFlags::IN)),
            if self.speaks { PollFd::new(&process.stdout, PollFlags::IN) } else { nothing() },
            door.map_or_else(nothing, |door| PollFd::new(door, PollFlags::IN)),
        ];
        for connection in &self.connections {
            // What is behind a request that waits is left until that is answered.
            let reads = connection.is_listening() && !self.is_owed(connection.number);
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, reads);
            flags.set(PollFlags::OUT, connection.is_writing());
            fds.push(if flags.is_empty() {
                nothing()
            } else {
                PollFd::new(&connection.stream, flags)
            });
        }
        let Some(waited) = pipes::poll(&mut fds, start, limit)? else {
            return Ok(Round { waited: since(start), ended: false });
        };
        let mut ready = fds.into_iter().map(|fd| !fd.revents().is_empty());
        let mut next = || ready.next() == Some(true);
        let [stopped, ended, stderr, stdout, door] = std::array::from_fn(|_| next());
        let connections: Vec<_> = ready.collect();
        if stopped {
            return Err(Fault::Abandoned);
        }
        self.take_in(stderr, stdout, &connections)?;
        if door {
            self.admit()?;
        }
        let more = stdout || door || connections.contains(&true);
        Ok(Round { waited, ended: ended && !more })
    }

    /// Takes in what the pipes and connections have to offer.
    fn take_in(&mut self, stderr: bool, stdout: bool, ready: &[bool]) -> Result<(), Fault> {
        if stderr {
            self.program.drain_stderr()?;
        }
        if stdout {
            match self.program.buffer.read(&self.program.process.stdout)? {
                Drained::Bytes(count) => self.total += count,
                Drained::Nothing => {}
                Drained::End => self.speaks = false,
            }
        }
        for (index, _) in ready.iter().enumerate().filter(|(_, ready)| **ready) {
            let connection = &mut self.connections[index];
            connection.write();
            if connection.is_listening() {
                self.total += connection.read(&mut self.chunk);
            }
            let number = connection.number;
            self.hear(number);
        }
        self.drop_finished();
        Ok(())
    }

    /// Closes the connections that serve no purpose any more, and of those whose client alone is
    /// waited for all but the newest.
    fn drop_finished(&mut self) {
        let stage = self.stage;
        let is_owed = |number| matches!(stage, Stage::Waiting(owed) if owed.connection == number);
        self.connections.retain(|one| !one.is_done() || is_owed(one.number));
        let lingering = self.connections.len() - self.in_use();
        let mut surplus = lingering.saturating_sub(MOST_CONNECTIONS);
        self.connections.retain(|connection| {
            let drops = surplus > 0 && connection.is_lingering();
            surplus -= usize::from(drops);
            !drops
        });
    }

    /// How many connections have not had their last answer.
    fn in_use(&self) -> usize {
        self.connections.iter().filter(|connection| !connection.is_lingering()).count()
    }

    /// Lets connections in.
    fn admit(&mut self) -> Result<(), Fault> {
        while self.in_use() <= MOST_CONNECTIONS {
            let Some(door) = &self.door else { break };
            match door.listener.accept() {
                Ok((stream, _)) => {
                    // One that is broken already is no use, and its client's affair.
                    self.connections.extend(Connection::new(self.visits, stream));
                    self.visits += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if is_the_machines(&error) => {
                    return Err(error).fault("cannot let a bot's connection in");
                }
                // It was closed before it was let in, or an error of its network waited for us.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Deals with the whole requests of a connection, up to one that has to wait.
    fn hear(&mut self, number: u64) {
        while !self.is_owed(number) {
            let Some(connection) = self.connection(number) else { return };
            if connection.is_writing() {
                return;
            }
            let request = match connection.take() {
                Ok(Some(request)) => request,
                Ok(None) => return,
                Err((status, words)) => {
                    // Where the next request would begin is not known.
                    return connection.answer(status, Format::Lines, &error(words), false);
                }
            };
            let format = Format::of(&request.body);
            let owed = Owed { connection: number, format, keeps_alive: request.keeps_alive };
            if let Err((status, words)) = self.judge(&request, owed)
                && let Some(connection) = self.connection(number)
            {
                connection.answer(status, format, &error(words), request.keeps_alive);
            }
        }
    }

    /// Takes a request for what it is: the beginning, or a move.
    fn judge(&mut self, request: &Request, owed: Owed) -> Result<(), Refused> {
        if request.path != PATH {
            return Err((404, "there is nothing here"));
        }
        if request.method != "POST" {
            return Err((405, "tricks is played with POST requests"));
        }
        let unread = (400, "the request cannot be read; send token=… and move=… as a form");
        let Wish { token, games: _, cards } = Wish::read(&request.body).map_err(|_| unread)?;
        if token.as_deref() != Some(TOKEN) {
            return Err((401, "this token is unknown; it is the second word of standard input"));
        }
        match (self.stage, cards) {
            (Stage::Waiting(_), _) => Err((409, "the request before is not answered yet")),
            (Stage::Strange, Some(_)) => Err((409, "no session has begun; send token alone")),
            (Stage::Told, None) => Err((409, "the match has begun; send move")),
            (Stage::Strange, None) => {
                self.stage = Stage::Waiting(owed);
                Ok(())
            }
            (Stage::Told, Some(cards)) => {
                self.stage = Stage::Waiting(owed);
                self.reply = Some(format!("move={cards}").into_bytes());
                Ok(())
            }
        }
    }

    /// Answers the request that waits; the connection it came by.
    fn respond(&mut self, text: &str, goes_on: bool) -> Option<u64> {
        let Stage::Waiting(Owed { connection: number, format, keeps_alive }) = self.stage else {
            return None;
        };
        self.stage = Stage::Told;
        // If it was closed meanwhile, the bot has to play without having heard.
        if let Some(connection) = self.connection(number) {
            connection.answer(200, format, text, keeps_alive && goes_on);
        }
        // What came behind the request was left until now.
        self.hear(number);
        // A client that will send nothing more waits for the end of the stream.
        self.drop_finished();
        Some(number)
    }

    fn connection(&mut self, number: u64) -> Option<&mut Connection> {
        self.connections.iter_mut().find(|connection| connection.number == number)
    }

    /// Whether it is this connection that waits for an answer.
    fn is_owed(&self, number: u64) -> bool {
        matches!(self.stage, Stage::Waiting(owed) if owed.connection == number)
    }

    /// Whether something is still to be written to this connection.
    fn is_writing(&self, number: u64) -> bool {
        self.connections.iter().any(|one| one.number == number && one.is_writing())
    }

    /// What of all that the bot does is too much, if anything.
    fn flood(&self) -> Option<String> {
        if self.in_use() > MOST_CONNECTIONS {
            return Some(format!("has more than {MOST_CONNECTIONS} connections at a time"));
        }
        let total = self.total;
        (total > MAX_OUTPUT_LEN)
            .then(|| format!("sent {total} bytes in one match; {MAX_OUTPUT_LEN} is the most"))
    }

    /// What there is of a request whose time is over.
    fn progress(&self) -> String {
        let unfinished: usize = self.connections.iter().map(Connection::unfinished).sum();
        if self.visits == 0 {
            "it never connected".to_owned()
        } else if unfinished > 0 {
            format!("{unfinished} bytes came, without the end of a request")
        } else if self.stage == Stage::Strange {
            "it never asked for the match to begin".to_owned()
        } else {
            String::new()
        }
    }
}

/// Whether an error at a connection's arrival is for want of something that bots do not use up.
fn is_the_machines(error: &io::Error) -> bool {
    let codes =
        [libc::EBADF, libc::EINVAL, libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_none_or(|code| codes.contains(&code))
}

/// The line of an answer that refuses.
fn error(words: &str) -> String {
    format!("error: {words}")
}

impl SeatDriver for HttpSeat {
    fn ask(&mut self, text: &str, limit: Micros) -> Result<TimedReply, Fault> {
        if let Some(failure) = self.program.stuck() {
            return Ok(failure.into());
        }
        self.program.wake()?;
        let (wall, heard) = self.converse(text, limit)?;
        self.answered = true;
        let reply = heard.map(|()| self.reply.take().unwrap_or_default());
        self.program.rest(wall, reply)
    }

    fn settle(&mut self) -> Result<(), Fault> {
        self.program.settle()
    }

    fn tell(&mut self, text: &str) {
        // The last word is not waited for.
        let _number = self.respond(text, false);
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
        // A last answer may not be read yet: see [`Connection`].
        self.connections.retain(Connection::is_lingering);
        self.door = None;
    }

    fn farewell(&mut self, deadline: Instant) -> Result<(), Fault> {
        self.program.farewell(deadline)
    }

    fn close(self: Box<Self>) -> Result<SeatUsage, Fault> {
        self.program.close(ProtocolWarnings::default())
    }
}
