//! `arbiter submit T PATH`: submits a version of a bot to a tournament.

use std::path::{Path, PathBuf};

use arbiter_games::EntrantName;
use arbiter_proto::v1::submit_version_request::Part;
use arbiter_proto::v1::{Submission, SubmitVersionRequest, TrialStatus, Version};
use arbiter_worker::bot::Bot;
use arbiter_worker::bundle::{self, Bundle};
use clap::Args;
use serde_json::json;

use super::bundle_upload;
use super::client::{ResponseArgs, Server, interrupt, unless_interrupted};
use super::trial_output;
use crate::failure::Failure;
use crate::output::{eprint_line, hex, merge, non_empty, printable};

/// Submit a bot to a tournament; exit code 1 if it fails its trial.
#[derive(Debug, Args)]
#[command(
    after_help = "The files are sent unbuilt. Before the version enters, a worker builds it in its \
    sandbox as bot.toml says and plays a few matches: its trial. Until then, and if the trial \
    fails, the bot's previous version keeps playing. `arbiter preflight` runs the same trial on \
    this machine.

Examples:
  arbiter submit finals mybot/
  arbiter submit finals mybot.cpp
  arbiter submit finals mybot.zip --name mybot-2 --no-wait
  arbiter submit finals mybot/ --built
  arbiter submit finals bots/gomoku/house --house"
)]
pub(super) struct Submit {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// The bot: a directory with bot.toml or a KotH meta file, an archive of one (.tar, .tar.gz,
    /// .tar.zst, .zip), an executable file, or one source file (.py, .js, .c, .cpp, .rs, .java, …).
    path: PathBuf,
    /// The name of the entry; by default the bot's name. It follows a player's handle: ada/mybot.
    #[arg(long)]
    name: Option<EntrantName>,
    /// Build it here and send the result, if workers lack the build tools.
    #[arg(long)]
    built: bool,
    /// Submit a house bot: without an owner, built here and entered at once (for organisers).
    #[arg(long)]
    house: bool,
    /// Do not wait for the trial.
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    response: ResponseArgs,
}

impl Submit {
    pub(super) fn run(self) -> Result<(), Failure> {
        let built = self.built || self.house;
        let mut packed =
            if built { PackedBot::build(&self.path)? } else { PackedBot::from_source(&self.path)? };
        packed.name = self.name.clone().unwrap_or(packed.name);
        let (version, status) = self.response.client.run(async |server| {
            let upload = packed.submit(&server, &self.tournament, self.house);
            let version = unless_interrupted(upload).await?;
            if let Some(outlook) = non_empty(&version.outlook).filter(|_| !self.response.json) {
                eprint_line(&printable(outlook));
            }
            if self.no_wait || has_entered(&version) {
                return Ok((version, TrialStatus::default()));
            }
            tokio::select! {
                result = trial_output::wait(&server, &self.tournament, &version) => {
                    let status = result?;
                    let tried = status.version.clone().unwrap_or_else(|| version.clone());
                    Ok((Version { outlook: version.outlook, ..tried }, status))
                }
                () = interrupt() => Err(Failure::Negative(format!(
                    "interrupted; its trial continues: arbiter log {} {}",
                    self.tournament, version.bot
                ))),
            }
        })?;
        self.show(&version, &status)
    }

    /// Prints the state of the version.
    fn show(&self, version: &Version, status: &TrialStatus) -> Result<(), Failure> {
        let Version { bot, number, digest, .. } = version;
        let entered = has_entered(version);
        let failed = !entered && trial_output::is_over(version);
        let object = || {
            let tried = Some(version.clone());
            let object =
                trial_output::status_json(&TrialStatus { version: tried, ..status.clone() });
            let outlook = non_empty(&version.outlook);
            merge(object, json!({ "digest": hex(digest), "outlook": outlook }))
        };
        self.response.print(object, |out| {
            if failed {
                return Ok(());
            }
            let tournament = &self.tournament;
            let digest = hex(digest);
            let state = if entered {
                format!("version {number} is in {tournament}")
            } else {
                trial_output::describe(version)
            };
            out.line(&format!("{bot} {state}; digest {digest}"))?;
            let forecast = trial_output::forecast_line(version, tournament);
            forecast.map_or(Ok(()), |line| out.line(&line))
        })?;
        if !self.response.json {
            trial_output::print_details(status);
        }
        if failed {
            let state = trial_output::describe(version);
            return Err(Failure::Negative(format!("{bot} {state}; it has not entered")));
        }
        Ok(())
    }
}

/// Whether a version passed its trial and takes part.
fn has_entered(version: &Version) -> bool {
    version.state == "entered"
}

/// A bot packed for submission.
#[derive(Debug)]
pub(super) struct PackedBot {
    /// The name of the entry.
    pub(super) name: EntrantName,
    bundle: Bundle,
}

impl PackedBot {
    /// Builds the bot at `path` if necessary and packs it.
    ///
    /// # Errors
    /// If there is no bot, or it cannot be built or packed.
    pub(super) fn build(path: &Path) -> Result<Self, Failure> {
        if let Some(command) = Bot::build_due(path) {
            eprint_line(&format!("building {} with {command}", path.display()));
        }
        let bot = Bot::load(path).map_err(Failure::usage)?;
        let bundle = Bundle::of(&bot).map_err(Failure::usage)?;
        Ok(Self { name: bot.name.into(), bundle })
    }

    /// The digest of the bundle.
    pub(super) fn digest(&self) -> [u8; 32] {
        self.bundle.digest().into()
    }

    /// Packs the sources of the bot in the directory or archive at `path`, without building it.
    ///
    /// # Errors
    /// If there is no bot, or it cannot be packed.
    pub(super) fn from_source(path: &Path) -> Result<Self, Failure> {
        let bundle::Submission { name, bundle } =
            bundle::Submission::read(path).map_err(Failure::usage)?;
        Ok(Self { name: name.into(), bundle })
    }

    /// Submits it to the tournament of this name.
    pub(super) async fn submit(
        &self,
        server: &Server,
        tournament: &str,
        house: bool,
    ) -> Result<Version, Failure> {
        let Self { name, bundle } = self;
        let tournament = tournament.to_owned();
        let bot = name.to_string();
        let request = |part| SubmitVersionRequest { part: Some(part) };
        let first = Part::Submission(Submission { tournament, bot, house });
        let (requests, bar) =
            bundle_upload::requests(bundle, request(first), |bytes| request(Part::Bundle(bytes)));
        let version = server.bots().submit_version(requests).await;
        bar.finish_and_clear();
        Ok(version?.into_inner())
    }
}
