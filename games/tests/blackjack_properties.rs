//! Properties of blackjack: with any replies, chips are conserved, decks are complete, and a seat
//! gets messages exactly while it may act. Chips carry over between the rounds of an episode.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dialogue;

use std::collections::{BTreeMap, BTreeSet};

use arbiter_games::blackjack::{ANTE, Card, Match, Params, Player, Shoe, Table, score};
use arbiter_games::{
    CarriedScore, Episode, Forfeit, Illegal, MatchState as _, Micros, Note, Params as AnyParams,
    Score, SeatResult, Seed, Step, TablePlan, Value, blackjack, read_rules,
};
use dialogue::Reply;
use proptest::collection::vec;
use proptest::prelude::*;

/// Starting chips of poor and rich bots.
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
    let reply = prop_oneof![15 => words.prop_map(Ok), 1 => forfeit.prop_map(Err)];
    (reply, (0..3_000_000_i64).prop_map(Micros))
}

/// The input of a match: chips, earlier bad replies, seed, hands, and replies in turn.
type Plan = (Vec<i64>, i64, Seed, u32, Vec<Reply>);

fn plan() -> impl Strategy<Value = Plan> {
    let bad_answers = prop_oneof![3 => Just(0_i64), 1 => 10..17_i64];
    (chips(), bad_answers, seeds(), 1..8_u32, vec(reply(), 1..60))
}

fn start((chips, bad_answers, seed, hands, _): &Plan) -> Match {
    let json = serde_json::json!({"chips": chips, "bad_answers": bad_answers, "hands": hands});
    let params: Params =
        read_rules(&blackjack::game().params, &serde_json::from_value(json).unwrap()).unwrap();
    Match::start(&params, chips.len(), *seed).unwrap()
}

/// Passes a reply to a match.
fn receive(game: &mut Match, (reply, charged): &Reply) -> Result<(), Illegal> {
    game.receive_reply(reply.as_deref().map_err(|forfeit| *forfeit), *charged)
}

/// All chips: the players' chips and stakes, and the house's winnings.
fn total_chips(table: &Table) -> i64 {
    let players: i64 = table.players().iter().map(|player| player.chips() + player.stake()).sum();
    players + table.house()
}

/// A player's chips and stake.
fn player_chips(player: &Player) -> i64 {
    player.chips() + player.stake()
}

/// The expected chips of each player after a hand.
fn expected_chips(before: &Table, after: &Table) -> Vec<i64> {
    let dealer = Some(score(after.dealer())).filter(|score| *score <= 21).unwrap_or(0);
    let is_dealt = before.players().iter().any(|player| player.stake() > 0);
    let players = before.players().iter().zip(after.players());
    players
        .map(|(old, new)| {
            // If no seat can act, one step deals and settles the hand.
            let ante = if old.chips() >= ANTE { ANTE } else { 0 };
            let stake = if is_dealt { old.stake() } else { ante };
            let score = score(new.hand());
            let wins = score <= 21 && score > dealer;
            player_chips(old) + if wins { stake } else { -stake }
        })
        .collect()
}

/// The test's model of a bot: whether it may act, and its remaining chips.
#[derive(Clone, Debug, Default)]
struct Model {
    acting: bool,
    is_first_action: bool,
    stake: i64,
    chips: i64,
    bets: u32,
    bad_answers: i64,
}

impl Model {
    fn begin_hand(&mut self) {
        self.acting = self.chips >= ANTE && self.bad_answers < 15;
        self.stake = if self.chips >= ANTE { ANTE } else { 0 };
        self.chips -= self.stake;
        (self.is_first_action, self.bets) = (true, 0);
    }

    /// Stakes chips. Returns `false`, without a change, if there are too few.
    fn raise(&mut self, chips: i64) -> bool {
        let is_possible = chips > 0 && chips <= self.chips;
        if is_possible {
            self.stake += chips;
            self.chips -= chips;
        }
        is_possible
    }

