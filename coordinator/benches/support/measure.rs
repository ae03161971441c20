//! Speeds, latencies, and the processor time of a benchmark, which other programs do not change.

use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use arbiter_coordinator::postgres::Postgres;

/// Clock ticks a second in /proc (`USER_HZ`): the same on all machines that Linux runs on today.
const TICKS: f64 = 100.0;

/// The number of operations a second since an instant.
#[expect(clippy::cast_precision_loss, reason = "a few digits are enough")]
pub(crate) fn speed(things: i64, since: Instant) -> f64 {
    things as f64 / since.elapsed().as_secs_f64()
}

/// The median.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// The load of the machine: runnable processes, on average over the last minute.
pub(crate) fn load() -> String {
    let loads = fs::read_to_string("/proc/loadavg").expect("Linux");
    loads.split(' ').next().expect("three averages").to_owned()
}

/// Measured latencies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    pub(crate) fn add(&mut self, took: Duration) {
        self.0.push(took);
    }

    /// Adds the time that a future takes.
    pub(crate) async fn time<T>(&mut self, work: impl Future<Output = T>) -> T {
        let begin = Instant::now();
        let done = work.await;
        self.add(begin.elapsed());
        done
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The number of measurements.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// A percentile, in milliseconds.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let place = (sorted.len() * percent / 100).min(sorted.len() - 1);
        sorted[place].as_secs_f64() * 1000.0
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, high, most] = [50, 99, 100].map(|percent| self.percentile(percent));
        let times = self.count();
        write!(f, "p50 {median:.2} ms, p99 {high:.2} ms, most {most:.1} ms ({times} times)")
    }
}

/// Processor time used so far, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    /// By this process.
    ours: f64,
    /// By Postgres.
    postgres: f64,
}

impl Spent {
    pub(crate) fn so_far(postgres: &Postgres) -> Self {
        let server = postgres.pid().to_string();
        let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children"));
        let children = children.expect("the server runs");
        let backends = children.split_whitespace().filter_map(|pid| ticks(pid, 2));
        // Of those that have ended the server knows what they used.
        let postgres = ticks(&server, 4).expect("the server runs") + backends.sum::<f64>();
        let ours = ticks("self", 2).expect("we run");
        Self { ours: ours / TICKS, postgres: postgres / TICKS }
    }

    /// The cost of each of `things` operations since then, as text.
    #[expect(clippy::cast_precision_loss, reason = "a few digits are enough")]
    pub(crate) fn each(self, postgres: &Postgres, things: i64) -> String {
        let now = Self::so_far(postgres);
        let micros = |seconds: f64| seconds * 1e6 / things as f64;
        let ours = micros(now.ours - self.ours);
        let theirs = micros(now.postgres - self.postgres);
        format!("{ours:.1} µs of processor time each here, {theirs:.1} in Postgres")
    }
}

/// The sum of the first times of a process (proc(5): user, system, ended children's user and
/// system).
fn ticks(pid: &str, times: usize) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the name, which may hold anything, comes the state; the times are 11 fields further.
    let fields = stat.rsplit(')').next()?.split_whitespace().skip(12 - 1);
    fields.take(times).map(|field| field.parse::<f64>().ok()).sum()
}

/// Resets the peak memory of a process, and returns its present memory, in megabytes. A process is
/// named by its number, or `self`.
pub(crate) fn forget_most_memory(process: &str) -> u64 {
    fs::write(format!("/proc/{process}/clear_refs"), "5").expect("this is Linux, and it runs");
    memory(process, "VmRSS:")
}

/// The present (`VmRSS:`) or peak (`VmHWM:`) memory of a process, in megabytes.
pub(crate) fn memory(process: &str, what: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status"));
    let status = status.expect("this is Linux, and it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap_or_default();
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0);
    kilobytes / 1000
}
