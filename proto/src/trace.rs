//! Traces: what becomes of a submission on its way to the leaderboard, across programs and days.
//!
//! # Theory of operation
//!
//! A trace is a tree of *spans*. Each of ours begins and ends in one process, and is exported when
//! it ends; nobody holds one open for as long as an edition takes, because the process may not live
//! that long. What comes later is the child of a span that has ended: its *context*, a W3C
//! `traceparent`, is stored with the version or the edition, and goes to workers and back in the
//! messages of lots, trials and reports.
//!
//! Spans go wherever the program's provider of `OpenTelemetry` sends them. Where there is none
//! ([`turn_on`] was not called) there are no spans: nothing is measured, stored or sent.

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

/// The name by which our spans are known.
const SCOPE: &str = "arbiter";
/// The version of `traceparent` that is written, and the only one that is read.
const VERSION: &str = "00";

static ON: AtomicBool = AtomicBool::new(false);

/// Says that there is a provider: from now on there are spans.
pub fn turn_on() {
    ON.store(true, Ordering::Relaxed);
}

/// Whether there are spans.
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Where a trace goes on: the span that what comes next is the child of. As text a `traceparent`.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceParent(SpanContext);

impl TraceParent {
    /// The parent that a message carries, if it does and there are spans. One that means nothing is
    /// none: a trace that breaks off is no reason to refuse what was done.
    pub fn carried(text: &str) -> Option<Self> {
        if is_on() { text.parse().ok() } else { None }
    }

    /// The trace, as logs name it: 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        self.0.trace_id().to_string()
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (self.0.trace_id(), self.0.span_id());
        write!(f, "{VERSION}-{trace}-{span}-{:02x}", self.0.trace_flags().to_u8())
    }
}

/// A text that is no `traceparent`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is no traceparent of version 00")]
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

/// Something that is being done, from [`Span::begin`] until it is dropped; or nothing, where there
/// are no spans.
#[derive(Debug)]
pub struct Span(Option<BoxedSpan>);

impl Span {
    /// No span.
    pub const NONE: Self = Self(None);

    /// Begins what follows from `parent`, or the first span of a trace.
    pub fn begin(name: &'static str, parent: Option<&TraceParent>) -> Self {
        Self::build(name, parent, &[], None)
    }

    /// The same, but that there is no span without a parent: what belongs to no trace begins none.
    pub fn follow(name: &'static str, parent: Option<&TraceParent>) -> Self {
        if parent.is_some() { Self::begin(name, parent) } else { Self::NONE }
    }

    /// The same as [`Self::begin`] with what it follows from besides.
    pub fn join(name: &'static str, parents: &[TraceParent]) -> Self {
        let (parent, others) = match parents {
            [parent, others @ ..] => (Some(parent), others),
            [] => (None, &[][..]),
        };
        Self::build(name, parent, others, None)
    }

    /// The same as [`Self::follow`] for what began some time ago.
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

    /// Adds something that is known of it.
    pub fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        if let Some(span) = &mut self.0 {
            span.set_attribute(KeyValue::new(key, value));
        }
    }

    /// Says that it failed, and why.
    pub fn fail(&mut self, why: impl fmt::Display) {
        if let Some(span) = &mut self.0 {
            span.set_status(Status::error(why.to_string()));
        }
    }

    /// Where its trace goes on.
    pub fn context(&self) -> Option<TraceParent> {
        let context = self.0.as_ref().map(|span| span.span_context().clone());
        context.filter(SpanContext::is_valid).map(TraceParent)
    }

    /// The same as messages carry it: empty where there are no spans.
    pub fn carried(&self) -> String {
        self.context().map_or_else(String::new, |context| context.to_string())
    }

    /// Its trace, as logs name it.
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
