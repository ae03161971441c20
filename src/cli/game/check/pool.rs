//! Does numbered pieces of work on all processors.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::problem::Problem;

/// Works from number 0 on until `count` pieces are done, `work` returns `None`, or one fails.
/// Returns the results in order.
///
/// # Errors
/// The problem with the lowest number.
pub(super) fn run<T: Send>(
    count: usize,
    work: impl Fn(usize) -> Result<Option<T>, Problem> + Sync,
) -> Result<Vec<T>, Problem> {
    let next = AtomicUsize::new(0);
    let ended = AtomicBool::new(false);
    let done = Mutex::new(Vec::new());
    let threads = thread::available_parallelism().map_or(1, usize::from).min(count);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    let result = work(number).transpose();
                    if !matches!(result, Some(Ok(_))) {
                        ended.store(true, Ordering::Relaxed);
                    }
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done.extend(result.map(|result| (number, result)));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}
