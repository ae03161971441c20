//! Tricks over HTTP for five hundred players at the same time:
//! `cargo bench -p arbiter-coordinator --bench tricks_http`.
//!
//! Each player has the usual three tables and a separate connection. The first measurement is the
//! latency of responses if players wait for a second between their requests. The second one is the
//! number of responses a second without waits. Players and server are one process. Commits are on
//! disk before a response is sent.

use std::time::{Duration, Instant};

use arbiter_coordinator::access::token_throttle::TokenThrottle;
use arbiter_coordinator::access::{self, Role};
use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::tricks_http::{Mode, router};
use arbiter_coordinator::web::serve_routes;
use sqlx::PgPool;
use time::OffsetDateTime;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use support::NOW;
use support::measure::{CpuTime, Latencies, load, speed};
use tricks_player::TricksPlayer;

mod support;
#[path = "../tests/support/tricks_player.rs"]
mod tricks_player;

/// The number of players at the same time.
const PLAYERS: u32 = 500;
/// How long a player waits between two requests.
const THINK: Duration = Duration::from_secs(1);
/// How long each measurement takes.
const DURATION: Duration = Duration::from_secs(20);

fn main() {
    support::run(async |postgres, pool| {
        let clock = Clock::fixed(|| OffsetDateTime::UNIX_EPOCH);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("the port is bound").to_string();
        let pages = router(pool.clone(), clock, TokenThrottle::default(), Mode::Official);
        tokio::spawn(async { serve_routes(listener, pages).await.expect("the server runs") });
        let players = players(&pool).await;
        for think in [THINK, Duration::ZERO] {
            println!("load of the machine {}", load());
            let start = Instant::now();
            let cpu_time = CpuTime::now(postgres);
            let mut tasks = JoinSet::new();
            for (number, token) in (0..).zip(&players) {
                let player = Player::connect(&address, token.clone()).await;
                tasks.spawn(player.play(think * number / PLAYERS, think));
            }
            let mut all = Latencies::default();
            while let Some(latencies) = tasks.join_next().await {
                all.merge(latencies.expect("a player does not fail"));
            }
            let requests = i64::try_from(all.count()).expect("few");
            let rate = speed(requests, start);
            let cost = cpu_time.each(postgres, requests);
            println!("{PLAYERS} players thinking for {think:?}: {all}, {rate:.0} a second; {cost}");
        }
    });
}

/// The tokens of all players.
async fn players(pool: &PgPool) -> Vec<String> {
    let mut tokens = Vec::new();
    for number in 0..PLAYERS {
        let created = access::create(pool, Role::Player, &format!("player {number}"), NOW).await;
        tokens.push(created.expect("a token").1.text().to_owned());
    }
    tokens
}

/// A player and its connection.
struct Player {
    stream: TcpStream,
    token: String,
    strategy: TricksPlayer,
}

impl Player {
    async fn connect(address: &str, token: String) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("a connection");
        Self { stream, token, strategy: TricksPlayer::default() }
    }

    /// Waits for `delay`, and then plays sessions one after the other. Returns the latencies.
    async fn play(mut self, delay: Duration, think: Duration) -> Latencies {
        let mut latencies = Latencies::default();
        let start = Instant::now();
        tokio::time::sleep(delay).await;
        let mut response = String::new();
        while start.elapsed() < DURATION {
            let body = if response.is_empty() || response.contains("result: ") {
                self.strategy = TricksPlayer::default();
                format!("token={}", self.token)
            } else {
                let cards = self.strategy.cards(&response);
                format!("token={}&move={cards}", self.token)
            };
            response = latencies.time(self.post(&body)).await;
            assert!(response.starts_with("states: "), "{response}");
            tokio::time::sleep(think).await;
        }
        latencies
    }

    async fn post(&mut self, body: &str) -> String {
        let length = body.len();
        let request = format!(
            "POST /tricks.php HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes()).await.expect("the server listens");
        let mut response = Vec::new();
        loop {
            self.stream.read_buf(&mut response).await.expect("the server answers");
            let text = String::from_utf8_lossy(&response).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.and_then(|text| text.parse().ok()).expect("a length");
            if body.len() >= length {
                return body.to_owned();
            }
        }
    }
}
