//! Safe wrappers of system calls that neither the standard library nor `rustix` offers.

#![expect(
    unsafe_code,
    reason = "cloning into namespaces, starting a program with other credentials, filters, \
              and waiting for any child are raw system calls"
)]

use std::convert::Infallible;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::ptr;

use arbiter_games::Micros;
use rustix::process::{Pid, Resource, Rlimit, WaitId, WaitIdOptions};
use rustix::thread::{CpuSet, Gid, Uid};

use super::process::Exit;

/// The namespaces of a jail.
const NAMESPACES: c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// The stack of a child between clone and exec, in units of 16 bytes, without its arguments: the
/// search along `PATH` builds each name on it.
const CHILD_STACK: usize = 64 * 1024 / 16;

/// The side of a fork.
#[derive(Debug)]
pub(super) enum Fork {
    /// The child.
    Child,
    /// The parent: the child's pid and pidfd.
    Parent(libc::pid_t, OwnedFd),
}

/// Converts the result of a system call.
pub(super) fn check(result: impl Into<i64>) -> io::Result<i64> {
    let result = result.into();
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A set of these processors; all if `cores` is empty.
pub(super) fn cpu_set(cores: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    for core in (0..CpuSet::MAX_CPU).filter(|core| cores.is_empty() || cores.contains(core)) {
        set.set(core);
    }
    set
}

/// Forks the single-threaded caller; the child starts in new namespaces of every kind.
pub(super) fn fork_into_namespaces() -> io::Result<Fork> {
    let mut pidfd: RawFd = -1;
    // SAFETY: an all-zero value is valid for this plain structure.
    let mut arguments: libc::clone_args = unsafe { mem::zeroed() };
    arguments.flags = u64::from((NAMESPACES | libc::CLONE_PIDFD).cast_unsigned());
    arguments.pidfd = ptr::from_mut(&mut pidfd).addr() as u64;
    arguments.exit_signal = u64::from(libc::SIGCHLD.cast_unsigned());
    // SAFETY: the caller has no other thread, so its copy is complete: no lock is held by a thread
    // that is missing in the child. Memory is not shared, and the pointer outlives the call.
    let pid = check(unsafe {
        libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of_val(&arguments))
    })?;
    if pid == 0 {
        return Ok(Fork::Child);
    }
    let pid = libc::pid_t::try_from(pid).expect("the kernel counts processes in a pid_t");
    // SAFETY: the kernel has just opened this descriptor for us.
    Ok(Fork::Parent(pid, unsafe { OwnedFd::from_raw_fd(pidfd) }))
}

/// Forks the single-threaded caller. Returns the child's pid, or zero in the child.
pub(super) fn fork() -> io::Result<libc::pid_t> {
    // SAFETY: the caller has no other thread, so its copy is complete.
    let pid = unsafe { libc::fork() };
    check(pid).and(Ok(pid))
}

/// Becomes `user`, with the group of the same number and no other groups.
///
/// Bare system calls change the calling thread only. They take none of the locks with which the C
/// library synchronises threads, so this may be called between fork and exec. Allocates nothing.
pub(super) fn become_user(user: u32) -> io::Result<()> {
    rustix::thread::set_thread_groups(&[])?;
    set_user(user)
}

/// Becomes `user`, with the group of the same number, and keeps other groups.
pub(super) fn set_user(user: u32) -> io::Result<()> {
    let uid = Uid::from_raw(user);
    let gid = Gid::from_raw(user);
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    Ok(rustix::thread::set_thread_res_uid(uid, uid, uid)?)
}

/// Calls `act`, which accesses files, with the rights of `user`. Other threads are not affected.
pub(super) fn with_fs_user<T>(user: Option<u32>, act: impl FnOnce() -> T) -> T {
    let Some(user) = user else { return act() };
    // SAFETY: no pointers, and both affect the calling thread only. They cannot fail for root, and
    // only root has bots with other users.
    let (old_user, old_group) = unsafe { (libc::setfsuid(user), libc::setfsgid(user)) };
    let result = act();
    // SAFETY: as above; these are the previous values.
    unsafe {
        libc::setfsuid(old_user.cast_unsigned());
        libc::setfsgid(old_group.cast_unsigned());
    }
    result
}

