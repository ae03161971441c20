//! Replays one seat of a recorded match with a real bot, and compares its replies with the record.
//!
//! The rules replay the record. So the bot gets exactly the recorded requests, allowances and banks
//! of the seat. Its new replies do not influence the match. Limits, clock and sandbox are the same
//! as in a match, but files from earlier matches are missing.

use std::io::BufRead;
use std::sync::Arc;
use std::time::Instant;

use arbiter_games::{Games, MatchState, Message, Micros, Seat, Step, TimeSpent};
use thiserror::Error;

use crate::bot::Bot;
use crate::fault::Fault;
use crate::match_runner::{BotState, Match};
use crate::referee::in_time;
use crate::sandbox::{Host, JailConfig};
use crate::seat::{GRACE, SeatDriver, SeatFailure, SeatUsage, StopSignal, TimedReply};
use arbiter_replay::{Difference, Header, ReplayEvent, ReplayObserver, replay_with};

/// Which bot replays which seat.
#[derive(Clone, Debug)]
pub struct SeatReplay {
    /// The seat.
    pub seat: Seat,
    /// The bot.
    pub bot: Arc<Bot>,
    /// Limits and processors of the bot.
    pub jail: JailConfig,
}

/// A recorded reply, and the bot's new reply to the same request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyComparison {
    /// Number of the seat's reply, from 1.
    pub number: usize,
    /// The request.
    pub request: String,
    /// The recorded reply.
    pub recorded: TimedReply,
    /// Why the recorded reply is illegal, if it is.
    pub recorded_illegal: Option<String>,
    /// The new reply.
    pub replayed: TimedReply,
    /// Why the new reply is illegal. Not checked after a reply that differs.
    pub replayed_illegal: Option<String>,
    /// The end of the bot's standard error, if it gave no reply.
    pub stderr: Vec<u8>,
}

/// What the new reply is, compared with the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyVerdict {
    /// The same reply.
    Same,
    /// Another reply.
    Differs,
    /// The recorded reply failed, and so did the new one: none came in time, or it is illegal.
    FailsAgain,
    /// The recorded reply failed, the new one did not.
    RepliesNow,
    /// The new reply failed, the recorded one did not.
    Fails,
}

impl ReplyVerdict {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Differs => "differs",
            Self::FailsAgain => "fails_again",
            Self::RepliesNow => "replies_now",
            Self::Fails => "fails",
        }
    }
}

impl ReplyComparison {
    /// Compares the two replies.
    pub fn verdict(&self) -> ReplyVerdict {
        let failed = |timed: &TimedReply, illegal: &Option<String>| {
            timed.reply.is_err() || illegal.is_some()
        };
        let recorded_failed = failed(&self.recorded, &self.recorded_illegal);
        match (recorded_failed, failed(&self.replayed, &self.replayed_illegal)) {
            (true, true) => ReplyVerdict::FailsAgain,
            (true, false) => ReplyVerdict::RepliesNow,
            (false, true) => ReplyVerdict::Fails,
            (false, false) if self.recorded.agrees(&self.replayed) => ReplyVerdict::Same,
            (false, false) => ReplyVerdict::Differs,
        }
    }
}

