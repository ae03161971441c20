//! The command line: one file a command group.
//!
//! Exit codes are part of the interface: 0 done, 1 a negative answer (a record is wrong, a match
//! could not be finished), 2 usage, 3 cannot reach or not allowed.

mod audit;
mod bots;
mod cert;
mod client;
mod completions;
mod coordinator;
mod demo;
mod doctor;
mod follow;
mod match_;
mod moments;
mod observe;
mod play;
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
mod worker;
mod workers;

use std::error::Error as _;
use std::process::ExitCode;

use arbiter_games::Games;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use tokio::runtime::Runtime;

use crate::failure::Failure;
use crate::output::{broken_pipe, tell};

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
    if let Some(told) = unfit_value(error) {
        return Err(Failure::Usage(format!("{told}; see --help")));
    }
    let text = error.render().to_string();
    let told = text.lines().take_while(|line| !line.starts_with("Usage:"));
    let words: Vec<_> = told.map(str::trim).filter(|line| !line.is_empty()).collect();
    let told = words.join(" ");
    let told = told.strip_prefix("error: ").unwrap_or(&told);
    let told = told.trim_end_matches("For more information, try '--help'.").trim_end();
    Err(Failure::Usage(format!("{told}; see --help")))
}

/// What is wrong with the value of an option, if that is what is wrong. An address of a database may
/// have a password in it, and is not shown.
fn unfit_value(error: &clap::Error) -> Option<String> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let cause = error.source().filter(|_| error.kind() == ErrorKind::ValueValidation)?;
    let named = context(ContextKind::InvalidArg).filter(|named| named.starts_with("--"))?;
    let option = named.split([' ', '=']).next()?;
    let value = context(ContextKind::InvalidValue)?;
    let shown = if value.contains('@') { String::new() } else { format!(" {value}") };
    Some(format!("{option}{shown}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command(&Games::built_in()).debug_assert();
    }
}
