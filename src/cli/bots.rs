//! `arbiter bots T` and `arbiter log T BOT`: the bots of a tournament, and the results of one.

use std::path::PathBuf;

use arbiter_games::Micros;
use arbiter_proto::state_words::version_state;
use arbiter_proto::v1::{
    Bot, Evidence, GetBotLogRequest, GetBotLogResponse, InvitedPlayer, ListBotsRequest,
    ListInvitedRequest, LogEntry, ReinstateBotRequest, RetryTrialRequest, Version,
    WithdrawBotRequest,
};
use clap::Args;
use serde_json::{Value, json};

use super::bot_download::{self, BotDownload};
use super::client::Client;
use super::trial_output;
use crate::failure::Failure;
use crate::output::{
    Columns, eprint_line, hex, millis, moment, moment_json, non_empty, print, print_line,
    printable, score_heading,
};

/// List the bots of a tournament, or withdraw, reinstate or retry one.
///
/// The list is in the order of first submission and shows the newest version of each bot that
/// entered, and its owner or "(house)".
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter bots finals
  arbiter bots finals --json
  arbiter bots finals --invited
  arbiter bots finals --withdraw rascal
  arbiter bots finals --reinstate rascal
  arbiter bots finals --retry rascal")]
pub(super) struct Bots {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// Withdraw this bot from future editions.
    #[arg(long, value_name = "BOT", conflicts_with = "json")]
    withdraw: Option<String>,
    /// Reinstate this suspended bot (for organisers).
    #[arg(long, value_name = "BOT", conflicts_with_all = ["json", "withdraw"])]
    reinstate: Option<String>,
    /// Repeat the trial of this bot's newest version, after faults stopped it (for organisers).
    #[arg(long, value_name = "BOT", conflicts_with_all = ["json", "withdraw", "reinstate"])]
    retry: Option<String>,
    /// List the players with a token who have submitted no bot instead (for organisers).
    #[arg(long, conflicts_with_all = ["withdraw", "reinstate", "retry"])]
    invited: bool,
    /// Print one JSON object per bot or player.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

impl Bots {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Self { tournament, withdraw, reinstate, retry, invited, json, client } = self;
        if invited {
            let players = client.send(ListInvitedRequest { tournament })?.players;
            let header = ["player", "invited", "last seen", "last submission elsewhere"];
            let table = Columns::new(header, &[0, 1, 2, 3]);
            return print(|out| out.list(json, &players, player_json, table, player_row));
        }
        if let Some(bot) = withdraw {
            let request = WithdrawBotRequest { tournament: tournament.clone(), bot };
            let bot = client.send(request)?.bot;
            return print_line(&format!("{bot} was withdrawn from {tournament}"));
        }
        if let Some(bot) = reinstate {
            let request = ReinstateBotRequest { tournament: tournament.clone(), bot };
            let bot = client.send(request)?.bot;
            return print_line(&format!("{bot} was reinstated in {tournament}"));
        }
        if let Some(bot) = retry {
            let status = client.send(RetryTrialRequest { tournament, bot, number: 0 })?;
            let bot = status.version.unwrap_or_default().bot;
            return print_line(&format!("the trial of {bot} will be repeated"));
        }
        let bots = client.send(ListBotsRequest { tournament })?.bots;
        let header = ["bot", "owner", "version", "digest", "submitted", ""];
        let table = Columns::new(header, &[0, 1, 3, 4, 5]);
        print(|out| out.list(json, &bots, bot_json, table, bot_row))
    }
}

/// Number of hex digits of a digest in tables.
const DIGITS: usize = 12;

fn bot_row(bot: &Bot) -> Vec<String> {
    let [number, digest, submitted] = match &bot.newest {
        Some(Version { number, digest, submitted_at_us, .. }) => {
            let digest = hex(digest).chars().take(DIGITS).collect();
            [number.to_string(), digest, moment(*submitted_at_us)]
        }
        None => ["-"; 3].map(str::to_owned),
    };
    let owner = non_empty(&bot.owner).unwrap_or("(house)").to_owned();
    let pending = bot.pending.as_ref().map(trial_output::describe);
    let notes: Vec<_> = exclusion(bot).into_iter().chain(pending).collect();
    vec![bot.name.clone(), owner, number, digest, submitted, notes.join("; ")]
}

