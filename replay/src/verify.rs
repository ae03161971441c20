//! Replays a record through the rules.
//!
//! The rules produce their messages again, receive the replies of the record, and must reach the
//! same scores. Every line is checked: messages, the charge for each reply, each forfeit that the
//! rules or the clock decide, notes, and both hashes.

use std::io::{self, BufRead, Read as _};

use arbiter_games::{
    Charge, ClockRules, Forfeit, Games, MatchState, Micros, Owes, Protocol, Say, Seat, SeatResult,
    Step, TimeSpent,
};
use arbiter_proto::tricks_http::HTTP_ONLY_FOR_TRICKS;
use thiserror::Error;

use crate::compression::MAX_LINE;
use crate::record_line::{Footer, Header, Line, RECORD_VERSION};
use crate::transcript::{Transcript, TranscriptHash};

/// A verified record.
#[derive(Clone, Debug)]
pub struct Verified {
    /// Its first line.
    pub header: Header,
    /// The results, seat 1 first, recomputed.
    pub standings: Vec<SeatResult>,
    /// The hash of the dialogue, recomputed.
    pub transcript: TranscriptHash,
    /// The number of lines.
    pub lines: usize,
}

/// The first difference between a record and the rules.
#[derive(Debug, Error)]
pub enum Difference {
    /// A wrong line.
    #[error("line {line}: {what}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

/// An event of a match that is replayed. It borrows its data, so ignored events cost nothing.
#[derive(Clone, Copy, Debug)]
pub enum ReplayEvent<'a> {
    /// The state may have changed without a reply; the next message or note is expected.
    Advanced,
    /// A message to a seat that needs no reply.
    Notified(&'a Say),
    /// A seat gets no more messages.
    Dismissed(Seat),
    /// A seat replied in time, and the rules have received the reply.
    Replied {
        /// The message.
        say: &'a Say,
        /// The reply without its framing.
        reply: &'a [u8],
        /// The time of the reply.
        spent: TimeSpent,
        /// The charged time.
        cost: Micros,
        /// Why the reply is illegal, if it is.
        illegal: Option<&'a str>,
    },
    /// A seat forfeited instead of replying, and the rules know it.
    Forfeited {
        /// The message.
        say: &'a Say,
        /// Why it forfeited.
        forfeit: Forfeit,
        /// The time of the reply.
        spent: TimeSpent,
        /// The charged time.
        cost: Micros,
        /// The evidence.
        detail: &'a str,
    },
    /// The match is over: the results, seat 1 first.
    Over(&'a [SeatResult]),
    /// The end of a bot's standard error, after the match.
    Stderr {
        /// The bot's seat.
        seat: Seat,
        /// Its last bytes, as text.
        text: &'a str,
        /// The number of bytes before them.
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
pub fn verify(games: &Games, record: impl BufRead) -> Result<Verified, Difference> {
    replay_with(games, record, &mut ())
}

/// Replays a record of a match of one of these games, sends its events to `observer`, and returns
/// its result.
///
/// # Errors
/// The first difference. The events before it are correct.
pub fn replay_with(
    games: &Games,
    record: impl BufRead,
    observer: &mut impl ReplayObserver,
) -> Result<Verified, Difference> {
    let mut lines = Lines { record, number: 0, seal: blake3::Hasher::new(), next: None };
    let header = header(games, &mut lines)?;
    if !header.seats.iter().all(|seat| header.game.speaks(seat.protocol)) {
        return Err(lines.difference(HTTP_ONLY_FOR_TRICKS));
    }
    let turns: Vec<_> = header.seats.iter().map(|seat| seat.protocol.turn_policy()).collect();
    let game = header
        .params
        .start_by(&header.rules, &header.names(), &turns, header.seed)
        .map_err(|error| lines.difference(error.to_string()))?;
    let starting_up = header.seats.iter().map(|seat| seat.protocol != Protocol::Exec).collect();
    observer.begin(&header, game.as_ref());
    let mut replay = Replay {
        lines,
        observer,
        game,
        clock: header.clock,
        starting_up,
        time: Micros::ZERO,
        transcript: Transcript::default(),
        exit_to_gone: None,
    };
    let standings = replay.play()?;
    let transcript = replay.transcript.hash();
    let lines = replay.finish(&standings, transcript)?;
    Ok(Verified { header, standings, transcript, lines })
}

/// Parses the first line and checks that this program can replay the record.
fn header<R: BufRead>(games: &Games, lines: &mut Lines<R>) -> Result<Header, Difference> {
    let text = lines.next_text()?;
    let header = Header::parse(games, &text)
        .map_err(|error| lines.difference(format!("not a valid header: {error}")))?;
    if serde_json::to_string(&header).ok().as_deref() != Some(text.as_str()) {
        return Err(lines.difference("not the canonical form of a header"));
    }
    if header.record != RECORD_VERSION {
        let version = header.record;
        return Err(lines.difference(format!(
            "record format {version}; this program supports {RECORD_VERSION}"
        )));
    }
    Ok(header)
}

/// Reads the lines of a record, counts them, and hashes each before it reads the next.
struct Lines<R> {
    record: R,
    number: usize,
    seal: blake3::Hasher,
    /// The next line, if it was peeked.
    next: Option<String>,
}

impl<R: BufRead> Lines<R> {
    fn difference(&self, what: impl Into<String>) -> Difference {
        Difference::Line { line: self.number, what: what.into() }
    }

    /// Returns the next line without its newline, and does not consume it.
    fn peek(&mut self) -> Result<&str, Difference> {
        let next = match self.next.take() {
            Some(text) => text,
            None => self.unsealed_text()?,
        };
        Ok(self.next.insert(next))
    }

    /// Returns the next line without its newline, and adds it to the seal.
    fn next_text(&mut self) -> Result<String, Difference> {
        let text = match self.next.take() {
            Some(text) => text,
            None => self.unsealed_text()?,
        };
        self.seal.update(text.as_bytes()).update(b"\n");
        Ok(text)
    }

    fn unsealed_text(&mut self) -> Result<String, Difference> {
        let mut text = String::new();
        self.number += 1;
        let read = self.record.by_ref().take(MAX_LINE).read_line(&mut text);
        if let Err(error) = &read
            && error.kind() == io::ErrorKind::InvalidData
        {
            return Err(self.difference("not UTF-8"));
        }
        if read? == 0 {
            return Err(self.difference("the record ends before the match does"));
        }
        if text.pop() != Some('\n') {
            let long = u64::try_from(text.len()).is_ok_and(|length| length + 1 >= MAX_LINE);
            return Err(self.difference(if long {
                "longer than a line of a record may be"
            } else {
                "the record ends within a line"
            }));
        }
        Ok(text)
    }

    /// Parses the next line of the match.
    fn next(&mut self) -> Result<Line, Difference> {
        let text = self.next_text()?;
        Line::parse(&text).ok_or_else(|| self.difference(format!("not a valid line: {text}")))
    }
}

/// A match that is replayed.
struct Replay<'a, R, F> {
    lines: Lines<R>,
    observer: &'a mut F,
    game: Box<dyn MatchState>,
    clock: ClockRules,
    /// Seats that have not replied yet, and whose start-up is free of charge.
    starting_up: Vec<bool>,
    time: Micros,
    transcript: Transcript,
    /// The bot that is gone, and the farewell that only records of earlier versions send it.
    exit_to_gone: Option<(Seat, String)>,
}

impl<R: BufRead, F: ReplayObserver> Replay<'_, R, F> {
    /// Sends an event to the observer.
    fn emit(&mut self, event: ReplayEvent<'_>) {
        self.observer.on_event(self.time, event, self.game.as_ref());
    }

    fn play(&mut self) -> Result<Vec<SeatResult>, Difference> {
        loop {
            let step = self.game.step();
            let event = match &step {
                Step::Over(standings) => ReplayEvent::Over(standings),
                Step::Say(_) | Step::Dismiss(_) | Step::Note(_) => ReplayEvent::Advanced,
            };
            self.emit(event);
            match step {
                Step::Say(say) => self.say(&say)?,
                Step::Dismiss(seat) => self.emit(ReplayEvent::Dismissed(seat)),
                Step::Note(note) => match self.lines.next()? {
                    Line::Noted { time, note: found } if found == note => self.advance(time)?,
                    found => return Err(self.mismatch(&format!("{note:?}"), &found)),
                },
                Step::Over(standings) => {
                    self.skip_exit_to_gone()?;
                    return Ok(standings);
                }
            }
        }
    }

    /// Skips a farewell to a bot that was gone. Earlier versions sent it
    /// ([`MatchState::legacy_farewell`]), and it had no effect.
    fn skip_exit_to_gone(&mut self) -> Result<(), Difference> {
        let Some((gone, exit)) = &self.exit_to_gone else { return Ok(()) };
        match Line::parse(self.lines.peek()?) {
            Some(Line::Sent { time, seat, text }) if seat == *gone && text == *exit => {
                self.exit_to_gone = None;
                self.lines.next_text()?;
                self.transcript.sent(seat, &text);
                self.advance(time)
            }
            _ => Ok(()),
        }
    }

    /// Checks that the record has the message of the rules, and passes them the recorded reply.
    fn say(&mut self, say: &Say) -> Result<(), Difference> {
        self.skip_exit_to_gone()?;
        match self.lines.next()? {
            Line::Sent { time, seat, text } if seat == say.seat && text == say.text => {
                self.advance(time)?;
            }
            found => {
                let expected = format!("message {:?} to seat {}", say.text, say.seat);
                return Err(self.mismatch(&expected, &found));
            }
        }
        if !say.tells_time {
            self.transcript.sent(say.seat, &say.text);
        }
        if say.owes == Owes::Nothing {
            self.emit(ReplayEvent::Notified(say));
            return Ok(());
        }
        match self.lines.next()? {
            Line::Replied { time, seat, reply, spent } if seat == say.seat => {
                self.advance(time)?;
                self.replied(say, &reply, spent)
            }
            Line::Forfeited { time, seat, forfeit, spent: Some(spent), detail }
                if seat == say.seat =>
            {
                self.advance(time)?;
                self.forfeited(say, forfeit, spent, &detail)
            }
            found => {
                Err(self.mismatch(&format!("a reply or forfeit of seat {}", say.seat), &found))
            }
        }
    }

    fn replied(&mut self, say: &Say, reply: &[u8], spent: TimeSpent) -> Result<(), Difference> {
        let Charge { cost, late } = self.charge(say, spent)?;
        if let Some(late) = late {
            return Err(self.lines.difference(format!("a late reply was accepted: {late}")));
        }
        if !say.tells_time {
            self.transcript.replied(say.seat, reply);
        }
        let verdict = self.game.receive_reply(Ok(&String::from_utf8_lossy(reply)), cost);
        let illegal = verdict.err().map(|illegal| illegal.to_string());
        self.emit(ReplayEvent::Replied { say, reply, spent, cost, illegal: illegal.as_deref() });
        let Some(illegal) = illegal else { return Ok(()) };
        match self.lines.next()? {
            Line::Forfeited { time, seat, forfeit: Forfeit::Illegal, spent: None, detail }
                if seat == say.seat && detail == illegal =>
            {
                self.transcript.forfeited(seat, Forfeit::Illegal);
                self.advance(time)
            }
            found => {
                let expected =
                    format!("forfeit of seat {} by an illegal reply: {illegal}", say.seat);
                Err(self.mismatch(&expected, &found))
            }
        }
    }

    fn forfeited(
        &mut self,
        say: &Say,
        forfeit: Forfeit,
        spent: TimeSpent,
        detail: &str,
    ) -> Result<(), Difference> {
        let Charge { cost, late } = self.charge(say, spent)?;
        if (forfeit == Forfeit::Clock) && late.is_none() {
            return Err(self
                .lines
                .difference("a forfeit by the clock, but its times are within the limit"));
        }
        self.transcript.forfeited(say.seat, forfeit);
        if let Err(illegal) = self.game.receive_reply(Err(forfeit), cost) {
            return Err(self.lines.difference(illegal.to_string()));
        }
        if forfeit == Forfeit::Gone {
            self.exit_to_gone = self.game.legacy_farewell().map(|exit| (say.seat, exit));
        }
        self.emit(ReplayEvent::Forfeited { say, forfeit, spent, cost, detail });
        Ok(())
    }

    /// Computes the charge for a reply, as in the match.
    fn charge(&mut self, say: &Say, spent: TimeSpent) -> Result<Charge, Difference> {
        if spent.wall < Micros::ZERO || spent.cpu < Micros::ZERO {
            return Err(self.lines.difference("a negative time"));
        }
        let first = std::mem::replace(&mut self.starting_up[say.seat.index()], false);
        Ok(self.clock.charge(spent, say.allowance, first))
    }

    /// Advances the time, which never runs backwards.
    fn advance(&mut self, time: Micros) -> Result<(), Difference> {
        if time < self.time {
            let before = self.time.0;
            let now = time.0;
            return Err(self.lines.difference(format!("t is {now} after {before}")));
        }
        self.time = time;
        Ok(())
    }

    fn mismatch(&self, expected: &str, found: &Line) -> Difference {
        let found = found.to_json().unwrap_or_default();
        self.lines.difference(format!("expected by the rules: {expected}; found: {found}"))
    }

    /// Checks the lines after the match: standard error and the last line.
    fn finish(
        mut self,
        standings: &[SeatResult],
        transcript: TranscriptHash,
    ) -> Result<usize, Difference> {
        let mut last_seat = 0;
        let text = loop {
            let seal = self.lines.seal.clone();
            let text = self.lines.next_text()?;
            match Line::parse(&text) {
                Some(Line::Stderr { seat, text, dropped })
                    if (last_seat + 1..=standings.len()).contains(&usize::from(seat.number())) =>
                {
                    last_seat = usize::from(seat.number());
                    self.emit(ReplayEvent::Stderr { seat, text: &text, dropped });
                }
                Some(found) => return Err(self.mismatch("the end of the match", &found)),
                None => {
                    self.lines.seal = seal;
                    break text;
                }
            }
        };
        let expected = Footer::new(standings, transcript, self.lines.seal.finalize());
        if serde_json::to_string(&expected).ok().as_deref() != Some(text.as_str()) {
            return Err(self.lines.difference(footer_difference(&text, &expected)));
        }
        let lines = self.lines.number;
        match self.lines.unsealed_text() {
            Err(Difference::Line { .. }) if self.lines.record.fill_buf()?.is_empty() => Ok(lines),
            _ => Err(self.lines.difference("the record continues after its last line")),
        }
    }
}

/// Describes which member of the last line differs.
fn footer_difference(text: &str, expected: &Footer) -> String {
    let Ok(found) = serde_json::from_str::<Footer>(text) else {
        return format!("not a valid last line: {text}");
    };
    if found.scores != expected.scores {
        format!("scores {:?}; expected by the rules: {:?}", found.scores, expected.scores)
    } else if found.forfeits != expected.forfeits {
        format!("forfeits {:?}; expected by the rules: {:?}", found.forfeits, expected.forfeits)
    } else if found.bad_answers != expected.bad_answers {
        format!(
            "bad answers {:?}; expected by the rules: {:?}",
            found.bad_answers, expected.bad_answers
        )
    } else if found.transcript != expected.transcript {
        format!("transcript {}; recomputed {}", found.transcript, expected.transcript)
    } else if found.seal != expected.seal {
        format!("seal {}; recomputed {}: the record was edited", found.seal, expected.seal)
    } else {
        "not the canonical form of the last line".to_owned()
    }
}
