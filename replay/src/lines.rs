//! Reads the lines of a record one after the other.

use std::io::{self, BufRead, Read as _};

use arbiter_games::Games;
use thiserror::Error;

use crate::compression::MAX_LINE;
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
pub(crate) fn read_header<R: BufRead>(
    games: &Games,
    lines: &mut Lines<R>,
) -> Result<Header, Difference> {
    let text = lines.next_text()?;
    let header = Header::parse(games, &text)
        .map_err(|error| lines.difference(format!("not a valid header: {error}")))?;
    if serde_json::to_string(&header).ok().as_deref() != Some(text.as_str()) {
        return Err(lines.difference("not the canonical form of a header"));
    }
    check_version(header.record, lines)?;
    Ok(header)
}

/// Refuses a record of another format than this program supports.
pub(crate) fn check_version<R: BufRead>(version: u32, lines: &Lines<R>) -> Result<(), Difference> {
    if version == RECORD_VERSION {
        return Ok(());
    }
    Err(lines
        .difference(format!("record format {version}; this program supports {RECORD_VERSION}")))
}

/// Reads, counts and hashes the lines of a record.
pub(crate) struct Lines<R> {
    record: R,
    pub(crate) number: usize,
    seal: SealHasher,
    /// The next line, if it was peeked.
    next: Option<String>,
}

impl<R: BufRead> Lines<R> {
    /// The lines of a record, none of which was read.
    pub(crate) fn new(record: R) -> Self {
        Self { record, number: 0, seal: SealHasher::default(), next: None }
    }

    /// Checks that the record has no more lines. Returns their number.
    pub(crate) fn end(&mut self) -> Result<usize, Difference> {
        let lines = self.number;
        match self.unsealed_text() {
            Err(Difference::Line { .. }) if self.record.fill_buf()?.is_empty() => Ok(lines),
            _ => Err(self.difference("the record continues after its last line")),
        }
    }

    pub(crate) fn difference(&self, problem: impl Into<String>) -> Difference {
        Difference::Line { line: self.number, problem: problem.into() }
    }

    /// Returns the next line without its newline, and does not consume it.
    pub(crate) fn peek(&mut self) -> Result<&str, Difference> {
        let next = match self.next.take() {
            Some(text) => text,
            None => self.unsealed_text()?,
        };
        Ok(self.next.insert(next))
    }

    /// Returns the next line without its newline, and adds it to the seal.
    pub(crate) fn next_text(&mut self) -> Result<String, Difference> {
        let text = match self.next.take() {
            Some(text) => text,
            None => self.unsealed_text()?,
        };
        self.seal.add_line(&text);
        Ok(text)
    }

    /// The seal of the lines so far, without a peeked one.
    pub(crate) fn seal(&mut self) -> blake3::Hash {
        self.seal.seal()
    }

    fn unsealed_text(&mut self) -> Result<String, Difference> {
        let mut text = String::new();
        self.number += 1;
        let bytes = self.record.by_ref().take(MAX_LINE).read_line(&mut text);
        if let Err(error) = &bytes
            && error.kind() == io::ErrorKind::InvalidData
        {
            return Err(self.difference("not UTF-8"));
        }
        if bytes? == 0 {
            return Err(self.difference("the record ends before the match does"));
        }
        if text.pop() != Some('\n') {
            let is_too_long = u64::try_from(text.len()).is_ok_and(|length| length + 1 >= MAX_LINE);
            return Err(self.difference(if is_too_long {
                "longer than a line of a record may be"
            } else {
                "the record ends within a line"
            }));
        }
        Ok(text)
    }

    /// Parses the next line of the match.
    pub(crate) fn next(&mut self) -> Result<Line, Difference> {
        let text = self.next_text()?;
        Line::parse(&text).ok_or_else(|| self.difference(format!("not a valid line: {text}")))
    }
}
