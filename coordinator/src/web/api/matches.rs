//! Matches, planned matches, records and steps of replays.

#![expect(clippy::struct_field_names, reason = "JSON field names")]

use arbiter_proto::ids::{MatchName, MatchNumber};
use arbiter_proto::{state_words, v1};
use arbiter_replay::{Clock, Step, Steps};
use axum::http::Uri;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio_stream::StreamExt as _;

use super::bots::Evidence;
use super::endpoint::{Handler, RequestContext};
use super::endpoints::{GetMatch, GetMatchSteps, GetRecord, ListMatches, ListPlannedMatches};
use super::format::{hex_hash, non_empty, rfc3339_from_micros};
use super::pagination::{Limit, Order, Page, with_parameter};
use super::problem::Problem;
use super::resource::all;
use super::response::RecordLines;
use crate::db::matches;
use crate::service::{self, DefaultEdition};
use crate::web::match_page;

/// Maximum number of steps in a response.
const MAX_STEPS: usize = 50;

resource! {
    /// A match, planned or played.
    Match(message: v1::MatchStatus) {
        /// The match, as TOURNAMENT/NUMBER.
        r#match: String = message.r#match.clone();
        /// The tournament's name.
        tournament: String = message.tournament.clone();
        /// `waiting`, `checking`, `queued`, `playing`, `played`, `counted`, `delayed`, `set aside`
        /// or `not needed`. In lists `played` or `counted`.
        state: String = state_words::state_of(&message).to_owned();
        /// The seats, seat 1 first. Empty while a freeze hides who plays.
        seats: Vec<MatchSeat> = all(message.seats);
        /// The parameters that differ from the tournament's.
        params: Option<Value> = serde_json::from_str(&message.params).ok();
        /// Matches with the same seed key have the same seed. A number in decimal digits.
        seed_key: Option<String> = message.block.map(|key| key.to_string());
        /// The index of the tournament's board, from 0, if there are several.
        board: Option<i32>;
        /// The number of the edition that added it. Later editions may share it.
        edition: i32;
        /// Its stage, from 1, in schedules with rounds that follow from results. Only in lists.
        stage: Option<u32>;
        /// Its round in the stage, from 1, if the stage has several rounds. Only in lists.
        round: Option<u32>;
        /// `frozen since … until the tournament is over` if this hides the result; otherwise null.
        /// In lists null.
        frozen: Option<String> = non_empty(message.freeze_notice);
        /// When its result was stored, once played.
        #[schemars(extend("format" = "date-time"))]
        reported_at: Option<String> = message.reported_us.and_then(rfc3339_from_micros);
        /// The BLAKE3 hash of the transcript, once played.
        transcript: Option<String> = hex_hash(&message.transcript);
        /// The wall-clock duration, once played.
        wall_ms: Option<i32> = (!message.transcript.is_empty()).then_some(message.wall_ms);
        /// The sandbox level: A to D.
        level: Option<String> = non_empty(message.level);
        /// The worker that played it. Only for organisers.
        worker: Option<String> = non_empty(message.worker);
        /// The number of leases that ended without a result. Not in lists.
        failed_leases: u32 = message.failed_leases;
        /// The reasons, newest first. Only for organisers.
        faults: Vec<String>;
    }
}

resource! {
    /// A seat of a match.
    MatchSeat(message: v1::MatchSeat) {
        /// The bot's name.
        bot: String;
        /// The number of its version.
        version: i32;
        /// The BLAKE3 hash of the bundle of this version.
        digest: Option<String> = hex_hash(&message.digest);
        /// Its score, most significant component first; empty before the match is played.
        score: Vec<i64>;
        /// The kind of forfeit: `clock`, `illegal`, `gone` or `flood`; null if there was none.
        forfeit: Option<String> = non_empty(message.forfeit);
        /// The number of bad replies that did not cause a forfeit.
        bad_answers: i32;
        /// The name of its owner; null for house bots.
        owner: Option<String> = non_empty(message.owner);
        /// Why it forfeited, or its first bad reply. Only for its owner and organisers.
        evidence: Option<Evidence> = message.evidence.map(Evidence::from);
    }
}

impl ListMatches {
    /// Requests the matches of the page, and one more to see whether another page follows.
    fn request(&self) -> v1::ListMatchesRequest {
        v1::ListMatchesRequest {
            bot: self.bot.clone(),
            opponent: self.opponent.clone(),
            forfeits_only: self.forfeit,
            version: self.version.unwrap_or_default(),
            newest_first: self.order == Order::Newest,
            rounds: true,
            ..list_request(self.tournament.clone(), self.edition, self.after, self.limit)
        }
    }
}

