//! The gRPC services: roles, wrong names, and workers that connect and disconnect.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "rpc/beacon.rs"]
mod beacon;
#[path = "support/grpc_client.rs"]
mod grpc_client;
mod support;

use arbiter_coordinator::access::Role;
use arbiter_coordinator::queue::LeasePolicy;
use arbiter_games::Seed;
use arbiter_proto::v1::coordinator_message::Payload as CoordinatorPayload;
use arbiter_proto::v1::ranking_service_client::RankingServiceClient;
use arbiter_proto::v1::token_service_client::TokenServiceClient;
use arbiter_proto::v1::worker_message::Payload;
use arbiter_proto::v1::{
    self, CertifyEditionRequest, CheckEditionRequest, CreateTokenRequest, CreateTournamentRequest,
    Edition, EstimateEditionRequest, FetchBundleRequest, FindCollusionRequest,
    FindCollusionResponse, GetRankingRequest, GetRecordRequest, LeaderboardRef, ListTokensRequest,
    ListTournamentsRequest, MatchResult, RenewLeases, Report, ReportStatus, ReturnLeases,
    RevokeTokenRequest, SeatResult, StartEditionRequest, WatchEditionRequest,
};
use tonic::{Code, Status, Streaming};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use grpc_client::{PATIENCE, Server, Worker, report};

#[tokio::test]
async fn every_call_requires_its_role() {
    let server = Server::start().await;
    server.tournament("cup").await;
    let refused = |role| {
        let mut tournaments = server.tournaments(role);
        async move {
            let request = StartEditionRequest { tournament: "cup".to_owned(), fresh: false };
            tournaments.start_edition(request).await.unwrap_err().code()
        }
    };
    assert_eq!(refused(None).await, Code::Unauthenticated);
    assert_eq!(refused(Some(Role::Player)).await, Code::PermissionDenied);
    assert_eq!(refused(Some(Role::Worker)).await, Code::PermissionDenied);
    let bundle = FetchBundleRequest { digest: vec![0; 32] };
    let code = server.workers(Some(Role::Organiser)).fetch_bundle(bundle.clone()).await;
    assert_eq!(code.unwrap_err().code(), Code::PermissionDenied);
    let code = server.workers(Some(Role::Worker)).fetch_bundle(bundle).await;
    assert_eq!(code.unwrap_err().code(), Code::PermissionDenied);
    let house = server.submit(Role::Player, "cup", "mine", true, b"x").await;
    assert_eq!(house.unwrap_err().code(), Code::PermissionDenied);
    let taken = server.submit(Role::Player, "cup", "one", false, b"x").await;
    assert!(taken.unwrap_err().message().contains("another player's bot is named one"));
    let create = CreateTokenRequest { role: "worker".to_owned(), ..CreateTokenRequest::default() };
    for role in [Role::Organiser, Role::Player, Role::Worker] {
        let mut tokens =
            TokenServiceClient::with_interceptor(server.channel.clone(), server.bearer(Some(role)));
        let code = tokens.create_token(create.clone()).await.unwrap_err().code();
        assert_eq!(code, Code::PermissionDenied);
    }
    let admin = server.bearer(Some(Role::Admin));
    let mut tokens = TokenServiceClient::with_interceptor(server.channel.clone(), admin);
    let nameless = tokens.create_token(create).await.unwrap_err();
    assert_eq!(nameless.code(), Code::InvalidArgument, "{nameless}");
    server.stop().await;
}

