//! Suspension of bots that forfeit too much, and invalidation of matches.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::db::invalidated_matches::{self, MatchFilter};
use arbiter_coordinator::db::lots::Census;
use arbiter_coordinator::db::tournaments::Tournament;
use arbiter_coordinator::db::{
    audit_log, bots, editions, forfeit_evidence, lots, tokens, versions,
};
use arbiter_coordinator::maintenance::Maintenance;
use arbiter_coordinator::match_invalidation::{self, InvalidationError};
use arbiter_coordinator::queue::{LeasedLot, Queue, Report, ReportStatus};
use arbiter_coordinator::tournament::{
    IfRunning, OpenRequest, TournamentFile, lifecycle, open_edition,
};
use arbiter_games::{Forfeit, Games};
use arbiter_proto::ids::{EditionId, MatchNumber, TokenId, VersionId};
use support::test_clock::{AtTime, set_time};
use support::{Database, START, report};
use time::{Duration, OffsetDateTime};

/// Creates a tournament of gomoku with this many bots. Its matches do not wait for each other.
async fn create_tournament(
    database: &Database,
    rules: &str,
    bots: i32,
) -> (Tournament, Vec<VersionId>) {
    let text = format!(
        "name = \"cup\"\ngame = \"gomoku\"\nseed = \"cup\"\nstate = \"none\"\n\
         [submissions]\npreflight = false\n{rules}"
    );
    let file = TournamentFile::parse(&Games::built_in(), &text).unwrap();
    let tournament =
        lifecycle::create(&mut database.pool.acquire().await.unwrap(), &file, START).await.unwrap();
    let versions = database.versions(tournament.id, bots).await;
    (tournament, versions)
}

/// Opens an edition.
async fn open_edition(queue: &Queue, tournament: &Tournament) -> EditionId {
    open_edition::open(queue, OpenRequest::new(tournament.id, IfRunning::Refuse), START)
        .await
        .unwrap()
        .id
}

/// The report of a lot. The bot `bot-{loser}`, whose version has the next number, forfeits by a
/// crash; without it, the first seat wins.
async fn report_with_loser(
    database: &Database,
    lot: &LeasedLot,
    worker: &str,
    loser: i32,
) -> Report {
    use arbiter_coordinator::db::matches;
    let worker = database.worker(worker).await;
    let mut report = report(lot, worker);
    let tournament = lot.lease.lot.tournament;
    let planned =
        matches::range(&database.pool, tournament, lot.first_match(), lot.count).await.unwrap();
    for (result, planned) in report.results.iter_mut().zip(&planned) {
        let seat = planned.seats.0.iter().position(|entrant| entrant.0 == loser + 1);
        result.scores = if seat == Some(0) { vec![0, 2] } else { vec![2, 0] };
        result.forfeits = Vec::new();
        if let Some(seat) = seat {
            result.forfeits = vec![None; 2];
            result.forfeits[seat] = Some(Forfeit::Gone);
            report.evidence.push(forfeit_evidence::Evidence {
                number: result.number,
                seat: i16::try_from(seat + 1).unwrap(),
                wall_us: 1500,
                cpu_us: 700,
                detail: "killed by signal 11".to_owned(),
            });
        }
    }
    report
}

