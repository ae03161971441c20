//! A Swiss tournament of bots in progress: its rounds so far, its standings, and the matches that
//! follow.
//!
//! The pairing numbers of FIDE's rules are the bots' numbers. A meeting is worth a point: for two
//! games two of them. Where nearly all bots have met, the rules leave no pairing. Then the meetings
//! and byes of the first rounds are forgotten, of as few rounds as possible, and if necessary the
//! colours. So every round is played, and no two bots meet again while all can be paired otherwise.

use core::cmp::Ordering;
use core::fmt;

use arbiter_games::Score;

use super::history::{Colour, Forgotten, Player, Round};
use super::round::{Pairing, Pairings, Swiss};
use super::rules::SwissRules;
use super::standings::{Standing, standings};
use super::trf::{TrfError, trf};
use crate::planned_match::counted;
use crate::rounds::Rounds;
use crate::seeded_mix::{NameKey, mix};
use crate::{Bot, MatchBounds, PlannedMatch};

/// A key of [`mix`], so that the first colour is independent of other random choices.
const FIRST_COLOUR: u64 = 6;

/// A Swiss tournament when all planned matches are played.
#[derive(Clone, Debug)]
pub struct SwissTournament {
    rules: SwissRules,
    system: Swiss,
    /// The bots in the order of their numbers.
    numbered: Vec<Bot>,
    /// The players in the order of their numbers.
    players: Vec<Player>,
    /// The next round; none after the last one.
    next: Pairings,
}

/// A meeting of a Swiss tournament.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwissMeeting {
    /// The bots; the first one has seat 1 in the first game.
    pub bots: [Bot; 2],
    /// Their points, in half points; `None` until it is played.
    pub points: Option<[u32; 2]>,
}

/// A round of a Swiss tournament.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwissRound {
    /// The meetings, from the bots with the most points on.
    pub meetings: Vec<SwissMeeting>,
    /// The bot without an opponent, if the number of bots is odd.
    pub bye: Option<Bot>,
}

impl SwissTournament {
    /// The tournament of these bots before the first match. There are two bots or more.
    pub(super) fn new(rules: SwissRules, names: &[NameKey]) -> Self {
        let numbered = rules.seeding.numbered(names);
        let first = numbered.first().map_or(0, |bot| names[usize::from(*bot)].0);
        let is_white_first = mix([FIRST_COLOUR, first]) & 1 == 0;
        let bots = names.len();
        let system = Swiss {
            rounds: rules.round_count(bots),
            initial: if is_white_first { Colour::White } else { Colour::Black },
            variant: rules.games.0,
            accelerated: if rules.accelerated { Swiss::accelerated_group(bots) } else { 0 },
        };
        let players = vec![Player { rounds: Vec::new(), plays: true }; bots];
        let next = pair(&system, &players);
        Self { rules, system, numbered, players, next }
    }

    /// The options.
    pub fn rules(&self) -> SwissRules {
        self.rules
    }

    /// The bots in the order of their numbers.
    pub fn numbered(&self) -> &[Bot] {
        &self.numbered
    }

    /// The number of rounds of the whole tournament.
    pub fn round_count(&self) -> usize {
        self.system.rounds
    }

    /// The number of rounds that are over.
    pub fn finished_rounds(&self) -> usize {
        self.players.first().map_or(0, |player| player.rounds.len())
    }

    /// A round that is over, or the one that follows; its number is from 0. Empty after the last
    /// one.
    pub fn round(&self, number: usize) -> SwissRound {
        let bot = |player: usize| self.numbered[player];
        if number >= self.finished_rounds() {
            let meeting = |pairing: &Pairing| SwissMeeting {
                bots: [bot(pairing.white), bot(pairing.black)],
                points: None,
            };
            let meetings = self.next.pairs.iter().map(meeting).collect();
            return SwissRound { meetings, bye: self.next.bye.map(bot) };
        }
        let before = standings(&self.players, self.system.variant, number);
        let mut order: Vec<usize> = (0..self.players.len()).collect();
        order.sort_by_key(|player| (before[*player].rank, *player));
        let mut round = SwissRound { meetings: Vec::new(), bye: None };
        let mut is_listed = vec![false; order.len()];
        for player in order {
            match self.players[player].rounds[number] {
                Round::Played { opponent, .. } if is_listed[opponent] => {}
                Round::Played { opponent, colour, points } => {
                    let mut bots = [bot(player), bot(opponent)];
                    let mut both = [points, self.system.variant.win() - points];
                    if colour == Colour::Black {
                        bots.reverse();
                        both.reverse();
                    }
                    round.meetings.push(SwissMeeting { bots, points: Some(both) });
                }
                _ => round.bye = Some(bot(player)),
            }
            is_listed[player] = true;
        }
        round
    }

