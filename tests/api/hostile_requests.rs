//! Hostile and malformed requests: the server refuses them and continues.

use std::io::Write as _;
use std::net::TcpStream;

use arbiter_games::Seed;

use crate::filled;
use crate::http_client::{Response, request, send};
use crate::support::service::done;
use crate::test_server::TestServer;

/// The paths of all pages and forms.
const PAGES: [&str; 51] = [
    "/",
    "/t/cup",
    "/t/cup/live",
    "/t/cup/start",
    "/t/cup/cancel",
    "/t/cup/close",
    "/t/cup/retry",
    "/t/cup/void",
    "/t/cup/collusion",
    "/t/cup/bracket",
    "/t/cup/rounds",
    "/t/cup/rounds.trf",
    "/t/cup/submit",
    "/new",
    "/t/cup/bots/mine/withdraw",
    "/t/cup/bots/mine/reinstate",
    "/t/cup/bots/mine/versions/1",
    "/t/cup/bots/mine/versions/1/live",
    "/t/cup/bots/mine/versions/1/retry",
    "/t/cup/ranking",
    "/t/cup/ranking/live",
    "/t/cup/ranking.csv",
    "/t/cup/matrix",
    "/t/cup/schedule",
    "/t/cup/matches",
    "/t/cup/matches.csv",
    "/t/cup/bots/mine",
    "/t/cup/bots/%ff",
    "/t/%00",
    "/t/..%2f..%2fetc%2fpasswd/ranking",
    "/t/cup/matches/0",
    "/t/cup/matches/0/steps",
    "/t/cup/matches/0/embed",
    "/t/cup/matches/0/embed/steps",
    "/t/cup/projector",
    "/t/cup/projector/live",
    "/t/cup/matches/0/record",
    "/t/cup/matches/0/retry",
    "/t/cup/matches/99999999999999999999",
    "/queue",
    "/login",
    "/logout",
    "/assets/arbiter.css",
    "/assets/arbiter.js",
    "/assets/replay.js",
    "/assets/arbiter.svg",
    "/metrics",
    "/api",
    "/tricks.php",
    "/tricks",
    "/tricks/victory/x",
];

/// Content types and bodies sent to forms.
const FORMS: [(&str, &[u8]); 11] = [
    ("", b""),
    ("application/x-www-form-urlencoded", b""),
    ("application/x-www-form-urlencoded", b"csrf=&csrf=&token=a&token=b&move=W0&move=X1"),
    ("application/x-www-form-urlencoded", b"csrf=%ff%fe&token=%00&sure=%zz&_games=1e9"),
    ("application/x-www-form-urlencoded", b"csrf[]=a&token[x]=b&=c&&&&==="),
    ("application/x-www-form-urlencoded", b"\xff\xfe\x00\x01"),
    ("application/json", b"{\"token\":[[[[[[1]]]]]],\"move\":null,\"csrf\":{}}"),
    ("application/json", b"{"),
    ("multipart/form-data", b"--x\r\n\r\n"),
    ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data\r\n\r\na\r\n"),
    ("text/plain; charset=utf-16", b"t\0o\0k\0e\0n\0"),
];

/// Invalid query strings.
const QUERIES: [&str; 9] = [
    "edition=x",
    "edition=-2147483649",
    "edition=1&edition=2",
    "offset=4294967295&limit=4294967295",
    "after=-9223372036854775808&after=9223372036854775807",
    "after=9223372036854775807",
    "q=%ff%00%F0%9F%92%A9&bot=%00",
    "step=18446744073709551615&from=18446744073709551615&count=18446744073709551615",
    "=&&=&%=%%%",
];

/// Bytes that are not a valid request.
const NOISE: [&[u8]; 12] = [
    b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n",
    b"GET / HTTP/1.1\r\nNo colon\r\n\r\n",
    b"GET \xff\xff HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"POST /login HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"POST /login HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    b"POST /login HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\n\r\n",
    b"POST /login HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\
      Connection: close\r\n\r\n0\r\n\r\n",
];

/// Asserts that a response is no server error and has the security headers.
fn assert_sane(what: &str, response: &Response) {
    assert!(response.status < 500, "{what}: {} {}", response.status, response.text());
    assert_eq!(response.header("x-content-type-options"), "nosniff", "{what}");
    assert!(!response.header("content-security-policy").is_empty(), "{what}");
}

