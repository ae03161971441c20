//! Replays a record and renders chunks of its steps.
//!
//! # Theory of operation
//!
//! Three threads work at the same time, because a long match has a million lines, and a reader
//! waits for the page: one reads the record ([`read_ahead`]), one replays it, and one renders the
//! steps and compresses the chunks. Each passes its work on in pieces that are large enough to wake
//! the next thread rarely, and of a limited size: a step of a game package may contain an image.

use std::io;
use std::mem;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use arbiter_games::{EntrantName, Games};

use crate::chunk::{STEPS_PER_CHUNK, encode_chunk};
use crate::line_blocks::ReadLines;
use crate::lines::Difference;
use crate::read_ahead::read_ahead;
use crate::reader::Reader;
use crate::steps::visit_steps;
use crate::steps_builder::{Overview, Step};

/// A piece is passed on when it has this many steps, or more bytes of pictures than this.
const PIECE_STEPS: usize = 32;
const PIECE_BYTES: usize = 256 << 10;
/// Pieces that wait to be rendered.
const WAITING_PIECES: usize = 4;

/// A replay with some of its chunks rendered.
#[derive(Clone, Debug)]
pub struct RenderedChunks {
    /// The whole replay.
    pub overview: Overview,
    /// The requested chunks that exist, in order, for [`decode_chunk`](crate::decode_chunk).
    pub chunks: Vec<Vec<u8>>,
}

/// Drawn steps, one after the other.
#[derive(Debug, Default)]
struct DrawnSteps {
    names: Vec<EntrantName>,
    steps: Vec<Step>,
    /// The size of their pictures.
    bytes: usize,
}

impl DrawnSteps {
    fn push(&mut self, names: &[EntrantName], step: Step) {
        if self.steps.is_empty() {
            self.names = names.to_vec();
        }
        self.bytes += step.picture.markup.0.len();
        self.steps.push(step);
    }

    fn is_full(&self) -> bool {
        self.steps.len() == PIECE_STEPS || self.bytes > PIECE_BYTES
    }

    /// Passes the steps to the renderer. It is gone if it failed, and says why.
    fn send(&mut self, renderer: &SyncSender<Self>) {
        drop(renderer.send(mem::take(self)));
    }
}

/// Replays a record of a match of one of these games for a reader. Renders the chunks whose numbers
/// are in `requested`.
///
/// # Errors
/// The first difference between the record and the rules, for [`Reader::redact`]; or that no thread
/// can be started.
pub fn render_chunks(
    games: &Games,
    record: impl ReadLines + Send,
    (requested, reader): (Range<usize>, Reader<'_>),
) -> Result<RenderedChunks, Difference> {
    let first_step = |chunk: usize| chunk.saturating_mul(STEPS_PER_CHUNK);
    let steps = first_step(requested.start)..first_step(requested.end);
    thread::scope(|scope| {
        let (sender, drawn) = sync_channel(WAITING_PIECES);
        let name = "step renderer".to_owned();
        let renderer = thread::Builder::new().name(name).spawn_scoped(scope, || render(drawn))?;
        // The renderer ends when it has no sender: this closure owns it.
        let overview = read_ahead(record, move |lines| {
            let mut piece = DrawnSteps::default();
            let overview = visit_steps(games, lines, (steps, reader), |names, step| {
                piece.push(names, step);
                if piece.is_full() {
                    piece.send(&sender);
                }
            });
            piece.send(&sender);
            overview
        })??;
        let chunks = renderer.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        Ok(RenderedChunks { overview, chunks })
    })
}

/// Renders and encodes the steps until there is no sender.
fn render(drawn: Receiver<DrawnSteps>) -> io::Result<Vec<Vec<u8>>> {
    let html = |DrawnSteps { names, steps, .. }: DrawnSteps| {
        steps.into_iter().map(move |step| step.render(&names).into_string())
    };
    let mut steps = drawn.into_iter().flat_map(html).peekable();
    let mut chunks = Vec::new();
    while steps.peek().is_some() {
        chunks.push(encode_chunk(steps.by_ref().take(STEPS_PER_CHUNK))?);
    }
    Ok(chunks)
}
