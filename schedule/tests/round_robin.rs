//! Matches of two, checked by their certificates.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use arbiter_games::Seed;
use arbiter_schedule::{
    Certificate, Pairing, Pairings, Repetitions, RoundRobin, ScheduleError, Sides,
};
use proptest::prelude::*;

fn rules(legs: i64, sides: Sides, boards: i64) -> RoundRobin {
    let times = |number: i64| Repetitions::try_from(number).unwrap();
    RoundRobin { legs: times(legs), sides, boards: times(boards) }
}

fn plan(rules: RoundRobin, bots: usize, text: &str) -> Pairings {
    rules.plan(bots, Seed::of_text(text)).unwrap()
}

/// The certificate of a plan; the matches on each board must meet their guarantees, too.
fn prove(rules: RoundRobin, bots: usize, text: &str) -> Certificate {
    let plan = || plan(rules, bots, text);
    let claim = plan().claim();
    let seats = |pairing: Pairing| pairing.seats;
    let certificate = Certificate::count(bots, 2, &[], plan().map(seats)).unwrap();
    assert_eq!(certificate.prove(&claim), Ok(()), "{rules:?} {certificate}");
    let alone = RoundRobin { boards: Repetitions::ONCE, ..rules };
    let claim = alone.plan(bots, Seed::of_text(text)).unwrap().claim();
    for board in 0..rules.boards.get() {
        let there = plan().filter(|pairing| u32::from(pairing.board) == board);
        let there = Certificate::count(bots, 2, &[], there.map(seats)).unwrap();
        assert_eq!(there.prove(&claim), Ok(()), "{rules:?} board {board}: {there}");
    }
    certificate
}

#[test]
fn every_pair_meets_once_on_each_board_and_in_each_leg() {
    for bots in 2..=24 {
        for sides in Sides::ALL {
            for (legs, boards) in [(1, 1), (1, 2), (2, 1), (3, 1), (1, 3), (2, 3), (3, 3), (1, 8)] {
                let certificate = prove(rules(legs, sides, boards), bots, "all");
                let due = u32::try_from(legs * boards).unwrap();
                let due = if sides == Sides::Both { 2 * due } else { due };
                assert_eq!(certificate.exact_meetings(), Some(due));
            }
        }
    }
}

#[test]
fn balanced_sides_are_even_overall_and_for_each_pair() {
    for bots in 2..=40 {
        let eight = prove(rules(1, Sides::Balanced, 8), bots, "bitwa");
        assert_eq!((eight.seat_spread, eight.side_spread), (0, Some(0)), "four and four");
        let one = prove(rules(1, Sides::Balanced, 1), bots, "one");
        assert_eq!(one.seat_spread, u32::from(bots % 2 == 0), "{bots} bots");
    }
}

#[test]
fn both_sides_are_consecutive_in_random_order() {
    let pairings: Vec<_> = plan(rules(1, Sides::Both, 1), 30, "gomoku").collect();
    let mut lower_first = 0;
    for two in pairings.chunks(2) {
        let [one, other] = two else { panic!("two matches a pair") };
        assert_eq!(one.seats, [other.seats[1], other.seats[0]]);
        lower_first += usize::from(one.seats[0] < one.seats[1]);
    }
    assert!((150..=285).contains(&lower_first), "{lower_first} of 435");
}

#[test]
fn random_sides_are_random() {
    let count = |sides| prove(rules(1, sides, 8), 40, "random");
    assert!(count(Sides::Random).seat_spread > 8, "chance is not even");
    assert!(count(Sides::Random).side_spread > Some(4), "nor is it within pairs");
    let of = |text| plan(rules(1, Sides::Random, 1), 10, text).collect::<Vec<_>>();
    assert_eq!(of("one"), of("one"));
    assert_ne!(of("one"), of("two"));
}

#[test]
fn every_bot_plays_once_a_round() {
    for bots in [2, 3, 8, 9] {
        let pairings: Vec<_> = plan(rules(1, Sides::Balanced, 1), bots, "rounds").collect();
        for round in pairings.chunks(bots / 2) {
            let mut seen: Vec<_> = round.iter().flat_map(|pairing| pairing.seats).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), bots / 2 * 2, "{bots} bots");
        }
    }
}

#[test]
fn a_single_bot_is_refused() {
    let refused = RoundRobin::default().plan(1, Seed::of_text("")).unwrap_err();
    assert_eq!(refused.to_string(), "too few bots for a round robin: 1; enter at least 2");
    let refused = RoundRobin::default().plan(70_000, Seed::of_text("")).unwrap_err();
    assert_eq!(refused, ScheduleError::TooMany { bots: 70_000 });
}

#[test]
fn an_unfair_plan_is_detected() {
    let claim = plan(RoundRobin::default(), 9, "fair").claim();
    let mut seats: Vec<_> =
        plan(RoundRobin::default(), 9, "fair").map(|pairing| pairing.seats).collect();
    seats[7].reverse();
    let certificate = Certificate::count(9, 2, &[], &seats).unwrap();
    let told = certificate.prove(&claim).unwrap_err().to_string();
    assert_eq!(told, "difference of a bot's seats: 2, not at most 1 as promised");
    let first = seats[0];
    let second = seats[1];
    seats[0] = second;
    let told =
        Certificate::count(9, 2, &[], &seats).unwrap().prove(&claim).unwrap_err().to_string();
    assert!(told.starts_with("meetings of a pair: "), "{first:?}: {told}");
}

proptest! {
    #[test]
    fn every_plan_meets_its_guarantees(
        bots in 2_usize..50,
        legs in 1_i64..4,
        boards in 1_i64..6,
        sides in prop::sample::select(&Sides::ALL),
        text in "[a-z]{1,8}",
    ) {
        let plan = plan(rules(legs, sides, boards), bots, &text);
        prop_assert_eq!(plan.matches(), prove(rules(legs, sides, boards), bots, &text).matches);
    }
}
