//! The sandbox of submitted programs: the only module that starts processes or contains `unsafe`.
//!
//! # Theory of operation
//!
//! A [`Host`] describes what this machine can isolate and measure. A self-test finds out once, by
//! attacking a jail from within. A [`Jail`] is one seat of one match: a bot's files, its limits,
//! and every process it starts. A jail outlives its processes: a bot that is executed once per
//! decision runs many times in one jail. A [`Process`] is one running program with its three pipes.
//!
//! Where the machine allows it, a jail is made of Linux namespaces. Four processes take part:
//!
//! ```text
//! worker ── launcher ── init (first process of the jail) ── the bot and its children
//! ```
//!
//! The launcher is this same program with one thread, in its own user and mount namespace. It forks
//! the init of each jail into new namespaces of every kind. Init mounts its `/proc` and waits until
//! a match needs it. Then the worker moves it into its control groups. Init mounts the bot's part
//! of the root, drops its privileges, installs the seccomp filter, and from then on starts programs
//! and reaps ended ones. The worker sends it requests through a socket. When the socket closes,
//! init exits, and with it everything in its PID namespace. So a jail cannot outlive its worker,
//! however the worker dies.
//!
//! Without namespaces, bots are child processes of the worker, confined by Landlock rules and the
//! seccomp filter. With the sandbox off there is neither.
//!
//! [`Jail::close`] kills all processes in the jail, waits for them and removes the jail's files.
//! Dropping a jail does the same and ignores failures. The [reaper] waits for processes that die
//! slowly, for minutes if necessary.
//!
//! Without namespaces the parent-death signal ties a bot's life to ours. It follows the *thread*
//! that forked, so one thread must open, use and close a jail: the one that plays the match.

mod bot_files;
mod bot_state;
mod cgroup;
mod cgroup_root;
mod cpu_affinity;
mod doctor;
mod guarantees;
mod host;
mod init;
mod ipc;
mod jail;
mod jail_config;
mod landlock;
mod launcher;
mod loopback_listener;
mod polling;
mod proc_masks;
mod proc_monitor;
mod process;
mod process_tree;
pub mod reaper;
mod root_fs;
mod scratch_dir;
mod seccomp;
mod self_test;
mod syscalls;
mod tree_removal;
mod with_namespaces;
mod without_namespaces;
mod workdir;

use std::ffi::OsString;
use std::path::{Component, Path};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

use arbiter_games::string_enum;
use thiserror::Error;

pub(crate) use bot_state::MAX_STATE_DEPTH;
pub use bot_state::SkippedFiles;
pub use cgroup::CgroupHierarchies;
pub(crate) use cpu_affinity::thread_cores;
pub use cpu_affinity::{SlotThread, slot_cores};
pub use doctor::{DoctorReport, DoctorRow};
pub use guarantees::{Enforcement, Finding, Guarantee, Level, SandboxReport};
pub use host::{Host, SandboxError};
pub(crate) use init::is_runtime_notice;
pub use jail::{ClosedJail, Jail};
pub use jail_config::{Bytes, BytesError, JailConfig, Limits, Ponder};
pub use loopback_listener::LoopbackListener;
pub use process::{Exit, Process, Stdin};
pub use scratch_dir::ScratchDir;
pub(crate) use scratch_dir::try_lock_path;
pub(crate) use tree_removal::{recreate_dir, remove_tree};
pub use workdir::{BotSource, Workdir};

/// Whether this program can start itself again as its launcher.
static REEXEC_HANDLED: AtomicBool = AtomicBool::new(false);

/// Runs the launcher or the self-test if this process was started as one. Then it does not return.
///
/// Call it first in `main`, before any thread starts. A program that does not call it cannot use
/// namespaces: started as a launcher, it would run as itself.
pub fn handle_reexec() {
    if launcher::is_requested() {
        launcher::run();
    }
    self_test::run_if_requested();
    syscalls::limit_retained_memory();
    REEXEC_HANDLED.store(true, Ordering::Relaxed);
}

fn can_reexec() -> bool {
    REEXEC_HANDLED.load(Ordering::Relaxed)
}

/// Prevents forks while a program is being written.
///
/// If one thread forks while another writes a program, the child inherits the writing descriptor
/// and holds it until its own `exec`. Until then the kernel refuses to execute the program that was
/// written ("text file busy"). Writers of programs take this lock for reading, forks for writing.
static PROGRAM_WRITES: RwLock<()> = RwLock::new(());

/// The `PATH` of bots. The system's directories come first: they contain interpreters themselves,
/// not the shims of version managers. Without namespaces, our own `PATH` follows.
pub(crate) fn search_path() -> OsString {
    let mut path = OsString::from(init::PATH);
    if let Some(inherited) = std::env::var_os("PATH") {
        path.push(":");
        path.push(inherited);
    }
    path
}

/// Whether each sandbox shows this path to bots as a part of the system, if it exists. Whether
/// another path exists may not be told to the author of a bot.
pub(crate) fn is_system_path(path: &Path) -> bool {
    !path.components().any(|part| part == Component::ParentDir)
        && landlock::SYSTEM.iter().any(|folder| path.starts_with(folder))
}

string_enum! {
    /// How much isolation the user requires.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Policy {
        /// The most that the machine gives; at least level C.
        #[default]
        Auto = "auto",
        /// Level A, or an error.
        Strict = "strict",
        /// Level B or better (namespaces), or an error.
        Namespaces = "namespaces",
        /// Level C or better, chosen explicitly: the same as [`Policy::Auto`].
        Landlock = "landlock",
        /// No isolation, for trusted programs.
        Off = "off",
    }
    FromStr, Err = UnknownPolicy
}

/// A string that is not a sandbox policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a sandbox policy: use auto, strict, namespaces, landlock or off")]
pub struct UnknownPolicy(String);
