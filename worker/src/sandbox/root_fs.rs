//! The root file system of a bot.
//!
//! The launcher builds the part that all bots share once, and lives in it. Each jail's init starts
//! with a copy of those mounts, which it can add to but not remove from. It adds the bot's own
//! working directory, `/tmp`, `/dev/shm` and `/proc`.
//!
//! Everything that a bot can write is in one file system in memory, so that one limit holds for all
//! of it. Its working directory is an overlay over the bot's files in the store: changes go to a
//! separate directory.

use std::ffi::CString;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

use super::jail_config::Limits;
use super::{proc_masks, syscalls};

/// The working directory of a bot.
pub(super) const WORK: &str = "/work";

/// The store of programs; hidden in a jail.
const STORE: &str = "/store";

/// The jail's own file system in memory; hidden in a jail.
const BOX: &str = "/box";

/// An empty directory, mounted over other directories to hide them.
const EMPTY: &str = "/empty";

/// Directories with the system's programs; links are copied as links. Nix and Guix share only their
/// stores: their build daemons have sockets beside them, and a bot could connect to a socket even
/// on a read-only mount.
const SYSTEM: [&str; 9] =
    ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix/store", "gnu/store"];

/// Parts of `/etc` that language runtimes read, besides those of Java.
const SETTINGS: [&str; 7] =
    ["alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mono", "ssl/certs"];

/// Inodes of a jail's file system that are not the bot's: its root, the three mounted directories,
/// and three of the overlay.
const SYSTEM_INODES: u64 = 7;

/// Harmless devices.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// Links in `/dev` that programs expect.
const LINKS: [(&str, &str); 4] = [
    ("/proc/self/fd", "dev/fd"),
    ("/proc/self/fd/0", "dev/stdin"),
    ("/proc/self/fd/1", "dev/stdout"),
    ("/proc/self/fd/2", "dev/stderr"),
];

/// Files that programs expect, with harmless contents.
const FILES: [(&str, &str); 4] = [
    ("etc/passwd", "root:x:0:0::/:/bin/false\nbot:x:1000:1000::/work:/bin/sh\n"),
    ("etc/group", "root:x:0:\nbot:x:1000:\n"),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
    ("etc/hosts", "127.0.0.1 localhost\n"),
];

/// Adds the name of the failed step to an error.
trait Step<T> {
    fn step(self, what: &str) -> io::Result<T>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, what: &str) -> io::Result<T> {
        self.map_err(|error| io::Error::other(format!("{what}: {}", error.into())))
    }
}

/// Opens the store of programs, whose path may be accessible to the worker's user only.
pub(super) fn open_store(store: &Path) -> io::Result<OwnedFd> {
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(store, directory, Mode::empty())?)
}

/// Builds the launcher's root, with the store of programs, and makes it the root.
pub(super) fn build(store: &OwnedFd) -> io::Result<()> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).step("cannot make mounts private")?;
    let stage = Path::new("/tmp");
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("root", stage, "tmpfs", flags, c"mode=755,size=4m")
        .step("cannot mount a root")?;
    for name in ["dev/shm", "etc/ssl", "proc", "work", "tmp", "store", "box", "empty", "var"] {
        fs::create_dir_all(stage.join(name)).step(name)?;
    }
    for name in SYSTEM {
        bind_read_only(Path::new("/"), stage, name)?;
    }
    for name in SETTINGS {
        bind_read_only(Path::new("/etc"), &stage.join("etc"), name)?;
    }
    bind_java_settings(&stage.join("etc"))?;
    for (name, contents) in FILES {
        fs::write(stage.join(name), contents).step(name)?;
    }
    for name in DEVICES {
        let target = stage.join("dev").join(name);
        File::create(&target).step("cannot create a device")?;
        rustix::mount::mount_bind(Path::new("/dev").join(name), target).step(name)?;
    }
    for (target, name) in LINKS {
        symlink(target, stage.join(name)).step(name)?;
    }
    symlink("/tmp", stage.join("var/tmp")).step("/var/tmp")?;
    proc_masks::create(stage).step("cannot mask /proc")?;
    let source = format!("/proc/self/fd/{}", store.as_raw_fd());
    rustix::mount::mount_bind(source, stage.join("store")).step("cannot mount the store")?;
    make_read_only(&stage.join("store"), false)?;
    // A jail may mount a new /proc only if it sees one already.
    rustix::mount::mount_bind_recursive("/proc", stage.join("proc")).step("/proc")?;
    pivot_into(stage)
}

