//! Wojna deklarowana ("declared war"): a card game for four that combines war and poker.
//!
//! Every bot has a face-down pile and peeks at its front card only. In an auction the bots pay
//! cards to have their front cards compared. The highest card wins all paid cards. A match has
//! several deals between the same bots. In each deal, the bot that stays longest gets the most
//! points.
//!
//! [`Deal`] has the rules of the cards. [`Match`] sends commands to the bots and counts points. A
//! bot that forfeits is dead for the rest of the match: its seat always passes, pays the required
//! cards, and gets no more points.
//!
//! Source: "Wojna deklarowana", whose sections are quoted by their Polish titles.

mod auction;
mod deal;
mod deck;
mod info;
mod moves;
mod picture;
mod scoring;
mod time_settings;

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write as _;

pub use auction::{CannotPay, MAX_SEATS, Move, Raise};
pub use deal::{Deal, PotOutcome};
pub use deck::{Card, Deck};
pub use info::game;
pub(crate) use scoring::bounds;
pub use scoring::{DealResult, points};
pub use time_settings::TimeSettings;

use crate::clock::Micros;
use crate::gtp::{self, FAREWELL};
use crate::match_state::{
    Allowance, ExpectedReply, Forfeit, Illegal, MatchState, MatchView, Message, Seat, SeatResult,
    Step,
};
use crate::seed::Seed;
use scoring::FIRST_PLACE;
use time_settings::SeatClock;

/// The parameters of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// The number of deals of a match.
    pub deals: u32,
    /// The cards that are dealt.
    pub deck: Deck,
    /// The clock, which restarts in each deal.
    pub clock: TimeSettings,
    /// The exact number of seats.
    pub seats: usize,
}

impl Default for Params {
    /// The official parameters.
    fn default() -> Self {
        Self { deals: 40, deck: Deck::default(), clock: TimeSettings::default(), seats: 4 }
    }
}

/// A bot at the table.
#[derive(Clone, Debug)]
struct Player {
    clock: SeatClock,
    forfeit: Option<Forfeit>,
    points: i64,
}

/// The next step of the match once the queue of commands is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The next deal, or the end.
    Deal,
    /// The next auction of the deal, or the end of the deal.
    Auction,
    /// The next move of the auction, or the showing of cards.
    Bidding,
    /// The comparison of the shown cards.
    Showdown,
    /// Nothing: the match is over.
    Over,
}

/// The purpose of a command. It determines the expected reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Notice,
    TimeLeft,
    MoveRequest,
    Quit,
}

/// The last event of a phase. Only pictures use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// A bid, which cost this number of cards.
    Bid(Seat, Move, usize),
    /// A forfeit.
    Forfeit(Seat),
}

/// What pictures show of the past.
#[derive(Clone, Debug, Default)]
struct Past {
    /// The number of bids and forfeits so far.
    events: u64,
    /// The last of them, if it belongs to the present phase.
    last: Option<Event>,
    /// Whether the last auction that was settled led to a war.
    is_war: bool,
    /// The points of each seat in the last deal that is over.
    gained: [i64; MAX_SEATS],
}

/// A queued command. It is not sent if its seat is dead by then.
#[derive(Clone, Debug)]
struct Command {
    seat: Seat,
    text: String,
    purpose: Purpose,
}

/// A match of wojna in progress.
#[derive(Clone, Debug)]
pub struct Match {
    params: Params,
    /// The deck for `setdeck`.
    deck: Deck,
    deal: Deal,
    /// The number of deals that have begun.
    number: u32,
    players: Vec<Player>,
    phase: Phase,
    queue: VecDeque<Command>,
    /// The seat whose reply has not arrived, and the purpose of its command.
    awaited: Option<(Seat, Purpose)>,
    /// The seat that has just forfeited, whose program must be killed next.
    dismissed: Option<Seat>,
    past: Past,
}

impl Match {
    /// Starts a match of `seats` bots with a shuffled first deal.
    ///
    /// # Panics
    /// If there are not 2 to 4 seats.
    pub fn start(params: &Params, seats: usize, seed: Seed) -> Self {
        Self::with_deal(params, params.deck.clone(), Deal::new(&params.deck, seats, seed))
    }

    /// Starts a match whose first deal has these piles, as in [`Deal::stacked`]. The piles replace
    /// the deck and the number of seats of the parameters.
    ///
    /// # Panics
    /// If there are not 2 to 4 piles, or one is empty.
    pub fn stacked(params: &Params, piles: &[Vec<Card>], seed: Seed) -> Self {
        Self::with_deal(params, Deck::of(piles.concat()), Deal::stacked(piles, seed))
    }

