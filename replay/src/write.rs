//! Writes the lines of a record.

use std::io::{self, Write};

use arbiter_games::SeatResult;

use crate::record_line::{Footer, Header, Line};
use crate::seal::SealHasher;
use crate::transcript::TranscriptHash;

/// Writes a record and computes its seal.
#[derive(Debug)]
pub struct Writer<W> {
    output: W,
    seal: SealHasher,
}

impl<W: Write> Writer<W> {
    /// Starts a record.
    pub fn new(output: W, header: &Header) -> io::Result<Self> {
        let mut writer = Self { output, seal: SealHasher::default() };
        writer.text(&serde_json::to_string(header)?)?;
        Ok(writer)
    }

    /// Adds a line.
    pub fn line(&mut self, line: &Line<'_>) -> io::Result<()> {
        self.text(&line.to_json()?)
    }

    /// Ends the record with the result and returns the inner writer.
    pub fn finish(mut self, standings: &[SeatResult], transcript: TranscriptHash) -> io::Result<W> {
        let footer = Footer::new(standings, transcript, self.seal.seal());
        self.text(&serde_json::to_string(&footer)?)?;
        Ok(self.output)
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        self.seal.add_line(text);
        self.output.write_all(text.as_bytes())?;
        self.output.write_all(b"\n")
    }
}
