//! The move form of wojna: the bids that are legal now.

use super::Match;
use crate::clock::Micros;
use crate::match_state::MatchState as _;
use crate::move_form::MoveForm;

/// All bids with their labels.
const BIDS: [(&str, &str); 5] = [
    ("= pass", "Pass"),
    ("= check", "Check"),
    ("= raise 1", "Raise 1"),
    ("= raise 2", "Raise 2"),
    ("= raise 3", "Raise 3"),
];

pub(super) fn move_form(game: &Match) -> MoveForm {
    let is_legal = |reply| game.clone().receive_reply(Ok(reply), Micros::ZERO).is_ok();
    MoveForm::of_replies("Your bid.", BIDS.into_iter().filter(|(reply, _)| is_legal(reply)))
}
