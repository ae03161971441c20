//! What was done: whoever sent a form is led to a page that says so, and may load it again without
//! doing it again.

use axum::response::Redirect;
use maud::{Markup, html};
use serde::Deserialize;

/// What a page is to say first, in its address. It is one of a few sentences: no address puts words
/// into our mouth.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Done {
    done: String,
    count: Option<u32>,
}

impl Done {
    /// The sentence.
    pub(super) fn note(&self) -> Markup {
        let count = self.count.unwrap_or_default();
        let several = |one: &str, more: &str| match count {
            1 => one.to_owned(),
            count => format!("{count} {more}"),
        };
        let note = match &self.done[..] {
            "made" => "The tournament is made. If its file names house bots, submit each of them: \
                arbiter submit T PATH --house. Then start an edition."
                .to_owned(),
            "start" => "An edition was started.".to_owned(),
            "fresh" => "An edition was started whose plan begins anew.".to_owned(),
            "cancel" => "The tournament was cancelled.".to_owned(),
            "close" => "The tournament was closed; its seed is shown below.".to_owned(),
            "void" => format!(
                "{} declared void. A new edition plays them again; where rerun is manual, start it.",
                several("1 match was", "matches were")
            ),
            "retry" => {
                format!("{} may be played again.", several("1 match", "matches"))
            }
            "submit" => "The version was received.".to_owned(),
            "trial" => "The version will be tried again.".to_owned(),
            "withdraw" => "The bot was withdrawn: it takes no part in the editions to come. \
                Submitting it again brings it back."
                .to_owned(),
            "reinstate" => "The bot was reinstated: it takes part again.".to_owned(),
            "suspend" => {
                "The worker was suspended. Its matches count until they are declared void."
                    .to_owned()
            }
            "reinstate-worker" => "The worker may play again.".to_owned(),
            _ => return html! {},
        };
        html! { p.done role="status" { (note) } }
    }
}

/// To the page at `path`, which says what was done.
pub(super) fn to(path: &str, done: &str) -> Redirect {
    Redirect::to(&format!("{path}?done={done}"))
}

/// To the page at `path`, which says what was done, and with how many.
pub(super) fn to_counted(path: &str, done: &str, count: usize) -> Redirect {
    Redirect::to(&format!("{path}?done={done}&count={count}"))
}
