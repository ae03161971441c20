//! Properties of blackjack: with any replies, chips are conserved, decks are complete, and each
//! seat is asked exactly while it may act. Episodes carry every chip.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dialogue;

use std::collections::{BTreeMap, BTreeSet};

use arbiter_games::blackjack::{ANTE, Card, Match, Params, Player, Shoe, Table, score};
use arbiter_games::{
    Carried, Episode, Forfeit, MatchState as _, Micros, Note, Params as AnyParams, Score,
    SeatResult, Seed, Step, TablePlan, Value, blackjack, read_rules,
};
use dialogue::Reply;
use proptest::collection::vec;
use proptest::prelude::*;

/// Starting chips that lead to broke and rich bots.
fn chips() -> impl Strategy<Value = Vec<i64>> {
    vec(prop_oneof![0..40_i64, 200..5000_i64], 1..=4)
}

fn seeds() -> impl Strategy<Value = Seed> {
    any::<[u8; 32]>().prop_map(Seed)
}

/// A reply: valid, invalid, or missing.
fn reply() -> impl Strategy<Value = Reply> {
    let words = prop_oneof![
        6 => Just("H".to_owned()),
        4 => Just("S".to_owned()),
        2 => Just("D".to_owned()),
        4 => (-60..60_i64).prop_map(|chips| format!("B {chips}")),
        1 => Just("B 1".to_owned()),
        1 => any::<String>(),
        1 => "[ \t]*[hsdbHSDB]?[ \t]*[-+]?[0-9]{0,20}[ \n]*",
    ];
    let forfeit = prop::sample::select(&Forfeit::ALL[..]);
    let answer = prop_oneof![15 => words.prop_map(Ok), 1 => forfeit.prop_map(Err)];
    (answer, (0..3_000_000_i64).prop_map(Micros))
}

/// The input of a match: chips, earlier bad answers, seed, hands, and replies in turn.
type Plan = (Vec<i64>, i64, Seed, u32, Vec<Reply>);

fn plan() -> impl Strategy<Value = Plan> {
    let before = prop_oneof![3 => Just(0_i64), 1 => 10..17_i64];
    (chips(), before, seeds(), 1..8_u32, vec(reply(), 1..60))
}

fn start((chips, before, seed, hands, _): &Plan) -> Match {
    let json = serde_json::json!({"chips": chips, "bad_answers": before, "hands": hands});
    let params: Params =
        read_rules(&blackjack::game().params, &serde_json::from_value(json).unwrap()).unwrap();
    Match::start(&params, chips.len(), *seed).unwrap()
}

/// All chips: the players' chips and stakes, and the house's winnings.
fn everything(table: &Table) -> i64 {
    let held: i64 = table.players().iter().map(|player| player.chips() + player.stake()).sum();
    held + table.house()
}

/// A player's chips and stake.
fn wealth(player: &Player) -> i64 {
    player.chips() + player.stake()
}

/// Computes again what each player should have after a hand.
fn settled(before: &Table, after: &Table) -> Vec<i64> {
    let dealer = Some(score(after.dealer())).filter(|score| *score <= 21).unwrap_or(0);
    let asked = before.players().iter().any(|player| player.stake() > 0);
    let players = before.players().iter().zip(after.players());
    players
        .map(|(was, is)| {
            // If no seat was asked, the hand was dealt and settled in one step.
            let ante = if was.chips() >= ANTE { ANTE } else { 0 };
            let stake = if asked { was.stake() } else { ante };
            let own = score(is.hand());
            let wins = own <= 21 && own > dealer;
            wealth(was) + if wins { stake } else { -stake }
        })
        .collect()
}

/// The test's model of a bot: whether it may act, and its remaining chips.
#[derive(Clone, Debug, Default)]
struct Model {
    acting: bool,
    fresh: bool,
    stake: i64,
    chips: i64,
    bets: u32,
    bad_answers: i64,
}

impl Model {
    fn sit_in(&mut self) {
        self.acting = self.chips >= ANTE && self.bad_answers < 15;
        self.stake = if self.chips >= ANTE { ANTE } else { 0 };
        self.chips -= self.stake;
        (self.fresh, self.bets) = (true, 0);
    }

