//! Values of a package's parameters, checked by their descriptors.

use std::ops::RangeInclusive;

use arbiter_games::{MAX_SEATS, Micros, ParamInfo, ParamKind, Text, Value};

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
        (ParamKind::PerSeat(range), value) => per_seat(range, value),
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

/// A whole number, or a list of one for each seat; also as text, as in "120,0,305".
fn per_seat(range: &RangeInclusive<i64>, value: &Value) -> Option<Value> {
    let in_range =
        |number: &i128| i64::try_from(*number).is_ok_and(|number| range.contains(&number));
    let numbers: Vec<i128> = match value {
        Value::Text(text) => {
            text.split(',').map(|number| number.trim().parse().ok()).collect::<Option<_>>()?
        }
        Value::List(list) => list.iter().map(Value::as_integer).collect::<Option<_>>()?,
        value => vec![value.as_integer()?],
    };
    let is_list = matches!(value, Value::List(_));
    match &numbers[..] {
        numbers if !numbers.iter().all(in_range) => None,
        [number] if !is_list => Some(Value::Integer(*number)),
        numbers if (1..=usize::from(MAX_SEATS)).contains(&numbers.len()) => {
            Some(Value::List(numbers.iter().copied().map(Value::Integer).collect()))
        }
        _ => None,
    }
}

/// The value at a table of this many seats: a list with a number for each seat where seats may
/// differ.
///
/// # Errors
/// If the value is for a table of another size.
pub(crate) fn at_table(param: &ParamInfo, value: &Value, seats: usize) -> Result<Value, String> {
    match (&param.kind, value) {
        (ParamKind::PerSeat(_), Value::List(list)) if list.len() != seats => Err(format!(
            "{} has {} numbers, and this table has {seats} seats",
            param.key,
            list.len()
        )),
        (ParamKind::PerSeat(_), Value::Integer(_)) => Ok(Value::List(vec![value.clone(); seats])),
        _ => Ok(value.clone()),
    }
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
        ParamKind::PerSeat(range) => {
            let least = match *range.start() {
                i64::MIN => String::new(),
                least => format!(" from {least}"),
            };
            let most = match *range.end() {
                i64::MAX => String::new(),
                most => format!(" up to {most}"),
            };
            format!("a whole number{least}{most}, or one for each seat, as in 120,80")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_may_have_different_numbers() {
        let kind = ParamKind::PerSeat(0..=500);
        let chips = ParamInfo { key: "chips".into(), kind, default: None, help: "chips".into() };
        let list = Value::List([120_i64, 0, 305].map(Value::from).into());
        assert_eq!(check(&chips, &Value::from("120, 0,305")).as_ref(), Ok(&list));
        assert_eq!(check(&chips, &list).as_ref(), Ok(&list));
        assert_eq!(check(&chips, &Value::from("20")), Ok(Value::from(20_i64)));
        for wrong in [Value::from("1,2,501"), Value::from("1,,2"), Value::List(Vec::new())] {
            let error = check(&chips, &wrong).unwrap_err();
            let remedy =
                "write a whole number from 0 up to 500, or one for each seat, as in 120,80";
            assert!(error.ends_with(remedy), "{wrong:?}: {error}");
        }
        let same = Value::List(vec![Value::from(7_i64); 2]);
        assert_eq!(at_table(&chips, &Value::from(7_i64), 2), Ok(same));
        let error = "chips has 3 numbers, and this table has 2 seats";
        assert_eq!(at_table(&chips, &list, 2), Err(error.to_owned()));
    }

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
