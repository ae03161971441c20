//! `arbiter completions SHELL`.

use std::io::{self, Write as _};

use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};

use super::{Cli, Failure, broken_pipe};

/// Print the completion script of a shell.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  arbiter completions bash > /etc/bash_completion.d/arbiter")]
pub(super) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), "arbiter", &mut script);
        io::stdout().write_all(&script).or_else(broken_pipe)
    }
}
