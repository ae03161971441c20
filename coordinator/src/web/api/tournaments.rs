//! Tournaments, editions, certificates of schedules, estimates and checks.

#![expect(clippy::struct_field_names, reason = "JSON field names")]

use arbiter_proto::state_words::match_state;
use arbiter_proto::v1;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::endpoint::{Handler, RequestContext};
use super::endpoints::{
    GetCertificate, GetCheck, GetEdition, GetEstimate, GetTournament, ListEditions, ListTournaments,
};
use super::format::{hex_hash, non_empty, rfc3339_from_micros};
use super::pagination::Page;
use super::problem::Problem;
use super::resource::all;
use crate::service::DefaultEdition;

resource! {
    /// A tournament.
    Tournament(message: v1::Tournament) {
        /// Its name.
        tournament: String = message.name.clone();
        /// Its title for people; null if it has none.
        title: Option<String> = non_empty(message.title);
        /// Its description, as Markdown; null if it has none, and in lists.
        description: Option<String> = non_empty(message.description);
        /// Its game.
        game: String;
        /// The address of the page for authors of bots: how to play, and starter kits.
        how_to_play: String = format!("/t/{}/how-to-play", message.name);
        /// `open`, `closed` or `cancelled`.
        state: String;
        /// When everyone may see the records of its matches: `never`, `after_close` or `always`.
        replays: String;
        /// Whether and until when owners can enter bots.
        entry: Entry = Entry {
            open: message.entry_open,
            closes_at: message.closes_at_us.and_then(rfc3339_from_micros),
            text: message.entry,
        };
        /// From when on the public sees no newer leaderboard; null if never.
        #[schemars(extend("format" = "date-time"))]
        freeze_at: Option<String> = message.freeze_at_us.and_then(rfc3339_from_micros);
        /// `frozen since … until the tournament is over`; null if its leaderboards are not frozen.
        frozen: Option<String> = non_empty(message.freeze_notice);
        /// The BLAKE3 hash of its seed, published at its creation.
        seed_hash: Option<String> = hex_hash(&message.seed_hash);
        /// Its seed; null until the tournament is over.
        seed: Option<String> = hex_hash(&message.seed);
        /// Its public beacon; null if the organiser alone chose the seed.
        beacon: Option<Beacon> = message.beacon.map(Beacon::from);
        /// When it was created.
        #[schemars(extend("format" = "date-time"))]
        created_at: Option<String> = rfc3339_from_micros(message.created_at_us);
        /// When it was closed or cancelled; null while it is open.
        #[schemars(extend("format" = "date-time"))]
        ended_at: Option<String> = message.ended_at_us.and_then(rfc3339_from_micros);
        /// Why the last due edition could not be opened; null if it could.
        last_error: Option<String> = non_empty(message.last_error);
        /// When the next edition will open because of a change; null if none is due.
        #[schemars(extend("format" = "date-time"))]
        next_edition_at: Option<String> = (message.next_edition_at_us > 0).then(|| rfc3339_from_micros(message.next_edition_at_us)).flatten();
        /// What the next edition will lack if one more bot enters: bots, or a number that the
        /// schedule requests. Null if it will lack nothing, and in lists.
        new_bot_outlook: Option<String> = non_empty(message.new_bot_outlook);
        /// The tournament that it rehearses; null if it is no rehearsal. A rehearsal has no
        /// official edition.
        rehearsal_of: Option<String> = non_empty(message.rehearsal_of);
        /// The names of its rehearsals, newest first; empty in lists.
        rehearsals: Vec<String>;
        /// The announcements of its organisers, newest first; empty in lists.
        announcements: Vec<Announcement> = all(message.announcements);
        /// The tournament file, without the seed.
        settings: Map<String, Value> = serde_json::from_str(&message.settings).unwrap_or_default();
        /// The newest edition. In lists: the running edition, if any.
        newest: Option<Edition> = message.editions.first().cloned().map(Edition::from);
        /// The number of the edition with the official leaderboard. Not in lists.
        official: Option<i32> = message.editions.iter().find(|edition| edition.official).map(|edition| edition.number);
    }
}

resource! {
    /// An announcement of the organisers.
    Announcement(message: v1::Announcement) {
        /// Its number, from 1.
        number: i32;
        /// When it was posted.
        #[schemars(extend("format" = "date-time"))]
        at: Option<String> = rfc3339_from_micros(message.at_us);
        /// Markdown.
        text: String;
    }
}

