//! A coordinator on a test database, and gRPC clients: organisers, players, and workers that report
//! invented results.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::time::Duration;

use arbiter_coordinator::access::Role;
use arbiter_coordinator::coordinator::{Config, Coordinator};
use arbiter_coordinator::queue::LeasePolicy;
use arbiter_games::RULES_VERSION;
use arbiter_proto::v1::bot_service_client::BotServiceClient;
use arbiter_proto::v1::coordinator_message::Payload as CoordinatorPayload;
use arbiter_proto::v1::submit_version_request::Part;
use arbiter_proto::v1::tournament_service_client::TournamentServiceClient;
use arbiter_proto::v1::worker_message::Payload;
use arbiter_proto::v1::worker_service_client::WorkerServiceClient;
use arbiter_proto::v1::{
    Capacity, CreateTournamentRequest, Edition, Hello, Lot, MatchResult, Report, ReportStatus,
    SeatResult, StartEditionRequest, Submission, SubmitVersionRequest, WorkerMessage,
};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};

use super::support::{Database, config};

/// The time limit of each wait.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Adds a token to each call; `None` adds no token.
#[derive(Clone)]
pub(crate) struct Bearer(pub(crate) Option<MetadataValue<Ascii>>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

/// A connection whose calls carry a token.
pub(crate) type AuthChannel = InterceptedService<Channel, Bearer>;

/// A running coordinator on a test database.
pub(crate) struct Server {
    address: String,
    pub(crate) channel: Channel,
    /// One token for each role, in the order of [`Role::ALL`].
    tokens: [String; 4],
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    pub(crate) database: Database,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(LeasePolicy::DEFAULT).await
    }

    pub(crate) async fn start_with(lease_policy: LeasePolicy) -> Self {
        let database = Database::new().await;
        let config = Config { lease_policy, ..config() };
        let coordinator = Coordinator::prepare(database.options(), config).await.unwrap();
        assert!(coordinator.has_no_tokens().await.unwrap());
        let mut tokens = Vec::new();
        for role in Role::ALL {
            let secret = coordinator.create_token(role, role.as_str()).await.unwrap();
            assert!(coordinator.is_valid_token(&secret).await.unwrap());
            tokens.push(secret.text().to_owned());
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            coordinator.run(listener, async { drop(stopped.await) }).await.unwrap();
        });
        let channel = Channel::from_shared(address.clone()).unwrap().connect().await.unwrap();
        let tokens = tokens.try_into().unwrap();
        Self { address, channel, tokens, stop: Some(stop), task, database }
    }

    /// A second connection to this coordinator.
    pub(crate) async fn another_connection(&self) -> Channel {
        Channel::from_shared(self.address.clone()).unwrap().connect().await.unwrap()
    }

    /// The token of a role; no token if the role is `None`.
    pub(crate) fn bearer(&self, role: Option<Role>) -> Bearer {
        Bearer(role.map(|role| {
            let index = Role::ALL.iter().position(|other| *other == role).unwrap();
            format!("Bearer {}", self.tokens[index]).parse().unwrap()
        }))
    }

    pub(crate) fn tournaments(&self, role: Option<Role>) -> TournamentServiceClient<AuthChannel> {
        TournamentServiceClient::with_interceptor(self.channel.clone(), self.bearer(role))
    }

    pub(crate) fn workers(&self, role: Option<Role>) -> WorkerServiceClient<AuthChannel> {
        WorkerServiceClient::with_interceptor(self.channel.clone(), self.bearer(role))
    }

    pub(crate) fn bots(&self, role: Option<Role>) -> BotServiceClient<AuthChannel> {
        BotServiceClient::with_interceptor(self.channel.clone(), self.bearer(role))
    }

    /// Creates a tournament of gomoku with three house bots.
    pub(crate) async fn create_tournament(&self, name: &str) {
        // Without bot state no match waits for another, so all lots can be leased at once.
        let file = format!(
            "name = \"{name}\"\ngame = \"gomoku\"\nstate = \"none\"\n\
             [public]\nreplays = \"never\"\n"
        );
        let request = CreateTournamentRequest { file };
        self.tournaments(Some(Role::Organiser)).create_tournament(request).await.unwrap();
        for bot in ["one", "two", "three"] {
            self.submit(Role::Organiser, name, bot, true, b"a bundle").await.unwrap();
        }
    }

    /// Submits a version. Returns its number.
    pub(crate) async fn submit(
        &self,
        role: Role,
        tournament: &str,
        bot: &str,
        house: bool,
        bundle: &[u8],
    ) -> Result<i32, Status> {
        let submission =
            Submission { tournament: tournament.to_owned(), bot: bot.to_owned(), house };
        let parts = [Part::Submission(submission), Part::Bundle(bundle.to_vec())];
        let requests = parts.map(|part| SubmitVersionRequest { part: Some(part) });
        let version = self.bots(Some(role)).submit_version(tokio_stream::iter(requests)).await?;
        Ok(version.into_inner().number)
    }

    pub(crate) async fn start_edition(&self, name: &str) -> Edition {
        let request = StartEditionRequest { tournament: name.to_owned(), fresh: false };
        let edition = self.tournaments(Some(Role::Organiser)).start_edition(request).await;
        edition.unwrap().into_inner()
    }

    /// Stops the coordinator. Returns its database, which still exists.
    pub(crate) async fn stop(mut self) -> Database {
        self.stop.take().unwrap().send(()).unwrap();
        tokio::time::timeout(TIMEOUT, self.task).await.unwrap().unwrap();
        self.database
    }
}

