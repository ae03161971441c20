//! Leases and reports over gRPC with durable commits, compared with a raw `COPY` and single-row
//! inserts of the same rows in the same Postgres; and how long a worker waits for a lot. All in one
//! run: `cargo bench -p arbiter-coordinator --bench grpc`.
//!
//! Coordinator and workers are one process and talk over TCP; it shares its cores with Postgres.
//! Workers play nothing, but follow the protocol of real ones: each lot is reported separately, and
//! its slot offers capacity again at once. Standings are counted meanwhile; the rest of the count
//! is timed separately. Speeds depend on the load of the machine, so there are several rounds with
//! ratios in each.

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

use support::measure::{Latencies, Spent, load, median, speed};
use support::server::{Server, Worker};
use support::{NOW, edition, name, raw_copy, running, running_audited, settle, single_inserts};

mod support;

/// Rounds of measurement.
const ROUNDS: usize = 3;
/// Bots of an edition.
const BOTS: i32 = 1000;
/// Matches of an edition with lots of one.
const FEW: i64 = 100_000;
/// Matches of an edition with large lots.
const MANY: i64 = 1_000_000;
/// Workers that are always busy.
const BUSY: usize = 16;
/// Slots of each: together they fill several batches of reports.
const SLOTS: u32 = 96;
/// Workers that ask at different times.
const CALM: u32 = 200;
/// The approximate time to play their lots. Real lots take longer, so real workers ask less often.
const PLAY: Duration = Duration::from_secs(1);
/// How long these workers are measured.
const WATCHED: Duration = Duration::from_secs(15);
/// Concurrent clients in the comparison of a stream with separate calls.
const TALKERS: usize = 16;
/// Messages of each client.
const SAID: i64 = 2000;
/// The interval of empty calls meanwhile.
const EMPTY: Duration = Duration::from_millis(10);

