//! The stored matches of an edition in the order of its plan.
//!
//! Matches are numbered in the order in which editions added them, so the place of a match in a
//! plan is derived: the plan is listed again, and its matches are looked up by their seed keys.

use std::collections::HashMap;

use arbiter_games::Games;
use arbiter_proto::ids::MatchNumber;
use arbiter_ranking::Entrant;
use sqlx::{Error, PgPool, Result};
use tokio::runtime::Handle;

use super::open_edition::with_entrants;
use super::plan_derivation::EditionSource;
use super::{FileError, TournamentFile};
use crate::db::editions::{self, Edition, EditionScope};
use crate::db::matches::{self, Match, MatchKey};
use crate::db::results::{self, SeatedResult};
use crate::db::tournaments::Tournament;

/// The number of matches that are looked up at a time.
const PAGE: usize = 1000;

/// Why the matches of a plan are unknown.
#[derive(Debug, thiserror::Error)]
pub enum StoredPlanError {
    /// The database failed.
    #[error(transparent)]
    Database(#[from] Error),
    /// The stored tournament file is not valid for this release.
    #[error(transparent)]
    Settings(#[from] FileError),
    /// The plan cannot be derived, or differs from the stored matches.
    #[error("cannot list the plan of the edition again: {0}")]
    Plan(String),
    /// The coordinator is stopping.
    #[error("the coordinator is stopping")]
    Stopped,
}

impl From<String> for StoredPlanError {
    fn from(reason: String) -> Self {
        Self::Plan(reason)
    }
}

/// The places of an edition's matches in its plan.
#[derive(Clone, Debug)]
pub struct Positions(Option<Vec<Option<i64>>>);

impl Positions {
    /// The place of a match, from 0.
    pub fn of(&self, number: MatchNumber) -> Option<i64> {
        match &self.0 {
            // The first edition added its matches in the order of its plan.
            None => Some(number.0),
            Some(places) => *places.get(usize::try_from(number.0).ok()?)?,
        }
    }
}

/// The places of an edition's matches in its plan.
pub async fn positions(
    pool: &PgPool,
    games: &Games,
    tournament: &Tournament,
    edition: &Edition,
) -> Result<Positions, StoredPlanError> {
    if edition.number == 1 {
        return Ok(Positions(None));
    }
    let file = TournamentFile::from_json(games, &tournament.settings)?;
    let mut db = pool.acquire().await?;
    let source = EditionSource::of_edition(&mut db, tournament, &file, edition).await?;
    // The plan takes a connection too, and a second one must not be waited for with one in hand.
    drop(db);
    let plan = StoredPlan::new(pool, edition).await?;
    let length = usize::try_from(edition.end_match).unwrap_or(0);
    let list = move || {
        let mut places = vec![None; length];
        plan.each(&file, &source, |planned, stored| {
            let index = stored.and_then(|stored| usize::try_from(stored.number.0).ok());
            if let Some(place) = index.and_then(|index| places.get_mut(index)) {
                *place = Some(planned.number.0);
            }
            Ok(())
        })?;
        Ok(Positions(Some(places)))
    };
    tokio::task::spawn_blocking(list).await.map_err(|_| StoredPlanError::Stopped)?
}

/// The matches of an edition, looked up in the order of its plan.
#[derive(Debug)]
pub struct StoredPlan {
    pool: PgPool,
    edition: EditionScope,
    entrants: Vec<Entrant>,
}

impl StoredPlan {
    /// The plan of this edition.
    pub async fn new(pool: &PgPool, edition: &Edition) -> Result<Self> {
        let rows = editions::entrants(pool, edition.id).await?;
        let entrants = rows.into_iter().map(|row| row.entrant).collect();
        Ok(Self { pool: pool.clone(), edition: edition.scope(), entrants })
    }

    /// Passes each planned match of the edition to `visit`, with the stored one. Planned matches
    /// have their places as numbers, and entrants in their seats. Stops at the first error of
    /// `visit`, and returns it. Call it on a thread that may block.
    pub fn each(
        &self,
        file: &TournamentFile,
        source: &EditionSource,
        mut visit: impl FnMut(&Match, Option<&Match>) -> Result<(), String>,
    ) -> Result<(), StoredPlanError> {
        if file.schedule.depends_on_results() {
            // Later matches depend on results, so all stored ones are in memory.
            let all = self.read_all()?;
            let derived = source.derive(file, |planned| {
                let planned = self.seat(planned)?;
                let found = all.get(&planned.key());
                visit(&planned, found.map(|(stored, _)| stored))?;
                Ok(found.and_then(|(_, played)| played.clone()))
            });
            return derived.map(drop);
        }
        let mut page = Vec::new();
        source.derive(file, |planned| {
            page.push(self.seat(planned)?);
            if page.len() == PAGE {
                self.visit_page(&mut page, &mut visit)?;
            }
            Ok::<_, StoredPlanError>(None)
        })?;
        self.visit_page(&mut page, &mut visit)
    }

    /// Puts the entrants into the seats of a planned match.
    fn seat(&self, planned: Match) -> Result<Match, String> {
        let mut seated = with_entrants(std::iter::once(planned), &self.entrants);
        seated.next().ok_or_else(|| "there is a match less".to_owned())
    }

    /// Looks up the planned matches of a page, and passes each to `visit`.
    fn visit_page(
        &self,
        page: &mut Vec<Match>,
        visit: &mut impl FnMut(&Match, Option<&Match>) -> Result<(), String>,
    ) -> Result<(), StoredPlanError> {
        let reading = matches::same_seats(&self.pool, self.edition, page);
        let stored = Handle::current().block_on(reading)?;
        let by_key: HashMap<_, _> = stored.iter().map(|stored| (stored.key(), stored)).collect();
        for planned in page.drain(..) {
            visit(&planned, by_key.get(&planned.key()).copied())?;
        }
        Ok(())
    }

    /// All matches of the edition with their results, in whose seats are the places of bots.
    fn read_all(&self) -> Result<HashMap<MatchKey, (Match, Option<SeatedResult>)>> {
        let runtime = Handle::current();
        let places: HashMap<_, _> = self.entrants.iter().copied().zip((0..).map(Entrant)).collect();
        let mut results: HashMap<MatchNumber, SeatedResult> = HashMap::new();
        let mut after = MatchNumber(-1);
        loop {
            let page = runtime.block_on(results::page(&self.pool, self.edition, after, false))?;
            let Some(last) = page.last() else { break };
            after = last.number;
            for mut played in page {
                for seat in &mut played.seats.0 {
                    *seat = places.get(seat).copied().unwrap_or(*seat);
                }
                results.insert(played.number, played);
            }
        }
        let mut all = HashMap::new();
        let mut first = MatchNumber(0);
        let limit = u32::try_from(PAGE).expect("it is a page");
        loop {
            let reading = matches::planned(&self.pool, self.edition, first, None, limit);
            let page = runtime.block_on(reading)?;
            let Some(last) = page.last() else { return Ok(all) };
            first = MatchNumber(last.number.0 + 1);
            for stored in page {
                let played = results.remove(&stored.number);
                all.insert(stored.key(), (stored, played));
            }
        }
    }
}
