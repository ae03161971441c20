//! Tricks over HTTP for five hundred players at once, each with the usual three tables and a
//! separate connection: how long responses take while players think for a second between their
//! requests, and how many responses a second are possible if no player thinks:
//! `cargo bench -p arbiter-coordinator --bench tricks_http`.
//!
//! Players and server are one process; commits are on disk before an answer is given.

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
use support::measure::{Latencies, Spent, load, speed};
use tricks_player::TricksPlayer;

mod support;
#[path = "../tests/support/tricks_player.rs"]
mod tricks_player;

/// Players at once.
const PLAYERS: u32 = 500;
/// How long they think.
const THINK: Duration = Duration::from_secs(1);
/// How long they are watched.
const WATCHED: Duration = Duration::from_secs(20);

fn main() {
    support::run(async |postgres, pool| {
        let clock = Clock::given(|| OffsetDateTime::UNIX_EPOCH);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let pages = router(pool.clone(), clock, TokenThrottle::default(), Mode::Official);
        tokio::spawn(async { serve_routes(listener, pages).await.expect("it serves") });
        let players = players(&pool).await;
        for think in [THINK, Duration::ZERO] {
            println!("load of the machine {}", load());
            let begun = Instant::now();
            let spent = Spent::so_far(postgres);
            let mut playing = JoinSet::new();
            for (number, token) in (0..).zip(&players) {
                let player = Player::connect(&address, token.clone()).await;
                playing.spawn(player.play(think * number / PLAYERS, think));
            }
            let mut all = Latencies::default();
            while let Some(one) = playing.join_next().await {
                all.merge(one.expect("a player does not fail"));
            }
            let requests = i64::try_from(all.count()).expect("few");
            let pace = speed(requests, begun);
            let cost = spent.each(postgres, requests);
            println!("{PLAYERS} players thinking for {think:?}: {all}, {pace:.0} a second; {cost}");
        }
    });
}

/// The tokens of all players.
async fn players(pool: &PgPool) -> Vec<String> {
    let mut tokens = Vec::new();
    for number in 0..PLAYERS {
        let made = access::create(pool, Role::Player, &format!("player {number}"), NOW).await;
        tokens.push(made.expect("a token").1.text().to_owned());
    }
    tokens
}

/// A player and its connection.
struct Player {
    stream: TcpStream,
    token: String,
    mind: TricksPlayer,
}

impl Player {
    async fn connect(address: &str, token: String) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("a connection");
        Self { stream, token, mind: TricksPlayer::default() }
    }

    /// Plays session after session, from `delay` on: how long answers take.
    async fn play(mut self, delay: Duration, think: Duration) -> Latencies {
        let mut latencies = Latencies::default();
        let begun = Instant::now();
        tokio::time::sleep(delay).await;
        let mut answer = String::new();
        while begun.elapsed() < WATCHED {
            let body = if answer.is_empty() || answer.contains("result: ") {
                self.mind = TricksPlayer::default();
                format!("token={}", self.token)
            } else {
                let cards = self.mind.cards(&answer);
                format!("token={}&move={cards}", self.token)
            };
            answer = latencies.time(self.post(&body)).await;
            assert!(answer.starts_with("states: "), "{answer}");
            tokio::time::sleep(think).await;
        }
        latencies
    }

    async fn post(&mut self, body: &str) -> String {
        let length = body.len();
        let request = format!(
            "POST /tricks.php HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes()).await.expect("it listens");
        let mut answer = Vec::new();
        loop {
            self.stream.read_buf(&mut answer).await.expect("it answers");
            let text = String::from_utf8_lossy(&answer).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.and_then(|text| text.parse().ok()).expect("a length");
            if body.len() >= length {
                return body.to_owned();
            }
        }
    }
}
