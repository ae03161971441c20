//! Suspension of bots that forfeit too much, and invalidation of matches.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod support;

use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::db::invalidated_matches::{self, Wanted};
use arbiter_coordinator::db::lots::Census;
use arbiter_coordinator::db::tournaments::Tournament;
use arbiter_coordinator::db::{audit_log, bots, editions, evidence, lots, tokens, versions};
use arbiter_coordinator::maintenance::Maintenance;
use arbiter_coordinator::match_invalidation::{self, InvalidationError};
use arbiter_coordinator::queue::{Leased, Queue, Report, ReportStatus};
use arbiter_coordinator::tournament::{IfRunning, OpenRequest, TournamentFile, edition, lifecycle};
use arbiter_games::{Forfeit, Games};
use arbiter_proto::ids::{EditionId, MatchId, MatchNumber, TokenId, VersionId};
use support::test_clock::{AtTime, set_time};
use support::{Database, START, report};
use time::{Duration, OffsetDateTime};

/// A tournament of gomoku whose matches do not wait for each other, with so many bots.
async fn create(database: &Database, rules: &str, bots: i32) -> (Tournament, Vec<VersionId>) {
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

async fn open(queue: &Queue, tournament: &Tournament) -> EditionId {
    edition::open(queue, OpenRequest::new(tournament.id, IfRunning::Refuse), START)
        .await
        .unwrap()
        .id
}

/// The report of a lot in which `loser` forfeits by crashing and the first seat wins otherwise.
async fn played(database: &Database, lot: &Leased, worker: &str, loser: i32) -> Report {
    use arbiter_coordinator::db::matches;
    let worker = database.worker(worker).await;
    let mut report = report(lot, worker);
    let edition = lot.lease.lot.edition;
    let planned =
        matches::range(&database.pool, edition, lot.first_match, lot.count).await.unwrap();
    for (result, planned) in report.results.iter_mut().zip(&planned) {
        let seat = planned.seats.0.iter().position(|entrant| entrant.0 == loser);
        result.scores = if seat == Some(0) { vec![0, 2] } else { vec![2, 0] };
        result.forfeits = Vec::new();
        if let Some(seat) = seat {
            result.forfeits = vec![None; 2];
            result.forfeits[seat] = Some(Forfeit::Gone);
            report.evidence.push(evidence::Evidence {
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

/// Plays an edition to its end; each lot by the worker and at the second that `who` says.
async fn play(
    database: &Database,
    edition: EditionId,
    loser: i32,
    who: impl Fn(i64) -> (&'static str, i64),
) {
    let queue = database.queue();
    loop {
        let lots = queue.lease_at(edition, 64, START).await.unwrap();
        if lots.is_empty() {
            break;
        }
        for lot in lots {
            let (worker, second) = who(lot.first_match.0);
            let report = played(database, &lot, worker, loser).await;
            set_time(&database.pool, START + Duration::seconds(second)).await;
            assert_eq!(support::report_all(&queue, &[report]).await, [ReportStatus::Accepted]);
        }
    }
}

async fn round(database: &Database, now: fn() -> OffsetDateTime) -> Vec<String> {
    set_time(&database.pool, now()).await;
    let round = Maintenance::new(database.queue(), Clock::given(now)).round().await.unwrap();
    round.suspended.into_iter().map(|bot| format!("{}: {}", bot.name, bot.reason)).collect()
}

#[tokio::test]
async fn a_bot_that_forfeits_too_much_is_suspended() {
    let database = Database::new().await;
    let pool = &database.pool;
    let rules = "stand_down_percent = 50\nstand_down_after = 4\n";
    let (tournament, entered) = create(&database, rules, 3).await;
    let edition = open(&database.queue(), &tournament).await;
    play(&database, edition, 1, |_| ("w", 0)).await;
    let told = round(&database, || START + Duration::HOUR).await;
    assert_eq!(told, ["bot-1: it forfeited 4 of 4 matches in edition 1"]);
    assert_eq!(round(&database, || START + Duration::HOUR).await, [""; 0], "once is enough");
    let bot = bots::find(pool, tournament.id, "bot-1").await.unwrap().unwrap();
    assert_eq!(bot.stood_down_at, Some(START + Duration::HOUR));
    assert_eq!(bot.stood_down(entered[1]), Some("it forfeited 4 of 4 matches in edition 1"));
    let newest = async || {
        let newest = versions::newest(pool, tournament.id).await.unwrap();
        newest.into_iter().map(|version| version.id).collect::<Vec<_>>()
    };
    assert_eq!(newest().await, [entered[0], entered[2]]);
    let changed = "SELECT count(*) FROM edition_triggers";
    assert_eq!(database.number(changed).await, 1);
    let noted = audit_log::latest(pool).await.unwrap();
    assert_eq!((noted[0].action.as_str(), noted[0].subject.as_str()), ("stand down", "cup bot-1"));

    // A later version enters as if nothing had happened.
    versions::store_bundle(pool, &[2; 32], b"better").await.unwrap();
    let later = START + Duration::HOUR * 2;
    let better = versions::submit(pool, bot.id, &[2; 32], later).await.unwrap();
    assert_eq!(bot.stood_down(better), None);
    assert_eq!(newest().await, [entered[0], better, entered[2]]);
}

#[tokio::test]
async fn a_reinstated_bot_is_not_suspended_again_for_the_same_forfeits() {
    let database = Database::new().await;
    let pool = &database.pool;
    let rules = "stand_down_percent = 20\nstand_down_after = 1\n";
    let (tournament, entered) = create(&database, rules, 2).await;
    let edition = open(&database.queue(), &tournament).await;
    play(&database, edition, 0, |_| ("w", 0)).await;
    assert_eq!(round(&database, || START).await.len(), 1);
    let bot = bots::find(pool, tournament.id, "bot-0").await.unwrap().unwrap();
    assert!(bots::reinstate(pool, bot.id).await.unwrap());
    assert!(!bots::reinstate(pool, bot.id).await.unwrap(), "it is not stood down");
    assert_eq!(versions::newest(pool, tournament.id).await.unwrap().len(), 2);
    let again = open(&database.queue(), &tournament).await;
    play(&database, again, 0, |_| ("w", 0)).await;
    assert_eq!(round(&database, || START).await, [""; 0]);
    let bot = bots::find(pool, tournament.id, "bot-0").await.unwrap().unwrap();
    assert_eq!(bot.stood_down(entered[0]), None);
}

#[tokio::test]
async fn few_forfeits_or_few_matches_suspend_no_bot() {
    for rules in [
        "stand_down_percent = 100\nstand_down_after = 1\n",
        "stand_down_percent = 50\nstand_down_after = 9\n",
    ] {
        let database = Database::new().await;
        let (tournament, _) = create(&database, rules, 3).await;
        let edition = open(&database.queue(), &tournament).await;
        play(&database, edition, 1, |_| ("w", 0)).await;
        assert_eq!(round(&database, || START).await, [""; 0], "{rules}");
        let census = lots::census(&database.pool, edition).await.unwrap();
        let total: i64 = census.iter().map(|Census { matches, .. }| matches).sum();
        let found = editions::get(&database.pool, edition).await.unwrap().unwrap();
        assert_eq!((found.state, total), (editions::EditionState::Complete, found.matches));
    }
}

#[tokio::test]
async fn evidence_is_stored_with_its_match() {
    let database = Database::new().await;
    let (tournament, _) = create(&database, "", 3).await;
    let edition = open(&database.queue(), &tournament).await;
    play(&database, edition, 2, |_| ("w", 0)).await;
    let numbers: Vec<_> = (0..6).map(MatchNumber).collect();
    let kept = evidence::of_matches(&database.pool, edition, &numbers).await.unwrap();
    assert_eq!(kept.len(), 4, "one for each match of the third bot");
    assert!(kept.iter().all(|why| (why.wall_us, why.cpu_us) == (1500, 700)));
    assert!(kept.iter().all(|why| why.detail == "killed by signal 11"));
}

/// Who voids.
async fn organiser(database: &Database) -> TokenId {
    tokens::create(&database.pool, &[9; 32], tokens::Role::Organiser, "o", START).await.unwrap()
}

async fn find(
    database: &Database,
    tournament: &Tournament,
    wanted: &Wanted,
    named: &[MatchId],
) -> Result<Vec<i64>, InvalidationError> {
    let mut db = database.pool.begin().await.unwrap();
    let found = match_invalidation::find(&mut db, tournament.id, wanted, named).await?;
    Ok(found.into_iter().map(|id| id.number.0).collect())
}

#[tokio::test]
async fn matches_are_void_by_worker_and_by_time() {
    let database = Database::new().await;
    let (tournament, _) = create(&database, "", 4).await;
    let edition = open(&database.queue(), &tournament).await;
    // Matches in even places by one worker, a minute after the other.
    let who = |first: i64| (["cellar", "attic"][usize::from(first % 2 == 1)], first * 60);
    play(&database, edition, 3, who).await;
    let lots_of = |worker: &str| Wanted { worker: Some(worker.to_owned()), ..Wanted::default() };
    let cellar = find(&database, &tournament, &lots_of("cellar"), &[]).await.unwrap();
    let attic = find(&database, &tournament, &lots_of("attic"), &[]).await.unwrap();
    assert_eq!(cellar.len() + attic.len(), 12);
    let from = Some(START + Duration::minutes(2));
    let to = Some(START + Duration::minutes(6));
    let timed = Wanted { from, to, ..Wanted::default() };
    let found = find(&database, &tournament, &timed, &[]).await.unwrap();
    assert!(!found.is_empty() && found.len() < 12);
    let unknown = find(&database, &tournament, &lots_of("unknown"), &[]).await.unwrap();
    assert_eq!(unknown, [0; 0]);
    let id = |number| MatchId { edition, number: MatchNumber(number) };
    let both = find(&database, &tournament, &timed, &[id(0), id(found[0])]).await.unwrap();
    assert_eq!(both, [found[0]], "what fits everything");
    let named = find(&database, &tournament, &Wanted::default(), &[id(5), id(4), id(5)]).await;
    assert_eq!(named.unwrap(), [4, 5]);
    let boundless = find(&database, &tournament, &Wanted::default(), &[]).await.unwrap_err();
    assert!(matches!(boundless, InvalidationError::Boundless));
    let unplayed = find(&database, &tournament, &Wanted::default(), &[id(99)]).await.unwrap_err();
    assert_eq!(unplayed.to_string(), format!("match {} was not played in this tournament", id(99)));
}

#[tokio::test]
async fn the_preview_is_the_leaderboard_without_void_matches() {
    let database = Database::new().await;
    let (tournament, _) = create(&database, "", 3).await;
    let edition = open(&database.queue(), &tournament).await;
    play(&database, edition, 2, |_| ("w", 0)).await;
    round(&database, || START).await;
    let all: Vec<_> =
        (0..6).map(|number| MatchId { edition, number: MatchNumber(number) }).collect();
    let games = Games::built_in();
    let nothing = match_invalidation::preview(&database.pool, &games, edition, &[]).await.unwrap();
    assert_eq!((nothing.missing, nothing.places.len()), (0, 3));
    assert!(nothing.places.iter().all(|place| place.now == place.without));
    let everything =
        match_invalidation::preview(&database.pool, &games, edition, &all).await.unwrap();
    assert_eq!(everything.missing, 6);
    assert!(everything.places.iter().all(|place| place.without.1.iter().all(|sum| *sum == 0)));
    // The matches that the loser forfeited give the others their points.
    let one =
        match_invalidation::preview(&database.pool, &games, edition, &all[..1]).await.unwrap();
    let points = |places: &[match_invalidation::RankChange], without: bool| -> i128 {
        places
            .iter()
            .map(|moved| {
                if without {
                    moved.without.1.iter().sum::<i128>()
                } else {
                    moved.now.1.iter().sum()
                }
            })
            .sum()
    };
    assert_eq!((points(&one.places, false), points(&one.places, true)), (12, 10));
}

#[tokio::test]
async fn matches_are_declared_void_once() {
    let database = Database::new().await;
    let (tournament, _) = create(&database, "", 3).await;
    let edition = open(&database.queue(), &tournament).await;
    play(&database, edition, 2, |_| ("cellar", 0)).await;
    let by = organiser(&database).await;
    let wanted = Wanted { worker: Some("cellar".to_owned()), ..Wanted::default() };
    let ids: Vec<_> =
        (0..2).map(|number| MatchId { edition, number: MatchNumber(number) }).collect();
    let mut db = database.pool.begin().await.unwrap();
    let added = match_invalidation::apply(&mut db, tournament.id, &ids, by, "its clock", START)
        .await
        .unwrap();
    let again = invalidated_matches::add(&mut *db, &ids, by, "its clock", START).await.unwrap();
    db.commit().await.unwrap();
    assert_eq!((added, again), (2, 0));
    assert_eq!(find(&database, &tournament, &wanted, &[]).await.unwrap().len(), 4);
    assert_eq!(find(&database, &tournament, &Wanted::default(), &ids).await.unwrap(), [0; 0]);
    let changed = "SELECT count(*) FROM edition_triggers";
    assert_eq!(database.number(changed).await, 1);
}
