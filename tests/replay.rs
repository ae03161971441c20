//! `arbiter replay`: a record in the viewer, and as one page.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use support::service::Service;
use support::{Bots, arbiter, files, run, succeed};

/// The record of a match of gomoku.
fn record(bots: &Bots) -> String {
    let ada = bots.rascal("ada", "honest", 0, "");
    let bob = bots.rascal("bob", "honest", 0, "");
    let folder = bots.path().join("records");
    let records = folder.to_str().unwrap();
    succeed(&["play", "gomoku", &ada, &bob, "--record", records, "--sandbox", "off"]);
    files(&folder)[0].to_str().unwrap().to_owned()
}

/// The code and the message of a failed command.
fn failure(arguments: &[&str]) -> (i32, String) {
    let output = run(arguments);
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_record_becomes_one_page_that_loads_nothing() {
    let bots = Bots::new();
    let record = record(&bots);
    let out = bots.path().join("page.html");
    let out = out.to_str().unwrap();
    succeed(&["replay", &record, "--html", out]);
    let page = fs::read_to_string(out).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    assert!(page.contains("content=\"default-src 'none'; "), "it forbids every request");
    for part in [" src=", "<iframe", "@import", "<link rel=\"stylesheet\""] {
        assert!(!page.contains(part), "{part}");
    }
    assert!(page.contains("<script type=\"text/plain\" id=\"chunk-0\">"));
    assert!(page.contains("<th class=\"number\">Points</th>"), "the game names its columns");

    // The same page follows from a compressed record, and nothing is overwritten.
    let (code, message) = failure(&["replay", &record, "--html", out]);
    assert_eq!(code, 2);
    assert!(message.contains("already exists; replace it with --force"), "{message}");
    let text = fs::read(&record).unwrap();
    let packed = bots.path().join("record.jsonl.zst");
    fs::write(&packed, zstd::encode_all(&text[..], 3).unwrap()).unwrap();
    succeed(&["replay", packed.to_str().unwrap(), "--html", out, "--force"]);
    assert!(fs::read_to_string(out).unwrap() == page);
}

#[test]
fn a_page_that_cannot_be_written_is_refused_by_its_name_with_a_remedy() {
    let bots = Bots::new();
    let record = record(&bots);
    let folder = bots.path().join("pages");
    fs::create_dir(&folder).unwrap();
    let shown = folder.display();
    let missing = folder.join("none/x.html");
    for (out, message) in [
        (&missing, format!("there is no directory {shown}/none; create it first")),
        (&folder, format!("is a directory; name a file in it, such as {shown}/replay.html")),
    ] {
        let out = out.to_str().unwrap();
        let options: [&[&str]; 2] = [&[], &["--force"]];
        for force in options {
            let arguments = [&["replay", record.as_str(), "--html", out][..], force].concat();
            let (code, stderr) = failure(&arguments);
            assert_eq!(code, 2, "{stderr}");
            assert!(stderr.contains(&message) && stderr.contains(out), "{stderr}");
            // The folder of the test has a temporary name, too.
            let others = stderr.replace(&shown.to_string(), "");
            assert!(!others.contains(".tmp") && !others.contains("os error"), "{stderr}");
        }
    }
    succeed(&["replay", &record, "--html", folder.join("replay.html").to_str().unwrap()]);
    assert_eq!(files(&folder).len(), 1, "nothing else is written");
}

#[test]
fn a_wrong_record_is_refused_with_its_first_difference() {
    let bots = Bots::new();
    let text = fs::read_to_string(record(&bots)).unwrap();
    let edited = text.replacen("\"reply\":\"", "\"reply\":\"9", 1);
    let wrong = bots.file("wrong.jsonl", &edited);
    let (code, message) = failure(&["replay", &wrong]);
    assert_eq!(code, 1, "{message}");
    assert!(message.contains("differs from the rules: line "), "{message}");
    let half = bots.file("half.jsonl", &text[..text.len() / 2]);
    assert!(failure(&["replay", &half]).1.contains("the record ends within a line"));
    let other = bots.file("other.jsonl", &text.replacen("gomoku", "go", 1));
    for (file, cause) in [
        (bots.file("letter.txt", "Dear all,\n"), "not a record that can be replayed"),
        (other, "go"),
        (bots.path().to_str().unwrap().to_owned(), "is a directory; name one of its records"),
        (format!("{wrong}.gone"), "No such file"),
    ] {
        let (code, message) = failure(&["replay", &file]);
        assert_eq!(code, 2, "{message}");
        assert!(message.contains(cause) && message.lines().count() == 1, "{message}");
    }
}

#[test]
fn a_record_of_a_package_shows_its_pictures_without_the_package() {
    let bots = Bots::new();
    let out = bots.path().join("page.html");
    let out = out.to_str().unwrap();
    succeed(&["replay", "games/packages/connect4/tests/pictures.jsonl", "--html", out]);
    let page = fs::read_to_string(out).unwrap();
    assert!(page.contains("<img class=\"frame\" src=\"data:image/svg+xml;base64,"), "{page}");
    assert!(page.contains("<h1>center, blocker</h1>"), "{page}");
    assert!(page.contains("<th class=\"number\">Score</th>"), "columns are unknown: {page}");
}

#[test]
fn the_viewer_is_served_until_it_is_stopped() {
    let bots = Bots::new();
    let record = record(&bots);
    let log = bots.path().join("log");
    let mut viewer = Service::start(arbiter().args(["replay", &record]), &log);
    viewer.wait_for_log("Ctrl-C ends the viewer");
    let log = viewer.log();
    let address = log.lines().find_map(|line| line.strip_prefix("http://")).unwrap();
    let address = address.trim_end_matches('/');
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let get = |host: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    };
    assert!(get(address).contains("id=\"replay\""));
    assert!(get("evil.example").starts_with("HTTP/1.1 403"));
    assert_eq!(viewer.stop(), Some(0));
}
