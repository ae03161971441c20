//! Where everything about a worker's lots comes together: see the theory of operation above.

use std::sync::Arc;
use std::time::Duration;

use arbiter_games::Games;
use arbiter_proto::ids::Lease;
use arbiter_proto::v1;
use arbiter_proto::v1::coordinator_message::Payload as Heard;
use arbiter_proto::v1::worker_message::Payload;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::{error, info, warn};

use super::connection::{Event, Line};
use super::report_delivery::Verdicts;
use super::{Ending, WorkerConfig, WorkerError};
use crate::backoff::Backoff;
use crate::bot_cache::{Library, Supplies};
use crate::coordinator_clients::Callers;
use crate::job::{Job, Unreadable};
use crate::metrics::{Doing, Metrics};
use crate::seat::{Cord, Stop};
use crate::slot::{Ended, Order, Said, Slots, Workshop};
use crate::spool::Spool;

/// A lease is renewed so often in the time that it holds: two renewals may get lost.
const RENEWALS: u32 = 3;

/// The shortest lease that is taken at its word; a shorter one would have us do nothing else.
const SHORTEST_LEASE: Duration = Duration::from_millis(300);

/// How long a slot pauses after a fault: from this, for the first, ...
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);

/// ... to this, when everything fails: what fails may be one tournament's, and the others wait.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// How long the last words to the coordinator may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// What a slot does.
#[derive(Debug)]
enum Place {
    /// Nothing.
    Idle,
    /// Nothing, after a fault.
    Pausing(Instant),
    /// It waits for the bots of a lot or a trial.
    Fetching { job: Box<Job>, task: AbortHandle },
    /// It plays. Once it was stopped there is no cord left; a lease that was lost is not given
    /// back.
    Playing { lease: Lease, cord: Option<Cord>, lost: bool },
    /// Nothing, until what it played is gone, and in any case until this time.
    Recovering(Option<Instant>),
}

impl Place {
    fn doing(&self) -> Doing {
        match self {
            Self::Idle => Doing::Idle,
            Self::Pausing(_) => Doing::Pausing,
            Self::Fetching { .. } => Doing::Fetching,
            Self::Playing { .. } => Doing::Playing,
            Self::Recovering(_) => Doing::Recovering,
        }
    }

    fn lease(&self) -> Option<Lease> {
        match self {
            Self::Fetching { job, .. } => Some(job.lease),
            Self::Playing { lease, lost: false, .. } => Some(*lease),
            Self::Playing { .. } | Self::Idle | Self::Pausing(_) | Self::Recovering(_) => None,
        }
    }
}

/// What the job of a slot takes, or why that cannot be had.
type Fetched = (usize, Lease, Result<Supplies, String>);

/// A worker at work.
pub(super) struct Desk {
    games: Games,
    server: String,
    drain: Duration,
    callers: Callers,
    line: Line,
    spool: Arc<Spool>,
    library: Arc<Library>,
    slots: Slots,
    ends: mpsc::UnboundedReceiver<Said>,
    metrics: Arc<Metrics>,
    places: Vec<Place>,
    pauses: Vec<Backoff>,
    fetching: JoinSet<Fetched>,
    /// What was to be said while there was no line.
    owed: Vec<Payload>,
    verdicts: Verdicts,
    /// Which database the coordinator has, once it was heard.
    database: Option<String>,
    /// How long leases hold.
    lease: Duration,
    renew_at: Instant,
    /// Until when lots may end, once the worker is to stop.
    until: Option<Instant>,
    failure: Option<WorkerError>,
}

