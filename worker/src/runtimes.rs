//! The interpreters and compilers that bots find on this machine, with their versions.
//!
//! A worker reports them to the coordinator, for authors of bots. They are found in the `PATH` of
//! bots, and asked for their versions. Java is slow to start: its version is read from a file.

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use arbiter_proto::v1::Runtime;

/// How long a program may take to tell its version.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How often its end is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Maximum number of bytes that are read of what it writes.
const MAX_OUTPUT: u64 = 4096;

/// The programs, with the arguments that print their versions.
const PROGRAMS: [(&str, &[&str]); 13] = [
    ("python3", &["--version"]),
    ("pypy3", &["--version"]),
    ("node", &["--version"]),
    ("perl", &["-e", "print $^V"]),
    ("ruby", &["--version"]),
    ("lua", &["-v"]),
    ("php", &["--version"]),
    ("cc", &["--version"]),
    ("c++", &["--version"]),
    ("rustc", &["--version"]),
    ("go", &["version"]),
    ("java", &[]),
    ("javac", &[]),
];

/// The interpreters and compilers in the folders of a `PATH`. A program whose version cannot be
/// found out is left out.
pub(crate) fn detect(path: &OsStr) -> Vec<Runtime> {
    let found: Vec<_> = PROGRAMS
        .iter()
        .filter_map(|(program, arguments)| Some((program, arguments, find(program, path)?)))
        .collect();
    let runtime = |program: &str, version: String| Runtime { program: program.to_owned(), version };
    thread::scope(|scope| {
        let threads: Vec<_> = found
            .iter()
            .map(|(program, arguments, file)| {
                scope.spawn(move || Some(runtime(program, version(file, arguments, path)?)))
            })
            .collect();
        // A panic of a thread leaves its program out.
        threads.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect()
    })
}

/// The file of a program in the folders of a `PATH`.
pub(crate) fn find(program: &str, path: &OsStr) -> Option<PathBuf> {
    let mut files = std::env::split_paths(path).map(|folder| folder.join(program));
    files.find(|file| {
        fs::metadata(file)
            .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    })
}

/// The version of a program.
fn version(file: &Path, arguments: &[&str], path: &OsStr) -> Option<String> {
    if arguments.is_empty() {
        let program = fs::canonicalize(file).ok()?;
        let release = fs::read_to_string(program.parent()?.parent()?.join("release")).ok()?;
        let line = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
        return version_in(line);
    }
    version_in(&output(file, arguments, path)?)
}

/// The start of what a program prints. It is killed if it does not end in time.
#[expect(clippy::disallowed_methods, reason = "it runs the system's own interpreters")]
fn output(file: &Path, arguments: &[&str], path: &OsStr) -> Option<String> {
    let mut child = Command::new(file)
        .args(arguments)
        .env_clear()
        .env("PATH", path)
        .env("LANG", "C.UTF-8")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let deadline = Instant::now() + TIMEOUT;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > deadline {
            // It has ended if it cannot be killed.
            drop(child.kill());
            drop(child.wait());
            return None;
        }
        thread::sleep(POLL_INTERVAL);
    }
    let mut text = Vec::new();
    child.stdout?.take(MAX_OUTPUT).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// The first number with a dot in a text.
fn version_in(text: &str) -> Option<String> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '.');
    let mut words = words.map(|word| word.trim_matches('.'));
    words.find(|word| word.contains('.')).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_print() {
        for (text, version) in [
            ("Python 3.11.2\n", "3.11.2"),
            ("v18.19.0\n", "18.19.0"),
            ("cc (Debian 12.2.0-14) 12.2.0\nCopyright (C) 2022", "12.2.0"),
            ("ruby 3.1.2p20 (2022-04-12 revision 4491bb740a) [x86_64-linux-gnu]", "3.1.2"),
            ("go version go1.22.1 linux/amd64", "1.22.1"),
            ("\"17.0.13\"", "17.0.13"),
        ] {
            assert_eq!(version_in(text).as_deref(), Some(version), "{text}");
        }
        assert_eq!(version_in("no version, not even 3."), None);
    }

    #[test]
    fn programs_of_this_machine_are_reported() {
        let runtimes = detect(&crate::sandbox::search_path());
        let versions = |program: &str| runtimes.iter().any(|found| found.program == program);
        assert!(versions("cc") && versions("python3"), "{runtimes:?}");
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(detect(empty.path().as_os_str()), []);
        // A program that never ends is left out.
        let stuck = empty.path().join("lua");
        fs::write(&stuck, "#!/bin/sh\nexec sleep 60\n").unwrap();
        fs::set_permissions(&stuck, fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::join_paths([empty.path(), Path::new("/bin")]).unwrap();
        let found = detect(&path);
        assert!(found.iter().all(|runtime| runtime.program != "lua"), "{found:?}");
    }
}
