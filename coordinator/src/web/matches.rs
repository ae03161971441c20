//! The played matches of a tournament: newest first, filtered by bot, opponent, version and
//! forfeits.

use arbiter_proto::ids::MatchName;
use arbiter_proto::v1::{ListMatchesRequest, MatchStatus};
use axum::extract::{Path, Query};
use axum::response::Response;
use maud::{Markup, html};
use serde::{Deserialize, Deserializer};

use super::api::escape;
use super::error::WebError;
use super::layout;
use super::session::Session;
use super::tournament_links::TournamentLinks;
use super::tournament_page::{Tab, TournamentPage};
use crate::db::editions::EditionState;

const MATCHES_PER_PAGE: u32 = 50;

/// The query string of the page.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MatchesQuery {
    edition: Option<i32>,
    /// Only matches of this bot.
    bot: String,
    /// Only its matches against this bot.
    opponent: String,
    /// Only matches of this version of the bot.
    #[serde(deserialize_with = "number_or_empty")]
    version: Option<i32>,
    /// `only`: only matches with a forfeit.
    forfeits: String,
    /// `oldest`: oldest first. Otherwise newest first.
    order: String,
    /// Only matches that follow the match with this number.
    after: Option<i64>,
}

/// A number of a form whose field may be empty.
fn number_or_empty<'de, D: Deserializer<'de>>(input: D) -> Result<Option<i32>, D::Error> {
    let text = String::deserialize(input)?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    text.trim().parse().map(Some).map_err(|_| {
        serde::de::Error::custom(format!("version `{text}` is not a number: write 1, 2, …"))
    })
}

impl MatchesQuery {
    /// Requests the matches of a page, and one more to see whether another page follows.
    fn request(&self, tournament: &str) -> ListMatchesRequest {
        ListMatchesRequest {
            tournament: tournament.to_owned(),
            edition: self.edition,
            bot: self.bot.clone(),
            opponent: self.opponent.clone(),
            version: self.version.unwrap_or_default(),
            forfeits_only: self.forfeits == "only",
            newest_first: self.order != "oldest",
            after: self.after,
            limit: MATCHES_PER_PAGE + 1,
            ..ListMatchesRequest::default()
        }
    }

    /// Whether it selects some of the matches only.
    fn is_filtered(&self) -> bool {
        !self.bot.is_empty() || self.forfeits == "only"
    }

    /// The query string with the same filters, after this match.
    fn link(&self, after: Option<i64>) -> String {
        let numbers = [
            ("edition", self.edition.map(i64::from)),
            ("version", self.version.map(i64::from)),
            ("after", after),
        ];
        let texts = [
            ("bot", &self.bot),
            ("opponent", &self.opponent),
            ("forfeits", &self.forfeits),
            ("order", &self.order),
        ];
        let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
        let mut parts: Vec<_> =
            texts.map(|(name, text)| format!("{name}={}", escape(text))).collect();
        let numbers = numbers.into_iter().filter_map(|(name, number)| Some((name, number?)));
        parts.extend(numbers.map(|(name, number)| format!("{name}={number}")));
        format!("?{}", parts.join("&"))
    }
}

/// The page.
pub(super) async fn list(
    session: Session,
    Path(tournament): Path<String>,
    Query(query): Query<MatchesQuery>,
) -> Result<Response, WebError> {
    let content = content(&session, &tournament, query).await;
    TournamentPage::new(&tournament, Tab::Matches).respond(&session, content).await
}

