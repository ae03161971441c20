//! Honest programs of many languages run, with threads and child processes.

use std::fs;
use std::time::Duration;

use arbiter_worker::sandbox::{BotSource, Exit, Guarantee, JailConfig};

use super::jail_tests::Test;
use super::lab::{Lab, TIMEOUT, command};

/// A program in some language.
struct Program {
    language: &'static str,
    /// The test is skipped if this tool is missing.
    tool: &'static str,
    file: &'static str,
    text: &'static str,
    build: &'static [&'static str],
    run: &'static [&'static str],
    /// Whether its runtime reads more than Landlock allows.
    needs_namespaces: bool,
}

const PROGRAMS: [Program; 7] = [
    Program {
        language: "Python with threads, subprocesses, pools and a database",
        tool: "python3",
        file: "main.py",
        text: include_str!("../programs/main.py"),
        build: &[],
        run: &["python3", "main.py"],
        needs_namespaces: true,
    },
    Program {
        language: "C with threads",
        tool: "cc",
        file: "main.c",
        text: include_str!("../programs/main.c"),
        build: &["cc", "-O1", "-pthread", "-o", "main", "main.c"],
        run: &["./main"],
        needs_namespaces: false,
    },
    Program {
        language: "Rust with threads and subprocesses",
        tool: "rustc",
        file: "main.rs",
        text: include_str!("../programs/threads.rs"),
        build: &["rustc", "--edition", "2024", "-o", "main", "main.rs"],
        run: &["./main"],
        needs_namespaces: false,
    },
    Program {
        language: "Java",
        tool: "java",
        file: "Main.java",
        text: include_str!("../programs/Main.java"),
        build: &[],
        run: &["java", "Main.java"],
        needs_namespaces: true,
    },
    Program {
        language: "JavaScript",
        tool: "node",
        file: "main.js",
        text: include_str!("../programs/main.js"),
        build: &[],
        run: &["node", "main.js"],
        needs_namespaces: true,
    },
    Program {
        language: "Perl",
        tool: "perl",
        file: "main.pl",
        text: "my $n = `echo 42`; print $n;",
        build: &[],
        run: &["perl", "main.pl"],
        needs_namespaces: false,
    },
    Program {
        language: "a shell script without a first line",
        tool: "sh",
        file: "main",
        text: "echo $((6 * 7))\n",
        build: &["chmod", "+x", "main"],
        run: &["./main"],
        needs_namespaces: false,
    },
];

pub(crate) fn all() -> Vec<Test> {
    let tests = PROGRAMS.into_iter().map(|program| {
        let name = format!("language {}", program.language);
        let test: Box<dyn Fn(&Lab)> = Box::new(move |lab| run(lab, &program));
        (name, test)
    });
    tests.collect()
}

fn run(lab: &Lab, program: &Program) {
    if !lab.holds(Guarantee::Disk) && program.needs_namespaces {
        println!("  skipped: it needs /proc or /dev/shm, which Landlock does not give");
        return;
    }
    if command(program.tool).arg("--version").output().is_err() {
        println!("  skipped: {} is missing", program.tool);
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(program.file), program.text).unwrap();
    if let [tool, rest @ ..] = program.build {
        let built = command(tool).args(rest).current_dir(directory.path()).status();
        assert!(built.unwrap().success());
    }
    let source = BotSource::Directory(directory.path().to_owned());
    let before = lab.settled_census();
    let outcome = lab.run(&source, program.run, &JailConfig::default(), 2 * TIMEOUT);
    assert!(outcome.output.lines().any(|line| line == "42"), "{}", outcome.output);
    assert_eq!(outcome.exit, Some(Exit::Code(0)), "{}", outcome.output);
    assert!(outcome.closing < Duration::from_millis(500), "{:?}", outcome.closing);
    println!("  {} of processor time, {:?} of memory", outcome.cpu, outcome.memory);
    lab.assert_nothing_left(&before);
}
