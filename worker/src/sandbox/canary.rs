//! Attacks on a jail from within, made when a worker starts: what is guaranteed is what they met.

#![expect(unsafe_code, reason = "attacks are system calls that no library offers")]

use std::ffi::CString;
use std::fs::{self, File, Permissions};
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, lchown};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::fs::{AtFlags, CWD, Timestamps, UTIME_NOW};
use serde::{Deserialize, Serialize};

use super::report::Guarantee;
use super::sys;

/// How long a connection that must not come about is waited for.
const CONNECTING: Duration = Duration::from_millis(200);

/// More processes than this are not started, whatever the limit.
const MOST_PROCESSES: u32 = 64;

/// The size of a page, in bytes.
const PAGE: usize = 4096;

/// How much is written at once to fill the disk, in bytes.
const BLOCK: usize = 256 << 10;

/// Attacks by which a bot could end or slow its worker, and so every match.
pub(super) const SIGNAL: &str = "signal the worker";
pub(super) const TRACE: &str = "trace the worker";
pub(super) const RENICE: &str = "renice the worker";

/// What is attacked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    /// A file of the worker.
    pub(super) secret: PathBuf,
    /// A socket in the file system on which the worker listens.
    pub(super) stream: PathBuf,
    /// The same for datagrams.
    pub(super) datagrams: PathBuf,
    /// The worker's number.
    pub(super) worker: i32,
    /// The process namespace in which it has that number, where that can be told.
    pub(super) namespace: Option<PathBuf>,
    /// A port where the worker listens.
    pub(super) port: u16,
    /// More memory than is allowed, in bytes.
    pub(super) memory: usize,
    /// The processes that are allowed, and some.
    pub(super) processes: u32,
    /// More than the disk that is allowed, in bytes.
    pub(super) disk: usize,
    /// More files than are allowed.
    pub(super) files: u32,
}

/// What an attack met.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// What was attacked.
    pub(super) guarantee: Guarantee,
    /// How.
    pub(super) attack: String,
    /// Whether it failed, as it should.
    pub(super) held: bool,
    /// What it met.
    pub(super) met: String,
}

/// The first argument of this program as a canary without walls; the second is its plan.
const NAME: &str = "arbiter-canary";

/// How this program is called as a canary.
pub(super) fn argv(program: &str, plan: &Plan) -> Vec<String> {
    let plan = serde_json::to_string(plan).expect("a plan is plain data");
    vec![program.to_owned(), NAME.to_owned(), plan]
}

/// Makes every attack if this process was started for that, and does not return then.
pub(super) fn run_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|name| name != NAME) {
        return;
    }
    let plan = arguments.next().and_then(|plan| plan.into_string().ok());
    match plan.and_then(|plan| serde_json::from_str(&plan).ok()) {
        Some(plan) => attack(&plan, io::stdout()),
        None => sys::exit(1),
    }
}

/// Makes every attack, writes the outcomes to `output` as one line, and spins until it is killed.
pub(super) fn attack(plan: &Plan, mut output: impl io::Write) -> ! {
    let outcomes = all(plan);
    let written = serde_json::to_string(&outcomes).map_err(io::Error::from);
    let written = written.and_then(|text| writeln!(output, "{text}"));
    if written.is_err() {
        sys::exit(1);
    }
    loop {
        std::hint::spin_loop();
    }
}

fn all(plan: &Plan) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut record = |guarantee, attack: &str, result: Result<String, String>| {
        let held = result.is_err();
        let met = result.unwrap_or_else(|error| error);
        outcomes.push(Outcome { guarantee, attack: attack.to_owned(), held, met });
    };
    record(Guarantee::Files, "read a file of the worker", open(&plan.secret));
    record(Guarantee::Files, "read the system's passwords", open(Path::new("/etc/shadow")));
    record(Guarantee::Files, "write into the system", create(Path::new("/usr/canary")));
    record(Guarantee::Files, "write into the root", create(Path::new("/canary")));
    record(Guarantee::Files, "change a file's mode", breach(mode(&plan.secret)));
    record(Guarantee::Files, "change a file's owner", breach(own(&plan.secret)));
    record(Guarantee::Files, "change a file's times", breach(times(&plan.secret)));
    record(Guarantee::Files, "cut a file off", breach(cut(&plan.secret)));
    record(Guarantee::Network, "connect to a path", breach(UnixStream::connect(&plan.stream)));
    record(Guarantee::Network, "send to a path", breach(send_to_path(&plan.datagrams)));
    record(Guarantee::Network, "connect to the worker", connect(plan.port));
    record(Guarantee::Network, "send into the world", send());
    record(Guarantee::Others, SIGNAL, signal(plan));
    record(Guarantee::Others, TRACE, trace(plan.worker));
    record(Guarantee::Others, RENICE, renice(plan));
    record(Guarantee::Others, "inspect the worker", inspect(plan));
    record(Guarantee::Others, "see other processes", look_around());
    record(Guarantee::Others, "count requests of the machine", open(Path::new(REQUESTS)));
    record(Guarantee::Others, "see which files are in memory", peek());
    record(Guarantee::Others, "see which names are in memory", peek_at_name());
    for (attack, number, arguments) in CALLS {
        record(Guarantee::Kernel, attack, call(*number, *arguments));
    }
    record(Guarantee::Kernel, "become the root user", become_root());
    record(Guarantee::Disk, "fill the disk", fill(plan.disk));
    record(Guarantee::Disk, "make files without end", litter(plan.files));
    record(Guarantee::Processes, "start processes without end", multiply(plan.processes));
    record(Guarantee::Memory, "use memory without end", devour(plan.memory));
    outcomes
}

