//! The meetings of a stage, round by round.

use std::collections::HashSet;

use arbiter_proto::v1::{MeetingBot, StageMeeting, StageRound};
use arbiter_schedule::{Bot, half_points};

use super::{BegunStage, EditionRounds, ShownRounds, StageKind, to_u32};
use crate::db::tournaments::Tournament;
use crate::service::{Bracket, BracketBot, BracketMeeting, BracketRound, match_name};
use crate::tournament::played_rounds::{PlayedRound, RoundMatch};

/// A round of a swiss or a ladder, from 1. `None` for other kinds.
pub(super) fn round(
    shown: &ShownRounds,
    rounds: &EditionRounds,
    stage: &BegunStage<'_>,
    number: usize,
) -> Option<StageRound> {
    match stage.plan {
        StageKind::Listed(_) | StageKind::Gauntlet(_) | StageKind::Knockout(_) => None,
        StageKind::Swiss(_) | StageKind::Ladder(_) => {
            let index = number.checked_sub(1)?;
            let pairings = Pairings { tournament: &shown.tournament, rounds, stage };
            Some(pairings.round(index, stage.rounds.get(index)?))
        }
    }
}

/// The rounds of a bracket so far.
pub(super) fn bracket_rounds(bracket: &Bracket) -> Vec<StageRound> {
    bracket.rounds.iter().map(bracket_round).collect()
}

fn bracket_round(BracketRound { round, meetings }: &BracketRound) -> StageRound {
    let bot = |bot: &BracketBot| MeetingBot {
        bot: bot.name.clone(),
        score: bot.score.iter().map(ToString::to_string).collect(),
        number: Some(to_u32(bot.number)),
        points: None,
    };
    let meeting = |meeting: &BracketMeeting| StageMeeting {
        bots: meeting.bots.iter().map(bot).collect(),
        matches: meeting.matches.clone(),
        winner: meeting.winner.clone().unwrap_or_default(),
        decided_by: meeting.decided_by.unwrap_or_default().to_owned(),
        third_place: meeting.is_for_third_place,
    };
    StageRound {
        number: to_u32(*round),
        over: meetings.iter().all(|meeting| meeting.winner.is_some()),
        meetings: meetings.iter().map(meeting).collect(),
    }
}

/// The pairings of a stage in which all bots meet in each round.
struct Pairings<'a> {
    tournament: &'a Tournament,
    rounds: &'a EditionRounds,
    stage: &'a BegunStage<'a>,
}

impl Pairings<'_> {
    /// A round with its index, from 0.
    fn round(&self, index: usize, round: &PlayedRound) -> StageRound {
        let over = index < self.stage.plan.finished_rounds();
        let same_bots = |one: &RoundMatch, other: &RoundMatch| pair(one) == pair(other);
        let pairs = round.matches.chunk_by(same_bots);
        let mut meetings: Vec<_> = pairs.map(|games| self.meeting(games)).collect();
        let busy: HashSet<Bot> =
            round.matches.iter().flat_map(|game| game.planned.seats()).copied().collect();
        let free = self.stage.field.iter().filter(|bot| !busy.contains(bot));
        meetings.extend(free.map(|bot| self.bye(*bot, over)));
        StageRound { number: to_u32(index + 1), over, meetings }
    }

    fn meeting(&self, games: &[RoundMatch]) -> StageMeeting {
        let bot = |bot: &Bot| MeetingBot {
            bot: self.rounds.name(*bot),
            points: games
                .iter()
                .map(|game| points(game, *bot))
                .sum::<Option<u32>>()
                .map(|points| f64::from(points) / 2.0),
            ..MeetingBot::default()
        };
        let bots = games.first().map_or(&[][..], |game| game.planned.seats());
        let name = |game: &RoundMatch| {
            game.number.map(|number| match_name(self.tournament, number).to_string())
        };
        StageMeeting {
            bots: bots.iter().map(bot).collect(),
            matches: games.iter().filter_map(name).collect(),
            ..StageMeeting::default()
        }
    }

    /// A bot without an opponent. In a Swiss tournament it gets points for it.
    fn bye(&self, bot: Bot, over: bool) -> StageMeeting {
        let points = match self.stage.plan {
            StageKind::Swiss(swiss) if over => Some(f64::from(swiss.rules().games.0.bye()) / 2.0),
            _ => None,
        };
        let bot = MeetingBot { bot: self.rounds.name(bot), points, ..MeetingBot::default() };
        StageMeeting { bots: vec![bot], ..StageMeeting::default() }
    }
}

/// The bots of a match of two, in ascending order.
pub(in crate::service) fn pair(game: &RoundMatch) -> Option<[Bot; 2]> {
    let seats: [Bot; 2] = game.planned.seats().try_into().ok()?;
    Some([seats[0].min(seats[1]), seats[0].max(seats[1])])
}

/// The half points of a bot in a match of two; `None` until it is played.
fn points(game: &RoundMatch, bot: Bot) -> Option<u32> {
    let scores = game.scores.as_ref()?;
    let seat = game.planned.seats().iter().position(|other| *other == bot)?;
    Some(half_points(scores.get(seat)?, scores.get(1 - seat)?))
}
