//! One seat of one match: everything that its bot has and runs.

use std::path::PathBuf;
use std::sync::Arc;

use arbiter_games::Micros;

use super::bare::{Children, Restraint};
use super::cgroup::Cgroup;
use super::fence::Fence;
use super::host::{Hold, Host};
use super::limits::{Bytes, Limits, Ponder, Terms};
use super::process::{Exit, NoStart, Process, Stdin};
use super::walls::{Cell, Walls};
use super::wire::{Answer, Settlement, Task};
use super::{Home, keep};
use crate::fault::Fault;

/// What holds the bot of one jail.
#[derive(Debug)]
enum Inside {
    /// Walls.
    Cell(Cell),
    /// A fence, or nothing, around processes of ours in a directory.
    Yard(Children, PathBuf, Option<Restraint>),
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
    resting: bool,
    closed: bool,
}

impl Jail {
    /// Opens a jail around `home` on official terms.
    ///
    /// # Errors
    /// A fault if any part of it cannot be made.
    pub fn open(host: &Host, home: Home) -> Result<Self, Fault> {
        Self::open_on(host, home, &Terms::default())
    }

    /// Opens a jail around `home` on these terms.
    ///
    /// # Errors
    /// A fault if any part of it cannot be made.
    pub fn open_on(host: &Host, mut home: Home, terms: &Terms) -> Result<Self, Fault> {
        let cgroup = host.groups.leaf(&terms.limits)?;
        let inside = match &host.hold {
            Hold::Walls(walls) => return Self::wall_in(walls, Some(home), terms, cgroup),
            Hold::Fence => return Self::fence_in(home, terms, cgroup),
            Hold::Nothing => Inside::Yard(Children::default(), home.unpack(&terms.limits)?, None),
        };
        Ok(Self::around(inside, Some(home), terms, cgroup))
    }

    /// Opens a jail with a fence.
    pub(super) fn fence_in(mut home: Home, terms: &Terms, cgroup: Cgroup) -> Result<Self, Fault> {
        let path = home.unpack(&terms.limits)?;
        let restraint = Restraint::new(Fence::around(&path)?, terms);
        let inside = Inside::Yard(Children::default(), path, Some(restraint));
        Ok(Self::around(inside, Some(home), terms, cgroup))
    }

    /// Opens a jail with walls and, without a home, an empty directory.
    pub(super) fn wall_in(
        walls: &Arc<Walls>,
        home: Option<Home>,
        terms: &Terms,
        cgroup: Cgroup,
    ) -> Result<Self, Fault> {
        let program = home.as_ref().map(|home| walls.store().copy_of(home.source())).transpose()?;
        let kept = home.as_ref().and_then(Home::keeps);
        let settlement = Settlement {
            program,
            limits: terms.limits,
            cores: terms.cores.clone(),
            two_users: walls.two_users(),
            alone: !cgroup.freezes(),
            keeps_files: kept.is_some(),
        };
        let cell = walls.open(&cgroup, settlement)?;
        if let (Some(kept), Some((written, user))) = (kept, cell.written()) {
            keep::bring_back(kept, written, user, &terms.limits)?;
        }
        let mut jail = Self::around(Inside::Cell(cell), home, terms, cgroup);
        jail.before = jail.cpu();
        Ok(jail)
    }

    fn around(inside: Inside, home: Option<Home>, terms: &Terms, cgroup: Cgroup) -> Self {
        let Terms { limits, ponder, cores: _ } = *terms;
        let (cgroup, before) = (Some(cgroup), Micros::ZERO);
        Self { inside, home, cgroup, before, limits, ponder, resting: false, closed: false }
    }

