//! The points of a deal for each seat.

use alloc::vec;

use crate::bounds::Bounds;
use crate::match_state::Seat;

use super::Params;
use super::auction::MAX_SEATS;

/// The points of the places, the last place first ("Szczegóły"). Smaller tables have only the upper
/// places.
const PLACES: [i64; MAX_SEATS] = [0, 12, 24, 48];
/// The points of the first place.
pub(super) const FIRST_PLACE: i64 = PLACES[MAX_SEATS - 1];

/// The result of a deal for a seat, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DealResult {
    /// The seat forfeited the match: it gets no points, and all others rank above it.
    Forfeited,
    /// The seat lost its last card in the auction with this number.
    Left(u32),
    /// The seat had cards at the end.
    Stayed,
}

/// The points of each seat. Seats with equal results share the mean of their places, which is always a
/// whole number.
///
/// # Panics
/// If there are more than 4 seats.
pub fn points(results: &[DealResult]) -> [i64; MAX_SEATS] {
    let mut points = [0; MAX_SEATS];
    let living = || results.iter().filter(|result| **result != DealResult::Forfeited);
    for (seat, result) in Seat::all(results.len()).zip(results) {
        if *result == DealResult::Forfeited {
            continue;
        }
        let below = living().filter(|other| *other < result).count();
        let equal = living().filter(|other| *other == result).count();
        let lowest = MAX_SEATS - living().count() + below;
        let sum: i64 = PLACES[lowest..lowest + equal].iter().sum();
        points[seat.index()] = sum / i64::try_from(equal).expect("a table is small");
    }
    points
}

/// The sum of the points of a deal that `living` seats end without a forfeit.
fn shared(living: usize) -> i64 {
    PLACES[MAX_SEATS - living..].iter().sum()
}

/// The bounds of the points of a match when these seats forfeited; `None` if all of them did, since a
/// match ends when one seat is left.
///
/// A seat gets no points from the deal of its forfeit on. In these deals the seats that do not forfeit
/// rank above it and share the upper places.
pub(crate) fn bounds(params: &Params, forfeited: &[bool]) -> Option<Bounds> {
    let deals = i64::from(params.deals);
    let seats = forfeited.len();
    let forfeits = forfeited.iter().filter(|forfeited| **forfeited).count();
    let living = seats.checked_sub(forfeits).filter(|living| *living > 0)?;
    // The worst case for living seats: the others forfeit only in the last deal.
    let least = PLACES[MAX_SEATS - seats] * (deals - 1) + PLACES[MAX_SEATS - living];
    let of_seat = |forfeited: &bool| match forfeited {
        true => 0..=FIRST_PLACE * (deals - 1),
        false => least..=FIRST_PLACE * deals,
    };
    let most = shared(seats) * (deals - 1) + shared(living);
    Some(Bounds {
        seats: forfeited.iter().map(|forfeited| vec![of_seat(forfeited)]).collect(),
        sums: vec![shared(living) * deals..=most],
        bad_answers: vec![0; seats],
    })
}