/// Sets the soft and the hard limit of the calling process. Allocates nothing.
pub(super) fn set_limit(resource: Resource, limit: u64) -> io::Result<()> {
    let limits = Rlimit { current: Some(limit), maximum: Some(limit) };
    Ok(rustix::process::setrlimit(resource, limits)?)
}

/// `fchmodat2`. The number is the same on all architectures.
const FCHMODAT2: libc::c_long = 452;

/// Changes the mode of a file that is open as a path (`O_PATH`), without a name. The call exists
/// since Linux 6.6.
pub(super) fn chmod_path_fd(path_fd: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    let path_fd = path_fd.as_raw_fd();
    let flags = libc::AT_EMPTY_PATH;
    // SAFETY: the name is a static empty string.
    check(unsafe { libc::syscall(FCHMODAT2, path_fd, c"".as_ptr(), mode, flags) }).map(drop)
}

/// The processor time of reaped children and of the children that they reaped.
pub(super) fn cpu_time_of_ended_children() -> Micros {
    // SAFETY: an all-zero value is valid for this plain structure, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    cpu_time_of(&usage)
}

/// The processor time of a usage, in user and kernel mode.
fn cpu_time_of(usage: &libc::rusage) -> Micros {
    let micros = |time: libc::timeval| Micros(time.tv_sec * 1_000_000 + time.tv_usec);
    micros(usage.ru_utime) + micros(usage.ru_stime)
}

/// A program to be started.
#[derive(Debug)]
pub(super) struct Command<'a> {
    pub(super) argv: &'a [CString],
    pub(super) environment: &'a [CString],
    /// Its standard streams.
    pub(super) streams: [BorrowedFd<'a>; 3],
    /// The user and group of the program, if not the caller's.
    pub(super) user: Option<libc::uid_t>,
}

/// The part of the parent's memory that the child uses before exec, and where it stores its error.
struct ExecArguments {
    argv: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    streams: [RawFd; 3],
    user: Option<libc::uid_t>,
    error: c_int,
}

impl Command<'_> {
    /// Starts the program. A name without a slash is searched in the caller's `PATH`.
    ///
    /// # Errors
    /// The error of `execve` or of a step before it.
    pub(super) fn start(&self) -> io::Result<libc::pid_t> {
        let pointers = |strings: &[CString]| {
            let all = strings.iter().map(|string| string.as_ptr());
            all.chain([ptr::null()]).collect::<Vec<_>>()
        };
        let mut arguments = ExecArguments {
            argv: pointers(self.argv),
            environment: pointers(self.environment),
            streams: self.streams.map(|stream| stream.as_raw_fd()),
            user: self.user,
            error: 0,
        };
        let mut stack = vec![0_u128; CHILD_STACK + self.argv.len()];
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the child shares our memory while we are suspended, until it executes the program
        // or exits. It has its own stack, allocates nothing and changes only `error`.
        let pid = unsafe {
            libc::clone(
                child_main,
                stack.as_mut_ptr_range().end.cast(),
                flags,
                ptr::from_mut(&mut arguments).cast(),
            )
        };
        let pid = check(pid).and(Ok(pid))?;
        if arguments.error == 0 {
            return Ok(pid);
        }
        // The child has exited. Reap it here, so that no other code does.
        wait_for(pid);
        Err(io::Error::from_raw_os_error(arguments.error))
    }
}

/// The child between clone and exec.
extern "C" fn child_main(arguments: *mut c_void) -> c_int {
    // SAFETY: the parent passed exactly this, and is suspended.
    let arguments = unsafe { &mut *arguments.cast::<ExecArguments>() };
    // SAFETY: system calls on arguments that the parent keeps alive.
    arguments.error = match unsafe { exec(arguments) } {
        Err(error) => error,
        Ok(never) => match never {},
    };
    // SAFETY: ends this process and touches nothing.
    unsafe { libc::_exit(127) }
}

