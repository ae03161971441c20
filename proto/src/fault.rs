//! The kinds of infrastructure faults, for metrics and statistics. Organisers also see the reason
//! as text.

use arbiter_games::string_enum;

use crate::v1;

string_enum! {
    /// Why an attempt failed without a result. The bots did not cause it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum FaultKind {
        /// Its lease expired without a message from the worker.
        Expired = "expired",
        /// The lot could not be sent to a worker.
        HandOut = "handout",
        /// Its report was malformed, or could not be stored.
        Report = "report",
        /// The worker's machine or its operating system failed.
        System = "system",
        /// Processes or files of a match could not be ended or removed.
        Unclean = "unclean",
        /// The worker's program failed.
        Panic = "panic",
        /// The bots could not be fetched, or the worker could not read the lot.
        Inputs = "inputs",
        /// The rules of the game package failed.
        Rules = "rules",
        /// The kind is unknown.
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
            v1::FaultKind::Inputs => Self::Inputs,
            v1::FaultKind::Rules => Self::Rules,
        }
    }
}
