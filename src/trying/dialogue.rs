//! A bot without a match: lines of the protocol go in, and what a referee would have heard comes
//! out, with the time it took, and what the bot wrote to its standard error.

use std::sync::Arc;
use std::time::Instant;

use arbiter_games::{BotNameError, MatchState, Micros, Seat, Seed, TimeSpent};
use arbiter_worker::bot::Bot;
use arbiter_worker::fault::Fault;
use arbiter_worker::match_runner::{BotState, Match};
use arbiter_worker::sandbox::JailConfig;
use arbiter_worker::seat::{GRACE, SeatDriver, SeatFailure, SeatUsage, StopSignal, TimedReply};

use super::House;
use crate::play::entries::distinct;

/// The seed of the numbers that a bot is started with, where its game gives it any.
const SEED: &str = "console";

/// The name of the opponent that a bot is told of, where its game tells one.
const OPPONENT: &str = "opponent";

/// A bot that is talked to.
pub(crate) struct Dialogue {
    /// A match of the game at its beginning, which knows the protocol.
    game: Box<dyn MatchState>,
    limit: Micros,
    seat: Box<dyn SeatDriver>,
    /// What was seen of its standard error.
    seen: Vec<u8>,
}

impl std::fmt::Debug for Dialogue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialogue").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// What a bot made of a line.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    /// What it was told: one protocol unit.
    pub(crate) told: String,
    /// Its answer, or how a referee would have taken it; none where none is due.
    pub(crate) reply: Option<Result<String, SeatFailure>>,
    /// What the answer took.
    pub(crate) spent: TimeSpent,
    /// What it wrote to its standard error meanwhile, as far as that was there with the answer.
    pub(crate) stderr: String,
    /// How it ended, if it did.
    pub(crate) exit: Option<String>,
}

impl Dialogue {
    /// Starts a bot, or gets ready to execute it.
    pub(crate) fn open(house: &House, bot: &Bot, stop: &Arc<StopSignal>) -> Result<Self, Fault> {
        let failed = |error: String| Fault::new("cannot begin a dialogue", error);
        let params = house.params(house.most_seats, true);
        let params = params.map_err(|failure| failed(failure.message().to_owned()))?;
        let mut names = vec![bot.name.clone()];
        while names.len() < *params.seats().end() {
            let name = OPPONENT.parse().map_err(|error: BotNameError| failed(error.to_string()))?;
            let name = distinct(&name, |name| names.contains(name));
            names.push(name.map_err(|error| failed(error.to_string()))?);
        }
        let (seed, clock) = (Seed::of_text(SEED), house.wish.clock);
        let game = params.start(&names, seed).map_err(|error| failed(error.to_string()))?;
        let arguments = game.launch_arguments(Seat::from_index(0));
        let jail = JailConfig::default();
        let planned = Match { params, seed, clock, jail, entrants: Vec::new(), record: None };
        let seat = planned.start_driver(
            bot,
            &BotState::Fresh,
            &planned.jail,
            arguments,
            &house.host,
            stop,
        )?;
        Ok(Self { game, limit: house.wish.limit, seat, seen: Vec::new() })
    }

    /// Tells the bot a protocol unit, and waits for its answer if one is due.
    ///
    /// # Errors
    /// A fault if something of ours failed, or it was given up.
    pub(crate) fn say(&mut self, told: &str) -> Result<Exchange, Fault> {
        let (reply, spent) = if self.game.view().is_farewell(told) {
            self.seat.notify(told);
            self.seat.close_input();
            self.seat.wait_for_exit(Instant::now() + GRACE)?;
            (None, TimeSpent::default())
        } else {
            let TimedReply { reply, spent } = self.seat.ask(told, self.limit)?;
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            (Some(reply.map(text)), spent)
        };
        let stderr = self.stderr();
        let exit = self.seat.exit().map(|exit| exit.to_string());
        Ok(Exchange { told: told.to_owned(), reply, spent, stderr, exit })
    }

    /// What came to standard error since it was looked at last.
    fn stderr(&mut self) -> String {
        let now = self.seat.stderr();
        let new = now.strip_prefix(self.seen.as_slice()).unwrap_or(now);
        let new = String::from_utf8_lossy(new).into_owned();
        self.seen = now.to_vec();
        new
    }

    /// Ends the bot, and tells what it left.
    pub(crate) fn close(mut self) -> Result<Farewell, Fault> {
        self.seat.close_input();
        let parted = self.seat.wait_for_exit(Instant::now() + GRACE);
        let exit = self.seat.exit().map(|exit| exit.to_string());
        let seen = std::mem::take(&mut self.seen);
        let closed = self.seat.close();
        parted?;
        let remains = closed?;
        let new = remains.stderr.strip_prefix(seen.as_slice()).unwrap_or(&remains.stderr);
        let stderr = String::from_utf8_lossy(new).into_owned();
        Ok(Farewell { exit, stderr, remains })
    }

    /// Ends the bot at once.
    pub(crate) fn kill(mut self) -> Result<(), Fault> {
        self.seat.dismiss();
        self.seat.close().map(drop)
    }
}

/// How a bot ended.
#[derive(Debug)]
pub(crate) struct Farewell {
    /// How its program ended, if it had one and that ended by itself.
    pub(crate) exit: Option<String>,
    /// What it wrote to its standard error since the last answer.
    pub(crate) stderr: String,
    /// What it left.
    pub(crate) remains: SeatUsage,
}

/// The protocol unit that is typed as one line: `\n` stands for the end of a line within it.
pub(crate) fn unit(line: &str) -> String {
    line.trim_end_matches(['\r', '\n']).replace("\\n", "\n")
}
