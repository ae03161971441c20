//! The command line: one file per command group.
//!
//! Exit codes are part of the interface: 0 done; 1 a negative result (a record is wrong, a match
//! could not finish); 2 wrong usage; 3 unreachable or not allowed; 4 undecided.

mod audit;
mod bot;
mod bot_download;
mod bots;
mod bundle_upload;
mod cert;
mod client;
mod compare;
mod completions;
mod coordinator;
mod demo;
mod doctor;
#[cfg(test)]
mod documented_commands;
mod game;
mod new_folder;
mod package_file;
mod play;
mod playground;
mod preflight;
mod ranking;
mod reconnecting_stream;
mod record_download;
mod replay;
mod repro;
mod show_match;
mod signals;
mod submit;
mod sync;
mod telemetry;
mod time_arg;
mod token;
mod tournament;
mod trial_output;
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
use crate::output::{broken_pipe, eprint_line};

/// Runs official tournaments of game-playing programs.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = "Examples:
  arbiter play gomoku bots/gomoku/house bots/gomoku/center --games 2 \\
      --record records
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
    Compare(compare::Compare),
    Try(playground::Playground),
    Preflight(preflight::Preflight),
    Verify(verify::Verify),
    Replay(replay::Replay),
    Game(game::Game),
    Bot(bot::Bot),
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
    Match(show_match::ShowMatch),
    Repro(repro::Repro),
    Token(token::Tokens),
    Cert(cert::Cert),
    Audit(audit::Audit),
    Workers(workers::Workers),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
}

/// Builds the command line; its help lists these games.
fn command(games: &Games) -> clap::Command {
    let names = games.names("or");
    let list_games = |command: clap::Command| {
        command.mut_args(|arg| {
            if arg.get_id() == "game" {
                arg.help(format!("{names}, or a game package: its folder or packed file"))
            } else {
                arg
            }
        })
    };
    Cli::command().mut_subcommands(|command| match command.get_name() {
        "play" => list_games(command).after_help(play::after_help(games)),
        "compare" | "try" | "preflight" => list_games(command),
        _ => command,
    })
}

/// Parses the command line, runs the command and returns the exit code.
pub(crate) fn run(games: &Games) -> ExitCode {
    let parsed = command(games).try_get_matches();
    let result = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(Cli { command }) => match command {
            Command::Play(play) => play.run(games),
            Command::Compare(compare) => compare.run(games),
            Command::Try(playground) => playground.run(games),
            Command::Preflight(preflight) => preflight.run(games),
            Command::Verify(verify) => verify.run(games),
            Command::Replay(replay) => replay.run(games),
            Command::Game(game) => game.run(games),
            Command::Bot(bot) => bot.run(games),
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
            Command::Match(show_match) => show_match.run(),
            Command::Repro(repro) => repro.run(games),
            Command::Token(token) => token.run(),
            Command::Cert(cert) => cert.run(),
            Command::Audit(audit) => audit.run(),
            Command::Workers(workers) => workers.run(),
            Command::Doctor(doctor) => doctor.run(),
            Command::Completions(completions) => completions.run(games),
        },
        Err(error) => usage_failure(&error),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message().is_empty() {
                eprint_line(&format!("error: {}", failure.message()));
            }
            ExitCode::from(failure.code())
        }
    }
}

/// Starts the asynchronous runtime of a command.
fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Negative(format!("cannot start threads: {error}")))
}

/// Reports a usage error in one line with the remedy. Prints help and version on request.
fn usage_failure(error: &clap::Error) -> Result<(), Failure> {
    let is_request = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if is_request || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let print_result = error.print();
        return if is_request {
            print_result.or_else(broken_pipe)
        } else {
            Err(Failure::Usage(String::new()))
        };
    }
    if let Some(message) = invalid_value(error) {
        return Err(Failure::Usage(format!("{message}; see --help")));
    }
    let text = error.render().to_string();
    let cause = text.lines().take_while(|line| !line.starts_with("Usage:"));
    let lines: Vec<_> = cause.map(str::trim).filter(|line| !line.is_empty()).collect();
    let joined = lines.join(" ");
    let message = joined
        .strip_prefix("error: ")
        .unwrap_or(&joined)
        .trim_end_matches("For more information, try '--help'.")
        .trim_end();
    Err(Failure::Usage(format!("{message}; see --help")))
}

/// Describes an invalid option value, if that is the error. Hides a value with `@`: a database URL
/// may contain a password.
fn invalid_value(error: &clap::Error) -> Option<String> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let cause = error.source().filter(|_| error.kind() == ErrorKind::ValueValidation)?;
    let argument = context(ContextKind::InvalidArg).filter(|name| name.starts_with("--"))?;
    let option = argument.split([' ', '=']).next()?;
    let value = context(ContextKind::InvalidValue)?;
    let value_text = if value.contains('@') { String::new() } else { format!(" {value}") };
    Some(format!("{option}{value_text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command(&Games::built_in()).debug_assert();
    }
}
