//! `arbiter play GAME BOT BOT…`: plays matches on this machine, without a server or database.

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

use arbiter_games::{ClockKind, ClockRules, Games, Seed};
use arbiter_worker::fault::Fault;
use arbiter_worker::match_runner::SeatSummary;
use arbiter_worker::record_writer::Recorder;
use arbiter_worker::sandbox::{Host, Policy, ScratchDir};
use arbiter_worker::seat::StopSignal;
use clap::{ArgAction, Args};
use indicatif::ProgressBar;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::failure::Failure;
use crate::output::broken_pipe;
use crate::output::eprint_line;
use crate::output::printable;
use crate::play::author_hints::AuthorHints;
use crate::play::distinct_games::DistinctGames;
use crate::play::plan::{Job, Plan};
use crate::play::run::{JobResult, PlayedMatch, Run};
use crate::play::tally::Tally;
use crate::play::{bots, game, output, params, progress};
use crate::random_seed::draw_seed;

/// Play matches on this machine, without a server or database.
#[expect(clippy::struct_excessive_bools, reason = "one for each flag of the command line")]
#[derive(Debug, Args)]
pub(super) struct Play {
    game: String,
    /// Bots: directories with bot.toml or a KotH meta file, executable files, or source files (.py,
    /// .js, .c, .cpp, .rs, .java, …). In two-player games, more than two bots play all against all.
    #[arg(required = true, value_name = "BOT")]
    bots: Vec<PathBuf>,
    /// How many games each pairing plays; with several rounds, as in blackjack, how many episodes.
    #[arg(long, value_name = "N", default_value_t = 1)]
    games: usize,
    /// Any text. The same seed and bots give the same matches. By default random.
    #[arg(long, value_name = "S")]
    seed: Option<String>,
    /// A game parameter; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", action = ArgAction::Append)]
    set: Vec<String>,
    /// Write a record of each match into this directory.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    #[command(flatten)]
    sandbox: SandboxArgs,
    /// Print one JSON object per match, then one with the table.
    #[arg(long)]
    json: bool,
    /// Show the standard error of the bots.
    #[arg(long)]
    stderr: bool,
    /// How many matches to play at once.
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Keep bots in their seats instead of rotating them from game to game.
    #[arg(long)]
    no_rotate: bool,
    /// Keep the files that bots write for their next match (needs --jobs 1).
    #[arg(long)]
    keep_files: bool,
}

/// The sandbox and the clock.
#[derive(Clone, Debug, Args)]
pub(super) struct SandboxArgs {
    /// Bot isolation: auto, strict, namespaces, landlock or off.
    #[arg(long = "sandbox", value_name = "POLICY", default_value = "auto")]
    pub(super) policy: Policy,
    /// Which time is charged: wall (wall-clock time) or cpu (CPU time; wall-clock time is limited
    /// to ten times the allowance).
    #[arg(long, value_name = "KIND", default_value = "wall", value_parser = clock_kind)]
    clock: ClockKind,
}

impl SandboxArgs {
    pub(super) fn clock(&self) -> ClockRules {
        ClockRules { kind: self.clock, ..ClockRules::OFFICIAL }
    }
}

/// Maximum number of games in one run.
pub(super) const MAX_GAMES: usize = 1_000_000;

/// Maximum number of matches at once.
pub(super) const MAX_JOBS: usize = 256;

/// The end of the help text: examples, and all parameters of all games.
pub(super) fn after_help(games: &Games) -> String {
    let parameters: Vec<_> = games
        .iter()
        .flat_map(|game| {
            game.params
                .iter()
                .map(move |param| format!("  {game:<10} {:<13} {}", param.key, param.help))
        })
        .collect();
    format!(
        "The table counts the games that each bot won, drew and lost, by the whole scores. With
more than two bots in a game it counts the games in which a bot was first, alone or
shared. A line below says if games repeat: copies of a game tell nothing new. Bots of
the same name are shown with their paths, and copies of a bot as NAME#1, NAME#2.

Examples:
  arbiter play gomoku bots/gomoku/house bots/gomoku/shapes --games 10 \\
      --seed finals
  arbiter play wojna bots/wojna/house bots/wojna/house bots/wojna/caller \\
      bots/wojna/caller --set deals=4 --record records
  arbiter play blackjack bots/blackjack/house bots/blackjack/lim17 \\
      --set rounds=5 --json

Parameters (--set KEY=VALUE):
{}",
        parameters.join("\n")
    )
}

