//! Changing the settings of a tournament in a browser: fill in the form, see what it changes,
//! confirm.
//!
//! The form writes the changed keys as lines of a tournament file. The service checks them as it
//! does for `arbiter tournament edit`. The form carries the revision that it shows, so a change of
//! another organiser is never lost.

mod fields;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use arbiter_games::ParamInfo;
use arbiter_proto::v1::edit_tournament_request::Source;
use arbiter_proto::v1::{
    EditTournamentRequest, EditTournamentResponse, GetTournamentRequest, KeyChanges, SettingChange,
};
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;
use time::OffsetDateTime;
use time::UtcOffset;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use toml::Value as TomlValue;

use self::fields::{ALWAYS, BEFORE_EDITIONS, Field, Kind};
use super::csrf_form::{CsrfForm, WrittenForm};
use super::error::WebError;
use super::session::Session;
use super::tournament_form::{self, PARAM, plain_text, toml_value};
use super::tournament_page::{Tab, TournamentPage};
use super::{flash, layout, parameter_words};
use crate::access::Role;
use crate::tournament::TournamentFile;

/// The filled in form.
#[derive(Debug, Deserialize)]
pub(super) struct EditForm {
    /// The revision that it shows, in hexadecimal digits.
    #[serde(default)]
    revision: String,
    /// Whether the shown changes are confirmed.
    #[serde(default)]
    apply: Option<String>,
    /// The fields by their keys.
    #[serde(flatten)]
    fields: HashMap<String, String>,
}

impl WrittenForm for EditForm {
    fn is_written(field: &str) -> bool {
        ["title", "description"].contains(&field) || field.starts_with(PARAM)
    }
}

