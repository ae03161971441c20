//! Announcements of organisers: shown on the page of a tournament, posted and removed on the page
//! for organisers.

use arbiter_proto::v1::{
    Announcement, PostAnnouncementRequest, RemoveAnnouncementRequest, Tournament,
};
use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::actions::organiser_page;
use super::csrf_form::{CsrfForm, WrittenForm};
use super::error::WebError;
use super::session::Session;
use super::{flash, layout, markdown, organise};

/// The form that posts an announcement.
#[derive(Debug, Deserialize)]
pub(super) struct PostForm {
    #[serde(default)]
    text: String,
}

impl WrittenForm for PostForm {
    fn is_written(field: &str) -> bool {
        field == "text"
    }
}

/// The form that removes an announcement.
#[derive(Debug, Deserialize)]
pub(super) struct RemoveForm {}

impl WrittenForm for RemoveForm {}

/// The number of announcements that are not collapsed.
const MAX_SHOWN: usize = 2;

/// The announcements of a tournament, newest first; older ones are collapsed. Nothing if there are
/// none.
pub(super) fn list(tournament: &Tournament) -> Markup {
    let all = &tournament.announcements;
    html! {
        @if !all.is_empty() {
            section.announcements aria-label="Announcements" {
                @for announcement in all.iter().take(MAX_SHOWN) { (article(announcement)) }
                @if all.len() > MAX_SHOWN {
                    details {
                        summary { "Older announcements" }
                        @for announcement in all.iter().skip(MAX_SHOWN) { (article(announcement)) }
                    }
                }
            }
        }
    }
}

/// An announcement.
fn article(Announcement { number, at_us, text }: &Announcement) -> Markup {
    html! {
        article.notice id={ "announcement-" (number) } {
            p { small { (layout::timestamp(*at_us)) } }
            (markdown::render(text, &format!("announcement-{number}-")))
        }
    }
}

/// The announcements with buttons to remove them, and the form for a new one: for organisers.
/// `draft` is a text that was refused; may be empty.
pub(super) fn organise(session: &Session, tournament: &Tournament, draft: &str) -> Markup {
    let is_invalid = (!draft.is_empty()).then_some("true");
    let path = format!("/t/{}/announcements", tournament.name);
    html! {
        section aria-labelledby="announce" {
            h2 #announce { "Announcements" }
            form.fields method="post" action=(path) {
                (layout::csrf_field(session))
                p {
                    label for="announcement" { "New announcement" }
                    textarea #announcement name="text" rows="4" required maxlength="2000"
                        aria-describedby="announcement-help" aria-invalid=[is_invalid] { "\n" (layout::form_value(draft)) }
                    small #announcement-help { "Markdown, at most 2000 bytes. Everyone sees it at once." }
                }
                p { button type="submit" { "Post announcement" } }
            }
            @for announcement in &tournament.announcements {
                (article(announcement))
                form.action method="post" action={ (path) "/" (announcement.number) "/remove" } {
                    (layout::csrf_field(session))
                    button type="submit" {
                        "Remove announcement " (announcement.number)
                    }
                }
            }
        }
    }
}

/// Posts an announcement.
pub(super) async fn post(
    Path(tournament): Path<String>,
    CsrfForm { session, form }: CsrfForm<PostForm>,
) -> Result<Response, WebError> {
    let text = form.text.clone();
    let request = PostAnnouncementRequest { tournament: tournament.clone(), text };
    match session.service.post_announcement(&session.caller, request).await {
        Ok(_) => Ok(flash::redirect(&organiser_page(&tournament), "announce").into_response()),
        Err(error) => organise::refuse(&session, &tournament, error.into(), &form.text).await,
    }
}

/// Removes an announcement.
pub(super) async fn remove(
    Path((tournament, number)): Path<(String, i32)>,
    CsrfForm { session, form: RemoveForm {} }: CsrfForm<RemoveForm>,
) -> Result<Redirect, WebError> {
    let request = RemoveAnnouncementRequest { tournament: tournament.clone(), number };
    session.service.remove_announcement(&session.caller, request).await?;
    Ok(flash::redirect(&organiser_page(&tournament), "unannounce"))
}
