//! Tests of rankings.

use proptest::prelude::*;

use arbiter_games::{bitwa, blackjack, gomoku, tricks, wojna};

use super::*;

/// A match between two entrants with these scores.
fn duel(seats: [i32; 2], scores: [i64; 2]) -> (Vec<Entrant>, Vec<i64>) {
    (seats.map(Entrant).to_vec(), scores.to_vec())
}

fn scored_match((seats, scores): &(Vec<Entrant>, Vec<i64>)) -> ScoredMatch<'_> {
    ScoredMatch { seats, scores, carried: &[], forfeits: &[], bad_answers: &[] }
}

/// Contestants with these sums, in the order of submission.
fn contestants(sums: &[&[i128]]) -> Vec<Contestant> {
    let contestant = |(entrant, score): (i32, &&[i128])| Contestant {
        entrant: Entrant(entrant),
        submitted_at: OffsetDateTime::UNIX_EPOCH + time::Duration::seconds(entrant.into()),
        tally: Tally { matches: 1, score: score.to_vec(), ..Tally::default() },
        plan_rank: None,
        is_ranked: true,
    };
    (0..).zip(sums).map(contestant).collect()
}

/// The rank of each place, whether it is shared, and the entrant.
fn order(game: &Game, sums: &[&[i128]]) -> Vec<(usize, bool, i32)> {
    let places = rank(game, contestants(sums));
    places
        .iter()
        .map(|place| (place.rank.unwrap_or(0), place.tied, place.contestant.entrant.0))
        .collect()
}

#[test]
fn equal_sums_share_a_rank() {
    let sums: [&[i128]; 5] = [&[10], &[30], &[20], &[30], &[5]];
    let expected = [(1, true, 1), (1, true, 3), (3, false, 2), (4, false, 0), (5, false, 4)];
    assert_eq!(order(&wojna::game(), &sums), expected);
}

#[test]
fn ranks_skip_unranked_contestants() {
    let mut contestants = contestants(&[&[30], &[20], &[20], &[20], &[10], &[5]]);
    for unranked in [0, 2, 4] {
        contestants[unranked].is_ranked = false;
    }
    let places = rank(&wojna::game(), contestants);
    let order: Vec<_> =
        places.iter().map(|place| (place.rank, place.tied, place.contestant.entrant.0)).collect();
    let shared = Some(1);
    let expected = [
        (None, false, 0),
        (shared, true, 1),
        (None, false, 2),
        (shared, true, 3),
        (None, false, 4),
        (Some(3), false, 5),
    ];
    assert_eq!(order, expected);
}

/// A finalist with few points ranks above a bot that lost a high-scoring first round.
#[test]
fn the_rank_by_the_plan_comes_before_the_sums() {
    let mut contestants = contestants(&[&[9], &[2], &[7], &[7], &[8]]);
    for (contestant, rank) in contestants.iter_mut().zip([3, 1, 3, 5, 2]) {
        contestant.plan_rank = Some(rank);
    }
    let places = rank(&gomoku::game(), contestants);
    let order: Vec<_> = places
        .iter()
        .map(|place| (place.rank.unwrap_or(0), place.tied, place.contestant.entrant.0))
        .collect();
    let expected = [(1, false, 1), (2, false, 4), (3, true, 0), (3, true, 2), (5, false, 3)];
    assert_eq!(order, expected, "sums order bots that share a rank");
}

/// At tables of four, entrants may have different numbers of matches.
#[test]
fn games_ranked_by_mean_compare_means() {
    let mut several = contestants(&[&[40], &[33], &[-7]]);
    for (contestant, matches) in several.iter_mut().zip([4, 3, 1]) {
        contestant.tally.matches = matches;
    }
    let order = |game: Game| -> Vec<_> {
        let places = rank(&game, several.clone());
        places.iter().map(|place| place.contestant.entrant.0).collect()
    };
    assert_eq!(order(wojna::game()), [1, 0, 2], "a mean of 11 is more than 10");
    assert_eq!(order(bitwa::game()), [0, 1, 2]);
}

#[test]
fn the_earlier_submission_breaks_ties_if_the_game_says_so() {
    let sums: [&[i128]; 3] = [&[2], &[7], &[7]];
    let expected = [(1, false, 1), (2, false, 2), (3, false, 0)];
    assert_eq!(order(&gomoku::game(), &sums), expected);
    // Entrants with the same time of submission share a rank.
    let mut contestants = contestants(&sums);
    contestants[2].submitted_at = contestants[1].submitted_at;
    assert!(rank(&gomoku::game(), contestants)[..2].iter().all(|place| place.tied));
}

