//! One match from beginning to end: bots take their seats, the referee plays, everything is
//! cleaned up, and an outcome is left.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arbiter_games::{
    BotName, ClockRules, Forfeit, Game, MatchState, Micros, Params, Protocol, Seat, SeatResult,
    Seed, TimeSpent, TurnPolicy,
};
use arbiter_proto::tricks_http::NO_OTHER_GAME;

use crate::bot::{Bot, Contestant};
use crate::fault::Fault;
use crate::record::{Header, RECORD_VERSION, Recorder, SeatLine, Transcript, TranscriptHash};
use crate::referee::{EventSink, MatchEvent, Referee};
use crate::sandbox::{Host, Jail, JailConfig, Level, RefereePriority, Workdir};
use crate::seat::pipes::since;
use crate::seat::{
    AbsentSeat, ExecSeat, HttpSeat, SeatDriver, SeatFailure, SeatUsage, StdioSeat, StopSignal,
};

/// What happens to the files that a bot leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BotState {
    /// They are gone after the match.
    Fresh,
    /// They stay in this directory, for this bot alone, and are there again in its next match.
    Persistent(PathBuf),
}

/// Who sits where.
#[derive(Clone, Debug)]
pub struct Entrant {
    /// The bot.
    pub bot: Contestant,
    /// The name it plays by: its own, or one that tells it from a namesake.
    pub name: BotName,
    /// What happens to its files.
    pub state: BotState,
}

impl Entrant {
    /// How this bot is spoken to in `game`.
    pub fn protocol(&self, game: &Game) -> Protocol {
        self.bot.protocol(game)
    }
}

/// A match to be played.
#[derive(Clone, Debug)]
pub struct Match {
    /// The game's parameters.
    pub params: Params,
    /// The match's seed.
    pub seed: Seed,
    /// How time is charged.
    pub clock: ClockRules,
    /// On which terms the bots play.
    pub terms: JailConfig,
    /// The bots, seat 1 first.
    pub entrants: Vec<Entrant>,
    /// Where its record goes, if it is wanted; the directory exists.
    pub record: Option<PathBuf>,
}

/// What a match came to.
#[derive(Clone, Debug)]
pub struct MatchOutcome {
    /// Every seat's result.
    pub standings: Vec<SeatResult>,
    /// The hash of what was said.
    pub transcript: TranscriptHash,
    /// What is known of each seat besides its result.
    pub seats: Vec<SeatSummary>,
    /// How long the match took on the wall.
    pub wall: Micros,
    /// How well its bots were held.
    pub sandbox: Level,
    /// How long each bot took to start, seat 1 first.
    pub starts: Vec<Micros>,
    /// The most of the clock's margin that an answer in time needed.
    pub margin: Micros,
}

/// What is known of a seat after a match, besides its result.
#[derive(Clone, Debug, Default)]
pub struct SeatSummary {
    /// The time of each answer on the wall.
    pub replies: Vec<Micros>,
    /// Why the seat forfeited, if it did, or what it did when the match was over: the first
    /// evidence.
    pub detail: Option<String>,
    /// What the answer took that is the evidence; until there is one, the last answer.
    pub spent: TimeSpent,
    /// What the bot left.
    pub remains: SeatUsage,
}

impl SeatSummary {
    /// Takes note of what an answer took, unless an earlier one is the evidence.
    fn took(&mut self, spent: Option<TimeSpent>) {
        if self.detail.is_none() {
            self.spent = spent.unwrap_or(self.spent);
        }
    }

    /// Takes note of what the bot left.
    fn left(&mut self, remains: SeatUsage) {
        if let Some(SeatFailure { forfeit, detail }) = &remains.late_failure {
            self.detail.get_or_insert_with(|| evidence(*forfeit, detail));
        }
        self.remains = remains;
    }
}

