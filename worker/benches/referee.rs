//! What the referee adds to a reply, against a raw ping-pong of the same bytes with the same
//! programs on the same pipes, both measured in one run: `cargo bench -p arbiter-worker`.
//!
//! Two trivial C bots play gomoku until the board has no square left for one of them. The raw
//! ping-pong writes the same requests and reads each answer's line with blocking calls, and does
//! nothing else: no clock, no rules, no watch over the process, no hash.

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
use arbiter_worker::fault::Fault;
use arbiter_worker::record::Transcript;
use arbiter_worker::referee::{EventSink, MatchEvent, Referee};
use arbiter_worker::sandbox::{BotSource, Host, Jail, JailConfig, Policy, Ponder, Workdir};
use arbiter_worker::seat::{Framing, SeatDriver, StdioSeat, StopSignal};
use memory_seat::MemorySeat;

/// How often both are measured; the median of the ratios counts.
const ROUNDS: usize = 31;

/// Replies after which both processes are known to run: one of each seat.
const WARM_UP: usize = 2;

/// Hashes what is said, as every match does, and keeps what was asked for the ping-pong.
#[derive(Default)]
struct Script {
    transcript: Transcript,
    /// Seat and request of each reply.
    asked: Vec<(usize, String)>,
    /// The replies, in order.
    replies: Vec<String>,
    last: Option<(usize, String)>,
    keep: bool,
}

impl EventSink for Script {
    fn on_event(&mut self, time: Micros, event: MatchEvent<'_>) -> Result<(), Fault> {
        self.transcript.on_event(time, event)?;
        if self.keep {
            match event {
                MatchEvent::Sent { seat, text, .. } => {
                    self.last = Some((seat.index(), text.to_owned()));
                }
                MatchEvent::Replied { reply, .. } => {
                    self.asked.extend(self.last.take());
                    self.replies.push(String::from_utf8_lossy(reply).into_owned());
                }
                MatchEvent::Forfeited { .. } | MatchEvent::Noted(_) => {}
            }
        }
        Ok(())
    }
}

fn main() {
    let directory = tempfile::tempdir().expect("a directory for the bot");
    let program = compile(directory.path());
    let host = Host::prepare(Policy::Off).expect("no isolation is asked for");
    let mut script = Script { keep: true, ..Script::default() };
    refereed(&program, &host, &mut script);
    script.keep = false;
    let mut ratios = Vec::new();
    let mut raw_best = Duration::MAX;
    let mut ours_best = Duration::MAX;
    for _ in 0..ROUNDS {
        let raw = raw(&program, &script.asked);
        let ours = refereed(&program, &host, &mut script);
        ratios.push(ours.as_secs_f64() / raw.as_secs_f64());
        (raw_best, ours_best) = (raw_best.min(raw), ours_best.min(ours));
    }
    ratios.sort_by(f64::total_cmp);
    let replies = u32::try_from(script.asked.len() - WARM_UP).expect("a match has few replies");
    println!("{replies} replies a match, {ROUNDS} matches each way");
    println!("raw ping-pong: {:?} a reply at best", raw_best / replies);
    println!("referee:       {:?} a reply at best", ours_best / replies);
    println!("  of it rules: {:?} a reply", unrefereed(&mut script) / replies);
    println!(
        "ratio:         {:.2} (median; quartiles {:.2} and {:.2}; target 1.3)",
        ratios[ROUNDS / 2],
        ratios[ROUNDS / 4],
        ratios[3 * ROUNDS / 4]
    );
}

/// Compiles the bot that both sides are measured with.
#[expect(clippy::disallowed_methods, reason = "a compiler is run, not a bot")]
fn compile(directory: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/trivial.c");
    let program = directory.join("trivial");
    let compiled = Command::new("cc").arg("-O2").arg("-o").arg(&program).arg(source).status();
    assert!(compiled.expect("there is a C compiler").success(), "the bot compiles");
    program
}

/// Plays a match under the referee; the time from the first request to the last reply.
fn refereed(program: &Path, host: &Host, script: &mut Script) -> Duration {
    let (reader, _writer) = UnixStream::pair().expect("a pair of sockets");
    let stop = Arc::new(StopSignal::new(OwnedFd::from(reader)));
    let names: [BotName; 2] = ["one", "two"].map(|name| name.parse().expect("a good name"));
    let params = Params::official(&gomoku::game());
    let mut game = params.start(&names, Seed([1; 32])).expect("two bots play gomoku");
    let mut seats: Vec<Box<dyn SeatDriver>> = (0..2)
        .map(|_| {
            let home = Workdir::new(&BotSource::File(program.to_owned())).expect("a home");
            // Freezing is the sandbox's price, and measured with it.
            let terms = JailConfig { ponder: Ponder::Allow, ..JailConfig::default() };
            let jail = Jail::open(host, home, &terms).expect("a jail");
            let argv = ["./trivial".to_owned()];
            let stop = Arc::clone(&stop);
            StdioSeat::start(jail, &argv, Framing::Line, ClockKind::Wall, stop).expect("a bot")
        })
        .collect();
    let mut timed = TimedReply { script, replies: 0, first: None, last: None };
    Referee::new(ClockRules::OFFICIAL, &mut timed)
        .play(game.as_mut(), &mut seats)
        .expect("no fault");
    let first = timed.first.expect("a reply");
    let last = timed.last.expect("a reply");
    for seat in seats {
        seat.close().expect("no survivor");
    }
    last - first
}

/// Plays the same match between functions: what the rules and the transcript's hash take.
fn unrefereed(script: &mut Script) -> Duration {
    let replies: Rc<RefCell<_>> = Rc::new(RefCell::new(script.replies.clone().into_iter()));
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
    let began = Instant::now();
    Referee::new(ClockRules::OFFICIAL, script).play(game.as_mut(), &mut seats).expect("no fault");
    began.elapsed()
}

/// Takes the times of the replies between which both ways are measured.
struct TimedReply<'a> {
    script: &'a mut Script,
    replies: usize,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl EventSink for TimedReply<'_> {
    fn on_event(&mut self, time: Micros, event: MatchEvent<'_>) -> Result<(), Fault> {
        let done = self.script.on_event(time, event);
        if let MatchEvent::Replied { .. } = event {
            let now = Instant::now();
            self.replies += 1;
            self.first = if self.replies <= WARM_UP { Some(now) } else { self.first };
            self.last = Some(now);
        }
        done
    }
}

/// Plays the same requests over blocking pipes.
#[expect(clippy::disallowed_methods, reason = "this is the measure, not a match")]
fn raw(program: &Path, asked: &[(usize, String)]) -> Duration {
    let start = || {
        Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the bot starts")
    };
    let mut bots: [Child; 2] = [start(), start()];
    let mut buffer = [0; 4096];
    let mut began = None;
    for (index, (seat, request)) in asked.iter().enumerate() {
        let line = format!("{request}\n");
        let bot = &mut bots[*seat];
        bot.stdin.as_mut().expect("a pipe").write_all(line.as_bytes()).expect("it reads");
        let mut read = 0;
        while read == 0 || buffer[read - 1] != b'\n' {
            let pipe = bot.stdout.as_mut().expect("a pipe");
            read += pipe.read(&mut buffer[read..]).expect("it answers");
        }
        began = if index < WARM_UP { Some(Instant::now()) } else { began };
    }
    let took = began.expect("there was a reply").elapsed();
    for mut bot in bots {
        drop(bot.stdin.take());
        bot.wait().expect("it ends");
    }
    took
}
