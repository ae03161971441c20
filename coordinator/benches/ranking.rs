//! The latency of the first page of a leaderboard of ten thousand bots, and of one standing, over
//! gRPC: `cargo bench -p arbiter-coordinator --bench ranking`.
//!
//! The latency is measured with few results and with a hundred times as many. It is measured
//! without new results, with new results, and while another session has an open snapshot of the
//! database.
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

/// The number of bots of an edition.
const BOTS: i32 = 10_000;
/// The number of matches in a lot.
const PER_LOT: i32 = 64;
/// The numbers of results at the start.
const RESULTS: [i64; 2] = [50_048, 5_000_000];
/// The number of matches that are not played yet.
const MATCHES_LEFT: i64 = 640_000;
/// The number of workers that report results.
const WORKERS: u32 = 40;
/// The approximate time to play a lot: together the workers play 5000 matches a second.
const PLAY: Duration = Duration::from_millis(500);
/// How long each measurement takes.
const DURATION: Duration = Duration::from_secs(20);
/// The pause between two requests.
const PAUSE: Duration = Duration::from_millis(10);
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
    let edition = running(pool, &name, BOTS, results + MATCHES_LEFT, PER_LOT).await;
    play_at_once(pool, edition, results).await;
    let server = Server::start(postgres).await;
    let start = Instant::now();
    while editions::counted(pool, edition).await.expect("the edition exists") < results {
        tokio::time::sleep(PAUSE).await;
    }
    println!("{BOTS} bots, {results} results, counted in {:.1} s", start.elapsed().as_secs_f64());
    let mut spectator = Spectator::new(&server, &name).await;
    let mut first = Latencies::default();
    first.time(spectator.get_page()).await;
    println!("  the first request: {first}");
    spectator.measure("no results arrive", None).await;
    spectator.measure("results arrive", Some(&server)).await;
    let mut other = PgConnection::connect_with(&postgres.options("postgres")).await;
    let other = other.as_mut().expect("the server answers");
    let mut snapshot = other.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    let snapshot = snapshot.as_mut().expect("a transaction");
    snapshot.execute("SELECT FROM tournaments").await.expect("a snapshot");
    spectator.measure("results arrive, and a snapshot is open", Some(&server)).await;
    server.stop().await;
    let queue = Queue::new(pool.clone(), Games::built_in(), LeasePolicy::DEFAULT);
    assert!(queue.cancel(edition, NOW).await.expect("the edition can be cancelled"));
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
    async fn get_page(&mut self) {
        let board = Some(self.board.clone());
        let request = GetRankingRequest { leaderboard: board, ..GetRankingRequest::default() };
        let page = self.rankings.get_ranking(request).await.expect("a page").into_inner();
        assert_eq!(page.standings.len(), 100);
    }

    /// Requests the standing of one bot.
    async fn get_standing(&mut self) {
        let bot = format!("bot-{}", self.dice.below(BOTS.cast_unsigned()));
        let request = GetStandingRequest { leaderboard: Some(self.board.clone()), bot };
        let place = self.rankings.get_standing(request).await.expect("a place").into_inner();
        assert!(place.standing.is_some());
    }

    /// Sends requests for a while, and prints their latency. If there is a `server`, workers play
    /// at the same time.
    async fn measure(&mut self, name: &str, server: Option<&Server>) {
        let until = Instant::now() + DURATION;
        let mut workers = JoinSet::new();
        for number in 0..WORKERS {
            let Some(server) = server else { break };
            // Each measurement has a separate token, and so its workers have separate names.
            let worker_name = format!("{}-{number}", self.board.tournament);
            let worker = Worker::connect(server, &worker_name, 1).await;
            let dice = Seed::of_text("worker").dice(number.into());
            workers.spawn(worker.play_with_pauses(PLAY, dice, until));
        }
        let mut latencies: [Latencies; 3] = Default::default();
        while Instant::now() < until {
            let [page, standing, empty] = &mut latencies;
            page.time(self.get_page()).await;
            tokio::time::sleep(PAUSE).await;
            standing.time(self.get_standing()).await;
            tokio::time::sleep(PAUSE).await;
            let call = self.health.check(HealthCheckRequest::default());
            empty.time(call).await.expect("the coordinator is healthy");
            tokio::time::sleep(PAUSE).await;
        }
        workers.join_all().await;
        println!("  {name} (load of the machine {})", load());
        for (request, latencies) in ["first page", "one bot", "empty call"].iter().zip(&latencies) {
            let note = if latencies.percentile(99) > TARGET { " MISSED" } else { "" };
            let target = if *request == "empty call" {
                String::new()
            } else {
                format!("; target p99 {TARGET} ms{note}")
            };
            println!("    {request:<10} {latencies}{target}");
        }
    }
}
