//! One coordinator leads at a time. If it is lost, another one leads.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arbiter_coordinator::db;
use arbiter_coordinator::leader_election::{Election, Leadership};
use sqlx::{Connection as _, PgConnection, PgPool};
use support::{Database, until};
use tokio::task::{AbortHandle, JoinSet};

/// Counts of leadership terms.
#[derive(Clone, Debug, Default)]
struct Terms {
    /// The terms that have not ended.
    open: Arc<AtomicUsize>,
    /// All terms.
    begun: Arc<AtomicUsize>,
}

/// A term, which ends when its work is dropped.
struct Term(Terms);

impl Terms {
    fn begin(&self) -> Term {
        assert_eq!(self.open.fetch_add(1, Ordering::SeqCst), 0, "there is a leader already");
        self.begun.fetch_add(1, Ordering::SeqCst);
        Term(self.clone())
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A coordinator that does nothing but stand for election.
struct Candidate {
    leadership: Leadership,
    running: AbortHandle,
}

impl Candidate {
    async fn stand(database: &Database, terms: &Terms, tasks: &mut JoinSet<()>) -> Self {
        let pool: PgPool = db::connect(database.options(), 2).await.unwrap();
        let leadership = Leadership::default();
        let election = Election::new(pool, leadership.clone());
        let terms = terms.clone();
        let running = tasks.spawn(election.run(move |_| {
            let terms = terms.clone();
            async move {
                let _term = terms.begin();
                std::future::pending::<()>().await;
            }
        }));
        Self { leadership, running }
    }
}

/// Waits until `candidates` sessions have tried to lead. A candidate that tries for the first time
/// does not wait for the term of a leader whose session ended a moment ago.
async fn until_all_stand(database: &Database, candidates: i64) {
    let standing = "
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
            AND (query LIKE '%pg_try_advisory_lock%' OR query LIKE '%pg_terminate_backend(%')
            AND state = 'idle'";
    until("all stand", async || database.number(standing).await == candidates).await;
}

/// The index of the leader. Panics if there are two.
fn leader(candidates: &[Candidate]) -> Option<usize> {
    let leads = |candidate: &Candidate| candidate.leadership.holds();
    let leaders: Vec<_> = (0..candidates.len()).filter(|n| leads(&candidates[*n])).collect();
    assert!(leaders.len() <= 1, "{leaders:?} lead at the same time");
    leaders.first().copied()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_coordinator_leads_after_the_leader_is_lost() {
    let database = Database::new().await;
    let terms = Terms::default();
    let mut tasks = JoinSet::new();
    let mut candidates = Vec::new();
    for _ in 0..3 {
        candidates.push(Candidate::stand(&database, &terms, &mut tasks).await);
    }
    until("a candidate leads", async || leader(&candidates).is_some()).await;
    // Its session is ended: by the server, by the network, all the same.
    for term in 2..5 {
        until_all_stand(&database, 3).await;
        let ended = "
            SELECT count(pg_terminate_backend(pid)) FROM pg_locks
            WHERE locktype = 'advisory' AND granted
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        assert_eq!(database.number(ended).await, 1);
        until("another term begins", async || terms.begun() == term).await;
        until("a candidate leads", async || leader(&candidates).is_some()).await;
    }
    // It ends in the middle of its work.
    until_all_stand(&database, 3).await;
    let gone = leader(&candidates).unwrap();
    candidates.remove(gone).running.abort();
    until("another term begins", async || terms.begun() == 5).await;
    until("another candidate leads", async || leader(&candidates).is_some()).await;
    assert_eq!(terms.open.load(Ordering::SeqCst), 1);
    tasks.shutdown().await;
    // What a dropped election had running is dropped by the runtime, in its own time.
    until("all terms end", async || terms.open.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_leader_loses_its_session() {
    let database = Database::new().await;
    let mut asleep = PgConnection::connect_with(&database.options()).await.unwrap();
    db::end_when_silent(&mut asleep, Duration::from_secs(2)).await.unwrap();
    assert!(db::try_to_lead(&mut asleep).await.unwrap());
    let terms = Terms::default();
    let mut tasks = JoinSet::new();
    let candidate = Candidate::stand(&database, &terms, &mut tasks).await;
    until("another candidate leads", async || candidate.leadership.holds()).await;
    assert!(asleep.ping().await.is_err(), "its session is over");
    tasks.shutdown().await;
}
