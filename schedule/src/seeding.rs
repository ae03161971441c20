//! How bots get their numbers: in a bracket, or for Swiss pairings.

use arbiter_games::string_enum;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Bot;
use super::seeded_mix::{NameKey, mix};

/// A key of [`mix`], so that numbers are independent of other random choices.
const NUMBERS: u64 = 4;

string_enum! {
    /// How bots get their numbers. Number 1 is the best one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case", try_from = "String")]
    pub enum Seeding {
        /// Drawn from the tournament's seed.
        #[default]
        Draw = "draw",
        /// In the order of entry.
        Entry = "entry",
        /// By the ranks of the former stage.
        Rank = "rank",
    }
    FromStr, Err = UnknownSeeding
}

/// The error for a text that is not one of [`Seeding`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("seeding can be draw or entry, and rank after a former stage")]
pub struct UnknownSeeding(pub String);

impl TryFrom<String> for Seeding {
    type Error = UnknownSeeding;

    fn try_from(text: String) -> Result<Self, UnknownSeeding> {
        text.parse()
    }
}

impl Seeding {
    /// The bots of these names in the order of their numbers. The names are in the order of entry,
    /// or in that of the ranks in the former stage.
    pub(crate) fn numbered(self, names: &[NameKey]) -> Vec<Bot> {
        let mut bots: Vec<Bot> = (0..=Bot::MAX).take(names.len()).collect();
        if self == Self::Draw {
            bots.sort_by_cached_key(|bot| (mix([NUMBERS, names[usize::from(*bot)].0]), *bot));
        }
        bots
    }
}
