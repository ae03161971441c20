//! Voiding from a browser: which matches, what comes of it, and only then the button.

use arbiter_proto::v1::{VoidMatchesRequest, VoidMatchesResponse, VoidStanding};
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::error::WebError;
use super::posted::Posted;
use super::session::Session;
use super::{actions, done, page};
use crate::access::Role;

/// Which matches, as it is typed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Which {
    worker: String,
    from: String,
    to: String,
    matches: String,
}

/// Which matches, why, and that it is meant.
#[derive(Debug, Deserialize)]
pub(super) struct Apply {
    #[serde(default)]
    sure: Option<String>,
    #[serde(default)]
    reason: String,
    #[serde(flatten)]
    which: Which,
}

/// The page where matches are chosen; and what would come of it, if any are.
pub(super) async fn form(
    session: Session,
    Path(tournament): Path<String>,
    Query(which): Query<Which>,
) -> Result<Response, WebError> {
    session.caller.require(Role::Organiser)?;
    let found = if which == Which::default() {
        None
    } else {
        Some(asked(&session, &tournament, &which, None).await)
    };
    shown(&session, &tournament, &which, found).await
}

/// Declares matches void.
pub(super) async fn apply(
    Path(tournament): Path<String>,
    Posted { session, form: Apply { sure, reason, which } }: Posted<Apply>,
) -> Result<Response, WebError> {
    actions::check_sure(sure.as_deref())?;
    session.caller.require(Role::Organiser)?;
    match asked(&session, &tournament, &which, Some(reason)).await {
        Ok(found) => {
            let count = usize::try_from(found.matches).unwrap_or_default();
            Ok(done::to_counted(&format!("/t/{tournament}"), "void", count).into_response())
        }
        Err(error) => shown(&session, &tournament, &which, Some(Err(error))).await,
    }
}

/// Asks the service what would come of it; or to do it, for a reason.
async fn asked(
    session: &Session,
    tournament: &str,
    which: &Which,
    reason: Option<String>,
) -> Result<VoidMatchesResponse, WebError> {
    let names = which.matches.split([',', ';']).flat_map(str::split_whitespace);
    let request = VoidMatchesRequest {
        tournament: tournament.to_owned(),
        worker: which.worker.trim().to_owned(),
        from_us: moment(&which.from)?,
        to_us: moment(&which.to)?,
        matches: names.map(str::to_owned).collect(),
        apply: reason.is_some(),
        reason: reason.unwrap_or_default(),
    };
    Ok(session.service.void_matches(&session.caller, request).await?)
}

/// Reads a moment as a browser's field has it, which is meant in UTC, or as tournament files do: in
/// microseconds since 1970; nothing if nothing was typed.
fn moment(text: &str) -> Result<Option<i64>, WebError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let forms = [text.to_owned(), format!("{text}Z"), format!("{text}:00Z")];
    let read = forms.iter().find_map(|form| OffsetDateTime::parse(form, &Rfc3339).ok());
    let micros = read.and_then(|time| i64::try_from(time.unix_timestamp_nanos() / 1000).ok());
    micros.map(Some).ok_or_else(|| {
        let why = format!("`{text}` is no time; write a date and a time, as in 2027-03-01T12:00");
        WebError::new(StatusCode::BAD_REQUEST, why)
    })
}

async fn shown(
    session: &Session,
    tournament: &str,
    which: &Which,
    found: Option<Result<VoidMatchesResponse, WebError>>,
) -> Result<Response, WebError> {
    let known = session.service.known_workers(&session.caller).await?;
    let names: Vec<_> = known.into_iter().map(|worker| worker.name).collect();
    let refused = found.as_ref().and_then(|found| found.as_ref().err());
    let title = format!("{tournament}: declare matches void");
    let body = html! {
        p {
            "Matches that were played on a machine or at a time that is not trusted are played again "
            "in a new edition, which takes over all others. Until it is complete the official "
            "leaderboard stays what it is."
        }
        (page::refused(refused.map(WebError::why)))
        (fields(tournament, which, &names))
        @if let Some(Ok(found)) = &found { (preview(session, tournament, which, found)) }
    };
    let page = page::of_tournament((tournament, ""), &title, session, &body);
    Ok((refused.map_or(StatusCode::OK, WebError::status), page).into_response())
}

