//! Speeds, latencies, memory, and the processor time of a benchmark. The processor time does not
//! depend on other programs.

use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use arbiter_coordinator::postgres::Postgres;

/// Clock ticks a second in /proc (`USER_HZ`). It is the same on all current machines with Linux.
const TICKS: f64 = 100.0;

/// The number of operations a second since an instant.
#[expect(clippy::cast_precision_loss, reason = "a few digits are enough")]
pub(crate) fn speed(operations: i64, since: Instant) -> f64 {
    operations as f64 / since.elapsed().as_secs_f64()
}

/// The median.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// The load of the machine: runnable processes, on average over the last minute.
pub(crate) fn load() -> String {
    let loads = fs::read_to_string("/proc/loadavg").expect("Linux has this file");
    loads.split(' ').next().expect("the file has three averages").to_owned()
}

/// Measured latencies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    pub(crate) fn add(&mut self, latency: Duration) {
        self.0.push(latency);
    }

    /// Adds the time that a future takes.
    pub(crate) async fn time<T>(&mut self, work: impl Future<Output = T>) -> T {
        let start = Instant::now();
        let output = work.await;
        self.add(start.elapsed());
        output
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
        let index = (sorted.len() * percent / 100).min(sorted.len() - 1);
        sorted[index].as_secs_f64() * 1000.0
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, high, max] = [50, 99, 100].map(|percent| self.percentile(percent));
        let count = self.count();
        write!(f, "p50 {median:.2} ms, p99 {high:.2} ms, max {max:.1} ms ({count} requests)")
    }
}

/// Used processor time, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuTime {
    /// Of this process.
    process: f64,
    /// Of Postgres.
    postgres: f64,
}

impl CpuTime {
    /// The time used until now.
    pub(crate) fn now(postgres: &Postgres) -> Self {
        let server = postgres.pid().to_string();
        let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children"));
        let children = children.expect("the server runs");
        let backends = children.split_whitespace().filter_map(|pid| ticks(pid, 2));
        // The server's times of ended children include the backends that have ended.
        let postgres = ticks(&server, 4).expect("the server runs") + backends.sum::<f64>();
        let process = ticks("self", 2).expect("this process has a stat file");
        Self { process: process / TICKS, postgres: postgres / TICKS }
    }

    /// The processor time of each of `operations` operations since this time, as text.
    #[expect(clippy::cast_precision_loss, reason = "a few digits are enough")]
    pub(crate) fn each(self, postgres: &Postgres, operations: i64) -> String {
        let now = Self::now(postgres);
        let micros = |seconds: f64| seconds * 1e6 / operations as f64;
        let process = micros(now.process - self.process);
        let postgres = micros(now.postgres - self.postgres);
        format!("{process:.1} µs of processor time each here, {postgres:.1} in Postgres")
    }
}

/// The sum of the first `times` processor times of a process, in ticks. proc(5) lists user, system,
/// and user and system of ended children.
fn ticks(pid: &str, times: usize) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain any characters. After it follow the state and, 11 fields
    // later, the times.
    let fields = stat.rsplit(')').next()?.split_whitespace().skip(12 - 1);
    fields.take(times).map(|field| field.parse::<f64>().ok()).sum()
}

/// Resets the peak memory of a process, and returns its present memory, in megabytes. `process` is
/// its number, or `self`.
pub(crate) fn reset_peak_memory(process: &str) -> u64 {
    fs::write(format!("/proc/{process}/clear_refs"), "5").expect("the process runs on Linux");
    memory(process, "VmRSS:")
}

/// The present (`VmRSS:`) or peak (`VmHWM:`) memory of a process, in megabytes.
pub(crate) fn memory(process: &str, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status"));
    let status = status.expect("the process runs on Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0);
    kilobytes / 1000
}
