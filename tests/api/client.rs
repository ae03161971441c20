//! A program that asks over HTTP, with whatever headers it likes, and one that sends whatever bytes
//! it likes.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use crate::support::service::SOON;

/// An answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// 0 if the server hung up without a word.
    pub(crate) status: u16,
    /// By names in small letters.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// Sends these bytes, and gives what comes back until the server hangs up.
pub(crate) fn send(address: SocketAddr, bytes: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    // A server that has read enough may have hung up by now, and has said why.
    drop(stream.write_all(bytes));
    read(&mut BufReader::new(stream))
}

/// Sends a request with these headers, each a line.
pub(crate) fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &[u8],
) -> Answer {
    let length = format!("Content-Length: {}", body.len());
    let length = if body.is_empty() { &[][..] } else { &[&length[..]] };
    let first = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close");
    let lines = [&[&first[..]], headers, length].concat();
    let head = format!("{}\r\n\r\n", lines.join("\r\n"));
    send(address, &[head.as_bytes(), body].concat())
}

fn read(stream: &mut BufReader<TcpStream>) -> Answer {
    let mut answer = Answer::default();
    let mut line = String::new();
    if stream.read_line(&mut line).is_err() || line.is_empty() {
        return answer;
    }
    answer.status = line.split(' ').nth(1).unwrap_or_else(|| panic!("{line:?}")).parse().unwrap();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        let Some((name, value)) = line.split_once(':') else { break };
        answer.headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    if answer.header("transfer-encoding") == "chunked" {
        answer.body = chunks(stream);
    } else {
        drop(stream.read_to_end(&mut answer.body));
    }
    answer
}

/// A body in chunks, which has to come to its end.
fn chunks(stream: &mut BufReader<TcpStream>) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        let length = usize::from_str_radix(line.trim(), 16).unwrap();
        let mut chunk = vec![0; length + 2];
        stream.read_exact(&mut chunk).unwrap();
        if length == 0 {
            return body;
        }
        body.extend(&chunk[..length]);
    }
}
