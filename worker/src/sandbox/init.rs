//! Init, the first process of a jail: it builds the jail from within, starts the bot's programs,
//! and reaps ended processes. It only serves requests of the worker. When the worker is gone, init
//! exits, and with it everything in the jail.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::time::Instant;

use arbiter_games::Micros;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal, WaitId, WaitIdOptions};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::ipc::{self, InitRequest, InitResponse, JailSetup};
use super::jail_config::{Bytes, GRACE, Limits, MAX_ADDRESS_SPACE};
use super::proc_monitor::{self, ProcMonitor};
use super::process::encode_notice;
use super::seccomp::MissingFeatures;
use super::syscalls;
use super::{loopback_listener, root_fs, seccomp, self_test};

/// The `PATH` of bots.
pub(super) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The user of a bot, in the jail's user namespace.
const BOT_UID: u32 = 1000;

/// The user of init, in the jail's user namespace, if bots have their own.
const BUILDER_UID: u32 = 0;

/// The hard limit of a program's stack, in bytes.
const MAX_STACK: u64 = 256 << 20;

/// The soft limit of a program's stack, in bytes.
const DEFAULT_STACK: u64 = 8 << 20;

/// Limits on resources that the kernel counts per user: locked memory and message queues, in bytes,
/// and the number of pending signals.
const MAX_LOCKED_MEMORY: u64 = 64 << 10;
const MAX_MESSAGE_QUEUES: u64 = 64 << 10;
const MAX_PENDING_SIGNALS: u64 = 256;

/// The exit code of init after an error.
const EXIT_FAILED: i32 = 1;

/// A program that was started and is not yet reaped.
struct RunningProgram {
    pid: libc::pid_t,
    /// The pipe to which init writes the program's exit.
    notice: File,
    /// Whether this is a bot's program. The self-test runs without the memory guard.
    is_bot: bool,
}

/// Enforces the memory limit if no control group does.
struct MemoryGuard {
    limit: Bytes,
    /// The time of the last check.
    last_check: Option<Instant>,
    kills: u64,
    peak: Bytes,
}

impl MemoryGuard {
    fn new(limit: Bytes) -> Self {
        Self { limit, last_check: None, kills: 0, peak: Bytes(0) }
    }

    /// Whether the bot uses too much memory and must be killed; false if no check is due.
    fn exceeds_limit(&mut self, monitor: &ProcMonitor) -> bool {
        if self.last_check.is_some_and(|last_check| last_check.elapsed() < proc_monitor::INTERVAL) {
            return false;
        }
        self.last_check = Some(Instant::now());
        let (exceeds, memory) = monitor.memory(self.limit);
        self.peak = self.peak.max(memory);
        self.kills += u64::from(exceeds);
        exceeds
    }
}

/// The state of init.
struct Init {
    socket: OwnedFd,
    children: OwnedFd,
    null: File,
    environment: Vec<CString>,
    /// The user of programs, if different from the user of init.
    user: Option<u32>,
    running: Vec<RunningProgram>,
    /// Measures the jail's processes, if control groups do not and `/proc` can be mounted.
    monitor: Option<ProcMonitor>,
    guard: Option<MemoryGuard>,
    /// Whether all processes were stopped by signals.
    stopped: bool,
    /// The result of the preparation, until the jail is built.
    prepared: Option<io::Result<Backlog>>,
}

/// The setting that limits how many connections wait for a server in the jail's network. It is
/// `None` if the kernel has no such setting. Only jails with a listener need it.
type Backlog = io::Result<Option<File>>;

/// Runs init of a jail, which receives requests of the worker from `socket`.
pub(super) fn run(socket: OwnedFd) -> ! {
    let result = Init::begin(socket).and_then(|mut init| init.serve());
    syscalls::exit(if result.is_ok() { 0 } else { EXIT_FAILED })
}

impl Init {
    fn begin(socket: OwnedFd) -> io::Result<Self> {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        syscalls::reset_signals(libc::SIG_DFL);
        let null = File::options().read(true).write(true).open("/dev/null")?;
        let children = syscalls::child_exit_fd()?;
        Ok(Self {
            socket,
            children,
            null,
            environment: Vec::new(),
            user: None,
            running: Vec::new(),
            monitor: None,
            guard: None,
            stopped: false,
            prepared: None,
        })
    }

