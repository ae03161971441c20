//! Compares the pairings of small fields with the best ones of all pairings, found by trying all,
//! and the shorter ways with the thorough ones.

use std::collections::HashSet;

use super::upfloaters::Sight;
use super::*;
use crate::mix;
use crate::swiss::card::cards;
use crate::swiss::{Forgotten, Player, Round, Swiss, Variant};

/// The rules as they are written. Players are positions in the list of cards.
struct Oracle<'a> {
    cards: &'a [Card],
    last: bool,
}

/// The pairs, each with the lower pairing number first, and the bye.
type Paired = (HashSet<(usize, usize)>, Option<usize>);

impl Oracle<'_> {
    /// All pairings of some players.
    fn pairings(&self, players: &[usize]) -> Vec<Vec<(usize, usize)>> {
        let Some((&first, others)) = players.split_first() else { return vec![Vec::new()] };
        let meets = |other: &&usize| !self.cards[first].has_met(&self.cards[**other]);
        let mut found = Vec::new();
        for &other in others.iter().filter(meets) {
            let rest: Vec<usize> = others.iter().copied().filter(|at| *at != other).collect();
            for mut pairs in self.pairings(&rest) {
                pairs.push((first, other));
                found.push(pairs);
            }
        }
        found
    }

    /// Whether some players can all be paired.
    fn can_pair(&self, players: &[usize]) -> bool {
        let Some((&first, others)) = players.split_first() else { return true };
        others.iter().any(|&other| {
            let rest: Vec<usize> = others.iter().copied().filter(|at| *at != other).collect();
            !self.cards[first].has_met(&self.cards[other]) && self.can_pair(&rest)
        })
    }

    /// All subsets of some players, each with the others.
    fn splits(players: &[usize]) -> Vec<(Vec<usize>, Vec<usize>)> {
        let subset = |mask: usize| {
            let taken = |at: &usize| mask >> at & 1 == 1;
            let (inside, outside): (Vec<usize>, Vec<usize>) = (0..players.len()).partition(taken);
            let of = |places: Vec<usize>| places.into_iter().map(|at| players[at]).collect();
            (of(inside), of(outside))
        };
        (0..1 << players.len()).map(subset).collect()
    }

    /// The fewest players who must move up to the next score group (C6).
    fn needed_next(&self, score: u32, open: &[usize]) -> usize {
        let scores = self.cards.iter().map(|card| card.score);
        let below = scores.filter(|other| *other < score).max();
        let has_it = |at: &usize| Some(self.cards[*at].score) == below;
        let (group, lower): (Vec<usize>, Vec<usize>) = open.iter().copied().partition(has_it);
        if group.is_empty() {
            return 0;
        }
        let possible = Self::splits(&lower).into_iter().filter(|(moving, rest)| {
            self.can_pair(&[&group[..], moving].concat()) && self.can_pair(rest)
        });
        possible.map(|(moving, _)| moving.len()).min().unwrap()
    }

    /// The players who move up (3.5).
    fn moving(&self, top: &[usize], lower: &[usize]) -> Vec<usize> {
        let scores = |moving: &[usize]| {
            let mut scores: Vec<u32> = moving.iter().map(|at| self.cards[*at].score).collect();
            scores.sort_unstable();
            (moving.len(), Reverse(scores))
        };
        let mut possible = Self::splits(lower);
        possible
            .retain(|(moving, rest)| self.can_pair(&[top, moving].concat()) && self.can_pair(rest));
        let best = possible.iter().map(|(moving, _)| scores(moving)).min().unwrap();
        possible.retain(|(moving, _)| scores(moving) == best);
        let key = |(moving, rest): &(Vec<usize>, Vec<usize>)| {
            let next = self.needed_next(self.cards[top[0]].score, rest);
            let repeats = moving.iter().filter(|at| !self.last && floated(&self.cards[**at]));
            let mut order: Vec<_> = moving
                .iter()
                .map(|at| (Reverse(self.cards[*at].score), self.cards[*at].number))
                .collect();
            order.sort_unstable();
            let numbers: Vec<usize> = order.into_iter().map(|(_, number)| number).collect();
            (next, repeats.count(), numbers)
        };
        possible.into_iter().min_by_key(key).unwrap().0
    }

    /// The pairs of a bracket (3.6).
    fn bracket(&self, top: &[usize], moving: &[usize]) -> Vec<(usize, usize)> {
        let number = |at: usize| self.cards[at].number;
        let sorted = |pairs: Vec<(usize, usize)>| {
            let order =
                |(a, b): (usize, usize)| if number(a) < number(b) { (a, b) } else { (b, a) };
            let mut pairs: Vec<(usize, usize)> = pairs.into_iter().map(order).collect();
            pairs.sort_by_key(|pair| number(pair.0));
            pairs
        };
        let key = |pairs: &Vec<(usize, usize)>| {
            let both = pairs.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
            let against = both.filter(|(mover, opponent)| {
                moving.contains(mover) && !self.last && floated(&self.cards[*opponent])
            });
            let tops = pairs.iter().map(|pair| number(pair.0));
            let identifier: Vec<usize> = tops.chain(pairs.iter().map(|p| number(p.1))).collect();
            (against.count(), identifier)
        };
        let all = self.pairings(&[top, moving].concat()).into_iter().map(sorted);
        all.min_by_key(key).unwrap()
    }

    /// The pairings of the round; `None` if there are none.
    fn pair(&self) -> Option<Paired> {
        let mut open: Vec<usize> = (0..self.cards.len()).collect();
        let mut bye = None;
        if open.len() % 2 == 1 {
            let mut order: Vec<usize> =
                open.iter().copied().filter(|at| self.cards[*at].bye_allowed).collect();
            order.sort_by_key(|at| {
                let card = &self.cards[*at];
                (card.score, Reverse(card.games()), Reverse(card.number))
            });
            let others = |bye: usize| -> Vec<usize> {
                open.iter().copied().filter(|at| *at != bye).collect()
            };
            let found = order.into_iter().find(|at| self.can_pair(&others(*at)))?;
            open = others(found);
            bye = Some(self.cards[found].player);
        } else if !self.can_pair(&open) {
            return None;
        }
        let mut pairs = HashSet::new();
        while !open.is_empty() {
            let score = open.iter().map(|at| self.cards[*at].score).max();
            let is_top = |at: &usize| Some(self.cards[*at].score) == score;
            let (top, lower): (Vec<usize>, Vec<usize>) = open.iter().copied().partition(is_top);
            let moving = self.moving(&top, &lower);
            for (a, b) in self.bracket(&top, &moving) {
                pairs.insert((self.cards[a].player, self.cards[b].player));
            }
            open = lower.into_iter().filter(|at| !moving.contains(at)).collect();
        }
        Some((pairs, bye))
    }
}

