//! Measures what a reply costs in the rules: gomoku natively, the same behind the protocol of
//! packages as a program in the sandbox, the carrier of modules alone, and the shipped Othello in C
//! as a module and as a program: `cargo bench -p arbiter-worker --bench rules`. Needs `cc`, `clang`
//! and `wasm-ld`.
//!
//! The rules run on one processor, like those of a slot on a machine with as many slots.
//!
//! This program is also the rules: as `rules game serve gomoku` it answers the protocol.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arbiter_games::{
    BotName, ExpectedReply, Game, Games, MatchState, Micros, Params, Seed, Step, gomoku,
};
use arbiter_packages::ServedGame;
use arbiter_worker::package::Package;
use arbiter_worker::sandbox::{Host, Policy, SlotThread, slot_cores};
use arbiter_worker::seat::StopSignal;

/// The number of matches of each kind.
const MATCHES: u8 = 50;

/// The squares of the board of gomoku.
const SQUARES: usize = 225;

/// The replies of a match by the module's rules, which never end.
const MODULE_REPLIES: u32 = 100_000;

/// The package with rules in C.
const OTHELLO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../games/packages/othello");

fn main() {
    arbiter_worker::sandbox::handle_reexec();
    if std::env::args().nth(1).as_deref() == Some("game") {
        return serve();
    }
    let host = Arc::new(Host::prepare(Policy::Auto).expect("a sandbox"));
    let (stop, _handle) = StopSignal::new_pair().expect("a pipe");
    let stop = Arc::new(stop);
    let thread = SlotThread::bind(&slot_cores(0, processors()));
    let _priority = thread.as_ref().map(SlotThread::referee_priority);
    let directory = tempfile::tempdir().expect("a directory");
    let native = measure(&gomoku::game());
    println!("native:            {native:?} per reply of gomoku");
    let program = program(&directory.path().join("program"), &host, &stop);
    println!("program:           {:?} per reply of gomoku", measure(&program));
    println!(
        "module, no rules:  {:?} per reply",
        module(&directory.path().join("module"), &host, &stop)
    );
    othello(&directory.path().join("othello"), &host, &stop);
}