#[tokio::test]
async fn a_tournament_is_played_over_grpc() {
    let server = Server::start().await;
    server.tournament("cup").await;
    assert_eq!(server.submit(Role::Organiser, "cup", "one", true, b"a bundle").await.unwrap(), 1);
    let edition = server.edition("cup").await;
    let watch = WatchEditionRequest { tournament: "cup".to_owned(), edition: None };
    let watched = server.tournaments(None).watch_edition(watch).await.unwrap();
    let mut worker = Worker::new(&server, "player").await;
    let mut played = 0;
    let mut some = String::new();
    while played < edition.matches {
        let lot = worker.lot().await;
        assert_eq!(lot.game, "gomoku");
        assert!(lot.matches.iter().all(|planned| planned.seed.len() == 32));
        played += i64::try_from(lot.matches.len()).unwrap();
        some = format!("{}/{}", edition.id, lot.matches[0].number);
        let first = report(&lot);
        assert_eq!(worker.report(first.clone()).await, ReportStatus::Accepted);
        assert_eq!(worker.report(first.clone()).await, ReportStatus::Duplicate);
        let mut other = first;
        other.lease.as_mut().unwrap().attempt += 1;
        assert_eq!(worker.report(other).await, ReportStatus::Late);
    }
    let over = last(watched.into_inner()).await;
    assert_eq!((over.state.as_str(), over.official, over.counted), ("complete", true, played));
    let board = LeaderboardRef { tournament: "cup".to_owned(), edition: None };
    let ask = GetRankingRequest { leaderboard: Some(board), ..GetRankingRequest::default() };
    let mut rankings = RankingServiceClient::new(server.channel.clone());
    let page = rankings.get_ranking(ask).await.unwrap().into_inner();
    assert!(page.official && page.standings.len() == 3);
    let points: i64 =
        page.standings.iter().map(|place| place.score[0].parse::<i64>().unwrap()).sum();
    assert_eq!(points, 2 * played);
    let tournament = "cup".to_owned();
    let check = CheckEditionRequest { tournament, edition: None, records: false };
    let check = server.tournaments(None).check_edition(check).await.unwrap().into_inner();
    assert_eq!((check.matches, check.differences), (played, Vec::<String>::new()));
    let record = GetRecordRequest { r#match: some };
    let stranger = server.tournaments(Some(Role::Player)).get_record(record.clone()).await;
    assert_eq!(stranger.unwrap_err().code(), Code::PermissionDenied);
    let record = server.tournaments(Some(Role::Organiser)).get_record(record).await.unwrap();
    let piece = record.into_inner().message().await.unwrap().unwrap();
    assert_eq!(piece.bytes, b"a record");
    server.stop().await;
}

/// A client that watched an edition to its end and asks for the newest gets the next one.
#[tokio::test]
async fn after_an_edition_a_watcher_gets_the_next_one() {
    let server = Server::start().await;
    let file = "name = \"cup\"\ngame = \"gomoku\"\n[submissions]\nwindow = \"100ms\"\n".to_owned();
    let create = CreateTournamentRequest { file };
    server.tournaments(Some(Role::Organiser)).create_tournament(create).await.unwrap();
    for bot in ["one", "two"] {
        server.submit(Role::Organiser, "cup", bot, true, b"a bundle").await.unwrap();
    }
    server.edition("cup").await;
    let newest = async || {
        let watch = WatchEditionRequest { tournament: "cup".to_owned(), edition: None };
        let watched = server.tournaments(None).watch_edition(watch).await.unwrap();
        watched.into_inner().message().await.unwrap().unwrap()
    };
    assert_eq!(newest().await.number, 1);
    server.submit(Role::Organiser, "cup", "two", true, b"another").await.unwrap();
    let mut first = newest().await;
    while (first.number, first.state.as_str()) == (1, "running") {
        first = newest().await;
    }
    assert_eq!(newest().await.number, 2);
    server.stop().await;
}

/// The last state that a subscriber receives.
async fn last(mut watched: Streaming<Edition>) -> Edition {
    let mut last = None;
    while let Some(state) =
        tokio::time::timeout(PATIENCE, watched.message()).await.unwrap().unwrap()
    {
        last = Some(state);
    }
    last.unwrap()
}

/// A worker keeps its leases over any number of streams. A returned lease goes to another worker at
/// once.
#[tokio::test]
async fn leases_survive_reconnects_and_can_be_returned() {
    let server = Server::start().await;
    server.tournament("cup").await;
    server.edition("cup").await;
    let mut one = Worker::new(&server, "one").await;
    let first = one.lot().await;
    let second = one.lot().await;
    drop(one);
    let mut one = Worker::new(&server, "one").await;
    assert_eq!(one.report(report(&first)).await, ReportStatus::Accepted);
    one.send(Payload::ReturnLeases(ReturnLeases { leases: vec![second.lease.unwrap()] })).await;
    let mut two = Worker::new(&server, "two").await;
    loop {
        let lot = two.lot().await;
        if lot.lease.unwrap().lot == second.lease.unwrap().lot {
            assert_eq!(lot.lease.unwrap().attempt, 2);
            break;
        }
        assert_eq!(two.report(report(&lot)).await, ReportStatus::Accepted);
    }
    one.send(Payload::RenewLeases(RenewLeases { leases: vec![second.lease.unwrap()] })).await;
    let CoordinatorPayload::LeasesLost(lost) = one.receive().await else {
        panic!("the lease is lost")
    };
    assert_eq!(lost.leases, [second.lease.unwrap()]);
    assert_eq!(one.report(report(&second)).await, ReportStatus::Late);
    server.stop().await;
}

/// A worker whose token is revoked is disconnected, even if it sends nothing.
#[tokio::test]
async fn a_worker_with_a_revoked_token_is_disconnected() {
    let mut lease_policy = LeasePolicy::DEFAULT;
    lease_policy.lease = time::Duration::milliseconds(300);
    let server = Server::start_with(lease_policy).await;
    let mut worker = Worker::new(&server, "silent").await;
    let mut tokens = TokenServiceClient::with_interceptor(
        server.channel.clone(),
        server.bearer(Some(Role::Admin)),
    );
    let listed = tokens.list_tokens(ListTokensRequest {}).await.unwrap().into_inner().tokens;
    let id = listed.iter().find(|token| token.role == "worker").unwrap().id;
    tokens.revoke_token(RevokeTokenRequest { id }).await.unwrap();
    let sent_away = tokio::time::timeout(PATIENCE, worker.incoming.message()).await.unwrap();
    assert_eq!(sent_away.unwrap_err().code(), Code::Unauthenticated);
    server.stop().await;
}

#[tokio::test]
async fn unsuitable_workers_are_refused_with_a_reason() {
    let server = Server::start().await;
    let mut old = Worker::connect(&server, "old", "0").await;
    let refused = match &mut old {
        Ok(worker) => worker.incoming.message().await.unwrap_err(),
        Err(status) => status.clone(),
    };
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("install the same version"), "{}", refused.message());
    let request = StartEditionRequest { tournament: "nowhere".to_owned(), fresh: false };
    let refused = server.tournaments(Some(Role::Admin)).start_edition(request).await.unwrap_err();
    assert_eq!(
        (refused.code(), refused.message()),
        (Code::NotFound, "there is no tournament `nowhere`")
    );
    let request = CreateTournamentRequest { file: "name = \"x\"\ngame = \"chess\"".to_owned() };
    let refused = server.tournaments(Some(Role::Admin)).create_tournament(request).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("chess"), "{}", refused.message());
    server.tournament("cup").await;
    let file = "name = \"cup\"\ngame = \"gomoku\"\n".to_owned();
    let request = CreateTournamentRequest { file };
    let twice = server.tournaments(Some(Role::Admin)).create_tournament(request).await;
    assert_eq!(twice.unwrap_err().code(), Code::AlreadyExists);
    let mut rankings = RankingServiceClient::new(server.channel.clone());
    let board = LeaderboardRef { tournament: "cup".to_owned(), edition: None };
    let none =
        rankings.get_ranking(GetRankingRequest { leaderboard: Some(board), ..Default::default() });
    let none = none.await.unwrap_err();
    assert!(none.message().contains("no edition yet"), "{}", none.message());
    server.stop().await;
}

