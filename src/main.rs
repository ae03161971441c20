//! The program `arbiter`, with the built-in games.

use std::process::ExitCode;

use arbiter_games::Games;

fn main() -> ExitCode {
    arbiter::run(&Games::built_in())
}
