//! The played matches of a tournament: newest first, filtered by bot, opponent, version and
//! forfeits.

use std::collections::{BTreeMap, BTreeSet};

use arbiter_games::{Value, Values};
use arbiter_proto::ids::MatchName;
use arbiter_proto::v1::{ListMatchesRequest, MatchStatus};
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::api::escape;
use super::data_links::{DataLink, data_links};
use super::error::WebError;
use super::session::Session;
use super::tournament_form::{plain_text, value_in_words};
use super::tournament_links::TournamentLinks;
use super::tournament_page::{Tab, TournamentPage};
use super::{layout, parameter_words};
use crate::tournament::TournamentFile;

const MATCHES_PER_PAGE: u32 = 50;
/// Maximum length of the value of a parameter, in characters.
const MAX_PARAM_CHARS: usize = 24;

/// The query string of the page.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MatchesQuery {
    edition: Option<i32>,
    /// Only matches of this bot.
    bot: String,
    /// Only its matches against this bot.
    opponent: String,
    /// Only matches of the version of the bot with this number; may be empty.
    version: String,
    /// `only`: only matches with a forfeit.
    forfeits: String,
    /// The same, as the API and the CSV export name it.
    forfeit: bool,
    /// `oldest`: oldest first. Otherwise newest first.
    order: String,
    /// Only matches that follow the match with this number.
    after: Option<i64>,
}

impl MatchesQuery {
    /// The query without blanks around what the person wrote, and with one name for each filter.
    fn trimmed(self) -> Self {
        let trim = |text: &str| text.trim().to_owned();
        Self {
            bot: trim(&self.bot),
            opponent: trim(&self.opponent),
            version: trim(&self.version),
            forfeits: if self.forfeit { "only".to_owned() } else { self.forfeits },
            ..self
        }
    }

    /// Requests the matches of a page, and one more to see whether another page follows.
    fn request(&self, tournament: &str) -> Result<ListMatchesRequest, WebError> {
        Ok(ListMatchesRequest {
            tournament: tournament.to_owned(),
            edition: self.edition,
            bot: self.bot.clone(),
            opponent: self.opponent.clone(),
            version: self.version_number()?,
            forfeits_only: self.forfeits == "only",
            newest_first: self.order != "oldest",
            after: self.after,
            limit: MATCHES_PER_PAGE + 1,
            ..ListMatchesRequest::default()
        })
    }

    /// The number of the version; 0 for any version.
    fn version_number(&self) -> Result<i32, WebError> {
        match &*self.version {
            "" => Ok(0),
            text => text.parse().map_err(|_| {
                let message = format!("version `{text}` is not a number: write 1, 2, …");
                WebError::new(StatusCode::BAD_REQUEST, message)
            }),
        }
    }

    /// Whether it selects some of the matches only.
    fn is_filtered(&self) -> bool {
        let texts = [&self.bot, &self.opponent, &self.version];
        texts.iter().any(|text| !text.is_empty()) || self.forfeits == "only"
    }

    /// The filters of the page that the API and the CSV export have under the same names.
    fn shared_filters(&self) -> Vec<String> {
        let edition = self.edition.map(|edition| format!("edition={edition}"));
        let texts = [("bot", &self.bot), ("opponent", &self.opponent), ("version", &self.version)];
        let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
        let texts = texts.map(|(name, text)| format!("{name}={}", escape(text)));
        edition.into_iter().chain(texts).collect()
    }

    /// The query string with the same filters, after this match.
    fn link(&self, after: Option<i64>) -> String {
        let mut parts = self.shared_filters();
        let others = [("forfeits", &self.forfeits), ("order", &self.order)];
        let others = others.into_iter().filter(|(_, text)| !text.is_empty());
        parts.extend(others.map(|(name, text)| format!("{name}={}", escape(text))));
        parts.extend(after.map(|after| format!("after={after}")));
        format!("?{}", parts.join("&"))
    }

    /// Links to the same matches for programs.
    fn data_links(&self, tournament: &str) -> Markup {
        let mut parts = self.shared_filters();
        if self.forfeits == "only" {
            parts.push("forfeit=true".to_owned());
        }
        let filters = parts.join("&");
        let order = if self.order == "oldest" { "oldest" } else { "newest" };
        let what = if self.is_filtered() { "Data of these matches" } else { "Data of all matches" };
        data_links(
            what,
            &[
                DataLink::Json(format!("tournaments/{tournament}/matches?{filters}&order={order}")),
                DataLink::Csv(format!("/t/{tournament}/matches.csv?{filters}")),
            ],
        )
    }
}

