//! One run of `arbiter try`: its bots, the current match and the consoles.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use arbiter_games::{BotName, ClockRules, Game, Micros, Params, Protocol, Seed};
use arbiter_worker::bot::Contestant;
use arbiter_worker::match_runner::{BotState, Entrant, Match};
use arbiter_worker::sandbox::{Host, JailConfig, ScratchDir, slot_cores};
use arbiter_worker::seat::StopSignal;
use tempfile::TempDir;

use super::console::Console;
use super::live_match::{LiveMatch, MatchConfig, MatchEnd, Pace, SeatChoice};
use super::observers::Observers;
use crate::failure::Failure;
use crate::play::bots::{self, Entry, distinct};
use crate::play::params;

/// What a person plays by, unless the bot of that name is there too.
const PERSON: &str = "human";

/// Pictures a second, at first, where the bots alone would be too quick to be followed.
const SPEED: u32 = 2;

/// The command-line options.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) game: Game,
    /// `KEY=VALUE`, each checked.
    pub(crate) set: Vec<String>,
    /// Where the bots are.
    pub(crate) bots: Vec<PathBuf>,
    pub(crate) clock: ClockRules,
    /// Whether people have a clock too.
    pub(crate) person_clock: bool,
    /// How long a bot in a console may take to answer.
    pub(crate) limit: Micros,
    /// Where records are kept, if they are.
    pub(crate) records: Option<PathBuf>,
}

/// The bots as they were on disk at a moment, copied.
#[derive(Debug)]
pub(crate) struct Roster {
    pub(crate) entries: Vec<Entry>,
    _copies: TempDir,
}

/// One run of the command.
pub(crate) struct Session {
    pub(crate) options: Options,
    /// The names of the bots, as they were called at the start.
    pub(crate) names: Vec<BotName>,
    pub(crate) host: Host,
    /// How many can sit at the table.
    pub(crate) most_seats: usize,
    /// What the names of this run's records begin with.
    mark: String,
    table: Mutex<Table>,
    consoles: Mutex<HashMap<usize, Arc<Console>>>,
    /// Removed when everything that is in it has ended.
    scratch: ScratchDir,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The table, and who is at it.
#[derive(Debug, Default)]
struct Table {
    /// How many matches were begun.
    begun: u64,
    now: Option<CurrentMatch>,
    /// Nothing begins any more.
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
    /// If one of them is none, or there is no room for copies of them.
    pub(crate) fn open(
        options: Options,
        host: Host,
        scratch: ScratchDir,
        mark: String,
    ) -> Result<Self, Failure> {
        let mut session = Self {
            options,
            most_seats: 0,
            names: Vec::new(),
            host,
            mark,
            table: Mutex::default(),
            consoles: Mutex::default(),
            scratch,
        };
        fs::create_dir(session.own_records()).map_err(|error| unusable(&session, &error))?;
        let seats = *session.options.game.seats.end();
        session.most_seats = *session.params(seats, false)?.seats().end();
        session.names = session.roster()?.entries.into_iter().map(|entry| entry.name).collect();
        Ok(session)
    }

    /// Reads the bots as they are now on disk, and builds those whose sources have changed.
    pub(crate) fn roster(&self) -> Result<Roster, Failure> {
        let copies = tempfile::tempdir_in(self.scratch.path());
        let copies = copies.map_err(|error| unusable(self, &error))?;
        let entries = bots::load(&self.options.game, &self.options.bots, copies.path())?;
        Ok(Roster { entries, _copies: copies })
    }

    /// Records that nobody asked to be kept.
    fn own_records(&self) -> PathBuf {
        self.scratch.path().join("records")
    }

    fn at_table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The match at the table, being played or over.
    pub(crate) fn live_match(&self) -> Option<Arc<LiveMatch>> {
        self.at_table().now.as_ref().map(|seated| Arc::clone(&seated.live_match))
    }

    /// The parameters of a match of so many, with or without people among them.
    pub(crate) fn params(&self, seats: usize, with_people: bool) -> Result<Params, Failure> {
        let Options { game, set, .. } = &self.options;
        let short = with_people.then_some(&game.playground.params);
        params::parse(game, set, short, Some(seats))
    }

