//! The form that creates a tournament: fields with the types of a game's parameters, also of a game
//! package that is uploaded or stored.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::TestServer;
use crate::browser::{Browser, Part, csrf, encoded, text};
use crate::support::service::wait_until;
use crate::support::succeed;

/// The value of a hidden field or another input, as it is in the page.
fn field<'a>(page: &'a str, name: &str) -> &'a str {
    let mark = format!("name=\"{name}\" value=\"");
    page.split(&mark)
        .nth(1)
        .unwrap_or_else(|| panic!("no {name}: {page}"))
        .split('"')
        .next()
        .unwrap()
}

/// Sends the form of a page with these fields besides the hidden ones.
fn send(browser: &Browser, page: &str, fields: &str) -> crate::browser::Response {
    let hidden = ["csrf", "game", "package"]
        .map(|name| format!("{name}={}", encoded(&text(field(page, name)))));
    browser.post("/new/game", &format!("{}&{fields}", hidden.join("&")), &[])
}

/// The packed file of a package.
fn packed(server: &TestServer, package: &Path) -> Vec<u8> {
    let packed = server.up.directory.path().join("packed");
    succeed(&["game", "pack", package.to_str().unwrap(), "--out", packed.to_str().unwrap()]);
    fs::read(packed).unwrap()
}

/// The number of files of packages that the coordinator keeps open.
fn open_packages(server: &TestServer) -> usize {
    let folder = format!("/proc/{}/fd", server.up.coordinator().as_raw_nonzero());
    let temporary = fs::canonicalize(std::env::temp_dir()).unwrap();
    let is_package = |path: &PathBuf| {
        let is_deleted = path.to_string_lossy().ends_with(" (deleted)");
        is_deleted && path.parent() == Some(temporary.as_path())
    };
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries.flat_map(|entry| fs::read_link(entry.path())).filter(is_package).count()
}

/// Checks "How to play" of a tournament whose package is missing, as a visitor and as an organiser.
fn check_guide_without_package(server: &TestServer, organiser: &Browser, tournament: &str) {
    let path = format!("/t/{tournament}/how-to-play");
    let guide = server.browser.page(&path);
    assert!(guide.contains("has not sent the game package yet"), "{guide}");
    assert!(!guide.contains("arbiter tournament package"), "only organisers send it");
    let guide = organiser.page(&path);
    assert!(guide.contains(&format!("arbiter tournament package {tournament} DIR")), "{guide}");
    assert_eq!(organiser.get(&format!("/t/{tournament}/package")).status, 404);
}

#[test]
fn a_tournament_of_a_built_in_game_is_created_by_its_form() {
    let server = TestServer::open();
    let mut browser = server.browser.clone();
    assert_eq!(browser.get("/new/game?game=tricks").status, 401);
    browser.log_in(&server.up.token("player --name ada"));
    assert_eq!(browser.get("/new/game?game=tricks").status, 403);
    browser.log_in(&server.up.admin());
    assert!(browser.page("/new").contains("href=\"/new/game?game=tricks\""));
    assert_eq!(browser.get("/new/game?game=nothing").status, 400);
    let page = browser.page("/new/game?game=tricks");
    assert!(
        page.contains("id=\"param-tables\" name=\"param-tables\" value=\"100\" type=\"number\""),
        "{page}"
    );
    let stranger = page.replace(&csrf(&page), &"0".repeat(64));
    assert_eq!(send(&browser, &stranger, "name=new").status, 403);

    // Whatever is wrong, the error names the field, and the form keeps what was typed.
    let more = encoded("[schedule]\r\nlegs = 2\r\n# <b>");
    for (tables, cause) in [("7", "cannot be 7: "), ("many", "cannot be many: ")] {
        let fields = format!("name=new&param-tables={tables}&param-move_limit=3s&more={more}");
        let refused = send(&browser, &page, &fields);
        assert_eq!(refused.status, 400, "{}", refused.body);
        let alert = text(refused.body.split("role=\"alert\"").nth(1).unwrap());
        let names_field = format!("“How many tables are played at once” {cause}");
        assert!(alert.trim_start().starts_with(&names_field), "{alert}");
        assert_eq!(field(&refused.body, "name"), "new");
        assert_eq!(field(&refused.body, "param-tables"), tables);
        assert_eq!(field(&refused.body, "param-move_limit"), "3s");
        assert!(
            refused
                .body
                .replace("\r\n", "\n")
                .contains("\n[schedule]\nlegs = 2\n# &lt;b&gt;</textarea>"),
            "{}",
            refused.body
        );
        assert_eq!(refused.body.matches("aria-invalid=\"true\"").count(), 1);
    }
    let shown = send(&browser, &page, &format!("name=new&param-tables=4&more={more}&show=yes"));
    let file = "\nname = \"new\"\ngame = \"tricks\"\n[schedule]\nlegs = 2\n# &lt;b&gt;\n\n[params]\n\"tables\" = 4\n";
    assert!(shown.body.replace("&quot;", "\"").contains(file), "{}", shown.body);
    let description = encoded("**Prizes**:\r\n\"cups\"");
    let fields =
        format!("name=new&title=Spring+Cup&description={description}&param-tables=4&more={more}");
    let created = send(&browser, &page, &fields);
    assert_eq!((created.status, &created.headers["location"][..]), (303, "/t/new?done=created"));
    assert!(server.browser.page("/t/new").contains("<h1>Spring Cup</h1>"));
    let about = server.browser.page("/t/new/about");
    assert!(about.contains("<strong>Prizes</strong>:\n\"cups\""), "{about}");
    let settings = server.up.json("tournament show new")[0]["settings"].clone();
    assert_eq!(settings["params"]["tables"], json!(4));
    assert_eq!(settings["schedule"]["legs"], json!(2));
    server.up.close();
}

