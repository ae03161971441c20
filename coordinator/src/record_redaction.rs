//! Records as they are shown to the owners of some of their seats: what other bots wrote to
//! standard error is left out, and so is the evidence why they forfeited, where the rules cannot
//! compute it again. Everything that the result follows from remains, and the seal in the last line
//! is that of what remains, so that what is shown can be verified like any record.
//!
//! A record is read as lines of JSON ([docs/records.md]) and never held as a whole, only what is
//! shown is, and that compressed.

use std::io::{self, BufRead as _, Read as _, Write};

use arbiter_replay::LONGEST_LINE;
use serde_json::{Map, Value};
use thiserror::Error;

/// How hard what is shown is compressed: it is thrown away after it was sent.
const EFFORT: i32 = 1;

/// Why a record cannot be shown in part.
#[derive(Debug, Error)]
pub enum RedactError {
    /// It is no record.
    #[error("line {0} is none of a record")]
    Malformed(usize),
    /// It cannot be decompressed.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

/// The record `packed`, as the owners of those seats may see it for which `own` says so, seat 1
/// first; compressed, as it came.
pub fn redact(packed: &[u8], own: &[bool]) -> Result<Vec<u8>, RedactError> {
    let mut lines = arbiter_replay::unpack(packed)?;
    let mut shown = zstd::Encoder::new(Vec::new(), EFFORT)?;
    let mut seal = blake3::Hasher::new();
    let mut text = String::new();
    let mut over = false;
    for number in 1.. {
        text.clear();
        if lines.by_ref().take(LONGEST_LINE).read_line(&mut text)? == 0 {
            // A record without its end could show that it was cut, and no more.
            return if over { Ok(shown.finish()?) } else { Err(RedactError::Malformed(number)) };
        }
        let malformed = || RedactError::Malformed(number);
        let text = text.strip_suffix('\n').filter(|_| !over).ok_or_else(malformed)?;
        let mut line: Map<String, Value> = serde_json::from_str(text).map_err(|_| malformed())?;
        over = line.contains_key("over");
        if over {
            line.insert("seal".to_owned(), Value::from(seal.finalize().to_hex().as_str()));
            writeln!(shown, "{}", Value::from(line))?;
        } else if let Some(kept) = kept(text, line, own) {
            for part in [kept.as_bytes(), b"\n"] {
                seal.update(part);
                shown.write_all(part)?;
            }
        }
    }
    unreachable!("a record has fewer lines than there are numbers")
}

/// What is shown of a line before the last one, if anything is.
fn kept(text: &str, mut line: Map<String, Value>, own: &[bool]) -> Option<String> {
    let seat = line.get("seat").and_then(Value::as_u64);
    let seat = seat.and_then(|seat| usize::try_from(seat).ok()?.checked_sub(1));
    if seat.is_none_or(|seat| own.get(seat) == Some(&true)) {
        return Some(text.to_owned());
    }
    if line.contains_key("stderr") {
        return None;
    }
    // What is illegal the rules say, from the answer in the line before.
    let measured = line.contains_key("wall_us");
    if let Some(detail) = line.get_mut("detail").filter(|_| measured) {
        *detail = Value::from("");
        return Some(Value::from(line).to_string());
    }
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"record":1,"seats":[{"bot":"ada"},{"bot":"bob"}]}"#;

    fn packed(lines: &[&str]) -> Vec<u8> {
        let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
        zstd::encode_all(text.as_bytes(), 3).unwrap()
    }

    fn shown(record: &[u8], own: &[bool]) -> Vec<String> {
        let shown = zstd::decode_all(&redact(record, own).unwrap()[..]).unwrap();
        String::from_utf8(shown).unwrap().lines().map(ToOwned::to_owned).collect()
    }

    #[test]
    fn others_see_neither_stderr_nor_evidence() {
        let sent = r#"{"t":1,"seat":2,"send":"A []"}"#;
        let dead = r#"{"t":9,"seat":2,"forfeit":"gone","wall_us":5,"cpu_us":4,"detail":"SIGSEGV"}"#;
        let bad = r#"{"t":9,"seat":2,"forfeit":"illegal","detail":"(7,7) is taken"}"#;
        let mine = r#"{"seat":1,"stderr":"ply 7\n","dropped":0}"#;
        let theirs = r#"{"seat":2,"stderr":"my secret book\n","dropped":0}"#;
        let end = r#"{"over":true,"scores":[[2],[0]],"transcript":"ab","seal":"00"}"#;
        let record = packed(&[HEADER, sent, dead, bad, mine, theirs, end]);
        let lines = shown(&record, &[true, false]);
        assert_eq!(lines[..2], [HEADER, sent]);
        assert_eq!(lines[2], dead.replace("SIGSEGV", ""));
        assert_eq!(lines[3..5], [bad, mine]);
        let before: String = lines[..5].iter().flat_map(|line| [line, "\n"]).collect();
        let seal = blake3::hash(before.as_bytes()).to_hex();
        assert_eq!(lines[5..], [end.replace("00", &seal)]);
        let all = shown(&record, &[true, true]);
        assert_eq!(all[..6], [HEADER, sent, dead, bad, mine, theirs]);
    }

    #[test]
    fn what_is_no_record_is_shown_to_nobody() {
        let refused = |record: &[u8]| redact(record, &[true, false]).unwrap_err().to_string();
        assert!(refused(b"a record").contains("cannot be read"));
        assert_eq!(refused(&packed(&[HEADER, "secret"])), "line 2 is none of a record");
        assert_eq!(refused(&packed(&[HEADER])), "line 2 is none of a record");
        let end = r#"{"over":true,"seal":""}"#;
        assert_eq!(refused(&packed(&[HEADER, end, HEADER])), "line 3 is none of a record");
        let whole = packed(&[HEADER, end]);
        assert!(refused(&whole[..whole.len() - 1]).contains("cannot be read"));
    }
}
