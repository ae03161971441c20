//! Invitations: an organiser enters names, and gets a card to print for each new player.
//!
//! A card has the address of the site, the token, and a QR code of a login link. The token is in
//! the fragment of that link (`/login#token=…`): browsers do not send fragments, so it is in no log
//! of a server or proxy. The script of the login page fills the field from it.

mod qr_code;

use arbiter_proto::v1::CreateTokenResponse;
use axum::extract::Query;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Deserialize;

use super::api::escape;
use super::csrf_form::{CsrfForm, WrittenForm};
use super::error::{WebError, mark_formatted};
use super::layout;
use super::session::{self, Session};
use crate::access::Role;
use crate::access::creation::{MAX_TOKENS, RefusedNames};
use crate::access::name_list::NameList;

/// The style of the cards, on the site and in files.
pub(super) const STYLE: &str = include_str!("assets/invitations.css");
/// Maximum size of the form, in bytes: names of many bytes, with the escapes of forms.
pub(super) const MAX_FORM_BYTES: usize = 1 << 20;
/// Cards on a printed page.
const CARDS_PER_PAGE: usize = 6;
/// Maximum number of lines that an error names.
const MAX_PROBLEMS: usize = 40;
/// Characters of a token in a group, so that a person can read them.
const GROUP: usize = 8;
/// The title of a card if the organiser chose none.
const DEFAULT_TITLE: &str = "Your invitation";

/// The cards of new players.
#[derive(Clone, Copy, Debug)]
pub struct Invitations<'a> {
    /// The title of the contest; may be empty.
    pub title: &'a str,
    /// The address of the site, such as `https://arbiter.example`.
    pub site: &'a str,
    /// The names of the players and the secrets of their tokens.
    pub players: &'a [(&'a str, &'a str)],
}

/// The address that logs a player in.
pub fn login_link(site: &str, token: &str) -> String {
    format!("{}/login#token={token}", site.trim_end_matches('/'))
}

/// The cards as an HTML document that needs no other files.
pub fn document(invitations: Invitations<'_>) -> String {
    let title = Some(invitations.title).filter(|title| !title.is_empty());
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="robots" content="noindex";
                title { (title.unwrap_or(DEFAULT_TITLE)) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (cards(invitations)) } }
        }
    };
    document.into_string()
}

/// The cards, in pages.
fn cards(Invitations { title, site, players }: Invitations<'_>) -> Markup {
    let title = if title.is_empty() { DEFAULT_TITLE } else { title };
    html! {
        @for page in players.chunks(CARDS_PER_PAGE) {
            div.invitations { @for (name, token) in page { (card(title, site, name, token)) } }
        }
    }
}

fn card(title: &str, site: &str, name: &str, token: &str) -> Markup {
    html! {
        section.invitation {
            p.contest { (title) }
            h2 { (name) }
            @if let Some(svg) = qr_code::svg(&login_link(site, token)) { (svg) }
            p {
                "Scan the code, or open " b.site { (site.trim_end_matches('/')) "/login" }
                " and enter your token:"
            }
            p.token { (grouped(token)) }
            p.note { "The token is your password. Do not share it." }
        }
    }
}

/// A token in groups of characters. Copied text has no spaces between the groups.
fn grouped(token: &str) -> Markup {
    let (prefix, digits) = token.split_at(token.find('_').map_or(0, |at| at + 1));
    let digits: Vec<char> = digits.chars().collect();
    html! {
        code {
            span { (prefix) }
            @for group in digits.chunks(GROUP) { span { (group.iter().collect::<String>()) } }
        }
    }
}

/// The form.
#[derive(Debug, Deserialize)]
pub(super) struct InvitationForm {
    names: String,
    #[serde(default)]
    title: String,
    /// The tournament from which the organiser came; may be empty.
    #[serde(default)]
    t: String,
}

impl WrittenForm for InvitationForm {
    fn is_written(field: &str) -> bool {
        ["names", "title"].contains(&field)
    }
}

/// The query string of the form: the tournament whose title the cards get.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct InvitationQuery {
    t: String,
}

/// The page with the form.
pub(super) async fn form(
    session: Session,
    Query(InvitationQuery { t: tournament }): Query<InvitationQuery>,
) -> Result<Markup, WebError> {
    session.caller.require(Role::Organiser)?;
    let title = if tournament.is_empty() {
        String::new()
    } else {
        session.service.tournament_heading(&tournament).await?.title
    };
    let form = InvitationForm { names: String::new(), title, t: tournament };
    Ok(form_page(&session, &form, &[]).await)
}

/// The pages above these pages: those of the tournament from which the organiser came.
async fn parents(session: &Session, tournament: &str) -> Vec<(String, String)> {
    let heading = session.service.tournament_heading(tournament).await;
    let path = format!("/t/{tournament}");
    heading.map_or_else(
        |_| Vec::new(),
        |heading| {
            vec![(heading.title, path.clone()), ("Organise".to_owned(), format!("{path}/organise"))]
        },
    )
}

/// The address of the form, for this tournament if there is one.
fn form_path(tournament: &str) -> String {
    if tournament.is_empty() {
        "/invitations".to_owned()
    } else {
        format!("/invitations?t={}", escape(tournament))
    }
}

/// Creates the tokens and shows the cards.
pub(super) async fn create(
    headers: HeaderMap,
    CsrfForm { session, form }: CsrfForm<InvitationForm>,
) -> Result<Response, WebError> {
    session.caller.require(Role::Organiser)?;
    match invite_all(&session, &form.names).await {
        Ok(created) => {
            let page = cards_page(&session, &form, &site_address(&headers), &created).await;
            Ok(page.into_response())
        }
        Err(Refusal { status, problems }) => {
            let page = form_page(&session, &form, &problems).await;
            let mut response = (status, page).into_response();
            mark_formatted(&mut response);
            Ok(response)
        }
    }
}

