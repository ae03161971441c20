//! The speed of the rules on one core, without processes: `cargo bench -p arbiter-games`.
//!
//! Targets: a million unit moves of bitwa a second, and a million auctions of wojna.

use std::hint::black_box;
use std::time::{Duration, Instant};

use arbiter_games::bitwa::{Battle, Board, Division, Order, Sign, Square, official_boards};
use arbiter_games::wojna::{Deal, Deck, Move, Raise};
use arbiter_games::{Dice, Seed};

/// How long each measurement takes.
const SPAN: Duration = Duration::from_secs(2);

fn main() {
    report("bitwa", "unit moves", 1e6, bitwa());
    report("wojna", "auctions", 1e6, wojna());
}

fn report(game: &str, what: &str, target: f64, rate: f64) {
    let ratio = rate / target;
    println!("{game}: {rate:.3e} {what}/s, {ratio:.1} times the target of {target:.0e}");
}

/// Unit moves a second: every division of every official board moves to and fro at random.
fn bitwa() -> f64 {
    let boards: Vec<Board> = official_boards()
        .map(|(_, text)| text.parse().expect("shipped boards are valid"))
        .collect();
    let mut dice = Seed([1; 32]).dice(0);
    let mut moves = 0_u64;
    let began = Instant::now();
    while began.elapsed() < SPAN {
        for board in &boards {
            let mut battle = Battle::new(board);
            for _ in 0..board.rounds() {
                for division in Division::all() {
                    let coordinate = |dice: &mut Dice, side: usize| {
                        u8::try_from(dice.index(side)).expect("boards are small")
                    };
                    let x = coordinate(&mut dice, board.columns());
                    let y = coordinate(&mut dice, board.rows());
                    let order = Order {
                        attack: x % 2 == 0,
                        target: Square { x, y },
                        dx: Sign::Plus,
                        dy: Sign::Minus,
                        px_first: y % 2 == 0,
                    };
                    moves += battle.units(division).len() as u64;
                    battle.carry_out(division, order);
                }
                if battle.is_decided() {
                    break;
                }
            }
            black_box(&battle);
        }
    }
    rate(moves, began)
}

/// Auctions a second: four seats that check, raise and pass in turn.
fn wojna() -> f64 {
    let mut deal = Deal::new(&Deck::default(), 4, Seed([1; 32]));
    let mut dice = Seed([2; 32]).dice(0);
    let mut auctions = 0_u64;
    let began = Instant::now();
    while began.elapsed() < SPAN {
        while deal.open() {
            while deal.turn().is_some() {
                let choice = match dice.below(8) {
                    0..3 => Move::Pass,
                    3 if deal.play(Move::Raise(Raise::One)).is_ok() => continue,
                    _ => Move::Check,
                };
                deal.play(choice).expect("a player who passes or checks can pay");
            }
            deal.settle();
            auctions += 1;
        }
        deal.redeal();
    }
    rate(auctions, began)
}

#[expect(clippy::cast_precision_loss, reason = "a rate is shown with four digits")]
fn rate(count: u64, began: Instant) -> f64 {
    count as f64 / began.elapsed().as_secs_f64()
}
