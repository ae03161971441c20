//! Stops and resumes bots, and waits for their end.

use std::time::{Duration, Instant};

use tracing::warn;

use super::super::cgroup::Cgroup;
use super::super::ipc::InitRequest;
use super::super::jail_config::{GRACE, Ponder};
use super::super::polling::poll_until;
use super::super::process_tree;
use super::super::reaper::WARN_AFTER;
use super::{Backend, Jail, QUICK_EXIT};
use crate::fault::Fault;

/// After this time a stop counts as slow. Sixty threads on one processor need less.
const SLOW: Duration = Duration::from_millis(500);

/// How long stops may be slow in one match, in all. Afterwards no stop may be slow.
pub(super) const MAX_SLOWNESS: Duration = Duration::from_secs(30);

/// Whether the processes of a jail run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunState {
    Running,
    /// A stop was requested.
    Stopping,
    /// All are stopped.
    Stopped,
    /// They were killed, and may still be exiting.
    Killed,
    /// They are gone, or exit with the lowest priority.
    Gone,
}

impl Jail {
    /// Stops the bot while it owes no reply, unless it may ponder. It does not wait: only after
    /// [`Jail::wait_until_idle`] is the bot stopped and its processor time exact.
    pub fn pause(&mut self) -> Result<(), Fault> {
        if self.ponder == Ponder::Allow || self.run_state != RunState::Running {
            return Ok(());
        }
        self.stop()
    }

    /// Resumes a paused bot.
    pub fn resume(&mut self) -> Result<(), Fault> {
        match (self.run_state, &self.backend) {
            (RunState::Running, _)
            | (RunState::Killed | RunState::Gone, Backend::Namespaces(_)) => Ok(()),
            _ => self.thaw(),
        }
    }

    /// Stops everything that runs here, and waits until it is stopped. Returns whether it is.
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
        self.kill_if_unresponsive();
        Ok(())
    }

    /// Continues everything.
    pub fn thaw(&mut self) -> Result<(), Fault> {
        self.run_state = RunState::Running;
        match (&self.cgroup, &self.backend) {
            (Some(cgroup), _) if cgroup.can_freeze() => cgroup.thaw()?,
            (_, Backend::Namespaces(jail)) => drop(jail.request(&InitRequest::Continue)?),
            (_, Backend::Children(children, ..)) => children.signal(libc::SIGCONT),
        }
        self.kill_if_unresponsive();
        Ok(())
    }

    /// Waits until a stopped bot no longer runs, and a killed one is gone or has the lowest priority.
    /// Then the bot takes no processor time from others. A bot that does not stop in time is killed;
    /// then this returns false.
    pub fn wait_until_idle(&mut self) -> Result<bool, Fault> {
        self.kill_if_unresponsive();
        match self.run_state {
            RunState::Running | RunState::Stopped | RunState::Gone => return Ok(true),
            RunState::Killed => {}
            RunState::Stopping => {
                let stopped = self.stops_in_time()?;
                if stopped && !self.is_unresponsive() {
                    self.run_state = RunState::Stopped;
                    return Ok(true);
                }
                self.is_stuck = true;
                self.kill();
            }
        }
        self.run_state = RunState::Gone;
        self.wait_for_exit();
        Ok(!self.is_stuck())
    }

    /// Waits until everything is stopped. Returns whether that happened in time. The time limit shrinks
    /// with every slow stop, so that a bot cannot delay its match much.
    fn stops_in_time(&mut self) -> Result<bool, Fault> {
        let began = Instant::now();
        let stopped = poll_until(GRACE.min(SLOW + self.slow_stop_budget), || self.is_stopped())?;
        let slowness = began.elapsed().saturating_sub(SLOW).min(GRACE);
        self.slow_stop_budget = self.slow_stop_budget.saturating_sub(slowness);
        Ok(stopped)
    }

    /// Whether everything is stopped, as far as that is known.
    fn is_stopped(&self) -> Result<bool, Fault> {
        match (&self.cgroup, &self.backend) {
            (Some(cgroup), _) if cgroup.can_freeze() => Ok(cgroup.is_frozen()),
            (_, Backend::Namespaces(jail)) => jail.query(&InitRequest::CheckStopped),
            (_, Backend::Children(children, ..)) => {
                let is_stopped = process_tree::groups_are_stopped(&children.live);
                if !is_stopped {
                    // A process that exited may have woken others.
                    children.signal(libc::SIGSTOP);
                }
                Ok(is_stopped)
            }
        }
    }

    /// Waits until killed processes are gone, or have the lowest priority and had their time. If their
    /// priority cannot be lowered, as without the privilege, they must be gone: processes that die in
    /// the kernel would share the processor with the bot that is asked next.
    fn wait_for_exit(&self) {
        let began = Instant::now();
        let mut is_deprioritized = false;
        while !self.is_gone_after(if is_deprioritized { GRACE } else { QUICK_EXIT }) {
            if is_deprioritized {
                return;
            }
            if began.elapsed() > WARN_AFTER {
                warn!("killed processes neither end nor can be deprioritized; the match continues");
                return;
            }
            is_deprioritized = self.deprioritize();
        }
    }

    /// Lets dying processes run on any processor, with the lowest priority. Returns whether that worked
    /// for all.
    pub(super) fn deprioritize(&self) -> bool {
        if self.cgroup.as_ref().is_some_and(Cgroup::deprioritize) {
            return true;
        }
        match &self.backend {
            Backend::Namespaces(jail) => process_tree::deprioritize(&[jail.pid]),
            Backend::Children(children, ..) => process_tree::deprioritize(&children.live),
        }
    }

    /// Whether init did not respond in time after a bot had used the jail.
    pub(super) fn is_unresponsive(&self) -> bool {
        matches!(&self.backend, Backend::Namespaces(jail) if jail.is_unresponsive())
    }

    /// Kills everything if init did not respond in time. That is the bot's doing: the bot forfeits, and
    /// its match is no fault.
    fn kill_if_unresponsive(&mut self) {
        if self.is_unresponsive() && !matches!(self.run_state, RunState::Killed | RunState::Gone) {
            self.is_stuck = true;
            self.kill();
        }
    }

    /// Whether it was killed because it did not stop, its processes did not end, or its init did not
    /// respond.
    pub fn is_stuck(&self) -> bool {
        self.is_stuck || self.is_unresponsive()
    }

    /// Waits for killed processes. Returns whether they are gone.
    pub(super) fn is_gone_after(&self, limit: Duration) -> bool {
        match &self.backend {
            Backend::Namespaces(jail) => jail.is_gone_after(limit),
            Backend::Children(children, ..) => {
                // Without a namespace, only the control group knows grandchildren.
                let is_empty = || self.cgroup.as_ref().is_none_or(Cgroup::is_empty);
                let is_gone = || children.have_ended() && is_empty();
                poll_until(limit, || Ok(is_gone())).is_ok_and(|gone| gone)
            }
        }
    }
}
