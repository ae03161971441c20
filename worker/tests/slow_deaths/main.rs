//! Bots whose processes neither stop nor exit: other bots continue, and there is no fault.
//!
//! The tests hold processes in a v1 freezer that the jail does not use: inside it a process
//! receives no signal, not even SIGKILL, as in a system call that takes minutes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/jail_tests.rs"]
mod jail_tests;
#[path = "../support/lab.rs"]
mod lab;
#[path = "../support/memory_seat.rs"]
mod memory_seat;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use arbiter_games::{
    BotName, ClockKind, ClockRules, Forfeit, Micros, Params, SeatResult, Seed, gomoku,
};
use arbiter_worker::referee::Referee;
use arbiter_worker::sandbox::{self, Jail, JailConfig, Stdin, reaper};
use arbiter_worker::seat::{Framing, SeatDriver, StdioSeat, StopSignal};

use jail_tests::Test;
use lab::{Lab, TIMEOUT, command, descendants, parents, source, start, stop};
use memory_seat::{Forfeits, MemorySeat, gomoku_reply};

/// The mount point of the v1 freezer.
const FREEZER: &str = "/sys/fs/cgroup/freezer";

/// The name of the held process.
const HELPER: &str = "sleep";

/// The time limit of a reply on a busy machine.
const LIMIT: Micros = Micros::from_millis(30_000);

/// Replies to every line, with a helper process.
const WITH_A_HELPER: &str = "
import subprocess, sys
subprocess.Popen(['sleep', '1000'])
for line in sys.stdin: print('ok', flush=True)
";

/// Plays gomoku badly, after the code that starts its other processes.
const PLAY: &str = "
import sys
for line in sys.stdin:
    first = line[0]
    if first == 'A': print('(7,7)(7,8)(8,8)', flush=True)
    elif first == 'B': print('B', flush=True)
    else:
        ply = int(line.split()[0])
        print(f'({ply // 7 * 2},{ply % 7 * 2})', flush=True)
";

/// Forty processes that spin.
const SPINNER: &str = "
import os
for _ in range(40):
    if os.fork() == 0:
        while True: pass
";

/// Twenty processes that read through their mappings inside the kernel.
const WALKER: &str = "
import mmap, os
with open('pages', 'wb') as file:
    file.write(bytes(1 << 20))
pages = open('pages', 'rb').fileno()
for _ in range(20):
    if os.fork() == 0:
        maps = [mmap.mmap(pages, 1 << 20, prot=mmap.PROT_READ) for _ in range(64)]
        sums = [sum(map[::4096]) for map in maps]
        while True:
            try:
                open('/proc/self/smaps_rollup').read()
            except OSError:
                break
";

/// A test function.
type Run = fn(&Lab);

fn main() -> ExitCode {
    sandbox::handle_reexec();
    let tests: [(&str, Run); 7] = [
        ("a slot whose jail dies slowly recovers", recovers),
        ("a bot that will not stop forfeits, by either clock", will_not_stop),
        ("a rival is asked when the other is seen to stand", |lab| asks_in_turn(lab, SPINNER)),
        ("a rival is asked when no call of the other goes on", |lab| asks_in_turn(lab, WALKER)),
        ("a forfeit of a bot that will not stop ends its match", loses_its_match),
        ("what dies slowly comes after the bot that is asked next", dies_with_idle_priority),
        ("a jail that a bot silenced is its forfeit and no fault", first_process_is_stopped),
    ];
    let tests = tests.map(|(name, test)| -> Test { (name.to_owned(), Box::new(test)) });
    jail_tests::run(tests)
}

/// The helper of the newest bot; waits until it exists.
fn helper() -> u32 {
    let started = Instant::now();
    let named = |pid: &u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim_end() == HELPER
    };
    loop {
        assert!(started.elapsed() < TIMEOUT, "no helper");
        if let Some(pid) = descendants(std::process::id()).into_iter().find(named) {
            return pid;
        }
    }
}

/// A process of a bot that receives no signal until this is dropped.
struct Held {
    group: PathBuf,
    pid: u32,
}

impl Held {
    /// Like [`Self::helper`], but `None` for jails with stop signals: they cannot notice a process
    /// that does not stop.
    fn unstoppable(lab: &Lab) -> Option<Self> {
        if lab.stops_by("signals") {
            println!("  skipped: what is inside the freezer seems to stand here");
            return None;
        }
        Self::helper(lab)
    }

