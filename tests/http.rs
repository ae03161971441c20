//! Bots that are HTTP clients: they play complete matches against line bots and each other, reach
//! only the referee, and forfeit like other bots.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::Path;
use std::thread;

use serde_json::Value;
use support::{Bots, json, succeed};

/// A client that plays the first legal card, and misbehaves as its first argument says.
const CLIENT: &str = r#"
import json, os, re, socket, sys, time
mode, url, token = sys.argv[1], *sys.stdin.readline().split()
host, port = re.match(r"http://([^:/]*):(\d+)/tricks.php$", url).groups()
open_ones = []

def connect():
    open_ones.append(socket.create_connection((host, int(port))))
    return open_ones[-1]

def head(length, more=""):
    return "POST /tricks.php HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n" % (length, more)

def receive(stream):
    got = b""
    while b"\r\n\r\n" not in got:
        more = stream.recv(65536)
        if not more:
            return ""
        got += more
    before, body = got.split(b"\r\n\r\n", 1)
    length = int(re.search(rb"(?i)content-length: (\d+)", before).group(1))
    while len(body) < length:
        body += stream.recv(65536)
    return body.decode()

def post(body, stream=None, more=""):
    stream = stream or connect()
    stream.sendall((head(len(body), more) + body).encode())
    return receive(stream)

def ask_and_read_to_the_end(body):
    # As PHP and `cat </dev/tcp/…` do. The socket stays open, as with clients that leak sockets.
    version, more = {
        "close": ("1.1", "Host: x\r\nConnection: close\r\n"),
        "long": ("1.1", "Host: x\r\nConnection: close\r\n"),
        "old": ("1.0", ""),
        "shut": ("1.1", "Host: x\r\n"),
    }[mode]
    stream = connect()
    start = "POST /tricks.php HTTP/%s\r\nContent-Length: %d\r\n%s\r\n"
    stream.sendall((start % (version, len(body), more) + body).encode())
    if mode == "shut":
        stream.shutdown(socket.SHUT_WR)
    got = b""
    while True:
        more = stream.recv(65536)
        if not more:
            return got.split(b"\r\n\r\n", 1)[1].decode()
        got += more

def cards(answer, hands={}):
    words = dict(line.split(": ", 1) for line in answer.splitlines())["states"].split()
    assert mode != "naive" or "_" not in words, answer
    for table, state in enumerate(words):
        if state == "_" or state.endswith("."):
            continue
        hand, attack = hands.get(table, ([], ""))
        for played, end, card in re.findall(r">(..)|([+-])|(?<!:)([WXYZ]\d)", state):
            if card: hand.append(card)
            else: attack = played
        card = next((card for card in hand if card[0] == attack[:1]), hand[0])
        hand.remove(card)
        words[table] = card
        hands[table] = (hand, "")
    return " ".join(words)

def until_the_end(answer):
    while "result: " not in answer:
        answer = post("token=%s&move=%s" % (token, cards(answer)), stream)
    print(answer)
    sys.exit(0)

if mode == "silent":
    time.sleep(1000)
if mode == "exits":
    sys.exit(7)
if mode in ("close", "old", "shut", "long"):
    # The server refuses a long request before it has read all of it.
    for bad in ["x" * 3000000] if mode == "long" else ["", "x", "token=%s&move=W0" % token]:
        assert ask_and_read_to_the_end(bad).startswith("error: "), len(bad)
    answer = ask_and_read_to_the_end("token=" + token)
    while "result: " not in answer:
        answer = ask_and_read_to_the_end("token=%s&move=%s" % (token, cards(answer)))
    sys.exit(0)
stream = connect()
if mode == "garbage":
    while True:
        try:
            stream.sendall(b"\0\1\2 garbage\r\n\r\n")
            assert stream.recv(65536)
        except (OSError, AssertionError):
            stream.close()
            open_ones.clear()
            stream = connect()
if mode == "half":
    stream.sendall(head(1000).encode() + b"token=")
    time.sleep(1000)
if mode == "crowd":
    for _ in range(40): connect()
    time.sleep(1000)
