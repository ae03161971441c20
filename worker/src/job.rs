//! Jobs: lots and trials, validated from messages.

use std::error::Error;
use std::sync::{Arc, OnceLock};

use arbiter_games::{Game, Games, Params, Seed};
use arbiter_packages::{Descriptor, RulesHost, RulesSession};
use arbiter_proto::assignment::{MatchAssignment, SeatAssignment};
use arbiter_proto::convert::{self, InvalidField};
use arbiter_proto::ids::Lease;
use arbiter_proto::settings::{GamePackage, Settings};
use arbiter_proto::trace::TraceParent;
use arbiter_proto::v1;
use serde_json::Value;

/// Why a message is not a valid job. This is a fault, not a forfeit.
pub(crate) type InvalidJob = Box<dyn Error>;

/// The work of one lease.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) lease: Lease,
    /// Settings of all its matches.
    pub(crate) settings: Settings,
    pub(crate) task: JobKind,
    /// Its game, if that is a package.
    pub(crate) package: Option<PackageJob>,
    /// Parent of its trace.
    pub(crate) trace: Option<TraceParent>,
}

/// The game package of a job.
#[derive(Clone, Debug)]
pub(crate) struct PackageJob {
    pub(crate) source: GamePackage,
    /// The rules, once the package is fetched.
    pub(crate) rules: Arc<LateRules>,
}

/// Rules that are known only after their game.
#[derive(Debug, Default)]
pub(crate) struct LateRules(OnceLock<Arc<dyn RulesHost>>);

impl LateRules {
    /// Sets the rules, unless they are known already.
    pub(crate) fn set(&self, rules: Arc<dyn RulesHost>) {
        drop(self.0.set(rules));
    }
}

impl RulesHost for LateRules {
    fn begin(&self, seed: Seed) -> Result<Box<dyn RulesSession>, String> {
        self.0.get().ok_or("the game package was not fetched")?.begin(seed)
    }
}

/// A lot or a trial.
#[derive(Clone, Debug)]
pub(crate) enum JobKind {
    /// Matches to play.
    Lot(Vec<MatchAssignment<Params>>),
    Trial(Box<TrialJob>),
}

/// The version of a trial, and the opponents.
#[derive(Clone, Debug)]
pub(crate) struct TrialJob {
    pub(crate) params: Params,
    pub(crate) seed: Seed,
    /// The number of seats of each match.
    pub(crate) seats: usize,
    pub(crate) subject: SeatAssignment,
    pub(crate) opponents: Vec<SeatAssignment>,
}

impl Job {
    /// Validates a lot.
    pub(crate) fn lot(games: &Games, lease: Lease, message: v1::Lot) -> Result<Self, InvalidJob> {
        let settings = settings(&message.settings)?;
        let (game, package) = find_game(games, &message.game, &settings)?;
        let results = message.matches.into_iter().map(|match_message| {
            let number = match_message.number;
            assignment(&game, &settings, match_message)
                .map_err(|error| format!("match {number}: {error}"))
        });
        let matches = results.collect::<Result<Vec<_>, _>>()?;
        if matches.is_empty() {
            return Err("the lot has no matches".into());
        }
        let trace = TraceParent::from_message(&message.trace);
        Ok(Self { lease, settings, task: JobKind::Lot(matches), package, trace })
    }

    /// Validates a trial.
    pub(crate) fn trial(
        games: &Games,
        lease: Lease,
        message: v1::Trial,
    ) -> Result<Self, InvalidJob> {
        let settings = settings(&message.settings)?;
        let (game, package) = find_game(games, &message.game, &settings)?;
        let params = Params::read(&game, Value::Object(settings.params.clone()))
            .map_err(|error| format!("params: {error}"))?;
        let seed = convert::seed("seed", &message.seed)?;
        let subject = convert::required("subject", message.subject)?.try_into()?;
        let allowed = params.seats();
        let seats = match usize::try_from(message.seats) {
            Ok(0) => *allowed.end(),
            Ok(seats) if allowed.contains(&seats) => seats,
            _ => return Err(format!("seats: {game} has no table of {}", message.seats).into()),
        };
        let results = message.opponents.into_iter().map(TryInto::try_into);
        let opponents = results.collect::<Result<_, _>>()?;
        let trace = TraceParent::from_message(&message.trace);
        let trial_job = TrialJob { params, seed, seats, subject, opponents };
        let task = JobKind::Trial(Box::new(trial_job));
        Ok(Self { lease, settings, task, package, trace })
    }

    pub(crate) fn is_trial(&self) -> bool {
        matches!(self.task, JobKind::Trial(_))
    }

    /// Digests of all bundles to run, without duplicates.
    pub(crate) fn programs(&self) -> Vec<blake3::Hash> {
        let mut programs: Vec<_> = match &self.task {
            JobKind::Lot(matches) => {
                let seats = matches.iter().flat_map(|assignment| &assignment.seats);
                seats.map(|seat| seat.program).collect()
            }
            JobKind::Trial(trial_job) => {
                trial_job.opponents.iter().map(|seat| seat.program).collect()
            }
        };
        programs.sort_unstable_by_key(|digest| *digest.as_bytes());
        programs.dedup();
        programs
    }

    /// Digest of the bundle under trial.
    pub(crate) fn subject(&self) -> Option<blake3::Hash> {
        match &self.task {
            JobKind::Lot(_) => None,
            JobKind::Trial(trial_job) => Some(trial_job.subject.digest),
        }
    }
}

/// The game of this name: one of `games`, or the package in the settings.
fn find_game(
    games: &Games,
    name: &str,
    settings: &Settings,
) -> Result<(Game, Option<PackageJob>), InvalidJob> {
    let Some(source) = &settings.package else { return Ok((games.find(name)?, None)) };
    let rules = Arc::new(LateRules::default());
    let descriptor = Descriptor::parse(&source.descriptor)?;
    let host: Arc<dyn RulesHost> = Arc::clone(&rules) as _;
    let game = Game::new(descriptor.game(&source.digest.to_string(), host));
    Ok((game, Some(PackageJob { source: source.clone(), rules })))
}

fn settings(text: &str) -> Result<Settings, String> {
    serde_json::from_str(text).map_err(|error| format!("settings: {error}"))
}

fn assignment(
    game: &Game,
    settings: &Settings,
    message: v1::Match,
) -> Result<MatchAssignment<Params>, InvalidField> {
    MatchAssignment::try_from(message)?.complete(game, settings)
}
