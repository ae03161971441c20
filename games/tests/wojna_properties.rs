//! Properties of Wojna: cards are conserved, bidding ends where the rules say, points add up, and a
//! match ends with any replies.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dialogue;

use arbiter_games::wojna::{Card, Deal, DealResult, Match, Move, Params, Raise, points};
use arbiter_games::{ExpectedReply, Forfeit, Message, Micros, Seat, Seed, read_rules, wojna};
use dialogue::{Played, Reply, play, scores};
use proptest::collection::vec;
use proptest::prelude::*;

const MOVES: [Move; 5] = [
    Move::Pass,
    Move::Check,
    Move::Raise(Raise::One),
    Move::Raise(Raise::Two),
    Move::Raise(Raise::Three),
];

/// Piles with few different cards, so that there are many ties.
fn piles() -> impl Strategy<Value = Vec<Vec<Card>>> {
    vec(vec(1..4_u16, 1..12), 2..=4)
}

fn seeds() -> impl Strategy<Value = Seed> {
    any::<[u8; 32]>().prop_map(Seed)
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    vec(prop_oneof![3 => Just(Move::Check), 2 => prop::sample::select(&MOVES[..])], 1..40)
}

/// The number of cards on the table.
fn total(deal: &Deal) -> usize {
    deal.pot() + Seat::all(deal.seats()).map(|seat| deal.pile(seat)).sum::<usize>()
}

/// A model of bidding by the document's rules, which depend on the history.
#[derive(Debug)]
struct Bidding {
    /// The number of cards that each seat has paid; 0 for seats that do not take part.
    paid: Vec<usize>,
    piles: Vec<usize>,
    history: Vec<(usize, Move)>,
    turn: usize,
}

impl Bidding {
    fn new(deal: &Deal, old_piles: &[usize]) -> Self {
        let piles: Vec<_> = Seat::all(deal.seats()).map(|seat| deal.pile(seat)).collect();
        let paid = old_piles.iter().zip(&piles).map(|(old, new)| old - new).collect();
        Self { paid, piles, history: Vec::new(), turn: deal.turn().unwrap().index() }
    }

    fn has_passed(&self, seat: usize) -> bool {
        self.history.contains(&(seat, Move::Pass))
    }

    fn is_bidding(&self, seat: usize) -> bool {
        self.paid[seat] > 0 && !self.has_passed(seat)
    }

    fn seats(&self) -> std::ops::Range<usize> {
        0..self.paid.len()
    }

    /// The cost of a move for the seat with the turn, if it is legal.
    fn cost(&self, bid: Move) -> Option<usize> {
        let paid = self.paid[self.turn];
        let others = self.seats().filter(|seat| *seat != self.turn);
        let largest = others.map(|seat| self.paid[seat]).max().unwrap();
        let check = largest.saturating_sub(paid);
        let pile = self.piles[self.turn];
        match bid {
            Move::Pass => Some(0),
            Move::Check => Some(check.min(pile)),
            Move::Raise(raise) => Some(check + raise as usize).filter(|cost| *cost <= pile),
        }
    }

    fn play(&mut self, bid: Move, cost: usize) {
        self.paid[self.turn] += cost;
        self.piles[self.turn] -= cost;
        self.history.push((self.turn, bid));
        let seats = self.paid.len();
        let mut next = (self.turn + 1..=self.turn + seats).map(|seat| seat % seats);
        self.turn = next.find(|seat| self.is_bidding(*seat)).unwrap();
    }

    /// The three cases in which bidding ends ("Licytacja").
    fn has_ended(&self) -> bool {
        let is_alone = self.seats().filter(|seat| self.is_bidding(*seat)).count() == 1;
        let is_raise = |(_, choice): &&(usize, Move)| matches!(choice, Move::Raise(_));
        let last_raise = self.history.iter().rfind(is_raise);
        let first_check = self.history.iter().find(|(_, choice)| *choice == Move::Check);
        let closing = last_raise.or(first_check);
        is_alone || closing.is_some_and(|(seat, _)| *seat == self.turn)
    }
}