/// What the form shows.
struct FormState {
    tournament: String,
    revision: String,
    /// The fields with their present texts.
    present: Vec<(&'static Field, String)>,
    /// The parameters with their present texts; empty once an edition was opened.
    params: Vec<(ParamInfo, String)>,
}

impl FormState {
    async fn read(session: &Session, tournament: &str) -> Result<Self, WebError> {
        session.caller.require(Role::Organiser)?;
        let request = GetTournamentRequest { tournament: tournament.to_owned(), edition: None };
        let details = session.service.get_tournament(&session.caller, request).await?;
        if details.state != "open" {
            let error = format!("the tournament {tournament} is over and can no longer be changed");
            return Err(WebError::new(StatusCode::CONFLICT, error));
        }
        let file = session.service.tournament_file(tournament).await?;
        let values = file.values();
        let is_before_editions = details.editions.is_empty();
        let later = if is_before_editions { BEFORE_EDITIONS } else { &[] };
        let fields = ALWAYS.iter().chain(later);
        Ok(Self {
            tournament: tournament.to_owned(),
            revision: layout::hex(&details.revision),
            present: fields.map(|field| (field, field_text(field, &values))).collect(),
            params: if is_before_editions { params(&file, &values) } else { Vec::new() },
        })
    }
}

/// The parameters of a tournament with their texts. The schedule may list boards instead of one in
/// a parameter.
fn params(file: &TournamentFile, values: &BTreeMap<String, Value>) -> Vec<(ParamInfo, String)> {
    let board = file.game().boards.as_ref().filter(|_| !file.boards.is_empty());
    let is_shown = |param: &&ParamInfo| board.is_none_or(|board| board.key != param.key);
    let with_text = |param: &ParamInfo| {
        let value = values.get(&format!("params.{}", param.key));
        let value = value.and_then(|value| arbiter_games::Value::deserialize(value).ok());
        (param.clone(), value.as_ref().map(plain_text).unwrap_or_default())
    };
    file.game().params.iter().filter(is_shown).map(with_text).collect()
}

/// The form.
pub(super) async fn form(
    session: Session,
    Path(tournament): Path<String>,
) -> Result<Markup, WebError> {
    let state = FormState::read(&session, &tournament).await?;
    let fields = HashMap::new();
    Ok(page(&session, &state, &fields, &html! {}).await)
}

/// Shows what the form changes, or applies it.
pub(super) async fn submit(
    Path(tournament): Path<String>,
    CsrfForm { session, form }: CsrfForm<EditForm>,
) -> Result<Response, WebError> {
    let state = FormState::read(&session, &tournament).await?;
    let EditForm { revision, apply, fields } = form;
    let request = EditTournamentRequest {
        tournament: tournament.clone(),
        source: Some(Source::Keys(key_changes(&state, &fields))),
        revision: revision_bytes(&revision)?,
        apply: apply.is_some(),
    };
    match session.service.edit_tournament(&session.caller, request).await {
        Ok(_) if apply.is_some() => {
            Ok(flash::redirect(&format!("/t/{tournament}/organise"), "edit").into_response())
        }
        Ok(edited) => {
            let preview = preview(&session, &state, &revision, &fields, &edited);
            Ok(page(&session, &state, &fields, &preview).await.into_response())
        }
        Err(error) => {
            let error = WebError::from(error);
            let params: Vec<_> = state.params.iter().map(|(param, _)| param.clone()).collect();
            let in_words = parameter_words::error(&params, &with_labels(error.message()));
            let message = layout::error_message(Some(&in_words));
            let page = page(&session, &state, &fields, &message).await;
            Ok((error.status(), page).into_response())
        }
    }
}

/// Reads the revision of a form.
fn revision_bytes(text: &str) -> Result<Vec<u8>, WebError> {
    let hash = blake3::Hash::from_hex(text).map_err(|_| {
        WebError::new(StatusCode::BAD_REQUEST, "the form has no revision; open it again")
    })?;
    Ok(hash.as_bytes().to_vec())
}

/// The fields whose texts differ from the present ones, as changes of keys.
fn key_changes(state: &FormState, fields: &HashMap<String, String>) -> KeyChanges {
    let mut changes = KeyChanges::default();
    for ((key, _, kind, _), present) in &state.present {
        // Browsers send CRLF line ends.
        let Some(text) = fields.get(*key).map(|text| text.replace("\r\n", "\n")) else { continue };
        let text = text.trim();
        if text == present {
            continue;
        }
        if text.is_empty() {
            changes.unset.push((*key).to_owned());
            continue;
        }
        let digits =
            if *kind == Kind::Percent { text.trim_end_matches('%').trim_end() } else { text };
        let is_number = [Kind::Number, Kind::Percent].contains(kind);
        let number = digits.parse::<i64>().ok().filter(|_| is_number);
        let flag = text.parse::<bool>().ok().filter(|_| *kind == Kind::Flag);
        let value = match (number, flag) {
            (Some(number), _) => TomlValue::from(number),
            (_, Some(flag)) => TomlValue::from(flag),
            _ if *kind == Kind::Time => TomlValue::from(file_time(text)),
            _ => TomlValue::from(text),
        };
        writeln!(changes.set, "{key} = {value}").expect("writing to a string");
    }
    for (param, present) in &state.params {
        let key = format!("params.{}", param.key);
        match fields.get(&param_field(param)).map(|text| text.trim()) {
            Some("") if !present.is_empty() => changes.unset.push(key),
            Some(text) if text != present => {
                let value = toml_value(&param.kind, text);
                writeln!(changes.set, "{key} = {value}").expect("writing to a string");
            }
            Some(_) | None => {}
        }
    }
    changes
}

/// The text of a field.
fn field_text(&(key, _, kind, _): &Field, values: &BTreeMap<String, Value>) -> String {
    match values.get(key) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) if kind == Kind::Time => browser_time(text),
        Some(Value::String(text)) => text.clone(),
        Some(value) if kind == Kind::Percent => format!("{value}%"),
        Some(value) => value.to_string(),
    }
}

/// A time of a tournament file in the format of a browser's field, in UTC.
fn browser_time(text: &str) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]");
    let time = OffsetDateTime::parse(text, &Rfc3339);
    let formatted = time.ok().and_then(|time| time.to_offset(UtcOffset::UTC).format(&format).ok());
    formatted.unwrap_or_else(|| text.to_owned())
}

/// A time of a browser's field as a tournament file writes it. Another text stays as it is, so that
/// the error shows it.
fn file_time(text: &str) -> String {
    let candidates = [text.to_owned(), format!("{text}Z"), format!("{text}:00Z")];
    let time = candidates.into_iter().find(|text| OffsetDateTime::parse(text, &Rfc3339).is_ok());
    time.unwrap_or_else(|| text.to_owned())
}

