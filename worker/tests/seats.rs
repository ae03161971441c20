//! Misbehaving bots in real processes: each is tolerated or forfeits as documented, with evidence
//! for its author.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use arbiter_games::{ClockKind, Forfeit, Micros};
use arbiter_worker::fault::Fault;
use arbiter_worker::sandbox::{BotSource, Host, Jail, JailConfig, Policy, Ponder, Workdir};
use arbiter_worker::seat::{
    ExecSeat, Framing, GRACE, SeatDriver, StdioSeat, StopSignal, TimedReply,
};

/// The time in which a process starts and replies on a busy machine.
const TIMEOUT: Micros = Micros::from_millis(20_000);

/// The limit for replies that never arrive.
const SHORT: Micros = Micros::from_millis(300);

/// The time in which a spinning bot uses 30 ms of processor time, even on a very busy machine.
const SPIN: Micros = Micros::from_millis(3_000);

/// The misbehaving bot, compiled once.
fn rascal() -> PathBuf {
    static COMPILED: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_directory, program) = COMPILED.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bots/rascal/rascal.c");
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("rascal");
        #[expect(clippy::disallowed_methods, reason = "a compiler is run, not a bot")]
        let compiled = Command::new("cc").arg("-o").arg(&program).arg(source).status().unwrap();
        assert!(compiled.success());
        (directory, program)
    });
    program.clone()
}

/// A stop signal and its sender. The tests do not send the signal.
fn stop() -> (Arc<StopSignal>, UnixStream) {
    let (reader, writer) = UnixStream::pair().unwrap();
    (Arc::new(StopSignal::new(OwnedFd::from(reader))), writer)
}

fn jail() -> Jail {
    let host = Host::prepare(Policy::Off).unwrap();
    Jail::open(&host, Workdir::new(&BotSource::File(rascal())).unwrap(), &JailConfig::default())
        .unwrap()
}

/// A jail whose bot may run and write while no reply is due.
fn jail_that_allows_pondering() -> Jail {
    let host = Host::prepare(Policy::Off).unwrap();
    let terms = JailConfig { ponder: Ponder::Allow, ..JailConfig::default() };
    Jail::open(&host, Workdir::new(&BotSource::File(rascal())).unwrap(), &terms).unwrap()
}

fn argv(mode: &str, at: u32) -> Vec<String> {
    vec!["./rascal".to_owned(), mode.to_owned(), at.to_string()]
}

/// Sends gomoku's messages to the rascal in `mode` until it forfeits.
fn line_bot(mode: &str, at: u32, limits: &[Micros]) -> Vec<Result<String, (Forfeit, String)>> {
    let questions = ["A []", "0 []", "1 [((0,0),\"B\")]"];
    talk(mode, at, Framing::Line, &questions, limits)
}

/// Like [`line_bot`], for a GTP bot.
fn gtp_bot(mode: &str, at: u32, limits: &[Micros]) -> Vec<Result<String, (Forfeit, String)>> {
    let questions = ["your_number 1", "genmove 1", "play 1 check", "genmove 1"];
    talk(mode, at, Framing::Gtp, &questions, limits)
}

fn talk(
    mode: &str,
    at: u32,
    framing: Framing,
    questions: &[&str],
    limits: &[Micros],
) -> Vec<Result<String, (Forfeit, String)>> {
    let (stop, _writer) = stop();
    let mut seat =
        StdioSeat::start(jail(), &argv(mode, at), framing, ClockKind::Wall, stop).unwrap();
    let mut replies = Vec::new();
    for (question, limit) in questions.iter().zip(limits) {
        let TimedReply { reply, spent } = seat.ask(question, *limit).unwrap();
        assert!(spent.wall <= *limit + TIMEOUT, "{mode}: {spent:?}");
        match reply {
            Ok(bytes) => replies.push(Ok(String::from_utf8_lossy(&bytes).into_owned())),
            Err(failure) => {
                if failure.forfeit == Forfeit::Clock {
                    assert!(spent.wall > *limit, "{mode}: late, but {spent:?}");
                }
                replies.push(Err((failure.forfeit, failure.detail)));
                break;
            }
        }
    }
    seat.close().unwrap();
    replies
}

