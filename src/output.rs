//! Prints lines, JSON, tables and CSV.
//!
//! Text from other sources (names, reasons, server messages) passes through [`printable`], which
//! replaces terminal control characters.

use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write as _};

use arbiter_games::{Forfeit, Micros};
use arbiter_replay::is_bidi_control;
use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use crate::failure::Failure;

/// Buffered standard output. Call [`Output::flush`] at the end.
#[derive(Debug)]
pub(crate) struct Output(BufWriter<StdoutLock<'static>>);

impl Output {
    pub(crate) fn new() -> Self {
        Self(BufWriter::new(io::stdout().lock()))
    }

    /// Prints one line of text.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        writeln!(self.0, "{}", printable(text)).map_err(write_failure)
    }

    /// Prints a table.
    pub(crate) fn table(&mut self, table: &Columns) -> Result<(), Failure> {
        table.lines().iter().try_for_each(|line| self.line(line))
    }

    /// Prints one JSON object on a line.
    pub(crate) fn json(&mut self, object: &Value) -> Result<(), Failure> {
        writeln!(self.0, "{}", json_text(object)).map_err(write_failure)
    }

    /// Prints one CSV record.
    pub(crate) fn csv(&mut self, cells: &[String]) -> Result<(), Failure> {
        let cells: Vec<_> = cells.iter().map(|cell| csv_cell(cell)).collect();
        write!(self.0, "{}\r\n", cells.join(",")).map_err(write_failure)
    }

    /// Prints bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.0.write_all(bytes).map_err(write_failure)
    }

    /// Flushes the buffer.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.0.flush().map_err(write_failure)
    }

    /// Prints items as JSON, one object per line, or as the rows of a table.
    pub(crate) fn list<T>(
        &mut self,
        json: bool,
        items: &[T],
        object: impl Fn(&T) -> Value,
        mut table: Columns,
        row: impl Fn(&T) -> Vec<String>,
    ) -> Result<(), Failure> {
        if json {
            return items.iter().try_for_each(|item| self.json(&object(item)));
        }
        table.rows.extend(items.iter().map(row));
        self.table(&table)
    }
}

/// Prints with `show` and flushes.
pub(crate) fn print(show: impl FnOnce(&mut Output) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut out = Output::new();
    show(&mut out)?;
    out.flush()
}

/// Prints one line and flushes.
pub(crate) fn print_line(line: &str) -> Result<(), Failure> {
    print(|out| out.line(line))
}

/// Prints a message to standard error. Ignores a closed standard error.
pub(crate) fn eprint_line(line: &str) {
    drop(writeln!(io::stderr(), "{line}"));
}

/// Converts a write error to a result. A closed output counts as success.
pub(crate) fn broken_pipe(error: io::Error) -> Result<(), Failure> {
    match write_failure(error) {
        Failure::OutputClosed => Ok(()),
        failure => Err(failure),
    }
}

/// The failure for output that cannot be written.
#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
pub(crate) fn write_failure(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::Negative(format!("cannot write the output: {error}")),
    }
}

/// Whether a character controls a terminal or reorders text.
fn is_control(c: char) -> bool {
    is_bidi_control(c) || (c.is_control() && c != '\t')
}

/// Replaces terminal control characters by U+FFFD.
pub(crate) fn printable(line: &str) -> String {
    line.chars().map(|c| if is_control(c) { '\u{fffd}' } else { c }).collect()
}

/// JSON text. Also escapes terminal control characters that JSON allows.
fn json_text(value: &Value) -> String {
    let escaped = |c: char| {
        if is_control(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() }
    };
    let text = value.to_string();
    if text.contains(is_control) { text.chars().map(escaped).collect() } else { text }
}

