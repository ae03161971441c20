//! Redaction of records for owners of some of the seats. The standard error of other bots is
//! removed. The evidence of their forfeits is also removed, unless the rules can recompute it. All
//! lines that determine the result remain. The seal in the last line is recomputed, so a redacted
//! record can be verified like any other.
//!
//! A record is a stream of JSON lines ([docs/records.md]). Only the compressed result is held in
//! memory.

use std::io::{self, Read, Write as _};
use std::mem;

use arbiter_replay::{LineBlocks, LineError, SealHasher};
use memchr::memchr_iter;
use serde_json::{Map, Value};
use thiserror::Error;

/// The zstd level. It is low, because the result is sent only once.
const COMPRESSION_LEVEL: i32 = 1;

/// Why a record cannot be redacted.
#[derive(Debug, Error)]
pub enum RedactError {
    /// It is not a record.
    #[error("line {0} is not a line of a record")]
    Malformed(usize),
    /// It cannot be decompressed.
    #[error("cannot decompress the record: {0}")]
    Unreadable(#[from] io::Error),
}

/// Redacts a compressed record for the owner of the seats for which `visible` is true. The first
/// item is for seat 1. The result is compressed, too.
///
/// A record of a long match has a million lines, and few of them can be private. So a record whose
/// private lines are all visible is not compressed again, and messages and replies are not parsed.
pub fn redact(packed: &[u8], visible: &[bool]) -> Result<Vec<u8>, RedactError> {
    if !has_private_lines(packed, visible)? {
        return Ok(packed.to_vec());
    }
    remove_private_lines(packed, visible)
}

/// Whether a compressed record has lines that [`redact_line`] removes or changes.
fn has_private_lines(packed: &[u8], visible: &[bool]) -> Result<bool, RedactError> {
    let mut lines = open(packed, visible)?;
    let mut block = String::new();
    while !lines.is_redacted {
        lines.read(&mut block)?;
        if block.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a line is a message or a reply, which are never private.
fn is_dialogue(text: &str) -> bool {
    let rest = text.strip_prefix("{\"t\":").map(behind_digits);
    let rest = rest.and_then(|rest| rest.strip_prefix(",\"seat\":")).map(behind_digits);
    let is_message =
        |rest: &str| rest.starts_with(",\"send\":\"") || rest.starts_with(",\"reply\":\"");
    rest.is_some_and(is_message) && text.ends_with('}')
}

/// The text behind the digits at its beginning.
fn behind_digits(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_digit())
}

fn remove_private_lines(packed: &[u8], visible: &[bool]) -> Result<Vec<u8>, RedactError> {
    let mut lines = open(packed, visible)?;
    let mut redacted = zstd::Encoder::new(Vec::new(), COMPRESSION_LEVEL)?;
    let mut block = String::new();
    loop {
        lines.read(&mut block)?;
        if block.is_empty() {
            return Ok(redacted.finish()?);
        }
        redacted.write_all(block.as_bytes())?;
    }
}

fn open<'a>(packed: &'a [u8], visible: &'a [bool]) -> io::Result<VisibleLines<'a, impl Read + 'a>> {
    Ok(VisibleLines {
        record: LineBlocks::new(arbiter_replay::unpack(packed)?),
        visible,
        number: 0,
        is_over: false,
        is_redacted: false,
        seal: SealHasher::default(),
        redacted: String::new(),
    })
}

/// Reads a record and redacts it.
struct VisibleLines<'a, R> {
    record: LineBlocks<R>,
    visible: &'a [bool],
    /// The number of lines read so far.
    number: usize,
    /// Whether the last line was read.
    is_over: bool,
    /// Whether a line was removed or changed.
    is_redacted: bool,
    /// Of the redacted lines.
    seal: SealHasher,
    /// The redacted lines of a block, if one was removed or changed.
    redacted: String,
}

