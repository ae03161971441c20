//! The test bench: a host with jails, targets that bots must not reach, and counts of everything
//! that a jail could leave.

#![allow(dead_code, reason = "each test program uses its own part of this module")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use arbiter_games::Micros;
use arbiter_worker::sandbox::{
    BotSource, Bytes, CgroupHierarchies, Enforcement, Exit, Guarantee, Host, Jail, JailConfig,
    Policy, Process, Stdin, Workdir,
};
use arbiter_worker::seat::StopSignal;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Access, access};
use tempfile::TempDir;

/// The time limit of an honest program on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// If set, the tests run with Landlock instead of namespaces.
const LANDLOCK: &str = "ARBITER_TEST_LANDLOCK";

/// The control groups to use: `v1` for version 1 only, `none` for none.
const GROUPS: &str = "ARBITER_TEST_GROUPS";

/// The factor by which all deadlines are longer, for emulated processors.
const SLOWER: &str = "ARBITER_TEST_SLOWER";

/// How much of a program's output is stored, in bytes.
const MAX_OUTPUT: usize = 1 << 20;

/// Counts of what a jail could leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Census {
    processes: usize,
    groups: Vec<PathBuf>,
    directories: usize,
    descriptors: usize,
    mounts: usize,
    launcher_descriptors: usize,
    launcher_mounts: usize,
}

/// The test bench.
pub(crate) struct Lab {
    pub(crate) host: Host,
    pub(crate) opened: Instant,
    /// The directory of all temporary files.
    directory: TempDir,
    pub(crate) secret: PathBuf,
    listener: TcpListener,
    _abstract_socket: UnixListener,
    _path_sockets: (UnixListener, UnixDatagram),
    /// A bot in another jail during all tests. It has the targets of the attacks.
    rival: Mutex<Option<(Jail, Process)>>,
    /// The worker's memory after its first load, in bytes.
    pub(crate) settled_memory: OnceLock<u64>,
}

/// The network of a jail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// None.
    None,
    /// The loopback listener for a bot that speaks HTTP.
    Loopback,
}

/// The result of running a program.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) output: String,
    /// How the program ended, or `None` if it was killed at its deadline.
    pub(crate) exit: Option<Exit>,
    pub(crate) cause: Option<String>,
    pub(crate) cpu: Micros,
    pub(crate) memory: Option<Bytes>,
    /// How long closing the jail took.
    pub(crate) closing: Duration,
}

impl Lab {
    pub(crate) fn open() -> Self {
        let opened = Instant::now();
        let directory = tempfile::Builder::new().prefix("lab-").tempdir().unwrap();
        tempfile::env::override_temp_dir(directory.path()).unwrap();
        let secret = directory.path().join("secret");
        fs::write(&secret, "the worker's token").unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let name = SocketAddr::from_abstract_name("arbiter-test-worker");
        let socket = UnixListener::bind_addr(&name.unwrap());
        // Another run of this test may use the name. Its listener works too.
        let fallback = || UnixListener::bind(directory.path().join("socket")).unwrap();
        let abstract_socket = socket.unwrap_or_else(|_| fallback());
        let path_sockets = (
            UnixListener::bind(directory.path().join("stream")).unwrap(),
            UnixDatagram::bind(directory.path().join("datagrams")).unwrap(),
        );
        let landlock = std::env::var_os(LANDLOCK).is_some();
        let groups = std::env::var(GROUPS).ok();
        let hierarchies = match groups.as_deref() {
            None => CgroupHierarchies::All,
            Some("v1") => CgroupHierarchies::V1,
            Some("none") => CgroupHierarchies::None,
            Some(other) => panic!("{GROUPS}={other}: v1 or none"),
        };
        let prepare = || Host::prepare_with_hierarchies(Policy::Auto, hierarchies);
        let host = if landlock { Host::prepare_landlock() } else { prepare() }.unwrap();
        let rival = Mutex::new(None);
        let lab = Self {
            host,
            opened,
            directory,
            secret,
            listener,
            _abstract_socket: abstract_socket,
            _path_sockets: path_sockets,
            rival,
            settled_memory: OnceLock::new(),
        };
        let source = lab.program("rival.py");
        let mut jail = lab.jail(&source, &JailConfig::default());
        let mut process = start(&mut jail, &["python3", "rival.py"], Stdin::Pipe);
        assert_eq!(converse(&mut process, "hello"), "alive");
        *lab.rival.lock().unwrap() = Some((jail, process));
        lab
    }

