//! The self-test: attacks on a jail from within when a worker starts. Their results decide which
//! guarantees the worker reports.

#![expect(unsafe_code, reason = "attacks use system calls that no library offers")]

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

use super::guarantees::Guarantee;
use super::syscalls;

/// How long to wait for a connection that must fail.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(200);

/// The maximum number of processes that the self-test starts, whatever the limit.
const MAX_PROCESSES: u32 = 64;

/// The size of a page, in bytes.
const PAGE: usize = 4096;

/// The size of one write when the self-test fills the disk, in bytes.
const BLOCK: usize = 256 << 10;

/// Attacks by which a bot could end or slow down its worker, and so every match.
pub(super) const SIGNAL: &str = "signal the worker";
pub(super) const TRACE: &str = "trace the worker";
pub(super) const RENICE: &str = "renice the worker";

/// The targets of the attacks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct AttackPlan {
    /// A file of the worker.
    pub(super) secret: PathBuf,
    /// A socket in the file system on which the worker listens.
    pub(super) stream: PathBuf,
    /// The same for datagrams.
    pub(super) datagrams: PathBuf,
    /// The pid of the worker.
    pub(super) worker: i32,
    /// The PID namespace of that pid, if known.
    pub(super) namespace: Option<PathBuf>,
    /// A port where the worker listens.
    pub(super) port: u16,
    /// More memory than the limit, in bytes.
    pub(super) memory: usize,
    /// More processes than the limit.
    pub(super) processes: u32,
    /// More disk space than the limit, in bytes.
    pub(super) disk: usize,
    /// More files than the limit.
    pub(super) files: u32,
}

/// The result of one attack.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct AttackResult {
    /// The guarantee that it tests.
    pub(super) guarantee: Guarantee,
    /// The action that the attack tries.
    pub(super) attack: String,
    /// Whether the sandbox stopped the attack.
    pub(super) was_blocked: bool,
    /// The error of the attack, or how it succeeded.
    pub(super) detail: String,
}

/// The first argument of this program as a self-test without namespaces. The second is its plan.
const NAME: &str = "arbiter-self-test";

/// The command line of this program as a self-test.
pub(super) fn command_line(program: &str, plan: &AttackPlan) -> Vec<String> {
    let plan = serde_json::to_string(plan).expect("a plan is plain data");
    vec![program.to_owned(), NAME.to_owned(), plan]
}

/// Runs the self-test if this process was started for that. Then it does not return.
pub(super) fn run_if_requested() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|name| name != NAME) {
        return;
    }
    let plan = arguments.next().and_then(|plan| plan.into_string().ok());
    match plan.and_then(|plan| serde_json::from_str(&plan).ok()) {
        Some(plan) => run(&plan, io::stdout()),
        None => syscalls::exit(1),
    }
}

/// Runs every attack, writes the results to `output` as one line, and spins until it is killed.
pub(super) fn run(plan: &AttackPlan, mut output: impl io::Write) -> ! {
    let results = serde_json::to_string(&run_attacks(plan)).map_err(io::Error::from);
    let write_result = results.and_then(|text| writeln!(output, "{text}"));
    if write_result.is_err() {
        syscalls::exit(1);
    }
    loop {
        std::hint::spin_loop();
    }
}

fn run_attacks(plan: &AttackPlan) -> Vec<AttackResult> {
    let mut results = Vec::new();
    let mut record = |guarantee, attack: &str, result: Result<String, String>| {
        let was_blocked = result.is_err();
        let detail = result.unwrap_or_else(|error| error);
        results.push(AttackResult { guarantee, attack: attack.to_owned(), was_blocked, detail });
    };
    record(Guarantee::Files, "read a file of the worker", open(&plan.secret));
    record(Guarantee::Files, "read the system's passwords", open(Path::new("/etc/shadow")));
    record(Guarantee::Files, "write into the system", create(Path::new("/usr/self-test")));
    record(Guarantee::Files, "write into the root", create(Path::new("/self-test")));
    record(Guarantee::Files, "change a file's mode", to_result(change_mode(&plan.secret)));
    record(Guarantee::Files, "change a file's owner", to_result(change_owner(&plan.secret)));
    record(Guarantee::Files, "change a file's times", to_result(change_times(&plan.secret)));
    record(Guarantee::Files, "cut a file off", to_result(truncate(&plan.secret)));
    record(Guarantee::Network, "connect to a path", to_result(UnixStream::connect(&plan.stream)));
    record(Guarantee::Network, "send to a path", to_result(send_to_path(&plan.datagrams)));
    record(Guarantee::Network, "connect to the worker", connect_to_port(plan.port));
    record(Guarantee::Network, "send into the world", send_to_internet());
    record(Guarantee::Others, SIGNAL, signal(plan));
    record(Guarantee::Others, TRACE, trace(plan.worker));
    record(Guarantee::Others, RENICE, renice(plan));
    record(Guarantee::Others, "inspect the worker", inspect(plan));
    record(Guarantee::Others, "see other processes", list_processes());
    record(Guarantee::Others, "count requests of the machine", open(Path::new(AIO_COUNTER)));
    record(Guarantee::Others, "see which files are in memory", read_cached());
    record(Guarantee::Others, "see which names are in memory", look_up_cached_name());
    for (attack, number, arguments) in DENIED_CALLS {
        record(Guarantee::Kernel, attack, call(*number, *arguments));
    }
    record(Guarantee::Kernel, "become the root user", become_root());
    record(Guarantee::Disk, "fill the disk", fill_disk(plan.disk));
    record(Guarantee::Disk, "make files without end", create_files(plan.files));
    record(Guarantee::Processes, "start processes without end", start_processes(plan.processes));
    record(Guarantee::Memory, "use memory without end", use_memory(plan.memory));
    results
}