/// Prepares the process and executes the program. Returns only after an error, with its `errno`.
///
/// # Safety
/// Only for a child that shares its parent's memory while the parent is suspended.
unsafe fn exec(arguments: &ExecArguments) -> Result<Infallible, c_int> {
    let code = |error: io::Error| error.raw_os_error().unwrap_or(libc::EINVAL);
    let step = |result: i64| check(result).map_err(code);
    let no_signals = 0_u64;
    // SAFETY: required by this function.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let set = &raw const no_signals;
        step(libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, set, 0, 8))?;
        step(libc::setsid().into())?;
        for (stream, number) in arguments.streams.into_iter().zip(0..) {
            step(libc::dup2(stream, number).into())?;
        }
        if let Some(user) = arguments.user {
            become_user(user).map_err(code)?;
        }
        let header = [0x2008_0522_u32, 0];
        let no_capabilities = [0_u32; 6];
        step(libc::syscall(libc::SYS_capset, header.as_ptr(), no_capabilities.as_ptr()))?;
        step(libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0))?;
        let argv = arguments.argv.as_ptr();
        libc::execvpe(*argv, argv, arguments.environment.as_ptr());
    }
    Err(code(io::Error::last_os_error()))
}

/// Sets signal dispositions for a new program. Otherwise it would inherit the signals that the
/// caller ignores or blocks.
pub(super) fn reset_signals(sigchld_action: libc::sighandler_t) {
    // SAFETY: sets dispositions without handlers.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        libc::signal(libc::SIGCHLD, sigchld_action);
    }
}

/// Blocks `SIGCHLD`, and returns a descriptor that becomes readable when a child has ended.
pub(super) fn child_exit_fd() -> io::Result<OwnedFd> {
    // SAFETY: both calls use a set in this frame; the descriptor is new.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()))?;
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        let descriptor = libc::signalfd(-1, &raw const set, flags);
        check(descriptor)?;
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// A child that ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndedChild {
    pub(super) pid: libc::pid_t,
    pub(super) exit: Exit,
    /// The processor time of the child and of the children that it waited for.
    pub(super) cpu_time: Micros,
}

/// Reaps a child that has ended, if there is one.
pub(super) fn reap_any() -> Option<EndedChild> {
    wait4(-1, libc::WNOHANG)
}

/// Waits for the child `pid` to end.
pub(super) fn wait_for(pid: libc::pid_t) -> Option<EndedChild> {
    wait4(pid, 0)
}

/// Whether the child `pid` has ended. Does not reap it.
pub(super) fn has_ended(pid: libc::pid_t) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let child = Pid::from_raw(pid).map(WaitId::Pid);
    child.is_none_or(|child| !matches!(rustix::process::waitid(child, options), Ok(None)))
}

/// Reaps the child `pid` if it has ended.
pub(super) fn reap(pid: libc::pid_t) -> Option<EndedChild> {
    wait4(pid, libc::WNOHANG)
}

fn wait4(which: libc::pid_t, options: c_int) -> Option<EndedChild> {
    let mut status = 0;
    // SAFETY: an all-zero value is valid for this plain structure.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    let pid = loop {
        // SAFETY: both pointers are to live values of this frame.
        let result = unsafe { libc::wait4(which, &raw mut status, options, &raw mut usage) };
        if result >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break result;
        }
    };
    if pid <= 0 {
        return None;
    }
    let exit = if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    };
    Some(EndedChild { pid, exit, cpu_time: cpu_time_of(&usage) })
}

/// Sends a signal to every process that the caller may signal, except itself. If the caller is the
/// init of a PID namespace, these are all processes of that namespace.
pub(super) fn signal_all(signal: c_int) {
    // SAFETY: no pointers.
    unsafe { libc::kill(-1, signal) };
}

/// Sends a signal to the process group of `pid`, an unreaped child that leads it.
pub(super) fn signal_group(pid: libc::pid_t, signal: c_int) {
    // SAFETY: no pointers. The child was not reaped, so no other process has its pid.
    unsafe { libc::kill(-pid, signal) };
}

/// Makes the mount at `path`, and those below it if `all`, read-only, without devices and without
/// set-user-ID programs.
pub(super) fn make_read_only(path: &CStr, all: bool) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let flags = if all { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: both pointers outlive the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of_val(&attributes),
        )
    })
    .map(drop)
}

