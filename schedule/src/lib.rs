//! Schedules: the bots and seats of all matches of a tournament.
//!
//! A plan is a stream: it yields its matches one by one in O(n) memory, so the matches of thousands
//! of bots need not fit into memory. A plan makes claims about its balance. A [`Certificate`]
//! proves these claims by counting the matches. This crate is pure: the same input always gives the
//! same output.

mod adjustment;
mod bot;
mod certificate;
mod config;
mod episodes;
mod error;
pub mod foursomes;
mod gauntlet;
mod knockout;
mod ladder;
mod listed_round;
mod matches;
mod participants;
mod plan;
mod planned_match;
mod repetitions;
mod roster_history;
mod round_plan;
mod round_robin;
mod rounds;
mod rounds_certificate;
mod seeded_mix;
mod seeding;
mod shared_ranks;
mod solo;
mod stages;
pub mod swiss;
mod tables;

pub use adjustment::{Adjustment, UnevenCause};
pub use bot::{Bot, MAX_BOTS, Member, Owner};
pub use certificate::{Certificate, CertificateBuilder, CertificateError, Claim, SameOwnerPairs};
pub use config::Schedule;
pub use episodes::{EpisodePlan, Episodes};
pub use error::ScheduleError;
pub use foursomes::{Foursomes, FoursomesConfig, FoursomesConfigError};
pub use gauntlet::{Gauntlet, GauntletPlan};
pub use knockout::{
    Bracket, BracketCertificate, BracketError, DecidedBy, Decision, ExtraPairs, ExtraPairsError,
    Fixture, Knockout, Meeting,
};
pub use ladder::{Ladder, LadderRules};
pub use listed_round::{ListedRound, Total};
pub use matches::{MAX_PROOF_BYTES, Matches};
pub use participants::Participants;
pub use plan::Plan;
pub use planned_match::{MatchBounds, PlannedMatch};
pub use repetitions::{Repetitions, RepetitionsError};
pub use roster_history::{RosterChange, RosterHistory};
pub use round_plan::RoundPlan;
pub use round_robin::{
    Opponents, OpponentsError, Pairing, Pairings, RoundRobin, Sides, UnknownSides,
};
pub use rounds::{ResultsError, Rounds};
pub use rounds_certificate::{RoundsCertificate, RoundsError};
pub use seeded_mix::{NameKey, mix};
pub use seeding::{Seeding, UnknownSeeding};
pub use shared_ranks::shared_ranks;
pub use solo::{Solo, SoloMatches};
pub use stages::{
    MAX_STAGES, Stage, StagePlan, StageRounds, StageSchedule, Stages, StagesError, StartPoints,
    StartedStage,
};
pub use swiss::{SwissRules, SwissTournament, half_points};
pub use tables::{TablePlan, TableSeats, TableSeatsError, TableStream, Tables};
