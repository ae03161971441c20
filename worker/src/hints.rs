//! Hints for authors: the likely cause of a forfeit or bad reply, the protocol errors that the
//! referee tolerates, and the end of a bot's standard error.
//!
//! Trials, `arbiter play` and `arbiter repro` show the same hints. A hint is a guess from what the
//! referee observed and from the bot's files. It never decides a result.

use std::collections::HashSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use arbiter_games::{Forfeit, Framing, Game, Protocol};

use crate::bot::Bot;
use crate::bounded_read::open_regular;
use crate::sandbox::{BotSource, is_system_path, search_path};
use crate::seat::{ProtocolWarnings, SeatFailure};

/// Maximum number of lines from the end of standard error.
const STDERR_LINES: usize = 12;

/// Maximum length of a shown line, in characters.
const MAX_LINE_LEN: usize = 300;

/// Maximum length of the first line of a script, in bytes: that of Linux.
const MAX_SHEBANG: u64 = 256;

/// A forfeit or a bad reply, as far as hints depend on it.
#[derive(Clone, Copy, Debug)]
pub struct ObservedFailure<'a> {
    /// The game.
    pub game: &'a Game,
    /// The bot, if it has files.
    pub bot: Option<&'a Bot>,
    /// Its kind and the referee's evidence.
    pub failure: &'a SeatFailure,
    /// The number of replies before it.
    pub replies: usize,
    /// Whether the bot wrote to standard error. Its last lines are shown with the hint.
    pub has_stderr: bool,
}

impl ObservedFailure<'_> {
    /// A hint for the author in one line, if there is a likely cause.
    pub fn hint(&self) -> Option<String> {
        let Self { game, failure, replies, has_stderr, .. } = *self;
        let SeatFailure { forfeit, detail } = failure;
        match forfeit {
            Forfeit::Clock if detail.contains("without the end of a reply") => {
                Some(self.end_of_reply().to_owned())
            }
            // The end of a program that decides once flushes its output.
            Forfeit::Clock if replies == 0 && game.bots.protocol != Protocol::Exec => {
                Some(self.no_output())
            }
            Forfeit::Illegal if detail.contains("more than one reply") => {
                Some(format!("expected: one reply to each request, and nothing else; {ON_STDERR}"))
            }
            Forfeit::Illegal if detail.contains("without being asked") => {
                Some(format!("expected: only replies on standard output; {ON_STDERR}"))
            }
            Forfeit::Illegal if self.may_be_debug_output() => {
                Some(format!("if that is debug output, {ON_STDERR}"))
            }
            Forfeit::Gone => self.bot.and_then(|bot| start_problem(bot, detail)).or_else(|| {
                let cause = if has_stderr {
                    "the last lines of its standard error say why"
                } else {
                    "does it run in an empty environment?"
                };
                (replies == 0).then(|| format!("it exited before its first reply: {cause}"))
            }),
            Forfeit::Clock | Forfeit::Illegal | Forfeit::Flood => None,
        }
    }

    /// How a reply of the game ends.
    fn end_of_reply(&self) -> &'static str {
        match self.game.bots.framing {
            Framing::Gtp => {
                "expected: a reply that begins with `=` and ends with an empty line (LF LF)"
            }
            Framing::BlankLine => "expected: a reply that ends with an empty line (LF LF)",
            Framing::Line | Framing::EndsWith(_) => {
                "expected: a reply that ends with a newline (LF, not CR alone)"
            }
        }
    }

    /// The hint for a bot that wrote nothing.
    fn no_output(&self) -> String {
        let call = self.bot.and_then(flush_call);
        let call = call.map(|call| format!(" ({call})")).unwrap_or_default();
        format!(
            "no output arrived: flush standard output after each reply{call}, and read the input \
             line by line, not to its end"
        )
    }

    /// Whether an illegal reply looks like text for people.
    fn may_be_debug_output(&self) -> bool {
        let detail = &self.failure.detail;
        let quoted = detail.split_once('"').and_then(|(_, rest)| rest.rsplit_once('"'));
        let Some((reply, _)) = quoted else { return false };
        if detail.contains("starts with = or ?") {
            return true;
        }
        if reply.is_empty() || reply.trim_start().starts_with(['=', '?']) {
            return false;
        }
        let known = self.words_of_replies();
        let has_words = words(reply).any(|word| !known.contains(&word));
        let is_ruler = !reply.contains(|c: char| c.is_alphanumeric() || c == '_');
        has_words || is_ruler || has_decimal(reply)
    }

    /// The words with which the game's examples describe replies.
    fn words_of_replies(&self) -> HashSet<&str> {
        let examples = self.game.playground.examples.iter();
        examples
            .filter_map(|one| one.meaning.split_once("Reply:"))
            .flat_map(|(_, at)| words(at))
            .collect()
    }
}

