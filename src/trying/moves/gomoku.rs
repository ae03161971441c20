//! Stones of gomoku: squares of the board, several of them in the opening.

use arbiter_games::gomoku::{Match, Phase, Square};
use maud::{Markup, html};

use super::{FORM, Fields, Offer, button};

/// What the opening of B may come to, besides black at once.
const WHITE: &str = "white";
const BOTH: &str = "both";

/// The fields: squares that were chosen, and which way the opening is answered.
pub(super) const PICK: &str = "pick";
pub(super) const MODE: &str = "mode";

pub(super) fn offer(game: &Match, chosen: &Fields) -> Offer {
    let mode = chosen.get(MODE).unwrap_or_default();
    match game.phase() {
        Phase::Play { .. } => {
            let task = "Your stone: click on its square.".to_owned();
            Offer { task, form: html! {}, squares: Some(squares(game, chosen, &[""])) }
        }
        Phase::Choose => Offer {
            task: "Which colour do you take?".to_owned(),
            form: html! { (button("\"B\"", "Black")) " " (button("\"W\"", "White")) },
            squares: None,
        },
        Phase::Open => several(game, chosen, "", &["black", "black", "white"]),
        Phase::Swap if mode == WHITE => several(game, chosen, WHITE, &["white"]),
        Phase::Swap if mode == BOTH => several(game, chosen, BOTH, &["black", "white"]),
        Phase::Swap => Offer {
            task: "How do you answer the opening?".to_owned(),
            form: html! {
                (button("\"B\"", "Take black"))
                @for (mode, label) in [(WHITE, "Take white, and put a white stone"),
                    (BOTH, "Put a black and a white stone, and let the other choose")] {
                    " " button type="submit" formmethod="get" formaction="./" name=(MODE) value=(mode) { (label) }
                }
            },
            squares: None,
        },
    }
}

/// The offer of a move of several stones, of these colours.
fn several(game: &Match, chosen: &Fields, mode: &str, colours: &[&str]) -> Offer {
    let picked: Vec<_> = chosen.all(PICK).take(colours.len() - 1).collect();
    let due = colours[picked.len()];
    let number = picked.len() + 1;
    let many = colours.len();
    let task = format!("Put a {due} stone ({number} of {many}): click on its square.");
    let form = html! {
        @if !mode.is_empty() { input type="hidden" name=(MODE) value=(mode); }
        @for square in &picked { input type="hidden" name=(PICK) value=(square); }
        @if !picked.is_empty() || !mode.is_empty() { a href="./" { "Choose anew" } }
    };
    Offer { task, form, squares: Some(squares(game, chosen, colours)) }
}

/// A button on every free square. The last of the squares of a move sends it; those before ask for
/// the next.
fn squares(game: &Match, chosen: &Fields, colours: &[&str]) -> Markup {
    let picked: Vec<_> = chosen.all(PICK).take(colours.len() - 1).collect();
    let last = picked.len() + 1 == colours.len();
    html! {
        @for y in 0..arbiter_games::gomoku::SIDE { @for x in 0..arbiter_games::gomoku::SIDE {
            @let name = format!("({x},{y})");
            @let square = Square::new(x, y).expect("the loops stay on the board");
            @let before = picked.iter().position(|picked| *picked == name);
            @if let Some(before) = before {
                span class={ "picked " (colours[before]) } { (before + 1) }
            } @else if game.board().get(square).is_some() {
                span {}
            } @else if last {
                button type="submit" form=(FORM) name=(PICK) value=(name) aria-label=(name) title=(name) {}
            } @else {
                button type="submit" form=(FORM) name=(PICK) value=(name) aria-label=(name) title=(name)
                    formmethod="get" formaction="./" {}
            }
        } }
    }
}

pub(super) fn answer(fields: &Fields) -> Result<String, String> {
    let squares: Vec<_> = fields.all(PICK).collect();
    if squares.is_empty() {
        return Err("choose a square of the board".to_owned());
    }
    let colour = if fields.get(MODE) == Some(WHITE) { "\"W\" " } else { "" };
    Ok(format!("{colour}{}", squares.concat()))
}
