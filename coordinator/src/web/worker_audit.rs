//! The worker audit page for organisers; suspending and reinstating workers.

use arbiter_proto::v1::{
    AuditDifference, AuditedWorker, ListWorkersRequest, ReinstateWorkerRequest,
    SuspendWorkerRequest,
};
use arbiter_ranking::residual;
use arbiter_replay::number_text;
use axum::extract::Query;
use axum::response::Redirect;
use maud::{Markup, html};
use serde::Deserialize;

use super::csrf_form::{CsrfForm, WrittenForm};
use super::error::WebError;
use super::flash::{self, Flash};
use super::session::Session;
use super::{actions, layout, queue};

/// The query string of the page: a tournament, or all of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AuditQuery {
    t: String,
}

/// The form that suspends or reinstates a worker.
#[derive(Debug, Deserialize)]
pub(super) struct WorkerForm {
    name: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    sure: Option<String>,
}

impl WrittenForm for WorkerForm {
    fn is_written(field: &str) -> bool {
        field == "reason"
    }
}

/// The page.
pub(super) async fn show(
    session: Session,
    Query(query): Query<AuditQuery>,
    Query(flash): Query<Flash>,
) -> Result<Markup, WebError> {
    let request = ListWorkersRequest { tournament: query.t.clone() };
    let response = session.service.list_workers(&session.caller, request).await?;
    let title = match query.t.as_str() {
        "" => "Audit of workers".to_owned(),
        name => format!("{name}: audit of workers"),
    };
    let body = html! {
        (flash.message())
        p {
            "The coordinator verifies a share of the records that workers report, and another worker "
            "plays a share of the matches again. A worker whose record contradicts its reported "
            "result is suspended at once. Its matches still count until they are declared void. "
            "The value p is an upper bound for the probability that the results of an honest worker "
            "differ as much from those of the others by chance."
        }
        @if response.workers.is_empty() { p { "No worker has connected yet." } }
        @else { (table(&response.workers)) }
        @for worker in response.workers.iter().filter(|worker| worker.suspended_at_us != 0) {
            (suspension(&session, worker, &query.t))
        }
        @if !response.differences.is_empty() {
            h2 { "Differences" }
            (differences(&response.differences))
        }
        @if response.workers.iter().any(|worker| worker.suspended_at_us == 0) {
            (suspend_form(&session, &response.workers))
        }
    };
    if query.t.is_empty() {
        let queue_page = (queue::TITLE, queue::PATH.to_owned());
        return Ok(layout::page_below(&[queue_page], &title, &session, &body));
    }
    let heading = session.service.tournament_heading(&query.t).await?;
    let path = format!("/t/{}", heading.name);
    let organise = format!("{path}/organise");
    let parents = [(&heading.title[..], path), ("Organise", organise)];
    Ok(layout::page_below(&parents, &title, &session, &body))
}

/// Suspends a worker.
pub(super) async fn suspend(
    CsrfForm { session, form: WorkerForm { name, reason, sure } }: CsrfForm<WorkerForm>,
) -> Result<Redirect, WebError> {
    actions::check_confirmed(sure.as_deref(), "Suspend worker")?;
    let request = SuspendWorkerRequest { worker: name, reason };
    session.service.suspend_worker(&session.caller, request).await?;
    Ok(flash::redirect("/workers", "suspend"))
}

/// Reinstates a worker.
pub(super) async fn reinstate(
    CsrfForm { session, form: WorkerForm { name, .. } }: CsrfForm<WorkerForm>,
) -> Result<Redirect, WebError> {
    let request = ReinstateWorkerRequest { worker: name };
    session.service.reinstate_worker(&session.caller, request).await?;
    Ok(flash::redirect("/workers", "reinstate-worker"))
}

fn table(workers: &[AuditedWorker]) -> Markup {
    let heads = [
        "Worker",
        "State",
        "Matches",
        "Records verified",
        "Differences in records",
        "Played again",
        "Differences in results",
        "Clock forfeits (expected)",
        "p of results",
    ];
    let row = |worker: &AuditedWorker| {
        html! {
            th scope="row" { (worker.name) }
            td { @if worker.suspended_at_us != 0 { "suspended" } @else { "active" } }
            td.number { (worker.matches) }
            td.number { (part(worker.recounted, worker.recounted + worker.recounts_waiting)) }
            td.number { (worker.recounts_disagreed + worker.unreadable) }
            td.number { (part(worker.shadowed, worker.shadows_chosen)) }
            td.number { (worker.shadows_disagreed) }
            td.number {
                (worker.clock_forfeits)
                " (" (number_text(format!("{:.1}", worker.clock_forfeits_of_others))) ")"
            }
            td.number {
                @if let Some(p) = worker.residual_p { (number_text(residual::format_probability(p))) }
                @else { "–" }
            }
        }
    };
    layout::table("Workers", "audit", &heads, workers.iter().map(row))
}

/// `done`, or `done of chosen` while some are still waiting.
fn part(done: i64, chosen: i64) -> String {
    if done == chosen { done.to_string() } else { format!("{done} of {chosen}") }
}

/// The reason of a suspension, and the actions.
fn suspension(session: &Session, worker: &AuditedWorker, tournament: &str) -> Markup {
    let AuditedWorker { name, suspended_reason, .. } = worker;
    html! {
        section.suspended {
            h2 { (name) " is suspended" }
            p { (suspended_reason) }
            @if tournament.is_empty() {
                p { "Its matches still count. You can declare them void in each tournament." }
            } @else {
                form method="get" action={ "/t/" (tournament) "/void" } {
                    input type="hidden" name="worker" value=(layout::form_value(name));
                    p { button type="submit" { "Preview declaring its matches void" } }
                }
            }
            form.action method="post" action="/workers/reinstate" {
                (layout::csrf_field(session))
                input type="hidden" name="name" value=(layout::form_value(name));
                button type="submit" { "Reinstate " (name) }
            }
        }
    }
}

fn differences(differences: &[AuditDifference]) -> Markup {
    let heads = ["Match", "Worker", "Found by", "Difference"];
    let row = |AuditDifference { r#match, worker, kind, reason }: &AuditDifference| {
        html! { td { (layout::match_link(r#match)) } td { (worker) } td { (kind) } td { (reason) } }
    };
    layout::table("Differences", "differences", &heads, differences.iter().map(row))
}

/// The form that suspends a worker.
fn suspend_form(session: &Session, workers: &[AuditedWorker]) -> Markup {
    html! {
        h2 { "Suspend a worker" }
        form.fields method="post" action="/workers/suspend" {
            (layout::csrf_field(session))
            p {
                label for="name" { "Worker" }
                select #name name="name" {
                    @for worker in workers.iter().filter(|worker| worker.suspended_at_us == 0) {
                        option value=(layout::form_value(&worker.name)) { (worker.name) }
                    }
                }
            }
            (actions::reason_fields(
                "I confirm: in all tournaments, the worker gets no more matches, and its reports are \
                 refused.",
                "Suspend worker"))
        }
    }
}
