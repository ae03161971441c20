//! House, the strongest example bot for wojna: it learns how its opponents play.
//!
//! For each opponent it counts how often it passes, checks or raises, and which cards it shows, by
//! the price of the auction and by whether it has raised. So it soon knows which opponents give way
//! to a raise, and which raises to believe. For each of its moves it then evaluates all replies
//! with their probabilities and the winner of the pot. It values the resulting piles not by cards
//! but by expected points, as if the places were drawn one by one with larger piles favoured. A
//! card is worth more to a small pile than to a large one, which makes it cautious.
//!
//! Its play uses no random numbers and no clock: a decision examines a few hundred cases.

use std::io::{self, BufRead, Write};

/// The maximum number of seats.
const SEATS: usize = 4;
/// The points of the places, the last place first.
const PLACES: [f64; SEATS] = [0.0, 12.0, 24.0, 48.0];
/// The number of equal classes of cards: one for each value of the official deck.
const CLASSES: usize = 13;
/// The lowest price of each price class. A price is the cards of an auction without the first one.
const PRICES: [u32; 7] = [0, 1, 2, 3, 5, 8, 13];

/// The weight of the prior expectation of an opponent, in auctions.
const EXPECTATION: f64 = 5.0;
/// The fixed cost of each paid card, in points.
const CAUTION: f64 = 0.1;
/// The minimum probability that an opponent wins, however high our card.
const LUCK: f64 = 0.02;
/// The minimum advantage of a raise over other moves, in points.
const RELUCTANCE: f64 = 0.1;
/// The expected cost of staying after an opponent's raise, in cards. The opponent may raise again.
const RERAISE: u32 = 5;

/// One value for each seat.
type Each<T> = [T; SEATS];

/// The actions of an opponent, in the order of the counts.
#[derive(Clone, Copy)]
enum Reply {
    Pass,
    Check,
    Raise,
}

/// The habits of a bot.
#[derive(Clone)]
struct Habits {
    /// How often it has passed, checked and raised: by whether it had raised before, and by price.
    replies: [[[f64; 3]; PRICES.len()]; 2],
    /// How often it has shown each class of cards: by whether it had raised, and by price.
    shown: [[[f64; CLASSES]; PRICES.len()]; 2],
}

fn price_class(price: u32) -> usize {
    PRICES.iter().rposition(|lowest| *lowest <= price).unwrap_or(0)
}

impl Habits {
    /// The prior for an unknown bot: it often passes after raises, and shows better cards at higher
    /// prices and after its raises.
    fn expected() -> Self {
        let unraised = [[0.6, 0.2, 0.2]; PRICES.len()].map(|odds| odds.map(weigh));
        let raised = [[0.3, 0.4, 0.3]; PRICES.len()].map(|odds| odds.map(weigh));
        let mut replies = [unraised, raised];
        replies[0][0] = [0.02, 0.7, 0.28].map(weigh);
        let mut strength = [1.0; CLASSES];
        for class in 1..CLASSES {
            strength[class] = strength[class - 1] + 1.0;
        }
        let calls = rising([1.0; CLASSES], strength.map(f64::sqrt));
        let raises = rising(strength.map(|one| one * one), strength);
        Self { replies, shown: [calls, raises] }
    }

    /// The chance that a card of `class` beats what this bot shows; a tie counts half.
    fn beaten(&self, raised: bool, price: u32, class: usize) -> f64 {
        let cards = &self.shown[usize::from(raised)][price_class(price)];
        let below: f64 = cards[..class].iter().sum();
        let all: f64 = cards.iter().sum();
        (below + cards[class] / 2.0) / all
    }

    /// The chances that it passes and that it raises.
    fn reply(&self, raised: bool, price: u32) -> (f64, f64) {
        let [pass, check, raise] = self.replies[usize::from(raised)][price_class(price)];
        let all = pass + check + raise;
        (pass / all, raise / all)
    }
}

fn weigh(odds: f64) -> f64 {
    odds * EXPECTATION
}

/// Expected counts of cards: in proportion to `odds` at the lowest price, and shifted by `growth`
/// with each higher one.
fn rising(mut odds: [f64; CLASSES], growth: [f64; CLASSES]) -> [[f64; CLASSES]; PRICES.len()] {
    [(); PRICES.len()].map(|()| {
        let all: f64 = odds.iter().sum();
        let counts = odds.map(|one| weigh(one / all));
        odds.iter_mut().zip(growth).for_each(|(one, growth)| *one *= growth);
        counts
    })
}

