//! Measures covert channels: how much two bots of a match can signal each other through what the
//! sandbox does not separate. These measurements are no tests and run only by name:
//! `cargo test -p arbiter-worker --test sandbox -- measure`.

use std::path::Path;

use arbiter_games::{ClockKind, Micros};
use arbiter_worker::sandbox::{BotSource, Guarantee, JailConfig};
use arbiter_worker::seat::{Framing, SeatDriver, StdioSeat};

use super::jail_tests::Test;
use super::lab::{Lab, command, stop};

/// The time limit of a turn.
const TURN: Micros = Micros::from_millis(20_000);

/// The number of measured turns.
const TURNS: u64 = 200;

/// The channels: the name in `signaller.c`, and the number of bits that it sends in a turn.
const CHANNELS: [(&str, usize); 5] =
    [("cache", 1024), ("maps", 1024), ("numbers", 8), ("events", 128), ("processes", 5)];

/// Channels through files of `/proc`, which cannot be read without namespaces.
const NEED_PROC: [&str; 2] = ["maps", "events"];

pub(crate) fn all() -> Vec<Test> {
    let channels = CHANNELS.into_iter();
    let test = |(way, bits)| -> Test {
        (format!("measure the channel {way}"), Box::new(move |lab| measure(lab, way, bits)))
    };
    channels.map(test).collect()
}

/// A large system file that no process maps: the compiler, which does not run.
fn idle_file() -> String {
    let output = command("cc").arg("-print-prog-name=cc1").output().unwrap();
    let path = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    if path.starts_with("/usr") { path } else { "/usr/bin/python3".to_owned() }
}

/// Lets one bot send `bits` each turn to another, which shares its processor and is stopped
/// meanwhile, and prints how many arrive.
fn measure(lab: &Lab, way: &str, bits: usize) {
    if !cfg!(target_arch = "x86_64") {
        println!("  skipped: it is written for another architecture");
        return;
    }
    if NEED_PROC.contains(&way) && !lab.holds(Guarantee::Disk) {
        println!("  skipped: /proc cannot be read here");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let program = directory.path().join("signaller");
    let compiled =
        command("cc").arg("-O1").arg("-o").arg(&program).arg(folder.join("signaller.c")).status();
    assert!(compiled.unwrap().success());
    let source = BotSource::Directory(directory.path().to_owned());
    let (stop, _writer) = stop();
    let terms = JailConfig { cores: vec![0], ..JailConfig::default() };
    let mut argv = vec!["./signaller".to_owned(), way.to_owned()];
    argv.extend((way == "maps").then(idle_file));
    let [mut sender, mut receiver] = [(); 2].map(|()| {
        let jail = lab.jail(&source, &terms);
        StdioSeat::start(jail, &argv, Framing::Line, ClockKind::Wall, stop.clone()).unwrap()
    });
    let ask = |seat: &mut Box<dyn SeatDriver>, text: &str| {
        let reply = seat.ask(text, TURN).unwrap().reply.unwrap();
        String::from_utf8(reply).unwrap()
    };
    let mut wrong = 0;
    for turn in 0..TURNS {
        let message = pattern(turn, bits);
        ask(&mut sender, "clear");
        ask(&mut receiver, &format!("receive {bits}"));
        ask(&mut sender, &format!("send {message}"));
        let received = ask(&mut receiver, &format!("receive {bits}"));
        let digits = message.chars().zip(received.chars());
        let differ = digits.map(|(a, b)| a.to_digit(16).unwrap() ^ b.to_digit(16).unwrap());
        wrong += differ.map(u32::count_ones).sum::<u32>();
    }
    for seat in [sender, receiver] {
        seat.close().unwrap();
    }
    let bits = f64::from(u32::try_from(bits).unwrap());
    let error = f64::from(wrong) / (bits * f64::from(u32::try_from(TURNS).unwrap()));
    println!(
        "  {bits} bits a turn, {error:.4} of them wrong: {:.1} arrive",
        bits * capacity(error)
    );
}

/// Pseudorandom bits as hexadecimal digits, by the generator of Numerical Recipes.
fn pattern(turn: u64, bits: usize) -> String {
    let mut state = turn;
    let mut next = |bits: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{:x}", state >> (64 - bits))
    };
    let first = if bits.is_multiple_of(4) { String::new() } else { next(bits % 4) };
    (0..bits / 4).fold(first, |digits, _| digits + &next(4))
}

/// The capacity of a binary symmetric channel with this error rate, in bits for each sent bit.
fn capacity(error: f64) -> f64 {
    let loss = |part: f64| if part > 0.0 { -part * part.log2() } else { 0.0 };
    1.0 - loss(error) - loss(1.0 - error)
}
