//! What a bot that enters a real tournament hears about the next edition, and that it plays in it,
//! with the real program.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

mod support;

use std::process::Output;

use serde_json::Value;
use support::service::done;
use support::up::Up;

/// A bot of wojna with this name that always passes.
fn wojna_bot(up: &Up, name: &str) -> String {
    let code = "
for line in sys.stdin:
    words = line.split()
    if words:
        print('= pass' if words[0] == 'genmove' else '=', end='\\n\\n', flush=True)
    if words == ['quit']:
        break";
    up.bots.python(name, code)
}

/// Submits a bot as a player does.
fn submit(up: &Up, tournament: &str, path: &str) -> Output {
    let mut command = up.command(&format!("submit {tournament}"));
    command.arg(path).env("ARBITER_TOKEN", up.token("player"));
    command.output().unwrap()
}

/// The lines of a submission on standard error, before and after its trial.
fn notes(output: &Output) -> Vec<String> {
    String::from_utf8(output.stderr.clone()).unwrap().lines().map(str::to_owned).collect()
}

/// A tournament as `show` prints it.
fn shown(up: &Up, tournament: &str) -> Value {
    up.json(&format!("tournament show {tournament}"))[0].clone()
}

#[test]
fn a_fifth_bot_hears_that_more_is_played_than_requested_and_plays() {
    let up = Up::start(2);
    let house = ["ada", "bob", "cyd", "dan"].map(|name| wojna_bot(&up, name));
    up.create(&format!(
        "name = \"cup\"\ngame = \"wojna\"\n[params]\ndeals = 1\n[schedule]\nmeetings = 4\n\
         [submissions]\nwindow = \"0ms\"\n[house]\nbots = {house:?}\n"
    ));
    up.play("cup");
    assert_eq!(up.newest("cup")["matches"], 4);
    let note = "every pair of bots meets 6 times instead of 4, because 5 bots at tables of four cannot \
        all meet exactly 4 times";
    assert_eq!(shown(&up, "cup")["new_bot_outlook"], note);
    for path in ["/t/cup", "/t/cup/submit"] {
        let page = up.get(path);
        assert!(page.contains(&format!("With one more bot: {note}.")), "{path}: {page}");
    }
    let output = submit(&up, "cup", &wojna_bot(&up, "eve"));
    assert!(done(&output).starts_with("player/eve version 1 is in cup"));
    assert_eq!(notes(&output).first().unwrap(), note, "before the trial");
    up.wait_for("cup", 2);
    let edition = up.newest("cup");
    assert_eq!(edition["matches"], 10);
    assert!(edition["plan"].as_str().unwrap().ends_with(note), "{edition}");
    let page = up.get("/t/cup/about");
    assert!(page.contains("<th scope=\"col\">Plan</th>") && page.contains(note), "{page}");
    let certificate = up.succeed("tournament schedule cup --certificate");
    assert!(certificate.lines().next().unwrap().ends_with(note), "{certificate}");
    assert!(certificate.contains("exactly λ = 6"), "{certificate}");
}

#[test]
fn a_bot_without_enough_others_for_a_table_hears_how_many_are_missing() {
    let up = Up::start(1);
    let house = ["ada", "bob"].map(|name| wojna_bot(&up, name));
    up.create(&format!(
        "name = \"cup\"\ngame = \"wojna\"\n[params]\ndeals = 1\n[submissions]\nwindow = \"0ms\"\n\
         [house]\nbots = {house:?}\n"
    ));
    let output = submit(&up, "cup", &wojna_bot(&up, "cyd"));
    assert!(done(&output).starts_with("player/cyd version 1 is in cup"));
    let note = "a table needs 4 bots, and 3 have entered with this one; when 1 more enters, \
        an organiser can start the first edition";
    assert_eq!(notes(&output).first().unwrap(), note);
    let output = submit(&up, "cup", &wojna_bot(&up, "dan"));
    done(&output);
    assert!(!notes(&output).iter().any(|line| line.contains("a table needs")));
    up.play("cup");
    assert_eq!(up.newest("cup")["matches"], 1);
}

