//! Editions that are played by unreliable workers. The workers lose leases, report late and report
//! in any order. The leaderboard does not depend on this.

use std::collections::HashMap;
use std::fmt::Write as _;

use arbiter_coordinator::database_clock::Clock;
use arbiter_coordinator::db::editions::{self, EditionState};
use arbiter_coordinator::db::lots::RetryPolicy;
use arbiter_coordinator::db::results::SeatedResult;
use arbiter_coordinator::db::{bot_state, matches};
use arbiter_coordinator::maintenance::Maintenance;
use arbiter_coordinator::queue::{LeasePolicy, LeasedLot, Queue, ReportStatus, Work};
use arbiter_coordinator::rpc::decode::report;
use arbiter_coordinator::tournament::{AssignmentBuilder, TournamentFile};
use arbiter_games::{Dice, Game, Games, Params, Seed, bitwa, blackjack, gomoku, tricks, wojna};
use arbiter_proto::ids::{EditionId, TournamentId, WorkerId};
use arbiter_proto::settings::Settings;
use arbiter_proto::v1;
use arbiter_ranking::Entrant;
use serde_json::Value;
use time::{Duration, OffsetDateTime};

use crate::fixture::{all_results, planned_matches, start_tournament, tournament_file};
use crate::support::test_clock::AtTime as _;
use crate::support::{Database, START};

/// A policy that never sets a match aside.
const UNLIMITED_RETRIES: LeasePolicy = LeasePolicy {
    lease: Duration::MINUTE,
    retry_policy: RetryPolicy {
        faults: i16::MAX,
        delay: Duration::SECOND,
        max_delay: Duration::seconds(4),
    },
};

/// Workers that act at random.
pub(crate) struct RandomWorkers {
    pub(crate) queue: Queue,
    tournament: TournamentId,
    worker: WorkerId,
    assignments: AssignmentBuilder,
    dice: Dice,
    now: OffsetDateTime,
    /// The clock of maintenance.
    clock: fn() -> OffsetDateTime,
    /// Reports that are not sent yet.
    pending_reports: Vec<v1::Report>,
}

impl RandomWorkers {
    pub(crate) async fn new(database: &Database, edition: EditionId, seed: &str) -> Self {
        Self {
            queue: Queue::new(database.pool.clone(), Games::built_in(), UNLIMITED_RETRIES),
            tournament: database.tournament_of(edition).await,
            worker: database.worker("w").await,
            assignments: AssignmentBuilder::new(database.pool.clone(), Games::built_in()),
            dice: Seed::of_text(seed).dice(0),
            now: START,
            clock: || START,
            pending_reports: Vec::new(),
        }
    }

    /// Starts at the time of this clock.
    pub(crate) fn with_clock(self, clock: fn() -> OffsetDateTime) -> Self {
        Self { now: clock(), clock, ..self }
    }

    /// Plays until the edition is complete.
    pub(crate) async fn play(mut self) {
        let maintenance = Maintenance::new(self.queue.clone(), Clock::fixed(self.clock));
        for _ in 0..10_000 {
            if !maintenance.round().await.unwrap().complete.is_empty() {
                return;
            }
            self.now += Duration::seconds(i64::from(self.dice.below(40)));
            self.queue.expire_at(self.now).await.unwrap();
            self.lease_lots().await;
            self.send_reports().await;
        }
        panic!("the edition is not complete after 10,000 rounds");
    }

    /// Leases lots. Most are played, some are lost, and some are returned.
    async fn lease_lots(&mut self) {
        let lots = self.queue.lease_at(self.tournament, 64, self.now).await.unwrap();
        let mut returned = Vec::new();
        for work in self.work(&lots).await {
            match self.dice.below(8) {
                0 => {}
                1 => returned.push(work.lot.lease),
                _ => self.pending_reports.push(lot_report(&self.assign(work).await)),
            }
        }
        self.queue.return_leases(None, &returned).await.unwrap();
    }

    /// The work of leases, as the dispatcher sends it.
    async fn work(&self, lots: &[LeasedLot]) -> Vec<Work> {
        let planned = matches::of_lots(self.queue.pool(), self.tournament, lots).await.unwrap();
        let mut planned = planned.into_iter();
        let mut take =
            |lot: &LeasedLot| planned.by_ref().take(lot.count.try_into().unwrap()).collect();
        lots.iter().map(|lot| Work { lot: *lot, matches: take(lot) }).collect()
    }

    /// The message that assigns a lot to a worker.
    async fn assign(&self, work: Work) -> v1::Lot {
        self.assignments
            .assign_lot(work, 60_000, &self.assignments.state_budget())
            .await
            .unwrap()
            .lot
    }

    /// Sends some of the pending reports in random order, and some of them twice.
    async fn send_reports(&mut self) {
        self.dice.shuffle(&mut self.pending_reports);
        let kept_count = self.dice.index(self.pending_reports.len() + 1);
        let mut reports = Vec::new();
        for message in self.pending_reports.split_off(kept_count) {
            if self.dice.below(4) == 0 {
                self.pending_reports.push(message.clone());
            }
            reports.push(report::read(self.worker, message, START).unwrap());
        }
        let statuses = crate::support::report_all(&self.queue, &reports).await;
        assert!(!statuses.contains(&ReportStatus::Malformed));
    }
}

