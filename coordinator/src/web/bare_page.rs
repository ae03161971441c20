//! Pages without navigation and session, for frames and projectors.

use maud::{Markup, html};

use super::layout;

/// A page with the class `class`. `head` is added to the head.
pub(super) fn render(title: &str, class: &str, head: &Markup, body: &Markup) -> Markup {
    layout::bare_document(title, head, &html! { main class=(class) { (body) } })
}
