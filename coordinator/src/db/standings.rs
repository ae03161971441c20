//! Standings: sums over the counted matches of each entrant.

use std::collections::BTreeMap;
use std::num::IntErrorKind;

use arbiter_games::Forfeit;
use arbiter_proto::ids::{BotId, EditionId};
use arbiter_ranking::Entrant;
use arbiter_ranking::{Contestant, Tally};
use sqlx::postgres::PgRow;
use sqlx::{Error, FromRow, PgConnection, PgExecutor, Result, Row as _};
use time::OffsetDateTime;
use tokio_stream::StreamExt as _;

/// Adds sums to the standings of an edition.
pub async fn add(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    tallies: &BTreeMap<Entrant, Tally>,
) -> Result<()> {
    // Postgres would flatten an array of arrays, so each score is sent as the text of an array.
    // Rows are changed in the order of the entrants to prevent deadlocks.
    let statement = "
        INSERT INTO standings AS s (edition, entrant, matches, score, squares,
            clock, illegal, gone, flood, bad_answers)
        SELECT $1, u.entrant, u.matches, u.score::numeric[], u.squares::numeric,
            u.clock, u.illegal, u.gone, u.flood, u.bad_answers
        FROM unnest($2::int[], $3::bigint[], $4::text[], $5::text[],
                $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[])
            AS u (entrant, matches, score, squares, clock, illegal, gone, flood, bad_answers)
        ORDER BY u.entrant
        ON CONFLICT (edition, entrant) DO UPDATE SET
            matches = s.matches + excluded.matches,
            score = ARRAY(SELECT a + b FROM unnest(s.score, excluded.score)
                          WITH ORDINALITY AS sums (a, b, place) ORDER BY place),
            squares = s.squares + excluded.squares,
            clock = s.clock + excluded.clock,
            illegal = s.illegal + excluded.illegal,
            gone = s.gone + excluded.gone,
            flood = s.flood + excluded.flood,
            bad_answers = s.bad_answers + excluded.bad_answers";
    if tallies.is_empty() {
        return Ok(());
    }
    let mut query = sqlx::query(statement)
        .bind(edition)
        .bind(tallies.keys().map(|entrant| entrant.0).collect::<Vec<_>>())
        .bind(tallies.values().map(|tally| tally.matches).collect::<Vec<_>>())
        .bind(tallies.values().map(|tally| array(&tally.score)).collect::<Vec<_>>())
        .bind(tallies.values().map(|tally| tally.squares.to_string()).collect::<Vec<_>>());
    for kind in 0..Forfeit::ALL.len() {
        query = query.bind(tallies.values().map(|tally| tally.forfeits[kind]).collect::<Vec<_>>());
    }
    let bad_answers: Vec<_> = tallies.values().map(|tally| tally.bad_answers).collect();
    query.bind(bad_answers).execute(db).await.map(drop)
}

/// Numbers that may exceed a bigint, as the text of an array.
fn array(numbers: &[i128]) -> String {
    let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
    format!("{{{}}}", numbers.join(","))
}

/// A stored sum. Only impossible results can cause a sum out of range. Such a sum becomes the
/// greatest or least number, so that the leaderboard can still be shown.
fn number(text: &str) -> Result<i128> {
    match text.parse::<i128>() {
        Ok(number) => Ok(number),
        Err(error) => match error.kind() {
            IntErrorKind::PosOverflow => Ok(i128::MAX),
            IntErrorKind::NegOverflow => Ok(i128::MIN),
            _ => Err(Error::Decode(Box::new(error))),
        },
    }
}

/// The stored sums of one entrant.
struct Standing {
    entrant: Entrant,
    tally: Tally,
}

impl FromRow<'_, PgRow> for Standing {
    fn from_row(row: &PgRow) -> Result<Self> {
        let score: Vec<String> = row.try_get("score")?;
        let squares: &str = row.try_get("squares")?;
        let mut forfeits = [0; Forfeit::ALL.len()];
        for (count, kind) in forfeits.iter_mut().zip(Forfeit::ALL) {
            *count = row.try_get(kind.as_str())?;
        }
        Ok(Self {
            entrant: Entrant(row.try_get("entrant")?),
            tally: Tally {
                matches: row.try_get("matches")?,
                score: score.iter().map(|sum| number(sum)).collect::<Result<_, _>>()?,
                squares: squares.parse().map_err(|error| Error::Decode(Box::new(error)))?,
                forfeits,
                bad_answers: row.try_get("bad_answers")?,
            },
        })
    }
}

/// The sums of an edition as the database sent them. To decode those of ten thousand bots takes
/// milliseconds.
#[derive(Debug)]
pub struct StoredStandings(Vec<PgRow>);

impl StoredStandings {
    /// Those of an edition.
    pub async fn of_edition(db: impl PgExecutor<'_>, edition: EditionId) -> Result<Self> {
        let statement = "
            SELECT entrant, matches, score::text[], trunc(squares)::text AS squares,
                clock, illegal, gone, flood, bad_answers
            FROM standings WHERE edition = $1";
        sqlx::query(statement).bind(edition).fetch_all(db).await.map(Self)
    }

    /// The sums of each entrant that has played at least one match.
    pub fn decode(&self) -> Result<BTreeMap<Entrant, Tally>> {
        let sums = |row| Standing::from_row(row).map(|row| (row.entrant, row.tally));
        self.0.iter().map(sums).collect()
    }
}

