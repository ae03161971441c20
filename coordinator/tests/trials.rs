//! Trials in the database. A trial ends once. After faults it is retried, then set aside. A version
//! enters only if its trial passes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use arbiter_coordinator::access::{self, Role};
use arbiter_coordinator::db::claimable;
use arbiter_coordinator::db::entrants::EntrantInfo;
use arbiter_coordinator::db::lease_details::{self, LeaseDetails, LeasedWork};
use arbiter_coordinator::db::lots::LotState;
use arbiter_coordinator::db::trials::{self, Outcome, TrialState};
use arbiter_coordinator::db::{bot_list, bots, tournaments, versions, worker_runtimes, workers};
use arbiter_coordinator::queue::{Dispatcher, Failure, LeasePolicy, Queue, ReportStatus};
use arbiter_games::gomoku;
use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{BotId, Lease, TokenId, TournamentId, VersionId, WorkerId};
use arbiter_proto::v1::Runtime;
use serde_json::json;
use support::test_clock::{AtTime as _, set_time};
use support::{Database, START};
use time::Duration;

/// A tournament with one bot.
struct Fixture {
    database: Database,
    cup: TournamentId,
    owner: TokenId,
    worker: WorkerId,
}

impl Fixture {
    async fn new() -> Self {
        let database = Database::new().await;
        let cup = database.tournament("cup", gomoku::game()).await;
        let token = access::create(&database.pool, Role::Player, "ada", START).await;
        let owner = token.unwrap().0;
        bots::create(&database.pool, cup, Some(owner), "mine", START).await.unwrap();
        let worker = database.worker("w").await;
        Self { database, cup, owner, worker }
    }

    fn queue(&self) -> Queue {
        self.database.queue()
    }

    /// Submits a version with a bundle of one byte, and queues its trial.
    async fn submit(&self, byte: u8) -> VersionId {
        let bot = bots::find(&self.database.pool, self.cup, "mine").await.unwrap().unwrap();
        self.submit_to(bot.id, byte).await
    }

    /// The same for this bot.
    async fn submit_to(&self, bot: BotId, byte: u8) -> VersionId {
        let pool = &self.database.pool;
        let digest = [byte; 32];
        versions::store_bundle(pool, &digest, &[byte]).await.unwrap();
        let version = versions::submit(pool, bot, &digest, START).await.unwrap();
        trials::queue(pool, version).await.unwrap();
        version
    }

    async fn claim(&self) -> Option<Lease> {
        trials::claim(&self.database.pool, None, Duration::MINUTE).await.unwrap()
    }

    async fn state(&self, version: VersionId) -> TrialState {
        trials::get(&self.database.pool, version).await.unwrap().unwrap().state
    }

    /// The outcome of a trial. It passes if `verdict` is `None`.
    fn outcome(&self, lease: Lease, verdict: Option<&str>) -> Outcome {
        Outcome {
            lease,
            worker: self.worker,
            verdict: verdict.map(str::to_owned),
            evidence: "evidence".to_owned(),
            log: String::new(),
            figures: json!({}),
            missing_program: None,
            warnings: vec!["warning".to_owned()],
            program: verdict.is_none().then_some([9; 32]),
        }
    }

    /// The versions that the next edition would play.
    async fn entered_versions(&self) -> Vec<VersionId> {
        let newest = versions::newest(&self.database.pool, self.cup).await.unwrap();
        newest.into_iter().map(|version| version.id).collect()
    }

    /// Whether a change waits for the next edition.
    async fn is_edition_due(&self) -> bool {
        self.database.number("SELECT count(DISTINCT tournament) FROM edition_triggers").await == 1
    }
}

