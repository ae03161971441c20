//! Covers for what `/proc` tells of the whole machine.
//!
//! A jail's `/proc` has processes of its own, and beside them the machine's counters: memory, open
//! files, requests, interrupts. A bot that moves one talks to a bot that reads it. So all of them
//! are covered: by nothing, or by a copy from the start of the worker where runtimes size
//! themselves by what they read. The launcher makes the covers, and each jail lays them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where the covers are, in the launcher's root.
const COVERS: &str = "/covers";

/// What stays: it belongs to the jail, or never changes.
const UNCOVERED: [&str; 20] = [
    "self",
    "thread-self",
    "mounts",
    "net",
    "sysvipc",
    "acpi",
    "bus",
    "cmdline",
    "config.gz",
    "consoles",
    "devices",
    "dma",
    "execdomains",
    "filesystems",
    "iomem",
    "ioports",
    "misc",
    "mtrr",
    "partitions",
    "version",
];

/// Files that are shown as they were when the worker started.
const COPIED: [&str; 14] = [
    "cpuinfo",
    "meminfo",
    "sys/fs/file-max",
    "sys/fs/nr_open",
    "sys/fs/pipe-max-size",
    "sys/kernel/cap_last_cap",
    "sys/kernel/ngroups_max",
    "sys/kernel/osrelease",
    "sys/kernel/ostype",
    "sys/kernel/pid_max",
    "sys/kernel/threads-max",
    "sys/net/core/somaxconn",
    "sys/vm/max_map_count",
    "sys/vm/overcommit_memory",
];

/// Makes the covers in the root that is built at `stage`, by what the machine's own `/proc` has.
pub(super) fn make(stage: &Path) -> io::Result<()> {
    let covers = stage.join(COVERS.trim_start_matches('/'));
    fs::create_dir(&covers)?;
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let name = entry.file_name().into_string().unwrap_or_default();
        let is_process = name.bytes().all(|byte| byte.is_ascii_digit());
        if is_process || UNCOVERED.contains(&&*name) {
            continue;
        }
        let found = fs::metadata(entry.path())?;
        if found.is_dir() {
            fs::create_dir(covers.join(name))?;
        } else if found.permissions().mode() & 0o004 != 0 {
            File::create(covers.join(name))?;
        }
    }
    for name in COPIED {
        let (from, to) = (Path::new("/proc").join(name), covers.join(name));
        // A machine that has no such file, or does not show it, has no such cover.
        if let (Ok(text), Some(folder)) = (fs::read(from), to.parent()) {
            fs::create_dir_all(folder)?;
            fs::write(to, text)?;
        }
    }
    fs::write(covers.join("loadavg"), "0.00 0.00 0.00 1/1 1\n")?;
    fs::write(covers.join("uptime"), "1.00 1.00\n")?;
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    fs::write(covers.join("stat"), idle(&stat))
}

/// What `/proc/stat` tells of a machine that has just started, with the processors of this one.
#[expect(clippy::disallowed_methods, reason = "programs read it; it decides nothing")]
fn idle(stat: &str) -> String {
    let processors = stat.lines().filter(|line| line.starts_with("cpu"));
    let names = processors.filter_map(|line| line.split(' ').next());
    let processors: Vec<_> = names.map(|name| format!("{name} 0 0 0 0 0 0 0 0 0 0\n")).collect();
    let processors = processors.concat();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    format!(
        "{processors}intr 0\nctxt 0\nbtime {now}\nprocesses 1\nprocs_running 1\n\
         procs_blocked 0\nsoftirq 0\n"
    )
}

/// Lays the covers over the `/proc` of a jail.
pub(super) fn lay() -> io::Result<()> {
    for entry in fs::read_dir(COVERS)? {
        let entry = entry?;
        let target = Path::new("/proc").join(entry.file_name());
        match rustix::mount::mount_bind(entry.path(), target) {
            // Something that the machine has lost meanwhile.
            Err(rustix::io::Errno::NOENT) => {}
            laid => laid?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_has_just_started_has_its_processors() {
        let stat = "cpu  5 6 7\ncpu0 1 2 3\ncpu1 4 4 4\nintr 9 9\nbtime 1\n";
        let told = idle(stat);
        let zeros = "0 0 0 0 0 0 0 0 0 0";
        assert!(told.starts_with(&format!("cpu {zeros}\ncpu0 {zeros}\ncpu1 {zeros}\nintr 0\n")));
    }
}
