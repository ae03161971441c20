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
use crate::picture::{Cell, Item, Key, Part, Picture, Row, TablePicture, name, number, sees};

impl MatchView for Match {
    fn picture(&self, names: &[BotName], viewer: Option<Seat>) -> Picture {
        let [one, two] = Player::ALL.map(|player| bot(names, player));
        let row = |(number, table): (usize, &Table)| Row {
            class: Some(if table.turn().is_none() { "over" } else { "" }),
            cells: vec![
                Cell::number(number),
                Cell::text(
                    table.trump().map_or("none".to_owned(), |suit| suit.letter().to_string()),
                ),
                Cell::of(hand(table, Player::First, viewer)).classed("hand"),
                Cell::number(table.tricks(Player::First)),
                Cell::of(middle(table, names)).classed("middle"),
                Cell::number(table.tricks(Player::Second)),
                Cell::of(hand(table, Player::Second, viewer)).classed("hand"),
                Cell::number(table.pack()),
            ],
        };
        let table = TablePicture {
            class: "cards tricks",
            head: vec![
                Cell::number("Table"),
                Cell::text("Trump"),
                Cell::text(one),
                Cell::number("Tricks"),
                Cell::text("On the table"),
                Cell::number("Tricks"),
                Cell::text(two),
                Cell::number("Pack"),
            ],
            rows: (1..).zip(self.tables()).map(row).collect(),
            foot: Vec::new(),
        };
        Picture { caption: caption(self, names), parts: vec![Part::Table(table)] }
    }

    fn picture_key(&self) -> Key {
        let tables = self.tables();
        let held =
            |table: &Table| Player::ALL.map(|player| table.hand(player).len() + table.pack());
        let held: usize = tables.iter().flat_map(held).sum();
        let over = tables.iter().filter(|table| table.turn().is_none()).count();
        let won: u64 = tables.iter().map(|table| u64::from(table.tricks(Player::First))).sum();
        let turn = number(self.turn().index());
        [number(held), number(over), won, turn, 0, 0]
    }

    fn is_farewell(&self, unit: &str) -> bool {
        unit.lines().any(|line| line.starts_with(RESULT))
    }

    fn move_form(&self, seat: Seat, _chosen: &FormFields) -> MoveForm {
        moves::move_form(self, seat)
    }

    fn form_answer(&self, seat: Seat, fields: &FormFields) -> Result<String, String> {
        moves::answer(self, seat, fields)
    }

    fn warn(&self, seat: Seat, answer: &str) -> Result<(), String> {
        moves::warn(self, seat, answer)
    }
}

fn bot(names: &[BotName], player: Player) -> &str {
    name(names, Seat::from_index(player.index()))
}

/// A card in the colour of its suit, marked if it is a trump.
fn face(table: &Table, face: Card) -> Item {
    let trump = if table.trump() == Some(face.suit()) { " trump" } else { "" };
    Item::card(face, format!("suit{}{trump}", face.suit().letter()))
}

fn hand(table: &Table, player: Player, viewer: Option<Seat>) -> Vec<Item> {
    let mut hand = table.hand(player).to_vec();
    hand.sort_unstable();
    let visible = sees(viewer, Seat::from_index(player.index()));
    let turn = (table.turn() == Some(player)).then_some(Item::Sign {
        class: "turn",
        title: Some("to play"),
        text: "▸ ",
    });
    let card = |held| if visible { face(table, held) } else { Item::FaceDown };
    turn.into_iter().chain(hand.into_iter().map(card)).collect()
}

/// The cards between the players: the present attack, or the last trick.
fn middle(table: &Table, names: &[BotName]) -> Vec<Item> {
    let blank = || Item::text(" ");
    if let Some(attack) = table.attack() {
        return vec![face(table, attack), blank(), Item::Small("attacks".to_owned())];
    }
    let Some(trick) = table.last_trick() else { return Vec::new() };
    let won = Item::Small(format!("{} won", bot(names, trick.winner)));
    vec![face(table, trick.attack), blank(), face(table, trick.defence), blank(), won]
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
