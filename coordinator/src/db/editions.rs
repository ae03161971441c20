//! Editions: complete schedules over fixed versions, and their progress.
//!
//! An edition consists of the matches of its tournament before its end, without those that are
//! absent from it ([`EditionScope`]).

use arbiter_games::{Game, Games, string_enum};
use arbiter_proto::ids::{BotId, EditionId, MatchId, MatchNumber, TournamentId, VersionId};
use arbiter_ranking::Entrant;
use sqlx::postgres::PgArguments;
use sqlx::{Arguments as _, Error, FromRow, PgConnection, PgExecutor, Result};
use time::OffsetDateTime;

use super::{invalidated_matches, tournaments};

string_enum! {
    /// The state of an edition.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::Type)]
    #[sqlx(type_name = "edition_state", rename_all = "lowercase")]
    pub enum EditionState {
        /// Its matches are being planned.
        Planning = "planning",
        /// Its matches are being played.
        Running = "running",
        /// All its matches are counted.
        Complete = "complete",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

/// An edition.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Edition {
    /// Its identity.
    pub id: EditionId,
    /// Its tournament.
    pub tournament: TournamentId,
    /// Its number in the tournament, from 1.
    pub number: i32,
    /// The number of components of a seat's score.
    pub components: i16,
    /// Its state.
    pub state: EditionState,
    /// The first match that it added.
    pub first_match: i64,
    /// The number after the last match that it added.
    pub end_match: i64,
    /// It has no match before this one.
    pub from_match: i64,
    /// Number of matches planned until now.
    pub matches: i64,
    /// Whether more matches are planned after the results of these.
    pub open_ended: bool,
    /// What identifies the rules ([`Game::rules_identity`]).
    pub rules: String,
    /// Number of matches in its standings.
    pub counted: i64,
    /// When it was opened.
    pub created_at: OffsetDateTime,
    /// When it was completed or cancelled.
    pub ended_at: Option<OffsetDateTime>,
}

impl Edition {
    /// Which matches it consists of.
    pub fn scope(&self) -> EditionScope {
        let Self { id, tournament, number, from_match: from, end_match: end, .. } = *self;
        EditionScope { id, tournament, number, from, end }
    }
}

/// Which matches of its tournament an edition consists of: those before `end`, without the absent
/// ones (`members!`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct EditionScope {
    /// The edition.
    pub id: EditionId,
    /// Its tournament.
    pub tournament: TournamentId,
    /// Its number in the tournament, from 1.
    pub number: i32,
    /// It has no match before this one. Lists of its matches begin here, because after a wholly new
    /// plan millions of absent matches may come first.
    #[sqlx(rename = "from_match")]
    pub from: i64,
    /// The number after its last match.
    #[sqlx(rename = "end_match")]
    pub end: i64,
}

impl EditionScope {
    /// The first arguments of a statement with `members!`.
    pub(crate) fn arguments(self) -> PgArguments {
        let mut arguments = PgArguments::default();
        let Self { tournament, number, end, .. } = self;
        let added = arguments
            .add(tournament)
            .and_then(|()| arguments.add(number))
            .and_then(|()| arguments.add(end));
        added.expect("integers can be encoded");
        arguments
    }
}

/// The condition that the match of a row belongs to an edition, where `$1` to `$3` are the
/// [`EditionScope::arguments`].
///
/// `OFFSET 0` prevents an anti-join, of which Postgres expects nearly no rows. For a page of
/// matches it would read all of them and sort.
macro_rules! members {
    ($row:literal) => {
        concat!(
            $row,
            ".tournament = $1 AND ",
            $row,
            ".number < $3 AND NOT EXISTS (
                SELECT FROM absences absent
                WHERE absent.tournament = $1 AND absent.number = ",
            $row,
            ".number AND absent.since <= $2 AND (absent.until IS NULL OR absent.until > $2) OFFSET 0)"
        )
    };
}
pub(crate) use members;

