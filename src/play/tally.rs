//! Adds up the scores of the bots of a local run, as a tournament does.

use arbiter_games::{Game, Micros};
use arbiter_ranking::{Entrant, ScoredMatch, Tallies, Tally as Sums};
use hdrhistogram::Histogram;

use crate::play::plan::Plan;
use crate::play::run::{JobResult, PlayedMatch};

/// The totals of one bot.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The number of its games, or episodes.
    pub(crate) games: i64,
    /// The sums over its matches.
    pub(crate) sums: Sums,
    /// How it finished its games.
    pub(crate) finishes: Finishes,
    /// Reply times in microseconds, with three significant digits.
    replies: Histogram<u64>,
}

/// How often a bot finished a game in which place, by the whole scores of all bots of the game.
/// With two bots these are games won, drawn and lost, as in [`arbiter_ranking::HeadToHead`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Finishes {
    /// Games with a higher score than all others.
    pub(crate) first: u64,
    /// Games with the highest score, which others have too.
    pub(crate) shared_first: u64,
    /// Games in which another bot has a higher score.
    pub(crate) behind: u64,
}

/// Maximum reply time in the histogram, in microseconds: one hour.
const MAX_REPLY_TIME: u64 = 3_600_000_000;

/// A summary of a bot's reply times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplyTimes {
    pub(crate) mean: Micros,
    pub(crate) p99: Micros,
    pub(crate) max: Micros,
}

impl Row {
    fn new() -> Self {
        let replies =
            Histogram::new_with_max(MAX_REPLY_TIME, 3).expect("three digits up to an hour fit");
        Self { games: 0, sums: Sums::default(), finishes: Finishes::default(), replies }
    }

    /// The mean over games, or episodes, of the first component of the scores; none without games.
    #[expect(clippy::cast_precision_loss, reason = "a mean is shown with a few digits")]
    pub(crate) fn mean(&self) -> Option<f64> {
        let sum = self.sums.score.first().copied().unwrap_or(0);
        (self.games > 0).then(|| sum as f64 / self.games as f64)
    }

    /// The reply times, if the bot replied at all.
    pub(crate) fn reply_times(&self) -> Option<ReplyTimes> {
        let micros = |time: u64| Micros(i64::try_from(time).unwrap_or(i64::MAX));
        #[expect(clippy::cast_possible_truncation, reason = "a mean time is far below 2^63")]
        let mean = Micros(self.replies.mean().round() as i64);
        let p99 = self.replies.value_at_quantile(0.99);
        let max = self.replies.max();
        (!self.replies.is_empty()).then(|| ReplyTimes { mean, p99: micros(p99), max: micros(max) })
    }
}

/// The totals of all bots.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    game: Game,
    /// The totals of each bot, by position in the list of entries.
    pub(crate) rows: Vec<Row>,
}

impl Tally {
    /// Creates empty totals for the entries of a plan.
    pub(crate) fn new(plan: &Plan) -> Self {
        Self::of_bots(plan.params.game(), plan.entries.len())
    }

    fn of_bots(game: &Game, bots: usize) -> Self {
        Self { game: game.clone(), rows: vec![Row::new(); bots] }
    }

    /// Adds a played job.
    pub(crate) fn add(&mut self, result: &JobResult) {
        let mut job = Tallies::new(&self.game);
        for played in &result.matches {
            add_scores(&mut job, played);
            self.add_reply_times(played);
        }
        let scores = || job.by_entrant().values().map(|sums| &sums.score);
        let highest = scores().max();
        let is_shared = scores().filter(|score| Some(*score) == highest).count() > 1;
        for (entrant, sums) in job.by_entrant() {
            let row = &mut self.rows[entry(*entrant)];
            row.games += 1;
            row.sums.merge(sums);
            let finishes = &mut row.finishes;
            let count = match (Some(&sums.score) == highest, is_shared) {
                (true, false) => &mut finishes.first,
                (true, true) => &mut finishes.shared_first,
                (false, _) => &mut finishes.behind,
            };
            *count += 1;
        }
    }

    fn add_reply_times(&mut self, played: &PlayedMatch) {
        for (entry, report) in played.seats.iter().zip(&played.outcome.seats) {
            for reply in &report.replies {
                let micros = u64::try_from(reply.0).unwrap_or(0);
                self.rows[*entry].replies.saturating_record(micros);
            }
        }
    }

