//! How good a pair is for the pairing of a bracket: the criteria of C.04.3, 2.1 to 2.4, as one
//! number.
//!
//! The criteria are ordered, so each gets bits of the weight below those of the criterion before
//! it: as many as the sum over all pairs needs. All criteria are written so that more is better.

use super::card::{Card, Float, Strength};
use super::colours;
use super::weight::Weight;

/// What is the same for all brackets of a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// In the last round, players with more than this score are top scorers.
    pub(super) top_above: Option<u32>,
    /// The score of the player without an opponent, if the number of players is odd (C5).
    pub(super) bye_score: Option<u32>,
}

impl Rules {
    /// Whether two players may meet at all (C1, C3).
    pub(super) fn may_meet(&self, a: &Card, b: &Card) -> bool {
        let clash = a.strength == Strength::Absolute
            && b.strength == Strength::Absolute
            && a.wants_same(b)
            && !self.top_above.is_some_and(|above| a.score > above || b.score > above);
        !clash && !a.has_met(b)
    }

    /// Whether a player may be the one without an opponent.
    pub(super) fn may_sit_out(&self, card: &Card) -> bool {
        card.bye_allowed && self.bye_score == Some(card.score)
    }
}

/// The players that matter for a bracket, the best first, and after them the bye if their number is
/// odd.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bracket<'a> {
    pub(super) rules: &'a Rules,
    pub(super) cards: &'a [&'a Card],
    /// The number of players that moved down into the bracket. They come first.
    pub(super) moved: usize,
    /// The number of players in the bracket.
    pub(super) end: usize,
    /// The number of players in the bracket and in the next score group.
    pub(super) next_end: usize,
    /// The number of vertices for players of lower score groups that are left out: from
    /// `exits_from` on, players can be matched with those.
    pub(super) exits: usize,
    pub(super) exits_from: usize,
    /// Whether the only player of the bracket without an opponent gets the bye.
    pub(super) bye_is_last: bool,
}

/// A score, and the bits for the number of players with it.
#[derive(Clone, Copy, Debug)]
struct Level {
    score: u32,
    bits: u32,
}

/// The weights of all edges of a bracket.
#[derive(Debug)]
pub(super) struct Criteria<'a> {
    bracket: Bracket<'a>,
    /// Bits for the pairs of the bracket, and for pairs in it and the next score group.
    pairs: u32,
    next_pairs: u32,
    /// The scores of players that moved down, and those of all players of the bracket.
    moved: Vec<Level>,
    all: Vec<Level>,
    bye: u32,
    /// Bits for pairs of top scorers.
    top: u32,
    colours: u32,
    /// Bits for players that floated down, and for pairs whose lower player floated up, each in
    /// the previous round and in the round before it.
    floats: [FloatBits; 2],
}

/// Bits for the floats of one earlier round.
#[derive(Clone, Copy, Debug)]
struct FloatBits {
    /// The number of residents that floated down.
    down: u32,
    /// The number of pairs of moved players whose opponent did not float up.
    up: u32,
    /// Whether a moved player floated down.
    moved_down: bool,
}

/// The bits of a number from 0 to `most`.
pub(super) fn bits(most: usize) -> u32 {
    usize::BITS - most.leading_zeros()
}

/// The different scores of cards in order, and how many have each.
fn levels(cards: &[&Card]) -> Vec<Level> {
    let groups = cards.chunk_by(|a, b| a.score == b.score);
    groups.map(|group| Level { score: group[0].score, bits: bits(group.len()) }).collect()
}

impl<'a> Criteria<'a> {
    /// The criteria of a bracket.
    pub(super) fn new(bracket: Bracket<'a>) -> Self {
        let members = &bracket.cards[..bracket.end];
        let residents = &members[bracket.moved..];
        let has_next = bracket.next_end > bracket.end;
        let floats = [0, 1].map(|back| {
            let down = |card: &&&Card| card.floats[back] == Float::Down;
            let up = residents.iter().any(|card| card.floats[back] == Float::Up);
            FloatBits {
                down: bits(residents.iter().filter(down).count()),
                up: if up { bits(bracket.moved) } else { 0 },
                moved_down: members[..bracket.moved].iter().any(|card| down(&card)),
            }
        });
        let clash = |card: &&Card| card.strength == Strength::Absolute;
        let top =
            bracket.rules.top_above.is_some() && members.iter().filter(|c| clash(c)).count() > 1;
        let games = members.iter().map(|card| card.games()).max().unwrap_or(0);
        Self {
            bracket,
            pairs: bits(bracket.end / 2),
            next_pairs: if has_next { bits(bracket.next_end / 2) } else { 0 },
            moved: levels(&members[..bracket.moved]),
            all: if has_next { levels(members) } else { Vec::new() },
            bye: if bracket.bye_is_last { bits(games) } else { 0 },
            top: if top { bits(bracket.end / 2) } else { 0 },
            colours: bits(bracket.end / 2),
            floats,
        }
    }

