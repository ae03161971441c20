//! Decides why a program did not start. If the bot caused the failure, it forfeits. If the machine
//! did, it is a fault. A bot that is executed once per decision can leave its jail in any state.

use std::io;

use super::super::cgroup::Cgroup;
use super::super::process::StartError;
use super::Jail;
use crate::fault::Fault;

impl Jail {
    /// Why a program did not start, as a text for its author; a fault if the bot did not cause the
    /// failure.
    pub(super) fn start_failure(&mut self, error: StartError) -> Result<String, Fault> {
        if let StartError::Fault(fault) = error {
            return Err(fault);
        }
        // A kill for memory is the more precise cause: it shows whether the bot or the machine ran
        // out.
        if let Some(cause) = self.kill_cause()? {
            return Ok(format!("could not be started: a process of it was {cause}"));
        }
        match error {
            StartError::Refused { program, error } if self.is_machine_failure(&error) => {
                Err(Fault::new(format!("cannot start {program}"), error))
            }
            StartError::Refused { program, error } => {
                let after = if self.was_used { ", after what it did before" } else { "" };
                Ok(format!("{program} could not be started{after}: {error}"))
            }
            _ if self.is_stuck() => {
                Ok("its sandbox stopped responding, after what it did before".to_owned())
            }
            _ if self.was_used => Ok("its sandbox was killed before".to_owned()),
            _ => Err(Fault::new("cannot start a bot", "its sandbox is gone")),
        }
    }

    /// Whether the machine caused an error at the start of a program. Before a bot has used the
    /// jail, that is every error except the program's own. Afterwards, it is every error that a bot
    /// within its limits cannot cause.
    fn is_machine_failure(&self, error: &io::Error) -> bool {
        let group = self.cgroup.as_ref();
        match error.raw_os_error() {
            // Too few descriptors for the worker, a full file table, or a failure to join the
            // control groups.
            Some(libc::EBUSY | libc::EMFILE | libc::ENFILE) => true,
            Some(libc::ENOMEM) => match group.filter(|group| group.limits_memory()) {
                Some(group) => !group.reached_memory_limit(),
                None => !self.was_used,
            },
            Some(libc::EAGAIN) => {
                let is_full = group.and_then(Cgroup::reached_process_limit);
                !(self.was_used && is_full.unwrap_or(true))
            }
            Some(libc::ENOSPC | libc::ETXTBSY) => !self.was_used,
            _ => false,
        }
    }
}
