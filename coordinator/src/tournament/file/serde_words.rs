//! The errors of serde in the words of people who write tournament files.

use std::ops::RangeInclusive;

use super::toml_tree::MAX_VALUE_LEN;

/// A cause that says what to write, instead of serde's names of types. Other causes stay as they
/// are.
pub(super) fn in_words(cause: String) -> String {
    let reworded = unknown_word(&cause).or_else(|| wrong_type(&cause)).or_else(|| missing(&cause));
    reworded.unwrap_or(cause)
}

/// A word that is none of the possible ones.
fn unknown_word(cause: &str) -> Option<String> {
    let (found, expected) = cause.strip_prefix("unknown variant `")?.rsplit_once("`, expected ")?;
    // The words stand between backticks.
    let words: Vec<_> =
        expected.split('`').skip(1).step_by(2).map(|word| format!("\"{word}\"")).collect();
    let alternatives = match words.split_last()? {
        (last, []) => last.clone(),
        (last, most) => format!("{} or {last}", most.join(", ")),
    };
    Some(format!("write {alternatives}{}", instead_of(&format!("\"{found}\""))))
}

/// A value of another type, or a number that its type does not have.
fn wrong_type(cause: &str) -> Option<String> {
    let is_number = cause.starts_with("invalid value: integer");
    let rest = cause.strip_prefix("invalid type: ").or(cause.strip_prefix("invalid value: "))?;
    let (found, expected) = rest.rsplit_once(", expected ")?;
    let end = value(found).map(instead_of).unwrap_or_default();
    let words = match expected {
        "a string" | "string or map" => "a text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list, as in [\"a\", \"b\"]",
        "f32" | "f64" => "a number",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        number => match unsigned(number) {
            Some(range) if is_number => {
                let (least, most) = range.into_inner();
                return Some(format!("write a whole number from {least} to {most}{end}"));
            }
            Some(_) => "a whole number",
            // The reader of a single key describes its values in words.
            None => return Some(format!("write {expected}")),
        },
    };
    Some(format!("write {words}{end}"))
}

/// A key that is needed.
fn missing(cause: &str) -> Option<String> {
    let key = cause.strip_prefix("missing field `")?.strip_suffix('`')?;
    Some(format!("{key} is missing; add a line {key} = …"))
}

/// The values of an unsigned type.
fn unsigned(name: &str) -> Option<RangeInclusive<u64>> {
    let (least, plain) = match name.strip_prefix("a nonzero ") {
        Some(plain) => (1, plain),
        None => (0, name),
    };
    let most: u64 = match plain {
        "u8" => u8::MAX.into(),
        "u16" => u16::MAX.into(),
        "u32" => u32::MAX.into(),
        "u64" | "usize" => u64::MAX,
        _ => return None,
    };
    Some(least..=most)
}

/// A value as the file has it, from serde's description.
fn value(description: &str) -> Option<&str> {
    match description {
        "sequence" => Some("a list"),
        "map" => Some("a table"),
        _ => description.strip_prefix("string ").or_else(|| {
            // Such as: integer `5`.
            description.split_once('`')?.1.strip_suffix('`')
        }),
    }
}

/// The end of a sentence about what to write instead of a value.
fn instead_of(value: &str) -> String {
    if value.chars().count() > MAX_VALUE_LEN { String::new() } else { format!(", not {value}") }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU8;

    use serde::Deserialize;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum One {
        Alone,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Three {
        First,
        Second,
        Third,
    }

    #[derive(Debug, Deserialize)]
    struct Needs {
        #[expect(dead_code, reason = "only its absence matters")]
        panel: u32,
    }

    fn error<T: DeserializeOwned + std::fmt::Debug>(value: Value) -> String {
        in_words(serde_json::from_value::<T>(value).unwrap_err().to_string())
    }

    #[test]
    fn a_value_of_another_type_gets_what_to_write() {
        assert_eq!(error::<u32>(json!("abc")), "write a whole number, not \"abc\"");
        assert_eq!(error::<u32>(json!(1.5)), "write a whole number, not 1.5");
        assert_eq!(error::<i64>(json!(true)), "write a whole number, not true");
        assert_eq!(error::<u32>(json!([1])), "write a whole number, not a list");
        assert_eq!(error::<u32>(json!({"a": 1})), "write a whole number, not a table");
        assert_eq!(error::<u32>(json!(null)), "write a whole number");
        assert_eq!(error::<u32>(json!("x".repeat(100))), "write a whole number");
        assert_eq!(error::<u8>(json!(-1)), "write a whole number from 0 to 255, not -1");
        assert_eq!(error::<u16>(json!(70_000)), "write a whole number from 0 to 65535, not 70000");
        assert_eq!(error::<NonZeroU8>(json!(0)), "write a whole number from 1 to 255, not 0");
        assert_eq!(error::<bool>(json!("yes")), "write true or false, not \"yes\"");
        assert_eq!(error::<String>(json!(5)), "write a text in quotes, not 5");
        assert_eq!(error::<Three>(json!(5)), "write a text in quotes, not 5");
        assert_eq!(
            error::<Vec<String>>(json!("a, expected b")),
            "write a list, as in [\"a\", \"b\"], not \"a, expected b\""
        );
    }

    #[test]
    fn an_unknown_word_gets_the_possible_ones() {
        assert_eq!(
            error::<Three>(json!("all")),
            "write \"first\", \"second\" or \"third\", not \"all\""
        );
        assert_eq!(error::<One>(json!("all")), "write \"alone\", not \"all\"");
    }

    #[test]
    fn a_missing_key_is_named() {
        assert_eq!(error::<Needs>(json!({})), "panel is missing; add a line panel = …");
    }

    #[test]
    fn other_causes_stay_as_they_are() {
        for cause in ["write 0 to 100", "it is missing; every tournament has one", ""] {
            assert_eq!(in_words(cause.to_owned()), cause);
        }
    }
}
