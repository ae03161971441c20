//! House, the strongest example bot for bitwa: it simulates orders before it gives one.
//!
//! It tries the orders to march on each square in and around the division, with and without a
//! preference for attacks, in two rounds. In the first round it carries out an order on a copy of
//! the battle, and then every division of both sides marches once on the enemy nearest to it. The
//! orders with the best results come to the second round, in which each division chooses the best
//! of a handful of orders instead. So house sees which side attacks first when lines meet, and lets
//! the enemy come where that is better.
//!
//! A board is good if we have many units and the enemy has few, above all strong ones, and if our
//! units are near the enemy. House reads no clock: it limits its work for a game in unit moves.

use std::cmp::Reverse;
use std::io::{self, BufRead, Write};

/// A blocked square; other values of a square are [`FREE`] or the index of a unit.
const WALL: u16 = u16::MAX;
/// A free square without a unit.
const FREE: u16 = u16::MAX - 1;
/// A distance longer than any walk, in steps.
const FAR: i64 = 10_000;

/// The maximum distance of a target from its division, in squares.
const REACH: usize = 4;
/// The maximum number of orders in the second round.
const SHORT_LIST: usize = 30;
/// The number of nearest enemies that a reply can have as its target.
const NEAREST: usize = 6;
/// The number of possible orders of a reply: [`NEAREST`] and nine directions.
const REPLIES: usize = NEAREST + 9;

/// The maximum number of simulated unit moves in a whole game. They take a few seconds.
const GAME_BUDGET: usize = 40_000_000;
/// The maximum number of simulated unit moves for one order.
const ORDER_BUDGET: usize = 150_000;

/// The value of a unit of infinite strength.
const UNIT: i64 = 4000;
/// The value of being a step nearer to the enemy.
const STEP: i64 = 10;

/// A unit; removed if its strength is 0. Coordinates count from 1: the board has a wall around it.
#[derive(Clone, Copy)]
struct Unit {
    x: usize,
    y: usize,
    strength: u32,
    division: u8,
}

/// An order, in the coordinates of units.
#[derive(Clone, Copy)]
struct Order {
    attack: bool,
    x: usize,
    y: usize,
    dx: Side,
    dy: Side,
    px_first: bool,
}

/// The side of the target on which an auxiliary point lies.
#[derive(Clone, Copy)]
enum Side {
    Less,
    More,
}

impl Side {
    fn of(self, middle: usize) -> usize {
        match self {
            Self::Less => middle - 1,
            Self::More => middle + 1,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Less => "-1",
            Self::More => "1",
        }
    }
}

fn squared(x: usize, y: usize, to_x: usize, to_y: usize) -> usize {
    x.abs_diff(to_x).pow(2) + y.abs_diff(to_y).pow(2)
}

impl Order {
    /// March on (x, y) and attack on the way.
    fn march(x: usize, y: usize) -> Self {
        Self { attack: true, x, y, dx: Side::More, dy: Side::More, px_first: true }
    }

    /// The three distances of a square in one number, the most important in front.
    fn distance(self, x: usize, y: usize) -> usize {
        let target = squared(x, y, self.x, self.y);
        let px = squared(x, y, self.dx.of(self.x), self.y);
        let py = squared(x, y, self.x, self.dy.of(self.y));
        let (first, second) = if self.px_first { (px, py) } else { (py, px) };
        target << 32 | first << 16 | second
    }

    /// Reads the six numbers of a `play` command.
    fn parse(words: &[&str]) -> Option<Self> {
        let &[attack, x, y, dx, dy, px_first] = words else { return None };
        let side = |word| if word == "1" { Side::More } else { Side::Less };
        Some(Self {
            attack: attack == "1",
            x: x.parse::<usize>().ok()? + 1,
            y: y.parse::<usize>().ok()? + 1,
            dx: side(dx),
            dy: side(dy),
            px_first: px_first == "1",
        })
    }

    /// The six numbers of a reply.
    fn words(self) -> String {
        let attack = u8::from(self.attack);
        let px_first = u8::from(self.px_first);
        let x = self.x - 1;
        let y = self.y - 1;
        format!("{attack} {x} {y} {} {} {px_first}", self.dx.word(), self.dy.word())
    }
}

