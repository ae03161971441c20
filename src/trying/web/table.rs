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

use super::Desk;
use super::page::{WebError, page, refused};
use super::setup::again;
use crate::trying::Sitting;
use crate::trying::moves::{FORM, Fields, form, is_chosen, squares};
use crate::trying::sitting::{Chair, Ending, Refusal, State as SeatResult, Turn};

/// How long a move waits for what the bots make of it, before the page is shown.
const REPLY: Duration = Duration::from_secs(3);

/// How long a live page rests between two pictures, so that it can be looked at.
const REST: Duration = Duration::from_millis(40);

/// How much of a bot's standard error is on a page, in bytes.
const LONGEST_ERRORS: usize = 16 * 1024;

/// The speeds that are offered, in pictures a second.
const SPEEDS: [u32; 6] = [1, 2, 5, 10, 25, 100];

/// Who looks, at which match.
struct Look {
    sitting: Arc<Sitting>,
    /// The person's seat; none if no person plays: then everything is seen.
    eyes: Option<Seat>,
    /// What was chosen of a move that takes several steps.
    chosen: Fields,
}

impl Look {
    /// Who looks at the match of the table, by the seat in the address; without one the first
    /// person at the table.
    fn at(desk: &Desk, fields: Fields) -> Option<Self> {
        let sitting = desk.house.sitting()?;
        let wanted = fields.read::<u8>("seat");
        let eyes = sitting.persons().find(|seat| Some(seat.number()) == wanted);
        let eyes = eyes.or_else(|| sitting.persons().next());
        Some(Self { sitting, eyes, chosen: fields })
    }

    /// The address of a page for the same eyes.
    fn query(&self) -> String {
        self.eyes.map_or_else(String::new, |seat| format!("?seat={seat}"))
    }

    /// The address that live pictures come from.
    fn live(&self, desk: &Desk) -> String {
        let chosen = self.chosen.0.0.iter().filter(|(name, _)| is_chosen(name));
        let plain = |value: &str| -> String {
            value.chars().filter(|c| c.is_ascii_alphanumeric() || "(),".contains(*c)).collect()
        };
        let chosen: Vec<_> =
            chosen.map(|(name, value)| format!("&{name}={}", plain(value))).collect();
        let seat = self.eyes.map_or_else(String::new, |seat| seat.to_string());
        format!("{}?seat={seat}{}", desk.path("live"), chosen.concat())
    }
}

/// The page of the table.
pub(super) async fn show(State(desk): State<Desk>, fields: Fields) -> Response {
    match Look::at(&desk, fields) {
        Some(look) => table(&desk, &look, None).into_response(),
        None => Redirect::to(&desk.path("new")).into_response(),
    }
}

fn table(desk: &Desk, look: &Look, why: Option<&str>) -> Markup {
    let sitting = &look.sitting;
    let title =
        sitting.setting.names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let (live, waiting) = {
        let state = sitting.state();
        let due = state.turn.is_some_and(|turn| Some(turn.seat) == look.eyes);
        let waiting = state.ending.is_none() && !due && !state.pace.paused;
        (now(desk, look, &state), waiting)
    };
    let persons: Vec<_> = sitting.persons().collect();
    let body = html! {
        h1 { (title) }
        @if let Some(why) = why { (refused(why)) }
        @if persons.len() > 1 {
            nav.tabs aria-label="Whose eyes" {
                @for seat in persons {
                    a href={ (desk.path("")) "?seat=" (seat) }
                        aria-current=[(Some(seat) == look.eyes).then_some("page")] {
                        "Seat " (seat) ": " (sitting.setting.names[seat.index()])
                    }
                }
            }
        }
        @if look.eyes.is_none() { (pace_form(desk, look)) }
        section.table-now data-live=(look.live(desk)) { (live) }
        @if look.eyes.is_some() { (pace_form(desk, look)) }
    };
    page(desk, &title, waiting, &body)
}