if mode == "flood":
    while True:
        stream.sendall((head(60000) + "x" * 60000).encode())
        stream.setblocking(False)
        try:
            while stream.recv(65536): pass
        except BlockingIOError: pass
        stream.setblocking(True)
answer = post("token=" + token, stream)
if mode == "leaves":
    stream.close()
    sys.exit(0)
if mode == "count":
    post("token=%s&move=W0" % token, stream)
if mode == "slow":
    time.sleep(1000)
if mode == "early":
    body = "token=%s&move=%s" % (token, cards(answer))
    stream.sendall((head(len(body)) + body).encode())
    stream.close()
    time.sleep(1000)
if mode == "odd":
    # Requests that are refused, without a forfeit.
    for bad in ["", "x", "token=" + token, "token=y&move=W0", "token=%s&move=a&move=b" % token]:
        assert post(bad).startswith("error: "), bad
    for bad in ["GET /tricks.php HTTP/1.1\r\n\r\n", "POST / HTTP/1.1\r\n\r\n", "nonsense\r\n\r\n"]:
        other = connect()
        other.sendall(bad.encode())
        assert receive(other).startswith("error: "), bad
        other.close()
    # JSON in small pieces and in chunks, and a body after `100 Continue`.
    body = json.dumps({"token": token, "move": cards(answer).split()})
    for byte in ("POST %s HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
            % (url, len(body), body)).encode():
        stream.sendall(bytes([byte]))
    answer = json.loads(receive(stream))
    answer = "states: %s\n" % answer["states"]
    if "result" not in answer:
        body = "token=%s&move=%s" % (token, cards(answer))
        stream.sendall(head(len(body), "Expect: 100-continue\r\n").encode())
        assert stream.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        stream.sendall(body.encode())
        answer = receive(stream)
if mode == "world":
    reached = []
    for place in [("1.1.1.1", 53), ("192.0.2.1", 80), (host, 22), (host, 5432)]:
        try:
            socket.create_connection(place, 2)
            reached.append(place)
        except OSError: pass
    print("reached", reached, file=sys.stderr, flush=True)
until_the_end(answer)
"#;

/// A bot that is this client.
fn client(bots: &Bots, mode: &str) -> String {
    let directory = bots.path().join(mode);
    fs::create_dir(&directory).unwrap();
    let manifest = format!(
        "name = \"{mode}\"\nrun = [\"python3\", \"client.py\", \"{mode}\"]\nprotocol = \"http\"\n\
         stderr = true\n"
    );
    fs::write(directory.join("bot.toml"), manifest).unwrap();
    fs::write(directory.join("client.py"), CLIENT).unwrap();
    directory.to_str().unwrap().to_owned()
}

/// Plays matches, verifies their records, and returns the lines.
fn play(bots: &Bots, more: &[&str], seats: [&str; 2]) -> Vec<Value> {
    let records = bots.path().join("records");
    let records = records.to_str().unwrap();
    fs::create_dir_all(records).unwrap();
    let call = ["play", "tricks", seats[0], seats[1], "--record", records, "--seed", "http"];
    let mut lines = json(&[&call, more].concat());
    lines.pop();
    succeed(&["verify", records]);
    lines
}

/// The forfeit and its detail for each seat of a match.
fn ends(line: &Value) -> [(Option<&str>, &str); 2] {
    [0, 1].map(|seat| {
        (line["forfeits"][seat].as_str(), line["details"][seat].as_str().unwrap_or_default())
    })
}

/// A time limit that no busy machine exceeds.
const PLENTY: &str = "move_limit=30s";
const LOWEST: &str = "bots/tricks/lowest";
const HTTP: &str = "bots/tricks/http";

/// Plays matches in which no bot forfeits, with more time than a busy machine takes.
fn play_to_the_end(bots: &Bots, more: &[&str], seats: [&str; 2]) -> Vec<Value> {
    let lines = play(bots, &[more, &["--set", PLENTY]].concat(), seats);
    for line in &lines {
        assert_eq!(ends(line), [(None, ""); 2], "{line}");
    }
    lines
}

