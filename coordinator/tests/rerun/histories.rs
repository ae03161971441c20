//! Random histories of tournaments. Bots join, change, leave and are suspended, matches are played,
//! lost, falsified and declared void, and editions replace each other in the middle of play.
//!
//! Each edition that completes is compared with a tournament that had its bots from the beginning:
//! leaderboard, matches, results and certificate are the same, byte for byte. No match is played
//! twice, and earlier editions never change.
//!
//! `ARBITER_HISTORIES` is the number of histories. A failure names its history, and
//! `ARBITER_HISTORY=NAME` plays only that one.

use std::collections::BTreeSet;
use std::sync::Arc;

use arbiter_coordinator::access::{self, Role};
use arbiter_coordinator::bot_suspension;
use arbiter_coordinator::db::bots::{self, Bot};
use arbiter_coordinator::db::editions::{self, Edition, EditionState};
use arbiter_coordinator::db::entrants::Roster;
use arbiter_coordinator::db::lots::{self, RetryPolicy};
use arbiter_coordinator::db::{invalidated_matches, matches, tournaments, versions};
use arbiter_coordinator::match_invalidation;
use arbiter_coordinator::queue::{Failure, LeasePolicy, LeasedLot, Queue, ReportStatus};
use arbiter_coordinator::tournament::{
    IfRunning, OpenRequest, PlanMode, TournamentFile, beacon, open_edition,
};
use arbiter_games::{Dice, Game, Games, Seed, bitwa, blackjack, gomoku, tricks, wojna};
use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{EditionId, MatchNumber, TokenId};
use time::Duration;

use crate::fixture::Change::{Submit, Withdraw};
use crate::fixture::{BEACON, Fixture, Honesty, Leaves, name, tournament_file};
use crate::support::Database;
use crate::support::test_clock::AtTime as _;

mod checks;

/// The number of histories if the environment does not set it.
const HISTORIES: usize = 28;
/// The number of tests that share them.
const FAMILIES: usize = 7;
/// The number of steps of a history.
const STEPS: u32 = 45;

/// A match is set aside after its second fault.
const LEASE_POLICY: LeasePolicy = LeasePolicy {
    lease: Duration::MINUTE,
    retry_policy: RetryPolicy {
        faults: 2,
        delay: Duration::SECOND,
        max_delay: Duration::seconds(4),
    },
};

/// A kind of tournament.
struct Case {
    game: Game,
    /// The rest of the tournament file.
    lines: &'static str,
    leaves: Leaves,
    field: FieldSize,
}

/// How many bots take part.
#[derive(Clone, Copy)]
struct FieldSize {
    least: usize,
    first: u16,
    most: u16,
}

const FEW: FieldSize = FieldSize { least: 4, first: 6, most: 9 };
/// Tables of fewer bots are planned anew when a bot joins.
const MANY: FieldSize = FieldSize { least: 8, first: 13, most: 17 };

impl Case {
    fn new(game: Game, lines: &'static str) -> Self {
        Self { game, lines, leaves: Leaves::Nothing, field: FEW }
    }
}

/// A tournament with what happened in it.
struct History<'a> {
    case: &'a Case,
    file: TournamentFile,
    dice: Dice,
    fixture: Fixture,
    organiser: TokenId,
    /// The owners of the bots, which take turns. Empty if bots have no owners.
    owners: Vec<TokenId>,
    /// The newest edition.
    edition: Edition,
    /// Leases that were not reported.
    leased: Vec<LeasedLot>,
    /// Matches whose results are false.
    lies: BTreeSet<MatchNumber>,
    /// Matches that were declared void since the newest edition opened.
    void: BTreeSet<MatchNumber>,
    /// The complete editions with their exports.
    complete: Vec<(EditionId, String)>,
}

impl<'a> History<'a> {
    async fn begin(database: &Arc<Database>, case: &'a Case, seed: &str) -> Self {
        let lines = case.lines;
        let file = tournament_file(&case.game, lines);
        let file =
            TournamentFile { name: seed.to_owned(), seed: Some(Seed::of_text(seed)), ..file };
        let mut fixture = Fixture::empty(Arc::clone(database), &file, case.leaves).await;
        let pool = &database.pool;
        fixture.queue = Queue::new(pool.clone(), Games::built_in(), LEASE_POLICY);
        let token = async |role| access::create(pool, role, seed, fixture.now).await.unwrap().0;
        let organiser = token(Role::Organiser).await;
        let mut owners = Vec::new();
        if file.submissions.separate_owners {
            for _ in 0..7 {
                owners.push(token(Role::Player).await);
            }
        }
        for bot in 0..case.field.first {
            enter(&mut fixture, &owners, bot, 1).await;
        }
        let edition = fixture.start().await;
        Self {
            case,
            file,
            dice: Seed::of_text(seed).dice(0),
            fixture,
            organiser,
            owners,
            edition,
            leased: Vec::new(),
            lies: BTreeSet::new(),
            void: BTreeSet::new(),
            complete: Vec::new(),
        }
    }

