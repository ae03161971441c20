//! The services of one machine: started together and stopped in the reverse order of dependency.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use arbiter_coordinator::access::{Role, Secret};
use arbiter_coordinator::coordinator::{Config, Coordinator, PgConnectOptions, Records};
use arbiter_coordinator::postgres::{Durability, Postgres};
use arbiter_coordinator::queue::LeasePolicy;
use arbiter_coordinator::tricks_http::Mode;
use arbiter_games::Games;
use arbiter_worker::connect::ConnectOptions;
use arbiter_worker::sandbox::Policy;
use arbiter_worker::worker::WorkerConfig;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::listen::listen;
use crate::telemetry::{Sources, WorkerSource};
use crate::up::data_dir::DataDirectory;
use crate::worker_process::WorkerProcess;

/// The name of the database in the private cluster.
const DATABASE: &str = "postgres";
/// Maximum number of database connections.
const MAX_CONNECTIONS: u32 = 16;
/// The default address of the web pages.
const DEFAULT_PAGES: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
/// How often to check that the private Postgres still runs.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// The configuration of the services.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The gRPC address for workers and clients.
    pub(crate) grpc: SocketAddr,
    /// The available games.
    pub(crate) games: Games,
    /// The address of the web pages, if given.
    pub(crate) http: Option<SocketAddr>,
    /// The database; none means a private one.
    pub(crate) database: Option<PgConnectOptions>,
    /// The lease policy of the queue.
    pub(crate) lease_policy: LeasePolicy,
    /// Where records are stored, and for how long.
    pub(crate) records: Records,
    /// Whether tricks over HTTP earns victory tokens.
    pub(crate) tricks_mode: Mode,
    /// How many matches to play at once.
    pub(crate) slots: usize,
    /// The isolation of bots.
    pub(crate) policy: Policy,
    /// How long running matches may take to finish at shutdown.
    pub(crate) drain: Duration,
    /// Where the worker's traces go.
    pub(crate) otlp: Option<String>,
}

/// The running services.
#[derive(Debug)]
pub(crate) struct Services {
    /// The address and the administrator's token for clients.
    pub(crate) access: ConnectOptions,
    /// The address of the web pages.
    pub(crate) pages: SocketAddr,
    /// The sources of metrics.
    pub(crate) sources: Sources,
    supervisor: Option<PostgresSupervisor>,
    coordinator: JoinHandle<Result<(), Failure>>,
    worker: WorkerProcess,
    coordinator_stops: watch::Sender<bool>,
}

impl Services {
    /// Starts all services. If one fails to start, stops the others.
    pub(crate) async fn start(data: &DataDirectory, plan: Plan) -> Result<Self, Failure> {
        let listener = listen(plan.grpc, "--grpc").await?;
        let address = listener.local_addr().map_err(Failure::usage)?;
        let web = listen_for_pages(plan.http).await?;
        let pages = web.local_addr().map_err(Failure::usage)?;
        let (options, postgres) = if let Some(options) = plan.database.clone() {
            (options, None)
        } else {
            let postgres = start_postgres(data.entry("postgres")).await?;
            (postgres.options(DATABASE), Some(postgres))
        };
        let config = Config {
            games: plan.games.clone(),
            tls: None,
            lease_policy: plan.lease_policy,
            connections: MAX_CONNECTIONS,
            proxies: Vec::new(),
            records: plan.records.clone(),
        };
        let coordinator = Coordinator::prepare(options, config)
            .await?
            .with_web(web)
            .with_tricks_mode(plan.tricks_mode);
        let admin_token = token(data, &coordinator, Role::Admin).await?;
        let worker_token = token(data, &coordinator, Role::Worker).await?;
        let access = |token| ConnectOptions {
            token: Some(token),
            ..ConnectOptions::new(format!("http://{address}"))
        };
        let observer = coordinator.observer();
        let (coordinator_stops, mut stopped) = watch::channel(false);
        let coordinator = tokio::spawn(async move {
            let stop = async move { drop(stopped.wait_for(|stopped| *stopped).await) };
            let result = coordinator.run(listener, stop).await;
            result.map_err(|error| Failure::Negative(error.to_string()))
        });
        let config = WorkerConfig {
            games: plan.games,
            coordinator: access(worker_token),
            name: None,
            slots: plan.slots,
            spool: data.entry("spool"),
            cache: data.entry("cache"),
            policy: plan.policy,
            drain: plan.drain,
        };
        let worker = WorkerProcess::start(config, plan.otlp).await?;
        let metrics = WorkerSource::Process(worker.metrics.clone());
        let sources = Sources { coordinator: Some(observer), worker: Some(metrics) };
        let supervisor = postgres.map(PostgresSupervisor::new);
        let access = access(admin_token);
        Ok(Self { access, pages, sources, supervisor, coordinator, worker, coordinator_stops })
    }

