//! The plan of an edition and its records, compared with what follows from the published seed.

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
use crate::db::results::{self, Played};
use crate::db::tournaments::{Tournament, TournamentState};
use crate::tournament::TournamentFile;
use crate::tournament::derivation::{Commitment, EditionSource};
use crate::tournament::handout::deal_seed;

/// How many differences are told at most.
const MOST: usize = 1000;
/// The longest first line of a record, in bytes.
const LONGEST_HEADER: u64 = 1 << 20;
/// How many matches are read at a time.
const PAGE: u32 = 1000;

impl Service {
    /// What the matches of an edition follow from, once its tournament is over.
    pub(super) async fn source_of(
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

    /// Compares the plan of an edition of a tournament that is over, and its records if they are
    /// asked for, with what follows from the published seed.
    pub(super) async fn check_seeds(
        &self,
        tournament: &Tournament,
        edition: &Edition,
        with_records: bool,
        into: &mut CheckEditionResponse,
    ) -> Result<()> {
        if let Some(reason) = underivable(tournament, edition) {
            into.not_derived = reason;
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
        into.seed_differences = commitment.differences(edition.number, seed);
        let stored = Stored::new(self.pool.clone(), edition.id);
        let compare = move || stored.compare(&file, &source);
        let compared = tokio::task::spawn_blocking(compare).await;
        let compared = compared.map_err(|_| ServiceError::unavailable("the coordinator stops"))?;
        let (derived, differences) = compared?;
        into.derived = derived;
        into.seed_differences.extend(differences);
        if with_records {
            self.check_records(edition.id, seed, into).await?;
        }
        into.seed_differences.truncate(MOST);
        Ok(())
    }

    /// Compares the seed in each record with that of its match.
    async fn check_records(
        &self,
        edition: EditionId,
        seed: Seed,
        into: &mut CheckEditionResponse,
    ) -> Result<()> {
        let mut after = MatchNumber(-1);
        loop {
            let page = records::page(&self.pool, edition, after).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.number;
            for found in page {
                let id = MatchId { edition, number: found.number };
                let expected = deal_seed(seed, found.deal);
                let record = self.fetch(id, found.found).await?;
                into.records += 1;
                match header_seed(&record) {
                    Some(recorded) if recorded == expected => {}
                    recorded => {
                        let recorded = recorded.map_or("no seed".to_owned(), |s| s.to_string());
                        into.seed_differences.push(format!(
                            "match {id}: its record has the seed {recorded}, the published seed \
                             gives {expected}"
                        ));
                    }
                }
            }
            if into.seed_differences.len() >= MOST {
                return Ok(());
            }
        }
    }
}

/// Why the matches of an edition cannot be derived again, if they cannot.
fn underivable(tournament: &Tournament, edition: &Edition) -> Option<String> {
    if tournament.state == TournamentState::Open {
        return Some(format!("the seed of {} is published when it is closed", tournament.name));
    }
    // Another version of the rules may plan in another way.
    (edition.rules != RULES_VERSION).then(|| {
        format!(
            "edition {} was planned by version {} of the rules, and this coordinator knows version \
             {RULES_VERSION}; run `arbiter verify` of a program with that version on an export",
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
    let mut first = String::new();
    BufReader::new(lines).take(LONGEST_HEADER).read_line(&mut first).ok()?;
    serde_json::from_str(&first).ok().map(|Header { seed }| seed)
}

/// The plan of an edition as it is stored, read page by page.
struct Stored {
    pool: PgPool,
    edition: EditionId,
    planned: VecDeque<Match>,
    /// What matches came to, as far as they were read.
    played: VecDeque<Played>,
    last_played: MatchNumber,
    next: MatchNumber,
}

impl Stored {
    fn new(pool: PgPool, edition: EditionId) -> Self {
        let (planned, played) = (VecDeque::new(), VecDeque::new());
        let last_played = MatchNumber(-1);
        Self { pool, edition, planned, played, last_played, next: MatchNumber(0) }
    }

    /// The next stored match, which stays.
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

    /// What a match came to; they are asked for in order.
    fn result(&mut self, number: MatchNumber) -> Result<Option<Played>, sqlx::Error> {
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

    /// Compares each stored match with that which is derived: how many there are, and what differs.
    fn compare(
        mut self,
        file: &TournamentFile,
        source: &EditionSource,
    ) -> Result<(i64, Vec<String>), sqlx::Error> {
        let (mut derived, mut differences) = (0, Vec::new());
        let mut failed = None;
        let end = source.derive(file, |due| {
            derived += 1;
            match self.meet(&due, source.seed, &mut differences) {
                Ok(played) if differences.len() < MOST => Ok(played),
                Ok(_) => Err("there may be more differences".to_owned()),
                Err(error) => {
                    failed = Some(error);
                    Err(String::new())
                }
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        match end {
            Err(reason) => differences.push(reason),
            Ok(()) => {
                if let Some(stored) = self.peek()? {
                    let id = stored.number;
                    differences.push(format!(
                        "match {}/{id} and what is stored after it do not follow from the \
                         published seed",
                        self.edition
                    ));
                }
            }
        }
        Ok((derived, differences))
    }

    /// Compares one match, and says what it came to.
    fn meet(
        &mut self,
        due: &Match,
        seed: Seed,
        differences: &mut Vec<String>,
    ) -> Result<Option<Played>, sqlx::Error> {
        let id = MatchId { edition: self.edition, number: due.number };
        while let Some(stored) = self.peek()?
            && stored.number < due.number
        {
            self.planned.pop_front();
        }
        let stored = match self.peek()? {
            Some(stored) if stored.number == due.number => stored,
            _ => {
                differences.push(format!("match {id} follows from the seed, and is not stored"));
                return Ok(None);
            }
        };
        if stored.deal != due.deal {
            let (found, expected) = (deal_seed(seed, stored.deal), deal_seed(seed, due.deal));
            differences.push(format!(
                "match {id}: the stored plan gives it the seed {found}, the published seed {expected}"
            ));
        } else if stored != due {
            differences.push(format!(
                "match {id}: the stored plan has {stored:?}, from the published seed follows {due:?}"
            ));
        }
        self.planned.pop_front();
        self.result(due.number)
    }
}
