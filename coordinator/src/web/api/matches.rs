//! Matches: played, planned, and step by step.

#![expect(clippy::struct_field_names, reason = "they are the names that are sent")]

use arbiter_proto::ids::{EditionId, MatchId, MatchNumber};
use arbiter_proto::v1;
use arbiter_replay::{Clock, Difference, Step, Steps};
use axum::http::Uri;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio_stream::StreamExt as _;

use super::answer::all;
use super::bots::Evidence;
use super::paging::{Page, following};
use super::problem::Problem;
use super::question::{Answer, Asker};
use super::questions::{GetMatch, GetRecord, GetSteps, ListMatches, ListPlanned};
use super::reply::Lines;
use super::values::{hash, said};
use crate::db::matches;
use crate::service::{self, Which};
use crate::web::replay;

/// Steps that are given at a time, at most.
const STEPS: usize = 50;

answer! {
    /// A match, planned or played.
    Match(found: v1::MatchStatus) {
        /// The match, as EDITION/NUMBER.
        r#match: String;
        /// The tournament's name.
        tournament: String;
        /// `blocked`, `weighing`, `pending`, `leased`, `reported`, `counted`, `delayed`, `aside` or
        /// `cancelled`. In lists `reported`: it was played.
        state: String;
        /// Who sits where, seat 1 first.
        seats: Vec<Seated> = all(found.seats);
        /// Parameters that differ from the tournament's.
        params: Option<Value> = serde_json::from_str(&found.params).ok();
        /// BLAKE3 of what was said, once it is played.
        transcript: Option<String> = hash(&found.transcript);
        /// How long it took on the wall, once it is played.
        wall_ms: Option<i32> = (!found.transcript.is_empty()).then_some(found.wall_ms);
        /// The level of the sandbox it was played in: A to D.
        level: Option<String> = said(found.level);
        /// The match of an earlier edition that it was taken over from, as EDITION/NUMBER.
        taken_from: Option<String> = said(found.reused_from);
        /// Who played it: for organisers.
        worker: Option<String> = said(found.worker);
        /// How many leases ended without results. Not told in lists.
        faulty: u32 = found.failed_leases;
        /// Why, the newest first: for organisers.
        faults: Vec<String>;
    }
}

answer! {
    /// A seat of a match.
    Seated(found: v1::MatchSeat) {
        /// The bot's name.
        bot: String;
        /// The number of its version.
        version: i32;
        /// Its score, the most important number first; empty before it is played.
        score: Vec<i64>;
        /// How it forfeited: `clock`, `illegal`, `gone` or `flood`.
        forfeit: Option<String> = said(found.forfeit);
        /// Bad answers that were no forfeits.
        bad_answers: i32;
        /// Why it forfeited, or what its first bad answer was: for its owner and for organisers.
        evidence: Option<Evidence> = found.evidence.map(Evidence::from);
    }
}

impl Answer for ListMatches {
    async fn basis(&self, asker: &Asker) -> Result<Option<String>, Problem> {
        asker.basis(&self.tournament, self.edition, Which::Official).await
    }