/// A number of the machine that any process can move.
const REQUESTS: &str = "/proc/sys/fs/aio-nr";

/// Reads of a file that every bot sees what is in memory already.
fn peek() -> Result<String, String> {
    let file = File::open("/usr").map_err(|error| error.to_string())?;
    let flags = rustix::io::ReadWriteFlags::NOWAIT;
    let mut byte = [0];
    match rustix::io::preadv2(&file, &mut [io::IoSliceMut::new(&mut byte)], 0, flags) {
        // That it is a directory is what the kernel would say.
        Err(rustix::io::Errno::OPNOTSUPP) => Err("not supported".to_owned()),
        Err(error) => Ok(error.to_string()),
        Ok(_) => Ok("it succeeded".to_owned()),
    }
}

/// Looks up a name that every bot sees, if that takes no disk. A kernel without the call has no
/// such look.
fn peek_at_name() -> Result<String, String> {
    // `struct open_how`: flags, mode, and `RESOLVE_CACHED`.
    let how = [u64::from(libc::O_PATH.cast_unsigned()), 0, 0x20];
    // SAFETY: both pointers are to live values, and the size is that of the second.
    let result = sys::check(unsafe {
        let (name, size) = (c"/usr".as_ptr(), size_of_val(&how));
        libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, name, how.as_ptr(), size)
    });
    match result {
        // That the name is not in memory is what the kernel would say.
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(error.to_string()),
        result => breach(result),
    }
}

/// A system call that must fail, as its name, number and arguments.
type Call = (&'static str, libc::c_long, [usize; 3]);

/// Calls with arguments that are right, where no pointer is needed to pass for such.
const CALLS: &[Call] = &[
    ("make a user namespace", libc::SYS_unshare, [0x1000_0000, 0, 0]),
    ("make a mount namespace", libc::SYS_unshare, [0x2_0000, 0, 0]),
    ("change the root", libc::SYS_chroot, [0, 0, 0]),
    ("unmount", libc::SYS_umount2, [0, 0, 0]),
    ("open a socket to the hypervisor", libc::SYS_socket, [40, 1, 0]),
    ("open a raw socket", libc::SYS_socket, [17, 3, 0]),
    ("use io_uring", libc::SYS_io_uring_setup, [1, 0, 0]),
    ("load a kernel program", libc::SYS_bpf, [0, 0, 0]),
    ("use a keyring", libc::SYS_keyctl, [0, 0xFFFF_FFFD, 1]),
    ("handle page faults", libc::SYS_userfaultfd, [1, 0, 0]),
    ("count events", libc::SYS_perf_event_open, [0, 0, 0]),
    ("count requests", libc::SYS_io_setup, [1, 0, 0]),
    ("look into memory", libc::SYS_mincore, [0, 1, 0]),
    ("share a core", libc::SYS_prctl, [62, 0, 0]),
    ("merge pages", libc::SYS_prctl, [67, 1, 0]),
    ("page out", libc::SYS_madvise, [0, 0, 21]),
    ("open a socket of the internet", libc::SYS_socket, [2, 1, 0]),
];

/// Takes a file over. To ask for no change is not enough: that succeeds for all users.
fn own(path: &Path) -> io::Result<()> {
    lchown(path, Some(rustix::process::geteuid().as_raw()), None)
}

/// Success as a breach, failure as what was met.
fn breach<T>(result: io::Result<T>) -> Result<String, String> {
    result.map(|_| "it succeeded".to_owned()).map_err(|error| error.to_string())
}

fn open(path: &Path) -> Result<String, String> {
    breach(File::open(path))
}

fn create(path: &Path) -> Result<String, String> {
    breach(File::create(path))
}

fn connect(port: u16) -> Result<String, String> {
    breach(TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), CONNECTING))
}

fn send() -> Result<String, String> {
    // An address for documentation: nobody is there, but a network would take the packet.
    breach(UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.send_to(b"?", "192.0.2.1:9")))
}

fn mode(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(0o600))
}

fn times(path: &Path) -> io::Result<()> {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::empty())?)
}

fn cut(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the string outlives the call.
    sys::check(unsafe { libc::truncate(path.as_ptr(), 0) }).map(drop)
}

/// Sends from a pair of sockets, which may be had where single ones are refused.
fn send_to_path(path: &Path) -> io::Result<()> {
    let (socket, _other) = UnixDatagram::pair()?;
    socket.send_to(b"?", path).map(drop)
}

