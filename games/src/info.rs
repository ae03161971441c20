//! Descriptors of games: everything about a game as data.

use alloc::borrow::Cow;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, RangeInclusive};

use serde::{Serialize, Serializer};

use crate::parameter::{ParamInfo, ParamInput, Text};
use crate::protocol::{Framing, Protocol};
use crate::rules::{RULES_VERSION, Rules};
use crate::value::{ParamsError, Value, Values};

/// The maximum number of seats of a table in any game.
pub const MAX_SEATS: u8 = 16;

/// A game: everything that the rest of Arbiter needs to know about it.
#[derive(Clone, Debug)]
pub struct GameInfo {
    /// The name on the command line, in files, in records and in the database.
    pub name: Text,
    /// The name in texts for people.
    pub title: Text,
    /// The version of the rules, in each record. It changes when the same replies to the same seed
    /// would no longer give the same scores.
    pub rules_version: Text,
    /// The digest of the files of a game package. None for a built-in game.
    pub package: Option<Text>,
    /// The possible numbers of seats of a table: from 1 to [`MAX_SEATS`].
    pub seats: RangeInclusive<usize>,
    /// The names of the components of a score, the most important first. Scores are summed over
    /// matches and compared from the left. A larger score is better.
    pub columns: Vec<Text>,
    /// The rules of the ranking besides the sums of scores.
    pub ranking: Ranking,
    /// The parameters of a match.
    pub params: Vec<ParamInfo>,
    /// The key of the parameter for the number of seats, if there is one.
    pub seats_param: Option<Text>,
    /// The boards, in games with several boards.
    pub boards: Option<BoardInfo>,
    /// The episodes, in games that have them.
    pub episodes: Option<EpisodeInfo>,
    /// The protocol of bots.
    pub bots: BotInfo,
    /// The settings of official tournaments.
    pub official: Official,
    /// The values of parameters in trials, which keep trials short. A whole number is a maximum.
    pub trial: Vec<(Text, Value)>,
    /// How people play in the playground.
    pub playground: Playground,
    /// What authors of bots begin with. Empty for a package, whose files have it.
    pub guide: BotGuide,
    /// Expected time of a match between average bots, in milliseconds.
    pub time: Estimate,
    /// Expected size of the compressed record of a match, in bytes.
    pub record: Estimate,
    /// The parser of the parameters.
    pub reader: ParamsReader,
}

impl GameInfo {
    /// A game with these parameters. Their defaults and the numbers of seats come from the rules.
    /// All other fields have the most common values, such as bots that reply with one line.
    pub fn new<T: Rules + Default + 'static>(
        name: &'static str,
        title: &'static str,
        mut params: Vec<ParamInfo>,
    ) -> Self {
        let rules = T::default();
        let official = rules.values();
        for param in &mut params {
            param.default = official.get(&param.key).cloned();
        }
        Self {
            name: name.into(),
            title: title.into(),
            rules_version: RULES_VERSION.into(),
            package: None,
            seats: rules.seats(),
            columns: texts(["points"]),
            ranking: Ranking::default(),
            params,
            seats_param: None,
            boards: None,
            episodes: None,
            bots: BotInfo { protocol: Protocol::Stdio, framing: Framing::Line, http: false },
            official: Official::of(ScheduleKind::RoundRobin(PairSeats::Balanced)),
            trial: Vec::new(),
            playground: Playground::default(),
            guide: BotGuide::default(),
            time: Estimate::fixed(0),
            record: Estimate::fixed(0),
            reader: ParamsReader::of::<T>(),
        }
    }
}

/// The rules of the ranking besides the sums of scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ranking {
    /// Whether means per match are compared instead of sums. The order differs only if entrants
    /// have unequal numbers of matches: after bots joined or left, or with a fixed number of
    /// matches.
    pub by_mean: bool,
    /// Whether the earlier submission ranks higher if the sums are equal.
    pub earlier_wins: bool,
}

/// The boards of a game: a text parameter with several values in a tournament. Each pair meets on
/// every board. A tournament file may give a board as the path of a file.
#[derive(Clone, Debug)]
pub struct BoardInfo {
    /// The key of the parameter.
    pub key: Text,
    /// The names of the boards that come with the game.
    pub shipped: Vec<Text>,
    /// The names of the boards of official tournaments.
    pub official: Vec<Text>,
}

