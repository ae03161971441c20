//! Endpoints: how requests are parsed, authorised and answered.
//!
//! Responses have an `ETag`. If a client sends it back in `If-None-Match` and nothing has changed,
//! it gets status 304. Data of a complete edition never changes, so its tag is known before the
//! response is computed. Otherwise the tag is the hash of the response.

use std::fmt::Write as _;

use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{Query, RawPathParams, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::pagination::{Limit, Page};
use super::problem::Problem;
use super::response::{EncodedBody, ResponseBody};
use crate::access::token_throttle::Origin;
use crate::access::{Role, Secret};
use crate::service::{Caller, Service};
use crate::web::session::{Session, cookie_token};

/// `Cache-Control` of public responses: caches may store them and must revalidate.
const PUBLIC: HeaderValue = HeaderValue::from_static("public, no-cache");
/// `Cache-Control` of responses to a caller with a token.
const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-cache");
/// The request headers that a response depends on.
const VARY: HeaderValue = HeaderValue::from_static("authorization, cookie, accept-encoding");
/// The key derivation context of `ETag`s. It contains the version because another version may
/// respond differently.
const ETAG_CONTEXT: &str = concat!("arbiter ", env!("CARGO_PKG_VERSION"), " answers");
/// The length of an `ETag`, in hexadecimal digits.
const ETAG_DIGITS: usize = 32;

/// An endpoint. Its fields are the parameters in the path and in the query string.
pub(super) trait Endpoint: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The path, with parameters in braces.
    const PATH: &'static str;
    /// The group of the endpoint in the OpenAPI document.
    const TAG: &'static str;
    /// The required role; `None` for public endpoints.
    const ROLE: Option<Role> = None;
    type Response: ResponseBody;
}

/// The implementation of an endpoint.
pub(super) trait Handler: Endpoint {
    /// The data that determines the response besides the request, if known before it is computed.
    fn etag_basis(
        &self,
        _: &RequestContext,
    ) -> impl Future<Output = Result<Option<String>, Problem>> + Send {
        async { Ok(None) }
    }

    /// Computes the response.
    fn handle(
        self,
        context: &RequestContext,
    ) -> impl Future<Output = Result<Self::Response, Problem>> + Send;
}

/// A request: the caller, the service and the URL.
#[derive(Debug)]
pub(super) struct RequestContext {
    pub(super) service: Service,
    pub(super) session: Session,
    /// The URL with all parameters.
    pub(super) uri: Uri,
}

impl RequestContext {
    pub(super) fn caller(&self) -> &Caller {
        &self.session.caller
    }

    /// The page of a list that begins at `offset`.
    pub(super) fn page<T, J: From<T>>(
        &self,
        items: impl IntoIterator<Item = T>,
        offset: u32,
        limit: Limit,
    ) -> Page<J> {
        Page::slice(items.into_iter().map(J::from), &self.uri, offset, limit)
    }
}

