//! A UCI engine that looks a few moves ahead: alpha-beta search, exchanges to their end, and the
//! values and places of pieces.

mod evaluation;
mod search;

use std::io;

use cozy_chess::util::{display_uci_move, parse_uci_move};
use cozy_chess::{Board, Color};
use search::Search;

/// The depth of the search in plies, by the time left in milliseconds.
const DEPTHS: [(u64, u8); 3] = [(2000, 4), (500, 3), (0, 2)];

fn main() -> io::Result<()> {
    let mut search = Search::default();
    let mut board = Board::default();
    for line in io::stdin().lines() {
        let line = line?;
        let mut words = line.split_whitespace();
        match words.next() {
            Some("uci") => println!("id name knight\nuciok"),
            Some("isready") => println!("readyok"),
            Some("position") => (board, search) = position(words),
            Some("go") => {
                let time_left = time_left(words, board.side_to_move());
                let depth = DEPTHS.iter().find(|(time, _)| time_left >= *time);
                match search.best_move(&board, depth.map_or(1, |(_, depth)| *depth)) {
                    Some((mv, score)) => println!(
                        "info depth {} score cp {score} nodes {}\nbestmove {}",
                        depth.map_or(1, |(_, depth)| *depth),
                        search.nodes,
                        display_uci_move(&board, mv)
                    ),
                    None => println!("bestmove 0000"),
                }
            }
            Some("quit") => break,
            _ => (),
        }
    }
    Ok(())
}

/// The position after `startpos` or `fen …`, and `moves …`. The search knows the earlier ones,
/// which it must not repeat.
fn position<'a>(mut words: impl Iterator<Item = &'a str>) -> (Board, Search) {
    let setup: Vec<_> = words.by_ref().take_while(|word| *word != "moves").collect();
    let mut board = match setup.split_first() {
        Some((&"fen", fen)) => fen.join(" ").parse().expect("a valid position"),
        _ => Board::default(),
    };
    let mut search = Search::default();
    for word in words {
        search.earlier.push(board.hash());
        board.play(parse_uci_move(&board, word).expect("a move"));
    }
    (board, search)
}

/// The milliseconds left for a player, from `wtime 1000 btime 2000 …`. Plenty if it is not said.
fn time_left<'a>(words: impl Iterator<Item = &'a str>, player: Color) -> u64 {
    let key = if player == Color::White { "wtime" } else { "btime" };
    let time = words.skip_while(|word| *word != key).nth(1);
    time.and_then(|time| time.parse().ok()).unwrap_or(u64::MAX)
}
