//! The matches of an edition, from its schedule. They are listed again whenever they are needed, so
//! a plan is never in memory as a whole.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use arbiter_games::{MAX_SEATS, Seed};
use arbiter_proto::ids::MatchNumber;
use arbiter_ranking::Entrant;
use arbiter_schedule::{
    Bot, CertificateError, Matches, NameKey, Participants, PlannedMatch, Schedule, ScheduleError,
    Sides, mix,
};

use super::TournamentFile;
use super::state_dependencies::StateDependencies;
use crate::db::matches::{Match, Seats};

/// Locked during the proof of a plan, because a proof may use
/// [`arbiter_schedule::MAX_PROOF_BYTES`] of memory.
static PROOF: Mutex<()> = Mutex::new(());

/// The domain tag that is mixed into seed keys.
const SEED_KEY: u64 = 3;

/// The plan of an edition whose matches can all be listed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planner<'a> {
    file: &'a TournamentFile,
    field: &'a Participants,
    /// The names of the bots, in the order of entry.
    names: &'a [NameKey],
    seed: Seed,
}

impl<'a> Planner<'a> {
    /// Plans an edition for bots with these names. None for schedules whose matches depend on
    /// results.
    pub(super) fn new(
        file: &'a TournamentFile,
        field: &'a Participants,
        names: &'a [NameKey],
        seed: Seed,
    ) -> Result<Option<Self>, ScheduleError> {
        let matches = listed(file, field, names, seed)?;
        Ok(matches.map(|_| Self { file, field, names, seed }))
    }

    /// Whether files pass from match to match.
    pub(super) fn is_chained(&self) -> bool {
        self.dependencies().is_some()
    }

    /// Counts the matches and compares them with the guarantees of the schedule.
    ///
    /// # Errors
    /// The first broken guarantee.
    pub(super) fn prove(&self) -> Result<(), CertificateError> {
        let _guard = PROOF.lock().unwrap_or_else(PoisonError::into_inner);
        self.listed().prove(self.field)
    }

    fn listed(&self) -> Matches {
        match listed(self.file, self.field, self.names, self.seed) {
            Ok(Some(matches)) => matches,
            _ => unreachable!("it was planned before"),
        }
    }

    fn schedule(&self) -> impl Iterator<Item = (i64, PlannedMatch)> + use<> {
        (0..).zip(self.listed())
    }

    fn dependencies(&self) -> Option<StateDependencies> {
        StateDependencies::new(self.file.state, &self.file.schedule, self.field.bots())
    }

    /// The matches, numbered from 0. Their seats hold the places of bots in the schedule, and they
    /// refer to earlier matches by their numbers here.
    pub(super) fn matches(self) -> impl Iterator<Item = Match> + use<'a> {
        let mut dependencies = self.dependencies();
        let seed_keys = self.seed_keys(self.schedule().map(|(_, planned)| planned));
        self.with_seed_keys(self.schedule(), seed_keys).map(move |planned| Match {
            state_from: dependencies.as_mut().map(|all| {
                let places = planned.seats.0.iter();
                let places: Vec<_> = places.map(|place| place_of(*place)).collect();
                all.add(planned.number.0, &places)
            }),
            ..planned
        })
    }

    /// The matches in which a bot of these places plays, with the same numbers as in
    /// [`Planner::matches`], and without references to earlier matches. They should be few: they
    /// are in memory.
    pub(super) fn matches_of(self, places: &[bool]) -> Vec<Match> {
        let includes = |(_, planned): &(i64, PlannedMatch)| {
            planned.seats().iter().any(|place| places[usize::from(*place)])
        };
        let included: Vec<_> = self.schedule().filter(includes).collect();
        // If one of several matches between the same bots is included, all are.
        let seed_keys = self.seed_keys(included.iter().map(|(_, planned)| *planned));
        self.with_seed_keys(included.into_iter(), seed_keys).collect()
    }

    fn with_seed_keys(
        self,
        planned: impl Iterator<Item = (i64, PlannedMatch)>,
        mut seed_keys: SeedKeys<'a>,
    ) -> impl Iterator<Item = Match> {
        let has_boards = self.file.boards.len() > 1;
        planned.map(move |(number, planned)| Match {
            board: has_boards.then(|| index(planned.board)),
            ..match_of(MatchNumber(number), &planned, seed_keys.of(&planned))
        })
    }

    /// The seed keys of these matches.
    fn seed_keys(&self, planned: impl Iterator<Item = PlannedMatch>) -> SeedKeys<'a> {
        let plays_both_sides =
            matches!(self.file.schedule, Schedule::RoundRobin(rules) if rules.sides == Sides::Both);
        let shared = plays_both_sides && self.file.game().official.shared_deals;
        let has_history = self.file.schedule.has_history();
        let bots = match self.file.schedule {
            Schedule::Solo(_) => KeyBots::None,
            _ if has_history || shared => KeyBots::Sorted,
            _ => KeyBots::BySeat,
        };
        let mut seed_keys = SeedKeys { names: self.names, bots, repeats: HashMap::new() };
        if has_history {
            seed_keys.repeats = seed_keys.repeated(planned);
        }
        seed_keys
    }
}

