//! Traces: they follow a submission to the leaderboard, across programs and days.
//!
//! # Theory of operation
//!
//! A trace is a tree of *spans*. A span begins and ends in one process, and is exported when it ends.
//! No span stays open for as long as an edition takes, because the process may not live that long.
//! Later work is a child of a span that has ended: the *context* of that span, a W3C `traceparent`, is
//! stored with the version or the edition, and goes to workers and back in the messages of lots,
//! trials and reports.
//!
//! The `OpenTelemetry` provider of the program exports the spans. Without a provider ([`turn_on`] was
//! not called) there are no spans: nothing is measured, stored or sent.

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

static ON: AtomicBool = AtomicBool::new(false);

/// Turns spans on, once there is a provider.
pub fn turn_on() {
    ON.store(true, Ordering::Relaxed);
}

/// Whether spans are on.
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// The parent of later spans; as text a `traceparent`.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceParent(SpanContext);

impl TraceParent {
    /// The parent in a message, if spans are on. An invalid one counts as none: a broken trace is no
    /// reason to refuse a message.
    pub fn carried(text: &str) -> Option<Self> {
        if is_on() { text.parse().ok() } else { None }
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
pub struct NoTraceParent(pub String);

impl FromStr for TraceParent {
    type Err = NoTraceParent;

    fn from_str(text: &str) -> Result<Self, NoTraceParent> {
        read(text).ok_or_else(|| NoTraceParent(text.to_owned()))
    }
}

fn read(text: &str) -> Option<TraceParent> {
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

/// A span, from [`Span::begin`] until it is dropped; a no-op if spans are off.
#[derive(Debug)]
pub struct Span(Option<BoxedSpan>);

impl Span {
    /// No span.
    pub const NONE: Self = Self(None);

    /// Begins a child of `parent`, or the first span of a trace.
    pub fn begin(name: &'static str, parent: Option<&TraceParent>) -> Self {
        Self::build(name, parent, &[], None)
    }

    /// Begins a child of `parent`; without a parent there is no span.
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
    pub fn since(name: &'static str, parent: Option<&TraceParent>, began: SystemTime) -> Self {
        if parent.is_some() { Self::build(name, parent, &[], Some(began)) } else { Self::NONE }
    }

    fn build(
        name: &'static str,
        parent: Option<&TraceParent>,
        others: &[TraceParent],
        began: Option<SystemTime>,
    ) -> Self {
        if !is_on() {
            return Self::NONE;
        }
        let within = match parent {
            Some(parent) => Context::new().with_remote_span_context(parent.0.clone()),
            None => Context::new(),
        };
        let links = others.iter().map(|other| Link::with_context(other.0.clone())).collect();
        let mut builder = SpanBuilder::from_name(name).with_links(links);
        builder.start_time = began;
        Self(Some(builder.start_with_context(&global::tracer(SCOPE), &within)))
    }

    /// Sets an attribute.
    pub fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        if let Some(span) = &mut self.0 {
            span.set_attribute(KeyValue::new(key, value));
        }
    }

    /// Marks the span as failed, with the reason.
    pub fn fail(&mut self, why: impl fmt::Display) {
        if let Some(span) = &mut self.0 {
            span.set_status(Status::error(why.to_string()));
        }
    }

    /// The context of the span, for its children.
    pub fn context(&self) -> Option<TraceParent> {
        let context = self.0.as_ref().map(|span| span.span_context().clone());
        context.filter(SpanContext::is_valid).map(TraceParent)
    }

    /// The context for a message; empty if spans are off.
    pub fn carried(&self) -> String {
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
        for wrong in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7a-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert!(wrong.parse::<TraceParent>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn spans_are_off_by_default() {
        let span = Span::begin("nothing", None);
        assert_eq!((span.context(), span.carried()), (None, String::new()));
    }
}
