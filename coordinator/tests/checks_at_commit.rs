//! Limits, deadlines and revocations are checked at the commit, not at the start of a call.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "support/grpc_client.rs"]
mod grpc_client;
mod support;

use arbiter_coordinator::access::Role;
use arbiter_coordinator::db::lots::LotState;
use arbiter_proto::v1::submit_version_request::Part;
use arbiter_proto::v1::token_service_client::TokenServiceClient;
use arbiter_proto::v1::worker_message::Payload;
use arbiter_proto::v1::{
    CreateTokenRequest, CreateTournamentRequest, ReportStatus, RevokeTokenRequest, Submission,
    SubmitVersionRequest,
};
use grpc_client::{Bearer, Link, PATIENCE, Server, Worker, report};
use support::test_clock::set_clock;
use time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

/// A submission with an open stream, before its bundle is sent.
struct Submitting {
    pieces: mpsc::Sender<SubmitVersionRequest>,
    ended: JoinHandle<Result<i32, Status>>,
}

impl Submitting {
    async fn begin(server: &Server, bot: &str) -> Self {
        let (pieces, sent) = mpsc::channel(4);
        let submission =
            Submission { tournament: "cup".to_owned(), bot: bot.to_owned(), house: false };
        let opening = SubmitVersionRequest { part: Some(Part::Submission(submission)) };
        pieces.send(opening).await.unwrap();
        let bundle = SubmitVersionRequest { part: Some(Part::Bundle(bot.as_bytes().to_vec())) };
        pieces.send(bundle).await.unwrap();
        let mut client = server.bots(Some(Role::Player));
        let ended = tokio::spawn(async move {
            let submitted = client.submit_version(ReceiverStream::new(sent)).await;
            submitted.map(|version| version.into_inner().number)
        });
        // The coordinator has let it in when it has taken the pieces.
        let taken = async {
            while pieces.capacity() < 4 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, taken).await.unwrap();
        Self { pieces, ended }
    }

    async fn end(self) -> Result<i32, Status> {
        drop(self.pieces);
        tokio::time::timeout(PATIENCE, self.ended).await.unwrap().unwrap()
    }
}

async fn tournament(server: &Server, submissions: &str) {
    let file = format!(
        "name = \"cup\"\ngame = \"gomoku\"\nstate = \"none\"\n[submissions]\n{submissions}\n"
    );
    let request = CreateTournamentRequest { file };
    server.tournaments(Some(Role::Organiser)).create_tournament(request).await.unwrap();
}

fn tokens(server: &Server) -> TokenServiceClient<Link> {
    let bearer = server.bearer(Some(Role::Admin));
    TokenServiceClient::with_interceptor(server.channel.clone(), bearer)
}

#[tokio::test]
async fn a_bundle_that_arrives_after_the_deadline_does_not_enter() {
    let server = Server::start().await;
    let closes = time::OffsetDateTime::now_utc() + Duration::minutes(30);
    let format = time::format_description::well_known::Rfc3339;
    tournament(&server, &format!("closes = \"{}\"", closes.format(&format).unwrap())).await;
    let in_time = Submitting::begin(&server, "quick").await;
    assert_eq!(in_time.end().await.unwrap(), 1);
    let late = Submitting::begin(&server, "slow").await;
    set_clock(&server.database.pool, Duration::HOUR).await;
    let refused = late.end().await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("entry to cup closed at"), "{}", refused.message());
    assert_eq!(server.database.number("SELECT count(*) FROM bots").await, 1);
    server.stop().await;
}

#[tokio::test]
async fn concurrent_submissions_obey_the_owners_limit() {
    for (rules, most) in [("per_hour = 100", 8), ("per_hour = 3\npreflight = false", 3)] {
        let server = Server::start().await;
        tournament(&server, rules).await;
        let mut open = Vec::new();
        for bot in 0..20 {
            open.push(Submitting::begin(&server, &format!("bot-{bot}")).await);
        }
        let mut ending: JoinSet<_> = open.into_iter().map(Submitting::end).collect();
        let mut accepted = 0;
        while let Some(ended) = ending.join_next().await {
            match ended.unwrap() {
                Ok(_) => accepted += 1,
                Err(refused) => assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}"),
            }
        }
        assert_eq!(accepted, most, "{rules}");
        assert_eq!(server.database.number("SELECT count(*) FROM versions").await, most);
        server.stop().await;
    }
}

#[tokio::test]
async fn a_revoked_token_ends_its_stream_and_its_reports_are_refused() {
    let server = Server::start().await;
    server.tournament("cup").await;
    server.edition("cup").await;
    let request = CreateTokenRequest {
        role: "worker".to_owned(),
        name: "rack".to_owned(),
        ..CreateTokenRequest::default()
    };
    let made = tokens(&server).create_token(request).await.unwrap().into_inner();
    let bearer = Bearer(Some(format!("Bearer {}", made.token).parse().unwrap()));
    let client = arbiter_proto::v1::worker_service_client::WorkerServiceClient::with_interceptor(
        server.channel.clone(),
        bearer,
    );
    let rules = arbiter_games::RULES_VERSION;
    let mut worker = Worker::call(client, "rack", rules).await.unwrap();
    worker.receive().await;
    let [counted, lost] = [worker.lot().await, worker.lot().await];
    assert_eq!(worker.report(report(&counted)).await, ReportStatus::Accepted);
    let id = made.id;
    tokens(&server).revoke_token(RevokeTokenRequest { id }).await.unwrap();
    // Its leases are free at once, without a fault.
    let leased = "SELECT count(*) FROM lots WHERE state = 'leased'";
    assert_eq!(server.database.number(leased).await, 0);
    // What it says before it is sent away has no effect; it may be gone already.
    let message =
        arbiter_proto::v1::WorkerMessage { payload: Some(Payload::Report(report(&lost))) };
    drop(worker.outgoing.send(message).await);
    let refused = loop {
        match tokio::time::timeout(PATIENCE, worker.incoming.message()).await.unwrap() {
            Ok(message) => {
                let say = message.unwrap().payload.unwrap();
                let arbiter_proto::v1::coordinator_message::Payload::ReportResponse(verdict) = say
                else {
                    panic!("a verdict or the end")
                };
                assert_eq!(verdict.status(), ReportStatus::Late);
            }
            Err(status) => break status,
        }
    };
    assert_eq!(refused.code(), Code::Unauthenticated);
    assert_eq!(server.database.number("SELECT count(*) FROM results").await, 1);
    assert_eq!(server.database.number("SELECT count(*) FROM faults").await, 0);
    let mut other = Worker::new(&server, "other").await;
    let again = other.lot().await;
    assert_eq!(again.lease.unwrap().lot, lost.lease.unwrap().lot, "{:?}", LotState::Pending);
    server.stop().await;
}
