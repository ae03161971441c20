//! Stops and resumes bots, and waits until they have ended.

use std::time::{Duration, Instant};

use tracing::warn;

use super::super::cgroup::Cgroup;
use super::super::ipc::InitRequest;
use super::super::jail_config::{GRACE, Ponder};
use super::super::polling::poll_until;
use super::super::process_tree::{self, ThreadSample};
use super::super::reaper::WARN_AFTER;
use super::{Backend, CLOSE_TIMEOUT, Jail, MAX_CLOSE_TIME, QUICK_EXIT};
use crate::fault::Fault;

/// After this time a stop counts as slow. Sixty threads on one processor need less.
const SLOW: Duration = Duration::from_millis(500);

/// The interval between two looks at processes that die slowly.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// The total time by which stops may be slow in one match. After that no stop may be slow.
pub(super) const MAX_SLOWNESS: Duration = Duration::from_secs(30);

/// Whether the processes of a jail run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunState {
    Running,
    /// A stop was requested.
    Stopping,
    /// All are stopped.
    Stopped,
    /// All were killed, and some may still be exiting.
    Killed,
    /// All are gone, or are exiting with the lowest priority.
    Gone,
}

impl Jail {
    /// Stops the bot while the referee does not wait for its reply, unless the bot may ponder. This
    /// call does not wait. The bot is stopped, and its processor time exact, after
    /// [`Jail::wait_until_idle`].
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

    /// Stops all processes of the jail and waits for that. Returns whether all are stopped.
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

    /// Continues all processes of the jail.
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

    /// Waits until a stopped bot no longer runs, and a killed one is gone or has the lowest
    /// priority. After that the bot takes no processor time from other bots. A bot that does not
    /// stop in time is killed, and this returns false.
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

    /// Waits until all processes are stopped. Returns whether they stopped in time. The time limit
    /// shrinks with every slow stop, so that a bot cannot delay its match much.
    fn stops_in_time(&mut self) -> Result<bool, Fault> {
        let start_time = Instant::now();
        let stopped = poll_until(GRACE.min(SLOW + self.slow_stop_budget), || self.is_stopped())?;
        let slowness = start_time.elapsed().saturating_sub(SLOW).min(GRACE);
        self.slow_stop_budget = self.slow_stop_budget.saturating_sub(slowness);
        Ok(stopped)
    }

    /// Whether all observable processes are stopped.
    fn is_stopped(&self) -> Result<bool, Fault> {
        match (&self.cgroup, &self.backend) {
            (Some(cgroup), _) if cgroup.can_freeze() => Ok(cgroup.is_frozen()),
            (_, Backend::Namespaces(jail)) => jail.query(&InitRequest::CheckStopped),
            (_, Backend::Children(children, ..)) => {
                let is_stopped = process_tree::groups_are_stopped(&children.live);
                if !is_stopped {
                    // A process that exited may have continued others.
                    children.signal(libc::SIGSTOP);
                }
                Ok(is_stopped)
            }
        }
    }

    /// Waits until killed processes are gone, or have run with the lowest priority for [`GRACE`].
    /// Without the privilege to lower their priority, it waits until they are gone: processes that
    /// die in the kernel would share the processor with the bot that plays next.
    fn wait_for_exit(&self) {
        let start_time = Instant::now();
        let mut is_deprioritized = false;
        while !self.is_gone_after(if is_deprioritized { GRACE } else { QUICK_EXIT }) {
            if is_deprioritized {
                return;
            }
            if start_time.elapsed() > WARN_AFTER {
                warn!(
                    "killed processes do not end and cannot be deprioritized; the match continues"
                );
                return;
            }
            is_deprioritized = self.deprioritize();
        }
    }

    /// Moves dying processes to the lowest priority, on any processor. Returns whether that worked
    /// for all.
    pub(super) fn deprioritize(&self) -> bool {
        if self.cgroup.as_ref().is_some_and(Cgroup::deprioritize) {
            return true;
        }
        process_tree::deprioritize(self.threads_below())
    }

    /// The threads of the first processes and their descendants. Without a namespace, processes
    /// that lost their parent are missing.
    fn threads_below(&self) -> Vec<libc::pid_t> {
        match &self.backend {
            Backend::Namespaces(jail) => process_tree::threads(&[jail.pid]),
            Backend::Children(children, ..) => process_tree::threads(&children.live),
        }
    }

    fn sample(&self) -> ThreadSample {
        let in_cgroup = self.cgroup.as_ref().and_then(Cgroup::threads);
        ThreadSample::take(&in_cgroup.unwrap_or_else(|| self.threads_below()))
    }

    /// Waits for killed processes that have the lowest priority. Returns whether they are gone
    /// before they could use [`CLOSE_TIMEOUT`], or [`MAX_CLOSE_TIME`] has passed. The time in which
    /// they wait for a processor is not theirs: on a busy machine any bot would be too slow.
    pub(super) fn dies_in_time(&self) -> bool {
        let start_time = Instant::now();
        let mut before = self.sample();
        let mut look_time = start_time;
        let mut used = Duration::ZERO;
        while used < CLOSE_TIMEOUT && start_time.elapsed() < MAX_CLOSE_TIME {
            if self.is_gone_after(LOOK_INTERVAL) {
                return true;
            }
            let now = self.sample();
            used += now.usable_time(&before, look_time.elapsed());
            (before, look_time) = (now, Instant::now());
        }
        false
    }

    /// Whether init did not respond in time after a bot had used the jail.
    pub(super) fn is_unresponsive(&self) -> bool {
        matches!(&self.backend, Backend::Namespaces(jail) if jail.is_unresponsive())
    }

    /// Kills everything if init did not respond in time. The bot caused that, so the bot forfeits
    /// and the match is not a fault.
    fn kill_if_unresponsive(&mut self) {
        if self.is_unresponsive() && !matches!(self.run_state, RunState::Killed | RunState::Gone) {
            self.is_stuck = true;
            self.kill();
        }
    }

    /// Whether the jail was killed because it did not stop, its processes did not end, or its init
    /// did not respond.
    pub fn is_stuck(&self) -> bool {
        self.is_stuck || self.is_unresponsive()
    }

    /// Waits for killed processes. Returns whether they are gone.
    pub(super) fn is_gone_after(&self, limit: Duration) -> bool {
        match &self.backend {
            Backend::Namespaces(jail) => jail.is_gone_after(limit),
            Backend::Children(children, ..) => {
                // Without a namespace, only the control group lists grandchildren.
                let is_empty = || self.cgroup.as_ref().is_none_or(Cgroup::is_empty);
                let is_gone = || children.have_ended() && is_empty();
                poll_until(limit, || Ok(is_gone())).is_ok_and(|gone| gone)
            }
        }
    }
}