/// Those who are at a match beside its bots: people at the table, and people who look on.
pub trait MatchHooks {
    /// The game as they follow it. It plays the same.
    fn wrap_game(&mut self, game: Box<dyn MatchState>) -> Box<dyn MatchState> {
        game
    }

    /// The seat of the person at `place`.
    fn person_driver(&mut self, _place: Seat) -> Box<dyn SeatDriver> {
        AbsentSeat::boxed("nobody came", None)
    }

    /// The seat of the bot at `place`, as they overhear it. It answers the same.
    fn wrap_driver(&mut self, _place: Seat, seat: Box<dyn SeatDriver>) -> Box<dyn SeatDriver> {
        seat
    }

    /// Something happened, so long after the match began.
    fn on_event(&mut self, _time: Micros, _event: MatchEvent<'_>) {}
}

/// A match that nobody is at but its bots.
#[derive(Debug)]
struct NoHooks;

impl MatchHooks for NoHooks {}

impl Match {
    /// Plays the match on this thread, which is no other match's. After a fault it counts for
    /// nothing.
    ///
    /// # Errors
    /// A fault if something of ours failed: the match then counts for nothing.
    pub fn play(&self, host: &Host, stop: &Arc<StopSignal>) -> Result<MatchOutcome, Fault> {
        self.play_with_hooks(&mut NoHooks, host, stop)
    }

    /// The same in company.
    pub fn play_with_hooks(
        &self,
        company: &mut dyn MatchHooks,
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
        let mut game = company.wrap_game(game);
        let record = self.record.clone();
        let header = self.header(host.level());
        let record = record.map(|path| Recorder::create(path, &header)).transpose()?;
        let (mut seats, mut margin) = (Vec::new(), Micros::ZERO);
        let seated = self.seat_all(game.as_ref(), company, host, stop, &mut seats);
        let mut minutes = MatchLog {
            record,
            transcript: Transcript::default(),
            reports: vec![SeatSummary::default(); self.entrants.len()],
            time: Micros::ZERO,
            company,
        };
        let played = seated.and_then(|starts| {
            let _first = RefereePriority::take(&self.terms.cores);
            let mut referee = Referee::new(self.clock, &mut minutes);
            let standings = referee.play(game.as_mut(), &mut seats)?;
            margin = referee.margin_used();
            Ok((standings, starts))
        });
        let closed = minutes.close_seats(seats);
        let (standings, starts) = played?;
        closed?;
        minutes.finish(self, standings, starts, margin, host.level())
    }

    /// When each bot is asked, seat 1 first.
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
            rules: self.params.rules_version(&self.turn_policies()).to_owned(),
            params: self.params.clone(),
            seed: self.seed,
            clock: self.clock,
            sandbox,
            seats: seats.collect(),
        }
    }

    /// Starts every bot, and adds it to `seats`; how long each took.
    fn seat_all(
        &self,
        game: &dyn MatchState,
        company: &mut dyn MatchHooks,
        host: &Host,
        stop: &Arc<StopSignal>,
        seats: &mut Vec<Box<dyn SeatDriver>>,
    ) -> Result<Vec<Micros>, Fault> {
        let mut starts = Vec::with_capacity(self.entrants.len());
        for (place, entrant) in Seat::all(self.entrants.len()).zip(&self.entrants) {
            let (arguments, began) = (game.launch_arguments(place), Instant::now());
            seats.push(match &entrant.bot {
                Contestant::Unplayable { reason: why, .. } => AbsentSeat::boxed(why, None),
                Contestant::Bot(bot) => {
                    let terms = self.terms.for_seat(place.index());
                    let seat = self.seat(bot, &entrant.state, &terms, arguments, host, stop)?;
                    company.wrap_driver(place, seat)
                }
                Contestant::Person => company.person_driver(place),
            });
            starts.push(since(began));
        }
        Ok(starts)
    }

    /// Starts one bot, with these arguments besides its own.
    pub fn seat(
        &self,
        bot: &Bot,
        state: &BotState,
        terms: &JailConfig,
        arguments: Vec<String>,
        host: &Host,
        stop: &Arc<StopSignal>,
    ) -> Result<Box<dyn SeatDriver>, Fault> {
        let game = self.params.game();
        let protocol = bot.protocol.unwrap_or(game.bots.protocol);
        if !game.speaks(protocol) {
            let why = format!("{NO_OTHER_GAME}; use protocol = \"stdio\"");
            return Ok(AbsentSeat::boxed(why, None));
        }
        let home = match state {
            BotState::Fresh => Workdir::new(&bot.source)?,
            BotState::Persistent(path) => Workdir::with_state(&bot.source, path.clone())?,
        };
        let mut argv = bot.run.clone();
        argv.extend(arguments);
        let stop = Arc::clone(stop);
        if protocol == Protocol::Http {
            let (jail, door) = Jail::open_with_listener(host, home, terms)?;
            return HttpSeat::start(jail, door, &argv, self.clock.kind, stop);
        }
        let jail = Jail::open(host, home, terms)?;
        if protocol == Protocol::Exec {
            return Ok(Box::new(ExecSeat::new(jail, argv, stop)));
        }
        StdioSeat::start(jail, &argv, game.bots.framing, self.clock.kind, stop)
    }
}

