//! Slots: threads that play lots, one match at a time each.
//!
//! A slot knows no coordinator. It is given a lot with everything that it needs, plays its matches
//! in order, leaves the report in the spool, and says how it ended. A fault ends the whole attempt:
//! what was played of it counts for nothing, and is played again. A slot in which something of a
//! match still dies would disturb the matches to come: it says so, and when it is over.

use std::fs::{self, File};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use arbiter_games::Params;
use arbiter_proto::assignment::{MatchAssignment, SeatAssignment};
use arbiter_proto::ids::Lease;
use arbiter_proto::settings::Settings;
use arbiter_proto::trace::Span;
use arbiter_proto::v1;
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedSender;
use tracing::{debug, error, info, info_span, warn};

use crate::bot_cache::Supplies;
use crate::bundle::{BundleError, pack_left, unpack_left};
use crate::fault::{Context as _, Fault};
use crate::job::{Job, Task, Tryout};
use crate::match_runner::{Entrant, Match, Outcome, SeatReport, State};
use crate::metrics::{End, Metrics};
use crate::sandbox::{Host, JailConfig, reaper, slot_cores};
use crate::seat::Stop;
use crate::spool::Spool;
use crate::trial::{Failing, Player, Stage, Trial, Tried};

/// What the records of one report may take up, in bytes: a report is one message, and is held in
/// memory. What comes behind is left out; only bots that flood get as far.
const MOST_RECORDS: usize = 128 << 20;

/// How hard records are compressed.
const EFFORT: i32 = 3;
/// How long to wait until a report is written once more that could not be written.
const SPOOL_REST: Duration = Duration::from_millis(500);

/// Something to be done.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) job: Job,
    pub(crate) supplies: Supplies,
    /// Ends it early.
    pub(crate) stop: Arc<Stop>,
}

/// How a lot or a trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Its report is in the spool.
    Played,
    /// It was stopped.
    Stopped,
    /// It failed, for this reason.
    Failed(v1::FaultKind, String),
}

impl Ended {
    /// The same, as it is counted.
    fn counted(&self) -> End {
        match self {
            Self::Played => End::Reported,
            Self::Stopped => End::Stopped,
            Self::Failed(..) => End::Failed,
        }
    }
}

/// What a slot says.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    /// It has come to an end with what it had under this lease.
    Ended {
        slot: usize,
        lease: Lease,
        ended: Ended,
        /// Whether nothing of it is left, so that the slot can take something else.
        is_clear: bool,
    },
    /// Nothing is left any more of what this slot had.
    Cleared(usize),
}

/// The slots of a worker.
#[derive(Debug)]
pub(crate) struct Slots {
    orders: Vec<mpsc::Sender<Order>>,
    threads: Vec<JoinHandle<()>>,
}

/// What all slots use.
#[derive(Clone, Debug)]
pub(crate) struct Workshop {
    pub(crate) host: Arc<Host>,
    pub(crate) spool: Arc<Spool>,
    /// Where files of matches under way are.
    pub(crate) scratch: PathBuf,
    pub(crate) metrics: Arc<Metrics>,
}

impl Slots {
    /// Starts so many slots, which say how their lots end to `said`.
    pub(crate) fn start(
        count: usize,
        workshop: &Workshop,
        said: &UnboundedSender<Said>,
    ) -> io::Result<Self> {
        let mut slots = Self { orders: Vec::new(), threads: Vec::new() };
        for number in 0..count {
            let (sender, orders) = mpsc::channel();
            let said = said.clone();
            let slot =
                Slot { number, cores: slot_cores(number, count), workshop: workshop.clone() };
            let named = thread::Builder::new().name(format!("slot {number}"));
            slots.threads.push(named.spawn(move || slot.run(&orders, &said))?);
            slots.orders.push(sender);
        }
        Ok(slots)
    }

    /// Gives an order to an idle slot.
    pub(crate) fn give(&self, slot: usize, order: Order) {
        // A slot ends when its orders do.
        self.orders[slot].send(order).expect("slots outlive their orders");
    }

