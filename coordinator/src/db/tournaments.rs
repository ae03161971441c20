//! Tournaments: a game with its settings, its seed and its state.

use arbiter_games::{Game, Games, Seed, string_enum};
use arbiter_proto::ids::{EditionId, TournamentId};
use arbiter_schedule::Schedule;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::postgres::PgRow;
use sqlx::{Error, FromRow, PgConnection, PgExecutor, Result, Row as _};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::edition_triggers;
use crate::game_package::{self, GameError};

string_enum! {
    /// The state of a tournament.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::Type)]
    #[sqlx(type_name = "tournament_state", rename_all = "lowercase")]
    pub enum TournamentState {
        /// Bots can be submitted, and editions run.
        Open = "open",
        /// It is over, and its seed is public.
        Closed = "closed",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

string_enum! {
    /// When everyone may see the records of played matches. Organisers see all records at any time,
    /// and owners see those of their bots.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, sqlx::Type)]
    #[serde(rename_all = "snake_case")]
    #[sqlx(type_name = "text", rename_all = "snake_case")]
    pub enum Replays {
        /// Never. Tournaments of former versions have this value.
        #[default]
        Never = "never",
        /// When the tournament is over.
        AfterClose = "after_close",
        /// As soon as the match is over.
        Always = "always",
    }
}

/// What the public sees of a tournament besides its results. These values have separate columns,
/// because a coordinator of the former release refuses unknown keys of the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Presentation {
    /// One line for people: at most 100 characters.
    pub title: Option<String>,
    /// Markdown: at most 20 000 bytes.
    pub description: Option<String>,
    /// When everyone may see the records of played matches.
    pub replays: Replays,
}

/// A new tournament.
#[derive(Clone, Debug)]
pub struct NewTournament<'a> {
    /// Its name, which is unique.
    pub name: &'a str,
    /// Its game.
    pub game: &'a str,
    /// The tournament file without its seed.
    pub settings: &'a Value,
    /// The seed of all its randomness.
    pub seed: Seed,
    /// The hash of the seed, which is published at once.
    pub seed_hash: [u8; 32],
    /// The public beacon that it names, if any.
    pub beacon: Option<&'a str>,
    /// What the public sees of it.
    pub presentation: &'a Presentation,
    /// The name of the tournament that it rehearses, if it is a rehearsal.
    pub rehearsal_of: Option<&'a str>,
}

/// A public beacon: a value that a third party publishes after entry has closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beacon {
    /// Where and when it is published, from the tournament file.
    pub name: String,
    /// Its value, once it is known.
    pub value: Option<BeaconValue>,
}

/// The value of a beacon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeaconValue {
    /// The value as entered, without leading and trailing white space.
    pub text: String,
    /// When it was entered.
    pub given_at: OffsetDateTime,
    /// The number of the first edition whose seed is derived from it.
    pub first_edition: i32,
    /// The seed of that edition and later ones.
    pub seed: Seed,
}

/// What a rehearsal knows about the tournament that it rehearses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rehearsal {
    /// The name of that tournament.
    pub original: String,
    /// The state of that tournament. None if it was deleted.
    pub original_state: Option<TournamentState>,
    /// From when on the public sees no newer leaderboard of that tournament, while it is open.
    pub freeze: Option<OffsetDateTime>,
}

/// A tournament.
#[derive(Clone, Debug, PartialEq)]
pub struct Tournament {
    /// Its identity.
    pub id: TournamentId,
    /// Its name.
    pub name: String,
    /// Its game.
    pub game: String,
    /// The tournament file without its seed.
    pub settings: Value,
    /// The committed seed of all its randomness: secret while the tournament is open.
    pub seed: Seed,
    /// The hash of the committed seed.
    pub seed_hash: Vec<u8>,
    /// The public beacon that it names, if any.
    pub beacon: Option<Beacon>,
    /// Its state.
    pub state: TournamentState,
    /// When it was created.
    pub created_at: OffsetDateTime,
    /// When it was closed or cancelled.
    pub ended_at: Option<OffsetDateTime>,
    /// Why the last due edition could not be opened.
    pub last_error: Option<String>,
    /// What the public sees of it.
    pub presentation: Presentation,
    /// What it rehearses, if it is a rehearsal.
    pub rehearsal: Option<Rehearsal>,
}