/// A counter of the machine that any process can change.
const AIO_COUNTER: &str = "/proc/sys/fs/aio-nr";

/// Reads a file that every bot sees, but only what is in the page cache.
fn read_cached() -> Result<String, String> {
    let file = File::open("/usr").map_err(|error| error.to_string())?;
    let flags = rustix::io::ReadWriteFlags::NOWAIT;
    let mut byte = [0];
    match rustix::io::preadv2(&file, &mut [io::IoSliceMut::new(&mut byte)], 0, flags) {
        // A kernel that does not refuse the call reports that it is a directory (`EISDIR`).
        Err(rustix::io::Errno::OPNOTSUPP) => Err("not supported".to_owned()),
        Err(error) => Ok(error.to_string()),
        Ok(_) => Ok("it succeeded".to_owned()),
    }
}

/// Looks up a name that every bot sees, but only in the dentry cache. Older kernels do not have
/// this system call.
fn look_up_cached_name() -> Result<String, String> {
    // `struct open_how`: flags, mode, and `RESOLVE_CACHED`.
    let how = [u64::from(libc::O_PATH.cast_unsigned()), 0, 0x20];
    // SAFETY: both pointers are to live values, and the size is that of the second.
    let result = syscalls::check(unsafe {
        let name = c"/usr".as_ptr();
        let size = size_of_val(&how);
        libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, name, how.as_ptr(), size)
    });
    match result {
        // A kernel that does not refuse the call reports that the name is not cached.
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(error.to_string()),
        result => to_result(result),
    }
}

/// A system call that must fail: its description, number and arguments.
type DeniedCall = (&'static str, libc::c_long, [usize; 3]);

/// Calls with valid arguments, as far as that is possible without pointers.
const DENIED_CALLS: &[DeniedCall] = &[
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

/// Takes ownership of a file. A request that changes nothing is no test: it succeeds for all users.
fn change_owner(path: &Path) -> io::Result<()> {
    lchown(path, Some(rustix::process::geteuid().as_raw()), None)
}

/// Success of an attack as `Ok`, its error as `Err`.
fn to_result<T>(result: io::Result<T>) -> Result<String, String> {
    result.map(|_| "it succeeded".to_owned()).map_err(|error| error.to_string())
}

fn open(path: &Path) -> Result<String, String> {
    to_result(File::open(path))
}

fn create(path: &Path) -> Result<String, String> {
    to_result(File::create(path))
}

fn connect_to_port(port: u16) -> Result<String, String> {
    to_result(TcpStream::connect_timeout(
        &SocketAddr::from(([127, 0, 0, 1], port)),
        CONNECT_TIMEOUT,
    ))
}

fn send_to_internet() -> Result<String, String> {
    // A documentation address: no host has it, but a network would accept the packet.
    to_result(UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.send_to(b"?", "192.0.2.1:9")))
}

fn change_mode(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(0o600))
}

fn change_times(path: &Path) -> io::Result<()> {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::empty())?)
}

fn truncate(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the string outlives the call.
    syscalls::check(unsafe { libc::truncate(path.as_ptr(), 0) }).map(drop)
}

/// Sends from a socket pair, which may be allowed where single sockets are refused.
fn send_to_path(path: &Path) -> io::Result<()> {
    let (socket, _other) = UnixDatagram::pair()?;
    socket.send_to(b"?", path).map(drop)
}

/// The PID namespace of this process, by the kernel's name.
pub(super) fn pid_namespace() -> Option<PathBuf> {
    fs::read_link("/proc/self/ns/pid").ok()
}

/// The worker's pid, if this process is in the worker's PID namespace. In a new namespace another
/// process may have that pid: workers in containers and self-test processes both have small pids.
fn worker_pid(plan: &AttackPlan) -> Result<libc::pid_t, String> {
    if let (Some(own_namespace), Some(worker_namespace)) = (pid_namespace(), &plan.namespace)
        && own_namespace != *worker_namespace
    {
        return Err("another process has its pid here".to_owned());
    }
    Ok(plan.worker)
}

