//! The table: the match as one seat sees it, its move if it is due, and what was said.

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use arbiter_coordinator::web::stream;
use arbiter_games::Seat;
use arbiter_games::move_form::MoveForm;
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
use crate::playground::live_match::{LiveState, MatchEnd, Refusal, SeatChoice, Turn};
use crate::playground::move_form::{FORM, Fields, form, is_chosen, squares};

/// How long a move waits for what the bots make of it, before the page is shown.
const REPLY: Duration = Duration::from_secs(3);

/// How long a live page rests between two pictures, so that it can be looked at.
const REST: Duration = Duration::from_millis(40);

/// How much of a bot's standard error is on a page, in bytes.
const LONGEST_ERRORS: usize = 16 * 1024;

/// The speeds that are offered, in pictures a second.
const SPEEDS: [u32; 6] = [1, 2, 5, 10, 25, 100];

/// Who looks, at which match.
struct MatchQuery {
    live_match: Arc<LiveMatch>,
    /// The person's seat; none if no person plays: then everything is seen.
    eyes: Option<Seat>,
    /// What was chosen of a move that takes several steps.
    chosen: Fields,
}

impl MatchQuery {
    /// Who looks at the match of the table, by the seat in the address; without one the first
    /// person at the table.
    fn at(context: &PageContext, fields: Fields) -> Option<Self> {
        let live_match = context.session.live_match()?;
        let wanted = fields.parse::<u8>("seat");
        let eyes = live_match.persons().find(|seat| Some(seat.number()) == wanted);
        let eyes = eyes.or_else(|| live_match.persons().next());
        Some(Self { live_match, eyes, chosen: fields })
    }

    /// The address of a page for the same eyes.
    fn query(&self) -> String {
        self.eyes.map_or_else(String::new, |seat| format!("?seat={seat}"))
    }

    /// The address that live pictures come from.
    fn live(&self, context: &PageContext) -> String {
        let chosen = self.chosen.0.0.iter().filter(|(name, _)| is_chosen(name));
        let plain = |value: &str| -> String {
            value.chars().filter(|c| c.is_ascii_alphanumeric() || "(),".contains(*c)).collect()
        };
        let chosen: Vec<_> =
            chosen.map(|(name, value)| format!("&{name}={}", plain(value))).collect();
        let seat = self.eyes.map_or_else(String::new, |seat| seat.to_string());
        format!("{}?seat={seat}{}", context.path("live"), chosen.concat())
    }
}

/// The page of the table.
pub(super) async fn show(State(context): State<PageContext>, fields: Fields) -> Response {
    match MatchQuery::at(&context, fields) {
        Some(query) => table(&context, &query, None).into_response(),
        None => Redirect::to(&context.path("new")).into_response(),
    }
}

fn table(context: &PageContext, query: &MatchQuery, why: Option<&str>) -> Markup {
    let live_match = &query.live_match;
    let title =
        live_match.config.names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let (live, waiting) = {
        let state = live_match.state();
        let due = state.turn.is_some_and(|turn| Some(turn.seat) == query.eyes);
        let waiting = state.ending.is_none() && !due && !state.pace.paused;
        (now(context, query, &state), waiting)
    };
    let persons: Vec<_> = live_match.persons().collect();
    let body = html! {
        h1 { (title) }
        @if let Some(why) = why { (refused(why)) }
        @if persons.len() > 1 {
            nav.tabs aria-label="Whose eyes" {
                @for seat in persons {
                    a href={ (context.path("")) "?seat=" (seat) }
                        aria-current=[(Some(seat) == query.eyes).then_some("page")] {
                        "Seat " (seat) ": " (live_match.config.names[seat.index()])
                    }
                }
            }
        }
        @if query.eyes.is_none() { (pace_form(context, query)) }
        section.table-now data-live=(query.live(context)) { (live) }
        @if query.eyes.is_some() { (pace_form(context, query)) }
    };
    page(context, &title, waiting, &body)
}

/// What changes as the match goes on.
fn now(context: &PageContext, query: &MatchQuery, state: &MutexGuard<'_, LiveState>) -> Markup {
    let live_match = &query.live_match;
    let eyes = query.eyes.filter(|_| state.ending.is_none());
    let turn = state.turn.filter(|turn| Some(turn.seat) == query.eyes);
    let offer = turn.and_then(|turn| {
        let position = state.position.as_ref()?;
        Some((turn, position.view().move_form(turn.seat, &query.chosen.0)))
    });
    html! {
        @if let Some(ending) = &state.ending { (over(context, live_match, ending)) }
        @else if let Some((turn, offer)) = &offer { (task(context, *turn, offer)) }
        @else { (waiting(live_match, state)) }
        (picture(live_match, state, eyes, offer.as_ref().map(|(_, offer)| offer)))
        @if state.captions.len() > 1 {
            details open { summary { "What happened" }
                ol.captions reversed {
                    @for caption in state.captions.iter().rev() { li { (caption) } }
                }
            }
        }
        (dialogue(live_match, state, eyes))
        (errors(live_match, state))
        p { small { "Seed " code { (live_match.config.seed) } ", match " (live_match.config.number) " of this run." } }
    }
}