#[test]
fn later_components_break_ties() {
    let bitwa: [&[i128]; 4] = [&[3, 5, 9], &[3, 6, -4], &[4, -9, 0], &[3, 6, -3]];
    let expected = [(1, false, 2), (2, false, 3), (3, false, 1), (4, false, 0)];
    assert_eq!(order(&bitwa::game(), &bitwa), expected);
    let tricks: [&[i128]; 2] = [&[1, -2], &[1, 2]];
    assert_eq!(order(&tricks::game(), &tricks), [(1, false, 1), (2, false, 0)]);
}

#[test]
fn an_entrant_without_matches_has_zero() {
    let sums: [&[i128]; 3] = [&[-1, 5], &[], &[0, 0]];
    let expected = [(1, true, 1), (1, true, 2), (3, false, 0)];
    assert_eq!(order(&tricks::game(), &sums), expected);
}

/// Only the final chips of an episode count, also for a broke bot.
#[test]
fn chips_are_counted_at_the_end_of_the_episode() {
    let seats = [Entrant(0), Entrant(1)];
    let none =
        ScoredMatch { seats: &seats, scores: &[], carried: &[], forfeits: &[], bad_answers: &[] };
    let mut tallies = Tallies::new(&blackjack::game());
    tallies.add(&ScoredMatch { scores: &[250, 190], ..none });
    tallies.add(&ScoredMatch { scores: &[300, 9], carried: &[250, 190], ..none });
    tallies.add(&ScoredMatch { seats: &seats[..1], scores: &[280], carried: &[300], ..none });
    let scores: Vec<_> = tallies.by_entrant().values().map(|tally| tally.score.clone()).collect();
    assert_eq!(scores, [vec![280, 0], vec![9, -1]]);
    assert_eq!(blackjack::game().ranking_columns(), ["chips", "broke"]);
}

#[test]
fn forfeits_are_counted_by_kind() {
    let seats = [Entrant(0), Entrant(1)];
    let forfeits = [None, Some(Forfeit::Illegal)];
    let mut tallies = Tallies::new(&gomoku::game());
    let bad_answers = [2, 0];
    let result = ScoredMatch {
        seats: &seats,
        scores: &[2, 0],
        carried: &[],
        forfeits: &forfeits,
        bad_answers: &bad_answers,
    };
    tallies.add(&result);
    tallies.add(&result);
    let [winner, loser] = [0, 1].map(|entrant| &tallies.by_entrant()[&Entrant(entrant)]);
    assert_eq!((winner.forfeits, winner.bad_answers), ([0, 0, 0, 0], 4));
    assert_eq!((loser.forfeits, loser.bad_answers), ([0, 2, 0, 0], 0));
}

/// A filter for all entrants of these tests.
fn all() -> PairFilter {
    PairFilter::Among((0..4).map(Entrant).collect())
}

#[test]
fn head_to_head_results_mirror() {
    let mut results = HeadToHeads::new(all());
    for match_ in [duel([0, 1], [2, 0]), duel([1, 0], [1, 1]), duel([1, 0], [2, 0])] {
        results.add(&scored_match(&match_));
    }
    let result = results.between(Entrant(1), Entrant(0)).unwrap();
    assert_eq!((result.matches, result.won, result.drawn, result.lost), (3, 1, 1, 1));
    assert_eq!((result.points_for, result.points_against), (3, 3));
    assert_eq!(results.between(Entrant(0), Entrant(1)), Some(result.mirrored()));
    assert_eq!(results.between(Entrant(0), Entrant(2)), None);
}

#[test]
fn at_a_table_of_four_all_pairs_meet() {
    let mut results = HeadToHeads::new(all());
    let seats = [3, 1, 0, 2].map(Entrant).to_vec();
    results.add(&scored_match(&(seats, vec![48, 24, 6, 6])));
    let won = |a, b| results.between(Entrant(a), Entrant(b)).unwrap().won;
    assert_eq!([won(3, 0), won(1, 2), won(0, 2), won(2, 3)], [1, 1, 0, 0]);
    assert_eq!(results.between(Entrant(0), Entrant(2)).unwrap().drawn, 1);
}

