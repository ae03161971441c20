//! Matches of two, checked by their certificates.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use arbiter_games::Seed;
use arbiter_schedule::{
    Bot, Certificate, CertificateBuilder, NameKey, Opponents, Pairing, Pairings, Repetitions,
    RoundRobin, Schedule, ScheduleError, Sides,
};
use proptest::prelude::*;

fn rules(legs: i64, sides: Sides, boards: i64) -> RoundRobin {
    let times = |number: i64| Repetitions::try_from(number).unwrap();
    RoundRobin { legs: times(legs), sides, boards: times(boards), opponents: None }
}

/// One match of each pair, and `opponents` others for each bot.
fn some(opponents: usize) -> RoundRobin {
    let opponents = i64::try_from(opponents).unwrap();
    RoundRobin { opponents: Some(opponents.try_into().unwrap()), ..RoundRobin::default() }
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
    let all = [2, 3, 8, 9].map(|bots| (rules(1, Sides::Balanced, 1), bots));
    // Rounds of neighbours have half of the bots' pairs if they form cycles of even length.
    for (rules, bots) in all.into_iter().chain([(some(9), 16), (some(8), 32), (some(1), 6)]) {
        let pairings: Vec<_> = plan(rules, bots, "rounds").collect();
        for round in pairings.chunks(bots / 2) {
            let mut bots_of_round: Vec<_> =
                round.iter().flat_map(|pairing| pairing.seats).collect();
            bots_of_round.sort_unstable();
            bots_of_round.dedup();
            assert_eq!(bots_of_round.len(), bots / 2 * 2, "{bots} bots");
        }
    }
}

/// Independent of certificates: the others that each bot meets, and how often.
fn met(plan: Pairings, bots: usize) -> Vec<BTreeMap<Bot, u32>> {
    let mut met = vec![BTreeMap::new(); bots];
    for Pairing { seats: [first, second], .. } in plan {
        *met[usize::from(first)].entry(second).or_insert(0) += 1;
        *met[usize::from(second)].entry(first).or_insert(0) += 1;
    }
    met
}

#[test]
fn every_bot_meets_exactly_as_many_others_as_requested() {
    for bots in 2..=200 {
        for opponents in 1..bots + 2 {
            // Of large numbers of bots, all parities and the ends.
            if bots > 40 && (5..bots - 3).contains(&opponents) && opponents % 17 > 1 {
                continue;
            }
            let are_whole = (bots * opponents) % 2 == 0;
            let expected = (opponents + usize::from(!are_whole)).min(bots - 1);
            let certificate = prove(some(opponents), bots, "some");
            let case = format!("{bots} bots, {opponents} opponents: {certificate}");
            assert_eq!(certificate.matches, (bots * expected / 2) as u64, "{case}");
            let all_meet = expected == bots - 1;
            let exact = u32::try_from(expected).unwrap();
            assert_eq!(certificate.exact_opponents(), (!all_meet).then_some(exact), "{case}");
            assert_eq!(certificate.exact_meetings(), all_meet.then_some(1), "{case}");
            for others in met(plan(some(opponents), bots, "some"), bots) {
                assert_eq!(others.len(), expected, "{case}");
                assert!(others.values().all(|times| *times == 1), "{case}");
            }
        }
    }
}

#[test]
fn the_same_opponents_meet_on_each_board_and_in_each_leg() {
    for bots in [5, 8, 9, 20, 21, 30] {
        for opponents in [1, 2, 3, 4, 6, 7] {
            for sides in Sides::ALL {
                for (legs, boards) in [(1, 2), (2, 1), (3, 1), (2, 3), (1, 8)] {
                    let opponents = some(opponents).opponents;
                    let rules = RoundRobin { opponents, ..rules(legs, sides, boards) };
                    let certificate = prove(rules, bots, "all");
                    let met = met(plan(rules, bots, "all"), bots);
                    let times = rules.meetings();
                    let is_exact = |others: &BTreeMap<Bot, u32>| {
                        others.len() == rules.opponents_among(bots)
                            && others.values().all(|number| *number == times)
                    };
                    assert!(met.iter().all(is_exact), "{rules:?}: {certificate}");
                }
            }
        }
    }
}

#[test]
fn a_plan_of_neighbours_never_changes() {
    let seats: Vec<_> = plan(some(3), 6, "golden").map(|pairing| pairing.seats).collect();
    assert_eq!(seats, [[3, 0], [4, 5], [2, 1], [0, 4], [5, 2], [1, 3], [5, 3], [0, 2], [4, 1]]);
}

/// The pairs that meet, by the names of their bots.
fn pairs(names: &[NameKey], opponents: usize) -> BTreeSet<[NameKey; 2]> {
    let pair = |pairing: Pairing| {
        let mut pair = pairing.seats.map(|bot| names[usize::from(bot)]);
        pair.sort_unstable();
        pair
    };
    some(opponents).among(names).unwrap().map(pair).collect()
}

