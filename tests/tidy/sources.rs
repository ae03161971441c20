//! The files of the workspace, and Rust code without its comments.

use std::fs;
use std::path::{Path, PathBuf};

/// Every Rust file below the crates' folders, with its text.
pub(crate) fn sources() -> Vec<(PathBuf, String)> {
    let paths = files(|path| path.extension().is_some_and(|extension| extension == "rs"));
    assert!(paths.len() > 40, "the sources are found");
    paths
}

/// The files of the workspace that `chosen` takes by their path from its root, with their texts.
pub(crate) fn files(chosen: impl Fn(&Path) -> bool) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.to_owned()];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let relative = path.strip_prefix(root).unwrap().to_owned();
            let skipped = ["target", ".git", "node_modules", "__pycache__"];
            if path.is_dir() && !skipped.iter().any(|name| relative.ends_with(name)) {
                folders.push(path);
            } else if path.is_file() && chosen(&relative) {
                let text = fs::read_to_string(&path).unwrap();
                paths.push((relative, text));
            }
        }
    }
    paths.sort();
    paths
}

/// The text without its comments, and the contents of its string literals.
pub(crate) fn code_and_literals(text: &str) -> (String, Vec<String>) {
    let mut code = String::new();
    let mut literals = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let raw = rest.strip_prefix('r').map(|rest| rest.trim_start_matches('#'));
        let raw = raw.filter(|raw| raw.starts_with('"') && !code.ends_with(char::is_alphanumeric));
        if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if let Some(quoted) = raw {
            let end = format!("\"{}", "#".repeat(rest.len() - quoted.len() - 1));
            let (literal, behind) = quoted[1..].split_once(&end).unwrap_or((&quoted[1..], ""));
            literals.push(literal.to_owned());
            rest = behind;
        } else if let Some(quote) =
            ["'\"'", "'\\\"'"].iter().find(|quote| rest.starts_with(**quote))
        {
            rest = &rest[quote.len()..];
        } else if c == '"' {
            let mut escaped = false;
            let ends = |c: char| {
                let end = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                end
            };
            let end = rest[1..].find(ends).map_or(rest.len(), |end| end + 1);
            literals.push(rest[1..end].to_owned());
            rest = rest.get(end + 1..).unwrap_or_default();
        } else {
            code.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    (code, literals)
}

/// The words of a code.
pub(crate) fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}
