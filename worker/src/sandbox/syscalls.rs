//! System calls that neither the standard library nor `rustix` offers, each in a safe form.

#![expect(
    unsafe_code,
    reason = "cloning into namespaces, starting a program with credentials of its own, filters, \
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

/// The stack of a starting program, in units of 16 bytes, besides room for its arguments: the
/// search along `PATH` builds each name on it.
const STACK: usize = 64 * 1024 / 16;

/// Which side of a fork one is on.
#[derive(Debug)]
pub(super) enum Fork {
    /// The new process.
    Child,
    /// The old one: the child's number and a descriptor of it.
    Parent(libc::pid_t, OwnedFd),
}

/// Turns the result of a system call into ours.
pub(super) fn check(result: impl Into<i64>) -> io::Result<i64> {
    let result = result.into();
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// These processors as a set; all there can be if there are none.
pub(super) fn cpu_set(cores: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    for core in (0..CpuSet::MAX_CPU).filter(|core| cores.is_empty() || cores.contains(core)) {
        set.set(core);
    }
    set
}

/// Forks the single-threaded caller; the child begins in new namespaces of every kind.
pub(super) fn fork_into_namespaces() -> io::Result<Fork> {
    let mut pidfd: RawFd = -1;
    // SAFETY: an all-zero value of this plain structure asks for nothing.
    let mut arguments: libc::clone_args = unsafe { mem::zeroed() };
    arguments.flags = u64::from((NAMESPACES | libc::CLONE_PIDFD).cast_unsigned());
    arguments.pidfd = ptr::from_mut(&mut pidfd).addr() as u64;
    arguments.exit_signal = u64::from(libc::SIGCHLD.cast_unsigned());
    // SAFETY: the caller has no other thread, so its copy is whole: no lock is held by a thread
    // that is missing in the child. Memory is not shared, and the pointer outlives the call.
    let pid = check(unsafe {
        libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of_val(&arguments))
    })?;
    if pid == 0 {
        return Ok(Fork::Child);
    }
    let pid = libc::pid_t::try_from(pid).expect("the kernel counts processes in a pid_t");
    // SAFETY: the kernel opened this descriptor for us just now.
    Ok(Fork::Parent(pid, unsafe { OwnedFd::from_raw_fd(pidfd) }))
}

/// Forks the single-threaded caller: the child's number, or zero in the child.
pub(super) fn fork() -> io::Result<libc::pid_t> {
    // SAFETY: the caller has no other thread, so its copy is whole.
    let pid = unsafe { libc::fork() };
    check(pid).and(Ok(pid))
}

/// Becomes `user`, with the group of the same number and no right at all.
///
/// Bare system calls change the calling thread alone, and take none of the locks with which the C
/// library would tell other threads: this may be called between fork and exec. Allocates nothing.
pub(super) fn become_user(user: u32) -> io::Result<()> {
    rustix::thread::set_thread_groups(&[])?;
    set_user(user)
}

/// Becomes `user`, with the group of the same number, and stays in other groups.
pub(super) fn set_user(user: u32) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    Ok(rustix::thread::set_thread_res_uid(uid, uid, uid)?)
}

/// Does something with files as `user`, if that is another than this process's; no other thread
/// is meant.
pub(super) fn with_fs_user<T>(user: Option<u32>, act: impl FnOnce() -> T) -> T {
    let Some(user) = user else { return act() };
    // SAFETY: no pointers, and both hold for the calling thread alone. They cannot fail for the
    // root user, who alone has bots of other users.
    let (old_user, old_group) = unsafe { (libc::setfsuid(user), libc::setfsgid(user)) };
    let done = act();
    // SAFETY: as above; the numbers are those that were found.
    unsafe {
        libc::setfsuid(old_user.cast_unsigned());
        libc::setfsgid(old_group.cast_unsigned());
    }
    done
}

