//! Parameters of games in words, for people who have not seen a tournament file.

use arbiter_games::{Micros, ParamInfo, ParamKind};
use maud::{Markup, html};

use super::layout;
use super::tournament_form::{Bounds, bounds, value_in_words};

/// What begins the part of a help text that is about values.
const VALUES: [&str; 6] = [": ", "; ", ", as ", ", an ", ", a ", ", one "];

/// A default that is longer, in bytes, is not shown.
const MAX_DEFAULT: usize = 100;

/// The name of a parameter in words, with a small first letter: the part of its help before its
/// values. A parameter whose help has no such part has only its key.
pub(super) fn name(param: &ParamInfo) -> String {
    let name = param.help[..end_of_name(&param.help)].trim();
    if name.is_empty() { param.key.replace('_', " ") } else { name.to_owned() }
}

/// The name of a parameter as the label of its field.
pub(super) fn label(param: &ParamInfo) -> String {
    layout::label(&name(param))
}

/// The rest of the help: the values and the default. Empty if there is none.
pub(super) fn values(param: &ParamInfo) -> Markup {
    let rest = param.help[end_of_name(&param.help)..].trim_start_matches([':', ';', ',', ' ', '.']);
    let help = Some(in_words(param, rest)).filter(|rest| !rest.is_empty());
    let parts: Vec<_> = help.into_iter().chain(values_beside_help(param)).collect();
    html! { @if !parts.is_empty() { (layout::sentence(&parts.join("; "))) } }
}

/// The whole help, with the values and the default.
pub(super) fn description(param: &ParamInfo) -> Markup {
    let help = in_words(param, param.help.trim_end_matches('.'));
    let values = values_beside_help(param);
    let is_name = end_of_name(&param.help) == param.help.len();
    let separator = if values.is_empty() || help.is_empty() {
        ""
    } else if is_name {
        ", "
    } else {
        "; "
    };
    layout::with_code(&format!("{help}{separator}{}", values.join("; ")))
}

/// The values and the default of a parameter whose help does not name the default. The help of
/// built-in games names both.
fn values_beside_help(param: &ParamInfo) -> Vec<String> {
    let Some(default) = &param.default else { return Vec::new() };
    if param.help.contains("default") {
        return Vec::new();
    }
    let text = value_in_words(param, default);
    let is_shown = !text.is_empty() && text.len() <= MAX_DEFAULT;
    range(param).into_iter().chain(is_shown.then(|| format!("default {text}"))).collect()
}

