//! Names of bots that are their owners' own: players may use the same names.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

use crate::TestServer;
use crate::browser::{Browser, Part, csrf, rows, text};
use crate::support::service::{done, wait_until};
use crate::support::{Bots, arbiter};

/// A tournament with bots of two players: both have a `mybot`, and bob has a `robot`.
struct Named {
    server: TestServer,
    ada: String,
    bob: String,
    bots: Bots,
}

impl Named {
    fn open() -> Self {
        let server = TestServer::open_with("submissions.preflight = false\nrerun = \"manual\"\n");
        let ada = server.up.token("player --name Ada");
        let bob = server.up.token("player --name bob");
        let named = Self { server, ada, bob, bots: Bots::new() };
        let mybot = named.bots.rascal("mybot", "honest", 0, "");
        let robot = named.bots.rascal("robot", "honest", 0, "");
        let entered = |token: &str, path: &str, says: &str| {
            let printed = done(&named.call(token, "submit cup", &[path]));
            assert!(printed.starts_with(says), "{printed}");
        };
        entered(&named.ada, &mybot, "ada/mybot version 1 is in cup");
        entered(&named.bob, &mybot, "bob/mybot version 1 is in cup");
        entered(&named.bob, &robot, "bob/robot version 1 is in cup");
        // The same bundle again is no new version.
        entered(&named.ada, &mybot, "ada/mybot version 1 is in cup");
        named
    }

    fn command(&self, token: &str, words: &str) -> Command {
        let mut command = self.server.up.command(words);
        command.env("ARBITER_TOKEN", token);
        command
    }

    fn call(&self, token: &str, words: &str, more: &[&str]) -> Output {
        self.command(token, words).args(more).output().unwrap()
    }

    /// Expects exit code `code` and a message that contains `says`.
    fn refused(output: &Output, code: i32, says: &str) {
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{message}");
        assert!(message.contains(says), "{message}");
    }
}

