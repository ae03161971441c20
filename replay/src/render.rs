//! Renders a step as a fragment of a page.

use std::fmt::Write as _;

use arbiter_games::picture::name;
use arbiter_games::{BotName, Micros, Seat, SeatResult};
use maud::{Markup, Render, html};

use crate::steps_builder::{Clock, Step};

/// The style sheet of the pictures. The page sets their colours, for the light and the dark theme,
/// in the variables `--seat1` to `--seat4`, `--ink`, `--paper`, `--faint` and `--wood`.
pub const STYLE: &str = include_str!("style.css");

impl Step {
    /// Renders the step of a match between bots of these names.
    pub fn render(&self, names: &[BotName]) -> Markup {
        html! {
            article.step data-step=(self.index) {
                @if let Some(seat) = self.seat {
                    p.said {
                        span class={ "who seat" (seat) } { (seat) " " (name(names, seat)) }
                        @if let Some(reply) = &self.reply { " " code { (reply) } }
                        @if let Some(forfeit) = &self.forfeit {
                            " " strong.forfeit { "forfeits – " (forfeit) }
                        }
                    }
                }
                figure {
                    figcaption { (self.picture.caption) }
                    div.table tabindex="0" role="group" aria-label="the table" {
                        (self.picture.markup)
                    }
                }
                div.beside tabindex="0" role="group" aria-label="result and clocks" {
                    @if let Some(standings) = &self.standings { (result(standings, names)) }
                    (clocks(&self.clocks, names, self.time))
                }
            }
        }
    }
}

/// The result of the match.
fn result(standings: &[SeatResult], names: &[BotName]) -> Markup {
    html! {
        table.result {
            caption { "Result" }
            thead { tr { th { "Seat" } th { "Bot" } th.number { "Score" } th { "Forfeit" } } }
            tbody {
                @for (seat, standing) in Seat::all(standings.len()).zip(standings) {
                    tr {
                        td class={ "seat" (seat) } { (seat) }
                        td { (name(names, seat)) }
                        td.number data-score=(score(standing)) { (score(standing)) }
                        td { @if let Some(forfeit) = standing.forfeit { (forfeit.as_str()) } }
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

/// The clocks of all seats.
fn clocks(clocks: &[Clock], names: &[BotName], time: Micros) -> Markup {
    let has_banks = clocks.iter().any(|clock| clock.left.is_some());
    html! {
        table.clocks {
            caption { "Clocks, " (Seconds(time)) " after the beginning" }
            thead {
                tr {
                    th { "Seat" } th { "Bot" } th.number { "Last reply" } th.number { "Total" }
                    @if has_banks { th.number { "Left" } }
                }
            }
            tbody {
                @for (seat, clock) in Seat::all(clocks.len()).zip(clocks) {
                    tr {
                        td class={ "seat" (seat) } { (seat) }
                        td { (name(names, seat)) }
                        td.number { @if let Some(last) = clock.last { (Seconds(last.wall)) } }
                        td.number { (Seconds(clock.used)) }
                        @if has_banks {
                            td.number { @if let Some(left) = clock.left { (Seconds(left)) } }
                        }
                    }
                }
            }
        }
    }
}

/// A time in seconds with milliseconds, for people.
struct Seconds(Micros);

impl Render for Seconds {
    fn render_to(&self, buffer: &mut String) {
        let millis = self.0.floor_millis();
        let seconds = millis / 1000;
        let rest = millis % 1000;
        write!(buffer, "{seconds}.{rest:03} s").expect("a string takes every text");
    }
}