impl<R: Read> VisibleLines<'_, R> {
    /// Replaces `block` by the next redacted lines. It is empty at the end of the record.
    fn read(&mut self, block: &mut String) -> Result<(), RedactError> {
        loop {
            let malformed = RedactError::Malformed(self.number + 1);
            match self.record.read_lines(block) {
                Ok(()) => {}
                Err(LineError::Unreadable(error)) => return Err(error.into()),
                Err(LineError::NotUtf8 | LineError::TooLong | LineError::Incomplete) => {
                    return Err(malformed);
                }
            }
            if block.is_empty() {
                // A record without its last line is incomplete.
                return if self.is_over { Ok(()) } else { Err(malformed) };
            }
            self.redact_block(block)?;
            if !block.is_empty() {
                return Ok(());
            }
        }
    }

    /// Redacts the lines of a block. Almost all of them are messages and replies, so a block rarely
    /// changes.
    fn redact_block(&mut self, block: &mut String) -> Result<(), RedactError> {
        self.redacted.clear();
        // What remains of the lines before this is in `redacted`.
        let mut done = 0;
        let mut begin = 0;
        for newline in memchr_iter(b'\n', block.as_bytes()) {
            let text = &block[begin..newline];
            self.number += 1;
            if self.is_over {
                return Err(RedactError::Malformed(self.number));
            }
            if !is_dialogue(text) {
                let before = &block[done..begin];
                if let Some(redacted) = self.replacement(text, before)? {
                    self.redacted.push_str(before);
                    self.redacted.push_str(&redacted);
                    done = newline + 1;
                }
            }
            begin = newline + 1;
        }
        if done > 0 {
            self.redacted.push_str(&block[done..]);
            mem::swap(block, &mut self.redacted);
        }
        if !self.is_over {
            self.seal.add_lines(block);
        }
        Ok(())
    }

    /// What replaces a line, with its newline: nothing if the line is private. `None` if the line
    /// stays as it is. The lines of the block before it are `redacted` and `before`.
    fn replacement(&mut self, text: &str, before: &str) -> Result<Option<String>, RedactError> {
        let line: Result<Map<String, Value>, _> = serde_json::from_str(text);
        let mut line = line.map_err(|_| RedactError::Malformed(self.number))?;
        self.is_over = line.contains_key("over");
        if !self.is_over {
            let redacted = redact_line(text, line, self.visible);
            let is_same = redacted.as_deref() == Some(text);
            self.is_redacted |= !is_same;
            let redacted = redacted.map(|text| text + "\n").unwrap_or_default();
            return Ok(Some(redacted).filter(|_| !is_same));
        }
        if !self.is_redacted {
            return Ok(None);
        }
        self.seal.add_lines(&self.redacted);
        self.seal.add_lines(before);
        line.insert("seal".to_owned(), self.seal.seal().to_hex().as_str().into());
        Ok(Some(Value::from(line).to_string() + "\n"))
    }
}

