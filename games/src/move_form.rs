//! What a person may play, as data: what is offered, and what a form comes to.
//!
//! A form comes to an answer in the words of the game's own protocol, the same that a bot would
//! give.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;

/// The field that holds a whole answer.
pub const ANSWER: &str = "answer";
/// A square that was chosen, in a move of several.
pub const PICK: &str = "pick";
/// Which way a move of several steps goes.
pub const MODE: &str = "mode";

/// What a person may do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveForm {
    /// What to do, in a sentence.
    pub task: String,
    /// What is in the form of the move.
    pub fields: Vec<Field>,
    /// What lies on the squares of the board, row by row; nothing if none is clicked on.
    pub squares: Vec<SquareField>,
}

/// A part of the form of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// Plays an answer.
    Answer {
        /// The answer.
        answer: String,
        /// What it is called.
        label: String,
    },
    /// Goes on to the next step of the move, with [`MODE`] set.
    Step {
        /// The mode.
        mode: String,
        /// What it is called.
        label: String,
    },
    /// What was chosen in the steps before.
    Chosen {
        /// Its field.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// Begins the move again.
    Reset,
    /// One of several values.
    Choice(Choice),
    /// A whole number.
    Number {
        /// What it is called.
        label: String,
        /// Its field.
        name: &'static str,
        /// The most that is possible; the least is 1.
        most: i64,
        /// What stands in the form.
        value: i64,
    },
    /// Sends what was chosen.
    Send(String),
}

/// One of several values of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The field.
    pub name: String,
    /// What is chosen.
    pub legend: String,
    /// The values.
    pub options: Vec<ChoiceOption>,
    /// The one that holds if none is chosen, from 0.
    pub default: Option<usize>,
    /// Whether to choose one sends the form.
    pub sends: bool,
}

/// A value to be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChoiceOption {
    /// The value.
    pub value: String,
    /// What it is called.
    pub label: String,
    /// The classes of the style sheet if it looks like a card.
    pub card: Option<String>,
}

/// What lies on a square of the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SquareField {
    /// Nothing can be done with it.
    Taken,
    /// It was chosen before, in a move of several squares.
    Picked {
        /// Of which colour the stone is.
        colour: &'static str,
        /// As which one.
        number: usize,
    },
    /// It can be chosen.
    Free {
        /// The field.
        name: &'static str,
        /// The value.
        value: String,
        /// How people call it.
        label: String,
        /// Whether to choose it sends the form; else the next step follows.
        sends: bool,
    },
}

/// The squares of a board as they lie over its picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// How many columns there are.
    pub columns: usize,
    /// How many rows there are.
    pub rows: usize,
    /// The space above and to the left of them, in widths of a square.
    pub before: f64,
    /// The space below and to the right of them, likewise.
    pub behind: f64,
}

/// The fields of a form, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormFields(pub Vec<(String, String)>);

impl FormFields {
    /// The first value under a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut fields = self.0.iter();
        fields.find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All values under a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

impl MoveForm {
    /// The offer to give one of these answers: each with its name.
    pub fn of_answers<'a>(
        task: &str,
        answers: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let field = |(answer, label): (&str, &str)| answer_field(answer, label);
        let fields = answers.into_iter().map(field).collect();
        Self { task: task.to_owned(), fields, squares: Vec::new() }
    }
}

/// A field that plays an answer.
pub fn answer_field(answer: &str, label: &str) -> Field {
    Field::Answer { answer: answer.to_owned(), label: label.to_owned() }
}
