//! What holds a bot where there are no walls: Landlock for files, signals and sockets, the filter
//! for the rest. Both bind the process that takes them upon itself, and all that it starts.

#![expect(unsafe_code, reason = "both are taken on by bare system calls, between fork and exec")]

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, Scope, path_beneath_rules,
};

use rustix::process::Signal;

use super::filter::{self, Lacks};
use super::sys;
use super::walls::{FIRST_USER, USERS};
use crate::fault::{Context as _, Fault};

/// The interface that rules were written for; an older kernel enforces what it knows.
const KNOWN: ABI = ABI::V6;

/// What every program may read and run.
const SYSTEM: [&str; 8] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store"];

/// What every program may read besides. Nothing of `/proc`: what is opened here is this process's,
/// and a rule about `/proc/self` would show the worker to its bots.
const SETTINGS: [&str; 6] = [
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/ssl/certs",
];

/// Devices that do no harm.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The version of Landlock that the kernel has, if it has it.
pub(super) fn version() -> Option<i64> {
    let nothing = std::ptr::null::<u8>();
    // SAFETY: with this flag the call reads no memory.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0, 1) };
    sys::check(version).ok()
}

/// A fence around one home, not closed yet.
#[derive(Debug)]
pub(super) struct Fence {
    /// The user that the bot is to be, if not the worker's own.
    pub(super) user: Option<u32>,
    rules: OwnedFd,
    filter: Vec<libc::sock_filter>,
}

impl Fence {
    /// Plans a fence around the directory `home`.
    pub(super) fn around(home: &Path) -> Result<Self, Fault> {
        let user = rustix::process::geteuid().is_root().then(next_user);
        if let Some(user) = user {
            give(home, user).fault("cannot give a bot its directory")?;
        }
        let rules = rules(home).fault("cannot make Landlock rules")?;
        let rules = rules.ok_or_else(|| Fault::new("cannot make Landlock rules", "no Landlock"))?;
        let lacks = Lacks {
            freezer: true,
            memory: true,
            namespaces: true,
            network: true,
            backlog: true,
            users: user.is_none(),
        };
        let filter = filter::program(lacks);
        Ok(Self { user, rules, filter })
    }

    /// Closes the fence around the calling process, which is about to run a program. Allocates
    /// nothing.
    pub(super) fn close(&self) -> io::Result<()> {
        if let Some(user) = self.user {
            sys::become_user(user)?;
            // The kernel forgets this with every change of the user.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        }
        // SAFETY: neither call takes a pointer.
        unsafe {
            sys::check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
            let rules = self.rules.as_raw_fd();
            sys::check(libc::syscall(libc::SYS_landlock_restrict_self, rules, 0))?;
        }
        sys::install_filter(&self.filter)
    }
}

/// The settings of Java, where Debian has them.
fn java() -> Vec<PathBuf> {
    let entries = fs::read_dir("/etc").into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"java"));
    named.map(|entry| entry.path()).collect()
}

/// A user that no other bot of this worker is, for a while.
fn next_user() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    FIRST_USER + 1 + NEXT.fetch_add(1, Ordering::Relaxed) % USERS
}

/// Gives everything below `path` to `user`.
fn give(path: &Path, user: u32) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), user)?;
        }
    }
    lchown(path, Some(user), Some(user))
}

fn rules(home: &Path) -> Result<Option<OwnedFd>, landlock::RulesetError> {
    let read = AccessFs::from_read(KNOWN);
    let all = AccessFs::from_all(KNOWN);
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()?
        .add_rules(path_beneath_rules(SYSTEM, read))?
        .add_rules(path_beneath_rules(SETTINGS, read))?
        .add_rules(path_beneath_rules(java(), read))?
        .add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile | AccessFs::WriteFile))?
        .add_rules(path_beneath_rules([home], all))?;
    Ok(rules.into())
}
