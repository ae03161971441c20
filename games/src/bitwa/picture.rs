//! The picture of bitwa: the board with its walls, and the units with divisions and strengths.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write as _;

use super::board::{Division, Ground, Square};
use super::{Match, SEATS, moves};
use crate::gtp::FAREWELL;
use crate::match_state::{MatchView, Seat};
use crate::move_form::{FormFields, MoveForm};
use crate::name::BotName;
use crate::picture::{
    BoardPicture, Cell, Item, Key, Part, Picture, Row, Shape, ShapeKind, TablePicture, bits, name,
};

impl MatchView for Match {
    fn picture(&self, names: &[BotName], _viewer: Option<Seat>) -> Picture {
        let board = self.board();
        let columns = board.columns();
        let rows = board.rows();
        let last_division = self.last_order().map(|(division, _)| division);
        let ground = [("width", &columns as _), ("height", &rows as _)];
        let mut shapes = vec![
            Shape::new(ShapeKind::Rectangle, "ground").with_attributes(ground),
            Shape::new(ShapeKind::Path, "squares").with_attributes([("d", &lines(columns, rows))]),
            Shape::new(ShapeKind::Path, "walls").with_attributes([("d", &walls(self))]),
        ];
        for square in squares(columns, rows) {
            if let Some((division, strength)) = self.battle().unit(square) {
                let is_moved = last_division == Some(division);
                shapes.push(unit(square, division, strength, is_moved, board.strength()));
            }
        }
        if let Some((_, order)) = self.last_order() {
            let Square { x, y } = order.target;
            let circle = [
                ("cx", &format!("{x}.5") as _),
                ("cy", &format!("{y}.5") as _),
                ("r", &"0.25" as _),
            ];
            shapes.push(Shape::new(ShapeKind::Circle, "target").with_attributes(circle));
        }
        let board = BoardPicture {
            class: "board bitwa",
            view: format!("0 0 {columns} {rows}"),
            description: description(self),
            shapes,
        };
        let parts = vec![Part::Board(board), Part::Table(forces(self, names))];
        Picture { caption: caption(self, names), parts }
    }

    fn picture_key(&self) -> Key {
        let alive = bits(SEATS, |seat| self.is_alive(seat));
        [self.orders(), alive, u64::from(self.is_over()), 0, 0, 0]
    }

    fn chapter(&self) -> Option<String> {
        Some(format!("Round {}", self.round()))
    }

    fn is_farewell(&self, unit: &str) -> bool {
        unit.trim() == FAREWELL
    }

    fn move_form(&self, seat: Seat, _chosen: &FormFields) -> MoveForm {
        moves::move_form(self, seat)
    }

    fn form_reply(&self, _seat: Seat, fields: &FormFields) -> Result<String, String> {
        moves::reply(fields)
    }
}

/// Every square, row by row.
fn squares(columns: usize, rows: usize) -> impl Iterator<Item = Square> {
    let coordinate = |index| u8::try_from(index).expect("a board's sides fit into a byte");
    (0..rows)
        .flat_map(move |y| (0..columns).map(move |x| Square { x: coordinate(x), y: coordinate(y) }))
}

/// The lines between the squares, as a path.
fn lines(columns: usize, rows: usize) -> String {
    let vertical = (1..columns).map(|x| format!("M{x},0V{rows}"));
    vertical.chain((1..rows).map(|y| format!("M0,{y}H{columns}"))).collect()
}

/// The blocked squares, as a path.
fn walls(game: &Match) -> String {
    let board = game.board();
    let mut path = String::new();
    for (square, ground) in squares(board.columns(), board.rows()).zip(board.ground()) {
        if *ground == Ground::Blocked {
            let Square { x, y } = square;
            write!(path, "M{x},{y}h1v1h-1z").expect("a string takes every text");
        }
    }
    path
}

fn unit(
    square: Square,
    division: Division,
    strength: u32,
    is_moved: bool,
    full_strength: u32,
) -> Shape {
    let Square { x, y } = square;
    // The bar shows the remaining share of the initial strength.
    let width = 0.8 * f64::from(strength) / f64::from(full_strength.max(1));
    let class = if is_moved { "unit moved" } else { "unit" };
    let body: [(_, &dyn core::fmt::Display); 5] =
        [("x", &"0.06"), ("y", &"0.06"), ("width", &"0.88"), ("height", &"0.88"), ("rx", &"0.12")];
    let bar: [(_, &dyn core::fmt::Display); 4] =
        [("x", &"0.1"), ("y", &"0.84"), ("height", &"0.06"), ("width", &format!("{width:.3}"))];
    let text = |class, y: &'static str| {
        Shape::new(ShapeKind::Text, class).with_attributes([("x", &"0.5"), ("y", &y)])
    };
    let parts = vec![
        Shape::new(ShapeKind::Rectangle, "body").with_attributes(body),
        text("letter", "0.36").with_text(division),
        text("strength", "0.72").with_text(strength),
        Shape::new(ShapeKind::Rectangle, "bar").with_attributes(bar),
    ];
    Shape::new(ShapeKind::Group, format!("{class} seat{}", division.seat()))
        .with_attributes([("transform", &format!("translate({x},{y})"))])
        .with_shapes(parts)
}

/// The remaining forces of each seat, as a table.
fn forces(game: &Match, names: &[BotName]) -> TablePicture {
    let row = |seat| {
        let forces = game.battle().forces(seat);
        let mut bot = vec![Item::text(name(names, seat))];
        bot.extend((!game.is_alive(seat)).then(|| Item::text(" (forfeited)")));
        let numbers = [Cell::number(forces.units), Cell::number(forces.strength)];
        Row {
            class: None,
            cells: [Cell::seat(seat), Cell::of(bot)].into_iter().chain(numbers).collect(),
        }
    };
    TablePicture {
        class: "forces",
        head: vec![
            Cell::text("Seat"),
            Cell::text("Bot"),
            Cell::number("Units"),
            Cell::number("Strength"),
        ],
        rows: Seat::all(SEATS).map(row).collect(),
        foot: Vec::new(),
    }
}

fn description(game: &Match) -> String {
    let side = |seat| {
        let forces = game.battle().forces(seat);
        let divisions = Division::all().filter(|division| division.seat() == seat);
        let divisions = divisions.filter_map(|division| {
            let units = game.battle().units(division).len();
            (units > 0).then(|| format!("{division}: {units}"))
        });
        let divisions: Vec<_> = divisions.collect();
        let units = forces.units;
        let strength = forces.strength;
        format!(
            "seat {seat} has {units} units of strength {strength} in all, by division {}",
            divisions.join(", ")
        )
    };
    let [first, second] = [0, 1].map(|index| side(Seat::from_index(index)));
    let columns = game.board().columns();
    let rows = game.board().rows();
    format!("A board of {columns} by {rows} squares; {first}; {second}.")
}

fn caption(game: &Match, names: &[BotName]) -> String {
    let round = game.round();
    let rounds = game.board().rounds();
    let Some((division, order)) = game.last_order() else {
        return format!("The battle is set up; it lasts {rounds} rounds at most.");
    };
    let Square { x, y } = order.target;
    let manner = if order.attack { "attacking enemies on the way" } else { "passing enemies by" };
    let bot = name(names, division.seat());
    let ending = if game.is_over() { " The battle is over." } else { "" };
    format!("Round {round} of {rounds}: {bot} sends {division} to ({x}, {y}), {manner}.{ending}")
}
