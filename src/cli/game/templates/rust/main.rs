//! The rules of {{title}}: two bots take 1 to 3 stones in turn, and the last stone wins.
//!
//! Arbiter asks one question a line, and these rules answer each with one line, both JSON. The
//! rules are a function of the questions: no clock, no files, no chance but the seed. docs/games.md
//! has the whole protocol. This file reads JSON by hand; the crate serde_json does it in general.

use std::io::{self, BufRead as _, Write as _};

const MOST: u32 = 3;
const COLUMNS: u32 = 10;

/// A match in progress. Seats are 1 and 2.
struct Match {
    names: Vec<String>,
    heap: u32,
    rows: u32,
    draws: bool,
    turn: usize,
}

/// The value of a key as it is written. Arbiter writes no spaces, and escapes quotation marks in
/// texts, so that a key is never part of a text.
fn value<'a>(question: &'a str, key: &str, ends: &[char]) -> Option<&'a str> {
    let start = question.find(key)? + key.len();
    question[start..].split(ends).next()
}

impl Match {
    fn new(question: &str) -> Self {
        let text = |key, ends: &[char]| value(question, key, ends).unwrap_or_default();
        let heap = text("\"heap\":", &[',', '}']).parse().unwrap_or(1);
        let names = text("\"bots\":[", &[']']).split(',').map(|name| name.replace('"', ""));
        // The seed is the only source of chance. Its last digit says who begins.
        let digit = text("\"seed\":\"", &['"']).chars().last();
        Self {
            names: names.collect(),
            heap,
            rows: heap.div_ceil(COLUMNS),
            draws: question.contains("\"frames\":true"),
            turn: 1 + digit.and_then(|digit| digit.to_digit(16)).unwrap_or(0) as usize % 2,
        }
    }

    /// Both bots learn the heap and their seat, and the first one is asked.
    fn begin(&self) -> String {
        let Self { heap, names, turn, .. } = self;
        let tell = |seat| format!("{{\"tell\":{seat},\"text\":\"start {heap} {seat}\"}},");
        let frame = self.frame(&format!("{heap} stones, {} begins", names[turn - 1]));
        tell(1) + &tell(2) + &frame + &self.request()
    }

    fn request(&self) -> String {
        format!("{{\"ask\":{},\"text\":\"move {}\"}}", self.turn, self.heap)
    }

    /// The legal replies: for people who play, for tests, and for the check below.
    fn legal(&self) -> Vec<String> {
        (1..=MOST.min(self.heap)).map(|stones| stones.to_string()).collect()
    }

    /// The bot that was asked has replied, or has forfeited: it was too late, or crashed. A reply
    /// is any text. A legal one has no escaped characters, so it needs no more reading.
    fn hear(&mut self, question: &str) -> String {
        let other = 3 - self.turn;
        let Some(reply) = value(question, "\"text\":\"", &['"']) else { return over(other) };
        if !self.legal().iter().any(|legal| legal == reply) {
            let why = format!("take 1 to {} stones", MOST.min(self.heap));
            return format!("{{\"illegal\":{},\"why\":\"{why}\"}},{}", self.turn, over(other));
        }
        self.heap -= reply.parse::<u32>().unwrap_or(1);
        let name = &self.names[self.turn - 1];
        let frame = self.frame(&format!("{name} takes {reply}, {} left", self.heap));
        if self.heap == 0 {
            return frame + &over(self.turn);
        }
        self.turn = other;
        frame + &self.request()
    }

    /// A picture for people. It is drawn only if the match is to have pictures.
    fn frame(&self, caption: &str) -> String {
        if !self.draws {
            return String::new();
        }
        let stone = |stone| {
            let x = stone % COLUMNS * 20 + 10;
            let y = stone / COLUMNS * 20 + 10;
            format!("<circle cx='{x}' cy='{y}' r='8' fill='#586e75'/>")
        };
        let stones: String = (0..self.heap).map(stone).collect();
        let view = format!("viewBox='0 0 200 {}'", 20 * self.rows);
        let back = "<rect width='200' height='100%' fill='#fdf6e3'/>";
        let svg = format!("<svg xmlns='http://www.w3.org/2000/svg' {view}>{back}{stones}</svg>");
        format!("{{\"frame\":{{\"svg\":\"{svg}\",\"caption\":\"{caption}\"}}}},")
    }
}

/// The score of each seat: one number for each name in `score` of game.toml.
fn over(winner: usize) -> String {
    let points = [1, 2].map(|seat| if seat == winner { 2 } else { 0 });
    format!("{{\"over\":[[{}],[{}]]}}", points[0], points[1])
}

fn main() -> io::Result<()> {
    let mut current = None;
    for question in io::stdin().lock().lines() {
        let question = question?;
        if question.starts_with("{\"new\"") {
            current = Some(Match::new(&question));
        }
        let current = current.as_mut().ok_or(io::ErrorKind::InvalidData)?;
        let answer = if question.starts_with("{\"legal\"") {
            format!("{{\"legal\":[\"{}\"]}}", current.legal().join("\",\""))
        } else if question.starts_with("{\"new\"") {
            format!("{{\"do\":[{}]}}", current.begin())
        } else {
            format!("{{\"do\":[{}]}}", current.hear(&question))
        };
        println!("{answer}");
        io::stdout().flush()?;
    }
    Ok(())
}
