//! A hostile worker: it has a token, speaks the protocol, and tries to use other workers' leases,
//! names and bundles, and to invent scores.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

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
use grpc_client::{Bearer, Link, Server, Worker, report};
use support::{START, until};
use time::Duration;
use tonic::{Code, Status};

/// A client with a new token of role worker.
async fn stranger(server: &Server) -> (WorkerServiceClient<Link>, TokenId) {
    let made = access::create(&server.database.pool, Role::Worker, "stranger", START).await;
    let (id, secret) = made.unwrap();
    let bearer = Bearer(Some(format!("Bearer {}", secret.text()).parse().unwrap()));
    (WorkerServiceClient::with_interceptor(server.channel.clone(), bearer), id)
}

async fn connected(client: &WorkerServiceClient<Link>, name: &str) -> Worker {
    let mut worker = Worker::call(client.clone(), name, RULES_VERSION).await.unwrap();
    let CoordinatorPayload::Welcome(_) = worker.receive().await else {
        panic!("a welcome comes first")
    };
    worker
}

/// The status with which a worker's hello is refused.
async fn refused(client: &WorkerServiceClient<Link>, name: &str) -> Status {
    match Worker::call(client.clone(), name, RULES_VERSION).await {
        Ok(mut worker) => worker.incoming.message().await.unwrap_err(),
        Err(status) => status,
    }
}

async fn number(server: &Server, statement: &'static str) -> i64 {
    server.database.number(statement).await
}

/// All actions on a lease by other workers: one with another token, and one with the same token and
/// another name.
#[tokio::test]
async fn only_the_holder_can_use_a_lease() {
    let server = Server::start().await;
    server.tournament("cup").await;
    server.edition("cup").await;
    let mut honest = Worker::new(&server, "honest").await;
    let lot = honest.lot().await;
    let lease = lot.lease.unwrap();
    let (client, _) = stranger(&server).await;
    for mut other in [connected(&client, "hostile").await, Worker::new(&server, "twin").await] {
        other.send(Payload::RenewLeases(RenewLeases { leases: vec![lease] })).await;
        let CoordinatorPayload::LeasesLost(lost) = other.receive().await else {
            panic!("it is another's lease")
        };
        assert_eq!(lost.leases, [lease]);
        other.send(Payload::ReturnLeases(ReturnLeases { leases: vec![lease] })).await;
        let fault = Fault { lease: Some(lease), reason: "mine".to_owned(), kind: 1 };
        other.send(Payload::Fault(fault)).await;
        // Answers come in turn: what went before has had its effect, or none.
        assert_eq!(other.report(report(&lot)).await, ReportStatus::Late);
        let leased = "SELECT count(*) FROM lots WHERE state = 'leased' AND attempt = 1";
        assert_eq!(number(&server, leased).await, 1);
        assert_eq!(number(&server, "SELECT count(*) FROM faults").await, 0);
        assert_eq!(number(&server, "SELECT count(*) FROM results").await, 0);
    }
    // Both at once, the false one first: they may be stored in one transaction.
    let mut hostile = connected(&client, "hostile").await;
    let mut forged = report(&lot);
    for result in &mut forged.results {
        result.record = b"a forged record".to_vec();
    }
    hostile.send(Payload::Report(forged)).await;
    honest.send(Payload::Report(report(&lot))).await;
    let fate = |answer| match answer {
        CoordinatorPayload::ReportResponse(verdict) => verdict.status(),
        other => panic!("a verdict is due, not {other:?}"),
    };
    assert_eq!(fate(hostile.receive().await), ReportStatus::Late);
    assert_eq!(fate(honest.receive().await), ReportStatus::Accepted);
    assert_eq!(
        hostile.report(report(&lot)).await,
        ReportStatus::Late,
        "nor is it told that it was stored"
    );
    let forged = "SELECT count(*) FROM records WHERE bytes = 'a forged record'";
    assert_eq!(number(&server, forged).await, 0);
    // The holder after a restart.
    let second = honest.lot().await;
    drop(honest);
    let mut honest = Worker::new(&server, "honest").await;
    honest.send(Payload::RenewLeases(RenewLeases { leases: vec![second.lease.unwrap()] })).await;
    assert_eq!(honest.report(report(&second)).await, ReportStatus::Accepted);
    server.stop().await;
}

/// The change that makes a result false.
type Lie = fn(&mut MatchResult);

