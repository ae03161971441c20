//! `arbiter tournament collusion T`: bots that score more when a certain other bot is there.

use arbiter_proto::v1::{CollusionPair, FindCollusionRequest, FindCollusionResponse};
use clap::Args;
use serde_json::{Value, json};

use crate::cli::client::Client;
use crate::failure::Failure;
use crate::output::{Columns, Output};

/// Look for bots that score more when a certain other bot sits at their table: for organisers, in
/// games with tables of three seats and more.
#[derive(Debug, Args)]
#[command(
    after_help = "For each ordered pair: tables with both; the bot's mean score with the partner \
and without; by how
much more the bot (gains) and the partner (partner) score together than strengths and seats predict;
the p-value of a permutation test; and the q-value, the least share of false discoveries at which
the pair would be flagged. Pairs with q of at most 0.05 are flagged: evidence for a look at the
records, not proof. docs/tournaments.md says what is tested.

Examples:
  arbiter tournament collusion finals
  arbiter tournament collusion finals --edition 3 --limit 1000 --json"
)]
pub(super) struct FindCollusion {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// The edition; by default the official one, or the newest if there is none.
    #[arg(long, value_name = "E")]
    edition: Option<i32>,
    /// Pairs at most, those with the least p-values first.
    #[arg(long, value_name = "N", default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Print one JSON object a line: the edition first, then the pairs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

impl FindCollusion {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Self { tournament, edition, limit, json, client } = self;
        let request = FindCollusionRequest { tournament, edition, limit };
        let found = client.run(async |server| {
            Ok(server.tournaments().find_collusion(request).await?.into_inner())
        })?;
        let mut out = Output::new();
        if json {
            out.json(&summary_json(&found))?;
            found.pairs.iter().try_for_each(|pair| out.json(&pair_json(pair)))?;
        } else {
            print(&mut out, &found)?;
        }
        out.flush()
    }
}

fn print(out: &mut Output, found: &FindCollusionResponse) -> Result<(), Failure> {
    let FindCollusionResponse { edition, tables, tested, flagged, claim, pairs, .. } = found;
    out.line(&format!(
        "edition {edition}: {tables} tables, {tested} ordered pairs tested, {flagged} flagged"
    ))?;
    let header = ["bot", "partner", "tables", "with", "without", "gains", "partner", "p", "q", ""];
    let mut table = Columns::new(header, &[0, 1, 9]);
    for pair in pairs {
        table.push(vec![
            pair.bot.clone(),
            pair.partner.clone(),
            pair.together.to_string(),
            format!("{:.2}", pair.mean_with),
            format!("{:.2}", pair.mean_without),
            format!("{:+.2}", pair.difference),
            format!("{:+.2}", pair.partner_difference),
            format!("{:.2e}", pair.p),
            format!("{:.2e}", pair.q),
            if pair.flagged { "flagged".to_owned() } else { String::new() },
        ]);
    }
    out.table(&table)?;
    out.line(claim)
}

fn summary_json(found: &FindCollusionResponse) -> Value {
    json!({
        "edition": found.edition,
        "tables": found.tables,
        "tested": found.tested,
        "flagged": found.flagged,
        "false_discoveries": found.false_discoveries,
        "claim": found.claim,
    })
}

fn pair_json(pair: &CollusionPair) -> Value {
    json!({
        "bot": pair.bot,
        "partner": pair.partner,
        "together": pair.together,
        "mean_with": pair.mean_with,
        "mean_without": pair.mean_without,
        "difference": pair.difference,
        "partner_difference": pair.partner_difference,
        "p": pair.p,
        "q": pair.q,
        "flagged": pair.flagged,
    })
}
