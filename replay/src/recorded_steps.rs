//! Divides a replay into steps without the rules: with the pictures of the record.
//!
//! The rules of a game package do not run where pages are made, because they are not trusted. The
//! worker has recorded what they drew. The seal of the record shows that it was not edited since;
//! whether it follows the rules is for [`verify()`](crate::verify()), which runs them.
//!
//! A step is a reply, a forfeit, or another picture. A picture that follows a reply belongs to its
//! step.

use arbiter_games::picture::Picture;
use arbiter_games::{Frame, Micros, Note, Seat, SeatResult, TimeSpent};

use crate::line_blocks::ReadLines;
use crate::lines::{Difference, Lines, check_version};
use crate::record_line::{Footer, Line, PackageHeader};
use crate::steps_builder::{Action, Overview, StepForfeit, StepsBuilder};

/// Divides the record of this header, which is the next line of `lines`, into steps.
///
/// # Errors
/// The first line that is not a line of a record.
pub(crate) fn read(
    header: &PackageHeader,
    mut lines: Lines<impl ReadLines>,
    mut builder: StepsBuilder<'_>,
) -> Result<Overview, Difference> {
    check_version(header.record, &lines)?;
    lines.next_text()?;
    builder.prepare(&header.seats, header.clock.kind, &header.columns);
    let seats = header.seats.len();
    let mut steps =
        RecordedSteps { builder, due: None, frame: None, spent: None, time: Micros::ZERO };
    loop {
        if let Some(line) = lines.peek_line()? {
            if line.seat().is_some_and(|seat| !Seat::all(seats).any(|other| other == seat)) {
                return Err(lines.difference("a seat that the match does not have"));
            }
            steps.read(line);
            lines.next_text()?;
            continue;
        }
        let seal = lines.seal();
        let text = lines.next_text()?.to_owned();
        let footer: Footer = serde_json::from_str(&text)
            .map_err(|_| lines.difference(format!("not a valid line: {text}")))?;
        if footer.seal != seal.to_string() {
            return Err(lines.difference("the record was edited: its seal is another one"));
        }
        lines.end()?;
        if footer.scores.len() != seats || footer.forfeits.len() != seats {
            return Err(lines.difference("the last line has another number of seats"));
        }
        return Ok(steps.finish(footer));
    }
}

/// The steps so far.
struct RecordedSteps<'a> {
    builder: StepsBuilder<'a>,
    /// The step that is not complete yet: its picture may follow.
    due: Option<Action>,
    /// The last picture for all people.
    frame: Option<Frame>,
    /// The time of the last reply.
    spent: Option<TimeSpent>,
    time: Micros,
}

impl RecordedSteps<'_> {
    fn read(&mut self, line: Line<'_>) {
        match line {
            Line::Replied { time, seat, reply, spent } => {
                self.complete();
                self.time = time;
                self.builder.spend(seat, spent);
                self.spent = Some(spent);
                let reply = Some(String::from_utf8_lossy(&reply).into_owned());
                self.due = Some(Action { seat: Some(seat), reply, ..Action::default() });
            }
            Line::Forfeited { time, seat, forfeit, spent, detail } => {
                let detail = match spent {
                    Some(_) => self.builder.shown_detail(seat, &detail).to_owned(),
                    None => detail,
                };
                let judged = |spent| {
                    let kind = forfeit;
                    Some(StepForfeit { kind, detail, spent, allowance: None })
                };
                match &mut self.due {
                    // The reply before is the evidence.
                    Some(action) if action.seat == Some(seat) && spent.is_none() => {
                        action.forfeit = judged(self.spent);
                    }
                    _ => {
                        self.complete();
                        let forfeit = judged(spent);
                        self.due = Some(Action { seat: Some(seat), forfeit, ..Action::default() });
                    }
                }
                self.time = time;
                if let Some(spent) = spent {
                    self.builder.spend(seat, spent);
                }
            }
            Line::Noted { time, note: Note::Frame { frame, viewer: None } } => {
                self.time = time;
                self.frame = Some(frame);
                self.due.get_or_insert_default();
                self.complete();
            }
            Line::Sent { .. } | Line::Noted { .. } => {}
            Line::Stderr { seat, text, dropped } => self.builder.keep_stderr(seat, &text, dropped),
        }
    }

    /// Adds the step that is due.
    fn complete(&mut self) {
        if let Some(action) = self.due.take() {
            let frame = self.frame.as_ref();
            self.builder.add(self.time, action, None, |names| Picture::of_frame(frame, names));
        }
    }

    fn finish(mut self, footer: Footer) -> Overview {
        self.complete();
        let results = footer.scores.into_iter().zip(footer.forfeits);
        let standings = results.map(|(score, forfeit)| SeatResult::new(score.0, forfeit)).collect();
        self.due = Some(Action { standings: Some(standings), ..Action::default() });
        self.complete();
        self.builder.finish()
    }
}