/// Makes `stage` the root, and detaches the old one.
fn pivot_into(stage: &Path) -> io::Result<()> {
    std::env::set_current_dir(stage)?;
    rustix::process::pivot_root(".", ".").step("cannot change the root")?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).step("cannot leave the old root")?;
    std::env::set_current_dir("/")?;
    make_read_only(Path::new("/"), false)
}

/// Mounts Debian's Java settings, which the runtime's own settings link to.
fn bind_java_settings(etc: &Path) -> io::Result<()> {
    let Ok(entries) = fs::read_dir("/etc") else { return Ok(()) };
    for entry in entries.flatten() {
        if let Some(name) = entry.file_name().to_str().filter(|name| name.starts_with("java")) {
            bind_read_only(Path::new("/etc"), etc, name)?;
        }
    }
    Ok(())
}

/// Bind-mounts `from/name` read-only at `to/name`, if it exists.
fn bind_read_only(from: &Path, to: &Path, name: &str) -> io::Result<()> {
    let source = from.join(name);
    let target = to.join(name);
    let Ok(metadata) = fs::symlink_metadata(&source) else { return Ok(()) };
    if metadata.is_symlink() {
        return symlink(fs::read_link(source)?, target).step(name);
    }
    if metadata.is_dir() {
        fs::create_dir_all(&target).step(name)?;
    } else {
        File::create(&target).step(name)?;
    }
    rustix::mount::mount_bind_recursive(&source, &target).step(name)?;
    make_read_only(&target, true)
}

fn make_read_only(path: &Path, all: bool) -> io::Result<()> {
    let text = CString::new(path.as_os_str().as_encoded_bytes())?;
    syscalls::make_read_only(&text, all).step("cannot make a mount read-only")
}

/// Mounts the bot's part of a jail: its program from the store, and the directories that the user
/// `owner` may write. Returns the directory with the bot's changes if `saves_state`.
pub(super) fn mount_jail(
    program: Option<&str>,
    limits: &Limits,
    owner: u32,
    saves_state: bool,
) -> io::Result<Option<OwnedFd>> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let options =
        format!("mode=755,size={},nr_inodes={}", limits.disk.0, limits.files + SYSTEM_INODES);
    let options = CString::new(options).expect("no zero byte");
    rustix::mount::mount("box", BOX, "tmpfs", flags, options.as_c_str())
        .step("cannot mount a file system for the bot")?;
    let create_owned = |name: &str, mode: u32| -> io::Result<()> {
        let path = Path::new(BOX).join(name);
        DirBuilder::new().mode(0o755).create(&path).step(name)?;
        chown(&path, Some(owner), Some(owner)).step(name)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).step(name)
    };
    create_owned("work", 0o755)?;
    create_owned("tmp", 0o1777)?;
    create_owned("shm", 0o1777)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let work = rustix::fs::open("/box/work", flags, Mode::empty()).step("/box/work")?;
    if let Some(program) = program {
        DirBuilder::new().mode(0o700).create("/box/overlay").step("/box/overlay")?;
        let layers =
            format!("lowerdir={STORE}/{program},upperdir=/box/work,workdir=/box/overlay,userxattr");
        let layers = CString::new(layers)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount("work", WORK, "overlay", flags, layers.as_c_str())
            .step("cannot mount the bot's directory over its program")?;
    } else {
        rustix::mount::mount_bind("/box/work", WORK).step(WORK)?;
    }
    rustix::mount::mount_bind("/box/tmp", "/tmp").step("/tmp")?;
    rustix::mount::mount_bind("/box/shm", "/dev/shm").step("/dev/shm")?;
    for hidden in [BOX, STORE] {
        rustix::mount::mount_bind(EMPTY, hidden).step(hidden)?;
    }
    Ok(saves_state.then_some(work))
}

/// Mounts the jail's own `/proc`, or hides the machine's if that is not allowed.
pub(super) fn mount_proc() -> io::Result<()> {
    // User namespaces in the jail are prevented twice: by a limit and by the seccomp filter. The
    // limit can be written only here, while the old /proc is still visible.
    drop(fs::write("/proc/sys/user/max_user_namespaces", "0"));
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    if rustix::mount::mount("proc", "/proc", "proc", flags, c"hidepid=invisible").is_err() {
        return rustix::mount::mount_bind(EMPTY, "/proc").step("/proc");
    }
    proc_masks::apply().step("cannot mask /proc")
}
