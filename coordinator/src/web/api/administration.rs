//! Resources for organisers and operators: the server, its queue, workers, matches set aside, the
//! audit log, tokens, and the records of tricks over HTTP.

#![expect(clippy::struct_field_names, reason = "JSON field names")]

use arbiter_proto::v1;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::endpoint::{Endpoint, Handler, RequestContext};
use super::endpoints::{
    GetQueue, GetServer, ListAuditEntries, ListSetAsideMatches, ListTokens, ListWorkers,
};
use super::format::{non_empty, rfc3339};
use super::pagination::{Limit, Page};
use super::problem::Problem;
use super::tournaments::Edition;
use crate::db::{audit_log, tricks_http, workers};

/// The coordinator.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ServerInfo {
    /// Its version.
    version: &'static str,
    /// The version of this API.
    api: &'static str,
    /// The available games.
    games: Vec<String>,
}

impl Handler for GetServer {
    async fn handle(self, context: &RequestContext) -> Result<ServerInfo, Problem> {
        let games = context.service.games().iter().map(ToString::to_string).collect();
        Ok(ServerInfo { version: env!("CARGO_PKG_VERSION"), api: "v1", games })
    }
}

resource! {
    /// A match that was set aside.
    SetAsideMatch(message: v1::SetAsideMatch) {
        /// The match, as TOURNAMENT/NUMBER.
        r#match: String;
        /// The causes of the faults, newest first. Only for organisers.
        reasons: Vec<String>;
        /// The kind of the newest fault, such as `system` or `rules`. Only for organisers.
        kind: Option<String> = non_empty(message.kind);
    }
}

forward! {
    pages
    ListSetAsideMatches { tournament } => list_set_aside(v1::ListSetAsideRequest { tournament }).matches;
    ListTokens {} => list_tokens(v1::ListTokensRequest::default()).tokens;
}

resource! {
    /// A running edition.
    RunningEdition(running: (String, v1::Edition)) {
        /// The tournament's name.
        tournament: String = running.0;
        /// The edition.
        edition: Edition = running.1.into();
    }
}

impl Handler for GetQueue {
    async fn handle(self, context: &RequestContext) -> Result<Page<RunningEdition>, Problem> {
        let items = context.service.running_editions(context.caller()).await?;
        Ok(context.page(items, self.offset, self.limit))
    }
}

resource! {
    /// A worker.
    Worker(row: workers::Worker) {
        /// Its name.
        worker: String = row.name;
        /// The isolation level of its sandbox.
        sandbox: String;
        /// The version of its program.
        build: String;
        /// The number of matches it can play at the same time; 0 if it is not connected.
        slots: i32;
        /// When it was last seen.
        #[schemars(extend("format" = "date-time"))]
        seen_at: Option<String> = rfc3339(row.seen_at);
    }
}

impl Handler for ListWorkers {
    async fn handle(self, context: &RequestContext) -> Result<Page<Worker>, Problem> {
        let items = context.service.known_workers(context.caller()).await?;
        Ok(context.page(items, self.offset, self.limit))
    }
}

resource! {
    /// An entry of the audit log.
    AuditEntry(row: audit_log::Change) {
        /// The time of the change.
        #[schemars(extend("format" = "date-time"))]
        at: Option<String> = rfc3339(row.at);
        /// The id of the token used; null if the coordinator itself made the change.
        token: Option<i32>;
        /// The action.
        action: String;
        /// The object of the action.
        subject: String;
        /// Further details.
        detail: Option<Value>;
    }
}

impl Handler for ListAuditEntries {
    async fn handle(self, context: &RequestContext) -> Result<Page<AuditEntry>, Problem> {
        let items = context.service.latest_changes(context.caller()).await?;
        Ok(context.page(items, self.offset, self.limit))
    }
}

resource! {
    /// A token.
    Token(message: v1::Token) {
        /// Its id.
        id: i32;
        /// Its role: `admin`, `organiser`, `player` or `worker`.
        role: String;
        /// The name of its owner.
        name: String;
        /// Whether it was revoked.
        revoked: bool;
        /// With which the names of its bots begin; null if it is not a player's.
        handle: Option<String> = non_empty(message.handle);
    }
}

resource! {
    /// The results of a player in tricks against the house.
    TricksRecord(row: tricks_http::PlayerRecord) {
        /// The player's name.
        player: String = row.name;
        /// The best result in a session.
        best: i64 = row.best.into();
        /// The number of tables in that session.
        best_tables: i64 = row.best_tables.into();
        /// The sum of the results of all sessions.
        total: i64;
        /// Finished sessions.
        sessions: i64;
        /// Sessions that earned a victory token.
        victories: i64;
        /// When the last session ended.
        #[schemars(extend("format" = "date-time"))]
        last_at: Option<String> = rfc3339(row.last_at);
    }
}

parameters! {
    [
        /// The results of all players in tricks over HTTP, best first.
        ListTricksRecords
    ] {}
    page of "players";
}

impl Endpoint for ListTricksRecords {
    const PATH: &'static str = "/api/v1/tricks";
    const TAG: &'static str = "tricks over HTTP";
    type Response = Page<TricksRecord>;
}

impl Handler for ListTricksRecords {
    async fn handle(self, context: &RequestContext) -> Result<Page<TricksRecord>, Problem> {
        let items = context.service.tricks_records().await?;
        Ok(context.page(items, self.offset, self.limit))
    }
}