/// What changes as the match goes on.
fn now(desk: &Desk, look: &Look, state: &MutexGuard<'_, SeatResult>) -> Markup {
    let sitting = &look.sitting;
    let eyes = look.eyes.filter(|_| state.ending.is_none());
    let turn = state.turn.filter(|turn| Some(turn.seat) == look.eyes);
    let offer = turn.and_then(|turn| {
        let position = state.position.as_ref()?;
        Some((turn, position.view().move_form(turn.seat, &look.chosen.0)))
    });
    html! {
        @if let Some(ending) = &state.ending { (over(desk, sitting, ending)) }
        @else if let Some((turn, offer)) = &offer { (task(desk, *turn, offer)) }
        @else { (waiting(sitting, state)) }
        (picture(sitting, state, eyes, offer.as_ref().map(|(_, offer)| offer)))
        @if state.captions.len() > 1 {
            details open { summary { "What happened" }
                ol.captions reversed {
                    @for caption in state.captions.iter().rev() { li { (caption) } }
                }
            }
        }
        (dialogue(sitting, state, eyes))
        (errors(sitting, state))
        p { small { "Seed " code { (sitting.setting.seed) } ", match " (sitting.setting.number) " of this run." } }
    }
}

/// The form of a move.
fn task(desk: &Desk, turn: Turn, offer: &MoveForm) -> Markup {
    let hidden = html! {
        input type="hidden" name="seat" value=(turn.seat);
        input type="hidden" name="turn" value=(turn.number);
    };
    html! {
        form.play id=(FORM) method="post" action=(desk.path("play")) {
            h2 { (offer.task) }
            (hidden)
            (form(offer))
        }
        details { summary { "Answer in the words of the protocol" }
            form.action method="post" action=(desk.path("play")) {
                (hidden)
                label { "Answer " input type="text" name="answer" size="40" autocomplete="off"; } " "
                button type="submit" { "Send" }
            }
        }
    }
}

fn waiting(sitting: &Sitting, state: &SeatResult) -> Markup {
    let who = state.turn.map(|turn| sitting.setting.names[turn.seat.index()].as_str());
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
    sitting: &Sitting,
    state: &SeatResult,
    eyes: Option<Seat>,
    offer: Option<&MoveForm>,
) -> Markup {
    let Some(position) = &state.position else { return html! {} };
    let mut picture = draw(&position.view().picture(&sitting.setting.names, eyes));
    if let Some(squares) = offer.and_then(squares) {
        let board = picture.markup;
        picture.markup = html! { div.on-board { (board) div.squares { (squares) } } };
    }
    let standings = match &state.ending {
        Some(Ending::Over { standings, .. }) => Some(standings.clone()),
        _ => None,
    };
    let step = Step {
        index: state.pictures,
        time: state.time,
        seat: state.deed.seat,
        said: state.deed.said.clone(),
        forfeit: state.deed.forfeit.clone(),
        picture,
        clocks: state.clocks.clone(),
        standings,
    };
    step.render(&sitting.setting.names)
}

/// How the match ended, and what may follow.
fn over(desk: &Desk, sitting: &Sitting, ending: &Ending) -> Markup {
    let mut swapped = sitting.setting.chairs.clone();
    swapped.rotate_right(1);
    html! {
        @match ending {
            Ending::Broken(why) => { (refused(&format!("The match counts for nothing: {why}."))) }
            Ending::Over { details, .. } => {
                p.waiting { "The match is over." }
                @for (name, detail) in sitting.setting.names.iter().zip(details) {
                    @if let Some(detail) = detail { p { (name) ": " span.forfeit { (detail) } } }
                }
                p { a href=(desk.path("record")) { "Download the record" }
                    @if desk.house.wish.records.is_some() { ", which is also at " code { (sitting.setting.record.display()) } }
                    "; " code { "arbiter verify" } " replays it." }
            }
        }
        (again(desk, &sitting.setting.chairs, "", "Another match"))
        (again(desk, &swapped, "", "Another, with the seats swapped"))
        (again(desk, &sitting.setting.chairs, &sitting.setting.seed, "The same again, with the same seed"))
    }
}

/// What was said. While somebody plays, what others were told is not shown: it may be hidden.
fn dialogue(sitting: &Sitting, state: &SeatResult, eyes: Option<Seat>) -> Markup {
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
            @if eyes.is_some() && sitting.setting.names.len() > 1 {
                p { small { "What others are told is shown when the match is over." } }
            }
        }
    }
}

