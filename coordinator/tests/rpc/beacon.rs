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

/// A tournament with a beacon over gRPC: who sets its value, who may still enter, and what is
/// shown. After the close, verification detects every change.
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
    server.edition("cup").await;
    let ask = SetBeaconRequest { tournament: "cup".to_owned(), value: "1a17d".to_owned() };
    for role in [None, Some(Role::Worker), Some(Role::Player)] {
        let refused = server.tournaments(role).set_beacon(ask.clone()).await.unwrap_err();
        let due = if role.is_none() { Code::Unauthenticated } else { Code::PermissionDenied };
        assert_eq!(refused.code(), due, "{refused}");
    }
    let early = organiser().set_beacon(ask.clone()).await.unwrap_err();
    assert_eq!(early.code(), Code::FailedPrecondition);
    assert!(early.message().contains("has not closed"), "{early}");

    let pool = &server.database.pool;
    let closing = "UPDATE tournaments SET settings = jsonb_set(settings, '{submissions,closes}', \
        '\"2020-01-01T00:00:00Z\"')";
    sqlx::query(closing).execute(pool).await.unwrap();
    let late = server.submit(Role::Organiser, "cup", "four", true, b"a bundle").await.unwrap_err();
    assert!(late.message().contains("closed"), "nor for organisers: {late}");
    let given = organiser().set_beacon(ask.clone()).await.unwrap().into_inner();
    let beacon = given.beacon.clone().unwrap();
    assert_eq!((beacon.value.as_str(), beacon.first_edition), ("1a17d", 2));
    assert_eq!((given.editions.len(), given.seed.len()), (2, 0));
    let again = organiser().set_beacon(ask.clone()).await.unwrap().into_inner();
    assert_eq!((again.beacon, again.editions.len()), (given.beacon, 2));
    let other = SetBeaconRequest { value: "1a17e".to_owned(), ..ask };
    let other = organiser().set_beacon(other).await.unwrap_err();
    assert!(other.message().contains("already has the value \"1a17d\""), "{other}");

    let edition = given.editions[0].id;
    let seeds = play(&server, edition).await;
    let watch = WatchEditionRequest { tournament: "cup".to_owned(), edition: Some(2) };
    let watched = server.tournaments(None).watch_edition(watch).await.unwrap();
    assert_eq!(last(watched.into_inner()).await.state, "complete");
    let source = GetEditionSourceRequest { tournament: "cup".to_owned(), edition: Some(2) };
    let open = server.tournaments(None).get_edition_source(source.clone()).await.unwrap_err();
    assert_eq!(open.code(), Code::FailedPrecondition, "{open}");
    assert_eq!(server.check_seeds(false).await, (0, 0, Vec::new()), "its seed is a secret");
    let close = CloseTournamentRequest { tournament: "cup".to_owned() };
    organiser().close_tournament(close).await.unwrap();

    assert_eq!(server.check_seeds(true).await, (3, 3, Vec::new()));
    server.check_covers_the_official_edition().await;
    let list = ListMatchesRequest {
        tournament: "cup".to_owned(),
        edition: Some(2),
        ..ListMatchesRequest::default()
    };
    let mut listed = server.tournaments(None).list_matches(list).await.unwrap().into_inner();
    while let Some(played) = listed.message().await.unwrap() {
        let number = played.r#match.split('/').nth(1).unwrap().parse::<i64>().unwrap();
        let seed = digits(&played.seed);
        assert_eq!(seeds[&number], seed, "what the worker was told");
    }
    let source = server.tournaments(None).get_edition_source(source).await.unwrap().into_inner();
    assert_eq!((source.entrants, &source.bots[2].name[..]), (3, "three"));
    server.find_changes(edition, &seeds).await;
    server.stop().await;
}

/// Once the value is known, each change of a house bot would be a choice between two plans.
#[tokio::test]
async fn house_bots_cannot_change_once_the_beacon_may_be_known() {
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
    let closing = "UPDATE tournaments SET settings = jsonb_set(settings, '{submissions,closes}', \
        '\"2020-01-01T00:00:00Z\"')";
    sqlx::query(closing).execute(&server.database.pool).await.unwrap();
    for bot in ["house", "own"] {
        for refused in [withdraw("cup", bot).await, reinstate("cup", bot).await] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.code(), Code::FailedPrecondition);
            let told = format!("{bot} is a house bot, and entry to cup closed at 2020-01-01");
            assert!(refused.message().starts_with(&told), "{refused}");
        }
    }
    let player = reinstate("cup", "player").await.unwrap_err();
    assert_eq!(player.message(), "player is not suspended");
    withdraw("cup", "player").await.unwrap();
    withdraw("plain", "house").await.unwrap();
    server.stop().await;
}

