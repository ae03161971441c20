//! Measures how much time the referee adds to a reply. One run compares matches under the referee
//! with a baseline of the same bytes and programs:
//! `cargo bench -p arbiter-worker --bench referee`.
//!
//! Two trivial C bots play gomoku until one of them has no free square. They play with the defaults
//! of a worker, and once more without a sandbox and with leave to ponder, so that the difference is
//! the price of isolation. The baseline only writes the same requests and reads each reply with
//! blocking calls. It has no clock, rules, process monitoring or hash. All run on one processor, as
//! a slot does on a machine with as many slots.

#[path = "../tests/support/memory_seat.rs"]
mod memory_seat;

use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arbiter_games::{BotName, ClockKind, ClockRules, Micros, Params, Seed, gomoku};
use arbiter_replay::Transcript;
use arbiter_worker::fault::Fault;
use arbiter_worker::referee::{EventSink, MatchEvent, Referee};
use arbiter_worker::sandbox::{
    BotSource, Host, Jail, JailConfig, Policy, Ponder, SlotThread, Workdir, slot_cores,
};
use arbiter_worker::seat::{Framing, SeatDriver, StdioSeat, StopSignal};
use memory_seat::MemorySeat;

/// Number of measurements of each kind. The result is the median of the ratios.
const ROUNDS: usize = 31;

/// Number of replies before the measurement starts: one of each seat, so that both bots are
/// running.
const WARM_UP: usize = 2;

/// Hashes the transcript, as in every match, and records the requests and replies for the baseline.
#[derive(Default)]
struct Recording {
    transcript: Transcript,
    /// Seat and request of each reply.
    requests: Vec<(usize, String)>,
    /// The replies, in order.
    replies: Vec<String>,
    last_request: Option<(usize, String)>,
    is_active: bool,
}

impl EventSink for Recording {
    fn on_event(&mut self, time: Micros, event: MatchEvent<'_>) -> Result<(), Fault> {
        self.transcript.on_event(time, event)?;
        if self.is_active {
            match event {
                MatchEvent::Sent { seat, text, .. } => {
                    self.last_request = Some((seat.index(), text.to_owned()));
                }
                MatchEvent::Replied { reply, .. } => {
                    self.requests.extend(self.last_request.take());
                    self.replies.push(String::from_utf8_lossy(reply).into_owned());
                }
                MatchEvent::Forfeited { .. } | MatchEvent::Noted(_) => {}
            }
        }
        Ok(())
    }
}

/// A way of playing under the referee, and what was measured of it.
struct Way {
    name: &'static str,
    host: Host,
    config: JailConfig,
    /// Time of a match relative to the baseline's time in the same round.
    ratios: Vec<f64>,
    /// The shortest time of a match.
    min: Duration,
}

impl Way {
    fn new(name: &'static str, policy: Policy, config: JailConfig) -> Self {
        let host = Host::prepare(policy).expect("a sandbox");
        Self { name, host, config, ratios: Vec::new(), min: Duration::MAX }
    }

    fn print(mut self, replies: u32) {
        self.ratios.sort_by(f64::total_cmp);
        println!(
            "{:<14} {:?} per reply (minimum), {:.2} times the baseline (median; quartiles {:.2} \
             and {:.2}; target 1.3)",
            self.name,
            self.min / replies,
            self.ratios[ROUNDS / 2],
            self.ratios[ROUNDS / 4],
            self.ratios[3 * ROUNDS / 4]
        );
    }
}

fn main() {
    arbiter_worker::sandbox::handle_reexec();
    let directory = tempfile::tempdir().expect("a directory for the bot");
    let program = compile(directory.path());
    let cores = slot_cores(0, std::thread::available_parallelism().map_or(1, usize::from));
    let thread = SlotThread::bind(&cores);
    let _priority = thread.as_ref().map(SlotThread::referee_priority);
    let defaults = JailConfig { cores, ..JailConfig::default() };
    let pondering = JailConfig { ponder: Ponder::Allow, ..defaults.clone() };
    let mut ways = [
        Way::new("defaults:", Policy::default(), defaults),
        Way::new("no sandbox:", Policy::Off, pondering),
    ];
    println!("{}", ways[0].host.report());
    let mut recording = Recording { is_active: true, ..Recording::default() };
    measure_referee(&program, &ways[0], &mut recording);
    recording.is_active = false;
    let mut min_baseline = Duration::MAX;
    for _ in 0..ROUNDS {
        let baseline = measure_baseline(&program, &recording.requests);
        min_baseline = min_baseline.min(baseline);
        for way in &mut ways {
            let time = measure_referee(&program, way, &mut recording);
            way.ratios.push(time.as_secs_f64() / baseline.as_secs_f64());
            way.min = way.min.min(time);
        }
    }
    let replies =
        u32::try_from(recording.requests.len() - WARM_UP).expect("a match has few replies");
    println!("{replies} replies per match, {ROUNDS} matches of each kind");
    println!("baseline:      {:?} per reply (minimum)", min_baseline / replies);
    println!("rules alone:   {:?} per reply", measure_rules(&mut recording) / replies);
    for way in ways {
        way.print(replies);
    }
}

