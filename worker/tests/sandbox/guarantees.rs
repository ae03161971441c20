//! The guarantees of a jail to honest callers.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arbiter_games::{ClockKind, Micros};
use arbiter_worker::sandbox::{
    Bytes, Guarantee, Host, Jail, JailConfig, Limits, Policy, Ponder, Stdin, Workdir,
};
use arbiter_worker::seat::{ExecSeat, Framing, SeatDriver, StdioSeat};

use super::jail_tests::Test;
use super::lab::{Lab, command, converse, descendants, groups, listen, source, start, stop};

/// The time limit for closing a jail.
const CLOSING: Duration = Duration::from_millis(50);

/// The number of jails that are open at once.
const MANY: usize = 200;

/// The number of jails that are opened one after the other.
const SUCCESSION: usize = 200;

/// The pause in which a bot tries to think on its opponent's time.
const PAUSE: Duration = Duration::from_millis(200);

/// The measurement error of the processor time of a stopped bot.
const EXACT_ERROR: Micros = Micros::from_millis(2);

/// The same for the clocks of processes: each may be late by a tick.
const TICK_ERROR: Micros = Micros::from_millis(30);

/// The argument of this test's program as a worker that will be killed.
pub(crate) const KILLED: &str = "--worker-to-be-killed";

/// A bot that spins between its replies.
const PONDERER: &str = "
import sys, threading
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
for line in sys.stdin: print('ok', flush=True)
";

/// A description of a guarantee, and its test.
type GuaranteeTest = (&'static str, fn(&Lab));

const GUARANTEES: [GuaranteeTest; 16] = [
    ("a bot is stopped while the referee does not wait for its reply", stops_between_replies),
    ("a bot may ponder if that is allowed", may_ponder),
    ("a jail runs one execution after another", executes),
    ("processes of an execution die with it", leaves_nothing_running),
    ("files are saved from match to match", saves_files),
    ("sparse files stay sparse", saves_sparse_files),
    ("saved files that are too large do not prevent a jail", restores_files_within_limits),
    ("files are not saved otherwise", deletes_files),
    ("a bot that sends many descriptors cannot prevent jails", tolerates_sent_descriptors),
    ("a listener accepts sixteen connections at once", listener_accepts_all_connections),
    ("limits of the configuration are enforced", enforces_limits),
    ("a jail runs on its own processors", uses_only_its_processors),
    ("a bot's clocks hide the machine's uptime", hides_uptime),
    ("closing takes less than fifty milliseconds", closes_quickly),
    ("many jails at once and in succession leak nothing", leaks_nothing),
    ("bots die with a killed worker", dies_with_its_worker),
];

pub(crate) fn all() -> Vec<Test> {
    let tests = GUARANTEES.into_iter();
    tests.map(|(name, test)| -> Test { (name.to_owned(), Box::new(test)) }).collect()
}

/// The processor time that a seat charges to a bot that spins in a pause between two replies.
fn used_between_replies(lab: &Lab, ponder: Ponder) -> Micros {
    let (_directory, source) = source(&[("bot.py", PONDERER)]);
    let terms = JailConfig { ponder, ..JailConfig::default() };
    let jail = lab.jail(&source, &terms);
    let (stop, _writer) = stop();
    let argv = ["python3", "bot.py"].map(str::to_owned);
    let mut seat = StdioSeat::start(jail, &argv, Framing::Line, ClockKind::Wall, stop).unwrap();
    let mut ask = || {
        let reply = seat.ask("?", Micros::from_millis(20_000)).unwrap();
        assert_eq!(reply.reply.unwrap(), b"ok");
        reply.spent.cpu
    };
    ask();
    std::thread::sleep(PAUSE);
    let used = ask();
    seat.close().unwrap();
    used
}

fn stops_between_replies(lab: &Lab) {
    let used = used_between_replies(lab, Ponder::Freeze);
    // When the bot continues, both threads run in turn before it replies.
    assert!(used < Micros::from_millis(60), "{used}");
    let (_directory, source) = source(&[("bot.py", PONDERER)]);
    let mut jail = lab.jail(&source, &JailConfig::default());
    let mut process = start(&mut jail, &["python3", "bot.py"], Stdin::Pipe);
    assert_eq!(converse(&mut process, "?"), "ok");
    jail.freeze().unwrap();
    let before = jail.cpu_time();
    std::thread::sleep(PAUSE);
    let used = jail.cpu_time() - before;
    let exact = lab.holds(Guarantee::Freeze);
    assert!(used < if exact { EXACT_ERROR } else { TICK_ERROR }, "{used}");
    jail.thaw().unwrap();
    assert_eq!(converse(&mut process, "?"), "ok");
    jail.close().unwrap();
}

fn may_ponder(lab: &Lab) {
    let used = used_between_replies(lab, Ponder::Allow);
    assert!(used > Micros::from_millis(20), "{used}");
}

fn executes(lab: &Lab) {
    let text = "import sys\nprint(sum(map(int, sys.argv[1:])))\n";
    let (_directory, source) = source(&[("bot.py", text)]);
    let (stop, _writer) = stop();
    let before = lab.settled_census();
    let argv = vec!["python3".to_owned(), "bot.py".to_owned()];
    let mut seat =
        ExecSeat::new(lab.jail(&source, &JailConfig::default()), argv, Arc::clone(&stop));
    for number in 0..20 {
        let reply = seat.ask(&format!("{number} 1"), Micros::from_millis(20_000)).unwrap();
        assert_eq!(reply.reply.unwrap(), (number + 1).to_string().into_bytes());
        assert!(reply.spent.cpu > Micros::from_millis(1), "{:?}", reply.spent);
    }
    let remains = Box::new(seat).close().unwrap();
    assert!(remains.cpu > Micros::from_millis(20));
    lab.assert_nothing_left(&before);
}

fn leaves_nothing_running(lab: &Lab) {
    let text =
        "import os, time\nprint('done', flush=True)\nif os.fork() == 0:\n    time.sleep(99)\n";
    let (_directory, source) = source(&[("bot.py", text)]);
    let mut jail = lab.jail(&source, &JailConfig::default());
    let before = lab.settled_census();
    for _ in 0..5 {
        let mut process = start(&mut jail, &["python3", "bot.py"], Stdin::Null);
        assert_eq!(listen(&mut process, Duration::from_secs(10)).trim(), "done");
        jail.end_process(&mut process);
        drop(process);
        lab.assert_nothing_left(&before);
    }
    jail.close().unwrap();
}

/// A bot that counts its matches in a file.
const COUNTER: &str = "
import os
os.makedirs('state', exist_ok=True)
old = open('state/count').read() if os.path.exists('state/count') else '0'
open('state/count', 'w').write(str(int(old) + 1))
os.symlink('/etc/shadow', f'link{old}')
print(int(old) + 1)
";

fn saves_files(lab: &Lab) {
    let (directory, source) = source(&[("bot.py", COUNTER)]);
    let state = directory.path().with_extension("kept");
    for expected in ["1", "2", "3"] {
        let home = Workdir::with_state(&source, state.clone()).unwrap();
        let mut jail = Jail::open(&lab.host, home, &JailConfig::default()).unwrap();
        let mut process = start(&mut jail, &["python3", "bot.py"], Stdin::Null);
        assert_eq!(listen(&mut process, Duration::from_secs(10)).trim(), expected);
        jail.close().unwrap();
    }
    assert_eq!(fs::read_to_string(state.join("state/count")).unwrap(), "3");
    let links =
        fs::read_dir(&state).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_symlink());
    assert!(links.count() == 0 || !lab.holds(Guarantee::Disk));
    fs::remove_dir_all(state).unwrap();
}

