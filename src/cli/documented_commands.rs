//! Tests that the command line accepts the commands of the documentation and of the help.

use std::fs;
use std::path::{Path, PathBuf};

use arbiter_games::Games;
use clap::error::ErrorKind;

/// The words where a command ends.
const ENDS: [&str; 8] = ["|", "||", "&&", "&", ";", ">", "2>", "<"];

/// Errors that show that a command does not exist in this form.
const UNKNOWN: [ErrorKind; 2] = [ErrorKind::UnknownArgument, ErrorKind::InvalidSubcommand];

/// A call of Arbiter.
struct Call {
    words: Vec<String>,
    /// Whether it has all its arguments: no `…`, no shell variables, none from the environment.
    is_complete: bool,
}

impl Call {
    /// The calls in a line of shell.
    fn all(line: &str) -> Vec<Self> {
        let words = shlex::split(line).unwrap_or_default();
        let commands = words.split(|word| ENDS.contains(&word.as_str()));
        commands.filter_map(Self::from_command).collect()
    }

    /// The call, if the command is one: perhaps after assignments of variables.
    fn from_command(command: &[String]) -> Option<Self> {
        let variables = command.iter().take_while(|word| word.contains('=')).count();
        let call = command.get(variables..)?;
        let is_given = |word: &&String| *word != "…";
        let is_plain = call.iter().all(|word| is_given(&word) && !word.starts_with('$'));
        (call.len() > 1 && call[0] == "arbiter").then(|| Self {
            words: call.iter().filter(is_given).cloned().collect(),
            is_complete: is_plain && variables == 0,
        })
    }

    /// Why Arbiter does not accept it, if so. Asking for help is no error.
    fn refusal(&self, is_complete: bool) -> Option<String> {
        let error = super::command(&Games::built_in()).try_get_matches_from(&self.words).err()?;
        let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        let is_wrong = is_complete && self.is_complete || UNKNOWN.contains(&error.kind());
        (is_wrong && !is_help).then(|| format!("{}: {error}", self.words.join(" ")))
    }
}

/// The lines of shell in fenced blocks of Markdown.
fn fenced_lines(markdown: &str) -> Vec<String> {
    let blocks = markdown.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.flat_map(joined_lines).collect()
}

/// The lines of a shell script, after the ends that a backslash hides are removed.
fn joined_lines(script: &str) -> Vec<String> {
    script.replace("\\\n", " ").lines().map(str::to_owned).collect()
}

/// The pieces of code in the sentences of Markdown.
fn inline_code(markdown: &str) -> impl Iterator<Item = &str> {
    let prose = markdown.split("```").step_by(2);
    prose.flat_map(|text| text.split('`').skip(1).step_by(2))
}

/// The README and the pages of the documentation, with their texts.
fn documents() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [root.join("docs"), root.join("docs/bots"), root.to_path_buf()];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect()
}

#[test]
fn the_commands_in_the_documentation_are_accepted() {
    let mut count = 0;
    let mut wrong = Vec::new();
    for (path, text) in documents() {
        let scripts = fenced_lines(&text);
        let scripts = scripts.iter().flat_map(|line| Call::all(line)).map(|call| (call, true));
        // A sentence may name a command without its arguments.
        let named = inline_code(&text).flat_map(Call::all).map(|call| (call, false));
        for (call, is_complete) in scripts.chain(named) {
            count += 1;
            let refusal = call.refusal(is_complete);
            wrong.extend(refusal.map(|why| format!("{}: {why}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 200, "only {count} commands found");
}

#[test]
fn the_commands_in_examples_of_the_help_are_accepted() {
    let mut commands = vec![super::command(&Games::built_in())];
    let mut count = 0;
    let mut wrong = Vec::new();
    while let Some(mut command) = commands.pop() {
        let help = command.render_long_help().to_string();
        commands.extend(command.get_subcommands().cloned());
        let examples = help.split_once("Examples:\n").map_or("", |(_, examples)| examples);
        for call in joined_lines(examples).iter().flat_map(|line| Call::all(line)) {
            count += 1;
            wrong.extend(call.refusal(true));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 100, "only {count} commands found");
}
