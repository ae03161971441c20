//! Where a cluster lives: making it there, and starting its server.

#![expect(unsafe_code, reason = "a step between fork and exec asks the kernel for the last signal")]

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, set_parent_process_death_signal};
use tempfile::TempDir;

use super::binaries::Binaries;
use super::role::{self, Credentials};
use super::{Durability, LOOK, PostgresError, SUPERUSER, file, run};

/// The longest path of a socket (`sun_path` in unix(7), without its final zero).
const LONGEST_SOCKET: usize = 107;
/// What Postgres calls its socket: the port is a name here.
const SOCKET_NAME: &str = ".s.PGSQL.5432";
/// Nobody but its user enters a cluster; Postgres insists on it.
const PRIVATE: u32 = 0o700;
/// How much of a program's last words an error repeats, in lines.
const LAST_WORDS: usize = 3;

/// Settings of every cluster. Plans of the queue's statements are made once a session (`jit` would
/// cost more than they take), and its few hot rows want to be cleaned early and often.
const SETTINGS: [&str; 8] = [
    "listen_addresses=",
    "shared_buffers=256MB",
    "max_wal_size=4GB",
    "checkpoint_timeout=15min",
    "wal_compression=on",
    "autovacuum_naptime=10s",
    "jit=off",
    "max_connections=200",
];
/// What tests add: nothing waits for a disk.
pub(super) const FLEETING: [&str; 3] =
    ["fsync=off", "synchronous_commit=off", "full_page_writes=off"];

/// The unprivileged user that the server runs as, where we are root.
#[derive(Clone, Copy, Debug)]
struct User {
    name: &'static str,
    uid: u32,
    gid: u32,
}

impl User {
    /// Whom to run as; nobody else if we are not root.
    fn find() -> Result<Option<Self>, PostgresError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let path = Path::new("/etc/passwd");
        let passwd = fs::read_to_string(path).map_err(file("read", path))?;
        let of = |name| passwd.lines().find_map(|line| Self::of_line(line, name));
        of("postgres").or_else(|| of("nobody")).map(Some).ok_or(PostgresError::NoUser)
    }

    /// The user of a line of passwd(5), if it has this name.
    fn of_line(line: &str, name: &'static str) -> Option<Self> {
        let mut fields = line.split(':');
        if fields.next()? != name {
            return None;
        }
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        Some(Self { name, uid, gid })
    }

    /// Whether it may pass a directory with these properties.
    fn may_pass(self, directory: &fs::Metadata) -> bool {
        let mode = directory.mode();
        let bit = match (directory.uid(), directory.gid()) {
            (uid, _) if uid == self.uid => 0o100,
            (_, gid) if gid == self.gid => 0o010,
            _ => 0o001,
        };
        mode & bit != 0
    }
}

/// How the wait for a starting server ended.
#[derive(Debug)]
pub(super) enum Start {
    /// It takes connections.
    Ready,
    /// Another server still has the data.
    Occupied,
}

/// Where a cluster lives, and as whom.
#[derive(Debug)]
pub(super) struct ClusterDir {
    pub(super) cluster: PathBuf,
    pub(super) directory: PathBuf,
    log: PathBuf,
    user: Option<User>,
}

impl ClusterDir {
    /// Makes the directory around the cluster, if it is not there.
    pub(super) fn prepare(directory: &Path) -> Result<Self, PostgresError> {
        fs::create_dir_all(directory).map_err(file("make the directory", directory))?;
        let directory = fs::canonicalize(directory).map_err(file("find", directory))?;
        let (cluster, log) = (directory.join("postgres"), directory.join("postgres.log"));
        let place = Self { cluster, directory, log, user: User::find()? };
        place.check_way()?;
        Ok(place)
    }

    /// Looks whether the cluster's user can get to it.
    fn check_way(&self) -> Result<(), PostgresError> {
        let Some(user) = self.user else { return Ok(()) };
        for directory in self.directory.ancestors() {
            let found = fs::metadata(directory).map_err(file("look at", directory))?;
            if !user.may_pass(&found) {
                let (closed, data) = (directory.to_owned(), self.directory.clone());
                return Err(PostgresError::Closed { user: user.name, closed, data });
            }
        }
        Ok(())
    }

