//! The layout of all pages, and formatting helpers that pages share.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use arbiter_games::Micros;
use arbiter_proto::edition_status::{EditionStatus, speed};
use arbiter_proto::state_words::match_state;
use arbiter_proto::v1::{Edition, MatchSeat};
pub(super) use arbiter_replay::label;
use arbiter_replay::{is_bidi_control, number_text, without_bidi_controls};
use maud::{DOCTYPE, Markup, PreEscaped, Render, html};
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

use super::queue;
use super::session::Session;
use super::tournament_links::TournamentLinks;
use crate::service::Principal;

/// A page below the home page, with its title as heading and the session's login state.
pub(super) fn page(title: &str, session: &Session, body: &Markup) -> Markup {
    page_below(&[], title, session, body)
}

/// Like [`page`], below these pages: their labels and paths.
pub(super) fn page_below(
    parents: &[(&str, String)],
    title: &str,
    session: &Session,
    body: &Markup,
) -> Markup {
    let body = html! { (breadcrumbs(parents)) h1 { (title) } (body) };
    session_page(title, session, &body)
}

/// A page with the login state of the session: who is logged in, and a button to log in or out.
/// `body` contains the breadcrumbs and the heading.
pub(super) fn session_page(title: &str, session: &Session, body: &Markup) -> Markup {
    let login = html! {
        @if let Some(Principal { name, role, .. }) = session.caller.principal() {
            a.me title="Your bots and newest matches" href="/me" { bdi { (name) } " " span.quiet { (role) } }
        } @else {
            a href="/login" { "Log in" }
        }
        @if session.is_logged_in() {
            form.inline method="post" action="/logout" {
                (csrf_field(session))
                button type="submit" { "Log out" }
            }
        }
    };
    document(title, &html! {}, &navigation(&login), body)
}

/// A page below the home page that does not depend on a session, with its title as heading.
/// `offers_login` says whether its header has a link to log in.
pub(super) fn public_page(title: &str, offers_login: bool, body: &Markup) -> Markup {
    let body = html! { (breadcrumbs(&[])) h1 { (title) } (body) };
    let login = html! { @if offers_login { a href="/login" { "Log in" } } };
    document(title, &html! {}, &navigation(&login), &body)
}

/// Links to the home page and to these pages, which are above the page: labels and paths.
pub(super) fn breadcrumbs(parents: &[(&str, String)]) -> Markup {
    html! {
        nav.breadcrumbs aria-label="Breadcrumbs" {
            ol {
                li { a href="/" { "Tournaments" } }
                @for (label, path) in parents { li { a href=(path) { (label) } } }
            }
        }
    }
}

/// The links of the page header.
fn navigation(login: &Markup) -> Markup {
    html! {
        a.home href="/" { "Arbiter" }
        a href=(queue::PATH) { (queue::TITLE) }
        (login)
    }
}

/// An HTML document: `head` is added to the head, `navigation` to the header. It needs the assets
/// of [`with_assets`](super::with_assets).
pub fn document(title: &str, head: &Markup, navigation: &Markup, body: &Markup) -> Markup {
    let head = html! { script src="/assets/arbiter.js" defer {} (head) };
    let body = html! {
        a.skip href="#main" { "Skip to content" }
        header { nav aria-label="Arbiter" { (navigation) } }
        main id="main" { (body) }
    };
    bare_document(title, &head, &body)
}

/// An HTML document with nothing but this body. `head` is added to the head.
///
/// Text in it that could reorder other text is replaced.
pub(super) fn bare_document(title: &str, head: &Markup, body: &Markup) -> Markup {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – Arbiter" }
                link rel="icon" href="/assets/arbiter.svg" type="image/svg+xml";
                link rel="stylesheet" href="/assets/arbiter.css";
                (head)
            }
            body { (body) }
        }
    };
    PreEscaped(without_bidi_controls(page.into_string()))
}

/// Makes a table or code scroll if it is wider than the screen. `label` is its accessible name.
pub(super) fn scrollable(label: &str, wide: &Markup) -> Markup {
    html! { div.scrollable role="group" tabindex="0" aria-label=(label) { (wide) } }
}

/// Code that scrolls if it is wider than the screen: a wrapped line would look like two lines.
/// `label` is its accessible name.
pub(super) fn code(label: &str, code: &str) -> Markup {
    scrollable(label, &html! { pre { code { (code) } } })
}

