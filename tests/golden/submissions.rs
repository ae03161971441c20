//! Fifty submissions in random order, while workers and the coordinator are killed. The last
//! leaderboard equals that of a tournament with the final versions from the beginning, and no match
//! is played twice.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use arbiter_games::{Dice, Seed};

use crate::deployment::Deployment;
use crate::support::service::{Service, done, wait_until};
use crate::{draw, leftovers};

const BOTS: u32 = 6;
const SUBMISSIONS: u32 = 50;
/// One in this number of submissions is followed by a kill.
const KILLS: u32 = 6;

/// Matches that were played more than once.
const TWICE: &str = "
    SELECT count(*) FROM (
        SELECT FROM results JOIN matches m USING (tournament, number)
        GROUP BY tournament, m.seed_key, m.seats HAVING count(*) > 1) AS twice";

#[test]
fn submissions_and_kills_change_nothing() {
    let seed = std::env::var("ARBITER_SEED").unwrap_or_else(|_| draw());
    eprintln!("ARBITER_SEED={seed}");
    let folder = tempfile::tempdir().unwrap();
    let mut deployment = Deployment::open(2, 2, "3s");
    let played = catch_unwind(AssertUnwindSafe(|| play(&mut deployment, folder.path(), &seed)));
    if let Err(panic) = played {
        eprintln!("{}", deployment.log_tails());
        resume_unwind(panic)
    }
    deployment.close();
    leftovers::expect_no_traces(&deployment);
}

fn play(deployment: &mut Deployment, at: &Path, seed: &str) {
    for name in ["changing", "settled"] {
        let file = at.join(format!("{name}.toml"));
        let text = format!(
            "name = \"{name}\"\ngame = \"tricks\"\nseed = \"golden\"\n\
             [params]\ntables = 2\nmove_limit = \"10h\"\n[clock]\nstartup = \"10h\"\n\
             [submissions]\nwindow = \"200ms\"\n"
        );
        fs::write(&file, text).unwrap();
        done(&deployment.command("tournament create").arg(&file).output().unwrap());
    }
    let mut dice = Seed::of_text(seed).dice(0);
    for bot in 0..BOTS {
        submit(deployment, at, bot, 0, &mut dice);
    }
    deployment.succeed("tournament start changing");
    let log = deployment.path("watch-changing");
    let mut watcher = Service::start(&mut deployment.command("tournament watch changing"), &log);
    // A watcher reconnects only to a coordinator that has already answered.
    watcher.wait_for_log("edition");
    for number in 1..=SUBMISSIONS {
        let bot = dice.below(BOTS);
        submit(deployment, at, bot, number, &mut dice);
        match dice.below(2 * KILLS) {
            0 => {
                let worker = dice.index(deployment.workers.len());
                deployment.kill_worker(worker);
            }
            1 => {
                deployment.kill_coordinator();
                deployment.restart_coordinator();
                deployment.expect_serving();
            }
            _ => {}
        }
    }
    wait_for_the_end(deployment);
    // The watcher exits when the first edition is complete.
    assert_eq!(watcher.wait(), Some(0), "{}", watcher.log());
    deployment.succeed("tournament start settled");
    wait_for_the_end(deployment);
    assert_eq!(deployment.checks.number(TWICE), 0, "matches that were played twice");
    let editions = deployment.checks.number("SELECT count(*) FROM editions");
    let results = deployment.checks.number("SELECT count(*) FROM results");
    eprintln!("{editions} editions, {results} matches played");
    let [changing, settled] = ["changing", "settled"].map(|name| export(deployment, name));
    assert_eq!(changing, settled);
}

/// Submits another version of a bot to both tournaments.
fn submit(deployment: &Deployment, at: &Path, bot: u32, number: u32, dice: &mut Dice) {
    let path = version(at, number * BOTS + bot, dice);
    for tournament in ["changing", "settled"] {
        let mut submit =
            deployment.command(&format!("submit {tournament} --house --name bot-{bot}"));
        done(&submit.arg(&path).output().unwrap());
    }
}

/// A unique bot: one of two kinds, with a comment.
fn version(at: &Path, number: u32, dice: &mut Dice) -> PathBuf {
    let kind = ["lowest", "counter"][dice.index(2)];
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("bots/tricks").join(kind);
    let to = at.join(format!("version-{number}"));
    fs::create_dir(&to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    fs::write(to.join("remark"), number.to_string()).unwrap();
    to
}

/// Waits until no edition is running or due.
fn wait_for_the_end(deployment: &mut Deployment) {
    // Submissions to a tournament that was not started open no edition.
    let open = "
        SELECT (SELECT count(*) FROM editions WHERE ended_at IS NULL)
            + (SELECT count(*) FROM edition_triggers c
               WHERE EXISTS (SELECT FROM editions e WHERE e.tournament = c.tournament))";
    wait_until("all editions are complete", || {
        deployment.expect_alive();
        deployment.checks.number(open) == 0
    });
}

/// The leaderboard and the matches of a tournament, without the edition's number.
fn export(deployment: &Deployment, name: &str) -> [String; 2] {
    let to = deployment.path(&format!("export-{name}"));
    deployment.succeed(&format!("tournament check {name}"));
    let mut export = deployment.command(&format!("tournament export {name} --out"));
    done(&export.arg(&to).output().unwrap());
    ["ranking.json", "matches.jsonl"].map(|file| {
        let text = fs::read_to_string(to.join(file)).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with("  \"edition\":"));
        lines.collect::<Vec<_>>().join("\n")
    })
}
