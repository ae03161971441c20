//! Masks over files of `/proc` that describe the whole machine.
//!
//! A jail's `/proc` shows its own processes, but also the machine's counters: memory, open files,
//! requests, interrupts. One bot could change a counter to signal another that reads it. So masks
//! hide all of these files. Most masks are empty files. Where language runtimes read sizes, a mask
//! is a copy from the start of the worker. The launcher creates the masks, and each jail mounts
//! them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The directory of the masks in the launcher's root.
const MASKS: &str = "/masks";

/// Entries without a mask: they belong to the jail, or never change.
const UNMASKED: [&str; 20] = [
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

/// Files whose mask is a copy from the start of the worker.
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

/// Creates the masks in the root at `stage`, for the entries of the machine's `/proc`.
pub(super) fn create(stage: &Path) -> io::Result<()> {
    let masks = stage.join(MASKS.trim_start_matches('/'));
    fs::create_dir(&masks)?;
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let name = entry.file_name().into_string().unwrap_or_default();
        let is_process = name.bytes().all(|byte| byte.is_ascii_digit());
        if is_process || UNMASKED.contains(&&*name) {
            continue;
        }
        let metadata = fs::metadata(entry.path())?;
        if metadata.is_dir() {
            fs::create_dir(masks.join(name))?;
        } else if metadata.permissions().mode() & 0o004 != 0 {
            File::create(masks.join(name))?;
        }
    }
    for name in COPIED {
        let from = Path::new("/proc").join(name);
        let to = masks.join(name);
        // If the machine has no such file, or hides it, there is no mask either.
        if let (Ok(text), Some(folder)) = (fs::read(from), to.parent()) {
            fs::create_dir_all(folder)?;
            fs::write(to, text)?;
        }
    }
    fs::write(masks.join("loadavg"), "0.00 0.00 0.00 1/1 1\n")?;
    fs::write(masks.join("uptime"), "1.00 1.00\n")?;
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    fs::write(masks.join("stat"), idle_stat(&stat))
}

/// The contents of `/proc/stat` for a machine with these processors that has just started.
#[expect(clippy::disallowed_methods, reason = "bots read this time; the worker does not use it")]
fn idle_stat(stat: &str) -> String {
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

/// Mounts the masks over the `/proc` of a jail.
pub(super) fn apply() -> io::Result<()> {
    for entry in fs::read_dir(MASKS)? {
        let entry = entry?;
        let target = Path::new("/proc").join(entry.file_name());
        match rustix::mount::mount_bind(entry.path(), target) {
            // The machine has lost this entry meanwhile.
            Err(rustix::io::Errno::NOENT) => {}
            mounted => mounted?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_masked_stat_lists_all_processors() {
        let stat = "cpu  5 6 7\ncpu0 1 2 3\ncpu1 4 4 4\nintr 9 9\nbtime 1\n";
        let masked = idle_stat(stat);
        let zeros = "0 0 0 0 0 0 0 0 0 0";
        assert!(masked.starts_with(&format!("cpu {zeros}\ncpu0 {zeros}\ncpu1 {zeros}\nintr 0\n")));
    }
}
