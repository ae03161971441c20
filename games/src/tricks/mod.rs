//! Tricks: two players, 36 cards, a trump and 18 tricks.
//!
//! A match is played at many tables at once, which come in pairs: the second table of a pair exchanges
//! the two hands and the first attack of the first table, so that luck cancels. A bot is asked once for
//! all tables that wait for it. A bad card loses its table; a bad line or a dead program loses all
//! unfinished tables.
//!
//! An HTTP client is written for a server whose player replies at once, so that every unfinished table
//! waits for the client. Against another kind of bot it gets the same service
//! ([`TurnPolicy::AllTables`]): the opponent is asked until no table waits for it. Two HTTP clients
//! cannot both get it, since each attacks first at half of the tables.
//!
//! [`Table`] has the rules of a table and the text fragments that tell players what happened; this
//! module has the line protocol of two bots at many tables.
//!
//! Source: the problem "Tricks", a game on a server; the line protocol and the duplicate tables
//! are ours.

mod cards;
mod info;
mod moves;
mod picture;
mod table;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

pub use cards::{Card, CardError, DECK, Deal, DealError, Dealer, HAND, Suit};
pub use info::game;
pub use table::{Player, TRICKS, Table, Trick};

use crate::bounds::Bounds;
use crate::clock::Micros;
use crate::match_state::{
    Forfeit, Illegal, MatchState, MatchView, Say, Seat, SeatResult, Step, TurnPolicy,
};
use crate::quote::quote;
use crate::seed::Seed;

/// The official number of tables.
const TABLES: TableCount = TableCount(100);
/// The maximum number of tables: the source's limit.
const MAX_TABLES: u32 = 200;
/// The official time limit for a reply, which covers all tables.
const MOVE_LIMIT: Micros = Micros::from_millis(2000);

/// The optional prefix of a reply.
const KEY: &str = "move=";
/// The prefix of the last line of a match.
const RESULT: &str = "result:";

/// The parameters of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The number of tables that are played at once.
    tables: TableCount,
    /// The time limit for a reply, which covers all tables.
    move_limit: Micros,
}

/// A number of tables: even, since they come in pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TableCount(u32);

/// The bounds of the scores when these players forfeited; `None` if both did, since the first forfeit
/// ends the match. What one player wins the other loses.
pub(crate) fn bounds(params: &Params, forfeited: &[bool]) -> Option<Bounds> {
    if forfeited.iter().all(|forfeited| *forfeited) {
        return None;
    }
    let tables = i64::from(params.tables.0);
    let tricks = tables * i64::from(TRICKS);
    let components = [-tables..=tables, -tricks..=tricks];
    Some(Bounds::alike(Player::ALL.len(), &components, &[0..=0, 0..=0]))
}

/// Whether the points and tricks of a score are consistent. The players share the 18 tricks of a table,
/// so the difference is even; a won table brings 2 to 18, a lost table costs as many.
pub(crate) fn agrees(params: &Params, points: i64, tricks: i64) -> bool {
    let tables = i64::from(params.tables.0);
    // The best case: tables are won by all tricks, and lost by two.
    let most = |points: i64| {
        let won = (tables + points).div_euclid(2);
        let lost = won - points;
        won * i64::from(TRICKS) - 2 * lost
    };
    tricks % 2 == 0 && (-most(-points)..=most(points)).contains(&tricks)
}

impl Default for Params {
    fn default() -> Self {
        Self { tables: TABLES, move_limit: MOVE_LIMIT }
    }
}

/// A match between two bots: seat 1 is the first player of every table.
#[derive(Clone, Debug)]
pub struct Match {
    tables: Vec<Table>,
    /// The player that is asked only when all unfinished tables wait for it.
    asked_for_all: Option<Player>,
    move_limit: Micros,
    /// The player to ask, while a table waits for one.
    turn: Player,
    forfeit: Option<(Player, Forfeit)>,
    /// The number of seats that know the result.
    informed: usize,
}

impl Match {
    /// Deals the tables of a match, two for each deal.
    pub fn start(params: &Params, seed: Seed) -> Self {
        let mut dealer = Dealer::new(seed);
        let pairs = (0..params.tables.0 / 2).map(|_| dealer.deal());
        let tables = pairs.flat_map(|deal| [Table::new(&deal), Table::new(&deal.swapped())]);
        Self::at(tables.collect(), params.move_limit)
    }

    /// The match with the [`TurnPolicy`] of each seat, seat 1 first. If both seats have
    /// [`TurnPolicy::AllTables`], neither gets it.
    #[must_use]
    pub fn with_turn_policies(mut self, turns: [TurnPolicy; 2]) -> Self {
        self.asked_for_all = match turns {
            [TurnPolicy::AllTables, TurnPolicy::AnyTable] => Some(Player::First),
            [TurnPolicy::AnyTable, TurnPolicy::AllTables] => Some(Player::Second),
            _ => None,
        };
        self.turn_to(self.turn);
        self
    }

