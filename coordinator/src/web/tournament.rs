//! Tournaments: all of them, and one with its settings and editions.

use arbiter_proto::v1::{
    Edition, GetTournamentRequest, ListQuarantinedRequest, ListTournamentsRequest,
    QuarantinedMatch, Tournament, WatchEditionRequest,
};
use axum::extract::{Path, Query};
use axum::response::IntoResponse;
use maud::{Markup, html};
use serde_json::Value;
use time::OffsetDateTime;

use super::done::Done;
use super::error::WebError;
use super::session::Session;
use super::{actions, live, page};

/// All tournaments.
pub(super) async fn list(session: Session) -> Result<Markup, WebError> {
    let asked = ListTournamentsRequest {};
    let tournaments = session.service.list_tournaments(&session.caller, asked).await?.tournaments;
    let organiser = session.caller.is_organiser();
    let heads = ["Tournament", "Game", "State", "Being played", "Made"];
    let row = |found: &Tournament| {
        html! {
            td { a href={ "/t/" (found.name) } { (found.name) } }
            td { (found.game) }
            td { (found.state) }
            td { @for edition in &found.editions { (page::progress_of(edition)) } }
            td { (page::moment(found.created_at_us)) }
        }
    };
    let body = html! {
        @if tournaments.is_empty() {
            p { "There is none yet. An organiser makes one: " code { "arbiter tournament create FILE" } }
        } @else {
            (page::table("Tournaments", "", &heads, tournaments.iter().map(row)))
        }
        @if organiser { p { a href="/new" { "Make a tournament" } } }
    };
    Ok(page::page("Tournaments", &session, &body))
}

/// One tournament.
pub(super) async fn show(
    session: Session,
    Path(tournament): Path<String>,
    Query(done): Query<Done>,
) -> Result<Markup, WebError> {
    let asked = GetTournamentRequest { tournament: tournament.clone() };
    let found = session.service.get_tournament(&session.caller, asked).await?;
    let asked = ListQuarantinedRequest { tournament };
    let aside = session.service.list_quarantined(&session.caller, asked).await?.matches;
    let organiser = session.caller.is_organiser();
    let body = html! {
        (done.note())
        p { (found.game) ", " (found.state) ", made " (page::moment(found.created_at_us)) }
        @if found.state == "open" {
            p { a href={ "/t/" (found.name) "/submit" } { "Submit a version" } }
        }
        h2 { "Editions" }
        (due(&found))
        (editions(&found, session.service.now()))
        (set_aside(&aside, organiser.then_some((&session, &found.name))))
        @if organiser { (actions::buttons(&session, &found)) }
        h2 { "Chance" }
        dl {
            dt { "Hash of the seed" } dd { code.hash { (page::hex(&found.seed_hash)) } }
            dt { "Seed" }
            dd {
                @if found.seed.is_empty() { "shown once the tournament is closed" }
                @else { code.hash { (page::hex(&found.seed)) } }
            }
            (beacon(&found))
        }
        h2 { "Settings" }
        (settings(&found))
    };
    Ok(page::of_tournament((&found.name, "Tournament"), &found.name, &session, &body))
}

/// The public beacon that a tournament names, and its value.
fn beacon(found: &Tournament) -> Markup {
    html! {
        dt { "Public beacon" }
        @match &found.beacon {
            None => dd { "none: the organiser chose the seed" },
            Some(beacon) => {
                dd { (beacon.name) }
                dt { "Value of the beacon" }
                @if beacon.value.is_empty() {
                    dd { "awaited; it is given after entry has closed, and the final edition is \
                        played anew with it" }
                } @else {
                    dd {
                        code.hash { (beacon.value) } ", given " (page::moment(beacon.set_at_us))
                        "; editions from " (beacon.first_edition) " on have the seed keyed with it"
                    }
                }
            }
        }
    }
}

