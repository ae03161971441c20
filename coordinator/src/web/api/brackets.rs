//! Brackets of knockouts.

use super::endpoint::{Handler, RequestContext};
use super::endpoints::GetBracket;
use super::problem::Problem;
use super::resource::all;
use crate::service;

resource! {
    /// The bracket of a knockout, as far as it is played.
    Bracket(message: service::Bracket) {
        /// The edition's number.
        edition: i32;
        /// The number of the stage, from 1; 1 without stages.
        stage: usize;
        /// Whether the edition was cancelled, so that no more rounds are played.
        cancelled: bool = message.is_cancelled;
        /// The number of rounds of the whole bracket.
        round_count: usize;
        /// The winner; null until it is known.
        winner: Option<String>;
        /// The rounds so far, the first one first.
        rounds: Vec<Round> = all(message.rounds);
    }
}

resource! {
    /// A round of a bracket.
    Round(message: service::BracketRound) {
        /// Its number, from 1.
        round: usize;
        /// Its meetings and byes, from the top of the bracket.
        meetings: Vec<Meeting> = all(message.meetings);
    }
}

resource! {
    /// Two bots that meet, or one bot with a bye.
    Meeting(message: service::BracketMeeting) {
        /// The bots, the one with the better number first; one bot for a bye.
        bots: Vec<MeetingBot> = all(message.bots);
        /// Whether the meeting decides the third place.
        third_place: bool = message.is_for_third_place;
        /// The bot that won; null until it is decided.
        winner: Option<String>;
        /// What decided the meeting: `games`, `extra_games`, or `number` for the better number in
        /// the bracket; null for a bye, and until it is decided.
        decided_by: Option<&'static str>;
        /// The names of its matches.
        matches: Vec<String>;
    }
}

resource! {
    /// A bot in a meeting.
    MeetingBot(message: service::BracketBot) {
        /// The bot's name.
        bot: String = message.name;
        /// Its number in the bracket, from 1.
        number: usize;
        /// The sums of its scores in the meeting, in decimal digits; empty until its first games
        /// are counted.
        score: Vec<String> = message.score.iter().map(ToString::to_string).collect();
    }
}

impl Handler for GetBracket {
    async fn handle(self, context: &RequestContext) -> Result<Bracket, Problem> {
        let Self { tournament, edition, stage } = self;
        Ok(context.service.bracket(context.caller(), &tournament, edition, stage).await?.into())
    }
}
