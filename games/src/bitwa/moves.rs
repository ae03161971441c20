//! The move form of bitwa: a square of the board as the target, and a choice for each other part of
//! the order.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Match;
use super::board::Division;
use crate::match_state::Seat;
use crate::move_form::{self, ChoiceOption, Field, FormFields, MoveForm, SquareField};

/// The name of the field for the target.
const TARGET: &str = "at";

/// A part of an order besides its target.
struct Choice {
    name: &'static str,
    /// The legend of the choice.
    legend: &'static str,
    /// The two values with their labels. The first one is the default.
    values: [(&'static str, &'static str); 2],
}

/// The choices in the order of the protocol, before and after the target.
const CHOICES: [Choice; 4] = [
    Choice { name: "a", legend: "Enemies on the way", values: [("1", "attack"), ("0", "pass by")] },
    Choice { name: "dx", legend: "Among equals, dx", values: [("1", "right"), ("-1", "left")] },
    Choice { name: "dy", legend: "Among equals, dy", values: [("1", "down"), ("-1", "up")] },
    Choice { name: "p", legend: "First comes", values: [("1", "dx"), ("0", "dy")] },
];

pub(super) fn move_form(game: &Match, seat: Seat) -> MoveForm {
    let task = match next_division(game, seat) {
        Some(division) => format!("Your order to division {division}: click on its target."),
        None => "Your order: click on its target.".to_owned(),
    };
    let fields = CHOICES.iter().map(|choice| Field::Choice(choice.field())).collect();
    MoveForm { task, fields, squares: squares(game) }
}

/// The next division of `seat`: the first division with units after the division of the last order.
/// At the end of a round, the first division of the next round.
fn next_division(game: &Match, seat: Seat) -> Option<Division> {
    let last = game.last_order().map(|(division, _)| division);
    let can_move =
        |division: &Division| division.seat() == seat && !game.battle().units(*division).is_empty();
    let later = Division::all().filter(|division| Some(*division) > last).find(can_move);
    later.or_else(|| Division::all().find(can_move))
}

impl Choice {
    fn field(&self) -> move_form::Choice {
        let option = |(value, label): (&str, &str)| ChoiceOption {
            value: value.to_owned(),
            label: label.to_owned(),
            card: None,
        };
        move_form::Choice {
            name: self.name.to_owned(),
            legend: self.legend.to_owned(),
            options: self.values.map(option).into(),
            default: Some(0),
            sends: false,
        }
    }
}

fn squares(game: &Match) -> Vec<SquareField> {
    let columns = game.board().columns();
    let rows = game.board().rows();
    let square = |x, y| SquareField::Free {
        name: TARGET,
        value: format!("{x} {y}"),
        label: format!("({x}, {y})"),
        sends: true,
    };
    (0..rows).flat_map(|y| (0..columns).map(move |x| square(x, y))).collect()
}

pub(super) fn reply(fields: &FormFields) -> Result<String, String> {
    let target = fields.get(TARGET).ok_or("choose a square of the board")?;
    let value = |Choice { name, values: [(default, _), _], .. }: Choice| {
        fields.get(name).unwrap_or(default).to_owned()
    };
    let [attack, dx, dy, p] = CHOICES.map(value);
    Ok(format!("= {attack} {target} {dx} {dy} {p}"))
}
