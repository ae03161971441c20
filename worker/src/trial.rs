//! Trials: a version is unpacked, built and played before it enters, on a worker or on its author's
//! own machine.
//!
//! A trial is a few short matches with the bot in every seat, against house bots or itself. It
//! fails at the first forfeit, with what led to it; what is only bad manners becomes a warning.
//! Whatever fails through no fault of the bot's is a fault as everywhere, and no verdict.

mod evidence;
mod warnings;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arbiter_games::{BotName, ClockRules, Params, Protocol, Seed, Value};
use arbiter_proto::trial::{Measurements, ReplyTimeSummary};
use arbiter_proto::tricks_http::NO_OTHER_GAME;

use crate::bot::{Bot, Contestant};
use crate::build::{self, BuildOptions};
use crate::bundle::{self, Bundle, BundleError};
use crate::fault::{Context as _, Fault};
use crate::match_runner::{BotState, Entrant, Match, MatchOutcome};
use crate::sandbox::{BotSource, Host, JailConfig, Limits};
use crate::seat::StopSignal;

/// How many opponents are met at tables for two.
const RIVALS: usize = 2;

/// How often a bot meets itself where there is nobody else.
const MIRRORS: usize = 2;

/// Who takes part in a trial.
#[derive(Clone, Debug)]
pub struct Player {
    /// The name it plays by.
    pub name: BotName,
    /// The bot.
    pub bot: Contestant,
}

/// How the matches of a trial are played.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The parameters of the tournament's matches; those of a trial are shorter where they can be.
    pub params: Params,
    /// What all its chance comes from.
    pub seed: Seed,
    /// How time is charged.
    pub clock: ClockRules,
    /// On which terms the bots play.
    pub terms: JailConfig,
    /// The name that the version enters by.
    pub name: BotName,
    /// Whom it is tried against; itself if there is nobody.
    pub opponents: Vec<Player>,
}

/// What a trial came to.
#[derive(Clone, Debug, Default)]
pub struct TrialOutcome {
    /// Why it failed, if it did.
    pub failing: Option<TrialFailure>,
    /// What was measured.
    pub figures: Measurements,
    /// What is not forbidden and not as it should be, a line each.
    pub warnings: Vec<String>,
    /// The end of what its build wrote.
    pub log: String,
    /// What was built, if something was and it passed.
    pub program: Option<Bundle>,
}

/// Why a trial failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrialFailure {
    /// One line.
    pub verdict: String,
    /// What shows it: lines, perhaps none.
    pub evidence: String,
}

/// How far a trial is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialProgress {
    /// It is being built.
    Building,
    /// So many matches of so many were played.
    Played(usize, usize),
}

impl TrialOutcome {
    fn failed(verdict: impl Into<String>) -> Self {
        let failing = TrialFailure { verdict: verdict.into(), evidence: String::new() };
        Self { failing: Some(failing), ..Self::default() }
    }
}

impl Trial {
    /// Tries the version that was submitted as this bundle. `scratch` is an empty directory, which
    /// is not empty afterwards; `tell` hears how far it is.
    /// After a fault nothing is known about the version.
    ///
    /// # Errors
    /// A fault if something of ours failed: then nothing is known about the version.
    pub fn examine(
        &self,
        host: &Host,
        stop: &Arc<StopSignal>,
        bytes: &[u8],
        scratch: &Path,
        tell: &mut dyn FnMut(TrialProgress),
    ) -> Result<TrialOutcome, Fault> {
        let tree = scratch.join("bot");
        fs::create_dir(&tree).fault("cannot make a directory for a bot")?;
        match bundle::unpack(bytes, &tree) {
            Ok(()) => {}
            Err(BundleError::Invalid(why)) => {
                return Ok(TrialOutcome::failed(format!("its bundle cannot be unpacked: {why}")));
            }
            Err(error @ BundleError::System { .. }) => {
                return Err(Fault::new("cannot unpack a bundle", error));
            }
        }
        let digest = blake3::hash(bytes);
        let played = self.build_and_play(host, stop, &tree, digest, scratch, tell);
        host.remove_copies(&BotSource::Directory(tree));
        played
    }

