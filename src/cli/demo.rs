//! `arbiter demo`: plays the official tournaments of all five games with the shipped bots.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use arbiter_games::Games;
use arbiter_proto::v1::{
    Edition, GetRankingRequest, GetTournamentRequest, LeaderboardRef, ListTournamentsRequest,
    StartEditionRequest,
};
use clap::Args;
use indicatif::{MultiProgress, ProgressBar};

use super::client::Server;
use super::coordinator::LeaseArgs;
use super::tournament::PreparedTournament;
use super::up::SlotArgs;
use super::{ranking, signals};
use crate::failure::Failure;
use crate::logging;
use crate::output::{eprint_line, print};
use crate::play::progress;
use crate::up::data_dir::{self, DataDirectory};
use crate::up::services::Services;

/// The directory of the tournament files, relative to the source tree.
const PRESETS: &str = "deploy/tournaments";
/// How often progress is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Play the official tournaments of all five games here and show the leaderboards.
#[derive(Debug, Args)]
#[command(
    after_help = "All data is stored. A stopped demo continues where it was, and a finished one \
    shows its leaderboards again. --fresh starts over.

Examples:
  arbiter demo --quick
  arbiter demo --slots 8 --data /var/tmp/demo
  arbiter demo --quick --fresh"
)]
pub(super) struct Demo {
    /// The data directory; by default a separate one for the demo.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Play small tournaments: about a minute instead of an hour.
    #[arg(long)]
    quick: bool,
    /// Delete the data of an earlier demo first.
    #[arg(long)]
    fresh: bool,
    /// The directory of tournament files; --quick uses its subdirectory `quick/`. By default from
    /// the source tree.
    #[arg(long, value_name = "DIR")]
    presets: Option<PathBuf>,
    /// The gRPC address for workers and clients; by default any free port.
    #[arg(long, value_name = "ADDR")]
    grpc: Option<SocketAddr>,
    /// The address of the web pages; by default 127.0.0.1:8080, or another port if that is taken.
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
    #[command(flatten)]
    slots: SlotArgs,
    #[command(flatten)]
    leases: LeaseArgs,
}

impl Demo {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        logging::start_quietly();
        let grpc = self.grpc.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
        let plan = self.slots.plan(games, grpc, self.http, &self.leases);
        let presets = self.presets(games)?;
        eprint_line("building and packing the shipped bots");
        let prepared = presets
            .iter()
            .map(|path| PreparedTournament::read(games, path))
            .collect::<Result<Vec<_>, _>>()?;
        let name = if self.quick { "arbiter-demo-quick" } else { "arbiter-demo" };
        let directory =
            self.data.clone().unwrap_or_else(|| data_dir::default_path().with_file_name(name));
        if self.fresh {
            DataDirectory::delete(&directory)?;
        }
        let data = DataDirectory::open(&directory)?;
        super::runtime()?.block_on(async {
            let mut signals = signals::ShutdownSignals::watch()?;
            let mut services = Services::start(&data, plan).await?;
            let server = &services.access.server;
            let pages = services.pages;
            let data = data.path().display();
            eprint_line(&format!(
                "coordinator at {server}, pages at http://{pages}, data in {data}"
            ));
            let server = Server::connect(&services.access).await?;
            let result = tokio::select! {
                result = play(&server, &prepared) => result,
                failure = services.wait_for_failure() => return Err(failure),
                () = signals.next() => Err(Failure::Negative(
                    "interrupted; nothing is lost, run the same command to continue".to_owned(),
                )),
            };
            services.stop(signals.next()).await?;
            result
        })
    }

    /// The paths of the tournament files, in the order of the games.
    fn presets(&self, games: &Games) -> Result<Vec<PathBuf>, Failure> {
        let directory = match &self.presets {
            Some(directory) => directory.clone(),
            None => find_presets()?,
        };
        let directory = if self.quick { directory.join("quick") } else { directory };
        let files = games.iter().map(|game| directory.join(format!("{game}.toml")));
        Ok(files.collect())
    }
}

