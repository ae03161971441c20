//! The golden tournament: whatever is killed, the same bots come to the same end.
//!
//! The same tournaments are played twice, by real processes. Once one worker with one slot plays
//! them undisturbed. Once four workers with two slots each do, while workers, the coordinator and
//! Postgres are killed at random and started again. Both must end with the same leaderboards,
//! matches and transcripts, byte for byte; each match must be counted once; and of those who were
//! killed nothing may be left.
//!
//! `cargo test --test golden` plays two games with a few kills. All five, with as many kills as one
//! likes:
//!
//! ```text
//! ARBITER_KILLS=30 cargo test --test golden -- --nocapture
//! ```
//!
//! The seed of the kills is printed; with it in `ARBITER_SEED` they are repeated, as far as the
//! machine repeats itself.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

mod changes;
mod contests;
mod hall;
mod ledger;
mod remains;
mod storm;
#[path = "../support/mod.rs"]
mod support;

use std::env;
use std::fs::{self, File};
use std::io::Read as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use contests::{Contest, Size};
use hall::Hall;
use storm::Storm;
use support::service::{Service, done};

/// How long nothing may be counted: longer than any match takes.
const STUCK: Duration = Duration::from_secs(600);
/// Between two looks at how far everything is.
const LOOK: Duration = Duration::from_millis(100);
/// How often somebody is killed if nobody says how often: each kind at least twice.
const KILLS: usize = 6;

/// What tournaments came to.
struct Ending {
    /// Files of exports by their names, with the tournaments'.
    exports: Vec<(String, Vec<u8>)>,
    /// What bots left in which matches.
    files: Vec<String>,
}

#[test]
fn kills_change_nothing() {
    let kills = env::var("ARBITER_KILLS").ok();
    let size = if kills.is_some() { Size::Long } else { Size::Small };
    let kills = kills.map_or(KILLS, |kills| kills.parse().expect("ARBITER_KILLS is a number"));
    let seed = env::var("ARBITER_SEED").unwrap_or_else(|_| draw());
    eprintln!("{kills} kills, ARBITER_SEED={seed}");
    remains::adopt();
    let folder = tempfile::tempdir().unwrap();
    let contests = contests::all(size, folder.path());
    let (calm, stormy) = thread::scope(|scope| {
        let calm = scope.spawn(|| play(&contests, &mut Hall::open(1, 1, "10min"), None));
        let mut storm = Storm::new(&seed, kills);
        let stormy = play(&contests, &mut Hall::open(4, 2, "3s"), Some(&mut storm));
        (calm.join().unwrap(), stormy)
    });
    let names = |ending: &Ending| -> Vec<_> {
        ending.exports.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&calm), names(&stormy));
    for ((name, calm), (_, stormy)) in calm.exports.iter().zip(&stormy.exports) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(calm == stormy, "{name}:\n{}\n{}", text(calm), text(stormy));
    }
    assert!(!calm.files.is_empty(), "the elephant leaves a file in each match");
    assert_eq!(calm.files, stormy.files);
    remains::expect_no_processes();
}

/// A seed that nobody chose.
fn draw() -> String {
    let mut bytes = [0; 4];
    File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    u32::from_le_bytes(bytes).to_string()
}

/// Plays tournaments to their end, tells of it, and shows what the services said if it fails.
fn play(contests: &[Contest], hall: &mut Hall, storm: Option<&mut Storm>) -> Ending {
    let played = catch_unwind(AssertUnwindSafe(|| play_all(contests, hall, storm)));
    played.unwrap_or_else(|panic| {
        eprintln!("{}", hall.last_words());
        resume_unwind(panic)
    })
}

fn play_all(contests: &[Contest], hall: &mut Hall, storm: Option<&mut Storm>) -> Ending {
    let began = Instant::now();
    for contest in contests {
        hall.create(contest);
    }
    let mut watchers: Vec<_> = contests.iter().map(|contest| hall.start(contest)).collect();
    let calm = storm.is_none();
    if let Some(storm) = storm {
        storm.rage(hall);
    }
    wait_for_all(hall, &mut watchers);
    for watcher in &mut watchers {
        assert_eq!(watcher.wait(), Some(0), "{}", watcher.said());
    }
    hall.ledger.expect_exact();
    let matches = hall.ledger.number("SELECT count(*) FROM results");
    let again = hall.ledger.number("SELECT count(*) FROM lots WHERE attempt > 1");
    let faults = hall.ledger.number("SELECT count(*) FROM faults");
    eprintln!(
        "{} workers: {matches} matches in {:.1} s, {again} of them leased again, {faults} faults",
        hall.workers.len(),
        began.elapsed().as_secs_f64()
    );
    if calm {
        assert_eq!((again, faults), (0, 0), "nothing happened");
    }
    let exports = contests.iter().flat_map(|contest| export(hall, contest)).collect();
    hall.close();
    remains::expect_no_traces(hall);
    Ending { exports, files: hall.ledger.files() }
}

/// Waits until all watchers have ended. However long that takes, it must go on.
fn wait_for_all(hall: &mut Hall, watchers: &mut [Service]) {
    let (mut counted, mut since) = (0, Instant::now());
    while watchers.iter_mut().any(|watcher| watcher.ended().is_none()) {
        hall.expect_alive();
        let now = hall.ledger.number("SELECT coalesce(sum(counted), 0)::bigint FROM progress");
        if now > counted {
            (counted, since) = (now, Instant::now());
        }
        assert!(since.elapsed() < STUCK, "nothing was counted after {counted} matches");
        thread::sleep(LOOK);
    }
}

/// The files of a tournament's export without records, which must be right too.
fn export(hall: &Hall, contest: &Contest) -> Vec<(String, Vec<u8>)> {
    let to = hall.path(&format!("export-{}", contest.name));
    hall.tell(&format!("tournament check {}", contest.name));
    let mut export = hall.command(&format!("tournament export {} --records --out", contest.name));
    let told = done(&export.arg(&to).output().unwrap());
    let records = to.join("records");
    let written = support::files(&records).len();
    assert!(told.contains(&format!("with {written} matches")), "{told}");
    support::succeed(&["verify", records.to_str().unwrap()]);
    let read = |path: &Path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        (format!("{} of {}", name, contest.name), fs::read(path).unwrap())
    };
    let files = support::files(&to);
    let files: Vec<_> = files.iter().filter(|path| path.is_file()).map(|path| read(path)).collect();
    assert_eq!(files.len(), 3, "settings, leaderboard and matches");
    files
}
