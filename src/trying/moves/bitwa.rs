//! Orders of bitwa: the target is a square of the board, what breaks ties is set beside it.

use arbiter_games::Seat;
use arbiter_games::bitwa::{Division, Match};
use maud::{Markup, html};

use super::{FORM, Fields, Offer};

/// What belongs to an order besides its target.
struct Choice {
    name: &'static str,
    /// What it is for.
    what: &'static str,
    /// Its two values, and what they mean; the first one holds if none is chosen.
    values: [(&'static str, &'static str); 2],
}

/// The choices, in the order of the protocol: those before the target and those behind it.
const CHOICES: [Choice; 4] = [
    Choice { name: "a", what: "Enemies on the way", values: [("1", "attack"), ("0", "pass by")] },
    Choice { name: "dx", what: "Among equals, dx", values: [("1", "right"), ("-1", "left")] },
    Choice { name: "dy", what: "Among equals, dy", values: [("1", "down"), ("-1", "up")] },
    Choice { name: "p", what: "First comes", values: [("1", "dx"), ("0", "dy")] },
];

pub(super) fn offer(game: &Match, seat: Seat) -> Offer {
    let task = match due(game, seat) {
        Some(division) => format!("Your order to division {division}: click on its target."),
        None => "Your order: click on its target.".to_owned(),
    };
    Offer { task, form: choices(), squares: Some(squares(game)) }
}

/// The division of `seat` that is to be ordered next: the first one with units after the last that
/// was ordered, or the first of the next round.
fn due(game: &Match, seat: Seat) -> Option<Division> {
    let last = game.last_order().map(|(division, _)| division);
    let can_move =
        |division: &Division| division.seat() == seat && !game.battle().units(*division).is_empty();
    let later = Division::all().filter(|division| Some(*division) > last).find(can_move);
    later.or_else(|| Division::all().find(can_move))
}

fn choices() -> Markup {
    html! {
        @for Choice { name, what, values } in CHOICES {
            fieldset.choice {
                legend { (what) }
                @for (index, (value, meaning)) in values.into_iter().enumerate() {
                    label { input type="radio" name=(name) value=(value) checked[index == 0]; " " (meaning) }
                }
            }
        }
    }
}

fn squares(game: &Match) -> Markup {
    let (columns, rows) = (game.board().columns(), game.board().rows());
    html! {
        @for y in 0..rows { @for x in 0..columns {
            button type="submit" form=(FORM) name="at" value={ (x) " " (y) }
                aria-label={ "(" (x) ", " (y) ")" } title={ "(" (x) ", " (y) ")" } {}
        } }
    }
}

pub(super) fn answer(fields: &Fields) -> Result<String, String> {
    let at = fields.get("at").ok_or("choose a square of the board")?;
    let value = |Choice { name, values: [(first, _), _], .. }: Choice| {
        fields.get(name).unwrap_or(first).to_owned()
    };
    let [attack, dx, dy, p] = CHOICES.map(value);
    Ok(format!("= {attack} {at} {dx} {dy} {p}"))
}