/// A CSV cell (RFC 4180).
pub(crate) fn csv_cell(cell: &str) -> String {
    let cell = printable(cell);
    if cell.contains([',', '"']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

/// A text table: text columns are aligned left, number columns right.
#[derive(Debug)]
pub(crate) struct Columns {
    header: Vec<String>,
    /// The positions of the text columns.
    text: Vec<usize>,
    rows: Vec<Vec<String>>,
}

impl Columns {
    /// A table without rows; `text` are the positions of the text columns.
    pub(crate) fn new<H: Into<String>>(
        header: impl IntoIterator<Item = H>,
        text: &[usize],
    ) -> Self {
        let header = header.into_iter().map(Into::into).collect();
        Self { header, text: text.to_owned(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Whether it has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The lines of the table.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(self.header.iter().map(|cell| printable(cell)));
        for row in &self.rows {
            table.add_row(row.iter().map(|cell| printable(cell)));
        }
        for column in (0..self.header.len()).filter(|column| !self.text.contains(column)) {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect()
    }
}

/// The heading of scores: the name of the game's component, or of all if there are several. Empty
/// `columns` stand for unknown names.
pub(crate) fn score_heading(columns: &[String]) -> String {
    match columns {
        [] => "score".to_owned(),
        [column] => column.clone(),
        _ => format!("score ({})", columns.join(" ")),
    }
}

/// A JSON object of the named fields of a message.
macro_rules! fields {
    ($message:expr; $($field:ident),+ $(,)?) => {
        ::serde_json::json!({ $((stringify!($field)): $message.$field),+ })
    };
}
pub(crate) use fields;

/// Merges two JSON objects.
pub(crate) fn merge(mut object: Value, other: Value) -> Value {
    if let (Some(object), Value::Object(other)) = (object.as_object_mut(), other) {
        object.extend(other);
    }
    object
}

/// The text, or `None` if it is empty.
pub(crate) fn non_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// The number of forfeits of each kind, in the order of [`Forfeit::ALL`], as text.
pub(crate) fn forfeits(counts: &[i64]) -> String {
    let kinds = Forfeit::ALL.iter().zip(counts).filter(|(_, count)| **count > 0);
    let parts: Vec<_> = kinds.map(|(kind, count)| format!("{count} {kind}")).collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(", ") }
}

/// The number of forfeits of each kind as a JSON object.
pub(crate) fn forfeits_json(counts: &[i64]) -> Value {
    let kinds = Forfeit::ALL.iter().zip(counts);
    kinds
        .map(|(kind, count)| (kind.as_str().to_owned(), json!(count)))
        .collect::<Map<_, _>>()
        .into()
}

/// A sum of scores as JSON: a number, or a string if it does not fit 64 bits.
pub(crate) fn sum_json(sum: i128) -> Value {
    i64::try_from(sum).map_or_else(|_| json!(sum.to_string()), Into::into)
}

/// A duration in milliseconds with three decimals.
pub(crate) fn millis(time: Micros) -> String {
    let millis = time.0 / 1000;
    let micros = time.0 % 1000;
    format!("{millis}.{micros:03} ms")
}

/// A duration with a suitable unit and few digits.
pub(crate) fn span(time: Micros) -> String {
    match time.0 {
        micros @ ..1000 => format!("{micros} µs"),
        micros @ ..10_000 => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        micros => format!("{} ms", micros / 1000),
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digit = |half| char::from_digit(u32::from(half), 16).expect("four bits are one digit");
    digits.map(digit).collect()
}

/// A time in microseconds since 1970 as text; `-` if it is out of range.
pub(crate) fn moment(micros: i64) -> String {
    let Some(time) = calendar(micros) else { return "-".to_owned() };
    let date = time.date();
    let (hour, minute, second) = time.to_hms();
    format!("{date} {hour:02}:{minute:02}:{second:02} UTC")
}

/// A time in microseconds since 1970 as JSON (RFC 3339); null if it is out of range.
pub(crate) fn moment_json(micros: i64) -> Value {
    let Some(time) = calendar(micros) else { return Value::Null };
    let date = time.date();
    let (hour, minute, second, micro) = time.to_hms_micro();
    json!(format!("{date}T{hour:02}:{minute:02}:{second:02}.{micro:06}Z"))
}

fn calendar(micros: i64) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000).ok()
}

/// `1 match`, `2 matches`.
pub(crate) fn matches(number: i64) -> String {
    count(number, "match", "matches")
}

/// A number with its noun: `1 record`, `2 records`.
pub(crate) fn count<N: Copy + Display + PartialEq + From<u8>>(
    number: N,
    singular: &str,
    plural: &str,
) -> String {
    let noun = if number == N::from(1) { singular } else { plural };
    format!("{number} {noun}")
}

/// A rank as text; a shared one starts with `=`. A house bot without a rank has the word `house`.
pub(crate) fn rank(rank: u32, tied: bool) -> String {
    let shared = if tied { "=" } else { "" };
    known_rank(rank).map_or_else(|| "house".to_owned(), |rank| format!("{shared}{rank}"))
}

/// The rank in a message of the coordinator. None for a house bot without a rank.
pub(crate) fn known_rank(rank: u32) -> Option<u32> {
    (rank > 0).then_some(rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_control_characters_are_replaced_or_escaped() {
        assert_eq!(printable("a\x1b[2J\u{9b}b\u{202e}\tc"), "a\u{fffd}[2J\u{fffd}b\u{fffd}\tc");
        let escaped = json_text(&json!({ "x": "\u{9b}\u{7f}\u{202e}ż\n" }));
        assert_eq!(escaped, r#"{"x":"\u009b\u007f\u202eż\n"}"#);
        let back: Value = serde_json::from_str(&escaped).unwrap();
        assert_eq!(back["x"], "\u{9b}\u{7f}\u{202e}ż\n");
    }

    #[test]
    fn csv_cells_are_quoted_only_if_necessary() {
        assert_eq!(csv_cell("plain 1.5"), "plain 1.5");
        assert_eq!(csv_cell("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(csv_cell("a\nb"), "a\u{fffd}b");
    }

    #[test]
    fn times_are_printed_as_utc() {
        assert_eq!(moment(1_000_000_000_000_042), "2001-09-09 01:46:40 UTC");
        assert_eq!(moment_json(1_000_000_000_000_042), json!("2001-09-09T01:46:40.000042Z"));
        assert_eq!(moment(i64::MAX), "-");
    }
}
