//! A complete tournament file for a game, with every key explained: the output of `arbiter
//! tournament init`. Keys with a default have it, all others are comments. So the file means the
//! same as one with only a name and a game.

use arbiter_games::{Game, Games, ParamInfo, ParamKind};
use arbiter_proto::settings::GamePackage;
use serde_json::{Map, Value, json};
use toml::Value as TomlValue;

use super::TournamentFile;
use super::game_defaults::OFFICIAL;
use super::parse_keys::KINDS;
use crate::game_package::{self, GameError};

/// The column of comments.
const COLUMN: usize = 32;
/// The longest line, in characters. A longer comment is above its key.
const WIDTH: usize = 100;

/// A key: its name, an example where there is no default, and its meaning.
type Key = (&'static str, &'static str, &'static str);

/// The keys at the top.
const TOP: &[Key] = &[
    ("name", "", "1 to 64 of A-Z a-z 0-9 . _ -"),
    ("game", "", "a built-in game, or the folder of a game package, relative to this file"),
    ("title", "\"Spring Cup\"", "one line for people, at most 100 characters"),
    ("description", "\"**Prizes** …\"", "Markdown for the tournament's page, at most 20 000 bytes"),
    ("seed", "\"any text\"", "default: drawn at random"),
    ("beacon", "\"Bitcoin block 900000 hash\"", "a value that others publish after entry closed"),
    ("state", "", "none, pairing or tournament: what happens to files that a bot leaves"),
    ("ponder", "", "freeze or allow: what a bot may do while no reply is due"),
    ("rerun", "", "or manual: when a new edition opens after the first"),
    ("expected", "\"2s\"", "how long a match takes, if Arbiter estimates it badly"),
];

/// The keys of `[schedule]` that official schedules have, or may have.
const SCHEDULE: &[Key] = &[
    ("kind", "", "the other kinds and their keys are below"),
    ("seats", "4", "the seats of a table"),
    ("legs", "1", "how many times everything is played"),
    ("sides", "\"balanced\"", "both, random or balanced: who is first"),
    ("boards", "\"official\"", "or a list of boards; each pair meets on each of them"),
    ("opponents", "64", "how many others each bot meets; default: all"),
    ("meetings", "6", "how often each pair meets; default: the least possible"),
    ("games", "20000", "or: the number of matches"),
    ("episodes", "25", "how many episodes are played"),
];

const CLOCK: &[Key] = &[
    ("kind", "", "wall or cpu: which time is charged"),
    ("startup", "", "free time for the first reply of a process"),
    ("margin", "", "extra time for scheduling delays of the referee"),
];

const LIMITS: &[Key] = &[
    ("memory", "", "the memory of a bot"),
    ("processes", "", "processes and threads of a bot"),
    ("disk", "", "disk space of a bot"),
    ("files", "", "files of a bot"),
    ("descriptors", "", "open files of a process"),
    ("cpus", "", "processors of a bot"),
];

const SUBMISSIONS: &[Key] = &[
    ("preflight", "", "a player's version is built and tried before it enters"),
    ("window", "", "versions that enter within this time share one edition"),
    ("per_hour", "", "submissions of an owner in an hour; 0: no limit"),
    ("closes", "\"2027-03-01T12:00:00Z\"", "when entry closes; default: with the tournament"),
    (
        "freeze",
        "\"2027-03-01T10:00:00Z\"",
        "from when on the public sees only editions that were complete",
    ),
    ("separate_owners", "", "foursomes: two bots of an owner never share a table"),
    ("stand_down_percent", "", "suspends a bot that forfeits more of its matches; 100: never"),
    ("stand_down_after", "", "the number of matches before which no bot is suspended"),
];

const PUBLIC: &[Key] =
    &[("replays", "", "or after_close, never: when everyone sees the played matches")];

const AUDIT: &[Key] = &[
    ("replay", "", "records that the coordinator replays; \"0%\": none"),
    ("shadow", "", "matches that a second worker plays again; \"0%\": none"),
];

const HOUSE: &[Key] = &[
    ("bots", "[\"bots/house\"]", "bots that are submitted with this file"),
    ("ranked", "", "false: house bots play without a rank, and the ranks of others skip them"),
];

impl TournamentFile {
    /// A complete file for a tournament of a game. `written` is what the file has as `game`: the
    /// name of a built-in game, or the path of the package.
    ///
    /// # Errors
    /// If there is no such game.
    pub fn template(
        games: &Games,
        game: &str,
        written: &str,
        package: Option<&GamePackage>,
    ) -> Result<String, GameError> {
        let game = game_package::find(games, game, package)?;
        Ok(Template::new(&game, written).text())
    }
}

/// A template that is being written.
struct Template<'a> {
    game: &'a Game,
    /// The default values by keys; those of sections are objects.
    defaults: Map<String, Value>,
    text: String,
}

