//! `arbiter tournament create FILE`: a tournament from its file, with its house bots.

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
use crate::cli::client::{AnswerArgs, Server};
use crate::cli::moments::micros;
use crate::cli::submit::Packed;
use crate::failure::Failure;
use crate::output::{hex, merged, moment};

/// Make a tournament from its file, and submit the house bots that it names.
#[derive(Debug, Args)]
#[command(
    after_help = "Paths in the file are relative to it. House bots are built and packed here \
before anything is
made, so that a tournament is not left without them.

Examples:
  arbiter tournament create deploy/tournaments/gomoku.toml
  arbiter tournament create finals.toml && arbiter tournament start finals"
)]
pub(super) struct Create {
    /// The tournament file (TOML).
    file: PathBuf,
    #[command(flatten)]
    answer: AnswerArgs,
}

impl Create {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        let prepared = Prepared::read(games, &self.file)?;
        let made = self.answer.client.run(async |server| {
            let made = prepared.create(&server).await?;
            prepared.enter(&server).await?;
            Ok(made)
        })?;
        let names = prepared.bots.iter().map(|bot| bot.name.to_string());
        let names: Vec<_> = names.collect();
        let warning = prepared.warning();
        let object = || {
            let more = json!({ "house": names, "warnings": warning.as_slice() });
            merged(tournament_json(&made), more)
        };
        self.answer.print(object, |out| {
            let Tournament { name, game, seed_hash, .. } = &made;
            out.line(&format!("{name}: {game}; hash of the seed {}", hex(seed_hash)))?;
            if !names.is_empty() {
                out.line(&format!("house bots: {}", names.join(", ")))?;
            }
            warning.iter().try_for_each(|warning| out.line(&format!("warning: {warning}")))
        })
    }
}

/// A tournament that can be made: its file, and its house bots built and packed.
#[derive(Debug)]
pub(crate) struct Prepared {
    text: String,
    file: TournamentFile,
    bots: Vec<Packed>,
}

impl Prepared {
    /// Reads a tournament file and packs its house bots, so that nothing is left to fail here
    /// once the tournament is made.
    pub(crate) fn read(games: &Games, path: &Path) -> Result<Self, Failure> {
        let (text, file) = read(games, path)?;
        let bots = house(path, &file.house)?;
        Ok(Self { text, file, bots })
    }

    /// The name of the tournament.
    pub(crate) fn name(&self) -> &str {
        &self.file.name
    }

    /// What may not be meant, though it is allowed.
    fn warning(&self) -> Option<String> {
        let closed = self.file.submissions.closes?.0;
        (closed <= OffsetDateTime::now_utc()).then(|| {
            format!(
                "entry closed at {}, so only house bots take part; to let others enter, cancel it and \
                 make another that closes later",
                moment(micros(closed))
            )
        })
    }

    /// Makes the tournament.
    pub(crate) async fn create(&self, server: &Server) -> Result<Tournament, Failure> {
        server.ask(CreateTournamentRequest { file: self.text.clone() }).await
    }

    /// Submits the house bots. Those that are there already stay as they are.
    pub(crate) async fn enter(&self, server: &Server) -> Result<(), Failure> {
        let tournament = self.name();
        for bot in &self.bots {
            bot.submit(server, tournament, true).await.map_err(|failure| {
                failure.after(&format!(
                    "tournament {tournament} is made, but house bot {} is not in it; submit it \
                     and those after it with arbiter submit {tournament} PATH --house",
                    bot.name
                ))
            })?;
        }
        Ok(())
    }
}

/// A path in a file that lies at `file`.
fn beside(file: &Path, path: &str) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(path)
}

/// The text of a tournament file with the boards it names in it, and what it says.
fn read(games: &Games, path: &Path) -> Result<(String, TournamentFile), Failure> {
    let shown = path.display();
    let unreadable = |error: io::Error| Failure::usage(format!("{shown}: {error}"));
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let wrong = |error| Failure::usage(format!("{shown}: {error}"));
    let text =
        TournamentFile::inline(games, &text, |board| fs::read_to_string(beside(path, board)));
    let text = text.map_err(wrong)?;
    let file = TournamentFile::parse(games, &text).map_err(wrong)?;
    Ok((text, file))
}

/// The house bots of a tournament file, all of them built and packed.
fn house(file: &Path, paths: &[String]) -> Result<Vec<Packed>, Failure> {
    let mut bots: Vec<Packed> = Vec::new();
    for path in paths {
        let named =
            |failure: Failure| failure.after(&format!("{}: [house] bots: {path}", file.display()));
        let bot = Packed::new(&beside(file, path)).map_err(named)?;
        if bots.iter().any(|other| other.name == bot.name) {
            return Err(Failure::usage(format!(
                "{}: [house] has two bots called {}; give one of them another name",
                file.display(),
                bot.name
            )));
        }
        bots.push(bot);
    }
    Ok(bots)
}
