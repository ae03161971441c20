//! Slots: threads that play lots, one match at a time each.
//!
//! A slot has no connection to the coordinator. It receives a job with all its inputs, plays the
//! matches in order, writes the report to the spool and sends an event with the outcome. A fault
//! ends the whole attempt: its matches do not count and are played again. Processes of a bot that
//! are still dying would slow down the next matches, so the slot sends another event when they are
//! gone.

use std::fs::{self, File};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use arbiter_games::{Micros, Params};
use arbiter_proto::assignment::{MatchAssignment, SeatAssignment};
use arbiter_proto::ids::Lease;
use arbiter_proto::settings::Settings;
use arbiter_proto::trace::Span;
use arbiter_proto::v1;
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedSender;
use tracing::{debug, error, info, info_span, warn};

use crate::bot_cache::JobInputs;
use crate::bundle::{BundleError, pack_state, unpack_state};
use crate::fault::{Context as _, Fault};
use crate::job::{Job, JobKind, TrialJob};
use crate::match_runner::{BotState, Entrant, Match, MatchOutcome, SeatSummary};
use crate::metrics::{JobOutcomeLabel, Metrics};
use crate::sandbox::{Host, JailConfig, reaper, slot_cores};
use crate::seat::{SeatFailure, StopSignal};
use crate::spool::Spool;
use crate::trial::{Player, Trial, TrialFailure, TrialOutcome, TrialProgress};

/// Maximum size of all records in one report, in bytes, because a report is one message held in
/// memory. Further records are left out. Only bots with very much output reach this limit.
const MAX_RECORDS: usize = 128 << 20;

/// Zstandard level of records. Level 3 takes a third more time to compress and to decompress them,
/// and makes all but those of tricks larger.
const ZSTD_LEVEL: i32 = 1;
/// Pause between attempts to write a report to the spool.
const SPOOL_RETRY: Duration = Duration::from_millis(500);

/// A job with its inputs and stop signal.
#[derive(Debug)]
pub(crate) struct JobRun {
    pub(crate) job: Job,
    pub(crate) inputs: JobInputs,
    /// Stops the job early.
    pub(crate) stop: Arc<StopSignal>,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JobOutcome {
    /// Its report is in the spool.
    Reported,
    /// The stop signal ended it.
    Stopped,
    /// A fault ended it, with this reason.
    Failed(v1::FaultKind, String),
}

impl JobOutcome {
    /// The outcome as a metrics label.
    fn metrics_label(&self) -> JobOutcomeLabel {
        match self {
            Self::Reported => JobOutcomeLabel::Reported,
            Self::Stopped => JobOutcomeLabel::Stopped,
            Self::Failed(..) => JobOutcomeLabel::Failed,
        }
    }
}

/// An event that a slot sends to the supervisor.
#[derive(Clone, Debug)]
pub(crate) enum SlotEvent {
    /// The job under this lease ended.
    Ended {
        slot: usize,
        lease: Lease,
        outcome: JobOutcome,
        /// Whether all its processes are gone, so that the slot is free.
        is_clear: bool,
    },
    /// All processes of the slot's last job are gone.
    Cleared(usize),
}

/// The slots of a worker.
#[derive(Debug)]
pub(crate) struct Slots {
    jobs: Vec<mpsc::Sender<JobRun>>,
    threads: Vec<JoinHandle<()>>,
}

/// Resources shared by all slots.
#[derive(Clone, Debug)]
pub(crate) struct SlotContext {
    pub(crate) host: Arc<Host>,
    pub(crate) spool: Arc<Spool>,
    /// Directory for the files of running matches.
    pub(crate) scratch: PathBuf,
    pub(crate) metrics: Arc<Metrics>,
}

impl Slots {
    /// Starts `count` slots, which send their events to `events`.
    pub(crate) fn start(
        count: usize,
        context: &SlotContext,
        events: &UnboundedSender<SlotEvent>,
    ) -> io::Result<Self> {
        let mut slots = Self { jobs: Vec::new(), threads: Vec::new() };
        for number in 0..count {
            let (sender, jobs) = mpsc::channel();
            let events = events.clone();
            let slot = Slot { number, cores: slot_cores(number, count), context: context.clone() };
            let builder = thread::Builder::new().name(format!("slot {number}"));
            slots.threads.push(builder.spawn(move || slot.run(&jobs, &events))?);
            slots.jobs.push(sender);
        }
        Ok(slots)
    }

    /// Starts a job on an idle slot.
    pub(crate) fn start_job(&self, slot: usize, run: JobRun) {
        // A slot's thread ends only after its sender is dropped.
        self.jobs[slot].send(run).expect("slots outlive their senders");
    }

