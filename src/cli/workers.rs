//! `arbiter workers`: shows the audit of workers; suspends and reinstates them.

use arbiter_proto::v1::{
    AuditDifference, AuditedWorker, ListWorkersRequest, ListWorkersResponse,
    ReinstateWorkerRequest, SuspendWorkerRequest,
};
use arbiter_ranking::residual;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use crate::failure::Failure;
use crate::output::{Columns, Output, fields, merge, moment, moment_json, print, print_line};

/// Show the audit of workers, suspend or reinstate one (for organisers).
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "The coordinator recounts a share of the reported matches from their records, and \
    has another worker play a share again (docs/tournaments.md, [audit]). A worker whose record \
    does not give the reported result is suspended immediately: it gets no leases and its reports \
    are refused. Its matches count until they are declared void: arbiter tournament void T \
    --worker NAME.

recounted, shadowed: checked matches of the worker, and how many of them differ
clock: forfeits by the clock / the number expected from other workers' matches
p: the probability that an honest worker has such results; - if unknown

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
    /// Only matches of this tournament.
    #[arg(value_name = "T")]
    tournament: Option<String>,
    /// Print one JSON object per worker.
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
    /// The reason, for the audit log.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    client: Client,
}

/// Reinstate a suspended worker; its earlier reports no longer count against it.
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
        let ListWorkersResponse { workers, differences } = self.client.send(request)?;
        let header =
            ["worker", "matches", "recounted", "differ", "shadowed", "differ", "clock", "p", ""];
        let table = Columns::new(header, &[0, 8]);
        print(|out| {
            out.list(self.json, &workers, |worker| object(worker, &differences), table, row)?;
            if self.json { Ok(()) } else { notes(out, &workers, &differences) }
        })
    }
}

/// Prints notes below the table.
fn notes(
    out: &mut Output,
    workers: &[AuditedWorker],
    differences: &[AuditDifference],
) -> Result<(), Failure> {
    let active = workers.iter().filter(|worker| worker.matches > 0);
    if let [only_worker] = &active.collect::<Vec<_>>()[..]
        && only_worker.shadowed < only_worker.shadows_chosen
    {
        let AuditedWorker { shadowed, shadows_chosen, .. } = only_worker;
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
        client.send(SuspendWorkerRequest { worker: worker.clone(), reason })?;
        print(|out| {
            out.line(&format!("{worker} was suspended"))?;
            let void = format!("arbiter tournament void T --worker {worker}");
            out.line(&format!("its matches still count; declare them void with {void}"))
        })
    }
}

impl Reinstate {
    fn run(self) -> Result<(), Failure> {
        self.client.send(ReinstateWorkerRequest { worker: self.worker.clone() })?;
        print_line(&format!("{} was reinstated", self.worker))
    }
}

fn row(worker: &AuditedWorker) -> Vec<String> {
    vec![
        worker.name.clone(),
        worker.matches.to_string(),
        progress(worker.recounted, worker.recounted + worker.recounts_waiting),
        (worker.recounts_disagreed + worker.unreadable).to_string(),
        progress(worker.shadowed, worker.shadows_chosen),
        worker.shadows_disagreed.to_string(),
        format!("{} / {:.1}", worker.clock_forfeits, worker.clock_forfeits_of_others),
        worker.residual_p.map_or_else(|| "-".to_owned(), residual::format_probability),
        if worker.suspended_at_us != 0 { "suspended".to_owned() } else { String::new() },
    ]
}

/// `done of chosen`, or just the number if both are equal.
fn progress(done: i64, chosen: i64) -> String {
    if done == chosen { done.to_string() } else { format!("{done} of {chosen}") }
}

fn object(worker: &AuditedWorker, differences: &[AuditDifference]) -> Value {
    let suspended = (worker.suspended_at_us != 0).then(|| {
        json!({
            "at": moment_json(worker.suspended_at_us),
            "reason": worker.suspended_reason,
        })
    });
    let worker_differences =
        differences.iter().filter(|difference| difference.worker == worker.name);
    let differences = worker_differences.map(|AuditDifference { r#match, kind, reason, .. }| {
        json!({ "match": r#match, "kind": kind, "reason": reason })
    });
    let identity = json!({ "worker": worker.name });
    let machine = fields!(worker; sandbox, build, slots);
    let seen = json!({ "seen_at": moment_json(worker.last_seen_at_us) });
    let counts = fields!(worker; matches, recounted, recounts_disagreed, recounts_waiting,
        unreadable, without_record, shadows_chosen, shadowed, shadows_disagreed, clock_forfeits,
        clock_forfeits_of_others, residual_p);
    let audit = json!({ "suspended": suspended, "differences": differences.collect::<Vec<_>>() });
    [machine, seen, counts, audit].into_iter().fold(identity, merge)
}
