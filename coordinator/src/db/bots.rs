//! Bots: named entrants of an owner in a tournament.

use arbiter_proto::ids::{BotId, TokenId, TournamentId};
use sqlx::{Error, FromRow, PgExecutor};
use time::OffsetDateTime;

/// A bot.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Bot {
    /// Its identity.
    #[sqlx(try_from = "i32")]
    pub id: BotId,
    /// Its name, which no other bot of the tournament has.
    pub name: String,
    /// The token of its owner; none owns a house bot.
    pub owner: Option<i32>,
    /// When it was first submitted.
    pub created_at: OffsetDateTime,
    /// When it was withdrawn.
    pub withdrawn_at: Option<OffsetDateTime>,
}

/// Enters a bot.
///
/// # Errors
/// If its name is taken or cannot be one, or the database fails.
pub async fn create(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    owner: Option<TokenId>,
    name: &str,
    now: OffsetDateTime,
) -> Result<BotId, Error> {
    let statement = "
        INSERT INTO bots (tournament, owner, name, created_at) VALUES ($1, $2, $3, $4)
        RETURNING id";
    let query = sqlx::query_scalar(statement).bind(tournament.0).bind(owner.map(|owner| owner.0));
    query.bind(name).bind(now).fetch_one(db).await.map(BotId)
}

/// The bot of this name.
///
/// # Errors
/// If the database fails.
pub async fn find(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    name: &str,
) -> Result<Option<Bot>, Error> {
    let statement = "
        SELECT id, name, owner, created_at, withdrawn_at FROM bots
        WHERE tournament = $1 AND name = $2";
    sqlx::query_as(statement).bind(tournament.0).bind(name).fetch_optional(db).await
}

/// The bots of a tournament in the order of their first submission.
///
/// # Errors
/// If the database fails.
pub async fn list(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<Vec<Bot>, Error> {
    let statement = "
        SELECT id, name, owner, created_at, withdrawn_at FROM bots
        WHERE tournament = $1 ORDER BY id";
    sqlx::query_as(statement).bind(tournament.0).fetch_all(db).await
}

/// Withdraws a bot from the editions to come; whether it took part.
///
/// # Errors
/// If the database fails.
pub async fn withdraw(
    db: impl PgExecutor<'_>,
    bot: BotId,
    now: OffsetDateTime,
) -> Result<bool, Error> {
    let statement = "UPDATE bots SET withdrawn_at = $2 WHERE id = $1 AND withdrawn_at IS NULL";
    Ok(sqlx::query(statement).bind(bot.0).bind(now).execute(db).await?.rows_affected() == 1)
}