    /// Holds the helper of the newest bot; `None` if the jails use the v1 freezer, or there is
    /// none.
    fn helper(lab: &Lab) -> Option<Self> {
        if !lab.has_spare_v1_freezer() {
            println!("  skipped: there is no freezer that the jails do not use");
            return None;
        }
        let started = Instant::now();
        let pid = helper();
        let group = Path::new(FREEZER).join(format!("held-{pid}"));
        fs::create_dir(&group).unwrap();
        fs::write(group.join("cgroup.procs"), pid.to_string()).unwrap();
        fs::write(group.join("freezer.state"), "FROZEN").unwrap();
        while fs::read_to_string(group.join("freezer.state")).unwrap().trim() != "FROZEN" {
            assert!(started.elapsed() < TIMEOUT, "it does not freeze");
        }
        Some(Self { group, pid })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        fs::write(self.group.join("freezer.state"), "THAWED").unwrap();
        let started = Instant::now();
        while fs::remove_dir(&self.group).is_err() {
            assert!(started.elapsed() < TIMEOUT, "what was held does not die");
            thread::yield_now();
        }
    }
}

/// A jail for a bot with a helper, before its start.
fn jail(lab: &Lab) -> (tempfile::TempDir, Jail) {
    let (directory, source) = source(&[("bot.py", WITH_A_HELPER)]);
    let jail = lab.jail(&source, &JailConfig::default());
    (directory, jail)
}

fn argv() -> [String; 2] {
    ["python3", "bot.py"].map(str::to_owned)
}

fn recovers(lab: &Lab) {
    let before = lab.settled_census();
    let (_directory, mut jail) = jail(lab);
    let process = start(&mut jail, &["python3", "bot.py"], Stdin::Pipe);
    let Some(held) = Held::helper(lab) else { return };
    let closed = jail.close().unwrap();
    assert!(closed.lingers);
    assert!(!reaper::is_clear(), "this slot waits");
    thread::scope(|scope| {
        // Another bot plays.
        let other = scope.spawn(|| {
            assert!(reaper::is_clear());
            lab.next_match();
        });
        other.join().unwrap();
    });
    let (sender, cleared) = mpsc::channel();
    reaper::when_clear(move || sender.send(()).unwrap());
    assert!(cleared.try_recv().is_err(), "it is still there");
    drop(held);
    cleared.recv_timeout(TIMEOUT).unwrap();
    assert!(reaper::is_clear());
    drop(process);
    lab.assert_nothing_left(&before);
    lab.next_match();
}

fn will_not_stop(lab: &Lab) {
    for clock in [ClockKind::Wall, ClockKind::Cpu] {
        let (_directory, jail) = jail(lab);
        let (stop, _writer) = stop();
        let mut seat = StdioSeat::start(jail, &argv(), Framing::Line, clock, stop).unwrap();
        let Some(held) = Held::unstoppable(lab) else { return };
        let reply = seat.ask("?", LIMIT).unwrap();
        // With the wall clock the reply counts. With the other clock, the seat waited in vain for
        // the processor time.
        assert_eq!(reply.reply.is_ok(), clock == ClockKind::Wall, "{reply:?}");
        seat.wait_until_stopped().unwrap();
        let failure = seat.ask("?", LIMIT).unwrap().reply.unwrap_err();
        assert_eq!(failure.forfeit, Forfeit::Gone);
        assert!(failure.detail.starts_with("would not stop"), "{failure:?}");
        drop(held);
        let remains = seat.close().unwrap();
        assert_eq!(remains.late_failure, Some(failure));
    }
}

/// Plays gomoku between a bot in a jail, which begins, and one that calls `look` for each reply.
fn play(seat: Box<dyn SeatDriver>, look: impl Fn() + 'static) -> (Vec<SeatResult>, Forfeits) {
    let names: [BotName; 2] = ["one", "two"].map(|name| name.parse().unwrap());
    let mut game = Params::official(&gomoku::game()).start(&names, Seed([5; 32])).unwrap();
    let rival = MemorySeat::new(move |words: &str| {
        look();
        (Ok(gomoku_reply(words)), Micros::ZERO)
    });
    let mut seats: Vec<Box<dyn SeatDriver>> = vec![seat, Box::new(rival)];
    let mut forfeits = Forfeits::default();
    let mut referee = Referee::new(ClockRules::OFFICIAL, &mut forfeits);
    let standings = referee.play(game.as_mut(), &mut seats).unwrap();
    for seat in seats {
        drop(seat.close().unwrap());
    }
    (standings, forfeits)
}

