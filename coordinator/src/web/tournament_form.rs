//! A form that creates a tournament of a game without writing a file: its parameters are fields
//! with the types, bounds, choices and help of the game's descriptor.
//!
//! The form only writes the tournament file. The service parses and checks it like every other one.
//! A game package that is not stored yet is read for its descriptor. The service keeps it for the
//! new tournament.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

use arbiter_games::{Game, ParamInfo, ParamKind, ScheduleKind, Value};
use arbiter_proto::settings::GamePackage;
use arbiter_proto::v1::{GetTournamentRequest, ListTournamentsRequest};
use axum::extract::{Multipart, Query};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};
use serde::Deserialize;
use toml::Value as TomlValue;

use super::csrf_form::{CsrfForm, WrittenForm};
use super::error::WebError;
use super::multipart::Upload;
use super::session::Session;
use super::{create_tournament, layout, parameter_words};
use crate::access::Role;
use crate::game_package;
use crate::tournament::TournamentFile;

/// The beginning of the names of the fields of parameters.
pub(super) const PARAM: &str = "param-";

/// The game of a new tournament: a built-in one, or the package of a tournament.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct GameQuery {
    game: String,
    /// The tournament with the package.
    package_of: String,
}

/// What is filled in.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Draft {
    game: String,
    /// The game package as JSON; empty for a built-in game.
    package: String,
    name: String,
    /// One line for people; empty for none.
    title: String,
    /// Markdown; empty for none.
    description: String,
    /// The number of seats of a table. Empty for games without a choice, and for the default.
    seats: String,
    /// Whether house bots have no ranks.
    unranked_house: Option<String>,
    /// More lines of the file.
    more: String,
    /// Whether to show the file instead of creating the tournament.
    show: Option<String>,
    /// The parameters, by the names of their fields. Parameters that are missing have their
    /// defaults.
    #[serde(flatten)]
    params: HashMap<String, String>,
}

impl WrittenForm for Draft {
    fn is_written(field: &str) -> bool {
        ["title", "description", "more"].contains(&field) || field.starts_with(PARAM)
    }
}

/// A game that a tournament can be created for.
pub(super) struct GameChoice {
    pub(super) title: String,
    /// The address of its form.
    pub(super) address: String,
}

/// The built-in games, and the packages of tournaments.
pub(super) async fn choices(session: &Session) -> Result<Vec<GameChoice>, WebError> {
    let built_in = session.service.games().iter().map(|game| GameChoice {
        title: game.title.to_string(),
        address: format!("/new/game?game={game}"),
    });
    let mut choices: Vec<_> = built_in.collect();
    let request = ListTournamentsRequest {};
    let tournaments = session.service.list_tournaments(&session.caller, request).await?.tournaments;
    let mut bundles = Vec::new();
    for tournament in tournaments {
        let Some(package) = package_of(&tournament.settings) else { continue };
        let Ok(game) = find_game(session, &tournament.game, Some(&package)) else { continue };
        if bundles.contains(&package.bundle) {
            continue;
        }
        bundles.push(package.bundle);
        choices.push(GameChoice {
            title: format!("{} (game package of {})", game.title, tournament.name),
            address: format!("/new/game?package_of={}", tournament.name),
        });
    }
    Ok(choices)
}

/// The game package in the settings of a tournament.
fn package_of(settings: &str) -> Option<GamePackage> {
    let settings = serde_json::from_str(settings).ok()?;
    game_package::of_settings(&settings).ok()?
}

fn find_game(
    session: &Session,
    name: &str,
    package: Option<&GamePackage>,
) -> Result<Game, WebError> {
    game_package::find(session.service.games(), name, package)
        .map_err(|error| WebError::new(StatusCode::BAD_REQUEST, error.to_string()))
}

/// The form for a game.
pub(super) async fn form(
    session: Session,
    Query(GameQuery { game, package_of: tournament }): Query<GameQuery>,
) -> Result<Markup, WebError> {
    session.caller.require(Role::Organiser)?;
    if tournament.is_empty() {
        let game = find_game(&session, &game, None)?;
        return Ok(render(&session, &game, &Draft::new(&game, None), None));
    }
    let request = GetTournamentRequest { tournament, edition: None };
    let details = session.service.get_tournament(&session.caller, request).await?;
    let package = package_of(&details.settings);
    let game = find_game(&session, &details.game, package.as_ref())?;
    Ok(render(&session, &game, &Draft::new(&game, package.as_ref()), None))
}

