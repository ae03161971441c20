//! The statistics page: who is better, and how sure. Means with intervals, possible ranks,
//! probabilities and ratings.

use arbiter_games::string_enum;
use arbiter_proto::edition_status::EditionStatus;
use arbiter_proto::v1::{
    BotStatistics, GetStatisticsRequest, GetStatisticsResponse, LeaderboardRef, PairStatistics,
    RankSet,
};
use arbiter_ranking::statistics::text;
use arbiter_replay::number_text;
use axum::extract::{Path, Query};
use axum::response::Response;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::chart::{self, Interval};
use super::data_links::{DataLink, data_links};
use super::error::WebError;
use super::session::Session;
use super::tournament_links::{TournamentLinks, by_short_name};
use super::tournament_page::{Tab, TournamentPage};
use super::{layout, leaderboard};
use crate::service::ErrorKind;

const BOTS_PER_PAGE: u32 = 50;
/// The best ranks whose probability has a column: first, and among the best three.
const TOP: [usize; 2] = [1, 3];

string_enum! {
    /// The order of the rows of a page.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Order {
        /// By rank.
        #[default]
        Rank = "rank",
        /// By mean.
        Mean = "mean",
        /// By rating.
        Rating = "rating",
        /// By the probability of the first rank.
        First = "first",
        /// By name.
        Bot = "bot",
    }
}

/// The query string of the page.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StatisticsQuery {
    edition: Option<i32>,
    /// The number of bots to skip.
    offset: u32,
    sort: Order,
}

impl StatisticsQuery {
    fn url(self, offset: u32, sort: Order) -> String {
        let edition = self.edition.map(|edition| format!("edition={edition}&"));
        format!("?{}offset={offset}&sort={}", edition.unwrap_or_default(), sort.as_str())
    }
}

pub(super) async fn show(
    session: Session,
    Path(tournament): Path<String>,
    Query(query): Query<StatisticsQuery>,
) -> Result<Response, WebError> {
    let request = GetStatisticsRequest {
        leaderboard: Some(LeaderboardRef {
            tournament: tournament.clone(),
            edition: query.edition,
        }),
        offset: query.offset,
        limit: BOTS_PER_PAGE,
        name_contains: String::new(),
        pairs: true,
    };
    let content = match session.service.get_statistics(&session.caller, request).await {
        Ok(statistics) => {
            let links = TournamentLinks::of(&session.service, &tournament).await?;
            Ok(page(&links, query, statistics))
        }
        // They are computed now.
        Err(error) if error.kind() == ErrorKind::Unavailable => Ok(
            html! { p role="status" { (layout::sentence(error.message())) } p { a href="" { "Try again" } } },
        ),
        Err(error) => Err(error.into()),
    };
    TournamentPage::new(&tournament, Tab::Statistics).respond(&session, content).await
}

fn page(
    tournament: &TournamentLinks,
    query: StatisticsQuery,
    mut all: GetStatisticsResponse,
) -> Markup {
    sort(&mut all.statistics, query.sort);
    html! {
        (question(&all))
        (missing_figures(&all, true))
        (table(tournament, query, &all))
        (columns(&all, true))
        nav.paging aria-label="Pages" {
            @if query.offset > 0 {
                a rel="prev" href=(query.url(query.offset.saturating_sub(BOTS_PER_PAGE), query.sort)) { "Previous page" }
            }
            @if query.offset.saturating_add(BOTS_PER_PAGE) < all.bots {
                a rel="next" href=(query.url(query.offset + BOTS_PER_PAGE, query.sort)) { "Next page" }
            }
        }
        (probabilities(tournament, &all))
        (data_links("Data of this page", &[
            DataLink::Json(format!(
                "tournaments/{tournament}/statistics?edition={}&pairs=true&offset={}&limit={BOTS_PER_PAGE}",
                all.edition, query.offset)),
            DataLink::Csv(format!("/t/{tournament}/statistics.csv?edition={}", all.edition)),
            DataLink::File("All matches as CSV", format!("/t/{tournament}/matches.csv?edition={}", all.edition)),
        ]))
    }
}

/// What the figures answer, and from how much.
pub(super) fn question(all: &GetStatisticsResponse) -> Markup {
    let status = EditionStatus::of(all.official, &all.state, all.rehearsal);
    let fresh = if all.basis == "tables" {
        "fresh seeds and freshly drawn tables"
    } else {
        "fresh seeds and the same opponents"
    };
    let is_repeated = all.distinct_matches < all.matches;
    html! {
        p {
            "Results of " (layout::edition_label(all.edition, status)) ": "
            (all.matches) " of " (layout::count(all.planned, "match", "matches")) ", "
            @if is_repeated { (all.distinct_matches) " of them different, " }
            (layout::count(all.blocks, "seed", "seeds")) "."
        }
        p {
            "The leaderboard ranks what happened. This page says what would happen with " (fresh)
            ": which bot has the higher mean of " (all.column) " per " (all.unit) " in the long run."
            @if all.statistics.iter().any(|row| row.rank_set.is_some()) {
                " In 95 of 100 tournaments the possible ranks of all bots are right. A larger "
                "interval does not mean a worse bot, and bots whose intervals overlap may still be "
                "told apart: look at the possible ranks."
            }
        }
    }
}

