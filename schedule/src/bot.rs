//! Bots, as schedules know them.

/// A bot: its position in the list of a tournament's bots, from 0.
pub type Bot = u16;

/// The most bots that can be planned.
pub const MOST_BOTS: usize = 1 << 16;

/// The most bots whose plan can grow, or whose owners can be kept apart: their meetings are counted
/// pair by pair.
pub const MOST_KNOWN: usize = 5000;

/// Whose a bot is: any number that no other owner has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub i32);

/// Whether two bots have the same owner. There may be no owners, if that makes no difference.
pub(crate) fn are_kin(owners: &[Option<Owner>], one: usize, other: usize) -> bool {
    let owner = |bot: usize| owners.get(bot).copied().flatten();
    owner(one).is_some_and(|owned| owner(other) == Some(owned))
}

/// Who has, or had, a place of a lineage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its bot; none if it left.
    pub bot: Option<Bot>,
    /// Its owner, if that is to make a difference: bots of one owner are kept apart.
    pub owner: Option<Owner>,
}
