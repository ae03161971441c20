//! The supervisor: the task that owns a worker's state. See the parent module.

use std::sync::Arc;
use std::time::Duration;

use arbiter_games::Games;
use arbiter_proto::ids::Lease;
use arbiter_proto::v1;
use arbiter_proto::v1::coordinator_message::Payload as Received;
use arbiter_proto::v1::worker_message::Payload;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::{error, info, warn};

use super::connection::{Connection, ConnectionEvent};
use super::report_delivery::ReportDelivery;
use super::slot_state::SlotState;
use super::{Shutdown, WorkerConfig, WorkerError};
use crate::backoff::Backoff;
use crate::bot_cache::{BotCache, JobInputs};
use crate::coordinator_clients::CoordinatorClients;
use crate::job::{InvalidJob, Job};
use crate::metrics::Metrics;
use crate::package_cache::InputsError;
use crate::seat::{StopHandle, StopSignal};
use crate::slot::{JobOutcome, JobRun, SlotContext, SlotEvent, Slots};
use crate::spool::Spool;

/// Renewals per lease period. A lease survives two lost renewals.
const RENEWALS_PER_LEASE: u32 = 3;

/// Shortest lease duration that the worker uses. Shorter leases would need too many renewals.
const MIN_LEASE: Duration = Duration::from_millis(300);

/// Pause of a slot after its first fault.
const MIN_PAUSE: Duration = Duration::from_secs(1);

/// Longest pause after repeated faults. It is short, because other tournaments may have no faults.
const MAX_PAUSE: Duration = Duration::from_secs(15);

/// How long an orderly disconnect may take.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Slot, lease, and the job's inputs or the reason why they cannot be fetched.
type FetchResult = (usize, Lease, Result<JobInputs, InputsError>);

/// A running worker.
pub(super) struct Supervisor {
    games: Games,
    server: String,
    drain: Duration,
    clients: CoordinatorClients,
    connection: Connection,
    spool: Arc<Spool>,
    bot_cache: Arc<BotCache>,
    slots: Slots,
    slot_events: mpsc::UnboundedReceiver<SlotEvent>,
    metrics: Arc<Metrics>,
    slot_states: Vec<SlotState>,
    pauses: Vec<Backoff>,
    fetching: JoinSet<FetchResult>,
    /// Messages that wait for a connection.
    outbox: Vec<Payload>,
    delivery: ReportDelivery,
    /// Id of the coordinator's database. `None` before the first Welcome.
    database: Option<String>,
    /// How long a lease lasts without renewal.
    lease_duration: Duration,
    renew_at: Instant,
    /// Time at which running jobs are stopped, set by a shutdown request.
    shutdown_deadline: Option<Instant>,
    failure: Option<WorkerError>,
}

impl Supervisor {
    pub(super) fn new(
        config: &WorkerConfig,
        clients: CoordinatorClients,
        connection: Connection,
        context: SlotContext,
        bot_cache: Arc<BotCache>,
        slots: Slots,
        slot_events: mpsc::UnboundedReceiver<SlotEvent>,
    ) -> Self {
        let SlotContext { spool, metrics, .. } = context;
        let slot_states = (0..config.slots).map(|_| SlotState::Idle).collect();
        let pause = |slot| Backoff::new(&format!("slot {slot}"), MIN_PAUSE, MAX_PAUSE);
        let pauses = (0..config.slots).map(pause).collect();
        let delivery = ReportDelivery::new(Arc::clone(&spool), Arc::clone(&metrics));
        Self {
            games: config.games.clone(),
            server: config.coordinator.server.clone(),
            drain: config.drain,
            clients,
            connection,
            spool,
            bot_cache,
            slots,
            slot_events,
            metrics,
            slot_states,
            pauses,
            fetching: JoinSet::new(),
            outbox: Vec::new(),
            delivery,
            database: None,
            lease_duration: MIN_LEASE,
            renew_at: Instant::now(),
            shutdown_deadline: None,
            failure: None,
        }
    }

