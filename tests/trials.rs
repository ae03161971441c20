//! Submissions with a real coordinator and a real worker: a version that passes its trial enters;
//! one that fails gets the reason, and the former version stays.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use arbiter_coordinator::postgres::Durability;
use serde_json::{Value, json};
use support::service::{Database, Service, done, free_address, wait_until};
use support::{Bots, arbiter};

/// A coordinator with a worker, and a tournament of gomoku without house bots.
struct Site {
    _database: Database,
    coordinator: Service,
    worker: Option<Service>,
    server: String,
    admin: String,
    player: String,
    /// The worker's token: its name belongs to it.
    pass: String,
    directory: tempfile::TempDir,
}

impl Site {
    fn open(tournament: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::start(Durability::Unsynced);
        let admin = database.token("admin");
        let player = database.token("player");
        let pass = database.token("worker");
        let address = free_address();
        let mut command = database.coordinator(address);
        command.args(["--lease", "2s"]);
        let mut coordinator = Service::start(&mut command, &directory.path().join("coordinator"));
        coordinator.wait_for_log("serving");
        let server = format!("http://{address}");
        let mut site = Self {
            _database: database,
            coordinator,
            worker: None,
            server,
            admin,
            player,
            pass,
            directory,
        };
        let file = site.directory.path().join("file.toml");
        fs::write(&file, tournament).unwrap();
        done(&site.command(&site.admin, "tournament create").arg(&file).output().unwrap());
        if tournament == CUP {
            site.start_worker();
        }
        site
    }

    fn start_worker(&mut self) {
        let mut command = self.command(&self.pass, "worker --slots 1 --name it --spool");
        command.arg(self.directory.path().join("spool"));
        self.worker = Some(Service::start(&mut command, &self.directory.path().join("worker")));
    }

    /// A client command with a token.
    fn command(&self, token: &str, words: &str) -> Command {
        let mut command = arbiter();
        command.args(words.split(' ')).env("ARBITER_SERVER", &self.server);
        command.env("ARBITER_TOKEN", token);
        command
    }

    fn submit(&self, path: &str, more: &[&str]) -> Output {
        self.command(&self.player, "submit cup").arg(path).args(more).output().unwrap()
    }

    /// A bot as `bots` shows it to the holder of a token.
    fn bot(&self, token: &str, name: &str) -> Value {
        let stdout = done(&self.command(token, "bots cup --json").output().unwrap());
        let bots = stdout.lines().map(|line| serde_json::from_str(line).unwrap());
        let is_named = |bot: &Value| {
            let whole = bot["bot"].as_str().unwrap();
            whole == name || whole.split('/').next_back() == Some(name)
        };
        bots.into_iter().find(is_named).unwrap_or_default()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let worker = self.worker.as_ref().map(Service::log).unwrap_or_default();
            eprintln!("{}\n{worker}", self.coordinator.log());
        }
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const CUP: &str = "name = \"cup\"\ngame = \"gomoku\"\n\n[params]\nmove_limit = \"10s\"\n";

#[test]
fn passing_bots_enter_and_failures_are_explained() {
    let site = Site::open(CUP);
    let bots = Bots::new();
    let good = bots.rascal("mine", "honest", 0, "");
    let output = site.submit(&good, &[]);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{message}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("mine version 1 is in cup"), "{stdout}");
    let forecast = "it plays in edition 1, as soon as enough bots have entered; follow it with \
        arbiter tournament watch cup, or at /t/cup in a browser\n";
    assert!(stdout.ends_with(forecast), "{stdout}");
    assert!(message.contains("built in") && message.contains("matches"), "{message}");
    assert!(!fs::exists(format!("{good}/bot")).unwrap(), "the bot was not built locally");
    assert_eq!(site.bot(&site.player, "mine")["version"], 1);

