//! The reaper: a thread that waits for processes that die slowly, and then removes their jails.
//!
//! Most jails are empty a moment after they are killed. But a process inside a long system call
//! that no signal interrupts dies only when that call ends. The reaper waits for it while other
//! slots play.
//!
//! Dying processes may use every processor, with the lowest priority. Meanwhile their slot plays no
//! match. The reaper identifies a slot by its thread: one thread opens, uses and closes a jail.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use super::cgroup::Cgroup;
use super::tree_removal::remove_tree;
use super::with_namespaces::NamespaceJail;
use super::without_namespaces::Children;
use super::workdir::Workdir;

/// The interval between two checks.
const INTERVAL: Duration = Duration::from_millis(20);

/// How long processes may take to die. Longer times mean that the machine has a problem.
pub(super) const WARN_AFTER: Duration = Duration::from_secs(300);

/// The parts of a closed jail that still must be removed.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    pub(super) jail: Option<NamespaceJail>,
    pub(super) children: Children,
    pub(super) cgroup: Option<Cgroup>,
    pub(super) workdir: Option<Workdir>,
    /// A directory that is no longer needed.
    pub(super) directory: Option<PathBuf>,
}

impl Leftovers {
    /// Whether every known process has ended.
    fn have_ended(&self) -> bool {
        self.children.have_ended()
            && self.jail.as_ref().is_none_or(|jail| jail.is_gone_after(Duration::ZERO))
            && self.cgroup.as_ref().is_none_or(Cgroup::is_empty)
    }

    /// Kills processes that were forked during the last kill.
    fn kill(&self) {
        self.children.kill();
        self.cgroup.iter().for_each(Cgroup::kill);
    }

    /// Removes everything. It fails while a process is alive.
    pub(super) fn remove(&mut self) -> io::Result<()> {
        if !self.have_ended() {
            return Err(io::Error::other("its processes are still alive"));
        }
        self.children.reap_ended();
        if let Some(group) = &mut self.cgroup {
            group.remove()?;
            self.cgroup = None;
        }
        if let Some(workdir) = &mut self.workdir {
            workdir.remove()?;
            self.workdir = None;
        }
        self.directory.as_deref().map_or(Ok(false), remove_tree).map(drop)
    }
}

/// The leftovers of one jail of a slot.
struct PendingRemoval {
    slot: ThreadId,
    since: Instant,
    /// Whether a warning was logged.
    warned: bool,
    leftovers: Leftovers,
}

/// Called when all leftovers of a slot are removed.
type Callback = Box<dyn FnOnce() + Send>;

/// The state of the reaper.
struct ReaperState {
    /// Entries that the reaper thread has not processed yet.
    new: Vec<PendingRemoval>,
    /// The slots of all entries, once for each entry.
    slots: Vec<ThreadId>,
    callbacks: Vec<(ThreadId, Callback)>,
    /// Whether the reaper thread runs.
    is_running: bool,
}

static REAPER: Mutex<ReaperState> = Mutex::new(ReaperState {
    new: Vec::new(),
    slots: Vec::new(),
    callbacks: Vec::new(),
    is_running: false,
});

fn reaper() -> MutexGuard<'static, ReaperState> {
    REAPER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes the leftovers of a jail of this thread's slot to the reaper.
pub(super) fn hand_over(leftovers: Leftovers) {
    let entry = PendingRemoval {
        slot: thread::current().id(),
        since: Instant::now(),
        warned: false,
        leftovers,
    };
    let mut state = reaper();
    state.slots.push(entry.slot);
    state.new.push(entry);
    if !state.is_running {
        let reaper = thread::Builder::new().name("reaper".to_owned()).spawn(reap);
        // If the thread cannot start, the next call tries again.
        let reaper = reaper.inspect_err(|error| error!(%error, "cannot start the reaper thread"));
        state.is_running = reaper.is_ok();
    }
}

/// Removes a directory of this thread's slot, with everything in it, as soon as possible.
pub fn remove_later(directory: PathBuf) {
    hand_over(Leftovers { directory: Some(directory), ..Leftovers::default() });
}

/// Whether this thread's slot has no leftovers.
pub fn is_clear() -> bool {
    reaper().is_clear(thread::current().id())
}

/// Calls `callback` once this thread's slot has no leftovers, possibly from another thread.
pub fn when_clear(callback: impl FnOnce() + Send + 'static) {
    let slot = thread::current().id();
    let mut state = reaper();
    if state.is_clear(slot) {
        drop(state);
        callback();
    } else {
        state.callbacks.push((slot, Box::new(callback)));
    }
}

impl ReaperState {
    fn is_clear(&self, slot: ThreadId) -> bool {
        !self.slots.contains(&slot)
    }

    /// Takes the callbacks of slots that are clear.
    fn due(&mut self) -> Vec<Callback> {
        let callbacks = std::mem::take(&mut self.callbacks);
        let (due, later): (Vec<_>, Vec<_>) =
            callbacks.into_iter().partition(|(slot, _)| self.is_clear(*slot));
        self.callbacks = later;
        due.into_iter().map(|(_, callback)| callback).collect()
    }
}

/// The reaper thread: removes leftovers until there are none.
fn reap() {
    let mut pending: Vec<PendingRemoval> = Vec::new();
    loop {
        pending.append(&mut reaper().new);
        pending.retain_mut(PendingRemoval::is_pending);
        let mut state = reaper();
        state.slots = pending.iter().chain(&state.new).map(|entry| entry.slot).collect();
        let due = state.due();
        state.is_running = !state.slots.is_empty();
        let is_running = state.is_running;
        drop(state);
        for callback in due {
            callback();
        }
        if !is_running {
            return;
        }
        thread::sleep(INTERVAL);
    }
}

impl PendingRemoval {
    /// Tries to remove the leftovers. Returns whether some remain.
    fn is_pending(&mut self) -> bool {
        self.leftovers.kill();
        let result = self.leftovers.remove();
        let seconds = self.since.elapsed().as_secs();
        match &result {
            Ok(()) => info!(seconds, "slow processes have ended and their jail is removed"),
            Err(error) if !self.warned && self.since.elapsed() > WARN_AFTER => {
                self.warned = true;
                warn!(%error, seconds, "cannot remove the jail of a match; its slot stays blocked");
            }
            Err(_) => {
                let _all = self.leftovers.cgroup.as_ref().is_some_and(Cgroup::deprioritize);
            }
        }
        result.is_err()
    }
}
