//! Rules of game packages that fail in tournaments, with a real coordinator and a real worker. The
//! matches are played again, and set aside with the reason and the question. No bot loses a point
//! or is suspended, and other matches and tournaments are played meanwhile.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

#[expect(dead_code, reason = "the tests of pages use more of it")]
#[path = "web/browser.rs"]
mod browser;
mod support;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use browser::Browser;
use serde_json::{Value, json};
use support::service::{free_address, wait_until};
use support::up::Up;

/// The attempts at a match before it is set aside.
const ATTEMPTS: usize = 3;

/// Rules that fail when they hear `boom`.
const RULES: &str = r#"
import json, sys, time

for line in sys.stdin:
    question = json.loads(line)
    if "new" in question:
        mode = question["new"]["params"]["mode"]
        answer = {"do": [{"ask": 1, "text": "go"}, {"ask": 2, "text": "go"}]}
    else:
        replies = [heard.get("text") for heard in question["heard"]]
        answer = {"do": [{"over": [[1], [1]]}]}
        if "boom" in replies and mode == "crash":
            raise ValueError("boom is no move")
        if "boom" in replies and mode == "silence":
            time.sleep(999)
        if "boom" in replies and mode == "nonsense":
            answer = {"do": [{"tel": 1, "text": "lost"}]}
    print(json.dumps(answer), flush=True)
"#;

/// The module asks seat 1 once, and then traps.
const MODULE: &str = r#"(module
    (memory (export "memory") 1)
    (global $questions (mut i32) (i32.const 0))
    (data (i32.const 0) "{\"do\":[{\"ask\":1,\"text\":\"go\"}]}")
    (func (export "alloc") (param i32) (result i32) (i32.const 1024))
    (func (export "handle") (param i32 i32) (result i64)
        (global.set $questions (i32.add (global.get $questions) (i32.const 1)))
        (if (i32.gt_s (global.get $questions) (i32.const 1)) (then (unreachable)))
        (i64.const 30)))"#;

/// Writes a package with these rules.
fn package(folder: &Path, version: u32, rules: &str, file: (&str, &[u8])) -> String {
    fs::create_dir(folder).unwrap();
    let descriptor = format!(
        "name = \"fragile\"\ntitle = \"Fragile\"\nversion = \"{version}\"\nseats = [2, 2]\n\
         rules = {{ {rules} }}\n[clock]\nmove = \"60s\"\n[params.mode]\ntype = \"choice\"\n\
         choices = [\"none\", \"crash\", \"silence\", \"nonsense\"]\ndefault = \"none\"\n\
         help = \"what the rules do when they hear boom\"\n"
    );
    fs::write(folder.join("game.toml"), descriptor).unwrap();
    fs::write(folder.join(file.0), file.1).unwrap();
    folder.to_str().unwrap().to_owned()
}

/// Creates and starts a tournament with these bots, who all meet once.
fn start(up: &Up, name: &str, game: &str, mode: &str, bots: &[String]) {
    up.create(&format!(
        "name = \"{name}\"\ngame = \"{game}\"\n[params]\nmode = \"{mode}\"\n[schedule]\n\
         kind = \"round_robin\"\nsides = \"random\"\n[submissions]\nwindow = \"0ms\"\n\
         [house]\nbots = {bots:?}\n"
    ));
    up.succeed(&format!("tournament start {name}"));
}

/// The matches of a tournament that were set aside.
fn aside(up: &Up, name: &str) -> Vec<Value> {
    up.json(&format!("tournament show {name}"))[0]["aside"].as_array().unwrap().clone()
}

/// Checks that each of these matches failed as often as it may, for this cause, at this question.
fn expect_reasons(aside: &[Value], cause: &str, question: &str) {
    for set_aside in aside {
        let reasons = set_aside["reasons"].as_array().unwrap();
        assert_eq!(reasons.len(), ATTEMPTS, "{set_aside}");
        for reason in reasons {
            let reason = reason.as_str().unwrap();
            assert!(reason.starts_with("the rules failed: "), "{reason}");
            assert!(reason.contains(cause), "{cause}: {reason}");
            assert!(reason.contains("asked: ") && reason.contains(question), "{reason}");
        }
    }
}

