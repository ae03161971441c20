//! A hostile worker. It has a token and speaks the protocol. It tries to use the leases, names and
//! bundles of other workers, and to report invented scores.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/grpc_client.rs"]
mod grpc_client;
mod support;

use arbiter_coordinator::access::{self, Role};
use arbiter_coordinator::db::workers;
use arbiter_coordinator::queue::LeasePolicy;
use arbiter_games::RULES_VERSION;
use arbiter_proto::ids::TokenId;
use arbiter_proto::trial::Measurements;
use arbiter_proto::v1::coordinator_message::Payload as CoordinatorPayload;
use arbiter_proto::v1::token_service_client::TokenServiceClient;
use arbiter_proto::v1::worker_message::Payload;
use arbiter_proto::v1::worker_service_client::WorkerServiceClient;
use arbiter_proto::v1::{
    Capacity, CheckEditionRequest, CreateTournamentRequest, Fault, FetchBundleRequest, Lot,
    MatchResult, RenewLeases, Report, ReportStatus, ReturnLeases, RevokeTokenRequest, SeatResult,
    Trial, TrialReport,
};
use grpc_client::{AuthChannel, Bearer, Server, Worker, report};
use support::{START, wait_until};
use time::Duration;
use tonic::{Code, Status};

/// A client with a new worker token.
async fn client_with_new_token(server: &Server) -> (WorkerServiceClient<AuthChannel>, TokenId) {
    let token = access::create(&server.database.pool, Role::Worker, "stranger", START).await;
    let (id, secret) = token.unwrap();
    let bearer = Bearer(Some(format!("Bearer {}", secret.text()).parse().unwrap()));
    (WorkerServiceClient::with_interceptor(server.channel.clone(), bearer), id)
}

/// Connects a worker, and receives the welcome.
async fn connect(client: &WorkerServiceClient<AuthChannel>, name: &str) -> Worker {
    let mut worker = Worker::connect_with(client.clone(), name, RULES_VERSION).await.unwrap();
    let CoordinatorPayload::Welcome(_) = worker.receive().await else {
        panic!("expected a welcome first")
    };
    worker
}

/// The status with which the coordinator refuses a worker of this name.
async fn refusal(client: &WorkerServiceClient<AuthChannel>, name: &str) -> Status {
    match Worker::connect_with(client.clone(), name, RULES_VERSION).await {
        Ok(mut worker) => worker.incoming.message().await.unwrap_err(),
        Err(status) => status,
    }
}

async fn number(server: &Server, statement: &'static str) -> i64 {
    server.database.number(statement).await
}

/// Two other workers try all actions on a lease: one has another token, the other one has the same
/// token and another name.
#[tokio::test]
async fn only_the_holder_can_use_a_lease() {
    let server = Server::start().await;
    server.create_tournament("cup").await;
    server.start_edition("cup").await;
    let mut honest = Worker::new(&server, "honest").await;
    let lot = honest.lot().await;
    let lease = lot.lease.unwrap();
    let (client, _) = client_with_new_token(&server).await;
    for mut other in [connect(&client, "hostile").await, Worker::new(&server, "twin").await] {
        other.send(Payload::RenewLeases(RenewLeases { leases: vec![lease] })).await;
        let CoordinatorPayload::LeasesLost(lost) = other.receive().await else {
            panic!("expected a lost lease")
        };
        assert_eq!(lost.leases, [lease]);
        other.send(Payload::ReturnLeases(ReturnLeases { leases: vec![lease] })).await;
        let fault = Fault { lease: Some(lease), reason: "mine".to_owned(), kind: 1 };
        other.send(Payload::Fault(fault)).await;
        // Messages are handled in order: the fault and the return are handled before this response.
        assert_eq!(other.report(report(&lot)).await, ReportStatus::Late);
        let leased = "SELECT count(*) FROM lots WHERE state = 'leased' AND attempt = 1";
        assert_eq!(number(&server, leased).await, 1);
        assert_eq!(number(&server, "SELECT count(*) FROM faults").await, 0);
        assert_eq!(number(&server, "SELECT count(*) FROM results").await, 0);
    }
    // A forged and a true report at the same time. They may be in one transaction.
    let mut hostile = connect(&client, "hostile").await;
    let mut forged = report(&lot);
    for result in &mut forged.results {
        result.record = b"a forged record".to_vec();
    }
    hostile.send(Payload::Report(forged)).await;
    honest.send(Payload::Report(report(&lot))).await;
    let status = |payload| match payload {
        CoordinatorPayload::ReportResponse(response) => response.status(),
        payload => panic!("expected a report response, not {payload:?}"),
    };
    assert_eq!(status(hostile.receive().await), ReportStatus::Late);
    assert_eq!(status(honest.receive().await), ReportStatus::Accepted);
    assert_eq!(
        hostile.report(report(&lot)).await,
        ReportStatus::Late,
        "the hostile worker must not learn that the lot is reported"
    );
    let forged = "SELECT count(*) FROM records WHERE bytes = 'a forged record'";
    assert_eq!(number(&server, forged).await, 0);
    // The holder can use its lease after a restart.
    let second = honest.lot().await;
    drop(honest);
    let mut honest = Worker::new(&server, "honest").await;
    honest.send(Payload::RenewLeases(RenewLeases { leases: vec![second.lease.unwrap()] })).await;
    assert_eq!(honest.report(report(&second)).await, ReportStatus::Accepted);
    server.stop().await;
}

