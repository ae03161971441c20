//! The entrants of an edition by name.

use arbiter_proto::ids::{BotId, EditionId, Entrant};
use sqlx::{Error, FromRow, PgExecutor};

/// Who takes part in an edition: entrant 0 first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster(Vec<Named>);

/// An entrant as others know it.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Named {
    /// The bot.
    #[sqlx(try_from = "i32")]
    pub bot: BotId,
    /// Its name.
    pub name: String,
    /// The number of the version that plays.
    pub version: i32,
    /// BLAKE3 of its bundle.
    pub digest: Vec<u8>,
    /// The token of its owner; none owns a house bot.
    pub owner: Option<i32>,
}

impl Roster {
    /// Who takes part in this edition.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn of(db: impl PgExecutor<'_>, edition: EditionId) -> Result<Self, Error> {
        let statement = "
            SELECT b.id AS bot, b.name, v.number AS version, v.digest, b.owner
            FROM entrants e JOIN versions v ON v.id = e.version JOIN bots b ON b.id = e.bot
            WHERE e.edition = $1 ORDER BY e.entrant";
        sqlx::query_as(statement).bind(edition.0).fetch_all(db).await.map(Self)
    }

    /// An entrant; every one in a match of the edition is on its roster.
    pub fn get(&self, entrant: Entrant) -> Option<&Named> {
        usize::try_from(entrant.0).ok().and_then(|index| self.0.get(index))
    }

    /// All of them, entrant 0 first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Entrant, &Named)> {
        let numbered =
            |(number, named)| (Entrant(i32::try_from(number).unwrap_or(i32::MAX)), named);
        self.0.iter().enumerate().map(numbered)
    }

    /// The entrant whose bot has this name.
    pub fn find(&self, name: &str) -> Option<Entrant> {
        self.iter().find(|(_, named)| named.name == name).map(|(entrant, _)| entrant)
    }
}

/// The editions in which a bot takes part, the newest first, and its number in each.
///
/// # Errors
/// If the database fails.
pub async fn editions_of(
    db: impl PgExecutor<'_>,
    bot: BotId,
) -> Result<Vec<(EditionId, Entrant)>, Error> {
    let statement = "SELECT edition, entrant FROM entrants WHERE bot = $1 ORDER BY edition DESC";
    let found: Vec<(i32, i32)> = sqlx::query_as(statement).bind(bot.0).fetch_all(db).await?;
    Ok(found.into_iter().map(|(edition, entrant)| (EditionId(edition), Entrant(entrant))).collect())
}
