//! `arbiter preflight GAME PATH`: runs a bot's trial on this machine, as a worker does.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use arbiter_games::{ClockRules, Games, Params, Seed, seat_counts};
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
    packed, built in a sandbox without network, and plays short matches from every seat. It \
    passes if it forfeits no match. Tolerated protocol errors are warnings. Exit code 0 if it \
    passes, 1 if not.

The opponents are the bots of --against. Without it, they are the house bots of a game package, or \
    the bot itself. At tables of two it plays against the first two opponents. At larger tables \
    they share a match.

Examples:
  arbiter preflight gomoku mybot/
  arbiter preflight wojna mybot.zip --against bots/wojna/house \\
      --against bots/wojna/caller
  arbiter preflight games/packages/liars-dice mybot/ --seats 3
  arbiter preflight bitwa mybot/ --set board=twierdze --json"
)]
pub(super) struct Preflight {
    game: String,
    /// The bot: a directory with bot.toml or a KotH meta file, an archive of one (.tar, .tar.gz,
    /// .tar.zst, .zip), an executable file, or one source file (.py, .js, .c, .cpp, .rs, .java, …).
    path: PathBuf,
    /// An opponent, instead of the house bots; may be repeated.
    #[arg(long, value_name = "BOT", action = ArgAction::Append)]
    against: Vec<PathBuf>,
    /// The number of seats of each match. By default as in tournaments of the game.
    #[arg(long, value_name = "N")]
    seats: Option<usize>,
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
        let located = game::locate(games, &self.game)?;
        let game = located.run(games, &self.game, &host, &stop)?;
        let params = params::parse(&game, &self.set, None, self.seats)?;
        let seats = self.table_seats(&params)?;
        let Submission { name, bundle } = Submission::read(&self.path).map_err(Failure::usage)?;
        let scratch = scratch_dir()?;
        let snapshots = scratch.path().join("others");
        let trial_dir = scratch.path().join("trial");
        for directory in [&snapshots, &trial_dir] {
            fs::create_dir(directory).map_err(|error| Failure::Refused(error.to_string()))?;
        }
        let against =
            if self.against.is_empty() { located.house_bots() } else { self.against.clone() };
        let others = bots::load(&game, &against, &snapshots)?.into_iter();
        let opponents =
            others.map(|entry| Player { name: entry.name, bot: Arc::clone(&entry.bot).into() });
        let trial = Trial {
            seats,
            params,
            seed: self.seed,
            clock: ClockRules::OFFICIAL,
            jail: JailConfig::default(),
            name: name.clone(),
            opponents: opponents.collect(),
        };
        if !self.json {
            eprint_line(&host.summary());
            eprint_line(&format!("{name}: {}", describe_tables(&trial)));
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

    /// The number of seats of each match: the chosen one, or that of the game's tournaments.
    fn table_seats(&self, params: &Params) -> Result<usize, Failure> {
        let allowed = params.seats();
        match self.seats {
            Some(seats) if allowed.contains(&seats) => Ok(seats),
            Some(seats) => {
                let game = params.game();
                let allowed = seat_counts(&allowed);
                Err(Failure::usage(format!(
                    "--seats {seats}: with these parameters {game} has tables of {allowed}"
                )))
            }
            None => {
                let usual = params.game().official.schedule.table_seats();
                Ok(usual.filter(|seats| allowed.contains(seats)).unwrap_or(*allowed.end()))
            }
        }
    }

    fn show(&self, trial: &Trial, digest: &str, outcome: &TrialOutcome) -> Result<(), Failure> {
        let name = &trial.name;
        let TrialOutcome { failure, measurements, warnings, log, .. } = outcome;
        let TrialFailure { reason, evidence } = failure.clone().unwrap_or_default();
        let object = || {
            json!({
                "bot": name,
                "game": trial.params.game(),
                "seats": trial.seats,
                "against": opponent_names(trial),
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

/// The opponents of a trial. Empty: the bot plays against itself.
fn opponent_names(trial: &Trial) -> Vec<String> {
    trial.playing_opponents().map(|player| player.name.to_string()).collect()
}

/// The tables of a trial, in words.
fn describe_tables(trial: &Trial) -> String {
    let names = opponent_names(trial);
    let seats = trial.seats;
    match (seats, names.is_empty()) {
        (1, _) => "plays alone".to_owned(),
        (_, true) => format!("plays against itself at tables of {seats}"),
        (_, false) => format!("plays against {} at tables of {seats}", names.join(", ")),
    }
}