/// Plays an edition to its end. `assignment` returns the worker and the second for the first match
/// of a lot.
async fn play_edition(
    database: &Database,
    edition: EditionId,
    loser: i32,
    assignment: impl Fn(i64) -> (&'static str, i64),
) {
    let queue = database.queue();
    let tournament = database.tournament_of(edition).await;
    loop {
        let lots = queue.lease_at(tournament, 64, START).await.unwrap();
        if lots.is_empty() {
            break;
        }
        for lot in lots {
            let (worker, second) = assignment(lot.first_match().0);
            let report = report_with_loser(database, &lot, worker, loser).await;
            set_time(&database.pool, START + Duration::seconds(second)).await;
            assert_eq!(support::report_all(&queue, &[report]).await, [ReportStatus::Accepted]);
        }
    }
}

/// Runs one round of maintenance. Returns the names of the suspended bots and the reasons.
async fn run_maintenance(database: &Database, now: fn() -> OffsetDateTime) -> Vec<String> {
    set_time(&database.pool, now()).await;
    let round = Maintenance::new(database.queue(), Clock::fixed(now)).round().await.unwrap();
    round.suspended.into_iter().map(|bot| format!("{}: {}", bot.name, bot.reason)).collect()
}

#[tokio::test]
async fn a_bot_that_forfeits_too_much_is_suspended() {
    let database = Database::new().await;
    let pool = &database.pool;
    let rules = "stand_down_percent = 50\nstand_down_after = 4\n";
    let (tournament, submitted) = create_tournament(&database, rules, 3).await;
    let edition = open_edition(&database.queue(), &tournament).await;
    play_edition(&database, edition, 1, |_| ("w", 0)).await;
    let suspended = run_maintenance(&database, || START + Duration::HOUR).await;
    assert_eq!(suspended, ["bot-1: it forfeited 4 of 4 matches in edition 1"]);
    assert_eq!(
        run_maintenance(&database, || START + Duration::HOUR).await,
        [""; 0],
        "the bot is already suspended"
    );
    let bot = bots::find(pool, tournament.id, "bot-1").await.unwrap().unwrap();
    assert_eq!(bot.stood_down_at, Some(START + Duration::HOUR));
    assert_eq!(
        bot.suspension_reason(submitted[1]),
        Some("it forfeited 4 of 4 matches in edition 1")
    );
    let newest_versions = async || {
        let rows = versions::newest(pool, tournament.id).await.unwrap();
        rows.into_iter().map(|version| version.id).collect::<Vec<_>>()
    };
    assert_eq!(newest_versions().await, [submitted[0], submitted[2]]);
    let triggers = "SELECT count(*) FROM edition_triggers";
    assert_eq!(database.number(triggers).await, 1);
    let changes = audit_log::latest(pool).await.unwrap();
    assert_eq!(
        (changes[0].action.as_str(), changes[0].subject.as_str()),
        ("stand down", "cup bot-1")
    );

    // The suspension does not apply to a later version.
    versions::store_bundle(pool, &[2; 32], b"better").await.unwrap();
    let later = START + Duration::HOUR * 2;
    let better = versions::submit(pool, bot.id, &[2; 32], later).await.unwrap();
    assert_eq!(bot.suspension_reason(better), None);
    assert_eq!(newest_versions().await, [submitted[0], better, submitted[2]]);
}

#[tokio::test]
async fn a_reinstated_bot_is_not_suspended_again_for_the_same_forfeits() {
    let database = Database::new().await;
    let pool = &database.pool;
    let rules = "stand_down_percent = 20\nstand_down_after = 1\n";
    let (tournament, submitted) = create_tournament(&database, rules, 2).await;
    let first = open_edition(&database.queue(), &tournament).await;
    play_edition(&database, first, 0, |_| ("w", 0)).await;
    assert_eq!(run_maintenance(&database, || START).await.len(), 1);
    let bot = bots::find(pool, tournament.id, "bot-0").await.unwrap().unwrap();
    assert!(bots::reinstate(pool, bot.id).await.unwrap());
    assert!(!bots::reinstate(pool, bot.id).await.unwrap(), "the bot is already reinstated");
    assert_eq!(versions::newest(pool, tournament.id).await.unwrap().len(), 2);
    let second = open_edition(&database.queue(), &tournament).await;
    play_edition(&database, second, 0, |_| ("w", 0)).await;
    assert_eq!(run_maintenance(&database, || START).await, [""; 0]);
    let bot = bots::find(pool, tournament.id, "bot-0").await.unwrap().unwrap();
    assert_eq!(bot.suspension_reason(submitted[0]), None);
}

#[tokio::test]
async fn few_forfeits_or_few_matches_suspend_no_bot() {
    for rules in [
        "stand_down_percent = 100\nstand_down_after = 1\n",
        "stand_down_percent = 50\nstand_down_after = 9\n",
    ] {
        let database = Database::new().await;
        let (tournament, _) = create_tournament(&database, rules, 3).await;
        let edition = open_edition(&database.queue(), &tournament).await;
        play_edition(&database, edition, 1, |_| ("w", 0)).await;
        assert_eq!(run_maintenance(&database, || START).await, [""; 0], "{rules}");
        let census = lots::census(&database.pool, tournament.id).await.unwrap();
        let total: i64 = census.iter().map(|Census { matches, .. }| matches).sum();
        let row = editions::get(&database.pool, edition).await.unwrap().unwrap();
        assert_eq!((row.state, total), (editions::EditionState::Complete, row.matches));
    }
}

#[tokio::test]
async fn evidence_is_stored_with_its_match() {
    let database = Database::new().await;
    let (tournament, _) = create_tournament(&database, "", 3).await;
    let edition = open_edition(&database.queue(), &tournament).await;
    play_edition(&database, edition, 2, |_| ("w", 0)).await;
    let numbers: Vec<_> = (0..6).map(MatchNumber).collect();
    let stored =
        forfeit_evidence::of_matches(&database.pool, tournament.id, &numbers).await.unwrap();
    assert_eq!(stored.len(), 4, "expected evidence for each match of the third bot");
    assert!(stored.iter().all(|row| (row.wall_us, row.cpu_us) == (1500, 700)));
    assert!(stored.iter().all(|row| row.detail == "killed by signal 11"));
}

/// Creates an organiser's token.
async fn organiser(database: &Database) -> TokenId {
    tokens::create(&database.pool, &[9; 32], tokens::Role::Organiser, "o", None, START)
        .await
        .unwrap()
}

/// The numbers of the matches that an invalidation would choose.
async fn find_matches(
    database: &Database,
    tournament: &Tournament,
    filter: &MatchFilter,
    named: &[MatchNumber],
) -> Result<Vec<i64>, InvalidationError> {
    let mut db = database.pool.begin().await.unwrap();
    let matches = match_invalidation::find(&mut db, tournament.id, filter, named).await?;
    Ok(matches.into_iter().map(|number| number.0).collect())
}

#[tokio::test]
async fn matches_are_chosen_by_worker_time_and_number() {
    let database = Database::new().await;
    let (tournament, _) = create_tournament(&database, "", 4).await;
    let edition = open_edition(&database.queue(), &tournament).await;
    // Two workers play matches in turn, one match each minute.
    let assignment = |first: i64| (["cellar", "attic"][usize::from(first % 2 == 1)], first * 60);
    play_edition(&database, edition, 3, assignment).await;
    let by_worker =
        |worker: &str| MatchFilter { worker: Some(worker.to_owned()), ..MatchFilter::default() };
    let cellar = find_matches(&database, &tournament, &by_worker("cellar"), &[]).await.unwrap();
    let attic = find_matches(&database, &tournament, &by_worker("attic"), &[]).await.unwrap();
    assert_eq!(cellar.len() + attic.len(), 12);
    let from = Some(START + Duration::minutes(2));
    let to = Some(START + Duration::minutes(6));
    let by_time = MatchFilter { from, to, ..MatchFilter::default() };
    let in_time = find_matches(&database, &tournament, &by_time, &[]).await.unwrap();
    assert!(!in_time.is_empty() && in_time.len() < 12);
    let unknown_worker =
        find_matches(&database, &tournament, &by_worker("unknown"), &[]).await.unwrap();
    assert_eq!(unknown_worker, [0; 0]);
    let named = [MatchNumber(0), MatchNumber(in_time[0])];
    let both = find_matches(&database, &tournament, &by_time, &named).await.unwrap();
    assert_eq!(both, [in_time[0]], "a match must pass all filters");
    let named = [5, 4, 5].map(MatchNumber);
    let by_number = find_matches(&database, &tournament, &MatchFilter::default(), &named).await;
    assert_eq!(by_number.unwrap(), [4, 5]);
    let error =
        find_matches(&database, &tournament, &MatchFilter::default(), &[]).await.unwrap_err();
    assert!(matches!(error, InvalidationError::NoCondition));
    let named = [MatchNumber(99)];
    let error =
        find_matches(&database, &tournament, &MatchFilter::default(), &named).await.unwrap_err();
    let expected = format!("match {}/99 was not played in this tournament", tournament.id);
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn the_preview_is_the_leaderboard_without_void_matches() {
    let database = Database::new().await;
    let (tournament, _) = create_tournament(&database, "", 3).await;
    let edition = open_edition(&database.queue(), &tournament).await;
    play_edition(&database, edition, 2, |_| ("w", 0)).await;
    run_maintenance(&database, || START).await;
    let numbers: Vec<_> = (0..6).map(MatchNumber).collect();
    let scope = editions::scope(&database.pool, edition).await.unwrap();
    let games = Games::built_in();
    let none_void = match_invalidation::preview(&database.pool, &games, scope, &[]).await.unwrap();
    assert_eq!((none_void.missing, none_void.places.len()), (0, 3));
    assert!(none_void.places.iter().all(|place| place.now == place.without));
    let all_void =
        match_invalidation::preview(&database.pool, &games, scope, &numbers).await.unwrap();
    assert_eq!(all_void.missing, 6);
    assert!(all_void.places.iter().all(|place| place.without.1.iter().all(|sum| *sum == 0)));
    // Each match has two points.
    let one_void =
        match_invalidation::preview(&database.pool, &games, scope, &numbers[..1]).await.unwrap();
    let points = |places: &[match_invalidation::RankChange], without: bool| -> i128 {
        places
            .iter()
            .map(|change| {
                if without {
                    change.without.1.iter().sum::<i128>()
                } else {
                    change.now.1.iter().sum()
                }
            })
            .sum()
    };
    assert_eq!((points(&one_void.places, false), points(&one_void.places, true)), (12, 10));
}

#[tokio::test]
async fn matches_are_declared_void_once() {
    let database = Database::new().await;
    let (tournament, _) = create_tournament(&database, "", 3).await;
    let edition = open_edition(&database.queue(), &tournament).await;
    play_edition(&database, edition, 2, |_| ("cellar", 0)).await;
    let token = organiser(&database).await;
    let filter = MatchFilter { worker: Some("cellar".to_owned()), ..MatchFilter::default() };
    let numbers = [0, 1].map(MatchNumber);
    let id = tournament.id;
    let mut db = database.pool.begin().await.unwrap();
    let first_count =
        match_invalidation::apply(&mut db, id, &numbers, token, "its clock", START).await.unwrap();
    let second_count =
        invalidated_matches::add(&mut *db, id, &numbers, token, "its clock", START).await.unwrap();
    db.commit().await.unwrap();
    assert_eq!((first_count, second_count), (2, 0));
    assert_eq!(find_matches(&database, &tournament, &filter, &[]).await.unwrap().len(), 4);
    assert_eq!(
        find_matches(&database, &tournament, &MatchFilter::default(), &numbers).await.unwrap(),
        [0; 0]
    );
    let triggers = "SELECT count(*) FROM edition_triggers";
    assert_eq!(database.number(triggers).await, 1);
}
