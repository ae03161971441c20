//! Derives the matches of an edition from published data. The coordinator checks its stored plan
//! this way. Every user can do the same with an export.
//!
//! A plan is a function of the tournament file, the edition's seed and its ordered bots. At
//! tables it also depends on the plan's history, and for later rounds on results.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arbiter_games::Seed;
use arbiter_proto::convert;
use arbiter_proto::ids::BotId;
use arbiter_proto::v1;
use arbiter_schedule::{NameKey, Owner};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{Error, PgConnection, Result};

use super::TournamentFile;
use super::beacon::{canonical, keyed_seed};
use super::plan_history::{self, PlanHistory};
use super::planner::Planner;
use super::rounds::Rounds;
use crate::db::bots;
use crate::db::editions::Edition;
use crate::db::entrants::Roster;
use crate::db::matches::Match;
use crate::db::plan_histories;
use crate::db::results::SeatedResult;
use crate::db::tournaments::Tournament;

/// The data from which the matches of an edition are derived, besides the tournament file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EditionSource {
    /// The edition's number.
    pub edition: i32,
    /// Its seed.
    pub seed: Seed,
    /// How many of `bots` take part.
    pub entrants: usize,
    /// Its bots in the order of their numbers, then the bots that left the plan.
    pub bots: Vec<SourceBot>,
    /// The history of a plan of tables, with bots as indices of `bots`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Value>,
}

/// A bot that a plan was made for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceBot {
    /// Its name.
    pub name: String,
    /// The number of its owner if owners are kept apart, otherwise 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub owner: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde takes")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The committed seed of a tournament, with its hash and beacon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commitment<'a> {
    /// BLAKE3 of the committed seed, published at creation.
    pub seed_hash: &'a [u8],
    /// The committed seed, published at the end.
    pub seed: Seed,
    /// The value of the beacon and the first edition that uses it, once it is known.
    pub beacon: Option<(&'a str, i32)>,
}

impl Commitment<'_> {
    /// Describes each error in the seed of this edition, the committed seed and the spelling of the
    /// beacon's value.
    pub fn differences(&self, edition: i32, seed: Seed) -> Vec<String> {
        let mut differences = Vec::new();
        let hash = blake3::hash(&self.seed.0);
        if self.seed_hash != hash.as_bytes() {
            differences.push(format!(
                "the published seed {} has the hash {hash}, not the {} that was published at creation",
                self.seed,
                hex(self.seed_hash)
            ));
        }
        if let Some((value, _)) = self.beacon
            && canonical(value).as_deref() != Ok(value)
        {
            let canonical =
                canonical(value).map_or_else(|cause| cause, |text| format!("\"{text}\""));
            differences.push(format!(
                "the beacon has the value \"{value}\", whose right spelling is {canonical}"
            ));
        }
        let expected = match self.beacon {
            Some((value, first)) if edition >= first => keyed_seed(self.seed, value),
            _ => self.seed,
        };
        if seed != expected {
            differences.push(format!(
                "edition {edition} has the seed {seed}; the committed seed and the beacon give \
                 {expected}"
            ));
        }
        differences
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16));
    bytes.iter().flat_map(digits).flatten().collect()
}

impl EditionSource {
    /// Reads the source of an edition.
    pub async fn of_edition(
        db: &mut PgConnection,
        tournament: &Tournament,
        file: &TournamentFile,
        edition: &Edition,
    ) -> Result<Self> {
        let roster = Roster::of(&mut *db, edition.id).await?;
        let rows = bots::list(&mut *db, tournament.id).await?;
        let bots_by_id: HashMap<_, _> = rows.iter().map(|bot| (bot.id, bot)).collect();
        let mut ids: Vec<_> = roster.iter().map(|(_, named)| named.bot).collect();
        let entrants = ids.len();
        let stored = plan_histories::of_edition(&mut *db, edition.id).await?;
        let history: Option<PlanHistory> = stored
            .map(serde_json::from_value)
            .transpose()
            .map_err(|error| Error::Decode(Box::new(error)))?;
        let planned_bots = history.as_ref().map_or(&[][..], PlanHistory::bots);
        for bot in planned_bots {
            if !ids.contains(bot) {
                ids.push(*bot);
            }
        }
        let separates_owners = file.submissions.separate_owners;
        let owner = |bot: &BotId| {
            bots_by_id.get(bot).and_then(|bot| bot.owner).filter(|_| separates_owners)
        };
        // Owners are numbered in the order of their tokens, as in plans.
        let owners: BTreeSet<_> = ids.iter().filter_map(owner).collect();
        let owner_numbers: BTreeMap<_, _> = owners.into_iter().zip(1..).collect();
        let bots = ids.iter().map(|bot| SourceBot {
            name: bots_by_id.get(bot).map(|bot| bot.name.clone()).unwrap_or_default(),
            owner: owner(bot).and_then(|owner| owner_numbers.get(&owner)).copied().unwrap_or(0),
        });
        let lineage = history.map(|history| {
            let places: HashMap<_, _> = ids.iter().copied().zip((0..).map(BotId)).collect();
            serde_json::to_value(history.renamed(|bot| places[&bot]))
        });
        Ok(Self {
            edition: edition.number,
            seed: tournament.edition_seed(edition.number),
            entrants,
            bots: bots.collect(),
            lineage: lineage.transpose().map_err(|error| Error::Decode(Box::new(error)))?,
        })
    }

