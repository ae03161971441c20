//! The time of the database, as this process knows it.
//!
//! Several coordinators serve one database, and their hosts' clocks may differ by hours or be set
//! while they run. So no host's clock decides anything: statements that decide ask the database
//! (`database_clock()`, `migrations/0001_baseline.sql`), and whatever else needs the time asks
//! this clock. It takes a reading of the database's clock every few seconds, and in between counts
//! on with the monotonic clock, which is never set.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::{PgExecutor, PgPool, Result};
use time::OffsetDateTime;
use tokio::time::Instant;

/// How often the clock of the database is read.
const READ_EVERY: Duration = Duration::from_secs(5);
/// Clocks that differ by more are worth a word: logs of two hosts cannot be compared.
pub const MUCH: time::Duration = time::Duration::seconds(1);
/// A reading that took longer says too little.
const LONGEST_READING: Duration = Duration::from_secs(1);

/// A moment on the database's clock and on this process's monotonic one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// The time of the database.
    pub(crate) at: OffsetDateTime,
    /// The same moment here, to half the time that the reading took.
    pub(crate) read: Instant,
}

impl Reading {
    /// The time of the database at another moment, if its clock was not set in between.
    fn time_at(&self, moment: Instant) -> OffsetDateTime {
        if moment >= self.read {
            self.at + moment.duration_since(self.read)
        } else {
            self.at - self.read.duration_since(moment)
        }
    }

    /// By how much the database's clock was set between two readings.
    pub(crate) fn step_to(&self, later: &Self) -> time::Duration {
        later.at - self.time_at(later.read)
    }
}

/// Tells the time of the database.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    Database(Arc<Mutex<Reading>>),
    Given(fn() -> OffsetDateTime),
}

impl Clock {
    /// The clock of this database, as it is now; `Clock::follow` keeps it right.
    pub async fn of(pool: &PgPool) -> Result<Self> {
        let reading = read(pool).await?;
        let clock = Self(Source::Database(Arc::new(Mutex::new(reading))));
        let skew = clock.skew();
        if skew.abs() > MUCH {
            let ahead_s = skew.as_seconds_f64();
            tracing::warn!(ahead_s, "this host's clock is not the database's; that one decides");
        }
        Ok(clock)
    }

    /// A clock that a test sets.
    pub fn given(now: fn() -> OffsetDateTime) -> Self {
        Self(Source::Given(now))
    }

    /// The time of the database.
    pub fn now(&self) -> OffsetDateTime {
        match &self.0 {
            Source::Database(reading) => {
                let reading = *reading.lock().unwrap_or_else(PoisonError::into_inner);
                reading.time_at(Instant::now())
            }
            Source::Given(now) => now(),
        }
    }

    /// How far the clock of this host is ahead of the database's.
    pub fn skew(&self) -> time::Duration {
        OffsetDateTime::now_utc() - self.now()
    }

    /// Reads the database's clock again and again, for ever.
    pub(crate) async fn follow(&self, pool: &PgPool) {
        let Source::Database(known) = &self.0 else { return std::future::pending().await };
        loop {
            tokio::time::sleep(READ_EVERY).await;
            // Until the database answers again the monotonic clock counts on.
            let began = Instant::now();
            if let Ok(reading) = read(pool).await
                && began.elapsed() <= LONGEST_READING
            {
                *known.lock().unwrap_or_else(PoisonError::into_inner) = reading;
            }
        }
    }
}

/// Reads the database's clock.
pub(crate) async fn read(db: impl PgExecutor<'_>) -> Result<Reading> {
    let began = Instant::now();
    let at = crate::db::now(db).await?;
    Ok(Reading { at, read: began + began.elapsed() / 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_database_clock_is_told_from_the_time_that_passed() {
        let first = Reading { at: OffsetDateTime::UNIX_EPOCH, read: Instant::now() };
        let later = |set: time::Duration| Reading {
            at: first.at + time::Duration::seconds(7) + set,
            read: first.read + Duration::from_secs(7),
        };
        assert_eq!(first.step_to(&later(time::Duration::ZERO)), time::Duration::ZERO);
        assert_eq!(first.step_to(&later(time::Duration::HOUR)), time::Duration::HOUR);
        assert_eq!(first.step_to(&later(-time::Duration::HOUR)), -time::Duration::HOUR);
    }
}
