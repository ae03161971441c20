//! The services of one machine: started together, stopped in the order in which they lean on each
//! other.

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
use crate::observe::{Sources, WorkerSource};
use crate::up::data::DataDirectory;
use crate::worker_process::WorkerProcess;

/// The database that ours is kept in.
const DATABASE: &str = "postgres";
/// Connections to the database at most.
const CONNECTIONS: u32 = 16;
/// Where the web pages are, if nobody says where.
const PAGES: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
/// How often it is looked whether the private Postgres still runs.
const LOOK: Duration = Duration::from_millis(250);

/// What is to be run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Where workers and clients call.
    pub(crate) grpc: SocketAddr,
    /// The games that are played.
    pub(crate) games: Games,
    /// Where the web pages are, if somebody says.
    pub(crate) http: Option<SocketAddr>,
    /// The database, if not a private one.
    pub(crate) database: Option<PgConnectOptions>,
    /// The rules of leasing.
    pub(crate) lease_policy: LeasePolicy,
    /// What becomes of records.
    pub(crate) records: Records,
    /// Whether victories in tricks over HTTP count.
    pub(crate) tricks_mode: Mode,
    /// Matches at a time.
    pub(crate) slots: usize,
    /// How bots are isolated.
    pub(crate) policy: Policy,
    /// How long matches under way may take to end when everything stops.
    pub(crate) drain: Duration,
    /// Where the worker's traces go.
    pub(crate) otlp: Option<String>,
}

/// What runs.
#[derive(Debug)]
pub(crate) struct Services {
    /// How clients get in, as administrators.
    pub(crate) access: ConnectOptions,
    /// Where the web pages are.
    pub(crate) pages: SocketAddr,
    /// What there is to be observed.
    pub(crate) sources: Sources,
    keeper: Option<Keeper>,
    coordinator: JoinHandle<Result<(), Failure>>,
    worker: WorkerProcess,
    coordinator_stops: watch::Sender<bool>,
}

impl Services {
    /// Starts everything. If something does not start, what had started is stopped.
    pub(crate) async fn start(data: &DataDirectory, plan: Plan) -> Result<Self, Failure> {
        let listener = listen(plan.grpc, "--grpc").await?;
        let address = listener.local_addr().map_err(Failure::usage)?;
        let web = listen_for_pages(plan.http).await?;
        let pages = web.local_addr().map_err(Failure::usage)?;
        let (options, postgres) = if let Some(options) = plan.database.clone() {
            (options, None)
        } else {
            let postgres = start_postgres(data.part("postgres")).await?;
            (postgres.options(DATABASE), Some(postgres))
        };
        let config = Config {
            games: plan.games.clone(),
            tls: None,
            lease_policy: plan.lease_policy,
            connections: CONNECTIONS,
            proxies: Vec::new(),
            records: plan.records.clone(),
        };
        let coordinator = Coordinator::prepare(options, config).await?;
        let coordinator = coordinator.with_web(web).with_tricks_mode(plan.tricks_mode);
        let admin = token(data, &coordinator, Role::Admin).await?;
        let pass = token(data, &coordinator, Role::Worker).await?;
        let access = |token| ConnectOptions {
            token: Some(token),
            ..ConnectOptions::new(format!("http://{address}"))
        };
        let observer = coordinator.observer();
        let (coordinator_stops, mut stopped) = watch::channel(false);
        let coordinator = tokio::spawn(async move {
            let stop = async move { drop(stopped.wait_for(|stopped| *stopped).await) };
            let served = coordinator.run(listener, stop).await;
            served.map_err(|error| Failure::Negative(error.to_string()))
        });
        let config = WorkerConfig {
            games: plan.games,
            coordinator: access(pass),
            name: None,
            slots: plan.slots,
            spool: data.part("spool"),
            cache: data.part("cache"),
            policy: plan.policy,
            drain: plan.drain,
        };
        let worker = WorkerProcess::start(config, plan.otlp).await?;
        let metrics = WorkerSource::Process(worker.figures.clone());
        let sources = Sources { coordinator: Some(observer), worker: Some(metrics) };
        let keeper = postgres.map(Keeper::new);
        let access = access(admin);
        Ok(Self { access, pages, sources, keeper, coordinator, worker, coordinator_stops })
    }

