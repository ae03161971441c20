//! Tournaments: from the organiser's file to editions, lots and reports.
//!
//! ```text
//! file ──► create ──► edition: versions fixed, schedule planned ──► lots ──► assignments ──►
//! workers
//!                        ▲    │                                                             │
//!               rounds ──┘    └── state_dependencies                    standings ◄── report ◄┘
//! ```
//!
//! A tournament is a file and a seed. An edition adds an ordered list of versions. The same file,
//! seed and versions always give the same matches in the same order, with the same seats and seed
//! keys. Editions share the matches that they have in common (`edition_matches`).

pub mod auto_edition;
pub mod beacon;
mod chained_matches;
mod edition_matches;
pub mod entry_outlook;
pub mod episode_rounds;
pub mod estimate;
pub mod file;
pub mod file_changes;
pub mod lifecycle;
pub mod lot_assignment;
mod lot_size;
pub mod open_edition;
pub mod plan_derivation;
mod plan_difference;
pub mod plan_history;
mod planner;
pub mod played_rounds;
pub mod rehearsal;
pub mod report_check;
pub mod rounds;
mod state_dependencies;
pub mod stored_plan;
pub mod trial_assignment;

pub use auto_edition::EditionOpener;
pub use beacon::BeaconError;
pub use file::{FileError, Rerun, TournamentFile};
pub use lifecycle::{CreateError, LifecycleError};
pub use lot_assignment::{AssignmentBuilder, AssignmentError};
pub use open_edition::{IfRunning, OpenError, OpenRequest};
pub use plan_history::PlanMode;