    /// Joins the threads of all slots, which must be idle.
    pub(crate) fn join(self) {
        drop(self.jobs);
        for thread in self.threads {
            if thread.join().is_err() {
                error!("a slot panicked");
            }
        }
    }
}

/// The state of one slot's thread.
#[derive(Debug)]
struct Slot {
    number: usize,
    /// Processors for its bots, by number.
    cores: Vec<usize>,
    context: SlotContext,
}

impl Slot {
    fn run(&self, jobs: &mpsc::Receiver<JobRun>, events: &UnboundedSender<SlotEvent>) {
        for run in jobs {
            let lease = run.job.lease;
            let Lease { lot, attempt } = lease;
            let slot = self.number;
            let tournament = lot.tournament;
            let span_name = if run.job.is_trial() { "trial played" } else { "lot played" };
            let mut trace = Span::follow(span_name, run.job.trace.as_ref());
            trace.set("lease", lease.to_string());
            let trace_id = trace.trace_id();
            let span = info_span!("lot", slot, %tournament, lot = %lot.number, %attempt, trace_id);
            let outcome = span.in_scope(|| self.run_job(&run, &trace));
            if let JobOutcome::Failed(_, why) = &outcome {
                trace.fail(why);
            }
            drop(trace);
            self.context.metrics.record_job(run.job.is_trial(), outcome.metrics_label());
            let is_clear = reaper::is_clear();
            if events.send(SlotEvent::Ended { slot, lease, outcome, is_clear }).is_err() {
                return;
            }
            if !is_clear {
                let events = events.clone();
                // The send fails only when the worker is ending.
                reaper::when_clear(move || drop(events.send(SlotEvent::Cleared(slot))));
            }
        }
    }

    /// Writes a report to the spool. A full disk must not lose results, so it retries until the
    /// job is stopped.
    fn store_report(&self, run: &JobRun, report: &v1::Report) -> Result<(), Fault> {
        let mut is_logged = false;
        while let Err(error) = self.context.spool.insert(run.job.lease, report) {
            if !is_logged {
                error!(%error, "cannot write a report to the spool; retrying");
                is_logged = true;
            }
            run.stop.check()?;
            thread::sleep(SPOOL_RETRY);
        }
        Ok(())
    }

    /// Runs a job and turns faults and panics into an outcome.
    fn run_job(&self, run: &JobRun, trace: &Span) -> JobOutcome {
        let result = catch_unwind(AssertUnwindSafe(|| {
            self.load_rules(run)?;
            let (results, trial) = match &run.job.task {
                JobKind::Lot(matches) => (self.play_lot(run, matches)?, None),
                JobKind::Trial(trial_job) => {
                    (Vec::new(), Some(self.run_trial(run, trial_job, trace)?))
                }
            };
            let report = v1::Report {
                lease: Some(run.job.lease.into()),
                results,
                level: self.context.host.level().as_str().to_owned(),
                trial,
                trace: trace.to_message(),
            };
            self.store_report(run, &report).map(|()| report)
        }));
        match result {
            Ok(Ok(report)) => {
                if let Some(trial) = report.trial {
                    info!(passed = trial.passed, reason = trial.reason, "trial finished");
                } else {
                    info!(matches = report.results.len(), "lot finished");
                }
                JobOutcome::Reported
            }
            Ok(Err(Fault::Abandoned)) => {
                info!("job stopped");
                JobOutcome::Stopped
            }
            Ok(Err(fault)) => {
                warn!(%fault, "attempt failed");
                let kind = match fault {
                    Fault::Rules(_) => v1::FaultKind::Rules,
                    _ => v1::FaultKind::System,
                };
                JobOutcome::Failed(kind, fault.to_string())
            }
            Err(panic) => {
                let message = panic.downcast_ref::<String>().map(String::as_str);
                let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
                let reason = format!("panic: {}", message.unwrap_or("no message"));
                error!(reason, "attempt failed");
                // Its jails are closed already, but its files may still exist.
                reaper::remove_later(self.scratch());
                JobOutcome::Failed(v1::FaultKind::Panic, reason)
            }
        }
    }

    /// Loads the rules of a job's game package.
    fn load_rules(&self, run: &JobRun) -> Result<(), Fault> {
        if let (Some(job), Some(package)) = (&run.job.package, &run.inputs.package) {
            let rules = package.rules(&self.context.host, &run.stop, &[]);
            job.rules.set(rules.map_err(|error| Fault::Rules(error.to_string()))?);
        }
        Ok(())
    }