/// Makes a result impossible.
type Forgery = fn(&mut MatchResult);

/// Changes that make a valid result of gomoku impossible.
const FORGERIES: &[(&str, Forgery)] = &[
    ("too many points", |result| points(result, 1_000_000, 0)),
    ("the largest number", |result| points(result, i64::MAX, 0)),
    ("the smallest number", |result| points(result, i64::MIN, 0)),
    ("extreme points with sum -1", |result| points(result, i64::MAX, i64::MIN)),
    ("negative points", |result| points(result, -2, 4)),
    ("both win", |result| points(result, 2, 2)),
    ("both lose", |result| points(result, 0, 0)),
    ("the loser forfeits and wins", |result| result.seats[0].forfeit = 1),
    ("both forfeit", |result| result.seats.iter_mut().for_each(|seat| seat.forfeit = 3)),
    ("an unknown forfeit", |result| result.seats[1].forfeit = 77),
    ("bad replies", |result| result.seats[0].bad_answers = 1),
    ("a negative number of bad replies", |result| result.seats[0].bad_answers = -1),
    ("one seat", |result| drop(result.seats.pop())),
    ("three seats", |result| result.seats.push(SeatResult::default())),
    ("the seats twice", |result| {
        result.seats.extend([result.seats[0].clone(), result.seats[1].clone()]);
    }),
    ("two scores", |result| result.seats.iter_mut().for_each(|seat| seat.score.push(0))),
    ("no scores", |result| result.seats.iter_mut().for_each(|seat| seat.score.clear())),
    ("half a transcript", |result| result.transcript.truncate(16)),
    ("negative time", |result| result.wall_ms = -1),
    ("another match", |result| result.number += 1),
];

fn points(result: &mut MatchResult, first: i64, second: i64) {
    result.seats[0].score = vec![first];
    result.seats[1].score = vec![second];
}

