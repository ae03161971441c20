//! Bids of wojna: those of the five that the rules take now.

use arbiter_games::{Seat, View};
use maud::html;

use super::{Offer, button, check};

/// Every bid there is, and its name.
const BIDS: [(&str, &str); 5] = [
    ("= pass", "Pass"),
    ("= check", "Check"),
    ("= raise 1", "Raise 1"),
    ("= raise 2", "Raise 2"),
    ("= raise 3", "Raise 3"),
];

pub(super) fn offer(view: View<'_>, seat: Seat) -> Offer {
    let bids = BIDS.into_iter().filter(|(answer, _)| check(view, seat, answer).is_ok());
    Offer {
        task: "Your bid.".to_owned(),
        form: html! { @for (answer, name) in bids { (button(answer, name)) " " } },
        squares: None,
    }
}
