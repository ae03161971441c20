//! Who plays whom, in which seats.
//!
//! A plan is a stream: its matches are made one by one in O(n) memory, so that tournaments of
//! thousands of bots need not be held at once. What a plan promises is proved by a [`Certificate`],
//! which looks at the matches and at nothing else. Pure: the same input gives the same output, whoever
//! asks and whenever.

mod certificate;
mod chance;
mod config;
mod episodes;
mod error;
mod field;
pub mod foursomes;
mod lineage;
mod plan;
mod round_robin;

pub use certificate::{Broken, Certificate, Claim, Counter, Kin};
pub use chance::{NameKey, mix};
pub use config::{ExtentError, Schedule, Times, TimesError};
pub use episodes::{EpisodePlan, Episodes};
pub use error::ScheduleError;
pub use field::{Field, Member, Owner};
pub use foursomes::{Extent, Foursomes};
pub use lineage::{Lineage, Step};
pub use plan::{MOST_PROOF_BYTES, Matches, Plan, Planned};
pub use round_robin::{Pairing, Pairings, RoundRobin, Sides, UnknownSides};

/// A bot: its position in the list of a tournament's bots, from 0.
pub type Bot = u16;

/// The most bots that can be planned.
pub const MOST_BOTS: usize = 1 << 16;
