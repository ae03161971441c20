//! Episodes: each round is planned from the results of the rounds before.
//!
//! The first round of all episodes is planned when the edition opens. When every planned match is
//! counted, the next round of all episodes is planned. It depends only on the tournament's seed
//! and the results, so any coordinator may plan it, also after a crash. All episodes have the same
//! round at a time, so that the order of matches does not depend on the speed of each episode.

use std::cmp::Reverse;
use std::collections::HashMap;

use arbiter_games::{Episode, Games, Score, SeatResult, Seed, TablePlan};
use arbiter_proto::ids::{EditionId, MatchNumber};
use arbiter_ranking::Entrant;
use serde_json::{Map, Value};
use sqlx::{Error, PgConnection};

use super::TournamentFile;
use super::edition_matches::EditionMatches;
use super::file::of_match;
use super::open_edition::with_entrants;
use crate::db::editions::Edition;
use crate::db::matches::{self, Match, Seats};
use crate::db::results::{self, SeatedResult};
use crate::db::{self, absences, editions, tournaments};
use crate::queue::{PlanError, Queue};

/// All episodes of an edition, at the beginning of a round.
#[derive(Debug)]
pub(super) struct Rounds {
    episodes: Vec<Episode>,
    /// The tables of the round, each with its episode, in the order of their matches. Tables with
    /// the same number of seats are adjacent, since all matches of a lot have the same number of
    /// scores.
    tables: Vec<(usize, TablePlan)>,
    /// The round, from 1.
    round: u32,
    /// The last round.
    last: u32,
    /// The place of the round's first match in the plan.
    first: i64,
    /// The parameters that all matches share.
    common: Map<String, Value>,
}

impl Rounds {
    /// The first round.
    pub(super) fn new(file: &TournamentFile, bots: usize, seed: Seed) -> Result<Self, String> {
        let plan = file.schedule.plan(bots, seed).map_err(|error| error.to_string())?;
        let arbiter_schedule::Plan::Episodes(plan) = plan else {
            return Err("the schedule has no episodes".to_owned());
        };
        let episodes = plan.keys().map(|key| file.params.episode(bots, seed.derive(&key)));
        let mut rounds = Self {
            episodes: episodes.collect::<Result<_, _>>().map_err(|error| error.to_string())?,
            tables: Vec::new(),
            round: 1,
            last: file.rounds(),
            first: 0,
            common: file.settings().params,
        };
        rounds.collect_tables();
        Ok(rounds)
    }

    /// Collects the tables of the round.
    fn collect_tables(&mut self) {
        let tables = |(number, episode): (usize, &Episode)| {
            episode.tables().iter().map(move |table| (number, table.clone())).collect::<Vec<_>>()
        };
        self.tables = self.episodes.iter().enumerate().flat_map(tables).collect();
        self.tables.sort_by_key(|(_, table)| Reverse(table.bots.len()));
    }

    /// Advances to the next round with the results of this one, in the order of their matches.
    ///
    /// # Errors
    /// If they are not the results of these matches.
    pub(super) fn finish(&mut self, results: &[SeatedResult]) -> Result<(), String> {
        let tables = std::mem::take(&mut self.tables);
        // The tables of an episode finish in reverse order, because removing its last table is
        // cheapest.
        for (place, ((episode, table), played)) in tables.iter().zip(results).enumerate().rev() {
            let entrants = played.seats.0.iter().map(|entrant| usize::try_from(entrant.0));
            if !entrants.eq(table.bots.iter().copied().map(Ok)) {
                return Err(format!("match {} was planned for other bots", self.first_plus(place)));
            }
            self.episodes[*episode].finish(table.table, &standings(played)?);
        }
        self.first = self.first_plus(tables.len());
        self.round += 1;
        self.collect_tables();
        Ok(())
    }

    fn first_plus(&self, place: usize) -> i64 {
        self.first + i64::try_from(place).expect("no round is that long")
    }

    /// Whether another round may follow.
    pub(super) fn is_open_ended(&self) -> bool {
        self.round < self.last && !self.tables.is_empty()
    }

    /// The matches of the round, numbered by their places in the plan. Their seats hold the places
    /// of bots.
    pub(super) fn matches(&self) -> impl Iterator<Item = Match> {
        (self.first..).zip(&self.tables).map(|(number, (episode, table))| {
            let carried = self.episodes[*episode].bots();
            let entrant = |bot: &usize| Entrant(i32::try_from(*bot).expect("at most 65536 bots"));
            Match {
                number: MatchNumber(number),
                seed_key: seed_key(*episode, table),
                board: None,
                seats: Seats(table.bots.iter().map(entrant).collect()),
                carried: (self.round > 1)
                    .then(|| table.bots.iter().map(|bot| carried[*bot].score).collect()),
                state_from: None,
                params: self.table_params(of_match(&table.params)),
            }
        })
    }

    /// The parameters in which a table differs from the common ones. None if there are none. A list
    /// with one value for each seat equals a common value if all its items are equal to that value.
    fn table_params(&self, params: Map<String, Value>) -> Option<Value> {
        let is_equal = |value: &Value, common: &Value| match value {
            Value::Array(items) => items.iter().all(|item| item == common),
            _ => value == common,
        };
        let is_common = |key: &str, value: &Value| {
            self.common.get(key).is_some_and(|common| is_equal(value, common))
        };
        let special: Map<_, _> =
            params.into_iter().filter(|(key, value)| !is_common(key, value)).collect();
        (!special.is_empty()).then_some(Value::Object(special))
    }
}