/// Impossible results of gomoku, each made from a possible one.
const LIES: &[(&str, Lie)] = &[
    ("too many points", |result| points(result, 1_000_000, 0)),
    ("the most that there is", |result| points(result, i64::MAX, 0)),
    ("the least that there is", |result| points(result, i64::MIN, 0)),
    ("they cancel", |result| points(result, i64::MAX, i64::MIN)),
    ("negative points", |result| points(result, -2, 4)),
    ("both win", |result| points(result, 2, 2)),
    ("both lose", |result| points(result, 0, 0)),
    ("the loser forfeits and wins", |result| result.seats[0].forfeit = 1),
    ("both forfeit", |result| result.seats.iter_mut().for_each(|seat| seat.forfeit = 3)),
    ("an unknown forfeit", |result| result.seats[1].forfeit = 77),
    ("bad answers", |result| result.seats[0].bad_answers = 1),
    ("fewer than no bad answers", |result| result.seats[0].bad_answers = -1),
    ("one seat", |result| drop(result.seats.pop())),
    ("three seats", |result| result.seats.push(SeatResult::default())),
    ("four seats of half a table", |result| {
        result.seats.extend([result.seats[0].clone(), result.seats[1].clone()]);
    }),
    ("two numbers", |result| result.seats.iter_mut().for_each(|seat| seat.score.push(0))),
    ("no numbers", |result| result.seats.iter_mut().for_each(|seat| seat.score.clear())),
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
    // What the hostile one keeps is to be played in the end.
    lease_policy.lease = Duration::seconds(10);
    let server = Server::start_with(lease_policy).await;
    server.tournament("cup").await;
    let edition = server.edition("cup").await;
    let mut hostile = Worker::new(&server, "hostile").await;
    let mut faults = 0;
    for (what, lie) in LIES {
        // Over the stream that was sent the lot, and over one that knows nothing of it.
        for again in [false, true] {
            let lot = hostile.lot().await;
            if again {
                hostile = Worker::new(&server, "hostile").await;
            }
            let mut report = report(&lot);
            lie(report.results.last_mut().unwrap());
            assert_eq!(hostile.report(report).await, ReportStatus::Refused, "{what}, {again}");
            faults += 1;
            let told = "SELECT count(*) FROM faults f JOIN workers w ON w.id = f.worker
                WHERE w.name = 'hostile' AND f.kind = 'report'";
            assert_eq!(number(&server, told).await, faults, "{what}: it is the worker's fault");
        }
    }
    assert_eq!(number(&server, "SELECT count(*) FROM results").await, 0);
    let mut played = 0;
    let mut honest = Worker::new(&server, "honest").await;
    while played < edition.matches {
        let lot = honest.lot().await;
        played += i64::try_from(lot.matches.len()).unwrap();
        assert_eq!(honest.report(report(&lot)).await, ReportStatus::Accepted);
    }
    let check = CheckEditionRequest { tournament: "cup".to_owned(), edition: None, records: false };
    let check = server.tournaments(None).check_edition(check).await.unwrap().into_inner();
    assert_eq!(check.differences, Vec::<String>::new());
    server.stop().await;
}

#[tokio::test]
async fn a_worker_name_belongs_to_its_token() {
    let server = Server::start().await;
    let (client, stranger) = stranger(&server).await;
    let _honest = Worker::new(&server, "honest").await;
    let status = refused(&client, "honest").await;
    assert_eq!(status.code(), Code::FailedPrecondition);
    let owner = workers::owner(&server.database.pool, "honest").await.unwrap().unwrap();
    assert_eq!(
        status.message(),
        format!(
            "worker name \"honest\" belongs to another token: start this worker with another \
             --name, or free the name with `arbiter token revoke {owner}`"
        )
    );
    // Nor does it take a name that looks like it.
    assert_eq!(refused(&client, "Honest").await.code(), Code::FailedPrecondition);
    for name in ["", "honest ", "an honest", "hon\u{200b}est", "h\u{f6}nest", &"x".repeat(129)] {
        assert_eq!(refused(&client, name).await.code(), Code::InvalidArgument, "{name:?}");
    }
    assert_eq!(number(&server, "SELECT count(*) FROM workers").await, 1);
    let build = "SELECT count(*) FROM workers WHERE name = 'honest' AND session = 1";
    assert_eq!(number(&server, build).await, 1, "nothing of it was changed");
    // Any number of workers with one token, and a worker again, also while it is still there.
    let _twin = Worker::new(&server, "twin").await;
    let _again = Worker::new(&server, "honest").await;
    // The same token with another secret.
    let rotated = access::rotate(&server.database.pool, owner, None).await.unwrap().unwrap();
    let bearer = Bearer(Some(format!("Bearer {}", rotated.text()).parse().unwrap()));
    let rotated = WorkerServiceClient::with_interceptor(server.channel.clone(), bearer);
    connected(&rotated, "honest").await;
    assert_eq!(refused(&client, "honest").await.code(), Code::FailedPrecondition);
    let admin = server.bearer(Some(Role::Admin));
    let mut tokens = TokenServiceClient::with_interceptor(server.channel.clone(), admin);
    tokens.revoke_token(RevokeTokenRequest { id: owner.0 }).await.unwrap();
    connected(&client, "honest").await;
    let owner = workers::owner(&server.database.pool, "honest").await.unwrap();
    assert_eq!(owner, Some(stranger));
    server.stop().await;
}

