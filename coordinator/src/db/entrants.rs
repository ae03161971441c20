//! The entrants of an edition by name.

use arbiter_proto::ids::{BotId, EditionId, TournamentId, VersionId};
use arbiter_ranking::Entrant;
use sqlx::{FromRow, PgExecutor, Result};

/// The entrants of an edition, entrant 0 first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster(Vec<EntrantInfo>);

/// The public description of an entrant.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct EntrantInfo {
    /// The bot.
    pub bot: BotId,
    /// Its name.
    pub name: String,
    /// The number of the version that plays.
    pub version: i32,
    /// BLAKE3 of its bundle.
    pub digest: Vec<u8>,
    /// BLAKE3 of the bundle that is run: the bundle that its trial built, or else the submitted
    /// one.
    pub program: Vec<u8>,
    /// The token of its owner. House bots have none.
    pub owner: Option<i32>,
}

impl Roster {
    /// The roster of this edition.
    pub async fn of(db: impl PgExecutor<'_>, edition: EditionId) -> Result<Self> {
        let statement = "
            SELECT b.id AS bot, b.name, v.number AS version, v.digest, b.owner,
                coalesce(t.program, v.digest) AS program
            FROM entrants e JOIN versions v ON v.id = e.version JOIN bots b ON b.id = e.bot
            LEFT JOIN trials t ON t.version = v.id
            WHERE e.edition = $1 ORDER BY e.entrant";
        sqlx::query_as(statement).bind(edition).fetch_all(db).await.map(Self)
    }

    /// An entrant. The roster contains every entrant of the edition's matches.
    pub fn get(&self, entrant: Entrant) -> Option<&EntrantInfo> {
        usize::try_from(entrant.0).ok().and_then(|index| self.0.get(index))
    }

    /// All entrants, entrant 0 first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Entrant, &EntrantInfo)> {
        let with_number = |(index, info)| (Entrant(i32::try_from(index).unwrap_or(i32::MAX)), info);
        self.0.iter().enumerate().map(with_number)
    }

    /// The entrant whose bot has this name.
    pub fn find(&self, name: &str) -> Option<Entrant> {
        self.iter().find(|(_, info)| info.name == name).map(|(entrant, _)| entrant)
    }
}

impl EntrantInfo {
    /// A submitted version, described like an entrant. It need not have entered.
    pub async fn of_version(db: impl PgExecutor<'_>, version: VersionId) -> Result<Self> {
        let statement = "
            SELECT b.id AS bot, b.name, v.number AS version, v.digest, b.owner,
                coalesce(t.program, v.digest) AS program
            FROM versions v JOIN bots b ON b.id = v.bot LEFT JOIN trials t ON t.version = v.id
            WHERE v.id = $1";
        sqlx::query_as(statement).bind(version).fetch_one(db).await
    }

    /// The house bots of a tournament that take part, in the order of their first submissions.
    pub async fn of_house(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<Vec<Self>> {
        let statement = "
            SELECT DISTINCT ON (b.id) b.id AS bot, b.name, v.number AS version, v.digest, b.owner,
                coalesce(t.program, v.digest) AS program
            FROM bots b JOIN versions v ON v.bot = b.id LEFT JOIN trials t ON t.version = v.id
            WHERE b.tournament = $1 AND b.owner IS NULL AND b.withdrawn_at IS NULL
                AND (t.state IS NULL OR t.state = 'passed')
            ORDER BY b.id, v.number DESC";
        sqlx::query_as(statement).bind(tournament).fetch_all(db).await
    }
}

/// The editions of a bot, newest first, with its entrant number in each.
pub async fn editions_of(db: impl PgExecutor<'_>, bot: BotId) -> Result<Vec<(EditionId, Entrant)>> {
    let statement = "SELECT edition, entrant FROM entrants WHERE bot = $1 ORDER BY edition DESC";
    let rows: Vec<(EditionId, i32)> = sqlx::query_as(statement).bind(bot).fetch_all(db).await?;
    Ok(rows.into_iter().map(|(edition, entrant)| (edition, Entrant(entrant))).collect())
}
