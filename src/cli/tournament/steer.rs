//! What an organiser does with a tournament: start an edition, cancel, close, check, retry.

use arbiter_proto::ids::MatchId;
use arbiter_proto::v1::{
    CancelTournamentRequest, CheckEditionRequest, CheckEditionResponse, CloseTournamentRequest,
    Edition, RetryAsideRequest, StartEditionRequest,
};
use clap::Args;
use serde_json::{Value, json};

use super::beacon::beacon_line;
use super::list::{edition_json, plan, tournament_json};
use crate::cli::client::Client;
use crate::failure::Failure;
use crate::output::{Output, hex, matches, printable};

/// Which tournament, and how the answer is printed.
#[derive(Debug, Args)]
struct Which {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

impl Which {
    /// Prints what was done, in one form or the other.
    fn tell(&self, text: &str, object: &Value) -> Result<(), Failure> {
        let mut out = Output::new();
        if self.json {
            out.json(object)?;
        } else {
            out.line(text)?;
        }
        out.flush()
    }
}

/// Plan an edition over the newest versions of all bots, and let it be played.
#[derive(Debug, Args)]
#[command(after_help = "Tables of four that were planned before stay as they are when bots come \
and go; a final run may begin
anew, so that every pair meets exactly equally often.

Examples:
  arbiter tournament start finals && arbiter tournament watch finals
  arbiter tournament start finals --fresh")]
pub(super) struct Start {
    /// Tables of four: plan from the beginning, whatever was planned before.
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    which: Which,
}

impl Start {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Which { tournament, client, .. } = &self.which;
        let request = StartEditionRequest { tournament: tournament.clone(), fresh: self.fresh };
        let edition = client.run(async |server| {
            Ok(server.tournaments().start_edition(request).await?.into_inner())
        })?;
        let Edition { number, state, matches: planned, growing, .. } = &edition;
        let more = if *growing { ", and more as they follow from results" } else { "" };
        let planned = matches(*planned);
        let plan = plan(&edition);
        let text = format!("edition {number} of {tournament} is {state}: {planned}{more}{plan}");
        self.which.tell(&text, &edition_json(&edition))
    }
}

/// Give a tournament up, and the edition that runs.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  arbiter tournament cancel finals")]
pub(super) struct Cancel {
    #[command(flatten)]
    which: Which,
}

impl Cancel {
    pub(super) fn run(self) -> Result<(), Failure> {
        let request = CancelTournamentRequest { tournament: self.which.tournament.clone() };
        let found = self.which.client.run(async |server| {
            Ok(server.tournaments().cancel_tournament(request).await?.into_inner())
        })?;
        let text = format!("{} is {}", found.name, found.state);
        self.which.tell(&text, &tournament_json(&found).into())
    }
}

/// End a tournament whose last edition is over, and show its seed.
#[derive(Debug, Args)]
#[command(after_help = "With the seed everybody can check the hash that was published at the \
beginning (BLAKE3),
and that all chance of the tournament comes from it.

Example:
  arbiter tournament close finals")]
pub(super) struct Close {
    #[command(flatten)]
    which: Which,
}

impl Close {
    pub(super) fn run(self) -> Result<(), Failure> {
        let request = CloseTournamentRequest { tournament: self.which.tournament.clone() };
        let found = self.which.client.run(async |server| {
            Ok(server.tournaments().close_tournament(request).await?.into_inner())
        })?;
        let (seed, hash) = (hex(&found.seed), hex(&found.seed_hash));
        let beacon = beacon_line(&found);
        let (name, state) = (&found.name, &found.state);
        let text = format!("{name} is {state}; its seed was {seed} (hash {hash})\n{beacon}");
        self.which.tell(&text, &tournament_json(&found).into())
    }
}

/// Compute the standings of an edition anew from all reports; exit code 1 if they differ.
#[derive(Debug, Args)]
#[command(
    after_help = "Once the tournament is over, the plan of its official edition is computed anew \
too, from the
seed that is published then and the value of its beacon: who meets whom in which seats, and the seed
of each match. A line says so where that is not possible.

Examples:
  arbiter tournament check finals
  arbiter tournament check finals --records
  arbiter tournament check finals --edition 3 --json"
)]
pub(super) struct Check {
    #[command(flatten)]
    which: Which,
    /// The edition. If it is not given: the official one of a tournament that is over, and the
    /// newest of one that is open.
    #[arg(long, value_name = "E")]
    edition: Option<i32>,
    /// Compare the seed in the record of each match too, once the tournament is over: for
    /// organisers.
    #[arg(long)]
    records: bool,
}

impl Check {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Which { tournament, json, client } = self.which;
        let (edition, records) = (self.edition, self.records);
        let request = CheckEditionRequest { tournament, edition, records };
        let found = client.run(async |server| {
            Ok(server.tournaments().check_edition(request).await?.into_inner())
        })?;
        let differences = &found.differences;
        let seeds = &found.seed_differences;
        let mut out = Output::new();
        if json {
            out.json(&json!({
                "edition": (found.edition > 0).then_some(found.edition),
                "matches": found.matches,
                "differences": differences,
                "derived": found.derived,
                "not_derived": (!found.not_derived.is_empty()).then_some(&found.not_derived),
                "records": found.records,
                "seed_differences": seeds,
            }))?;
        } else {
            differences.iter().chain(seeds).try_for_each(|difference| out.line(difference))?;
            // Coordinators of the version before do not say which edition it was.
            let edition = match found.edition {
                0 => String::new(),
                number => format!("edition {number}: "),
            };
            let added = format!("{edition}{}", matches(found.matches));
            if differences.is_empty() {
                out.line(&format!("{added} added up: the standings are what the reports say"))?;
            }
            if found.derived > 0 && seeds.is_empty() {
                out.line(&derived(&found))?;
            }
            if !found.not_derived.is_empty() {
                out.line(&format!("not derived: {}", printable(&found.not_derived)))?;
            }
        }
        out.flush()?;
        match differences.len() {
            0 if seeds.is_empty() => Ok(()),
            0 => Err(Failure::Negative(
                "what was planned or played does not follow from the published seed".to_owned(),
            )),
            1 => Err(Failure::Negative("the standings of 1 bot are wrong".to_owned())),
            more => Err(Failure::Negative(format!("the standings of {more} bots are wrong"))),
        }
    }
}

/// What was derived again, and found as it is stored.
fn derived(found: &CheckEditionResponse) -> String {
    let records = if found.records > 0 {
        format!(", and so are the seeds in {} records", found.records)
    } else {
        String::new()
    };
    let derived = matches(found.derived);
    format!("{derived} derived again from the published seed: the plan is as stored{records}")
}

/// Give a match that was set aside another chance.
#[derive(Debug, Args)]
#[command(after_help = "Matches that were set aside are listed by `arbiter tournament show`.

Example:
  arbiter tournament retry 3/1207")]
pub(super) struct Retry {
    /// The match, as EDITION/NUMBER.
    #[arg(value_name = "MATCH")]
    id: MatchId,
    #[command(flatten)]
    client: Client,
}

impl Retry {
    pub(super) fn run(self) -> Result<(), Failure> {
        let request = RetryAsideRequest { r#match: self.id.to_string() };
        self.client.run(async |server| {
            server.tournaments().retry_aside(request).await?;
            Ok(())
        })?;
        let mut out = Output::new();
        out.line(&format!("match {} may be leased again", self.id))?;
        out.flush()
    }
}
