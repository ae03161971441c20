//! Trials: unpack, build and test a version before it enters, on a worker or on its author's
//! machine.
//!
//! A trial is a few short matches with the bot in every seat, against house bots or itself. It
//! fails at the first forfeit, and reports the evidence. Tolerated deviations become warnings.
//! Errors of the system are faults, not a failed trial.

mod evidence;
mod warnings;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arbiter_games::{BotName, ClockRules, Params, Protocol, Seed, Value};
use arbiter_proto::trial::{Measurements, ReplyTimeSummary};
use arbiter_proto::tricks_http::HTTP_ONLY_FOR_TRICKS;

use crate::bot::{Bot, Contestant};
use crate::build::{self, BuildOptions};
use crate::bundle::{self, Bundle, BundleError};
use crate::fault::{Context as _, Fault};
use crate::match_runner::{BotState, Entrant, Match, MatchOutcome};
use crate::runtimes;
use crate::sandbox::{BotSource, Host, JailConfig, Limits};
use crate::seat::StopSignal;

/// Maximum number of opponents in games for two.
const MAX_OPPONENTS: usize = 2;

/// Number of matches against itself if there are no opponents.
const SELF_MATCHES: usize = 2;

/// A bot in a trial.
#[derive(Clone, Debug)]
pub struct Player {
    /// Its name in the match.
    pub name: BotName,
    /// The bot.
    pub bot: Contestant,
}

/// The settings of a trial.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Parameters of the tournament. A trial shortens its matches where the game allows it.
    pub params: Params,
    /// Source of all randomness.
    pub seed: Seed,
    /// The number of seats of each match; one that the game allows.
    pub seats: usize,
    /// How time is charged.
    pub clock: ClockRules,
    /// Limits and processors of the bots.
    pub jail: JailConfig,
    /// Name of the bot under trial.
    pub name: BotName,
    /// Opponents. Empty: it plays against itself.
    pub opponents: Vec<Player>,
}

/// The outcome of a trial.
#[derive(Clone, Debug, Default)]
pub struct TrialOutcome {
    /// Why it failed, if it did.
    pub failure: Option<TrialFailure>,
    /// Measurements of its replies.
    pub measurements: Measurements,
    /// Tolerated deviations, one line each.
    pub warnings: Vec<String>,
    /// The last bytes of the build log.
    pub log: String,
    /// The built bundle, if there was a build and the trial passed.
    pub program: Option<Bundle>,
    /// The program that the version needs and that this machine lacks, if it failed for that.
    pub missing_program: Option<String>,
}

/// Why a trial failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrialFailure {
    /// One line.
    pub reason: String,
    /// Evidence in several lines; may be empty.
    pub evidence: String,
}

/// Progress of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialProgress {
    /// The build is running.
    Building,
    /// Number of finished matches, and of all matches.
    Played(usize, usize),
}

impl TrialOutcome {
    fn failed(reason: impl Into<String>) -> Self {
        let failure = TrialFailure { reason: reason.into(), evidence: String::new() };
        Self { failure: Some(failure), ..Self::default() }
    }

    /// The machine lacks a program, which `role` names.
    fn without_program(role: &str, program: &str) -> Self {
        let reason = format!(
            "{role} `{program}` is not installed on the machine that tried it; the page \"How to \
             play\" of a tournament lists what its workers have"
        );
        let missing_program = Some(program.to_owned());
        Self { missing_program, ..Self::failed(reason) }
    }
}

impl Trial {
    /// Runs the trial of a submitted bundle. `scratch` is an empty directory; files remain in it.
    /// A fault is no failure of the version.
    pub fn run(
        &self,
        host: &Host,
        stop: &Arc<StopSignal>,
        bytes: &[u8],
        scratch: &Path,
        on_progress: &mut dyn FnMut(TrialProgress),
    ) -> Result<TrialOutcome, Fault> {
        let tree = scratch.join("bot");
        fs::create_dir(&tree).fault("cannot create a directory for a bot")?;
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
        let result = self.build_and_play(host, stop, &tree, digest, scratch, on_progress);
        host.remove_copies(&BotSource::Directory(tree));
        result
    }

