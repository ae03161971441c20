//! The page of a match: its state, its result and its replay, step by step.
//!
//! The record is replayed ([`arbiter_replay::render_chunks()`]), and the requested step is cached
//! with its neighbours ([`replay_cache`]). Without scripts each step is a page. With scripts, the
//! viewer ([`Viewer`]) fetches chunks of steps ahead and plays them.

use std::num::IntErrorKind;

use arbiter_games::Seat;
use arbiter_proto::ids::{MatchName, MatchNumber};
use arbiter_proto::state_words::state_of;
use arbiter_proto::v1::{GetMatchRequest, MatchStatus};
use arbiter_replay::{Autoplay, Overview, STEPS_PER_CHUNK, ShownNames, StepSource, Viewer};
use axum::extract::{Path, Query};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, PreEscaped, html};
use serde::{Deserialize, Deserializer};

use super::data_links::{DataLink, data_links};
use super::error::WebError;
use super::flash::Flash;
use super::replay_cache::{self, ReplayChunk, ReplayKey, Replayed};
use super::session::{Anonymous, Session};
use super::tournament_links::TournamentLinks;
use super::tournament_page::{Tab, TournamentPage};
use super::{actions, download, layout};
use crate::service::{ErrorKind, ServiceError, TournamentHeading, cannot_replay};

/// The query string of a page with a replay.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StepQuery {
    /// 0 if the text is no number. People change addresses by hand.
    #[serde(deserialize_with = "step_number")]
    pub(super) step: usize,
}

/// Reads the number of a step: the first step for a text that is no number, and one beyond the
/// last step for a number that is too large.
fn step_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let parsed = String::deserialize(deserializer)?.parse::<usize>();
    Ok(parsed.unwrap_or_else(|error| match error.kind() {
        IntErrorKind::PosOverflow => usize::MAX,
        _ => 0,
    }))
}

/// The query string of a request for steps.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChunkQuery {
    /// The number of the chunk.
    pub(super) chunk: usize,
}

/// What the page of a match shows besides the replay.
struct MatchFacts {
    status: MatchStatus,
    /// The number of the edition that added the match.
    edition: i32,
    /// Whether everyone may see the replay.
    is_public: bool,
    links: TournamentLinks,
    heading: TournamentHeading,
}

impl MatchFacts {
    async fn find(
        session: &Session,
        anonymous: &Session,
        tournament: &str,
        name: &str,
    ) -> Result<Self, ServiceError> {
        let Session { service, caller, .. } = session;
        let request = GetMatchRequest { r#match: name.to_owned() };
        Ok(Self {
            status: service.get_match(caller, request).await?,
            edition: service.edition_of_match(name).await?,
            is_public: service.shows_record(&anonymous.caller, name).await?,
            links: TournamentLinks::new(tournament, service.names_with_owners(tournament).await?),
            heading: service.tournament_heading(tournament).await?,
        })
    }
}

/// The page of a match.
pub(super) async fn show(
    session: Session,
    Anonymous(anonymous): Anonymous,
    Path((tournament, number)): Path<(String, i64)>,
    Query(StepQuery { step }): Query<StepQuery>,
    Query(flash): Query<Flash>,
    headers: HeaderMap,
) -> Result<Markup, WebError> {
    let name = match_name(&tournament, number);
    // The page needs both, and a replay of a long match takes long.
    let (facts, replay) = tokio::join!(
        MatchFacts::find(&session, &anonymous, &tournament, &name),
        Replay::open(&session, &name, step)
    );
    let MatchFacts { status, edition, is_public, links, heading } = facts?;
    let overview = replay.as_ref().ok().map(Replay::overview);
    let title_elsewhere = layout::match_title(&heading.title, number);
    let can_retry = status.state == "aside" && session.caller.is_organiser();
    let body = html! {
        (flash.message())
        @if status.seats.is_empty() { p { "Who plays is hidden while the leaderboards are frozen." } }
        @else { (layout::scrollable("Seats", &seats(&links, &status, overview))) }
        @if can_retry {
            (actions::button(
                &session, &format!("{}/retry", layout::match_path(&name)), "Retry match", None))
        }
        @match &replay {
            Ok(replay) => {
                h2 { "Replay" }
                (replay.viewer("", "steps", None))
                @if is_public { (embed_code(&name, &title_elsewhere, &headers)) }
                p { a href={ (layout::match_path(&name)) "/record" } { "Download the record" } " (JSON Lines, Zstandard)" }
            }
            Err(refusal) => {
                p { "The replay is not available: " (layout::end_of_sentence(refusal.message())) }
                @if refusal.kind() == ErrorKind::Unauthenticated && !session.is_logged_in() {
                    p { a href="/login" { "Log in" } " if one of the bots is yours." }
                }
            }
        }
        (details(&status, edition))
        (data_links("Data of this match", &[DataLink::Json(format!("tournaments/{tournament}/matches/{number}"))]))
    };
    // The tournament is above it, in the breadcrumbs.
    let title = format!("Match {number}");
    let bots: Vec<_> = status.seats.iter().map(|seat| links.label(&seat.bot)).collect();
    let page = if bots.is_empty() {
        TournamentPage::below(&status.tournament, Tab::Matches, title)
    } else {
        TournamentPage::below(&status.tournament, Tab::Matches, bots.join("\u{a0}– "))
            .with_subtitle(title)
    };
    Ok(page.with_heading(Some(heading)).render(&session, &body).await)
}

/// The element that shows the replay on a page of another site.
fn embed_code(name: &str, match_title: &str, headers: &HeaderMap) -> Markup {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let scheme = text("x-forwarded-proto").unwrap_or("http");
    let host = text(header::HOST.as_str()).unwrap_or_default();
    let address = format!("{scheme}://{host}{}/embed", layout::match_path(name));
    let code = html! { iframe src=(address) title=(layout::label(match_title)) width="800" height="640" {} };
    html! {
        details.embed {
            summary { "Embed this replay" }
            p { "Paste this element into the HTML of another page:" }
            pre { code { (code.into_string()) } }
        }
    }
}

/// The replay of a match at a step.
#[derive(Debug)]
pub(super) struct Replay {
    /// The name of the match.
    name: String,
    step: usize,
    chunk: ReplayChunk,
    shown: Option<PreEscaped<String>>,
}

impl Replay {
    /// Opens the replay of a match at a step, or at the last one if there is no such step.
    ///
    /// # Errors
    /// Why the caller gets none.
    pub(super) async fn open(
        session: &Session,
        name: &str,
        step: usize,
    ) -> Result<Self, ServiceError> {
        let mut chunk = replay_chunk(session, name, step / STEPS_PER_CHUNK).await?;
        let shown = step.min(chunk.overview.total.saturating_sub(1));
        if chunk.chunk.is_none() {
            chunk = replay_chunk(session, name, shown / STEPS_PER_CHUNK).await?;
        }
        let shown = chunk.step(shown).map_err(|error| cannot_replay(name, &error))?;
        Ok(Self { name: name.to_owned(), step, chunk, shown })
    }