/// The form of a move.
fn task(context: &PageContext, turn: Turn, offer: &MoveForm) -> Markup {
    let hidden = html! {
        input type="hidden" name="seat" value=(turn.seat);
        input type="hidden" name="turn" value=(turn.number);
    };
    html! {
        form.play id=(FORM) method="post" action=(context.path("play")) {
            h2 { (offer.task) }
            (hidden)
            (form(offer))
        }
        details { summary { "Answer in the words of the protocol" }
            form.action method="post" action=(context.path("play")) {
                (hidden)
                label { "Answer " input type="text" name="answer" size="40" autocomplete="off"; } " "
                button type="submit" { "Send" }
            }
        }
    }
}

fn waiting(live_match: &LiveMatch, state: &LiveState) -> Markup {
    let who = state.turn.map(|turn| live_match.config.names[turn.seat.index()].as_str());
    html! {
        p.waiting {
            @if let Some(who) = who { "It is the turn of " (who) "." }
            @else if state.position.is_none() { "The bots are being started." }
            @else if state.pace.paused { "Paused." }
            @else { "The bots play." }
        }
    }
}

/// The table as it is drawn, with buttons on its squares if there are any.
fn picture(
    live_match: &LiveMatch,
    state: &LiveState,
    eyes: Option<Seat>,
    offer: Option<&MoveForm>,
) -> Markup {
    let Some(position) = &state.position else { return html! {} };
    let mut picture = draw(&position.view().picture(&live_match.config.names, eyes));
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
        said: state.last_action.said.clone(),
        forfeit: state.last_action.forfeit.clone(),
        picture,
        clocks: state.clocks.clone(),
        standings,
    };
    step.render(&live_match.config.names)
}

/// How the match ended, and what may follow.
fn over(context: &PageContext, live_match: &LiveMatch, ending: &MatchEnd) -> Markup {
    let mut swapped = live_match.config.seat_choices.clone();
    swapped.rotate_right(1);
    html! {
        @match ending {
            MatchEnd::Broken(why) => { (refused(&format!("The match counts for nothing: {why}."))) }
            MatchEnd::Over { details, .. } => {
                p.waiting { "The match is over." }
                @for (name, detail) in live_match.config.names.iter().zip(details) {
                    @if let Some(detail) = detail { p { (name) ": " span.forfeit { (detail) } } }
                }
                p { a href=(context.path("record")) { "Download the record" }
                    @if context.session.options.records.is_some() { ", which is also at " code { (live_match.config.record.display()) } }
                    "; " code { "arbiter verify" } " replays it." }
            }
        }
        (start_button(context, &live_match.config.seat_choices, "", "Another match"))
        (start_button(context, &swapped, "", "Another, with the seats swapped"))
        (start_button(context, &live_match.config.seat_choices, &live_match.config.seed, "The same again, with the same seed"))
    }
}

/// What was said. While somebody plays, what others were told is not shown: it may be hidden.
fn dialogue(live_match: &LiveMatch, state: &LiveState, eyes: Option<Seat>) -> Markup {
    let shown = state.lines.iter().rev();
    let shown = shown.filter(|line| !line.private || eyes.is_none_or(|eyes| eyes == line.seat));
    html! {
        details { summary { "What was said, the latest first" }
            div.lines {
                @for line in shown {
                    div.told[line.told] {
                        span class={ "who seat" (line.seat) } {
                            (line.seat) @if line.told { "> " } @else { "< " }
                        }
                        code { (lines(&line.text)) }
                    }
                }
            }
            @if eyes.is_some() && live_match.config.names.len() > 1 {
                p { small { "What others are told is shown when the match is over." } }
            }
        }
    }
}

/// What bots write to their standard error.
fn errors(live_match: &LiveMatch, state: &LiveState) -> Markup {
    let bots =
        live_match.config.names.iter().zip(&live_match.config.seat_choices).zip(&state.stderr);
    let bots = bots
        .filter(|((_, seat_choice), text)| **seat_choice != SeatChoice::Person && !text.is_empty());
    html! {
        @for ((name, _), text) in bots {
            details { summary { "Standard error of " (name) } pre { (lines(end(text))) } }
        }
    }
}

/// The end of a long text.
fn end(text: &str) -> &str {
    let from = text.len().saturating_sub(LONGEST_ERRORS);
    (from..=text.len()).find_map(|from| text.get(from..)).unwrap_or_default()
}

/// Lines one below the other: an event that brings them has no ends of lines.
fn lines(text: &str) -> Markup {
    html! {
        @for (index, line) in text.lines().enumerate() {
            @if index > 0 { br; }
            (line)
        }
    }
}