    fn build_and_play(
        &self,
        host: &Host,
        stop: &Arc<StopSignal>,
        tree: &Path,
        digest: blake3::Hash,
        scratch: &Path,
        on_progress: &mut dyn FnMut(TrialProgress),
    ) -> Result<TrialOutcome, Fault> {
        on_progress(TrialProgress::Building);
        if let Ok(Some(command)) = Bot::build_of(tree)
            && !command[0].contains('/')
            && runtimes::find(&command[0], &host.program_path()).is_none()
        {
            return Ok(TrialOutcome::without_program("its build program", &command[0]));
        }
        let options = BuildOptions { cores: self.jail.cores.clone(), ..BuildOptions::default() };
        let build_outcome = match build::build(host, stop, tree, &options)? {
            Ok(outcome) => outcome,
            Err(error) => return Ok(TrialOutcome::failed(error.within(tree))),
        };
        let log = build_outcome.as_ref().map(|build| build.log.clone()).unwrap_or_default();
        if let Some(why) = build_outcome.as_ref().and_then(|build| build.failure.clone()) {
            return Ok(TrialOutcome { log, ..TrialOutcome::failed(why) });
        }
        let bot = match Bot::unpacked(tree, digest) {
            Ok(bot) => bot,
            Err(error) => {
                let failed = match error.missing_program() {
                    Some(program) => TrialOutcome::without_program("its program", program),
                    None => TrialOutcome::failed(error.within(tree)),
                };
                return Ok(TrialOutcome { log, ..failed });
            }
        };
        let game = self.params.game();
        if !bot.protocol.is_none_or(|protocol| game.supports(protocol)) {
            let why = format!("{HTTP_ONLY_FOR_TRICKS}; use stdio or exec");
            return Ok(TrialOutcome { log, ..TrialOutcome::failed(why) });
        }
        let built_bundle = match build_outcome.as_ref().map(|_| Bundle::of(&bot)).transpose() {
            Ok(bundle) => bundle,
            Err(BundleError::Invalid(why)) => {
                let why = format!("the build output cannot be packed: {why}");
                return Ok(TrialOutcome { log, ..TrialOutcome::failed(why) });
            }
            Err(error) => return Err(Fault::new("cannot pack the build output", error)),
        };
        let bot = Contestant::Bot(Arc::new(bot));
        let mut outcome = self.play(host, stop, &bot, scratch, on_progress)?;
        outcome.measurements.build_ms =
            build_outcome.map(|build| u64::try_from(build.time.as_millis()).unwrap_or(u64::MAX));
        let program = built_bundle.filter(|_| outcome.failure.is_none());
        Ok(TrialOutcome { log, program, ..outcome })
    }

    /// Plays the matches until the bot forfeits one.
    fn play(
        &self,
        host: &Host,
        stop: &Arc<StopSignal>,
        bot: &Contestant,
        scratch: &Path,
        on_progress: &mut dyn FnMut(TrialProgress),
    ) -> Result<TrialOutcome, Fault> {
        let tables = self.tables(bot);
        let mut observations = Observations::default();
        for (number, table) in tables.iter().enumerate() {
            on_progress(TrialProgress::Played(number, tables.len()));
            let record = scratch.join(format!("trial{number}.jsonl"));
            let trial_match = Match {
                params: shorten(&self.params),
                seed: self.seed.derive(&format!("match {number}")),
                clock: self.clock,
                jail: self.jail.clone(),
                entrants: table.iter().map(TrialSeat::entrant).collect(),
                record: Some(record.clone()),
            };
            let outcome = trial_match.play(host, stop)?;
            if let Some(failure) =
                self.observe(bot, number, table, &outcome, &record, &mut observations)
            {
                let failure = Some(failure);
                return Ok(TrialOutcome {
                    failure,
                    ..observations.into_outcome(&self.jail.limits)
                });
            }
        }
        on_progress(TrialProgress::Played(tables.len(), tables.len()));
        Ok(observations.into_outcome(&self.jail.limits))
    }