/// The sums of each entrant of an edition that has played at least one match.
pub async fn of_edition(
    db: impl PgExecutor<'_>,
    edition: EditionId,
) -> Result<BTreeMap<Entrant, Tally>> {
    StoredStandings::of_edition(db, edition).await?.decode()
}

/// All entrants of an edition with their sums, ready to be ranked, including those without matches.
pub async fn contestants(db: &mut PgConnection, edition: EditionId) -> Result<Vec<Contestant>> {
    let mut all = Vec::new();
    each_edition(db, &[edition], |_, contestants| all = contestants).await?;
    Ok(all)
}

/// The sums of a bot in a complete edition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastStanding {
    /// The edition.
    pub edition: EditionId,
    /// Its number in the tournament.
    pub number: i32,
    /// The bot's entrant in the edition.
    pub entrant: Entrant,
    /// The number of the version that played.
    pub version: i32,
    /// Its sums.
    pub tally: Tally,
}

/// The sums of a bot in all complete editions, newest first. With `until`, only editions that ended
/// at this time or earlier.
pub async fn of_bot(
    db: impl PgExecutor<'_>,
    bot: BotId,
    until: Option<OffsetDateTime>,
) -> Result<Vec<PastStanding>> {
    let statement = "
        SELECT e.id AS edition, e.number, v.number AS version, n.entrant,
            coalesce(s.matches, 0) AS matches, coalesce(s.score, '{}')::text[] AS score,
            trunc(coalesce(s.squares, 0))::text AS squares, coalesce(s.clock, 0) AS clock,
            coalesce(s.illegal, 0) AS illegal, coalesce(s.gone, 0) AS gone,
            coalesce(s.flood, 0) AS flood, coalesce(s.bad_answers, 0) AS bad_answers
        FROM entrants n
        JOIN editions e ON e.id = n.edition
        JOIN versions v ON v.id = n.version
        LEFT JOIN standings s ON s.edition = n.edition AND s.entrant = n.entrant
        WHERE n.bot = $1 AND e.state = 'complete'
          AND ($2::timestamptz IS NULL OR e.ended_at <= $2)
        ORDER BY e.number DESC";
    let rows = sqlx::query(statement).bind(bot).bind(until).fetch_all(db).await?;
    let read = |row: &PgRow| {
        let Standing { entrant, tally } = Standing::from_row(row)?;
        let edition = row.try_get("edition")?;
        let number = row.try_get("number")?;
        let version = row.try_get("version")?;
        Ok(PastStanding { edition, number, entrant, version, tally })
    };
    rows.iter().map(read).collect()
}

/// Calls `visit` with each of these editions and all its entrants with their sums, ready to be
/// ranked.
pub async fn each_edition(
    db: &mut PgConnection,
    editions: &[EditionId],
    mut visit: impl FnMut(EditionId, Vec<Contestant>),
) -> Result<()> {
    let statement = "
        WITH without_house AS MATERIALIZED (
            SELECT e.id AS edition FROM editions e
            JOIN tournaments t ON t.id = e.tournament
            LEFT JOIN edition_settings o ON o.edition = e.id
            WHERE e.id = ANY ($1)
              AND coalesce(o.settings, t.settings) #>> '{house,ranked}' = 'false'
        )
        SELECT n.edition, n.entrant, v.submitted_at, p.rank AS plan_rank,
            b.owner IS NOT NULL OR n.edition NOT IN (SELECT edition FROM without_house) AS is_ranked,
            coalesce(s.matches, 0) AS matches, coalesce(s.score, '{}')::text[] AS score,
            trunc(coalesce(s.squares, 0))::text AS squares, coalesce(s.clock, 0) AS clock,
            coalesce(s.illegal, 0) AS illegal, coalesce(s.gone, 0) AS gone,
            coalesce(s.flood, 0) AS flood, coalesce(s.bad_answers, 0) AS bad_answers
        FROM entrants n
        JOIN versions v ON v.id = n.version
        JOIN bots b ON b.id = n.bot
        LEFT JOIN standings s ON s.edition = n.edition AND s.entrant = n.entrant
        LEFT JOIN plan_ranks p ON p.edition = n.edition AND p.entrant = n.entrant
        WHERE n.edition = ANY ($1)
        ORDER BY n.edition, n.place";
    let mut rows = sqlx::query(statement).bind(editions).fetch(db);
    let mut current = None;
    let mut contestants = Vec::new();
    while let Some(row) = rows.next().await {
        let row = row?;
        let edition = row.try_get("edition")?;
        if let Some(last) = current.replace(edition).filter(|last| *last != edition) {
            visit(last, std::mem::take(&mut contestants));
        }
        let Standing { entrant, tally } = Standing::from_row(&row)?;
        let submitted_at = row.try_get("submitted_at")?;
        let plan_rank: Option<i32> = row.try_get("plan_rank")?;
        let plan_rank = plan_rank.map(i32::unsigned_abs);
        let is_ranked = row.try_get("is_ranked")?;
        contestants.push(Contestant { entrant, submitted_at, tally, plan_rank, is_ranked });
    }
    if let Some(last) = current {
        visit(last, contestants);
    }
    Ok(())
}
