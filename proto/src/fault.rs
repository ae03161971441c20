//! Why attempts fail that end without results, in one word: for figures. The reason in words is for
//! the organiser.

use crate::v1;

/// Why an attempt failed, through no bot's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// Nothing was heard of it within the time of its lease.
    Expired,
    /// It could not be handed out.
    HandOut,
    /// Its report made no sense, or could not be stored.
    Report,
    /// Something of the worker's machine or of its system failed.
    System,
    /// Something of a match could not be ended or removed.
    Unclean,
    /// The worker's program failed.
    Panic,
    /// The worker could not have its bots, or could not make sense of it.
    Supplies,
    /// It was not said.
    Unknown,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Expired,
        Self::HandOut,
        Self::Report,
        Self::System,
        Self::Unclean,
        Self::Panic,
        Self::Supplies,
        Self::Unknown,
    ];

    /// The word for it, as it is stored and counted.
    pub fn word(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::HandOut => "handout",
            Self::Report => "report",
            Self::System => "system",
            Self::Unclean => "unclean",
            Self::Panic => "panic",
            Self::Supplies => "supplies",
            Self::Unknown => "unknown",
        }
    }
}

impl From<v1::FaultKind> for FaultKind {
    fn from(kind: v1::FaultKind) -> Self {
        match kind {
            v1::FaultKind::Unspecified => Self::Unknown,
            v1::FaultKind::System => Self::System,
            v1::FaultKind::Unclean => Self::Unclean,
            v1::FaultKind::Panic => Self::Panic,
            v1::FaultKind::Supplies => Self::Supplies,
        }
    }
}