/// The second cells of the rows of a table: the names of bots.
fn names(page: &str, table: &str) -> Vec<String> {
    let mut names: Vec<_> = rows(page, table).into_iter().map(|row| row[1].clone()).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_bot_is_shown_by_its_short_name_unless_players_share_it() {
    let named = Named::open();
    let Named { server, .. } = &named;
    server.up.play("cup");
    let mut bots: Vec<_> =
        server.up.json("ranking cup").iter().map(|row| row["bot"].to_string()).collect();
    bots.sort_unstable();
    let whole = ["ada", "ada/mybot", "bob", "bob/mybot", "bob/robot", "eve"];
    assert_eq!(bots, whole.map(|name| format!("\"{name}\"")));

    let browser = &server.browser;
    let board = names(&browser.page("/t/cup"), "ranking");
    // The owner stands beside the name, unless the name has it.
    let shown =
        ["ada house bot", "ada/mybot", "bob house bot", "bob/mybot", "eve house bot", "robot bob"];
    assert_eq!(board, shown);
    let page = browser.page("/t/cup/bots/bob/robot");
    assert!(page.contains("<h1>robot</h1>") && page.contains("Owner: bob"), "{page}");
    let page = text(&browser.page("/t/cup/matches?bot=robot&opponent=ada/mybot"));
    assert!(page.contains("robot") && page.contains("ada/mybot"), "{page}");

    // A later bot with its name takes the short name away.
    done(&named.call(
        &named.ada,
        "submit cup --name robot",
        &[&named.bots.path().join("robot").to_string_lossy()],
    ));
    wait_until("pages show the owner", || {
        names(&browser.page("/t/cup"), "ranking").iter().any(|name| name.starts_with("bob/robot"))
    });
    named.server.up.close();
}

#[test]
fn a_bot_is_found_by_its_whole_name_or_by_a_short_name_that_is_clear() {
    let named = Named::open();
    let Named { server, ada, bob, .. } = &named;
    let browser = &server.browser;
    for path in ["bob/robot", "bob%2Frobot", "robot", "bob/robot/versions/1"] {
        let page = browser.page(&format!("/t/cup/bots/{path}"));
        assert!(page.contains("href=\"/t/cup/bots/bob/robot"), "{path}: {page}");
        let api = browser.page("/api/v1/tournaments/cup/bots/bob/robot");
        assert!(api.contains("\"bob/robot\""), "{api}");
    }
    let unclear = browser.get("/t/cup/bots/mybot");
    assert_eq!(unclear.status, 400);
    let says = "bots are named mybot; add the owner: ada/mybot, bob/mybot";
    assert!(text(&unclear.body).contains(says), "{}", unclear.body);
    assert_eq!(browser.get("/t/cup/bots/ada/robot").status, 404);
    Named::refused(&named.call(&server.up.admin(), "log cup mybot", &[]), 2, says);

    // A player's own bot comes first.
    done(&named.call(ada, "log cup mybot", &[]));
    done(&named.call(bob, "log cup bob/mybot", &[]));
    Named::refused(&named.call(bob, "log cup ada/mybot", &[]), 3, "belongs to another player");
    done(&named.call(bob, "bots cup --withdraw mybot", &[]));
    let withdrawn: Vec<_> = server
        .up
        .json("bots cup")
        .into_iter()
        .filter(|bot| bot["withdrawn"] == true)
        .map(|bot| bot["bot"].clone())
        .collect();
    assert_eq!(withdrawn, ["bob/mybot"]);
    named.server.up.close();
}

#[test]
fn a_player_takes_no_name_of_another_and_no_word_of_an_address() {
    let named = Named::open();
    let Named { ada, bots, server, .. } = &named;
    let mybot = bots.path().join("mybot").to_string_lossy().into_owned();
    let submit = |name: &str| named.call(ada, "submit cup --name", &[name, &mybot]);
    Named::refused(&submit("bob/mybot"), 3, "your bots are named ada/…");
    Named::refused(&submit("versions"), 2, "addresses use the word `versions`");
    Named::refused(&submit("a/b/c"), 2, "cannot be a bot's name");
    let long = "x".repeat(61);
    Named::refused(&submit(&long), 2, "is longer than 64 characters; shorten");
    done(&submit(&long[1..]));
    // An empty name is no bot's name.
    Named::refused(&named.call(&server.up.admin(), "bots cup --withdraw", &[""]), 2, "no bot");
    done(&submit("ada/second"));
    // A house bot has the name `eve`, and a player may use it all the same.
    let printed = done(&submit("eve"));
    assert!(printed.starts_with("ada/eve version 1"), "{printed}");

    // In matches a dot stands for the slash, and names differ there too.
    let house = bots.rascal("ada.mybot", "honest", 0, "");
    let output = server.up.command("submit cup --house").arg(&house).output().unwrap();
    Named::refused(&output, 2, "the same name as ada/mybot");
    named.server.up.close();
}

#[test]
fn the_form_updates_a_bot_by_the_name_that_its_page_gives() {
    let named = Named::open();
    let Named { ada, server, .. } = &named;
    let mut browser: Browser = server.browser.clone();
    browser.log_in(ada);
    let form = browser.page("/t/cup/submit?bot=ada/mybot");
    assert!(form.contains("value=\"ada/mybot\""), "{form}");
    let source = fs::read("bots/rascal/rascal.c").unwrap();
    for (bot, version) in [("ada/mybot", 2), ("mybot", 2)] {
        let parts = [
            Part::text("csrf", &csrf(&form)),
            Part::text("bot", bot),
            Part::file("bundle", "rascal.c", &source),
        ];
        let response = browser.upload("/t/cup/submit", &parts, &[]);
        let address = format!("/t/cup/bots/ada/mybot/versions/{version}?done=submit");
        assert_eq!(response.headers.get("location"), Some(&address), "{}", response.body);
    }
    named.server.up.close();
}

#[test]
fn names_of_players_stay_in_records_and_exports_that_verify() {
    let named = Named::open();
    let Named { server, bots, .. } = &named;
    server.up.play("cup");
    let path = "/api/v1/tournaments/cup/matches?bot=robot&opponent=ada/mybot";
    let listed: Value = serde_json::from_str(&server.browser.page(path)).unwrap();
    let id = listed["items"][0]["match"].as_str().unwrap().to_owned();
    let record = server.up.succeed(&format!("match {id} --record -"));
    let header: Value = serde_json::from_str(record.lines().next().unwrap()).unwrap();
    let mut seats: Vec<_> =
        header["seats"].as_array().unwrap().iter().map(|seat| seat["bot"].to_string()).collect();
    seats.sort_unstable();
    assert_eq!(seats, ["\"ada.mybot\"", "\"bob.robot\""]);
    let page = text(&server.browser.page(&format!("/t/{}", id.replace('/', "/matches/"))));
    for bot in ["robot", "ada/mybot"] {
        let shown = [1, 2].map(|seat| format!("{seat}\u{a0}{bot}"));
        assert!(shown.iter().any(|seat| page.contains(seat)), "the replay: {page}");
    }
    assert!(!page.contains("bob.robot") && !page.contains("ada.mybot"), "{page}");

    let out = bots.path().join("export");
    let out = out.to_str().unwrap();
    server.up.succeed("tournament close cup");
    server.up.succeed(&format!("tournament export cup --records --out {out}"));
    done(&arbiter().args(["verify", out]).output().unwrap());
    let site = bots.path().join("site");
    server.up.succeed(&format!("tournament export cup --site {}", site.display()));
    let index = fs::read_to_string(site.join("index.html")).unwrap();
    assert!(index.contains("robot (bob)") && index.contains(">ada/mybot<"), "{index}");
    named.server.up.close();
}

#[test]
fn a_directory_is_kept_in_step_with_a_players_bots() {
    let named = Named::open();
    let Named { ada, .. } = &named;
    let folder = Bots::new();
    folder.rascal("mybot", "honest", 0, "");
    folder.rascal("extra", "honest", 0, "");
    let sync = || done(&named.call(ada, "sync cup --json", &[&folder.path().to_string_lossy()]));
    let first = sync();
    assert!(first.contains("\"ada/extra\"") && !first.contains("mybot"), "{first}");
    fs::remove_dir_all(folder.path().join("extra")).unwrap();
    let second = sync();
    assert!(second.contains("\"ada/extra\"") && second.contains("withdrawn"), "{second}");
    let mut player: Browser = named.server.browser.clone();
    player.log_in(ada);
    assert!(text(&player.page("/me")).contains("ada/mybot"));
    named.server.up.close();
}

#[test]
fn a_failed_trial_reserves_no_short_name() {
    let server = TestServer::open();
    let [ada, bob] = ["ada", "bob"].map(|name| server.up.token(&format!("player --name {name}")));
    let folders = [Bots::new(), Bots::new()];
    let failing = folders[0].rascal("nf", "segv", 2, "");
    let honest = folders[1].rascal("nf", "honest", 0, "");
    let call = |token: &str, words: &str, more: &[&str]| {
        let mut command = server.up.command(words);
        command.env("ARBITER_TOKEN", token).args(more).output().unwrap()
    };
    let browser = &server.browser;
    Named::refused(&call(&ada, "submit cup", &[&failing]), 1, "ada/nf version 1: trial failed");
    let only = browser.page("/t/cup/bots/nf");
    assert!(only.contains("href=\"/t/cup/bots/ada/nf"), "no other bot has the name: {only}");
    let printed = done(&call(&bob, "submit cup", &[&honest]));
    assert!(printed.contains("bob/nf version 1"), "{printed}");
    server.up.play("cup");

    wait_until("pages show the short name", || {
        names(&browser.page("/t/cup"), "ranking").iter().any(|name| name == "nf bob")
    });
    for (path, heading, link) in [("nf", "nf", "bob/nf"), ("ada/nf", "ada/nf", "ada/nf")] {
        let page = browser.page(&format!("/t/cup/bots/{path}"));
        assert!(page.contains(&format!("<h1>{heading}</h1>")), "{path}: {page}");
        assert!(page.contains(&format!("href=\"/t/cup/bots/{link}/versions/1")), "{path}: {page}");
    }
    assert_eq!(browser.get("/t/cup/matches?bot=nf").status, 200);

    // An organiser means the bot that entered, and an owner the own one.
    let admin = server.up.admin();
    done(&call(&admin, "log cup nf", &[]));
    let withdrawn = |token: &str| {
        done(&call(token, "bots cup --withdraw nf", &[]));
        let bots = server.up.json("bots cup").into_iter().filter(|bot| bot["withdrawn"] == true);
        let mut names: Vec<_> = bots.map(|bot| bot["bot"].as_str().unwrap().to_owned()).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(withdrawn(&ada), ["ada/nf"]);
    assert_eq!(withdrawn(&admin), ["ada/nf", "bob/nf"]);
    server.up.close();
}
