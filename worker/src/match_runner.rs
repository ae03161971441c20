//! Runs one match: starts the bots, runs the referee, cleans up and returns the outcome.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arbiter_games::{
    BotName, ClockRules, Game, MatchState, Micros, Params, Protocol, Seat, SeatResult, Seed,
    TimeSpent, TurnPolicy,
};
use arbiter_proto::tricks_http::HTTP_ONLY_FOR_TRICKS;

use crate::bot::{Bot, Contestant};
use crate::fault::Fault;
use crate::hints::ObservedFailure;
use crate::record_writer::Recorder;
use crate::referee::{EventSink, MatchEvent, Referee};
use crate::sandbox::{Host, Jail, JailConfig, Level, SlotThread, Workdir};
use crate::seat::pipes::since;
use crate::seat::{
    AbsentSeat, ExecSeat, SeatDriver, SeatFailure, SeatUsage, StdioSeat, StopSignal, TricksHttpSeat,
};
use arbiter_replay::{Header, RECORD_VERSION, SeatLine, Transcript, TranscriptHash};

/// What happens to a bot's files after the match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BotState {
    /// The files are deleted.
    Fresh,
    /// The files stay in this directory for the bot's next match.
    Persistent(PathBuf),
}

/// A bot or person in a seat.
#[derive(Clone, Debug)]
pub struct Entrant {
    /// The bot.
    pub bot: Contestant,
    /// Its name in the match, unique among the entrants.
    pub name: BotName,
    /// What happens to its files after the match.
    pub state: BotState,
}

impl Entrant {
    /// The bot's protocol in `game`.
    pub fn protocol(&self, game: &Game) -> Protocol {
        self.bot.protocol(game)
    }
}

/// A match to play.
#[derive(Clone, Debug)]
pub struct Match {
    /// The game's parameters.
    pub params: Params,
    /// The match's seed.
    pub seed: Seed,
    /// How time is charged.
    pub clock: ClockRules,
    /// Limits and processors of the bots.
    pub jail: JailConfig,
    /// The bots, seat 1 first.
    pub entrants: Vec<Entrant>,
    /// Path of the record, or `None` for no record. Its directory must exist.
    pub record: Option<PathBuf>,
}

/// The outcome of a match.
#[derive(Clone, Debug)]
pub struct MatchOutcome {
    /// The result of each seat.
    pub results: Vec<SeatResult>,
    /// The hash of the transcript.
    pub transcript: TranscriptHash,
    /// Measurements and evidence of each seat.
    pub seats: Vec<SeatSummary>,
    /// Duration of the match.
    pub wall_time: Micros,
    /// Isolation level of the bots.
    pub level: Level,
    /// Start-up time of each bot, seat 1 first.
    pub startup_times: Vec<Micros>,
    /// Largest part of the clock's margin used by a reply in time.
    pub margin_used: Micros,
}

/// Measurements and evidence of a seat.
#[derive(Clone, Debug, Default)]
pub struct SeatSummary {
    /// Wall-clock time of each reply.
    pub replies: Vec<Micros>,
    /// The first forfeit or bad reply, or the failure after the match.
    pub failure: Option<SeatFailure>,
    /// Time of the reply that is the evidence. Without evidence, of the last reply.
    pub spent: TimeSpent,
    /// The bot's output and resource usage.
    pub usage: SeatUsage,
}

impl SeatSummary {
    /// The failure in one line, if there is one.
    pub fn detail(&self) -> Option<String> {
        self.failure.as_ref().map(ToString::to_string)
    }

    /// A hint about the failure for the author, if it has a likely cause.
    pub fn hint(&self, game: &Game, bot: Option<&Bot>) -> Option<String> {
        let failure = self.failure.as_ref()?;
        let replies = self.replies.len();
        let has_stderr = !self.usage.stderr.is_empty();
        ObservedFailure { game, bot, failure, replies, has_stderr }.hint()
    }

    /// Records the time of a reply, unless an earlier one is the evidence.
    fn record_time(&mut self, spent: Option<TimeSpent>) {
        if self.failure.is_none() {
            self.spent = spent.unwrap_or(self.spent);
        }
    }

    /// Records the bot's usage.
    fn record_usage(&mut self, usage: SeatUsage) {
        if self.failure.is_none() {
            self.failure.clone_from(&usage.late_failure);
        }
        self.usage = usage;
    }
}

/// Hooks for spectators and for people in seats.
pub trait MatchHooks {
    /// Wraps the game to observe it. The wrapper must not change the play.
    fn wrap_game(&mut self, game: Box<dyn MatchState>) -> Box<dyn MatchState> {
        game
    }