    /// Runs until shutdown.
    pub(super) async fn run(
        mut self,
        mut shutdown: watch::Receiver<Shutdown>,
    ) -> Result<(), WorkerError> {
        let mut has_sender = true;
        self.request_shutdown(*shutdown.borrow_and_update());
        while !self.is_done() {
            self.metrics.set_slots(self.slot_states.iter().map(SlotState::activity));
            let next_timer = self.next_timer();
            tokio::select! {
                event = self.connection.next() => self.handle_connection_event(event),
                Some(event) = self.slot_events.recv() => self.handle_slot_event(event),
                Some(result) = self.fetching.join_next() => self.start_job(result),
                () = sleep_until(next_timer) => self.handle_timers(),
                changed = shutdown.changed(), if has_sender => {
                    // After the sender is dropped, only other events can end the worker.
                    has_sender = changed.is_ok();
                    self.request_shutdown(*shutdown.borrow_and_update());
                }
            }
        }
        self.disconnect().await;
        self.slots.join();
        self.failure.map_or(Ok(()), Err)
    }

    /// Whether a shutdown is complete: no job holds a lease, and all reports are acknowledged or
    /// the deadline has passed.
    fn is_done(&self) -> bool {
        let Some(deadline) = self.shutdown_deadline else { return false };
        let is_busy = self.slot_states.iter().any(|state| state.lease().is_some());
        let is_late = deadline <= Instant::now();
        !is_busy && (is_late || self.spool.leases().is_empty())
    }

    /// Closes the connection and handles the coordinator's last messages.
    async fn disconnect(&mut self) {
        let deadline = Instant::now() + DISCONNECT_TIMEOUT;
        if self.connection.close() {
            let unaccepted = self.drain_messages(deadline).await;
            if !unaccepted.is_empty() {
                self.give_back_late_jobs(unaccepted, deadline).await;
            }
        }
        match self.spool.leases().len() {
            0 => info!("worker stopped; all reports are delivered"),
            waiting => {
                warn!(waiting, "worker stopped; the next start sends the reports in the spool");
            }
        }
    }

    /// Reads messages until the connection ends. Returns the leases of jobs that the coordinator
    /// sent before it noticed the disconnect.
    async fn drain_messages(&mut self, deadline: Instant) -> Vec<v1::Lease> {
        let mut unaccepted = Vec::new();
        loop {
            let Ok(ConnectionEvent::Received(message)) =
                timeout_at(deadline, self.connection.next()).await
            else {
                return unaccepted;
            };
            match *message {
                Received::ReportResponse(response) => self.delivery.handle(response),
                Received::Lot(lot) => unaccepted.extend(lot.lease),
                Received::Trial(trial) => unaccepted.extend(trial.lease),
                _ => {}
            }
        }
    }

    /// Gives back jobs that arrived during the disconnect, over a new connection.
    async fn give_back_late_jobs(&mut self, leases: Vec<v1::Lease>, deadline: Instant) {
        info!(jobs = leases.len(), "giving back jobs that arrived during shutdown");
        self.connection.reconnect();
        while let Ok(event) = timeout_at(deadline, self.connection.next()).await {
            match event {
                ConnectionEvent::Open(_) => {
                    self.connection
                        .send(Payload::ReturnLeases(v1::ReturnLeases { leases: leases.clone() }));
                    self.connection.close();
                }
                ConnectionEvent::Received(_) | ConnectionEvent::Lost(..) => {}
                ConnectionEvent::Refused(_) | ConnectionEvent::Closed => return,
            }
        }
    }

    /// The time of the next timer.
    fn next_timer(&self) -> Instant {
        let pauses = self.slot_states.iter().filter_map(|state| match state {
            SlotState::Pausing(until) => Some(*until),
            _ => None,
        });
        let renewal = self.connection.is_open().then_some(self.renew_at);
        let latest = Instant::now() + MAX_PAUSE;
        let deadline = self.shutdown_deadline.filter(|deadline| *deadline > Instant::now());
        pauses.chain(renewal).chain(deadline).chain(self.delivery.due).fold(latest, Instant::min)
    }

    fn handle_timers(&mut self) {
        let now = Instant::now();
        for slot in 0..self.slot_states.len() {
            if matches!(self.slot_states[slot], SlotState::Pausing(until) if until <= now) {
                self.set_idle(slot);
            }
        }
        if self.connection.is_open() && self.renew_at <= now {
            self.renew();
        }
        self.delivery.take_due().into_iter().for_each(|lease| self.connection.send_report(lease));
        if self.shutdown_deadline.is_some_and(|deadline| deadline <= now) {
            self.stop_all();
        }
    }