/// A bot that leaves sparse files.
const HOLLOW: &str = "
import os
print(sum(os.stat(f'h{n}').st_size for n in range(900) if os.path.exists(f'h{n}')))
used = sum(os.stat(name).st_blocks * 512 for name in os.listdir('.'))
for number in range(900):
    with open(f'h{number}', 'ab') as file:
        file.truncate(1)
open('full', 'wb').write(b'x' * (4 << 20))
print(used)
";

/// Saved files fit into the next jail, and take no more space there.
fn saves_sparse_files(lab: &Lab) {
    let (directory, source) = source(&[("bot.py", HOLLOW)]);
    let state = directory.path().with_extension("kept");
    let limits = Limits { disk: Bytes::megabytes(5), ..Limits::OFFICIAL };
    let terms = JailConfig { limits, ..JailConfig::default() };
    for _ in 0..3 {
        let home = Workdir::with_state(&source, state.clone()).unwrap();
        let mut jail = Jail::open(&lab.host, home, &terms).unwrap();
        let mut process = start(&mut jail, &["python3", "bot.py"], Stdin::Null);
        let output = listen(&mut process, Duration::from_secs(10));
        let sizes: Vec<u64> = output.lines().map(|line| line.parse().unwrap()).collect();
        assert!(sizes[0] <= 900 && sizes[1] <= limits.disk.0, "{output}");
        jail.close().unwrap();
    }
    fs::remove_dir_all(state).unwrap();
}

/// The files come from another worker, not from a bot.
fn restores_files_within_limits(lab: &Lab) {
    let (directory, source) = source(&[("bot.py", COUNTER)]);
    let state = directory.path().with_extension("kept");
    fs::create_dir(&state).unwrap();
    for number in 0..40 {
        fs::write(state.join(format!("invented {number}")), vec![7; 100_000]).unwrap();
    }
    let limits = Limits { disk: Bytes::megabytes(1), ..Limits::OFFICIAL };
    let terms = JailConfig { limits, ..JailConfig::default() };
    let home = Workdir::with_state(&source, state.clone()).unwrap();
    let mut jail = Jail::open(&lab.host, home, &terms).unwrap();
    let mut process = start(&mut jail, &["true"], Stdin::Null);
    listen(&mut process, Duration::from_secs(10));
    jail.close().unwrap();
    fs::remove_dir_all(state).unwrap();
}

