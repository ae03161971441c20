//! A bot without a match: sends protocol lines and returns the replies as a referee receives them,
//! with their times and the bot's standard error.

use std::sync::Arc;
use std::time::Instant;

use arbiter_games::{BotNameError, MatchState, Micros, Seat, Seed, TimeSpent};
use arbiter_worker::bot::Bot;
use arbiter_worker::fault::Fault;
use arbiter_worker::match_runner::{BotState, Match};
use arbiter_worker::sandbox::JailConfig;
use arbiter_worker::seat::{GRACE, SeatDriver, SeatFailure, SeatUsage, StopSignal, TimedReply};

use super::Session;
use crate::play::bots::distinct;

/// The seed of the match that supplies the bot's launch arguments.
const SEED: &str = "console";

/// The name of the opponents.
const OPPONENT: &str = "opponent";

/// A running bot without a match.
pub(crate) struct BotSession {
    /// A match at its start, which recognises farewell messages.
    game: Box<dyn MatchState>,
    limit: Micros,
    seat: Box<dyn SeatDriver>,
    /// The standard error that was already returned.
    seen_stderr: Vec<u8>,
}

impl std::fmt::Debug for BotSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BotSession").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// A line and the bot's reply.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    /// The sent protocol unit.
    pub(crate) sent: String,
    /// The reply, or the forfeit in its place; none if no reply is expected.
    pub(crate) reply: Option<Result<String, SeatFailure>>,
    /// The time of the reply.
    pub(crate) spent: TimeSpent,
    /// The standard error that arrived until the reply.
    pub(crate) stderr: String,
    /// How the bot exited, if it did.
    pub(crate) exit: Option<String>,
}

impl BotSession {
    /// Starts a bot. A bot of the exec protocol starts later, with each line.
    pub(crate) fn open(
        session: &Session,
        bot: &Bot,
        stop: &Arc<StopSignal>,
    ) -> Result<Self, Fault> {
        let start_fault = |error: String| Fault::new("cannot begin a dialogue", error);
        let params = session
            .params(session.most_seats, true)
            .map_err(|failure| start_fault(failure.message().to_owned()))?;
        let mut names = vec![bot.name.clone()];
        while names.len() < *params.seats().end() {
            let name =
                OPPONENT.parse().map_err(|error: BotNameError| start_fault(error.to_string()))?;
            let name = distinct(&name, |name| names.contains(name));
            names.push(name.map_err(|error| start_fault(error.to_string()))?);
        }
        let seed = Seed::of_text(SEED);
        let clock = session.options.clock;
        let mut game =
            params.start(&names, seed).map_err(|error| start_fault(error.to_string()))?;
        game.prepare();
        let arguments = game.launch_arguments(Seat::from_index(0));
        let jail = JailConfig::default();
        let planned_match = Match { params, seed, clock, jail, entrants: Vec::new(), record: None };
        let seat = planned_match.start_driver(
            bot,
            &BotState::Fresh,
            &planned_match.jail,
            arguments,
            &session.host,
            stop,
        )?;
        Ok(Self { game, limit: session.options.limit, seat, seen_stderr: Vec::new() })
    }

    /// Sends the bot a protocol unit and waits for the reply if one is due.
    ///
    /// # Errors
    /// A fault if the infrastructure failed or the session was stopped.
    pub(crate) fn send(&mut self, unit: &str) -> Result<Exchange, Fault> {
        let (reply, spent) = if self.game.view().is_farewell(unit) {
            self.seat.notify(unit);
            self.seat.close_input();
            self.seat.wait_for_exit(Instant::now() + GRACE)?;
            (None, TimeSpent::default())
        } else {
            let TimedReply { reply, spent } = self.seat.ask(unit, self.limit)?;
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            (Some(reply.map(text)), spent)
        };
        let stderr = self.stderr();
        let exit = self.seat.exit().map(|exit| exit.to_string());
        Ok(Exchange { sent: unit.to_owned(), reply, spent, stderr, exit })
    }

    /// The new standard error since the last call.
    fn stderr(&mut self) -> String {
        let current = self.seat.stderr();
        let new = current.strip_prefix(self.seen_stderr.as_slice()).unwrap_or(current);
        let new = String::from_utf8_lossy(new).into_owned();
        self.seen_stderr = current.to_vec();
        new
    }

    /// Ends the bot and returns its last output.
    pub(crate) fn close(mut self) -> Result<Farewell, Fault> {
        self.seat.close_input();
        let exit_result = self.seat.wait_for_exit(Instant::now() + GRACE);
        let exit = self.seat.exit().map(|exit| exit.to_string());
        let seen_stderr = std::mem::take(&mut self.seen_stderr);
        let close_result = self.seat.close();
        exit_result?;
        let usage = close_result?;
        let new = usage.stderr.strip_prefix(seen_stderr.as_slice()).unwrap_or(&usage.stderr);
        let stderr = String::from_utf8_lossy(new).into_owned();
        Ok(Farewell { exit, stderr, usage })
    }

    /// Kills the bot.
    pub(crate) fn kill(mut self) -> Result<(), Fault> {
        self.seat.dismiss();
        self.seat.close().map(drop)
    }
}

/// How a bot ended.
#[derive(Debug)]
pub(crate) struct Farewell {
    /// How its program exited, if it had one and it exited without a kill.
    pub(crate) exit: Option<String>,
    /// Its standard error since the last reply.
    pub(crate) stderr: String,
    /// The resources that it used.
    pub(crate) usage: SeatUsage,
}

/// Converts a typed line to a protocol unit: `\n` stands for a line end within it.
pub(crate) fn unit(line: &str) -> String {
    line.trim_end_matches(['\r', '\n']).replace("\\n", "\n")
}
