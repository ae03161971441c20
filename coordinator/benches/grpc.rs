//! The speed of leases and reports over gRPC with durable commits, compared with a raw `COPY` and
//! single-row inserts of the same rows in the same Postgres, and the time that a worker waits for a
//! lot: `cargo bench -p arbiter-coordinator --bench grpc`.
//!
//! Coordinator and workers are one process and communicate over TCP. The process and Postgres share
//! the processors. The workers do not play matches, but they use the protocol of real workers: they
//! report each lot separately, and then offer its slot again. Standings are counted at the same
//! time. The remaining count is timed separately. Speeds depend on the load of the machine, so
//! there are several rounds with ratios in each.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use arbiter_coordinator::db::editions;
use arbiter_coordinator::postgres::Postgres;
use arbiter_coordinator::queue::{LeasePolicy, Queue};
use arbiter_coordinator::tournament::file::{Audit, Share};
use arbiter_games::{Games, Seed};
use arbiter_proto::ids::{EditionId, Lease};
use arbiter_proto::v1::ReportStatus;
use arbiter_proto::v1::coordinator_message::Payload as CoordinatorPayload;
use sqlx::PgPool;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;

use support::measure::{CpuTime, Latencies, load, median, speed};
use support::server::{Server, Worker};
use support::{NOW, edition, name, raw_copy, running, running_audited, settle, single_inserts};

mod support;

/// The number of rounds of measurement.
const ROUNDS: usize = 3;
/// The number of bots of an edition.
const BOTS: i32 = 1000;
/// The number of matches of an edition with lots of one match.
const SMALL_LOTS_MATCHES: i64 = 100_000;
/// The number of matches of an edition with large lots.
const LARGE_LOTS_MATCHES: i64 = 1_000_000;
/// The number of workers that are always busy.
const BUSY_WORKERS: usize = 16;
/// The slots of each worker. Together they fill several batches of reports.
const SLOTS: u32 = 96;
/// The number of workers that request lots at different times.
const IDLE_WORKERS: u32 = 200;
/// The approximate time to play their lots. Real lots take longer, so there are fewer requests.
const PLAY: Duration = Duration::from_secs(1);
/// How long these workers are measured.
const DURATION: Duration = Duration::from_secs(15);
/// The number of concurrent clients in the comparison of a stream with separate calls.
const CLIENTS: usize = 16;
/// The number of messages of each client.
const MESSAGES: i64 = 2000;
/// The pause between two empty calls.
const PAUSE: Duration = Duration::from_millis(10);

fn main() {
    support::run(async |postgres, pool| {
        let bench = Bench { postgres, pool };
        // This comes first, because the server writes changed pages back long after many results.
        bench.latency().await;
        bench.compare_stream_and_calls().await;
        let mut speeds: [Vec<_>; 2] = Default::default();
        for _ in 0..ROUNDS {
            for (speeds, speed) in speeds.iter_mut().zip(bench.throughput().await) {
                speeds.push(speed);
            }
        }
        for (size, speeds) in [1, 64].into_iter().zip(speeds) {
            let [speed, of_copy] =
                [0, 1].map(|index| median(speeds.iter().map(|pair| pair[index]).collect()));
            println!("median, lots of {size:>2}: {speed:.0} matches/s, {of_copy:.2} of COPY");
        }
        // This comes last, because the coordinator could mix its shadow matches with later lots.
        bench.shadows().await;
    });
}

/// The measurements.
struct Bench<'a> {
    postgres: &'a Postgres,
    pool: PgPool,
}

