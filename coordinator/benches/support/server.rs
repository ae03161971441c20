//! A coordinator that serves over TCP in this process, and workers that play nothing.

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

/// A coordinator that serves.
pub(crate) struct Server {
    address: String,
    /// Where the web pages are.
    pub(crate) pages: SocketAddr,
    token: MetadataValue<Ascii>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

/// What coordinators are told that are measured.
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
        let address = format!("http://{}", listener.local_addr().expect("it is bound"));
        let web = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let pages = web.local_addr().expect("it is bound");
        let coordinator = coordinator.with_web(web);
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(async move {
            coordinator.run(listener, async { drop(stopped.await) }).await.expect("it serves");
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
        self.stop.send(()).expect("it waits for that");
        self.serving.await.expect("it ends");
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
        // Each slot sends at most one report and one offer at a time, so sends never wait.
        let (outgoing, messages) = mpsc::channel(2 * slots as usize + 2);
        let hello = Hello {
            name: name.to_owned(),
            build: "bench".to_owned(),
            sandbox: "none".to_owned(),
            rules: RULES_VERSION.to_owned(),
            slots,
        };
        let mut request = Request::new(ReceiverStream::new(messages));
        request.metadata_mut().insert("authorization", server.token.clone());
        let mut client = WorkerServiceClient::new(server.channel().await);
        let hello = WorkerMessage { payload: Some(Payload::Hello(hello)) };
        outgoing.send(hello).await.expect("there is room");
        let stream = client.work(request).await.expect("a worker may work");
        let mut worker = Self { outgoing, incoming: stream.into_inner() };
        let Some(CoordinatorPayload::Welcome(_)) = worker.receive().await else {
            panic!("a welcome comes first");
        };
        worker
    }

    async fn send(&self, payload: Payload) {
        self.outgoing
            .send(WorkerMessage { payload: Some(payload) })
            .await
            .expect("the coordinator listens");
    }

    /// Offers room for so many lots.
    pub(crate) async fn offer(&self, slots: u32) {
        self.send(Payload::Capacity(Capacity { slots })).await;
    }

    /// Reports a lot.
    pub(crate) async fn report(&self, lot: &Lot) {
        self.send(Payload::Report(report(lot))).await;
    }

    /// Plays one lot after the other until then, each for `play` or half as long or half as long
    /// again, and says how long each took to come.
    pub(crate) async fn play_calmly(
        mut self,
        play: Duration,
        mut dice: Dice,
        until: Instant,
    ) -> Latencies {
        let mut rest = move || play / 2 + play * dice.below(1000) / 1000;
        let mut waits = Latencies::default();
        // Workers do not begin all at once.
        tokio::time::sleep(rest()).await;
        while Instant::now() < until {
            let lot = waits.time(self.lot()).await;
            tokio::time::sleep(rest()).await;
            self.report(&lot).await;
        }
        waits
    }

    /// Asks for a lot.
    async fn lot(&mut self) -> Lot {
        self.offer(1).await;
        loop {
            match self.receive().await.expect("the coordinator goes on") {
                CoordinatorPayload::Lot(lot) => return lot,
                CoordinatorPayload::ReportResponse(verdict) => {
                    assert_eq!(verdict.status(), ReportStatus::Accepted);
                }
                other => panic!("{other:?} was not asked for"),
            }
        }
    }

    /// What the coordinator says next; nothing at the end. It may be dropped at any moment.
    pub(crate) async fn receive(&mut self) -> Option<CoordinatorPayload> {
        let message = self.incoming.message().await.expect("the stream holds")?;
        Some(message.payload.expect("every message says something"))
    }
}

/// The report of a lot.
fn report(lot: &Lot) -> Report {
    let results = lot.matches.iter().map(|planned| {
        let came = result(MatchNumber(planned.number));
        let seat = |score: &i64| SeatResult { score: vec![*score], ..SeatResult::default() };
        MatchResult {
            number: planned.number,
            seats: came.scores.iter().map(seat).collect(),
            transcript: came.transcript.to_vec(),
            wall_ms: came.wall_ms,
            record: Vec::new(),
        }
    });
    let level = "A".to_owned();
    let trace = String::new();
    Report { lease: lot.lease, results: results.collect(), level, trial: None, trace }
}
