//! Records: the full transcript of a match, as JSON Lines.
//!
//! A record opens with a [`Header`], holds a line for everything said, answered, forfeited or
//! noted, and closes with the result. Two hashes stand in the last line. `transcript` covers what
//! was said and nothing about time, so that deterministic bots give the same one on any machine;
//! `seal` covers every byte before the last line, so that no edit passes unseen.

mod line;
mod transcript;
mod verify;
mod write;

pub use line::{Header, Over, RECORD_VERSION, SeatLine};
pub use transcript::{Transcript, TranscriptHash};
pub use verify::{Answered, Audience, Difference, Verified, replay, verify};
pub use write::Recorder;
