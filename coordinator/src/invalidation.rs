//! Voiding: an organiser declares matches void that were played on a machine or at a time that they
//! do not trust.
//!
//! Nothing that was reported is changed. The void matches stand in a table of their own; an edition
//! that takes results over afterwards takes everything over but them, and plays them again. A
//! declaration and a takeover exclude each other ([`invalidated_matches::alone`]): either the takeover sees the
//! declaration, or the declaration makes an edition due that replaces what was taken over. Until it is complete
//! the official leaderboard stays what it was. What that will change nobody knows, but what the
//! void matches have brought to whom is shown before.

use std::collections::{BTreeMap, HashMap, HashSet};

use arbiter_games::{Game, Games};
use arbiter_proto::ids::{EditionId, MatchId, TokenId, TournamentId};
use arbiter_ranking::Entrant;
use arbiter_ranking::{self as ranking, RankedContestant, Tallies, Tally};
use sqlx::{Error, PgConnection, PgPool, Result};
use time::OffsetDateTime;

use crate::db::entrants::Roster;
use crate::db::invalidated_matches::{self, Wanted};
use crate::db::results::{self, Played};
use crate::db::{self, editions, standings, tournaments};

/// Why matches cannot be declared void.
#[derive(Debug, thiserror::Error)]
pub enum InvalidationError {
    /// Nothing says which.
    #[error("say which matches: those of a worker, of a time, or by their names")]
    Boundless,
    /// A match that is named was not played in this tournament.
    #[error("match {0} is none that was played in this tournament")]
    Unplayed(MatchId),
    /// The database failed.
    #[error("cannot look for the matches: {0}")]
    Database(#[from] Error),
}

/// A bot on a leaderboard with and without void matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankChange {
    /// Its name.
    pub bot: String,
    /// Its rank and its score as they are.
    pub now: (usize, Vec<i128>),
    /// And without the void matches.
    pub without: (usize, Vec<i128>),
}

/// What void matches do to a leaderboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// The game.
    pub game: Game,
    /// Matches of the edition that rest on void ones.
    pub missing: usize,
    /// Its bots, the best first.
    pub places: Vec<RankChange>,
}

/// The matches of a tournament that fit, and those of `named` alone if any is named: the originals,
/// which are not void yet, in order.
///
/// # Errors
/// If nothing is asked for, or a match that is named was not played.
pub async fn find(
    db: &mut PgConnection,
    tournament: TournamentId,
    wanted: &Wanted,
    named: &[MatchId],
) -> Result<Vec<MatchId>, InvalidationError> {
    let any = *wanted == Wanted::default();
    if any && named.is_empty() {
        return Err(InvalidationError::Boundless);
    }
    db::be_patient(&mut *db).await?;
    let fitting = if any {
        None
    } else {
        Some(invalidated_matches::find(&mut *db, tournament, wanted).await?)
    };
    if named.is_empty() {
        return Ok(fitting.unwrap_or_default());
    }
    let found = invalidated_matches::originals(&mut *db, tournament, named).await?;
    let played: HashSet<_> = found.iter().map(|(named, ..)| *named).collect();
    if let Some(unplayed) = named.iter().find(|id| !played.contains(id)) {
        return Err(InvalidationError::Unplayed(*unplayed));
    }
    let fitting: Option<HashSet<_>> = fitting.map(|found| found.into_iter().collect());
    let fits = |id: &MatchId| fitting.as_ref().is_none_or(|fitting| fitting.contains(id));
    let fresh = found.into_iter().filter(|(_, original, void)| !void && fits(original));
    let mut fresh: Vec<_> = fresh.map(|(_, original, _)| original).collect();
    fresh.sort_unstable();
    fresh.dedup();
    Ok(fresh)
}

/// Declares matches void: a new edition is due, which plays them again.
pub async fn apply(
    db: &mut PgConnection,
    tournament: TournamentId,
    matches: &[MatchId],
    by: TokenId,
    reason: &str,
    now: OffsetDateTime,
) -> Result<u64> {
    invalidated_matches::alone(&mut *db, tournament).await?;
    let added = invalidated_matches::add(&mut *db, matches, by, reason, now).await?;
    tournaments::changed(db, tournament, now).await?;
    Ok(added)
}

/// What these matches do to the leaderboard of an edition.
pub async fn preview(
    pool: &PgPool,
    games: &Games,
    edition: EditionId,
    matches: &[MatchId],
) -> Result<Preview> {
    let mut transaction = db::snapshot(pool).await?;
    let db = &mut *transaction;
    db::be_patient(&mut *db).await?;
    let void: HashSet<_> = matches.iter().copied().collect();
    let taken = invalidated_matches::taken_over(&mut *db, edition).await?;
    let origin: HashMap<_, _> = taken.into_iter().collect();
    let game = editions::game(&mut *db, games, edition).await?;
    let mut all = Tallies::new(&game);
    let mut without = Tallies::new(&game);
    let mut missing = 0;
    let add = |played: &Played| {
        let here = MatchId { edition, number: played.number };
        all.add(&played.outcome());
        if void.contains(origin.get(&played.number).unwrap_or(&here)) {
            missing += 1;
        } else {
            without.add(&played.outcome());
        }
    };
    results::each(&mut *db, edition, false, add).await?;
    let roster = Roster::of(&mut *db, edition).await?;
    let contestants = standings::contestants(&mut *db, edition).await?;
    let rank = |tallies: &BTreeMap<Entrant, Tally>| {
        let mut contestants = contestants.clone();
        for contestant in &mut contestants {
            contestant.tally = tallies.get(&contestant.entrant).cloned().unwrap_or_default();
        }
        ranking::rank(&game, contestants)
    };
    let places = moved(&roster, rank(all.by_entrant()), rank(without.by_entrant()));
    Ok(Preview { game, missing, places })
}

/// Two rankings of the same bots side by side, in the order of the first.
fn moved(
    roster: &Roster,
    now: Vec<RankedContestant>,
    without: Vec<RankedContestant>,
) -> Vec<RankChange> {
    let place = |place: RankedContestant| {
        (place.contestant.entrant, (place.rank, place.contestant.tally.score))
    };
    let mut without: HashMap<_, _> = without.into_iter().map(place).collect();
    let moved = now.into_iter().map(place).map(|(entrant, now)| RankChange {
        bot: roster.get(entrant).map(|named| named.name.clone()).unwrap_or_default(),
        without: without.remove(&entrant).unwrap_or_default(),
        now,
    });
    moved.collect()
}
