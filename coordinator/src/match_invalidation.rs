//! Invalidation of matches: an organiser declares matches void because they do not trust the worker
//! or the time at which they were played.
//!
//! Results are not changed. Void matches are listed in a table. The next edition has other matches
//! in their places, which are played. The official leaderboard changes when that edition is
//! complete. The preview shows the leaderboard without the void matches, since their new results
//! are unknown.
//!
//! Where later rounds depend on results, the next edition repeats the plan, and a round that lacks
//! a result is open again. So ranks that the plan decides are those of the rounds before it.

use std::collections::{BTreeMap, HashMap, HashSet};

use arbiter_games::{Game, Games};
use arbiter_proto::ids::{MatchId, MatchNumber, TokenId, TournamentId};
use arbiter_ranking::Entrant;
use arbiter_ranking::{self as ranking, Contestant, RankedContestant, Tallies, Tally};
use sqlx::{Error, PgConnection, PgPool, Result};
use time::OffsetDateTime;

use crate::db::editions::EditionScope;
use crate::db::entrants::Roster;
use crate::db::invalidated_matches::{self, MatchFilter};
use crate::db::results::{self, SeatedResult};
use crate::db::{self, editions, standings, tournaments};
use crate::tournament::rounds;

/// Why matches cannot be declared void.
#[derive(Debug, thiserror::Error)]
pub enum InvalidationError {
    /// The request has no condition, so it would void all matches.
    #[error("no matches selected; name a worker, a time span or matches")]
    NoCondition,
    /// A named match was not played in this tournament.
    #[error("match {0} was not played in this tournament")]
    Unplayed(MatchId),
    /// The database failed.
    #[error("cannot search for the matches: {0}")]
    Database(#[from] Error),
}

/// A bot on the leaderboard with and without the void matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankChange {
    /// Its name.
    pub bot: String,
    /// Its current rank, if it has one, and its score.
    pub now: (Option<usize>, Vec<i128>),
    /// Its rank and score without the void matches.
    pub without: (Option<usize>, Vec<i128>),
}

/// The effect of void matches on a leaderboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// The game.
    pub game: Game,
    /// Void matches of the edition.
    pub missing: usize,
    /// Its bots, best first.
    pub places: Vec<RankChange>,
    /// What else may change, for people.
    pub note: Option<&'static str>,
}

/// The note if the plan decides ranks.
const REOPENED: &str = "A round that lacks a result is open again: the ranks without these matches \
    are those of the rounds before it. Later rounds follow from the new results, so other bots may \
    meet in them.";
/// The note for episodes.
const LATER_ROUNDS: &str = "Later rounds of an episode follow from the new results, so they may be \
    played again, too.";

/// Finds the matches of a tournament that satisfy the conditions of `filter`. If `named` is not
/// empty, only these matches are searched. Returns the matches that are not void yet, in order.
///
/// # Errors
/// If there is no condition, or a named match was not played.
pub async fn find(
    db: &mut PgConnection,
    tournament: TournamentId,
    filter: &MatchFilter,
    named: &[MatchNumber],
) -> Result<Vec<MatchNumber>, InvalidationError> {
    let is_unfiltered = *filter == MatchFilter::default();
    if is_unfiltered && named.is_empty() {
        return Err(InvalidationError::NoCondition);
    }
    db::lift_time_limits(&mut *db).await?;
    let matching = if is_unfiltered {
        None
    } else {
        Some(invalidated_matches::find(&mut *db, tournament, filter).await?)
    };
    if named.is_empty() {
        return Ok(matching.unwrap_or_default());
    }
    let played = invalidated_matches::played(&mut *db, tournament, named).await?;
    let is_played = |number: &MatchNumber| played.iter().any(|(played, _)| played == number);
    if let Some(number) = named.iter().copied().find(|number| !is_played(number)) {
        return Err(InvalidationError::Unplayed(MatchId { tournament, number }));
    }
    let is_matching =
        |number: &MatchNumber| matching.as_ref().is_none_or(|all| all.contains(number));
    let not_void = played.into_iter().filter(|(number, void)| !void && is_matching(number));
    Ok(not_void.map(|(number, _)| number).collect())
}

/// Declares matches void, and makes an edition due that plays them again.
pub async fn apply(
    db: &mut PgConnection,
    tournament: TournamentId,
    matches: &[MatchNumber],
    by: TokenId,
    reason: &str,
    now: OffsetDateTime,
) -> Result<u64> {
    let added = invalidated_matches::add(&mut *db, tournament, matches, by, reason, now).await?;
    tournaments::mark_changed(db, tournament, now).await?;
    Ok(added)
}

/// The leaderboard of an edition with and without these matches. Repeats all rounds of its plan, so
/// it may compute for long.
pub async fn preview(
    pool: &PgPool,
    games: &Games,
    edition: EditionScope,
    matches: &[MatchNumber],
) -> Result<Preview> {
    let mut transaction = db::snapshot(pool).await?;
    let db = &mut *transaction;
    db::lift_time_limits(&mut *db).await?;
    db::limit_pause(&mut *db, db::MAX_PLANNING_PAUSE).await?;
    let void: HashSet<_> = matches.iter().copied().collect();
    let game = editions::game(&mut *db, games, edition.id).await?;
    let mut all = Tallies::new(&game);
    let mut without = Tallies::new(&game);
    let mut missing = 0;
    let add = |played: &SeatedResult| {
        all.add(&played.outcome());
        if void.contains(&played.number) {
            missing += 1;
        } else {
            without.add(&played.outcome());
        }
    };
    results::each(&mut *db, edition, false, add).await?;
    let roster = Roster::of(&mut *db, edition.id).await?;
    let contestants = standings::contestants(&mut *db, edition.id).await?;
    let row = editions::get(&mut *db, edition.id).await?.ok_or(Error::RowNotFound)?;
    let plan_ranks = rounds::ranks_without(&mut *db, games, &row, &void).await?;
    let rank = |tallies: &BTreeMap<Entrant, Tally>, plan_ranks: Option<&BTreeMap<Entrant, u32>>| {
        let mut contestants = contestants.clone();
        for Contestant { entrant, tally, plan_rank, .. } in &mut contestants {
            *tally = tallies.get(entrant).cloned().unwrap_or_default();
            if let Some(ranks) = plan_ranks {
                *plan_rank = ranks.get(entrant).copied();
            }
        }
        ranking::rank(&game, contestants)
    };
    let now = rank(all.by_entrant(), None);
    let places = rank_changes(&roster, now, rank(without.by_entrant(), plan_ranks.as_ref()));
    let note = match (missing, plan_ranks) {
        (0, _) => None,
        (_, Some(_)) => Some(REOPENED),
        (_, None) => game.episodes.as_ref().map(|_| LATER_ROUNDS),
    };
    Ok(Preview { game, missing, places, note })
}

/// Pairs two rankings of the same bots, in the order of the first.
fn rank_changes(
    roster: &Roster,
    now: Vec<RankedContestant>,
    without: Vec<RankedContestant>,
) -> Vec<RankChange> {
    let place = |ranked: RankedContestant| {
        (ranked.contestant.entrant, (ranked.rank, ranked.contestant.tally.score))
    };
    let mut without: HashMap<_, _> = without.into_iter().map(place).collect();
    let changes = now.into_iter().map(place).map(|(entrant, now)| RankChange {
        bot: roster.get(entrant).map(|named| named.name.clone()).unwrap_or_default(),
        without: without.remove(&entrant).unwrap_or_default(),
        now,
    });
    changes.collect()
}
