//! At most one coordinator is the leader. If the leader is lost, another coordinator becomes
//! leader.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arbiter_coordinator::db;
use arbiter_coordinator::leader_election::{Election, Leadership};
use sqlx::{Connection as _, PgConnection, PgPool};
use support::{Database, wait_until};
use tokio::task::{AbortHandle, JoinSet};

/// Counts of leadership terms.
#[derive(Clone, Debug, Default)]
struct Terms {
    /// Number of terms that have not ended.
    open: Arc<AtomicUsize>,
    /// Number of all terms.
    total: Arc<AtomicUsize>,
}

/// A leadership term. It ends when this value is dropped.
struct Term(Terms);

impl Terms {
    fn begin(&self) -> Term {
        assert_eq!(self.open.fetch_add(1, Ordering::SeqCst), 0, "two leaders at the same time");
        self.total.fetch_add(1, Ordering::SeqCst);
        Term(self.clone())
    }

    fn total(&self) -> usize {
        self.total.load(Ordering::SeqCst)
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A coordinator that only takes part in the election.
struct Candidate {
    leadership: Leadership,
    task: AbortHandle,
}

impl Candidate {
    async fn start(database: &Database, terms: &Terms, tasks: &mut JoinSet<()>) -> Self {
        let pool: PgPool = db::connect(database.options(), 2).await.unwrap();
        let leadership = Leadership::default();
        let election = Election::new(pool, leadership.clone());
        let terms = terms.clone();
        let task = tasks.spawn(election.run(move |_| {
            let terms = terms.clone();
            async move {
                let _term = terms.begin();
                std::future::pending::<()>().await;
            }
        }));
        Self { leadership, task }
    }
}

/// Waits until `candidates` sessions have tried to become leader. Without this wait, a late
/// candidate could become leader before the term of a leader that was just lost has ended.
async fn wait_for_candidates(database: &Database, candidates: i64) {
    let statement = "
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
            AND (query LIKE '%pg_try_advisory_lock%' OR query LIKE '%pg_terminate_backend(%')
            AND state = 'idle'";
    wait_until("all candidates have tried to become leader", async || {
        database.number(statement).await == candidates
    })
    .await;
}

/// The index of the leader. Panics if there are two.
fn leader(candidates: &[Candidate]) -> Option<usize> {
    let is_leader = |candidate: &Candidate| candidate.leadership.holds();
    let leaders: Vec<_> =
        (0..candidates.len()).filter(|index| is_leader(&candidates[*index])).collect();
    assert!(leaders.len() <= 1, "two leaders at the same time: {leaders:?}");
    leaders.first().copied()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_coordinator_becomes_leader_if_the_leader_is_lost() {
    let database = Database::new().await;
    let terms = Terms::default();
    let mut tasks = JoinSet::new();
    let mut candidates = Vec::new();
    for _ in 0..3 {
        candidates.push(Candidate::start(&database, &terms, &mut tasks).await);
    }
    wait_until("a candidate is leader", async || leader(&candidates).is_some()).await;
    // The server ends the leader's session.
    for term in 2..5 {
        wait_for_candidates(&database, 3).await;
        let end_session = "
            SELECT count(pg_terminate_backend(pid)) FROM pg_locks
            WHERE locktype = 'advisory' AND granted
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        assert_eq!(database.number(end_session).await, 1);
        wait_until("another term begins", async || terms.total() == term).await;
        wait_until("a candidate is leader", async || leader(&candidates).is_some()).await;
    }
    // The leader's task is aborted.
    wait_for_candidates(&database, 3).await;
    let lost = leader(&candidates).unwrap();
    candidates.remove(lost).task.abort();
    wait_until("another term begins", async || terms.total() == 5).await;
    wait_until("another candidate is leader", async || leader(&candidates).is_some()).await;
    assert_eq!(terms.open.load(Ordering::SeqCst), 1);
    tasks.shutdown().await;
    // The runtime drops the task of the aborted election later.
    wait_until("all terms end", async || terms.open.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_leader_loses_its_session() {
    let database = Database::new().await;
    let mut silent = PgConnection::connect_with(&database.options()).await.unwrap();
    db::limit_idle_time(&mut silent, Duration::from_secs(2)).await.unwrap();
    assert!(db::try_lock_leadership(&mut silent).await.unwrap());
    let terms = Terms::default();
    let mut tasks = JoinSet::new();
    let candidate = Candidate::start(&database, &terms, &mut tasks).await;
    wait_until("another candidate is leader", async || candidate.leadership.holds()).await;
    assert!(silent.ping().await.is_err(), "the session of the silent leader still works");
    tasks.shutdown().await;
}
