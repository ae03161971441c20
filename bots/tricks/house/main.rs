//! House, a bot for tricks. [`player`] describes its play.

mod player;

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use player::Table;

/// The number of worlds in which each card is tried.
const WORLDS: usize = 60;

/// The word for a table in a reply.
fn reply(table: &mut Table, state: &str) -> String {
    if state == "_" || state.ends_with('.') {
        return state[state.len() - 1..].to_owned();
    }
    table.hear(state);
    let card = table.choose();
    table.lay(card);
    player::name(card)
}

/// Plays until all tables are over, or a pipe is closed.
fn converse() -> io::Result<()> {
    let mut tables: Vec<Table> = Vec::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let Some(states) = line.strip_prefix("states: ") else { continue };
        let states: Vec<_> = states.split_ascii_whitespace().collect();
        tables.resize_with(states.len(), || Table::new(WORLDS));
        let tables = tables.iter_mut().zip(states);
        let words: Vec<_> = tables.map(|(table, state)| reply(table, state)).collect();
        if words.iter().all(|word| word == ".") {
            break;
        }
        let mut out = io::stdout().lock();
        writeln!(out, "move={}", words.join(" "))?;
        out.flush()?;
    }
    Ok(())
}

fn main() -> ExitCode {
    match converse() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