/// Sets a limit for good, of the calling process. Allocates nothing.
pub(super) fn set_limit(resource: Resource, most: u64) -> io::Result<()> {
    let both = Rlimit { current: Some(most), maximum: Some(most) };
    Ok(rustix::process::setrlimit(resource, both)?)
}

/// `fchmodat2`, which has the same number everywhere.
const FCHMODAT2: libc::c_long = 452;

/// Changes the mode of a file that is open as a mere place (`O_PATH`), through no name. Before Linux
/// 6.6 there is no such call.
pub(super) fn chmod_path_fd(place: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    let (place, flags) = (place.as_raw_fd(), libc::AT_EMPTY_PATH);
    // SAFETY: the name is an empty string that lives as long as the program.
    check(unsafe { libc::syscall(FCHMODAT2, place, c"".as_ptr(), mode, flags) }).map(drop)
}

/// The processor time of children that ended and were waited for, and of theirs.
pub(super) fn cpu_time_of_ended_children() -> Micros {
    // SAFETY: an all-zero rusage is a valid value of that plain structure, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    time_of(&usage)
}

/// The processor time in a usage, in programs and in the kernel.
fn time_of(usage: &libc::rusage) -> Micros {
    let micros = |time: libc::timeval| Micros(time.tv_sec * 1_000_000 + time.tv_usec);
    micros(usage.ru_utime) + micros(usage.ru_stime)
}

/// A program to be started.
#[derive(Debug)]
pub(super) struct Launch<'a> {
    pub(super) argv: &'a [CString],
    pub(super) environment: &'a [CString],
    /// Its standard streams.
    pub(super) streams: [BorrowedFd<'a>; 3],
    /// The user and group it is to be, if another than the caller.
    pub(super) user: Option<libc::uid_t>,
}

/// What the starting child sees of its parent's memory, and where it leaves its error.
struct Handover {
    argv: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    streams: [RawFd; 3],
    user: Option<libc::uid_t>,
    error: c_int,
}

impl Launch<'_> {
    /// Starts it: searches `PATH` of the caller for a name without a slash.
    ///
    /// # Errors
    /// Whatever `execve` or a step before it said.
    pub(super) fn start(&self) -> io::Result<libc::pid_t> {
        let pointers = |strings: &[CString]| {
            let all = strings.iter().map(|string| string.as_ptr());
            all.chain([ptr::null()]).collect::<Vec<_>>()
        };
        let mut handover = Handover {
            argv: pointers(self.argv),
            environment: pointers(self.environment),
            streams: self.streams.map(|stream| stream.as_raw_fd()),
            user: self.user,
            error: 0,
        };
        let mut stack = vec![0_u128; STACK + self.argv.len()];
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the child shares our memory while we stand still, until it runs the program or
        // exits. It uses a stack of its own, allocates nothing and changes only `error`.
        let pid = unsafe {
            libc::clone(
                run,
                stack.as_mut_ptr_range().end.cast(),
                flags,
                ptr::from_mut(&mut handover).cast(),
            )
        };
        let pid = check(pid).and(Ok(pid))?;
        if handover.error == 0 {
            return Ok(pid);
        }
        // It exited; nobody else is to find it.
        wait_for(pid);
        Err(io::Error::from_raw_os_error(handover.error))
    }
}

/// The child between clone and exec.
extern "C" fn run(handover: *mut c_void) -> c_int {
    // SAFETY: the parent passed exactly this, and stands still.
    let handover = unsafe { &mut *handover.cast::<Handover>() };
    // SAFETY: system calls on arguments that the parent keeps alive.
    handover.error = match unsafe { become_program(handover) } {
        Err(error) => error,
        Ok(never) => match never {},
    };
    // SAFETY: ends this process and touches nothing.
    unsafe { libc::_exit(127) }
}