/// One stream of a worker that plays no matches.
pub(crate) struct Worker {
    pub(crate) outgoing: mpsc::Sender<WorkerMessage>,
    pub(crate) incoming: Streaming<arbiter_proto::v1::CoordinatorMessage>,
}

impl Worker {
    /// Connects as a worker of this name and version of the rules.
    pub(crate) async fn connect(server: &Server, name: &str, rules: &str) -> Result<Self, Status> {
        Self::connect_with(server.workers(Some(Role::Worker)), name, rules).await
    }

    /// Connects with the token of `client`.
    pub(crate) async fn connect_with(
        mut client: WorkerServiceClient<AuthChannel>,
        name: &str,
        rules: &str,
    ) -> Result<Self, Status> {
        let (outgoing, messages) = mpsc::channel(16);
        let hello = Hello {
            name: name.to_owned(),
            build: "test".to_owned(),
            sandbox: "none".to_owned(),
            rules: rules.to_owned(),
            slots: 3,
        };
        outgoing.send(WorkerMessage { payload: Some(Payload::Hello(hello)) }).await.unwrap();
        let stream = client.work(ReceiverStream::new(messages)).await?;
        Ok(Self { outgoing, incoming: stream.into_inner() })
    }

    /// Connects with the current version of the rules, and receives the welcome.
    pub(crate) async fn new(server: &Server, name: &str) -> Self {
        let mut worker = Self::connect(server, name, RULES_VERSION).await.unwrap();
        let CoordinatorPayload::Welcome(_) = worker.receive().await else {
            panic!("expected a welcome first")
        };
        worker
    }

    pub(crate) async fn send(&self, payload: Payload) {
        self.outgoing.send(WorkerMessage { payload: Some(payload) }).await.unwrap();
    }

    pub(crate) async fn receive(&mut self) -> CoordinatorPayload {
        let message = tokio::time::timeout(TIMEOUT, self.incoming.message()).await.unwrap();
        message.unwrap().unwrap().payload.unwrap()
    }

    /// Announces one free slot, and receives a lot.
    pub(crate) async fn lot(&mut self) -> Lot {
        self.send(Payload::Capacity(Capacity { slots: 1 })).await;
        let CoordinatorPayload::Lot(lot) = self.receive().await else { panic!("expected a lot") };
        lot
    }

    /// Sends a report, and receives its status.
    pub(crate) async fn report(&mut self, report: Report) -> ReportStatus {
        self.send(Payload::Report(report)).await;
        let CoordinatorPayload::ReportResponse(response) = self.receive().await else {
            panic!("expected a report response")
        };
        response.status()
    }
}

/// The report of a lot in which the first seat always wins.
pub(crate) fn report(lot: &Lot) -> Report {
    let result = |points| SeatResult { score: vec![points], ..SeatResult::default() };
    let results = lot.matches.iter().map(|planned| MatchResult {
        number: planned.number,
        seats: vec![result(2), result(0)],
        transcript: vec![7; 32],
        wall_ms: 5,
        record: b"a record".to_vec(),
    });
    let level = "A'".to_owned();
    let trace = String::new();
    Report { lease: lot.lease, results: results.collect(), level, trial: None, trace }
}
