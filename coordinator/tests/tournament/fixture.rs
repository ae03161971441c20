//! Tournaments for these tests.

use std::fmt::Display;
use std::fs;
use std::path::Path;

use arbiter_coordinator::db::editions::Edition;
use arbiter_coordinator::db::matches::{self, Match};
use arbiter_coordinator::db::tournaments::Tournament;
use arbiter_coordinator::queue::Queue;
use arbiter_coordinator::tournament::{
    IfRunning, LifecycleError, OpenError, OpenRequest, TournamentFile, edition, lifecycle,
};
use arbiter_games::Games;
use arbiter_proto::ids::{EditionId, MatchNumber, TournamentId};
use time::OffsetDateTime;

use crate::support::{Database, START};

/// The preset of a game, as it lies in the folder of the presets.
pub(crate) fn preset(game: impl Display) -> TournamentFile {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/tournaments");
    let text = fs::read_to_string(folder.join(format!("{game}.toml"))).unwrap();
    let found = TournamentFile::parse(&Games::built_in(), &text).unwrap();
    for bot in &found.house {
        assert!(folder.join(bot).join("bot.toml").exists(), "{game}: {bot}");
    }
    found
}

/// A tournament of this game with a fixed seed.
pub(crate) fn file(game: impl Display, lines: &str) -> TournamentFile {
    let text = format!("name = \"{game}-cup\"\ngame = \"{game}\"\nseed = \"stage\"\n{lines}");
    TournamentFile::parse(&Games::built_in(), &text).unwrap()
}

/// Creates a tournament with this many bots.
pub(crate) async fn made(database: &Database, file: &TournamentFile, bots: i32) -> Tournament {
    let tournament =
        lifecycle::create(&mut database.pool.acquire().await.unwrap(), file, START).await.unwrap();
    database.versions(tournament.id, bots).await;
    tournament
}

/// Opens an edition.
pub(crate) async fn open(queue: &Queue, tournament: &Tournament) -> Result<Edition, OpenError> {
    edition::open(queue, OpenRequest::new(tournament.id, IfRunning::Refuse), START).await
}

/// A running edition of a new tournament with this many bots.
pub(crate) async fn running(
    database: &Database,
    file: &TournamentFile,
    bots: i32,
) -> (Tournament, Edition) {
    let tournament = made(database, file, bots).await;
    let opened = open(&database.queue(), &tournament).await.unwrap();
    (tournament, opened)
}

/// The plan of an edition.
pub(crate) async fn matches(database: &Database, edition: EditionId) -> Vec<Match> {
    matches::range(&database.pool, edition, MatchNumber(0), i32::MAX).await.unwrap()
}

/// Closes a tournament.
pub(crate) async fn close(
    queue: &Queue,
    id: TournamentId,
    now: OffsetDateTime,
) -> Result<Tournament, LifecycleError> {
    let mut transaction = queue.pool().begin().await?;
    let ended = lifecycle::close(&mut transaction, id, now).await?;
    transaction.commit().await?;
    Ok(ended)
}

/// Cancels a tournament.
pub(crate) async fn cancel(
    queue: &Queue,
    id: TournamentId,
    now: OffsetDateTime,
) -> Result<Tournament, LifecycleError> {
    let mut transaction = queue.pool().begin().await?;
    let ended = lifecycle::cancel(&mut transaction, id, now).await?;
    transaction.commit().await?;
    Ok(ended)
}
