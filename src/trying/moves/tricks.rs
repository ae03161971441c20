//! Cards of tricks: one at each table that waits.

use arbiter_games::Seat;
use arbiter_games::tricks::{Card, Match, Player, Table};
use maud::{Markup, html};

use super::{Fields, Offer};

/// What stands in an answer for a table that does not wait.
const NOTHING: &str = "_";

pub(super) fn offer(game: &Match, seat: Seat) -> Offer {
    let waiting: Vec<_> = waiting(game, seat).collect();
    let alone = waiting.len() == 1;
    let task = if alone { "Your card." } else { "Your cards, one at each table." };
    Offer {
        task: task.to_owned(),
        form: html! {
            @for (number, table) in waiting {
                fieldset.choice {
                    legend {
                        "Table " (number) ": "
                        @match table.attack() {
                            Some(attack) => { "answer " (attack) }
                            None => "attack"
                        }
                        @match table.trump() {
                            Some(trump) => { ", trump " (trump.letter()) }
                            None => ", no trump"
                        }
                    }
                    (cards(number, table, alone))
                }
            }
            @if !alone { button type="submit" { "Play these" } }
        },
        squares: None,
    }
}

/// The tables that wait for a seat, by their numbers from 1.
fn waiting(game: &Match, seat: Seat) -> impl Iterator<Item = (usize, &Table)> {
    let player = Player::ALL[seat.index()];
    let tables = (1..).zip(game.tables());
    tables.filter(move |(_, table)| table.turn() == Some(player))
}

/// The cards that may be played at a table.
fn cards(number: usize, table: &Table, alone: bool) -> Markup {
    let mut cards: Vec<_> = table.playable().collect();
    cards.sort_unstable();
    let only = cards.len() == 1;
    html! {
        @for card in cards {
            @let class = format!("card suit{}", card.suit().letter());
            @if alone {
                button type="submit" class=(class) name={ "card-" (number) } value=(card) { (card) } " "
            } @else {
                label {
                    input type="radio" name={ "card-" (number) } value=(card) checked[only] required;
                    span class=(class) { (card) }
                } " "
            }
        }
    }
}

pub(super) fn answer(game: &Match, seat: Seat, fields: &Fields) -> Result<String, String> {
    let player = Player::ALL[seat.index()];
    let word = |(number, table): (usize, &Table)| {
        if table.turn() != Some(player) {
            return Ok(NOTHING);
        }
        fields.get(&format!("card-{number}")).ok_or(format!("choose a card at table {number}"))
    };
    let words: Result<Vec<_>, _> = (1..).zip(game.tables()).map(word).collect();
    Ok(format!("move={}", words?.join(" ")))
}

/// A card that may not be played loses its table by the rules; a person is told instead.
pub(super) fn check(game: &Match, seat: Seat, answer: &str) -> Result<(), String> {
    let cards = answer.trim_ascii();
    let cards = cards.strip_prefix("move=").unwrap_or(cards);
    let words: Vec<_> = cards.split_ascii_whitespace().collect();
    for (number, table) in waiting(game, seat) {
        let word = words.get(number - 1).copied().unwrap_or_default();
        let card: Result<Card, _> = word.parse();
        let card = card.map_err(|error| format!("table {number}: {error}"))?;
        if !table.playable().any(|playable| playable == card) {
            let playable: Vec<_> = table.playable().map(|card| card.to_string()).collect();
            return Err(format!(
                "table {number}: {card} may not be played, and would lose the table; {} may",
                playable.join(", ")
            ));
        }
    }
    Ok(())
}
