//! Records of matches: their format, their verification by replay, and their pictures.
//!
//! A record starts with a [`Header`], has a [`Line`] for each message, reply, forfeit and note, and
//! ends with the result and two hashes. `transcript` covers the dialogue without times:
//! deterministic bots give the same hash on any machine. `seal` covers every byte before the last
//! line, so it reveals any edit.
//!
//! [`verify()`] replays a record through the rules. [`replay_with`] also calls an observer.
//! Pictures show the state of the rules, so they always agree with the result. Rules of game
//! packages do not run where pages are made: their replays show the pictures of the record.

mod chunk;
mod compression;
mod draw;
mod line_blocks;
mod lines;
mod other_package;
mod page;
mod piece_hasher;
mod plain_line;
mod read_ahead;
mod reader;
mod record_line;
mod recorded_steps;
mod render;
mod render_chunks;
mod seal;
mod steps;
mod steps_builder;
mod transcript;
mod verify;
mod viewer;
mod visible_text;
mod write;

pub use chunk::{STEPS_PER_CHUNK, decode_chunk};
pub use compression::{MAX_LINE, MAX_RECORD, MAX_WINDOW_LOG, unpack, unpack_from};
pub use draw::{Picture, draw};
pub use line_blocks::{Block, LineBlocks, LineError, ReadLines};
pub use lines::Difference;
pub use other_package::with_package;
pub use page::{PageOptions, replay_page};
pub use read_ahead::{AheadReader, read_ahead};
pub use reader::{Reader, ShownNames};
pub use record_line::{Footer, Header, Line, RECORD_VERSION, RecordedPackage, SeatLine};
pub use render_chunks::{RenderedChunks, render_chunks};
pub use seal::SealHasher;
pub use steps::steps;
pub use steps_builder::{Clock, ForfeitedSeat, Overview, Stderr, Step, StepForfeit, Steps};
pub use transcript::{Transcript, TranscriptHash};
pub use verify::{ReplayEvent, ReplayObserver, Verified, replay_with, verify};
pub use viewer::{Autoplay, SCRIPT, STYLE, StepSource, Viewer};
pub use visible_text::{is_bidi_control, is_invisible, label, number_text, without_bidi_controls};
pub use write::Writer;
