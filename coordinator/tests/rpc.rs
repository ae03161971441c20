//! The gRPC services: required roles, refused requests, and workers that connect and disconnect.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "rpc/beacon.rs"]
mod beacon;
#[path = "support/grpc_client.rs"]
mod grpc_client;
mod support;

use arbiter_coordinator::access::{self, Role};
use arbiter_coordinator::queue::LeasePolicy;
use arbiter_games::Seed;
use arbiter_proto::v1::coordinator_message::Payload as CoordinatorPayload;
use arbiter_proto::v1::ranking_service_client::RankingServiceClient;
use arbiter_proto::v1::token_service_client::TokenServiceClient;
use arbiter_proto::v1::worker_message::Payload;
use arbiter_proto::v1::{
    self, CertifyEditionRequest, CheckEditionRequest, CreateTokenRequest, CreateTournamentRequest,
    Edition, EstimateEditionRequest, FetchBundleRequest, FindCollusionRequest,
    FindCollusionResponse, GetBotLogRequest, GetRankingRequest, GetRecordRequest, LeaderboardRef,
    ListTokensRequest, ListTournamentsRequest, MatchResult, RenewLeases, Report, ReportStatus,
    ReturnLeases, RevokeTokenRequest, SeatResult, StartEditionRequest, WatchEditionRequest,
};
use tonic::{Code, Status, Streaming};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use grpc_client::{Server, TIMEOUT, Worker, report};
use support::START;

#[tokio::test]
async fn a_players_bot_from_before_there_were_handles_keeps_its_plain_name() {
    let server = Server::start().await;
    server.create_tournament("cup").await;
    let pool = &server.database.pool;
    let player: i32 = sqlx::query_scalar("SELECT id FROM tokens WHERE role = 'player'")
        .fetch_one(pool)
        .await
        .unwrap();
    // The former version knew no handles.
    for statement in [
        "UPDATE tokens SET handle = NULL",
        "INSERT INTO bots (tournament, owner, name, created_at)
        SELECT t.id, p.id, 'mine', now() FROM tournaments t, tokens p WHERE p.role = 'player'",
    ] {
        sqlx::query(statement).execute(pool).await.unwrap();
    }
    let submit = |bot: &'static str| server.submit(Role::Player, "cup", bot, false, b"a bundle");
    assert_eq!(submit("mine").await.unwrap(), 1);
    // A house bot is named `one`.
    for new in ["other", "one", "player/other"] {
        assert_eq!(submit(new).await.unwrap(), 1, "{new}");
    }
    let statement = "SELECT name FROM bots WHERE owner = $1 ORDER BY id";
    let names: Vec<String> =
        sqlx::query_scalar(statement).bind(player).fetch_all(pool).await.unwrap();
    assert_eq!(names, ["mine", "player/other", "player/one"]);
    server.stop().await;
}

#[tokio::test]
async fn every_call_requires_its_role() {
    let server = Server::start().await;
    server.create_tournament("cup").await;
    let refusal_code = |role| {
        let mut tournaments = server.tournaments(role);
        async move {
            let request = StartEditionRequest { tournament: "cup".to_owned(), fresh: false };
            tournaments.start_edition(request).await.unwrap_err().code()
        }
    };
    assert_eq!(refusal_code(None).await, Code::Unauthenticated);
    assert_eq!(refusal_code(Some(Role::Player)).await, Code::PermissionDenied);
    assert_eq!(refusal_code(Some(Role::Worker)).await, Code::PermissionDenied);
    let bundle = FetchBundleRequest { digest: vec![0; 32] };
    let result = server.workers(Some(Role::Organiser)).fetch_bundle(bundle.clone()).await;
    assert_eq!(result.unwrap_err().code(), Code::PermissionDenied);
    let result = server.workers(Some(Role::Worker)).fetch_bundle(bundle).await;
    assert_eq!(result.unwrap_err().code(), Code::PermissionDenied);
    let result = server.submit(Role::Player, "cup", "mine", true, b"x").await;
    assert_eq!(result.unwrap_err().code(), Code::PermissionDenied);
    let create = CreateTokenRequest {
        role: "worker".to_owned(),
        name: "two\nlines".to_owned(),
        ..CreateTokenRequest::default()
    };
    for role in [Role::Organiser, Role::Player, Role::Worker] {
        let mut tokens =
            TokenServiceClient::with_interceptor(server.channel.clone(), server.bearer(Some(role)));
        let code = tokens.create_token(create.clone()).await.unwrap_err().code();
        assert_eq!(code, Code::PermissionDenied);
    }
    let admin = server.bearer(Some(Role::Admin));
    let mut tokens = TokenServiceClient::with_interceptor(server.channel.clone(), admin);
    let error = tokens.create_token(create).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    server.stop().await;
}