/// Whether owners can enter bots.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Entry {
    /// Whether they can enter bots now.
    open: bool,
    /// When entry closes or closed; null if it never closes.
    #[schemars(extend("format" = "date-time"))]
    closes_at: Option<String>,
    /// In words, with the reason if entry is closed.
    text: String,
}

resource! {
    /// A public beacon: a value that a third party publishes after entry has closed. The seed of
    /// the last editions depends on it.
    Beacon(message: v1::Beacon) {
        /// The source and time of publication.
        name: String;
        /// Its value; null until it is entered.
        value: Option<String> = non_empty(message.value.clone());
        /// When it was entered; null until then.
        #[schemars(extend("format" = "date-time"))]
        set_at: Option<String> = non_empty(message.value.clone()).and_then(|_| rfc3339_from_micros(message.set_at_us));
        /// The number of the first edition that uses it; null until it is entered.
        first_edition: Option<i32> = non_empty(message.value).map(|_| message.first_edition);
    }
}

resource! {
    /// An edition: one complete schedule over fixed versions.
    Edition(message: v1::Edition) {
        /// Its id, as in the logs of the server.
        id: i32;
        /// Its number in the tournament, from 1.
        edition: i32 = message.number;
        /// `planning`, `running`, `complete` or `cancelled`.
        state: String;
        /// Whether its leaderboard is the official one.
        official: bool;
        /// The number of matches planned so far.
        matches: i64;
        /// Whether results can add more matches.
        open_ended: bool = message.open_ended;
        /// The number of matches in its standings.
        counted: i64;
        /// Lots and matches by state, except those that are `counted` or `not needed`. Only for
        /// the running edition.
        lots: Vec<LotCount> = all(message.lots);
        /// How its plan was derived from earlier plans, for incremental schedules.
        plan: Option<String> = non_empty(message.plan);
        /// The estimated end; null if it is not running or no worker is connected.
        #[schemars(extend("format" = "date-time"))]
        eta: Option<String> = message.eta_us.and_then(rfc3339_from_micros);
        /// The recent speed, in matches per second.
        rate: Option<f64>;
        /// The number of slots of the connected workers, while it runs.
        slots: u32;
        /// Since when the leaderboards of its tournament are frozen; null if they are not.
        frozen: Option<String> = non_empty(message.freeze_notice);
    }
}

resource! {
    /// The number of lots in a state.
    LotCount(message: v1::LotCount) {
        /// `waiting`, `checking`, `queued`, `playing`, `played`, `delayed` or `set aside`.
        state: String = match_state(&message.state).to_owned();
        /// The number of lots.
        lots: i64;
        /// The number of matches in these lots.
        matches: i64;
    }
}

forward! {
    pages
    ListTournaments {} => list_tournaments(v1::ListTournamentsRequest {}).tournaments;
}

impl RequestContext {
    async fn tournament(&self, tournament: String) -> Result<v1::Tournament, Problem> {
        let request = v1::GetTournamentRequest { tournament, edition: None };
        Ok(self.service.get_tournament(self.caller(), request).await?)
    }
}

impl Handler for GetTournament {
    async fn handle(self, context: &RequestContext) -> Result<Tournament, Problem> {
        context.tournament(self.tournament).await.map(Tournament::from)
    }
}

impl Handler for ListEditions {
    async fn handle(self, context: &RequestContext) -> Result<Page<Edition>, Problem> {
        let editions = context.tournament(self.tournament).await?.editions;
        Ok(context.page(editions, self.offset, self.limit))
    }
}

impl Handler for GetEdition {
    async fn handle(self, context: &RequestContext) -> Result<Edition, Problem> {
        let editions = context.tournament(self.tournament).await?.editions;
        let edition = editions.into_iter().find(|edition| edition.number == self.edition);
        edition.map(Edition::from).ok_or_else(|| Problem::not_found("edition", self.edition))
    }
}

