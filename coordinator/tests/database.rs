//! The tables: every statement runs, and the database itself refuses invalid rows.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use arbiter_coordinator::coordinator;
use arbiter_coordinator::db::editions::EditionState;
use arbiter_coordinator::db::tokens::Role;
use arbiter_coordinator::db::tournaments::{NewTournament, Presentation, TournamentState};
use arbiter_coordinator::db::{
    self, absences, audit_log, bot_list, bots, editions, matches, partitions, standings, tokens,
    tournaments, versions, workers,
};
use arbiter_games::{RULES_VERSION, Seed, bitwa, gomoku, tricks, wojna};
use arbiter_proto::ids::{MatchNumber, TokenId};
use arbiter_ranking::Entrant;
use arbiter_ranking::{PairFilter, Tally, U256, rank};
use serde_json::json;
use sqlx::Error;
use sqlx::postgres::PgConnectOptions;
use support::planning::Planning as _;
use support::test_clock::AtTime as _;
use support::{AnyPlan, Database, START, duels, final_plan, lots};
use time::Duration;

/// The reason why the database refused a statement: the name of the constraint, or the message.
fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result.unwrap_err() {
        Error::Database(error) => {
            error.constraint().map_or_else(|| error.message().to_owned(), ToOwned::to_owned)
        }
        error => panic!("{error}"),
    }
}

#[tokio::test]
async fn tournaments_are_found_by_name_and_end_once() {
    let database = Database::new().await;
    let pool = &database.pool;
    let id = database.tournament("spring-cup", wojna::game()).await;
    let other = database.tournament("autumn-cup", bitwa::game()).await;
    let tournament = tournaments::find(pool, "spring-cup").await.unwrap().unwrap();
    assert_eq!((tournament.id, tournament.game.as_str()), (id, "wojna"));
    assert_eq!(
        (tournament.seed, tournament.state),
        (Seed::of_text("spring-cup"), TournamentState::Open)
    );
    assert_eq!(tournaments::find(pool, "winter-cup").await.unwrap(), None);
    let tournaments = tournaments::list(pool).await.unwrap();
    assert_eq!(tournaments.iter().map(|tournament| tournament.id).collect::<Vec<_>>(), [other, id]);
    let later = START + Duration::DAY;
    assert!(tournaments::end(pool, id, TournamentState::Closed, later).await.unwrap());
    assert!(!tournaments::end(pool, id, TournamentState::Cancelled, later).await.unwrap());
    let tournament = tournaments::get(pool, id).await.unwrap().unwrap();
    assert_eq!((tournament.state, tournament.ended_at), (TournamentState::Closed, Some(later)));
    // A tournament can end even if the clock was set back after its creation.
    let earlier = START - Duration::DAY;
    assert!(tournaments::end(pool, other, TournamentState::Closed, earlier).await.unwrap());
}

#[tokio::test]
async fn bots_submit_versions_and_withdraw() {
    let database = Database::new().await;
    let pool = &database.pool;
    let cup = database.tournament("cup", gomoku::game()).await;
    let first = database.versions(cup, 3).await;
    let bot = bots::find(pool, cup, "bot-1").await.unwrap().unwrap();
    assert_eq!((bot.owner, bot.withdrawn_at), (None, None));
    versions::store_bundle(pool, &[2; 32], b"better").await.unwrap();
    let later = START + Duration::HOUR;
    let better = versions::submit(pool, bot.id, &[2; 32], later).await.unwrap();
    let tested = bot_list::versions(pool, bot.id).await.unwrap();
    let versions: Vec<_> = tested.into_iter().map(|row| row.version).collect();
    let numbers: Vec<_> = versions.iter().map(|version| (version.id, version.number)).collect();
    assert_eq!(numbers, [(better, 2), (first[1], 1)]);
    assert!(bots::withdraw(pool, bots::list(pool, cup).await.unwrap()[0].id, later).await.unwrap());
    let newest = versions::newest(pool, cup).await.unwrap();
    assert_eq!(newest.iter().map(|version| version.id).collect::<Vec<_>>(), [better, first[2]]);
    let digest = versions[0].digest[..].try_into().unwrap();
    assert_eq!(versions::bundle_piece(pool, &digest, 0, 99).await.unwrap(), b"better");
    // A bundle is stored once, even if it is submitted several times.
    versions::store_bundle(pool, &[2; 32], b"better").await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM bundles").await, 2);
}