/// Writes down what happens in a match.
struct MatchLog<'a> {
    record: Option<Recorder>,
    transcript: Transcript,
    reports: Vec<SeatSummary>,
    time: Micros,
    company: &'a mut dyn MatchHooks,
}

impl EventSink for MatchLog<'_> {
    fn on_event(&mut self, time: Micros, event: MatchEvent<'_>) -> Result<(), Fault> {
        self.time = time;
        self.transcript.on_event(time, event)?;
        if let Some(record) = &mut self.record {
            record.on_event(time, event)?;
        }
        self.company.on_event(time, event);
        match event {
            MatchEvent::Replied { seat, spent, .. } => {
                let report = &mut self.reports[seat.index()];
                report.replies.push(spent.wall);
                report.took(Some(spent));
            }
            MatchEvent::Forfeited { seat, forfeit, spent, detail } => {
                let report = &mut self.reports[seat.index()];
                report.took(spent);
                report.detail.get_or_insert_with(|| evidence(forfeit, detail));
            }
            MatchEvent::Sent { .. } | MatchEvent::Noted(_) => {}
        }
        Ok(())
    }
}

/// A forfeit in one line.
fn evidence(forfeit: Forfeit, detail: &str) -> String {
    format!("{forfeit}: {detail}")
}

impl MatchLog<'_> {
    /// Closes every seat, also behind one that cannot be closed: the first fault that came of it.
    fn close_seats(&mut self, seats: Vec<Box<dyn SeatDriver>>) -> Result<(), Fault> {
        let mut closed = Ok(());
        for (report, seat) in self.reports.iter_mut().zip(seats) {
            match seat.close() {
                Ok(remains) => report.left(remains),
                Err(fault) => closed = closed.and(Err(fault)),
            }
        }
        closed
    }

    /// Closes the record.
    fn finish(
        self,
        played: &Match,
        standings: Vec<SeatResult>,
        starts: Vec<Micros>,
        margin: Micros,
        sandbox: Level,
    ) -> Result<MatchOutcome, Fault> {
        let transcript = self.transcript.hash();
        if let Some(mut record) = self.record {
            for (index, report) in self.reports.iter().enumerate() {
                let SeatUsage { stderr, stderr_dropped, .. } = &report.remains;
                if played.entrants[index].bot.shows_stderr() && !stderr.is_empty() {
                    record.stderr(Seat::from_index(index), stderr, *stderr_dropped)?;
                }
            }
            record.finish(&standings, transcript)?;
        }
        let (seats, wall) = (self.reports, self.time);
        Ok(MatchOutcome { standings, transcript, seats, wall, sandbox, starts, margin })
    }
}