fn sort(rows: &mut [BotStatistics], order: Order) {
    let descending = |value: fn(&BotStatistics) -> Option<f64>| {
        move |a: &BotStatistics, b: &BotStatistics| {
            let value = |row| value(row).unwrap_or(f64::NEG_INFINITY);
            value(b).total_cmp(&value(a))
        }
    };
    match order {
        // So they come from the service.
        Order::Rank => {}
        Order::Mean => {
            rows.sort_by(descending(|row| Some(row.mean).filter(|_| has_matches(row))));
        }
        Order::Rating => rows.sort_by(descending(|row| row.rating)),
        Order::First => rows.sort_by(descending(|row| row.top.first().copied())),
        Order::Bot => rows.sort_by_cached_key(|row| by_short_name(&row.bot)),
    }
}

fn table(
    tournament: &TournamentLinks,
    query: StatisticsQuery,
    all: &GetStatisticsResponse,
) -> Markup {
    let interval = |row: &BotStatistics| Interval { mean: row.mean, margin: row.margin };
    let played = all.statistics.iter().filter(|row| has_matches(row));
    let range = chart::range(played.map(interval));
    // The schedule may determine the ranks, so that nothing is unknown about them.
    let has_ranks = !all.ranks_by_schedule;
    let heading = |label: &str, order: Order| {
        let is_current = query.sort == order;
        let class = (order != Order::Bot).then_some("number");
        html! {
            th scope="col" class=[class] aria-sort=[is_current.then_some(if order == Order::Rank || order == Order::Bot { "ascending" } else { "descending" })] {
                a href=(query.url(query.offset, order)) { (label) }
            }
        }
    };
    let table = html! {
        table.statistics data-edition=(all.edition) {
            thead {
                tr {
                    (heading("Rank", Order::Rank)) (heading("Bot", Order::Bot))
                    @if has_ranks {
                        th.number scope="col" { "Possible ranks" }
                        th.drawn scope="col" { span.visually-hidden { "Possible ranks, drawn" } }
                    }
                    (heading(&leaderboard::mean_heading(&all.unit), Order::Mean))
                    th scope="col" { "95 % interval" }
                    @if has_ranks { (heading("First", Order::First)) th.number scope="col" { "Best three" } }
                    (heading("Rating", Order::Rating))
                    @if has_ranks { th.number scope="col" { "Matches to be sure" } }
                }
            }
            tbody {
                @for row in &all.statistics {
                    tr data-bot=(row.bot) {
                        td.number { (leaderboard::rank(row.rank, row.tied)) }
                        td.name { (tournament.bot(&row.bot)) }
                        @if has_ranks {
                            td.number { (rank_set(row)) }
                            td.drawn { (chart::rank_set(row.rank_set, row.rank, all.ranked)) }
                        }
                        td.number { (mean(row, None)) }
                        td { @if has_matches(row) { (chart::interval(interval(row), range)) } }
                        @if has_ranks {
                            @for top in TOP { td.number { (dashed(text::percent(row.top.get(top - 1).copied()))) } }
                        }
                        td.number { (rating(row)) }
                        @if has_ranks { td.number { (dashed(text::needed(row.matches_needed, row.margin))) } }
                    }
                }
            }
        }
    };
    layout::scrollable("Statistics", &table)
}

/// What the columns of the table mean. The page may have no columns of probabilities.
pub(super) fn columns(all: &GetStatisticsResponse, has_probabilities: bool) -> Markup {
    html! {
        p.quiet {
            @if has_probabilities && !all.ranks_by_schedule {
                "First and Best three: the probability that the bot is the best one, or among the best "
                "three, in the long run. Matches to be sure: how many more matches the bot needs until "
                "its rank is certain, if all means stay as they are. "
            }
            "Rating: the strength on the scale of Elo, where 1500 is an average bot of the edition."
        }
    }
}

/// Whether a bot has counted matches. Without one its mean says nothing.
fn has_matches(row: &BotStatistics) -> bool {
    row.matches > 0
}

/// The mean of a bot, if it has counted matches, with a margin if it is given.
pub(super) fn mean(row: &BotStatistics, margin: Option<f64>) -> String {
    if has_matches(row) { number_text(text::mean(row.mean, margin)) } else { DASH.to_owned() }
}

/// The possible ranks of a bot, if they are known.
pub(super) fn rank_set(row: &BotStatistics) -> String {
    row.rank_set.map_or_else(|| DASH.to_owned(), possible_ranks)
}

