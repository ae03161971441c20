//! What a deal is worth to each seat.

use alloc::vec;

use crate::bounds::Bounds;
use crate::match_state::Seat;

use super::Params;
use super::auction::MAX_SEATS;

/// The points of the places, the last place first ("Szczegóły"). Smaller tables have the upper
/// places alone.
const PLACES: [i64; MAX_SEATS] = [0, 12, 24, 48];
/// The points of the first place.
pub(super) const FIRST_PLACE: i64 = PLACES[MAX_SEATS - 1];

/// How a deal ends for a seat, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DealResult {
    /// It had forfeited the match: no points, and the others rank above it.
    Forfeited,
    /// It lost its last card in the auction with this number.
    Left(u32),
    /// It had cards in the end.
    Stayed,
}

/// The points of each seat. Seats with the same result share the mean of the places they fill, a
/// whole number wherever they are.
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

/// The points of all seats together in a deal that so many seats end without a forfeit.
fn shared(living: usize) -> i64 {
    PLACES[MAX_SEATS - living..].iter().sum()
}

/// What the points of a match can be when these seats forfeited; nothing if all of them did, for a
/// match ends when one seat is left.
///
/// A seat that forfeits earns nothing in the deal in which it does, nor in any later one. Those that
/// do not forfeit rank above it in each of these, and so share the upper places.
pub(crate) fn bounds(params: &Params, forfeited: &[bool]) -> Option<Bounds> {
    let deals = i64::from(params.deals);
    let seats = forfeited.len();
    let forfeits = forfeited.iter().filter(|forfeited| **forfeited).count();
    let living = seats.checked_sub(forfeits).filter(|living| *living > 0)?;
    // The worst for those who do not: the others forfeit in the last deal, and not before.
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