    async fn step(&mut self) {
        match self.dice.below(24) {
            0..=3 => {
                for _ in 0..=self.dice.below(3) {
                    self.change_bot().await;
                }
                if self.dice.below(3) > 0 {
                    self.open_if_due().await;
                }
            }
            4 => self.open_if_due().await,
            5 => self.start().await,
            6 => {
                let seconds = self.dice.below(70);
                self.wait(seconds).await;
            }
            7..=10 => self.report().await,
            11 => self.fail().await,
            12 => self.return_leases().await,
            13 => self.invalidate().await,
            14 => self.finish().await,
            15..=18 => drop(self.maintain().await),
            _ => self.lease().await,
        }
    }

    /// A random bot joins, changes, leaves or returns.
    async fn change_bot(&mut self) {
        let pool = self.fixture.database.pool.clone();
        let id = self.fixture.tournament.id;
        let number = u16::try_from(self.dice.below(self.case.field.most.into())).unwrap();
        let bundle = 1 + u8::try_from(self.dice.below(3)).unwrap();
        let newest = versions::newest(&pool, id).await.unwrap();
        let bot = bots::find(&pool, id, &name(number)).await.unwrap();
        let takes_part =
            bot.as_ref().is_some_and(|bot| newest.iter().any(|version| version.bot == bot.id));
        let may_leave = takes_part && newest.len() > self.case.field.least;
        match (bot, self.dice.below(6)) {
            (Some(_), 0) if may_leave => self.fixture.change(Withdraw(number)).await,
            (Some(bot), 1) if may_leave => self.suspend(&bot).await,
            (Some(bot), 0..3) if !takes_part => self.let_return(&bot).await,
            (bot, _) => {
                if let Some(bot) = bot {
                    bots::enter_again(&pool, bot.id).await.unwrap();
                }
                enter(&mut self.fixture, &self.owners, number, bundle).await;
            }
        }
    }

    async fn suspend(&mut self, bot: &Bot) {
        let pool = &self.fixture.database.pool;
        let roster = Roster::of(pool, self.edition.id).await.unwrap();
        let Some(entrant) = roster.find(&bot.name) else { return };
        let now = self.fixture.now;
        bots::suspend_entrant(pool, self.edition.id, entrant, "faults", now).await.unwrap();
        tournaments::mark_changed(pool, self.edition.tournament, now).await.unwrap();
    }

    /// A bot that was withdrawn or suspended takes part again, without a new version.
    async fn let_return(&mut self, bot: &Bot) {
        let pool = &self.fixture.database.pool;
        bots::enter_again(pool, bot.id).await.unwrap();
        bots::reinstate(pool, bot.id).await.unwrap();
        let id = self.edition.tournament;
        tournaments::mark_changed(pool, id, self.fixture.now).await.unwrap();
    }

    async fn open_if_due(&mut self) {
        if let Some(edition) = self.fixture.open_if_due().await {
            self.begin_edition(edition).await;
        }
    }

    /// The organiser starts an edition, maybe with the same bots, or enters the value of the
    /// beacon.
    async fn start(&mut self) {
        let id = self.edition.tournament;
        if self.file.beacon.is_some() && self.dice.below(2) == 0 {
            let queue = &self.fixture.queue;
            let by = Some(self.organiser);
            let entered = beacon::set_value(queue, id, "2a", by, self.fixture.now).await;
            let (tournament, edition) = entered.unwrap();
            self.fixture.tournament = tournament;
            // The value changes nothing the second time.
            if let Some(edition) = edition {
                self.begin_edition(edition).await;
            }
            return;
        }
        let request = OpenRequest::new(id, IfRunning::Replace);
        let fresh = self.dice.below(2) == 0;
        let mode = if fresh { PlanMode::Fresh } else { PlanMode::Incremental };
        let request = OpenRequest { mode, ..request };
        let opened = open_edition::open(&self.fixture.queue, request, self.fixture.now).await;
        self.begin_edition(opened.unwrap()).await;
    }