/// Episodes: series of matches in which a bot carries its score from one match to the next
/// ([`crate::Episode`]).
#[derive(Clone, Debug)]
pub struct EpisodeInfo {
    /// The key of the parameter for the number of rounds. Matches do not have it.
    pub rounds_param: Text,
    /// The minimum for the next round, of the first component of a bot's score.
    pub min_score: i64,
    /// The name of the column that follows those of the score: minus 1 for each episode that a bot
    /// ends with less than `min_score`, so that more is better as in all columns.
    pub column: Text,
    /// The number of rounds of an official episode.
    pub official_rounds: u32,
}

/// The protocol of a game's bots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BotInfo {
    /// The protocol of bots whose manifest names none.
    pub protocol: Protocol,
    /// How replies on standard output end.
    pub framing: Framing,
    /// Whether HTTP clients can play.
    pub http: bool,
}

/// The settings of official tournaments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Official {
    /// The kind of schedule.
    pub schedule: ScheduleKind,
    /// The memory limit of a bot in megabytes, if it is not the default.
    pub memory_mb: Option<u64>,
    /// Whether a bot keeps its files from match to match.
    pub keeps_files: bool,
    /// Whether the two matches of a pair, with seats exchanged, have the same seed, so that luck
    /// cancels.
    pub shared_deals: bool,
}

impl Official {
    /// Default settings with this schedule.
    pub const fn of(schedule: ScheduleKind) -> Self {
        Self { schedule, memory_mb: None, keeps_files: false, shared_deals: false }
    }
}

/// The kind of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleKind {
    /// Every pair meets, with the seats in this order.
    RoundRobin(PairSeats),
    /// Tables of four.
    Foursomes,
    /// Tables of this many seats, from 2 to [`MAX_SEATS`].
    Tables(usize),
    /// Every bot plays alone.
    Solo,
    /// This many episodes of all bots.
    Episodes(u32),
}

impl ScheduleKind {
    /// The number of seats of each match. `None` for episodes, where it varies.
    pub const fn table_seats(self) -> Option<usize> {
        match self {
            Self::RoundRobin(_) => Some(2),
            Self::Foursomes => Some(4),
            Self::Tables(seats) => Some(seats),
            Self::Solo => Some(1),
            Self::Episodes(_) => None,
        }
    }
}

/// How the seats of a pair are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairSeats {
    /// Each bot has each seat equally often.
    Balanced,
    /// Each pair meets twice, with the seats exchanged.
    Both,
    /// Seats are random.
    Random,
}

/// The settings of matches with people in the playground.
#[derive(Clone, Debug, Default)]
pub struct Playground {
    /// Default parameters of a match with people.
    pub params: Values,
    /// Whether a match with people is slowed down, so that people see the end of a round.
    pub slow: bool,
    /// An example of every line of the protocol, in the order of a match.
    pub examples: Vec<ProtocolExample>,
}

/// An example of a line of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolExample {
    /// The line. Each `\n` in it is the end of a line within one protocol unit.
    pub line: Text,
    /// The meaning of the line, and its reply.
    pub meaning: Text,
}

/// What authors of bots begin with.
#[derive(Clone, Copy, Debug, Default)]
pub struct BotGuide {
    /// How to write a bot, in Markdown, with a complete bot.
    pub text: &'static str,
    /// Complete bots in other languages.
    pub bots: &'static [ExampleBot],
}

/// The files of a complete bot: their paths in its folder, and their texts.
pub type ExampleBot = &'static [(&'static str, &'static str)];

/// A quantity that grows with a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The amount in every match.
    pub base: i64,
    /// The key of a parameter, and the amount that each of its units adds.
    pub per_unit: Option<(Text, i64)>,
}

impl Estimate {
    /// The same amount in every match.
    pub const fn fixed(base: i64) -> Self {
        Self { base, per_unit: None }
    }

    /// `base`, plus `each` for every unit of the parameter `key`.
    pub const fn per_unit(base: i64, key: &'static str, each: i64) -> Self {
        Self { base, per_unit: Some((Cow::Borrowed(key), each)) }
    }

