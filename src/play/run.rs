//! Plays a plan on several threads, each one match at a time.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;

use arbiter_games::{ClockRules, Params, Seed};
use arbiter_worker::fault::Fault;
use arbiter_worker::match_runner::{BotState, Entrant, Match, MatchOutcome};
use arbiter_worker::sandbox::{Host, JailConfig, reaper, slot_cores};
use arbiter_worker::seat::StopSignal;

use crate::play::plan::{Job, JobKind, Plan};
use crate::play::progress::Reorder;
use crate::play::slots::Slots;

/// Maximum number of attempts at a match that ends with an infrastructure fault.
const MAX_ATTEMPTS: usize = 3;

/// A plan and the settings of its run.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) host: &'a Host,
    pub(crate) stop: Arc<StopSignal>,
    pub(crate) clock: ClockRules,
    /// Number of matches at once.
    pub(crate) jobs: usize,
    /// The directory of records and the prefix of their names, if records are written.
    pub(crate) records: Option<(PathBuf, String)>,
    /// The directory of the files that bots keep from match to match, if they keep any.
    pub(crate) state: Option<&'a Path>,
}

/// A played match.
#[derive(Debug)]
pub(crate) struct PlayedMatch {
    /// The round and table, in an episode.
    pub(crate) round_table: Option<(u32, u32)>,
    /// The match's seed.
    pub(crate) seed: Seed,
    /// The entries in its seats by position, seat 1 first.
    pub(crate) seats: Vec<usize>,
    /// The score of each seat from earlier matches of its episode; empty if there are none.
    pub(crate) carried: Vec<i64>,
    /// Its result.
    pub(crate) outcome: MatchOutcome,
}

#[cfg(test)]
impl PlayedMatch {
    /// A match of these entries with these scores, and an empty transcript.
    pub(crate) fn of_scores(seats: Vec<usize>, scores: Vec<Vec<i64>>) -> Self {
        use arbiter_games::{Micros, Score, SeatResult};

        let result = |score| SeatResult { score: Score(score), forfeit: None, bad_answers: 0 };
        let outcome = MatchOutcome {
            results: scores.into_iter().map(result).collect(),
            transcript: arbiter_replay::Transcript::default().hash(),
            seats: Vec::new(),
            wall_time: Micros::ZERO,
            level: arbiter_worker::sandbox::Level::D,
            startup_times: Vec::new(),
            margin_used: Micros::ZERO,
        };
        let seed = Seed([0; 32]);
        Self { round_table: None, seed, seats, carried: Vec::new(), outcome }
    }
}

/// A played job.
#[derive(Debug)]
pub(crate) struct JobResult {
    /// Its matches, in order: one, or the tables of all rounds of an episode.
    pub(crate) matches: Vec<PlayedMatch>,
}

/// A message from a slot.
enum SlotEvent {
    /// A job has ended.
    JobDone {
        slot: usize,
        /// The job's position in the plan.
        index: usize,
        /// Its result, or a panic that ends the whole run.
        result: thread::Result<Result<JobResult, Fault>>,
        /// Whether all its processes have exited, so that the slot is free.
        is_clear: bool,
    },
    /// All processes of this slot have exited.
    Cleared(usize),
}

