//! Seat driver for a bot that is an HTTP client of tricks.
//!
//! # Theory of operation
//!
//! The bot reads an address and a token from one line on its standard input, which is then closed.
//! No other address exists in the bot's own network. The bot sends the requests that the house
//! server accepts. The first one contains the token and begins the match. Then the bot sends one
//! request per move. The referee's request is the response to the bot's last request, and the cards
//! of the bot's next request are its reply. So while other bots play, the bot waits for exactly one
//! response. While the referee waits for the bot, exactly one request of the bot is due.
//!
//! The game decides when the bot gets a response. Against a line bot, the client gets it when every
//! table that is not over waits for the client, as at the house server
//! ([`TurnPolicy::AllTables`](arbiter_games::TurnPolicy)). Against another client, the client gets
//! it when at least one table waits for it; the other tables show `_`. The reason: in a match every
//! deal is played twice, and the second time the other player attacks first. So at the start half
//! of the tables wait for each client. Under the rule for line bots, both clients would then wait
//! for each other forever. The driver depends neither on the rules nor on the opponent.
//!
//! An invalid request gets a response with a line `error: …` and costs only time. So does a request
//! on another connection while one is pending. The time of a reply starts when the last response
//! was written. It ends when the driver learns that the last byte of the request can be read. The
//! time of the first reply includes the start of the program.
//!
//! Some clients read to the end of the stream. So the stream ends after the last response of a
//! connection: when the client asks for that, when it has closed its side, and at the end of the
//! match.

mod connection;
mod request_parser;

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Instant;

use arbiter_games::{ClockKind, Forfeit, Micros};
use arbiter_proto::tricks_http::{Format, PATH, Request as TricksRequest};
use rustix::event::{PollFd, PollFlags};

use super::framing::MAX_OUTPUT_LEN;
use super::pipes::{self, ReadResult, StopSignal, since};
use super::program::Program;
use super::{ProtocolWarnings, SeatDriver, SeatFailure, SeatUsage, TimedReply};
use crate::fault::{Context as _, Fault};
use crate::sandbox::{Exit, Jail, LoopbackListener};
use connection::Connection;
use request_parser::{Refusal, Request};

/// The bot's token. It is not secret, because only the bot can reach the address.
const TOKEN: &str = "player";

/// Maximum number of connections of a bot at a time. Connections after their last response, which
/// wait for the bot to close them, have a separate limit of the same number.
const MAX_CONNECTIONS: usize = 16;

/// Size of a read from a connection, in bytes.
const CHUNK: usize = 16 * 1024;

/// The driver of one HTTP client.
#[derive(Debug)]
pub struct TricksHttpSeat {
    program: Program,
    /// The listener for connections, until the end of the match.
    listener: Option<LoopbackListener>,
    connections: Vec<Connection>,
    /// Number of all connections so far.
    accepted: u64,
    dialogue: Dialogue,
    /// The reply that `ask` has not returned yet.
    reply: Option<Vec<u8>>,
    has_replied: bool,
    /// Bytes received from connections and standard output.
    total: usize,
    /// Whether standard output is still open.
    stdout_open: bool,
    chunk: Vec<u8>,
}

/// State of the dialogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialogue {
    /// The bot has sent no request.
    NotStarted,
    /// The bot waits for a response.
    Waiting(PendingRequest),
    /// The bot got a response, and its next move is due.
    Responded,
}

/// A request that waits for a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PendingRequest {
    connection: u64,
    format: Format,
    keeps_alive: bool,
}

/// How long the driver waited, and success or the bot's failure.
type WaitResult = Result<(Micros, Result<(), SeatFailure>), Fault>;

/// The result of one poll.
#[derive(Clone, Copy, Debug)]
struct PollResult {
    waited: Micros,
    /// The program has exited, and no other event occurred.
    ended: bool,
}

