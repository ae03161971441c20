//! The points of a deal for each seat.

use alloc::vec;

use crate::bounds::Bounds;
use crate::match_state::Seat;

use super::Params;
use super::auction::MAX_SEATS;

/// The points of the places, the last place first ("Szczegóły"). Smaller tables use only the upper
/// places.
const PLACES: [i64; MAX_SEATS] = [0, 12, 24, 48];
/// The points of the first place.
pub(super) const FIRST_PLACE: i64 = PLACES[MAX_SEATS - 1];

/// The result of a deal for a seat, the worst result first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DealResult {
    /// The seat forfeited the match. It gets no points, and all other seats rank above it.
    Forfeited,
    /// The seat lost its last card in the auction with this number.
    Left(u32),
    /// The seat had cards at the end.
    Stayed,
}

/// The points of each seat. Seats with equal results get the mean of their places, which is always
/// a whole number.
///
/// # Panics
/// If there are more than 4 seats.
pub fn points(results: &[DealResult]) -> [i64; MAX_SEATS] {
    let mut points = [0; MAX_SEATS];
    let active = || results.iter().filter(|result| **result != DealResult::Forfeited);
    for (seat, result) in Seat::all(results.len()).zip(results) {
        if *result == DealResult::Forfeited {
            continue;
        }
        let worse = active().filter(|other| *other < result).count();
        let equal = active().filter(|other| *other == result).count();
        let lowest = MAX_SEATS - active().count() + worse;
        let sum: i64 = PLACES[lowest..lowest + equal].iter().sum();
        points[seat.index()] = sum / i64::try_from(equal).expect("a table is small");
    }
    points
}

/// The sum of the points of a deal with `active` seats that have not forfeited.
fn points_sum(active: usize) -> i64 {
    PLACES[MAX_SEATS - active..].iter().sum()
}

/// The bounds of the points of a match, given for each seat whether it forfeited. `None` if all
/// seats forfeited: a match ends when only one active seat remains.
///
/// A seat gets no points for the deal of its forfeit and for later deals. In these deals the active
/// seats rank above it and share the upper places.
pub(crate) fn bounds(params: &Params, forfeited: &[bool]) -> Option<Bounds> {
    let deals = i64::from(params.deals);
    let seats = forfeited.len();
    let forfeits = forfeited.iter().filter(|forfeited| **forfeited).count();
    let active = seats.checked_sub(forfeits).filter(|active| *active > 0)?;
    // The worst case for active seats: the other seats forfeit only in the last deal.
    let min = PLACES[MAX_SEATS - seats] * (deals - 1) + PLACES[MAX_SEATS - active];
    let of_seat = |forfeited: &bool| match forfeited {
        true => 0..=FIRST_PLACE * (deals - 1),
        false => min..=FIRST_PLACE * deals,
    };
    let max = points_sum(seats) * (deals - 1) + points_sum(active);
    Some(Bounds {
        seats: forfeited.iter().map(|forfeited| vec![of_seat(forfeited)]).collect(),
        sums: vec![points_sum(active) * deals..=max],
        bad_answers: vec![0; seats],
    })
}
