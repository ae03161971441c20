//! `arbiter coordinator`: plans tournaments, leases matches to workers, counts reported results.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use arbiter_coordinator::access::token_throttle;
use arbiter_coordinator::coordinator::{self, Config, Coordinator, PgConnectOptions, Records};
use arbiter_coordinator::queue::{LeasePolicy, RetryPolicy};
use arbiter_coordinator::record_store::{RecordStore, StoreError};
use arbiter_coordinator::rpc::Tls;
use arbiter_coordinator::tricks_http::Mode;
use arbiter_games::Games;
use clap::Args;
use ipnet::IpNet;
use tokio::net::TcpListener;

use super::signals;
use super::telemetry::TelemetryArgs;
use super::time_arg::interval;
use crate::failure::Failure;
use crate::listen::{listen, listen_if};
use crate::logging;
use crate::output::eprint_line;
use crate::telemetry::Sources;

/// Run a coordinator: plan tournaments, lease matches to workers, count results.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter token create --role admin --database-url postgres:///arbiter
  arbiter coordinator --database-url postgres:///arbiter
  arbiter coordinator --database-url postgres://arbiter@db/arbiter \\
      --grpc 0.0.0.0:7700 --tls-cert server.pem --tls-key server.key \\
      --tls-client-ca workers.pem
  arbiter coordinator --database-url postgres:///arbiter \\
      --records s3://arbiter/records")]
pub(super) struct CoordinatorArgs {
    /// The database URL, such as `postgres://USER@HOST/NAME`.
    #[arg(long, value_name = "URL", env = "ARBITER_DATABASE_URL", hide_env_values = true)]
    #[arg(value_parser = coordinator::parse_database_url)]
    database_url: PgConnectOptions,
    /// The gRPC address for workers and clients.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7700")]
    grpc: SocketAddr,
    /// Serve the web pages on this address, such as 127.0.0.1:8080. Pages are not encrypted: put
    /// a TLS proxy in front.
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    leases: LeaseArgs,
    /// Trust the X-Forwarded-For header of this proxy or network of proxies; may be repeated.
    /// Invalid tokens are counted by client address.
    #[arg(long, value_name = "ADDR[/BITS]", value_parser = token_throttle::network)]
    trust_proxy: Vec<IpNet>,
    #[command(flatten)]
    records: RecordArgs,
    #[command(flatten)]
    tricks_http: TricksArgs,
    /// Maximum number of database connections. Pages and clients use a third of them. Three more
    /// are used for leasing, leader election and, at times, retention.
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=1000))]
    connections: u32,
    #[command(flatten)]
    telemetry: TelemetryArgs,
}

/// The TLS options.
#[expect(clippy::struct_field_names, reason = "the names of the options")]
#[derive(Clone, Debug, Args)]
pub(super) struct TlsArgs {
    /// Encrypt gRPC connections with this certificate chain (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of that certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Accept only clients with a certificate signed by one of these authorities (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
}

impl TlsArgs {
    fn tls(&self) -> Option<Tls> {
        let (certificate, key) = self.tls_cert.clone().zip(self.tls_key.clone())?;
        Some(Tls { certificate, key, clients: self.tls_client_ca.clone() })
    }
}

/// The lease options.
#[derive(Clone, Debug, Args)]
pub(super) struct LeaseArgs {
    /// How long a worker may be silent before other workers get its matches.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = interval)]
    lease: Duration,
    /// Set a match aside after this many infrastructure faults.
    #[arg(long, value_name = "N", default_value_t = LeasePolicy::DEFAULT.retry_policy.faults)]
    #[arg(value_parser = clap::value_parser!(i16).range(1..=1000))]
    faults: i16,
}

impl LeaseArgs {
    /// The queue's lease policy.
    pub(super) fn lease_policy(&self) -> LeasePolicy {
        let lease = self.lease.try_into().expect("a lease is a day at most");
        LeasePolicy {
            lease,
            retry_policy: RetryPolicy { faults: self.faults, ..LeasePolicy::DEFAULT.retry_policy },
        }
    }
}

/// Where match records are stored, and for how long.
#[derive(Clone, Debug, Args)]
pub(super) struct RecordArgs {
    /// Store records here instead of in the database: `s3://BUCKET/PREFIX` (credentials from
    /// `AWS_ACCESS_KEY_ID` and similar variables) or `file:///DIRECTORY`.
    #[arg(long, value_name = "URL", env = "ARBITER_RECORDS")]
    records: Option<String>,
    /// Delete records this many days after their tournament was closed or cancelled; by default
    /// they are never deleted.
    #[arg(long, value_name = "DAYS", env = "ARBITER_KEEP_RECORDS")]
    keep_records: Option<u16>,
}

impl RecordArgs {
    /// Opens the record store.
    pub(super) fn records(&self) -> Result<Records, Failure> {
        let store = self.records.as_deref().map(RecordStore::open).transpose().map_err(
            |error| match error {
                StoreError::Address(_) => Failure::usage(error),
                _ => Failure::Refused(error.to_string()),
            },
        )?;
        let keep = self.keep_records.map(|days| time::Duration::days(days.into()));
        Ok(Records { store, keep })
    }
}

/// The options of tricks over HTTP.
#[derive(Clone, Debug, Args)]
pub(super) struct TricksArgs {
    /// Whether winning tricks over HTTP (`/tricks.php`) earns a victory token: official (with 35
    /// points or more) or test (never).
    #[arg(long, value_name = "MODE", env = "ARBITER_TRICKS_MODE", default_value_t)]
    pub(super) tricks_mode: Mode,
}

impl CoordinatorArgs {
    pub(super) fn run(self, games: &Games) -> Result<(), Failure> {
        logging::start();
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
            let prepared_telemetry = self.telemetry.begin("arbiter-coordinator").await?;
            let mut coordinator = Coordinator::prepare(self.database_url, config)
                .await?
                .with_tricks_mode(self.tricks_http.tricks_mode);
            if coordinator.has_no_tokens().await? {
                eprint_line(
                    "no tokens exist, so only public pages are accessible; create the first token: \
                     arbiter token create --role admin --database-url URL",
                );
            }
            // Port 0 stands for any free port: log the actual one.
            let address = |listener: &TcpListener| {
                listener.local_addr().ok().map(|address| address.to_string())
            };
            let grpc = address(&listener);
            let http = web.as_ref().and_then(address);
            if let Some(web) = web {
                coordinator = coordinator.with_web(web);
            }
            tracing::info!(grpc, http, "serving");
            let mut signals = signals::ShutdownSignals::watch()?;
            let sources = Sources { coordinator: Some(coordinator.observer()), worker: None };
            let telemetry = prepared_telemetry.serve(sources);
            let stop = async move { signals.next().await };
            let result = coordinator.run(listener, stop).await;
            telemetry.stop().await;
            result.map_err(|error| Failure::Refused(error.to_string()))
        })
    }
}
