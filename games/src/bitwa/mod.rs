//! Bitwa ("battle"): divisions of units move and fight on a board.
//!
//! Two bots: seat 1 has the divisions with capital letters, seat 2 those with small letters. The
//! referee asks for one order per division and round and sends it to both bots. The units of a
//! killed bot stay where they are, and the other bot continues alone.
//!
//! Source: the rules "Bitwa" of ITPW, KNI TEAM, whose sections are quoted by their titles.

mod battle;
mod board;
mod info;
mod moves;
mod order;
mod picture;

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use battle::Deed;
pub use battle::{Battle, Forces};
pub use board::{Board, Division, Ground, Rounds, Square, official_boards, shipped_boards};
pub use info::game;
pub use order::{Order, Sign};

use crate::bounds::Bounds;
use crate::clock::Micros;
use crate::gtp::{self, FAREWELL};
use crate::match_state::{
    Allowance, ExpectedReply, Forfeit, Illegal, MatchState, MatchView, Message, Seat, SeatResult,
    Step,
};
use crate::time_bank::TimeBank;

/// The number of seats.
const SEATS: usize = 2;
/// The minimum official bank: 3 minutes ("Przebieg turnieju": between 3 and 15).
const BANK: Micros = Micros::from_millis(180_000);

/// The parameters of a match.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// The board, by name or as text.
    pub board: Board,
    /// The maximum number of rounds; `None` for the maximum of the board.
    pub rounds: Option<Rounds>,
    /// Each bot's time for the replies to all commands of a game.
    pub bank: Micros,
}

impl Default for Params {
    fn default() -> Self {
        let board = "pole".parse().expect("a test reads every shipped board");
        Self { board, rounds: None, bank: BANK }
    }
}

/// The bounds of the scores of a game, with or without forfeits. Units and their strength never
/// increase, and a game ends when a player has no unit.
pub(crate) fn bounds(params: &Params) -> Bounds {
    let mut forces = [(0, 0); SEATS];
    for ground in params.board.ground() {
        if let Ground::Unit(division) = ground {
            let (units, strength) = &mut forces[division.seat().index()];
            *units += 1;
            *strength += i64::from(params.board.strength());
        }
    }
    let seat = |index: usize| {
        let (units, strength) = forces[index];
        let (enemies, enemy_strength) = forces[1 - index];
        let min = if enemies > 0 { -1 } else { 0 };
        let max = i64::from(units > 0);
        vec![min..=max, -enemies..=units, -enemy_strength..=strength]
    };
    Bounds { seats: vec![seat(0), seat(1)], sums: vec![0..=0; 3], bad_answers: vec![0; SEATS] }
}

/// A queued command. When the queue is empty, the match chooses the next division.
#[derive(Clone, Copy, Debug)]
enum Task {
    SetGame(Seat),
    TimeLeft(Division),
    GenMove(Division),
    Play(Seat, Division, Order),
    Quit(Seat),
}

impl Task {
    /// The seat of the command.
    fn seat(self) -> Seat {
        match self {
            Self::TimeLeft(division) | Self::GenMove(division) => division.seat(),
            Self::SetGame(seat) | Self::Play(seat, ..) | Self::Quit(seat) => seat,
        }
    }
}

/// One of the two bots.
#[derive(Clone, Copy, Debug)]
struct Player {
    bank: TimeBank,
    forfeit: Option<Forfeit>,
    /// Whether the bot still gets commands.
    alive: bool,
}

/// A game of bitwa in progress.
#[derive(Clone, Debug)]
pub struct Match {
    board: Board,
    battle: Battle,
    players: [Player; SEATS],
    /// The round being played, from 1.
    round: u32,
    /// The division that moved last in this round.
    last_division: Option<Division>,
    /// The number of executed orders.
    orders: u64,
    last_order: Option<(Division, Order)>,
    /// What the units did by the last order. Only pictures use it.
    deeds: Vec<Deed>,
    /// The last forfeit, and the number of orders before it. Only pictures use it.
    last_forfeit: Option<(Seat, u64)>,
    tasks: VecDeque<Task>,
    /// The command whose reply has not arrived.
    awaited: Option<Task>,
    /// The seat whose program must be killed next.
    dismissed: Option<Seat>,
    /// Whether the `quit` commands have been queued.
    is_closing: bool,
}

impl Match {
    /// Sets up the board.
    pub fn start(params: &Params) -> Self {
        let mut board = params.board.clone();
        if let Some(rounds) = params.rounds {
            board = board.with_rounds(rounds);
        }
        let player = Player { bank: TimeBank::new(params.bank), forfeit: None, alive: true };
        Self {
            battle: Battle::new(&board),
            board,
            players: [player; SEATS],
            round: 1,
            last_division: None,
            orders: 0,
            last_order: None,
            deeds: Vec::new(),
            last_forfeit: None,
            tasks: Seat::all(SEATS).map(Task::SetGame).collect(),
            awaited: None,
            dismissed: None,
            is_closing: false,
        }
    }

    /// The initial board.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// The present battle.
    pub fn battle(&self) -> &Battle {
        &self.battle
    }

    /// The round being played, from 1.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// The number of executed orders.
    pub fn orders(&self) -> u64 {
        self.orders
    }

    /// The last executed order, with its division.
    pub fn last_order(&self) -> Option<(Division, Order)> {
        self.last_order
    }

    /// Whether a seat's bot still gets commands.
    pub fn is_alive(&self, seat: Seat) -> bool {
        self.players[seat.index()].alive
    }

