//! Values of a package's parameters, checked by their descriptors.

use arbiter_games::{Micros, ParamInfo, ParamKind, Text, Value};

/// Checks a value and returns it in its normal form.
///
/// # Errors
/// Which values are valid, with an example.
pub(crate) fn check(param: &ParamInfo, value: &Value) -> Result<Value, String> {
    let valid = match (&param.kind, value) {
        (ParamKind::Integer(range), Value::Integer(number)) => {
            i64::try_from(*number).ok().filter(|number| range.contains(number)).map(Value::from)
        }
        (ParamKind::Number(range), Value::Integer(_) | Value::Number(_)) => {
            number(value).filter(|number| range.contains(number)).map(Value::Number)
        }
        (ParamKind::Boolean, Value::Boolean(_)) | (ParamKind::Text, Value::Text(_)) => {
            Some(value.clone())
        }
        (ParamKind::Choice(choices), Value::Text(text)) => choice(choices, text),
        // The command line reads a choice such as 8 as a number.
        (ParamKind::Choice(choices), Value::Integer(number)) => {
            choice(choices, &number.to_string())
        }
        (ParamKind::Duration, Value::Text(text)) => {
            let time = text.parse::<Micros>().ok().filter(|time| *time > Micros::ZERO);
            time.map(Value::text)
        }
        _ => None,
    };
    valid.ok_or_else(|| format!("{} cannot be {value}: write {}", param.key, describe(&param.kind)))
}

fn choice(choices: &[Text], text: &str) -> Option<Value> {
    choices.iter().any(|choice| choice == text).then(|| Value::text(text))
}

fn number(value: &Value) -> Option<f64> {
    match value {
        #[expect(clippy::cast_precision_loss, reason = "the parameter is a floating-point number")]
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number).filter(|number| number.is_finite()),
        _ => None,
    }
}

/// Describes the valid values, with an example.
pub(crate) fn describe(kind: &ParamKind) -> String {
    match kind {
        ParamKind::Integer(range) => {
            let least = range.start();
            let most = range.end();
            format!("a whole number from {least} to {most}, as in {least}")
        }
        ParamKind::Number(range) => {
            let least = range.start();
            let most = range.end();
            format!("a number from {least} to {most}, as in {least}")
        }
        ParamKind::Boolean => "true or false".to_owned(),
        ParamKind::Text => "a text in quotation marks".to_owned(),
        ParamKind::Choice(choices) => format!("one of {}", choices.join(", ")),
        ParamKind::Duration => "a duration, as in 500ms or 2min".to_owned(),
        ParamKind::PerSeat(_) => "a whole number, or one for each seat".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_may_look_like_numbers() {
        let kind = ParamKind::Choice(vec!["6".into(), "8".into()]);
        let size = ParamInfo { key: "size".into(), kind, default: None, help: "squares".into() };
        for value in [Value::from(8_i64), Value::from("8")] {
            assert_eq!(check(&size, &value), Ok(Value::from("8")));
        }
        let error = check(&size, &Value::from(7_i64)).unwrap_err();
        assert_eq!(error, "size cannot be 7: write one of 6, 8");
    }
}
