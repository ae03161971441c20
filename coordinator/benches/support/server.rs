//! A coordinator that serves over TCP in this process, and workers that report without playing.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use arbiter_coordinator::access::Role;
use arbiter_coordinator::coordinator::{Config, Coordinator, Records};
use arbiter_coordinator::postgres::Postgres;
use arbiter_coordinator::queue::LeasePolicy;
use arbiter_games::{Dice, Games, RULES_VERSION};
use arbiter_proto::ids::MatchNumber;
use arbiter_proto::v1::coordinator_message::Payload as CoordinatorPayload;
use arbiter_proto::v1::worker_message::Payload;
use arbiter_proto::v1::worker_service_client::WorkerServiceClient;
use arbiter_proto::v1::{
    Capacity, CoordinatorMessage, Hello, Lot, MatchResult, Report, ReportStatus, SeatResult,
    WorkerMessage,
};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Request, Streaming};
use tonic_health::pb::health_client::HealthClient;

use super::measure::Latencies;
use super::{CONNECTIONS, result};

/// A running coordinator.
pub(crate) struct Server {
    address: String,
    /// The address of the web pages.
    pub(crate) pages: SocketAddr,
    token: MetadataValue<Ascii>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

/// The configuration of measured coordinators.
pub(crate) fn config() -> Config {
    Config {
        games: Games::built_in(),
        tls: None,
        lease_policy: LeasePolicy::DEFAULT,
        connections: CONNECTIONS,
        proxies: Vec::new(),
        records: Records::default(),
    }
}

impl Server {
    pub(crate) async fn start(postgres: &Postgres) -> Self {
        let coordinator = Coordinator::prepare(postgres.options("postgres"), config()).await;
        let coordinator = coordinator.expect("the database can be used");
        let secret = coordinator.create_token(Role::Worker, "bench").await.expect("a token");
        let token = format!("Bearer {}", secret.text()).parse().expect("letters and digits");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("the port is bound"));
        let web = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let pages = web.local_addr().expect("the port is bound");
        let coordinator = coordinator.with_web(web);
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(async move {
            coordinator
                .run(listener, async { drop(stopped.await) })
                .await
                .expect("the coordinator serves");
        });
        Self { address, pages, token, stop, serving }
    }

    /// A connection.
    pub(crate) async fn channel(&self) -> Channel {
        let endpoint = Channel::from_shared(self.address.clone()).expect("an address");
        endpoint.tcp_nodelay(true).connect().await.expect("the coordinator answers")
    }

    /// A client for empty calls.
    pub(crate) async fn health(&self) -> HealthClient<Channel> {
        HealthClient::new(self.channel().await)
    }

    pub(crate) async fn stop(self) {
        self.stop.send(()).expect("the coordinator runs");
        self.serving.await.expect("the coordinator ends");
    }
}

/// A connected worker.
pub(crate) struct Worker {
    outgoing: mpsc::Sender<WorkerMessage>,
    incoming: Streaming<CoordinatorMessage>,
}

impl Worker {
    /// A worker over a new connection, with at most `slots` slots.
    pub(crate) async fn connect(server: &Server, name: &str, slots: u32) -> Self {
        // Each slot sends at most one report and one capacity message at a time, so sends never
        // wait.
        let (outgoing, messages) = mpsc::channel(2 * slots as usize + 2);
        let hello = Hello {
            name: name.to_owned(),
            build: "bench".to_owned(),
            sandbox: "none".to_owned(),
            rules: RULES_VERSION.to_owned(),
            slots,
            runtimes: Vec::new(),
        };
        let mut request = Request::new(ReceiverStream::new(messages));
        request.metadata_mut().insert("authorization", server.token.clone());
        let mut client = WorkerServiceClient::new(server.channel().await);
        let hello = WorkerMessage { payload: Some(Payload::Hello(hello)) };
        outgoing.send(hello).await.expect("the channel has room");
        let stream = client.work(request).await.expect("the worker is admitted");
        let mut worker = Self { outgoing, incoming: stream.into_inner() };
        let Some(CoordinatorPayload::Welcome(_)) = worker.receive().await else {
            panic!("the first message is not a welcome");
        };
        worker
    }

    async fn send(&self, payload: Payload) {
        self.outgoing
            .send(WorkerMessage { payload: Some(payload) })
            .await
            .expect("the coordinator listens");
    }

    /// Offers capacity for this many lots.
    pub(crate) async fn offer(&self, slots: u32) {
        self.send(Payload::Capacity(Capacity { slots })).await;
    }

    /// Reports a lot.
    pub(crate) async fn report(&self, lot: &Lot) {
        self.send(Payload::Report(report(lot))).await;
    }

    /// Plays one lot after the other until `until`, and returns how long it waited for each lot. A
    /// lot takes a random time between 0.5 and 1.5 of `play`.
    pub(crate) async fn play_with_pauses(
        mut self,
        play: Duration,
        mut dice: Dice,
        until: Instant,
    ) -> Latencies {
        let mut play_time = move || play / 2 + play * dice.below(1000) / 1000;
        let mut waits = Latencies::default();
        // The workers begin at different times.
        tokio::time::sleep(play_time()).await;
        while Instant::now() < until {
            let lot = waits.time(self.lot()).await;
            tokio::time::sleep(play_time()).await;
            self.report(&lot).await;
        }
        waits
    }

    /// Requests a lot and waits for it.
    async fn lot(&mut self) -> Lot {
        self.offer(1).await;
        loop {
            match self.receive().await.expect("the coordinator runs") {
                CoordinatorPayload::Lot(lot) => return lot,
                CoordinatorPayload::ReportResponse(response) => {
                    assert_eq!(response.status(), ReportStatus::Accepted);
                }
                other => panic!("unexpected message {other:?}"),
            }
        }
    }

    /// The next message of the coordinator. None at the end of the stream. Cancel safe.
    pub(crate) async fn receive(&mut self) -> Option<CoordinatorPayload> {
        let message = self.incoming.message().await.expect("the stream is open")?;
        Some(message.payload.expect("every message has a payload"))
    }
}

/// The report of a lot.
fn report(lot: &Lot) -> Report {
    let results = lot.matches.iter().map(|planned| {
        let match_result = result(MatchNumber(planned.number));
        let seat = |score: &i64| SeatResult { score: vec![*score], ..SeatResult::default() };
        MatchResult {
            number: planned.number,
            seats: match_result.scores.iter().map(seat).collect(),
            transcript: match_result.transcript.to_vec(),
            wall_ms: match_result.wall_ms,
            record: Vec::new(),
        }
    });
    let level = "A".to_owned();
    let trace = String::new();
    Report { lease: lot.lease, results: results.collect(), level, trial: None, trace }
}
