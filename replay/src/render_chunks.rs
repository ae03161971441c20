//! Replays a record and renders chunks of its steps.
//!
//! # Theory of operation
//!
//! Three threads work at the same time, because a long match has a million lines, and a reader
//! waits for the page: one reads the record ([`read_ahead`]), one replays it, and one renders the
//! steps and compresses the chunks. Each passes its work on in large pieces.

use std::io;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use arbiter_games::{EntrantName, Games};

use crate::chunk::{STEPS_PER_CHUNK, encode_chunk};
use crate::line_blocks::ReadLines;
use crate::lines::Difference;
use crate::read_ahead::read_ahead;
use crate::steps::visit_steps;
use crate::steps_builder::{Overview, ShownNames, Step};

/// Chunks of drawn steps that wait to be rendered. They bound the memory.
const WAITING_CHUNKS: usize = 8;

/// A replay with some of its chunks rendered.
#[derive(Clone, Debug)]
pub struct RenderedChunks {
    /// The whole replay.
    pub overview: Overview,
    /// The requested chunks that exist, in order, as [`encode_chunk`] encodes them.
    pub chunks: Vec<Vec<u8>>,
}

/// The steps of a chunk, and the names of the bots.
type DrawnChunk = (Vec<EntrantName>, Vec<Step>);

/// Replays a record of a match of one of these games. Renders the chunks whose numbers are in
/// `requested`, with the names that `shown` gives for those in the record.
///
/// # Errors
/// The first difference between the record and the rules.
pub fn render_chunks(
    games: &Games,
    record: impl ReadLines + Send,
    (requested, shown): (Range<usize>, &ShownNames),
) -> Result<RenderedChunks, Difference> {
    let first_step = |chunk: usize| chunk.saturating_mul(STEPS_PER_CHUNK);
    let steps = first_step(requested.start)..first_step(requested.end);
    thread::scope(|scope| {
        let (sender, drawn) = sync_channel::<DrawnChunk>(WAITING_CHUNKS);
        let name = "step renderer".to_owned();
        let renderer = thread::Builder::new().name(name).spawn_scoped(scope, || render(drawn))?;
        // The renderer ends when it has no sender: this closure owns it.
        let overview = read_ahead(record, move |lines| {
            let mut chunk = DrawnChunk::default();
            let send = |chunk: &mut DrawnChunk| {
                // The renderer is gone if it failed. It says why.
                drop(sender.send(std::mem::take(chunk)));
            };
            let overview = visit_steps(games, lines, (steps, shown), |names, step| {
                if chunk.1.is_empty() {
                    chunk.0 = names.to_vec();
                }
                chunk.1.push(step);
                if chunk.1.len() == STEPS_PER_CHUNK {
                    send(&mut chunk);
                }
            });
            if !chunk.1.is_empty() {
                send(&mut chunk);
            }
            overview
        })??;
        let chunks = renderer.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        Ok(RenderedChunks { overview, chunks })
    })
}

/// Renders and encodes chunks until there is no sender.
fn render(drawn: Receiver<DrawnChunk>) -> io::Result<Vec<Vec<u8>>> {
    let encode = |(names, steps): DrawnChunk| {
        encode_chunk(steps.iter().map(|step| step.render(&names).into_string()))
    };
    drawn.into_iter().map(encode).collect()
}