    /// Passes the derived matches of the edition to `visit`, in order. They are numbered by their
    /// places in the plan, and their seats hold the places of bots. `visit` returns the result
    /// of a match, if it is known. Later rounds are derived from the results of all earlier rounds.
    /// If a result is missing, the derivation ends after its round.
    ///
    /// Returns the final rank of each bot if the plan decides it, and all results are known.
    ///
    /// # Errors
    /// The error of `visit`, or the reason why no matches can be derived.
    pub fn derive<E: From<String>>(
        &self,
        file: &TournamentFile,
        mut visit: impl FnMut(Match) -> Result<Option<SeatedResult>, E>,
    ) -> Result<Option<Vec<u32>>, E> {
        let entrants = self.bots.get(..self.entrants);
        let entrants = entrants.ok_or_else(|| "there are fewer bots than entrants".to_owned())?;
        let names: Vec<_> = entrants.iter().map(|bot| NameKey::of(self.seed, &bot.name)).collect();
        let field = plan_history::field_of(self, file)?;
        let planner = Planner::new(file, &field, &names, self.seed);
        if let Some(planner) = planner.map_err(|error| error.to_string())? {
            planner.matches().try_for_each(|next| visit(next).map(drop))?;
            return Ok(None);
        }
        let mut rounds = Rounds::new(file, &names, self.seed)?;
        loop {
            let mut planned = 0;
            let mut played = Vec::new();
            for next in rounds.matches() {
                planned += 1;
                played.extend(visit(next)?);
            }
            if !rounds.is_open_ended() {
                return Ok(rounds.ranks());
            }
            if played.len() < planned {
                return Ok(None);
            }
            rounds.finish(&played)?;
        }
    }

    /// The bots that take part, and the owners of all bots if owners are kept apart.
    pub(super) fn field(&self) -> (Vec<BotId>, HashMap<BotId, Owner>) {
        let entrants = (0..).map(BotId).take(self.entrants).collect();
        let bots_with_owner = (0..).map(BotId).zip(&self.bots).filter(|(_, bot)| bot.owner > 0);
        let owner = |owner: u32| Owner(i32::try_from(owner).unwrap_or(i32::MAX));
        (entrants, bots_with_owner.map(|(id, bot)| (id, owner(bot.owner))).collect())
    }
}

impl From<EditionSource> for v1::EditionSource {
    fn from(source: EditionSource) -> Self {
        let bot = |SourceBot { name, owner }| v1::SourceBot { name, owner };
        Self {
            edition: source.edition,
            seed: source.seed.0.to_vec(),
            bots: source.bots.into_iter().map(bot).collect(),
            entrants: u32::try_from(source.entrants).unwrap_or(u32::MAX),
            plan_history: source.lineage.map(|lineage| lineage.to_string()).unwrap_or_default(),
        }
    }
}

impl TryFrom<v1::EditionSource> for EditionSource {
    type Error = String;

    fn try_from(source: v1::EditionSource) -> Result<Self, String> {
        let bot = |v1::SourceBot { name, owner }| SourceBot { name, owner };
        let lineage = Some(source.plan_history).filter(|lineage| !lineage.is_empty());
        let lineage = lineage.map(|lineage| serde_json::from_str(&lineage)).transpose();
        Ok(Self {
            edition: source.edition,
            seed: convert::seed("seed", &source.seed).map_err(|error| error.to_string())?,
            entrants: usize::try_from(source.entrants).map_err(|error| error.to_string())?,
            bots: source.bots.into_iter().map(bot).collect(),
            lineage: lineage.map_err(|error| error.to_string())?,
        })
    }
}
