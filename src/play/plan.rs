//! Plans the matches of a local run: entrants and seeds.

use arbiter_games::{Params, Seed, StartError, seat_counts};

use crate::failure::Failure;
use crate::play::bots::{self, Entry};

/// A match or episode of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// Its number, from 1.
    pub(crate) number: usize,
    /// The seed of the match or episode.
    pub(crate) seed: Seed,
    /// Match or episode.
    pub(crate) kind: JobKind,
}

/// The kind of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JobKind {
    /// One match: the entries in its seats by position, seat 1 first.
    Match(Vec<usize>),
    /// A whole episode of all entries.
    Episode,
}

/// Everything that determines a local run, except the replies of the bots.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The game's parameters.
    pub(crate) params: Params,
    /// The bots.
    pub(crate) entries: Vec<Entry>,
    /// What people call the entries.
    pub(crate) labels: Vec<String>,
    /// The jobs, in order.
    pub(crate) jobs: Vec<Job>,
}

impl Plan {
    /// Plans `games` games of each pairing: of all entries at one table or, in two-player games, of
    /// each pair. With `rotate`, seats rotate from game to game.
    pub(crate) fn new(
        params: Params,
        entries: Vec<Entry>,
        seed: Seed,
        games: usize,
        rotate: bool,
    ) -> Result<Self, Failure> {
        let game = params.game().clone();
        let count = entries.len();
        let kinds: Vec<(String, JobKind)> = if is_episode(&params, count) {
            (1..=games).map(|number| (format!("episode {number}"), JobKind::Episode)).collect()
        } else {
            let tables = tables(&params, count)?;
            let label = |table: &[usize], number| {
                let seats: Vec<_> = table.iter().map(|entry| (entry + 1).to_string()).collect();
                format!("{} {number}", seats.join("-"))
            };
            let seatings = |number| {
                let tables = tables.clone().into_iter();
                tables.map(move |table| {
                    let label = label(&table, number);
                    (label, JobKind::Match(rotated(table, if rotate { number - 1 } else { 0 })))
                })
            };
            (1..=games).flat_map(seatings).collect()
        };
        let seeded = kinds.into_iter().map(|(label, kind)| {
            let seed = seed.derive(&format!("play {game} {label}"));
            (seed, kind)
        });
        Self::of_jobs(params, entries, seeded)
    }

    /// The plan of these jobs with their seeds.
    ///
    /// # Errors
    /// If the parameters do not fit the tables.
    pub(crate) fn of_jobs(
        params: Params,
        entries: Vec<Entry>,
        kinds: impl IntoIterator<Item = (Seed, JobKind)>,
    ) -> Result<Self, Failure> {
        let jobs = (1..).zip(kinds).map(|(number, (seed, kind))| Job { number, seed, kind });
        let labels = bots::labels(&entries);
        let plan = Self { params, entries, labels, jobs: jobs.collect() };
        plan.check_start().map_err(Failure::usage)?;
        Ok(plan)
    }

    /// The names of the components of a ranking.
    pub(crate) fn columns(&self) -> Vec<&str> {
        self.params.game().ranking_columns()
    }

    /// The word for a job: `game` or `episode`.
    pub(crate) fn unit(&self) -> &'static str {
        match self.jobs.first().map(|job| &job.kind) {
            Some(JobKind::Episode) => "episode",
            Some(JobKind::Match(_)) | None => "game",
        }
    }

    /// The number of bots that play each job.
    pub(crate) fn bots_per_job(&self) -> usize {
        match self.jobs.first().map(|job| &job.kind) {
            Some(JobKind::Match(seats)) => seats.len(),
            Some(JobKind::Episode) | None => self.entries.len(),
        }
    }

    /// Checks that the parameters fit the tables. All tables have the same size.
    fn check_start(&self) -> Result<(), StartError> {
        if let Some(job) = self.jobs.first() {
            match &job.kind {
                JobKind::Match(seats) => {
                    let names = seats.iter().map(|entry| self.entries[*entry].name.clone());
                    self.params.start(&names.collect::<Vec<_>>(), job.seed)?;
                }
                JobKind::Episode => {
                    self.params.episode(self.entries.len(), job.seed)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether bots play episodes: with several rounds, or with more bots than seats at a table.
fn is_episode(params: &Params, count: usize) -> bool {
    params.rounds().is_some_and(|rounds| rounds > 1 || count > *params.seats().end())
}

/// The pairings: one table of all, or each pair.
fn tables(params: &Params, count: usize) -> Result<Vec<Vec<usize>>, Failure> {
    let game = params.game();
    let seats = params.seats();
    if seats.contains(&count) {
        return Ok(vec![(0..count).collect()]);
    }
    if seats == (2..=2) && count > 2 {
        let pairs =
            (0..count).flat_map(|first| (first + 1..count).map(move |second| vec![first, second]));
        return Ok(pairs.collect());
    }
    let expected = seat_counts(&seats);
    let remedy = match &game.seats_param {
        Some(key) if count > *game.seats.end() => {
            let max_seats = game.seats.end();
            let other_counts: Vec<_> =
                (*game.seats.start()..*max_seats).map(|n| n.to_string()).collect();
            let max_in_words =
                if *max_seats == 4 { "four".to_owned() } else { max_seats.to_string() };
            let other_counts = other_counts.join(", ");
            format!("; name {max_in_words} of them, or --set {key}={other_counts} or {max_seats}")
        }
        Some(key) => format!("; --set {key}= sets the number of seats"),
        None => "; name one more bot, or the same bot twice".to_owned(),
    };
    Err(Failure::usage(format!("a match of {game} takes {expected} bots, not {count}{remedy}")))
}

/// Rotates the seats of a table by this number.
fn rotated(mut table: Vec<usize>, offset: usize) -> Vec<usize> {
    let offset = offset % table.len();
    table.rotate_left(offset);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_puts_each_bot_in_each_seat() {
        let table = vec![0, 1, 2, 3];
        let seatings: Vec<_> = (0..4).map(|offset| rotated(table.clone(), offset)).collect();
        for seat in 0..4 {
            let mut sitting: Vec<_> = seatings.iter().map(|table| table[seat]).collect();
            sitting.sort_unstable();
            assert_eq!(sitting, table);
        }
    }

    #[test]
    fn two_player_games_pair_all_bots() {
        let params = Params::official(&arbiter_games::gomoku::game());
        let pairs = tables(&params, 4).unwrap();
        assert_eq!(pairs, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        assert!(tables(&params, 1).is_err());
        assert!(tables(&Params::official(&arbiter_games::wojna::game()), 5).is_err());
    }
}
