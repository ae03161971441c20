//! An HTTP client that sends arbitrary headers and arbitrary bytes.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use crate::support::service::TIMEOUT;

/// An HTTP response.
#[derive(Clone, Debug, Default)]
pub(crate) struct Response {
    /// 0 if the server closed the connection without a response.
    pub(crate) status: u16,
    /// Header values by lower-case name.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Response {
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

/// Sends bytes and reads the response until the server closes the connection.
pub(crate) fn send(address: SocketAddr, bytes: &[u8]) -> Response {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    // The server may already have responded and closed the connection.
    drop(stream.write_all(bytes));
    read(&mut BufReader::new(stream))
}

/// Sends a request with these header lines.
pub(crate) fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &[u8],
) -> Response {
    let length = format!("Content-Length: {}", body.len());
    let length = if body.is_empty() { &[][..] } else { &[&length[..]] };
    let first = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close");
    let lines = [&[&first[..]], headers, length].concat();
    let head = format!("{}\r\n\r\n", lines.join("\r\n"));
    send(address, &[head.as_bytes(), body].concat())
}

fn read(stream: &mut BufReader<TcpStream>) -> Response {
    let mut response = Response::default();
    let mut line = String::new();
    if stream.read_line(&mut line).is_err() || line.is_empty() {
        return response;
    }
    response.status = line.split(' ').nth(1).unwrap_or_else(|| panic!("{line:?}")).parse().unwrap();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        let Some((name, value)) = line.split_once(':') else { break };
        response.headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    if response.header("transfer-encoding") == "chunked" {
        response.body = chunks(stream);
    } else {
        drop(stream.read_to_end(&mut response.body));
    }
    response
}

/// Reads a chunked body, which must be complete.
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
