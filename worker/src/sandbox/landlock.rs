//! Isolation without namespaces: Landlock for files, signals and sockets, seccomp for other calls.
//! Both restrict the calling process and all processes that it starts.

#![expect(unsafe_code, reason = "both are applied by bare system calls between fork and exec")]

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

use super::seccomp::{self, MissingFeatures};
use super::syscalls;
use super::with_namespaces::{FIRST_UID, UID_COUNT};
use crate::fault::{Context as _, Fault};

/// The Landlock version that the rules are written for. An older kernel enforces what it supports.
const SUPPORTED: ABI = ABI::V6;

/// Paths that every program may read and execute.
pub(super) const SYSTEM: [&str; 8] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store"];

/// Further paths that every program may read. They include nothing in `/proc`: rules open paths in
/// this process, so a rule for `/proc/self` would let bots read the worker's files there.
const SETTINGS: [&str; 6] = [
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/ssl/certs",
];

/// Harmless devices.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The kernel's version of Landlock; none if it has no Landlock.
pub(super) fn version() -> Option<i64> {
    let no_attributes = std::ptr::null::<u8>();
    // SAFETY: with this flag (`LANDLOCK_CREATE_RULESET_VERSION`) the call reads no memory.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, no_attributes, 0, 1) };
    syscalls::check(version).ok()
}

/// The rules for a bot in one directory, before they are enforced.
#[derive(Debug)]
pub(super) struct LandlockSetup {
    /// The user of the bot, if not the worker's own.
    pub(super) user: Option<u32>,
    rules: OwnedFd,
    filter: Vec<libc::sock_filter>,
}

impl LandlockSetup {
    /// Prepares the rules for a bot that works in the directory `workdir`.
    pub(super) fn for_dir(workdir: &Path) -> Result<Self, Fault> {
        let user = rustix::process::geteuid().is_root().then(next_uid);
        if let Some(user) = user {
            chown_tree(workdir, user).fault("cannot change the owner of a bot's directory")?;
        }
        let what = "cannot create Landlock rules";
        let rules = rules(workdir)
            .fault(what)?
            .ok_or_else(|| Fault::new(what, "the kernel has no Landlock"))?;
        let missing = MissingFeatures {
            freezer: true,
            memory: true,
            namespaces: true,
            network: true,
            backlog: true,
            users: user.is_none(),
        };
        let filter = seccomp::program(missing);
        Ok(Self { user, rules, filter })
    }

    /// Applies the rules to the calling process, which is about to run a program. Allocates
    /// nothing.
    pub(super) fn enforce(&self) -> io::Result<()> {
        if let Some(user) = self.user {
            syscalls::become_user(user)?;
            // The kernel clears this on every change of the user.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        }
        // SAFETY: neither call takes a pointer.
        unsafe {
            syscalls::check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
            let rules = self.rules.as_raw_fd();
            syscalls::check(libc::syscall(libc::SYS_landlock_restrict_self, rules, 0))?;
        }
        syscalls::install_filter(&self.filter)
    }
}

/// The directories with Debian's settings for Java.
fn java_settings() -> Vec<PathBuf> {
    let entries = fs::read_dir("/etc").into_iter().flatten().flatten();
    let java_entries =
        entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"java"));
    java_entries.map(|entry| entry.path()).collect()
}

/// The number of the next user for a bot. A number repeats only after all others were used.
fn next_uid() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    FIRST_UID + 1 + NEXT.fetch_add(1, Ordering::Relaxed) % UID_COUNT
}

/// Makes `user` the owner of everything at and below `path`.
fn chown_tree(path: &Path, user: u32) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            chown_tree(&entry?.path(), user)?;
        }
    }
    lchown(path, Some(user), Some(user))
}

fn rules(workdir: &Path) -> Result<Option<OwnedFd>, landlock::RulesetError> {
    let read = AccessFs::from_read(SUPPORTED);
    let all = AccessFs::from_all(SUPPORTED);
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .handle_access(AccessNet::from_all(SUPPORTED))?
        .scope(Scope::from_all(SUPPORTED))?
        .create()?
        .add_rules(path_beneath_rules(SYSTEM, read))?
        .add_rules(path_beneath_rules(SETTINGS, read))?
        .add_rules(path_beneath_rules(java_settings(), read))?
        .add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile | AccessFs::WriteFile))?
        .add_rules(path_beneath_rules([workdir], all))?;
    Ok(rules.into())
}
