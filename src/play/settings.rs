//! Parameters from `--set KEY=VALUE`.

use std::fs;

use arbiter_games::{GameName, Params};
use toml::{Table, Value};

use crate::cli::Failure;

/// Reads the parameters of `game` from `settings`; for wojna the number of seats follows the
/// number of bots where it is not set.
///
/// # Errors
/// On a setting that is not `KEY=VALUE`, an unknown key, or a value that means nothing.
pub(crate) fn params(game: GameName, settings: &[String], bots: usize) -> Result<Params, Failure> {
    let mut table = Table::new();
    for setting in settings {
        let (key, value) = setting
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("--set {setting}: write KEY=VALUE")))?;
        let value = if game == GameName::Bitwa && key == "board" {
            Value::String(board(value)?)
        } else {
            parse(value)
        };
        if table.insert(key.to_owned(), value).is_some() {
            return Err(Failure::usage(format!("--set {key} is given twice; keep one of them")));
        }
    }
    if game == GameName::Wojna && (2..=4).contains(&bots) && !table.contains_key("seats") {
        table.insert("seats".to_owned(), Value::Integer(i64::try_from(bots).unwrap_or(4)));
    }
    Params::read(game, Value::Table(table)).map_err(|error| {
        let cause = error.message().replace('\n', " ");
        let known: Vec<_> = game.parameters().iter().map(|(name, _)| *name).collect();
        Failure::usage(format!(
            "--set: {game}: {cause}; its parameters are {} (see arbiter play --help)",
            known.join(", ")
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
fn board(value: &str) -> Result<String, Failure> {
    if arbiter_games::bitwa::shipped_boards().any(|(name, _)| name == value) {
        return Ok(value.to_owned());
    }
    fs::read_to_string(value).map_err(|error| {
        let shipped: Vec<_> =
            arbiter_games::bitwa::shipped_boards().map(|(name, _)| name).collect();
        Failure::usage(format!(
            "--set board={value}: neither a shipped board ({}) nor a readable file: {error}",
            shipped.join(", ")
        ))
    })
}
