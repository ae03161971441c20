//! Parameters in files and on the command line: the error for an invalid value has its key, the
//! valid values, and a valid example.

use arbiter_games::{Game, Games, ParamInfo, ParamKind, Params, gomoku, wojna};
use serde_json::{Value, json};

/// Parses the parameters of a game with this value for `key`.
fn read(game: &Game, key: &str, value: Value) -> Result<Params, String> {
    let value = Value::Object([(key.to_owned(), value)].into_iter().collect());
    Params::read(game, value).map_err(|error| error.to_string())
}

/// The last example of a message.
fn example(message: &str) -> Option<&str> {
    let (_, example) = message.rsplit_once("as in ")?;
    example.split([';', ',']).next()
}

#[test]
fn every_error_names_the_key_and_gives_an_example() {
    let mut errors = 0;
    for game in Games::built_in().iter() {
        for key in game.param_keys() {
            for value in [
                json!(5),
                json!(-7),
                json!(1.5),
                json!(true),
                json!("nonsense"),
                json!(""),
                json!("5"),
                json!("0ms"),
                json!([]),
                json!(["x"]),
                json!({"a": 1}),
                json!(u64::MAX),
            ] {
                let Err(message) = read(game, key, value.clone()) else { continue };
                errors += 1;
                assert!(message.contains(key), "{game} {key} = {value}: {message}");
                let example = example(&message).unwrap_or_else(|| {
                    panic!("{game} {key} = {value} has an error without an example: {message}")
                });
                let number = example.parse::<i64>().map(Value::from);
                let value = number.unwrap_or_else(|_| example.trim_matches('"').into());
                let outcome = read(game, key, value);
                assert!(outcome.is_ok(), "{game} {key}: {example} of {message}: {outcome:?}");
            }
        }
    }
    assert!(errors > 150, "{errors} values are invalid");
}

#[test]
fn a_number_instead_of_a_text_gets_an_example() {
    for (game, key, expected) in [
        (
            wojna::game(),
            "deck",
            "deck cannot be 5: write a text of cards v or ranges a-b, with *n for n of each, \
             separated by commas, as in 1-13*8",
        ),
        (
            wojna::game(),
            "clock",
            "clock cannot be 5: write a text T/M/t/m, T ms for the first M moves and t ms for each \
             m moves more, as in 30000/1000/3000/100",
        ),
        (
            gomoku::game(),
            "move_limit",
            "move_limit cannot be 5: write a whole number and a unit, as in 500ms",
        ),
    ] {
        assert_eq!(read(&game, key, json!(5)).unwrap_err(), expected);
    }
    let deals = "deals cannot be `abc`: write a whole number from 1 to 10000, as in 40";
    assert_eq!(read(&wojna::game(), "deals", json!("abc")).unwrap_err(), deals);
}

/// The descriptor of a parameter agrees with the parser of its game.
#[test]
fn descriptors_agree_with_the_parser() {
    for game in Games::built_in().iter() {
        let official = Params::official(game).values();
        assert!(official.iter().all(|(key, _)| game.param_keys().contains(&key)), "{game}");
        for ParamInfo { key, kind, default, help } in &game.params {
            assert!(!help.is_empty(), "{game} {key}");
            assert_eq!(official.get(key), default.as_ref(), "{game} {key}");
            let reads = |value: Value| read(game, key, value).is_ok();
            match kind {
                ParamKind::Integer(bounds) | ParamKind::PerSeat(bounds) => {
                    let least = *bounds.start();
                    let most = *bounds.end();
                    assert!(reads(json!(least)) && reads(json!(most)), "{game} {key}");
                    assert!(!reads(json!(least - 1)) && !reads(json!(most + 1)), "{game} {key}");
                }
                ParamKind::Choice(choices) => {
                    assert!(choices.iter().all(|choice| reads(json!(choice))), "{game} {key}");
                    assert!(!reads(json!("another")), "{game} {key}");
                }
                ParamKind::Duration => assert!(reads(json!("3s")) && !reads(json!(3)), "{key}"),
                ParamKind::Text => assert!(!reads(json!(true)), "{game} {key}"),
                ParamKind::Boolean => assert!(reads(json!(true)) && !reads(json!(1)), "{key}"),
                ParamKind::Number(bounds) => assert!(reads(json!(*bounds.start())), "{key}"),
            }
        }
        for (key, _) in &game.trial {
            assert!(game.param_keys().contains(&key.as_ref()), "{game} {key}");
        }
    }
}
