//! Tricks: two players, 36 cards, a trump and 18 tricks.
//!
//! A match has many tables, which are played at the same time. Tables form pairs: the second table
//! of a pair exchanges the hands and the first attack of the first table, so that luck cancels. One
//! message asks a bot for its cards at all tables where it has the turn. An illegal card loses its
//! table. A malformed reply or a dead program loses all unfinished tables.
//!
//! HTTP clients were written for a server whose player replies at once. So such a client expects
//! the turn at every unfinished table. Against another kind of bot Arbiter does the same
//! ([`TurnPolicy::AllTables`]): it asks the opponent until the client has all turns. It cannot do
//! so for two HTTP clients, since each of them attacks first at half of the tables.
//!
//! [`Table`] has the rules of a table and the protocol's text for one table. This module has the
//! line protocol of two bots at many tables.
//!
//! Source: the problem "Tricks", a game on a server. Arbiter adds the line protocol and the pairs
//! of tables.

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
    Forfeit, Illegal, MatchState, MatchView, Message, Seat, SeatResult, Step, TurnPolicy,
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

/// A number of tables: even, since tables form pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TableCount(u32);

/// The bounds of the scores, given for each player whether it forfeited. `None` if both forfeited:
/// the first forfeit ends the match. The scores of the two players add up to 0.
pub(crate) fn bounds(params: &Params, forfeited: &[bool]) -> Option<Bounds> {
    if forfeited.iter().all(|forfeited| *forfeited) {
        return None;
    }
    let tables = i64::from(params.tables.0);
    let tricks = tables * i64::from(TRICKS);
    let components = [-tables..=tables, -tricks..=tricks];
    Some(Bounds::alike(Player::ALL.len(), &components, &[0..=0, 0..=0]))
}

/// Whether the points and tricks of a score are consistent. A table has 18 tricks, so the
/// difference of the players' tricks is even: 2 to 18 at a won table, -18 to -2 at a lost table.
pub(crate) fn agrees(params: &Params, points: i64, tricks: i64) -> bool {
    let tables = i64::from(params.tables.0);
    // The maximum: tables are won by 18 tricks, and lost by two.
    let max = |points: i64| {
        let won = (tables + points).div_euclid(2);
        let lost = won - points;
        won * i64::from(TRICKS) - 2 * lost
    };
    tricks % 2 == 0 && (-max(-points)..=max(points)).contains(&tricks)
}

impl Default for Params {
    fn default() -> Self {
        Self { tables: TABLES, move_limit: MOVE_LIMIT }
    }
}

/// The last reply. Only pictures use it.
#[derive(Clone, Debug)]
struct LastReply {
    player: Player,
    /// Whether each table waited for the player.
    waited: Vec<bool>,
}

/// A match between two bots: seat 1 is the first player of every table.
#[derive(Clone, Debug)]
pub struct Match {
    tables: Vec<Table>,
    /// The player with [`TurnPolicy::AllTables`], if its opponent has another policy.
    all_tables_player: Option<Player>,
    move_limit: Micros,
    /// The player of the next message, until all tables are over.
    turn: Player,
    forfeit: Option<(Player, Forfeit)>,
    /// The number of seats that got the result.
    informed: usize,
    /// The number of replies. Only pictures use it.
    replies: u64,
    last_reply: Option<LastReply>,
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
    /// [`TurnPolicy::AllTables`], both are treated as
    /// [`TurnPolicy::AnyTable`].
    #[must_use]
    pub fn with_turn_policies(mut self, turns: [TurnPolicy; 2]) -> Self {
        self.all_tables_player = match turns {
            [TurnPolicy::AllTables, TurnPolicy::AnyTable] => Some(Player::First),
            [TurnPolicy::AnyTable, TurnPolicy::AllTables] => Some(Player::Second),
            _ => None,
        };
        self.give_turn(self.turn);
        self
    }

    /// A match at these tables, which need not form pairs.
    pub fn at(tables: Vec<Table>, move_limit: Micros) -> Self {
        let mut game = Self {
            tables,
            all_tables_player: None,
            move_limit,
            turn: Player::First,
            forfeit: None,
            informed: 0,
            replies: 0,
            last_reply: None,
        };
        game.give_turn(Player::First);
        game
    }

    /// The present tables.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// The player of the next message, until all tables are over.
    pub fn turn(&self) -> Player {
        self.turn
    }

    /// Whether all tables are over.
    pub fn is_over(&self) -> bool {
        self.tables.iter().all(|table| table.turn().is_none())
    }

