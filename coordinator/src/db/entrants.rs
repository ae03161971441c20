//! The entrants of an edition by name.

use std::collections::HashMap;

use arbiter_proto::ids::{BotId, EditionId, TournamentId, VersionId};
use arbiter_ranking::Entrant;
use sqlx::{FromRow, PgExecutor, Result};

/// The entrants of an edition, in the order of its schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster {
    infos: Vec<EntrantInfo>,
    /// Where each entrant stands in `infos`.
    places: HashMap<Entrant, usize>,
}

/// The public description of an entrant.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct EntrantInfo {
    /// The bot and its program, the same in all editions.
    #[sqlx(try_from = "i32")]
    pub entrant: Entrant,
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
    /// The name of that token.
    pub owner_name: Option<String>,
}

impl Roster {
    /// The roster of this edition.
    pub async fn of(db: impl PgExecutor<'_>, edition: EditionId) -> Result<Self> {
        let statement = "
            SELECT e.entrant, b.id AS bot, b.name, v.number AS version, v.digest, b.owner,
                (SELECT name FROM tokens WHERE id = b.owner) AS owner_name,
                coalesce(t.program, v.digest) AS program
            FROM entrants e JOIN versions v ON v.id = e.version JOIN bots b ON b.id = e.bot
            LEFT JOIN trials t ON t.version = v.id
            WHERE e.edition = $1 ORDER BY e.place";
        let infos: Vec<EntrantInfo> = sqlx::query_as(statement).bind(edition).fetch_all(db).await?;
        let places = infos.iter().enumerate().map(|(place, info)| (info.entrant, place)).collect();
        Ok(Self { infos, places })
    }

    /// An entrant. The roster contains every entrant of the edition's matches.
    pub fn get(&self, entrant: Entrant) -> Option<&EntrantInfo> {
        self.place(entrant).map(|place| &self.infos[place])
    }

    /// Where an entrant stands in the schedule, from 0.
    pub fn place(&self, entrant: Entrant) -> Option<usize> {
        self.places.get(&entrant).copied()
    }

    /// All entrants, in the order of the schedule.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Entrant, &EntrantInfo)> {
        self.infos.iter().map(|info| (info.entrant, info))
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
            SELECT v.id AS entrant, b.id AS bot, b.name, v.number AS version, v.digest, b.owner,
                (SELECT name FROM tokens WHERE id = b.owner) AS owner_name,
                coalesce(t.program, v.digest) AS program
            FROM versions v JOIN bots b ON b.id = v.bot LEFT JOIN trials t ON t.version = v.id
            WHERE v.id = $1";
        sqlx::query_as(statement).bind(version).fetch_one(db).await
    }

    /// The house bots of a tournament that take part, in the order of their first submissions.
    pub async fn of_house(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<Vec<Self>> {
        let statement = "
            SELECT DISTINCT ON (b.id) v.id AS entrant, b.id AS bot, b.name, v.number AS version,
                v.digest, b.owner,
                (SELECT name FROM tokens WHERE id = b.owner) AS owner_name, coalesce(t.program, v.digest) AS program
            FROM bots b JOIN versions v ON v.bot = b.id LEFT JOIN trials t ON t.version = v.id
            WHERE b.tournament = $1 AND b.owner IS NULL AND b.withdrawn_at IS NULL
                AND (t.state IS NULL OR t.state = 'passed')
            ORDER BY b.id, v.number DESC";
        sqlx::query_as(statement).bind(tournament).fetch_all(db).await
    }
}

/// The bots in these seats, in the order of `seats`.
pub async fn of_seats(db: impl PgExecutor<'_>, seats: &[Entrant]) -> Result<Vec<EntrantInfo>> {
    let statement = "
        SELECT v.id AS entrant, b.id AS bot, b.name, v.number AS version, v.digest, b.owner,
                (SELECT name FROM tokens WHERE id = b.owner) AS owner_name,
            coalesce(t.program, v.digest) AS program
        FROM unnest($1::int[]) WITH ORDINALITY AS u (entrant, seat)
        JOIN versions v ON v.id = u.entrant JOIN bots b ON b.id = v.bot
        LEFT JOIN trials t ON t.version = v.id ORDER BY u.seat";
    let seats: Vec<_> = seats.iter().map(|entrant| entrant.0).collect();
    sqlx::query_as(statement).bind(seats).fetch_all(db).await
}

/// The editions of a bot, newest first, with its entrant in each.
pub async fn editions_of(db: impl PgExecutor<'_>, bot: BotId) -> Result<Vec<(EditionId, Entrant)>> {
    let statement = "SELECT edition, entrant FROM entrants WHERE bot = $1 ORDER BY edition DESC";
    let rows: Vec<(EditionId, i32)> = sqlx::query_as(statement).bind(bot).fetch_all(db).await?;
    Ok(rows.into_iter().map(|(edition, entrant)| (edition, Entrant(entrant))).collect())
}