    /// Checks that the rival is alive, and closes everything.
    pub(crate) fn close(self) {
        let (jail, mut process) = self.rival.lock().unwrap().take().unwrap();
        assert_eq!(converse(&mut process, "is the rival alive?"), "alive");
        jail.close().unwrap();
    }

    pub(crate) fn holds(&self, guarantee: Guarantee) -> bool {
        self.host.report().state(guarantee) == Enforcement::Enforced
    }

    /// Whether this test may use a v1 freezer that the jails do not use.
    pub(crate) fn has_spare_v1_freezer(&self) -> bool {
        let other = self.stops_by("control group v2") || self.stops_by("signals");
        other && access("/sys/fs/cgroup/freezer", Access::WRITE_OK).is_ok()
    }

    /// Whether jails are stopped by this mechanism.
    pub(crate) fn stops_by(&self, mechanism: &str) -> bool {
        let mut findings = self.host.report().findings.iter();
        findings.any(|it| it.guarantee == Guarantee::Freeze && it.by == mechanism)
    }

    /// The attack `name`, compiled if it is C, in a directory with what it needs.
    pub(crate) fn program(&self, name: &str) -> BotSource {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks");
        let target = self.directory.path().join(format!("program-{name}"));
        fs::create_dir_all(&target).unwrap();
        if let Some(stem) = name.strip_suffix(".c") {
            let compiled = command("cc")
                .args(["-w", "-O0", "-o"])
                .arg(target.join(stem))
                .arg(folder.join(name))
                .status();
            assert!(compiled.unwrap().success(), "{name} does not compile");
        } else {
            fs::copy(folder.join(name), target.join(name)).unwrap();
            fs::copy(folder.join("attack.py"), target.join("attack.py")).unwrap();
        }
        BotSource::Directory(target)
    }

    pub(crate) fn jail(&self, source: &BotSource, terms: &JailConfig) -> Jail {
        Jail::open(&self.host, Workdir::new(source).unwrap(), terms).unwrap()
    }

    /// Runs `argv` in a new jail, with targets as arguments.
    pub(crate) fn run(
        &self,
        source: &BotSource,
        argv: &[&str],
        terms: &JailConfig,
        deadline: Duration,
    ) -> Seen {
        self.run_with(source, argv, terms, deadline, Network::None)
    }

    /// Like [`Self::run`], in a jail with this network. Connections are not accepted.
    pub(crate) fn run_with(
        &self,
        source: &BotSource,
        argv: &[&str],
        terms: &JailConfig,
        deadline: Duration,
        network: Network,
    ) -> Seen {
        let (mut jail, _door) = match network {
            Network::None => (self.jail(source, terms), None),
            Network::Loopback => {
                let home = Workdir::new(source).unwrap();
                let (jail, door) = Jail::open_with_listener(&self.host, home, terms).unwrap();
                (jail, Some(door))
            }
        };
        let targets = [
            self.secret.display().to_string(),
            std::process::id().to_string(),
            self.listener.local_addr().unwrap().port().to_string(),
        ];
        let argv: Vec<_> = argv.iter().copied().chain(targets.iter().map(|word| &**word)).collect();
        let mut process = start(&mut jail, &argv, Stdin::Pipe);
        let output = listen(&mut process, deadline);
        let exit = jail.reap(&mut process);
        let cause = jail.kill_cause().unwrap();
        let cpu = jail.cpu_time();
        let memory = jail.peak_memory();
        let started = Instant::now();
        jail.close().unwrap();
        let closing = started.elapsed();
        Seen { output, exit, cause, cpu, memory, closing }
    }

