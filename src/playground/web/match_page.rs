//! The page of the current match, as one seat sees it: the picture, the form of a move, and the
//! dialogue.

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use arbiter_coordinator::web::stream;
use arbiter_games::Seat;
use arbiter_games::move_form::{Field, MoveForm};
use arbiter_replay::{Step, draw};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::PageContext;
use super::layout::{WebError, page, refused};
use super::new_match::start_button;
use crate::playground::LiveMatch;
use crate::playground::live_match::{Line, LiveState, MatchEnd, Refusal, SeatChoice, Turn};
use crate::playground::move_form::{FORM, Fields, form, is_chosen, squares};

/// How long the page waits for the bots' replies to a move.
const REPLY_WAIT: Duration = Duration::from_secs(3);

/// Minimum time between two updates of a live page.
const UPDATE_INTERVAL: Duration = Duration::from_millis(40);

/// Maximum length of a bot's standard error on a page, in bytes.
const MAX_STDERR: usize = 16 * 1024;

/// The selectable speeds, in steps per second.
const SPEEDS: [u32; 6] = [1, 2, 5, 10, 25, 100];

/// A request for the page: the match and the seat of the viewer.
struct MatchQuery {
    live_match: Arc<LiveMatch>,
    /// The person's seat; none if no person plays. Then the page shows everything.
    viewer: Option<Seat>,
    /// The choices so far of a move with several steps.
    chosen: Fields,
}

impl MatchQuery {
    /// The current match from the seat in the query, or else from the seat of the first person.
    fn new(context: &PageContext, fields: Fields) -> Option<Self> {
        let live_match = context.session.live_match()?;
        let requested_seat = fields.parse::<u8>("seat");
        let viewer = live_match
            .persons()
            .find(|seat| Some(seat.number()) == requested_seat)
            .or_else(|| live_match.persons().next());
        Some(Self { live_match, viewer, chosen: fields })
    }

    /// The query part of an address with the same point of view.
    fn query(&self) -> String {
        self.viewer.map_or_else(String::new, |seat| format!("?seat={seat}"))
    }

    /// The address of the live updates.
    fn live_path(&self, context: &PageContext) -> String {
        let chosen = self.chosen.0.0.iter().filter(|(name, _)| is_chosen(name));
        let safe_text = |value: &str| -> String {
            value.chars().filter(|c| c.is_ascii_alphanumeric() || "(),".contains(*c)).collect()
        };
        let chosen: Vec<_> =
            chosen.map(|(name, value)| format!("&{name}={}", safe_text(value))).collect();
        let seat = self.viewer.map_or_else(String::new, |seat| seat.to_string());
        format!("{}?seat={seat}{}", context.path("live"), chosen.concat())
    }
}

/// Shows the page.
pub(super) async fn show(State(context): State<PageContext>, fields: Fields) -> Response {
    match MatchQuery::new(&context, fields) {
        Some(query) => table(&context, &query, None).into_response(),
        None => Redirect::to(&context.path("new")).into_response(),
    }
}

fn table(context: &PageContext, query: &MatchQuery, reason: Option<&str>) -> Markup {
    let live_match = &query.live_match;
    let title =
        live_match.config.names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let (live, waiting) = {
        let state = live_match.state();
        let is_due = state.turn.is_some_and(|turn| Some(turn.seat) == query.viewer);
        let waiting = state.ending.is_none() && !is_due && !state.pace.paused;
        (live_part(context, query, &state), waiting)
    };
    let persons: Vec<_> = live_match.persons().collect();
    let body = html! {
        h1 { (title) }
        @if let Some(reason) = reason { (refused(reason)) }
        @if persons.len() > 1 {
            nav.tabs aria-label="Point of view" {
                @for seat in persons {
                    a href={ (context.path("")) "?seat=" (seat) }
                        aria-current=[(Some(seat) == query.viewer).then_some("page")] {
                        "Seat " (seat) ": " (live_match.config.names[seat.index()])
                    }
                }
            }
        }
        @if query.viewer.is_none() { (pace_form(context, query)) }
        section.table-now data-live=(query.live_path(context)) { (live) }
        @if query.viewer.is_some() { (pace_form(context, query)) }
    };
    page(context, &title, waiting, &body)
}