    /// The next round and division; `None` if the game is over because a player has no units, both
    /// bots are killed, or all rounds are played.
    fn upcoming(&self) -> Option<(u32, Division)> {
        if self.battle.is_decided() {
            return None;
        }
        let can_move = |division: &Division| {
            self.players[division.seat().index()].alive && !self.battle.units(*division).is_empty()
        };
        let in_this_round = |division: &Division| Some(*division) > self.last_division;
        if let Some(division) = Division::all().filter(in_this_round).find(can_move) {
            return Some((self.round, division));
        }
        let round = Some(self.round + 1).filter(|round| *round <= self.board.rounds())?;
        Division::all().find(can_move).map(|division| (round, division))
    }

    /// Whether the result is final.
    pub fn is_over(&self) -> bool {
        self.upcoming().is_none()
    }

    /// The seats that still get commands.
    fn living(&self) -> impl Iterator<Item = Seat> + use<> {
        let players = self.players;
        Seat::all(SEATS).filter(move |seat| players[seat.index()].alive)
    }

    /// Queues the next commands once the queue is empty.
    fn plan(&mut self) {
        if let Some((round, division)) = self.upcoming() {
            if round > self.round {
                (self.round, self.last_division) = (round, None);
            }
            self.tasks.extend([Task::TimeLeft(division), Task::GenMove(division)]);
        } else {
            self.is_closing = true;
            self.tasks.extend(self.living().map(Task::Quit));
        }
    }

    /// The message of a command. Stores the command if it expects a reply.
    fn message(&mut self, task: Task) -> Message {
        let seat = task.seat();
        let bank = self.players[seat.index()].bank;
        let expected_reply = match task {
            Task::GenMove(_) => ExpectedReply::Move,
            Task::Quit(_) => ExpectedReply::None,
            Task::SetGame(_) | Task::TimeLeft(_) | Task::Play(..) => ExpectedReply::Ack,
        };
        let allowance = match expected_reply {
            ExpectedReply::None => Allowance::Move(Micros::ZERO),
            ExpectedReply::Ack | ExpectedReply::Move => bank.allowance(),
        };
        self.awaited = (expected_reply != ExpectedReply::None).then_some(task);
        let tells_time = matches!(task, Task::TimeLeft(_));
        Message { seat, text: self.text(task), expected_reply, allowance, tells_time }
    }

    /// The text of a command ("Składnia poleceń").
    fn text(&self, task: Task) -> String {
        match task {
            Task::SetGame(_) => format!("set_game {}", self.board.text()),
            Task::TimeLeft(division) => {
                let bank = self.players[division.seat().index()].bank;
                format!("time_left {}", bank.left_millis())
            }
            Task::GenMove(division) => format!("gen_move {division}"),
            Task::Play(_, division, order) => format!("play {division} {order}"),
            Task::Quit(_) => String::from(FAREWELL),
        }
    }

    /// Checks the syntax of a reply. Carries out the order in a reply to `gen_move`.
    fn accept(&mut self, task: Task, reply: &str) -> Result<(), Illegal> {
        let Task::GenMove(division) = task else {
            return if self.is_over() { Ok(()) } else { gtp::parse_reply(reply).map(drop) };
        };
        let order = Order::parse(&gtp::parse_words(reply)?, &self.board)?;
        self.deeds.clear();
        let deeds = &mut self.deeds;
        self.battle.carry_out_watched(division, order, |deed| deeds.push(deed));
        self.last_division = Some(division);
        self.orders += 1;
        self.last_order = Some((division, order));
        self.tasks.extend(self.living().map(|seat| Task::Play(seat, division, order)));
        Ok(())
    }

    /// Kills a bot. Its units stay on the board. After the end of the game it is not a forfeit.
    fn kill(&mut self, seat: Seat, forfeit: Forfeit) {
        let is_forfeit = !self.is_over();
        let player = &mut self.players[seat.index()];
        player.alive = false;
        player.forfeit = is_forfeit.then_some(forfeit);
        if is_forfeit {
            self.last_forfeit = Some((seat, self.orders));
        }
        self.dismissed = Some(seat);
        self.tasks.retain(|task| task.seat() != seat);
    }

    /// The result of each seat from the board ("Przebieg turnieju").
    fn results(&self) -> Vec<SeatResult> {
        let mut results = vec![];
        for seat in Seat::all(SEATS) {
            let own = self.battle.forces(seat);
            let enemy = self.battle.forces(Seat::from_index(1 - seat.index()));
            let result = match own.cmp(&enemy) {
                Ordering::Greater => 1,
                Ordering::Equal => 0,
                Ordering::Less => -1,
            };
            let units = i64::from(own.units) - i64::from(enemy.units);
            let strength = own.strength.cast_signed() - enemy.strength.cast_signed();
            let forfeit = self.players[seat.index()].forfeit;
            results.push(SeatResult::new(vec![result, units, strength], forfeit));
        }
        results
    }
}

impl MatchState for Match {
    fn step(&mut self) -> Step {
        if let Some(seat) = self.dismissed.take() {
            return Step::Dismiss(seat);
        }
        if self.tasks.is_empty() && !self.is_closing {
            self.plan();
        }
        match self.tasks.pop_front() {
            Some(task) => Step::Send(self.message(task)),
            None => Step::Over(self.results()),
        }
    }

    fn view(&self) -> &dyn MatchView {
        self
    }

    fn receive_reply(
        &mut self,
        reply: Result<&str, Forfeit>,
        charged: Micros,
    ) -> Result<(), Illegal> {
        let task = self.awaited.take().expect("the driver passes one reply for each message");
        let seat = task.seat();
        self.players[seat.index()].bank.spend(charged);
        let outcome = reply.map(|text| self.accept(task, text));
        if let Some(forfeit) = Forfeit::from_reply(&outcome) {
            self.kill(seat, forfeit);
        }
        outcome.unwrap_or(Ok(()))
    }
}