/// A bot that leaves as many descriptors in flight in sockets as it can.
const SENDER: &str = "
import array, socket, sys
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0] * 253))]
held, sent = [], 0
try:
    while len(held) < 200:
        held += [socket.socketpair()]
        held[-1][0].sendmsg([b'x'], rights)
        sent += 253
except OSError:
    pass
for line in sys.stdin: print(sent, flush=True)
";

/// The kernel counts descriptors in flight for each user, and bots share one if the worker is an
/// ordinary user.
fn tolerates_sent_descriptors(lab: &Lab) {
    let (_directory, source) = source(&[("bot.py", SENDER)]);
    let mut other = lab.jail(&source, &JailConfig::default());
    let mut process = start(&mut other, &["python3", "bot.py"], Stdin::Pipe);
    let sent_count: u64 = converse(&mut process, "?").parse().unwrap();
    assert!(sent_count > Limits::OFFICIAL.descriptors, "{sent_count}");
    saves_files(lab);
    if lab.holds(Guarantee::Disk) {
        let home = Workdir::new(&source).unwrap();
        let (jail, _door) =
            Jail::open_with_listener(&lab.host, home, &JailConfig::default()).unwrap();
        jail.close().unwrap();
    }
    other.close().unwrap();
}

/// A bot that opens all its connections at once.
const CALLER: &str = "
import socket
held = [socket.create_connection(('127.0.0.1', 8080)) for _ in range(16)]
print(len(held), flush=True)
";

/// The worker accepts no connection here, so all must fit into the backlog.
fn listener_accepts_all_connections(lab: &Lab) {
    if !lab.holds(Guarantee::Disk) {
        println!("  skipped: there are no namespaces here");
        return;
    }
    let (_directory, source) = source(&[("bot.py", CALLER)]);
    let home = Workdir::new(&source).unwrap();
    let (mut jail, _door) =
        Jail::open_with_listener(&lab.host, home, &JailConfig::default()).unwrap();
    let mut process = start(&mut jail, &["python3", "bot.py"], Stdin::Null);
    assert_eq!(listen(&mut process, Duration::from_secs(10)).trim(), "16");
    jail.close().unwrap();
}

