//! Bounds of scores: every match ends within them, they are as narrow as the rules allow, and
//! results outside of them are errors.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::any::Any;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use arbiter_games::wojna::{DealResult, points};
use arbiter_games::{
    BotName, Dice, ExpectedReply, Forfeit, Game, Games, ImpossibleScore, MatchScores, MatchView,
    Message, Micros, Params, Score, SeatResult, Seed, Step, bitwa, blackjack, gomoku, tricks,
    wojna,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn params(game: &Game, json: Value) -> Params {
    Params::read(game, json).unwrap()
}

/// A legal reply to a prompt of gomoku.
fn gomoku_reply(game: &gomoku::Match, message: &Message, dice: &mut Dice) -> String {
    let is_free = |square: &gomoku::Square| !game.placed().contains(square);
    let mut free: Vec<_> = gomoku::Square::all().filter(is_free).collect();
    dice.shuffle(&mut free);
    let squares =
        |count: usize| -> String { free.iter().take(count).map(ToString::to_string).collect() };
    match message.text.chars().next() {
        Some('A') => squares(3),
        Some('B') if dice.below(2) == 0 => "B".to_owned(),
        Some('B') => squares(2),
        Some('C') => "W".to_owned(),
        _ => squares(1),
    }
}

/// A reply with a legal card for each table where the player has the turn.
fn tricks_reply(game: &tricks::Match, dice: &mut Dice) -> String {
    let card = |table: &tricks::Table| {
        let cards: Vec<_> = table.playable().collect();
        if cards.is_empty() { "_".to_owned() } else { cards[dice.index(cards.len())].to_string() }
    };
    let cards: Vec<_> = game.tables().iter().map(card).collect();
    format!("move={}", cards.join(" "))
}

/// A reply that is usually legal.
fn reply(view: &dyn MatchView, message: &Message, dice: &mut Dice) -> String {
    let state: &dyn Any = view;
    if message.expected_reply == ExpectedReply::Ack {
        "=".to_owned()
    } else if state.is::<wojna::Match>() {
        let moves = ["= raise 1", "= check", "= check", "= pass", "= pass", "= pass"];
        moves[dice.index(moves.len())].to_owned()
    } else if let Some(game) = state.downcast_ref::<bitwa::Match>() {
        let x = dice.index(game.board().columns());
        let y = dice.index(game.board().rows());
        format!("= {} {x} {y} 1 -1 {}", dice.below(2), dice.below(2))
    } else if let Some(game) = state.downcast_ref::<tricks::Match>() {
        tricks_reply(game, dice)
    } else if let Some(game) = state.downcast_ref::<gomoku::Match>() {
        gomoku_reply(game, message, dice)
    } else {
        match dice.below(6) {
            0 => "H".to_owned(),
            1 => "D".to_owned(),
            2 | 3 => format!("B {}", 1_u64 << dice.below(59)),
            _ => "S".to_owned(),
        }
    }
}

/// Plays a match in which one in `rarity` replies is missing or invalid; 0 for none.
fn outcome(params: &Params, seats: usize, seed: Seed, rarity: u32) -> Vec<SeatResult> {
    let names: Vec<BotName> =
        (1..=seats).map(|number| format!("bot{number}").parse().unwrap()).collect();
    let mut game = params.start(&names, seed).unwrap();
    let mut dice = seed.dice(77);
    loop {
        let message = match game.step() {
            Step::Over(standings) => return standings,
            Step::Send(message) if message.expected_reply != ExpectedReply::None => message,
            _ => continue,
        };
        let text = reply(game.view(), &message, &mut dice);
        let reply = match rarity {
            0 => Ok(text.as_str()),
            _ => match dice.below(2 * rarity) {
                0 => Err(Forfeit::ALL[dice.index(4)]),
                1 => Ok("senseless"),
                _ => Ok(text.as_str()),
            },
        };
        drop(game.receive_reply(reply, Micros::ZERO));
    }
}

/// Checks a result as if a worker reported it.
fn check(params: &Params, standings: &[SeatResult]) -> Result<(), ImpossibleScore> {
    let scores: Vec<_> =
        standings.iter().flat_map(|standing| standing.score.0.iter().copied()).collect();
    let forfeits: Vec<_> = standings.iter().map(|standing| standing.forfeit).collect();
    let bad_answers: Vec<_> =
        standings.iter().map(|standing| i32::try_from(standing.bad_answers).unwrap()).collect();
    params.check(&MatchScores {
        seats: standings.len(),
        scores: &scores,
        forfeits: &forfeits,
        bad_answers: &bad_answers,
    })
}

/// Boards of bitwa with early fights.
const BOARDS: [&str; 4] =
    ["3 3 9 1 A.. ... ..a", "4 2 20 2 AB.# #.ab", "2 1 5 3 Aa", "2 2 5 1 A. .."];

/// Parameters of short matches, and their numbers of seats.
fn matches() -> impl Strategy<Value = (Params, usize)> {
    let wojna = (2..=4_usize, 1..4_u32).prop_map(|(seats, deals)| {
        let json = json!({"seats": seats, "deals": deals, "deck": "1-5*4"});
        (params(&wojna::game(), json), seats)
    });
    let boards = prop::sample::select(&BOARDS[..]);
    let bitwa = boards.prop_map(|board| (params(&bitwa::game(), json!({"board": board})), 2));
    let tricks =
        (1..4_u32).prop_map(|pairs| (params(&tricks::game(), json!({"tables": 2 * pairs})), 2));
    let chips = prop_oneof![0..40_i64, 200..5000_i64, Just(1_000_000_000_000_000_000_i64)];
    let chips = prop::collection::vec((chips, 0..17_i64), 1..=4);
    let blackjack = (chips, 1..8_u32).prop_map(|(seats, hands)| {
        let (chips, bad_answers): (Vec<_>, Vec<_>) = seats.into_iter().unzip();
        let json = json!({"chips": chips, "bad_answers": bad_answers, "hands": hands});
        (params(&blackjack::game(), json), chips.len())
    });
    let gomoku = Just((Params::official(&gomoku::game()), 2));
    prop_oneof![wojna, bitwa, tricks, blackjack, gomoku]
}

proptest! {
    #[test]
    fn every_match_ends_within_its_bounds(
        (params, seats) in matches(),
        seed in any::<[u8; 32]>(),
        rarity in prop_oneof![Just(0_u32), Just(5), Just(40)],
    ) {
        let standings = outcome(&params, seats, Seed(seed), rarity);
        prop_assert_eq!(check(&params, &standings), Ok(()), "{:?}", standings);
        // Leaderboards can add such scores without overflow.
        for standing in standings {
            prop_assert!(standing.score.0.iter().all(|part| part.abs() <= 2_000_000_000_000_000_000));
        }
    }
}

/// The minimum and the maximum.
fn extremes(numbers: impl Iterator<Item = i64>) -> RangeInclusive<i64> {
    let numbers: BTreeSet<_> = numbers.collect();
    *numbers.first().unwrap()..=*numbers.last().unwrap()
}

/// All possible results of a deal for these seats.
fn deal_results(forfeited: &[bool]) -> Vec<Vec<DealResult>> {
    let mut results = vec![Vec::new()];
    for forfeited in forfeited {
        let seat_results = match forfeited {
            true => vec![DealResult::Forfeited],
            false => vec![
                DealResult::Left(1),
                DealResult::Left(2),
                DealResult::Left(3),
                DealResult::Stayed,
            ],
        };
        let extend = |prefix: &Vec<DealResult>| {
            let prefix = prefix.clone();
            let results = seat_results.iter();
            results.map(move |result| [&prefix[..], &[*result]].concat()).collect::<Vec<_>>()
        };
        results = results.iter().flat_map(extend).collect();
    }
    results
}

/// All subsets of the forfeited seats: the possible forfeits in earlier deals.
fn subsets(forfeited: &[bool]) -> Vec<Vec<bool>> {
    (0..1_u32 << forfeited.len())
        .map(|set| (0..forfeited.len()).map(|seat| set >> seat & 1 == 1).collect::<Vec<_>>())
        .filter(|set| set.iter().zip(forfeited).all(|(earlier, later)| *later || !earlier))
        .collect()
}

/// Two deals, with every combination of forfeits and results.
#[test]
fn bounds_of_wojna_match_all_possible_deals() {
    for seats in 2..=4 {
        let params = params(&wojna::game(), json!({"seats": seats, "deals": 2, "deck": "1-9"}));
        for forfeited in subsets(&vec![true; seats]) {
            let bounds = params.bounds(&forfeited);
            if forfeited.iter().all(|forfeited| *forfeited) {
                assert_eq!(bounds, None);
                continue;
            }
            let bounds = bounds.unwrap();
            let range = |forfeited: &[bool], part: &dyn Fn(&[i64; 4]) -> i64| {
                extremes(deal_results(forfeited).iter().map(|results| part(&points(results))))
            };
            let both = |part: &dyn Fn(&[i64; 4]) -> i64| {
                let second = range(&forfeited, part);
                let first: Vec<_> =
                    subsets(&forfeited).iter().map(|earlier| range(earlier, part)).collect();
                let min = first.iter().map(RangeInclusive::start).min().unwrap();
                let max = first.iter().map(RangeInclusive::end).max().unwrap();
                min + second.start()..=max + second.end()
            };
            for seat in 0..seats {
                let context = format!("seat {seat} of {forfeited:?}");
                assert_eq!(bounds.seats[seat], [both(&|points| points[seat])], "{context}");
            }
            let sum = both(&|points| points.iter().sum());
            assert_eq!(bounds.sums, [sum], "{forfeited:?}");
        }
    }
}

/// All possible chips of a bot after some hands, with every possible stake.
fn reachable(chips: i64, hands: u32, max_stake: i64) -> BTreeSet<i64> {
    let mut reached = BTreeSet::from([chips]);
    for _ in 0..hands {
        let step = |chips: &i64| {
            let stakes = if *chips < 10 { 0..=0 } else { 10..=(*chips).min(max_stake) };
            let chips = *chips;
            stakes.flat_map(move |stake| [chips - stake, chips + stake])
        };
        reached = reached.iter().flat_map(step).collect();
    }
    reached
}

#[test]
fn bounds_of_blackjack_match_all_possible_stakes() {
    for chips in 0..45 {
        for hands in 1..4_u32 {
            for (bad_answers, stake) in [(0, i64::MAX), (15, 10)] {
                let json = json!({"chips": [chips], "bad_answers": [bad_answers], "hands": hands});
                let bounds = params(&blackjack::game(), json).bounds(&[false]).unwrap();
                let range = extremes(reachable(chips, hands, stake).into_iter());
                assert_eq!(bounds.seats, [[range.clone()]], "{chips} chips, {hands} hands");
                assert_eq!(bounds.sums, [range]);
                let is_asked = bad_answers == 0 && chips >= 10;
                assert_eq!(bounds.bad_answers, [if is_asked { hands } else { 0 }]);
            }
        }
    }
    let bounds = |json| params(&blackjack::game(), json).bounds(&[false]).unwrap().seats;
    let trillion = 1_000_000_000_000_i64;
    let rich = bounds(json!({"chips": [trillion * 3], "hands": 2}));
    assert_eq!(rich, [[trillion..=trillion * 5]]);
    let richest = bounds(json!({"chips": [trillion * 1_000_000], "hands": 100}));
    assert_eq!(richest, [[trillion * 999_900..=trillion * 1_000_100]]);
}

fn standings(scores: &[&[i64]], forfeits: &[Option<Forfeit>]) -> Vec<SeatResult> {
    let forfeit = |seat: usize| forfeits.get(seat).copied().flatten();
    let standing = |(seat, score): (usize, &&[i64])| SeatResult {
        score: Score(score.to_vec()),
        forfeit: forfeit(seat),
        bad_answers: 0,
    };
    scores.iter().enumerate().map(standing).collect()
}

/// A pair of points and tricks is accepted exactly if some results of the tables add up to it.
#[test]
fn bounds_of_tricks_match_all_possible_tables() {
    let params = params(&tricks::game(), json!({"tables": 4}));
    let mut possible = BTreeSet::from([(0, 0)]);
    for _ in 0..4 {
        let with_table = |(points, tricks): &(i64, i64)| {
            let points = *points;
            let tricks = *tricks;
            (-9..=9).map(move |half: i64| (points + half.signum(), tricks + 2 * half))
        };
        possible = possible.iter().flat_map(with_table).collect();
    }
    for points in -5..=5 {
        for tricks in -75..=75 {
            let result = standings(&[&[points, tricks], &[-points, -tricks]], &[]);
            let outcome = check(&params, &result);
            assert_eq!(outcome.is_ok(), possible.contains(&(points, tricks)), "{outcome:?}");
        }
    }
}

#[test]
fn impossible_results_have_an_error() {
    let error = |params: &Params, scores: &[&[i64]], forfeits: &[Option<Forfeit>]| {
        check(params, &standings(scores, forfeits)).unwrap_err().to_string()
    };
    let clock = Some(Forfeit::Clock);
    let gomoku = Params::official(&gomoku::game());
    let million: &[&[i64]] = &[&[1_000_000], &[0]];
    assert_eq!(
        error(&gomoku, million, &[]),
        "points of seat 1 cannot be 1000000: from 0 to 2 are possible"
    );
    assert_eq!(
        error(&gomoku, &[&[2], &[2]], &[]),
        "points of all seats cannot add up to 4: from 2 to 2 are possible"
    );
    assert_eq!(
        error(&gomoku, &[&[2], &[0]], &[clock]),
        "points of seat 1 cannot be 2: from 0 to 0 are possible"
    );
    assert_eq!(
        error(&gomoku, &[&[2], &[0]], &[clock, clock]),
        "no match of gomoku with 2 seats ends with 2 forfeits"
    );
    assert_eq!(
        error(&gomoku, &[&[2]], &[]),
        "no match of gomoku with 1 seats ends with 0 forfeits"
    );
    assert_eq!(
        error(&gomoku, &[&[2], &[0, 0]], &[]),
        "the scores of all seats have 3 numbers, not 2"
    );
    for extreme in [i64::MIN, i64::MAX] {
        for game in Games::built_in().iter() {
            let params = Params::official(game);
            let score = vec![extreme; game.columns.len()];
            let seats = vec![&score[..]; *params.seats().end()];
            assert!(check(&params, &standings(&seats, &[])).is_err(), "{game}");
        }
    }
    let bitwa = params(&bitwa::game(), json!({"board": "3 1 9 5 A.a"}));
    assert_eq!(check(&bitwa, &standings(&[&[1, 1, 5], &[-1, -1, -5]], &[])), Ok(()));
    assert_eq!(
        error(&bitwa, &[&[-1, 1, 5], &[1, -1, -5]], &[]),
        "the score of seat 1 contradicts itself: [-1, 1, 5]"
    );
    let blackjack = Params::official(&blackjack::game());
    let forfeit_error = error(&blackjack, &[&[200], &[200]], &[clock]);
    assert_eq!(forfeit_error, "no match of blackjack with 2 seats ends with 1 forfeits");
    let mut results = standings(&[&[200]], &[]);
    results[0].bad_answers = 6;
    assert_eq!(
        check(&blackjack, &results).unwrap_err().to_string(),
        "bad replies of seat 1 cannot be 6: from 0 to 5 are possible"
    );
}