/// What bots write to their standard error.
fn errors(sitting: &Sitting, state: &SeatResult) -> Markup {
    let bots = sitting.setting.names.iter().zip(&sitting.setting.chairs).zip(&state.stderr);
    let bots = bots.filter(|((_, chair), text)| **chair != Chair::Person && !text.is_empty());
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
fn pace_form(desk: &Desk, look: &Look) -> Markup {
    let (pace, over) = {
        let state = look.sitting.state();
        (state.pace, state.ending.is_some())
    };
    html! {
        @if !over {
            form.pace method="post" action=(desk.path("pace")) {
                @if let Some(seat) = look.eyes { input type="hidden" name="seat" value=(seat); }
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
pub(super) async fn pace(State(desk): State<Desk>, fields: Fields) -> Result<Redirect, WebError> {
    let speed = fields.read::<u32>("speed").unwrap_or_default().min(1000);
    let what = fields.get("do").unwrap_or_default().to_owned();
    let look = Look::at(&desk, fields).ok_or_else(nothing)?;
    match what.as_str() {
        "pause" => look.sitting.set_pace(|pace| pace.paused = true),
        "go" => look.sitting.set_pace(|pace| pace.paused = false),
        "step" => look.sitting.step(),
        "speed" => look.sitting.set_pace(|pace| pace.speed = (speed > 0).then_some(speed)),
        _ => return Err(WebError::new(StatusCode::BAD_REQUEST, "pause, go, step or speed?")),
    }
    Ok(back(&desk, &look))
}

/// Plays a move of a person's, and waits a little for what follows.
pub(super) async fn play(State(desk): State<Desk>, fields: Fields) -> Result<Response, WebError> {
    let number = fields.read::<u64>("turn").unwrap_or_default();
    let seat = fields.read::<u8>("seat");
    let look = Look::at(&desk, Fields(fields.0.clone())).ok_or_else(nothing)?;
    let turn = look.eyes.filter(|eyes| Some(eyes.number()) == seat);
    let turn = turn.map(|seat| Turn { seat, number }).ok_or_else(nothing)?;
    let mut news = look.sitting.news();
    if let Err(why) = played(&look.sitting, turn, &fields) {
        return Ok(
            (StatusCode::UNPROCESSABLE_ENTITY, table(&desk, &look, Some(&why))).into_response()
        );
    }
    let due = || {
        let state = look.sitting.state();
        let paused = state.pace.paused;
        state.ending.is_some()
            || paused
            || state.turn.is_some_and(|turn| turn.seat == seat_of(&look))
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
    Ok(back(&desk, &look).into_response())
}

fn seat_of(look: &Look) -> Seat {
    look.eyes.unwrap_or(Seat::from_index(0))
}

/// Gives the answer that a form comes to.
fn played(sitting: &Sitting, turn: Turn, fields: &Fields) -> Result<(), String> {
    let answer = {
        let state = sitting.state();
        let position = state.position.as_ref().filter(|_| state.turn == Some(turn));
        let position = position.ok_or("The match has gone on meanwhile; look at it again.")?;
        position.view().answer(turn.seat, &fields.0)?
    };
    sitting.answer(turn, answer).map_err(|refusal| match refusal {
        Refusal::NotDue => "The match has gone on meanwhile; look at it again.".to_owned(),
        Refusal::Illegal(why) => format!("This is not allowed: {why}."),
    })
}

/// Live pictures.
pub(super) async fn live(State(desk): State<Desk>, fields: Fields) -> Result<Response, WebError> {
    let look = Look::at(&desk, fields).ok_or_else(nothing)?;
    let (sender, receiver) = mpsc::channel::<Result<Markup, Status>>(1);
    let watching = async move {
        let mut news = look.sitting.news();
        loop {
            let shown = now(&desk, &look, &look.sitting.state());
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
pub(super) async fn record(State(desk): State<Desk>) -> Result<Response, WebError> {
    let sitting = desk.house.sitting().ok_or_else(nothing)?;
    let is_over = matches!(sitting.state().ending, Some(Ending::Over { .. }));
    if !is_over {
        let why = "a record is there when its match is over";
        return Err(WebError::new(StatusCode::NOT_FOUND, why));
    }
    let record = tokio::fs::read(&sitting.setting.record).await;
    let record = record.map_err(|error| WebError::new(StatusCode::NOT_FOUND, error.to_string()))?;
    let name =
        sitting.setting.record.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let headers = [
        (header::CONTENT_TYPE, "application/jsonl".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    Ok((headers, record).into_response())
}

fn back(desk: &Desk, look: &Look) -> Redirect {
    Redirect::to(&format!("{}{}", desk.path(""), look.query()))
}

fn nothing() -> WebError {
    WebError::new(StatusCode::NOT_FOUND, "nobody sits at the table here; begin a match")
}