/// The metric of the worker's faults of a kind.
fn worker_faults(metrics: SocketAddr, kind: &str) -> usize {
    let metrics = Browser::new(metrics).page("/metrics");
    let series = format!("arbiter_worker_faults_total{{kind=\"{kind}\"}} ");
    let value = metrics.lines().find_map(|line| line.strip_prefix(&series));
    value.unwrap_or_else(|| panic!("no {series}in {metrics}")).parse().unwrap()
}

#[test]
fn faults_of_rules_stop_their_match_alone() {
    let address = free_address();
    let up = Up::start_with("ARBITER_METRICS", &address.to_string());
    let folder = up.bots.path().to_owned();
    let run = "run = [\"python3\", \"rules.py\"]";
    let fragile = package(&folder.join("fragile"), 1, run, ("rules.py", RULES.as_bytes()));
    let module = wat::parse_str(MODULE).unwrap();
    let trap = package(&folder.join("trap"), 1, "wasm = \"rules.wasm\"", ("rules.wasm", &module));
    let bot = |name: &str, reply: &str| {
        up.bots.python(name, &format!("for line in sys.stdin: print({reply:?}, flush=True)"))
    };
    let honest = [bot("ada", "1"), bot("bob", "1"), bot("cyd", "1")];
    let boom = bot("boom", "boom");
    let two = [honest[0].clone(), boom];
    let all = [&honest[1..], &two].concat();

    // With one slot: while rules are silent, nothing else can be played.
    start(&up, "silence", &fragile, "silence", &two);
    start(&up, "crash", &fragile, "crash", &all);
    start(&up, "nonsense", &fragile, "nonsense", &all);
    start(&up, "trap", &trap, "none", &two);
    start(&up, "calm", &fragile, "none", &all);
    up.wait_for("calm", 1);

    let cases = [
        ("silence", 1, "they gave no answer within 10s", r#"{"heard":[{"seat""#),
        ("crash", 3, "ValueError: boom is no move", r#""text":"boom"}"#),
        ("nonsense", 3, r#"action 1: unknown action "tel""#, r#""text":"boom"}"#),
        ("trap", 1, "unreachable` instruction executed", r#"{"heard":[{"seat":1"#),
    ];
    for (name, matches, cause, question) in cases {
        wait_until("matches are set aside", || aside(&up, name).len() == matches);
        expect_reasons(&aside(&up, name), cause, question);
        let page = Browser::new(up.http).page(&format!("/t/{name}"));
        assert!(page.contains("Matches set aside"), "{page}");
        // No bot loses by it, not even the one whose replies crash the rules.
        for bot in up.json(&format!("bots {name}")) {
            assert_eq!(bot["suspended"], false, "{bot}");
        }
        let edition = up.newest(name);
        assert_eq!(edition["state"], "running", "{edition}");
        let played = if matches == 3 { 3 } else { 0 };
        assert_eq!(edition["counted"], played, "{edition}");
        let aside = json!([{"state": "set aside", "lots": matches, "matches": matches}]);
        assert_eq!(edition["lots"], aside, "only what the edition waits for");
        for line in up.json(&format!("ranking {name} --edition 1")) {
            let forfeits = line["forfeits"].as_object().unwrap();
            assert!(forfeits.values().all(|count| *count == json!(0)), "{line}");
        }
    }

    // The worker tells them from faults of its machine, and does not pause for them.
    let log = up.log();
    assert!(log.contains("attempt failed") && !log.contains("pauses after a fault"), "{log}");
    let set_aside: usize = cases.iter().map(|(_, matches, ..)| matches).sum();
    assert!(worker_faults(address, "rules") >= ATTEMPTS * set_aside);
    for other in ["system", "unclean", "panic", "inputs"] {
        assert_eq!(worker_faults(address, other), 0, "{other}");
    }

    // The organiser corrects the rules.
    let correct = RULES.replace("\"boom\" in replies", "False");
    let correct = package(&folder.join("correct"), 2, run, ("rules.py", correct.as_bytes()));
    up.succeed(&format!("tournament package crash {correct}"));
    up.wait_for("crash", 2);
    assert_eq!(aside(&up, "crash"), [] as [Value; 0]);
    up.close();
}
