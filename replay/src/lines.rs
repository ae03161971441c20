//! Reads the lines of a record one after the other.

use std::io;

use arbiter_games::Games;
use memchr::memchr;
use thiserror::Error;

use crate::line_blocks::{LineError, ReadLines};
use crate::record_line::{Header, Line, RECORD_VERSION};
use crate::seal::SealHasher;

/// The first difference between a record and the rules.
#[derive(Debug, Error)]
pub enum Difference {
    /// A wrong line.
    #[error("line {line}: {problem}")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// The problem with the line.
        problem: String,
    },
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

/// Parses the first line and checks that this program can replay the record.
pub(crate) fn read_header<R: ReadLines>(
    games: &Games,
    lines: &mut Lines<R>,
) -> Result<Header, Difference> {
    let text = lines.next_text()?.to_owned();
    let header = Header::parse(games, &text)
        .map_err(|error| lines.difference(format!("not a valid header: {error}")))?;
    if serde_json::to_string(&header).ok().as_deref() != Some(text.as_str()) {
        return Err(lines.difference("not the canonical form of a header"));
    }
    check_version(header.record, lines)?;
    Ok(header)
}

/// Refuses a record of another format than this program supports.
pub(crate) fn check_version<R: ReadLines>(
    version: u32,
    lines: &Lines<R>,
) -> Result<(), Difference> {
    if version == RECORD_VERSION {
        return Ok(());
    }
    Err(lines
        .difference(format!("record format {version}; this program supports {RECORD_VERSION}")))
}

/// Reads, counts and hashes the lines of a record.
pub(crate) struct Lines<R> {
    record: R,
    /// The number of the last line that was read or peeked, from 1.
    number: usize,
    /// Of the lines before `sealed`.
    seal: SealHasher,
    /// Some lines, with their newlines.
    block: String,
    /// Where the lines of the block begin that `seal` does not have.
    sealed: usize,
    /// Where the next line begins in the block.
    begin: usize,
    /// Where it ends, if it was peeked.
    end: Option<usize>,
}

impl<R: ReadLines> Lines<R> {
    /// The lines of a record, none of which was read.
    pub(crate) fn new(record: R) -> Self {
        Self {
            record,
            number: 0,
            seal: SealHasher::default(),
            block: String::new(),
            sealed: 0,
            begin: 0,
            end: None,
        }
    }

    /// Checks that the record has no more lines. Returns their number.
    pub(crate) fn end(&mut self) -> Result<usize, Difference> {
        let lines = self.number;
        match self.find_end() {
            Ok(None) => Ok(lines),
            Ok(Some(_)) | Err(Difference::Line { .. }) => {
                Err(self.difference("the record continues after its last line"))
            }
            Err(unreadable) => Err(unreadable),
        }
    }

    /// A difference at the last line that was read or peeked.
    pub(crate) fn difference(&self, problem: impl Into<String>) -> Difference {
        Difference::Line { line: self.number, problem: problem.into() }
    }

    /// Returns the next line without its newline, and does not consume it.
    pub(crate) fn peek(&mut self) -> Result<&str, Difference> {
        let end = self.require_end()?;
        Ok(&self.block[self.begin..end])
    }

    /// Returns the next line without its newline, and adds it to the seal.
    pub(crate) fn next_text(&mut self) -> Result<&str, Difference> {
        let end = self.require_end()?;
        let begin = std::mem::replace(&mut self.begin, end + 1);
        self.end = None;
        Ok(&self.block[begin..end])
    }

    /// Parses the next line of the match.
    pub(crate) fn next(&mut self) -> Result<Line<'_>, Difference> {
        self.require_end()?;
        let number = self.number;
        let text = self.next_text()?;
        Line::parse(text).ok_or_else(|| {
            let problem = format!("not a valid line: {text}");
            Difference::Line { line: number, problem }
        })
    }

    /// The seal of the lines so far, without a peeked one.
    pub(crate) fn seal(&mut self) -> blake3::Hash {
        self.seal.add_lines(&self.block[self.sealed..self.begin]);
        self.sealed = self.begin;
        self.seal.seal()
    }

    /// Where the next line ends.
    fn require_end(&mut self) -> Result<usize, Difference> {
        self.find_end()?.ok_or_else(|| self.difference("the record ends before the match does"))
    }

    /// Where the next line ends. `None` if there is no line.
    fn find_end(&mut self) -> Result<Option<usize>, Difference> {
        if self.end.is_none() {
            self.number += 1;
            if self.begin == self.block.len() {
                self.read_block()?;
            }
            let newline = memchr(b'\n', &self.block.as_bytes()[self.begin..]);
            self.end = newline.map(|newline| self.begin + newline);
        }
        Ok(self.end)
    }

    /// Replaces the block by the next one.
    fn read_block(&mut self) -> Result<(), Difference> {
        self.seal.add_lines(&self.block[self.sealed..]);
        self.sealed = 0;
        self.begin = 0;
        self.record.read_lines(&mut self.block).map_err(|error| match error {
            LineError::Unreadable(error) => Difference::Unreadable(error),
            LineError::NotUtf8 | LineError::TooLong | LineError::Incomplete => {
                self.difference(error.to_string())
            }
        })
    }
}