    /// Serves requests until the worker is gone.
    fn serve(&mut self) -> io::Result<()> {
        loop {
            let mut fds = [
                PollFd::new(&self.socket, PollFlags::IN),
                PollFd::new(&self.children, PollFlags::IN),
            ];
            let check_interval = Timespec::try_from(proc_monitor::INTERVAL).expect("a short time");
            match rustix::event::poll(&mut fds, self.is_guarding().then_some(&check_interval)) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            let [has_request, has_exit] = fds.map(|fd| !fd.revents().is_empty());
            if has_exit {
                self.reap();
            }
            if has_request {
                let Some((request, descriptors)) = ipc::receive(&self.socket)? else {
                    return Ok(());
                };
                self.handle(request, descriptors)?;
            }
            self.enforce_memory_limit();
        }
    }

    fn handle(&mut self, request: InitRequest, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        let response = match request {
            InitRequest::Prepare { separate_users } => {
                self.prepared = Some(prepare(separate_users));
                return Ok(());
            }
            InitRequest::Build(setup) => match self.prepared.take() {
                Some(result) => return self.build_and_respond(&setup, result),
                None => InitResponse::Failed("the jail is built already".to_owned()),
            },
            InitRequest::Start { argv } => self.start(&argv, descriptors),
            InitRequest::SelfTest(plan) => self.self_test(&plan, descriptors),
            InitRequest::CpuTime => InitResponse::CpuTime(self.cpu_time().0),
            InitRequest::MemoryUse => self.memory_use(),
            InitRequest::KillAll => InitResponse::Is(self.kill_all()),
            InitRequest::Stop => {
                self.stopped = true;
                syscalls::signal_all(libc::SIGSTOP);
                InitResponse::Done
            }
            InitRequest::CheckStopped => InitResponse::Is(self.is_stopped()),
            InitRequest::Continue => {
                self.stopped = false;
                syscalls::signal_all(libc::SIGCONT);
                InitResponse::Done
            }
        };
        ipc::send(&self.socket, &response, &[])
    }

    /// Builds the jail. Afterwards init itself is isolated, too.
    fn build_and_respond(
        &mut self,
        setup: &JailSetup,
        prepared: io::Result<Backlog>,
    ) -> io::Result<()> {
        let (response, fds) = match prepared.and_then(|backlog| self.build(setup, backlog)) {
            Ok(fds) => (InitResponse::Done, fds),
            Err(error) => (InitResponse::Failed(error.to_string()), Vec::new()),
        };
        let descriptors: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        ipc::send(&self.socket, &response, &descriptors)?;
        // The kernel compares the number of descriptors in flight in sockets of this user, in every
        // jail, with the sender's limit of open files. With a bot's limit, another bot could make
        // the send above fail. So lower the limit only after it.
        lower_limit(Resource::Nofile, setup.limits.descriptors)
    }

    fn build(&mut self, setup: &JailSetup, backlog: Backlog) -> io::Result<Vec<OwnedFd>> {
        let JailSetup {
            program,
            limits,
            cores,
            separate_users,
            missing,
            saves_state,
            needs_listener,
        } = setup;
        let mut listener = None;
        let mut missing = *missing;
        if *needs_listener {
            let backlog = backlog?;
            missing.backlog = backlog.is_none();
            listener = Some(OwnedFd::from(loopback_listener::open(backlog)?));
        }
        let upper_dir = root_fs::mount_jail(program.as_deref(), limits, BOT_UID, *saves_state)?;
        rustix::system::sethostname(b"bot")?;
        std::env::set_current_dir(root_fs::WORK)?;
        if !cores.is_empty() {
            rustix::thread::sched_setaffinity(None, &syscalls::cpu_set(cores))?;
        }
        self.guard = missing.memory.then(|| MemoryGuard::new(limits.memory));
        self.monitor =
            (missing.memory || missing.freezer).then(ProcMonitor::open).and_then(Result::ok);
        set_limits(limits, *separate_users, missing)?;
        drop_privileges(*separate_users, missing)?;
        seccomp::install(missing)?;
        self.environment = environment(limits);
        self.user = separate_users.then_some(BOT_UID);
        Ok(upper_dir.into_iter().chain(listener).collect())
    }