/// The report of a lot. The results depend on the assignment only.
fn lot_report(lot: &v1::Lot) -> v1::Report {
    let settings: Settings = serde_json::from_str(&lot.settings).unwrap();
    let game = Games::built_in().find(&lot.game).unwrap();
    let match_result = |planned: &v1::Match| {
        let params = params(&game, &settings, planned);
        let seed = Seed(planned.seed.clone().try_into().unwrap());
        let transcript = seed.derive(&format!("{:?} {}", planned.seats, planned.params));
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
    let results = lot.matches.iter().map(match_result).collect();
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
        let match_params: serde_json::Map<String, Value> =
            serde_json::from_str(&planned.params).unwrap();
        params.extend(match_params);
    }
    Params::read(game, Value::Object(params)).unwrap()
}

/// Plays an edition in a new database to its end. Returns its results.
async fn play_edition(
    file: &TournamentFile,
    bots: i32,
    seed: &str,
) -> (Database, EditionId, Vec<SeatedResult>) {
    let database = Database::new().await;
    let (_, edition) = start_tournament(&database, file, bots).await;
    RandomWorkers::new(&database, edition.id, seed).await.play().await;
    let row = editions::get(&database.pool, edition.id).await.unwrap().unwrap();
    assert_eq!(row.state, EditionState::Complete);
    assert_eq!(database.queue().verify_standings(row.scope()).await.unwrap(), []);
    let results = all_results(&database, edition.id).await;
    assert_eq!(row.matches, i64::try_from(results.len()).unwrap());
    (database, edition.id, results)
}

#[tokio::test]
async fn unreliable_workers_do_not_change_the_leaderboard() {
    for (game, lines) in [
        (wojna::game(), "expected = \"5s\""),
        (bitwa::game(), "[schedule]\nboards = [\"pole\", \"kolosy\"]"),
        (tricks::game(), "[schedule]\nlegs = 2"),
        (tricks::game(), "[schedule]\nopponents = 4"),
        (blackjack::game(), "[schedule]\nepisodes = 6"),
        (gomoku::game(), ""),
        (gomoku::game(), "state = \"pairing\"\n[schedule]\nlegs = 2"),
        (gomoku::game(), "[schedule]\nkind = \"knockout\"\nbest_of = 3"),
        (wojna::game(), "params.seats = 2\n[schedule]\nkind = \"knockout\"\nthird_place = true"),
    ] {
        let file = tournament_file(&game, lines);
        let (_, _, first) = play_edition(&file, 9, "one way").await;
        let (_, _, second) = play_edition(&file, 9, "another way").await;
        assert_eq!(first, second, "{game} {lines}");
    }
}

/// Each bot gets the files that it left in its previous match.
#[tokio::test]
async fn files_pass_from_match_to_match() {
    let (database, edition, _) =
        play_edition(&tournament_file(gomoku::game(), ""), 6, "files").await;
    let tournament = database.tournament_of(edition).await;
    let mut history: HashMap<Entrant, String> = HashMap::new();
    for planned in planned_matches(&database, edition).await {
        for (seat, bot) in (1..).zip(&planned.seats.0) {
            let history = history.entry(*bot).or_default();
            write!(history, "{};", planned.number).unwrap();
            let number = planned.number;
            let files = bot_state::find(&database.pool, tournament, number, seat).await.unwrap();
            assert_eq!(files.unwrap(), history.as_bytes());
        }
    }
    assert_eq!(history.len(), 6);
    assert!(history.values().all(|numbers| numbers.matches(';').count() == 10));
}

/// Equal files are stored once, even if different bots leave them.
#[tokio::test]
async fn equal_files_are_stored_once() {
    let database = Database::new().await;
    let (_, edition) = start_tournament(&database, &tournament_file(gomoku::game(), ""), 4).await;
    let queue = database.queue();
    let worker = database.worker("w").await;
    let lots = queue.lease_at(edition.tournament, 4, START).await.unwrap();
    assert!(lots.len() >= 2);
    let reports: Vec<_> = lots
        .iter()
        .map(|lot| {
            let mut report = crate::support::report(lot, worker);
            report.files = vec![
                (lot.first_match(), 1, b"same".to_vec()),
                (lot.first_match(), 2, b"same".to_vec()),
            ];
            report
        })
        .collect();
    assert!(
        crate::support::report_all(&queue, &reports)
            .await
            .iter()
            .all(|status| *status == ReportStatus::Accepted)
    );
    let file_count = i64::try_from(2 * lots.len()).unwrap();
    assert_eq!(database.number("SELECT count(*) FROM bot_state").await, file_count);
    assert_eq!(database.number("SELECT count(*) FROM snapshots").await, 1);
}