    fn with_deal(params: &Params, deck: Deck, deal: Deal) -> Self {
        let clock = SeatClock::new(params.clock);
        let player = Player { clock, forfeit: None, points: 0 };
        let mut game = Self {
            params: params.clone(),
            deck,
            players: vec![player; deal.seats()],
            deal,
            number: 0,
            phase: Phase::Deal,
            queue: VecDeque::new(),
            awaited: None,
            dismissed: None,
            past: Past::default(),
        };
        for seat in game.seats() {
            game.enqueue(seat, format!("your_number {seat}"), Purpose::Notice);
        }
        game
    }

    /// The present deal.
    pub fn deal(&self) -> &Deal {
        &self.deal
    }

    /// The number of deals that have begun.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The total number of deals.
    pub fn deals(&self) -> u32 {
        self.params.deals
    }

    /// The points of a seat in the deals that are over.
    pub fn points(&self, seat: Seat) -> i64 {
        self.players[seat.index()].points
    }

    /// The forfeit of a seat, if it has forfeited.
    pub fn forfeited(&self, seat: Seat) -> Option<Forfeit> {
        self.players[seat.index()].forfeit
    }

    /// Whether the phase is the showing of cards.
    pub fn is_showdown(&self) -> bool {
        self.phase == Phase::Showdown
    }

    fn seats(&self) -> impl Iterator<Item = Seat> + use<> {
        Seat::all(self.players.len())
    }

    fn is_alive(&self, seat: Seat) -> bool {
        self.players[seat.index()].forfeit.is_none()
    }

    fn remember(&mut self, event: Event) {
        self.past.events += 1;
        self.past.last = Some(event);
    }

    fn enqueue(&mut self, seat: Seat, text: String, purpose: Purpose) {
        self.queue.push_back(Command { seat, text, purpose });
    }

    /// Queues a command to all seats, including seats without cards.
    fn announce(&mut self, text: &str) {
        for seat in self.seats() {
            self.enqueue(seat, text.to_string(), Purpose::Notice);
        }
    }

    /// Takes the next step once the queue is empty ("Komunikacja arbiter — gracz").
    fn advance(&mut self) {
        let has_active_seat = self.seats().any(|seat| self.is_alive(seat) && self.deal.is_in(seat));
        match self.phase {
            Phase::Deal if self.number == self.params.deals => self.end_match(),
            Phase::Deal => self.begin_deal(),
            Phase::Auction | Phase::Bidding | Phase::Showdown if !has_active_seat => {
                self.count_deal();
            }
            Phase::Auction if self.deal.open() => self.begin_auction(),
            Phase::Auction => self.count_deal(),
            Phase::Bidding => match self.deal.turn() {
                Some(seat) if self.is_alive(seat) => self.ask(seat),
                Some(seat) => self.play(seat, Move::Pass).expect("a pass costs nothing"),
                None => self.show_cards(),
            },
            Phase::Showdown => {
                self.past.is_war = matches!(self.deal.outcome(), PotOutcome::War(_));
                self.deal.settle();
                self.phase = Phase::Auction;
            }
            Phase::Over => {}
        }
    }

    /// Begins a deal. [`Match::start`] has already dealt the first deal and set its clocks, so the
    /// clocks also charge the reply to `your_number`.
    fn begin_deal(&mut self) {
        if self.number > 0 {
            self.deal.redeal();
            let clock = SeatClock::new(self.params.clock);
            self.players.iter_mut().for_each(|player| player.clock = clock);
        }
        // The first deal is on the table from the beginning.
        if self.number > 0 {
            self.past.last = None;
            self.past.is_war = false;
        }
        self.number += 1;
        let cards = self.deck.cards();
        self.announce(&with_numbers(format!("setdeck {}", cards.len()), cards));
        self.announce(&self.params.clock.command());
        self.phase = Phase::Auction;
    }

    fn begin_auction(&mut self) {
        let piles: Vec<_> = self.seats().map(|seat| self.deal.pile(seat)).collect();
        let state = format!("setstate {} {}", self.deal.pot(), piles.len());
        self.announce(&with_numbers(state, &piles));
        for seat in self.seats() {
            if let Some(card) = self.deal.peeked(seat) {
                self.enqueue(seat, format!("topcard {seat} {card}"), Purpose::Notice);
            }
        }
        self.past.last = None;
        self.phase = Phase::Bidding;
    }

    fn ask(&mut self, seat: Seat) {
        let time_left = self.players[seat.index()].clock.command();
        self.enqueue(seat, time_left, Purpose::TimeLeft);
        self.enqueue(seat, format!("genmove {seat}"), Purpose::MoveRequest);
    }

    fn play(&mut self, seat: Seat, bid: Move) -> Result<(), CannotPay> {
        let paid = self.deal.paid(seat);
        self.deal.play(bid)?;
        self.remember(Event::Bid(seat, bid, self.deal.paid(seat) - paid));
        self.announce(&format!("play {seat} {bid}"));
        Ok(())
    }

