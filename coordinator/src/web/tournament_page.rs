//! The frame of all pages of a tournament: the way back, the title, the tabs, and a notice while
//! leaderboards are frozen or after the tournament was cancelled.

use arbiter_proto::v1::GetTournamentRequest;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};

use super::error::{self, WebError};
use super::session::Session;
use super::{layout, rehearsal, tournament};
use crate::service::{EntryState, ErrorKind, RoundsView, TournamentEnd, TournamentHeading};

/// A tab of a tournament.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tab {
    Leaderboard,
    Matches,
    Rounds,
    Bots,
    HeadToHead,
    Statistics,
    HowToPlay,
    About,
    /// For organisers only.
    Organise,
    /// While bots can enter.
    Submit,
}

impl Tab {
    const ALL: [Self; 10] = [
        Self::Leaderboard,
        Self::Matches,
        Self::Rounds,
        Self::Bots,
        Self::HeadToHead,
        Self::Statistics,
        Self::HowToPlay,
        Self::About,
        Self::Organise,
        Self::Submit,
    ];

    /// Its label and its path below the tournament.
    fn link(self, heading: &TournamentHeading) -> (&'static str, &'static str) {
        match self {
            Self::Leaderboard => ("Leaderboard", ""),
            Self::Matches => ("Matches", "/matches"),
            Self::Rounds if heading.rounds == Some(RoundsView::Bracket) => ("Bracket", "/bracket"),
            Self::Rounds => ("Rounds", "/rounds"),
            Self::Bots => ("Bots", "/bots"),
            Self::HeadToHead => ("Head to head", "/matrix"),
            Self::Statistics => ("Statistics", "/statistics"),
            Self::HowToPlay => ("How to play", "/how-to-play"),
            Self::About => ("About", "/about"),
            Self::Organise => ("Organise", "/organise"),
            Self::Submit => ("Submit a bot", "/submit"),
        }
    }

    /// Whether the reader has this tab.
    fn is_shown(self, heading: &TournamentHeading, session: &Session) -> bool {
        match self {
            Self::Rounds => heading.rounds.is_some(),
            Self::Organise => session.caller.is_organiser(),
            Self::Submit => heading.entry.is_open(),
            _ => true,
        }
    }
}

/// A page of a tournament.
#[derive(Clone, Debug)]
pub(super) struct TournamentPage<'a> {
    tournament: &'a str,
    tab: Tab,
    /// The title of a page below the tab.
    title: Option<String>,
    /// A line below the title.
    subtitle: Option<String>,
    /// The pages between the tab and this page: labels and paths.
    parents: Vec<(String, String)>,
    /// The heading of the tournament, if it was read already.
    heading: Option<TournamentHeading>,
}

impl<'a> TournamentPage<'a> {
    /// The page of a tab.
    pub(super) fn new(tournament: &'a str, tab: Tab) -> Self {
        Self { tournament, tab, title: None, subtitle: None, parents: Vec::new(), heading: None }
    }

    /// A page below a tab.
    pub(super) fn below(tournament: &'a str, tab: Tab, title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..Self::new(tournament, tab) }
    }

    /// Adds a line below the title. It is a part of the title of the window.
    pub(super) fn with_subtitle(mut self, subtitle: String) -> Self {
        self.subtitle = Some(subtitle);
        self
    }

    /// Adds a page between the tab and this page.
    pub(super) fn with_parent(mut self, label: &str, path: String) -> Self {
        self.parents.push((label.to_owned(), path));
        self
    }

    /// Uses this heading. Otherwise it is read.
    pub(super) fn with_heading(mut self, heading: Option<TournamentHeading>) -> Self {
        self.heading = heading;
        self
    }

    /// The page with this content. If the tournament cannot be read, its name is the title.
    pub(super) async fn render(mut self, session: &Session, body: &Markup) -> Markup {
        let heading = match self.heading.take() {
            Some(heading) => Ok(heading),
            None => session.service.tournament_heading(self.tournament).await,
        };
        let Ok(heading) = heading else {
            let title = self.title.as_deref().unwrap_or(self.tournament);
            return layout::page(title, session, body);
        };
        let (tab_label, tab_path) = self.tab.link(&heading);
        let is_front = self.tab == Tab::Leaderboard && self.title.is_none();
        let title = match &self.title {
            Some(title) => title.as_str(),
            None if is_front => heading.title.as_str(),
            None => tab_label,
        };
        let path = format!("/t/{}", heading.name);
        let mut crumbs = Vec::new();
        if !is_front {
            crumbs.push((heading.title.as_str(), path.clone()));
        }
        if self.title.is_some() && !tab_path.is_empty() {
            crumbs.push((tab_label, format!("{path}{tab_path}")));
        }
        crumbs.extend(self.parents.iter().map(|(label, path)| (&label[..], path.clone())));
        let page = html! {
            (layout::breadcrumbs(&crumbs))
            h1 { (title) }
            @if let Some(subtitle) = &self.subtitle { p.subtitle { (subtitle) } }
            (tabs(&heading, session, tab_label))
            (rehearsal::notice(heading.rehearsal.as_ref()))
            (cancelled_notice(&heading))
            (frozen_notice(&heading, session))
            (body)
        };
        let own_title = [Some(title), self.subtitle.as_deref()];
        let own_title = own_title.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let document_title =
            if is_front { own_title } else { format!("{own_title} – {}", heading.title) };
        layout::session_page(&document_title, session, &page)
    }
}

