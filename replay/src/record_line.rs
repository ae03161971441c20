//! The lines of a record.

use std::borrow::Cow;
use std::io::{self, BufRead};

use arbiter_games::{
    BotName, ClockRules, Forfeit, Frame, Game, Games, Micros, Note, Params, Protocol, Score, Seat,
    SeatResult, Seed, Text, TimeSpent,
};
use arbiter_proto::level::Level;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use crate::compression::MAX_LINE;
use crate::plain_line::PlainLine;
use crate::transcript::TranscriptHash;

/// The version of the format, in the field `record` of each header.
pub const RECORD_VERSION: u32 = 1;

/// The first line: everything that determines a match, except the replies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Header {
    /// The version of the record format.
    pub record: u32,
    /// The game.
    pub game: Game,
    /// The digest of the game package; `None` for a built-in game.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The version of the rules.
    pub rules: String,
    /// The game's parameters.
    pub params: Params,
    /// The match's seed.
    pub seed: Seed,
    /// The clock rules of the match.
    pub clock: ClockRules,
    /// The isolation of the bots.
    pub sandbox: Level,
    /// The bots, seat 1 first.
    pub seats: Vec<SeatLine>,
}

/// The bot in a seat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeatLine {
    /// The name of the bot in the match.
    pub bot: BotName,
    /// The digest of its bundle.
    pub digest: String,
    /// The protocol of the bot. It determines whether start-up time was charged.
    pub protocol: Protocol,
}

/// A header whose parameters are not parsed yet. Parsing them needs the game.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHeader {
    record: u32,
    game: String,
    #[serde(default)]
    package: Option<String>,
    rules: String,
    params: serde_json::Value,
    seed: Seed,
    clock: ClockRules,
    sandbox: Level,
    seats: Vec<SeatLine>,
}

impl Header {
    /// Parses a header of a match of one of these games.
    pub fn parse(games: &Games, text: &str) -> serde_json::Result<Self> {
        let raw: RawHeader = serde_json::from_str(text)?;
        let game = raw.find_game(games).map_err(serde_json::Error::custom)?;
        let RawHeader { record, game: _, package, rules, params, seed, clock, sandbox, seats } =
            raw;
        let params = Params::read(&game, params)?;
        Ok(Self { record, game, package, rules, params, seed, clock, sandbox, seats })
    }

    /// The names of the bots, seat 1 first.
    pub fn names(&self) -> Vec<BotName> {
        names(&self.seats)
    }
}

/// The names of the bots in these seats.
pub(crate) fn names(seats: &[SeatLine]) -> Vec<BotName> {
    seats.iter().map(|seat| seat.bot.clone()).collect()
}

impl RawHeader {
    /// The game of the record, one of these.
    fn find_game(&self, games: &Games) -> Result<Game, String> {
        if let Some(package) = self.recorded_package() {
            return package.find(games);
        }
        let name = &self.game;
        let game = games.find(name).map_err(|unknown| unknown.to_string())?;
        if game.package.is_some() {
            return Err(format!("the record of a built-in game, but {name} is a package"));
        }
        Ok(game)
    }

    /// The game package of the record; `None` if the game is built in.
    fn recorded_package(&self) -> Option<RecordedPackage> {
        Some(RecordedPackage {
            game: self.game.clone(),
            version: self.rules.clone(),
            digest: self.package.clone()?,
        })
    }
}

/// What the pictures of a game package's record need of its header: everything but the game.
#[derive(Debug)]
pub(crate) struct PackageHeader {
    /// The version of the record format.
    pub(crate) record: u32,
    /// The clock rules of the match.
    pub(crate) clock: ClockRules,
    /// The bots, seat 1 first.
    pub(crate) seats: Vec<SeatLine>,
    /// The names of the components of a score; empty if the games do not have the package.
    pub(crate) columns: Vec<Text>,
}

impl PackageHeader {
    /// Parses a header of a match of one of these games, or of a package that they do not have.
    /// `None` if the game is built in, or the text is not a header.
    pub(crate) fn parse(games: &Games, text: &str) -> Option<Self> {
        let raw: RawHeader = serde_json::from_str(text).ok()?;
        let game = raw.recorded_package()?.find(games);
        let columns = game.map(|game| game.columns.clone()).unwrap_or_default();
        let RawHeader { record, clock, seats, .. } = raw;
        Some(Self { record, clock, seats, columns })
    }
}

/// The game package of a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordedPackage {
    /// The name of the game.
    pub game: String,
    /// The version of its rules.
    pub version: String,
    /// The digest of the package.
    pub digest: String,
}

