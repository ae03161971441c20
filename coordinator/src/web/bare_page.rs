//! Pages without navigation and session, for frames and projectors.

use maud::{DOCTYPE, Markup, html};

/// A page with the class `class`. `head` is added to the head.
pub(super) fn render(title: &str, class: &str, head: &Markup, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – Arbiter" }
                link rel="icon" href="/assets/arbiter.svg" type="image/svg+xml";
                link rel="stylesheet" href="/assets/arbiter.css";
                (head)
            }
            body { main class=(class) { (body) } }
        }
    }
}