    /// Directory for the files of this slot's running match.
    fn scratch(&self) -> PathBuf {
        self.context.scratch.join(self.number.to_string())
    }

    /// Creates a new directory in the slot's scratch directory.
    fn create_scratch_dir(&self) -> io::Result<TempDir> {
        let scratch = self.scratch();
        fs::create_dir_all(&scratch)?;
        tempfile::tempdir_in(scratch)
    }

    /// Limits and processors for the bots of a job.
    fn jail_config(&self, settings: &Settings) -> JailConfig {
        JailConfig { limits: settings.limits, ponder: settings.ponder, cores: self.cores.clone() }
    }

    fn play_lot(
        &self,
        run: &JobRun,
        matches: &[MatchAssignment<Params>],
    ) -> Result<Vec<v1::MatchResult>, Fault> {
        let mut free_bytes = MAX_RECORDS;
        let results = matches.iter().map(|assignment| {
            let span = info_span!("match", number = %assignment.number);
            span.in_scope(|| self.play_match(run, assignment, &mut free_bytes))
        });
        results.collect()
    }

    /// Builds a version and plays its trial.
    fn run_trial(
        &self,
        run: &JobRun,
        trial_job: &TrialJob,
        trace: &Span,
    ) -> Result<v1::TrialReport, Fault> {
        let scratch = self.create_scratch_dir().fault("cannot create a directory for a trial")?;
        let opponents = trial_job.opponents.iter().map(|seat| {
            let bot = run.inputs.contestant(seat)?;
            Ok(Player { name: seat.bot.clone(), bot })
        });
        let trial = Trial {
            params: trial_job.params.clone(),
            seed: trial_job.seed,
            seats: trial_job.seats,
            clock: run.job.settings.clock,
            jail: self.jail_config(&run.job.settings),
            name: trial_job.subject.bot.clone(),
            opponents: opponents.collect::<Result<_, Fault>>()?,
        };
        let host = &self.context.host;
        let bytes = &run.inputs.subject;
        let mut spans = TrialSpans::of(trace);
        let on_progress = &mut |stage| spans.begin(stage);
        let outcome = trial.run(host, &run.stop, bytes, scratch.path(), on_progress)?;
        drop(spans);
        remove_dir(scratch);
        Ok(trial_report(outcome))
    }

    /// Plays one match. Leaves out the record if it is larger than `free_bytes`.
    fn play_match(
        &self,
        run: &JobRun,
        assignment: &MatchAssignment<Params>,
        free_bytes: &mut usize,
    ) -> Result<v1::MatchResult, Fault> {
        run.stop.check()?;
        let scratch = self.create_scratch_dir().fault("cannot create a directory for a match")?;
        let settings = &run.job.settings;
        let keeps_state = settings.state.keeps_files();
        let state_dir = |seat: usize| scratch.path().join(format!("seat{seat}"));
        let entrants = assignment.seats.iter().enumerate().map(|(index, seat)| {
            let bot = run.inputs.contestant(seat)?;
            let state = if keeps_state {
                unpack_bot_state(seat, &state_dir(index))?;
                BotState::Persistent(state_dir(index))
            } else {
                BotState::Fresh
            };
            Ok(Entrant { bot, name: seat.bot.clone(), state })
        });
        let record_path = scratch.path().join("record.jsonl");
        let planned_match = Match {
            params: assignment.params.clone(),
            seed: assignment.seed,
            clock: settings.clock,
            jail: self.jail_config(settings),
            entrants: entrants.collect::<Result<_, Fault>>()?,
            record: Some(record_path.clone()),
        };
        let outcome = planned_match.play(&self.context.host, &run.stop)?;
        self.context.metrics.record_match(assignment.params.game(), &outcome);
        let mut result = match_result(assignment, &outcome);
        if keeps_state {
            for (index, seat) in result.seats.iter_mut().enumerate() {
                seat.files = pack_bot_state(&assignment.seats[index], &state_dir(index))?;
            }
        }
        let file = File::open(&record_path).fault("cannot read a record")?;
        let record = zstd::encode_all(file, ZSTD_LEVEL).fault("cannot compress a record")?;
        if let Some(remaining) = free_bytes.checked_sub(record.len()) {
            *free_bytes = remaining;
            result.record = record;
        } else {
            warn!(bytes = record.len(), "record left out: the report would be too large");
        }
        remove_dir(scratch);
        Ok(result)
    }
}

/// Removes a directory, now or as soon as possible.
fn remove_dir(directory: TempDir) {
    let path = directory.path().to_owned();
    if let Err(error) = directory.close() {
        warn!(%error, path = %path.display(), "cannot remove a directory yet");
        reaper::remove_later(path);
    }
}

/// Trace spans of a trial's stages. They do not overlap.
struct TrialSpans<'a> {
    trial: &'a Span,
    current: Span,
}

