//! `arbiter tournament …`: manages tournaments, their editions and schedules.

mod announce;
mod beacon;
mod certificate_and_cost;
mod collusion;
mod create;
mod drop;
mod edit;
mod export;
mod init;
mod lifecycle;
mod list;
mod match_line;
mod package;
mod published_plan;
mod rounds;
mod schedule;
mod site;
mod site_files;
mod void;
mod watch;

use arbiter_games::Games;
use clap::{Args, Subcommand};

use crate::failure::Failure;

pub(super) use create::PreparedTournament;
pub(super) use list::{completion_estimate, settings};
pub(super) use schedule::seed;

/// Create, run, watch and export tournaments.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter tournament init gomoku > finals.toml
  arbiter tournament create finals.toml && arbiter tournament start finals
  arbiter tournament watch finals
  arbiter tournament export finals --out finals --records && \\
      arbiter verify finals/records
  arbiter tournament export finals --site public")]
pub(super) struct Tournament {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Init),
    Create(create::Create),
    Edit(edit::Edit),
    Announce(announce::Announce),
    List(list::List),
    Show(list::Show),
    Start(lifecycle::Start),
    Watch(watch::Watch),
    Cancel(lifecycle::Cancel),
    Close(lifecycle::Close),
    Beacon(beacon::Beacon),
    Drop(drop::Drop),
    Check(lifecycle::Check),
    Collusion(collusion::FindCollusion),
    Package(package::TournamentPackage),
    Export(export::Export),
    Retry(lifecycle::Retry),
    Void(void::Void),
    Schedule(schedule::Show),
    Rounds(rounds::ShowRounds),
}

impl Tournament {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        match self.command {
            Command::Init(init) => init.run(games),
            Command::Create(create) => create.run(games),
            Command::Edit(edit) => edit.run(games),
            Command::Announce(announce) => announce.run(),
            Command::List(list) => list.run(),
            Command::Show(show) => show.run(),
            Command::Start(start) => start.run(),
            Command::Watch(watch) => watch.run(),
            Command::Cancel(cancel) => cancel.run(),
            Command::Close(close) => close.run(),
            Command::Beacon(beacon) => beacon.run(),
            Command::Drop(drop) => drop.run(),
            Command::Check(check) => check.run(),
            Command::Collusion(find) => find.run(),
            Command::Package(set) => set.run(),
            Command::Export(export) => export.run(games),
            Command::Retry(retry) => retry.run(),
            Command::Void(void) => void.run(),
            Command::Schedule(show) => show.run(games),
            Command::Rounds(show) => show.run(),
        }
    }
}
