//! A connection of a bot: received bytes of an incomplete request, and unsent bytes.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use arbiter_proto::tricks_http::Format;

use super::request_parser::{self, Parsed, Refusal, Request};

/// The interim response for a client that waits before it sends a body.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A non-blocking connection.
///
/// After the last response the driver shuts down the stream for writing and drops further data. The
/// socket stays open until the client closes it. If the driver closed the socket with unread bytes,
/// the kernel would reset the connection and the client could lose the response.
#[derive(Debug)]
pub(super) struct Connection {
    /// Unique number.
    pub(super) number: u64,
    pub(super) stream: TcpStream,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    /// Whether `100 Continue` was sent for this request.
    sent_continue: bool,
    /// The last response was queued. Further data is dropped, and the stream ends when all
    /// responses are written.
    closing: bool,
    /// The client has closed its side, or the connection is broken.
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
            sent_continue: false,
            closing: false,
            ended: false,
        })
    }

    /// Whether data waits to be written.
    pub(super) fn is_writing(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Whether to read from the connection. While a response is unwritten, more requests would need
    /// an unlimited number of stored responses.
    pub(super) fn is_listening(&self) -> bool {
        !self.ended && !self.is_writing()
    }

    /// Whether the last response was written and the client has not closed the connection yet.
    pub(super) fn is_lingering(&self) -> bool {
        self.closing && !self.is_writing()
    }

    /// Whether the connection can be closed, if no response is pending.
    pub(super) fn is_done(&self) -> bool {
        self.ended && !self.is_writing()
    }

    /// Number of received bytes of an incomplete request.
    pub(super) fn unfinished(&self) -> usize {
        self.inbox.len()
    }

    /// Reads available data through `buffer`. Returns the number of bytes. After the last response
    /// it drops the data.
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
                Err(_) => self.mark_broken(),
            }
            return 0;
        }
    }

    /// Takes the next complete request.
    pub(super) fn take(&mut self) -> Result<Option<Request>, Refusal> {
        if self.closing || self.inbox.is_empty() {
            return Ok(None);
        }
        match request_parser::parse(&self.inbox)? {
            Parsed::Complete(request, length) => {
                self.inbox.drain(..length);
                self.sent_continue = false;
                Ok(Some(request))
            }
            Parsed::Incomplete { waits } => {
                if waits && !std::mem::replace(&mut self.sent_continue, true) {
                    self.outbox.extend_from_slice(CONTINUE);
                    self.write();
                }
                Ok(None)
            }
        }
    }

    /// Responds to a request.
    pub(super) fn respond(&mut self, status: u16, format: Format, lines: &str, keeps_alive: bool) {
        let body = format.response(lines);
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

    /// Writes as much as possible, and ends the stream after the last response.
    pub(super) fn write(&mut self) {
        if self.outbox.is_empty() {
            return;
        }
        while !self.outbox.is_empty() {
            match self.stream.write(&self.outbox) {
                Ok(count) => drop(self.outbox.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.mark_broken(),
            }
        }
        if self.closing && self.stream.shutdown(Shutdown::Write).is_err() {
            self.mark_broken();
        }
    }

    /// Marks a broken connection as ended.
    fn mark_broken(&mut self) {
        self.ended = true;
        self.outbox.clear();
    }
}

/// The reason phrase of a status.
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
