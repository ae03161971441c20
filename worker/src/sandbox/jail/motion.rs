//! How a bot is stopped and goes on, and how its end is waited for.

use std::time::{Duration, Instant};

use tracing::warn;

use super::super::cgroup::Cgroup;
use super::super::descendants;
use super::super::dying::STRANGE;
use super::super::limits::{GRACE, Ponder};
use super::super::pause::wait_until;
use super::super::wire::Task;
use super::{Inside, Jail, SOON};
use crate::fault::Fault;

/// How long a stop takes before it counts as slow. Sixty threads on one processor need less.
const SLOW: Duration = Duration::from_millis(500);

/// For how long the stops of one match may be slow in all: afterwards none may be.
pub(super) const SLOWNESS: Duration = Duration::from_secs(30);

/// Whether what is in a jail runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Motion {
    Running,
    /// It was told to stop.
    Stopping,
    /// It stands.
    Resting,
    /// It was killed, and may be on its way out.
    Dying,
    /// It is gone, or dies in its own time.
    Dead,
}

impl Jail {
    /// Stops the bot, which owes nothing now, unless it may think on. It is not waited for: it
    /// stands, and what it used is exact, after [`Jail::settle`] alone.
    pub fn rest(&mut self) -> Result<(), Fault> {
        if self.ponder == Ponder::Allow || self.motion != Motion::Running {
            return Ok(());
        }
        self.stop()
    }

    /// Lets a bot that rests go on.
    pub fn wake(&mut self) -> Result<(), Fault> {
        match (self.motion, &self.inside) {
            (Motion::Running, _) | (Motion::Dying | Motion::Dead, Inside::Cell(_)) => Ok(()),
            _ => self.thaw(),
        }
    }

    /// Stops everything that runs here, and waits until it stands: whether it does.
    pub fn freeze(&mut self) -> Result<bool, Fault> {
        self.stop()?;
        self.settle()
    }

    fn stop(&mut self) -> Result<(), Fault> {
        self.motion = Motion::Stopping;
        match (&self.cgroup, &self.inside) {
            (Some(cgroup), _) if cgroup.freezes() => cgroup.freeze()?,
            (_, Inside::Cell(cell)) => drop(cell.ask(&Task::Stop)?),
            (_, Inside::Yard(children, ..)) => children.signal(libc::SIGSTOP),
        }
        self.kill_if_silent();
        Ok(())
    }

    /// Lets everything go on.
    pub fn thaw(&mut self) -> Result<(), Fault> {
        self.motion = Motion::Running;
        match (&self.cgroup, &self.inside) {
            (Some(cgroup), _) if cgroup.freezes() => cgroup.thaw()?,
            (_, Inside::Cell(cell)) => drop(cell.ask(&Task::Continue)?),
            (_, Inside::Yard(children, ..)) => children.signal(libc::SIGCONT),
        }
        self.kill_if_silent();
        Ok(())
    }

    /// Waits until what was told to stop is seen to stand, and what was killed to be gone or to run
    /// after everything else: then nothing of the bot takes a turn from others. One that does not
    /// stop within its time is killed, and false is what comes back.
    pub fn settle(&mut self) -> Result<bool, Fault> {
        self.kill_if_silent();
        match self.motion {
            Motion::Running | Motion::Resting | Motion::Dead => return Ok(true),
            Motion::Dying => {}
            Motion::Stopping => {
                let stands = self.stands_in_time()?;
                if stands && !self.is_silent() {
                    self.motion = Motion::Resting;
                    return Ok(true);
                }
                self.is_stuck = true;
                self.kill();
            }
        }
        self.motion = Motion::Dead;
        self.make_way();
        Ok(!self.is_stuck())
    }

    /// Waits until everything stands: whether it does in time. A bot that is slow to stop again and
    /// again has less and less time, so that it holds up its match for a while at the most.
    fn stands_in_time(&mut self) -> Result<bool, Fault> {
        let began = Instant::now();
        let stands = wait_until(GRACE.min(SLOW + self.slowness_left), || self.stands())?;
        let slowness = began.elapsed().saturating_sub(SLOW).min(GRACE);
        self.slowness_left = self.slowness_left.saturating_sub(slowness);
        Ok(stands)
    }

    /// Whether everything stands, as far as that can be seen.
    fn stands(&self) -> Result<bool, Fault> {
        match (&self.cgroup, &self.inside) {
            (Some(cgroup), _) if cgroup.freezes() => Ok(cgroup.stands()),
            (_, Inside::Cell(cell)) => cell.is(&Task::Look),
            (_, Inside::Yard(children, ..)) => {
                let stand = descendants::groups_stand(&children.live);
                if !stand {
                    // One that was on its way out may have woken others.
                    children.signal(libc::SIGSTOP);
                }
                Ok(stand)
            }
        }
    }

    /// Waits until what was killed is gone, or has been put behind everything else and had its time.
    /// Where it cannot be put there, as by a worker without the right to, it has to be gone: what
    /// dies in the kernel would share the processor with the bot that is asked next.
    fn make_way(&self) {
        let began = Instant::now();
        let mut is_behind = false;
        while !self.is_gone_within(if is_behind { GRACE } else { SOON }) {
            if is_behind {
                return;
            }
            if began.elapsed() > STRANGE {
                warn!("what was killed neither ends nor can be put behind; its match goes on");
                return;
            }
            is_behind = self.step_back();
        }
    }

    /// Lets what is dying do so on any processor, and there after everything else: whether all of it
    /// does.
    pub(super) fn step_back(&self) -> bool {
        if self.cgroup.as_ref().is_some_and(Cgroup::step_back) {
            return true;
        }
        match &self.inside {
            Inside::Cell(cell) => descendants::step_back(&[cell.pid]),
            Inside::Yard(children, ..) => descendants::step_back(&children.live),
        }
    }

    /// Whether the first process of a jail that a bot has used did not answer in time.
    pub(super) fn is_silent(&self) -> bool {
        matches!(&self.inside, Inside::Cell(cell) if cell.is_silent())
    }

    /// Kills everything if the first process did not answer in time. The bot has brought that about:
    /// it forfeits, and no fault makes its match void.
    fn kill_if_silent(&mut self) {
        if self.is_silent() && !matches!(self.motion, Motion::Dying | Motion::Dead) {
            self.is_stuck = true;
            self.kill();
        }
    }

    /// Whether it was killed since it would not stop, or since what it ran would not end, or since
    /// its jail did not answer any more.
    pub fn is_stuck(&self) -> bool {
        self.is_stuck || self.is_silent()
    }

    /// Waits for what was killed: whether it is gone.
    pub(super) fn is_gone_within(&self, limit: Duration) -> bool {
        match &self.inside {
            Inside::Cell(cell) => cell.is_gone_within(limit),
            Inside::Yard(children, ..) => {
                // Only the group knows the children of children, where they have no namespace.
                let is_empty = || self.cgroup.as_ref().is_none_or(Cgroup::is_empty);
                let is_gone = || children.are_dead() && is_empty();
                wait_until(limit, || Ok(is_gone())).is_ok_and(|gone| gone)
            }
        }
    }
}