/// Plays one auction, and compares it with the model of the document.
fn auction(
    deal: &mut Deal,
    old_piles: &[usize],
    moves: &mut impl Iterator<Item = Move>,
) -> Result<(), TestCaseError> {
    let all_cards = total(deal);
    let mut bidding = Bidding::new(deal, old_piles);
    while !bidding.has_ended() {
        prop_assert_eq!(deal.turn(), Some(Seat::from_index(bidding.turn)), "{:?}", bidding);
        let bid = moves.next().unwrap();
        let cost = bidding.cost(bid);
        prop_assert_eq!(deal.play(bid).is_ok(), cost.is_some(), "{:?}", bidding);
        if let Some(cost) = cost {
            bidding.play(bid, cost);
        } else {
            deal.play(Move::Pass).unwrap();
            bidding.play(Move::Pass, 0);
        }
        prop_assert_eq!(total(deal), all_cards);
        let piles: Vec<_> = Seat::all(deal.seats()).map(|seat| deal.pile(seat)).collect();
        prop_assert_eq!(&piles, &bidding.piles);
    }
    prop_assert_eq!(deal.turn(), None, "{:?}", bidding);
    for seat in Seat::all(deal.seats()) {
        prop_assert_eq!(deal.peeked(seat).is_some(), bidding.is_bidding(seat.index()));
    }
    Ok(())
}

/// Checks the result of an auction for its pot, and the ante of the next auction.
fn check_settlement(before: &Deal, after: &Deal) -> Result<(), TestCaseError> {
    let seats: Vec<_> = Seat::all(before.seats()).collect();
    let best = seats.iter().filter_map(|seat| before.peeked(*seat)).max().unwrap();
    let is_tied = |seat: &&Seat| before.peeked(**seat) == Some(best);
    let fighters: Vec<_> =
        seats.iter().filter(is_tied).filter(|seat| before.pile(**seat) > 0).collect();
    let winner = match seats.iter().filter(is_tied).collect::<Vec<_>>()[..] {
        [winner] => Some(winner),
        _ => fighters.first().copied().filter(|_| fighters.len() == 1),
    };
    for seat in &seats {
        let won_cards = if winner == Some(seat) { before.pot() } else { 0 };
        prop_assert_eq!(after.pile(*seat), before.pile(*seat) + won_cards);
        prop_assert_eq!(after.is_in(*seat), after.pile(*seat) > 0);
        if before.is_in(*seat) && !after.is_in(*seat) {
            prop_assert_eq!(after.result(*seat), DealResult::Left(before.auction()));
        }
    }
    prop_assert_eq!(after.pot(), if winner.is_some() { 0 } else { before.pot() });
    // Exactly the tied seats with cards take part in a war, and all seats in a regular auction.
    let mut next = after.clone();
    if next.open() {
        let is_war = winner.is_none() && fighters.len() > 1;
        for seat in &seats {
            let takes_part = if is_war { fighters.contains(&seat) } else { after.is_in(*seat) };
            prop_assert_eq!(next.peeked(*seat).is_some(), takes_part);
            let paid = after.pile(*seat) - next.pile(*seat);
            let ante = if is_war { 2 } else { 1 };
            prop_assert_eq!(paid, if takes_part { ante.min(after.pile(*seat)) } else { 0 });
        }
    }
    Ok(())
}

/// Parameters of short matches.
fn params(deals: u32, seats: usize, deck: &str) -> Params {
    let json =
        serde_json::json!({"deals": deals, "seats": seats, "deck": deck, "clock": "9/2/5/3"});
    read_rules(&wojna::game().params, &serde_json::from_value(json).unwrap()).unwrap()
}

/// A reply: a move, an acknowledgement, nonsense, or a forfeit.
fn reply() -> impl Strategy<Value = Reply> {
    let reply = prop_oneof![
        200 => Just(Ok("= check".to_owned())),
        80 => Just(Ok("= pass".to_owned())),
        20 => (1..=3).prop_map(|cards| Ok(format!("= raise {cards}"))),
        1 => Just(Ok("?".to_owned())),
        1 => any::<String>().prop_map(Ok),
        1 => "[=?]?[ \n]*(pass|check|raise)? ?[0-9]{0,2}".prop_map(Ok),
        1 => prop::sample::select(&Forfeit::ALL[..]).prop_map(Err),
    ];
    (reply, (-10..3_000_000_i64).prop_map(Micros))
}

/// Plays a match with these replies in turn.
fn play_replies(replies: &[Reply], params: &Params, seed: Seed) -> Played {
    let mut game = Match::start(params, params.seats, seed);
    let mut replies = replies.iter().cycle();
    play(&mut game, |_| replies.next().unwrap().clone())
}