/// The scope of an edition.
pub async fn scope(db: impl PgExecutor<'_>, id: EditionId) -> Result<EditionScope> {
    let statement = "
        SELECT id, tournament, number, from_match, end_match FROM editions WHERE id = $1";
    sqlx::query_as(statement).bind(id).fetch_one(db).await
}

/// The edition that added a match. Its seed and rules are those of the match.
pub async fn adding(db: impl PgExecutor<'_>, id: MatchId) -> Result<EditionId> {
    let statement = "
        SELECT id FROM editions WHERE tournament = $1 AND first_match <= $2 AND end_match > $2";
    sqlx::query_scalar(statement).bind(id.tournament).bind(id.number).fetch_one(db).await
}

/// Which edition of a tournament added each match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddingEditions(Vec<(i64, i32)>);

impl AddingEditions {
    /// Those of the matches of this edition.
    pub async fn of(db: impl PgExecutor<'_>, edition: EditionScope) -> Result<Self> {
        let statement = "
            SELECT first_match, number FROM editions WHERE tournament = $1 AND number <= $2
            ORDER BY number";
        let query = sqlx::query_as(statement).bind(edition.tournament).bind(edition.number);
        Ok(Self(query.fetch_all(db).await?))
    }

    /// The number of the edition that added this match.
    pub fn of_match(&self, number: MatchNumber) -> Option<i32> {
        // An edition that added no match begins where the next one does.
        let later = self.0.partition_point(|(first, _)| *first <= number.0);
        self.0[..later].last().map(|(_, edition)| *edition)
    }
}

/// The newest complete edition in which a version of a bot takes part, of those that ended by
/// `ended_by`; if there is none, the newest edition with it that ended by then. Without a time, of
/// all editions.
pub async fn with_version(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    bot: &str,
    version: i32,
    ended_by: Option<OffsetDateTime>,
) -> Result<Option<i32>> {
    let statement = "
        SELECT e.number FROM bots b
        JOIN versions v ON v.bot = b.id AND v.number = $3
        JOIN entrants n ON n.version = v.id
        JOIN editions e ON e.id = n.edition
        WHERE b.tournament = $1 AND b.name = $2 AND ($4::timestamptz IS NULL OR e.ended_at <= $4)
        ORDER BY e.state = 'complete' DESC, e.number DESC LIMIT 1";
    let query = sqlx::query_scalar(statement).bind(tournament).bind(bot).bind(version);
    query.bind(ended_by).fetch_optional(db).await
}

/// Whether an edition before this one has the same rules and seed, and so may have some of its
/// matches.
pub async fn has_comparable(db: impl PgExecutor<'_>, edition: EditionScope) -> Result<bool> {
    let statement = "
        SELECT EXISTS (
            SELECT FROM editions this
            JOIN tournaments t ON t.id = this.tournament
            JOIN editions e ON e.tournament = this.tournament AND e.number < this.number
                AND e.rules = this.rules AND e.end_match > e.first_match
                AND same_seed(e.number, this.number, t.beacon_from)
            WHERE this.id = $1)";
    sqlx::query_scalar(statement).bind(edition.id).fetch_one(db).await
}

/// An entrant of an edition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct EntrantRow {
    /// The bot and its program, the same in all editions.
    #[sqlx(try_from = "i32")]
    pub entrant: Entrant,
    /// The bot.
    pub bot: BotId,
    /// The version that plays.
    pub version: VersionId,
}

/// Creates an edition by these rules ([`Game::rules_identity`]). Its matches are planned later.
pub async fn create(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    components: i16,
    open_ended: bool,
    rules: &str,
    now: OffsetDateTime,
) -> Result<EditionId> {
    let statement = "
        WITH made AS (
            INSERT INTO editions (tournament, number, components, open_ended, created_at, rules,
                first_match, end_match)
            SELECT $1, coalesce(max(number), 0) + 1, $2, $3, $4, $5,
                coalesce(max(end_match), 0), coalesce(max(end_match), 0)
            FROM editions WHERE tournament = $1 RETURNING id
        ), counting AS (
            INSERT INTO progress (edition, counted) SELECT id, 0 FROM made
        )
        SELECT id FROM made";
    let query = sqlx::query_scalar(statement).bind(tournament).bind(components).bind(open_ended);
    query.bind(now).bind(rules).fetch_one(db).await
}

