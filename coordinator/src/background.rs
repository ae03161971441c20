//! Long computations. They leave the processors to short requests: each has a thread of low
//! priority. On a machine with few processors, a computation of a second would otherwise delay all
//! requests of that second.

use std::thread;
use std::time::Duration;

use rustix::process::{getpriority_process, setpriority_process};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::oneshot;

/// The niceness of the threads. A thread of normal priority gets about ten times the time of one
/// with this value, so that a computation also ends on a machine that is always busy.
const NICENESS: i32 = 10;

/// The result of work on a thread of this name, and how much time of a processor it took. The work
/// goes on if the future is dropped, so it holds the permits that bound how much of it there is.
///
/// # Errors
/// If the thread cannot be started, or if the work panics.
pub(crate) async fn compute<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<(T, Duration), String> {
    let (sender, receiver) = oneshot::channel();
    let run = move || {
        // On Linux the priority is that of the calling thread. Work with another priority is
        // correct too.
        let present = getpriority_process(None).unwrap_or_default();
        setpriority_process(None, present.max(NICENESS)).ok();
        let result = work();
        let time = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
        // If the future was dropped, the result is not needed.
        drop(sender.send((result, time)));
    };
    let started = thread::Builder::new().name(name.to_owned()).spawn(run);
    started.map_err(|error| format!("cannot start a thread: {error}"))?;
    receiver.await.map_err(|_| format!("the {name} thread panicked"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_computation_has_low_priority_and_its_caller_does_not() {
        let own = || getpriority_process(None).unwrap();
        let before = own();
        let (priority, time) = compute("test", own).await.unwrap();
        assert_eq!(priority, before.max(NICENESS));
        assert!(time > Duration::ZERO);
        assert_eq!(own(), before);
    }

    #[tokio::test]
    async fn a_panic_is_an_error() {
        let failed = compute("test", || panic!("on purpose")).await;
        assert_eq!(failed, Err::<((), Duration), _>("the test thread panicked".to_owned()));
    }
}
