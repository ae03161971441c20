//! The About page of a tournament: its description, its settings in words, its editions, and what
//! proves that it is fair: the seed and the certificate.

use arbiter_proto::v1::{Edition, GetTournamentRequest, Tournament};
use axum::extract::Path;
use maud::{Markup, html};
use serde_json::Value;

use super::data_links::{DataLink, data_links};
use super::error::WebError;
use super::session::Session;
use super::settings_in_words::topics;
use super::tournament_page::{Tab, TournamentPage};
use super::{layout, markdown, rehearsal};
use crate::tournament::file::readable_settings;

/// The page.
pub(super) async fn show(
    session: Session,
    Path(tournament): Path<String>,
) -> Result<Markup, WebError> {
    let request = GetTournamentRequest { tournament: tournament.clone(), edition: None };
    let details = session.service.get_tournament(&session.caller, request).await?;
    let file = session.service.tournament_file(&tournament).await?;
    let is_frozen = !details.freeze_notice.is_empty() && !session.caller.is_organiser();
    let body = html! {
        @if !details.description.is_empty() { article.guide { (markdown::render(&details.description, "about-")) } }
        p { "Created " (layout::timestamp(details.created_at_us)) ". In commands its name is " code { (details.name) } "." }
        h2 { "Settings" }
        dl.topics { @for (topic, text) in topics(&file) { dt { (topic) } dd { (text) } } }
        details {
            summary { "All settings, as in the tournament file" }
            (settings(&details))
        }
        h2 { "Editions" }
        p { (rehearsal::what_editions_are(&details, is_frozen)) }
        (editions(&details))
        (rehearsal::list(&details))
        h2 { "Seed and schedule" }
        p { "All randomness follows from the seed. Its hash was published first, so the seed cannot be chosen later." }
        (randomness(&details))
        p {
            a href={ "/t/" (details.name) "/schedule" } { "Schedule" }
            ": all matches that are planned, and how balanced they are."
        }
        (data_links("Data of this tournament", &[DataLink::Json(format!("tournaments/{tournament}"))]))
    };
    Ok(TournamentPage::new(&tournament, Tab::About).render(&session, &body).await)
}

fn editions(tournament: &Tournament) -> Markup {
    if tournament.editions.is_empty() {
        return html! { p { "There are no editions yet." } };
    }
    let mut heads = vec!["Edition", "State", "Counted matches", "Planned matches"];
    let has_plans = tournament.editions.iter().any(|edition| !edition.plan.is_empty());
    if has_plans {
        heads.push("Plan");
    }
    let row = |edition: &Edition| {
        html! {
            td { a href={ "/t/" (tournament.name) "/ranking?edition=" (edition.number) } { (edition.number) } }
            td { (edition.state) @if edition.official { ", " strong.official { "official" } } }
            td.number { (edition.counted) }
            td.number { (edition.matches) @if edition.open_ended { "+" } }
            @if has_plans { td { (edition.plan) } }
        }
    };
    layout::table("Editions", "editions", &heads, tournament.editions.iter().map(row))
}

/// The seed, its hash and the public beacon.
pub(super) fn randomness(tournament: &Tournament) -> Markup {
    html! {
        dl {
            dt { "Seed hash" } dd { code.hash { (layout::hex(&tournament.seed_hash)) } }
            dt { "Seed" }
            dd {
                @if tournament.seed.is_empty() { "published when the tournament is closed" }
                @else { code.hash { (layout::hex(&tournament.seed)) } }
            }
            (beacon(tournament))
        }
    }
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

/// The settings as a table of keys and values.
pub(super) fn settings(tournament: &Tournament) -> Markup {
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
