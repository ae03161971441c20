//! Reads the lines of a record in blocks. A long record has a million short lines, and to read each
//! of them alone takes longer than to parse it. What needs no rules is done here, because another
//! thread does it for a replay ([`read_ahead`](crate::read_ahead())): the lines are parsed and
//! hashed.

use std::io::{self, Read};
use std::mem;
use std::string::FromUtf8Error;

use memchr::{memchr, memchr_iter, memrchr};
use thiserror::Error;

use crate::compression::MAX_LINE;
use crate::plain_line::PlainLine;
use crate::seal::SealHasher;

/// How much is read at once, in bytes.
const PIECE_BYTES: usize = 128 << 10;

/// A line with fewer bytes, without its newline, is wrong: none is as short as `{"t":1,"seat":1}`.
const MIN_LINE: usize = 16;

/// Some lines of a record, one after the other.
#[derive(Debug, Default)]
pub struct Block {
    /// The lines, each with its newline. Empty after the last line of the record.
    pub(crate) text: String,
    /// The same lines, parsed.
    pub(crate) lines: Vec<BlockLine>,
    /// The seal of all lines before the block.
    pub(crate) seal: SealHasher,
}

/// A line of a block.
#[derive(Debug)]
pub(crate) struct BlockLine {
    /// Where its newline is in the block.
    pub(crate) end: usize,
    /// What it contains; `None` if it is another line, or wrong.
    pub(crate) plain: Option<PlainLine>,
}

/// Reads the lines of a record in blocks.
pub trait ReadLines {
    /// Replaces `block` by the next lines.
    ///
    /// # Errors
    /// Why the lines that follow cannot be read. Nothing more may be read.
    fn read_block(&mut self, block: &mut Block) -> Result<(), LineError>;
}

/// Why the next line cannot be read.
#[derive(Debug, Error)]
pub enum LineError {
    /// The line is not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// The line has more than [`MAX_LINE`] bytes, with its newline.
    #[error("longer than a line of a record may be")]
    TooLong,
    /// The line has no newline.
    #[error("the record ends within a line")]
    Incomplete,
    /// The record cannot be read.
    #[error(transparent)]
    Unreadable(#[from] io::Error),
}

/// Reads the lines of a text.
#[derive(Debug)]
pub struct LineBlocks<R> {
    text: R,
    /// The beginning of the next line.
    rest: Vec<u8>,
    /// Why the line after those that were read cannot be read.
    failure: Option<LineError>,
    /// Of the blocks that were read.
    seal: SealHasher,
}

impl<R: Read> LineBlocks<R> {
    /// The lines of a text, none of which was read.
    pub fn new(text: R) -> Self {
        Self { text, rest: Vec::new(), failure: None, seal: SealHasher::default() }
    }

    /// Replaces `block` by the next lines: at least one, each with its newline. It is empty after
    /// the last line. The seals of [`ReadLines::read_block`] do not have these lines.
    ///
    /// # Errors
    /// Why the lines that follow cannot be read. `block` is empty, and nothing more may be read.
    pub fn read_lines(&mut self, block: &mut String) -> Result<(), LineError> {
        let mut bytes = mem::take(block).into_bytes();
        bytes.clear();
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.read_bytes(&mut bytes)?;
        *block = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let before = lines_before(error).ok_or(LineError::NotUtf8)?;
                self.failure = Some(LineError::NotUtf8);
                before
            }
        };
        Ok(())
    }

    /// Reads the next lines, which may not be UTF-8.
    fn read_bytes(&mut self, lines: &mut Vec<u8>) -> Result<(), LineError> {
        lines.append(&mut self.rest);
        loop {
            let before = lines.len();
            lines.reserve(PIECE_BYTES);
            let limit = u64::try_from(PIECE_BYTES).expect("it is small");
            let result = self.text.by_ref().take(limit).read_to_end(lines);
            let end = memrchr(b'\n', &lines[before..]).map(|newline| before + newline + 1);
            if let Some(end) = end {
                self.rest.extend_from_slice(&lines[end..]);
                lines.truncate(end);
            }
            // Only the first line may have begun in an earlier piece.
            let first = memchr(b'\n', lines).unwrap_or(lines.len()) + 1;
            if u64::try_from(first).is_ok_and(|length| length > MAX_LINE) {
                return Err(LineError::TooLong);
            }
            match result {
                Err(error) if end.is_some() => self.failure = Some(error.into()),
                Ok(0) => return end_of_text(lines),
                result => drop(result?),
            }
            if end.is_some() {
                return Ok(());
            }
        }
    }
}

