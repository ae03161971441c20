//! Submitting bots in a browser: a worker builds and tries the upload, and the page of the version
//! shows the progress to the owner.

use std::io::{Cursor, Write as _};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use crate::TestServer;
use crate::browser::{Browser, Part, csrf, rows, text};
use crate::support::service::wait_until;
use crate::support::succeed;

/// The manifest of a test bot.
fn manifest(build: &str, mode: &str) -> String {
    format!("name = \"sent\"\nrun = [\"./bot\", \"{mode}\", \"2\"]\nbuild = {build}\n")
}

/// The build command.
const BUILD: &str = "[\"cc\", \"-o\", \"bot\", \"rascal.c\"]";

/// A zip archive with the directory of a test bot.
fn zipped(manifest: &str) -> Vec<u8> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("bots/rascal/rascal.c");
    let source = std::fs::read(source).unwrap();
    zip_of(&[("mybot/bot.toml", manifest.as_bytes()), ("mybot/rascal.c", &source)])
}

/// A zip archive with these files.
fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Uploads an archive like the form of the page, and returns the address of the redirect.
fn upload(browser: &Browser, bot: &str, archive: &[u8]) -> String {
    let form = browser.page("/t/cup/submit");
    let parts = [
        Part::text("csrf", &csrf(&form)),
        Part::text("bot", bot),
        Part::file("bundle", "mybot.zip", archive),
    ];
    let response = browser.upload("/t/cup/submit", &parts, &[]);
    assert_eq!(response.status, 303, "{}", response.body);
    response.headers["location"].clone()
}

/// The page of a version once its trial is over.
fn over(browser: &Browser, address: &str) -> String {
    wait_until("the trial is over", || browser.page(address).contains("data-over"));
    browser.page(address)
}

