//! `arbiter demo` continues after it was stopped or killed at any point, with the same
//! leaderboards.
//!
//! The tournaments are those of `arbiter demo --quick` with shorter matches, and with enough time
//! for the bots on slow machines.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

mod support;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use rustix::process::Signal;
use serde_json::Value;
use support::arbiter;
use support::presets::{TIME, give_time};
use support::service::{Service, done, free_address, wait_until};

/// A demonstration and its files.
struct Stage {
    data: PathBuf,
    presets: PathBuf,
    log: PathBuf,
    address: SocketAddr,
}

impl Stage {
    fn new(at: &Path, name: &str) -> Self {
        let data = at.join(name);
        let log = at.join(format!("{name}.log"));
        Self { data, presets: at.join("presets"), log, address: free_address() }
    }

    /// Restores the default action of Ctrl-C, which ends a program that does not listen for it yet.
    /// Background jobs of shells inherit that the signal is ignored.
    #[expect(clippy::disallowed_methods, reason = "a program is started from outside")]
    fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new("env");
        command.arg("--default-signal=INT").arg(arbiter().get_program());
        command.args(["demo", "--quick", "--slots", "2", "--lease", "3s", "--faults", "1000"]);
        command.args(["--grpc", &self.address.to_string()]);
        command.arg("--data").arg(&self.data).arg("--presets").arg(&self.presets).args(more);
        command
    }

    /// Plays to the end, and returns the leaderboards.
    fn play(&self, more: &[&str]) -> String {
        done(&self.command(more).stdin(Stdio::null()).output().unwrap())
    }

    /// Starts to play.
    fn begin(&self, more: &[&str]) -> Service {
        drop(fs::remove_file(&self.log));
        Service::start(&mut self.command(more), &self.log)
    }

    /// The number of counted matches, or 0 if the server does not respond.
    fn counted(&self) -> u64 {
        let token = fs::read_to_string(self.data.join("admin.token")).unwrap_or_default();
        let counted = |game: &str| {
            let mut show = arbiter();
            show.args(["tournament", "show", &format!("{game}-quick"), "--json"]);
            show.args(["--server", &format!("http://{}", self.address), "--token", token.trim()]);
            let tournament: Value = serde_json::from_slice(&show.output().unwrap().stdout).ok()?;
            tournament["editions"][0]["counted"].as_u64()
        };
        TIME.iter().filter_map(|(game, _)| counted(game)).sum()
    }

    /// Waits until more than this many matches are counted, and returns their number.
    fn wait(&self, playing: &mut Service, before: u64) -> u64 {
        let mut counted = 0;
        wait_until("matches are counted", || {
            assert_eq!(playing.ended(), None, "{}", playing.log());
            counted = self.counted();
            counted > before
        });
        counted
    }
}

/// Interrupts the demo (twice if `hurried`), and expects that nothing is lost.
fn interrupt(playing: &mut Service, twice: bool) {
    playing.signal(Signal::INT);
    if twice {
        playing.signal(Signal::INT);
    }
    assert_eq!(playing.wait(), Some(1), "{}", playing.log());
    assert!(playing.log().contains("interrupted; nothing is lost"), "{}", playing.log());
}

#[test]
fn an_interrupted_demo_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    give_time(&directory.path().join("presets"));
    let calm = Stage::new(directory.path(), "calm");
    let stage = Stage::new(directory.path(), "stopped");
    thread::scope(|scope| {
        let boards = scope.spawn(|| calm.play(&[]));

        // Before the program listens for the signal, and while the database is created.
        let mut playing = stage.begin(&[]);
        playing.wait_for_log("building and packing");
        playing.signal(Signal::INT);
        assert_ne!(playing.wait(), Some(0), "{}", playing.log());
        let mut playing = stage.begin(&[]);
        let database = stage.data.join("postgres");
        wait_until("the database is created", || {
            assert_eq!(playing.ended(), None, "{}", playing.log());
            database.exists()
        });
        interrupt(&mut playing, false);

        let mut playing = stage.begin(&[]);
        let first = stage.wait(&mut playing, 0);
        interrupt(&mut playing, false);
        let mut playing = stage.begin(&[]);
        let second = stage.wait(&mut playing, first);
        interrupt(&mut playing, true);
        let mut playing = stage.begin(&[]);
        stage.wait(&mut playing, second);
        playing.kill();

        let stopped = stage.play(&[]);
        let boards = boards.join().unwrap();
        for (game, _) in TIME {
            assert!(boards.contains(&format!("\n{game}-quick\n")), "{boards}");
        }
        assert_eq!(boards, stopped, "the same leaderboards");
        assert_eq!(boards, stage.play(&[]), "the same leaderboards, without another match");
    });

    let mut playing = stage.begin(&["--fresh"]);
    playing.wait_for_log("coordinator at");
    let counted = stage.counted();
    interrupt(&mut playing, true);
    let all = calm_total(&calm);
    assert!(counted < all, "{counted} of {all}: the demo started again from the beginning");
}

/// The number of matches of a finished demonstration.
fn calm_total(calm: &Stage) -> u64 {
    let mut playing = calm.begin(&[]);
    let text = "matches played and counted";
    playing.wait_for_log(text);
    assert_eq!(playing.wait(), Some(0), "{}", playing.log());
    let log = playing.log();
    let lines = log.lines().filter(|line| line.ends_with(text));
    lines.filter_map(|line| line.split(' ').nth(1)?.parse::<u64>().ok()).sum()
}