/// Redacts a line before the last one. None if the line is removed.
fn redact_line(text: &str, mut line: Map<String, Value>, visible: &[bool]) -> Option<String> {
    let seat = line.get("seat").and_then(Value::as_u64);
    let seat = seat.and_then(|seat| usize::try_from(seat).ok()?.checked_sub(1));
    if seat.is_none_or(|seat| visible.get(seat) == Some(&true)) {
        return Some(text.to_owned());
    }
    if line.contains_key("stderr") {
        return None;
    }
    // The detail of an illegal reply remains: the rules derive it from the line before.
    let is_measured = line.contains_key("wall_us");
    if let Some(detail) = line.get_mut("detail").filter(|_| is_measured) {
        *detail = Value::from("");
        return Some(Value::from(line).to_string());
    }
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::collection;
    use proptest::prelude::{ProptestConfig, proptest};

    use super::*;

    const HEADER: &str = r#"{"record":1,"seats":[{"bot":"ada"},{"bot":"bob"}]}"#;

    fn packed(lines: &[&str]) -> Vec<u8> {
        let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
        zstd::encode_all(text.as_bytes(), 3).unwrap()
    }

    fn redacted(record: &[u8], visible: &[bool]) -> Vec<String> {
        let text = zstd::decode_all(&redact(record, visible).unwrap()[..]).unwrap();
        String::from_utf8(text).unwrap().lines().map(ToOwned::to_owned).collect()
    }

    #[test]
    fn a_record_without_private_lines_stays_as_it_is() {
        let message = r#"{"t":1,"seat":2,"send":"A []"}"#;
        let reply = r#"{"t":2,"seat":2,"reply":"\"detail\":","wall_us":5,"cpu_us":4}"#;
        let illegal = r#"{"t":2,"seat":2,"forfeit":"illegal","detail":"no square"}"#;
        let own_stderr = r#"{"seat":1,"stderr":"ply 7\n","dropped":0}"#;
        let end = r#"{"over":true,"scores":[[2],[0]],"transcript":"ab","seal":"00"}"#;
        let record = packed(&[HEADER, message, reply, illegal, own_stderr, end]);
        assert!(redact(&record, &[true, false]).unwrap() == record);
        assert_eq!(redacted(&record, &[true, false])[5], end, "also a wrong seal");
    }

    #[test]
    fn stderr_and_evidence_of_others_are_removed() {
        let message = r#"{"t":1,"seat":2,"send":"A []"}"#;
        let gone = r#"{"t":9,"seat":2,"forfeit":"gone","wall_us":5,"cpu_us":4,"detail":"SIGSEGV"}"#;
        let illegal = r#"{"t":9,"seat":2,"forfeit":"illegal","detail":"(7,7) is taken"}"#;
        let own_stderr = r#"{"seat":1,"stderr":"ply 7\n","dropped":0}"#;
        let other_stderr = r#"{"seat":2,"stderr":"my secret book\n","dropped":0}"#;
        let end = r#"{"over":true,"scores":[[2],[0]],"transcript":"ab","seal":"00"}"#;
        let record = packed(&[HEADER, message, gone, illegal, own_stderr, other_stderr, end]);
        let lines = redacted(&record, &[true, false]);
        assert_eq!(lines[..2], [HEADER, message]);
        assert_eq!(lines[2], gone.replace("SIGSEGV", ""));
        assert_eq!(lines[3..5], [illegal, own_stderr]);
        let before: String = lines[..5].iter().flat_map(|line| [line, "\n"]).collect();
        let seal = blake3::hash(before.as_bytes()).to_hex();
        assert_eq!(lines[5..], [end.replace("00", &seal)]);
        let all = redacted(&record, &[true, true]);
        assert_eq!(all[..6], [HEADER, message, gone, illegal, own_stderr, other_stderr]);
    }

    #[test]
    fn a_malformed_record_is_refused() {
        let refusal = |record: &[u8]| redact(record, &[true, false]).unwrap_err().to_string();
        assert!(refusal(b"a record").contains("cannot decompress"));
        assert_eq!(refusal(&packed(&[HEADER, "secret"])), "line 2 is not a line of a record");
        assert_eq!(refusal(&packed(&[HEADER])), "line 2 is not a line of a record");
        let end = r#"{"over":true,"seal":""}"#;
        assert_eq!(refusal(&packed(&[HEADER, end, HEADER])), "line 3 is not a line of a record");
        let complete = packed(&[HEADER, end]);
        assert!(refusal(&complete[..complete.len() - 1]).contains("cannot decompress"));
    }

    /// A line for bots of two seats, which may be private, and the line that remains for the owner
    /// of seat 1. `length` is that of its text.
    fn line(kind: u8, length: usize) -> (String, Option<String>) {
        let text = "x".repeat(length);
        let seat = 1 + kind % 2;
        let stderr = format!("{{\"seat\":{seat},\"stderr\":\"{text}\",\"dropped\":0}}");
        let gone = |detail: &str| {
            format!(
                "{{\"t\":9,\"seat\":{seat},\"forfeit\":\"gone\",\"wall_us\":5,\"cpu_us\":4,\
                 \"detail\":\"{detail}\"}}"
            )
        };
        let is_visible = seat == 1;
        match kind / 2 {
            0 => (stderr.clone(), is_visible.then_some(stderr)),
            1 => (gone(&text), Some(gone(if is_visible { &text } else { "" }))),
            _ => {
                let sent = format!("{{\"t\":1,\"seat\":{seat},\"send\":\"{text}\"}}");
                (sent.clone(), Some(sent))
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// The lines are read in blocks of 128 KiB.
        #[test]
        fn long_records_are_redacted_line_by_line(
            lines in collection::vec((0_u8..8, 1_usize..40_000), 1..40),
            bad in 0_usize..80,
        ) {
            let lines = lines.into_iter().map(|(kind, length)| line(kind, length));
            let (whole, remaining): (Vec<_>, Vec<_>) = lines.unzip();
            let remaining: Vec<_> = remaining.into_iter().flatten().collect();
            let end = |seal: &str| format!("{{\"over\":true,\"seal\":\"{seal}\"}}");
            let mut text: Vec<&str> = whole.iter().map(String::as_str).collect();
            let last = end("00");
            text.push(&last);
            let read = redacted(&packed(&text), &[true, false]);
            let (read_end, read_lines) = read.split_last().unwrap();
            assert!(read_lines == remaining);
            let before: String = remaining.iter().flat_map(|line| [line, "\n"]).collect();
            let seal = blake3::hash(before.as_bytes()).to_hex();
            let is_redacted = whole != remaining;
            assert_eq!(*read_end, end(if is_redacted { &seal } else { "00" }));
            if bad < text.len() {
                text.insert(bad, "secret");
                let error = remove_private_lines(&packed(&text), &[true, false]).unwrap_err();
                let expected = format!("line {} is not a line of a record", bad + 1);
                assert_eq!(error.to_string(), expected);
            }
        }
    }
}
