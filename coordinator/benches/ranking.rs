//! The latency of the first page of a leaderboard of ten thousand bots, and of one standing, over
//! gRPC: with few results and a hundred times as many, without new results, with new results, and
//! while another session holds a snapshot of the database open:
//! `cargo bench -p arbiter-coordinator --bench ranking`.
//!
//! The coordinator counts the standings from the results. The latency of an empty call in the same
//! seconds shows the load of the machine.

use std::time::{Duration, Instant};

use arbiter_coordinator::db::editions;
use arbiter_coordinator::postgres::Postgres;
use arbiter_coordinator::queue::{LeasePolicy, Queue};
use arbiter_games::{Games, Seed};
use arbiter_proto::v1::ranking_service_client::RankingServiceClient;
use arbiter_proto::v1::{GetRankingRequest, GetStandingRequest, LeaderboardRef};
use sqlx::{Connection as _, Executor as _, PgConnection, PgPool};
use tokio::task::JoinSet;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;

use support::measure::{Latencies, load};
use support::server::{Server, Worker};
use support::{NOW, play_at_once, running};

mod support;

/// Bots of an edition.
const BOTS: i32 = 10_000;
/// Matches in a lot.
const PER_LOT: i32 = 64;
/// Results at the start: few, and many.
const RESULTS: [i64; 2] = [50_048, 5_000_000];
/// Matches that are left to be played.
const LEFT: i64 = 640_000;
/// Workers that deliver results.
const WORKERS: u32 = 40;
/// The approximate time to play their lots: together 5000 matches a second.
const PLAY: Duration = Duration::from_millis(500);
/// How long each measurement takes.
const WATCHED: Duration = Duration::from_secs(20);
/// The pause between two requests.
const REST: Duration = Duration::from_millis(10);
/// The target for the 99th percentile of a request, in milliseconds.
const TARGET: f64 = 5.0;

fn main() {
    support::run(async |postgres, pool| {
        for results in RESULTS {
            measure(postgres, &pool, results).await;
        }
    });
}

/// Measures an edition with this many results.
async fn measure(postgres: &Postgres, pool: &PgPool, results: i64) {
    let name = format!("bench-{results}");
    let edition = running(pool, &name, BOTS, results + LEFT, PER_LOT).await;
    play_at_once(pool, edition, results).await;
    let server = Server::start(postgres).await;
    let begin = Instant::now();
    while editions::counted(pool, edition).await.expect("it is there") < results {
        tokio::time::sleep(REST).await;
    }
    println!("{BOTS} bots, {results} results, counted in {:.1} s", begin.elapsed().as_secs_f64());
    let mut spectator = Spectator::new(&server, &name).await;
    let mut first = Latencies::default();
    first.time(spectator.look()).await;
    println!("  the first look of all: {first}");
    spectator.watch("no results come in", None).await;
    spectator.watch("results come in", Some(&server)).await;
    let mut other = PgConnection::connect_with(&postgres.options("postgres")).await;
    let other = other.as_mut().expect("the server answers");
    let mut snapshot = other.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    let snapshot = snapshot.as_mut().expect("a transaction");
    snapshot.execute("SELECT FROM tournaments").await.expect("a snapshot");
    spectator.watch("results come in, and a snapshot is held", Some(&server)).await;
    server.stop().await;
    let queue = Queue::new(pool.clone(), Games::built_in(), LeasePolicy::DEFAULT);
    assert!(queue.cancel(edition, NOW).await.expect("it can be given up"));
}

/// A client that requests a leaderboard again and again.
struct Spectator {
    rankings: RankingServiceClient<Channel>,
    health: tonic_health::pb::health_client::HealthClient<Channel>,
    board: LeaderboardRef,
    dice: arbiter_games::Dice,
}

impl Spectator {
    async fn new(server: &Server, tournament: &str) -> Self {
        Self {
            rankings: RankingServiceClient::new(server.channel().await),
            health: server.health().await,
            board: LeaderboardRef { tournament: tournament.to_owned(), edition: None },
            dice: Seed::of_text("spectator").dice(0),
        }
    }

    /// Requests the first page.
    async fn look(&mut self) {
        let board = Some(self.board.clone());
        let asked = GetRankingRequest { leaderboard: board, ..GetRankingRequest::default() };
        let page = self.rankings.get_ranking(asked).await.expect("a page").into_inner();
        assert_eq!(page.standings.len(), 100);
    }

    /// Requests the standing of one bot.
    async fn look_up(&mut self) {
        let bot = format!("bot-{}", self.dice.below(BOTS.cast_unsigned()));
        let asked = GetStandingRequest { leaderboard: Some(self.board.clone()), bot };
        let place = self.rankings.get_standing(asked).await.expect("a place").into_inner();
        assert!(place.standing.is_some());
    }

    /// Sends requests for a while, and prints their latency; workers play meanwhile, if there is a
    /// server for them.
    async fn watch(&mut self, how: &str, server: Option<&Server>) {
        let until = Instant::now() + WATCHED;
        let mut playing = JoinSet::new();
        for number in 0..WORKERS {
            let Some(server) = server else { break };
            let worker = Worker::connect(server, &format!("worker-{number}"), 1).await;
            let dice = Seed::of_text("worker").dice(number.into());
            playing.spawn(worker.play_calmly(PLAY, dice, until));
        }
        let mut latencies: [Latencies; 3] = Default::default();
        while Instant::now() < until {
            let [page, place, empty] = &mut latencies;
            page.time(self.look()).await;
            tokio::time::sleep(REST).await;
            place.time(self.look_up()).await;
            tokio::time::sleep(REST).await;
            let call = self.health.check(HealthCheckRequest::default());
            empty.time(call).await.expect("it is healthy");
            tokio::time::sleep(REST).await;
        }
        playing.join_all().await;
        println!("  {how} (load of the machine {})", load());
        for (what, latencies) in ["first page", "one bot", "empty call"].iter().zip(&latencies) {
            let missed = if latencies.percentile(99) > TARGET { " MISSED" } else { "" };
            let target = if *what == "empty call" {
                String::new()
            } else {
                format!("; target p99 {TARGET} ms{missed}")
            };
            println!("    {what:<10} {latencies}{target}");
        }
    }
}