/// The seed keys of matches: matches with the same key have the same seed.
///
/// A key depends on the bots, the board and the number of their meeting, so that a match has the
/// same seed as in the edition before. The two matches of a pair with exchanged seats have
/// different keys. In games with shared deals they have the same key, so that each bot gets both
/// hands once. All solo matches of a leg have the same key, so that all bots get the same deals.
#[derive(Debug)]
pub(super) struct SeedKeys<'a> {
    names: &'a [NameKey],
    bots: KeyBots,
    /// Tables at which the same bots meet more than once, with the meetings so far.
    repeats: HashMap<u64, u64>,
}

/// The bots on which a seed key depends.
#[derive(Clone, Copy, Debug)]
enum KeyBots {
    /// Those of the match, in the order of their seats.
    BySeat,
    /// Those of the match in ascending order, so that seats make no difference.
    Sorted,
    /// None.
    None,
}

impl<'a> SeedKeys<'a> {
    /// The seed keys of rounds in which pairs play both sides.
    pub(super) fn of_rounds(file: &TournamentFile, names: &'a [NameKey]) -> Self {
        let shared_deals = file.game().official.shared_deals;
        let bots = if shared_deals { KeyBots::Sorted } else { KeyBots::BySeat };
        Self { names, bots, repeats: HashMap::new() }
    }

    /// The tables that occur more than once.
    fn repeated(&self, tables: impl Iterator<Item = PlannedMatch>) -> HashMap<u64, u64> {
        let mut tables: Vec<_> = tables.map(|table| self.table(&table)).collect();
        tables.sort_unstable();
        let repeated = tables.windows(2).filter(|pair| pair[0] == pair[1]);
        repeated.map(|pair| (pair[0], 0)).collect()
    }

    /// A hash of the bots, board and meeting number of a table.
    fn table(&self, planned: &PlannedMatch) -> u64 {
        let mut names = [0; MAX_SEATS as usize];
        let seats = match self.bots {
            KeyBots::None => &[],
            KeyBots::BySeat | KeyBots::Sorted => planned.seats(),
        };
        for (name, bot) in names.iter_mut().zip(seats) {
            *name = self.names[usize::from(*bot)].0;
        }
        let names = &mut names[..seats.len()];
        if matches!(self.bots, KeyBots::Sorted) {
            names.sort_unstable();
        }
        let prefix = [SEED_KEY, planned.board.into(), planned.leg.into()];
        mix(prefix.into_iter().chain(names.iter().copied()))
    }

    /// The seed key of the next match.
    fn of(&mut self, planned: &PlannedMatch) -> i64 {
        let mut seed_key = self.table(planned);
        if let Some(times) = self.repeats.get_mut(&seed_key) {
            if *times > 0 {
                seed_key = mix([seed_key, *times]);
            }
            *times += 1;
        }
        to_column(seed_key)
    }

