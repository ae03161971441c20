//! House, a bot for gomoku: it searches, first for a win by fours alone, then in general.
//!
//! The search is based on *windows*: five squares in a row. A window is alive for a colour as long
//! as it has no stone of the other one, and the position keeps, for each square and colour, how
//! many living windows with 1, 2, 3 and 4 stones run through it. So the squares that complete a row
//! of five (a living window of 4) or make a four (one of 3) are read off at once, and the number of
//! windows of each kind is the value of a position.
//!
//! A win by fours: each of our stones makes a four, each of the opponent's can only stop it, until
//! a stone makes two at once. It is deep and narrow, so it is looked for at every leaf of an
//! alpha-beta search over the most promising squares, deepened step by step. Both are limited by a
//! number of stones placed in the search, never by the clock, so that the same game is played on
//! every machine.
//!
//! In this Swap2 the bot that responds to the opening places the next stone, whatever colour it
//! takes: house takes the colour that its search prefers. The seed turns the board and chooses
//! among its own openings.

use std::env;
use std::io::{self, BufRead, Write};

const SIDE: u8 = 15;
const SQUARES: usize = SIDE as usize * SIDE as usize;
/// The stones of a row that wins.
const ROW: usize = 5;
const DIRECTIONS: [(i8, i8); 4] = [(1, 0), (0, 1), (1, 1), (1, -1)];

/// Stones placed in the search for one reply.
const EFFORT: u32 = 20_000;
/// The number of these stones for the search of a win by fours, at the root and at each leaf.
const ROOT_FOURS: u32 = 5_000;
const LEAF_FOURS: u32 = 100;
/// The number of examined squares at the root, and below it.
const ROOT_WIDTH: usize = 40;
const WIDTH: usize = 12;
const MOST_DEPTH: u32 = 12;

/// The value of a won position; a win in n plies is worth n less.
const WIN: i32 = 1_000_000;
/// Larger values are wins, and values below its negative are losses.
const DECIDED: i32 = WIN - 1000;
/// The value of a living window by its stones.
const WINDOW: [i32; ROW + 1] = [0, 1, 5, 15, 40, 0];
/// The value of having the next move.
const TEMPO: i32 = 25;

/// Our openings: those of a thousand random ones in which house won as A against itself, with any
/// effort of either side.
const OPENINGS: [[(u8, u8); 3]; 3] =
    [[(14, 6), (4, 0), (3, 13)], [(13, 8), (12, 13), (3, 5)], [(0, 6), (8, 14), (13, 7)]];
/// The number of symmetries of the board.
const POSITIONS: u32 = 8;

/// A square, as x * 15 + y.
type Square = u8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    Black,
    White,
}

impl Colour {
    fn other(self) -> Self {
        match self {
            Self::Black => Self::White,
            Self::White => Self::Black,
        }
    }

    fn index(self) -> usize {
        self as usize
    }

    fn letter(self) -> char {
        match self {
            Self::Black => 'B',
            Self::White => 'W',
        }
    }
}

/// The number of living windows through a square, for each number of stones: five bits each.
#[derive(Clone, Copy, Debug, Default)]
struct Ways(u32);

impl Ways {
    const BITS: usize = 5;

    /// One window with this many stones; dead and empty windows do not count.
    fn one(stones: usize) -> u32 {
        if stones == 0 { 0 } else { 1 << (Self::BITS * (stones - 1)) }
    }

    /// The number of windows with this many stones, 1 to 5.
    fn of(self, stones: usize) -> u32 {
        self.0 >> (Self::BITS * (stones - 1)) & ((1 << Self::BITS) - 1)
    }

    /// The value of a stone on the square, by the windows that it extends or blocks.
    fn promise(self) -> u32 {
        let threes = match self.of(3) {
            0 => 0,
            1 => 300,
            _ => 4000,
        };
        self.of(4) * 100_000 + threes + self.of(2) * 60 + self.of(1) * 8
    }
}

/// All windows, and those through each square.
#[derive(Debug)]
struct Geometry {
    windows: Vec<[Square; ROW]>,
    through: Vec<Vec<usize>>,
}

