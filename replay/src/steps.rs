//! Divides a replay into steps for people: the move, the position after it, and the clocks.
//!
//! A step is a decision, a forfeit, or another change of the picture, such as a deal of cards. Only
//! requested steps are drawn, so a page of a match with ten thousand steps is cheap.

use std::io::BufRead;
use std::ops::Range;

use arbiter_games::{Allowance, ExpectedReply, Games, MatchState, Message, Micros, TimeSpent};

use crate::lines::{Difference, Lines, read_header};
use crate::record_line::Header;
use crate::recorded_steps;
use crate::steps_builder::{Action, Steps, StepsBuilder};
use crate::verify::{ReplayEvent, ReplayObserver, replay_lines};

/// Replays a record and draws the steps whose numbers are in `requested`. Rules of a game package
/// do not run here: its steps have the pictures of the record.
///
/// # Errors
/// The first difference between the record and the rules.
pub fn steps(
    games: &Games,
    record: impl BufRead,
    requested: Range<usize>,
) -> Result<Steps, Difference> {
    let mut lines = Lines::new(record);
    let header = read_header(games, &mut lines)?;
    let mut builder = StepsBuilder::new(requested);
    if header.game.package.is_some() {
        return recorded_steps::read(&header, lines, builder);
    }
    replay_lines(header, lines, &mut builder)?;
    Ok(builder.finish())
}

impl StepsBuilder {
    /// Adds a step with the picture of the rules.
    fn add_state(&mut self, time: Micros, action: Action, game: &dyn MatchState) {
        let view = game.view();
        self.last_key = Some(view.picture_key());
        self.add(time, action, view.chapter(), |names| view.picture(names, None));
    }

    /// Updates the clock of a seat that has replied.
    fn charge(&mut self, message: &Message, spent: TimeSpent, cost: Micros) {
        self.spend(message.seat, spent);
        if let Allowance::Bank(left) = message.allowance {
            self.clocks[message.seat.index()].left = Some((left - cost).max(Micros::ZERO));
        }
    }
}

impl ReplayObserver for StepsBuilder {
    fn begin(&mut self, header: &Header, game: &dyn MatchState) {
        self.prepare(header);
        self.add_state(Micros::ZERO, Action::default(), game);
    }

    fn on_event(&mut self, time: Micros, event: ReplayEvent<'_>, game: &dyn MatchState) {
        let action = match event {
            ReplayEvent::Notified(_) | ReplayEvent::Dismissed(_) | ReplayEvent::Illegal { .. } => {
                return;
            }
            ReplayEvent::Advanced if self.last_key == Some(game.view().picture_key()) => return,
            ReplayEvent::Advanced => Action::default(),
            ReplayEvent::Replied { message, reply, spent, cost, illegal } => {
                self.charge(message, spent, cost);
                if message.expected_reply != ExpectedReply::Move && illegal.is_none() {
                    return;
                }
                Action {
                    seat: Some(message.seat),
                    reply: Some(String::from_utf8_lossy(reply).into_owned()),
                    forfeit: illegal.map(|detail| format!("illegal: {detail}")),
                    standings: None,
                }
            }
            ReplayEvent::Forfeited { message, forfeit, spent, cost, detail } => {
                self.charge(message, spent, cost);
                let forfeit = Some(format!("{forfeit}: {detail}"));
                Action { seat: Some(message.seat), forfeit, ..Action::default() }
            }
            ReplayEvent::Over(standings) => {
                Action { standings: Some(standings.to_vec()), ..Action::default() }
            }
            ReplayEvent::Stderr { seat, text, dropped } => {
                self.keep_stderr(seat, text, dropped);
                return;
            }
        };
        self.add_state(time, action, game);
    }
}