impl Tournament {
    /// Whether the public sees what it sees only after the end: the tournament is over, and so is
    /// the one that it rehearses.
    pub fn is_revealed(&self) -> bool {
        let original = self.rehearsal.as_ref().and_then(|rehearsal| rehearsal.original_state);
        self.state != TournamentState::Open && original != Some(TournamentState::Open)
    }

    /// Whether its last complete edition is official. A rehearsal has no official edition, and a
    /// cancelled tournament no longer has one.
    pub fn has_official_edition(&self) -> bool {
        self.rehearsal.is_none() && self.state != TournamentState::Cancelled
    }

    /// Its game: one of these, or its package.
    ///
    /// # Errors
    /// If there is no such game, or the stored package is not valid.
    pub fn game(&self, games: &Games) -> Result<Game, GameError> {
        let package = game_package::of_settings(&self.settings)?;
        game_package::find(games, &self.game, package.as_ref())
    }

    /// A hash of its settings, which changes with every edit.
    pub fn revision(&self) -> [u8; 32] {
        let Presentation { title, description, replays } = &self.presentation;
        let parts = json!([self.settings, title, description, replays]);
        *blake3::hash(parts.to_string().as_bytes()).as_bytes()
    }

    /// A seed for random numbers of an analysis. It is public from the beginning, so that every
    /// user can repeat the analysis.
    ///
    /// # Errors
    /// If the stored hash is damaged.
    pub fn public_seed(&self, analysis: &str) -> Result<Seed> {
        let hash: Result<[u8; 32], _> = self.seed_hash.as_slice().try_into();
        let hash = hash.map_err(|_| Error::Decode("the hash of a seed has 32 bytes".into()))?;
        Ok(Seed(hash).derive(analysis))
    }

    /// The number of episodes of an edition, in games with episodes.
    pub fn episodes(&self) -> Option<u32> {
        match Schedule::deserialize(self.settings.get("schedule")?).ok()? {
            Schedule::Episodes(episodes) => Some(episodes.episodes.get()),
            _ => None,
        }
    }

    /// The value of its beacon, once it is known.
    pub fn beacon_value(&self) -> Option<&BeaconValue> {
        self.beacon.as_ref()?.value.as_ref()
    }

    /// The seed of the edition with this number.
    pub fn edition_seed(&self, edition: i32) -> Seed {
        match self.beacon_value() {
            Some(value) if edition >= value.first_edition => value.seed,
            _ => self.seed,
        }
    }

    /// The seed of the next edition.
    pub fn next_seed(&self) -> Seed {
        self.edition_seed(i32::MAX)
    }
}

fn seed(bytes: Vec<u8>) -> Result<Seed> {
    bytes.try_into().map(Seed).map_err(|_| Error::Decode("a seed has 32 bytes".into()))
}

/// The beacon of a tournament. `next_seed` is the seed of its next edition.
fn beacon(row: &PgRow, next_seed: Seed) -> Result<Option<Beacon>> {
    let Some(name) = row.try_get("beacon")? else { return Ok(None) };
    let value = match row.try_get("beacon_value")? {
        Some(text) => Some(BeaconValue {
            text,
            given_at: row.try_get("beacon_given_at")?,
            first_edition: row.try_get("beacon_from")?,
            seed: next_seed,
        }),
        None => None,
    };
    Ok(Some(Beacon { name, value }))
}

/// What a tournament rehearses.
fn rehearsal(row: &PgRow) -> Result<Option<Rehearsal>> {
    let Some(original) = row.try_get("rehearsal_of")? else { return Ok(None) };
    let original_state = row.try_get("original_state")?;
    let freeze: Option<String> = row.try_get("original_freeze")?;
    let freeze = freeze.filter(|_| original_state == Some(TournamentState::Open));
    let freeze = freeze.and_then(|text| OffsetDateTime::parse(&text, &Rfc3339).ok());
    Ok(Some(Rehearsal { original, original_state, freeze }))
}