fn fields(tournament: &str, which: &Which, workers: &[String]) -> Markup {
    let time = |name: &str, label: &str, value: &str| {
        html! {
            p {
                label for=(name) { (label) }
                input id=(name) type="datetime-local" step="1" name=(name) value=(value);
            }
        }
    };
    html! {
        form.fields method="get" action={ "/t/" (tournament) "/void" } {
            p { "Those that fit all that is given:" }
            p {
                label for="worker" { "Reported by the worker" }
                select #worker name="worker" {
                    option value="" { "any" }
                    @for name in workers { option value=(name) selected[*name == which.worker] { (name) } }
                }
            }
            (time("from", "Reported then or later (UTC)", &which.from))
            (time("to", "Reported before (UTC)", &which.to))
            p {
                label for="matches" { "These matches alone" }
                input #matches name="matches" value=(which.matches) aria-describedby="matches-help";
                small #matches-help { "Their names, as in 3/1207 3/1208." }
            }
            p { button type="submit" { "Show what would come of it" } }
        }
    }
}

/// What would come of it, and the button.
fn preview(
    session: &Session,
    tournament: &str,
    which: &Which,
    found: &VoidMatchesResponse,
) -> Markup {
    let VoidMatchesResponse { matches, examples, edition, missing, .. } = found;
    let more = usize::try_from(*matches).is_ok_and(|count| count > examples.len());
    html! {
        section.preview aria-labelledby="preview" {
            h2 #preview { "What would come of it" }
            p {
                strong { (matches) @if *matches == 1 { " match" } @else { " matches" } }
                " would be void"
                @if !examples.is_empty() { ": " @for name in examples { (page::match_link(name)) " " } }
                @if more { "…" }
            }
            p { "Edition " (edition) " rests on " (missing) " of them. Its leaderboard with and without:" }
            (places(tournament, found))
            @if *matches == 0 { p { "There is nothing to declare void." } }
            @else { (button(session, tournament, which)) }
        }
    }
}

fn places(tournament: &str, found: &VoidMatchesResponse) -> Markup {
    let score = found.columns.join(" ");
    let without = format!("{score} without");
    let heads = ["Rank", "Without", "Moves", "Bot", &score, &without];
    let row = |VoidStanding { bot, rank, rank_without, score, score_without }: &VoidStanding| {
        let moved = i64::from(*rank) - i64::from(*rank_without);
        html! {
            td.number { (rank) }
            td.number { (rank_without) }
            td.number { @if moved != 0 { (format!("{moved:+}")) } }
            td { (page::bot(tournament, bot)) }
            td.number { (score.join(" ")) }
            td.number { (score_without.join(" ")) }
        }
    };
    page::table("The leaderboard with and without", "void", &heads, found.standings.iter().map(row))
}

fn button(session: &Session, tournament: &str, which: &Which) -> Markup {
    let Which { worker, from, to, matches } = which;
    let hidden = [("worker", worker), ("from", from), ("to", to), ("matches", matches)];
    html! {
        form.fields method="post" action={ "/t/" (tournament) "/void" } {
            (page::csrf(session))
            @for (name, value) in hidden { input type="hidden" name=(name) value=(value); }
            (actions::reasoned(
                "They are declared void, with those that fit and are reported meanwhile.",
                "Declare them void"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_browsers_and_files_write_them() {
        let read = |text| moment(text).map_err(|error| error.why().to_owned());
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("2001-09-09T01:46"), Ok(Some(999_999_960_000_000)));
        assert_eq!(read("2001-09-09T01:46:40"), Ok(Some(1_000_000_000_000_000)));
        assert_eq!(read(" 2001-09-09T03:46:40+02:00 "), Ok(Some(1_000_000_000_000_000)));
        assert!(read("noon").unwrap_err().contains("`noon` is no time"));
    }
}
