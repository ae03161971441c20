//! The form of a person's move, drawn from the game's data.

use arbiter_games::move_form::{
    Choice, ChoiceOption, Field, FormFields, MODE, MoveForm, PICK, REPLY, SquareField,
};
use maud::{Markup, html};

/// The id of the form, for buttons outside it.
pub(crate) const FORM: &str = "move";

/// The fields of a form or query, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(pub(crate) FormFields);

impl Fields {
    /// The first value with this name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)
    }

    /// The first value with this name, parsed.
    pub(crate) fn parse<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name).and_then(|value| value.parse().ok())
    }
}

/// Whether a field of this name is part of a move with several steps.
pub(crate) fn is_chosen(name: &str) -> bool {
    [PICK, MODE].contains(&name)
}

/// The contents of the form.
pub(crate) fn form(offer: &MoveForm) -> Markup {
    html! { @for shown in &offer.fields { (field(shown)) " " } }
}

fn field(field: &Field) -> Markup {
    html! {
        @match field {
            Field::Reply { reply, label } => {
                button type="submit" name=(REPLY) value=(reply) { (label) }
            }
            Field::Step { mode, label } => {
                button type="submit" formmethod="get" formaction="./" name=(MODE) value=(mode) {
                    (label)
                }
            }
            Field::Hidden { name, value } => input type="hidden" name=(name) value=(value);,
            Field::Reset => a href="./" { "Start over" },
            Field::Choice(shown) => (choice(shown)),
            Field::Number { label, name, max, value } => {
                label {
                    (label) " "
                    input type="number" name=(name) min="1" max=(max) value=(value);
                }
            }
            Field::Text { label } => {
                label { (label) " " input type="text" name=(REPLY) autocomplete="off" required; }
            }
            Field::Send(label) => button type="submit" { (label) },
        }
    }
}

fn choice(choice: &Choice) -> Markup {
    let Choice { name, legend, options, default, sends } = choice;
    html! {
        fieldset.choice {
            legend { (legend) }
            @for (index, ChoiceOption { value, label, card }) in options.iter().enumerate() {
                @if *sends {
                    button type="submit" class=[card] name=(name) value=(value) { (label) } " "
                } @else {
                    label {
                        input type="radio" name=(name) value=(value)
                            checked[*default == Some(index)] required;
                        " " @if card.is_some() { span class=[card] { (label) } } @else { (label) }
                    } " "
                }
            }
        }
    }
}

/// Buttons over the squares of a board, row by row, if the form has any. They refer to the form by
/// its id.
pub(crate) fn squares(offer: &MoveForm) -> Option<Markup> {
    let squares = html! { @for shown in &offer.squares { (square(shown)) } };
    (!offer.squares.is_empty()).then_some(squares)
}

fn square(square: &SquareField) -> Markup {
    html! {
        @match square {
            SquareField::Occupied => span {},
            SquareField::Selected { colour, number } => {
                span class={ "picked " (colour) } { (number) }
            },
            SquareField::Free { name, value, label, sends } => {
                button type="submit" form=(FORM) name=(name) value=(value) aria-label=(label)
                    title=(label) formmethod=[(!sends).then_some("get")]
                    formaction=[(!sends).then_some("./")] {}
            }
        }
    }
}
