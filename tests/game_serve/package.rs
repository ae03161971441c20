//! A built-in game as a package: its descriptor, and a copy of `arbiter` as its rules.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arbiter_games::{EpisodeInfo, Framing, Game, ParamInfo, ParamKind, Protocol, Value};
use arbiter_worker::package::Package;
use arbiter_worker::sandbox::Host;
use arbiter_worker::seat::StopSignal;

/// Writes the package of a built-in game into the new folder `path`, and loads it.
pub(crate) fn load(game: &Game, path: &Path, host: &Arc<Host>, stop: &Arc<StopSignal>) -> Game {
    fs::create_dir(path).unwrap();
    fs::write(path.join("game.toml"), descriptor(game)).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_arbiter"), path.join("arbiter")).unwrap();
    let package = Package::load(path).unwrap();
    Game::new(package.game(host, stop).unwrap())
}

/// The descriptor. The clock does not matter: built-in games keep their own.
fn descriptor(game: &Game) -> String {
    let least = game.seats.start();
    let most = game.seats.end();
    let columns: Vec<_> = game.columns.iter().map(AsRef::as_ref).map(quoted).collect();
    let columns = columns.join(", ");
    let framing = match game.bots.framing {
        Framing::Gtp => "gtp",
        _ => "line",
    };
    let protocol = match game.bots.protocol {
        Protocol::Exec => "exec",
        _ => "stdio",
    };
    let mut text = format!(
        "name = \"{game}-served\"\ntitle = \"{game}\"\nversion = \"1\"\n\
         seats = [{least}, {most}]\nscore = [{columns}]\n\
         rules = {{ run = [\"./arbiter\", \"game\", \"serve\", \"{game}\"] }}\n\
         [bot]\nprotocol = \"{protocol}\"\nframing = \"{framing}\"\narguments = true\n"
    );
    if let Some(episodes) = &game.episodes {
        let EpisodeInfo { rounds_param, min_score, column, official_rounds: _ } = episodes;
        // Only blackjack has episodes.
        write!(
            text,
            "[episodes]\nrounds = \"{rounds_param}\"\nscore = \"chips\"\n\
             bad_answers = \"bad_answers\"\nleast = {min_score}\ncolumn = \"{column}\"\n"
        )
        .unwrap();
    }
    // A parameter without a default is left to the game.
    for param in game.params.iter().filter(|param| param.default.is_some()) {
        write!(text, "[params.{}]\n{}help = \"a parameter\"\n", param.key, kind(param)).unwrap();
    }
    text
}

/// The lines of a parameter's type, default and bounds.
fn kind(param: &ParamInfo) -> String {
    let default = match param.default.as_ref().unwrap() {
        Value::Text(text) => quoted(text),
        other => other.to_string(),
    };
    match &param.kind {
        ParamKind::Integer(range) => {
            let min = range.start();
            let max = range.end();
            format!("type = \"integer\"\ndefault = {default}\nmin = {min}\nmax = {max}\n")
        }
        ParamKind::Choice(choices) => {
            let choices: Vec<_> = choices.iter().map(AsRef::as_ref).map(quoted).collect();
            let choices = choices.join(", ");
            format!("type = \"choice\"\ndefault = {default}\nchoices = [{choices}]\n")
        }
        ParamKind::Duration => format!("type = \"duration\"\ndefault = {default}\n"),
        ParamKind::Text => format!("type = \"text\"\ndefault = {default}\n"),
        ParamKind::PerSeat(range) => {
            format!("type = \"per_seat\"\ndefault = {default}\nmin = {}\n", range.start())
        }
        other => unreachable!("no built-in game has a parameter of {other:?}"),
    }
}

/// A text of TOML.
fn quoted(text: &str) -> String {
    format!("'{text}'")
}