/// The form for the game of an uploaded package.
pub(super) async fn open_package(
    session: Session,
    headers: HeaderMap,
    multipart: Multipart,
) -> Result<Response, WebError> {
    let mut upload = Upload::checked(multipart, &session, &headers).await?;
    session.caller.require(Role::Organiser)?;
    let pieces = upload.pieces("package").await?;
    match session.service.inspect_package(&session.caller, pieces).await {
        Ok((game, package)) => {
            let draft = Draft::new(&game, Some(&package));
            Ok(render(&session, &game, &draft, None).into_response())
        }
        Err(error) => {
            let error = WebError::from(error);
            let page = create_tournament::render(&session, Some(error.message())).await?;
            Ok((error.status(), page).into_response())
        }
    }
}

/// Creates the tournament, or shows its file.
pub(super) async fn create(
    CsrfForm { session, form: draft }: CsrfForm<Draft>,
) -> Result<Response, WebError> {
    session.caller.require(Role::Organiser)?;
    let package = draft.package()?;
    let game = find_game(&session, &draft.game, package.as_ref())?;
    let file = draft.file(&game, package);
    if draft.show.is_some() {
        return Ok(create_tournament::render_file(&session, &file, None).into_response());
    }
    match create_tournament::create_from(&session, file).await {
        Ok(created) => Ok(created.into_response()),
        Err(error) => {
            let page = render(&session, &game, &draft, Some(error.message()));
            Ok((error.status(), page).into_response())
        }
    }
}

impl Draft {
    /// An empty form for a game.
    fn new(game: &Game, package: Option<&GamePackage>) -> Self {
        let package = package
            .map(|package| serde_json::to_string(package).expect("texts can be written as JSON"));
        Self {
            game: game.name.to_string(),
            package: package.unwrap_or_default(),
            ..Self::default()
        }
    }

    fn package(&self) -> Result<Option<GamePackage>, WebError> {
        if self.package.is_empty() {
            return Ok(None);
        }
        let error =
            |error| WebError::new(StatusCode::BAD_REQUEST, format!("the game package: {error}"));
        serde_json::from_str(&self.package).map(Some).map_err(error)
    }

    /// The text in the field of a parameter.
    fn param(&self, param: &ParamInfo) -> String {
        let text = self.params.get(&format!("{PARAM}{}", param.key));
        text.cloned().unwrap_or_else(|| default_text(param))
    }

    /// The tournament file. Parameters with their defaults are left out.
    fn file(&self, game: &Game, package: Option<GamePackage>) -> String {
        let name = TomlValue::from(self.name.trim());
        let quoted_game = TomlValue::from(&*game.name);
        let mut file = format!("name = {name}\ngame = {quoted_game}\n");
        for (key, text) in [("title", &self.title), ("description", &self.description)] {
            let text = with_unix_lines(text);
            if !text.trim().is_empty() {
                let text = TomlValue::from(text.trim());
                writeln!(file, "{key} = {text}").expect("writing to a string");
            }
        }
        writeln!(file, "{}", with_unix_lines(&self.more).trim()).expect("writing to a string");
        let seats = self.seats.trim();
        if !seats.is_empty() && seats != default_seats(game) {
            let seats = seats.parse().map_or_else(|_| TomlValue::from(seats), i64::into);
            write!(file, "\n[schedule]\nkind = \"tables\"\nseats = {seats}\n")
                .expect("writing to a string");
        }
        let changed = game.params.iter().filter_map(|param| {
            let text = self.param(param);
            let text = text.trim();
            (!text.is_empty() && text != default_text(param)).then(|| (param, text.to_owned()))
        });
        let mut changed = changed.peekable();
        if changed.peek().is_some() {
            file.push_str("\n[params]\n");
        }
        for (param, text) in changed {
            let key = TomlValue::from(&*param.key);
            let value = toml_value(&param.kind, &text);
            writeln!(file, "{key} = {value}").expect("writing to a string");
        }
        if self.unranked_house.is_some() {
            file.push_str("\n[house]\nranked = false\n");
        }
        let Some(package) = package else { return file };
        let with_package =
            TournamentFile::inline_package(&file, |_| Some((game.name.to_string(), package)));
        // Parsing the file reports what is wrong with it.
        with_package.unwrap_or(file)
    }
}

