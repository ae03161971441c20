//! Tricks over HTTP: the original dialogue with an unmodified curl, sessions that survive restarts
//! and expire after a day, and invalid or hostile requests.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::atomic::{AtomicI64, Ordering};

use arbiter_coordinator::access::token_throttle::TokenThrottle;
use arbiter_coordinator::access::{self, Role, Secret};
use arbiter_coordinator::coordinator::Coordinator;
use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::db::tricks_http::{self, StoredSession};
use arbiter_coordinator::tricks_http::{Mode, router};
use arbiter_coordinator::web::serve_routes;
use arbiter_games::Seed;
use arbiter_games::tricks::{Card, Dealer, Player, Table};
use proptest::prelude::*;
use proptest::test_runner::{Config as Trials, TestRunner};
use support::tricks_player::TricksPlayer;
use support::{Database, START, config};
use time::{Duration, OffsetDateTime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::task::JoinHandle;

/// Seconds since [`START`], for the test that changes the time.
static ELAPSED_SECONDS: AtomicI64 = AtomicI64::new(0);

fn stopped_clock() -> OffsetDateTime {
    START
}

fn adjustable_clock() -> OffsetDateTime {
    START + Duration::seconds(ELAPSED_SECONDS.load(Ordering::Relaxed))
}

/// A server of the HTTP interface. It stops when it is dropped.
struct Server {
    address: String,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn start(database: &Database, mode: Mode) -> Self {
        Self::with_clock(database, mode, stopped_clock).await
    }

    /// Starts a coordinator with the real clock.
    async fn start_coordinator(database: &Database, mode: Mode) -> Self {
        let [grpc, web] = [
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
        ];
        let address = web.local_addr().unwrap().to_string();
        let coordinator = Coordinator::prepare(database.options(), config()).await.unwrap();
        let coordinator = coordinator.with_web(web).with_tricks_mode(mode);
        let task = tokio::spawn(async {
            coordinator.run(grpc, std::future::pending()).await.unwrap();
        });
        Self { address, task }
    }

    async fn with_clock(database: &Database, mode: Mode, clock: fn() -> OffsetDateTime) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let pages =
            router(database.pool.clone(), Clock::fixed(clock), TokenThrottle::default(), mode);
        let task = tokio::spawn(async { serve_routes(listener, pages).await.unwrap() });
        Self { address, task }
    }

    /// Sends these bytes. Returns the response, which the server ends by closing the connection. If
    /// `keep_open` is false, the client closes its side after the bytes.
    async fn send_bytes(&self, bytes: &[u8], keep_open: bool) -> String {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        // The server may close the connection before it has read all bytes.
        drop(stream.write_all(bytes).await);
        if !keep_open {
            drop(stream.shutdown().await);
        }
        let mut response = Vec::new();
        drop(stream.read_to_end(&mut response).await);
        String::from_utf8_lossy(&response).into_owned()
    }

    /// Posts this body. Returns the status and the body of the response.
    async fn post(&self, body: &str) -> (u16, String) {
        let length = body.len();
        let request = format!(
            "POST /tricks.php HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        parse_response(&self.send_bytes(request.as_bytes(), true).await)
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        parse_response(&self.send_bytes(request.as_bytes(), true).await)
    }

    /// The output of an unmodified curl with these arguments and the address of the server.
    #[expect(clippy::disallowed_methods, reason = "the test needs an unmodified curl")]
    async fn curl(&self, arguments: &[&str]) -> String {
        let url = format!("http://{}/tricks.php", self.address);
        let mut curl: Command = std::process::Command::new("curl").into();
        let output = curl.arg("-sS").args(arguments).arg(url).output().await.unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// The status and the body of a response.
fn parse_response(response: &str) -> (u16, String) {
    let status = response.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, response.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}

/// The words of the response line with this name.
fn line_words<'a>(response: &'a str, name: &str) -> Vec<&'a str> {
    let rest = response.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    rest.strip_prefix(": ").unwrap_or_default().split(' ').collect()
}

/// Creates a player. Returns the secret of the token.
async fn player(database: &Database, name: &str) -> Secret {
    access::create(&database.pool, Role::Player, name, START).await.unwrap().1
}

/// The token without its prefix, as players type it: letters and digits.
fn typed_token(secret: &Secret) -> &str {
    secret.text().strip_prefix("arb_").unwrap()
}

/// The stored session of a player.
async fn stored_session(database: &Database, secret: &Secret) -> Option<StoredSession> {
    let hash = *blake3::hash(secret.text().as_bytes()).as_bytes();
    let since = START - Duration::days(1);
    tricks_http::find(&database.pool, &hash, since, START).await.unwrap().unwrap().session
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_plays_the_original_dialogue() {
    let database = Database::new().await;
    let secret = player(&database, "Ada").await;
    let token = typed_token(&secret);
    assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let server = Server::start(&database, Mode::Official).await;
    let mut response = server.curl(&["-d", &format!("token={token}&_games=2")]).await;
    let states = line_words(&response, "states");
    assert_eq!(states.len(), 2);
    for state in states {
        let (hand, trump) = state.split_once(':').unwrap();
        assert!(hand.len() == 18 && "WXYZN".contains(&trump[..1]), "{state}");
        assert!(trump.len() == 1 || (trump.len() == 4 && &trump[1..2] == ">"), "{state}");
    }
    assert!(response.ends_with("\nscores: 0:0 0:0\n"), "{response:?}");
    let mut strategy = TricksPlayer::default();
    let mut turns = 0;
    while !response.contains("result: ") {
        // All ways in which curl can send this move.
        let cards = strategy.cards(&response);
        let form = format!("token={token}&move={cards}");
        let lines = format!("token: {token}\nmove: {cards}");
        let token_field = format!("token={token}");
        let move_field = format!("move={cards}");
        let arguments: &[&[&str]] = &[
            &["-d", &form],
            &["-d", &token_field, "--data-urlencode", &move_field],
            &["-F", &token_field, "-F", &move_field],
            &["-H", "Content-Type: text/plain", "--data-binary", &lines],
            &["-H", "Content-Type:", "-d", &form],
            &["-H", "Transfer-Encoding: chunked", "-d", &form],
            &["--http2", "-d", &form],
            &["--http1.0", "-d", &form],
        ];
        response = server.curl(arguments[turns % arguments.len()]).await;
        assert!(response.starts_with("states: "), "{response}");
        turns += 1;
    }
    let scores = line_words(&response, "scores");
    let results = scores.iter().map(|score| {
        let (house, player) = score.split_once(':').unwrap();
        player.parse::<i32>().unwrap().cmp(&house.parse().unwrap()) as i32
    });
    assert_eq!(line_words(&response, "result"), [results.sum::<i32>().to_string()]);
    let (status, page) = server.get("/tricks").await;
    assert!(status == 200 && page.contains("<td>Ada</td>"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_json_request_gets_a_json_response() {
    let database = Database::new().await;
    let secret = player(&database, "Ada").await;
    let server = Server::start(&database, Mode::Official).await;
    let (status, body) = server.post(&format!("{{\"token\":\"{}\"}}", secret.text())).await;
    let response: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, response["scores"].as_str()), (200, Some("0:0 0:0 0:0")));
    let (status, body) = server.post(r#"{"token":"none"}"#).await;
    let response: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert!(status == 401 && response["error"].is_string(), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_200_tables_survives_restarts() {
    let database = Database::new().await;
    let secret = player(&database, "Ada").await;
    let token = typed_token(&secret);
    let mut server = Server::start(&database, Mode::Official).await;
    let (mut status, mut response) = server.post(&format!("token={token}&_games=200")).await;
    let mut strategy = TricksPlayer::default();
    let mut tables = 0;
    while status == 200 && !response.contains("result: ") {
        tables = line_words(&response, "states").len();
        server = Server::start(&database, Mode::Official).await;
        (status, response) =
            server.post(&format!("token={token}&move={}", strategy.cards(&response))).await;
    }
    assert_eq!((status, tables), (200, 200), "{response}");
    let scores = line_words(&response, "scores");
    let sums = scores.iter().map(|score| score.split(':').map(|n| n.parse::<u8>().unwrap()).sum());
    assert!(sums.into_iter().all(|sum: u8| sum == 18), "{response}");
    // The house wins clearly against this simple player.
    let result: i32 = line_words(&response, "result")[0].parse().unwrap();
    assert!(result < -35, "{result}");
    let (status, response) = server.post(&format!("token={token}&move={}", ". ".repeat(200))).await;
    assert!(status == 409 && response.starts_with("error: the session is over"), "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_request_is_explained_and_changes_nothing() {
    let database = Database::new().await;
    let secret = player(&database, "Ada").await;
    let worker = access::create(&database.pool, Role::Worker, "w", START).await.unwrap().1;
    let token = typed_token(&secret);
    let server = Server::start(&database, Mode::Official).await;
    let (status, _) = server.post(&format!("token={token}&move=W0")).await;
    assert_eq!(status, 409, "a move before a start");
    assert_eq!(server.post(&format!("token={token}&_games=2")).await.0, 200);
    let session = stored_session(&database, &secret).await.unwrap();
    let long = "W0 ".repeat(40_000);
    for (body, expected) in [
        (String::new(), 400),
        ("hello".to_owned(), 400),
        ("_games=2".to_owned(), 401),
        ("token=unknown".to_owned(), 401),
        (format!("token={}", worker.text()), 401),
        (format!("token={token}&_games=0"), 400),
        (format!("token={token}&_games=201"), 400),
        (format!("token={token}&_games=-3"), 400),
        (format!("token={token}&_games=two"), 400),
        (format!("token={token}&_games="), 400),
        (format!("token={token}&token={token}"), 400),
        (format!("token={token}&move="), 400),
        (format!("token={token}&move=W0"), 400),
        (format!("token={token}&move=W0 W1 W2&_games=2"), 400),
        (format!("token={token}&move=%ff W0"), 400),
        (format!("token={token}&move=W0 W1&move=W0 W1"), 400),
        (format!("token={token}&move={long}"), 413),
        (format!("{{\"token\":\"{token}\",\"move\":"), 400),
    ] {
        let (status, response) = server.post(&body).await;
        let short = &body[..body.len().min(200)];
        assert_eq!(status, expected, "{short}: {response}");
        assert!(response.contains("error") && response.lines().count() == 1, "{short}: {response}");
    }
    let (status, response) = server.get("/tricks.php").await;
    assert!(status == 405 && response.starts_with("error: "), "{response}");
    assert_eq!(server.get("/other.php").await.0, 404);
    assert_eq!(stored_session(&database, &secret).await.unwrap(), session);
    // A move is valid even with extra fields or text.
    let (status, _) = server.post(&format!("token={token}&_games=9&move=W9 x")).await;
    assert_eq!((status, stored_session(&database, &secret).await.unwrap().turn), (200, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_to_upgrade_the_protocol_are_ignored() {
    let database = Database::new().await;
    let secret = player(&database, "Ada").await;
    let server = Server::start(&database, Mode::Official).await;
    let body = format!("token={}", typed_token(&secret));
    let request = |extra: &str| {
        format!(
            "POST /tricks.php HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings{extra}\r\n\
             Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\nContent-Length: {}\r\n\
             \r\n{body}",
            body.len()
        )
    };
    // Two requests on one connection. The first one keeps the connection alive.
    let response = server.send_bytes((request("") + &request(", close")).as_bytes(), true).await;
    assert_eq!(response.matches("HTTP/1.1 200").count(), 2, "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_half_closes_gets_a_response() {
    let database = Database::new().await;
    let secret = player(&database, "Ada").await;
    let server = Server::start(&database, Mode::Official).await;
    let body = format!("token={}&_games=1", typed_token(&secret));
    let length = body.len();
    for version in ["1.0", "1.1"] {
        let request = format!(
            "POST /tricks.php HTTP/{version}\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        // `nc -N` and socat close their side after the request.
        let (status, response) =
            parse_response(&server.send_bytes(request.as_bytes(), false).await);
        assert!(status == 200 && response.contains("scores: 0:0"), "HTTP/{version}: {response}");
    }
    let truncated = format!("POST /tricks.php HTTP/1.1\r\nContent-Length: 99\r\n\r\n{body}");
    let (status, response) = parse_response(&server.send_bytes(truncated.as_bytes(), false).await);
    assert!(status != 200, "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_expire_after_a_day() {
    let database = Database::new().await;
    let secret = player(&database, "Ada").await;
    let token = typed_token(&secret);
    let server = Server::with_clock(&database, Mode::Official, adjustable_clock).await;
    let begin = format!("token={token}&_games=1");
    let losing_move = format!("token={token}&move=x");
    server.post(&begin).await;
    ELAPSED_SECONDS.store(24 * 3600 - 1, Ordering::Relaxed);
    assert_eq!(server.post(&losing_move).await.0, 200);
    server.post(&begin).await;
    ELAPSED_SECONDS.store(2 * 24 * 3600, Ordering::Relaxed);
    let (status, response) = server.post(&losing_move).await;
    assert!(status == 409 && response.starts_with("error: no session"), "{response}");
    assert_eq!(tricks_http::delete_sessions(&database.pool, adjustable_clock()).await.unwrap(), 1);
}

/// A session of 40 tables. The house has lost all tables except the last one.
fn nearly_won(seed: Seed) -> StoredSession {
    const MISTAKE: u8 = 36;
    let mut dealer = Dealer::new(seed);
    let lost = (0..40).map(|number| {
        let table = Table::new(&dealer.deal());
        match table.turn() {
            _ if number == 39 => Vec::new(),
            Some(Player::Second) => vec![MISTAKE],
            _ => {
                let first = table.playable().next();
                let index = Card::all().position(|card| Some(card) == first).unwrap();
                vec![u8::try_from(index).unwrap(), MISTAKE]
            }
        }
    });
    StoredSession { seed, turn: 0, played: lost.collect() }
}

#[tokio::test(flavor = "multi_thread")]
async fn victories_have_a_proof_except_in_test_mode() {
    let database = Database::new().await;
    // The player must move first in the last table.
    let seeds = (0..).map(|number| Seed::of_text(&format!("victory {number}")));
    let first = |seed: &Seed| {
        let mut dealer = Dealer::new(*seed);
        (0..40).map(|_| dealer.deal()).last().unwrap().attacker()
    };
    let seed = seeds.into_iter().find(|seed| first(seed) == Player::First).unwrap();
    for (name, mode) in [("Ada", Mode::Official), ("Bob", Mode::Test)] {
        let secret = player(&database, name).await;
        let hash = *blake3::hash(secret.text().as_bytes()).as_bytes();
        let id = tricks_http::find(&database.pool, &hash, START, START).await.unwrap().unwrap().id;
        let now = OffsetDateTime::now_utc();
        tricks_http::begin(&database.pool, id, &nearly_won(seed), now).await.unwrap();
        let server = Server::start_coordinator(&database, mode).await;
        let body = format!("token={}&move={}", typed_token(&secret), "x ".repeat(40));
        let (status, response) = server.post(&body).await;
        assert_eq!((status, line_words(&response, "result")), (200, vec!["38"]), "{response}");
        let token = line_words(&response, "end")[0];
        assert_eq!(token.is_empty(), mode == Mode::Test, "{response}");
        if mode == Mode::Official {
            let (status, page) = server.get(&format!("/tricks/victory/{token}")).await;
            assert!(status == 200 && page.contains("Ada") && page.contains("38"), "{page}");
            let mut forged = token.to_owned();
            forged.replace_range(8..10, "c8");
            assert_eq!(server.get(&format!("/tricks/victory/{forged}")).await.0, 404);
        }
        let (_, page) = server.get("/tricks").await;
        assert!(page.contains(&format!("<td>{name}</td><td>38</td><td>40</td>")), "{page}");
        assert_eq!(page.contains("Test mode"), mode == Mode::Test, "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_of_two_concurrent_moves_counts() {
    let database = Database::new().await;
    let secret = player(&database, "Ada").await;
    let token = typed_token(&secret);
    // Two servers of one database, like two coordinators.
    let [one, two] = [
        Server::start(&database, Mode::Official).await,
        Server::start(&database, Mode::Official).await,
    ];
    one.post(&format!("token={token}&_games=200")).await;
    let body = format!("token={token}&move={}", "x ".repeat(200));
    let ((first, _), (second, _)) = tokio::join!(one.post(&body), two.post(&body));
    let mut statuses = [first, second];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    assert_eq!(stored_session(&database, &secret).await.unwrap().turn, 1);
    assert_eq!(database.number("SELECT sessions FROM tricks_records").await, 1);
}

/// Invalid requests. No request has the token alone, or the token with the right number of cards.
/// The flag is true if the server can know that the request is complete.
fn hostile_request(token: &str) -> impl Strategy<Value = (Vec<u8>, bool)> + use<> {
    let junk = proptest::collection::vec(any::<u8>(), 0..300);
    let field = prop_oneof![
        Just(format!("token={token}&move=")),
        Just(format!("token={token}&move=W0 W1 W2 W3")),
        Just(format!("token={token}&token={token}&move=W0 W1")),
        Just(format!("token={token}&_games=999999999999999999999")),
        Just(format!("token: {token}\nmove: x")),
        Just(format!("{{\"token\":\"{token}\",\"move\":[[]]}}")),
        Just(format!("{{\"token\":\"{token}\",\"move\":1e999}}")),
        Just(format!("--b\r\nContent-Disposition: form-data; name=token\r\n\r\n{token}\r\n--b")),
        "[a-z_=:&{}\"%+ \r\n-]{0,80}",
    ];
    let body = prop_oneof![field.prop_map(String::into_bytes), junk];
    let method = prop_oneof![4 => Just("POST"), 1 => "[A-Z]{1,9}".prop_map(|m| &*m.leak())];
    let extra = prop_oneof![
        Just(""),
        Just("Content-Type: application/json\r\n"),
        Just("Content-Type: multipart/form-data; boundary=\r\n"),
        Just("Content-Encoding: gzip\r\n"),
        Just("Expect: 100-continue\r\n"),
        Just("Transfer-Encoding: chunked\r\n"),
        Just("Transfer-Encoding: gzip\r\n"),
        Just("Content-Length: -1\r\n"),
        Just("Content-Length: 99999999999\r\n"),
        Just("Upgrade: h2c\r\n"),
    ];
    (method, body, extra, 0..40_usize).prop_map(|(method, body, extra, missing_bytes)| {
        let length = body.len() + if missing_bytes > 35 { missing_bytes } else { 0 };
        let head = format!(
            "{method} /tricks.php HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{extra}\
             Content-Length: {length}\r\n\r\n"
        );
        let is_complete =
            length == body.len() && !extra.contains("chunked") && !extra.contains("999");
        ([head.into_bytes(), body].concat(), is_complete)
    })
}

#[test]
fn no_request_breaks_the_server_or_a_session() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (database, secret, server) = runtime.block_on(async {
        let database = Database::new().await;
        let secret = player(&database, "Ada").await;
        let server = Server::start(&database, Mode::Official).await;
        assert_eq!(server.post(&format!("token={}&_games=2", typed_token(&secret))).await.0, 200);
        (database, secret, server)
    });
    let session = runtime.block_on(stored_session(&database, &secret));
    let config = Trials { cases: 400, failure_persistence: None, ..Trials::default() };
    let result = TestRunner::new(config).run(
        &hostile_request(typed_token(&secret)),
        |(request, is_complete)| {
            let response = runtime.block_on(server.send_bytes(&request, is_complete));
            prop_assert!(!response.starts_with("HTTP/1.1 5"), "{response}");
            prop_assert!(!response.starts_with("HTTP/1.1 2"), "{response}");
            prop_assert_eq!(&runtime.block_on(stored_session(&database, &secret)), &session);
            Ok(())
        },
    );
    result.unwrap();
    let (status, _) =
        runtime.block_on(server.post(&format!("token={}&move=W0 W1", typed_token(&secret))));
    assert_eq!(status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_delay_no_other() {
    let database = Database::new().await;
    let secret = player(&database, "Ada").await;
    let server = Server::start(&database, Mode::Official).await;
    let mut slow = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        stream
            .write_all(b"POST /tricks.php HTTP/1.1\r\nContent-Length: 9\r\n\r\ntok")
            .await
            .unwrap();
        slow.push(stream);
    }
    let (status, _) = server.post(&format!("token={}", typed_token(&secret))).await;
    assert_eq!(status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_requests_are_refused() {
    let database = Database::new().await;
    let secret = player(&database, "Ada").await;
    let server = Server::start(&database, Mode::Official).await;
    server.post(&format!("token={}&_games=200", typed_token(&secret))).await;
    let body = format!("token={}&move=W0", typed_token(&secret));
    let mut status = 400;
    for _ in 0..1000 {
        let (new_status, response) = server.post(&body).await;
        status = new_status;
        if status == 429 {
            assert!(response.starts_with("error: too many requests"), "{response}");
            break;
        }
    }
    assert_eq!(status, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_invalid_tokens_are_refused() {
    let database = Database::new().await;
    let server = Server::start(&database, Mode::Official).await;
    let begin = async |secret: &Secret| {
        server.post(&format!("token={}&_games=1", typed_token(secret))).await.0
    };
    let ada = player(&database, "Ada").await;
    assert_eq!(begin(&ada).await, 200);
    let mut guesses = 0;
    let mut guess = async || {
        loop {
            let (status, response) = server.post(&format!("token=guess-{guesses}")).await;
            guesses += 1;
            assert!(guesses < 1000, "{response}");
            if status != 401 {
                break (status, response);
            }
        }
    };
    let (status, response) = guess().await;
    assert_eq!(status, 429, "{response}");
    assert!(response.starts_with("error: too many invalid tokens from this address"), "{response}");
    // Known sessions continue. New clients of the address are refused, too. On a slow machine the
    // server may allow some new clients before it refuses one.
    assert_eq!(begin(&ada).await, 200);
    let mut newcomers = 0;
    loop {
        newcomers += 1;
        assert!(newcomers < 50, "the server refuses no new client");
        let newcomer = player(&database, &format!("newcomer {newcomers}")).await;
        guess().await;
        if begin(&newcomer).await == 429 {
            break;
        }
    }
}