#[test]
fn complete_official_matches_are_played() {
    let bots = Bots::new();
    let house = play_to_the_end(&bots, &["--games", "2"], [HTTP, "bots/tricks/house"]);
    assert_eq!(house.len(), 2);
    let lowest = play_to_the_end(&bots, &["--games", "2"], [HTTP, LOWEST]);
    let won: i64 = lowest.iter().map(|line| points(line, "http")).sum();
    assert!(won > 0, "http beats lowest: {won}");
}

/// The score of a bot.
fn points(line: &Value, name: &str) -> i64 {
    let seat = line["seats"].as_array().unwrap().iter().position(|seat| seat == name).unwrap();
    line["scores"][seat][0].as_i64().unwrap()
}

#[test]
fn two_clients_do_not_wait_for_each_other() {
    let bots = Bots::new();
    for tables in ["tables=2", "tables=100"] {
        let played = || play_to_the_end(&bots, &["--set", tables, "--games", "2"], [HTTP, HTTP]);
        let [lines, again] = [played(), played()];
        let transcripts = |lines: &[Value]| -> Vec<Value> {
            lines.iter().map(|line| line["transcript"].clone()).collect()
        };
        assert_eq!(transcripts(&lines), transcripts(&again));
    }
}

#[test]
fn every_table_against_a_line_bot_waits_for_the_http_client() {
    let bots = Bots::new();
    let naive = client(&bots, "naive");
    for rival in [LOWEST, "bots/tricks/counter"] {
        play_to_the_end(&bots, &["--set", "tables=20", "--games", "2"], [&naive, rival]);
    }
}

/// Plays a short match of a misbehaving client and checks the forfeit and its detail.
fn deserves(mode: &str, forfeit: Option<&str>, detail: &str) {
    let bots = Bots::new();
    let bot = client(&bots, mode);
    let limit = if forfeit == Some("clock") { "move_limit=1s" } else { PLENTY };
    let short = ["--set", "tables=2", "--set", limit, "--no-rotate"];
    let lines = play(&bots, &short, [&bot, LOWEST]);
    let [(found, said), rival] = ends(&lines[0]);
    assert_eq!((found, rival), (forfeit, (None, "")), "{mode}: {}", lines[0]);
    assert!(said.contains(detail), "{mode}: {said}");
}

#[test]
fn client_errors_forfeit_and_odd_requests_do_not() {
    for (mode, forfeit, detail) in [
        ("exits", Some("gone"), "exited with code 7"),
        ("crowd", Some("flood"), "connections"),
        ("flood", Some("flood"), "bytes in one match"),
        ("leaves", Some("gone"), "exited with code 0"),
        ("count", Some("illegal"), "2 cards expected"),
        ("odd", None, ""),
    ] {
        deserves(mode, forfeit, detail);
    }
}

#[test]
fn clients_that_read_to_the_end_of_the_stream_are_served() {
    thread::scope(|scope| {
        for mode in ["close", "old", "shut", "long"] {
            scope.spawn(move || deserves(mode, None, ""));
        }
    });
}

#[test]
fn slow_and_silent_clients_run_out_of_time() {
    // In parallel, because most of the time is waiting.
    thread::scope(|scope| {
        for (mode, detail) in [
            ("silent", "it never connected"),
            ("garbage", ""),
            ("half", "without the end of a request"),
            ("slow", ""),
            ("early", ""),
        ] {
            scope.spawn(move || deserves(mode, Some("clock"), detail));
        }
    });
}

#[test]
fn a_client_reaches_the_referee_and_nothing_else() {
    let bots = Bots::new();
    let bot = client(&bots, "world");
    let lines = play_to_the_end(&bots, &["--set", "tables=2"], [&bot, LOWEST]);
    if lines[0]["sandbox"] != "D" {
        let record = record(&bots.path().join("records"));
        assert!(record.contains("reached []"), "{record}");
    }
}

/// The only record in a directory.
fn record(directory: &Path) -> String {
    let entry = fs::read_dir(directory).unwrap().next().unwrap().unwrap();
    let bytes = fs::read(entry.path()).unwrap();
    let bytes = zstd::decode_all(&bytes[..]).unwrap_or(bytes);
    String::from_utf8(bytes).unwrap()
}