fn is_enemy(one: u8, other: u8) -> bool {
    one.is_ascii_uppercase() != other.is_ascii_uppercase()
}

/// The board in play.
#[derive(Clone, Default)]
struct Battle {
    width: usize,
    units: Vec<Unit>,
    /// [`WALL`], [`FREE`] or the index of a unit, row by row.
    holds: Vec<u16>,
}

impl Battle {
    /// Reads the arguments of `set_game`.
    fn parse(words: &[&str]) -> Option<Self> {
        let &[columns, rows, _, strength, ref lines @ ..] = words else { return None };
        let columns: usize = columns.parse().ok()?;
        let strength = strength.parse().ok()?;
        let width = columns + 2;
        let mut battle = Self { width, units: vec![], holds: vec![WALL; width] };
        for (y, line) in lines.iter().enumerate() {
            battle.holds.push(WALL);
            for (x, square) in line.bytes().enumerate() {
                battle.holds.push(match square {
                    b'#' => WALL,
                    b'.' => FREE,
                    _ => u16::try_from(battle.units.len()).ok()?,
                });
                if square.is_ascii_alphabetic() {
                    battle.units.push(Unit { x: x + 1, y: y + 1, strength, division: square });
                }
            }
            battle.holds.push(WALL);
        }
        battle.holds.extend(vec![WALL; width]);
        let is_whole = rows.parse() == Ok(lines.len()) && lines.iter().all(|l| l.len() == columns);
        is_whole.then_some(battle)
    }

    /// The numbers of columns and rows, without the walls around the board.
    fn size(&self) -> (usize, usize) {
        (self.width - 2, self.holds.len() / self.width - 2)
    }

    /// Copies another battle on the same board into this one, without allocation.
    fn copy(&mut self, other: &Self) {
        self.width = other.width;
        self.units.clone_from(&other.units);
        self.holds.clone_from(&other.holds);
    }

    /// The living units of a division.
    fn members(&self, division: u8) -> impl Iterator<Item = &Unit> {
        self.units.iter().filter(move |unit| unit.division == division && unit.strength > 0)
    }

    /// The living units that fight against a division.
    fn enemies(&self, division: u8) -> impl Iterator<Item = &Unit> {
        self.units.iter().filter(move |u| u.strength > 0 && is_enemy(u.division, division))
    }

    /// Carries out an order; `movers` is a reusable buffer.
    fn play(&mut self, division: u8, order: Order, movers: &mut Vec<(usize, usize)>) {
        movers.clear();
        for (index, unit) in self.units.iter().enumerate() {
            if unit.division == division && unit.strength > 0 {
                movers.push((order.distance(unit.x, unit.y), index));
            }
        }
        movers.sort_unstable();
        for &(_, index) in movers.iter() {
            self.advance(index, order);
        }
    }

    /// Moves one unit, or lets it attack.
    fn advance(&mut self, index: usize, order: Order) {
        let Unit { x, y, .. } = self.units[index];
        let (to_x, to_y) = self.choice(self.units[index], order);
        if (to_x, to_y) == (x, y) {
            return;
        }
        let to = to_y * self.width + to_x;
        if let Some(enemy) = self.units.get_mut(usize::from(self.holds[to])) {
            enemy.strength -= 1;
            if enemy.strength > 0 {
                return;
            }
        }
        let from = y * self.width + x;
        self.holds[to] = self.holds[from];
        self.holds[from] = FREE;
        (self.units[index].x, self.units[index].y) = (to_x, to_y);
    }

    /// The destination of a unit: its square or a neighbour.
    fn choice(&self, unit: Unit, order: Order) -> (usize, usize) {
        let mut least = (order.attack, order.distance(unit.x, unit.y));
        let mut choice = (unit.x, unit.y);
        for y in unit.y - 1..=unit.y + 1 {
            for x in unit.x - 1..=unit.x + 1 {
                let held = self.holds[y * self.width + x];
                let other = self.units.get(usize::from(held)).map(|other| other.division);
                let enemy = other.is_some_and(|other| is_enemy(other, unit.division));
                if held == FREE || enemy {
                    let key = (order.attack && !enemy, order.distance(x, y));
                    if key < least {
                        (least, choice) = (key, (x, y));
                    }
                }
            }
        }
        choice
    }

