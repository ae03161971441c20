//! `arbiter submit T PATH`: a bot goes to a tournament.

use std::path::{Path, PathBuf};

use arbiter_games::BotName;
use arbiter_proto::v1::submit_version_request::Part;
use arbiter_proto::v1::{Submission, SubmitVersionRequest, TrialStatus, Version};
use arbiter_worker::bot::Bot;
use arbiter_worker::bundle::{self, Bundle};
use clap::Args;
use serde_json::json;

use super::client::{AnswerArgs, Server, interrupt, unless_interrupted};
use super::trial;
use crate::failure::Failure;
use crate::output::{hex, merged, tell};
use crate::play::progress;

/// Submit a version of a bot to a tournament; exit code 1 if it fails its trial.
#[derive(Debug, Args)]
#[command(
    after_help = "What is sent are the files as they are: a worker builds them in its sandbox as \
bot.toml says,
and plays a few matches, before the version enters. Until then, and if it fails, the bot's former
version stays in play. `arbiter preflight` does the same on this machine.

Examples:
  arbiter submit finals mybot/
  arbiter submit finals mybot.zip --name mybot-2 --no-wait
  arbiter submit finals mybot/ --built
  arbiter submit finals bots/gomoku/house --house"
)]
pub(super) struct Submit {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// A directory with bot.toml or a KotH meta file, an archive of one (.tar, .tar.gz, .tar.zst,
    /// .zip), or an executable file.
    path: PathBuf,
    /// The name to enter by, instead of the bot's own.
    #[arg(long)]
    name: Option<BotName>,
    /// Build it on this machine and send the result, for tools that workers do not have.
    #[arg(long)]
    built: bool,
    /// As a house bot, which nobody owns, built here, and entered at once: for organisers.
    #[arg(long)]
    house: bool,
    /// Do not wait for its trial.
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    answer: AnswerArgs,
}

impl Submit {
    pub(super) fn run(self) -> Result<(), Failure> {
        let built = self.built || self.house;
        let mut packed = if built { Packed::new(&self.path)? } else { Packed::source(&self.path)? };
        packed.name = self.name.clone().unwrap_or(packed.name);
        let (version, status) = self.answer.client.run(async |server| {
            let sent = packed.submit(&server, &self.tournament, self.house);
            let version = unless_interrupted(sent).await?;
            if self.no_wait || has_entered(&version) {
                return Ok((version, TrialStatus::default()));
            }
            tokio::select! {
                over = trial::wait(&server, &self.tournament, &version) => {
                    let status = over?;
                    Ok((status.version.clone().unwrap_or(version), status))
                }
                () = interrupt() => Err(Failure::Negative(format!(
                    "interrupted: its trial goes on; see arbiter log {} {}",
                    self.tournament, version.bot
                ))),
            }
        })?;
        self.show(&version, &status)
    }

    /// Shows what became of the version.
    fn show(&self, version: &Version, status: &TrialStatus) -> Result<(), Failure> {
        let Version { bot, number, digest, .. } = version;
        let entered = has_entered(version);
        let failed = !entered && trial::is_over(version);
        let object = || {
            let version = Some(version.clone());
            let object = trial::status_json(&TrialStatus { version, ..status.clone() });
            merged(object, json!({ "digest": hex(digest) }))
        };
        self.answer.print(object, |out| {
            if failed {
                return Ok(());
            }
            let place = if entered { "is in" } else { "waits for its trial in" };
            let (tournament, digest) = (&self.tournament, hex(digest));
            out.line(&format!("{bot} version {number} {place} {tournament}; digest {digest}"))
        })?;
        if !self.answer.json {
            trial::tell_details(status);
        }
        if failed {
            let told = trial::standing(version);
            return Err(Failure::Negative(format!("{bot} {told}; it has not entered")));
        }
        Ok(())
    }
}

/// Whether nothing keeps a version from being played.
fn has_entered(version: &Version) -> bool {
    version.state == "entered"
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

    /// Packs the sources of the bot at `path`, or in it if it is an archive. Nothing is built.
    ///
    /// # Errors
    /// If there is no bot, or it cannot be packed.
    pub(super) fn source(path: &Path) -> Result<Self, Failure> {
        let bundle::Submission { name, bundle } =
            bundle::Submission::read(path).map_err(Failure::usage)?;
        Ok(Self { name, bundle })
    }

    /// Submits it to the tournament of this name.
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