/// The state of a seat in this auction.
#[derive(Clone)]
struct Seat {
    pile: u32,
    /// The number of cards that it has paid; 0 if it does not take part.
    paid: u32,
    bidding: bool,
    acted: bool,
    raised: bool,
    habits: Habits,
}

/// The possible reaction of an opponent to our move.
struct Opponent {
    seat: usize,
    pass: f64,
    raise: f64,
    /// The number of cards that it must pay to stay.
    cost: f64,
    /// The chance that our card beats its card if it stays in.
    beaten: f64,
}

/// A possible course of the auction until the cards are shown.
#[derive(Clone)]
struct Outcome {
    /// The probability of this course.
    odds: f64,
    /// The chance that our card is the highest.
    win: f64,
    pot: f64,
    piles: Each<f64>,
    /// The relative probability that each opponent wins if we do not.
    rivals: Each<f64>,
}

impl Outcome {
    /// Pays cards into the pot, or all cards if there are fewer. Returns the number of paid cards.
    fn pay(&mut self, seat: usize, cards: f64) -> f64 {
        let cost = cards.min(self.piles[seat]);
        self.piles[seat] -= cost;
        self.pot += cost;
        cost
    }
}

struct Table {
    me: usize,
    deck: Vec<u32>,
    /// The class of our card.
    class: usize,
    pot: u32,
    /// The cards that every bot paid to take part in this auction.
    ante: u32,
    /// Whether a bot has made a move in this auction.
    opened: bool,
    seats: Vec<Seat>,
}

impl Table {
    fn new() -> Self {
        let habits = Habits::expected();
        let seat = Seat { pile: 1, paid: 0, bidding: false, acted: false, raised: false, habits };
        let seats = vec![seat; SEATS];
        Self { me: 0, deck: Vec::new(), class: 0, pot: u32::MAX, ante: 1, opened: false, seats }
    }

    /// Begins a new deal: all bots are in it, and the pot is empty.
    fn set_deck(&mut self, cards: &[u32]) {
        self.deck = cards.to_vec();
        self.pot = u32::MAX;
        self.seats.iter_mut().for_each(|seat| seat.pile = 1);
    }

    /// A new auction. A pot that has grown was not won: this is a war, and only the bots in it
    /// pay. Otherwise every bot with cards has paid one.
    fn set_state(&mut self, pot: u32, piles: &[u32]) {
        self.seats.truncate(piles.len());
        for (seat, pile) in self.seats.iter_mut().zip(piles) {
            let has_cards = seat.pile > 0 || *pile > 0;
            let war = pot > self.pot;
            seat.paid = if war { seat.pile.saturating_sub(*pile) } else { u32::from(has_cards) };
            seat.pile = *pile;
            (seat.bidding, seat.acted, seat.raised) = (seat.paid > 0, false, false);
        }
        (self.pot, self.ante, self.opened) = (pot, self.largest(), false);
    }

    /// Our own card before the first move, a shown one later.
    fn top_card(&mut self, seat: usize, card: u32) {
        let class = self.class_of(card);
        if !self.opened {
            self.class = class;
        } else if let Some(seat) = self.seats.get_mut(seat).filter(|seat| seat.acted) {
            let price = price_class(seat.paid.saturating_sub(self.ante));
            seat.habits.shown[usize::from(seat.raised)][price][class] += 1.0;
        }
    }

    /// The fraction of the deck that a card beats.
    fn class_of(&self, card: u32) -> usize {
        let lower = self.deck.iter().filter(|other| **other < card).count();
        let same = self.deck.iter().filter(|other| **other == card).count();
        let class = (2 * lower + same) * CLASSES / (2 * self.deck.len()).max(1);
        class.min(CLASSES - 1)
    }

    fn play(&mut self, seat: usize, reply: Reply, more: u32) {
        let largest = self.largest();
        let price = price_class(self.price());
        let Some(seat) = self.seats.get_mut(seat) else { return };
        seat.habits.replies[usize::from(seat.raised)][price][reply as usize] += 1.0;
        let cost = match reply {
            Reply::Pass => 0,
            Reply::Check | Reply::Raise => (largest - seat.paid + more).min(seat.pile),
        };
        seat.paid += cost;
        seat.pile -= cost;
        seat.acted = true;
        seat.bidding &= !matches!(reply, Reply::Pass);
        seat.raised |= matches!(reply, Reply::Raise);
        self.pot = self.pot.saturating_add(cost);
        self.opened = true;
    }

    /// The largest contribution.
    fn largest(&self) -> u32 {
        self.seats.iter().map(|seat| seat.paid).max().unwrap_or(0)
    }

