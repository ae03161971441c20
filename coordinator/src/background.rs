//! Computations that requests do not wait for. They leave the processors to everything else: each
//! has a thread of low priority. On a machine with few processors, a computation of a second would
//! otherwise delay all requests of that second.

use std::thread;

use tokio::sync::oneshot;

/// The niceness of the threads. A thread of normal priority gets about ten times the time of one
/// with this value, so that a computation also ends on a machine that is always busy.
const NICENESS: i32 = 10;

/// The result of work on a thread of this name. The work goes on if the future is dropped.
///
/// # Errors
/// If the thread cannot be started, or if the work panics.
pub(crate) async fn compute<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let (sender, receiver) = oneshot::channel();
    let run = move || {
        // On Linux the priority is that of the calling thread. Work with normal priority is
        // correct too.
        rustix::process::setpriority_process(None, NICENESS).ok();
        // If the future was dropped, the result is not needed.
        drop(sender.send(work()));
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
        let own = || rustix::process::getpriority_process(None).unwrap();
        let before = own();
        assert_eq!(compute("test", own).await, Ok(before.max(NICENESS)));
        assert_eq!(own(), before);
    }

    #[tokio::test]
    async fn a_panic_is_an_error() {
        let failed = compute("test", || panic!("on purpose")).await;
        assert_eq!(failed, Err::<(), _>("the test thread panicked".to_owned()));
    }
}