impl<'a> Template<'a> {
    fn new(game: &'a Game, written: &str) -> Self {
        let official = TournamentFile::official(&format!("{game}-cup"), game);
        let mut defaults = official.all_keys();
        defaults.insert("game".to_owned(), json!(written));
        if !official.boards.is_empty() {
            defaults["schedule"]["boards"] = json!(OFFICIAL);
        }
        // An empty list of house bots is shown as an example.
        if let Some(Value::Object(house)) = defaults.get_mut("house") {
            house.shift_remove("bots");
        }
        Self { game, defaults, text: String::new() }
    }

    fn text(mut self) -> String {
        let title = self.game.title.to_string();
        self.comment(&format!("A tournament of {title}: arbiter tournament create FILE"));
        self.comment("Values are the defaults. Remove the # of a key to set it.");
        self.keys("", TOP);
        self.params();
        self.schedule();
        for (section, keys) in [
            ("clock", CLOCK),
            ("limits", LIMITS),
            ("submissions", SUBMISSIONS),
            ("public", PUBLIC),
            ("audit", AUDIT),
            ("house", HOUSE),
        ] {
            self.section(section);
            self.keys(section, keys);
        }
        self.text
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn section(&mut self, name: &str) {
        self.line("");
        self.line(&format!("[{name}]"));
    }

    fn comment(&mut self, comment: &str) {
        for line in wrapped(comment, WIDTH - 2) {
            self.line(&format!("# {line}"));
        }
    }

    /// The default of a key. None if it has none.
    fn default(&self, section: &str, key: &str) -> Option<String> {
        let value = match section {
            "" => self.defaults.get(key),
            _ => self.defaults.get(section).and_then(|keys| keys.get(key)),
        };
        let value = value.filter(|value| !value.is_null())?;
        TomlValue::try_from(value).ok().map(|value| value.to_string())
    }

    fn keys(&mut self, section: &str, keys: &[Key]) {
        for (key, example, comment) in keys {
            match self.default(section, key) {
                Some(value) => self.key(&format!("{key} = {value}"), comment),
                None => self.key(&format!("# {key} = {example}"), comment),
            }
        }
    }

    /// Writes a key with its comment.
    fn key(&mut self, assignment: &str, comment: &str) {
        let padding = COLUMN.saturating_sub(assignment.chars().count() + 1);
        let line = format!("{assignment}{:padding$} # {comment}", "");
        if line.chars().count() > WIDTH {
            self.comment(comment);
            self.line(assignment);
        } else {
            self.line(&line);
        }
    }

    fn params(&mut self) {
        if self.game.params.is_empty() {
            return;
        }
        self.section("params");
        let game = self.game;
        for param in &game.params {
            let assignment = match self.default("params", &param.key) {
                Some(value) => format!("{} = {value}", param.key),
                None => format!("# {} = {}", param.key, example(param)),
            };
            self.key(&assignment, &param.help);
        }
    }

    fn schedule(&mut self) {
        self.section("schedule");
        let kind = self.default("schedule", "kind").unwrap_or_default();
        let kind = kind.trim_matches('"');
        let of_kind =
            KINDS.iter().find(|(name, _)| *name == kind).map_or(&[][..], |(_, keys)| keys);
        let has_boards = self.game.boards.is_some();
        let is_of_kind = |key: &str| {
            key == "kind" || (of_kind.contains(&key) && (key != "boards" || has_boards))
        };
        let keys: Vec<_> = SCHEDULE.iter().copied().filter(|(key, ..)| is_of_kind(key)).collect();
        self.keys("schedule", &keys);
        self.comment("The kinds and their keys (docs/schedules.md), also for [[stage]] sections:");
        for (name, keys) in KINDS {
            self.comment(&format!("kind = \"{name}\": {}", keys.join(", ")));
        }
    }
}

/// A value that a parameter may have.
fn example(param: &ParamInfo) -> String {
    match &param.kind {
        ParamKind::Integer(range) => (*range.start()).max(0).to_string(),
        ParamKind::Number(range) => TomlValue::from((*range.start()).max(0.0)).to_string(),
        ParamKind::Boolean => "true".to_owned(),
        ParamKind::Choice(choices) => {
            TomlValue::from(choices.first().map_or("", AsRef::as_ref)).to_string()
        }
        ParamKind::Duration => "\"1s\"".to_owned(),
        ParamKind::Text | ParamKind::PerSeat(_) => "\"…\"".to_owned(),
    }
}

/// A text in lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
