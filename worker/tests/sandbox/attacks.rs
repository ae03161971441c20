//! Every program in `tests/attacks`: it is contained, nobody else notices, and nothing is left.
//!
//! How a program is to end stands in its first line. In every case it must not have written a
//! line that begins with `breach`, and the next match in its place is played as if nothing had
//! been.

use std::fs;
use std::path::Path;
use std::time::Duration;

use arbiter_games::Micros;
use arbiter_worker::sandbox::{Exit, Guarantee, Terms};

use super::Test;
use super::lab::{Lab, PATIENCE, Seen};

/// How long a program that never ends is let run.
const DEADLINE: Duration = Duration::from_millis(600);

/// How long it may take until nothing is left of a jail. Fifty milliseconds are promised, and are
/// found in the middle of several measurements; a busy machine is given more for a single one.
const CLOSING: Duration = Duration::from_secs(2);

/// What shares the directory with the attacks.
const NO_ATTACKS: [&str; 3] = ["attack.py", "honest.py", "rival.py"];

/// How a program ends that was refused memory.
const REFUSED: i32 = 9;

/// Programs that use what a fence does not keep from them: the disk without end, the machine's own
/// directories and processes by name.
const NEED_WALLS: [&str; 7] = [
    "inodes.py",
    "locked_out.py",
    "memory_files.py",
    "nested.py",
    "proc_walk.py",
    "rights.py",
    "sparse.py",
];

/// Programs that start as many processes as they may.
const NEED_A_COUNT: [&str; 2] = ["fork_count.py", "zombies.py"];

/// How much processor time the program that hides it burns at least.
const LAUNDERED: Micros = Micros::from_millis(180);

pub(crate) fn all() -> Vec<Test> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    let mut names: Vec<_> = names.filter(|name| !NO_ATTACKS.contains(&&**name)).collect();
    names.sort();
    assert!(names.len() >= 40, "{}", names.len());
    names.into_iter().map(|name| (format!("attack {name}"), test(name))).collect()
}

fn test(name: String) -> Box<dyn Fn(&Lab)> {
    Box::new(move |lab| attack(lab, &name))
}

fn attack(lab: &Lab, name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks");
    let text = fs::read_to_string(folder.join(name)).unwrap();
    let end = text.lines().next().unwrap();
    let end = end.split_once("ends: ").unwrap().1.trim_end_matches(" */");
    if end == "of memory" && !lab.holds(Guarantee::Memory) && !lab.holds(Guarantee::Disk) {
        println!("  skipped: the memory of a whole tree is not looked at here");
        return;
    }
    if NEED_A_COUNT.contains(&name) && !lab.holds(Guarantee::Processes) {
        println!("  skipped: processes are not counted here");
        return;
    }
    if NEED_WALLS.contains(&name) && !lab.holds(Guarantee::Disk) {
        println!("  skipped: there are no walls here");
        return;
    }
    let source = lab.program(name);
    let compiled = name.strip_suffix(".c").map(|stem| format!("./{stem}"));
    let argv = compiled.as_ref().map_or_else(|| vec!["python3", name], |program| vec![program]);
    let before = lab.settled_census();
    let deadline = if end == "at the deadline" { DEADLINE } else { PATIENCE };
    let seen = lab.run(&source, &argv, &Terms::default(), deadline);
    assert!(!seen.output.lines().any(|line| line.starts_with("breach")), "{}", tail(&seen));
    check_end(lab, end, &seen);
    assert!(seen.closing < CLOSING, "{:?}", seen.closing);
    lab.assert_nothing_left(&before);
    lab.next_match();
    lab.assert_nothing_left(&before);
}

fn check_end(lab: &Lab, end: &str, seen: &Seen) {
    let tail = tail(seen);
    match end {
        "by itself" => {
            assert_eq!(seen.exit, Some(Exit::Code(0)), "{tail}");
            assert!(seen.output.lines().any(|line| line == "done"), "{tail}");
        }
        "of memory" => {
            // It may have been a child that was killed, or a request that was refused.
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
        other => panic!("no end of a program: {other}"),
    }
}

/// The end of what a program said, and how it ended.
fn tail(seen: &Seen) -> String {
    let breaches = seen.output.lines().filter(|line| line.starts_with("breach"));
    let breaches: Vec<_> = breaches.take(5).collect();
    let start = seen.output.len().saturating_sub(600);
    let end = seen.output.get(start..).unwrap_or_default();
    format!("{:?} {:?} {breaches:?} … {end}", seen.exit, seen.cause)
}
