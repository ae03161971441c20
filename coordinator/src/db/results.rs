//! The results of matches. Rows are only added.

use arbiter_games::Forfeit;
use arbiter_proto::ids::{MatchNumber, TournamentId};
use arbiter_proto::level::Level;
use arbiter_ranking::Entrant;
use arbiter_ranking::ScoredMatch;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection, PgExecutor, Result, Row as _};
use tokio_stream::{Stream, StreamExt as _};

use super::binary_copy::{Rows, send};
use super::editions::{EditionScope, members};
use super::matches::Seats;

/// The result of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchResult {
    /// The match.
    pub number: MatchNumber,
    /// The wall-clock time of the match, in milliseconds.
    pub wall_ms: i32,
    /// Every seat's score in a row, seat 1 first.
    pub scores: Vec<i64>,
    /// BLAKE3 hash of the transcript.
    pub transcript: [u8; 32],
    /// Each seat's forfeit, or an empty list if there are none.
    pub forfeits: Vec<Option<Forfeit>>,
    /// Each seat's bad replies, or an empty list if there were none.
    pub bad_answers: Vec<i32>,
}

impl MatchResult {
    /// The forfeit of a seat, counted from 0, if any.
    pub fn forfeit(&self, seat: usize) -> Option<Forfeit> {
        self.forfeits.get(seat).copied().flatten()
    }

    /// The number of bad replies of a seat, counted from 0.
    pub fn bad_answers(&self, seat: usize) -> i32 {
        self.bad_answers.get(seat).copied().unwrap_or(0)
    }
}

impl FromRow<'_, PgRow> for MatchResult {
    fn from_row(row: &PgRow) -> Result<Self> {
        let bad_answers: Option<_> = row.try_get("bad_answers")?;
        Ok(Self {
            number: row.try_get("number")?,
            wall_ms: row.try_get("wall_ms")?,
            scores: row.try_get("scores")?,
            transcript: row.try_get("transcript")?,
            forfeits: Forfeits::from(row.try_get::<Option<_>, _>("forfeits")?).0,
            bad_answers: bad_answers.unwrap_or_default(),
        })
    }
}

/// Adds results of several tournaments, and returns their number.
///
/// # Errors
/// If one exists already or is invalid.
pub async fn copy_in<'a>(
    connection: &mut PgConnection,
    results: impl Iterator<Item = (TournamentId, Level, &'a MatchResult)> + Send,
) -> Result<u64> {
    let statement = "
        COPY results (number, tournament, wall_ms, level, scores, transcript, forfeits, bad_answers)
        FROM STDIN (FORMAT binary)";
    send(connection, statement, results, |(tournament, level, result), rows| {
        write(rows, tournament, level, result);
    })
    .await
}

fn write(rows: &mut Rows, tournament: TournamentId, level: Level, result: &MatchResult) {
    rows.row(8).int8(result.number.0).int4(tournament.0).int4(result.wall_ms);
    rows.bytes(level.as_str().as_bytes()).int8s(&result.scores).bytes(&result.transcript);
    if result.forfeits.iter().any(Option::is_some) {
        let codes: Vec<_> = result.forfeits.iter().map(|forfeit| code(*forfeit)).collect();
        rows.int2s(&codes);
    } else {
        rows.null();
    }
    if result.bad_answers.iter().any(|count| *count != 0) {
        rows.int4s(&result.bad_answers);
    } else {
        rows.null();
    }
}

/// The stored code of a forfeit: its position in [`Forfeit::ALL`] from 1, or 0 for none.
fn code(forfeit: Option<Forfeit>) -> i16 {
    let find = |forfeit| (1..).zip(Forfeit::ALL).find(|(_, kind)| *kind == forfeit);
    forfeit.and_then(find).map_or(0, |(code, _)| code)
}

/// The forfeit with this stored code.
fn forfeit(code: i16) -> Option<Forfeit> {
    (1..).zip(Forfeit::ALL).find(|(of_kind, _)| *of_kind == code).map(|(_, forfeit)| forfeit)
}

/// Each seat's forfeit as stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forfeits(pub Vec<Option<Forfeit>>);

impl From<Option<Vec<i16>>> for Forfeits {
    fn from(codes: Option<Vec<i16>>) -> Self {
        Self(codes.unwrap_or_default().into_iter().map(forfeit).collect())
    }
}

