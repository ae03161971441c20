//! The descriptor of a package as data.

use std::ops::RangeInclusive;
use std::sync::Arc;

use arbiter_games::{
    BotGuide, BotInfo, Estimate, Framing, GameInfo, Micros, Official, PairSeats, ParamInfo,
    ParamsReader, Playground, Protocol, Ranking, ScheduleKind, Text, Value,
};

use crate::clock::PackageClock;
use crate::episodes::PackageEpisodes;
use crate::rules::{PackageInfo, PackageRules};
use crate::rules_host::RulesHost;

/// The expected size of the compressed record of a match, in bytes.
const RECORD_BYTES: i64 = 4000;

/// The number of episodes of a tournament whose file has none.
const EPISODES: u32 = 25;

/// A game package as its author describes it.
#[derive(Clone, Debug)]
pub struct Descriptor {
    /// The name of the game.
    pub name: String,
    /// Its name in texts for people.
    pub title: String,
    /// The version of its rules.
    pub version: String,
    /// The possible numbers of seats of a table.
    pub seats: RangeInclusive<usize>,
    /// The names of the components of a score.
    pub columns: Vec<String>,
    /// How the rules run.
    pub carrier: Carrier,
    /// The command that builds the rules, if one does.
    pub build: Option<Vec<String>>,
    /// The kind of schedule of tournaments that name none.
    pub schedule: PackageSchedule,
    /// The protocol of bots.
    pub protocol: Protocol,
    /// How replies of bots end.
    pub framing: Framing,
    /// Whether the rules give arguments to programs of bots.
    pub has_arguments: bool,
    /// The clock of bots.
    pub clock: PackageClock,
    /// The parameters of a match, each with its default.
    pub params: Vec<ParamInfo>,
    /// The episodes, in games that have them.
    pub episodes: Option<PackageEpisodes>,
    /// The values of parameters in trials.
    pub trial: Vec<(Text, Value)>,
    /// The expected time of a match.
    pub match_time: Micros,
}

/// How the rules of a package run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// As a process in the sandbox: the program and its arguments, never empty.
    Run(Vec<String>),
    /// As a WebAssembly module: its file in the folder of the package.
    Wasm(String),
}

impl Carrier {
    /// The program or module, as written in the descriptor.
    pub fn program(&self) -> &str {
        match self {
            Self::Run(command) => &command[0],
            Self::Wasm(file) => file,
        }
    }
}

/// The kind of schedule of a package's tournaments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageSchedule {
    /// All pairs meet.
    RoundRobin,
    /// Tables of several bots.
    Tables,
    /// Every bot plays alone.
    Solo,
    /// Episodes, in which bots carry their scores from match to match.
    Episodes,
}

impl Descriptor {
    /// The game. Its rules run on `host`, and `digest` identifies the files of the package.
    pub fn game(&self, digest: &str, host: Arc<dyn RulesHost>) -> GameInfo {
        let rules = PackageRules::new(PackageInfo {
            seats: self.seats.clone(),
            columns: self.columns.len(),
            clock: self.clock.clone(),
            has_arguments: self.has_arguments,
            params: self.params.clone(),
            episodes: self.episodes.clone(),
            host,
        });
        let most_seats = *self.seats.end();
        let schedule = match self.schedule {
            PackageSchedule::RoundRobin => ScheduleKind::RoundRobin(PairSeats::Both),
            PackageSchedule::Tables if most_seats > 1 => ScheduleKind::Tables(most_seats),
            PackageSchedule::Tables | PackageSchedule::Solo => ScheduleKind::Solo,
            PackageSchedule::Episodes => ScheduleKind::Episodes(EPISODES),
        };
        let is_paired = matches!(schedule, ScheduleKind::RoundRobin(_));
        GameInfo {
            name: self.name.clone().into(),
            title: self.title.clone().into(),
            rules_version: self.version.clone().into(),
            package: Some(digest.to_owned().into()),
            seats: self.seats.clone(),
            columns: self.columns.iter().cloned().map(Into::into).collect(),
            ranking: Ranking::default(),
            params: self.params.clone(),
            seats_param: None,
            boards: None,
            episodes: self.episodes.as_ref().map(|episodes| episodes.info(&self.params)),
            bots: BotInfo { protocol: self.protocol, framing: self.framing.clone(), http: false },
            // The seed decides openings and cards: exchanged seats make up for luck.
            official: Official { shared_deals: is_paired, ..Official::of(schedule) },
            trial: self.trial.clone(),
            playground: Playground::default(),
            guide: BotGuide::default(),
            time: Estimate::fixed(self.match_time.floor_millis()),
            record: Estimate::fixed(RECORD_BYTES),
            reader: ParamsReader::from_rules(rules),
        }
    }
}
