//! Flash messages. After a form was processed, the response redirects to a page that confirms it.
//! The user can reload that page without repeating the action.

use axum::response::Redirect;
use maud::{Markup, html};
use serde::Deserialize;

use super::layout;

/// The message of a page, chosen by a code in its URL. Messages are fixed texts, so a link cannot
/// make a page show any other text.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Flash {
    done: String,
    count: Option<u32>,
}

impl Flash {
    /// The message, or nothing if the code is unknown.
    pub(super) fn message(&self) -> Markup {
        let matches = layout::count(self.count.unwrap_or_default(), "match", "matches");
        let message = match &self.done[..] {
            "created" => "Tournament created. The page Organise has what comes next: edit its \
                title and deadlines, invite players, start an edition."
                .to_owned(),
            "created-with-house" => {
                "Tournament created. Now submit each house bot of its file with \
                arbiter submit TOURNAMENT PATH --house. Then start an edition on the page Organise."
                    .to_owned()
            }
            "edit" => "Settings changed. The audit log has the old and the new values.".to_owned(),
            "announce" => "Announcement posted.".to_owned(),
            "unannounce" => "Announcement removed.".to_owned(),
            "package" => "Game package stored. The next edition is played with it.".to_owned(),
            "start" => "Edition started.".to_owned(),
            "rehearse" => "Rehearsal started. Cancel it when you have seen enough.".to_owned(),
            "fresh" => "Edition started, with a plan made from scratch.".to_owned(),
            "cancel" => "Tournament cancelled.".to_owned(),
            "close" => "Tournament closed. Its seed is on the page About.".to_owned(),
            "void" => format!(
                "{matches} declared void. A new edition will replay them. If the tournament's rerun \
                 setting is manual, start that edition yourself."
            ),
            "retry" => format!("{matches} will be played again."),
            "submit" => "Version submitted.".to_owned(),
            "trial" => "The trial will run again.".to_owned(),
            "withdraw" => "Bot withdrawn: it will not play in future editions. To bring it back, \
                submit a version."
                .to_owned(),
            "reinstate" => "Bot reinstated: it plays in future editions.".to_owned(),
            "suspend" => {
                "Worker suspended. Its matches still count; declare them void if necessary."
                    .to_owned()
            }
            "reinstate-worker" => "Worker reinstated: it can play matches again.".to_owned(),
            _ => return html! {},
        };
        html! { p.flash role="status" { (message) } }
    }
}

/// Redirects to `path` with a message.
pub(super) fn redirect(path: &str, done: &str) -> Redirect {
    Redirect::to(&format!("{path}?done={done}"))
}

/// Redirects to `path` with a message that includes a count.
pub(super) fn redirect_with_count(path: &str, done: &str, count: usize) -> Redirect {
    Redirect::to(&format!("{path}?done={done}&count={count}"))
}
