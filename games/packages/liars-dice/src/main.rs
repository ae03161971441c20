//! The rules of Liar's Dice for 2 to 6 seats.
//!
//! Arbiter writes one JSON object a line, and these rules answer each with one line. The state of
//! the match depends on these lines alone.

mod call;
mod dialogue;
mod dice;
mod drawing;
mod game;
mod words;

use std::io;

use dialogue::Dialogue;
use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let mut dialogue = None;
    for line in io::stdin().lines() {
        let question: Value = serde_json::from_str(&line?)?;
        println!("{}", answer(&mut dialogue, &question));
    }
    Ok(())
}

/// Answers a question.
fn answer(dialogue: &mut Option<Dialogue>, question: &Value) -> Value {
    if let Some(new) = question.get("new") {
        let dialogue = dialogue.insert(Dialogue::new(new));
        return json!({ "do": dialogue.begin() });
    }
    let dialogue = dialogue.as_mut().expect("the match has begun");
    if let Some(seat) = question["legal"].as_u64() {
        return json!({ "legal": dialogue.legal(seat) });
    }
    json!({ "do": dialogue.hear(&question["heard"][0]) })
}
