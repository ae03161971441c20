//! The play of house at tricks: it simulates the rest of a table with random unseen cards.
//!
//! While there is a pack, it deals the unseen cards many times, in ways that agree with what the
//! opponent has shown. In each of these worlds it tries each of its cards and plays the table to
//! its end with a simple policy for both sides. It plays the card with the best sum. Once the pack
//! is empty, every unseen card is in the opponent's hand, and an exact search counts the tricks
//! that each card will bring.
//!
//! A move depends only on what the house has seen at the table: random numbers start from the same
//! seed in the same position. This file does no I/O, so other programs can use it too.

use std::collections::HashMap;

/// A set of cards; card `9 * suit + rank` is that bit.
pub(crate) type Cards = u64;

const SUITS: u32 = 4;
const RANKS: u32 = 9;
/// The letter of the first suit.
const LETTER: u8 = b'W';
/// The cards of the first suit.
const SUIT: Cards = (1 << RANKS) - 1;
const DECK: Cards = (1 << (SUITS * RANKS)) - 1;
/// The number of cards of a full hand.
const HAND: u32 = 9;
const TRICKS: i32 = 18;

/// The value of winning a table, in addition to its tricks, in tricks.
const VICTORY: i32 = 6;
/// What the policy would pay to keep a card, in tricks: so much a rank,
const RANK_PRICE: f64 = 0.02;
/// and so much more for a trump.
const TRUMP_PRICE: f64 = 0.9;

/// The two players at a table, as positions in [`World::hands`].
const OWN: usize = 0;
const OTHER: usize = 1;

/// The cards of a set one by one, the lowest of the first suit first.
fn each(mut cards: Cards) -> impl Iterator<Item = Cards> {
    std::iter::from_fn(move || {
        let card = cards & cards.wrapping_neg();
        cards ^= card;
        (card != 0).then_some(card)
    })
}

fn count(cards: Cards) -> i32 {
    cards.count_ones().cast_signed()
}

fn rank(card: Cards) -> u32 {
    card.trailing_zeros() % RANKS
}

fn suit_index(card: Cards) -> usize {
    (card.trailing_zeros() / RANKS) as usize
}

/// All cards of the suit of a card.
fn suit(card: Cards) -> Cards {
    SUIT << (card.trailing_zeros() / RANKS * RANKS)
}

/// The cards of the suit of a card that are higher.
fn higher(card: Cards) -> Cards {
    suit(card) & !(card | (card - 1))
}

/// All cards that win against an attack.
fn beating(attack: Cards, trumps: Cards) -> Cards {
    if suit(attack) == trumps { higher(attack) } else { higher(attack) | trumps }
}

/// The cards of a hand that are legal against an attack.
fn following(hand: Cards, attack: Cards) -> Cards {
    let same = hand & suit(attack);
    if same == 0 { hand } else { same }
}

/// A hand without the cards that are as good as a lower one, because none of the cards that
/// matter is between the two.
fn distinct(hand: Cards, others: Cards) -> Cards {
    let mut cards = 0;
    let mut last = 0;
    for card in each(hand | others) {
        if card & hand != 0 && (last & hand == 0 || suit(last) != suit(card)) {
            cards |= card;
        }
        last = card;
    }
    cards
}

/// The card of the lowest rank; a trump only if there is nothing else.
fn lowest(cards: Cards, trumps: Cards) -> Cards {
    let plain = cards & !trumps;
    let cards = if plain == 0 { cards } else { plain };
    each(cards).min_by_key(|card| rank(*card)).unwrap_or(0)
}

/// Random numbers from a seed: xorshift64*.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let word = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        usize::try_from((word * bound as u64) >> 32).expect("this is below a length")
    }

    fn shuffle(&mut self, cards: &mut [Cards]) {
        for end in (1..cards.len()).rev() {
            cards.swap(end, self.below(end + 1));
        }
    }
}

/// A table with all cards known, at the beginning of a trick or with an attack on it.
#[derive(Clone)]
struct World {
    hands: [Cards; 2],
    /// The next card is the last.
    pack: Vec<Cards>,
    trumps: Cards,
}

impl World {
    /// Plays a trick; returns who has won it.
    fn trick(&mut self, attacker: usize, attack: Cards, defence: Cards) -> usize {
        self.hands[attacker] &= !attack;
        self.hands[1 - attacker] &= !defence;
        let beaten = defence & beating(attack, self.trumps) != 0;
        let winner = if beaten { 1 - attacker } else { attacker };
        for player in [winner, 1 - winner] {
            self.hands[player] |= self.pack.pop().unwrap_or(0);
        }
        winner
    }

