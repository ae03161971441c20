//! Workers and queue: what is played, what waits, what failed.

use arbiter_proto::v1::Edition;
use maud::{Markup, html};
use time::OffsetDateTime;

use super::error::WebError;
use super::session::Session;
use super::{page, tournament};
use crate::db::active_leases::{Held, What};
use crate::db::workers::Worker;
use crate::service::WorkersOverview;

pub(super) async fn show(session: Session) -> Result<Markup, WebError> {
    let running = session.service.running_editions(&session.caller).await?;
    let aside = session.service.list_all_aside(&session.caller).await?;
    let WorkersOverview { known, connected, slots, workers, held } =
        session.service.workers_overview(&session.caller).await?;
    let (organiser, now) = (session.caller.is_organiser(), session.service.now());
    let body = html! {
        @if running.is_empty() { p { "Nothing is being played." } }
        @else { (queue(&running, now)) }
        @for (tournament, aside) in &aside {
            (tournament::set_aside(aside, organiser.then_some((&session, tournament))))
        }
        h2 { "Workers" }
        p { (connected) " workers are connected, with " (slots) " slots." }
        @if organiser {
            (machines(&workers, &held, now))
            p { a href="/workers" { "What the audit of workers found" } }
        }
        @else { p { (known) " workers are known; organisers see which." } }
    };
    Ok(page::page("Workers and queue", &session, &body))
}

fn queue(running: &[(String, Edition)], now: OffsetDateTime) -> Markup {
    let heads = ["Tournament", "Edition", "Counted", "Pace", "Matches by state"];
    let row = |(tournament, edition): &(String, Edition)| {
        html! {
            td { a href={ "/t/" (tournament) } { (tournament) } }
            td.number { (edition.number) }
            td { (page::progress_of(edition)) }
            td {
                @if edition.eta_us.is_some() { (page::forecast(edition, now)) }
                @else { "no worker is connected" }
            }
            td { (page::lots(edition)) }
        }
    };
    page::table("What is being played", "queue", &heads, running.iter().map(row))
}

fn machines(known: &[Worker], held: &[Held], now: OffsetDateTime) -> Markup {
    let heads = ["Worker", "Slots", "Sandbox", "Build", "Last seen", "Plays"];
    let row = |worker: &Worker| {
        html! {
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
    };
    page::table("Workers", "workers", &heads, known.iter().map(row))
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
