//! The page to which a login returns: the one with the link to the login.
//!
//! The browser names that page in the header `Referer`, and the login form carries it on. Only
//! paths of this server are accepted, so that no link can lead a login to another site.

use axum::http::{HeaderMap, header};

/// Longer paths are ignored, in bytes.
const MAX_BYTES: usize = 2000;

/// A path of this server, with its query string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReturnPath(String);

impl Default for ReturnPath {
    fn default() -> Self {
        Self("/".to_owned())
    }
}

impl ReturnPath {
    /// The page from which the request comes. The home page if it is unknown or of another site.
    pub(super) fn of_request(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let address = text(header::REFERER).and_then(|address| address.split_once("://"));
        let Some((_, address)) = address else { return Self::default() };
        let (host, _) = address.split_once('/').unwrap_or((address, ""));
        if text(header::HOST) != Some(host) {
            return Self::default();
        }
        Self::of_text(&address[host.len()..])
    }

    /// The path in a text. The home page if the text is no path of this server.
    pub(super) fn of_text(text: &str) -> Self {
        let is_path = text.starts_with('/') && !text.starts_with("//");
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        // The login form is no page to return to, and the other one is no page.
        let is_form = ["/login", "/logout"].iter().any(|form| text.starts_with(form));
        if is_path && is_plain && !is_form && text.len() <= MAX_BYTES {
            Self(text.to_owned())
        } else {
            Self::default()
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_server_are_accepted() {
        for path in ["/", "/t/cup/submit?bot=ada", "/t/cup/matches/1#step=2"] {
            assert_eq!(ReturnPath::of_text(path).as_str(), path);
        }
        let foreign = ["//evil.example", "/\\evil.example", "https://evil.example", "", "t/cup"];
        let others = ["/login", "/logout", "/a b", "/\n/evil.example"];
        for path in foreign.into_iter().chain(others) {
            assert_eq!(ReturnPath::of_text(path).as_str(), "/", "{path:?}");
        }
    }

    #[test]
    fn the_page_before_the_login_must_be_of_the_same_host() {
        let path = |referer: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "contest.example:8080".parse().unwrap());
            headers.insert(header::REFERER, referer.parse().unwrap());
            ReturnPath::of_request(&headers).as_str().to_owned()
        };
        assert_eq!(path("http://contest.example:8080/t/cup?q=a"), "/t/cup?q=a");
        assert_eq!(path("http://contest.example:8080"), "/");
        assert_eq!(path("http://evil.example/t/cup"), "/");
        assert_eq!(path("http://contest.example:8080.evil.example/t/cup"), "/");
        assert_eq!(path("http://contest.example:8080//evil.example"), "/");
    }
}