    /// Ends the slots, which are idle.
    pub(crate) fn end(self) {
        drop(self.orders);
        for thread in self.threads {
            if thread.join().is_err() {
                error!("a slot ended in a panic");
            }
        }
    }
}

/// A slot.
#[derive(Debug)]
struct Slot {
    number: usize,
    /// The processors of its bots.
    cores: Vec<usize>,
    workshop: Workshop,
}

impl Slot {
    fn run(&self, orders: &mpsc::Receiver<Order>, said: &UnboundedSender<Said>) {
        for order in orders {
            let lease = order.job.lease;
            let Lease { lot, attempt } = lease;
            let (slot, edition) = (self.number, lot.edition);
            let what = if order.job.is_trial() { "trial played" } else { "lot played" };
            let mut trace = Span::follow(what, order.job.trace.as_ref());
            trace.set("lease", lease.to_string());
            let trace_id = trace.trace_id();
            let span = info_span!("lot", slot, %edition, lot = %lot.number, %attempt, trace_id);
            let ended = span.in_scope(|| self.end_of(&order, &trace));
            if let Ended::Failed(_, why) = &ended {
                trace.fail(why);
            }
            drop(trace);
            self.workshop.metrics.ended(order.job.is_trial(), ended.counted());
            let is_clear = reaper::is_clear();
            if said.send(Said::Ended { slot, lease, ended, is_clear }).is_err() {
                return;
            }
            if !is_clear {
                let said = said.clone();
                // Who does not listen any more has no use for the slot.
                reaper::when_clear(move || drop(said.send(Said::Cleared(slot))));
            }
        }
    }

    /// Keeps a report. What was played is not thrown away because the disk is full: as long as the
    /// lease holds and the worker goes on, it is tried again.
    fn keep(&self, order: &Order, report: &v1::Report) -> Result<(), Fault> {
        let mut is_told = false;
        while let Err(error) = self.workshop.spool.keep(order.job.lease, report) {
            if !is_told {
                error!(%error, "cannot write a report into the spool; it is tried again until it is there");
                is_told = true;
            }
            order.stop.check()?;
            thread::sleep(SPOOL_REST);
        }
        Ok(())
    }

    /// Does a job, whatever comes of it.
    fn end_of(&self, order: &Order, trace: &Span) -> Ended {
        let played = catch_unwind(AssertUnwindSafe(|| {
            let (results, trial) = match &order.job.task {
                Task::Lot(matches) => (self.lot(order, matches)?, None),
                Task::Trial(tryout) => (Vec::new(), Some(self.trial(order, tryout, trace)?)),
            };
            let report = v1::Report {
                lease: Some(order.job.lease.into()),
                results,
                level: self.workshop.host.level().as_str().to_owned(),
                trial,
                trace: trace.carried(),
            };
            self.keep(order, &report).map(|()| report)
        }));
        match played {
            Ok(Ok(report)) => {
                if let Some(tried) = report.trial {
                    info!(passed = tried.passed, verdict = tried.reason, "tried");
                } else {
                    info!(matches = report.results.len(), "played");
                }
                Ended::Played
            }
            Ok(Err(Fault::Abandoned)) => {
                info!("stopped");
                Ended::Stopped
            }
            Ok(Err(fault @ Fault::System { .. })) => {
                warn!(%fault, "failed: it is played again");
                Ended::Failed(v1::FaultKind::System, fault.to_string())
            }
            Err(panic) => {
                let why = panic.downcast_ref::<String>().map(String::as_str);
                let why = why.or_else(|| panic.downcast_ref::<&str>().copied());
                let why = format!("a panic: {}", why.unwrap_or("without a word"));
                error!(why, "failed: it is played again");
                // What it left of its files is not known; of jails nothing is left undone.
                reaper::remove_later(self.scratch());
                Ended::Failed(v1::FaultKind::Panic, why)
            }
        }
    }