/// A text with line ends as in files; browsers send CRLF.
fn with_unix_lines(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// The numbers of seats that a table of the game may have, if an organiser chooses.
fn table_sizes(game: &Game) -> Option<RangeInclusive<usize>> {
    let is_choice = game.seats.end() > game.seats.start()
        && game.seats_param.is_none()
        && game.episodes.is_none();
    let least = 2.max(*game.seats.start());
    is_choice.then(|| least..=*game.seats.end())
}

/// The size of the tables of the game's official tournament as text. Empty if it has no tables.
fn default_seats(game: &Game) -> String {
    match game.official.schedule {
        ScheduleKind::Tables(seats) => seats.to_string(),
        _ => String::new(),
    }
}

/// The default of a parameter as text.
fn default_text(param: &ParamInfo) -> String {
    param.default.as_ref().map(plain_text).unwrap_or_default()
}

/// A value as a person writes it in a field.
pub(super) fn plain_text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::List(list) => list.iter().map(plain_text).collect::<Vec<_>>().join(", "),
        value => value.to_string(),
    }
}

/// The value that a text in a field means. A text that cannot be read remains, so that the error
/// shows it.
pub(super) fn toml_value(kind: &ParamKind, text: &str) -> TomlValue {
    let integer = |text: &str| text.trim().parse::<i64>().ok().map(TomlValue::from);
    let value = match kind {
        ParamKind::Integer(_) => integer(text),
        ParamKind::Number(_) => {
            integer(text).or_else(|| text.parse::<f64>().ok().map(TomlValue::from))
        }
        ParamKind::Boolean => text.parse::<bool>().ok().map(TomlValue::from),
        ParamKind::PerSeat(_) => integer(text).or_else(|| {
            let numbers: Option<Vec<_>> = text.split(',').map(integer).collect();
            numbers.map(TomlValue::Array)
        }),
        ParamKind::Text | ParamKind::Choice(_) | ParamKind::Duration => None,
    };
    value.unwrap_or_else(|| TomlValue::from(text))
}

/// Renders the form with what was filled in and the error, if any.
fn render(session: &Session, game: &Game, draft: &Draft, error: Option<&str>) -> Markup {
    let title = format!("Create a tournament of {}", game.title);
    let error_words = error.map(|error| parameter_words::error(&game.params, error));
    let wrong = |key: &str| error.is_some_and(|error| error.contains(&format!("[params] {key} =")));
    let body = html! {
        p { a href="/new" { "Choose another game" } }
        (layout::error_message(error_words.as_deref()))
        form.fields method="post" action="/new/game" {
            (layout::csrf_field(session))
            input type="hidden" name="game" value=(layout::form_value(&draft.game));
            input type="hidden" name="package" value=(layout::form_value(&draft.package));
            p {
                label for="name" { "Name" }
                input #name name="name" value=(layout::form_value(&draft.name)) required maxlength="64" autocomplete="off"
                    aria-describedby="name-help";
                small #name-help {
                    "It is part of addresses and commands, as in spring-cup: letters (A–Z, a–z), "
                    "digits, dots, underscores and hyphens."
                }
            }
            (texts_of(draft))
            @if let Some(sizes) = table_sizes(game) { (seats_field(game, draft, &sizes)) }
            @if !game.params.is_empty() { h2 { "Parameters" } }
            @for param in &game.params {
                (field(param, &draft.param(param), wrong(&param.key)))
            }
            h2 { "More settings" }
            p {
                label.check {
                    input type="checkbox" name="unranked_house" value="yes"
                        checked[draft.unranked_house.is_some()];
                    " House bots play without a rank"
                }
            }
            p {
                label for="more" { "More lines of the tournament file" }
                textarea #more name="more" rows="6" spellcheck="false" aria-describedby="more-help" {
                    // Browsers drop the first line break in a textarea.
                    "\n" (layout::form_value(&draft.more))
                }
                small #more-help {
                    "Such as [schedule], [clock], [limits] or [submissions]. Settings that are left "
                    "out are those of the game's official tournament. The schedule can never "
                    "change later; clock, limits and parameters can change until the first "
                    "edition."
                }
            }
            p {
                button type="submit" { "Create tournament" } " "
                button type="submit" name="show" value="yes" formnovalidate { "Show the file" }
            }
        }
    };
    let parents = [(create_tournament::TITLE, "/new".to_owned())];
    layout::page_below(&parents, &title, session, &body)
}

