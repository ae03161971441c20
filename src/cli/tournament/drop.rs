//! `arbiter tournament drop`: an old tournament, with everything that was played in it.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use arbiter_proto::v1::{DeleteTournamentRequest, DeleteTournamentResponse};
use clap::Args;
use serde_json::json;

use crate::cli::client::TournamentArgs;
use crate::failure::Failure;
use crate::output::matches;

/// Drop a tournament that was closed or cancelled: its bots, matches, records and leaderboards.
#[derive(Debug, Args)]
#[command(
    after_help = "Nothing of it can be had back but from a backup. Take home what is to be kept \
first.

Examples:
  arbiter tournament export spring-cup --records --out spring-cup
  arbiter tournament drop spring-cup          # asks for its name
  arbiter tournament drop spring-cup --yes"
)]
pub(super) struct Drop {
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    which: TournamentArgs,
}

impl Drop {
    pub(super) fn run(self) -> Result<(), Failure> {
        let TournamentArgs { tournament, answer } = self.which;
        if !self.yes {
            confirm(&tournament)?;
        }
        let request = DeleteTournamentRequest { tournament: tournament.clone() };
        let DeleteTournamentResponse { editions, matches: counted } = answer.client.ask(request)?;
        let gone = || json!({"tournament": tournament, "editions": editions, "matches": counted});
        answer.print(gone, |out| {
            let editions = match editions {
                1 => "1 edition".to_owned(),
                more => format!("{more} editions"),
            };
            let matches = matches(counted);
            out.line(&format!("{tournament} is dropped, with {editions} and {matches}"))
        })
    }
}

/// Asks for the name of the tournament, and gives up if another one, or none, comes back.
fn confirm(tournament: &str) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        let error = format!("nobody is here to confirm that {tournament} is dropped; add --yes");
        return Err(Failure::Usage(error));
    }
    let mut terminal = io::stderr().lock();
    let asked = write!(terminal, "this cannot be undone; the name of the tournament once more: ");
    asked.and_then(|()| terminal.flush()).map_err(Failure::usage)?;
    let mut typed = String::new();
    io::stdin().lock().read_line(&mut typed).map_err(Failure::usage)?;
    if typed.trim() != tournament {
        return Err(Failure::Negative(format!("that is not {tournament}; nothing was dropped")));
    }
    Ok(())
}
