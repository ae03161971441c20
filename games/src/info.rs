//! Games as data: all that there is to know about one.

use alloc::borrow::Cow;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, RangeInclusive};

use serde::{Serialize, Serializer};

use crate::parameter::{ParamInfo, Text, Written};
use crate::protocol::{Framing, Protocol};
use crate::rules::{RULES_VERSION, Rules};
use crate::value::{ParamsError, Value, Values};

/// The most seats that a table of any game has.
pub const MAX_SEATS: u8 = 16;

/// A game: everything about it that the rest of Arbiter asks for.
#[derive(Clone, Debug)]
pub struct GameInfo {
    /// The name on the command line, in files, records and rows.
    pub name: Text,
    /// The name for people.
    pub title: Text,
    /// The version of the rules, in each record. It changes when the same replies to the same seed
    /// would no longer give the same scores.
    pub rules_version: Text,
    /// The fewest and the most seats of a table: 1 to [`MAX_SEATS`].
    pub seats: RangeInclusive<usize>,
    /// What the components of a score are called, the most important first. They are added over
    /// matches and compared from the left; more is better.
    pub columns: Vec<Text>,
    /// How entrants are ranked beyond their sums.
    pub ranking: Ranking,
    /// The parameters of a match.
    pub params: Vec<ParamInfo>,
    /// The parameter that says how many seats a table has, if there is one.
    pub seats_param: Option<Text>,
    /// The boards, in games that are played on several.
    pub boards: Option<BoardInfo>,
    /// The episodes, in games that are played in them.
    pub episodes: Option<EpisodeInfo>,
    /// How bots are spoken to.
    pub bots: BotInfo,
    /// What official tournaments are like.
    pub official: Official,
    /// The values that parameters have at most in trials, which so take less time.
    pub trial: Vec<(Text, u32)>,
    /// How people play.
    pub playground: Playground,
    /// What a match between average bots takes, in milliseconds.
    pub time: Estimate,
    /// What the compressed record of one takes, in bytes.
    pub record: Estimate,
    /// How the parameters are read.
    pub reader: ParamsReader,
}

impl GameInfo {
    /// A game with these parameters, whose defaults are those of its rules. All else is as in most
    /// games: they are for as many seats as the rules say, and bots write lines.
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
            time: Estimate::fixed(0),
            record: Estimate::fixed(0),
            reader: ParamsReader::of::<T>(),
        }
    }
}

/// How entrants are ranked beyond their sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ranking {
    /// Whether means over matches are compared rather than sums: where tables were added as bots
    /// came and went, or there is a budget of matches, entrants have unequal numbers of matches.
    /// Where all have the same, it makes no difference.
    pub by_mean: bool,
    /// Whether of two entrants with equal sums the one submitted earlier ranks higher.
    pub earlier_wins: bool,
}

/// A text parameter of which a tournament may have several values: each pair meets on every one.
/// A value may be given as the path of a file that holds it.
#[derive(Clone, Debug)]
pub struct BoardInfo {
    /// The key of the parameter.
    pub key: Text,
    /// The names of the boards that come with the game.
    pub shipped: Vec<Text>,
    /// The names of those of official tournaments.
    pub official: Vec<Text>,
}

/// Matches that follow one another: what a bot has at the end of one, it has at the beginning of
/// the next ([`crate::Episode`]).
#[derive(Clone, Debug)]
pub struct EpisodeInfo {
    /// The key of the parameter that says how many rounds an episode has. Matches do not have it.
    pub rounds_param: Text,
    /// The least first component of a score with which a bot plays on.
    pub least: i64,
    /// The column for those who played on to the end, behind those of the score.
    pub column: Text,
    /// How many rounds an official episode has.
    pub official_rounds: u32,
}

/// How bots are spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BotInfo {
    /// The protocol of bots whose manifest names none.
    pub protocol: Protocol,
    /// How answers on standard output end.
    pub framing: Framing,
    /// Whether a client of HTTP can play.
    pub http: bool,
}

/// What official tournaments are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Official {
    /// Who meets whom.
    pub schedule: ScheduleKind,
    /// How much memory a bot has, in megabytes, where it is not as much as usual.
    pub memory_mb: Option<u64>,
    /// Whether the files that a bot leaves are there again in its next match.
    pub keeps_files: bool,
    /// Whether both matches of a pair have the same seed when sides are changed, so that what one
    /// was lucky with in the first is the other's in the second.
    pub shared_deals: bool,
}

