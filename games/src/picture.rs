//! Pictures of a match as plain data: boards of shapes, places around a table of cards, tables of
//! numbers, and descriptions in words. Other crates draw them; `class` fields are CSS classes.
//!
//! A match has thousands of pictures, and viewers fetch many of them at once. So a picture has few
//! and short parts, and its parts keep their order from step to step.

use alloc::borrow::Cow;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::name::EntrantName;
use crate::seat::Seat;

/// A picture of a match at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// What the last move did, in a sentence.
    pub caption: String,
    /// The parts, from top to bottom.
    pub parts: Vec<Part>,
}

/// A picture that a game package draws.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// The picture: a whole SVG document. It is shown as an image only, so that nothing in it acts.
    pub svg: String,
    /// What it shows, in words.
    pub caption: String,
}

/// A key that distinguishes any two pictures of a match.
pub type Key = [u64; 6];

/// A part of a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A board.
    Board(BoardPicture),
    /// A table of numbers.
    Table(TablePicture),
    /// The places around a table of cards.
    Places(PlacesPicture),
    /// A whole SVG document of a game package. It is not trusted: it is shown as an image only.
    Image {
        /// The document.
        svg: String,
    },
    /// A paragraph.
    Line(Line),
}

/// The places around a table of cards, such as seats, a dealer and a pot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacesPicture {
    /// Its class.
    pub class: &'static str,
    /// The places.
    pub places: Vec<Place>,
}

/// A place at a table of cards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its classes, possibly empty.
    pub class: Cow<'static, str>,
    /// Its contents, from top to bottom.
    pub lines: Vec<Line>,
}

/// A paragraph. The cards of a line of the class `hand` are drawn as cards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its classes.
    pub class: Cow<'static, str>,
    /// Its contents.
    pub items: Vec<Item>,
}

/// A board made of shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardPicture {
    /// Its class.
    pub class: &'static str,
    /// The SVG view box: left, top, width and height.
    pub view: String,
    /// A description in words.
    pub description: String,
    /// The shapes, later ones on top.
    pub shapes: Vec<Shape>,
}

/// A shape with its class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The kind.
    pub kind: ShapeKind,
    /// Its class.
    pub class: Cow<'static, str>,
    /// Its SVG attributes.
    pub attributes: Vec<(&'static str, Cow<'static, str>)>,
    /// The content of a text.
    pub text: String,
    /// The shapes in a group.
    pub shapes: Vec<Self>,
}

crate::string_enum! {
    /// The kind of a shape, named as in SVG.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ShapeKind {
        /// A rectangle.
        Rectangle = "rect",
        /// A circle.
        Circle = "circle",
        /// A straight line.
        Line = "line",
        /// A path.
        Path = "path",
        /// A text.
        Text = "text",
        /// Several shapes.
        Group = "g",
    }
}

impl Shape {
    /// A shape of this kind, without attributes.
    pub fn new(kind: ShapeKind, class: impl Into<Cow<'static, str>>) -> Self {
        let class = class.into();
        Self { kind, class, attributes: Vec::new(), text: String::new(), shapes: Vec::new() }
    }

    /// A path with this data.
    pub(crate) fn path(class: &'static str, data: &str) -> Self {
        Self::new(ShapeKind::Path, class).with_attributes([("d", &data)])
    }

    /// The shape with these attributes.
    #[must_use]
    pub fn with_attributes<const N: usize>(
        mut self,
        attributes: [(&'static str, &dyn fmt::Display); N],
    ) -> Self {
        self.attributes
            .extend(attributes.map(|(name, value)| (name, Cow::Owned(value.to_string()))));
        self
    }

    /// The shape with this text.
    #[must_use]
    pub fn with_text(mut self, text: impl fmt::Display) -> Self {
        self.text = text.to_string();
        self
    }

    /// The group with these shapes.
    #[must_use]
    pub fn with_shapes(mut self, shapes: Vec<Self>) -> Self {
        self.shapes = shapes;
        self
    }
}

/// A table of cards or numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePicture {
    /// Its classes.
    pub class: &'static str,
    /// The column headers.
    pub head: Vec<Cell>,
    /// The rows.
    pub rows: Vec<Row>,
    /// The footer row.
    pub foot: Vec<Cell>,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its class, in tables whose rows differ.
    pub class: Option<&'static str>,
    /// Its contents.
    pub cells: Vec<Cell>,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Its class, if it has one.
    pub class: Option<Cow<'static, str>>,
    /// The number of columns that it spans.
    pub columns: usize,
    /// Whether it is the header of its row.
    pub is_head: bool,
    /// Its contents.
    pub items: Vec<Item>,
}

/// An item in a cell or a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A text.
    Text(String),
    /// A label, such as the state of a seat.
    Label(Cow<'static, str>),
    /// A sign.
    Sign {
        /// Its class.
        class: &'static str,
        /// The sign.
        text: &'static str,
    },
    /// An open card.
    Card {
        /// Its classes, possibly empty: `r` for a red suit, `t` for a trump, and what happened to
        /// the card.
        class: Cow<'static, str>,
        /// Its text.
        text: String,
    },
    /// A card face down.
    FaceDown,
    /// A quantity as a row of equal pieces: a pile of cards, or chips. It repeats a number that is
    /// written beside it.
    Stack {
        /// The number of pieces.
        count: u64,
        /// The number of pieces that fill the whole width.
        full: u64,
    },
}

impl Item {
    /// A text.
    pub fn text(text: impl fmt::Display) -> Self {
        Self::Text(text.to_string())
    }

