//! The picture of wojna: piles, bids, peeked cards and the pot.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::scoring::DealResult;
use super::{Match, PotOutcome, moves};
use crate::gtp::FAREWELL;
use crate::match_state::{MatchView, Seat};
use crate::move_form::{FormFields, MoveForm};
use crate::name::BotName;
use crate::picture::{
    Cell, Item, Key, Part, Picture, Row, TablePicture, bits, can_see, name, number,
};

impl MatchView for Match {
    fn picture(&self, names: &[BotName], viewer: Option<Seat>) -> Picture {
        let deal = self.deal();
        let cards = cards(self);
        let row = |seat| Row {
            class: Some(if deal.turn() == Some(seat) { "turn" } else { "" }),
            cells: vec![
                Cell::seat(seat),
                Cell::text(name(names, seat)),
                Cell::of(card(self, seat, viewer)),
                Cell::number(deal.paid(seat)),
                pile(deal.pile(seat), cards, seat),
                Cell::number(self.points(seat)),
                Cell::text(state(self, seat)),
            ],
        };
        let table = TablePicture {
            class: "cards wojna",
            head: vec![
                Cell::text("Seat"),
                Cell::text("Bot"),
                Cell::text("Card"),
                Cell::number("Bid"),
                Cell::number("Pile"),
                Cell::number("Points"),
                Cell::text("State"),
            ],
            rows: Seat::all(deal.seats()).map(row).collect(),
            foot: vec![
                Cell::text("Pot").spanning(4).as_header(),
                Cell::number(deal.pot()),
                Cell::of(Vec::new()).spanning(2),
            ],
        };
        Picture { caption: caption(self, names), parts: vec![Part::Table(table)] }
    }

    fn picture_key(&self) -> Key {
        let deal = self.deal();
        let seats = deal.seats();
        let turn = deal.turn().map_or(0, |seat| u64::from(seat.number()));
        let bidding = bits(seats, |seat| deal.peeked(seat).is_some());
        let alive = bits(seats, |seat| self.forfeited(seat).is_none());
        let shown = u64::from(self.is_showdown());
        let auction = u64::from(deal.auction());
        let pot = number(deal.pot());
        [u64::from(self.number()), auction, pot, turn, bidding, 2 * alive + shown]
    }

    fn chapter(&self) -> Option<String> {
        Some(format!("Deal {}", self.number().max(1)))
    }

    fn is_farewell(&self, unit: &str) -> bool {
        unit.trim() == FAREWELL
    }

    fn move_form(&self, _seat: Seat, _chosen: &FormFields) -> MoveForm {
        moves::move_form(self)
    }
}

/// The number of all cards.
fn cards(game: &Match) -> usize {
    let deal = game.deal();
    deal.pot() + Seat::all(deal.seats()).map(|seat| deal.pile(seat)).sum::<usize>()
}

/// The number of cards of a seat, with a meter.
fn pile(cards: usize, max: usize, seat: Seat) -> Cell {
    let label = format!("cards of seat {seat}");
    let meter = Item::Meter { max, value: cards, label };
    Cell::of(vec![Item::text(format!("{cards} ")), meter]).with_class("number")
}

/// The card of a bidding seat.
fn card(game: &Match, seat: Seat, viewer: Option<Seat>) -> Vec<Item> {
    let class = if game.is_showdown() { "open" } else { "peeked" };
    let visible = game.is_showdown() || can_see(viewer, seat);
    let item = |value| if visible { Item::card(value, class) } else { Item::FaceDown };
    game.deal().peeked(seat).map(item).into_iter().collect()
}

fn state(game: &Match, seat: Seat) -> String {
    let deal = game.deal();
    if let Some(forfeit) = game.forfeited(seat) {
        return format!("forfeited: {forfeit}");
    }
    match deal.result(seat) {
        DealResult::Left(auction) => format!("left after auction {auction}"),
        _ if deal.turn() == Some(seat) => "to bid".to_owned(),
        _ if deal.peeked(seat).is_some() => "bidding".to_owned(),
        _ if deal.paid(seat) > 0 => "passed".to_owned(),
        _ => String::new(),
    }
}

fn caption(game: &Match, names: &[BotName]) -> String {
    let deal = game.deal();
    let number = game.number();
    let deals = game.deals();
    let auction = deal.auction();
    let pot = deal.pot();
    if number == 0 {
        return "The cards are dealt.".to_owned();
    }
    if auction == 0 {
        return format!("Deal {number} of {deals} begins.");
    }
    let position = format!("Deal {number} of {deals}, auction {auction}");
    if let Some(seat) = deal.turn() {
        return format!("{position}: {} is to bid; {pot} cards are in the pot.", name(names, seat));
    }
    if !game.is_showdown() {
        // Payments are reset with each auction.
        let has_bids = Seat::all(deal.seats()).any(|seat| deal.paid(seat) > 0);
        let stage = if has_bids {
            format!("{position}: bidding")
        } else {
            format!("Deal {number} of {deals}")
        };
        return format!("{stage} has ended.");
    }
    match deal.outcome() {
        PotOutcome::Won(winner) => {
            let card = deal.peeked(winner).map(|card| format!(" with a {card}"));
            let winner = name(names, winner);
            format!("{position}: {winner} takes {pot} cards{}.", card.unwrap_or_default())
        }
        PotOutcome::War(fighters) => {
            let fighters = Seat::all(deal.seats()).filter(|seat| fighters[seat.index()]);
            let fighters: Vec<_> = fighters.map(|seat| name(names, seat)).collect();
            format!("{position}: war between {} for {pot} cards.", fighters.join(" and "))
        }
        PotOutcome::Stays => {
            format!("{position}: no seat can take the {pot} cards; they stay in the pot.")
        }
    }
}