impl Geometry {
    fn new() -> Self {
        let mut windows = Vec::new();
        for x in 0..SIDE {
            for y in 0..SIDE {
                windows.extend(DIRECTIONS.iter().filter_map(|step| window(x, y, *step)));
            }
        }
        let mut through = vec![Vec::new(); SQUARES];
        for (index, window) in windows.iter().enumerate() {
            for square in window {
                through[usize::from(*square)].push(index);
            }
        }
        Self { windows, through }
    }
}

/// The window that starts at (x,y), if it lies on the board.
fn window(x: u8, y: u8, (dx, dy): (i8, i8)) -> Option<[Square; ROW]> {
    let mut window = [0; ROW];
    let mut x = x;
    let mut y = y;
    for (step, square) in window.iter_mut().enumerate() {
        if step > 0 {
            x = x.checked_add_signed(dx)?;
            y = y.checked_add_signed(dy)?;
        }
        if x >= SIDE || y >= SIDE {
            return None;
        }
        *square = x * SIDE + y;
    }
    Some(window)
}

/// A position, kept up to date stone by stone.
#[derive(Clone, Debug)]
struct Position<'a> {
    geometry: &'a Geometry,
    stones: [Option<Colour>; SQUARES],
    /// The black and white stones of each window.
    counts: Vec<[usize; 2]>,
    /// The living windows through each square, for each colour.
    ways: [[Ways; SQUARES]; 2],
    /// The number of living windows for each colour, by their stones.
    living: [[i32; ROW + 1]; 2],
}

impl<'a> Position<'a> {
    fn new(geometry: &'a Geometry) -> Self {
        Self {
            geometry,
            stones: [None; SQUARES],
            counts: vec![[0; 2]; geometry.windows.len()],
            ways: [[Ways::default(); SQUARES]; 2],
            living: [[0; ROW + 1]; 2],
        }
    }

    fn put(&mut self, square: Square, colour: Colour) {
        self.stones[usize::from(square)] = Some(colour);
        for &window in &self.geometry.through[usize::from(square)] {
            let mut counts = self.counts[window];
            counts[colour.index()] += 1;
            self.recount(window, counts);
        }
    }

    fn take(&mut self, square: Square, colour: Colour) {
        self.stones[usize::from(square)] = None;
        for &window in &self.geometry.through[usize::from(square)] {
            let mut counts = self.counts[window];
            counts[colour.index()] -= 1;
            self.recount(window, counts);
        }
    }

    fn recount(&mut self, window: usize, counts: [usize; 2]) {
        let before = self.counts[window];
        self.counts[window] = counts;
        for colour in 0..2 {
            let alive =
                |counts: [usize; 2]| if counts[1 - colour] == 0 { counts[colour] } else { 0 };
            let old = alive(before);
            let new = alive(counts);
            if old == new {
                continue;
            }
            self.living[colour][old] -= 1;
            self.living[colour][new] += 1;
            for square in &self.geometry.windows[window] {
                let ways = &mut self.ways[colour][usize::from(*square)].0;
                *ways = *ways + Ways::one(new) - Ways::one(old);
            }
        }
    }

    fn empty(&self) -> impl Iterator<Item = Square> {
        (0..SIDE * SIDE).filter(|square| self.stones[usize::from(*square)].is_none())
    }

    fn ways(&self, colour: Colour, square: Square) -> Ways {
        self.ways[colour.index()][usize::from(square)]
    }

    fn living(&self, colour: Colour, stones: usize) -> i32 {
        self.living[colour.index()][stones]
    }

    /// Two of the squares where `colour` completes a row of five.
    fn completing(&self, colour: Colour) -> (Option<Square>, Option<Square>) {
        if self.living(colour, ROW - 1) == 0 {
            return (None, None);
        }
        let mut squares = self.empty().filter(|square| self.ways(colour, *square).of(ROW - 1) > 0);
        (squares.next(), squares.next())
    }

    /// The value for the colour on the move, by counting windows.
    fn value(&self, me: Colour) -> i32 {
        let sum = |colour| (1..ROW).map(|n| WINDOW[n] * self.living(colour, n)).sum::<i32>();
        sum(me) - sum(me.other()) + TEMPO
    }

