//! Edits of tournaments and announcements, by command and in a browser.

use serde_json::{Value, json};

use crate::TestServer;
use crate::browser::{Browser, csrf, encoded, rows, text};
use crate::support::service::done;
use crate::support::up::Up;

/// Runs a command that must fail, and returns its message.
fn failure(up: &Up, words: &str) -> String {
    let output = up.command(words).output().unwrap();
    assert!(!output.status.success(), "{words}");
    String::from_utf8(output.stderr).unwrap()
}

fn shown(up: &Up) -> Value {
    up.json("tournament show cup").remove(0)
}

/// The newest change in the audit log.
fn newest_change(up: &Up) -> Value {
    up.json("audit").into_iter().max_by_key(|line| line["id"].as_i64()).unwrap()
}

#[test]
fn a_command_previews_and_applies_an_edit_and_the_audit_log_has_both_values() {
    let server = TestServer::open();
    let up = &server.up;
    let edit = |more: &[&str]| {
        let mut command = up.command("tournament edit cup --set title=Spring");
        done(&command.args(["replays=after_close"]).args(more).output().unwrap())
    };
    let preview = edit(&["--dry-run"]);
    for part in [
        "title: none → \"Spring\"",
        "public.replays: \"always\" → \"after_close\"",
        "everyone sees the replays when the tournament is over",
        "nothing changed yet",
    ] {
        assert!(preview.contains(part), "{part}: {preview}");
    }
    assert_eq!(shown(up)["title"], Value::Null);
    assert!(edit(&[]).ends_with("changed\n"));
    let tournament = shown(up);
    assert_eq!(
        (&tournament["title"], &tournament["replays"]),
        (&json!("Spring"), &json!("after_close"))
    );
    let change = newest_change(up);
    assert_eq!(change["action"], "tournament edit");
    assert_eq!(
        change["detail"]["before"],
        json!({"public.replays": "always", "title": null}),
        "{change}"
    );
    assert_eq!(
        change["detail"]["after"],
        json!({"public.replays": "after_close", "title": "Spring"})
    );
    assert!(edit(&[]).contains("nothing differs"));

    // What decides matches is fixed once an edition was opened.
    up.succeed("tournament edit cup --set limits.cpus=2");
    up.play("cup");
    let error = failure(up, "tournament edit cup --set limits.cpus=3");
    assert!(error.contains("because editions share matches"), "{error}");
    let error = failure(up, "tournament edit cup --set schedule.legs=2");
    assert!(error.contains("[schedule] legs = 2: it cannot change"), "{error}");
    let file =
        up.bots.file("edited.toml", "name = \"cup\"\ngame = \"gomoku\"\n\n[limits]\ncpus = 4\n");
    let output = up.command("tournament edit cup --file").arg(&file).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("edited.toml: ") && error.contains("it cannot change"), "{error}");
    up.succeed("tournament close cup");
    assert!(failure(up, "tournament edit cup --set title=x").contains("was closed"));
    server.up.close();
}

#[test]
fn entry_opens_again_for_players_when_it_closes_later() {
    let server = TestServer::open_with("submissions.closes = \"2020-01-01T00:00:00Z\"\n");
    let up = &server.up;
    let entry = |up: &Up| shown(up)["entry"].clone();
    assert_eq!(entry(up)["open"], false);
    let words = entry(up)["text"].as_str().unwrap().to_owned();
    assert!(words.contains("entry to cup closed at 2020-01-01 00:00:00 UTC"), "{words}");
    let player = up.token("player");
    let bot = up.bots.built_rascal("late", "honest", 0, "");
    let submit =
        || up.command("submit cup").arg(&bot).env("ARBITER_TOKEN", &player).output().unwrap();
    let refused = String::from_utf8(submit().stderr).unwrap();
    assert!(refused.contains(&words), "in the same words: {refused}");
    let past = failure(up, "tournament edit cup --set closes=2021-01-01T00:00:00Z");
    assert!(past.contains("this time is past"), "{past}");
    let edited = up.succeed("tournament edit cup --set closes=2099-01-01T00:00:00Z");
    assert!(edited.contains("entry opens again until 2099-01-01T00:00:00Z"), "{edited}");
    assert_eq!(entry(up)["open"], true);
    done(&submit());
    server.up.close();
}

/// The fields of the form with these changes.
fn form(page: &str, changes: &[(&str, &str)]) -> String {
    let revision = page.split("name=\"revision\" value=\"").nth(1).unwrap()[..64].to_owned();
    let csrf = csrf(page);
    let fields = changes.iter().map(|(key, value)| format!("&{key}={}", encoded(value)));
    format!("csrf={csrf}&revision={revision}{}", fields.collect::<String>())
}