/// A scrollable table: accessible name, CSS class, column headings, and the cells of each row.
/// The headings of columns with numbers are aligned as the numbers are.
pub(super) fn table(
    label: &str,
    class: &str,
    heads: &[impl Render],
    rows: impl IntoIterator<Item = Markup>,
) -> Markup {
    let class = (!class.is_empty()).then_some(class);
    let body: Vec<Markup> = rows.into_iter().collect();
    let numbers = number_columns(&body);
    let table = html! {
        table class=[class] {
            thead {
                tr {
                    @for (column, head) in heads.iter().enumerate() {
                        th class=[numbers.contains(&column).then_some("number")] scope="col" { (head) }
                    }
                }
            }
            tbody { @for row in &body { tr { (row) } } }
        }
    };
    scrollable(label, &table)
}

/// The columns, counted from 0, in which a row has a cell of the class `number`.
fn number_columns(rows: &[Markup]) -> BTreeSet<usize> {
    let is_number = |cell: &str| {
        let tag = cell.split('>').next().unwrap_or_default();
        let classes = tag.split_once("class=\"").and_then(|(_, rest)| rest.split('"').next());
        classes.is_some_and(|classes| classes.split(' ').any(|class| class == "number"))
    };
    let mut columns = BTreeSet::new();
    for row in rows {
        // Texts are escaped, so only the tags of cells begin with `<td` or `<th`.
        let cells = row.0.split("<t").skip(1).filter(|tag| tag.starts_with(['d', 'h']));
        columns.extend(cells.enumerate().filter(|(_, cell)| is_number(cell)).map(|(at, _)| at));
    }
    columns
}

/// The hidden field with the CSRF token, for every form.
pub(super) fn csrf_field(session: &Session) -> Markup {
    html! { input type="hidden" name="csrf" value=(session.csrf_token()); }
}

/// A text in a field of a form: in its `value`, or between the tags of a `textarea`.
///
/// Pages replace characters that could reorder other text ([`bare_document`]), but a form must send
/// back what it was given. So these characters are written as references.
pub(super) fn form_value(text: &str) -> Markup {
    let escaped = text.render().into_string();
    let mut value = String::with_capacity(escaped.len());
    for c in escaped.chars() {
        if is_bidi_control(c) {
            write!(value, "&#x{:x};", u32::from(c)).expect("writing to a string");
        } else {
            value.push(c);
        }
    }
    PreEscaped(value)
}

/// An error message above a form.
pub(super) fn error_message(message: Option<&str>) -> Markup {
    html! { @if let Some(message) = message { p.error-message role="alert" { (sentence(message)) } } }
}

/// A number with its noun: `1 worker`, `2 workers`.
pub(super) fn count<N>(number: N, singular: &str, plural: &str) -> String
where
    N: Copy + fmt::Display + PartialEq + From<u8>,
{
    let noun = if number == N::from(1) { singular } else { plural };
    format!("{number} {noun}")
}

/// The path of the page of a match, by the name of the match.
pub(super) fn match_path(name: &str) -> String {
    let (tournament, number) = name.split_once('/').unwrap_or((name, ""));
    format!("/t/{tournament}/matches/{number}")
}

/// What a match is called on pages of other sites, with the title of its tournament: `match 7 of
/// Spring Cup`.
pub(super) fn match_title(tournament: &str, number: i64) -> String {
    format!("match {number} of {tournament}")
}

/// Links to matches, by their numbers.
pub(super) fn match_numbers(names: &[String]) -> Markup {
    html! {
        @for (index, name) in names.iter().enumerate() {
            @if index > 0 { ", " }
            (match_number_link(name))
        }
    }
}

/// A link to a match by its number, for pages of one tournament.
pub(super) fn match_number_link(name: &str) -> Markup {
    html! { a href=(match_path(name)) { (name.rsplit('/').next().unwrap_or(name)) } }
}

/// A link to a match by its whole name, for lists of several tournaments.
pub(super) fn match_link(name: &str) -> Markup {
    html! { a href=(match_path(name)) { (name) } }
}

/// The bots of a match by seat, with scores and forfeits.
pub(super) fn seats(tournament: &TournamentLinks, seats: &[MatchSeat]) -> Markup {
    html! {
        ol.seats {
            @for seat in seats {
                li {
                    (tournament.bot(&seat.bot)) " "
                    @if !seat.score.is_empty() { b { (format_score(&seat.score)) } }
                    @if !seat.forfeit.is_empty() { " " em.forfeit { (seat.forfeit) } }
                    @if seat.bad_answers > 0 { " " em { (count(seat.bad_answers, "bad reply", "bad replies")) } }
                }
            }
        }
    }
}

/// The heading of the seats of matches, with the names of the components of their scores.
pub(super) fn seats_heading(columns: &[String]) -> String {
    match columns {
        [] => "Seats and scores".to_owned(),
        [only] => format!("Seats and {only}"),
        several => {
            let labels: Vec<_> = several.iter().map(|column| label(column)).collect();
            format!("Seats and scores ({})", labels.join(", "))
        }
    }
}

