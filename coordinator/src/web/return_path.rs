//! The page to which a login or an error page returns: the one from which the visitor came.
//!
//! The browser names that page in the header `Referer`, and the login form carries it on. Only
//! paths of this server are accepted, so that no link can lead a login to another site.

use axum::http::{HeaderMap, HeaderValue, Uri, header};

use super::bot_address::joined_path;

/// Longer paths are ignored, in bytes.
const MAX_BYTES: usize = 2000;

/// The addresses of forms that are no pages themselves, and the pages with these forms. A link to
/// such an address would not be answered, or with a file. A segment in braces stands for any text.
const FORM_PAGES: [(&str, &str); 17] = [
    ("/logout", "/"),
    ("/new/package", "/new"),
    ("/workers/suspend", "/workers"),
    ("/workers/reinstate", "/workers"),
    ("/t/{tournament}/announcements", "/t/{tournament}/organise"),
    ("/t/{tournament}/announcements/{number}/remove", "/t/{tournament}/organise"),
    ("/t/{tournament}/start", "/t/{tournament}/organise"),
    ("/t/{tournament}/cancel", "/t/{tournament}/organise"),
    ("/t/{tournament}/close", "/t/{tournament}/organise"),
    ("/t/{tournament}/retry", "/t/{tournament}/organise"),
    ("/t/{tournament}/package", "/t/{tournament}/organise"),
    ("/t/{tournament}/matches/{number}/retry", "/t/{tournament}/matches/{number}"),
    ("/t/{tournament}/bots/{bot}/withdraw", "/t/{tournament}/bots/{bot}"),
    ("/t/{tournament}/bots/{bot}/reinstate", "/t/{tournament}/bots/{bot}"),
    (
        "/t/{tournament}/bots/{bot}/versions/{number}/retry",
        "/t/{tournament}/bots/{bot}/versions/{number}",
    ),
    // The forms of logins and of unknown addresses below it are no pages to return to.
    ("/login", "/"),
    ("/login/{any}", "/"),
];

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
        Self::of_referer(headers.get(header::REFERER), headers.get(header::HOST))
    }

    /// Like [`Self::of_request`], from the headers `Referer` and `Host`.
    pub(super) fn of_referer(referer: Option<&HeaderValue>, host: Option<&HeaderValue>) -> Self {
        let address = referer.and_then(|value| value.to_str().ok()?.split_once("://"));
        let Some((_, address)) = address else { return Self::default() };
        let (from, _) = address.split_once('/').unwrap_or((address, ""));
        if host.and_then(|value| value.to_str().ok()) != Some(from) {
            return Self::default();
        }
        Self::of_text(&address[from.len()..])
    }

    /// The path in a text, or that of the page with the form if the path is that of a form and no
    /// page. The home page if the text is no path of this server.
    pub(super) fn of_text(text: &str) -> Self {
        let is_path = text.starts_with('/') && !text.starts_with("//");
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        if is_path && is_plain && text.len() <= MAX_BYTES {
            Self(form_page(text).unwrap_or_else(|| text.to_owned()))
        } else {
            Self::default()
        }
    }

    /// Whether it is the page of a request with this URI. There the owner and the name of a bot are
    /// one segment.
    pub(super) fn is_of(&self, uri: &Uri) -> bool {
        let (path, query) = match self.0.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (&self.0[..], None),
        };
        let joined = joined_path(path);
        joined.as_deref().unwrap_or(path) == uri.path() && query == uri.query()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The page with the form of an address that is no page itself.
fn form_page(text: &str) -> Option<String> {
    let sent = text.split(['?', '#']).next().unwrap_or(text);
    let joined = joined_path(sent);
    let path = joined.as_deref().unwrap_or(sent);
    let find = |(address, page): (&str, &str)| Some(filled(page, &parameters(address, path)?));
    FORM_PAGES.into_iter().find_map(find)
}

/// The parameters of a pattern in a path, if the path has the form of the pattern.
fn parameters<'a>(pattern: &'a str, path: &'a str) -> Option<Vec<(&'a str, &'a str)>> {
    if pattern.split('/').count() != path.split('/').count() {
        return None;
    }
    let mut parameters = Vec::new();
    for (name, text) in pattern.split('/').zip(path.split('/')) {
        if name.starts_with('{') {
            parameters.push((name, text));
        } else if name != text {
            return None;
        }
    }
    Some(parameters)
}

/// A pattern with its parameters filled in.
fn filled(pattern: &str, parameters: &[(&str, &str)]) -> String {
    let value = |part| parameters.iter().find(|(name, _)| *name == part);
    let parts = pattern.split('/').map(|part| value(part).map_or(part, |(_, text)| text));
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_of_a_form_is_a_page_or_has_one() {
        let source: String = include_str!("../web.rs").split_whitespace().collect();
        let routes = source.split(".route(\"").skip(1).filter_map(|rest| rest.split_once("\","));
        let routes: Vec<_> = routes.collect();
        // Functions with these names answer with a page.
        let is_page = |handler: &str| {
            let handler = handler.strip_prefix("get(").and_then(|rest| rest.split_once(')'));
            let function = handler.and_then(|(path, _)| path.split_once("::"));
            function.is_some_and(|(_, function)| ["show", "form"].contains(&function))
        };
        let forms = routes.iter().filter(|(_, handler)| handler.contains("post("));
        let forms: Vec<_> = forms.collect();
        assert!(forms.len() > 20 && routes.len() > 50, "the routes are found");
        for (address, handler) in forms {
            let Some((_, page)) = FORM_PAGES.iter().find(|(form, _)| form == address) else {
                assert!(is_page(handler), "name the page of {address}");
                continue;
            };
            let page = routes.iter().find(|(other, _)| other == page);
            assert!(page.is_some_and(|(_, handler)| is_page(handler)), "{address}: {page:?}");
        }
    }

    #[test]
    fn a_page_is_that_of_a_request_if_path_and_query_are_equal() {
        let is_of = |page: &str, uri: &str| ReturnPath::of_text(page).is_of(&uri.parse().unwrap());
        assert!(is_of("/t/cup/matches?version=x", "/t/cup/matches?version=x"));
        assert!(!is_of("/t/cup/matches", "/t/cup/matches?version=x"));
        assert!(!is_of("/t/cup/matches?version=1", "/t/cup/matches?version=x"));
        assert!(is_of("/t/cup/bots/ada/mybot", "/t/cup/bots/ada%2Fmybot"));
    }

    #[test]
    fn an_address_of_a_form_leads_to_its_page() {
        for (form, page) in [
            ("/t/cup/start", "/t/cup/organise"),
            ("/t/cup/start?done=x#y", "/t/cup/organise"),
            ("/t/cup/package", "/t/cup/organise"),
            ("/t/cup/announcements/3/remove", "/t/cup/organise"),
            ("/t/cup/bots/ada/versions/2/retry", "/t/cup/bots/ada/versions/2"),
            ("/t/cup/bots/ada/mybot/withdraw", "/t/cup/bots/ada%2Fmybot"),
            ("/t/cup/bots/ada/mybot", "/t/cup/bots/ada/mybot"),
            ("/workers/suspend", "/workers"),
            ("/t/cup/matches/7", "/t/cup/matches/7"),
        ] {
            assert_eq!(ReturnPath::of_text(form).as_str(), page);
        }
    }

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