#[tokio::test]
async fn tokens_are_valid_until_they_are_revoked() {
    let database = Database::new().await;
    let pool = &database.pool;
    let id = tokens::create(pool, &[5; 32], Role::Worker, "rack 7", None, START).await.unwrap();
    assert_eq!(tokens::find(pool, &[6; 32], START).await.unwrap(), None);
    let token = tokens::find(pool, &[5; 32], START).await.unwrap().unwrap();
    assert_eq!((token.id, token.role, token.name.as_str()), (id, Role::Worker, "rack 7"));
    let mut db = pool.acquire().await.unwrap();
    assert!(tokens::revoke(&mut db, id, START).await.unwrap());
    assert!(!tokens::revoke(&mut db, id, START).await.unwrap());
    assert_eq!(tokens::find(pool, &[5; 32], START).await.unwrap(), None);
    assert_eq!(tokens::list(pool).await.unwrap()[0].revoked_at, Some(START));
    let duplicate = tokens::create(pool, &[5; 32], Role::Admin, "x", None, START).await;
    assert_eq!(refusal(duplicate), "tokens_hash_key");
}

#[tokio::test]
async fn tokens_are_rotated_and_expire() {
    let database = Database::new().await;
    let pool = &database.pool;
    let end = START + Duration::DAY;
    let id = tokens::create(pool, &[1; 32], Role::Player, "ada", Some(end), START).await.unwrap();
    let is_valid = async |secret: u8, at| {
        let token = tokens::find(pool, &[secret; 32], at).await.unwrap();
        token.map(|token| token.id) == Some(id)
    };
    let hour = START + Duration::HOUR;
    assert!(tokens::rotate(pool, id, &[2; 32], Some(hour)).await.unwrap());
    let before = hour - Duration::SECOND;
    assert!(
        is_valid(1, before).await && is_valid(2, before).await,
        "both secrets are valid for an hour"
    );
    assert!(!is_valid(1, hour).await && is_valid(2, hour).await);
    assert!(tokens::rotate(pool, id, &[3; 32], Some(hour)).await.unwrap());
    assert!(!is_valid(1, START).await, "only one former secret is valid");
    assert!(is_valid(2, START).await && is_valid(3, START).await);
    assert!(tokens::rotate(pool, id, &[4; 32], None).await.unwrap());
    assert!(!is_valid(3, START).await && is_valid(4, START).await);
    let statement = "SELECT encode(first_hash, 'hex') FROM tokens";
    let first_hash: String = sqlx::query_scalar(statement).fetch_one(pool).await.unwrap();
    assert_eq!(first_hash, "01".repeat(32));

    tokens::record_use(pool, id, START, hour).await.unwrap();
    tokens::record_use(pool, id, START, hour + Duration::SECOND).await.unwrap();
    assert_eq!(tokens::get(pool, id).await.unwrap().unwrap().used_at, Some(hour));
    assert!(is_valid(4, end - Duration::SECOND).await && !is_valid(4, end).await);
    let expired = Some(START - Duration::SECOND);
    let before_creation = tokens::create(pool, &[7; 32], Role::Player, "ada", expired, START).await;
    assert_eq!(refusal(before_creation), "token_expires_after_creation");
    tokens::rotate(pool, id, &[5; 32], Some(hour)).await.unwrap();
    tokens::revoke(&mut pool.acquire().await.unwrap(), id, hour).await.unwrap();
    assert!(
        !is_valid(4, START).await && !is_valid(5, START).await,
        "a revoked token has no valid secret"
    );
    assert!(!tokens::rotate(pool, id, &[6; 32], None).await.unwrap());
}

