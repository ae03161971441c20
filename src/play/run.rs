//! Plays a plan on so many threads, one match at a time on each.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;

use arbiter_games::{ClockRules, Params, Score, Seed};
use arbiter_worker::fault::Fault;
use arbiter_worker::match_runner::{BotState, Entrant, Match, MatchOutcome};
use arbiter_worker::sandbox::{Host, JailConfig, reaper, slot_cores};
use arbiter_worker::seat::StopSignal;

use crate::play::plan::{Job, Kind, Plan};
use crate::play::progress::Reorder;
use crate::play::slots::Slots;

/// How often a match is tried before its faults are somebody's to look into.
const ATTEMPTS: usize = 3;

/// How a plan is played.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) host: &'a Host,
    pub(crate) stop: Arc<StopSignal>,
    pub(crate) clock: ClockRules,
    /// How many matches at a time.
    pub(crate) jobs: usize,
    /// Where records go, as a directory and how their names begin.
    pub(crate) records: Option<(PathBuf, String)>,
    /// Where bots keep their files from match to match, if they do.
    pub(crate) state: Option<&'a Path>,
}

/// A match that was played.
#[derive(Debug)]
pub(crate) struct Played {
    /// The round and table, in an episode.
    pub(crate) place: Option<(u32, u32)>,
    /// The match's seed.
    pub(crate) seed: Seed,
    /// Positions in the list of entries, seat 1 first.
    pub(crate) seats: Vec<usize>,
    /// What it came to.
    pub(crate) outcome: MatchOutcome,
}

/// A job that was played.
#[derive(Debug)]
pub(crate) struct Done {
    /// Its matches, in order.
    pub(crate) matches: Vec<Played>,
    /// What it brings to each bot that took part.
    pub(crate) scores: Vec<(usize, Score)>,
}

/// What a slot says.
enum Told {
    /// It has done a job.
    Played {
        slot: usize,
        /// The job's position in the plan.
        index: usize,
        /// What came of it, or a panic that ends the whole run.
        played: thread::Result<Result<Done, Fault>>,
        /// Whether nothing of it is left, so that the slot can do another.
        is_clear: bool,
    },
    /// Nothing is left any more of what this slot played.
    Cleared(usize),
}