fn organiser(server: &TestServer) -> Browser {
    let mut browser = server.browser.clone();
    browser.log_in(&server.up.admin());
    browser
}

#[test]
fn a_form_previews_and_applies_an_edit() {
    let server = TestServer::open();
    let mut player = server.browser.clone();
    player.log_in(&server.up.token("player"));
    assert_eq!(player.get("/t/cup/edit").status, 403, "a player is not an organiser");
    let browser = organiser(&server);
    let page = browser.page("/t/cup/edit");
    let changes = [
        ("title", "Spring <b>Cup</b>"),
        ("description", "# Prizes\r\n[more](https://example.org) <script>"),
        ("submissions.closes", "2099-01-01T12:00"),
        ("submissions.per_hour", "7"),
        ("submissions.stand_down_percent", "20 %"),
        ("limits.memory", "500MB"),
    ];
    assert!(page.contains("name=\"submissions.stand_down_percent\" value=\"100%\""), "{page}");
    let filled = form(&page, &changes);
    let preview = browser.post("/t/cup/edit", &filled, &[]);
    assert_eq!(preview.status, 200, "{}", preview.body);
    let keys: Vec<_> =
        rows(&preview.body, "settings").into_iter().map(|row| row[0].clone()).collect();
    let expected = [
        "Description",
        "Memory",
        "Entry closes (UTC)",
        "Versions per hour",
        "Suspend above (share of forfeits)",
        "Title",
    ];
    assert_eq!(keys, expected);
    assert!(preview.body.contains("Apply changes"));
    assert_eq!(shown(&server.up)["title"], Value::Null);
    let applied = browser.post("/t/cup/edit", &format!("{filled}&apply=yes"), &[]);
    assert_eq!(applied.status, 303, "{}", applied.body);
    let tournament = shown(&server.up);
    assert_eq!(tournament["title"], "Spring <b>Cup</b>");
    assert_eq!(tournament["entry"]["closes_at"], "2099-01-01T12:00:00.000000Z");
    assert_eq!(tournament["settings"]["submissions"]["per_hour"], 7);
    assert_eq!(tournament["settings"]["submissions"]["stand_down_percent"], 20);
    assert_eq!(tournament["settings"]["limits"]["memory"], "500 MB");
    let about = browser.page("/t/cup/about");
    assert!(about.contains("rel=\"nofollow noopener\"") && !about.contains("<script>"), "{about}");

    let wrong = form(&browser.page("/t/cup/edit"), &[("submissions.freeze", "noon")]);
    let refused = browser.post("/t/cup/edit", &wrong, &[]);
    assert_eq!(refused.status, 400);
    assert!(text(&refused.body).contains("write a date and a time"), "{}", refused.body);
    assert!(refused.body.contains("value=\"noon\""), "what was filled in stays");
    server.up.close();
}

#[test]
fn titles_are_text_and_forms_keep_their_marks_of_direction() {
    let server = TestServer::open();
    let title = "שלום\u{200f}!";
    let description = "a \u{2067}שלום & <b>\u{2069} b";
    let texts = [format!("title={title}"), format!("description={description}")];
    done(&server.up.command("tournament edit cup --set").args(texts).output().unwrap());
    let browser = organiser(&server);
    let page = browser.page("/t/cup/edit");
    assert!(page.contains("name=\"title\" value=\"שלום&#x200f;!\""), "{page}");
    let area = page.split("name=\"description\"").nth(1).unwrap().split_once(">\n").unwrap().1;
    let expected = "a &#x2067;שלום &amp; &lt;b&gt;&#x2069; b";
    assert_eq!(area.split("</textarea>").next(), Some(expected));
    let fields = [("title", title), ("description", description), ("submissions.per_hour", "7")];
    let preview = browser.post("/t/cup/edit", &form(&page, &fields), &[]);
    let keys: Vec<_> =
        rows(&preview.body, "settings").into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(keys, ["Versions per hour"], "{}", preview.body);
    let hidden = "type=\"hidden\" name=\"title\" value=\"שלום&#x200f;!\"";
    assert!(preview.body.contains(hidden), "{}", preview.body);
    // Pages still show that there is a mark.
    assert!(browser.page("/t/cup").contains("שלום\u{fffd}!"));
    server.up.succeed("tournament edit cup --set title=<i>cup</i>");
    for path in
        ["/", "/t/cup", "/t/cup/about", "/t/cup/edit", "/t/cup/organise", "/t/cup/projector"]
    {
        let page = browser.page(path);
        assert!(page.contains("&lt;i&gt;cup") && !page.contains("<i>cup"), "{path}: {page}");
    }
    server.up.close();
}