impl RecordedPackage {
    /// Reads the first line of a record. `None` if the game is built in, or the line is not a
    /// header.
    pub fn read(record: impl BufRead) -> io::Result<Option<Self>> {
        let mut line = String::new();
        record.take(MAX_LINE).read_line(&mut line)?;
        let header = serde_json::from_str::<RawHeader>(&line).ok();
        Ok(header.and_then(|header| header.recorded_package()))
    }

    /// The game among these that has the digest of the package.
    ///
    /// # Errors
    /// If there is none: how to give the package.
    pub fn find(&self, games: &Games) -> Result<Game, String> {
        let Self { game: name, version, digest } = self;
        let is_named = |game: &&Game| game.name == *name;
        let is_played = |game: &&Game| is_named(game) && game.package.as_deref() == Some(digest);
        if let Some(game) = games.iter().find(is_played) {
            return Ok(game.clone());
        }
        let other = games.iter().filter(is_named).find_map(|game| game.package.as_deref());
        let other = other.map(|other| format!(", not {other}")).unwrap_or_default();
        Err(format!(
            "played with the game package {name} version {version} of digest {digest}{other}; name \
             its folder or file with --game, or download it with arbiter tournament package T \
             --out FILE --digest {digest}"
        ))
    }
}

/// The last line: the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Footer {
    /// Always true. It marks the last line.
    pub over: bool,
    /// The scores, seat 1 first.
    pub scores: Vec<Score>,
    /// The forfeits, seat 1 first.
    pub forfeits: Vec<Option<Forfeit>>,
    /// The number of bad replies of each seat, in games that count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_answers: Option<Vec<u32>>,
    /// The hash of the dialogue.
    pub transcript: String,
    /// The hash of every byte of the record before this line.
    pub seal: String,
}

impl Footer {
    /// Creates the last line of a record whose other lines have the hash `seal`.
    pub fn new(standings: &[SeatResult], transcript: TranscriptHash, seal: blake3::Hash) -> Self {
        let bad_answers: Vec<_> = standings.iter().map(|standing| standing.bad_answers).collect();
        Self {
            over: true,
            scores: standings.iter().map(|standing| standing.score.clone()).collect(),
            forfeits: standings.iter().map(|standing| standing.forfeit).collect(),
            bad_answers: bad_answers.iter().any(|count| *count > 0).then_some(bad_answers),
            transcript: transcript.to_string(),
            seal: seal.to_string(),
        }
    }
}

/// A line between the first and the last line. It borrows the texts of messages and replies.
#[derive(Clone, Debug, PartialEq)]
pub enum Line<'a> {
    /// A message to a seat.
    Sent {
        /// Time since the match began.
        time: Micros,
        /// The receiver.
        seat: Seat,
        /// One protocol unit.
        text: Cow<'a, str>,
    },
    /// A reply of a seat.
    Replied {
        /// Time since the match began.
        time: Micros,
        /// The seat.
        seat: Seat,
        /// The reply without its framing.
        reply: Cow<'a, [u8]>,
        /// The time of the reply.
        spent: TimeSpent,
    },
    /// A seat forfeited.
    Forfeited {
        /// Time since the match began.
        time: Micros,
        /// The seat.
        seat: Seat,
        /// Why it forfeited.
        forfeit: Forfeit,
        /// The time of the reply. `None` if the previous line has the reply that caused the
        /// forfeit.
        spent: Option<TimeSpent>,
        /// Details for the bot's author.
        detail: String,
    },
    /// A note of the game.
    Noted {
        /// Time since the match began.
        time: Micros,
        /// The note.
        note: Note,
    },
    /// The end of a bot's standard error.
    Stderr {
        /// The bot's seat.
        seat: Seat,
        /// The last bytes, as text.
        text: String,
        /// The number of earlier bytes, which the record does not have.
        dropped: usize,
    },
}

