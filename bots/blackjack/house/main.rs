//! House, a bot for blackjack: it computes its chances from the unseen cards.
//!
//! Three facts about these rules matter more than any table of draws:
//!
//! * The stake may be raised after the cards are seen, up to all chips. With a probability p of
//!   winning the best stake is (2p - 1) of all chips (Kelly); below one half it is 0. So a
//!   few strong hands win more than the antes of all weak hands.
//! * Equal scores lose: 17 wins only against a dealer who goes bust, 20 not against 20.
//! * The cards of all bots are open: the unseen cards are in the shoe or the dealer's hidden card,
//!   and all their orders are equally likely.
//!
//! It never doubles down: drawing a card and betting after seeing it is better.

use std::env;

/// The best score of a hand.
const BEST: usize = 21;
/// The score at which the dealer stands.
const DEALER_STANDS: usize = 17;
/// From this hard score on it never draws: almost all cards would bust.
const ENOUGH: usize = 19;
/// The bet as a part of Kelly's stake. A slightly smaller bet wins almost as much and risks less.
const BOLDNESS: f64 = 0.9;
/// The number of cards of each value in a deck: 1 (an ace) to 10. There is no value 0.
const DECK: [u8; 11] = [0, 4, 4, 4, 4, 4, 4, 4, 4, 4, 16];

/// The value of a card; 1 for an ace. `None` for the hidden card.
fn value(card: char) -> Option<usize> {
    match card {
        'A' => Some(1),
        '2'..='9' => card.to_digit(10).map(|digit| digit as usize),
        'T' | 'J' | 'Q' | 'K' => Some(10),
        _ => None,
    }
}

/// The parts of a hand that matter.
#[derive(Clone, Copy, Default)]
struct Hand {
    /// The score if every ace counts 1.
    low: usize,
    ace: bool,
}

impl Hand {
    fn with(self, value: usize) -> Self {
        Self { low: self.low + value, ace: self.ace || value == 1 }
    }

    fn score(self) -> usize {
        let high = self.low + 10;
        if self.ace && high <= BEST { high } else { self.low }
    }
}

/// The cards that are not in view, by value.
struct Unseen {
    counts: [u8; 11],
}

impl Unseen {
    /// All cards of a deck except the visible ones. If a value runs out, its next card is from
    /// another deck.
    fn all_but(visible: impl Iterator<Item = usize>) -> Self {
        let mut counts = DECK;
        for value in visible {
            if counts[value] == 0 {
                counts.iter_mut().zip(DECK).for_each(|(count, deck)| *count += deck);
            }
            counts[value] -= 1;
        }
        Self { counts }
    }

    /// Calls `then` for each possible value of the next card, with its probability.
    fn each(&mut self, mut then: impl FnMut(&mut Self, usize, f64)) {
        let total: f64 = self.counts.iter().copied().map(f64::from).sum();
        for value in 1..self.counts.len() {
            if self.counts[value] > 0 {
                let chance = f64::from(self.counts[value]) / total;
                self.counts[value] -= 1;
                then(self, value, chance);
                self.counts[value] += 1;
            }
        }
    }

    /// Adds up the chances of the dealer's final scores; every bust counts as 0.
    fn play_dealer(&mut self, hand: Hand, chance: f64, finals: &mut [f64; BEST + 1]) {
        let score = hand.score();
        if score < DEALER_STANDS {
            self.each(|unseen, value, part| {
                unseen.play_dealer(hand.with(value), chance * part, finals);
            });
        } else {
            finals[if score > BEST { 0 } else { score }] += chance;
        }
    }
}

/// The probabilities at a decision.
struct Outlook {
    /// The chance of winning with each score, if the dealer's cards were dealt now.
    wins: [f64; BEST + 1],
    stake: f64,
    /// Its chips, the stake included.
    wealth: f64,
}

impl Outlook {
    fn new(dealer: Hand, unseen: &mut Unseen, stake: f64, chips: f64) -> Self {
        let mut finals = [0.0; BEST + 1];
        unseen.play_dealer(dealer, 1.0, &mut finals);
        let mut wins = [0.0; BEST + 1];
        for score in 1..wins.len() {
            wins[score] = wins[score - 1] + finals[score - 1];
        }
        Self { wins, stake, wealth: stake + chips }
    }

    /// The probability of winning with this hand minus the probability of losing.
    fn edge(&self, hand: Hand) -> f64 {
        let chance = self.wins.get(hand.score()).copied().unwrap_or_default();
        2.0 * chance - 1.0
    }

    /// The stake that a hand is worth, at least the current stake.
    fn worth(&self, hand: Hand) -> f64 {
        (BOLDNESS * self.edge(hand) * self.wealth).floor().max(self.stake)
    }

    /// The expected gain of standing.
    fn standing(&self, hand: Hand) -> f64 {
        self.edge(hand) * self.worth(hand)
    }

    /// The expected gain of drawing a card and playing optimally afterwards.
    fn drawing(&self, hand: Hand, unseen: &mut Unseen) -> f64 {
        let mut gain = 0.0;
        unseen.each(|unseen, value, chance| {
            gain += chance * self.going_on(hand.with(value), unseen);
        });
        gain
    }

    fn going_on(&self, hand: Hand, unseen: &mut Unseen) -> f64 {
        let score = hand.score();
        let enough = score == BEST || (score == hand.low && score >= ENOUGH);
        let standing = self.standing(hand);
        if enough { standing } else { standing.max(self.drawing(hand, unseen)) }
    }
}

/// The reply to the arguments of a decision, if they are valid.
fn reply(arguments: &[String]) -> Option<String> {
    let [_score, own, visible, stake, chips] = arguments else { return None };
    let deal = |cards: &str| cards.chars().filter_map(value).fold(Hand::default(), Hand::with);
    let own = deal(own);
    let dealer = deal(visible.get(..1)?);
    let mut unseen = Unseen::all_but(visible.chars().filter_map(value));
    let outlook = Outlook::new(dealer, &mut unseen, stake.parse().ok()?, chips.parse().ok()?);
    if own.score() < BEST && outlook.drawing(own, &mut unseen) > outlook.standing(own) {
        return Some("H".to_owned());
    }
    let raise = outlook.worth(own) - outlook.stake;
    Some(if raise < 1.0 { "S".to_owned() } else { format!("B {raise:.0}") })
}

fn main() {
    let arguments: Vec<_> = env::args().skip(1).collect();
    if let Some(reply) = reply(&arguments) {
        println!("{reply}");
    }
}