impl Desk {
    pub(super) fn new(
        config: &WorkerConfig,
        callers: Callers,
        line: Line,
        workshop: Workshop,
        library: Arc<Library>,
        slots: Slots,
        ends: mpsc::UnboundedReceiver<Said>,
    ) -> Self {
        let Workshop { spool, metrics, .. } = workshop;
        let places = (0..config.slots).map(|_| Place::Idle).collect();
        let pause = |slot| Backoff::new(&format!("slot {slot}"), SHORTEST_PAUSE, LONGEST_PAUSE);
        let pauses = (0..config.slots).map(pause).collect();
        let verdicts = Verdicts::new(Arc::clone(&spool), Arc::clone(&metrics));
        Self {
            games: config.games.clone(),
            server: config.access.server.clone(),
            drain: config.drain,
            callers,
            line,
            spool,
            library,
            slots,
            ends,
            metrics,
            places,
            pauses,
            fetching: JoinSet::new(),
            owed: Vec::new(),
            verdicts,
            database: None,
            lease: SHORTEST_LEASE,
            renew_at: Instant::now(),
            until: None,
            failure: None,
        }
    }

    /// Works until the end.
    pub(super) async fn run(
        mut self,
        mut ending: watch::Receiver<Ending>,
    ) -> Result<(), WorkerError> {
        let mut asked = true;
        self.hurry(*ending.borrow_and_update());
        while !self.is_over() {
            self.metrics.slots(self.places.iter().map(Place::doing));
            let alarm = self.alarm();
            tokio::select! {
                event = self.line.next() => self.happened(event),
                Some(said) = self.ends.recv() => self.said(said),
                Some(fetched) = self.fetching.join_next() => self.fetched(fetched),
                () = sleep_until(alarm) => self.wake(),
                changed = ending.changed(), if asked => {
                    // Nobody is left who could ask: it goes on until something else ends it.
                    asked = changed.is_ok();
                    self.hurry(*ending.borrow_and_update());
                }
            }
        }
        self.part().await;
        self.slots.end();
        self.failure.map_or(Ok(()), Err)
    }

    /// Whether there is nothing left to do, or no time left to do it in.
    fn is_over(&self) -> bool {
        let Some(until) = self.until else { return false };
        let busy = self.places.iter().any(|place| place.lease().is_some());
        let late = until <= Instant::now();
        !busy && (late || self.spool.leases().is_empty())
    }

    /// Says the last words, and listens as long as somebody answers.
    async fn part(&mut self) {
        let deadline = Instant::now() + FAREWELL;
        if self.line.hang_up() {
            let unwanted = self.listen(deadline).await;
            if !unwanted.is_empty() {
                self.send_back(unwanted, deadline).await;
            }
        }
        match self.spool.leases().len() {
            0 => info!("the end: nothing is left"),
            waiting => warn!(waiting, "the end: reports wait in the spool for the next start"),
        }
    }

    /// Listens until nothing more comes, and gives the leases of what came and is not wanted any
    /// more: the coordinator had sent it before it heard that we leave.
    async fn listen(&mut self, deadline: Instant) -> Vec<v1::Lease> {
        let mut unwanted = Vec::new();
        loop {
            let Ok(Event::Heard(heard)) = timeout_at(deadline, self.line.next()).await else {
                return unwanted;
            };
            match *heard {
                Heard::ReportResponse(verdict) => self.verdicts.hear(verdict),
                Heard::Lot(lot) => unwanted.extend(lot.lease),
                Heard::Trial(trial) => unwanted.extend(trial.lease),
                _ => {}
            }
        }
    }

    /// Gives back what came after we had hung up, over another line.
    async fn send_back(&mut self, leases: Vec<v1::Lease>, deadline: Instant) {
        info!(lots = leases.len(), "what came at the last moment is given back");
        self.line.call_again();
        while let Ok(event) = timeout_at(deadline, self.line.next()).await {
            match event {
                Event::Open(_) => {
                    self.line
                        .say(Payload::ReturnLeases(v1::ReturnLeases { leases: leases.clone() }));
                    self.line.hang_up();
                }
                Event::Heard(_) | Event::Lost(..) => {}
                Event::Refused(_) | Event::Over => return,
            }
        }
    }

    /// When there is something to do although nothing happens.
    fn alarm(&self) -> Instant {
        let pauses = self.places.iter().filter_map(|place| match place {
            Place::Pausing(until) => Some(*until),
            _ => None,
        });
        let renewal = self.line.is_open().then_some(self.renew_at);
        let far = Instant::now() + LONGEST_PAUSE;
        let until = self.until.filter(|until| *until > Instant::now());
        pauses.chain(renewal).chain(until).chain(self.verdicts.due).fold(far, Instant::min)
    }

