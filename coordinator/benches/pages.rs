//! The latency of the front page of a tournament, with the leaderboard of ten thousand bots, at two
//! hundred requests a second.
//! It is measured while nothing changes, while results arrive, and while a hundred browsers receive
//! live updates: `cargo bench -p arbiter-coordinator --bench pages`.
//!
//! Requests are sent at fixed times, even if earlier responses are late. Latencies are measured
//! from these times. Clients and server are one process. Empty requests in the same seconds show
//! the latency of the machine.

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

use support::measure::{CpuTime, Latencies, load};
use support::server::{Server, Worker};
use support::{play_at_once, running};

mod support;

/// The number of bots of the edition.
const BOTS: i32 = 10_000;
/// The number of matches in a lot.
const PER_LOT: i32 = 64;
/// The number of results at the start.
const RESULTS: i64 = 50_048;
/// The number of matches that are not played yet.
const MATCHES_LEFT: i64 = 640_000;
/// The number of workers that report results: together a thousand matches a second.
const WORKERS: u32 = 8;
/// The approximate time to play a lot.
const PLAY: Duration = Duration::from_millis(500);
/// The number of connections that request pages.
const READERS: u32 = 50;
/// The interval of requests.
const PAUSE: Duration = Duration::from_millis(5);
/// The number of browsers that have the page open.
const BROWSERS: u32 = 100;
/// How long each measurement takes.
const DURATION: Duration = Duration::from_secs(20);
/// The target for the 99th percentile of a page, in milliseconds.
const TARGET: f64 = 15.0;
/// The tournament.
const NAME: &str = "bench";

fn main() {
    support::run(async |postgres, pool| {
        let edition = running(&pool, NAME, BOTS, RESULTS + MATCHES_LEFT, PER_LOT).await;
        play_at_once(&pool, edition, RESULTS).await;
        let server = Server::start(postgres).await;
        while counted(&pool, edition).await < RESULTS {
            sleep(PAUSE).await;
        }
        let mut first = Latencies::default();
        first.time(Reader::connect(server.pages, 0).await.get(&format!("/t/{NAME}"))).await;
        println!("{BOTS} bots, {RESULTS} results; the first request: {first}");
        for (name, workers, browsers) in [
            ("no results arrive", 0, 0),
            ("results arrive", WORKERS, 0),
            ("results arrive, and browsers have the page open", WORKERS, BROWSERS),
        ] {
            let before = counted(&pool, edition).await;
            measure(postgres, &server, workers, browsers, name).await;
            let results = counted(&pool, edition).await - before;
            println!("    {results} results in {} s", DURATION.as_secs());
        }
        server.stop().await;
    });
}

async fn counted(pool: &PgPool, edition: arbiter_proto::ids::EditionId) -> i64 {
    editions::counted(pool, edition).await.expect("the edition exists")
}

/// Requests pages for a while.
async fn measure(postgres: &Postgres, server: &Server, workers: u32, browsers: u32, name: &str) {
    let until = Instant::now() + DURATION;
    let mut background = JoinSet::new();
    for number in 0..workers {
        let worker = Worker::connect(server, &format!("worker-{number}"), 1).await;
        let dice = Seed::of_text("worker").dice(number.into());
        background.spawn(async move { drop(worker.play_with_pauses(PLAY, dice, until).await) });
    }
    for _ in 0..browsers {
        background.spawn(keep_open(server.pages, until));
    }
    let start = Instant::now();
    let cpu_time = CpuTime::now(postgres);
    let mut readers = JoinSet::new();
    for number in 0..READERS {
        let reader = Reader::connect(server.pages, number).await;
        readers.spawn(reader.read(number, start + PAUSE * number, until));
    }
    let mut all: [Latencies; 3] = Default::default();
    while let Some(latencies) = readers.join_next().await {
        for (sum, part) in all.iter_mut().zip(latencies.expect("a reader does not fail")) {
            sum.merge(part);
        }
    }
    let requests = i64::try_from(all.iter().map(Latencies::count).sum::<usize>()).expect("few");
    println!("  {name} (load of the machine {})", load());
    for (kind, latencies) in ["first page", "any page", "nothing"].iter().zip(&all) {
        let note = if latencies.percentile(99) > TARGET { " MISSED" } else { "" };
        println!("    {kind:<10} {latencies}; target p99 {TARGET} ms{note}");
    }
    println!("    {}", cpu_time.each(postgres, requests));
    background.join_all().await;
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

    /// Sends requests at fixed times. Of four requests, two are for the first page, one is for a
    /// random page, and one is empty. Each reader starts with another one of the four, so that all
    /// kinds meet the same moments. Returns the latencies.
    async fn read(mut self, number: u32, first: Instant, until: Instant) -> [Latencies; 3] {
        let mut latencies: [Latencies; 3] = Default::default();
        let mut send_at = first;
        for kind in [0, 1, 0, 2].iter().cycle().skip(number as usize % 4) {
            send_at += PAUSE * READERS;
            if send_at > until {
                break;
            }
            sleep_until(send_at.into()).await;
            let path = match kind {
                0 => format!("/t/{NAME}"),
                1 => format!("/t/{NAME}/ranking?offset={}", 100 * self.dice.below(100)),
                _ => "/healthz".to_owned(),
            };
            self.get(&path).await;
            latencies[*kind].add(send_at.elapsed());
        }
        latencies
    }

    async fn get(&mut self, path: &str) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        self.stream.write_all(request.as_bytes()).await.expect("the server listens");
        let mut response = Vec::new();
        loop {
            self.stream.read_buf(&mut response).await.expect("the server answers");
            let Some(end) = response.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
                continue;
            };
            let head = String::from_utf8_lossy(&response[..end]);
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.and_then(|text| text.parse().ok()).expect("a length");
            if response.len() >= end + 4 + length {
                return;
            }
        }
    }
}

/// Keeps the page open, and reads its live updates.
async fn keep_open(pages: SocketAddr, until: Instant) {
    let mut stream = TcpStream::connect(pages).await.expect("the server listens");
    let request = format!("GET /t/{NAME}/ranking/live HTTP/1.1\r\nHost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("the server listens");
    let mut buffer = vec![0; 64 << 10];
    let mut bytes = 0;
    while let Ok(count) = tokio::time::timeout_at(until.into(), stream.read(&mut buffer)).await {
        bytes += count.expect("the server answers");
    }
    assert!(bytes > 10_000, "live updates were sent");
}
