//! Measures how much a spinning bot slows down other bots: the round-trip time of a bot's replies
//! on a quiet machine and beside a spinning bot. One run alternates between all setups:
//! `cargo bench -p arbiter-worker --bench neighbours`.
//!
//! The bot echoes its request at once and is stopped between replies, as in official matches. It
//! shares one processor with its referee, as in the smallest possible slot.

#![expect(clippy::unwrap_used, reason = "a measurement fails by panicking")]

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arbiter_games::{ClockKind, Micros};
use arbiter_worker::sandbox::{
    self, BotSource, Host, Jail, JailConfig, Policy, Ponder, SlotThread, Workdir, slot_cores,
};
use arbiter_worker::seat::{Framing, SeatDriver, StdioSeat, StopSignal};
use rustix::thread::CpuSet;

/// Number of replies in one measurement.
const REPLIES: usize = 400;

/// Number of measurements of each setup.
const ROUNDS: usize = 9;

/// Time limit of a reply. Every reply is faster.
const LIMIT: Micros = Micros::from_millis(5000);

/// Wait after the start of a bot. Every bot starts faster.
const START: Duration = Duration::from_millis(20);

/// One setup of the measurement.
struct Setup {
    name: &'static str,
    /// The processor on which another bot spins, if one does.
    spinner: Option<usize>,
    /// Whether the referee has priority over bots.
    has_priority: bool,
    /// The median time of each measurement, in nanoseconds.
    medians: Vec<u128>,
    /// The time of every reply, in nanoseconds.
    times: Vec<u128>,
}

fn main() {
    sandbox::handle_reexec();
    let host = Host::prepare(Policy::Auto).unwrap();
    println!("{}, kernel {}", host.report(), host.report().kernel);
    let cores = slot_cores(0, 1);
    let bot_core = cores[0];
    let other_core = cores[cores.len() - 1];
    let mut set = CpuSet::new();
    set.set(bot_core);
    rustix::thread::sched_setaffinity(None, &set).unwrap();
    let spinners = [
        ("quiet", None),
        ("another slot spins", Some(other_core)),
        ("an opponent ponders", Some(bot_core)),
    ];
    let combinations = spinners.into_iter().flat_map(|spinner| [(spinner, false), (spinner, true)]);
    let mut setups: Vec<_> = combinations
        .map(|((name, spinner), has_priority)| Setup {
            name,
            spinner,
            has_priority,
            medians: Vec::new(),
            times: Vec::new(),
        })
        .collect();
    for _ in 0..ROUNDS {
        for setup in &mut setups {
            let times = measure(&host, bot_core, setup);
            setup.medians.push(percentile(times.clone(), 50));
            setup.times.extend(times);
        }
    }
    print_results(setups);
}

fn print_results(setups: Vec<Setup>) {
    let micros = |nanos: u128| format!("{}.{}", nanos / 1000, nanos % 1000 / 100);
    println!("{:36} {:>8} {:>8} {:>8} {:>6}", "µs", "median", "p99", "max", "ratio");
    let mut quiet_median = None;
    for Setup { name, has_priority, medians, times, .. } in setups {
        let median = percentile(medians, 50);
        let p99 = percentile(times.clone(), 99);
        let max = percentile(times, 100);
        let hundredths = median * 100 / *quiet_median.get_or_insert(median);
        let ratio = format!("{}.{:02}", hundredths / 100, hundredths % 100);
        let label = format!("{name}{}", if has_priority { ", referee priority" } else { "" });
        let [median, p99, max] = [median, p99, max].map(micros);
        println!("{label:36} {median:>8} {p99:>8} {max:>8} {ratio:>6}");
    }
}

/// The percentile `percent` of `times`.
fn percentile(mut times: Vec<u128>, percent: usize) -> u128 {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}

fn seat(
    host: &Host,
    argv: &[&str],
    ponder: Ponder,
    core: usize,
    stop: &Arc<StopSignal>,
) -> Box<dyn SeatDriver> {
    let workdir = Workdir::new(&BotSource::File(PathBuf::from("/usr/bin/true"))).unwrap();
    let config = JailConfig { ponder, cores: vec![core], ..JailConfig::default() };
    let jail = Jail::open(host, workdir, &config).unwrap();
    let argv: Vec<_> = argv.iter().map(|argument| (*argument).to_owned()).collect();
    StdioSeat::start(jail, &argv, Framing::Line, ClockKind::Wall, Arc::clone(stop)).unwrap()
}

fn measure(host: &Host, bot_core: usize, setup: &Setup) -> Vec<u128> {
    let (reader, _writer) = UnixStream::pair().unwrap();
    let stop = Arc::new(StopSignal::new(OwnedFd::from(reader)));
    let mut bot = seat(host, &["cat"], Ponder::Freeze, bot_core, &stop);
    let spinner = setup.spinner.map(|core| {
        // It replies once, and then spins.
        let argv = ["sh", "-c", "read line; echo $line; while :; do :; done"];
        let mut spinner = seat(host, &argv, Ponder::Allow, core, &stop);
        spinner.ask("?", LIMIT).unwrap().reply.unwrap();
        spinner
    });
    std::thread::sleep(START);
    let mut ask = || {
        let start_time = Instant::now();
        bot.ask("a request", LIMIT).unwrap().reply.unwrap();
        start_time.elapsed().as_nanos()
    };
    ask();
    let thread = setup.has_priority.then(|| SlotThread::bind(&[bot_core])).flatten();
    let priority = thread.as_ref().map(SlotThread::referee_priority);
    let times = (0..REPLIES).map(|_| ask()).collect();
    drop(priority);
    for seat in spinner.into_iter().chain([bot]) {
        seat.close().unwrap();
    }
    times
}