    /// Makes the cluster. It appears under its name when it is complete, or not at all.
    pub(super) fn create(
        &self,
        binaries: &Binaries,
        durability: Durability,
    ) -> Result<(), PostgresError> {
        let fresh = self.directory.join("postgres.new");
        if fresh.exists() {
            fs::remove_dir_all(&fresh).map_err(file("remove", &fresh))?;
        }
        self.own_directory(&fresh)?;
        let mut initdb = self.command(&binaries.path("initdb"));
        // Who may connect is told at each start: see `role.rs`.
        initdb.args(["--auth=reject", "--encoding=UTF8", "--locale=C", "--data-checksums"]);
        initdb.args(["--no-sync", "--username", SUPERUSER, "--pgdata"]).arg(&fresh);
        let output = initdb.output().map_err(file("run", &binaries.path("initdb")))?;
        if !output.status.success() {
            let said = last_words(&String::from_utf8_lossy(&output.stderr));
            return Err(PostgresError::Failed { program: "initdb", status: output.status, said });
        }
        // A password is that of the cluster beside it.
        let password = role::password_file(&self.directory);
        match fs::remove_file(&password) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                return Err(file("remove", &password)(cause));
            }
            _ => {}
        }
        // Whatever initdb wrote must be on disk before the cluster has its name. This waits for what
        // all programs of the machine wrote, so it is only for data that are to last.
        if durability == Durability::Synced {
            rustix::fs::sync();
        }
        fs::rename(&fresh, &self.cluster).map_err(file("rename", &fresh))
    }

    /// The directory of the socket: the cluster's own, or a temporary one where its path is too
    /// long for a socket.
    pub(super) fn socket(&self) -> Result<(PathBuf, Option<TempDir>), PostgresError> {
        if self.cluster.join(SOCKET_NAME).as_os_str().as_bytes().len() <= LONGEST_SOCKET {
            return Ok((self.cluster.clone(), None));
        }
        let tmp = Path::new("/tmp");
        let made = tempfile::Builder::new().prefix("arbiter-").tempdir_in(tmp);
        let short = made.map_err(file("make a directory in", tmp))?;
        self.give(short.path())?;
        Ok((short.path().to_owned(), Some(short)))
    }

    /// Starts the server, on a thread that lives as long as it does.
    pub(super) fn spawn(
        &self,
        binaries: &Binaries,
        socket: &Path,
        entrance: &Credentials,
        durability: Durability,
    ) -> Result<(Pid, Receiver<io::Result<ExitStatus>>), PostgresError> {
        let program = binaries.path("postgres");
        let mut command = self.command(&program);
        let log = fs::File::create(&self.log).map_err(file("write", &self.log))?;
        command
            .stdout(Stdio::null())
            .stderr(log)
            .arg("-D")
            .arg(&self.cluster)
            .arg("-k")
            .arg(socket);
        let mut rules = OsString::from("hba_file=");
        rules.push(&entrance.rules);
        command.arg("-c").arg(rules);
        let fleeting: &[&str] = if durability == Durability::Fleeting { &FLEETING } else { &[] };
        for setting in SETTINGS.iter().chain(fleeting) {
            command.arg("-c").arg(setting);
        }
        // SAFETY: the closure makes one system call and touches no memory of the parent's. It runs
        // after the change of user, which would undo it.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::INT))?));
        }
        let (tell_start, started) = channel();
        let (tell_end, ended) = channel();
        thread::spawn(move || match command.spawn() {
            Ok(mut child) => {
                // Whoever started the server may have gone: then nobody wants to know.
                drop(tell_start.send(Ok(child.id())));
                drop(tell_end.send(child.wait()));
            }
            Err(error) => drop(tell_start.send(Err(error))),
        });
        let started = started.recv().expect("the thread tells how the start went");
        let id = started.map_err(file("run", &program))?;
        let id = i32::try_from(id).ok().and_then(Pid::from_raw);
        Ok((id.expect("the id of a process is a small positive number"), ended))
    }

    /// Waits until the server takes connections.
    pub(super) fn wait_ready(
        &self,
        pid: Pid,
        ended: &Receiver<io::Result<ExitStatus>>,
        deadline: Instant,
    ) -> Result<Start, PostgresError> {
        loop {
            if self.is_ready(pid) {
                return Ok(Start::Ready);
            }
            match ended.try_recv() {
                Ok(Ok(status)) => return self.ended_early(status, deadline),
                Ok(Err(cause)) => return Err(file("wait for the server of", &self.cluster)(cause)),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
            }
            if Instant::now() >= deadline {
                return Err(PostgresError::Slow { log: self.log.clone() });
            }
            thread::sleep(LOOK);
        }
    }

    /// Whether the server says so in the lines of its `postmaster.pid` that `pg_ctl --wait` reads:
    /// the first is its process id, the eighth its state.
    fn is_ready(&self, pid: Pid) -> bool {
        let text = fs::read_to_string(self.cluster.join("postmaster.pid")).unwrap_or_default();
        let mut lines = text.lines();
        let ours = lines.next() == Some(&pid.as_raw_nonzero().to_string());
        ours && lines.nth(6).is_some_and(|state| state.trim() == "ready")
    }

    /// Judges a server that ended before it was ready.
    fn ended_early(&self, status: ExitStatus, deadline: Instant) -> Result<Start, PostgresError> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        if is_occupied(&log) && Instant::now() < deadline {
            return Ok(Start::Occupied);
        }
        let said = format!("{} (all of it: {})", last_words(&log), self.log.display());
        Err(PostgresError::Failed { program: "postgres", status, said })
    }

    /// A program run as the cluster's user, from a directory that it can enter.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = run(program);
        command.current_dir("/").stdin(Stdio::null()).env_remove("PGDATA").env("LC_ALL", "C");
        // A signal typed at the terminal is for us: we then stop the server in order.
        command.process_group(0);
        if let Some(User { uid, gid, .. }) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Makes a directory that belongs to the cluster's user alone.
    fn own_directory(&self, path: &Path) -> Result<(), PostgresError> {
        fs::create_dir(path).map_err(file("make the directory", path))?;
        self.give(path)
    }

    /// Gives a directory to the cluster's user alone.
    fn give(&self, path: &Path) -> Result<(), PostgresError> {
        let private = fs::Permissions::from_mode(PRIVATE);
        fs::set_permissions(path, private).map_err(file("close the directory", path))?;
        match self.user {
            Some(User { uid, gid, .. }) => {
                chown(path, Some(uid), Some(gid)).map_err(file("give away", path))
            }
            None => Ok(()),
        }
    }
}

/// Whether a server says that another one has the data.
pub(super) fn is_occupied(said: &str) -> bool {
    said.contains("postmaster.pid") || said.contains("still in use")
}

/// The last lines that a program said, in one.
pub(super) fn last_words(text: &str) -> String {
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LAST_WORDS)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        let line = "nobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin";
        let User { uid, gid, .. } = User::of_line(line, "nobody").unwrap();
        assert_eq!((uid, gid), (65534, 65533));
        assert!(User::of_line(line, "postgres").is_none());
    }

    #[test]
    fn last_words_are_few() {
        assert_eq!(last_words("a\n\nb\nc\nd\n"), "b; c; d");
        assert_eq!(last_words(""), "");
    }
}
