//! Questions, how they are read, and how they are answered.
//!
//! An answer has a tag. Whoever brings it back with `If-None-Match` is told that nothing has
//! changed. Where the tag follows from what the question is about (a complete edition never
//! changes) it is known before the answer, which then is not made; elsewhere it is the hash of the
//! answer.

use std::fmt::Write as _;

use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{Query, RawPathParams, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::paging::{Limit, Page};
use super::problem::Problem;
use super::reply::{Reply, Written};
use crate::access::token_throttle::Origin;
use crate::access::{Role, Secret};
use crate::service::{Caller, Service};
use crate::web::session::{Session, cookie};

/// What answers that are the same for everybody may be kept for: each time it is asked whether they
/// are still good.
const PUBLIC: HeaderValue = HeaderValue::from_static("public, no-cache");
/// The same for what was told to somebody with a token.
const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-cache");
/// What an answer depends on besides its address.
const VARY: HeaderValue = HeaderValue::from_static("authorization, cookie, accept-encoding");
/// What tags are derived for: another version of the program may answer in other words.
const TAGS: &str = concat!("arbiter ", env!("CARGO_PKG_VERSION"), " answers");
/// How many characters of a hash are a tag.
const TAG: usize = 32;

/// A question: its fields are the parameters of its address, those in its path and those after it.
pub(super) trait Question: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The address, with parameters in braces.
    const PATH: &'static str;
    /// What it is about: questions are described in groups.
    const ABOUT: &'static str;
    /// What a token has to allow, if it takes one to ask this.
    const ROLE: Option<Role> = None;
    /// What comes back.
    type Reply: Reply;
}

/// A question with what answers it.
pub(super) trait Answer: Question {
    /// What the answer follows from, besides the question, if that is known before it is made.
    fn basis(&self, _: &Asker) -> impl Future<Output = Result<Option<String>, Problem>> + Send {
        async { Ok(None) }
    }

    /// Answers.
    fn answer(self, asker: &Asker) -> impl Future<Output = Result<Self::Reply, Problem>> + Send;
}

/// Who asks, and whom.
#[derive(Debug)]
pub(super) struct Asker {
    pub(super) service: Service,
    pub(super) session: Session,
    /// The address of the question with all its parameters.
    pub(super) uri: Uri,
}

impl Asker {
    /// Who asks.
    pub(super) fn caller(&self) -> &Caller {
        &self.session.caller
    }

    /// So many of all entries, after those that are left out.
    pub(super) fn page<T, J: From<T>>(
        &self,
        found: impl IntoIterator<Item = T>,
        offset: u32,
        limit: Limit,
    ) -> Page<J> {
        Page::cut(found.into_iter().map(J::from), &self.uri, offset, limit)
    }
}

/// Answers a question over HTTP.
pub(super) async fn respond<Q: Answer>(
    State(service): State<Service>,
    origin: Origin,
    path: Result<RawPathParams, RawPathParamsRejection>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    match answered::<Q>(service, &origin, path, uri, &headers).await {
        Ok(answer) => answer,
        Err(problem) => problem.into_response(),
    }
}

async fn answered<Q: Answer>(
    service: Service,
    origin: &Origin,
    path: Result<RawPathParams, RawPathParamsRejection>,
    uri: Uri,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let path = path.map_err(|rejection| Problem::malformed(rejection.body_text()))?;
    let shown = bearer(headers)?;
    // A program that shows a token is told if it is not valid; a browser may bring an old cookie.
    let is_shown = shown.is_some();
    let token = shown.or_else(|| cookie(headers));
    let session = Session::find(service.clone(), token, origin).await?;
    let asker = Asker { service, session, uri };
    if is_shown && matches!(asker.caller(), Caller::Rejected(_)) {
        let why = "the token is not known here, or was revoked";
        return Err(Problem::new(StatusCode::UNAUTHORIZED, why));
    }
    // Before anything is said about the question: whoever may not ask it learns nothing from it.
    if let Some(role) = Q::ROLE {
        asker.caller().require(role)?;
    }
    let question: Q = read(&path, asker.uri.query())?;
    let basis = question.basis(&asker).await?.map(|basis| tag(&asker.uri, basis.as_bytes()));
    if let Some(tag) = basis.as_ref().filter(|tag| is_known(headers, tag)) {
        return Ok(finish(&asker, StatusCode::NOT_MODIFIED, Some(tag), Body::empty()));
    }
    let Written { kind, encoding, body, whole } = question.answer(&asker).await?.write(headers)?;
    let tag = basis.or_else(|| whole.map(|whole| tag(&asker.uri, &whole)));
    if let Some(tag) = tag.as_ref().filter(|tag| is_known(headers, tag)) {
        return Ok(finish(&asker, StatusCode::NOT_MODIFIED, Some(tag), Body::empty()));
    }
    let mut answer = finish(&asker, StatusCode::OK, tag.as_ref(), body);
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Some(encoding) = encoding {
        let encoding = HeaderValue::from_static(encoding);
        answer.headers_mut().insert(header::CONTENT_ENCODING, encoding);
    }
    Ok(answer)
}

