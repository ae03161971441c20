//! Test tournaments, and their start and end.

use std::collections::HashMap;
use std::fmt::Display;
use std::fs;
use std::path::Path;

use arbiter_coordinator::db::editions::{self, Edition};
use arbiter_coordinator::db::matches::{self, Match, Seats};
use arbiter_coordinator::db::results::{self, SeatedResult};
use arbiter_coordinator::db::tournaments::Tournament;
use arbiter_coordinator::queue::Queue;
use arbiter_coordinator::tournament::rounds::plan_next_round;
use arbiter_coordinator::tournament::stored_plan::{self, Positions};
use arbiter_coordinator::tournament::{
    IfRunning, LifecycleError, OpenError, OpenRequest, TournamentFile, lifecycle, open_edition,
};
use arbiter_games::Games;
use arbiter_proto::ids::{EditionId, MatchNumber, TournamentId};
use arbiter_ranking::Entrant;
use time::OffsetDateTime;

use crate::support::{Database, START, kill_at_table};

/// The preset of a game. Checks that the files of its house bots exist.
pub(crate) fn preset(game: impl Display) -> TournamentFile {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/tournaments");
    let text = fs::read_to_string(directory.join(format!("{game}.toml"))).unwrap();
    let file = TournamentFile::parse(&Games::built_in(), &text).unwrap();
    for bot in &file.house.bots {
        assert!(directory.join(bot).join("bot.toml").exists(), "{game}: {bot}");
    }
    file
}

/// A tournament of this game with a fixed seed.
pub(crate) fn tournament_file(game: impl Display, lines: &str) -> TournamentFile {
    let text = format!("name = \"{game}-cup\"\ngame = \"{game}\"\nseed = \"stage\"\n{lines}");
    TournamentFile::parse(&Games::built_in(), &text).unwrap()
}

/// Creates a tournament with this many bots.
pub(crate) async fn create_tournament(
    database: &Database,
    file: &TournamentFile,
    bots: i32,
) -> Tournament {
    let tournament =
        lifecycle::create(&mut database.pool.acquire().await.unwrap(), file, START).await.unwrap();
    database.versions(tournament.id, bots).await;
    tournament
}

/// Opens an edition.
pub(crate) async fn open_edition(
    queue: &Queue,
    tournament: &Tournament,
) -> Result<Edition, OpenError> {
    open_edition::open(queue, OpenRequest::new(tournament.id, IfRunning::Refuse), START).await
}

/// Creates a tournament with this many bots, and starts its first edition.
pub(crate) async fn start_tournament(
    database: &Database,
    file: &TournamentFile,
    bots: i32,
) -> (Tournament, Edition) {
    let tournament = create_tournament(database, file, bots).await;
    let edition = open_edition(&database.queue(), &tournament).await.unwrap();
    (tournament, edition)
}

/// The stored matches of an edition, in the order of their numbers.
pub(crate) async fn planned_matches(database: &Database, edition: EditionId) -> Vec<Match> {
    let scope = editions::scope(&database.pool, edition).await.unwrap();
    matches::planned(&database.pool, scope, MatchNumber(0), None, u32::MAX).await.unwrap()
}

/// The number of matches of an edition that an earlier edition added.
pub(crate) async fn shared_matches(database: &Database, edition: EditionId) -> i64 {
    let row = editions::get(&database.pool, edition).await.unwrap().unwrap();
    let planned = planned_matches(database, edition).await;
    let shared = planned.iter().filter(|planned| planned.number.0 < row.first_match);
    i64::try_from(shared.count()).unwrap()
}

/// All results of an edition, in the order of the numbers of its matches.
pub(crate) async fn all_results(database: &Database, edition: EditionId) -> Vec<SeatedResult> {
    let scope = editions::scope(&database.pool, edition).await.unwrap();
    results::page(&database.pool, scope, MatchNumber(-1), false).await.unwrap()
}

/// The places of an edition's matches and bots in its plan. The database has numbers of the
/// tournament's matches and versions instead.
pub(crate) struct Places {
    matches: Positions,
    bots: HashMap<Entrant, Entrant>,
}

impl Places {
    pub(crate) async fn of(database: &Database, tournament: &Tournament, id: EditionId) -> Self {
        let pool = &database.pool;
        let edition = editions::get(pool, id).await.unwrap().unwrap();
        let games = Games::built_in();
        let matches = stored_plan::positions(pool, &games, tournament, &edition).await.unwrap();
        let entrants = editions::entrants(pool, id).await.unwrap();
        let bots = (0..).map(Entrant);
        Self { matches, bots: entrants.into_iter().map(|row| row.entrant).zip(bots).collect() }
    }

    pub(crate) fn number(&self, number: MatchNumber) -> MatchNumber {
        MatchNumber(self.matches.of(number).unwrap())
    }

    pub(crate) fn seats(&self, seats: &Seats) -> Seats {
        Seats(seats.0.iter().map(|entrant| self.bots[entrant]).collect())
    }
}

/// The stored matches of an edition as its plan lists them: in its order, with their places for
/// numbers, and with the places of bots in their seats.
pub(crate) async fn listed_matches(
    database: &Database,
    tournament: &Tournament,
    edition: EditionId,
) -> Vec<Match> {
    let places = Places::of(database, tournament, edition).await;
    let place = |number: i64| places.number(MatchNumber(number)).0;
    let listed = planned_matches(database, edition).await.into_iter().map(|planned| Match {
        number: places.number(planned.number),
        seats: places.seats(&planned.seats),
        state_from: planned.state_from.map(|all| all.into_iter().map(|n| n.map(place)).collect()),
        ..planned
    });
    let mut listed: Vec<_> = listed.collect();
    listed.sort_unstable_by_key(|planned| planned.number);
    listed
}

/// The results of an edition as its plan lists its matches (see [`listed_matches`]).
pub(crate) async fn listed_results(
    database: &Database,
    tournament: &Tournament,
    edition: EditionId,
) -> Vec<SeatedResult> {
    let places = Places::of(database, tournament, edition).await;
    let mut listed = all_results(database, edition).await;
    for result in &mut listed {
        result.number = places.number(result.number);
        result.seats = places.seats(&result.seats);
    }
    listed.sort_unstable_by_key(|result| result.number);
    listed
}

/// Closes a tournament.
pub(crate) async fn close_tournament(
    queue: &Queue,
    id: TournamentId,
    now: OffsetDateTime,
) -> Result<Tournament, LifecycleError> {
    let mut transaction = queue.pool().begin().await?;
    let tournament = lifecycle::close(&mut transaction, id, now).await?;
    transaction.commit().await?;
    Ok(tournament)
}

/// Cancels a tournament.
pub(crate) async fn cancel_tournament(
    queue: &Queue,
    id: TournamentId,
    now: OffsetDateTime,
) -> Result<Tournament, LifecycleError> {
    let mut transaction = queue.pool().begin().await?;
    let tournament = lifecycle::cancel(&mut transaction, id, now).await?;
    transaction.commit().await?;
    Ok(tournament)
}

/// The number of planned matches, and whether the plan is open-ended.
pub(crate) async fn plan_size(database: &Database, edition: EditionId) -> (i64, bool) {
    let edition = editions::get(&database.pool, edition).await.unwrap().unwrap();
    (edition.matches, edition.open_ended)
}

/// Plans the next round, and kills the planner when it writes to a table.
pub(crate) async fn kill_planner(queue: &Queue, edition: EditionId, table: &str) {
    let planning = Box::pin(plan_next_round(queue, edition));
    let result = kill_at_table(queue.pool(), table, planning).await;
    assert!(result.is_err(), "{table}");
}
