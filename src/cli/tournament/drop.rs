//! `arbiter tournament drop`: deletes a closed or cancelled tournament with all its data.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use arbiter_proto::v1::{DeleteTournamentRequest, DeleteTournamentResponse};
use clap::Args;
use serde_json::json;

use crate::cli::client::TournamentArgs;
use crate::failure::Failure;
use crate::output::matches;

/// Delete a closed or cancelled tournament: bots, matches, records, leaderboards.
#[derive(Debug, Args)]
#[command(
    after_help = "This cannot be undone, except from a backup. Export the tournament first if you \
    need its data.

Examples:
  arbiter tournament export spring-cup --records --out spring-cup
  arbiter tournament drop spring-cup          # asks for its name
  arbiter tournament drop spring-cup --yes"
)]
pub(super) struct Drop {
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    target: TournamentArgs,
}

impl Drop {
    pub(super) fn run(self) -> Result<(), Failure> {
        let TournamentArgs { tournament, response } = self.target;
        if !self.yes {
            confirm(&tournament)?;
        }
        let request = DeleteTournamentRequest { tournament: tournament.clone() };
        let DeleteTournamentResponse { editions, matches: counted } =
            response.client.send(request)?;
        let object = || json!({"tournament": tournament, "editions": editions, "matches": counted});
        response.print(object, |out| {
            let editions = match editions {
                1 => "1 edition".to_owned(),
                more => format!("{more} editions"),
            };
            let matches = matches(counted);
            out.line(&format!("{tournament} was deleted, with {editions} and {matches}"))
        })
    }
}

/// Asks the user to confirm by typing the name of the tournament.
///
/// # Errors
/// If the user types anything else, or there is no terminal.
fn confirm(tournament: &str) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        let error = format!("no terminal to confirm the deletion of {tournament}; add --yes");
        return Err(Failure::Usage(error));
    }
    let mut terminal = io::stderr().lock();
    let written =
        write!(terminal, "this cannot be undone; type the tournament's name to confirm: ");
    written.and_then(|()| terminal.flush()).map_err(Failure::usage)?;
    let mut typed = String::new();
    io::stdin().lock().read_line(&mut typed).map_err(Failure::usage)?;
    if typed.trim() != tournament {
        return Err(Failure::Negative(format!(
            "the name is not {tournament}; nothing was deleted"
        )));
    }
    Ok(())
}