    /// Pairs of rank and bot, the best first. Equal scores share a rank.
    pub(crate) fn ranking(&self) -> Vec<(usize, usize)> {
        let mut order: Vec<_> = (0..self.rows.len()).collect();
        order.sort_by(|a, b| self.rows[*b].sums.score.cmp(&self.rows[*a].sums.score));
        let mut ranked: Vec<(usize, usize)> = Vec::new();
        for (index, entry) in order.into_iter().enumerate() {
            let rank = match ranked.last() {
                Some((rank, previous))
                    if self.rows[*previous].sums.score == self.rows[entry].sums.score =>
                {
                    *rank
                }
                _ => index + 1,
            };
            ranked.push((rank, entry));
        }
        ranked
    }
}

/// Adds the scores of a match.
fn add_scores(sums: &mut Tallies, played: &PlayedMatch) {
    let results = &played.outcome.results;
    let seats: Vec<_> = played.seats.iter().map(|entry| entrant(*entry)).collect();
    let scores: Vec<_> = results.iter().flat_map(|result| &result.score.0).copied().collect();
    let forfeits: Vec<_> = results.iter().map(|result| result.forfeit).collect();
    let bad_answers = results.iter().map(|result| result.bad_answers);
    let bad_answers: Vec<_> =
        bad_answers.map(|count| i32::try_from(count).unwrap_or(i32::MAX)).collect();
    sums.add(&ScoredMatch {
        seats: &seats,
        scores: &scores,
        carried: &played.carried,
        forfeits: &forfeits,
        bad_answers: &bad_answers,
    });
}

/// The entrant of an entry.
fn entrant(entry: usize) -> Entrant {
    Entrant(i32::try_from(entry).expect("a command line has fewer than 2^31 bots"))
}

/// The entry of an entrant.
fn entry(entrant: Entrant) -> usize {
    usize::try_from(entrant.0).expect("entrants are positions of entries")
}

#[cfg(test)]
mod tests {
    use arbiter_games::{blackjack, gomoku};

    use super::*;

    fn tally(game: &Game, games: &[&[i64]]) -> Tally {
        let mut tally = Tally::of_bots(game, games[0].len());
        for scores in games {
            let scores: Vec<_> = scores.iter().map(|points| vec![*points]).collect();
            let played = PlayedMatch::of_scores((0..scores.len()).collect(), scores);
            tally.add(&JobResult { matches: vec![played] });
        }
        tally
    }

    #[test]
    fn ties_share_a_rank() {
        let tally = tally(&gomoku::game(), &[&[2, 0, 1, 1], &[0, 1, 1, 0]]);
        assert_eq!(tally.ranking(), [(1, 0), (1, 2), (3, 1), (3, 3)]);
    }

    #[test]
    fn games_are_won_drawn_and_lost_by_their_scores() {
        let tally = tally(&gomoku::game(), &[&[2, 0], &[1, 1], &[2, 0], &[0, 2]]);
        let finishes = |first, shared_first, behind| Finishes { first, shared_first, behind };
        assert_eq!(tally.rows[0].finishes, finishes(2, 1, 1));
        assert_eq!(tally.rows[1].finishes, finishes(1, 1, 2));
        assert_eq!(tally.rows[0].mean(), Some(1.25));
    }

    /// 50 games of blackjack with the maximum number of chips.
    #[test]
    fn large_scores_are_added_exactly() {
        const CHIPS: i64 = 1_000_000_000_000_000_000;
        let games = [[CHIPS, CHIPS - 1]; 50];
        let games: Vec<_> = games.iter().map(<[i64; 2]>::as_slice).collect();
        let tally = tally(&blackjack::game(), &games);
        assert_eq!(tally.ranking(), [(1, 0), (2, 1)]);
        assert_eq!(tally.rows[1].sums.score, [50 * i128::from(CHIPS) - 50, 0]);
    }

    /// The chips that a bot carries count once, and a bot that goes broke loses a point.
    #[test]
    fn an_episode_counts_as_one_game() {
        let mut tally = Tally::of_bots(&blackjack::game(), 3);
        let first = PlayedMatch::of_scores(vec![2, 0, 1], vec![vec![150], vec![250], vec![0]]);
        let mut second = PlayedMatch::of_scores(vec![0, 2], vec![vec![9], vec![300]]);
        second.carried = vec![250, 150];
        tally.add(&JobResult { matches: vec![first, second] });
        let rows = tally.rows.iter().map(|row| (row.games, row.sums.score.clone()));
        let expected = [(1, vec![9, -1]), (1, vec![0, -1]), (1, vec![300, 0])];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
        let first = tally.rows.iter().map(|row| row.finishes.first);
        assert_eq!(first.collect::<Vec<_>>(), [0, 0, 1]);
    }
}
