//! The leader: of the coordinators of a database, the one that does what one alone need do. Leases
//! that ran out, results to be counted, editions to be planned and opened are its work; all of them
//! serve workers, clients and pages.
//!
//! # Theory of operation
//!
//! The leader is whoever holds an advisory lock of Postgres, in a session of its own. The lock lives
//! as long as the session: it is never handed back by a statement that could get lost, and nobody
//! has to find out whether a leader is still alive. Everybody else asks for it twice a second.
//!
//! A session ends when its process is killed (its socket closes), when its machine or network is
//! gone (the server's probes are not answered), and when nothing is said in it for `SILENCE`
//! (`idle_session_timeout`): a leader that was stopped, or swapped out, is none any more. The
//! leader says something every `BEAT`.
//!
//! It trusts its own lock for `TERM` after it *began* to say the last thing that was answered.
//! That is less than the silence after which the server ends the session, and the server's silence
//! begins later than ours. So by the time somebody else can have the lock, we do not believe any
//! more that we hold it. Where the server ends a session in time of peace, whoever waited for the
//! lock and gets it waits for a term before it begins. Only one that asks for the first time at that
//! very moment does not: a coordinator that starts alone leads at once, and the price is that two may
//! lead for a beat. The work is a future that is not polled without the belief in one's lock: what
//! wakes after a stop does not get as far as its next statement.
//!
//! # Why a former leader does no harm
//!
//! One statement of its may be on its way all the same, and plans are made on threads of their own,
//! which nobody can take back. Therefore the work does not depend on being done by one alone. Each
//! piece is a transaction that first locks the rows whose state it is about, and does nothing if
//! that state is no longer the one it wants to change:
//!
//! - a lease runs out by an update of a row that is still leased and overdue; whoever comes second
//!   finds it pending, or leased under another attempt;
//! - lots are counted by the transaction that moves them from reported to counted;
//! - an edition becomes complete by an update of a running one, and a round of episodes is added by
//!   whoever has locked the edition while its matches are all counted;
//! - an edition is opened by whoever has locked the tournament and still finds the changes that make
//!   one due, which the same transaction takes away.
//!
//! So two leaders at once would be a waste and not a mistake, as `tests/exactly_once.rs` shows. What
//! a leader that stopped in the middle of a transaction has locked is free when the server ends that
//! session too (`idle_in_transaction_session_timeout`).

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use sqlx::{Connection as _, Error, PgConnection, PgPool, Result};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::db;

/// How often it is looked whether there is a leader.
const LOOK: Duration = Duration::from_millis(500);
/// How often the leader says something.
const BEAT: Duration = Duration::from_millis(500);
/// How long it trusts its lock after that.
const TERM: Duration = Duration::from_secs(3);
/// After how long a silent leader is none any more.
const SILENCE: Duration = Duration::from_secs(5);
/// How long a connection may take to be made.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether this coordinator leads.
#[derive(Clone, Debug, Default)]
pub struct Leadership {
    /// Until when that is certain, if it does.
    until: Arc<Mutex<Option<Instant>>>,
}

impl Leadership {
    /// Whether it leads at this moment.
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

/// Has work done while this coordinator leads.
#[derive(Debug)]
pub struct Election {
    pool: PgPool,
    leadership: Leadership,
}

/// Why a term is over.
enum End {
    /// The connection broke, or nothing was answered in time.
    Lost(Error),
    /// The work has stopped by itself, which it never should.
    Idle,
}

impl Election {
    /// An election among the coordinators of a database; `leadership` shows how it stands.
    pub fn new(pool: PgPool, leadership: Leadership) -> Self {
        Self { pool, leadership }
    }

    /// Stands again and again, and has `work` done while it leads; it is dropped in the middle when
    /// that is over. It is told since when this coordinator has had its database without a break.
    pub async fn run<F>(self, work: impl Fn(Instant) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut awake = Instant::now();
        let mut told = false;
        loop {
            match self.stand().await {
                Ok((session, began)) => {
                    told = false;
                    tracing::info!("leads the coordinators of this database");
                    match self.lead(session, began, work(awake)).await {
                        End::Lost(error) => tracing::warn!(%error, "leads no more"),
                        End::Idle => tracing::error!("the work of the leader has ended by itself"),
                    }
                }
                Err(error) if !told => {
                    told = true;
                    tracing::warn!(%error, "cannot stand for leader; trying again");
                }
                Err(_) => {}
            }
            awake = Instant::now();
            sleep(LOOK).await;
        }
    }

    /// Waits until the lock is to be had. Gives the session that has it, and when that was asked
    /// for.
    async fn stand(&self) -> Result<(PgConnection, Instant)> {
        let options = self.pool.connect_options();
        let made = PgConnection::connect_with(&options);
        let mut session = in_time(Instant::now() + PATIENCE, made).await?;
        in_time(Instant::now() + PATIENCE, db::end_when_silent(&mut session, SILENCE)).await?;
        let mut asked = Instant::now();
        if !in_time(asked + TERM, db::try_to_lead(&mut session)).await? {
            loop {
                sleep(LOOK).await;
                if in_time(Instant::now() + TERM, db::try_to_lead(&mut session)).await? {
                    break;
                }
            }
            // The server may have ended the session of the one before without its knowledge.
            sleep(TERM).await;
            asked = Instant::now();
            in_time(asked + TERM, session.ping()).await?;
        }
        let ended = in_time(Instant::now() + TERM, db::end_openings(&mut session)).await?;
        if ended > 0 {
            tracing::warn!(ended, "ended what a former leader was opening");
        }
        Ok((session, asked))
    }

    /// Leads as long as the session lasts.
    async fn lead(
        &self,
        mut session: PgConnection,
        began: Instant,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> End {
        let mut until = began + TERM;
        self.leadership.set(Some(until));
        let mut working = JoinSet::new();
        working.spawn(while_leading(self.leadership.clone(), work));
        let end = loop {
            tokio::select! {
                _ = working.join_next() => {
                    let late = !self.leadership.holds();
                    break if late { End::Lost(silent()) } else { End::Idle };
                }
                () = sleep(BEAT) => {}
            }
            let said = Instant::now();
            match in_time(until, session.ping()).await {
                Ok(()) => until = said + TERM,
                Err(error) => break End::Lost(error),
            }
            self.leadership.set(Some(until));
        };
        // Nobody waits for the session to be closed in order: it would not be the first to know.
        self.leadership.set(None);
        working.shutdown().await;
        end
    }
}

/// Works as long as it is certain that we lead.
async fn while_leading(leadership: Leadership, work: impl Future<Output = ()>) {
    let mut work = pin!(work);
    poll_fn(
        |context| {
            if leadership.holds() { work.as_mut().poll(context) } else { Poll::Ready(()) }
        },
    )
    .await;
}

/// What the database answers until `deadline`.
async fn in_time<T>(deadline: Instant, answer: impl Future<Output = Result<T>>) -> Result<T> {
    timeout_at(deadline, answer).await.unwrap_or_else(|_| Err(silent()))
}

fn silent() -> Error {
    Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, "nothing was heard in time"))
}