/// The rating of a bot with its margin, if they are known.
pub(super) fn rating(row: &BotStatistics) -> String {
    number_text(dashed(text::rating(row.rating, row.rating_margin)))
}

/// Why bots of the page lack figures, a paragraph for each reason. The page may have no columns of
/// probabilities.
pub(super) fn missing_figures(all: &GetStatisticsResponse, has_probabilities: bool) -> Markup {
    let rows = &all.statistics;
    let has = |reason: &str| rows.iter().any(|row| row.no_interval == reason);
    html! {
        @if all.ranks_by_schedule {
            p {
                "The schedule of this edition determines the ranks, so there are no possible ranks"
                @if has_probabilities { " and no probabilities" }
                "."
            }
            @if has("one_seed") {
                p {
                    "A bot that met an opponent with one seed only has no interval, because nothing "
                    "shows how much chance there is."
                }
            }
            @if has("equal_outcomes") {
                p {
                    "A bot that scored the same in total with every seed, against the same opponents, "
                    "has no interval yet."
                }
            }
        } @else { (missing_ranks(rows, has_probabilities)) }
        @if has("no_matches") { p { "A bot without counted matches has no mean yet." } }
    }
}

/// Why bots of the page lack possible ranks, where these follow from means.
fn missing_ranks(rows: &[BotStatistics], has_probabilities: bool) -> Markup {
    let has = |reason: &str| rows.iter().any(|row| row.no_interval == reason);
    let is_unranked = |row: &BotStatistics| row.rank == 0;
    // A bot with possible ranks lacks probabilities only because of another bot, perhaps on another
    // page.
    let lacks_probabilities = |row: &BotStatistics| {
        let has_ranks = row.no_interval.is_empty() && row.rank_set.is_some();
        has_probabilities
            && !is_unranked(row)
            && has_ranks
            && has_matches(row)
            && row.top.is_empty()
    };
    html! {
        @if has("one_seed") || rows.iter().any(lacks_probabilities) {
            p {
                "A bot that met an opponent with one seed only has no interval and no possible "
                "ranks, because nothing shows how much chance there is."
                @if has_probabilities {
                    " As long as there is such a bot, the columns First, Best three and Matches to "
                    "be sure are empty for all bots."
                }
            }
        }
        @if has("equal_outcomes") {
            p {
                "A bot that scored the same in total with every seed, against the same opponents, "
                "has no interval and no possible ranks yet."
            }
        }
        @if rows.iter().any(is_unranked) {
            p {
                "A house bot without a rank has no possible ranks, and the possible ranks of other "
                "bots do not count it."
            }
        }
    }
}

/// A cell without a value.
const DASH: &str = "–";

/// The text of a cell. The sign for an unknown value is longer than in a terminal.
fn dashed(text: String) -> String {
    if text == text::UNKNOWN { DASH.to_owned() } else { text }
}

/// The possible ranks as text.
pub(super) fn possible_ranks(RankSet { best, worst }: RankSet) -> String {
    text::rank_set(Some((best, worst)))
}

/// For each two bots of the page, the probability that the row's bot is above the column's bot.
fn probabilities(tournament: &TournamentLinks, all: &GetStatisticsResponse) -> Markup {
    let pair = |row: &str, column: &str| {
        let is = |pair: &&PairStatistics| {
            (pair.bot == row && pair.other == column) || (pair.bot == column && pair.other == row)
        };
        let pair = all.pairs.iter().find(is)?;
        let probability = pair.probability?;
        Some(if pair.bot == row { probability } else { 1.0 - probability })
    };
    if all.pairs.iter().all(|pair| pair.probability.is_none()) {
        return html! {};
    }
    let is_compared = |row: &&BotStatistics| {
        all.pairs.iter().any(|pair| pair.bot == row.bot || pair.other == row.bot)
    };
    let compared: Vec<_> = all.statistics.iter().filter(is_compared).collect();
    let mut heads = vec![html! { "Bot" }];
    heads.extend(compared.iter().map(|column| html! { span { (tournament.label(&column.bot)) } }));
    let row = |row: &&BotStatistics| {
        html! {
            th.name scope="row" { (tournament.bot(&row.bot)) }
            @for column in &compared {
                @if row.bot == column.bot { td.none {} } @else { (cell(pair(&row.bot, &column.bot))) }
            }
        }
    };
    html! {
        h2 { "Who is above whom" }
        p {
            "The probability that the row's bot is above the column's bot in the long run. It allows "
            "for luck among many bots, so it may be less than the interval of one pair suggests. "
            span.better { "Green" } ": at least 95 %. "
            span.worse { "Red" } ": less than 5 %."
        }
        (layout::table("Probabilities", "matrix", &heads, compared.iter().map(row)))
    }
}

