//! Bitwa: the board with its walls, the units with their divisions and strengths.

use std::fmt::Write as _;

use arbiter_games::bitwa::{Division, Ground, Match, Square};
use arbiter_games::{BotName, Seat};
use maud::{Markup, html};

use super::{Key, Picture, bits, name};

/// What a picture of this state shows.
pub(super) fn key(game: &Match) -> Key {
    let alive = bits(2, |seat| game.is_alive(seat));
    [game.orders(), alive, u64::from(game.is_over()), 0, 0, 0]
}

/// Draws the board.
pub(super) fn draw(game: &Match, names: &[BotName]) -> Picture {
    let (board, caption) = (game.board(), caption(game, names));
    let (columns, rows) = (board.columns(), board.rows());
    let moved = game.last_order().map(|(division, _)| division);
    let markup = html! {
        svg.board.bitwa viewBox={ "0 0 " (columns) " " (rows) } role="img" aria-label=(caption) {
            title { (caption) }
            desc { (description(game)) }
            rect.ground width=(columns) height=(rows) {}
            path.squares d=(lines(columns, rows)) {}
            path.walls d=(walls(game)) {}
            @for square in squares(columns, rows) {
                @if let Some((division, strength)) = game.battle().unit(square) {
                    (unit(square, division, strength, moved == Some(division), board.strength()))
                }
            }
            @if let Some((_, order)) = game.last_order() {
                circle.target cx={ (order.target.x) ".5" } cy={ (order.target.y) ".5" } r="0.25" {}
            }
        }
        (forces(game, names))
    };
    Picture { caption, markup }
}

/// Every square, row by row.
fn squares(columns: usize, rows: usize) -> impl Iterator<Item = Square> {
    let coordinate = |index| u8::try_from(index).expect("a board's sides fit into a byte");
    (0..rows)
        .flat_map(move |y| (0..columns).map(move |x| Square { x: coordinate(x), y: coordinate(y) }))
}

/// The lines between the squares, as a path.
fn lines(columns: usize, rows: usize) -> String {
    let down = (1..columns).map(|x| format!("M{x},0V{rows}"));
    down.chain((1..rows).map(|y| format!("M0,{y}H{columns}"))).collect()
}

/// The squares on which nobody can stand, as a path.
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

fn unit(square: Square, division: Division, strength: u32, moved: bool, full: u32) -> Markup {
    let Square { x, y } = square;
    // The bar shows what is left of the strength that every unit has at first, in thousandths.
    let width = 0.8 * f64::from(strength) / f64::from(full.max(1));
    let class = if moved { "unit moved" } else { "unit" };
    html! {
        g class={ (class) " seat" (division.seat()) } transform={ "translate(" (x) "," (y) ")" } {
            rect.body x="0.06" y="0.06" width="0.88" height="0.88" rx="0.12" {}
            text.letter x="0.5" y="0.36" { (division) }
            text.strength x="0.5" y="0.72" { (strength) }
            rect.bar x="0.1" y="0.84" height="0.06" width=(format!("{width:.3}")) {}
        }
    }
}

/// What each seat has left, as a table.
fn forces(game: &Match, names: &[BotName]) -> Markup {
    html! {
        table.forces {
            thead { tr { th { "Seat" } th { "Bot" } th.number { "Units" } th.number { "Strength" } } }
            tbody {
                @for seat in Seat::all(2) {
                    @let forces = game.battle().forces(seat);
                    tr {
                        td class={ "seat" (seat) } { (seat) }
                        td {
                            (name(names, seat))
                            @if !game.is_alive(seat) { " (forfeited)" }
                        }
                        td.number { (forces.units) }
                        td.number { (forces.strength) }
                    }
                }
            }
        }
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
        let (units, strength) = (forces.units, forces.strength);
        format!(
            "seat {seat} has {units} units of strength {strength} in all, by division {}",
            divisions.join(", ")
        )
    };
    let [one, two] = [0, 1].map(|index| side(Seat::from_index(index)));
    let (columns, rows) = (game.board().columns(), game.board().rows());
    format!("A board of {columns} by {rows} squares; {one}; {two}.")
}

fn caption(game: &Match, names: &[BotName]) -> String {
    let (round, rounds) = (game.round(), game.board().rounds());
    let Some((division, order)) = game.last_order() else {
        return format!("The battle is set up; it lasts {rounds} rounds at most.");
    };
    let Square { x, y } = order.target;
    let how = if order.attack { "attacking whom it meets" } else { "passing by" };
    let who = name(names, division.seat());
    let over = if game.is_over() { " The battle is over." } else { "" };
    format!("Round {round} of {rounds}: {who} sends {division} to ({x}, {y}), {how}.{over}")
}
