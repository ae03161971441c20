//! Tournaments in which bots join, change and leave.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use arbiter_coordinator::db::editions::{self, Edition, EditionState};
use arbiter_coordinator::db::entrants::Roster;
use arbiter_coordinator::db::lots::RetryPolicy;
use arbiter_coordinator::db::played_matches::{self, Cursor};
use arbiter_coordinator::db::results::MatchResult;
use arbiter_coordinator::db::tournaments::Tournament;
use arbiter_coordinator::db::{bots, matches, standings, tournaments, versions};
use arbiter_coordinator::queue::{LeasePolicy, LeasedLot, Queue, ReportStatus, Work};
use arbiter_coordinator::rpc::decode::report;
use arbiter_coordinator::tournament::auto_edition::{OpenOutcome, open_due};
use arbiter_coordinator::tournament::stored_plan;
use arbiter_coordinator::tournament::{
    AssignmentBuilder, IfRunning, OpenRequest, TournamentFile, lifecycle, open_edition,
};
use arbiter_games::{Game, Games, Params, Seed};
use arbiter_proto::ids::{EditionId, TournamentId, WorkerId};
use arbiter_proto::settings::Settings;
use arbiter_proto::v1;
use arbiter_ranking as ranking;
use serde_json::Value;
use time::{Duration, OffsetDateTime};

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

/// A beacon whose value may be entered from the first edition on.
pub(crate) const BEACON: &str =
    "beacon = \"a draw\"\n[submissions]\ncloses = \"2026-01-01T12:00:01Z\"";

/// A change of the participants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A bot submits a version. Its bundle consists of this byte.
    Submit(u16, u8),
    /// A bot is withdrawn.
    Withdraw(u16),
}

/// Whether bots leave files for their next matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    Nothing,
    Notes,
}

/// Whether a worker reports what it played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Honesty {
    Honest,
    Lying,
}

/// A tournament with a worker.
pub(crate) struct Fixture {
    pub(crate) database: Arc<Database>,
    pub(crate) queue: Queue,
    pub(crate) tournament: Tournament,
    pub(crate) now: OffsetDateTime,
    leaves: Leaves,
    worker: WorkerId,
    assignments: AssignmentBuilder,
    /// The bots of each played match, by edition.
    pub(crate) played: BTreeMap<EditionId, Vec<Vec<String>>>,
}

/// The name of a bot.
pub(crate) fn name(bot: u16) -> String {
    format!("bot-{bot}")
}

/// A tournament file of this game, with a fixed seed.
pub(crate) fn tournament_file(game: impl Display, lines: &str) -> TournamentFile {
    let text = format!("name = \"cup\"\ngame = \"{game}\"\nseed = \"field\"\n{lines}");
    TournamentFile::parse(&Games::built_in(), &text).unwrap()
}

impl Fixture {
    /// A tournament with this many bots.
    pub(crate) async fn new(file: &TournamentFile, bots: u16, leaves: Leaves) -> Self {
        let mut fixture = Self::empty(Arc::new(Database::new().await), file, leaves).await;
        for bot in 0..bots {
            fixture.change(Change::Submit(bot, 1)).await;
        }
        fixture
    }

    /// A tournament without bots, in a database that may have other tournaments.
    pub(crate) async fn empty(
        database: Arc<Database>,
        file: &TournamentFile,
        leaves: Leaves,
    ) -> Self {
        let queue = Queue::new(database.pool.clone(), Games::built_in(), UNLIMITED_RETRIES);
        let tournament =
            lifecycle::create(&mut database.pool.acquire().await.unwrap(), file, START)
                .await
                .unwrap();
        let worker = database.worker("w").await;
        let assignments = AssignmentBuilder::new(database.pool.clone(), Games::built_in());
        let now = START;
        let played = BTreeMap::new();
        Self { database, queue, tournament, now, leaves, worker, assignments, played }
    }

    /// Applies a change one second after the previous one.
    pub(crate) async fn change(&mut self, change: Change) {
        self.now += Duration::SECOND;
        let pool = &self.database.pool;
        let id = self.tournament.id;
        match change {
            Change::Submit(bot, bundle) => {
                let digest = [bundle; 32];
                versions::store_bundle(pool, &digest, &[bundle]).await.unwrap();
                let bot = match bots::find(pool, id, &name(bot)).await.unwrap() {
                    Some(bot) => bot.id,
                    None => bots::create(pool, id, None, &name(bot), self.now).await.unwrap(),
                };
                versions::submit(pool, bot, &digest, self.now).await.unwrap();
            }
            Change::Withdraw(bot) => {
                let bot = bots::find(pool, id, &name(bot)).await.unwrap().unwrap();
                assert!(bots::withdraw(pool, bot.id, self.now).await.unwrap());
            }
        }
        tournaments::mark_changed(pool, id, self.now).await.unwrap();
    }

    /// The organiser starts an edition.
    pub(crate) async fn start(&self) -> Edition {
        let running = IfRunning::Replace;
        open_edition::open(&self.queue, OpenRequest::new(self.tournament.id, running), self.now)
            .await
            .unwrap()
    }