    fn wake(&mut self) {
        let now = Instant::now();
        for slot in 0..self.places.len() {
            if matches!(self.places[slot], Place::Pausing(until) if until <= now) {
                self.idle(slot);
            }
        }
        if self.line.is_open() && self.renew_at <= now {
            self.renew();
        }
        self.verdicts.take_due().into_iter().for_each(|lease| self.line.report(lease));
        if self.until.is_some_and(|until| until <= now) {
            self.stop_all();
        }
    }

    fn happened(&mut self, event: Event) {
        match event {
            Event::Open(v1::Welcome { worker, lease_ms, database }) => {
                info!(worker, lease_ms, "connected");
                self.metrics.connected(true);
                self.lease = span(lease_ms);
                self.belong(database);
                self.open();
            }
            Event::Heard(heard) => self.heard(*heard),
            Event::Over => {}
            Event::Lost(cause, wait) => {
                let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                self.metrics.connected(false);
                warn!(server = self.server, cause, wait_ms, "no coordinator; trying again");
            }
            Event::Refused(cause) => {
                error!(server = self.server, cause, "the coordinator refuses this worker");
                let server = self.server.clone();
                self.fail(WorkerError::Refused { server, cause }, Duration::ZERO);
            }
        }
    }

    fn heard(&mut self, heard: Heard) {
        match heard {
            Heard::Lot(mut lot) => {
                let (lease, lease_ms) = (lot.lease.take(), lot.lease_ms);
                let games = self.games.clone();
                self.take(lease, lease_ms, |lease| Job::lot(&games, lease, lot));
            }
            Heard::Trial(mut trial) => {
                let (lease, lease_ms) = (trial.lease.take(), trial.lease_ms);
                let games = self.games.clone();
                self.take(lease, lease_ms, |lease| Job::trial(&games, lease, trial));
            }
            Heard::ReportResponse(verdict) => self.verdicts.hear(verdict),
            Heard::LeasesLost(v1::LeasesLost { leases }) => {
                leases.into_iter().filter_map(read).for_each(|lease| self.lost(lease));
            }
            Heard::Welcome(_) => {}
        }
    }

    /// Sees to it that nothing of another database is said to this one: its leases are only numbers,
    /// which may mean something else here.
    fn belong(&mut self, database: String) {
        self.spool.belong(&database);
        let before = self.database.replace(database);
        if before.is_some() && before != self.database {
            warn!("the coordinator has another database: what was under way is given up");
            self.owed.clear();
            let playing: Vec<_> = self.places.iter().filter_map(Place::lease).collect();
            for lease in playing {
                self.lost(lease);
            }
        }
    }

    /// Says everything that a new line has to hear.
    fn open(&mut self) {
        self.renew();
        for say in std::mem::take(&mut self.owed) {
            self.line.say(say);
        }
        let idle = self.places.iter().filter(|place| matches!(place, Place::Idle)).count();
        self.offer(idle);
        self.spool.leases().into_iter().for_each(|lease| self.line.report(lease));
    }

    fn renew(&mut self) {
        let playing = self.places.iter().filter_map(Place::lease);
        let leases: Vec<_> = playing.chain(self.spool.leases()).map(v1::Lease::from).collect();
        if !leases.is_empty() {
            self.line.say(Payload::RenewLeases(v1::RenewLeases { leases }));
        }
        self.renew_at = Instant::now() + self.lease / RENEWALS;
    }

    fn offer(&self, idle: usize) {
        if idle > 0 && self.until.is_none() {
            let slots = u32::try_from(idle).unwrap_or(u32::MAX);
            self.line.say(Payload::Capacity(v1::Capacity { slots }));
        }
    }

    /// Says something that must be heard, now or later.
    fn tell(&mut self, say: Payload) {
        if self.line.is_open() { self.line.say(say) } else { self.owed.push(say) }
    }

