//! For whom a record is replayed: the names to show, and the private lines.
//!
//! Two kinds of lines are private: the end of a bot's standard error, and what was measured of a
//! forfeit, such as the signal that ended a program. Both tell how a bot works. All other lines
//! determine the result.

use std::collections::HashMap;

use arbiter_games::{BotName, EntrantName, Seat};

use crate::lines::Difference;

/// Names to show instead of names in a record: those of bots of a tournament are longer there, with
/// their owners. Names that are missing are shown as they are.
pub type ShownNames = HashMap<BotName, EntrantName>;

/// For whom a record is replayed. The default reader may see everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reader<'a> {
    /// The names to show instead of those in the record.
    pub names: Option<&'a ShownNames>,
    /// Whether the reader may see the private lines of each seat of the match, seat 1 first. `None`
    /// if it may see all.
    pub visible: Option<&'a [bool]>,
}

impl Reader<'_> {
    /// Whether the reader may see the private lines of a seat.
    pub(crate) fn sees(self, seat: Seat) -> bool {
        self.visible.is_none_or(|visible| visible.get(seat.index()) == Some(&true))
    }

    /// What the reader may see of a difference: not the text of a line, which may be private. The
    /// first line never is.
    #[must_use]
    pub fn redact(self, difference: Difference) -> Difference {
        let sees_all = self.visible.is_none_or(|visible| !visible.contains(&false));
        match difference {
            Difference::Line { line: line @ 2.., .. } if !sees_all => {
                Difference::Line { line, problem: "not what the rules expect".to_owned() }
            }
            difference => difference,
        }
    }
}
