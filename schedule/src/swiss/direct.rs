//! The pairing of a bracket in which all criteria can be met as well as counting allows, without an
//! exchange between the halves. Most brackets are such, and the large ones nearly always.
//!
//! Then all best pairings are the perfect matchings of a graph with two sides: the upper half, and
//! the lower half. If the number of players is odd, the upper side gets a place for the one who
//! stays. The first pairing in the order of the rules gives each player of the upper half in turn
//! the highest opponent for which the others can still be matched. A matching is kept all the
//! time: it changes along a path from the opponent's former partner to the player's former partner.
//! Players are grouped by colour preference, so that a search looks at each player about once.

use std::collections::HashSet;

use super::bracket::Pair;
use super::card::{Card, Float};
use super::criteria::Bracket;
use super::preferences::{Count, Preferences};

/// No partner.
const NONE: usize = usize::MAX;

/// Pairs a bracket. `barred` are players of the tournament who must not stay without a pair. `None`
/// if not all criteria can be met as well as counting allows, or if that is not obvious.
pub(super) fn pair(bracket: &Bracket<'_>, barred: &HashSet<usize>) -> Option<Vec<Pair>> {
    let members = &bracket.cards[..bracket.end];
    let residents = bracket.end.checked_sub(2 * bracket.moved)?;
    let one_stays = residents % 2 == 1;
    // The one who stays has the bye or moves down.
    let may_stay = bracket.bye_is_last || bracket.next_end > bracket.end;
    if bracket.bye_is_last && !one_stays || one_stays && !may_stay {
        return None;
    }
    let preferences = Preferences::new(bracket.rules, members);
    let count = Count::new(members);
    let mut stays =
        if one_stays { Some(Stays::new(bracket, barred, preferences, count)?) } else { None };
    let mut free: Vec<usize> = (bracket.moved..bracket.end).collect();
    let mut pairs = pair_moved(bracket, preferences, stays.as_mut(), &mut free)?;
    if let Some(staying) = stays {
        let half = free.len() / 2;
        if !free[half..].iter().any(|at| staying.fits(members[*at])) {
            // One of the upper half must stay, so the first of the lower half takes the place.
            let at = free[..half].iter().rposition(|at| staying.fits(members[*at]))?;
            free.remove(at);
            stays = None;
        }
    }
    let half = free.len() / 2;
    let mut sides = Sides::new(members, preferences, stays, &free);
    sides.match_all()?;
    sides.order()?;
    for (at, mate) in sides.mates[..half].iter().enumerate() {
        pairs.push((free[at], free[half + mate]));
    }
    Some(pairs)
}

/// Gives each moved player in turn the highest opponent that leaves the others a best pairing, as
/// far as counting tells. Removes the opponents from the free players.
fn pair_moved(
    bracket: &Bracket<'_>,
    preferences: Preferences<'_>,
    mut stays: Option<&mut Stays<'_>>,
    free: &mut Vec<usize>,
) -> Option<Vec<Pair>> {
    let members = &bracket.cards[..bracket.end];
    let mut rest = Count::new(members);
    let mut pairs = Vec::new();
    for moved in 0..bracket.moved {
        let first = members[moved];
        rest = rest.without(first);
        let staying = stays.as_deref().copied();
        let mut able_to_stay =
            free.iter().filter(|at| staying.is_some_and(|s| s.fits(members[**at])));
        let last_able = able_to_stay.next().copied().filter(|_| able_to_stay.next().is_none());
        let fits = |other: &usize| {
            let card = members[*other];
            !card.floats.contains(&Float::Up)
                && preferences.fits(first, card)
                && preferences.can_pair(rest.without(card))
                && last_able != Some(*other)
        };
        let at = free.iter().position(fits)?;
        let opponent = free.remove(at);
        rest = rest.without(members[opponent]);
        pairs.push((moved, opponent));
        if let Some(stays) = stays.as_mut() {
            stays.rest = rest;
        }
    }
    Some(pairs)
}

/// What makes a player fit to stay without a pair.
#[derive(Clone, Copy, Debug)]
struct Stays<'a> {
    bracket: &'a Bracket<'a>,
    barred: &'a HashSet<usize>,
    preferences: Preferences<'a>,
    /// The colours of all players without a pair so far.
    rest: Count,
    /// The number of games, if the player gets the bye (C9).
    games: Option<usize>,
    /// Whether the player floated down in the previous round, and in the round before it.
    floated: [bool; 2],
}

/// Whether a player floated down in the previous round, and in the round before it.
fn floated(card: &Card) -> [bool; 2] {
    card.floats.map(|float| float == Float::Down)
}

