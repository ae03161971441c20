//! Runs every program in `tests/attacks`: it is contained, affects no other bot, and leaves
//! nothing.
//!
//! The first line of a program says how it must end. It must never write a line that starts with
//! `breach`, and the next match in its place must be played normally.
//!
//! A program that ends `again` or `as a forfeit` is executed for each of several decisions. What it
//! leaves may make it forfeit, but is never a fault.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use arbiter_games::{Forfeit, Micros};
use arbiter_worker::sandbox::{BotSource, Exit, Guarantee, JailConfig};
use arbiter_worker::seat::{ExecSeat, SeatDriver};

use super::jail_tests::Test;
use super::lab::{Lab, Network, Seen, TIMEOUT, slower, stop};

/// The time after which a program that never ends is killed.
const DEADLINE: Duration = Duration::from_millis(600);

/// The time limit for closing a jail. The guarantee is a median of fifty milliseconds, which
/// another test measures; on a busy machine, a single one took two seconds.
const CLOSING: Duration = Duration::from_secs(10);

/// Files in the directory that are no attacks.
const NO_ATTACKS: [&str; 3] = ["attack.py", "honest.py", "rival.py"];

/// The exit code of a program whose allocation failed.
const REFUSED: i32 = 9;

/// Programs that Landlock cannot contain: they fill the disk, or use the machine's own directories
/// and processes by name.
const NEED_NAMESPACES: [&str; 16] = [
    "access_times.py",
    "again_text_busy.py",
    "again_text_busy_backlog.py",
    "again_text_busy_ring.py",
    "allocated.py",
    "attributes.py",
    "inodes.py",
    "locked_out.py",
    "memory_files.py",
    "nested.py",
    "proc_walk.py",
    "raise_loopback.py",
    "rights.py",
    "sparse.py",
    "special_files.py",
    "unlinked_files.py",
];

/// Programs whose memory is not mapped. Only control groups count it.
const NEED_GROUPS: [&str; 2] = ["buffers_pipes.py", "buffers_unix.py"];

/// Programs that change the mode of a file by path. Bots that run as the worker's user are not
/// allowed to do this.
const NEED_CHMOD: [&str; 1] = ["again_locked.py"];

/// Programs that start as many processes as allowed.
const NEED_PROCESS_LIMIT: [&str; 2] = ["fork_count.py", "zombies.py"];

/// The minimum processor time of the program that tries to hide it.
const LAUNDERED: Micros = Micros::from_millis(180);

/// Attacks with much output and many errors, processes and refused calls.
const LOUD: [&str; 4] = ["stdout_flood.py", "stderr_flood.py", "zombies.py", "again_text_busy.py"];

/// Growth that is not significant, in bytes: floods of output are stored in chunks of 64 KiB,
/// between which the allocator leaves gaps. A process with a single slot has little more than a
/// megabyte, so a tenth of it is two such chunks.
const GRAIN: u64 = 256 << 10;

/// The number of executions of a program that leaves something behind.
const EXECUTIONS: usize = 3;

/// The time limit of one of these executions.
const EXECUTION: Micros = Micros::from_millis(30_000);

pub(crate) fn all() -> Vec<Test> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    let mut names: Vec<_> = names.filter(|name| !NO_ATTACKS.contains(&&**name)).collect();
    names.sort();
    assert!(names.len() >= 114, "{}", names.len());
    let attacks = names.into_iter().map(|name| -> Test { (format!("attack {name}"), test(name)) });
    let first: Test = ("memory of the worker before attacks".to_owned(), Box::new(note_memory));
    let last: Test = ("memory of the worker after attacks".to_owned(), Box::new(compare_memory));
    [first].into_iter().chain(attacks).chain([last]).collect()
}

/// Runs the attacks with the most output, and records the worker's memory afterwards.
fn note_memory(lab: &Lab) {
    for name in LOUD.into_iter().chain(LOUD) {
        attack(lab, name);
    }
    lab.settled_memory.set(Lab::memory()).expect("the memory is recorded once");
}

fn compare_memory(lab: &Lab) {
    let Some(before) = lab.settled_memory.get().copied() else {
        println!("  skipped: the memory was not recorded before");
        return;
    };
    let after = Lab::memory();
    println!("  {before} bytes before, {after} after");
    let limit = before + (before / 10).max(GRAIN);
    assert!(after <= limit, "{before} bytes before, {after} after");
}

fn test(name: String) -> Box<dyn Fn(&Lab)> {
    Box::new(move |lab| attack(lab, &name))
}