    pub(super) fn overview(&self) -> &Overview {
        &self.chunk.overview
    }

    /// The viewer. Its links to steps lead to `page`, and it gets its steps at `steps` below the
    /// page of the match.
    pub(super) fn viewer(&self, page: &str, steps: &str, autoplay: Option<Autoplay<'_>>) -> Markup {
        let chunks = format!("{}/{steps}?chunk=", layout::match_path(&self.name));
        let viewer = Viewer {
            overview: self.overview(),
            step: self.step,
            shown: self.shown.as_ref(),
            source: StepSource::Server { page, chunks: &chunks },
            autoplay,
        };
        html! { (viewer) script src="/assets/replay.js" defer {} }
    }
}

/// The names of the bots of a match, as pages show them.
async fn shown_names(session: &Session, name: &str) -> Result<ShownNames, ServiceError> {
    let (tournament, bots) = session.service.bots_of_match(name).await?;
    let with_owners = session.service.names_with_owners(&tournament).await?;
    let links = TournamentLinks::new(&tournament, with_owners);
    Ok(links.in_replays(bots.iter().map(String::as_str)))
}

/// A chunk of the steps of a match, for the viewer's script.
pub(super) async fn steps(
    session: Session,
    Path((tournament, number)): Path<(String, i64)>,
    Query(ChunkQuery { chunk }): Query<ChunkQuery>,
) -> Result<Response, WebError> {
    steps_of(&session, &match_name(&tournament, number), chunk).await
}

/// A chunk of the steps of a match as this session may see them.
pub(super) async fn steps_of(
    session: &Session,
    name: &str,
    number: usize,
) -> Result<Response, WebError> {
    let chunk = replay_chunk(session, name, number).await?.chunk.ok_or_else(|| {
        WebError::new(StatusCode::NOT_FOUND, format!("match {name} has no chunk {number}"))
    })?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], chunk.to_vec()).into_response())
}

