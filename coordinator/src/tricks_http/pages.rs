//! Web pages of tricks over HTTP: the leaderboard, and the page of a victory token.

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use maud::{DOCTYPE, Markup, html};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{Mode, TricksServer};
use crate::db::tricks_http::{self, PlayerRecord};
use crate::queue::retry;

/// The content security policy: a browser may only show these pages.
const POLICY: &str =
    "default-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/// The leaderboard.
pub(super) async fn leaderboard_page(State(server): State<TricksServer>) -> Response {
    match retry(|| tricks_http::records(&server.pool)).await {
        Ok(records) => {
            let content = html! {
                @if server.mode == Mode::Test { p { "Test mode: there are no victory tokens." } }
                (leaderboard(&records))
            };
            page(StatusCode::OK, "Tricks against the house", &content)
        }
        Err(error) => failed(&error),
    }
}

/// The page of a victory token: who won, and when.
pub(super) async fn victory(
    State(server): State<TricksServer>,
    Path(token): Path<String>,
) -> Response {
    match server.winner(&token).await {
        Ok(Some((name, victory))) => {
            let content = html! {
                p { b { (name) } " won with a result of " (victory.result) ", " (utc(victory.at)) }
            };
            page(StatusCode::OK, "Victory", &content)
        }
        Ok(None) => {
            let content = html! {
                p {
                    "No victory on this server has this token. Check that the address contains the "
                    "whole token, and that the victory was won on this server."
                }
            };
            page(StatusCode::NOT_FOUND, "Victory token not found", &content)
        }
        Err(error) => failed(&error),
    }
}

fn failed(error: &sqlx::Error) -> Response {
    tracing::warn!(%error, "a page of tricks failed");
    let content = html! { p { "The database does not respond. Try again." } };
    page(StatusCode::SERVICE_UNAVAILABLE, "Temporarily unavailable", &content)
}

fn leaderboard(records: &[PlayerRecord]) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th { "Player" } th { "Best" } th { "Tables" } th { "Mean" }
                    th { "Sessions" } th { "Victories" } th { "Last" }
                }
            }
            tbody {
                @for record in records {
                    tr {
                        td { (record.name) }
                        td { (record.best) } td { (record.best_tables) } td { (mean(record)) }
                        td { (record.sessions) } td { (record.victories) }
                        td { (utc(record.last_at)) }
                    }
                }
            }
        }
        @if records.is_empty() { p { "No finished sessions yet." } }
    }
}

/// The mean result rounded to two decimals.
fn mean(record: &PlayerRecord) -> String {
    let total = i128::from(record.total);
    let sessions = i128::from(record.sessions.max(1));
    let hundredths = (total.abs() * 200 + sessions) / (2 * sessions);
    let sign = if total < 0 && hundredths > 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", hundredths / 100, hundredths % 100)
}

fn utc(time: OffsetDateTime) -> String {
    time.replace_nanosecond(0).unwrap_or(time).format(&Rfc3339).unwrap_or_default()
}

fn page(status: StatusCode, title: &str, content: &Markup) -> Response {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (title) }
            }
            body { main { h1 { (title) } (content) } }
        }
    };
    (status, [(header::CONTENT_SECURITY_POLICY, POLICY)], document).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_rounded() {
        for (total, sessions, content) in [
            (0, 1, "0.00"),
            (1, 3, "0.33"),
            (-2, 3, "-0.67"),
            (705, 2, "352.50"),
            (-1, 900, "0.00"),
        ] {
            let name = "x".to_owned();
            let best = 0;
            let best_tables = 1;
            let victories = 0;
            let last_at = OffsetDateTime::UNIX_EPOCH;
            let record =
                PlayerRecord { name, sessions, best, best_tables, total, victories, last_at };
            assert_eq!(mean(&record), content);
        }
    }
}
