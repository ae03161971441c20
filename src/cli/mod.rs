//! The command line: one file a command group.
//!
//! Exit codes are part of the interface: 0 done, 1 a negative answer (a record is wrong, a match
//! could not be finished), 2 usage, 3 cannot reach or not allowed.

mod audit;
mod bots;
mod cert;
mod client;
mod completions;
pub(crate) mod coordinator;
mod demo;
mod doctor;
mod follow;
pub(crate) mod logs;
mod match_;
mod moments;
mod observe;
pub(crate) mod output;
pub(crate) mod play;
mod preflight;
mod ranking;
mod records;
mod repro;
mod signals;
mod submit;
mod sync;
mod token;
mod tournament;
mod trial;
mod try_;
mod up;
mod verify;
pub(crate) mod worker;
mod workers;

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

use arbiter_games::Games;
use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use tokio::runtime::Runtime;

/// Runs official tournaments of game-playing programs.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = "Examples:
  arbiter play gomoku bots/gomoku/house bots/gomoku/center --games 2 --record records
  arbiter verify records
  arbiter submit finals mybot/ && arbiter ranking finals --bot mybot
  arbiter play --help")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Play(play::Play),
    Try(try_::Try),
    Preflight(preflight::Preflight),
    Verify(verify::Verify),
    Up(up::Up),
    Demo(demo::Demo),
    Coordinator(coordinator::CoordinatorArgs),
    Worker(worker::Worker),
    Tournament(tournament::Tournament),
    Submit(submit::Submit),
    Sync(sync::Sync),
    Bots(bots::Bots),
    Log(bots::Log),
    Ranking(ranking::Ranking),
    Match(match_::Match),
    Repro(repro::Repro),
    Token(token::Tokens),
    Cert(cert::Cert),
    Audit(audit::Audit),
    Workers(workers::Workers),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
}

/// How a command ends when it does not end well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A negative answer: exit code 1.
    Negative(String),
    /// A wrong call: exit code 2.
    Usage(String),
    /// Something that cannot be reached or is not allowed: exit code 3.
    Refused(String),
    /// Nobody reads the output any more: the end, and no failure.
    Unread,
}

impl Failure {
    /// The failure of a call that something is wrong with.
    pub(crate) fn usage(error: impl fmt::Display) -> Self {
        Self::Usage(error.to_string())
    }

    /// The same failure, told with what was done before it.
    fn after(self, done: &str) -> Self {
        let tell = |message| format!("{done}: {message}");
        match self {
            Self::Negative(message) => Self::Negative(tell(message)),
            Self::Usage(message) => Self::Usage(tell(message)),
            Self::Refused(message) => Self::Refused(tell(message)),
            Self::Unread => Self::Unread,
        }
    }

    /// The failure that another process of this program ended with.
    pub(crate) fn with_code(code: u8, message: String) -> Self {
        match code {
            2 => Self::Usage(message),
            3 => Self::Refused(message),
            _ => Self::Negative(message),
        }
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Unread => 0,
            Self::Negative(_) => 1,
            Self::Usage(_) => 2,
            Self::Refused(_) => 3,
        }
    }

    /// What is told about it.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Negative(message) | Self::Usage(message) | Self::Refused(message) => message,
            Self::Unread => "",
        }
    }
}

/// The command line, with what helps with these games in its help.
fn command(games: &Games) -> clap::Command {
    let names = games.names("or");
    let named = |command: clap::Command| {
        command.mut_args(|arg| if arg.get_id() == "game" { arg.help(names.clone()) } else { arg })
    };
    Cli::command().mut_subcommands(|command| match command.get_name() {
        "play" => named(command).after_help(play::after_help(games)),
        "try" | "preflight" => named(command),
        _ => command,
    })
}

/// Reads the command line, does what it says, and gives the exit code.
pub(crate) fn run(games: &Games) -> ExitCode {
    let asked = command(games).try_get_matches();
    let done = match asked.and_then(|asked| Cli::from_arg_matches(&asked)) {
        Ok(Cli { command }) => match command {
            Command::Play(play) => play.run(games),
            Command::Try(wanted) => wanted.run(games),
            Command::Preflight(preflight) => preflight.run(games),
            Command::Verify(verify) => verify.run(games),
            Command::Up(up) => up.run(games),
            Command::Demo(demo) => demo.run(games),
            Command::Coordinator(coordinator) => coordinator.run(games),
            Command::Worker(worker) => worker.run(games),
            Command::Tournament(tournament) => tournament.run(games),
            Command::Submit(submit) => submit.run(),
            Command::Sync(sync) => sync.run(),
            Command::Bots(bots) => bots.run(),
            Command::Log(log) => log.run(),
            Command::Ranking(ranking) => ranking.run(),
            Command::Match(wanted) => wanted.run(),
            Command::Repro(repro) => repro.run(games),
            Command::Token(token) => token.run(),
            Command::Cert(cert) => cert.run(),
            Command::Audit(audit) => audit.run(),
            Command::Workers(workers) => workers.run(),
            Command::Doctor(doctor) => doctor.run(),
            Command::Completions(completions) => completions.run(games),
        },
        Err(error) => misuse(&error),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message().is_empty() {
                tell(&format!("error: {}", failure.message()));
            }
            ExitCode::from(failure.code())
        }
    }
}

/// What waits for everything that a command waits for.
fn runtime() -> Result<Runtime, Failure> {
    let made = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    made.map_err(|error| Failure::Negative(format!("cannot start threads: {error}")))
}

/// Tells people something beside the results. Nobody is left to tell if standard error is closed.
pub(crate) fn tell(line: &str) {
    drop(writeln!(io::stderr(), "{line}"));
}

/// What clap found wrong, in one line with the remedy; help and version are printed as asked.
fn misuse(error: &clap::Error) -> Result<(), Failure> {
    let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if asked || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let printed = error.print();
        return if asked {
            printed.or_else(broken_pipe)
        } else {
            Err(Failure::Usage(String::new()))
        };
    }
    let text = error.render().to_string();
    let told = text.lines().take_while(|line| !line.starts_with("Usage:"));
    let words: Vec<_> = told.map(str::trim).filter(|line| !line.is_empty()).collect();
    let told = words.join(" ");
    let told = told.strip_prefix("error: ").unwrap_or(&told);
    let told = told.trim_end_matches("For more information, try '--help'.").trim_end();
    Err(Failure::Usage(format!("{told}; see --help")))
}

/// A reader who has seen enough is no error of ours.
#[expect(clippy::needless_pass_by_value, reason = "the form that `or_else` takes")]
pub(crate) fn broken_pipe(error: io::Error) -> Result<(), Failure> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(Failure::Negative(format!("cannot write the output: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command(&Games::built_in()).debug_assert();
    }
}
