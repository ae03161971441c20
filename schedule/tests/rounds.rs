//! Plans in rounds besides knockouts: Swiss tournaments of bots, gauntlets, ladders and stages.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use arbiter_games::{Score, Seed};
use arbiter_schedule::{
    Bot, NameKey, PlannedMatch, RoundPlan, Rounds as _, RoundsCertificate, Schedule, ScheduleError,
    mix,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const SEED: &str = "cup";

fn read(schedule: Value) -> Result<Schedule, String> {
    serde_json::from_value(schedule).map_err(|error| error.to_string())
}

fn names(bots: usize) -> Vec<NameKey> {
    NameKey::of_numbers(Seed::of_text(SEED), bots)
}

fn plan_of(schedule: &Schedule, names: &[NameKey]) -> RoundPlan {
    schedule.rounds(names, Seed::of_text(SEED)).unwrap().unwrap()
}

fn plan(schedule: Value, bots: usize) -> RoundPlan {
    plan_of(&read(schedule).unwrap(), &names(bots))
}

/// Scores of a match: a number for each bot.
type Strength<'a> = &'a dyn Fn(Bot) -> i64;

/// The bot that entered earlier is better.
fn by_entry(bot: Bot) -> i64 {
    -i64::from(bot)
}

/// Plays the next round, and returns its matches.
fn play_round(plan: &mut RoundPlan, strength: Strength<'_>) -> Vec<PlannedMatch> {
    let matches = plan.matches();
    let scores = |planned: &PlannedMatch| {
        planned.seats().iter().map(|bot| Score(vec![strength(*bot)])).collect()
    };
    let results: Vec<_> = matches.iter().map(scores).collect();
    plan.finish(&results).unwrap();
    matches
}

/// Plays all rounds, and returns their matches.
fn play(plan: &mut RoundPlan, strength: Strength<'_>) -> Vec<Vec<PlannedMatch>> {
    let mut rounds = Vec::new();
    while !plan.is_over() {
        rounds.push(play_round(plan, strength));
    }
    rounds
}

fn swiss_rounds(rounds: u32) -> Value {
    json!({"kind": "swiss", "rounds": rounds})
}

fn double_swiss(rounds: u32) -> Value {
    json!({"kind": "swiss", "rounds": rounds, "games": 2})
}

/// Swiss of five rounds, the best four in a double round robin, and a final.
fn cup() -> Value {
    json!({"kind": "stages", "stages": [
        {"schedule": {"kind": "swiss", "rounds": 5}, "advance": 4},
        {"schedule": {"kind": "round_robin", "sides": "both"}, "advance": 2},
        {"schedule": {"kind": "knockout", "seeding": "rank"}},
    ]})
}

/// Every kind of plan.
fn kinds() -> [Value; 5] {
    let gauntlet = json!({"kind": "gauntlet", "panel": ["1", "2"], "legs": 2});
    [swiss_rounds(5), double_swiss(4), gauntlet, json!({"kind": "ladder", "rounds": 6}), cup()]
}

#[test]
fn every_kind_round_trips() {
    for kind in kinds() {
        let schedule = read(kind).unwrap();
        assert_eq!(read(serde_json::to_value(&schedule).unwrap()), Ok(schedule));
    }
}

#[test]
fn a_swiss_winner_has_won_all_games() {
    for bots in [2, 3, 8, 9, 33] {
        let mut plan = plan(json!({"kind": "swiss"}), bots);
        let rounds = play(&mut plan, &by_entry);
        assert_eq!(rounds.len(), bots.next_power_of_two().trailing_zeros() as usize);
        let RoundPlan::Swiss(swiss) = &plan else { panic!("{plan:?}") };
        let standings = swiss.standings(rounds.len());
        let perfect = 2 * u32::try_from(rounds.len()).unwrap();
        assert_eq!((standings[0].rank, standings[0].points), (1, perfect));
        assert_eq!(standings.iter().filter(|one| one.points == perfect).count(), 1);
        assert_eq!(plan.ranks(), standings.iter().map(|one| one.rank).collect::<Vec<_>>());
    }
}

#[test]
fn a_round_of_two_games_has_both_sides() {
    let mut plan = plan(double_swiss(4), 7);
    for round in play(&mut plan, &by_entry) {
        assert_eq!(round.len(), 6);
        for games in round.chunks(2) {
            let mut swapped = games[1].seats().to_vec();
            swapped.reverse();
            assert_eq!(games[0].seats(), swapped);
            assert_eq!(games[0].leg, games[1].leg);
        }
    }
}

/// Ada beats bob, cyd has a bye; ada beats cyd, bob has a bye; then bob beats cyd.
#[test]
fn tie_breaks_of_three_players_are_those_counted_by_hand() {
    let mut plan = plan(json!({"kind": "swiss", "rounds": 3, "seeding": "entry"}), 3);
    play(&mut plan, &by_entry);
    let RoundPlan::Swiss(swiss) = &plan else { panic!("{plan:?}") };
    // Each has a bye: 3, 2 and 1 points. Half points: 6, 4 and 2.
    let standings = swiss.standings(3);
    let points: Vec<_> = standings.iter().map(|one| one.points).collect();
    assert_eq!(points, [6, 4, 2]);
    // The opponents of ada have 4 + 2, and the bye counts as 6.
    let buchholz: Vec<_> = standings.iter().map(|one| one.buchholz).collect();
    assert_eq!(buchholz, [4 + 2 + 6, 6 + 2 + 4, 6 + 4 + 2]);
    let weighted: Vec<_> = standings.iter().map(|one| one.sonneborn_berger).collect();
    assert_eq!(weighted, [2 * (4 + 2 + 6), 2 * (2 + 4), 2 * 2]);
    assert_eq!(plan.ranks(), [1, 2, 3]);
}

#[test]
fn two_bots_meet_again_in_a_swiss_only_if_that_cannot_be_avoided() {
    let mut plan = plan(swiss_rounds(12), 5);
    let rounds = play(&mut plan, &by_entry);
    assert_eq!(rounds.len(), 12);
    let mut met: BTreeMap<Vec<Bot>, u32> = BTreeMap::new();
    for planned in rounds.iter().flatten() {
        assert_eq!(planned.leg, met.get(&sorted(planned)).copied().unwrap_or(0));
        *met.entry(sorted(planned)).or_default() += 1;
    }
    let mut firsts = BTreeSet::new();
    for planned in rounds.iter().take(3).flatten() {
        assert!(firsts.insert(sorted(planned)), "a rematch in the first three rounds");
    }
    assert!(met.values().all(|times| (1..=4).contains(times)), "{met:?}");
}

fn sorted(planned: &PlannedMatch) -> Vec<Bot> {
    let mut bots = planned.seats().to_vec();
    bots.sort_unstable();
    bots
}

#[test]
fn candidates_of_a_gauntlet_meet_the_whole_panel_and_nothing_else() {
    let mut plan = plan(json!({"kind": "gauntlet", "panel": ["1", "4", "absent"], "legs": 3}), 6);
    let mut met: BTreeMap<[Bot; 2], u32> = BTreeMap::new();
    for planned in play(&mut plan, &by_entry).concat() {
        let seats = planned.seats();
        *met.entry([seats[0], seats[1]]).or_default() += 1;
    }
    let panel = [0, 3];
    let expected = [1, 2, 4, 5].into_iter().flat_map(|candidate| {
        panel.into_iter().flat_map(move |member| [[candidate, member], [member, candidate]])
    });
    assert_eq!(met, expected.map(|seats| (seats, 3)).collect());
}

/// The panel plays more matches than a candidate, so sums of scores would favour it.
#[test]
fn a_gauntlet_ranks_by_mean_scores() {
    let mut plan = plan(json!({"kind": "gauntlet", "panel": ["2"]}), 4);
    play(&mut plan, &|bot| i64::from(bot == 0) + i64::from(bot != 3));
    assert_eq!(plan.ranks(), [1, 2, 2, 4]);
}

/// While a gauntlet is played, its standings count the matches that are over.
#[test]
fn a_gauntlet_has_standings_before_its_end() {
    let mut plan = plan(json!({"kind": "gauntlet", "panel": ["2"]}), 3);
    let RoundPlan::Gauntlet(start) = plan.clone() else { panic!("{plan:?}") };
    let matches = plan.matches();
    let score = |planned: &PlannedMatch| -> Vec<Score> {
        planned.seats().iter().map(|bot| Score(vec![i64::from(*bot)])).collect()
    };
    let mut results = vec![None; matches.len()];
    results[0] = Some(score(&matches[0]));
    let partial = start.with_played(&results);
    let counts: Vec<_> = partial.totals().iter().map(|total| total.matches).collect();
    assert_eq!((counts.iter().sum::<u64>(), partial.is_over()), (2, false));
    let results: Vec<_> = matches.iter().map(score).collect();
    plan.finish(&results).unwrap();
    let RoundPlan::Gauntlet(end) = plan else { panic!("{plan:?}") };
    let all: Vec<_> = results.into_iter().map(Some).collect();
    assert_eq!(start.with_played(&all).totals(), end.totals());
    assert_eq!(end.with_played(&all).totals(), end.totals(), "nothing counts twice");
}

#[test]
fn a_gauntlet_needs_a_panel_and_a_candidate() {
    let gauntlet = |panel: Value| read(json!({"kind": "gauntlet", "panel": panel})).unwrap();
    let rounds = |panel: Value| gauntlet(panel).rounds(&names(2), Seed::of_text(SEED));
    let expected = ScheduleError::NoPanel { panel: "ada, bob".to_owned() };
    assert_eq!(rounds(json!(["ada", "bob"])).unwrap_err(), expected);
    assert_eq!(rounds(json!(["1", "2"])).unwrap_err(), ScheduleError::NoCandidate { bots: 2 });
}

#[test]
fn a_gauntlet_that_fits_no_memory_is_refused() {
    let gauntlet = read(json!({"kind": "gauntlet", "panel": ["1", "2"], "legs": 1000})).unwrap();
    let error = gauntlet.rounds(&names(1000), Seed::of_text(SEED)).unwrap_err().to_string();
    let expected = "a gauntlet has 3992000 matches, and at most 500000 are possible";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn bounds_need_no_plan() {
    for kind in kinds() {
        let schedule = read(kind).unwrap();
        let bounds = schedule.bounds(13, Seed::of_text(SEED)).unwrap().unwrap();
        assert_eq!(bounds, plan_of(&schedule, &names(13)).bounds());
    }
}

#[test]
fn a_new_candidate_changes_no_match_of_the_others() {
    let schedule = read(json!({"kind": "gauntlet", "panel": ["1", "2"]})).unwrap();
    let of = |bots: usize| -> BTreeSet<Vec<Bot>> {
        plan_of(&schedule, &names(bots)).matches().iter().map(|one| one.seats().to_vec()).collect()
    };
    assert!(of(8).is_superset(&of(7)));
}

/// With strengths far apart, equals meet more often than the best and the last bot.
#[test]
fn a_ladder_lets_bots_of_equal_strength_meet() {
    let bots = 16;
    let mut plan = plan(json!({"kind": "ladder", "rounds": 12}), bots);
    let mut near = 0;
    let mut far = 0;
    for planned in play(&mut plan, &by_entry).into_iter().skip(4).flatten() {
        let distance = planned.seats()[0].abs_diff(planned.seats()[1]);
        if distance <= 4 {
            near += 1;
        } else if distance >= 12 {
            far += 1;
        }
    }
    assert!(near > 10 * far, "{near} near, {far} far");
    assert_eq!(plan.ranks()[0], 1);
    assert_eq!(plan.ranks()[bots - 1], u32::try_from(bots).unwrap());
}

/// Two bots that beat each other once, with all other results equal, have equal ratings: the order
/// of results does not matter.
#[test]
fn ratings_of_a_ladder_do_not_depend_on_the_order_of_results() {
    let mut plan = plan(json!({"kind": "ladder", "rounds": 1}), 2);
    let won = vec![Score(vec![1]), Score(vec![0])];
    let lost = vec![Score(vec![0]), Score(vec![1])];
    // The sides are swapped in the second game, so each bot wins once.
    plan.finish(&[won.clone(), won]).unwrap();
    let RoundPlan::Ladder(ladder) = &plan else { panic!("{plan:?}") };
    assert_eq!(ladder.strengths()[0].to_bits(), ladder.strengths()[1].to_bits());
    assert_eq!(plan.ranks(), [1, 1]);
    let again = |results: &[Vec<Score>]| {
        let mut plan = self::plan(json!({"kind": "ladder", "rounds": 1}), 2);
        plan.finish(results).unwrap();
        plan.ranks()
    };
    assert_eq!(again(&[lost.clone(), lost]), [1, 1]);
}

/// Rounding errors depend on the order of sums, and must not decide ranks.
#[test]
fn bots_of_a_ladder_with_equal_results_share_a_rank() {
    for chance in 0..20 {
        let mut plan = plan(json!({"kind": "ladder", "rounds": 9}), 8);
        // Bots 2k and 2k + 1 have the same strength, and both games of a meeting are equal.
        while !plan.is_over() {
            play_round(&mut plan, &|bot| {
                i64::try_from(mix([chance, u64::from(bot / 4)]) % 9).unwrap()
            });
        }
        let ranks = plan.ranks();
        let RoundPlan::Ladder(ladder) = &plan else { panic!("{plan:?}") };
        for first in 0..8 {
            for second in 0..8 {
                let relative = ladder.strengths()[first] / ladder.strengths()[second] - 1.0;
                assert_eq!(relative.abs() < 1e-8, ranks[first] == ranks[second], "{ranks:?}");
            }
        }
    }
}

/// A long ladder is fitted as exactly as a short one.
#[test]
fn ratings_of_long_ladders_are_the_most_likely_ones() {
    let bots = 40;
    let mut plan = plan(json!({"kind": "ladder", "rounds": 200}), bots);
    let mut won = vec![1.0; bots];
    let mut met: BTreeMap<Vec<Bot>, f64> = BTreeMap::new();
    while !plan.is_over() {
        for planned in play_round(&mut plan, &by_entry) {
            won[usize::from(planned.seats()[0].min(planned.seats()[1]))] += 1.0;
            *met.entry(sorted(&planned)).or_default() += 1.0;
        }
    }
    let RoundPlan::Ladder(ladder) = &plan else { panic!("{plan:?}") };
    let strength = |bot: usize| ladder.strengths()[bot];
    let mut expected: Vec<_> =
        (0..bots).map(|bot| 2.0 * strength(bot) / (strength(bot) + 1.0)).collect();
    for (pair, games) in met {
        let [first, second] = [pair[0], pair[1]].map(usize::from);
        let share = strength(first) / (strength(first) + strength(second));
        expected[first] += games * share;
        expected[second] += games * (1.0 - share);
    }
    for (won, expected) in won.iter().zip(expected) {
        assert!((won - expected).abs() < 1e-5, "{won} {expected}");
    }
}

/// One of two bots won both games, and each drew twice with an imaginary bot of strength 1. Then
/// the derivative of the likelihood is 0 where 3 / π = 2 / (π + 1) + 2 / (π + 1/π).
#[test]
fn strengths_of_a_ladder_are_the_most_likely_ones() {
    let mut plan = plan(json!({"kind": "ladder", "rounds": 1}), 2);
    play(&mut plan, &by_entry);
    let RoundPlan::Ladder(ladder) = &plan else { panic!("{plan:?}") };
    let [best, worst] = [ladder.strengths()[0], ladder.strengths()[1]];
    assert!((best * worst - 1.0).abs() < 1e-6, "{best} {worst}");
    let balance = 3.0 / best - 2.0 / (best + 1.0) - 2.0 / (best + worst);
    assert!(balance.abs() < 1e-6, "{balance}");
}

#[test]
fn the_best_bots_of_a_stage_enter_the_next_one_in_the_order_of_their_ranks() {
    let mut plan = plan(cup(), 11);
    let mut fields = Vec::new();
    while !plan.is_over() {
        play_round(&mut plan, &by_entry);
        let RoundPlan::Stages(stages) = &plan else { panic!("{plan:?}") };
        fields = stages.started().iter().map(|stage| stage.field.clone()).collect();
    }
    assert_eq!(fields[0].len(), 11);
    assert_eq!(fields[1].len(), 4);
    assert_eq!(fields[2].len(), 2);
    assert_eq!(fields[1][0], 0, "the best bot won all games");
    assert_eq!(fields[2], [0, fields[2][1]]);
    let mut ranks = plan.ranks();
    assert_eq!(ranks[0], 1);
    ranks.sort_unstable();
    assert_eq!(ranks[..4], [1, 2, 3, 4]);
    assert!(ranks[4] == 5 && ranks[10] <= 11, "{ranks:?}");
}

#[test]
fn equal_bots_at_the_last_place_are_drawn_by_their_names() {
    let schedule = read(json!({"kind": "stages", "stages": [
        {"schedule": {"kind": "round_robin"}, "advance": 2},
        {"schedule": {"kind": "knockout"}},
    ]}));
    let schedule = schedule.unwrap();
    let advanced = |names: &[NameKey]| -> BTreeSet<NameKey> {
        let mut plan = plan_of(&schedule, names);
        play_round(&mut plan, &|_| 0);
        let RoundPlan::Stages(stages) = &plan else { panic!("{plan:?}") };
        stages.started()[1].field.iter().map(|bot| names[usize::from(*bot)]).collect()
    };
    let mut names = names(9);
    let expected = advanced(&names);
    names.reverse();
    assert_eq!(advanced(&names), expected, "the order of entry decides nothing");
    // Seven bots share the third rank.
    let mut plan = plan_of(&schedule, &names);
    play(&mut plan, &|_| 0);
    assert_eq!(plan.ranks().iter().filter(|rank| **rank == 3).count(), 7);
}

/// With a budget of matches some bots play one match more, which must not help them.
#[test]
fn listed_stages_rank_by_points_per_match() {
    let schedule = json!({"kind": "stages", "stages": [
        {"schedule": {"kind": "foursomes", "games": 7}, "advance": 4},
        {"schedule": {"kind": "foursomes"}},
    ]});
    let mut plan = plan(schedule, 9);
    // All bots but one have the same score in each match.
    play_round(&mut plan, &|bot| i64::from(bot != 3));
    let RoundPlan::Stages(stages) = &plan else { panic!("{plan:?}") };
    let ranks = stages.started()[0].rounds.rounds().ranks();
    assert_eq!(ranks, [1, 1, 1, 9, 1, 1, 1, 1, 1]);
}

#[test]
fn carried_points_count_in_the_next_stage() {
    let last_stage = |points: &str| {
        let mut plan = plan(
            json!({"kind": "stages", "stages": [
                {"schedule": {"kind": "round_robin"}, "advance": 3},
                {"schedule": {"kind": "round_robin"}, "points": points},
            ]}),
            5,
        );
        // The last of the three wins the second stage, but had fewer points in the first one.
        play_round(&mut plan, &|bot| 10 * (5 - i64::from(bot)));
        play_round(&mut plan, &|bot| i64::from(bot == 2));
        plan.ranks()
    };
    assert_eq!(last_stage("new"), [2, 2, 1, 4, 5]);
    assert_eq!(last_stage("carried"), [1, 2, 3, 4, 5]);
}

/// Matches with equal seats and leg would be one match.
#[test]
fn no_match_occurs_twice_in_stages() {
    let tables = json!({"kind": "stages", "stages": [
        {"schedule": {"kind": "foursomes"}, "advance": 4},
        {"schedule": {"kind": "foursomes", "meetings": 6}, "points": "carried"},
    ]});
    let ladder = json!({"kind": "stages", "stages": [
        {"schedule": {"kind": "ladder"}, "advance": 3},
        {"schedule": {"kind": "round_robin", "legs": 4}, "advance": 2},
        {"schedule": {"kind": "knockout", "best_of": 5}},
    ]});
    let pairs = json!({"kind": "stages", "stages": [
        {"schedule": {"kind": "tables", "seats": 2, "legs": 10}, "advance": 2},
        {"schedule": {"kind": "knockout"}},
    ]});
    for schedule in [tables, ladder, pairs, cup()] {
        let mut plan = plan(schedule, 13);
        let mut seen = BTreeSet::new();
        for planned in play(&mut plan, &by_entry).concat() {
            assert!(seen.insert((planned.leg, planned.seats().to_vec())), "{planned:?}");
        }
    }
}

#[test]
fn stages_that_do_not_fit_are_refused() {
    let check = |stages: Value, phrase: &str| {
        let error = read(json!({"kind": "stages", "stages": stages})).unwrap_err();
        assert!(error.contains(phrase), "{error}");
    };
    let swiss = json!({"kind": "swiss"});
    let knockout = json!({"kind": "knockout"});
    check(json!([{"schedule": swiss}]), "there must be 2 to 16 stages, not 1");
    check(json!([{"schedule": swiss}, {"schedule": knockout}]), "stage 1 needs `advance`");
    let last = json!([{"schedule": swiss, "advance": 4}, {"schedule": knockout, "advance": 2}]);
    check(last, "stage 2 is the last one; leave out its `advance`");
    let few = json!([{"schedule": swiss, "advance": 1}, {"schedule": knockout}]);
    check(few, "stage 2 needs 2 or more bots");
    let four = json!({"kind": "foursomes"});
    check(
        json!([{"schedule": swiss, "advance": 4}, {"schedule": four}]),
        "stage 2 has matches of 4, and stage 1 of 2",
    );
    let carried = json!([
        {"schedule": swiss, "advance": 4}, {"schedule": {"kind": "round_robin"}, "points": "carried"},
    ]);
    check(carried, "points are carried only");
    let rank = json!([
        {"schedule": {"kind": "swiss", "seeding": "rank"}, "advance": 4}, {"schedule": knockout},
    ]);
    check(rank, "seeding cannot be rank in stage 1; write draw or entry");
    let entry = json!([
        {"schedule": swiss, "advance": 4}, {"schedule": {"kind": "knockout", "seeding": "entry"}},
    ]);
    check(entry, "seeding cannot be entry in stage 2; write rank or draw");
    check(json!([{"schedule": {"kind": "solo"}}]), "unknown variant `solo`");
}

#[test]
fn certificates_count_what_is_played() {
    for kind in kinds() {
        let plan = plan(kind.clone(), 9);
        let certificate = RoundsCertificate::prove(&plan).unwrap();
        assert_eq!(certificate.bots, 9);
        let played = play(&mut plan.clone(), &by_entry).concat().len() as u64;
        let bounds = certificate.matches;
        assert!((bounds.fewest..=bounds.most).contains(&played), "{kind}: {bounds}");
    }
    let swiss = RoundsCertificate::prove(&plan(swiss_rounds(5), 20)).unwrap();
    assert_eq!((swiss.meetings, swiss.matches_of_bot), (Some(1), 5..=5));
    assert!(swiss.seat_spread <= 1);
}

#[test]
fn large_fields_are_planned() {
    for kind in [swiss_rounds(3), json!({"kind": "ladder", "rounds": 3})] {
        let mut plan = plan(kind, 10_000);
        assert_eq!(play(&mut plan, &|bot| i64::from(bot % 7)).len(), 3);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The same results give the same plan, and no round of any plan is impossible: each bot plays
    /// at most one meeting in a round of a Swiss, every round is played, and ranks are complete.
    #[test]
    fn plans_follow_from_their_results(bots in 4_usize..40, kind in 0_usize..5, chance: u64) {
        let schedule = read(kinds()[kind].clone()).unwrap();
        let mut plan = plan_of(&schedule, &names(bots));
        let mut again = plan.clone();
        let mut matches = 0;
        while !plan.is_over() {
            let planned = plan.matches();
            let scores = |(index, planned): (usize, &PlannedMatch)| -> Vec<Score> {
                let score = |bot: &Bot| mix([chance, index as u64, u64::from(*bot)]) % 3;
                planned.seats().iter().map(|bot| Score(vec![score(bot).cast_signed()])).collect()
            };
            let results: Vec<_> = planned.iter().enumerate().map(scores).collect();
            if kind < 2 {
                let mut busy = BTreeSet::new();
                for planned in planned.iter().step_by(kind + 1) {
                    prop_assert!(planned.seats().iter().all(|bot| busy.insert(*bot)));
                }
                prop_assert_eq!(busy.len(), bots / 2 * 2);
            }
            matches += planned.len() as u64;
            plan.finish(&results).unwrap();
            prop_assert_eq!(again.matches(), planned);
            again.finish(&results).unwrap();
        }
        let bounds = plan.bounds();
        prop_assert!((bounds.fewest..=bounds.most).contains(&matches));
        let ranks = plan.ranks();
        prop_assert_eq!(again.ranks(), ranks.clone());
        prop_assert!(ranks.contains(&1));
        for rank in &ranks {
            let better = ranks.iter().filter(|other| *other < rank).count();
            prop_assert_eq!(better + 1, *rank as usize);
        }
    }
}
