//! One connection of a bot: bytes that came and are no request yet, and bytes that are still to go.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use arbiter_proto::tricks_http::Format;

use super::request::{self, Parsed, Refused, Request};

/// What a client that waits for it is told before it sends a body.
const GO_ON: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A connection. It never blocks.
///
/// After its last answer the client reads the end of the stream at once, but the socket stays until
/// the client closes it too, and what still comes is thrown away. If it were closed with bytes
/// unread the kernel would reset the connection, and the client could lose the answer.
#[derive(Debug)]
pub(super) struct Connection {
    /// What it is told apart by, never used again.
    pub(super) number: u64,
    pub(super) stream: TcpStream,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    /// Whether the client was told to go on with the body of this request.
    told_to_go_on: bool,
    /// The last answer was given: what comes is no request any more, and the client reads the end
    /// of the stream as soon as everything was written.
    closing: bool,
    /// The other side will send nothing more, or is gone.
    ended: bool,
}

impl Connection {
    pub(super) fn new(number: u64, stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true))?;
        Ok(Self {
            number,
            stream,
            inbox: Vec::new(),
            outbox: Vec::new(),
            told_to_go_on: false,
            closing: false,
            ended: false,
        })
    }

    /// Whether something is still to be written.
    pub(super) fn is_writing(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Whether it is read from: not while its client leaves answers unread, or they would pile up.
    pub(super) fn is_listening(&self) -> bool {
        !self.ended && !self.is_writing()
    }

    /// Whether the last answer was written, and only the client's end is waited for.
    pub(super) fn is_lingering(&self) -> bool {
        self.closing && !self.is_writing()
    }

    /// Whether it serves no purpose any more, unless an answer is owed to it.
    pub(super) fn is_done(&self) -> bool {
        self.ended && !self.is_writing()
    }

    /// How many bytes came that are no request yet.
    pub(super) fn unfinished(&self) -> usize {
        self.inbox.len()
    }

    /// Reads what is there now, into `buffer` first: how many bytes came. After the last answer
    /// they are thrown away.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> usize {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    if !self.closing {
                        self.inbox.extend_from_slice(&buffer[..count]);
                    }
                    return count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => self.break_off(),
            }
            return 0;
        }
    }

    /// The next whole request, if there is one.
    pub(super) fn take(&mut self) -> Result<Option<Request>, Refused> {
        if self.closing || self.inbox.is_empty() {
            return Ok(None);
        }
        match request::parse(&self.inbox)? {
            Parsed::Whole(request, length) => {
                self.inbox.drain(..length);
                self.told_to_go_on = false;
                Ok(Some(request))
            }
            Parsed::Unfinished { waits } => {
                if waits && !std::mem::replace(&mut self.told_to_go_on, true) {
                    self.outbox.extend_from_slice(GO_ON);
                    self.write();
                }
                Ok(None)
            }
        }
    }

    /// Answers a request with lines.
    pub(super) fn answer(&mut self, status: u16, format: Format, lines: &str, keeps_alive: bool) {
        let body = format.answer(lines);
        let connection = if keeps_alive { "keep-alive" } else { "close" };
        let allow = if status == 405 { "Allow: POST\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 {status} {}\r\n{allow}Content-Type: {}\r\nContent-Length: {}\r\n\
             Connection: {connection}\r\n\r\n",
            reason(status),
            format.media_type(),
            body.len()
        );
        self.outbox.extend_from_slice(head.as_bytes());
        self.outbox.extend_from_slice(body.as_bytes());
        if !keeps_alive {
            self.closing = true;
            self.inbox.clear();
        }
        self.write();
    }

    /// Writes what there is room for, and ends the stream behind the last answer.
    pub(super) fn write(&mut self) {
        if self.outbox.is_empty() {
            return;
        }
        while !self.outbox.is_empty() {
            match self.stream.write(&self.outbox) {
                Ok(count) => drop(self.outbox.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.break_off(),
            }
        }
        if self.closing && self.stream.shutdown(Shutdown::Write).is_err() {
            self.break_off();
        }
    }

    /// The other side is gone: nothing can be read or written.
    fn break_off(&mut self) {
        self.ended = true;
        self.outbox.clear();
    }
}

/// The words for a status.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        413 => "Content Too Large",
        _ => "Bad Request",
    }
}
