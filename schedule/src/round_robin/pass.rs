//! The order of the pairs of one pass: each pair that meets is listed once.
//!
//! *All pairs*: the circle method. The bots are arranged in a circle of an odd number n of places.
//! With an even number of bots, one bot is outside the circle. In round r the bots at distance k on
//! both sides of place r meet, and the bot outside the circle meets the bot at place r.
//!
//! *Neighbours*: a circulant graph. All bots form a ring of n places. For k opponents, bots at
//! distances 1 to k/2 meet, and for odd k also opposite bots, at distance n/2 (n is even then). So
//! every bot has exactly k opponents. The pairs at a distance d < n/2 form g = gcd(n, d) cycles of
//! l = n/g pairs. A round has every second pair of each cycle, the next round has the others. If l
//! is odd, a third round has the last pair of each cycle. So no bot plays twice in a round.

use super::SEATS;

/// The pairs of a pass, as places from 0.
#[derive(Debug)]
pub(super) enum Pass {
    /// All pairs of `bots` bots.
    AllPairs {
        bots: usize,
        /// The next round.
        round: usize,
        /// The distance of the next pair from the middle of the round.
        distance: usize,
    },
    /// The pairs that are close on a ring of `bots` bots, and for an odd number of opponents the
    /// opposite pairs.
    Neighbours {
        bots: usize,
        /// The number of others that a bot meets.
        opponents: usize,
        /// The number of earlier distances.
        distances: usize,
        /// The number of earlier pairs at this distance.
        index: usize,
    },
}

impl Pass {
    /// A pass in which each of `bots` bots meets this many others. If it is not all of them, their
    /// product is even.
    pub(super) fn new(bots: usize, opponents: usize) -> Self {
        if opponents + 1 == bots {
            Self::AllPairs { bots, round: 0, distance: first_distance(bots) }
        } else {
            debug_assert!((bots * opponents).is_multiple_of(2), "pairs are whole");
            Self::Neighbours { bots, opponents, distances: 0, index: 0 }
        }
    }
}

/// The first distance of a round. It is 1 if there is no bot outside the circle, since then the bot
/// in the middle has no match.
fn first_distance(bots: usize) -> usize {
    bots % 2
}

impl Iterator for Pass {
    type Item = [usize; SEATS];

    fn next(&mut self) -> Option<[usize; SEATS]> {
        match self {
            Self::AllPairs { bots, round, distance } => {
                // The number of places of the circle is odd.
                let places = (*bots - 1) | 1;
                if *round == places {
                    return None;
                }
                let pair = pair_of_round(*round, *distance, places);
                *distance += 1;
                if *distance > places / 2 {
                    *distance = first_distance(*bots);
                    *round += 1;
                }
                Some(pair)
            }
            Self::Neighbours { bots, opponents, distances, index } => {
                if *distances == opponents.div_ceil(2) {
                    return None;
                }
                let is_opposite = *distances == *opponents / 2;
                let distance = if is_opposite { *bots / 2 } else { *distances + 1 };
                let pair = pair_at_distance(*bots, distance, *index);
                *index += 1;
                if *index == if is_opposite { *bots / 2 } else { *bots } {
                    *index = 0;
                    *distances += 1;
                }
                Some(pair)
            }
        }
    }
}

/// The pair at a distance from the middle of a round. The bot outside the circle has the last
/// place.
fn pair_of_round(round: usize, distance: usize, places: usize) -> [usize; SEATS] {
    if distance == 0 {
        [places, round]
    } else {
        [(round + distance) % places, (round + places - distance) % places]
    }
}

/// The pair at a distance on the ring with this index.
fn pair_at_distance(bots: usize, distance: usize, index: usize) -> [usize; SEATS] {
    let cycles = gcd(bots, distance);
    // Opposite bots form cycles of two places, which have only one pair.
    let half = cycles * (bots / cycles / 2);
    let cycle = index % cycles;
    let step = match index / half {
        0 => 2 * (index / cycles),
        1 => 2 * ((index - half) / cycles) + 1,
        _ => bots / cycles - 1,
    };
    let first = (cycle + step * distance) % bots;
    [first, (first + distance) % bots]
}

/// The greatest common divisor.
fn gcd(one: usize, other: usize) -> usize {
    if other == 0 { one } else { gcd(other, one % other) }
}
