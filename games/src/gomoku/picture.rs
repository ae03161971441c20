//! The picture of gomoku: the stones with their order.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write as _;

use super::{Board, Colour, EXIT, Match, Phase, SIDE, Square, moves};
use crate::match_state::{MatchView, Seat};
use crate::move_form::{FormFields, MoveForm};
use crate::name::BotName;
use crate::picture::{BoardPicture, Item, Key, Part, Picture, Shape, ShapeKind, name, number};

/// The coordinates of dots, as on a wooden board.
const DOTS: [u8; 3] = [3, 7, 11];

impl MatchView for Match {
    fn picture(&self, names: &[BotName], _viewer: Option<Seat>) -> Picture {
        let last = self.placed().last().copied();
        let mut shapes = empty_board();
        for (number, square) in (1..).zip(self.placed()) {
            let colour = self.board().get(*square).unwrap_or(Colour::Black);
            shapes.push(stone(*square, colour, number, last == Some(*square)));
        }
        if let Some((from, to)) = last.and_then(|last| winning_row(self, last)) {
            let ends: [(_, &dyn core::fmt::Display); 4] =
                [("x1", &from.x()), ("y1", &from.y()), ("x2", &to.x()), ("y2", &to.y())];
            shapes.push(Shape::new(ShapeKind::Line, "row").with_attributes(ends));
        }
        let board = BoardPicture {
            class: "board gomoku",
            view: "-1.2 -1.2 15.9 15.9".to_owned(),
            description: description(self),
            shapes,
        };
        let sides = Part::Line { class: "sides", items: colours(self, names) };
        Picture { caption: caption(self, names), parts: vec![Part::Board(board), sides] }
    }

    fn picture_key(&self) -> Key {
        let (phase, black) = match self.phase() {
            Phase::Open => (0, 0),
            Phase::Swap => (1, 0),
            Phase::Choose => (2, 0),
            Phase::Play { black, .. } => (3, u64::from(black.number())),
        };
        [number(self.placed().len()), phase, black, u64::from(self.is_over()), 0, 0]
    }

    fn is_farewell(&self, unit: &str) -> bool {
        unit.split_whitespace().next() == Some(EXIT)
    }

    fn move_form(&self, _seat: Seat, chosen: &FormFields) -> MoveForm {
        moves::move_form(self, chosen)
    }

    fn form_reply(&self, _seat: Seat, fields: &FormFields) -> Result<String, String> {
        moves::reply(fields)
    }
}

/// The empty board: its lines, dots and numbers.
fn empty_board() -> Vec<Shape> {
    let mut shapes = vec![Shape::new(ShapeKind::Path, "grid").with_attributes([("d", &grid())])];
    for x in DOTS {
        for y in DOTS {
            shapes.push(circle("dot", x, y, "0.1"));
        }
    }
    let label = || Shape::new(ShapeKind::Text, "label");
    for index in 0..SIDE {
        shapes.push(label().with_attributes([("x", &index), ("y", &"-0.75")]).with_text(index));
        shapes.push(label().with_attributes([("x", &"-0.85"), ("y", &index)]).with_text(index));
    }
    shapes
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

fn circle(class: &'static str, x: u8, y: u8, radius: &'static str) -> Shape {
    Shape::new(ShapeKind::Circle, class).with_attributes([("cx", &x), ("cy", &y), ("r", &radius)])
}

fn stone(square: Square, colour: Colour, number: usize, is_last: bool) -> Shape {
    let class = match colour {
        Colour::Black => "stone black",
        Colour::White => "stone white",
    };
    let x = square.x();
    let y = square.y();
    let text =
        Shape::new(ShapeKind::Text, "").with_attributes([("x", &x), ("y", &y)]).with_text(number);
    let mut parts = vec![circle("", x, y, "0.45"), text];
    parts.extend(is_last.then(|| circle("last", x, y, "0.53")));
    Shape::new(ShapeKind::Group, class).with_shapes(parts)
}

/// The ends of the winning row, if the last stone won the match.
fn winning_row(game: &Match, last: Square) -> Option<(Square, Square)> {
    game.winner().and_then(|_| game.board().row(last, game.overline()))
}

/// The colours of the bots.
fn colours(game: &Match, names: &[BotName]) -> Vec<Item> {
    let Phase::Play { black, .. } = game.phase() else {
        return vec![Item::text("The colours are not settled yet.")];
    };
    let white = Seat::from_index(1 - black.index());
    let stone = |class, text| Item::Sign { class, title: None, text };
    vec![
        stone("stone-black", "●"),
        Item::text(format!(" {} plays black, ", name(names, black))),
        stone("stone-white", "○"),
        Item::text(format!(" {} white.", name(names, white))),
    ]
}

fn description(game: &Match) -> String {
    let board: &Board = game.board();
    let count = |colour| board.stones().filter(|(_, stone)| *stone == colour).count();
    format!(
        "A board of {SIDE} by {SIDE} squares with {} black and {} white stones: {}",
        count(Colour::Black),
        count(Colour::White),
        board.text()
    )
}

fn caption(game: &Match, names: &[BotName]) -> String {
    let opener = name(names, Seat::from_index(0));
    let other = name(names, Seat::from_index(1));
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
            let stones = game.placed().len();
            format!("{} is to move; {stones} stones are on the board.", name(names, game.turn()))
        }
    }
}
