//! Plain language: phrases that the project does without, one `let` for each name, no empty
//! `# Errors`, and documents and comments that wrap at 100 columns.

use std::path::{Path, PathBuf};

use crate::sources::{code_and_literals, files, sources};

/// Phrases that a plain sentence does without.
const PHRASES: [&str; 6] =
    ["whoever", "nobody", "somebody", "one's own", "of its own", "what is not"];

/// Files that may have such a phrase, and why.
const EXCEPTIONS: [(&str, &str, &str); 4] = [
    ("coordinator/src/postgres.rs", "nobody", "the user of this name"),
    ("scripts/nightly", "nobody", "the user of this name"),
    ("scripts/run-tests", "nobody", "the user of this name"),
    ("tests/tidy/prose.rs", "", "it names the phrases"),
];

/// Longest line of a document, in characters.
const WIDTH: usize = 100;

/// The phrases in a text that stand there as words of a sentence, with the numbers of their lines.
fn phrases(text: &str) -> Vec<(usize, &'static str)> {
    let stands = |line: &str, phrase: &str| {
        line.match_indices(phrase).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + phrase.len()..].chars().next();
            before.is_none_or(|c| " (_\"/*#>".contains(c))
                && after.is_none_or(|c| " .,;!?)'_".contains(c))
        })
    };
    let lines = text.lines().map(str::to_lowercase).enumerate();
    lines
        .flat_map(|(number, line)| {
            let matches = PHRASES.into_iter().filter(|phrase| stands(&line, phrase));
            matches.map(|phrase| (number + 1, phrase)).collect::<Vec<_>>()
        })
        .collect()
}

/// Where the bracket ends that `code` begins with.
fn bracket_end(code: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 1 => return Some(at + 1),
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The statements of a text that pack several `let` into one: `let (a, b) = (1, 2);`.
fn packed_lets(text: &str) -> Vec<String> {
    let (code, _) = code_and_literals(text);
    let code = ["'('", "')'", "'['", "']'", "'{'", "'}'"]
        .iter()
        .fold(code, |code, literal| code.replace(literal, "' '"));
    let packed = |at: usize| {
        let before = code[..at].trim_end();
        if ["if", "while", "&&"].iter().any(|word| before.ends_with(word)) {
            return None;
        }
        let pattern = at + "let ".len();
        let behind = pattern + bracket_end(&code[pattern..])?;
        let value = behind + code[behind..].find('=')? + 1;
        let value = value + (code[value..].len() - code[value..].trim_start().len());
        let typed = code[behind..value].trim_start();
        if !(typed.starts_with('=') || typed.starts_with(": (")) || !code[value..].starts_with('(')
        {
            return None;
        }
        let end = value + bracket_end(&code[value..])?;
        code[end..].trim_start().starts_with(';').then(|| code[at..end].to_owned())
    };
    code.match_indices("let (").filter_map(|(at, _)| packed(at)).collect()
}

/// The lines of a text where a section on errors says no more than that there are some.
fn empty_errors(text: &str) -> Vec<usize> {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let sections = lines.iter().enumerate().filter(|(_, line)| line.ends_with("/// # Errors"));
    let says_nothing = |number: usize| {
        let body = lines[number + 1..].iter().map_while(|line| line.strip_prefix("///"));
        let body: Vec<_> = body.map(str::trim).filter(|line| !line.is_empty()).collect();
        let body = body.join(" ");
        ["If the database fails.", "If it fails.", "If this fails.", ""].contains(&body.as_str())
    };
    sections.map(|(number, _)| number + 1).filter(|number| says_nothing(number - 1)).collect()
}

/// The lines of a document, outside of its examples, that are wider than they may be.
fn wide_lines(text: &str) -> Vec<usize> {
    let mut in_example = false;
    let mut wide = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            in_example = !in_example;
        } else if !in_example && line.chars().count() > WIDTH {
            wide.push(number + 1);
        }
    }
    wide
}

/// The comments of a source, line by line; other lines are empty.
fn comments(source: &str) -> String {
    let comment = |line: &str| {
        let text = line.trim_start();
        match text.trim_start_matches(['/', '!']).trim_start() {
            _ if !text.starts_with("//") => String::new(),
            fence if fence.starts_with("```") => fence.to_owned(),
            _ => line.to_owned(),
        }
    };
    source.lines().map(|line| comment(line).trim_end().to_owned() + "\n").collect()
}

/// Whether a file holds prose or code of ours: not a picture, a record or a list of versions.
fn is_prose(path: &Path) -> bool {
    let kinds = ["css", "js", "md", "proto", "py", "rs", "service", "sh", "sql", "toml", "yaml"];
    match path.extension() {
        Some(extension) => kinds.iter().any(|kind| extension == *kind),
        None => path.starts_with("scripts") || path.starts_with(".ci") || path == Path::new("test"),
    }
}