/// A text in which the parts between backticks are code, as in error messages.
pub(super) fn with_code(text: &str) -> Markup {
    if !text.matches('`').count().is_multiple_of(2) {
        return html! { (text) };
    }
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 0 { (part) } @else { code { (part) } }
        }
    }
}

/// An error message as a sentence: with a capital letter and a full stop. The message must not
/// begin with a name, such as that of a bot, because a name keeps its first letter.
pub(super) fn sentence(message: &str) -> Markup {
    end_of_sentence(&label(message))
}

/// An error message as the end of a sentence, after a colon. Several dots at its end are no full
/// stop, so they stay.
pub(super) fn end_of_sentence(message: &str) -> Markup {
    let has_stop = message.ends_with('.');
    html! { (with_code(message)) @if !has_stop { "." } }
}

/// The components of a score, separated by commas.
pub(super) fn format_score(score: &[i64]) -> String {
    let numbers: Vec<_> = score.iter().map(number_text).collect();
    numbers.join(", ")
}

/// The column headings of the components of scores.
pub(super) fn score_heads(columns: &[String]) -> Markup {
    html! { @for column in columns { th.number scope="col" { (label(column)) } } }
}

/// A cell for each component of a score; empty cells if there is no score.
pub(super) fn score_cells(score: &[i64], columns: usize) -> Markup {
    html! {
        @for column in 0..columns {
            td.number.score { @if let Some(number) = score.get(column) { (number_text(number)) } }
        }
    }
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").expect("writing to a string");
        digits
    })
}

/// The speed and the estimated end of an edition, if known.
pub(super) fn estimate(edition: &Edition, now: OffsetDateTime) -> Markup {
    let (Some(eta), Some(rate)) = (edition.eta_us, edition.rate) else { return html! {} };
    let left = from_micros(eta).map_or(0, |eta| (eta - now).whole_seconds().max(0));
    html! {
        span.estimate {
            (speed(rate)) " on " (count(edition.slots, "slot", "slots")) ", estimated end "
            (timestamp(eta)) " (in " (format_seconds(left)) ")"
        }
    }
}

/// When an edition will be complete, if known: `complete in 3 min`.
pub(super) fn time_left(edition: &Edition, now: OffsetDateTime) -> Markup {
    let end = edition.eta_us.and_then(from_micros);
    html! { @if let Some(end) = end { "complete " (relative(end.max(now), now)) } }
}

/// A duration in seconds as text.
pub(super) fn format_seconds(seconds: i64) -> String {
    match seconds {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..3600 => format!("{} min", seconds / 60),
        seconds @ ..7200 => format!("1 h {} min", seconds / 60 - 60),
        seconds @ ..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// A duration in milliseconds as text.
pub(super) fn format_millis(millis: i32) -> String {
    format_micros(u64::try_from(millis).unwrap_or_default() * 1000)
}

/// A duration in microseconds as text.
pub(super) fn format_micros(micros: u64) -> String {
    Micros(i64::try_from(micros).unwrap_or(i64::MAX)).rounded()
}

/// A time in UTC, from microseconds since 1970.
pub(super) fn timestamp(micros: i64) -> Markup {
    html! { @if let Some(at) = from_micros(micros) { (time(at)) } }
}

/// The time that is this many microseconds after 1970. None if it is out of range.
pub(super) fn from_micros(micros: i64) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000).ok()
}

/// A time in UTC as text, to the minute.
pub(super) fn format_time(at: OffsetDateTime) -> String {
    let at = at.to_offset(UtcOffset::UTC);
    let text = at.format(&format_description!("[year]-[month]-[day] [hour]:[minute] UTC"));
    text.unwrap_or_default()
}

/// A time in UTC.
pub(super) fn time(at: OffsetDateTime) -> Markup {
    time_with_text(at, &format_time(at))
}

/// A time that is shown as this text.
pub(super) fn time_with_text(at: OffsetDateTime, text: &str) -> Markup {
    let at = at.to_offset(UtcOffset::UTC);
    let exact = at.format(&format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z"));
    html! { time datetime=(exact.unwrap_or_default()) { (text) } }
}

/// How far a time is from now: `in 3 h`, `20 min ago`.
pub(super) fn relative(at: OffsetDateTime, now: OffsetDateTime) -> String {
    let seconds = (at - now).whole_seconds();
    if seconds >= 0 {
        format!("in {}", format_seconds(seconds))
    } else {
        format!("{} ago", format_seconds(-seconds))
    }
}

/// An edition and what its results are: `edition 3, official`.
pub(super) fn edition_label(number: i32, status: EditionStatus) -> Markup {
    html! { "edition " (number) ", " strong class=(status_class(status)) { (status) } }
}

/// The CSS class of a status.
pub(super) fn status_class(status: EditionStatus) -> &'static str {
    if status == EditionStatus::Official { "official" } else { "provisional" }
}