/// Compiles the bot that all play with.
#[expect(clippy::disallowed_methods, reason = "this runs a compiler, not a bot")]
fn compile(directory: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/trivial.c");
    let program = directory.join("trivial");
    let status = Command::new("cc").arg("-O2").arg("-o").arg(&program).arg(source).status();
    assert!(status.expect("a C compiler is installed").success(), "the bot does not compile");
    program
}

/// Plays a match under the referee. Returns the time from the last warm-up reply to the last reply.
fn measure_referee(program: &Path, way: &Way, recording: &mut Recording) -> Duration {
    let (reader, _writer) = UnixStream::pair().expect("a pair of sockets");
    let stop = Arc::new(StopSignal::new(OwnedFd::from(reader)));
    let names: [BotName; 2] = ["one", "two"].map(|name| name.parse().expect("a good name"));
    let params = Params::official(&gomoku::game());
    let mut game = params.start(&names, Seed([1; 32])).expect("two bots play gomoku");
    let mut seats: Vec<Box<dyn SeatDriver>> = (0..2)
        .map(|_| {
            let source = BotSource::File(program.to_owned());
            let workdir = Workdir::new(&source).expect("the program exists");
            let jail = Jail::open(&way.host, workdir, &way.config).expect("a jail");
            let argv = ["./trivial".to_owned()];
            let stop = Arc::clone(&stop);
            StdioSeat::start(jail, &argv, Framing::Line, ClockKind::Wall, stop).expect("a bot")
        })
        .collect();
    let mut timer = ReplyTimer { recording, replies: 0, start: None, end: None };
    Referee::new(ClockRules::OFFICIAL, &mut timer)
        .play(game.as_mut(), &mut seats)
        .expect("no fault");
    let start = timer.start.expect("a reply");
    let end = timer.end.expect("a reply");
    for seat in seats {
        seat.close().expect("the bot exits");
    }
    end - start
}

/// Plays the same match with functions instead of programs. Returns the time of the rules and the
/// transcript's hash.
fn measure_rules(recording: &mut Recording) -> Duration {
    let replies: Rc<RefCell<_>> = Rc::new(RefCell::new(recording.replies.clone().into_iter()));
    let names: [BotName; 2] = ["one", "two"].map(|name| name.parse().expect("a good name"));
    let params = Params::official(&gomoku::game());
    let mut game = params.start(&names, Seed([1; 32])).expect("two bots play gomoku");
    let mut seats: Vec<Box<dyn SeatDriver>> = (0..2)
        .map(|_| {
            let replies = Rc::clone(&replies);
            let bot = move |_: &str| {
                let reply = replies.borrow_mut().next();
                (Ok(reply.unwrap_or_else(|| "full".to_owned())), Micros::ZERO)
            };
            Box::new(MemorySeat::new(bot)) as Box<dyn SeatDriver>
        })
        .collect();
    let start_time = Instant::now();
    let mut referee = Referee::new(ClockRules::OFFICIAL, recording);
    referee.play(game.as_mut(), &mut seats).expect("no fault");
    start_time.elapsed()
}

/// Stores the times of the last warm-up reply and of the last reply.
struct ReplyTimer<'a> {
    recording: &'a mut Recording,
    replies: usize,
    start: Option<Instant>,
    end: Option<Instant>,
}

impl EventSink for ReplyTimer<'_> {
    fn on_event(&mut self, time: Micros, event: MatchEvent<'_>) -> Result<(), Fault> {
        let result = self.recording.on_event(time, event);
        if let MatchEvent::Replied { .. } = event {
            let now = Instant::now();
            self.replies += 1;
            self.start = if self.replies <= WARM_UP { Some(now) } else { self.start };
            self.end = Some(now);
        }
        result
    }
}

/// Sends the same requests over blocking pipes.
#[expect(clippy::disallowed_methods, reason = "this is the baseline, not a match")]
fn measure_baseline(program: &Path, requests: &[(usize, String)]) -> Duration {
    let start = || {
        Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the bot starts")
    };
    let mut bots: [Child; 2] = [start(), start()];
    let mut buffer = [0; 4096];
    let mut start_time = None;
    for (index, (seat, request)) in requests.iter().enumerate() {
        let line = format!("{request}\n");
        let bot = &mut bots[*seat];
        bot.stdin.as_mut().expect("a pipe").write_all(line.as_bytes()).expect("the bot reads");
        let mut read = 0;
        while read == 0 || buffer[read - 1] != b'\n' {
            let pipe = bot.stdout.as_mut().expect("a pipe");
            read += pipe.read(&mut buffer[read..]).expect("the bot replies");
        }
        start_time = if index < WARM_UP { Some(Instant::now()) } else { start_time };
    }
    let elapsed = start_time.expect("the bots replied").elapsed();
    for mut bot in bots {
        drop(bot.stdin.take());
        bot.wait().expect("the bot exits");
    }
    elapsed
}
