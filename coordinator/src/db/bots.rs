//! Bots: the named entrants of a tournament, each with an owner.

use std::collections::HashMap;

use arbiter_proto::ids::{BotId, EditionId, TokenId, TournamentId, VersionId};
use arbiter_ranking::Entrant;
use sqlx::{FromRow, PgExecutor, Result};
use time::OffsetDateTime;

/// A bot.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Bot {
    /// Its identity.
    pub id: BotId,
    /// Its name, which no other bot of the tournament has: `handle/name` for a player's bot.
    pub name: String,
    /// The token of its owner. House bots have none.
    pub owner: Option<i32>,
    /// When it was first submitted.
    pub created_at: OffsetDateTime,
    /// When it was withdrawn.
    pub withdrawn_at: Option<OffsetDateTime>,
    /// Its newest version when it was suspended. This version and earlier ones do not take part.
    pub stood_down_version: Option<i32>,
    /// When it was suspended.
    pub stood_down_at: Option<OffsetDateTime>,
    /// The reason of its suspension.
    pub stood_down_reason: Option<String>,
}

impl Bot {
    /// The reason of its suspension, if the suspension includes the version `newest`.
    pub fn suspension_reason(&self, newest: VersionId) -> Option<&str> {
        let is_included = self.stood_down_version.is_some_and(|version| newest.0 <= version);
        self.stood_down_reason.as_deref().filter(|_| is_included)
    }
}

/// A bot that a name may mean.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct NamedBot {
    /// The bot.
    #[sqlx(flatten)]
    pub bot: Bot,
    /// Whether a version of it has entered.
    pub has_entered: bool,
}

/// Enters a bot.
///
/// # Errors
/// If its name is invalid, or another bot of the tournament has it.
pub async fn create(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    owner: Option<TokenId>,
    name: &str,
    now: OffsetDateTime,
) -> Result<BotId> {
    let statement = "
        INSERT INTO bots (tournament, owner, name, created_at) VALUES ($1, $2, $3, $4)
        RETURNING id";
    let query = sqlx::query_scalar(statement).bind(tournament).bind(owner);
    query.bind(name).bind(now).fetch_one(db).await
}

/// Copies bots to another tournament, each with one of its versions and what was built from it. A
/// copy has the name, the owner and the dates of its bot. It takes part at once.
pub async fn copy(db: impl PgExecutor<'_>, versions: &[VersionId], to: TournamentId) -> Result<()> {
    let statement = "
        WITH original AS (
            SELECT b.owner, b.name, b.created_at, v.bot, v.id AS version, v.number, v.digest,
                v.submitted_at
            FROM versions v JOIN bots b ON b.id = v.bot WHERE v.id = ANY ($1)
        ), copy AS (
            INSERT INTO bots (tournament, owner, name, created_at)
            SELECT $2, owner, name, created_at FROM original ORDER BY bot RETURNING id, name
        ), copied AS (
            INSERT INTO versions (bot, number, digest, submitted_at)
            SELECT copy.id, o.number, o.digest, o.submitted_at
            FROM copy JOIN original o ON o.name = copy.name ORDER BY copy.id RETURNING id, bot
        )
        INSERT INTO trials (version, state, worker, queued_at, ended_at, log, figures, warnings,
            program)
        SELECT copied.id, t.state, t.worker, t.queued_at, t.ended_at, t.log, t.figures, t.warnings,
            t.program
        FROM copied JOIN copy ON copy.id = copied.bot
            JOIN original o ON o.name = copy.name
            JOIN trials t ON t.version = o.version
        WHERE t.state = 'passed'";
    sqlx::query(statement).bind(versions).bind(to).execute(db).await.map(drop)
}

/// The bot of this name.
pub async fn find(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    name: &str,
) -> Result<Option<Bot>> {
    let statement = "SELECT * FROM bots WHERE tournament = $1 AND name = $2";
    sqlx::query_as(statement).bind(tournament).bind(name).fetch_optional(db).await
}

/// The bot of this name, for a submission. Other submissions with this name wait until the
/// transaction ends.
pub async fn find_locked(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    name: &str,
) -> Result<Option<Bot>> {
    let statement = "SELECT * FROM bots WHERE tournament = $1 AND name = $2 FOR NO KEY UPDATE";
    sqlx::query_as(statement).bind(tournament).bind(name).fetch_optional(db).await
}