    fn show_cards(&mut self) {
        for seat in self.seats() {
            if let Some(card) = self.deal.peeked(seat) {
                self.announce(&format!("topcard {seat} {card}"));
            }
        }
        self.past.last = None;
        self.phase = Phase::Showdown;
    }

    fn count_deal(&mut self) {
        let result =
            |seat| if self.is_alive(seat) { self.deal.result(seat) } else { DealResult::Forfeited };
        let results: Vec<_> = self.seats().map(result).collect();
        self.past.gained = points(&results);
        for (player, points) in self.players.iter_mut().zip(self.past.gained) {
            player.points += points;
        }
        self.phase = Phase::Deal;
    }

    fn end_match(&mut self) {
        for seat in self.seats() {
            self.enqueue(seat, FAREWELL.to_string(), Purpose::Quit);
        }
        self.phase = Phase::Over;
    }

    /// Checks a reply of `seat`, and plays its move if the command requested one.
    fn accept(&mut self, seat: Seat, purpose: Purpose, reply: &str) -> Result<(), Illegal> {
        if purpose != Purpose::MoveRequest {
            return gtp::parse_reply(reply).map(drop);
        }
        let bid = read_move(reply)?;
        self.play(seat, bid).map_err(|error| Illegal(error.to_string()))?;
        self.players[seat.index()].clock.count_move();
        Ok(())
    }

    /// Forfeits a seat for the rest of the match. If only one seat is alive then, the match ends,
    /// and this seat gets the first place of this deal and of all later deals.
    fn forfeit(&mut self, seat: Seat, forfeit: Forfeit) {
        self.players[seat.index()].forfeit = Some(forfeit);
        self.dismissed = Some(seat);
        self.remember(Event::Forfeit(seat));
        let mut alive = self.players.iter_mut().filter(|player| player.forfeit.is_none());
        if let (Some(last), None) = (alive.next(), alive.next()) {
            let deals = self.params.deals - self.number.saturating_sub(1);
            last.points += FIRST_PLACE * i64::from(deals);
            self.queue.clear();
            self.end_match();
        }
    }

    fn message(&mut self, command: Command) -> Message {
        let Command { seat, text, purpose } = command;
        let (expected_reply, allowance) = match purpose {
            Purpose::Quit => (ExpectedReply::None, Allowance::Move(Micros::ZERO)),
            Purpose::MoveRequest => {
                (ExpectedReply::Move, self.players[seat.index()].clock.allowance())
            }
            Purpose::Notice | Purpose::TimeLeft => {
                (ExpectedReply::Ack, self.players[seat.index()].clock.allowance())
            }
        };
        self.awaited = (expected_reply != ExpectedReply::None).then_some((seat, purpose));
        Message { seat, text, expected_reply, allowance, tells_time: purpose == Purpose::TimeLeft }
    }
}

impl MatchState for Match {
    fn step(&mut self) -> Step {
        if let Some(seat) = self.dismissed.take() {
            return Step::Dismiss(seat);
        }
        loop {
            while let Some(command) = self.queue.pop_front() {
                if self.is_alive(command.seat) {
                    return Step::Send(self.message(command));
                }
            }
            if self.phase == Phase::Over {
                let result = |player: &Player| SeatResult::new(vec![player.points], player.forfeit);
                return Step::Over(self.players.iter().map(result).collect());
            }
            self.advance();
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
        let Some((seat, purpose)) = self.awaited.take() else { return Ok(()) };
        self.players[seat.index()].clock.spend(charged);
        let outcome = reply.map(|reply| self.accept(seat, purpose, reply));
        if let Some(forfeit) = Forfeit::from_reply(&outcome) {
            self.forfeit(seat, forfeit);
        }
        outcome.unwrap_or(Ok(()))
    }
}

/// A command followed by a list of numbers.
fn with_numbers<N: core::fmt::Display>(mut command: String, numbers: &[N]) -> String {
    for number in numbers {
        write!(command, " {number}").expect("a string takes every text");
    }
    command
}

/// Parses the reply to `genmove` ("Komendy do wojny deklarowanej").
fn read_move(reply: &str) -> Result<Move, Illegal> {
    match gtp::parse_words(reply)?[..] {
        ["pass"] => Ok(Move::Pass),
        ["check"] => Ok(Move::Check),
        ["raise", "1"] => Ok(Move::Raise(Raise::One)),
        ["raise", "2"] => Ok(Move::Raise(Raise::Two)),
        ["raise", "3"] => Ok(Move::Raise(Raise::Three)),
        _ => Err(Illegal(format!(
            "not a move: {}; the moves are pass, check, raise 1, raise 2 and raise 3",
            gtp::quote(reply.trim())
        ))),
    }
}