    /// Plays an honest match in the same place.
    pub(crate) fn next_match(&self) {
        let source = self.program("honest.py");
        let mut jail = self.jail(&source, &JailConfig::default());
        let mut process = start(&mut jail, &["python3", "honest.py"], Stdin::Pipe);
        assert_eq!(converse(&mut process, "2 3"), "5");
        jail.freeze().unwrap();
        jail.thaw().unwrap();
        assert_eq!(converse(&mut process, "40 2"), "42");
        jail.close().unwrap();
    }

    /// Counts when the counts are stable: the launcher replaces a used jail asynchronously.
    pub(crate) fn settled_census(&self) -> Census {
        let mut last = self.census();
        loop {
            std::thread::sleep(Duration::from_millis(20));
            let now = self.census();
            if now == last {
                return now;
            }
            last = now;
        }
    }

    /// Counts now.
    pub(crate) fn census(&self) -> Census {
        let own_pid = std::process::id();
        let processes = descendants(own_pid);
        let launcher = processes.iter().find(|pid| parents().get(pid) == Some(&own_pid));
        let launcher = launcher.map_or_else(|| "self".to_owned(), u32::to_string);
        let lines = |path: String| fs::read_to_string(path).unwrap_or_default().lines().count();
        let entries = |path: String| fs::read_dir(path).map_or(0, Iterator::count);
        Census {
            processes: processes.len(),
            groups: groups(own_pid),
            directories: fs::read_dir(self.directory.path())
                .unwrap()
                .filter(|entry| {
                    entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("arbiter")
                })
                .count(),
            descriptors: entries("/proc/self/fd".to_owned()),
            mounts: self.mounts(),
            launcher_descriptors: entries(format!("/proc/{launcher}/fd")),
            launcher_mounts: lines(format!("/proc/{launcher}/mountinfo")),
        }
    }

    /// Counts mounts that may belong to a jail. Other processes may change other mounts.
    fn mounts(&self) -> usize {
        let text = fs::read_to_string("/proc/self/mounts").unwrap();
        let own_path = self.directory.path().display().to_string();
        let ours = |line: &&str| {
            let named = ["root ", "box ", "work "].iter().any(|name| line.starts_with(name));
            named || line.contains(&own_path)
        };
        text.lines().filter(ours).count()
    }

    /// The anonymous memory of this worker and its launcher, in bytes.
    pub(crate) fn memory() -> u64 {
        let own_pid = std::process::id();
        let launcher = parents().into_iter().find(|(_, parent)| *parent == own_pid);
        let anonymous = |pid: u32| {
            let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
            line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10)
        };
        anonymous(own_pid) + launcher.map_or(0, |(pid, _)| anonymous(pid))
    }

    /// Waits until nothing is left, and plays the next match.
    pub(crate) fn assert_unharmed(&self, before: &Census) {
        self.assert_nothing_left(before);
        self.next_match();
        self.assert_nothing_left(before);
    }

    /// Waits until the counts are as before: the kernel removes some things asynchronously.
    pub(crate) fn assert_nothing_left(&self, before: &Census) {
        let started = Instant::now();
        while self.census() != *before && started.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(self.census(), *before);
    }
}

/// All descendants of a process.
pub(crate) fn descendants(ancestor: u32) -> BTreeSet<u32> {
    let parents = parents();
    let mut tree = BTreeSet::new();
    // Each pass adds the children of the previous pass.
    loop {
        let is_parent = |pid: &u32| *pid == ancestor || tree.contains(pid);
        let born = parents.iter().filter(|(_, parent)| is_parent(parent)).map(|(pid, _)| *pid);
        let grown: BTreeSet<_> = born.collect();
        if grown == tree {
            return tree;
        }
        tree = grown;
    }
}

/// The parent of every process.
pub(crate) fn parents() -> BTreeMap<u32, u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok());
    let parent = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        text.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()
    };
    pids.filter_map(|pid| Some((pid, parent(pid)?))).collect()
}

