//! Actions of blackjack.

use arbiter_games::Seat;
use arbiter_games::blackjack::{Action, Match};
use maud::html;

use super::{Fields, Offer, button};

pub(super) fn offer(game: &Match, seat: Seat) -> Offer {
    let player = &game.table().players()[seat.index()];
    let (stake, most) = (player.stake(), player.most_bet());
    Offer {
        task: format!("Your move; your stake is {stake}."),
        form: html! {
            (button("H", "Hit")) " " (button("S", "Stand")) " "
            @if player.can_double() { (button("D", "Double down")) " " }
            @if most > 0 {
                label { "Bet "
                    input type="number" name="bet" min="1" max=(most) value=(most.min(10)); " " }
                button type="submit" { "Raise the stake" }
            }
        },
        squares: None,
    }
}

pub(super) fn answer(fields: &Fields) -> Result<String, String> {
    let bet = fields.get("bet").ok_or("choose a move")?;
    Ok(format!("B {}", bet.trim()))
}

/// What is not possible is standing by the rules; a person is told instead.
pub(super) fn check(game: &Match, seat: Seat, answer: &str) -> Result<(), String> {
    let player = &game.table().players()[seat.index()];
    match answer.parse() {
        Ok(Action::DoubleDown) if !player.can_double() => {
            Err("doubling down takes as many chips as are staked, and is only possible as the \
                 first action of a hand"
                .to_owned())
        }
        Ok(Action::Bet(chips)) if !(1..=player.most_bet()).contains(&chips) => {
            match player.most_bet() {
                0 => Err("there is nothing left to bet".to_owned()),
                most => Err(format!("a bet is 1 to {most} chips, not {chips}")),
            }
        }
        _ => Ok(()),
    }
}
