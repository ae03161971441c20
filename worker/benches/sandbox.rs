//! Compares the cost of isolation with a plain start of the same program and with bubblewrap. One
//! run alternates between all of them: `cargo bench -p arbiter-worker --bench sandbox`.
//!
//! With `-- many` it opens ten thousand jails one after the other, and then compares the resources
//! of the process with those before.

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

/// Number of measurements of each method.
const ROUNDS: usize = 200;

/// Number of jails that `many` opens.
const MANY: usize = 10_000;

/// The program. It writes a line and exits.
const PROGRAM: [&str; 2] = ["/usr/bin/echo", "here"];

/// The time until the first byte, and the total time.
type Times = (Duration, Duration);

fn main() {
    sandbox::handle_reexec();
    let host = Host::prepare(Policy::Auto).unwrap();
    println!("{}, kernel {}", host.report(), host.report().kernel);
    if std::env::args().any(|argument| argument == "many") {
        many(&host);
    } else {
        compare(&host);
    }
}

fn compare(host: &Host) {
    let source = BotSource::File("/usr/bin/echo".into());
    let mut open_jail = open(host, &source);
    let has_bubblewrap = command("bwrap").arg("--version").output().is_ok();
    let mut times: BTreeMap<&str, Vec<Times>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        let mut record = |name, result| times.entry(name).or_default().push(result);
        record("1 plain start", measure_command(command(PROGRAM[0]).arg(PROGRAM[1])));
        if has_bubblewrap {
            record("2 bubblewrap", measure_command(&mut bubblewrap()));
        }
        record("3 new jail", measure_new_jail(host, &source));
        record("4 prepared jail", measure_prepared_jail(open(host, &source)));
        record("5 reused jail", measure_reused_jail(&mut open_jail));
    }
    let plain = medians(&times["1 plain start"]);
    println!(
        "{:22} {:>12} {:>7} {:>12} {:>7}",
        "µs, medians", "first byte", "ratio", "total", "ratio"
    );
    for (name, results) in &times {
        let (first_byte, total) = medians(results);
        let ratio = |time: Duration, plain: Duration| time.as_secs_f64() / plain.as_secs_f64();
        println!(
            "{name:22} {:>12} {:>7.2} {:>12} {:>7.2}",
            first_byte.as_micros(),
            ratio(first_byte, plain.0),
            total.as_micros(),
            ratio(total, plain.1)
        );
    }
    measure_freezing(&mut open_jail);
    open_jail.close().unwrap();
    measure_closing(host);
}

/// Programs whose jails are slow to close. Each writes a line when it is ready.
const SLOW_TO_CLOSE: [(&str, &str); 6] = [
    ("1 sleeping process", "echo here; exec sleep 99"),
    (
        "64 sleeping processes",
        "n=0; while [ $n -lt 62 ]; do sleep 99 & n=$((n+1)); done; echo here; wait",
    ),
    (
        "64 spinning processes",
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

/// Measures how long it takes to close a jail, for each of these programs.
fn measure_closing(host: &Host) {
    println!("{:22} {:>8} {:>8} {:>8}", "closing, ms", "min", "median", "max");
    let source = BotSource::File("/usr/bin/true".into());
    for (name, program) in SLOW_TO_CLOSE {
        let close = |_| {
            let mut jail = open(host, &source);
            let argv = ["sh", "-c", program].map(str::to_owned);
            let mut process = jail.start(&argv, Stdin::Pipe).unwrap().expect("no shell");
            wait(&process);
            process.stdout.read_exact(&mut [0; 5]).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            let start_time = Instant::now();
            jail.close().unwrap();
            start_time.elapsed()
        };
        let mut times: Vec<_> = (0..=ROUNDS / 10).map(close).collect();
        times.sort();
        let [min, median, max] = [0, times.len() / 2, times.len() - 1].map(|index| {
            let tenths = times[index].as_micros() / 100;
            format!("{}.{}", tenths / 10, tenths % 10)
        });
        println!("{name:22} {min:>8} {median:>8} {max:>8}");
    }
}

fn medians(times: &[Times]) -> Times {
    let median = |field: fn(&Times) -> Duration| {
        let mut values: Vec<_> = times.iter().map(field).collect();
        values.sort();
        values[values.len() / 2]
    };
    (median(|times| times.0), median(|times| times.1))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the benchmark compares the sandbox with other methods"
)]
fn command(program: &str) -> Command {
    Command::new(program)
}

/// Bubblewrap with namespaces, a read-only system, and private writable directories.
fn bubblewrap() -> Command {
    let mut command_line = command("bwrap");
    command_line.args(["--unshare-all", "--new-session", "--die-with-parent", "--clearenv"]);
    command_line.args(["--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin"]);
    command_line.args(["--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"]);
    command_line.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/work"]);
    command_line.args(["--chdir", "/work", "--hostname", "bot", "--cap-drop", "ALL", "--"]);
    command_line.args(PROGRAM);
    command_line
}

/// Runs a command without our sandbox.
fn measure_command(command: &mut Command) -> Times {
    let start_time = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0]).unwrap();
    let first_byte = start_time.elapsed();
    assert!(child.wait().unwrap().success());
    (first_byte, start_time.elapsed())
}

