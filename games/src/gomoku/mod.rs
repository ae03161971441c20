//! Gomoku: five stones in a row, opened by Swap2.
//!
//! Two bots on a board of 15 × 15 squares. In the opening phase seat 1 (A) places three stones,
//! seat 2 (B) responds, and the colours are settled. In the game phase they place one stone each in
//! turn, black first, until a row wins or the board is full. A bot that forfeits loses at once.
//! Both bots get the result, unless the program of the loser is gone.
//!
//! Source: the challenge "KotH: Gomoku (Five in a row)", whose sections are quoted by their
//! titles.

mod board;
mod info;
mod moves;
mod picture;
mod syntax;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

pub use board::{Board, Colour, Occupied, Overline, OverlineError, ROW, SIDE, SQUARES, Square};
pub use info::game;

use crate::bounds::Bounds;
use crate::clock::Micros;
use crate::match_state::{
    Forfeit, Illegal, MatchState, MatchView, Message, Seat, SeatResult, Step,
};
use crate::name::BotName;
use crate::seed::Seed;
use syntax::Swap;

/// The number of seats.
const SEATS: usize = 2;
/// The random stream of the seed that the bots get as an argument.
const BOT_SEED_STREAM: u64 = 0;
/// The official time limit for a reply ("Rules").
const MOVE_LIMIT: Micros = Micros::from_millis(500);

/// The first word of the last line of a match.
const EXIT: &str = "EXIT";

/// The points of a victory ("KotH rules").
const VICTORY: i64 = 2;
/// The points of a tie.
const TIE: i64 = 1;
/// The points of a defeat.
const DEFEAT: i64 = 0;

/// The bounds of the points, given for each player whether it forfeited. `None` if both forfeited:
/// the first forfeit ends the game.
pub(crate) fn bounds(forfeited: &[bool]) -> Option<Bounds> {
    let sum = VICTORY + DEFEAT;
    let seats = match forfeited {
        [false, false] => vec![vec![DEFEAT..=VICTORY]; SEATS],
        [false, true] => vec![vec![VICTORY..=VICTORY], vec![DEFEAT..=DEFEAT]],
        [true, false] => vec![vec![DEFEAT..=DEFEAT], vec![VICTORY..=VICTORY]],
        _ => return None,
    };
    Some(Bounds { seats, sums: vec![sum..=sum], bad_answers: vec![0; SEATS] })
}

/// The parameters of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Whether a row of more than five wins.
    pub overline: Overline,
    /// The number of the first prompt of the game phase.
    pub first_number: FirstNumber,
    /// The time limit for a reply.
    pub move_limit: Micros,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            overline: Overline::default(),
            first_number: FirstNumber::default(),
            move_limit: MOVE_LIMIT,
        }
    }
}

/// The number of the first prompt of the game phase. The source allows both numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FirstNumber {
    /// Prompts are counted from 0.
    #[default]
    Zero = 0,
    /// Prompts are counted from 1.
    One = 1,
}

/// The phase of a match, by its next move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A places three stones.
    Open,
    /// B responds to them.
    Swap,
    /// A chooses its colour, after B placed two stones.
    Choose,
    /// Stones are placed in turn.
    Play {
        /// The seat that plays black.
        black: Seat,
        /// The number of stones placed in this phase.
        ply: u32,
    },
}

/// The end of a match.
#[derive(Clone, Copy, Debug)]
struct Ending {
    /// The winner; `None` for a tie.
    winner: Option<Seat>,
    /// The number of seats that got the result, or whose program is gone.
    informed: usize,
}

/// A match of gomoku in progress.
#[derive(Clone, Debug)]
pub struct Match {
    params: Params,
    names: [BotName; SEATS],
    /// The seed that the bots get for their random numbers.
    bot_seed: u32,
    board: Board,
    /// The squares of the stones, in the order of placement.
    placed: Vec<Square>,
    phase: Phase,
    ending: Option<Ending>,
    forfeit: Option<(Seat, Forfeit)>,
}

impl Match {
    /// Starts a match between the bots of these names, A first.
    ///
    /// # Panics
    /// If there are not two names.
    pub fn start(params: &Params, names: &[BotName], seed: Seed) -> Self {
        let [a, b] = names else { panic!("gomoku is a game for two bots, not {}", names.len()) };
        Self {
            params: *params,
            names: [a.clone(), b.clone()],
            bot_seed: seed.dice(BOT_SEED_STREAM).next_u32(),
            board: Board::default(),
            placed: Vec::new(),
            phase: Phase::Open,
            ending: None,
            forfeit: None,
        }
    }

    /// The present board.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// The squares of the stones, in the order of placement.
    pub fn placed(&self) -> &[Square] {
        &self.placed
    }

    /// The present phase, or the phase at the end of the match.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether a row of more than five wins.
    pub fn overline(&self) -> Overline {
        self.params.overline
    }

    /// Whether the match is over.
    pub fn is_over(&self) -> bool {
        self.ending.is_some()
    }

    /// The winner, if the match is over and not a tie.
    pub fn winner(&self) -> Option<Seat> {
        self.ending.and_then(|ending| ending.winner)
    }

    /// The seat that opens the game.
    fn opener() -> Seat {
        Seat::from_index(0)
    }

    /// The other seat.
    fn opponent(seat: Seat) -> Seat {
        Seat::from_index(SEATS - 1 - seat.index())
    }

    /// The seat with the turn. After the end of the match: the last seat with a turn.
    pub fn turn(&self) -> Seat {
        match self.phase {
            Phase::Open | Phase::Choose => Self::opener(),
            Phase::Swap => Self::opponent(Self::opener()),
            Phase::Play { black, ply } => match colour_at(ply) {
                Colour::Black => black,
                Colour::White => Self::opponent(black),
            },
        }
    }

