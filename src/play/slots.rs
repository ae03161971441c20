//! The slots of a local run: who plays what next, who waits, and who is out of service.

use std::collections::VecDeque;
use std::sync::mpsc;

use arbiter_worker::fault::Fault;

/// The slots of a run, and the jobs that are still to be handed to them. Slots and jobs are known
/// by their positions.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Where each slot hears its next job; none if it is out of service.
    orders: Vec<Option<mpsc::Sender<usize>>>,
    /// Slots that have nothing to do.
    idle: Vec<usize>,
    /// Jobs to be handed out.
    waiting: VecDeque<usize>,
    /// Why no more jobs are handed out, if they are not.
    failed: Option<Fault>,
}

impl Slots {
    /// No slots yet, and so many jobs.
    pub(crate) fn new(jobs: usize) -> Self {
        let waiting = (0..jobs).collect();
        Self { orders: Vec::new(), idle: Vec::new(), waiting, failed: None }
    }

    /// Adds a slot: where it hears which jobs to play.
    pub(crate) fn open(&mut self) -> mpsc::Receiver<usize> {
        let (order, orders) = mpsc::channel();
        self.idle.push(self.orders.len());
        self.orders.push(Some(order));
        orders
    }

    /// Hands jobs to slots, as long as there are both.
    pub(crate) fn hand_out(&mut self) {
        while !self.idle.is_empty()
            && let Some(index) = self.waiting.pop_front()
        {
            let slot = self.idle.remove(0);
            let order = self.orders[slot].as_ref().expect("an idle slot is in service");
            order.send(index).expect("a slot hears as long as there is somebody to tell it");
        }
    }

    /// Whether some slot is at work, and will tell what came of it.
    pub(crate) fn at_work(&self) -> bool {
        self.idle.len() < self.in_service()
    }

    /// How many slots there are to play in.
    pub(crate) fn in_service(&self) -> usize {
        self.orders.iter().flatten().count()
    }

    /// `slot` is ready for its next job.
    pub(crate) fn finished(&mut self, slot: usize) {
        self.idle.push(slot);
    }

    /// Takes `slot` out of service; its job is for another, if there is one.
    pub(crate) fn retire(&mut self, slot: usize, index: usize, fault: Fault) {
        self.orders[slot] = None;
        if self.in_service() == 0 {
            self.give_up(fault);
        } else if self.failed.is_none() {
            self.waiting.push_front(index);
        }
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

    fn unclean() -> Fault {
        Fault::Unclean { what: "cannot remove a group".to_owned(), cause: "busy".to_owned() }
    }

    #[test]
    fn what_a_retired_slot_leaves_is_done_by_another() {
        let mut slots = Slots::new(3);
        let (one, two) = (slots.open(), slots.open());
        slots.hand_out();
        assert_eq!((one.try_recv(), two.try_recv()), (Ok(0), Ok(1)));
        slots.finished(0);
        slots.hand_out();
        assert_eq!(one.try_recv(), Ok(2));
        slots.finished(0);
        slots.hand_out();
        assert!(slots.at_work(), "the other one has not told yet");
        slots.retire(1, 1, unclean());
        slots.hand_out();
        assert_eq!(one.try_recv(), Ok(1));
        assert!(two.recv().is_err(), "nobody gives orders to a retired slot");
        slots.finished(0);
        assert!(!slots.at_work());
        slots.end().unwrap();
    }

    #[test]
    fn a_run_ends_with_its_last_slot() {
        let mut slots = Slots::new(3);
        let orders = [slots.open(), slots.open()];
        slots.hand_out();
        slots.retire(0, 0, unclean());
        slots.retire(1, 1, unclean());
        assert!(!slots.at_work());
        assert!(orders.iter().all(|orders| orders.try_iter().count() == 1));
        assert!(slots.end().is_err_and(|fault| fault.is_unclean()));
    }
}
