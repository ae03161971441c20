//! Divides a replay into steps for people: the move, the position after it, and the clocks.
//!
//! A step is a decision, a forfeit, or another change of the picture, such as a deal of cards. Only
//! requested steps are drawn, so a page of a match with ten thousand steps is cheap.

use std::ops::Range;

use arbiter_games::{
    Allowance, EntrantName, ExpectedReply, Forfeit, Games, MatchState, Message, Micros,
    Step as MatchStep, TimeSpent,
};

use crate::line_blocks::ReadLines;
use crate::lines::{Difference, Lines, read_header};
use crate::reader::Reader;
use crate::record_line::{Header, PackageHeader};
use crate::recorded_steps;
use crate::steps_builder::{Action, Overview, Step, StepForfeit, Steps, StepsBuilder};
use crate::verify::{ReplayEvent, ReplayObserver, replay_lines};

/// Replays a record for a reader and draws the steps whose numbers are in `requested`. Rules of a
/// game package do not run here: its steps have the pictures of the record, and `games` need not
/// have it.
///
/// # Errors
/// The first difference between the record and the rules, for [`Reader::redact`].
pub fn steps(
    games: &Games,
    record: impl ReadLines,
    requested: Range<usize>,
    reader: Reader<'_>,
) -> Result<Steps, Difference> {
    let mut drawn = Vec::new();
    let overview = visit_steps(games, record, (requested, reader), |_, step| drawn.push(step))?;
    Ok(Steps { overview, drawn })
}

/// Like [`steps`], but passes each requested step to `visit`, with the names of the bots, as soon
/// as it is drawn. So a long match needs little memory.
///
/// # Errors
/// The first difference between the record and the rules, for [`Reader::redact`]. The steps before
/// it were visited.
pub(crate) fn visit_steps(
    games: &Games,
    record: impl ReadLines,
    (requested, reader): (Range<usize>, Reader<'_>),
    mut visit: impl FnMut(&[EntrantName], Step),
) -> Result<Overview, Difference> {
    let mut lines = Lines::new(record);
    let mut builder = StepsBuilder::new(requested, reader, &mut visit);
    if let Some(header) = PackageHeader::parse(games, lines.peek()?) {
        return recorded_steps::read(&header, lines, builder);
    }
    let header = read_header(games, &mut lines)?;
    replay_lines(header, lines, &mut builder)?;
    Ok(builder.finish())
}

impl StepsBuilder<'_> {
    /// Adds a step with the picture of the rules.
    fn add_state(&mut self, time: Micros, action: Action, game: &dyn MatchState) {
        let view = game.view();
        self.last_key = Some(view.picture_key());
        self.add(time, action, view.chapter(), |names| view.picture(names, None));
    }

    /// Updates the clock of a seat that has replied.
    fn charge(&mut self, message: &Message, spent: TimeSpent, cost: Micros) {
        self.spend(message.seat, spent);
        let clock = &mut self.clocks[message.seat.index()];
        match message.allowance {
            Allowance::Bank(left) => {
                clock.left = Some((left - cost).max(Micros::ZERO));
                clock.limit = clock.limit.max(Some(left));
            }
            Allowance::Move(limit) => clock.limit = Some(limit),
        }
    }
}

impl ReplayObserver for StepsBuilder<'_> {
    fn begin(&mut self, header: &Header, game: &dyn MatchState) {
        self.prepare(&header.seats, header.clock.kind, &header.game.columns);
        let bank = full_bank(game);
        for clock in &mut self.clocks {
            clock.left = bank;
            clock.limit = bank;
        }
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
                    forfeit: illegal
                        .map(|detail| forfeit_of(message, Forfeit::Illegal, spent, detail)),
                    standings: None,
                }
            }
            ReplayEvent::Forfeited { message, forfeit, spent, cost, detail } => {
                self.charge(message, spent, cost);
                let detail = self.shown_detail(message.seat, detail);
                let forfeit = Some(forfeit_of(message, forfeit, spent, detail));
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

/// The time bank of each seat when the match begins; `None` in games without one. The first message
/// of a match, which a copy of it gives, tells the bank. All seats begin with the same.
fn full_bank(game: &dyn MatchState) -> Option<Micros> {
    match game.view().fork().step() {
        MatchStep::Send(Message { allowance: Allowance::Bank(left), .. }) => Some(left),
        _ => None,
    }
}

/// A forfeit with its evidence.
fn forfeit_of(message: &Message, kind: Forfeit, spent: TimeSpent, detail: &str) -> StepForfeit {
    let allowance = Some(message.allowance);
    StepForfeit { kind, detail: detail.to_owned(), spent: Some(spent), allowance }
}
