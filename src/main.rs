//! `arbiter`: runs official tournaments of game-playing programs.

mod cli;
mod observe;
mod play;
mod trying;
mod up;

use std::process::ExitCode;

fn main() -> ExitCode {
    arbiter_worker::sandbox::enter_if_asked();
    cli::run()
}
