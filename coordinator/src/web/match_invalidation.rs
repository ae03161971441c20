//! Declaring matches void in a browser: choose the matches, preview the effect, confirm.

use arbiter_proto::v1::{VoidMatchesRequest, VoidMatchesResponse, VoidStanding};
use arbiter_replay::number_text;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::csrf_form::{CsrfForm, WrittenForm};
use super::error::WebError;
use super::session::Session;
use super::tournament_links::TournamentLinks;
use super::tournament_page::{Tab, TournamentPage};
use super::{actions, flash, layout, leaderboard};
use crate::access::Role;

/// The label of the button that declares matches void.
const APPLY: &str = "Declare matches void";

/// The criteria that select matches, as entered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct VoidQuery {
    worker: String,
    from: String,
    to: String,
    matches: String,
}

/// The confirmation form: the criteria, the reason and the confirmation box.
#[derive(Debug, Deserialize)]
pub(super) struct VoidForm {
    #[serde(default)]
    sure: Option<String>,
    #[serde(default)]
    reason: String,
    #[serde(flatten)]
    query: VoidQuery,
}

impl WrittenForm for VoidForm {
    fn is_written(field: &str) -> bool {
        field == "reason"
    }
}

/// The form that selects matches, and the preview if criteria are given.
pub(super) async fn form(
    session: Session,
    Path(tournament): Path<String>,
    Query(query): Query<VoidQuery>,
) -> Result<Response, WebError> {
    session.caller.require(Role::Organiser)?;
    let result = if query == VoidQuery::default() {
        None
    } else {
        Some(send_request(&session, &tournament, &query, None).await)
    };
    render(&session, &tournament, &query, result).await
}

/// Declares matches void.
pub(super) async fn apply(
    Path(tournament): Path<String>,
    CsrfForm { session, form: VoidForm { sure, reason, query } }: CsrfForm<VoidForm>,
) -> Result<Response, WebError> {
    session.caller.require(Role::Organiser)?;
    let action = async {
        actions::check_confirmed(sure.as_deref(), APPLY)?;
        send_request(&session, &tournament, &query, Some(reason)).await
    };
    match action.await {
        Ok(response) => {
            let count = usize::try_from(response.matches).unwrap_or_default();
            Ok(flash::redirect_with_count(&format!("/t/{tournament}"), "void", count)
                .into_response())
        }
        Err(error) => render(&session, &tournament, &query, Some(Err(error))).await,
    }
}

/// Requests a preview; or, with a reason, declares the matches void.
async fn send_request(
    session: &Session,
    tournament: &str,
    query: &VoidQuery,
    reason: Option<String>,
) -> Result<VoidMatchesResponse, WebError> {
    let names = query.matches.split([',', ';']).flat_map(str::split_whitespace);
    let request = VoidMatchesRequest {
        tournament: tournament.to_owned(),
        worker: query.worker.trim().to_owned(),
        from_us: parse_time(&query.from)?,
        to_us: parse_time(&query.to)?,
        matches: names.map(str::to_owned).collect(),
        apply: reason.is_some(),
        reason: reason.unwrap_or_default(),
    };
    Ok(session.service.void_matches(&session.caller, request).await?)
}

/// Parses a time as microseconds since 1970, or `None` if the text is empty. Accepts the format of
/// a browser's date field (taken as UTC) and that of tournament files (RFC 3339).
fn parse_time(text: &str) -> Result<Option<i64>, WebError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let candidates = [text.to_owned(), format!("{text}Z"), format!("{text}:00Z")];
    let time = candidates.iter().find_map(|text| OffsetDateTime::parse(text, &Rfc3339).ok());
    let micros = time.and_then(|time| i64::try_from(time.unix_timestamp_nanos() / 1000).ok());
    micros.map(Some).ok_or_else(|| {
        let message =
            format!("`{text}` is not a time; write a date and a time, such as 2027-03-01T12:00");
        WebError::new(StatusCode::BAD_REQUEST, message)
    })
}

async fn render(
    session: &Session,
    tournament: &str,
    query: &VoidQuery,
    result: Option<Result<VoidMatchesResponse, WebError>>,
) -> Result<Response, WebError> {
    let workers = session.service.known_workers(&session.caller).await?;
    let names: Vec<_> = workers.into_iter().map(|worker| worker.name).collect();
    let error = result.as_ref().and_then(|result| result.as_ref().err());
    let links = TournamentLinks::of(&session.service, tournament).await?;
    let body = html! {
        p {
            "If you do not trust the matches of a machine or of a period, declare them void. They are "
            "played again in a new edition, which keeps all other results. Until that edition is "
            "complete, the official leaderboard does not change."
        }
        (layout::error_message(error.map(WebError::message)))
        (fields(tournament, query, &names))
        @if let Some(Ok(response)) = &result { (preview(session, &links, query, response)) }
    };
    let page = TournamentPage::below(tournament, Tab::Organise, "Declare matches void");
    let page = page.render(session, &body).await;
    Ok((error.map_or(StatusCode::OK, WebError::status), page).into_response())
}