    /// Begins a match between these, with the bots as they are now; the match before is given up.
    /// It takes as long as building a bot may.
    ///
    /// # Errors
    /// If these cannot play a match, or a bot is none any more.
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
        let mut table = self.at_table();
        if table.closed {
            return Err(Failure::Refused("the program is ending".to_owned()));
        }
        if let Some(before) = table.now.take() {
            before.leave();
        }
        table.begun += 1;
        let config = self.config(table.begun, seat_choices, names, seed);
        let is_shown = !with_people || self.options.game.playground.slow;
        let pace = Pace { speed: is_shown.then_some(SPEED), ..Pace::default() };
        let (stop, cord) = StopSignal::new_pair().map_err(|error| unusable(self, &error))?;
        let live_match = Arc::new(LiveMatch::new(config, pace, cord));
        let planned = Match {
            params,
            seed: Seed::of_text(&live_match.config.seed),
            clock: self.options.clock,
            jail: JailConfig { cores: slot_cores(0, 1), ..JailConfig::default() },
            entrants,
            record: Some(live_match.config.record.clone()),
        };
        let thread = self.play(&live_match, planned, stop, roster);
        let thread = thread.map_err(|error| unusable(self, &error))?;
        table.now = Some(CurrentMatch { live_match: Arc::clone(&live_match), thread });
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
        let directory = records.clone().unwrap_or_else(|| self.own_records());
        MatchConfig {
            number,
            seat_choices,
            names,
            seed,
            record: directory.join(format!("{game}-{}-{number:06}.jsonl", self.mark)),
            person_clock: person_clock.then_some(clock.kind),
            startup_is_free: game.bots.protocol == Protocol::Stdio,
        }
    }

    /// Plays a match on a thread of its own.
    fn play(
        self: &Arc<Self>,
        live_match: &Arc<LiveMatch>,
        planned: Match,
        stop: StopSignal,
        roster: Roster,
    ) -> io::Result<JoinHandle<()>> {
        let session = Arc::clone(self);
        let live_match = Arc::clone(live_match);
        thread::Builder::new().name("match".to_owned()).spawn(move || {
            let mut company = Observers(Arc::clone(&live_match));
            let playing = || planned.play_with_hooks(&mut company, &session.host, &Arc::new(stop));
            if let Ok(played) = catch_unwind(AssertUnwindSafe(playing)) {
                live_match.end(played);
            } else {
                let why = "the program failed; see its standard error";
                live_match.finish(MatchEnd::Broken(why.to_owned()));
            }
            drop(roster);
        })
    }

    /// The console of a bot, which is opened if it is not yet; none if there is no such bot.
    pub(crate) fn console(self: &Arc<Self>, bot: usize) -> Option<Arc<Console>> {
        let name = self.names.get(bot)?;
        let mut consoles = self.consoles.lock().unwrap_or_else(PoisonError::into_inner);
        let console =
            consoles.entry(bot).or_insert_with(|| Arc::new(Console::new(bot, name.clone())));
        Some(Arc::clone(console))
    }

    /// Ends the match and the consoles, and waits for them.
    pub(crate) fn close(&self) {
        let seated = {
            let mut table = self.at_table();
            table.closed = true;
            table.now.take()
        };
        if let Some(seated) = seated {
            seated.leave();
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
    /// Gives the match up, and waits until nothing of it is left.
    fn leave(self) {
        self.live_match.abandon();
        // A thread that panicked has told so.
        drop(self.thread.join());
    }
}

/// Who sits where, by names that are told apart.
fn entrants(seat_choices: &[SeatChoice], roster: &Roster) -> Result<Vec<Entrant>, Failure> {
    let mut entrants: Vec<Entrant> = Vec::new();
    for seat_choice in seat_choices {
        let (name, bot) = match seat_choice {
            SeatChoice::Person => (PERSON.parse().map_err(Failure::usage)?, Contestant::Person),
            SeatChoice::Bot(index) => {
                let entry = roster.entries.get(*index);
                let entry = entry.ok_or_else(|| Failure::Usage("no such bot".to_owned()))?;
                (entry.name.clone(), Arc::clone(&entry.bot).into())
            }
        };
        let name = distinct(&name, |name| entrants.iter().any(|other| other.name == *name));
        let name = name.map_err(Failure::usage)?;
        entrants.push(Entrant { bot, name, state: BotState::Fresh });
    }
    Ok(entrants)
}

fn unusable(session: &Session, error: &io::Error) -> Failure {
    let place = session.scratch.path().display();
    Failure::Refused(format!("{place}: {error}; set TMPDIR to another place"))
}
