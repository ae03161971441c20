//! Traces: they connect the work on a submission across programs and days, up to the leaderboard.
//!
//! # Theory of operation
//!
//! A trace is a tree of *spans*. A span begins and ends in one process, and is exported when it
//! ends. No span lasts as long as an edition, because the process may exit before the edition ends.
//! Later work is a child of a span that has ended. The *context* of that span, a W3C `traceparent`,
//! is stored with the version or the edition. Messages of lots, trials and reports carry it to
//! workers and back.
//!
//! The `OpenTelemetry` provider of the program exports the spans. Without a provider ([`enable`]
//! was not called) there are no spans: nothing is measured, stored or sent.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use opentelemetry::global::{self, BoxedSpan};
use opentelemetry::trace::{
    Link, Span as _, SpanBuilder, SpanContext, SpanId, Status, TraceContextExt as _, TraceFlags,
    TraceId, TraceState,
};
use opentelemetry::{Context, KeyValue, Value};
use thiserror::Error;

/// The instrumentation scope of all spans.
const SCOPE: &str = "arbiter";
/// The supported version of `traceparent`.
const VERSION: &str = "00";

static ENABLED: AtomicBool = AtomicBool::new(false);

/// Enables spans. Call it after setting a provider.
pub fn enable() {
    ENABLED.store(true, Ordering::Relaxed);
}

/// Whether spans are enabled.
pub fn is_enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// The parent of later spans; as text a `traceparent`.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceParent(SpanContext);

impl TraceParent {
    /// Parses the parent in a message, if spans are enabled. Ignores an invalid parent, because a
    /// broken trace is no reason to refuse a message.
    pub fn from_message(text: &str) -> Option<Self> {
        if is_enabled() { text.parse().ok() } else { None }
    }

    /// The trace id for logs: 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        self.0.trace_id().to_string()
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trace = self.0.trace_id();
        let span = self.0.span_id();
        write!(f, "{VERSION}-{trace}-{span}-{:02x}", self.0.trace_flags().to_u8())
    }
}

/// A text that is not a `traceparent`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a traceparent of version 00")]
pub struct TraceParentError(pub String);

impl FromStr for TraceParent {
    type Err = TraceParentError;

    fn from_str(text: &str) -> Result<Self, TraceParentError> {
        parse(text).ok_or_else(|| TraceParentError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<TraceParent> {
    let [VERSION, trace, span, flags] = text.split('-').collect::<Vec<_>>()[..] else {
        return None;
    };
    let digits = |text: &str, length| {
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    if !digits(trace, 32) || !digits(span, 16) || !digits(flags, 2) {
        return None;
    }
    let trace = TraceId::from_hex(trace).ok()?;
    let span = SpanId::from_hex(span).ok()?;
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?);
    let context = SpanContext::new(trace, span, flags, true, TraceState::NONE);
    context.is_valid().then_some(TraceParent(context))
}

/// A span, from [`Span::begin`] until it is dropped; a no-op if spans are not enabled.
#[derive(Debug)]
pub struct Span(Option<BoxedSpan>);

impl Span {
    /// A no-op span.
    pub const NONE: Self = Self(None);

    /// Begins a child of `parent`, or the first span of a trace.
    pub fn begin(name: &'static str, parent: Option<&TraceParent>) -> Self {
        Self::build(name, parent, &[], None)
    }

    /// Begins a child of `parent`; a no-op without a parent.
    pub fn follow(name: &'static str, parent: Option<&TraceParent>) -> Self {
        if parent.is_some() { Self::begin(name, parent) } else { Self::NONE }
    }

    /// Begins a child of the first parent, with links to the others.
    pub fn join(name: &'static str, parents: &[TraceParent]) -> Self {
        let (parent, others) = match parents {
            [parent, others @ ..] => (Some(parent), others),
            [] => (None, &[][..]),
        };
        Self::build(name, parent, others, None)
    }

    /// Like [`Self::follow`], with a start time in the past.
    pub fn since(name: &'static str, parent: Option<&TraceParent>, start: SystemTime) -> Self {
        if parent.is_some() { Self::build(name, parent, &[], Some(start)) } else { Self::NONE }
    }

    fn build(
        name: &'static str,
        parent: Option<&TraceParent>,
        others: &[TraceParent],
        start: Option<SystemTime>,
    ) -> Self {
        if !is_enabled() {
            return Self::NONE;
        }
        let parent_context = match parent {
            Some(parent) => Context::new().with_remote_span_context(parent.0.clone()),
            None => Context::new(),
        };
        let links = others.iter().map(|other| Link::with_context(other.0.clone())).collect();
        let mut builder = SpanBuilder::from_name(name).with_links(links);
        builder.start_time = start;
        Self(Some(builder.start_with_context(&global::tracer(SCOPE), &parent_context)))
    }

    /// Sets an attribute.
    pub fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        if let Some(span) = &mut self.0 {
            span.set_attribute(KeyValue::new(key, value));
        }
    }

    /// Marks the span as failed, with the reason.
    pub fn fail(&mut self, reason: impl fmt::Display) {
        if let Some(span) = &mut self.0 {
            span.set_status(Status::error(reason.to_string()));
        }
    }

    /// The context of the span, for its children.
    pub fn context(&self) -> Option<TraceParent> {
        let context = self.0.as_ref().map(|span| span.span_context().clone());
        context.filter(SpanContext::is_valid).map(TraceParent)
    }

    /// The context as text for a message; empty if spans are not enabled.
    pub fn to_message(&self) -> String {
        self.context().map_or_else(String::new, |context| context.to_string())
    }

    /// Its trace id for logs.
    pub fn trace_id(&self) -> Option<String> {
        self.context().map(|context| context.trace_id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_parents_round_trip() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent: TraceParent = text.parse().unwrap();
        assert_eq!(parent.to_string(), text);
        assert_eq!(parent.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        for text in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7a-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert!(text.parse::<TraceParent>().is_err(), "{text}");
        }
    }

    #[test]
    fn spans_are_disabled_by_default() {
        let span = Span::begin("nothing", None);
        assert_eq!((span.context(), span.to_message()), (None, String::new()));
    }
}