impl<R: Read> ReadLines for LineBlocks<R> {
    fn read_block(&mut self, block: &mut Block) -> Result<(), LineError> {
        block.lines.clear();
        self.read_lines(&mut block.text)?;
        let mut begin = 0;
        for end in memchr_iter(b'\n', block.text.as_bytes()) {
            let plain = PlainLine::parse(&block.text[begin..end]);
            block.lines.push(BlockLine { end, plain });
            if end - begin < MIN_LINE {
                // No reader gets beyond a wrong line, and a block full of them needs much memory.
                block.text.truncate(end + 1);
                break;
            }
            begin = end + 1;
        }
        block.seal = self.seal.clone();
        self.seal.add_lines(&block.text);
        Ok(())
    }
}

/// The lines before the first one that is not UTF-8; `None` if there are none.
fn lines_before(error: FromUtf8Error) -> Option<String> {
    let valid = error.utf8_error().valid_up_to();
    let mut before = error.into_bytes();
    let end = memrchr(b'\n', &before[..valid])?;
    before.truncate(end + 1);
    Some(String::from_utf8(before).expect("it ends before the first error"))
}

/// Ends a text after the beginning of a line.
fn end_of_text(line: &[u8]) -> Result<(), LineError> {
    if line.is_empty() {
        return Ok(());
    }
    Err(if str::from_utf8(line).is_ok() { LineError::Incomplete } else { LineError::NotUtf8 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a text, and how they end.
    fn lines(text: &[u8]) -> (Vec<String>, Option<String>) {
        let mut blocks = LineBlocks::new(text);
        let mut block = String::new();
        let mut lines = Vec::new();
        loop {
            if let Err(error) = blocks.read_lines(&mut block) {
                assert_eq!(block, "");
                return (lines, Some(error.to_string()));
            }
            if block.is_empty() {
                return (lines, None);
            }
            let read = block.strip_suffix('\n').expect("a block ends with a line");
            lines.extend(read.split('\n').map(str::to_owned));
        }
    }

    /// Lines that end `before` bytes before the end of a piece.
    fn filler(before: usize) -> String {
        let length = PIECE_BYTES - before - 1;
        format!("{}\n", "x\n".repeat(length / 2) + &"x".repeat(length % 2))
    }

    #[test]
    fn lines_do_not_depend_on_the_pieces() {
        let long = "♠".repeat(PIECE_BYTES);
        let rest = format!("a\n\nbä♠\n{long}\nc\n{long}{long}\n\n");
        for before in 0..20 {
            let text = filler(before) + &rest;
            let expected: Vec<_> = text.strip_suffix('\n').unwrap().split('\n').collect();
            let (read, error) = lines(text.as_bytes());
            assert!(read == expected && error.is_none(), "{before}: {error:?}");
        }
        assert_eq!(lines(b""), (vec![], None));
    }

    #[test]
    fn an_error_follows_the_lines_before_it() {
        struct Torn;
        impl Read for Torn {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("torn"))
            }
        }
        let mut blocks = LineBlocks::new((&b"a\nb\nc"[..]).chain(Torn));
        let mut block = String::new();
        blocks.read_lines(&mut block).unwrap();
        assert_eq!(block, "a\nb\n");
        assert_eq!(blocks.read_lines(&mut block).unwrap_err().to_string(), "torn");
    }

    #[test]
    fn a_wrong_line_follows_the_lines_before_it() {
        let limit = usize::try_from(MAX_LINE).unwrap();
        let too_long = format!("a\nb\n{}\nc\n", "d".repeat(limit));
        let endless = format!("a\nb\n{}", "d".repeat(limit));
        let cases: [(&[u8], &str); 6] = [
            (b"a\nb\nc\xffd\ne\n", "not UTF-8"),
            (b"a\nb\n\xe2\x99", "not UTF-8"),
            (b"a\nb\n\xe2\n", "not UTF-8"),
            (b"a\nb\nc", "the record ends within a line"),
            (too_long.as_bytes(), "longer than a line of a record may be"),
            (endless.as_bytes(), "longer than a line of a record may be"),
        ];
        for (wrong, expected) in cases {
            for before in 0..9 {
                let filler = filler(before);
                let (read, error) = lines(&[filler.as_bytes(), wrong].concat());
                assert_eq!(error.as_deref(), Some(expected), "{before}");
                assert!(read.join("\n") == filler + "a\nb", "{before}");
            }
        }
        let longest = format!("{}\n", "d".repeat(limit - 1));
        assert_eq!(lines(longest.as_bytes()).1, None);
    }
}