/// Why a replay failed.
#[derive(Debug, Error)]
pub enum SeatReplayError {
    /// The record does not follow the rules.
    #[error(transparent)]
    Record(#[from] Difference),
    /// The system failed.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The record has no such seat.
    #[error("the match has {0} seats")]
    NoSeat(usize),
}

impl SeatReplay {
    /// Replays the seat of `record`, calls `on_reply` for each reply and returns the bot's usage.
    /// After a failed reply the bot gets no more requests.
    pub fn run(
        &self,
        games: &Games,
        record: impl BufRead,
        host: &Host,
        stop: &Arc<StopSignal>,
        on_reply: impl FnMut(ReplyComparison),
    ) -> Result<SeatUsage, SeatReplayError> {
        let mut replay = Replay {
            config: self,
            host,
            stop,
            on_reply,
            state: BotPhase::NotStarted,
            replies: 0,
            before: None,
            pending: None,
            has_differed: false,
        };
        let replay_result = replay_with(games, record, &mut replay);
        replay.finish_reply();
        let close_result = match replay.state {
            BotPhase::NotStarted => Ok(SeatUsage::default()),
            BotPhase::Playing { mut driver, .. } => {
                driver.close_input();
                let wait_result = driver.wait_for_exit(Instant::now() + GRACE);
                let close_result = driver.close();
                wait_result.and(close_result)
            }
            BotPhase::Dismissed(driver) => driver.close(),
            BotPhase::Failed(fault) => Err(fault),
        };
        let verified = replay_result?;
        let seats = verified.header.seats.len();
        if self.seat.index() >= seats {
            return Err(SeatReplayError::NoSeat(seats));
        }
        Ok(close_result?)
    }
}

/// State of the bot.
enum BotPhase {
    NotStarted,
    Playing {
        driver: Box<dyn SeatDriver>,
        match_config: Box<Match>,
    },
    /// The bot forfeited or was dismissed.
    Dismissed(Box<dyn SeatDriver>),
    /// A fault ended the replay.
    Failed(Fault),
}

struct Replay<'a, F> {
    config: &'a SeatReplay,
    host: &'a Host,
    stop: &'a Arc<StopSignal>,
    on_reply: F,
    state: BotPhase,
    replies: usize,
    /// A copy of the match before the recorded reply.
    before: Option<Box<dyn MatchState>>,
    /// The last comparison, until it is known whether the recorded reply is illegal.
    pending: Option<PendingReply>,
    /// Whether a reply differed from the record.
    has_differed: bool,
}

/// A comparison that is not complete.
struct PendingReply {
    comparison: ReplyComparison,
    before: Option<Box<dyn MatchState>>,
}

impl<F: FnMut(ReplyComparison)> ReplayObserver for Replay<'_, F> {
    fn begin(&mut self, header: &Header, game: &dyn MatchState) {
        let SeatReplay { seat, bot, jail } = self.config;
        if seat.index() >= header.seats.len() {
            return;
        }
        let Header { params, seed, clock, .. } = header.clone();
        let entrants = Vec::new();
        let jail = jail.clone();
        let match_config = Box::new(Match { params, seed, clock, jail, entrants, record: None });
        let arguments = game.launch_arguments(*seat);
        let state = &BotState::Fresh;
        let config = &match_config.jail;
        let result = match_config.start_driver(bot, state, config, arguments, self.host, self.stop);
        self.state = match result {
            Ok(driver) => BotPhase::Playing { driver, match_config },
            Err(fault) => BotPhase::Failed(fault),
        };
    }

    fn on_event(&mut self, _: Micros, event: ReplayEvent<'_>, game: &dyn MatchState) {
        match event {
            ReplayEvent::Advanced => {
                self.before = Some(game.view().fork());
                return;
            }
            ReplayEvent::Illegal { seat, why } => {
                let pending = self.pending.as_mut().filter(|_| seat == self.config.seat);
                if let Some(pending) = pending {
                    pending.comparison.recorded_illegal = Some(why.to_owned());
                }
                return;
            }
            _ => self.finish_reply(),
        }
        match event {
            ReplayEvent::Notified(message) if message.seat == self.config.seat => {
                if let BotPhase::Playing { driver, .. } = &mut self.state {
                    driver.notify(&message.text);
                }
            }
            ReplayEvent::Replied { message, reply, spent, illegal, .. } => {
                self.ask(message, Ok(reply.to_owned()), spent, illegal);
            }
            ReplayEvent::Forfeited { message, forfeit, spent, detail, .. } => {
                let failure = SeatFailure { forfeit, detail: detail.to_owned() };
                self.ask(message, Err(failure), spent, None);
            }
            ReplayEvent::Dismissed(seat) if seat == self.config.seat => self.dismiss(),
            _ => {}
        }
    }
}