impl Handler for ListMatches {
    async fn etag_basis(&self, context: &RequestContext) -> Result<Option<String>, Problem> {
        if self.version.is_some() && self.edition.is_none() {
            return Ok(None);
        }
        context.etag_basis(&self.tournament, self.edition, DefaultEdition::Official).await
    }

    async fn handle(self, context: &RequestContext) -> Result<Page<Match>, Problem> {
        let mut request = self.request();
        // All pages are of the same edition, even if another one becomes official meanwhile.
        let edition = context.service.listed_edition(context.caller(), &request).await?.number;
        request.edition = Some(edition);
        let mut matches = context.service.list_matches(context.caller(), request).await?;
        let mut items: Vec<Match> = Vec::new();
        while let Some(status) = matches.next().await {
            items.push(status?.into());
        }
        let more = items.len() > self.limit.entries();
        items.truncate(self.limit.entries());
        let last = items.last().filter(|_| more);
        let last = last.and_then(|last| last.r#match.parse::<MatchName>().ok());
        let next = last.map(|last| next_page_url(&context.uri, edition, last.number));
        Ok(Page { items, next })
    }
}

/// The URL of the next page, pinned to this edition, because another one may become the official or
/// the newest one.
fn next_page_url(uri: &Uri, edition: i32, last: MatchNumber) -> String {
    let pinned = with_parameter(uri, "edition", edition);
    let pinned = pinned.parse().unwrap_or_else(|_| uri.clone());
    with_parameter(&pinned, "after", last)
}

/// Requests the matches of a page, and one more to see whether another page follows.
fn list_request(
    tournament: String,
    edition: Option<i32>,
    after: Option<i64>,
    limit: Limit,
) -> v1::ListMatchesRequest {
    let limit = limit.0 + 1;
    v1::ListMatchesRequest { tournament, edition, after, limit, ..Default::default() }
}

fn name(tournament: String, number: i64) -> String {
    MatchName { tournament, number: MatchNumber(number) }.to_string()
}

forward! {
    GetMatch { tournament, number } =>
        get_match(v1::GetMatchRequest { r#match: name(tournament, number) });
}

impl Handler for GetRecord {
    async fn handle(self, context: &RequestContext) -> Result<RecordLines, Problem> {
        let name = name(self.tournament, self.number);
        Ok(RecordLines(context.service.record(context.caller(), &name).await?))
    }
}

resource! {
    /// Steps of a match.
    MatchSteps(steps: Steps) {
        /// The number of steps of the match.
        total: usize = steps.overview.total;
        /// The names of the bots, seat 1 first.
        seats: Vec<String> = steps.overview.names.iter().map(ToString::to_string).collect();
        /// The chapters of the match, such as deals or rounds.
        chapters: Vec<Chapter> = all(steps.overview.chapters);
        /// The requested steps.
        items: Vec<ReplayStep> = all(steps.drawn);
        /// The URL of the next steps; null after the last step.
        next: Option<String> = None;
    }
}

resource! {
    /// A chapter of a match.
    Chapter(chapter: (String, usize)) {
        /// Its name.
        name: String = chapter.0;
        /// Its first step.
        first: usize = chapter.1;
    }
}

resource! {
    /// A step of a match.
    ReplayStep(drawn: Step) {
        /// Its number, from 0.
        step: usize = drawn.index;
        /// The time since the start of the match.
        time_us: i64 = drawn.time.0;
        /// The seat that acted, from 1; null if none did.
        seat: Option<usize> = drawn.seat.map(|seat| seat.index() + 1);
        /// The reply, word for word.
        reply: Option<String>;
        /// The kind of forfeit and its evidence.
        forfeit: Option<String> = drawn.forfeit.map(|forfeit| forfeit.to_string());
        /// The position after the step, in words.
        caption: String = drawn.picture.caption;
        /// The position after the step, as HTML, mostly SVG.
        picture: String = drawn.picture.markup.into_string();
        /// The clocks, seat 1 first.
        clocks: Vec<SeatClock> = all(drawn.clocks);
        /// The results of the seats, in the last step.
        result: Option<Vec<SeatResult>> = drawn.standings.map(all);
    }
}

resource! {
    /// A seat's clock.
    SeatClock(clock: Clock) {
        /// The remaining time, in games with a time bank.
        remaining_us: Option<i64> = clock.left.map(|left| left.0);
        /// The time charged for its replies so far.
        used_us: i64 = clock.used.0;
    }
}

resource! {
    /// The result of a seat.
    SeatResult(result: arbiter_games::SeatResult) {
        /// Its score, most significant component first.
        score: Vec<i64> = result.score.0;
        /// The kind of forfeit: `clock`, `illegal`, `gone` or `flood`; null if there was none.
        forfeit: Option<String> = result.forfeit.map(|forfeit| forfeit.as_str().to_owned());
    }
}

impl Handler for GetMatchSteps {
    async fn handle(self, context: &RequestContext) -> Result<MatchSteps, Problem> {
        let name = name(self.tournament, self.number);
        let caller = context.caller();
        let readable = context.service.readable_record(caller, &name).await?;
        let from = self.from as usize;
        let count = self.limit.entries().min(MAX_STEPS);
        let games = context.service.games_of_match(&name).await?;
        let record = context.service.replay_record(caller, readable).await?;
        let requested = from..from.saturating_add(count);
        let replay = move || record.steps(&games, requested);
        let steps = match_page::run_replay(&context.session, &name, replay).await?;
        let next = from.saturating_add(count);
        let next =
            (next < steps.overview.total).then(|| with_parameter(&context.uri, "from", next));
        Ok(MatchSteps { next, ..steps.into() })
    }
}

/// A planned match.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PlannedMatch {
    /// The match, as TOURNAMENT/NUMBER.
    r#match: String,
    /// The names of the bots, seat 1 first.
    seats: Vec<String>,
    /// Matches with the same seed key have the same seed. A number in decimal digits.
    seed_key: String,
    /// The index of the tournament's board, from 0, if there are several.
    board: Option<i16>,
}

impl Handler for ListPlannedMatches {
    async fn handle(self, context: &RequestContext) -> Result<Page<PlannedMatch>, Problem> {
        let Self { tournament, edition, after, limit } = self;
        let request = list_request(tournament.clone(), edition, after, limit);
        let service::Planned { edition, roster, mut matches } =
            context.service.planned_matches(context.caller(), request).await?;
        let more = matches.len() > limit.entries();
        matches.truncate(limit.entries());
        let last = matches.last().filter(|_| more).map(|last| last.number);
        let named = |entrant: &_| roster.get(*entrant).map(|named| named.name.clone());
        let planned = |planned: matches::Match| PlannedMatch {
            r#match: name(tournament.clone(), planned.number.0),
            seats: planned.seats.0.iter().filter_map(named).collect(),
            seed_key: planned.seed_key.to_string(),
            board: planned.board,
        };
        let next = last.map(|last| next_page_url(&context.uri, edition.number, last));
        Ok(Page { items: matches.into_iter().map(planned).collect(), next })
    }
}

#[cfg(test)]
mod tests {
    use arbiter_proto::state_words::{MATCH_STATES, VERSION_STATES};
    use serde_json::json;

    use super::*;
    use crate::db::lots::LotState;
    use crate::db::trials::TrialState;
    use crate::web::api::bots::{Bot, Version};
    use crate::web::api::tournaments::LotCount;

    #[test]
    fn each_state_has_a_word() {
        assert_eq!(LotState::ALL.map(LotState::as_str), MATCH_STATES.map(|(state, _)| state));
        assert_eq!(TrialState::ALL.map(TrialState::as_str), VERSION_STATES.map(|(state, _)| state));
    }

    #[test]
    fn states_are_in_the_words_of_pages() {
        for (state, shown) in MATCH_STATES {
            let status = v1::MatchStatus { state: state.to_owned(), ..Default::default() };
            assert_eq!(json!(Match::from(status))["state"], shown);
            let count = v1::LotCount { state: state.to_owned(), ..Default::default() };
            assert_eq!(json!(LotCount::from(count))["state"], shown);
        }
        for (state, shown) in VERSION_STATES {
            let version = v1::Version { state: state.to_owned(), ..Default::default() };
            assert_eq!(json!(Version::from(version))["state"], shown);
            let bot = v1::Bot { state: state.to_owned(), ..Default::default() };
            assert_eq!(json!(Bot::from(bot))["state"], shown);
        }
    }
}
