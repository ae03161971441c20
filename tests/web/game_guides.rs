//! "How to play": the text about the game, starter kits that pass their trials, and the file of a
//! game package. Texts of packages are hostile.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::TestServer;
use crate::browser::text;
use crate::support::service::wait_until;
use crate::support::{json as printed, succeed};

/// A copy of the package connect4 in this folder, with this text for authors of bots.
fn package(folder: &Path, bot_md: &[u8]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("games/packages/connect4");
    let copy = folder.join("package");
    fs::create_dir_all(&copy).unwrap();
    for name in ["game.toml", "rules.py", "drawing.py"] {
        fs::copy(source.join(name), copy.join(name)).unwrap();
    }
    fs::write(copy.join("BOT.md"), bot_md).unwrap();
    copy
}

/// Creates a tournament of a package.
fn create(server: &TestServer, name: &str, package: &Path) {
    server.up.create(&format!("name = \"{name}\"\ngame = \"{}\"\n", package.display()));
}

/// Downloads the starter kit in Python and runs its trial.
fn preflight(server: &TestServer, tournament: &str, game: &str) {
    let download = server.browser.download(&format!("/t/{tournament}/how-to-play/python"));
    let disposition = &download.headers["content-disposition"];
    let name = disposition.split('"').nth(1).unwrap();
    let kit = server.up.directory.path().join(name);
    fs::write(&kit, &download.bytes).unwrap();
    let kit = kit.to_str().unwrap();
    let trial = printed(&["preflight", game, kit, "--sandbox", "off"]).remove(0);
    assert_eq!(trial["passed"], json!(true), "{trial}");
}

#[test]
fn the_page_of_a_built_in_game_has_its_text_and_a_starter_kit() {
    let server = TestServer::open();
    let tournament = server.browser.page("/t/cup");
    assert!(tournament.contains("href=\"/t/cup/how-to-play\""), "{tournament}");
    let api = server.browser.page("/api/v1/tournaments/cup");
    assert!(api.contains("\"how_to_play\":\"/t/cup/how-to-play\""), "{api}");
    let page = server.browser.page("/t/cup/how-to-play");
    assert!(page.contains("<h3 id=\"guide-a-complete-bot\">A complete bot</h3>"), "{page}");
    assert!(page.contains("squares = [(x, y) for x in range(15)"), "{page}");
    assert!(page.contains("<td>choose your colour</td>"), "{page}");
    assert!(page.contains("href=\"/t/cup/how-to-play/c\""), "{page}");
    let conditions = text(&page);
    for part in [
        "Conditions in this tournament",
        "A reply is one line.",
        "400\u{a0}MB of memory, 1 processor,",
        "no network",
    ] {
        assert!(conditions.contains(part), "{part}: {conditions}");
    }
    let about = text(&server.browser.page("/t/cup/about"));
    assert!(
        about.contains("The time for a reply: 500\u{a0}ms. Wall-clock time counts."),
        "{about}"
    );
    server.up.create("name = \"bj\"\ngame = \"blackjack\"\n");
    for path in ["/t/bj/how-to-play", "/t/bj/about"] {
        let page = text(&server.browser.page(path));
        assert!(page.contains("started for each decision, and its start counts"), "{page}");
        assert!(!page.contains("more for its first reply"), "{path}: {page}");
    }
    // The worker of this server reports its compilers with their versions.
    let worker =
        |page: &str| page.contains(", c++, 1 worker)") && page.contains(" (python3, 1 worker)");
    wait_until("the worker is connected", || {
        worker(&text(&server.browser.page("/t/cup/how-to-play")))
    });
    preflight(&server, "cup", "gomoku");
    assert_eq!(server.browser.get("/t/cup/how-to-play/cobol").status, 404);
    assert_eq!(server.browser.get("/t/cup/package").status, 404);
    assert_eq!(server.browser.get("/t/none/how-to-play").status, 404);
    server.up.close();
}

#[test]
fn the_page_of_a_package_has_its_text_a_starter_kit_and_the_package() {
    let server = TestServer::open();
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("games/packages/connect4");
    create(&server, "four", &package);
    let page = server.browser.page("/t/four/how-to-play");
    assert!(page.contains("<h2 id=\"guide-connect-four\">Connect Four</h2>"), "{page}");
    let columns = "columns = 7: columns of the board, 4 to 20; default 7";
    assert!(text(&page).contains(columns), "{page}");
    // Pages have the title of the game instead of its name.
    let front = server.browser.page("/t/four");
    assert!(front.contains(">How to play Connect Four</a>"), "{front}");
    wait_until("the tournament is on the home page", || {
        text(&server.browser.page("/")).contains("Connect Four · ")
    });
    let packed = server.up.directory.path().join("packed.tar.zst");
    let package = package.to_str().unwrap();
    succeed(&["game", "pack", package, "--out", packed.to_str().unwrap()]);
    let download = server.browser.download("/t/four/package");
    assert!(download.bytes == fs::read(&packed).unwrap(), "the file is the one of `game pack`");
    assert!(download.headers["content-disposition"].contains("connect4-1.tar.zst"));
    preflight(&server, "four", packed.to_str().unwrap());
    server.up.close();
}

#[test]
fn the_text_of_a_package_cannot_act_on_the_page() {
    let server = TestServer::open();
    let hostile = b"# Title\n<script>alert(1)</script>\n<img src=x onerror=alert(1)>\n\
        [a](javascript:alert(1)) [b](/logout) ![c](https://evil.example/c.png)\n\
        <!DOCTYPE x [<!ENTITY e \"eeee\">]> &e; \xff\xfe the end\n";
    let large = b"lots of text & more <b>\n".repeat(1 << 16);
    let nested = b">".repeat(1 << 20);
    let reference = [b"[a]: https://".as_slice(), &b"x".repeat(160_000), &b"\n[a]".repeat(30_000)];
    let texts: [(&str, &[u8]); 4] = [
        ("script", hostile),
        ("large", &large),
        ("nested", &nested),
        ("reference", &reference.concat()),
    ];
    for (name, text) in texts {
        create(&server, name, &package(server.up.directory.path(), text));
        let response = server.browser.get(&format!("/t/{name}/how-to-play"));
        assert_eq!(response.status, 200, "{name}: {}", response.body);
        let policy = &response.headers["content-security-policy"];
        assert!(policy.contains("script-src 'self'; img-src 'self' data:"), "{policy}");
        let page = response.body;
        assert!(page.len() < 8 << 20, "{name}: {} bytes", page.len());
        let article = page.split("<article class=\"guide\">").nth(1).unwrap();
        let article = article.split("</article>").next().unwrap();
        for forbidden in ["<script", "<img", "<b>", "javascript:alert(1)\"", "/logout\""] {
            assert!(!article.contains(forbidden), "{name}: {forbidden}");
        }
        assert_eq!(name == "script", article.contains("\u{fffd}\u{fffd} the end"), "{name}");
        assert_eq!(name != "script", page.contains("The text is longer."), "{name}");
        // It shows no bot to begin with.
        assert_eq!(server.browser.get(&format!("/t/{name}/how-to-play/python")).status, 404);
    }
    server.up.close();
}
