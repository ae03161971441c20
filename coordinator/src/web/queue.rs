//! Workers and queue: what is played, what waits, what failed.

use arbiter_proto::v1::tournament_service_server::TournamentService as _;
use arbiter_proto::v1::{Edition, GetTournamentRequest, ListAsideRequest, ListTournamentsRequest};
use axum::extract::State;
use maud::{Markup, html};
use time::OffsetDateTime;

use super::error::WebError;
use super::session::Session;
use super::{actions, page, tournament};
use crate::db::held::{self, Held, What};
use crate::db::workers::{self, Worker};
use crate::rpc::{Shared, database};

pub(super) async fn show(
    State(shared): State<Shared>,
    session: Session,
) -> Result<Markup, WebError> {
    let running = running(&shared, &session).await?;
    let organiser = actions::is_organiser(&shared, &session).await;
    let mut aside = Vec::new();
    for (tournament, _) in &running {
        let asked = session.ask(ListAsideRequest { tournament: tournament.clone() });
        let found = shared.list_aside(asked).await?.into_inner().aside;
        aside.push((tournament, found));
    }
    let known = workers::list(&shared.pool).await.map_err(database)?;
    let now = shared.clock.now();
    // A worker that is connected is seen several times in the time of a lease.
    let here = |worker: &&Worker| worker.slots > 0 && worker.seen_at >= now - shared.terms.lease;
    let connected = known.iter().filter(here);
    let slots: i64 = connected.clone().map(|worker| i64::from(worker.slots)).sum();
    let held = if organiser {
        let leases: Vec<_> = shared.playing.all().into_iter().collect();
        held::of_leases(&shared.pool, &leases).await.map_err(database)?
    } else {
        Vec::new()
    };
    let body = html! {
        h1 { "Workers and queue" }
        @if running.is_empty() { p { "Nothing is being played." } }
        @else { (page::wide("What is being played", &queue(&running, now))) }
        @for (tournament, aside) in &aside {
            (tournament::set_aside(aside, organiser.then_some((&session, tournament))))
        }
        h2 { "Workers" }
        p { (connected.count()) " workers are connected, with " (slots) " slots." }
        @if organiser {
            (page::wide("Workers", &machines(&known, &held, now)))
            p { a href="/workers" { "What the audit of workers found" } }
        }
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

fn queue(running: &[(String, Edition)], now: OffsetDateTime) -> Markup {
    html! {
        table.queue {
            (page::heads(&["Tournament", "Edition", "Counted", "Pace", "Matches by state"]))
            tbody {
                @for (tournament, edition) in running {
                    tr {
                        td { a href={ "/t/" (tournament) } { (tournament) } }
                        td.number { (edition.number) }
                        td { (page::progress_of(edition)) }
                        td {
                            @if edition.eta_us.is_some() { (page::forecast(edition, now)) }
                            @else { "no worker is connected" }
                        }
                        td { (page::lots(edition)) }
                    }
                }
            }
        }
    }
}

fn machines(known: &[Worker], held: &[Held], now: OffsetDateTime) -> Markup {
    html! {
        table.workers {
            (page::heads(&["Worker", "Slots", "Sandbox", "Build", "Last seen", "Plays"]))
            tbody {
                @for worker in known {
                    tr {
                        th scope="row" { (worker.name) }
                        td.number { (worker.slots) }
                        td { (worker.sandbox) }
                        td { (worker.build) }
                        td { (page::lasting((now - worker.seen_at).whole_seconds().max(0))) " ago" }
                        td {
                            ul.plain {
                                @for one in held.iter().filter(|held| held.worker == worker.id) {
                                    li { (doing(one)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What a worker does, as far as this coordinator handed it out.
fn doing(held: &Held) -> Markup {
    let tournament = &held.tournament;
    html! {
        a href={ "/t/" (tournament) } { (tournament) } ": "
        @match &held.what {
            What::Matches(first, 1) => (page::match_link(&first.to_string())),
            What::Matches(first, count) => {
                (count) " matches from " (page::match_link(&first.to_string()))
            }
            What::Trial(bot, version) => { "trial of " (page::bot(tournament, bot)) " " (version) }
        }
    }
}