/// Budgets are parameters of the game.
#[test]
fn parameters_change_until_the_first_edition_is_opened() {
    let server = TestServer::open();
    let up = &server.up;
    let limit = |up: &Up| shown(up)["settings"]["params"]["move_limit"].clone();
    let preview = up.succeed("tournament edit cup --set params.move_limit=700ms --dry-run");
    let change = "params.move_limit: \"500ms\" → \"700ms\"";
    assert!(preview.contains(change), "{preview}");
    assert!(preview.contains("applies from edition 1 on"), "{preview}");
    assert_eq!(limit(up), "500ms");
    // A key needs its section only if several sections have it.
    up.succeed("tournament edit cup --set move_limit=700ms first_number=1");
    assert_eq!(limit(up), "700ms");
    assert_eq!(newest_change(up)["detail"]["before"]["params.move_limit"], "500ms");
    let error = failure(up, "tournament edit cup --set move_limit=never");
    assert!(error.contains("[params] move_limit = \"never\""), "{error}");
    up.succeed("tournament edit cup --set first_number=");
    assert_eq!(shown(up)["settings"]["params"]["first_number"], 0);

    // The form has a field for each parameter.
    let browser = organiser(&server);
    let page = browser.page("/t/cup/edit");
    assert!(page.contains("name=\"param-move_limit\" value=\"700ms\""), "{page}");
    let filled = form(&page, &[("param-move_limit", "800ms"), ("param-overline", "ignored")]);
    let preview = browser.post("/t/cup/edit", &filled, &[]);
    let keys: Vec<_> =
        rows(&preview.body, "settings").into_iter().map(|row| row[0].clone()).collect();
    let overline = "Rows of more than five";
    assert_eq!(keys, ["The time for a reply", overline], "{}", preview.body);
    assert!(preview.body.contains("name=\"param-move_limit\" value=\"800ms\""));
    assert_eq!(limit(up), "700ms");
    // An error names the field.
    let wrong = form(&page, &[("param-move_limit", "never")]);
    let refused = browser.post("/t/cup/edit", &wrong, &[]);
    let alert = text(refused.body.split("role=\"alert\"").nth(1).unwrap());
    let is_in_words = alert.contains("“The time for a reply” ") && !alert.contains("[params]");
    assert!(refused.status == 400 && is_in_words, "{alert}");
    let applied = browser.post("/t/cup/edit", &format!("{filled}&apply=yes"), &[]);
    assert_eq!(applied.status, 303, "{}", applied.body);
    assert_eq!(limit(up), "800ms");
    assert_eq!(shown(up)["settings"]["params"]["overline"], "ignored");

    up.play("cup");
    let played = &up.json("match cup/0")[0];
    assert_eq!(played["state"], "counted", "{played}");
    let error = failure(up, "tournament edit cup --set move_limit=1s");
    assert!(error.contains("because editions share matches"), "{error}");
    let page = browser.page("/t/cup/edit");
    assert!(!page.contains("param-move_limit"), "{page}");
    assert!(page.contains("Parameters, clock, limits, the files that bots leave and what bots do"));
    server.up.close();
}

/// A parameter of wojna is called `clock`, like the section.
#[test]
fn the_clock_of_a_wojna_tournament_changes_by_command_and_in_a_form() {
    let server = TestServer::open();
    let up = &server.up;
    up.create("name = \"war\"\ngame = \"wojna\"\n");
    let clock =
        |key: &str| up.json("tournament show war").remove(0)["settings"]["clock"][key].clone();
    up.succeed("tournament edit war --set clock.kind=cpu clock.margin=30ms");
    assert_eq!((clock("kind"), clock("margin")), (json!("cpu"), json!("30ms")));
    let error = failure(up, "tournament edit war --set kind=wall");
    assert!(error.contains("write clock.kind or schedule.kind"), "{error}");
    let other_game = failure(up, "tournament edit war --set game=bitwa");
    assert!(other_game.contains("game = \"bitwa\": it cannot change"), "{other_game}");
    let browser = organiser(&server);
    for (key, value) in [("clock.kind", "wall"), ("clock.margin", "40ms")] {
        let filled = form(&browser.page("/t/war/edit"), &[(key, value)]);
        let applied = browser.post("/t/war/edit", &format!("{filled}&apply=yes"), &[]);
        assert_eq!(applied.status, 303, "{key}: {}", applied.body);
    }
    assert_eq!((clock("kind"), clock("margin")), (json!("wall"), json!("40ms")));
    server.up.close();
}

#[test]
fn a_change_of_another_organiser_is_not_lost() {
    let server = TestServer::open();
    let browser = organiser(&server);
    let page = browser.page("/t/cup/edit");
    server.up.succeed("tournament edit cup --set title=First");
    let second = form(&page, &[("title", "Second"), ("apply", "yes")]);
    let refused = browser.post("/t/cup/edit", &second, &[]);
    assert_ne!(refused.status, 303);
    assert!(refused.body.contains("was changed meanwhile"), "{}", refused.body);
    assert_eq!(shown(&server.up)["title"], "First");
    server.up.close();
}