#[tokio::test]
async fn impossible_scores_are_never_stored() {
    let mut lease_policy = LeasePolicy::DEFAULT;
    lease_policy.retry_policy.faults = i16::MAX;
    (lease_policy.retry_policy.delay, lease_policy.retry_policy.max_delay) =
        (Duration::ZERO, Duration::ZERO);
    // The hostile worker keeps some leases. They must expire so that the honest worker can play.
    lease_policy.lease = Duration::seconds(10);
    let server = Server::start_with(lease_policy).await;
    server.create_tournament("cup").await;
    let edition = server.start_edition("cup").await;
    let mut hostile = Worker::new(&server, "hostile").await;
    let mut faults = 0;
    for (description, forge) in FORGERIES {
        // On the stream that received the lot, and on a new stream.
        for new_stream in [false, true] {
            let lot = hostile.lot().await;
            if new_stream {
                hostile = Worker::new(&server, "hostile").await;
            }
            let mut report = report(&lot);
            forge(report.results.last_mut().unwrap());
            assert_eq!(
                hostile.report(report).await,
                ReportStatus::Refused,
                "{description}, {new_stream}"
            );
            faults += 1;
            let statement = "SELECT count(*) FROM faults f JOIN workers w ON w.id = f.worker
                WHERE w.name = 'hostile' AND f.kind = 'report'";
            assert_eq!(
                number(&server, statement).await,
                faults,
                "{description}: expected a fault of the worker"
            );
        }
    }
    assert_eq!(number(&server, "SELECT count(*) FROM results").await, 0);
    let mut played_matches = 0;
    let mut honest = Worker::new(&server, "honest").await;
    while played_matches < edition.matches {
        let lot = honest.lot().await;
        played_matches += i64::try_from(lot.matches.len()).unwrap();
        assert_eq!(honest.report(report(&lot)).await, ReportStatus::Accepted);
    }
    let request =
        CheckEditionRequest { tournament: "cup".to_owned(), edition: None, records: false };
    let check = server.tournaments(None).check_edition(request).await.unwrap().into_inner();
    assert_eq!(check.differences, Vec::<String>::new());
    server.stop().await;
}

#[tokio::test]
async fn a_worker_name_belongs_to_its_token() {
    let server = Server::start().await;
    let (client, stranger) = client_with_new_token(&server).await;
    let _honest = Worker::new(&server, "honest").await;
    let status = refusal(&client, "honest").await;
    assert_eq!(status.code(), Code::FailedPrecondition);
    let owner = workers::owner(&server.database.pool, "honest").await.unwrap().unwrap();
    assert_eq!(
        status.message(),
        format!(
            "worker name \"honest\" belongs to another token: start this worker with another \
             --name, or free the name with `arbiter token revoke {owner}`"
        )
    );
    // Names that look similar are refused, too.
    assert_eq!(refusal(&client, "Honest").await.code(), Code::FailedPrecondition);
    for name in ["", "honest ", "an honest", "hon\u{200b}est", "h\u{f6}nest", &"x".repeat(129)] {
        assert_eq!(refusal(&client, name).await.code(), Code::InvalidArgument, "{name:?}");
    }
    assert_eq!(number(&server, "SELECT count(*) FROM workers").await, 1);
    let build = "SELECT count(*) FROM workers WHERE name = 'honest' AND session = 1";
    assert_eq!(
        number(&server, build).await,
        1,
        "the refused worker changed the row of the honest worker"
    );
    // One token can have several workers. A worker can connect again while its old stream is open.
    let _twin = Worker::new(&server, "twin").await;
    let _again = Worker::new(&server, "honest").await;
    // A token with a new secret is still the owner of the name.
    let secret = access::rotate(&server.database.pool, owner, None).await.unwrap().unwrap();
    let bearer = Bearer(Some(format!("Bearer {}", secret.text()).parse().unwrap()));
    let rotated = WorkerServiceClient::with_interceptor(server.channel.clone(), bearer);
    connect(&rotated, "honest").await;
    assert_eq!(refusal(&client, "honest").await.code(), Code::FailedPrecondition);
    let admin = server.bearer(Some(Role::Admin));
    let mut tokens = TokenServiceClient::with_interceptor(server.channel.clone(), admin);
    tokens.revoke_token(RevokeTokenRequest { id: owner.0, ..Default::default() }).await.unwrap();
    connect(&client, "honest").await;
    let owner = workers::owner(&server.database.pool, "honest").await.unwrap();
    assert_eq!(owner, Some(stranger));
    server.stop().await;
}

/// Creates a tournament with three house bots. Returns the digests of their bundles.
async fn create_tournament(server: &Server) -> Vec<[u8; 32]> {
    let file = "name = \"cup\"\ngame = \"gomoku\"\nstate = \"none\"\n".to_owned();
    let request = CreateTournamentRequest { file };
    server.tournaments(Some(Role::Organiser)).create_tournament(request).await.unwrap();
    let mut digests = Vec::new();
    for bot in ["one", "two", "three"] {
        let bundle = format!("the bundle of {bot}");
        let result = server.submit(Role::Organiser, "cup", bot, true, bundle.as_bytes()).await;
        result.unwrap();
        digests.push(blake3::hash(bundle.as_bytes()).into());
    }
    digests
}

