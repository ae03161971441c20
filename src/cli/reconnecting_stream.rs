//! Reads a server stream and reconnects when the coordinator restarts.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tonic::{Response, Status, Streaming};

use super::client::is_lost;
use crate::failure::Failure;

/// The delay before the first reconnection attempt; it doubles up to [`MAX_DELAY`].
const FIRST_DELAY: Duration = Duration::from_millis(200);
const MAX_DELAY: Duration = Duration::from_secs(5);

/// How long to try to reconnect: longer than an upgrade takes.
const MAX_OUTAGE: Duration = Duration::from_secs(600);

/// Passes each message of the stream that `open` opens to `handle`, until `handle` breaks with a
/// result. Reconnects when the stream is lost, and warns the user once through `warn`. A first
/// `open` that fails is retried only if `was_connected`.
///
/// # Errors
/// If the first connection fails, the coordinator refuses or stays unreachable, or `handle` fails.
pub(super) async fn follow<T, B>(
    was_connected: bool,
    mut open: impl AsyncFnMut() -> Result<Response<Streaming<T>>, Status>,
    mut handle: impl FnMut(T) -> Result<ControlFlow<B>, Failure>,
    warn: impl Fn(&str),
) -> Result<B, Failure> {
    let mut connected_before = was_connected;
    // When the connection was lost, and the delay before the next attempt.
    let mut outage = None;
    loop {
        let status = match open().await {
            Ok(response) => {
                let mut messages = response.into_inner();
                loop {
                    match messages.message().await {
                        Ok(Some(message)) => {
                            connected_before = true;
                            outage = None;
                            if let ControlFlow::Break(result) = handle(message)? {
                                return Ok(result);
                            }
                        }
                        // A stopping coordinator ends its streams.
                        Ok(None) => break Status::unavailable("the coordinator ended the stream"),
                        Err(status) => break status,
                    }
                }
            }
            Err(status) => status,
        };
        if !is_lost(&status) || !connected_before {
            return Err(status.into());
        }
        let (since, delay) = *outage.get_or_insert_with(|| {
            warn("lost the connection to the coordinator; reconnecting");
            (Instant::now(), FIRST_DELAY)
        });
        if since.elapsed() > MAX_OUTAGE {
            return Err(status.into());
        }
        tokio::time::sleep(delay).await;
        outage = Some((since, (delay * 2).min(MAX_DELAY)));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Follows a coordinator that is first unreachable and then refuses. Returns the failure and
    /// the number of attempts.
    async fn follow_unreachable_then_refusing(was_connected: bool) -> (String, u32) {
        let attempts = Cell::new(0);
        let open = async || {
            attempts.set(attempts.get() + 1);
            Err(match attempts.get() {
                1 => Status::unavailable("it is away"),
                _ => Status::permission_denied("it refuses"),
            })
        };
        let handle = |(): ()| Ok(ControlFlow::Continue::<()>(()));
        let failure = follow(was_connected, open, handle, |_| {}).await.unwrap_err();
        (format!("{failure:?}"), attempts.get())
    }

    #[tokio::test]
    async fn only_a_coordinator_that_was_connected_is_retried() {
        let (failure, attempts) = follow_unreachable_then_refusing(false).await;
        assert!(failure.contains("it is away") && attempts == 1, "{failure}");
        let (failure, attempts) = follow_unreachable_then_refusing(true).await;
        assert!(failure.contains("it refuses") && attempts == 2, "{failure}");
    }
}
