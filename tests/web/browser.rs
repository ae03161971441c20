//! A minimal browser: requests with cookies, responses, and the text of tables.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::support::service::TIMEOUT;

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Header values by lower-case name.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
    pub(crate) bytes: Vec<u8>,
}

/// A client that stores a cookie.
#[derive(Clone, Debug)]
pub(crate) struct Browser {
    pub(crate) address: SocketAddr,
    /// The cookie of the session.
    pub(crate) cookie: Option<String>,
}

impl Browser {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, cookie: None }
    }

    fn connect(&self, head: &str, body: &[u8]) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let cookie = self.cookie.as_ref().map(|cookie| format!("Cookie: {cookie}\r\n"));
        let host = self.address;
        let cookie = cookie.unwrap_or_default();
        let head = format!("{head}\r\nHost: {host}\r\n{cookie}Connection: close\r\n\r\n");
        stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        BufReader::new(stream)
    }

    /// Requests a page; any status.
    pub(crate) fn get(&self, path: &str) -> Response {
        read(self.connect(&format!("GET {path} HTTP/1.1"), &[]))
    }

    /// Requests a page with the encodings that browsers accept. The body may be compressed.
    pub(crate) fn get_compressed(&self, path: &str) -> Response {
        let head = format!("GET {path} HTTP/1.0\r\nAccept-Encoding: gzip, deflate, br, zstd");
        read(self.connect(&head, &[]))
    }

    /// Requests a page from a link on another page.
    pub(crate) fn get_from(&self, path: &str, referer: &str) -> Response {
        read(self.connect(&format!("GET {path} HTTP/1.1\r\nReferer: {referer}"), &[]))
    }

    /// Requests a file, whose body has no chunks in this version of HTTP.
    pub(crate) fn download(&self, path: &str) -> Response {
        let response = read(self.connect(&format!("GET {path} HTTP/1.0"), &[]));
        assert_eq!(response.status, 200, "{path}: {}", response.body);
        response
    }

    /// Requests a page, which must exist.
    pub(crate) fn page(&self, path: &str) -> String {
        let response = self.get(path);
        assert_eq!(response.status, 200, "{path}: {}", response.body);
        response.body
    }

    /// Sends a form with these header lines.
    pub(crate) fn post(&self, path: &str, form: &str, headers: &[&str]) -> Response {
        let headers: Vec<_> = [&[""], headers].concat();
        let headers = headers.join("\r\n");
        let head = format!(
            "POST {path} HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}{headers}",
            form.len()
        );
        read(self.connect(&head, form.as_bytes()))
    }

    /// Sends a multipart form.
    pub(crate) fn upload(&self, path: &str, parts: &[Part], headers: &[&str]) -> Response {
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

    /// Logs in and stores the cookie.
    pub(crate) fn log_in(&mut self, token: &str) -> Response {
        let response = self.post("/login", &format!("token={token}"), &[]);
        let cookie = response.headers.get("set-cookie");
        self.cookie = cookie.map(|cookie| cookie.split(';').next().unwrap().to_owned());
        response
    }

    /// Opens an event stream and returns the data of its events.
    pub(crate) fn events(&self, path: &str) -> impl Iterator<Item = String> + use<> {
        let mut lines = self.connect(&format!("GET {path} HTTP/1.1"), &[]).lines();
        let status = lines.next().unwrap().unwrap();
        assert!(status.contains(" 200 "), "{path}: {status}");
        lines.map_while(Result::ok).filter_map(|line| {
            line.strip_prefix("data: ").or_else(|| line.strip_prefix("data:")).map(str::to_owned)
        })
    }
}

/// A field of a multipart form.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    name: &'static str,
    /// The file name, for a file.
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

/// The CSRF token in a page.
pub(crate) fn csrf(page: &str) -> String {
    page.split("name=\"csrf\" value=\"").nth(1).unwrap()[..64].to_owned()
}

/// A text in the encoding of forms.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes().flat_map(|byte| format!("%{byte:02X}").into_bytes()).map(char::from).collect()
}

fn read(mut stream: BufReader<TcpStream>) -> Response {
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
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let body = String::from_utf8_lossy(&bytes).into_owned();
    Response { status, headers, body, bytes }
}

/// The text of the cells of the first table of this class, row by row.
pub(crate) fn rows(html: &str, class: &str) -> Vec<Vec<String>> {
    let opening = format!("<table class=\"{class}\"");
    let start = html.find(&opening).unwrap_or_else(|| panic!("no table {class} in {html}"));
    let table = html[start..].split("</table>").next().unwrap();
    let body = table.split("<tbody>").nth(1).unwrap();
    // A row header is the first cell.
    let body = body.replace("<th ", "<td ").replace("</th>", "</td>");
    let rows = body.split("</tr>").filter(|row| row.contains("<td"));
    rows.map(|row| row.split("</td>").filter(|cell| cell.contains("<td")).map(text).collect())
        .collect()
}

/// The text of a fragment of HTML.
pub(crate) fn text(html: &str) -> String {
    let mut text = String::new();
    // The text before the first `<` may be the rest of a tag that was cut off.
    for piece in html.split('<') {
        text.push_str(piece.split_once('>').map_or(piece, |(_, text)| text));
    }
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&amp;", "&").trim().to_owned()
}