/// The response to a reflection request.
async fn reflect(server: &Server, question: MessageRequest) -> MessageResponse {
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(question) };
    let mut client = ServerReflectionClient::new(server.channel.clone());
    let asked = client.server_reflection_info(tokio_stream::iter([request])).await.unwrap();
    asked.into_inner().message().await.unwrap().unwrap().message_response.unwrap()
}

#[tokio::test]
async fn services_are_described_and_healthy() {
    let server = Server::start().await;
    let listed = reflect(&server, MessageRequest::ListServices(String::new())).await;
    let MessageResponse::ListServicesResponse(listed) = listed else { panic!("a list") };
    let names = listed.service.into_iter().map(|service| service.name);
    let mut ours: Vec<_> = names.filter(|name| name.starts_with("arbiter.v1.")).collect();
    ours.sort_unstable();
    let kinds = ["Audit", "Bot", "Ranking", "Token", "Tournament", "Worker"];
    assert_eq!(ours, kinds.map(|kind| format!("arbiter.v1.{kind}Service")));

    // That needs no token.
    let mut health = HealthClient::new(server.channel.clone());
    for name in &ours {
        let symbol = MessageRequest::FileContainingSymbol(name.clone());
        let described = reflect(&server, symbol).await;
        let MessageResponse::FileDescriptorResponse(file) = described else { panic!("{name}") };
        assert!(!file.file_descriptor_proto.is_empty(), "{name}");
        let asked = health.check(HealthCheckRequest { service: name.clone() }).await.unwrap();
        assert_eq!(asked.into_inner().status(), ServingStatus::Serving, "{name}");
    }
    let all = health.check(HealthCheckRequest::default()).await.unwrap();
    assert_eq!(all.into_inner().status(), ServingStatus::Serving);
    let unknown = HealthCheckRequest { service: "arbiter.v1.OracleService".to_owned() };
    assert_eq!(health.check(unknown).await.unwrap_err().code(), Code::NotFound);
    server.stop().await;
}

