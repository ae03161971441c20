//! What a bot that spins takes from others: how long a bot's replies take, there and back, on a
//! quiet machine and beside a bot that never rests, all in turns within one run:
//! `cargo bench -p arbiter-worker --bench neighbours`.
//!
//! The bot echoes its request at once and rests in between, as in official matches. It shares its
//! processor with its referee: the narrowest slot there is.

#![expect(clippy::unwrap_used, reason = "a measurement fails by panicking")]

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arbiter_games::{ClockKind, Micros};
use arbiter_worker::sandbox::{
    self, BotSource, Host, Jail, JailConfig, Policy, Ponder, RefereePriority, Workdir, slot_cores,
};
use arbiter_worker::seat::{Framing, SeatDriver, StdioSeat, StopSignal};
use rustix::thread::CpuSet;

/// Replies of one measurement.
const REPLIES: usize = 400;

/// How often everything is measured.
const ROUNDS: usize = 9;

/// Longer than any reply takes.
const LIMIT: Micros = Micros::from_millis(5000);

/// How long a bot takes to start, and longer.
const START: Duration = Duration::from_millis(20);

/// One way of measuring.
struct Way {
    name: &'static str,
    /// Where another bot spins, if one does.
    spinner: Option<usize>,
    /// Whether the referee goes first.
    first: bool,
    /// The median of each measurement, in nanoseconds.
    medians: Vec<u128>,
    /// Every reply, in nanoseconds.
    all: Vec<u128>,
}

fn main() {
    sandbox::handle_reexec();
    let host = Host::prepare(Policy::Auto).unwrap();
    println!("{}, kernel {}", host.report(), host.report().kernel);
    let cores = slot_cores(0, 1);
    let own = cores[0];
    let other = cores[cores.len() - 1];
    let mut set = CpuSet::new();
    set.set(own);
    rustix::thread::sched_setaffinity(None, &set).unwrap();
    let places =
        [("quiet", None), ("another slot spins", Some(other)), ("a rival ponders", Some(own))];
    let both = places.into_iter().flat_map(|place| [(place, false), (place, true)]);
    let mut ways: Vec<_> = both
        .map(|((name, spinner), first)| Way {
            name,
            spinner,
            first,
            medians: Vec::new(),
            all: Vec::new(),
        })
        .collect();
    for _ in 0..ROUNDS {
        for way in &mut ways {
            let found = measure(&host, own, way);
            way.medians.push(part_of(found.clone(), 50));
            way.all.extend(found);
        }
    }
    show(ways);
}

fn show(ways: Vec<Way>) {
    let tenths = |nanos: u128| format!("{}.{}", nanos / 1000, nanos % 1000 / 100);
    println!("{:36} {:>8} {:>8} {:>8} {:>6}", "µs", "median", "p99", "worst", "ratio");
    let mut quiet = None;
    for Way { name, first, medians, all, .. } in ways {
        let median = part_of(medians, 50);
        let p99 = part_of(all.clone(), 99);
        let worst = part_of(all, 100);
        let hundredths = median * 100 / *quiet.get_or_insert(median);
        let ratio = format!("{}.{:02}", hundredths / 100, hundredths % 100);
        let name = format!("{name}{}", if first { ", referee first" } else { "" });
        let [median, p99, worst] = [median, p99, worst].map(tenths);
        println!("{name:36} {median:>8} {p99:>8} {worst:>8} {ratio:>6}");
    }
}

/// The value that so many of a hundred are not above.
fn part_of(mut times: Vec<u128>, part: usize) -> u128 {
    times.sort_unstable();
    times[(times.len() - 1) * part / 100]
}

fn seat(
    host: &Host,
    argv: &[&str],
    ponder: Ponder,
    core: usize,
    stop: &Arc<StopSignal>,
) -> Box<dyn SeatDriver> {
    let home = Workdir::new(&BotSource::File(PathBuf::from("/usr/bin/true"))).unwrap();
    let terms = JailConfig { ponder, cores: vec![core], ..JailConfig::default() };
    let jail = Jail::open(host, home, &terms).unwrap();
    let argv: Vec<_> = argv.iter().map(|word| (*word).to_owned()).collect();
    StdioSeat::start(jail, &argv, Framing::Line, ClockKind::Wall, Arc::clone(stop)).unwrap()
}

fn measure(host: &Host, own: usize, way: &Way) -> Vec<u128> {
    let (reader, _writer) = UnixStream::pair().unwrap();
    let stop = Arc::new(StopSignal::new(OwnedFd::from(reader)));
    let mut bot = seat(host, &["cat"], Ponder::Freeze, own, &stop);
    let spinner = way.spinner.map(|core| {
        // It answers once, and thinks on.
        let argv = ["sh", "-c", "read line; echo $line; while :; do :; done"];
        let mut spinner = seat(host, &argv, Ponder::Allow, core, &stop);
        spinner.ask("?", LIMIT).unwrap().reply.unwrap();
        spinner
    });
    std::thread::sleep(START);
    let mut ask = || {
        let began = Instant::now();
        bot.ask("a request", LIMIT).unwrap().reply.unwrap();
        began.elapsed().as_nanos()
    };
    ask();
    let first = way.first.then(|| RefereePriority::take(&[own]));
    let times = (0..REPLIES).map(|_| ask()).collect();
    drop(first);
    for seat in spinner.into_iter().chain([bot]) {
        seat.close().unwrap();
    }
    times
}
