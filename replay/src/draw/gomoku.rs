//! Gomoku: the stones in the order in which they were put.

use std::fmt::Write as _;

use arbiter_games::gomoku::{Board, Colour, Match, Phase, SIDE, Square};
use arbiter_games::{BotName, Seat};
use maud::{Markup, html};

use super::{Key, Picture, name, number};

/// The squares that are marked with a dot, as on a board of wood.
const DOTS: [u8; 3] = [3, 7, 11];

/// What a picture of this state shows.
pub(super) fn key(game: &Match) -> Key {
    let (phase, black) = match game.phase() {
        Phase::Open => (0, 0),
        Phase::Swap => (1, 0),
        Phase::Choose => (2, 0),
        Phase::Play { black, .. } => (3, u64::from(black.number())),
    };
    [number(game.placed().len()), phase, black, u64::from(game.is_over()), 0, 0]
}

/// Draws the board.
pub(super) fn draw(game: &Match, names: &[BotName]) -> Picture {
    let caption = caption(game, names);
    let stones = game.placed().iter().zip(1..).map(|(square, order)| {
        (*square, game.board().get(*square).unwrap_or(Colour::Black), order)
    });
    let stones: Vec<(Square, Colour, usize)> = stones.collect();
    let last = game.placed().last().copied();
    let markup = html! {
        svg.board.gomoku viewBox="-1.2 -1.2 15.9 15.9" role="img" aria-label=(caption) {
            title { (caption) }
            desc { (description(game)) }
            path.grid d=(grid()) {}
            @for x in DOTS { @for y in DOTS { circle.dot cx=(x) cy=(y) r="0.1" {} } }
            @for index in 0..SIDE {
                text.label x=(index) y="-0.75" { (index) }
                text.label x="-0.85" y=(index) { (index) }
            }
            @for (square, colour, order) in &stones {
                (stone(*square, *colour, *order, last == Some(*square)))
            }
            @if let Some(row) = last.and_then(|last| winning(game, last)) {
                line.row x1=(row.0.x()) y1=(row.0.y()) x2=(row.1.x()) y2=(row.1.y()) {}
            }
        }
        (colours(game, names))
    };
    Picture { caption, markup }
}

/// The lines of the board, as a path.
fn grid() -> String {
    let last = SIDE - 1;
    let mut path = String::new();
    for index in 0..SIDE {
        write!(path, "M{index},0V{last}M0,{index}H{last}").expect("a string takes every text");
    }
    path
}

fn stone(square: Square, colour: Colour, order: usize, last: bool) -> Markup {
    let class = match colour {
        Colour::Black => "stone black",
        Colour::White => "stone white",
    };
    html! {
        g class=(class) {
            circle cx=(square.x()) cy=(square.y()) r="0.45" {}
            text x=(square.x()) y=(square.y()) { (order) }
            @if last { circle.last cx=(square.x()) cy=(square.y()) r="0.53" {} }
        }
    }
}

/// The ends of the row that the last stone completed, if the match was won by it.
fn winning(game: &Match, last: Square) -> Option<(Square, Square)> {
    game.winner().and_then(|_| game.board().row(last, game.overline()))
}

/// Who plays which colour.
fn colours(game: &Match, names: &[BotName]) -> Markup {
    let Phase::Play { black, .. } = game.phase() else {
        return html! { p.sides { "The colours are not settled yet." } };
    };
    let white = Seat::from_index(1 - black.index());
    html! {
        p.sides {
            span.stone-black { "●" } " " (name(names, black)) " plays black, "
            span.stone-white { "○" } " " (name(names, white)) " white."
        }
    }
}

fn description(game: &Match) -> String {
    let board: &Board = game.board();
    let of = |wanted| board.stones().filter(|(_, colour)| *colour == wanted).count();
    format!(
        "A board of {SIDE} by {SIDE} squares with {} black and {} white stones: {}",
        of(Colour::Black),
        of(Colour::White),
        board.text()
    )
}

fn caption(game: &Match, names: &[BotName]) -> String {
    let (opener, other) = (name(names, Seat::from_index(0)), name(names, Seat::from_index(1)));
    if game.is_over() {
        return match game.winner() {
            Some(winner) => format!("{} has won.", name(names, winner)),
            None => "A tie: the board is full.".to_owned(),
        };
    }
    match game.phase() {
        Phase::Open => format!("Opening: {opener} is to put two black stones and a white one."),
        Phase::Swap => format!(
            "Swap: {other} is to take black, or put a white stone and take white, or put two \
             stones and let {opener} choose."
        ),
        Phase::Choose => format!("Swap: {opener} is to choose its colour."),
        Phase::Play { .. } => {
            let put = game.placed().len();
            format!("{} is to move; {put} stones are on the board.", name(names, game.to_answer()))
        }
    }
}
