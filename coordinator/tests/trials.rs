//! Trials in the database: leased and ended once, retried, set aside; a passed version enters.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod support;

use arbiter_coordinator::access::{self, Role};
use arbiter_coordinator::db::claimable;
use arbiter_coordinator::db::entrants::Named;
use arbiter_coordinator::db::lease_details::{self, Held, What};
use arbiter_coordinator::db::lots::LotState;
use arbiter_coordinator::db::trials::{self, Outcome, TrialState};
use arbiter_coordinator::db::{bot_list, bots, tournaments, versions};
use arbiter_coordinator::queue::{Dispatcher, Failure, LeasePolicy, Queue, ReportStatus};
use arbiter_games::gomoku;
use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{Lease, TokenId, TournamentId, VersionId, WorkerId};
use serde_json::json;
use support::test_clock::{AtTime as _, set_time};
use support::{Database, START};
use time::Duration;

/// A tournament with one bot, whose versions are tried.
struct Stage {
    database: Database,
    cup: TournamentId,
    owner: TokenId,
    worker: WorkerId,
}

impl Stage {
    async fn new() -> Self {
        let database = Database::new().await;
        let cup = database.tournament("cup", gomoku::game()).await;
        let made = access::create(&database.pool, Role::Player, "ada", START).await;
        let owner = made.unwrap().0;
        bots::create(&database.pool, cup, Some(owner), "mine", START).await.unwrap();
        let worker = database.worker("it").await;
        Self { database, cup, owner, worker }
    }

    fn queue(&self) -> Queue {
        self.database.queue()
    }

    /// A version that waits for its trial, submitted as a bundle of equal bytes.
    async fn submit(&self, byte: u8) -> VersionId {
        let pool = &self.database.pool;
        let digest = [byte; 32];
        versions::store_bundle(pool, &digest, &[byte]).await.unwrap();
        let bot = bots::find(pool, self.cup, "mine").await.unwrap().unwrap();
        let version = versions::submit(pool, bot.id, &digest, START).await.unwrap();
        trials::queue(pool, version).await.unwrap();
        version
    }

    async fn claim(&self) -> Option<Lease> {
        trials::claim(&self.database.pool, None, Duration::MINUTE).await.unwrap()
    }

    async fn state(&self, version: VersionId) -> TrialState {
        trials::get(&self.database.pool, version).await.unwrap().unwrap().state
    }

    fn outcome(&self, lease: Lease, verdict: Option<&str>) -> Outcome {
        Outcome {
            lease,
            worker: self.worker,
            verdict: verdict.map(str::to_owned),
            evidence: "evidence".to_owned(),
            log: String::new(),
            figures: json!({}),
            warnings: vec!["warning".to_owned()],
            program: verdict.is_none().then_some([9; 32]),
        }
    }

    /// The versions that would be played now.
    async fn entered(&self) -> Vec<VersionId> {
        let newest = versions::newest(&self.database.pool, self.cup).await.unwrap();
        newest.into_iter().map(|version| version.id).collect()
    }

    async fn is_due(&self) -> bool {
        self.database.number("SELECT count(DISTINCT tournament) FROM edition_triggers").await == 1
    }
}

#[tokio::test]
async fn a_version_enters_only_if_its_trial_passes() {
    let stage = Stage::new().await;
    let pool = &stage.database.pool;
    let queue = stage.queue();
    let first = stage.submit(1).await;
    assert_eq!((stage.entered().await, stage.is_due().await), (vec![], false));
    let lease = stage.claim().await.unwrap();
    assert_eq!((lease.version(), stage.claim().await), (Some(first), None));
    let outcome = stage.outcome(lease, None);
    let end = |outcome| {
        let queue = &queue;
        async move { queue.end_trial(&outcome, b"built", START).await.unwrap() }
    };
    assert_eq!(end(outcome.clone()).await, ReportStatus::Accepted);
    assert_eq!(end(outcome).await, ReportStatus::Duplicate);
    assert_eq!((stage.entered().await, stage.is_due().await), (vec![first], true));
    let named = Named::of_version(pool, first).await.unwrap();
    assert_eq!((named.digest, named.program), (vec![1; 32], vec![9; 32]));
    assert_eq!(versions::bundle_piece(pool, &[9; 32], 0, 99).await.unwrap(), b"built");

    let second = stage.submit(2).await;
    let lease = stage.claim().await.unwrap();
    assert_eq!(end(stage.outcome(lease, Some("it forfeits"))).await, ReportStatus::Accepted);
    assert_eq!(stage.state(second).await, TrialState::Failed);
    assert_eq!(stage.entered().await, [first], "its former version stays in play");
    let trial = trials::get(pool, second).await.unwrap().unwrap();
    assert_eq!(trial.verdict.as_deref(), Some("it forfeits"));
    assert_eq!(trial.warnings, Some(vec!["warning".to_owned()]));
    // A verdict that comes too late changes nothing.
    let third = stage.submit(3).await;
    let old = stage.claim().await.unwrap();
    assert_eq!(queue.return_leases(None, &[old]).await.unwrap(), [old]);
    let lease = stage.claim().await.unwrap();
    assert_eq!(lease.version(), Some(third));
    assert_eq!(end(stage.outcome(old, Some("late"))).await, ReportStatus::Late);
    assert_eq!(queue.renew_at(None, &[old, lease], START).await.unwrap(), [lease]);
    // People are shown what is behind a lease that holds.
    let held = lease_details::of_leases(pool, &[(stage.worker, old), (stage.worker, lease)])
        .await
        .unwrap();
    let worker = stage.worker;
    let tournament = "cup".to_owned();
    assert_eq!(held, [Held { worker, tournament, what: What::Trial("mine".to_owned(), 3) }]);
    let states = listed_versions(&stage).await;
    assert_eq!(states, [(3, TrialState::Leased), (2, TrialState::Failed), (1, TrialState::Passed)]);
    let listed = &bot_list::list(pool, stage.cup, None).await.unwrap()[0];
    assert_eq!(listed.owner.as_deref(), Some("ada"));
    let entered = listed.entered.as_ref().unwrap();
    let pending = listed.pending.as_ref().unwrap();
    assert_eq!((entered.version.id, pending.version.id), (first, third));
    assert_eq!(end(stage.outcome(lease, None)).await, ReportStatus::Accepted);
    let listed = &bot_list::list(pool, stage.cup, Some(listed.bot.id)).await.unwrap()[0];
    assert_eq!(listed.entered.as_ref().map(|tried| tried.version.id), Some(third));
    assert_eq!(listed.pending, None);
    assert_eq!(stage.entered().await, [third]);
}

