//! What an organiser does with a tournament: start an edition, cancel, close, check, retry.

use arbiter_proto::ids::MatchId;
use arbiter_proto::v1::{
    CancelTournamentRequest, CheckEditionRequest, CheckEditionResponse, CloseTournamentRequest,
    Edition, RetryQuarantinedRequest, StartEditionRequest,
};
use clap::Args;
use serde_json::{Value, json};

use super::beacon::beacon_line;
use super::list::{edition_json, plan, tournament_json};
use crate::cli::client::{Client, TournamentArgs};
use crate::failure::Failure;
use crate::output::{Output, filled, hex, matches, say};

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
    which: TournamentArgs,
}

impl Start {
    pub(super) fn run(self) -> Result<(), Failure> {
        let TournamentArgs { tournament, answer } = self.which;
        let request = StartEditionRequest { tournament: tournament.clone(), fresh: self.fresh };
        let edition = answer.client.ask(request)?;
        let Edition { number, state, matches: planned, open_ended, .. } = &edition;
        let more = if *open_ended { ", and more as they follow from results" } else { "" };
        let planned = matches(*planned);
        let plan = plan(&edition);
        let text = format!("edition {number} of {tournament} is {state}: {planned}{more}{plan}");
        answer.print(|| edition_json(&edition), |out| out.line(&text))
    }
}

/// Give a tournament up, and the edition that runs.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  arbiter tournament cancel finals")]
pub(super) struct Cancel {
    #[command(flatten)]
    which: TournamentArgs,
}

impl Cancel {
    pub(super) fn run(self) -> Result<(), Failure> {
        let TournamentArgs { tournament, answer } = self.which;
        let found = answer.client.ask(CancelTournamentRequest { tournament })?;
        let text = format!("{} is {}", found.name, found.state);
        answer.print(|| tournament_json(&found), |out| out.line(&text))
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
    which: TournamentArgs,
}

impl Close {
    pub(super) fn run(self) -> Result<(), Failure> {
        let TournamentArgs { tournament, answer } = self.which;
        let found = answer.client.ask(CloseTournamentRequest { tournament })?;
        let (seed, hash) = (hex(&found.seed), hex(&found.seed_hash));
        let beacon = beacon_line(&found);
        let (name, state) = (&found.name, &found.state);
        let text = format!("{name} is {state}; its seed was {seed} (hash {hash})");
        answer.print(
            || tournament_json(&found),
            |out| {
                out.line(&text)?;
                out.line(&beacon)
            },
        )
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
    which: TournamentArgs,
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
        let TournamentArgs { tournament, answer } = self.which;
        let (edition, records) = (self.edition, self.records);
        let found = answer.client.ask(CheckEditionRequest { tournament, edition, records })?;
        answer.print(|| check_json(&found), |out| show_check(out, &found))?;
        let cause = match found.differences.len() {
            0 if found.seed_differences.is_empty() => return Ok(()),
            0 => "what was planned or played does not follow from the published seed".to_owned(),
            1 => "the standings of 1 bot are wrong".to_owned(),
            more => format!("the standings of {more} bots are wrong"),
        };
        Err(Failure::Negative(cause))
    }
}

fn check_json(found: &CheckEditionResponse) -> Value {
    json!({
        "edition": (found.edition > 0).then_some(found.edition),
        "matches": found.matches,
        "differences": found.differences,
        "derived": found.derived,
        "not_derived": filled(&found.not_derived),
        "records": found.records,
        "seed_differences": found.seed_differences,
    })
}

fn show_check(out: &mut Output, found: &CheckEditionResponse) -> Result<(), Failure> {
    let (differences, seeds) = (&found.differences, &found.seed_differences);
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
        out.line(&derived(found))?;
    }
    match filled(&found.not_derived) {
        Some(reason) => out.line(&format!("not derived: {reason}")),
        None => Ok(()),
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
        self.client.ask(RetryQuarantinedRequest { r#match: self.id.to_string() })?;
        say(&format!("match {} may be leased again", self.id))
    }
}