    /// Records the observations of a match. Returns the failure if the bot forfeited.
    fn observe(
        &self,
        bot: &Contestant,
        number: usize,
        table: &[TrialSeat],
        outcome: &MatchOutcome,
        record: &Path,
        observations: &mut Observations,
    ) -> Option<TrialFailure> {
        observations.measurements.matches += 1;
        let game = self.params.game();
        let runs_whole_match = bot.protocol(game) != Protocol::Exec;
        let seats = outcome.results.iter().zip(&outcome.seats).zip(table);
        let mut failure = None;
        for (seat, ((result, summary), trial_seat)) in (1..).zip(seats) {
            if !trial_seat.is_subject {
                continue;
            }
            let times = summary.replies.iter().map(|time| u64::try_from(time.0).unwrap_or(0));
            let mut times = times.peekable();
            if runs_whole_match && let Some(first) = times.next() {
                observations.starts.push(first);
            }
            observations.times.extend(times);
            observations.memory = observations.memory.max(summary.usage.memory.map(|peak| peak.0));
            let late_forfeit = summary.usage.late_failure.as_ref().map(|failure| failure.forfeit);
            let forfeit = result.forfeit.or(late_forfeit);
            let has_failed = forfeit.is_some();
            let warnings = warnings::from_match(game, result.bad_answers, summary, has_failed);
            observations.warn(warnings);
            if let Some(forfeit) = forfeit {
                let others: Vec<_> =
                    table.iter().filter(|other| !other.is_subject).map(TrialSeat::name).collect();
                let opponents =
                    if others.is_empty() { "itself".to_owned() } else { others.join(", ") };
                let match_name = format!("match {}, seat {seat}, against {opponents}", number + 1);
                failure.get_or_insert_with(|| {
                    evidence::describe(game, bot, forfeit, &match_name, seat, summary, record)
                });
            } else if let Some(failure) = &summary.failure {
                let hint = evidence::hint(game, bot, summary);
                let warning = format!("bad reply: {failure}");
                observations.warn([warning].into_iter().chain(hint).collect());
            }
        }
        failure
    }

    /// The opponents for whom there are seats.
    pub fn playing_opponents(&self) -> impl Iterator<Item = &Player> + Clone {
        let count = if self.seats == 2 { MAX_OPPONENTS } else { self.seats - 1 };
        self.opponents.iter().take(count)
    }

    /// The seats of each match.
    fn tables(&self, bot: &Contestant) -> Vec<Vec<TrialSeat>> {
        let seats = self.seats;
        let subject = |name: BotName| TrialSeat {
            player: Player { name, bot: bot.clone() },
            is_subject: true,
        };
        if self.opponents.is_empty() {
            let mut table: Vec<TrialSeat> = Vec::new();
            for _ in 0..seats {
                let used: Vec<_> = table.iter().map(|trial_seat| &trial_seat.player.name).collect();
                let name = distinct(&self.name, &used);
                table.push(subject(name));
            }
            return vec![table; SELF_MATCHES];
        }
        // Games for two have a match per opponent. In larger games the opponents share a match.
        let groups: Vec<Vec<&Player>> = if seats == 2 {
            self.playing_opponents().map(|opponent| vec![opponent]).collect()
        } else {
            vec![self.playing_opponents().cycle().take(seats - 1).collect()]
        };
        let mut tables = Vec::new();
        for group in groups {
            for subject_seat in 0..seats {
                let mut table: Vec<TrialSeat> = Vec::new();
                let mut names = vec![self.name.clone()];
                for player in &group {
                    let name = distinct(&player.name, &names.iter().collect::<Vec<_>>());
                    names.push(name.clone());
                    let player = Player { name, bot: player.bot.clone() };
                    table.push(TrialSeat { player, is_subject: false });
                }
                table.insert(subject_seat, subject(self.name.clone()));
                tables.push(table);
            }
        }
        tables
    }
}