/// The values that a parameter can have, if they are few words.
fn range(param: &ParamInfo) -> Option<String> {
    let Bounds { least, most, .. } = match &param.kind {
        ParamKind::PerSeat(range) => bounds(&ParamKind::Integer(range.clone())),
        kind => bounds(kind),
    };
    match (&param.kind, least, most) {
        (ParamKind::Choice(choices), ..) => {
            let explains_all =
                choices.iter().all(|choice| param.help.contains(&format!("`{choice}`")));
            (!explains_all).then(|| format!("one of {}", choices.join(", ")))
        }
        (_, Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (_, Some(least), None) => Some(format!("at least {least}")),
        (_, None, Some(most)) => Some(format!("at most {most}")),
        (_, None, None) => None,
    }
}

/// A part of the help as people read it.
fn in_words(param: &ParamInfo, help: &str) -> String {
    match param.kind {
        ParamKind::Duration => with_spaced_units(help),
        _ => help.to_owned(),
    }
}

/// A text whose durations have a no-break space before their unit, unlike in files: `500 ms`.
pub(super) fn with_spaced_units(text: &str) -> String {
    let spaced = |word: &str| {
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        match word.trim_end_matches(['.', ',', ';']).parse::<Micros>() {
            Ok(_) => format!("{}\u{a0}{}", &word[..digits], &word[digits..]),
            Err(_) => word.to_owned(),
        }
    };
    text.split(' ').map(spaced).collect::<Vec<_>>().join(" ")
}

/// Where the name in a help text ends.
fn end_of_name(help: &str) -> usize {
    let before_number = help.match_indices(", ").find(|(comma, separator)| {
        help[comma + separator.len()..].starts_with(|first: char| first.is_ascii_digit())
    });
    let ends = VALUES.iter().filter_map(|separator| help.find(separator));
    ends.chain(before_number.map(|(comma, _)| comma)).min().unwrap_or(help.len())
}

/// An error about a parameter in words. It names the field instead of the key and the place in a
/// tournament file. Other errors stay as they are.
pub(super) fn error(params: &[ParamInfo], error: &str) -> String {
    let in_words = || {
        let (_, cause) = error.split_once("[params] ")?;
        let param = params.iter().find(|param| cause.starts_with(&format!("{} = ", param.key)))?;
        let reason = cause.split_once(&format!(": {} ", param.key)).map(|(_, reason)| reason);
        let problem = reason.map_or_else(
            || format!("cannot be {}", &cause[param.key.len() + " = ".len()..]),
            str::to_owned,
        );
        Some(format!("“{}” {problem}", label(param)))
    };
    in_words().unwrap_or_else(|| error.to_owned())
}

#[cfg(test)]
mod tests {
    use arbiter_games::{Games, Value, param};

    use super::*;

    fn parts(help: &'static str) -> (String, String) {
        let param = param("some_key", ParamKind::Text, help);
        (name(&param), values(&param).into_string())
    }

    #[test]
    fn the_help_of_a_parameter_has_its_name_and_its_values() {
        let expected = [
            ("", "some key", ""),
            (", 1 to 9", "some key", "1 to 9."),
            (": a list", "some key", "A list."),
            ("rounds of a match", "rounds of a match", ""),
            ("how many deals, 1 to 9; default 4", "how many deals", "1 to 9; default 4."),
            ("how many tables, an even number", "how many tables", "An even number."),
            ("the cards: a list, as in 1-9", "the cards", "A list, as in 1-9."),
            ("the time, with the start; default 2s", "the time, with the start", "Default 2s."),
        ];
        for (help, name, values) in expected {
            assert_eq!(parts(help), (name.to_owned(), values.to_owned()), "{help}");
        }
    }

    #[test]
    fn values_and_default_are_shown_if_the_help_lacks_them() {
        let shown = |kind, default: Value, help: &'static str| {
            let param = ParamInfo { default: Some(default), ..param("some_key", kind, help) };
            (values(&param).into_string(), description(&param).into_string())
        };
        let choices = || ParamKind::Choice(vec!["4".into(), "6".into()]);
        let duration = || Value::from("500ms");
        for (texts, expected_values, expected_description) in [
            (
                shown(ParamKind::Integer(4..=20), Value::from(7_i64), "columns of the board"),
                "4 to 20; default 7.",
                "columns of the board, 4 to 20; default 7",
            ),
            (
                shown(ParamKind::PerSeat(1..=i64::MAX), Value::from(3_i64), "dice of a seat"),
                "At least 1; default 3.",
                "dice of a seat, at least 1; default 3",
            ),
            (
                shown(ParamKind::Boolean, Value::Boolean(true), "record pictures for replays"),
                "Default yes.",
                "record pictures for replays, default yes",
            ),
            (
                shown(choices(), Value::from("4"), "columns of the board"),
                "One of 4, 6; default 4.",
                "columns of the board, one of 4, 6; default 4",
            ),
            (
                shown(choices(), Value::from("4"), "columns: `4` for few, `6` for many"),
                "<code>4</code> for few, <code>6</code> for many; default 4.",
                "columns: <code>4</code> for few, <code>6</code> for many; default 4",
            ),
            (
                shown(ParamKind::Duration, duration(), "time of a move"),
                "Default 500\u{a0}ms.",
                "time of a move, default 500\u{a0}ms",
            ),
            (
                shown(ParamKind::Duration, duration(), "time of a move; default 2s"),
                "Default 2\u{a0}s.",
                "time of a move; default 2\u{a0}s",
            ),
        ] {
            assert_eq!(texts, (expected_values.to_owned(), expected_description.to_owned()));
        }
    }

    #[test]
    fn each_parameter_of_a_built_in_game_has_a_name_in_words() {
        for game in Games::built_in().iter() {
            for param in &game.params {
                let name = name(param);
                assert!(name.contains(' ') && name != *param.key, "{game} {}: {name}", param.key);
            }
        }
    }

    #[test]
    fn the_help_writes_the_words_of_a_parameter_as_they_are_typed() {
        for game in Games::built_in().iter() {
            for param in &game.params {
                let choices = match &param.kind {
                    ParamKind::Choice(choices) => choices.as_slice(),
                    _ => &[],
                };
                let boards = game.boards.as_ref().filter(|boards| boards.key == param.key);
                let shipped = boards.map(|boards| boards.shipped.as_slice()).unwrap_or_default();
                let values = values(param).into_string();
                for word in choices.iter().chain(shipped) {
                    let capitalised = layout::label(word);
                    assert!(!values.contains(&capitalised), "{game} {}: {values}", param.key);
                }
            }
        }
    }

    #[test]
    fn an_error_names_the_field() {
        let params = [param("move_limit", ParamKind::Duration, "the time for a reply; default 2s")];
        let expected = [
            (
                "line 4: [params] move_limit = \"0s\": move_limit cannot be 0 s: a bot needs time",
                "“The time for a reply” cannot be 0 s: a bot needs time",
            ),
            ("[params] move_limit = 5: write 2s", "“The time for a reply” cannot be 5: write 2s"),
            ("[params] x = 3: there is no such key", "[params] x = 3: there is no such key"),
            ("name = \"\" is empty", "name = \"\" is empty"),
        ];
        for (text, in_words) in expected {
            assert_eq!(error(&params, text), in_words);
        }
    }
}