/// The bots with this name, with or without their owners' handles: the one with this whole name
/// first, then those of `caller`, then those that have entered. At most 10.
pub async fn named(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    name: &str,
    caller: Option<TokenId>,
) -> Result<Vec<NamedBot>> {
    let statement = "
        SELECT b.*, EXISTS (
            SELECT FROM versions v LEFT JOIN trials t ON t.version = v.id
            WHERE v.bot = b.id AND (t.state IS NULL OR t.state = 'passed')) AS has_entered
        FROM bots b
        WHERE b.tournament = $1 AND $2 IN (b.name, substr(b.name, strpos(b.name, '/') + 1))
        ORDER BY b.name = $2 DESC, coalesce(b.owner = $3, false) DESC, has_entered DESC, b.id
        LIMIT 10";
    let query = sqlx::query_as(statement).bind(tournament).bind(name).bind(caller);
    query.fetch_all(db).await
}

/// Gives a bot of another owner to this one if all its versions failed their trials: a failed trial
/// reserves no name. House bots have no owner and keep it so. Returns whether the owner changed.
pub async fn take_over(db: impl PgExecutor<'_>, bot: BotId, owner: TokenId) -> Result<bool> {
    let statement = "
        UPDATE bots SET owner = $2
        WHERE id = $1 AND owner <> $2
          AND NOT EXISTS (
              SELECT FROM versions v LEFT JOIN trials t ON t.version = v.id
              WHERE v.bot = $1 AND t.state IS DISTINCT FROM 'failed')";
    Ok(sqlx::query(statement).bind(bot).bind(owner).execute(db).await?.rows_affected() == 1)
}

/// The name of the bot that has the same name in matches as `name`, where a dot stands for the
/// slash.
pub async fn same_in_matches(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    name: &str,
) -> Result<Option<String>> {
    let statement = "
        SELECT name FROM bots
        WHERE tournament = $1 AND replace(name, '/', '.') = replace($2, '/', '.')";
    sqlx::query_scalar(statement).bind(tournament).bind(name).fetch_optional(db).await
}

/// The names of the bots of a tournament that are shown with their owners, because their short
/// names mean other bots or several.
///
/// A bot that never entered takes its short name from no other bot. A bot with a plain name has it
/// all the same, because no longer name means this bot.
pub async fn shown_with_owners(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
) -> Result<Vec<String>> {
    let statement = "
        WITH named AS (
            SELECT id, name, substr(name, strpos(name, '/') + 1) AS short
            FROM bots WHERE tournament = $1
        ), same AS (
            SELECT n.name, n.short, n.name = n.short OR EXISTS (
                SELECT FROM versions v LEFT JOIN trials t ON t.version = v.id
                WHERE v.bot = n.id AND (t.state IS NULL OR t.state = 'passed')) AS has_short
            FROM named n
            WHERE n.short IN (SELECT short FROM named GROUP BY short HAVING count(*) > 1)
        ), counted AS (
            SELECT name, has_short,
                count(*) FILTER (WHERE has_short) OVER (PARTITION BY short) AS bots
            FROM same
        )
        SELECT name FROM counted WHERE NOT has_short OR bots > 1";
    sqlx::query_scalar(statement).bind(tournament).fetch_all(db).await
}

/// The bots of a tournament in the order of their first submission.
pub async fn list(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<Vec<Bot>> {
    let statement = "SELECT * FROM bots WHERE tournament = $1 ORDER BY id";
    sqlx::query_as(statement).bind(tournament).fetch_all(db).await
}

/// Withdraws a bot from future editions. Returns whether it took part.
pub async fn withdraw(db: impl PgExecutor<'_>, bot: BotId, now: OffsetDateTime) -> Result<bool> {
    let statement = "UPDATE bots SET withdrawn_at = $2 WHERE id = $1 AND withdrawn_at IS NULL";
    Ok(sqlx::query(statement).bind(bot).bind(now).execute(db).await?.rows_affected() == 1)
}

/// Enters a withdrawn bot again. Returns whether it was withdrawn.
pub async fn enter_again(db: impl PgExecutor<'_>, bot: BotId) -> Result<bool> {
    let statement =
        "UPDATE bots SET withdrawn_at = NULL WHERE id = $1 AND withdrawn_at IS NOT NULL";
    Ok(sqlx::query(statement).bind(bot).execute(db).await?.rows_affected() == 1)
}

/// A suspended bot.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct SuspendedBot {
    /// Its tournament.
    pub tournament: TournamentId,
    /// The tournament's name.
    pub tournament_name: String,
    /// Its name.
    pub name: String,
    /// The reason of its suspension.
    pub reason: String,
}