/// A tournament whose three house bots are different bundles.
async fn tournament(server: &Server) -> Vec<[u8; 32]> {
    let file = "name = \"cup\"\ngame = \"gomoku\"\nstate = \"none\"\n".to_owned();
    let request = CreateTournamentRequest { file };
    server.tournaments(Some(Role::Organiser)).create_tournament(request).await.unwrap();
    let mut digests = Vec::new();
    for bot in ["one", "two", "three"] {
        let bundle = format!("the bundle of {bot}");
        let submitted = server.submit(Role::Organiser, "cup", bot, true, bundle.as_bytes()).await;
        submitted.unwrap();
        digests.push(blake3::hash(bundle.as_bytes()).into());
    }
    digests
}

/// The response to a request for a bundle.
async fn fetched(client: &WorkerServiceClient<Link>, digest: &[u8]) -> Result<Vec<u8>, Code> {
    let request = FetchBundleRequest { digest: digest.to_vec() };
    let asked = client.clone().fetch_bundle(request).await.map_err(|status| status.code())?;
    let piece = asked.into_inner().message().await.unwrap();
    Ok(piece.unwrap().bytes)
}

#[tokio::test]
async fn bundles_are_sent_only_to_workers_that_lease_them() {
    let server = Server::start().await;
    let digests = tournament(&server).await;
    server.edition("cup").await;
    let (client, _) = stranger(&server).await;
    let mut honest = Worker::new(&server, "honest").await;
    let lot = honest.lot().await;
    let mut hostile = connected(&client, "hostile").await;
    for digest in &digests {
        assert_eq!(fetched(&client, digest).await, Err(Code::PermissionDenied));
    }
    assert_eq!(fetched(&client, &[0; 32]).await, Err(Code::PermissionDenied));
    let ours = server.workers(Some(Role::Worker));
    let of_lot = |lot: &Lot| -> Vec<Vec<u8>> {
        let seats = lot.matches.iter().flat_map(|planned| &planned.seats);
        seats.map(|seat| seat.digest.clone()).collect()
    };
    for digest in of_lot(&lot) {
        assert!(fetched(&ours, &digest).await.unwrap().starts_with(b"the bundle of "));
    }
    let own = hostile.lot().await;
    let needed = of_lot(&own);
    for digest in &digests {
        let there = fetched(&client, digest).await;
        assert_eq!(there.is_ok(), needed.contains(&digest.to_vec()));
    }
    assert_eq!(hostile.report(report(&own)).await, ReportStatus::Accepted);
    for digest in &digests {
        assert_eq!(fetched(&client, digest).await, Err(Code::PermissionDenied), "it is over");
    }
    server.stop().await;
}

/// The next trial that a worker is sent.
async fn trial(worker: &mut Worker) -> Trial {
    worker.send(Payload::Capacity(Capacity { slots: 1 })).await;
    let CoordinatorPayload::Trial(trial) = worker.receive().await else {
        panic!("a trial was asked for")
    };
    trial
}

fn trial_report(trial: &Trial, passed: bool, program: &[u8]) -> Report {
    let reason = if passed { String::new() } else { "it does not answer".to_owned() };
    let measurements = serde_json::json!(Measurements::default()).to_string();
    let program = program.to_vec();
    let told = TrialReport { passed, reason, measurements, program, ..TrialReport::default() };
    Report { lease: trial.lease, trial: Some(told), ..Report::default() }
}