/// Renders the page: `above` is the preview or an error, `fields` what was filled in.
async fn page(
    session: &Session,
    state: &FormState,
    fields: &HashMap<String, String>,
    above: &Markup,
) -> Markup {
    let FormState { tournament, revision, present, params } = state;
    let is_limited = present.len() == ALWAYS.len();
    let body = html! {
        (above)
        form.fields method="post" action={ "/t/" (tournament) "/edit" } {
            (layout::csrf_field(session))
            input type="hidden" name="revision" value=(revision);
            @for (field, present) in present {
                (input(field, fields.get(field.0).unwrap_or(present)))
            }
            @if !params.is_empty() {
                h2 { "Parameters" }
                @for (param, present) in params {
                    (tournament_form::field(param, fields.get(&param_field(param)).unwrap_or(present), false))
                }
            }
            @if is_limited {
                p { "Parameters, clock, limits, the files that bots leave and what bots do between turns cannot \
                    change after the first edition was opened, because editions share matches." }
            }
            p { button type="submit" { "Preview changes" } }
        }
    };
    TournamentPage::below(tournament, Tab::Organise, "Edit settings").render(session, &body).await
}

/// The name of the field of a parameter.
fn param_field(param: &ParamInfo) -> String {
    format!("{PARAM}{}", param.key)
}

/// A field of the form.
fn input(&(key, label, kind, help): &Field, text: &str) -> Markup {
    let help_id = format!("{key}-help");
    let choices = kind.choices();
    let (kind_name, step) = match kind {
        Kind::Number => ("number", Some("1")),
        Kind::Time => ("datetime-local", Some("1")),
        _ => ("text", None),
    };
    html! {
        p {
            label for=(key) { (label) }
            @if kind == Kind::Text {
                textarea id=(key) name=(key) rows="12" aria-describedby=(help_id) {
                    // Browsers drop the first line break in a textarea.
                    "\n" (layout::form_value(text))
                }
            } @else if choices.is_empty() {
                input id=(key) name=(key) value=(layout::form_value(text)) type=(kind_name) step=[step]
                    autocomplete="off" aria-describedby=(help_id);
            } @else {
                select id=(key) name=(key) aria-describedby=(help_id) {
                    @if !choices.iter().any(|(word, _)| *word == text) {
                        option value=(layout::form_value(text)) selected { (text) }
                    }
                    @for (word, meaning) in choices {
                        option value=(word) selected[*word == text] { (meaning) }
                    }
                }
            }
            small id=(help_id) { (help) }
        }
    }
}

/// The field of a key.
fn field_of(key: &str) -> Option<&'static Field> {
    ALWAYS.iter().chain(BEFORE_EDITIONS).find(|field| field.0 == key)
}

/// The parameter of a key.
fn param_of<'a>(params: &'a [(ParamInfo, String)], key: &str) -> Option<&'a ParamInfo> {
    let key = key.strip_prefix("params.")?;
    params.iter().map(|(param, _)| param).find(|param| param.key == key)
}

/// A setting as the form calls it.
fn setting(params: &[(ParamInfo, String)], key: &str) -> Markup {
    html! {
        @if let Some((_, label, ..)) = field_of(key) { (label) }
        @else if let Some(param) = param_of(params, key) { (parameter_words::label(param)) }
        @else { code { (key) } }
    }
}

/// A value of a setting as people read it. `json` is empty if there is no value.
fn value_in_words(params: &[(ParamInfo, String)], key: &str, json: &str) -> String {
    if let Some(param) = param_of(params, key)
        && let Ok(value) = serde_json::from_str(json)
    {
        return tournament_form::value_in_words(param, &value);
    }
    let kind = field_of(key).map(|field| field.2);
    match (serde_json::from_str(json), kind) {
        (Ok(Value::String(text)), Some(Kind::Time)) => {
            OffsetDateTime::parse(&text, &Rfc3339).map_or(text, layout::format_time)
        }
        (Ok(Value::String(text)), _) if key.starts_with("audit.") => text.replace('%', "\u{a0}%"),
        (Ok(value), Some(Kind::Percent)) => format!("{value}\u{a0}%"),
        (Ok(Value::String(text)), Some(kind)) => kind.in_words(&text).to_owned(),
        (Ok(Value::String(text)), None) => text,
        (Ok(value), Some(kind)) => kind.in_words(&value.to_string()).to_owned(),
        (Ok(value), None) => value.to_string(),
        (Err(_), _) => "none".to_owned(),
    }
}

