//! Lists of bots with the states of their versions, and of versions with their trials.

use arbiter_proto::ids::{BotId, TokenId, TournamentId, VersionId};
use sqlx::postgres::PgRow;
use sqlx::{Error, FromRow, PgExecutor, Result, Row as _};
use time::OffsetDateTime;

use super::bots::Bot;
use super::trials::TrialState;
use super::versions::Version;

/// A version and the state of its trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriedVersion {
    /// The version.
    pub version: Version,
    /// The state of its trial; [`TrialState::Passed`] if it had none.
    pub state: TrialState,
    /// Why the version failed, or the reason of the last fault, in one line.
    pub verdict: Option<String>,
}

/// A bot with its current versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BotSummary {
    /// The bot.
    pub bot: Bot,
    /// The name of its tournament.
    pub tournament: String,
    /// The name of its owner's token. House bots have none.
    pub owner: Option<String>,
    /// Its newest version that entered.
    pub entered: Option<TriedVersion>,
    /// Its newest version, if this version has not entered.
    pub pending: Option<TriedVersion>,
}

impl BotSummary {
    /// The reason of the bot's suspension, if it is suspended.
    pub fn suspension_reason(&self) -> Option<&str> {
        self.bot.suspension_reason(self.entered.as_ref()?.version.id)
    }
}

/// The version whose columns begin with `prefix`, if there is one.
fn read_version(row: &PgRow, prefix: &str) -> Result<Option<TriedVersion>> {
    let column = |name: &str| format!("{prefix}_{name}");
    let Some(id) = row.try_get::<Option<i32>, _>(&*column("id"))? else { return Ok(None) };
    let version = Version {
        id: VersionId(id),
        bot: BotId(row.try_get(&*column("bot"))?),
        number: row.try_get(&*column("number"))?,
        digest: row.try_get(&*column("digest"))?,
        submitted_at: row.try_get(&*column("submitted_at"))?,
    };
    let state = row.try_get(&*column("state"))?;
    Ok(Some(TriedVersion { version, state, verdict: row.try_get(&*column("verdict"))? }))
}

impl FromRow<'_, PgRow> for TriedVersion {
    fn from_row(row: &PgRow) -> Result<Self> {
        read_version(row, "version")?.ok_or(Error::RowNotFound)
    }
}

impl FromRow<'_, PgRow> for BotSummary {
    fn from_row(row: &PgRow) -> Result<Self> {
        let newest = read_version(row, "newest")?;
        Ok(Self {
            bot: Bot::from_row(row)?,
            tournament: row.try_get("tournament_name")?,
            owner: row.try_get("owner_name")?,
            entered: read_version(row, "entered")?,
            pending: newest.filter(|newest| newest.state != TrialState::Passed),
        })
    }
}

/// A statement that selects bots `b` as [`BotSummary`], with the rest of the statement.
macro_rules! summaries {
    ($rest:literal) => {
        concat!(
            "SELECT b.*, tournament.name AS tournament_name, o.name AS owner_name,
                e.id AS entered_id, e.bot AS entered_bot, e.number AS entered_number,
                e.digest AS entered_digest, e.submitted_at AS entered_submitted_at,
                'passed'::trial_state AS entered_state, NULL::text AS entered_verdict,
                n.id AS newest_id, n.bot AS newest_bot, n.number AS newest_number,
                n.digest AS newest_digest, n.submitted_at AS newest_submitted_at,
                n.state AS newest_state, n.verdict AS newest_verdict
            FROM bots b
            JOIN tournaments AS tournament ON tournament.id = b.tournament
            LEFT JOIN tokens o ON o.id = b.owner
            LEFT JOIN LATERAL (
                SELECT v.* FROM versions v LEFT JOIN trials t ON t.version = v.id
                WHERE v.bot = b.id AND (t.state IS NULL OR t.state = 'passed')
                ORDER BY v.number DESC LIMIT 1
            ) AS e ON true
            LEFT JOIN LATERAL (
                SELECT v.*, coalesce(t.state, 'passed') AS state, t.verdict
                FROM versions v LEFT JOIN trials t ON t.version = v.id
                WHERE v.bot = b.id ORDER BY v.number DESC LIMIT 1
            ) AS n ON true ",
            $rest
        )
    };
}

/// The bots of a tournament in the order of their first submission. With `only`, only this bot.
pub async fn list(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    only: Option<BotId>,
) -> Result<Vec<BotSummary>> {
    let statement =
        summaries!("WHERE b.tournament = $1 AND ($2::int IS NULL OR b.id = $2) ORDER BY b.id");
    let query = sqlx::query_as(statement).bind(tournament);
    query.bind(only).fetch_all(db).await
}

/// The bots of an owner in all tournaments, most recently submitted first: at most `limit`.
/// Copies in rehearsals and tournaments that are being deleted are left out.
pub async fn of_owner(
    db: impl PgExecutor<'_>,
    owner: TokenId,
    limit: i64,
) -> Result<Vec<BotSummary>> {
    let statement = summaries!(
        "WHERE b.owner = $1 AND tournament.rehearsal_of IS NULL
            AND NOT EXISTS (SELECT FROM deleted_tournaments d WHERE d.tournament = b.tournament)
        ORDER BY n.submitted_at DESC, b.id DESC LIMIT $2"
    );
    sqlx::query_as(statement).bind(owner).bind(limit).fetch_all(db).await
}

/// A player who has submitted no bot to a tournament.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct InvitedPlayer {
    /// The name of the player's token.
    pub name: String,
    /// When the token was created.
    pub created_at: OffsetDateTime,
    /// When the token was last used, to within some minutes.
    pub used_at: Option<OffsetDateTime>,
    /// When the player last submitted a version to another tournament.
    pub submitted_at: Option<OffsetDateTime>,
}

/// The players with a token that is valid at this time, who have submitted no bot to a tournament,
/// in the order in which their tokens were created.
pub async fn invited(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    now: OffsetDateTime,
) -> Result<Vec<InvitedPlayer>> {
    let statement = "
        SELECT o.name, o.created_at, o.used_at, (
            SELECT max(v.submitted_at) FROM bots b JOIN versions v ON v.bot = b.id
            WHERE b.owner = o.id) AS submitted_at
        FROM tokens o
        WHERE o.role = 'player' AND o.revoked_at IS NULL
            AND (o.expires_at IS NULL OR o.expires_at > $2)
            AND NOT EXISTS (SELECT FROM bots b WHERE b.owner = o.id AND b.tournament = $1)
        ORDER BY o.id";
    sqlx::query_as(statement).bind(tournament).bind(now).fetch_all(db).await
}

/// All versions of a bot, newest first.
pub async fn versions(db: impl PgExecutor<'_>, bot: BotId) -> Result<Vec<TriedVersion>> {
    let statement = "
        SELECT v.id AS version_id, v.bot AS version_bot, v.number AS version_number,
            v.digest AS version_digest, v.submitted_at AS version_submitted_at,
            coalesce(t.state, 'passed') AS version_state, t.verdict AS version_verdict
        FROM versions v LEFT JOIN trials t ON t.version = v.id
        WHERE v.bot = $1 ORDER BY v.number DESC";
    sqlx::query_as(statement).bind(bot).fetch_all(db).await
}