/// A result with its entrants.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct SeatedResult {
    /// The match.
    pub number: MatchNumber,
    /// The entrants, seat 1 first.
    #[sqlx(try_from = "Vec<i32>")]
    pub seats: Seats,
    /// The points that each seat carried over from earlier matches, in games that carry points
    /// over.
    pub carried: Option<Vec<i64>>,
    /// Every seat's score in a row, seat 1 first.
    pub scores: Vec<i64>,
    /// Each seat's forfeit, or an empty list if there are none.
    #[sqlx(try_from = "Option<Vec<i16>>")]
    pub forfeits: Forfeits,
    /// Each seat's bad replies, or an empty list if there were none.
    pub bad_answers: Option<Vec<i32>>,
}

impl SeatedResult {
    /// The result in the form that rankings use.
    pub fn outcome(&self) -> ScoredMatch<'_> {
        ScoredMatch {
            seats: &self.seats.0,
            scores: &self.scores,
            carried: self.carried.as_deref().unwrap_or_default(),
            forfeits: &self.forfeits.0,
            bad_answers: self.bad_answers.as_deref().unwrap_or_default(),
        }
    }
}

/// The columns of a match `m` and its result `r` that [`SeatedResult`] has, and the rest of the
/// statement.
macro_rules! played {
    ($($rest:expr),+) => {
        concat!("SELECT r.number, m.seats, m.carried, r.scores, r.forfeits, r.bad_answers", $($rest),+)
    };
}

/// Calls `visit` with the results of the matches `firsts[i] … pasts[i] - 1` of a tournament, for
/// each i.
pub async fn each_of_ranges(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    firsts: &[i64],
    pasts: &[i64],
    mut visit: impl FnMut(&SeatedResult),
) -> Result<()> {
    // Each range is read with one index lookup.
    let statement = played!(
        "
        FROM unnest($2::bigint[], $3::bigint[]) AS range (first_match, past)
        CROSS JOIN LATERAL (
            SELECT * FROM results
            WHERE tournament = $1 AND number >= range.first_match AND number < range.past OFFSET 0
        ) AS r
        CROSS JOIN LATERAL (
            SELECT seats, carried FROM matches WHERE tournament = $1 AND number = r.number OFFSET 0
        ) AS m"
    );
    let query = sqlx::query_as(statement).bind(tournament).bind(firsts).bind(pasts);
    let mut rows = query.fetch(db);
    while let Some(played) = rows.next().await {
        visit(&played?);
    }
    Ok(())
}

/// Calls `visit` with the results of the matches of an edition that any of these entrants played.
pub async fn each_of_entrants(
    db: impl PgExecutor<'_>,
    edition: EditionScope,
    entrants: &[Entrant],
    mut visit: impl FnMut(&SeatedResult),
) -> Result<()> {
    // The rows of matches are short, and the filter leaves few of them. Only their results are
    // read.
    let statement = played!(
        "
        FROM (
            SELECT number, seats, carried FROM matches m
            WHERE ",
        members!("m"),
        " AND seats && $4::int[] OFFSET 0
        ) AS m
        CROSS JOIN LATERAL (
            SELECT number, scores, forfeits, bad_answers FROM results
            WHERE tournament = $1 AND number = m.number OFFSET 0
        ) AS r"
    );
    let entrants: Vec<_> = entrants.iter().map(|entrant| entrant.0).collect();
    let mut rows = sqlx::query_as_with(statement, edition.arguments()).bind(entrants).fetch(db);
    while let Some(played) = rows.next().await {
        visit(&played?);
    }
    Ok(())
}

/// The results of an edition after the match `after`, in order: at most 10 000.
///
/// With `counted`, results whose lots are not counted yet are left out.
pub async fn page(
    db: impl PgExecutor<'_>,
    edition: EditionScope,
    after: MatchNumber,
    counted: bool,
) -> Result<Vec<SeatedResult>> {
    let statement = played!(
        "
        FROM results r JOIN matches m USING (tournament, number)
        WHERE ",
        members!("r"),
        // Both from there on: one of them would be gone through from its first match.
        " AND r.number > $4 AND m.tournament = $1 AND m.number > $4
          AND NOT ($5 AND EXISTS (
              SELECT FROM lots l
              WHERE l.tournament = $1 AND l.state = 'reported'
                AND l.number <= r.number AND r.number < l.number + l.count))
        ORDER BY r.number LIMIT 10000"
    );
    sqlx::query_as_with(statement, edition.arguments())
        .bind(after.0.max(edition.from - 1))
        .bind(counted)
        .fetch_all(db)
        .await
}