/// The seed key of a table: unique in the tournament, and the same for the same table of the next
/// edition.
fn seed_key(episode: usize, table: &TablePlan) -> i64 {
    let numbers = (i64::try_from(episode), table.round, table.table);
    let (Ok(episode), round, table) = numbers else {
        unreachable!("there are at most 1000 episodes");
    };
    // There are at most 1000 rounds, and at most 65536 bots at tables of two or more.
    (episode << 32) | (i64::from(round) << 16) | i64::from(table)
}

/// The episode, from 0, of the table with this seed key.
pub fn episode_of(seed_key: i64) -> i64 {
    seed_key >> 32
}

/// The round of an episode, from 0, of the table with this seed key.
pub fn round_of(seed_key: i64) -> u16 {
    let [.., high, low, _, _] = seed_key.to_be_bytes();
    u16::from_be_bytes([high, low])
}

/// The standing of each seat after a match.
fn standings(played: &SeatedResult) -> Result<Vec<SeatResult>, String> {
    let seats = played.seats.0.len();
    let bad = played.bad_answers.clone().unwrap_or_default();
    let components = played.scores.len() / seats.max(1);
    let has_scores = components > 0 && played.scores.len() == components * seats;
    if !has_scores || !(bad.is_empty() || bad.len() == seats) {
        return Err(format!("match {} has no score for each seat", played.number));
    }
    let bad = bad.into_iter().chain(std::iter::repeat(0));
    let standing = |(score, bad): (&[i64], i32)| SeatResult {
        score: Score(score.to_vec()),
        forfeit: None,
        bad_answers: u32::try_from(bad).unwrap_or(0),
    };
    Ok(played.scores.chunks_exact(components).zip(bad).map(standing).collect())
}

/// Plans the next round of an edition if all planned matches are counted. Returns whether this call
/// planned it. If there are several concurrent calls, only one plans it.
pub async fn plan_next_round(queue: &Queue, edition: EditionId) -> sqlx::Result<bool> {
    let pool = queue.pool();
    let Some(planned) = editions::matches_if_round_ended(pool, edition).await? else {
        return Ok(false);
    };
    let mut transaction = pool.begin().await?;
    let db = &mut *transaction;
    db::lift_time_limits(&mut *db).await?;
    let row = editions::get(&mut *db, edition).await?.ok_or(Error::RowNotFound)?;
    absences::lock(&mut *db, row.tournament).await?;
    // If another coordinator has planned this round in the meantime, the number of matches has
    // changed.
    if !editions::lock(&mut *db, edition, planned).await? {
        // The check locked the row of the edition, and leases skip locked rows.
        transaction.rollback().await?;
        return Ok(false);
    }
    add_next_round(db, queue.games(), &row).await?;
    transaction.commit().await?;
    Ok(true)
}

async fn add_next_round(
    db: &mut PgConnection,
    games: &Games,
    edition: &Edition,
) -> sqlx::Result<()> {
    let id = edition.id;
    let inconsistent = |reason: String| {
        Error::Decode(format!("cannot plan the next round of edition {id}: {reason}").into())
    };
    let tournament = tournaments::of_edition(&mut *db, id).await?;
    let file = TournamentFile::from_json(games, &tournament.settings)
        .map_err(|error| inconsistent(error.to_string()))?;
    let entrants = editions::entrants(&mut *db, id).await?;
    let entrants: Vec<_> = entrants.into_iter().map(|row| row.entrant).collect();
    let seed = tournament.edition_seed(edition.number);
    let mut rounds = Rounds::new(&file, entrants.len(), seed).map_err(inconsistent)?;
    while rounds.first < edition.matches {
        let round = with_entrants(rounds.matches(), &entrants).collect::<Vec<_>>();
        let results = results_of(db, edition, &round, &entrants).await?;
        if results.len() < round.len() {
            return Err(inconsistent(format!("round {} is not over", rounds.round)));
        }
        rounds.finish(&results).map_err(inconsistent)?;
    }
    let mut adding = EditionMatches::new(&mut *db, &file, edition.scope(), 0).await?;
    let round = with_entrants(rounds.matches(), &entrants);
    adding.add(&mut *db, round.collect::<Vec<_>>().into_iter()).await?;
    adding.finish(db, rounds.is_open_ended()).await.map_err(|error| match error {
        PlanError::Database(cause) => cause,
        PlanError::Invalid(_, reason) => inconsistent(reason),
    })
}

/// The results of planned matches of an edition, in their order, with the places of bots in the
/// seats. Matches without a result are left out.
pub(super) async fn results_of(
    db: &mut PgConnection,
    edition: &Edition,
    planned: &[Match],
    entrants: &[Entrant],
) -> sqlx::Result<Vec<SeatedResult>> {
    let stored = matches::same_seats(&mut *db, edition.scope(), planned).await?;
    let numbers: Vec<_> = stored.iter().map(|stored| stored.number).collect();
    let results = results::of_matches(&mut *db, edition.tournament, &numbers).await?;
    let mut by_number: HashMap<_, _> =
        results.into_iter().map(|played| (played.number, played)).collect();
    let by_key: HashMap<_, _> = stored.iter().map(|stored| (stored.key(), stored.number)).collect();
    let places: HashMap<_, _> = entrants.iter().copied().zip((0..).map(Entrant)).collect();
    let result = |planned: &Match| {
        let mut played = by_number.remove(by_key.get(&planned.key())?)?;
        for seat in &mut played.seats.0 {
            *seat = *places.get(seat)?;
        }
        Some(played)
    };
    Ok(planned.iter().filter_map(result).collect())
}
