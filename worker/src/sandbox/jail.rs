//! One seat of one match: everything that its bot has and runs.

mod attribution;
mod motion;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arbiter_games::Micros;

use super::Home;
use super::bare::{Children, Restraint};
use super::cgroup::Cgroup;
use super::door::{Door, Network};
use super::dying::{self, Remains};
use super::fence::Fence;
use super::filter::Lacks;
use super::host::{Hold, Host};
use super::keep::{self, LeftOut};
use super::limits::{Bytes, GRACE, Limits, Ponder, Terms};
use super::pause::wait_until;
use super::process::{Exit, Process, Stdin};
use super::walls::{Cell, Walls};
use super::wire::{Answer, Settlement, Task};
use crate::fault::Fault;
use motion::{Motion, SLOWNESS};

/// What peaks of memory are told in.
const MEGABYTE: u64 = 1_000_000;

/// How long a jail that was killed is waited for. Most need a thousandth of it.
const PATIENCE: Duration = Duration::from_secs(10);

/// After this time what is dying is let onto every processor.
const SOON: Duration = Duration::from_millis(100);

/// What holds the bot of one jail.
#[derive(Debug)]
enum Inside {
    /// Walls.
    Cell(Cell),
    /// A fence, or nothing, around processes of ours in a directory.
    Yard(Children, PathBuf, Option<Restraint>),
}

/// What closing a jail came to.
#[derive(Debug, Default)]
pub struct Closed {
    /// What of the files that were to be kept could not be.
    pub left_out: LeftOut,
    /// Whether processes of it were still dying when they had had their time; what they leave is
    /// removed when they are gone (see [`dying`]), and of their files nothing is kept.
    pub lingers: bool,
}

/// One seat of one match: everything that its bot has and runs.
#[derive(Debug)]
pub struct Jail {
    inside: Inside,
    home: Option<Home>,
    cgroup: Option<Cgroup>,
    /// What was used before the bot began.
    before: Micros,
    limits: Limits,
    ponder: Ponder,
    /// How many kills for memory were told.
    kills: u64,
    motion: Motion,
    /// For how long it may still be slow to stop, in this match.
    slowness_left: Duration,
    /// Whether it was killed since it would not stop, or its processes would not end, or its first
    /// process did not answer in time.
    is_stuck: bool,
    /// Whether a program of the bot was started here: what is found since may be its doing.
    was_used: bool,
    closed: bool,
}

impl Jail {
    /// Opens a jail around `home` on these terms. If any part of it cannot be made, what was made by
    /// then is removed.
    pub fn open(host: &Host, home: Home, terms: &Terms) -> Result<Self, Fault> {
        Self::open_with(host, home, terms, Network::None)
    }

    /// The same for a bot that reaches us through a door, which is there too. It is a fault if this
    /// machine has no network to give.
    pub fn open_with_door(host: &Host, home: Home, terms: &Terms) -> Result<(Self, Door), Fault> {
        if matches!(host.hold, Hold::Fence) {
            let cause = "this machine has no network namespaces; see `arbiter doctor`";
            return Err(Fault::new("cannot seat a bot that speaks http", cause));
        }
        let mut jail = Self::open_with(host, home, terms, Network::Door)?;
        let door = jail.door()?;
        Ok((jail, door))
    }

    /// Takes the door of a jail that was opened with one.
    pub(super) fn door(&mut self) -> Result<Door, Fault> {
        match &mut self.inside {
            Inside::Yard(..) => Door::in_the_open(),
            Inside::Cell(cell) => {
                let missing = || Fault::new("cannot build a jail", "its door is missing");
                Door::of(cell.door.take().ok_or_else(missing)?.into())
            }
        }
    }

    fn open_with(host: &Host, home: Home, terms: &Terms, network: Network) -> Result<Self, Fault> {
        let cgroup = host.groups.leaf(&terms.limits)?;
        match &host.hold {
            Hold::Walls(walls) => Self::wall_in(walls, Some(home), terms, cgroup, network),
            Hold::Fence => Self::fence_in(home, terms, cgroup),
            Hold::Nothing => Self::yard(home, terms, cgroup, |_| Ok(None)),
        }
    }

