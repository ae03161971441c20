//! Parameters from `--set KEY=VALUE`.

use std::fs;

use arbiter_games::{BoardInfo, Game, Params, Values};
use toml::{Table, Value};

use crate::failure::Failure;

/// Reads the parameters of `game` from `settings`, and those that are not set from `others`. Where
/// a parameter says how many seats a table has, it follows the number of bots, if that is known,
/// unless it is set.
///
/// # Errors
/// On a setting that is not `KEY=VALUE`, an unknown key, or a value that means nothing.
pub(crate) fn params(
    game: &Game,
    settings: &[String],
    others: Option<&Values>,
    bots: Option<usize>,
) -> Result<Params, Failure> {
    let mut table = Table::new();
    for setting in settings {
        let (key, value) = setting
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("--set {setting}: write KEY=VALUE")))?;
        let value = match game.boards.as_ref().filter(|boards| boards.key == key) {
            Some(boards) => Value::String(board(boards, value)?),
            None => parse(value),
        };
        if table.insert(key.to_owned(), value).is_some() {
            return Err(Failure::usage(format!("--set {key} is given twice; keep one of them")));
        }
    }
    for (key, value) in others.into_iter().flat_map(Values::iter) {
        let value = Value::try_from(value).expect("TOML has every value of a parameter");
        table.entry(key).or_insert(value);
    }
    let bots = bots.filter(|bots| game.seats.contains(bots));
    if let Some((key, bots)) = game.seats_param.as_deref().zip(bots) {
        let bots = i64::try_from(bots).expect("tables are small");
        table.entry(key).or_insert(Value::Integer(bots));
    }
    Params::read(game, Value::Table(table)).map_err(|error| {
        let cause = error.message().replace('\n', " ");
        Failure::usage(format!(
            "--set: {game}: {cause}; its parameters are {} (see arbiter play --help)",
            game.param_keys().join(", ")
        ))
    })
}

/// A number, a list and so on as in TOML; anything else is text.
fn parse(value: &str) -> Value {
    let table: Result<Table, _> = toml::from_str(&format!("value = {value}"));
    let parsed = table.ok().and_then(|mut table| table.remove("value"));
    parsed.unwrap_or_else(|| Value::String(value.to_owned()))
}

/// The board that a name or a path stands for: a shipped name as it is, a file's contents.
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