/// A worker without the bot's interpreter is no fault of the bot's author.
#[tokio::test]
async fn a_worker_that_lacks_a_program_leaves_the_trial_to_one_that_has_it() {
    let fixture = Fixture::new().await;
    let pool = &fixture.database.pool;
    let queue = fixture.queue();
    set_time(pool, START).await;
    let other = fixture.database.worker("other").await;
    let claim =
        async |worker: WorkerId| trials::claim(pool, Some(worker), Duration::MINUTE).await.unwrap();
    let fail = async |lease: Lease, worker: WorkerId| {
        let failed = fixture.outcome(lease, Some("its program `node` is not installed"));
        let missing_program = Some("node".to_owned());
        let outcome = Outcome { worker, missing_program, ..failed };
        queue.end_trial(&outcome, b"", START).await.unwrap()
    };
    let announce = async |worker: WorkerId, programs: &[&str]| {
        let runtime = |program: &&str| Runtime {
            program: (*program).to_owned(),
            version: "18.19".to_owned(),
        };
        let runtimes: Vec<_> = programs.iter().map(runtime).collect();
        let mut db = pool.acquire().await.unwrap();
        worker_runtimes::set(&mut db, worker, &runtimes).await.unwrap();
    };
    for worker in [fixture.worker, other] {
        workers::connect(pool, worker, 1, START).await.unwrap();
    }
    announce(other, &["node", "perl"]).await;
    let version = fixture.submit(1).await;
    let lease = claim(fixture.worker).await.unwrap();
    assert_eq!(fail(lease, fixture.worker).await, ReportStatus::Accepted);
    assert_eq!(fixture.state(version).await, TrialState::Waiting);
    assert_eq!(claim(fixture.worker).await, None, "the other worker has the program");
    let lease = claim(other).await.unwrap();
    // The other worker lacks it as well, whatever it announced.
    assert_eq!(fail(lease, other).await, ReportStatus::Accepted);
    assert_eq!(fixture.state(version).await, TrialState::Failed);

    // Without another worker, the trial does not wait for one.
    let version = fixture.submit(2).await;
    let lease = claim(fixture.worker).await.unwrap();
    assert_eq!(fail(lease, fixture.worker).await, ReportStatus::Accepted);
    workers::connect(pool, other, 0, START).await.unwrap();
    let lease = claim(fixture.worker).await.unwrap();
    assert_eq!(fail(lease, fixture.worker).await, ReportStatus::Accepted);
    assert_eq!(fixture.state(version).await, TrialState::Failed);

    announce(other, &["perl"]).await;
    workers::connect(pool, other, 1, START).await.unwrap();
    let listed = worker_runtimes::list(pool, START).await.unwrap();
    let found: Vec<_> =
        listed.iter().map(|found| (found.program.as_str(), found.workers)).collect();
    assert_eq!(found, [("perl", 1)], "the last announcement counts");
    assert_eq!(worker_runtimes::connected(pool, START).await.unwrap(), 2);
}

#[tokio::test]
async fn a_version_enters_only_if_its_trial_passes() {
    let fixture = Fixture::new().await;
    let pool = &fixture.database.pool;
    let queue = fixture.queue();
    let first = fixture.submit(1).await;
    assert_eq!((fixture.entered_versions().await, fixture.is_edition_due().await), (vec![], false));
    let lease = fixture.claim().await.unwrap();
    assert_eq!((lease.version(), fixture.claim().await), (Some(first), None));
    let outcome = fixture.outcome(lease, None);
    let end = |outcome| {
        let queue = &queue;
        async move { queue.end_trial(&outcome, b"built", START).await.unwrap() }
    };
    assert_eq!(end(outcome.clone()).await, ReportStatus::Accepted);
    assert_eq!(end(outcome).await, ReportStatus::Duplicate);
    assert_eq!(
        (fixture.entered_versions().await, fixture.is_edition_due().await),
        (vec![first], true)
    );
    let entrant = EntrantInfo::of_version(pool, first).await.unwrap();
    assert_eq!((entrant.digest, entrant.program), (vec![1; 32], vec![9; 32]));
    assert_eq!(versions::bundle_piece(pool, &[9; 32], 0, 99).await.unwrap(), b"built");

    let second = fixture.submit(2).await;
    let lease = fixture.claim().await.unwrap();
    assert_eq!(end(fixture.outcome(lease, Some("it forfeits"))).await, ReportStatus::Accepted);
    assert_eq!(fixture.state(second).await, TrialState::Failed);
    assert_eq!(fixture.entered_versions().await, [first], "the former version is still entered");
    let trial = trials::get(pool, second).await.unwrap().unwrap();
    assert_eq!(trial.verdict.as_deref(), Some("it forfeits"));
    assert_eq!(trial.warnings, Some(vec!["warning".to_owned()]));
    // An outcome with an old lease has no effect.
    let third = fixture.submit(3).await;
    let old_lease = fixture.claim().await.unwrap();
    assert_eq!(queue.return_leases(None, &[old_lease]).await.unwrap(), [old_lease]);
    let lease = fixture.claim().await.unwrap();
    assert_eq!(lease.version(), Some(third));
    assert_eq!(end(fixture.outcome(old_lease, Some("late"))).await, ReportStatus::Late);
    assert_eq!(queue.renew_at(None, &[old_lease, lease], START).await.unwrap(), [lease]);
    // The web pages show the trial of an active lease.
    let details =
        lease_details::of_leases(pool, &[(fixture.worker, old_lease), (fixture.worker, lease)])
            .await
            .unwrap();
    let worker = fixture.worker;
    let tournament = "cup".to_owned();
    assert_eq!(
        details,
        [LeaseDetails { worker, tournament, work: LeasedWork::Trial("mine".to_owned(), 3) }]
    );
    let states = listed_versions(&fixture).await;
    assert_eq!(states, [(3, TrialState::Leased), (2, TrialState::Failed), (1, TrialState::Passed)]);
    let row = &bot_list::list(pool, fixture.cup, None).await.unwrap()[0];
    assert_eq!(row.owner.as_deref(), Some("ada"));
    let entered_version = row.entered.as_ref().unwrap();
    let pending_version = row.pending.as_ref().unwrap();
    assert_eq!((entered_version.version.id, pending_version.version.id), (first, third));
    assert_eq!(end(fixture.outcome(lease, None)).await, ReportStatus::Accepted);
    let row = &bot_list::list(pool, fixture.cup, Some(row.bot.id)).await.unwrap()[0];
    assert_eq!(row.entered.as_ref().map(|row| row.version.id), Some(third));
    assert_eq!(row.pending, None);
    assert_eq!(fixture.entered_versions().await, [third]);
}

