//! `arbiter` with the games that come with it.

use std::process::ExitCode;

use arbiter_games::Games;

fn main() -> ExitCode {
    arbiter::run(&Games::built_in())
}
