//! `arbiter`: runs official tournaments of game-playing programs. A program with other games needs
//! only one call of [`run`].

mod cli;
mod failure;
mod listen;
mod logging;
mod output;
mod play;
mod playground;
mod random_seed;
mod replay_page;
mod telemetry;
mod up;
mod worker_process;

use std::process::ExitCode;

use arbiter_games::Games;

/// Runs the whole program with these games: parses the command line, runs the command and returns
/// the exit code. Call it first in `main`, because it executes its own file again for sandboxes and
/// workers.
pub fn run(games: &Games) -> ExitCode {
    arbiter_worker::sandbox::handle_reexec();
    cli::run(games)
}
