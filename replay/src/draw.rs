//! What a match looks like, drawn from the state of its rules.
//!
//! Boards are SVG, tables of cards are HTML; both say in words what they show, and take their
//! colours from variables of the page's style sheet, [`crate::STYLE`].

mod bitwa;
mod blackjack;
mod gomoku;
mod tricks;
mod wojna;

use arbiter_games::{BotName, Seat, View};
use maud::{Markup, html};

/// A table at a moment.
#[derive(Clone, Debug)]
pub struct Picture {
    /// What is going on, in a sentence.
    pub caption: String,
    /// The picture.
    pub markup: Markup,
}

/// What a picture shows, as far as it takes to tell two of a match apart.
pub type Key = [u64; 6];

/// Draws a match between bots of these names, seat 1 first, with everything that is hidden from
/// somebody.
pub fn draw(view: View<'_>, names: &[BotName]) -> Picture {
    draw_for(view, names, None)
}

/// Draws a match as the player of a seat may see it: the cards of others lie face down. What is
/// hidden is not in the picture at all.
pub fn draw_for(view: View<'_>, names: &[BotName], eyes: Option<Seat>) -> Picture {
    match view {
        View::Wojna(game) => wojna::draw(game, names, eyes),
        View::Bitwa(game) => bitwa::draw(game, names),
        View::Tricks(game) => tricks::draw(game, names, eyes),
        View::Blackjack(game) => blackjack::draw(game, names),
        View::Gomoku(game) => gomoku::draw(game, names),
    }
}

/// What a picture of this state shows.
pub fn key(view: View<'_>) -> Key {
    match view {
        View::Wojna(game) => wojna::key(game),
        View::Bitwa(game) => bitwa::key(game),
        View::Tricks(game) => tricks::key(game),
        View::Blackjack(game) => blackjack::key(game),
        View::Gomoku(game) => gomoku::key(game),
    }
}

/// The part of the match that this state belongs to, in games that have parts.
pub(crate) fn chapter(view: View<'_>) -> Option<String> {
    match view {
        View::Wojna(game) => Some(format!("Deal {}", game.number().max(1))),
        View::Bitwa(game) => Some(format!("Round {}", game.round())),
        View::Blackjack(game) => Some(format!("Hand {}", game.dealt().max(1))),
        View::Tricks(_) | View::Gomoku(_) => None,
    }
}

/// Whether the player of `eyes`, or somebody who sees everything, may see what `seat` holds.
fn sees(eyes: Option<Seat>, seat: Seat) -> bool {
    eyes.is_none_or(|eyes| eyes == seat)
}

/// The name of the bot at a seat.
fn name(names: &[BotName], seat: Seat) -> &str {
    names.get(seat.index()).map_or("?", BotName::as_str)
}

/// A number for a [`Key`].
fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// The seats that pass a test, as bits of a number.
fn bits(seats: usize, test: impl Fn(Seat) -> bool) -> u64 {
    Seat::all(seats).fold(0, |bits, seat| 2 * bits + u64::from(test(seat)))
}

/// A card that lies open, or face down if it has no text.
fn card(text: &str, class: &str) -> Markup {
    html! {
        @if text.is_empty() {
            span.card.down title="face down" { "▒" }
        } @else {
            span class={ "card " (class) } { (text) }
        }
    }
}
