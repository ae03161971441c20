//! Lists in pages: what is left out before a page, how long it is, and where the next one is.

use std::borrow::Cow;
use std::fmt::Write as _;

use axum::http::Uri;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use super::question::escape;

/// Entries on a page at most.
const MOST: u32 = 1000;
/// Entries on a page where no number is asked for.
const USUAL: u32 = 100;

/// How many entries are on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limit(pub(super) u32);

impl Default for Limit {
    fn default() -> Self {
        Self(USUAL)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u32::deserialize(deserializer)?;
        if (1..=MOST).contains(&number) {
            return Ok(Self(number));
        }
        let error = format!("a page has 1 to {MOST} entries, not {number}");
        Err(serde::de::Error::custom(error))
    }
}

impl JsonSchema for Limit {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": 1, "maximum": MOST, "default": USUAL})
    }
}

impl Limit {
    /// As many entries.
    pub(super) fn entries(self) -> usize {
        self.0 as usize
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct Page<T> {
    /// The entries.
    pub(super) items: Vec<T>,
    /// The address of the page that follows; null on the last one.
    pub(super) next: Option<String>,
}

impl<T> Page<T> {
    /// So many of all entries, after those that are left out.
    pub(super) fn cut(
        all: impl IntoIterator<Item = T>,
        uri: &Uri,
        offset: u32,
        limit: Limit,
    ) -> Self {
        let mut rest = all.into_iter().skip(offset as usize);
        let items: Vec<_> = rest.by_ref().take(limit.entries()).collect();
        let next = rest.next().map(|_| following(uri, "offset", offset.saturating_add(limit.0)));
        Self { items, next }
    }
}

/// The address of the page that begins with this, for whoever asked for the one at `uri`.
pub(super) fn following(uri: &Uri, name: &str, value: impl std::fmt::Display) -> String {
    let mut address = format!("{}?", uri.path());
    let parts = uri.query().unwrap_or_default().split('&');
    let is_same = |part: &&str| part.split('=').next() == Some(name);
    for part in parts.filter(|part| !part.is_empty() && !is_same(part)) {
        write!(address, "{part}&").expect("a string takes every text");
    }
    write!(address, "{name}={}", escape(&value.to_string())).expect("a string takes every text");
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_one_another() {
        let uri: Uri = "/x?limit=2&q=a%26b".parse().unwrap();
        let page = Page::cut(0..5, &uri, 2, Limit(2));
        assert_eq!(page.items, [2, 3]);
        assert_eq!(page.next.as_deref(), Some("/x?limit=2&q=a%26b&offset=4"));
        let uri = page.next.unwrap().parse().unwrap();
        let page = Page::cut(0..5, &uri, 4, Limit(2));
        assert_eq!((page.items, page.next), (vec![4], None));
        assert!(Page::cut(0..5, &uri, u32::MAX, Limit(2)).items.is_empty());
    }
}
