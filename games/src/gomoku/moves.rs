//! The move form of gomoku: squares of the board, several of them in the opening.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::{Match, Phase, SIDE, Square};
use crate::move_form::{Field, FormFields, MODE, MoveForm, PICK, SquareField, reply_field};

/// The modes of B's response to the opening, besides taking black.
const WHITE: &str = "white";
const BOTH: &str = "both";

pub(super) fn move_form(game: &Match, chosen: &FormFields) -> MoveForm {
    let mode = chosen.get(MODE).unwrap_or_default();
    match game.phase() {
        Phase::Play { .. } => {
            let task = "Your stone: click on its square.".to_owned();
            MoveForm { task, fields: Vec::new(), squares: squares(game, chosen, &[""]) }
        }
        Phase::Choose => {
            let colours = [("\"B\"", "Black"), ("\"W\"", "White")];
            MoveForm::of_replies("Which colour do you take?", colours)
        }
        Phase::Open => stones_form(game, chosen, "", &["black", "black", "white"]),
        Phase::Swap if mode == WHITE => stones_form(game, chosen, WHITE, &["white"]),
        Phase::Swap if mode == BOTH => stones_form(game, chosen, BOTH, &["black", "white"]),
        Phase::Swap => MoveForm {
            task: "How do you answer the opening?".to_owned(),
            fields: vec![
                reply_field("\"B\"", "Take black"),
                step(WHITE, "Take white, and place a white stone"),
                step(BOTH, "Place a black and a white stone, and let the other choose"),
            ],
            squares: Vec::new(),
        },
    }
}

fn step(mode: &str, label: &str) -> Field {
    Field::Step { mode: mode.to_owned(), label: label.to_owned() }
}

/// The squares chosen so far in a move of several stones. The last square is never among them.
fn selected<'a>(chosen: &'a FormFields, colours: &[&str]) -> Vec<&'a str> {
    chosen.all(PICK).take(colours.len() - 1).collect()
}

/// The form of a move of several stones of these colours.
fn stones_form(
    game: &Match,
    chosen: &FormFields,
    mode: &str,
    colours: &[&'static str],
) -> MoveForm {
    let selected = selected(chosen, colours);
    let colour = colours[selected.len()];
    let number = selected.len() + 1;
    let count = colours.len();
    let task = format!("Place a {colour} stone ({number} of {count}): click on its square.");
    let hidden = |name, value: &str| Field::Hidden { name, value: value.to_owned() };
    let mut fields: Vec<_> = (!mode.is_empty()).then(|| hidden(MODE, mode)).into_iter().collect();
    fields.extend(selected.iter().map(|square| hidden(PICK, square)));
    if !fields.is_empty() {
        fields.push(Field::Reset);
    }
    MoveForm { task, fields, squares: squares(game, chosen, colours) }
}

/// The squares of the board. Every free square can be chosen. The last square of a move sends the
/// form, and an earlier square shows the form of the next step.
fn squares(game: &Match, chosen: &FormFields, colours: &[&'static str]) -> Vec<SquareField> {
    let selected = selected(chosen, colours);
    let sends = selected.len() + 1 == colours.len();
    let square = |x, y| {
        let name = format!("({x},{y})");
        let square = Square::new(x, y).expect("the loops stay on the board");
        if let Some(index) = selected.iter().position(|value| *value == name) {
            return SquareField::Selected { colour: colours[index], number: index + 1 };
        }
        if game.board().get(square).is_some() {
            return SquareField::Occupied;
        }
        SquareField::Free { name: PICK, label: name.clone(), value: name, sends }
    };
    let square = &square;
    (0..SIDE).flat_map(|y| (0..SIDE).map(move |x| square(x, y))).collect()
}

pub(super) fn reply(fields: &FormFields) -> Result<String, String> {
    let squares: Vec<_> = fields.all(PICK).collect();
    if squares.is_empty() {
        return Err("choose a square of the board".to_owned());
    }
    let colour = if fields.get(MODE) == Some(WHITE) { "\"W\" " } else { "" };
    Ok(format!("{colour}{}", squares.concat()))
}
