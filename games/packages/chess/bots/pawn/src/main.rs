//! A UCI engine that looks one move ahead: it mates if it can, takes the most valuable piece that
//! it can, and otherwise moves by a number that the position gives.

use std::io;

use cozy_chess::util::{display_uci_move, parse_uci_move};
use cozy_chess::{Board, GameStatus, Move};

fn main() -> io::Result<()> {
    let mut board = Board::default();
    for line in io::stdin().lines() {
        let line = line?;
        let mut words = line.split_whitespace();
        match words.next() {
            Some("uci") => println!("id name pawn\nuciok"),
            Some("isready") => println!("readyok"),
            Some("position") => board = position(words),
            Some("go") => match choose(&board) {
                Some(mv) => println!("bestmove {}", display_uci_move(&board, mv)),
                None => println!("bestmove 0000"),
            },
            Some("quit") => break,
            _ => (),
        }
    }
    Ok(())
}

/// The position after `startpos` or `fen …`, and `moves …`.
fn position<'a>(mut words: impl Iterator<Item = &'a str>) -> Board {
    let setup: Vec<_> = words.by_ref().take_while(|word| *word != "moves").collect();
    let mut board = match setup.split_first() {
        Some((&"fen", fen)) => fen.join(" ").parse().expect("a valid position"),
        _ => Board::default(),
    };
    for word in words {
        board.play(parse_uci_move(&board, word).expect("a move"));
    }
    board
}

fn choose(board: &Board) -> Option<Move> {
    let mut legal = Vec::new();
    board.generate_moves(|moves| {
        legal.extend(moves);
        false
    });
    let key = |mv: &Move| {
        let mut next = board.clone();
        next.play(*mv);
        let is_capture = board.colors(!board.side_to_move()).has(mv.to);
        let victim = board.piece_on(mv.to).filter(|_| is_capture);
        // Chance that differs from move to move, so that the engine rarely repeats itself.
        let chance = next.hash().wrapping_mul(2 * u64::from(board.fullmove_number()) + 1);
        (next.status() == GameStatus::Won, victim, mv.promotion, chance)
    };
    legal.into_iter().max_by_key(key)
}