/// The part of the page that changes during the match.
fn live_part(
    context: &PageContext,
    query: &MatchQuery,
    state: &MutexGuard<'_, LiveState>,
) -> Markup {
    let live_match = &query.live_match;
    let viewer = query.viewer.filter(|_| state.ending.is_none());
    let turn = state.turn.filter(|turn| Some(turn.seat) == query.viewer);
    let offer = turn.and_then(|turn| {
        let position = state.position.as_ref()?;
        Some((turn, position.view().move_form(turn.seat, &query.chosen.0)))
    });
    html! {
        @if let Some(ending) = &state.ending { (end_section(context, live_match, ending)) }
        @else if let Some((turn, offer)) = &offer { (move_section(context, state, *turn, offer)) }
        @else { (waiting(live_match, state)) }
        (picture(live_match, state, viewer, offer.as_ref().map(|(_, offer)| offer)))
        @if state.captions.len() > 1 {
            details open { summary { "Events, newest first" }
                ol.captions reversed {
                    @for caption in state.captions.iter().rev() { li { (caption) } }
                }
            }
        }
        (dialogue(live_match, state, viewer))
        (stderr(live_match, state))
        p {
            small {
                "Seed " code { (live_match.config.seed) }
                ", match " (live_match.config.number) " of this run."
            }
        }
    }
}

/// The form of a move.
fn move_section(context: &PageContext, state: &LiveState, turn: Turn, offer: &MoveForm) -> Markup {
    // A person who writes a line must know what the game asked.
    let is_text = offer.fields.iter().any(|field| matches!(field, Field::Text { .. }));
    let hidden = html! {
        input type="hidden" name="seat" value=(turn.seat);
        input type="hidden" name="turn" value=(turn.number);
    };
    html! {
        form.play id=(FORM) method="post" action=(context.path("play")) {
            h2 { (offer.task) }
            @if is_text { (request(state, turn.seat)) }
            (hidden)
            (form(offer))
        }
        details { summary { "Enter the move as a protocol reply" }
            form.action method="post" action=(context.path("play")) {
                (hidden)
                label { "Reply " input type="text" name="answer" size="40" autocomplete="off"; } " "
                button type="submit" { "Send" }
            }
        }
    }
}

/// The messages to a seat since its last reply; the last one is its request.
fn request(state: &LiveState, seat: Seat) -> Markup {
    let lines_of_seat = state.lines.iter().rev().filter(|line| line.seat == seat);
    let mut messages: Vec<_> = lines_of_seat.take_while(|line| line.is_message).collect();
    messages.reverse();
    html! {
        div.request {
            @for message in messages { p { code { (lines(&message.text)) } } }
        }
    }
}

fn waiting(live_match: &LiveMatch, state: &LiveState) -> Markup {
    let name = state.turn.map(|turn| live_match.config.names[turn.seat.index()].as_str());
    html! {
        p.waiting {
            @if let Some(name) = name { "Waiting for " (name) "." }
            @else if state.position.is_none() { "Starting the bots." }
            @else if state.pace.paused { "Paused." }
            @else { "The bots are playing." }
        }
    }
}

/// The picture, with buttons on its squares if the form has any.
fn picture(
    live_match: &LiveMatch,
    state: &LiveState,
    viewer: Option<Seat>,
    offer: Option<&MoveForm>,
) -> Markup {
    let Some(position) = &state.position else { return html! {} };
    let mut picture = draw(&position.view().picture(&live_match.config.names, viewer));
    if let Some(squares) = offer.and_then(squares) {
        let board = picture.markup;
        picture.markup = html! { div.on-board { (board) div.squares { (squares) } } };
    }
    let standings = match &state.ending {
        Some(MatchEnd::Over { standings, .. }) => Some(standings.clone()),
        _ => None,
    };
    let step = Step {
        index: state.pictures,
        time: state.time,
        seat: state.last_action.seat,
        reply: state.last_action.reply.clone(),
        forfeit: state.last_action.forfeit.clone(),
        picture,
        clocks: state.clocks.clone(),
        standings,
        columns: live_match.config.columns.clone(),
    };
    step.render(&live_match.config.names)
}