fn attack(lab: &Lab, name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks");
    let text = fs::read_to_string(folder.join(name)).unwrap();
    let end = text.lines().next().unwrap();
    let end = end.split_once("ends: ").unwrap().1.trim_end_matches(" */");
    let (end, network) = match end.strip_suffix(", with a listener") {
        Some(end) => (end, Network::Loopback),
        None => (end, Network::None),
    };
    if let Some(why) = missing(lab, name, end, network) {
        println!("  skipped: {why}");
        return;
    }
    let source = lab.program(name);
    let before = lab.settled_census();
    if matches!(end, "again" | "as a forfeit") {
        execute(lab, &source, name, end == "as a forfeit");
        return lab.assert_unharmed(&before);
    }
    let compiled = name.strip_suffix(".c").map(|stem| format!("./{stem}"));
    let argv = compiled.as_ref().map_or_else(|| vec!["python3", name], |program| vec![program]);
    let deadline = if end == "at the deadline" { DEADLINE } else { TIMEOUT };
    let outcome = lab.run_with(&source, &argv, &JailConfig::default(), deadline, network);
    assert!(!outcome.output.lines().any(|line| line.starts_with("breach")), "{}", tail(&outcome));
    check_end(lab, end, &outcome);
    assert!(outcome.closing < CLOSING * slower(), "{:?}", outcome.closing);
    lab.assert_unharmed(&before);
}

/// The requirement of the attack that this machine does not meet, if any.
fn missing(lab: &Lab, name: &str, end: &str, network: Network) -> Option<&'static str> {
    let has_namespaces = lab.holds(Guarantee::Disk);
    let counts_memory = lab.holds(Guarantee::Memory);
    if !has_namespaces && (network == Network::Loopback || NEED_NAMESPACES.contains(&name)) {
        Some("there are no namespaces here")
    } else if NEED_CHMOD.contains(&name) && !has_namespaces && !rustix::process::geteuid().is_root()
    {
        Some("bots run as the worker's user here")
    } else if NEED_PROCESS_LIMIT.contains(&name) && !lab.holds(Guarantee::Processes) {
        Some("processes are not counted here")
    } else if NEED_GROUPS.contains(&name) && !counts_memory {
        Some("no control group counts memory here")
    } else if end == "of memory" && !counts_memory && !has_namespaces {
        Some("the memory of a process tree is not measured here")
    } else {
        None
    }
}

/// Executes a script for several decisions. Each gets a reply or a forfeit. If `loses`, all after
/// the first get a forfeit.
fn execute(lab: &Lab, source: &BotSource, name: &str, loses: bool) {
    let BotSource::Directory(directory) = source else {
        unreachable!("a lab's program is a directory")
    };
    let script = fs::read_to_string(directory.join(name)).unwrap();
    let program = directory.join("program");
    fs::write(&program, format!("#!/usr/bin/python3\n{script}")).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let (stop, _writer) = stop();
    let argv = vec!["./program".to_owned()];
    let mut seat = ExecSeat::new(lab.jail(source, &JailConfig::default()), argv, stop);
    for execution in 0..EXECUTIONS {
        let reply = seat.ask("0", EXECUTION).unwrap();
        let errors = String::from_utf8_lossy(seat.stderr()).into_owned();
        println!("  {:?}", reply.reply);
        match reply.reply {
            Ok(reply) if execution == 0 => assert_eq!(reply, b"left", "{errors}"),
            Err(failure) if execution == 0 => panic!("{failure:?} {errors}"),
            Ok(reply) => assert!(!loses, "{}", String::from_utf8_lossy(&reply)),
            Err(failure) => assert_eq!(failure.forfeit, Forfeit::Gone, "{failure:?}"),
        }
    }
    Box::new(seat).close().unwrap();
}

fn check_end(lab: &Lab, end: &str, seen: &Seen) {
    let tail = tail(seen);
    match end {
        "by itself" => {
            assert_eq!(seen.exit, Some(Exit::Code(0)), "{tail}");
            assert!(seen.output.lines().any(|line| line == "done"), "{tail}");
        }
        "of memory" => {
            // A child was killed, or an allocation failed.
            let killed = seen.cause.as_ref().is_some_and(|cause| cause.contains("400 MB"));
            assert!(killed || seen.exit == Some(Exit::Code(REFUSED)), "{tail}");
        }
        "at the deadline" => assert_eq!(seen.exit, None, "{tail}"),
        "by a signal" => assert!(matches!(seen.exit, Some(Exit::Signal(_))), "{tail}"),
        "with 137" => assert_eq!((seen.exit, &seen.cause), (Some(Exit::Code(137)), &None)),
        "with its time counted" => {
            let counted = seen.cpu >= LAUNDERED || !lab.holds(Guarantee::Cpu);
            assert!(counted, "{:?}: {tail}", seen.cpu);
        }
        other => panic!("unknown end of a program: {other}"),
    }
}

/// The last output of a program, and how it ended.
fn tail(seen: &Seen) -> String {
    let breaches = seen.output.lines().filter(|line| line.starts_with("breach"));
    let breaches: Vec<_> = breaches.take(5).collect();
    let start = seen.output.len().saturating_sub(600);
    let end = seen.output.get(start..).unwrap_or_default();
    format!("{:?} {:?} {breaches:?} … {end}", seen.exit, seen.cause)
}
