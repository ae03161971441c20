//! `arbiter tournament start`, `cancel`, `close`, `check` and `retry`.

use arbiter_proto::ids::MatchName;
use arbiter_proto::v1::{
    CancelTournamentRequest, CheckEditionRequest, CheckEditionResponse, CloseTournamentRequest,
    Edition, RetrySetAsideRequest, StartEditionRequest, StartRehearsalRequest, Tournament,
};
use clap::Args;
use serde_json::{Value, json};

use super::beacon::beacon_line;
use super::list::{edition_json, tournament_json};
use crate::cli::client::{Client, TournamentArgs};
use crate::failure::Failure;
use crate::output::{Output, hex, matches, non_empty, print_line};

/// Plan and start an edition with the newest versions of all bots.
#[derive(Debug, Args)]
#[command(
    after_help = "When bots join or leave, earlier tables stay as they are. A final edition can \
    be planned from scratch (--fresh), so that pairs meet as equally as possible.

Examples:
  arbiter tournament start finals && arbiter tournament watch finals
  arbiter tournament start finals --fresh
  arbiter tournament start finals --rehearse"
)]
pub(super) struct Start {
    /// For foursomes and tables: plan from scratch.
    #[arg(long)]
    fresh: bool,
    /// Rehearse: play the schedule once with copies of the current bots, as another tournament
    /// whose leaderboard is never official.
    #[arg(long, conflicts_with = "fresh")]
    rehearse: bool,
    #[command(flatten)]
    target: TournamentArgs,
}

impl Start {
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.rehearse {
            return rehearse(self.target);
        }
        let TournamentArgs { tournament, response } = self.target;
        let request = StartEditionRequest { tournament: tournament.clone(), fresh: self.fresh };
        let edition = response.client.send(request)?;
        let Edition { number, state, matches: planned, open_ended, .. } = &edition;
        let planned = planned_matches(*planned, *open_ended);
        let plan = non_empty(&edition.plan).map(|plan| format!("; {plan}")).unwrap_or_default();
        let text = format!("edition {number} of {tournament} is {state}: {planned}{plan}");
        response.print(|| edition_json(&edition), |out| out.line(&text))
    }
}

/// Starts a rehearsal.
fn rehearse(TournamentArgs { tournament, response }: TournamentArgs) -> Result<(), Failure> {
    let rehearsal = response.client.send(StartRehearsalRequest { tournament })?;
    let planned = rehearsal
        .editions
        .first()
        .map(|edition| planned_matches(edition.matches, edition.open_ended))
        .unwrap_or_default();
    let Tournament { name, rehearsal_of, .. } = &rehearsal;
    let text =
        format!("{name} rehearses {rehearsal_of}: {planned}; its leaderboard is never official");
    response.print(
        || tournament_json(&rehearsal),
        |out| {
            out.line(&text)?;
            out.line(&format!("watch it: arbiter tournament watch {name}"))
        },
    )
}

/// The number of planned matches, and whether results can add more.
fn planned_matches(planned: i64, open_ended: bool) -> String {
    let suffix = if open_ended { ", and more that depend on results" } else { "" };
    format!("{}{suffix}", matches(planned))
}

/// Cancel a tournament and its running edition.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  arbiter tournament cancel finals")]
pub(super) struct Cancel {
    #[command(flatten)]
    target: TournamentArgs,
}

impl Cancel {
    pub(super) fn run(self) -> Result<(), Failure> {
        let TournamentArgs { tournament, response } = self.target;
        let tournament = response.client.send(CancelTournamentRequest { tournament })?;
        let text = format!("{} is {}", tournament.name, tournament.state);
        response.print(|| tournament_json(&tournament), |out| out.line(&text))
    }
}

/// Close a tournament after its last edition and publish its seed.
#[derive(Debug, Args)]
#[command(
    after_help = "The seed lets everyone check its hash (BLAKE3), published at the start, and that \
    all randomness of the tournament derives from it.

Example:
  arbiter tournament close finals"
)]
pub(super) struct Close {
    #[command(flatten)]
    target: TournamentArgs,
}

