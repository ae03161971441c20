//! Why attempts fail that end without results, in one word: for figures. The reason in words is for
//! the organiser.

use arbiter_games::string_enum;

use crate::v1;

string_enum! {
    /// Why an attempt failed, through no bot's fault.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum FaultKind {
        /// Nothing was heard of it within the time of its lease.
        Expired = "expired",
        /// It could not be handed out.
        HandOut = "handout",
        /// Its report made no sense, or could not be stored.
        Report = "report",
        /// Something of the worker's machine or of its system failed.
        System = "system",
        /// Something of a match could not be ended or removed.
        Unclean = "unclean",
        /// The worker's program failed.
        Panic = "panic",
        /// The worker could not have its bots, or could not make sense of it.
        Supplies = "supplies",
        /// It was not said.
        Unknown = "unknown",
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
