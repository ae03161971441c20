//! Checks the plan of an edition and its records against the published seed.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _};

use arbiter_games::{RULES_VERSION, Seed};
use arbiter_proto::ids::{MatchName, MatchNumber};
use arbiter_proto::v1::{self, CheckEditionResponse};
use arbiter_ranking::Entrant;
use serde::Deserialize;
use sqlx::PgPool;
use tokio::runtime::Handle;

use super::{Result, Service, ServiceError, match_name};
use crate::db::editions::Edition;
use crate::db::matches::{self, Match};
use crate::db::records;
use crate::db::tournaments::{self, Tournament, TournamentState};
use crate::tournament::TournamentFile;
use crate::tournament::lot_assignment::deal_seed;
use crate::tournament::plan_derivation::{Commitment, EditionSource};
use crate::tournament::stored_plan::{StoredPlan, StoredPlanError};

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
        // The edition may keep earlier settings, with another game package or value of
        // `house.ranked`.
        let settings = tournaments::of_edition(&self.pool, edition.id).await?.settings;
        let file = TournamentFile::from_json(self.queue.games(), &settings);
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
        let (file, source) = self.read_source(tournament, edition).await?;
        if let Some(reason) = not_derivable(tournament, &file, edition) {
            response.not_derived = reason;
            return Ok(());
        }
        let seed = source.seed;
        let value = tournament.beacon_value();
        let commitment = Commitment {
            seed_hash: &tournament.seed_hash,
            seed: tournament.seed,
            beacon: value.map(|value| (value.text.as_str(), value.first_edition)),
        };
        response.seed_differences = commitment.differences(edition.number, seed);
        let plan = StoredPlan::new(&self.pool, edition).await?;
        let comparison = Comparison {
            pool: self.pool.clone(),
            tournament: tournament.name.clone(),
            edition: edition.clone(),
            seed,
            is_stored: vec![false; usize::try_from(edition.end_match).unwrap_or(0)],
            numbers: Vec::new(),
            missing: Vec::new(),
            differences: Vec::new(),
        };
        let compare = move || comparison.run(&plan, &file, &source);
        let result = tokio::task::spawn_blocking(compare).await;
        let (derived, differences) = result.map_err(|_| ServiceError::stopping())??;
        response.derived = derived;
        response.seed_differences.extend(differences);
        if with_records {
            self.check_records(tournament, edition, seed, response).await?;
        }
        response.seed_differences.truncate(MAX_DIFFERENCES);
        Ok(())
    }

    /// Compares the seed in each record with that of its match.
    async fn check_records(
        &self,
        tournament: &Tournament,
        edition: &Edition,
        seed: Seed,
        response: &mut CheckEditionResponse,
    ) -> Result<()> {
        let mut after = MatchNumber(-1);
        loop {
            let page = records::page(&self.pool, edition.scope(), after).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.number;
            for row in page {
                let name = match_name(tournament, row.number);
                let expected = deal_seed(seed, row.seed_key);
                let record = self.fetch_record(tournament, row.number, row.record).await?;
                response.records += 1;
                match header_seed(&record) {
                    Some(seed) if seed == expected => {}
                    seed => {
                        let seed = seed.map_or("no seed".to_owned(), |seed| seed.to_string());
                        response.seed_differences.push(format!(
                            "match {name}: its record has the seed {seed}, and the published seed \
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
fn not_derivable(
    tournament: &Tournament,
    file: &TournamentFile,
    edition: &Edition,
) -> Option<String> {
    if tournament.state == TournamentState::Open {
        return Some(format!("the seed of {} is published when it is closed", tournament.name));
    }
    // Another version of the rules may give another plan.
    (edition.rules != file.game().rules_identity()).then(|| {
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

/// Compares the derived matches of an edition with the stored ones.
struct Comparison {
    pool: PgPool,
    /// The name of the tournament.
    tournament: String,
    edition: Edition,
    seed: Seed,
    /// Whether the match of each number was derived.
    is_stored: Vec<bool>,
    /// The number of each derived match, if it is stored.
    numbers: Vec<Option<i64>>,
    /// Derived matches that are not stored.
    missing: Vec<Match>,
    differences: Vec<String>,
}

impl Comparison {
    /// Returns the number of derived matches and the differences.
    fn run(
        mut self,
        plan: &StoredPlan,
        file: &TournamentFile,
        source: &EditionSource,
    ) -> Result<(i64, Vec<String>), StoredPlanError> {
        match plan.each(file, source, |planned, stored| self.compare(planned, stored)) {
            Ok(()) => self.compare_others()?,
            Err(StoredPlanError::Plan(reason)) => self.differences.push(reason),
            Err(error) => return Err(error),
        }
        let derived = i64::try_from(self.numbers.len()).unwrap_or(i64::MAX);
        Ok((derived, self.differences))
    }

    fn name(&self, number: MatchNumber) -> MatchName {
        MatchName { tournament: self.tournament.clone(), number }
    }

    fn compare(&mut self, planned: &Match, stored: Option<&Match>) -> Result<(), String> {
        self.numbers.push(stored.map(|stored| stored.number.0));
        let Some(stored) = stored else {
            self.missing.push(planned.clone());
            let is_full = self.missing.len() >= MAX_DIFFERENCES;
            return if is_full { Err("there may be more differences".to_owned()) } else { Ok(()) };
        };
        if let Some(is_stored) =
            usize::try_from(stored.number.0).ok().and_then(|index| self.is_stored.get_mut(index))
        {
            *is_stored = true;
        }
        let number_of = |place: i64| {
            let place = usize::try_from(place).ok()?;
            self.numbers.get(place).copied().flatten()
        };
        let state_from: Option<Vec<_>> = planned
            .state_from
            .as_ref()
            .map(|all| all.iter().map(|place| place.and_then(number_of)).collect());
        if stored.state_from != state_from {
            let name = self.name(stored.number);
            self.differences.push(format!(
                "match {name} begins with the files of the matches {:?}, and those of {state_from:?} \
                 follow from the schedule",
                stored.state_from
            ));
        }
        Ok(())
    }

    /// Compares the stored matches that were not derived with the derived ones that are not stored.
    fn compare_others(&mut self) -> Result<(), sqlx::Error> {
        // A match whose bots have changed seats is still recognised.
        let lineup = |planned: &Match| {
            let mut bots = planned.seats.0.clone();
            bots.sort_unstable();
            (bots, planned.board)
        };
        let mut missing: HashMap<(Vec<Entrant>, Option<i16>), Vec<Match>> = HashMap::new();
        for planned in std::mem::take(&mut self.missing).into_iter().rev() {
            missing.entry(lineup(&planned)).or_default().push(planned);
        }
        let mut first = MatchNumber(0);
        loop {
            let page = matches::planned(&self.pool, self.edition.scope(), first, None, PAGE);
            let page = Handle::current().block_on(page)?;
            let Some(last) = page.last() else { break };
            first = MatchNumber(last.number.0 + 1);
            for stored in page {
                let index = usize::try_from(stored.number.0).unwrap_or(usize::MAX);
                if self.is_stored.get(index) == Some(&true) {
                    continue;
                }
                let planned = missing.get_mut(&lineup(&stored)).and_then(Vec::pop);
                self.push_difference(&stored, planned.as_ref());
            }
        }
        for planned in missing.into_values().flatten() {
            self.differences.push(format!(
                "the match at place {} of the plan follows from the seed but is not stored",
                planned.number
            ));
        }
        Ok(())
    }

    /// Describes a stored match that does not follow from the seed. `planned` is a derived match of
    /// the same bots that is not stored.
    fn push_difference(&mut self, stored: &Match, planned: Option<&Match>) {
        let name = self.name(stored.number);
        self.differences.push(match planned {
            Some(planned)
                if planned.seats == stored.seats && planned.seed_key != stored.seed_key =>
            {
                let stored_seed = deal_seed(self.seed, stored.seed_key);
                let expected_seed = deal_seed(self.seed, planned.seed_key);
                format!(
                    "match {name}: its seed in the stored plan is {stored_seed}, and the published \
                     seed gives {expected_seed}"
                )
            }
            Some(planned) => format!(
                "match {name}: the stored plan has {stored:?}, and the published seed gives \
                 {planned:?}"
            ),
            None => format!("match {name} does not follow from the published seed"),
        });
    }
}
