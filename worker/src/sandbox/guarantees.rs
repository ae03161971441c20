//! The guarantees of the sandbox on this machine, and the report of them.

use std::fmt;

use arbiter_games::string_enum;
pub use arbiter_proto::level::Level;
use serde::{Deserialize, Serialize};

string_enum! {
    /// Something that the sandbox prevents a bot from doing.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Guarantee {
        /// Read or change foreign files.
        Files = "files",
        /// Reach the network, or a socket of another process.
        Network = "network",
        /// See, signal or inspect foreign processes.
        Others = "others",
        /// Gain privileges, or use dangerous parts of the kernel.
        Kernel = "kernel",
        /// Start more processes than its limit.
        Processes = "processes",
        /// Use more memory than its limit, in any number of processes.
        Memory = "memory",
        /// Fill the disk, by size or by number of files.
        Disk = "disk",
        /// Hide processor time.
        Cpu = "cpu",
        /// Run while the referee does not wait for its reply.
        Freeze = "freeze",
        /// Outlive its match.
        Kill = "kill",
    }
}

impl Guarantee {
    /// Whether it is about isolation. Without such a guarantee, the level is C at best.
    pub(super) fn is_isolation(self) -> bool {
        !matches!(self, Self::Memory | Self::Cpu | Self::Freeze)
    }

    /// What a bot can do without this guarantee.
    pub fn loss(self) -> &'static str {
        match self {
            Self::Files => "a bot can read or change files of other programs",
            Self::Network => "a bot can connect to the network or to other programs",
            Self::Others => "a bot can see or disturb other programs",
            Self::Kernel => "a bot can reach dangerous parts of the kernel",
            Self::Processes => "a bot can start any number of processes",
            Self::Memory => "a bot can use more memory than its limit",
            Self::Disk => "a bot can fill the disk",
            Self::Cpu => "a bot can hide processor time, so its wall-clock time is charged",
            Self::Freeze => "a bot may think during its opponent's time",
            Self::Kill => "a bot's processes may outlive its match",
        }
    }

    /// How an operator can enable this guarantee.
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
    /// How well a guarantee holds.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Enforcement {
        /// Attacks on it failed.
        Enforced = "enforced",
        /// It is enforced in part. A bot can evade it.
        BestEffort = "best effort",
        /// It is not enforced.
        None = "none",
    }
}

/// One guarantee on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The guarantee.
    pub guarantee: Guarantee,
    /// How well it holds.
    pub state: Enforcement,
    /// The mechanism that provides it.
    pub by: String,
    /// The results of the attacks on it, or why there were none.
    pub evidence: String,
}

/// The guarantees of this machine, stored with every match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxReport {
    /// The sandbox level that the findings allow.
    pub level: Level,
    /// The kernel's release.
    pub kernel: String,
    /// One finding for each guarantee.
    pub findings: Vec<Finding>,
    /// Why the level is not better, and other warnings.
    pub warnings: Vec<String>,
}

impl SandboxReport {
    /// A report without warnings.
    pub(super) fn new(level: Level, findings: Vec<Finding>) -> Self {
        Self { level, kernel: kernel(), findings, warnings: Vec::new() }
    }

    /// How well `guarantee` holds.
    pub fn state(&self, guarantee: Guarantee) -> Enforcement {
        let finding = self.findings.iter().find(|finding| finding.guarantee == guarantee);
        finding.map_or(Enforcement::None, |finding| finding.state)
    }

    /// For each guarantee that is not fully enforced, what a bot can do.
    pub fn losses(&self) -> Vec<&'static str> {
        let is_lost = |finding: &&Finding| finding.state != Enforcement::Enforced;
        self.findings.iter().filter(is_lost).map(|finding| finding.guarantee.loss()).collect()
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
