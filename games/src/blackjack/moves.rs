//! The move form of blackjack.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::{Action, Match};
use crate::match_state::Seat;
use crate::move_form::{Field, FormFields, MoveForm, reply_field};

/// The name of the field for a bet.
const BET: &str = "bet";

pub(super) fn move_form(game: &Match, seat: Seat) -> MoveForm {
    let player = &game.table().players()[seat.index()];
    let stake = player.stake();
    let max = player.max_bet();
    let mut fields = vec![reply_field("H", "Hit"), reply_field("S", "Stand")];
    fields.extend(player.can_double().then(|| reply_field("D", "Double down")));
    if max > 0 {
        let label = "Bet".to_owned();
        fields.push(Field::Number { label, name: BET, max, value: max.min(10) });
        fields.push(Field::Send("Raise the stake".to_owned()));
    }
    MoveForm { task: format!("Your move; your stake is {stake}."), fields, squares: Vec::new() }
}

pub(super) fn reply(fields: &FormFields) -> Result<String, String> {
    let bet = fields.get(BET).ok_or("choose a move")?;
    Ok(format!("B {}", bet.trim()))
}

/// Warns of an impossible action, which would count as standing.
pub(super) fn warn(game: &Match, seat: Seat, reply: &str) -> Result<(), String> {
    let player = &game.table().players()[seat.index()];
    match reply.parse() {
        Ok(Action::DoubleDown) if !player.can_double() => {
            Err("doubling down takes as many chips as are staked, and is only possible as the \
                 first action of a hand"
                .to_owned())
        }
        Ok(Action::Bet(chips)) if !(1..=player.max_bet()).contains(&chips) => {
            match player.max_bet() {
                0 => Err("there is nothing left to bet".to_owned()),
                max => Err(format!("a bet is 1 to {max} chips, not {chips}")),
            }
        }
        _ => Ok(()),
    }
}