/// Suspends the bots that forfeited more of their matches in an edition than its tournament allows,
/// and returns them. Skips versions that an organiser reinstated, and tournaments that are over.
pub async fn suspend_for_forfeits(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    now: OffsetDateTime,
) -> Result<Vec<SuspendedBot>> {
    let statement = "
        WITH rule AS MATERIALIZED (
            SELECT t.id, t.name, e.number,
                (t.settings #>> '{submissions,stand_down_percent}')::int AS percent,
                (t.settings #>> '{submissions,stand_down_after}')::bigint AS after
            FROM editions e JOIN tournaments t ON t.id = e.tournament
            WHERE e.id = $1 AND t.state = 'open'
              AND (t.settings #>> '{submissions,stand_down_percent}')::int < 100
        ), failing AS (
            SELECT rule.id AS tournament, rule.name AS tournament_name, en.bot, en.version,
                format('it forfeited %s of %s matches in edition %s',
                    s.clock + s.illegal + s.gone + s.flood, s.matches, rule.number) AS reason
            FROM rule JOIN standings s ON s.edition = $1
            JOIN entrants en ON en.edition = $1 AND en.entrant = s.entrant
            WHERE s.matches >= rule.after
              AND (s.clock + s.illegal + s.gone + s.flood) * 100 > rule.percent * s.matches
        )
        UPDATE bots AS b
        SET stood_down_version = f.version, stood_down_at = $2, stood_down_reason = f.reason
        FROM failing f
        WHERE b.id = f.bot AND b.withdrawn_at IS NULL
          AND f.version > coalesce(b.stood_down_version, 0)
          AND f.version > coalesce(b.reinstated_version, 0)
        RETURNING f.tournament, f.tournament_name, b.name, b.stood_down_reason AS reason";
    sqlx::query_as(statement).bind(edition).bind(now).fetch_all(db).await
}

/// Suspends an entrant of an edition for this reason. Returns `None` if it is already suspended,
/// was reinstated or withdrawn, or if the tournament is over.
pub async fn suspend_entrant(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    entrant: Entrant,
    reason: &str,
    now: OffsetDateTime,
) -> Result<Option<SuspendedBot>> {
    let statement = "
        UPDATE bots AS b
        SET stood_down_version = en.version, stood_down_at = $4, stood_down_reason = $3
        FROM entrants en, editions e, tournaments t
        WHERE en.edition = $1 AND en.entrant = $2 AND b.id = en.bot
          AND e.id = en.edition AND t.id = e.tournament AND t.state = 'open'
          AND b.withdrawn_at IS NULL
          AND en.version > coalesce(b.stood_down_version, 0)
          AND en.version > coalesce(b.reinstated_version, 0)
        RETURNING t.id AS tournament, t.name AS tournament_name, b.name,
            b.stood_down_reason AS reason";
    let query = sqlx::query_as(statement).bind(edition).bind(entrant.0).bind(reason).bind(now);
    query.fetch_optional(db).await
}

/// Reinstates a suspended bot. Returns whether it was suspended.
pub async fn reinstate(db: impl PgExecutor<'_>, bot: BotId) -> Result<bool> {
    let statement = "
        UPDATE bots SET reinstated_version = stood_down_version, stood_down_version = NULL,
            stood_down_at = NULL, stood_down_reason = NULL
        WHERE id = $1 AND stood_down_version IS NOT NULL";
    Ok(sqlx::query(statement).bind(bot).execute(db).await?.rows_affected() == 1)
}

/// The tournament that a version was submitted to.
pub async fn tournament_of(
    db: impl PgExecutor<'_>,
    version: VersionId,
) -> Result<Option<TournamentId>> {
    let statement = "
        SELECT b.tournament FROM versions v JOIN bots b ON b.id = v.bot WHERE v.id = $1";
    sqlx::query_scalar(statement).bind(version).fetch_optional(db).await
}

/// The number of bots of each tournament that have entered and were not withdrawn. Tournaments
/// without such bots are left out.
pub async fn entered_by_tournament(db: impl PgExecutor<'_>) -> Result<HashMap<TournamentId, i64>> {
    let statement = "
        SELECT b.tournament, count(*) FROM bots b
        WHERE b.withdrawn_at IS NULL AND EXISTS (
            SELECT FROM versions v LEFT JOIN trials t ON t.version = v.id
            WHERE v.bot = b.id AND (t.state IS NULL OR t.state = 'passed'))
        GROUP BY b.tournament";
    let rows: Vec<(TournamentId, i64)> = sqlx::query_as(statement).fetch_all(db).await?;
    Ok(rows.into_iter().collect())
}