/// Takes every step to the program; returns only the number of an error.
///
/// # Safety
/// Only for a child that shares its parent's memory while the parent stands still.
unsafe fn become_program(handover: &Handover) -> Result<Infallible, c_int> {
    let code = |error: io::Error| error.raw_os_error().unwrap_or(libc::EINVAL);
    let step = |result: i64| check(result).map_err(code);
    let none = 0_u64;
    // SAFETY: as of this function.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let set = &raw const none;
        step(libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, set, 0, 8))?;
        step(libc::setsid().into())?;
        for (stream, number) in handover.streams.into_iter().zip(0..) {
            step(libc::dup2(stream, number).into())?;
        }
        if let Some(user) = handover.user {
            become_user(user).map_err(code)?;
        }
        let header = [0x2008_0522_u32, 0];
        let nothing = [0_u32; 6];
        step(libc::syscall(libc::SYS_capset, header.as_ptr(), nothing.as_ptr()))?;
        step(libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0))?;
        let argv = handover.argv.as_ptr();
        libc::execvpe(*argv, argv, handover.environment.as_ptr());
    }
    Err(code(io::Error::last_os_error()))
}

/// Gives signals the meaning they have for a new program; what the caller ignores or blocks
/// would otherwise stay so in everything it starts.
pub(super) fn reset_signals(child_ended: libc::sighandler_t) {
    // SAFETY: sets dispositions, with no handler of ours.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        libc::signal(libc::SIGCHLD, child_ended);
    }
}

/// A descriptor that is readable when a child has ended; the signal itself is blocked.
pub(super) fn child_exit_fd() -> io::Result<OwnedFd> {
    // SAFETY: both calls work on a set in this frame; the descriptor is new.
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
pub(super) struct Ended {
    pub(super) pid: libc::pid_t,
    pub(super) exit: Exit,
    /// Processor time of it and of the children that it waited for.
    pub(super) used: Micros,
}

/// Reaps any child that ended, if one did.
pub(super) fn reap_any() -> Option<Ended> {
    wait4(-1, libc::WNOHANG)
}

/// Waits for the child `pid` to end.
pub(super) fn wait_for(pid: libc::pid_t) -> Option<Ended> {
    wait4(pid, 0)
}

/// Whether the child `pid` has ended, which is not reaped by that.
pub(super) fn has_ended(pid: libc::pid_t) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let child = Pid::from_raw(pid).map(WaitId::Pid);
    child.is_none_or(|child| !matches!(rustix::process::waitid(child, look), Ok(None)))
}

/// Reaps the child `pid` if it has ended.
pub(super) fn reap(pid: libc::pid_t) -> Option<Ended> {
    wait4(pid, libc::WNOHANG)
}

fn wait4(which: libc::pid_t, options: c_int) -> Option<Ended> {
    let mut status = 0;
    // SAFETY: an all-zero rusage is a valid value of that plain structure.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    let pid = loop {
        // SAFETY: both pointers are to live values of this frame.
        let found = unsafe { libc::wait4(which, &raw mut status, options, &raw mut usage) };
        if found >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break found;
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
    Some(Ended { pid, exit, used: time_of(&usage) })
}

/// Sends a signal to every process that the caller may reach, itself excepted: from the first
/// process of a namespace, all that live in it.
pub(super) fn signal_all(signal: c_int) {
    // SAFETY: a system call without pointers.
    unsafe { libc::kill(-1, signal) };
}

/// Sends a signal to the process group that `pid` leads, a child that was not reaped yet.
pub(super) fn signal_group(pid: libc::pid_t, signal: c_int) {
    // SAFETY: a system call without pointers; the child was not reaped, so its number cannot have
    // been given to another process.
    unsafe { libc::kill(-pid, signal) };
}

/// Makes the mount at `path`, and those below it if `all`, read-only, without devices and
/// without programs that change the user.
pub(super) fn make_read_only(path: &CStr, all: bool) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let flags = if all { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: both pointers live through the call.
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

/// Puts `program` in the way of every system call of the caller and of all that it starts.
pub(super) fn install_filter(program: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).expect("a filter is short"),
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies the program before the call returns, and changes nothing.
    check(unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    })
    .map(drop)
}

