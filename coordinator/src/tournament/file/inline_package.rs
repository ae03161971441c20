//! Replaces the path of a game package with the package.

use arbiter_proto::settings::GamePackage;
use toml::Value;

use super::FileError;
use super::toml_tree::table;

/// See [`super::TournamentFile::inline_package`].
pub(super) fn inline(
    text: &str,
    load: impl FnOnce(&str) -> Option<(String, GamePackage)>,
) -> Result<String, FileError> {
    let table = table(text)?;
    let Some(game) = table.get_ref().get("game") else { return Ok(text.to_owned()) };
    // Parsing the file reports other errors of the game.
    let Some(path) = game.get_ref().as_str() else { return Ok(text.to_owned()) };
    let Some((name, package)) = load(path) else { return Ok(text.to_owned()) };
    let GamePackage { bundle, digest, descriptor } = package;
    let mut inlined = text.to_owned();
    inlined.replace_range(game.span(), &Value::String(name).to_string());
    let descriptor = Value::String(descriptor);
    Ok(format!(
        "{inlined}\n\n[package]\nbundle = \"{bundle}\"\ndigest = \"{digest}\"\n\
         descriptor = {descriptor}\n"
    ))
}