    /// Waits until the coordinator ends, which it should not, and says why. A worker that ends is
    /// started again.
    pub(crate) async fn broken(&mut self) -> Failure {
        match (&mut self.coordinator).await {
            Ok(Err(failure)) => failure,
            Ok(Ok(())) => Failure::Negative("the coordinator ended by itself".to_owned()),
            Err(panicked) => Failure::Negative(format!("the coordinator failed: {panicked}")),
        }
    }

    /// Stops everything: the worker ends what it plays, or gives it back when `hurry` comes; then
    /// the coordinator, and the database last.
    pub(crate) async fn stop(self, hurry: impl Future<Output = ()>) -> Result<(), Failure> {
        let Self { keeper, coordinator, worker, coordinator_stops, .. } = self;
        let drained = worker.stop(hurry).await;
        coordinator_stops.send_replace(true);
        let served = coordinator.await;
        if let Some(keeper) = keeper {
            keeper.stop().await;
        }
        let served = match served {
            Ok(served) => served,
            Err(panicked) => Err(Failure::Negative(format!("the coordinator failed: {panicked}"))),
        };
        drained.and(served)
    }
}

/// Takes a port for the web pages: the one that is asked for, or else the usual one if it is free.
async fn listen_for_pages(asked: Option<SocketAddr>) -> Result<TcpListener, Failure> {
    if let Some(address) = asked {
        return listen(address, "--http").await;
    }
    match TcpListener::bind(PAGES).await {
        Ok(listener) => Ok(listener),
        Err(_) => listen((PAGES.ip(), 0).into(), "--http").await,
    }
}

/// Starts the private Postgres; making its cluster takes a second or two.
async fn start_postgres(directory: PathBuf) -> Result<Postgres, Failure> {
    let start = move || Postgres::start(&directory, Durability::Synced);
    let started = tokio::task::spawn_blocking(start).await;
    match started {
        Ok(Ok(postgres)) => Ok(postgres),
        Ok(Err(error)) => Err(Failure::Refused(error.to_string())),
        Err(panicked) => Err(Failure::Negative(format!("cannot start Postgres: {panicked}"))),
    }
}

/// Keeps a private Postgres running until it is told to stop it.
#[derive(Debug)]
struct Keeper {
    stops: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Keeper {
    fn new(mut postgres: Postgres) -> Self {
        let (stops, mut stopped) = watch::channel(false);
        let task = tokio::spawn(async move {
            while !*stopped.borrow_and_update() {
                let look = move || (postgres.restart_if_ended(), postgres);
                let Ok((revived, kept)) = tokio::task::spawn_blocking(look).await else { return };
                postgres = kept;
                match revived {
                    Ok(false) => {}
                    Ok(true) => tracing::warn!("Postgres had ended, and was started again"),
                    Err(error) => tracing::error!(%error, "Postgres has ended"),
                }
                tokio::select! {
                    _ = stopped.changed() => {}
                    () = tokio::time::sleep(LOOK) => {}
                }
            }
            // Stopping waits for its checkpoint.
            drop(tokio::task::spawn_blocking(|| postgres.stop()).await);
        });
        Self { stops, task }
    }

    async fn stop(self) {
        self.stops.send_replace(true);
        // Its end is all that matters.
        drop(self.task.await);
    }
}

/// The token of a role that is kept beside the data; a new one if the database does not know it.
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
    let secret = coordinator.create_token(role, "up").await?;
    data.keep_token(role, secret.text())?;
    Ok(secret.text().to_owned())
}
