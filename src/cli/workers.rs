//! `arbiter workers`: what was found when a part of what workers reported was looked at again.

use arbiter_proto::v1::{
    AuditDifference, AuditedWorker, ListWorkersRequest, ListWorkersResponse,
    ReinstateWorkerRequest, SuspendWorkerRequest,
};
use arbiter_ranking::residual;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use crate::failure::Failure;
use crate::output::{Columns, Output, fields, merged, moment, moment_json, print, say};

/// Show what the audit of workers found: for organisers. Suspend a worker, or reinstate one.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "A part of what workers report is recounted from its records, and a part is \
played again by another
worker (docs/tournaments.md, [audit]). A worker whose record does not give the result that it
reported is suspended at once: it gets no leases, and its reports are refused. Its matches count
until they are declared void: arbiter tournament void T --worker NAME.

recounted, shadowed: how many of its matches were looked at, and how many of these differ
clock: forfeits by the clock, and how many the other workers' matches had for as many matches
p: how probable such results are for an honest worker; nothing where there is too little to compare

Examples:
  arbiter workers
  arbiter workers finals --json
  arbiter workers suspend attic --reason \"its disk is broken\"
  arbiter workers reinstate attic"
)]
pub(super) struct Workers {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Subcommand)]
enum Command {
    Suspend(Suspend),
    Reinstate(Reinstate),
}

#[derive(Debug, Args)]
struct List {
    /// What they played in this tournament alone.
    #[arg(value_name = "T")]
    tournament: Option<String>,
    /// Print one JSON object a worker.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: Client,
}

/// Suspend a worker: it gets no leases, and its reports are refused.
#[derive(Debug, Args)]
struct Suspend {
    /// The worker.
    #[arg(value_name = "NAME")]
    worker: String,
    /// Why, for the audit log.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    client: Client,
}

/// Let a suspended worker play again; what it reported before is no reason to suspend it once more.
#[derive(Debug, Args)]
struct Reinstate {
    /// The worker.
    #[arg(value_name = "NAME")]
    worker: String,
    #[command(flatten)]
    client: Client,
}

impl Workers {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.command {
            None => self.list.run(),
            Some(Command::Suspend(suspend)) => suspend.run(),
            Some(Command::Reinstate(reinstate)) => reinstate.run(),
        }
    }
}

impl List {
    fn run(self) -> Result<(), Failure> {
        let request = ListWorkersRequest { tournament: self.tournament.unwrap_or_default() };
        let ListWorkersResponse { workers, differences } = self.client.ask(request)?;
        let header =
            ["worker", "matches", "recounted", "differ", "shadowed", "differ", "clock", "p", ""];
        let table = Columns::new(header, &[0, 8]);
        print(|out| {
            out.list(self.json, &workers, |worker| object(worker, &differences), table, row)?;
            if self.json { Ok(()) } else { notes(out, &workers, &differences) }
        })
    }
}

/// What there is to be told beside the table.
fn notes(
    out: &mut Output,
    workers: &[AuditedWorker],
    differences: &[AuditDifference],
) -> Result<(), Failure> {
    let played = workers.iter().filter(|worker| worker.matches > 0);
    if let [only] = &played.collect::<Vec<_>>()[..]
        && only.shadowed < only.shadows_chosen
    {
        let AuditedWorker { shadowed, shadows_chosen, .. } = only;
        out.line(&format!("{shadowed} of {shadows_chosen} shadowed: only one worker"))?;
    }
    for worker in workers.iter().filter(|worker| worker.suspended_at_us != 0) {
        let AuditedWorker { name, suspended_at_us, suspended_reason, .. } = worker;
        let since = moment(*suspended_at_us);
        out.line(&format!("{name} is suspended since {since}: {suspended_reason}"))?;
    }
    for AuditDifference { r#match, worker, kind, reason } in differences {
        out.line(&format!("match {match} of {worker}, {kind}: {reason}"))?;
    }
    Ok(())
}

impl Suspend {
    fn run(self) -> Result<(), Failure> {
        let Self { worker, reason, client } = self;
        client.ask(SuspendWorkerRequest { worker: worker.clone(), reason })?;
        print(|out| {
            out.line(&format!("{worker} is suspended"))?;
            let void = format!("arbiter tournament void T --worker {worker}");
            out.line(&format!("its matches count until: {void}"))
        })
    }
}

impl Reinstate {
    fn run(self) -> Result<(), Failure> {
        self.client.ask(ReinstateWorkerRequest { worker: self.worker.clone() })?;
        say(&format!("{} may play again", self.worker))
    }
}

fn row(worker: &AuditedWorker) -> Vec<String> {
    vec![
        worker.name.clone(),
        worker.matches.to_string(),
        part(worker.recounted, worker.recounted + worker.recounts_waiting),
        (worker.recounts_disagreed + worker.unreadable).to_string(),
        part(worker.shadowed, worker.shadows_chosen),
        worker.shadows_disagreed.to_string(),
        format!("{} / {:.1}", worker.clock_forfeits, worker.clock_forfeits_of_others),
        worker.residual_p.map_or_else(|| "-".to_owned(), residual::format_probability),
        if worker.suspended_at_us != 0 { "suspended".to_owned() } else { String::new() },
    ]
}

/// So many of so many.
fn part(done: i64, chosen: i64) -> String {
    if done == chosen { done.to_string() } else { format!("{done} of {chosen}") }
}

fn object(worker: &AuditedWorker, differences: &[AuditDifference]) -> Value {
    let suspended = (worker.suspended_at_us != 0).then(|| {
        json!({
            "at": moment_json(worker.suspended_at_us),
            "reason": worker.suspended_reason,
        })
    });
    let own = differences.iter().filter(|found| found.worker == worker.name);
    let differences = own
        .map(|found| json!({ "match": found.r#match, "kind": found.kind, "reason": found.reason }));
    let named = json!({ "worker": worker.name });
    let machine = fields!(worker; sandbox, build, slots);
    let seen = json!({ "seen_at": moment_json(worker.last_seen_at_us) });
    let counts = fields!(worker; matches, recounted, recounts_disagreed, recounts_waiting,
        unreadable, without_record, shadows_chosen, shadowed, shadows_disagreed, clock_forfeits,
        clock_forfeits_of_others, residual_p);
    let found = json!({ "suspended": suspended, "differences": differences.collect::<Vec<_>>() });
    [machine, seen, counts, found].into_iter().fold(named, merged)
}