    /// The most promising squares for the colour on the move, the best first.
    fn candidates(&self, me: Colour, width: usize) -> Vec<Square> {
        let mut found: Vec<(u32, Square)> = self
            .empty()
            .filter_map(|square| {
                let mine = self.ways(me, square).promise();
                let theirs = self.ways(me.other(), square).promise();
                (mine + theirs > 0).then_some((3 * mine + 2 * theirs, square))
            })
            .collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.truncate(width);
        found.into_iter().map(|(_, square)| square).collect()
    }
}

/// A search with its remaining effort.
#[derive(Debug)]
struct Search<'a> {
    position: Position<'a>,
    effort: u32,
}

impl Search<'_> {
    fn put(&mut self, square: Square, colour: Colour) {
        self.effort = self.effort.saturating_sub(1);
        self.position.put(square, colour);
    }

    /// The first stone of a win by fours for the colour on the move, if one is found within
    /// `quota` stones.
    fn win_by_fours(&mut self, me: Colour, quota: &mut u32) -> Option<Square> {
        let other = me.other();
        if let (Some(square), _) = self.position.completing(me) {
            return Some(square);
        }
        let due = match self.position.completing(other) {
            (Some(_), Some(_)) => return None,
            (due, _) => due,
        };
        if self.position.living(me, ROW - 2) == 0 {
            return None;
        }
        let fours: Vec<Square> = self
            .position
            .empty()
            .filter(|square| self.position.ways(me, *square).of(ROW - 2) > 0)
            .filter(|square| due.is_none_or(|due| due == *square))
            .collect();
        for four in fours {
            if *quota == 0 {
                return None;
            }
            *quota -= 1;
            self.put(four, me);
            let wins = match self.position.completing(me) {
                (Some(_), Some(_)) => true,
                (Some(reply), None) => {
                    self.put(reply, other);
                    let wins = self.win_by_fours(me, quota).is_some();
                    self.position.take(reply, other);
                    wins
                }
                (None, _) => false,
            };
            self.position.take(four, me);
            if wins {
                return Some(four);
            }
        }
        None
    }

    /// The value for the colour on the move, by alpha-beta; invalid once the effort is spent.
    fn value(&mut self, me: Colour, depth: u32, ply: i32, mut alpha: i32, beta: i32) -> i32 {
        if self.position.living(me, ROW - 1) > 0 {
            return WIN - ply;
        }
        let squares = match self.position.completing(me.other()) {
            (Some(_), Some(_)) => return ply + 1 - WIN,
            (Some(due), None) => vec![due],
            (None, _) if depth == 0 => return self.leaf_value(me, ply),
            (None, _) => self.position.candidates(me, WIDTH),
        };
        if squares.is_empty() {
            return 0;
        }
        let depth = if squares.len() == 1 { depth } else { depth - 1 };
        let mut best = -WIN;
        for square in squares {
            self.put(square, me);
            let value = -self.value(me.other(), depth, ply + 1, -beta, -alpha);
            self.position.take(square, me);
            best = best.max(value);
            alpha = alpha.max(value);
            if alpha >= beta || self.effort == 0 {
                break;
            }
        }
        best
    }

    fn leaf_value(&mut self, me: Colour, ply: i32) -> i32 {
        let mut quota = LEAF_FOURS;
        match self.win_by_fours(me, &mut quota) {
            Some(_) => WIN - ply - 2,
            None => self.position.value(me),
        }
    }

    /// The best square for the colour on the move, and the value of the position.
    fn best(&mut self, me: Colour) -> (Square, i32) {
        let mut quota = ROOT_FOURS;
        if let Some(square) = self.win_by_fours(me, &mut quota) {
            return (square, WIN);
        }
        let mut squares = match self.position.completing(me.other()) {
            (Some(due), _) => vec![due],
            (None, _) => self.position.candidates(me, ROOT_WIDTH),
        };
        let Some(mut best) = squares.first().map(|square| (*square, 0)) else {
            return (self.position.empty().next().unwrap_or_default(), 0);
        };
        for depth in 0..MOST_DEPTH {
            let Some(values) = self.values(me, depth, &squares) else { break };
            best = values[0];
            squares.clear();
            squares.extend(values.iter().filter(|(_, v)| *v > -DECIDED).map(|(square, _)| *square));
            if squares.len() < 2 || best.1 > DECIDED {
                break;
            }
        }
        best
    }

    /// The values of squares at a depth, the best first; `None` if the effort is not enough.
    fn values(&mut self, me: Colour, depth: u32, squares: &[Square]) -> Option<Vec<(Square, i32)>> {
        let mut values = Vec::new();
        let mut alpha = -WIN;
        for &square in squares {
            self.put(square, me);
            let value = -self.value(me.other(), depth, 1, -WIN, -alpha);
            self.position.take(square, me);
            if self.effort == 0 {
                return None;
            }
            values.push((square, value));
            alpha = alpha.max(value);
        }
        values.sort_by_key(|(_, value)| -value);
        Some(values)
    }
}