resource! {
    /// The balance of a schedule, counted match by match.
    Certificate(message: v1::Certificate) {
        /// The edition's number; null for the next one.
        edition: Option<i32> = (message.edition > 0).then_some(message.edition);
        /// How its plan was derived from earlier plans, for incremental schedules, and the number
        /// that it has instead of one that the schedule requests.
        plan: Option<String> = non_empty(message.plan);
        /// The number of bots.
        bots: u32;
        /// The number of seats in a match.
        seats: u32;
        /// The number of matches.
        matches: u64;
        /// How often pairs of bots meet, ascending. Pairs of the same owner are left out if the
        /// schedule keeps them apart.
        meetings: Vec<PairCount> = all(message.meetings);
        /// The number of pairs of the same owner, if the schedule keeps them apart.
        same_owner_pairs: Option<u64> = message.same_owner_pairs;
        /// The total number of meetings of these pairs.
        same_owner_meetings: u64 = message.same_owner_meetings;
        /// The fewest others that a bot meets, in matches of two.
        fewest_opponents: Option<u32>;
        /// The most others that a bot meets, in matches of two.
        most_opponents: Option<u32>;
        /// The fewest matches of a bot.
        fewest_matches: u32;
        /// The most matches of a bot.
        most_matches: u32;
        /// The smallest number of times a bot has a certain seat.
        fewest_in_seat: u32;
        /// The largest number of times a bot has a certain seat.
        most_in_seat: u32;
        /// The largest difference between how often a bot has one seat and another.
        seat_spread: u32;
        /// The largest difference between how often each bot of a pair moves first, in matches of
        /// two.
        side_spread: Option<u32>;
        /// The public beacon of the tournament; null if the organiser alone chose the seed.
        beacon: Option<Beacon> = message.beacon.map(Beacon::from);
        /// Why meetings and seats were not counted. Then their numbers are 0 and nothing is
        /// verified.
        not_counted: Option<String> = non_empty(message.not_counted.clone());
        /// Whether the schedule keeps its promise.
        verified: bool = message.broken_promise.is_empty() && message.not_counted.is_empty();
        /// The first broken promise; null if there is none.
        broken_promise: Option<String> = non_empty(message.broken_promise);
    }
}

resource! {
    /// The number of pairs that meet a certain number of times.
    PairCount(message: v1::PairCount) {
        /// How often each of these pairs meets.
        times: u32;
        /// The number of pairs.
        pairs: u64;
    }
}

impl Handler for GetCertificate {
    async fn etag_basis(&self, context: &RequestContext) -> Result<Option<String>, Problem> {
        if self.next || self.fresh {
            return Ok(None);
        }
        let basis =
            context.etag_basis(&self.tournament, self.edition, DefaultEdition::Newest).await?;
        let Some(basis) = basis else { return Ok(None) };
        // The beacon is entered after editions are complete.
        let beacon = context.service.beacon_of(&self.tournament).await?;
        let value = beacon.map(|beacon| beacon.value).unwrap_or_default();
        Ok(Some(format!("{basis} {value}")))
    }

    async fn handle(self, context: &RequestContext) -> Result<Certificate, Problem> {
        let Self { tournament, edition, next, fresh } = self;
        let request = v1::CertifyEditionRequest { tournament, edition, next, fresh };
        Ok(context.service.certify_edition(context.caller(), request).await?.into())
    }
}

resource! {
    /// The estimated size and duration of the next edition.
    Estimate(message: v1::EditionEstimate) {
        /// The number of entered bots.
        bots: u32;
        /// The number of matches; an upper bound if matches depend on results.
        matches: i64;
        /// The number of matches to play; an upper bound. The others were played already.
        to_play: i64;
        /// The duration of a match.
        match_ms: f64;
        /// Whether the duration was measured in this tournament. Otherwise it is the game's
        /// estimate.
        measured: bool;
        /// The number of slots of the connected workers.
        slots: u32;
        /// The estimated end; null if no worker is connected.
        #[schemars(extend("format" = "date-time"))]
        eta: Option<String> = message.eta_us.and_then(rfc3339_from_micros);
        /// The growth of the database, in bytes.
        bytes: i64;
        /// How its plan is derived from earlier plans, for incremental schedules. The rounds of a
        /// knockout, and its fewest and most matches.
        plan: Option<String> = non_empty(message.plan);
    }
}

resource! {
    /// The comparison of standings with reports.
    EditionCheck(message: v1::CheckEditionResponse) {
        /// The number of the checked edition.
        edition: i32;
        /// The number of matches that were added up; 0 for an edition that was replaced before it
        /// was complete, since later editions played its matches.
        matches: i64;
        /// A line for each bot whose sums differ; empty if all are correct.
        differences: Vec<String>;
        /// The number of matches that were derived again from the published seed; 0 until the
        /// tournament is over.
        derived: i64;
        /// Why no match was derived again.
        not_derived: Option<String> = non_empty(message.not_derived);
        /// A line for each difference between the stored plan and the derived one; empty if there
        /// is none.
        seed_differences: Vec<String>;
    }
}

forward! {
    GetEstimate { tournament, fresh } =>
        estimate_edition(v1::EstimateEditionRequest { tournament, fresh });
    GetCheck { tournament, edition } =>
        check_edition(v1::CheckEditionRequest { tournament, edition, records: false });
}