#[test]
fn prose_is_plain() {
    let mut wrong = Vec::new();
    for (path, text) in files(is_prose) {
        let may = |phrase: &str| {
            let mut exceptions = EXCEPTIONS.iter();
            exceptions.any(|(file, one, _)| path == Path::new(file) && phrase.contains(one))
        };
        for (line, phrase) in phrases(&text) {
            if !may(phrase) {
                wrong.push(format!("{}:{line}: \"{phrase}\": say who or what", path.display()));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn each_let_binds_one_name() {
    let packed = |(path, text): (PathBuf, String)| {
        let place = path.display().to_string();
        packed_lets(&text).into_iter().map(move |code| format!("{place}: {code}"))
    };
    assert_eq!(sources().into_iter().flat_map(packed).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn sections_on_errors_name_a_cause() {
    let empty = |(path, text): (PathBuf, String)| {
        let place = path.display().to_string();
        empty_errors(&text).into_iter().map(move |line| format!("{place}:{line}"))
    };
    assert_eq!(sources().into_iter().flat_map(empty).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn documents_wrap_at_100_columns() {
    let documents = files(|path| path.extension().is_some_and(|extension| extension == "md"));
    assert!(documents.len() > 15, "the documents are found");
    let wide = |(path, text): (PathBuf, String)| {
        let place = path.display().to_string();
        wide_lines(&text).into_iter().map(move |line| format!("{place}:{line}"))
    };
    assert_eq!(documents.into_iter().flat_map(wide).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn comments_wrap_at_100_columns() {
    let wide = |(path, text): (PathBuf, String)| {
        let place = path.display().to_string();
        wide_lines(&comments(&text)).into_iter().map(move |line| format!("{place}:{line}"))
    };
    assert_eq!(sources().into_iter().flat_map(wide).collect::<Vec<_>>(), [""; 0]);
}

/// Functions whose argument is an error message for people.
const ERRORS: [&str; 10] = [
    "aborted",
    "already_exists",
    "bad_request",
    "failed_precondition",
    "internal",
    "invalid_argument",
    "permission_denied",
    "resource_exhausted",
    "unauthenticated",
    "unavailable",
];

/// Error messages that may begin with a placeholder: for a number, a noun, or another message.
const PLACEHOLDERS: [&str; 7] = [
    "{pending}of",
    "{MAX_DOWNLOADS}downloads",
    "{what}isnot",
    "{kind}`",
    "{owner}hasno",
    "{reason};players",
    "{reason},andnone",
];

/// The error messages of a source that begin with a placeholder. Pages show a message as a sentence
/// with a capital letter, which a name must not get. So it begins with a noun: "the bot ada is …".
fn unnamed_subjects(text: &str) -> Vec<String> {
    let code: String = text.split_whitespace().collect();
    let begins = |(at, start): (usize, &str)| {
        let before = &code[..at];
        let message = &code[at + start.len() - 1..];
        let is_variable = ["leterror=", "letmessage="].iter().any(|name| before.ends_with(name));
        let call = before.strip_suffix('(').unwrap_or_default();
        let is_only_argument = ERRORS.iter().any(|name| call.ends_with(name));
        let arguments = before.strip_suffix(',').unwrap_or_default();
        let kind = arguments.rsplit(['(', ',']).next().unwrap_or_default();
        let has_kind = kind.contains("ErrorKind::") || kind.contains("StatusCode::");
        let is_allowed = PLACEHOLDERS.iter().any(|start| message.starts_with(start));
        let is_error = (is_variable || is_only_argument || has_kind) && !is_allowed;
        is_error.then(|| message.chars().take(40).collect())
    };
    code.match_indices("format!(\"{").filter_map(begins).collect()
}

#[test]
fn error_messages_say_what_a_name_is_the_name_of() {
    let layers = ["coordinator/src/service", "coordinator/src/web"];
    for (path, text) in sources() {
        if layers.iter().any(|layer| path.starts_with(layer)) {
            let unnamed = unnamed_subjects(&text);
            assert!(unnamed.is_empty(), "{}: {unnamed:#?}", path.display());
        }
    }
}

#[test]
fn a_message_that_begins_with_a_name_is_seen() {
    for message in [
        "Err(ServiceError::aborted(format!(\"{name} is gone\")))",
        "ServiceError::new(ErrorKind::NotFound, format!(\n    \"{name} is gone\"\n))",
        "WebError::new(StatusCode::NOT_FOUND, format!(\"{} is gone\", name))",
        "let error = format!(\"{name} is gone\");",
    ] {
        assert_eq!(unnamed_subjects(message).len(), 1, "{message}");
    }
    for message in [
        "ServiceError::aborted(format!(\"the bot {name} is gone\"))",
        "ServiceError::missing(\"stage\", format!(\"{number} of {name}\"))",
        "let subject = format!(\"{name} {number}\");",
    ] {
        assert!(unnamed_subjects(message).is_empty(), "{message}");
    }
}

#[test]
fn prose_that_is_not_plain_is_seen() {
    for text in ["/// Whoever asks.", "fn nobody_asks() {", "(somebody)", "a group of its own."] {
        assert_eq!(phrases(text).len(), 1, "{text}");
    }
    for text in ["setpriv \"nobody\"", "nobody:x:65534", "anybody", "its own group"] {
        assert_eq!(phrases(text).len(), 0, "{text}");
    }
    for text in ["let (a, b) = (None, None);", "let (mut a, b): (u8, u8) =\n    (f(')'), (1, 2));"]
    {
        assert_eq!(packed_lets(text).len(), 1, "{text}");
    }
    for text in ["let (a, b) = pair();", "if let (Some(a), Some(b)) = (c, d) {", "let a = (1, 2);"]
    {
        assert_eq!(packed_lets(text).len(), 0, "{text}");
    }
    assert_eq!(empty_errors("/// # Errors\n///\n/// If the database fails.\nfn f() {}"), [1]);
    assert_eq!(empty_errors("/// # Errors\n///\n/// If the file is gone.\nfn f() {}"), [0; 0]);
    assert_eq!(wide_lines(&format!("{}\n{}", "ó".repeat(100), "o".repeat(101))), [2]);
    let wide = "o".repeat(100);
    let source = format!("    // {wide}\n    \"{wide}\"\n/// ```\n/// {wide}\n/// ```\n//! {wide}");
    assert_eq!(wide_lines(&comments(&source)), [1, 6]);
}
