//! Chunks of steps, as the viewer receives them.
//!
//! # Theory of operation
//!
//! A step is some kilobytes of HTML, and a long match has tens of thousands of them. But a step
//! differs from the one before by a few words and numbers. So a chunk holds its first step whole,
//! and each other step as the changes to the one before. A viewer that jumps into the middle of a
//! match needs one chunk.
//!
//! A chunk is gzip (which browsers decompress, with `DecompressionStream`) of a JSON array. Its
//! first item is the HTML of the first step. Each other item is an array of operations that turn
//! the HTML of the step before into the HTML of this step, from left to right: a positive number
//! copies that number of characters, a negative one skips them, and a text is inserted. At the end
//! the rest is copied. Characters are those of JavaScript: 16-bit units of UTF-16.

use std::io::{self, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The number of steps in a chunk; the last chunk of a match may have fewer.
pub const STEPS_PER_CHUNK: usize = 32;

/// How far two texts are searched for the next equal place, in tokens that are skipped and inserted
/// together.
const MAX_SEARCH: usize = 48;
/// How much farther it is searched where as many tokens are skipped as inserted, or only one of
/// both: a reply of tricks has 200 tokens, and most of them change.
const MAX_LENGTH: usize = 1024;

/// A step of a chunk.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Item {
    /// The HTML of the first step.
    Whole(String),
    /// The changes to the step before.
    Changes(Vec<Operation>),
}

/// An operation on the text of the step before.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Operation {
    /// The number of characters to copy; the number of those to skip, if it is negative.
    Move(isize),
    /// Inserts a text.
    Insert(String),
}

/// Encodes the HTML of consecutive steps.
///
/// # Errors
/// If the compressor fails.
pub(crate) fn encode_chunk(steps: impl Iterator<Item = String>) -> io::Result<Vec<u8>> {
    let mut items = Vec::new();
    let mut previous: Option<String> = None;
    for html in steps {
        items.push(match previous {
            Some(previous) => Item::Changes(changes(&previous, &html)),
            None => Item::Whole(html.clone()),
        });
        previous = Some(html);
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&serde_json::to_vec(&items)?)?;
    gzip.finish()
}

/// The HTML of the steps of a chunk.
///
/// # Errors
/// If the bytes are not a chunk.
pub fn decode_chunk(chunk: &[u8]) -> io::Result<Vec<String>> {
    let mut items = serde_json::from_reader::<_, Vec<Value>>(GzDecoder::new(chunk))?.into_iter();
    let mut steps = Vec::new();
    let Some(first) = items.next() else { return Ok(steps) };
    let mut step: String = serde_json::from_value(first)?;
    for item in items {
        let operations: Vec<Operation> = serde_json::from_value(item)?;
        let next = apply(&step, &operations).ok_or(io::ErrorKind::InvalidData)?;
        steps.push(std::mem::replace(&mut step, next));
    }
    steps.push(step);
    Ok(steps)
}

/// The text that operations make of the text before. `None` if they do not fit it.
fn apply(before: &str, operations: &[Operation]) -> Option<String> {
    let before: Vec<u16> = before.encode_utf16().collect();
    let mut at = 0;
    let mut after = Vec::new();
    for operation in operations {
        match operation {
            Operation::Move(count) => {
                let end = at + count.unsigned_abs();
                let moved = before.get(at..end)?;
                after.extend(moved.iter().filter(|_| *count > 0));
                at = end;
            }
            Operation::Insert(text) => after.extend(text.encode_utf16()),
        }
    }
    after.extend(before.get(at..)?);
    String::from_utf16(&after).ok()
}

/// The operations that turn `old` into `new`.
fn changes(old: &str, new: &str) -> Vec<Operation> {
    let old = tokens(old);
    let new = tokens(new);
    let mut operations = Operations::default();
    let mut at = 0;
    let mut next = 0;
    while at < old.len() || next < new.len() {
        if at < old.len() && old.get(at) == new.get(next) {
            operations.copy(old[at]);
            at += 1;
            next += 1;
            continue;
        }
        let (skipped, inserted) = next_equal(&old[at..], &new[next..]);
        for token in &old[at..at + skipped] {
            operations.skip(token);
        }
        for token in &new[next..next + inserted] {
            operations.insert(token);
        }
        at += skipped;
        next += inserted;
    }
    operations.finish()
}

/// How many tokens to skip in `old` and to insert from `new` before both are equal again.
fn next_equal(old: &[&str], new: &[&str]) -> (usize, usize) {
    let is_equal = |skipped: usize, inserted: usize| {
        let old = old.get(skipped..skipped + 2);
        old.is_some() && old == new.get(inserted..inserted + 2)
    };
    let candidates = (1..MAX_SEARCH)
        .flat_map(|distance| (0..=distance).map(move |skipped| (skipped, distance - skipped)));
    // First as many as are inserted: most often a text or a tag is replaced by another one.
    let replaced = (1..4).map(|count| (count, count));
    // The distance of candidates allows the replacement of half as many tokens.
    let far =
        (MAX_SEARCH / 2..MAX_LENGTH).flat_map(|count| [(count, count), (0, count), (count, 0)]);
    replaced
        .chain(candidates)
        .chain(far)
        .find(|(skipped, inserted)| is_equal(*skipped, *inserted))
        .unwrap_or((old.len(), new.len()))
}