impl TricksHttpSeat {
    /// Starts `argv` in `jail` and sends it the address. A program that cannot be started forfeits
    /// at its first request.
    pub fn start(
        jail: Jail,
        listener: LoopbackListener,
        argv: &[String],
        clock: ClockKind,
        stop: Arc<StopSignal>,
    ) -> Result<Box<dyn SeatDriver>, Fault> {
        let mut program = match Program::start(jail, argv, clock, stop)? {
            Ok(program) => program,
            Err(absent) => return Ok(absent),
        };
        if let Some(mut stdin) = program.process.stdin.take() {
            // A pipe has room for one line. A bot that does not read it never connects.
            drop(writeln!(stdin, "http://{}{PATH} {TOKEN}", listener.address));
        }
        Ok(Box::new(Self {
            program,
            listener: Some(listener),
            connections: Vec::new(),
            accepted: 0,
            dialogue: Dialogue::NotStarted,
            reply: None,
            has_replied: false,
            total: 0,
            stdout_open: true,
            chunk: vec![0; CHUNK],
        }))
    }

    /// Responds to the pending request, and waits for the next one.
    fn exchange(&mut self, text: &str, limit: Micros) -> WaitResult {
        let start_time = Instant::now();
        let (wall, result) =
            self.poll_until(start_time, limit, |seat| seat.dialogue != Dialogue::NotStarted)?;
        if result.is_err() {
            return Ok((wall, result));
        }
        // Wait only until this response is written. Writing other data counts as the bot's time.
        let number = self.respond(text, true);
        let is_writing = |seat: &Self| number.is_some_and(|number| seat.is_writing(number));
        let (wall, result) = self.poll_until(start_time, limit, |seat| !is_writing(seat))?;
        if result.is_err() {
            return Ok((wall, result));
        }
        let start = if self.has_replied { Instant::now() } else { start_time };
        self.poll_until(start, limit, |seat| seat.reply.is_some())
    }

    /// Polls until `is_met`, at most until `limit` after `start`.
    fn poll_until(
        &mut self,
        start: Instant,
        limit: Micros,
        is_met: impl Fn(&Self) -> bool,
    ) -> WaitResult {
        let mut waited = since(start);
        while !is_met(self) {
            let poll = self.poll_once(start, limit)?;
            waited = poll.waited;
            if is_met(self) {
                break;
            }
            if let Some(detail) = self.flood() {
                return Ok((waited, Err(SeatFailure { forfeit: Forfeit::Flood, detail })));
            }
            if poll.ended {
                return Ok((waited, Err(self.program.exit_failure("ended")?)));
            }
            if waited > limit {
                let failure = SeatFailure { forfeit: Forfeit::Clock, detail: self.progress() };
                return Ok((waited, Err(failure)));
            }
        }
        Ok((waited, Ok(())))
    }

