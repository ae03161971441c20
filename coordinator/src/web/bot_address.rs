//! Addresses of bots with an owner: `/t/cup/bots/ada/mybot`.
//!
//! Routes have one segment for a bot, so this joins the two segments of such a name, as if the
//! client had sent `ada%2Fmybot`, before the routes see the address. A word that can follow a bot
//! in an address is never taken for the second segment: no player's bot may have it as its name.

use axum::extract::Request;
use axum::http::uri::{PathAndQuery, Uri};
use axum::middleware::Next;
use axum::response::Response;

use crate::service::RESERVED_BOT_NAMES;

/// What comes before the name of a bot: the segments of the path, where `*` is any tournament.
const PREFIXES: [&[&str]; 2] =
    [&["", "t", "*", "bots"], &["", "api", "v1", "tournaments", "*", "bots"]];

/// Joins the owner and the short name in the address of a request.
pub(super) async fn join_owner(mut request: Request, next: Next) -> Response {
    if let Some(uri) = joined(request.uri()) {
        *request.uri_mut() = uri;
    }
    next.run(request).await
}

/// The address with both parts of the bot's name in one segment. `None` if it is so already.
fn joined(uri: &Uri) -> Option<Uri> {
    let path = joined_path(uri.path())?;
    let text = uri.query().map_or_else(|| path.clone(), |query| format!("{path}?{query}"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(text.parse::<PathAndQuery>().ok()?);
    Uri::from_parts(parts).ok()
}

/// The path with both parts of the bot's name in one segment. `None` if it is so already.
pub(super) fn joined_path(path: &str) -> Option<String> {
    let is_prefix = |prefix: &&&[&str]| {
        let mut segments = path.split('/');
        prefix.iter().all(|part| segments.next().is_some_and(|one| *part == "*" || *part == one))
    };
    let prefix = PREFIXES.iter().find(is_prefix)?.len();
    let mut parts = path.splitn(prefix + 3, '/');
    let before: Vec<_> = parts.by_ref().take(prefix + 1).collect();
    let short = parts.next()?;
    if short.is_empty() || RESERVED_BOT_NAMES.contains(&short) {
        return None;
    }
    let after = parts.next().map_or_else(String::new, |after| format!("/{after}"));
    Some(format!("{}%2F{short}{after}", before.join("/")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_reserved_names_are_the_words_after_a_bot_in_addresses() {
        let routes = [include_str!("../web.rs"), include_str!("api/endpoints.rs")].concat();
        let after_bots = routes.split("/bots/{bot}/").skip(1);
        let words = after_bots.filter_map(|rest| rest.split(['/', '"']).next());
        assert_eq!(words.collect::<BTreeSet<_>>(), BTreeSet::from(RESERVED_BOT_NAMES));
    }

    #[test]
    fn the_owner_and_the_name_of_a_bot_are_one_segment_for_the_routes() {
        let address = |text: &str| joined(&text.parse().unwrap()).map(|uri| uri.to_string());
        for (sent, routed) in [
            ("/t/cup/bots/ada/mybot", Some("/t/cup/bots/ada%2Fmybot")),
            ("/t/cup/bots/ada/mybot?edition=3", Some("/t/cup/bots/ada%2Fmybot?edition=3")),
            ("/t/cup/bots/ada/mybot/versions/2", Some("/t/cup/bots/ada%2Fmybot/versions/2")),
            ("/t/cup/bots/ada/mybot/withdraw", Some("/t/cup/bots/ada%2Fmybot/withdraw")),
            (
                "/api/v1/tournaments/cup/bots/ada/mybot/log?limit=5",
                Some("/api/v1/tournaments/cup/bots/ada%2Fmybot/log?limit=5"),
            ),
            ("/t/cup/bots/ada", None),
            ("/t/cup/bots/ada/", None),
            ("/t/cup/bots/ada/withdraw", None),
            ("/t/cup/bots/ada/versions/2/live", None),
            ("/t/cup/bots/ada%2Fmybot", None),
            ("/t/cup/matches/1/steps", None),
            ("/t/bots/ada/mybot", None),
        ] {
            assert_eq!(address(sent).as_deref(), routed, "{sent}");
        }
    }
}