#[tokio::test]
async fn a_tournament_is_played_over_grpc() {
    let server = Server::start().await;
    server.create_tournament("cup").await;
    assert_eq!(server.submit(Role::Organiser, "cup", "one", true, b"a bundle").await.unwrap(), 1);
    let edition = server.start_edition("cup").await;
    let watch = WatchEditionRequest { tournament: "cup".to_owned(), edition: None };
    let states = server.tournaments(None).watch_edition(watch).await.unwrap();
    let mut worker = Worker::new(&server, "player").await;
    let mut played_matches = 0;
    let mut match_name = String::new();
    while played_matches < edition.matches {
        let lot = worker.lot().await;
        assert_eq!(lot.game, "gomoku");
        assert!(lot.matches.iter().all(|planned| planned.seed.len() == 32));
        played_matches += i64::try_from(lot.matches.len()).unwrap();
        match_name = format!("cup/{}", lot.matches[0].number);
        let first_report = report(&lot);
        assert_eq!(worker.report(first_report.clone()).await, ReportStatus::Accepted);
        assert_eq!(worker.report(first_report.clone()).await, ReportStatus::Duplicate);
        let mut late_report = first_report;
        late_report.lease.as_mut().unwrap().attempt += 1;
        assert_eq!(worker.report(late_report).await, ReportStatus::Late);
    }
    let final_state = last(states.into_inner()).await;
    assert_eq!(
        (final_state.state.as_str(), final_state.official, final_state.counted),
        ("complete", true, played_matches)
    );
    let board = LeaderboardRef { tournament: "cup".to_owned(), edition: None };
    let request = GetRankingRequest { leaderboard: Some(board), ..GetRankingRequest::default() };
    let mut rankings = RankingServiceClient::new(server.channel.clone());
    let page = rankings.get_ranking(request).await.unwrap().into_inner();
    assert!(page.official && page.standings.len() == 3);
    let points: i64 =
        page.standings.iter().map(|place| place.score[0].parse::<i64>().unwrap()).sum();
    assert_eq!(points, 2 * played_matches);
    let tournament = "cup".to_owned();
    let request = CheckEditionRequest { tournament, edition: None, records: false };
    let check = server.tournaments(None).check_edition(request).await.unwrap().into_inner();
    assert_eq!((check.matches, check.differences), (played_matches, Vec::<String>::new()));
    let request = GetRecordRequest { r#match: match_name };
    let result = server.tournaments(Some(Role::Player)).get_record(request.clone()).await;
    assert_eq!(result.unwrap_err().code(), Code::PermissionDenied);
    let record = server.tournaments(Some(Role::Organiser)).get_record(request).await.unwrap();
    let piece = record.into_inner().message().await.unwrap().unwrap();
    assert_eq!(piece.bytes, b"a record");
    server.stop().await;
}

#[tokio::test]
async fn a_log_names_the_components_of_scores_only_if_they_are_known() {
    let server = Server::start().await;
    server.create_tournament("cup").await;
    let edition = server.start_edition("cup").await;
    let mut worker = Worker::new(&server, "player").await;
    let mut played_matches = 0;
    while played_matches < edition.matches {
        let lot = worker.lot().await;
        played_matches += i64::try_from(lot.matches.len()).unwrap();
        assert_eq!(worker.report(report(&lot)).await, ReportStatus::Accepted);
    }
    let columns = async |game: &str| {
        let query = sqlx::query("UPDATE tournaments SET game = $1").bind(game);
        query.execute(&server.database.pool).await.unwrap();
        let request = GetBotLogRequest {
            tournament: "cup".to_owned(),
            bot: "one".to_owned(),
            ..GetBotLogRequest::default()
        };
        let log = server.bots(Some(Role::Organiser)).get_bot_log(request).await.unwrap();
        let log = log.into_inner();
        assert!(log.entries.iter().any(|entry| entry.score.len() == 1), "{log:?}");
        log.columns
    };
    // A score of tricks has two components: these matches were played by other rules.
    assert_eq!(columns("tricks").await, Vec::<String>::new());
    // This version does not know the game.
    assert_eq!(columns("chess").await, Vec::<String>::new());
    assert_eq!(columns("gomoku").await, ["points"]);
    server.stop().await;
}

/// A client watches the newest edition again after an edition ends. It gets the next edition.
#[tokio::test]
async fn a_watcher_of_the_newest_edition_gets_the_next_one() {
    let server = Server::start().await;
    let file = "name = \"cup\"\ngame = \"gomoku\"\n[submissions]\nwindow = \"100ms\"\n".to_owned();
    let create = CreateTournamentRequest { file };
    server.tournaments(Some(Role::Organiser)).create_tournament(create).await.unwrap();
    for bot in ["one", "two"] {
        server.submit(Role::Organiser, "cup", bot, true, b"a bundle").await.unwrap();
    }
    server.start_edition("cup").await;
    let newest = async || {
        let watch = WatchEditionRequest { tournament: "cup".to_owned(), edition: None };
        let states = server.tournaments(None).watch_edition(watch).await.unwrap();
        states.into_inner().message().await.unwrap().unwrap()
    };
    assert_eq!(newest().await.number, 1);
    server.submit(Role::Organiser, "cup", "two", true, b"another").await.unwrap();
    let mut edition = newest().await;
    while (edition.number, edition.state.as_str()) == (1, "running") {
        edition = newest().await;
    }
    assert_eq!(newest().await.number, 2);
    server.stop().await;
}

/// The last state of a watched edition.
async fn last(mut states: Streaming<Edition>) -> Edition {
    let mut last = None;
    while let Some(state) = tokio::time::timeout(TIMEOUT, states.message()).await.unwrap().unwrap()
    {
        last = Some(state);
    }
    last.unwrap()
}

/// A worker keeps its leases when it connects again. A returned lease can be leased by another
/// worker at once.
#[tokio::test]
async fn leases_survive_reconnects_and_can_be_returned() {
    let server = Server::start().await;
    server.create_tournament("cup").await;
    server.start_edition("cup").await;
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
        panic!("expected a lost lease")
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
    let response = tokens.list_tokens(ListTokensRequest::default()).await.unwrap().into_inner();
    let id = response.tokens.iter().find(|token| token.role == "worker").unwrap().id;
    tokens.revoke_token(RevokeTokenRequest { id, ..Default::default() }).await.unwrap();
    // Its number never becomes the name of another token.
    let role = "player".to_owned();
    let named = CreateTokenRequest { role, name: id.to_string(), ..Default::default() };
    let refusal = tokens.create_token(named).await.unwrap_err();
    assert_eq!(refusal.code(), Code::InvalidArgument, "{refusal}");
    // A token from before this rule may have it, and keeps working.
    let pool = &server.database.pool;
    let (numbered, secret) =
        access::create(pool, Role::Player, &id.to_string(), START).await.unwrap();
    let again = RevokeTokenRequest { token: id.to_string(), ..Default::default() };
    assert_eq!(tokens.revoke_token(again).await.unwrap_err().code(), Code::NotFound);
    assert!(access::find(pool, &secret, START).await.unwrap().is_some());
    let by_number = RevokeTokenRequest { id: numbered.0, ..Default::default() };
    tokens.revoke_token(by_number).await.unwrap();
    let result = tokio::time::timeout(TIMEOUT, worker.incoming.message()).await.unwrap();
    assert_eq!(result.unwrap_err().code(), Code::Unauthenticated);
    server.stop().await;
}

#[tokio::test]
async fn a_worker_with_other_rules_is_refused() {
    let server = Server::start().await;
    let error = match Worker::connect(&server, "old", "0").await {
        Ok(mut worker) => worker.incoming.message().await.unwrap_err(),
        Err(status) => status,
    };
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert!(error.message().contains("install the same version"), "{}", error.message());
    server.stop().await;
}

#[tokio::test]
async fn invalid_requests_are_refused_with_a_reason() {
    let server = Server::start().await;
    let request = StartEditionRequest { tournament: "nowhere".to_owned(), fresh: false };
    let error = server.tournaments(Some(Role::Admin)).start_edition(request).await.unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        (Code::NotFound, "there is no tournament `nowhere`")
    );
    let request = CreateTournamentRequest { file: "name = \"x\"\ngame = \"chess\"".to_owned() };
    let result = server.tournaments(Some(Role::Admin)).create_tournament(request).await;
    let error = result.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("chess"), "{}", error.message());
    server.create_tournament("cup").await;
    let file = "name = \"cup\"\ngame = \"gomoku\"\n".to_owned();
    let request = CreateTournamentRequest { file };
    let result = server.tournaments(Some(Role::Admin)).create_tournament(request).await;
    assert_eq!(result.unwrap_err().code(), Code::AlreadyExists);
    let mut rankings = RankingServiceClient::new(server.channel.clone());
    let leaderboard = LeaderboardRef { tournament: "cup".to_owned(), edition: None };
    let request = GetRankingRequest { leaderboard: Some(leaderboard), ..Default::default() };
    let error = rankings.get_ranking(request).await.unwrap_err();
    assert!(error.message().contains("no edition yet"), "{}", error.message());
    server.stop().await;
}

