//! The slots of a local run: who plays what next, who waits, and who is out of service.

use std::collections::VecDeque;
use std::sync::mpsc;

use arbiter_worker::fault::Fault;

/// The slots of a run, and the jobs that are still to be handed to them. Slots and jobs are known
/// by their positions.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Where each slot hears its next job.
    orders: Vec<mpsc::Sender<usize>>,
    /// Slots that have nothing to do.
    idle: Vec<usize>,
    /// How many slots wait for what they played to be gone.
    recovering: usize,
    /// Jobs to be handed out.
    waiting: VecDeque<usize>,
    /// Why no more jobs are handed out, if they are not.
    failed: Option<Fault>,
}

impl Slots {
    /// No slots yet, and so many jobs.
    pub(crate) fn new(jobs: usize) -> Self {
        let orders = Vec::new();
        let idle = Vec::new();
        let waiting = (0..jobs).collect();
        Self { orders, idle, recovering: 0, waiting, failed: None }
    }

    /// Adds a slot: where it hears which jobs to play.
    pub(crate) fn open(&mut self) -> mpsc::Receiver<usize> {
        let (order, orders) = mpsc::channel();
        self.idle.push(self.orders.len());
        self.orders.push(order);
        orders
    }

    /// Hands jobs to slots, as long as there are both.
    pub(crate) fn hand_out(&mut self) {
        while !self.idle.is_empty()
            && let Some(index) = self.waiting.pop_front()
        {
            let slot = self.idle.remove(0);
            let told = self.orders[slot].send(index);
            told.expect("a slot hears as long as there is somebody to tell it");
        }
    }

    /// Whether some slot is at work, or will be, and will tell what came of it.
    pub(crate) fn at_work(&self) -> bool {
        let playing = self.orders.len() - self.idle.len() - self.recovering;
        playing > 0 || self.recovering > 0 && !self.waiting.is_empty()
    }

    /// How many slots there are to play in.
    pub(crate) fn in_service(&self) -> usize {
        self.orders.len() - self.recovering
    }

    /// `slot` is ready for its next job.
    pub(crate) fn finished(&mut self, slot: usize) {
        self.idle.push(slot);
    }

    /// A slot has done its job, and waits for what it played to be gone.
    pub(crate) fn recovers(&mut self) {
        self.recovering += 1;
    }

    /// What `slot` played is gone.
    pub(crate) fn recovered(&mut self, slot: usize) {
        self.recovering -= 1;
        self.finished(slot);
    }

    /// Hands nothing out any more; of several reasons the first one counts.
    pub(crate) fn give_up(&mut self, fault: Fault) {
        self.failed.get_or_insert(fault);
        self.waiting.clear();
    }

    /// How it ended, when nobody is at work any more.
    pub(crate) fn end(self) -> Result<(), Fault> {
        self.failed.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_recovers_plays_again() {
        let mut slots = Slots::new(3);
        let one = slots.open();
        let two = slots.open();
        slots.hand_out();
        assert_eq!((one.try_recv(), two.try_recv()), (Ok(0), Ok(1)));
        slots.recovers();
        slots.recovers();
        slots.hand_out();
        assert_eq!(slots.in_service(), 0);
        assert!(slots.at_work(), "a job waits, and a slot will be there for it");
        slots.recovered(1);
        slots.hand_out();
        assert_eq!((one.try_recv().is_err(), two.try_recv()), (true, Ok(2)));
        slots.finished(1);
        assert!(!slots.at_work(), "nobody waits for the other slot");
        slots.end().unwrap();
    }
}