#[tokio::test]
async fn a_bot_that_never_entered_takes_its_short_name_from_no_other() {
    let fixture = Fixture::new().await;
    let pool = &fixture.database.pool;
    let cup = fixture.cup;
    let queue = fixture.queue();
    let (other, _) = access::create(pool, Role::Player, "bob", START).await.unwrap();
    let ada = bots::create(pool, cup, Some(fixture.owner), "ada/nf", START).await.unwrap();
    let bob = bots::create(pool, cup, Some(other), "bob/nf", START).await.unwrap();
    let with_owners = async || {
        let mut names = bots::shown_with_owners(pool, cup).await.unwrap();
        names.sort_unstable();
        names
    };
    let end = async |verdict: Option<&str>| {
        let lease = fixture.claim().await.unwrap();
        let outcome = fixture.outcome(lease, verdict);
        let report = queue.end_trial(&outcome, b"built", START).await.unwrap();
        assert_eq!(report, ReportStatus::Accepted);
    };
    assert_eq!(with_owners().await, ["ada/nf", "bob/nf"], "neither has entered");
    fixture.submit_to(ada, 1).await;
    end(Some("it forfeits")).await;
    fixture.submit_to(bob, 2).await;
    end(None).await;
    assert_eq!(with_owners().await, ["ada/nf"]);
    let named = async |caller: Option<TokenId>| {
        let bots = bots::named(pool, cup, "nf", caller).await.unwrap();
        bots.into_iter().map(|named| (named.bot.id, named.has_entered)).collect::<Vec<_>>()
    };
    assert_eq!(named(None).await, [(bob, true), (ada, false)]);
    assert_eq!(named(Some(fixture.owner)).await, [(ada, false), (bob, true)], "the own bot first");

    // A withdrawn bot has entered, and keeps its name.
    assert!(bots::withdraw(pool, bob, START).await.unwrap());
    fixture.submit_to(ada, 3).await;
    end(None).await;
    assert_eq!(with_owners().await, ["ada/nf", "bob/nf"]);

    // A plain name is the whole name of a bot, which never entered here.
    let same = bots::create(pool, cup, Some(other), "bob/mine", START).await.unwrap();
    fixture.submit_to(same, 4).await;
    end(None).await;
    assert_eq!(with_owners().await, ["ada/nf", "bob/mine", "bob/nf", "mine"]);
}

#[tokio::test]
async fn a_failed_trial_keeps_a_plain_name_for_no_owner() {
    let fixture = Fixture::new().await;
    let pool = &fixture.database.pool;
    let queue = fixture.queue();
    let (olga, _) = access::create(pool, Role::Organiser, "olga", START).await.unwrap();
    let bot = bots::create(pool, fixture.cup, Some(fixture.owner), "zap", START).await.unwrap();
    let owner = async || bots::find(pool, fixture.cup, "zap").await.unwrap().unwrap().owner;
    let end = async |verdict: Option<&str>| {
        let lease = fixture.claim().await.unwrap();
        queue.end_trial(&fixture.outcome(lease, verdict), b"built", START).await.unwrap();
    };
    fixture.submit_to(bot, 1).await;
    assert!(!bots::take_over(pool, bot, olga).await.unwrap(), "its trial is still to come");
    end(Some("it forfeits")).await;
    assert!(bots::take_over(pool, bot, olga).await.unwrap());
    assert_eq!(owner().await, Some(olga.0));
    fixture.submit_to(bot, 2).await;
    end(None).await;
    assert!(!bots::take_over(pool, bot, fixture.owner).await.unwrap(), "it has entered");
    assert_eq!(owner().await, Some(olga.0));
    let house = bots::create(pool, fixture.cup, None, "house", START).await.unwrap();
    assert!(!bots::take_over(pool, house, olga).await.unwrap(), "house bots have no owner");
}

