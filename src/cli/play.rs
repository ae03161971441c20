//! `arbiter play GAME BOT BOT…`: matches on this machine, without server or database.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arbiter_games::{ClockKind, ClockRules, GameName, Seed};
use arbiter_worker::fault::Fault;
use arbiter_worker::sandbox::{Host, Policy};
use arbiter_worker::seat::Stop;
use clap::{ArgAction, Args};
use indicatif::ProgressBar;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::Failure;
use crate::play::plan::{Job, Plan};
use crate::play::run::{Done, Run};
use crate::play::tally::Tally;
use crate::play::{entries, progress, report, settings};

/// Play matches on this machine, without server or database.
#[expect(clippy::struct_excessive_bools, reason = "one for each flag of the command line")]
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(super) struct Play {
    /// wojna, bitwa, tricks, blackjack or gomoku.
    game: String,
    /// A directory with bot.toml or a KotH meta file, or an executable file. More than two in
    /// a game for two play all against all.
    #[arg(required = true, value_name = "BOT")]
    bots: Vec<PathBuf>,
    /// How many games each table plays; in blackjack with rounds > 1, how many episodes.
    #[arg(long, value_name = "N", default_value_t = 1)]
    games: usize,
    /// Any text: the same seed and the same bots give the same matches. Else one is drawn.
    #[arg(long, value_name = "S")]
    seed: Option<String>,
    /// A parameter of the game; may be given again for others.
    #[arg(long = "set", value_name = "KEY=VALUE", action = ArgAction::Append)]
    set: Vec<String>,
    /// Write a record of each match into this directory.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// How bots are isolated: auto, strict or off.
    #[arg(long, value_name = "POLICY", default_value = "auto")]
    sandbox: String,
    /// Which clock is charged: wall, or cpu with ten times the allowance on the wall.
    #[arg(long, value_name = "KIND", default_value = "wall")]
    clock: String,
    /// Print one JSON object a match and one with the table.
    #[arg(long)]
    json: bool,
    /// Show what bots write to standard error.
    #[arg(long)]
    stderr: bool,
    /// How many matches are played at a time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Leave every bot in its seat instead of rotating from game to game.
    #[arg(long)]
    no_rotate: bool,
    /// Let the files that bots leave be there again in their next match (one match at a time).
    #[arg(long)]
    keep_files: bool,
}

/// Examples, and every parameter of every game.
fn after_help() -> String {
    let parameters = GameName::ALL.into_iter().flat_map(|game| {
        let line = move |(name, meaning)| format!("  {game:<10} {name:<13} {meaning}");
        game.parameters().iter().copied().map(line)
    });
    let parameters: Vec<_> = parameters.collect();
    format!(
        "Examples:
  arbiter play gomoku bots/gomoku/house bots/gomoku/shapes --games 10 --seed finals
  arbiter play wojna bots/wojna/house bots/wojna/house bots/wojna/caller bots/wojna/caller \\
      --set deals=4 --record records
  arbiter play blackjack bots/blackjack/house bots/blackjack/lim17 --set rounds=5 --json

Parameters (--set KEY=VALUE):
{}",
        parameters.join("\n")
    )
}

impl Play {
    pub(super) fn run(self) -> Result<(), Failure> {
        let game: GameName = self.game.parse().map_err(Failure::usage)?;
        self.check_counts()?;
        let policy: Policy = self.sandbox.parse().map_err(Failure::usage)?;
        let clock = ClockRules { kind: clock_kind(&self.clock)?, ..ClockRules::OFFICIAL };
        let params = settings::params(game, &self.set, self.bots.len())?;
        let text = self.seed.clone().map_or_else(draw_seed, Ok)?;
        let seed = Seed::of_text(&text);
        let entries = entries::load(game, &self.bots)?;
        let plan = Plan::new(params, entries, seed, self.games, !self.no_rotate)?;
        let host =
            Host::prepare(policy).map_err(|refused| Failure::Refused(refused.to_string()))?;
        if !self.json {
            eprintln!("seed {text}, sandbox level {}", host.level());
        }
        let state = self.keep_files.then(kept_files).transpose()?;
        let run = Run {
            plan: &plan,
            host: &host,
            stop: interruptible()?,
            clock,
            jobs: self.jobs,
            records: self.record_names(game, seed)?,
            state: state.as_ref().map(tempfile::TempDir::path),
        };
        self.play(&run)
    }

    fn check_counts(&self) -> Result<(), Failure> {
        if self.games == 0 {
            return Err(Failure::usage("--games 0 plays nothing; ask for at least 1"));
        }
        if self.jobs == 0 {
            return Err(Failure::usage("--jobs 0 plays nothing; ask for at least 1"));
        }
        if self.keep_files && self.jobs > 1 {
            return Err(Failure::usage(
                "--keep-files needs --jobs 1: files pass from match to match",
            ));
        }
        Ok(())
    }

