//! What organisers and operators look at: the server, its queue and workers, what was set aside,
//! who did what.

#![expect(clippy::struct_field_names, reason = "they are the names that are sent")]

use arbiter_proto::v1;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::paging::{Limit, Page};
use super::problem::Problem;
use super::question::{Asker, Question};
use super::tournaments::Edition;
use super::values::written;
use crate::access::Role;
use crate::db::{audit, tricks_http, workers};

/// What this server is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AskServer {}

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

impl Question for AskServer {
    const PATH: &'static str = "/api/v1/server";
    const ABOUT: &'static str = "operation";
    type Answer = Server;

    async fn answer(self, asker: &Asker) -> Result<Server, Problem> {
        let games = asker.service.games().iter().map(ToString::to_string).collect();
        Ok(Server { version: env!("CARGO_PKG_VERSION"), api: "v1", games })
    }
}

/// Matches that were set aside after too many faults, with the causes for organisers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListAside {
    /// The tournament's name.
    tournament: String,
    /// Matches to leave out at the top.
    #[serde(default)]
    offset: u32,
    /// Matches on a page.
    #[serde(default)]
    limit: Limit,
}

answer! {
    /// A match that was set aside.
    Aside(found: v1::Aside) {
        /// The match, as EDITION/NUMBER.
        r#match: String;
        /// Why its attempts failed, the newest first: for organisers.
        reasons: Vec<String>;
    }
}

impl Question for ListAside {
    const PATH: &'static str = "/api/v1/tournaments/{tournament}/aside";
    const ABOUT: &'static str = "operation";
    type Answer = Page<Aside>;

    async fn answer(self, asker: &Asker) -> Result<Page<Aside>, Problem> {
        let Self { tournament, offset, limit } = self;
        let asked = v1::ListAsideRequest { tournament };
        let found = asker.service.list_aside(asker.caller(), asked).await?.aside;
        Ok(Page::cut(found.into_iter().map(Aside::from), &asker.uri, offset, limit))
    }
}

/// The editions that are played, with their lots by state.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetQueue {
    /// Editions to leave out at the top.
    #[serde(default)]
    offset: u32,
    /// Editions on a page.
    #[serde(default)]
    limit: Limit,
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

impl Question for GetQueue {
    const PATH: &'static str = "/api/v1/queue";
    const ABOUT: &'static str = "operation";
    type Answer = Page<Playing>;

    async fn answer(self, asker: &Asker) -> Result<Page<Playing>, Problem> {
        let found = asker.service.running_editions(asker.caller()).await?;
        Ok(Page::cut(found.into_iter().map(Playing::from), &asker.uri, self.offset, self.limit))
    }
}

/// Workers that have ever said hello, those heard of last first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListWorkers {
    /// Workers to leave out at the top.
    #[serde(default)]
    offset: u32,
    /// Workers on a page.
    #[serde(default)]
    limit: Limit,
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

impl Question for ListWorkers {
    const PATH: &'static str = "/api/v1/workers";
    const ABOUT: &'static str = "operation";
    const ROLE: Option<Role> = Some(Role::Organiser);
    type Answer = Page<Worker>;

    async fn answer(self, asker: &Asker) -> Result<Page<Worker>, Problem> {
        let found = asker.service.known_workers(asker.caller()).await?;
        Ok(Page::cut(found.into_iter().map(Worker::from), &asker.uri, self.offset, self.limit))
    }
}

/// Who changed what, the newest first: the last thousand changes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListAudit {
    /// Changes to leave out at the top.
    #[serde(default)]
    offset: u32,
    /// Changes on a page.
    #[serde(default)]
    limit: Limit,
}

answer! {
    /// A change.
    Change(found: audit::Change) {
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

impl Question for ListAudit {
    const PATH: &'static str = "/api/v1/audit";
    const ABOUT: &'static str = "operation";
    const ROLE: Option<Role> = Some(Role::Organiser);
    type Answer = Page<Change>;

    async fn answer(self, asker: &Asker) -> Result<Page<Change>, Problem> {
        let found = asker.service.latest_changes(asker.caller()).await?;
        Ok(Page::cut(found.into_iter().map(Change::from), &asker.uri, self.offset, self.limit))
    }
}

/// All tokens, the oldest first, without what makes them tokens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListTokens {
    /// Tokens to leave out at the top.
    #[serde(default)]
    offset: u32,
    /// Tokens on a page.
    #[serde(default)]
    limit: Limit,
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

impl Question for ListTokens {
    const PATH: &'static str = "/api/v1/tokens";
    const ABOUT: &'static str = "operation";
    const ROLE: Option<Role> = Some(Role::Admin);
    type Answer = Page<Token>;

    async fn answer(self, asker: &Asker) -> Result<Page<Token>, Problem> {
        let asked = v1::ListTokensRequest {};
        let found = asker.service.list_tokens(asker.caller(), asked).await?.tokens;
        Ok(Page::cut(found.into_iter().map(Token::from), &asker.uri, self.offset, self.limit))
    }
}

/// Everybody's records in tricks over HTTP, the best first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListTricks {
    /// Players to leave out at the top.
    #[serde(default)]
    offset: u32,
    /// Players on a page.
    #[serde(default)]
    limit: Limit,
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

impl Question for ListTricks {
    const PATH: &'static str = "/api/v1/tricks";
    const ABOUT: &'static str = "tricks over HTTP";
    type Answer = Page<TricksRecord>;

    async fn answer(self, asker: &Asker) -> Result<Page<TricksRecord>, Problem> {
        let found = asker.service.tricks_records().await?;
        Ok(Page::cut(
            found.into_iter().map(TricksRecord::from),
            &asker.uri,
            self.offset,
            self.limit,
        ))
    }
}