impl Bench<'_> {
    /// For small and large lots the speed in matches a second, and its ratio to a raw copy.
    async fn throughput(&self) -> [[f64; 2]; 2] {
        println!("load of the machine {}", load());
        let baseline = edition(&self.pool, &name(), BOTS).await;
        let copy = raw_copy(&self.pool, baseline).await;
        println!("  raw COPY of results              {copy:>9.0} rows/s");
        let baseline = edition(&self.pool, &name(), BOTS).await;
        let inserts = single_inserts(&self.pool, baseline, 1).await;
        println!("  single-row inserts, 1 session    {inserts:>9.0} rows/s");
        let mut speeds = [[0.0; 2]; 2];
        let sizes = [(1, SMALL_LOTS_MATCHES, 30_000.0), (64, LARGE_LOTS_MATCHES, 250_000.0)];
        for (measurement, (per_lot, matches, target)) in speeds.iter_mut().zip(sizes) {
            settle(&self.pool).await;
            let edition = running(&self.pool, &name(), BOTS, matches, per_lot).await;
            let (speed, costs) = self.play(edition, matches, per_lot).await;
            println!(
                "  lots of {per_lot:>2}                       {speed:>9.0} matches/s, {:.2} of COPY, \
                {:.1} × inserts, {:.2} of the target; {costs}",
                speed / copy,
                speed / inserts,
                speed / target
            );
            *measurement = [speed, speed / copy];
        }
        speeds
    }

    /// Prints the speed of an edition in which one match in a hundred is played twice.
    async fn shadows(&self) {
        let audit = Audit { replay: Share::percent(0), ..Audit::OFFICIAL };
        settle(&self.pool).await;
        let edition =
            running_audited(&self.pool, &name(), audit, BOTS, SMALL_LOTS_MATCHES, 1).await;
        let (speed, costs) = self.play(edition, SMALL_LOTS_MATCHES, 1).await;
        println!("lots of  1, {} played twice: {speed:.0} matches/s; {costs}", audit.shadow);
    }

    /// Lets busy workers play an edition. Returns the speed in matches a second, and the cost.
    async fn play(&self, edition: EditionId, matches: i64, per_lot: i32) -> (f64, String) {
        let server = Server::start(self.postgres).await;
        let mut workers = Vec::new();
        for number in 0..BUSY_WORKERS {
            workers
                .push(Worker::connect(&server, &format!("busy-{edition}-{number}"), SLOTS).await);
        }
        let lots_left = Arc::new(AtomicI64::new(matches / i64::from(per_lot)));
        let is_over = watch::Sender::new(false);
        let mut tasks = JoinSet::new();
        let cpu_time = CpuTime::now(self.postgres);
        let start = Instant::now();
        for worker in workers {
            tasks.spawn(work(worker, Arc::clone(&lots_left), is_over.clone()));
        }
        tasks.join_all().await;
        let report_speed = speed(matches, start);
        let costs = cpu_time.each(self.postgres, matches);
        // The next measurement must not overlap with the count.
        while editions::counted(&self.pool, edition).await.expect("the edition exists") < matches {
            tokio::time::sleep(PAUSE).await;
        }
        let count_speed = speed(matches, start);
        server.stop().await;
        (report_speed, format!("{costs}; {count_speed:.0}/s until all are counted"))
    }

    /// Prints the cost of a message and its response on an open stream, as workers use it, and as a
    /// separate call. The messages cause no work, so both ways do the same.
    async fn compare_stream_and_calls(&self) {
        let server = Server::start(self.postgres).await;
        for is_stream in [true, false] {
            let mut tasks = JoinSet::new();
            let mut channels = Vec::new();
            for _ in 0..CLIENTS {
                channels.push(server.channel().await);
            }
            let cpu_time = CpuTime::now(self.postgres);
            let start = Instant::now();
            for channel in channels {
                if is_stream {
                    tasks.spawn(send_on_stream(channel));
                } else {
                    tasks.spawn(call_separately(channel));
                }
            }
            tasks.join_all().await;
            let messages = MESSAGES * i64::try_from(CLIENTS).expect("a small number");
            let speed = speed(messages, start);
            let costs = cpu_time.each(self.postgres, messages);
            let kind = if is_stream { "on one stream" } else { "in separate calls" };
            println!("messages {kind:<17} {speed:>9.0} /s; {costs}");
        }
        server.stop().await;
    }

    /// Prints how long workers wait for lots if they request them at different times.
    async fn latency(&self) {
        let lots = 2 * u64::from(IDLE_WORKERS) * (DURATION.as_secs() + 1);
        let matches = 16 * i64::try_from(lots).expect("a small number");
        let edition = running(&self.pool, &name(), BOTS, matches, 16).await;
        let server = Server::start(self.postgres).await;
        let mut workers = Vec::new();
        for number in 0..IDLE_WORKERS {
            workers.push(Worker::connect(&server, &format!("idle-{number}"), 1).await);
        }
        let mut health = server.health().await;
        let until = Instant::now() + DURATION;
        let mut tasks = JoinSet::new();
        for (number, worker) in (0..).zip(workers) {
            tasks.spawn(worker.play_with_pauses(PLAY, Seed::of_text("idle").dice(number), until));
        }
        let mut empty = Latencies::default();
        while Instant::now() < until {
            empty
                .time(health.check(HealthCheckRequest::default()))
                .await
                .expect("the coordinator is healthy");
            tokio::time::sleep(PAUSE).await;
        }
        let mut waits = Latencies::default();
        for latencies in tasks.join_all().await {
            waits.merge(latencies);
        }
        println!("load of the machine {}", load());
        println!("from capacity to lot, {IDLE_WORKERS} workers: {waits}; target p99 10 ms");
        println!("an empty call at the same time:    {empty}");
        server.stop().await;
        // The remaining matches must not be played in the next measurement.
        let queue = Queue::new(self.pool.clone(), Games::built_in(), LeasePolicy::DEFAULT);
        assert!(queue.cancel(edition, NOW).await.expect("the edition can be cancelled"));
    }
}

/// Sends messages on one stream, and waits for each response.
async fn send_on_stream(channel: Channel) {
    let (outgoing, messages) = mpsc::channel(1);
    let mut client = ServerReflectionClient::new(channel);
    let request = || ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    outgoing.send(request()).await.expect("the channel has room");
    let responses = client.server_reflection_info(ReceiverStream::new(messages)).await;
    let mut responses = responses.expect("the service is available").into_inner();
    for _ in 0..MESSAGES {
        responses.message().await.expect("the stream is open").expect("a response");
        outgoing.send(request()).await.expect("the stream is open");
    }
}

/// Makes separate calls, and waits for each response.
async fn call_separately(channel: Channel) {
    let mut client = HealthClient::new(channel);
    for _ in 0..MESSAGES {
        client.check(HealthCheckRequest::default()).await.expect("the coordinator is healthy");
    }
}

/// Reports lots until no lot is left.
async fn work(mut worker: Worker, lots_left: Arc<AtomicI64>, is_over: watch::Sender<bool>) {
    let mut end = is_over.subscribe();
    worker.offer(SLOTS).await;
    loop {
        let message = tokio::select! {
            message = worker.receive() => message.expect("the coordinator runs"),
            _ = end.wait_for(|is_over| *is_over) => return,
        };
        match message {
            CoordinatorPayload::Lot(lot) => {
                worker.report(&lot).await;
                worker.offer(1).await;
            }
            // A shadow match is not a lot.
            CoordinatorPayload::ReportResponse(response) => {
                assert_eq!(response.status(), ReportStatus::Accepted);
                let lease = response.lease.and_then(|lease| Lease::try_from(lease).ok());
                let is_shadow = lease.expect("a lease").shadow().is_some();
                if !is_shadow && lots_left.fetch_sub(1, Ordering::Relaxed) == 1 {
                    is_over.send_replace(true);
                }
            }
            other => panic!("unexpected message {other:?}"),
        }
    }
}
