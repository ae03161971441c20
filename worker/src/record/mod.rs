//! Writes records while a match is played. Their format and verification are
//! in [`arbiter_replay`].

mod recorder;

pub use arbiter_replay::{
    Difference, Follower, Header, Over, RECORD_VERSION, Scene, SeatLine, Transcript,
    TranscriptHash, Verified, follow, verify,
};
pub use recorder::Recorder;
