//! Writes records while a match is played. Their format and verification are
//! in [`arbiter_replay`].

mod recorder;

pub use arbiter_replay::{
    Difference, Footer, Header, RECORD_VERSION, ReplayEvent, ReplayObserver, SeatLine, Transcript,
    TranscriptHash, Verified, replay_with, verify,
};
pub use recorder::Recorder;