/// The words of a text that are longer than the words of most moves.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphabetic()).filter(|word| word.len() > 2)
}

/// Whether a text has a decimal fraction, such as 0.25.
fn has_decimal(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit();
    text.as_bytes()
        .windows(3)
        .any(|three| matches!(*three, [a, b'.', b] if is_digit(a) && is_digit(b)))
}

/// Where to write what is no reply.
const ON_STDERR: &str = "print debug output to standard error";

/// How a program in the bot's language flushes its standard output.
fn flush_call(bot: &Bot) -> Option<&'static str> {
    let words = bot.run.iter().take(2).map(|word| word.rsplit('/').next().unwrap_or(word));
    let names: Vec<_> = words.collect();
    let has = |start: &str, end: &str| {
        names.iter().any(|name| name.starts_with(start) || name.ends_with(end))
    };
    if has("python", ".py") {
        Some("print(…, flush=True)")
    } else if has("ruby", ".rb") {
        Some("$stdout.sync = true")
    } else if has("perl", ".pl") {
        Some("$| = 1")
    } else if has("java", ".jar") {
        Some("System.out.flush()")
    } else {
        None
    }
}

/// Why the program of a bot does not start, if its file shows it.
fn start_problem(bot: &Bot, detail: &str) -> Option<String> {
    let program = bot.run.first()?;
    let path = program_file(bot, program)?;
    let mut first = Vec::new();
    let file = open_regular(&path).ok()?;
    file.take(MAX_SHEBANG).read_to_end(&mut first).ok()?;
    let line = first.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let Some(command) = line.strip_prefix(b"#!") else {
        // A shell may run a script without its first line.
        let is_foreign = detail.contains("Exec format error");
        return (is_foreign || !first.starts_with(b"\x7fELF")).then(|| {
            format!(
                "{program} is neither a program for this machine nor a script: begin a script \
                 with a line such as #!/usr/bin/env python3"
            )
        });
    };
    if command.ends_with(b"\r") {
        return Some(format!(
            "the first line of {program} ends with CR LF, so its interpreter is not found: end \
             its lines with LF only (sed -i 's/\\r$//' {program})"
        ));
    }
    let command = String::from_utf8_lossy(command).into_owned();
    let problem = interpreter_problem(&command)?;
    Some(format!("the first line of {program} names the interpreter {problem}"))
}

/// The file of a bot's program, if the program belongs to the bot.
fn program_file(bot: &Bot, program: &str) -> Option<PathBuf> {
    match &bot.source {
        BotSource::File(path) => Some(path.clone()),
        BotSource::Directory(path) => {
            let is_own = program.contains('/') && !program.starts_with('/');
            is_own.then(|| path.join(program))
        }
    }
}

/// The interpreter in the first line of a script and why it does not run, if that is so.
///
/// Authors read this, so it tells nothing about files that bots cannot see.
fn interpreter_problem(command: &str) -> Option<String> {
    let mut words = command.split_whitespace();
    let path = words.next()?;
    let missing = |program: &str| format!("{program}, which is not installed on this machine");
    if !Path::new(path).ends_with("env") {
        if !path.starts_with('/') {
            return None;
        }
        if !is_system_path(Path::new(path)) {
            return Some(format!("{path}: name one that bots can see, such as one in /usr/bin"));
        }
        return fs::metadata(path).is_err().then(|| missing(path));
    }
    let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    if name.contains('/') {
        return None;
    }
    let mut folders = std::env::split_paths(&search_path()).collect::<Vec<_>>().into_iter();
    (!folders.any(|folder| folder.join(name).exists())).then(|| missing(name))
}

/// The protocol errors that the referee tolerated, one line each. Other referees perhaps do not
/// tolerate them.
pub fn tolerated(warnings: ProtocolWarnings) -> Vec<&'static str> {
    let ProtocolWarnings { carriage_returns, trailing_blanks, leading_blanks } = warnings;
    let lines = [
        (carriage_returns, "its lines end with CR LF: write LF only"),
        (trailing_blanks, "its lines end with blanks: remove them"),
        (leading_blanks, "blanks or empty lines precede its replies: remove them"),
    ];
    lines.into_iter().filter(|(is_seen, _)| *is_seen).map(|(_, line)| line).collect()
}

