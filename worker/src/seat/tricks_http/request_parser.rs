//! Parses HTTP/1.x requests. No I/O.

use arbiter_proto::tricks_http::MAX_BODY;
use httparse::Status;

/// Maximum size of a request's head, in bytes.
const MAX_HEAD_LEN: usize = 16 * 1024;
/// Maximum size of a chunked body with its chunk headers, in bytes.
const MAX_CHUNKED_LEN: usize = 2 * MAX_BODY;
/// Maximum number of headers.
const MAX_HEADERS: usize = 64;

/// A complete request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// The path without host and query.
    pub(super) path: String,
    pub(super) body: Vec<u8>,
    /// Whether the connection stays open for another request.
    pub(super) keeps_alive: bool,
}

/// The result of parsing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// The request is incomplete. `waits`: the client waits for `100 Continue` before the body.
    Incomplete { waits: bool },
    /// A request, and its size in bytes.
    Complete(Request, usize),
}

/// The response to an invalid request: status and message.
pub(super) type Refusal = (u16, &'static str);

const MALFORMED: Refusal = (400, "not an HTTP request");
const TOO_LONG: Refusal = (413, "the request is too long");

/// Parses the first request in `bytes`. Refuses bytes that cannot be the start of a valid request.
pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(Status::Complete(length)) if length <= MAX_HEAD_LEN => length,
        Ok(Status::Partial) if bytes.len() <= MAX_HEAD_LEN => {
            return Ok(Parsed::Incomplete { waits: false });
        }
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(TOO_LONG),
        Err(_) => return Err(MALFORMED),
    };
    let body_length = BodyLength::of(head.headers)?;
    let Some((body, body_len)) = body_length.body(&bytes[length..])? else {
        let waits = has(head.headers, "expect", "100-continue");
        return Ok(Parsed::Incomplete { waits });
    };
    let keeps_alive = if head.version == Some(0) {
        has(head.headers, "connection", "keep-alive")
    } else {
        !has(head.headers, "connection", "close")
    };
    let method = head.method.unwrap_or_default().to_owned();
    let path = path(head.path.unwrap_or_default()).to_owned();
    Ok(Parsed::Complete(Request { method, path, body, keeps_alive }, length + body_len))
}

/// The path of a request target.
fn path(target: &str) -> &str {
    let after_host =
        target.strip_prefix("http://").map(|rest| rest.find('/').map(|slash| &rest[slash..]));
    let path = after_host.unwrap_or(Some(target)).unwrap_or("/");
    path.split(['?', '#']).next().unwrap_or_default()
}

/// The values of a header.
fn values<'a>(headers: &'a [httparse::Header<'a>], name: &'a str) -> impl Iterator<Item = &'a str> {
    let named = headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
    named.map(|header| str::from_utf8(header.value).unwrap_or_default().trim_ascii())
}

/// Whether a header has this value in its list.
fn has(headers: &[httparse::Header<'_>], name: &str, expected: &str) -> bool {
    let items = values(headers, name).flat_map(|value| value.split(','));
    items.into_iter().any(|item| item.trim_ascii().eq_ignore_ascii_case(expected))
}

/// How the end of a body is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyLength {
    Fixed(usize),
    Chunked,
}