/// The page.
pub(super) async fn list(
    session: Session,
    Path(tournament): Path<String>,
    Query(query): Query<MatchesQuery>,
) -> Result<Response, WebError> {
    let query = query.trimmed();
    let page = TournamentPage::new(&tournament, Tab::Matches);
    match content(&session, &tournament, query.clone()).await {
        Err(error) if query.is_filtered() && error.is_wrong_input() => {
            let form = filters(&query, Some(error.message()));
            page.respond_with_form(&session, error, &form).await
        }
        content => page.respond(&session, content).await,
    }
}

async fn content(
    session: &Session,
    tournament: &str,
    query: MatchesQuery,
) -> Result<Markup, WebError> {
    let request = query.request(tournament)?;
    let listed = session.service.listed_edition(&session.caller, &request).await?;
    // Later pages are of the same edition, also when another one has become official.
    let query = MatchesQuery { edition: Some(listed.number), ..query };
    let request = query.request(tournament)?;
    let mut played = session.service.collect_matches(&session.caller, request).await?;
    let has_next = played.len() > MATCHES_PER_PAGE as usize;
    played.truncate(MATCHES_PER_PAGE as usize);
    let last = played.last().and_then(number);
    let columns = match played.first() {
        Some(status) => session.service.score_columns(&status.r#match).await?,
        None => Vec::new(),
    };
    let params = ShownParams::of(session, tournament, &played).await?;
    let links = TournamentLinks::of(&session.service, tournament).await?;
    let status = session.service.edition_status(&session.caller, tournament, listed.number).await?;
    Ok(html! {
        p { "Results of " (layout::edition_label(listed.number, status)) "." }
        (filters(&query, None))
        @if played.is_empty() { (no_matches(tournament, &query)) }
        @else { (table(&links, &columns, &played, &params)) }
        nav.paging aria-label="Pages" {
            @if query.after.is_some() { a href=(query.link(None)) { "First page" } }
            @if let Some(last) = last.filter(|_| has_next) {
                a rel="next" href=(query.link(Some(last))) { "Next page" }
            }
        }
        p { a href={ "/t/" (tournament) "/schedule" } { "Schedule" } ": all matches that are planned." }
        (query.data_links(tournament))
    })
}

fn number(status: &MatchStatus) -> Option<i64> {
    Some(status.r#match.parse::<MatchName>().ok()?.number.0)
}

/// The form of the filters, with the reason why there are no matches for them.
fn filters(query: &MatchesQuery, error: Option<&str>) -> Markup {
    let help = error.map(|_| "filter-error");
    html! {
        form.search.filters method="get" role="search" {
            @if let Some(edition) = query.edition { input type="hidden" name="edition" value=(edition); }
            label { "Bot " input name="bot" value=(layout::form_value(&query.bot)) size="14" aria-describedby=[help]; }
            label { "Opponent " input name="opponent" value=(layout::form_value(&query.opponent)) size="14" aria-describedby=[help]; }
            label { "Version " input name="version" inputmode="numeric" value=(layout::form_value(&query.version)) size="3" aria-describedby=[help]; }
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
            @if let Some(error) = error {
                p #filter-error .error-message role="alert" { (layout::sentence(error)) }
            }
        }
        @if error.is_some() { p { a href="?" { "Show all matches" } } }
    }
}

/// Why there is nothing to show, and what to do next.
fn no_matches(tournament: &str, query: &MatchesQuery) -> Markup {
    html! {
        @if query.is_filtered() {
            p { "No match meets these conditions. " a href={ "/t/" (tournament) "/matches" } { "Show all matches" } }
        } @else {
            p {
                "No match has been played yet. "
                a href={ "/t/" (tournament) "/schedule" } { "Schedule" } ": all matches that are planned."
            }
        }
    }
}

fn table(
    tournament: &TournamentLinks,
    columns: &[String],
    played: &[MatchStatus],
    params: &ShownParams,
) -> Markup {
    let mut heads = vec!["Match".to_owned(), layout::seats_heading(columns)];
    heads.extend_from_slice(&params.labels);
    heads.push("Duration".to_owned());
    let row = |(status, texts): (&MatchStatus, &Vec<String>)| {
        html! {
            td { a href=(layout::match_path(&status.r#match)) { (number(status).unwrap_or_default()) } }
            td { (layout::seats(tournament, &status.seats)) }
            @for text in texts { td { (beginning(text)) } }
            td.number { (layout::format_millis(status.wall_ms)) }
        }
    };
    layout::table("Matches", "matches", &heads, played.iter().zip(&params.texts).map(row))
}

/// The parameters of a match by their keys.
type Params = BTreeMap<String, Value>;

/// The parameters in lists of matches.
#[derive(Debug, Default)]
struct ShownParams {
    /// The labels of those that have a column.
    labels: Vec<String>,
    /// Their texts for each match.
    texts: Vec<Vec<String>>,
}

impl ShownParams {
    async fn of(
        session: &Session,
        tournament: &str,
        played: &[MatchStatus],
    ) -> Result<Self, WebError> {
        if played.is_empty() {
            return Ok(Self::default());
        }
        let file = session.service.tournament_file(tournament).await?;
        Ok(Self::new(&file, played))
    }

    /// If the tournament has several boards, they have a column on every page.
    fn new(file: &TournamentFile, played: &[MatchStatus]) -> Self {
        let common = file.params.values();
        let all: Vec<_> = played.iter().map(|status| params_of(file, &common, status)).collect();
        let mut keys = different_keys(&all);
        keys.extend((file.boards.len() > 1).then(|| file.board_key().to_owned()));
        let param = |key: &str| file.game().params.iter().find(|param| param.key == key);
        let label =
            |key: &String| param(key).map_or_else(|| layout::label(key), parameter_words::label);
        let text = |params: &Params, key: &String| match (params.get(key), param(key)) {
            (Some(value), Some(param)) => value_in_words(param, value),
            (Some(value), None) => plain_text(value),
            (None, _) => String::new(),
        };
        let texts = |params: &Params| keys.iter().map(|key| text(params, key)).collect::<Vec<_>>();
        Self { labels: keys.iter().map(label).collect(), texts: all.iter().map(texts).collect() }
    }
}

/// The parameters of a match. A match has only those that differ from the common ones of the
/// tournament.
fn params_of(file: &TournamentFile, common: &Values, status: &MatchStatus) -> Params {
    let mut params: Params =
        common.iter().map(|(key, value)| (key.to_owned(), value.clone())).collect();
    let different: Params = serde_json::from_str(&status.params).unwrap_or_default();
    params.extend(different);
    let index = status.board.and_then(|board| usize::try_from(board).ok());
    if let Some(board) = index.and_then(|index| file.boards.get(index)) {
        params.insert(file.board_key().to_owned(), Value::from(board.as_str()));
    }
    params
}

/// The keys of the parameters in which matches differ.
fn different_keys(params: &[Params]) -> BTreeSet<String> {
    let keys: BTreeSet<_> = params.iter().flat_map(BTreeMap::keys).cloned().collect();
    let differs = |key: &String| params.windows(2).any(|pair| pair[0].get(key) != pair[1].get(key));
    keys.into_iter().filter(differs).collect()
}

/// The beginning of a long text, such as that of a board without a name.
fn beginning(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let beginning: String = line.chars().take(MAX_PARAM_CHARS).collect();
    if beginning.len() < text.trim_end().len() { format!("{beginning}…") } else { beginning }
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
                            @if index > 0 { ", " }
                            (tournament.label(&seat.bot))
                            @if let Some(first) = seat.score.first() {
                                " " b { (arbiter_replay::number_text(first)) }
                            }
                            @if !seat.forfeit.is_empty() { " " em.forfeit { (seat.forfeit) } }
                        }
                    }
                }
            }
            p { a href={ "/t/" (tournament) "/matches?edition=" (edition) } { "All matches" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use arbiter_games::Games;

    use super::*;

    fn shown(file: &str, matches: &[(&str, Option<i32>)]) -> ShownParams {
        let file = TournamentFile::parse(&Games::built_in(), file).unwrap();
        let played: Vec<_> = matches
            .iter()
            .map(|(params, board)| MatchStatus {
                params: (*params).to_owned(),
                board: *board,
                ..MatchStatus::default()
            })
            .collect();
        ShownParams::new(&file, &played)
    }

    #[test]
    fn a_match_without_a_parameter_shows_that_of_the_tournament() {
        let file = "name = \"cup\"\ngame = \"blackjack\"\n[params]\nchips = 150\n";
        let shown = shown(file, &[("", None), ("{\"chips\":[120,0,305]}", None)]);
        assert_eq!(shown.labels, ["What each bot starts with"]);
        assert_eq!(shown.texts, [["150"], ["120, 0, 305"]]);
    }

    #[test]
    fn parameters_that_are_equal_in_all_matches_have_no_column() {
        let file = "name = \"cup\"\ngame = \"blackjack\"\n[params]\nchips = 150\n";
        let shown = shown(file, &[("", None), ("{\"chips\":150}", None)]);
        assert!(shown.labels.is_empty(), "{:?}", shown.labels);
    }

    #[test]
    fn the_boards_of_a_tournament_have_a_column_on_every_page() {
        let file =
            "name = \"cup\"\ngame = \"bitwa\"\n[schedule]\nboards = [\"pole\", \"kolosy\"]\n";
        let shown = shown(file, &[("", Some(1)), ("", Some(1))]);
        assert_eq!(shown.labels, ["The board"]);
        assert_eq!(shown.texts, [["kolosy"], ["kolosy"]]);
    }
}
