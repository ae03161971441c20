//! Links at the foot of a page to its data in the forms of programs.

use maud::{Markup, html};

/// The path of the introduction to the API.
pub(super) const API: &str = "/api";

/// A form of the data of a page.
#[derive(Clone, Debug)]
pub(super) enum DataLink {
    /// JSON at this path of the API, below its version.
    Json(String),
    /// CSV at this path.
    Csv(String),
    /// A file with this label at this path.
    File(&'static str, String),
}

/// Links to the data `what` of a page, such as `This leaderboard`, and to the API.
pub(super) fn data_links(what: &str, links: &[DataLink]) -> Markup {
    html! {
        p.data-links {
            (what) ": "
            @for link in links {
                @match link {
                    DataLink::Json(path) => a href={ "/api/v1/" (path) } { "JSON" },
                    DataLink::Csv(path) => a href=(path) download { "CSV" },
                    DataLink::File(label, path) => a href=(path) download { (label) },
                }
                " · "
            }
            a href=(API) { "About the API" }
        }
    }
}