#[test]
fn a_bot_that_joins_or_leaves_changes_as_few_pairs_as_possible() {
    let all = NameKey::of_numbers(Seed::of_text("join"), 101);
    for (opponents, new, gone) in [(10, 10, 5), (2, 2, 1), (64, 64, 32)] {
        for joins in 0..=100 {
            let mut others = all.clone();
            others.remove(joins);
            let before = pairs(&others, opponents);
            let after = pairs(&all, opponents);
            let changes = (after.difference(&before).count(), before.difference(&after).count());
            assert_eq!(changes, (new, gone), "{opponents} opponents");
        }
    }
    // With an odd number the opposite pairs change: one more opponent each of 101 bots.
    let before = pairs(&all[..100], 9);
    let after = pairs(&all, 9);
    let changes = (after.difference(&before).count(), before.difference(&after).count());
    assert_eq!(changes, (105, 50));
}

#[test]
fn a_pair_keeps_its_sides_when_a_bot_joins() {
    let all = NameKey::of_numbers(Seed::of_text("sides"), 51);
    let seats = |names: &[NameKey]| -> BTreeSet<_> {
        let pairings = some(8).among(names).unwrap();
        pairings.map(|pairing| pairing.seats.map(|bot| names[usize::from(bot)])).collect()
    };
    let before = seats(&all[..50]);
    let after = seats(&all);
    assert_eq!(before.difference(&after).count(), 4);
}

#[test]
fn numbers_of_opponents_that_are_not_possible_are_stated() {
    let adjustment = |opponents, bots| {
        let adjustment = Schedule::RoundRobin(some(opponents)).adjustment(bots);
        adjustment.map(|adjustment| adjustment.to_string())
    };
    let text =
        "every bot meets 10 others instead of 9, because 11 bots cannot all meet exactly 9 others";
    assert_eq!(adjustment(9, 11).as_deref(), Some(text));
    let text = "every bot meets 9 others instead of 64, because there are only 10 bots";
    assert_eq!(adjustment(64, 10).as_deref(), Some(text));
    for (opponents, bots) in [(9, 12), (8, 11), (10, 11), (1, 2)] {
        assert_eq!(adjustment(opponents, bots), None, "{bots} bots");
    }
    assert_eq!(Opponents::try_from(0).unwrap_err().to_string().matches("1 to 65535").count(), 1);
}

#[test]
fn ten_thousand_bots_are_certified_in_little_memory() {
    let bots = 10_000;
    let plan = || plan(some(64), bots, "many");
    let claim = plan().claim();
    assert!(CertificateBuilder::memory(&claim, bots, 2) < 10_000_000);
    let mut builder = CertificateBuilder::for_claim(&claim, bots, 2, &[]);
    plan().for_each(|pairing| builder.add(&pairing.seats).unwrap());
    let certificate = builder.finish();
    assert_eq!(certificate.prove(&claim), Ok(()), "{certificate}");
    assert_eq!(certificate.meetings, [(0, 49_675_000), (1, 320_000)]);
    assert_eq!(certificate.exact_opponents(), Some(64));
}

#[test]
fn sparse_and_dense_certificates_are_equal() {
    for sides in Sides::ALL {
        let rules = RoundRobin { opponents: some(4).opponents, ..rules(3, sides, 2) };
        let claim = plan(rules, 300, "equal").claim();
        assert!(CertificateBuilder::memory(&claim, 300, 2) < CertificateBuilder::bytes(300, 2, 6));
        let builders = [
            CertificateBuilder::for_claim(&claim, 300, 2, &[]),
            CertificateBuilder::new(300, 2, &[]),
        ];
        let [sparse, dense] = builders.map(|mut builder| {
            plan(rules, 300, "equal").for_each(|pairing| builder.add(&pairing.seats).unwrap());
            builder.finish()
        });
        assert_eq!(sparse, dense);
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

#[test]
fn a_plan_with_wrong_opponents_is_detected() {
    let claim = plan(some(4), 9, "fair").claim();
    let mut seats: Vec<_> = plan(some(4), 9, "fair").map(|pairing| pairing.seats).collect();
    let met: BTreeSet<_> = seats.iter().map(|[first, second]| (*first, *second)).collect();
    let meet = |one: Bot, other: Bot| met.contains(&(one, other)) || met.contains(&(other, one));
    let [first, second] = seats[0];
    let other = (0..9).find(|other| *other != first && !meet(first, *other)).unwrap();
    seats[0] = [first, other];
    let certificate = Certificate::count(9, 2, &[], &seats).unwrap();
    let error = certificate.prove(&claim).unwrap_err().to_string();
    assert_eq!(error, "opponents of a bot: 3 to 5, not 4 as promised", "{second} and {other}");
    assert_eq!(certificate.exact_opponents(), None);
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
