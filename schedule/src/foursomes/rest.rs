//! Tables beyond whole designs: so few that pairs cannot all meet equally often by them.
//!
//! What is wanted is that every pair meets ⌊x⌋ or ⌈x⌉ times, if x is the average. Three ways are
//! known. Some tables of a larger design ([`subset`]) are right wherever they are enough, that is
//! up to an x of almost 1. A [`Cyclic`] plan is right for most other x, if there are bots enough.
//! Where it is not, it competes with a [`spread`] one, if there are few enough. Close below and
//! above whole x none may be right; then some pairs are off by one more.

use arbiter_games::Seed;

use super::cyclic::Cyclic;
use super::design::Seating;
use super::{SEATS, Table, spread, subset};
use crate::Certificate;

/// The fewest bots who stand in a circle.
const CIRCLE: usize = 30;
/// The most bots whose meetings are counted pair by pair.
const FEW: usize = 200;
/// The most bots for whom all tables of a design are kept, to choose among.
const SEVERAL: usize = 1000;

/// Where the tables come from.
#[derive(Debug)]
pub(super) enum Rest {
    /// They are made in turns.
    Cyclic(Cyclic),
    /// They are all known, and come at once.
    Known(Vec<Table>),
}

impl Rest {
    /// `count` tables for so many bots.
    pub(super) fn new(bots: usize, count: usize, seed: Seed) -> Self {
        let chosen = || subset::tables(bots, count, seed.derive("subset"));
        if bots <= SEVERAL
            && let Some(tables) = chosen()
        {
            return Self::Known(tables);
        }
        let cyclic = || Cyclic::new(bots, count, seed.derive("cyclic"));
        if bots > FEW {
            return Self::Cyclic(cyclic());
        }
        let spread = || spread::tables(bots, count, &mut seed.derive("spread").dice(0));
        if bots < CIRCLE {
            return Self::Known(spread());
        }
        let turned = cyclic().collect();
        let off = uneven(bots, &turned);
        if off == 0 {
            return Self::Known(turned);
        }
        let spread = spread();
        Self::Known(if off < uneven(bots, &spread) { turned } else { spread })
    }

    /// Adds some of the tables, O(n) of them unless bots are few; `None` once there are no more.
    pub(super) fn batch(&mut self, tables: &mut Vec<Table>) -> Option<Seating> {
        match self {
            Self::Cyclic(cyclic) => cyclic.batch(tables),
            Self::Known(known) if known.is_empty() => None,
            Self::Known(known) => {
                tables.append(known);
                Some(Seating::Loose)
            }
        }
    }
}

/// How many pairs do not meet ⌊x⌋ or ⌈x⌉ times.
fn uneven(bots: usize, tables: &[Table]) -> u64 {
    let certificate = Certificate::count(bots, SEATS, tables).expect("tables are possible");
    certificate.uneven_pairs()
}
