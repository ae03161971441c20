//! Parameters of games in words, for people who have not seen a tournament file.

use arbiter_games::ParamInfo;
use maud::{Markup, html};

use super::layout;

/// What begins the part of a help text that is about values.
const VALUES: [&str; 6] = [": ", "; ", ", as ", ", an ", ", a ", ", one "];

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
    let rest = param.help[end_of_name(&param.help)..].trim_start_matches([':', ';', ',', ' ']);
    html! { @if !rest.is_empty() { (layout::sentence(rest)) } }
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
    use arbiter_games::{Games, ParamKind, param};

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