/// The response to a reflection request.
async fn reflect(server: &Server, message_request: MessageRequest) -> MessageResponse {
    let request =
        ServerReflectionRequest { host: String::new(), message_request: Some(message_request) };
    let mut client = ServerReflectionClient::new(server.channel.clone());
    let responses = client.server_reflection_info(tokio_stream::iter([request])).await.unwrap();
    responses.into_inner().message().await.unwrap().unwrap().message_response.unwrap()
}

#[tokio::test]
async fn services_are_described_and_healthy() {
    let server = Server::start().await;
    let response = reflect(&server, MessageRequest::ListServices(String::new())).await;
    let MessageResponse::ListServicesResponse(list) = response else {
        panic!("expected a list of services")
    };
    let names = list.service.into_iter().map(|service| service.name);
    let mut arbiter_services: Vec<_> =
        names.filter(|name| name.starts_with("arbiter.v1.")).collect();
    arbiter_services.sort_unstable();
    let kinds = ["Audit", "Bot", "Ranking", "Token", "Tournament", "Worker"];
    assert_eq!(arbiter_services, kinds.map(|kind| format!("arbiter.v1.{kind}Service")));

    // Reflection and health checks need no token.
    let mut health = HealthClient::new(server.channel.clone());
    for name in &arbiter_services {
        let symbol = MessageRequest::FileContainingSymbol(name.clone());
        let response = reflect(&server, symbol).await;
        let MessageResponse::FileDescriptorResponse(file) = response else {
            panic!("{name}: expected a file descriptor")
        };
        assert!(!file.file_descriptor_proto.is_empty(), "{name}");
        let health_status =
            health.check(HealthCheckRequest { service: name.clone() }).await.unwrap();
        assert_eq!(health_status.into_inner().status(), ServingStatus::Serving, "{name}");
    }
    let overall_status = health.check(HealthCheckRequest::default()).await.unwrap();
    assert_eq!(overall_status.into_inner().status(), ServingStatus::Serving);
    let unknown = HealthCheckRequest { service: "arbiter.v1.OracleService".to_owned() };
    assert_eq!(health.check(unknown).await.unwrap_err().code(), Code::NotFound);
    server.stop().await;
}

