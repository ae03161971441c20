//! Lots and trials as they are played: what came over the wire, with every doubt about it settled.

use arbiter_games::{Game, Games, Params, Seed};
use arbiter_proto::assignment::{MatchAssignment, SeatAssignment};
use arbiter_proto::convert::{self, Meaningless};
use arbiter_proto::ids::Lease;
use arbiter_proto::settings::Settings;
use arbiter_proto::trace::TraceParent;
use arbiter_proto::v1;
use serde_json::Value;

/// Something to be done under one lease.
#[derive(Clone, Debug)]
pub(crate) enum Job {
    Lot(Box<Lot>),
    Trial(Box<Tryout>),
}

impl Job {
    pub(crate) fn lease(&self) -> Lease {
        match self {
            Self::Lot(lot) => lot.lease,
            Self::Trial(tryout) => tryout.lease,
        }
    }

    pub(crate) fn is_trial(&self) -> bool {
        matches!(self, Self::Trial(_))
    }

    /// Where its trace goes on.
    pub(crate) fn trace(&self) -> Option<&TraceParent> {
        match self {
            Self::Lot(lot) => lot.trace.as_ref(),
            Self::Trial(tryout) => tryout.trace.as_ref(),
        }
    }

    /// The digests of the bundles that are run, each once.
    pub(crate) fn programs(&self) -> Vec<blake3::Hash> {
        let mut programs: Vec<_> = match self {
            Self::Lot(lot) => {
                let seats = lot.matches.iter().flat_map(|played| &played.seats);
                seats.map(|seat| seat.program).collect()
            }
            Self::Trial(tryout) => tryout.opponents.iter().map(|seat| seat.program).collect(),
        };
        programs.sort_unstable_by_key(|digest| *digest.as_bytes());
        programs.dedup();
        programs
    }

    /// The digest of the bundle that is to be tried.
    pub(crate) fn subject(&self) -> Option<blake3::Hash> {
        match self {
            Self::Lot(_) => None,
            Self::Trial(tryout) => Some(tryout.subject.digest),
        }
    }
}

/// A version to be tried.
#[derive(Clone, Debug)]
pub(crate) struct Tryout {
    pub(crate) lease: Lease,
    pub(crate) params: Params,
    pub(crate) settings: Settings,
    pub(crate) seed: Seed,
    pub(crate) subject: SeatAssignment,
    pub(crate) opponents: Vec<SeatAssignment>,
    /// Where its trace goes on.
    pub(crate) trace: Option<TraceParent>,
}

impl Tryout {
    /// Reads a trial whose lease is known.
    ///
    /// # Errors
    /// What is wrong with it; that is no bot's fault.
    pub(crate) fn read(games: &Games, lease: Lease, message: v1::Trial) -> Result<Self, String> {
        let game = games.find(&message.game).map_err(text)?;
        let settings: Settings = serde_json::from_str(&message.settings)
            .map_err(|error| format!("settings: {error}"))?;
        let params = Params::read(&game, Value::Object(settings.params.clone()))
            .map_err(|error| format!("params: {error}"))?;
        let seed = convert::seed("seed", &message.seed).map_err(text)?;
        let subject = convert::given("subject", message.subject).map_err(text)?;
        let subject = SeatAssignment::try_from(subject).map_err(text)?;
        let opponents = message.opponents.into_iter().map(TryInto::try_into);
        let opponents = opponents.collect::<Result<_, _>>().map_err(text)?;
        let trace = TraceParent::carried(&message.trace);
        Ok(Self { lease, params, settings, seed, subject, opponents, trace })
    }
}

/// Matches to be played under one lease.
#[derive(Clone, Debug)]
pub(crate) struct Lot {
    pub(crate) lease: Lease,
    /// What all matches have in common.
    pub(crate) settings: Settings,
    pub(crate) matches: Vec<MatchAssignment<Params>>,
    /// Where its trace goes on.
    pub(crate) trace: Option<TraceParent>,
}

impl Lot {
    /// Reads a lot whose lease is known.
    ///
    /// # Errors
    /// What is wrong with it; that is no bot's fault.
    pub(crate) fn read(games: &Games, lease: Lease, message: v1::Lot) -> Result<Self, String> {
        let game = games.find(&message.game).map_err(text)?;
        let settings: Settings = serde_json::from_str(&message.settings)
            .map_err(|error| format!("settings: {error}"))?;
        let matches = message.matches.into_iter().map(|played| {
            let number = played.number;
            assignment(&game, &settings, played).map_err(|why| format!("match {number}: {why}"))
        });
        let matches = matches.collect::<Result<Vec<_>, _>>()?;
        if matches.is_empty() {
            return Err("a lot without a match".to_owned());
        }
        let trace = TraceParent::carried(&message.trace);
        Ok(Self { lease, settings, matches, trace })
    }
}

fn assignment(
    game: &Game,
    settings: &Settings,
    message: v1::Match,
) -> Result<MatchAssignment<Params>, Meaningless> {
    MatchAssignment::try_from(message)?.complete(game, settings)
}

#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
fn text(error: impl ToString) -> String {
    error.to_string()
}
