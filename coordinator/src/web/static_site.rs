//! The pages of a static site: a copy of a tournament for any web server.
//!
//! Pages have relative links only, so a site works in any folder of a server and from a disk. They
//! have the style of the web interface and no script. Each function here returns a whole page; who
//! calls it fetches the data and writes the files at the paths that [`paths`] names.

mod links;
mod meetings;
pub mod paths;

use arbiter_games::Games;
use arbiter_proto::v1::{
    Bot, BotStatistics, Certificate, Edition, GetRankingResponse, GetStatisticsResponse,
    MatchStatus, Standing, Tournament,
};
use arbiter_replay::{ShownNames, without_bidi_controls};
use maud::{DOCTYPE, Markup, html};

pub use self::links::LinkedPages;
pub use self::meetings::Meetings;
pub use super::csv_export::{MatchTable, bots_text, ranking_text, statistics_text};
use super::entry_text::{frozen_notice, state_at_export};
use super::layout::{self, count, label};
use super::settings_in_words::topics;
use super::tournament_links::TournamentLinks;
use super::{
    about, balance, game_guide, head_to_head, leaderboard, markdown, rehearsal, statistics,
};
use crate::service::{PlayConditions, schedule_in, unit_of};
use crate::tournament::file::TournamentFile;

/// The style sheet, at [`paths::STYLE`]. Its icon is in the same folder.
pub fn style() -> String {
    super::assets::style().replace("\"/assets/", "\"")
}

/// The icon, at [`paths::ICON`].
pub fn icon() -> &'static str {
    super::assets::ICON
}

/// A site: what all of its pages share.
#[derive(Clone, Debug)]
pub struct StaticSite {
    tournament: Tournament,
    /// Its settings. None if they cannot be read, for example because a newer release wrote them.
    file: Option<TournamentFile>,
    /// What means are per: a match, or an episode.
    unit: &'static str,
    bots: Vec<String>,
    names: TournamentLinks,
    /// The labels and paths of the pages that every page links to.
    tabs: Vec<(&'static str, &'static str)>,
}

/// The numbers of replays and of matches of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayCount {
    /// Matches with a replay.
    pub replays: usize,
    /// Matches.
    pub matches: usize,
}

/// A bot of the list of bots: the bot and its standing, if it took part.
pub type BotEntry<'a> = (&'a Bot, Option<&'a Standing>);

impl StaticSite {
    /// A site of this tournament with these bots, with or without statistics. The tournament has
    /// one of these games or a game package.
    pub fn new(games: &Games, tournament: Tournament, bots: &[Bot], has_statistics: bool) -> Self {
        let settings = serde_json::from_str(&tournament.settings).unwrap_or_default();
        let file = TournamentFile::from_json(games, &settings).ok();
        let unit = unit_of(schedule_in(&settings).as_ref());
        let mut tabs = vec![
            ("Tournament", paths::INDEX),
            ("Bots", paths::BOTS),
            ("Statistics", paths::STATISTICS),
            ("Head to head", paths::HEAD_TO_HEAD),
            ("Matches", paths::FIRST_MATCHES),
            ("How to play", paths::HOW_TO_PLAY),
            ("Seed and settings", paths::ABOUT),
            ("Data", paths::DATA),
        ];
        tabs.retain(|(_, path)| has_statistics || *path != paths::STATISTICS);
        let names = TournamentLinks::among(&tournament.name, bots);
        let bots = bots.iter().map(|bot| bot.name.clone()).collect();
        Self { tournament, file, unit, bots, names, tabs }
    }

    /// The names to show in replays.
    pub fn shown_names(&self) -> ShownNames {
        self.names.in_replays(self.bots.iter().map(String::as_str))
    }

    /// The title of the tournament, or its name.
    pub fn title(&self) -> &str {
        let Tournament { title, name, .. } = &self.tournament;
        if title.is_empty() { name } else { title }
    }

    /// The title of the game, or its name.
    fn game_title(&self) -> &str {
        self.file.as_ref().map_or(self.tournament.game.as_str(), |file| &file.game().title)
    }

