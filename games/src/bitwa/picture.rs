//! The picture of bitwa: the board with its walls and units, and what the last order did.
//!
//! All bodies, bars and letters of the units are one shape of each kind. So a large army is short.

use alloc::borrow::Cow;
use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt::{Display, Write as _};

use super::battle::{Deed, DeedKind};
use super::board::{Division, Ground, Square};
use super::{Match, SEATS, moves};
use crate::gtp::FAREWELL;
use crate::match_state::{MatchView, Seat};
use crate::move_form::{FormFields, MoveForm};
use crate::name::EntrantName;
use crate::picture::{
    BoardPicture, Item, Key, Line, Part, Picture, Place, PlacesPicture, Shape, ShapeKind, bits,
    count, name, number, seat_name,
};

/// A whole square, as a path from its corner.
const SQUARE: &str = "h1v1h-1z";
/// The body of a unit, as a path. Its stroke makes it wider, with round corners.
const BODY: &str = "h.72v.72h-.72z";

impl MatchView for Match {
    fn picture(&self, names: &[EntrantName], _viewer: Option<Seat>) -> Picture {
        let columns = self.board().columns();
        let rows = self.board().rows();
        let ground = [("width", &columns as _), ("height", &rows as _)];
        let mut shapes = vec![
            Shape::new(ShapeKind::Rectangle, "ground").with_attributes(ground),
            Shape::path("squares", &lines(columns, rows)),
            Shape::path("walls", &walls(self)),
        ];
        shapes.extend(units(self));
        shapes.extend(last_order(self));
        let board = BoardPicture {
            class: "board bitwa",
            view: format!("0 0 {columns} {rows}"),
            description: description(self),
            shapes,
        };
        let places = Seat::all(SEATS).map(|seat| forces(self, names, seat)).collect();
        let forces = PlacesPicture { class: "forces", places };
        let parts = vec![Part::Board(board), Part::Places(forces)];
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

/// These squares, as a path.
fn outlines(squares: impl Iterator<Item = Square>) -> String {
    let mut path = String::new();
    for Square { x, y } in squares {
        write!(path, "M{x},{y}{SQUARE}").expect("a string takes every text");
    }
    path
}

/// The blocked squares, as a path.
fn walls(game: &Match) -> String {
    let board = game.board();
    let ground = squares(board.columns(), board.rows()).zip(board.ground());
    outlines(ground.filter(|(_, ground)| **ground == Ground::Blocked).map(|(square, _)| square))
}

/// The units: a body with the letter of the division, the strength, and a bar for the remaining
/// share of the initial strength.
fn units(game: &Match) -> Vec<Shape> {
    let board = game.board();
    let mut bodies = [String::new(), String::new()];
    let mut bars = String::new();
    let mut columns = String::new();
    let mut rows = String::new();
    let mut letters = String::new();
    let mut strengths = Vec::new();
    for square in squares(board.columns(), board.rows()) {
        let Some((division, strength)) = game.battle().unit(square) else { continue };
        let Square { x, y } = square;
        let share = 0.8 * f64::from(strength) / f64::from(board.strength().max(1));
        let body = &mut bodies[division.seat().index()];
        let written = write!(body, "M{x}.14,{y}.14{BODY}")
            .and_then(|()| write!(bars, "M{x}.1,{y}.87h{share:.2}"))
            .and_then(|()| write!(columns, "{x}.5 "))
            .and_then(|()| write!(rows, "{y}.36 "));
        written.expect("a string takes every text");
        letters.push(division.letter());
        strengths.push(text(&format!("{x}.5"), &format!("{y}.7")).with_text(strength));
    }
    let [first, second] = bodies;
    vec![
        Shape::path("body seat1", &first),
        Shape::path("body seat2", &second),
        Shape::path("bars", &bars),
        Shape::new(ShapeKind::Text, "letters")
            .with_attributes([("x", &columns.trim_end()), ("y", &rows.trim_end())])
            .with_text(letters),
        Shape::new(ShapeKind::Group, "strengths").with_shapes(strengths),
    ]
}

fn text(x: &dyn Display, y: &dyn Display) -> Shape {
    Shape::new(ShapeKind::Text, "").with_attributes([("x", x), ("y", y)])
}

/// The deeds of the last order, unless a forfeit followed it.
fn deeds(game: &Match) -> &[Deed] {
    match game.last_forfeit {
        Some((_, orders)) if orders == game.orders() => &[],
        _ => &game.deeds,
    }
}

/// The target of the last order, and what it did: the captured squares, the units that moved or
/// were hit, arrows, and the losses in the corners of their squares.
fn last_order(game: &Match) -> Vec<Shape> {
    let deeds = deeds(game);
    let of = |kind| deeds.iter().filter(move |deed| deed.kind == kind);
    let arrows = |kind| of(kind).copied().map(arrow).collect::<String>();
    let moved = of(DeedKind::Moved).chain(of(DeedKind::Captured)).map(|deed| deed.to);
    let struck: Vec<_> = deeds.iter().filter(|deed| deed.kind != DeedKind::Moved).collect();
    let mut losses = Vec::new();
    let mut hit = Vec::new();
    for (index, deed) in struck.iter().enumerate() {
        if struck[..index].iter().any(|earlier| earlier.to == deed.to) {
            continue;
        }
        let Square { x, y } = deed.to;
        let strikes = || struck.iter().filter(|other| other.to == deed.to);
        let removed = strikes().any(|strike| strike.kind == DeedKind::Captured);
        let loss = format!("−{}{}", strikes().count(), if removed { "✕" } else { "" });
        losses.push(text(&format!("{x}.97"), &format!("{y}.13")).with_text(loss));
        hit.push(deed.to);
    }
    let attacks = arrows(DeedKind::Struck) + &arrows(DeedKind::Captured);
    let order = game.last_order().filter(|_| !deeds.is_empty() || is_last_order(game));
    let target = order.map(|(_, order)| target(order.target)).unwrap_or_default();
    vec![
        Shape::path("moved", &outlines(moved)),
        Shape::path("captured", &outlines(of(DeedKind::Captured).map(|deed| deed.to))),
        Shape::path("hit", &outlines(hit.into_iter())),
        Shape::path("moves", &arrows(DeedKind::Moved)),
        Shape::path("attacks", &attacks),
        Shape::path("target", &target),
        Shape::new(ShapeKind::Group, "losses").with_shapes(losses),
    ]
}

/// Whether the last event is an order.
fn is_last_order(game: &Match) -> bool {
    game.last_forfeit.is_none_or(|(_, orders)| orders < game.orders())
}

/// A cross hair in a square, as a path.
fn target(Square { x, y }: Square) -> String {
    let circle = format!("M{x}.08,{y}.5a.42,.42 0 1 0 .84,0a.42,.42 0 1 0-.84,0");
    format!("{circle}M{x}.5,{y}v.2m0,.6v.2M{x},{y}.5h.2m.6,0h.2")
}

/// An arrow across the border of two adjacent squares, as a path.
fn arrow(deed: Deed) -> String {
    let x = f64::from(deed.to.x) - f64::from(deed.from.x);
    let y = f64::from(deed.to.y) - f64::from(deed.from.y);
    let start = |from: u8, step: f64| f64::from(from) + 0.5 + 0.28 * step;
    // The two barbs, behind the tip to either side.
    let barb = |side: f64| [-0.14 * x - side * 0.12 * y, -0.14 * y + side * 0.12 * x];
    let [left_x, left_y] = barb(1.0);
    let [right_x, right_y] = barb(-1.0);
    format!(
        "M{:.2},{:.2}l{:.2},{:.2}m{left_x:.2},{left_y:.2}l{:.2},{:.2}l{right_x:.2},{right_y:.2}",
        start(deed.from.x, x),
        start(deed.from.y, y),
        0.46 * x,
        0.46 * y,
        -left_x,
        -left_y
    )
}

/// The numbers of units and of points of strength that a seat lost by the last order.
fn losses(game: &Match, seat: Seat) -> [u64; 2] {
    let struck_by = game.last_order().map(|(division, _)| division.seat());
    if struck_by.is_none_or(|attacker| attacker == seat) {
        return [0, 0];
    }
    let deeds = deeds(game);
    let captured = deeds.iter().filter(|deed| deed.kind == DeedKind::Captured).count();
    let strikes = deeds.iter().filter(|deed| deed.kind != DeedKind::Moved).count();
    [number(captured), number(strikes)]
}

/// The remaining forces of a seat, and its losses by the last order.
fn forces(game: &Match, names: &[EntrantName], seat: Seat) -> Place {
    let forces = game.battle().forces(seat);
    let [units, strength] = losses(game, seat).map(|loss| -i64::try_from(loss).unwrap_or(i64::MAX));
    let initial = game
        .board()
        .ground()
        .iter()
        .filter(|ground| matches!(ground, Ground::Unit(division) if division.seat() == seat));
    let full = number(initial.count());
    let state: Cow<_> = match game.players[seat.index()].forfeit {
        Some(forfeit) => format!("forfeited: {forfeit}").into(),
        None => "".into(),
    };
    // A piece for each point of strength would be too thin: one for as many as a unit has.
    let share = forces.strength.div_ceil(u64::from(game.board().strength().max(1)));
    let lines = vec![
        Line::heading(seat_name(names, seat), state),
        Line::amount(
            format!("Units {}", forces.units),
            Item::Stack { count: forces.units.into(), full },
            units,
        ),
        Line::amount(
            format!("Strength {}", forces.strength),
            Item::Stack { count: share, full },
            strength,
        ),
    ];
    Place { class: format!("seat{seat}").into(), lines }
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

fn caption(game: &Match, names: &[EntrantName]) -> String {
    let round = order_round(game);
    let rounds = game.board().rounds();
    let ending = if game.is_over() { ending(game, names) } else { String::new() };
    if let Some((seat, _)) = game.last_forfeit.filter(|_| !is_last_order(game)) {
        let why = game.players[seat.index()].forfeit;
        let why = why.map(|forfeit| format!(" ({forfeit})")).unwrap_or_default();
        let bot = name(names, seat);
        return format!(
            "Round {round}: {bot} forfeits{why}, its units stay where they are.{ending}"
        );
    }
    let Some((division, order)) = game.last_order() else {
        return format!("The battle is set up; it lasts {rounds} rounds at most.{ending}");
    };
    let Square { x, y } = order.target;
    let manner = if order.attack { "attacking enemies on the way" } else { "passing enemies by" };
    let bot = name(names, division.seat());
    let enemy = Seat::from_index(1 - division.seat().index());
    let effect = effect(game, name(names, enemy), losses(game, enemy));
    let sends = format!("{bot} sends division {division} to ({x},{y}), {manner}");
    format!("Round {round} of {rounds}: {sends}: {effect}.{ending}")
}

/// The round of the last order. A new round begins without an order.
fn order_round(game: &Match) -> u32 {
    let is_new = game.last_division.is_none() && game.orders() > 0;
    game.round() - u32::from(is_new)
}

/// What the last order did, in words.
fn effect(game: &Match, enemy: &str, [units, strength]: [u64; 2]) -> String {
    let moved = deeds(game).iter().filter(|deed| deed.kind != DeedKind::Struck).count();
    let moves = match moved {
        0 => "no unit moves".to_owned(),
        1 => "1 unit moves".to_owned(),
        moved => format!("{moved} units move"),
    };
    match (units, strength) {
        (_, 0) => moves,
        (0, strength) => format!("{moves}, {enemy} loses strength {strength}"),
        _ => format!("{moves}, {enemy} loses {} and strength {strength}", count(units, "unit")),
    }
}

/// How the battle ended.
fn ending(game: &Match, names: &[EntrantName]) -> String {
    let [first, second] = [0, 1].map(|index| game.battle().forces(Seat::from_index(index)));
    let score = |winner: super::Forces, loser: super::Forces| {
        format!(
            "{} to {} units, strength {} to {}",
            winner.units, loser.units, winner.strength, loser.strength
        )
    };
    let winner = |index| name(names, Seat::from_index(index));
    match first.cmp(&second) {
        Ordering::Greater => {
            format!(" The battle is over: {} wins by {}.", winner(0), score(first, second))
        }
        Ordering::Less => {
            format!(" The battle is over: {} wins by {}.", winner(1), score(second, first))
        }
        Ordering::Equal => " The battle is over: a tie.".to_owned(),
    }
}
