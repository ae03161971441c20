//! One run of `arbiter try`: its bots, the current match and the consoles.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use arbiter_games::{BotName, ClockRules, EntrantName, Game, Micros, Params, Protocol, Seed};
use arbiter_worker::bot::Contestant;
use arbiter_worker::match_runner::{BotState, Entrant, Match};
use arbiter_worker::sandbox::{Host, JailConfig, ScratchDir, slot_cores};
use arbiter_worker::seat::StopSignal;
use tempfile::TempDir;

use super::bot_console::Console;
use super::live_match::{LiveMatch, MatchConfig, MatchEnd, Pace, SeatChoice};
use super::match_hooks::LiveHooks;
use crate::failure::Failure;
use crate::play::bots::{self, Entry, distinct};
use crate::play::params;

/// The name of a person; numbered if it is taken.
const PERSON: &str = "human";

/// Default steps per second of a match that would be too fast to watch.
const DEFAULT_SPEED: u32 = 2;

/// The command-line options.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) game: Game,
    /// The parameters, each as `KEY=VALUE`.
    pub(crate) set: Vec<String>,
    /// The directories of the bots.
    pub(crate) bots: Vec<PathBuf>,
    pub(crate) clock: ClockRules,
    /// Whether the clock also charges people.
    pub(crate) person_clock: bool,
    /// Maximum reply time of a bot in a console.
    pub(crate) limit: Micros,
    /// Where records are saved; none means that they are deleted at the end.
    pub(crate) records: Option<PathBuf>,
}

/// Copies of the bots, as they were on disk when they were loaded.
#[derive(Debug)]
pub(crate) struct Roster {
    pub(crate) entries: Vec<Entry>,
    _copies: TempDir,
}

/// One run of the command.
pub(crate) struct Session {
    pub(crate) options: Options,
    /// The names that the bots had at the start.
    pub(crate) names: Vec<BotName>,
    pub(crate) host: Arc<Host>,
    /// Maximum number of seats.
    pub(crate) most_seats: usize,
    /// A part of the file names of this run's records.
    record_key: String,
    table: Mutex<Table>,
    consoles: Mutex<HashMap<usize, Arc<Console>>>,
    /// The temporary directory, removed when no process uses it.
    scratch: ScratchDir,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The current match.
#[derive(Debug, Default)]
struct Table {
    /// The number of started matches.
    started: u64,
    current: Option<CurrentMatch>,
    /// Whether the session refuses new matches.
    closed: bool,
}

/// A live match and its thread.
#[derive(Debug)]
struct CurrentMatch {
    live_match: Arc<LiveMatch>,
    thread: JoinHandle<()>,
}

impl Session {
    /// Opens a session for these bots; builds them if necessary.
    ///
    /// # Errors
    /// If one of the directories holds no bot, or the bots cannot be copied.
    pub(crate) fn open(
        options: Options,
        host: Arc<Host>,
        scratch: ScratchDir,
        record_key: String,
    ) -> Result<Self, Failure> {
        let mut session = Self {
            options,
            most_seats: 0,
            names: Vec::new(),
            host,
            record_key,
            table: Mutex::default(),
            consoles: Mutex::default(),
            scratch,
        };
        fs::create_dir(session.temporary_records())
            .map_err(|error| temp_dir_error(&session, &error))?;
        let seats = *session.options.game.seats.end();
        session.most_seats = *session.params(seats, false)?.seats().end();
        session.names = session.roster()?.entries.into_iter().map(|entry| entry.name).collect();
        Ok(session)
    }

    /// Loads the bots as they are on disk now, and builds those whose sources have changed.
    pub(crate) fn roster(&self) -> Result<Roster, Failure> {
        let copies = tempfile::tempdir_in(self.scratch.path())
            .map_err(|error| temp_dir_error(self, &error))?;
        let entries = bots::load(&self.options.game, &self.options.bots, copies.path())?;
        Ok(Roster { entries, _copies: copies })
    }

    /// The directory of records that are not saved.
    fn temporary_records(&self) -> PathBuf {
        self.scratch.path().join("records")
    }

    fn lock_table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current match, running or over.
    pub(crate) fn live_match(&self) -> Option<Arc<LiveMatch>> {
        self.lock_table().current.as_ref().map(|current| Arc::clone(&current.live_match))
    }

    /// The parameters of a match with this number of seats. Matches with people are shorter.
    pub(crate) fn params(&self, seats: usize, with_people: bool) -> Result<Params, Failure> {
        let Options { game, set, .. } = &self.options;
        let short = with_people.then_some(&game.playground.params);
        params::parse(game, set, short, Some(seats))
    }