impl Play {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        self.check_counts()?;
        let host = Arc::new(Host::prepare(self.sandbox.policy)?);
        let stop = stop_on_signals()?;
        let game = game::find(games, &self.game, &host, &stop)?;
        let params = params::parse(&game, &self.set, None, Some(self.bots.len()))?;
        let seed_text = self.seed.clone().map_or_else(draw_seed, Ok)?;
        let seed = Seed::of_text(&seed_text);
        let scratch = scratch_dir()?;
        let snapshots = scratch.path().join("bots");
        fs::create_dir(&snapshots).map_err(|error| Failure::Refused(error.to_string()))?;
        let entries = bots::load(&game, &self.bots, &snapshots)?;
        let plan = Plan::new(params, entries, seed, self.games, !self.no_rotate)?;
        if !self.json {
            eprint_line(&format!("seed {seed_text}; {}", host.summary()));
        }
        let state = self.keep_files.then(|| scratch.path().join("kept"));
        let run = Run {
            plan: &plan,
            host: &host,
            stop,
            clock: self.sandbox.clock(),
            jobs: self.jobs,
            records: self.record_location(&plan, seed)?,
            state: state.as_deref(),
        };
        self.play(&run, &seed_text)
    }

    fn check_counts(&self) -> Result<(), Failure> {
        let Self { games, jobs, .. } = self;
        let cause = if !(1..=MAX_GAMES).contains(games) {
            format!("--games {games}: use 1 to {MAX_GAMES}")
        } else if !(1..=MAX_JOBS).contains(jobs) {
            format!("--jobs {jobs}: use 1 to {MAX_JOBS}")
        } else if self.keep_files && *jobs > 1 {
            "--keep-files needs --jobs 1: bots keep files from match to match".to_owned()
        } else {
            return Ok(());
        };
        Err(Failure::Usage(cause))
    }

    /// The directory of records and the prefix of their names: the game and a hash of all inputs of
    /// the matches. Therefore different runs never overwrite each other's records.
    fn record_location(
        &self,
        plan: &Plan,
        seed: Seed,
    ) -> Result<Option<(PathBuf, String)>, Failure> {
        let Some(directory) = &self.record else { return Ok(None) };
        let record_error =
            |error: io::Error| Failure::usage(format!("--record {}: {error}", directory.display()));
        fs::create_dir_all(directory).map_err(record_error)?;
        let directory = fs::canonicalize(directory).map_err(record_error)?;
        Recorder::sweep(&directory);
        tempfile::tempfile_in(&directory).map_err(|error| {
            let directory = directory.display();
            Failure::Refused(format!("--record {directory}: {error}; choose another directory"))
        })?;
        let mut key = format!("{:?} {}", plan.params, self.no_rotate);
        for entry in &plan.entries {
            key += entry.name.as_str();
            key += &entry.bot.digest;
        }
        let hash = seed.derive(&key).to_string();
        Ok(Some((directory, format!("{}-{}", plan.params.game(), &hash[..8]))))
    }

    /// Plays the run, prints the results and reports interruptions and faults.
    fn play(&self, run: &Run<'_>, seed: &str) -> Result<(), Failure> {
        let plan = run.plan;
        let unit = plan.unit();
        let planned = plan.jobs.len();
        let mut tally = Tally::new(plan);
        let mut games = DistinctGames::default();
        let mut print_result = Ok(());
        let bar = progress::bar(planned, format!("{unit}s"));
        let mut hints = AuthorHints::default();
        let on_result = |job: &Job, result: JobResult| {
            tally.add(&result);
            games.add(&result.matches);
            bar.inc(1);
            let shown = self.show(plan, job, &result, &mut hints, &bar);
            if print_result.is_ok() {
                print_result = shown;
            }
            ControlFlow::Continue(())
        };
        let on_recovery = |others: usize| {
            let noun = if others == 1 { "slot continues" } else { "slots continue" };
            bar.suspend(|| {
                eprint_line(&format!("a slot waits for a killed bot to exit; {others} {noun}"));
            });
        };
        let result = run.play(on_result, on_recovery);
        bar.finish_and_clear();
        let count = games.games;
        if count > 0 && print_result.is_ok() {
            print_result = self.show_table(plan, &tally, &games, seed);
        }
        print_result.or_else(broken_pipe)?;
        match result {
            Ok(()) => Ok(()),
            Err(fault @ (Fault::System { .. } | Fault::Rules(_))) => Err(Failure::Negative(
                format!("{fault}; retries failed too; {count} of {planned} {unit}s count"),
            )),
            Err(Fault::Abandoned) => Err(Failure::Negative(format!(
                "interrupted: {count} of {planned} {unit}s were played and counted"
            ))),
        }
    }

    /// Shows what is to be seen of a job, above the progress bar.
    fn show(
        &self,
        plan: &Plan,
        job: &Job,
        result: &JobResult,
        hints: &mut AuthorHints,
        bar: &ProgressBar,
    ) -> io::Result<()> {
        let mut lines = Vec::new();
        let mut messages = Vec::new();
        for played in &result.matches {
            if self.json {
                lines.push(output::match_json(plan, job, played).to_string());
            }
            for (seat, entry) in played.seats.iter().enumerate() {
                messages.extend(self.seat_messages(plan, job, played, seat, *entry));
                if !self.json {
                    messages.extend(hints.lines(plan, played, seat, self.stderr));
                }
            }
        }
        let print = || {
            for message in &messages {
                eprint_line(message);
            }
            lines.iter().try_for_each(|line| writeln!(io::stdout(), "{line}"))
        };
        // Redrawing the bar after each game would take time.
        if messages.is_empty() && (lines.is_empty() || !io::stdout().is_terminal()) {
            return print();
        }
        bar.suspend(print)
    }

    /// A seat's standard error, if it is to be seen, and its first forfeit or bad reply.
    fn seat_messages(
        &self,
        plan: &Plan,
        job: &Job,
        played: &PlayedMatch,
        seat: usize,
        entry: usize,
    ) -> Vec<String> {
        let SeatSummary { failure, usage, .. } = &played.outcome.seats[seat];
        let number = job.number;
        let label = printable(&plan.labels[entry]);
        let mut messages = Vec::new();
        if self.stderr {
            if usage.stderr_dropped > 0 {
                let dropped = usage.stderr_dropped;
                messages.push(format!("[{number} {label}] … {dropped} bytes dropped"));
            }
            let stderr = String::from_utf8_lossy(&usage.stderr);
            let lines =
                stderr.lines().map(|line| format!("[{number} {label}] {}", printable(line)));
            messages.extend(lines);
        }
        if let Some(failure) = failure.as_ref().filter(|_| !self.json) {
            let forfeited = played.outcome.results[seat].forfeit.is_some();
            let event = if forfeited { "forfeits" } else { "gave a bad reply" };
            messages.push(format!("{} {number}: {label} {event}, {failure}", plan.unit()));
        }
        messages
    }

    fn show_table(
        &self,
        plan: &Plan,
        tally: &Tally,
        games: &DistinctGames,
        seed: &str,
    ) -> io::Result<()> {
        let lines = if self.json {
            vec![output::table_json(plan, tally, games, seed).to_string()]
        } else {
            let mut lines = output::table(plan, tally).lines();
            lines.extend(games.remark(plan.unit()));
            lines
        };
        lines.iter().try_for_each(|line| writeln!(io::stdout(), "{line}"))
    }
}

