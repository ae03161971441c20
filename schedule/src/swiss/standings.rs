//! Standings of a Swiss tournament: points, then tie-breaks.

use super::history::{Player, Round, Variant};
use crate::shared_ranks::shared_ranks;

/// The standing of a player after some rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The rank, from 1. Players that are equal in all other numbers share it.
    pub rank: u32,
    /// Half points: 2 for a won game, 1 for a drawn one.
    pub points: u32,
    /// The sum of the opponents' half points (Buchholz; FIDE Handbook, C.07). A bye counts like an
    /// opponent with as many points as the player.
    pub buchholz: u32,
    /// The sum, over all opponents, of their half points times those that the player won against
    /// them, so in quarters (Sonneborn–Berger; FIDE Handbook, C.07).
    pub sonneborn_berger: u32,
}

/// The standing of each player after this many rounds.
pub(super) fn standings(players: &[Player], variant: Variant, rounds: usize) -> Vec<Standing> {
    let points = |player: &Player| -> u32 {
        player.rounds.iter().take(rounds).map(|round| round.points(variant)).sum()
    };
    let totals: Vec<_> = players.iter().map(points).collect();
    let standing = |(player, own): (&Player, &u32)| {
        let mut standing = Standing { points: *own, ..Standing::default() };
        for round in player.rounds.iter().take(rounds) {
            let opponent = match round {
                Round::Played { opponent, .. } | Round::Forfeit { opponent, .. } => {
                    totals[*opponent]
                }
                Round::PairingBye | Round::Absent { .. } => *own,
            };
            standing.buchholz += opponent;
            standing.sonneborn_berger += opponent * round.points(variant);
        }
        standing
    };
    let mut standings: Vec<_> = players.iter().zip(&totals).map(standing).collect();
    let key = |one: &Standing| (one.points, one.buchholz, one.sonneborn_berger);
    let best_first =
        |first: usize, second: usize| key(&standings[second]).cmp(&key(&standings[first]));
    let ranks = shared_ranks(standings.len(), best_first);
    for (standing, rank) in standings.iter_mut().zip(ranks) {
        standing.rank = rank;
    }
    standings
}
