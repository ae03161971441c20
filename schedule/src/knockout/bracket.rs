//! A bracket in progress: the rounds so far, and the matches that follow.

use core::cmp::Ordering;
use core::{fmt, mem};

use arbiter_games::Score;

use super::{Knockout, SIDES};
use crate::planned_match::counted;
use crate::rounds::{Rounds, add_score};
use crate::seeded_mix::{NameKey, mix};
use crate::{Bot, MatchBounds, Pairing, PlannedMatch};

/// A knockout at a point in time, when all planned matches are played.
#[derive(Clone, Debug)]
pub struct Bracket {
    rules: Knockout,
    names: Vec<NameKey>,
    /// The bots in the order of their numbers.
    numbered: Vec<Bot>,
    /// The number of each bot, from 0.
    numbers: Vec<usize>,
    /// The rounds so far, each with its fixtures from the top of the bracket. Only the last one can
    /// have meetings that are not decided. A meeting for the third place follows the final.
    rounds: Vec<Vec<Fixture>>,
    /// The matches that follow, each with the index of its fixture in the last round.
    next: Vec<(usize, Pairing)>,
}

/// A part of a round: two bots meet, or one advances without an opponent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fixture {
    /// The bot advances without a match.
    Bye(Bot),
    /// Two bots meet.
    Meeting(Meeting),
}

/// Two bots that meet, and their games so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// The bots, the one with the better number first.
    pub bots: [Bot; 2],
    /// The number of games.
    pub games: u32,
    /// The sums of the scores of both bots: one number for each component.
    pub scores: [Vec<i128>; 2],
    /// How it ended; `None` until it is decided.
    pub decision: Option<Decision>,
}

/// How a meeting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The winner.
    pub winner: Bot,
    /// The loser.
    pub loser: Bot,
    /// The reason.
    pub by: DecidedBy,
}

/// What decided a meeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidedBy {
    /// The scores of the regular games.
    Games,
    /// The scores with those of extra games.
    ExtraGames,
    /// The numbers in the bracket, since the scores were equal.
    Number,
}

impl DecidedBy {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Games => "games",
            Self::ExtraGames => "extra_games",
            Self::Number => "number",
        }
    }
}

impl Meeting {
    fn new(bots: [Bot; 2]) -> Self {
        Self { bots, games: 0, scores: [Vec::new(), Vec::new()], decision: None }
    }

    /// Adds a game: the bots in its seats, and their scores.
    fn add(&mut self, seats: [Bot; 2], scores: &[Score]) {
        self.games += 1;
        for (bot, score) in seats.into_iter().zip(scores) {
            add_score(&mut self.scores[usize::from(bot != self.bots[0])], score);
        }
    }

    /// Decides the meeting, unless its scores are equal and more games follow.
    fn decide(&mut self, rules: Knockout) {
        let [first, second] = self.bots;
        let is_extra = self.games > rules.best_of.get();
        let by = if is_extra { DecidedBy::ExtraGames } else { DecidedBy::Games };
        self.decision = match self.scores[0].cmp(&self.scores[1]) {
            Ordering::Greater => Some(Decision { winner: first, loser: second, by }),
            Ordering::Less => Some(Decision { winner: second, loser: first, by }),
            Ordering::Equal if self.games >= rules.max_games() => {
                Some(Decision { winner: first, loser: second, by: DecidedBy::Number })
            }
            Ordering::Equal => None,
        };
    }
}

impl Fixture {
    /// The bot that advances; `None` if that is not decided.
    pub fn winner(&self) -> Option<Bot> {
        match self {
            Self::Bye(bot) => Some(*bot),
            Self::Meeting(meeting) => meeting.decision.map(|decision| decision.winner),
        }
    }

    /// The bot that is out, if it is decided.
    pub fn loser(&self) -> Option<Bot> {
        match self {
            Self::Bye(_) => None,
            Self::Meeting(meeting) => meeting.decision.map(|decision| decision.loser),
        }
    }
}

impl Bracket {
    /// The bracket of these bots before the first match. There are two bots or more.
    pub(super) fn new(rules: Knockout, names: &[NameKey]) -> Self {
        let numbered = rules.seeding.numbered(names);
        let places = first_round(numbered.len().next_power_of_two());
        let bot = |number: usize| numbered.get(number).copied();
        let fixture = |pair: &[usize]| match (bot(pair[0]), bot(pair[1])) {
            (Some(first), Some(second)) => Fixture::Meeting(Meeting::new([first, second])),
            (Some(only), None) | (None, Some(only)) => Fixture::Bye(only),
            (None, None) => unreachable!("more than half of the numbers have a bot"),
        };
        let fixtures = places.chunks_exact(2).map(fixture).collect();
        let mut numbers = vec![0; numbered.len()];
        for (number, bot) in numbered.iter().enumerate() {
            numbers[usize::from(*bot)] = number;
        }
        let rounds = vec![fixtures];
        let next = Vec::new();
        let mut bracket = Self { rules, names: names.to_vec(), numbered, numbers, rounds, next };
        bracket.plan_games();
        bracket
    }

    /// The rules.
    pub fn rules(&self) -> Knockout {
        self.rules
    }

    /// The bots in the order of their numbers.
    pub fn numbered(&self) -> &[Bot] {
        &self.numbered
    }

    /// The rounds so far, the first one first. In the final, a meeting for the third place follows
    /// the meeting for the first.
    pub fn rounds(&self) -> &[Vec<Fixture>] {
        &self.rounds
    }

    /// The number of rounds of the whole bracket.
    pub fn round_count(&self) -> usize {
        self.bots().next_power_of_two().trailing_zeros() as usize
    }