/// An error of the service with the labels of the form instead of the keys of the file.
fn with_labels(message: &str) -> String {
    let fields = ALWAYS.iter().chain(BEFORE_EDITIONS);
    fields.fold(message.to_owned(), |message, (key, label, ..)| match key.split_once('.') {
        Some((section, name)) => {
            message.replace(&format!("[{section}] {name} ="), &format!("{label} ="))
        }
        None => match message.strip_prefix(&format!("{key} =")) {
            Some(rest) => format!("{label} ={rest}"),
            None => message,
        },
    })
}

/// What the form changes, and the button that applies it.
fn preview(
    session: &Session,
    state: &FormState,
    revision: &str,
    fields: &HashMap<String, String>,
    edited: &EditTournamentResponse,
) -> Markup {
    let row = |SettingChange { key, before, after, effect }: &SettingChange| {
        html! {
            th scope="row" { (setting(&state.params, key)) }
            td data-label="Now" { (value_in_words(&state.params, key, before)) }
            td data-label="Then" { (value_in_words(&state.params, key, after)) }
            td data-label="Effect" { (effect) }
        }
    };
    html! {
        section.preview aria-labelledby="preview" {
            h2 #preview { "Preview" }
            @if edited.changes.is_empty() {
                p { "Nothing differs from the present settings." }
            } @else {
                (layout::table("Changes", "settings", &["Setting", "Now", "Then", "Effect"],
                    edited.changes.iter().map(row)))
                form.action method="post" action={ "/t/" (state.tournament) "/edit" } {
                    (layout::csrf_field(session))
                    input type="hidden" name="revision" value=(revision);
                    @for ((key, ..), _) in &state.present {
                        @if let Some(text) = fields.get(*key) {
                            input type="hidden" name=(key) value=(layout::form_value(text));
                        }
                    }
                    @for (param, _) in &state.params {
                        @if let Some(text) = fields.get(&param_field(param)) {
                            input type="hidden" name=(param_field(param)) value=(layout::form_value(text));
                        }
                    }
                    button type="submit" name="apply" value="yes" { "Apply changes" }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use arbiter_games::ParamKind;

    use super::*;

    #[test]
    fn times_of_browsers_and_files_are_equal() {
        let time = "2027-03-01T13:00:00+01:00";
        assert_eq!(browser_time(time), "2027-03-01T12:00:00");
        assert_eq!(file_time("2027-03-01T12:00:00"), "2027-03-01T12:00:00Z");
        assert_eq!(file_time("2027-03-01T12:00"), "2027-03-01T12:00:00Z");
        assert_eq!(file_time(time), time);
        assert_eq!(file_time("noon"), "noon");
    }

    #[test]
    fn parameters_are_shown_as_the_form_calls_them() {
        let param = |key, kind, help| (arbiter_games::param(key, kind, help), String::new());
        let params = [
            param("frames", ParamKind::Boolean, "whether bots see frames: true or false"),
            param("chips", ParamKind::PerSeat(0..=400), "what each bot starts with; default 200"),
        ];
        let label = |key| setting(&params, key).into_string();
        assert_eq!(label("params.frames"), "Whether bots see frames");
        assert_eq!(label("params.other"), "<code>params.other</code>");
        let words = |key, json| value_in_words(&params, key, json);
        assert_eq!(words("params.frames", "true"), "yes");
        assert_eq!(words("params.chips", "[120,0,305]"), "120, 0, 305");
        assert_eq!(words("params.chips", ""), "none");
    }

    #[test]
    fn settings_are_shown_in_words() {
        let words = |key, json| value_in_words(&[], key, json);
        assert_eq!(words("submissions.preflight", "true"), "yes");
        assert_eq!(words("submissions.closes", "\"2027-01-05T12:00:00Z\""), "2027-01-05 12:00 UTC");
        assert_eq!(words("title", ""), "none");
        assert_eq!(words("submissions.stand_down_percent", "20"), "20\u{a0}%");
        assert_eq!(words("audit.replay", "\"5%\""), "5\u{a0}%");
        // The same word means something else in another field.
        assert_eq!(words("title", "\"manual\""), "manual");
        assert_eq!(words("rerun", "\"manual\""), "when an organiser starts one");
        assert_eq!(words("state", "\"tournament\""), "passed to the next match");
        assert_eq!(
            with_labels("expected = \"x\": wrong"),
            "Expected match duration = \"x\": wrong"
        );
        let error = "[submissions] window = \"abc\": expected a duration";
        assert_eq!(with_labels(error), "Wait before a new edition = \"abc\": expected a duration");
    }
}
