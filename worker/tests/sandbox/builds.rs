//! Builds of submitted bots, honest and hostile, in real jails.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arbiter_games::{ClockRules, Params, Seed, blackjack};
use arbiter_worker::build::{self, BuildOptions, BuildOutcome, MAX_OUTPUT_LEN};
use arbiter_worker::bundle::{self, Submission};
use arbiter_worker::sandbox::{Bytes, Guarantee, JailConfig, Limits};
use arbiter_worker::seat::StopSignal;
use arbiter_worker::trial::{Trial, TrialOutcome};
use serde_json::json;
use tempfile::TempDir;

use super::jail_tests::Test;
use super::lab::{Lab, command, slower};

/// A bot that always stands, in some language: executed once for each decision.
struct Program {
    language: &'static str,
    /// The test is skipped if this tool is not in the bots' PATH.
    tool: &'static str,
    file: &'static str,
    text: &'static str,
    build: &'static [&'static str],
    run: &'static [&'static str],
}

const PROGRAMS: [Program; 8] = [
    Program {
        language: "C",
        tool: "cc",
        file: "main.c",
        text: "#include <stdio.h>\nint main(void) { puts(\"S\"); return 0; }\n",
        build: &["cc", "-O2", "-o", "bot", "main.c"],
        run: &["./bot"],
    },
    Program {
        language: "C++",
        tool: "c++",
        file: "main.cpp",
        text: "#include <iostream>\nint main() { std::cout << \"S\" << std::endl; }\n",
        build: &["c++", "-O2", "-o", "bot", "main.cpp"],
        run: &["./bot"],
    },
    Program {
        language: "Rust",
        tool: "rustc",
        file: "main.rs",
        text: "fn main() { println!(\"S\"); }\n",
        build: &["rustc", "-O", "-o", "bot", "main.rs"],
        run: &["./bot"],
    },
    Program {
        language: "Java",
        tool: "javac",
        file: "Main.java",
        text: "class Main { public static void main(String[] a) { System.out.println(\"S\"); } }\n",
        build: &["javac", "-d", "classes", "Main.java"],
        run: &["java", "-cp", "classes", "Main"],
    },
    Program {
        language: "Python",
        tool: "python3",
        file: "main.py",
        text: "print('S')\n",
        build: &["python3", "-m", "compileall", "-b", "main.py"],
        run: &["python3", "main.pyc"],
    },
    Program {
        language: "Lisp (sbcl)",
        tool: "sbcl",
        file: "main.lisp",
        text: "(format t \"S~%\")\n",
        build: &["sbcl", "--non-interactive", "--eval", "(compile-file \"main.lisp\")"],
        run: &["sbcl", "--script", "main.fasl"],
    },
    Program {
        language: "Scheme (guile)",
        tool: "guild",
        file: "main.scm",
        text: "(display \"S\") (newline)\n",
        build: &["guild", "compile", "-o", "main.go", "main.scm"],
        run: &["guile", "--no-auto-compile", "-C", ".", "main.scm"],
    },
    Program {
        language: "Lisp (clisp)",
        tool: "clisp",
        file: "main.lisp",
        text: "(format t \"S~%\")\n",
        build: &["clisp", "-q", "-c", "main.lisp"],
        run: &["clisp", "-q", "main.fas"],
    },
];

pub(crate) fn all() -> Vec<Test> {
    let mut tests: Vec<Test> = Vec::new();
    for program in PROGRAMS {
        let name = format!("build {}", program.language);
        tests.push((name, Box::new(move |lab| language(lab, &program))));
    }
    for (name, script, check) in HOSTILE {
        tests
            .push((format!("build that {name}"), Box::new(move |lab| hostile(lab, script, check))));
    }
    tests
}

/// A directory with a bot of these files.
fn bot(build: &[&str], run: &[&str], files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("bot")).unwrap();
    let manifest = format!("name = \"built\"\nrun = {run:?}\nbuild = {build:?}\n");
    fs::write(directory.path().join("bot/bot.toml"), manifest).unwrap();
    for (name, text) in files {
        fs::write(directory.path().join("bot").join(name), text).unwrap();
    }
    directory
}

fn is_visible(tool: &str) -> bool {
    ["/usr/local/bin", "/usr/bin", "/bin"].iter().any(|path| Path::new(path).join(tool).exists())
}

/// Tries a version of this bot at blackjack.
fn try_bot(lab: &Lab, directory: &Path) -> TrialOutcome {
    let submission = Submission::read(&directory.join("bot")).unwrap();
    let (stop, _cord) = StopSignal::new_pair().unwrap();
    let patient = json!({"move_limit": "60s"});
    let trial = Trial {
        params: Params::read(&blackjack::game(), patient).unwrap(),
        seed: Seed([7; 32]),
        seats: 4,
        clock: ClockRules::OFFICIAL,
        jail: JailConfig::default(),
        name: submission.name,
        opponents: Vec::new(),
    };
    let scratch = tempfile::tempdir().unwrap();
    let bytes = submission.bundle.bytes();
    trial.run(&lab.host, &Arc::new(stop), bytes, scratch.path(), &mut |_| {}).unwrap()
}