    fn build_and_play(
        &self,
        host: &Host,
        stop: &Arc<StopSignal>,
        tree: &Path,
        digest: blake3::Hash,
        scratch: &Path,
        tell: &mut dyn FnMut(TrialProgress),
    ) -> Result<TrialOutcome, Fault> {
        tell(TrialProgress::Building);
        let rules = BuildOptions { cores: self.terms.cores.clone(), ..BuildOptions::default() };
        let built = match build::build(host, stop, tree, &rules)? {
            Ok(built) => built,
            Err(error) => return Ok(TrialOutcome::failed(error.within(tree))),
        };
        let log = built.as_ref().map(|built| built.log.clone()).unwrap_or_default();
        if let Some(why) = built.as_ref().and_then(|built| built.failure.clone()) {
            return Ok(TrialOutcome { log, ..TrialOutcome::failed(why) });
        }
        let bot = match Bot::unpacked(tree, digest) {
            Ok(bot) => bot,
            Err(error) => {
                return Ok(TrialOutcome { log, ..TrialOutcome::failed(error.within(tree)) });
            }
        };
        let game = self.params.game();
        if !bot.protocol.is_none_or(|protocol| game.speaks(protocol)) {
            let why = format!("{NO_OTHER_GAME}; use stdio or exec");
            return Ok(TrialOutcome { log, ..TrialOutcome::failed(why) });
        }
        let program = match built.as_ref().map(|_| Bundle::of(&bot)).transpose() {
            Ok(program) => program,
            Err(BundleError::Invalid(why)) => {
                let why = format!("what its build made cannot be packed: {why}");
                return Ok(TrialOutcome { log, ..TrialOutcome::failed(why) });
            }
            Err(error) => return Err(Fault::new("cannot pack what was built", error)),
        };
        let bot = Contestant::Bot(Arc::new(bot));
        let mut tried = self.play(host, stop, &bot, scratch, tell)?;
        tried.figures.build_ms =
            built.map(|built| u64::try_from(built.time.as_millis()).unwrap_or(u64::MAX));
        let program = program.filter(|_| tried.failing.is_none());
        Ok(TrialOutcome { log, program, ..tried })
    }

    /// Plays the matches of a trial, until the bot forfeits one.
    fn play(
        &self,
        host: &Host,
        stop: &Arc<StopSignal>,
        bot: &Contestant,
        scratch: &Path,
        tell: &mut dyn FnMut(TrialProgress),
    ) -> Result<TrialOutcome, Fault> {
        let tables = self.tables(bot);
        let mut seen = Observations::default();
        for (number, table) in tables.iter().enumerate() {
            tell(TrialProgress::Played(number, tables.len()));
            let record = scratch.join(format!("trial{number}.jsonl"));
            let played = Match {
                params: shortened(&self.params),
                seed: self.seed.derive(&format!("match {number}")),
                clock: self.clock,
                terms: self.terms.clone(),
                entrants: table.iter().map(TrialSeat::entrant).collect(),
                record: Some(record.clone()),
            };
            let outcome = played.play(host, stop)?;
            if let Some(failing) = self.look(bot, number, table, &outcome, &record, &mut seen) {
                let failing = Some(failing);
                return Ok(TrialOutcome { failing, ..seen.into_tried(&self.terms.limits) });
            }
        }
        tell(TrialProgress::Played(tables.len(), tables.len()));
        Ok(seen.into_tried(&self.terms.limits))
    }

    /// Takes in what a match showed: why the bot failed, if it did.
    fn look(
        &self,
        bot: &Contestant,
        number: usize,
        table: &[TrialSeat],
        outcome: &MatchOutcome,
        record: &Path,
        seen: &mut Observations,
    ) -> Option<TrialFailure> {
        seen.figures.matches += 1;
        let game = self.params.game();
        let standing = bot.protocol(game) != Protocol::Exec;
        let seats = outcome.standings.iter().zip(&outcome.seats).zip(table);
        let mut failing = None;
        for (seat, ((standings, report), sitting)) in (1..).zip(seats) {
            if !sitting.is_subject {
                continue;
            }
            let times = report.replies.iter().map(|time| u64::try_from(time.0).unwrap_or(0));
            let mut times = times.peekable();
            if standing && let Some(first) = times.next() {
                seen.starts.push(first);
            }
            seen.times.extend(times);
            seen.memory = seen.memory.max(report.remains.memory.map(|peak| peak.0));
            seen.warn(warnings::of(game, standings.bad_answers, report));
            let late = report.remains.late_failure.as_ref().map(|failure| failure.forfeit);
            if let Some(forfeit) = standings.forfeit.or(late) {
                let others: Vec<_> =
                    table.iter().filter(|other| !other.is_subject).map(TrialSeat::name).collect();
                let against =
                    if others.is_empty() { "itself".to_owned() } else { others.join(", ") };
                let place = format!("match {}, seat {seat}, against {against}", number + 1);
                failing.get_or_insert_with(|| {
                    evidence::failing(game, forfeit, &place, seat, report, record)
                });
            } else if let Some(detail) = &report.detail {
                seen.warn(vec![format!("an answer was bad: {detail}")]);
            }
        }
        failing
    }

    /// Who sits where in each match.
    fn tables(&self, bot: &Contestant) -> Vec<Vec<TrialSeat>> {
        let seats = *self.params.seats().end();
        let subject = |name: BotName| TrialSeat {
            player: Player { name, bot: bot.clone() },
            is_subject: true,
        };
        if self.opponents.is_empty() {
            let mut table: Vec<TrialSeat> = Vec::new();
            for _ in 0..seats {
                let taken: Vec<_> = table.iter().map(|sitting| &sitting.player.name).collect();
                let name = distinct(&self.name, &taken);
                table.push(subject(name));
            }
            return vec![table; MIRRORS];
        }
        // At tables for two each opponent is a table; at larger ones they sit together.
        let companies: Vec<Vec<&Player>> = if seats == 2 {
            self.opponents.iter().take(RIVALS).map(|rival| vec![rival]).collect()
        } else {
            vec![self.opponents.iter().cycle().take(seats - 1).collect()]
        };
        let mut tables = Vec::new();
        for company in companies {
            for place in 0..seats {
                let mut table: Vec<TrialSeat> = Vec::new();
                let mut names = vec![self.name.clone()];
                for player in &company {
                    let name = distinct(&player.name, &names.iter().collect::<Vec<_>>());
                    names.push(name.clone());
                    let player = Player { name, bot: player.bot.clone() };
                    table.push(TrialSeat { player, is_subject: false });
                }
                table.insert(place, subject(self.name.clone()));
                tables.push(table);
            }
        }
        tables
    }
}

