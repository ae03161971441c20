//! Beacons and published seeds over gRPC.

use std::collections::HashMap;

use arbiter_coordinator::access::Role;
use arbiter_games::RULES_VERSION;
use arbiter_proto::v1::{
    CheckEditionRequest, CloseTournamentRequest, CreateTournamentRequest, GetEditionSourceRequest,
    ListMatchesRequest, ReinstateBotRequest, SetBeaconRequest, WatchEditionRequest,
    WithdrawBotRequest,
};
use tonic::Code;

use crate::{Server, Worker, last, report};

/// Moves the end of entry to the past.
const CLOSE_ENTRY: &str = "
    UPDATE tournaments
    SET settings = jsonb_set(settings, '{submissions,closes}', '\"2020-01-01T00:00:00Z\"')";

/// Only organisers set the value of a beacon, and only after entry has closed. After the end of the
/// tournament, verification detects every change of the derived data.
#[tokio::test]
async fn a_beacon_and_its_derived_data_are_checked() {
    let server = Server::start().await;
    let file = "name = \"cup\"\ngame = \"tricks\"\nbeacon = \"block 900000\"\n[submissions]\n\
        closes = \"2999-01-01T00:00:00Z\"\nwindow = \"0ms\"\n"
        .to_owned();
    let organiser = || server.tournaments(Some(Role::Organiser));
    organiser().create_tournament(CreateTournamentRequest { file }).await.unwrap();
    for bot in ["one", "two", "three"] {
        server.submit(Role::Organiser, "cup", bot, true, b"a bundle").await.unwrap();
    }
    server.start_edition("cup").await;
    let request = SetBeaconRequest { tournament: "cup".to_owned(), value: "1a17d".to_owned() };
    for role in [None, Some(Role::Worker), Some(Role::Player)] {
        let error = server.tournaments(role).set_beacon(request.clone()).await.unwrap_err();
        let expected = if role.is_none() { Code::Unauthenticated } else { Code::PermissionDenied };
        assert_eq!(error.code(), expected, "{error}");
    }
    let error = organiser().set_beacon(request.clone()).await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert!(error.message().contains("has not closed"), "{error}");

    let pool = &server.database.pool;
    sqlx::query(CLOSE_ENTRY).execute(pool).await.unwrap();
    let error = server.submit(Role::Organiser, "cup", "four", true, b"a bundle").await.unwrap_err();
    assert!(error.message().contains("closed"), "entry of organisers: {error}");
    let response = organiser().set_beacon(request.clone()).await.unwrap().into_inner();
    let beacon = response.beacon.clone().unwrap();
    assert_eq!((beacon.value.as_str(), beacon.first_edition), ("1a17d", 2));
    assert_eq!((response.editions.len(), response.seed.len()), (2, 0));
    let second_response = organiser().set_beacon(request.clone()).await.unwrap().into_inner();
    assert_eq!((second_response.beacon, second_response.editions.len()), (response.beacon, 2));
    let other_value = SetBeaconRequest { value: "1a17e".to_owned(), ..request };
    let error = organiser().set_beacon(other_value).await.unwrap_err();
    assert!(error.message().contains("already has the value \"1a17d\""), "{error}");

    let edition = response.editions[0].id;
    let first = "SELECT first_match FROM editions WHERE id = $1";
    let first: i64 = sqlx::query_scalar(first).bind(edition).fetch_one(pool).await.unwrap();
    assert_eq!(first, 3, "the second edition shares no match with the first one");
    let seeds = play_edition(&server, first).await;
    let watch = WatchEditionRequest { tournament: "cup".to_owned(), edition: Some(2) };
    let states = server.tournaments(None).watch_edition(watch).await.unwrap();
    assert_eq!(last(states.into_inner()).await.state, "complete");
    let source_request = GetEditionSourceRequest { tournament: "cup".to_owned(), edition: Some(2) };
    let error =
        server.tournaments(None).get_edition_source(source_request.clone()).await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    assert_eq!(
        server.check_seeds(false).await,
        (0, 0, Vec::new()),
        "the seed is secret until the tournament ends"
    );
    let close = CloseTournamentRequest { tournament: "cup".to_owned() };
    organiser().close_tournament(close).await.unwrap();

    assert_eq!(server.check_seeds(true).await, (3, 3, Vec::new()));
    server.check_the_official_edition().await;
    let list_request = ListMatchesRequest {
        tournament: "cup".to_owned(),
        edition: Some(2),
        ..ListMatchesRequest::default()
    };
    let mut matches =
        server.tournaments(None).list_matches(list_request).await.unwrap().into_inner();
    while let Some(row) = matches.message().await.unwrap() {
        let number = row.r#match.split('/').nth(1).unwrap().parse::<i64>().unwrap();
        let seed = digits(&row.seed);
        assert_eq!(seeds[&number], seed, "the worker received another seed");
    }
    let source =
        server.tournaments(None).get_edition_source(source_request).await.unwrap().into_inner();
    assert_eq!((source.entrants, &source.bots[2].name[..]), (3, "three"));
    server.check_that_changes_are_detected(first, &seeds).await;
    server.stop().await;
}

