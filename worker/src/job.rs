//! Lots and trials as they are played: what came over the wire, with every doubt about it settled.

use std::error::Error;

use arbiter_games::{Game, Games, Params, Seed};
use arbiter_proto::assignment::{MatchAssignment, SeatAssignment};
use arbiter_proto::convert::{self, Meaningless};
use arbiter_proto::ids::Lease;
use arbiter_proto::settings::Settings;
use arbiter_proto::trace::TraceParent;
use arbiter_proto::v1;
use serde_json::Value;

/// What is wrong with a lot or a trial; that is no bot's fault.
pub(crate) type Unreadable = Box<dyn Error>;

/// Something to be done under one lease.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) lease: Lease,
    /// What all its matches have in common.
    pub(crate) settings: Settings,
    pub(crate) task: Task,
    /// Where its trace goes on.
    pub(crate) trace: Option<TraceParent>,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// Matches are to be played.
    Lot(Vec<MatchAssignment<Params>>),
    Trial(Box<Tryout>),
}

/// A version to be tried.
#[derive(Clone, Debug)]
pub(crate) struct Tryout {
    pub(crate) params: Params,
    pub(crate) seed: Seed,
    pub(crate) subject: SeatAssignment,
    pub(crate) opponents: Vec<SeatAssignment>,
}

impl Job {
    /// Reads a lot whose lease is known.
    pub(crate) fn lot(games: &Games, lease: Lease, message: v1::Lot) -> Result<Self, Unreadable> {
        let game = games.find(&message.game)?;
        let settings = settings(&message.settings)?;
        let matches = message.matches.into_iter().map(|played| {
            let number = played.number;
            assignment(&game, &settings, played).map_err(|why| format!("match {number}: {why}"))
        });
        let matches = matches.collect::<Result<Vec<_>, _>>()?;
        if matches.is_empty() {
            return Err("a lot without a match".into());
        }
        let trace = TraceParent::carried(&message.trace);
        Ok(Self { lease, settings, task: Task::Lot(matches), trace })
    }

    /// Reads a trial whose lease is known.
    pub(crate) fn trial(
        games: &Games,
        lease: Lease,
        message: v1::Trial,
    ) -> Result<Self, Unreadable> {
        let game = games.find(&message.game)?;
        let settings = settings(&message.settings)?;
        let params = Params::read(&game, Value::Object(settings.params.clone()))
            .map_err(|error| format!("params: {error}"))?;
        let seed = convert::seed("seed", &message.seed)?;
        let subject = convert::given("subject", message.subject)?.try_into()?;
        let opponents = message.opponents.into_iter().map(TryInto::try_into);
        let opponents = opponents.collect::<Result<_, _>>()?;
        let trace = TraceParent::carried(&message.trace);
        let task = Task::Trial(Box::new(Tryout { params, seed, subject, opponents }));
        Ok(Self { lease, settings, task, trace })
    }

    pub(crate) fn is_trial(&self) -> bool {
        matches!(self.task, Task::Trial(_))
    }

    /// The digests of the bundles that are run, each once.
    pub(crate) fn programs(&self) -> Vec<blake3::Hash> {
        let mut programs: Vec<_> = match &self.task {
            Task::Lot(matches) => {
                let seats = matches.iter().flat_map(|played| &played.seats);
                seats.map(|seat| seat.program).collect()
            }
            Task::Trial(tryout) => tryout.opponents.iter().map(|seat| seat.program).collect(),
        };
        programs.sort_unstable_by_key(|digest| *digest.as_bytes());
        programs.dedup();
        programs
    }

    /// The digest of the bundle that is to be tried.
    pub(crate) fn subject(&self) -> Option<blake3::Hash> {
        match &self.task {
            Task::Lot(_) => None,
            Task::Trial(tryout) => Some(tryout.subject.digest),
        }
    }
}

fn settings(text: &str) -> Result<Settings, String> {
    serde_json::from_str(text).map_err(|error| format!("settings: {error}"))
}

fn assignment(
    game: &Game,
    settings: &Settings,
    message: v1::Match,
) -> Result<MatchAssignment<Params>, Meaningless> {
    MatchAssignment::try_from(message)?.complete(game, settings)
}
