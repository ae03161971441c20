//! How a command ends when it does not end well, and with which exit code.

use std::fmt;

use arbiter_coordinator::coordinator::StartError;
use arbiter_worker::sandbox::SandboxError;

/// How a command ends when it does not end well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A negative answer: exit code 1.
    Negative(String),
    /// A wrong call: exit code 2.
    Usage(String),
    /// Something that cannot be reached or is not allowed: exit code 3.
    Refused(String),
    /// Nobody reads the output any more: the end, and no failure.
    Unread,
}

impl Failure {
    /// The failure of a call that something is wrong with.
    pub(crate) fn usage(error: impl fmt::Display) -> Self {
        Self::Usage(error.to_string())
    }

    /// The same failure, told with what was done before it.
    pub(crate) fn after(self, done: &str) -> Self {
        let tell = |message| format!("{done}: {message}");
        match self {
            Self::Negative(message) => Self::Negative(tell(message)),
            Self::Usage(message) => Self::Usage(tell(message)),
            Self::Refused(message) => Self::Refused(tell(message)),
            Self::Unread => Self::Unread,
        }
    }

    /// The failure that another process of this program ended with.
    pub(crate) fn with_code(code: u8, message: String) -> Self {
        match code {
            2 => Self::Usage(message),
            3 => Self::Refused(message),
            _ => Self::Negative(message),
        }
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Unread => 0,
            Self::Negative(_) => 1,
            Self::Usage(_) => 2,
            Self::Refused(_) => 3,
        }
    }

    /// What is told about it.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Negative(message) | Self::Usage(message) | Self::Refused(message) => message,
            Self::Unread => "",
        }
    }
}

/// A coordinator that cannot be started, or a database that cannot be used.
impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        Self::Refused(error.to_string())
    }
}

/// A sandbox that this machine cannot make.
impl From<SandboxError> for Failure {
    fn from(error: SandboxError) -> Self {
        Self::Refused(error.to_string())
    }
}