/// The end of the match, and buttons for the next one.
fn end_section(context: &PageContext, live_match: &LiveMatch, ending: &MatchEnd) -> Markup {
    let config = &live_match.config;
    let mut swapped = config.seat_choices.clone();
    swapped.rotate_right(1);
    html! {
        @match ending {
            MatchEnd::Broken(reason) => {
                (refused(&format!("The match has no result: {reason}.")))
            }
            MatchEnd::Over { details, .. } => {
                p.waiting { "The match is over." }
                @for (name, detail) in config.names.iter().zip(details) {
                    @if let Some(detail) = detail { p { (name) ": " span.forfeit { (detail) } } }
                }
                p { a href=(context.path("record")) { "Download the record" }
                    @if context.session.options.records.is_some() {
                        " (also saved as " code { (config.record.display()) } ")"
                    }
                    "; " code { "arbiter verify" } " replays it." }
            }
        }
        (start_button(context, &config.seat_choices, "", "Play again"))
        (start_button(context, &swapped, "", "Play again with swapped seats"))
        (start_button(context, &config.seat_choices, &config.seed, "Play again with the same seed"))
    }
}

/// The dialogue. While a person plays, it omits messages to other seats: they may be secret.
fn dialogue(live_match: &LiveMatch, state: &LiveState, viewer: Option<Seat>) -> Markup {
    let is_visible =
        |line: &&Line| !line.is_private || viewer.is_none_or(|viewer| viewer == line.seat);
    let visible = state.lines.iter().rev().filter(is_visible);
    html! {
        details { summary { "Protocol messages, newest first" }
            div.lines {
                @for line in visible {
                    div.message[line.is_message] {
                        span class={ "who seat" (line.seat) } {
                            (line.seat) @if line.is_message { "> " } @else { "< " }
                        }
                        code { (lines(&line.text)) }
                    }
                }
            }
            @if viewer.is_some() && live_match.config.names.len() > 1 {
                p { small { "Messages to the other seats appear after the match." } }
            }
        }
    }
}

/// The standard error of the bots.
fn stderr(live_match: &LiveMatch, state: &LiveState) -> Markup {
    let bots = live_match
        .config
        .names
        .iter()
        .zip(&live_match.config.seat_choices)
        .zip(&state.stderr)
        .filter(|((_, seat_choice), text)| **seat_choice != SeatChoice::Person && !text.is_empty());
    html! {
        @for ((name, _), text) in bots {
            details { summary { "Standard error of " (name) } pre { (lines(end(text))) } }
        }
    }
}

/// The last [`MAX_STDERR`] bytes of a text.
fn end(text: &str) -> &str {
    let start = text.len().saturating_sub(MAX_STDERR);
    (start..=text.len()).find_map(|start| text.get(start..)).unwrap_or_default()
}

/// Separates lines by elements, because a server-sent event cannot hold newlines.
fn lines(text: &str) -> Markup {
    html! {
        @for (index, line) in text.lines().enumerate() {
            @if index > 0 { br; }
            (line)
        }
    }
}

/// The form for pause, step and speed.
fn pace_form(context: &PageContext, query: &MatchQuery) -> Markup {
    let (pace, is_over) = {
        let state = query.live_match.state();
        (state.pace, state.ending.is_some())
    };
    html! {
        @if !is_over {
            form.pace method="post" action=(context.path("pace")) {
                @if let Some(seat) = query.viewer { input type="hidden" name="seat" value=(seat); }
                @if pace.paused { button type="submit" name="do" value="go" { "Continue" } }
                @else { button type="submit" name="do" value="pause" { "Pause" } }
                button type="submit" name="do" value="step" { "Step" }
                label { "Steps per second "
                    select name="speed" {
                        option value="0" selected[pace.speed.is_none()] { "unlimited" }
                        @for speed in SPEEDS {
                            option value=(speed) selected[pace.speed == Some(speed)] { (speed) }
                        }
                    }
                }
                button type="submit" name="do" value="speed" { "Set" }
            }
        }
    }
}

/// Changes the pace.
pub(super) async fn pace(
    State(context): State<PageContext>,
    fields: Fields,
) -> Result<Redirect, WebError> {
    let speed = fields.parse::<u32>("speed").unwrap_or_default().min(1000);
    let action = fields.get("do").unwrap_or_default().to_owned();
    let query = MatchQuery::new(&context, fields).ok_or_else(no_match)?;
    match action.as_str() {
        "pause" => query.live_match.set_pace(|pace| pace.paused = true),
        "go" => query.live_match.set_pace(|pace| pace.paused = false),
        "step" => query.live_match.step(),
        "speed" => query.live_match.set_pace(|pace| pace.speed = (speed > 0).then_some(speed)),
        _ => {
            return Err(WebError::new(
                StatusCode::BAD_REQUEST,
                "unknown action; expected pause, go, step or speed",
            ));
        }
    }
    Ok(back(&context, &query))
}

