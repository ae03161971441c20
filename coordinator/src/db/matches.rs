//! The planned matches of an edition. Rows are never changed.

use arbiter_proto::ids::{EditionId, MatchNumber};
use arbiter_ranking::Entrant;
use serde_json::Value;
use sqlx::{FromRow, PgConnection, PgExecutor, Result};
use tokio_stream::StreamExt as _;

use super::binary_copy::{Row, Rows, stream};
use super::lots::LeasedLot;

/// A match as planned.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct Match {
    /// Its number in the edition.
    pub number: MatchNumber,
    /// The number from which its seed is derived. Matches with the same seed key have the same
    /// seed.
    pub seed_key: i64,
    /// The index of the board, from 0, if the tournament has several.
    pub board: Option<i16>,
    /// The entrants, seat 1 first.
    #[sqlx(try_from = "Vec<i32>")]
    pub seats: Seats,
    /// The points that each seat carries over from earlier matches of its episode. They are
    /// included in the first component of its score, and were counted in those matches.
    pub carried: Option<Vec<i64>>,
    /// For each seat the match whose files it starts with, if any. `None` if files do not pass from
    /// match to match.
    pub state_from: Option<Vec<Option<i64>>>,
    /// Parameters that differ from the tournament's.
    pub params: Option<Value>,
}

/// The entrants of a match, seat 1 first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seats(pub Vec<Entrant>);

impl From<Vec<i32>> for Seats {
    fn from(numbers: Vec<i32>) -> Self {
        Self(numbers.into_iter().map(Entrant).collect())
    }
}

impl Row for Match {
    const COPY: &'static str = "
        COPY matches (number, seed_key, edition, board, seats, carried, state_from, params)
        FROM STDIN (FORMAT binary)";

    fn write(&self, edition: EditionId, rows: &mut Rows) {
        rows.row(8).int8(self.number.0).int8(self.seed_key).int4(edition.0);
        match self.board {
            Some(board) => rows.int2(board),
            None => rows.null(),
        };
        let seats: Vec<_> = self.seats.0.iter().map(|entrant| entrant.0).collect();
        rows.int4s(&seats);
        match &self.carried {
            Some(carried) => rows.int8s(carried),
            None => rows.null(),
        };
        match &self.state_from {
            Some(matches) => rows.some_int8s(matches),
            None => rows.null(),
        };
        match &self.params {
            Some(params) => rows.jsonb(&params.to_string()),
            None => rows.null(),
        };
    }
}

/// Adds matches to the plan of an edition, and returns how many.
///
/// # Errors
/// If one exists already or is invalid.
pub async fn copy_in(
    connection: &mut PgConnection,
    edition: EditionId,
    matches: impl Iterator<Item = Match>,
) -> Result<u64> {
    stream(connection, edition, matches).await
}

/// The matches `first … first + count - 1`, in order.
pub async fn range(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    first: MatchNumber,
    count: i32,
) -> Result<Vec<Match>> {
    // The exclusive end must not overflow.
    let first = first.0.min(i64::MAX - i64::from(count));
    let statement = "
        SELECT number, seed_key, board, seats, carried, state_from, params FROM matches
        WHERE edition = $1 AND number >= $2 AND number < $2 + $3
        ORDER BY number";
    sqlx::query_as(statement).bind(edition).bind(first).bind(count).fetch_all(db).await
}

/// At most `limit` planned matches from the number `first` on, in order. With `only`, only matches
/// of this entrant.
pub async fn planned(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    first: MatchNumber,
    only: Option<Entrant>,
    limit: u32,
) -> Result<Vec<Match>> {
    let statement = "
        SELECT number, seed_key, board, seats, carried, state_from, params FROM matches
        WHERE edition = $1 AND number >= $2 AND ($3::int IS NULL OR $3 = ANY (seats))
        ORDER BY number LIMIT $4";
    let query = sqlx::query_as(statement).bind(edition).bind(first);
    query.bind(only.map(|entrant| entrant.0)).bind(i64::from(limit)).fetch_all(db).await
}

/// The number of matches of each entrant of an edition in each seat, seat 1 first, in the order of
/// the entrants.
pub async fn seat_counts(
    db: impl PgExecutor<'_>,
    edition: EditionId,
) -> Result<Vec<(Entrant, Vec<i64>)>> {
    let statement = "
        SELECT s.entrant, s.seat, count(*) FROM matches
        CROSS JOIN LATERAL unnest(seats) WITH ORDINALITY AS s (entrant, seat)
        WHERE edition = $1 GROUP BY 1, 2 ORDER BY 1, 2";
    let rows: Vec<(i32, i64, i64)> = sqlx::query_as(statement).bind(edition).fetch_all(db).await?;
    let seat_count = rows.iter().map(|(_, seat, _)| *seat).max().unwrap_or(0);
    let mut counts: Vec<(Entrant, Vec<i64>)> = Vec::new();
    for (entrant, seat, matches) in rows {
        if counts.last().is_none_or(|(last, _)| last.0 != entrant) {
            counts.push((Entrant(entrant), vec![0; usize::try_from(seat_count).unwrap_or(0)]));
        }
        let index = usize::try_from(seat - 1).unwrap_or(usize::MAX);
        if let Some(count) = counts.last_mut().and_then(|(_, seats)| seats.get_mut(index)) {
            *count = matches;
        }
    }
    Ok(counts)
}

/// Calls `visit` with the entrant numbers in the seats of each match of an edition, in order. Stops
/// at the first error of `visit`, and returns it.
pub async fn each_seats<E>(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    mut visit: impl FnMut(&[u16]) -> Result<(), E>,
) -> Result<Result<(), E>> {
    let statement = "SELECT seats FROM matches WHERE edition = $1 ORDER BY number";
    let mut rows = sqlx::query_scalar(statement).bind(edition).fetch(db);
    while let Some(seats) = rows.next().await {
        let seats: Vec<i32> = seats?;
        // `u16::MAX` is not the number of an entrant.
        let seats: Vec<_> =
            seats.into_iter().map(|seat| u16::try_from(seat).unwrap_or(u16::MAX)).collect();
        if let Err(error) = visit(&seats) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

/// The matches of leased lots, in the order of the lots.
pub async fn of_lots(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    lots: &[LeasedLot],
) -> Result<Vec<Match>> {
    let statement = "
        SELECT m.number, m.seed_key, m.board, m.seats, m.carried, m.state_from, m.params
        FROM unnest($2::bigint[], $3::int[]) WITH ORDINALITY AS lot (first_match, count, place)
        CROSS JOIN LATERAL (
            SELECT * FROM matches
            WHERE edition = $1 AND number >= lot.first_match AND number < lot.first_match + lot.count OFFSET 0
        ) AS m
        ORDER BY lot.place, m.number";
    let (firsts, counts): (Vec<_>, Vec<_>) =
        lots.iter().map(|lot| (lot.first_match, lot.count)).unzip();
    sqlx::query_as(statement).bind(edition).bind(firsts).bind(counts).fetch_all(db).await
}

/// The first match of an edition with a seat whose entrant does not exist.
pub async fn find_unknown_entrant(
    db: impl PgExecutor<'_>,
    edition: EditionId,
) -> Result<Option<MatchNumber>> {
    let statement = "
        SELECT min(number) FROM matches
        WHERE edition = $1
          AND (SELECT count(*) FROM entrants WHERE edition = $1) <= ANY (seats)";
    sqlx::query_scalar(statement).bind(edition).fetch_one(db).await
}