/// Calls `visit` with the results of an edition, in order. `counted` has the same meaning as in
/// [`page`].
pub async fn each(
    connection: &mut PgConnection,
    edition: EditionScope,
    counted: bool,
    mut visit: impl FnMut(&SeatedResult),
) -> Result<()> {
    let mut after = MatchNumber(-1);
    loop {
        let page = page(&mut *connection, edition, after, counted).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.number;
        page.iter().for_each(&mut visit);
    }
}

/// The results of these matches of a tournament, in order. Matches without a result are left out.
pub async fn of_matches(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    numbers: &[MatchNumber],
) -> Result<Vec<SeatedResult>> {
    let statement = played!(
        "
        FROM unnest($2::bigint[]) AS u (number)
        CROSS JOIN LATERAL (
            SELECT * FROM results WHERE tournament = $1 AND number = u.number OFFSET 0
        ) AS r
        CROSS JOIN LATERAL (
            SELECT seats, carried FROM matches WHERE tournament = $1 AND number = u.number OFFSET 0
        ) AS m
        ORDER BY r.number"
    );
    sqlx::query_as(statement).bind(tournament).bind(numbers).fetch_all(db).await
}

/// A result with what says which results depend on each other.
#[derive(Clone, Debug, FromRow)]
pub struct KeyedResult {
    /// The seed key of the match.
    pub seed_key: i64,
    /// The index of the tournament's board, if there are several.
    pub board: Option<i16>,
    /// BLAKE3 hash of the transcript.
    pub transcript: [u8; 32],
    /// The result.
    #[sqlx(flatten)]
    pub played: SeatedResult,
}

/// Calls `visit` with the result of each match of an edition, in order. Stops at the first error of
/// `visit`, and returns it.
pub async fn each_with_seed_key<E>(
    db: impl PgExecutor<'_>,
    edition: EditionScope,
    visit: impl FnMut(&KeyedResult) -> Result<(), E>,
) -> Result<Result<(), E>> {
    let statement = played!(
        ", m.seed_key, m.board, r.transcript
        FROM results r JOIN matches m USING (tournament, number)
        WHERE ",
        members!("r"),
        " ORDER BY r.number"
    );
    each_row(sqlx::query_as_with(statement, edition.arguments()).fetch(db), visit).await
}

/// Calls `visit` with the results of the matches `firsts[i] … pasts[i] - 1` that an edition has,
/// for each i. Stops at the first error of `visit`, and returns it.
pub async fn each_with_seed_key_of_ranges<E>(
    db: impl PgExecutor<'_>,
    edition: EditionScope,
    firsts: &[i64],
    pasts: &[i64],
    visit: impl FnMut(&KeyedResult) -> Result<(), E>,
) -> Result<Result<(), E>> {
    // Each range is read with one index lookup.
    let statement = played!(
        ", m.seed_key, m.board, r.transcript
        FROM unnest($4::bigint[], $5::bigint[]) AS range (first_match, past)
        CROSS JOIN LATERAL (
            SELECT * FROM results r
            WHERE ",
        members!("r"),
        " AND r.number >= range.first_match AND r.number < range.past OFFSET 0
        ) AS r
        CROSS JOIN LATERAL (
            SELECT seats, carried, seed_key, board FROM matches
            WHERE tournament = $1 AND number = r.number OFFSET 0
        ) AS m"
    );
    let query = sqlx::query_as_with(statement, edition.arguments()).bind(firsts).bind(pasts);
    each_row(query.fetch(db), visit).await
}

async fn each_row<E>(
    mut rows: impl Stream<Item = Result<KeyedResult>> + Unpin,
    mut visit: impl FnMut(&KeyedResult) -> Result<(), E>,
) -> Result<Result<(), E>> {
    while let Some(row) = rows.next().await {
        if let Err(error) = visit(&row?) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}