/// Checks the commands: dead seats get none, and no card is lost.
fn check_transcript(played: &Played, cards: usize) -> Result<(), TestCaseError> {
    let mut dead = Vec::new();
    for line in &played.transcript {
        let seat = line.chars().next().unwrap();
        if let Some(seat) = line.strip_prefix("x ") {
            dead.push(seat.chars().next().unwrap());
        } else if line.contains("> ") && line.as_bytes()[1] == b'>' {
            prop_assert!(!dead.contains(&seat), "{}", line);
        }
        if line.get(1..).is_some_and(|rest| rest.starts_with("> setstate ")) {
            let mut numbers = line.split(' ').skip(2).map(|word| word.parse::<usize>().unwrap());
            let pot = numbers.next().unwrap();
            let piles: usize = numbers.skip(1).sum();
            prop_assert_eq!(pot + piles, cards, "{}", line);
        }
    }
    let forfeits = played.standings.iter().filter(|standing| standing.forfeit.is_some());
    prop_assert_eq!(forfeits.count(), dead.len());
    Ok(())
}

/// The reply of a bot that never forfeits. It checks or passes, depending on all earlier messages.
fn legal_reply(message: &Message, state: &mut u64) -> Reply {
    let words = message.text.bytes().chain([message.seat.number()]);
    let hash =
        words.fold(*state, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    *state = hash;
    let bid = if (hash >> 40).is_multiple_of(4) { "= pass" } else { "= check" };
    (
        Ok(if message.expected_reply == ExpectedReply::Move { bid } else { "=" }.to_owned()),
        Micros::ZERO,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn bidding_follows_the_document_and_cards_are_conserved(
        piles in piles(),
        seed in seeds(),
        moves in moves(),
    ) {
        let mut deal = Deal::stacked(&piles, seed);
        let mut moves = moves.into_iter().cycle();
        for _ in 0..3 {
            let all_cards = total(&deal);
            loop {
                let old_piles: Vec<_> =
                    Seat::all(deal.seats()).map(|seat| deal.pile(seat)).collect();
                if !deal.open() {
                    break;
                }
                prop_assert_eq!(total(&deal), all_cards);
                auction(&mut deal, &old_piles, &mut moves)?;
                let showdown = deal.clone();
                deal.settle();
                prop_assert_eq!(total(&deal), all_cards);
                check_settlement(&showdown, &deal)?;
            }
            prop_assert_eq!(total(&deal), all_cards);
            let results: Vec<_> = Seat::all(deal.seats()).map(|seat| deal.result(seat)).collect();
            let expected = [72, 84, 84][results.len() - 2];
            prop_assert_eq!(points(&results).iter().sum::<i64>(), expected);
            deal.redeal();
        }
    }

    #[test]
    fn points_add_up_to_the_upper_places(
        left in vec(prop_oneof![1 => Just(None), 4 => (1..4_u32).prop_map(Some)], 4),
        dead in vec(any::<bool>(), 4),
        seats in 2..=4_usize,
    ) {
        let result = |index: usize| match (dead[index], left[index]) {
            (true, _) => DealResult::Forfeited,
            (false, Some(number)) => DealResult::Left(number),
            (false, None) => DealResult::Stayed,
        };
        let results: Vec<_> = (0..seats).map(result).collect();
        let points = points(&results);
        let active = (0..seats).filter(|index| !dead[*index]).count();
        prop_assert_eq!(points.iter().sum::<i64>(), [0, 48, 72, 84, 84][active]);
        for (a, b) in (0..seats).flat_map(|a| (0..seats).map(move |b| (a, b))) {
            prop_assert!(results[a] < results[b] || points[a] >= points[b]);
            prop_assert!(results[a] != results[b] || points[a] == points[b]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_deal_of_four_without_forfeits_has_84_points(seed in seeds(), deals in 1..4_u32) {
        let mut game = Match::start(&params(deals, 4, "1-5*4"), 4, seed);
        let mut state = 1;
        let played = play(&mut game, |message| legal_reply(message, &mut state));
        check_transcript(&played, 20)?;
        prop_assert_eq!(scores(&played).concat().iter().sum::<i64>(), 84 * i64::from(deals));
    }

    #[test]
    fn every_match_ends_with_valid_results(
        replies in vec(reply(), 1..300),
        seed in seeds(),
        deals in 1..4_u32,
        seats in 2..=4_usize,
    ) {
        let params = params(deals, seats, "1-3*4");
        let played = play_replies(&replies, &params, seed);
        check_transcript(&played, 12)?;
        let deals = i64::from(deals);
        let scores = scores(&played).concat();
        prop_assert!(scores.iter().all(|score| (0..=48 * deals).contains(score)));
        let max = [72, 84, 84][seats - 2] * deals;
        let sum: i64 = scores.iter().sum();
        prop_assert!((48 * deals..=max).contains(&sum));
        let replayed = play_replies(&replies, &params, seed);
        prop_assert_eq!(&replayed.transcript, &played.transcript);
        prop_assert_eq!(&replayed.standings, &played.standings);
    }
}
