//! The failures of commands and their exit codes.

use std::{fmt, io};

use arbiter_coordinator::coordinator::StartError;
use arbiter_worker::sandbox::SandboxError;

/// The failure of a command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A negative result: exit code 1.
    Negative(String),
    /// Wrong usage: exit code 2.
    Usage(String),
    /// Something is unreachable or not allowed: exit code 3.
    Refused(String),
    /// The question cannot be decided: exit code 4.
    Undecided,
    /// The reader closed the output: the command ends with exit code 0.
    OutputClosed,
}

impl Failure {
    /// A usage failure with the message of `error`.
    pub(crate) fn usage(error: impl fmt::Display) -> Self {
        Self::Usage(error.to_string())
    }

    /// Prefixes the message with its context.
    pub(crate) fn with_context(self, context: &str) -> Self {
        let prefixed = |message| format!("{context}: {message}");
        match self {
            Self::Negative(message) => Self::Negative(prefixed(message)),
            Self::Usage(message) => Self::Usage(prefixed(message)),
            Self::Refused(message) => Self::Refused(prefixed(message)),
            Self::Undecided => Self::Undecided,
            Self::OutputClosed => Self::OutputClosed,
        }
    }

    /// The failure of another process of this program, from its exit code.
    pub(crate) fn with_code(code: u8, message: String) -> Self {
        match code {
            2 => Self::Usage(message),
            3 => Self::Refused(message),
            _ => Self::Negative(message),
        }
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::Negative(_) => 1,
            Self::Usage(_) => 2,
            Self::Refused(_) => 3,
            Self::Undecided => 4,
        }
    }

    /// The message for the user; may be empty.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Negative(message) | Self::Usage(message) | Self::Refused(message) => message,
            Self::Undecided | Self::OutputClosed => "",
        }
    }
}

/// The text of an error without the path of a temporary file, which the crate `tempfile` adds.
/// Users named another path.
pub(crate) fn without_temporary_path(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" at path \"").next().unwrap_or_default().to_owned()
}

/// The coordinator cannot be started, or the database cannot be used.
impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        Self::Refused(error.to_string())
    }
}

/// This machine cannot create the sandbox.
impl From<SandboxError> for Failure {
    fn from(error: SandboxError) -> Self {
        Self::Refused(error.to_string())
    }
}