#[tokio::test]
async fn the_audit_log_is_append_only_and_can_be_searched() {
    let database = Database::new().await;
    let pool = &database.pool;
    let ada = tokens::create(pool, &[1; 32], Role::Organiser, "ada", None, START).await.unwrap();
    let later = START + Duration::HOUR;
    let lines = [
        (None, "stand down", "cup bot-1", START),
        (Some(ada), "tournament start", "cup 1", START),
        (Some(ada), "tournament start", "cupboard 1", later),
        (Some(ada), "token create", "cup worker", later),
    ];
    for (user, action, subject, at) in lines {
        audit_log::write(pool, user, action, subject, None, at).await.unwrap();
    }
    let subjects = async |filter: audit_log::ChangeFilter| -> Vec<_> {
        let changes = audit_log::find(pool, &filter).await.unwrap();
        changes.into_iter().map(|change| change.subject).collect()
    };
    let no_filter = audit_log::ChangeFilter::default;
    assert_eq!(subjects(no_filter()).await, ["cup worker", "cupboard 1", "cup 1", "cup bot-1"]);
    let cup = audit_log::ChangeFilter { tournament: Some("cup".to_owned()), ..no_filter() };
    assert_eq!(subjects(cup.clone()).await, ["cup 1", "cup bot-1"]);
    let by_user = |user: String| audit_log::ChangeFilter { who: Some(user), ..cup.clone() };
    assert_eq!(subjects(by_user("ada".to_owned())).await, ["cup 1"]);
    assert_eq!(subjects(by_user(ada.to_string())).await, ["cup 1"]);
    let since = audit_log::ChangeFilter { since: Some(later), ..no_filter() };
    assert_eq!(subjects(since).await, ["cup worker", "cupboard 1"]);
    let newest = audit_log::latest(pool).await.unwrap();
    assert_eq!((newest[1].name.as_deref(), newest[1].role), (Some("ada"), Some(Role::Organiser)));
    let before_newest = audit_log::ChangeFilter { before: Some(newest[1].id), ..no_filter() };
    assert_eq!(subjects(before_newest).await, ["cup 1", "cup bot-1"]);
    for statement in
        ["UPDATE audit_log SET subject = 'x'", "DELETE FROM audit_log", "TRUNCATE audit_log"]
    {
        let error = sqlx::query(statement).execute(pool).await.unwrap_err();
        assert!(error.to_string().contains("rows of audit_log are never changed"), "{error}");
    }
}

#[tokio::test]
async fn workers_keep_their_identity_and_changes_are_logged() {
    let database = Database::new().await;
    let pool = &database.pool;
    let token = database.worker_token("one").await;
    let id = workers::register(pool, token, "w", "A", "1", START).await.unwrap();
    assert!(id.is_some());
    let later = START + Duration::HOUR;
    let other = database.worker_token("other").await;
    assert_eq!(workers::register(pool, other, "w", "C", "3", later).await.unwrap(), None);
    assert_eq!(workers::register(pool, token, "w", "B", "2", later).await.unwrap(), id);
    let worker = &workers::list(pool).await.unwrap()[0];
    assert_eq!((worker.sandbox.as_str(), worker.seen_at), ("B", later));
    let detail = json!({ "why": "late" });
    audit_log::write(pool, None, "cancel", "cup", Some(&detail), START).await.unwrap();
    let change = &audit_log::latest(pool).await.unwrap()[0];
    assert_eq!((change.action.as_str(), &change.detail), ("cancel", &Some(detail)));
    let unknown = audit_log::write(pool, Some(TokenId(99)), "x", "y", None, START).await;
    assert_eq!(refusal(unknown), "audit_log_token_fkey");
}

/// A plan of two matches from the number `first` on, at most `per_lot` in each lot.
fn plan_from(first: i64, per_lot: i32) -> AnyPlan {
    let duels = duels(first + 2).filter(move |duel| duel.number.0 >= first);
    let lots = lots(first + 2, per_lot).filter(move |lot| lot.number.0 >= first);
    final_plan(duels, lots, [])
}