/// Plays a person's move, and waits up to [`REPLY_WAIT`] for the next turn.
pub(super) async fn play(
    State(context): State<PageContext>,
    fields: Fields,
) -> Result<Response, WebError> {
    let number = fields.parse::<u64>("turn").unwrap_or_default();
    let seat = fields.parse::<u8>("seat");
    let query = MatchQuery::new(&context, Fields(fields.0.clone())).ok_or_else(no_match)?;
    let turn = query
        .viewer
        .filter(|viewer| Some(viewer.number()) == seat)
        .map(|seat| Turn { seat, number })
        .ok_or_else(no_match)?;
    let mut changes = query.live_match.changes();
    if let Err(reason) = make_move(&query.live_match, turn, &fields) {
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, table(&context, &query, Some(&reason)))
            .into_response());
    }
    let is_due = || {
        let state = query.live_match.state();
        let paused = state.pace.paused;
        state.ending.is_some()
            || paused
            || state.turn.is_some_and(|turn| turn.seat == seat_of(&query))
    };
    let next_turn = async {
        while !is_due() {
            if changes.changed().await.is_err() {
                break;
            }
        }
    };
    // If bots are slower, the page loads now and updates itself.
    let _in_time = tokio::time::timeout(REPLY_WAIT, next_turn).await;
    Ok(back(&context, &query).into_response())
}

fn seat_of(query: &MatchQuery) -> Seat {
    query.viewer.unwrap_or(Seat::from_index(0))
}

/// Makes the move of a form.
fn make_move(live_match: &LiveMatch, turn: Turn, fields: &Fields) -> Result<(), String> {
    let answer = {
        let state = live_match.state();
        let position = state
            .position
            .as_ref()
            .filter(|_| state.turn == Some(turn))
            .ok_or("This turn is over; see the current position.")?;
        position.view().reply(turn.seat, &fields.0)?
    };
    live_match.answer(turn, answer).map_err(|refusal| match refusal {
        Refusal::NotDue => "This turn is over; see the current position.".to_owned(),
        Refusal::Illegal(reason) => format!("This move is not allowed: {reason}."),
    })
}

/// Streams the live part of the page.
pub(super) async fn live(
    State(context): State<PageContext>,
    fields: Fields,
) -> Result<Response, WebError> {
    let query = MatchQuery::new(&context, fields).ok_or_else(no_match)?;
    let (sender, receiver) = mpsc::channel::<Result<Markup, Status>>(1);
    let send_updates = async move {
        let mut changes = query.live_match.changes();
        loop {
            let markup = live_part(&context, &query, &query.live_match.state());
            if sender.send(Ok(markup)).await.is_err() {
                return;
            }
            tokio::time::sleep(UPDATE_INTERVAL).await;
            tokio::select! {
                () = sender.closed() => return,
                changed = changes.changed() => if changed.is_err() { return },
            }
        }
    };
    // The task ends when the browser disconnects.
    drop(tokio::spawn(send_updates));
    Ok(stream(ReceiverStream::new(receiver), Clone::clone).into_response())
}

/// Downloads the record after the match.
pub(super) async fn record(State(context): State<PageContext>) -> Result<Response, WebError> {
    let live_match = context.session.live_match().ok_or_else(no_match)?;
    let is_over = matches!(live_match.state().ending, Some(MatchEnd::Over { .. }));
    if !is_over {
        let reason = "the record is available after the match";
        return Err(WebError::new(StatusCode::NOT_FOUND, reason));
    }
    let record = tokio::fs::read(&live_match.config.record)
        .await
        .map_err(|error| WebError::new(StatusCode::NOT_FOUND, error.to_string()))?;
    let name =
        live_match.config.record.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let headers = [
        (header::CONTENT_TYPE, "application/jsonl".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    Ok((headers, record).into_response())
}

fn back(context: &PageContext, query: &MatchQuery) -> Redirect {
    Redirect::to(&format!("{}{}", context.path(""), query.query()))
}

fn no_match() -> WebError {
    WebError::new(StatusCode::NOT_FOUND, "no current match; start one")
}