fn language(lab: &Lab, program: &Program) {
    if !lab.holds(Guarantee::Disk) {
        println!("  skipped: its runtime reads more than Landlock allows");
        return;
    }
    if !is_visible(program.tool) || command(program.tool).arg("--version").output().is_err() {
        println!("  skipped: {} is not in the bots' PATH", program.tool);
        return;
    }
    let before = lab.settled_census();
    let directory = bot(program.build, program.run, &[(program.file, program.text)]);
    let tried = try_bot(lab, directory.path());
    assert_eq!(tried.failure, None, "{}", tried.log);
    assert_eq!(tried.measurements.matches, 2);
    // The result is a bundle that plays without another build.
    let built = tried.program.unwrap();
    let again = tempfile::tempdir().unwrap();
    bundle::unpack(built.bytes(), again.path()).unwrap();
    let manifest = fs::read_to_string(again.path().join("bot.toml")).unwrap();
    assert!(!manifest.contains("build ="), "{manifest}");
    drop((directory, again));
    lab.assert_nothing_left(&before);
    println!("  {:?}", tried.measurements);
}

/// Checks the result of a hostile build, and the bot's directory.
type Check = fn(&BuildOutcome, &Path);

/// A hostile build: its description, its script for `sh`, and the check of the result.
const HOSTILE: [(&str, &str, Check); 12] = [
    ("loops", "while :; do :; done", |built, _| {
        fails(built, &format!("took longer than {}s", time().as_secs()));
    }),
    ("forks without end", "b() { b | b & b; }; b", |built, _| {
        assert!(built.failure.is_some(), "{built:?}");
    }),
    ("fills the disk", "cat /dev/zero > big", |built, _| {
        assert!(built.failure.is_some(), "{built:?}");
        let errors = ["No space left", "File size limit"];
        assert!(errors.iter().any(|words| built.log.contains(words)), "{}", built.log);
    }),
    ("makes files without end", "n=0; while : > f$n; do n=$((n+1)); done", |built, _| {
        assert!(built.failure.is_some(), "{built:?}");
    }),
    (
        "uses too much memory",
        "exec python3 -c 'b = [bytearray(1 << 20) for _ in range(4096)]'",
        |built, _| {
            assert!(built.failure.is_some(), "{built:?}");
        },
    ),
    (
        "connects to the network",
        "exec python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 1)'",
        |built, _| {
            fails(built, "exited with code 1");
            let unreachable = built.log.contains("Error");
            assert!(unreachable, "{}", built.log);
        },
    ),
    ("writes without end", "exec yes", |built, _| {
        fails(built, "wrote more than 16 MiB");
        assert!(built.log.len() < MAX_OUTPUT_LEN / 64, "{}", built.log.len());
    }),
    ("leaves a daemon", "sleep 1000 & (sleep 1000 >&- 2>&- &) ; : > done", |built, bot| {
        assert_eq!(built.failure, None);
        assert!(bot.join("done").exists());
    }),
    ("writes outside", ": > ../out; : > /usr/out; : > /out; : > done", |built, bot| {
        assert!(!bot.parent().unwrap().join("out").exists() && !Path::new("/usr/out").exists());
        assert!(!Path::new("/out").exists(), "{built:?}");
    }),
    (
        "creates links",
        "rm -r data; ln -s /etc data; mkfifo pipe; : > done
        exec python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'",
        |built, bot| {
            assert_eq!(built.failure, None);
            assert!(built.log.contains("skipped output files: data, socket;"), "{}", built.log);
            assert!(bot.join("done").exists() && !bot.join("pipe").exists());
            assert!(!fs::read_link(bot.join("data")).is_ok_and(|to| to.starts_with("/etc")));
        },
    ),
    ("removes what it is made of", "rm -r data; : > done", |built, bot| {
        assert_eq!((&built.failure, built.log.as_str()), (&None, ""));
        assert!(bot.join("done").exists() && bot.join("data/own").exists());
    }),
    ("is no program", "", |built, _| fails(built, "exited with code 3")),
];

fn fails(built: &BuildOutcome, says: &str) {
    let why = built.failure.as_deref().unwrap_or("it did not fail");
    assert!(why.contains(says), "{why}: {}", built.log);
}

/// The time limit of a hostile build.
fn time() -> Duration {
    Duration::from_secs(2) * slower()
}

/// Whether a bot can remove a directory of its program: overlayfs marks that with an extended
/// attribute, which tmpfs has since Linux 6.6.
fn removes_directories() -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(6))
}

fn hostile(lab: &Lab, script: &str, check: Check) {
    if !lab.holds(Guarantee::Disk) {
        println!("  skipped: Landlock cannot contain builds");
        return;
    }
    if script.contains("rm -r data") && !removes_directories() {
        println!("  skipped: this kernel cannot remove directories of a program");
        return;
    }
    let script = if script.is_empty() { "exit 3" } else { script };
    let before = lab.settled_census();
    let directory = bot(&["sh", "-c", script], &["sh"], &[]);
    let tree = directory.path().join("bot");
    fs::create_dir(tree.join("data")).unwrap();
    fs::write(tree.join("data/own"), "own").unwrap();
    let limits = Limits {
        memory: Bytes(256 << 20),
        disk: Bytes(16 << 20),
        files: 500,
        processes: 64,
        ..Limits::BUILD
    };
    let rules = BuildOptions { limits, time: time(), cores: Vec::new() };
    let (stop, cord) = StopSignal::new_pair().unwrap();
    let built = build::build(&lab.host, &stop, &tree, &rules).unwrap().unwrap().unwrap();
    check(&built, &tree);
    drop((directory, stop, cord));
    lab.assert_nothing_left(&before);
}