    /// A match at the given tables, which need not come in pairs.
    pub fn at(tables: Vec<Table>, move_limit: Micros) -> Self {
        let mut game = Self {
            tables,
            asked_for_all: None,
            move_limit,
            turn: Player::First,
            forfeit: None,
            informed: 0,
        };
        game.turn_to(Player::First);
        game
    }

    /// The present tables.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// The player to ask, while a table waits for one.
    pub fn turn(&self) -> Player {
        self.turn
    }

    /// Whether all tables are over.
    pub fn is_over(&self) -> bool {
        self.tables.iter().all(|table| table.turn().is_none())
    }

    /// Gives the turn to a player, or to the other if no table waits for that player. A player that is
    /// asked for all tables comes after the other.
    fn turn_to(&mut self, player: Player) {
        let player = self.asked_for_all.map_or(player, Player::other);
        let waits = self.tables.iter().any(|table| table.turn() == Some(player));
        self.turn = if waits { player } else { player.other() };
    }

    /// The message to a player: the lines `states` and `scores`.
    fn news(&mut self, player: Player) -> String {
        let states: Vec<_> = self.tables.iter_mut().map(|table| table.tell(player)).collect();
        let scores: Vec<_> = self.tables.iter().map(|table| table.score_for(player)).collect();
        format!("states: {}\nscores: {}", states.join(" "), scores.join(" "))
    }

    /// The last message to a player, with the result.
    fn farewell(&mut self, player: Player) -> Say {
        let (result, _) = self.result(player);
        Say::tell(seat(player), format!("{}\n{RESULT} {result}", self.news(player)))
    }

    /// A player's tables won minus lost, and its tricks won minus lost.
    pub fn result(&self, player: Player) -> (i64, i64) {
        let difference = |table: &Table| {
            i64::from(table.tricks(player)) - i64::from(table.tricks(player.other()))
        };
        let differences = self.tables.iter().map(difference);
        differences.fold((0, 0), |(tables, tricks), more| (tables + more.signum(), tricks + more))
    }

    /// Plays a reply: a card at each table that waits for the player.
    fn play(&mut self, player: Player, answer: &str) -> Result<(), Illegal> {
        let words = words(answer, self.tables.len())?;
        for (table, word) in self.tables.iter_mut().zip(words) {
            if table.turn() == Some(player) {
                table.play(word.parse().ok());
            }
        }
        self.turn_to(player.other());
        Ok(())
    }

    /// Ends all tables after a forfeit of `player`.
    fn lose(&mut self, player: Player, forfeit: Forfeit) {
        self.forfeit = Some((player, forfeit));
        self.tables.iter_mut().for_each(|table| table.concede(player));
    }

    fn standing(&self, player: Player) -> SeatResult {
        let (points, tricks) = self.result(player);
        let forfeit = self.forfeit.filter(|(loser, _)| *loser == player);
        SeatResult::new([points, tricks].to_vec(), forfeit.map(|(_, forfeit)| forfeit))
    }
}

fn seat(player: Player) -> Seat {
    Seat::from_index(player.index())
}

/// The words of a reply, one for each table.
fn words(answer: &str, tables: usize) -> Result<Vec<&str>, Illegal> {
    if answer.contains(['\n', char::REPLACEMENT_CHARACTER]) {
        return Err(Illegal(format!("an answer is one line of plain text, not {}", quote(answer))));
    }
    let line = answer.trim_ascii();
    let cards = line.strip_prefix(KEY);
    let words: Vec<_> = cards.unwrap_or(line).split_ascii_whitespace().collect();
    if cards.is_none() && words.first().is_some_and(|word| word.contains('=')) {
        return Err(Illegal(format!("an answer begins with {KEY} or a card: {}", quote(answer))));
    }
    if words.len() != tables {
        return Err(Illegal(format!(
            "{tables} cards expected, one for each table, found {}: {}",
            words.len(),
            quote(answer)
        )));
    }
    Ok(words)
}

impl MatchState for Match {
    fn step(&mut self) -> Step {
        if !self.is_over() {
            let news = self.news(self.turn);
            return Step::Say(Say::ask(seat(self.turn), news, self.move_limit));
        }
        if let Some(&player) = Player::ALL.get(self.informed) {
            self.informed += 1;
            return Step::Say(self.farewell(player));
        }
        Step::Over(Player::ALL.map(|player| self.standing(player)).to_vec())
    }

    fn view(&self) -> &dyn MatchView {
        self
    }

    fn receive_reply(
        &mut self,
        answer: Result<&str, Forfeit>,
        _charged: Micros,
    ) -> Result<(), Illegal> {
        if self.is_over() {
            return Ok(());
        }
        let player = self.turn;
        let taken = answer.map(|answer| self.play(player, answer));
        if let Some(forfeit) = Forfeit::from_reply(&taken) {
            self.lose(player, forfeit);
        }
        taken.unwrap_or(Ok(()))
    }
}
