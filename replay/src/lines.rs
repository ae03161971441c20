//! Reads the lines of a record one after the other.

use std::io;
use std::mem;

use arbiter_games::Games;
use thiserror::Error;

use crate::line_blocks::{Block, LineError, ReadLines};
use crate::plain_line::PlainLine;
use crate::record_line::{Header, Line, RECORD_VERSION};

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

/// Reads and counts the lines of a record.
pub(crate) struct Lines<R> {
    record: R,
    /// How many lines were read.
    count: usize,
    /// The number of the last line that was read or peeked, from 1.
    number: usize,
    /// The block that has the next line.
    block: Block,
    /// The index of the next line in the block.
    next: usize,
    /// Where the next line begins in the block.
    begin: usize,
}

impl<R: ReadLines> Lines<R> {
    /// The lines of a record, none of which was read.
    pub(crate) fn new(record: R) -> Self {
        Self { record, count: 0, number: 0, block: Block::default(), next: 0, begin: 0 }
    }

    /// Checks that the record has no more lines. Returns their number.
    pub(crate) fn end(&mut self) -> Result<usize, Difference> {
        match self.find_end() {
            Ok(None) => Ok(self.count),
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
        Ok(&self.block.text[self.begin..end])
    }

    /// Parses the next line, and does not consume it. `None` if it is not a line of the match.
    pub(crate) fn peek_line(&mut self) -> Result<Option<Line<'_>>, Difference> {
        let end = self.require_end()?;
        let plain = self.block.lines[self.next].plain.as_ref();
        Ok(Line::parsed(plain, &self.block.text[self.begin..end]))
    }

    /// Returns the next line without its newline.
    pub(crate) fn next_text(&mut self) -> Result<&str, Difference> {
        Ok(self.next_line()?.1)
    }

    /// Parses the next line of the match.
    pub(crate) fn next(&mut self) -> Result<Line<'_>, Difference> {
        let number = self.count + 1;
        let (plain, text) = self.next_line()?;
        Line::parsed(plain, text).ok_or_else(|| {
            let problem = format!("not a valid line: {text}");
            Difference::Line { line: number, problem }
        })
    }

    /// The next line without its newline, and what [`PlainLine::parse`] has found in it.
    fn next_line(&mut self) -> Result<(Option<&PlainLine>, &str), Difference> {
        let end = self.require_end()?;
        let line = &self.block.lines[self.next];
        let begin = mem::replace(&mut self.begin, end + 1);
        self.next += 1;
        self.count += 1;
        Ok((line.plain.as_ref(), &self.block.text[begin..end]))
    }

    /// The seal of the lines that were read.
    pub(crate) fn seal(&self) -> blake3::Hash {
        let mut seal = self.block.seal.clone();
        seal.add_lines(&self.block.text[..self.begin]);
        seal.seal()
    }

    /// Where the next line ends.
    fn require_end(&mut self) -> Result<usize, Difference> {
        self.find_end()?.ok_or_else(|| self.difference("the record ends before the match does"))
    }

    /// Where the next line ends. `None` if there is no line.
    fn find_end(&mut self) -> Result<Option<usize>, Difference> {
        self.number = self.count + 1;
        if self.next == self.block.lines.len() {
            self.read_block()?;
        }
        Ok(self.block.lines.get(self.next).map(|line| line.end))
    }

    /// Replaces the block by the next one.
    fn read_block(&mut self) -> Result<(), Difference> {
        self.next = 0;
        self.begin = 0;
        self.record.read_block(&mut self.block).map_err(|error| match error {
            LineError::Unreadable(error) => Difference::Unreadable(error),
            LineError::NotUtf8 | LineError::TooLong | LineError::Incomplete => {
                self.difference(error.to_string())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line_blocks::LineBlocks;
    use crate::seal::SealHasher;

    /// A reader whose blocks have one line each.
    struct ShortBlocks<'a> {
        lines: std::str::SplitInclusive<'a, char>,
        seal: SealHasher,
    }

    impl ReadLines for ShortBlocks<'_> {
        fn read_block(&mut self, block: &mut Block) -> Result<(), LineError> {
            let line = self.lines.next().unwrap_or_default();
            LineBlocks::new(line.as_bytes()).read_block(block)?;
            block.seal = self.seal.clone();
            self.seal.add_lines(line);
            Ok(())
        }
    }

    #[test]
    fn seals_and_numbers_do_not_depend_on_the_blocks() {
        let line = |number: usize| format!("{{\"t\":{number},\"seat\":1,\"send\":\"a\"}}\n");
        let text: String = (1..=9).map(line).collect();
        let short = ShortBlocks { lines: text.split_inclusive('\n'), seal: SealHasher::default() };
        let mut short = Lines::new(short);
        let mut long = Lines::new(LineBlocks::new(text.as_bytes()));
        let mut read = String::new();
        for number in 1..=9 {
            let expected = line(number);
            assert_eq!(short.peek().unwrap(), expected.trim_end());
            assert_eq!(long.peek().unwrap(), expected.trim_end());
            // The line was peeked, but not read.
            let seal = blake3::hash(read.as_bytes());
            assert_eq!((short.seal(), long.seal()), (seal, seal));
            assert_eq!(short.next().unwrap(), long.next().unwrap());
            let difference = format!("line {number}: x");
            assert_eq!(short.difference("x").to_string(), difference);
            assert_eq!(long.difference("x").to_string(), difference);
            read += &expected;
        }
        assert_eq!((short.end().unwrap(), long.end().unwrap()), (9, 9));
    }
}