#[tokio::test]
async fn editions_are_certified_and_estimated() {
    let server = Server::start().await;
    server.create_tournament("cup").await;
    let request = EstimateEditionRequest { tournament: "cup".to_owned(), fresh: false };
    let result = server.tournaments(None).estimate_edition(request.clone()).await;
    assert_eq!(result.unwrap_err().code(), Code::Unauthenticated);
    let mut organiser = server.tournaments(Some(Role::Organiser));
    let estimate = organiser.estimate_edition(request.clone()).await.unwrap().into_inner();
    assert_eq!((estimate.bots, estimate.matches, estimate.to_play), (3, 6, 6));
    assert_eq!((estimate.slots, estimate.eta_us, estimate.measured), (0, None, false));
    let certify = CertifyEditionRequest { tournament: "cup".to_owned(), ..Default::default() };
    let next_certificate = organiser.certify_edition(certify.clone()).await.unwrap().into_inner();
    assert_eq!(
        (
            next_certificate.edition,
            next_certificate.matches,
            next_certificate.broken_promise.as_str()
        ),
        (0, 6, "")
    );
    let mut worker = Worker::new(&server, "w").await;
    let estimate = organiser.estimate_edition(request).await.unwrap().into_inner();
    assert!(estimate.slots == 3 && estimate.eta_us.is_some(), "{estimate:?}");
    let edition = server.start_edition("cup").await;
    assert!(edition.slots == 3 && edition.eta_us.is_some(), "{edition:?}");
    let certificate = organiser.certify_edition(certify).await.unwrap().into_inner();
    assert_eq!(
        (certificate.edition, certificate.matches, certificate.broken_promise.as_str()),
        (1, 6, "")
    );
    let response = organiser.list_tournaments(ListTournamentsRequest {}).await.unwrap();
    assert_eq!(response.into_inner().tournaments[0].editions.len(), 1);
    let lot = worker.lot().await;
    assert_eq!(worker.report(report(&lot)).await, ReportStatus::Accepted);
    server.stop().await;
}