/// Why no invitation was created: the form is shown again with it.
struct Refusal {
    status: StatusCode,
    /// What must be corrected.
    problems: Vec<String>,
}

impl From<WebError> for Refusal {
    fn from(error: WebError) -> Self {
        Self { status: error.status(), problems: vec![error.message().to_owned()] }
    }
}

impl From<RefusedNames> for Refusal {
    fn from(names: RefusedNames) -> Self {
        let status = if names.has_taken() { StatusCode::CONFLICT } else { StatusCode::BAD_REQUEST };
        Self { status, problems: names.problems() }
    }
}

/// Creates a token for each name of a list, or none.
async fn invite_all(session: &Session, names: &str) -> Result<Vec<CreateTokenResponse>, Refusal> {
    let list = NameList::read(names)
        .map_err(|error| WebError::new(StatusCode::BAD_REQUEST, error.to_string()))?;
    let request = list.request(Role::Player, 0);
    let created = session.service.create_tokens_or_list_problems(&session.caller, request).await;
    Ok(created.map_err(WebError::from)??.tokens)
}

/// The address of this site, as the browser sees it.
pub(super) fn site_address(headers: &HeaderMap) -> String {
    let scheme = if session::is_https(headers) { "https" } else { "http" };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    format!("{scheme}://{host}")
}

/// The title of the page with the form.
const FORM_TITLE: &str = "Invite players";

/// The page with the form, as it was filled in, and what must be corrected.
async fn form_page(session: &Session, form: &InvitationForm, problems: &[String]) -> Markup {
    let InvitationForm { names, title, t: tournament } = form;
    let body = html! {
        @match problems {
            [] => {}
            [problem] => (layout::error_message(Some(problem))),
            _ => {
                div.error-message role="alert" {
                    p { "No invitation was created. Correct these lines:" }
                    ul {
                        @for problem in problems.iter().take(MAX_PROBLEMS) {
                            li { (layout::sentence(problem)) }
                        }
                    }
                    @if problems.len() > MAX_PROBLEMS {
                        p { "And " (problems.len() - MAX_PROBLEMS) " more." }
                    }
                }
            }
        }
        p {
            "Each player gets a token: their password for all tournaments of this site. This page "
            "creates the tokens and shows, once only, a card for each player, to print and cut out."
        }
        form.fields method="post" action="/invitations" {
            (layout::csrf_field(session))
            input type="hidden" name="t" value=(layout::form_value(tournament));
            p {
                label for="title" { "Title on the cards" }
                input #title name="title" value=(layout::form_value(title)) maxlength="100" autocomplete="off"
                    aria-describedby="title-help";
                small #title-help { "If it is empty, the cards say “" (DEFAULT_TITLE) "”." }
            }
            p {
                label for="names" { "Names" }
                textarea #names name="names" rows="12" required spellcheck="false"
                    aria-describedby="names-help" { "\n" (layout::form_value(names)) }
                small #names-help {
                    "One name per line, at most " (MAX_TOKENS) ", or a table of comma-separated values "
                    "with a column " code { "name" } ". Others see the name as the owner of bots. "
                    "Lines that begin with # do not count."
                }
            }
            p { button type="submit" { "Create invitations" } }
        }
    };
    let parents = parents(session, tournament).await;
    let parents: Vec<_> = parents.iter().map(|(label, path)| (&label[..], path.clone())).collect();
    layout::page_below(&parents, FORM_TITLE, session, &body)
}

/// The page with the cards of the tokens that a form created.
async fn cards_page(
    session: &Session,
    form: &InvitationForm,
    site: &str,
    created: &[CreateTokenResponse],
) -> Markup {
    let title = form.title.trim();
    let form_path = form_path(&form.t);
    let players: Vec<_> =
        created.iter().map(|token| (token.name.as_str(), token.token.as_str())).collect();
    let body = html! {
        div.screen-only {
            p.flash role="status" {
                (layout::count(created.len(), "invitation", "invitations")) " created. "
                strong { "Print this page now: it cannot be shown again." }
                " It prints six cards a page. If a card is lost, give the player a new token with "
                code { "arbiter token rotate NAME" } "."
            }
            p { a href=(form_path) { "Invite more players" } }
        }
        (cards(Invitations { title, site, players: &players }))
    };
    let above = parents(session, &form.t).await;
    let mut parents: Vec<_> =
        above.iter().map(|(label, path)| (&label[..], path.clone())).collect();
    parents.push((FORM_TITLE, form_path));
    layout::page_below(&parents, "Invitations", session, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_six_cards_a_page_and_loads_nothing() {
        let token = format!("arb_{}", "0123456789abcdef".repeat(4));
        let players = [("Ada <Lovelace>", token.as_str()); 13];
        let site = "https://arbiter.example/";
        let text = document(Invitations { title: "Cup", site, players: &players });
        assert_eq!(text.matches("<section class=\"invitation\">").count(), 13);
        assert_eq!(text.matches("<div class=\"invitations\">").count(), 3);
        assert_eq!(text.matches("<svg").count(), 13);
        assert!(text.contains("Ada &lt;Lovelace&gt;") && !text.contains("<Lovelace>"));
        assert!(text.contains("https://arbiter.example/login</b>"), "{text}");
        for part in ["<script", "<link", "src=", "@import", "url("] {
            assert!(!text.contains(part), "{part}");
        }
    }

    #[test]
    fn the_groups_of_a_token_are_its_text() {
        let markup = grouped("arb_0123456789").into_string();
        assert_eq!(markup, "<code><span>arb_</span><span>01234567</span><span>89</span></code>");
    }
}
