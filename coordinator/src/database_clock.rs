//! The time of the database, as this process knows it.
//!
//! Several coordinators serve one database, and the clocks of their hosts may differ by hours or be
//! set while they run. So no host's clock decides anything: SQL statements use the database's clock
//! (`database_clock()`, `migrations/0001_baseline.sql`), and all other code uses this one. It
//! reads the database's clock every few seconds. Between two readings it adds the time that the
//! monotonic clock shows, which is never set.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::{PgExecutor, PgPool, Result};
use time::OffsetDateTime;
use tokio::time::Instant;

/// How often the database's clock is read.
const READ_INTERVAL: Duration = Duration::from_secs(5);
/// A larger difference between clocks is reported: the logs of two hosts cannot be compared then.
pub const MAX_SKEW: time::Duration = time::Duration::seconds(1);
/// A reading that took longer is too inexact.
const MAX_READING_TIME: Duration = Duration::from_secs(1);

/// A moment on the database's clock and on this process's monotonic one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// The time of the database.
    pub(crate) at: OffsetDateTime,
    /// The same moment here, accurate to half the time that the reading took.
    pub(crate) read: Instant,
}

impl Reading {
    /// The time of the database at another moment, unless its clock was set in between.
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

/// The clock of the database.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    Database(Arc<Mutex<Reading>>),
    Fixed(fn() -> OffsetDateTime),
}

impl Clock {
    /// Reads the clock of a database. `Clock::follow` keeps it accurate.
    pub async fn of(pool: &PgPool) -> Result<Self> {
        let reading = read(pool).await?;
        let clock = Self(Source::Database(Arc::new(Mutex::new(reading))));
        let skew = clock.skew();
        if skew.abs() > MAX_SKEW {
            let ahead_s = skew.as_seconds_f64();
            tracing::warn!(ahead_s, "this host's clock differs from the database's, which is used");
        }
        Ok(clock)
    }

    /// A clock for tests.
    pub fn given(now: fn() -> OffsetDateTime) -> Self {
        Self(Source::Fixed(now))
    }

    /// The time of the database.
    pub fn now(&self) -> OffsetDateTime {
        match &self.0 {
            Source::Database(reading) => {
                let reading = *reading.lock().unwrap_or_else(PoisonError::into_inner);
                reading.time_at(Instant::now())
            }
            Source::Fixed(now) => now(),
        }
    }

    /// How far the clock of this host is ahead of the database's.
    pub fn skew(&self) -> time::Duration {
        OffsetDateTime::now_utc() - self.now()
    }

    /// Reads the database's clock repeatedly, without end.
    pub(crate) async fn follow(&self, pool: &PgPool) {
        let Source::Database(known) = &self.0 else { return std::future::pending().await };
        loop {
            tokio::time::sleep(READ_INTERVAL).await;
            // While the database does not respond, the monotonic clock is used alone.
            let began = Instant::now();
            if let Ok(reading) = read(pool).await
                && began.elapsed() <= MAX_READING_TIME
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
    fn a_clock_that_was_set_differs_from_time_that_passed() {
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
