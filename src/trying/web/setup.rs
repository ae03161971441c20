//! A new match: who sits where, and with which seed.

use arbiter_games::Seat;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};

use super::Desk;
use super::page::{WebError, page, refused};
use crate::failure::Failure;
use crate::seed::draw_seed;
use crate::trying::moves::Fields;
use crate::trying::sitting::Chair;

/// What a person, and a seat that stays empty, are in the form.
const PERSON: &str = "human";
const EMPTY: &str = "";

/// The longest seed, in bytes.
const LONGEST_SEED: usize = 1000;

/// The form.
pub(super) async fn show(State(desk): State<Desk>) -> Markup {
    let sitting = desk.house.sitting();
    let chairs = sitting.map_or_else(|| usual(&desk), |sitting| sitting.setting.chairs.clone());
    form(&desk, &chairs, "", None)
}

/// A person in the first seat, and bots in those that have to be taken.
fn usual(desk: &Desk) -> Vec<Chair> {
    let bots = (0..desk.house.names.len()).cycle().map(Chair::Bot);
    [Chair::Person].into_iter().chain(bots).take(desk.house.most_seats).collect()
}

fn form(desk: &Desk, chairs: &[Chair], seed: &str, why: Option<&str>) -> Markup {
    let house = &desk.house;
    let body = html! {
        h1 { "A match of " (house.wish.game) }
        @if let Some(why) = why { (refused(why)) }
        form.setup method="post" action=(desk.path("new")) {
            @for seat in Seat::all(house.most_seats) {
                @let chair = chairs.get(seat.index()).copied();
                label {
                    "Seat " (seat) " "
                    select name={ "seat" (seat) } {
                        option value=(PERSON) selected[chair == Some(Chair::Person)] { "you, or somebody beside you" }
                        @for (index, name) in house.names.iter().enumerate() {
                            option value=(index) selected[chair == Some(Chair::Bot(index))] { (name) }
                        }
                        @if house.most_seats > 2 { option value=(EMPTY) selected[chair.is_none()] { "nobody" } }
                    }
                }
            }
            label { "Seed " input type="text" name="seed" value=(seed) placeholder="any text; else one is drawn"; }
            button type="submit" { "Begin" }
        }
        p { "The bots are taken as they are now on disk, and built where their sources have changed. "
            "The match at the table, if there is one, is given up." }
    };
    page(desk, "New match", false, &body)
}

/// Begins a match.
pub(super) async fn begin(State(desk): State<Desk>, fields: Fields) -> Result<Response, WebError> {
    let chairs = chairs(&desk, &fields);
    let seed = fields.get("seed").unwrap_or_default().trim().to_owned();
    let chosen = match (&chairs, seed.len() > LONGEST_SEED) {
        (Ok(_), true) => Err(Failure::Usage(format!("a seed has {LONGEST_SEED} bytes at most"))),
        (Ok(chairs), false) => begun(&desk, chairs.clone(), seed.clone()).await,
        (Err(why), _) => Err(Failure::Usage(why.clone())),
    };
    Ok(match chosen {
        Ok(()) => Redirect::to(&desk.path("")).into_response(),
        Err(failure) => {
            let page = form(&desk, &chairs.unwrap_or_default(), &seed, Some(failure.message()));
            (StatusCode::UNPROCESSABLE_ENTITY, page).into_response()
        }
    })
}

async fn begun(desk: &Desk, chairs: Vec<Chair>, seed: String) -> Result<(), Failure> {
    let house = desk.house.clone();
    // Bots may have to be built, and the match before has to end.
    let begin = move || {
        let seed = if seed.is_empty() { draw_seed()? } else { seed };
        house.begin(chairs, seed).map(drop)
    };
    let begun = tokio::task::spawn_blocking(begin).await;
    begun.map_err(|error| Failure::Negative(format!("the match could not be begun: {error}")))?
}

/// Who sits where, by the form: nobody sits behind an empty seat's place, all move up.
fn chairs(desk: &Desk, fields: &Fields) -> Result<Vec<Chair>, String> {
    let mut chairs = Vec::new();
    for seat in Seat::all(desk.house.most_seats) {
        match fields.get(&format!("seat{seat}")).unwrap_or(EMPTY) {
            EMPTY => {}
            PERSON => chairs.push(Chair::Person),
            index => {
                let index = index.parse().ok().filter(|index| *index < desk.house.names.len());
                chairs.push(Chair::Bot(index.ok_or("there is no such bot")?));
            }
        }
    }
    Ok(chairs)
}

/// A button that begins a match between these, with this seed or a new one.
pub(super) fn again(desk: &Desk, chairs: &[Chair], seed: &str, label: &str) -> Markup {
    html! {
        form.action method="post" action=(desk.path("new")) {
            @for (seat, chair) in Seat::all(chairs.len()).zip(chairs) {
                @let value = match chair {
                    Chair::Person => PERSON.to_owned(),
                    Chair::Bot(index) => index.to_string(),
                };
                input type="hidden" name={ "seat" (seat) } value=(value);
            }
            input type="hidden" name="seed" value=(seed);
            button type="submit" { (label) }
        }
    }
}