impl<'a> Stays<'a> {
    /// The best that a player who stays can be; `None` if no resident can stay.
    fn new(
        bracket: &'a Bracket<'a>,
        barred: &'a HashSet<usize>,
        preferences: Preferences<'a>,
        rest: Count,
    ) -> Option<Self> {
        let mut stays =
            Self { bracket, barred, preferences, rest, games: None, floated: [false; 2] };
        let residents = &bracket.cards[bracket.moved..bracket.end];
        let able: Vec<&Card> =
            residents.iter().copied().filter(|card| stays.is_able(card)).collect();
        let most = able.iter().map(|card| card.games()).max()?;
        stays.games = bracket.bye_is_last.then_some(most);
        let fits = |card: &&&Card| stays.has_the_games(card) && stays.suits_the_rest(card);
        stays.floated = able.iter().filter(fits).map(|card| floated(card)).min()?;
        Some(stays)
    }

    /// Whether a player may stay at all.
    fn is_able(&self, card: &Card) -> bool {
        let may_sit_out = !self.bracket.bye_is_last || self.bracket.rules.may_sit_out(card);
        may_sit_out && !self.barred.contains(&card.player)
    }

    /// Whether a player has the number of games for the bye.
    fn has_the_games(&self, card: &Card) -> bool {
        self.games.is_none_or(|games| card.games() == games)
    }

    /// Whether the others can have the best colours without a player.
    fn suits_the_rest(&self, card: &Card) -> bool {
        self.preferences.may_stay(card) && self.preferences.can_pair(self.rest.without(card))
    }

    /// Whether a player is as good as possible for staying.
    fn fits(&self, card: &Card) -> bool {
        self.is_able(card)
            && self.has_the_games(card)
            && self.suits_the_rest(card)
            && floated(card) == self.floated
    }
}

/// The graph with two sides of equal size, and a matching of them.
struct Sides<'a> {
    preferences: Preferences<'a>,
    stays: Option<Stays<'a>>,
    /// The players of the upper half. The last place of the upper side may be for the one who
    /// stays.
    upper: Vec<&'a Card>,
    lower: Vec<&'a Card>,
    /// The lower partner of each place of the upper side, and the upper partner of each lower one.
    mates: Vec<usize>,
    owners: Vec<usize>,
    /// The kinds of cards, and the kind of each place of both sides.
    kinds: Kinds<'a>,
}

/// Cards of the same preference and strength are of one kind.
struct Kinds<'a> {
    examples: Vec<&'a Card>,
    upper: Vec<usize>,
    lower: Vec<usize>,
}

impl<'a> Kinds<'a> {
    /// The kinds of the cards of both sides. A place for the one who stays has a kind of no card.
    fn new(upper: &[&'a Card], lower: &[&'a Card]) -> Self {
        let mut examples: Vec<&Card> = Vec::new();
        let mut kind = |card: &&'a Card| {
            let same = |other: &&Card| {
                other.preference == card.preference && other.strength == card.strength
            };
            examples.iter().position(same).unwrap_or_else(|| {
                examples.push(card);
                examples.len() - 1
            })
        };
        let mut upper: Vec<usize> = upper.iter().map(&mut kind).collect();
        let lower: Vec<usize> = lower.iter().map(kind).collect();
        if lower.len() > upper.len() {
            upper.push(examples.len());
        }
        Self { examples, upper, lower }
    }

    /// The places of a side by kind.
    fn lists(&self, kinds: &[usize], takes: impl Fn(usize) -> bool) -> Vec<Vec<usize>> {
        let mut lists = vec![Vec::new(); self.examples.len() + 1];
        for (place, kind) in kinds.iter().enumerate().rev() {
            if takes(place) {
                lists[*kind].push(place);
            }
        }
        lists
    }
}