/// The times of a player, oldest step first: invited, last seen, last submission elsewhere.
fn times(player: &InvitedPlayer) -> [i64; 3] {
    [player.invited_at_us, player.last_used_at_us, player.last_submitted_at_us]
}

fn player_row(player: &InvitedPlayer) -> Vec<String> {
    let time = |micros| if micros == 0 { "never".to_owned() } else { moment(micros) };
    [player.name.clone()].into_iter().chain(times(player).map(time)).collect()
}

fn player_json(player: &InvitedPlayer) -> Value {
    let time = |micros| if micros == 0 { Value::Null } else { moment_json(micros) };
    let [invited, seen, submitted] = times(player).map(time);
    json!({"player": player.name, "invited": invited, "seen": seen, "submitted": submitted})
}

/// Why a bot does not take part, as text; `None` if it takes part.
fn exclusion(bot: &Bot) -> Option<String> {
    match bot {
        Bot { withdrawn: true, .. } => Some("withdrawn".to_owned()),
        Bot { suspended: true, suspended_reason: reason, .. } if reason.is_empty() => {
            Some("suspended".to_owned())
        }
        Bot { suspended: true, suspended_reason: reason, .. } => {
            Some(format!("suspended: {reason}"))
        }
        _ => None,
    }
}

fn bot_json(bot: &Bot) -> Value {
    let version = bot.newest.as_ref();
    let pending = bot.pending.as_ref().map(|version| {
        json!({
            "version": version.number,
            "state": version_state(&version.state),
            "reason": non_empty(&version.reason),
            "digest": hex(&version.digest),
            "submitted_at": moment_json(version.submitted_at_us),
        })
    });
    json!({
        "bot": bot.name,
        "owner": non_empty(&bot.owner),
        "house": bot.owner.is_empty(),
        "state": non_empty(version_state(&bot.state)),
        "created_at": (bot.created_at_us != 0).then(|| moment_json(bot.created_at_us)),
        "owned_by_caller": bot.owned_by_caller,
        "withdrawn": bot.withdrawn,
        "suspended": bot.suspended,
        "reason": non_empty(&bot.suspended_reason),
        "version": version.map(|version| version.number),
        "digest": version.map(|version| hex(&version.digest)),
        "submitted_at": version.map(|version| moment_json(version.submitted_at_us)),
        "pending": pending,
    })
}

/// Show a bot's trial and its matches, newest first, with the reasons for forfeits.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter log finals mybot
  arbiter log finals mybot --trial
  arbiter log finals mybot --trial --version 3 --json
  arbiter log finals mybot --forfeits --json
  arbiter log finals mybot --download mybot-log --all
  arbiter match finals/1207 --record -")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(super) struct Log {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// The bot.
    bot: String,
    /// Maximum number of matches.
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Only the forfeited ones of these matches.
    #[arg(long)]
    forfeits: bool,
    /// Only the trial of the newest version, with the whole build log.
    #[arg(long, conflicts_with_all = ["limit", "forfeits"])]
    trial: bool,
    /// Show the trial of this version instead of the newest.
    #[arg(long, value_name = "N", requires = "trial", default_value_t = 0)]
    version: i32,
    /// Write the records of the bot's matches, its trials and its forfeits into this folder.
    /// Records that are there already are kept.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["limit", "forfeits", "trial", "json"])]
    download: Option<PathBuf>,
    /// Download all matches instead of the newest 1000.
    #[arg(long, requires = "download")]
    all: bool,
    /// Print one JSON object per match.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

