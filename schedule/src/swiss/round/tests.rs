//! Compares the quick ways to pair a bracket with a look at all players.

use super::*;
use crate::mix;
use crate::swiss::card::{Float, Strength};

/// A kind of random tournament.
#[derive(Clone, Copy, Debug)]
struct Kind {
    seed: u64,
    size: usize,
    rounds: usize,
    /// The percentage of drawn games.
    draws: u64,
    /// The percentage of players that do not take part in a round.
    absences: u64,
}

impl Kind {
    /// Plays a random round.
    fn play(self, players: &mut [Player], pairings: &Pairings) {
        let round = players[0].rounds.len();
        for pairing in &pairings.pairs {
            let number = mix([self.seed, round as u64, pairing.white as u64]);
            let drawn = number % 100 < self.draws;
            let white = if drawn { 1 } else { 2 * u32::try_from(number / 100 % 2).unwrap() };
            let both = [
                (pairing.white, pairing.black, Colour::White, white),
                (pairing.black, pairing.white, Colour::Black, 2 - white),
            ];
            for (player, opponent, colour, points) in both {
                players[player].rounds.push(Round::Played { opponent, colour, points });
            }
        }
        if let Some(bye) = pairings.bye {
            players[bye].rounds.push(Round::PairingBye);
        }
        for (index, player) in players.iter_mut().enumerate() {
            if player.rounds.len() == round {
                player.rounds.push(Round::Absent { points: 0 });
            }
            let number = mix([self.seed, round as u64, index as u64, 1]);
            player.plays = number % 100 >= self.absences;
        }
    }

    /// Compares all rounds of a tournament.
    fn compare(self, ways: &mut Ways) {
        let accelerated = self.seed % 3 == 1;
        let swiss = Swiss {
            rounds: self.rounds.min(self.size - 2),
            initial: Colour::White,
            variant: Variant::Single,
            accelerated: if accelerated { Swiss::accelerated_group(self.size) } else { 0 },
        };
        let mut players = vec![Player { rounds: Vec::new(), plays: true }; self.size];
        while players[0].rounds.len() < swiss.rounds {
            let Ok(pairings) = swiss.next_round(&players) else { break };
            ways.compare(&swiss, &players, self);
            self.play(&mut players, &pairings);
        }
    }
}

/// How often a bracket was paired in a certain way.
#[derive(Clone, Copy, Debug, Default)]
struct Ways {
    /// Quickly.
    direct: usize,
    /// Quickly, and a moved player did not get the first opponent that suits the two.
    spared_opponent: usize,
    /// Quickly, and one of the upper half stays.
    upper_stays: usize,
    /// Quickly, but the first player found to move down was not best for those below.
    second_mover: usize,
    /// Quickly, in the last round, with top scorers that have the same absolute preference.
    absolutes: usize,
}

impl Ways {
    /// Pairs each bracket of a round twice: by the shortest way, and by looking at all players.
    fn compare(&mut self, swiss: &Swiss, players: &[Player], kind: Kind) {
        let cards = cards(players, swiss.variant, Forgotten::default(), &|player, round| {
            swiss.extra(player, round)
        });
        let played = players[0].rounds.len();
        let half = u32::try_from(played).unwrap();
        let is_last = played + 1 == swiss.rounds;
        let rules = Rules { top_above: is_last.then_some(half), bye_score: None };
        let mut cards: Vec<&Card> = cards.iter().collect();
        let rules = with_bye_score(rules, &cards).unwrap();
        let mut moved = 0;
        while cards.len() > 1 {
            let end = group_end(&cards, moved);
            let bracket = bracket_of(&rules, &cards, moved, end);
            let mut quick = pair_bracket(&bracket).unwrap();
            let mut thorough = bracket::pair(bracket).unwrap();
            if let Some(pairs) = pair_directly(&bracket).filter(|_| end > 1) {
                self.count(&bracket, &pairs);
            }
            quick.sort_unstable();
            thorough.sort_unstable();
            assert_eq!(quick, thorough, "{kind:?}, round {}", played + 1);
            let below = cards.len() - end;
            cards = rest(&cards, end, &quick);
            moved = cards.len() - below;
            if below == 0 {
                break;
            }
        }
    }

    /// Counts a bracket that was paired quickly.
    fn count(&mut self, bracket: &Bracket<'_>, pairs: &[Pair]) {
        let Bracket { rules, cards, moved, end, .. } = *bracket;
        self.direct += 1;
        let suits = |at: usize, other: usize| {
            let meets = rules.may_meet(cards[at], cards[other]);
            meets && !cards[other].floats.contains(&Float::Up)
        };
        let spared = |&(at, opponent): &Pair| {
            let free = |other: &usize| !pairs[..at].iter().any(|pair| pair.1 == *other);
            let first = (moved..end).filter(free).find(|other| suits(at, *other));
            first.is_some_and(|first| opponent != first)
        };
        self.spared_opponent += usize::from(pairs[..moved].iter().any(spared));
        let paired: Vec<usize> = pairs.iter().flat_map(|pair| [pair.0, pair.1]).collect();
        if let Some(stays) = (moved..end).find(|at| !paired.contains(at)) {
            let higher = pairs[moved..].iter().flat_map(|pair| [pair.0, pair.1]);
            let higher = higher.filter(|at| *at < stays).count();
            self.upper_stays += usize::from(higher < (end - 2 * moved) / 2);
            let first = direct::pair(bracket, &HashSet::new()).unwrap();
            let moves = first.iter().any(|pair| pair.0 == stays || pair.1 == stays);
            self.second_mover += usize::from(moves);
        }
        let absolute = |colour: Colour| {
            let wants = |card: &&&Card| card.preference == Some(colour);
            let members = cards[..end].iter().filter(wants);
            members.filter(|card| card.strength == Strength::Absolute).count() > 1
        };
        let top = rules.top_above.is_some_and(|above| cards[end - 1].score > above);
        let clash = [Colour::White, Colour::Black].into_iter().any(absolute);
        self.absolutes += usize::from(top && clash);
    }
}

#[test]
fn short_ways_find_the_same_pairings_as_a_look_at_all_players() {
    let mut ways = Ways::default();
    for seed in 0..60 {
        let size = [5, 8, 13, 30, 61, 150][usize::try_from(seed % 6).unwrap()];
        Kind { seed, size, rounds: 7, draws: 33, absences: 5 }.compare(&mut ways);
    }
    for seed in 60..360 {
        let size = 9 + usize::try_from(seed % 41).unwrap();
        let rounds = 4 + usize::try_from(seed % 4).unwrap();
        let draws = [50, 90, 99][usize::try_from(seed / 3 % 3).unwrap()];
        let absences = [0, 2, 25][usize::try_from(seed / 9 % 3).unwrap()];
        Kind { seed, size, rounds, draws, absences }.compare(&mut ways);
    }
    let each = [ways.spared_opponent, ways.upper_stays, ways.second_mover, ways.absolutes];
    assert!(ways.direct > 1000 && each.into_iter().all(|count| count >= 10), "{ways:?}");
}
