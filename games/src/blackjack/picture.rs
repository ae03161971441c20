//! The picture of blackjack: the cards of dealer and players, stakes and chips.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::{BEST, Card, Match, Player, moves, score};
use crate::match_state::{MatchView, Seat};
use crate::move_form::{FormFields, MoveForm};
use crate::name::BotName;
use crate::picture::{Cell, Item, Key, Part, Picture, Row, TablePicture, bits, name, number};

impl MatchView for Match {
    fn picture(&self, names: &[BotName], _viewer: Option<Seat>) -> Picture {
        let table = self.table();
        let player = |(seat, player): (Seat, &Player)| {
            let is_turn = table.turn() == Some(seat) && self.is_in_hand();
            Row {
                class: Some(if is_turn { "turn" } else { "" }),
                cells: vec![
                    Cell::seat(seat),
                    Cell::text(name(names, seat)),
                    Cell::of(player.hand().iter().copied().map(card).collect()).with_class("hand"),
                    points(player.hand()),
                    Cell::number(player.stake()),
                    Cell::number(player.chips()),
                    Cell::of(state(self, seat, player)),
                ],
            }
        };
        let players = Seat::all(table.players().len()).zip(table.players()).map(player);
        let picture = TablePicture {
            class: "cards blackjack",
            head: vec![
                Cell::text("Seat"),
                Cell::text("Bot"),
                Cell::text("Cards"),
                Cell::number("Score"),
                Cell::number("Stake"),
                Cell::number("Chips"),
                Cell::text("State"),
            ],
            rows: [dealer(self)].into_iter().chain(players).collect(),
            foot: Vec::new(),
        };
        Picture { caption: caption(self, names), parts: vec![Part::Table(picture)] }
    }

    fn picture_key(&self) -> Key {
        let table = self.table();
        let players = table.players();
        let acting = bits(players.len(), |seat| players[seat.index()].is_acting());
        let cards: usize = players.iter().map(|player| player.hand().len()).sum();
        let turn = table.turn().map_or(0, |seat| u64::from(seat.number()));
        let stakes: i64 = players.iter().map(Player::stake).sum();
        let hand = 2 * u64::from(self.dealt()) + u64::from(self.is_in_hand());
        [hand, number(cards + table.dealer().len()), acting, turn, stakes.unsigned_abs(), 0]
    }

    fn chapter(&self) -> Option<String> {
        Some(format!("Hand {}", self.dealt().max(1)))
    }

    fn move_form(&self, seat: Seat, _chosen: &FormFields) -> MoveForm {
        moves::move_form(self, seat)
    }

    fn form_reply(&self, _seat: Seat, fields: &FormFields) -> Result<String, String> {
        moves::reply(fields)
    }

    fn warn(&self, seat: Seat, reply: &str) -> Result<(), String> {
        moves::warn(self, seat, reply)
    }
}

/// The dealer's row. The second card is face down during the hand.
fn dealer(game: &Match) -> Row {
    let cards = game.table().dealer();
    let item = |(index, value): (usize, Card)| {
        if index == 1 && game.is_in_hand() { Item::FaceDown } else { card(value) }
    };
    let hidden: &[Card] = &[];
    Row {
        class: Some("dealer"),
        cells: vec![
            Cell::of(Vec::new()),
            Cell::text("the dealer"),
            Cell::of(cards.iter().copied().enumerate().map(item).collect()).with_class("hand"),
            points(if game.is_in_hand() { hidden } else { cards }),
            Cell::of(Vec::new()),
            Cell::number(game.table().house()),
            Cell::of(Vec::new()),
        ],
    }
}

fn card(card: Card) -> Item {
    Item::card(card.letter(), "")
}

fn points(hand: &[Card]) -> Cell {
    let points = (!hand.is_empty()).then(|| Item::text(score(hand)));
    Cell::of(points.into_iter().collect()).with_class("number")
}

fn state(game: &Match, seat: Seat, player: &Player) -> Vec<Item> {
    let state = if game.is_in_hand() && game.table().turn() == Some(seat) {
        "to act"
    } else if score(player.hand()) > BEST {
        "bust"
    } else if !player.hand().is_empty() && !player.is_acting() {
        "stands"
    } else {
        ""
    };
    let bad_replies = game.bad_answers(seat);
    let note = (bad_replies > 0).then(|| Item::text(format!(" (bad answers: {bad_replies})")));
    [Item::text(state)].into_iter().chain(note).collect()
}

fn caption(game: &Match, names: &[BotName]) -> String {
    let hand = game.dealt();
    let hands = game.hands();
    if hand == 0 {
        return "The table is open.".to_owned();
    }
    match game.table().turn() {
        Some(seat) if game.is_in_hand() => {
            format!("Hand {hand} of {hands}: {} is to act.", name(names, seat))
        }
        _ if game.is_in_hand() => format!("Hand {hand} of {hands}: all have acted."),
        _ => {
            let dealer = score(game.table().dealer());
            let bust = if dealer > BEST { ", which is bust" } else { "" };
            format!("Hand {hand} of {hands} is over: the dealer has {dealer}{bust}.")
        }
    }
}
