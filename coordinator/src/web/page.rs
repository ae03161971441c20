//! What all pages have in common.

use std::fmt::Write as _;

use arbiter_proto::v1::{Edition, MatchSeat};
use maud::{DOCTYPE, Markup, html};
use time::OffsetDateTime;
use time::macros::format_description;

use super::session::Session;

/// A page for somebody, under its title.
pub(super) fn page(title: &str, session: &Session, body: &Markup) -> Markup {
    for_session(title, session, &html! { h1 { (title) } (body) })
}

/// One of the pages of a tournament, under its title; the one that is shown is marked by its `tab`.
pub(super) fn of_tournament(
    (tournament, tab): (&str, &str),
    title: &str,
    session: &Session,
    body: &Markup,
) -> Markup {
    for_session(title, session, &html! { h1 { (title) } (tabs(tournament, tab)) (body) })
}

/// A page for somebody, who may log in or out.
pub(super) fn for_session(title: &str, session: &Session, body: &Markup) -> Markup {
    let who = html! {
        @if session.is_somebody() {
            form.inline method="post" action="/logout" {
                (csrf(session))
                button type="submit" { "Log out" }
            }
        } @else {
            a href="/login" { "Log in" }
        }
    };
    framed(title, &html! {}, &ways(&who), body)
}

/// A page that is the same for everybody, under its title.
pub(super) fn plain(title: &str, body: &Markup) -> Markup {
    framed(title, &html! {}, &ways(&html! {}), &html! { h1 { (title) } (body) })
}

/// The ways from every page to others.
fn ways(who: &Markup) -> Markup {
    html! {
        a.home href="/" { "Arbiter" }
        a href="/queue" { "Workers and queue" }
        (who)
    }
}

/// A whole page: `more` is for its head, `ways` lead to others. What it looks like comes with
/// [`dressed`](super::dressed).
pub fn framed(title: &str, more: &Markup, ways: &Markup, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – Arbiter" }
                link rel="icon" href="/assets/arbiter.svg" type="image/svg+xml";
                link rel="stylesheet" href="/assets/arbiter.css";
                script src="/assets/arbiter.js" defer {}
                (more)
            }
            body {
                a.skip href="#main" { "To the content" }
                header { nav aria-label="Arbiter" { (ways) } }
                main id="main" { (body) }
            }
        }
    }
}

/// The pages of a tournament; the one that is shown is marked.
pub(super) fn tabs(tournament: &str, shown: &str) -> Markup {
    let tabs = [
        ("Tournament", ""),
        ("Leaderboard", "/ranking"),
        ("Head to head", "/matrix"),
        ("Matches", "/matches"),
        ("Schedule", "/schedule"),
        ("Submit", "/submit"),
    ];
    html! {
        nav.tabs aria-label=(tournament) {
            @for (label, path) in tabs {
                a href={ "/t/" (tournament) (path) } aria-current=[(label == shown).then_some("page")] {
                    (label)
                }
            }
        }
    }
}

/// A table that may be wider than the screen, and what it is called.
pub(super) fn wide(label: &str, table: &Markup) -> Markup {
    html! { div.wide role="group" tabindex="0" aria-label=(label) { (table) } }
}

/// A table that may be wider than the screen: what it is called, how it looks, the heads of its
/// columns, and the cells of each row.
pub(super) fn table(
    label: &str,
    class: &str,
    heads: &[&str],
    rows: impl IntoIterator<Item = Markup>,
) -> Markup {
    let class = (!class.is_empty()).then_some(class);
    let table = html! {
        table class=[class] {
            thead { tr { @for head in heads { th scope="col" { (head) } } } }
            tbody { @for row in rows { tr { (row) } } }
        }
    };
    wide(label, &table)
}

/// What every form carries.
pub(super) fn csrf(session: &Session) -> Markup {
    html! { input type="hidden" name="csrf" value=(session.csrf()); }
}

/// Why what was asked for was refused, beside the form.
pub(super) fn refused(why: Option<&str>) -> Markup {
    html! { @if let Some(why) = why { p.refused role="alert" { (why) } } }
}

/// A link to a bot.
pub(super) fn bot(tournament: &str, bot: &str) -> Markup {
    html! { a href={ "/t/" (tournament) "/bots/" (bot) } { (bot) } }
}

/// A link to a match, by its name.
pub(super) fn match_link(name: &str) -> Markup {
    html! { a href={ "/matches/" (name) } { (name) } }
}

/// Who sat where in a match, and what it brought them.
pub(super) fn seats(tournament: &str, seats: &[MatchSeat]) -> Markup {
    html! {
        ol.seats {
            @for seat in seats {
                li {
                    (bot(tournament, &seat.bot)) " "
                    @if !seat.score.is_empty() { b { (numbers(&seat.score)) } }
                    @if !seat.forfeit.is_empty() { " " em.forfeit { (seat.forfeit) } }
                    @if seat.bad_answers > 0 { " " em { (seat.bad_answers) " bad answers" } }
                }
            }
        }
    }
}

/// Numbers one after the other.
pub(super) fn numbers(numbers: &[i64]) -> String {
    let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
    numbers.join(" ")
}

/// Bytes in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").expect("a string takes every text");
        digits
    })
}

/// How an edition goes on from `now`, if that can be said.
pub(super) fn forecast(edition: &Edition, now: OffsetDateTime) -> Markup {
    let (Some(eta), Some(rate)) = (edition.eta_us, edition.rate) else { return html! {} };
    let left = OffsetDateTime::from_unix_timestamp_nanos(i128::from(eta) * 1000).ok();
    let left = left.map(|eta| (eta - now).whole_seconds().max(0)).unwrap_or_default();
    html! {
        span.forecast {
            (self::rate(rate)) " on " (edition.slots) " slots; done about " (moment(eta))
            ", in " (lasting(left))
        }
    }
}

/// How fast matches are played, from matches in a second.
fn rate(rate: f64) -> String {
    if rate < 1.0 {
        format!("{:.1} matches a minute", rate * 60.0)
    } else {
        format!("{rate:.1} matches a second")
    }
}

/// A time of so many seconds, for people.
pub(super) fn lasting(seconds: i64) -> String {
    match seconds {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7200 => format!("{} min", seconds / 60),
        seconds @ ..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// A time of so many microseconds, for people.
pub(super) fn span(micros: u64) -> String {
    match micros {
        micros @ ..1000 => format!("{micros} µs"),
        micros @ ..10_000 => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        micros @ ..10_000_000 => format!("{} ms", micros / 1000),
        micros => format!("{} s", micros / 1_000_000),
    }
}

/// A time, from microseconds since 1970.
pub(super) fn moment(micros: i64) -> Markup {
    let format = format_description!("[year]-[month]-[day] [hour]:[minute] UTC");
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000).ok();
    let text = time.and_then(|time| time.format(&format).ok());
    html! { time { (text.unwrap_or_default()) } }
}

/// How much of an edition is counted, as a bar with its numbers.
pub(super) fn progress_of(edition: &Edition) -> Markup {
    progress(edition.counted, edition.matches, edition.open_ended)
}

/// Matches of an edition by where their lots stand.
pub(super) fn lots(edition: &Edition) -> Markup {
    html! { @for lot in &edition.lots { span.lot { (lot.state) " " b { (lot.matches) } } " " } }
}

/// Part of a whole, as a bar with its numbers.
pub(super) fn progress(counted: i64, matches: i64, growing: bool) -> Markup {
    let more = if growing { "+" } else { "" };
    html! {
        progress max=(matches.max(1)) value=(counted) aria-label="matches counted" {}
        " " (counted) " of " (matches) (more) " matches"
    }
}