/// The control groups of a worker.
pub(crate) fn groups(worker: u32) -> Vec<PathBuf> {
    let prefix = format!("arbiter-{worker}-");
    let mut groups = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in
            entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        {
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                groups.push(entry.path());
            }
            folders.push(entry.path());
        }
    }
    groups.sort();
    groups
}

#[expect(clippy::disallowed_methods, reason = "the program is a compiler, not a bot")]
pub(crate) fn command(program: &str) -> Command {
    Command::new(program)
}

pub(crate) fn start(jail: &mut Jail, argv: &[&str], stdin: Stdin) -> Process {
    let argv: Vec<_> = argv.iter().map(|word| (*word).to_owned()).collect();
    jail.start(&argv, stdin).unwrap().unwrap()
}

/// Sends a line to a program, and returns the line that it replies.
pub(crate) fn converse(process: &mut Process, line: &str) -> String {
    writeln!(process.stdin.as_mut().unwrap(), "{line}").unwrap();
    let mut reply = Vec::new();
    let started = Instant::now();
    while !reply.ends_with(b"\n") {
        assert!(started.elapsed() < TIMEOUT * slower(), "no reply to {line}");
        let mut ready = [
            PollFd::new(&process.stdout, PollFlags::IN),
            PollFd::from_borrowed_fd(process.exit_fd(), PollFlags::IN),
        ];
        rustix::event::poll(&mut ready, Some(&Timespec { tv_sec: 1, tv_nsec: 0 })).unwrap();
        let mut byte = [0];
        match process.stdout.read(&mut byte) {
            Ok(0) => {
                panic!("the program closed its output after {:?}", String::from_utf8_lossy(&reply))
            }
            Ok(_) => reply.push(byte[0]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    String::from_utf8_lossy(&reply).trim_end().to_owned()
}

/// The factor by which deadlines are longer.
pub(crate) fn slower() -> u32 {
    let Ok(text) = std::env::var(SLOWER) else { return 1 };
    text.parse().unwrap_or_else(|_| panic!("{SLOWER}={text}: a whole number"))
}

/// Reads what a program writes until it ends, or until its deadline.
pub(crate) fn listen(process: &mut Process, deadline: Duration) -> String {
    let started = Instant::now();
    let deadline = deadline * slower();
    let mut output = Vec::new();
    let mut buffer = vec![0; 65536];
    loop {
        let remaining = deadline.saturating_sub(started.elapsed());
        let remaining = Timespec {
            tv_sec: remaining.as_secs().try_into().unwrap(),
            tv_nsec: remaining.subsec_nanos().into(),
        };
        let mut ready = vec![
            PollFd::from_borrowed_fd(process.exit_fd(), PollFlags::IN),
            PollFd::new(&process.stdout, PollFlags::IN),
        ];
        ready.extend(process.stderr.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        rustix::event::poll(&mut ready, Some(&remaining)).unwrap();
        let ended = !ready[0].revents().is_empty();
        let mut idle = true;
        if let Ok(count @ 1..) = process.stdout.read(&mut buffer) {
            output.extend_from_slice(&buffer[..count]);
            output.truncate(MAX_OUTPUT);
            idle = false;
        }
        if let Some(stderr) = &mut process.stderr {
            match stderr.read(&mut buffer) {
                Ok(0) => process.stderr = None,
                Ok(count) => {
                    // A traceback helps to explain a failure.
                    output.extend_from_slice(&buffer[..count]);
                    output.truncate(MAX_OUTPUT);
                    idle = false;
                }
                Err(_) => {}
            }
        }
        if (ended && idle) || started.elapsed() > deadline {
            return String::from_utf8_lossy(&output).into_owned();
        }
    }
}

/// A source with these files.
pub(crate) fn source(files: &[(&str, &str)]) -> (TempDir, BotSource) {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let source = BotSource::Directory(directory.path().to_owned());
    (directory, source)
}

/// A signal that stops a seat once the stream is closed, and that stream.
pub(crate) fn stop() -> (Arc<StopSignal>, UnixStream) {
    let (reader, writer) = UnixStream::pair().unwrap();
    (Arc::new(StopSignal::new(OwnedFd::from(reader))), writer)
}