#[test]
fn a_package_that_the_form_has_opened_is_not_sent_again() {
    let server = TestServer::open();
    let mut browser = server.browser.clone();
    browser.log_in(&server.up.admin());
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("games/packages/connect4");
    let packed = packed(&server, &package);
    let hash = csrf(&browser.page("/new"));
    let file = Part::file("package", "connect4-1.tar.zst", &packed);
    let page = browser.upload("/new/package", &[Part::text("csrf", &hash), file], &[]);
    // The name is refused first; the package remains.
    assert_eq!(send(&browser, &page.body, "name=a/b").status, 400);
    wait_until("only the package is open", || open_packages(&server) == 1);
    for name in ["first", "second"] {
        assert_eq!(send(&browser, &page.body, &format!("name={name}")).status, 303);
        assert!(
            !browser.page(&format!("/t/{name}/organise")).contains("The game package is missing.")
        );
        let download = server.browser.download(&format!("/t/{name}/package"));
        assert!(download.bytes == packed, "{name}");
        wait_until("the package is closed", || open_packages(&server) == 0);
    }
    server.up.close();
}

#[test]
fn the_form_of_a_package_with_tables_has_a_field_for_their_size() {
    let server = TestServer::open();
    let mut browser = server.browser.clone();
    browser.log_in(&server.up.admin());
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("games/packages/rps");
    server.up.create(&format!("name = \"first\"\ngame = \"{}\"\n", package.display()));
    let page = browser.page("/new/game?package_of=first");
    assert!(page.contains("name=\"seats\" value=\"8\""), "{page}");
    assert!(page.contains("min=\"2\" max=\"8\""), "{page}");
    for seats in ["9", "many"] {
        let refused = send(&browser, &page, &format!("name=second&seats={seats}"));
        assert_eq!(refused.status, 400, "{}", refused.body);
        assert_eq!(field(&refused.body, "seats"), seats);
    }
    assert_eq!(send(&browser, &page, "name=second&seats=5").status, 303);
    let settings = server.up.json("tournament show second")[0]["settings"].clone();
    assert_eq!(settings["schedule"]["kind"], json!("tables"));
    assert_eq!(settings["schedule"]["seats"], json!(5));
    let too_few = "An edition needs at least 5 bots, and none has entered yet.";
    assert!(browser.page("/t/second/organise").contains(too_few));
    assert!(!server.browser.page("/t/second").contains(too_few), "it is for organisers");
    // The default leaves the schedule to the file.
    let more = encoded("[schedule]\nkind = \"tables\"\nseats = 3\n");
    assert_eq!(send(&browser, &page, &format!("name=third&seats=8&more={more}")).status, 303);
    // Tricks has tables of one size, and the tables of episodes follow from their rules.
    for game in ["tricks", "blackjack"] {
        let page = browser.page(&format!("/new/game?game={game}"));
        assert!(!page.contains("name=\"seats\""), "{game}: {page}");
    }
    server.up.close();
}