    /// Returns the driver of the person at `seat`.
    fn person_driver(&mut self, _seat: Seat) -> Box<dyn SeatDriver> {
        AbsentSeat::boxed("no person took this seat", None)
    }

    /// Wraps the driver of the bot at `seat` to observe it. The wrapper must not change replies.
    fn wrap_driver(&mut self, _seat: Seat, driver: Box<dyn SeatDriver>) -> Box<dyn SeatDriver> {
        driver
    }

    /// Handles an event. `time` counts from the start of the match.
    fn on_event(&mut self, _time: Micros, _event: MatchEvent<'_>) {}
}

/// Hooks that do nothing, for a match without people and spectators.
#[derive(Debug)]
struct NoHooks;

impl MatchHooks for NoHooks {}

impl Match {
    /// Plays the match on this thread, which must not run another match. After a fault the match
    /// does not count.
    pub fn play(&self, host: &Host, stop: &Arc<StopSignal>) -> Result<MatchOutcome, Fault> {
        self.play_with_hooks(&mut NoHooks, host, stop)
    }

    /// Plays the match with hooks.
    pub fn play_with_hooks(
        &self,
        hooks: &mut dyn MatchHooks,
        host: &Host,
        stop: &Arc<StopSignal>,
    ) -> Result<MatchOutcome, Fault> {
        let names: Vec<_> = self.entrants.iter().map(|entrant| entrant.name.clone()).collect();
        let turns = self.turn_policies();
        let rules = self.params.rules_version(&turns);
        let game = self
            .params
            .start_by(rules, &names, &turns, self.seed)
            .map_err(|error| Fault::new("cannot start a match", error))?;
        let mut game = hooks.wrap_game(game);
        // The rules of a package start on the processors of this thread.
        let thread = SlotThread::bind(&self.jail.cores);
        game.prepare();
        let header = self.header(host.level());
        let path = self.record.clone();
        let record = path.map(|path| Recorder::create(path, &header)).transpose()?;
        let mut drivers = Vec::new();
        let mut margin_used = Micros::ZERO;
        let start_result = self.start_drivers(game.as_ref(), hooks, host, stop, &mut drivers);
        let mut log = MatchLog {
            record,
            transcript: Transcript::default(),
            seats: vec![SeatSummary::default(); self.entrants.len()],
            time: Micros::ZERO,
            hooks,
        };
        let play_result = start_result.and_then(|startup_times| {
            let _priority = thread.as_ref().map(SlotThread::referee_priority);
            let mut referee = Referee::new(self.clock, &mut log);
            let results = referee.play(game.as_mut(), &mut drivers)?;
            margin_used = referee.margin_used();
            Ok((results, startup_times))
        });
        drop(thread);
        let close_result = log.close_seats(drivers);
        let (results, startup_times) = play_result?;
        close_result?;
        log.finish(self, results, startup_times, margin_used, host.level())
    }

    /// The turn policy of each bot, seat 1 first.
    fn turn_policies(&self) -> Vec<TurnPolicy> {
        let game = self.params.game();
        self.entrants.iter().map(|entrant| entrant.protocol(game).turn_policy()).collect()
    }

    fn header(&self, sandbox: Level) -> Header {
        let game = self.params.game();
        let seats = self.entrants.iter().map(|entrant| SeatLine {
            bot: entrant.name.clone(),
            digest: entrant.bot.digest().to_owned(),
            protocol: entrant.protocol(game),
        });
        Header {
            record: RECORD_VERSION,
            game: game.clone(),
            package: game.package.as_deref().map(str::to_owned),
            rules: self.params.rules_version(&self.turn_policies()).to_owned(),
            params: self.params.clone(),
            seed: self.seed,
            clock: self.clock,
            sandbox,
            seats: seats.collect(),
        }
    }

    /// Starts all bots and adds them to `drivers`. Returns their start-up times.
    fn start_drivers(
        &self,
        game: &dyn MatchState,
        hooks: &mut dyn MatchHooks,
        host: &Host,
        stop: &Arc<StopSignal>,
        drivers: &mut Vec<Box<dyn SeatDriver>>,
    ) -> Result<Vec<Micros>, Fault> {
        let mut startup_times = Vec::with_capacity(self.entrants.len());
        for (seat, entrant) in Seat::all(self.entrants.len()).zip(&self.entrants) {
            let arguments = game.launch_arguments(seat);
            let start_time = Instant::now();
            drivers.push(match &entrant.bot {
                Contestant::Unplayable { reason, .. } => AbsentSeat::boxed(reason, None),
                Contestant::Bot(bot) => {
                    let jail = self.jail.for_seat(seat.index());
                    let driver =
                        self.start_driver(bot, &entrant.state, &jail, arguments, host, stop)?;
                    hooks.wrap_driver(seat, driver)
                }
                Contestant::Person => hooks.person_driver(seat),
            });
            startup_times.push(since(start_time));
        }
        Ok(startup_times)
    }

