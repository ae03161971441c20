//! Test tournaments, and their start and end.

use std::fmt::Display;
use std::fs;
use std::path::Path;

use arbiter_coordinator::db::editions::Edition;
use arbiter_coordinator::db::matches::{self, Match};
use arbiter_coordinator::db::tournaments::Tournament;
use arbiter_coordinator::queue::Queue;
use arbiter_coordinator::tournament::{
    IfRunning, LifecycleError, OpenError, OpenRequest, TournamentFile, lifecycle, open_edition,
};
use arbiter_games::Games;
use arbiter_proto::ids::{EditionId, MatchNumber, TournamentId};
use time::OffsetDateTime;

use crate::support::{Database, START};

/// The preset of a game. Checks that the files of its house bots exist.
pub(crate) fn preset(game: impl Display) -> TournamentFile {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/tournaments");
    let text = fs::read_to_string(directory.join(format!("{game}.toml"))).unwrap();
    let file = TournamentFile::parse(&Games::built_in(), &text).unwrap();
    for bot in &file.house {
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

/// The plan of an edition.
pub(crate) async fn planned_matches(database: &Database, edition: EditionId) -> Vec<Match> {
    matches::range(&database.pool, edition, MatchNumber(0), i32::MAX).await.unwrap()
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
