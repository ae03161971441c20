//! The bots of a tournament: owner, newest version and state. Organisers also see the players who
//! were invited and have not submitted.

use std::cmp::Reverse;

use arbiter_proto::state_words::version_state;
use arbiter_proto::v1::{Bot, InvitedPlayer, ListBotsRequest, ListInvitedRequest, Version};
use axum::extract::{Path, Query};
use maud::{Markup, html};
use serde::Deserialize;

use super::api::escape;
use super::data_links::{DataLink, data_links};
use super::error::WebError;
use super::layout;
use super::session::Session;
use super::tournament_links::{TournamentLinks, by_short_name};
use super::tournament_page::{Tab, TournamentPage};

const BOTS_PER_PAGE: usize = 200;

/// The order of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Order {
    /// Newest submission first.
    #[default]
    Newest,
    Name,
    Owner,
    State,
}

impl Order {
    const ALL: [(Self, &str, &str); 4] = [
        (Self::Newest, "newest", "newest first"),
        (Self::Name, "name", "name"),
        (Self::Owner, "owner", "owner"),
        (Self::State, "state", "state"),
    ];

    fn sort(self, bots: &mut [Bot]) {
        match self {
            Self::Newest => bots.sort_by_key(|bot| Reverse(last_submission(bot))),
            Self::Name => bots.sort_by_cached_key(|bot| by_short_name(&bot.name)),
            Self::Owner => {
                bots.sort_by_cached_key(|bot| (bot.owner.to_lowercase(), by_short_name(&bot.name)));
            }
            Self::State => {
                bots.sort_by_cached_key(|bot| (bot.state.clone(), by_short_name(&bot.name)));
            }
        }
    }
}

/// The query string of the page.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BotsQuery {
    sort: Order,
    /// A part of the name of a bot or its owner.
    q: String,
    offset: usize,
}

impl BotsQuery {
    /// The query string of this page in another order or from another bot on.
    fn link(&self, sort: &str, offset: usize) -> String {
        let q = escape(&self.q);
        format!("?sort={sort}&q={q}&offset={offset}")
    }
}

/// The page.
pub(super) async fn show(
    session: Session,
    Path(tournament): Path<String>,
    Query(query): Query<BotsQuery>,
) -> Result<Markup, WebError> {
    let Session { service, caller, .. } = &session;
    let request = ListBotsRequest { tournament: tournament.clone() };
    let mut bots = service.list_bots(caller, request).await?.bots;
    let invited = if caller.is_organiser() {
        let request = ListInvitedRequest { tournament: tournament.clone() };
        Some(service.list_invited(caller, request).await?.players)
    } else {
        None
    };
    let total = bots.len();
    let text = query.q.trim().to_lowercase();
    bots.retain(|bot| {
        [&bot.name, &bot.owner].iter().any(|name| name.to_lowercase().contains(&text))
    });
    query.sort.sort(&mut bots);
    let links = TournamentLinks::of(service, &tournament).await?;
    let body = html! {
        @if total == 0 {
            p {
                "No bot has entered yet. "
                a href={ "/t/" (tournament) "/how-to-play" } { "How to play" } " shows how to write one, and "
                a href={ "/t/" (tournament) "/submit" } { "Submit" } " enters it."
            }
        } @else {
            (search(&query, total))
            @if bots.is_empty() { p { "No bot or owner has this in its name." } }
            @else { (table(&links, &query, &bots)) }
        }
        @if let Some(invited) = &invited { (invited_players(&tournament, invited)) }
        (data_links("Data of these bots", &[DataLink::Json(format!("tournaments/{tournament}/bots"))]))
    };
    Ok(TournamentPage::new(&tournament, Tab::Bots).render(&session, &body).await)
}

/// The search form and the links that sort the list.
fn search(query: &BotsQuery, total: usize) -> Markup {
    html! {
        form.search method="get" role="search" {
            label for="q" { "Bot or owner" }
            input #q type="search" name="q" value=(layout::form_value(&query.q));
            @for (order, name, _) in Order::ALL {
                @if order == query.sort { input type="hidden" name="sort" value=(name); }
            }
            button type="submit" { "Search" }
        }
        nav.paging aria-label="Order" {
            span { (layout::count(total, "bot", "bots")) ". Order:" }
            @for (order, name, label) in Order::ALL {
                a href=(query.link(name, 0)) aria-current=[(order == query.sort).then_some("true")] {
                    (label)
                }
            }
        }
    }
}