/// Closes every descriptor but the standard ones and `kept`, which is none of those.
pub(super) fn close_all_but(kept: RawFd) -> io::Result<()> {
    let kept = u32::try_from(kept).expect("an open descriptor is not negative");
    // SAFETY: the caller is a fresh copy of a process and uses none of that one's descriptors.
    unsafe {
        if kept > 3 {
            check(libc::syscall(libc::SYS_close_range, 3, kept - 1, 0))?;
        }
        check(libc::syscall(libc::SYS_close_range, kept + 1, u32::MAX, 0)).map(drop)
    }
}

/// Leaves the user and mount namespaces of the caller, who has no other thread.
pub(super) fn unshare_user_and_mount() -> io::Result<()> {
    // SAFETY: no pointers; descriptors stay shared.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) }).map(drop)
}

/// Has the calling thread run as soon as it can, before every thread that has no such priority, or
/// lets it take its turn again. What it starts takes its turn in any case.
pub(super) fn set_realtime(yes: bool) -> io::Result<()> {
    let (policy, priority) = if yes { (libc::SCHED_RR, 1) } else { (libc::SCHED_OTHER, 0) };
    // SAFETY: an all-zero value of this plain structure is valid, and outlives the call.
    unsafe {
        let mut how: libc::sched_param = mem::zeroed();
        how.sched_priority = priority;
        let policy = policy | libc::SCHED_RESET_ON_FORK;
        check(libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const how)).map(drop)
    }
}

/// Lets a thread run on any processor, after every other that wants to: whether it does, or is gone.
pub(super) fn deprioritize(thread: libc::pid_t) -> bool {
    // SAFETY: an all-zero value of this plain structure is valid, and outlives the call.
    let put = check(unsafe {
        let how: libc::sched_param = mem::zeroed();
        let policy = libc::SCHED_IDLE;
        libc::syscall(libc::SYS_sched_setscheduler, thread, policy, &raw const how)
    });
    let _unless_gone = rustix::thread::sched_setaffinity(Pid::from_raw(thread), &cpu_set(&[]));
    put.map_or_else(|error| error.raw_os_error() == Some(libc::ESRCH), |_| true)
}

/// Leaves the time namespace of the caller, to be entered by its children.
pub(super) fn unshare_time() -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::unshare(libc::CLONE_NEWTIME) }).map(drop)
}

/// Brings up the loopback of the caller's network namespace.
pub(super) fn bring_up_loopback() -> io::Result<()> {
    // SAFETY: the socket is opened here and closed on every way out; the request is a live value
    // of this frame, all-zero but for the name and the flags.
    unsafe {
        let flags = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        let socket = libc::socket(libc::AF_INET, flags, 0);
        check(socket)?;
        let socket = OwnedFd::from_raw_fd(socket);
        let mut request: libc::ifreq = mem::zeroed();
        for (place, byte) in request.ifr_name.iter_mut().zip(*b"lo") {
            *place = byte.cast_signed();
        }
        let flags = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING);
        request.ifr_ifru.ifru_flags = flags.expect("two of the low bits");
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)).map(drop)
    }
}

/// Ends the process at once, running nothing that a copy of another's memory holds.
pub(super) fn exit(code: c_int) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}

/// The processor time of the live process `pid` and all its threads.
pub(super) fn cpu_time(pid: libc::pid_t) -> Micros {
    let mut clock = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both calls write to live values of this frame; a process that is gone is an error
    // that they report.
    let known = unsafe {
        libc::clock_getcpuclockid(pid, &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    if known { Micros(time.tv_sec * 1_000_000 + time.tv_nsec / 1000) } else { Micros::ZERO }
}

/// Lets what is freed go back to the machine. By itself the C library keeps more and more of it, up
/// to 64 MB, once something large was freed: what one loud bot cost, its worker would never give back.
pub(super) fn limit_retained_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it sets a number of the allocator's, and no other thread runs yet. The number is the
    // one it begins with; what is set stays as it is.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
}
