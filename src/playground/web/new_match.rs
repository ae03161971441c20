//! The form for a new match: seats and seed.

use arbiter_games::Seat;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};

use super::PageContext;
use super::layout::{WebError, page, refused};
use crate::failure::Failure;
use crate::playground::live_match::SeatChoice;
use crate::playground::move_form::Fields;
use crate::random_seed::draw_seed;

/// The form values of a person and of an empty seat.
const PERSON: &str = "human";
const EMPTY: &str = "";

/// Maximum length of a seed, in bytes.
const MAX_SEED: usize = 1000;

/// Shows the form.
pub(super) async fn show(State(context): State<PageContext>) -> Markup {
    let live_match = context.session.live_match();
    let seat_choices = live_match.map_or_else(
        || default_seats(&context),
        |live_match| live_match.config.seat_choices.clone(),
    );
    form(&context, &seat_choices, "", None)
}

/// The default: a person in the first seat, bots in the others.
fn default_seats(context: &PageContext) -> Vec<SeatChoice> {
    let bots = (0..context.session.names.len()).cycle().map(SeatChoice::Bot);
    [SeatChoice::Person].into_iter().chain(bots).take(context.session.most_seats).collect()
}

fn form(
    context: &PageContext,
    seat_choices: &[SeatChoice],
    seed: &str,
    reason: Option<&str>,
) -> Markup {
    let session = &context.session;
    let body = html! {
        h1 { "A match of " (session.options.game) }
        @if let Some(reason) = reason { (refused(reason)) }
        form.setup method="post" action=(context.path("new")) {
            @for seat in Seat::all(session.most_seats) {
                @let seat_choice = seat_choices.get(seat.index()).copied();
                label {
                    "Seat " (seat) " "
                    select name={ "seat" (seat) } {
                        option value=(PERSON) selected[seat_choice == Some(SeatChoice::Person)] {
                            "a person"
                        }
                        @for (index, name) in session.names.iter().enumerate() {
                            option value=(index)
                                selected[seat_choice == Some(SeatChoice::Bot(index))] { (name) }
                        }
                        @if session.most_seats > 2 {
                            option value=(EMPTY) selected[seat_choice.is_none()] { "empty" }
                        }
                    }
                }
            }
            label {
                "Seed "
                input type="text" name="seed" value=(seed)
                    placeholder="any text; by default random";
            }
            button type="submit" { "Start" }
        }
        p {
            "The match uses the bots as they are on disk now, and rebuilds those with changed "
            "sources. It replaces the current match."
        }
    };
    page(context, "New match", false, &body)
}

/// Starts a match.
pub(super) async fn start(
    State(context): State<PageContext>,
    fields: Fields,
) -> Result<Response, WebError> {
    let seat_choices = seat_choices(&context, &fields);
    let seed = fields.get("seed").unwrap_or_default().trim().to_owned();
    let result = match (&seat_choices, seed.len() > MAX_SEED) {
        (Ok(_), true) => Err(Failure::Usage(format!("a seed has at most {MAX_SEED} bytes"))),
        (Ok(choices), false) => start_match(&context, choices.clone(), seed.clone()).await,
        (Err(reason), _) => Err(Failure::Usage(reason.clone())),
    };
    Ok(match result {
        Ok(()) => Redirect::to(&context.path("")).into_response(),
        Err(failure) => {
            let page =
                form(&context, &seat_choices.unwrap_or_default(), &seed, Some(failure.message()));
            (StatusCode::UNPROCESSABLE_ENTITY, page).into_response()
        }
    })
}

async fn start_match(
    context: &PageContext,
    seat_choices: Vec<SeatChoice>,
    seed: String,
) -> Result<(), Failure> {
    let session = context.session.clone();
    // This blocks while bots are built and the previous match ends.
    let start = move || {
        let seed = if seed.is_empty() { draw_seed()? } else { seed };
        session.start_match(seat_choices, seed).map(drop)
    };
    let result = tokio::task::spawn_blocking(start).await;
    result.map_err(|error| Failure::Negative(format!("cannot start the match: {error}")))?
}

/// The seats of the form, without the empty ones.
fn seat_choices(context: &PageContext, fields: &Fields) -> Result<Vec<SeatChoice>, String> {
    let mut seat_choices = Vec::new();
    for seat in Seat::all(context.session.most_seats) {
        match fields.get(&format!("seat{seat}")).unwrap_or(EMPTY) {
            EMPTY => {}
            PERSON => seat_choices.push(SeatChoice::Person),
            index => {
                let index = index.parse().ok().filter(|index| *index < context.session.names.len());
                seat_choices.push(SeatChoice::Bot(index.ok_or("there is no such bot")?));
            }
        }
    }
    Ok(seat_choices)
}

/// A button that starts a match with these seats and this seed, or a random one if it is empty.
pub(super) fn start_button(
    context: &PageContext,
    seat_choices: &[SeatChoice],
    seed: &str,
    label: &str,
) -> Markup {
    html! {
        form.action method="post" action=(context.path("new")) {
            @for (seat, seat_choice) in Seat::all(seat_choices.len()).zip(seat_choices) {
                @let value = match seat_choice {
                    SeatChoice::Person => PERSON.to_owned(),
                    SeatChoice::Bot(index) => index.to_string(),
                };
                input type="hidden" name={ "seat" (seat) } value=(value);
            }
            input type="hidden" name="seed" value=(seed);
            button type="submit" { (label) }
        }
    }
}
