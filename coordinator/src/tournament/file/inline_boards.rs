//! Replaces the paths of boards with their contents.

use std::io;

use arbiter_games::{BoardInfo, Games, Params};
use serde_json::json;
use toml::Spanned;
use toml::de::DeValue;

use super::FileError;
use super::game_defaults::{OFFICIAL, board};
use super::toml_tree::{line, table};

/// See [`super::TournamentFile::inline`].
pub(super) fn inline(
    games: &Games,
    text: &str,
    read: impl Fn(&str) -> io::Result<String>,
) -> Result<String, FileError> {
    let table = table(text)?;
    let name = table.get_ref().get("game").and_then(|name| name.get_ref().as_str());
    let game = name.and_then(|name| games.find(name).ok());
    // Parsing the file reports errors of the game.
    let Some(game) = game else { return Ok(text.to_owned()) };
    let Some(info) = &game.boards else { return Ok(text.to_owned()) };
    let find_key = |section: &str, key: &str| {
        let section = table.get_ref().get(section)?.get_ref();
        section.as_table()?.get(key)
    };
    let common_board = find_key("params", &info.key).map(|board| ("[params] board", board));
    let listed_boards =
        find_key("schedule", "boards").into_iter().flat_map(|boards| match boards.get_ref() {
            DeValue::Array(boards) => boards.iter().collect(),
            _ => vec![boards],
        });
    let all_boards =
        common_board.into_iter().chain(listed_boards.map(|board| ("[schedule] boards", board)));
    let mut inlined = text.to_owned();
    let mut boards: Vec<_> = all_boards.filter(|(_, board)| path(info, board).is_some()).collect();
    // Boards are replaced from the end to the start, so that the other positions stay valid.
    boards.sort_by_key(|(_, board)| std::cmp::Reverse(board.span().start));
    for (key, board) in boards {
        let path = path(info, board).expect("boards without a path were left out");
        let blame = |cause| FileError {
            line: Some(line(text, &board.span())),
            what: format!("{key}: {path}"),
            cause,
        };
        let contents = read(path).map_err(|error| {
            let names = info.shipped.join(", ");
            blame(format!("neither a shipped board ({names}) nor a readable file: {error}"))
        })?;
        let notation = self::board(&Params::official(&game), info, &json!(contents))
            .map_err(|error| blame(error.to_string()))?;
        inlined.replace_range(board.span(), &toml::Value::String(notation).to_string());
    }
    Ok(inlined)
}

/// The path of a board in the file. None if the board is a name or in the notation of the game,
/// which begins with a number or a comment.
fn path<'a>(info: &BoardInfo, board: &'a Spanned<DeValue<'_>>) -> Option<&'a str> {
    let text = board.get_ref().as_str()?;
    let is_name = text == OFFICIAL || info.shipped.iter().any(|name| name == text);
    let begins_like_notation =
        text.trim_start().starts_with(|first: char| first == ';' || first.is_ascii_digit());
    let is_notation = begins_like_notation && text.split_whitespace().count() > 1;
    (!(is_name || is_notation || text.is_empty())).then_some(text)
}
