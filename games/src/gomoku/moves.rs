//! The move form of gomoku: squares of the board, several of them in the opening.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::{Match, Phase, SIDE, Square};
use crate::move_form::{Field, FormFields, MODE, MoveForm, PICK, SquareField, answer_field};

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
            MoveForm::of_answers("Which colour do you take?", colours)
        }
        Phase::Open => several(game, chosen, "", &["black", "black", "white"]),
        Phase::Swap if mode == WHITE => several(game, chosen, WHITE, &["white"]),
        Phase::Swap if mode == BOTH => several(game, chosen, BOTH, &["black", "white"]),
        Phase::Swap => MoveForm {
            task: "How do you answer the opening?".to_owned(),
            fields: vec![
                answer_field("\"B\"", "Take black"),
                step(WHITE, "Take white, and put a white stone"),
                step(BOTH, "Put a black and a white stone, and let the other choose"),
            ],
            squares: Vec::new(),
        },
    }
}

fn step(mode: &str, label: &str) -> Field {
    Field::Step { mode: mode.to_owned(), label: label.to_owned() }
}

/// The squares already chosen for a move of several stones, without the last.
fn picked<'a>(chosen: &'a FormFields, colours: &[&str]) -> Vec<&'a str> {
    chosen.all(PICK).take(colours.len() - 1).collect()
}

/// The form of a move of several stones of these colours.
fn several(game: &Match, chosen: &FormFields, mode: &str, colours: &[&'static str]) -> MoveForm {
    let picked = picked(chosen, colours);
    let due = colours[picked.len()];
    let number = picked.len() + 1;
    let many = colours.len();
    let task = format!("Put a {due} stone ({number} of {many}): click on its square.");
    let before = |name, value: &str| Field::Chosen { name, value: value.to_owned() };
    let mut fields: Vec<_> = (!mode.is_empty()).then(|| before(MODE, mode)).into_iter().collect();
    fields.extend(picked.iter().map(|square| before(PICK, square)));
    if !fields.is_empty() {
        fields.push(Field::Reset);
    }
    MoveForm { task, fields, squares: squares(game, chosen, colours) }
}

/// Every free square can be chosen. The last square of a move sends the form; earlier ones lead to the
/// next step.
fn squares(game: &Match, chosen: &FormFields, colours: &[&'static str]) -> Vec<SquareField> {
    let picked = picked(chosen, colours);
    let sends = picked.len() + 1 == colours.len();
    let square = |x, y| {
        let name = format!("({x},{y})");
        let square = Square::new(x, y).expect("the loops stay on the board");
        if let Some(before) = picked.iter().position(|picked| *picked == name) {
            return SquareField::Picked { colour: colours[before], number: before + 1 };
        }
        if game.board().get(square).is_some() {
            return SquareField::Taken;
        }
        SquareField::Free { name: PICK, label: name.clone(), value: name, sends }
    };
    let square = &square;
    (0..SIDE).flat_map(|y| (0..SIDE).map(move |x| square(x, y))).collect()
}

pub(super) fn answer(fields: &FormFields) -> Result<String, String> {
    let squares: Vec<_> = fields.all(PICK).collect();
    if squares.is_empty() {
        return Err("choose a square of the board".to_owned());
    }
    let colour = if fields.get(MODE) == Some(WHITE) { "\"W\" " } else { "" };
    Ok(format!("{colour}{}", squares.concat()))
}
