//! The fields of the form that changes the settings of a tournament.

/// The values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A line of text.
    Line,
    /// Markdown.
    Text,
    /// A whole number.
    Number,
    /// A whole number of percent, which is written with its sign: `20%`.
    Percent,
    /// A time in UTC.
    Time,
    /// One of these words of a tournament file, each with its meaning for people.
    Choice(&'static [(&'static str, &'static str)]),
    /// Yes or no.
    Flag,
}

/// The words of a flag, with their meanings.
const FLAG: &[(&str, &str)] = &[("true", "yes"), ("false", "no")];

impl Kind {
    /// The words that the field can have, with their meanings. Empty for free text.
    pub(super) fn choices(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Choice(choices) => choices,
            Self::Flag => FLAG,
            Self::Line | Self::Text | Self::Number | Self::Percent | Self::Time => &[],
        }
    }

    /// A word of the field in words for people. Other texts stay as they are.
    pub(super) fn in_words(self, value: &str) -> &str {
        let choice = self.choices().iter().find(|(word, _)| *word == value);
        choice.map_or(value, |(_, meaning)| meaning)
    }
}

/// A field: its key, its label, its values, and what to write.
pub(super) type Field = (&'static str, &'static str, Kind, &'static str);

/// Fields that can change at any time.
pub(super) const ALWAYS: &[Field] = &[
    ("title", "Title", Kind::Line, "One line, at most 100 characters."),
    ("description", "Description", Kind::Text, "Markdown, at most 20 000 bytes."),
    (
        "public.replays",
        "Replays",
        Kind::Choice(&[
            ("always", "always"),
            ("after_close", "after the tournament closes"),
            ("never", "never"),
        ]),
        "When everyone may watch the replays of matches.",
    ),
    ("submissions.closes", "Entry closes (UTC)", Kind::Time, "Empty: when the tournament ends."),
    (
        "submissions.freeze",
        "Leaderboard freezes (UTC)",
        Kind::Time,
        "From then on only organisers see newer results. Empty: never.",
    ),
    (
        "submissions.preflight",
        "Try versions before they enter",
        Kind::Flag,
        "House bots enter without a trial.",
    ),
    (
        "submissions.window",
        "Wait before a new edition",
        Kind::Line,
        "Versions that enter within this time share an edition. An example: 5s.",
    ),
    (
        "submissions.per_hour",
        "Versions per hour",
        Kind::Number,
        "How many versions an owner may submit in an hour; 0: no limit.",
    ),
    (
        "submissions.stand_down_percent",
        "Suspend above (share of forfeits)",
        Kind::Percent,
        "A version that forfeits more than this share of its matches is suspended; 100%: never.",
    ),
    (
        "submissions.stand_down_after",
        "Suspend after (matches)",
        Kind::Number,
        "No version is suspended before it has played this many matches.",
    ),
    (
        "rerun",
        "Editions open",
        Kind::Choice(&[
            ("every_submission", "after each change"),
            ("manual", "when an organiser starts one"),
        ]),
        "A change: a version enters, or a bot leaves.",
    ),
    (
        "house.ranked",
        "House bots have ranks",
        Kind::Flag,
        "From the next edition on. Without ranks they play, and the ranks of others skip them.",
    ),
    (
        "expected",
        "Expected match duration",
        Kind::Line,
        "Such as 2s. Used until matches are timed, for estimates and for how many matches a worker gets \
         at a time. Empty: the game's default.",
    ),
    (
        "audit.replay",
        "Records verified",
        Kind::Line,
        "The share of records that the coordinator checks. An example: 5%.",
    ),
    (
        "audit.shadow",
        "Matches played again",
        Kind::Line,
        "The share that a second worker plays again, such as 1%.",
    ),
];

/// Fields that can change until the first edition is opened.
pub(super) const BEFORE_EDITIONS: &[Field] = &[
    (
        "clock.kind",
        "Clock",
        Kind::Choice(&[("wall", "wall-clock time"), ("cpu", "processor time")]),
        "Which time is charged.",
    ),
    ("clock.startup", "Start-up time", Kind::Line, "Free time for the first reply: 10s."),
    ("clock.margin", "Margin", Kind::Line, "Extra time of each reply: 20ms."),
    ("limits.memory", "Memory", Kind::Line, "Of a bot, such as 400MB."),
    ("limits.processes", "Processes", Kind::Number, "Processes and threads of a bot."),
    ("limits.disk", "Disk", Kind::Line, "Of a bot, such as 64MB."),
    ("limits.files", "Files", Kind::Number, "Of a bot."),
    ("limits.descriptors", "Descriptors", Kind::Number, "Open files of a process."),
    ("limits.cpus", "Processors", Kind::Number, "Of a bot."),
    (
        "state",
        "Files that bots leave",
        Kind::Choice(&[
            ("none", "deleted after each match"),
            ("pairing", "passed to the next match against the same opponent"),
            ("tournament", "passed to the next match"),
        ]),
        "What happens to the files that a bot wrote during a match.",
    ),
    (
        "ponder",
        "Between turns",
        Kind::Choice(&[("freeze", "bots are paused"), ("allow", "bots may think")]),
        "What a bot does while no reply is due.",
    ),
];
