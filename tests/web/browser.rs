//! As much of a browser as it takes to look at pages: requests, answers, and what stands in tables.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::support::service::SOON;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// By names in small letters.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

/// Somebody with a browser.
#[derive(Clone, Debug)]
pub(crate) struct Browser {
    pub(crate) address: SocketAddr,
    /// What the server gave it to keep.
    pub(crate) cookie: Option<String>,
}

impl Browser {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, cookie: None }
    }

    fn connect(&self, head: &str, body: &[u8]) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let cookie = self.cookie.as_ref().map(|cookie| format!("Cookie: {cookie}\r\n"));
        let (host, cookie) = (self.address, cookie.unwrap_or_default());
        let head = format!("{head}\r\nHost: {host}\r\n{cookie}Connection: close\r\n\r\n");
        stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        BufReader::new(stream)
    }

    /// Looks at a page, whatever becomes of it.
    pub(crate) fn get(&self, path: &str) -> Answer {
        read(self.connect(&format!("GET {path} HTTP/1.1"), &[]))
    }

    /// A page that is there.
    pub(crate) fn page(&self, path: &str) -> String {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body
    }

    /// Sends a form with these headers, each a line of its own.
    pub(crate) fn post(&self, path: &str, form: &str, headers: &[&str]) -> Answer {
        let headers: Vec<_> = [&[""], headers].concat();
        let headers = headers.join("\r\n");
        let head = format!(
            "POST {path} HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}{headers}",
            form.len()
        );
        read(self.connect(&head, form.as_bytes()))
    }

    /// Sends a form that may carry files, as its page has it.
    pub(crate) fn upload(&self, path: &str, parts: &[Part], headers: &[&str]) -> Answer {
        const BOUNDARY: &str = "----a-line-that-is-in-no-part";
        let mut body = Vec::new();
        for Part { name, file, contents } in parts {
            let file = file.map(|file| format!("; filename=\"{file}\"")).unwrap_or_default();
            let head = format!(
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n"
            );
            body.extend([head.as_bytes(), contents, &b"\r\n"[..]].concat());
        }
        body.extend(format!("--{BOUNDARY}--\r\n").as_bytes());
        let headers: Vec<_> = [&[""], headers].concat();
        let head = format!(
            "POST {path} HTTP/1.1\r\nContent-Type: multipart/form-data; boundary={BOUNDARY}\r\n\
             Content-Length: {}{}",
            body.len(),
            headers.join("\r\n")
        );
        read(self.connect(&head, &body))
    }

    /// Logs in, and keeps the cookie.
    pub(crate) fn log_in(&mut self, token: &str) -> Answer {
        let answer = self.post("/login", &format!("token={token}"), &[]);
        let cookie = answer.headers.get("set-cookie");
        self.cookie = cookie.map(|cookie| cookie.split(';').next().unwrap().to_owned());
        answer
    }

    /// Opens a stream of events, and gives the data of one after the other.
    pub(crate) fn events(&self, path: &str) -> impl Iterator<Item = String> + use<> {
        let mut lines = self.connect(&format!("GET {path} HTTP/1.1"), &[]).lines();
        let status = lines.next().unwrap().unwrap();
        assert!(status.contains(" 200 "), "{path}: {status}");
        lines.map_while(Result::ok).filter_map(|line| {
            line.strip_prefix("data: ").or_else(|| line.strip_prefix("data:")).map(str::to_owned)
        })
    }
}

/// A field of a form that may carry files.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    name: &'static str,
    /// The file's name, if it is one.
    file: Option<&'static str>,
    contents: Vec<u8>,
}

impl Part {
    pub(crate) fn text(name: &'static str, text: &str) -> Self {
        Self { name, file: None, contents: text.as_bytes().to_vec() }
    }

    pub(crate) fn file(name: &'static str, file: &'static str, contents: &[u8]) -> Self {
        Self { name, file: Some(file), contents: contents.to_vec() }
    }
}

/// What the forms of a page carry.
pub(crate) fn csrf(page: &str) -> String {
    page.split("name=\"csrf\" value=\"").nth(1).unwrap()[..64].to_owned()
}

fn read(mut stream: BufReader<TcpStream>) -> Answer {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("{line:?}")).parse().unwrap();
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = Vec::new();
    stream.read_to_end(&mut body).unwrap();
    Answer { status, headers, body: String::from_utf8_lossy(&body).into_owned() }
}

/// The rows of the first table of this class, cell by cell, as text.
pub(crate) fn rows(html: &str, class: &str) -> Vec<Vec<String>> {
    let opening = format!("<table class=\"{class}\"");
    let start = html.find(&opening).unwrap_or_else(|| panic!("no table {class} in {html}"));
    let table = html[start..].split("</table>").next().unwrap();
    let body = table.split("<tbody>").nth(1).unwrap();
    // The head of a row is its first cell.
    let body = body.replace("<th ", "<td ").replace("</th>", "</td>");
    let rows = body.split("</tr>").filter(|row| row.contains("<td"));
    rows.map(|row| row.split("</td>").filter(|cell| cell.contains("<td")).map(text).collect())
        .collect()
}

/// What is to be read in a piece of a page.
pub(crate) fn text(html: &str) -> String {
    let mut text = String::new();
    // What stands before the first tag began in a tag that was cut off.
    for piece in html.split('<') {
        text.push_str(piece.split_once('>').map_or(piece, |(_, text)| text));
    }
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&amp;", "&").trim().to_owned()
}
