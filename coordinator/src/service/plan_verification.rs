//! Checks the plan of an edition and its records against the published seed.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _};

use arbiter_games::{RULES_VERSION, Seed};
use arbiter_proto::ids::{EditionId, MatchId, MatchNumber};
use arbiter_proto::v1::{self, CheckEditionResponse};
use serde::Deserialize;
use sqlx::PgPool;
use tokio::runtime::Handle;

use super::{Result, Service, ServiceError};
use crate::db::editions::Edition;
use crate::db::matches::{self, Match};
use crate::db::records;
use crate::db::results::{self, SeatedResult};
use crate::db::tournaments::{Tournament, TournamentState};
use crate::tournament::TournamentFile;
use crate::tournament::lot_assignment::deal_seed;
use crate::tournament::plan_derivation::{Commitment, EditionSource};

/// Maximum number of differences in a response.
const MAX_DIFFERENCES: usize = 1000;
/// Maximum length of the first line of a record, in bytes.
const MAX_HEADER: u64 = 1 << 20;
/// The number of matches that are read at a time.
const PAGE: u32 = 1000;

impl Service {
    /// The published inputs from which every user can derive the matches of an edition. They are
    /// published when the tournament is over.
    pub(super) async fn edition_source(
        &self,
        tournament: &Tournament,
        edition: &Edition,
    ) -> Result<v1::EditionSource> {
        if tournament.state == TournamentState::Open {
            let error = format!("the seed of {} is published when it is closed", tournament.name);
            return Err(ServiceError::failed_precondition(error));
        }
        let (_, source) = self.read_source(tournament, edition).await?;
        Ok(source.into())
    }

    async fn read_source(
        &self,
        tournament: &Tournament,
        edition: &Edition,
    ) -> Result<(TournamentFile, EditionSource)> {
        let file = TournamentFile::from_json(self.queue.games(), &tournament.settings);
        let file = file.map_err(|error| {
            ServiceError::internal(format!(
                "cannot read the settings of {}: {error}",
                tournament.name
            ))
        })?;
        let mut db = self.pool.acquire().await?;
        let source = EditionSource::of_edition(&mut db, tournament, &file, edition).await;
        Ok((file, source?))
    }

    /// Compares the plan of an edition, and if requested its records, with those derived from the
    /// published seed.
    pub(super) async fn check_seeds(
        &self,
        tournament: &Tournament,
        edition: &Edition,
        with_records: bool,
        response: &mut CheckEditionResponse,
    ) -> Result<()> {
        if let Some(reason) = not_derivable(tournament, edition) {
            response.not_derived = reason;
            return Ok(());
        }
        let (file, source) = self.read_source(tournament, edition).await?;
        let seed = source.seed;
        let value = tournament.beacon_value();
        let commitment = Commitment {
            seed_hash: &tournament.seed_hash,
            seed: tournament.seed,
            beacon: value.map(|value| (value.text.as_str(), value.first_edition)),
        };
        response.seed_differences = commitment.differences(edition.number, seed);
        let stored = StoredPlan::new(self.pool.clone(), edition.id);
        let compare = move || stored.compare(&file, &source);
        let result = tokio::task::spawn_blocking(compare).await;
        let (derived, differences) = result.map_err(|_| ServiceError::stopping())??;
        response.derived = derived;
        response.seed_differences.extend(differences);
        if with_records {
            self.check_records(edition.id, seed, response).await?;
        }
        response.seed_differences.truncate(MAX_DIFFERENCES);
        Ok(())
    }

    /// Compares the seed in each record with that of its match.
    async fn check_records(
        &self,
        edition: EditionId,
        seed: Seed,
        response: &mut CheckEditionResponse,
    ) -> Result<()> {
        let mut after = MatchNumber(-1);
        loop {
            let page = records::page(&self.pool, edition, after).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.number;
            for row in page {
                let id = MatchId { edition, number: row.number };
                let expected = deal_seed(seed, row.seed_key);
                let record = self.fetch_record(id, row.stored).await?;
                response.records += 1;
                match header_seed(&record) {
                    Some(seed) if seed == expected => {}
                    seed => {
                        let seed = seed.map_or("no seed".to_owned(), |seed| seed.to_string());
                        response.seed_differences.push(format!(
                            "match {id}: its record has the seed {seed}, and the published seed \
                             gives {expected}"
                        ));
                    }
                }
            }
            if response.seed_differences.len() >= MAX_DIFFERENCES {
                return Ok(());
            }
        }
    }
}

/// Why the matches of an edition cannot be derived. None if they can.
fn not_derivable(tournament: &Tournament, edition: &Edition) -> Option<String> {
    if tournament.state == TournamentState::Open {
        return Some(format!("the seed of {} is published when it is closed", tournament.name));
    }
    // Another version of the rules may give another plan.
    (edition.rules != RULES_VERSION).then(|| {
        format!(
            "edition {} was planned by version {} of the rules, and this coordinator has version \
             {RULES_VERSION}; run `arbiter verify` of a release with that version on an export",
            edition.number, edition.rules
        )
    })
}

