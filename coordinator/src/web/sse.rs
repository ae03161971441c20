//! Live updates by server-sent events: fragments of a page, sent again whenever they change.

use std::convert::Infallible;
use std::time::Duration;

use arbiter_replay::without_bidi_controls;
use axum::response::sse::{Event, KeepAlive, Sse};
use maud::Markup;
use tokio_stream::{Stream, StreamExt as _};

use super::session::Session;
use crate::metrics::GaugeGuard;

/// The interval of keep-alive comments. Proxies close silent streams.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Sends the markup that `fragment` renders for each item. The stream ends at the first error or
/// when the items end; the browser then reconnects.
pub fn stream<T, E>(
    items: impl Stream<Item = Result<T, E>> + Send + 'static,
    fragment: impl Fn(&T) -> Markup + Send + 'static,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let events = items.map_while(move |item| {
        let fragment = without_bidi_controls(fragment(&item.ok()?).into_string());
        // The data of an event is one line.
        Some(Ok(Event::default().event("fragment").data(fragment.replace(['\r', '\n'], " "))))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

/// Like [`stream`], and counts the client as a viewer in the metrics.
pub(super) fn viewer_stream<T, E>(
    session: Session,
    items: impl Stream<Item = Result<T, E>> + Send + 'static,
    fragment: impl Fn(&T) -> Markup + Send + 'static,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let Session { service, .. } = session;
    let present = GaugeGuard::new(&service.metrics().live_viewers);
    stream(items, move |item| {
        let _present = &present;
        fragment(item)
    })
}
