//! Tricks: all tables of a match, each with both hands, the trick on it and the one before.

use arbiter_games::tricks::{Card, Match, Player, TRICKS, Table};
use arbiter_games::{BotName, Seat};
use maud::{Markup, html};

use super::{Key, Picture, card, name, number, sees};

/// What a picture of this state shows.
pub(super) fn key(game: &Match) -> Key {
    let tables = game.tables();
    let held = |table: &Table| Player::ALL.map(|player| table.hand(player).len() + table.pack());
    let held: usize = tables.iter().flat_map(held).sum();
    let over = tables.iter().filter(|table| table.turn().is_none()).count();
    let won: u64 = tables.iter().map(|table| u64::from(table.tricks(Player::First))).sum();
    let turn = number(game.turn().index());
    [number(held), number(over), won, turn, 0, 0]
}

/// Draws the tables, as the player of `eyes` sees them.
pub(super) fn draw(game: &Match, names: &[BotName], eyes: Option<Seat>) -> Picture {
    let [one, two] = Player::ALL.map(|player| bot(names, player));
    let caption = caption(game, names);
    let markup = html! {
        table.cards.tricks {
            thead {
                tr {
                    th.number { "Table" } th { "Trump" }
                    th { (one) } th.number { "Tricks" } th { "On the table" }
                    th.number { "Tricks" } th { (two) } th.number { "Pack" }
                }
            }
            tbody {
                @for (index, table) in game.tables().iter().enumerate() {
                    tr.over[table.turn().is_none()] {
                        td.number { (index + 1) }
                        td { (table.trump().map_or("none".to_owned(), |suit| suit.letter().to_string())) }
                        td.hand { (hand(table, Player::First, eyes)) }
                        td.number { (table.tricks(Player::First)) }
                        td.middle { (middle(table, names)) }
                        td.number { (table.tricks(Player::Second)) }
                        td.hand { (hand(table, Player::Second, eyes)) }
                        td.number { (table.pack()) }
                    }
                }
            }
        }
    };
    Picture { caption, markup }
}

fn bot(names: &[BotName], player: Player) -> &str {
    name(names, Seat::from_index(player.index()))
}

/// A card, in the colour of its suit, marked if it is trump.
fn face(table: &Table, face: Card) -> Markup {
    let trump = if table.trump() == Some(face.suit()) { " trump" } else { "" };
    card(&face.to_string(), &format!("suit{}{trump}", face.suit().letter()))
}

fn hand(table: &Table, player: Player, eyes: Option<Seat>) -> Markup {
    let mut hand = table.hand(player).to_vec();
    hand.sort_unstable();
    let visible = sees(eyes, Seat::from_index(player.index()));
    html! {
        @if table.turn() == Some(player) { span.turn title="to play" { "▸ " } }
        @for held in hand { @if visible { (face(table, held)) } @else { (card("", "")) } }
    }
}

/// What lies between the players: the attack that is to be answered, or the trick before.
fn middle(table: &Table, names: &[BotName]) -> Markup {
    html! {
        @if let Some(attack) = table.attack() {
            (face(table, attack)) " " small { "attacks" }
        } @else if let Some(trick) = table.last_trick() {
            (face(table, trick.attack)) " " (face(table, trick.defence)) " "
            small { (bot(names, trick.winner)) " won" }
        }
    }
}

fn caption(game: &Match, names: &[BotName]) -> String {
    let tables = game.tables();
    let over = tables.iter().filter(|table| table.turn().is_none()).count();
    let won = |player: Player| -> u32 {
        tables.iter().map(|table| u32::from(table.tricks(player))).sum()
    };
    let [one, two] = Player::ALL.map(|player| format!("{} {}", bot(names, player), won(player)));
    let score = format!("tricks: {one}, {two}");
    if game.is_over() {
        return format!("All {} tables of {TRICKS} tricks are over; {score}.", tables.len());
    }
    let turn = game.turn();
    let waiting = tables.iter().filter(|table| table.turn() == Some(turn)).count();
    let whose = bot(names, turn);
    format!("{whose} is to play at {waiting} tables; {over} of {} are over; {score}.", tables.len())
}