/// A random tournament.
struct Tournament {
    swiss: Swiss,
    players: Vec<Player>,
    seed: u64,
}

impl Tournament {
    /// Before the first round.
    fn new(seed: u64, size: usize, rounds: usize) -> Self {
        let accelerated = if seed % 4 == 1 { Swiss::accelerated_group(size) } else { 0 };
        let swiss = Swiss { rounds, initial: Colour::White, variant: Variant::Double, accelerated };
        let players = vec![Player { rounds: Vec::new(), plays: true }; size];
        Self { swiss, players, seed }
    }

    /// The cards of the next round.
    fn cards(&self) -> Vec<Card> {
        let extra = |player, round| self.swiss.extra(player, round);
        cards(&self.players, Variant::Double, Forgotten::default(), &extra)
    }

    /// Plays a round.
    fn play(&mut self, pairings: &Pairings) {
        let round = self.players[0].rounds.len();
        let number = |at: usize, what: u64| mix([self.seed, round as u64, at as u64, what]);
        for pairing in &pairings.pairs {
            let white = pairing.white;
            let black = pairing.black;
            let forfeit = number(white, 0).is_multiple_of(12);
            let points = u32::try_from(number(white, 1) % 5).unwrap();
            for (player, opponent, colour, points, won) in [
                (white, black, Colour::White, points, true),
                (black, white, Colour::Black, 4 - points, false),
            ] {
                self.players[player].rounds.push(if forfeit {
                    Round::Forfeit { opponent, colour, won }
                } else {
                    Round::Played { opponent, colour, points }
                });
            }
        }
        if let Some(bye) = pairings.bye {
            self.players[bye].rounds.push(Round::PairingBye);
        }
        for at in 0..self.players.len() {
            if self.players[at].rounds.len() == round {
                let points = u32::try_from(number(at, 2) % 3).unwrap() * 2;
                self.players[at].rounds.push(Round::Absent { points });
            }
            self.players[at].plays = !number(at, 3).is_multiple_of(9);
        }
    }
}

#[test]
fn small_fields_get_the_best_of_all_pairings() {
    let mut rounds = 0;
    let mut impossible = 0;
    for seed in 0..700 {
        let size = 4 + usize::try_from(seed % 6).unwrap();
        let mut tournament = Tournament::new(seed, size, 3 + size / 2);
        while tournament.players[0].rounds.len() < tournament.swiss.rounds {
            let cards = tournament.cards();
            let last = tournament.players[0].rounds.len() + 1 == tournament.swiss.rounds;
            let expected = Oracle { cards: &cards, last }.pair();
            let Ok(pairings) = tournament.swiss.next_round(&tournament.players) else {
                assert_eq!(expected, None, "tournament {seed}");
                impossible += 1;
                break;
            };
            let both = pairings.pairs.iter().map(|pair| (pair.white, pair.black));
            let pairs: HashSet<_> = both.map(|(a, b)| (a.min(b), a.max(b))).collect();
            assert_eq!(Some((pairs, pairings.bye)), expected, "tournament {seed}: {cards:?}");
            rounds += 1;
            tournament.play(&pairings);
        }
    }
    assert!(rounds > 2000 && impossible > 50, "{rounds} rounds, {impossible} impossible");
}