    async fn begin_edition(&mut self, edition: Edition) {
        self.edition = edition;
        self.void.clear();
        // A worker gives back matches that the edition before needed.
        if self.dice.below(2) == 0 {
            self.return_leases().await;
        }
        self.check_newest().await;
    }

    async fn lease(&mut self) {
        let mut lots = self.fixture.lease(&self.edition, 1 << self.dice.below(5)).await;
        lots.sort_unstable_by_key(|lot| lot.lease.lot.number);
        self.leased.extend(lots);
    }

    /// A random part of the leases.
    fn some_leases(&mut self) -> Vec<LeasedLot> {
        self.dice.shuffle(&mut self.leased);
        let others = self.dice.index(self.leased.len() + 1);
        self.leased.split_off(others)
    }

    /// Time passes.
    async fn wait(&mut self, seconds: u32) {
        self.fixture.now += Duration::seconds(seconds.into());
        self.fixture.queue.expire_at(self.fixture.now).await.unwrap();
    }

    /// Reports some leases, a few of them twice. Some reports are false.
    async fn report(&mut self) {
        let lots = self.some_leases();
        let honesty = match self.dice.below(6) {
            0 => Honesty::Lying,
            _ => Honesty::Honest,
        };
        self.report_lots(honesty, &lots).await;
        if self.dice.below(8) == 0 {
            let statuses = self.fixture.play(&lots).await;
            let is_refused =
                |status| matches!(status, &ReportStatus::Duplicate | &ReportStatus::Late);
            assert!(statuses.iter().all(is_refused), "{statuses:?}");
        }
        if honesty == Honesty::Lying && self.dice.below(2) == 0 {
            self.invalidate().await;
        }
    }

    async fn report_lots(&mut self, honesty: Honesty, lots: &[LeasedLot]) {
        let leases: Vec<_> = lots.iter().map(|lot| lot.lease).collect();
        let now = self.fixture.now;
        let valid = self.fixture.queue.renew_at(None, &leases, now).await.unwrap();
        let statuses = self.fixture.play_as(honesty, lots).await;
        for (lot, status) in lots.iter().zip(statuses) {
            if valid.contains(&lot.lease) {
                assert_eq!(status, ReportStatus::Accepted);
                if honesty == Honesty::Lying {
                    let first = lot.first_match().0;
                    self.lies.extend((first..first + i64::from(lot.count)).map(MatchNumber));
                }
            } else {
                assert_eq!(status, ReportStatus::Late);
            }
        }
    }

    /// Some attempts fail. The worker reports part of them nevertheless.
    async fn fail(&mut self) {
        let lots = self.some_leases();
        let failures: Vec<_> = lots
            .iter()
            .map(|lot| Failure {
                lease: lot.lease,
                by: None,
                kind: FaultKind::System,
                reason: "no memory".to_owned(),
            })
            .collect();
        self.fixture.queue.fail_at(&failures, self.fixture.now).await.unwrap();
        self.leased.extend(lots.into_iter().step_by(3));
    }

    async fn return_leases(&mut self) {
        let lots = self.some_leases();
        let leases: Vec<_> = lots.iter().map(|lot| lot.lease).collect();
        self.fixture.queue.return_leases(None, &leases).await.unwrap();
        self.leased.extend(lots.into_iter().step_by(3));
    }

    /// The organiser declares the false results void, some random ones, and some whose files
    /// matches began with that are being played.
    async fn invalidate(&mut self) {
        let id = self.edition.tournament;
        let mut db = self.fixture.database.pool.begin().await.unwrap();
        let statement = "SELECT number FROM results WHERE tournament = $1 ORDER BY number";
        let query = sqlx::query_scalar(statement).bind(id);
        let played: Vec<MatchNumber> = query.fetch_all(&mut *db).await.unwrap();
        let mut named: Vec<_> = self.lies.iter().copied().collect();
        if self.dice.below(2) == 0 {
            for leased in matches::of_lots(&mut *db, id, &self.leased).await.unwrap() {
                let before = leased.state_from.into_iter().flatten().flatten().map(MatchNumber);
                named.extend(before.filter(|before| played.contains(before)));
            }
        }
        for _ in 0..self.dice.below(4) {
            if !played.is_empty() {
                named.push(played[self.dice.index(played.len())]);
            }
        }
        if named.is_empty() {
            return;
        }
        let filter = invalidated_matches::MatchFilter::default();
        let void = match_invalidation::find(&mut db, id, &filter, &named).await.unwrap();
        let by = self.organiser;
        let now = self.fixture.now;
        match_invalidation::apply(&mut db, id, &void, by, "a clock", now).await.unwrap();
        db.commit().await.unwrap();
        self.void.extend(void);
    }

