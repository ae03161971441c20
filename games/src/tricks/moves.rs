//! The move form of tricks: a card for each table that waits for the person.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use super::picture::{colour, face, sign};
use super::{Card, KEY, Match, Player, Table};
use crate::match_state::Seat;
use crate::move_form::{Choice, ChoiceOption, Field, FormFields, MoveForm};

/// The word in a reply for a table that waits for the opponent.
const NO_CARD: &str = "_";

pub(super) fn move_form(game: &Match, seat: Seat) -> MoveForm {
    let waiting: Vec<_> = waiting(game, seat).collect();
    let is_single = waiting.len() == 1;
    let task = if is_single { "Your card." } else { "Your cards, one at each table." };
    let choices =
        waiting.into_iter().map(|(number, table)| Field::Choice(choice(number, table, is_single)));
    let send = (!is_single).then(|| Field::Send("Play these".to_owned()));
    MoveForm { task: task.to_owned(), fields: choices.chain(send).collect(), squares: Vec::new() }
}

/// The tables that wait for a seat, with their numbers from 1.
fn waiting(game: &Match, seat: Seat) -> impl Iterator<Item = (usize, &Table)> {
    let player = Player::ALL[seat.index()];
    let tables = (1..).zip(game.tables());
    tables.filter(move |(_, table)| table.turn() == Some(player))
}

/// The choice of a legal card at a table. Choosing sends the form if only this table waits.
fn choice(number: usize, table: &Table, is_single: bool) -> Choice {
    let mut cards: Vec<_> = table.playable().collect();
    cards.sort_unstable();
    let task = match table.attack() {
        Some(attack) => format!("answer {}", face(attack)),
        None => "attack".to_owned(),
    };
    let trump = match table.trump() {
        Some(trump) => format!("trump {}", sign(trump)),
        None => "no trump".to_owned(),
    };
    let option = |card: &Card| ChoiceOption {
        value: card.to_string(),
        label: face(*card),
        card: Some(format!("card {}", colour(*card)).trim_end().to_owned()),
    };
    Choice {
        name: field(number),
        legend: format!("Table {number}: {task}, {trump}"),
        default: (cards.len() == 1).then_some(0),
        options: cards.iter().map(option).collect(),
        sends: is_single,
    }
}

/// The name of the field for a table's card.
fn field(number: usize) -> String {
    format!("card-{number}")
}

pub(super) fn reply(game: &Match, seat: Seat, fields: &FormFields) -> Result<String, String> {
    let player = Player::ALL[seat.index()];
    let word = |(number, table): (usize, &Table)| {
        if table.turn() != Some(player) {
            return Ok(NO_CARD);
        }
        fields.get(&field(number)).ok_or(format!("choose a card at table {number}"))
    };
    let words: Result<Vec<_>, _> = (1..).zip(game.tables()).map(word).collect();
    Ok(format!("{KEY}{}", words?.join(" ")))
}

/// Warns of an illegal card, which would lose its table.
pub(super) fn warn(game: &Match, seat: Seat, reply: &str) -> Result<(), String> {
    let line = reply.trim_ascii();
    let cards = line.strip_prefix(KEY).unwrap_or(line);
    let words: Vec<_> = cards.split_ascii_whitespace().collect();
    for (number, table) in waiting(game, seat) {
        let word = words.get(number - 1).copied().unwrap_or_default();
        let card: Card = word.parse().map_err(|error| format!("table {number}: {error}"))?;
        if !table.playable().any(|playable| playable == card) {
            let playable: Vec<_> = table.playable().map(|card| card.to_string()).collect();
            return Err(format!(
                "table {number}: {card} is not allowed and would lose the table; allowed: {}",
                playable.join(", ")
            ));
        }
    }
    Ok(())
}