/// The expected last reply.
enum Expected {
    /// A reply.
    TimedReply(&'static str),
    /// A forfeit, and a part of its detail.
    Forfeit(Forfeit, &'static str),
}

#[test]
fn line_bots_forfeit_for_protocol_errors() {
    use Expected::{Forfeit as Fails, TimedReply};
    let slow = [TIMEOUT, SHORT];
    let calm = [TIMEOUT, TIMEOUT];
    let cases: &[(&str, &[Micros], Expected)] = &[
        ("honest", &calm, TimedReply("(0,0)")),
        ("silent", &slow, Fails(Forfeit::Clock, "")),
        ("deaf", &slow, Fails(Forfeit::Clock, "")),
        ("spin", &slow, Fails(Forfeit::Clock, "")),
        ("unterminated", &slow, Fails(Forfeit::Clock, "5 bytes received, without the end")),
        ("dribble", &slow, Fails(Forfeit::Clock, "1 bytes received, without the end")),
        ("exit", &calm, Fails(Forfeit::Gone, "exited with code 3")),
        ("orphan", &calm, Fails(Forfeit::Gone, "exited with code 0")),
        ("segv", &calm, Fails(Forfeit::Gone, "was killed by SIGSEGV")),
        ("abort", &calm, Fails(Forfeit::Gone, "was killed by SIGABRT")),
        ("kill", &calm, Fails(Forfeit::Gone, "was killed by SIGKILL")),
        (
            "close-stdout",
            &calm,
            Fails(Forfeit::Gone, "closed its standard output, but is still running"),
        ),
        ("twice", &calm, Fails(Forfeit::Illegal, "5 bytes more than one reply")),
        ("flood-line", &calm, Fails(Forfeit::Flood, "more than 65536 bytes")),
        ("crlf", &calm, TimedReply("(0,0)")),
        ("nul", &calm, TimedReply("(0,0)\0")),
        ("utf8", &calm, TimedReply("\u{fffd}\u{fffd}")),
        ("empty", &slow, Fails(Forfeit::Clock, "")),
        ("garbage", &calm, TimedReply("xyzzy")),
        ("stderr", &calm, TimedReply("(0,0)")),
    ];
    for (mode, limits, expected) in cases {
        let replies = line_bot(mode, 1, limits);
        assert_eq!(replies[0].as_deref(), Ok("(7,7)(7,8)(8,8)"), "{mode}");
        check(mode, &replies[1], expected);
    }
}

fn check(mode: &str, heard: &Result<String, (Forfeit, String)>, expected: &Expected) {
    match (heard, expected) {
        (Ok(answer), Expected::TimedReply(due)) => assert_eq!(answer, due, "{mode}"),
        (Err((forfeit, detail)), Expected::Forfeit(kind, says)) => {
            assert_eq!(forfeit, kind, "{mode}: {detail}");
            assert!(detail.contains(says), "{mode}: {detail}");
        }
        (heard, _) => panic!("{mode}: {heard:?}"),
    }
}

/// The forfeit of the rascal in `mode` after a slow reply of its rival. Meanwhile the rascal has
/// time to act.
fn after_a_rival(mode: &str) -> (Forfeit, String) {
    let (stop, _writer) = stop();
    let start = |mode| {
        let stop = Arc::clone(&stop);
        StdioSeat::start(
            jail_that_allows_pondering(),
            &argv(mode, 0),
            Framing::Line,
            ClockKind::Wall,
            stop,
        )
        .unwrap()
    };
    let mut seat = start(mode);
    let mut rival = start("slow");
    assert!(seat.ask("A []", TIMEOUT).unwrap().reply.is_ok(), "{mode}: the answer counts");
    assert!(rival.ask("A []", TIMEOUT).unwrap().reply.is_ok());
    let failure = seat.ask("0 []", TIMEOUT).unwrap().reply.unwrap_err();
    seat.close().unwrap();
    Box::new(rival).close().unwrap();
    (failure.forfeit, failure.detail)
}

#[test]
fn unrequested_output_is_a_forfeit() {
    for mode in ["early", "late-twice"] {
        let expected = "wrote 15 bytes without being asked: \"(7,7)(7,8)(8,8)\"";
        assert_eq!(after_a_rival(mode), (Forfeit::Illegal, expected.to_owned()), "{mode}");
    }
}

#[test]
fn a_bot_that_closes_its_input_forfeits() {
    let expected = "closed its standard input, but is still running";
    assert_eq!(after_a_rival("close-stdin"), (Forfeit::Gone, expected.to_owned()));
}

#[test]
fn gtp_bots_forfeit_for_protocol_errors() {
    use Expected::{Forfeit as Fails, TimedReply};
    let slow = [TIMEOUT, SHORT];
    let calm = [TIMEOUT, TIMEOUT];
    let cases: &[(&str, &[Micros], Expected)] = &[
        ("honest", &calm, TimedReply("= check")),
        ("crlf", &calm, TimedReply("= check")),
        ("unterminated", &slow, Fails(Forfeit::Clock, "7 bytes received")),
        ("twice", &calm, Fails(Forfeit::Illegal, "7 bytes more than one reply")),
        ("garbage", &calm, TimedReply("= xyzzy")),
        ("utf8", &calm, TimedReply("= \u{fffd}\u{fffd}")),
        ("exit", &calm, Fails(Forfeit::Gone, "exited with code 3")),
        ("flood-line", &calm, Fails(Forfeit::Flood, "more than 65536 bytes")),
    ];
    for (mode, limits, expected) in cases {
        let replies = gtp_bot(mode, 0, limits);
        assert_eq!(replies[0].as_deref(), Ok("="), "{mode}");
        check(mode, &replies[1], expected);
    }
}

#[test]
fn more_than_16_mib_of_output_is_a_flood() {
    let (stop, _writer) = stop();
    let argv = argv("flood-lines", 0);
    let mut seat = StdioSeat::start(jail(), &argv, Framing::Gtp, ClockKind::Wall, stop).unwrap();
    let mut replies = 0;
    let failure = loop {
        match seat.ask("your_number 1", TIMEOUT).unwrap().reply {
            Ok(_) => replies += 1,
            Err(failure) => break failure,
        }
    };
    assert_eq!(failure.forfeit, Forfeit::Flood, "{}", failure.detail);
    assert!(failure.detail.contains("in one match"), "{}", failure.detail);
    assert!((270..=280).contains(&replies), "16 MiB are 279 answers of 60 000 bytes: {replies}");
    seat.close().unwrap();
}

#[test]
fn a_bot_that_does_not_read_its_input_loses_on_time() {
    let (stop, _writer) = stop();
    let mut seat =
        StdioSeat::start(jail(), &argv("deaf", 0), Framing::Line, ClockKind::Wall, stop).unwrap();
    let TimedReply { reply, spent } = seat.ask(&"x".repeat(200_000), SHORT).unwrap();
    let failure = reply.unwrap_err();
    assert_eq!(failure.forfeit, Forfeit::Clock);
    assert_eq!(failure.detail, "read only 65536 of 200001 bytes of its standard input");
    assert!(spent.wall > SHORT);
    seat.close().unwrap();
}

#[test]
fn the_end_of_standard_error_is_stored() {
    let (stop, _writer) = stop();
    let mut seat =
        StdioSeat::start(jail(), &argv("stderr", 0), Framing::Line, ClockKind::Wall, stop).unwrap();
    assert!(seat.ask("A []", TIMEOUT).unwrap().reply.is_ok());
    seat.close_input();
    seat.wait_for_exit(Instant::now() + GRACE).unwrap();
    let remains = seat.close().unwrap();
    assert_eq!(remains.stderr, vec![b'e'; 64 * 1024]);
    assert_eq!(remains.stderr_dropped, (1 << 20) - 64 * 1024);
    assert!(remains.cpu > Micros::ZERO);
}

#[test]
fn processor_time_is_charged_to_the_reply_that_used_it() {
    let (stop, _writer) = stop();
    let mut seat =
        StdioSeat::start(jail(), &argv("spin", 1), Framing::Line, ClockKind::Wall, stop).unwrap();
    let calm = seat.ask("A []", TIMEOUT).unwrap();
    let spun = seat.ask("0 []", SPIN).unwrap();
    assert!(calm.reply.is_ok() && spun.reply.is_err());
    assert!(spun.spent.cpu > Micros::from_millis(30), "{spun:?}");
    assert!(spun.spent.cpu > calm.spent.cpu, "{calm:?} {spun:?}");
    seat.close().unwrap();
}

#[test]
fn a_program_that_cannot_start_forfeits() {
    let (stop, _writer) = stop();
    let argv = vec!["./no-such-program".to_owned()];
    let mut seat = StdioSeat::start(jail(), &argv, Framing::Line, ClockKind::Wall, stop).unwrap();
    let failure = seat.ask("A []", TIMEOUT).unwrap().reply.unwrap_err();
    assert_eq!(failure.forfeit, Forfeit::Gone);
    assert!(failure.detail.contains("./no-such-program could not be started"), "{failure:?}");
    seat.close().unwrap();
}

#[test]
fn a_stop_signal_abandons_the_match() {
    let (stop, writer) = stop();
    let mut seat =
        StdioSeat::start(jail(), &argv("silent", 0), Framing::Line, ClockKind::Wall, stop).unwrap();
    drop(writer);
    assert!(matches!(seat.ask("A []", TIMEOUT), Err(Fault::Abandoned)));
    seat.close().unwrap();
}

/// The reply of an executed rascal to a decision.
fn decision(mode: &str, limit: Micros) -> TimedReply {
    let (stop, _writer) = stop();
    let mut seat = ExecSeat::new(jail(), argv(mode, 0), stop);
    let reply = seat.ask("21 KJA KQKJA3592A# 25 145", limit).unwrap();
    Box::new(seat).close().unwrap();
    reply
}

#[test]
fn executed_bots_forfeit_for_protocol_errors() {
    let reply = |mode| decision(mode, TIMEOUT).reply.map_err(|failure| failure.forfeit);
    assert_eq!(reply("honest"), Ok(b"S".to_vec()));
    assert_eq!(reply("crlf"), Ok(b"S".to_vec()), "the whole output is trimmed");
    assert_eq!(reply("twice"), Ok(b"S\nS".to_vec()), "the game judges it");
    for mode in ["empty", "silent", "orphan"] {
        assert_eq!(reply(mode), Ok(Vec::new()), "{mode}: no output is an empty reply");
    }
    for (mode, due) in [
        ("exit", "exited with code 3 without output"),
        ("segv", "was killed by SIGSEGV without output"),
    ] {
        let failure = decision(mode, TIMEOUT).reply.unwrap_err();
        assert_eq!((failure.forfeit, &failure.detail[..]), (Forfeit::Gone, due), "{mode}");
    }
    assert_eq!(reply("flood-line"), Err(Forfeit::Flood));
    for mode in ["dribble", "spin"] {
        let late = decision(mode, SHORT);
        assert_eq!(late.reply.map_err(|failure| failure.forfeit), Err(Forfeit::Clock), "{mode}");
        assert!(late.spent.wall > SHORT);
    }
}

#[test]
fn a_program_can_run_right_after_it_is_written() {
    let start_many = || {
        for _ in 0..60 {
            let reply = decision("honest", TIMEOUT);
            assert_eq!(reply.reply, Ok(b"S".to_vec()), "each bot has a separate directory");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(start_many);
        }
    });
}