#[test]
fn an_upload_is_tried_and_enters_or_shows_why_not() {
    let server = TestServer::open();
    let mut ada = server.browser.clone();
    ada.log_in(&server.up.token("player --name ada"));
    let address = upload(&ada, "sent", &zipped(&manifest(BUILD, "honest")));
    assert_eq!(address, "/t/cup/bots/ada/sent/versions/1?done=submit");
    assert!(ada.page(&address).contains("Version submitted."));
    // The page is updated without a reload.
    let states: Vec<_> = ada.events("/t/cup/bots/sent/versions/1/live").collect();
    assert!(states.last().unwrap().contains("data-state=\"entered\""), "{states:?}");
    let page = text(&over(&ada, &address));
    for part in ["State: entered", "Trial measurements", "99th percentile"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(page.contains("It plays in edition 1, which an organiser starts."), "{page}");
    assert!(page.contains("Show edition 1"), "{page}");
    let api = ada.page("/api/v1/tournaments/cup/bots/sent/versions/1/trial");
    assert!(api.contains("\"state\":\"manual\""), "{api}");
    let mine = server.up.json("bots cup").into_iter().find(|bot| bot["bot"] == "ada/sent").unwrap();
    assert_eq!((&mine["version"], &mine["owner"]), (&1.into(), &"ada".into()));
    // Submitting the same bundle again changes nothing.
    let again = upload(&ada, "sent", &zipped(&manifest(BUILD, "honest")));
    assert_eq!(again, address);

    let broken = "[\"sh\", \"-c\", \"echo nothing comes of this; exit 7\"]";
    let address = upload(&ada, "sent", &zipped(&manifest(broken, "honest")));
    let page = text(&over(&ada, &address));
    assert!(page.contains("State: trial failed") && page.contains("exited with code 7"), "{page}");
    assert!(page.contains("nothing comes of this"), "{page}");
    let address = upload(&ada, "sent", &zipped(&manifest(BUILD, "segv")));
    let page = text(&over(&ada, &address));
    assert!(page.contains("forfeit, gone") && page.contains("Evidence"), "{page}");
    let address = upload(&ada, "sent", b"\x1f\x8bno archive at all");
    assert!(text(&over(&ada, &address)).contains("cannot be unpacked"));
    let own = text(&ada.page("/me"));
    assert!(own.contains("in cup, version 4, trial failed: "), "{own}");
    assert!(own.contains("cannot be unpacked"), "{own}");

    // The failure is public; only the owner sees the reason.
    let bob = &mut server.browser.clone();
    let token = server.up.token("player --name bob");
    for _ in 0..2 {
        let page = text(&bob.page("/t/cup/bots/sent/versions/3"));
        assert!(page.contains("State: trial failed") && !page.contains("forfeit, gone"), "{page}");
        let table = rows(&bob.page("/t/cup/bots/sent"), "versions");
        let states: Vec<_> = table.iter().map(|row| &row[1][..]).collect();
        let failed = "trial failed";
        assert_eq!(states, [failed, failed, failed, "entered"]);
        bob.log_in(&token);
    }
    let table = rows(&ada.page("/t/cup/bots/sent"), "versions");
    assert!(table[1][1].contains("forfeit, gone"), "{table:?}");

    // Only the owner can withdraw the bot.
    let sure = |browser: &Browser| format!("csrf={}&sure=yes", csrf(&browser.page("/")));
    assert!(!bob.page("/t/cup/bots/sent").contains("Withdraw bot"));
    assert_eq!(bob.post("/t/cup/bots/sent/withdraw", &sure(bob), &[]).status, 403);
    for page in ["/t/cup/bots/sent", "/t/cup/bots/sent/versions/4"] {
        assert!(ada.page(page).contains("Withdraw bot"), "{page}");
    }
    let unsure = format!("csrf={}", csrf(&ada.page("/")));
    assert_eq!(ada.post("/t/cup/bots/sent/withdraw", &unsure, &[]).status, 400);
    let response = ada.post("/t/cup/bots/sent/withdraw", &sure(&ada), &[]);
    assert_eq!(response.status, 303, "{}", response.body);
    let page = text(&ada.page(&response.headers["location"]));
    assert!(page.contains("Bot withdrawn") && !page.contains("Withdraw bot"), "{page}");
    server.up.close();
}

#[test]
fn a_single_source_file_can_be_submitted() {
    let server = TestServer::open();
    let mut ada = server.browser.clone();
    ada.log_in(&server.up.token("player --name ada"));
    let send = |bot: &str, file: &'static str, contents: &[u8]| {
        let parts = [
            Part::text("csrf", &csrf(&ada.page("/t/cup/submit"))),
            Part::text("bot", bot),
            Part::file("bundle", file, contents),
        ];
        ada.upload("/t/cup/submit", &parts, &[])
    };
    // The file gives the bot its name.
    let response = send("", "one.py", b"print('no bot')\n");
    assert_eq!(response.status, 303, "{}", response.body);
    assert_eq!(response.headers["location"], "/t/cup/bots/ada/one/versions/1?done=submit");
    let page = text(&over(&ada, "/t/cup/bots/one/versions/1"));
    assert!(page.contains("State: trial failed"), "a python ran it: {page}");
    // The name of an entered bot, and a compiled language.
    let source = std::fs::read("bots/rascal/rascal.c").unwrap();
    let response = send("one", "rascal.c", &source);
    assert_eq!(response.headers["location"], "/t/cup/bots/ada/one/versions/2?done=submit");
    let page = text(&over(&ada, "/t/cup/bots/one/versions/2"));
    assert!(page.contains("Build time"), "it was compiled: {page}");

    // What cannot be a bot is refused at once, with what is missing.
    let unmanifested = zip_of(&[("mybot/main.py", b"print()")]);
    for (bot, file, contents, says) in [
        (
            "two",
            "two.cobol",
            &b"x"[..],
            "The file two.cobol is neither an archive nor a source file",
        ),
        ("two", "two.py", &vec![b'x'; (4 << 20) + 1], "is larger than 4 MiB"),
        (
            "",
            "two words.py",
            b"x",
            "The file two words.py has a name that a bot's file cannot have; use letters, digits, \
             dots, underscores, hyphens and plus signs, and do not begin with a dot or a hyphen.",
        ),
        ("", "two+.py", b"x", "Enter a name for the bot"),
        ("", "two.zip", b"PK", "Enter the name of the bot"),
        ("two", "two.zip", b"no archive", "two.zip is named like an archive"),
        ("two", "two.zip", b"", "The file is empty"),
        ("two", "two.zip", &unmanifested, "neither a bot.toml nor a meta file"),
        ("my bot", "two.py", b"x", "cannot be a bot's name"),
    ] {
        let response = send(bot, file, contents);
        assert_eq!(response.status, 400, "{file}: {}", response.body);
        assert!(text(&response.body).contains(says), "{file}: {}", response.body);
    }
    server.up.close();
}