/// The fields for what people read on the pages of the tournament.
fn texts_of(draft: &Draft) -> Markup {
    html! {
        p {
            label for="title" { "Title" }
            input #title name="title" value=(layout::form_value(&draft.title)) maxlength="100" autocomplete="off"
                aria-describedby="title-help";
            small #title-help { "Pages show it instead of the name. It may be empty." }
        }
        p {
            label for="description" { "Description" }
            textarea #description name="description" rows="4" aria-describedby="description-help" {
                "\n" (layout::form_value(&draft.description))
            }
            small #description-help { "Markdown for the page About. It may be empty." }
        }
    }
}

/// The field for the number of seats of a table.
fn seats_field(game: &Game, draft: &Draft, sizes: &RangeInclusive<usize>) -> Markup {
    let default = default_seats(game);
    let text = if draft.seats.is_empty() { &default } else { &draft.seats };
    html! {
        p {
            label for="seats" { "Seats of a table" }
            input #seats name="seats" value=(layout::form_value(text)) type="number" step="1" min=(sizes.start())
                max=(sizes.end()) autocomplete="off" aria-describedby="seats-help";
            small #seats-help {
                "From " (sizes.start()) " to " (sizes.end()) ". For more of [schedule], "
                @if default.is_empty() { "leave it empty" } @else { "keep " (default) }
                " and write the section below."
            }
        }
    }
}

/// The field of a parameter.
pub(super) fn field(param: &ParamInfo, text: &str, is_wrong: bool) -> Markup {
    let id = format!("{PARAM}{}", param.key);
    let help = format!("{id}-help");
    let invalid = is_wrong.then_some("true");
    let choices: Vec<&str> = match &param.kind {
        ParamKind::Boolean => vec!["true", "false"],
        ParamKind::Choice(choices) => choices.iter().map(AsRef::as_ref).collect(),
        _ => Vec::new(),
    };
    html! {
        p {
            label for=(id) { (parameter_words::label(param)) }
            @if choices.is_empty() {
                @let Bounds { least, most, step } = bounds(&param.kind);
                input id=(id) name=(id) value=(layout::form_value(text)) type=[step.map(|_| "number")] step=[step]
                    min=[least] max=[most] autocomplete="off" aria-describedby=(help)
                    aria-invalid=[invalid];
            } @else {
                select id=(id) name=(id) aria-describedby=(help) aria-invalid=[invalid] {
                    @if !choices.contains(&text) { option value=(layout::form_value(text)) selected { (text) } }
                    @for choice in choices {
                        option value=(layout::form_value(choice)) selected[choice == text] { (choice_words(param, choice)) }
                    }
                }
            }
            small id=(help) {
                (parameter_words::values(param)) " In files and commands it is "
                code { (param.key) } "."
            }
        }
    }
}

/// A value of a parameter as people read it.
pub(super) fn value_in_words(param: &ParamInfo, value: &Value) -> String {
    let text = plain_text(value);
    match &param.kind {
        ParamKind::Duration => parameter_words::with_spaced_units(&text),
        _ => choice_words(param, &text).to_owned(),
    }
}

/// A choice as people read it.
fn choice_words<'a>(param: &ParamInfo, choice: &'a str) -> &'a str {
    match (&param.kind, choice) {
        (ParamKind::Boolean, "true") => "yes",
        (ParamKind::Boolean, "false") => "no",
        _ => choice,
    }
}

/// The bounds of a number; all are absent for other kinds.
#[derive(Default)]
pub(super) struct Bounds {
    pub(super) least: Option<String>,
    pub(super) most: Option<String>,
    step: Option<&'static str>,
}

pub(super) fn bounds(kind: &ParamKind) -> Bounds {
    match kind {
        ParamKind::Integer(range) => Bounds {
            least: Some(*range.start()).filter(|least| *least > i64::MIN).map(|n| n.to_string()),
            most: Some(*range.end()).filter(|most| *most < i64::MAX).map(|n| n.to_string()),
            step: Some("1"),
        },
        ParamKind::Number(range) => Bounds {
            least: Some(*range.start()).filter(|least| *least > f64::MIN).map(|n| n.to_string()),
            most: Some(*range.end()).filter(|most| *most < f64::MAX).map(|n| n.to_string()),
            step: Some("any"),
        },
        _ => Bounds::default(),
    }
}