    /// The prompt of this phase ("Input/output format").
    fn prompt(&self) -> Message {
        let word = match self.phase {
            Phase::Open => "A".to_string(),
            Phase::Swap => "B".to_string(),
            Phase::Choose => "C".to_string(),
            Phase::Play { ply, .. } => (self.params.first_number as u32 + ply).to_string(),
        };
        let text = [word.as_str(), self.board.text()].join(" ");
        Message::request(self.turn(), text, self.params.move_limit)
    }

    /// Whether a seat's program is gone. It cannot get the result then.
    fn is_gone(&self, seat: Seat) -> bool {
        self.forfeit == Some((seat, Forfeit::Gone))
    }

    /// The line with the result of the match, if it is over.
    pub fn exit_text(&self) -> Option<String> {
        self.ending.map(|ending| self.exit_line(ending.winner))
    }

    fn exit_line(&self, winner: Option<Seat>) -> String {
        let name = winner.map_or("TIE", |winner| self.names[winner.index()].as_str());
        format!("{EXIT} {name}")
    }

    /// Plays a reply of `seat`. An illegal reply changes nothing.
    fn play(&mut self, seat: Seat, reply: &str) -> Result<(), Illegal> {
        self.phase = match self.phase {
            Phase::Open => {
                let [first, second, white] = syntax::opening(reply)?;
                self.place(&[
                    (first, Colour::Black),
                    (second, Colour::Black),
                    (white, Colour::White),
                ])?;
                Phase::Swap
            }
            Phase::Swap => match syntax::swap(reply)? {
                Swap::Black => Phase::Play { black: seat, ply: 0 },
                Swap::White(square) => {
                    self.place(&[(square, Colour::White)])?;
                    Phase::Play { black: Self::opponent(seat), ply: 0 }
                }
                Swap::Both(black, white) => {
                    self.place(&[(black, Colour::Black), (white, Colour::White)])?;
                    Phase::Choose
                }
            },
            Phase::Choose => match syntax::choice(reply)? {
                Colour::Black => Phase::Play { black: seat, ply: 0 },
                Colour::White => Phase::Play { black: Self::opponent(seat), ply: 0 },
            },
            Phase::Play { black, ply } => {
                let square = syntax::stone(reply)?;
                self.place(&[(square, colour_at(ply))])?;
                if self.board.wins(square, self.params.overline) {
                    self.end(Some(seat));
                } else if self.board.is_full() {
                    self.end(None);
                }
                Phase::Play { black, ply: ply + 1 }
            }
        };
        Ok(())
    }

    /// Places all these stones, or none if one of their squares is occupied.
    fn place(&mut self, stones: &[(Square, Colour)]) -> Result<(), Illegal> {
        for (index, (square, _)) in stones.iter().enumerate() {
            let is_duplicate = stones[..index].iter().any(|(other, _)| other == square);
            if is_duplicate || self.board.get(*square).is_some() {
                return Err(Illegal(Occupied(*square).to_string()));
            }
        }
        for (square, colour) in stones {
            self.board.place(*square, *colour).expect("the square is empty");
            self.placed.push(*square);
        }
        Ok(())
    }

    fn end(&mut self, winner: Option<Seat>) {
        self.ending = Some(Ending { winner, informed: 0 });
    }

    /// Ends the match after a forfeit of `seat`.
    fn lose(&mut self, seat: Seat, forfeit: Forfeit) {
        self.forfeit = Some((seat, forfeit));
        self.end(Some(Self::opponent(seat)));
    }

    fn result(&self, seat: Seat, winner: Option<Seat>) -> SeatResult {
        let points = match winner {
            None => TIE,
            Some(winner) if winner == seat => VICTORY,
            Some(_) => DEFEAT,
        };
        let forfeit = self.forfeit.filter(|(loser, _)| *loser == seat).map(|(_, forfeit)| forfeit);
        SeatResult::new(vec![points], forfeit)
    }
}

/// The colour of the stone at a ply of the game phase. Black begins after every opening.
fn colour_at(ply: u32) -> Colour {
    if ply.is_multiple_of(2) { Colour::Black } else { Colour::White }
}

impl MatchState for Match {
    fn step(&mut self) -> Step {
        let Some(Ending { winner, informed }) = self.ending else {
            return Step::Send(self.prompt());
        };
        let mut uninformed = Seat::all(SEATS).skip(informed).filter(|seat| !self.is_gone(*seat));
        if let Some(seat) = uninformed.next() {
            self.ending = Some(Ending { winner, informed: seat.index() + 1 });
            return Step::Send(Message::notice(seat, self.exit_line(winner)));
        }
        Step::Over(Seat::all(SEATS).map(|seat| self.result(seat, winner)).collect())
    }

    fn view(&self) -> &dyn MatchView {
        self
    }

    fn legacy_farewell(&self) -> Option<String> {
        self.exit_text()
    }

    fn receive_reply(
        &mut self,
        reply: Result<&str, Forfeit>,
        _charged: Micros,
    ) -> Result<(), Illegal> {
        if self.ending.is_some() {
            return Ok(());
        }
        let seat = self.turn();
        let outcome = reply.map(|reply| self.play(seat, reply));
        if let Some(forfeit) = Forfeit::from_reply(&outcome) {
            self.lose(seat, forfeit);
        }
        outcome.unwrap_or(Ok(()))
    }

    /// The opponent's name and the bots' seed ("Arguments").
    fn launch_arguments(&self, seat: Seat) -> Vec<String> {
        let opponent = &self.names[Self::opponent(seat).index()];
        vec![opponent.to_string(), self.bot_seed.to_string()]
    }
}