/// The official leaderboard is always that of a complete edition.
#[tokio::test]
async fn the_last_complete_edition_is_official() {
    let database = Database::new().await;
    let pool = &database.pool;
    let queue = database.queue();
    let cup = database.tournament("cup", gomoku::game()).await;
    let entrant_versions = database.versions(cup, 5).await;
    assert_eq!(editions::official(pool, cup).await.unwrap(), None);
    let worker = database.worker("w").await;
    let mut complete_editions = Vec::new();
    for number in 1..=2 {
        let edition = editions::create(pool, cup, 1, false, RULES_VERSION, START).await.unwrap();
        assert_eq!(editions::enter(pool, edition, &entrant_versions).await.unwrap(), 5);
        let scope = editions::scope(pool, edition).await.unwrap();
        if let Some(earlier) = complete_editions.last() {
            let earlier_scope = editions::scope(pool, *earlier).await.unwrap();
            absences::begin_all(pool, scope, earlier_scope).await.unwrap();
        }
        queue.plan(edition, plan_from(scope.end, 2)).await.unwrap();
        queue.start(edition).await.unwrap();
        assert_eq!(editions::official(pool, cup).await.unwrap(), complete_editions.last().copied());
        let lot = queue.lease_at(cup, 1, START).await.unwrap()[0];
        support::report_all(&queue, &[support::report(&lot, worker)]).await;
        assert!(!queue.complete(edition, START).await.unwrap());
        queue.count(cup).await.unwrap();
        assert_eq!(editions::official(pool, cup).await.unwrap(), complete_editions.last().copied());
        assert!(queue.complete(edition, START).await.unwrap());
        assert_eq!(editions::official(pool, cup).await.unwrap(), Some(edition));
        assert_eq!(editions::of_tournament(pool, cup).await.unwrap()[0].number, number);
        complete_editions.push(edition);
    }
    let states = editions::of_tournament(pool, cup).await.unwrap();
    assert!(states.iter().all(|edition| edition.state == EditionState::Complete));
    let entrants = editions::entrants(pool, complete_editions[0]).await.unwrap();
    assert_eq!(entrants.iter().map(|row| row.version).collect::<Vec<_>>(), entrant_versions);
}

#[tokio::test]
async fn one_edition_of_a_tournament_runs_at_a_time() {
    let database = Database::new().await;
    let queue = database.queue();
    let first = database.running_edition(2, 1).await;
    let cup = editions::get(&database.pool, first).await.unwrap().unwrap().tournament;
    let second =
        editions::create(&database.pool, cup, 1, false, RULES_VERSION, START).await.unwrap();
    assert_eq!(queue.plan(second, plan_from(2, 1)).await.unwrap(), 2);
    let newest = versions::newest(&database.pool, cup).await.unwrap();
    let entrant_versions: Vec<_> = newest.iter().map(|version| version.id).collect();
    editions::enter(&database.pool, second, &entrant_versions).await.unwrap();
    assert!(queue.start(second).await.unwrap_err().to_string().contains("one_edition_runs"));
    queue.cancel(first, START).await.unwrap();
    assert!(queue.start(second).await.unwrap());
}

/// Sums of scores are exact.
#[tokio::test]
async fn standings_hold_large_sums() {
    let database = Database::new().await;
    let edition = database.edition(2).await;
    let max_score = 1_000_000_000_000_000_000_i128;
    // A hundred million matches with the largest scores.
    let matches: u64 = 100_000_000;
    let sum = 2 * max_score * i128::from(matches);
    let square = U256::square(2 * max_score);
    let tally = Tally {
        matches: matches.cast_signed(),
        score: vec![sum, -sum],
        squares: square.checked_mul(matches).unwrap(),
        forfeits: [1, 0, 0, 1],
        bad_answers: 3,
    };
    let tallies = [(Entrant(2), tally.clone())].into();
    for _ in 0..2 {
        standings::add(&database.pool, edition, &tallies).await.unwrap();
    }
    standings::add(&database.pool, edition, &[].into()).await.unwrap();
    let mut twice = tally.clone();
    twice.merge(&tally);
    let mut connection = database.pool.acquire().await.unwrap();
    let contestants = standings::contestants(&mut connection, edition).await.unwrap();
    let sums: Vec<_> = contestants.iter().map(|contestant| contestant.tally.clone()).collect();
    assert_eq!(sums, [Tally::default(), twice]);
    assert_eq!(contestants[1].submitted_at - contestants[0].submitted_at, Duration::SECOND);
    let places = rank(&tricks::game(), contestants);
    assert_eq!(places[0].contestant.entrant, Entrant(2));
    // Verification reports a sum without matches.
    let scope = editions::scope(&database.pool, edition).await.unwrap();
    assert_eq!(database.queue().verify_standings(scope).await.unwrap()[0].computed, None);
}