    /// Starts a program in the home directory.
    ///
    /// # Errors
    /// [`NoStart::Bot`] if the program itself cannot be run, otherwise a fault.
    pub fn start(&mut self, argv: &[String], stdin: Stdin) -> Result<Process, NoStart> {
        self.wake().map_err(NoStart::Fault)?;
        match &mut self.inside {
            Inside::Cell(cell) => cell.start(argv, stdin),
            Inside::Yard(children, path, restraint) => {
                let doors = self.cgroup.as_ref().map_or_else(|| Ok(Vec::new()), Cgroup::doors);
                let doors = doors.map_err(NoStart::Fault)?;
                children.start(argv, path, stdin, &doors, restraint.as_ref())
            }
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

    /// The most memory in use at a time, where that is measured.
    pub fn peak_memory(&self) -> Option<Bytes> {
        self.cgroup.as_ref().and_then(Cgroup::peak_memory)
    }

    /// Why the bot's processes were killed, if the sandbox did so on its own: words for the bot's
    /// author.
    pub fn cause_of_death(&self) -> Option<String> {
        let killed = self.cgroup.as_ref().map_or(0, Cgroup::killed_for_memory);
        (killed > 0).then(|| format!("it needed more than its {} of memory", self.limits.memory))
    }

    /// Stops the bot, which owes nothing now, unless it may think on.
    ///
    /// # Errors
    /// A fault if it cannot be stopped.
    pub fn rest(&mut self) -> Result<(), Fault> {
        if self.ponder == Ponder::Allow || self.resting {
            return Ok(());
        }
        self.freeze()
    }

    /// Lets a bot that rests go on.
    ///
    /// # Errors
    /// A fault if it cannot.
    pub fn wake(&mut self) -> Result<(), Fault> {
        if self.resting { self.thaw() } else { Ok(()) }
    }

    /// Stops everything that runs here.
    ///
    /// # Errors
    /// A fault if it cannot be stopped.
    pub fn freeze(&mut self) -> Result<(), Fault> {
        self.resting = true;
        match (&self.cgroup, &self.inside) {
            (Some(cgroup), _) if cgroup.freezes() => cgroup.freeze(),
            (_, Inside::Cell(cell)) => cell.ask(&Task::Stop).map(drop),
            (_, Inside::Yard(children, ..)) => {
                children.signal(libc::SIGSTOP);
                Ok(())
            }
        }
    }

    /// Lets everything go on.
    ///
    /// # Errors
    /// A fault if it cannot.
    pub fn thaw(&mut self) -> Result<(), Fault> {
        self.resting = false;
        match (&self.cgroup, &self.inside) {
            (Some(cgroup), _) if cgroup.freezes() => cgroup.thaw(),
            (_, Inside::Cell(cell)) => cell.ask(&Task::Continue).map(drop),
            (_, Inside::Yard(children, ..)) => {
                children.signal(libc::SIGCONT);
                Ok(())
            }
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
        if !matches!(cleared, Ok(Some(Answer::Done))) {
            self.kill();
        }
        if process.exit().is_none() {
            let used = process.wait();
            self.retire(process, used);
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
    }

    /// Kills everything, waits until it is gone, and removes what was made for this jail.
    ///
    /// # Errors
    /// [`Fault::Unclean`] if anything survives or cannot be removed; another fault if what the bot
    /// wrote cannot be kept.
    pub fn close(mut self) -> Result<(), Fault> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Fault> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(());
        }
        self.kill();
        match &mut self.inside {
            Inside::Cell(cell) => cell.wait().map_err(Fault::unclean)?,
            Inside::Yard(children, ..) => children.wait(),
        }
        let freed = self.cgroup.take().map_or(Ok(()), Cgroup::remove);
        let Some(mut home) = self.home.take() else { return freed.map_err(Fault::unclean) };
        // The dead change nothing any more.
        let kept = match &self.inside {
            Inside::Yard(..) => home.keep(&self.limits),
            Inside::Cell(cell) => match (home.keeps(), cell.written()) {
                (Some(kept), Some((written, _))) => {
                    keep::take_out(written, kept, &self.limits, None)
                }
                _ => Ok(()),
            },
        };
        let removed = home.remove();
        freed.and(removed).map_err(Fault::unclean)?;
        kept
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        // A jail that was not closed belongs to a match that already failed; that is reported.
        drop(self.end());
    }
}
