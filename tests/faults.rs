//! Infrastructure faults are never scored: a slot waits until all processes of a match are gone,
//! and a host that runs out of memory makes no bot forfeit.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use support::machine::groups;
use support::{Bots, arbiter, files};

/// The time limit of a wait on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A control group inside the group of a match. The group of the match then cannot be removed, as
/// with a process that exits slowly.
struct Within(PathBuf);

impl Within {
    /// Creates the group in a group of a match that `worker` plays, but not in the group `left`.
    fn new(worker: u32, left: Option<&OsStr>) -> Self {
        let started = Instant::now();
        loop {
            let mut control_groups = groups(Path::new("/sys/fs/cgroup"), worker);
            control_groups.retain(|path| path.file_name() != left);
            // During the self-test at the start its jail is the only one.
            let matches = if are_of_one_jail(&control_groups) { &[] } else { &*control_groups };
            let within = matches.iter().map(|path| path.join("within"));
            if let Some(made) = within.into_iter().find(|path| fs::create_dir(path).is_ok()) {
                return Self(made);
            }
            assert!(started.elapsed() < TIMEOUT, "no match is running: {control_groups:?}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// The name of the match's group.
    fn of(&self) -> Option<&OsStr> {
        self.0.parent()?.file_name()
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        drop(fs::remove_dir(&self.0));
    }
}

/// Whether these are all the groups of one jail, or none.
fn are_of_one_jail(paths: &[PathBuf]) -> bool {
    paths.iter().all(|path| path.file_name() == paths[0].file_name())
}

fn line_with<R: Read>(lines: &mut Lines<BufReader<R>>, part: &str) -> String {
    lines.map(Result::unwrap).find(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}"))
}

#[test]
fn a_slot_waits_for_slow_exits_and_plays_again() {
    if !rustix::process::geteuid().is_root() || !Path::new("/sys/fs/cgroup").exists() {
        println!("left out: control groups cannot be changed here");
        return;
    }
    let bots = Bots::new();
    let slow = &bots.rascal("slow", "slow", 1, "");
    let mut run = arbiter()
        .args(["play", "gomoku", slow, slow, "--games", "400", "--jobs", "2", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(run.stdout.take().unwrap()).lines();
    let mut stderr = BufReader::new(run.stderr.take().unwrap()).lines();
    let one = Within::new(run.id(), None);
    let waits = "a slot waits for a killed bot to exit; 1 slot continues";
    line_with(&mut stderr, waits);
    line_with(&mut stdout, "\"match\":");
    let left = one.of().map(OsStr::to_owned);
    drop(one);
    // Without the first slot, no slot could continue.
    let two = Within::new(run.id(), left.as_deref());
    line_with(&mut stderr, waits);
    run.kill().unwrap();
    run.wait().unwrap();
    drop(two);
    // The next run removes the group.
    support::succeed(&["play", "gomoku", slow, slow]);
    assert!(groups(Path::new("/sys/fs/cgroup"), run.id()).is_empty());
}

/// A control group of version 1 with little memory.
struct Cramped(PathBuf);

impl Cramped {
    /// Such a group, if it can be created.
    fn new(bytes: &str) -> Option<Self> {
        let memberships = fs::read_to_string("/proc/self/cgroup").unwrap();
        let path = memberships.lines().find_map(|line| line.split_once(":memory:"))?.1;
        let hierarchy = Path::new("/sys/fs/cgroup/memory").join(path.trim_start_matches('/'));
        let group = Self(hierarchy.join(format!("cramped-{}", std::process::id())));
        fs::create_dir(&group.0).ok()?;
        fs::write(group.0.join("memory.limit_in_bytes"), bytes).ok()?;
        Some(group)
    }

    /// The program under test in this group.
    #[expect(clippy::disallowed_methods, reason = "a shell is run, not a bot")]
    fn arbiter(&self) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo 0 > \"$0\"/cgroup.procs && exec \"$@\""]);
        shell.arg(&self.0).arg(arbiter().get_program());
        shell
    }
}

impl Drop for Cramped {
    fn drop(&mut self) {
        // Processes of the run may still be exiting.
        let started = Instant::now();
        while fs::remove_dir(&self.0).is_err() && self.0.exists() && started.elapsed() < TIMEOUT {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_host_out_of_memory_is_no_forfeit() {
    let Some(group) = Cramped::new("150000000") else {
        println!("left out: control groups of version 1 cannot be created here");
        return;
    };
    let bots = Bots::new();
    let honest = &bots.rascal("honest", "honest", 0, "");
    let hungry = bots.path().join("hungry");
    fs::create_dir(&hungry).unwrap();
    // Within the bot's limit, but more than the machine has.
    fs::write(hungry.join("bot.py"), "input()\nfood = b'x' * 300_000_000\ninput()\n").unwrap();
    fs::write(hungry.join("meta"), "hungry\npython3\nbot.py\n0\n").unwrap();
    let output = group.arbiter().args(["play", "gomoku", honest]).arg(&hungry).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("killed within its limits"), "{message}");
    assert!(message.contains("0 of 1 games count"), "{message}");
}

/// Everything in a directory, by name.
fn names(directory: &Path) -> Vec<String> {
    let names = files(directory)
        .into_iter()
        .filter_map(|path| path.file_name()?.to_str().map(str::to_owned));
    names.collect()
}

#[test]
fn the_next_run_cleans_up_after_a_killed_one() {
    let bots = Bots::new();
    let slow = &bots.rascal("slow", "slow", 1, "");
    let honest = &bots.rascal("honest", "honest", 0, "");
    for sandbox in ["auto", "off"] {
        let temporary = bots.path().join(format!("tmp-{sandbox}"));
        let records = bots.path().join(sandbox);
        fs::create_dir(&temporary).unwrap();
        let play = |call: &[&str]| {
            let mut run = arbiter();
            run.args(["play", "gomoku", "--sandbox", sandbox]).args(call);
            run.arg("--record").arg(&records).env("TMPDIR", &temporary);
            run
        };
        let mut run = play(&[slow, slow, "--games", "1000", "--jobs", "2", "--json"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(run.stdout.take().unwrap()).lines();
        let begun = |name: &String| name.starts_with('.');
        // Between two matches there may be no leftovers. A stopped run shows what a kill leaves.
        let child = Pid::from_child(&run);
        line_with(&mut stdout, "\"match\":2");
        loop {
            kill_process(child, Signal::STOP).unwrap();
            waitpid(Some(child), WaitOptions::UNTRACED).unwrap();
            if !names(&temporary).is_empty() && names(&records).iter().any(begun) {
                break;
            }
            kill_process(child, Signal::CONT).unwrap();
            line_with(&mut stdout, "\"match\":");
        }
        run.kill().unwrap();
        run.wait().unwrap();
        // A child that was starting when its run was killed may live a little longer. Then a
        // later run removes the directories.
        let mut runs = 0;
        while runs == 0 || (runs < 10 && !names(&temporary).is_empty()) {
            let other = play(&[honest, honest, "--seed", "other"]).output().unwrap();
            assert!(other.status.success(), "{other:?}");
            runs += 1;
        }
        assert_eq!(names(&temporary), [""; 0], "{sandbox}");
        assert!(!names(&records).iter().any(begun), "{:?}", names(&records));
        assert!(groups(Path::new("/sys/fs/cgroup"), run.id()).is_empty());
    }
}
