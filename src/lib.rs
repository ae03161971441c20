//! `arbiter`: runs official tournaments of game-playing programs. A program with other games is one
//! line too.

mod cli;
mod failure;
mod listen;
mod logs;
mod observe;
mod output;
mod play;
mod seed;
mod trying;
mod up;
mod worker_process;

use std::process::ExitCode;

use arbiter_games::Games;

/// The whole program, for these games: does what its command line says, and gives the exit code.
/// It starts its own file again for sandboxes and workers, so nothing may come before it.
pub fn run(games: &Games) -> ExitCode {
    arbiter_worker::sandbox::handle_reexec();
    cli::run(games)
}
