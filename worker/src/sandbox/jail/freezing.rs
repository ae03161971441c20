//! How a bot is stopped and goes on, and how its end is waited for.

use std::time::{Duration, Instant};

use tracing::warn;

use super::super::cgroup::Cgroup;
use super::super::ipc::InitRequest;
use super::super::limits::{GRACE, Ponder};
use super::super::polling::poll_until;
use super::super::process_tree;
use super::super::reaper::WARN_AFTER;
use super::{Backend, Jail, QUICK_EXIT};
use crate::fault::Fault;

/// How long a stop takes before it counts as slow. Sixty threads on one processor need less.
const SLOW: Duration = Duration::from_millis(500);

/// For how long the stops of one match may be slow in all: afterwards none may be.
pub(super) const MAX_SLOWNESS: Duration = Duration::from_secs(30);

/// Whether what is in a jail runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunState {
    Running,
    /// It was told to stop.
    Stopping,
    /// It stands.
    Stopped,
    /// It was killed, and may be on its way out.
    Killed,
    /// It is gone, or dies in its own time.
    Gone,
}

impl Jail {
    /// Stops the bot, which owes nothing now, unless it may think on. It is not waited for: it
    /// stands, and what it used is exact, after [`Jail::wait_until_idle`] alone.
    pub fn pause(&mut self) -> Result<(), Fault> {
        if self.ponder == Ponder::Allow || self.run_state != RunState::Running {
            return Ok(());
        }
        self.stop()
    }

    /// Lets a bot that rests go on.
    pub fn resume(&mut self) -> Result<(), Fault> {
        match (self.run_state, &self.backend) {
            (RunState::Running, _)
            | (RunState::Killed | RunState::Gone, Backend::Namespaces(_)) => Ok(()),
            _ => self.thaw(),
        }
    }

    /// Stops everything that runs here, and waits until it stands: whether it does.
    pub fn freeze(&mut self) -> Result<bool, Fault> {
        self.stop()?;
        self.wait_until_idle()
    }

    fn stop(&mut self) -> Result<(), Fault> {
        self.run_state = RunState::Stopping;
        match (&self.cgroup, &self.backend) {
            (Some(cgroup), _) if cgroup.can_freeze() => cgroup.freeze()?,
            (_, Backend::Namespaces(jail)) => drop(jail.request(&InitRequest::Stop)?),
            (_, Backend::Children(children, ..)) => children.signal(libc::SIGSTOP),
        }
        self.kill_if_silent();
        Ok(())
    }

    /// Lets everything go on.
    pub fn thaw(&mut self) -> Result<(), Fault> {
        self.run_state = RunState::Running;
        match (&self.cgroup, &self.backend) {
            (Some(cgroup), _) if cgroup.can_freeze() => cgroup.thaw()?,
            (_, Backend::Namespaces(jail)) => drop(jail.request(&InitRequest::Continue)?),
            (_, Backend::Children(children, ..)) => children.signal(libc::SIGCONT),
        }
        self.kill_if_silent();
        Ok(())
    }

    /// Waits until what was told to stop is seen to stand, and what was killed to be gone or to run
    /// after everything else: then nothing of the bot takes a turn from others. One that does not
    /// stop within its time is killed, and false is what comes back.
    pub fn wait_until_idle(&mut self) -> Result<bool, Fault> {
        self.kill_if_silent();
        match self.run_state {
            RunState::Running | RunState::Stopped | RunState::Gone => return Ok(true),
            RunState::Killed => {}
            RunState::Stopping => {
                let stands = self.stands_in_time()?;
                if stands && !self.is_silent() {
                    self.run_state = RunState::Stopped;
                    return Ok(true);
                }
                self.is_stuck = true;
                self.kill();
            }
        }
        self.run_state = RunState::Gone;
        self.make_way();
        Ok(!self.is_stuck())
    }

    /// Waits until everything stands: whether it does in time. A bot that is slow to stop again and
    /// again has less and less time, so that it holds up its match for a while at the most.
    fn stands_in_time(&mut self) -> Result<bool, Fault> {
        let began = Instant::now();
        let stands = poll_until(GRACE.min(SLOW + self.slow_stop_budget), || self.stands())?;
        let slowness = began.elapsed().saturating_sub(SLOW).min(GRACE);
        self.slow_stop_budget = self.slow_stop_budget.saturating_sub(slowness);
        Ok(stands)
    }

    /// Whether everything stands, as far as that can be seen.
    fn stands(&self) -> Result<bool, Fault> {
        match (&self.cgroup, &self.backend) {
            (Some(cgroup), _) if cgroup.can_freeze() => Ok(cgroup.is_frozen()),
            (_, Backend::Namespaces(jail)) => jail.query(&InitRequest::CheckStopped),
            (_, Backend::Children(children, ..)) => {
                let stand = process_tree::groups_are_stopped(&children.live);
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
        while !self.is_gone_after(if is_behind { GRACE } else { QUICK_EXIT }) {
            if is_behind {
                return;
            }
            if began.elapsed() > WARN_AFTER {
                warn!("what was killed neither ends nor can be put behind; its match goes on");
                return;
            }
            is_behind = self.deprioritize();
        }
    }

    /// Lets what is dying do so on any processor, and there after everything else: whether all of it
    /// does.
    pub(super) fn deprioritize(&self) -> bool {
        if self.cgroup.as_ref().is_some_and(Cgroup::deprioritize) {
            return true;
        }
        match &self.backend {
            Backend::Namespaces(jail) => process_tree::deprioritize(&[jail.pid]),
            Backend::Children(children, ..) => process_tree::deprioritize(&children.live),
        }
    }

    /// Whether the first process of a jail that a bot has used did not answer in time.
    pub(super) fn is_silent(&self) -> bool {
        matches!(&self.backend, Backend::Namespaces(jail) if jail.is_silent())
    }

    /// Kills everything if the first process did not answer in time. The bot has brought that about:
    /// it forfeits, and no fault makes its match void.
    fn kill_if_silent(&mut self) {
        if self.is_silent() && !matches!(self.run_state, RunState::Killed | RunState::Gone) {
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
    pub(super) fn is_gone_after(&self, limit: Duration) -> bool {
        match &self.backend {
            Backend::Namespaces(jail) => jail.is_gone_after(limit),
            Backend::Children(children, ..) => {
                // Only the group knows the children of children, where they have no namespace.
                let is_empty = || self.cgroup.as_ref().is_none_or(Cgroup::is_empty);
                let is_gone = || children.have_ended() && is_empty();
                poll_until(limit, || Ok(is_gone())).is_ok_and(|gone| gone)
            }
        }
    }
}
