//! Editions are played to their end, by workers that lose leases, come late and report in any
//! order: the leaderboard is the same.

use std::collections::HashMap;
use std::fmt::Write as _;

use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::db::editions::{self, EditionState};
use arbiter_coordinator::db::lots::RetryPolicy;
use arbiter_coordinator::db::results::{self, Played};
use arbiter_coordinator::db::{bot_state, matches};
use arbiter_coordinator::maintenance::Maintenance;
use arbiter_coordinator::queue::{LeasePolicy, Leased, Queue, ReportStatus, Work};
use arbiter_coordinator::rpc::codec::report;
use arbiter_coordinator::tournament::{AssignmentBuilder, TournamentFile};
use arbiter_games::{Dice, Game, Games, Params, Seed, bitwa, blackjack, gomoku, tricks, wojna};
use arbiter_proto::ids::{EditionId, MatchNumber, WorkerId};
use arbiter_proto::settings::Settings;
use arbiter_proto::v1;
use arbiter_ranking::Entrant;
use serde_json::Value;
use time::{Duration, OffsetDateTime};

use crate::fixture::{file, matches as plan, running};
use crate::support::test_clock::AtTime as _;
use crate::support::{Database, START};

/// A policy under which no match is ever set aside.
const PATIENT: LeasePolicy = LeasePolicy {
    lease: Duration::MINUTE,
    retry_policy: RetryPolicy {
        faults: i16::MAX,
        delay: Duration::SECOND,
        max_delay: Duration::seconds(4),
    },
};

/// Workers that play nothing, and do what workers do.
pub(crate) struct Troupe {
    pub(crate) queue: Queue,
    edition: EditionId,
    worker: WorkerId,
    assignments: AssignmentBuilder,
    dice: Dice,
    now: OffsetDateTime,
    /// What it is for what goes on beside play.
    clock: fn() -> OffsetDateTime,
    /// What was played and is not reported yet.
    kept: Vec<v1::Report>,
}

impl Troupe {
    pub(crate) async fn new(database: &Database, edition: EditionId, chaos: &str) -> Self {
        Self {
            queue: Queue::new(database.pool.clone(), Games::built_in(), PATIENT),
            edition,
            worker: database.worker("w").await,
            assignments: AssignmentBuilder::new(database.pool.clone(), Games::built_in()),
            dice: Seed::of_text(chaos).dice(0),
            now: START,
            clock: || START,
            kept: Vec::new(),
        }
    }

    /// Begins at another time.
    pub(crate) fn at(self, clock: fn() -> OffsetDateTime) -> Self {
        Self { now: clock(), clock, ..self }
    }

    /// Plays until the edition is complete.
    pub(crate) async fn play(mut self) {
        let upkeep = Maintenance::new(self.queue.clone(), Clock::given(self.clock));
        for _ in 0..10_000 {
            if !upkeep.round().await.unwrap().complete.is_empty() {
                return;
            }
            self.now += Duration::seconds(i64::from(self.dice.below(40)));
            self.queue.expire_at(self.now).await.unwrap();
            self.lease().await;
            self.report().await;
        }
        panic!("the edition does not end");
    }

    /// Leases some lots; most are played, some lost, and some given back.
    async fn lease(&mut self) {
        let lots = self.queue.lease_at(self.edition, 64, self.now).await.unwrap();
        let mut back = Vec::new();
        for work in self.work(&lots).await {
            match self.dice.below(8) {
                0 => {}
                1 => back.push(work.lot.lease),
                _ => self.kept.push(played(&self.told(work).await)),
            }
        }
        self.queue.return_leases(None, &back).await.unwrap();
    }

    /// What the dispatcher makes of leases.
    async fn work(&self, lots: &[Leased]) -> Vec<Work> {
        let planned = matches::of_lots(self.queue.pool(), self.edition, lots).await.unwrap();
        let mut planned = planned.into_iter();
        let mut take =
            |lot: &Leased| planned.by_ref().take(lot.count.try_into().unwrap()).collect();
        lots.iter().map(|lot| Work { lot: *lot, matches: take(lot) }).collect()
    }

    /// The message that hands out a lot.
    async fn told(&self, work: Work) -> v1::Lot {
        self.assignments
            .assign_lot(work, 60_000, &self.assignments.state_budget())
            .await
            .unwrap()
            .lot
            .into()
    }

    /// Reports some of what was played, in any order, and now and then twice.
    async fn report(&mut self) {
        self.dice.shuffle(&mut self.kept);
        let keep = self.dice.index(self.kept.len() + 1);
        let mut reports = Vec::new();
        for message in self.kept.split_off(keep) {
            if self.dice.below(4) == 0 {
                self.kept.push(message.clone());
            }
            reports.push(report::read(self.worker, message, START).unwrap());
        }
        let verdicts = crate::support::report_all(&self.queue, &reports).await;
        assert!(!verdicts.contains(&ReportStatus::Malformed));
    }
}

