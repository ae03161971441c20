//! A game of chess: its moves so far and how it ends.

use cozy_chess::util::{display_san_move, display_uci_move};
use cozy_chess::{BitBoard, Board, Color, Move, Piece, Square};

/// The number of plies without a capture or a pawn move after which the game is a draw.
const MAX_QUIET_PLIES: u8 = 100;

/// A game that begins with the usual position.
pub struct Game {
    board: Board,
    /// The positions before each move.
    earlier: Vec<Board>,
    moves: Vec<Played>,
    /// The number of plies after which the game is a draw.
    max_plies: usize,
}

/// A move that was played.
pub struct Played {
    /// The move as UCI engines write it: `e2e4`, `e7e8q`, `e1g1` for castling.
    pub uci: String,
    /// The move as people write it: `e4`, `e8=Q+`, `O-O`.
    pub san: String,
    /// The player.
    pub color: Color,
    /// The number of the move, from 1.
    number: u16,
}

/// How a game ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// This color has won.
    Checkmate(Color),
    Stalemate,
    InsufficientMaterial,
    ThreefoldRepetition,
    FiftyMoves,
    MaxPlies,
}

/// A move is not legal.
#[derive(Debug, PartialEq, Eq)]
pub struct IllegalMove;

impl Played {
    /// The move with its number: `14. Nf3`, or `14… Nf6` if Black played it.
    pub fn numbered(&self) -> String {
        let dots = match self.color {
            Color::White => ".",
            Color::Black => "…",
        };
        format!("{}{dots} {}", self.number, self.san)
    }

    /// The squares where the piece stood before and stands now.
    pub fn squares(&self) -> [Square; 2] {
        [&self.uci[..2], &self.uci[2..4]].map(|name| name.parse().expect("a square"))
    }
}

impl End {
    /// The points of White and Black: 2 for a win, 1 for a draw.
    pub fn points(self) -> [i64; 2] {
        match self {
            Self::Checkmate(Color::White) => [2, 0],
            Self::Checkmate(Color::Black) => [0, 2],
            _ => [1, 1],
        }
    }

    /// The reason in words.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Checkmate(_) => "checkmate",
            Self::Stalemate => "draw by stalemate",
            Self::InsufficientMaterial => "draw by insufficient material",
            Self::ThreefoldRepetition => "draw by threefold repetition",
            Self::FiftyMoves => "draw by the fifty-move rule",
            Self::MaxPlies => "draw because the game is too long",
        }
    }
}

impl Game {
    /// A game before its first move, which is a draw after `max_plies`.
    pub fn new(max_plies: usize) -> Self {
        Self { board: Board::startpos(), earlier: Vec::new(), moves: Vec::new(), max_plies }
    }

    /// The position.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// The moves so far.
    pub fn moves(&self) -> &[Played] {
        &self.moves
    }

    /// The last move.
    pub fn last_move(&self) -> Option<&Played> {
        self.moves.last()
    }

    /// The legal moves, each as UCI engines write it.
    pub fn legal_moves(&self) -> Vec<(String, Move)> {
        let mut legal = Vec::new();
        self.board.generate_moves(|moves| {
            let named = |mv| (display_uci_move(&self.board, mv).to_string(), mv);
            legal.extend(moves.into_iter().map(named));
            false
        });
        legal
    }

    /// Plays a move.
    ///
    /// # Errors
    /// If it is not the name of a legal move.
    pub fn play(&mut self, uci: &str) -> Result<(), IllegalMove> {
        let legal = self.legal_moves();
        let (_, mv) = legal.iter().find(|(name, _)| name == uci).ok_or(IllegalMove)?;
        self.moves.push(Played {
            uci: uci.to_owned(),
            san: display_san_move(&self.board, *mv).to_string(),
            color: self.board.side_to_move(),
            number: self.board.fullmove_number(),
        });
        self.earlier.push(self.board.clone());
        self.board.play(*mv);
        Ok(())
    }

    /// How the game has ended, if it has.
    pub fn end(&self) -> Option<End> {
        let board = &self.board;
        if !board.generate_moves(|_| true) {
            let is_check = !board.checkers().is_empty();
            return Some(if is_check {
                End::Checkmate(!board.side_to_move())
            } else {
                End::Stalemate
            });
        }
        if has_insufficient_material(board) {
            return Some(End::InsufficientMaterial);
        }
        if self.occurrences() >= 3 {
            return Some(End::ThreefoldRepetition);
        }
        if board.halfmove_clock() >= MAX_QUIET_PLIES {
            return Some(End::FiftyMoves);
        }
        (self.moves.len() >= self.max_plies).then_some(End::MaxPlies)
    }

    /// How often the position has occurred, with this time. Castling rights count, and so does a
    /// capture en passant if it is legal.
    fn occurrences(&self) -> usize {
        let since_capture = usize::from(self.board.halfmove_clock());
        let earlier = self.earlier.iter().rev().take(since_capture);
        1 + earlier.filter(|earlier| earlier.same_position(&self.board)).count()
    }
}