/// The number of runnable threads of these processes.
fn runners(pids: &[u32]) -> usize {
    let threads = pids.iter().flat_map(|pid| fs::read_dir(format!("/proc/{pid}/task")));
    let states = threads.flatten().flatten().filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("stat")).ok()?;
        Some(text.rsplit_once(") ")?.1.starts_with('R'))
    });
    states.filter(|runs| *runs).count()
}

fn asks_in_turn(lab: &Lab, helpers: &str) {
    let (_directory, source) = source(&[("bot.py", &format!("{helpers}{PLAY}"))]);
    let before = descendants(std::process::id());
    let jail = lab.jail(&source, &JailConfig { cores: vec![0], ..JailConfig::default() });
    let (stop, _writer): (Arc<StopSignal>, _) = stop();
    let kind = ClockKind::Wall;
    let seat = StdioSeat::start(jail, &argv(), Framing::Line, kind, stop).unwrap();
    let (_standings, forfeits) = play(seat, move || {
        let all = descendants(std::process::id());
        let bots: Vec<_> = all.difference(&before).copied().collect();
        assert!(!bots.is_empty());
        assert_eq!(runners(&bots), 0, "a bot runs while another is asked");
    });
    let is_gone = |(_, forfeit, _): &(u8, Forfeit, String)| *forfeit == Forfeit::Gone;
    assert!(!forfeits.0.iter().any(is_gone), "{:?}", forfeits.0);
}

fn loses_its_match(lab: &Lab) {
    let helped = format!("import subprocess\nsubprocess.Popen(['sleep', '1000'])\n{PLAY}");
    let (_directory, source) = source(&[("bot.py", &helped)]);
    let jail = lab.jail(&source, &JailConfig::default());
    let (stop, _writer) = stop();
    let kind = ClockKind::Wall;
    let seat = StdioSeat::start(jail, &argv(), Framing::Line, kind, stop).unwrap();
    let Some(held) = Held::unstoppable(lab) else { return };
    // The process is thawed when the rival is asked. The referee has then seen that the bot does
    // not stop.
    let held = std::cell::RefCell::new(Some(held));
    let (standings, forfeits) = play(seat, move || drop(held.borrow_mut().take()));
    let [(1, Forfeit::Gone, detail)] = &forfeits.0[..] else { panic!("{:?}", forfeits.0) };
    assert!(detail.starts_with("would not stop"), "{detail}");
    assert_eq!(standings[0].forfeit, Some(Forfeit::Gone));
    assert_eq!(standings[1].forfeit, None);
}

/// The scheduling class of idle priority in the fields of `stat`.
const IDLE: &str = "5";

fn dies_with_idle_priority(lab: &Lab) {
    let (_directory, mut jail) = jail(lab);
    let process = start(&mut jail, &["python3", "bot.py"], Stdin::Pipe);
    let Some(held) = Held::helper(lab) else { return };
    jail.kill();
    assert!(jail.wait_until_idle().unwrap());
    let text = fs::read_to_string(format!("/proc/{}/stat", held.pid)).unwrap();
    // After the name, the first field is the third of all. The class is the forty-first.
    let fields = text.rsplit_once(") ").unwrap().1;
    assert_eq!(fields.split(' ').nth(38), Some(IDLE), "{text}");
    drop((held, process));
    jail.close().unwrap();
}

/// Bots cannot signal the first process of their jail. So the test stops it from outside, as a bot
/// might do by other means.
fn first_process_is_stopped(lab: &Lab) {
    let before = lab.settled_census();
    let (_directory, mut jail) = jail(lab);
    let process = start(&mut jail, &["python3", "bot.py"], Stdin::Pipe);
    let helper = helper();
    let parents = parents();
    let first = parents.get(&helper).and_then(|bot| parents.get(bot)).unwrap();
    let status = fs::read_to_string(format!("/proc/{first}/status")).unwrap();
    let inside = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap();
    if !inside.ends_with("\t1") || inside.split_whitespace().count() < 2 {
        println!("  skipped: there are no namespaces here");
        return;
    }
    let stopped = command("kill").args(["-STOP", &first.to_string()]).status().unwrap();
    assert!(stopped.success());
    // Only jails with stop signals need the first process.
    assert_eq!(jail.freeze().unwrap(), !lab.stops_by("signals"));
    jail.thaw().unwrap();
    let why = jail.start(&["true".to_owned()], Stdin::Null).unwrap().unwrap_err();
    assert!(why.contains("stopped responding"), "{why}");
    assert!(jail.is_stuck());
    assert!(jail.wait_until_idle().is_ok());
    drop(process);
    jail.close().unwrap();
    lab.assert_unharmed(&before);
}