    /// Starts a program with these descriptors: standard input (if it has one), output and error,
    /// and the pipe for its exit.
    fn start(&mut self, argv: &[String], mut descriptors: Vec<OwnedFd>) -> InitResponse {
        let notice = descriptors.pop();
        let (Some(notice), [stdin @ .., stdout, stderr]) = (notice, &descriptors[..]) else {
            return InitResponse::Failed("the start request has no descriptors".to_owned());
        };
        let c_strings: Result<Vec<_>, _> =
            argv.iter().map(|argument| CString::new(argument.as_bytes())).collect();
        let Ok(argv) = c_strings else { return InitResponse::NotStarted(libc::EINVAL) };
        let stdin = stdin.first().map_or(self.null.as_fd(), AsFd::as_fd);
        let streams = [stdin, stdout.as_fd(), stderr.as_fd()];
        let environment = &self.environment;
        match (syscalls::Command { argv: &argv, environment, streams, user: self.user }).start() {
            Ok(pid) => {
                self.running.push(RunningProgram { pid, notice: notice.into(), is_bot: true });
                InitResponse::Started(pid)
            }
            Err(error) => InitResponse::NotStarted(error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }

    /// Runs the self-test in a child with the privileges of a bot.
    fn self_test(
        &mut self,
        plan: &self_test::AttackPlan,
        mut descriptors: Vec<OwnedFd>,
    ) -> InitResponse {
        let (Some(notice), Some(output)) = (descriptors.pop(), descriptors.into_iter().next())
        else {
            return InitResponse::Failed("the self-test request has no descriptors".to_owned());
        };
        match syscalls::fork() {
            Ok(0) => {
                if let Some(user) = self.user
                    && syscalls::become_user(user).is_err()
                {
                    syscalls::exit(EXIT_FAILED);
                }
                self_test::run(plan, File::from(output))
            }
            Ok(pid) => {
                self.running.push(RunningProgram { pid, notice: notice.into(), is_bot: false });
                InitResponse::Started(pid)
            }
            Err(error) => InitResponse::Failed(error.to_string()),
        }
    }

    /// The processor time of ended and running processes. Without a monitor it misses
    /// grandchildren.
    fn cpu_time(&self) -> Micros {
        let ended = syscalls::cpu_time_of_ended_children();
        match &self.monitor {
            Some(monitor) => ended + monitor.cpu_time(),
            None => self
                .running
                .iter()
                .fold(ended, |sum, running| sum + syscalls::cpu_time(running.pid)),
        }
    }

    /// The memory that the bot used, or zeros without a memory guard.
    fn memory_use(&self) -> InitResponse {
        let (kills, peak) = self.guard.as_ref().map_or((0, 0), |guard| (guard.kills, guard.peak.0));
        InitResponse::MemoryUse { kills, peak }
    }

    /// Whether init must limit the memory of a running bot.
    fn is_guarding(&self) -> bool {
        let can_measure = self.guard.is_some() && self.monitor.is_some();
        can_measure && !self.stopped && self.running.iter().any(|running| running.is_bot)
    }

    /// Kills a bot that exceeds its memory limit.
    fn enforce_memory_limit(&mut self) {
        if self.is_guarding()
            && let (Some(guard), Some(monitor)) = (&mut self.guard, &self.monitor)
            && guard.exceeds_limit(monitor)
        {
            self.kill_all();
        }
    }

    /// Whether all processes are stopped; true if they cannot be observed.
    fn is_stopped(&self) -> bool {
        let all_stopped = self.monitor.as_ref().is_none_or(ProcMonitor::all_stopped);
        if !all_stopped {
            syscalls::signal_all(libc::SIGSTOP);
        }
        all_stopped
    }

    /// Kills all processes except init, and waits at most [`GRACE`] until they are gone. Returns
    /// whether they are.
    fn kill_all(&mut self) -> bool {
        syscalls::signal_all(libc::SIGKILL);
        let start_time = Instant::now();
        loop {
            self.reap();
            let any = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            if rustix::process::waitid(WaitId::All, any).is_err() {
                return true;
            }
            let remaining = GRACE.saturating_sub(start_time.elapsed());
            if remaining.is_zero() {
                return false;
            }
            let mut fds = [PollFd::new(&self.children, PollFlags::IN)];
            let timeout = Timespec::try_from(remaining).expect("a short time");
            // The next round checks the result.
            let _ready = rustix::event::poll(&mut fds, Some(&timeout));
        }
    }

    /// Reaps ended processes, and reports the exits of programs that the worker started.
    fn reap(&mut self) {
        // The signals only show that some process ended. `reap_any` finds out which.
        let mut signals = [0; 1024];
        let _read = rustix::io::read(&self.children, &mut signals);
        while let Some(ended) = syscalls::reap_any() {
            let index = self.running.iter().position(|running| running.pid == ended.pid);
            if let Some(index) = index {
                let mut running = self.running.swap_remove(index);
                // The worker may have closed the pipe.
                drop(running.notice.write_all(&encode_notice(ended.exit, ended.cpu_time)));
            }
        }
    }
}

/// Sets the limits of each process and user, except for open files.
fn set_limits(limits: &Limits, separate_users: bool, missing: MissingFeatures) -> io::Result<()> {
    let mut resources = vec![
        (Resource::Core, 0),
        (Resource::Fsize, limits.disk.0),
        (Resource::As, MAX_ADDRESS_SPACE),
        (Resource::Memlock, MAX_LOCKED_MEMORY),
        (Resource::Msgqueue, MAX_MESSAGE_QUEUES),
        (Resource::Sigpending, MAX_PENDING_SIGNALS),
        (Resource::Nice, 0),
        (Resource::Rtprio, 0),
        // Init counts towards the limit if it has the same user.
        (Resource::Nproc, u64::from(limits.processes) + u64::from(!separate_users)),
    ];
    if missing.memory {
        resources.push((Resource::Data, limits.memory.0));
    }
    for (resource, limit) in resources {
        lower_limit(resource, limit)?;
    }
    let stack = Rlimit { current: Some(DEFAULT_STACK), maximum: Some(MAX_STACK) };
    rustix::process::setrlimit(Resource::Stack, stack)?;
    Ok(())
}

/// Does the steps that are the same for every jail, in advance.
fn prepare(separate_users: bool) -> io::Result<Backlog> {
    syscalls::set_user(if separate_users { BUILDER_UID } else { BOT_UID })?;
    let backlog = loopback_listener::limit_network_buffers();
    root_fs::mount_proc()?;
    Ok(backlog)
}

/// Lowers a limit permanently, unless it is lower already.
fn lower_limit(resource: Resource, limit: u64) -> io::Result<()> {
    let current = rustix::process::getrlimit(resource).maximum;
    syscalls::set_limit(resource, current.map_or(limit, |current| current.min(limit)))
}

/// Drops every capability except those to change the user of programs and to kill them, and to read
/// their memory use if init must limit it.
fn drop_privileges(separate_users: bool, missing: MissingFeatures) -> io::Result<()> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    for number in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if rustix::thread::remove_capability_from_bounding_set(capability).is_err() {
            break;
        }
    }
    let mut capabilities = CapabilitySet::empty();
    if separate_users {
        capabilities |= CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::KILL;
        capabilities.set(CapabilitySet::SYS_PTRACE, missing.memory);
    }
    let sets = CapabilitySets {
        effective: capabilities,
        permitted: capabilities,
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, sets)?;
    rustix::thread::set_no_new_privs(true)?;
    Ok(())
}