    /// The policy's attack: the card with the best chance to win, less the price of parting with
    /// it. It uses only what a player knows; otherwise the worlds would be far too optimistic.
    fn attack(&self, attacker: usize) -> Cards {
        let own = self.hands[attacker];
        let unseen = self.pack.iter().fold(self.hands[1 - attacker], |all, card| all | card);
        let in_pack = 1.0 - f64::from(count(self.hands[1 - attacker])) / f64::from(count(unseen));
        let none_of = |cards| (0..count(unseen & cards)).fold(1.0, |chance, _| chance * in_pack);
        let some_trump = 1.0 - none_of(self.trumps);
        let worth = |card| {
            let keeps = none_of(higher(card)) - f64::from(rank(card)) * RANK_PRICE;
            if suit(card) == self.trumps {
                keeps - TRUMP_PRICE
            } else {
                keeps - none_of(suit(card)) * some_trump
            }
        };
        let rated = each(distinct(own, unseen)).map(|card| (worth(card), card));
        rated
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map_or(0, |best| best.1)
    }

    /// The policy's defence: the lowest card that wins, or else the lowest.
    fn defence(&self, defender: usize, attack: Cards) -> Cards {
        let choice = following(self.hands[defender], attack);
        let winners = choice & beating(attack, self.trumps);
        lowest(if winners == 0 { choice } else { winners }, self.trumps)
    }

    /// Plays the house's card, and then by the policy to the end; returns the house's tricks.
    fn play_out(mut self, card: Cards, attack: Cards) -> i32 {
        let mut attacker = if attack == 0 {
            let defence = self.defence(OTHER, card);
            self.trick(OWN, card, defence)
        } else {
            self.trick(OTHER, attack, card)
        };
        let mut won = i32::from(attacker == OWN);
        while self.hands[attacker] != 0 {
            let attack = self.attack(attacker);
            let defence = self.defence(1 - attacker, attack);
            attacker = self.trick(attacker, attack, defence);
            won += i32::from(attacker == OWN);
        }
        won
    }
}

/// An exact search where both hands are known and there is no pack.
struct Search {
    trumps: Cards,
    /// Between which bounds the attacker's tricks are, by the attacker's hand and the other.
    known: HashMap<(Cards, Cards), (i32, i32)>,
}

impl Search {
    fn new(trumps: Cards) -> Self {
        Self { trumps, known: HashMap::new() }
    }

    /// The attacker's tricks if both play perfectly; if they are not between `least` and `most`,
    /// only a bound on the same side.
    fn attack(&mut self, own: Cards, other: Cards, least: i32, most: i32) -> i32 {
        if own == 0 {
            return 0;
        }
        let (mut low, mut high) = *self.known.get(&(own, other)).unwrap_or(&(0, count(own)));
        if low == high || low >= most {
            return low;
        }
        if high <= least {
            return high;
        }
        let most = most.min(high);
        let mut bar = least.max(low);
        let floor = bar;
        let mut best = low;
        for attack in each(distinct(own, other)) {
            best = best.max(self.defence(own & !attack, other, attack, bar, most));
            bar = bar.max(best);
            if bar >= most {
                break;
            }
        }
        if best > floor {
            low = best;
        }
        if best < most {
            high = best;
        }
        self.known.insert((own, other), (low, high));
        best
    }

    /// The attacker's tricks, this one included, after an attack from a hand that is now `own`.
    fn defence(&mut self, own: Cards, other: Cards, attack: Cards, least: i32, most: i32) -> i32 {
        let left = count(own);
        let mut best = left + 1;
        let mut bar = most;
        for defence in each(following(other, attack) & distinct(other, own | attack)) {
            let rest = other & !defence;
            let tricks = if defence & beating(attack, self.trumps) == 0 {
                1 + self.attack(own, rest, least - 1, bar - 1)
            } else {
                left - self.attack(rest, own, left - bar, left - least)
            };
            best = best.min(tricks);
            bar = bar.min(best);
            if least >= bar {
                break;
            }
        }
        best
    }
}

/// The known state of one table.
#[derive(Debug)]
pub(crate) struct Table {
    /// The number of worlds in which each card is tried.
    worlds: usize,
    trumps: Cards,
    hand: Cards,
    /// The cards that are in the pack or in the opponent's hand.
    unseen: Cards,
    /// The attack that the house must defend against, or 0.
    attack: Cards,
    /// The house's attack without a defence yet, or 0.
    lead: Cards,
    /// The number of cards in the pack.
    pack: u32,
    /// The maximum number of cards of each suit in the opponent's hand.
    room: [u32; SUITS as usize],
    won: i32,
}

impl Table {
    /// A table before its first state.
    pub(crate) fn new(worlds: usize) -> Self {
        Self {
            worlds,
            trumps: 0,
            hand: 0,
            unseen: DECK,
            attack: 0,
            lead: 0,
            pack: DECK.count_ones(),
            room: [HAND; SUITS as usize],
            won: 0,
        }
    }