/// The progress of an edition: counted and planned matches.
pub(super) fn edition_progress(edition: &Edition) -> Markup {
    progress(edition.counted, edition.matches, edition.open_ended)
}

/// The number of matches of an edition by the state of their lots.
pub(super) fn lot_counts(edition: &Edition) -> Markup {
    html! { @for lot in &edition.lots { span.lot { (match_state(&lot.state)) " " b { (lot.matches) } } " " } }
}

/// The number of counted matches, with a bar until all are counted. `growing` marks a total that
/// can still increase.
pub(super) fn progress(counted: i64, matches: i64, growing: bool) -> Markup {
    let more = if growing { "+" } else { "" };
    let noun = if matches == 1 && !growing { "match" } else { "matches" };
    let is_complete = matches > 0 && counted >= matches && !growing;
    html! {
        @if !is_complete {
            progress max=(matches.max(1)) value=(counted) aria-label="Matches counted" {}
            " "
        }
        span.counted { (counted) " of " (matches) (more) " " (noun) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_message_becomes_a_sentence() {
        for (message, text) in [
            ("page not found", "Page not found."),
            ("the bot ada is yours", "The bot ada is yours."),
            ("there is no bot `ada`", "There is no bot <code>ada</code>."),
            ("`name` is missing", "<code>name</code> is missing."),
            ("a ` stays", "A ` stays."),
            ("Already a sentence.", "Already a sentence."),
            ("not `.` or `..`", "Not <code>.</code> or <code>..</code>."),
            ("not ..", "Not .."),
        ] {
            assert_eq!(sentence(message).into_string(), text);
        }
        let end = end_of_sentence("none of `ada` plays").into_string();
        assert_eq!(end, "none of <code>ada</code> plays.");
    }

    #[test]
    fn a_form_sends_back_the_characters_that_pages_replace() {
        let text = "<a> & \"b\" \u{2067}שלום\u{2069}\u{200f}!";
        let body = html! { p { (text) } input value=(form_value(text)); };
        let page = bare_document("Cup", &html! {}, &body).into_string();
        let shown = "<p>&lt;a&gt; &amp; &quot;b&quot; \u{fffd}שלום\u{fffd}\u{fffd}!</p>";
        let field = "value=\"&lt;a&gt; &amp; &quot;b&quot; &#x2067;שלום&#x2069;&#x200f;!\"";
        assert!(page.contains(shown) && page.contains(field), "{page}");
    }

    #[test]
    fn headings_of_numbers_are_aligned_as_the_numbers() {
        let row = |number: Markup| html! { th scope="row" { "a <td class=" } (number) td { "b" } };
        let rows = [row(html! { td {} }), row(html! { td class="number score" { "3" } })];
        let table = table("Scores", "", &["Bot", "Points", "State"], rows).into_string();
        let heads = "<th scope=\"col\">Bot</th><th class=\"number\" scope=\"col\">Points</th>\
                     <th scope=\"col\">State</th>";
        assert!(table.contains(heads), "{table}");
    }

    #[test]
    fn the_heading_of_seats_names_all_components_of_scores() {
        let heading = |names: &[&str]| {
            seats_heading(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(heading(&["points"]), "Seats and points");
        assert_eq!(heading(&["points", "discs"]), "Seats and scores (Points, Discs)");
        assert_eq!(heading(&[]), "Seats and scores");
    }

    #[test]
    fn a_bar_is_shown_until_all_matches_are_counted() {
        let shown = |counted, matches, growing| progress(counted, matches, growing).into_string();
        assert_eq!(shown(6, 6, false), "<span class=\"counted\">6 of 6 matches</span>");
        assert_eq!(shown(1, 1, false), "<span class=\"counted\">1 of 1 match</span>");
        for (counted, matches, growing, text) in [
            (0, 1, false, ">0 of 1 match<"),
            (5, 6, false, ">5 of 6 matches<"),
            (1, 1, true, ">1 of 1+ matches<"),
            (0, 0, false, ">0 of 0 matches<"),
        ] {
            let bar = shown(counted, matches, growing);
            assert!(bar.starts_with("<progress ") && bar.contains(text), "{bar}");
        }
    }

    #[test]
    fn a_match_is_linked_by_its_name() {
        let link = match_link("spring/1207").into_string();
        assert_eq!(link, "<a href=\"/t/spring/matches/1207\">spring/1207</a>");
        let links = match_numbers(&["cup/0".to_owned(), "cup/1".to_owned()]).into_string();
        assert!(links.contains(">0</a>, <a ") && links.ends_with(">1</a>"), "{links}");
    }
}
