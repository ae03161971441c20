//! Draws the table: a head with the last bid, and a row for each seat with its dice.

use crate::dice::counts;
use crate::game::{Challenge, Game};
use crate::words;

/// The height of the head.
const HEAD: usize = 84;
/// The height of a row.
const ROW: usize = 50;

/// Maximum number of characters of a name.
const MAX_NAME: usize = 12;

/// The colors of seats.
const SEATS: [&str; 6] = ["#f2c14e", "#ef767a", "#6fb8e8", "#9fd356", "#c792ea", "#f78f4b"];

const WHITE: &str = "#fff";
/// The color of what counts, moves or wins.
const GOLD: &str = "#ffd34d";
/// The color of what loses.
const RED: &str = "#ff8a80";

/// The shapes. A die is 28 by 28 and has the colors of the element that uses it.
const SHAPES: &str = include_str!("shapes.svg");

/// What a picture shows.
pub struct Scene<'a> {
    pub game: &'a Game,
    pub names: &'a [String],
    /// The number of dice of each seat at the start.
    pub dice: usize,
    /// The seat that the picture is for. The public sees all dice.
    pub viewer: Option<usize>,
    /// The challenge that has just ended the round. It uncovers all dice.
    pub challenge: Option<Challenge>,
}

impl Scene<'_> {
    /// The picture.
    pub fn draw(&self) -> String {
        let height = HEAD + ROW * self.names.len() + 4;
        let head = self.head();
        let rows: String = (0..self.names.len()).map(|seat| self.row(seat)).collect();
        format!(
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 400 {height}' \
             font-family='sans-serif'>{SHAPES}\
             <rect width='400' height='{height}' rx='14' fill='url(#felt)'/>\
             <g fill='{WHITE}'>{head}{rows}</g></svg>"
        )
    }

    /// The head: the last bid, and what follows from it.
    fn head(&self) -> String {
        let total = self.game.dice();
        let dice = format!("{total} {}", if total == 1 { "die" } else { "dice" });
        let wild = if self.game.is_wild() { "ones wild" } else { "" };
        text(384, 28, "font-size='15' text-anchor='end'", &dice)
            + &text(384, 44, "font-size='12' text-anchor='end' fill-opacity='.75'", wild)
            + &self.headline()
    }

    /// The headline: the last bid with its round or its truth, or else the round or the winner. A
    /// line below says what follows.
    fn headline(&self) -> String {
        let round = format!("Round {}", self.game.round());
        let turn = self.name(self.game.turn());
        let Some(bid) = self.game.bid() else {
            let (title, line) = match self.game.winner() {
                Some(winner) => (format!("{} wins", self.name(winner)), round),
                None => (round, format!("{turn} bids first")),
            };
            return text(16, 42, "font-size='26' font-weight='bold'", &title)
                + &text(16, 65, "font-size='14'", &line);
        };
        let (title, color, line) = match self.challenge {
            Some(challenge) => {
                let loser = self.name(challenge.loser());
                let color = if challenge.is_true() { GOLD } else { RED };
                (words::there_are(challenge.count), color, format!("{loser} loses a die"))
            }
            None => (round, WHITE, format!("{turn} to move")),
        };
        let count = format!("{} ×", bid.count);
        text(88, 55, "font-size='32' font-weight='bold' text-anchor='end'", &count)
            + &die(bid.face, GOLD, "transform='translate(98 18) scale(1.7)'")
            + &text(160, 42, &format!("font-size='17' font-weight='bold' fill='{color}'"), &title)
            + &text(160, 63, "font-size='13'", &line)
    }

    /// The row of a seat: its name and state, its dice, and its last bid, challenge or place.
    fn row(&self, seat: usize) -> String {
        let (state, color) = self.state(seat);
        let you = if self.viewer == Some(seat) { "you" } else { "" };
        let label = [you, state].into_iter().filter(|word| !word.is_empty());
        let label = label.collect::<Vec<_>>().join(" · ");
        let name_bottom = if label.is_empty() { 28 } else { 21 };
        let is_out = self.game.hands()[seat].is_empty();
        [
            format!("<g transform='translate(0 {})'", HEAD + ROW * seat),
            if is_out { " opacity='.5'>" } else { ">" }.to_owned(),
            "<rect x='8' width='384' height='46' rx='9' fill-opacity='.08'".to_owned(),
            if color == WHITE { "/>".to_owned() } else { format!(" stroke='{color}'/>") },
            format!("<rect x='14' y='9' width='4' height='28' rx='2' fill='{}'/>", SEATS[seat]),
            text(24, name_bottom, "font-size='13' font-weight='bold'", &self.name(seat)),
            text(24, 37, &format!("font-size='11' fill='{color}'"), &label),
            self.dice(seat),
            self.call(seat),
            "</g>".to_owned(),
        ]
        .concat()
    }

    /// The state of a seat in words, with the color of the row's border and words.
    fn state(&self, seat: usize) -> (&'static str, &'static str) {
        match self.challenge {
            _ if self.game.hands()[seat].is_empty() => ("out", WHITE),
            _ if self.game.winner() == Some(seat) => ("wins", GOLD),
            Some(challenge) if challenge.loser() == seat => ("loses a die", RED),
            None if self.game.turn() == seat => ("to move", GOLD),
            _ => ("", WHITE),
        }
    }

    /// The dice of a seat, and the places of those that it has lost. Dice that count for the last
    /// bid are gold.
    fn dice(&self, seat: usize) -> String {
        let is_visible = self.viewer.is_none_or(|viewer| viewer == seat)
            || self.challenge.is_some()
            || self.game.winner().is_some();
        let hand = &self.game.hands()[seat];
        let face = self.game.bid().map(|bid| bid.face);
        let draw = |index: usize| {
            let place = format!("x='{}' y='9'", 132 + 31 * index);
            match hand.get(index) {
                Some(_) if !is_visible => format!("<use href='#hidden' {place}/>"),
                Some(shown) => {
                    let is_gold =
                        face.is_some_and(|face| counts(*shown, face, self.game.is_wild()));
                    die(*shown, if is_gold { GOLD } else { WHITE }, &place)
                }
                None => format!("<use href='#lost' {place}/>"),
            }
        };
        (0..self.dice).map(draw).collect()
    }

    /// The right end of a row: the place of a seat, its challenge or its last bid of the round.
    fn call(&self, seat: usize) -> String {
        if let Some(place) = self.game.place(seat) {
            let style = "font-size='17' font-weight='bold' text-anchor='end'";
            return text(384, 29, style, &words::place(place));
        }
        if self.challenge.is_some_and(|challenge| challenge.challenger == seat) {
            let bubble = "<rect x='328' y='10' width='58' height='26' rx='13' \
                          fill='#d6453d'/>";
            let style = "font-size='15' font-weight='bold' text-anchor='middle'";
            return bubble.to_owned() + &text(357, 28, style, "liar!");
        }
        let Some(bid) = self.game.bid_of(seat) else { return String::new() };
        let is_last = self.game.bid() == Some(bid);
        let color = if is_last { GOLD } else { WHITE };
        let opacity = if is_last { "" } else { " opacity='.6'" };
        let count = text(357, 29, "font-size='17' text-anchor='end'", &format!("{} ×", bid.count));
        let die = die(bid.face, color, "transform='translate(362 11) scale(.86)'");
        format!("<g{opacity}>{count}{die}</g>")
    }

    /// The name of a seat, cut if it is too long.
    fn name(&self, seat: usize) -> String {
        let name = &self.names[seat];
        match name.char_indices().nth(MAX_NAME) {
            Some((end, _)) => format!("{}…", &name[..end]),
            None => name.clone(),
        }
    }
}

/// A die that shows a face.
fn die(face: u8, color: &str, attributes: &str) -> String {
    let fill = if color == WHITE { String::new() } else { format!(" fill='{color}'") };
    format!("<use href='#d{face}'{fill} {attributes}/>")
}

/// A text of one line. Nothing if it is empty.
fn text(x: usize, y: usize, attributes: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    let content = content.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("<text x='{x}' y='{y}' {attributes}>{content}</text>")
}
