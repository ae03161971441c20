//! The rounds of editions: stages, standings and meetings.

use arbiter_proto::v1;

use super::endpoint::{Handler, RequestContext};
use super::endpoints::GetRounds;
use super::format::{non_empty, rank};
use super::problem::Problem;
use super::resource::all;

resource! {
    /// The stages of an edition, and the standings and meetings of one of them.
    EditionRounds(message: v1::GetRoundsResponse) {
        /// The edition's number.
        edition: i32;
        /// All stages in their order: one for a tournament without stages.
        stages: Vec<RoundsStage> = all(message.stages);
        /// The number of the stage that the following fields are about.
        stage: u32;
        /// Swiss and ladder: the number of the selected round. Without meaning for a knockout, of
        /// which all rounds are listed; null for other kinds.
        round: Option<u32> = (message.round > 0).then_some(message.round);
        /// Swiss and ladder: the number of rounds that the standings count, all up to the selected
        /// round that are over. Other kinds: the number of rounds that are over; the standings
        /// count all results.
        counted_rounds: u32;
        /// The names of the components of a score.
        columns: Vec<String>;
        /// The standings of the stage, best first.
        standings: Vec<StageStanding> = all(message.standings);
        /// The selected round of a swiss or a ladder; all rounds of a knockout so far, the first
        /// one first; empty for other kinds.
        rounds: Vec<StageRound> = all(message.rounds);
    }
}

resource! {
    /// A stage of an edition.
    RoundsStage(message: v1::RoundsStage) {
        /// Its number, from 1.
        stage: u32 = message.number;
        /// The kind of its schedule, as in a tournament file.
        kind: String;
        /// `planned` (it has not begun), `running`, `over`, or `cancelled`: the edition was
        /// cancelled before the stage was over.
        state: String;
        /// The number of its bots.
        bots: u32;
        /// The number of bots that advance to the next stage; null for the last stage.
        advance: Option<u32>;
        /// The bots that advanced, best first; empty until the stage is over.
        advanced: Vec<String>;
        /// The number of its rounds.
        rounds: u32;
        /// The number of its rounds that are over.
        finished_rounds: u32;
        /// The number of its rounds that have begun.
        begun_rounds: u32;
    }
}

resource! {
    /// A row of the standings of a stage. Fields are null if they decide no ranks in a stage of its
    /// kind.
    StageStanding(message: v1::StageStanding) {
        /// The rank, from 1. Tied bots share it. Null for a house bot that has no rank.
        rank: Option<u32> = rank(message.rank);
        /// Whether another bot has the same rank.
        tied: bool;
        /// The bot's name.
        bot: String;
        /// Whether the bot advanced to the next stage.
        advanced: bool;
        /// Swiss: a won game is a point, a drawn one half a point.
        points: Option<f64>;
        /// Swiss: the sum of the opponents' points. Here and in `sonneborn_berger`, a bye counts
        /// like an opponent with as many points as the bot.
        buchholz: Option<f64>;
        /// Swiss: the sum, over all opponents, of their points times those that the bot won against
        /// them.
        sonneborn_berger: Option<f64>;
        /// Ladder: the rating on the scale of Elo; 0 is the mean bot.
        rating: Option<f64>;
        /// Gauntlet: `panel` or `candidate`.
        group: Option<String> = non_empty(message.group);
        /// Gauntlet: the mean of the first component of the scores; null without matches.
        mean: Option<f64>;
        /// The number of matches that `score` counts.
        matches: Option<u64>;
        /// Kinds whose ranks follow from scores: the exact sums, in decimal digits. With carried
        /// points they include those of the former stage. Empty for other kinds.
        score: Vec<String>;
        /// Swiss and knockout: the number for which bots are paired, from 1.
        number: Option<u32>;
    }
}

resource! {
    /// A round of a stage.
    StageRound(message: v1::StageRound) {
        /// Its number, from 1.
        round: u32 = message.number;
        /// Whether it is over.
        over: bool;
        /// Its meetings and byes.
        meetings: Vec<StageMeeting> = all(message.meetings);
    }
}

resource! {
    /// Two bots that meet in a stage, or one bot with a bye.
    StageMeeting(message: v1::StageMeeting) {
        /// The bots: the one with seat 1 in the first game first; in a knockout, the one with the
        /// better number. One bot for a bye.
        bots: Vec<StageMeetingBot> = all(message.bots);
        /// Knockout: the bot that advances; null until it is decided.
        winner: Option<String> = non_empty(message.winner);
        /// Knockout: `games`, `extra_games`, or `number` for the better number in the bracket.
        decided_by: Option<String> = non_empty(message.decided_by);
        /// Knockout: whether the meeting decides the third place.
        third_place: bool;
        /// The names of its matches.
        matches: Vec<String>;
    }
}

resource! {
    /// A bot in a meeting of a stage.
    StageMeetingBot(message: v1::MeetingBot) {
        /// The bot's name.
        bot: String;
        /// Swiss and ladder: its points in the meeting; null until all its games are played.
        points: Option<f64>;
        /// Knockout: the sums of its scores in the meeting, in decimal digits.
        score: Vec<String>;
        /// Knockout: its number in the bracket, from 1.
        number: Option<u32>;
    }
}

impl Handler for GetRounds {
    async fn handle(self, context: &RequestContext) -> Result<EditionRounds, Problem> {
        let Self { tournament, edition, stage, round } = self;
        let request = v1::GetRoundsRequest { tournament, edition, stage, round, trf: false };
        Ok(context.service.get_rounds(context.caller(), request).await?.into())
    }
}