/// The number of processors of this machine.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Replays a whole match of Othello without pictures by its module and by the same rules as a
/// program. The two take turns, so that a slow moment of the machine meets both.
fn othello(folder: &Path, host: &Arc<Host>, stop: &Arc<StopSignal>) {
    let packages = [("module: ", OTHELLO.as_ref()), ("program:", native_othello(folder))]
        .map(|(name, path)| (name, Package::load(path).expect("a package")));
    let golden = fs::read_to_string(Path::new(OTHELLO).join("tests/match.jsonl"));
    let golden = golden.expect("the shipped record");
    let replies = u32::try_from(golden.matches("\"reply\":").count()).expect("a short match");
    let mut times = [const { (Vec::new(), Vec::new()) }; 2];
    for number in 0..MATCHES {
        for ((_, package), (start, whole)) in packages.iter().zip(&mut times) {
            let game = Game::new(package.game(host, stop).expect("rules that run"));
            let begun = Instant::now();
            drop(begin(&game, number).step());
            start.push(begun.elapsed());
            let record = arbiter_replay::with_package(&golden, &package.digest);
            let record = record.expect("a record of a package");
            let games = Games::built_in().with_game(&game);
            let begun = Instant::now();
            arbiter_replay::verify(&games, record.as_bytes()).expect("the same match");
            whole.push(begun.elapsed());
        }
    }
    for ((name, _), (start, whole)) in packages.iter().zip(times) {
        let start = median(start);
        let whole = median(whole);
        let reply = whole.saturating_sub(start) / replies;
        println!("othello, {name} {reply:?} per reply, {start:?} to start, {whole:?} per match");
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The package of Othello with its rules compiled for this machine.
#[expect(clippy::disallowed_methods, reason = "a compiler is no bot")]
fn native_othello(folder: &Path) -> &Path {
    fs::create_dir(folder).expect("a new folder");
    let text = fs::read_to_string(Path::new(OTHELLO).join("game.toml")).expect("the descriptor");
    let text = text.lines().map(|line| {
        let line =
            if line.starts_with("rules = ") { "rules = { run = [\"./othello\"] }" } else { line };
        format!("{line}\n")
    });
    fs::write(folder.join("game.toml"), text.collect::<String>()).expect("a file");
    let sources = fs::read_dir(Path::new(OTHELLO).join("src")).expect("the sources");
    let sources = sources.map(|entry| entry.expect("a file").path());
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-O2", "-o"]).arg(folder.join("othello"));
    compiler.args(sources.filter(|path| path.extension().is_some_and(|end| end == "c")));
    assert!(compiler.status().expect("a C compiler").success(), "the rules compile");
    folder
}

/// Answers the protocol as gomoku.
fn serve() {
    let mut served = ServedGame::new(gomoku::game());
    for question in io::stdin().lines() {
        let answer = served.answer(&question.expect("a line")).expect("an answer");
        writeln!(io::stdout(), "{answer}").expect("a reader");
    }
}

/// A package whose rules are a copy of this program.
fn program(folder: &Path, host: &Arc<Host>, stop: &Arc<StopSignal>) -> Game {
    let own = std::env::current_exe().expect("this program has a path");
    let rules = "run = [\"./rules\", \"game\", \"serve\", \"gomoku\"]";
    package(folder, rules, |folder| fs::copy(&own, folder.join("rules")).map(drop), host, stop)
}

/// Plays a module that answers every question with the same request.
fn module(folder: &Path, host: &Arc<Host>, stop: &Arc<StopSignal>) -> Duration {
    let ask = r#"{"do":[{"ask":1,"text":"move"}]}"#;
    let text = format!(
        r#"(module
            (memory (export "memory") 1)
            (data (i32.const 0) "{}")
            (func (export "alloc") (param i32) (result i32) (i32.const 1024))
            (func (export "handle") (param i32 i32) (result i64) (i64.const {})))"#,
        ask.replace('"', "\\\""),
        ask.len()
    );
    let bytes = wat::parse_str(text).expect("a valid module");
    let rules = "wasm = \"rules.wasm\"";
    let write = |folder: &Path| fs::write(folder.join("rules.wasm"), &bytes);
    let game = package(folder, rules, write, host, stop);
    let mut state = begin(&game, 0);
    let start = Instant::now();
    for _ in 0..MODULE_REPLIES {
        assert!(matches!(state.step(), Step::Send(_)), "it asks for ever");
        state.receive_reply(Ok("3"), Micros::ZERO).expect("a module judges later");
    }
    start.elapsed() / MODULE_REPLIES
}

fn package(
    folder: &Path,
    rules: &str,
    write: impl Fn(&Path) -> io::Result<()>,
    host: &Arc<Host>,
    stop: &Arc<StopSignal>,
) -> Game {
    fs::create_dir(folder).expect("a new folder");
    write(folder).expect("a file");
    let descriptor = format!(
        "name = \"measured\"\ntitle = \"Measured\"\nversion = \"1\"\nseats = [2, 2]\n\
         rules = {{ {rules} }}\n[bot]\narguments = true\n"
    );
    fs::write(folder.join("game.toml"), descriptor).expect("a file");
    let package = Package::load(folder).expect("a package");
    let game = package.game(host, stop).expect("rules that run");
    let games = Games::built_in().with(game);
    games.find("measured").expect("it was added")
}

/// A match of the game, whose rules have started.
fn begin(game: &Game, number: u8) -> Box<dyn MatchState> {
    let names: [BotName; 2] = ["one", "two"].map(|name| name.parse().expect("a good name"));
    let params = Params::official(game);
    let mut state = params.start(&names, Seed([number; 32])).expect("two bots play");
    state.prepare();
    state
}

/// The time of the rules for a reply of gomoku. Starting them does not count.
fn measure(game: &Game) -> Duration {
    let mut replies = 0;
    let mut time = Duration::ZERO;
    for number in 0..MATCHES {
        let mut state = begin(game, number);
        let mut squares = (0..SQUARES).map(|index| index * 37 % SQUARES);
        let start = Instant::now();
        loop {
            match state.step() {
                Step::Send(message) if message.expected_reply != ExpectedReply::None => {
                    let reply = reply(&message.text, &mut squares);
                    state.receive_reply(Ok(&reply), Micros::ZERO).expect("a legal reply");
                    replies += 1;
                }
                Step::Over(_) => break,
                Step::Fault(cause) => panic!("{cause}"),
                _ => {}
            }
        }
        time += start.elapsed();
    }
    time / replies
}

/// A legal reply: the next free square in the game phase.
fn reply(request: &str, squares: &mut impl Iterator<Item = usize>) -> String {
    let is_free = |square: &String| !request.contains(square.as_str());
    match request.chars().next() {
        Some('A') => "(0,0)(1,0)(0,1)".to_owned(),
        Some('B') => "\"B\"".to_owned(),
        _ => squares
            .map(|square| format!("({},{})", square % 15, square / 15))
            .find(is_free)
            .expect("the match ends before the board is full"),
    }
}
