//! `arbiter bots T` and `arbiter log T BOT`: who takes part, and how they fare.

use arbiter_proto::v1::{
    Bot, GetLogRequest, ListBotsRequest, LogLine, Version, WithdrawBotRequest,
};
use clap::Args;
use serde_json::{Value, json};

use super::Failure;
use super::client::Client;
use super::output::{Columns, Output, hex, moment, moment_json};

/// Show the bots of a tournament in the order of their first submission, or withdraw one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  arbiter bots finals
  arbiter bots finals --json
  arbiter bots finals --withdraw rascal")]
pub(super) struct Bots {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// Take this bot out of the editions to come.
    #[arg(long, value_name = "BOT", conflicts_with = "json")]
    withdraw: Option<String>,
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
        let withdrawn = if bot.withdrawn { "withdrawn" } else { "" };
        let cells = [&bot.name, owner, &number.to_string(), &digest, &moment(submitted_at_us)];
        let cells = cells.into_iter().chain([withdrawn]);
        table.push(cells.map(str::to_owned).collect());
    }
    table
}

fn bot_json(bot: &Bot) -> Value {
    let house = bot.owner.is_empty();
    let version = bot.newest.as_ref();
    json!({
        "bot": bot.name,
        "owner": (!house).then_some(&bot.owner),
        "house": house,
        "withdrawn": bot.withdrawn,
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
        let lines = client
            .run(async |server| Ok(server.bots().get_log(request).await?.into_inner().lines))?;
        let lines = lines.iter().filter(|line| !forfeits || !line.forfeit.is_empty());
        let mut out = Output::new();
        let mut table = Columns::new(["match", "seat", "bots", "score", "forfeit"], &[0, 2, 3, 4]);
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
    vec![line.r#match.clone(), seat, bots, score.join(" "), forfeit.to_owned()]
}

fn line_json(line: &LogLine) -> Value {
    json!({
        "match": line.r#match,
        "seat": line.seat,
        "seats": line.bots,
        "score": line.score,
        "forfeit": (!line.forfeit.is_empty()).then_some(&line.forfeit),
    })
}
