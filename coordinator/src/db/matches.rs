//! The matches of tournaments, as planned. Each is stored once, for all editions that need it.

use std::fmt::{self, Write as _};

use arbiter_proto::ids::{MatchNumber, TournamentId};
use arbiter_ranking::Entrant;
use serde_json::Value;
use sqlx::{FromRow, PgConnection, PgExecutor, Result};
use tokio_stream::StreamExt as _;

use super::binary_copy::{Row, Rows, stream};
use super::editions::{EditionScope, members};
use super::lots::LeasedLot;
use super::partitions;

/// A match as planned.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct Match {
    /// Its number in the tournament.
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

/// What makes a match the one that it is, among those of a tournament with the same rules and seed.
/// If bots leave files, it also matters with which files it begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MatchKey {
    seed_key: i64,
    board: Option<i16>,
    seats: Seats,
    carried: Option<Vec<i64>>,
    params: Option<String>,
}

impl Match {
    /// Its key.
    pub fn key(&self) -> MatchKey {
        MatchKey {
            seed_key: self.seed_key,
            board: self.board,
            seats: self.seats.clone(),
            carried: self.carried.clone(),
            params: self.params.as_ref().map(ToString::to_string),
        }
    }

    /// Whether two matches have the same key.
    pub fn has_key_of(&self, other: &Self) -> bool {
        self.seed_key == other.seed_key
            && self.seats == other.seats
            && self.board == other.board
            && self.carried == other.carried
            && self.params == other.params
    }
}

/// A stored match that an edition may need again.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct StoredMatch {
    /// The match.
    #[sqlx(flatten)]
    pub planned: Match,
    /// Whether it has a result.
    pub is_played: bool,
    /// Whether the result was added to standings.
    pub is_counted: bool,
}

/// The entrants of a match, seat 1 first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seats(pub Vec<Entrant>);

/// The seats as Postgres writes an array.
impl fmt::Display for Seats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, entrant) in self.0.iter().enumerate() {
            write!(f, "{}{}", if place == 0 { '{' } else { ',' }, entrant.0)?;
        }
        f.write_char('}')
    }
}

impl From<Vec<i32>> for Seats {
    fn from(numbers: Vec<i32>) -> Self {
        Self(numbers.into_iter().map(Entrant).collect())
    }
}

impl Row for Match {
    const COLUMNS: &'static str =
        "number, seed_key, tournament, board, seats, carried, state_from, params";