    /// Starts one bot, with `arguments` after the arguments of its manifest.
    pub fn start_driver(
        &self,
        bot: &Bot,
        state: &BotState,
        config: &JailConfig,
        arguments: Vec<String>,
        host: &Host,
        stop: &Arc<StopSignal>,
    ) -> Result<Box<dyn SeatDriver>, Fault> {
        let game = self.params.game();
        let protocol = bot.protocol.unwrap_or(game.bots.protocol);
        if !game.supports(protocol) {
            let reason = format!("{HTTP_ONLY_FOR_TRICKS}; use protocol = \"stdio\"");
            return Ok(AbsentSeat::boxed(reason, None));
        }
        let workdir = match state {
            BotState::Fresh => Workdir::new(&bot.source)?,
            BotState::Persistent(path) => Workdir::with_state(&bot.source, path.clone())?,
        };
        let mut argv = bot.run.clone();
        argv.extend(arguments);
        let stop = Arc::clone(stop);
        if protocol == Protocol::Http {
            let (jail, listener) = Jail::open_with_listener(host, workdir, config)?;
            return TricksHttpSeat::start(jail, listener, &argv, self.clock.kind, stop);
        }
        let jail = Jail::open(host, workdir, config)?;
        if protocol == Protocol::Exec {
            return Ok(Box::new(ExecSeat::new(jail, argv, stop)));
        }
        StdioSeat::start(jail, &argv, game.bots.framing.clone(), self.clock.kind, stop)
    }
}

/// Logs a match: record, transcript hash and measurements.
struct MatchLog<'a> {
    record: Option<Recorder>,
    transcript: Transcript,
    seats: Vec<SeatSummary>,
    time: Micros,
    hooks: &'a mut dyn MatchHooks,
}

impl EventSink for MatchLog<'_> {
    fn on_event(&mut self, time: Micros, event: MatchEvent<'_>) -> Result<(), Fault> {
        self.time = time;
        self.transcript.on_event(time, event)?;
        if let Some(record) = &mut self.record {
            record.on_event(time, event)?;
        }
        self.hooks.on_event(time, event);
        match event {
            MatchEvent::Replied { seat, spent, .. } => {
                let summary = &mut self.seats[seat.index()];
                summary.replies.push(spent.wall);
                summary.record_time(Some(spent));
            }
            MatchEvent::Forfeited { seat, forfeit, spent, detail } => {
                let summary = &mut self.seats[seat.index()];
                summary.record_time(spent);
                let failure = || SeatFailure { forfeit, detail: detail.to_owned() };
                summary.failure.get_or_insert_with(failure);
            }
            MatchEvent::Sent { .. } | MatchEvent::Noted(_) => {}
        }
        Ok(())
    }
}

impl MatchLog<'_> {
    /// Closes all seats, even after a fault. Returns the first fault.
    fn close_seats(&mut self, drivers: Vec<Box<dyn SeatDriver>>) -> Result<(), Fault> {
        let mut result = Ok(());
        for (summary, driver) in self.seats.iter_mut().zip(drivers) {
            match driver.close() {
                Ok(usage) => summary.record_usage(usage),
                Err(fault) => result = result.and(Err(fault)),
            }
        }
        result
    }

    /// Completes the record and returns the outcome.
    fn finish(
        self,
        planned_match: &Match,
        results: Vec<SeatResult>,
        startup_times: Vec<Micros>,
        margin_used: Micros,
        level: Level,
    ) -> Result<MatchOutcome, Fault> {
        let transcript = self.transcript.hash();
        if let Some(mut record) = self.record {
            for (index, summary) in self.seats.iter().enumerate() {
                let SeatUsage { stderr, stderr_dropped, .. } = &summary.usage;
                if planned_match.entrants[index].bot.shows_stderr() && !stderr.is_empty() {
                    record.stderr(Seat::from_index(index), stderr, *stderr_dropped)?;
                }
            }
            record.finish(&results, transcript)?;
        }
        Ok(MatchOutcome {
            results,
            transcript,
            seats: self.seats,
            wall_time: self.time,
            level,
            startup_times,
            margin_used,
        })
    }
}