/// Installs a seccomp filter for the caller and all programs that it starts.
pub(super) fn install_filter(program: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).expect("a filter is short"),
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies the program before the call returns, and does not change it.
    check(unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    })
    .map(drop)
}

/// Closes every descriptor except the standard ones and `fd`, which is not one of those.
pub(super) fn close_all_but(fd: RawFd) -> io::Result<()> {
    let number = u32::try_from(fd).expect("an open descriptor is not negative");
    // SAFETY: the caller is a fresh fork and uses none of the other descriptors.
    unsafe {
        if number > 3 {
            check(libc::syscall(libc::SYS_close_range, 3, number - 1, 0))?;
        }
        check(libc::syscall(libc::SYS_close_range, number + 1, u32::MAX, 0)).map(drop)
    }
}

/// Moves the single-threaded caller into new user and mount namespaces.
pub(super) fn unshare_user_and_mount() -> io::Result<()> {
    // SAFETY: no pointers; descriptors stay shared.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) }).map(drop)
}

/// Switches real-time priority of the calling thread on or off. Processes that it starts do not
/// inherit the priority.
pub(super) fn set_realtime(enabled: bool) -> io::Result<()> {
    let (policy, priority) = if enabled { (libc::SCHED_RR, 1) } else { (libc::SCHED_OTHER, 0) };
    // SAFETY: an all-zero value is valid for this plain structure, and outlives the call.
    unsafe {
        let mut parameters: libc::sched_param = mem::zeroed();
        parameters.sched_priority = priority;
        let policy = policy | libc::SCHED_RESET_ON_FORK;
        check(libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const parameters))
            .map(drop)
    }
}

/// Moves a thread to the lowest priority, on any processor. Returns whether that worked or the
/// thread is gone.
pub(super) fn deprioritize(thread: libc::pid_t) -> bool {
    // SAFETY: an all-zero value is valid for this plain structure, and outlives the call.
    let result = check(unsafe {
        let parameters: libc::sched_param = mem::zeroed();
        let policy = libc::SCHED_IDLE;
        libc::syscall(libc::SYS_sched_setscheduler, thread, policy, &raw const parameters)
    });
    let _unless_gone = rustix::thread::sched_setaffinity(Pid::from_raw(thread), &cpu_set(&[]));
    result.map_or_else(|error| error.raw_os_error() == Some(libc::ESRCH), |_| true)
}

/// Creates a new time namespace, which the caller's children enter.
pub(super) fn unshare_time() -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::unshare(libc::CLONE_NEWTIME) }).map(drop)
}

/// Brings up the loopback of the caller's network namespace.
pub(super) fn bring_up_loopback() -> io::Result<()> {
    // SAFETY: the socket is opened here and closed on every return; the request is a live value
    // of this frame, all-zero except for the name and the flags.
    unsafe {
        let flags = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        let socket = libc::socket(libc::AF_INET, flags, 0);
        check(socket)?;
        let socket = OwnedFd::from_raw_fd(socket);
        let mut request: libc::ifreq = mem::zeroed();
        for (target, byte) in request.ifr_name.iter_mut().zip(*b"lo") {
            *target = byte.cast_signed();
        }
        let flags = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING);
        request.ifr_ifru.ifru_flags = flags.expect("two of the low bits");
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)).map(drop)
    }
}

/// Ends the process at once, without destructors or exit handlers of the forked copy.
pub(super) fn exit(code: c_int) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}

/// The processor time of the live process `pid` and all its threads.
pub(super) fn cpu_time(pid: libc::pid_t) -> Micros {
    let mut clock = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both calls write to live values of this frame, and report an error if the process is
    // gone.
    let is_live = unsafe {
        libc::clock_getcpuclockid(pid, &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    if is_live { Micros(time.tv_sec * 1_000_000 + time.tv_nsec / 1000) } else { Micros::ZERO }
}

/// Makes the C library return freed memory to the system. By default, once a large block was freed,
/// it keeps up to 64 MB of freed memory. A worker would never return the memory that one bot with
/// much output needed.
pub(super) fn limit_retained_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: this sets a parameter of the allocator before other threads run. The value is the
    // default; setting it only disables its dynamic growth.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
}