    /// Stakes chips, and returns whether there were enough.
    fn raise(&mut self, chips: i64) -> bool {
        let possible = chips > 0 && chips <= self.chips;
        if possible {
            self.stake += chips;
            self.chips -= chips;
        }
        possible
    }

    /// Applies a reply, and returns the number of cards that it draws.
    fn answer(&mut self, answer: Option<&str>) -> usize {
        let text = answer.unwrap_or_default().trim_ascii().to_ascii_uppercase();
        let words: Vec<_> = text.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
        let fresh = std::mem::replace(&mut self.fresh, false);
        let mut acting = false;
        let mut cards = 0;
        match words[..] {
            ["H"] => (acting, cards) = (true, 1),
            ["S"] => {}
            ["D"] => cards = usize::from(fresh && self.raise(self.stake)),
            ["B", number] if is_number(number) => {
                let chips = number.parse::<i64>().unwrap().abs();
                acting = self.bets < 100 && self.raise(chips);
                self.bets += 1;
            }
            _ => self.bad_answers += 1,
        }
        self.acting = acting && self.bad_answers < 15;
        cards
    }
}

fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    (1..=18).contains(&digits.len()) && digits.chars().all(|digit| digit.is_ascii_digit())
}

/// A model of the order of requests, independent of the rules under test.
#[derive(Debug)]
struct Models {
    bots: Vec<Model>,
    next: usize,
    dealt: bool,
}

impl Models {
    fn new((chips, before, ..): &Plan) -> Self {
        let model = |chips| Model { chips, bad_answers: *before, ..Model::default() };
        Self { bots: chips.iter().copied().map(model).collect(), next: 0, dealt: false }
    }

    fn deal(&mut self) {
        if !self.dealt {
            self.bots.iter_mut().for_each(Model::sit_in);
            (self.dealt, self.next) = (true, 0);
        }
    }

    /// The seat to ask next.
    fn due(&mut self) -> Option<usize> {
        let count = self.bots.len();
        let found = (0..count).map(|k| (self.next + k) % count).find(|i| self.bots[*i].acting)?;
        self.next = found + 1;
        Some(found)
    }
}

