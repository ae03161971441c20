//! Wojna: piles, bids, the cards that are peeked at, and the pot.

use arbiter_games::wojna::{Fate, Match, Outcome};
use arbiter_games::{BotName, Seat};
use maud::{Markup, html};

use super::{Key, Picture, bits, card, name, number, sees};

/// What a picture of this state shows.
pub(super) fn key(game: &Match) -> Key {
    let deal = game.deal();
    let seats = deal.seats();
    let turn = deal.turn().map_or(0, |seat| u64::from(seat.number()));
    let bidding = bits(seats, |seat| deal.peeked(seat).is_some());
    let alive = bits(seats, |seat| game.forfeited(seat).is_none());
    let shown = u64::from(game.is_showdown());
    let auction = u64::from(deal.auction());
    let pot = number(deal.pot());
    [u64::from(game.number()), auction, pot, turn, bidding, 2 * alive + shown]
}

/// Draws the table, as the player of `eyes` sees it.
pub(super) fn draw(game: &Match, names: &[BotName], eyes: Option<Seat>) -> Picture {
    let (deal, caption) = (game.deal(), caption(game, names));
    let markup = html! {
        table.cards.wojna {
            thead {
                tr {
                    th { "Seat" } th { "Bot" } th { "Card" } th.number { "Bid" } th.number { "Pile" }
                    th.number { "Points" } th { "State" }
                }
            }
            tbody {
                @for seat in Seat::all(deal.seats()) {
                    tr.turn[deal.turn() == Some(seat)] {
                        td class={ "seat" (seat) } { (seat) }
                        td { (name(names, seat)) }
                        td { (shown(game, seat, eyes)) }
                        td.number { (deal.paid(seat)) }
                        td.number {
                            (deal.pile(seat)) " "
                            meter min="0" max=(cards(game)) value=(deal.pile(seat))
                                aria-label={ "cards of seat " (seat) } {}
                        }
                        td.number { (game.points(seat)) }
                        td { (state(game, seat)) }
                    }
                }
            }
            tfoot { tr { th colspan="4" scope="row" { "Pot" } td.number { (deal.pot()) } td colspan="2" {} } }
        }
    };
    Picture { caption, markup }
}

/// How many cards there are in all.
fn cards(game: &Match) -> usize {
    let deal = game.deal();
    deal.pot() + Seat::all(deal.seats()).map(|seat| deal.pile(seat)).sum::<usize>()
}

/// The card that a seat bids with.
fn shown(game: &Match, seat: Seat, eyes: Option<Seat>) -> Markup {
    let shown = if game.is_showdown() { "open" } else { "peeked" };
    let visible = game.is_showdown() || sees(eyes, seat);
    html! {
        @if let Some(value) = game.deal().peeked(seat) {
            @if visible { (card(&value.to_string(), shown)) } @else { (card("", "")) }
        }
    }
}

fn state(game: &Match, seat: Seat) -> String {
    let deal = game.deal();
    if let Some(forfeit) = game.forfeited(seat) {
        return format!("forfeited: {forfeit}");
    }
    match deal.fate(seat) {
        Fate::Left(auction) => format!("left after auction {auction}"),
        _ if deal.turn() == Some(seat) => "to bid".to_owned(),
        _ if deal.peeked(seat).is_some() => "bidding".to_owned(),
        _ if deal.paid(seat) > 0 => "passed".to_owned(),
        _ => String::new(),
    }
}

fn caption(game: &Match, names: &[BotName]) -> String {
    let deal = game.deal();
    let (number, deals, auction, pot) = (game.number(), game.deals(), deal.auction(), deal.pot());
    if number == 0 {
        return "The cards are dealt.".to_owned();
    }
    if auction == 0 {
        return format!("Deal {number} of {deals} begins.");
    }
    let place = format!("Deal {number} of {deals}, auction {auction}");
    if let Some(seat) = deal.turn() {
        return format!("{place}: {} is to bid; {pot} cards are in the pot.", name(names, seat));
    }
    if !game.is_showdown() {
        // What was paid is forgotten with the auction that it was paid in.
        let bid = Seat::all(deal.seats()).any(|seat| deal.paid(seat) > 0);
        let what =
            if bid { format!("{place}: bidding") } else { format!("Deal {number} of {deals}") };
        return format!("{what} has ended.");
    }
    match deal.outcome() {
        Outcome::Won(winner) => {
            let card = deal.peeked(winner).map(|card| format!(" with a {card}"));
            let winner = name(names, winner);
            format!("{place}: {winner} takes {pot} cards{}.", card.unwrap_or_default())
        }
        Outcome::War(fighters) => {
            let fighters = Seat::all(deal.seats()).filter(|seat| fighters[seat.index()]);
            let fighters: Vec<_> = fighters.map(|seat| name(names, seat)).collect();
            format!("{place}: war between {} for {pot} cards.", fighters.join(" and "))
        }
        Outcome::Stays => format!("{place}: nobody can take the {pot} cards; they stay."),
    }
}
