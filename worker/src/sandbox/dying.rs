//! What dies slowly. Most jails are empty a moment after they were killed. A process that is inside
//! a long call of the kernel, which no signal interrupts, takes as long as that call does. It does
//! so beside play, and another thread removes what is left.
//!
//! What dies may use every processor, where it comes after everybody else. A slot that left it does
//! not play meanwhile. The thread tells which slot that is: one opens, uses and closes a jail.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use super::bare::Children;
use super::cgroup::Cgroup;
use super::home::Home;
use super::removal::remove_tree;
use super::walls::Cell;

/// Between two looks at what is dying.
const EVERY: Duration = Duration::from_millis(20);

/// After this time something must be wrong with the machine.
pub(super) const STRANGE: Duration = Duration::from_secs(300);

/// What a jail left.
#[derive(Debug, Default)]
pub(super) struct Remains {
    pub(super) cell: Option<Cell>,
    pub(super) children: Children,
    pub(super) cgroup: Option<Cgroup>,
    pub(super) home: Option<Home>,
    /// A directory with nothing in it that anybody needs.
    pub(super) directory: Option<PathBuf>,
}

impl Remains {
    /// Whether every process is gone, as far as that can be seen.
    fn are_dead(&self) -> bool {
        self.children.are_dead()
            && self.cell.as_ref().is_none_or(|cell| cell.is_gone_within(Duration::ZERO))
            && self.cgroup.as_ref().is_none_or(Cgroup::is_empty)
    }

    /// Kills what was forked while it was killed.
    fn kill(&self) {
        self.children.kill();
        self.cgroup.iter().for_each(Cgroup::kill);
    }

    /// Removes everything, if it is dead.
    ///
    /// # Errors
    /// Why not yet.
    pub(super) fn remove(&mut self) -> io::Result<()> {
        if !self.are_dead() {
            return Err(io::Error::other("its processes live on"));
        }
        self.children.bury();
        if let Some(group) = &mut self.cgroup {
            group.remove()?;
            self.cgroup = None;
        }
        if let Some(home) = &mut self.home {
            home.remove()?;
            self.home = None;
        }
        self.directory.as_deref().map_or(Ok(false), remove_tree).map(drop)
    }
}

/// What a slot left, and when.
struct Grave {
    slot: ThreadId,
    since: Instant,
    /// Whether it was told that it takes strangely long.
    told: bool,
    remains: Remains,
}

/// What is called when a slot has nothing left that dies.
type Call = Box<dyn FnOnce() + Send>;

/// What is known of everything that is dying.
struct Dying {
    /// What the reaper has not seen yet.
    new: Vec<Grave>,
    /// The slots that left something, once for each jail.
    slots: Vec<ThreadId>,
    calls: Vec<(ThreadId, Call)>,
    /// Whether there is a reaper.
    is_watched: bool,
}

static DYING: Mutex<Dying> =
    Mutex::new(Dying { new: Vec::new(), slots: Vec::new(), calls: Vec::new(), is_watched: false });

fn dying() -> MutexGuard<'static, Dying> {
    DYING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes over what this thread left and cannot wait for.
pub(super) fn take_over(remains: Remains) {
    let grave = Grave { slot: thread::current().id(), since: Instant::now(), told: false, remains };
    let mut dying = dying();
    dying.slots.push(grave.slot);
    dying.new.push(grave);
    if !dying.is_watched {
        let reaper = thread::Builder::new().name("reaper".to_owned()).spawn(reap);
        // Without a thread the next one to come tries again.
        dying.is_watched = reaper.inspect_err(|error| error!(%error, "no reaper")).is_ok();
    }
}

/// Removes a directory of this thread's with everything in it, as soon as that can be done.
pub fn remove_in_time(directory: PathBuf) {
    take_over(Remains { directory: Some(directory), ..Remains::default() });
}

/// Whether nothing is left of all that this thread ran.
pub fn is_clear() -> bool {
    dying().is_clear(thread::current().id())
}

/// Calls `call` from another thread once nothing is left of all that this one ran.
pub fn when_clear(call: impl FnOnce() + Send + 'static) {
    let (slot, mut dying) = (thread::current().id(), dying());
    if dying.is_clear(slot) {
        drop(dying);
        call();
    } else {
        dying.calls.push((slot, Box::new(call)));
    }
}

impl Dying {
    fn is_clear(&self, slot: ThreadId) -> bool {
        !self.slots.contains(&slot)
    }

    /// Takes the calls that are due.
    fn due(&mut self) -> Vec<Call> {
        let calls = std::mem::take(&mut self.calls);
        let (due, later): (Vec<_>, Vec<_>) =
            calls.into_iter().partition(|(slot, _)| self.is_clear(*slot));
        self.calls = later;
        due.into_iter().map(|(_, call)| call).collect()
    }
}

/// Removes what is dead until nothing is left.
fn reap() {
    let mut graves: Vec<Grave> = Vec::new();
    loop {
        graves.append(&mut dying().new);
        graves.retain_mut(Grave::stays);
        let mut dying = dying();
        dying.slots = graves.iter().chain(&dying.new).map(|grave| grave.slot).collect();
        let due = dying.due();
        dying.is_watched = !dying.slots.is_empty();
        let goes_on = dying.is_watched;
        drop(dying);
        for call in due {
            call();
        }
        if !goes_on {
            return;
        }
        thread::sleep(EVERY);
    }
}

impl Grave {
    /// Whether something is left in it.
    fn stays(&mut self) -> bool {
        self.remains.kill();
        let removed = self.remains.remove();
        let seconds = self.since.elapsed().as_secs();
        match &removed {
            Ok(()) => info!(seconds, "what was dying is gone"),
            Err(error) if !self.told && self.since.elapsed() > STRANGE => {
                self.told = true;
                warn!(%error, seconds, "something of a match is still there; its slot waits");
            }
            Err(_) => {
                let _all = self.remains.cgroup.as_ref().is_some_and(Cgroup::step_back);
            }
        }
        removed.is_err()
    }
}
