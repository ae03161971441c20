//! The directory of a cluster: creates the cluster there, and starts its server.

#![expect(unsafe_code, reason = "a step between fork and exec requests the parent-death signal")]

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
use super::{Durability, POLL_INTERVAL, PostgresError, SUPERUSER, file, run};

/// Maximum length of a socket's path (`sun_path` in unix(7), without its final zero).
const MAX_SOCKET_PATH: usize = 107;
/// The name of Postgres' socket, which contains the port.
const SOCKET_NAME: &str = ".s.PGSQL.5432";
/// The mode of a cluster's directory. Postgres requires that only its user has access.
const PRIVATE: u32 = 0o700;
/// How many lines of a program's output an error quotes.
const QUOTED_LINES: usize = 3;

/// Settings of every cluster. Compilation with `jit` would take longer than the statements. The few
/// rows of the queue that change often need frequent vacuuming.
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
/// Additional settings of tests, so that no commit waits for the disk.
pub(super) const UNSYNCED: [&str; 5] = [
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "wal_compression=off",
    // Tests have many databases, and autovacuum starts a process for each of them.
    "autovacuum_naptime=60s",
];

/// The unprivileged user of the server, if this process is root.
#[derive(Clone, Copy, Debug)]
struct User {
    name: &'static str,
    uid: u32,
    gid: u32,
}

impl User {
    /// The user to run as, if this process is root.
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

    /// Whether the user may traverse a directory with this metadata.
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
    /// The server accepts connections.
    Ready,
    /// Another server still uses the data.
    Occupied,
}

/// The directory of a cluster, and the user of its server.
#[derive(Debug)]
pub(super) struct ClusterDir {
    pub(super) cluster: PathBuf,
    pub(super) directory: PathBuf,
    log: PathBuf,
    user: Option<User>,
}

impl ClusterDir {
    /// Creates the parent directory of the cluster, if necessary.
    pub(super) fn prepare(directory: &Path) -> Result<Self, PostgresError> {
        fs::create_dir_all(directory).map_err(file("create the directory", directory))?;
        let directory = fs::canonicalize(directory).map_err(file("find", directory))?;
        let cluster = directory.join("postgres");
        let log = directory.join("postgres.log");
        let cluster_dir = Self { cluster, directory, log, user: User::find()? };
        cluster_dir.check_access()?;
        Ok(cluster_dir)
    }

    /// Checks whether the cluster's user can access the directory.
    fn check_access(&self) -> Result<(), PostgresError> {
        let Some(user) = self.user else { return Ok(()) };
        for directory in self.directory.ancestors() {
            let metadata = fs::metadata(directory).map_err(file("read the mode of", directory))?;
            if !user.may_pass(&metadata) {
                let closed = directory.to_owned();
                let data = self.directory.clone();
                return Err(PostgresError::Closed { user: user.name, closed, data });
            }
        }
        Ok(())
    }