    fn give_back(&mut self, lease: Lease) {
        self.tell(Payload::ReturnLeases(v1::ReturnLeases { leases: vec![lease.into()] }));
    }

    /// A slot has nothing to do.
    fn idle(&mut self, slot: usize) {
        self.places[slot] = Place::Idle;
        self.offer(1);
    }

    /// An attempt failed: the slot takes a break.
    fn failed(&mut self, slot: usize, lease: Lease, kind: v1::FaultKind, reason: String) {
        self.metrics.failed(kind);
        let (lease, kind) = (Some(lease.into()), kind.into());
        self.tell(Payload::Fault(v1::Fault { lease, reason, kind }));
        let pause = self.pauses[slot].next();
        let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        warn!(slot, pause_ms, "the slot pauses after a fault");
        self.places[slot] = Place::Pausing(Instant::now() + pause);
    }

    /// Takes a job, if there is a slot for it.
    fn take(
        &mut self,
        lease: Option<v1::Lease>,
        lease_ms: i64,
        job: impl FnOnce(Lease) -> Result<Job, Unreadable>,
    ) {
        let Some(lease) = lease.and_then(read) else {
            warn!("something came without a lease that means anything");
            return;
        };
        let idle = self.places.iter().position(|place| matches!(place, Place::Idle));
        let Some(slot) = idle.filter(|_| self.until.is_none()) else {
            self.give_back(lease);
            return;
        };
        self.renew_at = self.renew_at.min(Instant::now() + span(lease_ms) / RENEWALS);
        match job(lease) {
            Ok(job) => {
                let (callers, library) = (self.callers.clone(), Arc::clone(&self.library));
                let (programs, subject) = (job.programs(), job.subject());
                let fetch = async move {
                    let supplies = library.supply(&callers, &programs, subject).await;
                    (slot, lease, supplies)
                };
                let task = self.fetching.spawn(fetch);
                self.places[slot] = Place::Fetching { job: Box::new(job), task };
            }
            Err(why) => {
                let why = why.to_string();
                warn!(%lease, why, "a lot or a trial that means nothing");
                self.failed(slot, lease, v1::FaultKind::Inputs, why);
            }
        }
    }

    /// What a job takes is here, or not to be had.
    fn fetched(&mut self, fetched: Result<Fetched, JoinError>) {
        let (slot, lease, supplies) = match fetched {
            Ok(fetched) => fetched,
            Err(error) => {
                let its = |place: &Place| match place {
                    Place::Fetching { job, task } if task.id() == error.id() => Some(job.lease),
                    _ => None,
                };
                let its = self.places.iter().enumerate().find_map(|(slot, place)| {
                    its(place).map(|lease| (slot, lease, Err(error.to_string())))
                });
                let Some(failed) = its else { return };
                failed
            }
        };
        // One that was ended by us, perhaps just as it was done, has no slot any more.
        let job = match std::mem::replace(&mut self.places[slot], Place::Idle) {
            Place::Fetching { job, .. } if job.lease == lease => job,
            other => {
                self.places[slot] = other;
                return;
            }
        };
        let stop = Stop::with_cord().map_err(|error| format!("cannot make a pipe: {error}"));
        match supplies.and_then(|supplies| Ok((supplies, stop?))) {
            Ok((supplies, (stop, cord))) => {
                self.metrics.supplied();
                self.slots.give(slot, Order { job: *job, supplies, stop: Arc::new(stop) });
                self.places[slot] = Place::Playing { lease, cord: Some(cord), lost: false };
            }
            Err(why) => {
                warn!(%lease, why, "a lot cannot be played here, or a bot tried");
                self.failed(slot, lease, v1::FaultKind::Inputs, why);
            }
        }
    }

    fn said(&mut self, said: Said) {
        match said {
            Said::Ended { slot, lease, ended, is_clear } => {
                self.ended(slot, lease, ended);
                match self.places[slot] {
                    _ if !is_clear => self.recover(slot),
                    Place::Idle => self.idle(slot),
                    _ => {}
                }
            }
            Said::Cleared(slot) => self.cleared(slot),
        }
    }