/// Handles an HTTP request to an endpoint.
pub(super) async fn respond<E: Handler>(
    State(service): State<Service>,
    origin: Origin,
    path: Result<RawPathParams, RawPathParamsRejection>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    match try_respond::<E>(service, &origin, path, uri, &headers).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn try_respond<E: Handler>(
    service: Service,
    origin: &Origin,
    path: Result<RawPathParams, RawPathParamsRejection>,
    uri: Uri,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let path = path.map_err(|rejection| Problem::malformed(rejection.body_text()))?;
    let bearer = bearer_token(headers)?;
    // An invalid bearer token is an error. An expired cookie is not.
    let has_bearer = bearer.is_some();
    let token = bearer.or_else(|| cookie_token(headers));
    let session = Session::open(service.clone(), token, origin).await?;
    let context = RequestContext { service, session, uri };
    if has_bearer && matches!(context.caller(), Caller::Rejected(_)) {
        let detail = "the token is invalid, expired or revoked";
        return Err(Problem::new(StatusCode::UNAUTHORIZED, detail));
    }
    // Check the role before the parameters, so that an error discloses nothing.
    if let Some(role) = E::ROLE {
        context.caller().require(role)?;
    }
    let endpoint: E = parse_parameters(&path, context.uri.query())?;
    let basis = endpoint.etag_basis(&context).await?;
    let early_tag = basis.map(|basis| etag(&context.uri, basis.as_bytes()));
    if let Some(tag) = early_tag.as_ref().filter(|tag| matches_etag(headers, tag)) {
        return Ok(finish(&context, StatusCode::NOT_MODIFIED, Some(tag), Body::empty()));
    }
    let EncodedBody { media_type, encoding, body, tagged } =
        endpoint.handle(&context).await?.encode(headers)?;
    let tag = early_tag.or_else(|| tagged.map(|bytes| etag(&context.uri, &bytes)));
    if let Some(tag) = tag.as_ref().filter(|tag| matches_etag(headers, tag)) {
        return Ok(finish(&context, StatusCode::NOT_MODIFIED, Some(tag), Body::empty()));
    }
    let mut response = finish(&context, StatusCode::OK, tag.as_ref(), body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    if let Some(encoding) = encoding {
        let encoding = HeaderValue::from_static(encoding);
        response.headers_mut().insert(header::CONTENT_ENCODING, encoding);
    }
    Ok(response)
}

fn finish(
    context: &RequestContext,
    status: StatusCode,
    tag: Option<&HeaderValue>,
    body: Body,
) -> Response {
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    let cache_control = if context.session.is_logged_in() { PRIVATE } else { PUBLIC };
    headers.insert(header::CACHE_CONTROL, cache_control);
    headers.insert(header::VARY, VARY);
    if let Some(tag) = tag {
        headers.insert(header::ETAG, tag.clone());
    }
    response
}

/// The token in the `Authorization` header, if any.
fn bearer_token(headers: &HeaderMap) -> Result<Option<Secret>, Problem> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let token = value.to_str().ok().and_then(|value| value.strip_prefix("Bearer "));
    let malformed = || {
        let detail = "send the token as `Authorization: Bearer TOKEN`";
        Problem::new(StatusCode::UNAUTHORIZED, detail)
    };
    Ok(Some(Secret::from(token.ok_or_else(malformed)?.trim().to_owned())))
}

/// Parses the parameters in the path and in the query string.
fn parse_parameters<E: Endpoint>(path: &RawPathParams, query: Option<&str>) -> Result<E, Problem> {
    let mut pairs = String::from("/?");
    for (name, value) in path {
        write!(pairs, "{name}={}&", escape(value)).expect("writing to a string");
    }
    pairs.push_str(query.unwrap_or_default());
    let too_long = |_| Problem::malformed("the address is too long");
    let uri: Uri = pairs.trim_end_matches('&').parse().map_err(too_long)?;
    let parsed = Query::try_from_uri(&uri);
    let Query(endpoint) = parsed.map_err(|rejection| Problem::malformed(rejection.body_text()))?;
    Ok(endpoint)
}

/// Percent-encodes a text for a URL.
pub(in crate::web) fn escape(text: &str) -> PercentEncode<'_> {
    const RESERVED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-').remove(b'~');
    utf8_percent_encode(text, RESERVED)
}

/// The `ETag` of a response, from its URL and the data that determines it. It is weak because the
/// response may be compressed.
fn etag(uri: &Uri, basis: &[u8]) -> HeaderValue {
    let mut hasher = blake3::Hasher::new_derive_key(ETAG_CONTEXT);
    hasher.update(uri.path().as_bytes()).update(b"?");
    hasher.update(uri.query().unwrap_or_default().as_bytes()).update(b"\n").update(basis);
    let hash = hasher.finalize().to_hex();
    let tag = format!("W/\"{}\"", &hash[..ETAG_DIGITS]);
    HeaderValue::from_str(&tag).expect("hexadecimal digits are valid in a header")
}

/// Whether `If-None-Match` contains this tag.
fn matches_etag(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let expected = tag.to_str().map(opaque).unwrap_or_default();
    let values = headers.get_all(header::IF_NONE_MATCH).into_iter();
    let mut tags =
        values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    tags.any(|tag| opaque(tag) == expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_matches_only_itself() {
        let uri: Uri = "/api/v1/tournaments?limit=1".parse().unwrap();
        let one = etag(&uri, b"one");
        assert_eq!(one, etag(&uri, b"one"));
        assert_ne!(one, etag(&uri, b"two"));
        assert_ne!(one, etag(&"/api/v1/tournaments".parse().unwrap(), b"one"));
        let is_match = |if_none_match: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, HeaderValue::from_str(if_none_match).unwrap());
            matches_etag(&headers, &one)
        };
        let text = one.to_str().unwrap();
        for same in [text, &text[2..], &format!("\"x\", {text}")] {
            assert!(is_match(same), "{same}");
        }
        for other in ["", "*", "\"x\"", &text[3..]] {
            assert!(!is_match(other), "{other}");
        }
        assert!(!matches_etag(&HeaderMap::new(), &one));
    }
}