/// Verification names the bots that differ, and their values.
#[tokio::test]
async fn verification_finds_tampered_rows() {
    let database = Database::new().await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let edition = database.running_edition(40, 40).await;
    let scope = editions::scope(&database.pool, edition).await.unwrap();
    let lot = queue.lease_at(scope.tournament, 1, START).await.unwrap()[0];
    support::report_all(&queue, &[support::report(&lot, worker)]).await;
    // A reported match that is not counted yet is not a difference.
    assert_eq!(queue.verify_standings(scope).await.unwrap(), []);
    queue.count(scope.tournament).await.unwrap();
    assert_eq!(queue.verify_standings(scope).await.unwrap(), []);
    let meetings = queue.head_to_heads(scope, PairFilter::One(Entrant(1))).await.unwrap();
    assert!(meetings.between(Entrant(1), Entrant(2)).unwrap().matches > 0);
    assert_eq!(meetings.between(Entrant(2), Entrant(3)), None, "the filter excludes this pair");
    let three = PairFilter::Among((2..5).map(Entrant).collect());
    let meetings = queue.head_to_heads(scope, three).await.unwrap();
    assert!(meetings.between(Entrant(2), Entrant(3)).unwrap().matches > 0);
    assert_eq!(meetings.between(Entrant(1), Entrant(2)), None, "the filter excludes this pair");
    let tamper = "UPDATE standings SET score[1] = score[1] + 1 WHERE entrant = 3";
    sqlx::query(tamper).execute(&database.pool).await.unwrap();
    let differences = queue.verify_standings(scope).await.unwrap();
    assert_eq!(differences.len(), 1);
    assert!(differences[0].to_string().starts_with("entrant 3: the standings have ["));
}

#[tokio::test]
async fn invalid_names_and_games_are_refused() {
    let database = Database::new().await;
    let create = async |name: &str, game: &str, settings: serde_json::Value| {
        let new = NewTournament {
            name,
            game,
            settings: &settings,
            seed: Seed([0; 32]),
            seed_hash: [0; 32],
            beacon: None,
            presentation: &Presentation::default(),
            rehearsal_of: None,
        };
        refusal(tournaments::create(&database.pool, &new, START).await)
    };
    assert_eq!(create("a b", "gomoku", json!({})).await, "tournaments_name_check");
    assert_eq!(create("cup", "", json!({})).await, "tournaments_game_check");
    assert_eq!(create("cup", "gomoku", json!([])).await, "tournaments_settings_check");
    let cup = database.tournament("cup", gomoku::game()).await;
    assert_eq!(create("cup", "gomoku", json!({})).await, "tournaments_name_key");
    let bot =
        async |name: &str| refusal(bots::create(&database.pool, cup, None, name, START).await);
    assert_eq!(bot("TIE").await, "bots_name_check");
    assert_eq!(bot("").await, "bots_name_check");
    database.versions(cup, 1).await;
    assert_eq!(bot("bot-0").await, "bots_tournament_name_key");
    let bot = bots::find(&database.pool, cup, "bot-0").await.unwrap().unwrap();
    let unknown = versions::submit(&database.pool, bot.id, &[9; 32], START).await;
    assert_eq!(refusal(unknown), "versions_digest_fkey");
}