    /// The number of steps from each square to the nearest enemy of a division, around walls.
    fn survey(&self, division: u8) -> Vec<i64> {
        let mut walk = vec![FAR; self.holds.len()];
        let mut queue: Vec<_> = self.enemies(division).map(|u| u.y * self.width + u.x).collect();
        for &square in &queue {
            walk[square] = 0;
        }
        let mut head = 0;
        while let Some(&square) = queue.get(head) {
            head += 1;
            for row in [square - self.width, square, square + self.width] {
                for next in row - 1..=row + 1 {
                    if self.holds[next] != WALL && walk[next] == FAR {
                        walk[next] = walk[square] + 1;
                        queue.push(next);
                    }
                }
            }
        }
        walk
    }

    /// The order to march on the nearest enemy, if there are units and enemies.
    fn rush(&self, division: u8) -> Option<Order> {
        let own = self.members(division).next()?;
        let nearest = self.enemies(division).min_by_key(|e| squared(e.x, e.y, own.x, own.y))?;
        Some(Order::march(nearest.x, nearest.y))
    }

    /// The value of the battle for the player of a division.
    fn value(&self, division: u8, walk: &[i64]) -> i64 {
        let mut sum = 0;
        for unit in self.units.iter().filter(|unit| unit.strength > 0) {
            let strength = i64::from(unit.strength);
            let worth = UNIT * strength / (strength + 1);
            if is_enemy(unit.division, division) {
                sum -= worth;
            } else {
                sum += worth - STEP * walk[unit.y * self.width + unit.x];
            }
        }
        sum
    }
}

/// The bot: the battle, and buffers for trial battles.
#[derive(Default)]
struct House {
    battle: Battle,
    /// The divisions in the order of their moves.
    divisions: Vec<u8>,
    /// The maximum number of simulated unit moves for an order.
    budget: usize,
    /// The battle after an order of ours, and then after replies.
    trial: Battle,
    /// The battle after an order that may become a reply.
    reply: Battle,
    movers: Vec<(usize, usize)>,
}

/// The orders of the other divisions in a simulation.
#[derive(Clone, Copy)]
enum Followers {
    /// They march on the nearest enemy.
    Rush,
    /// They choose the order with the best value for them.
    Choose,
}

/// For each side, the distances of its enemies from each square at the time of the request.
struct Walks([Vec<i64>; 2]);

impl Walks {
    fn of(&self, division: u8) -> &[i64] {
        &self.0[usize::from(division.is_ascii_lowercase())]
    }
}

impl House {
    fn set_game(&mut self, words: &[&str]) -> Option<()> {
        self.battle = Battle::parse(words)?;
        self.divisions = self.battle.units.iter().map(|unit| unit.division).collect();
        self.divisions.sort_unstable_by_key(|d| (d.to_ascii_lowercase(), d.is_ascii_lowercase()));
        self.divisions.dedup();
        let rounds: usize = words[2].parse().ok()?;
        let orders = (rounds * self.divisions.len() / 2).max(1);
        self.budget = (GAME_BUDGET / orders).min(ORDER_BUDGET);
        Some(())
    }

    fn play(&mut self, words: &[&str]) -> Option<()> {
        let division = words.first()?.bytes().next()?;
        let order = Order::parse(&words[1..])?;
        self.battle.play(division, order, &mut self.movers);
        Some(())
    }

    /// Chooses the order with the best value of the battle afterwards.
    fn decide(&mut self, division: u8) -> Option<Order> {
        let walks = Walks([self.battle.survey(b'A'), self.battle.survey(b'a')]);
        let units = self.battle.units.iter().filter(|unit| unit.strength > 0).count().max(1);
        let mut orders = self.candidates(division, self.budget / 2 / units)?;
        orders.sort_by_cached_key(|order| {
            Reverse(self.play_out(division, *order, Followers::Rush, &walks))
        });
        orders.truncate((self.budget / 2 / units / REPLIES).clamp(1, SHORT_LIST));
        let value = |order: &Order| self.play_out(division, *order, Followers::Choose, &walks);
        orders.into_iter().rev().max_by_key(value)
    }

