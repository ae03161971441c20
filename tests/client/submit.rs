//! What `arbiter submit` and `arbiter tournament create` send.

use std::fs;
use std::path::Path;

use arbiter_coordinator::tournament::file::TournamentFile;
use arbiter_games::Games;
use arbiter_proto::v1::{TrialStatus, Version};
use arbiter_worker::bundle::unpack;
use serde_json::json;
use tempfile::TempDir;
use tonic::Code;

use crate::server::{Script, Server};
use crate::support::Bots;
use crate::{board, fails, run, succeed};

/// The names of the files in a bundle.
fn unpacked(bundle: &[u8]) -> Vec<String> {
    let folder = TempDir::new().unwrap();
    unpack(bundle, folder.path()).unwrap();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    crate::support::files(folder.path()).iter().map(|path| name(path)).collect()
}

#[test]
fn a_bot_is_built_packed_and_submitted() {
    let bots = Bots::new();
    let path = bots.rascal("mine", "honest", 0, "");
    let server = Server::start(board());
    let output = run(&server, &["submit", "finals", &path, "--built", "--name", "other"]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let bundle = server.received.lock().unwrap().bundles["other"].clone();
    let digest = blake3::hash(&bundle.0);
    assert_eq!(stdout, format!("other version 1 is in finals; digest {digest}\n"));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr, format!("building {path} with cc -o bot rascal.c\n"));
    assert!(!bundle.1, "the build output stays private");
    assert_eq!(unpacked(&bundle.0), ["bot", "bot.toml", "rascal.c"]);
    let again = run(&server, &["submit", "finals", &path, "--house", "--json"]);
    assert!(again.stderr.is_empty(), "the bundle has no build command");
    let object: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!((&object["bot"], &object["version"]), (&json!("mine"), &json!(1)));
    assert_eq!(object["digest"], json!(digest.to_string()));
    assert_eq!(object["state"], json!("entered"));
    assert!(server.received.lock().unwrap().bundles["mine"].1);
}

/// A step of a trial.
fn step(state: &str, verdict: &str, ahead: i64) -> TrialStatus {
    let version = Version {
        bot: "mine".into(),
        number: 1,
        state: state.into(),
        reason: verdict.into(),
        ..Version::default()
    };
    let figures = r#"{"matches":4,"build_ms":12,"start_us":1500}"#.to_owned();
    let figures = if state == "entered" { figures } else { String::new() };
    let warnings = if state == "entered" { vec!["a \u{1b}warning".into()] } else { Vec::new() };
    TrialStatus {
        version: Some(version),
        tried: true,
        ahead,
        measurements: figures,
        warnings,
        ..TrialStatus::default()
    }
}