fn fields(tournament: &str, query: &VoidQuery, workers: &[String]) -> Markup {
    let time = |name: &str, label: &str, value: &str| {
        html! {
            p {
                label for=(name) { (label) }
                input id=(name) type="datetime-local" step="1" name=(name) value=(layout::form_value(value));
            }
        }
    };
    html! {
        form.fields method="get" action={ "/t/" (tournament) "/void" } {
            p { "Fill in at least one field. The matches that meet all conditions are selected:" }
            p {
                label for="worker" { "Reported by worker" }
                select #worker name="worker" {
                    option value="" { "any" }
                    @for name in workers { option value=(layout::form_value(name)) selected[*name == query.worker] { (name) } }
                }
            }
            (time("from", "Reported at or after (UTC)", &query.from))
            (time("to", "Reported before (UTC)", &query.to))
            p {
                label for="matches" { "Only these matches" }
                input #matches name="matches" value=(layout::form_value(&query.matches)) aria-describedby="matches-help";
                small #matches-help {
                    "Matches separated by spaces, such as "
                    (tournament) "/1207 " (tournament) "/1208."
                }
            }
            p { button type="submit" { "Preview" } }
        }
    }
}

/// The effect of declaring the matches void, and the confirmation form.
fn preview(
    session: &Session,
    tournament: &TournamentLinks,
    query: &VoidQuery,
    response: &VoidMatchesResponse,
) -> Markup {
    let VoidMatchesResponse { matches, examples, edition, missing, note, .. } = response;
    let has_more = usize::try_from(*matches).is_ok_and(|count| count > examples.len());
    html! {
        section.preview aria-labelledby="preview" {
            h2 #preview { "Preview" }
            p {
                strong { (layout::count(*matches, "match", "matches")) }
                " would be declared void"
                @if !examples.is_empty() { ": " @for name in examples { (layout::match_link(name)) " " } }
                @if has_more { "…" }
            }
            p {
                "Edition " (edition) " counts " (missing) " of them. Its leaderboard with and without them:"
            }
            (comparison_table(tournament, response))
            @if !note.is_empty() { p { (note) } }
            @if *matches == 0 { p { "No match meets these conditions." } }
            @else { (confirmation_form(session, tournament, query)) }
        }
    }
}

fn comparison_table(tournament: &TournamentLinks, response: &VoidMatchesResponse) -> Markup {
    let score = response.columns.join(" ");
    let without = format!("{score} without");
    let heads = ["Rank", "Rank without", "Change", "Bot", &score, &without];
    let row = |VoidStanding { bot, rank, rank_without, score, score_without }: &VoidStanding| {
        // Both are 0 for a house bot without a rank.
        let change = i64::from(*rank) - i64::from(*rank_without);
        html! {
            td.number { (leaderboard::rank(*rank, false)) }
            td.number { (leaderboard::rank(*rank_without, false)) }
            td.number { @if change != 0 { (number_text(format!("{change:+}"))) } }
            td { (tournament.bot(bot)) }
            td.number { (number_text(score.join(" "))) }
            td.number { (number_text(score_without.join(" "))) }
        }
    };
    layout::table(
        "Leaderboard with and without these matches",
        "void",
        &heads,
        response.standings.iter().map(row),
    )
}

fn confirmation_form(session: &Session, tournament: &str, query: &VoidQuery) -> Markup {
    let VoidQuery { worker, from, to, matches } = query;
    let hidden = [("worker", worker), ("from", from), ("to", to), ("matches", matches)];
    html! {
        form.fields method="post" action={ "/t/" (tournament) "/void" } {
            (layout::csrf_field(session))
            @for (name, value) in hidden { input type="hidden" name=(name) value=(layout::form_value(value)); }
            (actions::reason_fields(
                "I confirm: this also applies to such matches that are reported in the meantime.",
                APPLY))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_in_the_formats_of_browsers_and_tournament_files() {
        let read = |text| parse_time(text).map_err(|error| error.message().to_owned());
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("2001-09-09T01:46"), Ok(Some(999_999_960_000_000)));
        assert_eq!(read("2001-09-09T01:46:40"), Ok(Some(1_000_000_000_000_000)));
        assert_eq!(read(" 2001-09-09T03:46:40+02:00 "), Ok(Some(1_000_000_000_000_000)));
        assert!(read("noon").unwrap_err().contains("`noon` is not a time"));
    }
}
