//! Bots, versions, trials, and the logs of bots.

#![expect(clippy::struct_field_names, reason = "JSON field names")]

use arbiter_proto::state_words::version_state;
use arbiter_proto::v1;
use serde_json::Value;

use super::endpoint::{Handler, RequestContext};
use super::endpoints::{GetBot, GetLog, GetTrial, ListBots, ListVersions};
use super::format::{hex_hash, non_empty, rfc3339_from_micros};
use super::problem::Problem;
use super::resource::all;

resource! {
    /// A bot.
    Bot(message: v1::Bot) {
        /// Its name.
        bot: String = message.name;
        /// Its owner's name; null for a house bot.
        owner: Option<String> = non_empty(message.owner.clone());
        /// Whether it is a house bot.
        house: bool = message.owner.is_empty();
        /// Whether the caller owns it.
        owned_by_caller: bool;
        /// Whether it was withdrawn.
        withdrawn: bool;
        /// Whether it is suspended because it forfeited too often or caused faults. Submit a new
        /// version to enter again.
        suspended: bool = message.suspended;
        /// Why it is suspended. Only for its owner and organisers.
        reason: Option<String> = non_empty(message.suspended_reason);
        /// Its newest version that entered the tournament.
        newest: Option<Version> = message.newest.map(Version::from);
        /// Its newest version, if that has not entered yet.
        pending: Option<Version> = message.pending.map(Version::from);
        /// When its first version was submitted.
        #[schemars(extend("format" = "date-time"))]
        created_at: Option<String> = rfc3339_from_micros(message.created_at_us);
        /// `withdrawn`, `suspended`, `entered` if a version entered, otherwise the state of its
        /// newest version.
        state: String = version_state(&message.state).to_owned();
    }
}

resource! {
    /// A version.
    Version(message: v1::Version) {
        /// Its number, from 1.
        version: i32 = message.number;
        /// The BLAKE3 hash of its bundle.
        digest: Option<String> = hex_hash(&message.digest);
        /// When it was submitted.
        #[schemars(extend("format" = "date-time"))]
        submitted_at: Option<String> = rfc3339_from_micros(message.submitted_at_us);
        /// `waiting for its trial`, `trial running`, `entered`, `trial failed`, or
        /// `trial set aside` (it had too many infrastructure faults).
        state: String = version_state(&message.state).to_owned();
        /// Why the trial failed or was set aside. Only for its owner and organisers.
        reason: Option<String> = non_empty(message.reason);
        /// In which edition it plays. Only in trials; null if it plays in none.
        forecast: Option<EntryForecast> = message.forecast.map(EntryForecast::from);
    }
}

resource! {
    /// In which edition a version plays, and when.
    EntryForecast(message: v1::EntryForecast) {
        /// The number of the newest edition with the version, or of the next edition.
        edition: i32;
        /// `planning`, `running` or `complete` for an edition that exists. For the next edition:
        /// `due` if the time at which it opens is known, `next` if not, `manual` if an organiser
        /// opens it, or `short` if more bots must enter first.
        state: String = message.state.clone();
        /// Whether the version must pass its trial first.
        after_trial: bool;
        /// When a `due` edition opens.
        #[schemars(extend("format" = "date-time"))]
        opens_at: Option<String> = (message.state == "due").then(|| rfc3339_from_micros(message.at_us)).flatten();
        /// When a `running` edition will be complete at the present rate.
        #[schemars(extend("format" = "date-time"))]
        complete_at: Option<String> = (message.state == "running" && message.at_us > 0).then(|| rfc3339_from_micros(message.at_us)).flatten();
        /// The page that shows the edition.
        page: String = message.path;
    }
}

forward! {
    pages
    ListBots { tournament } => list_bots(v1::ListBotsRequest { tournament }).bots;
    ListVersions { tournament, bot } => get_bot(v1::GetBotRequest { tournament, bot }).versions;
}

impl Handler for GetBot {
    async fn handle(self, context: &RequestContext) -> Result<Bot, Problem> {
        let request = v1::GetBotRequest { tournament: self.tournament, bot: self.bot };
        let response = context.service.get_bot(context.caller(), request).await?;
        Ok(response.bot.unwrap_or_default().into())
    }
}

resource! {
    /// The trial of a version.
    Trial(message: v1::TrialStatus) {
        /// The version.
        version: Option<Version> = message.version.map(Version::from);
        /// Whether the version has a trial. Versions of house bots, and versions in tournaments
        /// without trials, enter at once.
        tried: bool;
        /// The number of trials before this one in the queue.
        ahead: i64;
        /// The evidence of the failure, line by line.
        evidence: Vec<String> = message.evidence.lines().map(str::to_owned).collect();
        /// The end of the build log.
        build_log: String = message.log;
        /// Problems that are not errors.
        warnings: Vec<String>;
        /// The measurements by name.
        measurements: Option<Value> = serde_json::from_str(&message.measurements).ok();
    }
}

resource! {
    /// The log of a bot.
    BotLog(message: v1::GetBotLogResponse) {
        /// Its matches, newest first.
        items: Vec<LogEntry> = all(message.entries);
        /// Why it is suspended; null if it is not.
        suspended_reason: Option<String> = non_empty(message.suspended_reason);
        /// `frozen since … until the tournament is over` if you do not see scores of matches that
        /// were played since then; otherwise null.
        frozen: Option<String> = non_empty(message.freeze_notice);
    }
}

resource! {
    /// A match of a bot.
    LogEntry(message: v1::LogEntry) {
        /// The match, as TOURNAMENT/NUMBER.
        r#match: String;
        /// The bot's seat, from 1.
        seat: u32;
        /// The bots, seat 1 first.
        seats: Vec<String> = message.bots;
        /// Its score, most significant component first; empty while leaderboards are frozen.
        score: Vec<i64>;
        /// The kind of forfeit: `clock`, `illegal`, `gone` or `flood`; null if there was none.
        forfeit: Option<String> = non_empty(message.forfeit);
        /// Why it forfeited, or its first bad reply.
        evidence: Option<Evidence> = message.evidence.map(Evidence::from);
    }
}

resource! {
    /// Why a seat forfeited, or its first bad reply.
    Evidence(message: v1::Evidence) {
        /// A description.
        detail: String;
        /// The wall-clock time of the reply.
        wall_us: i64;
        /// The processor time of the reply.
        cpu_us: i64;
    }
}

forward! {
    GetTrial { tournament, bot, version } =>
        get_trial(v1::GetTrialRequest { tournament, bot, number: version });
    GetLog { tournament, bot, forfeits, limit } =>
        get_bot_log(v1::GetBotLogRequest { tournament, bot, limit: limit.0, forfeits, before: 0 });
}
