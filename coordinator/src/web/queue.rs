//! Workers and queue: what is played, what waits, what failed.

use arbiter_proto::v1::tournament_service_server::TournamentService as _;
use arbiter_proto::v1::{Edition, GetTournamentRequest, ListAsideRequest, ListTournamentsRequest};
use axum::extract::State;
use maud::{Markup, html};
use time::OffsetDateTime;

use super::error::WebError;
use super::session::Session;
use super::{actions, page, tournament};
use crate::db::workers::{self, Worker};
use crate::rpc::{Shared, database};

pub(super) async fn show(
    State(shared): State<Shared>,
    session: Session,
) -> Result<Markup, WebError> {
    let running = running(&shared, &session).await?;
    let mut aside = Vec::new();
    for (tournament, _) in &running {
        let asked = session.ask(ListAsideRequest { tournament: tournament.clone() });
        aside.extend(shared.list_aside(asked).await?.into_inner().aside);
    }
    let organiser = actions::is_organiser(&shared, &session).await;
    let known = workers::list(&shared.pool).await.map_err(database)?;
    let body = html! {
        h1 { "Workers and queue" }
        @if running.is_empty() { p { "Nothing is being played." } }
        @else { (page::wide(&queue(&running))) }
        (tournament::set_aside(&aside))
        h2 { "Workers" }
        @if organiser { (page::wide(&machines(&known, (shared.clock)()))) }
        @else { p { (known.len()) " workers are known; organisers see which." } }
    };
    Ok(page::page("Workers and queue", &session, &body))
}

/// The editions that are played, with the names of their tournaments.
pub(super) async fn running(
    shared: &Shared,
    session: &Session,
) -> Result<Vec<(String, Edition)>, WebError> {
    let asked = session.ask(ListTournamentsRequest {});
    let listed = shared.list_tournaments(asked).await?.into_inner().tournaments;
    let mut running = Vec::new();
    for found in listed.into_iter().filter(|found| found.state == "open") {
        let asked = session.ask(GetTournamentRequest { tournament: found.name.clone() });
        let found = shared.get_tournament(asked).await?.into_inner();
        let editions = found.editions.into_iter().filter(|edition| edition.state == "running");
        running.extend(editions.map(|edition| (found.name.clone(), edition)));
    }
    Ok(running)
}

fn queue(running: &[(String, Edition)]) -> Markup {
    html! {
        table {
            thead { tr { th { "Tournament" } th { "Edition" } th { "Counted" } th { "Matches by state" } } }
            tbody {
                @for (tournament, edition) in running {
                    tr {
                        td { a href={ "/t/" (tournament) } { (tournament) } }
                        td.number { (edition.number) }
                        td { (page::progress(edition.counted, edition.matches, edition.growing)) }
                        td { @for lot in &edition.lots { span.lot { (lot.state) " " b { (lot.matches) } } " " } }
                    }
                }
            }
        }
    }
}

fn machines(known: &[Worker], now: OffsetDateTime) -> Markup {
    html! {
        table {
            thead { tr { th { "Worker" } th { "Sandbox" } th { "Build" } th { "Last hello" } } }
            tbody {
                @for worker in known {
                    tr {
                        td { (worker.name) }
                        td { (worker.sandbox) }
                        td { (worker.build) }
                        td { ((now - worker.seen_at).whole_minutes().max(0)) " min ago" }
                    }
                }
            }
        }
    }
}
