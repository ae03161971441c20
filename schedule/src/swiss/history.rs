//! What happened to a player in the rounds before.

/// The colour of a player's pieces: the first or the second side of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Colour {
    /// Moves first.
    White,
    /// Moves second.
    Black,
}

impl Colour {
    /// The other colour.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::White => Self::Black,
            Self::Black => Self::White,
        }
    }
}

/// What a round is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Variant {
    /// One game.
    #[default]
    Single,
    /// A match of two games with both colours. A colour is that of the first game.
    Double,
}

impl Variant {
    /// The half points of a round in which the player won everything.
    pub fn win(self) -> u32 {
        match self {
            Self::Single => 2,
            Self::Double => 4,
        }
    }

    /// The half points of a pairing bye: a win, or a win and a draw (C.04.5).
    pub fn bye(self) -> u32 {
        match self {
            Self::Single => 2,
            Self::Double => 3,
        }
    }
}

/// One round of one player. Points are in half points: a won game is 2, a drawn game is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Round {
    /// The player met an opponent.
    Played {
        /// The position of the opponent in the list of players.
        opponent: usize,
        /// The colour of the player, in the first game of a match of two.
        colour: Colour,
        /// The half points of the player.
        points: u32,
    },
    /// The player was paired, but the game was not played. The two can be paired again.
    Forfeit {
        /// The position of the opponent in the list of players.
        opponent: usize,
        /// The colour that the player would have had.
        colour: Colour,
        /// Whether the player gets the points of a won game. Both can lose.
        won: bool,
    },
    /// The player had no opponent because the number of players was odd.
    PairingBye,
    /// The player did not take part.
    Absent {
        /// The half points for it: 0, 1, or those of a won game.
        points: u32,
    },
}

/// A player of a tournament.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Player {
    /// All rounds so far, the first one first.
    pub rounds: Vec<Round>,
    /// Whether the player takes part in the next round.
    pub plays: bool,
}

impl Round {
    /// The half points of the player.
    pub fn points(self, variant: Variant) -> u32 {
        match self {
            Self::Played { points, .. } | Self::Absent { points } => points,
            Self::Forfeit { won: true, .. } => variant.win(),
            Self::Forfeit { won: false, .. } => 0,
            Self::PairingBye => variant.bye(),
        }
    }

    /// Whether the player was paired, or had no opponent because the number was odd.
    pub fn is_paired(self) -> bool {
        !matches!(self, Self::Absent { .. })
    }
}

/// What is left out of the history of all players, so that a round can be paired in which every
/// pairing breaks a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Forgotten {
    /// The number of first rounds whose opponents can meet again, and whose byes do not count.
    pub meetings: usize,
    /// Whether the colours of all rounds are left out.
    pub colours: bool,
}
