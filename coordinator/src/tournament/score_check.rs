//! What reports are checked against before they are stored: the matches of a lot, and the bounds that
//! their games declare ([`arbiter_games::Bounds`]).
//!
//! The checks of a lot are made when it is handed out, since its matches are in memory by then. A
//! report that comes over another stream, or to another coordinator, has them read again.

use std::sync::Arc;

use arbiter_games::{Bounds, Game, ImpossibleScore, MatchScores, Params};
use arbiter_proto::ids::MatchNumber;
use serde_json::{Map, Value, json};

use super::TournamentFile;
use crate::db::matches::Match;
use crate::db::results::MatchResult;
use crate::queue::Report;

/// The parameters of a match, and its bounds without a forfeit.
#[derive(Debug)]
struct Rules {
    params: Params,
    seats: usize,
    bounds: Option<Bounds>,
}

impl Rules {
    fn new(params: Params, seats: usize) -> Arc<Self> {
        let bounds = params.bounds(&vec![false; seats]);
        Arc::new(Self { params, seats, bounds })
    }

    fn check(&self, result: &MatchResult) -> Result<(), ImpossibleScore> {
        let ended = MatchScores {
            seats: self.seats,
            scores: &result.scores,
            forfeits: &result.forfeits,
            bad_answers: &result.bad_answers,
        };
        match &self.bounds {
            Some(bounds) if result.forfeits.is_empty() => self.params.check_within(bounds, &ended),
            _ => self.params.check(&ended),
        }
    }
}

/// Makes the checks of an edition's lots, and knows the parameters of its matches.
#[derive(Debug)]
pub struct Checker {
    game: Game,
    board_key: String,
    params: Map<String, Value>,
    boards: Vec<Value>,
    /// The rules of matches without parameters of their own, by board and number of seats.
    alike: Vec<(Option<i16>, Arc<Rules>)>,
}

/// Why a report cannot be that of its lot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Implausible {
    /// It names a match that is not in the lot, or not in its place.
    #[error("it tells of match {0}, which is not the next one of its lot")]
    Match(MatchNumber),
    /// It tells of fewer matches than the lot has.
    #[error("it tells of {found} matches, and the lot has {due}")]
    Count {
        /// Of how many it tells.
        found: usize,
        /// How many there are.
        due: usize,
    },
    /// No match ends so.
    #[error("match {0}: {1}")]
    Scores(MatchNumber, #[source] ImpossibleScore),
}

/// What the report of a lot is checked against.
#[derive(Clone, Debug)]
pub struct LotCheck {
    first: MatchNumber,
    /// The rules of its matches in order: for how many matches in a row which.
    rules: Vec<(usize, Arc<Rules>)>,
}

impl Checker {
    /// For the matches of a tournament.
    pub fn new(file: &TournamentFile) -> Self {
        let game = file.game().clone();
        let board_key = file.board_key().to_owned();
        let params = file.settings().params;
        let boards = file.boards.iter().map(|board| json!(board)).collect();
        let mut checker = Self { game, board_key, params, boards, alike: Vec::new() };
        for board in std::iter::once(None).chain((0..).take(file.boards.len()).map(Some)) {
            let Ok(params) = checker.read(board, Map::new()) else { continue };
            for seats in params.seats() {
                checker.alike.push((board, Rules::new(params.clone(), seats)));
            }
        }
        checker
    }

    /// The parameters of a match on a board, with its own ones.
    fn read(&self, board: Option<i16>, own: Map<String, Value>) -> Result<Params, String> {
        let mut params = self.params.clone();
        params.extend(own);
        if let Some(board) = board {
            let known = usize::try_from(board).ok().and_then(|board| self.boards.get(board));
            let known = known.ok_or_else(|| format!("board {board}"))?;
            params.insert(self.board_key.clone(), known.clone());
        }
        let read = Params::read(&self.game, Value::Object(params));
        read.map_err(|error| format!("meaning in the parameters: {error}"))
    }

    /// The parameters that a match is played with: those of the tournament, its board and its own.
    pub fn params_of(&self, planned: &Match) -> Result<Params, String> {
        let own = planned.params.as_ref().and_then(Value::as_object).cloned();
        self.read(planned.board, own.unwrap_or_default())
    }

    /// The check of a lot with these matches; what makes no sense, if something does not.
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
            if let Some(Value::Object(own)) = &planned.params {
                let own = self.read(planned.board, own.clone())?;
                check.rules.push((1, Rules::new(own, seats)));
                continue;
            }
            let rules = self.without_own_params(planned.board, seats)?;
            match check.rules.last_mut() {
                Some((count, last)) if Arc::ptr_eq(last, rules) => *count += 1,
                _ => check.rules.push((1, Arc::clone(rules))),
            }
        }
        Ok(check)
    }

    /// The rules of matches on a board that have no parameters of their own.
    fn without_own_params(&self, board: Option<i16>, seats: usize) -> Result<&Arc<Rules>, String> {
        let fits = |known: &&(Option<i16>, Arc<Rules>)| known.0 == board && known.1.seats == seats;
        let known = self.alike.iter().find(fits);
        known.map(|(_, rules)| rules).ok_or_else(|| format!("match with {seats} seats"))
    }
}

impl LotCheck {
    /// Looks whether a report tells of exactly the matches of the lot, and whether each of them can
    /// have ended so.
    ///
    /// # Errors
    /// If it cannot be a report of this lot.
    pub fn check(&self, report: &Report) -> Result<(), Implausible> {
        let numbers = (self.first.0..).map(MatchNumber);
        let rules = self.rules.iter().flat_map(|(count, rules)| std::iter::repeat_n(rules, *count));
        for ((result, rules), number) in report.results.iter().zip(rules).zip(numbers) {
            if result.number != number {
                return Err(Implausible::Match(result.number));
            }
            rules.check(result).map_err(|cause| Implausible::Scores(number, cause))?;
        }
        let due = self.rules.iter().map(|(count, _)| count).sum();
        let found = report.results.len();
        if found == due { Ok(()) } else { Err(Implausible::Count { found, due }) }
    }
}
