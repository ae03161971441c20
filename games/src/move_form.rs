//! Forms for the moves of people, as data.
//!
//! A completed form becomes a reply in the game's protocol, the same as a bot would send.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;

/// The name of the field for a whole reply.
pub const REPLY: &str = "answer";
/// The name of the field for a chosen square, in a move of several squares.
pub const PICK: &str = "pick";
/// The name of the field for the mode of a move of several steps.
pub const MODE: &str = "mode";

/// The form for a person's next move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveForm {
    /// The task, in a sentence.
    pub task: String,
    /// The fields of the form.
    pub fields: Vec<Field>,
    /// The squares of the board, row by row; empty if squares are not clickable.
    pub squares: Vec<SquareField>,
}

/// A field of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// A button that sends a reply.
    Reply {
        /// The reply.
        reply: String,
        /// Its label.
        label: String,
    },
    /// A button for the next step of the move, with [`MODE`] set.
    Step {
        /// The mode.
        mode: String,
        /// Its label.
        label: String,
    },
    /// A hidden field with an earlier choice.
    Hidden {
        /// The name of the field.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// A button that restarts the move.
    Reset,
    /// A choice of one value.
    Choice(Choice),
    /// A whole number.
    Number {
        /// Its label.
        label: String,
        /// The name of the field.
        name: &'static str,
        /// The maximum; the minimum is 1.
        max: i64,
        /// The initial value.
        value: i64,
    },
    /// A whole reply as a line of text.
    Text {
        /// Its label.
        label: String,
    },
    /// The submit button with its label.
    Send(String),
}

/// A choice of one value for a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The name of the field.
    pub name: String,
    /// The legend.
    pub legend: String,
    /// The values.
    pub options: Vec<ChoiceOption>,
    /// The index of the default option.
    pub default: Option<usize>,
    /// Whether choosing an option sends the form.
    pub sends: bool,
}

/// An option of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChoiceOption {
    /// The value.
    pub value: String,
    /// Its label.
    pub label: String,
    /// The CSS classes, if it is drawn as a card.
    pub card: Option<String>,
}

/// A square of the board in a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SquareField {
    /// It cannot be chosen.
    Occupied,
    /// It was chosen in an earlier step.
    Selected {
        /// The colour of its stone.
        colour: &'static str,
        /// The number of the step.
        number: usize,
    },
    /// It can be chosen.
    Free {
        /// The field.
        name: &'static str,
        /// The value.
        value: String,
        /// Its label.
        label: String,
        /// Whether choosing it sends the form; otherwise the next step follows.
        sends: bool,
    },
}

/// The position of a board's squares over its picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// The number of columns.
    pub columns: usize,
    /// The number of rows.
    pub rows: usize,
    /// The space above and to the left of the squares, in widths of a square.
    pub before: f64,
    /// The space below and to the right of the squares, in widths of a square.
    pub behind: f64,
}

/// The submitted fields of a form, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormFields(pub Vec<(String, String)>);

impl FormFields {
    /// The first value of a field.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut fields = self.0.iter();
        fields.find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All values of a field.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

impl MoveForm {
    /// A form with a button for each of these replies, which are pairs of reply and label.
    pub fn of_replies<'a>(
        task: &str,
        replies: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let field = |(reply, label): (&str, &str)| reply_field(reply, label);
        let fields = replies.into_iter().map(field).collect();
        Self { task: task.to_owned(), fields, squares: Vec::new() }
    }
}

/// A button that sends a reply.
pub fn reply_field(reply: &str, label: &str) -> Field {
    Field::Reply { reply: reply.to_owned(), label: label.to_owned() }
}
