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
use crate::output::{Columns, Output, moment, moment_json};

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
        let found = self
            .client
            .run(async |server| Ok(server.audit().list_workers(request).await?.into_inner()))?;
        let ListWorkersResponse { workers, differences } = found;
        let mut out = Output::new();
        if self.json {
            for worker in &workers {
                out.json(&object(worker, &differences))?;
            }
            return out.flush();
        }
        out.table(&table(&workers))?;
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
        for AuditDifference { r#match, worker, kind, reason } in &differences {
            out.line(&format!("match {match} of {worker}, {kind}: {reason}"))?;
        }
        out.flush()
    }
}

impl Suspend {
    fn run(self) -> Result<(), Failure> {
        let Self { worker, reason, client } = self;
        let request = SuspendWorkerRequest { worker: worker.clone(), reason };
        client.run(async |server| {
            server.audit().suspend_worker(request).await?;
            Ok(())
        })?;
        let mut out = Output::new();
        out.line(&format!("{worker} is suspended"))?;
        out.line(&format!("its matches count until: arbiter tournament void T --worker {worker}"))?;
        out.flush()
    }
}

impl Reinstate {
    fn run(self) -> Result<(), Failure> {
        let Self { worker, client } = self;
        let request = ReinstateWorkerRequest { worker: worker.clone() };
        client.run(async |server| {
            server.audit().reinstate_worker(request).await?;
            Ok(())
        })?;
        let mut out = Output::new();
        out.line(&format!("{worker} may play again"))?;
        out.flush()
    }
}

fn table(workers: &[AuditedWorker]) -> Columns {
    let header =
        ["worker", "matches", "recounted", "differ", "shadowed", "differ", "clock", "p", ""];
    let mut table = Columns::new(header, &[0, 8]);
    for worker in workers {
        table.push(vec![
            worker.name.clone(),
            worker.matches.to_string(),
            part(worker.recounted, worker.recounted + worker.recounts_waiting),
            (worker.recounts_disagreed + worker.unreadable).to_string(),
            part(worker.shadowed, worker.shadows_chosen),
            worker.shadows_disagreed.to_string(),
            format!("{} / {:.1}", worker.clock_forfeits, worker.clock_forfeits_of_others),
            worker.residual_p.map_or_else(|| "-".to_owned(), residual::shown),
            standing(worker).to_owned(),
        ]);
    }
    table
}

/// So many of so many.
fn part(done: i64, chosen: i64) -> String {
    if done == chosen { done.to_string() } else { format!("{done} of {chosen}") }
}

fn standing(worker: &AuditedWorker) -> &'static str {
    if worker.suspended_at_us != 0 { "suspended" } else { "" }
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
    json!({
        "worker": worker.name,
        "sandbox": worker.sandbox,
        "build": worker.build,
        "slots": worker.slots,
        "seen_at": moment_json(worker.seen_at_us),
        "matches": worker.matches,
        "recounted": worker.recounted,
        "recounts_disagreed": worker.recounts_disagreed,
        "recounts_waiting": worker.recounts_waiting,
        "unreadable": worker.unreadable,
        "without_record": worker.without_record,
        "shadows_chosen": worker.shadows_chosen,
        "shadowed": worker.shadowed,
        "shadows_disagreed": worker.shadows_disagreed,
        "clock_forfeits": worker.clock_forfeits,
        "clock_forfeits_of_others": worker.clock_forfeits_of_others,
        "residual_p": worker.residual_p,
        "suspended": suspended,
        "differences": differences.collect::<Vec<_>>(),
    })
}
