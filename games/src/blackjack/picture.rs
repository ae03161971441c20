//! The picture of blackjack: a place for the dealer and one for each player, with cards, stakes and
//! chips.

use alloc::borrow::Cow;
use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use super::{Action, BEST, Card, Decision, Match, Player, moves, score};
use crate::match_state::{MatchView, Seat};
use crate::move_form::{FormFields, MoveForm};
use crate::name::EntrantName;
use crate::picture::{
    Item, Key, Line, Part, Picture, Place, PlacesPicture, bits, count, list, name, seat_name,
    signed,
};

/// The number of pieces of a stack as wide as its place.
const PIECES: u64 = 40;

impl MatchView for Match {
    fn picture(&self, names: &[EntrantName], _viewer: Option<Seat>) -> Picture {
        let seats = Seat::all(self.table().players().len());
        let players = seats.map(|seat| player_place(self, names, seat));
        let places = [dealer_place(self)].into_iter().chain(players).collect();
        let picture = PlacesPicture { class: "blackjack", places };
        Picture { caption: caption(self, names), parts: vec![Part::Places(picture)] }
    }

    fn picture_key(&self) -> Key {
        let table = self.table();
        let players = table.players();
        let acting = bits(players.len(), |seat| players[seat.index()].is_acting());
        let hand = 2 * u64::from(self.dealt()) + u64::from(self.is_in_hand());
        [hand, self.past.decisions, acting, 0, 0, 0]
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

/// A number of chips as a stack, relative to all chips of the players.
fn stack(game: &Match, chips: i64) -> Item {
    let players = game.table().players().iter();
    let all: i64 = players.map(|player| player.chips() + player.stake()).sum();
    let share = i128::from(chips) * i128::from(PIECES) / i128::from(all.max(1));
    let count = u64::try_from(share).unwrap_or(0);
    Item::Stack { count: count.max(u64::from(chips > 0)), full: PIECES }
}

/// The rank of a card as people write it.
fn rank(card: Card) -> Cow<'static, str> {
    match card.letter() {
        'T' => "10".into(),
        letter => letter.to_string().into(),
    }
}

fn card(card: Card) -> Item {
    Item::card(rank(card), "")
}

fn points(hand: &[Card]) -> String {
    if hand.is_empty() { String::new() } else { format!("Hand score {}", score(hand)) }
}

/// The dealer's place. The second card is face down during the hand.
fn dealer_place(game: &Match) -> Place {
    let cards = game.table().dealer();
    let item = |(index, value): (usize, Card)| {
        if index == 1 && game.is_in_hand() { Item::FaceDown } else { card(value) }
    };
    let is_over = !game.is_in_hand() && !cards.is_empty();
    let state = match score(cards) {
        _ if !is_over => "",
        points if points > BEST => "bust",
        _ => "stands",
    };
    let points = match cards.first() {
        Some(first) if !is_over => format!("Shows {}", score(&[*first])),
        _ => points(cards),
    };
    let lines = vec![
        Line::heading("Dealer", state),
        Line::new("hand", cards.iter().copied().enumerate().map(item).collect()),
        Line::new("amount", vec![Item::Text(points)]),
        Line::new(
            "amount",
            vec![Item::text(format!("Bank result {}", signed(game.table().house())))],
        ),
    ];
    Place { class: "dealer".into(), lines }
}

fn player_place(game: &Match, names: &[EntrantName], seat: Seat) -> Place {
    let player = &game.table().players()[seat.index()];
    let raised = match game.past.last {
        Some(decision) if decision.seat == seat => decision.raised,
        _ => 0,
    };
    let gained = gained(game, seat);
    let stake = player.stake();
    // Between hands there are no stakes.
    let stake_text = if stake == 0 { String::new() } else { format!("Stake {stake}") };
    let chips = player.chips();
    let lines = vec![
        Line::heading(seat_name(names, seat), state(game, seat, player)),
        Line::new("hand", player.hand().iter().copied().map(card).collect()),
        Line::new("amount", vec![Item::Text(points(player.hand()))]),
        Line::amount(stake_text, stack(game, stake), raised),
        Line::amount(format!("Chips {chips}"), stack(game, chips), gained),
        Line::new("quiet", vec![Item::Text(bad_answers(game, seat))]),
    ];
    let class = if game.is_in_hand() && game.table().turn() == Some(seat) {
        " turn"
    } else if gained > 0 {
        " won"
    } else if score(player.hand()) > BEST || player.hand().is_empty() && game.dealt() > 0 {
        " out"
    } else {
        ""
    };
    Place { class: format!("seat{seat}{class}").into(), lines }
}

/// The chips that a seat won or lost in the hand that has just ended.
fn gained(game: &Match, seat: Seat) -> i64 {
    let gained = game.past.gained.get(seat.index()).copied();
    gained.filter(|_| !game.is_in_hand()).unwrap_or(0)
}

fn bad_answers(game: &Match, seat: Seat) -> String {
    match game.bad_answers(seat) {
        0 => String::new(),
        1 => "1 bad reply".to_owned(),
        bad_answers => format!("{bad_answers} bad replies"),
    }
}

fn state(game: &Match, seat: Seat, player: &Player) -> &'static str {
    let in_hand = game.is_in_hand();
    match gained(game, seat) {
        _ if player.hand().is_empty() && game.dealt() == 0 => "",
        _ if player.hand().is_empty() => "no chips to play",
        1.. => "wins",
        _ if score(player.hand()) > BEST => "bust",
        ..0 => "loses",
        0 if in_hand && game.table().turn() == Some(seat) => "to act",
        0 if player.is_acting() => "",
        0 => "stands",
    }
}