fn signal(plan: &AttackPlan) -> Result<String, String> {
    let worker = worker_pid(plan)?;
    // SAFETY: no pointers, and signal 0 only checks permission.
    to_result(syscalls::check(unsafe { libc::kill(worker, 0) }))
}

/// Sets the worker's priority to the one that it has.
fn renice(plan: &AttackPlan) -> Result<String, String> {
    let worker = worker_pid(plan)?.cast_unsigned();
    // SAFETY: no pointers.
    to_result(syscalls::check(unsafe {
        let priority = libc::getpriority(libc::PRIO_PROCESS, worker);
        libc::setpriority(libc::PRIO_PROCESS, worker, priority)
    }))
}

fn inspect(plan: &AttackPlan) -> Result<String, String> {
    open(&Path::new("/proc").join(worker_pid(plan)?.to_string()).join("status"))
}

fn trace(worker: i32) -> Result<String, String> {
    // SAFETY: attaches to another process and does not touch memory of this one.
    to_result(syscalls::check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, worker, 0, 0) }))
}

fn list_processes() -> Result<String, String> {
    let Ok(entries) = fs::read_dir("/proc") else { return Err("/proc is hidden".to_owned()) };
    let jail_pids = [process::id().to_string(), "1".to_owned()];
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let others: Vec<_> =
        names.filter(|name| name.parse::<u32>().is_ok() && !jail_pids.contains(name)).collect();
    if others.is_empty() { Err("none".to_owned()) } else { Ok(others.join(" ")) }
}

fn call(number: libc::c_long, [a, b, c]: [usize; 3]) -> Result<String, String> {
    // SAFETY: where an argument should be a pointer it is an invalid one, which the kernel rejects.
    let result = syscalls::check(unsafe { libc::syscall(number, a, b, c, 0, 0, 0) });
    match result {
        // The kernel dereferenced a null pointer, so the call itself was allowed.
        Err(error) if error.raw_os_error() == Some(libc::EFAULT) => Ok(error.to_string()),
        result => to_result(result),
    }
}

fn become_root() -> Result<String, String> {
    // SAFETY: no pointers.
    to_result(syscalls::check(unsafe { libc::setresuid(0, 0, 0) }))
}

/// Writes several files: a single one would hit the limit of a file's length.
fn fill_disk(bytes: usize) -> Result<String, String> {
    let block = vec![1; BLOCK];
    let names: Vec<_> = (0..bytes.div_ceil(BLOCK)).map(|n| format!("self-test-{n}")).collect();
    let result = names.iter().try_for_each(|name| fs::write(name, &block));
    for name in &names {
        drop(fs::remove_file(name));
    }
    to_result(result)
}

fn create_files(files: u32) -> Result<String, String> {
    let names = |number: u32| format!("self-test-{number}");
    let result = (0..files).try_for_each(|number| File::create(names(number)).map(drop));
    (0..files).for_each(|number| drop(fs::remove_file(names(number))));
    to_result(result)
}

/// Starts waiting processes until a fork fails, then kills them.
fn start_processes(limit: u32) -> Result<String, String> {
    let mut pids = Vec::new();
    let mut result = Ok(());
    while result.is_ok() && pids.len() < limit.min(MAX_PROCESSES) as usize {
        match syscalls::fork() {
            Ok(0) => loop {
                std::thread::sleep(Duration::from_secs(1));
            },
            Ok(pid) => pids.push(pid),
            Err(error) => result = Err(error),
        }
    }
    let count = pids.len();
    for pid in pids {
        // SAFETY: a child that was not reaped.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        syscalls::wait_for(pid);
    }
    to_result(result).map_err(|error| format!("{count} started, then: {error}"))
}

/// Uses shared memory, which per-process limits do not count, in a child that may be killed for it.
fn use_memory(bytes: usize) -> Result<String, String> {
    match syscalls::fork() {
        Ok(0) => {
            write_shared_memory(bytes);
            syscalls::exit(0)
        }
        Ok(pid) => match syscalls::wait_for(pid).map(|ended| ended.exit) {
            Some(super::Exit::Code(0)) => Ok(format!("{bytes} bytes were allocated")),
            Some(exit) => Err(exit.to_string()),
            None => Err("it vanished".to_owned()),
        },
        Err(error) => Err(error.to_string()),
    }
}

fn write_shared_memory(bytes: usize) {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: writes a new, private mapping within its bounds.
    unsafe {
        let memory = libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0);
        if memory == libc::MAP_FAILED {
            syscalls::exit(2);
        }
        let memory = memory.cast::<u8>();
        for offset in (0..bytes).step_by(PAGE) {
            memory.add(offset).write_volatile(1);
        }
    }
}