#[tokio::test]
async fn only_the_holder_can_report_a_trial() {
    let server = Server::start().await;
    let house = tournament(&server).await;
    server.submit(Role::Player, "cup", "mine", false, b"a new bot").await.unwrap();
    let (client, _) = stranger(&server).await;
    let mut honest = Worker::new(&server, "honest").await;
    let mut hostile = connected(&client, "hostile").await;
    let tried = trial(&mut honest).await;
    let lease = tried.lease.unwrap();
    let own = blake3::hash(b"a new bot");
    assert_eq!(fetched(&client, own.as_bytes()).await, Err(Code::PermissionDenied));
    let ours = server.workers(Some(Role::Worker));
    assert_eq!(fetched(&ours, own.as_bytes()).await.unwrap(), b"a new bot");
    assert!(fetched(&ours, &house[0]).await.is_ok(), "it is tried against house bots");

    hostile.send(Payload::RenewLeases(RenewLeases { leases: vec![lease] })).await;
    let CoordinatorPayload::LeasesLost(lost) = hostile.receive().await else {
        panic!("it is another's lease")
    };
    assert_eq!(lost.leases, [lease]);
    hostile.send(Payload::ReturnLeases(ReturnLeases { leases: vec![lease] })).await;
    let fault = Fault { lease: Some(lease), reason: "mine".to_owned(), kind: 1 };
    hostile.send(Payload::Fault(fault)).await;
    let foreign = trial_report(&tried, true, b"a foreign program");
    assert_eq!(hostile.report(foreign.clone()).await, ReportStatus::Late);
    let failed = trial_report(&tried, false, b"");
    assert_eq!(hostile.report(failed).await, ReportStatus::Late);
    let untouched = "SELECT count(*) FROM trials
        WHERE state = 'leased' AND attempt = 1 AND faults = 0 AND program IS NULL";
    assert_eq!(number(&server, untouched).await, 1);
    assert_eq!(number(&server, "SELECT count(*) FROM bundles").await, 4, "it is not kept");

    assert_eq!(honest.report(trial_report(&tried, true, b"")).await, ReportStatus::Accepted);
    assert_eq!(honest.report(trial_report(&tried, true, b"")).await, ReportStatus::Duplicate);
    assert_eq!(hostile.report(foreign).await, ReportStatus::Late);
    server.stop().await;
}

/// Lots with bot state take memory until they are sent. Lots that wait for memory are returned in
/// time.
#[tokio::test]
async fn a_worker_that_does_not_read_delays_no_other() {
    /// Bots with the largest allowed state that meet twice.
    const BOTS: usize = 8;
    const PAIRS: usize = BOTS * (BOTS - 1) / 2;
    let retry_policy = LeasePolicy::DEFAULT.retry_policy;
    let server =
        Server::start_with(LeasePolicy { lease: Duration::seconds(6), retry_policy }).await;
    let file = "name = \"cup\"\ngame = \"gomoku\"\nstate = \"pairing\"\n\
        [audit]\nreplay = \"0%\"\nshadow = \"0%\"\n";
    let file = file.to_owned();
    let mut tournaments = server.tournaments(Some(Role::Organiser));
    tournaments.create_tournament(CreateTournamentRequest { file }).await.unwrap();
    for bot in 0..BOTS {
        let name = format!("bot-{bot}");
        let bundle = b"a bundle";
        server.submit(Role::Organiser, "cup", &name, true, bundle).await.unwrap();
    }
    server.edition("cup").await;
    let mut honest = Worker::new(&server, "honest").await;
    // All first meetings, before any second one can be leased.
    let mut lots = Vec::new();
    for _ in 0..PAIRS {
        lots.push(honest.lot().await);
        let leases = lots.iter().filter_map(|lot| lot.lease).collect();
        honest.send(Payload::RenewLeases(RenewLeases { leases })).await;
    }
    while let Some(lot) = lots.pop() {
        // On a busy machine all reports together take longer than a lease.
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
    let silent = Worker::call(client, "silent", RULES_VERSION).await.unwrap();
    silent.send(Payload::Capacity(Capacity { slots: 64 })).await;
    let leased = "SELECT count(*) FROM lots WHERE state = 'leased'";
    until("it has them all", async || server.database.number(leased).await == 28).await;
    for _ in 0..PAIRS {
        let lot = honest.lot().await;
        assert_eq!(lot.matches[0].seats[0].files.len(), 1 << 20);
        assert_eq!(honest.report(report(&lot)).await, ReportStatus::Accepted);
    }
    let faults = number(&server, "SELECT count(*) FROM faults").await;
    assert!(faults <= 5, "what was sent ran out, and nothing else: {faults}");
    drop(silent);
    server.stop().await;
}
