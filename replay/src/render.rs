//! Renders a step as a fragment of a page.

use arbiter_games::picture::name;
use arbiter_games::{Allowance, EntrantName, Forfeit, Micros, Seat, SeatResult, Text};
use maud::{Markup, PreEscaped, html};

use crate::steps_builder::{Clock, Step, StepForfeit};
use crate::visible_text::{label, number_text, without_bidi_controls};

impl Step {
    /// Renders the step of a match between bots of these names.
    pub fn render(&self, names: &[EntrantName]) -> Markup {
        PreEscaped(without_bidi_controls(self.markup(names).into_string()))
    }

    fn markup(&self, names: &[EntrantName]) -> Markup {
        html! {
            article.step data-step=(self.index) {
                @if let Some(forfeit) = &self.forfeit {
                    (self.reply_line(names))
                    (evidence(forfeit, self.reply.is_some()))
                }
                figure {
                    figcaption { (self.picture.caption) }
                    div.table tabindex="0" role="group" aria-label="the table" {
                        (self.picture.markup)
                    }
                    // Below the picture, because replies take from none to many lines.
                    @if self.forfeit.is_none() { (self.reply_line(names)) }
                }
                div.beside tabindex="0" role="group" aria-label="result and clocks" {
                    @if let Some(standings) = &self.standings {
                        (result(standings, &self.columns, names))
                    }
                    (clocks(&self.clocks, names, self.time))
                }
            }
        }
    }

    /// The seat that acted, its reply and its forfeit.
    fn reply_line(&self, names: &[EntrantName]) -> Markup {
        html! {
            @if let Some(seat) = self.seat {
                p.said {
                    (who(seat, names))
                    @if let Some(reply) = &self.reply { " sent: " code { (reply) } }
                    @if let Some(forfeit) = &self.forfeit {
                        @if self.reply.is_some() { "; it" }
                        " " strong.forfeit {
                            "forfeits – " (forfeit.kind) ": " (reason(forfeit.kind))
                        }
                    }
                }
            }
        }
    }
}

/// The seat and the name of a bot, on one line.
pub(crate) fn who(seat: Seat, names: &[EntrantName]) -> Markup {
    html! { span class={ "who seat" (seat) } { (seat) "\u{a0}" (name(names, seat)) } }
}

/// A kind of forfeit in words.
fn reason(kind: Forfeit) -> &'static str {
    match kind {
        Forfeit::Clock => "its time ran out",
        Forfeit::Illegal => "its reply breaks the rules",
        Forfeit::Gone => "its program crashed, exited or closed a pipe",
        Forfeit::Flood => "its output exceeded the size limit",
    }
}

/// What shows that a forfeit is justified: the rule, the limit and the time.
fn evidence(forfeit: &StepForfeit, has_reply: bool) -> Markup {
    html! {
        dl.evidence {
            @if !forfeit.detail.is_empty() { dt { "Evidence" } dd { (forfeit.detail) } }
            @if !has_reply && forfeit.kind == Forfeit::Clock {
                dt { "Sent" } dd { "no reply in time" }
            }
            @if let Some(allowance) = forfeit.allowance {
                dt { "Limit" }
                dd {
                    @match allowance {
                        Allowance::Bank(left) => { (left.rounded()) " left in its bank" }
                        Allowance::Move(limit) => { (limit.rounded()) " for this reply" }
                    }
                }
            }
            @if let Some(spent) = forfeit.spent {
                dt { "Time" }
                dd { (spent.wall.rounded()) "; processor " (spent.cpu.rounded()) }
            }
        }
    }
}

/// The result of the match. `columns` are the names of the components of a score, if known.
fn result(standings: &[SeatResult], columns: &[Text], names: &[EntrantName]) -> Markup {
    let shown_columns = score_columns(columns, standings);
    let has_forfeits = standings.iter().any(|standing| standing.forfeit.is_some());
    html! {
        table.result {
            caption { "Result" }
            thead {
                tr {
                    th { "Seat" } th { "Bot" } (score_heads(shown_columns))
                    @if has_forfeits { th { "Forfeit" } }
                }
            }
            tbody {
                @for (seat, standing) in Seat::all(standings.len()).zip(standings) {
                    tr data-score=(score(standing)) {
                        td class={ "seat" (seat) } { (seat) }
                        td.bot { (name(names, seat)) }
                        (score_cells(standing, shown_columns))
                        @if has_forfeits {
                            td { @if let Some(forfeit) = standing.forfeit { (forfeit.as_str()) } }
                        }
                    }
                }
            }
        }
    }
}

/// The components of a score, the most important first.
fn score(standing: &SeatResult) -> String {
    let numbers: Vec<_> = standing.score.0.iter().map(ToString::to_string).collect();
    numbers.join(" ")
}

/// The columns of these names, if each score has as many components. Else none: then one column
/// contains the whole scores.
pub(crate) fn score_columns<'a>(columns: &'a [Text], standings: &[SeatResult]) -> &'a [Text] {
    let fits = standings.iter().all(|standing| standing.score.0.len() == columns.len());
    if fits { columns } else { &[] }
}

/// The column headings of scores.
pub(crate) fn score_heads(columns: &[Text]) -> Markup {
    html! {
        @if columns.is_empty() { th.number { "Score" } }
        @for column in columns { th.number { (label(column)) } }
    }
}

/// The cells of a score, with minus signs: one for each column, or one with commas.
pub(crate) fn score_cells(standing: &SeatResult, columns: &[Text]) -> Markup {
    let numbers: Vec<_> = standing.score.0.iter().map(number_text).collect();
    html! {
        @if columns.is_empty() {
            td.number.score { (numbers.join(", ")) }
        } @else {
            @for number in &numbers { td.number.score { (number) } }
        }
    }
}

/// The clocks of all seats: times and, in games with a time bank, a bar of its rest.
fn clocks(clocks: &[Clock], names: &[EntrantName], time: Micros) -> Markup {
    html! {
        section.clocks aria-label="Clocks" {
            p {
                @if time == Micros::ZERO { "Clocks at the start" }
                @else { "Clocks after " (time.rounded()) }
            }
            ul {
                @for (seat, clock) in Seat::all(clocks.len()).zip(clocks) {
                    li { (who(seat, names)) (bar(clock, seat)) (times(clock)) }
                }
            }
        }
    }
}

/// The rest of a time bank as a bar.
fn bar(clock: &Clock, seat: Seat) -> Markup {
    html! {
        @if let (Some(limit), Some(left)) = (clock.limit, clock.left) {
            meter min="0" max=(limit.0.max(1)) value=(left.0)
                aria-label={ "time left, seat " (seat) } {}
        }
    }
}

fn times(clock: &Clock) -> Markup {
    html! {
        span.times {
            @if let Some(left) = clock.left { b { (left.rounded()) } " left" }
            @if let Some(last) = clock.last {
                @if clock.left.is_some() { ", " }
                "last " (last.wall.rounded())
                @if let Some(limit) = clock.limit.filter(|_| clock.left.is_none()) {
                    " of at most " (limit.rounded())
                }
                ", total " (clock.used.rounded())
            } @else if clock.left.is_none() { "no time used yet" }
        }
    }
}
