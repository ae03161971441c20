//! Blackjack: the dealer's cards, the players' cards, stakes and chips.

use arbiter_games::blackjack::{BEST, Card, Match, Player, score};
use arbiter_games::{BotName, Seat};
use maud::{Markup, html};

use super::{Key, Picture, bits, card, name, number};

/// What a picture of this state shows.
pub(super) fn key(game: &Match) -> Key {
    let table = game.table();
    let players = table.players();
    let acting = bits(players.len(), |seat| players[seat.index()].is_acting());
    let cards: usize = players.iter().map(|player| player.hand().len()).sum();
    let turn = table.turn().map_or(0, |seat| u64::from(seat.number()));
    let stakes: i64 = players.iter().map(Player::stake).sum();
    let hand = 2 * u64::from(game.dealt()) + u64::from(game.is_in_hand());
    [hand, number(cards + table.dealer().len()), acting, turn, stakes.unsigned_abs(), 0]
}

/// Draws the table.
pub(super) fn draw(game: &Match, names: &[BotName]) -> Picture {
    let (table, caption) = (game.table(), caption(game, names));
    let markup = html! {
        table.cards.blackjack {
            thead {
                tr {
                    th { "Seat" } th { "Bot" } th { "Cards" } th.number { "Score" }
                    th.number { "Stake" } th.number { "Chips" } th { "State" }
                }
            }
            tbody {
                tr.dealer {
                    td {} td { "the dealer" }
                    td.hand { (dealer(game)) }
                    td.number { @if !game.is_in_hand() { (points(table.dealer())) } }
                    td {} td.number { (table.house()) } td {}
                }
                @for (seat, player) in Seat::all(table.players().len()).zip(table.players()) {
                    tr.turn[table.turn() == Some(seat) && game.is_in_hand()] {
                        td class={ "seat" (seat) } { (seat) }
                        td { (name(names, seat)) }
                        td.hand { @for face in player.hand() { (card(&face.letter().to_string(), "")) } }
                        td.number { (points(player.hand())) }
                        td.number { (player.stake()) }
                        td.number { (player.chips()) }
                        td { (state(game, seat, player)) }
                    }
                }
            }
        }
    };
    Picture { caption, markup }
}

/// The dealer's cards: the second lies face down until all players have acted.
fn dealer(game: &Match) -> Markup {
    html! {
        @for (index, face) in game.table().dealer().iter().enumerate() {
            @if index == 1 && game.is_in_hand() {
                (card("", ""))
            } @else {
                (card(&face.letter().to_string(), ""))
            }
        }
    }
}

fn points(hand: &[Card]) -> Markup {
    html! { @if !hand.is_empty() { (score(hand)) } }
}

fn state(game: &Match, seat: Seat, player: &Player) -> Markup {
    let bad = game.bad_answers(seat);
    html! {
        @if game.is_in_hand() && game.table().turn() == Some(seat) { "to act" }
        @else if score(player.hand()) > BEST { "bust" }
        @else if !player.hand().is_empty() && !player.is_acting() { "stands" }
        @if bad > 0 { " (bad answers: " (bad) ")" }
    }
}

fn caption(game: &Match, names: &[BotName]) -> String {
    let (hand, hands) = (game.dealt(), game.hands());
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