    /// Waits until the coordinator ends unexpectedly, and returns the reason. A worker that ends is
    /// restarted.
    pub(crate) async fn wait_for_failure(&mut self) -> Failure {
        match (&mut self.coordinator).await {
            Ok(Err(failure)) => failure,
            Ok(Ok(())) => Failure::Negative("the coordinator ended unexpectedly".to_owned()),
            Err(panicked) => Failure::Negative(format!("the coordinator failed: {panicked}")),
        }
    }

    /// Stops the worker, then the coordinator, then the database. The worker finishes its matches,
    /// or returns them when `hurry` completes.
    pub(crate) async fn stop(self, hurry: impl Future<Output = ()>) -> Result<(), Failure> {
        let Self { supervisor, coordinator, worker, coordinator_stops, .. } = self;
        let worker_result = worker.stop(hurry).await;
        coordinator_stops.send_replace(true);
        let joined = coordinator.await;
        if let Some(supervisor) = supervisor {
            supervisor.stop().await;
        }
        let coordinator_result = match joined {
            Ok(coordinator_result) => coordinator_result,
            Err(panicked) => Err(Failure::Negative(format!("the coordinator failed: {panicked}"))),
        };
        worker_result.and(coordinator_result)
    }
}

/// Listens for web requests: on the requested address, else on the default port, else on any port.
async fn listen_for_pages(requested: Option<SocketAddr>) -> Result<TcpListener, Failure> {
    if let Some(address) = requested {
        return listen(address, "--http").await;
    }
    match TcpListener::bind(DEFAULT_PAGES).await {
        Ok(listener) => Ok(listener),
        Err(_) => listen((DEFAULT_PAGES.ip(), 0).into(), "--http").await,
    }
}

/// Starts the private Postgres. Creating its cluster takes one or two seconds.
async fn start_postgres(directory: PathBuf) -> Result<Postgres, Failure> {
    let start = move || Postgres::start(&directory, Durability::Synced);
    let started = tokio::task::spawn_blocking(start).await;
    match started {
        Ok(Ok(postgres)) => Ok(postgres),
        Ok(Err(error)) => Err(Failure::Refused(error.to_string())),
        Err(panicked) => Err(Failure::Negative(format!("cannot start Postgres: {panicked}"))),
    }
}

/// Restarts a private Postgres that ends unexpectedly, until it is stopped.
#[derive(Debug)]
struct PostgresSupervisor {
    stops: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl PostgresSupervisor {
    fn new(mut postgres: Postgres) -> Self {
        let (stops, mut stopped) = watch::channel(false);
        let task = tokio::spawn(async move {
            while !*stopped.borrow_and_update() {
                let check = move || (postgres.restart_if_ended(), postgres);
                let Ok((restarted, returned)) = tokio::task::spawn_blocking(check).await else {
                    return;
                };
                postgres = returned;
                match restarted {
                    Ok(false) => {}
                    Ok(true) => tracing::warn!("Postgres ended unexpectedly and was restarted"),
                    Err(error) => {
                        tracing::error!(%error, "Postgres has ended and cannot be restarted");
                    }
                }
                tokio::select! {
                    _ = stopped.changed() => {}
                    () = tokio::time::sleep(CHECK_INTERVAL) => {}
                }
            }
            // Stop on a blocking thread, because stopping waits for a checkpoint.
            drop(tokio::task::spawn_blocking(|| postgres.stop()).await);
        });
        Self { stops, task }
    }

    async fn stop(self) {
        self.stops.send_replace(true);
        // Ignore a panic of the task: it was reported already.
        drop(self.task.await);
    }
}

/// The stored token of a role; creates a new one if the database does not accept it.
async fn token(
    data: &DataDirectory,
    coordinator: &Coordinator,
    role: Role,
) -> Result<String, Failure> {
    if let Some(text) = data.token(role)?
        && coordinator.is_valid_token(&Secret::from(text.clone())).await?
    {
        return Ok(text);
    }
    let secret = coordinator.create_token(role, &format!("up-{role}")).await?;
    data.store_token(role, secret.text())?;
    Ok(secret.text().to_owned())
}