impl BodyLength {
    fn of(headers: &[httparse::Header<'_>]) -> Result<Self, Refusal> {
        let mut codings = values(headers, "transfer-encoding");
        if let Some(coding) = codings.next() {
            let is_chunked = coding.eq_ignore_ascii_case("chunked") && codings.next().is_none();
            return if is_chunked { Ok(Self::Chunked) } else { Err(MALFORMED) };
        }
        let mut lengths = values(headers, "content-length");
        let Some(length) = lengths.next() else { return Ok(Self::Fixed(0)) };
        let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || lengths.any(|other| other != length) {
            return Err(MALFORMED);
        }
        let length = length.parse().ok().filter(|length| *length <= MAX_BODY);
        length.map(Self::Fixed).ok_or(TOO_LONG)
    }

    /// The body at the front of `bytes` and its size, once it is complete.
    fn body(self, bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, Refusal> {
        match self {
            Self::Fixed(length) => Ok(bytes.get(..length).map(|body| (body.to_vec(), length))),
            Self::Chunked => chunks(bytes),
        }
    }
}

/// A chunked body. Trailers are not supported: no client sends them.
fn chunks(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, Refusal> {
    let mut body = Vec::new();
    let mut offset = 0;
    loop {
        let size = httparse::parse_chunk_size(&bytes[offset..]).map_err(|_| MALFORMED)?;
        let Status::Complete((header_len, size)) = size else {
            return if bytes.len() > MAX_CHUNKED_LEN { Err(TOO_LONG) } else { Ok(None) };
        };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > MAX_BODY - body.len() || offset > MAX_CHUNKED_LEN {
            return Err(TOO_LONG);
        }
        let chunk = offset + header_len;
        let Some(end) = bytes.get(chunk + size..chunk + size + 2) else { return Ok(None) };
        if end != b"\r\n" {
            return Err(MALFORMED);
        }
        body.extend_from_slice(&bytes[chunk..chunk + size]);
        offset = chunk + size + 2;
        if size == 0 {
            return Ok(Some((body, offset)));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn complete(bytes: &[u8]) -> (Request, usize) {
        match parse(bytes) {
            Ok(Parsed::Complete(request, length)) => (request, length),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn complete_requests_are_parsed() {
        for (bytes, body, keeps_alive) in [
            (&b"POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nx=1"[..], &b"x=1"[..], true),
            (b"POST http://h:1/a?b HTTP/1.1\r\nconnection: Close\r\n\r\n", b"", false),
            (b"POST /a#c HTTP/1.0\r\n\r\n", b"", false),
            (b"POST /a HTTP/1.0\r\nConnection: x, Keep-Alive\r\n\r\n", b"", true),
            (
                b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nx=\r\n1;e\r\n1\r\n\
                  0\r\n\r\n",
                b"x=1",
                true,
            ),
        ] {
            let (request, length) = complete(bytes);
            assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/a"));
            assert_eq!((&request.body[..], request.keeps_alive), (body, keeps_alive));
            assert_eq!(length, bytes.len());
            for end in 0..bytes.len() {
                let parsed = parse(&bytes[..end]);
                assert_eq!(parsed, Ok(Parsed::Incomplete { waits: false }), "{end}");
            }
            let twice = [bytes, bytes].concat();
            assert_eq!(complete(&twice), (request, length));
        }
        let waiting = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n";
        assert_eq!(parse(waiting), Ok(Parsed::Incomplete { waits: true }));
    }

    #[test]
    fn invalid_requests_are_refused() {
        let head = |headers: &str| format!("POST / HTTP/1.1\r\n{headers}\r\n\r\n").into_bytes();
        for (bytes, refusal) in [
            (b"garbage\r\n\r\n".to_vec(), MALFORMED),
            (head("Content-Length: -1"), MALFORMED),
            (head("Content-Length: +1"), MALFORMED),
            (head("Content-Length: 1\r\nContent-Length: 2"), MALFORMED),
            (head("Content-Length: 99999999999999999999999"), TOO_LONG),
            (head("Content-Length: 65537"), TOO_LONG),
            (head("Transfer-Encoding: gzip, chunked"), MALFORMED),
            ([head("Transfer-Encoding: chunked"), b"zz\r\n".to_vec()].concat(), MALFORMED),
            ([head("Transfer-Encoding: chunked"), b"1\r\nxy\r\n".to_vec()].concat(), MALFORMED),
            ([head("Transfer-Encoding: chunked"), b"FFFFFF\r\n".to_vec()].concat(), TOO_LONG),
            (head(&"X: y\r\n".repeat(100)), TOO_LONG),
            (vec![b'A'; MAX_HEAD_LEN + 1], TOO_LONG),
        ] {
            assert_eq!(parse(&bytes), Err(refusal), "{}", String::from_utf8_lossy(&bytes));
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_cause_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            drop(parse(&bytes));
            drop(parse(&[b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", &bytes[..]].concat()));
        }
    }
}
