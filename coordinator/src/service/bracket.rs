//! The bracket of a knockout, as far as it is played.

use std::collections::HashMap;

use arbiter_proto::ids::MatchNumber;
use arbiter_proto::v1;
use arbiter_ranking::Entrant;
use arbiter_schedule::{self as schedule, Bot, Fixture, Meeting, RoundPlan, Rounds};

use super::{Caller, DefaultEdition, Result, Service, ServiceError, match_name};
use crate::db::editions::{Edition, EditionState};
use crate::db::entrants::Roster;
use crate::db::matches;
use crate::db::tournaments::Tournament;
use crate::tournament::rounds;

/// Maximum number of matches of a bracket that is shown. All are read, and all are on one page.
const MAX_SHOWN_MATCHES: i64 = 20_000;

/// A bracket for people.
#[derive(Clone, Debug)]
pub(crate) struct Bracket {
    /// The number of the edition.
    pub(crate) edition: i32,
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
    /// The bracket of an edition; by default of the newest one.
    ///
    /// # Errors
    /// If the tournament is no knockout, or its bracket is too large to show.
    pub(crate) async fn bracket(
        &self,
        caller: &Caller,
        tournament: &str,
        edition: Option<i32>,
    ) -> Result<Bracket> {
        let row = self.tournament(tournament).await?;
        let board = v1::LeaderboardRef { tournament: tournament.to_owned(), edition };
        let (edition, _) = self.edition_of(Some(board), DefaultEdition::Newest, caller).await?;
        // Matches of a cancelled edition may still be played while the leaderboard is frozen.
        self.require_results(&edition, caller).await?;
        if edition.matches > MAX_SHOWN_MATCHES {
            let matches = edition.matches;
            return Err(ServiceError::failed_precondition(format!(
                "the bracket of edition {} has {matches} matches; only brackets of at most \
                 {MAX_SHOWN_MATCHES} are shown, so look at its leaderboard instead",
                edition.number
            )));
        }
        let _permit = self.permit(caller).await?;
        let mut db = self.pool.acquire().await?;
        let plan = rounds::stored_plan(&mut db, self.queue.games(), &edition).await?;
        let Some(RoundPlan::Knockout(bracket)) = plan else {
            return Err(ServiceError::failed_precondition(format!(
                "{tournament} is no knockout, so it has no bracket"
            )));
        };
        let roster = Roster::of(&mut *db, edition.id).await?;
        let planned = matches::planned(&mut *db, edition.scope(), MatchNumber(0), None, u32::MAX);
        let mut numbers: HashMap<[Entrant; 2], Vec<MatchNumber>> = HashMap::new();
        for planned in planned.await? {
            if let [first, second] = planned.seats.0[..] {
                numbers.entry(pair(first, second)).or_default().push(planned.number);
            }
        }
        let entrants = roster.iter().map(|(entrant, _)| entrant).collect();
        Ok(Drawing { tournament: &row, roster, entrants, numbers }.draw(&edition, &bracket))
    }
}

/// Two entrants in ascending order.
fn pair(first: Entrant, second: Entrant) -> [Entrant; 2] {
    [first.min(second), first.max(second)]
}

/// The data with which a bracket is drawn.
struct Drawing<'a> {
    tournament: &'a Tournament,
    roster: Roster,
    entrants: Vec<Entrant>,
    /// The matches of each pair. Two bots meet at most once in a bracket.
    numbers: HashMap<[Entrant; 2], Vec<MatchNumber>>,
}

impl Drawing<'_> {
    fn draw(&self, edition: &Edition, bracket: &schedule::Bracket) -> Bracket {
        let round_count = bracket.round_count();
        let numbers: HashMap<_, _> = bracket.numbered().iter().copied().zip(1..).collect();
        let round = |(round, fixtures): (usize, &Vec<Fixture>)| {
            let meetings = fixtures.iter().enumerate().map(|(index, fixture)| {
                let is_for_third_place = index >= 1 << (round_count - round);
                self.meeting(fixture, is_for_third_place, &numbers)
            });
            BracketRound { round, meetings: meetings.collect() }
        };
        let last = bracket.rounds().last().and_then(|round| round.first());
        let winner = last.filter(|_| bracket.is_over()).and_then(Fixture::winner);
        Bracket {
            edition: edition.number,
            is_cancelled: edition.state == EditionState::Cancelled,
            round_count,
            rounds: (1..).zip(bracket.rounds()).map(round).collect(),
            winner: winner.map(|bot| self.name(bot)),
        }
    }

    fn meeting(
        &self,
        fixture: &Fixture,
        is_for_third_place: bool,
        numbers: &HashMap<Bot, usize>,
    ) -> BracketMeeting {
        let bot = |bot: Bot, score: &[i128]| BracketBot {
            name: self.name(bot),
            number: numbers.get(&bot).copied().unwrap_or(0),
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
        let [first, second] = bots.map(|bot| self.entrants[usize::from(bot)]);
        let numbers = self.numbers.get(&pair(first, second)).map_or(&[][..], Vec::as_slice);
        BracketMeeting {
            bots: bots.iter().zip(scores).map(|(one, score)| bot(*one, score)).collect(),
            is_for_third_place,
            winner,
            decided_by: decision.map(|decision| decision.by.as_str()),
            matches: numbers
                .iter()
                .map(|number| match_name(self.tournament, *number).to_string())
                .collect(),
        }
    }

    fn name(&self, bot: Bot) -> String {
        let entrant = self.entrants[usize::from(bot)];
        self.roster.get(entrant).map(|named| named.name.clone()).unwrap_or_default()
    }
}