/// The numbers of the bot's versions, and the states of their trials.
async fn listed_versions(fixture: &Fixture) -> Vec<(i32, TrialState)> {
    let pool = &fixture.database.pool;
    let bot = bots::find(pool, fixture.cup, "mine").await.unwrap().unwrap();
    let versions = bot_list::versions(pool, bot.id).await.unwrap();
    versions.iter().map(|row| (row.version.number, row.state)).collect()
}

#[tokio::test]
async fn a_fault_never_fails_a_trial() {
    let fixture = Fixture::new().await;
    let pool = &fixture.database.pool;
    let queue = fixture.queue();
    let version = fixture.submit(1).await;
    let retry_policy = LeasePolicy::DEFAULT.retry_policy;
    let mut now = START;
    for fault in 1..=retry_policy.faults {
        set_time(pool, now).await;
        assert!(claimable::find(pool).await.unwrap().trial);
        let lease = trials::claim(pool, None, Duration::MINUTE).await.unwrap().unwrap();
        let failed = if fault == 2 {
            // The lease expires.
            now += Duration::MINUTE + Duration::SECOND;
            queue.expire_at(now).await.unwrap().failed
        } else {
            let failure = Failure {
                lease,
                by: None,
                kind: FaultKind::System,
                reason: "no room on the disk".to_owned(),
            };
            queue.fail_at(&[failure], now).await.unwrap()
        };
        let last = fault == retry_policy.faults;
        let expected = if last { LotState::Aside } else { LotState::Delayed };
        assert_eq!(failed.iter().map(|failed| failed.state).collect::<Vec<_>>(), [expected]);
        assert_eq!(fixture.claim().await, None, "the trial is delayed");
        assert!(!claimable::find(pool).await.unwrap().trial);
        now += retry_policy.max_delay;
    }
    assert_eq!(fixture.state(version).await, TrialState::Aside);
    let trial = trials::get(pool, version).await.unwrap().unwrap();
    assert_eq!(trial.verdict.as_deref(), Some("no room on the disk"));
    assert_eq!(fixture.entered_versions().await, []);
    assert_eq!(trials::pending(pool, fixture.owner).await.unwrap(), 0);
    assert!(trials::retry(pool, version).await.unwrap());
    assert!(!trials::retry(pool, version).await.unwrap(), "the trial is already pending");
    assert_eq!(fixture.claim().await.and_then(|lease| lease.version()), Some(version));
}

#[tokio::test]
async fn the_oldest_trial_comes_first_and_withdrawn_bots_get_none() {
    let fixture = Fixture::new().await;
    let pool = &fixture.database.pool;
    let first = fixture.submit(1).await;
    let second = fixture.submit(2).await;
    assert_eq!(trials::pending(pool, fixture.owner).await.unwrap(), 2);
    assert_eq!(
        (trials::ahead(pool, first).await.unwrap(), trials::ahead(pool, second).await.unwrap()),
        (0, 1)
    );
    let (dispatcher, allocator) = Dispatcher::new(fixture.queue());
    let allocator_task =
        tokio::spawn(allocator.run(std::future::pending(), |error| panic!("{error}")));
    for version in [first, second] {
        let task = dispatcher.next().await.unwrap();
        assert_eq!(task.lease().version(), Some(version));
        assert_eq!(task.into_work(), None);
    }
    allocator_task.abort();
    assert_eq!(
        trials::pending(pool, fixture.owner).await.unwrap(),
        2,
        "a leased trial is still pending"
    );
    fixture.submit(3).await;
    let bot = bots::find(pool, fixture.cup, "mine").await.unwrap().unwrap();
    bots::withdraw(pool, bot.id, START).await.unwrap();
    assert_eq!(
        (fixture.claim().await, trials::pending(pool, fixture.owner).await.unwrap()),
        (None, 0)
    );
    assert!(!claimable::find(pool).await.unwrap().trial);
    let state = tournaments::TournamentState::Closed;
    assert!(tournaments::end(pool, fixture.cup, state, START).await.unwrap());
    assert_eq!(fixture.claim().await, None);
}