proptest! {
    #[test]
    fn chips_are_conserved(plan in plan()) {
        let mut game = start(&plan);
        let all = everything(game.table());
        let mut replies = plan.4.iter().cycle();
        loop {
            let before = game.table().clone();
            match game.step() {
                Step::Say(_) => {
                    let (answer, charged) = replies.next().unwrap();
                    drop(game.receive_reply(answer.as_deref().map_err(|forfeit| *forfeit), *charged));
                }
                Step::Note(Note::Hand { chips, dealer, .. }) => {
                    let after = game.table();
                    prop_assert_eq!(&chips, &settled(&before, after), "against {}", dealer);
                    let gain = after.house() - before.house();
                    let had: i64 = before.players().iter().map(wealth).sum();
                    prop_assert_eq!(gain, had - chips.iter().sum::<i64>());
                    prop_assert!(after.players().iter().all(|player| player.stake() == 0));
                }
                Step::Over(standings) => {
                    let brought: i64 = standings.iter().map(|seat| seat.score.0[0]).sum();
                    prop_assert_eq!(brought + game.table().house(), all);
                    break;
                }
                Step::Dismiss(seat) => prop_assert!(false, "{} is dismissed", seat),
            }
            prop_assert_eq!(everything(game.table()), all);
            prop_assert!(game.table().players().iter().all(|player| player.chips() >= 0));
        }
    }

    #[test]
    fn every_bot_is_asked_exactly_while_it_may_act(plan in plan()) {
        let mut game = start(&plan);
        let mut models = Models::new(&plan);
        let mut replies = plan.4.iter().cycle();
        let mut hands = 0;
        loop {
            match game.step() {
                Step::Say(say) => {
                    models.deal();
                    let index = models.due().expect("a seat may act");
                    prop_assert_eq!(say.seat.index(), index);
                    let model = &mut models.bots[index];
                    let words: Vec<_> = say.text.split(' ').collect();
                    prop_assert_eq!(words.len(), 5);
                    prop_assert_eq!(words[3], model.stake.to_string());
                    prop_assert_eq!(words[4], model.chips.to_string());
                    let held = words[1].len();
                    let (answer, charged) = replies.next().unwrap();
                    let drawn = model.answer(answer.as_deref().ok());
                    let heard = game.receive_reply(answer.as_deref().map_err(|forfeit| *forfeit), *charged);
                    prop_assert!(heard.is_ok() || !model.acting, "a bad answer stands");
                    let hand = game.table().players()[index].hand();
                    prop_assert_eq!(hand.len(), held + drawn);
                    model.acting &= score(hand) <= 21;
                }
                Step::Note(Note::Hand { hand, chips, .. }) => {
                    models.deal();
                    prop_assert_eq!(models.due(), None);
                    hands += 1;
                    prop_assert_eq!(hand, hands);
                    models.dealt = false;
                    for (model, chips) in models.bots.iter_mut().zip(chips) {
                        model.chips = chips;
                    }
                }
                Step::Over(standings) => {
                    let anybody = models.bots.iter().any(|model| model.chips >= ANTE);
                    prop_assert!(hands == plan.3 || (hands < plan.3 && !anybody));
                    for (model, standing) in models.bots.iter().zip(standings) {
                        let given = model.bad_answers - plan.1;
                        prop_assert_eq!(i64::from(standing.bad_answers), given);
                        prop_assert_eq!(standing.forfeit, None);
                    }
                    break;
                }
                Step::Dismiss(seat) => prop_assert!(false, "{} is dismissed", seat),
            }
        }
    }

    #[test]
    fn a_bot_sees_what_lies_on_the_table(plan in plan()) {
        let mut game = start(&plan);
        let mut replies = plan.4.iter().cycle();
        loop {
            match game.step() {
                Step::Say(say) => {
                    let words: Vec<_> = say.text.split(' ').collect();
                    let table = game.table();
                    let player = &table.players()[say.seat.index()];
                    prop_assert_eq!(words[0], score(player.hand()).to_string());
                    prop_assert_eq!(words[1], letters(player.hand()));
                    let dealer = &words[2][..2];
                    prop_assert_eq!(dealer, format!("{}#", table.dealer()[0].letter()));
                    let mut seen: Vec<_> = words[2][2..].chars().collect();
                    let hands = table.players().iter().filter(|player| player.stake() > 0);
                    let mut there: Vec<_> =
                        hands.flat_map(Player::hand).map(|card| card.letter()).collect();
                    seen.sort_unstable();
                    there.sort_unstable();
                    prop_assert_eq!(seen, there);
                    let (answer, charged) = replies.next().unwrap();
                    drop(game.receive_reply(answer.as_deref().map_err(|forfeit| *forfeit), *charged));
                }
                Step::Over(_) => break,
                Step::Note(_) | Step::Dismiss(_) => {}
            }
        }
    }

    #[test]
    fn a_shoe_is_a_deck_replaced_when_empty(seed in seeds(), decks in 1..4_usize) {
        let mut shoe = Shoe::new(seed.dice(0));
        for _ in 0..decks {
            let drawn: Vec<_> = (0..52).map(|_| shoe.draw()).collect();
            prop_assert!(Card::all().all(|card| count(&drawn, card) == 4));
        }
    }

    #[test]
    fn a_match_deals_whole_decks(plan in plan()) {
        let mut game = start(&plan);
        let mut replies = plan.4.iter().cycle();
        let mut drawn: Vec<Card> = Vec::new();
        loop {
            match game.step() {
                Step::Say(_) => {
                    let (answer, charged) = replies.next().unwrap();
                    drop(game.receive_reply(answer.as_deref().map_err(|forfeit| *forfeit), *charged));
                }
                Step::Note(_) => {
                    drawn.extend(game.table().dealer());
                    drawn.extend(game.table().players().iter().flat_map(Player::hand));
                }
                Step::Over(_) => break,
                Step::Dismiss(_) => {}
            }
        }
        for card in Card::all() {
            let found = count(&drawn, card);
            let least = 4 * (drawn.len() / 52);
            let most = 4 * drawn.len().div_ceil(52);
            prop_assert!((least..=most).contains(&found), "{} of {:?}", found, card);
        }
    }

    #[test]
    fn aces_are_lowered_only_as_far_as_needed(hand in vec(0..13_usize, 0..8)) {
        let hand: Vec<_> = hand.into_iter().map(|index| Card::all().nth(index).unwrap()).collect();
        let aces = hand.iter().filter(|card| card.letter() == 'A').count();
        let low: usize = hand.iter().map(|card| match card.letter() {
            'A' => 1,
            'T' | 'J' | 'Q' | 'K' => 10,
            digit => digit.to_digit(10).unwrap() as usize,
        }).sum();
        let possible: BTreeSet<_> = (0..=aces).map(|high| low + 10 * high).collect();
        let best = possible.iter().rev().find(|sum| **sum <= 21).copied().unwrap_or(low);
        prop_assert_eq!(score(&hand) as usize, best);
    }

    #[test]
    fn the_same_answers_give_the_same_match(plan in plan()) {
        let played = || {
            let mut replies = plan.4.iter().cycle().cloned();
            dialogue::play(&mut start(&plan), |_| replies.next().unwrap())
        };
        let one = played();
        let other = played();
        prop_assert_eq!(one.transcript, other.transcript);
        prop_assert_eq!(one.standings, other.standings);
    }
}

