//! Ranks of things that can be equal.

use core::cmp::Ordering;

/// The rank of each of `count` things, from 1, in their order. `compare` orders the positions of
/// two of them, the better one first. Equal things share a rank, and the following ranks are
/// skipped.
pub fn shared_ranks(count: usize, compare: impl Fn(usize, usize) -> Ordering) -> Vec<u32> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|first, second| compare(*first, *second));
    let mut ranks = vec![1; count];
    let mut before: Option<usize> = None;
    for (place, position) in (1..).zip(order) {
        ranks[position] = match before {
            Some(before) if compare(before, position) == Ordering::Equal => ranks[before],
            _ => place,
        };
        before = Some(position);
    }
    ranks
}