impl Run<'_> {
    /// Plays all jobs. Calls `on_result` in the order of the jobs; results after a failed job
    /// follow at the end. When `on_result` breaks, the other jobs are not played. A slot whose
    /// killed processes have not exited waits for them; `on_recovery` is then called with the
    /// number of other slots.
    ///
    /// # Errors
    /// The first fault that occurred in all attempts, or [`Fault::Abandoned`].
    pub(crate) fn play(
        &self,
        mut on_result: impl FnMut(&Job, JobResult) -> ControlFlow<()>,
        mut on_recovery: impl FnMut(usize),
    ) -> Result<(), Fault> {
        let count = self.jobs.min(self.plan.jobs.len());
        let (events, received) = mpsc::channel();
        thread::scope(|scope| {
            let mut slots = Slots::new(self.plan.jobs.len());
            for slot in 0..count {
                let jobs = slots.open();
                let events = events.clone();
                let serve = move || self.serve(slot, count, &jobs, &events);
                if let Err(error) = thread::Builder::new().spawn_scoped(scope, serve) {
                    return Err(Fault::new("cannot start a thread; try fewer --jobs", error));
                }
            }
            slots.assign();
            let mut in_order = Reorder::new(0);
            let mut flow = ControlFlow::Continue(());
            while slots.is_working() {
                let mut ready = Vec::new();
                match received.recv().expect("this function holds a sender") {
                    SlotEvent::Cleared(slot) => slots.end_recovery(slot),
                    SlotEvent::JobDone { slot, index, result, is_clear } => {
                        if is_clear {
                            slots.free(slot);
                        } else {
                            slots.start_recovery();
                            on_recovery(slots.in_service());
                        }
                        match result.unwrap_or_else(|panic| resume_unwind(panic)) {
                            Ok(result) => ready = in_order.push(index, result),
                            // A match that is not needed any more may fail.
                            Err(fault) if flow.is_continue() => slots.fail(fault),
                            Err(_) => {}
                        }
                    }
                }
                // Assign first, so that slots do not wait for output.
                slots.assign();
                for (index, result) in ready {
                    if flow.is_continue() {
                        flow = on_result(&self.plan.jobs[index], result);
                    }
                }
                if flow.is_break() {
                    slots.finish();
                }
            }
            for (index, result) in in_order.remaining() {
                if flow.is_continue() {
                    flow = on_result(&self.plan.jobs[index], result);
                }
            }
            slots.result()
        })
    }

    /// Plays the jobs of a slot, on its processors, until the channel closes.
    fn serve(
        &self,
        slot: usize,
        slots: usize,
        jobs: &mpsc::Receiver<usize>,
        events: &mpsc::Sender<SlotEvent>,
    ) {
        let jail = JailConfig { cores: slot_cores(slot, slots), ..JailConfig::default() };
        for index in jobs {
            let job = &self.plan.jobs[index];
            let result = catch_unwind(AssertUnwindSafe(|| self.play_job(job, &jail)));
            let is_clear = reaper::is_clear();
            if events.send(SlotEvent::JobDone { slot, index, result, is_clear }).is_err() {
                return;
            }
            if !is_clear {
                let events = events.clone();
                // Sending fails if the run has ended.
                reaper::when_clear(move || drop(events.send(SlotEvent::Cleared(slot))));
            }
        }
    }

    fn play_job(&self, job: &Job, jail: &JailConfig) -> Result<JobResult, Fault> {
        match &job.kind {
            JobKind::Match(seats) => {
                let params = self.plan.params.clone();
                let result = self.play_match(job, None, params, job.seed, seats.clone(), jail)?;
                Ok(JobResult { matches: vec![result] })
            }
            JobKind::Episode => self.play_episode(job, jail),
        }
    }

    /// Plays the rounds of an episode in order.
    fn play_episode(&self, job: &Job, jail: &JailConfig) -> Result<JobResult, Fault> {
        let mut episode = self
            .plan
            .params
            .episode(self.plan.entries.len(), job.seed)
            .map_err(|error| Fault::new("cannot start an episode", error))?;
        let mut matches = Vec::new();
        while let Some(table) = episode.tables().first().cloned() {
            let round_table = (table.round, table.table);
            let seed = job.seed.derive(&format!("round {} table {}", table.round, table.table));
            let carried = if table.round == 1 {
                Vec::new()
            } else {
                table.bots.iter().map(|bot| episode.bots()[*bot].score).collect()
            };
            let mut played =
                self.play_match(job, Some(round_table), table.params, seed, table.bots, jail)?;
            played.carried = carried;
            episode.finish(table.table, &played.outcome.results);
            matches.push(played);
        }
        Ok(JobResult { matches })
    }

    /// Plays one match. Infrastructure faults are never scored: the match is played again.
    fn play_match(
        &self,
        job: &Job,
        round_table: Option<(u32, u32)>,
        params: Params,
        seed: Seed,
        seats: Vec<usize>,
        jail: &JailConfig,
    ) -> Result<PlayedMatch, Fault> {
        let entrants = seats.iter().map(|entry| {
            let entry = &self.plan.entries[*entry];
            let state = match self.state {
                Some(root) => BotState::Persistent(root.join(entry.name.as_str())),
                None => BotState::Fresh,
            };
            Entrant { bot: Arc::clone(&entry.bot).into(), name: entry.name.clone(), state }
        });
        let record = self.records.as_ref().map(|(directory, prefix)| {
            let suffix = round_table.map(|(round, table)| format!("-r{round}t{table}"));
            let number = job.number;
            let suffix = suffix.unwrap_or_default();
            directory.join(format!("{prefix}-{number:06}{suffix}.jsonl"))
        });
        let entrants = entrants.collect();
        let planned =
            Match { params, seed, clock: self.clock, jail: jail.clone(), entrants, record };
        let mut attempt = 1;
        loop {
            match planned.play(self.host, &self.stop) {
                Ok(outcome) => {
                    let carried = Vec::new();
                    return Ok(PlayedMatch { round_table, seed, seats, carried, outcome });
                }
                Err(Fault::System { .. } | Fault::Rules(_)) if attempt < MAX_ATTEMPTS => {
                    attempt += 1;
                }
                Err(fault) => return Err(fault),
            }
        }
    }
}
