//! Wins, draws and losses of each two bots, counted from listed matches.

use std::cmp::Ordering;
use std::collections::HashMap;

use arbiter_proto::v1::MatchStatus;

/// Wins, draws and losses of each bot against each other bot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meetings(HashMap<String, HashMap<String, [u64; 3]>>);

impl Meetings {
    /// Counts a played match. At a table, the bot with the higher score wins.
    pub fn add(&mut self, status: &MatchStatus) {
        for (seat, own) in status.seats.iter().enumerate() {
            let others = self.0.entry(own.bot.clone()).or_default();
            for (place, other) in status.seats.iter().enumerate() {
                if place != seat {
                    let result = match own.score.cmp(&other.score) {
                        Ordering::Greater => 0,
                        Ordering::Equal => 1,
                        Ordering::Less => 2,
                    };
                    others.entry(other.bot.clone()).or_default()[result] += 1;
                }
            }
        }
    }

    /// Wins, draws and losses of `bot` against `other`, if they met.
    pub fn of(&self, bot: &str, other: &str) -> Option<[u64; 3]> {
        self.0.get(bot)?.get(other).copied()
    }
}

#[cfg(test)]
mod tests {
    use arbiter_proto::v1::MatchSeat;

    use super::*;

    #[test]
    fn each_two_bots_of_a_table_are_counted() {
        let seats = [("ada", [3, 0]), ("bob", [3, 1]), ("eve", [3, 0])].map(|(bot, score)| {
            MatchSeat { bot: bot.to_owned(), score: score.to_vec(), ..MatchSeat::default() }
        });
        let mut meetings = Meetings::default();
        meetings.add(&MatchStatus { seats: seats.to_vec(), ..MatchStatus::default() });
        assert_eq!(meetings.of("bob", "ada"), Some([1, 0, 0]));
        assert_eq!(meetings.of("ada", "bob"), Some([0, 0, 1]));
        assert_eq!(meetings.of("ada", "eve"), Some([0, 1, 0]));
        assert_eq!(meetings.of("ada", "ada"), None);
    }
}
