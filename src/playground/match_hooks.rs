//! Connects a match to its [`LiveMatch`]: reports the states of the game and the standard error of
//! bots, and lets people play.

use std::sync::Arc;
use std::time::Instant;

use arbiter_games::{
    ClockKind, ExpectedReply, Forfeit, Illegal, MatchState, MatchView, Micros, Seat, Step,
    TimeSpent,
};
use arbiter_worker::fault::Fault;
use arbiter_worker::match_runner::MatchHooks;
use arbiter_worker::referee::MatchEvent;
use arbiter_worker::seat::{SeatDriver, SeatFailure, SeatUsage, TimedReply};

use super::LiveMatch;

/// A person's reply to messages that only need an acknowledgement.
const ACKNOWLEDGEMENT: &[u8] = b"=";

/// The hooks of a live match.
#[derive(Debug)]
pub(crate) struct LiveHooks(pub(crate) Arc<LiveMatch>);

impl MatchHooks for LiveHooks {
    fn wrap_game(&mut self, game: Box<dyn MatchState>) -> Box<dyn MatchState> {
        Box::new(ObservedGame { game, live_match: Arc::clone(&self.0) })
    }

    fn person_driver(&mut self, _seat: Seat) -> Box<dyn SeatDriver> {
        Box::new(Person { live_match: Arc::clone(&self.0), has_replied: false, is_gone: false })
    }

    fn wrap_driver(&mut self, seat: Seat, driver: Box<dyn SeatDriver>) -> Box<dyn SeatDriver> {
        Box::new(ObservedBot { seat, driver, live_match: Arc::clone(&self.0) })
    }

    fn on_event(&mut self, time: Micros, event: MatchEvent<'_>) {
        self.0.record_event(time, event);
    }
}

/// A game that reports each state to the live match, and continues at its pace.
#[derive(Debug)]
struct ObservedGame {
    game: Box<dyn MatchState>,
    live_match: Arc<LiveMatch>,
}

impl MatchState for ObservedGame {
    fn step(&mut self) -> Step {
        let step = self.game.step();
        self.live_match.show_step(self.game.view(), &step);
        step
    }

    fn receive_reply(
        &mut self,
        reply: Result<&str, Forfeit>,
        charged: Micros,
    ) -> Result<(), Illegal> {
        self.game.receive_reply(reply, charged)
    }

    fn view(&self) -> &dyn MatchView {
        self.game.view()
    }

    fn prepare(&mut self) {
        self.game.prepare();
    }

    fn launch_arguments(&self, seat: Seat) -> Vec<String> {
        self.game.launch_arguments(seat)
    }
}

/// A bot whose standard error appears in the live match.
struct ObservedBot {
    seat: Seat,
    driver: Box<dyn SeatDriver>,
    live_match: Arc<LiveMatch>,
}

impl SeatDriver for ObservedBot {
    fn ask(&mut self, text: &str, limit: Micros) -> Result<TimedReply, Fault> {
        let reply = self.driver.ask(text, limit)?;
        self.live_match.set_stderr(self.seat, self.driver.stderr());
        Ok(reply)
    }

    fn wait_until_stopped(&mut self) -> Result<(), Fault> {
        self.driver.wait_until_stopped()
    }

    fn notify(&mut self, text: &str) {
        self.driver.notify(text);
    }

    fn is_starting_up(&self) -> bool {
        self.driver.is_starting_up()
    }

    fn stderr(&self) -> &[u8] {
        self.driver.stderr()
    }

    fn dismiss(&mut self) {
        self.driver.dismiss();
    }

    fn close_input(&mut self) {
        self.driver.close_input();
    }

    fn wait_for_exit(&mut self, deadline: Instant) -> Result<(), Fault> {
        self.driver.wait_for_exit(deadline)
    }

    fn close(self: Box<Self>) -> Result<SeatUsage, Fault> {
        let usage = self.driver.close()?;
        self.live_match.set_stderr(self.seat, &usage.stderr);
        Ok(usage)
    }
}

/// A person, who replies on a page.
struct Person {
    live_match: Arc<LiveMatch>,
    has_replied: bool,
    is_gone: bool,
}

impl SeatDriver for Person {
    fn ask(&mut self, _text: &str, limit: Micros) -> Result<TimedReply, Fault> {
        let live_match = &self.live_match;
        self.has_replied = true;
        if self.is_gone || live_match.expected_reply() != ExpectedReply::Move {
            return Ok(TimedReply {
                reply: Ok(ACKNOWLEDGEMENT.to_vec()),
                spent: TimeSpent::default(),
            });
        }
        let clock = live_match.config.person_clock;
        let start = Instant::now();
        let reply = live_match.wait_for_reply(clock.map(|_| limit))?;
        let spent = clock.map_or(TimeSpent::default(), |kind| {
            let wall = Micros(i64::try_from(start.elapsed().as_micros()).unwrap_or(i64::MAX));
            // A person uses no processor time: a CPU clock charges the wall-clock time instead.
            TimeSpent { wall, cpu: if kind == ClockKind::Cpu { wall } else { Micros::ZERO } }
        });
        let reply = reply
            .map(String::into_bytes)
            .ok_or_else(|| SeatFailure { forfeit: Forfeit::Clock, detail: String::new() });
        Ok(TimedReply { reply, spent })
    }

    fn notify(&mut self, _text: &str) {}

    fn is_starting_up(&self) -> bool {
        self.live_match.config.startup_is_free && !self.has_replied
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
