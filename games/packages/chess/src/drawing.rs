//! Draws a position.

use std::fmt::Write;

use cozy_chess::{BitBoard, Color, File, Piece, Rank, Square};

use crate::game::{Game, Played};

/// The side of a square.
const SIDE: usize = 50;

/// Maximum number of characters of a name.
const MAX_NAME: usize = 16;

/// The ids of the shapes of pieces, with the points that people count for them.
const PIECES: [(Piece, char, u32); 6] = [
    (Piece::Pawn, 'p', 1),
    (Piece::Knight, 'n', 3),
    (Piece::Bishop, 'b', 3),
    (Piece::Rook, 'r', 5),
    (Piece::Queen, 'q', 9),
    (Piece::King, 'k', 0),
];

/// The shapes of pieces, each for a square of 50 by 50. They have the colors of what uses them; the
/// lines inside have its `color`.
const SHAPES: &str = include_str!("shapes.svg");

/// Draws the position with the last move, a check, both names and, at the end, the points.
pub fn draw(game: &Game, names: &[String; 2]) -> String {
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 430 500\" \
         font-family=\"sans-serif\">",
    );
    svg.push_str(SHAPES.trim_end());
    svg.push_str("<rect width=\"430\" height=\"500\" rx=\"10\" fill=\"#262a33\"/>");
    let [white, black] = names;
    svg.push_str(&player(game, Color::Black, black, 25));
    svg.push_str(&player(game, Color::White, white, 475));
    svg.push_str("<g transform=\"translate(15 50)\">");
    svg.push_str(&squares());
    svg.push_str(&marks(game));
    svg.push_str(&coordinates());
    svg.push_str(&pieces(
        game,
        Color::White,
        "fill=\"#fffdf6\" stroke=\"#1d1f24\" color=\"#1d1f24\"",
    ));
    svg.push_str(&pieces(
        game,
        Color::Black,
        "fill=\"#34373f\" stroke=\"#0c0d10\" color=\"#d9d4c7\"",
    ));
    svg.push_str("</g></svg>");
    svg
}

/// The line of a player: color, name, lead in material, last move, and points at the end.
fn player(game: &Game, color: Color, name: &str, y: usize) -> String {
    let end = game.end();
    let is_to_move = end.is_none() && game.board().side_to_move() == color;
    let ring = if is_to_move { "#f5c542" } else { "#7b808c" };
    let fill = if color == Color::White { "#fffdf6" } else { "#0c0d10" };
    let mut line = format!(
        "<circle cx=\"26\" cy=\"{y}\" r=\"9\" fill=\"{fill}\" stroke=\"{ring}\" stroke-width=\"3\"/>\
         <text x=\"44\" y=\"{}\" font-size=\"18\" font-weight=\"bold\" fill=\"#f4f1ea\">{}",
        y + 6,
        escape(name)
    );
    let lead = material(game, color).saturating_sub(material(game, !color));
    if lead > 0 {
        let _ = write!(
            line,
            "<tspan dx=\"9\" font-size=\"15\" font-weight=\"normal\" fill=\"#9aa0ad\">+{lead}</tspan>"
        );
    }
    line.push_str("</text>");
    let last_move = game.moves().iter().rev().take(2).find(|played| played.color == color);
    let last_move = last_move.map(Played::numbered).unwrap_or_default();
    let points = end.map(|end| end.points()[color as usize]);
    let points = points.map(|points| ["0", "½", "1"][usize::try_from(points).unwrap_or_default()]);
    let _ = write!(
        line,
        "<text x=\"413\" y=\"{}\" font-size=\"17\" text-anchor=\"end\" fill=\"#c9cdd6\">{last_move}",
        y + 6
    );
    if let Some(points) = points {
        let _ = write!(
            line,
            "<tspan dx=\"12\" font-size=\"20\" font-weight=\"bold\" fill=\"#f5c542\">{points}</tspan>"
        );
    }
    line.push_str("</text>");
    line
}

/// The points of a player's pieces.
fn material(game: &Game, color: Color) -> u32 {
    let count = |piece| game.board().colored_pieces(color, piece).len();
    PIECES.iter().map(|(piece, _, points)| points * count(*piece)).sum()
}

/// The upper left corner of a square. White is below.
fn corner(square: Square) -> (usize, usize) {
    (square.file() as usize * SIDE, (7 - square.rank() as usize) * SIDE)
}

fn squares() -> String {
    let mut path = String::new();
    for square in BitBoard::DARK_SQUARES {
        let (x, y) = corner(square);
        let _ = write!(path, "M{x} {y}h50v50h-50z");
    }
    format!(
        "<rect width=\"400\" height=\"400\" fill=\"#ebe5d6\"/><path fill=\"#8199ad\" d=\"{path}\"/>"
    )
}

/// The marks below the pieces: the squares of the last move, and a king in check.
fn marks(game: &Game) -> String {
    let mut marks = String::new();
    for square in game.last_move().iter().flat_map(|played| played.squares()) {
        let (x, y) = corner(square);
        let _ = write!(
            marks,
            "<rect x=\"{x}\" y=\"{y}\" width=\"50\" height=\"50\" fill=\"#f5d547\" opacity=\".55\"/>"
        );
    }
    let board = game.board();
    if !board.checkers().is_empty() {
        let (x, y) = corner(board.king(board.side_to_move()));
        let _ = write!(
            marks,
            "<rect x=\"{x}\" y=\"{y}\" width=\"50\" height=\"50\" fill=\"url(#check)\"/>"
        );
    }
    marks
}

/// The letters of files and the numbers of ranks, in the corners of the squares at the edge.
fn coordinates() -> String {
    let mut labels = String::from("<g font-size=\"11\" font-weight=\"bold\">");
    let color = |square: Square| {
        if BitBoard::DARK_SQUARES.has(square) { "#ebe5d6" } else { "#64809a" }
    };
    for rank in Rank::ALL {
        let square = Square::new(File::A, rank);
        let (x, y) = corner(square);
        let _ = write!(
            labels,
            "<text x=\"{}\" y=\"{}\" fill=\"{}\">{rank}</text>",
            x + 3,
            y + 12,
            color(square)
        );
    }
    for file in File::ALL {
        let square = Square::new(file, Rank::First);
        let (x, y) = corner(square);
        let _ = write!(
            labels,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"{}\">{file}</text>",
            x + 48,
            y + 47,
            color(square)
        );
    }
    labels.push_str("</g>");
    labels
}

/// The pieces of a player.
fn pieces(game: &Game, color: Color, style: &str) -> String {
    let mut uses = format!("<g {style} stroke-width=\"1.5\" stroke-linejoin=\"round\">");
    for (piece, id, _) in PIECES {
        for square in game.board().colored_pieces(color, piece) {
            let (x, y) = corner(square);
            let _ = write!(uses, "<use href=\"#{id}\" x=\"{x}\" y=\"{y}\"/>");
        }
    }
    uses.push_str("</g>");
    uses
}

/// A name that is not too long, as text of an XML document.
fn escape(name: &str) -> String {
    let short = match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    };
    short.replace('&', "&amp;").replace('<', "&lt;")
}
