//! Rules of packages that do everything wrong. Each is a fault that names its cause: `arbiter play`
//! fails, no bot forfeits, no process is left, and the next match is played as if nothing happened.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use support::{Bots, run};

/// A request to seat 1.
const ASK: &str = r#"{"do":[{"ask":1,"text":"go"}]}"#;
/// The end of a match.
const OVER: &str = r#"{"do":[{"over":[[2],[1]]}]}"#;

/// A folder with two bots and packages.
struct Lab {
    bots: Bots,
    names: [String; 2],
}

impl Lab {
    fn new() -> Self {
        let bots = Bots::new();
        let reply = "for line in sys.stdin: print('x', flush=True)";
        let names = ["one", "two"].map(|name| bots.python(name, reply));
        Self { bots, names }
    }

    /// The folder of a package whose `rules` are this line of its descriptor.
    fn package(&self, name: &str, rules: &str) -> String {
        let directory = self.bots.path().join(name);
        fs::create_dir(&directory).unwrap();
        let descriptor = format!(
            "name = \"hostile\"\ntitle = \"Hostile\"\nversion = \"1\"\nseats = [2, 2]\n\
             frames = true\nrules = {{ {rules} }}\n"
        );
        fs::write(directory.join("game.toml"), descriptor).unwrap();
        directory.to_str().unwrap().to_owned()
    }

    /// A package whose rules are a Python program with these lines.
    fn python(&self, name: &str, code: &str) -> String {
        let mark = self.mark(name);
        let rules = format!("run = [\"python3\", \"rules.py\", \"{mark}\"]");
        let package = self.package(name, &rules);
        let prelude = format!(
            "import json, os, sys, time\nASK = '{ASK}'\nOVER = '{OVER}'\n\
             def say(text): print(text, flush=True)\n"
        );
        fs::write(Path::new(&package).join("rules.py"), prelude + code).unwrap();
        package
    }

    /// A package whose rules are a module with this body of `handle`.
    fn module(&self, name: &str, body: &str) -> String {
        let package = self.package(name, "wasm = \"rules.wasm\"");
        let text = format!(
            r#"(module
                (memory (export "memory") 1)
                (global $questions (mut i32) (i32.const 0))
                (data (i32.const 0) "{}")
                (func (export "alloc") (param i32) (result i32) (i32.const 1024))
                (func (export "handle") (param i32 i32) (result i64)
                    (global.set $questions (i32.add (global.get $questions) (i32.const 1)))
                    {body}))"#,
            ASK.replace('"', "\\\"")
        );
        fs::write(Path::new(&package).join("rules.wasm"), wat::parse_str(text).unwrap()).unwrap();
        package
    }

    /// An argument by which the processes of a package are found.
    fn mark(&self, name: &str) -> String {
        format!("{}-{name}", self.bots.path().display())
    }

    fn play(&self, package: &str) -> Output {
        let [one, two] = &self.names;
        run(&["play", package, one, two, "--json", "--no-rotate"])
    }

    /// Plays a package whose rules must fail with this cause.
    fn fails(&self, name: &str, package: &str, cause: &str) {
        let output = self.play(package);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let named = stderr.contains("the rules failed: ") && stderr.contains(cause);
        assert!(named, "{name}: {cause:?} is not in: {stderr}");
        assert_eq!(output.status.code(), Some(1), "{name}: {stderr}");
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(stdout.is_empty(), "{name}: a match without result counts: {stdout}");
        assert_eq!(left_processes(&self.mark(name)), [""; 0], "{name}");
    }

    /// Plays an honest match, which is not disturbed by what was played before.
    fn still_plays(&self) {
        let code = "for line in sys.stdin: say(ASK if 'new' in line else OVER)\n";
        let output = self.play(&self.python("honest", code));
        let stderr = String::from_utf8_lossy(&output.stderr);
        let stdout = String::from_utf8_lossy(&output.stdout);
        let played: Value = serde_json::from_str(stdout.lines().next().expect(&stderr)).unwrap();
        assert_eq!(played["scores"], json!([[2], [1]]));
        assert_eq!(played["forfeits"], json!([null, null]));
    }
}

