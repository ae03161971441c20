//! Records of matches: their format, their verification by replay, and their pictures.
//!
//! A record opens with a [`Header`], holds a [`Line`] for everything said, answered, forfeited or
//! noted, and closes with the result. Two hashes stand in the last line. `transcript` covers what
//! was said and nothing about time, so that deterministic bots give the same one on any machine;
//! `seal` covers every byte before the last line, so that no edit passes unseen.
//!
//! [`verify()`] replays a record through the rules, and [`follow`] lets somebody watch it. What is
//! drawn is the state of the rules themselves: a picture cannot disagree with the result.

mod compression;
mod draw;
mod record_line;
mod render;
mod steps;
mod transcript;
mod verify;
mod write;

pub use compression::{LARGEST_RECORD, LONGEST_LINE, WINDOW, unpack};
pub use draw::{Picture, draw};
pub use record_line::{Header, Line, Over, RECORD_VERSION, SeatLine};
pub use render::STYLE;
pub use steps::{Clock, Stderr, Step, Steps, steps};
pub use transcript::{Transcript, TranscriptHash};
pub use verify::{Difference, Follower, Scene, Verified, follow, verify};
pub use write::Writer;
