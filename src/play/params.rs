//! Parameters from `--set KEY=VALUE`.

use std::fs;

use arbiter_games::{BoardInfo, Game, Params, Values};
use toml::{Table, Value};

use crate::failure::Failure;

/// Parses the parameters of `game` from `settings`, with `defaults` for those that are not set. A
/// parameter for the number of seats defaults to the number of bots.
///
/// # Errors
/// If a setting is not `KEY=VALUE`, or has an unknown key or an invalid value.
pub(crate) fn parse(
    game: &Game,
    settings: &[String],
    defaults: Option<&Values>,
    bots: Option<usize>,
) -> Result<Params, Failure> {
    let mut table = Table::new();
    for setting in settings {
        let (key, value) = setting
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("--set {setting}: write KEY=VALUE")))?;
        let value = match game.boards.as_ref().filter(|boards| boards.key == key) {
            Some(boards) => Value::String(board(boards, value)?),
            None => parse_value(value),
        };
        if table.insert(key.to_owned(), value).is_some() {
            return Err(Failure::usage(format!("--set {key} is given twice; remove one")));
        }
    }
    for (key, value) in defaults.into_iter().flat_map(Values::iter) {
        let value = Value::try_from(value).expect("TOML has every value of a parameter");
        table.entry(key).or_insert(value);
    }
    let bots = bots.filter(|bots| game.seats.contains(bots));
    if let Some((key, bots)) = game.seats_param.as_deref().zip(bots) {
        let bots = i64::try_from(bots).expect("tables are small");
        table.entry(key).or_insert(Value::Integer(bots));
    }
    let keys = game.param_keys();
    if let Some(unknown) = table.keys().find(|key| !keys.contains(&key.as_str())) {
        return Err(Failure::usage(match &*keys {
            [] => format!("--set {unknown}: {game} has no parameters"),
            keys => {
                let keys = keys.join(", ");
                format!("--set {unknown}: {game} has no such parameter; its parameters are {keys}")
            }
        }));
    }
    Params::read(game, Value::Table(table)).map_err(|error| {
        let cause = error.message().replace('\n', " ");
        Failure::usage(format!("--set: {game}: {cause}"))
    })
}

/// Parses a TOML value; anything else is a string.
fn parse_value(value: &str) -> Value {
    let table: Result<Table, _> = toml::from_str(&format!("value = {value}"));
    let parsed = table.ok().and_then(|mut table| table.remove("value"));
    parsed.unwrap_or_else(|| Value::String(value.to_owned()))
}

/// Resolves a board: the name of a shipped board, or the contents of a file.
fn board(boards: &BoardInfo, value: &str) -> Result<String, Failure> {
    if boards.shipped.iter().any(|name| name == value) {
        return Ok(value.to_owned());
    }
    fs::read_to_string(value).map_err(|error| {
        Failure::usage(format!(
            "--set {}={value}: neither a shipped board ({}) nor a readable file: {error}",
            boards.key,
            boards.shipped.join(", ")
        ))
    })
}