    // Its next version does not build, the one after that breaks the rules.
    fs::write(format!("{good}/rascal.c"), "int main(void) { return nothing; }\n").unwrap();
    let output = site.submit(&good, &[]);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    for part in ["mine version 2: trial failed", "cc -o bot rascal.c", "exited with code 1"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(message.contains("nothing"), "the message has the compiler's error: {message}");
    let mine = site.bot(&site.player, "mine");
    assert_eq!((&mine["version"], &mine["pending"]["state"]), (&1.into(), &"trial failed".into()));
    assert!(mine["pending"]["reason"].as_str().unwrap().contains("its build"), "{mine}");
    let others = site.bot("", "mine");
    assert_eq!(others["pending"]["reason"], Value::Null, "only the owner sees the reason");

    fs::remove_dir_all(&good).unwrap();
    let bad = bots.rascal("mine", "segv", 2, "");
    let output = site.submit(&bad, &["--json"]);
    let stdout: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    assert_eq!((&stdout["version"], &stdout["state"]), (&3.into(), &"trial failed".into()));
    assert!(stdout["reason"].as_str().unwrap().contains("forfeit, gone"), "{stdout}");
    assert!(stdout["evidence"].as_array().unwrap().len() > 1, "{stdout}");
    let log = done(&site.command(&site.player, "log cup mine").output().unwrap());
    assert!(log.contains("version 3: trial failed") && log.contains("> "), "{log}");
    let log = site.command(&site.player, "log cup mine --trial --version 1").output().unwrap();
    assert!(done(&log).contains("version 1: entered"));

    fs::remove_dir_all(&bad).unwrap();
    check_that_the_built_version_plays(&site, &bots);
}

/// What plays is what was built in the trial.
fn check_that_the_built_version_plays(site: &Site, bots: &Bots) {
    let other = bots.rascal("other", "honest", 0, "");
    let stdout = done(&site.submit(&other, &[]));
    assert!(stdout.contains("it plays in edition 1, which an organiser starts"), "{stdout}");
    done(&site.command(&site.admin, "tournament start cup").output().unwrap());
    done(&site.command(&site.admin, "tournament watch cup").output().unwrap());
    let board = done(&site.command("", "ranking cup --json").output().unwrap());
    for line in board.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        if line["bot"].is_string() {
            assert!(line["forfeits"].as_object().unwrap().values().all(|n| *n == 0), "{line}");
        }
    }
    done(&site.command(&site.admin, "tournament check cup").output().unwrap());
    let folder = bots.path().join("log");
    let words = format!("log cup mine --download {}", folder.display());
    let download = || stderr(&site.command(&site.player, &words).output().unwrap());
    assert!(download().contains("2 records, versions, forfeits.csv"));
    done(&arbiter().arg("verify").arg(folder.join("records")).output().unwrap());
    let trial = fs::read_to_string(folder.join("versions/3/trial.txt")).unwrap();
    assert!(trial.starts_with("version 3: trial failed") && trial.contains("> "), "{trial}");
    let log = fs::read_to_string(folder.join("versions/2/build.log")).unwrap();
    assert!(log.contains("nothing"), "{log}");
    assert!(download().contains("2 records"), "a second download finds the records");
    // Records name what was submitted, not what was built from it.
    let record = done(&site.command(&site.admin, "match cup/0 --record -").output().unwrap());
    let header: Value = serde_json::from_str(record.lines().next().unwrap()).unwrap();
    for seat in header["seats"].as_array().unwrap() {
        let bot = site.bot("", &seat["bot"].as_str().unwrap().replace('.', "/"));
        assert_eq!(seat["digest"], bot["digest"], "{header}");
    }
}

#[test]
fn a_source_file_can_be_submitted_and_a_missing_program_is_named() {
    let site = Site::open(CUP);
    let bots = Bots::new();
    let file = bots.file("one.c", "int main(void) { return 7; }\n");
    let output = site.submit(&file, &["--json"]);
    let trial: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&trial["bot"], &trial["state"]),
        (&"player/one".into(), &"trial failed".into()),
        "{trial}"
    );
    assert!(trial["reason"].as_str().unwrap().contains("exited with code 7"), "{trial}");
    assert_eq!(trial["forecast"], Value::Null, "{trial}");
    let unknown = site.submit(&bots.file("one.cobol", "x"), &[]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("neither an archive nor a source file"), "{unknown:?}");

    let lacking = bots.path().join("lacking");
    fs::create_dir(&lacking).unwrap();
    let manifest = "name = \"lacking\"\nrun = [\"no-such-language\", \"bot\"]\n";
    fs::write(lacking.join("bot.toml"), manifest).unwrap();
    let output = site.submit(lacking.to_str().unwrap(), &[]);
    let says = "its program `no-such-language` is not installed on the machine that tried it";
    assert!(stderr(&output).contains(says), "{output:?}");
}

/// Replaces the build command of a bot.
fn build(path: &str, script: &str) {
    let manifest = fs::read_to_string(format!("{path}/bot.toml")).unwrap();
    let build = format!("build = {:?}", ["sh", "-c", script]);
    let lines = manifest.lines().map(|line| if line.starts_with("build") { &build } else { line });
    fs::write(format!("{path}/bot.toml"), lines.collect::<Vec<_>>().join("\n")).unwrap();
}