/// The command lines of all processes that contain `mark`.
fn left_processes(mark: &str) -> Vec<String> {
    let commands = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let command = fs::read(entry.unwrap().path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&command).replace('\0', " "))
    });
    commands.filter(|command| command.contains(mark)).collect()
}

/// Runs all of these rules, and an honest match afterwards.
fn all_fail(cases: &[(&str, &str, &str)]) {
    let lab = Lab::new();
    for (name, code, cause) in cases {
        lab.fails(name, &lab.python(name, code), cause);
    }
    lab.still_plays();
}

#[test]
fn answers_that_are_not_possible_are_faults() {
    let svg = "say('{\"do\":[{\"frame\":{\"svg\":\"' + 'x' * 300000 + '\",\"caption\":\"c\"}}]}')";
    let controls =
        "say('{\"do\":[{\"frame\":{\"svg\":\"' + '\\\\u0001' * 9 + '\",\"caption\":\"c\"}}]}')";
    all_fail(&[
        ("json", "input(); say('{'); input()", "EOF while parsing an object"),
        ("text", "input(); say('hello'); input()", "answered: hello"),
        ("bytes", "input(); os.write(1, b'\\xff\\xfe\\n'); input()", "not UTF-8"),
        ("deep", "input(); say('[' * 100000); input()", "asked: {\"new\":"),
        (
            "nested",
            "input(); say('{\"do\":[{\"note\":' + '[' * 100000); input()",
            "recursion limit",
        ),
        ("seat", "input(); say('{\"do\":[{\"ask\":3,\"text\":\"x\"}]}'); input()", "seat 3 is not"),
        ("none", "input(); say('{\"do\":[{\"ask\":0,\"text\":\"x\"}]}'); input()", "seat 0 is not"),
        (
            "score",
            "input(); say('{\"do\":[{\"over\":[[1],[2],[3]]}]}'); input()",
            "each of 2 seats needs 1 number",
        ),
        (
            "infinite",
            "input(); say('{\"do\":[{\"over\":[[1e999],[2]]}]}'); input()",
            "out of range",
        ),
        ("idle", "input(); say('{\"do\":[]}'); input()", "neither asks a seat nor ends the match"),
        ("picture", &format!("input(); {svg}; input()"), "300000 bytes; the maximum is 262144"),
        ("controls", &format!("input(); {controls}; input()"), "the character U+0001"),
        (
            "told",
            "input()\nfor n in range(70): say('{\"do\":[{\"tell\":2,\"text\":\"' + 'x' * 1000 + \
             '\"},{\"ask\":1,\"text\":\"go\"}]}'); input()\n\
             say('{\"do\":[{\"ask\":2,\"text\":\"go\"}]}'); input()",
            "seat 2 was told 70070 bytes since its last request",
        ),
        (
            "waived",
            "input(); say('{\"do\":[{\"over\":[[1],[2]],\"forfeits\":[\"clock\",null]}]}'); input()",
            "seat 1 did not forfeit so",
        ),
        (
            "times",
            "input(); say('{\"do\":[{\"ask\":1,\"text\":\"x\",\"move_us\":1,\"bank_us\":1}]}'); input()",
            "`move_us` or `bank_us`, not both",
        ),
        (
            "launch",
            "input(); say('{\"do\":[{\"launch\":1,\"arguments\":[\"x\"]}]}'); input()",
            "only the first answer may give arguments",
        ),
    ]);
}

#[test]
fn rules_that_break_the_dialogue_are_faults() {
    all_fail(&[
        ("crash", "input(); say(ASK); input(); raise ValueError('bad')", "ValueError: bad"),
        ("signal", "input(); os.kill(os.getpid(), 11)", "killed by SIGSEGV"),
        ("never", "sys.exit(4)", "exited with code 4"),
        ("after", "input(); say(ASK); sys.exit(0)", "exited with code 0"),
        ("unasked", "say(ASK)\nfor line in sys.stdin: say(ASK)", "asked"),
        (
            "twice",
            "input(); say(ASK + '\\n' + ASK)\nfor line in sys.stdin: say(ASK)",
            "a second line; write nothing but one answer",
        ),
        ("unended", "input(); os.write(1, OVER.encode()); sys.exit(0)", "exited with code 0"),
        ("stdin", "input(); os.close(0); say(ASK); time.sleep(999)", "closed its standard input"),
        ("stdout", "input(); os.close(1); time.sleep(999)", "closed its standard output"),
        ("stderr", "input(); os.write(2, b'y' * 9000); say('{'); input()", "EOF while parsing"),
    ]);
}

