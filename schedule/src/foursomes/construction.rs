//! The choice of a construction by the number of bots.
//!
//! Every number of bots from 4 on has a construction. Outline of the proof: 2, 6 and 11 modulo 12
//! are always progressions. For other numbers, the size m of groups may be any number prime to 6 (1
//! modulo 4 if each pair meets once or three times). Such numbers have gaps of at most 4 (8), so
//! that the intervals [4m, 5m] overlap from 116 bots on. Then the size t of the last group has a
//! construction too. Below 116 a test finds a construction for every number.

use super::small_designs::SmallDesign;
use super::transversal::Ring;

/// The minimum number of bots.
pub(crate) const MIN_BOTS: usize = 4;

/// The construction of a design.
#[derive(Debug)]
pub(super) enum Construction {
    /// A design of the table of small designs.
    SmallDesign(&'static SmallDesign),
    /// Tables {j, j + i, j + 3i, j + 2i} modulo the number of points, which is prime to 6, for
    /// each i up to half of this number. Each difference occurs 3 + 2 + 1 times.
    Progression,
    /// A progression with one more point, ∞, which replaces one point of the tables with i = 1.
    ProgressionAndOne,
    /// Four groups of m points, one of t, and e single points, joined by a transversal design.
    Groups(Groups),
    /// Groups of a third of the points, each of which is then replaced by three, and one single
    /// point.
    TripledGroups(Groups),
}

/// Sizes of groups: four of `m` points and one of `t`; `e` points are in no group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Groups {
    pub(super) m: usize,
    pub(super) t: usize,
    pub(super) e: usize,
}

/// λ: the smallest number of meetings that all pairs can have. It makes the matches of a bot, λ(n -
/// 1)/3, and all matches, λn(n - 1)/12, whole numbers (Hanani, "The existence and construction of
/// balanced incomplete block designs", 1961: these conditions suffice).
pub(super) fn least_meetings(bots: usize) -> u32 {
    match bots % 12 {
        1 | 4 => 1,
        7 | 10 => 2,
        0 | 5 | 8 | 9 => 3,
        _ => 6,
    }
}

/// Whether there is a design of this many points with exactly `meetings` of each pair.
fn design_exists(points: usize, meetings: u32) -> bool {
    points <= 1 || points >= MIN_BOTS && meetings.is_multiple_of(least_meetings(points))
}

impl Construction {
    /// The construction for a number of bots. It exists for every number from [`MIN_BOTS`] on.
    pub(super) fn find(bots: usize) -> Option<Self> {
        if let Some(design) = SmallDesign::find(bots) {
            return Some(Self::SmallDesign(design));
        }
        let meetings = least_meetings(bots);
        let prime_to_six = |n: usize| !n.is_multiple_of(2) && !n.is_multiple_of(3);
        if meetings == 6 && prime_to_six(bots) {
            return Some(Self::Progression);
        }
        if meetings == 6 && prime_to_six(bots - 1) {
            return Some(Self::ProgressionAndOne);
        }
        let groups = || groups(bots, meetings).map(Self::Groups);
        let tripled = || tripled(bots, meetings).map(Self::TripledGroups);
        if meetings >= 3 { groups() } else { groups().or_else(tripled) }
    }
}

/// The sizes with the smallest possible m. Most blocks then have five points, so the design repeats
/// the fewest foursomes.
fn groups(bots: usize, meetings: u32) -> Option<Groups> {
    let sizes = (bots / 5..=bots / 4).flat_map(|m| [0, 1].map(|e| (m, e)));
    let mut groups = sizes.filter_map(|(m, e)| {
        let t = bots.checked_sub(4 * m + e)?;
        (t <= m && Ring::exists(m)).then_some(Groups { m, t, e })
    });
    groups.find(|Groups { m, t, e }| {
        let allows_fives = *t == 0 || meetings.is_multiple_of(3);
        allows_fives && design_exists(m + e, meetings) && design_exists(t + e, meetings)
    })
}

/// The sizes for points of three bots each. One bot is a single point.
fn tripled(bots: usize, meetings: u32) -> Option<Groups> {
    let points = (bots - 1) / 3;
    let mut groups = (points / 5..=points / 4).filter_map(|m| {
        let t = points - 4 * m;
        (t <= m && Ring::exists(m)).then_some(Groups { m, t, e: 1 })
    });
    groups.find(|Groups { m, t, .. }| {
        design_exists(3 * m + 1, meetings) && design_exists(3 * t + 1, meetings)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_bots_has_a_construction() {
        for bots in MIN_BOTS..20_000 {
            assert!(Construction::find(bots).is_some(), "{bots} bots");
        }
    }

    #[test]
    fn least_meetings_make_whole_numbers_of_matches() {
        for bots in MIN_BOTS..200 {
            let is_possible = |meetings: usize| {
                (meetings * (bots - 1)).is_multiple_of(3)
                    && (meetings * bots * (bots - 1)).is_multiple_of(12)
            };
            let least = (1..=6).find(|meetings| is_possible(*meetings)).unwrap();
            assert_eq!(least_meetings(bots), u32::try_from(least).unwrap(), "{bots} bots");
        }
    }
}