    /// Opens a jail with a fence.
    pub(super) fn fence_in(home: Home, terms: &Terms, cgroup: Cgroup) -> Result<Self, Fault> {
        let restrain = |path: &Path| Ok(Some(Restraint::new(Fence::around(path)?, terms)));
        Self::yard(home, terms, cgroup, restrain)
    }

    /// Opens a jail without walls.
    fn yard(
        mut home: Home,
        terms: &Terms,
        cgroup: Cgroup,
        restrain: impl FnOnce(&Path) -> Result<Option<Restraint>, Fault>,
    ) -> Result<Self, Fault> {
        let unpacked = home.unpack(&terms.limits);
        let made = unpacked.and_then(|path| restrain(&path).map(|restraint| (path, restraint)));
        match made {
            Ok((path, restraint)) => {
                let inside = Inside::Yard(Children::default(), path, restraint);
                Ok(Self::around(inside, Some(home), terms, cgroup))
            }
            Err(fault) => {
                let (cgroup, home) = (Some(cgroup), Some(home));
                dying::take_over(Remains { cgroup, home, ..Remains::default() });
                Err(fault)
            }
        }
    }

    /// Opens a jail with walls and, without a home, an empty directory.
    pub(super) fn wall_in(
        walls: &Arc<Walls>,
        home: Option<Home>,
        terms: &Terms,
        cgroup: Cgroup,
        network: Network,
    ) -> Result<Self, Fault> {
        match Self::cell(walls, home.as_ref(), terms, &cgroup, network) {
            Ok(cell) => {
                let mut jail = Self::around(Inside::Cell(cell), home, terms, cgroup);
                jail.before = jail.cpu();
                Ok(jail)
            }
            Err(fault) => {
                dying::take_over(Remains { cgroup: Some(cgroup), ..Remains::default() });
                Err(fault)
            }
        }
    }

    /// Opens what is behind the walls, and furnishes it.
    fn cell(
        walls: &Arc<Walls>,
        home: Option<&Home>,
        terms: &Terms,
        cgroup: &Cgroup,
        network: Network,
    ) -> Result<Cell, Fault> {
        let program = home.map(|home| walls.store.copy_of(&home.source)).transpose()?;
        let kept = home.and_then(|home| home.kept.as_deref());
        let settlement = Settlement {
            program,
            limits: terms.limits,
            cores: terms.cores.clone(),
            two_users: walls.two_users,
            lacks: Lacks {
                freezer: !cgroup.freezes(),
                memory: !cgroup.limits_memory(),
                network: network == Network::None,
                // The jail's first process finds out about the backlog.
                ..Lacks::default()
            },
            keeps_files: kept.is_some(),
            has_door: network == Network::Door,
        };
        let cell = walls.open(cgroup, settlement)?;
        if let (Some(kept), Some((written, user))) = (kept, cell.written()) {
            keep::bring_back(kept, written, user, &terms.limits)?;
        }
        Ok(cell)
    }

    fn around(inside: Inside, home: Option<Home>, terms: &Terms, cgroup: Cgroup) -> Self {
        let Terms { limits, ponder, cores: _ } = *terms;
        let (cgroup, before) = (Some(cgroup), Micros::ZERO);
        Self {
            inside,
            home,
            cgroup,
            before,
            limits,
            ponder,
            kills: 0,
            motion: Motion::Running,
            slowness_left: SLOWNESS,
            is_stuck: false,
            was_used: false,
            closed: false,
        }
    }

    /// Starts a program in the home directory; the reason, for its author, if it cannot be run, or if
    /// an earlier one of the bot's is why.
    pub fn start(
        &mut self,
        argv: &[String],
        stdin: Stdin,
    ) -> Result<Result<Process, String>, Fault> {
        self.wake()?;
        let started = match &mut self.inside {
            Inside::Cell(cell) => cell.start(argv, stdin),
            Inside::Yard(children, path, restraint) => {
                let doors = self.cgroup.as_ref().map_or_else(|| Ok(Vec::new()), Cgroup::doors)?;
                children.start(argv, path, stdin, &doors, restraint.as_ref())
            }
        };
        match started {
            Ok(process) => {
                self.was_used = true;
                Ok(Ok(process))
            }
            Err(error) => self.attribute(error).map(Err),
        }
    }

