//! Bitwa ("battle"): divisions of units march and fight on a board.
//!
//! Two bots: seat 1 has the divisions with capital letters, seat 2 those with small letters. The
//! referee asks for one order per division and round and sends it to both bots. The units of a killed
//! bot stay where they are, and the other bot plays on alone.
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

pub use battle::{Battle, Forces};
pub use board::{Board, Division, Ground, Rounds, Square, official_boards, shipped_boards};
pub use info::game;
pub use order::{Order, Sign};

use crate::bounds::Bounds;
use crate::clock::Micros;
use crate::gtp::{self, FAREWELL};
use crate::match_state::{
    Allowance, Forfeit, Illegal, MatchState, MatchView, Owes, Say, Seat, SeatResult, Step,
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
    /// The maximum number of rounds, if it is not the board's.
    pub rounds: Option<Rounds>,
    /// Each bot's time for the whole game, all commands counted.
    pub bank: Micros,
}

impl Default for Params {
    fn default() -> Self {
        let board = "pole".parse().expect("a test reads every shipped board");
        Self { board, rounds: None, bank: BANK }
    }
}

/// The bounds of the scores of a game, with or without forfeits: units are never added or strengthened,
/// and a game ends when a player has none.
pub(crate) fn bounds(params: &Params) -> Bounds {
    let mut forces = [(0, 0); SEATS];
    for ground in params.board.ground() {
        if let Ground::Unit(division) = ground {
            let (units, strength) = &mut forces[division.seat().index()];
            *units += 1;
            *strength += i64::from(params.board.strength());
        }
    }
    let seat = |own: usize| {
        let (units, strength) = forces[own];
        let (enemies, enemy_strength) = forces[1 - own];
        let least = if enemies > 0 { -1 } else { 0 };
        let most = i64::from(units > 0);
        vec![least..=most, -enemies..=units, -enemy_strength..=strength]
    };
    Bounds { seats: vec![seat(0), seat(1)], sums: vec![0..=0; 3], bad_answers: vec![0; SEATS] }
}

/// A queued command. The next division is chosen once the queue is empty.
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
    /// Whether it still gets commands.
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
    moved: Option<Division>,
    /// The number of orders that were carried out.
    orders: u64,
    last_order: Option<(Division, Order)>,
    tasks: VecDeque<Task>,
    /// The command that still owes a reply.
    asked: Option<Task>,
    /// The seat whose program must be killed next.
    dismissed: Option<Seat>,
    /// Whether the farewells have been queued.
    closing: bool,
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
            moved: None,
            orders: 0,
            last_order: None,
            tasks: Seat::all(SEATS).map(Task::SetGame).collect(),
            asked: None,
            dismissed: None,
            closing: false,
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

    /// The number of orders that were carried out.
    pub fn orders(&self) -> u64 {
        self.orders
    }

    /// The last order that was carried out, with its division.
    pub fn last_order(&self) -> Option<(Division, Order)> {
        self.last_order
    }

    /// Whether a seat's bot still gets commands.
    pub fn is_alive(&self, seat: Seat) -> bool {
        self.players[seat.index()].alive
    }

    /// The next round and division; `None` if the game is over because a player has no units, both bots
    /// are killed, or all rounds are played.
    fn upcoming(&self) -> Option<(u32, Division)> {
        if self.battle.is_decided() {
            return None;
        }
        let can_move = |division: &Division| {
            self.players[division.seat().index()].alive && !self.battle.units(*division).is_empty()
        };
        let in_this_round = |division: &Division| Some(*division) > self.moved;
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
                (self.round, self.moved) = (round, None);
            }
            self.tasks.extend([Task::TimeLeft(division), Task::GenMove(division)]);
        } else {
            self.closing = true;
            self.tasks.extend(self.living().map(Task::Quit));
        }
    }

    /// The message of a command. Remembers the command if it owes a reply.
    fn say(&mut self, task: Task) -> Say {
        let seat = task.seat();
        let bank = self.players[seat.index()].bank;
        let owes = match task {
            Task::GenMove(_) => Owes::Move,
            Task::Quit(_) => Owes::Nothing,
            Task::SetGame(_) | Task::TimeLeft(_) | Task::Play(..) => Owes::Ack,
        };
        let allowance = match owes {
            Owes::Nothing => Allowance::Move(Micros::ZERO),
            Owes::Ack | Owes::Move => bank.allowance(),
        };
        self.asked = (owes != Owes::Nothing).then_some(task);
        let tells_time = matches!(task, Task::TimeLeft(_));
        Say { seat, text: self.words(task), owes, allowance, tells_time }
    }

    /// The text of a command ("Składnia poleceń").
    fn words(&self, task: Task) -> String {
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

    /// Checks the form of a reply, and carries out its order if one was requested.
    fn take(&mut self, asked: Task, answer: &str) -> Result<(), Illegal> {
        let Task::GenMove(division) = asked else {
            return if self.is_over() { Ok(()) } else { gtp::parse_reply(answer).map(drop) };
        };
        let order = Order::parse(&gtp::parse_words(answer)?, &self.board)?;
        self.battle.carry_out(division, order);
        self.moved = Some(division);
        self.orders += 1;
        self.last_order = Some((division, order));
        self.tasks.extend(self.living().map(|seat| Task::Play(seat, division, order)));
        Ok(())
    }

    /// Kills a bot; its units stay on the board. After the end of the game this is no forfeit.
    fn kill(&mut self, seat: Seat, forfeit: Forfeit) {
        let counts = !self.is_over();
        let player = &mut self.players[seat.index()];
        player.alive = false;
        player.forfeit = counts.then_some(forfeit);
        self.dismissed = Some(seat);
        self.tasks.retain(|task| task.seat() != seat);
    }

    /// The result of each seat from the board ("Przebieg turnieju").
    fn standings(&self) -> Vec<SeatResult> {
        let mut standings = vec![];
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
            standings.push(SeatResult::new(vec![result, units, strength], forfeit));
        }
        standings
    }
}

impl MatchState for Match {
    fn step(&mut self) -> Step {
        if let Some(seat) = self.dismissed.take() {
            return Step::Dismiss(seat);
        }
        if self.tasks.is_empty() && !self.closing {
            self.plan();
        }
        match self.tasks.pop_front() {
            Some(task) => Step::Say(self.say(task)),
            None => Step::Over(self.standings()),
        }
    }

    fn view(&self) -> &dyn MatchView {
        self
    }

    fn receive_reply(
        &mut self,
        answer: Result<&str, Forfeit>,
        charged: Micros,
    ) -> Result<(), Illegal> {
        let asked = self.asked.take().expect("the driver passes on one answer for each question");
        let seat = asked.seat();
        self.players[seat.index()].bank.spend(charged);
        let taken = answer.map(|text| self.take(asked, text));
        if let Some(forfeit) = Forfeit::from_reply(&taken) {
            self.kill(seat, forfeit);
        }
        taken.unwrap_or(Ok(()))
    }
}