impl<F: FnMut(ReplyComparison)> Replay<'_, F> {
    /// Sends the bot a recorded request, whose recorded reply may be illegal.
    fn ask(
        &mut self,
        message: &Message,
        reply: Result<Vec<u8>, SeatFailure>,
        spent: TimeSpent,
        illegal: Option<&str>,
    ) {
        if message.seat != self.config.seat {
            return;
        }
        let BotPhase::Playing { driver, match_config } = &mut self.state else { return };
        self.replies += 1;
        let replayed = match timed_reply(driver.as_mut(), match_config, message) {
            Ok(replayed) => replayed,
            Err(fault) => {
                self.fail(fault);
                return;
            }
        };
        let has_failed = replayed.reply.is_err();
        let stderr = if has_failed { driver.stderr().to_vec() } else { Vec::new() };
        let comparison = ReplyComparison {
            number: self.replies,
            request: message.text.clone(),
            recorded: TimedReply { reply, spent },
            recorded_illegal: illegal.map(str::to_owned),
            replayed,
            replayed_illegal: None,
            stderr,
        };
        self.pending = Some(PendingReply { comparison, before: self.before.take() });
        if has_failed {
            self.dismiss();
        }
    }

    /// Completes the last comparison and passes it on.
    fn finish_reply(&mut self) {
        let Some(PendingReply { mut comparison, before }) = self.pending.take() else { return };
        if let Ok(reply) = &comparison.replayed.reply {
            let is_same = comparison.recorded.reply.as_ref() == Ok(reply);
            comparison.replayed_illegal = match before {
                _ if is_same => comparison.recorded_illegal.clone(),
                // After a difference, the bot may not know the match any more.
                Some(game) if !self.has_differed => why_illegal(game, self.config.seat, reply),
                _ => None,
            };
        }
        self.has_differed |= comparison.verdict() != ReplyVerdict::Same;
        (self.on_reply)(comparison);
    }
}

/// Why a reply of this seat is illegal in this state of a match, if it is.
fn why_illegal(mut game: Box<dyn MatchState>, seat: Seat, reply: &[u8]) -> Option<String> {
    let reply = String::from_utf8_lossy(reply);
    if let Err(illegal) = game.receive_reply(Ok(&reply), Micros::ZERO) {
        return Some(illegal.to_string());
    }
    loop {
        match game.step() {
            Step::Illegal(illegal_seat, why) if illegal_seat == seat => {
                return Some(why.to_string());
            }
            Step::Illegal(..) | Step::Note(_) | Step::Dismiss(_) => {}
            Step::Send(_) | Step::Fault(_) | Step::Over(_) => return None,
        }
    }
}

impl<F> Replay<'_, F> {
    /// Kills the bot.
    fn dismiss(&mut self) {
        self.state = match std::mem::replace(&mut self.state, BotPhase::NotStarted) {
            BotPhase::Playing { mut driver, .. } => {
                driver.dismiss();
                BotPhase::Dismissed(driver)
            }
            state => state,
        };
    }

    /// Ends the replay after a fault.
    fn fail(&mut self, fault: Fault) {
        let state = std::mem::replace(&mut self.state, BotPhase::NotStarted);
        if let BotPhase::Playing { driver, .. } | BotPhase::Dismissed(driver) = state {
            // Only the first fault is reported.
            drop(driver.close());
        }
        self.state = BotPhase::Failed(fault);
    }
}

/// Asks the bot and applies the clock as in a match.
fn timed_reply(
    driver: &mut dyn SeatDriver,
    match_config: &Match,
    message: &Message,
) -> Result<TimedReply, Fault> {
    let is_first = driver.is_starting_up();
    let limit = match_config.clock.wall_limit(message.allowance, is_first);
    let TimedReply { reply, spent } = driver.ask(&message.text, limit)?;
    let late = match_config.clock.charge(spent, message.allowance, is_first).late;
    Ok(TimedReply { reply: in_time(reply, late), spent })
}