    /// The seed key of a match whose bots do not meet again on this board in this leg.
    pub(super) fn of_unrepeated(&self, planned: &PlannedMatch) -> i64 {
        to_column(self.table(planned))
    }
}

/// A seed key as its column has it: a bigint that is not negative.
fn to_column(seed_key: u64) -> i64 {
    (seed_key >> 1).cast_signed()
}

/// A match of a plan. Its seats hold the places of bots.
pub(super) fn match_of(number: MatchNumber, planned: &PlannedMatch, seed_key: i64) -> Match {
    Match {
        number,
        seed_key,
        board: None,
        seats: seats(planned.seats()),
        carried: None,
        state_from: None,
        params: None,
    }
}

/// The matches of an edition, if they can all be listed.
pub(super) fn listed(
    file: &TournamentFile,
    field: &Participants,
    names: &[NameKey],
    seed: Seed,
) -> Result<Option<Matches>, ScheduleError> {
    if let Schedule::RoundRobin(rules) = file.schedule {
        return rules.among(names).map(|pairings| Some(Matches::Pairings(Box::new(pairings))));
    }
    Ok(match file.schedule.plan_for(field, seed)? {
        arbiter_schedule::Plan::Matches(matches) => Some(matches),
        arbiter_schedule::Plan::Episodes(_) | arbiter_schedule::Plan::Rounds(_) => None,
    })
}

/// Numbers in the scores of a match with this many seats.
pub(super) fn score_len(file: &TournamentFile, seats: usize) -> i16 {
    i16::try_from(seats * file.game().columns.len()).expect("tables are small")
}

fn seats(bots: &[Bot]) -> Seats {
    Seats(bots.iter().map(|bot| Entrant((*bot).into())).collect())
}

/// A place in the schedule, from a seat.
fn place_of(seat: Entrant) -> Bot {
    Bot::try_from(seat.0).expect("it was made from a place")
}

fn index(board: u16) -> i16 {
    i16::try_from(board).expect("there are at most 1000 boards")
}

#[cfg(test)]
mod tests {
    use arbiter_games::Games;
    use arbiter_schedule::Solo;

    use super::*;
    use crate::tournament::beacon::keyed_seed;
    use crate::tournament::lot_assignment::deal_seed;

    /// The seeds of the solo matches of two bots, in the order of the legs.
    fn solo_seeds(bots: [&str; 2], edition: Seed) -> Vec<[Seed; 2]> {
        let text = "name = \"alone\"\ngame = \"gomoku\"\n";
        let file = TournamentFile::parse(&Games::built_in(), text).unwrap();
        let file = TournamentFile { schedule: Schedule::Solo(Solo::default()), ..file };
        let names = bots.map(|name| NameKey::of(edition, name));
        let field = Participants::from(names.len());
        let planner = Planner::new(&file, &field, &names, edition).unwrap().unwrap();
        let seeds: Vec<_> =
            planner.matches().map(|planned| deal_seed(edition, planned.seed_key)).collect();
        seeds.chunks(2).map(|leg| leg.try_into().unwrap()).collect()
    }

    /// Otherwise an author who knows the problems of earlier editions knows those of the final one.
    #[test]
    fn a_beacon_changes_the_seeds_of_solo_matches_and_other_bots_do_not() {
        let committed = Seed::of_text("spring");
        let seeds = solo_seeds(["ada", "bob"], committed);
        assert_eq!(seeds.len(), 10);
        assert!(seeds.iter().all(|[first, second]| first == second), "{seeds:?}");
        assert_eq!(solo_seeds(["eve", "ada"], committed), seeds);
        let keyed = solo_seeds(["ada", "bob"], keyed_seed(committed, "1a17d"));
        assert!(keyed.iter().all(|leg| !seeds.contains(leg)), "{keyed:?}");
    }
}
