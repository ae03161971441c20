//! How long a server takes to open the replay of a match as long as the longest official ones, at
//! its beginning, middle and end, and the size of its page: `cargo bench -p arbiter-replay`. A
//! server also reads the record from its database and redacts it.
//!
//! The times are also printed as multiples of the time that it takes to decompress the record,
//! hash it and divide it into lines, because that does not depend on the machine.

#![expect(clippy::unwrap_used, reason = "the support of the tests fails by it")]

use std::io::BufRead as _;
use std::time::{Duration, Instant};

use arbiter_games::{ExpectedReply, Games, Seed, wojna};
use arbiter_replay::{
    LineBlocks, PageOptions, Reader, STEPS_PER_CHUNK, STYLE, ShownNames, render_chunks,
    replay_page, unpack, verify,
};

#[path = "../tests/support/mod.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod support;

/// How often each time is measured; the shortest counts.
const REPETITIONS: usize = 5;
/// The target for opening a replay, in milliseconds.
const TARGET: u128 = 300;
/// The chunks that a server renders when it opens a replay, as `FIRST_CHUNKS` there.
const CHUNKS: usize = 4;

fn main() {
    let record = longest_match();
    let packed = zstd::encode_all(&record[..], 1).expect("memory is enough");
    let games = Games::built_in();
    let base = shortest(|| read(&packed));
    let names = ShownNames::new();
    let reader = Reader { names: Some(&names), visible: Some(&[false; 4]) };
    let opened = |chunk: usize| {
        let requested = chunk..chunk + CHUNKS;
        let lines = LineBlocks::new(unpack(&packed).expect("it was compressed"));
        render_chunks(&games, lines, (requested, reader)).expect("it is a record")
    };
    let total = opened(0).overview.total;
    let lines = record.split(|byte| *byte == b'\n').count() - 1;
    println!("{total} steps, {lines} lines, {} bytes, {} compressed", record.len(), packed.len());
    println!("read and hashed: {} ms", base.as_millis());
    let report = |name: &str, time: Duration| {
        let ratio = time.as_secs_f64() / base.as_secs_f64();
        let missed = if time.as_millis() > TARGET { " MISSED" } else { "" };
        let time = time.as_millis();
        println!("{name}: {time} ms, {ratio:.1} times as long; target {TARGET} ms{missed}");
    };
    report("verified", shortest(|| verify(&games, unpack(&packed).expect("compressed")).is_ok()));
    for (name, from) in [("beginning", 0), ("middle", total / 2), ("end", total - 1)] {
        report(&format!("opened at the {name}"), shortest(|| opened(from / STEPS_PER_CHUNK)));
    }
    let start = Instant::now();
    let options = PageOptions { title: None, names: &names, style: STYLE, back: None };
    let page = replay_page(&games, &record[..], options).expect("it is a record");
    println!("one page: {} bytes in {} ms", page.len(), start.elapsed().as_millis());
}

/// A match as long as the longest official match of wojna so far, which had 55 046 steps: bots that
/// never leave an auction need fewer deals for it.
fn longest_match() -> Vec<u8> {
    let params = support::params(&wojna::game(), r#"{"deals":29}"#);
    let names = support::names(4);
    let play = |text: &str| {
        let reply = |expected| if expected == ExpectedReply::Ack { "=" } else { "= check" };
        support::play(&params, Seed::of_text(text), &names, |message, _| {
            Ok(reply(message.expected_reply).to_owned())
        })
        .0
    };
    ["a", "b", "c"].map(play).into_iter().max_by_key(Vec::len).expect("three matches")
}

/// Decompresses a record, hashes it and divides it into lines.
fn read(packed: &[u8]) -> (usize, blake3::Hash) {
    let mut text = unpack(packed).expect("it was compressed");
    let mut hasher = blake3::Hasher::new();
    let mut line = String::new();
    let mut lines = 0;
    while text.read_line(&mut line).expect("it was compressed") > 0 {
        hasher.update(line.as_bytes());
        line.clear();
        lines += 1;
    }
    (lines, hasher.finalize())
}

/// The shortest time of some work.
fn shortest<T>(work: impl Fn() -> T) -> Duration {
    let time = |_| {
        let start = Instant::now();
        std::hint::black_box(work());
        start.elapsed()
    };
    (0..REPETITIONS).map(time).min().expect("it is repeated")
}
