//! Replies that try to break the rules.

use arbiter_games::Dice;

/// The length of the longest reply of a bot, in bytes.
const LONGEST: usize = 64 << 10;

/// Replies that rules are often not prepared for.
const TEXTS: [&str; 66] = [
    "",
    " ",
    "\t",
    "\n",
    "\0",
    "\u{1b}[2J",
    "\r",
    "\u{7}\u{8}",
    "\u{fffd}",
    "\u{feff}0",
    "\u{202e}1",
    "٣",
    "３",
    "²",
    "Ⅳ",
    "ß",
    "🂡",
    "e\u{301}",
    "𝟙",
    "ﬀ",
    "İ",
    "-",
    "+",
    ".",
    ",",
    ";",
    "=",
    "?",
    "%s%n",
    "{0}",
    "${left_ms}",
    "\\",
    "\\u0031",
    "'",
    "\"",
    "`",
    "-1",
    "-0",
    "+1",
    "01",
    "1.0",
    "1e3",
    "1e309",
    "0x10",
    "1_000",
    "2147483648",
    "9223372036854775808",
    "-9223372036854775809",
    "NaN",
    "Infinity",
    "null",
    "true",
    "None",
    "undefined",
    "[]",
    "{}",
    "{\"seat\":1}",
    "{\"do\":[{\"over\":[[9],[0]]}]}",
    "'; DROP TABLE bots; --",
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "__proto__",
    "constructor",
    "resign",
    "pass",
    "quit",
];

/// Parts of long replies.
const PARTS: [&str; 8] = ["9", "x", "[", "(", "{\"a\":", "0 ", "\n", "é"];

/// A hostile reply. `legal` are the legal ones.
pub(super) fn reply(dice: &mut Dice, legal: &[String]) -> String {
    match dice.below(10) {
        0 => {
            let part = PARTS[dice.index(PARTS.len())];
            let lengths = [300, 5000, LONGEST];
            part.repeat(lengths[dice.index(lengths.len())] / part.len())
        }
        1 => (0..=dice.below(12)).map(|_| character(dice)).collect(),
        2 => {
            let number = i64::from(dice.below(2000)) - 1000;
            number.to_string()
        }
        3..6 if !legal.is_empty() => mutated(&legal[dice.index(legal.len())], dice),
        6 if legal.len() > 1 => {
            let both = [dice.index(legal.len()), dice.index(legal.len())];
            both.map(|index| legal[index].as_str()).join([" ", "", "\n", ","][dice.index(4)])
        }
        _ => TEXTS[dice.index(TEXTS.len())].to_owned(),
    }
}

/// Any character, usually one of ASCII.
fn character(dice: &mut Dice) -> char {
    let code = if dice.below(4) > 0 { dice.below(128) } else { dice.below(0x11_0000) };
    char::from_u32(code).unwrap_or('\u{fffd}')
}

/// A legal reply with one to three changes.
fn mutated(legal: &str, dice: &mut Dice) -> String {
    let mut reply: Vec<char> = legal.chars().collect();
    for _ in 0..=dice.below(3) {
        let at = dice.index(reply.len() + 1);
        match dice.below(7) {
            0 => reply.insert(at, character(dice)),
            1 if at < reply.len() => drop(reply.remove(at)),
            2 if at < reply.len() => reply[at] = character(dice),
            3 if at < reply.len() => reply.insert(at, reply[at]),
            4 => reply.truncate(at),
            5 => {
                let space = [' ', '\t', '\r', '0', '-'][dice.index(5)];
                reply.insert([0, reply.len()][dice.index(2)], space);
            }
            _ => reply = reply.iter().flat_map(|c| c.to_uppercase()).collect(),
        }
    }
    reply.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use arbiter_games::Seed;

    use super::*;

    #[test]
    fn replies_are_of_every_kind_and_never_longer_than_those_of_bots() {
        let mut dice = Seed([7; 32]).dice(0);
        let legal = ["a1".to_owned(), "b2".to_owned()];
        let replies: Vec<_> = (0..5000).map(|_| reply(&mut dice, &legal)).collect();
        assert!(replies.iter().all(|reply| reply.len() <= LONGEST));
        for (what, is_kind) in [
            ("empty", (|reply: &str| reply.is_empty()) as fn(&str) -> bool),
            ("long", |reply| reply.len() > LONGEST - 10),
            ("digits", |reply| reply.len() > 4500 && reply.starts_with("999")),
            ("nested", |reply| reply.starts_with("[[[")),
            ("zero byte", |reply| reply.contains('\0')),
            ("both", |reply| reply == "a1 b2"),
            ("upper case", |reply| reply == "B2"),
        ] {
            assert!(replies.iter().any(|reply| is_kind(reply)), "{what}");
        }
    }
}