/// Plays an edition of three matches, and returns the seed that a worker received for each.
async fn play(server: &Server, edition: i32) -> HashMap<i64, String> {
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
            if lot.lease.unwrap().edition == edition {
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

/// A record with a first line that has this seed.
fn record(seed: &str) -> Vec<u8> {
    zstd::encode_all(format!("{{\"record\":1,\"seed\":\"{seed}\"}}\n").as_bytes(), 1).unwrap()
}

impl Server {
    /// The verification of the newest edition's seeds: the numbers of matches and records, and the
    /// differences.
    async fn check_seeds(&self, records: bool) -> (i64, i64, Vec<String>) {
        let tournament = "cup".to_owned();
        let check = CheckEditionRequest { tournament, edition: None, records };
        let check = self.tournaments(Some(Role::Organiser)).check_edition(check).await;
        let check = check.unwrap().into_inner();
        (check.derived, check.records, check.seed_differences)
    }

    /// Verification ignores a newer cancelled edition, and says why if it cannot derive the plan.
    async fn check_covers_the_official_edition(&self) {
        let pool = &self.database.pool;
        let check = async || {
            let tournament = "cup".to_owned();
            let check = CheckEditionRequest { tournament, edition: None, records: false };
            self.tournaments(None).check_edition(check).await.unwrap().into_inner()
        };
        let newer =
            "INSERT INTO editions (tournament, number, components, state, rules, created_at,
                ended_at)
            SELECT tournament, 3, components, 'cancelled', rules, created_at, ended_at
            FROM editions WHERE number = 2";
        sqlx::query(newer).execute(pool).await.unwrap();
        let found = check().await;
        assert_eq!((found.edition, found.derived, &found.not_derived[..]), (2, 3, ""));
        sqlx::query("DELETE FROM editions WHERE number = 3").execute(pool).await.unwrap();
        let rules = async |version: &'static str| {
            let change = "UPDATE editions SET rules = $1 WHERE number = 2";
            sqlx::query(change).bind(version).execute(pool).await.unwrap();
        };
        rules("0").await;
        let found = check().await;
        assert_eq!((found.edition, found.derived), (2, 0));
        let told = "edition 2 was planned by version 0 of the rules";
        assert!(found.not_derived.starts_with(told), "{found:?}");
        rules(RULES_VERSION).await;
    }

    /// Changes the stored tournament in several ways, and expects that each is detected.
    async fn find_changes(&self, edition: i32, seeds: &HashMap<i64, String>) {
        let pool = &self.database.pool;
        let tampered = [
            ("tournaments", "seed_hash = sha256(seed_hash)", "that was published at creation"),
            ("tournaments", "committed_seed = sha256(committed_seed)", "published at creation"),
            ("tournaments", "beacon_value = '1a17e'", "the committed seed and the beacon give"),
            ("tournaments", "seed = sha256(seed)", "the committed seed and the beacon give"),
            ("matches", "seed_key = seed_key + 1", "its seed in the stored plan is"),
            ("matches", "seats = ARRAY[seats[2], seats[1]]", "and the published seed gives"),
        ];
        // The owner of the database can do this.
        let unguarded = "ALTER TABLE matches DISABLE TRIGGER USER; \
            ALTER TABLE records DISABLE TRIGGER USER";
        sqlx::raw_sql(unguarded).execute(pool).await.unwrap();
        for (table, change, told) in tampered {
            let copy = format!("CREATE TABLE kept AS SELECT * FROM {table}");
            sqlx::query(sqlx::AssertSqlSafe(copy)).execute(pool).await.unwrap();
            let only = if table == "matches" { "WHERE number = 1" } else { "" };
            let change = format!("UPDATE {table} SET {change} {only}");
            sqlx::query(sqlx::AssertSqlSafe(change.clone())).execute(pool).await.unwrap();
            let (_, _, found) = self.check_seeds(false).await;
            assert!(found.iter().any(|line| line.contains(told)), "{change}: {found:?}");
            if table == "matches" {
                let name = format!("match {edition}/1: ");
                assert!(found.len() == 1 && found[0].starts_with(&name), "{found:?}");
            }
            let back = match table {
                "matches" => {
                    "UPDATE matches m SET seed_key = k.seed_key, seats = k.seats FROM kept k
                    WHERE k.edition = m.edition AND k.number = m.number"
                }
                _ => {
                    "UPDATE tournaments t SET seed_hash = k.seed_hash, seed = k.seed,
                        committed_seed = k.committed_seed, beacon_value = k.beacon_value
                    FROM kept k WHERE k.id = t.id"
                }
            };
            sqlx::raw_sql(back).execute(pool).await.unwrap();
            sqlx::raw_sql("DROP TABLE kept").execute(pool).await.unwrap();
        }
        assert_eq!(self.check_seeds(true).await, (3, 3, Vec::new()), "all is as it was");
        let statement = "UPDATE records SET bytes = $2 WHERE edition = $1 AND number = 2";
        let query = sqlx::query(statement).bind(edition).bind(record(&"5e".repeat(32)));
        query.execute(pool).await.unwrap();
        let (_, _, found) = self.check_seeds(true).await;
        let told = format!(
            "match {edition}/2: its record has the seed {}, and the published seed gives {}",
            "5e".repeat(32),
            seeds[&2]
        );
        assert_eq!(found, [told]);
        sqlx::raw_sql("DELETE FROM matches WHERE number = 2").execute(pool).await.unwrap();
        let (_, _, found) = self.check_seeds(false).await;
        let told = format!("match {edition}/2 follows from the seed but is not stored");
        assert_eq!(found, [told]);
        let tournament = "cup".to_owned();
        let check = CheckEditionRequest { tournament, edition: None, records: true };
        let refused = self.tournaments(Some(Role::Player)).check_edition(check).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied, "it reads all records");
    }
}