fn cell(probability: Option<f64>) -> Markup {
    let class = match probability {
        Some(0.95..) => "better",
        Some(0.05..) => "even",
        Some(_) => "worse",
        None => "none",
    };
    html! { td class=(class) { (dashed(text::percent(probability))) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_figure_has_a_reason() {
        let row = |rank, no_interval: &str, rank_set| BotStatistics {
            rank,
            no_interval: no_interval.to_owned(),
            rank_set,
            ..BotStatistics::default()
        };
        let set = Some(RankSet { best: 1, worst: 2 });
        let page = |ranks_by_schedule, has_probabilities, statistics| {
            let all = GetStatisticsResponse {
                ranks_by_schedule,
                statistics,
                ..GetStatisticsResponse::default()
            };
            missing_figures(&all, has_probabilities).into_string()
        };
        let by_schedule = "The schedule of this edition determines the ranks";
        for (is_bracket, rows, reasons) in [
            (false, vec![row(1, "", set), row(2, "", set)], vec![]),
            (false, vec![row(1, "one_seed", None)], vec!["met an opponent with one seed only"]),
            (
                false,
                vec![row(1, "equal_outcomes", None)],
                vec!["the same in total with every seed"],
            ),
            (false, vec![row(1, "no_matches", None)], vec!["without counted matches"]),
            (false, vec![row(1, "", set), row(0, "", None)], vec!["house bot without a rank"]),
            (
                false,
                vec![row(0, "no_matches", None), row(1, "one_seed", None)],
                vec!["with one seed only", "without counted matches", "house bot without a rank"],
            ),
            (true, vec![row(1, "", None), row(0, "", None)], vec![by_schedule]),
            (
                true,
                vec![row(1, "one_seed", None), row(2, "one_seed", None)],
                vec![by_schedule, "with one seed only has no interval, because"],
            ),
            (
                true,
                vec![row(1, "equal_outcomes", None)],
                vec![by_schedule, "same opponents, has no interval yet."],
            ),
        ] {
            let text = page(is_bracket, true, rows.clone());
            assert_eq!(text.matches("<p>").count(), reasons.len(), "{text}");
            for reason in reasons {
                assert!(text.contains(reason), "{reason}: {text}");
            }
            let without = page(is_bracket, false, rows);
            assert_eq!(without.matches("<p>").count(), text.matches("<p>").count(), "{without}");
            assert!(!without.contains("probabilities") && !without.contains("First"), "{without}");
        }
        // The bot that was met with one seed only is on another page.
        let played = |top: Vec<f64>| BotStatistics { matches: 4, top, ..row(1, "", set) };
        let shown = page(false, true, vec![played(vec![])]);
        assert!(shown.contains("As long as there is such a bot"), "{shown}");
        assert_eq!(page(false, true, vec![played(vec![0.5])]), "");
        assert_eq!(page(false, false, vec![played(vec![])]), "");
    }

    #[test]
    fn a_bot_without_matches_has_no_mean() {
        let row = |bot: &str, matches, mean| BotStatistics {
            bot: bot.to_owned(),
            matches,
            mean,
            ..BotStatistics::default()
        };
        let mut rows = vec![row("new", 0, 0.0), row("weak", 2, -3.0), row("strong", 2, -1.0)];
        sort(&mut rows, Order::Mean);
        let order: Vec<_> = rows.iter().map(|row| &row.bot[..]).collect();
        assert_eq!(order, ["strong", "weak", "new"]);
        let all = GetStatisticsResponse { statistics: rows, ..GetStatisticsResponse::default() };
        let links = TournamentLinks::with_owners("cup");
        let table = table(&links, StatisticsQuery::default(), &all).into_string();
        assert!(table.contains("−1.000") && !table.contains("0.000"), "{table}");
    }

    #[test]
    fn ranks_by_schedule_have_no_columns_about_possible_ranks() {
        let row = BotStatistics { bot: "ada".to_owned(), rank: 1, ..BotStatistics::default() };
        let shown = |ranks_by_schedule| {
            let statistics = vec![row.clone()];
            let all = GetStatisticsResponse { ranks_by_schedule, statistics, ..Default::default() };
            let links = TournamentLinks::with_owners("cup");
            let table = table(&links, StatisticsQuery::default(), &all).into_string();
            table + &columns(&all, true).into_string()
        };
        let [league, bracket] = [false, true].map(shown);
        for column in ["Possible ranks", "First", "Best three", "Matches to be sure"] {
            assert!(league.contains(column), "{column}: {league}");
            assert!(!bracket.contains(column), "{column}: {bracket}");
        }
        for page in [league, bracket] {
            assert!(page.contains("Rating: the strength"), "{page}");
            let heads = page.matches("<th ").count();
            assert_eq!(heads, page.matches("<td").count(), "{page}");
        }
    }
}
