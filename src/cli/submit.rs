//! `arbiter submit T PATH`: a bot goes to a tournament.

use std::path::{Path, PathBuf};

use arbiter_games::BotName;
use arbiter_proto::v1::submit_version_request::Part;
use arbiter_proto::v1::{Submission, SubmitVersionRequest, Version};
use arbiter_worker::bot::Bot;
use arbiter_worker::bundle::Bundle;
use clap::Args;
use serde_json::json;

use super::client::{Client, Server, unless_interrupted};
use super::output::{Output, hex};
use super::{Failure, tell};
use crate::play::progress;

/// Submit a version of a bot to a tournament: everything in its directory, the program built.
#[derive(Debug, Args)]
#[command(
    after_help = "If bot.toml says how the bot is built and its program is missing or out of \
date, it is built
on this machine first: nothing is built where the matches are played.

Examples:
  arbiter submit finals mybot/
  arbiter submit finals mybot/ --name mybot-2 --token \"$TOKEN\"
  arbiter submit finals bots/gomoku/house --house"
)]
pub(super) struct Submit {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// A directory with bot.toml or a KotH meta file, or an executable file.
    path: PathBuf,
    /// The name to enter by, instead of the bot's own.
    #[arg(long)]
    name: Option<BotName>,
    /// As a house bot, which nobody owns: for organisers.
    #[arg(long)]
    house: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

impl Submit {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Self { tournament, path, name, house, json, client } = self;
        let mut packed = Packed::new(&path)?;
        packed.name = name.unwrap_or(packed.name);
        let version = client.run(async |server| {
            unless_interrupted(packed.submit(&server, &tournament, house)).await
        })?;
        let Version { bot, number, digest, .. } = version;
        let mut out = Output::new();
        if json {
            out.json(&json!({"bot": bot, "version": number, "digest": hex(&digest)}))?;
        } else {
            out.line(&format!(
                "{bot} version {number} is in {tournament}; digest {}",
                hex(&digest)
            ))?;
        }
        out.flush()
    }
}

/// How much of a bundle goes into one message, in bytes.
const PIECE: usize = 256 << 10;

/// A bot that is ready to go.
#[derive(Debug)]
pub(super) struct Packed {
    /// The name it enters by.
    pub(super) name: BotName,
    bundle: Bundle,
}

impl Packed {
    /// Packs the bot at `path`, built if need be.
    ///
    /// # Errors
    /// If there is no bot, or it cannot be built or packed.
    pub(super) fn new(path: &Path) -> Result<Self, Failure> {
        if let Some(command) = Bot::build_due(path) {
            tell(&format!("{}: building it with {command}", path.display()));
        }
        let bot = Bot::load(path).map_err(Failure::usage)?;
        let bundle = Bundle::of(&bot).map_err(Failure::usage)?;
        Ok(Self { name: bot.name, bundle })
    }

    /// What identifies what would be submitted.
    pub(super) fn digest(&self) -> [u8; 32] {
        self.bundle.digest().into()
    }

    /// Submits it to the tournament of this name.
    ///
    /// # Errors
    /// If the coordinator refuses it.
    pub(super) async fn submit(
        &self,
        server: &Server,
        tournament: &str,
        house: bool,
    ) -> Result<Version, Failure> {
        let Self { name, bundle } = self;
        let (tournament, bot) = (tournament.to_owned(), name.to_string());
        let bytes = bundle.bytes();
        let bar = progress::bar(bytes.len().div_ceil(PIECE), "pieces sent");
        let first = Part::Submission(Submission { tournament, bot, house });
        let sent = bar.clone();
        let pieces = bytes.chunks(PIECE).map(|piece| Part::Bundle(piece.to_vec()));
        let pieces: Vec<_> = [first].into_iter().chain(pieces).collect();
        let pieces = pieces.into_iter().map(move |part| {
            sent.inc(u64::from(matches!(part, Part::Bundle(_))));
            SubmitVersionRequest { part: Some(part) }
        });
        let version = server.bots().submit_version(tokio_stream::iter(pieces)).await;
        bar.finish_and_clear();
        Ok(version?.into_inner())
    }
}