fn deletes_files(lab: &Lab) {
    let (directory, source) = source(&[("bot.py", COUNTER)]);
    for _ in 0..2 {
        let mut jail = lab.jail(&source, &JailConfig::default());
        let mut process = start(&mut jail, &["python3", "bot.py"], Stdin::Null);
        assert_eq!(listen(&mut process, Duration::from_secs(10)).trim(), "1");
        jail.close().unwrap();
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    // The next match uses the author's changes.
    fs::write(directory.path().join("bot.py"), "print('changed')").unwrap();
    let mut jail = lab.jail(&source, &JailConfig::default());
    let mut process = start(&mut jail, &["python3", "bot.py"], Stdin::Null);
    assert_eq!(listen(&mut process, Duration::from_secs(10)).trim(), "changed");
    jail.close().unwrap();
}

fn enforces_limits(lab: &Lab) {
    let text = "
import os
def count(make):
    made = 0
    try:
        while made < 3000:
            make(made)
            made += 1
    except OSError:
        pass
    return made
def fork(number):
    if os.fork() == 0:
        import time
        time.sleep(9)
        os._exit(0)
print('files', count(lambda n: open(f'f{n}', 'w').close()))
print('descriptors', count(lambda n: os.open('/dev/null', 0)))
print('processes', count(fork))
";
    let (_directory, source) = source(&[("bot.py", text)]);
    let limits = Limits {
        processes: 10,
        files: 100,
        descriptors: 40,
        disk: Bytes::megabytes(5),
        ..Limits::OFFICIAL
    };
    let outcome = lab.run(
        &source,
        &["python3", "bot.py"],
        &JailConfig { limits, ..JailConfig::default() },
        Duration::from_secs(20),
    );
    let words = outcome.output.lines().filter_map(|line| line.split_once(' '));
    let counts: BTreeMap<_, u64> = words.map(|(word, n)| (word, n.parse().unwrap())).collect();
    // Kernels differ by one in their count of overlayfs's own inodes.
    let files = (80..=101).contains(&counts["files"]);
    assert!(files || !lab.holds(Guarantee::Disk), "{counts:?}");
    assert!((30..40).contains(&counts["descriptors"]), "{counts:?}");
    let processes = (5..=10).contains(&counts["processes"]);
    assert!(processes || !lab.holds(Guarantee::Processes), "{counts:?}");
}

fn uses_only_its_processors(lab: &Lab) {
    let text = "import os\nprint(sorted(os.sched_getaffinity(0)))\n";
    let (_directory, source) = source(&[("bot.py", text)]);
    let terms = JailConfig { cores: vec![0], ..JailConfig::default() };
    let outcome = lab.run(&source, &["python3", "bot.py"], &terms, Duration::from_secs(20));
    assert_eq!(outcome.output.trim(), "[0]");
}

fn hides_uptime(lab: &Lab) {
    if !lab.holds(Guarantee::Disk) || !Path::new("/proc/self/ns/time").exists() {
        println!("  skipped: there are no namespaces here, or the kernel has no time namespaces");
        return;
    }
    let text =
        "import time\nprint(max(time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME)))\n";
    let (_directory, source) = source(&[("bot.py", text)]);
    let outcome =
        lab.run(&source, &["python3", "bot.py"], &JailConfig::default(), Duration::from_secs(20));
    let time: f64 = outcome.output.trim().parse().unwrap();
    // Clocks are set to the whole second.
    let max = lab.opened.elapsed().as_secs_f64() + 1.0;
    assert!((0.0..max).contains(&time), "{time} of {max}");
}

/// Takes the best of several measurements, because other programs use the machine too.
fn closes_quickly(lab: &Lab) {
    let source = lab.program("deaf.py");
    let mut times: Vec<_> = (0..9)
        .map(|_| {
            let argv = ["python3", "deaf.py"];
            lab.run(&source, &argv, &JailConfig::default(), Duration::from_millis(80)).closing
        })
        .collect();
    times.sort();
    println!("  from {:?} to {:?}", times[0], times[8]);
    assert!(times[0] < CLOSING, "{times:?}");
}

fn leaks_nothing(lab: &Lab) {
    let source = lab.program("honest.py");
    lab.next_match();
    let before = lab.settled_census();
    let started = Instant::now();
    let mut jails: Vec<_> = (0..MANY).map(|_| lab.jail(&source, &JailConfig::default())).collect();
    let mut processes: Vec<_> =
        jails.iter_mut().map(|jail| start(jail, &["cat"], Stdin::Pipe)).collect();
    for process in &mut processes {
        assert_eq!(converse(process, "here"), "here");
    }
    println!("  {MANY} open after {:?}", started.elapsed());
    drop(processes);
    for jail in jails {
        jail.close().unwrap();
    }
    lab.assert_nothing_left(&before);
    let started = Instant::now();
    for _ in 0..SUCCESSION {
        let mut jail = lab.jail(&source, &JailConfig::default());
        let mut process = start(&mut jail, &["true"], Stdin::Null);
        listen(&mut process, Duration::from_secs(10));
        jail.close().unwrap();
    }
    println!("  {SUCCESSION} more after {:?}", started.elapsed());
    lab.assert_nothing_left(&before);
    assert!(
        lab.holds(Guarantee::Kill) || !lab.holds(Guarantee::Disk),
        "namespaces kill everything in them"
    );
}

/// Runs as another worker: opens a jail with a bot that spins, and waits to be killed.
pub(crate) fn be_a_worker_to_be_killed() -> ! {
    let lab = Lab::open();
    let source = lab.program("deaf.py");
    let mut jail = lab.jail(&source, &JailConfig::default());
    let _process = start(&mut jail, &["python3", "deaf.py"], Stdin::Null);
    jail.freeze().unwrap();
    println!("ready");
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn dies_with_its_worker(lab: &Lab) {
    let before = lab.settled_census();
    let program = std::env::current_exe().unwrap();
    let mut worker =
        command(&program.display().to_string()).arg(KILLED).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(worker.stdout.take().unwrap());
    let mut line = String::new();
    while line.trim() != "ready" {
        line.clear();
        assert_ne!(output.read_line(&mut line).unwrap(), 0);
    }
    let tree = descendants(worker.id());
    // At least the bot and the rival. Their launchers are also in the tree.
    assert!(tree.len() >= 2, "{tree:?}");
    worker.kill().unwrap();
    worker.wait().unwrap();
    let started = Instant::now();
    while tree.iter().any(|pid| is_alive(*pid)) {
        assert!(
            started.elapsed() < Duration::from_secs(2),
            "a process of the worker is still alive"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    println!("  all gone after {:?}", started.elapsed());
    drop(output);
    lab.assert_nothing_left(&before);
    // Its control groups are empty, and the next worker to start removes them.
    Host::prepare(Policy::Off).unwrap();
    assert!(groups(worker.id()).is_empty(), "{:?}", groups(worker.id()));
}

/// Whether a process exists and is not a zombie.
fn is_alive(pid: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}
