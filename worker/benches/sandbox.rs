//! What isolation costs, against a plain start of the same program and against bubblewrap doing
//! the same, all in turns within one run: `cargo bench -p arbiter-worker --bench sandbox`.
//!
//! With `-- many` it opens ten thousand jails one after the other, and counts what is left.

#![expect(clippy::unwrap_used, reason = "a measurement fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use arbiter_worker::sandbox::{
    self, BotSource, Host, Jail, JailConfig, Policy, Process, Stdin, Workdir,
};
use rustix::event::{PollFd, PollFlags};

/// How often each thing is done.
const ROUNDS: usize = 200;

/// How many jails `many` opens.
const MANY: usize = 10_000;

/// The program: it writes a line and ends.
const PROGRAM: [&str; 2] = ["/usr/bin/echo", "here"];

/// When the first byte came, and when everything was over.
type Times = (Duration, Duration);

fn main() {
    sandbox::handle_reexec();
    let host = Host::prepare(Policy::Auto).unwrap();
    println!("{}, kernel {}", host.report(), host.report().kernel);
    if std::env::args().any(|word| word == "many") {
        many(&host);
    } else {
        compare(&host);
    }
}

fn compare(host: &Host) {
    let source = BotSource::File("/usr/bin/echo".into());
    let mut standing = open(host, &source);
    let bubblewrap = command("bwrap").arg("--version").output().is_ok();
    let mut times: BTreeMap<&str, Vec<Times>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        let mut note = |name, found| times.entry(name).or_default().push(found);
        note("1 plain start", outside(command(PROGRAM[0]).arg(PROGRAM[1])));
        if bubblewrap {
            note("2 bubblewrap", outside(&mut wrapped()));
        }
        note("3 fresh jail", fresh(host, &source));
        note("4 from a warm pool", warm(open(host, &source)));
        note("5 in a standing jail", inside(&mut standing));
    }
    let plain = medians(&times["1 plain start"]);
    println!(
        "{:22} {:>12} {:>7} {:>12} {:>7}",
        "µs, medians", "first byte", "ratio", "over", "ratio"
    );
    for (name, found) in &times {
        let (first, over) = medians(found);
        let ratio = |time: Duration, plain: Duration| time.as_secs_f64() / plain.as_secs_f64();
        println!(
            "{name:22} {:>12} {:>7.2} {:>12} {:>7.2}",
            first.as_micros(),
            ratio(first, plain.0),
            over.as_micros(),
            ratio(over, plain.1)
        );
    }
    freezing(&mut standing);
    standing.close().unwrap();
    closing(host);
}

/// Programs that are hard to be rid of: each writes a line when it is as hard as it gets.
const HARD: [(&str, &str); 6] = [
    ("one that sleeps", "echo here; exec sleep 99"),
    ("64 that sleep", "n=0; while [ $n -lt 62 ]; do sleep 99 & n=$((n+1)); done; echo here; wait"),
    (
        "64 that spin",
        "n=0; while [ $n -lt 62 ]; do yes > /dev/null & n=$((n+1)); done; echo here; wait",
    ),
    ("a fork bomb", "b() { b | b & }; echo here; while :; do b; done 2> /dev/null"),
    (
        "a full disk",
        "n=0; while echo > f$n; do n=$((n+1)); done 2> /dev/null; rm f1; \
                     cat /dev/zero > f0; echo here; exec sleep 99",
    ),
    (
        "350 MB of memory",
        "exec python3 -c 'x = b\"x\" * 350000000; print(\"here\", flush=True); input()'",
    ),
];

/// How long it takes until nothing is left of a jail, after each hard program.
fn closing(host: &Host) {
    println!("{:22} {:>8} {:>8} {:>8}", "closing, ms", "best", "median", "worst");
    let source = BotSource::File("/usr/bin/true".into());
    for (name, program) in HARD {
        let close = |_| {
            let mut jail = open(host, &source);
            let argv = ["sh", "-c", program].map(str::to_owned);
            let mut process = jail.start(&argv, Stdin::Pipe).unwrap().expect("no shell");
            wait(&process);
            process.stdout.read_exact(&mut [0; 5]).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            let started = Instant::now();
            jail.close().unwrap();
            started.elapsed()
        };
        let mut times: Vec<_> = (0..=ROUNDS / 10).map(close).collect();
        times.sort();
        let [best, median, worst] = [0, times.len() / 2, times.len() - 1].map(|at| {
            let tenths = times[at].as_micros() / 100;
            format!("{}.{}", tenths / 10, tenths % 10)
        });
        println!("{name:22} {best:>8} {median:>8} {worst:>8}");
    }
}

