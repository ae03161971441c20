//! The first process of a jail: builds its walls from within, starts the bot's programs, and
//! reaps whatever ends. It does what the worker says and nothing else; when the worker is gone it
//! ends, and everything in the jail with it.

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
use super::limits::{ADDRESSES, Bytes, GRACE, Limits};
use super::proc_monitor::{self, ProcMonitor};
use super::process::notice;
use super::seccomp::MissingFeatures;
use super::syscalls;
use super::{loopback, root_fs, seccomp, self_test};

/// Where programs are looked for.
pub(super) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The user that a bot is, inside.
const BOT: u32 = 1000;

/// The user that builds the jail, inside, where it is another.
const BUILDER: u32 = 0;

/// The stack a program may ask for, in bytes.
const LARGEST_STACK: u64 = 256 << 20;

/// The stack a program begins with, in bytes.
const USUAL_STACK: u64 = 8 << 20;

/// What is kept for one user by the kernel at a bot's cost: locked memory and message queues, in
/// bytes, and signals that wait.
const LOCKED: u64 = 64 << 10;
const QUEUES: u64 = 64 << 10;
const SIGNALS: u64 = 256;

/// The exit code of the first process when it cannot go on.
const GAVE_UP: i32 = 1;

/// A program that was started and has not ended.
struct Running {
    pid: libc::pid_t,
    /// Where its end is told.
    notice: File,
    /// Whether it is a bot's. What attacks the walls is to meet those, and no watch.
    is_bots: bool,
}

/// What is known of the memory that is used, where no control group counts it.
struct MemoryGuard {
    most: Bytes,
    /// When it was looked at last.
    looked: Option<Instant>,
    kills: u64,
    peak: Bytes,
}

impl MemoryGuard {
    fn new(most: Bytes) -> Self {
        Self { most, looked: None, kills: 0, peak: Bytes(0) }
    }

    /// Looks whether a bot is to be killed, if that is due, and counts it.
    fn finds_too_much(&mut self, watch: &ProcMonitor) -> bool {
        if self.looked.is_some_and(|looked| looked.elapsed() < proc_monitor::EVERY) {
            return false;
        }
        self.looked = Some(Instant::now());
        let (too_much, used) = watch.memory(self.most);
        self.peak = self.peak.max(used);
        self.kills += u64::from(too_much);
        too_much
    }
}

/// The first process at work.
struct Init {
    socket: OwnedFd,
    children: OwnedFd,
    null: File,
    environment: Vec<CString>,
    /// The user that programs become, if another.
    user: Option<u32>,
    running: Vec<Running>,
    /// A view of the jail's processes, if one is needed and may be had.
    watch: Option<ProcMonitor>,
    guard: Option<MemoryGuard>,
    /// Whether everything was stopped by signals.
    stopped: bool,
    /// What was prepared, until the walls are built.
    prepared: Option<io::Result<Backlog>>,
}

/// What bounds how many connections wait for a server in a jail's network, if the kernel does. Without
/// a listener it is not missed.
type Backlog = io::Result<Option<File>>;

