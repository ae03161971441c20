//! The value of a position: pieces and their places.

use cozy_chess::{Board, Color, Piece, Rank, Square};

/// The values of pieces in hundredths of a pawn, in the order of [`Piece`].
pub const VALUES: [i32; Piece::NUM] = [100, 320, 330, 500, 900, 0];

/// A value of other pieces than pawns, of both players, below which kings should be active.
const ENDGAME: i32 = 2600;

/// The value of a position for the player to move, in hundredths of a pawn.
pub fn evaluate(board: &Board) -> i32 {
    let officers = [Piece::Knight, Piece::Bishop, Piece::Rook, Piece::Queen];
    let value = |piece| VALUES[piece as usize] * board.pieces(piece).len() as i32;
    let is_endgame = officers.map(value).iter().sum::<i32>() < ENDGAME;
    let player = board.side_to_move();
    total(board, player, is_endgame) - total(board, !player, is_endgame)
}

fn total(board: &Board, color: Color, is_endgame: bool) -> i32 {
    let mut total = 0;
    for piece in Piece::ALL {
        for square in board.colored_pieces(color, piece) {
            let seen = square.relative_to(color);
            total += VALUES[piece as usize] + place(piece, seen, is_endgame);
        }
    }
    let king = board.king(!color);
    if is_endgame && total > 0 {
        // To mate, drive the other king to the edge and come near it.
        let own = board.king(color);
        let files = (own.file() as i32 - king.file() as i32).abs();
        let ranks = (own.rank() as i32 - king.rank() as i32).abs();
        total -= 4 * files.max(ranks);
    }
    total
}

/// The value of a piece's place, as White sees it.
fn place(piece: Piece, square: Square, is_endgame: bool) -> i32 {
    let rank = square.rank() as i32;
    // 0 at the edge, 3 in the center.
    let file_center = (square.file() as i32).min(7 - square.file() as i32);
    let center = file_center + rank.min(7 - rank);
    match piece {
        Piece::Pawn if is_endgame => 8 * rank,
        Piece::Pawn => 2 * rank + if rank >= 2 { 6 * file_center } else { 0 } - 10,
        Piece::Knight => 8 * center - 24,
        Piece::Bishop => 4 * center - 10,
        Piece::Rook if square.rank() == Rank::Seventh => 20,
        Piece::Rook => 3 * file_center,
        Piece::Queen => center,
        Piece::King if is_endgame => 10 * center - 30,
        Piece::King => -12 * rank - 10 * file_center,
    }
}