    /// Opens an edition after the change window if one is due.
    pub(crate) async fn open_if_due(&mut self) -> Option<Edition> {
        self.now += Duration::seconds(5);
        match open_due(&self.queue, self.tournament.id, self.now).await.unwrap()? {
            OpenOutcome::Opened(edition) => Some(edition),
            OpenOutcome::Failed(_, error) => panic!("{error}"),
        }
    }

    /// Applies changes one by one, and opens an edition after each. Returns the last edition.
    pub(crate) async fn reopen(&mut self, changes: &[Change]) -> Edition {
        let mut edition = None;
        for change in changes {
            self.change(*change).await;
            edition = self.open_if_due().await;
        }
        edition.unwrap()
    }

    /// Leases at most this many lots of an edition.
    pub(crate) async fn lease(&self, edition: &Edition, limit: usize) -> Vec<LeasedLot> {
        self.queue.lease_at(edition.tournament, limit, self.now).await.unwrap()
    }

    /// Plays leased lots and reports them. Returns the statuses of the reports.
    pub(crate) async fn play(&mut self, lots: &[LeasedLot]) -> Vec<ReportStatus> {
        self.play_as(Honesty::Honest, lots).await
    }

    /// Like [`Fixture::play`], by a worker that may lie.
    pub(crate) async fn play_as(
        &mut self,
        honesty: Honesty,
        lots: &[LeasedLot],
    ) -> Vec<ReportStatus> {
        let mut reports = Vec::new();
        for work in work(self.queue.pool(), self.tournament.id, lots).await {
            let edition = work.lot.edition.unwrap();
            let memory = self.assignments.state_budget();
            let lot: v1::Lot =
                self.assignments.assign_lot(work, 60_000, &memory).await.unwrap().lot;
            let names = |planned: &v1::Match| {
                planned.seats.iter().map(|seat| seat.bot.clone()).collect::<Vec<_>>()
            };
            self.played.entry(edition).or_default().extend(lot.matches.iter().map(names));
            let lot_report = lot_report(&lot, honesty, self.leaves);
            reports.push(report::read(self.worker, lot_report, self.now).unwrap());
        }
        crate::support::report_all(&self.queue, &reports).await
    }

    /// Plays lots of an edition until no lot can be leased.
    pub(crate) async fn play_available(&mut self, edition: &Edition) {
        loop {
            let lots = self.lease(edition, 64).await;
            if lots.is_empty() {
                return;
            }
            let statuses = self.play(&lots).await;
            assert!(statuses.iter().all(|status| *status == ReportStatus::Accepted));
        }
    }

    /// Runs maintenance for an edition. Returns whether the edition is complete now.
    pub(crate) async fn maintain(&self, edition: &Edition) -> bool {
        self.queue.check_stored(edition.tournament).await.unwrap();
        while self.queue.count(edition.tournament).await.unwrap() > 0 {}
        let planned =
            arbiter_coordinator::tournament::rounds::plan_next_round(&self.queue, edition.id);
        planned.await.unwrap();
        self.queue.complete(edition.id, self.now).await.unwrap()
    }

    /// Plays an edition to its end.
    pub(crate) async fn finish(&mut self, edition: &Edition) {
        for _ in 0..10_000 {
            self.play_available(edition).await;
            if self.maintain(edition).await {
                let pool = &self.database.pool;
                let id = edition.id;
                let row = editions::get(pool, id).await.unwrap().unwrap();
                assert_eq!(row.state, EditionState::Complete);
                assert_eq!(self.queue.verify_standings(row.scope()).await.unwrap(), []);
                return;
            }
        }
        panic!("edition {} is not complete after 10,000 rounds", edition.number);
    }

    /// The bots of the matches that were played for an edition.
    pub(crate) fn played(&self, edition: &Edition) -> &[Vec<String>] {
        self.played.get(&edition.id).map_or(&[], Vec::as_slice)
    }

    /// The edition whose leaderboard is the official one.
    pub(crate) async fn official(&self) -> EditionId {
        editions::official(&self.database.pool, self.tournament.id).await.unwrap().unwrap()
    }

    /// The leaderboard of an edition and all its matches as text, without ids of the database.
    pub(crate) async fn export(&self, edition: EditionId) -> String {
        let pool = &self.database.pool;
        let roster = Roster::of(pool, edition).await.unwrap();
        let mut connection = pool.acquire().await.unwrap();
        let contestants = standings::contestants(&mut connection, edition).await.unwrap();
        let game = editions::game(pool, &Games::built_in(), edition).await.unwrap();
        let places = ranking::rank(&game, contestants);
        let mut lines: Vec<_> = places
            .iter()
            .map(|place| {
                let entrant = roster.get(place.contestant.entrant).unwrap();
                let tally = &place.contestant.tally;
                let bundle = entrant.digest[0];
                format!("{:?} {} {bundle} {tally:?}", place.rank, entrant.name)
            })
            .collect();
        let row = editions::get(pool, edition).await.unwrap().unwrap();
        let games = Games::built_in();
        let tournament = tournaments::get(pool, row.tournament).await.unwrap().unwrap();
        let positions = stored_plan::positions(pool, &games, &tournament, &row).await.unwrap();
        let mut matches = Vec::new();
        let mut cursor = Cursor::start(false);
        loop {
            let page = played_matches::page(pool, row.scope(), cursor, false, played_matches::PAGE)
                .await
                .unwrap();
            let Some(last) = page.last() else { break };
            cursor = cursor.moved_to(last.result.number);
            for row in &page {
                let names: Vec<_> =
                    row.seats.0.iter().map(|seat| &roster.get(*seat).unwrap().name).collect();
                let params = &row.params;
                let result = &row.result;
                let MatchResult { number, scores, forfeits, bad_answers, .. } = result;
                let transcript = blake3::Hash::from(result.transcript);
                let position = positions.of(*number).unwrap();
                let line = format!(
                    "{position} {names:?} {params:?} {scores:?} {forfeits:?} {bad_answers:?} \
                     {transcript}"
                );
                matches.push((position, line));
            }
        }
        matches.sort_unstable();
        lines.extend(matches.into_iter().map(|(_, line)| line));
        lines.join("\n")
    }

