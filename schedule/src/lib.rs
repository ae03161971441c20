//! Who plays whom, in which seats.
//!
//! A plan is a stream: its matches are made one by one in O(n) memory, so that tournaments of
//! thousands of bots need not be held at once. What a plan promises is proved by a [`Certificate`],
//! which looks at the matches and at nothing else. Pure: the same input gives the same output, whoever
//! asks and whenever.

mod bot;
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
mod times;

pub use bot::{Bot, MOST_BOTS, Member, Owner};
pub use certificate::{Broken, Certificate, Claim, Counter, Kin};
pub use chance::{NameKey, mix};
pub use config::Schedule;
pub use episodes::{EpisodePlan, Episodes};
pub use error::ScheduleError;
pub use field::Field;
pub use foursomes::{Extent, ExtentError, Foursomes};
pub use lineage::{Lineage, Step};
pub use plan::{MOST_PROOF_BYTES, Matches, Plan, Planned};
pub use round_robin::{Pairing, Pairings, RoundRobin, Sides, UnknownSides};
pub use times::{Times, TimesError};