/// Declares the members of a line. Each is optional.
macro_rules! members {
    ($($(#[$attribute:meta])? $name:ident: $kind:ty,)+) => {
        /// All members of lines, in the order of the text.
        #[derive(Debug, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        struct RawLine {
            $(
                #[serde(skip_serializing_if = "Option::is_none")]
                $(#[$attribute])?
                $name: Option<$kind>,
            )+
        }
    };
}

members! {
    t: i64,
    seat: Seat,
    send: String,
    reply: String,
    reply_b64: String,
    forfeit: Forfeit,
    wall_us: i64,
    cpu_us: i64,
    detail: String,
    hand: u32,
    dealer: String,
    chips: Vec<i64>,
    note: String,
    frame: Frame,
    #[serde(rename = "for")]
    viewer: Seat,
    stderr: String,
    dropped: usize,
}

impl<'a> Line<'a> {
    /// The seat of the line, if it has one.
    pub(crate) fn seat(&self) -> Option<Seat> {
        match self {
            Self::Sent { seat, .. }
            | Self::Replied { seat, .. }
            | Self::Forfeited { seat, .. }
            | Self::Stderr { seat, .. } => Some(*seat),
            Self::Noted { .. } => None,
        }
    }

    /// The line as text, without its newline.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(&RawLine::from(self))
    }

    /// Parses a line. `None` if it is not a line of a record.
    pub fn parse(text: &'a str) -> Option<Self> {
        Self::parsed(PlainLine::parse(text).as_ref(), text)
    }

    /// Like [`Self::parse`], for a line of which `plain` is what [`PlainLine::parse`] has found.
    pub(crate) fn parsed(plain: Option<&PlainLine>, line: &'a str) -> Option<Self> {
        let Some(plain) = plain else { return Self::parse_any(line) };
        let PlainLine { time, seat, .. } = *plain;
        let text = &line[plain.text.clone()];
        Some(match plain.spent {
            Some(spent) => Self::Replied { time, seat, reply: text.as_bytes().into(), spent },
            None => Self::Sent { time, seat, text: text.into() },
        })
    }

    /// Parses a line of any kind.
    fn parse_any(text: &str) -> Option<Self> {
        let line = Self::from_raw(serde_json::from_str(text).ok()?)?;
        // Each line has exactly one valid spelling, so a record cannot hide data in another
        // spelling.
        (line.to_json().ok()? == text).then_some(line)
    }

    fn from_raw(raw: RawLine) -> Option<Self> {
        let time = raw.t.map(Micros);
        let spent = match (raw.wall_us, raw.cpu_us) {
            (Some(wall), Some(cpu)) => Some(TimeSpent { wall: Micros(wall), cpu: Micros(cpu) }),
            _ => None,
        };
        Some(if let Some(text) = raw.send {
            Self::Sent { time: time?, seat: raw.seat?, text: text.into() }
        } else if let Some(reply) = raw.reply {
            let reply = reply.into_bytes().into();
            Self::Replied { time: time?, seat: raw.seat?, reply, spent: spent? }
        } else if let Some(reply) = raw.reply_b64 {
            let reply = BASE64.decode(reply).ok()?.into();
            Self::Replied { time: time?, seat: raw.seat?, reply, spent: spent? }
        } else if let Some(forfeit) = raw.forfeit {
            let time = time?;
            let seat = raw.seat?;
            let detail = raw.detail?;
            Self::Forfeited { time, seat, forfeit, spent, detail }
        } else if let Some(hand) = raw.hand {
            let note = Note::Hand { hand, dealer: raw.dealer?, chips: raw.chips? };
            Self::Noted { time: time?, note }
        } else if let Some(note) = raw.note {
            Self::Noted { time: time?, note: Note::Text { note } }
        } else if let Some(frame) = raw.frame {
            Self::Noted { time: time?, note: Note::Frame { frame, viewer: raw.viewer } }
        } else {
            Self::Stderr { seat: raw.seat?, text: raw.stderr?, dropped: raw.dropped? }
        })
    }
}

impl From<Note> for RawLine {
    fn from(note: Note) -> Self {
        let base = Self::default();
        match note {
            Note::Hand { hand, dealer, chips } => {
                Self { hand: Some(hand), dealer: Some(dealer), chips: Some(chips), ..base }
            }
            Note::Text { note } => Self { note: Some(note), ..base },
            Note::Frame { frame, viewer } => Self { frame: Some(frame), viewer, ..base },
        }
    }
}

impl From<&Line<'_>> for RawLine {
    fn from(line: &Line<'_>) -> Self {
        let base =
            |time: Micros, seat| Self { t: Some(time.0), seat: Some(seat), ..Self::default() };
        match line.clone() {
            Line::Sent { time, seat, text } => {
                Self { send: Some(text.into_owned()), ..base(time, seat) }
            }
            Line::Replied { time, seat, reply, spent } => {
                let (reply, reply_b64) = match String::from_utf8(reply.into_owned()) {
                    Ok(text) => (Some(text), None),
                    Err(bytes) => (None, Some(BASE64.encode(bytes.as_bytes()))),
                };
                let wall_us = Some(spent.wall.0);
                let cpu_us = Some(spent.cpu.0);
                Self { reply, reply_b64, wall_us, cpu_us, ..base(time, seat) }
            }
            Line::Forfeited { time, seat, forfeit, spent, detail } => Self {
                forfeit: Some(forfeit),
                wall_us: spent.map(|spent| spent.wall.0),
                cpu_us: spent.map(|spent| spent.cpu.0),
                detail: Some(detail),
                ..base(time, seat)
            },
            Line::Noted { time, note } => Self { t: Some(time.0), ..Self::from(note) },
            Line::Stderr { seat, text, dropped } => Self {
                seat: Some(seat),
                stderr: Some(text),
                dropped: Some(dropped),
                ..Self::default()
            },
        }
    }
}