impl<'a> TrialSpans<'a> {
    fn of(trial: &'a Span) -> Self {
        Self { trial, current: Span::NONE }
    }

    /// Begins the span of the next stage.
    fn begin(&mut self, stage: TrialProgress) {
        let name = match stage {
            TrialProgress::Building => "build",
            TrialProgress::Played(0, _) => "pre-flight",
            TrialProgress::Played(..) => return,
        };
        // Drop the previous span first, so that spans do not overlap.
        self.current = Span::NONE;
        self.current = Span::follow(name, self.trial.context().as_ref());
    }
}

/// Unpacks the files of a bot's last match into the new directory `directory`.
fn unpack_bot_state(seat: &SeatAssignment, directory: &Path) -> Result<(), Fault> {
    let create = || fs::create_dir(directory).fault("cannot create a directory for a bot's files");
    create()?;
    match unpack_state(&seat.files, directory) {
        // Only a dishonest worker packs invalid files. Every worker treats them as no files. A
        // fault would occur on every worker, and so suspend a bot that did nothing wrong.
        Err(BundleError::Invalid(why)) => {
            warn!(bot = %seat.bot, why, "invalid bot state: the bot starts without files");
            fs::remove_dir_all(directory).fault("cannot remove invalid files of a bot")?;
            create()
        }
        result => result.fault("cannot unpack a bot's files"),
    }
}

/// Packs the files that a bot wrote. The result is empty if they exceed the limits.
fn pack_bot_state(seat: &SeatAssignment, directory: &Path) -> Result<Vec<u8>, Fault> {
    match pack_state(directory) {
        Err(BundleError::Invalid(why)) => {
            info!(bot = %seat.bot, why, "bot state discarded");
            Ok(Vec::new())
        }
        result => result.fault("cannot pack a bot's files"),
    }
}

/// A trial's outcome as a message.
fn trial_report(outcome: TrialOutcome) -> v1::TrialReport {
    let TrialOutcome { failure, measurements, warnings, log, program, missing_program } = outcome;
    let passed = failure.is_none();
    let TrialFailure { reason, evidence } = failure.unwrap_or_default();
    let measurements =
        serde_json::to_string(&measurements).expect("numbers can be written as JSON");
    let program = program.map(|bundle| bundle.bytes().to_vec()).unwrap_or_default();
    let missing_program = missing_program.unwrap_or_default();
    v1::TrialReport {
        passed,
        reason,
        evidence,
        log,
        measurements,
        warnings,
        program,
        missing_program,
    }
}

/// A match's outcome as a message, without bot state and record.
fn match_result(assignment: &MatchAssignment<Params>, outcome: &MatchOutcome) -> v1::MatchResult {
    for (seat, summary) in assignment.seats.iter().zip(&outcome.seats) {
        if let Some(failure) = &summary.failure {
            debug!(bot = %seat.bot, %failure, "forfeit or bad reply");
        }
    }
    let seats = outcome.results.iter().zip(&outcome.seats).map(|(result, summary)| {
        let SeatSummary { failure, spent, .. } = summary;
        let evidence = |failure: &SeatFailure| v1::Evidence {
            detail: failure.to_string(),
            wall_us: spent.wall.0,
            cpu_us: spent.cpu.0,
        };
        v1::SeatResult {
            score: result.score.0.clone(),
            forfeit: v1::Forfeit::from(result.forfeit).into(),
            bad_answers: i32::try_from(result.bad_answers).unwrap_or(i32::MAX),
            files: Vec::new(),
            evidence: failure.as_ref().map(evidence).map(Box::new),
        }
    });
    v1::MatchResult {
        number: assignment.number.0,
        seats: seats.collect(),
        transcript: outcome.transcript.as_bytes().to_vec(),
        wall_ms: rounded_millis(outcome.wall_time),
        record: Vec::new(),
    }
}

/// A duration in milliseconds, rounded to the nearest one.
fn rounded_millis(time: Micros) -> i32 {
    i32::try_from(time.0.saturating_add(500) / 1000).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_duration_of_a_match_is_rounded() {
        for (micros, millis) in [(0, 0), (499, 0), (500, 1), (146_700, 147), (i64::MAX, i32::MAX)] {
            assert_eq!(rounded_millis(Micros(micros)), millis);
        }
    }
}