    /// Where records go: names begin with the game and the seed, so that runs from different
    /// seeds do not overwrite one another.
    fn record_names(
        &self,
        game: GameName,
        seed: Seed,
    ) -> Result<Option<(PathBuf, String)>, Failure> {
        let Some(directory) = &self.record else { return Ok(None) };
        let unusable =
            |error: io::Error| Failure::usage(format!("--record {}: {error}", directory.display()));
        fs::create_dir_all(directory).map_err(unusable)?;
        let directory = fs::canonicalize(directory).map_err(unusable)?;
        Ok(Some((directory, format!("{game}-{}", &seed.to_string()[..8]))))
    }

    /// Plays, shows what there is to show, and says how it ended.
    fn play(&self, run: &Run<'_>) -> Result<(), Failure> {
        let plan = run.plan;
        let mut tally = Tally::new(plan.entries.len());
        let mut played = 0;
        let bar = progress::bar(plan.jobs.len(), "games");
        let ended = run.play(|job, done| {
            tally.add(&done);
            played += 1;
            bar.inc(1);
            bar.suspend(|| self.show(plan, job, &done));
        });
        bar.finish_and_clear();
        if played > 0 {
            self.show_table(plan, &tally, &bar);
        }
        match ended {
            Ok(()) => Ok(()),
            Err(fault @ Fault::System { .. }) => Err(Failure::Negative(format!(
                "{fault}; the match was tried again in vain, {played} of {} games count",
                plan.jobs.len()
            ))),
            Err(Fault::Abandoned) => Err(Failure::Negative(format!(
                "interrupted: {played} of {} games were played and count",
                plan.jobs.len()
            ))),
        }
    }

    fn show(&self, plan: &Plan, job: &Job, done: &Done) {
        for played in &done.matches {
            if self.json {
                print(&report::match_json(plan, job, played).to_string());
            }
            let seats = played.seats.iter().zip(&played.outcome.seats);
            for (entry, seat) in seats.filter(|_| self.stderr) {
                let name = &plan.entries[*entry].name;
                for line in String::from_utf8_lossy(&seat.remains.stderr).lines() {
                    eprintln!("[{} {name}] {}", job.number, line.escape_debug());
                }
            }
            let seats = played.seats.iter().zip(&played.outcome.seats);
            for (entry, seat) in seats.filter(|_| !self.json) {
                if let Some(detail) = &seat.detail {
                    eprintln!(
                        "game {}: {} forfeits, {detail}",
                        job.number, plan.entries[*entry].name
                    );
                }
            }
        }
    }

    fn show_table(&self, plan: &Plan, tally: &Tally, bar: &ProgressBar) {
        bar.suspend(|| {
            if self.json {
                print(&report::table_json(plan, tally).to_string());
            } else {
                print(&report::table(plan, tally));
            }
        });
    }
}

/// Prints a line; a reader who has seen enough does not end the matches.
fn print(line: &str) {
    drop(writeln!(io::stdout(), "{line}"));
}

fn clock_kind(word: &str) -> Result<ClockKind, Failure> {
    match word {
        "wall" => Ok(ClockKind::Wall),
        "cpu" => Ok(ClockKind::Cpu),
        other => Err(Failure::usage(format!("--clock {other}: use wall or cpu"))),
    }
}

/// A text to seed a run with, from the system's randomness.
fn draw_seed() -> Result<String, Failure> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(|error| Failure::Negative(format!("/dev/urandom: {error}; give a --seed")))?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}

/// A directory for what bots leave, removed at the end of the run.
fn kept_files() -> Result<tempfile::TempDir, Failure> {
    tempfile::Builder::new()
        .prefix("arbiter-kept-")
        .tempdir()
        .map_err(|error| Failure::Negative(format!("cannot make a directory: {error}")))
}

/// Lets Ctrl-C and SIGTERM end the matches under way; a second one ends the program.
fn interruptible() -> Result<Arc<Stop>, Failure> {
    let failed = |error: io::Error| Failure::Negative(format!("cannot watch signals: {error}"));
    let (reader, writer) = UnixStream::pair().map_err(failed)?;
    let once = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&once))
            .map_err(failed)?;
        signal_hook::flag::register(signal, Arc::clone(&once)).map_err(failed)?;
        let writer = writer.try_clone().map_err(failed)?;
        signal_hook::low_level::pipe::register(signal, writer).map_err(failed)?;
    }
    Ok(Arc::new(Stop::new(OwnedFd::from(reader))))
}