    fn price(&self) -> u32 {
        self.largest().saturating_sub(self.ante)
    }

    fn piles(&self) -> Each<f64> {
        let mut piles = [0.0; SEATS];
        piles.iter_mut().zip(&self.seats).for_each(|(pile, seat)| *pile = f64::from(seat.pile));
        piles
    }

    /// The opponents that have not passed.
    fn rivals(&self) -> impl Iterator<Item = (usize, &Seat)> {
        let seats = self.seats.iter().enumerate();
        seats.filter(|(index, seat)| *index != self.me && seat.bidding)
    }

    /// What the opponents may do once the auction costs `price`; all are asked about a new one.
    fn opponents(&self, price: u32, is_new: bool) -> Vec<Opponent> {
        let total = self.ante + price;
        let opponent = |(index, seat): (usize, &Seat)| {
            let Seat { habits, raised, .. } = seat;
            let is_asked = is_new || !seat.acted || seat.paid < total;
            let free = if is_asked { seat.pile } else { 0 };
            let (pass, raise) = if free > 0 { habits.reply(*raised, price) } else { (0.0, 0.0) };
            let known = if is_asked { price } else { seat.paid.saturating_sub(self.ante) };
            Opponent {
                seat: index,
                pass,
                raise,
                cost: f64::from(total.saturating_sub(seat.paid).min(free)),
                beaten: habits.beaten(*raised, known, self.class),
            }
        };
        self.rivals().map(opponent).collect()
    }

    /// The points to be expected after checking, or after raising by some cards.
    fn value(&self, own: &Seat, more: u32) -> f64 {
        let cost = (self.largest() - own.paid + more).min(own.pile);
        let price = self.price() + more;
        let mut piles = self.piles();
        piles[self.me] -= f64::from(cost);
        let pot = f64::from(self.pot) + f64::from(cost);
        let outcome = Outcome { odds: 1.0, win: 1.0, pot, piles, rivals: [0.0; SEATS] };
        let opponents = self.opponents(price, more > 0);
        self.outcomes(&opponents, outcome, price) - CAUTION * f64::from(cost)
    }

    /// The points to be expected, times the odds, when these opponents have yet to reply.
    fn outcomes(&self, opponents: &[Opponent], before: Outcome, price: u32) -> f64 {
        let Some((opponent, others)) = opponents.split_first() else {
            return before.odds * self.showdown(&before);
        };
        let mut points = 0.0;
        if opponent.raise > 0.0 {
            points += before.odds * opponent.raise * self.reraised(opponent, &before, price);
        }
        if opponent.pass > 0.0 {
            let odds = before.odds * opponent.pass;
            points += self.outcomes(others, Outcome { odds, ..before.clone() }, price);
        }
        let mut stays = before;
        stays.odds *= 1.0 - opponent.pass - opponent.raise;
        stays.win *= opponent.beaten;
        stays.pay(opponent.seat, opponent.cost);
        stays.rivals[opponent.seat] = 1.0 - opponent.beaten + LUCK;
        points + self.outcomes(others, stays, price)
    }

    /// The points to be expected when the cards are shown.
    fn showdown(&self, outcome: &Outcome) -> f64 {
        let rivals: f64 = outcome.rivals.iter().sum();
        let mut points = outcome.win * self.won_by(self.me, outcome);
        for (seat, rival) in outcome.rivals.iter().enumerate().filter(|(_, rival)| **rival > 0.0) {
            points += (1.0 - outcome.win) * rival / rivals * self.won_by(seat, outcome);
        }
        points
    }

    /// The points to be expected when an opponent raises and all others give way; we may, too.
    fn reraised(&self, opponent: &Opponent, before: &Outcome, price: u32) -> f64 {
        let mut after = before.clone();
        after.pay(opponent.seat, opponent.cost + f64::from(RERAISE));
        let passed = self.won_by(opponent.seat, &after);
        let cost = after.pay(self.me, f64::from(RERAISE));
        let habits = &self.seats[opponent.seat].habits;
        let win = habits.beaten(true, price + RERAISE, self.class);
        let won = self.won_by(self.me, &after);
        let lost = self.won_by(opponent.seat, &after);
        passed.max(win * won + (1.0 - win) * lost - CAUTION * cost)
    }

