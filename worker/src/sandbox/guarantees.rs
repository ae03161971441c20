//! What holds a bot on this machine, and what does not: proved, named and told.

use std::fmt;

use arbiter_games::string_enum;
pub use arbiter_proto::level::Level;
use serde::{Deserialize, Serialize};

string_enum! {
    /// Something that a bot cannot do.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Guarantee {
        /// Read or change a file that is not its own.
        Files = "files",
        /// Reach the network, or a socket of another process.
        Network = "network",
        /// See, signal or inspect a process that is not its own.
        Others = "others",
        /// Gain rights, or use dangerous parts of the kernel.
        Kernel = "kernel",
        /// Start more processes than it may.
        Processes = "processes",
        /// Use more memory than it may, in however many processes.
        Memory = "memory",
        /// Fill the disk, by size or by number of files.
        Disk = "disk",
        /// Hide processor time from its account.
        Cpu = "cpu",
        /// Run while it owes nothing.
        Freeze = "freeze",
        /// Outlive its match.
        Kill = "kill",
    }
}

impl Guarantee {
    /// Whether a jail without this one is no jail with walls at all.
    pub(super) fn is_isolation(self) -> bool {
        !matches!(self, Self::Memory | Self::Cpu | Self::Freeze)
    }

    /// What is lost without it.
    pub fn loss(self) -> &'static str {
        match self {
            Self::Files => "a bot can read or change files that are not its own",
            Self::Network => "a bot can talk to the network or to other programs",
            Self::Others => "a bot can see or disturb other programs",
            Self::Kernel => "a bot can reach dangerous parts of the kernel",
            Self::Processes => "a bot can start processes without end",
            Self::Memory => "a bot can use more memory than it may",
            Self::Disk => "a bot can fill the disk",
            Self::Cpu => "a bot can hide processor time, so the wall clock is charged",
            Self::Freeze => "a bot may think on its opponent's time",
            Self::Kill => "a bot's processes may outlive its match",
        }
    }

    /// What to do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Files | Self::Network | Self::Others | Self::Kernel | Self::Disk => {
                "allow user namespaces (sysctl user.max_user_namespaces, on Ubuntu an AppArmor \
                 profile with `userns,`; Kubernetes: procMount Unmasked and seccompProfile \
                 Unconfined), or run the worker as root"
            }
            Self::Processes | Self::Memory | Self::Cpu | Self::Freeze | Self::Kill => {
                "delegate a control group (systemd: Delegate=cpu memory pids and \
                 DelegateSubgroup=worker; Kubernetes: a writable cgroup), or run the worker as \
                 root"
            }
        }
    }
}

string_enum! {
    /// How far a guarantee holds.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Enforcement {
        /// An attack on it was made and failed.
        Enforced = "enforced",
        /// Something is done for it, and can be evaded.
        BestEffort = "best effort",
        /// Nothing is done for it.
        None = "none",
    }
}

/// One guarantee on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Which.
    pub guarantee: Guarantee,
    /// How far it holds.
    pub state: Enforcement,
    /// What it rests on.
    pub by: String,
    /// What the attacks on it met, or why none was made.
    pub evidence: String,
}

/// What this machine guarantees, kept with every match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxReport {
    /// All in one word.
    pub level: Level,
    /// The kernel's release.
    pub kernel: String,
    /// Every guarantee.
    pub findings: Vec<Finding>,
    /// Why nothing better could be had, and what is out of the ordinary.
    pub warnings: Vec<String>,
}

impl SandboxReport {
    /// What was found, without a warning.
    pub(super) fn new(level: Level, findings: Vec<Finding>) -> Self {
        Self { level, kernel: kernel(), findings, warnings: Vec::new() }
    }

    /// How far `guarantee` holds.
    pub fn state(&self, guarantee: Guarantee) -> Enforcement {
        let found = self.findings.iter().find(|finding| finding.guarantee == guarantee);
        found.map_or(Enforcement::None, |finding| finding.state)
    }

    /// What is lost, in words, if anything is.
    pub fn losses(&self) -> Vec<&'static str> {
        let lost = |finding: &&Finding| finding.state != Enforcement::Enforced;
        self.findings.iter().filter(lost).map(|finding| finding.guarantee.loss()).collect()
    }
}

/// The kernel's release.
pub(super) fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

impl fmt::Display for SandboxReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sandbox level {}", self.level)?;
        let losses = self.losses();
        if !losses.is_empty() {
            write!(f, ": {}", losses.join("; "))?;
        }
        Ok(())
    }
}
