//! The states of matches and versions in words. Pages, commands, JSON and CSV all show these words.
//! Messages and the database hold other words, which never change.

use crate::v1::MatchStatus;

/// The states of a match or lot: the word in messages, and the word that is shown.
pub const MATCH_STATES: [(&str, &str); 9] = [
    ("blocked", "waiting"),
    ("checking", "checking"),
    ("pending", "queued"),
    ("leased", "playing"),
    ("reported", "played"),
    ("counted", COUNTED),
    ("delayed", "delayed"),
    ("aside", "set aside"),
    ("cancelled", "not needed"),
];

/// The states of a version: the word in messages, and the words that are shown.
pub const VERSION_STATES: [(&str, &str); 5] = [
    ("waiting", "waiting for its trial"),
    ("trying", "trial running"),
    ("entered", "entered"),
    ("failed", "trial failed"),
    ("aside", "trial set aside"),
];

/// The state of a match whose result is in the standings.
const COUNTED: &str = "counted";

/// The state of a match or lot in words. A state that this build does not know is shown as it is.
pub fn match_state(state: &str) -> &str {
    words(&MATCH_STATES, state)
}

/// The state of a match in words. Lists of played matches say separately which ones are counted.
pub fn state_of(status: &MatchStatus) -> &str {
    if status.counted { COUNTED } else { match_state(&status.state) }
}

/// The state of a version or bot in words. `withdrawn`, `suspended` and states that this build does
/// not know are shown as they are.
pub fn version_state(state: &str) -> &str {
    words(&VERSION_STATES, state)
}

fn words<'a>(states: &[(&str, &'static str)], state: &'a str) -> &'a str {
    let known = states.iter().find(|(message, _)| *message == state);
    known.map_or(state, |(_, shown)| *shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counted_match_of_a_list_is_not_only_played() {
        let played = MatchStatus { state: "reported".to_owned(), ..MatchStatus::default() };
        assert_eq!(state_of(&played), "played");
        assert_eq!(state_of(&MatchStatus { counted: true, ..played }), "counted");
    }

    #[test]
    fn an_unknown_state_is_shown_as_it_is() {
        for state in ["", "withdrawn", "suspended", "paused"] {
            assert_eq!((match_state(state), version_state(state)), (state, state));
        }
    }
}