/// The chunk of a replay with this number, as the caller may see it. Only a chunk that is not
/// cached needs the record.
async fn replay_chunk(
    session: &Session,
    name: &str,
    number: usize,
) -> Result<ReplayChunk, ServiceError> {
    let Session { service, caller, .. } = session;
    let readable = service.readable_record(caller, name).await?;
    let record = service.record_key(&readable).await?;
    let names = shown_names(session, name).await?;
    let key = ReplayKey::new(record, &names);
    if let Some(chunk) = replay_cache::cached_chunk(&key, number) {
        return Ok(chunk);
    }
    let games = service.games_of_match(name).await?;
    let record = service.replay_record(caller, readable).await?;
    run_replay(session, name, move || {
        let replayed = Replayed { games: &games, record, names: &names };
        replay_cache::render_chunk(key, replayed, number)
    })
    .await
}

/// The compressed record.
pub(super) async fn record(
    session: Session,
    Path((tournament, number)): Path<(String, i64)>,
) -> Result<Response, WebError> {
    let record = session.service.record(&session.caller, &match_name(&tournament, number)).await?;
    let name = format!("match-{tournament}-{number}.jsonl.zst");
    Ok(download::file(&name, "application/zstd", download::record(&record)))
}

pub(super) fn match_name(tournament: &str, number: i64) -> String {
    MatchName { tournament: tournament.to_owned(), number: MatchNumber(number) }.to_string()
}

/// Runs a replay of a match on a blocking thread, once the caller gets a permit. This may take
/// long. The permit is free when the replay has ended, even if the request was dropped before.
pub(super) async fn run_replay<T: Send + 'static>(
    session: &Session,
    name: &str,
    replay: impl FnOnce() -> Result<T, ServiceError> + Send + 'static,
) -> Result<T, ServiceError> {
    let permit = session.service.permit(&session.caller).await?;
    let task = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        replay()
    });
    task.await.map_err(|error| {
        tracing::error!(name, %error, "a replay failed");
        cannot_replay(name, &"the log says why")
    })?
}

/// The state of a match and how it was played. `edition` is the number of the edition that added
/// it.
fn details(status: &MatchStatus, edition: i32) -> Markup {
    html! {
        h2 { "About this match" }
        dl {
            dt { "State" } dd { (state_of(status)) }
            dt { "Edition" } dd {
                a href={ "/t/" (status.tournament) "/ranking?edition=" (edition) } { (edition) }
            }
            @if !status.params.is_empty() { dt { "Parameters" } dd { code { (status.params) } } }
            @if !status.transcript.is_empty() {
                dt { "Duration" } dd { (layout::format_millis(status.wall_ms)) }
                dt { "Sandbox level" } dd { (status.level) @if status.level == "D" { " (no isolation)" } }
                dt { "Transcript hash" } dd { code.hash { (layout::hex(&status.transcript)) } }
            }
            @if !status.worker.is_empty() { dt { "Worker" } dd { (status.worker) } }
        }
        @if !status.faults.is_empty() {
            details {
                summary { (layout::count(status.faults.len(), "infrastructure fault", "infrastructure faults")) }
                ul { @for fault in &status.faults { li { (fault) } } }
            }
        }
    }
}

/// The seats with bots, scores and forfeits. With a replay, its forfeits are linked.
fn seats(links: &TournamentLinks, status: &MatchStatus, overview: Option<&Overview>) -> Markup {
    let forfeits = overview.map(|overview| &overview.forfeits[..]).unwrap_or_default();
    let forfeit_step = |number: usize| {
        let forfeit = forfeits.iter().find(|forfeit| forfeit.seat == Seat::from_index(number - 1));
        forfeit.map(|forfeit| forfeit.step)
    };
    let has_bad_answers = status.seats.iter().any(|seat| seat.bad_answers > 0);
    let has_forfeits = status.seats.iter().any(|seat| !seat.forfeit.is_empty());
    html! {
        table.scores {
            thead {
                tr {
                    th { "Seat" } th { "Bot" } (layout::score_heads(&status.columns))
                    th.number { "Version" }
                    @if has_forfeits { th { "Forfeit" } }
                    @if has_bad_answers { th.number { "Bad replies" } }
                }
            }
            tbody {
                @for (number, seat) in (1..).zip(&status.seats) {
                    tr {
                        td class={ "seat" (number) } { (number) }
                        td.name { (links.bot(&seat.bot)) }
                        (layout::score_cells(&seat.score, status.columns.len()))
                        td.number { (seat.version) }
                        @if has_forfeits {
                            td {
                                @if !seat.forfeit.is_empty() { em.forfeit { (seat.forfeit) } }
                                @if let Some(evidence) = &seat.evidence { " " (evidence.detail) }
                                @if let Some(step) = forfeit_step(number) {
                                    " " a href={ "?step=" (step) "#replay" } data-step=(step) { "Go to the forfeit" }
                                }
                            }
                        }
                        @if has_bad_answers { td.number { (seat.bad_answers) } }
                    }
                }
            }
        }
    }
}