impl Run<'_> {
    /// Plays everything, and hands over each job when it and all before it are done; jobs behind
    /// one that failed are handed over at the end. A slot in which something of a match still dies
    /// plays no other until that is gone, which `recovers` is told with the number of those that go
    /// on.
    ///
    /// # Errors
    /// The first fault that came again and again, or [`Fault::Abandoned`].
    pub(crate) fn play(
        &self,
        mut done: impl FnMut(&Job, Done),
        mut recovers: impl FnMut(usize),
    ) -> Result<(), Fault> {
        let count = self.jobs.min(self.plan.jobs.len());
        let (teller, told) = mpsc::channel();
        thread::scope(|scope| {
            let mut slots = Slots::new(self.plan.jobs.len());
            for slot in 0..count {
                let orders = slots.open();
                let teller = teller.clone();
                let serve = move || self.serve(slot, count, &orders, &teller);
                if let Err(error) = thread::Builder::new().spawn_scoped(scope, serve) {
                    return Err(Fault::new("cannot start a thread; try fewer --jobs", error));
                }
            }
            slots.hand_out();
            let mut in_order = Reorder::new(0);
            while slots.at_work() {
                let mut due = Vec::new();
                match told.recv().expect("one teller is ours") {
                    Told::Cleared(slot) => slots.recovered(slot),
                    Told::Played { slot, index, played, is_clear } => {
                        if is_clear {
                            slots.finished(slot);
                        } else {
                            slots.recovers();
                            recovers(slots.in_service());
                        }
                        match played.unwrap_or_else(|panic| resume_unwind(panic)) {
                            Ok(played) => due = in_order.push(index, played),
                            Err(fault) => slots.give_up(fault),
                        }
                    }
                }
                // Nobody waits for what is shown.
                slots.hand_out();
                for (index, played) in due {
                    done(&self.plan.jobs[index], played);
                }
            }
            for (index, played) in in_order.rest() {
                done(&self.plan.jobs[index], played);
            }
            slots.end()
        })
    }

    /// Plays the jobs that it is told to, on its own processors, until there are no more orders.
    fn serve(
        &self,
        slot: usize,
        slots: usize,
        orders: &mpsc::Receiver<usize>,
        teller: &mpsc::Sender<Told>,
    ) {
        let jail = JailConfig { cores: slot_cores(slot, slots), ..JailConfig::default() };
        for index in orders {
            let job = &self.plan.jobs[index];
            let played = catch_unwind(AssertUnwindSafe(|| self.job(job, &jail)));
            let is_clear = reaper::is_clear();
            if teller.send(Told::Played { slot, index, played, is_clear }).is_err() {
                return;
            }
            if !is_clear {
                let teller = teller.clone();
                // A run that has ended has no use for the slot.
                reaper::when_clear(move || drop(teller.send(Told::Cleared(slot))));
            }
        }
    }

    fn job(&self, job: &Job, jail: &JailConfig) -> Result<Done, Fault> {
        match &job.kind {
            Kind::Match(seats) => {
                let params = self.plan.params.clone();
                let played = self.one(job, None, params, job.seed, seats.clone(), jail)?;
                let results = played.outcome.results.iter();
                let scores = results.map(|result| result.score.clone());
                let scores = seats.iter().copied().zip(scores).collect();
                Ok(Done { matches: vec![played], scores })
            }
            Kind::Episode => self.episode(job, jail),
        }
    }

    /// Plays the rounds of an episode, one after the other.
    fn episode(&self, job: &Job, jail: &JailConfig) -> Result<Done, Fault> {
        let episode = self.plan.params.episode(self.plan.entries.len(), job.seed);
        let mut episode = episode.map_err(|error| Fault::new("cannot start an episode", error))?;
        let mut matches = Vec::new();
        while let Some(table) = episode.tables().first().cloned() {
            let place = (table.round, table.table);
            let seed = job.seed.derive(&format!("round {} table {}", place.0, place.1));
            let played = self.one(job, Some(place), table.params, seed, table.bots, jail)?;
            episode.finish(table.table, &played.outcome.results);
            matches.push(played);
        }
        let bots = episode.bots().iter().enumerate();
        let scores = bots.map(|(bot, carried)| {
            (bot, Score(vec![carried.score, i64::from(episode.plays_on(bot))]))
        });
        Ok(Done { matches, scores: scores.collect() })
    }

    /// Plays one match; a fault is never scored, the match is played again.
    fn one(
        &self,
        job: &Job,
        place: Option<(u32, u32)>,
        params: Params,
        seed: Seed,
        seats: Vec<usize>,
        jail: &JailConfig,
    ) -> Result<Played, Fault> {
        let entrants = seats.iter().map(|entry| {
            let entry = &self.plan.entries[*entry];
            let state = match self.state {
                Some(root) => BotState::Persistent(root.join(entry.name.as_str())),
                None => BotState::Fresh,
            };
            Entrant { bot: Arc::clone(&entry.bot).into(), name: entry.name.clone(), state }
        });
        let record = self.records.as_ref().map(|(directory, prefix)| {
            let within = place.map(|(round, table)| format!("-r{round}t{table}"));
            let number = job.number;
            let within = within.unwrap_or_default();
            directory.join(format!("{prefix}-{number:06}{within}.jsonl"))
        });
        let entrants = entrants.collect();
        let planned =
            Match { params, seed, clock: self.clock, jail: jail.clone(), entrants, record };
        let mut attempt = 1;
        loop {
            match planned.play(self.host, &self.stop) {
                Ok(outcome) => return Ok(Played { place, seed, seats, outcome }),
                Err(Fault::System { .. }) if attempt < ATTEMPTS => attempt += 1,
                Err(fault) => return Err(fault),
            }
        }
    }
}
