//! The line of a match in a listed schedule.

use std::io::{self, Write};

/// Prints a match, with `json` as an object. Boards and bots are counted from 0 here, and from 1 in
/// the output.
pub(super) fn write_match(
    output: &mut impl Write,
    json: bool,
    number: u64,
    board: Option<i64>,
    bots: impl Iterator<Item = i64>,
) -> io::Result<()> {
    let (head, tail) = match (json, board.map(|board| board + 1)) {
        (true, Some(board)) => {
            (format!("{{\"match\":{number},\"board\":{board},\"seats\":["), "]}")
        }
        (true, None) => (format!("{{\"match\":{number},\"seats\":["), "]}"),
        (false, Some(board)) => (format!("{number} on board {board}: "), ""),
        (false, None) => (format!("{number}: "), ""),
    };
    output.write_all(head.as_bytes())?;
    for (seat, bot) in bots.enumerate() {
        let separator = match (seat, json) {
            (0, _) => "",
            (_, true) => ",",
            (_, false) => " ",
        };
        write!(output, "{separator}{}", bot + 1)?;
    }
    writeln!(output, "{tail}")
}