/// Invalid seats of a match, and the constraint that refuses them.
const SEATS: [(&str, &str); 10] = [
    ("{1,1}", "seats_have_different_entrants"),
    ("{1,2,1}", "seats_have_different_entrants"),
    ("{1,2,3,2}", "seats_have_different_entrants"),
    ("{1,NULL}", "seats_have_different_entrants"),
    ("{1,0}", "seats_have_different_entrants"),
    ("{}", "match_has_one_to_sixteen_seats"),
    ("{1,2,3,4,5,1}", "seats_have_different_entrants"),
    ("{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,15}", "seats_have_different_entrants"),
    ("{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17}", "match_has_one_to_sixteen_seats"),
    ("{{1,2},{3,4}}", "match_has_one_to_sixteen_seats"),
];

/// Invalid changes of pending lots of two matches, and the constraint that refuses each.
const LOTS: [(&str, &str); 11] = [
    ("state = 'leased'", "leased_lot_has_deadline"),
    ("deadline = now()", "leased_lot_has_deadline"),
    ("state = 'delayed'", "delayed_lot_has_time"),
    ("state = 'reported'", "played_lot_was_leased"),
    ("state = 'blocked'", "blocked_lot_has_blockers"),
    ("blockers = 1, count = 1", "blocked_lot_has_blockers"),
    ("state = 'blocked', blockers = 1", "dependent_lot_has_one_match"),
    ("has_dependents = true", "dependent_lot_has_one_match"),
    ("count = 0", "lots_count_check"),
    ("state = 'checking', blockers = 1, count = 1", "blocked_lot_has_blockers"),
    ("number = -7 - number", "lots_number_check"),
];

/// Invalid results (time, scores, transcript, forfeits), and the constraint that refuses each.
const RESULTS: [(&str, &str); 4] = [
    ("0, '{}', decode(repeat('00', 32), 'hex'), NULL", "results_scores_check"),
    ("-1, '{1}', decode(repeat('00', 32), 'hex'), NULL", "results_wall_ms_check"),
    ("0, '{1}', '', NULL", "results_transcript_check"),
    ("0, '{1}', decode(repeat('00', 32), 'hex'), '{5}'", "results_forfeits_check"),
];

/// Other invalid statements, and the constraint that refuses each.
const OTHERS: [(&str, &str); 24] = [
    (
        "INSERT INTO matches VALUES (99, 0, 1, NULL, '{1,2}', NULL, '{99,NULL}')",
        "state_comes_from_earlier_matches",
    ),
    (
        "INSERT INTO matches VALUES (99, 0, 1, NULL, '{1,2}', NULL, '{3}')",
        "state_comes_from_earlier_matches",
    ),
    ("INSERT INTO bot_state VALUES (0, 1, 17, '')", "bot_state_seat_check"),
    ("INSERT INTO snapshots VALUES ('', 'x')", "snapshots_digest_check"),
    ("INSERT INTO snapshots VALUES (decode(repeat('00', 32), 'hex'), '')", "snapshots_bytes_check"),
    ("UPDATE snapshots SET bytes = 'x'", "rows of snapshots are never changed"),
    ("UPDATE bot_state SET seat = 1", "rows of bot_state are never changed"),
    ("INSERT INTO matches SELECT * FROM matches", "matches_1_pkey"),
    ("UPDATE matches SET seed_key = 7", "rows of matches are never changed"),
    ("UPDATE results SET wall_ms = 7", "rows of results are never changed"),
    ("UPDATE entrants SET version = 7", "rows of entrants are never changed"),
    ("DELETE FROM audit_log", "rows of audit_log are never changed"),
    ("INSERT INTO lot_order VALUES (1, 2, 2)", "lot_order_has_no_cycle"),
    ("INSERT INTO records VALUES (0, 1, '')", "records_bytes_check"),
    ("UPDATE editions SET state = 'complete'", "ended_edition_has_end_time"),
    (
        "UPDATE editions SET state = 'complete', ended_at = created_at, open_ended = true",
        "complete_edition_has_matches",
    ),
    (
        "INSERT INTO entrants SELECT edition, 77, 77, bot, version FROM entrants LIMIT 1",
        "entrants_edition_bot_key",
    ),
    (
        "INSERT INTO entrants SELECT edition, 77, 77, bot + 9, version FROM entrants LIMIT 1",
        "entrants_version_bot_fkey",
    ),
    (
        "INSERT INTO entrants SELECT edition, place, 77, bot, version FROM entrants LIMIT 1",
        "entrants_edition_place_key",
    ),
    ("UPDATE editions SET end_match = -1", "edition_ends_after_its_beginning"),
    ("INSERT INTO absences VALUES (0, 1, 1)", "absences_since_check"),
    ("INSERT INTO absences VALUES (0, 1, 2, 2)", "absences_check"),
    ("INSERT INTO standings VALUES (1, 0, 1, '{1}', 1, 1, 1, 0, 0, 0)", "match_has_one_forfeit"),
    ("INSERT INTO progress VALUES (2, -1)", "progress_counted_check"),
];

