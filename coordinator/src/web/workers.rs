//! What the audit of workers found, for organisers; suspending and reinstating them.

use arbiter_proto::v1::{
    AuditDifference, AuditedWorker, ListWorkersRequest, ReinstateWorkerRequest,
    SuspendWorkerRequest,
};
use arbiter_ranking::residual;
use axum::extract::Query;
use axum::response::Redirect;
use maud::{Markup, html};
use serde::Deserialize;

use super::done::{self, Done};
use super::error::WebError;
use super::posted::Posted;
use super::session::Session;
use super::{actions, page};

/// In which tournament.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Which {
    t: String,
}

/// Which worker, and that it is meant.
#[derive(Debug, Deserialize)]
pub(super) struct Worker {
    name: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    sure: Option<String>,
}

/// The page of all workers.
pub(super) async fn show(
    session: Session,
    Query(which): Query<Which>,
    Query(done): Query<Done>,
) -> Result<Markup, WebError> {
    let asked = ListWorkersRequest { tournament: which.t.clone() };
    let found = session.service.list_workers(&session.caller, asked).await?;
    let title = match which.t.as_str() {
        "" => "Audit of workers".to_owned(),
        name => format!("{name}: audit of workers"),
    };
    let body = html! {
        (done.note())
        p {
            "A part of what workers report is recounted from its records, and a part is played "
            "again by another worker. A worker whose record does not give the result that it "
            "reported is suspended at once. Its matches count until they are declared void."
        }
        @if found.workers.is_empty() { p { "No worker has ever connected." } }
        @else { (table(&found.workers)) }
        @for worker in found.workers.iter().filter(|worker| worker.suspended_at_us != 0) {
            (suspended(&session, worker, &which.t))
        }
        @if !found.differences.is_empty() {
            h2 { "Differences" }
            (differences(&found.differences))
        }
        @if !found.workers.is_empty() { (form(&session, &found.workers)) }
    };
    Ok(page::page(&title, &session, &body))
}

/// Suspends a worker.
pub(super) async fn suspend(
    Posted { session, form: Worker { name, reason, sure } }: Posted<Worker>,
) -> Result<Redirect, WebError> {
    actions::check_sure(sure.as_deref())?;
    let asked = SuspendWorkerRequest { worker: name, reason };
    session.service.suspend_worker(&session.caller, asked).await?;
    Ok(done::to("/workers", "suspend"))
}

/// Reinstates a worker.
pub(super) async fn reinstate(
    Posted { session, form: Worker { name, .. } }: Posted<Worker>,
) -> Result<Redirect, WebError> {
    let asked = ReinstateWorkerRequest { worker: name };
    session.service.reinstate_worker(&session.caller, asked).await?;
    Ok(done::to("/workers", "reinstate-worker"))
}

fn table(workers: &[AuditedWorker]) -> Markup {
    let heads = [
        "Worker",
        "Matches",
        "Recounted",
        "Differ",
        "Played again",
        "Differ",
        "Clock forfeits (of others)",
        "p",
        "Standing",
    ];
    let row = |worker: &AuditedWorker| {
        html! {
            th scope="row" { (worker.name) }
            td.number { (worker.matches) }
            td.number { (part(worker.recounted, worker.recounted + worker.recounts_waiting)) }
            td.number { (worker.recounts_disagreed + worker.unreadable) }
            td.number { (part(worker.shadowed, worker.shadows_chosen)) }
            td.number { (worker.shadows_disagreed) }
            td.number {
                (worker.clock_forfeits)
                " (" (format!("{:.1}", worker.clock_forfeits_of_others)) ")"
            }
            td.number { @if let Some(p) = worker.residual_p { (residual::format_probability(p)) } }
            td { @if worker.suspended_at_us != 0 { "suspended" } }
        }
    };
    page::table("Workers", "audit", &heads, workers.iter().map(row))
}

/// So many of so many.
fn part(done: i64, chosen: i64) -> String {
    if done == chosen { done.to_string() } else { format!("{done} of {chosen}") }
}

/// Why a worker is suspended, and what to do about it.
fn suspended(session: &Session, worker: &AuditedWorker, tournament: &str) -> Markup {
    let AuditedWorker { name, suspended_reason, .. } = worker;
    html! {
        section.suspended {
            h2 { (name) " is suspended" }
            p { (suspended_reason) }
            @if tournament.is_empty() {
                p { "Its matches count until they are declared void, tournament by tournament." }
            } @else {
                form method="get" action={ "/t/" (tournament) "/void" } {
                    input type="hidden" name="worker" value=(name);
                    p { button type="submit" { "Show what declaring its matches void would do" } }
                }
            }
            form.action method="post" action="/workers/reinstate" {
                (page::csrf(session))
                input type="hidden" name="name" value=(name);
                button type="submit" { "Let " (name) " play again" }
            }
        }
    }
}

fn differences(found: &[AuditDifference]) -> Markup {
    let heads = ["Match", "Worker", "Found by", "What differs"];
    let row = |AuditDifference { r#match, worker, kind, reason }: &AuditDifference| {
        html! { td { (page::match_link(r#match)) } td { (worker) } td { (kind) } td { (reason) } }
    };
    page::table("Differences", "differences", &heads, found.iter().map(row))
}

/// The form that suspends a worker.
fn form(session: &Session, workers: &[AuditedWorker]) -> Markup {
    html! {
        h2 { "Suspend a worker" }
        form.fields method="post" action="/workers/suspend" {
            (page::csrf(session))
            p {
                label for="name" { "Worker" }
                select #name name="name" {
                    @for worker in workers.iter().filter(|worker| worker.suspended_at_us == 0) {
                        option value=(worker.name) { (worker.name) }
                    }
                }
            }
            (actions::reasoned("It gets no leases, and its reports are refused.", "Suspend it"))
        }
    }
}
