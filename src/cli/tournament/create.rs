//! `arbiter tournament create FILE`: creates a tournament from its file, with its house bots.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use arbiter_coordinator::tournament::file::TournamentFile;
use arbiter_games::Games;
use arbiter_proto::v1::{CreateTournamentRequest, Tournament};
use clap::Args;
use serde_json::json;
use time::OffsetDateTime;

use super::list::tournament_json;
use super::package::PackedPackage;
use crate::cli::client::{ResponseArgs, Server};
use crate::cli::submit::PackedBot;
use crate::cli::time_arg::micros;
use crate::failure::Failure;
use crate::output::{hex, merge, moment};

/// Create a tournament from a file and submit its house bots.
#[derive(Debug, Args)]
#[command(
    after_help = "Paths in the file are relative to it, also that of a game package. House bots are \
    built and packed here first, so a tournament is never created without them.

Examples:
  arbiter tournament create deploy/tournaments/gomoku.toml
  arbiter tournament create finals.toml && arbiter tournament start finals"
)]
pub(super) struct Create {
    /// The tournament file (TOML).
    file: PathBuf,
    #[command(flatten)]
    response: ResponseArgs,
}

impl Create {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        let prepared = PreparedTournament::read(games, &self.file)?;
        let tournament = self.response.client.run(async |server| {
            let tournament = prepared.create(&server).await?;
            prepared.enter(&server).await?;
            Ok(tournament)
        })?;
        let names: Vec<_> = prepared.bots.iter().map(|bot| bot.name.to_string()).collect();
        let warnings = prepared.warnings();
        let object = || {
            let details = json!({ "house": names, "warnings": warnings });
            merge(tournament_json(&tournament), details)
        };
        self.response.print(object, |out| {
            let Tournament { name, game, seed_hash, .. } = &tournament;
            out.line(&format!("{name}: {game}; seed hash {}", hex(seed_hash)))?;
            if !names.is_empty() {
                out.line(&format!("house bots: {}", names.join(", ")))?;
            }
            warnings.iter().try_for_each(|warning| out.line(&format!("warning: {warning}")))
        })
    }
}

/// A tournament file with its house bots, built and packed.
#[derive(Debug)]
pub(crate) struct PreparedTournament {
    text: String,
    file: TournamentFile,
    package: Option<PackedPackage>,
    bots: Vec<PackedBot>,
}

impl PreparedTournament {
    /// Reads a tournament file and packs its house bots before the tournament is created.
    pub(crate) fn read(games: &Games, path: &Path) -> Result<Self, Failure> {
        let (text, file, package) = read(games, path)?;
        let mut paths: Vec<_> = file.house.bots.iter().map(|bot| resolve(path, bot)).collect();
        if paths.is_empty() {
            paths.extend(package.iter().flat_map(|package| package.bots.clone()));
        }
        let bots = house(path, &paths)?;
        Ok(Self { text, file, package, bots })
    }

    /// The name of the tournament.
    pub(crate) fn name(&self) -> &str {
        &self.file.name
    }

    /// Warnings about what is allowed but probably not intended.
    fn warnings(&self) -> Vec<String> {
        self.closed_entry().into_iter().chain(self.too_few_house_bots()).collect()
    }

    /// Warns if the house bots are too few for an edition.
    fn too_few_house_bots(&self) -> Option<String> {
        let bots = self.bots.len();
        let least = self.file.schedule.min_bots();
        (1..least).contains(&bots).then(|| {
            format!(
                "an edition needs at least {least} bots, and the file has {bots}; submit others \
                 before you start one"
            )
        })
    }

    /// Warns if only house bots can enter.
    fn closed_entry(&self) -> Option<String> {
        let closing_time = self.file.submissions.closes?.0;
        (closing_time <= OffsetDateTime::now_utc()).then(|| {
            format!(
                "entry closed at {}, so only house bots take part; to allow others, cancel it and \
                 create another that closes later",
                moment(micros(closing_time))
            )
        })
    }

    /// Creates the tournament.
    pub(crate) async fn create(&self, server: &Server) -> Result<Tournament, Failure> {
        let created = server.send(CreateTournamentRequest { file: self.text.clone() }).await?;
        let Some(package) = &self.package else { return Ok(created) };
        let name = self.name();
        package.send(server, name).await.map_err(|failure| {
            failure.with_context(&format!(
                "tournament {name} was created without its game package; send it with arbiter \
                 tournament package {name} DIR"
            ))
        })
    }

    /// Submits the house bots. Existing ones do not change.
    pub(crate) async fn enter(&self, server: &Server) -> Result<(), Failure> {
        let tournament = self.name();
        for bot in &self.bots {
            bot.submit(server, tournament, true).await.map_err(|failure| {
                failure.with_context(&format!(
                    "tournament {tournament} was created without house bot {}; submit it and those \
                     after it with arbiter submit {tournament} PATH --house",
                    bot.name
                ))
            })?;
        }
        Ok(())
    }
}

/// Resolves a path relative to the directory of `file`.
fn resolve(file: &Path, path: &str) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(path)
}

/// Reads a tournament file: its text, with the game package and boards of other files inlined, the
/// parsed file, and the package.
pub(super) fn read(
    games: &Games,
    path: &Path,
) -> Result<(String, TournamentFile, Option<PackedPackage>), Failure> {
    let read_error = |error: io::Error| Failure::usage(format!("{}: {error}", path.display()));
    let text = fs::read_to_string(path).map_err(read_error)?;
    let invalid = |error| Failure::usage(format!("{}: {error}", path.display()));
    let mut package = Ok(None);
    let text = TournamentFile::inline_package(&text, |game| {
        let folder = resolve(path, game);
        if games.find(game).is_err() && folder.exists() {
            package = PackedPackage::load(&folder).map(Some);
        }
        let found = package.as_ref().ok()?.as_ref()?;
        Some((found.name.clone(), found.source.clone()))
    });
    let package = package.map_err(|failure| failure.with_context(&path.display().to_string()))?;
    let text = text.map_err(invalid)?;
    let text =
        TournamentFile::inline(games, &text, |board| fs::read_to_string(resolve(path, board)))
            .map_err(invalid)?;
    let file = TournamentFile::parse(games, &text).map_err(invalid)?;
    Ok((text, file, package))
}

/// Builds and packs the house bots of a tournament file.
fn house(file: &Path, paths: &[PathBuf]) -> Result<Vec<PackedBot>, Failure> {
    let mut bots: Vec<PackedBot> = Vec::new();
    for path in paths {
        let with_path = |failure: Failure| {
            failure.with_context(&format!("{}: [house] bots: {}", file.display(), path.display()))
        };
        let bot = PackedBot::build(path).map_err(with_path)?;
        if bots.iter().any(|other| other.name == bot.name) {
            return Err(Failure::usage(format!(
                "{}: [house] has two bots named {}; rename one",
                file.display(),
                bot.name
            )));
        }
        bots.push(bot);
    }
    Ok(bots)
}
