//! Requests that mean no good: whatever comes, the server answers that it will not, and goes on.

use std::io::Write as _;
use std::net::TcpStream;

use arbiter_games::Seed;
use serde_json::json;

use crate::client::{Answer, request, send};
use crate::filled;
use crate::home::Home;
use crate::support::service::done;

/// The addresses of all pages and forms.
const PAGES: [&str; 43] = [
    "/",
    "/t/cup",
    "/t/cup/live",
    "/t/cup/start",
    "/t/cup/cancel",
    "/t/cup/close",
    "/t/cup/retry",
    "/t/cup/void",
    "/t/cup/collusion",
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
    "/matches/1/0",
    "/matches/1/0/steps",
    "/matches/1/0/record",
    "/matches/1/0/retry",
    "/matches/1/99999999999999999999",
    "/queue",
    "/login",
    "/logout",
    "/assets/arbiter.css",
    "/assets/arbiter.js",
    "/assets/arbiter.svg",
    "/metrics",
    "/api",
    "/tricks.php",
    "/tricks",
    "/tricks/victory/x",
];

/// What is sent to forms: the type, and the text.
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

/// Queries that mean nothing.
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

/// Bytes that are no request, or hardly one.
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

/// What every answer has to be, but one of the protocol itself.
fn sane(what: &str, answer: &Answer) {
    assert!(answer.status < 500, "{what}: {} {}", answer.status, answer.text());
    assert_eq!(answer.header("x-content-type-options"), "nosniff", "{what}");
    assert!(!answer.header("content-security-policy").is_empty(), "{what}");
}

#[test]
fn no_request_makes_the_server_fail() {
    let home = Home::played();
    let http = home.up.http;
    let cookie = format!("Cookie: arbiter={}", home.up.admin());
    let described = home.json("/api/v1/openapi.json");
    let programs = described["paths"].as_object().unwrap().keys();
    let programs = programs.map(|path| filled(path, &json!(1)));
    for path in PAGES.iter().map(|path| (*path).to_owned()).chain(programs) {
        let streams = path.ends_with("/live");
        for query in QUERIES {
            let path = format!("{path}?{query}");
            // A stream has no end that could be waited for.
            let method = if streams { "HEAD" } else { "GET" };
            sane(&path, &request(http, method, &path, &[&cookie], &[]));
        }
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW", "HEAD"] {
            sane(&path, &request(http, method, &path, &[&cookie], &[]));
        }
        for (kind, form) in FORMS {
            let kind = format!("Content-Type: {kind}");
            sane(&path, &request(http, "POST", &path, &[&cookie, &kind], form));
        }
    }
    let kind = "Content-Type: application/x-www-form-urlencoded";
    let huge = vec![b'a'; 3 << 20];
    for path in ["/login", "/t/cup/cancel", "/tricks.php"] {
        let answer = request(http, "POST", path, &[kind, &cookie], &huge);
        assert!([0, 400, 413, 422].contains(&answer.status), "{path}: {}", answer.status);
    }
    let long = format!("/t/cup/ranking?q={}", "a".repeat(100_000));
    assert!([0, 414, 431].contains(&home.get(&long, &[]).status));
    for noise in NOISE {
        let answer = send(http, noise);
        assert!(answer.status < 500, "{noise:?}: {}", answer.status);
    }
    // All of this has changed nothing.
    assert_eq!(home.up.json("tournament show cup")[0]["state"], "open");
    assert_eq!(home.json("/api/v1/tournaments/cup/editions")["items"].as_array().unwrap().len(), 1);
    home.up.close();
}

#[test]
fn random_requests_do_no_harm() {
    let home = Home::open(1024);
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
        let answer = send(home.up.http, &bytes);
        assert!(answer.status < 500, "{}: {}", String::from_utf8_lossy(&bytes), answer.status);
    }
    assert_eq!(home.get("/healthz", &[]).status, 200);
    home.up.close();
}

#[test]
fn whoever_holds_connections_open_keeps_nobody_out() {
    // Half of its files are for connections.
    let home = Home::open(256);
    let mut held = Vec::new();
    for number in 0..400 {
        // Once there is no room, the oldest of them are ended to make some.
        let Ok(mut stream) = TcpStream::connect(home.up.http) else { break };
        let head =
            format!("GET /t/cup/{} HTTP/1.1\r\nHost: x\r\n", ["live", "ranking"][number % 2]);
        let more = if number % 4 == 0 { "\r\n" } else { "X-Half: " };
        drop(stream.write_all(format!("{head}{more}").as_bytes()));
        held.push(stream);
    }
    assert!(held.len() > 300, "{}", held.len());
    for _ in 0..20 {
        assert_eq!(home.get("/t/cup", &[]).status, 200);
    }
    assert_eq!(home.up.json("tournament show cup")[0]["state"], "open");
    home.up.close();
}

#[test]
fn a_command_that_calls_the_pages_is_told_so() {
    let home = Home::open(1024);
    let mut command = home.up.command("tournament list");
    let output =
        command.env("ARBITER_SERVER", format!("http://{}", home.up.http)).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("--grpc"), "{told}");
    done(&home.up.command("tournament list").output().unwrap());
    home.up.close();
}