fn letters(cards: &[Card]) -> String {
    cards.iter().map(|card| card.letter()).collect()
}

fn count(cards: &[Card], letter: Card) -> usize {
    cards.iter().filter(|card| **card == letter).count()
}

/// A made-up match result: arbitrary chips and bad answers.
fn standings(plan: &TablePlan, outcomes: &mut impl Iterator<Item = (i64, u32)>) -> Vec<SeatResult> {
    let seats = plan.bots.iter().map(|_| outcomes.next().expect("there is always another"));
    seats
        .map(|(chips, bad_answers)| SeatResult {
            score: Score(vec![chips]),
            forfeit: None,
            bad_answers,
        })
        .collect()
}

/// The JSON of a parameter with one value per seat.
fn per_seat(plan: &TablePlan, key: &str) -> Vec<i64> {
    let params = serde_json::to_value(&plan.params).unwrap();
    serde_json::from_value(params[key].clone()).unwrap()
}

/// A value of each bot.
fn carried(episode: &Episode, what: impl Fn(&Carried) -> i64) -> Vec<i64> {
    episode.bots().iter().map(what).collect()
}

fn episode(bots: usize, rounds: u32, seed: Seed) -> Episode {
    let params = serde_json::json!({"rounds": rounds, "hands": 3, "move_limit": "7ms"});
    AnyParams::read(&blackjack::game(), params).unwrap().episode(bots, seed).unwrap()
}

