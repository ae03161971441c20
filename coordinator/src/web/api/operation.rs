//! What organisers and operators look at: the server, its queue and workers, what was set aside,
//! who did what.

#![expect(clippy::struct_field_names, reason = "they are the names that are sent")]

use arbiter_proto::v1;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::paging::{Limit, Page};
use super::problem::Problem;
use super::question::{Answer, Asker, Question};
use super::questions::{AskServer, GetQueue, ListAside, ListAudit, ListTokens, ListWorkers};
use super::tournaments::Edition;
use super::values::written;
use crate::db::{audit_log, tricks_http, workers};

/// A coordinator.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Server {
    /// Its version.
    version: &'static str,
    /// The version of this interface.
    api: &'static str,
    /// The games it knows.
    games: Vec<String>,
}

impl Answer for AskServer {
    async fn answer(self, asker: &Asker) -> Result<Server, Problem> {
        let games = asker.service.games().iter().map(ToString::to_string).collect();
        Ok(Server { version: env!("CARGO_PKG_VERSION"), api: "v1", games })
    }
}

answer! {
    /// A match that was set aside.
    Aside(found: v1::QuarantinedMatch) {
        /// The match, as EDITION/NUMBER.
        r#match: String;
        /// Why its attempts failed, the newest first: for organisers.
        reasons: Vec<String>;
    }
}

forward! {
    pages
    ListAside { tournament } => list_quarantined(v1::ListQuarantinedRequest { tournament }).matches;
    ListTokens {} => list_tokens(v1::ListTokensRequest {}).tokens;
}

answer! {
    /// An edition that is played.
    Playing(found: (String, v1::Edition)) {
        /// The tournament's name.
        tournament: String = found.0;
        /// The edition.
        edition: Edition = found.1.into();
    }
}

impl Answer for GetQueue {
    async fn answer(self, asker: &Asker) -> Result<Page<Playing>, Problem> {
        let found = asker.service.running_editions(asker.caller()).await?;
        Ok(asker.page(found, self.offset, self.limit))
    }
}

answer! {
    /// A worker.
    Worker(found: workers::Worker) {
        /// Its name.
        worker: String = found.name;
        /// What its sandbox can isolate.
        sandbox: String;
        /// Its build.
        build: String;
        /// How many matches it can play at the same time; 0 if it is not connected.
        slots: i32;
        /// When it was last known to be connected.
        #[schemars(extend("format" = "date-time"))]
        seen_at: Option<String> = written(found.seen_at);
    }
}

impl Answer for ListWorkers {
    async fn answer(self, asker: &Asker) -> Result<Page<Worker>, Problem> {
        let found = asker.service.known_workers(asker.caller()).await?;
        Ok(asker.page(found, self.offset, self.limit))
    }
}

answer! {
    /// A change.
    Change(found: audit_log::Change) {
        /// When.
        #[schemars(extend("format" = "date-time"))]
        at: Option<String> = written(found.at);
        /// The identity of the token with which it was done; null if it was the program itself.
        token: Option<i32>;
        /// What was done.
        action: String;
        /// To what.
        subject: String;
        /// What else is worth knowing.
        detail: Option<Value>;
    }
}

impl Answer for ListAudit {
    async fn answer(self, asker: &Asker) -> Result<Page<Change>, Problem> {
        let found = asker.service.latest_changes(asker.caller()).await?;
        Ok(asker.page(found, self.offset, self.limit))
    }
}

answer! {
    /// A token.
    Token(found: v1::Token) {
        /// Its identity.
        id: i32;
        /// What it allows: `admin`, `organiser`, `player` or `worker`.
        role: String;
        /// Whom or what it is for.
        name: String;
        /// Whether it was revoked.
        revoked: bool;
    }
}

answer! {
    /// What somebody made of tricks against the house.
    TricksRecord(found: tricks_http::Record) {
        /// The player's name.
        player: String = found.name;
        /// The best result of a session.
        best: i64 = found.best.into();
        /// How many tables that session had.
        best_tables: i64 = found.best_tables.into();
        /// The sum of the results of all sessions.
        total: i64;
        /// Sessions that were finished.
        sessions: i64;
        /// Those that brought a victory token.
        victories: i64;
        /// When the last one was finished.
        #[schemars(extend("format" = "date-time"))]
        last_at: Option<String> = written(found.last_at);
    }
}

parameters! {
    [
        /// Everybody's records in tricks over HTTP, the best first.
        ListTricks
    ] {}
    page of "Players";
}

impl Question for ListTricks {
    const PATH: &'static str = "/api/v1/tricks";
    const ABOUT: &'static str = "tricks over HTTP";
    type Reply = Page<TricksRecord>;
}

impl Answer for ListTricks {
    async fn answer(self, asker: &Asker) -> Result<Page<TricksRecord>, Problem> {
        let found = asker.service.tricks_records().await?;
        Ok(asker.page(found, self.offset, self.limit))
    }
}
