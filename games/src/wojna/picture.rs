//! The picture of wojna: a place for each seat around the pot, with piles, bids and peeked cards.
//!
//! The cards of an auction are won at its end, in the same call that begins the next auction. So
//! the picture of the shown cards already names the winner of the pot.

use alloc::borrow::{Cow, ToOwned as _};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::scoring::DealResult;
use super::{Event, MAX_SEATS, Match, Move, Phase, PotOutcome, moves};
use crate::gtp::FAREWELL;
use crate::match_state::{MatchView, Seat};
use crate::move_form::{FormFields, MoveForm};
use crate::name::EntrantName;
use crate::picture::{
    Item, Key, Line, Part, Picture, Place, PlacesPicture, can_see, count, list, name, number,
    seat_name, signed,
};

impl MatchView for Match {
    fn picture(&self, names: &[EntrantName], viewer: Option<Seat>) -> Picture {
        let mut places: Vec<_> =
            self.seats().map(|seat| seat_place(self, names, seat, viewer)).collect();
        places.push(pot_place(self, names));
        let table = PlacesPicture { class: "wojna", places };
        Picture { caption: caption(self, names), parts: vec![Part::Places(table)] }
    }

    fn picture_key(&self) -> Key {
        let phase = match self.phase {
            Phase::Deal | Phase::Auction => 0,
            Phase::Bidding => 1,
            Phase::Showdown => 2,
            Phase::Over => 3,
        };
        let auction = u64::from(self.deal.auction());
        [u64::from(self.number.max(1)), auction, phase, self.past.events, 0, 0]
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
fn cards(game: &Match) -> u64 {
    let deal = game.deal();
    number(deal.pot() + game.seats().map(|seat| deal.pile(seat)).sum::<usize>())
}

/// The outcome of the auction whose cards are shown.
fn outcome(game: &Match) -> Option<PotOutcome> {
    game.is_showdown().then(|| game.deal().outcome())
}

/// Whether the points of the last deal are news: a new deal has just begun, or the match is over.
fn is_deal_over(game: &Match) -> bool {
    let is_begin = game.number > 1 && game.deal.auction() == 0;
    let is_end = game.phase == Phase::Over;
    (is_begin || is_end) && !matches!(game.past.last, Some(Event::Forfeit(_)))
}

fn seat_place(game: &Match, names: &[EntrantName], seat: Seat, viewer: Option<Seat>) -> Place {
    let deal = game.deal();
    let all = cards(game);
    let pot = i64::try_from(deal.pot()).unwrap_or(i64::MAX);
    let wins = outcome(game) == Some(PotOutcome::Won(seat));
    let bid = match game.past.last {
        Some(Event::Bid(bidder, _, cost)) if bidder == seat => i64::try_from(cost).unwrap_or(0),
        _ => 0,
    };
    let points = if is_deal_over(game) { game.past.gained[seat.index()] } else { 0 };
    let stack = |cards: usize, full: u64| Item::Stack { count: number(cards), full };
    let paid = deal.paid(seat);
    let pile = deal.pile(seat);
    // A share of all cards would be too short for a bid.
    let share = number(paid).max(all / number(deal.seats()));
    let lines = vec![
        Line::heading(seat_name(names, seat), state(game, seat)),
        Line::new("hand", card(game, seat, viewer)),
        Line::amount(format!("Bid {paid}"), stack(paid, share), bid),
        Line::amount(format!("Pile {pile}"), stack(pile, all), if wins { pot } else { 0 }),
        Line::amount(format!("Points {}", game.points(seat)), Item::Text(String::new()), points),
    ];
    let class = if wins {
        " won"
    } else if deal.turn() == Some(seat) {
        " turn"
    } else if game.forfeited(seat).is_some() || !deal.is_in(seat) {
        " out"
    } else {
        ""
    };
    Place { class: format!("seat{seat}{class}").into(), lines }
}

/// The card of a bidding seat.
fn card(game: &Match, seat: Seat, viewer: Option<Seat>) -> Vec<Item> {
    let shown = game.is_showdown();
    let wins = outcome(game) == Some(PotOutcome::Won(seat));
    let class = match (shown, wins) {
        (true, true) => "best",
        (true, false) => "",
        (false, _) => "peeked",
    };
    let visible = shown || can_see(viewer, seat);
    let item = |value| if visible { Item::card(value, class) } else { Item::FaceDown };
    game.deal().peeked(seat).map(item).into_iter().collect()
}

fn pot_place(game: &Match, names: &[EntrantName]) -> Place {
    let deal = game.deal();
    let pot = number(deal.pot());
    let has_bids = game.seats().any(|seat| deal.paid(seat) > 0);
    let war = if has_bids && game.past.is_war { "war" } else { "" };
    let class = match outcome(game) {
        Some(PotOutcome::Won(_)) => "pot won",
        _ => "pot",
    };
    let lines = vec![
        Line::heading("Pot", war),
        Line::amount(count(pot, "card"), Item::Stack { count: pot, full: cards(game) }, 0),
        Line::new("news", vec![Item::Text(news(game, names))]),
        Line::new("quiet", vec![Item::Text(position(game))]),
    ];
    Place { class: class.into(), lines }
}

/// What happens to the pot, or who has the turn.
fn news(game: &Match, names: &[EntrantName]) -> String {
    let fighters = |fighters: [bool; MAX_SEATS]| {
        let seats = game.seats().filter(|seat| fighters[seat.index()]);
        list(&seats.map(|seat| name(names, seat)).collect::<Vec<_>>())
    };
    match (outcome(game), game.deal().turn()) {
        (Some(PotOutcome::Won(winner)), _) => format!("→ {}", name(names, winner)),
        (Some(PotOutcome::War(seats)), _) => format!("war of {}", fighters(seats)),
        (Some(PotOutcome::Stays), _) => "stays here".to_owned(),
        (None, Some(seat)) => format!("{} is to bid", name(names, seat)),
        (None, None) => String::new(),
    }
}

fn position(game: &Match) -> String {
    let number = game.number().max(1);
    let deals = game.deals();
    match game.deal().auction() {
        0 => format!("Deal {number} of {deals}"),
        auction => format!("Deal {number} of {deals}, auction {auction}"),
    }
}

fn state(game: &Match, seat: Seat) -> Cow<'static, str> {
    let deal = game.deal();
    if let Some(forfeit) = game.forfeited(seat) {
        return format!("forfeited: {forfeit}").into();
    }
    let fights = |fighters: [bool; MAX_SEATS]| fighters[seat.index()];
    match (outcome(game), deal.result(seat)) {
        (_, DealResult::Left(auction)) => format!("left after auction\u{a0}{auction}").into(),
        (Some(PotOutcome::Won(winner)), _) if winner == seat => "takes the pot".into(),
        (Some(PotOutcome::War(fighters)), _) if fights(fighters) => "goes to war".into(),
        (Some(_), _) if deal.peeked(seat).is_some() => "loses".into(),
        _ if deal.turn() == Some(seat) => "to bid".into(),
        _ if deal.peeked(seat).is_some() => last_bid(game, seat).unwrap_or("bidding".into()),
        _ if deal.paid(seat) > 0 => "passed".into(),
        _ => "".into(),
    }
}

/// The last bid, if this seat has made it.
fn last_bid(game: &Match, seat: Seat) -> Option<Cow<'static, str>> {
    match game.past.last {
        Some(Event::Bid(bidder, Move::Check, _)) if bidder == seat => Some("checks".into()),
        Some(Event::Bid(bidder, Move::Raise(cards), _)) if bidder == seat => {
            Some(format!("raises by {}", cards as usize).into())
        }
        _ => None,
    }
}

