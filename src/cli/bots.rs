//! `arbiter bots T` and `arbiter log T BOT`: who takes part, and how they fare.

use arbiter_proto::v1::{
    Bot, Evidence, GetLogRequest, ListBotsRequest, LogLine, ReinstateBotRequest, Version,
    WithdrawBotRequest,
};
use clap::Args;
use serde_json::{Value, json};

use super::client::Client;
use super::output::{Columns, Output, hex, moment, moment_json, printable};
use super::{Failure, tell};

/// Show the bots of a tournament in the order of their first submission, withdraw one, or reinstate
/// one that was stood down.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter bots finals
  arbiter bots finals --json
  arbiter bots finals --withdraw rascal
  arbiter bots finals --reinstate rascal")]
pub(super) struct Bots {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// Take this bot out of the editions to come.
    #[arg(long, value_name = "BOT", conflicts_with = "json")]
    withdraw: Option<String>,
    /// Let this bot take part again, which was stood down: for organisers.
    #[arg(long, value_name = "BOT", conflicts_with_all = ["json", "withdraw"])]
    reinstate: Option<String>,
    /// Print one JSON object a bot.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

impl Bots {
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut out = Output::new();
        if let Some(bot) = &self.withdraw {
            self.withdraw(bot)?;
            let (tournament, bot) = (&self.tournament, bot);
            out.line(&format!("{bot} takes part in the editions of {tournament} no more"))?;
        } else if let Some(bot) = &self.reinstate {
            self.reinstate(bot)?;
            out.line(&format!("{bot} takes part in the editions of {} again", self.tournament))?;
        } else if self.json {
            for bot in self.list()? {
                out.json(&bot_json(&bot))?;
            }
        } else {
            out.table(&table(&self.list()?))?;
        }
        out.flush()
    }

    fn list(&self) -> Result<Vec<Bot>, Failure> {
        let request = ListBotsRequest { tournament: self.tournament.clone() };
        self.client
            .run(async |server| Ok(server.bots().list_bots(request).await?.into_inner().bots))
    }

    fn withdraw(&self, bot: &str) -> Result<(), Failure> {
        let (tournament, bot) = (self.tournament.clone(), bot.to_owned());
        let request = WithdrawBotRequest { tournament, bot };
        self.client.run(async |server| {
            server.bots().withdraw_bot(request).await?;
            Ok(())
        })
    }
}

impl Bots {
    fn reinstate(&self, bot: &str) -> Result<(), Failure> {
        let (tournament, bot) = (self.tournament.clone(), bot.to_owned());
        let request = ReinstateBotRequest { tournament, bot };
        self.client.run(async |server| {
            server.bots().reinstate_bot(request).await?;
            Ok(())
        })
    }
}

/// How many digits of a digest people are shown.
const DIGITS: usize = 12;

fn table(bots: &[Bot]) -> Columns {
    let header = ["bot", "owner", "version", "digest", "submitted", ""];
    let mut table = Columns::new(header, &[0, 1, 3, 4, 5]);
    for bot in bots {
        let newest = bot.newest.clone().unwrap_or_default();
        let Version { number, digest, submitted_at_us, bot: _ } = newest;
        let digest: String = hex(&digest).chars().take(DIGITS).collect();
        let owner = if bot.owner.is_empty() { "(house)" } else { &bot.owner };
        let cells = [&bot.name, owner, &number.to_string(), &digest, &moment(submitted_at_us)];
        let standing = standing(bot);
        let cells = cells.into_iter().chain([&*standing]);
        table.push(cells.map(str::to_owned).collect());
    }
    table
}

/// Why a bot takes no part, for people; nothing if it does.
fn standing(bot: &Bot) -> String {
    match bot {
        Bot { withdrawn: true, .. } => "withdrawn".to_owned(),
        Bot { stood_down: true, reason, .. } if reason.is_empty() => "stood down".to_owned(),
        Bot { stood_down: true, reason, .. } => format!("stood down: {reason}"),
        _ => String::new(),
    }
}

fn bot_json(bot: &Bot) -> Value {
    let house = bot.owner.is_empty();
    let version = bot.newest.as_ref();
    json!({
        "bot": bot.name,
        "owner": (!house).then_some(&bot.owner),
        "house": house,
        "own": bot.own,
        "withdrawn": bot.withdrawn,
        "stood_down": bot.stood_down,
        "reason": (!bot.reason.is_empty()).then_some(&bot.reason),
        "version": version.map(|version| version.number),
        "digest": version.map(|version| hex(&version.digest)),
        "submitted_at": version.map(|version| moment_json(version.submitted_at_us)),
    })
}

/// Show the matches of a bot and what went wrong in them, the newest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter log finals mybot
  arbiter log finals mybot --forfeits --json
  arbiter match 3/1207 --record -")]
pub(super) struct Log {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// The bot.
    bot: String,
    /// How many matches at most.
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Of these only the matches that the bot forfeited.
    #[arg(long)]
    forfeits: bool,
    /// Print one JSON object a match.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

impl Log {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Self { tournament, bot, limit, forfeits, json, client } = self;
        let request = GetLogRequest { tournament, bot, limit };
        let told =
            client.run(async |server| Ok(server.bots().get_log(request).await?.into_inner()))?;
        if !told.stood_down.is_empty() {
            let again = "submit a better version, or ask an organiser to reinstate it";
            tell(&printable(&format!("stood down: {}; {again}", told.stood_down)));
        }
        let lines = told.lines.iter().filter(|line| !forfeits || !line.forfeit.is_empty());
        let mut out = Output::new();
        let header = ["match", "seat", "bots", "score", "forfeit", "why"];
        let mut table = Columns::new(header, &[0, 2, 3, 4, 5]);
        for line in lines {
            if json {
                out.json(&line_json(line))?;
            } else {
                table.push(row(line));
            }
        }
        if !json {
            out.table(&table)?;
        }
        out.flush()
    }
}

fn row(line: &LogLine) -> Vec<String> {
    let score: Vec<_> = line.score.iter().map(i64::to_string).collect();
    let forfeit = if line.forfeit.is_empty() { "-" } else { &line.forfeit };
    let (seat, bots) = (line.seat.to_string(), line.bots.join(" "));
    let why = line.evidence.as_ref().map(evidence).unwrap_or_default();
    vec![line.r#match.clone(), seat, bots, score.join(" "), forfeit.to_owned(), why]
}

/// Why a seat forfeited, for people.
pub(super) fn evidence(found: &Evidence) -> String {
    let Evidence { detail, wall_us, cpu_us } = found;
    let took = |micros: &i64| format!("{}.{:03} ms", micros / 1000, micros % 1000);
    format!("{detail} (took {}, processor {})", took(wall_us), took(cpu_us))
}

/// The same as JSON.
pub(super) fn evidence_json(found: Option<&Evidence>) -> Value {
    found.map_or(Value::Null, |Evidence { detail, wall_us, cpu_us }| {
        json!({"detail": detail, "wall_us": wall_us, "cpu_us": cpu_us})
    })
}

fn line_json(line: &LogLine) -> Value {
    json!({
        "match": line.r#match,
        "seat": line.seat,
        "seats": line.bots,
        "score": line.score,
        "forfeit": (!line.forfeit.is_empty()).then_some(&line.forfeit),
        "evidence": evidence_json(line.evidence.as_ref()),
    })
}
