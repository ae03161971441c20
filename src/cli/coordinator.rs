//! `arbiter coordinator`: plans tournaments, hands their matches out, counts what comes back.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use arbiter_coordinator::access::token_throttle;
use arbiter_coordinator::coordinator::{self, Config, Coordinator, PgConnectOptions, Records};
use arbiter_coordinator::queue::{LeasePolicy, Patience};
use arbiter_coordinator::record_store::{RecordStore, StoreError};
use arbiter_coordinator::rpc::Tls;
use arbiter_coordinator::tricks_http::Mode;
use arbiter_games::Games;
use clap::Args;
use ipnet::IpNet;
use tokio::net::TcpListener;

use super::moments::interval;
use super::observe::ObserveArgs;
use super::signals;
use crate::failure::Failure;
use crate::listen::{listen, listen_if};
use crate::logs;
use crate::observe::Sources;
use crate::output::tell;

/// Plan tournaments, hand their matches out to workers, count what they report.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter token create --role admin --database-url postgres:///arbiter
  arbiter coordinator --database-url postgres:///arbiter
  arbiter coordinator --database-url postgres://arbiter@db/arbiter --grpc 0.0.0.0:7700 \\
      --tls-cert server.pem --tls-key server.key --tls-client-ca workers.pem
  arbiter coordinator --database-url postgres:///arbiter --records s3://arbiter/records")]
pub(super) struct CoordinatorArgs {
    /// The address of the database, such as `postgres://USER@HOST/NAME`.
    #[arg(long, value_name = "URL", env = "ARBITER_DATABASE_URL", hide_env_values = true)]
    #[arg(value_parser = coordinator::parse_database_url)]
    database_url: PgConnectOptions,
    /// Where workers and clients call.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7700")]
    grpc: SocketAddr,
    /// Serve web pages there, such as 127.0.0.1:8080. They are not encrypted: put a proxy before
    /// them that is.
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    leases: LeaseArgs,
    /// Believe this proxy, or network of proxies, when it says in X-Forwarded-For where a request
    /// comes from; may be given several times. Wrong tokens are counted by that.
    #[arg(long, value_name = "ADDR[/BITS]", value_parser = token_throttle::network)]
    trust_proxy: Vec<IpNet>,
    #[command(flatten)]
    records: RecordArgs,
    #[command(flatten)]
    tricks_http: TricksArgs,
    /// Connections to the database at most, a third of them for pages and clients, beside three of
    /// its own: for leasing, for standing for leader, and now and then for clearing away.
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=1000))]
    connections: u32,
    #[command(flatten)]
    observe: ObserveArgs,
}

/// How connections are encrypted.
#[expect(clippy::struct_field_names, reason = "the names of the options")]
#[derive(Clone, Debug, Args)]
pub(super) struct TlsArgs {
    /// Encrypt connections: the certificate chain, as PEM.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, as PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Let only those in whose certificate is signed by one of these, as PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
}

impl TlsArgs {
    fn tls(&self) -> Option<Tls> {
        let (certificate, key) = self.tls_cert.clone().zip(self.tls_key.clone())?;
        Some(Tls { certificate, key, clients: self.tls_client_ca.clone() })
    }
}

/// The rules of leasing.
#[derive(Clone, Debug, Args)]
pub(super) struct LeaseArgs {
    /// How long a worker may be silent before its matches are given to others.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = interval)]
    lease: Duration,
    /// How many faults of ours set a match aside.
    #[arg(long, value_name = "N", default_value_t = LeasePolicy::DEFAULT.retry_policy.faults, value_parser = clap::value_parser!(i16).range(1..=1000))]
    faults: i16,
}

impl LeaseArgs {
    /// These rules as the queue takes them.
    pub(super) fn lease_policy(&self) -> LeasePolicy {
        let lease = self.lease.try_into().expect("a lease is a day at most");
        LeasePolicy {
            lease,
            retry_policy: Patience { faults: self.faults, ..LeasePolicy::DEFAULT.retry_policy },
        }
    }
}

/// What becomes of the records of matches.
#[derive(Clone, Debug, Args)]
pub(super) struct RecordArgs {
    /// Keep records there instead of in the database: `s3://BUCKET/PREFIX`, which is entered with
    /// what `AWS_ACCESS_KEY_ID` and its like say, or `file:///DIRECTORY`.
    #[arg(long, value_name = "URL", env = "ARBITER_RECORDS")]
    records: Option<String>,
    /// Take records away so many days after their tournament was closed or cancelled; by default
    /// they stay.
    #[arg(long, value_name = "DAYS", env = "ARBITER_KEEP_RECORDS")]
    keep_records: Option<u16>,
}

impl RecordArgs {
    /// The same as the coordinator takes it.
    pub(super) fn records(&self) -> Result<Records, Failure> {
        let store = self.records.as_deref().map(RecordStore::open).transpose();
        let store = store.map_err(|error| match error {
            StoreError::Address(_) => Failure::usage(error),
            _ => Failure::Refused(error.to_string()),
        })?;
        let keep = self.keep_records.map(|days| time::Duration::days(days.into()));
        Ok(Records { store, keep })
    }
}

/// How tricks is served over HTTP.
#[derive(Clone, Debug, Args)]
pub(super) struct TricksArgs {
    /// What victories in tricks over HTTP (`/tricks.php`) are worth: official (35 or more earn a
    /// victory token) or test (never one).
    #[arg(long, value_name = "MODE", env = "ARBITER_TRICKS_MODE", default_value_t)]
    pub(super) tricks_mode: Mode,
}

impl CoordinatorArgs {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        logs::start();
        let config = Config {
            games: games.clone(),
            tls: self.tls.tls(),
            lease_policy: self.leases.lease_policy(),
            connections: self.connections,
            proxies: self.trust_proxy,
            records: self.records.records()?,
        };
        super::runtime()?.block_on(async {
            let listener = listen(self.grpc, "--grpc").await?;
            let web = listen_if(self.http, "--http").await?;
            let observing = self.observe.begin("arbiter-coordinator").await?;
            let coordinator = Coordinator::prepare(self.database_url, config).await?;
            let mut coordinator = coordinator.with_tricks_mode(self.tricks_http.tricks_mode);
            if coordinator.has_no_tokens().await? {
                tell(
                    "there are no tokens yet, so nobody but readers may enter; make the first: \
                     arbiter token create --role admin --database-url URL",
                );
            }
            // Where they really are: an asked-for port 0 is any free one.
            let at = |listener: &TcpListener| listener.local_addr().ok().map(|at| at.to_string());
            let (grpc, http) = (at(&listener), web.as_ref().and_then(at));
            if let Some(web) = web {
                coordinator = coordinator.with_web(web);
            }
            tracing::info!(grpc, http, "serving");
            let mut signals = signals::Endings::watch()?;
            let sources = Sources { coordinator: Some(coordinator.observer()), worker: None };
            let observing = observing.of(sources);
            let served = coordinator.run(listener, signals.next()).await;
            observing.end().await;
            served.map_err(|error| Failure::Refused(error.to_string()))
        })
    }
}