    /// Where the files of this slot's matches under way are.
    fn scratch(&self) -> PathBuf {
        self.workshop.scratch.join(self.number.to_string())
    }

    /// A new directory there.
    fn directory(&self) -> io::Result<TempDir> {
        let scratch = self.scratch();
        fs::create_dir_all(&scratch)?;
        tempfile::tempdir_in(scratch)
    }

    /// On which terms bots play here.
    fn terms(&self, settings: &Settings) -> JailConfig {
        JailConfig { limits: settings.limits, ponder: settings.ponder, cores: self.cores.clone() }
    }

    fn lot(
        &self,
        order: &Order,
        matches: &[MatchAssignment<Params>],
    ) -> Result<Vec<v1::MatchResult>, Fault> {
        let mut room = MOST_RECORDS;
        let results = matches.iter().map(|planned| {
            let span = info_span!("match", number = %planned.number);
            span.in_scope(|| self.one(order, planned, &mut room))
        });
        results.collect()
    }

    /// Builds and tries a version.
    fn trial(
        &self,
        order: &Order,
        tryout: &Tryout,
        trace: &Span,
    ) -> Result<v1::TrialReport, Fault> {
        let scratch = self.directory().fault("cannot make a directory for a trial")?;
        let opponents = tryout.opponents.iter().map(|assigned| {
            let bot = order.supplies.contestant(assigned)?;
            Ok(Player { name: assigned.bot.clone(), bot })
        });
        let trial = Trial {
            params: tryout.params.clone(),
            seed: tryout.seed,
            clock: order.job.settings.clock,
            terms: self.terms(&order.job.settings),
            name: tryout.subject.bot.clone(),
            opponents: opponents.collect::<Result<_, Fault>>()?,
        };
        let host = &self.workshop.host;
        let bytes = &order.supplies.subject;
        let mut stages = Stages::of(trace);
        let tell = &mut |stage| stages.tell(stage);
        let tried = trial.examine(host, &order.stop, bytes, scratch.path(), tell)?;
        drop(stages);
        dispose(scratch);
        Ok(told(tried))
    }

    /// Plays one match; its record is left out if it takes more than `room`.
    fn one(
        &self,
        order: &Order,
        planned: &MatchAssignment<Params>,
        room: &mut usize,
    ) -> Result<v1::MatchResult, Fault> {
        order.stop.check()?;
        let scratch = self.directory().fault("cannot make a directory for a match")?;
        let settings = &order.job.settings;
        let keeps = settings.state.keeps();
        let left = |seat: usize| scratch.path().join(format!("seat{seat}"));
        let entrants = planned.seats.iter().enumerate().map(|(index, assigned)| {
            let bot = order.supplies.contestant(assigned)?;
            let state = if keeps {
                bring_back(assigned, &left(index))?;
                State::Kept(left(index))
            } else {
                State::Fresh
            };
            Ok(Entrant { bot, name: assigned.bot.clone(), state })
        });
        let record = scratch.path().join("record.jsonl");
        let played = Match {
            params: planned.params.clone(),
            seed: planned.seed,
            clock: settings.clock,
            terms: self.terms(settings),
            entrants: entrants.collect::<Result<_, Fault>>()?,
            record: Some(record.clone()),
        };
        let outcome = played.play(&self.workshop.host, &order.stop)?;
        self.workshop.metrics.played(planned.params.game(), &outcome);
        let mut result = result(planned, &outcome);
        if keeps {
            for (index, seat) in result.seats.iter_mut().enumerate() {
                seat.files = what_it_left(&planned.seats[index], &left(index))?;
            }
        }
        let file = File::open(&record).fault("cannot read a record")?;
        let record = zstd::encode_all(file, EFFORT).fault("cannot compress a record")?;
        if let Some(left) = room.checked_sub(record.len()) {
            (*room, result.record) = (left, record);
        } else {
            warn!(bytes = record.len(), "a record is left out: the report is too large");
        }
        dispose(scratch);
        Ok(result)
    }
}