/// Maximum scores in a large edition: the interval is larger by the same factor as the scores.
#[test]
fn large_scores_have_an_exact_interval() {
    const LARGE: i64 = 2_000_000_000_000_000_000;
    let margin = |unit: i64| {
        let mut tallies = Tallies::new(&gomoku::game());
        for number in 0..300 {
            let score = [1, -1, 0][number % 3] * unit;
            tallies.add(&scored_match(&duel([0, 1], [score, -score])));
        }
        tallies.by_entrant()[&Entrant(0)].mean().unwrap().margin.unwrap()
    };
    let ratio = margin(LARGE) / margin(1);
    assert!((ratio / 2e18 - 1.0).abs() < 1e-9, "{ratio}");
}

#[test]
fn sums_of_a_hundred_million_large_scores_are_exact() {
    const LARGE: i64 = 2_000_000_000_000_000_000;
    let carried = [-LARGE, LARGE];
    let large_match = duel([0, 1], [LARGE, -LARGE]);
    let mut tallies = Tallies::new(&gomoku::game());
    tallies.add(&ScoredMatch { carried: &carried, ..scored_match(&large_match) });
    let mut tally = tallies.by_entrant()[&Entrant(0)].clone();
    // Doubling 27 times gives 2²⁷ matches.
    for _ in 0..27 {
        tally.merge(&tally.clone());
    }
    let matches = 1 << 27;
    let sum = 2 * i128::from(LARGE) * i128::from(matches);
    assert_eq!((tally.matches, tally.score[0]), (matches, sum));
    assert_eq!(
        tally.squares,
        U256::square(sum / i128::from(matches)).checked_mul(1 << 27).unwrap()
    );
    assert_eq!(tally.mean().unwrap().margin, Some(0.0));
    // Ranks compare products of such sums and numbers of matches.
    let sums: [&[i128]; 3] = [&[sum], &[-sum], &[sum - 1]];
    let mut several = contestants(&sums);
    for contestant in &mut several {
        contestant.tally.matches = matches;
    }
    let places = rank(&wojna::game(), several);
    let order: Vec<_> = places.iter().map(|place| place.contestant.entrant.0).collect();
    assert_eq!(order, [0, 2, 1]);
}

fn any_match() -> impl Strategy<Value = (Vec<Entrant>, Vec<i64>)> {
    let pair = (0..6i32, 1..6i32).prop_map(|(a, b)| [Entrant(a), Entrant((a + b) % 6)].to_vec());
    (pair, prop::collection::vec(any::<i64>(), 4))
}

proptest! {
    /// Tallies of parts of the matches, merged in any order, equal the tallies of all matches.
    #[test]
    fn incremental_sums_equal_recomputed_sums(
        matches in prop::collection::vec(any_match(), 0..60),
        part_indices in prop::collection::vec(0..7usize, 60),
        order in any::<prop::sample::Index>(),
    ) {
        let mut whole = Tallies::new(&tricks::game());
        for result in &matches {
            whole.add(&scored_match(result));
        }
        let mut parts: Vec<_> = (0..7).map(|_| Tallies::new(&tricks::game())).collect();
        let start = if matches.is_empty() { 0 } else { order.index(matches.len()) };
        for (index, result) in matches.iter().enumerate().cycle().skip(start).take(matches.len()) {
            parts[part_indices[index]].add(&scored_match(result));
        }
        let mut merged: BTreeMap<Entrant, Tally> = BTreeMap::new();
        for (entrant, tally) in parts.iter().rev().flat_map(Tallies::by_entrant) {
            merged.entry(*entrant).or_default().merge(tally);
        }
        prop_assert_eq!(&merged, whole.by_entrant());
    }

    /// A rank is 1 plus the number of better entrants.
    #[test]
    fn ranks_count_the_better_entrants(sums in prop::collection::vec((0..4i128, 0..3i128), 1..30)) {
        let sums: Vec<_> = sums.into_iter().map(|(a, b)| vec![a, b]).collect();
        let sums: Vec<_> = sums.iter().map(Vec::as_slice).collect();
        for place in rank(&tricks::game(), contestants(&sums)) {
            let score = &place.contestant.tally.score;
            let better = sums.iter().filter(|sum| **sum > score.as_slice()).count();
            let equal = sums.iter().filter(|sum| **sum == score.as_slice()).count();
            prop_assert_eq!((place.rank, place.tied), (Some(better + 1), equal > 1));
        }
    }
}
