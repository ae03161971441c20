//! The files that bots leave in their directories for later matches.

use arbiter_proto::ids::{MatchNumber, TournamentId};
use sqlx::{FromRow, PgConnection, PgExecutor, Result};

use super::binary_copy::send;
use super::lots::LeasedLot;

/// The files that the bot in a seat left after a match.
#[derive(Clone, Copy, Debug)]
pub struct SavedState<'a> {
    /// The tournament of the match.
    pub tournament: TournamentId,
    /// The match.
    pub number: MatchNumber,
    /// The seat, from 1.
    pub seat: u8,
    /// A compressed tar archive.
    pub bytes: &'a [u8],
}

/// Inserts the files of seats.
///
/// # Errors
/// If files of one of the seats exist already, or the values are invalid.
pub async fn insert(connection: &mut PgConnection, states: &[SavedState<'_>]) -> Result<()> {
    let digests: Vec<_> =
        states.iter().map(|state| *blake3::hash(state.bytes).as_bytes()).collect();
    let statement = "COPY bot_state (number, tournament, seat, digest) FROM STDIN (FORMAT binary)";
    send(&mut *connection, statement, states.iter().zip(&digests), |(state, digest), rows| {
        rows.row(4)
            .int8(state.number.0)
            .int4(state.tournament.0)
            .int2(state.seat.into())
            .bytes(digest);
    })
    .await?;
    // The order by digest prevents deadlocks between transactions that store the same files.
    let mut snapshots: Vec<_> = digests
        .iter()
        .map(<[u8; 32]>::as_slice)
        .zip(states.iter().map(|state| state.bytes))
        .collect();
    snapshots.sort_unstable();
    snapshots.dedup();
    let (digests, bytes): (Vec<_>, Vec<_>) = snapshots.into_iter().unzip();
    let statement = "
        INSERT INTO snapshots (digest, bytes)
        SELECT u.digest, u.bytes
        FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS u (digest, bytes, place)
        WHERE NOT EXISTS (SELECT FROM snapshots s WHERE s.digest = u.digest)
        ORDER BY u.place ON CONFLICT (digest) DO NOTHING";
    sqlx::query(statement).bind(digests).bind(bytes).execute(connection).await.map(drop)
}

/// The initial files of a seat of a match.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct InitialState {
    /// The match.
    pub number: MatchNumber,
    /// The seat, from 1.
    pub seat: i32,
    /// A compressed tar archive.
    pub bytes: Vec<u8>,
}

/// The initial files of the seats of a lot of this tournament. Seats without files are left out.
pub async fn of_lot(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    lot: LeasedLot,
) -> Result<Vec<InitialState>> {
    // In the earlier match the bot may have had another seat.
    let statement = "
        SELECT m.number, from_seat.seat::int, s.bytes
        FROM matches m
        CROSS JOIN LATERAL unnest(m.seats, m.state_from) WITH ORDINALITY
            AS from_seat (entrant, number, seat)
        JOIN matches before ON before.tournament = $1 AND before.number = from_seat.number
        JOIN bot_state f ON f.tournament = $1 AND f.number = from_seat.number
            AND f.seat = array_position(before.seats, from_seat.entrant)
        JOIN snapshots s ON s.digest = f.digest
        WHERE m.tournament = $1 AND m.number >= $2 AND m.number < $2 + $3
            AND m.state_from IS NOT NULL";
    let first = MatchNumber::from(lot.lease.lot.number);
    let query = sqlx::query_as(statement).bind(tournament).bind(first).bind(lot.count);
    query.fetch_all(db).await
}

/// The files that the bot in a seat left after a match, as a compressed tar archive.
pub async fn find(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    number: MatchNumber,
    seat: u8,
) -> Result<Option<Vec<u8>>> {
    let statement = "
        SELECT s.bytes FROM bot_state f JOIN snapshots s USING (digest)
        WHERE f.tournament = $1 AND f.number = $2 AND f.seat = $3";
    let query = sqlx::query_scalar(statement).bind(tournament).bind(number);
    query.bind(i16::from(seat)).fetch_optional(db).await
}
