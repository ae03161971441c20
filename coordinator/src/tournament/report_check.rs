//! Checks reports before they are stored: against the matches of their lot, and against the score
//! bounds that games declare ([`arbiter_games::Bounds`]).
//!
//! The check of a lot is created when the lot is assigned, because its matches are in memory then.
//! If a report arrives on another stream or at another coordinator, the matches are read again.

use std::sync::Arc;

use arbiter_games::{Bounds, Game, ImpossibleScore, MatchScores, Params};
use arbiter_proto::ids::MatchNumber;
use serde_json::{Map, Value, json};

use super::TournamentFile;
use crate::db::matches::Match;
use crate::db::results::MatchResult;
use crate::queue::Report;

/// The parameters of a match, and its score bounds without a forfeit.
#[derive(Debug)]
struct MatchRules {
    params: Params,
    seats: usize,
    bounds: Option<Bounds>,
}

impl MatchRules {
    fn new(params: Params, seats: usize) -> Arc<Self> {
        let bounds = params.bounds(&vec![false; seats]);
        Arc::new(Self { params, seats, bounds })
    }

    fn check(&self, result: &MatchResult) -> Result<(), ImpossibleScore> {
        let scores = MatchScores {
            seats: self.seats,
            scores: &result.scores,
            forfeits: &result.forfeits,
            bad_answers: &result.bad_answers,
        };
        match &self.bounds {
            Some(bounds) if result.forfeits.is_empty() => self.params.check_within(bounds, &scores),
            _ => self.params.check(&scores),
        }
    }
}

/// Creates the checks of an edition's lots, and reads the parameters of its matches.
#[derive(Debug)]
pub struct Checker {
    game: Game,
    board_key: String,
    params: Map<String, Value>,
    boards: Vec<Value>,
    /// The rules of matches that have only common parameters, by board and number of seats.
    common: Vec<(Option<i16>, Arc<MatchRules>)>,
}

/// Why a report is not plausible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Implausible {
    /// The report has a result of a match that is not in the lot, or its results are not in order.
    #[error("match {0} is not the next one of its lot")]
    Match(MatchNumber),
    /// The report and the lot have different numbers of matches.
    #[error("it has {results} results, and the lot has {matches} matches")]
    Count {
        /// The number of results.
        results: usize,
        /// The number of matches.
        matches: usize,
    },
    /// The scores are impossible.
    #[error("match {0}: {1}")]
    Scores(MatchNumber, #[source] ImpossibleScore),
}

/// The check of a lot's report.
#[derive(Clone, Debug)]
pub struct LotCheck {
    first: MatchNumber,
    /// The rules of its matches in order, run-length encoded.
    rules: Vec<(usize, Arc<MatchRules>)>,
}

impl Checker {
    /// A checker for the matches of a tournament.
    pub fn new(file: &TournamentFile) -> Self {
        let game = file.game().clone();
        let board_key = file.board_key().to_owned();
        let params = file.settings().params;
        let boards = file.boards.iter().map(|board| json!(board)).collect();
        let mut checker = Self { game, board_key, params, boards, common: Vec::new() };
        for board in std::iter::once(None).chain((0..).take(file.boards.len()).map(Some)) {
            let Ok(params) = checker.read(board, Map::new()) else { continue };
            for seats in params.seats() {
                checker.common.push((board, MatchRules::new(params.clone(), seats)));
            }
        }
        checker
    }

    /// The parameters of a match: those of the tournament, the board, and `match_params`.
    fn read(&self, board: Option<i16>, match_params: Map<String, Value>) -> Result<Params, String> {
        let mut params = self.params.clone();
        params.extend(match_params);
        if let Some(board) = board {
            let text = usize::try_from(board).ok().and_then(|index| self.boards.get(index));
            let text = text.ok_or_else(|| format!("board {board}"))?;
            params.insert(self.board_key.clone(), text.clone());
        }
        Params::read(&self.game, Value::Object(params))
            .map_err(|error| format!("valid set of parameters: {error}"))
    }

    /// All parameters of a match: those of the tournament, of the board and of the match.
    pub fn params_of(&self, planned: &Match) -> Result<Params, String> {
        let match_params = planned.params.as_ref().and_then(Value::as_object).cloned();
        self.read(planned.board, match_params.unwrap_or_default())
    }

    /// The check of a lot with these matches.
    ///
    /// # Errors
    /// A description of the missing or invalid data.
    pub(super) fn lot<'a>(
        &self,
        matches: impl Iterator<Item = &'a Match>,
    ) -> Result<LotCheck, String> {
        let mut check = LotCheck { first: MatchNumber(0), rules: Vec::new() };
        for planned in matches {
            if check.rules.is_empty() {
                check.first = planned.number;
            }
            let seats = planned.seats.0.len();
            if let Some(Value::Object(match_params)) = &planned.params {
                let params = self.read(planned.board, match_params.clone())?;
                check.rules.push((1, MatchRules::new(params, seats)));
                continue;
            }
            let rules = self.common_rules(planned.board, seats)?;
            match check.rules.last_mut() {
                Some((count, last)) if Arc::ptr_eq(last, rules) => *count += 1,
                _ => check.rules.push((1, Arc::clone(rules))),
            }
        }
        Ok(check)
    }

    /// The rules of matches on a board that have only common parameters.
    fn common_rules(&self, board: Option<i16>, seats: usize) -> Result<&Arc<MatchRules>, String> {
        let mut common = self.common.iter();
        let entry = common.find(|(key, rules)| *key == board && rules.seats == seats);
        entry.map(|(_, rules)| rules).ok_or_else(|| format!("match with {seats} seats"))
    }
}

impl LotCheck {
    /// Checks that a report has exactly the matches of the lot, with possible scores.
    pub fn check(&self, report: &Report) -> Result<(), Implausible> {
        let numbers = (self.first.0..).map(MatchNumber);
        let rules = self.rules.iter().flat_map(|(count, rules)| std::iter::repeat_n(rules, *count));
        for ((result, rules), number) in report.results.iter().zip(rules).zip(numbers) {
            if result.number != number {
                return Err(Implausible::Match(result.number));
            }
            rules.check(result).map_err(|cause| Implausible::Scores(number, cause))?;
        }
        let matches = self.rules.iter().map(|(count, _)| count).sum();
        let results = report.results.len();
        if results == matches { Ok(()) } else { Err(Implausible::Count { results, matches }) }
    }
}
