//! Requests of HTTP/1.x as they come in: bytes in, requests out, no I/O.

use arbiter_proto::tricks_http::LONGEST_BODY;
use httparse::Status;

/// How long the head of a request may be, in bytes.
const LONGEST_HEAD: usize = 16 * 1024;
/// So much may a body in chunks take with what stands between them, in bytes.
const MOST_CHUNKS: usize = 2 * LONGEST_BODY;
/// How many headers it may have.
const MOST_HEADERS: usize = 64;

/// A whole request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// The path alone: without a host, and without a question behind it.
    pub(super) path: String,
    pub(super) body: Vec<u8>,
    /// Whether another may come over the same connection.
    pub(super) keeps_alive: bool,
}

/// What was made of the bytes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// There is more to come. Whether the client waits to be told so before it sends the body.
    Unfinished { waits: bool },
    /// A request, and how many bytes it took.
    Whole(Request, usize),
}

/// What a request that cannot be understood is answered: a status and words.
pub(super) type Refused = (u16, &'static str);

const MALFORMED: Refused = (400, "this is no HTTP request");
const TOO_LONG: Refused = (413, "the request is too long");

/// Reads the first request in `bytes`.
/// It is refused if there will never be one, whatever follows.
pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, Refused> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(Status::Complete(length)) if length <= LONGEST_HEAD => length,
        Ok(Status::Partial) if bytes.len() <= LONGEST_HEAD => {
            return Ok(Parsed::Unfinished { waits: false });
        }
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(TOO_LONG),
        Err(_) => return Err(MALFORMED),
    };
    let extent = Extent::of(head.headers)?;
    let Some((body, used)) = extent.body(&bytes[length..])? else {
        let waits = has(head.headers, "expect", "100-continue");
        return Ok(Parsed::Unfinished { waits });
    };
    let keeps_alive = if head.version == Some(0) {
        has(head.headers, "connection", "keep-alive")
    } else {
        !has(head.headers, "connection", "close")
    };
    let method = head.method.unwrap_or_default().to_owned();
    let path = path(head.path.unwrap_or_default()).to_owned();
    Ok(Parsed::Whole(Request { method, path, body, keeps_alive }, length + used))
}

/// The path of what a request asks for.
fn path(target: &str) -> &str {
    let behind_host =
        target.strip_prefix("http://").map(|rest| rest.find('/').map(|at| &rest[at..]));
    let path = behind_host.unwrap_or(Some(target)).unwrap_or("/");
    path.split(['?', '#']).next().unwrap_or_default()
}

/// The values of a header.
fn values<'a>(headers: &'a [httparse::Header<'a>], name: &'a str) -> impl Iterator<Item = &'a str> {
    let named = headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
    named.map(|header| str::from_utf8(header.value).unwrap_or_default().trim_ascii())
}

/// Whether a word is among the values of a header.
fn has(headers: &[httparse::Header<'_>], name: &str, word: &str) -> bool {
    let words = values(headers, name).flat_map(|value| value.split(','));
    words.into_iter().any(|other| other.trim_ascii().eq_ignore_ascii_case(word))
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Length(usize),
    Chunks,
}

impl Extent {
    fn of(headers: &[httparse::Header<'_>]) -> Result<Self, Refused> {
        let mut codings = values(headers, "transfer-encoding");
        if let Some(coding) = codings.next() {
            let is_chunked = coding.eq_ignore_ascii_case("chunked") && codings.next().is_none();
            return if is_chunked { Ok(Self::Chunks) } else { Err(MALFORMED) };
        }
        let mut lengths = values(headers, "content-length");
        let Some(length) = lengths.next() else { return Ok(Self::Length(0)) };
        let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        if !digits || lengths.any(|other| other != length) {
            return Err(MALFORMED);
        }
        let length = length.parse().ok().filter(|length| *length <= LONGEST_BODY);
        length.map(Self::Length).ok_or(TOO_LONG)
    }

    /// The body at the front of `bytes` and how many of them it took, once it is there.
    fn body(self, bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, Refused> {
        match self {
            Self::Length(length) => Ok(bytes.get(..length).map(|body| (body.to_vec(), length))),
            Self::Chunks => chunks(bytes),
        }
    }
}

/// A body in chunks. What may stand behind the last one is not taken: nobody sends it.
fn chunks(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, Refused> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let size = httparse::parse_chunk_size(&bytes[at..]).map_err(|_| MALFORMED)?;
        let Status::Complete((skipped, size)) = size else {
            return if bytes.len() > MOST_CHUNKS { Err(TOO_LONG) } else { Ok(None) };
        };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > LONGEST_BODY - body.len() || at > MOST_CHUNKS {
            return Err(TOO_LONG);
        }
        let chunk = at + skipped;
        let Some(end) = bytes.get(chunk + size..chunk + size + 2) else { return Ok(None) };
        if end != b"\r\n" {
            return Err(MALFORMED);
        }
        body.extend_from_slice(&bytes[chunk..chunk + size]);
        at = chunk + size + 2;
        if size == 0 {
            return Ok(Some((body, at)));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(bytes: &[u8]) -> (Request, usize) {
        match parse(bytes) {
            Ok(Parsed::Whole(request, length)) => (request, length),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn requests_are_found_when_they_are_whole() {
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
            let (request, length) = whole(bytes);
            assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/a"));
            assert_eq!((&request.body[..], request.keeps_alive), (body, keeps_alive));
            assert_eq!(length, bytes.len());
            for end in 0..bytes.len() {
                let parsed = parse(&bytes[..end]);
                assert_eq!(parsed, Ok(Parsed::Unfinished { waits: false }), "{end}");
            }
            let twice = [bytes, bytes].concat();
            assert_eq!(whole(&twice), (request, length));
        }
        let waiting = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n";
        assert_eq!(parse(waiting), Ok(Parsed::Unfinished { waits: true }));
    }

    #[test]
    fn what_will_never_be_one_is_refused() {
        let head = |headers: &str| format!("POST / HTTP/1.1\r\n{headers}\r\n\r\n").into_bytes();
        for (bytes, refused) in [
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
            (vec![b'A'; LONGEST_HEAD + 1], TOO_LONG),
        ] {
            assert_eq!(parse(&bytes), Err(refused), "{}", String::from_utf8_lossy(&bytes));
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            drop(parse(&bytes));
            drop(parse(&[b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", &bytes[..]].concat()));
        }
    }
}
