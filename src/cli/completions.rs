//! `arbiter completions SHELL`.

use std::io::{self, Write as _};

use arbiter_games::Games;
use clap::Args;
use clap_complete::{Shell, generate};

use super::command;
use crate::failure::Failure;
use crate::output::broken_pipe;

/// Print a shell completion script.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  arbiter completions bash > /etc/bash_completion.d/arbiter")]
pub(super) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        let mut script = Vec::new();
        generate(self.shell, &mut command(games), "arbiter", &mut script);
        io::stdout().write_all(&script).or_else(broken_pipe)
    }
}
