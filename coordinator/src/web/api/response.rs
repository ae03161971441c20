//! Response bodies: JSON, or the lines of a record.

use std::io::{self, Cursor, Read};

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value, json};

use super::super::{compression, download};
use super::problem::Problem;
use crate::service::HeldRecord;

/// A record is sent in chunks of this size, in bytes.
const CHUNK_BYTES: usize = 64 << 10;

/// An encoded response body.
pub(super) struct EncodedBody {
    pub(super) media_type: &'static str,
    /// The `Content-Encoding`.
    pub(super) encoding: Option<&'static str>,
    pub(super) body: Body,
    /// The bytes from which the `ETag` is computed, if they are in memory.
    pub(super) tagged: Option<Bytes>,
}

/// The type of a response.
pub(super) trait ResponseBody: Send {
    /// The media type and the schema.
    fn content(schemas: &mut SchemaGenerator) -> (&'static str, Value);

    /// Encodes the body for a client that sent these headers.
    fn encode(self, headers: &HeaderMap) -> Result<EncodedBody, Problem>;
}

impl<T: Serialize + JsonSchema + Send> ResponseBody for T {
    fn content(schemas: &mut SchemaGenerator) -> (&'static str, Value) {
        ("application/json", schemas.subschema_for::<T>().to_value())
    }

    fn encode(self, _: &HeaderMap) -> Result<EncodedBody, Problem> {
        let text = serde_json::to_vec(&self).map_err(|error| {
            tracing::error!(%error, "cannot serialize a response");
            let status = axum::http::StatusCode::INTERNAL_SERVER_ERROR;
            Problem::new(status, "internal error; see the coordinator's log")
        })?;
        let bytes = Bytes::from(text);
        let body = Body::from(bytes.clone());
        let media_type = "application/json";
        Ok(EncodedBody { media_type, encoding: None, body, tagged: Some(bytes) })
    }
}

/// A record (JSON Lines), compressed by Zstandard.
pub(super) struct RecordLines(pub(super) HeldRecord);

impl ResponseBody for RecordLines {
    fn content(_: &mut SchemaGenerator) -> (&'static str, Value) {
        let description = "One JSON object per line. docs/records.md describes them.";
        ("application/x-ndjson", json!({"type": "string", "description": description}))
    }

    fn encode(self, headers: &HeaderMap) -> Result<EncodedBody, Problem> {
        let accepts_zstd = compression::accepts(headers, "zstd");
        let body =
            if accepts_zstd { download::record(&self.0) } else { decompress(self.0.clone()) };
        let encoding = accepts_zstd.then_some("zstd");
        Ok(EncodedBody {
            media_type: "application/x-ndjson",
            encoding,
            body,
            tagged: Some(Bytes::from_owner(self.0)),
        })
    }
}

/// Reads the next chunk of a text; empty at the end.
fn read_chunk(text: &mut impl Read) -> io::Result<Bytes> {
    let mut chunk = Vec::with_capacity(CHUNK_BYTES);
    text.take(CHUNK_BYTES as u64).read_to_end(&mut chunk)?;
    Ok(chunk.into())
}

/// Decompresses chunk by chunk, as fast as the client reads. A public reader has a deadline.
fn decompress(compressed: HeldRecord) -> Body {
    let mut decoder = Some(arbiter_replay::unpack_from(Cursor::new(compressed.clone())));
    let chunks = std::iter::from_fn(move || {
        // An error is the last item.
        let mut opened = decoder.take()?;
        let chunk = match &mut opened {
            _ if compressed.is_too_late() => Err(io::ErrorKind::TimedOut.into()),
            Ok(reader) => read_chunk(reader),
            Err(error) => Err(io::Error::from(error.kind())),
        };
        if matches!(&chunk, Ok(bytes) if bytes.is_empty()) {
            return None;
        }
        if chunk.is_ok() {
            decoder = Some(opened);
        }
        Some(chunk)
    });
    Body::from_stream(tokio_stream::iter(chunks))
}