#[test]
fn short_ways_find_the_same_upfloaters_and_pairs_as_a_look_at_all_players() {
    let mut parts = 0;
    let mut free = 0;
    let mut halves = 0;
    for seed in 0..24 {
        let size = [60, 110, 301, 301][usize::try_from(seed % 4).unwrap()];
        let mut tournament = Tournament::new(seed, size, 6);
        while tournament.players[0].rounds.len() < tournament.swiss.rounds {
            let cards = tournament.cards();
            let mut open: Vec<&Card> = cards.iter().collect();
            let mut start = 0;
            while start < cards.len() {
                let end = group_end(&open, start);
                if end < cards.len() && (start == 0 || end - start > 60) {
                    let length = (cards.len() - start) / 2 * 2;
                    let below = open.get(end).map(|card| card.score);
                    let all = Sight::all(&open[start..start + length], end - start, below, false);
                    if let (Some(part), Ok(best)) = (all.part(), all.choose()) {
                        let chosen = part.choose().unwrap();
                        if part.confirms(&chosen) {
                            assert_eq!(chosen.moving, best.moving, "tournament {seed}");
                            parts += 1;
                            free += usize::from(part.has_free_tops());
                        }
                    }
                }
                start = end;
            }
            open.truncate(open.len() / 2 * 2);
            let end = group_end(&open, 0);
            let moves_up = |at: &usize| *at >= end;
            let member = |at: usize| Member { card: open[at], moves_up: moves_up(&at) };
            let mut members: Vec<_> = (0..end.next_multiple_of(2)).map(member).collect();
            members.sort_by_key(|member| member.card.number);
            if let Some(pairs) = identifier::pair_halves(&members, false) {
                assert_eq!(Ok(pairs), identifier::pair_thoroughly(&members, false));
                halves += 1;
            }
            let pairings = tournament.swiss.next_round(&tournament.players).unwrap();
            tournament.play(&pairings);
        }
    }
    assert!(parts > 50 && free >= 5 && halves > 100, "{parts} parts, {free} free, {halves} halves");
}

/// The colour of a player with a history against one with another, in the next round.
fn colour_of_first(first: (u32, &str), second: (u32, &str), initial: Colour) -> Colour {
    let colour = |letter| if letter == 'w' { Colour::White } else { Colour::Black };
    let length = first.1.len().max(second.1.len()).max(1);
    let player = |(points, colours): (u32, &str), own: usize| {
        let mut rounds = vec![Round::Absent { points }];
        rounds.resize(1 + length - colours.len(), Round::Absent { points: 0 });
        let played = |(at, letter): (usize, char)| {
            let opponent = 2 + 2 * at + own;
            Round::Played { opponent, colour: colour(letter), points: 0 }
        };
        rounds.extend(colours.chars().enumerate().map(played));
        Player { rounds, plays: true }
    };
    let mut players = vec![player(first, 0), player(second, 1)];
    let rounds = vec![Round::Absent { points: 0 }; players[0].rounds.len()];
    players.extend((0..2 * length).map(|_| Player { rounds: rounds.clone(), plays: false }));
    let swiss = Swiss { rounds: 20, initial, variant: Variant::Double, accelerated: 0 };
    let pairings = swiss.next_round(&players).unwrap();
    if pairings.pairs[0].white == 0 { Colour::White } else { Colour::Black }
}

#[test]
fn colours_of_first_games_follow_article_4() {
    use Colour::{Black, White};
    // Without a match: the initial colour, or the other one, by the higher player's number.
    assert_eq!(colour_of_first((0, ""), (0, ""), White), White);
    assert_eq!(colour_of_first((0, ""), (0, ""), Black), Black);
    assert_eq!(colour_of_first((0, ""), (1, ""), White), White);
    // Fewer times White, whatever the difference to Black.
    assert_eq!(colour_of_first((0, "wbbw"), (0, "w"), White), Black);
    // The latest round with different colours, counted from the end.
    assert_eq!(colour_of_first((0, "wbb"), (0, "bwb"), White), White);
    assert_eq!(colour_of_first((0, "wb"), (0, "bw"), White), White);
    // The other colour for the player with the higher score.
    assert_eq!(colour_of_first((1, "bw"), (0, "bw"), White), Black);
    assert_eq!(colour_of_first((0, "bw"), (1, "bw"), White), White);
    // The other colour for the opponent of a player without a match.
    assert_eq!(colour_of_first((1, ""), (0, "b"), White), Black);
}

#[test]
fn without_history_the_upper_half_meets_the_lower_half() {
    let tournament = Tournament::new(0, 7, 5);
    let pairings = tournament.swiss.next_round(&tournament.players).unwrap();
    let pairs: Vec<_> = pairings.pairs.iter().map(|pair| (pair.white, pair.black)).collect();
    assert_eq!(pairs, [(0, 3), (4, 1), (2, 5)]);
    assert_eq!(pairings.bye, Some(6));
}