async fn content(
    session: &Session,
    tournament: &str,
    query: MatchesQuery,
) -> Result<Markup, WebError> {
    let request = query.request(tournament);
    let listed = session.service.listed_edition(&session.caller, &request).await?;
    // Later pages are of the same edition, also when another one has become official.
    let query = MatchesQuery { edition: Some(listed.number), ..query };
    let request = query.request(tournament);
    let mut played = session.service.collect_matches(&session.caller, request).await?;
    let has_next = played.len() > MATCHES_PER_PAGE as usize;
    played.truncate(MATCHES_PER_PAGE as usize);
    let last = played.last().and_then(number);
    let columns = match played.first() {
        Some(status) => session.service.score_columns(&status.r#match).await?,
        None => Vec::new(),
    };
    let links = TournamentLinks::of(&session.service, tournament).await?;
    let all = MatchesQuery { edition: query.edition, ..MatchesQuery::default() };
    Ok(html! {
        p {
            "Edition " (listed.number)
            @if listed.state != EditionState::Complete { ", provisional" }
            "."
        }
        (filters(&query))
        @if played.is_empty() { (no_matches(tournament, &query)) }
        @else { (table(&links, &columns, &played)) }
        nav.paging aria-label="Pages" {
            @if query.after.is_some() { a href=(query.link(None)) { "First page" } }
            @if let Some(last) = last.filter(|_| has_next) {
                a rel="next" href=(query.link(Some(last))) { "Next page" }
            }
        }
        p {
            a href={ "/t/" (tournament) "/matches.csv" (all.link(None)) } download { "All matches as CSV" }
            " · "
            a href={ "/t/" (tournament) "/schedule" } { "Planned matches" }
        }
    })
}

fn number(status: &MatchStatus) -> Option<i64> {
    Some(status.r#match.parse::<MatchName>().ok()?.number.0)
}

/// The form of the filters.
fn filters(query: &MatchesQuery) -> Markup {
    html! {
        form.search.filters method="get" role="search" {
            @if let Some(edition) = query.edition { input type="hidden" name="edition" value=(edition); }
            label { "Bot " input name="bot" value=(query.bot) size="14"; }
            label { "Opponent " input name="opponent" value=(query.opponent) size="14"; }
            label { "Version " input name="version" inputmode="numeric" value=[query.version] size="3"; }
            label {
                input type="checkbox" name="forfeits" value="only" checked[query.forfeits == "only"];
                " Forfeits only"
            }
            label {
                "Order "
                select name="order" {
                    option value="newest" { "newest first" }
                    option value="oldest" selected[query.order == "oldest"] { "oldest first" }
                }
            }
            button type="submit" { "Show" }
        }
    }
}

/// Why there is nothing to show, and what to do next.
fn no_matches(tournament: &str, query: &MatchesQuery) -> Markup {
    html! {
        @if query.is_filtered() {
            p { "No match meets these conditions. " a href={ "/t/" (tournament) "/matches" } { "Show all matches" } }
        } @else {
            p {
                "No match has been played yet. The "
                a href={ "/t/" (tournament) "/schedule" } { "schedule" } " shows what is planned."
            }
        }
    }
}

fn table(tournament: &TournamentLinks, columns: &[String], played: &[MatchStatus]) -> Markup {
    let has_params = played.iter().any(|status| !status.params.is_empty());
    let seats = format!("Seats and scores{}", layout::components(columns));
    let mut heads = vec!["Match", &seats, "Duration"];
    if has_params {
        heads.insert(2, "Parameters");
    }
    let row = |status: &MatchStatus| {
        html! {
            td { a href=(layout::match_path(&status.r#match)) { (number(status).unwrap_or_default()) } }
            td { (layout::seats(tournament, &status.seats)) }
            @if has_params { td { (status.params) } }
            td.number { (layout::format_millis(status.wall_ms)) }
        }
    };
    layout::table("Matches", "matches", &heads, played.iter().map(row))
}

/// The newest matches of an edition, as a list for the margin of a page. Empty if there are none
/// that the caller may see.
pub(super) async fn newest(
    session: &Session,
    tournament: &TournamentLinks,
    edition: i32,
) -> Markup {
    let played = session.service.newest_matches(&session.caller, tournament, edition).await;
    let played = played.unwrap_or_default();
    html! {
        @if !played.is_empty() {
            ul.newest {
                @for status in played.iter() {
                    li {
                        a href=(layout::match_path(&status.r#match)) { "Match " (number(status).unwrap_or_default()) }
                        " "
                        @for (index, seat) in status.seats.iter().enumerate() {
                            @if index > 0 { " – " }
                            (tournament.label(&seat.bot))
                            @if let Some(first) = seat.score.first() { " " b { (first) } }
                            @if !seat.forfeit.is_empty() { " " em.forfeit { (seat.forfeit) } }
                        }
                    }
                }
            }
            p { a href={ "/t/" (tournament) "/matches?edition=" (edition) } { "All matches" } }
        }
    }
}