    /// Runs maintenance. Returns whether it completed the newest edition.
    async fn maintain(&mut self) -> bool {
        let pool = self.fixture.database.pool.clone();
        let id = self.edition.tournament;
        if editions::running(&pool, id).await.unwrap().is_none() {
            lots::cancel_returned(&pool, id).await.unwrap();
        }
        let is_complete = self.fixture.maintain(&self.edition).await;
        lots::merge_counts(&pool, id).await.unwrap();
        self.check_newest().await;
        if is_complete {
            self.check_complete().await;
        }
        self.suspend_for_forfeits().await;
        is_complete
    }

    async fn suspend_for_forfeits(&mut self) {
        let pool = self.fixture.database.pool.clone();
        let id = self.edition.tournament;
        let now = self.fixture.now;
        bot_suspension::suspend_for_forfeits(&pool, self.edition.id, now).await.unwrap();
        for bot in bots::list(&pool, id).await.unwrap() {
            if versions::newest(&pool, id).await.unwrap().len() >= self.case.field.least {
                return;
            }
            self.let_return(&bot).await;
        }
    }

    /// Plays the newest edition to its end.
    async fn finish(&mut self) {
        for _ in 0..200 {
            let pool = &self.fixture.database.pool;
            let row = editions::get(pool, self.edition.id).await.unwrap().unwrap();
            if row.state != EditionState::Running {
                return;
            }
            self.fixture.play_available(&self.edition).await;
            if self.maintain().await {
                return;
            }
            if self.dice.below(2) == 0 {
                let lots = std::mem::take(&mut self.leased);
                self.report_lots(Honesty::Honest, &lots).await;
            } else {
                self.wait(70).await;
            }
            let pool = &self.fixture.database.pool;
            for lot in lots::aside(pool, self.edition.tournament).await.unwrap() {
                assert!(lots::requeue(pool, lot).await.unwrap());
            }
        }
        panic!("edition {} is not complete after 200 rounds", self.edition.number);
    }
}

/// Submits a version of a bot, which has an owner if there are `owners`.
async fn enter(fixture: &mut Fixture, owners: &[TokenId], bot: u16, bundle: u8) {
    let pool = &fixture.database.pool;
    let id = fixture.tournament.id;
    if !owners.is_empty() && bots::find(pool, id, &name(bot)).await.unwrap().is_none() {
        let owner = owners[usize::from(bot) % owners.len()];
        bots::create(pool, id, Some(owner), &name(bot), fixture.now).await.unwrap();
    }
    fixture.change(Submit(bot, bundle)).await;
}

/// Names the history that fails.
struct NameIfFailed<'a>(&'a str);

impl Drop for NameIfFailed<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(name) = self;
            eprintln!("history {name} failed; play it alone with ARBITER_HISTORY={name}");
        }
    }
}

/// Plays histories of these cases, which take turns.
async fn check(family: &str, cases: &[Case]) {
    let number = |text: String| text.parse::<usize>().unwrap();
    let total = std::env::var("ARBITER_HISTORIES").map_or(HISTORIES, number);
    let numbers: Vec<usize> = match std::env::var("ARBITER_HISTORY") {
        Ok(only) => only.strip_prefix(family).into_iter().map(|n| number(n.to_owned())).collect(),
        Err(_) => (0..total.div_ceil(FAMILIES)).collect(),
    };
    let database = Arc::new(Database::new().await);
    for number in numbers {
        let seed = format!("{family}{number}");
        let _name = NameIfFailed(&seed);
        let case = &cases[number % cases.len()];
        let mut history = History::begin(&database, case, &seed).await;
        for _ in 0..STEPS {
            history.step().await;
        }
        history.finish().await;
        // The last edition has no false results.
        history.invalidate().await;
        history.open_if_due().await;
        history.finish().await;
        assert!(!history.complete.is_empty());
    }
}

