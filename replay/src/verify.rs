//! Replays a record through the rules.
//!
//! The rules say again what they said in the match, are told the answers that the record holds,
//! and must come to the same scores. Every line is accounted for: what we said, what an answer
//! was charged, each forfeit that the rules or the clock decide, the notes, both hashes.

use std::io::{self, BufRead, Read as _};

use arbiter_games::{
    Charge, ClockRules, Forfeit, Games, MatchState, Micros, Owes, Protocol, Say, Seat, SeatResult,
    Step, TimeSpent,
};
use arbiter_proto::tricks_http::NO_OTHER_GAME;
use thiserror::Error;

use crate::compression::LONGEST_LINE;
use crate::record_line::{Header, Line, Over, RECORD_VERSION};
use crate::transcript::{Transcript, TranscriptHash};

/// What a record that is right tells.
#[derive(Clone, Debug)]
pub struct Verified {
    /// Its first line.
    pub header: Header,
    /// Every seat's result, recomputed.
    pub standings: Vec<SeatResult>,
    /// The hash of what was said, recomputed.
    pub transcript: TranscriptHash,
    /// How many lines it has.
    pub lines: usize,
}

/// The first place where a record differs from what the rules say.
#[derive(Debug, Error)]
pub enum Difference {
    /// A line that is wrong.
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

/// What a match comes to while it is replayed. Borrowed: what is not kept costs nothing.
#[derive(Clone, Copy, Debug)]
pub enum Scene<'a> {
    /// The rules have gone on by themselves, and speak next.
    Due,
    /// A seat was told something that asks for no answer.
    Told(&'a Say),
    /// A seat is never spoken to again.
    Dismissed(Seat),
    /// A seat answered in time, and the rules have heard it.
    Replied {
        /// What it was asked.
        say: &'a Say,
        /// The answer without its frame.
        reply: &'a [u8],
        /// What it took.
        spent: TimeSpent,
        /// What it was charged.
        cost: Micros,
        /// Why it forfeits, if the rules find it illegal.
        illegal: Option<&'a str>,
    },
    /// A seat forfeited in the place of an answer, and the rules have heard it.
    Forfeited {
        /// What it was asked.
        say: &'a Say,
        /// What it did.
        forfeit: Forfeit,
        /// What it took.
        spent: TimeSpent,
        /// What it was charged.
        cost: Micros,
        /// The evidence.
        detail: &'a str,
    },
    /// The match is over: every seat's result.
    Over(&'a [SeatResult]),
    /// The end of a bot's standard error, after the match.
    Stderr {
        /// Whose.
        seat: Seat,
        /// Its last bytes, as text.
        text: &'a str,
        /// How many bytes came before those.
        dropped: usize,
    },
}

/// Follows a match as it is replayed.
pub trait Follower {
    /// The match begins.
    fn begin(&mut self, header: &Header, game: &dyn MatchState);

    /// Something happened, so long after the match began.
    fn follow(&mut self, time: Micros, scene: Scene<'_>, game: &dyn MatchState);
}

/// Nobody.
impl Follower for () {
    fn begin(&mut self, _: &Header, _: &dyn MatchState) {}
    fn follow(&mut self, _: Micros, _: Scene<'_>, _: &dyn MatchState) {}
}

/// Replays a record of a match of one of these games, and gives its result.
pub fn verify(games: &Games, record: impl BufRead) -> Result<Verified, Difference> {
    follow(games, record, &mut ())
}

/// Replays a record of a match of one of these games, which `follower` follows, and gives its
/// result.
///
/// # Errors
/// The first difference; what the follower has seen until then is right.
pub fn follow(
    games: &Games,
    record: impl BufRead,
    follower: &mut impl Follower,
) -> Result<Verified, Difference> {
    let mut lines = Lines { record, number: 0, seal: blake3::Hasher::new(), next: None };
    let header = header(games, &mut lines)?;
    if !header.seats.iter().all(|seat| header.game.speaks(seat.protocol)) {
        return Err(lines.difference(NO_OTHER_GAME));
    }
    let turns: Vec<_> = header.seats.iter().map(|seat| seat.protocol.turn_policy()).collect();
    let game = header
        .params
        .start_by(&header.rules, &header.names(), &turns, header.seed)
        .map_err(|error| lines.difference(error.to_string()))?;
    let starting_up = header.seats.iter().map(|seat| seat.protocol != Protocol::Exec).collect();
    follower.begin(&header, game.as_ref());
    let mut replay = Replay {
        lines,
        follower,
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

/// Reads the first line, and checks that this program knows how to replay it.
fn header<R: BufRead>(games: &Games, lines: &mut Lines<R>) -> Result<Header, Difference> {
    let text = lines.next_text()?;
    let header = Header::parse(games, &text)
        .map_err(|error| lines.difference(format!("not a record's first line: {error}")))?;
    if serde_json::to_string(&header).ok().as_deref() != Some(text.as_str()) {
        return Err(lines.difference("not written the way a record's first line is"));
    }
    if header.record != RECORD_VERSION {
        let version = header.record;
        return Err(lines
            .difference(format!("record format {version}; this program knows {RECORD_VERSION}")));
    }
    Ok(header)
}

/// The lines of a record, each counted, and hashed before the next one is read.
struct Lines<R> {
    record: R,
    number: usize,
    seal: blake3::Hasher,
    /// The next line, if it was looked at already.
    next: Option<String>,
}

impl<R: BufRead> Lines<R> {
    fn difference(&self, what: impl Into<String>) -> Difference {
        Difference::Line { line: self.number, what: what.into() }
    }

    /// The next line without its newline, which stays the next one.
    fn peek(&mut self) -> Result<&str, Difference> {
        let next = match self.next.take() {
            Some(text) => text,
            None => self.unsealed_text()?,
        };
        Ok(self.next.insert(next))
    }

    /// The next line without its newline; it goes into the seal.
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
        let read = self.record.by_ref().take(LONGEST_LINE).read_line(&mut text);
        if let Err(error) = &read
            && error.kind() == io::ErrorKind::InvalidData
        {
            return Err(self.difference("not UTF-8"));
        }
        if read? == 0 {
            return Err(self.difference("the record ends before the match does"));
        }
        if text.pop() != Some('\n') {
            let long = u64::try_from(text.len()).is_ok_and(|length| length + 1 >= LONGEST_LINE);
            return Err(self.difference(if long {
                "longer than any line of a record"
            } else {
                "the record ends within a line"
            }));
        }
        Ok(text)
    }

    /// The next line of the match.
    fn next(&mut self) -> Result<Line, Difference> {
        let text = self.next_text()?;
        Line::parse(&text).ok_or_else(|| self.difference(format!("not a line of a record: {text}")))
    }
}

/// A match being replayed.
struct Replay<'a, R, F> {
    lines: Lines<R>,
    follower: &'a mut F,
    game: Box<dyn MatchState>,
    clock: ClockRules,
    /// Which seats have not answered yet and start up free of charge.
    starting_up: Vec<bool>,
    time: Micros,
    transcript: Transcript,
    /// The program that is gone, and what only records of earlier versions say to it.
    exit_to_gone: Option<(Seat, String)>,
}

impl<R: BufRead, F: Follower> Replay<'_, R, F> {
    /// Shows the follower what has happened.
    fn show(&mut self, scene: Scene<'_>) {
        self.follower.follow(self.time, scene, self.game.as_ref());
    }

    fn play(&mut self) -> Result<Vec<SeatResult>, Difference> {
        loop {
            let step = self.game.step();
            let scene = match &step {
                Step::Over(standings) => Scene::Over(standings),
                Step::Say(_) | Step::Dismiss(_) | Step::Note(_) => Scene::Due,
            };
            self.show(scene);
            match step {
                Step::Say(say) => self.say(&say)?,
                Step::Dismiss(seat) => self.show(Scene::Dismissed(seat)),
                Step::Note(note) => match self.lines.next()? {
                    Line::Noted { time, note: found } if found == note => self.at(time)?,
                    found => return Err(self.unlike(&format!("{note:?}"), &found)),
                },
                Step::Over(standings) => {
                    self.skip_exit_to_gone()?;
                    return Ok(standings);
                }
            }
        }
    }

    /// Passes over the end of a game as it was said to a program that was gone: earlier versions did
    /// so ([`MatchState::legacy_farewell`]), and nothing followed from it.
    fn skip_exit_to_gone(&mut self) -> Result<(), Difference> {
        let Some((gone, exit)) = &self.exit_to_gone else { return Ok(()) };
        match Line::parse(self.lines.peek()?) {
            Some(Line::Sent { time, seat, text }) if seat == *gone && text == *exit => {
                self.exit_to_gone = None;
                self.lines.next_text()?;
                self.transcript.sent(seat, &text);
                self.at(time)
            }
            _ => Ok(()),
        }
    }

    /// Finds what the rules say in the record, and tells them the answer found there.
    fn say(&mut self, say: &Say) -> Result<(), Difference> {
        self.skip_exit_to_gone()?;
        match self.lines.next()? {
            Line::Sent { time, seat, text } if seat == say.seat && text == say.text => {
                self.at(time)?;
            }
            found => {
                let due = format!("seat {} was told {:?}", say.seat, say.text);
                return Err(self.unlike(&due, &found));
            }
        }
        if !say.tells_time {
            self.transcript.sent(say.seat, &say.text);
        }
        if say.owes == Owes::Nothing {
            self.show(Scene::Told(say));
            return Ok(());
        }
        match self.lines.next()? {
            Line::Replied { time, seat, reply, spent } if seat == say.seat => {
                self.at(time)?;
                self.replied(say, &reply, spent)
            }
            Line::Forfeited { time, seat, forfeit, spent: Some(spent), detail }
                if seat == say.seat =>
            {
                self.at(time)?;
                self.forfeited(say, forfeit, spent, &detail)
            }
            found => Err(self.unlike(&format!("seat {} answers or forfeits", say.seat), &found)),
        }
    }

    fn replied(&mut self, say: &Say, reply: &[u8], spent: TimeSpent) -> Result<(), Difference> {
        let Charge { cost, late } = self.charge(say, spent)?;
        if let Some(late) = late {
            return Err(self.lines.difference(format!("accepted an answer that is late: {late}")));
        }
        if !say.tells_time {
            self.transcript.replied(say.seat, reply);
        }
        let verdict = self.game.receive_reply(Ok(&String::from_utf8_lossy(reply)), cost);
        let illegal = verdict.err().map(|illegal| illegal.to_string());
        self.show(Scene::Replied { say, reply, spent, cost, illegal: illegal.as_deref() });
        let Some(illegal) = illegal else { return Ok(()) };
        match self.lines.next()? {
            Line::Forfeited { time, seat, forfeit: Forfeit::Illegal, spent: None, detail }
                if seat == say.seat && detail == illegal =>
            {
                self.transcript.forfeited(seat, Forfeit::Illegal);
                self.at(time)
            }
            found => {
                let due = format!("seat {} forfeits by an illegal answer: {illegal}", say.seat);
                Err(self.unlike(&due, &found))
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
                .difference("a forfeit by the clock, in time by its own figures"));
        }
        self.transcript.forfeited(say.seat, forfeit);
        if let Err(illegal) = self.game.receive_reply(Err(forfeit), cost) {
            return Err(self.lines.difference(illegal.to_string()));
        }
        if forfeit == Forfeit::Gone {
            self.exit_to_gone = self.game.legacy_farewell().map(|exit| (say.seat, exit));
        }
        self.show(Scene::Forfeited { say, forfeit, spent, cost, detail });
        Ok(())
    }

    /// What an answer costs, by the same sum as in the match.
    fn charge(&mut self, say: &Say, spent: TimeSpent) -> Result<Charge, Difference> {
        if spent.wall < Micros::ZERO || spent.cpu < Micros::ZERO {
            return Err(self.lines.difference("a time below zero"));
        }
        let first = std::mem::replace(&mut self.starting_up[say.seat.index()], false);
        Ok(self.clock.charge(spent, say.allowance, first))
    }

    /// Time never runs backwards.
    fn at(&mut self, time: Micros) -> Result<(), Difference> {
        if time < self.time {
            let before = self.time.0;
            let now = time.0;
            return Err(self.lines.difference(format!("t is {now} after {before}")));
        }
        self.time = time;
        Ok(())
    }

    fn unlike(&self, due: &str, found: &Line) -> Difference {
        let found = found.to_json().unwrap_or_default();
        self.lines.difference(format!("by the rules {due}; the record has {found}"))
    }

    /// Checks what follows the match: standard error, and the last line.
    fn finish(
        mut self,
        standings: &[SeatResult],
        transcript: TranscriptHash,
    ) -> Result<usize, Difference> {
        let mut told = 0;
        let text = loop {
            let seal = self.lines.seal.clone();
            let text = self.lines.next_text()?;
            match Line::parse(&text) {
                Some(Line::Stderr { seat, text, dropped })
                    if (told + 1..=standings.len()).contains(&usize::from(seat.number())) =>
                {
                    told = usize::from(seat.number());
                    self.show(Scene::Stderr { seat, text: &text, dropped });
                }
                Some(found) => return Err(self.unlike("the match is over", &found)),
                None => {
                    self.lines.seal = seal;
                    break text;
                }
            }
        };
        let due = Over::new(standings, transcript, self.lines.seal.finalize());
        if serde_json::to_string(&due).ok().as_deref() != Some(text.as_str()) {
            return Err(self.lines.difference(last_line_difference(&text, &due)));
        }
        let lines = self.lines.number;
        match self.lines.unsealed_text() {
            Err(Difference::Line { .. }) if self.lines.record.fill_buf()?.is_empty() => Ok(lines),
            _ => Err(self.lines.difference("something follows the last line")),
        }
    }
}

/// Says which member of the last line differs.
fn last_line_difference(text: &str, due: &Over) -> String {
    let Ok(found) = serde_json::from_str::<Over>(text) else {
        return format!("not a record's last line: {text}");
    };
    if found.scores != due.scores {
        format!("scores {:?}; by the rules {:?}", found.scores, due.scores)
    } else if found.forfeits != due.forfeits {
        format!("forfeits {:?}; by the rules {:?}", found.forfeits, due.forfeits)
    } else if found.bad_answers != due.bad_answers {
        format!("bad answers {:?}; by the rules {:?}", found.bad_answers, due.bad_answers)
    } else if found.transcript != due.transcript {
        format!("transcript {}; recomputed {}", found.transcript, due.transcript)
    } else if found.seal != due.seal {
        format!("seal {}; recomputed {}: the record was edited", found.seal, due.seal)
    } else {
        "not written the way a record's last line is".to_owned()
    }
}
