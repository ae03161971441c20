//! `arbiter up`: everything on this machine, with one command.

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
use super::moments::duration;
use super::observe::ObserveArgs;
use super::signals;
use super::worker::default_slots;
use crate::failure::Failure;
use crate::logs;
use crate::output::tell;
use crate::up::data::{self, DataDirectory};
use crate::up::services::{Plan, Services};

/// Run everything on this machine: a private Postgres, a coordinator and a worker.
#[derive(Debug, Args)]
#[command(
    after_help = "What is running, and how to talk to it, is told at the start. Ctrl-C lets \
matches under way end,
a second one gives them back; the next start goes on where this one stopped.

Examples:
  arbiter up                          # then open http://127.0.0.1:8080
  arbiter up --data tournaments --slots 4
  arbiter up --sandbox landlock       # where namespaces are not to be had; see docs/security.md
  arbiter up --http 0.0.0.0:80        # pages for everybody
  arbiter up --grpc 0.0.0.0:7700      # other machines: arbiter worker --coordinator http://THIS:7700"
)]
pub(super) struct Up {
    /// Where everything is kept; by default in the user's data directory, as root /var/lib/arbiter.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where workers and clients call.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7700")]
    grpc: SocketAddr,
    /// Where the web pages are; by default 127.0.0.1:8080, or another port if that is taken.
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
    /// Use this database instead of a private one, such as
    /// `postgres://USER@HOST/NAME`.
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
    observe: ObserveArgs,
}

/// How matches are played here.
#[derive(Clone, Debug, Args)]
pub(super) struct SlotArgs {
    /// How many matches are played at a time; by default one for each processor but one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    slots: Option<u16>,
    /// How bots are isolated: auto (as well as this machine can, with namespaces), strict (all of
    /// it), landlock (also where there are no namespaces, and bots are users of this program's
    /// account) or off.
    #[arg(long, value_name = "POLICY", default_value = "auto")]
    sandbox: Policy,
    /// How long matches under way may take to end when everything stops.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    drain: Duration,
}

impl SlotArgs {
    /// The plan for services that are played on so.
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
        logs::start();
        let mut plan = self.slots.plan(games, self.grpc, self.http, &self.leases);
        plan.database.clone_from(&self.database_url);
        plan.records = self.records.records()?;
        plan.tricks_mode = self.tricks_http.tricks_mode;
        plan.otlp = self.observe.otlp().map(str::to_owned);
        if plan.policy == Policy::Auto {
            // Submitted bots run on the machine of the database.
            plan.policy = Policy::Namespaces;
        }
        let data = DataDirectory::open(&self.data.clone().unwrap_or_else(data::usual))?;
        super::runtime()?.block_on(async {
            let mut signals = signals::Endings::watch()?;
            let observing = self.observe.begin("arbiter").await?;
            let mut services = Services::start(&data, plan).await?;
            let observing = observing.of(services.sources.clone());
            tell(&format!(
                "serving at {server}; pages at http://{pages}; data in {data}\nto command it:\n  export \
                 ARBITER_SERVER={server} ARBITER_TOKEN=$(cat {token})",
                server = services.access.server,
                pages = services.pages,
                data = data.path().display(),
                token = data.token_file(Role::Admin).display(),
            ));
            let broken = tokio::select! {
                () = signals.next() => None,
                broken = services.broken() => Some(broken),
            };
            if let Some(broken) = broken {
                return Err(broken);
            }
            tell("stopping: matches under way may end; Ctrl-C again gives them back");
            let stopped = services.stop(signals.next()).await;
            observing.end().await;
            stopped
        })
    }
}
