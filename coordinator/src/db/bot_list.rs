//! Lists of bots with the states of their versions, and of versions with their trials.

use arbiter_proto::ids::{BotId, TournamentId, VersionId};
use sqlx::postgres::PgRow;
use sqlx::{Error, FromRow, PgExecutor, Result, Row as _};

use super::bots::Bot;
use super::trials::TrialState;
use super::versions::Version;

/// A version and the state of its trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The version.
    pub version: Version,
    /// The state of its trial; passed, if it had none.
    pub state: TrialState,
    /// Why it failed, in one line, or why it could not be tried the last time.
    pub verdict: Option<String>,
}

/// A bot with its current versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The bot.
    pub bot: Bot,
    /// The name of its owner's token. House bots have none.
    pub owner: Option<String>,
    /// Its newest version that entered.
    pub entered: Option<Tried>,
    /// Its newest version of all, if that has not entered.
    pub pending: Option<Tried>,
}

impl Listed {
    /// The reason of the bot's suspension, if it is suspended.
    pub fn stood_down(&self) -> Option<&str> {
        self.bot.stood_down(self.entered.as_ref()?.version.id)
    }
}

/// The version whose columns begin with `prefix`, if there is one.
fn tried(row: &PgRow, prefix: &str) -> Result<Option<Tried>> {
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
    Ok(Some(Tried { version, state, verdict: row.try_get(&*column("verdict"))? }))
}

impl FromRow<'_, PgRow> for Tried {
    fn from_row(row: &PgRow) -> Result<Self> {
        tried(row, "version")?.ok_or(Error::RowNotFound)
    }
}

impl FromRow<'_, PgRow> for Listed {
    fn from_row(row: &PgRow) -> Result<Self> {
        let newest = tried(row, "newest")?;
        Ok(Self {
            bot: Bot::from_row(row)?,
            owner: row.try_get("owner_name")?,
            entered: tried(row, "entered")?,
            pending: newest.filter(|newest| newest.state != TrialState::Passed),
        })
    }
}

/// The bots of a tournament in the order of their first submission, or one of them.
pub async fn list(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    only: Option<BotId>,
) -> Result<Vec<Listed>> {
    let statement = "
        SELECT b.*, o.name AS owner_name,
            e.id AS entered_id, e.bot AS entered_bot, e.number AS entered_number,
            e.digest AS entered_digest, e.submitted_at AS entered_submitted_at,
            'passed'::trial_state AS entered_state, NULL::text AS entered_verdict,
            n.id AS newest_id, n.bot AS newest_bot, n.number AS newest_number,
            n.digest AS newest_digest, n.submitted_at AS newest_submitted_at,
            n.state AS newest_state, n.verdict AS newest_verdict
        FROM bots b
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
        ) AS n ON true
        WHERE b.tournament = $1 AND ($2::int IS NULL OR b.id = $2)
        ORDER BY b.id";
    let query = sqlx::query_as(statement).bind(tournament);
    query.bind(only).fetch_all(db).await
}

/// All versions of a bot, the newest first.
pub async fn versions(db: impl PgExecutor<'_>, bot: BotId) -> Result<Vec<Tried>> {
    let statement = "
        SELECT v.id AS version_id, v.bot AS version_bot, v.number AS version_number,
            v.digest AS version_digest, v.submitted_at AS version_submitted_at,
            coalesce(t.state, 'passed') AS version_state, t.verdict AS version_verdict
        FROM versions v LEFT JOIN trials t ON t.version = v.id
        WHERE v.bot = $1 ORDER BY v.number DESC";
    sqlx::query_as(statement).bind(bot).fetch_all(db).await
}
