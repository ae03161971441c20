//! `arbiter preflight GAME PATH`: runs a bot's trial on this machine, as a worker does.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use arbiter_games::{ClockRules, Games, Seed};
use arbiter_worker::bundle::Submission;
use arbiter_worker::fault::Fault;
use arbiter_worker::sandbox::{Host, JailConfig, Policy};
use arbiter_worker::trial::{Player, Trial, TrialFailure, TrialOutcome, TrialProgress};
use clap::{ArgAction, Args};
use serde_json::json;

use super::play::{scratch_dir, stop_on_signals};
use super::tournament::seed;
use super::trial_output;
use crate::failure::Failure;
use crate::output::{eprint_line, print};
use crate::play::{bots, game, params};

/// Run a bot's trial on this machine: build it and play it from every seat.
#[derive(Debug, Args)]
#[command(
    after_help = "A worker runs the same trial before a submitted version enters. The bot is \
    packed, built in a sandbox without network, and plays short matches from every seat against \
    the bots of --against, or against itself. It passes if it forfeits no match. Tolerated \
    protocol errors are warnings. Exit code 0 if it passes, 1 if not.

Examples:
  arbiter preflight gomoku mybot/
  arbiter preflight wojna mybot.zip --against bots/wojna/house \\
      --against bots/wojna/caller
  arbiter preflight bitwa mybot/ --set board=twierdze --json"
)]
pub(super) struct Preflight {
    game: String,
    /// The bot: a directory with bot.toml or a KotH meta file, an archive of one (.tar, .tar.gz,
    /// .tar.zst, .zip), or an executable file.
    path: PathBuf,
    /// An opponent; may be repeated.
    #[arg(long, value_name = "BOT", action = ArgAction::Append)]
    against: Vec<PathBuf>,
    /// A game parameter; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", action = ArgAction::Append)]
    set: Vec<String>,
    /// Any text; the same seed and bots give the same matches.
    #[arg(long, value_name = "S", default_value = "preflight", value_parser = seed)]
    seed: Seed,
    /// Bot isolation: auto, strict, namespaces, landlock or off.
    #[arg(long, value_name = "POLICY", default_value = "auto")]
    sandbox: Policy,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Preflight {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        let host = Arc::new(Host::prepare(self.sandbox)?);
        let stop = stop_on_signals()?;
        let game = game::find(games, &self.game, &host, &stop)?;
        let params = params::parse(&game, &self.set, None, None)?;
        let Submission { name, bundle } = Submission::read(&self.path).map_err(Failure::usage)?;
        let scratch = scratch_dir()?;
        let snapshots = scratch.path().join("others");
        let trial_dir = scratch.path().join("trial");
        for directory in [&snapshots, &trial_dir] {
            fs::create_dir(directory).map_err(|error| Failure::Refused(error.to_string()))?;
        }
        let others = bots::load(&game, &self.against, &snapshots)?.into_iter();
        let opponents =
            others.map(|entry| Player { name: entry.name, bot: Arc::clone(&entry.bot).into() });
        let trial = Trial {
            seats: *params.seats().end(),
            params,
            seed: self.seed,
            clock: ClockRules::OFFICIAL,
            jail: JailConfig::default(),
            name: name.clone(),
            opponents: opponents.collect(),
        };
        if !self.json {
            eprint_line(&host.summary());
        }
        let mut on_progress = |progress| {
            if !self.json {
                eprint_line(&match progress {
                    TrialProgress::Building => format!("{name}: building"),
                    TrialProgress::Played(played, all) => {
                        format!("{name}: {played} of {all} matches played")
                    }
                });
            }
        };
        let outcome = trial
            .run(&host, &stop, bundle.bytes(), &trial_dir, &mut on_progress)
            .map_err(|fault| match fault {
                Fault::Abandoned => Failure::Negative("interrupted before a result".to_owned()),
                fault @ (Fault::System { .. } | Fault::Rules(_)) => Failure::Negative(format!(
                    "{fault}; the bot did not cause this fault: run arbiter doctor, then try again"
                )),
            })?;
        self.show(&trial, &bundle.digest().to_string(), &outcome)
    }

    fn show(&self, trial: &Trial, digest: &str, outcome: &TrialOutcome) -> Result<(), Failure> {
        let name = &trial.name;
        let TrialOutcome { failure, measurements, warnings, log, .. } = outcome;
        let TrialFailure { reason, evidence } = failure.clone().unwrap_or_default();
        let object = || {
            json!({
                "bot": name,
                "game": trial.params.game(),
                "digest": digest,
                "passed": failure.is_none(),
                "reason": failure.as_ref().map(|_| &reason),
                "evidence": evidence.lines().collect::<Vec<_>>(),
                "warnings": warnings,
                "measurements": measurements,
                "build_log": log,
            })
        };
        print(|out| {
            if self.json {
                return out.json(&object());
            }
            let log_is_shown = failure.is_some() && evidence.is_empty();
            let lines = trial_output::detail_lines(
                &evidence,
                log,
                log_is_shown,
                false,
                warnings,
                Some(measurements),
            );
            lines.iter().try_for_each(|line| out.line(line))?;
            if failure.is_none() { out.line(&format!("{name} passes")) } else { Ok(()) }
        })?;
        match failure {
            None => Ok(()),
            Some(_) => Err(Failure::Negative(format!("{name} fails: {reason}"))),
        }
    }
}