/// The form of a package has a field for each parameter, and refuses a wrong value in words.
fn check_parameters(browser: &Browser, page: &str) {
    let columns =
        "name=\"param-columns\" value=\"7\" type=\"number\" step=\"1\" min=\"4\" max=\"20\"";
    assert!(page.contains(columns) && page.contains(">Columns of the board</label>"), "{page}");
    assert!(page.contains(">4 to 20; default 7. In files"), "{page}");
    assert!(page.contains("<select id=\"param-frames\""), "{page}");
    assert!(page.contains(">Record pictures for replays</label>"), "{page}");
    assert!(page.contains("<option value=\"true\" selected>yes</option>"), "{page}");
    let refused = send(browser, page, "name=four&param-columns=21");
    let alert = text(refused.body.split("role=\"alert\"").nth(1).unwrap());
    assert!(
        alert.contains("“Columns of the board” cannot be 21: write a whole number from 4 to 20"),
        "{alert}"
    );
}

#[test]
fn tournaments_of_a_package_are_created_by_its_form_from_a_file_and_from_a_stored_one() {
    let server = TestServer::open();
    let mut browser = server.browser.clone();
    browser.log_in(&server.up.admin());
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("games/packages/connect4");
    let packed = packed(&server, &package);
    let hash = csrf(&browser.page("/new"));
    let upload = |path: &str, bytes: &[u8]| {
        let file = Part::file("package", "connect4-1.tar.zst", bytes);
        browser.upload(path, &[Part::text("csrf", &hash), file], &[])
    };
    for wrong in [&b""[..], b"no archive", &packed[..packed.len() / 2]] {
        let refused = upload("/new/package", wrong);
        assert_eq!(refused.status, 400, "{}", refused.body);
    }
    let page = upload("/new/package", &packed);
    assert_eq!(page.status, 200, "{}", page.body);
    let page = page.body;
    check_parameters(&browser, &page);
    // A server that was started meanwhile does not have the package.
    let page = page.replace(&blake3::hash(&packed).to_string(), &"0".repeat(64));
    let created = send(&browser, &page, "name=four&param-columns=5&param-frames=false");
    assert_eq!(created.status, 303, "{}", created.body);
    let settings = server.up.json("tournament show four")[0]["settings"].clone();
    assert_eq!(settings["params"]["columns"], json!(5));
    assert_eq!(settings["params"]["frames"], json!(false));
    assert_eq!(settings["game"], json!("connect4"));

    assert!(browser.page("/t/four/organise").contains("The game package is missing."));
    check_guide_without_package(&server, &browser, "four");
    let center = package.join("bots/center");
    let submit = format!("submit four {} --name early", center.display());
    let early = server.up.command(&submit).output().unwrap();
    let message = String::from_utf8(early.stderr).unwrap();
    let remedy = "the game package of four is missing; an organiser sends it with arbiter \
                  tournament package four DIR";
    assert!(!early.status.success() && message.contains(remedy), "{message}");
    assert!(server.up.json("bots four").is_empty(), "nothing is stored");
    assert_eq!(browser.post("/t/four/start", &format!("csrf={hash}"), &[]).status, 409);
    assert_eq!(upload("/t/four/package", b"no archive").status, 400);
    assert_eq!(upload("/t/cup/package", &packed).status, 409, "its game is built in");
    assert_eq!(upload("/t/four/package", &packed).status, 303);
    assert!(!browser.page("/t/four/organise").contains("The game package is missing."));
    let shown = succeed(&["game", "show", package.to_str().unwrap(), "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(settings["package"]["digest"], shown["digest"]);
    for bot in ["center", "blocker"] {
        let path = package.join("bots").join(bot);
        server.up.succeed(&format!("submit four {} --house", path.display()));
    }
    server.up.play("four");
    let bots = server.up.json("ranking four").into_iter().filter(|line| line["bot"].is_string());
    assert_eq!(bots.count(), 2);

    // A stored package needs no upload.
    assert!(browser.page("/new").contains("href=\"/new/game?package_of=four\""));
    let page = browser.page("/new/game?package_of=four");
    assert_eq!(send(&browser, &page, "name=again").status, 303);
    assert!(!browser.page("/t/again/organise").contains("The game package is missing."));
    assert_eq!(server.browser.download("/t/again/package").bytes, packed);
    server.up.close();
}