    /// Attacks the walls from within.
    pub(super) fn attack(&self, plan: super::canary::Plan) -> Result<Process, Fault> {
        match &self.inside {
            Inside::Cell(cell) => cell.attack(plan),
            Inside::Yard(..) => Err(Fault::new("cannot attack walls", "there are none")),
        }
    }

    /// The processor time used in this jail so far.
    pub fn cpu(&self) -> Micros {
        let group = self.cgroup.as_ref().and_then(Cgroup::cpu);
        let used = group.unwrap_or_else(|| match &self.inside {
            Inside::Yard(children, ..) => children.cpu(),
            Inside::Cell(cell) => match cell.ask(&Task::Measure) {
                Ok(Some(Answer::Used(micros))) => Micros(micros),
                // It was killed; what it used until then is not known any more.
                _ => self.before,
            },
        });
        used - self.before
    }

    /// The processor time of the live processes started here, where they are ours to ask: a part of
    /// [`Jail::cpu`] without their children, at a quarter of the price.
    pub fn cpu_of_leaders(&self) -> Option<Micros> {
        match &self.inside {
            Inside::Yard(children, ..) => Some(children.cpu_of_live()),
            Inside::Cell(_) => None,
        }
    }

    /// The most memory in use at a time, where that is measured or at least looked at.
    pub fn peak_memory(&self) -> Option<Bytes> {
        self.cgroup.as_ref().and_then(Cgroup::peak_memory).or_else(|| {
            // What ended before it was looked at was not seen to have any.
            self.seen().map(|(_, peak)| peak).filter(|peak| *peak > Bytes(0))
        })
    }

    /// Whether a process was killed for want of memory since this was last asked, in words for the
    /// bot's author. It costs one look at a control group, and misses what is seen from within
    /// alone: that kills the whole tree, and is told by [`Jail::cause_of_death`].
    /// It is a fault if it was the machine that ran out of memory.
    pub fn lost_a_process(&mut self) -> Result<Option<String>, Fault> {
        match self.cgroup.as_ref().and_then(Cgroup::killed_for_memory) {
            Some(kills) => self.count_kills(kills),
            None => Ok(None),
        }
    }

    /// Why processes of the bot were killed since this was last asked, if the sandbox did so on its
    /// own: words for the bot's author.
    /// It is a fault if it was the machine that ran out of memory.
    pub fn cause_of_death(&mut self) -> Result<Option<String>, Fault> {
        let counted = self.cgroup.as_ref().and_then(Cgroup::killed_for_memory);
        match counted.or_else(|| Some(self.seen()?.0)) {
            Some(kills) => self.count_kills(kills),
            None => Ok(None),
        }
    }

    fn count_kills(&mut self, kills: u64) -> Result<Option<String>, Fault> {
        if kills <= std::mem::replace(&mut self.kills, kills) {
            return Ok(None);
        }
        if self.cgroup.as_ref().is_some_and(|cgroup| !cgroup.was_full()) {
            return Err(Fault::new(
                "a bot's process was killed within its limits",
                "the machine, or the group that the worker is in, ran out of memory",
            ));
        }
        let peak = self.peak_memory().map_or(0, |peak| peak.0 / MEGABYTE);
        let most = self.limits.memory;
        Ok(Some(format!("killed for using more than its {most} of memory (peak {peak} MB)")))
    }

    /// What the first process has seen of a tree whose memory no control group counts: how often it
    /// was killed for that, and the most there was.
    fn seen(&self) -> Option<(u64, Bytes)> {
        let Inside::Cell(cell) = &self.inside else { return None };
        match cell.ask(&Task::Memory) {
            Ok(Some(Answer::Memory { kills, peak })) => Some((kills, Bytes(peak))),
            // It was killed, and knew more than it can tell.
            _ => None,
        }
    }

