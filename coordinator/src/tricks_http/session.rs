//! A session: tables of one player against the house, rebuilt from the cards played so far.
//!
//! Only the seed of a session and the cards played at each table are stored, in order. The rules
//! recompute the rest, much faster than the house chooses one card. So a session survives restarts
//! of the server, and a failed request changes nothing.

use arbiter_games::Seed;
use arbiter_games::tricks::{Card, DECK, Dealer, Player, TRICKS, Table};

use super::player;

/// The number of sampled deals in which the house tries each of its cards. It is half of the number
/// that the house bot uses, so that twice as many players can play at once. Against the bot this
/// loses about one table in twenty.
const WORLDS: usize = 30;

/// The number of an invalid card.
const MISTAKE: u8 = 36;
const _: () = assert!(MISTAKE as usize == DECK);

/// The client.
const CALLER: Player = Player::First;
/// The house.
const HOUSE: Player = Player::Second;

/// A table, and the cards played at it.
#[derive(Debug)]
struct Seated {
    table: Table,
    house: player::Table,
    played: Vec<u8>,
}

/// The tables of one player.
#[derive(Debug)]
pub(super) struct Session(Vec<Seated>);

/// A request with the wrong number of cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrongCount {
    pub(super) expected: usize,
    pub(super) actual: usize,
}

impl Seated {
    /// Plays a card by its number.
    fn play(&mut self, number: u8) {
        if self.table.turn() == Some(HOUSE) {
            // `tell` returns the events since the last turn of the house.
            self.house.hear(&self.table.take_text(HOUSE));
            self.house.lay(1 << number);
        }
        self.table.play(Card::all().nth(usize::from(number)));
        self.played.push(number);
    }

    /// Plays the house's cards while it is its turn.
    fn have_house_play(&mut self) {
        while self.table.turn() == Some(HOUSE) {
            self.house.hear(&self.table.take_text(HOUSE));
            self.play(number(&player::name(self.house.choose())));
        }
    }
}

impl Session {
    /// Deals the tables. The house plays first where it is its turn.
    pub(super) fn start(seed: Seed, tables: usize) -> Self {
        let mut session = Self::rebuild(seed, &vec![Vec::new(); tables]);
        session.have_house_play();
        session
    }

    /// Rebuilds a session from the cards played.
    pub(super) fn rebuild(seed: Seed, played: &[Vec<u8>]) -> Self {
        let mut dealer = Dealer::new(seed);
        let seated = played.iter().map(|played| {
            let table = Table::new(&dealer.deal());
            let house = player::Table::new(WORLDS);
            let mut seated = Seated { table, house, played: Vec::new() };
            for number in played {
                seated.play(*number);
            }
            seated
        });
        Self(seated.collect())
    }

    /// The cards played at each table.
    pub(super) fn played(&self) -> Vec<Vec<u8>> {
        self.0.iter().map(|seated| seated.played.clone()).collect()
    }

    /// The number of tables.
    pub(super) fn tables(&self) -> usize {
        self.0.len()
    }

    /// Whether all tables are over.
    pub(super) fn is_over(&self) -> bool {
        self.0.iter().all(|seated| seated.table.turn().is_none())
    }

    /// Plays a card for each table, and the house's replies. An invalid or illegal card loses its
    /// table. Words for finished tables are ignored.
    ///
    /// # Errors
    /// If the number of words is not that of the tables. The session does not change then.
    pub(super) fn play(&mut self, words: &str) -> Result<(), WrongCount> {
        let words: Vec<_> = words.split_ascii_whitespace().collect();
        if words.len() != self.0.len() {
            return Err(WrongCount { expected: self.0.len(), actual: words.len() });
        }
        for (seated, word) in self.0.iter_mut().zip(words) {
            // The last response contained the events up to here.
            let _reported = seated.table.take_text(CALLER);
            if seated.table.turn() == Some(CALLER) {
                seated.play(number(word));
            }
        }
        self.have_house_play();
        Ok(())
    }

    fn have_house_play(&mut self) {
        self.0.iter_mut().for_each(Seated::have_house_play);
    }

    /// The lines of the response: `states`, `scores`, and at the end `result`.
    pub(super) fn news(&mut self) -> String {
        let states: Vec<_> =
            self.0.iter_mut().map(|seated| seated.table.take_text(CALLER)).collect();
        let scores: Vec<_> = self.0.iter().map(|seated| seated.table.score_for(CALLER)).collect();
        let news = format!("states: {}\nscores: {}", states.join(" "), scores.join(" "));
        if self.is_over() { format!("{news}\nresult: {}", self.result()) } else { news }
    }

    /// Tables won minus tables lost.
    pub(super) fn result(&self) -> i32 {
        let sign = |seated: &Seated| {
            let tricks = i32::from(seated.table.tricks(CALLER));
            (2 * tricks - i32::from(TRICKS)).signum()
        };
        self.0.iter().map(sign).sum()
    }
}

/// The number of a card, or [`MISTAKE`].
fn number(word: &str) -> u8 {
    let card = word.parse().ok();
    let number = card.and_then(|card: Card| Card::all().position(|other| other == card));
    number.and_then(|number| u8::try_from(number).ok()).unwrap_or(MISTAKE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first playable card of each table.
    fn words(session: &Session) -> String {
        let word = |seated: &Seated| {
            seated.table.playable().next().map_or_else(|| ".".to_owned(), |card| card.to_string())
        };
        session.0.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_session_is_rebuilt_from_its_cards() {
        let seed = Seed::of_text("session");
        let mut session = Session::start(seed, 3);
        let mut news = session.news();
        assert!(news.starts_with("states: ") && news.ends_with("\nscores: 0:0 0:0 0:0"), "{news}");
        while !session.is_over() {
            let words = words(&session);
            let mut again = Session::rebuild(seed, &session.played());
            session.play(&words).unwrap();
            again.play(&words).unwrap();
            news = session.news();
            assert_eq!(again.news(), news);
            assert_eq!(again.played(), session.played());
        }
        assert!(news.contains(&format!("\nresult: {}", session.result())), "{news}");
        assert!(session.played().iter().all(|played| played.len() == DECK));
    }

    #[test]
    fn mistakes_lose_their_table_and_the_number_of_cards_is_checked() {
        let mut session = Session::start(Seed::of_text("mistakes"), 2);
        session.news();
        for words in ["", "W0", "W0 W0 W0"] {
            let actual = words.split(' ').filter(|word| !word.is_empty()).count();
            assert_eq!(session.play(words), Err(WrongCount { expected: 2, actual }));
        }
        session.play("W9 x").unwrap();
        assert_eq!(session.news(), "states: . .\nscores: 18:0 18:0\nresult: -2");
        let played = session.played();
        let mut again = Session::rebuild(Seed::of_text("mistakes"), &played);
        assert!(again.is_over() && again.result() == -2);
        again.play("any thing").unwrap();
        assert_eq!(again.played(), played);
    }
}