/// What a lot comes to: a function of what the worker is told, and of nothing else.
fn played(lot: &v1::Lot) -> v1::Report {
    let settings: Settings = serde_json::from_str(&lot.settings).unwrap();
    let game = Games::built_in().find(&lot.game).unwrap();
    let one = |planned: &v1::Match| {
        let params = params(&game, &settings, planned);
        let seed = Seed(planned.seed.clone().try_into().unwrap());
        let told = format!("{:?} {}", planned.seats, planned.params);
        let transcript = seed.derive(&told);
        let mut dice = transcript.dice(0);
        let chips = match serde_json::to_value(&params).unwrap().get("chips") {
            Some(chips) => {
                let each = |seat: usize| chips.get(seat).unwrap_or(chips).as_i64().unwrap();
                (0..planned.seats.len()).map(each).collect()
            }
            None => Vec::new(),
        };
        let seats = (0..).zip(&planned.seats).map(|(seat, bot)| {
            let mut number = || i64::from(dice.below(201)) - 100;
            let score = match chips.get::<usize>(seat) {
                Some(chips) => vec![(chips + 2 * number()).max(0)],
                None => (0..game.columns.len()).map(|_| number()).collect(),
            };
            let bad_answers = dice.below(10).saturating_sub(7).try_into().unwrap();
            let forfeit =
                if dice.below(9) == 0 { v1::Forfeit::Clock } else { v1::Forfeit::Unspecified };
            let files = if settings.state.keeps_files() {
                [&bot.files[..], format!("{};", planned.number).as_bytes()].concat()
            } else {
                Vec::new()
            };
            let evidence = (forfeit == v1::Forfeit::Clock).then(|| v1::Evidence {
                detail: "12 ms over".to_owned(),
                wall_us: 512_000,
                cpu_us: 9,
            });
            v1::SeatResult {
                score,
                forfeit: forfeit.into(),
                bad_answers,
                files,
                evidence: evidence.map(Box::new),
            }
        });
        v1::MatchResult {
            number: planned.number,
            seats: seats.collect(),
            transcript: transcript.0.to_vec(),
            wall_ms: 5,
            record: Vec::new(),
        }
    };
    let results = lot.matches.iter().map(one).collect();
    v1::Report {
        lease: lot.lease,
        results,
        level: "B".to_owned(),
        trial: None,
        trace: String::new(),
    }
}

/// The parameters of a match, as a worker reads them.
pub(crate) fn params(game: &Game, settings: &Settings, planned: &v1::Match) -> Params {
    let mut params = settings.params.clone();
    if !planned.params.is_empty() {
        let own: serde_json::Map<String, Value> = serde_json::from_str(&planned.params).unwrap();
        params.extend(own);
    }
    Params::read(game, Value::Object(params)).unwrap()
}

/// All results of an edition.
pub(crate) async fn all(database: &Database, edition: EditionId) -> Vec<Played> {
    results::page(&database.pool, edition, MatchNumber(-1), false).await.unwrap()
}

/// Plays an edition of a new database to its end, and returns its results.
async fn staged(
    file: &TournamentFile,
    bots: i32,
    chaos: &str,
) -> (Database, EditionId, Vec<Played>) {
    let database = Database::new().await;
    let (_, edition) = running(&database, file, bots).await;
    Troupe::new(&database, edition.id, chaos).await.play().await;
    let ended = editions::get(&database.pool, edition.id).await.unwrap().unwrap();
    assert_eq!(ended.state, EditionState::Complete);
    assert_eq!(database.queue().verify_standings(edition.id).await.unwrap(), []);
    let results = all(&database, edition.id).await;
    assert_eq!(ended.matches, i64::try_from(results.len()).unwrap());
    (database, edition.id, results)
}

#[tokio::test]
async fn killed_workers_do_not_change_the_leaderboard() {
    for (game, lines) in [
        (wojna::game(), "expected = \"5s\""),
        (bitwa::game(), "[schedule]\nboards = [\"pole\", \"kolosy\"]"),
        (tricks::game(), "[schedule]\nlegs = 2"),
        (blackjack::game(), "[schedule]\nepisodes = 6"),
        (gomoku::game(), ""),
        (gomoku::game(), "state = \"pairing\"\n[schedule]\nlegs = 2"),
    ] {
        let file = file(&game, lines);
        let (_, _, once) = staged(&file, 9, "one way").await;
        let (_, _, again) = staged(&file, 9, "another way").await;
        assert_eq!(once, again, "{game} {lines}");
    }
}

/// Every bot finds what it left in its match before, in the order of the schedule.
#[tokio::test]
async fn files_pass_from_match_to_match() {
    let (database, edition, _) = staged(&file(gomoku::game(), ""), 6, "files").await;
    let mut history: HashMap<Entrant, String> = HashMap::new();
    for planned in plan(&database, edition).await {
        for (seat, bot) in (1..).zip(&planned.seats.0) {
            let history = history.entry(*bot).or_default();
            write!(history, "{};", planned.number).unwrap();
            let left =
                bot_state::left(&database.pool, edition, planned.number, seat).await.unwrap();
            assert_eq!(left.unwrap(), history.as_bytes());
        }
    }
    assert_eq!(history.len(), 6);
    assert!(history.values().all(|numbers| numbers.matches(';').count() == 10));
}

/// The same files are stored once, even from different bots.
#[tokio::test]
async fn equal_files_are_stored_once() {
    let database = Database::new().await;
    let (_, edition) = running(&database, &file(gomoku::game(), ""), 4).await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let lots = queue.lease_at(edition.id, 4, START).await.unwrap();
    assert!(lots.len() >= 2);
    let reports: Vec<_> = lots
        .iter()
        .map(|lot| {
            let mut report = crate::support::report(lot, worker);
            report.files = vec![
                (lot.first_match, 1, b"same".to_vec()),
                (lot.first_match, 2, b"same".to_vec()),
            ];
            report
        })
        .collect();
    assert!(
        crate::support::report_all(&queue, &reports)
            .await
            .iter()
            .all(|fate| *fate == ReportStatus::Accepted)
    );
    let kept = i64::try_from(2 * lots.len()).unwrap();
    assert_eq!(database.number("SELECT count(*) FROM bot_state").await, kept);
    assert_eq!(database.number("SELECT count(*) FROM snapshots").await, 1);
}