/// The last lines of a bot's standard error, shortened.
pub fn last_stderr_lines(stderr: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(STDERR_LINES)..].iter().map(|line| shorten(line)).collect()
}

/// Shortens a text and joins its lines.
pub(crate) fn shorten(text: &str) -> String {
    let mut start: String = text.chars().take(MAX_LINE_LEN).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    start.replace('\n', "⏎")
}

#[cfg(test)]
mod tests {
    use arbiter_games::{blackjack, gomoku, tricks, wojna};

    use super::*;

    #[test]
    fn debug_output_in_place_of_a_reply_is_recognised() {
        let hint = |game: &Game, detail: &str| {
            let failure = &SeatFailure { forfeit: Forfeit::Illegal, detail: detail.to_owned() };
            ObservedFailure { game, bot: None, failure, replies: 3, has_stderr: false }.hint()
        };
        let gomoku = gomoku::game();
        let [tricks, blackjack, wojna] = [tricks::game(), blackjack::game(), wojna::game()];
        let debug = Some("if that is debug output, print debug output to standard error");
        for (game, detail, expected) in [
            (&gomoku, "a square expected, found \"best score found 7\"", debug),
            (&gomoku, "neither a square nor a colour: \"bestis(7,7)\"", debug),
            (&gomoku, "neither a square nor a colour: \"depth5\"", debug),
            (&gomoku, "neither a square nor a colour: \"0.25\"", debug),
            (&gomoku, "neither a square nor a colour: \"..--..\"", debug),
            (&gomoku, "a square expected, found \"(1,2) (3,4)\"", None),
            (&gomoku, "a square expected, found \"black\"", None),
            (&gomoku, "the square (7,7) is taken", None),
            (&tricks, "2 cards expected, one for each table, found 1: \"depth\"", debug),
            (&tricks, "2 cards expected, one for each table, found 1: \"move=Y7\"", None),
            (&tricks, "2 cards expected, one for each table, found 1: \"_\"", None),
            (&blackjack, "\"total 12\\nH\" is not one of H, S, D and B n", debug),
            (&blackjack, "\"B +5\" is not one of H, S, D and B n", None),
            (&wojna, "an answer starts with = or ?, not with \"bid\"", debug),
            (&wojna, "refused to move: \"? unknown command genmove\"", None),
        ] {
            assert_eq!(hint(game, detail).as_deref(), expected, "{detail}");
        }
    }

    #[test]
    fn a_bot_that_ends_at_once_is_explained_by_its_standard_error_if_there_is_some() {
        let game = gomoku::game();
        let hint = |has_stderr: bool| {
            let detail = "exited with code 1".to_owned();
            let failure = &SeatFailure { forfeit: Forfeit::Gone, detail };
            ObservedFailure { game: &game, bot: None, failure, replies: 0, has_stderr }
                .hint()
                .unwrap()
        };
        assert!(hint(true).ends_with("the last lines of its standard error say why"));
        assert!(hint(false).ends_with("does it run in an empty environment?"));
    }

    #[test]
    fn a_missing_interpreter_is_named() {
        assert_eq!(interpreter_problem("/bin/sh -e"), None);
        assert_eq!(interpreter_problem("/usr/bin/env -S A=1 sh"), None);
        for (command, program) in [
            ("/usr/bin/env no-such-lang x", "no-such-lang"),
            ("/usr/bin/no-such-lang", "/usr/bin/no-such-lang"),
        ] {
            let expected = format!("{program}, which is not installed on this machine");
            assert_eq!(interpreter_problem(command), Some(expected));
        }
    }

    #[test]
    fn a_hint_tells_nothing_about_files_that_bots_cannot_see() {
        let folder = tempfile::tempdir().unwrap();
        let hidden = folder.path().join("there");
        fs::write(&hidden, "").unwrap();
        let roundabout = format!("/usr/..{}", hidden.display());
        for path in [hidden.to_str().unwrap(), &roundabout] {
            let there = interpreter_problem(path);
            let absent = interpreter_problem(&path.replace("there", "gone"));
            assert_eq!(there.map(|hint| hint.replace("there", "gone")), absent);
            assert_eq!(interpreter_problem(&format!("/usr/bin/env {path}")), None);
        }
    }
}