    /// A slot has come to the end of its lot, and does nothing for now.
    fn ended(&mut self, slot: usize, lease: Lease, ended: Ended) {
        let before = std::mem::replace(&mut self.places[slot], Place::Idle);
        let lost = matches!(before, Place::Playing { lost: true, .. });
        match ended {
            Ended::Played => {
                if lost {
                    // Nobody waits for it any more.
                    self.spool.forget(lease);
                } else {
                    self.line.report(lease);
                }
                self.pauses[slot].reset();
            }
            Ended::Stopped if lost => {}
            Ended::Stopped => self.give_back(lease),
            Ended::Failed(kind, reason) => self.failed(slot, lease, kind, reason),
        }
    }

    /// A slot waits for what it played to be gone.
    fn recover(&mut self, slot: usize) {
        let until = match self.places[slot] {
            Place::Pausing(until) => Some(until),
            _ => None,
        };
        self.places[slot] = Place::Recovering(until);
        let is_out = |place: &Place| matches!(place, Place::Recovering(_));
        let out = self.places.iter().filter(|place| is_out(place)).count();
        warn!(slot, out, "what it played is still dying: the slot takes nothing until it is gone");
        if out == self.places.len() {
            error!("no slot can play; room is offered again when what is dying is gone");
        }
    }

    /// Nothing is left of what a slot played.
    fn cleared(&mut self, slot: usize) {
        let Place::Recovering(until) = self.places[slot] else { return };
        info!(slot, "what it played is gone: the slot plays again");
        match until.filter(|until| *until > Instant::now()) {
            Some(until) => self.places[slot] = Place::Pausing(until),
            None => self.idle(slot),
        }
    }

    /// A lease holds no more: whoever plays under it stops.
    fn lost(&mut self, lease: Lease) {
        let holder = self.places.iter().position(|place| place.lease() == Some(lease));
        let Some(slot) = holder else { return };
        warn!(%lease, "the lease is lost");
        self.metrics.lost();
        match &mut self.places[slot] {
            Place::Playing { cord, lost, .. } => {
                *lost = true;
                cord.take().into_iter().for_each(Cord::pull);
            }
            Place::Fetching { task, .. } => {
                task.abort();
                self.idle(slot);
            }
            Place::Idle | Place::Pausing(_) | Place::Recovering(_) => {}
        }
    }

    /// Ends sooner, if that is asked for.
    fn hurry(&mut self, ending: Ending) {
        match ending {
            Ending::NotYet => {}
            Ending::Drain => {
                if self.until.is_none() {
                    info!(drain_s = self.drain.as_secs(), "no more lots; those under way may end");
                    self.end_within(self.drain);
                }
            }
            Ending::Now => self.end_within(Duration::ZERO),
        }
    }

    fn fail(&mut self, failure: WorkerError, within: Duration) {
        self.failure.get_or_insert(failure);
        self.end_within(within);
    }

    fn end_within(&mut self, time: Duration) {
        let until = Instant::now() + time;
        self.until = Some(self.until.map_or(until, |before| before.min(until)));
        self.give_back_fetching();
        if time.is_zero() {
            self.stop_all();
        }
    }

    /// Gives back what was not begun.
    fn give_back_fetching(&mut self) {
        for slot in 0..self.places.len() {
            if let Place::Fetching { job, task } = &self.places[slot] {
                let lease = job.lease;
                task.abort();
                self.places[slot] = Place::Idle;
                self.give_back(lease);
            }
        }
    }

    /// Stops what is played.
    fn stop_all(&mut self) {
        for place in &mut self.places {
            if let Place::Playing { cord, .. } = place {
                cord.take().into_iter().for_each(Cord::pull);
            }
        }
    }
}

/// How long a lease holds, from milliseconds as they came.
fn span(milliseconds: i64) -> Duration {
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0)).max(SHORTEST_LEASE)
}

/// A lease, if it means something; nothing that does was ever given to us.
fn read(message: v1::Lease) -> Option<Lease> {
    Lease::try_from(message).ok()
}
