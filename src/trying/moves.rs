//! What a person may play: offered as buttons, read from a form, judged by the rules.
//!
//! A form comes to an answer in the words of the game's own protocol, the same that a bot would
//! give; whoever likes can type those words. Whether they are legal is for the rules to say: the
//! answer is tried on a copy of the match. Where the rules take an answer but punish it (a card that
//! may not be played loses a table, a double that cannot be paid is standing), a person is told
//! before and not after.

mod bitwa;
mod blackjack;
mod gomoku;
mod tricks;
mod wojna;

use arbiter_games::{Micros, Seat, View};
use maud::{Markup, html};

/// What a person may do now.
#[derive(Debug)]
pub(crate) struct Offer {
    /// What to do, in a sentence.
    pub(crate) task: String,
    /// What is in the form of the move.
    pub(crate) form: Markup,
    /// Buttons that lie on the squares of a board, row by row; they belong to the form by its name.
    pub(crate) squares: Option<Markup>,
}

/// The name of the form of a move, for buttons that lie elsewhere.
pub(crate) const FORM: &str = "move";

/// The fields of a form or of a query, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(pub(crate) Vec<(String, String)>);

impl Fields {
    /// The first value under a name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut fields = self.0.iter();
        fields.find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All values under a name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The first value under a name, as a number or whatever else it is to be.
    pub(crate) fn read<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name).and_then(|value| value.parse().ok())
    }
}

/// What the person at `seat` may do. `chosen` are the squares and the like that were chosen before,
/// for moves that take several.
pub(crate) fn offer(view: View<'_>, seat: Seat, chosen: &Fields) -> Offer {
    match view {
        View::Wojna(_) => wojna::offer(view, seat),
        View::Bitwa(game) => bitwa::offer(game, seat),
        View::Tricks(game) => tricks::offer(game, seat),
        View::Blackjack(game) => blackjack::offer(game, seat),
        View::Gomoku(game) => gomoku::offer(game, chosen),
    }
}

/// Whether a field of this name holds part of a move that takes several steps.
pub(crate) fn is_chosen(name: &str) -> bool {
    [gomoku::PICK, gomoku::MODE].contains(&name)
}

/// The answer that a form comes to.
///
/// # Errors
/// If something is missing in it: what, for the person.
pub(crate) fn answer(view: View<'_>, seat: Seat, fields: &Fields) -> Result<String, String> {
    if let Some(answer) = fields.get("answer") {
        return Ok(answer.trim().to_owned());
    }
    match view {
        View::Wojna(_) => Err("choose a move".to_owned()),
        View::Bitwa(_) => bitwa::answer(fields),
        View::Tricks(game) => tricks::answer(game, seat, fields),
        View::Blackjack(_) => blackjack::answer(fields),
        View::Gomoku(_) => gomoku::answer(fields),
    }
}

/// Whether the person at `seat` may answer so.
///
/// # Errors
/// Why not: in the words of the rules, where these have any.
pub(crate) fn check(view: View<'_>, seat: Seat, answer: &str) -> Result<(), String> {
    view.fork().heard(Ok(answer), Micros::ZERO).map_err(|illegal| illegal.to_string())?;
    match view {
        View::Tricks(game) => tricks::check(game, seat, answer),
        View::Blackjack(game) => blackjack::check(game, seat, answer),
        View::Wojna(_) | View::Bitwa(_) | View::Gomoku(_) => Ok(()),
    }
}

/// A button that plays an answer.
fn button(answer: &str, label: &str) -> Markup {
    html! { button type="submit" name="answer" value=(answer) { (label) } }
}

#[cfg(test)]
mod tests;