/// The tags of a text, and the words and spaces between them.
fn tokens(html: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = html;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '<' => rest.find('>').map(|end| end + 1),
            ' ' => Some(1),
            _ => rest.find(['<', ' ']),
        };
        let (token, behind) = rest.split_at(end.unwrap_or(rest.len()));
        tokens.push(token);
        rest = behind;
    }
    tokens
}

/// Collects operations; consecutive ones of the same kind become one.
#[derive(Debug, Default)]
struct Operations {
    done: Vec<Operation>,
}

impl Operations {
    fn copy(&mut self, token: &str) {
        let count = units(token);
        match self.done.last_mut() {
            Some(Operation::Move(last)) if *last > 0 => *last += count,
            _ => self.done.push(Operation::Move(count)),
        }
    }

    fn skip(&mut self, token: &str) {
        let count = units(token);
        match self.done.last_mut() {
            Some(Operation::Move(last)) if *last < 0 => *last -= count,
            _ => self.done.push(Operation::Move(-count)),
        }
    }

    fn insert(&mut self, token: &str) {
        match self.done.last_mut() {
            Some(Operation::Insert(text)) => text.push_str(token),
            _ => self.done.push(Operation::Insert(token.to_owned())),
        }
    }

    fn finish(mut self) -> Vec<Operation> {
        if matches!(self.done.last(), Some(Operation::Move(1..))) {
            self.done.pop();
        }
        self.done
    }
}

/// The length of a text in JavaScript's characters.
fn units(text: &str) -> isize {
    text.chars().map(|c| if u32::from(c) < 0x10000 { 1 } else { 2 }).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, ProptestConfig, Strategy, prop_oneof, proptest};

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn a_decoded_chunk_has_the_steps_that_were_encoded(steps in steps()) {
            let chunk = encode_chunk(steps.iter().cloned()).unwrap();
            assert_eq!(decode_chunk(&chunk).unwrap(), steps);
        }
    }

    proptest! {
        /// A change in the middle of a page must not store the page behind it again.
        #[test]
        fn only_the_changed_tokens_are_stored(skipped in 0..MAX_LENGTH, inserted in 0..MAX_LENGTH) {
            let lengths = [(skipped, skipped), (skipped, 0), (0, inserted), (skipped % 24, inserted % 24)];
            for (skipped, inserted) in lengths {
                let tags = |name: &str, count: usize| -> String {
                    (0..count).map(|number| format!("<{name}{number}>")).collect::<Vec<_>>().concat()
                };
                let step = |change: String| [tags("a", 30), change, tags("z", 30)].concat();
                let old = tags("old", skipped);
                let new = tags("new", inserted);
                let mut expected = vec![Operation::Move(units(&tags("a", 30)))];
                expected.extend((skipped > 0).then(|| Operation::Move(-units(&old))));
                expected.extend((inserted > 0).then(|| Operation::Insert(new.clone())));
                if skipped + inserted == 0 {
                    expected.clear();
                }
                assert_eq!(changes(&step(old), &step(new)), expected, "{skipped}, {inserted}");
            }
        }
    }

    /// Texts that resemble pages, with characters of all lengths and tags that do not end.
    fn steps() -> impl Strategy<Value = Vec<String>> {
        let word = prop_oneof![
            Just("<td>"),
            Just("</td>"),
            Just("<b class=\"x\">"),
            Just(" "),
            Just("12"),
            Just("3.4 s"),
            Just("♠"),
            Just("🂡"),
            Just("\u{e9}\n\"\\"),
            Just("<"),
            Just(">"),
        ];
        let step = proptest::collection::vec(word, 0..60);
        proptest::collection::vec(step, 0..6)
            .prop_map(|steps| steps.iter().map(|step| step.concat()).collect())
    }

    #[test]
    fn a_changed_number_costs_a_few_bytes() {
        let row = |number: u32| format!("<tr><td>7</td><td>bot, {number} cards</td></tr>");
        let step = |number: u32| row(1).repeat(20) + &row(number) + &row(2).repeat(20);
        let operations = changes(&step(3), &step(4));
        let length = isize::try_from(row(1).len() * 20 + "<tr><td>7</td><td>bot, ".len());
        let copied = Operation::Move(length.unwrap());
        let expected = [copied, Operation::Move(-1), Operation::Insert("4".to_owned())];
        assert_eq!(operations, expected);
        assert_eq!(changes(&step(3), &step(3)), []);
    }
}