/// Connected workers, estimates and certificates.
#[tokio::test]
async fn editions_are_certified_and_estimated() {
    let server = Server::start().await;
    server.tournament("cup").await;
    let estimate = EstimateEditionRequest { tournament: "cup".to_owned(), fresh: false };
    let refused = server.tournaments(None).estimate_edition(estimate.clone()).await;
    assert_eq!(refused.unwrap_err().code(), Code::Unauthenticated);
    let mut organiser = server.tournaments(Some(Role::Organiser));
    let estimated = organiser.estimate_edition(estimate.clone()).await.unwrap().into_inner();
    assert_eq!((estimated.bots, estimated.matches, estimated.to_play), (3, 6, 6));
    assert_eq!((estimated.slots, estimated.eta_us, estimated.measured), (0, None, false));
    let certify = CertifyEditionRequest { tournament: "cup".to_owned(), ..Default::default() };
    let next = organiser.certify_edition(certify.clone()).await.unwrap().into_inner();
    assert_eq!((next.edition, next.matches, next.broken_promise.as_str()), (0, 6, ""));
    let mut worker = Worker::new(&server, "w").await;
    let estimated = organiser.estimate_edition(estimate).await.unwrap().into_inner();
    assert!(estimated.slots == 3 && estimated.eta_us.is_some(), "{estimated:?}");
    let edition = server.edition("cup").await;
    assert!(edition.slots == 3 && edition.eta_us.is_some(), "{edition:?}");
    let played = organiser.certify_edition(certify).await.unwrap().into_inner();
    assert_eq!((played.edition, played.matches, played.broken_promise.as_str()), (1, 6, ""));
    let listed = organiser.list_tournaments(ListTournamentsRequest {}).await.unwrap();
    assert_eq!(listed.into_inner().tournaments[0].editions.len(), 1);
    let lot = worker.lot().await;
    assert_eq!(worker.report(report(&lot)).await, ReportStatus::Accepted);
    server.stop().await;
}

/// A certificate without counts gives the reason and the origin of the seed.
#[tokio::test]
async fn the_certificate_of_episodes_states_the_origin_of_the_seed() {
    let server = Server::start().await;
    let mut organiser = server.tournaments(Some(Role::Organiser));
    for (name, beacon) in [("plain", ""), ("cup", "beacon = \"block 900000\"\n")] {
        let file = format!(
            "name = \"{name}\"\ngame = \"blackjack\"\n{beacon}[submissions]\n\
             closes = \"2999-01-01T00:00:00Z\"\n"
        );
        organiser.create_tournament(CreateTournamentRequest { file }).await.unwrap();
        for bot in ["one", "two", "three"] {
            server.submit(Role::Organiser, name, bot, true, b"a bundle").await.unwrap();
        }
        let named = (!beacon.is_empty()).then_some("block 900000");
        for edition in [0, 1] {
            if edition == 1 {
                server.edition(name).await;
            }
            let certify =
                CertifyEditionRequest { tournament: name.to_owned(), ..Default::default() };
            let found = organiser.certify_edition(certify).await.unwrap().into_inner();
            assert_eq!((found.edition, found.bots), (edition, 3));
            assert!(found.not_counted.contains("nothing about how often pairs meet"), "{found:?}");
            assert_eq!(found.beacon.as_ref().map(|beacon| &beacon.name[..]), named);
        }
    }
    server.stop().await;
}

