//! The meetings of a stage, round by round.

use std::collections::HashSet;

use arbiter_proto::v1::{MeetingBot, StageMeeting, StageRound};
use arbiter_schedule::{Bot, half_points};

use super::{BegunStage, EditionRounds, ShownRounds, StageKind, to_u32};
use crate::db::tournaments::Tournament;
use crate::service::bracket::{BracketBot, BracketMeeting, BracketRound, draw};
use crate::service::match_name;
use crate::tournament::played_rounds::{PlayedRound, RoundMatch};

/// The rounds of a stage so far, if its kind has meetings.
pub(super) fn rounds(
    shown: &ShownRounds,
    rounds: &EditionRounds,
    stage: &BegunStage<'_>,
    position: usize,
) -> Vec<StageRound> {
    match stage.plan {
        StageKind::Listed(_) | StageKind::Gauntlet(_) => Vec::new(),
        StageKind::Knockout(bracket) => {
            let drawn = draw(shown, rounds, stage, position, bracket);
            drawn.rounds.into_iter().map(bracket_round).collect()
        }
        StageKind::Swiss(_) | StageKind::Ladder(_) => {
            let pairings = Pairings { tournament: &shown.tournament, rounds, stage };
            let all = stage.rounds.iter().enumerate();
            all.map(|(index, round)| pairings.round(index, round)).collect()
        }
    }
}

fn bracket_round(BracketRound { round, meetings }: BracketRound) -> StageRound {
    let over = meetings.iter().all(|meeting| meeting.winner.is_some());
    let bot = |BracketBot { name, number, score }: BracketBot| MeetingBot {
        bot: name,
        score: score.iter().map(ToString::to_string).collect(),
        number: Some(to_u32(number)),
        points: None,
    };
    let meeting = |meeting: BracketMeeting| StageMeeting {
        bots: meeting.bots.into_iter().map(bot).collect(),
        matches: meeting.matches,
        winner: meeting.winner.unwrap_or_default(),
        decided_by: meeting.decided_by.unwrap_or_default().to_owned(),
        third_place: meeting.is_for_third_place,
    };
    StageRound {
        number: to_u32(round),
        over,
        meetings: meetings.into_iter().map(meeting).collect(),
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
