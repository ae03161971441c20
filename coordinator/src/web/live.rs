//! Live numbers: fragments of a page, sent again whenever they change.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use maud::Markup;
use tokio_stream::{Stream, StreamExt as _};

use super::session::Session;
use crate::metrics::GaugeGuard;

/// How often a silent stream says that it is still there: proxies end those that do not.
const ALIVE: Duration = Duration::from_secs(15);

/// Sends what `fragment` makes of each answer. It ends with the answers, and with the coordinator;
/// the browser then comes back by itself.
pub fn stream<T, E>(
    answers: impl Stream<Item = Result<T, E>> + Send + 'static,
    fragment: impl Fn(&T) -> Markup + Send + 'static,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let events = answers.map_while(move |answer| {
        let fragment = fragment(&answer.ok()?).into_string();
        // Events are lines: what is more than one of them is not sent as one.
        Some(Ok(Event::default().event("fragment").data(fragment.replace(['\r', '\n'], " "))))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE))
}

/// The same for somebody who is counted as a viewer meanwhile.
pub(super) fn watched<T, E>(
    session: Session,
    answers: impl Stream<Item = Result<T, E>> + Send + 'static,
    fragment: impl Fn(&T) -> Markup + Send + 'static,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let Session { service, .. } = session;
    let present = GaugeGuard::new(&service.metrics().live_viewers);
    stream(answers, move |answer| {
        let _present = &present;
        fragment(answer)
    })
}
