//! The picture of tricks: all tables of a match with both hands, the present trick or the last one.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use super::{Card, Match, Player, RESULT, TRICKS, Table, moves};
use crate::match_state::{MatchView, Seat};
use crate::move_form::{FormFields, MoveForm};
use crate::name::BotName;
use crate::picture::{Cell, Item, Key, Part, Picture, Row, TablePicture, can_see, name, number};

impl MatchView for Match {
    fn picture(&self, names: &[BotName], viewer: Option<Seat>) -> Picture {
        let [first, second] = Player::ALL.map(|player| bot(names, player));
        let row = |(number, table): (usize, &Table)| Row {
            class: Some(if table.turn().is_none() { "over" } else { "" }),
            cells: vec![
                Cell::number(number),
                Cell::text(
                    table.trump().map_or("none".to_owned(), |suit| suit.letter().to_string()),
                ),
                Cell::of(hand(table, Player::First, viewer)).with_class("hand"),
                Cell::number(table.tricks(Player::First)),
                Cell::of(middle(table, names)).with_class("middle"),
                Cell::number(table.tricks(Player::Second)),
                Cell::of(hand(table, Player::Second, viewer)).with_class("hand"),
                Cell::number(table.pack()),
            ],
        };
        let table = TablePicture {
            class: "cards tricks",
            head: vec![
                Cell::number("Table"),
                Cell::text("Trump"),
                Cell::text(first),
                Cell::number("Tricks"),
                Cell::text("On the table"),
                Cell::number("Tricks"),
                Cell::text(second),
                Cell::number("Pack"),
            ],
            rows: (1..).zip(self.tables()).map(row).collect(),
            foot: Vec::new(),
        };
        Picture { caption: caption(self, names), parts: vec![Part::Table(table)] }
    }

    fn picture_key(&self) -> Key {
        let tables = self.tables();
        let cards =
            |table: &Table| Player::ALL.map(|player| table.hand(player).len() + table.pack());
        let cards: usize = tables.iter().flat_map(cards).sum();
        let over = tables.iter().filter(|table| table.turn().is_none()).count();
        let tricks: u64 = tables.iter().map(|table| u64::from(table.tricks(Player::First))).sum();
        let turn = number(self.turn().index());
        [number(cards), number(over), tricks, turn, 0, 0]
    }

    fn is_farewell(&self, unit: &str) -> bool {
        unit.lines().any(|line| line.starts_with(RESULT))
    }

    fn move_form(&self, seat: Seat, _chosen: &FormFields) -> MoveForm {
        moves::move_form(self, seat)
    }

    fn form_reply(&self, seat: Seat, fields: &FormFields) -> Result<String, String> {
        moves::reply(self, seat, fields)
    }

    fn warn(&self, seat: Seat, reply: &str) -> Result<(), String> {
        moves::warn(self, seat, reply)
    }
}

fn bot(names: &[BotName], player: Player) -> &str {
    name(names, Seat::from_index(player.index()))
}

/// A card in the colour of its suit, marked if it is a trump.
fn card(table: &Table, card: Card) -> Item {
    let trump = if table.trump() == Some(card.suit()) { " trump" } else { "" };
    Item::card(card, format!("suit{}{trump}", card.suit().letter()))
}

fn hand(table: &Table, player: Player, viewer: Option<Seat>) -> Vec<Item> {
    let mut hand = table.hand(player).to_vec();
    hand.sort_unstable();
    let visible = can_see(viewer, Seat::from_index(player.index()));
    let turn = (table.turn() == Some(player)).then_some(Item::Sign {
        class: "turn",
        title: Some("to play"),
        text: "▸ ",
    });
    let item = |value| if visible { card(table, value) } else { Item::FaceDown };
    turn.into_iter().chain(hand.into_iter().map(item)).collect()
}

/// The cards between the players: the present attack, or the last trick.
fn middle(table: &Table, names: &[BotName]) -> Vec<Item> {
    let blank = || Item::text(" ");
    if let Some(attack) = table.attack() {
        return vec![card(table, attack), blank(), Item::Small("attacks".to_owned())];
    }
    let Some(trick) = table.last_trick() else { return Vec::new() };
    let winner = Item::Small(format!("{} won", bot(names, trick.winner)));
    vec![card(table, trick.attack), blank(), card(table, trick.defence), blank(), winner]
}

fn caption(game: &Match, names: &[BotName]) -> String {
    let tables = game.tables();
    let over = tables.iter().filter(|table| table.turn().is_none()).count();
    let tricks = |player: Player| -> u32 {
        tables.iter().map(|table| u32::from(table.tricks(player))).sum()
    };
    let [first, second] =
        Player::ALL.map(|player| format!("{} {}", bot(names, player), tricks(player)));
    let score = format!("tricks: {first}, {second}");
    if game.is_over() {
        return format!("All {} tables of {TRICKS} tricks are over; {score}.", tables.len());
    }
    let turn = game.turn();
    let waiting = tables.iter().filter(|table| table.turn() == Some(turn)).count();
    let player = bot(names, turn);
    format!(
        "{player} is to play at {waiting} tables; {over} of {} are over; {score}.",
        tables.len()
    )
}