    /// Starts a match with the bots as they are on disk now, and abandons the previous match.
    /// Blocks while bots are built.
    ///
    /// # Errors
    /// If the choices do not fit the game, or a bot cannot be loaded.
    pub(crate) fn start_match(
        self: &Arc<Self>,
        seat_choices: Vec<SeatChoice>,
        seed: String,
    ) -> Result<Arc<LiveMatch>, Failure> {
        let roster = self.roster()?;
        let with_people = seat_choices.contains(&SeatChoice::Person);
        let params = self.params(seat_choices.len(), with_people)?;
        let entrants = entrants(&seat_choices, &roster)?;
        let names: Vec<_> = entrants.iter().map(|entrant| entrant.name.clone()).collect();
        params.start(&names, Seed::of_text(&seed)).map_err(Failure::usage)?;
        let mut table = self.lock_table();
        if table.closed {
            return Err(Failure::Refused("the program is shutting down".to_owned()));
        }
        if let Some(previous) = table.current.take() {
            previous.abandon();
        }
        table.started += 1;
        let config = self.config(table.started, seat_choices, names, seed);
        let is_slowed = !with_people || self.options.game.playground.slow;
        let pace = Pace { speed: is_slowed.then_some(DEFAULT_SPEED), ..Pace::default() };
        let (stop, stop_handle) =
            StopSignal::new_pair().map_err(|error| temp_dir_error(self, &error))?;
        let live_match = Arc::new(LiveMatch::new(config, pace, stop_handle));
        let planned_match = Match {
            params,
            seed: Seed::of_text(&live_match.config.seed),
            clock: self.options.clock,
            jail: JailConfig { cores: slot_cores(0, 1), ..JailConfig::default() },
            entrants,
            record: Some(live_match.config.record.clone()),
        };
        let thread = self
            .play(&live_match, planned_match, stop, roster)
            .map_err(|error| temp_dir_error(self, &error))?;
        table.current = Some(CurrentMatch { live_match: Arc::clone(&live_match), thread });
        Ok(live_match)
    }

    fn config(
        &self,
        number: u64,
        seat_choices: Vec<SeatChoice>,
        names: Vec<BotName>,
        seed: String,
    ) -> MatchConfig {
        let Options { game, clock, person_clock, records, .. } = &self.options;
        let directory = records.clone().unwrap_or_else(|| self.temporary_records());
        MatchConfig {
            number,
            seat_choices,
            names: names.into_iter().map(EntrantName::from).collect(),
            columns: game.columns.clone(),
            seed,
            record: directory.join(format!("{game}-{}-{number:06}.jsonl", self.record_key)),
            person_clock: person_clock.then_some(clock.kind),
            startup_is_free: game.bots.protocol == Protocol::Stdio,
        }
    }

    /// Plays a match on a new thread.
    fn play(
        self: &Arc<Self>,
        live_match: &Arc<LiveMatch>,
        planned_match: Match,
        stop: StopSignal,
        roster: Roster,
    ) -> io::Result<JoinHandle<()>> {
        let session = Arc::clone(self);
        let live_match = Arc::clone(live_match);
        thread::Builder::new().name("match".to_owned()).spawn(move || {
            let mut hooks = LiveHooks(Arc::clone(&live_match));
            let play = || planned_match.play_with_hooks(&mut hooks, &session.host, &Arc::new(stop));
            if let Ok(played) = catch_unwind(AssertUnwindSafe(play)) {
                live_match.end(played);
            } else {
                let reason = "internal error; see the standard error of this program";
                live_match.finish(MatchEnd::Broken(reason.to_owned()));
            }
            drop(roster);
        })
    }

    /// Returns the console of a bot and creates it if necessary; none if there is no such bot.
    pub(crate) fn console(self: &Arc<Self>, bot: usize) -> Option<Arc<Console>> {
        let name = self.names.get(bot)?;
        let mut consoles = self.consoles.lock().unwrap_or_else(PoisonError::into_inner);
        let console =
            consoles.entry(bot).or_insert_with(|| Arc::new(Console::new(bot, name.clone())));
        Some(Arc::clone(console))
    }

    /// Ends the match and the consoles, and waits until they have ended.
    pub(crate) fn close(&self) {
        let current = {
            let mut table = self.lock_table();
            table.closed = true;
            table.current.take()
        };
        if let Some(current) = current {
            current.abandon();
        }
        let consoles: Vec<_> = {
            let mut consoles = self.consoles.lock().unwrap_or_else(PoisonError::into_inner);
            consoles.drain().map(|(_, console)| console).collect()
        };
        for console in consoles {
            console.close();
        }
    }
}

impl CurrentMatch {
    /// Abandons the match and waits for the end of its thread.
    fn abandon(self) {
        self.live_match.abandon();
        // Ignore a panic: it was reported already.
        drop(self.thread.join());
    }
}

/// The entrants of the seats, with distinct names.
fn entrants(seat_choices: &[SeatChoice], roster: &Roster) -> Result<Vec<Entrant>, Failure> {
    let mut entrants: Vec<Entrant> = Vec::new();
    for seat_choice in seat_choices {
        let (name, bot) = match seat_choice {
            SeatChoice::Person => (PERSON.parse().map_err(Failure::usage)?, Contestant::Person),
            SeatChoice::Bot(index) => {
                let entry = roster
                    .entries
                    .get(*index)
                    .ok_or_else(|| Failure::Usage("no such bot".to_owned()))?;
                (entry.name.clone(), Arc::clone(&entry.bot).into())
            }
        };
        let name = distinct(&name, |name| entrants.iter().any(|other| other.name == *name))
            .map_err(Failure::usage)?;
        entrants.push(Entrant { bot, name, state: BotState::Fresh });
    }
    Ok(entrants)
}

fn temp_dir_error(session: &Session, error: &io::Error) -> Failure {
    let directory = session.scratch.path().display();
    Failure::Refused(format!("{directory}: {error}; set TMPDIR to another directory"))
}
