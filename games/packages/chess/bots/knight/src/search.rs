//! Alpha-beta search of a fixed depth, which follows captures to their end.

use cozy_chess::{Board, GameStatus, Move, Piece};

use crate::evaluation::{VALUES, evaluate};

/// More than any value of a position.
const INFINITE: i32 = 1_000_000;

/// The value of checkmate. Nearer ones count more.
const MATE: i32 = 100_000;

/// A search from a position.
#[derive(Default)]
pub struct Search {
    /// The hashes of the positions before it and on the way down.
    pub earlier: Vec<u64>,
    /// The number of positions searched.
    pub nodes: u64,
}

impl Search {
    /// The best move with its value.
    pub fn best_move(&mut self, board: &Board, depth: u8) -> Option<(Move, i32)> {
        let mut best = None;
        let mut alpha = -INFINITE;
        for mv in ordered_moves(board, false) {
            let score = -self.after(board, mv, depth - 1, -INFINITE, -alpha);
            if best.is_none() || score > alpha {
                alpha = score;
                best = Some((mv, score));
            }
        }
        best
    }

    /// The value for the other player after a move.
    fn after(&mut self, board: &Board, mv: Move, depth: u8, alpha: i32, beta: i32) -> i32 {
        self.earlier.push(board.hash());
        let mut next = board.clone();
        next.play_unchecked(mv);
        let score = self.value(&next, depth, alpha, beta);
        self.earlier.pop();
        score
    }

    /// The value of a position for the player to move.
    fn value(&mut self, board: &Board, depth: u8, mut alpha: i32, beta: i32) -> i32 {
        self.nodes += 1;
        let reversible = usize::from(board.halfmove_clock());
        if self.earlier.iter().rev().take(reversible).any(|hash| *hash == board.hash()) {
            return 0;
        }
        match board.status() {
            GameStatus::Won => return -MATE - i32::from(depth),
            GameStatus::Drawn => return 0,
            GameStatus::Ongoing => (),
        }
        if depth == 0 {
            return self.exchanges(board, alpha, beta);
        }
        for mv in ordered_moves(board, false) {
            alpha = alpha.max(-self.after(board, mv, depth - 1, -beta, -alpha));
            if alpha >= beta {
                break;
            }
        }
        alpha
    }

    /// The value of a position after the captures that pay.
    fn exchanges(&mut self, board: &Board, mut alpha: i32, beta: i32) -> i32 {
        self.nodes += 1;
        alpha = alpha.max(evaluate(board));
        if alpha >= beta {
            return alpha;
        }
        for mv in ordered_moves(board, true) {
            let mut next = board.clone();
            next.play_unchecked(mv);
            alpha = alpha.max(-self.exchanges(&next, -beta, -alpha));
            if alpha >= beta {
                break;
            }
        }
        alpha
    }
}

/// The legal moves, or the captures and promotions among them, promising ones first.
fn ordered_moves(board: &Board, only_captures: bool) -> Vec<Move> {
    let others = board.colors(!board.side_to_move());
    let mut ordered = Vec::with_capacity(40);
    board.generate_moves(|moves| {
        for mv in moves {
            let victim = board.piece_on(mv.to).filter(|_| others.has(mv.to));
            if only_captures && victim.is_none() && mv.promotion != Some(Piece::Queen) {
                continue;
            }
            let gain = |piece: Option<Piece>| piece.map_or(0, |piece| VALUES[piece as usize]);
            let risk = victim.map_or(0, |_| VALUES[moves.piece as usize] / 10);
            ordered.push((-gain(victim) * 10 - gain(mv.promotion) + risk, mv));
        }
        false
    });
    ordered.sort_by_key(|(order, _)| *order);
    ordered.into_iter().map(|(_, mv)| mv).collect()
}