    /// Takes the exit of a process if it has ended.
    pub fn reap(&mut self, process: &mut Process) -> Option<Exit> {
        let (exit, used) = process.reap()?;
        self.retire(process, used);
        Some(exit)
    }

    /// Takes note that `process` was reaped, having used so much processor time.
    fn retire(&mut self, process: &Process, used: Micros) {
        if let Inside::Yard(children, ..) = &mut self.inside {
            children.retire(process, used);
        }
    }

    /// Ends one execution: kills whatever still runs here, and waits for the program itself. Tells
    /// how it ended if it did so before it was killed. The jail can be used again.
    pub fn end_process(&mut self, process: &mut Process) -> Option<Exit> {
        let exit = process.exit().or_else(|| self.reap(process));
        let awake = self.wake();
        let cleared = match &self.inside {
            Inside::Cell(cell) => awake.and_then(|()| cell.ask(&Task::Clear)),
            Inside::Yard(..) => Ok(None),
        };
        // A jail that does not answer is beyond use, and is found dead when it is used.
        if !matches!(cleared, Ok(Some(Answer::Is(true)))) {
            self.is_stuck |= matches!(cleared, Ok(Some(Answer::Is(false)))) || self.is_silent();
            self.kill();
        }
        if process.exit().is_none() {
            match process.wait() {
                Some(used) => self.retire(process, used),
                None => self.is_stuck = true,
            }
        }
        exit
    }

    /// Kills everything that runs here; nothing can be started here any more where there are
    /// walls.
    pub fn kill(&mut self) {
        match &self.inside {
            // With the first process of a namespace goes everything in it.
            Inside::Cell(cell) => {
                cell.kill();
                self.cgroup.iter().for_each(Cgroup::let_die);
            }
            Inside::Yard(children, ..) => {
                children.kill();
                self.cgroup.iter().for_each(Cgroup::kill);
            }
        }
        self.motion = Motion::Dying;
    }

    /// Kills everything, waits a while until it is gone, and removes what was made for this jail.
    /// What takes longer is removed when it is gone: see [`dying`].
    ///
    /// # Errors
    /// A fault if the files that were to be kept could not be.
    pub fn close(mut self) -> Result<Closed, Fault> {
        self.end()
    }

    fn end(&mut self) -> Result<Closed, Fault> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(Closed::default());
        }
        self.kill();
        let mut gone = self.is_gone_within(SOON);
        if !gone {
            self.step_back();
            gone = self.is_gone_within(PATIENCE);
        }
        // The dead change nothing any more.
        let kept = if gone { self.keep_files() } else { Ok(LeftOut::default()) };
        let nothing = Inside::Yard(Children::default(), PathBuf::new(), None);
        let (cell, children) = match std::mem::replace(&mut self.inside, nothing) {
            Inside::Cell(cell) => (Some(cell), Children::default()),
            Inside::Yard(children, ..) => (None, children),
        };
        let (cgroup, home) = (self.cgroup.take(), self.home.take());
        let mut remains = Remains { cell, children, cgroup, home, directory: None };
        // A group takes a moment longer to be empty than its processes to end.
        let removed = wait_until(GRACE, || Ok(!gone || remains.remove().is_ok()))?;
        if !gone || !removed {
            dying::take_over(remains);
        }
        Ok(Closed { left_out: kept?, lingers: !gone })
    }

    /// Takes out the files that are to be there again in the bot's next match; what cannot be.
    fn keep_files(&self) -> Result<LeftOut, Fault> {
        let Some(home) = &self.home else { return Ok(LeftOut::default()) };
        match &self.inside {
            Inside::Yard(..) => home.keep(&self.limits),
            Inside::Cell(cell) => match (&home.kept, cell.written()) {
                (Some(kept), Some((written, _))) => {
                    keep::take_out(written, kept, &self.limits, None)
                }
                _ => Ok(LeftOut::default()),
            },
        }
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        // A jail that was not closed belongs to a match that already failed; that is reported.
        drop(self.end());
    }
}
