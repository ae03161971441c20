//! Swiss pairings: each round pairs players with equal scores who have not met.
//!
//! This is the FIDE Dutch system (FIDE Handbook C.04.3, in force from February 2026). The rules
//! define exactly one pairing of each round, so every program that follows them gives the same one:
//! the score groups are paired from the top, each with the players that the groups above left over.
//! `bracket.rs` tells how the pairing of one of them is found, and `direct.rs` how it is found
//! quickly.
//!
//! [`Variant::Double`] pairs matches of two games by FIDE's Double-Swiss system (C.04.5, in force
//! from February 2026), see `double.rs`.

mod bracket;
mod card;
mod colours;
mod completion;
mod criteria;
mod direct;
mod double;
mod history;
mod matching;
mod outlook;
mod preferences;
mod round;
mod rules;
mod sides;
mod standings;
mod tournament;
mod trf;
mod weight;

pub use history::{Colour, Forgotten, Player, Round, Variant};
pub use round::{Pairing, Pairings, Swiss, SwissError};
pub(crate) use rules::MIN_BOTS;
pub use rules::{Games, GamesError, SwissRules};
pub use standings::Standing;
pub use tournament::{SwissMeeting, SwissRound, SwissTournament, half_points};
pub use trf::{MAX_TRF_PLAYERS, TrfError, trf};