    /// A label.
    pub fn label(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Label(text.into())
    }

    /// An open card with these classes, possibly empty.
    pub fn card(text: impl fmt::Display, class: impl Into<Cow<'static, str>>) -> Self {
        Self::Card { class: class.into(), text: text.to_string() }
    }
}

impl Line {
    /// A line with these items.
    pub fn new(class: impl Into<Cow<'static, str>>, items: Vec<Item>) -> Self {
        Self { class: class.into(), items }
    }

    /// The first line of a place: whose it is, and its state in words.
    pub fn heading(title: impl fmt::Display, state: impl Into<Cow<'static, str>>) -> Self {
        Self::new("who", vec![Item::text(title), Item::label(state)])
    }

    /// A line with a quantity in words, as a stack, and how much it changed; a change of 0 is not
    /// shown.
    pub fn amount(text: impl fmt::Display, stack: Item, change: i64) -> Self {
        let label = if change == 0 { String::new() } else { signed(change) };
        Self::new("amount", vec![Item::text(text), stack, Item::label(label)])
    }
}

impl Cell {
    /// A cell with these items.
    pub fn of(items: Vec<Item>) -> Self {
        Self { class: None, columns: 1, is_head: false, items }
    }

    /// A cell with a text.
    pub fn text(text: impl fmt::Display) -> Self {
        Self::of(vec![Item::text(text)])
    }

    /// A cell with a number.
    pub fn number(number: impl fmt::Display) -> Self {
        Self::text(number).with_class("number")
    }

    /// A cell with the number of a seat.
    pub fn seat(seat: Seat) -> Self {
        Self::text(seat).with_class(alloc::format!("seat{seat}"))
    }

    /// The cell with this class.
    #[must_use]
    pub fn with_class(mut self, class: impl Into<Cow<'static, str>>) -> Self {
        self.class = Some(class.into());
        self
    }

    /// The cell spanning this many columns.
    #[must_use]
    pub fn spanning(mut self, columns: usize) -> Self {
        self.columns = columns;
        self
    }

    /// The cell as the header of its row.
    #[must_use]
    pub fn as_header(mut self) -> Self {
        self.is_head = true;
        self
    }
}

/// Whether `viewer` may see the cards of `seat`; without a viewer everything is visible.
pub fn can_see(viewer: Option<Seat>, seat: Seat) -> bool {
    viewer.is_none_or(|viewer| viewer == seat)
}

impl Picture {
    /// The last picture that a game package drew, or the names of the bots if it drew none.
    pub fn of_frame(frame: Option<&Frame>, names: &[EntrantName]) -> Self {
        let Some(Frame { svg, caption }) = frame else {
            let names: Vec<_> = names.iter().map(EntrantName::as_str).collect();
            return Self { caption: names.join(", "), parts: Vec::new() };
        };
        Self { caption: caption.clone(), parts: vec![Part::Image { svg: svg.clone() }] }
    }
}

/// The name of the bot at a seat.
pub fn name(names: &[EntrantName], seat: Seat) -> &str {
    names.get(seat.index()).map_or("?", EntrantName::as_str)
}

/// The number of a seat and the name of its bot, on one line.
pub(crate) fn seat_name(names: &[EntrantName], seat: Seat) -> String {
    alloc::format!("{seat}\u{a0}{}", name(names, seat))
}

/// A change with its sign; 0 has none.
pub(crate) fn signed(change: i64) -> String {
    match change {
        ..0 => alloc::format!("−{}", change.unsigned_abs()),
        0 => "0".to_string(),
        1.. => alloc::format!("+{change}"),
    }
}

/// Words as a list: `a, b and c`.
pub(crate) fn list<T: AsRef<str>>(words: &[T]) -> String {
    let mut text = String::new();
    for (index, word) in words.iter().enumerate() {
        let rest = words.len() - index;
        text.push_str(if index == 0 {
            ""
        } else if rest == 1 {
            " and "
        } else {
            ", "
        });
        text.push_str(word.as_ref());
    }
    text
}

/// A number of things, as in `1 card` and `2 cards`.
pub(crate) fn count(number: impl Into<u64>, noun: &str) -> String {
    let number = number.into();
    alloc::format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A number for a [`Key`] or a stack.
pub(crate) fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// The seats that pass a test, as bits of a number.
pub(crate) fn bits(seats: usize, test: impl Fn(Seat) -> bool) -> u64 {
    Seat::all(seats).fold(0, |bits, seat| 2 * bits + u64::from(test(seat)))
}