    /// The bits that a weight needs.
    pub(super) fn bits(&self) -> u32 {
        let of = |levels: &[Level]| levels.iter().map(|level| level.bits).sum::<u32>();
        let moved = of(&self.moved);
        let mut total = self.pairs + moved + self.next_pairs + of(&self.all) + self.bye;
        total += 2 * self.top + 2 * self.colours;
        for floats in self.floats {
            total += floats.down + floats.up;
            total += if floats.moved_down { moved } else { 0 };
            total += if floats.up > 0 { moved } else { 0 };
        }
        total
    }

    /// The weight of the pair of the players at two positions, the smaller first; `None` if they
    /// cannot meet, or if both moved down.
    pub(super) fn weight<W: Weight>(&self, higher: usize, lower: usize) -> Option<W> {
        let bracket = &self.bracket;
        if bracket.exits > 0 && lower >= bracket.cards.len() {
            return (higher >= bracket.exits_from).then_some(W::ZERO);
        }
        let first = bracket.cards[higher];
        let Some(&second) = bracket.cards.get(lower) else {
            return bracket.rules.may_sit_out(first).then(|| self.bye_weight(first));
        };
        if !bracket.rules.may_meet(first, second) {
            return None;
        }
        if lower < bracket.moved {
            return None;
        }
        if lower >= bracket.next_end {
            return Some(W::ZERO);
        }
        let here = lower < bracket.end;
        let count = |is: bool| u64::from(is);
        let mut weight = W::ZERO.append(self.pairs, count(here));
        for level in &self.moved {
            weight = weight.append(level.bits, count(here && level.score == first.score));
        }
        weight = weight.append(self.next_pairs, count(!here));
        for level in &self.all {
            weight = weight.append(level.bits, count(!here && level.score == first.score));
        }
        weight = weight.append(self.bye, 0);
        if here {
            Some(self.quality(weight, first, second, higher < bracket.moved))
        } else {
            let rest = self.bits_below_bye();
            Some(weight.append(rest, 0))
        }
    }

    /// The bits of the criteria from C10 on.
    fn bits_below_bye(&self) -> u32 {
        let of = |levels: &[Level]| levels.iter().map(|level| level.bits).sum::<u32>();
        self.bits() - self.pairs - of(&self.moved) - self.next_pairs - of(&self.all) - self.bye
    }

    /// The weight of a player's bye (C9).
    fn bye_weight<W: Weight>(&self, card: &Card) -> W {
        let games = if self.bracket.bye_is_last { card.games() as u64 } else { 0 };
        W::ZERO.append(0, games).append(self.bits_below_bye(), 0)
    }

    /// Appends the criteria from C10 on.
    fn quality<W: Weight>(&self, before: W, first: &Card, second: &Card, moved: bool) -> W {
        let count = |is: bool| u64::from(is);
        let mut weight = before;
        if self.top > 0 {
            weight = weight.append(self.top, count(!colours::unbalances(first, second)));
            weight = weight.append(self.top, count(!colours::repeats_twice(first, second)));
        }
        weight = weight.append(self.colours, count(!first.wants_same(second)));
        weight = weight.append(self.colours, count(!colours::denies_strong(first, second)));
        for (back, bits) in self.floats.iter().enumerate() {
            let down = |card: &Card| card.floats[back] == Float::Down;
            let residents = count(down(second)) + count(!moved && down(first));
            weight = weight.append(bits.down, residents);
            let up = second.floats[back] == Float::Up;
            weight = weight.append(bits.up, count(bits.up > 0 && moved && !up));
        }
        for (back, bits) in self.floats.iter().enumerate() {
            if bits.moved_down {
                let down = moved && first.floats[back] == Float::Down;
                weight = self.append_score(weight, down, first.score);
            }
            if bits.up > 0 {
                let fine = moved && second.floats[back] != Float::Up;
                weight = self.append_score(weight, fine, first.score);
            }
        }
        weight
    }

    /// Appends a count for each score of moved players: 1 for one score.
    fn append_score<W: Weight>(&self, before: W, is: bool, score: u32) -> W {
        let append = |weight: W, level: &Level| {
            weight.append(level.bits, u64::from(is && level.score == score))
        };
        self.moved.iter().fold(before, append)
    }
}