#[test]
fn a_trial_outlives_its_worker() {
    let mut site = Site::open(CUP);
    let bots = Bots::new();
    let slow = bots.rascal("slow", "honest", 0, "");
    // Long enough to be killed in the middle, wherever that is.
    build(&slow, "sleep 3; cc -o bot rascal.c");
    let sent = site.submit(&slow, &["--no-wait"]);
    assert!(done(&sent).contains("slow version 1: waiting for its trial; digest"), "{sent:?}");
    let pending = |site: &Site| site.bot("", "slow")["pending"]["state"].clone();
    wait_until("its trial begins", || pending(&site) == "trial running");
    site.worker.as_mut().unwrap().kill();
    site.start_worker();
    wait_until("it enters", || pending(&site) == Value::Null);
    assert_eq!(site.bot("", "slow")["version"], 1);
    // A worker that is told to stop gives back what it tries.
    fs::write(format!("{slow}/more"), "another version").unwrap();
    done(&site.submit(&slow, &["--no-wait"]));
    wait_until("its trial begins", || pending(&site) == "trial running");
    let mut worker = site.worker.take().unwrap();
    worker.signal(rustix::process::Signal::TERM);
    worker.signal(rustix::process::Signal::INT);
    assert_eq!(worker.wait(), Some(0), "{}", worker.log());
    wait_until("the lease is returned", || pending(&site) == "waiting for its trial");
    // There is an end to how many may wait.
    for more in 0..7 {
        fs::write(format!("{slow}/more"), more.to_string()).unwrap();
        done(&site.submit(&slow, &["--no-wait"]));
    }
    fs::write(format!("{slow}/more"), "too many").unwrap();
    let refused = site.submit(&slow, &["--no-wait"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("8 of your versions wait for their trials"), "{refused:?}");
}

#[test]
fn without_trials_workers_build_what_they_play() {
    let mut site = Site::open(&format!("{CUP}\n[submissions]\npreflight = false\n"));
    let bots = Bots::new();
    for name in ["one", "two"] {
        let path = bots.rascal(name, "honest", 0, "");
        let stdout = done(&site.submit(&path, &[]));
        assert!(stdout.contains(&format!("{name} version 1 is in cup")), "{stdout}");
    }
    let broken = bots.rascal("broken", "honest", 0, "");
    build(&broken, "exit 1");
    done(&site.submit(&broken, &[]));
    done(&site.command(&site.admin, "tournament start cup").output().unwrap());
    site.start_worker();
    done(&site.command(&site.admin, "tournament watch cup").output().unwrap());
    let board = done(&site.command("", "ranking cup --json").output().unwrap());
    let lines = board.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let forfeits = |line: &Value| -> i64 {
        line["forfeits"].as_object().unwrap().values().map(|n| n.as_i64().unwrap()).sum()
    };
    let places: Vec<_> = lines.filter(|line| line["bot"].is_string()).collect();
    for place in &places {
        assert_eq!(forfeits(place) > 0, place["bot"] == "player/broken", "{place}");
    }
    assert_eq!(places.len(), 3);
}

/// The result of a preflight, and its exit code.
fn preflight(arguments: &[&str]) -> (Value, i32) {
    let mut command = arbiter();
    let output = command.arg("preflight").args(arguments).arg("--json").output().unwrap();
    let code = output.status.code().unwrap();
    (serde_json::from_slice(&output.stdout).unwrap_or_else(|_| stderr(&output).into()), code)
}

#[test]
fn a_preflight_gives_the_result_of_the_trial() {
    let bots = Bots::new();
    let polite = bots.rascal("polite", "honest", 0, "");
    let (stdout, code) = preflight(&["gomoku", &polite, "--set", "move_limit=30s"]);
    assert_eq!(
        (code, &stdout["passed"], &stdout["warnings"]),
        (0, &true.into(), &Value::Array(vec![]))
    );
    assert!(stdout["measurements"]["replies"]["p99_us"].is_u64(), "{stdout}");
    let sloppy = bots.rascal("sloppy", "crlf", 0, "");
    let (stdout, code) = preflight(&["gomoku", &sloppy, "--set", "move_limit=30s"]);
    assert_eq!(code, 0, "{stdout}");
    assert!(stdout["warnings"][0].as_str().unwrap().contains("CR LF"), "{stdout}");
    for (mode, says, hint) in [
        ("twice", "more than one reply", "expected: one reply"),
        ("garbage", "illegal", "> "),
        ("segv", "SIGSEGV", "> "),
        ("silent", "clock", "flush"),
    ] {
        let path = bots.rascal(mode, mode, 0, "");
        let limit = if mode == "silent" { "move_limit=1s" } else { "move_limit=30s" };
        let (stdout, code) = preflight(&["gomoku", &path, "--set", limit, "--against", &polite]);
        assert_eq!((code, &stdout["passed"]), (1, &false.into()), "{mode}: {stdout}");
        assert!(stdout["reason"].as_str().unwrap().contains(says), "{mode}: {stdout}");
        let evidence = stdout["evidence"].to_string();
        assert!(evidence.contains(hint), "{mode}: {evidence}");
    }
    let broken = bots.rascal("broken", "honest", 0, "");
    build(&broken, "echo too bad; exit 2");
    let output = arbiter().args(["preflight", "gomoku", &broken]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("  too bad"), "{output:?}");
    assert!(stderr(&output).contains("broken fails: its build"), "{output:?}");
    let output = arbiter().args(["preflight", "chess", &broken]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn a_preflight_plays_against_the_house_bots_of_a_package() {
    let rps = "games/packages/rps";
    let bot = "games/packages/rps/bots/random";
    let (stdout, code) = preflight(&[rps, bot, "--seats", "3"]);
    assert_eq!((code, &stdout["seats"]), (0, &3.into()), "{stdout}");
    assert_eq!(stdout["against"], json!(["habit", "markov"]), "{stdout}");
    assert_eq!(stdout["measurements"]["matches"], 3, "{stdout}");
    let habit = "games/packages/rps/bots/habit";
    let output = arbiter().args(["preflight", rps, bot, "--against", habit]).output().unwrap();
    let log = stderr(&output);
    assert!(log.contains("random: plays against habit at tables of "), "{log}");
    let (message, code) = preflight(&[rps, bot, "--seats", "9"]);
    assert_eq!(code, 2, "{message}");
    let message = message.as_str().unwrap();
    assert!(
        message.contains("--seats 9: with these parameters rps has tables of 2 to"),
        "{message}"
    );
    let wojna = preflight(&["wojna", "bots/wojna/caller", "--seats", "3"]).0;
    assert_eq!((&wojna["seats"], &wojna["against"]), (&3.into(), &json!([])), "{wojna}");
}

#[test]
fn a_hint_follows_the_standard_error_that_it_explains() {
    let bots = Bots::new();
    let path = bots.path().join("gone");
    fs::write(&path, "#!/bin/sh\necho no such module >&2\nexit 1\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let (stdout, code) = preflight(&["gomoku", path.to_str().unwrap()]);
    let evidence: Vec<_> = stdout["evidence"].as_array().unwrap().iter().rev().take(2).collect();
    assert_eq!(code, 1, "{stdout}");
    assert!(evidence[0].as_str().unwrap().contains("before its first reply"), "{stdout}");
    assert_eq!(evidence[1], "  no such module", "{stdout}");
}

#[test]
fn bots_of_all_games_pass() {
    for (game, bot) in [
        ("wojna", "caller"),
        ("bitwa", "rush"),
        ("tricks", "lowest"),
        ("blackjack", "lim17"),
        ("gomoku", "center"),
    ] {
        let path = format!("bots/{game}/{bot}");
        let limit = match game {
            "wojna" => "clock=60000/2000/6000/200",
            "bitwa" => "bank=60min",
            _ => "move_limit=60s",
        };
        let (stdout, code) = preflight(&[game, &path, "--set", limit]);
        assert_eq!((code, &stdout["passed"]), (0, &true.into()), "{game}: {stdout}");
        assert_eq!(stdout["measurements"]["matches"], 2, "{game}: {stdout}");
    }
}

#[test]
fn a_failed_trial_and_the_bot_of_another_player_reserve_no_name() {
    let site = Site::open(CUP);
    let create = "token create --role player --name";
    let token = |name: &str| {
        let output = site.command(&site.admin, &format!("{create} {name}")).output().unwrap();
        done(&output).trim().to_owned()
    };
    let [eve, bob] = ["eve", "bob"].map(token);
    let submit =
        |token: &str, path: &str| site.command(token, "submit cup").arg(path).output().unwrap();
    let bots = Bots::new();
    let broken = bots.rascal("mine", "segv", 2, "");
    assert_eq!(submit(&eve, &broken).status.code(), Some(1), "it fails its trial");
    assert_eq!(site.bot("", "eve/mine")["state"], "trial failed");
    fs::remove_dir_all(&broken).unwrap();

    let good = bots.rascal("mine", "honest", 2, "");
    done(&submit(&bob, &good));
    let mine = site.bot("", "bob/mine");
    assert_eq!((&mine["owner"], &mine["state"]), (&json!("bob"), &json!("entered")));
    assert_eq!(mine["version"], 1);
    let log = done(&site.command(&eve, "log cup mine --trial").output().unwrap());
    assert!(log.contains("trial failed"), "{log}");
    done(&submit(&eve, &good));
    assert_eq!(site.bot("", "eve/mine")["version"], 2);
}