impl FromRow<'_, PgRow> for Tournament {
    fn from_row(row: &PgRow) -> Result<Self> {
        let next_seed = seed(row.try_get("seed")?)?;
        let committed: Option<Vec<u8>> = row.try_get("committed_seed")?;
        Ok(Self {
            id: row.try_get("id")?,
            name: row.try_get("name")?,
            game: row.try_get("game")?,
            settings: row.try_get("settings")?,
            seed: committed.map(seed).transpose()?.unwrap_or(next_seed),
            seed_hash: row.try_get("seed_hash")?,
            beacon: beacon(row, next_seed)?,
            state: row.try_get("state")?,
            created_at: row.try_get("created_at")?,
            ended_at: row.try_get("ended_at")?,
            last_error: row.try_get("last_error")?,
            presentation: Presentation {
                title: row.try_get("title")?,
                description: row.try_get("description")?,
                replays: row.try_get("replays")?,
            },
            rehearsal: rehearsal(row)?,
        })
    }
}

/// A statement that selects tournaments that are not deleted. It names the columns, so that a later
/// version may add columns while this version runs.
macro_rules! existing {
    ($condition:literal) => {
        existing!("t.settings", $condition)
    };
    ($settings:literal, $condition:literal) => {
        concat!(
            "SELECT t.id, t.name, t.game, ",
            $settings,
            ", t.seed, t.seed_hash, t.state, t.created_at,
                t.ended_at, t.last_error, t.beacon, t.beacon_value, t.beacon_given_at, t.beacon_from,
                t.committed_seed, t.title, t.description, t.replays, t.rehearsal_of,
                o.state AS original_state,
                o.settings #>> '{submissions,freeze}' AS original_freeze
            FROM tournaments t
            LEFT JOIN tournaments o ON o.name = t.rehearsal_of AND o.created_at <= t.created_at
            WHERE NOT EXISTS (SELECT FROM deleted_tournaments d WHERE d.tournament = t.id) ",
            $condition
        )
    };
}

/// Creates a tournament.
///
/// # Errors
/// If another tournament has its name, or a value is invalid.
pub async fn create(
    db: impl PgExecutor<'_>,
    new: &NewTournament<'_>,
    now: OffsetDateTime,
) -> Result<TournamentId> {
    let statement = "
        INSERT INTO tournaments (name, game, settings, seed, seed_hash, created_at, beacon, title,
            description, replays, rehearsal_of)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING id";
    let Presentation { title, description, replays } = new.presentation;
    sqlx::query_scalar(statement)
        .bind(new.name)
        .bind(new.game)
        .bind(new.settings)
        .bind(new.seed.0.as_slice())
        .bind(new.seed_hash.as_slice())
        .bind(now)
        .bind(new.beacon)
        .bind(title)
        .bind(description)
        .bind(replays)
        .bind(new.rehearsal_of)
        .fetch_one(db)
        .await
}

/// Stores the value of a tournament's beacon and the seed derived from it, which the next and later
/// editions use. Returns `false` if there was a value already. The caller has locked the
/// tournament.
pub async fn set_beacon(
    db: impl PgExecutor<'_>,
    id: TournamentId,
    (value, seed): (&str, Seed),
    now: OffsetDateTime,
) -> Result<bool> {
    let statement = "
        UPDATE tournaments SET committed_seed = seed, seed = $3, beacon_value = $2,
            beacon_given_at = $4, beacon_from = 1 + (
                SELECT coalesce(max(number), 0) FROM editions WHERE tournament = $1)
        WHERE id = $1 AND beacon IS NOT NULL AND beacon_value IS NULL AND state = 'open'";
    let query = sqlx::query(statement).bind(id).bind(value).bind(seed.0.as_slice()).bind(now);
    Ok(query.execute(db).await?.rows_affected() == 1)
}

/// The tournament of this name.
pub async fn find(db: impl PgExecutor<'_>, name: &str) -> Result<Option<Tournament>> {
    let statement = existing!("AND t.name = $1");
    sqlx::query_as(statement).bind(name).fetch_optional(db).await
}

/// The tournament with this identity.
pub async fn get(db: impl PgExecutor<'_>, id: TournamentId) -> Result<Option<Tournament>> {
    let statement = existing!("AND t.id = $1");
    sqlx::query_as(statement).bind(id).fetch_optional(db).await
}