/// When the value is known, an organiser could choose between two plans by a change of a house bot.
#[tokio::test]
async fn house_bots_cannot_change_after_entry_has_closed() {
    let server = Server::start().await;
    let create = async |name: &str, beacon: &str| {
        let file = format!(
            "name = \"{name}\"\ngame = \"tricks\"\n{beacon}[submissions]\n\
             closes = \"2999-01-01T00:00:00Z\"\npreflight = false\n"
        );
        let mut client = server.tournaments(Some(Role::Organiser));
        client.create_tournament(CreateTournamentRequest { file }).await.unwrap();
        for (role, bot, house) in [
            (Role::Organiser, "early", true),
            (Role::Organiser, "house", true),
            (Role::Admin, "own", false),
            (Role::Player, "player", false),
        ] {
            server.submit(role, name, bot, house, b"a bundle").await.unwrap();
        }
    };
    let withdraw = async |tournament: &str, bot: &str| {
        let request = WithdrawBotRequest { tournament: tournament.to_owned(), bot: bot.to_owned() };
        server.bots(Some(Role::Organiser)).withdraw_bot(request).await.map(drop)
    };
    let reinstate = async |tournament: &str, bot: &str| {
        let request =
            ReinstateBotRequest { tournament: tournament.to_owned(), bot: bot.to_owned() };
        server.bots(Some(Role::Organiser)).reinstate_bot(request).await.map(drop)
    };
    create("cup", "beacon = \"block 900000\"\n").await;
    create("plain", "").await;
    withdraw("cup", "early").await.unwrap();
    sqlx::query(CLOSE_ENTRY).execute(&server.database.pool).await.unwrap();
    for bot in ["house", "own"] {
        for result in [withdraw("cup", bot).await, reinstate("cup", bot).await] {
            let error = result.unwrap_err();
            assert_eq!(error.code(), Code::FailedPrecondition);
            let expected =
                format!("the bot {bot} is a house bot, and entry to cup closed at 2020-01-01");
            assert!(error.message().starts_with(&expected), "{error}");
        }
    }
    let error = reinstate("cup", "player").await.unwrap_err();
    assert_eq!(error.message(), "the bot player/player is not suspended");
    withdraw("cup", "player").await.unwrap();
    withdraw("plain", "house").await.unwrap();
    server.stop().await;
}

/// Plays the matches from the number `first` on, which are three. Returns the seed that a worker
/// received for each.
async fn play_edition(server: &Server, first: i64) -> HashMap<i64, String> {
    let mut worker = Worker::new(server, "player").await;
    let mut seeds = HashMap::new();
    while seeds.len() < 3 {
        let lot = worker.lot().await;
        let mut report = report(&lot);
        for (planned, result) in lot.matches.iter().zip(&mut report.results) {
            let seed = digits(&planned.seed);
            result.record = record(&seed);
            for (score, seat) in [[1, 8], [-1, -8]].into_iter().zip(&mut result.seats) {
                seat.score = score.to_vec();
            }
            // Shadow matches have leases of negative tournaments.
            if lot.lease.unwrap().tournament > 0 && planned.number >= first {
                seeds.insert(planned.number, seed);
            }
        }
        worker.report(report).await;
    }
    seeds
}

