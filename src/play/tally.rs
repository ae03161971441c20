//! Adds up the scores of the bots of a local run.

use arbiter_games::{Forfeit, Micros};
use arbiter_ranking::{Tally as Sums, U256};
use hdrhistogram::Histogram;

use crate::play::run::JobResult;

/// The totals of one bot.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The sums over its games, or episodes.
    pub(crate) sums: Sums,
    /// Reply times in microseconds, with three significant digits.
    replies: Histogram<u64>,
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
        Self { sums: Sums::default(), replies }
    }

    /// The mean of the first component of the scores and half the width of its 95 % confidence
    /// interval, which needs two games.
    pub(crate) fn mean(&self) -> (f64, Option<f64>) {
        self.sums.mean().map_or((0.0, None), |mean| (mean.mean, mean.margin))
    }

    /// Adds the score of a game.
    fn add(&mut self, score: &[i64]) {
        let score: Vec<_> = score.iter().copied().map(i128::from).collect();
        let squares = U256::square(score.first().copied().unwrap_or(0));
        self.sums.merge(&Sums { matches: 1, score, squares, ..Sums::default() });
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

/// The totals of all bots, by position in the list of entries.
#[derive(Clone, Debug)]
pub(crate) struct Tally(pub(crate) Vec<Row>);

impl Tally {
    /// Creates empty totals for this number of bots.
    pub(crate) fn new(bots: usize) -> Self {
        Self(vec![Row::new(); bots])
    }

    /// Adds a played job.
    pub(crate) fn add(&mut self, result: &JobResult) {
        for (entry, score) in &result.scores {
            self.0[*entry].add(&score.0);
        }
        for played in &result.matches {
            let outcome = &played.outcome;
            let seats = outcome.results.iter().zip(&outcome.seats);
            for (entry, (standing, report)) in played.seats.iter().zip(seats) {
                let row = &mut self.0[*entry];
                row.sums.bad_answers += i64::from(standing.bad_answers);
                let kind = Forfeit::ALL.iter().position(|kind| Some(*kind) == standing.forfeit);
                if let Some(kind) = kind {
                    row.sums.forfeits[kind] += 1;
                }
                for reply in &report.replies {
                    row.replies.saturating_record(u64::try_from(reply.0).unwrap_or(0));
                }
            }
        }
    }

    /// Pairs of rank and bot, the best first. Equal scores share a rank.
    pub(crate) fn ranking(&self) -> Vec<(usize, usize)> {
        let mut order: Vec<_> = (0..self.0.len()).collect();
        order.sort_by(|a, b| self.0[*b].sums.score.cmp(&self.0[*a].sums.score));
        let mut ranked: Vec<(usize, usize)> = Vec::new();
        for (index, entry) in order.into_iter().enumerate() {
            let rank = match ranked.last() {
                Some((rank, previous))
                    if self.0[*previous].sums.score == self.0[entry].sums.score =>
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

#[cfg(test)]
mod tests {
    use arbiter_games::Score;

    use super::*;

    fn tally(scores: &[&[i64]]) -> Tally {
        let mut tally = Tally::new(scores[0].len());
        for game in scores {
            let scores = game.iter().map(|points| Score(vec![*points])).enumerate().collect();
            tally.add(&JobResult { matches: Vec::new(), scores });
        }
        tally
    }

    #[test]
    fn ties_share_a_rank() {
        let tally = tally(&[&[2, 0, 1, 1], &[0, 1, 1, 0]]);
        assert_eq!(tally.ranking(), [(1, 0), (1, 2), (3, 1), (3, 3)]);
    }

    /// 50 games of blackjack with the maximum number of chips.
    #[test]
    fn large_scores_are_added_exactly() {
        const CHIPS: i64 = 1_000_000_000_000_000_000;
        let games = [[CHIPS, CHIPS - 1]; 50];
        let games: Vec<_> = games.iter().map(<[i64; 2]>::as_slice).collect();
        let tally = tally(&games);
        assert_eq!(tally.ranking(), [(1, 0), (2, 1)]);
        assert_eq!(tally.0[1].sums.score, [50 * i128::from(CHIPS) - 50]);
        assert_eq!(tally.0[1].mean().1, Some(0.0));
    }

    #[test]
    fn confidence_intervals_match_student_quantiles() {
        let (mean, margin) = tally(&[&[2], &[0], &[2], &[0]]).0[0].mean();
        assert!((mean - 1.0).abs() < 1e-9);
        // The sample's deviation is 2/sqrt(3), its standard error half of that; Student's quantile
        // for three degrees of freedom is 3.182.
        assert!((margin.unwrap() - 3.182 / 3.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(tally(&[&[5]]).0[0].mean(), (5.0, None));
    }
}
