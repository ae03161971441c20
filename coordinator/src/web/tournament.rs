//! The list of tournaments, and the page of a tournament with its editions, seed and settings.

use arbiter_proto::v1::{
    Edition, GetTournamentRequest, ListSetAsideRequest, ListTournamentsRequest, SetAsideMatch,
    Tournament, WatchEditionRequest,
};
use arbiter_schedule::Schedule;
use axum::extract::{Path, Query};
use axum::response::IntoResponse;
use maud::{Markup, html};
use serde_json::Value;
use time::OffsetDateTime;

use super::error::WebError;
use super::flash::Flash;
use super::session::Session;
use super::{actions, layout, sse};
use crate::service::SetAsideGroup;
use crate::tournament::file::readable_settings;

/// All tournaments.
pub(super) async fn list(session: Session) -> Result<Markup, WebError> {
    let request = ListTournamentsRequest {};
    let tournaments = session.service.list_tournaments(&session.caller, request).await?.tournaments;
    let organiser = session.caller.is_organiser();
    let heads = ["Tournament", "Game", "State", "Running edition", "Created"];
    let row = |tournament: &Tournament| {
        html! {
            td { a href={ "/t/" (tournament.name) } { (tournament.name) } }
            td { (tournament.game) }
            td { (tournament.state) }
            td { @for edition in &tournament.editions { (layout::edition_progress(edition)) } }
            td { (layout::timestamp(tournament.created_at_us)) }
        }
    };
    let body = html! {
        @if tournaments.is_empty() {
            p { "There are no tournaments yet. An organiser creates one with " code { "arbiter tournament create FILE" } }
        } @else {
            (layout::table("Tournaments", "", &heads, tournaments.iter().map(row)))
        }
        @if organiser { p { a href="/new" { "Create a tournament" } } }
    };
    Ok(layout::page("Tournaments", &session, &body))
}

/// One tournament.
pub(super) async fn show(
    session: Session,
    Path(tournament): Path<String>,
    Query(flash): Query<Flash>,
) -> Result<Markup, WebError> {
    let request = GetTournamentRequest { tournament: tournament.clone(), edition: None };
    let details = session.service.get_tournament(&session.caller, request).await?;
    let request = ListSetAsideRequest { tournament };
    let aside = session.service.list_set_aside(&session.caller, request).await?.matches;
    let organiser = session.caller.is_organiser();
    let is_managed = organiser && details.state == "open";
    let lacks_package =
        if is_managed { session.service.lacks_package(&details.name).await? } else { None };
    let too_few = if is_managed { too_few_bots(&session, &details).await? } else { None };
    let body = html! {
        (flash.message())
        p { (details.game) ", " (details.state) ", created " (layout::timestamp(details.created_at_us)) }
        @if details.state == "open" {
            p {
                a href={ "/t/" (details.name) "/how-to-play" } { "How to play" } " · "
                a href={ "/t/" (details.name) "/submit" } { "Submit a version" }
            }
        }
        h2 { "Editions" }
        (next_edition(&details))
        (editions(&details, session.service.now()))
        (set_aside(&aside, organiser.then_some((&session, &details.name))))
        @if let Some(too_few) = too_few { p { (too_few) } }
        @if organiser { (actions::buttons(&session, &details)) }
        @if let Some(is_missing) = lacks_package {
            (actions::package_form(&session, &details.name, is_missing))
        }
        h2 { "Randomness" }
        dl {
            dt { "Seed hash" } dd { code.hash { (layout::hex(&details.seed_hash)) } }
            dt { "Seed" }
            dd {
                @if details.seed.is_empty() { "published when the tournament is closed" }
                @else { code.hash { (layout::hex(&details.seed)) } }
            }
            (beacon(&details))
        }
        h2 { "Settings" }
        (settings(&details))
    };
    Ok(layout::tournament_page((&details.name, "Tournament"), &details.name, &session, &body))
}

/// The number of bots that a first edition needs, if fewer are entered.
async fn too_few_bots(
    session: &Session,
    tournament: &Tournament,
) -> Result<Option<String>, WebError> {
    if !tournament.editions.is_empty() {
        return Ok(None);
    }
    let Some(schedule) = actions::schedule(tournament) else { return Ok(None) };
    let entered = session.service.entered_bots(&tournament.name).await?;
    let least = schedule.min_bots();
    Ok((entered < least).then(|| {
        let bots = layout::count(least, "bot", "bots");
        format!("An edition needs at least {bots}, and {entered} entered so far.")
    }))
}

/// The public beacon of a tournament and its value.
fn beacon(tournament: &Tournament) -> Markup {
    html! {
        dt { "Public beacon" }
        @match &tournament.beacon {
            None => dd { "none (the organiser chose the seed)" },
            Some(beacon) => {
                dd { (beacon.name) }
                dt { "Beacon value" }
                @if beacon.value.is_empty() {
                    dd { "not yet published. It is entered after entry has closed. Then the final \
                        edition is played again with it." }
                } @else {
                    dd {
                        code.hash { (beacon.value) } ", entered " (layout::timestamp(beacon.set_at_us))
                        "; part of the seed from edition " (beacon.first_edition) " on"
                    }
                }
            }
        }
    }
}

/// Live updates of the newest edition, until it is over.
pub(super) async fn live(
    session: Session,
    Path(tournament): Path<String>,
) -> Result<impl IntoResponse, WebError> {
    let request = WatchEditionRequest { tournament, edition: None };
    let updates = session.service.watch_edition(&session.caller, request).await?;
    let service = session.service.clone();
    Ok(sse::viewer_stream(session, updates, move |edition| edition_state(edition, service.now())))
}