fn table(tournament: &TournamentLinks, query: &BotsQuery, bots: &[Bot]) -> Markup {
    let is_resubmitted = |bot: &Bot| bot.created_at_us != last_submission(bot);
    let mut heads = vec!["Bot", "State", "Owner", "Version", "Submitted"];
    let has_resubmitted = bots.iter().any(is_resubmitted);
    if has_resubmitted {
        heads.push("First submitted");
    }
    let row = |bot: &Bot| {
        html! {
            th.name scope="row" { (tournament.bot(&bot.name)) }
            td { (state(tournament, bot)) }
            td { @if bot.owner.is_empty() { em { "house bot" } } @else { (bot.owner) } }
            (version_cells(bot))
            @if has_resubmitted {
                td { @if is_resubmitted(bot) { (layout::timestamp(bot.created_at_us)) } }
            }
        }
    };
    let sort = Order::ALL.into_iter().find(|(order, ..)| *order == query.sort);
    let sort = sort.map_or("", |(_, name, _)| name);
    let shown = bots.iter().skip(query.offset).take(BOTS_PER_PAGE);
    let next = query.offset.saturating_add(BOTS_PER_PAGE);
    html! {
        (layout::table("Bots", "bots", &heads, shown.map(row)))
        @if query.offset > 0 || next < bots.len() {
            nav.paging aria-label="Pages" {
                @if query.offset > 0 { a href=(query.link(sort, 0)) { "First page" } }
                @if next < bots.len() { a rel="next" href=(query.link(sort, next)) { "Next page" } }
            }
        }
    }
}

/// The newest version of a bot, and when it was submitted.
fn newest(bot: &Bot) -> Option<&Version> {
    bot.pending.as_ref().or(bot.newest.as_ref())
}

fn last_submission(bot: &Bot) -> i64 {
    newest(bot).map_or(bot.created_at_us, |version| version.submitted_at_us)
}

/// Two cells: the number of the newest version, and when it was submitted.
pub(super) fn version_cells(bot: &Bot) -> Markup {
    html! {
        td.number { @if let Some(version) = newest(bot) { (version.number) } }
        td { (layout::timestamp(last_submission(bot))) }
    }
}

/// Whether a bot takes part, and the state of a newer version's trial with a link to it. The pages
/// of the bot and of the version have the reasons.
pub(super) fn state(tournament: &TournamentLinks, bot: &Bot) -> Markup {
    let pending = bot.pending.as_ref();
    html! {
        @match bot.state.as_str() {
            "withdrawn" | "suspended" => strong { (bot.state) },
            "entered" => "entered",
            _ => {},
        }
        @if let Some(version) = pending {
            @if bot.newest.is_some() || bot.state == "withdrawn" { "; version " (version.number) ": " }
            a href={ (tournament.bot_path(&bot.name)) "/versions/" (version.number) } {
                (version_state(&version.state))
            }
        }
    }
}

/// Why a bot is suspended, and how it enters again. `subject` names the bot.
pub(super) fn suspension(subject: &Markup, reason: &str) -> Markup {
    html! {
        (subject) " is suspended: " (layout::end_of_sentence(reason))
        " To enter again, submit a new version while entry is open, or ask an organiser to "
        "reinstate the bot."
    }
}

/// The players who were invited and have not submitted, for organisers.
fn invited_players(tournament: &str, players: &[InvitedPlayer]) -> Markup {
    let heads = ["Player", "Invited", "Last seen", "Last submission elsewhere"];
    let time =
        |micros: i64| html! { @if micros == 0 { "never" } @else { (layout::timestamp(micros)) } };
    let row = |player: &InvitedPlayer| {
        html! {
            th scope="row" { (player.name) }
            td { (layout::timestamp(player.invited_at_us)) }
            td { (time(player.last_used_at_us)) }
            td { (time(player.last_submitted_at_us)) }
        }
    };
    html! {
        section aria-labelledby="invited" {
            h2 #invited { "Invited players without a bot here" }
            @if players.is_empty() { p { "There are none." } }
            @else { (layout::table("Invited players", "invited", &heads, players.iter().map(row))) }
            p { a href={ "/invitations?t=" (tournament) } { "Invite players" } ". Only organisers see this list." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_suspension_is_one_sentence_before_the_remedy() {
        for reason in ["`run` failed", "`run` failed."] {
            assert_eq!(
                suspension(&html! { "This bot" }, reason).into_string(),
                "This bot is suspended: <code>run</code> failed. To enter again, submit a new \
                 version while entry is open, or ask an organiser to reinstate the bot."
            );
        }
    }
}
