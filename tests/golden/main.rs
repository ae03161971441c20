//! The golden tournament: kills do not change its results.
//!
//! The same tournaments are played twice, by real processes. Once one worker with one slot plays
//! them undisturbed. Once four workers with two slots each do, while workers, the coordinator and
//! Postgres are killed at random and started again. Both must end with the same leaderboards,
//! matches and transcripts, byte for byte. Each match must be counted once, and killed processes
//! must leave nothing behind.
//!
//! `cargo test --test golden` plays two games and a knockout with a few kills. All five games, with
//! any number of kills:
//!
//! ```text
//! ARBITER_KILLS=30 cargo test --test golden -- --nocapture
//! ```
//!
//! The seed of the kills is printed; with it in `ARBITER_SEED` they are repeated, as far as the
//! machine repeats itself.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

mod database_checks;
mod deployment;
mod kills;
mod leftovers;
mod playthrough;
mod submissions;
#[path = "../support/mod.rs"]
mod support;
mod tournaments;

use std::env;
use std::fs::File;
use std::io::Read as _;
use std::thread;

use deployment::Deployment;
use kills::Kills;
use playthrough::play;
use tournaments::Size;

/// The default number of kills: each kind at least twice.
const KILLS: usize = 6;

#[test]
fn kills_change_nothing() {
    let kills = env::var("ARBITER_KILLS").ok();
    let size = if kills.is_some() { Size::Long } else { Size::Small };
    let kills = kills.map_or(KILLS, |kills| kills.parse().expect("ARBITER_KILLS is a number"));
    let seed = env::var("ARBITER_SEED").unwrap_or_else(|_| draw());
    eprintln!("{kills} kills, ARBITER_SEED={seed}");
    leftovers::adopt();
    let folder = tempfile::tempdir().unwrap();
    let contests = tournaments::all(size, folder.path());
    let (calm, stormy) = thread::scope(|scope| {
        let calm = scope.spawn(|| play(&contests, &mut Deployment::open(1, 1, "10min"), None));
        let mut kills = Kills::new(&seed, kills);
        let stormy = play(
            &contests,
            &mut Deployment::open(4, 2, "3s"),
            Some(&mut |deployment| kills.kill_all(deployment)),
        );
        (calm.join().unwrap(), stormy)
    });
    calm.expect_same(&stormy);
    leftovers::expect_no_processes();
}

/// A random seed.
fn draw() -> String {
    let mut bytes = [0; 4];
    File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    u32::from_le_bytes(bytes).to_string()
}