/// With an export that everyone can verify.
#[test]
fn each_bot_meets_some_others_from_entry_to_export() {
    let up = Up::start(2);
    let names = ["ada", "bob", "cyd", "dan", "eve", "fay"];
    let house = names.map(|name| up.bots.rascal(name, "honest", 0, ""));
    up.create(&format!(
        "name = \"cup\"\ngame = \"gomoku\"\nstate = \"none\"\n[schedule]\nopponents = 3\n\
         [submissions]\nwindow = \"0ms\"\n[house]\nbots = {house:?}\n"
    ));
    up.play("cup");
    let certify = || up.succeed("tournament schedule cup --certificate");
    let first = certify();
    assert!(first.contains("6 bots, 18 matches of 2"), "{first}");
    assert!(first.contains("every bot meets exactly 3 others"), "{first}");
    let output = submit(&up, "cup", &up.bots.rascal("gil", "honest", 0, ""));
    done(&output);
    let note =
        "every bot meets 4 others instead of 3, because 7 bots cannot all meet exactly 3 others";
    assert_eq!(notes(&output).first().unwrap(), note);
    up.wait_for("cup", 2);
    let second = certify();
    assert!(
        second.starts_with(&format!("edition 2 of cup, {note}\n7 bots, 28 matches")),
        "{second}"
    );
    assert!(second.contains("every bot meets exactly 4 others"), "{second}");
    assert!(second.ends_with("verified: balanced as promised\n"), "{second}");
    let shown = up.succeed("tournament show cup");
    assert!(shown.contains(&format!("edition 2: {note}\n")), "{shown}");
    let matrix = up.get("/t/cup/matrix");
    assert!(names.iter().all(|name| matrix.contains(name)), "pairs that never met are no error");
    up.succeed("tournament close cup");
    let checked = up.succeed("tournament check cup");
    assert!(!checked.contains("not derived"), "{checked}");
    let export = up.directory.path().join("export");
    up.succeed(&format!("tournament export cup --records --out {}", export.display()));
    let verified = support::succeed(&["verify", export.to_str().unwrap()]);
    assert!(verified.contains("28"), "{verified}");
}

/// The panel stays as it is, so only the matches of a newcomer are played, and everyone can verify
/// the export.
#[test]
fn a_gauntlet_waits_for_its_panel_and_plays_only_the_matches_of_a_newcomer() {
    let up = Up::start(2);
    let rascal = |name: &str| up.bots.rascal(name, "honest", 0, "");
    let house = ["bob", "cyd"].map(rascal);
    up.create(&format!(
        "name = \"cup\"\ngame = \"gomoku\"\n[schedule]\nkind = \"gauntlet\"\npanel = [\"player/ada\"]\n\
         [submissions]\nwindow = \"0ms\"\n[house]\nbots = {house:?}\n"
    ));
    let note = "an edition needs a bot of the panel (player/ada), and none has entered yet";
    assert_eq!(shown(&up, "cup")["new_bot_outlook"], note);
    let refused = up.command("tournament start cup").output().unwrap();
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(
        error.contains("no bot of the panel has entered (player/ada); enter one of them"),
        "{error}"
    );
    done(&submit(&up, "cup", &rascal("ada")));
    up.play("cup");
    assert_eq!(up.newest("cup")["matches"], 4);
    let places =
        |edition: u64| -> Vec<Value> { up.json(&format!("ranking cup --edition {edition}")) };
    // Ada entered last.
    let listed = up.succeed("tournament schedule cup");
    assert!(listed.contains("1 3") && !listed.contains("1 2"), "{listed}");
    let newcomer = submit(&up, "cup", &rascal("dan"));
    done(&newcomer);
    assert!(notes(&newcomer).iter().all(|line| !line.contains("panel")));
    up.wait_for("cup", 2);
    assert_eq!(up.newest("cup")["matches"], 6);
    let cost = up.succeed("tournament schedule cup --cost");
    assert!(cost.contains("6 matches") && cost.contains("\n0 to play"), "{cost}");
    let summary = up.newest("cup")["plan"].clone();
    let played = places(2).iter().map(|place| place["matches"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(played, 2 * 6, "{summary}");
    up.succeed("tournament close cup");
    let export = up.directory.path().join("export");
    up.succeed(&format!("tournament export cup --records --out {}", export.display()));
    // The matches of the first edition are those of the second one: two are new.
    let matches = std::fs::read_to_string(export.join("matches.jsonl")).unwrap();
    assert_eq!(matches.lines().count(), 6);
    let verified = support::succeed(&["verify", export.to_str().unwrap()]);
    assert!(verified.contains("matches follow from the published seed"), "{verified}");
}
