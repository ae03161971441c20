//! Figures of this process, by the names that Prometheus gives to those of any.

use std::fmt;
use std::fs;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use rustix::process::{Resource, getrlimit};

/// Adds them to a text. What `/proc` does not tell is left out.
pub(super) fn figures(text: &mut String) -> fmt::Result {
    let mut registry = Registry::default();
    let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("arbiter_build", "What is running", version);
    if let Some(state) = State::read() {
        state.register(&mut registry);
    }
    encode_registry(text, &registry)
}

/// What the kernel says of this process.
struct State {
    cpu_seconds: f64,
    start_seconds: f64,
    threads: i64,
    resident_bytes: i64,
    open_files: i64,
}

impl State {
    fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The name in brackets may hold anything; the third field is behind it.
        let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u32>().ok();
        let per_second = f64::from(u32::try_from(rustix::param::clock_ticks_per_second()).ok()?);
        let boot = fs::read_to_string("/proc/stat").ok()?;
        let boot = boot.lines().find_map(|line| line.strip_prefix("btime "))?;
        let memory = fs::read_to_string("/proc/self/statm").ok()?;
        let pages: i64 = memory.split_whitespace().nth(1)?.parse().ok()?;
        let page = i64::try_from(rustix::param::page_size()).ok()?;
        Some(Self {
            cpu_seconds: (f64::from(field(14)?) + f64::from(field(15)?)) / per_second,
            start_seconds: boot.parse::<f64>().ok()? + f64::from(field(22)?) / per_second,
            threads: field(20)?.into(),
            resident_bytes: pages * page,
            open_files: i64::try_from(fs::read_dir("/proc/self/fd").ok()?.count()).ok()?,
        })
    }

    fn register(&self, registry: &mut Registry) {
        let cpu: Counter<f64, AtomicU64> = Counter::default();
        cpu.inc_by(self.cpu_seconds);
        registry.register_with_unit("process_cpu", "Processor time", Unit::Seconds, cpu);
        let start: Gauge<f64, AtomicU64> = Gauge::default();
        start.set(self.start_seconds);
        let text = "When it started, since 1970";
        registry.register_with_unit("process_start_time", text, Unit::Seconds, start);
        let gauge = |value: i64| {
            let gauge: Gauge = Gauge::default();
            gauge.set(value);
            gauge
        };
        let memory = gauge(self.resident_bytes);
        registry.register_with_unit("process_resident_memory", "Memory", Unit::Bytes, memory);
        registry.register("process_threads", "Threads", gauge(self.threads));
        registry.register("process_open_fds", "Open files", gauge(self.open_files));
        if let Some(most) = getrlimit(Resource::Nofile).current {
            let most = gauge(i64::try_from(most).unwrap_or(i64::MAX));
            registry.register("process_max_fds", "Open files at most", most);
        }
    }
}