fn caption(game: &Match, names: &[EntrantName]) -> String {
    let auction = game.deal().auction();
    match game.past.last {
        Some(Event::Forfeit(seat)) => return forfeit_caption(game, names, seat),
        _ if game.phase == Phase::Over => return final_caption(game, names),
        _ if auction == 0 => return deal_caption(game, names),
        _ => {}
    }
    let position = format!("Deal {}, auction {auction}", game.number());
    let event = match (outcome(game), game.past.last) {
        (Some(outcome), _) => return format!("{position}: {}.", result(game, names, outcome)),
        (None, Some(Event::Bid(seat, bid, cost))) => bid_words(game, name(names, seat), bid, cost),
        (None, _) => antes(game, names),
    };
    let next = match game.deal().turn() {
        Some(seat) => format!("; {} is to bid", name(names, seat)),
        None => "; bidding is over".to_owned(),
    };
    format!("{position}: {event}{next}.")
}

fn bid_words(game: &Match, bot: &str, bid: Move, cost: usize) -> String {
    let pot = count(number(game.deal().pot()), "card");
    let price = count(number(cost), "card");
    let bid = match bid {
        Move::Pass => return format!("{bot} passes, the pot stays at {pot}"),
        Move::Check if cost == 0 => return format!("{bot} checks, the pot stays at {pot}"),
        Move::Check => "checks".to_owned(),
        Move::Raise(raise) => format!("raises by {}", raise as usize),
    };
    format!("{bot} {bid} for {price}, the pot grows to {pot}")
}

