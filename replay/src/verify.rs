//! Replays a record through the rules.
//!
//! The rules produce their messages again and get the replies of the record. They must reach the
//! same scores. Every line is checked: messages, the charge for each reply, each forfeit by the
//! rules or by the clock, notes, and both hashes.

use std::io::Read;

use crate::line_blocks::{LineBlocks, ReadLines};
use crate::lines::{Difference, Lines, read_header};
use crate::record_line::{Footer, Header, Line};
use crate::transcript::{Transcript, TranscriptHash};
use arbiter_games::{
    Charge, ClockRules, ExpectedReply, Forfeit, Games, Illegal, MatchState, Message, Micros, Note,
    Protocol, Score, Seat, SeatResult, Step, TimeSpent,
};
use arbiter_proto::tricks_http::HTTP_ONLY_FOR_TRICKS;

/// A verified record.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The first line of the record.
    pub header: Header,
    /// The recomputed results, seat 1 first.
    pub standings: Vec<SeatResult>,
    /// The recomputed hash of the dialogue.
    pub transcript: TranscriptHash,
    /// The number of lines.
    pub lines: usize,
}

/// An event of a replayed match. It borrows its data, so ignored events are cheap.
#[derive(Clone, Copy, Debug)]
pub enum ReplayEvent<'a> {
    /// The state may have changed without a reply.
    Advanced,
    /// A message to a seat that expects no reply.
    Notified(&'a Message),
    /// A seat gets no more messages.
    Dismissed(Seat),
    /// A seat replied in time, and the rules have received the reply.
    Replied {
        /// The message.
        message: &'a Message,
        /// The reply without its framing.
        reply: &'a [u8],
        /// The time of the reply.
        spent: TimeSpent,
        /// The charged time.
        cost: Micros,
        /// Why the reply is illegal, if it is.
        illegal: Option<&'a str>,
    },
    /// A seat forfeited instead of replying, and the rules have received the forfeit.
    Forfeited {
        /// The message.
        message: &'a Message,
        /// Why it forfeited.
        forfeit: Forfeit,
        /// The time of the reply.
        spent: TimeSpent,
        /// The charged time.
        cost: Micros,
        /// Details for the bot's author.
        detail: &'a str,
    },
    /// An earlier reply of a seat is illegal, which [`ReplayEvent::Replied`] did not tell.
    Illegal {
        /// The seat.
        seat: Seat,
        /// Why the reply is illegal.
        why: &'a str,
    },
    /// The match is over: the results, seat 1 first.
    Over(&'a [SeatResult]),
    /// The end of a bot's standard error, after the match.
    Stderr {
        /// The bot's seat.
        seat: Seat,
        /// The last bytes, as text.
        text: &'a str,
        /// The number of earlier bytes, which the record does not have.
        dropped: usize,
    },
}

/// Observes a match while it is replayed.
pub trait ReplayObserver {
    /// The match begins.
    fn begin(&mut self, header: &Header, game: &dyn MatchState);

    /// An event happened, at this time since the match began.
    fn on_event(&mut self, time: Micros, event: ReplayEvent<'_>, game: &dyn MatchState);
}

/// Ignores all events.
impl ReplayObserver for () {
    fn begin(&mut self, _: &Header, _: &dyn MatchState) {}
    fn on_event(&mut self, _: Micros, _: ReplayEvent<'_>, _: &dyn MatchState) {}
}

/// Replays a record of a match of one of these games and returns its result.
pub fn verify(games: &Games, record: impl Read) -> Result<Verified, Difference> {
    replay_with(games, record, &mut ())
}

/// Replays a record of a match of one of these games, sends its events to `observer`, and returns
/// its result.
///
/// # Errors
/// The first difference. The events before it are correct.
pub fn replay_with(
    games: &Games,
    record: impl Read,
    observer: &mut impl ReplayObserver,
) -> Result<Verified, Difference> {
    let mut lines = Lines::new(LineBlocks::new(record));
    let header = read_header(games, &mut lines)?;
    replay_lines(header, lines, observer)
}

/// Replays the match of this header, whose other lines are `lines`.
pub(crate) fn replay_lines<R: ReadLines>(
    header: Header,
    lines: Lines<R>,
    observer: &mut impl ReplayObserver,
) -> Result<Verified, Difference> {
    if !header.seats.iter().all(|seat| header.game.supports(seat.protocol)) {
        return Err(lines.difference(HTTP_ONLY_FOR_TRICKS));
    }
    let turns: Vec<_> = header.seats.iter().map(|seat| seat.protocol.turn_policy()).collect();
    let mut game = header
        .params
        .start_by(&header.rules, &header.names(), &turns, header.seed)
        .map_err(|error| lines.difference(error.to_string()))?;
    let starting_up = header.seats.iter().map(|seat| seat.protocol != Protocol::Exec).collect();
    game.prepare();
    observer.begin(&header, game.as_ref());
    let mut replay = Replay {
        lines,
        observer,
        game,
        clock: header.clock,
        starting_up,
        time: Micros::ZERO,
        transcript: Transcript::default(),
        reply: Vec::new(),
        legacy_farewell: None,
    };
    let standings = replay.play()?;
    let transcript = replay.transcript.hash();
    let lines = replay.finish(&standings, transcript)?;
    Ok(Verified { header, standings, transcript, lines })
}

/// A match during its replay.
struct Replay<'a, R, F> {
    lines: Lines<R>,
    observer: &'a mut F,
    game: Box<dyn MatchState>,
    clock: ClockRules,
    /// Whether the next reply of each seat is its first one, whose start-up time is not charged.
    starting_up: Vec<bool>,
    time: Micros,
    transcript: Transcript,
    /// The memory of the last reply, for the next one.
    reply: Vec<u8>,
    /// A seat whose program is gone, and its last message in records of earlier versions.
    legacy_farewell: Option<(Seat, String)>,
}

impl<R: ReadLines, F: ReplayObserver> Replay<'_, R, F> {
    /// Sends an event to the observer.
    fn emit(&mut self, event: ReplayEvent<'_>) {
        self.observer.on_event(self.time, event, self.game.as_ref());
    }

    fn play(&mut self) -> Result<Vec<SeatResult>, Difference> {
        loop {
            let step = self.game.step();
            let event = match &step {
                Step::Over(standings) => ReplayEvent::Over(standings),
                _ => ReplayEvent::Advanced,
            };
            self.emit(event);
            match step {
                Step::Send(message) => self.send(&message)?,
                Step::Dismiss(seat) => self.emit(ReplayEvent::Dismissed(seat)),
                Step::Note(note) => match self.lines.next()? {
                    Line::Noted { time, note: recorded } if recorded == note => {
                        self.advance(time)?;
                    }
                    line => {
                        let found = line.to_json();
                        return Err(self.mismatch(&describe(&note), found));
                    }
                },
                Step::Illegal(seat, Illegal(why)) => {
                    self.illegal(seat, &why)?;
                    self.emit(ReplayEvent::Illegal { seat, why: &why });
                }
                Step::Fault(cause) => {
                    return Err(self.lines.difference(format!("the rules failed: {cause}")));
                }
                Step::Over(standings) => {
                    self.skip_legacy_farewell()?;
                    return Ok(standings);
                }
            }
        }
    }

    /// Skips the message of [`MatchState::legacy_farewell`] if the record has it. Only earlier
    /// versions sent this message, and it had no effect.
    fn skip_legacy_farewell(&mut self) -> Result<(), Difference> {
        let Some((gone_seat, farewell)) = &self.legacy_farewell else { return Ok(()) };
        match self.lines.peek_line()? {
            Some(Line::Sent { time, seat, text }) if seat == *gone_seat && text == *farewell => {
                self.transcript.sent(seat, &text);
                self.legacy_farewell = None;
                self.lines.next_text()?;
                self.advance(time)
            }
            _ => Ok(()),
        }
    }

    /// Checks that the record has the message of the rules. Passes the recorded reply to the rules.
    fn send(&mut self, message: &Message) -> Result<(), Difference> {
        self.skip_legacy_farewell()?;
        match self.lines.next()? {
            Line::Sent { time, seat, text } if seat == message.seat && text == message.text => {
                self.advance(time)?;
            }
            line => {
                let found = line.to_json();
                let expected = format!("message {:?} to seat {}", message.text, message.seat);
                return Err(self.mismatch(&expected, found));
            }
        }
        if !message.tells_time {
            self.transcript.sent(message.seat, &message.text);
        }
        if message.expected_reply == ExpectedReply::None {
            self.emit(ReplayEvent::Notified(message));
            return Ok(());
        }
        match self.lines.next()? {
            Line::Replied { time, seat, reply, spent } if seat == message.seat => {
                let mut copy = std::mem::take(&mut self.reply);
                reply.as_ref().clone_into(&mut copy);
                self.advance(time)?;
                self.replied(message, &copy, spent)?;
                self.reply = copy;
                Ok(())
            }
            Line::Forfeited { time, seat, forfeit, spent: Some(spent), detail }
                if seat == message.seat =>
            {
                self.advance(time)?;
                self.forfeited(message, forfeit, spent, &detail)
            }
            line => {
                let found = line.to_json();
                Err(self.mismatch(&format!("a reply or forfeit of seat {}", message.seat), found))
            }
        }
    }

    fn replied(
        &mut self,
        message: &Message,
        reply: &[u8],
        spent: TimeSpent,
    ) -> Result<(), Difference> {
        let Charge { cost, late } = self.charge(message, spent)?;
        if let Some(late) = late {
            return Err(self.lines.difference(format!("a late reply was accepted: {late}")));
        }
        if !message.tells_time {
            self.transcript.replied(message.seat, reply);
        }
        let outcome = self.game.receive_reply(Ok(&String::from_utf8_lossy(reply)), cost);
        let illegal = outcome.err().map(|illegal| illegal.to_string());
        self.emit(ReplayEvent::Replied {
            message,
            reply,
            spent,
            cost,
            illegal: illegal.as_deref(),
        });
        illegal.map_or(Ok(()), |why| self.illegal(message.seat, &why))
    }

    /// Checks that the record has a forfeit by an illegal reply.
    fn illegal(&mut self, illegal: Seat, why: &str) -> Result<(), Difference> {
        match self.lines.next()? {
            Line::Forfeited { time, seat, forfeit: Forfeit::Illegal, spent: None, detail }
                if seat == illegal && detail == why =>
            {
                self.transcript.forfeited(seat, Forfeit::Illegal);
                self.advance(time)
            }
            line => {
                let found = line.to_json();
                let expected = format!("forfeit of seat {illegal} by an illegal reply: {why}");
                Err(self.mismatch(&expected, found))
            }
        }
    }

    fn forfeited(
        &mut self,
        message: &Message,
        forfeit: Forfeit,
        spent: TimeSpent,
        detail: &str,
    ) -> Result<(), Difference> {
        let Charge { cost, late } = self.charge(message, spent)?;
        if (forfeit == Forfeit::Clock) && late.is_none() {
            return Err(self
                .lines
                .difference("a forfeit by the clock, but its times are within the limit"));
        }
        self.transcript.forfeited(message.seat, forfeit);
        if let Err(illegal) = self.game.receive_reply(Err(forfeit), cost) {
            return Err(self.lines.difference(illegal.to_string()));
        }
        if forfeit == Forfeit::Gone {
            self.legacy_farewell =
                self.game.legacy_farewell().map(|farewell| (message.seat, farewell));
        }
        self.emit(ReplayEvent::Forfeited { message, forfeit, spent, cost, detail });
        Ok(())
    }

    /// Computes the charge for a reply.
    fn charge(&mut self, message: &Message, spent: TimeSpent) -> Result<Charge, Difference> {
        if spent.wall < Micros::ZERO || spent.cpu < Micros::ZERO {
            return Err(self.lines.difference("a negative time"));
        }
        let first = std::mem::replace(&mut self.starting_up[message.seat.index()], false);
        Ok(self.clock.charge(spent, message.allowance, first))
    }

    /// Advances the time, which never decreases.
    fn advance(&mut self, time: Micros) -> Result<(), Difference> {
        if time < self.time {
            let previous = self.time.0;
            let t = time.0;
            return Err(self.lines.difference(format!("t is {t} after {previous}")));
        }
        self.time = time;
        Ok(())
    }

    fn mismatch(&self, expected: &str, found: serde_json::Result<String>) -> Difference {
        let found = found.unwrap_or_default();
        self.lines.difference(format!("expected by the rules: {expected}; found: {found}"))
    }

    /// Checks the lines after the match: standard error and the last line.
    fn finish(
        mut self,
        standings: &[SeatResult],
        transcript: TranscriptHash,
    ) -> Result<usize, Difference> {
        let mut last_seat = 0;
        loop {
            match self.lines.peek_line()? {
                Some(Line::Stderr { seat, text, dropped })
                    if (last_seat + 1..=standings.len()).contains(&usize::from(seat.number())) =>
                {
                    last_seat = usize::from(seat.number());
                    self.lines.next_text()?;
                    self.emit(ReplayEvent::Stderr { seat, text: &text, dropped });
                }
                Some(line) => {
                    let found = line.to_json();
                    return Err(self.mismatch("the end of the match", found));
                }
                None => break,
            }
        }
        let expected = Footer::new(standings, transcript, self.lines.seal());
        let text = self.lines.next_text()?;
        if serde_json::to_string(&expected).ok().as_deref() != Some(text) {
            let difference = footer_difference(text, &expected);
            return Err(self.lines.difference(difference));
        }
        self.lines.end()
    }
}

/// A note in words.
fn describe(note: &Note) -> String {
    match note {
        Note::Text { note } => format!("note {note:?}"),
        Note::Frame { frame, .. } => format!("picture {:?}", frame.caption),
        Note::Hand { hand, .. } => format!("the end of hand {hand}"),
    }
}

/// Describes the first seat whose value in the last line differs from that of the rules.
fn seat_difference<T: PartialEq>(
    what: &str,
    recorded: &[T],
    expected: &[T],
    describe: impl Fn(&T) -> String,
) -> Option<String> {
    if recorded.len() != expected.len() {
        let recorded = recorded.len();
        let seats = expected.len();
        return Some(format!("{what}: of {recorded} seats; the match has {seats}"));
    }
    let pairs = recorded.iter().zip(expected);
    let (seat, (recorded, expected)) =
        (1..).zip(pairs).find(|(_, (recorded, expected))| recorded != expected)?;
    let recorded = describe(recorded);
    let expected = describe(expected);
    Some(format!("{what} of seat {seat}: {recorded}; expected by the rules: {expected}"))
}

/// Describes which member of the last line differs.
fn footer_difference(text: &str, expected: &Footer) -> String {
    let Ok(footer) = serde_json::from_str::<Footer>(text) else {
        return format!("not a valid last line: {text}");
    };
    let no_bad_answers = vec![0; expected.scores.len()];
    let bad_answers =
        |footer: &Footer| footer.bad_answers.clone().unwrap_or_else(|| no_bad_answers.clone());
    let score =
        |score: &Score| score.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let forfeit = |forfeit: &Option<Forfeit>| forfeit.map_or("none", Forfeit::as_str).to_owned();
    let difference = seat_difference("score", &footer.scores, &expected.scores, score)
        .or_else(|| seat_difference("forfeit", &footer.forfeits, &expected.forfeits, forfeit))
        .or_else(|| {
            let recorded = bad_answers(&footer);
            seat_difference("bad replies", &recorded, &bad_answers(expected), u32::to_string)
        });
    if let Some(difference) = difference {
        difference
    } else if footer.transcript != expected.transcript {
        format!("transcript {}; recomputed {}", footer.transcript, expected.transcript)
    } else if footer.seal != expected.seal {
        format!("seal {}; recomputed {}: the record was edited", footer.seal, expected.seal)
    } else {
        "not the canonical form of the last line".to_owned()
    }
}