/// One game.
#[derive(Debug)]
struct House {
    geometry: Geometry,
    seed: u32,
    colour: Option<Colour>,
}

impl House {
    fn reply(&mut self, prompt: &str, stones: &[(Square, Colour)]) -> String {
        match prompt {
            "A" => self.opening(),
            "B" => {
                let (_, black) = self.best(stones, Colour::Black);
                let (square, white) = self.best(stones, Colour::White);
                let colour = if black >= white { Colour::Black } else { Colour::White };
                self.colour = Some(colour);
                let stone = if colour == Colour::White { text(square) } else { String::new() };
                format!("\"{}\"{stone}", colour.letter())
            }
            "C" => {
                let (_, black) = self.best(stones, Colour::Black);
                let colour = if black >= 0 { Colour::Black } else { Colour::White };
                self.colour = Some(colour);
                format!("\"{}\"", colour.letter())
            }
            _ => {
                let me = *self.colour.get_or_insert_with(|| left_colour(stones));
                text(self.best(stones, me).0)
            }
        }
    }

    fn best(&self, stones: &[(Square, Colour)], me: Colour) -> (Square, i32) {
        let mut search = Search { position: Position::new(&self.geometry), effort: EFFORT };
        for (square, colour) in stones {
            search.position.put(*square, *colour);
        }
        search.best(me)
    }

    fn opening(&self) -> String {
        let number = (self.seed / POSITIONS) as usize % OPENINGS.len();
        OPENINGS[number].map(|(x, y)| text(turned(x, y, self.seed))).concat()
    }
}

/// The colour that the opponent's choice has left us, at our first stone: two black stones more
/// than white ones mean that the opponent has just put one; else the first is due, which is black.
fn left_colour(stones: &[(Square, Colour)]) -> Colour {
    let black = stones.iter().filter(|(_, colour)| *colour == Colour::Black).count();
    if black == stones.len() - black + 2 { Colour::White } else { Colour::Black }
}

/// A square in one of the eight positions that a board can lie in.
fn turned(x: u8, y: u8, seed: u32) -> Square {
    let x = if seed & 1 == 0 { x } else { SIDE - 1 - x };
    let y = if seed & 2 == 0 { y } else { SIDE - 1 - y };
    if seed & 4 == 0 { x * SIDE + y } else { y * SIDE + x }
}

fn text(square: Square) -> String {
    format!("({},{})", square / SIDE, square % SIDE)
}

/// Reads `[((0,0),"B"),((0,1),"W")]`.
fn stones(board: &str) -> Vec<(Square, Colour)> {
    let stone = |text: &str| {
        let (square, colour) = text.split_once("),")?;
        let (x, y) = square.split_once(',')?;
        let x: u8 = x.parse().ok()?;
        let y: u8 = y.parse().ok()?;
        let colour = if colour.starts_with("\"B\"") { Colour::Black } else { Colour::White };
        (x < SIDE && y < SIDE).then_some((x * SIDE + y, colour))
    };
    board.split("((").filter_map(stone).collect()
}

/// Arguments: the opponent's name, a seed.
fn main() -> io::Result<()> {
    let seed = env::args().nth(2).and_then(|text| text.parse().ok()).unwrap_or_default();
    let mut house = House { geometry: Geometry::new(), seed, colour: None };
    let mut output = io::stdout();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (prompt, board) = line.split_once(' ').unwrap_or((&line, ""));
        if prompt == "EXIT" {
            break;
        }
        writeln!(output, "{}", house.reply(prompt, &stones(board)))?;
        output.flush()?;
    }
    Ok(())
}
