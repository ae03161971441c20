//! Tournaments: what an organiser writes, and what becomes of it.
//!
//! ```text
//! file ──► create ──► edition: versions fixed, schedule planned ──► lots ──► handout ──► workers
//!                        ▲    │                                                             │
//!             episodes ──┘    └── chain: who waits for whose files      standings ◄── report ◄┘
//! ```
//!
//! A tournament is its file and its seed; an edition is that and an ordered list of versions. The
//! same three give the same matches with the same numbers, seats, deals and order, whoever plans
//! them and whenever.

pub mod beacon;
mod chain;
mod cost;
pub mod create;
pub mod derivation;
pub mod edition;
pub mod episodes;
pub mod file;
pub mod forecast;
pub mod handout;
pub mod lineage;
pub mod opener;
mod planner;
pub mod score_check;
mod takeover;
pub mod trial;

pub use beacon::BeaconError;
pub use create::{CreateError, FindError, StateError};
pub use edition::{OpenError, Opening, Running};
pub use episodes::GrowError;
pub use file::{FileError, Rerun, TournamentFile};
pub use handout::{Handout, HandoutError};
pub use lineage::Design;
pub use opener::Opener;