/// Pause, step, speed.
fn pace_form(context: &PageContext, query: &MatchQuery) -> Markup {
    let (pace, over) = {
        let state = query.live_match.state();
        (state.pace, state.ending.is_some())
    };
    html! {
        @if !over {
            form.pace method="post" action=(context.path("pace")) {
                @if let Some(seat) = query.eyes { input type="hidden" name="seat" value=(seat); }
                @if pace.paused { button type="submit" name="do" value="go" { "Go on" } }
                @else { button type="submit" name="do" value="pause" { "Pause" } }
                button type="submit" name="do" value="step" { "Step" }
                label { "Pictures a second "
                    select name="speed" {
                        option value="0" selected[pace.speed.is_none()] { "as the bots play" }
                        @for speed in SPEEDS { option value=(speed) selected[pace.speed == Some(speed)] { (speed) } }
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
    let what = fields.get("do").unwrap_or_default().to_owned();
    let query = MatchQuery::at(&context, fields).ok_or_else(nothing)?;
    match what.as_str() {
        "pause" => query.live_match.set_pace(|pace| pace.paused = true),
        "go" => query.live_match.set_pace(|pace| pace.paused = false),
        "step" => query.live_match.step(),
        "speed" => query.live_match.set_pace(|pace| pace.speed = (speed > 0).then_some(speed)),
        _ => return Err(WebError::new(StatusCode::BAD_REQUEST, "pause, go, step or speed?")),
    }
    Ok(back(&context, &query))
}

/// Plays a move of a person's, and waits a little for what follows.
pub(super) async fn play(
    State(context): State<PageContext>,
    fields: Fields,
) -> Result<Response, WebError> {
    let number = fields.parse::<u64>("turn").unwrap_or_default();
    let seat = fields.parse::<u8>("seat");
    let query = MatchQuery::at(&context, Fields(fields.0.clone())).ok_or_else(nothing)?;
    let turn = query.eyes.filter(|eyes| Some(eyes.number()) == seat);
    let turn = turn.map(|seat| Turn { seat, number }).ok_or_else(nothing)?;
    let mut news = query.live_match.news();
    if let Err(why) = played(&query.live_match, turn, &fields) {
        return Ok(
            (StatusCode::UNPROCESSABLE_ENTITY, table(&context, &query, Some(&why))).into_response()
        );
    }
    let due = || {
        let state = query.live_match.state();
        let paused = state.pace.paused;
        state.ending.is_some()
            || paused
            || state.turn.is_some_and(|turn| turn.seat == seat_of(&query))
    };
    let answered = async {
        while !due() {
            if news.changed().await.is_err() {
                break;
            }
        }
    };
    // Whoever thinks longer is waited for by the page.
    let _in_time = tokio::time::timeout(REPLY, answered).await;
    Ok(back(&context, &query).into_response())
}

fn seat_of(query: &MatchQuery) -> Seat {
    query.eyes.unwrap_or(Seat::from_index(0))
}

/// Gives the answer that a form comes to.
fn played(live_match: &LiveMatch, turn: Turn, fields: &Fields) -> Result<(), String> {
    let answer = {
        let state = live_match.state();
        let position = state.position.as_ref().filter(|_| state.turn == Some(turn));
        let position = position.ok_or("The match has gone on meanwhile; query at it again.")?;
        position.view().answer(turn.seat, &fields.0)?
    };
    live_match.answer(turn, answer).map_err(|refusal| match refusal {
        Refusal::NotDue => "The match has gone on meanwhile; query at it again.".to_owned(),
        Refusal::Illegal(why) => format!("This is not allowed: {why}."),
    })
}

/// Live pictures.
pub(super) async fn live(
    State(context): State<PageContext>,
    fields: Fields,
) -> Result<Response, WebError> {
    let query = MatchQuery::at(&context, fields).ok_or_else(nothing)?;
    let (sender, receiver) = mpsc::channel::<Result<Markup, Status>>(1);
    let watching = async move {
        let mut news = query.live_match.news();
        loop {
            let shown = now(&context, &query, &query.live_match.state());
            if sender.send(Ok(shown)).await.is_err() {
                return;
            }
            tokio::time::sleep(REST).await;
            tokio::select! {
                () = sender.closed() => return,
                changed = news.changed() => if changed.is_err() { return },
            }
        }
    };
    // It ends when nobody looks any more.
    drop(tokio::spawn(watching));
    Ok(stream(ReceiverStream::new(receiver), Clone::clone).into_response())
}

/// The record of a match that is over.
pub(super) async fn record(State(context): State<PageContext>) -> Result<Response, WebError> {
    let live_match = context.session.live_match().ok_or_else(nothing)?;
    let is_over = matches!(live_match.state().ending, Some(MatchEnd::Over { .. }));
    if !is_over {
        let why = "a record is there when its match is over";
        return Err(WebError::new(StatusCode::NOT_FOUND, why));
    }
    let record = tokio::fs::read(&live_match.config.record).await;
    let record = record.map_err(|error| WebError::new(StatusCode::NOT_FOUND, error.to_string()))?;
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

fn nothing() -> WebError {
    WebError::new(StatusCode::NOT_FOUND, "nobody sits at the table here; begin a match")
}