/// Whether no sequence of moves leads to checkmate for lack of material: bare kings, one knight or
/// bishop besides, or any bishops on squares of one color.
fn has_insufficient_material(board: &Board) -> bool {
    let [knights, bishops] = [Piece::Knight, Piece::Bishop].map(|piece| board.pieces(piece));
    let minor = knights | bishops;
    if board.occupied() != (minor | board.pieces(Piece::King)) {
        return false;
    }
    let one_color = |squares: BitBoard| bishops.is_subset(squares);
    minor.len() <= 1
        || knights.is_empty()
            && (one_color(BitBoard::DARK_SQUARES) || one_color(BitBoard::LIGHT_SQUARES))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn game_at(fen: &str) -> Game {
        Game { board: fen.parse().unwrap(), ..Game::new(400) }
    }

    /// Plays moves, all but the last of which do not end the game.
    fn play(game: &mut Game, moves: &str) -> Option<End> {
        for uci in moves.split(' ') {
            assert_eq!(game.end(), None, "before {uci}");
            assert_eq!(game.play(uci), Ok(()), "{uci}");
        }
        game.end()
    }

    fn end_at(fen: &str) -> Option<End> {
        game_at(fen).end()
    }

    #[test]
    fn checkmate_and_stalemate() {
        let mut game = Game::new(400);
        let end = play(&mut game, "f2f3 e7e5 g2g4 d8h4");
        assert_eq!(end, Some(End::Checkmate(Color::Black)));
        assert_eq!(end_at("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"), Some(End::Stalemate));
    }

    #[test]
    fn the_third_occurrence_of_a_position_is_a_draw() {
        let mut game = Game::new(400);
        let end = play(&mut game, "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8");
        assert_eq!(end, Some(End::ThreefoldRepetition));
        // The right to castle belongs to a position: it is lost with the first move of the king.
        let mut game = game_at("4k3/p7/8/8/8/8/P7/4K2R w K - 0 1");
        let end = play(&mut game, "e1e2 e8e7 e2e1 e7e8 e1e2 e8e7 e2e1 e7e8 e1e2");
        assert_eq!(end, Some(End::ThreefoldRepetition));
    }

    #[test]
    fn fifty_moves_are_a_draw_unless_the_last_one_is_checkmate() {
        let fen = "7k/8/6K1/8/8/8/p7/R7 w - - 99 80";
        assert_eq!(play(&mut game_at(fen), "a1b1"), Some(End::FiftyMoves));
        let fen = "7k/1p6/6K1/8/8/8/8/R7 w - - 99 80";
        assert_eq!(play(&mut game_at(fen), "a1a8"), Some(End::Checkmate(Color::White)));
    }

    #[test]
    fn insufficient_material() {
        let bare = |pieces: &str| end_at(&format!("4k3/8/8/8/8/8/{pieces}/4K3 w - - 0 1"));
        for pieces in ["8", "N7", "b7", "B1b1B3", "1B1b4"] {
            assert_eq!(bare(pieces), Some(End::InsufficientMaterial), "{pieces}");
        }
        for pieces in ["P7", "q7", "R7", "NN6", "N1b5", "Bb6", "n1N5"] {
            assert_eq!(bare(pieces), None, "{pieces}");
        }
    }

    #[test]
    fn long_games_are_draws() {
        assert_eq!(play(&mut Game::new(2), "e2e4 e7e5"), Some(End::MaxPlies));
    }

    #[test]
    fn only_names_of_legal_moves_are_moves() {
        let mut game = game_at("r3k2r/1P6/8/8/8/8/8/R3K2R w KQkq - 0 1");
        let names =
            ["", "e1", "e1e3", "e1h1", "E1G1", "O-O", "b7b8", "b7b8k", "b7b8Q", "e1g1 ", "0000"];
        for name in names {
            assert_eq!(game.play(name), Err(IllegalMove), "{name}");
        }
        assert_eq!(game.play("e1g1"), Ok(()));
    }

    #[test]
    fn moves_as_people_write_them() {
        let written = |fen: &str, uci: &str| {
            let mut game = game_at(fen);
            game.play(uci).unwrap();
            game.last_move().unwrap().numbered()
        };
        let castling = "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 9";
        assert_eq!(written(castling, "e8c8"), "9… O-O-O");
        assert_eq!(written("3r4/4P1k1/8/8/8/8/8/4K3 w - - 0 60", "e7d8n"), "60. exd8=N");
        assert_eq!(written("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 5", "e5d6"), "5. exd6");
        assert_eq!(written("6k1/5ppp/8/8/8/8/8/R3R1K1 w - - 0 30", "a1d1"), "30. Rad1");
        assert_eq!(written("6k1/5ppp/8/8/R7/8/8/R5K1 w - - 0 30", "a4a2"), "30. R4a2");
        assert_eq!(written("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 30", "a1a8"), "30. Ra8#");
    }
}
