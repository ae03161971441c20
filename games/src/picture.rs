//! Pictures of a match as plain data: boards of shapes, tables of cards and numbers, and
//! descriptions in words. Other crates draw them; `class` fields are CSS classes.

use alloc::borrow::Cow;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::name::BotName;
use crate::seat::Seat;

/// A picture of a match at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// A sentence about the state of the match.
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
    /// A table of cards or numbers.
    Table(TablePicture),
    /// A whole SVG document of a game package. It is not trusted: it is shown as an image only.
    Image {
        /// The document.
        svg: String,
    },
    /// A paragraph.
    Line {
        /// Its class.
        class: &'static str,
        /// Its contents.
        items: Vec<Item>,
    },
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
    /// A text in small type.
    Small(String),
    /// A sign.
    Sign {
        /// Its class.
        class: &'static str,
        /// Its tooltip.
        title: Option<&'static str>,
        /// The sign.
        text: &'static str,
    },
    /// An open card.
    Card {
        /// Its classes, possibly empty.
        class: String,
        /// Its text.
        text: String,
    },
    /// A card face down.
    FaceDown,
    /// A meter.
    Meter {
        /// The maximum.
        max: usize,
        /// The value.
        value: usize,
        /// The measured quantity.
        label: String,
    },
}

impl Item {
    /// A text.
    pub fn text(text: impl fmt::Display) -> Self {
        Self::Text(text.to_string())
    }

    /// An open card with these classes, possibly empty.
    pub fn card(text: impl fmt::Display, class: impl fmt::Display) -> Self {
        Self::Card { class: class.to_string(), text: text.to_string() }
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
    pub fn of_frame(frame: Option<&Frame>, names: &[BotName]) -> Self {
        let Some(Frame { svg, caption }) = frame else {
            let names: Vec<_> = names.iter().map(BotName::as_str).collect();
            return Self { caption: names.join(", "), parts: Vec::new() };
        };
        Self { caption: caption.clone(), parts: vec![Part::Image { svg: svg.clone() }] }
    }
}

/// The name of the bot at a seat.
pub fn name(names: &[BotName], seat: Seat) -> &str {
    names.get(seat.index()).map_or("?", BotName::as_str)
}

/// A number for a [`Key`].
pub(crate) fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// The seats that pass a test, as bits of a number.
pub(crate) fn bits(seats: usize, test: impl Fn(Seat) -> bool) -> u64 {
    Seat::all(seats).fold(0, |bits, seat| 2 * bits + u64::from(test(seat)))
}