fn clock_kind(word: &str) -> Result<ClockKind, &'static str> {
    match word {
        "wall" => Ok(ClockKind::Wall),
        "cpu" => Ok(ClockKind::Cpu),
        _ => Err("use wall or cpu"),
    }
}

/// A temporary directory for this run's copies of bots and their files.
pub(super) fn scratch_dir() -> Result<ScratchDir, Failure> {
    ScratchDir::new().map_err(|error| {
        let directory = std::env::temp_dir();
        Failure::Refused(format!(
            "{}: {error}; set TMPDIR to another directory",
            directory.display()
        ))
    })
}

/// The signals that end the run.
const TERMINATING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Stops running matches on Ctrl-C and similar signals. A second signal has no effect, because the
/// first one ends all waits and only the cleanup remains.
pub(super) fn stop_on_signals() -> Result<Arc<StopSignal>, Failure> {
    let failed = |error: io::Error| Failure::Negative(format!("cannot watch signals: {error}"));
    let (reader, writer) = UnixStream::pair().map_err(failed)?;
    for signal in TERMINATING {
        let writer = writer.try_clone().map_err(failed)?;
        signal_hook::low_level::pipe::register(signal, writer).map_err(failed)?;
    }
    Ok(Arc::new(StopSignal::new(OwnedFd::from(reader))))
}