/// The seed in the first line of a compressed record.
fn header_seed(record: &[u8]) -> Option<Seed> {
    #[derive(Deserialize)]
    struct Header {
        seed: Seed,
    }
    let lines = zstd::Decoder::with_buffer(record).ok()?;
    let mut first_line = String::new();
    BufReader::new(lines).take(MAX_HEADER).read_line(&mut first_line).ok()?;
    serde_json::from_str(&first_line).ok().map(|Header { seed }| seed)
}

/// The stored plan of an edition, read page by page.
struct StoredPlan {
    pool: PgPool,
    edition: EditionId,
    /// The remaining planned matches of the last page.
    planned: VecDeque<Match>,
    /// The remaining results of the last page.
    played: VecDeque<SeatedResult>,
    /// The match of the last result that was read.
    last_played: MatchNumber,
    /// The first planned match that was not read.
    next: MatchNumber,
}

impl StoredPlan {
    fn new(pool: PgPool, edition: EditionId) -> Self {
        Self {
            pool,
            edition,
            planned: VecDeque::new(),
            played: VecDeque::new(),
            last_played: MatchNumber(-1),
            next: MatchNumber(0),
        }
    }

    /// The next stored match, without removing it.
    fn peek(&mut self) -> Result<Option<&Match>, sqlx::Error> {
        if self.planned.is_empty() {
            let page = matches::planned(&self.pool, self.edition, self.next, None, PAGE);
            self.planned = Handle::current().block_on(page)?.into();
            if let Some(last) = self.planned.back() {
                self.next = MatchNumber(last.number.0 + 1);
            }
        }
        Ok(self.planned.front())
    }

    /// The result of a match. Call it with ascending numbers.
    fn result(&mut self, number: MatchNumber) -> Result<Option<SeatedResult>, sqlx::Error> {
        loop {
            if self.played.is_empty() {
                let page = results::page(&self.pool, self.edition, self.last_played, false);
                self.played = Handle::current().block_on(page)?.into();
            }
            let Some(played) = self.played.pop_front() else { return Ok(None) };
            self.last_played = played.number;
            if played.number >= number {
                return Ok((played.number == number).then_some(played));
            }
        }
    }

    /// Compares each stored match with the derived one. Returns the number of derived matches and
    /// the differences.
    fn compare(
        mut self,
        file: &TournamentFile,
        source: &EditionSource,
    ) -> Result<(i64, Vec<String>), sqlx::Error> {
        let mut derived = 0;
        let mut differences = Vec::new();
        let mut database_error = None;
        let result = source.derive(file, |expected| {
            derived += 1;
            match self.compare_match(&expected, source.seed, &mut differences) {
                Ok(played) if differences.len() < MAX_DIFFERENCES => Ok(played),
                Ok(_) => Err("there may be more differences".to_owned()),
                Err(error) => {
                    database_error = Some(error);
                    Err(String::new())
                }
            }
        });
        if let Some(error) = database_error {
            return Err(error);
        }
        match result {
            Err(reason) => differences.push(reason),
            Ok(()) => {
                if let Some(stored) = self.peek()? {
                    let id = stored.number;
                    differences.push(format!(
                        "match {}/{id} and the matches after it do not follow from the published \
                         seed",
                        self.edition
                    ));
                }
            }
        }
        Ok((derived, differences))
    }

    /// Compares one match, and returns its result.
    fn compare_match(
        &mut self,
        expected: &Match,
        seed: Seed,
        differences: &mut Vec<String>,
    ) -> Result<Option<SeatedResult>, sqlx::Error> {
        let id = MatchId { edition: self.edition, number: expected.number };
        while let Some(stored) = self.peek()?
            && stored.number < expected.number
        {
            self.planned.pop_front();
        }
        let stored = match self.peek()? {
            Some(stored) if stored.number == expected.number => stored,
            _ => {
                differences.push(format!("match {id} follows from the seed but is not stored"));
                return Ok(None);
            }
        };
        if stored.seed_key != expected.seed_key {
            let stored_seed = deal_seed(seed, stored.seed_key);
            let expected_seed = deal_seed(seed, expected.seed_key);
            differences.push(format!(
                "match {id}: its seed in the stored plan is {stored_seed}, and the published seed \
                 gives {expected_seed}"
            ));
        } else if stored != expected {
            differences.push(format!(
                "match {id}: the stored plan has {stored:?}, and the published seed gives \
                 {expected:?}"
            ));
        }
        self.planned.pop_front();
        self.result(expected.number)
    }
}
