//! Streams that never end by themselves, across restarts of the coordinator.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tonic::{Response, Status, Streaming};

use super::client::is_lost;
use crate::failure::Failure;

/// How long is waited before the first and between all later attempts to find a coordinator again.
const WAITS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// How long a coordinator may be away: longer than an upgrade takes.
const AWAY: Duration = Duration::from_secs(600);

/// Shows `see` what comes from the stream that `open` opens, until it breaks off with a result.
/// A stream that is lost is opened again, and `tell` tells people that this may take a while; so is
/// one that does not open although the coordinator `was_there` before.
///
/// # Errors
/// If the coordinator was never there, refuses, or stays away; or if `see` fails.
pub(super) async fn follow<T, B>(
    was_there: bool,
    mut open: impl AsyncFnMut() -> Result<Response<Streaming<T>>, Status>,
    mut see: impl FnMut(T) -> Result<ControlFlow<B>, Failure>,
    tell: impl Fn(&str),
) -> Result<B, Failure> {
    let mut seen = was_there;
    // Since when there is no answer, and how long to wait before the next attempt.
    let mut away = None;
    loop {
        let lost = match open().await {
            Ok(opened) => {
                let mut messages = opened.into_inner();
                loop {
                    match messages.message().await {
                        Ok(Some(message)) => {
                            (seen, away) = (true, None);
                            if let ControlFlow::Break(result) = see(message)? {
                                return Ok(result);
                            }
                        }
                        // A coordinator that stops ends its streams.
                        Ok(None) => break Status::unavailable("it ended the stream"),
                        Err(status) => break status,
                    }
                }
            }
            Err(status) => status,
        };
        if !is_lost(&lost) || !seen {
            return Err(lost.into());
        }
        let (since, wait) = *away.get_or_insert_with(|| {
            tell("the coordinator is gone; waiting until it is back");
            (Instant::now(), WAITS.0)
        });
        if since.elapsed() > AWAY {
            return Err(lost.into());
        }
        tokio::time::sleep(wait).await;
        away = Some((since, (wait * 2).min(WAITS.1)));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// What following comes to where the coordinator is away, and then refuses; and how often it
    /// was asked.
    async fn away_and_refusing(was_there: bool) -> (String, u32) {
        let asked = Cell::new(0);
        let open = async || {
            asked.set(asked.get() + 1);
            Err(match asked.get() {
                1 => Status::unavailable("it is away"),
                _ => Status::permission_denied("it refuses"),
            })
        };
        let see = |(): ()| Ok(ControlFlow::Continue::<()>(()));
        let failure = follow(was_there, open, see, |_| {}).await.unwrap_err();
        (format!("{failure:?}"), asked.get())
    }

    #[tokio::test]
    async fn only_a_coordinator_that_was_there_is_waited_for() {
        let (told, asked) = away_and_refusing(false).await;
        assert!(told.contains("it is away") && asked == 1, "{told}");
        let (told, asked) = away_and_refusing(true).await;
        assert!(told.contains("it refuses") && asked == 2, "{told}");
    }
}