#[test]
fn no_request_makes_the_server_fail() {
    let server = TestServer::played();
    let http = server.up.http;
    let cookie = format!("Cookie: arbiter={}", server.up.admin());
    let described = server.json("/api/v1/openapi.json");
    let programs = described["paths"].as_object().unwrap().keys();
    let programs = programs.map(|path| filled(path));
    for path in PAGES.iter().map(|path| (*path).to_owned()).chain(programs) {
        let streams = path.ends_with("/live");
        for query in QUERIES {
            let path = format!("{path}?{query}");
            // A stream does not end, so only its head is requested.
            let method = if streams { "HEAD" } else { "GET" };
            assert_sane(&path, &request(http, method, &path, &[&cookie], &[]));
        }
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW", "HEAD"] {
            assert_sane(&path, &request(http, method, &path, &[&cookie], &[]));
        }
        for (kind, form) in FORMS {
            let kind = format!("Content-Type: {kind}");
            assert_sane(&path, &request(http, "POST", &path, &[&cookie, &kind], form));
        }
    }
    let kind = "Content-Type: application/x-www-form-urlencoded";
    let huge = vec![b'a'; 3 << 20];
    for path in ["/login", "/t/cup/cancel", "/tricks.php"] {
        let response = request(http, "POST", path, &[kind, &cookie], &huge);
        assert!([0, 400, 413, 422].contains(&response.status), "{path}: {}", response.status);
    }
    let long = format!("/t/cup/ranking?q={}", "a".repeat(100_000));
    assert!([0, 414, 431].contains(&server.get(&long, &[]).status));
    for noise in NOISE {
        let response = send(http, noise);
        assert!(response.status < 500, "{noise:?}: {}", response.status);
    }
    // All of this has changed nothing.
    assert_eq!(server.up.json("tournament show cup")[0]["state"], "open");
    assert_eq!(
        server.json("/api/v1/tournaments/cup/editions")["items"].as_array().unwrap().len(),
        1
    );
    server.up.close();
}

#[test]
fn random_requests_do_not_break_the_server() {
    let server = TestServer::open(1024);
    let mut dice = Seed::of_text("hostile").dice(0);
    let words = [
        "GET ",
        "POST ",
        "/",
        "t/cup",
        "?",
        "&",
        "=",
        "%",
        "\r\n",
        "\r\n\r\n",
        "Host: x",
        "Content-Length: 9",
        " HTTP/1.1",
        "api/v1/",
        "tournaments",
        "token=",
        "edition=1",
        "\0",
        "Transfer-Encoding: chunked",
        "Authorization: Bearer ",
        "Cookie: arbiter=",
        "tricks.php",
    ];
    for _ in 0..300 {
        let mut bytes = Vec::new();
        if dice.below(2) == 0 {
            bytes.extend(b"GET /t/cup");
        }
        for _ in 0..dice.below(20) {
            bytes.extend(words[dice.index(words.len())].as_bytes());
        }
        bytes.extend(b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n123456789\r\n\r\n");
        let response = send(server.up.http, &bytes);
        assert!(response.status < 500, "{}: {}", String::from_utf8_lossy(&bytes), response.status);
    }
    assert_eq!(server.get("/healthz", &[]).status, 200);
    server.up.close();
}

#[test]
fn open_connections_do_not_block_other_clients() {
    // Half of the file descriptors are for connections.
    let server = TestServer::open(256);
    let mut connections = Vec::new();
    for number in 0..400 {
        // When the limit is reached, the server closes the oldest connections.
        let Ok(mut stream) = TcpStream::connect(server.up.http) else { break };
        let head =
            format!("GET /t/cup/{} HTTP/1.1\r\nHost: x\r\n", ["live", "ranking"][number % 2]);
        let more = if number % 4 == 0 { "\r\n" } else { "X-Half: " };
        drop(stream.write_all(format!("{head}{more}").as_bytes()));
        connections.push(stream);
    }
    assert!(connections.len() > 300, "{}", connections.len());
    for _ in 0..20 {
        assert_eq!(server.get("/t/cup", &[]).status, 200);
    }
    assert_eq!(server.up.json("tournament show cup")[0]["state"], "open");
    server.up.close();
}

#[test]
fn a_command_that_connects_to_the_web_port_gets_a_helpful_error() {
    let server = TestServer::open(1024);
    let mut command = server.up.command("tournament list");
    let output =
        command.env("ARBITER_SERVER", format!("http://{}", server.up.http)).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("--grpc"), "{stderr}");
    done(&server.up.command("tournament list").output().unwrap());
    server.up.close();
}
