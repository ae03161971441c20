//! Draws a position of a match from the data of its game.
//!
//! Boards are SVG, tables of cards are HTML. Both have a description in words. Their colours are
//! variables of the page's style sheet, [`crate::STYLE`]. The markup is short, since a page fetches
//! hundreds of steps: a card is a `<b>`, its back an `<i>`, and style follows from the line that
//! contains them.

use arbiter_games::picture::{
    self, BoardPicture, Cell, Item, Line, Part, Place, PlacesPicture, Row, Shape, TablePicture,
};
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
                Part::Places(picture) => (places(picture)),
                Part::Image { svg } => img.frame src=(data_address(svg)) alt=(caption);
                Part::Line(content) => (line(content)),
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

fn places(picture: &PlacesPicture) -> Markup {
    let PlacesPicture { class, places } = picture;
    html! {
        ul class={ "places " (class) } {
            @for Place { class, lines } in places {
                li class=[Some(class).filter(|class| !class.is_empty())] {
                    @for content in lines { (line(content)) }
                }
            }
        }
    }
}

fn line(line: &Line) -> Markup {
    let Line { class, items } = line;
    html! { p class=(class) { (self::items(items)) } }
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
                Item::Label(text) => em { (text) },
                Item::Sign { class, text } => span class=(class) { (text) },
                Item::Card { class, text } => {
                    b class=[Some(class).filter(|class| !class.is_empty())] { (text) }
                }
                Item::FaceDown => i role="img" aria-label="face down" {},
                Item::Stack { count, full } => {
                    // Each piece is a dash, two units wide.
                    svg viewBox={ "0 0 " (2 * full) " 1" } preserveAspectRatio="none" aria-hidden="true" {
                        path d={ "M0,.5H" (2 * count) } {}
                    }
                }
            }
        }
    }
}