#[tokio::test]
async fn invalid_rows_are_refused() {
    let database = Database::new().await;
    database.running_edition(4, 2).await;
    let seats = |seats| format!("INSERT INTO matches VALUES (99, 0, 1, NULL, '{seats}')");
    let lot = |change| format!("UPDATE lots SET {change}");
    let result = |numbers| {
        let columns = "number, tournament, level, wall_ms, scores, transcript, forfeits";
        format!("INSERT INTO results ({columns}) VALUES (0, 1, 'A''', {numbers})")
    };
    let mut cases: Vec<(String, &str)> = Vec::new();
    cases.extend(SEATS.map(|(numbers, refusal)| (seats(numbers), refusal)));
    cases.extend(LOTS.map(|(change, refusal)| (lot(change), refusal)));
    cases.extend(RESULTS.map(|(numbers, refusal)| (result(numbers), refusal)));
    cases.extend(OTHERS.map(|(statement, refusal)| (statement.to_owned(), refusal)));
    for (statement, expected) in cases {
        let sql = sqlx::AssertSqlSafe(statement.as_str());
        let result = sqlx::raw_sql(sql).execute(&database.pool).await;
        assert_eq!(refusal(result), expected, "{statement}");
    }
}

#[tokio::test]
async fn migrations_may_run_concurrently() {
    let database = Database::new().await;
    let (a, b) = tokio::join!(db::migrate(&database.pool), db::migrate(&database.pool));
    a.unwrap();
    b.unwrap();
}

#[tokio::test]
async fn a_stored_plan_is_read_unchanged() {
    let database = Database::new().await;
    let edition = database.edition(5).await;
    let cup = database.tournament_of(edition).await;
    let with_all_fields = matches::Match {
        number: MatchNumber(0),
        seed_key: 7,
        board: Some(3),
        seats: matches::Seats([5, 1, 3].map(Entrant).to_vec()),
        carried: Some(vec![1, 2, i64::MAX]),
        state_from: None,
        params: Some(json!({ "chips": "1,2,3" })),
    };
    let with_state = matches::Match {
        number: MatchNumber(2),
        state_from: Some(vec![None, Some(1)]),
        ..duels(1).next().unwrap()
    };
    let planned = [with_all_fields, duels(2).last().unwrap(), with_state];
    let mut connection = database.pool.acquire().await.unwrap();
    let copied_count = matches::copy_in(&mut connection, cup, planned.iter().cloned()).await;
    assert_eq!(copied_count.unwrap(), 3);
    partitions::attach_matches(&mut connection, cup).await.unwrap();
    let stored = matches::range(&database.pool, cup, MatchNumber(0), 5).await.unwrap();
    assert_eq!(stored, planned);
    assert_eq!(matches::range(&database.pool, cup, MatchNumber(1), 1).await.unwrap().len(), 1);
}