/// The process namespace of this process, as the kernel names it.
pub(super) fn namespace() -> Option<PathBuf> {
    fs::read_link("/proc/self/ns/pid").ok()
}

/// The worker's number. Where processes are counted anew the number is another's: that of a worker
/// in a container is small, and so are the canary's own.
fn worker(plan: &Plan) -> Result<libc::pid_t, String> {
    let (own, theirs) = (namespace(), &plan.namespace);
    if own.is_some() && theirs.is_some() && own != *theirs {
        return Err("its number is not its own here".to_owned());
    }
    Ok(plan.worker)
}

fn signal(plan: &Plan) -> Result<String, String> {
    let worker = worker(plan)?;
    // SAFETY: no pointer; the signal is none.
    breach(sys::check(unsafe { libc::kill(worker, 0) }))
}

/// Asks for the priority that the worker has already.
fn renice(plan: &Plan) -> Result<String, String> {
    let worker = worker(plan)?.cast_unsigned();
    // SAFETY: no pointers.
    breach(sys::check(unsafe {
        let priority = libc::getpriority(libc::PRIO_PROCESS, worker);
        libc::setpriority(libc::PRIO_PROCESS, worker, priority)
    }))
}

fn inspect(plan: &Plan) -> Result<String, String> {
    open(&Path::new("/proc").join(worker(plan)?.to_string()).join("status"))
}

fn trace(worker: i32) -> Result<String, String> {
    // SAFETY: attaches to another process; memory of this one is not touched.
    breach(sys::check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, worker, 0, 0) }))
}

fn look_around() -> Result<String, String> {
    let Ok(entries) = fs::read_dir("/proc") else { return Err("/proc is hidden".to_owned()) };
    let own = [process::id().to_string(), "1".to_owned()];
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let others: Vec<_> =
        names.filter(|name| name.parse::<u32>().is_ok() && !own.contains(name)).collect();
    if others.is_empty() { Err("none".to_owned()) } else { Ok(others.join(" ")) }
}

fn call(number: libc::c_long, [a, b, c]: [usize; 3]) -> Result<String, String> {
    // SAFETY: where an argument should be a pointer it is none, which the kernel finds out.
    let result = sys::check(unsafe { libc::syscall(number, a, b, c, 0, 0, 0) });
    match result {
        // A null pointer was looked at: the call itself was let through.
        Err(error) if error.raw_os_error() == Some(libc::EFAULT) => Ok(error.to_string()),
        result => breach(result),
    }
}

fn become_root() -> Result<String, String> {
    // SAFETY: no pointers.
    breach(sys::check(unsafe { libc::setresuid(0, 0, 0) }))
}

/// Writes several files: one alone meets the limit of a file's length.
fn fill(bytes: usize) -> Result<String, String> {
    let block = vec![1; BLOCK];
    let names: Vec<_> = (0..bytes.div_ceil(BLOCK)).map(|n| format!("canary-{n}")).collect();
    let result = names.iter().try_for_each(|name| fs::write(name, &block));
    for name in &names {
        drop(fs::remove_file(name));
    }
    breach(result)
}

fn litter(files: u32) -> Result<String, String> {
    let names = |number: u32| format!("canary-{number}");
    let result = (0..files).try_for_each(|number| File::create(names(number)).map(drop));
    (0..files).for_each(|number| drop(fs::remove_file(names(number))));
    breach(result)
}

/// Starts processes that wait, until it may not, and lets them go.
fn multiply(most: u32) -> Result<String, String> {
    let mut started = Vec::new();
    let mut result = Ok(());
    while result.is_ok() && started.len() < most.min(MOST_PROCESSES) as usize {
        match sys::fork_plainly() {
            Ok(0) => loop {
                std::thread::sleep(Duration::from_secs(1));
            },
            Ok(pid) => started.push(pid),
            Err(error) => result = Err(error),
        }
    }
    let count = started.len();
    for pid in started {
        // SAFETY: a child that was not waited for.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        sys::wait_for(pid);
    }
    breach(result).map_err(|error| format!("{count} ran, then: {error}"))
}

/// Uses shared memory, which limits of single processes do not count, in a process that may die
/// of it.
fn devour(bytes: usize) -> Result<String, String> {
    match sys::fork_plainly() {
        Ok(0) => {
            touch(bytes);
            sys::exit(0)
        }
        Ok(pid) => match sys::wait_for(pid).map(|ended| ended.exit) {
            Some(super::Exit::Code(0)) => Ok(format!("{bytes} bytes were had")),
            Some(exit) => Err(exit.to_string()),
            None => Err("it vanished".to_owned()),
        },
        Err(error) => Err(error.to_string()),
    }
}

fn touch(bytes: usize) {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping is written within its bounds, and nobody else knows it.
    unsafe {
        let memory = libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0);
        if memory == libc::MAP_FAILED {
            sys::exit(2);
        }
        let memory = memory.cast::<u8>();
        for offset in (0..bytes).step_by(PAGE) {
            memory.add(offset).write_volatile(1);
        }
    }
}