/// The newest edition of a tournament, whenever something changes, until it is over.
pub(super) async fn live(
    session: Session,
    Path(tournament): Path<String>,
) -> Result<impl IntoResponse, WebError> {
    let asked = WatchEditionRequest { tournament, edition: None };
    let states = session.service.watch_edition(&session.caller, asked).await?;
    let service = session.service.clone();
    Ok(live::watched(session, states, move |edition| state(edition, service.now())))
}

/// What is about to happen, and what could not.
fn due(found: &Tournament) -> Markup {
    html! {
        @if !found.last_error.is_empty() {
            p.refused { "No edition could be opened: " (found.last_error) }
        }
        @if found.next_edition_at_us > 0 {
            p { "Something changed: the next edition is opened about " (page::moment(found.next_edition_at_us)) "." }
        }
    }
}

fn editions(found: &Tournament, now: OffsetDateTime) -> Markup {
    let Some(newest) = found.editions.first() else {
        return html! {
            p { "None yet. An organiser starts one: " code { "arbiter tournament start " (found.name) } }
        };
    };
    let runs = newest.state == "running" || newest.state == "planning";
    let live = runs.then(|| format!("/t/{}/live", found.name));
    let board = |edition: &Edition| format!("/t/{}/ranking?edition={}", found.name, edition.number);
    let official = found.editions.iter().find(|edition| edition.official);
    let heads = ["Edition", "State", "Counted", "Matches"];
    let row = |edition: &Edition| {
        html! {
            td { a href=(board(edition)) { (edition.number) } }
            td { (edition.state) @if edition.official { ", " strong { "official" } } }
            td.number { (edition.counted) }
            td.number { (edition.matches) @if edition.open_ended { "+" } }
        }
    };
    html! {
        section data-live=[live] { (state(newest, now)) }
        p {
            @match official {
                Some(official) => {
                    a href=(board(official)) { "The official leaderboard" }
                    " is that of edition " (official.number) "."
                }
                None => "There is no official leaderboard yet: no edition is complete.",
            }
            @if runs {
                " " a href=(board(newest)) { "The provisional one" } " of edition " (newest.number)
                " becomes official when all its matches are counted."
            }
        }
        (page::table("Editions", "editions", &heads, found.editions.iter().map(row)))
    }
}

/// How an edition goes on.
fn state(edition: &Edition, now: OffsetDateTime) -> Markup {
    html! {
        p {
            "Edition " (edition.number) ", " (edition.state) ": " (page::progress_of(edition))
            @if edition.eta_us.is_some() { "; " (page::forecast(edition, now)) }
            @if edition.state == "running" && edition.eta_us.is_none() {
                "; no worker is connected: " code { "arbiter worker" } " starts one"
            }
        }
        @if edition.state == "running" { p.lots { (page::lots(edition)) } }
    }
}

/// Matches that were set aside, with what is told of the causes; and for organisers what can be
/// done.
pub(super) fn set_aside(aside: &[QuarantinedMatch], organiser: Option<(&Session, &str)>) -> Markup {
    html! {
        @if !aside.is_empty() {
            h2 { "Set aside" }
            p { "These matches failed too often through no fault of a bot. An organiser looks at them." }
            ul {
                @for found in aside {
                    li {
                        (page::match_link(&found.r#match))
                        @if let Some(reason) = found.reasons.first() { ": " (reason) }
                    }
                }
            }
            @if let Some((session, tournament)) = organiser {
                (actions::button(session, &format!("/t/{tournament}/retry"),
                    "Let all of them be played again", None))
            }
        }
    }
}

/// The settings, key by key.
fn settings(found: &Tournament) -> Markup {
    let settings: Value = serde_json::from_str(&found.settings).unwrap_or_default();
    let mut flat = Vec::new();
    flatten("", &settings, &mut flat);
    let table = html! {
        table.settings {
            tbody {
                @for (key, value) in flat { tr { th scope="row" { code { (key) } } td { (value) } } }
            }
        }
    };
    page::wide("Settings", &table)
}

/// Sections become keys with dots.
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