/// A seed in hexadecimal digits.
fn digits(seed: &[u8]) -> String {
    let digits: Vec<_> = seed.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

/// A record whose first line has this seed.
fn record(seed: &str) -> Vec<u8> {
    zstd::encode_all(format!("{{\"record\":1,\"seed\":\"{seed}\"}}\n").as_bytes(), 1).unwrap()
}

impl Server {
    /// Verifies the seeds of the newest edition. Returns the number of matches, the number of
    /// records and the differences.
    async fn check_seeds(&self, records: bool) -> (i64, i64, Vec<String>) {
        let tournament = "cup".to_owned();
        let request = CheckEditionRequest { tournament, edition: None, records };
        let response = self.tournaments(Some(Role::Organiser)).check_edition(request).await;
        let check = response.unwrap().into_inner();
        (check.derived, check.records, check.seed_differences)
    }

    /// Checks that verification ignores a newer cancelled edition, and that it gives a reason if it
    /// cannot derive the plan.
    async fn check_the_official_edition(&self) {
        let pool = &self.database.pool;
        let check = async || {
            let tournament = "cup".to_owned();
            let request = CheckEditionRequest { tournament, edition: None, records: false };
            self.tournaments(None).check_edition(request).await.unwrap().into_inner()
        };
        let add_cancelled =
            "INSERT INTO editions (tournament, number, components, state, first_match, end_match,
                rules, created_at, ended_at)
            SELECT tournament, 3, components, 'cancelled', end_match, end_match, rules, created_at,
                ended_at
            FROM editions WHERE number = 2";
        sqlx::query(add_cancelled).execute(pool).await.unwrap();
        let result = check().await;
        assert_eq!((result.edition, result.derived, &result.not_derived[..]), (2, 3, ""));
        sqlx::query("DELETE FROM editions WHERE number = 3").execute(pool).await.unwrap();
        let set_rules = async |version: &'static str| {
            let change = "UPDATE editions SET rules = $1 WHERE number = 2";
            sqlx::query(change).bind(version).execute(pool).await.unwrap();
        };
        set_rules("0").await;
        let result = check().await;
        assert_eq!((result.edition, result.derived), (2, 0));
        let expected = "edition 2 was planned by version 0 of the rules";
        assert!(result.not_derived.starts_with(expected), "{result:?}");
        set_rules(RULES_VERSION).await;
    }

    /// Changes the stored tournament in several ways, and checks that verification detects each
    /// change. The edition has the three matches from the number `first` on.
    async fn check_that_changes_are_detected(&self, first: i64, seeds: &HashMap<i64, String>) {
        let pool = &self.database.pool;
        let changes = [
            ("tournaments", "seed_hash = sha256(seed_hash)", "that was published at creation"),
            ("tournaments", "committed_seed = sha256(committed_seed)", "published at creation"),
            ("tournaments", "beacon_value = '1a17e'", "the committed seed and the beacon give"),
            ("tournaments", "seed = sha256(seed)", "the committed seed and the beacon give"),
            ("matches", "seed_key = seed_key + 1", "its seed in the stored plan is"),
            ("matches", "seats = ARRAY[seats[2], seats[1]]", "and the published seed gives"),
        ];
        // Triggers protect these tables, but the owner of the database can disable them.
        let disable_triggers = "ALTER TABLE matches DISABLE TRIGGER USER; \
            ALTER TABLE records DISABLE TRIGGER USER";
        sqlx::raw_sql(disable_triggers).execute(pool).await.unwrap();
        for (table, change, expected) in changes {
            let save = format!("CREATE TABLE saved AS SELECT * FROM {table}");
            sqlx::query(sqlx::AssertSqlSafe(save)).execute(pool).await.unwrap();
            let condition = match table {
                "matches" => format!("WHERE number = {}", first + 1),
                _ => String::new(),
            };
            let change = format!("UPDATE {table} SET {change} {condition}");
            sqlx::query(sqlx::AssertSqlSafe(change.clone())).execute(pool).await.unwrap();
            let (_, _, differences) = self.check_seeds(false).await;
            assert!(
                differences.iter().any(|line| line.contains(expected)),
                "{change}: {differences:?}"
            );
            let name = format!("match cup/{}: ", first + 1);
            let is_exact = differences.len() == 1 && differences[0].starts_with(&name);
            assert!(table != "matches" || is_exact, "{differences:?}");
            let restore = match table {
                "matches" => {
                    "UPDATE matches m SET seed_key = k.seed_key, seats = k.seats FROM saved k
                    WHERE k.tournament = m.tournament AND k.number = m.number"
                }
                _ => {
                    "UPDATE tournaments t SET seed_hash = k.seed_hash, seed = k.seed,
                        committed_seed = k.committed_seed, beacon_value = k.beacon_value
                    FROM saved k WHERE k.id = t.id"
                }
            };
            sqlx::raw_sql(restore).execute(pool).await.unwrap();
            sqlx::raw_sql("DROP TABLE saved").execute(pool).await.unwrap();
        }
        assert_eq!(self.check_seeds(true).await, (3, 3, Vec::new()), "all changes are undone");
        let last = first + 2;
        let statement = "UPDATE records SET bytes = $2 WHERE number = $1";
        let query = sqlx::query(statement).bind(last).bind(record(&"5e".repeat(32)));
        query.execute(pool).await.unwrap();
        let (_, _, differences) = self.check_seeds(true).await;
        let expected = format!(
            "match cup/{last}: its record has the seed {}, and the published seed gives {}",
            "5e".repeat(32),
            seeds[&last]
        );
        assert_eq!(differences, [expected]);
        let delete = "DELETE FROM matches WHERE number = $1";
        sqlx::query(delete).bind(last).execute(pool).await.unwrap();
        let (_, _, differences) = self.check_seeds(false).await;
        let expected = "the match at place 2 of the plan follows from the seed but is not stored";
        assert_eq!(differences, [expected]);
        let tournament = "cup".to_owned();
        let request = CheckEditionRequest { tournament, edition: None, records: true };
        let error = self.tournaments(Some(Role::Player)).check_edition(request).await.unwrap_err();
        assert_eq!(
            error.code(),
            Code::PermissionDenied,
            "verification of all records needs a role"
        );
    }
}