#[test]
fn submit_sends_sources_and_waits_for_the_trial() {
    let bots = Bots::new();
    let path = bots.rascal("mine", "honest", 0, "");
    let trials = vec![step("waiting", "", 2), step("trying", "", 0), step("entered", "", 0)];
    let server = Server::start(Script { trials: trials.clone(), ..board() });
    let output = run(&server, &["submit", "finals", &path]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    let expected = "mine version 1: waiting for its trial, 2 trials ahead of it\n\
               mine version 1: trial running\n\
               warning: a \u{fffd}warning\n\
               built in 12 ms; 4 matches; first reply within 1.5 ms\n";
    assert_eq!(stderr, expected);
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("mine version 1 is in finals; "));
    let bundle = server.received.lock().unwrap().bundles["mine"].0.clone();
    assert_eq!(unpacked(&bundle), ["bot.toml", "rascal.c"], "nothing is built here");

    let server = Server::start(Script { trials, ..board() });
    let stdout = succeed(&server, &["submit", "finals", &path, "--no-wait"]);
    assert!(stdout.starts_with("mine version 1: waiting for its trial; digest "), "{stdout}");
    assert_eq!(server.received.lock().unwrap().calls, ["submit"]);

    let evidence = "> A []\n< x\u{1b}y".to_owned();
    let failed = TrialStatus { evidence, ..step("failed", "it forfeits, illegal", 0) };
    let server = Server::start(Script { trials: vec![failed], ..board() });
    let output = run(&server, &["submit", "finals", &path]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    let expected = "> A []\n< x\u{fffd}y\n\
               error: mine version 1: trial failed: it forfeits, illegal; it has not entered\n";
    assert_eq!((output.status.code(), &stderr[..]), (Some(1), expected));
    let aside = step("aside", "", 0);
    let server = Server::start(Script { trials: vec![aside], ..board() });
    let says = ["mine version 1: trial set aside; it has not entered"];
    fails(&run(&server, &["submit", "finals", &path]), 1, &says);
}

#[test]
fn invalid_bots_are_not_submitted() {
    let bots = Bots::new();
    let server = Server::start(board());
    let plain = bots.file("plain", "no program");
    fails(
        &run(&server, &["submit", "finals", &plain]),
        2,
        &["plain", "nor a source file of a known language"],
    );
    fails(&run(&server, &["submit", "finals", "/nowhere"]), 2, &["/nowhere", "No such file"]);
    let path = bots.rascal("mine", "honest", 0, "");
    let named = run(&server, &["submit", "finals", &path, "--name", "a/b/c"]);
    fails(&named, 2, &["a/b/c", "cannot be a bot's name"]);
    assert!(server.received.lock().unwrap().calls.is_empty());
    let refusal = Some((Code::FailedPrecondition, "finals is closed"));
    let closed = Server::start(Script { refusal, ..Script::default() });
    fails(&run(&closed, &["submit", "finals", &path]), 1, &["finals is closed"]);
}

/// A tournament file with house bots at these paths.
fn file(bots: &Bots, house: &[&str]) -> String {
    let text = format!("name = \"finals\"\ngame = \"gomoku\"\n\n[house]\nbots = {house:?}\n");
    bots.file("finals.toml", &text)
}

#[test]
fn a_tournament_is_created_with_its_house_bots() {
    let bots = Bots::new();
    bots.rascal("one", "honest", 0, "");
    bots.rascal("two", "honest", 0, "");
    let file = file(&bots, &["one", "./two"]);
    let server = Server::start(board());
    let stdout = succeed(&server, &["tournament", "create", &file]);
    let hash = "ab".repeat(32);
    let expected = format!("finals: gomoku; seed hash {hash}\nhouse bots: one, two\n");
    assert_eq!(stdout, expected);
    {
        let received = server.received.lock().unwrap();
        assert_eq!(received.calls, ["create", "submit", "submit"]);
        assert!(received.bundles.values().all(|(_, house)| *house));
        assert_eq!(received.file, fs::read_to_string(&file).unwrap());
    }
    let object = &crate::json(&server, &["tournament", "create", &file, "--json"])[0];
    assert_eq!(
        (&object["tournament"], &object["house"]),
        (&json!("finals"), &json!(["one", "two"]))
    );
    assert_eq!(object["warnings"], json!([]));
    // Two bots are too few for a table of four.
    let four = fs::read_to_string(&file).unwrap().replace("gomoku", "wojna");
    let file = bots.file("four.toml", &four);
    let stdout = succeed(&server, &["tournament", "create", &file]);
    let warning = "warning: an edition needs at least 4 bots, and the file has 2; submit others";
    assert!(stdout.contains(warning), "{stdout}");
}

#[test]
fn boards_are_sent_in_the_tournament_file() {
    let bots = Bots::new();
    let (name, drawn) = arbiter_games::bitwa::shipped_boards().next().unwrap();
    bots.file("mine.bit", drawn);
    let text = "name = \"finals\"\ngame = \"bitwa\"\n\n[params]\nboard = \"mine.bit\"\n";
    let file = bots.file("finals.toml", text);
    let server = Server::start(board());
    succeed(&server, &["tournament", "create", &file]);
    let sent = server.received.lock().unwrap().file.clone();
    assert!(!sent.contains("mine.bit"), "{sent}");
    let shipped = text.replace("mine.bit", name);
    let games = Games::built_in();
    assert_eq!(TournamentFile::parse(&games, &sent), TournamentFile::parse(&games, &shipped));
}

#[test]
fn a_tournament_is_not_created_without_its_house_bots() {
    let bots = Bots::new();
    bots.rascal("good", "honest", 0, "");
    let broken = bots.rascal("broken", "honest", 0, "");
    fs::write(format!("{broken}/rascal.c"), "no program").unwrap();
    let server = Server::start(board());
    let refuses = |file: &str, says: &[&str]| {
        let output = run(&server, &["tournament", "create", file]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(says.iter().all(|part| message.contains(part)), "{message}");
    };
    refuses(&file(&bots, &["good", "broken"]), &["broken", "cannot build"]);
    refuses(&file(&bots, &["good", "nobody"]), &["nobody", "No such file"]);
    refuses(&file(&bots, &["good", "./good"]), &["two bots named good"]);
    refuses(&bots.file("bad.toml", "name = \"x\"\ngame = \"chess\"\n"), &["bad.toml", "chess"]);
    refuses(&bots.file("bad.toml", "name = \"x\"\ngame = \n"), &["bad.toml", "line 2"]);
    refuses(&bots.file("bad.toml", "game = \"gomoku\"\n"), &["bad.toml", "name"]);
    refuses("/nowhere.toml", &["/nowhere.toml", "No such file"]);
    assert!(server.received.lock().unwrap().calls.is_empty(), "no tournament was created");
}