/// The tournament with this identity, locked until the transaction ends. Transactions that open or
/// end editions of it, or end it, wait. Bots may be submitted meanwhile.
pub async fn lock(db: &mut PgConnection, id: TournamentId) -> Result<Option<Tournament>> {
    // A transaction that opens an edition may hold the lock for a while.
    sqlx::query("SET LOCAL lock_timeout = '60s'").execute(&mut *db).await?;
    // Takes the lock first, so that the next statement sees all changes of the previous holder.
    let statement = "SELECT FROM tournaments WHERE id = $1 FOR NO KEY UPDATE";
    sqlx::query(statement).bind(id).execute(&mut *db).await?;
    get(db, id).await
}

/// The tournament of an edition, with the settings of the edition.
pub async fn of_edition(db: impl PgExecutor<'_>, edition: EditionId) -> Result<Tournament> {
    let statement = existing!(
        "coalesce((SELECT s.settings FROM edition_settings s WHERE s.edition = $1), t.settings)
            AS settings",
        "AND t.id = (SELECT e.tournament FROM editions e WHERE e.id = $1)"
    );
    sqlx::query_as(statement).bind(edition).fetch_one(db).await
}

/// All tournaments, newest first.
pub async fn list(db: impl PgExecutor<'_>) -> Result<Vec<Tournament>> {
    sqlx::query_as(existing!("ORDER BY t.id DESC")).fetch_all(db).await
}

/// The names of the rehearsals of a tournament, newest first.
pub async fn rehearsals(db: impl PgExecutor<'_>, original: &Tournament) -> Result<Vec<String>> {
    let statement = "
        SELECT t.name FROM tournaments t
        WHERE t.rehearsal_of = $1 AND t.created_at >= $2
          AND NOT EXISTS (SELECT FROM deleted_tournaments d WHERE d.tournament = t.id)
        ORDER BY t.id DESC";
    let query = sqlx::query_scalar(statement).bind(&original.name).bind(original.created_at);
    query.fetch_all(db).await
}

/// Replaces the settings of a tournament and what the public sees of it, in the transaction that
/// has locked it. Editions that keep earlier settings (those with another game package, or with
/// another value of `house.ranked`) get its rules of entry, its audits and its expected time: none
/// of these decide a match.
pub async fn edit(
    db: &mut PgConnection,
    id: TournamentId,
    settings: &Value,
    presentation: &Presentation,
) -> Result<()> {
    let Presentation { title, description, replays } = presentation;
    let statement = "
        UPDATE tournaments SET settings = $2, title = $3, description = $4, replays = $5
        WHERE id = $1";
    let query = sqlx::query(statement).bind(id).bind(settings).bind(title).bind(description);
    query.bind(replays).execute(&mut *db).await?;
    let statement = "
        UPDATE edition_settings s SET settings = s.settings - $2::text[] || (
            SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM jsonb_each($3)
            WHERE key = ANY ($2))
        FROM editions e WHERE e.id = s.edition AND e.tournament = $1";
    let keys = ["submissions", "audit", "rerun", "expected"];
    sqlx::query(statement).bind(id).bind(&keys[..]).bind(settings).execute(db).await.map(drop)
}

/// Records that a tournament changed, so that a new edition becomes due: a version entered, a bot
/// was withdrawn, or a match became void. Call it in the transaction of the change.
pub async fn mark_changed(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    now: OffsetDateTime,
) -> Result<()> {
    edition_triggers::add(db, tournament, now).await
}

/// Records why no edition could be opened. With `None`, clears the reason.
pub async fn set_last_error(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    last_error: Option<&str>,
) -> Result<()> {
    let statement = "
        UPDATE tournaments SET last_error = left($2, 4000)
        WHERE id = $1 AND last_error IS DISTINCT FROM left($2, 4000)";
    sqlx::query(statement).bind(tournament).bind(last_error).execute(db).await.map(drop)
}

/// Closes or cancels an open tournament. Returns whether it was open.
pub async fn end(
    db: impl PgExecutor<'_>,
    id: TournamentId,
    state: TournamentState,
    now: OffsetDateTime,
) -> Result<bool> {
    let statement =
        "UPDATE tournaments SET state = $2, ended_at = $3 WHERE id = $1 AND state = 'open'";
    let result = sqlx::query(statement).bind(id).bind(state).bind(now).execute(db).await?;
    Ok(result.rows_affected() == 1)
}
