//! What a match has round its bots while it is tried: the game that is followed, bots that are
//! overheard, and people in seats.

use std::sync::Arc;
use std::time::Instant;

use arbiter_games::{
    ClockKind, Forfeit, Illegal, MatchState, MatchView, Micros, Owes, Seat, Step, TimeSpent,
};
use arbiter_worker::fault::Fault;
use arbiter_worker::match_runner::MatchHooks;
use arbiter_worker::referee::MatchEvent;
use arbiter_worker::seat::{SeatDriver, SeatFailure, SeatUsage, TimedReply};

use super::LiveMatch;

/// What a person says where any answer of the right form will do: in the protocols that ask for
/// such answers, that they have heard.
const HEARD: &[u8] = b"=";

/// The hooks of a live match.
#[derive(Debug)]
pub(crate) struct Observers(pub(crate) Arc<LiveMatch>);

impl MatchHooks for Observers {
    fn wrap_game(&mut self, game: Box<dyn MatchState>) -> Box<dyn MatchState> {
        Box::new(ObservedGame { game, live_match: Arc::clone(&self.0) })
    }

    fn person_driver(&mut self, _place: Seat) -> Box<dyn SeatDriver> {
        Box::new(Person { live_match: Arc::clone(&self.0), answered: false, is_gone: false })
    }

    fn wrap_driver(&mut self, place: Seat, seat: Box<dyn SeatDriver>) -> Box<dyn SeatDriver> {
        Box::new(ObservedBot { place, seat, live_match: Arc::clone(&self.0) })
    }

    fn on_event(&mut self, time: Micros, event: MatchEvent<'_>) {
        self.0.note(time, event);
    }
}

/// A game that reports each state to the live match, and continues when the live match allows it.
#[derive(Debug)]
struct ObservedGame {
    game: Box<dyn MatchState>,
    live_match: Arc<LiveMatch>,
}

impl MatchState for ObservedGame {
    fn step(&mut self) -> Step {
        let step = self.game.step();
        self.live_match.reach(self.game.view(), &step);
        step
    }

    fn receive_reply(
        &mut self,
        answer: Result<&str, Forfeit>,
        charged: Micros,
    ) -> Result<(), Illegal> {
        self.game.receive_reply(answer, charged)
    }

    fn view(&self) -> &dyn MatchView {
        self.game.view()
    }

    fn launch_arguments(&self, seat: Seat) -> Vec<String> {
        self.game.launch_arguments(seat)
    }
}

/// A bot whose standard error is shown as it comes.
struct ObservedBot {
    place: Seat,
    seat: Box<dyn SeatDriver>,
    live_match: Arc<LiveMatch>,
}

impl SeatDriver for ObservedBot {
    fn ask(&mut self, text: &str, limit: Micros) -> Result<TimedReply, Fault> {
        let answer = self.seat.ask(text, limit)?;
        self.live_match.overhear(self.place, self.seat.stderr());
        Ok(answer)
    }

    fn wait_until_stopped(&mut self) -> Result<(), Fault> {
        self.seat.wait_until_stopped()
    }

    fn notify(&mut self, text: &str) {
        self.seat.notify(text);
    }

    fn is_starting_up(&self) -> bool {
        self.seat.is_starting_up()
    }

    fn stderr(&self) -> &[u8] {
        self.seat.stderr()
    }

    fn dismiss(&mut self) {
        self.seat.dismiss();
    }

    fn close_input(&mut self) {
        self.seat.close_input();
    }

    fn wait_for_exit(&mut self, deadline: Instant) -> Result<(), Fault> {
        self.seat.wait_for_exit(deadline)
    }

    fn close(self: Box<Self>) -> Result<SeatUsage, Fault> {
        let usage = self.seat.close()?;
        self.live_match.overhear(self.place, &usage.stderr);
        Ok(usage)
    }
}

/// A person, who answers on a page.
struct Person {
    live_match: Arc<LiveMatch>,
    answered: bool,
    is_gone: bool,
}

impl SeatDriver for Person {
    fn ask(&mut self, _text: &str, limit: Micros) -> Result<TimedReply, Fault> {
        let live_match = &self.live_match;
        self.answered = true;
        if self.is_gone || live_match.owes() != Owes::Move {
            return Ok(TimedReply { reply: Ok(HEARD.to_vec()), spent: TimeSpent::default() });
        }
        let clock = live_match.config.person_clock;
        let begun = Instant::now();
        let answer = live_match.wait_for_answer(clock.map(|_| limit))?;
        let spent = clock.map_or(TimeSpent::default(), |kind| {
            let wall = Micros(i64::try_from(begun.elapsed().as_micros()).unwrap_or(i64::MAX));
            // A person who thinks burns no processor; under such a clock all thinking is charged.
            TimeSpent { wall, cpu: if kind == ClockKind::Cpu { wall } else { Micros::ZERO } }
        });
        let reply = answer
            .map(String::into_bytes)
            .ok_or_else(|| SeatFailure { forfeit: Forfeit::Clock, detail: String::new() });
        Ok(TimedReply { reply, spent })
    }

    fn notify(&mut self, _text: &str) {}

    fn is_starting_up(&self) -> bool {
        self.live_match.config.startup_is_free && !self.answered
    }

    fn dismiss(&mut self) {
        self.is_gone = true;
    }

    fn close_input(&mut self) {}

    fn wait_for_exit(&mut self, _deadline: Instant) -> Result<(), Fault> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<SeatUsage, Fault> {
        Ok(SeatUsage::default())
    }
}
