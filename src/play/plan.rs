//! Which matches a local run plays, between whom, from which seeds.

use arbiter_games::{Params, Seed, StartError, seats_due};

use crate::failure::Failure;
use crate::play::bots::Entry;

/// One unit of a run, numbered from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// Its number.
    pub(crate) number: usize,
    /// The seed of the match or episode.
    pub(crate) seed: Seed,
    /// What is played.
    pub(crate) kind: Kind,
}

/// What a job plays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One match: positions in the list of entries, seat 1 first.
    Match(Vec<usize>),
    /// A whole episode between all entries.
    Episode,
}

/// Everything that a local run is a function of, but for the bots' answers.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The game's parameters.
    pub(crate) params: Params,
    /// The bots.
    pub(crate) entries: Vec<Entry>,
    /// What is played, in order.
    pub(crate) jobs: Vec<Job>,
    /// What the components of a score are called.
    pub(crate) columns: Vec<String>,
}

impl Plan {
    /// Plans `games` games of every pairing: of the one table there is, or, in games for two, of
    /// all against all. Seats rotate from game to game if `rotate`.
    pub(crate) fn new(
        params: Params,
        entries: Vec<Entry>,
        seed: Seed,
        games: usize,
        rotate: bool,
    ) -> Result<Self, Failure> {
        let game = params.game().clone();
        let count = entries.len();
        let mut columns: Vec<_> = game.columns.iter().map(ToString::to_string).collect();
        let kinds: Vec<(String, Kind)> = if is_episode(&params, count) {
            columns = game.ranking_columns().into_iter().map(str::to_owned).collect();
            (1..=games).map(|number| (format!("episode {number}"), Kind::Episode)).collect()
        } else {
            let tables = tables(&params, count)?;
            let label = |table: &[usize], number| {
                let seats: Vec<_> = table.iter().map(|entry| (entry + 1).to_string()).collect();
                format!("{} {number}", seats.join("-"))
            };
            let seated = |number| {
                let tables = tables.clone().into_iter();
                tables.map(move |table| {
                    let label = label(&table, number);
                    (label, Kind::Match(rotated(table, if rotate { number - 1 } else { 0 })))
                })
            };
            (1..=games).flat_map(seated).collect()
        };
        let jobs = (1..).zip(kinds).map(|(number, (label, kind))| {
            let seed = seed.derive(&format!("play {game} {label}"));
            Job { number, seed, kind }
        });
        let jobs = jobs.collect();
        let plan = Self { params, entries, jobs, columns };
        plan.check_start().map_err(Failure::usage)?;
        Ok(plan)
    }

    /// Checks that the parameters fit the tables, of which the first is like all others.
    fn check_start(&self) -> Result<(), StartError> {
        if let Some(job) = self.jobs.first() {
            match &job.kind {
                Kind::Match(seats) => {
                    let names = seats.iter().map(|entry| self.entries[*entry].name.clone());
                    self.params.start(&names.collect::<Vec<_>>(), job.seed)?;
                }
                Kind::Episode => {
                    self.params.episode(self.entries.len(), job.seed)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether bots play episodes: when rounds follow one another, or there are more than fit a table.
fn is_episode(params: &Params, count: usize) -> bool {
    params.rounds().is_some_and(|rounds| rounds > 1 || count > *params.seats().end())
}

/// Who meets whom: one table for all, or every pair.
fn tables(params: &Params, count: usize) -> Result<Vec<Vec<usize>>, Failure> {
    let game = params.game();
    let seats = params.seats();
    if seats.contains(&count) {
        return Ok(vec![(0..count).collect()]);
    }
    if seats == (2..=2) && count > 2 {
        let pairs = (0..count).flat_map(|one| (one + 1..count).map(move |two| vec![one, two]));
        return Ok(pairs.collect());
    }
    let due = seats_due(&seats);
    let remedy = match &game.seats_param {
        Some(key) if count > *game.seats.end() => {
            let most = game.seats.end();
            let fewer: Vec<_> = (*game.seats.start()..*most).map(|n| n.to_string()).collect();
            let most_in_words = if *most == 4 { "four".to_owned() } else { most.to_string() };
            let fewer = fewer.join(", ");
            format!("; name {most_in_words} of them, or --set {key}={fewer} or {most}")
        }
        Some(key) => format!("; --set {key}= says how many sit at a table"),
        None => "; name one more, or the same one twice".to_owned(),
    };
    Err(Failure::usage(format!("a match of {game} takes {due} bots, not {count}{remedy}")))
}

/// The table after everybody moved on by so many seats.
fn rotated(mut table: Vec<usize>, by: usize) -> Vec<usize> {
    let by = by % table.len();
    table.rotate_left(by);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_sits_everywhere() {
        let table = vec![0, 1, 2, 3];
        let seatings: Vec<_> = (0..4).map(|by| rotated(table.clone(), by)).collect();
        for seat in 0..4 {
            let mut sitting: Vec<_> = seatings.iter().map(|table| table[seat]).collect();
            sitting.sort_unstable();
            assert_eq!(sitting, table);
        }
    }

    #[test]
    fn all_meet_all_in_games_for_two() {
        let params = Params::official(&arbiter_games::gomoku::game());
        let found = tables(&params, 4).unwrap();
        assert_eq!(found, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        assert!(tables(&params, 1).is_err());
        assert!(tables(&Params::official(&arbiter_games::wojna::game()), 5).is_err());
    }
}
