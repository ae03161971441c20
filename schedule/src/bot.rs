//! Bots and their owners, as numbers.

/// A bot: its position in the list of a tournament's bots, from 0.
pub type Bot = u16;

/// The maximum number of bots in a plan.
pub const MAX_BOTS: usize = 1 << 16;

/// The maximum number of bots in an incremental plan, or in a plan that keeps owners apart. Both
/// have a counter for each pair.
pub const MAX_COUNTED_BOTS: usize = 5000;

/// The owner of a bot, as a unique number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub i32);

/// Whether two bots have the same owner. `owners` is empty if owners do not matter.
pub(crate) fn have_same_owner(owners: &[Option<Owner>], first: usize, second: usize) -> bool {
    let owner = |bot: usize| owners.get(bot).copied().flatten();
    owner(first).is_some() && owner(first) == owner(second)
}

/// The bot at a place of a [`RosterHistory`](crate::RosterHistory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The bot; `None` if it left.
    pub bot: Option<Bot>,
    /// The bot's owner, if bots of one owner are kept apart.
    pub owner: Option<Owner>,
}