impl Close {
    pub(super) fn run(self) -> Result<(), Failure> {
        let TournamentArgs { tournament, response } = self.target;
        let tournament = response.client.send(CloseTournamentRequest { tournament })?;
        let seed = hex(&tournament.seed);
        let hash = hex(&tournament.seed_hash);
        let beacon = beacon_line(&tournament);
        let name = &tournament.name;
        let state = &tournament.state;
        let text = format!("{name} is {state}; its seed was {seed} (hash {hash})");
        response.print(
            || tournament_json(&tournament),
            |out| {
                out.line(&text)?;
                out.line(&beacon)
            },
        )
    }
}

/// Recompute the standings of an edition from all reports; exit code 1 if they differ.
#[derive(Debug, Args)]
#[command(
    after_help = "After the tournament is closed, this also recomputes the plan of its official \
    edition from the published seed and the value of its beacon: pairings, seats and the seed of \
    each match. If that is not possible, a line says why.

Examples:
  arbiter tournament check finals
  arbiter tournament check finals --records
  arbiter tournament check finals --edition 3 --json"
)]
pub(super) struct Check {
    #[command(flatten)]
    target: TournamentArgs,
    /// The edition; by default the official one of a closed tournament, the newest of an open one.
    #[arg(long, value_name = "E")]
    edition: Option<i32>,
    /// Also compare the seed in each match's record, after the tournament is closed (for
    /// organisers).
    #[arg(long)]
    records: bool,
}

impl Check {
    pub(super) fn run(self) -> Result<(), Failure> {
        let TournamentArgs { tournament, response } = self.target;
        let edition = self.edition;
        let records = self.records;
        let result = response.client.send(CheckEditionRequest { tournament, edition, records })?;
        response.print(|| check_json(&result), |out| show_check(out, &result))?;
        let cause = match result.differences.len() {
            0 if result.seed_differences.is_empty() => return Ok(()),
            0 => "the plan or the matches do not follow from the published seed".to_owned(),
            1 => "the standings of 1 bot are wrong".to_owned(),
            more => format!("the standings of {more} bots are wrong"),
        };
        Err(Failure::Negative(cause))
    }
}

fn check_json(response: &CheckEditionResponse) -> Value {
    json!({
        "edition": (response.edition > 0).then_some(response.edition),
        "matches": response.matches,
        "differences": response.differences,
        "derived": response.derived,
        "not_derived": non_empty(&response.not_derived),
        "records": response.records,
        "seed_differences": response.seed_differences,
    })
}

fn show_check(out: &mut Output, response: &CheckEditionResponse) -> Result<(), Failure> {
    let differences = &response.differences;
    let seeds = &response.seed_differences;
    differences.iter().chain(seeds).try_for_each(|difference| out.line(difference))?;
    // Coordinators of the previous version do not send the edition.
    let edition = match response.edition {
        0 => String::new(),
        number => format!("edition {number}: "),
    };
    let subject = format!("{edition}{}", matches(response.matches));
    if differences.is_empty() {
        out.line(&format!("{subject} recounted: the standings equal the reports"))?;
    }
    if response.derived > 0 && seeds.is_empty() {
        out.line(&derived(response))?;
    }
    match non_empty(&response.not_derived) {
        Some(reason) => out.line(&format!("not derived: {reason}")),
        None => Ok(()),
    }
}

/// Describes the matches that were derived again and equal the stored plan.
fn derived(response: &CheckEditionResponse) -> String {
    let records = if response.records > 0 {
        format!(", and the seeds in {} records agree too", response.records)
    } else {
        String::new()
    };
    let derived = matches(response.derived);
    format!("{derived} derived again from the published seed: the stored plan agrees{records}")
}

/// Retry a match that was set aside.
#[derive(Debug, Args)]
#[command(after_help = "`arbiter tournament show` lists the matches that were set aside.

Example:
  arbiter tournament retry finals/1207")]
pub(super) struct Retry {
    /// The match, as TOURNAMENT/NUMBER.
    #[arg(value_name = "MATCH")]
    name: MatchName,
    #[command(flatten)]
    client: Client,
}

impl Retry {
    pub(super) fn run(self) -> Result<(), Failure> {
        self.client.send(RetrySetAsideRequest { r#match: self.name.to_string() })?;
        print_line(&format!("match {} will be played again", self.name))
    }
}