    /// Gives the turn to a player, or to the opponent if no table waits for the player. A player
    /// with [`TurnPolicy::AllTables`] gets the turn only if no table waits for the opponent.
    fn give_turn(&mut self, player: Player) {
        let player = self.all_tables_player.map_or(player, Player::other);
        let has_turn = self.tables.iter().any(|table| table.turn() == Some(player));
        self.turn = if has_turn { player } else { player.other() };
    }

    /// The message to a player: the lines `states` and `scores`.
    fn message_text(&mut self, player: Player) -> String {
        let states: Vec<_> = self.tables.iter_mut().map(|table| table.take_text(player)).collect();
        let scores: Vec<_> = self.tables.iter().map(|table| table.score_for(player)).collect();
        format!("states: {}\nscores: {}", states.join(" "), scores.join(" "))
    }

    /// The last message to a player, with the result.
    fn result_message(&mut self, player: Player) -> Message {
        let (result, _) = self.result(player);
        Message::notice(seat(player), format!("{}\n{RESULT} {result}", self.message_text(player)))
    }

    /// A player's tables won minus lost, and its tricks won minus lost.
    pub fn result(&self, player: Player) -> (i64, i64) {
        let difference = |table: &Table| {
            i64::from(table.tricks(player)) - i64::from(table.tricks(player.other()))
        };
        let differences = self.tables.iter().map(difference);
        differences.fold((0, 0), |(tables, tricks), difference| {
            (tables + difference.signum(), tricks + difference)
        })
    }

    /// Plays a reply: a card at each table that waits for the player.
    fn play(&mut self, player: Player, reply: &str) -> Result<(), Illegal> {
        let words = words(reply, self.tables.len())?;
        for (table, word) in self.tables.iter_mut().zip(words) {
            if table.turn() == Some(player) {
                table.play(word.parse().ok());
            }
        }
        self.give_turn(player.other());
        Ok(())
    }

    /// Ends all tables after a forfeit of `player`.
    fn lose(&mut self, player: Player, forfeit: Forfeit) {
        self.forfeit = Some((player, forfeit));
        self.tables.iter_mut().for_each(|table| table.concede(player));
    }

    fn seat_result(&self, player: Player) -> SeatResult {
        let (points, tricks) = self.result(player);
        let forfeit = self.forfeit.filter(|(loser, _)| *loser == player);
        SeatResult::new([points, tricks].to_vec(), forfeit.map(|(_, forfeit)| forfeit))
    }
}

fn seat(player: Player) -> Seat {
    Seat::from_index(player.index())
}

/// The words of a reply, one for each table.
fn words(reply: &str, tables: usize) -> Result<Vec<&str>, Illegal> {
    if reply.contains(['\n', char::REPLACEMENT_CHARACTER]) {
        return Err(Illegal(format!("an answer is one line of plain text, not {}", quote(reply))));
    }
    let line = reply.trim_ascii();
    let cards = line.strip_prefix(KEY);
    let words: Vec<_> = cards.unwrap_or(line).split_ascii_whitespace().collect();
    if cards.is_none() && words.first().is_some_and(|word| word.contains('=')) {
        return Err(Illegal(format!("an answer begins with {KEY} or a card: {}", quote(reply))));
    }
    if words.len() != tables {
        return Err(Illegal(format!(
            "{tables} cards expected, one for each table, found {}: {}",
            words.len(),
            quote(reply)
        )));
    }
    Ok(words)
}

impl MatchState for Match {
    fn step(&mut self) -> Step {
        if !self.is_over() {
            let text = self.message_text(self.turn);
            return Step::Send(Message::request(seat(self.turn), text, self.move_limit));
        }
        if let Some(&player) = Player::ALL.get(self.informed) {
            self.informed += 1;
            return Step::Send(self.result_message(player));
        }
        Step::Over(Player::ALL.map(|player| self.seat_result(player)).to_vec())
    }

    fn view(&self) -> &dyn MatchView {
        self
    }

    fn receive_reply(
        &mut self,
        reply: Result<&str, Forfeit>,
        _charged: Micros,
    ) -> Result<(), Illegal> {
        if self.is_over() {
            return Ok(());
        }
        let player = self.turn;
        let waited = self.tables.iter().map(|table| table.turn() == Some(player)).collect();
        self.replies += 1;
        self.last_reply = Some(LastReply { player, waited });
        let outcome = reply.map(|reply| self.play(player, reply));
        if let Some(forfeit) = Forfeit::from_reply(&outcome) {
            self.lose(player, forfeit);
        }
        outcome.unwrap_or(Ok(()))
    }
}
