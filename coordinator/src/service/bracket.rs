//! The bracket of a knockout, as far as it is played.

use std::collections::HashMap;

use arbiter_proto::ids::MatchNumber;
use arbiter_schedule::{self as schedule, Bot, Fixture, Meeting, Rounds as _};

use super::rounds::{BegunStage, EditionRounds, ShownRounds, StageKind, pair};
use super::{Caller, Result, Service, ServiceError, match_name};
use crate::db::editions::EditionState;
use crate::db::tournaments::Tournament;

/// A bracket for people.
#[derive(Clone, Debug)]
pub(crate) struct Bracket {
    /// The number of the edition.
    pub(crate) edition: i32,
    /// The number of the stage, from 1; 1 without stages.
    pub(crate) stage: usize,
    /// Whether the edition was cancelled, so that no more rounds are played.
    pub(crate) is_cancelled: bool,
    /// The number of rounds of the whole bracket.
    pub(crate) round_count: usize,
    /// The rounds so far.
    pub(crate) rounds: Vec<BracketRound>,
    /// The bot that won; `None` until it is known.
    pub(crate) winner: Option<String>,
}

/// A round of a bracket.
#[derive(Clone, Debug)]
pub(crate) struct BracketRound {
    /// Its number, from 1.
    pub(crate) round: usize,
    /// Its meetings and byes, from the top of the bracket.
    pub(crate) meetings: Vec<BracketMeeting>,
}

/// A meeting of a bracket, or a bye.
#[derive(Clone, Debug)]
pub(crate) struct BracketMeeting {
    /// The bots: one for a bye.
    pub(crate) bots: Vec<BracketBot>,
    /// Whether it decides the third place.
    pub(crate) is_for_third_place: bool,
    /// The bot that advances; `None` until it is decided.
    pub(crate) winner: Option<String>,
    /// What decided the meeting: `games`, `extra_games` or `number`; `None` for a bye.
    pub(crate) decided_by: Option<&'static str>,
    /// The names of its matches.
    pub(crate) matches: Vec<String>,
}

/// A bot in a meeting.
#[derive(Clone, Debug)]
pub(crate) struct BracketBot {
    /// Its name.
    pub(crate) name: String,
    /// Its number in the bracket, from 1.
    pub(crate) number: usize,
    /// The sums of its scores in the games of the meeting that were counted for it, one number for
    /// each component.
    pub(crate) score: Vec<i128>,
}

impl Service {
    /// The bracket of an edition, by default of the newest one whose results are visible; with
    /// stages, that of a stage, by default of the last knockout that has begun. Stages are numbered
    /// from 1.
    ///
    /// # Errors
    /// If the schedule or the stage is not a knockout, or if the edition is too large to show.
    pub(crate) async fn bracket(
        &self,
        caller: &Caller,
        tournament: &str,
        edition: Option<i32>,
        stage: Option<u32>,
    ) -> Result<Bracket> {
        let shown = self.edition_rounds(caller, tournament, edition).await?;
        let no_bracket = |what: String| {
            ServiceError::failed_precondition(format!(
                "{what} is not a knockout, so it has no bracket"
            ))
        };
        let Some(rounds) = shown.rounds.as_ref() else {
            return Err(no_bracket(format!("the tournament {tournament}")));
        };
        // A bracket may have all matches of the edition.
        let _permit = self.permit(caller).await?;
        let begun = rounds.begun();
        let is_knockout = |stage: &BegunStage<'_>| matches!(stage.plan, StageKind::Knockout(_));
        let last = begun.iter().rposition(is_knockout).unwrap_or(begun.len() - 1);
        let position = shown.position(stage, rounds, last)?;
        let stage = &begun[position];
        match stage.plan {
            StageKind::Knockout(bracket) => Ok(draw(&shown, rounds, stage, position, bracket)),
            _ if begun.len() > 1 => {
                Err(no_bracket(format!("stage {} of {tournament}", position + 1)))
            }
            _ => Err(no_bracket(format!("the tournament {tournament}"))),
        }
    }
}

