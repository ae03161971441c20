//! Bots, their versions, and what their owners are told of trials and matches.

#![expect(clippy::struct_field_names, reason = "they are the names that are sent")]

use arbiter_proto::v1;
use serde_json::Value;

use super::answer::all;
use super::paging::Page;
use super::problem::Problem;
use super::question::{Answer, Asker};
use super::questions::{GetBot, GetLog, GetTrial, ListBots, ListVersions};
use super::values::{hash, moment, said};

answer! {
    /// A bot.
    Bot(found: v1::Bot) {
        /// Its name.
        bot: String = found.name;
        /// Its owner's name; null for a house bot.
        owner: Option<String> = said(found.owner.clone());
        /// Whether nobody owns it.
        house: bool = found.owner.is_empty();
        /// Whether it is the asker's own.
        own: bool = found.owned_by_caller;
        /// Whether it was withdrawn.
        withdrawn: bool;
        /// Whether it takes no part because it forfeited too much, until a new version is submitted.
        stood_down: bool = found.suspended;
        /// Why: for its owner and for organisers.
        reason: Option<String> = said(found.suspended_reason);
        /// Its newest version that entered.
        newest: Option<Version> = found.newest.map(Version::from);
        /// Its newest version, if that has not entered.
        pending: Option<Version> = found.pending.map(Version::from);
    }
}

answer! {
    /// A version.
    Version(found: v1::Version) {
        /// Its number, from 1.
        version: i32 = found.number;
        /// BLAKE3 of its bundle.
        digest: Option<String> = hash(&found.digest);
        /// When it was submitted.
        #[schemars(extend("format" = "date-time"))]
        submitted_at: Option<String> = moment(found.submitted_at_us);
        /// `entered`, `waiting` for its trial, `trying`, `failed`, or `aside` if it could not be tried.
        state: String;
        /// Why it failed or could not be tried, in one line: for its owner and organisers.
        verdict: Option<String> = said(found.reason);
    }
}

forward! {
    pages
    ListBots { tournament } => list_bots(v1::ListBotsRequest { tournament }).bots;
}

impl Answer for GetBot {
    async fn answer(self, asker: &Asker) -> Result<Bot, Problem> {
        let asked = v1::ListBotsRequest { tournament: self.tournament };
        let mut found = asker.service.list_bots(asker.caller(), asked).await?.bots.into_iter();
        let found = found.find(|bot| bot.name == self.bot);
        found.map(Bot::from).ok_or_else(|| Problem::missing("bot", &self.bot))
    }
}

impl Answer for ListVersions {
    async fn answer(self, asker: &Asker) -> Result<Page<Version>, Problem> {
        let found = asker.service.versions_of(asker.caller(), &self.tournament, &self.bot).await?;
        Ok(asker.page(found, self.offset, self.limit))
    }
}

answer! {
    /// How a trial goes, or went.
    Trial(found: v1::TrialStatus) {
        /// The version.
        version: Option<Version> = found.version.map(Version::from);
        /// Whether there is a trial: versions of house bots, and those of tournaments without trials,
        /// enter at once.
        tried: bool;
        /// How many trials come first.
        ahead: i64;
        /// What shows why it failed, line by line.
        evidence: Vec<String> = found.evidence.lines().map(str::to_owned).collect();
        /// The end of what its build wrote.
        build_log: String = found.log;
        /// What is not forbidden and not as it should be.
        warnings: Vec<String>;
        /// What was measured, by names.
        figures: Option<Value> = serde_json::from_str(&found.measurements).ok();
    }
}

answer! {
    /// What happened to a bot.
    Log(found: v1::GetBotLogResponse) {
        /// Its matches, the newest first.
        items: Vec<LogLine> = all(found.entries);
        /// Why it takes no part any more, if it was stood down.
        stood_down: Option<String> = said(found.suspended_reason);
    }
}

answer! {
    /// A match of a bot.
    LogLine(found: v1::LogEntry) {
        /// The match, as EDITION/NUMBER.
        r#match: String;
        /// Where the bot sat, from 1.
        seat: u32;
        /// The bots, seat 1 first.
        seats: Vec<String> = found.bots;
        /// Its score, the most important number first; empty while leaderboards are frozen.
        score: Vec<i64>;
        /// How it forfeited: `clock`, `illegal`, `gone` or `flood`.
        forfeit: Option<String> = said(found.forfeit);
        /// Why, or what its first bad answer was, if that is known.
        evidence: Option<Evidence> = found.evidence.map(Evidence::from);
    }
}

answer! {
    /// Why a seat forfeited, or what its first bad answer was.
    Evidence(found: v1::Evidence) {
        /// In words.
        detail: String;
        /// How long the answer took on the wall.
        wall_us: i64;
        /// The processor time that it took.
        cpu_us: i64;
    }
}

forward! {
    GetTrial { tournament, bot, version } =>
        get_trial(v1::GetTrialRequest { tournament, bot, number: version });
    GetLog { tournament, bot, forfeits, limit } =>
        get_bot_log(v1::GetBotLogRequest { tournament, bot, limit: limit.0, forfeits });
}