    fn handle_connection_event(&mut self, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Open(v1::Welcome { worker, lease_ms, database }) => {
                info!(worker, lease_ms, "connected");
                self.metrics.set_connected(true);
                self.lease_duration = lease_duration(lease_ms);
                self.bind_to_database(database);
                self.resume();
            }
            ConnectionEvent::Received(message) => self.handle_message(*message),
            ConnectionEvent::Closed => {}
            ConnectionEvent::Lost(cause, wait) => {
                let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                self.metrics.set_connected(false);
                warn!(server = self.server, cause, wait_ms, "no coordinator; retrying");
            }
            ConnectionEvent::Refused(cause) => {
                error!(server = self.server, cause, "the coordinator refuses this worker");
                let server = self.server.clone();
                self.fail(WorkerError::Refused { server, cause }, Duration::ZERO);
            }
        }
    }

    fn handle_message(&mut self, message: Received) {
        match message {
            Received::Lot(mut lot) => {
                let lease = lot.lease.take();
                let lease_ms = lot.lease_ms;
                let games = self.games.clone();
                self.accept_job(lease, lease_ms, |lease| Job::lot(&games, lease, lot));
            }
            Received::Trial(mut trial) => {
                let lease = trial.lease.take();
                let lease_ms = trial.lease_ms;
                let games = self.games.clone();
                self.accept_job(lease, lease_ms, |lease| Job::trial(&games, lease, trial));
            }
            Received::ReportResponse(response) => self.delivery.handle(response),
            Received::LeasesLost(v1::LeasesLost { leases }) => {
                leases
                    .into_iter()
                    .filter_map(parse_lease)
                    .for_each(|lease| self.handle_lost_lease(lease));
            }
            Received::Welcome(_) => {}
        }
    }

    /// Drops all leases and messages of another database. Leases are only numbers, and another
    /// database may use the same numbers for other lots.
    fn bind_to_database(&mut self, database: String) {
        self.spool.bind_to_database(&database);
        let previous = self.database.replace(database);
        if previous.is_some() && previous != self.database {
            warn!("the coordinator has a different database; running jobs are abandoned");
            self.outbox.clear();
            let playing: Vec<_> = self.slot_states.iter().filter_map(SlotState::lease).collect();
            for lease in playing {
                self.handle_lost_lease(lease);
            }
        }
    }

    /// Sends the first messages of a new connection: renewals, queued messages, capacity, reports.
    fn resume(&mut self) {
        self.renew();
        for payload in std::mem::take(&mut self.outbox) {
            self.connection.send(payload);
        }
        let idle = self.slot_states.iter().filter(|state| matches!(state, SlotState::Idle)).count();
        self.announce_capacity(idle);
        self.spool.leases().into_iter().for_each(|lease| self.connection.send_report(lease));
    }

    fn renew(&mut self) {
        let playing = self.slot_states.iter().filter_map(SlotState::lease);
        let leases: Vec<_> = playing.chain(self.spool.leases()).map(v1::Lease::from).collect();
        if !leases.is_empty() {
            self.connection.send(Payload::RenewLeases(v1::RenewLeases { leases }));
        }
        self.renew_at = Instant::now() + self.lease_duration / RENEWALS_PER_LEASE;
    }

    fn announce_capacity(&self, idle: usize) {
        if idle > 0 && self.shutdown_deadline.is_none() {
            let slots = u32::try_from(idle).unwrap_or(u32::MAX);
            self.connection.send(Payload::Capacity(v1::Capacity { slots }));
        }
    }

    /// Sends a message now, or after the next connection.
    fn send_or_queue(&mut self, payload: Payload) {
        if self.connection.is_open() {
            self.connection.send(payload);
        } else {
            self.outbox.push(payload);
        }
    }

    fn give_back(&mut self, lease: Lease) {
        self.send_or_queue(Payload::ReturnLeases(v1::ReturnLeases { leases: vec![lease.into()] }));
    }

    /// Makes a slot idle and announces it.
    fn set_idle(&mut self, slot: usize) {
        self.slot_states[slot] = SlotState::Idle;
        self.announce_capacity(1);
    }

    /// Reports a failed attempt and pauses the slot. If the rules of a game package failed, the
    /// slot stays idle: this machine is not the cause, and other tournaments need it.
    fn report_fault(&mut self, slot: usize, lease: Lease, kind: v1::FaultKind, reason: String) {
        self.metrics.record_fault(kind);
        let lease = Some(lease.into());
        self.send_or_queue(Payload::Fault(v1::Fault { lease, reason, kind: kind.into() }));
        if kind == v1::FaultKind::Rules {
            return;
        }
        let pause = self.pauses[slot].next();
        let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        warn!(slot, pause_ms, "the slot pauses after a fault");
        self.slot_states[slot] = SlotState::Pausing(Instant::now() + pause);
    }

    /// Accepts a job if a slot is idle, and fetches its bots. Gives the lease back otherwise.
    fn accept_job(
        &mut self,
        lease: Option<v1::Lease>,
        lease_ms: i64,
        job: impl FnOnce(Lease) -> Result<Job, InvalidJob>,
    ) {
        let Some(lease) = lease.and_then(parse_lease) else {
            warn!("ignored a job without a valid lease");
            return;
        };
        let idle = self.slot_states.iter().position(|state| matches!(state, SlotState::Idle));
        let Some(slot) = idle.filter(|_| self.shutdown_deadline.is_none()) else {
            self.give_back(lease);
            return;
        };
        self.renew_at =
            self.renew_at.min(Instant::now() + lease_duration(lease_ms) / RENEWALS_PER_LEASE);
        match job(lease) {
            Ok(job) => {
                let clients = self.clients.clone();
                let bot_cache = Arc::clone(&self.bot_cache);
                let programs = job.programs();
                let subject = job.subject();
                let package = job.package.as_ref().map(|package| package.source.clone());
                let fetch = async move {
                    let inputs =
                        bot_cache.fetch_inputs(&clients, &programs, subject, package).await;
                    (slot, lease, inputs)
                };
                let task = self.fetching.spawn(fetch);
                self.slot_states[slot] = SlotState::Fetching { job: Box::new(job), task };
            }
            Err(why) => {
                let why = why.to_string();
                warn!(%lease, why, "invalid job");
                self.report_fault(slot, lease, v1::FaultKind::Inputs, why);
            }
        }
    }

    /// Starts a job whose inputs were fetched, or reports why the fetch failed.
    fn start_job(&mut self, result: Result<FetchResult, JoinError>) {
        let (slot, lease, inputs) = match result {
            Ok(fetch_result) => fetch_result,
            Err(error) => {
                let lease_of_task = |state: &SlotState| match state {
                    SlotState::Fetching { job, task } if task.id() == error.id() => Some(job.lease),
                    _ => None,
                };
                let failure = self.slot_states.iter().enumerate().find_map(|(slot, slot_state)| {
                    let lease = lease_of_task(slot_state)?;
                    Some((slot, lease, Err(InputsError::Fetch(error.to_string()))))
                });
                let Some(failure) = failure else { return };
                failure
            }
        };
        // A job that was given back while it was being fetched no longer has a slot.
        let job = match std::mem::replace(&mut self.slot_states[slot], SlotState::Idle) {
            SlotState::Fetching { job, .. } if job.lease == lease => job,
            other => {
                self.slot_states[slot] = other;
                return;
            }
        };
        let signal =
            StopSignal::new_pair().map_err(|error| format!("cannot create a pipe: {error}"));
        match inputs.and_then(|inputs| Ok((inputs, signal?))) {
            Ok((inputs, (stop, stop_handle))) => {
                self.metrics.record_prepared_job();
                self.slots.start_job(slot, JobRun { job: *job, inputs, stop: Arc::new(stop) });
                self.slot_states[slot] =
                    SlotState::Playing { lease, stop_handle: Some(stop_handle), lost: false };
            }
            Err(error) => {
                warn!(%lease, %error, "cannot start a job");
                self.report_fault(slot, lease, error.kind(), error.to_string());
                if matches!(self.slot_states[slot], SlotState::Idle) {
                    self.set_idle(slot);
                }
            }
        }
    }

    fn handle_slot_event(&mut self, event: SlotEvent) {
        match event {
            SlotEvent::Ended { slot, lease, outcome, is_clear } => {
                self.finish_job(slot, lease, outcome);
                match self.slot_states[slot] {
                    _ if !is_clear => self.set_recovering(slot),
                    SlotState::Idle => self.set_idle(slot),
                    _ => {}
                }
            }
            SlotEvent::Cleared(slot) => self.finish_recovery(slot),
        }
    }

    /// Handles a finished job and leaves its slot idle or pausing. The caller announces it if idle.
    fn finish_job(&mut self, slot: usize, lease: Lease, outcome: JobOutcome) {
        let old_state = std::mem::replace(&mut self.slot_states[slot], SlotState::Idle);
        let is_lost = matches!(old_state, SlotState::Playing { lost: true, .. });
        match outcome {
            JobOutcome::Reported => {
                if is_lost {
                    // The coordinator no longer expects this report.
                    self.spool.remove(lease);
                } else {
                    self.connection.send_report(lease);
                }
                self.pauses[slot].reset();
            }
            JobOutcome::Stopped if is_lost => {}
            JobOutcome::Stopped => self.give_back(lease),
            JobOutcome::Failed(kind, reason) => self.report_fault(slot, lease, kind, reason),
        }
    }

    /// Blocks a slot until its dying processes are gone.
    fn set_recovering(&mut self, slot: usize) {
        let until = match self.slot_states[slot] {
            SlotState::Pausing(until) => Some(until),
            _ => None,
        };
        self.slot_states[slot] = SlotState::Recovering(until);
        let is_recovering = |state: &SlotState| matches!(state, SlotState::Recovering(_));
        let recovering = self.slot_states.iter().filter(|state| is_recovering(state)).count();
        warn!(slot, recovering, "the slot waits for dying processes of its last job");
        if recovering == self.slot_states.len() {
            error!("no slot can play until the dying processes are gone");
        }
    }

    /// Frees a slot whose dying processes are gone.
    fn finish_recovery(&mut self, slot: usize) {
        let SlotState::Recovering(until) = self.slot_states[slot] else { return };
        info!(slot, "the slot is free again");
        match until.filter(|until| *until > Instant::now()) {
            Some(until) => self.slot_states[slot] = SlotState::Pausing(until),
            None => self.set_idle(slot),
        }
    }

    /// Stops the job of a lost lease.
    fn handle_lost_lease(&mut self, lease: Lease) {
        let holder = self.slot_states.iter().position(|state| state.lease() == Some(lease));
        let Some(slot) = holder else { return };
        warn!(%lease, "lease lost");
        self.metrics.record_lost_lease();
        match &mut self.slot_states[slot] {
            SlotState::Playing { stop_handle, lost, .. } => {
                *lost = true;
                stop_handle.take().into_iter().for_each(StopHandle::stop);
            }
            SlotState::Fetching { task, .. } => {
                task.abort();
                self.set_idle(slot);
            }
            SlotState::Idle | SlotState::Pausing(_) | SlotState::Recovering(_) => {}
        }
    }

    /// Handles a shutdown request.
    fn request_shutdown(&mut self, shutdown: Shutdown) {
        match shutdown {
            Shutdown::None => {}
            Shutdown::Drain => {
                if self.shutdown_deadline.is_none() {
                    info!(
                        drain_s = self.drain.as_secs(),
                        "draining: no new jobs; running ones may finish"
                    );
                    self.shut_down_within(self.drain);
                }
            }
            Shutdown::Now => self.shut_down_within(Duration::ZERO),
        }
    }

    fn fail(&mut self, failure: WorkerError, within: Duration) {
        self.failure.get_or_insert(failure);
        self.shut_down_within(within);
    }

    fn shut_down_within(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        self.shutdown_deadline =
            Some(self.shutdown_deadline.map_or(deadline, |old| old.min(deadline)));
        self.give_back_fetching();
        if time.is_zero() {
            self.stop_all();
        }
    }

    /// Gives back jobs that have not started.
    fn give_back_fetching(&mut self) {
        for slot in 0..self.slot_states.len() {
            if let SlotState::Fetching { job, task } = &self.slot_states[slot] {
                let lease = job.lease;
                task.abort();
                self.slot_states[slot] = SlotState::Idle;
                self.give_back(lease);
            }
        }
    }

    /// Stops all running jobs.
    fn stop_all(&mut self) {
        for slot_state in &mut self.slot_states {
            if let SlotState::Playing { stop_handle, .. } = slot_state {
                stop_handle.take().into_iter().for_each(StopHandle::stop);
            }
        }
    }
}

/// Duration of a lease from the milliseconds of a message.
fn lease_duration(milliseconds: i64) -> Duration {
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0)).max(MIN_LEASE)
}

/// The lease of a message. `None` if it is invalid: the worker never got such a lease.
fn parse_lease(message: v1::Lease) -> Option<Lease> {
    Lease::try_from(message).ok()
}