    /// The next round; `None` if the last one is not over, or if it was the final.
    fn next_round(&self) -> Option<Vec<Fixture>> {
        let fixtures = self.rounds.last().expect("a bracket has a round");
        let winners: Vec<_> = fixtures.iter().map(Fixture::winner).collect::<Option<_>>()?;
        if self.rounds.len() == self.round_count() {
            return None;
        }
        let meeting = |pair: &[Bot]| Fixture::Meeting(Meeting::new(self.by_number(pair)));
        let mut next: Vec<_> = winners.chunks_exact(2).map(meeting).collect();
        let losers: Vec<_> = fixtures.iter().filter_map(Fixture::loser).collect();
        if self.rules.third_place && next.len() == 1 && losers.len() == 2 {
            next.push(meeting(&losers));
        }
        Some(next)
    }

    /// Two bots, the one with the better number first.
    fn by_number(&self, pair: &[Bot]) -> [Bot; 2] {
        let number = |bot: Bot| self.numbers[usize::from(bot)];
        if number(pair[0]) < number(pair[1]) { [pair[0], pair[1]] } else { [pair[1], pair[0]] }
    }

    /// Plans the games of all meetings of the last round that are not decided.
    fn plan_games(&mut self) {
        let fixtures = self.rounds.last().expect("a bracket has a round");
        let mut next = Vec::new();
        for (index, fixture) in fixtures.iter().enumerate() {
            let Fixture::Meeting(meeting) = fixture else { continue };
            let count = match (meeting.decision, meeting.games) {
                (Some(_), _) => 0,
                (None, 0) => self.rules.best_of.get(),
                (None, _) => 2,
            };
            let games = meeting.games..meeting.games + count;
            next.extend(games.map(|game| (index, self.game(meeting.bots, game))));
        }
        self.next = next;
    }

    /// The game with this number of a meeting, from 0. Seat 1 of the first game is drawn, and sides
    /// are swapped from game to game. The two games of a leg have both sides, also those of an
    /// extra pair after an odd number of games.
    fn game(&self, bots: [Bot; 2], game: u32) -> Pairing {
        let name = |bot: Bot| self.names[usize::from(bot)].0;
        let [first, second] = bots.map(name);
        let low = first.min(second);
        let high = first.max(second);
        let is_low_first = mix([SIDES, low, high]) & 1 == 0;
        let is_swapped = (is_low_first != (low == first)) != (game % 2 == 1);
        let seats = if is_swapped { [bots[1], bots[0]] } else { bots };
        let regular = self.rules.best_of.get();
        let leg = match game.checked_sub(regular) {
            None => game / 2,
            Some(extra) => regular.div_ceil(2) + extra / 2,
        };
        Pairing { board: 0, leg, seats }
    }
}

impl Rounds for Bracket {
    fn bots(&self) -> usize {
        self.names.len()
    }

    fn seats(&self) -> usize {
        2
    }

    /// The matches that follow from the results so far, meeting by meeting.
    fn matches(&self) -> Vec<PlannedMatch> {
        self.next.iter().map(|(_, pairing)| PlannedMatch::from(*pairing)).collect()
    }

    fn is_over(&self) -> bool {
        self.next.is_empty()
    }

    fn bounds(&self) -> MatchBounds {
        self.rules.bounds(self.bots())
    }

    /// The rank of each bot, in the order of the bots. The losers of a round share the best rank
    /// that the bots that stay in leave. Bots that are still in share rank 1.
    fn ranks(&self) -> Vec<u32> {
        let mut ranks = vec![1; self.bots()];
        let mut set = |bot: Bot, rank: u32| ranks[usize::from(bot)] = rank;
        let mut places = self.bots().next_power_of_two();
        for fixtures in &self.rounds {
            places /= 2;
            if fixtures.iter().any(|fixture| fixture.winner().is_none()) {
                break;
            }
            let rank = rank_after(places);
            fixtures.iter().take(places).filter_map(Fixture::loser).for_each(|bot| set(bot, rank));
            for third in fixtures.iter().skip(places) {
                // The loser of this meeting has rank 4. The losers of the semi-finals had rank 3.
                third.loser().into_iter().for_each(|bot| set(bot, 4));
            }
        }
        ranks
    }

    fn advance(&mut self, results: &[Vec<Score>]) {
        let played = mem::take(&mut self.next);
        let rules = self.rules;
        let fixtures = self.rounds.last_mut().expect("a bracket has a round");
        for ((index, pairing), scores) in played.iter().zip(results) {
            if let Fixture::Meeting(meeting) = &mut fixtures[*index] {
                meeting.add(pairing.seats, scores);
            }
        }
        for fixture in fixtures.iter_mut() {
            if let Fixture::Meeting(meeting) = fixture
                && meeting.decision.is_none()
            {
                meeting.decide(rules);
            }
        }
        if let Some(next_round) = self.next_round() {
            self.rounds.push(next_round);
        }
        self.plan_games();
    }
}

/// A summary in one line, for people.
impl fmt::Display for Bracket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounds = counted(self.round_count(), "round", "rounds");
        let byes = self.bots().next_power_of_two() - self.bots();
        write!(f, "knockout of {rounds} with {}", counted(byes, "bye", "byes"))
    }
}

/// The best rank of bots that are out while this many others are still in.
fn rank_after(others: usize) -> u32 {
    u32::try_from(others + 1).expect("at most 65536 bots")
}

/// The numbers in the first round of a bracket for this many places, a power of two, from the top.
/// Numbers begin at 0. The two numbers of each meeting are adjacent.
pub(super) fn first_round(places: usize) -> Vec<usize> {
    let mut numbers = vec![0];
    while numbers.len() < places {
        let last = 2 * numbers.len() - 1;
        numbers = numbers.into_iter().flat_map(|number| [number, last - number]).collect();
    }
    numbers
}