fn main() {
    support::run(async |postgres, pool| {
        let bench = Bench { postgres, pool };
        // First: the server writes back what a flood of results changed long after it is over.
        bench.latency().await;
        bench.stream_or_calls().await;
        let mut speeds: [Vec<_>; 2] = Default::default();
        for _ in 0..ROUNDS {
            for (of_size, measured) in speeds.iter_mut().zip(bench.throughput().await) {
                of_size.push(measured);
            }
        }
        for (size, of_size) in [1, 64].into_iter().zip(speeds) {
            let [speed, of_copy] =
                [0, 1].map(|which| median(of_size.iter().map(|pair| pair[which]).collect()));
            println!("median, lots of {size:>2}: {speed:.0} matches/s, {of_copy:.2} of COPY");
        }
        // Last, because leftover matches to repeat would be handed out with later ones.
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
        let floor = edition(&self.pool, &name(), BOTS).await;
        let copy = raw_copy(&self.pool, floor).await;
        println!("  raw COPY of results              {copy:>9.0} rows/s");
        let floor = edition(&self.pool, &name(), BOTS).await;
        let inserts = single_inserts(&self.pool, floor, 1).await;
        println!("  single-row inserts, 1 session    {inserts:>9.0} rows/s");
        let mut speeds = [[0.0; 2]; 2];
        let sizes = [(1, FEW, 30_000.0), (64, MANY, 250_000.0)];
        for (measured, (per_lot, matches, target)) in speeds.iter_mut().zip(sizes) {
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
            *measured = [speed, speed / copy];
        }
        speeds
    }

    /// Prints the speed of an edition in which one match in a hundred is played twice.
    async fn shadows(&self) {
        let audit = Audit { replay: Share::percent(0), ..Audit::OFFICIAL };
        settle(&self.pool).await;
        let edition = running_audited(&self.pool, &name(), audit, BOTS, FEW, 1).await;
        let (speed, costs) = self.play(edition, FEW, 1).await;
        println!("lots of  1, {} played twice: {speed:.0} matches/s; {costs}", audit.shadow);
    }

    /// Lets busy workers play an edition: the speed in matches a second, and its cost.
    async fn play(&self, edition: EditionId, matches: i64, per_lot: i32) -> (f64, String) {
        let server = Server::start(self.postgres).await;
        let mut workers = Vec::new();
        for number in 0..BUSY {
            workers
                .push(Worker::connect(&server, &format!("busy-{edition}-{number}"), SLOTS).await);
        }
        let left = Arc::new(AtomicI64::new(matches / i64::from(per_lot)));
        let over = watch::Sender::new(false);
        let mut tasks = JoinSet::new();
        let spent = Spent::so_far(self.postgres);
        let begin = Instant::now();
        for worker in workers {
            tasks.spawn(work(worker, Arc::clone(&left), over.clone()));
        }
        tasks.join_all().await;
        let reported = speed(matches, begin);
        let costs = spent.each(self.postgres, matches);
        // Wait here for the count, so that the next measurement does not have to.
        while editions::counted(&self.pool, edition).await.expect("it is there") < matches {
            tokio::time::sleep(EMPTY).await;
        }
        let counted = speed(matches, begin);
        server.stop().await;
        (reported, format!("{costs}; {counted:.0}/s until all are counted"))
    }

    /// Prints what a message and its answer cost on one open stream, as workers use it, and as
    /// separate calls. The messages are empty of work, so both ways do the same.
    async fn stream_or_calls(&self) {
        let server = Server::start(self.postgres).await;
        for streamed in [true, false] {
            let mut tasks = JoinSet::new();
            let mut channels = Vec::new();
            for _ in 0..TALKERS {
                channels.push(server.channel().await);
            }
            let spent = Spent::so_far(self.postgres);
            let begin = Instant::now();
            for channel in channels {
                if streamed {
                    tasks.spawn(send_on_stream(channel));
                } else {
                    tasks.spawn(call_separately(channel));
                }
            }
            tasks.join_all().await;
            let words = SAID * i64::try_from(TALKERS).expect("a small number");
            let speed = speed(words, begin);
            let costs = spent.each(self.postgres, words);
            let how = if streamed { "on one stream" } else { "in separate calls" };
            println!("messages {how:<17} {speed:>9.0} /s; {costs}");
        }
        server.stop().await;
    }

    /// Prints how long workers wait that ask at different times.
    async fn latency(&self) {
        let lots = 2 * u64::from(CALM) * (WATCHED.as_secs() + 1);
        let matches = 16 * i64::try_from(lots).expect("a small number");
        let edition = running(&self.pool, &name(), BOTS, matches, 16).await;
        let server = Server::start(self.postgres).await;
        let mut workers = Vec::new();
        for number in 0..CALM {
            workers.push(Worker::connect(&server, &format!("calm-{number}"), 1).await);
        }
        let mut health = server.health().await;
        let until = Instant::now() + WATCHED;
        let mut tasks = JoinSet::new();
        for (number, worker) in (0..).zip(workers) {
            tasks.spawn(worker.play_calmly(PLAY, Seed::of_text("calm").dice(number), until));
        }
        let mut empty = Latencies::default();
        while Instant::now() < until {
            empty.time(health.check(HealthCheckRequest::default())).await.expect("it is healthy");
            tokio::time::sleep(EMPTY).await;
        }
        let mut waits = Latencies::default();
        for waited in tasks.join_all().await {
            waits.merge(waited);
        }
        println!("load of the machine {}", load());
        println!("from room to lot, {CALM} workers: {waits}; target p99 10 ms");
        println!("an empty call meanwhile:       {empty}");
        server.stop().await;
        // What is left of it is not to be played with what is measured next.
        let queue = Queue::new(self.pool.clone(), Games::built_in(), LeasePolicy::DEFAULT);
        assert!(queue.cancel(edition, NOW).await.expect("it can be given up"));
    }
}

/// Sends messages on one stream, and waits for each answer.
async fn send_on_stream(channel: Channel) {
    let (outgoing, messages) = mpsc::channel(1);
    let mut client = ServerReflectionClient::new(channel);
    let ask = || ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    outgoing.send(ask()).await.expect("there is room");
    let heard = client.server_reflection_info(ReceiverStream::new(messages)).await;
    let mut heard = heard.expect("it is served").into_inner();
    for _ in 0..SAID {
        heard.message().await.expect("the stream holds").expect("an answer to each");
        outgoing.send(ask()).await.expect("the stream holds");
    }
}

/// Makes separate calls, and waits for each answer.
async fn call_separately(channel: Channel) {
    let mut client = HealthClient::new(channel);
    for _ in 0..SAID {
        client.check(HealthCheckRequest::default()).await.expect("it is healthy");
    }
}

/// Plays lots until none is left.
async fn work(mut worker: Worker, left: Arc<AtomicI64>, over: watch::Sender<bool>) {
    let mut ended = over.subscribe();
    worker.offer(SLOTS).await;
    loop {
        let heard = tokio::select! {
            heard = worker.receive() => heard.expect("the coordinator goes on"),
            _ = ended.wait_for(|over| *over) => return,
        };
        match heard {
            CoordinatorPayload::Lot(lot) => {
                worker.report(&lot).await;
                worker.offer(1).await;
            }
            // The second play of a match is no lot.
            CoordinatorPayload::ReportResponse(verdict) => {
                assert_eq!(verdict.status(), ReportStatus::Accepted);
                let lease = verdict.lease.and_then(|lease| Lease::try_from(lease).ok());
                let is_shadow = lease.expect("a lease").shadow().is_some();
                if !is_shadow && left.fetch_sub(1, Ordering::Relaxed) == 1 {
                    over.send_replace(true);
                }
            }
            other => panic!("{other:?} was not asked for"),
        }
    }
}