/// The versions of the bot by number, with their states.
async fn listed_versions(stage: &Stage) -> Vec<(i32, TrialState)> {
    let pool = &stage.database.pool;
    let bot = bots::find(pool, stage.cup, "mine").await.unwrap().unwrap();
    let versions = bot_list::versions(pool, bot.id).await.unwrap();
    versions.iter().map(|tried| (tried.version.number, tried.state)).collect()
}

#[tokio::test]
async fn a_fault_never_fails_a_trial() {
    let stage = Stage::new().await;
    let pool = &stage.database.pool;
    let queue = stage.queue();
    let version = stage.submit(1).await;
    let retry_policy = LeasePolicy::DEFAULT.retry_policy;
    let mut now = START;
    for fault in 1..=retry_policy.faults {
        set_time(pool, now).await;
        assert!(claimable::find(pool).await.unwrap().trial);
        let lease = trials::claim(pool, None, Duration::MINUTE).await.unwrap().unwrap();
        let failed = if fault == 2 {
            // Nothing was heard of it.
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
        let due = if last { LotState::Aside } else { LotState::Delayed };
        assert_eq!(failed.iter().map(|failed| failed.state).collect::<Vec<_>>(), [due]);
        assert_eq!(stage.claim().await, None, "it rests");
        assert!(!claimable::find(pool).await.unwrap().trial);
        now += retry_policy.max_delay;
    }
    assert_eq!(stage.state(version).await, TrialState::Aside);
    let trial = trials::get(pool, version).await.unwrap().unwrap();
    assert_eq!(trial.verdict.as_deref(), Some("no room on the disk"));
    assert_eq!(stage.entered().await, []);
    assert_eq!(trials::pending(pool, stage.owner).await.unwrap(), 0);
    assert!(trials::retry(pool, version).await.unwrap());
    assert!(!trials::retry(pool, version).await.unwrap(), "it waits already");
    assert_eq!(stage.claim().await.and_then(|lease| lease.version()), Some(version));
}

#[tokio::test]
async fn the_oldest_trial_comes_first_and_cancelled_requests_get_none() {
    let stage = Stage::new().await;
    let pool = &stage.database.pool;
    let one = stage.submit(1).await;
    let two = stage.submit(2).await;
    assert_eq!(trials::pending(pool, stage.owner).await.unwrap(), 2);
    assert_eq!(
        (trials::ahead(pool, one).await.unwrap(), trials::ahead(pool, two).await.unwrap()),
        (0, 1)
    );
    let (dispatcher, allocator) = Dispatcher::new(stage.queue());
    let allocating = tokio::spawn(allocator.run(std::future::pending(), |error| panic!("{error}")));
    for version in [one, two] {
        let task = dispatcher.next().await.unwrap();
        assert_eq!(task.lease().version(), Some(version));
        assert_eq!(task.into_work(), None);
    }
    allocating.abort();
    assert_eq!(trials::pending(pool, stage.owner).await.unwrap(), 2, "being tried is not over");
    stage.submit(3).await;
    let bot = bots::find(pool, stage.cup, "mine").await.unwrap().unwrap();
    bots::withdraw(pool, bot.id, START).await.unwrap();
    assert_eq!((stage.claim().await, trials::pending(pool, stage.owner).await.unwrap()), (None, 0));
    assert!(!claimable::find(pool).await.unwrap().trial);
    let state = tournaments::TournamentState::Closed;
    assert!(tournaments::end(pool, stage.cup, state, START).await.unwrap());
    assert_eq!(stage.claim().await, None);
}