/// Plays an edition of tables of four, in which `b1` gives 60 points to `b0` whenever they meet.
async fn play_with_colluders(server: &Server, matches: i64) {
    let mut worker = Worker::new(server, "player").await;
    let seed = Seed::of_text("chance");
    let mut played = 0;
    while played < matches {
        let lot = worker.lot().await;
        played += i64::try_from(lot.matches.len()).unwrap();
        let results = lot.matches.iter().map(|planned| {
            let mut dice = seed.dice(planned.number.unsigned_abs());
            let sits = |name: &str| planned.seats.iter().any(|seat| seat.bot == name);
            let worth = |seat: &v1::Seat| {
                let chance = i64::from(dice.below(60)) + i64::from(dice.below(60));
                let strength = 30 * seat.bot[1..].parse::<i64>().unwrap();
                let given = match seat.bot.as_str() {
                    "b0" if sits("b1") => 60,
                    "b1" if sits("b0") => -60,
                    _ => 0,
                };
                strength + chance + given
            };
            let worth: Vec<i64> = planned.seats.iter().map(worth).collect();
            // A table shares the points of forty deals.
            let mean = worth.iter().sum::<i64>() / 4;
            let mut points: Vec<_> = worth.iter().map(|worth| 840 + worth - mean).collect();
            points[0] += 4 * 840 - points.iter().sum::<i64>();
            let seats = points
                .into_iter()
                .map(|points| SeatResult { score: vec![points], ..SeatResult::default() });
            MatchResult {
                number: planned.number,
                seats: seats.collect(),
                transcript: vec![7; 32],
                wall_ms: 5,
                record: b"a record".to_vec(),
            }
        });
        let level = "A".to_owned();
        let trace = String::new();
        let results = results.collect();
        let report = Report { lease: lot.lease, results, level, trial: None, trace };
        assert_eq!(worker.report(report).await, ReportStatus::Accepted);
    }
}

async fn collusion(
    server: &Server,
    role: Option<Role>,
    tournament: &str,
) -> Result<FindCollusionResponse, Status> {
    let tournament = tournament.to_owned();
    let request = FindCollusionRequest { tournament, edition: None, limit: 3 };
    server.tournaments(role).find_collusion(request).await.map(tonic::Response::into_inner)
}

#[tokio::test]
async fn only_organisers_search_for_collusion() {
    let server = Server::start().await;
    let file = "name = \"tables\"\ngame = \"wojna\"\nseed = \"tables\"\n\
        [schedule]\nkind = \"foursomes\"\nmeetings = 12\n\
        [audit]\nreplay = \"0%\"\nshadow = \"0%\"\n";
    let request = CreateTournamentRequest { file: file.to_owned() };
    server.tournaments(Some(Role::Organiser)).create_tournament(request).await.unwrap();
    for bot in 0..10 {
        let name = format!("b{bot}");
        server.submit(Role::Organiser, "tables", &name, true, name.as_bytes()).await.unwrap();
    }
    let edition = server.edition("tables").await;
    let early = collusion(&server, Some(Role::Organiser), "tables").await.unwrap_err();
    assert_eq!(early.code(), Code::FailedPrecondition);
    assert!(early.message().contains("no results yet"), "{early}");
    let watch = WatchEditionRequest { tournament: "tables".to_owned(), edition: None };
    let watched = server.tournaments(None).watch_edition(watch).await.unwrap();
    play_with_colluders(&server, edition.matches).await;
    assert_eq!(last(watched.into_inner()).await.state, "complete");

    let found = collusion(&server, Some(Role::Organiser), "tables").await.unwrap();
    assert_eq!((found.edition, found.tables, found.tested), (1, 90, 90));
    assert_eq!((found.flagged, found.pairs.len()), (1, 3));
    let pair = &found.pairs[0];
    assert_eq!((pair.bot.as_str(), pair.partner.as_str(), pair.together), ("b0", "b1", 12));
    assert!(pair.flagged && pair.q <= 0.05 && pair.p <= pair.q, "{pair:?}");
    assert!(pair.difference > 30.0 && pair.partner_difference < -30.0, "{pair:?}");
    assert!(pair.mean_with > pair.mean_without + 30.0, "{pair:?}");
    assert!(!found.pairs[1].flagged && found.claim.contains("not a proof"), "{found:?}");
    let again = collusion(&server, Some(Role::Admin), "tables").await.unwrap();
    assert_eq!(found, again, "the draws are from what is public");
    for (role, code) in [
        (None, Code::Unauthenticated),
        (Some(Role::Player), Code::PermissionDenied),
        (Some(Role::Worker), Code::PermissionDenied),
    ] {
        assert_eq!(collusion(&server, role, "tables").await.unwrap_err().code(), code);
    }
    server.stop().await;
}

#[tokio::test]
async fn tables_of_two_are_not_searched_for_collusion() {
    let server = Server::start().await;
    server.tournament("cup").await;
    let edition = server.edition("cup").await;
    let mut worker = Worker::new(&server, "player").await;
    let mut played = 0;
    while played < edition.matches {
        let lot = worker.lot().await;
        played += i64::try_from(lot.matches.len()).unwrap();
        assert_eq!(worker.report(report(&lot)).await, ReportStatus::Accepted);
    }
    let refused = collusion(&server, Some(Role::Organiser), "cup").await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("cup is played by two at a table"), "{refused}");
    server.stop().await;
}