proptest! {
    #[test]
    fn an_episode_carries_every_chip(
        bots in 0..24_usize,
        rounds in 1..8_u32,
        seed in seeds(),
        outcomes in vec((prop_oneof![0..10_i64, 10..900_i64], 0..20_u32), 1..50),
        reversed in any::<bool>(),
    ) {
        let mut outcomes = outcomes.into_iter().cycle();
        let mut episode = episode(bots, rounds, seed);
        let mut chips = vec![200; bots];
        let mut bad = vec![0; bots];
        let mut rounds_played = vec![0; bots];
        for round in 1..=rounds {
            let mut tables = episode.tables().to_vec();
            let living: Vec<_> = (0..bots).filter(|bot| chips[*bot] >= ANTE).collect();
            let mut seated: Vec<_> = tables.iter().flat_map(|plan| plan.bots.clone()).collect();
            seated.sort_unstable();
            prop_assert_eq!(seated, living, "all who are not broke play, once each");
            let numbers: Vec<_> = tables.iter().map(|plan| plan.table).collect();
            prop_assert_eq!(numbers, (1..).take(tables.len()).collect::<Vec<u32>>());
            let full = tables.len().saturating_sub(1);
            prop_assert!(tables.iter().take(full).all(|plan| plan.bots.len() == 4));
            if reversed {
                tables.reverse();
            }
            for plan in tables {
                prop_assert_eq!(plan.round, round);
                prop_assert!((1..=4).contains(&plan.bots.len()));
                let of = |all: &[i64]| plan.bots.iter().map(|bot| all[*bot]).collect::<Vec<_>>();
                prop_assert_eq!(per_seat(&plan, "chips"), of(&chips));
                prop_assert_eq!(per_seat(&plan, "bad_answers"), of(&bad));
                let values = plan.params.values();
                prop_assert_eq!(values.get("move_limit"), Some(&Value::from("7ms")));
                prop_assert_eq!(values.get("hands"), Some(&Value::from(3_u32)));
                prop_assert_eq!(plan.params.rounds(), Some(1));
                let standings = standings(&plan, &mut outcomes);
                for (bot, standing) in plan.bots.iter().zip(&standings) {
                    chips[*bot] = standing.score.0[0];
                    bad[*bot] += i64::from(standing.bad_answers);
                    rounds_played[*bot] += 1;
                }
                episode.finish(plan.table, &standings);
            }
            prop_assert_eq!(carried(&episode, |bot| bot.score), &chips[..]);
            prop_assert_eq!(carried(&episode, |bot| bot.bad_answers), &bad[..]);
        }
        prop_assert!(episode.tables().is_empty());
        let mut broke_in_time = (0..bots).filter(|bot| rounds_played[*bot] < rounds);
        prop_assert!(broke_in_time.all(|bot| chips[bot] < ANTE), "only the broke play less");
    }

    #[test]
    fn an_episode_follows_from_its_seed(
        bots in 1..24_usize,
        seed in seeds(),
        outcomes in vec((0..900_i64, 0..3_u32), 1..50),
    ) {
        let played = || {
            let mut episode = episode(bots, 5, seed);
            let mut outcomes = outcomes.iter().copied().cycle();
            let mut plans = Vec::new();
            while let Some(plan) = episode.tables().first().cloned() {
                episode.finish(plan.table, &standings(&plan, &mut outcomes));
                plans.push(plan);
            }
            (plans, carried(&episode, |bot| bot.score))
        };
        prop_assert_eq!(played(), played());
    }
}

/// Every bot hits below 17. Chips only move between bots and house in the matches of an episode.
#[test]
fn an_episode_is_played_to_its_end() {
    let seed = Seed::of_text("episode");
    let mut episode = episode(10, 30, seed);
    let mut meetings: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let mut house = 0;
    while let Some(plan) = episode.tables().first().cloned() {
        let key = format!("{}/{}", plan.round, plan.table);
        let json = serde_json::to_value(&plan.params).unwrap();
        let params: Params =
            read_rules(&blackjack::game().params, &serde_json::from_value(json).unwrap()).unwrap();
        let mut game = Match::start(&params, plan.bots.len(), seed.derive(&key)).unwrap();
        let played = dialogue::play(&mut game, |say| {
            let score: u32 = say.text.split(' ').next().unwrap().parse().unwrap();
            (Ok(if score < 17 { "H" } else { "S" }.to_owned()), Micros::ZERO)
        });
        house += game.table().house();
        meetings.entry(plan.round).or_default().extend(&plan.bots);
        episode.finish(plan.table, &played.standings);
    }
    let chips: i64 = episode.bots().iter().map(|bot| bot.score).sum();
    assert_eq!(chips + house, 10 * 200);
    assert!(episode.bots().iter().any(|bot| bot.score < ANTE), "some go broke in 30 rounds");
    let sizes: Vec<_> = meetings.values().map(Vec::len).collect();
    assert!(sizes.is_sorted_by(|former, latter| former >= latter), "no seat comes back");
    assert_ne!(meetings[&1], meetings[&2], "the bots are shuffled before each round");
}
