//! What a deal is worth to each seat.

use crate::game::Seat;

use super::auction::MOST_SEATS;

/// The points of the places, the last place first ("Szczegóły"). Smaller tables have the upper
/// places alone.
const PLACES: [i64; MOST_SEATS] = [0, 12, 24, 48];
/// The points of the first place.
pub(super) const FIRST_PLACE: i64 = PLACES[MOST_SEATS - 1];

/// How a deal ends for a seat, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// It had forfeited the match: no points, and the others rank above it.
    Forfeited,
    /// It lost its last card in the auction with this number.
    Left(u32),
    /// It had cards in the end.
    Stayed,
}

/// The points of each seat. Seats with the same fate share the mean of the places they fill, a
/// whole number wherever they are.
///
/// # Panics
/// If there are more than 4 seats.
pub fn points(fates: &[Fate]) -> [i64; MOST_SEATS] {
    let mut points = [0; MOST_SEATS];
    let living = || fates.iter().filter(|fate| **fate != Fate::Forfeited);
    for (seat, fate) in Seat::all(fates.len()).zip(fates) {
        if *fate == Fate::Forfeited {
            continue;
        }
        let below = living().filter(|other| *other < fate).count();
        let equal = living().filter(|other| *other == fate).count();
        let lowest = MOST_SEATS - living().count() + below;
        let sum: i64 = PLACES[lowest..lowest + equal].iter().sum();
        points[seat.index()] = sum / i64::try_from(equal).expect("a table is small");
    }
    points
}