fn medians(times: &[Times]) -> Times {
    let middle = |part: fn(&Times) -> Duration| {
        let mut parts: Vec<_> = times.iter().map(part).collect();
        parts.sort();
        parts[parts.len() / 2]
    };
    (middle(|times| times.0), middle(|times| times.1))
}

#[expect(clippy::disallowed_methods, reason = "the sandbox is compared with other ways")]
fn command(program: &str) -> Command {
    Command::new(program)
}

/// Bubblewrap with namespaces, a read-only system, and private places to write to.
fn wrapped() -> Command {
    let mut wrapped = command("bwrap");
    wrapped.args(["--unshare-all", "--new-session", "--die-with-parent", "--clearenv"]);
    wrapped.args(["--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin"]);
    wrapped.args(["--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"]);
    wrapped.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/work"]);
    wrapped.args(["--chdir", "/work", "--hostname", "bot", "--cap-drop", "ALL", "--"]);
    wrapped.args(PROGRAM);
    wrapped
}

fn outside(command: &mut Command) -> Times {
    let started = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0]).unwrap();
    let first = started.elapsed();
    assert!(child.wait().unwrap().success());
    (first, started.elapsed())
}

fn open(host: &Host, source: &BotSource) -> Jail {
    Jail::open(host, Workdir::new(source).unwrap(), &JailConfig::default()).unwrap()
}

fn fresh(host: &Host, source: &BotSource) -> Times {
    let started = Instant::now();
    let mut jail = open(host, source);
    let first = run(&mut jail, started);
    jail.close().unwrap();
    (first, started.elapsed())
}

/// A jail that was opened before it was needed; another is opened while a match is played.
fn warm(mut jail: Jail) -> Times {
    let started = Instant::now();
    let first = run(&mut jail, started);
    let over = started.elapsed();
    jail.close().unwrap();
    (first, over)
}

fn inside(jail: &mut Jail) -> Times {
    let started = Instant::now();
    let first = run(jail, started);
    (first, started.elapsed())
}

/// Runs the program in a jail: when its first byte came. It has ended when this returns.
fn run(jail: &mut Jail, started: Instant) -> Duration {
    let argv = PROGRAM.map(str::to_owned);
    let mut process = jail.start(&argv, Stdin::Null).unwrap().unwrap();
    wait(&process);
    assert_eq!(process.stdout.read(&mut [0; 64]).map_err(|error| error.kind()), Ok(5));
    let first = started.elapsed();
    loop {
        wait(&process);
        match process.stdout.read(&mut [0; 64]) {
            Ok(0) => break,
            other => assert_eq!(other.map_err(|error| error.kind()), Err(ErrorKind::WouldBlock)),
        }
    }
    jail.end_process(&mut process);
    first
}

fn wait(process: &Process) {
    let mut ready = [PollFd::new(&process.stdout, PollFlags::IN)];
    rustix::event::poll(&mut ready, None).unwrap();
}

/// What a rest and a waking cost a bot's move.
fn freezing(jail: &mut Jail) {
    let argv = ["/usr/bin/cat".to_owned()];
    let mut process = jail.start(&argv, Stdin::Pipe).unwrap().expect("cat does not start");
    std::thread::sleep(Duration::from_millis(20));
    let mut times: Vec<_> = (0..10 * ROUNDS)
        .map(|_| {
            let started = Instant::now();
            jail.freeze().unwrap();
            jail.thaw().unwrap();
            started.elapsed()
        })
        .collect();
    times.sort();
    let at = |part: usize| times[times.len() * part / 100].as_nanos() / 100;
    let tenths = [at(10), at(50), at(90)].map(|tenths| format!("{}.{}", tenths / 10, tenths % 10));
    println!(
        "freeze and thaw, µs: {} (best tenth {}, worst tenth {})",
        tenths[1], tenths[0], tenths[2]
    );
    jail.end_process(&mut process);
}

/// Descriptors, mounts and memory of this process, and its processes.
fn count() -> [usize; 4] {
    let lines = |path| fs::read_to_string(path).unwrap_or_default().lines().count();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let memory = memory.trim().trim_end_matches(" kB").parse().unwrap();
    let processes = fs::read_dir("/proc").unwrap().count();
    [fs::read_dir("/proc/self/fd").unwrap().count(), lines("/proc/self/mounts"), processes, memory]
}

fn many(host: &Host) {
    let source = BotSource::File("/usr/bin/echo".into());
    fresh(host, &source);
    let before = count();
    let started = Instant::now();
    for _ in 0..MANY {
        fresh(host, &source);
    }
    let each = started.elapsed() / u32::try_from(MANY).unwrap();
    println!("{MANY} jails, {} µs each", each.as_micros());
    println!(
        "descriptors, mounts, entries of /proc, kB of memory: {before:?} before, {:?} after",
        count()
    );
}