    /// The result of a tournament in which all changes come before the first match.
    pub(crate) async fn from_scratch(
        file: &TournamentFile,
        bots: u16,
        leaves: Leaves,
        changes: &[Change],
    ) -> String {
        let mut fixture = Self::new(file, bots, leaves).await;
        for change in changes {
            fixture.change(*change).await;
        }
        let edition = fixture.start().await;
        fixture.finish(&edition).await;
        fixture.export(edition.id).await
    }
}

/// The work of leases of a tournament, as the dispatcher sends it.
async fn work(pool: &sqlx::PgPool, tournament: TournamentId, lots: &[LeasedLot]) -> Vec<Work> {
    let all = matches::of_lots(pool, tournament, lots).await.unwrap();
    let mut all = all.into_iter();
    let mut work = |lot: &LeasedLot| {
        let count = usize::try_from(lot.count).unwrap();
        Work { lot: *lot, matches: all.by_ref().take(count).collect() }
    };
    lots.iter().map(&mut work).collect()
}

/// The report of a lot. The results depend on the assignment only.
fn lot_report(lot: &v1::Lot, honesty: Honesty, leaves: Leaves) -> v1::Report {
    let settings: Settings = serde_json::from_str(&lot.settings).unwrap();
    let game = Games::built_in().find(&lot.game).unwrap();
    let result = |planned| match_result(&game, &settings, planned, honesty, leaves);
    let results = lot.matches.iter().map(result);
    v1::Report {
        lease: lot.lease,
        results: results.collect(),
        level: "B".to_owned(),
        trial: None,
        trace: String::new(),
    }
}

/// The result of a match: pseudo-random, from its seed, seats and parameters.
fn match_result(
    game: &Game,
    settings: &Settings,
    planned: &v1::Match,
    honesty: Honesty,
    leaves: Leaves,
) -> v1::MatchResult {
    let seed = Seed(planned.seed.clone().try_into().unwrap());
    let honest = seed.derive(&format!("{:?} {}", planned.seats, planned.params));
    let transcript = match honesty {
        Honesty::Honest => honest,
        Honesty::Lying => honest.derive("a lie"),
    };
    let mut dice = transcript.dice(0);
    let chips = chips(game, settings, planned);
    let seats = planned.seats.iter().enumerate().map(|(seat, bot)| {
        let mut number = || i64::from(dice.below(201)) - 100;
        let score = match chips.get(seat) {
            Some(chips) => vec![(chips + 2 * number()).max(0)],
            None => (0..game.columns.len()).map(|_| number()).collect(),
        };
        let bad_answers = dice.below(10).saturating_sub(7).try_into().unwrap();
        let forfeit =
            if dice.below(9) == 0 { v1::Forfeit::Clock } else { v1::Forfeit::Unspecified };
        // The files depend on the earlier files of the bot and on the match.
        let files = match leaves {
            Leaves::Notes => {
                blake3::hash(&[&bot.files[..], &transcript.0].concat()).as_bytes()[..8].to_vec()
            }
            Leaves::Nothing => Vec::new(),
        };
        v1::SeatResult { score, forfeit: forfeit.into(), bad_answers, files, evidence: None }
    });
    v1::MatchResult {
        number: planned.number,
        seats: seats.collect(),
        transcript: transcript.0.to_vec(),
        wall_ms: 5,
        record: planned.number.to_string().into_bytes(),
    }
}

/// The initial chips of each seat in blackjack.
fn chips(game: &Game, settings: &Settings, planned: &v1::Match) -> Vec<i64> {
    let mut params = settings.params.clone();
    if !planned.params.is_empty() {
        let match_params: serde_json::Map<String, Value> =
            serde_json::from_str(&planned.params).unwrap();
        params.extend(match_params);
    }
    let params = Params::read(game, Value::Object(params)).unwrap();
    let Some(chips) = serde_json::to_value(&params).unwrap().get("chips").cloned() else {
        return Vec::new();
    };
    let each = |seat: usize| chips.get(seat).unwrap_or(&chips).as_i64().unwrap();
    (0..planned.seats.len()).map(each).collect()
}