/// A seat in a match of a trial.
#[derive(Clone, Debug)]
struct TrialSeat {
    player: Player,
    /// Whether this is the version under trial.
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

/// A name that is not in `used`: `name` itself, or `name` with a number.
fn distinct(name: &BotName, used: &[&BotName]) -> BotName {
    // A long name must be cut to make space for a number.
    let stem: String = name.as_str().chars().take(56).collect();
    let variants = (2..).filter_map(|number| format!("{stem}-{number}").parse().ok());
    let mut names = std::iter::once(name.clone()).chain(variants);
    names.find(|name| !used.contains(&name)).expect("there are more numbers than names")
}

/// Observations from the matches so far.
#[derive(Debug, Default)]
struct Observations {
    measurements: Measurements,
    /// Times of the first replies of processes, in microseconds.
    starts: Vec<u64>,
    /// Times of all other replies, in microseconds.
    times: Vec<u64>,
    /// Peak memory, in bytes.
    memory: Option<u64>,
    warnings: Vec<String>,
}

impl Observations {
    /// Adds warnings that are new.
    fn warn(&mut self, warnings: Vec<String>) {
        for warning in warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }

    fn into_outcome(mut self, limits: &Limits) -> TrialOutcome {
        let start_us = self.starts.iter().max().copied();
        self.warn(warnings::from_measurements(start_us, self.memory, limits));
        let replies = ReplyTimeSummary::of(self.times);
        let measurements =
            Measurements { start_us, replies, memory: self.memory, ..self.measurements };
        TrialOutcome { measurements, warnings: self.warnings, ..TrialOutcome::default() }
    }
}

/// Parameters for shorter matches, where the game has them.
fn shorten(params: &Params) -> Params {
    let mut short = params.clone();
    for (key, trial) in &params.game().trial {
        let value = match (params.values().get(key), trial) {
            (Some(Value::Integer(current)), Value::Integer(max)) => {
                Value::Integer(*current.min(max))
            }
            _ => trial.clone(),
        };
        // Values below the minimum of a parameter are not applied.
        short = short.with(key, value).unwrap_or(short);
    }
    short
}

#[cfg(test)]
mod tests {
    use arbiter_games::{Game, bitwa, blackjack, gomoku, tricks, wojna};

    use super::*;

    #[test]
    fn trials_are_shorter_than_matches() {
        for (game, expected) in [
            (wojna::game(), Some(("deals", 2))),
            (bitwa::game(), Some(("rounds", 40))),
            (tricks::game(), Some(("tables", 2))),
            (blackjack::game(), None),
            (gomoku::game(), None),
        ] {
            let official = Params::official(&game);
            let short = shorten(&official);
            match expected {
                Some((key, max)) => {
                    let value = short.values().get(key).and_then(Value::as_integer);
                    assert_eq!(value, Some(max), "{game}");
                }
                None => assert_eq!(short, official),
            }
        }
    }

    #[test]
    fn the_bot_plays_in_every_seat() {
        let name = |name: &str| -> BotName { name.parse().unwrap() };
        let unplayable = Contestant::Unplayable { digest: "d".to_owned(), reason: "w".to_owned() };
        let trial = |game: Game, seats: usize, opponents: &[&str]| Trial {
            params: Params::official(&game),
            seed: Seed([1; 32]),
            seats,
            clock: ClockRules::OFFICIAL,
            jail: JailConfig::default(),
            name: name("a"),
            opponents: opponents
                .iter()
                .map(|other| Player { name: name(other), bot: unplayable.clone() })
                .collect(),
        };
        let seats = |trial: &Trial| -> Vec<String> {
            let tables = trial.tables(&unplayable);
            let names = |table: &Vec<TrialSeat>| {
                table.iter().map(TrialSeat::name).collect::<Vec<_>>().join(" ")
            };
            tables.iter().map(names).collect()
        };
        assert_eq!(
            seats(&trial(gomoku::game(), 2, &["a", "b", "c"])),
            ["a a-2", "a-2 a", "a b", "b a"]
        );
        assert_eq!(seats(&trial(gomoku::game(), 2, &[])), ["a a-2", "a a-2"]);
        let four = ["a b c b-2", "b a c b-2", "b c a b-2", "b c b-2 a"];
        assert_eq!(seats(&trial(wojna::game(), 4, &["b", "c"])), four);
        let three = ["a b c", "b a c", "b c a"];
        assert_eq!(seats(&trial(wojna::game(), 3, &["b", "c", "d"])), three);
        assert_eq!(seats(&trial(blackjack::game(), 1, &["b"])), ["a"]);
    }
}