    /// About `most` orders to simulate; `None` if the division is dead.
    fn candidates(&self, division: u8, most: usize) -> Option<Vec<Order>> {
        let (columns, rows) = self.battle.size();
        let members = || self.battle.members(division);
        let left = members().map(|unit| unit.x).min()?.saturating_sub(REACH).max(1);
        let right = (members().map(|unit| unit.x).max()? + REACH).min(columns);
        let top = members().map(|unit| unit.y).min()?.saturating_sub(REACH).max(1);
        let bottom = (members().map(|unit| unit.y).max()? + REACH).min(rows);
        let squares = (right + 1 - left) * (bottom + 1 - top);
        let stride = (2 * squares / most.max(1)).isqrt() + 1;
        let mut orders = vec![];
        for y in (top..=bottom).step_by(stride) {
            for x in (left..=right).step_by(stride) {
                orders.push(Order::march(x, y));
                orders.push(Order { attack: false, ..Order::march(x, y) });
            }
        }
        Some(orders)
    }

    /// The value of the battle after an order and one move of every division.
    fn play_out(&mut self, division: u8, order: Order, followers: Followers, walks: &Walks) -> i64 {
        self.trial.copy(&self.battle);
        self.trial.play(division, order, &mut self.movers);
        let count = self.divisions.len();
        let start = self.divisions.iter().position(|d| *d == division).unwrap_or(0);
        for index in start + 1..start + 1 + count {
            let next = self.divisions[index % count];
            let order = match followers {
                Followers::Rush => self.trial.rush(next),
                Followers::Choose => self.choose(next, walks),
            };
            if let Some(order) = order {
                self.trial.play(next, order, &mut self.movers);
            }
        }
        self.trial.value(division, walks.of(division))
    }

    /// The best reply of a division in the trial: a march on one of the nearest enemies, or some
    /// steps in one of the nine directions. `None` if the division is dead.
    fn choose(&mut self, division: u8, walks: &Walks) -> Option<Order> {
        let count = self.trial.members(division).count();
        let sum = |of: fn(&Unit) -> usize| self.trial.members(division).map(of).sum::<usize>();
        let x = sum(|unit| unit.x).checked_div(count)?;
        let y = sum(|unit| unit.y).checked_div(count)?;
        let mut targets: Vec<_> = self.trial.enemies(division).map(|e| (e.x, e.y)).collect();
        targets.sort_by_key(|target| squared(target.0, target.1, x, y));
        targets.truncate(NEAREST);
        let (columns, rows) = self.trial.size();
        for x in [x.saturating_sub(REACH).max(1), x, (x + REACH).min(columns)] {
            for y in [y.saturating_sub(REACH).max(1), y, (y + REACH).min(rows)] {
                targets.push((x, y));
            }
        }
        let value = |target: &(usize, usize)| {
            self.reply.copy(&self.trial);
            self.reply.play(division, Order::march(target.0, target.1), &mut self.movers);
            self.reply.value(division, walks.of(division))
        };
        let (x, y) = targets.into_iter().rev().max_by_key(value)?;
        Some(Order::march(x, y))
    }
}

/// The reply to one command, without its `=` or `?`.
fn reply_to(house: &mut House, words: &[&str]) -> Option<String> {
    match words {
        ["set_game", rest @ ..] => house.set_game(rest).map(|()| String::new()),
        ["play", rest @ ..] => house.play(rest).map(|()| String::new()),
        ["gen_move", division] => house.decide(division.bytes().next()?).map(Order::words),
        ["time_left", ..] | ["quit"] => Some(String::new()),
        _ => None,
    }
}

fn main() -> io::Result<()> {
    let mut house = House::default();
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        match reply_to(&mut house, &words) {
            Some(text) => write!(output, "= {text}\n\n")?,
            None => write!(output, "? not understood\n\n")?,
        }
        output.flush()?;
        if words == ["quit"] {
            break;
        }
    }
    Ok(())
}