    /// Applies the events since the house's last card.
    pub(crate) fn hear(&mut self, state: &str) {
        let mut rest = state.bytes();
        while let Some(byte) = rest.next() {
            match byte {
                b'>' => {
                    let card = read_card(rest.next(), rest.next());
                    self.see(card);
                }
                b'+' | b'-' => {
                    self.won += i32::from(byte == b'+');
                    (self.attack, self.lead) = (0, 0);
                }
                b':' => self.trumps = read_card(rest.next(), Some(b'0')) * SUIT,
                letter => self.draw(read_card(Some(letter), rest.next())),
            }
        }
    }

    /// The opponent plays a card.
    fn see(&mut self, card: Cards) {
        if card == 0 {
            return;
        }
        self.unseen &= !card;
        let room = &mut self.room[suit_index(card)];
        *room = room.saturating_sub(1);
        if self.lead == 0 {
            self.attack = card;
        } else if card & suit(self.lead) == 0 {
            self.room[suit_index(self.lead)] = 0;
        }
    }

    /// The house is dealt a card or draws one; so does the opponent.
    fn draw(&mut self, card: Cards) {
        self.hand |= card;
        self.unseen &= !card;
        self.pack = self.pack.saturating_sub(2);
        for room in &mut self.room {
            *room = HAND.min(*room + 1);
        }
    }

    /// Deals the unseen cards so that it agrees with what the opponent has shown.
    fn imagine(&self, dice: &mut Dice) -> World {
        let mut pack: Vec<_> = each(self.unseen).collect();
        dice.shuffle(&mut pack);
        let mut missing = self.unseen.count_ones().saturating_sub(self.pack);
        let mut room = self.room;
        pack.retain(|card| {
            let room = &mut room[suit_index(*card)];
            let stays = missing == 0 || *room == 0;
            if !stays {
                missing -= 1;
                *room -= 1;
            }
            stays
        });
        let in_pack = pack.iter().fold(0, |all, card| all | card);
        World { hands: [self.hand, self.unseen & !in_pack], pack, trumps: self.trumps }
    }

    /// The value of winning this number of additional tricks.
    fn value(&self, more: i32) -> i32 {
        let ahead = 2 * (self.won + more) - TRICKS;
        ahead + VICTORY * ahead.signum()
    }

    /// The sum of the values of each card over the simulated worlds.
    fn estimates(&self, cards: &[Cards]) -> Vec<i32> {
        let position = self.hand ^ self.unseen.rotate_left(28);
        let mut dice = Dice(position.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut sums = vec![0; cards.len()];
        for _ in 0..self.worlds {
            let world = self.imagine(&mut dice);
            for (sum, card) in sums.iter_mut().zip(cards) {
                *sum += self.value(world.clone().play_out(*card, self.attack));
            }
        }
        sums
    }

    /// The tricks that a card will bring, this one included; there is no pack.
    fn tricks(&self, card: Cards, search: &mut Search) -> i32 {
        let own = self.hand & !card;
        let left = count(self.hand);
        if self.attack == 0 {
            search.defence(own, self.unseen, card, 0, left)
        } else if card & beating(self.attack, self.trumps) == 0 {
            left - 1 - search.attack(self.unseen, own, 0, left - 1)
        } else {
            1 + search.attack(own, self.unseen, 0, left - 1)
        }
    }

    /// The best card to play now.
    pub(crate) fn choose(&self) -> Cards {
        let choice = if self.attack == 0 { self.hand } else { following(self.hand, self.attack) };
        let cards: Vec<_> = each(choice & distinct(self.hand, self.unseen | self.attack)).collect();
        if let &[card] = &cards[..] {
            return card;
        }
        let values = if self.pack == 0 {
            let mut search = Search::new(self.trumps);
            cards.iter().map(|card| self.tricks(*card, &mut search)).collect()
        } else {
            self.estimates(&cards)
        };
        let rated = values.into_iter().zip(cards);
        let best = rated.reduce(|best, next| if next.0 > best.0 { next } else { best });
        best.map_or(0, |best| best.1)
    }

    /// The house plays a card.
    pub(crate) fn lay(&mut self, card: Cards) {
        self.hand &= !card;
        self.lead = if self.attack == 0 { card } else { 0 };
        self.attack = 0;
    }
}

/// The text of a card.
pub(crate) fn name(card: Cards) -> String {
    let letter = char::from(LETTER + u8::try_from(suit_index(card)).unwrap_or(0));
    format!("{letter}{}", rank(card))
}

/// The card of a letter and a digit; 0 if they are not a card.
fn read_card(letter: Option<u8>, digit: Option<u8>) -> Cards {
    let index = |byte: Option<u8>, first: u8| byte.and_then(|byte| byte.checked_sub(first));
    let suit = index(letter, LETTER).map(u32::from).filter(|suit| *suit < SUITS);
    let rank = index(digit, b'0').map(u32::from).filter(|rank| *rank < RANKS);
    suit.zip(rank).map_or(0, |(suit, rank)| 1 << (suit * RANKS + rank))
}
