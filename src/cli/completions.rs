//! `arbiter completions SHELL`.

use std::io;

use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};

use super::Cli;

/// Print the completion script of a shell.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  arbiter completions bash > /etc/bash_completion.d/arbiter")]
pub(super) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self) {
        generate(self.shell, &mut Cli::command(), "arbiter", &mut io::stdout());
    }
}
