//! Tournaments and their editions, and what can be said of schedules.

#![expect(clippy::struct_field_names, reason = "they are the names that are sent")]

use arbiter_proto::v1;
use serde_json::{Map, Value};

use super::answer::all;
use super::paging::Page;
use super::problem::Problem;
use super::question::{Answer, Asker};
use super::questions::{
    GetCertificate, GetCheck, GetEdition, GetEstimate, GetTournament, ListEditions, ListTournaments,
};
use super::values::{hash, moment, said};
use crate::service::Which;

answer! {
    /// A tournament.
    Tournament(found: v1::Tournament) {
        /// Its name.
        tournament: String = found.name;
        /// Its game.
        game: String;
        /// `open`, `closed` or `cancelled`.
        state: String;
        /// BLAKE3 of its seed, published when it was made.
        seed_hash: Option<String> = hash(&found.seed_hash);
        /// Its seed; null until the tournament is over.
        seed: Option<String> = hash(&found.seed);
        /// The public beacon that it names; null if its organiser alone chose the seed.
        beacon: Option<Beacon> = found.beacon.map(Beacon::from);
        /// When it was made.
        #[schemars(extend("format" = "date-time"))]
        created_at: Option<String> = moment(found.created_at_us);
        /// Why no edition could be opened when the last one was due; null if it could.
        trouble: Option<String> = said(found.last_error);
        /// When the next edition is opened because something changed; null if none is due.
        #[schemars(extend("format" = "date-time"))]
        due_at: Option<String> = (found.next_edition_at_us > 0).then(|| moment(found.next_edition_at_us)).flatten();
        /// The tournament file, its seed left out.
        settings: Map<String, Value> = serde_json::from_str(&found.settings).unwrap_or_default();
        /// In a list the edition that runs, if one does; elsewhere the newest one.
        newest: Option<Edition> = found.editions.first().cloned().map(Edition::from);
        /// The number of the edition whose leaderboard is the official one. Not told in lists.
        official: Option<i32> = found.editions.iter().find(|edition| edition.official).map(|edition| edition.number);
    }
}

answer! {
    /// A public beacon: a value that others publish after entry has closed, and that the seed of the last
    /// editions is keyed with.
    Beacon(found: v1::Beacon) {
        /// Where and when it is published.
        name: String;
        /// Its value; null until it is given.
        value: Option<String> = said(found.value.clone());
        /// When it was given; null until then.
        #[schemars(extend("format" = "date-time"))]
        given_at: Option<String> = said(found.value.clone()).and_then(|_| moment(found.set_at_us));
        /// The number of the first edition that is played with it; null until it is given.
        first_edition: Option<i32> = said(found.value).map(|_| found.first_edition);
    }
}

answer! {
    /// An edition: one complete schedule over fixed versions.
    Edition(found: v1::Edition) {
        /// Its identity, as in the names of matches.
        id: i32;
        /// Its number in the tournament, from 1.
        edition: i32 = found.number;
        /// `planning`, `running`, `complete` or `cancelled`.
        state: String;
        /// Whether its leaderboard is the official one.
        official: bool;
        /// Matches planned so far.
        matches: i64;
        /// Whether results may bring more.
        growing: bool = found.open_ended;
        /// Matches in its standings.
        counted: i64;
        /// Its lots and their matches by state: of the newest edition, and of those that run.
        lots: Vec<Lots> = all(found.lots);
        /// How its plan came to be, where plans grow.
        plan: Option<String> = said(found.plan);
        /// When it will be complete as things stand; null if it does not run, or nobody plays.
        #[schemars(extend("format" = "date-time"))]
        eta: Option<String> = found.eta_us.and_then(moment);
        /// Matches in a second, as they were played of late.
        rate: Option<f64>;
        /// How many matches the connected workers can play at the same time, while it runs.
        slots: u32;
    }
}

answer! {
    /// How many lots are in a state.
    Lots(found: v1::LotCount) {
        /// The state.
        state: String;
        /// Lots in it.
        lots: i64;
        /// Matches in these.
        matches: i64;
    }
}

forward! {
    pages
    ListTournaments {} => list_tournaments(v1::ListTournamentsRequest {}).tournaments;
}

impl Asker {
    async fn tournament(&self, tournament: String) -> Result<v1::Tournament, Problem> {
        let asked = v1::GetTournamentRequest { tournament };
        Ok(self.service.get_tournament(self.caller(), asked).await?)
    }
}

impl Answer for GetTournament {
    async fn answer(self, asker: &Asker) -> Result<Tournament, Problem> {
        asker.tournament(self.tournament).await.map(Tournament::from)
    }
}

impl Answer for ListEditions {
    async fn answer(self, asker: &Asker) -> Result<Page<Edition>, Problem> {
        let found = asker.tournament(self.tournament).await?.editions;
        Ok(asker.page(found, self.offset, self.limit))
    }
}