    /// The standing of each bot after this many rounds, in the order of the bots.
    pub fn standings(&self, rounds: usize) -> Vec<Standing> {
        let by_number = standings(&self.players, self.system.variant, rounds);
        let mut by_bot = by_number.clone();
        for (bot, standing) in self.numbered.iter().zip(by_number) {
            by_bot[usize::from(*bot)] = standing;
        }
        by_bot
    }

    /// The report in FIDE's format, for the names of the bots.
    ///
    /// # Errors
    /// If the format has no room for the tournament.
    pub fn trf(&self, title: &str, names: &[String]) -> Result<String, TrfError> {
        let name = |bot: &Bot| names.get(usize::from(*bot)).cloned().unwrap_or_default();
        let names: Vec<_> = self.numbered.iter().map(name).collect();
        trf(&self.system, title, &self.players, &names)
    }

    /// The games of a meeting with the number of earlier meetings of its bots.
    fn games(&self, pairing: &Pairing) -> impl Iterator<Item = PlannedMatch> + use<> {
        let has_met = |round: &&Round| matches!(round, Round::Played { opponent, .. } if *opponent == pairing.black);
        let leg = self.players[pairing.white].rounds.iter().filter(has_met).count();
        let leg = u32::try_from(leg).expect("there are at most 1000 rounds");
        let seats = [self.numbered[pairing.white], self.numbered[pairing.black]];
        let swapped = [seats[1], seats[0]];
        let count = self.rules.games.get() as usize;
        [seats, swapped].into_iter().take(count).map(move |seats| PlannedMatch::new(0, leg, seats))
    }

    /// Adds a meeting that was played to the history of both players.
    fn add(&mut self, pairing: Pairing, games: &[Vec<Score>]) {
        let variant = self.system.variant;
        // The bot that has seat 1 in the first game has seat 2 in the second one.
        let points =
            |(scores, seat): (&Vec<Score>, usize)| half_points(&scores[seat], &scores[1 - seat]);
        let white: u32 = games.iter().zip([0, 1]).map(points).sum();
        let both = [
            (pairing.white, pairing.black, Colour::White, white),
            (pairing.black, pairing.white, Colour::Black, variant.win() - white),
        ];
        for (player, opponent, colour, points) in both {
            self.players[player].rounds.push(Round::Played { opponent, colour, points });
        }
    }
}

/// The half points in a game of a bot with this score, against a bot with the other one.
pub fn half_points(own: &Score, other: &Score) -> u32 {
    match own.cmp(other) {
        Ordering::Greater => 2,
        Ordering::Equal => 1,
        Ordering::Less => 0,
    }
}

/// The next round; empty after the last one.
fn pair(system: &Swiss, players: &[Player]) -> Pairings {
    let played = players.first().map_or(0, |player| player.rounds.len());
    if played >= system.rounds {
        return Pairings::default();
    }
    let paired = |meetings: usize, colours: bool| {
        system.next_round_without(players, Forgotten { meetings, colours }).ok()
    };
    if let Some(pairings) = paired(0, false) {
        return pairings;
    }
    // Players that can be paired when less is forgotten can be paired when more is.
    let counts: Vec<usize> = (0..=played).collect();
    let fewest = counts.partition_point(|meetings| paired(*meetings, true).is_none());
    let pairings = paired(fewest, false).or_else(|| paired(fewest, true));
    pairings.expect("players without a history can be paired")
}

impl Rounds for SwissTournament {
    fn bots(&self) -> usize {
        self.players.len()
    }

    fn seats(&self) -> usize {
        2
    }

    fn matches(&self) -> Vec<PlannedMatch> {
        self.next.pairs.iter().flat_map(|pairing| self.games(pairing)).collect()
    }

    fn is_over(&self) -> bool {
        self.next.pairs.is_empty()
    }

    fn advance(&mut self, results: &[Vec<Score>]) {
        let played = core::mem::take(&mut self.next);
        let games = self.rules.games.get() as usize;
        for (pairing, results) in played.pairs.iter().zip(results.chunks(games)) {
            self.add(*pairing, results);
        }
        if let Some(bye) = played.bye {
            self.players[bye].rounds.push(Round::PairingBye);
        }
        self.next = pair(&self.system, &self.players);
    }

    fn ranks(&self) -> Vec<u32> {
        let standings = self.standings(self.finished_rounds());
        standings.iter().map(|standing| standing.rank).collect()
    }

    fn bounds(&self) -> MatchBounds {
        MatchBounds::exact(self.rules.matches(self.players.len()))
    }
}

/// A summary in one line, for people.
impl fmt::Display for SwissTournament {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Swiss of {}", counted(self.round_count(), "round", "rounds"))
    }
}