    async fn answer(self, asker: &Asker) -> Result<Page<Match>, Problem> {
        let Self { tournament, edition, bot, after, limit } = self;
        // What follows is of the same edition, whichever is the official one by then.
        let board = v1::LeaderboardRef { tournament: tournament.clone(), edition };
        let (found, _) =
            asker.service.edition_of(Some(board), Which::Official, asker.caller()).await?;
        let edition = Some(found.number);
        let asked = v1::ListMatchesRequest { tournament, edition, bot, after, limit: limit.0 + 1 };
        let mut answers = asker.service.list_matches(asker.caller(), asked).await?;
        let mut items: Vec<Match> = Vec::new();
        while let Some(answer) = answers.next().await {
            items.push(answer?.into());
        }
        let more = items.len() > limit.entries();
        items.truncate(limit.entries());
        let last = items.last().filter(|_| more);
        let last = last.and_then(|last| last.r#match.parse::<MatchId>().ok());
        let next = last.map(|last| onwards(&asker.uri, found.number, last.number));
        Ok(Page { items, next })
    }
}

/// The address of the page behind a match, of the same edition: whichever is the official or the
/// newest one by then.
fn onwards(uri: &Uri, edition: i32, last: MatchNumber) -> String {
    let pinned = following(uri, "edition", edition);
    let pinned = pinned.parse().unwrap_or_else(|_| uri.clone());
    following(&pinned, "after", last)
}

fn name(edition: i32, number: i64) -> String {
    MatchId { edition: EditionId(edition), number: MatchNumber(number) }.to_string()
}

forward! {
    GetMatch { edition, number } =>
        get_match(v1::GetMatchRequest { r#match: name(edition, number) });
}

impl Answer for GetRecord {
    async fn answer(self, asker: &Asker) -> Result<Lines, Problem> {
        let name = name(self.edition, self.number);
        Ok(Lines(asker.service.record(asker.caller(), &name).await?))
    }
}

answer! {
    /// Steps of a match.
    Film(found: Steps) {
        /// How many steps there are.
        total: usize;
        /// The names of the bots, seat 1 first.
        seats: Vec<String> = found.names().iter().map(ToString::to_string).collect();
        /// Where the parts of the match begin, such as deals or rounds.
        chapters: Vec<Chapter> = all(found.chapters);
        /// Those that were asked for.
        items: Vec<Stepped> = all(found.drawn);
        /// The address of those that follow; null behind the last one.
        next: Option<String> = None;
    }
}

answer! {
    /// A part of a match.
    Chapter(found: (String, usize)) {
        /// What it is called.
        name: String = found.0;
        /// Its first step.
        first: usize = found.1;
    }
}

answer! {
    /// A step of a match.
    Stepped(found: Step) {
        /// Its number, from 0.
        step: usize = found.index;
        /// So long after the match began.
        t_us: i64 = found.time.0;
        /// Who played, if this is somebody's decision or forfeit: from 1.
        seat: Option<usize> = found.seat.map(|seat| seat.index() + 1);
        /// What was answered, as it was said.
        said: Option<String>;
        /// How the seat forfeited, and the evidence.
        forfeit: Option<String>;
        /// The table after it, in words.
        caption: String = found.picture.caption;
        /// The table after it, as a picture: markup of a page, mostly SVG.
        picture: String = found.picture.markup.into_string();
        /// Every seat's clock, seat 1 first.
        clocks: Vec<Clocked> = all(found.clocks);
        /// Every seat's result, in the last step.
        result: Option<Vec<Standing>> = found.standings.map(all);
    }
}

answer! {
    /// A seat's clock.
    Clocked(found: Clock) {
        /// What is left in its bank, in games that have one.
        left_us: Option<i64> = found.left.map(|left| left.0);
        /// What its answers took so far, by the clock that is charged.
        used_us: i64 = found.used.0;
    }
}

answer! {
    /// What a seat came to.
    Standing(found: arbiter_games::SeatResult) {
        /// Its score, the most important number first.
        score: Vec<i64> = found.score.0;
        /// How it forfeited: `clock`, `illegal`, `gone` or `flood`.
        forfeit: Option<String> = found.forfeit.map(|forfeit| forfeit.as_str().to_owned());
    }
}

impl Answer for GetSteps {
    async fn answer(self, asker: &Asker) -> Result<Film, Problem> {
        let name = name(self.edition, self.number);
        let record = asker.service.record(asker.caller(), &name).await?;
        let (from, count) = (self.from as usize, self.limit.entries().min(STEPS));
        let games = asker.service.games().clone();
        let steps = move || {
            let text = arbiter_replay::unpack(&record).map_err(Difference::Unreadable)?;
            arbiter_replay::steps(&games, text, from..from.saturating_add(count))
        };
        let found: Steps = replay::replayed(&asker.session, steps).await?;
        let next = from.saturating_add(count);
        let next = (next < found.total).then(|| following(&asker.uri, "from", next));
        Ok(Film { next, ..found.into() })
    }
}

/// A match as it was planned.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Planned {
    /// The match, as EDITION/NUMBER.
    r#match: String,
    /// The names of the bots, seat 1 first.
    seats: Vec<String>,
    /// Matches with the same deal have the same seed: a number in decimal digits.
    deal: String,
    /// Which of the tournament's boards, where there are several, from 0.
    board: Option<i16>,
}

impl Answer for ListPlanned {
    async fn answer(self, asker: &Asker) -> Result<Page<Planned>, Problem> {
        let Self { tournament, edition, after, limit } = self;
        let (bot, limit) = (String::new(), limit.0);
        let asked = v1::ListMatchesRequest { tournament, edition, bot, after, limit };
        let service::Planned { edition, roster, matches } =
            asker.service.planned_matches(asker.caller(), asked).await?;
        let last = matches.last().map(|last| last.number);
        let more = last.filter(|last| last.0 + 1 < edition.matches);
        let named = |entrant: &_| roster.get(*entrant).map(|named| named.name.clone());
        let planned = |planned: matches::Match| Planned {
            r#match: MatchId { edition: edition.id, number: planned.number }.to_string(),
            seats: planned.seats.0.iter().filter_map(named).collect(),
            deal: planned.deal.to_string(),
            board: planned.board,
        };
        let next = more.map(|last| onwards(&asker.uri, edition.number, last));
        Ok(Page { items: matches.into_iter().map(planned).collect(), next })
    }
}