    /// Applies a reply. Returns the number of drawn cards.
    fn apply(&mut self, reply: Option<&str>) -> usize {
        let text = reply.unwrap_or_default().trim_ascii().to_ascii_uppercase();
        let words: Vec<_> = text.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
        let is_first = std::mem::replace(&mut self.is_first_action, false);
        let mut acting = false;
        let mut cards = 0;
        match words[..] {
            ["H"] => (acting, cards) = (true, 1),
            ["S"] => {}
            ["D"] => cards = usize::from(is_first && self.raise(self.stake)),
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
    fn new((chips, bad_answers, ..): &Plan) -> Self {
        let model = |chips| Model { chips, bad_answers: *bad_answers, ..Model::default() };
        Self { bots: chips.iter().copied().map(model).collect(), next: 0, dealt: false }
    }

    fn deal(&mut self) {
        if !self.dealt {
            self.bots.iter_mut().for_each(Model::begin_hand);
            (self.dealt, self.next) = (true, 0);
        }
    }

    /// The index of the next seat that may act.
    fn next_seat(&mut self) -> Option<usize> {
        let count = self.bots.len();
        let mut order = (0..count).map(|k| (self.next + k) % count);
        let index = order.find(|index| self.bots[*index].acting)?;
        self.next = index + 1;
        Some(index)
    }
}

proptest! {
    #[test]
    fn chips_are_conserved(plan in plan()) {
        let mut game = start(&plan);
        let total = total_chips(game.table());
        let mut replies = plan.4.iter().cycle();
        loop {
            let before = game.table().clone();
            match game.step() {
                Step::Send(_) => {
                    drop(receive(&mut game, replies.next().unwrap()));
                }
                Step::Note(Note::Hand { chips, dealer, .. }) => {
                    let after = game.table();
                    prop_assert_eq!(&chips, &expected_chips(&before, after), "against {}", dealer);
                    let gain = after.house() - before.house();
                    let old_chips: i64 = before.players().iter().map(player_chips).sum();
                    prop_assert_eq!(gain, old_chips - chips.iter().sum::<i64>());
                    prop_assert!(after.players().iter().all(|player| player.stake() == 0));
                }
                Step::Over(standings) => {
                    let chips: i64 = standings.iter().map(|seat| seat.score.0[0]).sum();
                    prop_assert_eq!(chips + game.table().house(), total);
                    break;
                }
                step => prop_assert!(false, "{:?}", step),
            }
            prop_assert_eq!(total_chips(game.table()), total);
            prop_assert!(game.table().players().iter().all(|player| player.chips() >= 0));
        }
    }

    #[test]
    fn a_bot_gets_messages_exactly_while_it_may_act(plan in plan()) {
        let mut game = start(&plan);
        let mut models = Models::new(&plan);
        let mut replies = plan.4.iter().cycle();
        let mut hands = 0;
        loop {
            match game.step() {
                Step::Send(message) => {
                    models.deal();
                    let index = models.next_seat().expect("a seat may act");
                    prop_assert_eq!(message.seat.index(), index);
                    let model = &mut models.bots[index];
                    let words: Vec<_> = message.text.split(' ').collect();
                    prop_assert_eq!(words.len(), 5);
                    prop_assert_eq!(words[3], model.stake.to_string());
                    prop_assert_eq!(words[4], model.chips.to_string());
                    let cards = words[1].len();
                    let reply = replies.next().unwrap();
                    let drawn = model.apply(reply.0.as_deref().ok());
                    let outcome = receive(&mut game, reply);
                    prop_assert!(outcome.is_ok() || !model.acting, "a bad reply means standing");
                    let hand = game.table().players()[index].hand();
                    prop_assert_eq!(hand.len(), cards + drawn);
                    model.acting &= score(hand) <= 21;
                }
                Step::Note(Note::Hand { hand, chips, .. }) => {
                    models.deal();
                    prop_assert_eq!(models.next_seat(), None);
                    hands += 1;
                    prop_assert_eq!(hand, hands);
                    models.dealt = false;
                    for (model, chips) in models.bots.iter_mut().zip(chips) {
                        model.chips = chips;
                    }
                }
                Step::Over(standings) => {
                    let can_any_pay = models.bots.iter().any(|model| model.chips >= ANTE);
                    prop_assert!(hands == plan.3 || (hands < plan.3 && !can_any_pay));
                    for (model, standing) in models.bots.iter().zip(standings) {
                        let bad_answers = model.bad_answers - plan.1;
                        prop_assert_eq!(i64::from(standing.bad_answers), bad_answers);
                        prop_assert_eq!(standing.forfeit, None);
                    }
                    break;
                }
                step => prop_assert!(false, "{:?}", step),
            }
        }
    }

    #[test]
    fn a_bot_sees_all_open_cards(plan in plan()) {
        let mut game = start(&plan);
        let mut replies = plan.4.iter().cycle();
        loop {
            match game.step() {
                Step::Send(message) => {
                    let words: Vec<_> = message.text.split(' ').collect();
                    let table = game.table();
                    let player = &table.players()[message.seat.index()];
                    prop_assert_eq!(words[0], score(player.hand()).to_string());
                    prop_assert_eq!(words[1], letters(player.hand()));
                    let dealer = &words[2][..2];
                    prop_assert_eq!(dealer, format!("{}#", table.dealer()[0].letter()));
                    let mut sent_cards: Vec<_> = words[2][2..].chars().collect();
                    let hands = table.players().iter().filter(|player| player.stake() > 0);
                    let mut open_cards: Vec<_> =
                        hands.flat_map(Player::hand).map(|card| card.letter()).collect();
                    sent_cards.sort_unstable();
                    open_cards.sort_unstable();
                    prop_assert_eq!(sent_cards, open_cards);
                    drop(receive(&mut game, replies.next().unwrap()));
                }
                Step::Over(_) => break,
                _ => {}
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
                Step::Send(_) => {
                    drop(receive(&mut game, replies.next().unwrap()));
                }
                Step::Note(_) => {
                    drawn.extend(game.table().dealer());
                    drawn.extend(game.table().players().iter().flat_map(Player::hand));
                }
                Step::Over(_) => break,
                step => panic!("{step:?}"),
            }
        }
        for card in Card::all() {
            let cards = count(&drawn, card);
            let min = 4 * (drawn.len() / 52);
            let max = 4 * drawn.len().div_ceil(52);
            prop_assert!((min..=max).contains(&cards), "{} of {:?}", cards, card);
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
    fn the_same_replies_give_the_same_match(plan in plan()) {
        let play_match = || {
            let mut replies = plan.4.iter().cycle().cloned();
            dialogue::play(&mut start(&plan), |_| replies.next().unwrap())
        };
        let first = play_match();
        let second = play_match();
        prop_assert_eq!(first.transcript, second.transcript);
        prop_assert_eq!(first.standings, second.standings);
    }
}

fn letters(cards: &[Card]) -> String {
    cards.iter().map(|card| card.letter()).collect()
}

fn count(cards: &[Card], letter: Card) -> usize {
    cards.iter().filter(|card| **card == letter).count()
}

/// A match result with arbitrary chips and numbers of bad replies.
fn standings(plan: &TablePlan, outcomes: &mut impl Iterator<Item = (i64, u32)>) -> Vec<SeatResult> {
    let seats = plan.bots.iter().map(|_| outcomes.next().expect("the outcomes repeat forever"));
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
fn carried(episode: &Episode, value: impl Fn(&CarriedScore) -> i64) -> Vec<i64> {
    episode.bots().iter().map(value).collect()
}

fn episode(bots: usize, rounds: u32, seed: Seed) -> Episode {
    let params = serde_json::json!({"rounds": rounds, "hands": 3, "move_limit": "7ms"});
    AnyParams::read(&blackjack::game(), params).unwrap().episode(bots, seed).unwrap()
}

proptest! {
    #[test]
    fn chips_carry_over_between_rounds(
        bots in 0..24_usize,
        rounds in 1..8_u32,
        seed in seeds(),
        outcomes in vec((prop_oneof![0..10_i64, 10..900_i64], 0..20_u32), 1..50),
        reversed in any::<bool>(),
    ) {
        let mut outcomes = outcomes.into_iter().cycle();
        let mut episode = episode(bots, rounds, seed);
        let mut chips = vec![200; bots];
        let mut bad_answers = vec![0; bots];
        let mut rounds_played = vec![0; bots];
        for round in 1..=rounds {
            let mut tables = episode.tables().to_vec();
            let solvent: Vec<_> = (0..bots).filter(|bot| chips[*bot] >= ANTE).collect();
            let mut seated: Vec<_> = tables.iter().flat_map(|plan| plan.bots.clone()).collect();
            seated.sort_unstable();
            prop_assert_eq!(seated, solvent, "every bot that can pay plays once");
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
                let at_table =
                    |all: &[i64]| plan.bots.iter().map(|bot| all[*bot]).collect::<Vec<_>>();
                prop_assert_eq!(per_seat(&plan, "chips"), at_table(&chips));
                prop_assert_eq!(per_seat(&plan, "bad_answers"), at_table(&bad_answers));
                let values = plan.params.values();
                prop_assert_eq!(values.get("move_limit"), Some(&Value::from("7ms")));
                prop_assert_eq!(values.get("hands"), Some(&Value::from(3_u32)));
                prop_assert_eq!(plan.params.rounds(), Some(1));
                let standings = standings(&plan, &mut outcomes);
                for (bot, standing) in plan.bots.iter().zip(&standings) {
                    chips[*bot] = standing.score.0[0];
                    bad_answers[*bot] += i64::from(standing.bad_answers);
                    rounds_played[*bot] += 1;
                }
                episode.finish(plan.table, &standings);
            }
            prop_assert_eq!(carried(&episode, |bot| bot.score), &chips[..]);
            prop_assert_eq!(carried(&episode, |bot| bot.bad_answers), &bad_answers[..]);
        }
        prop_assert!(episode.tables().is_empty());
        let mut dropped_out = (0..bots).filter(|bot| rounds_played[*bot] < rounds);
        prop_assert!(dropped_out.all(|bot| chips[bot] < ANTE), "only broke bots play fewer rounds");
    }

    #[test]
    fn an_episode_depends_only_on_its_seed(
        bots in 1..24_usize,
        seed in seeds(),
        outcomes in vec((0..900_i64, 0..3_u32), 1..50),
    ) {
        let play_episode = || {
            let mut episode = episode(bots, 5, seed);
            let mut outcomes = outcomes.iter().copied().cycle();
            let mut plans = Vec::new();
            while let Some(plan) = episode.tables().first().cloned() {
                episode.finish(plan.table, &standings(&plan, &mut outcomes));
                plans.push(plan);
            }
            (plans, carried(&episode, |bot| bot.score))
        };
        prop_assert_eq!(play_episode(), play_episode());
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
        let played = dialogue::play(&mut game, |message| {
            let score: u32 = message.text.split(' ').next().unwrap().parse().unwrap();
            (Ok(if score < 17 { "H" } else { "S" }.to_owned()), Micros::ZERO)
        });
        house += game.table().house();
        meetings.entry(plan.round).or_default().extend(&plan.bots);
        episode.finish(plan.table, &played.standings);
    }
    let chips: i64 = episode.bots().iter().map(|bot| bot.score).sum();
    assert_eq!(chips + house, 10 * 200);
    assert!(
        episode.bots().iter().any(|bot| bot.score < ANTE),
        "some bots are broke after 30 rounds"
    );
    let sizes: Vec<_> = meetings.values().map(Vec::len).collect();
    assert!(
        sizes.is_sorted_by(|previous, next| previous >= next),
        "the number of bots never increases"
    );
    assert_ne!(meetings[&1], meetings[&2], "the bots are shuffled before each round");
}
