//! The slots of a local run: assigns jobs to free slots, and tracks slots that are out of service.

use std::collections::VecDeque;
use std::sync::mpsc;

use arbiter_worker::fault::Fault;

/// The slots of a run and the waiting jobs. Slots and jobs are identified by their positions.
#[derive(Debug)]
pub(crate) struct Slots {
    /// The channel of jobs to each slot.
    jobs: Vec<mpsc::Sender<usize>>,
    /// Free slots.
    idle: Vec<usize>,
    /// Number of slots that wait for killed processes to exit.
    recovering: usize,
    /// Jobs without a slot.
    waiting: VecDeque<usize>,
    /// The fault that stopped the run, if any.
    failed: Option<Fault>,
}

impl Slots {
    /// Creates the state with this number of waiting jobs and without slots.
    pub(crate) fn new(jobs: usize) -> Self {
        let waiting = (0..jobs).collect();
        Self { jobs: Vec::new(), idle: Vec::new(), recovering: 0, waiting, failed: None }
    }

    /// Adds a slot and returns the receiver of its jobs.
    pub(crate) fn open(&mut self) -> mpsc::Receiver<usize> {
        let (sender, receiver) = mpsc::channel();
        self.idle.push(self.jobs.len());
        self.jobs.push(sender);
        receiver
    }

    /// Assigns waiting jobs to free slots.
    pub(crate) fn assign(&mut self) {
        while !self.idle.is_empty()
            && let Some(index) = self.waiting.pop_front()
        {
            let slot = self.idle.remove(0);
            let result = self.jobs[slot].send(index);
            result.expect("a slot receives until its sender is dropped");
        }
    }

    /// Whether a slot is playing, or will play after its recovery.
    pub(crate) fn is_working(&self) -> bool {
        let playing = self.jobs.len() - self.idle.len() - self.recovering;
        playing > 0 || self.recovering > 0 && !self.waiting.is_empty()
    }

    /// Number of slots that are not recovering.
    pub(crate) fn in_service(&self) -> usize {
        self.jobs.len() - self.recovering
    }

    /// Marks `slot` as free.
    pub(crate) fn free(&mut self, slot: usize) {
        self.idle.push(slot);
    }

    /// Marks a slot as waiting for its killed processes to exit.
    pub(crate) fn start_recovery(&mut self) {
        self.recovering += 1;
    }

    /// Marks `slot` as free again: its processes have exited.
    pub(crate) fn end_recovery(&mut self, slot: usize) {
        self.recovering -= 1;
        self.free(slot);
    }

    /// Stops assigning jobs. The first fault is the result of the run.
    pub(crate) fn fail(&mut self, fault: Fault) {
        self.failed.get_or_insert(fault);
        self.finish();
    }

    /// Stops assigning jobs, because the others are not needed.
    pub(crate) fn finish(&mut self) {
        self.waiting.clear();
    }

    /// The result of the run, when no slot is working.
    pub(crate) fn result(self) -> Result<(), Fault> {
        self.failed.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_plays_again_after_recovery() {
        let mut slots = Slots::new(3);
        let first = slots.open();
        let second = slots.open();
        slots.assign();
        assert_eq!((first.try_recv(), second.try_recv()), (Ok(0), Ok(1)));
        slots.start_recovery();
        slots.start_recovery();
        slots.assign();
        assert_eq!(slots.in_service(), 0);
        assert!(slots.is_working(), "a job waits for a recovering slot");
        slots.end_recovery(1);
        slots.assign();
        assert_eq!((first.try_recv().is_err(), second.try_recv()), (true, Ok(2)));
        slots.free(1);
        assert!(!slots.is_working(), "no job waits for the other slot");
        slots.result().unwrap();
    }
}