impl<'a> Sides<'a> {
    /// The two halves of the players at some positions, without a matching.
    fn new(
        members: &[&'a Card],
        preferences: Preferences<'a>,
        stays: Option<Stays<'a>>,
        free: &[usize],
    ) -> Self {
        let half = free.len() / 2;
        let cards: Vec<&Card> = free.iter().map(|at| members[*at]).collect();
        let upper = cards[..half].to_vec();
        let lower = cards[half..].to_vec();
        let kinds = Kinds::new(&upper, &lower);
        let places = lower.len();
        let mates = vec![NONE; places];
        let owners = vec![NONE; places];
        Self { preferences, stays, upper, lower, mates, owners, kinds }
    }

    /// Whether a place of the upper side and a lower player can be matched.
    fn fits(&self, upper: usize, lower: usize) -> bool {
        let card = self.lower[lower];
        match self.upper.get(upper) {
            Some(other) => self.preferences.fits(other, card),
            None => self.stays.is_some_and(|stays| stays.fits(card)),
        }
    }

    /// Whether places of two kinds may be matched, as far as their kinds tell.
    fn kinds_fit(&self, upper: usize, lower: usize) -> bool {
        let other = self.kinds.examples.get(lower);
        let (Some(card), Some(other)) = (self.kinds.examples.get(upper), other) else {
            return true;
        };
        self.preferences.suits(card, other)
    }

    /// Matches all places, if possible.
    fn match_all(&mut self) -> Option<()> {
        let mut open: Vec<usize> = (0..self.lower.len()).collect();
        for upper in 0..self.mates.len() {
            if let Some(at) = open.iter().position(|lower| self.fits(upper, *lower)) {
                let lower = open.remove(at);
                self.mates[upper] = lower;
                self.owners[lower] = upper;
            }
        }
        for upper in 0..self.mates.len() {
            if self.mates[upper] == NONE {
                self.augment(upper)?;
            }
        }
        Some(())
    }

    /// Matches a place of the upper side along a path to a free lower player.
    fn augment(&mut self, root: usize) -> Option<()> {
        let mut lists = self.kinds.lists(&self.kinds.lower, |_| true);
        let mut from = vec![NONE; self.lower.len()];
        let mut queue = vec![root];
        while let Some(upper) = queue.pop() {
            for (kind, list) in lists.iter_mut().enumerate() {
                if !self.kinds_fit(self.kinds.upper[upper], kind) {
                    continue;
                }
                let mut left = Vec::new();
                for lower in std::mem::take(list) {
                    if !self.fits(upper, lower) {
                        left.push(lower);
                        continue;
                    }
                    from[lower] = upper;
                    if self.owners[lower] == NONE {
                        self.shift(lower, &from);
                        return Some(());
                    }
                    queue.push(self.owners[lower]);
                }
                *list = left;
            }
        }
        None
    }

    /// Matches along the path that `from` tells, back from a free lower player.
    fn shift(&mut self, last: usize, from: &[usize]) {
        let mut lower = last;
        while lower != NONE {
            let upper = from[lower];
            let next = self.mates[upper];
            self.mates[upper] = lower;
            self.owners[lower] = upper;
            lower = next;
        }
    }

    /// Gives each player of the upper half in turn the highest possible opponent.
    fn order(&mut self) -> Option<()> {
        let mut open: Vec<usize> = (0..self.lower.len()).collect();
        for upper in 0..self.upper.len() {
            let mut ways: Option<Vec<usize>> = None;
            let mut found = None;
            for (at, &lower) in open.iter().enumerate() {
                if self.mates[upper] == lower {
                    found = Some(at);
                    break;
                }
                if !self.fits(upper, lower) {
                    continue;
                }
                let owner = self.owners[lower];
                let old = self.mates[upper];
                if self.fits(owner, old) {
                    self.mates[owner] = old;
                    self.owners[old] = owner;
                } else {
                    let ways = ways.get_or_insert_with(|| self.ways(upper));
                    if ways[owner] == NONE {
                        continue;
                    }
                    self.follow(owner, old, ways);
                }
                self.mates[upper] = lower;
                self.owners[lower] = upper;
                found = Some(at);
                break;
            }
            open.remove(found?);
        }
        Some(())
    }

    /// For each place of the upper side after `settled` the lower player that it takes on a way to
    /// free the present partner of `settled`; `NONE` if there is no way.
    fn ways(&self, settled: usize) -> Vec<usize> {
        let mut lists = self.kinds.lists(&self.kinds.upper, |upper| upper > settled);
        let mut ways = vec![NONE; self.mates.len()];
        let mut queue = vec![self.mates[settled]];
        while let Some(lower) = queue.pop() {
            for (kind, list) in lists.iter_mut().enumerate() {
                if !self.kinds_fit(kind, self.kinds.lower[lower]) {
                    continue;
                }
                let mut left = Vec::new();
                for upper in std::mem::take(list) {
                    if self.fits(upper, lower) {
                        ways[upper] = lower;
                        queue.push(self.mates[upper]);
                    } else {
                        left.push(upper);
                    }
                }
                *list = left;
            }
        }
        ways
    }

    /// Moves partners along a way, from a place whose partner is taken to the place that takes
    /// `last`.
    fn follow(&mut self, first: usize, last: usize, ways: &[usize]) {
        let mut upper = first;
        loop {
            let lower = ways[upper];
            let next = self.owners[lower];
            self.mates[upper] = lower;
            self.owners[lower] = upper;
            if lower == last {
                return;
            }
            upper = next;
        }
    }
}
