//! Pagination: the offset and size of a page, and the URL of the next one.

use std::borrow::Cow;
use std::fmt::Write as _;

use axum::http::Uri;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use super::endpoint::escape;

const MAX_LIMIT: u32 = 1000;
const DEFAULT_LIMIT: u32 = 100;

/// The maximum number of entries on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limit(pub(super) u32);

impl Default for Limit {
    fn default() -> Self {
        Self(DEFAULT_LIMIT)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u32::deserialize(deserializer)?;
        if (1..=MAX_LIMIT).contains(&number) {
            return Ok(Self(number));
        }
        let error = format!("`limit` must be between 1 and {MAX_LIMIT}, not {number}");
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
        json_schema!({"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT})
    }
}

impl Limit {
    pub(super) fn entries(self) -> usize {
        self.0 as usize
    }
}

/// The order of a list by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Order {
    /// The smallest number first.
    #[default]
    Oldest,
    /// The greatest number first.
    Newest,
}

impl JsonSchema for Order {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Order".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": ["oldest", "newest"], "default": "oldest"})
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct Page<T> {
    /// The entries.
    pub(super) items: Vec<T>,
    /// The URL of the next page; null on the last page.
    pub(super) next: Option<String>,
}

impl<T> Page<T> {
    /// Takes `limit` entries after the first `offset`.
    pub(super) fn slice(
        all: impl IntoIterator<Item = T>,
        uri: &Uri,
        offset: u32,
        limit: Limit,
    ) -> Self {
        let mut rest = all.into_iter().skip(offset as usize);
        let items: Vec<_> = rest.by_ref().take(limit.entries()).collect();
        let next =
            rest.next().map(|_| with_parameter(uri, "offset", offset.saturating_add(limit.0)));
        Self { items, next }
    }
}

/// The URL `uri` with the parameter `name` set to `value`.
pub(super) fn with_parameter(uri: &Uri, name: &str, value: impl std::fmt::Display) -> String {
    let mut address = format!("{}?", uri.path());
    let parts = uri.query().unwrap_or_default().split('&');
    let is_same = |part: &&str| part.split('=').next() == Some(name);
    for part in parts.filter(|part| !part.is_empty() && !is_same(part)) {
        write!(address, "{part}&").expect("writing to a string");
    }
    write!(address, "{name}={}", escape(&value.to_string())).expect("writing to a string");
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_links_to_the_next() {
        let uri: Uri = "/x?limit=2&q=a%26b".parse().unwrap();
        let page = Page::slice(0..5, &uri, 2, Limit(2));
        assert_eq!(page.items, [2, 3]);
        assert_eq!(page.next.as_deref(), Some("/x?limit=2&q=a%26b&offset=4"));
        let uri = page.next.unwrap().parse().unwrap();
        let page = Page::slice(0..5, &uri, 4, Limit(2));
        assert_eq!((page.items, page.next), (vec![4], None));
        assert!(Page::slice(0..5, &uri, u32::MAX, Limit(2)).items.is_empty());
    }
}
