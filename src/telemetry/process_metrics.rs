//! Metrics of this process, with the standard Prometheus names.

use std::fmt;
use std::fs;
use std::sync::atomic::AtomicU64;

use arbiter_proto::metrics;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use rustix::process::{Resource, getrlimit};

metrics! {
    /// The kernel's data about this process.
    struct Process {
        cpu: Counter<f64, AtomicU64> => "process_cpu" in Seconds, "Processor time";
        start: Gauge<f64, AtomicU64> => "process_start_time" in Seconds,
            "When it started, since 1970";
        memory: Gauge => "process_resident_memory" in Bytes, "Memory";
        threads: Gauge => "process_threads", "Threads";
        open_files: Gauge => "process_open_fds", "Open files";
    }
}

/// Appends the metrics to `text`, without those that `/proc` does not provide.
pub(super) fn encode(text: &mut String) -> fmt::Result {
    let mut registry = Registry::default();
    let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("arbiter_build", "What is running", version);
    if let Some(process) = Process::read() {
        process.register(&mut registry);
        if let Some(limit) = getrlimit(Resource::Nofile).current {
            let max_fds: Gauge = Gauge::default();
            max_fds.set(i64::try_from(limit).unwrap_or(i64::MAX));
            registry.register("process_max_fds", "Open files at most", max_fds);
        }
    }
    encode_registry(text, &registry)
}

impl Process {
    fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The name in brackets may contain anything; the third field follows it.
        let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u32>().ok();
        let per_second = f64::from(u32::try_from(rustix::param::clock_ticks_per_second()).ok()?);
        let system_stat = fs::read_to_string("/proc/stat").ok()?;
        let boot_time = system_stat.lines().find_map(|line| line.strip_prefix("btime "))?;
        let memory = fs::read_to_string("/proc/self/statm").ok()?;
        let pages: i64 = memory.split_whitespace().nth(1)?.parse().ok()?;
        let page = i64::try_from(rustix::param::page_size()).ok()?;
        let process = Self::default();
        process.cpu.inc_by((f64::from(field(14)?) + f64::from(field(15)?)) / per_second);
        process.start.set(boot_time.parse::<f64>().ok()? + f64::from(field(22)?) / per_second);
        process.memory.set(pages * page);
        process.threads.set(field(20)?.into());
        process.open_files.set(i64::try_from(fs::read_dir("/proc/self/fd").ok()?.count()).ok()?);
        Some(process)
    }
}