#[test]
fn rules_that_use_too_much_are_faults() {
    all_fail(&[
        ("memory", "input(); x = b'1' * (4 << 30)", "more than its 400 MB of memory"),
        ("long", "input(); say('x' * 100_000_000); input()", "wrote more than 4194304 bytes"),
        (
            "orphan",
            "input()\nif os.fork() == 0: time.sleep(999)\nsay(ASK)\nsys.exit(0)",
            "exited with code 0",
        ),
        ("murder", "input(); os.kill(-1, 9); os.kill(os.getppid(), 9)", "asked: {\"new\":"),
    ]);
}

/// Each of these takes the limit of an answer, ten seconds, for every attempt at the match.
#[test]
fn rules_that_do_not_answer_are_faults() {
    all_fail(&[("loop", "input()\nwhile True: pass", "they gave no answer within 10s")]);
}

#[test]
fn rules_that_fork_without_end_are_faults() {
    let bomb = "input()\nwhile True:\n  try: os.fork()\n  except OSError: pass\n";
    all_fail(&[("bomb", bomb, "they gave no answer within 10s")]);
}

#[test]
fn an_answer_without_its_end_is_a_fault() {
    let unended = "input(); os.write(1, ASK.encode()); time.sleep(999)";
    all_fail(&[("unended", unended, "30 bytes received, without the end of a reply")]);
}

#[test]
fn modules_that_fail_are_faults() {
    let lab = Lab::new();
    let ask = format!("(i64.const {})", ASK.len());
    let later =
        format!("(if (i32.gt_s (global.get $questions) (i32.const 1)) (then (unreachable))) {ask}");
    for (name, body, cause) in [
        ("loop", "(loop (br 0)) (i64.const 0)", "more than "),
        ("trap", later.as_str(), "unreachable` instruction executed"),
        ("long", "(i64.const 100000000)", "an answer of 100000000 bytes"),
        ("outside", "(i64.const 0x7fffffff00000010)", "outside of the memory"),
        ("empty", "(i64.const 0)", "EOF while parsing"),
        (
            "memory",
            "(if (i32.eq (memory.grow (i32.const 65000)) (i32.const -1)) (then (unreachable))) \
             (i64.const 0)",
            "unreachable` instruction executed",
        ),
    ] {
        lab.fails(name, &lab.module(name, body), cause);
    }
    lab.still_plays();
}

/// The rules are no shield: what a bot does wrong meanwhile is its own forfeit.
#[test]
fn a_bot_that_fails_while_the_rules_run_forfeits() {
    let lab = Lab::new();
    let slow = "for line in sys.stdin:\n  if 'new' in line: say(ASK)\n  \
                else: time.sleep(0.3); say(OVER)\n";
    let package = lab.python("slow", slow);
    let [_, honest] = &lab.names;
    for (name, code, forfeit) in [
        ("gone", "input(); os._exit(3)", "gone"),
        ("flood", "input(); print('x' * 100000, flush=True)", "flood"),
        ("talks", "input(); print('x\\nx', flush=True); input()", "illegal"),
    ] {
        let bad = lab.bots.python(name, code);
        let output = run(&["play", &package, &bad, honest, "--json", "--no-rotate"]);
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let played: Value = serde_json::from_str(stdout.lines().next().expect(&stderr)).unwrap();
        assert_eq!(played["forfeits"], json!([forfeit, null]), "{played}");
        assert_eq!(played["scores"], json!([[2], [1]]));
    }
    assert_eq!(left_processes(&lab.mark("slow")), [""; 0]);
}
