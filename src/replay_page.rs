//! Replays as pages of the same style as those of the web interface.

use std::io::Read;

use arbiter_coordinator::web::style;
use arbiter_games::Games;
use arbiter_replay::{Difference, PageOptions, ShownNames};

/// The replay of a record as one page that needs no server and no network. Without a title, the
/// heading names the bots. `back` is a link at the top: its text and its URL. The page shows
/// `names` instead of those in the record.
///
/// # Errors
/// The first difference between the record and the rules.
pub(crate) fn replay_page(
    games: &Games,
    record: impl Read + Send,
    title: Option<&str>,
    back: Option<(&str, &str)>,
    names: &ShownNames,
) -> Result<String, Difference> {
    arbiter_replay::replay_page(games, record, PageOptions { title, names, style: style(), back })
}
