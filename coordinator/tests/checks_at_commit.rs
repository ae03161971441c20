//! Limits, deadlines and revocations are checked when a call commits, not when it starts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/grpc_client.rs"]
mod grpc_client;
mod support;

use arbiter_coordinator::access::Role;
use arbiter_proto::v1::coordinator_message::Payload as CoordinatorPayload;
use arbiter_proto::v1::submit_version_request::Part;
use arbiter_proto::v1::token_service_client::TokenServiceClient;
use arbiter_proto::v1::worker_message::Payload;
use arbiter_proto::v1::worker_service_client::WorkerServiceClient;
use arbiter_proto::v1::{
    CreateTokenRequest, CreateTournamentRequest, ReportStatus, RevokeTokenRequest, Submission,
    SubmitVersionRequest, WorkerMessage,
};
use grpc_client::{AuthChannel, Bearer, Server, TIMEOUT, Worker, report};
use support::test_clock::set_offset;
use time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

/// A submission whose stream is still open.
struct OpenSubmission {
    pieces: mpsc::Sender<SubmitVersionRequest>,
    call: JoinHandle<Result<i32, Status>>,
}

impl OpenSubmission {
    /// Starts the call and sends the bundle, but leaves the stream open.
    async fn begin(server: &Server, bot: &str) -> Self {
        let (pieces, piece_stream) = mpsc::channel(4);
        let submission =
            Submission { tournament: "cup".to_owned(), bot: bot.to_owned(), house: false };
        let opening = SubmitVersionRequest { part: Some(Part::Submission(submission)) };
        pieces.send(opening).await.unwrap();
        let bundle = SubmitVersionRequest { part: Some(Part::Bundle(bot.as_bytes().to_vec())) };
        pieces.send(bundle).await.unwrap();
        let mut client = server.bots(Some(Role::Player));
        let call = tokio::spawn(async move {
            let version = client.submit_version(ReceiverStream::new(piece_stream)).await?;
            Ok(version.into_inner().number)
        });
        // The coordinator has admitted the call when it has received both pieces.
        let wait = async {
            while pieces.capacity() < 4 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TIMEOUT, wait).await.unwrap();
        Self { pieces, call }
    }

    /// Ends the stream. Returns the number of the version.
    async fn end(self) -> Result<i32, Status> {
        drop(self.pieces);
        tokio::time::timeout(TIMEOUT, self.call).await.unwrap().unwrap()
    }
}

async fn create_tournament(server: &Server, submissions: &str) {
    let file = format!(
        "name = \"cup\"\ngame = \"gomoku\"\nstate = \"none\"\n[submissions]\n{submissions}\n"
    );
    let request = CreateTournamentRequest { file };
    server.tournaments(Some(Role::Organiser)).create_tournament(request).await.unwrap();
}

fn tokens(server: &Server) -> TokenServiceClient<AuthChannel> {
    let bearer = server.bearer(Some(Role::Admin));
    TokenServiceClient::with_interceptor(server.channel.clone(), bearer)
}

#[tokio::test]
async fn a_bundle_that_arrives_after_the_deadline_is_refused() {
    let server = Server::start().await;
    let closes = time::OffsetDateTime::now_utc() + Duration::minutes(30);
    let format = time::format_description::well_known::Rfc3339;
    create_tournament(&server, &format!("closes = \"{}\"", closes.format(&format).unwrap())).await;
    let in_time = OpenSubmission::begin(&server, "quick").await;
    assert_eq!(in_time.end().await.unwrap(), 1);
    let late = OpenSubmission::begin(&server, "slow").await;
    set_offset(&server.database.pool, Duration::HOUR).await;
    let status = late.end().await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains("entry to cup closed at"), "{}", status.message());
    assert_eq!(server.database.number("SELECT count(*) FROM bots").await, 1);
    server.stop().await;
}

#[tokio::test]
async fn concurrent_submissions_obey_the_owners_limit() {
    for (rules, limit) in [("per_hour = 100", 8), ("per_hour = 3\npreflight = false", 3)] {
        let server = Server::start().await;
        create_tournament(&server, rules).await;
        let mut submissions = Vec::new();
        for bot in 0..20 {
            submissions.push(OpenSubmission::begin(&server, &format!("bot-{bot}")).await);
        }
        let mut calls: JoinSet<_> = submissions.into_iter().map(OpenSubmission::end).collect();
        let mut accepted = 0;
        while let Some(result) = calls.join_next().await {
            match result.unwrap() {
                Ok(_) => accepted += 1,
                Err(status) => assert_eq!(status.code(), Code::ResourceExhausted, "{status}"),
            }
        }
        assert_eq!(accepted, limit, "{rules}");
        assert_eq!(server.database.number("SELECT count(*) FROM versions").await, limit);
        server.stop().await;
    }
}

#[tokio::test]
async fn a_revoked_token_ends_its_stream_and_its_reports_are_refused() {
    let server = Server::start().await;
    server.create_tournament("cup").await;
    server.start_edition("cup").await;
    let request = CreateTokenRequest {
        role: "worker".to_owned(),
        name: "rack".to_owned(),
        ..CreateTokenRequest::default()
    };
    let token = tokens(&server).create_token(request).await.unwrap().into_inner();
    let bearer = Bearer(Some(format!("Bearer {}", token.token).parse().unwrap()));
    let client = WorkerServiceClient::with_interceptor(server.channel.clone(), bearer);
    let rules = arbiter_games::RULES_VERSION;
    let mut worker = Worker::connect_with(client, "rack", rules).await.unwrap();
    worker.receive().await;
    let [reported_lot, lost_lot] = [worker.lot().await, worker.lot().await];
    assert_eq!(worker.report(report(&reported_lot)).await, ReportStatus::Accepted);
    let id = token.id;
    tokens(&server).revoke_token(RevokeTokenRequest { id, ..Default::default() }).await.unwrap();
    // Its leases are returned at once, without a fault.
    let leased = "SELECT count(*) FROM lots WHERE state = 'leased'";
    assert_eq!(server.database.number(leased).await, 0);
    // A report before the coordinator closes the stream has no effect. The send fails if the
    // stream is already closed.
    let message = WorkerMessage { payload: Some(Payload::Report(report(&lost_lot))) };
    drop(worker.outgoing.send(message).await);
    let status_at_end = loop {
        match tokio::time::timeout(TIMEOUT, worker.incoming.message()).await.unwrap() {
            Ok(message) => {
                let payload = message.unwrap().payload.unwrap();
                let CoordinatorPayload::ReportResponse(response) = payload else {
                    panic!("expected a report response or the end of the stream")
                };
                assert_eq!(response.status(), ReportStatus::Late);
            }
            Err(status) => break status,
        }
    };
    assert_eq!(status_at_end.code(), Code::Unauthenticated);
    assert_eq!(server.database.number("SELECT count(*) FROM results").await, 1);
    assert_eq!(server.database.number("SELECT count(*) FROM faults").await, 0);
    let mut other = Worker::new(&server, "other").await;
    // The accepted match may be audited: another worker plays it again.
    let reported = reported_lot.lease.unwrap().lot;
    let mut lot = other.lot().await.lease.unwrap().lot;
    if lot == reported {
        lot = other.lot().await.lease.unwrap().lot;
    }
    assert_eq!(lot, lost_lot.lease.unwrap().lot);
    server.stop().await;
}