/// Removes a directory, now or as soon as that can be done.
fn dispose(directory: TempDir) {
    let path = directory.path().to_owned();
    if let Err(error) = directory.close() {
        warn!(%error, path = %path.display(), "a directory cannot be removed yet");
        reaper::remove_later(path);
    }
}

/// The parts of a trial, as spans one after the other.
struct Stages<'a> {
    trial: &'a Span,
    now: Span,
}

impl<'a> Stages<'a> {
    fn of(trial: &'a Span) -> Self {
        Self { trial, now: Span::NONE }
    }

    /// The next part begins.
    fn tell(&mut self, stage: Stage) {
        let name = match stage {
            Stage::Building => "build",
            Stage::Played(0, _) => "pre-flight",
            Stage::Played(..) => return,
        };
        // The one before ends first.
        self.now = Span::NONE;
        self.now = Span::follow(name, self.trial.context().as_ref());
    }
}

/// Unpacks the files that a bot left into `directory`, which is new.
fn bring_back(assigned: &SeatAssignment, directory: &Path) -> Result<(), Fault> {
    let make = || fs::create_dir(directory).fault("cannot make a directory for a bot's files");
    make()?;
    match unpack_left(&assigned.files, directory) {
        // No honest worker packed this. It counts as nothing, on every worker alike: a fault would
        // follow the bot from worker to worker, and it would be stood down for another's lie.
        Err(BundleError::Unfit(why)) => {
            warn!(bot = %assigned.bot, why, "its files are not such as bots leave: it has none");
            fs::remove_dir_all(directory).fault("cannot remove forged files")?;
            make()
        }
        unpacked => unpacked.fault("cannot bring back a bot's files"),
    }
}

/// The files that a bot left, packed; nothing if they do not fit.
fn what_it_left(assigned: &SeatAssignment, directory: &Path) -> Result<Vec<u8>, Fault> {
    match pack_left(directory) {
        Err(BundleError::Unfit(why)) => {
            info!(bot = %assigned.bot, why, "what it left is not kept");
            Ok(Vec::new())
        }
        packed => packed.fault("cannot keep a bot's files"),
    }
}

/// What a trial came to, as it is reported.
fn told(tried: Tried) -> v1::TrialReport {
    let Tried { failing, figures, warnings, log, program } = tried;
    let passed = failing.is_none();
    let Failing { verdict, evidence } = failing.unwrap_or_default();
    let figures = serde_json::to_string(&figures).expect("numbers can be written as JSON");
    let program = program.map(|bundle| bundle.bytes().to_vec()).unwrap_or_default();
    v1::TrialReport {
        passed,
        reason: verdict,
        evidence,
        log,
        measurements: figures,
        warnings,
        program,
    }
}

/// What a match came to, as it is reported; files and record are still to come.
fn result(planned: &MatchAssignment<Params>, outcome: &Outcome) -> v1::MatchResult {
    for (seat, report) in planned.seats.iter().zip(&outcome.seats) {
        if let Some(detail) = &report.detail {
            debug!(bot = %seat.bot, detail, "forfeits");
        }
    }
    let seats = outcome.standings.iter().zip(&outcome.seats).map(|(standing, report)| {
        let SeatReport { detail, spent, .. } = report;
        let evidence = |detail: &String| v1::Evidence {
            detail: detail.clone(),
            wall_us: spent.wall.0,
            cpu_us: spent.cpu.0,
        };
        v1::SeatResult {
            score: standing.score.0.clone(),
            forfeit: v1::Forfeit::from(standing.forfeit).into(),
            bad_answers: i32::try_from(standing.bad_answers).unwrap_or(i32::MAX),
            files: Vec::new(),
            evidence: detail.as_ref().map(evidence).map(Box::new),
        }
    });
    v1::MatchResult {
        number: planned.number.0,
        seats: seats.collect(),
        transcript: outcome.transcript.as_bytes().to_vec(),
        wall_ms: i32::try_from(outcome.wall.0 / 1000).unwrap_or(i32::MAX),
        record: Vec::new(),
    }
}
