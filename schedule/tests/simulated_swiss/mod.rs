//! Random Swiss tournaments: results by strength and chance, byes, withdrawals, late entries.

use arbiter_games::Seed;
use arbiter_schedule::mix;
use arbiter_schedule::swiss::{Colour, Pairings, Player, Round, Swiss, SwissError, Variant};

/// How often something happens, in thousandths per player and round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chances {
    /// A player is absent for one round.
    pub(crate) absent: u64,
    /// A player leaves for good.
    pub(crate) leaves: u64,
    /// A player comes after the first round.
    pub(crate) late: u64,
    /// One of two paired players does not play.
    pub(crate) forfeit: u64,
    /// A game is drawn.
    pub(crate) draw: u64,
}

/// Numbers that depend on a seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    /// The numbers of a text.
    pub(crate) fn new(text: &str) -> Self {
        Self(Seed::of_text(text).derive_number("chance"))
    }

    /// A number below a limit.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = mix([self.0, limit]);
        self.0 % limit
    }

    /// A position below a limit.
    pub(crate) fn place(&mut self, limit: usize) -> usize {
        usize::try_from(self.below(limit as u64)).expect("it is below a position")
    }

    /// Whether something happens that happens so often in 1000 times.
    fn happens(&mut self, thousandths: u64) -> bool {
        self.below(1000) < thousandths
    }
}

/// A random tournament that is being played.
pub(crate) struct Simulation {
    /// The system.
    pub(crate) swiss: Swiss,
    /// All players.
    pub(crate) players: Vec<Player>,
    /// How often something happens.
    pub(crate) chances: Chances,
    chance: Chance,
    /// The first round of each player, and the round in which the player leaves.
    stays: Vec<std::ops::Range<usize>>,
}

impl Simulation {
    /// A tournament before its first round.
    pub(crate) fn new(swiss: Swiss, players: usize, chances: Chances, mut chance: Chance) -> Self {
        let stay = |_| {
            let late = chance.happens(chances.late);
            let first = if late { 1 + chance.place(3) } else { 0 };
            let leaves = (first..swiss.rounds).find(|_| chance.happens(chances.leaves));
            first..leaves.unwrap_or(usize::MAX)
        };
        let stays = (0..players).map(stay).collect();
        let players = vec![Player::default(); players];
        Self { swiss, players, chances, chance, stays }
    }

    /// A tournament that depends on a seed: `scripts/swiss-check` has such ones checked.
    pub(crate) fn of_seed(seed: &str, players: usize, rounds: usize, accelerated: bool) -> Self {
        let mut chance = Chance::new(seed);
        let initial = if chance.below(2) == 0 { Colour::White } else { Colour::Black };
        let accelerated = if accelerated { Swiss::accelerated_group(players) } else { 0 };
        let swiss = Swiss { rounds, initial, variant: Variant::Single, accelerated };
        let chances = Chances {
            absent: chance.below(60),
            leaves: chance.below(30),
            late: chance.below(60),
            forfeit: chance.below(30),
            draw: chance.below(500),
        };
        Self::new(swiss, players, chances, chance)
    }

    /// Decides who takes part in the next round.
    pub(crate) fn prepare(&mut self) {
        let round = self.players[0].rounds.len();
        for (player, stay) in self.players.iter_mut().zip(&self.stays) {
            player.plays = stay.contains(&round) && !self.chance.happens(self.chances.absent);
        }
    }

    /// Plays a round.
    pub(crate) fn play(&mut self, pairings: &Pairings) {
        use Colour::{Black, White};
        let round = self.players[0].rounds.len();
        for pairing in &pairings.pairs {
            let white = pairing.white;
            let black = pairing.black;
            if self.chance.happens(self.chances.forfeit) {
                let winner = self.chance.below(5);
                for (player, opponent, colour, number) in
                    [(white, black, White, 0), (black, white, Black, 1)]
                {
                    let won = winner % 2 == number && winner < 4;
                    self.players[player].rounds.push(Round::Forfeit { opponent, colour, won });
                }
                continue;
            }
            let win = self.swiss.variant.win();
            let games = win / 2;
            let points = (0..games).map(|_| self.result(white, black)).sum();
            let played = Round::Played { opponent: black, colour: White, points };
            self.players[white].rounds.push(played);
            let played = Round::Played { opponent: white, colour: Black, points: win - points };
            self.players[black].rounds.push(played);
        }
        if let Some(bye) = pairings.bye {
            self.players[bye].rounds.push(Round::PairingBye);
        }
        for (player, stay) in self.players.iter_mut().zip(&self.stays) {
            if player.rounds.len() == round {
                let halves = if stay.contains(&round) { self.chance.below(8) } else { 0 };
                let points = match halves {
                    0..4 => 0,
                    4..7 => 1,
                    _ => 2,
                };
                player.rounds.push(Round::Absent { points });
            }
        }
    }

    /// The half points of White. Players at the top of the list win more often.
    fn result(&mut self, white: usize, black: usize) -> u32 {
        if self.chance.happens(self.chances.draw) {
            return 1;
        }
        let size = self.players.len() as u64;
        let distance = (black as u64 + size - white as u64) * 1000 / (2 * size);
        let edge = (2 * distance).saturating_sub(500).clamp(80, 920);
        2 * u32::from(self.chance.happens(edge))
    }

    /// Plays a whole tournament.
    pub(crate) fn run(&mut self) -> Result<(), SwissError> {
        while self.players[0].rounds.len() < self.swiss.rounds {
            self.prepare();
            let pairings = self.swiss.next_round(&self.players)?;
            self.play(&pairings);
        }
        Ok(())
    }
}
