//! `arbiter tournament collusion T`: finds bots that score more when a certain bot is at their
//! table.

use arbiter_proto::v1::{CollusionPair, FindCollusionRequest, FindCollusionResponse};
use arbiter_ranking::statistics::text;
use clap::Args;
use serde_json::Value;

use crate::cli::client::Client;
use crate::failure::Failure;
use crate::output::{Columns, fields, print};

/// Find bots that score more when a certain other bot is at their table (for organisers).
#[derive(Debug, Args)]
#[command(after_help = "For games with three seats or more. The columns for each ordered pair:

  tables         tables with both bots
  with, without  the bot's mean score with and without the partner
  gains          how much more the bot scores with the partner than its
                 strength and seats predict
  partner        the same for the partner, at tables with the bot
  p              the p-value of a permutation test
  q              the lowest false discovery rate at which the pair is flagged

Pairs with q of at most 0.05 are flagged. A flag is a reason to look at the records, not proof. \
    docs/tournaments.md describes the test.

Examples:
  arbiter tournament collusion finals
  arbiter tournament collusion finals --edition 3 --limit 1000 --json")]
pub(super) struct FindCollusion {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// The edition; by default the official one, otherwise the newest.
    #[arg(long, value_name = "E")]
    edition: Option<i32>,
    /// Maximum number of pairs, lowest p-values first.
    #[arg(long, value_name = "N", default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Print one JSON object per line: the edition first, then the pairs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

impl FindCollusion {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Self { tournament, edition, limit, json, client } = self;
        let request = FindCollusionRequest { tournament, edition, limit };
        let response = client.send(request)?;
        print(|out| {
            if json {
                out.json(
                    &fields!(response; edition, tables, tested, flagged, false_discoveries, claim),
                )?;
            } else {
                let FindCollusionResponse { edition, tables, tested, flagged, .. } = response;
                let pairs = format!("{tested} ordered pairs tested, {flagged} flagged");
                out.line(&format!("edition {edition}: {tables} tables, {pairs}"))?;
            }
            let header =
                ["bot", "partner", "tables", "with", "without", "gains", "partner", "p", "q", ""];
            let table = Columns::new(header, &[0, 1, 9]);
            out.list(json, &response.pairs, object, table, row)?;
            if json { Ok(()) } else { out.line(&response.claim) }
        })
    }
}

fn row(pair: &CollusionPair) -> Vec<String> {
    vec![
        pair.bot.clone(),
        pair.partner.clone(),
        pair.together.to_string(),
        text::mean(pair.mean_with, None),
        text::mean(pair.mean_without, None),
        text::difference(pair.difference),
        text::difference(pair.partner_difference),
        format!("{:.2e}", pair.p),
        format!("{:.2e}", pair.q),
        if pair.flagged { "flagged".to_owned() } else { String::new() },
    ]
}

fn object(pair: &CollusionPair) -> Value {
    fields!(pair; bot, partner, together, mean_with, mean_without, difference, partner_difference,
        p, q, flagged)
}
