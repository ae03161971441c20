//! Statistics as clients get them: what a freeze hides, and which pages belong together.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/grpc_client.rs"]
mod grpc_client;
mod support;

use arbiter_coordinator::access::Role;
use arbiter_proto::v1::ranking_service_client::RankingServiceClient;
use arbiter_proto::v1::{
    CreateTournamentRequest, GetRankingRequest, GetStatisticsRequest, GetStatisticsResponse,
    LeaderboardRef, ReportStatus,
};
use tonic::{Code, Status};

use grpc_client::{AuthChannel, Server, Worker, report};
use support::wait_until;

/// Starts an edition of three bots. A submission replaces it at once.
async fn start_cup(server: &Server) -> i64 {
    let file = "name = \"cup\"\ngame = \"gomoku\"\nstate = \"none\"\nexpected = \"1h\"\n\
                [submissions]\nwindow = \"100ms\"\n";
    let create = CreateTournamentRequest { file: file.to_owned() };
    server.tournaments(Some(Role::Organiser)).create_tournament(create).await.unwrap();
    for bot in ["one", "two", "three"] {
        server.submit(Role::Organiser, "cup", bot, true, b"a bundle").await.unwrap();
    }
    server.start_edition("cup").await.matches
}

/// Plays some lots, and waits until they are counted.
async fn play(server: &Server, worker: &mut Worker, lots: i64) {
    for _ in 0..lots {
        let lot = worker.lot().await;
        assert_eq!(worker.report(report(&lot)).await, ReportStatus::Accepted);
    }
    let statement = "SELECT count(*) FROM lots WHERE state = 'reported'";
    wait_until("all results are counted", async || server.database.number(statement).await == 0)
        .await;
}

fn rankings(server: &Server, role: Option<Role>) -> RankingServiceClient<AuthChannel> {
    RankingServiceClient::with_interceptor(server.channel.clone(), server.bearer(role))
}

fn leaderboard(edition: i32) -> LeaderboardRef {
    LeaderboardRef { tournament: "cup".to_owned(), edition: Some(edition) }
}

/// A page of one bot. Waits until the first statistics are computed.
async fn page(
    rankings: &mut RankingServiceClient<AuthChannel>,
    edition: i32,
    offset: u32,
) -> Result<GetStatisticsResponse, Status> {
    let request = GetStatisticsRequest {
        leaderboard: Some(leaderboard(edition)),
        offset,
        limit: 1,
        ..GetStatisticsRequest::default()
    };
    let mut answer = Err(Status::unknown("no answer"));
    wait_until("statistics are computed", async || {
        answer = rankings.get_statistics(request.clone()).await;
        !answer.as_ref().is_err_and(|status| status.code() == Code::Unavailable)
    })
    .await;
    answer.map(tonic::Response::into_inner)
}

/// An edition that was cancelled before the freeze may have matches that are played after it, for
/// the next edition.
#[tokio::test]
async fn statistics_of_a_cancelled_edition_are_hidden_by_a_freeze_as_those_of_a_running_one() {
    let server = Server::start().await;
    start_cup(&server).await;
    let mut worker = Worker::new(&server, "player").await;
    play(&server, &mut worker, 1).await;
    server.submit(Role::Organiser, "cup", "two", true, b"another").await.unwrap();
    let cancelled = "SELECT count(*) FROM editions WHERE state = 'cancelled'";
    let is_cancelled = async || server.database.number(cancelled).await == 1;
    wait_until("the first edition is cancelled", is_cancelled).await;
    let freeze = "
        UPDATE tournaments SET settings = jsonb_set(settings, ARRAY['submissions', 'freeze'],
            to_jsonb(to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')))";
    sqlx::raw_sql(freeze).execute(&server.database.pool).await.unwrap();

    let mut organisers = rankings(&server, Some(Role::Organiser));
    let shown = page(&mut organisers, 1, 0).await.unwrap();
    assert_eq!((shown.edition, shown.matches), (1, 1));
    for role in [None, Some(Role::Player)] {
        let mut others = rankings(&server, role);
        let mut refusals = Vec::new();
        for edition in [1, 2] {
            let refusal = page(&mut others, edition, 0).await.unwrap_err();
            assert_eq!(refusal.code(), Code::PermissionDenied, "{refusal}");
            refusals.push(refusal.message().to_owned());
        }
        assert!(refusals[0].contains("are frozen since"), "{refusals:?}");
        assert_eq!(refusals[0], refusals[1]);
        // The leaderboard of the cancelled edition is visible, without possible ranks.
        let request = GetRankingRequest {
            leaderboard: Some(leaderboard(1)),
            rank_sets: true,
            ..GetRankingRequest::default()
        };
        let board = others.get_ranking(request).await.unwrap().into_inner();
        assert_eq!((board.counted, board.standings.len()), (1, 3));
        assert!(board.standings.iter().all(|place| place.rank_set.is_none()), "{board:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn pages_of_statistics_name_the_computation_that_they_are_from() {
    let server = Server::start().await;
    let matches = start_cup(&server).await;
    let mut worker = Worker::new(&server, "player").await;
    play(&server, &mut worker, 1).await;
    let mut rankings = rankings(&server, None);
    let first = page(&mut rankings, 1, 0).await.unwrap();
    let second = page(&mut rankings, 1, 1).await.unwrap();
    assert_eq!((first.matches, first.statistics.len(), second.statistics.len()), (1, 1, 1));
    assert_ne!(first.computation, "");
    assert_eq!(first.computation, second.computation);
    play(&server, &mut worker, matches - 1).await;
    wait_until("statistics are computed again", async || {
        let page = page(&mut rankings, 1, 1).await.unwrap();
        assert_eq!(page.computation == first.computation, page.matches == 1, "{page:?}");
        i64::try_from(page.matches).unwrap() == matches
    })
    .await;
    server.stop().await;
}