/// The database refuses impossible scores. If sums of such scores are already stored, the
/// leaderboard still works.
#[tokio::test]
async fn a_leaderboard_survives_sums_out_of_range() {
    let database = Database::new().await;
    let edition = database.running_edition(20, 2).await;
    let cup = database.tournament_of(edition).await;
    let pool = &database.pool;
    for score in [i64::MAX, i64::MIN] {
        let statement = "
            INSERT INTO results (number, tournament, wall_ms, scores, level, transcript)
            VALUES (0, $1, 1, ARRAY[$2, 0]::bigint[], 'A', $3)";
        let query = sqlx::query(statement).bind(cup).bind(score).bind([0_u8; 32].as_slice());
        assert_eq!(refusal(query.execute(pool).await), "scores_are_bounded");
    }
    let statement = "
        INSERT INTO standings (edition, entrant, matches, score, squares,
            clock, illegal, gone, flood, bad_answers)
        SELECT $1, entrant, 2, ARRAY[sign * 10::numeric ^ 60], 10::numeric ^ 100, 0, 0, 0, 0, 0
        FROM (VALUES (1, 1), (2, -1)) AS cheated (entrant, sign)";
    sqlx::query(statement).bind(edition.0).execute(pool).await.unwrap();
    let queue = database.queue();
    let worker = database.worker("w").await;
    for lot in queue.lease_at(cup, 16, START).await.unwrap() {
        support::report_all(&queue, &[support::report(&lot, worker)]).await;
    }
    queue.count(cup).await.unwrap();
    let mut connection = pool.acquire().await.unwrap();
    let contestants = standings::contestants(&mut connection, edition).await.unwrap();
    let places = rank(&gomoku::game(), contestants);
    let order: Vec<_> = places.iter().map(|place| place.contestant.entrant.0).collect();
    assert_eq!((order[0], order[4]), (1, 2));
    assert_eq!(places[0].contestant.tally.score, [i128::MAX]);
    assert!(places[0].contestant.tally.mean().is_some());
}

/// A dropped query does not affect the next user of the pool.
#[tokio::test]
async fn abandoned_connections_are_not_reused() {
    let database = Database::new().await;
    let edition = database.edition(5).await;
    let cup = database.tournament_of(edition).await;
    let options = (*database.pool.connect_options()).clone();
    let single = db::connect(options, 1).await.unwrap();
    let mut audit_entries = 0;
    for max_polls in 0.. {
        let plan = async {
            let mut transaction = single.begin().await.unwrap();
            matches::copy_in(&mut transaction, cup, duels(3)).await.unwrap();
            transaction.rollback().await.unwrap();
        };
        let is_complete = support::poll_at_most(max_polls, plan).await.is_some();
        // The next statements get their own results, and their changes are stored.
        let number: i32 = sqlx::query_scalar("SELECT 42").fetch_one(&single).await.unwrap();
        assert_eq!(number, 42);
        audit_log::write(&single, None, "try", "cup", None, START).await.unwrap();
        audit_entries += 1;
        assert_eq!(database.number("SELECT count(*) FROM audit_log").await, audit_entries);
        if is_complete {
            // The number of polls depends on the timing of the server.
            assert!(max_polls > 0, "the plan was never dropped before its end");
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_a_development_version_is_refused() {
    let database = Database::new().await;
    let options = PgConnectOptions::clone(&database.pool.connect_options());
    let baseline = "UPDATE _sqlx_migrations SET checksum = ''";
    sqlx::query(baseline).execute(&database.pool).await.unwrap();
    let later = "DELETE FROM _sqlx_migrations WHERE version > 1";
    sqlx::query(later).execute(&database.pool).await.unwrap();
    for newest in [1, 10, 13] {
        let statement = "
            INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
            SELECT version, 'former', true, '', 0 FROM generate_series(2, $1) AS version
            ON CONFLICT DO NOTHING";
        sqlx::query(statement).bind(newest).execute(&database.pool).await.unwrap();
        let error = coordinator::open(options.clone(), 1).await.unwrap_err().to_string();
        let series =
            format!("development version before 0.1 (migration {newest} of another series)");
        for part in [&series, "export the data that you need", "create a new database"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
