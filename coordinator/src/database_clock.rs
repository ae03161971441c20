//! The time of the database, as this process knows it.
//!
//! Several coordinators serve one database. The clocks of their hosts may differ by hours, or be
//! set while the coordinators run. So no decision uses the clock of a host. SQL statements use the
//! database's clock (`database_clock()`, `migrations/0001_baseline.sql`), and all other code uses
//! [`Clock`]. It reads the database's clock every few seconds. Between two readings it adds the
//! time that has passed on the monotonic clock, which is never set.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::{PgExecutor, PgPool, Result};
use time::OffsetDateTime;
use tokio::time::Instant;

/// How often the database's clock is read.
const READ_INTERVAL: Duration = Duration::from_secs(5);
/// A larger difference between two clocks is reported, because the logs of the two hosts cannot be
/// compared.
pub const MAX_SKEW: time::Duration = time::Duration::seconds(1);
/// A reading that took longer is not used: it is too inaccurate.
const MAX_READING_TIME: Duration = Duration::from_secs(1);

/// One moment, on the database's clock and on the monotonic clock of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// The time of the database.
    pub(crate) time: OffsetDateTime,
    /// The same moment on the monotonic clock, accurate to half the duration of the reading.
    pub(crate) instant: Instant,
}

impl Reading {
    /// The time of the database at another moment, unless its clock was set in between.
    fn time_at(&self, moment: Instant) -> OffsetDateTime {
        if moment >= self.instant {
            self.time + moment.duration_since(self.instant)
        } else {
            self.time - self.instant.duration_since(moment)
        }
    }

    /// By how much the database's clock was set between two readings.
    pub(crate) fn step_to(&self, later: &Self) -> time::Duration {
        later.time - self.time_at(later.instant)
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

    /// A clock for tests, which calls this function for the time.
    pub fn fixed(now: fn() -> OffsetDateTime) -> Self {
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
        let Source::Database(newest) = &self.0 else { return std::future::pending().await };
        loop {
            tokio::time::sleep(READ_INTERVAL).await;
            // While the database does not respond, the monotonic clock is used alone.
            let start = Instant::now();
            if let Ok(reading) = read(pool).await
                && start.elapsed() <= MAX_READING_TIME
            {
                *newest.lock().unwrap_or_else(PoisonError::into_inner) = reading;
            }
        }
    }
}

/// Reads the database's clock.
pub(crate) async fn read(db: impl PgExecutor<'_>) -> Result<Reading> {
    let start = Instant::now();
    let time = crate::db::now(db).await?;
    Ok(Reading { time, instant: start + start.elapsed() / 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_clock_differs_from_elapsed_time() {
        let first = Reading { time: OffsetDateTime::UNIX_EPOCH, instant: Instant::now() };
        let later = |step: time::Duration| Reading {
            time: first.time + time::Duration::seconds(7) + step,
            instant: first.instant + Duration::from_secs(7),
        };
        assert_eq!(first.step_to(&later(time::Duration::ZERO)), time::Duration::ZERO);
        assert_eq!(first.step_to(&later(time::Duration::HOUR)), time::Duration::HOUR);
        assert_eq!(first.step_to(&later(-time::Duration::HOUR)), -time::Duration::HOUR);
    }
}