/// The beginning of an auction.
fn antes(game: &Match, names: &[EntrantName]) -> String {
    let deal = game.deal();
    let pot = count(number(deal.pot()), "card");
    let bidders: Vec<_> = game.seats().filter(|seat| deal.paid(*seat) > 0).collect();
    let bots = list(&bidders.iter().map(|seat| name(names, *seat)).collect::<Vec<_>>());
    if game.past.is_war {
        let paid: Vec<_> = bidders.iter().map(|seat| format!("{}", deal.paid(*seat))).collect();
        return format!("{bots} go to war and pay {} cards, the pot is {pot}", list(&paid));
    }
    format!("{bots} pay a card each and peek, the pot is {pot}")
}

/// The result of an auction whose cards are shown.
fn result(game: &Match, names: &[EntrantName], outcome: PotOutcome) -> String {
    let deal = game.deal();
    let pot = count(number(deal.pot()), "card");
    match outcome {
        PotOutcome::Won(winner) => {
            let bot = name(names, winner);
            let Some(card) = deal.peeked(winner) else { return format!("{bot} takes {pot}") };
            let others = game.seats().filter(|seat| *seat != winner);
            let others = others.filter_map(|seat| Some((seat, deal.peeked(seat)?)));
            let others: Vec<_> = others.collect();
            if others.is_empty() {
                return format!("{bot} takes {pot}, all others have passed");
            }
            let is_tie = others.iter().any(|(_, other)| *other == card);
            let why = if is_tie { ", the others have no cards left for a war" } else { "" };
            let others = others.iter().map(|(seat, card)| format!("{} {card}", name(names, *seat)));
            format!(
                "{bot} takes {pot} with {card} against {}{why}",
                list(&others.collect::<Vec<_>>())
            )
        }
        PotOutcome::War(_) => format!("equal cards, so {} for {pot}", news(game, names)),
        PotOutcome::Stays => format!("no seat can take the {pot}, they stay in the pot"),
    }
}

/// The seats by the points of the last deal, the most points first.
fn gains(game: &Match, names: &[EntrantName]) -> String {
    let mut seats: Vec<_> = game.seats().collect();
    seats.sort_by_key(|seat| -game.past.gained[seat.index()]);
    let gain =
        |seat: Seat| format!("{} {}", name(names, seat), signed(game.past.gained[seat.index()]));
    list(&seats.into_iter().map(gain).collect::<Vec<_>>())
}

fn deal_caption(game: &Match, names: &[EntrantName]) -> String {
    let number = game.number();
    let deals = game.deals();
    let dealt = |number| format!("Deal {number} of {deals}: the cards are dealt.");
    match number {
        0 | 1 => dealt(1),
        _ => format!("Deal {} ends with {}. {}", number - 1, gains(game, names), dealt(number)),
    }
}

/// The seats with the most points.
fn leaders(game: &Match, names: &[EntrantName]) -> String {
    let best = game.seats().map(|seat| game.points(seat)).max().unwrap_or(0);
    let leaders: Vec<_> = game.seats().filter(|seat| game.points(*seat) == best).collect();
    let verb = if leaders.len() == 1 { "wins" } else { "share the win" };
    let leaders: Vec<_> = leaders.into_iter().map(|seat| name(names, seat)).collect();
    format!("{} {verb} with {best} points", list(&leaders))
}

fn final_caption(game: &Match, names: &[EntrantName]) -> String {
    let number = game.number();
    let gains = gains(game, names);
    format!("Deal {number} ends with {gains}. The match is over: {}.", leaders(game, names))
}

fn forfeit_caption(game: &Match, names: &[EntrantName], seat: Seat) -> String {
    let bot = name(names, seat);
    let why = game.forfeited(seat).map(|forfeit| format!(" ({forfeit})")).unwrap_or_default();
    if game.phase == Phase::Over {
        return format!("{bot} forfeits{why}. The match is over: {}.", leaders(game, names));
    }
    format!("{bot} forfeits{why}: for the rest of the match it passes and gets no points.")
}
