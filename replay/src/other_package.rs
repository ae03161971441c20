//! Records for the tests of a game package. A changed package has another digest, and must still
//! replay the records of its tests.

use serde_json::Value;

/// The digest of a package in a header.
const PACKAGE: &str = "package";
/// The hash of all lines before, in the last line.
const SEAL: &str = "seal";

/// The same record with this digest of the game package, and the seal for it. Returns `None` if the
/// text is not a record of a package, or its seal is wrong because it was edited.
pub fn with_package(record: &str, digest: &str) -> Option<String> {
    let (header, rest) = record.split_once('\n')?;
    let (lines, footer) = match rest.strip_suffix('\n')?.rsplit_once('\n') {
        Some((lines, footer)) => (format!("{lines}\n"), footer),
        None => (String::new(), rest.trim_end_matches('\n')),
    };
    let seal_of = |header: &str| {
        let mut seal = blake3::Hasher::new();
        seal.update(header.as_bytes()).update(b"\n").update(lines.as_bytes());
        seal.finalize().to_string()
    };
    let seal = member(footer, SEAL)?;
    if seal_of(header) != seal {
        return None;
    }
    let written = |key: &str, value: &str| format!("\"{key}\":\"{value}\"");
    let old = written(PACKAGE, &member(header, PACKAGE)?);
    let header = header.replacen(&old, &written(PACKAGE, digest), 1);
    let footer = footer.replacen(&written(SEAL, &seal), &written(SEAL, &seal_of(&header)), 1);
    Some(format!("{header}\n{lines}{footer}\n"))
}

/// A text of a JSON object.
fn member(object: &str, key: &str) -> Option<String> {
    serde_json::from_str::<Value>(object).ok()?.get(key)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seal_follows_the_digest_and_edits_are_refused() {
        let seal = |head: &str| blake3::hash(head.as_bytes()).to_string();
        let record = |digest: &str, line: &str| {
            let head = format!("{{\"record\":1,\"package\":\"{digest}\"}}\n{line}\n");
            format!("{head}{{\"over\":true,\"seal\":\"{}\"}}\n", seal(&head))
        };
        let old = record("aa", "{\"t\":1}");
        assert_eq!(with_package(&old, "bb"), Some(record("bb", "{\"t\":1}")));
        assert_eq!(with_package(&old.replace("\"t\":1", "\"t\":2"), "bb"), None);
        assert_eq!(with_package("{}\n", "bb"), None);
    }
}