/// Lets an edition without matches begin after all matches that its tournament has by now: since it
/// was created, the edition before it may have grown by a round. Returns its scope.
pub async fn begin_after_stored(
    db: impl PgExecutor<'_>,
    edition: EditionId,
) -> Result<EditionScope> {
    let statement = "
        WITH stored AS (
            SELECT max(other.end_match) AS past FROM editions opening
            JOIN editions other USING (tournament) WHERE opening.id = $1
        )
        UPDATE editions SET first_match = past, end_match = past FROM stored
        WHERE id = $1 AND matches = 0
        RETURNING id, tournament, number, from_match, end_match";
    sqlx::query_as(statement).bind(edition).fetch_one(db).await
}

/// Enters versions in an edition, in the order of its schedule.
///
/// # Errors
/// If two of the versions belong to one bot.
pub async fn enter(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    versions: &[VersionId],
) -> Result<u64> {
    let statement = "
        INSERT INTO entrants (edition, place, entrant, bot, version)
        SELECT $1, u.place - 1, (
            SELECT min(o.id) FROM versions o WHERE o.bot = v.bot AND o.digest = v.digest
        ), v.bot, v.id
        FROM unnest($2::int[]) WITH ORDINALITY AS u (version, place)
        JOIN versions v ON v.id = u.version";
    Ok(sqlx::query(statement).bind(edition).bind(versions).execute(db).await?.rows_affected())
}

/// The entrants of an edition, in the order of its schedule.
pub async fn entrants(db: impl PgExecutor<'_>, edition: EditionId) -> Result<Vec<EntrantRow>> {
    let statement = "SELECT entrant, bot, version FROM entrants WHERE edition = $1 ORDER BY place";
    sqlx::query_as(statement).bind(edition).fetch_all(db).await
}