impl Log {
    pub(super) fn run(self) -> Result<(), Failure> {
        if let Some(folder) = &self.download {
            let Self { tournament, bot, all, .. } = &self;
            let download = BotDownload { tournament, bot, folder, all: *all };
            let counts = self.client.run(async |server| download.run(&server).await)?;
            bot_download::report(folder, counts);
            return Ok(());
        }
        self.show()
    }

    fn show(self) -> Result<(), Failure> {
        let Self { tournament, bot, limit, forfeits, trial: trial_only, version, .. } = self;
        let Self { json, client, .. } = self;
        let (status, log) = client.run(async |server| {
            let status = trial_output::get(&server, &tournament, &bot, version).await?;
            let log = if trial_only {
                GetBotLogResponse::default()
            } else {
                let tournament = tournament.clone();
                server
                    .send(GetBotLogRequest { tournament, bot, limit, forfeits, before: 0 })
                    .await?
            };
            Ok((status, log))
        })?;
        if trial_only && json {
            return print(|out| out.json(&trial_output::status_json(&status)));
        }
        if trial_only {
            return print(|out| trial_output::show(out, &tournament, &status, true));
        }
        if !log.suspended_reason.is_empty() {
            let remedy = "submit a better version, or ask an organiser to reinstate it";
            eprint_line(&printable(&format!("suspended: {}; {remedy}", log.suspended_reason)));
        }
        let is_frozen = !log.freeze_notice.is_empty();
        if is_frozen {
            let notice = &log.freeze_notice;
            let text = format!("leaderboards are {notice}; scores of later matches are hidden");
            eprint_line(&printable(&text));
        }
        let mut entries = log.entries;
        entries.retain(|entry| !forfeits || !entry.forfeit.is_empty());
        let score = score_heading(&log.columns);
        let header = ["match", "seat", "bots", &score, "forfeit", "why"];
        let table = Columns::new(header, &[0, 2, 3, 4, 5]);
        let is_pending = status.version.as_ref().is_some_and(|new| new.state != "entered");
        print(|out| {
            if !json && status.tried && is_pending {
                trial_output::show(out, &tournament, &status, false)?;
                out.line("")?;
            }
            out.list(json, &entries, entry_json, table, |entry| entry_row(entry, is_frozen))
        })
    }
}

/// A row of the log. While leaderboards are frozen, a match without a score has a hidden one.
fn entry_row(entry: &LogEntry, is_frozen: bool) -> Vec<String> {
    let numbers: Vec<_> = entry.score.iter().map(i64::to_string).collect();
    let score =
        if is_frozen && numbers.is_empty() { "hidden".to_owned() } else { numbers.join(" ") };
    let forfeit = non_empty(&entry.forfeit).unwrap_or("-").to_owned();
    let seat = entry.seat.to_string();
    let bots = entry.bots.join(" ");
    let why = entry.evidence.as_ref().map(evidence_text).unwrap_or_default();
    vec![entry.r#match.clone(), seat, bots, score, forfeit, why]
}

/// Why a seat forfeited, as text.
pub(super) fn evidence_text(evidence: &Evidence) -> String {
    let Evidence { detail, wall_us, cpu_us } = evidence;
    let time_text = |micros: &i64| millis(Micros(*micros));
    format!("{detail} (took {}, CPU {})", time_text(wall_us), time_text(cpu_us))
}

/// The evidence of a forfeit or bad reply as JSON; null if there is none.
pub(super) fn evidence_json(evidence: Option<&Evidence>) -> Value {
    evidence.map_or(Value::Null, |Evidence { detail, wall_us, cpu_us }| {
        json!({"detail": detail, "wall_us": wall_us, "cpu_us": cpu_us})
    })
}

fn entry_json(entry: &LogEntry) -> Value {
    json!({
        "match": entry.r#match,
        "seat": entry.seat,
        "seats": entry.bots,
        "score": entry.score,
        "forfeit": non_empty(&entry.forfeit),
        "evidence": evidence_json(entry.evidence.as_ref()),
    })
}
