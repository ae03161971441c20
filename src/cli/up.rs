//! `arbiter up`: runs Postgres, a coordinator and a worker on this machine.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use arbiter_coordinator::access::Role;
use arbiter_coordinator::coordinator::{self, PgConnectOptions, Records};
use arbiter_coordinator::tricks_http::Mode;
use arbiter_games::Games;
use arbiter_worker::sandbox::Policy;
use clap::Args;

use super::coordinator::{LeaseArgs, RecordArgs, TricksArgs};
use super::signals;
use super::telemetry::TelemetryArgs;
use super::time_arg::duration;
use super::worker::default_slots;
use crate::failure::Failure;
use crate::logging;
use crate::output::eprint_line;
use crate::up::data_dir::{self, DataDirectory};
use crate::up::services::{Plan, Services};

/// Run everything on this machine: a private Postgres, a coordinator, a worker, web pages.
#[derive(Debug, Args)]
#[command(
    after_help = "Prints the addresses and how to use them. Ctrl-C waits for running matches; a \
    second Ctrl-C returns them. The next start continues where this one stopped.

Examples:
  arbiter up                        # then open http://127.0.0.1:8080
  arbiter up --data tournaments --slots 4
  arbiter up --sandbox landlock     # without namespaces; see docs/security.md
  arbiter up --http 0.0.0.0:80      # public pages
  arbiter up --grpc 0.0.0.0:7700    # for workers on other machines"
)]
pub(super) struct Up {
    /// The data directory; by default in the user's data directory, for root /var/lib/arbiter.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The gRPC address for workers and clients.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7700")]
    grpc: SocketAddr,
    /// The address of the web pages; by default 127.0.0.1:8080, or another port if that is taken.
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
    /// Use this database instead of a private one, such as `postgres://USER@HOST/NAME`.
    #[arg(long, value_name = "URL", env = "ARBITER_DATABASE_URL", hide_env_values = true)]
    #[arg(value_parser = coordinator::parse_database_url)]
    database_url: Option<PgConnectOptions>,
    #[command(flatten)]
    slots: SlotArgs,
    #[command(flatten)]
    leases: LeaseArgs,
    #[command(flatten)]
    records: RecordArgs,
    #[command(flatten)]
    tricks_http: TricksArgs,
    #[command(flatten)]
    telemetry: TelemetryArgs,
}

/// How matches are played on this machine.
#[derive(Clone, Debug, Args)]
pub(super) struct SlotArgs {
    /// How many matches to play at once; by default the number of processors minus one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    slots: Option<u16>,
    /// Bot isolation: auto (the best possible with namespaces), strict (full isolation or
    /// fail), landlock (works without namespaces; bots run as this program's user) or off.
    #[arg(long, value_name = "POLICY", default_value = "auto")]
    sandbox: Policy,
    /// How long running matches may take to finish at shutdown.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    drain: Duration,
}

impl SlotArgs {
    /// The service plan with these options.
    pub(super) fn plan(
        &self,
        games: &Games,
        grpc: SocketAddr,
        http: Option<SocketAddr>,
        leases: &LeaseArgs,
    ) -> Plan {
        Plan {
            games: games.clone(),
            grpc,
            http,
            database: None,
            lease_policy: leases.lease_policy(),
            records: Records::default(),
            slots: self.slots.map_or_else(default_slots, usize::from),
            policy: self.sandbox,
            drain: self.drain,
            tricks_mode: Mode::default(),
            otlp: None,
        }
    }
}

impl Up {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        logging::start();
        let mut plan = self.slots.plan(games, self.grpc, self.http, &self.leases);
        plan.database.clone_from(&self.database_url);
        plan.records = self.records.records()?;
        plan.tricks_mode = self.tricks_http.tricks_mode;
        plan.otlp = self.telemetry.otlp().map(str::to_owned);
        if plan.policy == Policy::Auto {
            // Require namespaces, because submitted bots run on the same machine as the database.
            plan.policy = Policy::Namespaces;
        }
        let data = DataDirectory::open(&self.data.clone().unwrap_or_else(data_dir::default_path))?;
        super::runtime()?.block_on(async {
            let mut signals = signals::ShutdownSignals::watch()?;
            let prepared_telemetry = self.telemetry.begin("arbiter").await?;
            let mut services = Services::start(&data, plan).await?;
            let telemetry = prepared_telemetry.serve(services.sources.clone());
            eprint_line(&format!(
                "serving at {server}; pages at http://{pages}; data in {data}\n\
                 to use it from a shell:\n  \
                 export ARBITER_SERVER={server} ARBITER_TOKEN=$(cat {token})",
                server = services.access.server,
                pages = services.pages,
                data = data.path().display(),
                token = data.token_file(Role::Admin).display(),
            ));
            tokio::select! {
                () = signals.next() => {}
                failure = services.wait_for_failure() => return Err(failure),
            }
            eprint_line("stopping after the running matches; press Ctrl-C again to return them");
            let result = services.stop(signals.next()).await;
            telemetry.stop().await;
            result
        })
    }
}