/// The bracket of the stage with this position.
pub(super) fn draw(
    shown: &ShownRounds,
    rounds: &EditionRounds,
    stage: &BegunStage<'_>,
    position: usize,
    bracket: &schedule::Bracket,
) -> Bracket {
    let mut matches: HashMap<_, Vec<MatchNumber>> = HashMap::new();
    for game in stage.rounds.iter().flat_map(|round| &round.matches) {
        matches.entry(pair(game)).or_default().extend(game.number);
    }
    let numbers = bracket.numbered().iter().copied().zip(1..).collect();
    let drawing = Drawing { tournament: &shown.tournament, rounds, stage, matches, numbers };
    let last = bracket.rounds().last().and_then(|round| round.first());
    let winner = last.filter(|_| bracket.is_over()).and_then(Fixture::winner);
    Bracket {
        edition: shown.edition.number,
        stage: position + 1,
        is_cancelled: shown.edition.state == EditionState::Cancelled,
        round_count: bracket.round_count(),
        rounds: drawing.rounds(bracket),
        winner: winner.map(|bot| drawing.name(bot)),
    }
}

/// The data with which a bracket is drawn. The bots of the bracket are positions in the field of
/// its stage.
struct Drawing<'a> {
    tournament: &'a Tournament,
    rounds: &'a EditionRounds,
    stage: &'a BegunStage<'a>,
    /// The matches of each pair of bots of the tournament. Two bots meet at most once in a bracket.
    matches: HashMap<Option<[Bot; 2]>, Vec<MatchNumber>>,
    /// The number of each bot of the bracket, from 1.
    numbers: HashMap<Bot, usize>,
}

impl Drawing<'_> {
    fn rounds(&self, bracket: &schedule::Bracket) -> Vec<BracketRound> {
        let round = |(round, fixtures): (usize, &Vec<Fixture>)| {
            let meetings = fixtures.iter().enumerate().map(|(index, fixture)| {
                let is_for_third_place = index >= 1 << (bracket.round_count() - round);
                self.meeting(fixture, is_for_third_place)
            });
            BracketRound { round, meetings: meetings.collect() }
        };
        (1..).zip(bracket.rounds()).map(round).collect()
    }

    fn meeting(&self, fixture: &Fixture, is_for_third_place: bool) -> BracketMeeting {
        let bot = |bot: Bot, score: &[i128]| BracketBot {
            name: self.name(bot),
            number: self.numbers.get(&bot).copied().unwrap_or(0),
            score: score.to_vec(),
        };
        let winner = fixture.winner().map(|bot| self.name(bot));
        let Fixture::Meeting(Meeting { bots, scores, decision, .. }) = fixture else {
            let bots = fixture.winner().map(|only| bot(only, &[])).into_iter().collect();
            return BracketMeeting {
                bots,
                is_for_third_place,
                winner,
                decided_by: None,
                matches: Vec::new(),
            };
        };
        let [first, second] = bots.map(|bot| self.in_tournament(bot));
        let numbers = self.matches.get(&Some([first.min(second), first.max(second)]));
        let name = |number: &MatchNumber| match_name(self.tournament, *number).to_string();
        BracketMeeting {
            bots: bots.iter().zip(scores).map(|(one, score)| bot(*one, score)).collect(),
            is_for_third_place,
            winner,
            decided_by: decision.map(|decision| decision.by.as_str()),
            matches: numbers.map_or(&[][..], Vec::as_slice).iter().map(name).collect(),
        }
    }

    /// The bot of the tournament that is this bot of the bracket.
    fn in_tournament(&self, bot: Bot) -> Bot {
        self.stage.field[usize::from(bot)]
    }

    fn name(&self, bot: Bot) -> String {
        self.rounds.name(self.in_tournament(bot))
    }
}
