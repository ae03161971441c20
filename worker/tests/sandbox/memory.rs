//! Only a bot that runs out of memory forfeits, with evidence.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use arbiter_games::{ClockKind, Forfeit, Micros};
use arbiter_worker::sandbox::{BotSource, Bytes, Guarantee, JailConfig, Limits};
use arbiter_worker::seat::{ExecSeat, Framing, SeatDriver, StdioSeat, StopSignal, TimedReply};

use super::jail_tests::Test;
use super::lab::Lab;

/// The time limit of a reply on a busy machine.
const TIMEOUT: Micros = Micros::from_millis(30_000);

/// The evidence of a bot that was killed.
const EVIDENCE: &str = "killed for using more than its 64 MB of memory (peak ";

/// Allocates shared memory, which per-process limits do not count: itself, or in a child that it
/// waits for.
const GLUTTON: &str = "
import mmap, os, sys
def eat():
    hold = []
    while True:
        hold.append(mmap.mmap(-1, 4 << 20))
        hold[-1].write(b'x' * (4 << 20))
def answer(word):
    if word == 'eat':
        eat()
    if word == 'crash':
        sys.exit(3)
    if word == 'child':
        child = os.fork()
        if child == 0:
            eat()
        os.waitpid(child, 0)
    print('ok', flush=True)
if len(sys.argv) > 1:
    answer(sys.argv[1])
else:
    for line in sys.stdin:
        answer(line.strip())
";

pub(crate) fn all() -> Vec<Test> {
    vec![
        ("a bot that runs for a match runs out of memory".to_owned(), Box::new(stdio)),
        ("a bot that is executed runs out of memory".to_owned(), Box::new(executed)),
    ]
}

/// Whether the memory of a process tree is at least polled.
fn is_measured(lab: &Lab) -> bool {
    lab.holds(Guarantee::Memory) || lab.holds(Guarantee::Disk)
}

/// Creates a seat for the memory program with a limit of 64 MB, and passes the seat to `test`.
fn with_glutton(
    lab: &Lab,
    seat: impl FnOnce(
        arbiter_worker::sandbox::Jail,
        Vec<String>,
        Arc<StopSignal>,
    ) -> Box<dyn SeatDriver>,
    act: impl FnOnce(&mut dyn SeatDriver),
) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("bot.py"), GLUTTON).unwrap();
    let source = BotSource::Directory(directory.path().to_owned());
    let limits = Limits { memory: Bytes::megabytes(64), ..Limits::OFFICIAL };
    let jail = lab.jail(&source, &JailConfig { limits, ..JailConfig::default() });
    let (reader, _writer) = UnixStream::pair().unwrap();
    let stop = Arc::new(StopSignal::new(OwnedFd::from(reader)));
    let argv = ["python3", "bot.py"].map(str::to_owned).to_vec();
    let mut seat = seat(jail, argv, stop);
    act(seat.as_mut());
    let remains = seat.close().unwrap();
    let peak = remains.memory.unwrap();
    assert!(peak > Bytes::megabytes(32), "{peak}");
}

/// The evidence of a reply that must be a forfeit.
fn evidence(answer: TimedReply) -> String {
    let failure = answer.reply.unwrap_err();
    assert_eq!(failure.forfeit, Forfeit::Gone, "{failure:?}");
    assert!(failure.detail.contains(EVIDENCE), "{failure:?}");
    assert!(failure.detail.ends_with(" MB)"), "{failure:?}");
    failure.detail
}

fn stdio(lab: &Lab) {
    if !is_measured(lab) {
        println!("  skipped: the memory of a process tree is not measured here");
        return;
    }
    for word in ["eat", "child"] {
        let seat = |jail, argv: Vec<_>, stop| {
            StdioSeat::start(jail, &argv, Framing::Line, ClockKind::Wall, stop).unwrap()
        };
        with_glutton(lab, seat, |seat| {
            assert_eq!(seat.ask("well", TIMEOUT).unwrap().reply.unwrap(), b"ok");
            let detail = evidence(seat.ask(word, TIMEOUT).unwrap());
            // If only a child was killed, the evidence says so. On a busy machine the bot's own end
            // is seen late, and the evidence names a process of it as well.
            let is_named = detail.starts_with(EVIDENCE) || detail.contains("a process of it was ");
            assert!(is_named, "{detail}");
            let after = seat.ask("well", TIMEOUT).unwrap().reply.unwrap_err();
            assert_eq!(after.forfeit, Forfeit::Gone, "it plays no more: {after:?}");
        });
    }
}

fn executed(lab: &Lab) {
    if !is_measured(lab) {
        println!("  skipped: the memory of a process tree is not measured here");
        return;
    }
    with_glutton(
        lab,
        |jail, argv, stop| Box::new(ExecSeat::new(jail, argv, stop)),
        |seat| {
            for word in ["eat", "child"] {
                evidence(seat.ask(word, TIMEOUT).unwrap());
                let after = seat.ask("well", TIMEOUT).unwrap().reply;
                assert_eq!(after.unwrap(), b"ok", "its next decision is its own");
                let after = seat.ask("crash", TIMEOUT).unwrap().reply.unwrap_err();
                assert_eq!(after.detail, "exited with code 3 without output");
            }
        },
    );
}
