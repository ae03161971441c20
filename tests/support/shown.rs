//! Numbers as pages show them.

use serde_json::Value;

/// A number or a word as a page shows it.
pub(crate) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A mean as a page shows it.
pub(crate) fn mean(place: &Value) -> String {
    format!("{:.3}", place["mean"].as_f64().unwrap())
}