impl TournamentPage<'_> {
    /// The page with this content. Before the first edition the page says that nothing has been
    /// played. If there is nothing to show for another reason, or not to this caller, the page
    /// says so, with the status of the error.
    pub(super) async fn respond(
        self,
        session: &Session,
        content: Result<Markup, WebError>,
    ) -> Result<Response, WebError> {
        let error = match content {
            Ok(content) => return Ok(self.render(session, &content).await.into_response()),
            Err(error) => error,
        };
        let tournament = session.service.tournament_heading(self.tournament).await;
        let is_shown = error.is_of(&[
            ErrorKind::FailedPrecondition,
            ErrorKind::PermissionDenied,
            ErrorKind::InvalidArgument,
            ErrorKind::NotFound,
        ]);
        if tournament.is_err() || !is_shown {
            return Err(error);
        }
        // A page that does not exist yet is not found.
        let is_too_early = error.is_of(&[ErrorKind::FailedPrecondition]);
        if is_too_early && let Some(body) = self.nothing_played(session).await {
            return Ok(self.render(session, &body).await.into_response());
        }
        let status = if is_too_early { StatusCode::NOT_FOUND } else { error.status() };
        let path = format!("/t/{}", self.tournament);
        let body = html! {
            p { (layout::sentence(error.message())) }
            p { a href=(path) { "Go to the leaderboard" } }
        };
        Ok(self.render_error(session, status, &body).await)
    }

    /// What to show if the tournament has no edition.
    pub(super) async fn nothing_played(&self, session: &Session) -> Option<Markup> {
        let request =
            GetTournamentRequest { tournament: self.tournament.to_owned(), edition: None };
        let details = session.service.cached_tournament(&session.caller, request).await.ok()?;
        let missing = match self.tab {
            Tab::Matches if self.title.is_some() => "There is no schedule yet",
            Tab::Matches => "There are no matches yet",
            Tab::Rounds => "There are no rounds yet",
            _ => "There are no results yet",
        };
        let is_organiser = session.caller.is_organiser();
        let body = tournament::nothing_played(&details, missing, is_organiser);
        details.editions.is_empty().then_some(body)
    }

    /// The page with a form that says why it was refused, with the status of the error.
    pub(super) async fn respond_with_form(
        self,
        session: &Session,
        error: WebError,
        form: &Markup,
    ) -> Result<Response, WebError> {
        if session.service.tournament_heading(self.tournament).await.is_err() {
            return Err(error);
        }
        Ok(self.render_error(session, error.status(), form).await)
    }

    async fn render_error(self, session: &Session, status: StatusCode, body: &Markup) -> Response {
        let mut response = (status, self.render(session, body).await).into_response();
        error::mark_formatted(&mut response);
        response
    }
}

/// Links to the pages of a tournament. The tab labelled `current` is marked.
fn tabs(heading: &TournamentHeading, session: &Session, current: &str) -> Markup {
    let path = format!("/t/{}", heading.name);
    let shown = Tab::ALL.into_iter().filter(|tab| tab.is_shown(heading, session));
    html! {
        nav.tabs aria-label=(heading.title) {
            @for tab in shown {
                @let (label, below) = tab.link(heading);
                a class=[(tab == Tab::Submit).then_some("submit")] href={ (path) (below) }
                    aria-current=[(label == current).then_some("page")] { (label) }
            }
        }
    }
}

/// A notice if the tournament was cancelled. A rehearsal says anyway that it is never official.
fn cancelled_notice(heading: &TournamentHeading) -> Markup {
    let EntryState::Over(TournamentEnd { is_cancelled: true, at }) = heading.entry else {
        return html! {};
    };
    html! {
        p.notice role="note" {
            strong { "This tournament was cancelled" }
            @if let Some(at) = at { " on " (layout::time(at)) }
            "."
            @if heading.rehearsal.is_none() { " It has no official leaderboard." }
        }
    }
}

/// A notice while the public sees frozen leaderboards.
fn frozen_notice(heading: &TournamentHeading, session: &Session) -> Markup {
    let Some(since) = heading.frozen_since else { return html! {} };
    html! {
        p.notice.frozen role="note" {
            strong { "Leaderboards are frozen" } " since " (layout::time(since)) ". "
            @if session.caller.is_organiser() {
                "You see newer results because you are an organiser. Others see them when the \
                 tournament is over."
            } @else {
                "Newer results are shown when the tournament is over."
            }
        }
    }
}