/// Runs the first process of a jail, which hears the worker through `socket`.
pub(super) fn run(socket: OwnedFd) -> ! {
    let served = Init::begin(socket).and_then(|mut init| init.serve());
    syscalls::exit(if served.is_ok() { 0 } else { GAVE_UP })
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
            watch: None,
            guard: None,
            stopped: false,
            prepared: None,
        })
    }

    /// Serves until the worker is gone.
    fn serve(&mut self) -> io::Result<()> {
        loop {
            let mut fds = [
                PollFd::new(&self.socket, PollFlags::IN),
                PollFd::new(&self.children, PollFlags::IN),
            ];
            let soon = Timespec::try_from(proc_monitor::EVERY).expect("a short time");
            match rustix::event::poll(&mut fds, self.is_on_guard().then_some(&soon)) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            let [asked, ended] = fds.map(|fd| !fd.revents().is_empty());
            if ended {
                self.reap();
            }
            if asked {
                let Some((task, descriptors)) = ipc::receive(&self.socket)? else {
                    return Ok(());
                };
                self.perform(task, descriptors)?;
            }
            self.look_after_memory();
        }
    }

    fn perform(&mut self, task: InitRequest, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        let answer = match task {
            InitRequest::Prepare { separate_users } => {
                self.prepared = Some(prepare(separate_users));
                return Ok(());
            }
            InitRequest::Build(setup) => match self.prepared.take() {
                Some(prepared) => return self.settle(&setup, prepared),
                None => InitResponse::Failed("settled already".to_owned()),
            },
            InitRequest::Start { argv } => self.start(&argv, descriptors),
            InitRequest::SelfTest(plan) => self.attack(&plan, descriptors),
            InitRequest::CpuTime => InitResponse::CpuTime(self.used().0),
            InitRequest::MemoryUse => self.memory(),
            InitRequest::KillAll => InitResponse::Is(self.clear()),
            InitRequest::Stop => {
                self.stopped = true;
                syscalls::signal_all(libc::SIGSTOP);
                InitResponse::Done
            }
            InitRequest::CheckStopped => InitResponse::Is(self.stands()),
            InitRequest::Continue => {
                self.stopped = false;
                syscalls::signal_all(libc::SIGCONT);
                InitResponse::Done
            }
        };
        ipc::send(&self.socket, &answer, &[])
    }

    /// Builds the walls; afterwards this process, too, is behind them.
    fn settle(&mut self, setup: &JailSetup, prepared: io::Result<Backlog>) -> io::Result<()> {
        let (answer, handed) = match prepared.and_then(|backlog| self.build(setup, backlog)) {
            Ok(handed) => (InitResponse::Done, handed),
            Err(error) => (InitResponse::Failed(error.to_string()), Vec::new()),
        };
        let descriptors: Vec<_> = handed.iter().map(AsFd::as_fd).collect();
        ipc::send(&self.socket, &answer, &descriptors)?;
        // The kernel compares the descriptors that wait in sockets of this user, in every jail,
        // with the sender's limit of open files: under a bot's limit another bot could keep ours
        // from being handed over.
        lower(Resource::Nofile, setup.limits.descriptors)
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
        let (mut listener, mut missing) = (None, *missing);
        if *needs_listener {
            let backlog = backlog?;
            missing.backlog = backlog.is_none();
            listener = Some(OwnedFd::from(loopback::open(backlog)?));
        }
        let upper_dir = root_fs::mount_jail(program.as_deref(), limits, BOT, *saves_state)?;
        rustix::system::sethostname(b"bot")?;
        std::env::set_current_dir(root_fs::WORK)?;
        if !cores.is_empty() {
            rustix::thread::sched_setaffinity(None, &syscalls::cpu_set(cores))?;
        }
        self.guard = missing.memory.then(|| MemoryGuard::new(limits.memory));
        self.watch =
            (missing.memory || missing.freezer).then(ProcMonitor::open).and_then(Result::ok);
        restrict(limits, *separate_users, missing)?;
        drop_rights(*separate_users, missing)?;
        seccomp::install(missing)?;
        self.environment = environment(limits);
        self.user = separate_users.then_some(BOT);
        Ok(upper_dir.into_iter().chain(listener).collect())
    }

    /// Starts a program with the streams given: input unless it has none, output, error, and
    /// where its end is told.
    fn start(&mut self, argv: &[String], mut descriptors: Vec<OwnedFd>) -> InitResponse {
        let notice = descriptors.pop();
        let (Some(notice), [rest @ .., stdout, stderr]) = (notice, &descriptors[..]) else {
            return InitResponse::Failed("a program was to start without its streams".to_owned());
        };
        let Ok(argv) = argv.iter().map(|word| CString::new(word.as_bytes())).collect() else {
            return InitResponse::NotStarted(libc::EINVAL);
        };
        let argv: Vec<CString> = argv;
        let stdin = rest.first().map_or(self.null.as_fd(), AsFd::as_fd);
        let streams = [stdin, stdout.as_fd(), stderr.as_fd()];
        let environment = &self.environment;
        match (syscalls::Launch { argv: &argv, environment, streams, user: self.user }).start() {
            Ok(pid) => {
                self.running.push(Running { pid, notice: notice.into(), is_bots: true });
                InitResponse::Started(pid)
            }
            Err(error) => InitResponse::NotStarted(error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }

    /// Attacks the walls in a child that is what a bot would be.
    fn attack(
        &mut self,
        plan: &self_test::AttackPlan,
        mut descriptors: Vec<OwnedFd>,
    ) -> InitResponse {
        let (Some(notice), Some(output)) = (descriptors.pop(), descriptors.into_iter().next())
        else {
            return InitResponse::Failed("an attack was ordered without its streams".to_owned());
        };
        match syscalls::fork() {
            Ok(0) => {
                if let Some(user) = self.user
                    && syscalls::become_user(user).is_err()
                {
                    syscalls::exit(GAVE_UP);
                }
                self_test::run(plan, File::from(output))
            }
            Ok(pid) => {
                self.running.push(Running { pid, notice: notice.into(), is_bots: false });
                InitResponse::Started(pid)
            }
            Err(error) => InitResponse::Failed(error.to_string()),
        }
    }

    /// The processor time of what ended and of what runs, as far as it is known.
    fn used(&self) -> Micros {
        let ended = syscalls::cpu_time_of_ended_children();
        match &self.watch {
            Some(watch) => ended + watch.cpu(),
            None => self
                .running
                .iter()
                .fold(ended, |sum, running| sum + syscalls::cpu_time(running.pid)),
        }
    }

    /// What is known of the memory that was used.
    fn memory(&self) -> InitResponse {
        let known = self.guard.as_ref().map_or((0, 0), |guard| (guard.kills, guard.peak.0));
        InitResponse::MemoryUse { kills: known.0, peak: known.1 }
    }

    /// Whether a bot runs whose memory nobody else counts.
    fn is_on_guard(&self) -> bool {
        let watches = self.guard.is_some() && self.watch.is_some();
        watches && !self.stopped && self.running.iter().any(|running| running.is_bots)
    }

    /// Kills a bot that has more memory than it may.
    fn look_after_memory(&mut self) {
        if self.is_on_guard()
            && let (Some(guard), Some(watch)) = (&mut self.guard, &self.watch)
            && guard.finds_too_much(watch)
        {
            self.clear();
        }
    }

    /// Whether everything that was told to stop stands; without a view of it, it is believed to.
    fn stands(&self) -> bool {
        let stands = self.watch.as_ref().is_none_or(ProcMonitor::stand);
        if !stands {
            syscalls::signal_all(libc::SIGSTOP);
        }
        stands
    }

    /// Kills everything but this process, and waits a while until it is gone: whether it is.
    fn clear(&mut self) -> bool {
        syscalls::signal_all(libc::SIGKILL);
        let started = Instant::now();
        loop {
            self.reap();
            let any = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            if rustix::process::waitid(WaitId::All, any).is_err() {
                return true;
            }
            let left = GRACE.saturating_sub(started.elapsed());
            if left.is_zero() {
                return false;
            }
            let mut ended = [PollFd::new(&self.children, PollFlags::IN)];
            let left = Timespec::try_from(left).expect("a short time");
            // Whatever it ends with, the next round finds out.
            let _ready = rustix::event::poll(&mut ended, Some(&left));
        }
    }

    /// Reaps what ended, and tells the ends of programs that the worker started.
    fn reap(&mut self) {
        // The signals say only that somebody ended; who did is asked below.
        let mut signals = [0; 1024];
        let _read = rustix::io::read(&self.children, &mut signals);
        while let Some(ended) = syscalls::reap_any() {
            let found = self.running.iter().position(|running| running.pid == ended.pid);
            if let Some(index) = found {
                let mut running = self.running.swap_remove(index);
                // A worker that does not listen any more learns nothing.
                drop(running.notice.write_all(&notice(ended.exit, ended.used)));
            }
        }
    }
}

/// Sets limits that hold for one process or one user, but for that of open files.
fn restrict(limits: &Limits, separate_users: bool, missing: MissingFeatures) -> io::Result<()> {
    let mut most = vec![
        (Resource::Core, 0),
        (Resource::Fsize, limits.disk.0),
        (Resource::As, ADDRESSES),
        (Resource::Memlock, LOCKED),
        (Resource::Msgqueue, QUEUES),
        (Resource::Sigpending, SIGNALS),
        (Resource::Nice, 0),
        (Resource::Rtprio, 0),
        // This process counts where it is the same user.
        (Resource::Nproc, u64::from(limits.processes) + u64::from(!separate_users)),
    ];
    if missing.memory {
        most.push((Resource::Data, limits.memory.0));
    }
    for (resource, most) in most {
        lower(resource, most)?;
    }
    let stack = Rlimit { current: Some(USUAL_STACK), maximum: Some(LARGEST_STACK) };
    rustix::process::setrlimit(Resource::Stack, stack)?;
    Ok(())
}

/// Builds what is the same for every jail, so that nothing waits for it when one is needed.
fn prepare(separate_users: bool) -> io::Result<Backlog> {
    syscalls::set_user(if separate_users { BUILDER } else { BOT })?;
    let backlog = loopback::limit_network_buffers();
    root_fs::mount_proc()?;
    Ok(backlog)
}

/// Lowers a limit for good; what is lower already stays.
fn lower(resource: Resource, most: u64) -> io::Result<()> {
    let most = rustix::process::getrlimit(resource).maximum.map_or(most, |now| now.min(most));
    syscalls::set_limit(resource, most)
}

/// Gives up every right but those to change programs' users and to kill them, and to look at
/// their memory where that is for this process to do.
fn drop_rights(separate_users: bool, missing: MissingFeatures) -> io::Result<()> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    for number in 0..64 {
        let right = CapabilitySet::from_bits_retain(1 << number);
        if rustix::thread::remove_capability_from_bounding_set(right).is_err() {
            break;
        }
    }
    let mut kept = CapabilitySet::empty();
    if separate_users {
        kept |= CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::KILL;
        kept.set(CapabilitySet::SYS_PTRACE, missing.memory);
    }
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    rustix::thread::set_capabilities(None, sets)?;
    rustix::thread::set_no_new_privs(true)?;
    Ok(())
}

/// What a program finds in its environment. Runtimes that size themselves by the machine are
/// told what they may have.
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
        format!("JAVA_TOOL_OPTIONS=-Xmx{heap}m -XX:+UseSerialGC -XX:-UsePerfData"),
        format!("GOMEMLIMIT={heap}MiB"),
        format!("NODE_OPTIONS=--max-old-space-size={heap}"),
        format!("DOTNET_GCHeapHardLimit={:#x}", heap << 20),
    ];
    variables.map(|line| CString::new(line).expect("no zero byte")).to_vec()
}

/// Lets go of everything that a freshly forked first process inherited, but for its socket.
pub(super) fn keep_only(socket: &OwnedFd) -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    drop(null);
    syscalls::close_all_but(socket.as_raw_fd())
}