fn open(host: &Host, source: &BotSource) -> Jail {
    Jail::open(host, Workdir::new(source).unwrap(), &JailConfig::default()).unwrap()
}

/// Opens a jail, runs the program in it and closes it.
fn measure_new_jail(host: &Host, source: &BotSource) -> Times {
    let start_time = Instant::now();
    let mut jail = open(host, source);
    let first_byte = run(&mut jail, start_time);
    jail.close().unwrap();
    (first_byte, start_time.elapsed())
}

/// Runs the program in a jail that was opened in advance. The times do not include opening and
/// closing, which can happen while another match is played.
fn measure_prepared_jail(mut jail: Jail) -> Times {
    let start_time = Instant::now();
    let first_byte = run(&mut jail, start_time);
    let total = start_time.elapsed();
    jail.close().unwrap();
    (first_byte, total)
}

/// Runs the program in a jail that was used before.
fn measure_reused_jail(jail: &mut Jail) -> Times {
    let start_time = Instant::now();
    let first_byte = run(jail, start_time);
    (first_byte, start_time.elapsed())
}

/// Runs the program in a jail until it has ended. Returns the time of its first byte since
/// `start_time`.
fn run(jail: &mut Jail, start_time: Instant) -> Duration {
    let argv = PROGRAM.map(str::to_owned);
    let mut process = jail.start(&argv, Stdin::Null).unwrap().unwrap();
    wait(&process);
    assert_eq!(process.stdout.read(&mut [0; 64]).map_err(|error| error.kind()), Ok(5));
    let first_byte = start_time.elapsed();
    loop {
        wait(&process);
        match process.stdout.read(&mut [0; 64]) {
            Ok(0) => break,
            other => assert_eq!(other.map_err(|error| error.kind()), Err(ErrorKind::WouldBlock)),
        }
    }
    jail.end_process(&mut process);
    first_byte
}

fn wait(process: &Process) {
    let mut fds = [PollFd::new(&process.stdout, PollFlags::IN)];
    rustix::event::poll(&mut fds, None).unwrap();
}

/// Measures how long it takes to freeze and thaw a bot.
fn measure_freezing(jail: &mut Jail) {
    let argv = ["/usr/bin/cat".to_owned()];
    let mut process = jail.start(&argv, Stdin::Pipe).unwrap().expect("cat does not start");
    std::thread::sleep(Duration::from_millis(20));
    let mut times: Vec<_> = (0..10 * ROUNDS)
        .map(|_| {
            let start_time = Instant::now();
            jail.freeze().unwrap();
            jail.thaw().unwrap();
            start_time.elapsed()
        })
        .collect();
    times.sort();
    let percentile = |percent: usize| {
        let tenths = times[times.len() * percent / 100].as_nanos() / 100;
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    let [p10, median, p90] = [10, 50, 90].map(percentile);
    println!("freeze and thaw, µs: {median} (10th percentile {p10}, 90th percentile {p90})");
    jail.end_process(&mut process);
}

/// The numbers of this process's descriptors and mounts and of all entries in `/proc`, and this
/// process's memory in kB.
fn resource_counts() -> [usize; 4] {
    let lines = |path| fs::read_to_string(path).unwrap_or_default().lines().count();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let amount = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let memory = amount.trim().trim_end_matches(" kB").parse().unwrap();
    let processes = fs::read_dir("/proc").unwrap().count();
    [fs::read_dir("/proc/self/fd").unwrap().count(), lines("/proc/self/mounts"), processes, memory]
}

fn many(host: &Host) {
    let source = BotSource::File("/usr/bin/echo".into());
    measure_new_jail(host, &source);
    let before = resource_counts();
    let start_time = Instant::now();
    for _ in 0..MANY {
        measure_new_jail(host, &source);
    }
    let time_per_jail = start_time.elapsed() / u32::try_from(MANY).unwrap();
    println!("{MANY} jails, {} µs each", time_per_jail.as_micros());
    println!(
        "descriptors, mounts, entries of /proc, kB of memory: {before:?} before, {:?} after",
        resource_counts()
    );
}