/// Fetches the first piece of a bundle.
async fn fetch(client: &WorkerServiceClient<AuthChannel>, digest: &[u8]) -> Result<Vec<u8>, Code> {
    let request = FetchBundleRequest { digest: digest.to_vec() };
    let pieces = client.clone().fetch_bundle(request).await.map_err(|status| status.code())?;
    let piece = pieces.into_inner().message().await.unwrap();
    Ok(piece.unwrap().bytes)
}

#[tokio::test]
async fn bundles_are_sent_only_to_workers_that_lease_them() {
    let server = Server::start().await;
    let digests = create_tournament(&server).await;
    server.start_edition("cup").await;
    let (client, _) = client_with_new_token(&server).await;
    let mut honest = Worker::new(&server, "honest").await;
    let lot = honest.lot().await;
    let mut hostile = connect(&client, "hostile").await;
    for digest in &digests {
        assert_eq!(fetch(&client, digest).await, Err(Code::PermissionDenied));
    }
    assert_eq!(fetch(&client, &[0; 32]).await, Err(Code::PermissionDenied));
    let honest_client = server.workers(Some(Role::Worker));
    let digests_of = |lot: &Lot| -> Vec<Vec<u8>> {
        let seats = lot.matches.iter().flat_map(|planned| &planned.seats);
        seats.map(|seat| seat.digest.clone()).collect()
    };
    for digest in digests_of(&lot) {
        assert!(fetch(&honest_client, &digest).await.unwrap().starts_with(b"the bundle of "));
    }
    let hostile_lot = hostile.lot().await;
    let allowed = digests_of(&hostile_lot);
    for digest in &digests {
        let result = fetch(&client, digest).await;
        assert_eq!(result.is_ok(), allowed.contains(&digest.to_vec()));
    }
    assert_eq!(hostile.report(report(&hostile_lot)).await, ReportStatus::Accepted);
    for digest in &digests {
        assert_eq!(
            fetch(&client, digest).await,
            Err(Code::PermissionDenied),
            "the lease has ended"
        );
    }
    server.stop().await;
}

/// Announces one free slot, and receives a trial.
async fn receive_trial(worker: &mut Worker) -> Trial {
    worker.send(Payload::Capacity(Capacity { slots: 1 })).await;
    let CoordinatorPayload::Trial(trial) = worker.receive().await else {
        panic!("expected a trial")
    };
    trial
}

fn trial_report(trial: &Trial, passed: bool, program: &[u8]) -> Report {
    let reason = if passed { String::new() } else { "it does not answer".to_owned() };
    let measurements = serde_json::json!(Measurements::default()).to_string();
    let program = program.to_vec();
    let trial_report =
        TrialReport { passed, reason, measurements, program, ..TrialReport::default() };
    Report { lease: trial.lease, trial: Some(trial_report), ..Report::default() }
}

#[tokio::test]
async fn only_the_holder_can_report_a_trial() {
    let server = Server::start().await;
    let house = create_tournament(&server).await;
    server.submit(Role::Player, "cup", "mine", false, b"a new bot").await.unwrap();
    let (client, _) = client_with_new_token(&server).await;
    let mut honest = Worker::new(&server, "honest").await;
    let mut hostile = connect(&client, "hostile").await;
    let trial = receive_trial(&mut honest).await;
    let lease = trial.lease.unwrap();
    let digest = blake3::hash(b"a new bot");
    assert_eq!(fetch(&client, digest.as_bytes()).await, Err(Code::PermissionDenied));
    let honest_client = server.workers(Some(Role::Worker));
    assert_eq!(fetch(&honest_client, digest.as_bytes()).await.unwrap(), b"a new bot");
    assert!(
        fetch(&honest_client, &house[0]).await.is_ok(),
        "the trial is played against house bots"
    );

    hostile.send(Payload::RenewLeases(RenewLeases { leases: vec![lease] })).await;
    let CoordinatorPayload::LeasesLost(lost) = hostile.receive().await else {
        panic!("expected a lost lease")
    };
    assert_eq!(lost.leases, [lease]);
    hostile.send(Payload::ReturnLeases(ReturnLeases { leases: vec![lease] })).await;
    let fault = Fault { lease: Some(lease), reason: "mine".to_owned(), kind: 1 };
    hostile.send(Payload::Fault(fault)).await;
    let forged = trial_report(&trial, true, b"a forged program");
    assert_eq!(hostile.report(forged.clone()).await, ReportStatus::Late);
    let failed = trial_report(&trial, false, b"");
    assert_eq!(hostile.report(failed).await, ReportStatus::Late);
    let untouched = "SELECT count(*) FROM trials
        WHERE state = 'leased' AND attempt = 1 AND faults = 0 AND program IS NULL";
    assert_eq!(number(&server, untouched).await, 1);
    assert_eq!(
        number(&server, "SELECT count(*) FROM bundles").await,
        4,
        "the forged program is not stored"
    );

    assert_eq!(honest.report(trial_report(&trial, true, b"")).await, ReportStatus::Accepted);
    assert_eq!(honest.report(trial_report(&trial, true, b"")).await, ReportStatus::Duplicate);
    assert_eq!(hostile.report(forged).await, ReportStatus::Late);
    server.stop().await;
}