/// The options of Java after the size of its heap. A JVM has few processors here, and may not write
/// files for its monitoring tools.
const JAVA_OPTIONS: &str = "m -XX:+UseSerialGC -XX:-UsePerfData";

/// Whether a line of a program's standard error only tells that a JVM has read the options of
/// [`environment`]. Every JVM writes it, and no variable for options is silent.
pub(crate) fn is_runtime_notice(line: &[u8]) -> bool {
    let options = line.strip_prefix(b"Picked up JAVA_TOOL_OPTIONS: -Xmx");
    let heap = options.and_then(|rest| rest.trim_ascii_end().strip_suffix(JAVA_OPTIONS.as_bytes()));
    heap.is_some_and(|heap| heap.iter().all(u8::is_ascii_digit))
}

/// The environment of programs. It tells language runtimes how much memory they may use.
fn environment(limits: &Limits) -> Vec<CString> {
    let memory = limits.memory.mebibytes();
    // A runtime needs room besides its heap.
    let heap = memory * 5 / 8;
    let variables = [
        format!("PATH={PATH}"),
        format!("HOME={}", root_fs::WORK),
        format!("PWD={}", root_fs::WORK),
        "TMPDIR=/tmp".to_owned(),
        "LANG=C.UTF-8".to_owned(),
        "USER=bot".to_owned(),
        "PYTHONDONTWRITEBYTECODE=1".to_owned(),
        format!("JAVA_TOOL_OPTIONS=-Xmx{heap}{JAVA_OPTIONS}"),
        format!("GOMEMLIMIT={heap}MiB"),
        format!("NODE_OPTIONS=--max-old-space-size={heap}"),
        format!("DOTNET_GCHeapHardLimit={:#x}", heap << 20),
    ];
    variables.map(|line| CString::new(line).expect("no zero byte")).to_vec()
}

/// Closes all descriptors that a newly forked init inherited, except for its socket.
pub(super) fn close_all_but(socket: &OwnedFd) -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    drop(null);
    syscalls::close_all_but(socket.as_raw_fd())
}
