//! A match of a package as people see it.

use arbiter_games::Illegal;
use arbiter_games::move_form::{Choice, ChoiceOption, Field, MoveForm, REPLY};

/// Up to this number of legal replies, each has its own button.
const MAX_BUTTONS: usize = 40;

/// The form for a move: the legal replies, or a line of text if the rules do not list them.
pub(crate) fn move_form(legal: &[String]) -> MoveForm {
    let fields = match legal {
        [] => vec![Field::Text { label: "reply".to_owned() }, send()],
        legal if legal.len() <= MAX_BUTTONS => legal
            .iter()
            .map(|reply| Field::Reply { reply: reply.clone(), label: reply.clone() })
            .collect(),
        legal => {
            let option = |reply: &String| ChoiceOption {
                value: reply.clone(),
                label: reply.clone(),
                card: None,
            };
            let options = legal.iter().map(option).collect();
            let choice = Choice {
                name: REPLY.to_owned(),
                legend: "reply".to_owned(),
                options,
                default: None,
                sends: false,
            };
            vec![Field::Choice(choice), send()]
        }
    };
    MoveForm { task: "It is your turn.".to_owned(), fields, squares: Vec::new() }
}

fn send() -> Field {
    Field::Send("Send".to_owned())
}

/// Checks a person's reply. Nothing is known about it if the rules do not list the legal ones.
pub(crate) fn check_legal(legal: &[String], reply: &str) -> Result<(), Illegal> {
    if legal.is_empty() || legal.iter().any(|legal| legal == reply) {
        return Ok(());
    }
    let some: Vec<_> = legal.iter().take(20).map(String::as_str).collect();
    Err(Illegal(format!("{reply:?} is not one of the legal replies, such as {}", some.join(", "))))
}
