//! Computations that would delay requests. Short ones, and replays of rounds, which read the
//! database meanwhile, run on the threads for blocking work. Statistics and refreshed leaderboards
//! have a thread of low priority each, and leave the processors to short requests: on a machine
//! with few processors, a computation of a second would otherwise delay all requests of that
//! second.

use std::thread;
use std::time::Duration;

use rustix::process::{getpriority_process, setpriority_process};
use rustix::time::{ClockId, clock_gettime};
use sqlx::Error;
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

/// The result of work on a thread for blocking work, with the errors of the database.
///
/// # Errors
/// Those of the work. A panic is an error of what was read, which the database did not cause.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> sqlx::Result<T> + Send + 'static,
) -> sqlx::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        if error.is_panic() {
            Error::Decode("a computation panicked".into())
        } else {
            // The coordinator is stopping.
            Error::WorkerCrashed
        }
    })?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_of_short_work_is_not_taken_for_a_failure_of_the_database() {
        let failed = aside::<()>(|| panic!("on purpose")).await;
        assert!(matches!(failed, Err(Error::Decode(_))));
    }

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