#[test]
fn announcements_are_public_until_they_are_removed() {
    let server = TestServer::open();
    let up = &server.up;
    let posted =
        done(&up.command("tournament announce cup").arg("Rules **changed**").output().unwrap());
    assert_eq!(posted, "announcement 1 of cup is posted\n");
    let browser = organiser(&server);
    let page = browser.page("/t/cup/organise");
    let form = format!("csrf={}&text={}", csrf(&page), encoded("Second <script>x</script>"));
    assert_eq!(browser.post("/t/cup/announcements", &form, &[]).status, 303);
    assert_eq!(server.browser.post("/t/cup/announcements", &form, &[]).status, 403);
    let listed = shown(up)["announcements"].clone();
    assert_eq!((&listed[0]["number"], &listed[1]["number"]), (&json!(2), &json!(1)));
    let api = server.browser.get("/api/v1/tournaments/cup").body;
    let api: Value = serde_json::from_str(&api).unwrap();
    assert_eq!(api["announcements"], listed);
    let page = browser.page("/t/cup/organise");
    assert!(page.contains("<strong>changed</strong>") && !page.contains("<script>x"), "{page}");
    let remove = format!("csrf={}", csrf(&page));
    assert_eq!(browser.post("/t/cup/announcements/2/remove", &remove, &[]).status, 303);
    up.succeed("tournament announce cup --remove 1");
    assert_eq!(shown(up)["announcements"], json!([]));
    let missing = failure(up, "tournament announce cup --remove 1");
    assert!(missing.contains("tournament cup has no announcement 1"), "{missing}");
    let actions: Vec<_> = up.json("audit").into_iter().map(|line| line["action"].clone()).collect();
    assert!(actions.contains(&json!("announce")) && actions.contains(&json!("announce remove")));
    let long = "x".repeat(2001);
    let hash = csrf(&page);
    let sent = format!("csrf={hash}&text={long}");
    let refused = browser.post("/t/cup/announcements", &sent, &[]);
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("write at most 2000."), "{}", refused.body);
    assert!(refused.body.contains(&long), "the form keeps the text: {}", refused.body);
    let link = encoded("Read the [rules](/t/cup/how-to-play), not [these](//evil.example).");
    let sent = format!("csrf={hash}&text={link}");
    assert_eq!(browser.post("/t/cup/announcements", &sent, &[]).status, 303);
    let front = browser.page("/t/cup");
    assert!(front.contains("<a href=\"/t/cup/how-to-play\">rules</a>"), "{front}");
    assert!(!front.contains("evil.example"), "{front}");
    let output = up.command("tournament announce cup").arg(long).output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("write at most 2000"));
    server.up.close();
}

#[test]
fn a_printed_file_creates_a_tournament_of_each_game() {
    let server = TestServer::open();
    let up = &server.up;
    let packages = concat!(env!("CARGO_MANIFEST_DIR"), "/games/packages");
    let connect4 = format!("{packages}/connect4");
    for game in ["wojna", "bitwa", "tricks", "blackjack", "gomoku", &connect4] {
        let file = up.succeed(&format!("tournament init {game}"));
        up.create(&file);
        let name = format!("{}-cup", game.rsplit('/').next().unwrap());
        let tournament = up.json(&format!("tournament show {name}")).remove(0);
        let short = format!("name = \"{name}-short\"\ngame = \"{game}\"\n");
        up.create(&short);
        let mut plain = up.json(&format!("tournament show {name}-short")).remove(0);
        plain["settings"]["name"] = json!(name);
        assert_eq!(tournament["settings"], plain["settings"], "{game}");
        assert_eq!(tournament["replays"], plain["replays"]);
    }
    assert!(failure(up, "tournament init chequers").contains("chequers"));
    server.up.close();
}

#[test]
fn the_first_page_shows_the_description_until_there_is_a_leaderboard() {
    let server = TestServer::open_with("rerun = \"manual\"\ndescription = \"**Cups** for all\"\n");
    let browser = &server.browser;
    let description = "<strong>Cups</strong> for all";
    let page = browser.page("/t/cup");
    let shown = page.find(description).unwrap_or_else(|| panic!("no description: {page}"));
    assert!(page.find("No leaderboard yet") > Some(shown), "{page}");
    assert!(page.find("Entry is open.") > Some(shown), "{page}");
    server.up.play("cup");
    assert!(!browser.page("/t/cup").contains(description), "the leaderboard leads");
    assert!(browser.page("/t/cup/about").contains(description));
    server.up.close();
}
