//! Gauntlet: every candidate meets every bot of a panel on both sides. Neither candidates nor the
//! bots of the panel meet each other.
//!
//! A candidate that joins or changes plays its own matches alone, so this is the cheap way to
//! measure new bots against a panel that does not change. Bots are ranked by their mean score,
//! since bots of the panel play another number of matches than candidates.

use core::fmt;
use std::collections::HashSet;

use arbiter_games::{Score, Seed};
use serde::{Deserialize, Serialize};

use super::error::check_bots;
use super::listed_round::{ListedRound, Total, check_matches};
use super::planned_match::counted;
use super::rounds::Rounds;
use super::seeded_mix::{NameKey, mix};
use super::{Bot, MatchBounds, PlannedMatch, Repetitions, ScheduleError};

/// The minimum number of bots.
pub(crate) const MIN_BOTS: usize = 2;

/// The name of this plan in errors.
const PLAN: &str = "a gauntlet";

/// A key of [`mix`], so that sides are independent of other random choices.
const SIDES: u64 = 7;

/// The options of a gauntlet.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gauntlet {
    /// The names of the bots of the panel.
    pub panel: Vec<String>,
    /// How often a candidate meets each bot of the panel on both sides.
    #[serde(default)]
    pub legs: Repetitions,
}

/// The matches of a gauntlet.
#[derive(Clone, Debug)]
pub struct GauntletPlan {
    round: ListedRound,
    is_panel: Vec<bool>,
}

impl Gauntlet {
    /// The number of matches of a panel with this many bots and these candidates.
    fn matches(&self, panel: usize, candidates: usize) -> u64 {
        2 * (panel * candidates) as u64 * u64::from(self.legs.get())
    }

    /// The number of bots of the panel, if it has entered and leaves a candidate.
    fn panel_among(&self, bots: usize) -> usize {
        self.panel.len().min(bots.saturating_sub(1))
    }

    /// The number of matches of this many bots, if the panel has entered.
    pub(crate) fn matches_among(&self, bots: usize) -> u64 {
        let panel = self.panel_among(bots);
        self.matches(panel, bots - panel)
    }

    /// The plan for a number of bots. The panel has as many of the first ones as names, but leaves
    /// a candidate.
    ///
    /// # Errors
    /// If there are fewer than 2 bots, or too many.
    pub fn plan(&self, bots: usize, seed: Seed) -> Result<GauntletPlan, ScheduleError> {
        let panel = 1..=self.panel_among(bots);
        let panel = panel.map(|number| number.to_string()).collect();
        Self { panel, legs: self.legs }.among(&NameKey::of_numbers(seed, bots), seed)
    }

    /// The plan for bots of these names. `seed` made their keys.
    ///
    /// # Errors
    /// If there are too few or too many bots, no bot of the panel, or no other bot.
    pub fn among(&self, names: &[NameKey], seed: Seed) -> Result<GauntletPlan, ScheduleError> {
        check_bots(names.len(), MIN_BOTS, PLAN)?;
        let panel: HashSet<_> = self.panel.iter().map(|name| NameKey::of(seed, name)).collect();
        let is_panel: Vec<_> = names.iter().map(|name| panel.contains(name)).collect();
        let bots = |panel: bool| -> Vec<Bot> {
            (0..=Bot::MAX)
                .zip(&is_panel)
                .filter(|(_, is)| **is == panel)
                .map(|(bot, _)| bot)
                .collect()
        };
        let members = bots(true);
        let candidates = bots(false);
        if members.is_empty() {
            return Err(ScheduleError::NoPanel { panel: self.panel.join(", ") });
        }
        if candidates.is_empty() {
            return Err(ScheduleError::NoCandidate { bots: names.len() });
        }
        let matches = self.matches(members.len(), candidates.len());
        let remedy = "write fewer `legs`, or a smaller panel";
        check_matches(|| PLAN.to_owned(), matches, remedy)?;
        let name = |bot: Bot| names[usize::from(bot)].0;
        let pairs = candidates
            .iter()
            .flat_map(|candidate| members.iter().map(move |member| [*candidate, *member]));
        let matches = (0..self.legs.get()).flat_map(|leg| {
            pairs.clone().flat_map(move |[candidate, member]| {
                let is_first = mix([SIDES, name(candidate), name(member), leg.into()]) & 1 == 0;
                let seats = if is_first { [candidate, member] } else { [member, candidate] };
                let swapped = [seats[1], seats[0]];
                [seats, swapped].map(|seats| PlannedMatch::new(0, leg, seats))
            })
        });
        let totals = vec![Total::default(); names.len()];
        let round = ListedRound::new(2, matches, totals);
        Ok(GauntletPlan { round, is_panel })
    }
}

impl GauntletPlan {
    /// Whether each bot belongs to the panel.
    pub fn is_panel(&self) -> &[bool] {
        &self.is_panel
    }

    /// The scores of each bot, in the order of the bots.
    pub fn totals(&self) -> &[Total] {
        self.round.totals()
    }

    /// The same gauntlet with the scores of those matches that are played, for its standings so
    /// far. `results` are in the order of the matches. A gauntlet that is over stays the same.
    #[must_use]
    pub fn with_played(&self, results: &[Option<Vec<Score>>]) -> Self {
        Self { round: self.round.with_played(results), is_panel: self.is_panel.clone() }
    }
}

impl Rounds for GauntletPlan {
    fn bots(&self) -> usize {
        self.round.bots()
    }

    fn seats(&self) -> usize {
        self.round.seats()
    }

    fn matches(&self) -> Vec<PlannedMatch> {
        self.round.matches()
    }

    fn is_over(&self) -> bool {
        self.round.is_over()
    }

    fn advance(&mut self, results: &[Vec<Score>]) {
        self.round.advance(results);
    }

    fn ranks(&self) -> Vec<u32> {
        self.round.ranks()
    }

    fn bounds(&self) -> MatchBounds {
        self.round.bounds()
    }
}

/// A summary in one line, for people.
impl fmt::Display for GauntletPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let panel = self.is_panel.iter().filter(|is_panel| **is_panel).count();
        let candidates = counted(self.bots() - panel, "candidate", "candidates");
        write!(f, "gauntlet of {candidates} against a panel of {panel}")
    }
}