impl Answer for GetEdition {
    async fn answer(self, asker: &Asker) -> Result<Edition, Problem> {
        let mut found = asker.tournament(self.tournament).await?.editions.into_iter();
        let found = found.find(|edition| edition.number == self.edition);
        found.map(Edition::from).ok_or_else(|| Problem::missing("edition", self.edition))
    }
}

answer! {
    /// What the matches of an edition come to, counted one by one.
    Certificate(found: v1::Certificate) {
        /// The edition's number; null for the next one.
        edition: Option<i32> = (found.edition > 0).then_some(found.edition);
        /// How its plan came to be, where plans grow.
        plan: Option<String> = said(found.plan);
        /// Bots.
        bots: u32;
        /// Seats of a match.
        seats: u32;
        /// Matches.
        matches: u64;
        /// How often pairs meet, rising, without those of one owner where these are kept apart.
        meetings: Vec<Pairs> = all(found.meetings);
        /// Pairs of one owner, where these are kept apart.
        kin_pairs: Option<u64> = found.same_owner_pairs;
        /// How often these meet, all together.
        kin_meetings: u64 = found.same_owner_meetings;
        /// The fewest matches of a bot.
        fewest_matches: u32;
        /// The most matches of a bot.
        most_matches: u32;
        /// The fewest times that a bot is in some seat.
        fewest_in_seat: u32;
        /// The most times that a bot is in some seat.
        most_in_seat: u32;
        /// How many times more a bot is in one seat than in another, at most.
        seat_spread: u32;
        /// How many times more one of a pair is first than the other, at most, in matches of two.
        side_spread: Option<u32>;
        /// The public beacon of the tournament; null if its organiser alone chose the seed.
        beacon: Option<Beacon> = found.beacon.map(Beacon::from);
        /// Why meetings and seats were not counted; then their numbers are 0 and nothing is proved.
        not_counted: Option<String> = said(found.not_counted.clone());
        /// Whether all is as promised.
        proved: bool = found.broken_promise.is_empty() && found.not_counted.is_empty();
        /// The first promise that is broken.
        broken: Option<String> = said(found.broken_promise);
    }
}

answer! {
    /// How many pairs meet so often.
    Pairs(found: v1::PairCount) {
        /// How often.
        times: u32;
        /// How many pairs.
        pairs: u64;
    }
}

impl Answer for GetCertificate {
    async fn basis(&self, asker: &Asker) -> Result<Option<String>, Problem> {
        if self.next || self.fresh {
            return Ok(None);
        }
        let basis = asker.basis(&self.tournament, self.edition, Which::Newest).await?;
        let Some(basis) = basis else { return Ok(None) };
        // The value of a beacon is given after editions are complete.
        let beacon = asker.service.beacon_of(&self.tournament).await?;
        let value = beacon.map(|beacon| beacon.value).unwrap_or_default();
        Ok(Some(format!("{basis} {value}")))
    }

    async fn answer(self, asker: &Asker) -> Result<Certificate, Problem> {
        let Self { tournament, edition, next, fresh } = self;
        let asked = v1::CertifyEditionRequest { tournament, edition, next, fresh };
        Ok(asker.service.certify_edition(asker.caller(), asked).await?.into())
    }
}

answer! {
    /// What an edition would come to.
    Estimate(found: v1::EditionEstimate) {
        /// Bots that are entered.
        bots: u32;
        /// Matches; at most so many where they follow from results.
        matches: i64;
        /// Of these, matches that were not played by the same programs before: at most so many.
        to_play: i64;
        /// How long a match takes.
        match_ms: f64;
        /// Whether that was measured in this tournament, rather than expected.
        measured: bool;
        /// How many matches the connected workers can play at the same time.
        slots: u32;
        /// When it would be complete; null if no worker is connected.
        #[schemars(extend("format" = "date-time"))]
        eta: Option<String> = found.eta_us.and_then(moment);
        /// What the database would grow by, in bytes.
        bytes: i64;
        /// How its plan comes to be, where plans grow.
        plan: Option<String> = said(found.plan);
    }
}

answer! {
    /// Whether standings are what the reports say.
    Check(found: v1::CheckEditionResponse) {
        /// The number of the edition that was checked.
        edition: i32;
        /// Matches that were added up.
        matches: i64;
        /// One line for each bot whose sums differ; none if all is well.
        differences: Vec<String>;
        /// Matches that were derived again from the published seed; 0 until the tournament is over.
        derived: i64;
        /// Why no match was derived again.
        not_derived: Option<String> = said(found.not_derived);
        /// One line for each place where the stored plan differs from that; none if all is well.
        seed_differences: Vec<String>;
    }
}

forward! {
    GetEstimate { tournament, fresh } =>
        estimate_edition(v1::EstimateEditionRequest { tournament, fresh });
    GetCheck { tournament, edition } =>
        check_edition(v1::CheckEditionRequest { tournament, edition, records: false });
}
