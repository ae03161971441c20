//! Leader election among the coordinators of a database. All of them serve workers, clients and
//! pages. The leader alone expires leases, counts results, and plans and opens editions.
//!
//! # Theory of operation
//!
//! The leader holds an advisory lock of Postgres in a separate session. The lock is released when
//! the session ends. So the leader need not release it, and other coordinators need not check
//! whether the leader is running. The others request the lock twice a second.
//!
//! A session ends when its process is killed (its socket closes), when its machine or network fails
//! (the server's keepalive probes get no reply), and after `SESSION_TIMEOUT` without a message
//! (`idle_session_timeout`). So a leader that was stopped or swapped out loses the lock. The leader
//! pings every `HEARTBEAT`.
//!
//! After each ping that succeeded, the leader relies on its lock for `TERM`, counted from when it
//! *sent* the ping. This is shorter than the timeout after which the server ends the session, and
//! the server starts counting later. So before another coordinator can get the lock, the old leader
//! stops. The server may also end a session earlier, when it restarts: a coordinator that waited
//! for the lock therefore waits for one more term before it starts. A coordinator whose first
//! request succeeds does not wait, so a single coordinator leads at once. The disadvantage is that
//! two coordinators may lead for one heartbeat. The leader's work is a future that is polled only
//! within the term: after a process was suspended it runs no further statement.
//!
//! # Why a former leader does no harm
//!
//! One of its statements may still be running, and planning threads cannot be cancelled. So the
//! work is correct even if two leaders do it. Each step is a transaction that first locks its rows,
//! and changes nothing if another transaction already did:
//!
//! - a lease expires by an update of a row that is still leased and overdue. A second leader finds
//!   the row pending, or leased under another attempt;
//! - lots are counted by the transaction that moves them from reported to counted;
//! - an edition becomes complete by an update of a running edition. A round of episodes is added
//!   under a lock on the edition while all its matches are counted;
//! - an edition is opened under a lock on the tournament, by the transaction that removes the
//!   changes which made it due.
//!
//! So two leaders waste work but do no harm. `tests/exactly_once.rs` tests this. Locks of a leader
//! that stopped within a transaction are released when the server ends that session
//! (`idle_in_transaction_session_timeout`).

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use sqlx::{Connection as _, Error, PgConnection, PgPool, Result};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::db;

/// How often other coordinators request the lock.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How often the leader pings the database.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// How long the leader relies on its lock after it sent a ping.
const TERM: Duration = Duration::from_secs(3);
/// The server ends the session of the leader after this time without a message.
const SESSION_TIMEOUT: Duration = Duration::from_secs(5);
/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether this coordinator is the leader.
#[derive(Clone, Debug, Default)]
pub struct Leadership {
    /// The end of the current term, if this is the leader.
    until: Arc<Mutex<Option<Instant>>>,
}

impl Leadership {
    /// Whether this coordinator is the leader now.
    pub fn holds(&self) -> bool {
        self.until().is_some_and(|until| Instant::now() < until)
    }

    fn until(&self) -> Option<Instant> {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, until: Option<Instant>) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}

/// Takes part in the leader election, and runs the leader's work.
#[derive(Debug)]
pub struct Election {
    pool: PgPool,
    leadership: Leadership,
}

/// Why a leader stopped.
enum End {
    /// The connection broke, or a response was late.
    Lost(Error),
    /// The work ended, which should never happen.
    WorkEnded,
}

impl Election {
    /// An election among the coordinators of a database. `leadership` is kept up to date.
    pub fn new(pool: PgPool, leadership: Leadership) -> Self {
        Self { pool, leadership }
    }

    /// Runs `work` while this coordinator is the leader, and drops it when the leadership is lost.
    /// The argument is a time. Since that time this coordinator was connected to the database
    /// without a break.
    pub async fn run<F>(self, work: impl Fn(Instant) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut connected_since = Instant::now();
        let mut has_failed = false;
        loop {
            match self.acquire_lock().await {
                Ok((session, requested_at)) => {
                    has_failed = false;
                    tracing::info!("became the leader");
                    match self.lead(session, requested_at, work(connected_since)).await {
                        End::Lost(error) => tracing::warn!(%error, "lost leadership"),
                        End::WorkEnded => tracing::error!("the leader's work ended unexpectedly"),
                    }
                }
                Err(error) if !has_failed => {
                    has_failed = true;
                    tracing::warn!(%error, "cannot take part in the leader election; retrying");
                }
                Err(_) => {}
            }
            connected_since = Instant::now();
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits for the lock. Returns the session that holds it, and when the lock was requested.
    async fn acquire_lock(&self) -> Result<(PgConnection, Instant)> {
        let options = self.pool.connect_options();
        let connecting = PgConnection::connect_with(&options);
        let mut session = in_time(Instant::now() + CONNECT_TIMEOUT, connecting).await?;
        let set_timeout = db::limit_idle_time(&mut session, SESSION_TIMEOUT);
        in_time(Instant::now() + CONNECT_TIMEOUT, set_timeout).await?;
        let mut requested_at = Instant::now();
        if !in_time(requested_at + TERM, db::try_lock_leadership(&mut session)).await? {
            loop {
                sleep(POLL_INTERVAL).await;
                if in_time(Instant::now() + TERM, db::try_lock_leadership(&mut session)).await? {
                    break;
                }
            }
            // The server may have ended the old leader's session, and perhaps the old leader does
            // not know this yet.
            sleep(TERM).await;
            requested_at = Instant::now();
            in_time(requested_at + TERM, session.ping()).await?;
        }
        let ended = in_time(Instant::now() + TERM, db::end_openings(&mut session)).await?;
        if ended > 0 {
            tracing::warn!(ended, "cancelled edition openings of the former leader");
        }
        Ok((session, requested_at))
    }

    /// Leads until the session ends.
    async fn lead(
        &self,
        mut session: PgConnection,
        requested_at: Instant,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> End {
        let mut until = requested_at + TERM;
        self.leadership.set(Some(until));
        let mut working = JoinSet::new();
        working.spawn(while_leading(self.leadership.clone(), work));
        let end = loop {
            tokio::select! {
                _ = working.join_next() => {
                    let is_over = !self.leadership.holds();
                    break if is_over { End::Lost(timed_out()) } else { End::WorkEnded };
                }
                () = sleep(HEARTBEAT) => {}
            }
            let sent_at = Instant::now();
            match in_time(until, session.ping()).await {
                Ok(()) => until = sent_at + TERM,
                Err(error) => break End::Lost(error),
            }
            self.leadership.set(Some(until));
        };
        // The session is dropped without a clean close, which could take long.
        self.leadership.set(None);
        working.shutdown().await;
        end
    }
}

/// Polls the work only while this coordinator is certainly the leader.
async fn while_leading(leadership: Leadership, work: impl Future<Output = ()>) {
    let mut work = pin!(work);
    poll_fn(
        |context| {
            if leadership.holds() { work.as_mut().poll(context) } else { Poll::Ready(()) }
        },
    )
    .await;
}

/// Waits for the response of the database. Returns an error after `deadline`.
async fn in_time<T>(deadline: Instant, response: impl Future<Output = Result<T>>) -> Result<T> {
    timeout_at(deadline, response).await.unwrap_or_else(|_| Err(timed_out()))
}

fn timed_out() -> Error {
    Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, "the database did not respond"))
}
