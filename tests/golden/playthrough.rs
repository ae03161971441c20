//! Plays tournaments to the end and compares their exports.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::deployment::Deployment;
use crate::support::service::{Service, done};
use crate::tournaments::TestTournament;
use crate::{leftovers, support};

/// The longest time without a counted match: longer than any match takes.
const STUCK: Duration = Duration::from_secs(600);
/// The interval of progress checks.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The results of tournaments.
pub(crate) struct Ending {
    /// Export files by tournament and file name.
    exports: Vec<(String, Vec<u8>)>,
    /// The bot state after each match.
    files: Vec<String>,
    /// Lots that were leased more than once, and faults.
    pub(crate) disturbances: (i64, i64),
}

impl Ending {
    /// Expects that two results are equal, byte for byte.
    pub(crate) fn expect_same(&self, other: &Self) {
        let names = |ending: &Self| -> Vec<_> {
            ending.exports.iter().map(|(name, _)| name.clone()).collect()
        };
        assert_eq!(names(self), names(other));
        for ((name, calm), (_, stormy)) in self.exports.iter().zip(&other.exports) {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert!(calm == stormy, "{name}:\n{}\n{}", text(calm), text(stormy));
        }
        assert!(!self.files.is_empty(), "the bot that remembers leaves a file in each match");
        assert_eq!(self.files, other.files);
    }
}

/// Plays tournaments to their end, prints the progress, and shows the services' logs if it fails.
pub(crate) fn play(
    contests: &[TestTournament],
    deployment: &mut Deployment,
    disturb: Option<&mut dyn FnMut(&mut Deployment)>,
) -> Ending {
    let played = catch_unwind(AssertUnwindSafe(|| play_all(contests, deployment, disturb)));
    played.unwrap_or_else(|panic| {
        eprintln!("{}", deployment.log_tails());
        resume_unwind(panic)
    })
}

fn play_all(
    contests: &[TestTournament],
    deployment: &mut Deployment,
    disturb: Option<&mut dyn FnMut(&mut Deployment)>,
) -> Ending {
    for contest in contests {
        deployment.create(contest);
    }
    let mut watchers: Vec<_> = contests.iter().map(|contest| deployment.start(contest)).collect();
    let calm = disturb.is_none();
    if let Some(disturb) = disturb {
        disturb(deployment);
    }
    let ending = finish(contests, deployment, &mut watchers);
    if calm {
        assert_eq!(ending.disturbances, (0, 0), "the tournaments were not disturbed");
    }
    ending
}

/// Waits for the end of running tournaments, and checks everything.
pub(crate) fn finish(
    contests: &[TestTournament],
    deployment: &mut Deployment,
    watchers: &mut [Service],
) -> Ending {
    let began = Instant::now();
    wait_for_all(deployment, watchers);
    for watcher in watchers {
        assert_eq!(watcher.wait(), Some(0), "{}", watcher.log());
    }
    deployment.checks.expect_exact();
    let matches = deployment.checks.number("SELECT count(*) FROM results");
    let again = deployment.checks.number("SELECT count(*) FROM lots WHERE attempt > 1");
    let faults = deployment.checks.number("SELECT count(*) FROM faults");
    eprintln!(
        "{} workers: {matches} matches in {:.1} s, {again} of them leased again, {faults} faults",
        deployment.workers.len(),
        began.elapsed().as_secs_f64()
    );
    let exports = contests.iter().flat_map(|contest| export(deployment, contest)).collect();
    deployment.close();
    leftovers::expect_no_traces(deployment);
    Ending { exports, files: deployment.checks.files(), disturbances: (again, faults) }
}

/// Waits until all watchers have ended. There is no time limit as long as matches are counted.
fn wait_for_all(deployment: &mut Deployment, watchers: &mut [Service]) {
    let mut counted = 0;
    let mut since = Instant::now();
    while watchers.iter_mut().any(|watcher| watcher.ended().is_none()) {
        deployment.expect_alive();
        let now =
            deployment.checks.number("SELECT coalesce(sum(counted), 0)::bigint FROM progress");
        if now > counted {
            (counted, since) = (now, Instant::now());
        }
        assert!(since.elapsed() < STUCK, "nothing was counted after {counted} matches");
        thread::sleep(POLL_INTERVAL);
    }
}

/// The files of a tournament's export without records. The export must pass verification.
fn export(deployment: &Deployment, contest: &TestTournament) -> Vec<(String, Vec<u8>)> {
    let to = deployment.path(&format!("export-{}", contest.name));
    deployment.succeed(&format!("tournament check {}", contest.name));
    let mut export =
        deployment.command(&format!("tournament export {} --records --out", contest.name));
    let stdout = done(&export.arg(&to).output().unwrap());
    let records = to.join("records");
    let written = support::files(&records).len();
    assert!(stdout.contains(&format!("with {written} matches")), "{stdout}");
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