    /// Polls once and handles the events.
    fn poll_once(&mut self, start: Instant, limit: Micros) -> Result<PollResult, Fault> {
        let unused = || PollFd::new(&self.program.stop.0, PollFlags::empty());
        let process = &self.program.process;
        let stderr = process.stderr.as_ref();
        let listener = self.listener.as_ref().map(|loopback| &loopback.listener);
        let mut fds = vec![
            PollFd::new(&self.program.stop.0, PollFlags::IN),
            PollFd::from_borrowed_fd(process.exit_fd(), PollFlags::IN),
            stderr.map_or_else(unused, |pipe| PollFd::new(pipe, PollFlags::IN)),
            if self.stdout_open { PollFd::new(&process.stdout, PollFlags::IN) } else { unused() },
            listener.map_or_else(unused, |socket| PollFd::new(socket, PollFlags::IN)),
        ];
        for connection in &self.connections {
            // Data after a pending request is read only after its response.
            let reads = connection.is_listening() && !self.is_owed(connection.number);
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, reads);
            flags.set(PollFlags::OUT, connection.is_writing());
            fds.push(if flags.is_empty() {
                unused()
            } else {
                PollFd::new(&connection.stream, flags)
            });
        }
        let Some(waited) = pipes::poll(&mut fds, start, limit)? else {
            return Ok(PollResult { waited: since(start), ended: false });
        };
        let mut ready = fds.into_iter().map(|fd| !fd.revents().is_empty());
        let mut next = || ready.next() == Some(true);
        let [is_stopped, ended, stderr, stdout, listener] = std::array::from_fn(|_| next());
        let connections: Vec<_> = ready.collect();
        if is_stopped {
            return Err(Fault::Abandoned);
        }
        self.handle_ready(stderr, stdout, &connections)?;
        if listener {
            self.accept_connections()?;
        }
        let has_other_events = stdout || listener || connections.contains(&true);
        Ok(PollResult { waited, ended: ended && !has_other_events })
    }

    /// Reads and writes the ready pipes and connections.
    fn handle_ready(&mut self, stderr: bool, stdout: bool, ready: &[bool]) -> Result<(), Fault> {
        if stderr {
            self.program.drain_stderr()?;
        }
        if stdout {
            match self.program.buffer.read(&self.program.process.stdout)? {
                ReadResult::Bytes(count) => self.total += count,
                ReadResult::Nothing => {}
                ReadResult::End => self.stdout_open = false,
            }
        }
        for (index, _) in ready.iter().enumerate().filter(|(_, ready)| **ready) {
            let connection = &mut self.connections[index];
            connection.write();
            if connection.is_listening() {
                self.total += connection.read(&mut self.chunk);
            }
            let number = connection.number;
            self.handle_requests(number);
        }
        self.drop_finished();
        Ok(())
    }

    /// Closes finished connections. Of the connections that wait for the client to close, it keeps
    /// only the newest.
    fn drop_finished(&mut self) {
        let dialogue = self.dialogue;
        let is_owed =
            |number| matches!(dialogue, Dialogue::Waiting(pending) if pending.connection == number);
        self.connections.retain(|connection| !connection.is_done() || is_owed(connection.number));
        let lingering = self.connections.len() - self.in_use();
        let mut surplus = lingering.saturating_sub(MAX_CONNECTIONS);
        self.connections.retain(|connection| {
            let drops = surplus > 0 && connection.is_lingering();
            surplus -= usize::from(drops);
            !drops
        });
    }

    /// Number of connections whose last response is not fully written.
    fn in_use(&self) -> usize {
        self.connections.iter().filter(|connection| !connection.is_lingering()).count()
    }

    /// Accepts connections.
    fn accept_connections(&mut self) -> Result<(), Fault> {
        while self.in_use() <= MAX_CONNECTIONS {
            let Some(loopback) = &self.listener else { break };
            match loopback.listener.accept() {
                Ok((stream, _)) => {
                    // Ignore a connection that is already broken.
                    self.connections.extend(Connection::new(self.accepted, stream));
                    self.accepted += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if is_system_error(&error) => {
                    return Err(error).fault("cannot accept a bot's connection");
                }
                // The client closed it before it was accepted, or its network had an error.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Handles the complete requests of a connection, until one must wait for a response.
    fn handle_requests(&mut self, number: u64) {
        while !self.is_owed(number) {
            let Some(connection) = self.connection(number) else { return };
            if connection.is_writing() {
                return;
            }
            let request = match connection.take() {
                Ok(Some(request)) => request,
                Ok(None) => return,
                Err((status, message)) => {
                    // The start of the next request is unknown.
                    return connection.respond(status, Format::Lines, &error_body(message), false);
                }
            };
            let format = Format::of(&request.body);
            let pending =
                PendingRequest { connection: number, format, keeps_alive: request.keeps_alive };
            if let Err((status, message)) = self.handle_request(&request, pending)
                && let Some(connection) = self.connection(number)
            {
                connection.respond(status, format, &error_body(message), request.keeps_alive);
            }
        }
    }

    /// Validates a request and handles it as the beginning or as a move.
    fn handle_request(
        &mut self,
        request: &Request,
        pending: PendingRequest,
    ) -> Result<(), Refusal> {
        if request.path != PATH {
            return Err((404, "nothing at this path"));
        }
        if request.method != "POST" {
            return Err((405, "tricks is played with POST requests"));
        }
        let invalid = (400, "invalid request; send token=… and move=… as a form");
        let TricksRequest { token, games: _, cards } =
            TricksRequest::read(&request.body).map_err(|_| invalid)?;
        if token.as_deref() != Some(TOKEN) {
            return Err((401, "unknown token; it is the second word of standard input"));
        }
        match (self.dialogue, cards) {
            (Dialogue::Waiting(_), _) => Err((409, "the previous request has no response yet")),
            (Dialogue::NotStarted, Some(_)) => Err((409, "no session has begun; send token alone")),
            (Dialogue::Responded, None) => Err((409, "the match has begun; send move")),
            (Dialogue::NotStarted, None) => {
                self.dialogue = Dialogue::Waiting(pending);
                Ok(())
            }
            (Dialogue::Responded, Some(cards)) => {
                self.dialogue = Dialogue::Waiting(pending);
                self.reply = Some(format!("move={cards}").into_bytes());
                Ok(())
            }
        }
    }

    /// Responds to the pending request. Returns the number of its connection.
    fn respond(&mut self, text: &str, continues: bool) -> Option<u64> {
        let Dialogue::Waiting(PendingRequest { connection: number, format, keeps_alive }) =
            self.dialogue
        else {
            return None;
        };
        self.dialogue = Dialogue::Responded;
        // If the connection was closed meanwhile, the bot misses the response.
        if let Some(connection) = self.connection(number) {
            connection.respond(200, format, text, keeps_alive && continues);
        }
        // Data after the request was not handled until now.
        self.handle_requests(number);
        // A client that has closed its side waits for the end of the stream.
        self.drop_finished();
        Some(number)
    }

    fn connection(&mut self, number: u64) -> Option<&mut Connection> {
        self.connections.iter_mut().find(|connection| connection.number == number)
    }

    /// Whether this connection waits for a response.
    fn is_owed(&self, number: u64) -> bool {
        matches!(self.dialogue, Dialogue::Waiting(pending) if pending.connection == number)
    }

    /// Whether this connection has unwritten data.
    fn is_writing(&self, number: u64) -> bool {
        self.connections
            .iter()
            .any(|connection| connection.number == number && connection.is_writing())
    }

    /// Why the bot exceeds a limit of its traffic, if it does.
    fn flood(&self) -> Option<String> {
        if self.in_use() > MAX_CONNECTIONS {
            return Some(format!("has more than {MAX_CONNECTIONS} connections at a time"));
        }
        let total = self.total;
        (total > MAX_OUTPUT_LEN)
            .then(|| format!("sent {total} bytes in one match; the maximum is {MAX_OUTPUT_LEN}"))
    }

    /// The evidence for a late request: which part of it has arrived.
    fn progress(&self) -> String {
        let unfinished: usize = self.connections.iter().map(Connection::unfinished).sum();
        if self.accepted == 0 {
            "it never connected".to_owned()
        } else if unfinished > 0 {
            format!("{unfinished} bytes received, without the end of a request")
        } else if self.dialogue == Dialogue::NotStarted {
            "it never sent the request that begins the match".to_owned()
        } else {
            String::new()
        }
    }
}

/// Whether an error of `accept` is the machine's fault and not the bot's.
fn is_system_error(error: &io::Error) -> bool {
    let codes =
        [libc::EBADF, libc::EINVAL, libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_none_or(|code| codes.contains(&code))
}

/// The body of an error response.
fn error_body(message: &str) -> String {
    format!("error: {message}")
}

impl SeatDriver for TricksHttpSeat {
    fn ask(&mut self, text: &str, limit: Micros) -> Result<TimedReply, Fault> {
        if let Some(failure) = self.program.stop_failure() {
            return Ok(failure.into());
        }
        self.program.resume()?;
        let (wall, result) = self.exchange(text, limit)?;
        self.has_replied = true;
        let reply = result.map(|()| self.reply.take().unwrap_or_default());
        self.program.finish_reply(wall, reply)
    }

    fn wait_until_stopped(&mut self) -> Result<(), Fault> {
        self.program.wait_until_stopped()
    }

    fn notify(&mut self, text: &str) {
        // The final message needs no wait.
        let _number = self.respond(text, false);
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
        // The client has perhaps not read its last response yet: see [`Connection`].
        self.connections.retain(Connection::is_lingering);
        self.listener = None;
    }

    fn wait_for_exit(&mut self, deadline: Instant) -> Result<(), Fault> {
        self.program.wait_for_exit(deadline)
    }

    fn close(self: Box<Self>) -> Result<SeatUsage, Fault> {
        self.program.close(ProtocolWarnings::default())
    }
}