/// The number of entrants of an edition.
pub async fn count_entrants(db: impl PgExecutor<'_>, edition: EditionId) -> Result<usize> {
    let statement = "SELECT count(*) FROM entrants WHERE edition = $1";
    let count: i64 = sqlx::query_scalar(statement).bind(edition).fetch_one(db).await?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// The identity of the newest edition of a tournament.
pub async fn newest_id(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
) -> Result<Option<EditionId>> {
    let statement = "SELECT id FROM editions WHERE tournament = $1 ORDER BY number DESC LIMIT 1";
    sqlx::query_scalar(statement).bind(tournament).fetch_optional(db).await
}

/// A statement that selects editions with their numbers of counted matches.
// Not the plan history: at many bots it is long, and a list of editions has one for each.
macro_rules! edition {
    ($rest:literal) => {
        concat!(
            "SELECT e.id, e.tournament, e.number, e.components, e.state, e.first_match,
                e.end_match, e.from_match, e.matches, e.open_ended, e.rules, p.counted,
                e.created_at, e.ended_at
            FROM editions e JOIN progress p ON p.edition = e.id ",
            $rest
        )
    };
}

/// The edition with this identity.
pub async fn get(db: impl PgExecutor<'_>, id: EditionId) -> Result<Option<Edition>> {
    let statement = edition!("WHERE e.id = $1");
    sqlx::query_as(statement).bind(id).fetch_optional(db).await
}

/// The number of an edition in its tournament.
pub async fn number(db: impl PgExecutor<'_>, id: EditionId) -> Result<i32> {
    let statement = "SELECT number FROM editions WHERE id = $1";
    sqlx::query_scalar(statement).bind(id).fetch_one(db).await
}

/// Whether the house bots of an edition have ranks.
pub async fn ranks_house_bots(db: impl PgExecutor<'_>, id: EditionId) -> Result<bool> {
    let statement = "
        SELECT coalesce(o.settings, t.settings) #>> '{house,ranked}' IS DISTINCT FROM 'false'
        FROM editions e JOIN tournaments t ON t.id = e.tournament
        LEFT JOIN edition_settings o ON o.edition = e.id WHERE e.id = $1";
    sqlx::query_scalar(statement).bind(id).fetch_one(db).await
}

/// Lets the editions of a tournament keep its present settings when these change.
pub async fn keep_settings(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<()> {
    let statement = "
        INSERT INTO edition_settings (edition, settings)
        SELECT e.id, t.settings FROM editions e JOIN tournaments t ON t.id = e.tournament
        WHERE t.id = $1 ON CONFLICT DO NOTHING";
    sqlx::query(statement).bind(tournament).execute(db).await.map(drop)
}

/// The edition of this number in a tournament.
pub async fn find(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    number: i32,
) -> Result<Option<Edition>> {
    let statement = edition!("WHERE e.tournament = $1 AND e.number = $2");
    sqlx::query_as(statement).bind(tournament).bind(number).fetch_optional(db).await
}

/// The edition before this one.
pub async fn newest_before(db: impl PgExecutor<'_>, edition: EditionId) -> Result<Option<Edition>> {
    let statement = edition!(
        "JOIN editions this ON this.id = $1
        WHERE e.tournament = this.tournament AND e.number = this.number - 1"
    );
    sqlx::query_as(statement).bind(edition).fetch_optional(db).await
}

/// The newest edition in which a version plays, if there is one that was not cancelled. An edition
/// has no version that was submitted after it was opened.
pub async fn newest_with(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    version: VersionId,
    submitted_at: OffsetDateTime,
) -> Result<Option<Edition>> {
    let statement = edition!(
        "WHERE e.tournament = $1 AND e.created_at >= $3 AND e.state <> 'cancelled'
            AND EXISTS (SELECT FROM entrants x WHERE x.edition = e.id AND x.version = $2)
        ORDER BY e.number DESC LIMIT 1"
    );
    let query = sqlx::query_as(statement).bind(tournament).bind(version).bind(submitted_at);
    query.fetch_optional(db).await
}

/// The newest edition of a tournament.
pub async fn newest(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<Option<Edition>> {
    let statement = edition!("WHERE e.tournament = $1 ORDER BY e.number DESC LIMIT 1");
    sqlx::query_as(statement).bind(tournament).fetch_optional(db).await
}

/// The editions of a tournament, newest first.
pub async fn of_tournament(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
) -> Result<Vec<Edition>> {
    let statement = edition!("WHERE e.tournament = $1 ORDER BY e.number DESC");
    sqlx::query_as(statement).bind(tournament).fetch_all(db).await
}

/// A tournament whose queue needs maintenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct DueTournament {
    /// The tournament.
    #[sqlx(rename = "tournament")]
    pub id: TournamentId,
    /// The edition that is being played, if there is one.
    pub running: Option<i32>,
    /// Whether it has leases past their deadline, or lots whose delay has passed.
    pub expires: bool,
}

/// The tournaments whose queues need maintenance, oldest first:
///
/// - tournaments with a running edition;
/// - tournaments with reported lots that are not counted, or pending lots without a running
///   edition, which workers returned while the edition was cancelled;
/// - tournaments with expired leases, or with lots whose delay has passed.
pub async fn needing_maintenance(db: impl PgExecutor<'_>) -> Result<Vec<DueTournament>> {
    // The first reported or pending lot of a tournament is one index lookup.
    let statement = "
        WITH now AS MATERIALIZED (SELECT database_clock() AS at), due AS (
            SELECT tournament, id AS running, false AS expires FROM editions WHERE state = 'running'
            UNION ALL
            SELECT t.id, NULL, false FROM tournaments t
            WHERE coalesce((
                SELECT true FROM lots WHERE tournament = t.id AND state = 'reported'
                ORDER BY number LIMIT 1
              ), (
                SELECT true FROM lots WHERE tournament = t.id AND state = 'pending'
                ORDER BY expected_ms DESC, number LIMIT 1), false)
            UNION ALL
            SELECT tournament, NULL, true FROM lots
            WHERE state = 'leased' AND deadline < (SELECT at FROM now)
            UNION ALL
            SELECT tournament, NULL, true FROM lots
            WHERE state = 'delayed' AND not_before <= (SELECT at FROM now)
        )
        SELECT tournament, max(running) AS running, bool_or(expires) AS expires
        FROM due GROUP BY tournament ORDER BY tournament";
    sqlx::query_as(statement).fetch_all(db).await
}

/// The edition of a tournament that is being played.
pub async fn running(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<Option<Edition>> {
    let statement = edition!("WHERE e.tournament = $1 AND e.state = 'running'");
    sqlx::query_as(statement).bind(tournament).fetch_optional(db).await
}

/// Whether the running edition of a tournament has set aside a match with a suspended bot. Such an
/// edition cannot be completed.
pub async fn is_blocked_by_suspension(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
) -> Result<bool> {
    let statement = "
        SELECT EXISTS (
            SELECT FROM editions e
            JOIN lots l ON l.tournament = e.tournament AND l.state = 'aside'
            JOIN matches m ON m.tournament = e.tournament
                AND m.number >= l.number AND m.number < l.number + l.count
            JOIN entrants n ON n.edition = e.id AND n.entrant = ANY (m.seats)
            JOIN bots b ON b.id = n.bot AND b.stood_down_version >= n.version
            WHERE e.tournament = $1 AND e.state = 'running')";
    sqlx::query_scalar(statement).bind(tournament).fetch_one(db).await
}

/// The edition whose leaderboard is the official one.
pub async fn official(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
) -> Result<Option<EditionId>> {
    let statement = "SELECT id FROM official_editions WHERE tournament = $1";
    sqlx::query_scalar(statement).bind(tournament).fetch_optional(db).await
}

/// The edition whose leaderboard was the official one at this time.
pub async fn official_at(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    at: OffsetDateTime,
) -> Result<Option<EditionId>> {
    let statement = "
        SELECT id FROM editions WHERE tournament = $1 AND state = 'complete' AND ended_at <= $2
        ORDER BY number DESC LIMIT 1";
    let query = sqlx::query_scalar(statement).bind(tournament).bind(at);
    query.fetch_optional(db).await
}

/// Adds to the number of matches of an edition, which now has this scope, and stores whether more
/// may follow. Returns whether the edition accepts more matches.
pub async fn extend(
    db: impl PgExecutor<'_>,
    edition: EditionScope,
    matches: i64,
    open_ended: bool,
) -> Result<bool> {
    let statement = "
        UPDATE editions
        SET matches = matches + $2, from_match = $3, end_match = $4, open_ended = $5
        WHERE id = $1 AND state IN ('planning', 'running') AND (open_ended OR state = 'planning')";
    let query = sqlx::query(statement).bind(edition.id).bind(matches);
    let query = query.bind(edition.from).bind(edition.end).bind(open_ended);
    Ok(query.execute(db).await?.rows_affected() == 1)
}

/// The number of matches of an edition, if all of them are counted and more will be planned.
pub async fn matches_if_round_ended(
    db: impl PgExecutor<'_>,
    edition: EditionId,
) -> Result<Option<i64>> {
    let statement = "
        SELECT e.matches FROM editions e JOIN progress p ON p.edition = e.id
        WHERE e.id = $1 AND e.state = 'running' AND e.open_ended AND p.counted = e.matches";
    sqlx::query_scalar(statement).bind(edition).fetch_optional(db).await
}

/// Locks a running open-ended edition until the transaction ends, if it has exactly `matches`
/// matches. Returns whether it is locked.
pub async fn lock(db: impl PgExecutor<'_>, edition: EditionId, matches: i64) -> Result<bool> {
    let statement = "
        SELECT id FROM editions
        WHERE id = $1 AND matches = $2 AND state = 'running' AND open_ended FOR NO KEY UPDATE";
    let id: Option<i32> =
        sqlx::query_scalar(statement).bind(edition).bind(matches).fetch_optional(db).await?;
    Ok(id.is_some())
}

/// Starts a planned edition. Returns whether it was being planned.
///
/// # Errors
/// If another edition of the tournament runs.
pub async fn start(db: impl PgExecutor<'_>, edition: EditionId) -> Result<bool> {
    let statement = "UPDATE editions SET state = 'running' WHERE id = $1 AND state = 'planning' AND matches > 0";
    Ok(sqlx::query(statement).bind(edition).execute(db).await?.rows_affected() == 1)
}

/// Completes an edition if every match is counted and no more will be planned. Its leaderboard then
/// is the official one. Returns whether this call completed the edition.
pub async fn complete(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    now: OffsetDateTime,
) -> Result<bool> {
    let statement = "
        UPDATE editions AS e SET state = 'complete', ended_at = $2 FROM progress p
        WHERE e.id = $1 AND p.edition = e.id
          AND e.state = 'running' AND NOT e.open_ended AND p.counted = e.matches";
    Ok(sqlx::query(statement).bind(edition).bind(now).execute(db).await?.rows_affected() == 1)
}

/// Cancels an edition. Returns whether it was open. No lots of it are leased until the transaction
/// ends.
pub async fn cancel(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    now: OffsetDateTime,
) -> Result<bool> {
    let statement = "
        UPDATE editions SET state = 'cancelled', ended_at = $2
        WHERE id = $1 AND state IN ('planning', 'running')";
    Ok(sqlx::query(statement).bind(edition).bind(now).execute(db).await?.rows_affected() == 1)
}

/// Whether an edition counts a void result.
pub async fn counts_void_result(db: &mut PgConnection, edition: EditionId) -> Result<bool> {
    let scope = scope(&mut *db, edition).await?;
    Ok(!invalidated_matches::of_edition(db, scope).await?.is_empty())
}

/// Whether an edition counts a void result, and no later edition will replay the match: it is the
/// newest edition of its tournament, and no other edition is due.
pub async fn keeps_void_result(db: &mut PgConnection, edition: EditionId) -> Result<bool> {
    let statement = "
        SELECT this.state <> 'cancelled' AND t.state = 'open' AND NOT EXISTS (
            SELECT FROM editions e WHERE e.tournament = this.tournament AND e.number > this.number
        ) AND NOT EXISTS (SELECT FROM edition_triggers c WHERE c.tournament = this.tournament)
        FROM editions this JOIN tournaments t ON t.id = this.tournament WHERE this.id = $1";
    let is_last = sqlx::query_scalar(statement).bind(edition).fetch_optional(&mut *db).await?;
    Ok(is_last.unwrap_or(false) && counts_void_result(db, edition).await?)
}

/// Adds to the number of matches in the standings of an edition, and to the number of those that
/// were played for it.
pub async fn count(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    matches: i64,
    played: i64,
) -> Result<()> {
    let statement = "
        UPDATE progress SET counted = counted + $2, played = played + $3 WHERE edition = $1";
    let query = sqlx::query(statement).bind(edition).bind(matches).bind(played);
    query.execute(db).await.map(drop)
}

/// The number of matches in the standings of an edition.
pub async fn counted(db: impl PgExecutor<'_>, edition: EditionId) -> Result<i64> {
    let statement = "SELECT counted FROM progress WHERE edition = $1";
    sqlx::query_scalar(statement).bind(edition).fetch_one(db).await
}

/// The game of an edition.
pub async fn game(db: impl PgExecutor<'_>, games: &Games, edition: EditionId) -> Result<Game> {
    let tournament = tournaments::of_edition(db, edition).await?;
    tournament.game(games).map_err(|error| Error::Decode(Box::new(error)))
}
