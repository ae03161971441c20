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

/// The certificate of a plan. Checks that the plan and its matches on each board meet their claims.
fn prove(rules: RoundRobin, bots: usize, text: &str) -> Certificate {
    let plan = || plan(rules, bots, text);
    let claim = plan().claim();
    let seats = |pairing: Pairing| pairing.seats;
    let certificate = Certificate::count(bots, 2, &[], plan().map(seats)).unwrap();
    assert_eq!(certificate.prove(&claim), Ok(()), "{rules:?} {certificate}");
    let one_board = RoundRobin { boards: Repetitions::ONCE, ..rules };
    let claim = one_board.plan(bots, Seed::of_text(text)).unwrap().claim();
    for board in 0..rules.boards.get() {
        let pairings = plan().filter(|pairing| u32::from(pairing.board) == board);
        let board_certificate = Certificate::count(bots, 2, &[], pairings.map(seats)).unwrap();
        assert_eq!(
            board_certificate.prove(&claim),
            Ok(()),
            "{rules:?} board {board}: {board_certificate}"
        );
    }
    certificate
}

#[test]
fn every_pair_meets_once_on_each_board_and_in_each_leg() {
    for bots in 2..=24 {
        for sides in Sides::ALL {
            for (legs, boards) in [(1, 1), (1, 2), (2, 1), (3, 1), (1, 3), (2, 3), (3, 3), (1, 8)] {
                let certificate = prove(rules(legs, sides, boards), bots, "all");
                let passes = u32::try_from(legs * boards).unwrap();
                let meetings = if sides == Sides::Both { 2 * passes } else { passes };
                assert_eq!(certificate.exact_meetings(), Some(meetings));
            }
        }
    }
}

#[test]
fn balanced_sides_are_even_overall_and_for_each_pair() {
    for bots in 2..=40 {
        let eight_boards = prove(rules(1, Sides::Balanced, 8), bots, "bitwa");
        assert_eq!((eight_boards.seat_spread, eight_boards.side_spread), (0, Some(0)));
        let one_board = prove(rules(1, Sides::Balanced, 1), bots, "one");
        assert_eq!(one_board.seat_spread, u32::from(bots % 2 == 0), "{bots} bots");
    }
}

#[test]
fn both_sides_are_consecutive_in_random_order() {
    let pairings: Vec<_> = plan(rules(1, Sides::Both, 1), 30, "gomoku").collect();
    let mut lower_first = 0;
    for pair in pairings.chunks(2) {
        let [first, second] = pair else { panic!("expected two matches of a pair") };
        assert_eq!(first.seats, [second.seats[1], second.seats[0]]);
        lower_first += usize::from(first.seats[0] < first.seats[1]);
    }
    assert!((150..=285).contains(&lower_first), "{lower_first} of 435");
}

#[test]
fn random_sides_are_random() {
    let count = |sides| prove(rules(1, sides, 8), 40, "random");
    assert!(count(Sides::Random).seat_spread > 8, "seats are not balanced");
    assert!(count(Sides::Random).side_spread > Some(4), "sides of pairs are not balanced");
    let pairings = |text| plan(rules(1, Sides::Random, 1), 10, text).collect::<Vec<_>>();
    assert_eq!(pairings("one"), pairings("one"));
    assert_ne!(pairings("one"), pairings("two"));
}

#[test]
fn every_bot_plays_once_in_a_round() {
    for bots in [2, 3, 8, 9] {
        let pairings: Vec<_> = plan(rules(1, Sides::Balanced, 1), bots, "rounds").collect();
        for round in pairings.chunks(bots / 2) {
            let mut bots_of_round: Vec<_> =
                round.iter().flat_map(|pairing| pairing.seats).collect();
            bots_of_round.sort_unstable();
            bots_of_round.dedup();
            assert_eq!(bots_of_round.len(), bots / 2 * 2, "{bots} bots");
        }
    }
}

#[test]
fn impossible_numbers_of_bots_are_errors() {
    let error = RoundRobin::default().plan(1, Seed::of_text("")).unwrap_err();
    assert_eq!(error.to_string(), "too few bots for a round robin: 1; enter at least 2");
    let error = RoundRobin::default().plan(70_000, Seed::of_text("")).unwrap_err();
    assert_eq!(error, ScheduleError::TooMany { bots: 70_000 });
}

#[test]
fn an_unfair_plan_is_detected() {
    let claim = plan(RoundRobin::default(), 9, "fair").claim();
    let mut seats: Vec<_> =
        plan(RoundRobin::default(), 9, "fair").map(|pairing| pairing.seats).collect();
    seats[7].reverse();
    let certificate = Certificate::count(9, 2, &[], &seats).unwrap();
    let error = certificate.prove(&claim).unwrap_err().to_string();
    assert_eq!(error, "difference of a bot's seats: 2, not at most 1 as promised");
    let first = seats[0];
    let second = seats[1];
    seats[0] = second;
    let error =
        Certificate::count(9, 2, &[], &seats).unwrap().prove(&claim).unwrap_err().to_string();
    assert!(error.starts_with("meetings of a pair: "), "{first:?}: {error}");
}

proptest! {
    #[test]
    fn every_plan_meets_its_claim(
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