/// Who sits at a place of a trial.
#[derive(Clone, Debug)]
struct TrialSeat {
    player: Player,
    /// Whether it is the version that is tried.
    is_subject: bool,
}

impl TrialSeat {
    fn entrant(&self) -> Entrant {
        let Player { name, bot } = self.player.clone();
        Entrant { bot, name, state: BotState::Fresh }
    }

    fn name(&self) -> String {
        self.player.name.to_string()
    }
}

/// A name that none of `taken` is: this one, or one with a number.
fn distinct(name: &BotName, taken: &[&BotName]) -> BotName {
    // A name of the longest kind has no room for a number.
    let stem: String = name.as_str().chars().take(56).collect();
    let variants = (2..).filter_map(|number| format!("{stem}-{number}").parse().ok());
    let mut names = std::iter::once(name.clone()).chain(variants);
    names.find(|name| !taken.contains(&name)).expect("there are more numbers than names")
}

/// What was seen in the matches so far.
#[derive(Debug, Default)]
struct Observations {
    figures: Measurements,
    /// How long the first answers of processes took, in microseconds, ...
    starts: Vec<u64>,
    /// ... and all the others.
    times: Vec<u64>,
    /// The most memory in use, in bytes.
    memory: Option<u64>,
    warnings: Vec<String>,
}

impl Observations {
    /// Adds warnings, each once.
    fn warn(&mut self, warnings: Vec<String>) {
        for warning in warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }

    fn into_tried(mut self, limits: &Limits) -> TrialOutcome {
        let start_us = self.starts.iter().max().copied();
        self.warn(warnings::of_figures(start_us, self.memory, limits));
        let replies = ReplyTimeSummary::of(self.times);
        let figures = Measurements { start_us, replies, memory: self.memory, ..self.figures };
        TrialOutcome { figures, warnings: self.warnings, ..TrialOutcome::default() }
    }
}

/// The parameters of a match that shows the same in less time, where the game has such.
fn shortened(params: &Params) -> Params {
    let mut short = params.clone();
    for (key, most) in &params.game().trial {
        let now = params.values().get(key).and_then(Value::as_integer);
        let most = now.and_then(|now| u32::try_from(now).ok()).map_or(*most, |now| now.min(*most));
        // Parameters that no match has so short are left as they are.
        short = short.with(key, most).unwrap_or(short);
    }
    short
}

#[cfg(test)]
mod tests {
    use arbiter_games::{Game, bitwa, blackjack, gomoku, tricks, wojna};

    use super::*;

    #[test]
    fn trials_are_shorter_than_matches() {
        for (game, due) in [
            (wojna::game(), Some(("deals", 2))),
            (bitwa::game(), Some(("rounds", 40))),
            (tricks::game(), Some(("tables", 2))),
            (blackjack::game(), None),
            (gomoku::game(), None),
        ] {
            let official = Params::official(&game);
            let short = shortened(&official);
            match due {
                Some((key, most)) => {
                    let value = short.values().get(key).and_then(Value::as_integer);
                    assert_eq!(value, Some(most), "{game}");
                }
                None => assert_eq!(short, official),
            }
        }
    }

    #[test]
    fn the_bot_sits_everywhere() {
        let name = |name: &str| -> BotName { name.parse().unwrap() };
        let unfit = Contestant::Unplayable { digest: "d".to_owned(), reason: "w".to_owned() };
        let trial = |game: Game, opponents: &[&str]| Trial {
            params: Params::official(&game),
            seed: Seed([1; 32]),
            clock: ClockRules::OFFICIAL,
            terms: JailConfig::default(),
            name: name("a"),
            opponents: opponents
                .iter()
                .map(|other| Player { name: name(other), bot: unfit.clone() })
                .collect(),
        };
        let seats = |trial: &Trial| -> Vec<String> {
            let tables = trial.tables(&unfit);
            let names = |table: &Vec<TrialSeat>| {
                table.iter().map(TrialSeat::name).collect::<Vec<_>>().join(" ")
            };
            tables.iter().map(names).collect()
        };
        assert_eq!(
            seats(&trial(gomoku::game(), &["a", "b", "c"])),
            ["a a-2", "a-2 a", "a b", "b a"]
        );
        assert_eq!(seats(&trial(gomoku::game(), &[])), ["a a-2", "a a-2"]);
        let four = ["a b c b-2", "b a c b-2", "b c a b-2", "b c b-2 a"];
        assert_eq!(seats(&trial(wojna::game(), &["b", "c"])), four);
    }
}
