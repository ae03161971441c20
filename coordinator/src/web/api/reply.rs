//! How answers are sent: as JSON, or as what they are.

use std::io::{self, Read};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::problem::Problem;

/// How much of a record is sent at a time, in bytes.
const PIECE: usize = 64 << 10;
/// Pieces that may wait to be sent.
const AHEAD: usize = 2;

/// An answer on its way.
pub(super) struct Written {
    /// Its media type.
    pub(super) kind: &'static str,
    /// How it is compressed.
    pub(super) encoding: Option<&'static str>,
    pub(super) body: Body,
    /// What its tag may be made from.
    pub(super) whole: Option<Bytes>,
}

/// What can be answered with.
pub(super) trait Reply: Send {
    /// The media type and the schema of all such answers.
    fn content(schemas: &mut SchemaGenerator) -> (&'static str, Value);

    /// Sends it to somebody who sent these headers.
    fn write(self, headers: &HeaderMap) -> Result<Written, Problem>;
}

impl<T: Serialize + JsonSchema + Send> Reply for T {
    fn content(schemas: &mut SchemaGenerator) -> (&'static str, Value) {
        ("application/json", schemas.subschema_for::<T>().to_value())
    }

    fn write(self, _: &HeaderMap) -> Result<Written, Problem> {
        let text = serde_json::to_vec(&self).map_err(|error| {
            tracing::error!(%error, "an answer cannot be written");
            let status = axum::http::StatusCode::INTERNAL_SERVER_ERROR;
            Problem::new(status, "the coordinator failed; its log says why")
        })?;
        let whole = Bytes::from(text);
        let body = Body::from(whole.clone());
        Ok(Written { kind: "application/json", encoding: None, body, whole: Some(whole) })
    }
}

/// A record: one JSON object a line, kept compressed by Zstandard.
pub(super) struct Lines(pub(super) Vec<u8>);

impl Reply for Lines {
    fn content(_: &mut SchemaGenerator) -> (&'static str, Value) {
        let told = "One JSON object a line; docs/records.md describes them.";
        ("application/x-ndjson", json!({"type": "string", "description": told}))
    }

    fn write(self, headers: &HeaderMap) -> Result<Written, Problem> {
        let packed = Bytes::from(self.0);
        let taken = headers.get_all(header::ACCEPT_ENCODING).into_iter();
        let mut taken = taken.filter_map(|all| all.to_str().ok()).flat_map(|all| all.split(','));
        let zstd = taken.any(|one| one.trim() == "zstd");
        let body = if zstd { Body::from(packed.clone()) } else { unpacked(packed.clone()) };
        let encoding = zstd.then_some("zstd");
        Ok(Written { kind: "application/x-ndjson", encoding, body, whole: Some(packed) })
    }
}

/// The next piece of a text; an empty one at its end.
fn piece(text: &mut impl Read) -> io::Result<Bytes> {
    let mut piece = Vec::with_capacity(PIECE);
    text.take(PIECE as u64).read_to_end(&mut piece)?;
    Ok(piece.into())
}

/// Decompresses as fast as it is read, never all of it at once.
fn unpacked(packed: Bytes) -> Body {
    let (pieces, sent) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        let mut decoder = arbiter_replay::unpack(&packed);
        loop {
            let piece = match &mut decoder {
                Ok(decoder) => piece(decoder),
                Err(error) => Err(io::Error::from(error.kind())),
            };
            let last = !matches!(&piece, Ok(piece) if !piece.is_empty());
            if pieces.blocking_send(piece).is_err() || last {
                return;
            }
        }
    });
    Body::from_stream(ReceiverStream::new(sent))
}