/// Finds the tournament files in the source tree around the current directory or this program.
fn find_presets() -> Result<PathBuf, Failure> {
    let current_dir = std::env::current_dir().ok();
    let current_exe = std::env::current_exe().ok();
    let starts = [current_dir, current_exe];
    let directories = starts.iter().flatten().flat_map(|start| start.ancestors());
    let mut presets = directories.map(|directory| directory.join(PRESETS));
    presets.find(|presets| presets.is_dir()).ok_or_else(|| {
        Failure::Usage(format!(
            "no {PRESETS} here or in a parent directory; run this in the source tree, or use \
             --presets"
        ))
    })
}

/// Plays all tournaments to the end, at the same time, and shows their leaderboards.
async fn play(server: &Server, prepared: &[PreparedTournament]) -> Result<(), Failure> {
    for tournament in prepared {
        start(server, tournament).await?;
    }
    let bars = MultiProgress::new();
    let mut tournaments: Vec<_> = prepared
        .iter()
        .map(|prepared| TournamentProgress {
            name: prepared.name(),
            bar: bars.add(progress::bar(0, prepared.name().to_owned())),
            is_over: false,
        })
        .collect();
    while tournaments.iter().any(|tournament| !tournament.is_over) {
        for tournament in &mut tournaments {
            tournament.update(server).await?;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    drop(bars);
    for tournament in prepared {
        let leaderboard =
            LeaderboardRef { tournament: tournament.name().to_owned(), edition: None };
        let request =
            GetRankingRequest { leaderboard: Some(leaderboard), ..GetRankingRequest::default() };
        let ranking = ranking::fetch_ranking(server, &request, u32::MAX).await?;
        print(|out| {
            out.line("")?;
            out.line(tournament.name())?;
            ranking::show_table(out, &ranking)
        })?;
    }
    Ok(())
}

/// Creates a tournament unless it exists, and starts it unless it was started.
async fn start(server: &Server, prepared: &PreparedTournament) -> Result<(), Failure> {
    let all = server.send(ListTournamentsRequest {}).await?.tournaments;
    if !all.iter().any(|tournament| tournament.name == prepared.name()) {
        prepared.create(server).await?;
    }
    if fetch_newest_edition(server, prepared.name()).await?.is_none() {
        // An interrupted demo may have entered some bots. Sending the same bundle again has no
        // effect.
        prepared.enter(server).await?;
        let request = StartEditionRequest { tournament: prepared.name().to_owned(), fresh: false };
        server.send(request).await?;
    }
    Ok(())
}

/// Fetches the newest edition of a tournament, if there is one.
async fn fetch_newest_edition(server: &Server, name: &str) -> Result<Option<Edition>, Failure> {
    let request = GetTournamentRequest { tournament: name.to_owned(), edition: None };
    Ok(server.send(request).await?.editions.into_iter().next())
}

/// A running tournament and its progress bar.
struct TournamentProgress<'a> {
    name: &'a str,
    bar: ProgressBar,
    is_over: bool,
}

impl TournamentProgress<'_> {
    /// Updates the progress bar.
    async fn update(&mut self, server: &Server) -> Result<(), Failure> {
        let edition = fetch_newest_edition(server, self.name).await?;
        let Some(edition) = edition.filter(|_| !self.is_over) else { return Ok(()) };
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        self.bar.set_length(count(edition.matches));
        self.bar.set_position(count(edition.counted));
        self.is_over = edition.state == "complete";
        if self.is_over {
            self.bar.finish();
            if self.bar.is_hidden() {
                eprint_line(&format!(
                    "{}: {} matches played and counted",
                    self.name, edition.counted
                ));
            }
        }
        let is_active = edition.lots.iter().any(|lots| {
            let state = lots.state.as_str();
            ["blocked", "checking", "pending", "leased", "reported", "delayed"].contains(&state)
        });
        let aside = edition.lots.iter().find(|lots| lots.state == "aside" && lots.matches > 0);
        match aside {
            Some(aside) if !is_active => Err(Failure::Negative(format!(
                "{}: {} matches failed too often and were set aside; see the log for the reasons",
                self.name, aside.matches
            ))),
            _ if edition.state == "cancelled" => {
                Err(Failure::Negative(format!("{} was cancelled", self.name)))
            }
            _ => Ok(()),
        }
    }
}
