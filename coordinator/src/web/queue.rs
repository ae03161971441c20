//! The page "Queue and workers": running editions, matches set aside, and connected workers.

use arbiter_proto::v1::Edition;
use maud::{Markup, html};
use time::OffsetDateTime;

use super::data_links::{DataLink, data_links};
use super::error::WebError;
use super::session::Session;
use super::tournament_links::TournamentLinks;
use super::{layout, organise};
use crate::db::lease_details::{LeaseDetails, LeasedWork};
use crate::db::workers::Worker;
use crate::service::WorkersOverview;

/// The title of the page.
pub(super) const TITLE: &str = "Queue and workers";
/// Its path.
pub(super) const PATH: &str = "/queue";

pub(super) async fn show(session: Session) -> Result<Markup, WebError> {
    let running = session.service.running_editions(&session.caller).await?;
    let aside = session.service.list_all_aside(&session.caller).await?;
    let workers = session.service.workers_overview(&session.caller).await?;
    let WorkersOverview { known, connected, slots, .. } = workers;
    let organiser = session.caller.is_organiser();
    let now = session.service.now();
    let body = html! {
        @if running.is_empty() { p { "No edition is running." } }
        @else { (running_table(&running, now)) }
        @for (tournament, aside) in &aside {
            (organise::set_aside(aside, organiser.then_some((&session, tournament))))
        }
        h2 { "Workers" }
        p {
            (layout::count(connected, "worker", "workers")) " connected ("
            (layout::count(slots, "slot", "slots")) ")."
        }
        @if organiser {
            (worker_table(&workers, now))
            p { a href="/workers" { "Audit of workers" } }
        }
        @else { p { (layout::count(known, "known worker", "known workers")) ". Organisers see the list." } }
        (data_links("Data of the queue", &[DataLink::Json("queue".to_owned())]))
    };
    Ok(layout::page(TITLE, &session, &body))
}

fn running_table(running: &[(String, Edition)], now: OffsetDateTime) -> Markup {
    let heads = ["Tournament", "Edition", "Progress", "Speed", "Matches by state"];
    let row = |(tournament, edition): &(String, Edition)| {
        html! {
            td { a href={ "/t/" (tournament) } { (tournament) } }
            td.number { (edition.number) }
            td { (layout::edition_progress(edition)) }
            td {
                @if edition.eta_us.is_some() { (layout::estimate(edition, now)) }
                @else { "no worker is connected" }
            }
            td { (layout::lot_counts(edition)) }
        }
    };
    layout::table("Running editions", "queue", &heads, running.iter().map(row))
}

fn worker_table(overview: &WorkersOverview, now: OffsetDateTime) -> Markup {
    let WorkersOverview { workers, connected_workers, suspended, held, .. } = overview;
    let heads = ["Worker", "Playing", "Slots", "Last seen", "Sandbox", "Build"];
    let row = |worker: &Worker| {
        let is_suspended = suspended.contains(&worker.id);
        let leases: Vec<_> = held.iter().filter(|held| held.worker == worker.id).collect();
        html! {
            th scope="row" { (worker.name) }
            td {
                @if is_suspended { "suspended" }
                @else if leases.is_empty() {
                    @if connected_workers.contains(&worker.id) { "idle" } @else { "not connected" }
                }
                @if !leases.is_empty() { ul.plain { @for lease in leases { li { (lease_line(lease)) } } } }
            }
            td.number { (worker.slots) }
            td { (layout::format_seconds((now - worker.seen_at).whole_seconds().max(0))) " ago" }
            td { (sandbox(&worker.sandbox)) }
            td { (worker.build) }
        }
    };
    layout::table("Workers", "workers", &heads, workers.iter().map(row))
}

/// The sandbox of a worker as the worker describes it, as a cell of the column "Sandbox".
fn sandbox(description: &str) -> String {
    let level = description.strip_prefix("sandbox level ").unwrap_or(description);
    level.replace("this program", "the worker")
}

/// The matches or the trial of a lease.
fn lease_line(lease: &LeaseDetails) -> Markup {
    let tournament = &lease.tournament;
    html! {
        a href={ "/t/" (tournament) } { (tournament) } ": "
        @match &lease.work {
            LeasedWork::Matches(first, 1) => (layout::match_link(&first.to_string())),
            LeasedWork::Matches(first, count) => {
                (count) " matches from " (layout::match_link(&first.to_string()))
            }
            LeasedWork::Trial(bot, version) => { "trial of " (TournamentLinks::with_owners(tournament).bot(bot)) " " (version) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_is_described_as_that_of_the_worker() {
        let bare = "sandbox level D: bots run as the user who started this program; play only \
                    trusted programs";
        let shown = "D: bots run as the user who started the worker; play only trusted programs";
        assert_eq!(sandbox(bare), shown);
        assert_eq!(sandbox("sandbox level A: everything is enforced"), "A: everything is enforced");
    }
}