/// When the next edition starts, or why it could not start.
fn next_edition(tournament: &Tournament) -> Markup {
    html! {
        @if !tournament.last_error.is_empty() {
            p.error-message { "The next edition could not be opened: " (tournament.last_error) }
        }
        @if tournament.next_edition_at_us > 0 {
            p { "There are changes. The next edition will open at about " (layout::timestamp(tournament.next_edition_at_us)) "." }
        }
        @if tournament.state == "open" && !tournament.new_bot_outlook.is_empty() {
            p { "With one more bot: " (tournament.new_bot_outlook) "." }
        }
    }
}

fn editions(tournament: &Tournament, now: OffsetDateTime) -> Markup {
    let Some(newest) = tournament.editions.first() else {
        return html! {
            p { "There are no editions yet. An organiser starts one with " code { "arbiter tournament start " (tournament.name) } }
        };
    };
    let runs = newest.state == "running" || newest.state == "planning";
    let live = runs.then(|| format!("/t/{}/live", tournament.name));
    let board =
        |edition: &Edition| format!("/t/{}/ranking?edition={}", tournament.name, edition.number);
    let official = tournament.editions.iter().find(|edition| edition.official);
    let heads = ["Edition", "State", "Counted matches", "Planned matches"];
    let row = |edition: &Edition| {
        html! {
            td { a href=(board(edition)) { (edition.number) } }
            td { (edition.state) @if edition.official { ", " strong { "official" } } }
            td.number { (edition.counted) }
            td.number { (edition.matches) @if edition.open_ended { "+" } }
        }
    };
    html! {
        section data-live=[live] { (edition_state(newest, now)) }
        p {
            @match official {
                Some(official) => {
                    a href=(board(official)) { "Official leaderboard" }
                    " (edition " (official.number) ")."
                }
                None => "There is no official leaderboard because no edition is complete yet.",
            }
            @if runs {
                " The " a href=(board(newest)) { "provisional leaderboard" } " of edition "
                (newest.number) " becomes official when all its matches are counted."
            }
        }
        @if let Some((path, name)) = rounds_page(tournament) {
            p { a href={ "/t/" (tournament.name) (path) } { (name) } }
        }
        (layout::table("Editions", "editions", &heads, tournament.editions.iter().map(row)))
        @for edition in tournament.editions.iter().filter(|edition| !edition.plan.is_empty()) {
            p { "Plan of edition " (edition.number) ": " (edition.plan) "." }
        }
    }
}

/// The page of the rounds, and its name, if the schedule has rounds. It selects the edition: the
/// newest one may be hidden.
fn rounds_page(tournament: &Tournament) -> Option<(&'static str, &'static str)> {
    match actions::schedule(tournament)? {
        Schedule::Knockout(_) => Some(("/bracket", "Bracket")),
        Schedule::Swiss(_) | Schedule::Gauntlet(_) | Schedule::Ladder(_) | Schedule::Stages(_) => {
            Some(("/rounds", "Rounds"))
        }
        Schedule::RoundRobin(_)
        | Schedule::Foursomes(_)
        | Schedule::Tables(_)
        | Schedule::Solo(_)
        | Schedule::Episodes(_) => None,
    }
}

/// The state and the progress of an edition.
fn edition_state(edition: &Edition, now: OffsetDateTime) -> Markup {
    html! {
        p {
            "Edition " (edition.number) ", " (edition.state) ": " (layout::edition_progress(edition))
            @if edition.eta_us.is_some() { ", " (layout::estimate(edition, now)) }
            @if edition.state == "running" && edition.eta_us.is_none() {
                ". No worker is connected; start one with " code { "arbiter worker" }
            }
        }
        @if edition.state == "running" { p.lots { (layout::lot_counts(edition)) } }
    }
}

/// The matches that were set aside and the reasons, with a retry button for organisers.
pub(super) fn set_aside(aside: &[SetAsideMatch], organiser: Option<(&Session, &str)>) -> Markup {
    html! {
        @if !aside.is_empty() {
            h2 { "Matches set aside" }
            p { "These matches had too many faults and need an organiser's attention." }
            ul {
                @for group in SetAsideGroup::all(aside) {
                    li {
                        @for (index, name) in group.matches.iter().enumerate() {
                            @if index > 0 { ", " }
                            (layout::match_link(name))
                        }
                        @if !group.reasons.is_empty() { ": " (group.reasons.join("; ")) }
                        @if group.is_of_rules() { ". Correct the rules and send the package." }
                    }
                }
            }
            @if let Some((session, tournament)) = organiser {
                (actions::button(session, &format!("/t/{tournament}/retry"),
                    "Retry all", None))
            }
        }
    }
}

/// The settings as a table of keys and values.
fn settings(tournament: &Tournament) -> Markup {
    let settings = serde_json::from_str(&tournament.settings).unwrap_or_default();
    let mut flat = Vec::new();
    flatten("", &Value::Object(readable_settings(settings)), &mut flat);
    let table = html! {
        table.settings {
            tbody {
                @for (key, value) in flat {
                    tr {
                        th scope="row" { code { (key) } }
                        td { @if value.contains('\n') { pre { (value) } } @else { (value) } }
                    }
                }
            }
        }
    };
    layout::scrollable("Settings", &table)
}

/// Flattens sections into dotted keys.
fn flatten(prefix: &str, value: &Value, flat: &mut Vec<(String, String)>) {
    match value {
        Value::Object(keys) => {
            for (key, value) in keys {
                let dot = if prefix.is_empty() { "" } else { "." };
                flatten(&format!("{prefix}{dot}{key}"), value, flat);
            }
        }
        Value::String(text) => flat.push((prefix.to_owned(), text.clone())),
        other => flat.push((prefix.to_owned(), other.to_string())),
    }
}