    fn write(&self, tournament: TournamentId, rows: &mut Rows) {
        rows.row(8).int8(self.number.0).int8(self.seed_key).int4(tournament.0);
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

/// Adds matches to a tournament, and returns how many. The first ones can be read after
/// [`partitions::attach_matches`].
///
/// # Errors
/// If one exists already or is invalid.
pub async fn copy_in(
    connection: &mut PgConnection,
    tournament: TournamentId,
    matches: impl Iterator<Item = Match>,
) -> Result<u64> {
    let is_first = partitions::create_matches(&mut *connection, tournament).await?;
    let table = if is_first { partitions::matches_of(tournament) } else { "matches".to_owned() };
    let copied = stream(&mut *connection, &table, tournament, matches).await?;
    if is_first {
        partitions::index_matches(connection, tournament).await?;
    }
    Ok(copied)
}

/// The matches `first … first + count - 1` of a tournament, in order.
pub async fn range(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    first: MatchNumber,
    count: i32,
) -> Result<Vec<Match>> {
    // The exclusive end must not overflow.
    let first = first.0.min(i64::MAX - i64::from(count));
    let statement = "
        SELECT number, seed_key, board, seats, carried, state_from, params FROM matches
        WHERE tournament = $1 AND number >= $2 AND number < $2 + $3
        ORDER BY number";
    sqlx::query_as(statement).bind(tournament).bind(first).bind(count).fetch_all(db).await
}

/// At most `limit` planned matches of an edition from the number `first` on, in order. With `only`,
/// only matches of this entrant.
pub async fn planned(
    db: impl PgExecutor<'_>,
    edition: EditionScope,
    first: MatchNumber,
    only: Option<Entrant>,
    limit: u32,
) -> Result<Vec<Match>> {
    let statement = concat!(
        "SELECT m.number, m.seed_key, m.board, m.seats, m.carried, m.state_from, m.params
        FROM matches m WHERE ",
        members!("m"),
        " AND m.number >= $4 AND ($5::int IS NULL OR $5 = ANY (m.seats)) ORDER BY m.number LIMIT $6"
    );
    let query = sqlx::query_as_with(statement, edition.arguments())
        .bind(first.0.max(edition.from))
        .bind(only.map(|entrant| entrant.0));
    query.bind(i64::from(limit)).fetch_all(db).await
}

/// Matches `m` with the seed key and the seats of planned ones `u`, by the index of both
/// ([`partitions::index_matches`]). `$1` is the tournament, and the arguments are the parameters
/// with the arrays of [`keys_of`]. Other boards, carried points and parameters have to be left out
/// by the caller.
macro_rules! with_keys {
    ($seed_keys:literal, $seats:literal) => {
        concat!(
            "unnest(",
            $seed_keys,
            "::bigint[], ",
            $seats,
            "::text[]) AS u (seed_key, seats)
        CROSS JOIN LATERAL (
            SELECT * FROM matches
            WHERE tournament = $1 AND seed_key = u.seed_key AND seats = u.seats::int[]
              AND hash_array_extended(seats, seed_key)
                = hash_array_extended(u.seats::int[], u.seed_key) OFFSET 0
        ) AS m"
        )
    };
}

/// The seed keys and the seats of matches, each pair once.
fn keys_of(planned: &[Match]) -> (Vec<i64>, Vec<String>) {
    let mut keys: Vec<_> = planned.iter().map(|row| (row.seed_key, &row.seats)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter().map(|(seed_key, seats)| (seed_key, seats.to_string())).unzip()
}

/// The matches of an edition with the seed keys and the seats of these.
pub async fn same_seats(
    db: impl PgExecutor<'_>,
    edition: EditionScope,
    planned: &[Match],
) -> Result<Vec<Match>> {
    let statement = concat!(
        "SELECT m.number, m.seed_key, m.board, m.seats, m.carried, m.state_from, m.params FROM ",
        with_keys!("$4", "$5"),
        " WHERE ",
        members!("m")
    );
    let (seed_keys, seats) = keys_of(planned);
    sqlx::query_as_with(statement, edition.arguments())
        .bind(seed_keys)
        .bind(seats)
        .fetch_all(db)
        .await
}

/// The stored matches with the seed keys and the seats of these that are not void and have the
/// rules and the seed of an edition. Matches that begin with files are left out.
pub async fn find_stored(
    db: impl PgExecutor<'_>,
    edition: EditionScope,
    planned: &[Match],
) -> Result<Vec<StoredMatch>> {
    let statement = concat!(
        "WITH comparable AS MATERIALIZED (
            SELECT e.first_match, e.end_match FROM editions this
            JOIN tournaments t ON t.id = this.tournament
            JOIN editions e ON e.tournament = this.tournament
                AND e.rules = this.rules AND same_seed(e.number, this.number, t.beacon_from)
            WHERE this.id = $2 AND e.number <= this.number AND e.end_match > e.first_match
        )
        SELECT m.number, m.seed_key, m.board, m.seats, m.carried, m.state_from, m.params,
            r.number IS NOT NULL AS is_played, coalesce(lot.state = 'counted', false) AS is_counted
        FROM ",
        with_keys!("$3", "$4"),
        " LEFT JOIN LATERAL (
            SELECT number FROM results WHERE tournament = $1 AND number = m.number
        ) AS r ON true
        LEFT JOIN LATERAL (
            SELECT state FROM lots WHERE tournament = $1 AND number <= m.number
            ORDER BY number DESC LIMIT 1
        ) AS lot ON r.number IS NOT NULL
        WHERE m.state_from IS NULL
          AND EXISTS (
              SELECT FROM comparable c WHERE c.first_match <= m.number AND m.number < c.end_match)
          AND NOT EXISTS (
              SELECT FROM invalidated_matches v WHERE v.tournament = $1 AND v.number = m.number)
        ORDER BY m.number"
    );
    let (seed_keys, seats) = keys_of(planned);
    let query = sqlx::query_as(statement).bind(edition.tournament).bind(edition.id);
    query.bind(seed_keys).bind(seats).fetch_all(db).await
}

/// These matches of a tournament, in order.
pub async fn of_numbers(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    numbers: &[MatchNumber],
) -> Result<Vec<Match>> {
    let statement = "
        SELECT number, seed_key, board, seats, carried, state_from, params FROM matches
        WHERE tournament = $1 AND number = ANY ($2) ORDER BY number";
    sqlx::query_as(statement).bind(tournament).bind(numbers).fetch_all(db).await
}

/// The number of matches of each entrant of an edition in each seat, seat 1 first, in the order of
/// the entrants.
pub async fn seat_counts(
    db: impl PgExecutor<'_>,
    edition: EditionScope,
) -> Result<Vec<(Entrant, Vec<i64>)>> {
    let statement = concat!(
        "SELECT s.entrant, s.seat, count(*) FROM matches m
        CROSS JOIN LATERAL unnest(m.seats) WITH ORDINALITY AS s (entrant, seat)
        WHERE ",
        members!("m"),
        " GROUP BY 1, 2 ORDER BY 1, 2"
    );
    let rows: Vec<(i32, i64, i64)> =
        sqlx::query_as_with(statement, edition.arguments()).fetch_all(db).await?;
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

/// Calls `visit` with the seats of each match of an edition. Stops at the first error of `visit`,
/// and returns it.
pub async fn each_seats<E>(
    db: impl PgExecutor<'_>,
    edition: EditionScope,
    mut visit: impl FnMut(&[i32]) -> Result<(), E>,
) -> Result<Result<(), E>> {
    let statement =
        concat!("SELECT m.seats FROM matches m WHERE ", members!("m"), " ORDER BY m.number");
    let mut rows = sqlx::query_scalar_with(statement, edition.arguments()).fetch(db);
    while let Some(seats) = rows.next().await {
        let seats: Vec<i32> = seats?;
        if let Err(error) = visit(&seats) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

/// The matches of leased lots of a tournament, in the order of the lots.
pub async fn of_lots(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    lots: &[LeasedLot],
) -> Result<Vec<Match>> {
    let statement = "
        SELECT m.number, m.seed_key, m.board, m.seats, m.carried, m.state_from, m.params
        FROM unnest($2::bigint[], $3::int[]) WITH ORDINALITY AS lot (number, count, place)
        CROSS JOIN LATERAL (
            SELECT * FROM matches
            WHERE tournament = $1 AND number >= lot.number AND number < lot.number + lot.count OFFSET 0
        ) AS m
        ORDER BY lot.place, m.number";
    let (numbers, counts): (Vec<_>, Vec<_>) =
        lots.iter().map(|lot| (lot.lease.lot.number, lot.count)).unzip();
    sqlx::query_as(statement).bind(tournament).bind(numbers).bind(counts).fetch_all(db).await
}
