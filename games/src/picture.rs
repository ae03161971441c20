//! What a match looks like, as plain data: boards of shapes, tables of cards and numbers, and what
//! they say in words. It is drawn elsewhere; classes name the looks of a style sheet.

use alloc::borrow::Cow;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::name::BotName;
use crate::seat::Seat;

/// A table at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// What is going on, in a sentence.
    pub caption: String,
    /// What is drawn, from top to bottom.
    pub parts: Vec<Part>,
}

/// What a picture shows, as far as it takes to tell two of a match apart.
pub type Key = [u64; 6];

/// A part of a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A board.
    Board(BoardPicture),
    /// A table of cards or numbers.
    Table(TablePicture),
    /// A paragraph.
    Line {
        /// Its class.
        class: &'static str,
        /// What it says.
        items: Vec<Item>,
    },
}

/// A board, drawn of shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardPicture {
    /// Its class.
    pub class: &'static str,
    /// What of the plane is seen: left, top, width and height, as SVG writes them.
    pub view: String,
    /// What it shows, in words.
    pub description: String,
    /// What is drawn, one over the other.
    pub shapes: Vec<Shape>,
}

/// A shape with its class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// What it is.
    pub kind: ShapeKind,
    /// Its class.
    pub class: Cow<'static, str>,
    /// Where it is, by the names and in the units of SVG.
    pub place: Vec<(&'static str, Cow<'static, str>)>,
    /// The words of a text.
    pub text: String,
    /// What is in a group.
    pub shapes: Vec<Self>,
}

crate::string_enum! {
    /// What a shape is, by the names of SVG.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ShapeKind {
        /// A rectangle.
        Rectangle = "rect",
        /// A circle.
        Circle = "circle",
        /// A straight line.
        Line = "line",
        /// Any line.
        Path = "path",
        /// Words.
        Text = "text",
        /// Several shapes.
        Group = "g",
    }
}

impl Shape {
    /// A shape of this kind, without a place.
    pub fn new(kind: ShapeKind, class: impl Into<Cow<'static, str>>) -> Self {
        let class = class.into();
        Self { kind, class, place: Vec::new(), text: String::new(), shapes: Vec::new() }
    }

    /// The same at this place.
    #[must_use]
    pub fn with_attributes<const N: usize>(
        mut self,
        place: [(&'static str, &dyn fmt::Display); N],
    ) -> Self {
        self.place.extend(place.map(|(name, value)| (name, Cow::Owned(value.to_string()))));
        self
    }

    /// The same with these words.
    #[must_use]
    pub fn with_text(mut self, text: impl fmt::Display) -> Self {
        self.text = text.to_string();
        self
    }

    /// The same with these shapes in it.
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
    /// What the columns are called.
    pub head: Vec<Cell>,
    /// The rows.
    pub rows: Vec<Row>,
    /// The row below.
    pub foot: Vec<Cell>,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its class, in tables whose rows differ.
    pub class: Option<&'static str>,
    /// What is in it.
    pub cells: Vec<Cell>,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Its class, if it has one.
    pub class: Option<Cow<'static, str>>,
    /// How many columns it takes.
    pub columns: usize,
    /// Whether it says what its row is.
    pub is_head: bool,
    /// What is in it.
    pub items: Vec<Item>,
}

/// What is in a cell or a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Words.
    Text(String),
    /// Words of less weight.
    Small(String),
    /// A sign.
    Sign {
        /// Its class.
        class: &'static str,
        /// What it means, for those who point at it.
        title: Option<&'static str>,
        /// The sign.
        text: &'static str,
    },
    /// A card that lies open.
    Card {
        /// Its classes; perhaps none.
        class: String,
        /// What is on it.
        text: String,
    },
    /// A card that lies face down.
    FaceDown,
    /// How much there is of something.
    Meter {
        /// The most there can be.
        most: usize,
        /// How much there is.
        value: usize,
        /// What is measured.
        label: String,
    },
}

impl Item {
    /// Words.
    pub fn text(text: impl fmt::Display) -> Self {
        Self::Text(text.to_string())
    }

    /// A card that lies open, with these classes; perhaps none.
    pub fn card(text: impl fmt::Display, class: impl fmt::Display) -> Self {
        Self::Card { class: class.to_string(), text: text.to_string() }
    }
}

impl Cell {
    /// A cell with these things in it.
    pub fn of(items: Vec<Item>) -> Self {
        Self { class: None, columns: 1, is_head: false, items }
    }

    /// A cell with words.
    pub fn text(text: impl fmt::Display) -> Self {
        Self::of(vec![Item::text(text)])
    }

    /// A cell with a number.
    pub fn number(number: impl fmt::Display) -> Self {
        Self::text(number).classed("number")
    }

    /// A cell with the number of a seat.
    pub fn seat(seat: Seat) -> Self {
        Self::text(seat).classed(alloc::format!("seat{seat}"))
    }

    /// The same with this class.
    #[must_use]
    pub fn classed(mut self, class: impl Into<Cow<'static, str>>) -> Self {
        self.class = Some(class.into());
        self
    }

    /// The same over so many columns.
    #[must_use]
    pub fn over(mut self, columns: usize) -> Self {
        self.columns = columns;
        self
    }

    /// The same as the head of its row.
    #[must_use]
    pub fn head(mut self) -> Self {
        self.is_head = true;
        self
    }
}

/// Whether the player of `viewer` may see what `seat` holds; without viewer everything is seen.
pub fn sees(viewer: Option<Seat>, seat: Seat) -> bool {
    viewer.is_none_or(|viewer| viewer == seat)
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