    /// The amount with these values of parameters.
    pub fn of(&self, values: &Values) -> i64 {
        let Some((key, each)) = &self.per_unit else { return self.base };
        let units = values.get(key).and_then(Value::as_integer);
        let units = units.and_then(|units| i64::try_from(units).ok()).unwrap_or(1);
        self.base.saturating_add(each.saturating_mul(units))
    }
}

/// The parser of a game's parameters.
#[derive(Clone)]
pub struct ParamsReader(Arc<ReadRules>);

/// Reads rules from input values and the descriptors of the parameters.
type ReadRules = dyn Fn(&[ParamInfo], &Value) -> RulesResult + Send + Sync;

/// The rules, or why the parameters are invalid.
type RulesResult = Result<Arc<dyn Rules>, ParamsError>;

impl fmt::Debug for ParamsReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ParamsReader")
    }
}

/// Reads the parameters of a game. Missing ones have their official values.
pub fn read_rules<T: Rules + Default>(
    params: &[ParamInfo],
    value: &Value,
) -> Result<T, ParamsError> {
    read_into(T::default(), params, value)
}

/// Sets the parameters of rules to the input values.
fn read_into<T: Rules>(
    mut rules: T,
    params: &[ParamInfo],
    value: &Value,
) -> Result<T, ParamsError> {
    let Value::Table(values) = value else { return Err(value.instead_of("struct Params")) };
    for (index, (key, value)) in values.iter().enumerate() {
        if values.iter().take(index).any(|(other, _)| other == key) {
            return Err(ParamsError::new(format!("duplicate field `{key}`")));
        }
        rules.set(&ParamInput { key, value, params })?;
    }
    rules.check()?;
    Ok(rules)
}

impl ParamsReader {
    /// A parser that starts with these rules and sets the input parameters one by one.
    pub fn from_rules<T: Rules + Clone + 'static>(rules: T) -> Self {
        Self(Arc::new(move |params, value| Ok(Arc::new(read_into(rules.clone(), params, value)?))))
    }

    /// A parser that starts with the official parameters and sets the input parameters one by one.
    pub fn of<T: Rules + Default + 'static>() -> Self {
        Self(Arc::new(|params, value| Ok(Arc::new(read_rules::<T>(params, value)?))))
    }
}

/// A cheap handle of a [`GameInfo`]. Games are equal if their names and packages are.
#[derive(Clone)]
pub struct Game(Arc<GameInfo>);

impl Game {
    /// A handle of the game with this descriptor.
    pub fn new(info: GameInfo) -> Self {
        Self(Arc::new(info))
    }

    /// The name on the command line.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// Whether bots of this game can use this protocol.
    pub fn supports(&self, protocol: Protocol) -> bool {
        protocol != Protocol::Http || self.bots.http
    }

    /// What identifies the rules: the digest of a package, or the version of the built-in rules.
    pub fn rules_identity(&self) -> &str {
        self.package.as_deref().unwrap_or(RULES_VERSION)
    }

    /// The names of a ranking's columns: the columns of the score, and the column of episodes.
    pub fn ranking_columns(&self) -> Vec<&str> {
        let episodes = self.episodes.iter().map(|episodes| &episodes.column);
        self.columns.iter().chain(episodes).map(AsRef::as_ref).collect()
    }

    /// The rules with these parameters. Missing ones have their official values.
    pub(crate) fn read(&self, value: &Value) -> RulesResult {
        (self.reader.0)(&self.params, value)
    }

    /// The keys of the parameters.
    pub fn param_keys(&self) -> Vec<&str> {
        self.params.iter().map(|param| param.key.as_ref()).collect()
    }
}

impl Deref for Game {
    type Target = GameInfo;

    fn deref(&self) -> &GameInfo {
        &self.0
    }
}

impl PartialEq for Game {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.package == other.package
    }
}

impl Eq for Game {}

impl fmt::Debug for Game {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Display for Game {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

impl Serialize for Game {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}

/// An example of a line of a protocol.
pub const fn example(line: &'static str, meaning: &'static str) -> ProtocolExample {
    ProtocolExample { line: Cow::Borrowed(line), meaning: Cow::Borrowed(meaning) }
}

/// Texts of a descriptor.
pub fn texts<const N: usize>(texts: [&'static str; N]) -> Vec<Text> {
    texts.map(Cow::Borrowed).into()
}
