//! A player of tricks over HTTP, for tests and benchmarks. It plays the first legal card at each
//! table.

/// The state of each table: the player's hand, and the attacking card (empty if there is none).
#[derive(Debug, Default)]
pub(crate) struct TricksPlayer(Vec<(Vec<String>, String)>);

impl TricksPlayer {
    /// A card for each table in a response.
    pub(crate) fn cards(&mut self, answer: &str) -> String {
        let line = answer.lines().find_map(|line| line.strip_prefix("states: "));
        let states: Vec<_> = line.unwrap_or_default().split(' ').collect();
        self.0.resize_with(states.len(), Default::default);
        let cards = states.into_iter().zip(&mut self.0).map(|(state, table)| card(state, table));
        cards.collect::<Vec<_>>().join(" ")
    }
}

/// The first legal card at a table. Updates the hand and the attacking card from `state`.
fn card(mut state: &str, (hand, attack): &mut (Vec<String>, String)) -> String {
    if state.ends_with('.') {
        return ".".to_owned();
    }
    while let Some(first) = state.chars().next() {
        let (fragment, rest) = state.split_at(match first {
            '>' => 3,
            '+' | '-' => 1,
            _ => 2,
        });
        state = rest;
        match first {
            '>' => fragment[1..].clone_into(attack),
            '+' | '-' => attack.clear(),
            ':' => {}
            _ => hand.push(fragment.to_owned()),
        }
    }
    let is_of_attacking_suit = |card: &String| !attack.is_empty() && card[..1] == attack[..1];
    let index = hand.iter().position(is_of_attacking_suit).unwrap_or(0);
    attack.clear();
    hand.remove(index)
}