#[test]
fn everything_about_a_bot_is_one_download() {
    let server = TestServer::open();
    let address = "/t/cup/bots/ada/download.zip";
    assert_eq!(server.browser.get(address).status, 401);
    let mut bob = server.browser.clone();
    bob.log_in(&server.up.token("player --name bob"));
    assert_eq!(bob.get(address).status, 403);
    assert!(!bob.page("/t/cup/bots/ada").contains("download.zip"));
    server.up.play("cup");
    let mut admin = server.browser.clone();
    admin.log_in(&server.up.admin());
    let page = admin.page("/t/cup/bots/eve");
    assert!(page.contains("href=\"/t/cup/bots/eve/download.zip\""));
    assert!(page.contains("href=\"/t/cup/bots/eve/download.zip?all=1\""));
    let download = admin.download("/t/cup/bots/eve/download.zip?all=1");
    assert_eq!(download.headers["content-type"], "application/zip");
    assert!(download.headers["content-disposition"].contains("cup-eve.zip"));
    let mut archive = ZipArchive::new(Cursor::new(download.bytes)).unwrap();
    let names: Vec<_> = archive.file_names().map(str::to_owned).collect();
    let records = names.iter().filter(|name| name.starts_with("records/cup-"));
    assert_eq!(records.count(), 4, "{names:?}");
    let folder = server.up.directory.path().join("eve");
    archive.extract(&folder).unwrap();
    succeed(&["verify", folder.join("records").to_str().unwrap()]);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let forfeits = read("forfeits.csv");
    assert_eq!(forfeits.lines().count(), 5, "{forfeits}");
    assert!(forfeits.contains(",gone,gone: "), "{forfeits}");
    assert!(read("versions/1/trial.txt").starts_with("version 1: entered\n"));
    assert!(read("README.txt").contains("the records of 4 matches"));
    server.up.close();
}

#[test]
fn forged_forms_are_refused_and_errors_keep_the_input() {
    let server = TestServer::open();
    let anonymous = &server.browser;
    assert_eq!(anonymous.get("/t/cup/submit").status, 401);
    let mut ada = server.browser.clone();
    ada.log_in(&server.up.token("player --name ada"));
    let hash = csrf(&ada.page("/t/cup/submit"));
    let archive = zipped(&manifest(BUILD, "honest"));
    let parts = |hash: &str, bot: &str| {
        [Part::text("csrf", hash), Part::text("bot", bot), Part::file("bundle", "a.zip", &archive)]
    };
    let good = parts(&hash, "sent");
    let forged = ["Origin: http://evil.example"];
    assert_eq!(ada.upload("/t/cup/submit", &good, &forged).status, 403);
    assert_eq!(ada.upload("/t/cup/submit", &parts(&"0".repeat(64), "sent"), &[]).status, 403);
    assert_eq!(anonymous.upload("/t/cup/submit", &good, &[]).status, 403);
    // The CSRF token must be the first field.
    assert_eq!(ada.upload("/t/cup/submit", &good[1..], &[]).status, 400);
    assert_eq!(ada.upload("/t/cup/submit", &good[..2], &[]).status, 400);
    assert_eq!(ada.upload("/t/none/submit", &good, &[]).status, 404);
    let refused = ada.upload("/t/cup/submit", &parts(&hash, "my bot"), &[]);
    assert_eq!(refused.status, 400);
    let says = "but not <code>TIE</code>, <code>.</code> or <code>..</code>.</p>";
    assert!(refused.body.contains(says), "{}", refused.body);
    assert!(refused.body.contains("value=\"my bot\""), "{}", refused.body);
    let refused = ada.upload("/t/cup/submit", &parts(&hash, "log"), &[]);
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("Addresses use the word"), "{}", refused.body);
    let empty =
        [Part::text("csrf", &hash), Part::text("bot", "sent"), Part::file("bundle", "", b"")];
    let empty = ada.upload("/t/cup/submit", &empty, &[]);
    assert!(
        empty.status == 400 && empty.body.contains("The file is empty: choose"),
        "{}",
        empty.body
    );
    let names: Vec<_> = server.up.json("bots cup").iter().map(|bot| bot["bot"].clone()).collect();
    assert_eq!(names, ["ada", "bob", "eve"], "no refused bot was created");
    server.up.close();
}