fn caption(game: &Match, names: &[EntrantName]) -> String {
    let hand = game.dealt();
    if hand == 0 {
        return "The table is open.".to_owned();
    }
    if !game.is_in_hand() {
        return format!("Hand {hand}: {}.", result(game, names));
    }
    let event = match game.past.last {
        Some(decision) => action_words(game, name(names, decision.seat), decision),
        None => format!("the cards are dealt, {}", stakes(game, names)),
    };
    let next = match game.table().turn() {
        Some(seat) => format!("{} is to act", name(names, seat)),
        None => "all have acted".to_owned(),
    };
    format!("Hand {hand}: {event}; {next}.")
}

/// The stakes of a hand that has just been dealt.
fn stakes(game: &Match, names: &[EntrantName]) -> String {
    let players = game.table().players();
    let seats = Seat::all(players.len()).filter(|seat| players[seat.index()].stake() > 0);
    let bots: Vec<_> = seats.map(|seat| name(names, seat)).collect();
    format!("{} stake {} chips each", list(&bots), super::ANTE)
}

/// What a decision did.
fn action_words(game: &Match, bot: &str, decision: Decision) -> String {
    let player = &game.table().players()[decision.seat.index()];
    let points = score(player.hand());
    let stake = player.stake();
    let drawn = || {
        let card = player.hand().last().copied().map(rank).unwrap_or_default();
        let bust = if points > BEST { " and is bust" } else { "" };
        format!("draws {card} for {points}{bust}")
    };
    match decision.action {
        Some(Action::Hit) => format!("{bot} hits and {}", drawn()),
        Some(Action::Stand) => format!("{bot} stands with {points}"),
        Some(Action::DoubleDown) if decision.drew => {
            format!("{bot} doubles its stake to {stake} chips and {}", drawn())
        }
        Some(Action::Bet(_)) if decision.raised > 0 => {
            format!(
                "{bot} bets {}, its stake is {stake}",
                count(decision.raised.unsigned_abs(), "chip")
            )
        }
        Some(Action::DoubleDown | Action::Bet(_)) => {
            format!("{bot} cannot pay this, so it stands with {points}")
        }
        None => format!("{bot} gives no valid reply, so it stands with {points}"),
    }
}

/// The result of the last hand.
fn result(game: &Match, names: &[EntrantName]) -> String {
    let dealer = match score(game.table().dealer()) {
        points if points > BEST => format!("the dealer is bust with {points}"),
        points => format!("the dealer stands with {points}"),
    };
    let change = |seat: Seat| {
        let bot = name(names, seat);
        match gained(game, seat) {
            0 => None,
            gained @ 1.. => Some(format!("{bot} wins {gained}")),
            lost => Some(format!("{bot} loses {}", lost.unsigned_abs())),
        }
    };
    let changes = Seat::all(game.table().players().len()).filter_map(change);
    let words: Vec<_> = [dealer].into_iter().chain(changes).collect();
    list(&words)
}
