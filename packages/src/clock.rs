//! The clock of a package: a limit for each reply, or a bank for the whole match.

use arbiter_games::{Allowance, Micros, Seat};

/// The text in messages that is replaced by the time left of the seat that receives it, in whole
/// milliseconds.
const OWN_TIME: &str = "${left_ms}";

/// The text in messages that is replaced by the increment of the bank, in whole milliseconds.
const INCREMENT: &str = "${increment_ms}";

/// How the time of bots is limited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageClock {
    /// The limit of a reply, or the bank at the start.
    pub allowance: Allowance,
    /// What a seat's bank gains after each of its replies.
    pub increment: Micros,
    /// A message before each request, usually with the time left.
    pub announcement: Option<String>,
}

/// The banks of a match.
#[derive(Clone, Debug)]
pub(crate) struct Banks {
    clock: PackageClock,
    /// The time left of each seat, seat 1 first. It stays the same if there is no bank.
    left: Vec<Micros>,
}

impl Banks {
    /// Full banks.
    pub(crate) fn new(clock: PackageClock, seats: usize) -> Self {
        let left = vec![clock.allowance.time(); seats];
        Self { clock, left }
    }

    /// The time for a seat's next reply.
    pub(crate) fn allowance(&self, seat: Seat) -> Allowance {
        match self.clock.allowance {
            Allowance::Bank(_) => Allowance::Bank(self.left[seat.index()]),
            Allowance::Move(limit) => Allowance::Move(limit),
        }
    }

    /// Charges a reply.
    pub(crate) fn charge(&mut self, seat: Seat, cost: Micros) {
        if matches!(self.clock.allowance, Allowance::Bank(_)) {
            let left = &mut self.left[seat.index()];
            *left = *left - cost + self.clock.increment;
        }
    }

    /// The message before each request to a seat, if there is one.
    pub(crate) fn announcement(&self, seat: Seat) -> Option<Telling> {
        self.clock.announcement.as_deref().map(|text| self.tell(seat, text))
    }

    /// A text for `seat` with the times that it asks for: `${left_ms}` is the seat's own time left,
    /// `${left_ms:2}` that of seat 2, and `${increment_ms}` the increment.
    pub(crate) fn tell(&self, seat: Seat, text: &str) -> Telling {
        let millis = |seat: Seat| self.left[seat.index()].max(Micros::ZERO).floor_millis();
        if !text.contains("${") {
            return Telling { text: text.to_owned(), tells_time: false };
        }
        let increment = self.clock.increment.floor_millis().to_string();
        let text = &text.replace(INCREMENT, &increment);
        let mut told = text.replace(OWN_TIME, &millis(seat).to_string());
        for other in Seat::all(self.left.len()) {
            told = told.replace(&format!("${{left_ms:{other}}}"), &millis(other).to_string());
        }
        Telling { tells_time: told != *text, text: told }
    }
}

/// A message with its times filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Telling {
    pub(crate) text: String,
    /// Whether it contains a time.
    pub(crate) tells_time: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bank_pays_for_replies_and_gains_the_increment() {
        let clock = PackageClock {
            allowance: Allowance::Bank(Micros::from_millis(1000)),
            increment: Micros::from_millis(100),
            announcement: Some("time ${left_ms} ${left_ms:1}".to_owned()),
        };
        let mut banks = Banks::new(clock, 2);
        let [one, two] = [0, 1].map(Seat::from_index);
        banks.charge(one, Micros::from_millis(400));
        assert_eq!(banks.allowance(one), Allowance::Bank(Micros::from_millis(700)));
        assert_eq!(banks.allowance(two), Allowance::Bank(Micros::from_millis(1000)));
        let telling = banks.announcement(two).unwrap();
        assert_eq!(telling, Telling { text: "time 1000 700".to_owned(), tells_time: true });
        let increment = Telling { text: "go 100".to_owned(), tells_time: false };
        assert_eq!(banks.tell(one, "go ${increment_ms}"), increment);
    }
}