fn finish(asker: &Asker, status: StatusCode, tag: Option<&HeaderValue>, body: Body) -> Response {
    let mut answer = (status, body).into_response();
    let headers = answer.headers_mut();
    let keep = if asker.session.is_somebody() { PRIVATE } else { PUBLIC };
    headers.insert(header::CACHE_CONTROL, keep);
    headers.insert(header::VARY, VARY);
    if let Some(tag) = tag {
        headers.insert(header::ETAG, tag.clone());
    }
    answer
}

/// The token that a request shows.
fn bearer(headers: &HeaderMap) -> Result<Option<Secret>, Problem> {
    let Some(shown) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let token = shown.to_str().ok().and_then(|shown| shown.strip_prefix("Bearer "));
    let refused = || {
        let why = "show your token as `Authorization: Bearer TOKEN`";
        Problem::new(StatusCode::UNAUTHORIZED, why)
    };
    Ok(Some(Secret::from(token.ok_or_else(refused)?.trim().to_owned())))
}

/// Reads a question from its address.
fn read<Q: Question>(path: &RawPathParams, query: Option<&str>) -> Result<Q, Problem> {
    let mut pairs = String::from("/?");
    for (name, value) in path {
        write!(pairs, "{name}={}&", escape(value)).expect("a string takes every text");
    }
    pairs.push_str(query.unwrap_or_default());
    let pairs = pairs.trim_end_matches('&');
    let unread = |_| Problem::malformed("the address is too long");
    let pairs: Uri = pairs.parse().map_err(unread)?;
    let read = Query::try_from_uri(&pairs);
    let Query(question) = read.map_err(|rejection| Problem::malformed(rejection.body_text()))?;
    Ok(question)
}

/// A text as part of an address.
pub(in crate::web) fn escape(text: &str) -> PercentEncode<'_> {
    const RESERVED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-').remove(b'~');
    utf8_percent_encode(text, RESERVED)
}

/// The tag of the answer to a question that follows from this. It is a weak one: what is sent may
/// be compressed.
fn tag(uri: &Uri, basis: &[u8]) -> HeaderValue {
    let mut hasher = blake3::Hasher::new_derive_key(TAGS);
    hasher.update(uri.path().as_bytes()).update(b"?");
    hasher.update(uri.query().unwrap_or_default().as_bytes()).update(b"\n").update(basis);
    let hash = hasher.finalize().to_hex();
    let tag = format!("W/\"{}\"", &hash[..TAG]);
    HeaderValue::from_str(&tag).expect("hexadecimal digits may stand in a header")
}

/// Whether whoever asks has the answer with this tag.
fn is_known(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let own = tag.to_str().map(bare).unwrap_or_default();
    let brought = headers.get_all(header::IF_NONE_MATCH).into_iter();
    let mut brought = brought.filter_map(|all| all.to_str().ok()).flat_map(|all| all.split(','));
    brought.any(|one| bare(one) == own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_known_again() {
        let uri: Uri = "/api/v1/tournaments?limit=1".parse().unwrap();
        let one = tag(&uri, b"one");
        assert_eq!(one, tag(&uri, b"one"));
        assert_ne!(one, tag(&uri, b"two"));
        assert_ne!(one, tag(&"/api/v1/tournaments".parse().unwrap(), b"one"));
        let brought = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, HeaderValue::from_str(text).unwrap());
            is_known(&headers, &one)
        };
        let text = one.to_str().unwrap();
        for known in [text, &text[2..], &format!("\"x\", {text}")] {
            assert!(brought(known), "{known}");
        }
        for strange in ["", "*", "\"x\"", &text[3..]] {
            assert!(!brought(strange), "{strange}");
        }
        assert!(!is_known(&HeaderMap::new(), &one));
    }
}
