//! Draws a position of a match from the data of its game.
//!
//! Boards are SVG, tables of cards are HTML. Both have a description in words. Their colours are
//! variables of the page's style sheet, [`crate::STYLE`].

use arbiter_games::picture::{self, BoardPicture, Cell, Item, Part, Row, Shape, TablePicture};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use maud::{Markup, PreEscaped, html};

/// A drawn position.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The position in one sentence.
    pub caption: String,
    /// The picture.
    pub markup: Markup,
}

/// Draws a picture.
pub fn draw(picture: &picture::Picture) -> Picture {
    let picture::Picture { caption, parts } = picture;
    let markup = html! {
        @for part in parts {
            @match part {
                Part::Board(picture) => (board(picture, caption)),
                Part::Table(picture) => (table(picture)),
                Part::Image { svg } => img.frame src=(data_address(svg)) alt=(caption);
                Part::Line { class, items } => p class=(class) { (self::items(items)) },
            }
        }
    };
    Picture { caption: caption.clone(), markup }
}

/// An address that contains the document itself. In an `<img>`, its scripts and links do not act.
fn data_address(svg: &str) -> String {
    format!("data:image/svg+xml;base64,{}", BASE64.encode(svg))
}

fn board(board: &BoardPicture, caption: &str) -> Markup {
    let BoardPicture { class, view, description, shapes } = board;
    html! {
        svg class=(class) viewBox=(view) role="img" aria-label=(caption) {
            title { (caption) }
            desc { (description) }
            @for child in shapes { (shape(child)) }
        }
    }
}

/// The element of a shape. The names of the element and its attributes are constants of this
/// program, so they need no escaping.
fn shape(shape: &Shape) -> Markup {
    let Shape { kind, class, attributes, text, shapes } = shape;
    let tag = kind.as_str();
    let class = Some(("class", class)).filter(|(_, class)| !class.is_empty());
    let attributes = attributes.iter().map(|(name, value)| (*name, value));
    html! {
        (PreEscaped("<")) (tag)
        @for (name, value) in class.into_iter().chain(attributes) {
            " " (name) (PreEscaped("=\"")) (value) (PreEscaped("\""))
        }
        (PreEscaped(">")) (text)
        @for child in shapes { (self::shape(child)) }
        (PreEscaped("</")) (tag) (PreEscaped(">"))
    }
}

fn table(table: &TablePicture) -> Markup {
    let TablePicture { class, head, rows, foot } = table;
    html! {
        table class=(class) {
            thead { tr { @for Cell { class, items, .. } in head { th class=[class] { (self::items(items)) } } } }
            tbody {
                @for Row { class, cells } in rows {
                    tr class=[class] { @for item in cells { (cell(item)) } }
                }
            }
            @if !foot.is_empty() { tfoot { tr { @for item in foot { (cell(item)) } } } }
        }
    }
}

fn cell(cell: &Cell) -> Markup {
    let Cell { class, columns, is_head, items } = cell;
    let columns = Some(columns).filter(|columns| **columns > 1);
    html! {
        @if *is_head {
            th class=[class] colspan=[columns] scope="row" { (self::items(items)) }
        } @else {
            td class=[class] colspan=[columns] { (self::items(items)) }
        }
    }
}

fn items(items: &[Item]) -> Markup {
    html! {
        @for item in items {
            @match item {
                Item::Text(text) => (text),
                Item::Small(text) => small { (text) },
                Item::Sign { class, title, text } => span class=(class) title=[title] { (text) },
                Item::Card { class, text } => span class={ "card " (class) } { (text) },
                Item::FaceDown => span.card.down title="face down" { "▒" },
                Item::Meter { max, value, label } => {
                    meter min="0" max=(max) value=(value) aria-label=(label) {}
                }
            }
        }
    }
}
