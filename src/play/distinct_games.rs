//! Counts the distinct games of a run. A game that repeats another one tells nothing new.

use std::collections::{HashMap, HashSet};

use arbiter_replay::TranscriptHash;

use crate::play::run::PlayedMatch;

/// What two equal matches with the same seats have in common: the transcript, and the scores of all
/// seats. Luck may show in the scores only.
type Course = (TranscriptHash, Vec<i64>);

/// The distinct games of a run. A game is one match or several, such as the rounds of an episode.
#[derive(Debug, Default)]
pub(crate) struct DistinctGames {
    /// For the seats of each match of a game, the distinct games with these seats.
    by_seats: HashMap<Vec<Vec<usize>>, HashSet<Vec<Course>>>,
    /// The number of games, with repeated ones.
    pub(crate) games: usize,
}

impl DistinctGames {
    /// Adds a game: its matches, in order.
    pub(crate) fn add<'a>(&mut self, matches: impl IntoIterator<Item = &'a PlayedMatch>) {
        let mut seats = Vec::new();
        let mut courses = Vec::new();
        for PlayedMatch { seats: seated, outcome, .. } in matches {
            seats.push(seated.clone());
            let scores = outcome.results.iter().flat_map(|result| &result.score.0);
            courses.push((outcome.transcript, scores.copied().collect()));
        }
        self.by_seats.entry(seats).or_default().insert(courses);
        self.games += 1;
    }

    /// The number of distinct games.
    pub(crate) fn distinct(&self) -> usize {
        self.by_seats.values().map(HashSet::len).sum()
    }

    /// Whether all games with the same seats are equal, so that they say nothing of other games.
    pub(crate) fn has_no_chance(&self) -> bool {
        self.by_seats.values().all(|games| games.len() <= 1)
    }

    /// Whether more games would only repeat these: all games with the same seats are equal, there
    /// are at least `min_games`, and on average each was played twice.
    pub(crate) fn only_repeats(&self, min_games: usize) -> bool {
        self.has_no_chance() && self.games >= min_games.max(2 * self.by_seats.len())
    }

    /// What repeated games mean, for people; none if no game repeats another one. `unit` is the
    /// word for a game.
    pub(crate) fn remark(&self, unit: &str) -> Option<String> {
        let Self { games, .. } = self;
        let distinct = self.distinct();
        let meaning = if distinct == *games {
            return None;
        } else if self.has_no_chance() {
            format!("the bots and the game seem to use no chance, so more {unit}s tell nothing new")
        } else {
            format!("repeated {unit}s tell nothing new")
        };
        Some(format!("{games} {unit}s, {distinct} distinct: {meaning}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn games(all: &[(&[usize], &[i64])]) -> DistinctGames {
        let mut games = DistinctGames::default();
        for (seats, points) in all {
            let scores = points.iter().map(|points| vec![*points]).collect();
            games.add(&[PlayedMatch::of_scores(seats.to_vec(), scores)]);
        }
        games
    }

    #[test]
    fn games_with_other_seats_are_no_copies() {
        let games = games(&[(&[0, 1], &[2, 0]), (&[1, 0], &[2, 0])]);
        assert_eq!((games.distinct(), games.remark("game")), (2, None));
        assert!(!games.only_repeats(1));
    }

    #[test]
    fn copies_are_counted_and_named() {
        let both = [(&[0, 1][..], &[2, 0][..]), (&[1, 0], &[2, 0])];
        let copies = games(&[both, both].concat());
        let remark = "4 games, 2 distinct: the bots and the game seem to use no chance, so more \
                      games tell nothing new";
        assert_eq!(copies.remark("game").as_deref(), Some(remark));
        assert!(copies.only_repeats(4) && !copies.only_repeats(5));

        let mixed = games(&[&both[..], &both, &[(&[0, 1], &[1, 1])]].concat());
        let remark = "5 episodes, 3 distinct: repeated episodes tell nothing new";
        assert_eq!(mixed.remark("episode").as_deref(), Some(remark));
        assert!(!mixed.only_repeats(1));
    }
}