impl Official {
    /// Tournaments with nothing out of the ordinary but who meets whom.
    pub const fn of(schedule: ScheduleKind) -> Self {
        Self { schedule, memory_mb: None, keeps_files: false, shared_deals: false }
    }
}

/// Who meets whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleKind {
    /// Every pair meets, with the seats in this order.
    RoundRobin(PairSeats),
    /// Tables of four.
    Foursomes,
    /// So many episodes of all bots.
    Episodes(u32),
}

/// Who has which seat when a pair meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairSeats {
    /// Each bot has each seat equally often.
    Balanced,
    /// Each pair meets twice, with the seats changed.
    Both,
    /// By chance.
    Random,
}

/// How people play, and talk to bots.
#[derive(Clone, Debug, Default)]
pub struct Playground {
    /// Parameters of a match with people in it, unless they say otherwise.
    pub params: Values,
    /// Whether the end of a round would be gone before a person sees it, so that a match with
    /// people is slowed down too.
    pub slow: bool,
    /// Examples of every line of the protocol, in the order in which a match comes to them.
    pub examples: Vec<ProtocolExample>,
}

/// A line of the protocol as an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolExample {
    /// The line; `\n` in it stands for the end of a line within one protocol unit.
    pub line: Text,
    /// What it means, and what is due.
    pub meaning: Text,
}

/// A quantity that grows with a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// What there is of it in any match.
    pub base: i64,
    /// What each unit of a parameter adds.
    pub per_unit: Option<(Text, i64)>,
}

impl Estimate {
    /// As much in every match.
    pub const fn fixed(base: i64) -> Self {
        Self { base, per_unit: None }
    }

    /// `base`, and `each` more for each unit of the parameter `key`.
    pub const fn per_unit(base: i64, key: &'static str, each: i64) -> Self {
        Self { base, per_unit: Some((Cow::Borrowed(key), each)) }
    }

    /// What it comes to with these values of parameters.
    pub fn of(&self, values: &Values) -> i64 {
        let Some((key, each)) = &self.per_unit else { return self.base };
        let units = values.get(key).and_then(Value::as_integer);
        let units = units.and_then(|units| i64::try_from(units).ok()).unwrap_or(1);
        self.base.saturating_add(each.saturating_mul(units))
    }
}

/// Reads the parameters of a game.
#[derive(Clone)]
pub struct ParamsReader(Arc<ReadRules>);

/// Makes rules of parameters, given the parameters that there are.
type ReadRules = dyn Fn(&[ParamInfo], &Value) -> RulesResult + Send + Sync;

/// The rules with the parameters that were read.
type RulesResult = Result<Arc<dyn Rules>, ParamsError>;

impl fmt::Debug for ParamsReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ParamsReader")
    }
}

/// Reads the parameters of a game that has these; what is left out is official.
pub fn read_rules<T: Rules + Default>(
    known: &[ParamInfo],
    value: &Value,
) -> Result<T, ParamsError> {
    let Value::Table(values) = value else { return Err(value.instead_of("struct Params")) };
    let mut rules = T::default();
    for (index, (key, value)) in values.iter().enumerate() {
        if values.iter().take(index).any(|(earlier, _)| earlier == key) {
            return Err(ParamsError::new(format!("duplicate field `{key}`")));
        }
        rules.set(&Written { key, value, known })?;
    }
    rules.check()?;
    Ok(rules)
}

impl ParamsReader {
    /// A reader of parameters that are set one by one, beginning with the official ones.
    pub fn of<T: Rules + Default + 'static>() -> Self {
        Self(Arc::new(|known, value| Ok(Arc::new(read_rules::<T>(known, value)?))))
    }
}

/// A game that is known: a cheap handle of its [`GameInfo`]. Games are the same if their names are.
#[derive(Clone)]
pub struct Game(Arc<GameInfo>);

impl Game {
    /// A handle of this game.
    pub fn new(info: GameInfo) -> Self {
        Self(Arc::new(info))
    }

    /// The name as typed on the command line.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// Whether a bot can speak this protocol at this game.
    pub fn speaks(&self, protocol: Protocol) -> bool {
        protocol != Protocol::Http || self.bots.http
    }

    /// What the columns of a ranking are called: those of the score, and that of episodes.
    pub fn ranking_columns(&self) -> Vec<&str> {
        let episodes = self.episodes.iter().map(|episodes| &episodes.column);
        self.columns.iter().chain(episodes).map(AsRef::as_ref).collect()
    }

    /// The rules with these parameters; what is left out is official.
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
        self.name == other.name
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