    /// Creates the cluster under another name, and renames it when it is complete.
    pub(super) fn create(
        &self,
        binaries: &Binaries,
        durability: Durability,
    ) -> Result<(), PostgresError> {
        let temporary = self.directory.join("postgres.new");
        if temporary.exists() {
            fs::remove_dir_all(&temporary).map_err(file("remove", &temporary))?;
        }
        self.create_private(&temporary)?;
        let mut initdb = self.command(&binaries.path("initdb"));
        // The rules for connections are passed at each start: see `role.rs`.
        initdb.args(["--auth=reject", "--encoding=UTF8", "--locale=C", "--data-checksums"]);
        initdb.args(["--no-sync", "--username", SUPERUSER, "--pgdata"]).arg(&temporary);
        let output = initdb.output().map_err(file("run", &binaries.path("initdb")))?;
        if !output.status.success() {
            let status = output.status;
            let output = last_lines(&String::from_utf8_lossy(&output.stderr));
            return Err(PostgresError::Failed { program: "initdb", status, output });
        }
        // An existing password belongs to an earlier cluster.
        let password = role::password_file(&self.directory);
        match fs::remove_file(&password) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                return Err(file("remove", &password)(cause));
            }
            _ => {}
        }
        // The files of initdb must be on disk before the cluster gets its name. `sync` waits for
        // the writes of all programs, so it is called only for durable data.
        if durability == Durability::Synced {
            rustix::fs::sync();
        }
        fs::rename(&temporary, &self.cluster).map_err(file("rename", &temporary))
    }

    /// The directory of the socket: the cluster's directory, or a temporary directory if the path
    /// is too long.
    pub(super) fn socket(&self) -> Result<(PathBuf, Option<TempDir>), PostgresError> {
        if self.cluster.join(SOCKET_NAME).as_os_str().as_bytes().len() <= MAX_SOCKET_PATH {
            return Ok((self.cluster.clone(), None));
        }
        let tmp = Path::new("/tmp");
        let result = tempfile::Builder::new().prefix("arbiter-").tempdir_in(tmp);
        let socket_dir = result.map_err(file("create a directory in", tmp))?;
        self.make_private(socket_dir.path())?;
        Ok((socket_dir.path().to_owned(), Some(socket_dir)))
    }

    /// Starts the server on a thread that waits for its end. Returns the process id, and a receiver
    /// for the exit status.
    pub(super) fn spawn(
        &self,
        binaries: &Binaries,
        socket: &Path,
        credentials: &Credentials,
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
        rules.push(&credentials.rules);
        command.arg("-c").arg(rules);
        let unsynced: &[&str] = if durability == Durability::Unsynced { &UNSYNCED } else { &[] };
        for setting in SETTINGS.iter().chain(unsynced) {
            command.arg("-c").arg(setting);
        }
        // SAFETY: the closure makes one system call and does not access the parent's memory. It
        // runs after the change of user, which would reset the signal.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::INT))?));
        }
        let (start_sender, start) = channel();
        let (exit_sender, exit_status) = channel();
        thread::spawn(move || match command.spawn() {
            Ok(mut child) => {
                // The receiver may have been dropped.
                drop(start_sender.send(Ok(child.id())));
                drop(exit_sender.send(child.wait()));
            }
            Err(error) => drop(start_sender.send(Err(error))),
        });
        let result = start.recv().expect("the thread sends the result of the start");
        let id = result.map_err(file("run", &program))?;
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
        Ok((pid.expect("a process id is a small positive number"), exit_status))
    }

    /// Waits until the server accepts connections.
    pub(super) fn wait_ready(
        &self,
        pid: Pid,
        exit_status: &Receiver<io::Result<ExitStatus>>,
        deadline: Instant,
    ) -> Result<Start, PostgresError> {
        loop {
            if self.is_ready(pid) {
                return Ok(Start::Ready);
            }
            match exit_status.try_recv() {
                Ok(Ok(status)) => return self.ended_early(status, deadline),
                Ok(Err(cause)) => return Err(file("wait for the server of", &self.cluster)(cause)),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
            }
            if Instant::now() >= deadline {
                return Err(PostgresError::Slow { log: self.log.clone() });
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Whether the server is ready. Like `pg_ctl --wait`, reads two lines of `postmaster.pid`: the
    /// first is the process id, the eighth is the state.
    fn is_ready(&self, pid: Pid) -> bool {
        let text = fs::read_to_string(self.cluster.join("postmaster.pid")).unwrap_or_default();
        let mut lines = text.lines();
        let is_ours = lines.next() == Some(&pid.as_raw_nonzero().to_string());
        is_ours && lines.nth(6).is_some_and(|state| state.trim() == "ready")
    }

    /// The reason why a server ended before it was ready.
    fn ended_early(&self, status: ExitStatus, deadline: Instant) -> Result<Start, PostgresError> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        if is_occupied(&log) && Instant::now() < deadline {
            return Ok(Start::Occupied);
        }
        let output = format!("{} (see {})", last_lines(&log), self.log.display());
        Err(PostgresError::Failed { program: "postgres", status, output })
    }

    /// A command that runs as the cluster's user, in a directory that this user can access.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = run(program);
        command.current_dir("/").stdin(Stdio::null()).env_remove("PGDATA").env("LC_ALL", "C");
        // Only this process gets signals from the terminal. It then stops the server cleanly.
        command.process_group(0);
        if let Some(User { uid, gid, .. }) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Creates a directory that only the cluster's user can access.
    fn create_private(&self, path: &Path) -> Result<(), PostgresError> {
        fs::create_dir(path).map_err(file("create the directory", path))?;
        self.make_private(path)
    }

    /// Gives only the cluster's user access to a directory.
    fn make_private(&self, path: &Path) -> Result<(), PostgresError> {
        let private = fs::Permissions::from_mode(PRIVATE);
        fs::set_permissions(path, private).map_err(file("change the mode of", path))?;
        match self.user {
            Some(User { uid, gid, .. }) => {
                chown(path, Some(uid), Some(gid)).map_err(file("change the owner of", path))
            }
            None => Ok(()),
        }
    }
}

/// Whether the output of a server says that another server uses the data.
pub(super) fn is_occupied(output: &str) -> bool {
    output.contains("postmaster.pid") || output.contains("still in use")
}

/// The last lines of a program's output, joined.
pub(super) fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(QUOTED_LINES)..].join("; ")
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
    fn only_the_last_lines_are_quoted() {
        assert_eq!(last_lines("a\n\nb\nc\nd\n"), "b; c; d");
        assert_eq!(last_lines(""), "");
    }
}
