//! The standings of a stage.

use std::collections::{HashMap, HashSet};
use std::f64::consts::LN_10;

use arbiter_games::Score;
use arbiter_proto::v1::StageStanding;
use arbiter_schedule::{Bot, Rounds as _, Total, shared_ranks};

use super::{BegunStage, EditionRounds, StageKind, to_u32};

/// The standings of a stage, the best bot first. Those of swiss and ladder are after this many
/// rounds. A score has this many columns.
pub(super) fn standings(
    rounds: &EditionRounds,
    stage: &BegunStage<'_>,
    counted: usize,
    columns: usize,
) -> Vec<StageStanding> {
    let mut rows = match stage.plan {
        StageKind::Listed(listed) => {
            let round = listed.with_played(&results(stage));
            ranked(&round.ranks(), |bot| scored(&round.totals()[bot], columns))
        }
        StageKind::Gauntlet(gauntlet) => {
            let gauntlet = gauntlet.with_played(&results(stage));
            ranked(&gauntlet.ranks(), |bot| {
                let total = &gauntlet.totals()[bot];
                let group = if gauntlet.is_panel()[bot] { "panel" } else { "candidate" };
                StageStanding {
                    group: group.to_owned(),
                    mean: mean(total),
                    ..scored(total, columns)
                }
            })
        }
        StageKind::Knockout(bracket) => {
            let numbers = numbers(bracket.numbered());
            ranked(&bracket.ranks(), |bot| StageStanding {
                number: numbers.get(bot).copied(),
                ..StageStanding::default()
            })
        }
        StageKind::Swiss(swiss) => {
            let numbers = numbers(swiss.numbered());
            let standings = swiss.standings(counted);
            let ranks: Vec<_> = standings.iter().map(|standing| standing.rank).collect();
            ranked(&ranks, |bot| StageStanding {
                points: Some(f64::from(standings[bot].points) / 2.0),
                buchholz: Some(f64::from(standings[bot].buchholz) / 2.0),
                sonneborn_berger: Some(f64::from(standings[bot].sonneborn_berger) / 4.0),
                number: numbers.get(bot).copied(),
                ..StageStanding::default()
            })
        }
        StageKind::Ladder(_) => {
            let strengths = strengths(stage, counted);
            let best_first = |one: usize, other: usize| strengths[other].total_cmp(&strengths[one]);
            ranked(&shared_ranks(strengths.len(), best_first), |bot| StageStanding {
                // Elo: a factor of 10 in strength is 400 points.
                rating: Some(400.0 / LN_10 * strengths[bot].ln()),
                ..StageStanding::default()
            })
        }
    };
    let advanced: HashSet<_> = stage.advanced.iter().collect();
    for (bot, row) in stage.field.iter().zip(&mut rows) {
        row.bot = rounds.name(*bot);
        row.advanced = advanced.contains(bot);
    }
    rows.sort_by_key(|row| (row.rank, row.number));
    let unranked = stage.field.iter().filter(|bot| !rounds.is_ranked(**bot));
    skip_unranked(&mut rows, &unranked.map(|bot| rounds.name(*bot)).collect());
    rows
}

/// Takes the ranks of these bots away, and numbers the others anew. Who advances stays the same.
fn skip_unranked(rows: &mut [StageStanding], unranked: &HashSet<String>) {
    if unranked.is_empty() {
        return;
    }
    let ranked = rows.iter().filter(|row| !unranked.contains(&row.bot)).map(|row| row.rank);
    let ranks: Vec<_> = ranked.collect();
    for row in rows {
        if unranked.contains(&row.bot) {
            row.rank = 0;
            row.tied = false;
        } else {
            let better = ranks.partition_point(|rank| *rank < row.rank);
            row.tied = ranks[better..].partition_point(|rank| *rank == row.rank) > 1;
            row.rank = to_u32(better + 1);
        }
    }
}

/// A row for each bot of these ranks, in the order of the bots.
fn ranked(ranks: &[u32], row: impl Fn(usize) -> StageStanding) -> Vec<StageStanding> {
    let mut sharing: HashMap<u32, u32> = HashMap::new();
    for rank in ranks {
        *sharing.entry(*rank).or_default() += 1;
    }
    let with_rank = |(bot, rank): (usize, &u32)| StageStanding {
        rank: *rank,
        tied: sharing[rank] > 1,
        ..row(bot)
    };
    ranks.iter().enumerate().map(with_rank).collect()
}

/// The results of a stage without rounds, in the order of its matches.
fn results(stage: &BegunStage<'_>) -> Vec<Option<Vec<Score>>> {
    let matches = stage.rounds.iter().flat_map(|round| &round.matches);
    matches.map(|played| played.scores.clone()).collect()
}

/// A row with the sums of scores.
fn scored(total: &Total, columns: usize) -> StageStanding {
    let sum = |column: usize| total.scores.get(column).copied().unwrap_or(0).to_string();
    StageStanding {
        matches: Some(total.matches),
        score: (0..columns).map(sum).collect(),
        ..StageStanding::default()
    }
}

/// The mean of the first number of the scores.
#[expect(clippy::cast_precision_loss, reason = "a mean is not exact")]
fn mean(total: &Total) -> Option<f64> {
    let sum = total.scores.first().filter(|_| total.matches > 0)?;
    Some(*sum as f64 / total.matches as f64)
}

/// The number of each bot, from 1. `numbered` are the bots in the order of their numbers.
fn numbers(numbered: &[Bot]) -> Vec<u32> {
    let mut numbers = vec![0; numbered.len()];
    for (number, bot) in (1..).zip(numbered) {
        numbers[usize::from(*bot)] = number;
    }
    numbers
}

/// The strength of each bot of a ladder after this many rounds.
fn strengths(stage: &BegunStage<'_>, counted: usize) -> Vec<f64> {
    let last = counted.checked_sub(1).and_then(|last| stage.rounds.get(last));
    last.map_or_else(|| vec![1.0; stage.field.len()], |round| round.strengths.clone())
}