/// Lots with bot state take memory until they are sent. Lots that wait too long for memory are
/// returned.
#[tokio::test]
async fn a_worker_that_does_not_read_delays_no_other() {
    /// Number of bots. Each pair meets twice, with the largest allowed state.
    const BOTS: usize = 8;
    const PAIRS: usize = BOTS * (BOTS - 1) / 2;
    let retry_policy = LeasePolicy::DEFAULT.retry_policy;
    let server =
        Server::start_with(LeasePolicy { lease: Duration::seconds(6), retry_policy }).await;
    let file = "name = \"cup\"\ngame = \"gomoku\"\nstate = \"pairing\"\n\
        [audit]\nreplay = \"0%\"\nshadow = \"0%\"\n"
        .to_owned();
    let mut tournaments = server.tournaments(Some(Role::Organiser));
    tournaments.create_tournament(CreateTournamentRequest { file }).await.unwrap();
    for bot in 0..BOTS {
        let name = format!("bot-{bot}");
        let bundle = b"a bundle";
        server.submit(Role::Organiser, "cup", &name, true, bundle).await.unwrap();
    }
    server.start_edition("cup").await;
    let mut honest = Worker::new(&server, "honest").await;
    // Lease the first match of each pair. No second match is available yet.
    let mut lots = Vec::new();
    for _ in 0..PAIRS {
        lots.push(honest.lot().await);
        let leases = lots.iter().filter_map(|lot| lot.lease).collect();
        honest.send(Payload::RenewLeases(RenewLeases { leases })).await;
    }
    while let Some(lot) = lots.pop() {
        // On a busy machine the reports together take longer than a lease.
        let leases = lots.iter().filter_map(|lot| lot.lease).collect();
        honest.send(Payload::RenewLeases(RenewLeases { leases })).await;
        let mut first = report(&lot);
        for seat in &mut first.results[0].seats {
            seat.files = vec![7; 1 << 20];
        }
        assert_eq!(honest.report(first).await, ReportStatus::Accepted);
    }
    let bearer = server.bearer(Some(Role::Worker));
    let client = WorkerServiceClient::with_interceptor(server.another_connection().await, bearer);
    let silent = Worker::connect_with(client, "silent", RULES_VERSION).await.unwrap();
    silent.send(Payload::Capacity(Capacity { slots: 64 })).await;
    let leased = "SELECT count(*) FROM lots WHERE state = 'leased'";
    wait_until("the silent worker has leased all lots", async || {
        server.database.number(leased).await == 28
    })
    .await;
    for _ in 0..PAIRS {
        let lot = honest.lot().await;
        assert_eq!(lot.matches[0].seats[0].files.len(), 1 << 20);
        assert_eq!(honest.report(report(&lot)).await, ReportStatus::Accepted);
    }
    let faults = number(&server, "SELECT count(*) FROM faults").await;
    assert!(faults <= 5, "{faults} faults: only leases of sent lots may expire");
    drop(silent);
    server.stop().await;
}