    /// The page at this path.
    fn page(&self, path: &str, heading: &str, body: &Markup) -> String {
        let up = paths::up(path);
        let title = self.title();
        let freeze = &self.tournament.freeze_notice;
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (heading) @if heading != title { " – " (title) } }
                    link rel="icon" href={ (up) (paths::ICON) } type="image/svg+xml";
                    link rel="stylesheet" href={ (up) (paths::STYLE) };
                }
                body {
                    a.skip href="#main" { "Skip to content" }
                    header {
                        nav aria-label="Site" { a.home href={ (up) (paths::INDEX) } { (title) } }
                    }
                    main id="main" {
                        h1 { (heading) }
                        nav.tabs aria-label="Tournament" {
                            @for (label, target) in &self.tabs {
                                a href={ (up) (target) } aria-current=[(*target == path).then_some("page")] {
                                    (label)
                                }
                            }
                        }
                        (frozen_notice(freeze, "This site was exported during the freeze and shows the results from before it."))
                        (body)
                    }
                }
            }
        };
        without_bidi_controls(page.into_string())
    }

    /// A text with Markdown. Its links to pages of the tournament lead to those of the site.
    fn markdown(&self, text: &str, prefix: &str, pages: &LinkedPages) -> Markup {
        let has_statistics = self.tabs.iter().any(|(_, path)| *path == paths::STATISTICS);
        markdown::render_with_paths(text, prefix, &|path| {
            pages.find(&self.tournament.name, path, has_statistics)
        })
    }

    /// The first page: description, leaderboard and editions. `pages` are those that the
    /// description and the list of editions can link to.
    pub fn index(&self, ranking: &GetRankingResponse, pages: &LinkedPages) -> String {
        let description = &self.tournament.description;
        let is_frozen = !self.tournament.freeze_notice.is_empty();
        let body = html! {
            @if !description.is_empty() {
                article.guide { (self.markdown(description, "about-", pages)) }
            }
            @if !self.tournament.rehearsal_of.is_empty() {
                p { strong { "Rehearsal of " (self.tournament.rehearsal_of) } ": its leaderboard is never official." }
            }
            p {
                "A tournament of " (self.game_title()) ". "
                (state_at_export(&self.tournament))
            }
            h2 { "Leaderboard" }
            (self.leaderboard(ranking))
            h2 { "Editions" }
            p { (rehearsal::what_editions_are(&self.tournament, is_frozen)) }
            (self.editions(&pages.rankings))
        };
        self.page(paths::INDEX, self.title(), &body)
    }

    fn editions(&self, editions: &[i32]) -> Markup {
        let heads = ["Edition", "State", "Counted matches", "Planned matches"];
        let row = |edition: &Edition| {
            html! {
                td {
                    @if editions.contains(&edition.number) {
                        a href=(paths::ranking(edition.number)) { (edition.number) }
                    } @else { (edition.number) }
                }
                td { (edition.state) @if edition.official { ", " strong { "official" } } }
                td.number { (edition.counted) }
                td.number { (edition.matches) @if edition.open_ended { "+" } }
            }
        };
        layout::table("Editions", "editions", &heads, self.tournament.editions.iter().map(row))
    }

    fn leaderboard(&self, ranking: &GetRankingResponse) -> Markup {
        // Points first: a phone shows only the first columns.
        let mut heads = vec!["Rank".to_owned(), "Bot".to_owned()];
        heads.extend(ranking.columns.iter().map(|column| label(column)));
        heads.push(leaderboard::mean_heading(self.unit));
        let others = ["Matches", "Forfeits", "Bad replies", "Version"];
        heads.extend(others.map(str::to_owned));
        let row = |place: &Standing| {
            html! {
                td.number { (leaderboard::rank(place.rank, place.tied)) }
                th scope="row" {
                    (self.names.label(&place.bot))
                    @if let Some(owner) = self.names.owner_beside(&place.bot, &place.owner) {
                        " (" (owner) ")"
                    } @else if place.owner.is_empty() && place.rank == 0 { " (house bot)" }
                }
                @for number in leaderboard::score(place, ranking.columns.len()) {
                    td.number { (number) }
                }
                td.number { (leaderboard::mean(place)) }
                td.number { (place.matches) }
                td.number { (place.forfeits.iter().sum::<i64>()) }
                td.number { (place.bad_answers) }
                td.number { (place.version) }
            }
        };
        let official = if ranking.official { "the official one" } else { "not the official one" };
        html! {
            p {
                "Edition " (ranking.edition) ", " (official) ": " (ranking.counted) " of "
                (count(ranking.matches, "match", "matches")) " counted."
            }
            (layout::table("Leaderboard", "ranking", &heads, ranking.standings.iter().map(row)))
        }
    }

    /// The leaderboard of an edition.
    pub fn ranking(&self, ranking: &GetRankingResponse) -> String {
        let heading = format!("Leaderboard of edition {}", ranking.edition);
        self.page(&paths::ranking(ranking.edition), &heading, &self.leaderboard(ranking))
    }

    /// All bots.
    pub fn bots<'a>(&self, bots: impl IntoIterator<Item = BotEntry<'a>>) -> String {
        let heads = ["Bot", "Owner", "Version", "Rank", "Digest of the version"];
        let row = |(bot, standing): BotEntry<'_>| {
            let newest = bot.newest.as_ref();
            html! {
                th scope="row" { (self.names.label(&bot.name)) }
                td { @if bot.owner.is_empty() { "house bot" } @else { (bot.owner) } @if bot.withdrawn { ", withdrawn" } }
                td.number { @if let Some(newest) = newest { (newest.number) } @else { "–" } }
                td.number {
                    @if let Some(place) = standing { (leaderboard::rank(place.rank, place.tied)) }
                    @else { "–" }
                }
                td { @if let Some(newest) = newest { code.hash { (layout::hex(&newest.digest)) } } }
            }
        };
        let body = html! {
            (layout::table("Bots", "bots", &heads, bots.into_iter().map(row)))
        };
        self.page(paths::BOTS, "Bots", &body)
    }

    /// The statistics of an edition.
    pub fn statistics(&self, all: &GetStatisticsResponse) -> String {
        let mean = leaderboard::mean_heading(&all.unit);
        let has_rank_sets = !all.ranks_by_schedule;
        let mut heads = vec!["Rank", "Bot", "Matches", &mean];
        heads.extend(has_rank_sets.then_some("Possible ranks"));
        heads.push("Rating");
        let has_margin = |bot: &BotStatistics| bot.margin.or(bot.rating_margin).is_some();
        let rows = all.statistics.iter().map(|bot| {
            html! {
                td.number { (leaderboard::rank(bot.rank, bot.tied)) }
                th scope="row" { (self.names.label(&bot.bot)) }
                td.number { (bot.matches) }
                td.number { (statistics::mean(bot, bot.margin)) }
                @if has_rank_sets { td.number { (statistics::rank_set(bot)) } }
                td.number { (statistics::rating(bot)) }
            }
        });
        let body = html! {
            (statistics::question(all))
            @if all.statistics.iter().any(has_margin) {
                p {
                    "Each interval of a mean or rating (±) contains the true value with 95\u{a0}% "
                    "probability, taken by itself."
                }
            }
            (statistics::missing_figures(all, false))
            (layout::table("Statistics", "statistics", &heads, rows))
            (statistics::columns(all, false))
        };
        self.page(paths::STATISTICS, "Statistics", &body)
    }

    /// The head-to-head results of the bots, in the order of the leaderboard.
    pub fn head_to_head(&self, ranking: &GetRankingResponse, meetings: &Meetings) -> String {
        let bots: Vec<_> = ranking.standings.iter().map(|place| &place.bot[..]).collect();
        let has_unmet =
            head_to_head::has_unmet(&bots, |bot, other| meetings.of(bot, other).is_some());
        let mut heads = vec![html! { "Bot" }];
        heads.extend(bots.iter().map(|bot| html! { span { (self.names.label(bot)) } }));
        let rows = bots.iter().map(|bot| {
            html! {
                th scope="row" { (self.names.label(bot)) }
                @for other in &bots {
                    @match meetings.of(bot, other) {
                        Some([won, drawn, lost]) => {
                            td class=(head_to_head::balance(won.cmp(&lost))) { (won) "–" (drawn) "–" (lost) }
                        }
                        None => td.none {},
                    }
                }
            }
        });
        let body = html! {
            p { "Edition " (ranking.edition) ". " (head_to_head::legend("", has_unmet)) }
            (layout::table("Head to head", "matrix", &heads, rows))
        };
        self.page(paths::HEAD_TO_HEAD, "Head to head", &body)
    }

    /// A page of the list of matches. Each match comes with whether its replay is on the site;
    /// `total` counts those of all pages.
    pub fn matches(
        &self,
        number: usize,
        matches: &[(MatchStatus, bool)],
        columns: &[String],
        total: ReplayCount,
        has_next: bool,
    ) -> String {
        let seats = layout::seats_heading(columns);
        let mut heads = vec!["Match", &seats, "Replay", "Duration"];
        let has_params = matches.iter().any(|(status, _)| !status.params.is_empty());
        if has_params {
            heads.push("Parameters");
        }
        let path = paths::matches(number);
        let up = paths::up(&path);
        let row = |(status, has_replay): &(MatchStatus, bool)| {
            let match_number = paths::match_number(status);
            html! {
                th scope="row" { (match_number) }
                td { (seats_and_scores(&self.names, status)) }
                td {
                    @if *has_replay {
                        a href={ (up) (paths::replay(match_number)) }
                            aria-label={ "Watch match " (match_number) } { "Watch" }
                    }
                }
                td.number { (layout::format_millis(status.wall_ms)) }
                @if has_params { td { (status.params) } }
            }
        };
        let sibling = |number: usize| format!("{up}{}", paths::matches(number));
        let body = html! {
            @if matches.is_empty() { p { "No match has been played." } }
            @else {
                (missing_replays(total))
                (layout::table("Matches", "matches", &heads, matches.iter().map(row)))
            }
            nav.paging aria-label="Pages" {
                @if number > 1 { a rel="prev" href=(sibling(number - 1)) { "Previous matches" } }
                @if has_next { a rel="next" href=(sibling(number + 1)) { "Next matches" } }
            }
        };
        self.page(&path, "Matches", &body)
    }

    /// How to write a bot: the conditions, and the text of the game, if there is one, as Markdown.
    pub fn how_to_play(&self, text: &str, pages: &LinkedPages) -> String {
        let body = html! {
            @if let Some(file) = &self.file {
                (game_guide::conditions(file.game(), &PlayConditions::of_file(file)))
            }
            @if text.is_empty() {
                p {
                    (self.game_title()) " is a game package. Its guide for bot authors is in the "
                    "package file, see " a href=(paths::DATA) { "Data" } "."
                }
            } @else {
                @if self.file.is_some() { (game_guide::precedence(paths::ABOUT, "Seed and settings")) }
                article.guide { (self.markdown(text, "guide-", pages)) }
            }
        };
        self.page(paths::HOW_TO_PLAY, "How to play", &body)
    }

    /// The settings, the seed and the certificate of the balance.
    pub fn about(&self, certificate: Option<&Certificate>) -> String {
        let body = html! {
            h2 { "Settings" }
            @if let Some(file) = &self.file {
                dl.topics { @for (topic, text) in topics(file) { dt { (topic) } dd { (text) } } }
            }
            details {
                summary { "All settings, as in the tournament file" }
                (about::settings(&self.tournament))
            }
            h2 { "Seed" }
            p { "All randomness follows from the seed. Its hash was published first, so the seed cannot be chosen later." }
            (about::randomness(&self.tournament))
            @if let Some(certificate) = certificate { (balance::section(certificate)) }
        };
        self.page(paths::ABOUT, "Seed and settings", &body)
    }

    /// Links to the files with data: their paths and what they contain.
    pub fn data(&self, files: &[(String, &'static str)]) -> String {
        let body = html! {
            ul {
                @for (path, meaning) in files {
                    li { a href=(path) download { (path) } ": " (meaning) }
                }
            }
            p {
                "Run " code { "arbiter verify data" } " in the folder of this site to check the data: "
                "once the seed is published, all matches are derived from it again."
            }
        };
        self.page(paths::DATA, "Data", &body)
    }
}

/// The bots of a match with their scores.
fn seats_and_scores(names: &TournamentLinks, status: &MatchStatus) -> Markup {
    html! {
        ol.seats {
            @for seat in &status.seats {
                li {
                    (names.label(&seat.bot)) " " span.score { (layout::format_score(&seat.score)) }
                    @if !seat.forfeit.is_empty() { " " em.forfeit { (seat.forfeit) } }
                    @if seat.bad_answers > 0 { " " em { (count(seat.bad_answers, "bad reply", "bad replies")) } }
                }
            }
        }
    }
}

/// How many replays a site contains, if some are missing.
fn missing_replays(ReplayCount { replays, matches }: ReplayCount) -> Markup {
    if replays >= matches {
        return html! {};
    }
    html! {
        p {
            "This site contains "
            @match replays {
                0 => "no replays.",
                1 => { "the replay of 1 of " (matches) " matches." }
                _ => { "the replays of " (replays) " of " (matches) " matches." }
            }
        }
    }
}

#[cfg(test)]
mod tests;