    /// The points to be expected after passing: a bot that has raised wins, or any bot.
    fn passed(&self) -> f64 {
        let pot = f64::from(self.pot);
        let piles = self.piles();
        let rivals = [0.0; SEATS];
        let outcome = Outcome { odds: 1.0, win: 0.0, pot, piles, rivals };
        let is_raised = self.rivals().any(|(_, seat)| seat.raised);
        let winners = self.rivals().filter(|(_, seat)| seat.raised || !is_raised);
        let points: Vec<_> = winners.map(|(index, _)| self.won_by(index, &outcome)).collect();
        mean(&points)
    }

    fn won_by(&self, winner: usize, outcome: &Outcome) -> f64 {
        let mut piles = outcome.piles;
        piles[winner] += outcome.pot;
        self.points(&piles)
    }

    /// The points to be expected with these piles. Bots without cards share the lowest free
    /// places; the others are drawn from the first place down.
    fn points(&self, piles: &Each<f64>) -> f64 {
        let playing = self.seats.iter().filter(|seat| seat.pile + seat.paid > 0).count();
        let living = piles.iter().filter(|pile| **pile > 0.0).count();
        if piles[self.me] <= 0.0 {
            return mean(&PLACES[SEATS - playing..SEATS - living]);
        }
        drawn(&mut piles.map(chances), self.me, SEATS - 1)
    }

    fn choose(&self) -> String {
        let Some(own) = self.seats.get(self.me) else { return "pass".to_owned() };
        let missing = self.largest() - own.paid;
        let mut best = self.value(own, 0);
        let mut choice = "check".to_owned();
        if missing > 0 && self.passed() >= best {
            (best, choice) = (self.passed(), "pass".to_owned());
        }
        let any_rival_pays = self.rivals().any(|(_, seat)| seat.pile > 0);
        let most = if any_rival_pays { own.pile.saturating_sub(missing).min(3) } else { 0 };
        for more in 1..=most {
            let value = self.value(own, more) - RELUCTANCE;
            if value > best {
                (best, choice) = (value, format!("raise {more}"));
            }
        }
        choice
    }

    fn reply_to(&mut self, line: &str) -> String {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let numbers: Vec<u32> = words.iter().filter_map(|word| word.parse().ok()).collect();
        let index = |seat: u32| (seat as usize).saturating_sub(1);
        match (&words[..], &numbers[..]) {
            (["your_number", ..], [seat]) => self.me = index(*seat),
            (["setdeck", ..], [_, cards @ ..]) => self.set_deck(cards),
            (["setstate", ..], [pot, _, piles @ ..]) => self.set_state(*pot, piles),
            (["topcard", ..], [seat, card]) => self.top_card(index(*seat), *card),
            (["play", _, "pass"], [seat]) => self.play(index(*seat), Reply::Pass, 0),
            (["play", _, "check"], [seat]) => self.play(index(*seat), Reply::Check, 0),
            (["play", _, "raise", _], [seat, more]) => {
                self.play(index(*seat), Reply::Raise, *more);
            }
            (["genmove", ..], _) => return format!("= {}", self.choose()),
            (["time_settings" | "time_left" | "quit", ..], _) => {}
            (["name"], _) => return "= house".to_owned(),
            _ => return "? unknown command".to_owned(),
        }
        "=".to_owned()
    }
}

/// The weight of a pile for its bot's chances. It grows more slowly than the pile, since the bot
/// may lose many cards at once.
fn chances(pile: f64) -> f64 {
    pile.sqrt() * pile.sqrt().sqrt()
}

/// The mean of some numbers; 0 if there are none.
fn mean(numbers: &[f64]) -> f64 {
    let count: f64 = numbers.iter().map(|_| 1.0).sum();
    if count > 0.0 { numbers.iter().sum::<f64>() / count } else { 0.0 }
}

/// The points that seat `me` can expect of `place` and those below it, if each is drawn among the
/// seats that are left, by their weights; a seat without weight is left out.
fn drawn(weights: &mut Each<f64>, me: usize, place: usize) -> f64 {
    let all: f64 = weights.iter().sum();
    let mut points = weights[me] / all * PLACES[place];
    for seat in (0..SEATS).filter(|seat| *seat != me) {
        let weight = std::mem::take(&mut weights[seat]);
        if weight > 0.0 {
            points += weight / all * drawn(weights, me, place - 1);
        }
        weights[seat] = weight;
    }
    points
}

fn main() {
    let mut table = Table::new();
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        if line.trim().is_empty() {
            continue;
        }
        let mut out = io::stdout().lock();
        if write!(out, "{}\n\n", table.reply_to(&line)).and_then(|()| out.flush()).is_err() {
            return;
        }
        if line.trim() == "quit" {
            return;
        }
    }
}
