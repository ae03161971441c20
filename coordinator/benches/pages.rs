//! The latency of the page of a leaderboard of ten thousand bots at two hundred requests a second:
//! while nothing changes, while results come in, and while a hundred browsers receive live updates:
//! `cargo bench -p arbiter-coordinator --bench pages`.
//!
//! Requests are sent at fixed times, even if earlier responses are late, and are timed from then.
//! Clients and server are one process. Empty requests in the same seconds show the latency of the
//! machine and its other programs.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use arbiter_coordinator::db::editions;
use arbiter_coordinator::postgres::Postgres;
use arbiter_games::{Dice, Seed};
use sqlx::PgPool;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

use support::measure::{Latencies, Spent, load};
use support::server::{Server, Worker};
use support::{play_at_once, running};

mod support;

/// Bots of the edition.
const BOTS: i32 = 10_000;
/// Matches in a lot.
const PER_LOT: i32 = 64;
/// Results at the start.
const RESULTS: i64 = 50_048;
/// Matches that are left to be played.
const LEFT: i64 = 640_000;
/// Workers that deliver results: together a thousand matches a second.
const WORKERS: u32 = 8;
/// The approximate time to play a lot.
const PLAY: Duration = Duration::from_millis(500);
/// Connections that request pages.
const READERS: u32 = 50;
/// The interval of requests.
const PAUSE: Duration = Duration::from_millis(5);
/// Browsers that have the page open.
const OPEN: u32 = 100;
/// How long each measurement takes.
const WATCHED: Duration = Duration::from_secs(20);
/// The target for the 99th percentile of a page, in milliseconds.
const TARGET: f64 = 30.0;
/// The tournament.
const NAME: &str = "bench";

fn main() {
    support::run(async |postgres, pool| {
        let edition = running(&pool, NAME, BOTS, RESULTS + LEFT, PER_LOT).await;
        play_at_once(&pool, edition, RESULTS).await;
        let server = Server::start(postgres).await;
        while counted(&pool, edition).await < RESULTS {
            sleep(PAUSE).await;
        }
        let mut first = Latencies::default();
        first.time(Reader::connect(server.pages, 0).await.get(&format!("/t/{NAME}/ranking"))).await;
        println!("{BOTS} bots, {RESULTS} results; the first look of all: {first}");
        for (how, workers, open) in [
            ("no results come in", 0, 0),
            ("results come in", WORKERS, 0),
            ("results come in, and browsers have it open", WORKERS, OPEN),
        ] {
            let before = counted(&pool, edition).await;
            measure(postgres, &server, workers, open, how).await;
            let results = counted(&pool, edition).await - before;
            println!("    {results} results in {} s", WATCHED.as_secs());
        }
        server.stop().await;
    });
}

async fn counted(pool: &PgPool, edition: arbiter_proto::ids::EditionId) -> i64 {
    editions::counted(pool, edition).await.expect("it is there")
}

/// Requests pages for a while.
async fn measure(postgres: &Postgres, server: &Server, workers: u32, open: u32, how: &str) {
    let until = Instant::now() + WATCHED;
    let mut beside = JoinSet::new();
    for number in 0..workers {
        let worker = Worker::connect(server, &format!("worker-{number}"), 1).await;
        let dice = Seed::of_text("worker").dice(number.into());
        beside.spawn(async move { drop(worker.play_calmly(PLAY, dice, until).await) });
    }
    for _ in 0..open {
        beside.spawn(keep_open(server.pages, until));
    }
    let begun = Instant::now();
    let spent = Spent::so_far(postgres);
    let mut readers = JoinSet::new();
    for number in 0..READERS {
        let reader = Reader::connect(server.pages, number).await;
        readers.spawn(reader.read(begun + PAUSE * number, until));
    }
    let mut all: [Latencies; 3] = Default::default();
    while let Some(latencies) = readers.join_next().await {
        for (sum, part) in all.iter_mut().zip(latencies.expect("a reader does not fail")) {
            sum.merge(part);
        }
    }
    let requests = i64::try_from(all.iter().map(Latencies::count).sum::<usize>()).expect("few");
    println!("  {how} (load of the machine {})", load());
    for (what, latencies) in ["first page", "any page", "nothing"].iter().zip(&all) {
        let missed = if latencies.percentile(99) > TARGET { " MISSED" } else { "" };
        println!("    {what:<10} {latencies}; target p99 {TARGET} ms{missed}");
    }
    println!("    {}", spent.each(postgres, requests));
    beside.join_all().await;
}

/// A client that requests pages.
struct Reader {
    stream: TcpStream,
    dice: Dice,
}

impl Reader {
    async fn connect(pages: SocketAddr, number: u32) -> Self {
        let stream = TcpStream::connect(pages).await.expect("the server listens");
        stream.set_nodelay(true).expect("a connection");
        Self { stream, dice: Seed::of_text("reader").dice(number.into()) }
    }

    /// Sends requests when they are due: of four, two for the first page, one for a random page,
    /// one empty. Returns the latencies.
    async fn read(mut self, first: Instant, until: Instant) -> [Latencies; 3] {
        let mut latencies: [Latencies; 3] = Default::default();
        let mut due = first;
        for kind in [0, 1, 0, 2].iter().cycle() {
            due += PAUSE * READERS;
            if due > until {
                break;
            }
            sleep_until(due.into()).await;
            let path = match kind {
                0 => format!("/t/{NAME}/ranking"),
                1 => format!("/t/{NAME}/ranking?offset={}", 100 * self.dice.below(100)),
                _ => "/healthz".to_owned(),
            };
            self.get(&path).await;
            latencies[*kind].add(due.elapsed());
        }
        latencies
    }

    async fn get(&mut self, path: &str) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        self.stream.write_all(request.as_bytes()).await.expect("it listens");
        let mut answer = Vec::new();
        loop {
            self.stream.read_buf(&mut answer).await.expect("it answers");
            let Some(end) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
                continue;
            };
            let head = String::from_utf8_lossy(&answer[..end]);
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.and_then(|text| text.parse().ok()).expect("a length");
            if answer.len() >= end + 4 + length {
                return;
            }
        }
    }
}

/// Keeps the page open, and reads its live updates.
async fn keep_open(pages: SocketAddr, until: Instant) {
    let mut stream = TcpStream::connect(pages).await.expect("the server listens");
    let request = format!("GET /t/{NAME}/ranking/live HTTP/1.1\r\nHost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it listens");
    let mut buffer = vec![0; 64 << 10];
    let mut taken = 0;
    while let Ok(read) = tokio::time::timeout_at(until.into(), stream.read(&mut buffer)).await {
        taken += read.expect("it answers");
    }
    assert!(taken > 10_000, "something was sent");
}
