//! A database clock that a test controls. The test stops the clock at a time, or sets its offset
//! from the real time.

use arbiter_coordinator::db::editions;
use arbiter_coordinator::queue::{Expired, FailedLease, Failure, LeasedLot, Part, Queue};
use arbiter_proto::ids::{Lease, TournamentId, WorkerId};
use sqlx::{Error, PgPool};
use time::{Duration, OffsetDateTime};

/// The statements that replace the clock of a database with the test clock.
pub(crate) const INSTALL: &str = "
    CREATE TABLE test_clock (stopped timestamptz, ahead interval NOT NULL);
    INSERT INTO test_clock VALUES (NULL, '0');
    CREATE OR REPLACE FUNCTION database_clock() RETURNS timestamptz LANGUAGE sql VOLATILE
        AS 'SELECT coalesce(stopped, clock_timestamp() + ahead) FROM test_clock'";

/// Stops the clock at this time.
pub(crate) async fn set_time(pool: &PgPool, at: OffsetDateTime) {
    let statement = "UPDATE test_clock SET stopped = $1 WHERE stopped IS DISTINCT FROM $1";
    sqlx::query(statement).bind(at).execute(pool).await.unwrap();
}

/// Lets the clock run at this offset from the real time. A positive offset is in the future.
pub(crate) async fn set_offset(pool: &PgPool, offset: Duration) {
    let statement = "UPDATE test_clock SET stopped = NULL, ahead = $1";
    sqlx::query(statement).bind(offset).execute(pool).await.unwrap();
}

/// Operations of a queue at a time that the test sets.
pub(crate) trait AtTime {
    async fn lease_at(
        &self,
        tournament: TournamentId,
        limit: usize,
        at: OffsetDateTime,
    ) -> Result<Vec<LeasedLot>, Error>;
    async fn lease_to_at(
        &self,
        tournament: TournamentId,
        holders: &[Option<WorkerId>],
        at: OffsetDateTime,
    ) -> Result<Vec<LeasedLot>, Error>;
    async fn renew_at(
        &self,
        worker: Option<WorkerId>,
        leases: &[Lease],
        at: OffsetDateTime,
    ) -> Result<Vec<Lease>, Error>;
    async fn fail_at(
        &self,
        failures: &[Failure],
        at: OffsetDateTime,
    ) -> Result<Vec<FailedLease>, Error>;
    async fn expire_at(&self, at: OffsetDateTime) -> Result<Expired, Error>;
}

impl AtTime for Queue {
    async fn lease_at(
        &self,
        tournament: TournamentId,
        limit: usize,
        at: OffsetDateTime,
    ) -> Result<Vec<LeasedLot>, Error> {
        set_time(self.pool(), at).await;
        self.lease(tournament, limit).await
    }

    async fn lease_to_at(
        &self,
        tournament: TournamentId,
        holders: &[Option<WorkerId>],
        at: OffsetDateTime,
    ) -> Result<Vec<LeasedLot>, Error> {
        set_time(self.pool(), at).await;
        self.lease_to(tournament, holders).await
    }

    async fn renew_at(
        &self,
        worker: Option<WorkerId>,
        leases: &[Lease],
        at: OffsetDateTime,
    ) -> Result<Vec<Lease>, Error> {
        set_time(self.pool(), at).await;
        self.renew(worker, leases).await
    }

    async fn fail_at(
        &self,
        failures: &[Failure],
        at: OffsetDateTime,
    ) -> Result<Vec<FailedLease>, Error> {
        set_time(self.pool(), at).await;
        self.fail(failures).await
    }

    async fn expire_at(&self, at: OffsetDateTime) -> Result<Expired, Error> {
        set_time(self.pool(), at).await;
        let mut expired = Expired::default();
        let parts = editions::needing_maintenance(self.pool()).await?.into_iter();
        let tournaments = parts.filter(|due| due.expires).map(|due| Part::Tournament(due.id));
        for part in tournaments.chain([Part::Trials, Part::ShadowMatches]) {
            let Expired { failed, resumed } = self.expire_part(part).await?;
            expired.failed.extend(failed);
            expired.resumed += resumed;
        }
        Ok(expired)
    }
}
