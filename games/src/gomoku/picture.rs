//! The picture of gomoku: the stones, the order of the last ones, and how the colours were chosen.
//!
//! All stones of a colour are one path of dots. So a full board is as short as a few stones.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write as _;

use super::{Board, Colour, EXIT, Match, Phase, ROW, SIDE, Square, colour_at, moves};
use crate::match_state::{MatchView, Seat};
use crate::move_form::{FormFields, MoveForm};
use crate::name::EntrantName;
use crate::picture::{
    BoardPicture, Item, Key, Line, Part, Picture, Shape, ShapeKind, list, name, number,
};

/// The coordinates of dots, as on a wooden board.
const DOTS: [u8; 3] = [3, 7, 11];
/// The number of last stones that show their numbers.
const NUMBERED: usize = 6;
/// The number of stones of the first opening move.
const OPENING: usize = 3;

impl MatchView for Match {
    fn picture(&self, names: &[EntrantName], _viewer: Option<Seat>) -> Picture {
        let mut shapes = empty_board();
        shapes.extend(stones(self));
        let board = BoardPicture {
            class: "board gomoku",
            view: "-1.2 -1.2 15.9 15.9".to_owned(),
            description: description(self),
            shapes,
        };
        let sides = Part::Line(Line::new("sides", sides(self, names)));
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

    fn chapter(&self) -> Option<String> {
        let is_game = matches!(self.phase(), Phase::Play { .. });
        Some(if is_game { "Game" } else { "Opening" }.to_owned())
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
    let dots = DOTS.into_iter().flat_map(|x| DOTS.map(|y| Square::new(x, y)));
    let label = || Shape::new(ShapeKind::Text, "");
    let labels = (0..SIDE).flat_map(|index| {
        let top = label().with_attributes([("x", &index), ("y", &"-.75")]).with_text(index);
        let left = label().with_attributes([("x", &"-.85"), ("y", &index)]).with_text(index);
        [top, left]
    });
    vec![
        Shape::path("grid", &grid()),
        Shape::path("dots", &points(dots.flatten())),
        Shape::new(ShapeKind::Group, "labels").with_shapes(labels.collect()),
    ]
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

/// A path with a line of no length at each square. A round cap makes it a dot.
fn points(squares: impl Iterator<Item = Square>) -> String {
    let mut path = String::new();
    for square in squares {
        let x = square.x();
        let y = square.y();
        write!(path, "M{x},{y}h0").expect("a string takes every text");
    }
    path
}

/// The stones, the marks of the last and of the winning ones, and the numbers of the last ones.
fn stones(game: &Match) -> Vec<Shape> {
    let placed = game.placed();
    let of = |colour| {
        let stones = placed.iter().copied();
        points(stones.filter(|square| game.board().get(*square) == Some(colour)))
    };
    let last = placed.last().copied();
    let row: Vec<_> = last.map(|last| winning_row(game, last)).unwrap_or_default();
    let mut shapes = vec![
        Shape::path("won", &points(row.iter().copied())),
        Shape::path("last", &points(last.into_iter())),
        Shape::path("rim", &points(placed.iter().copied())),
        Shape::path("black", &of(Colour::Black)),
        Shape::path("white", &of(Colour::White)),
    ];
    let earlier = placed.len().saturating_sub(NUMBERED);
    let numbers = (earlier + 1..).zip(&placed[earlier..]);
    shapes.extend(numbers.map(|(number, square)| {
        let class = match game.board().get(*square) {
            Some(Colour::White) => "on-white",
            _ => "on-black",
        };
        let position: [(_, &dyn core::fmt::Display); 2] = [("x", &square.x()), ("y", &square.y())];
        Shape::new(ShapeKind::Text, class).with_attributes(position).with_text(number)
    }));
    shapes
}

/// The squares of the winning row, if the last stone won the match.
fn winning_row(game: &Match, last: Square) -> Vec<Square> {
    let row = game.winner().and_then(|_| game.board().row(last, game.overline()));
    let Some((from, to)) = row else { return Vec::new() };
    let between = |from: u8, to: u8, step: u8| match to {
        to if to > from => from + step,
        to if to < from => from - step,
        _ => from,
    };
    let length = u8::max(from.x().abs_diff(to.x()), from.y().abs_diff(to.y()));
    let square =
        |step| Square::new(between(from.x(), to.x(), step), between(from.y(), to.y(), step));
    (0..=length).filter_map(square).collect()
}

/// The colours of the bots, and how they were chosen.
fn sides(game: &Match, names: &[EntrantName]) -> Vec<Item> {
    let Phase::Play { black, ply } = game.phase() else {
        return vec![Item::text("The colours are not settled yet.")];
    };
    let white = Match::opponent(black);
    let stone = |class, text| Item::Sign { class, text };
    vec![
        stone("stone-black", "●"),
        Item::text(format!(" {} plays black, ", name(names, black))),
        stone("stone-white", "○"),
        Item::text(format!(" {} white. ", name(names, white))),
        Item::text(swap_words(game, names, black, ply)),
    ]
}

/// How the colours were chosen. The numbers of stones of the three ways differ.
fn swap_words(game: &Match, names: &[EntrantName], black: Seat, ply: u32) -> String {
    let opener = Match::opener();
    let swapper = name(names, Match::opponent(opener));
    let opening = game.placed().len().saturating_sub(usize::try_from(ply).unwrap_or(usize::MAX));
    match opening {
        OPENING => format!("{swapper} took black."),
        4 => format!("{swapper} added a white stone and took white."),
        _ => {
            let colour = if black == opener { "black" } else { "white" };
            format!("{swapper} added two stones and {} chose {colour}.", name(names, opener))
        }
    }
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

fn caption(game: &Match, names: &[EntrantName]) -> String {
    let opener = name(names, Match::opener());
    let swapper = name(names, Match::opponent(Match::opener()));
    if let Some((loser, forfeit)) = game.forfeit {
        let winner = name(names, Match::opponent(loser));
        return format!("{} forfeits ({forfeit}), so {winner} wins.", name(names, loser));
    }
    let colour = |wanted| {
        let placed = game.placed().iter();
        let squares = placed.filter(|square| game.board().get(**square) == Some(wanted));
        squares.map(|square| format!("{square}")).collect::<Vec<_>>()
    };
    match game.phase() {
        Phase::Open => format!("{opener} is to place two black stones and a white one."),
        Phase::Swap => format!(
            "{opener} opens with black at {} and white at {}; {swapper} is to take black, or place \
             a white stone and take white, or place two stones and let {opener} choose.",
            list(&colour(Colour::Black)),
            list(&colour(Colour::White))
        ),
        Phase::Choose => {
            let added = game.placed()[OPENING..].iter().map(|square| format!("{square}"));
            let added: Vec<_> = added.collect();
            format!(
                "{swapper} adds black and white at {}; {opener} is to choose its colour.",
                list(&added)
            )
        }
        Phase::Play { black, ply: 0 } => {
            let first = name(names, black);
            let swap = swap_words(game, names, black, 0);
            let swap = swap.trim_end_matches('.');
            match game.placed().get(OPENING) {
                Some(square) if game.placed().len() == OPENING + 1 => {
                    format!("{swap}, at {square}; {first} is to move.")
                }
                _ => format!("{swap}; {first} is to move."),
            }
        }
        Phase::Play { black, ply } => stone_caption(game, names, black, ply),
    }
}

/// What the last stone of the game phase did.
fn stone_caption(game: &Match, names: &[EntrantName], black: Seat, ply: u32) -> String {
    let Some(last) = game.placed().last().copied() else { return String::new() };
    let number = game.placed().len();
    let (seat, colour) = match colour_at(ply - 1) {
        Colour::Black => (black, "black"),
        Colour::White => (Match::opponent(black), "white"),
    };
    let effect = match (game.is_over(), winning_row(game, last).len()) {
        (false, _) => format!("; {} is to move", name(names, game.turn())),
        (true, 0) => " and fills the board: a tie".to_owned(),
        (true, ROW) => " and wins with five in a row".to_owned(),
        (true, length) => format!(" and wins with {length} in a row"),
    };
    format!("Stone {number}: {} places {colour} at {last}{effect}.", name(names, seat))
}