/// The certificate of episodes has no counts. It states the reason, and the origin of the seed.
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
        let beacon_name = (!beacon.is_empty()).then_some("block 900000");
        for edition in [0, 1] {
            if edition == 1 {
                server.start_edition(name).await;
            }
            let certify =
                CertifyEditionRequest { tournament: name.to_owned(), ..Default::default() };
            let certificate = organiser.certify_edition(certify).await.unwrap().into_inner();
            assert_eq!((certificate.edition, certificate.bots), (edition, 3));
            assert!(
                certificate.not_counted.contains("does not guarantee how often pairs meet"),
                "{certificate:?}"
            );
            assert_eq!(certificate.beacon.as_ref().map(|beacon| &beacon.name[..]), beacon_name);
        }
    }
    server.stop().await;
}

/// Plays an edition of foursomes. At each common table, `b1` gives 60 points to `b0`.
async fn play_with_colluders(server: &Server, matches: i64) {
    let mut worker = Worker::new(server, "player").await;
    let seed = Seed::of_text("chance");
    let mut played_matches = 0;
    while played_matches < matches {
        let lot = worker.lot().await;
        played_matches += i64::try_from(lot.matches.len()).unwrap();
        let results = lot.matches.iter().map(|planned| {
            let mut dice = seed.dice(planned.number.unsigned_abs());
            let is_at_table = |name: &str| planned.seats.iter().any(|seat| seat.bot == name);
            let value = |seat: &v1::Seat| {
                let chance = i64::from(dice.below(60)) + i64::from(dice.below(60));
                let strength = 30 * seat.bot[1..].parse::<i64>().unwrap();
                let transfer = match seat.bot.as_str() {
                    "b0" if is_at_table("b1") => 60,
                    "b1" if is_at_table("b0") => -60,
                    _ => 0,
                };
                strength + chance + transfer
            };
            let values: Vec<i64> = planned.seats.iter().map(value).collect();
            // The points of a table always have the sum of forty deals.
            let mean = values.iter().sum::<i64>() / 4;
            let mut points: Vec<_> = values.iter().map(|value| 840 + value - mean).collect();
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

async fn find_collusion(
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
    let edition = server.start_edition("tables").await;
    let error = find_collusion(&server, Some(Role::Organiser), "tables").await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert!(error.message().contains("no results yet"), "{error}");
    let watch = WatchEditionRequest { tournament: "tables".to_owned(), edition: None };
    let states = server.tournaments(None).watch_edition(watch).await.unwrap();
    play_with_colluders(&server, edition.matches).await;
    assert_eq!(last(states.into_inner()).await.state, "complete");

    let report = find_collusion(&server, Some(Role::Organiser), "tables").await.unwrap();
    assert_eq!((report.edition, report.tables, report.tested), (1, 90, 90));
    assert_eq!((report.flagged, report.pairs.len()), (1, 3));
    let pair = &report.pairs[0];
    assert_eq!((pair.bot.as_str(), pair.partner.as_str(), pair.together), ("b0", "b1", 12));
    assert!(pair.flagged && pair.q <= 0.05 && pair.p <= pair.q, "{pair:?}");
    assert!(pair.difference > 30.0 && pair.partner_difference < -30.0, "{pair:?}");
    assert!(pair.mean_with > pair.mean_without + 30.0, "{pair:?}");
    assert!(!report.pairs[1].flagged && report.claim.contains("not a proof"), "{report:?}");
    let second_report = find_collusion(&server, Some(Role::Admin), "tables").await.unwrap();
    assert_eq!(report, second_report, "both calls draw the same permutations");
    for (role, code) in [
        (None, Code::Unauthenticated),
        (Some(Role::Player), Code::PermissionDenied),
        (Some(Role::Worker), Code::PermissionDenied),
    ] {
        assert_eq!(find_collusion(&server, role, "tables").await.unwrap_err().code(), code);
    }
    server.stop().await;
}

#[tokio::test]
async fn tables_of_two_are_not_searched_for_collusion() {
    let server = Server::start().await;
    server.create_tournament("cup").await;
    let edition = server.start_edition("cup").await;
    let mut worker = Worker::new(&server, "player").await;
    let mut played_matches = 0;
    while played_matches < edition.matches {
        let lot = worker.lot().await;
        played_matches += i64::try_from(lot.matches.len()).unwrap();
        assert_eq!(worker.report(report(&lot)).await, ReportStatus::Accepted);
    }
    let error = find_collusion(&server, Some(Role::Organiser), "cup").await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert!(error.message().contains("of cup have fewer than three seats"), "{error}");
    server.stop().await;
}