#[tokio::test]
async fn round_robins_have_the_same_leaderboards() {
    let lots = "expected = \"1ms\"\n[schedule]\nlegs = 9";
    let forfeits = "[submissions]\nstand_down_percent = 30\nstand_down_after = 4";
    let boards = "[schedule]\nsides = \"random\"\nboards = [\"pole\", \"kolosy\"]";
    let two = "params.seats = 2\n[schedule]\nkind = \"round_robin\"\nsides = \"both\"";
    let cases = [
        Case::new(tricks::game().clone(), BEACON),
        Case::new(tricks::game().clone(), forfeits),
        Case::new(tricks::game().clone(), lots),
        Case::new(bitwa::game().clone(), boards),
        Case::new(wojna::game().clone(), two),
        Case::new(gomoku::game().clone(), "state = \"none\""),
        Case::new(tricks::game().clone(), "[schedule]\nlegs = 2"),
        Case::new(tricks::game().clone(), "[schedule]\nopponents = 3"),
        Case::new(gomoku::game().clone(), "state = \"none\"\n[schedule]\nopponents = 2"),
    ];
    check("round-robin-", &cases).await;
}

#[tokio::test]
async fn foursomes_have_the_same_leaderboards() {
    let owners = "[submissions]\nseparate_owners = true";
    let case = |lines| Case { field: MANY, ..Case::new(wojna::game().clone(), lines) };
    let cases = [
        case(""),
        case("[schedule]\ngames = 10"),
        case(owners),
        case("expected = \"1ms\"\n[schedule]\ngames = 140"),
        case(BEACON),
        Case { leaves: Leaves::Notes, ..case("state = \"tournament\"") },
    ];
    check("foursomes-", &cases).await;
}

#[tokio::test]
async fn tables_of_other_sizes_have_the_same_leaderboards() {
    let case = |lines| Case { field: MANY, ..Case::new(wojna::game().clone(), lines) };
    let cases = [
        case("params.seats = 3\n[schedule]\nkind = \"tables\"\nlegs = 2"),
        Case::new(wojna::game().clone(), "[schedule]\nkind = \"tables\"\nlegs = 3"),
        case("params.seats = 2\n[schedule]\nkind = \"tables\"\nlegs = 3"),
        Case {
            leaves: Leaves::Notes,
            ..case("state = \"tournament\"\nparams.seats = 3\nschedule.kind = \"tables\"")
        },
    ];
    check("tables-", &cases).await;
}

#[tokio::test]
async fn episodes_have_the_same_leaderboards() {
    let case = |lines| Case::new(blackjack::game().clone(), lines);
    let cases = [
        case("[schedule]\nepisodes = 2"),
        Case { field: MANY, ..case("expected = \"1ms\"\n[schedule]\nepisodes = 1") },
    ];
    check("episodes-", &cases).await;
}

#[tokio::test]
async fn knockouts_have_the_same_leaderboards() {
    let cases = [
        Case::new(gomoku::game().clone(), "[schedule]\nkind = \"knockout\""),
        Case::new(
            wojna::game().clone(),
            "params.seats = 2\n[schedule]\nkind = \"knockout\"\nbest_of = 3\nthird_place = true",
        ),
        Case {
            field: MANY,
            ..Case::new(
                tricks::game().clone(),
                "[schedule]\nkind = \"knockout\"\nbest_of = 1\nextra_pairs = 0\nseeding = \"entry\"",
            )
        },
    ];
    check("knockout-", &cases).await;
}

#[tokio::test]
async fn files_between_pairs_lead_to_the_same_leaderboards() {
    let case = |lines| Case { leaves: Leaves::Notes, ..Case::new(gomoku::game().clone(), lines) };
    let legs = "state = \"pairing\"\n[schedule]\nlegs = 2";
    let cases = [
        case(legs),
        case("state = \"pairing\"\n[schedule]\nopponents = 2"),
        case("state = \"pairing\""),
        Case { leaves: Leaves::Nothing, ..case(legs) },
    ];
    check("pairing-", &cases).await;
}

#[tokio::test]
async fn files_of_the_tournament_lead_to_the_same_leaderboards() {
    let case = |lines| Case { leaves: Leaves::Notes, ..Case::new(gomoku::game().clone(), lines) };
    let random = "[schedule]\nsides = \"random\"";
    let nothing = Case { leaves: Leaves::Nothing, ..case("") };
    let cases = [case(""), nothing, case(random), case(BEACON)];
    check("files-", &cases).await;
}
