//! Reads a record on another thread, while the caller replays what was read before. To decompress,
//! divide, parse and hash a long record takes as long as its replay.

use std::io;
use std::mem;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use crate::line_blocks::{Block, LineError, ReadLines};

/// Blocks that wait to be read. They bound the memory.
const WAITING_BLOCKS: usize = 4;

/// Calls `read` with the lines, which another thread reads ahead.
///
/// # Errors
/// If no thread can be started. Errors of `lines` are errors of the reader.
pub fn read_ahead<T>(
    lines: impl ReadLines + Send,
    read: impl FnOnce(AheadReader) -> T,
) -> io::Result<T> {
    thread::scope(|scope| {
        let (sender, blocks) = sync_channel(WAITING_BLOCKS);
        let (used, unused) = channel();
        let name = "record reader".to_owned();
        let send = move || send(lines, &sender, &unused);
        thread::Builder::new().name(name).spawn_scoped(scope, send)?;
        Ok(read(AheadReader { blocks, used }))
    })
}

/// Sends blocks of lines until they end, an error occurs or the receiver is gone. Reuses the memory
/// of blocks that were read.
fn send(
    mut lines: impl ReadLines,
    blocks: &SyncSender<Result<Block, LineError>>,
    unused: &Receiver<Block>,
) {
    loop {
        let mut block = unused.try_recv().unwrap_or_default();
        let result = lines.read_block(&mut block).map(|()| block);
        let is_last = result.as_ref().map_or(true, |block| block.text.is_empty());
        // The receiver may be gone.
        if blocks.send(result).is_err() || is_last {
            return;
        }
    }
}

/// Lines that another thread reads.
#[derive(Debug)]
pub struct AheadReader {
    blocks: Receiver<Result<Block, LineError>>,
    /// Gives back the memory of blocks.
    used: Sender<Block>,
}

impl ReadLines for AheadReader {
    fn read_block(&mut self, block: &mut Block) -> Result<(), LineError> {
        // Without a receiver there are no more blocks to read.
        drop(self.used.send(mem::take(block)));
        // Without a sender the lines have ended.
        *block = self.blocks.recv().unwrap_or_else(|_| Ok(Block::default()))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    /// These many blocks of one line, and then perhaps an error.
    struct Numbers(usize, Option<LineError>);

    impl ReadLines for Numbers {
        fn read_block(&mut self, block: &mut Block) -> Result<(), LineError> {
            block.text.clear();
            if self.0 > 0 {
                self.0 -= 1;
                block.text = format!("{}\n", self.0);
                return Ok(());
            }
            self.1.take().map_or(Ok(()), Err)
        }
    }

    /// All lines of a reader, and its error.
    fn read_all(mut reader: AheadReader) -> (Vec<String>, Option<String>) {
        let mut block = Block::default();
        let mut failure = None;
        let blocks = iter::from_fn(|| {
            failure = reader.read_block(&mut block).err();
            Some(block.text.clone()).filter(|block| !block.is_empty())
        });
        (blocks.collect(), failure.map(|error| error.to_string()))
    }

    #[test]
    fn the_lines_arrive_whole() {
        for count in [0, 1, WAITING_BLOCKS, 100 * WAITING_BLOCKS] {
            let expected = (0..count).rev().map(|number| format!("{number}\n")).collect();
            assert_eq!(read_ahead(Numbers(count, None), read_all).unwrap(), (expected, None));
        }
    }

    #[test]
    fn an_error_follows_what_was_read_before() {
        let (lines, error) = read_ahead(Numbers(9, Some(LineError::NotUtf8)), read_all).unwrap();
        assert_eq!((lines.len(), error.as_deref()), (9, Some("not UTF-8")));
    }

    #[test]
    fn a_reader_may_stop_early() {
        let first = |mut reader: AheadReader| {
            let mut block = Block::default();
            reader.read_block(&mut block).map(|()| block.text)
        };
        let lines = read_ahead(Numbers(usize::MAX, None), first).unwrap().unwrap();
        assert_eq!(lines, format!("{}\n", usize::MAX - 1));
    }
}
