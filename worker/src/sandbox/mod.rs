//! Where submitted programs run: the only place that starts processes or contains `unsafe`.
//!
//! # Theory of operation
//!
//! A [`Host`] is what this machine can isolate and measure, found out once, by attacking a jail
//! from within. A [`Jail`] is one seat of one match: a bot's files, its limits, and every process
//! it starts. It outlives those processes: a bot that is executed once per decision runs many
//! times in one jail. A [`Process`] is one running program with its three pipes.
//!
//! Where the machine allows it a jail has *walls*, and four processes have a part in it:
//!
//! ```text
//! worker ── its launcher ── the first process of a jail ── the bot and all that it starts
//! ```
//!
//! The launcher is this same program with one thread, in a user and a mount namespace of its own;
//! it forks the first process of each jail into new namespaces of every kind. That one mounts its
//! `/proc` and waits until it is needed. Then it is moved into its control groups; it mounts the
//! bot's own part of the root, gives up its rights, puts itself behind the filter of system calls,
//! and from then on starts programs and reaps what ends. The worker tells it what to do through a
//! socket; the socket's end is its own end, and its end is the end of everything in its process
//! namespace. So a jail cannot outlive its worker, whatever kills that.
//!
//! Where there are no walls to be had a *fence* of Landlock rules and the filter is put around
//! programs that are children of the worker's. With the sandbox off there is neither.
//!
//! Whatever happens, [`Jail::close`] kills everything in the jail, waits for it and removes what
//! was made for it; dropping a jail does the same and keeps silent about failures. What dies slowly
//! is left to the [reaper](dying), which has minutes.
//!
//! Without walls the parent's death signal ties a bot's life to ours. It follows the *thread* that
//! forked, so a jail must be opened, used and closed by the one thread that plays the match.

mod bare;
mod canary;
mod cgroup;
mod covers;
mod descendants;
mod doctor;
mod door;
pub mod dying;
mod fence;
mod filter;
mod home;
mod host;
mod init;
mod jail;
mod keep;
mod launcher;
mod limits;
mod pause;
mod placement;
mod places;
mod process;
mod removal;
mod report;
mod root;
mod scratch;
mod store;
mod sys;
mod walls;
mod watch;
mod wire;

use std::ffi::OsString;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

use arbiter_games::string_enum;
use thiserror::Error;

pub use cgroup::Hierarchies;
pub use doctor::{Checkup, Row};
pub use door::Door;
pub use home::{Home, Source};
pub use host::{Host, Refused};
pub use jail::{Closed, Jail};
pub(crate) use keep::DEEPEST;
pub use keep::LeftOut;
pub use limits::{Bytes, BytesError, Limits, Ponder, Terms};
pub use placement::{Precedence, cores_of};
pub use process::{Exit, Process, Stdin};
pub(crate) use removal::{empty_directory, remove_tree};
pub use report::{Finding, Guarantee, Level, SandboxReport, State};
pub use scratch::Scratch;
pub(crate) use scratch::hold;

/// Whether this program can be started as its own launcher.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// Becomes the launcher of jails if this process was started as one, and does not return then.
///
/// Call it first thing in `main`, before any thread is started. A program that does not cannot
/// have walls, since starting it as a launcher would run it as itself.
pub fn enter_if_asked() {
    if launcher::is_asked() {
        launcher::run();
    }
    canary::run_if_asked();
    sys::give_memory_back();
    ENTERED.store(true, Ordering::Relaxed);
}

fn was_entered() -> bool {
    ENTERED.load(Ordering::Relaxed)
}

/// Keeps the writing of programs and the forking of processes apart.
///
/// A child that is forked while another thread writes a program inherits the writing descriptor
/// until it executes its own program, and meanwhile the kernel refuses to execute the one that was
/// written ("text file busy"). Whoever writes programs holds this for reading, whoever forks for
/// writing.
static WRITING: RwLock<()> = RwLock::new(());

/// Where bots find programs: the system's folders first, which hold interpreters themselves and
/// not the shims of version managers; then, without walls, whatever folders we were given.
pub(crate) fn search_path() -> OsString {
    let mut path = OsString::from(init::PATH);
    if let Some(ours) = std::env::var_os("PATH") {
        path.push(":");
        path.push(ours);
    }
    path
}

string_enum! {
    /// How much isolation is asked for.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Policy {
        /// As much as the machine gives, but some.
        #[default]
        Auto = "auto",
        /// Everything, or nothing is run.
        Strict = "strict",
        /// Level B or better: namespaces, or nothing is run.
        Namespaces = "namespaces",
        /// Level C or better, said on purpose: the same as [`Policy::Auto`].
        Landlock = "landlock",
        /// None: for programs one trusts.
        Off = "off",
    }
    FromStr, Err = UnknownPolicy
}

/// A word that is no policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not a sandbox policy; use auto, strict or off, or what is needed: namespaces or landlock"
)]
pub struct UnknownPolicy(String);
