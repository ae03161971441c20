//! `arbiter try`: people play matches against bots in a browser, watch bots, and send them lines.

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

#[path = "../web/browser.rs"]
#[expect(dead_code, reason = "this test uses its own part of the browser")]
mod browser;
mod packages;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use browser::{Browser, Response, encoded};
use rustix::process::Signal;
use serde_json::Value;
use support::machine::descendants;
use support::service::{Service, wait_until};
use support::{Bots, arbiter, files, run, succeed};

/// A running `arbiter try`.
struct Table {
    running: Service,
    browser: Browser,
    /// The path of its pages, with the secret and slashes around it.
    root: String,
    directory: tempfile::TempDir,
}

impl Table {
    fn open(game: &str, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("tmp")).unwrap();
        let mut command = arbiter();
        command.args(["try", game]).args(arguments);
        command.arg("--record").arg(directory.path().join("records"));
        command.env("TMPDIR", directory.path().join("tmp"));
        let mut running = Service::start(&mut command, &directory.path().join("log"));
        running.wait_for_log("open this address");
        let log = running.log();
        let address = log.split("http://").nth(1).unwrap().split_whitespace().next().unwrap();
        let (host, path) = address.split_once('/').unwrap();
        let browser = Browser::new(host.parse().unwrap());
        Self { running, browser, root: format!("/{path}"), directory }
    }

    fn path(&self, page: &str) -> String {
        format!("{}{page}", self.root)
    }

    fn page(&self, page: &str) -> String {
        self.browser.page(&self.path(page))
    }

    fn post(&self, page: &str, form: &str) -> Response {
        self.browser.post(&self.path(page), form, &[])
    }

    /// Sends a form. The server must accept it.
    fn done(&self, page: &str, form: &str) {
        let response = self.post(page, form);
        assert_eq!(response.status, 303, "{form}: {}", response.body);
    }

    /// Waits until seat 1 must move or the match is over, and returns its page.
    fn turn(&self) -> String {
        let mut page = String::new();
        wait_until("a turn, or the end of the match", || {
            page = self.page("?seat=1");
            due(&page).is_some() || is_over(&page)
        });
        page
    }

    /// Plays the match to its end with the form of each page. Returns the first page with a move,
    /// and the last page.
    fn play(&self, mut form: impl FnMut(&str) -> String) -> (String, String) {
        let first = self.turn();
        let mut page = first.clone();
        while !is_over(&page) {
            let turn = due(&page).unwrap();
            self.done("play", &format!("seat=1&turn={turn}&{}", form(&page)));
            page = self.turn();
        }
        (first, page)
    }

    fn records(&self) -> PathBuf {
        self.directory.path().join("records")
    }

    /// Ends the program, which must leave nothing behind.
    fn close(mut self) {
        let children = descendants(self.running.pid());
        self.running.signal(Signal::INT);
        assert_eq!(self.running.wait(), Some(0), "{}", self.running.log());
        // The remaining processes exit as soon as they notice that the program has ended.
        wait_until("all processes have ended", || {
            let stat = |child| fs::read_to_string(format!("/proc/{child}/stat"));
            children.iter().all(|child| stat(child).map_or(true, |stat| stat.contains(") Z ")))
        });
        let remaining = files(&self.directory.path().join("tmp"));
        assert!(remaining.is_empty(), "{remaining:?}");
    }
}

fn is_over(page: &str) -> bool {
    page.contains("The match is over.")
}

/// The number of the move that is due on a page.
fn due(page: &str) -> Option<&str> {
    let form = page.split("<form class=\"play\"").nth(1)?;
    values(form, "turn").next()
}

/// The values of the fields and buttons of a name, in their order.
fn values<'a>(html: &'a str, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let mark = format!("name=\"{name}\" value=\"");
    let pieces: Vec<_> = html.split(&mark).skip(1).collect();
    pieces.into_iter().map(|piece| piece.split('"').next().unwrap())
}

/// Checks a finished match: its result is shown, and its record passes verification.
fn check_result(table: &Table, page: &str) {
    assert!(page.contains("<table class=\"result\">"), "{page}");
    assert!(!page.contains("forfeits –"), "no bot forfeits: {page}");
    let records = files(&table.records());
    assert_eq!(records.len(), 1, "{records:?}");
    succeed(&["verify", records[0].to_str().unwrap()]);
    let record = fs::read_to_string(&records[0]).unwrap();
    assert_eq!(table.page("record"), record);
    assert!(record.contains("{\"bot\":\"human\",\"digest\":\"person\""), "{record}");
}

#[test]
fn a_person_plays_gomoku() {
    let table = Table::open("gomoku", &["bots/gomoku/center", "--set", "move_limit=30s"]);
    let start = table.browser.get(&table.root);
    assert_eq!((start.status, &start.headers["location"]), (303, &table.path("new")));
    table.done("new", "seat1=human&seat2=0&seed=s");
    let page = table.turn();
    assert!(page.contains("Place a black stone (1 of 3)"), "{page}");
    let page = table.page("?seat=1&pick=(0,0)&pick=(14,14)");
    assert!(page.contains("Place a white stone (3 of 3)"), "{page}");
    assert!(!page.contains("value=\"(0,0)\" aria-label"), "a square is not offered twice");

    // An illegal move has no effect, and the page explains the error.
    for (answer, why) in [
        ("(0,0)", "three squares expected"),
        ("(0,0)(1,1)(1,1)", "(1,1)"),
        ("(0,0)(1,1)(15,1)", "coordinates are 0 to 14"),
        ("x", "neither a square nor a colour"),
    ] {
        let refused = table.post("play", &format!("seat=1&turn=1&answer={answer}"));
        assert_eq!(refused.status, 422, "{answer}");
        assert!(refused.body.contains("This move is not allowed: "), "{}", refused.body);
        assert!(refused.body.contains(why), "{answer}: {}", refused.body);
    }
    assert_eq!(table.post("play", "seat=1&turn=1").status, 422, "the form has no choice");
    assert_eq!(
        table.post("play", "seat=2&turn=1&answer=x").status,
        404,
        "the seat belongs to a bot"
    );

    table.done("play", "seat=1&turn=1&pick=(0,0)&pick=(14,14)&pick=(0,14)");
    let again = table.post("play", "seat=1&turn=1&pick=(0,0)&pick=(14,14)&pick=(0,14)");
    assert_eq!(again.status, 422, "a move is played once");
    assert!(again.body.contains("This turn is over"));
    let (_, page) = table.play(|page| {
        let free = values(page, "pick").next();
        let colour = values(page, "answer").next();
        free.map_or_else(
            || format!("answer={}", encoded(&colour.unwrap().replace("&quot;", "\""))),
            |free| format!("pick={free}"),
        )
    });
    check_result(&table, &page);
    table.close();
}

/// The lines of cards at the places of this class.
fn hands(page: &str, class: &str) -> Vec<String> {
    let list = page.split(&format!("<ul class=\"places {class}\">")).nth(1).unwrap_or_default();
    let list = list.split("</ul>").next().unwrap();
    let lines = list.split("<p class=\"hand").skip(1);
    lines.map(|line| line.split_once("</p>").unwrap().0.to_owned()).collect()
}

#[test]
fn a_person_plays_wojna() {
    let bots = ["bots/wojna/caller", "bots/wojna/miser", "--set", "deck=1-5*4"];
    let table = Table::open("wojna", &bots);
    table.done("new", "seat1=human&seat2=0&seat3=1&seat4=&seed=s");
    table.done("pace", "do=speed&speed=0");
    let (first, last) = table.play(|page| {
        let hands = hands(page, "wojna");
        assert_eq!(hands.len(), 3);
        for hand in &hands[1..] {
            assert!(!hand.contains("<b"), "hidden from seat 1: {hand}");
        }
        let bids: Vec<_> = values(page, "answer").collect();
        assert!(bids.contains(&"= check"), "{bids:?}");
        format!("answer={}", encoded(bids[bids.len().min(3) - 1]))
    });
    assert!(first.contains("topcard 1 "), "the messages to a person are shown");
    assert!(!first.contains("topcard 2 ") && !first.contains("topcard 3 "), "{first}");
    assert!(last.contains("topcard 2 "), "after the match all cards are shown");
    check_result(&table, &last);
    table.close();
}

#[test]
fn a_person_plays_tricks() {
    let table = Table::open("tricks", &["bots/tricks/lowest"]);
    table.done("new", "seat1=0&seat2=human&seed=s");
    let page = table.page("?seat=1");
    assert!(
        page.contains("Seed <code>s</code>"),
        "the address of a bot's seat shows the person's seat"
    );
    let mut turns = 0;
    let mut page = String::new();
    loop {
        wait_until("a turn, or the end of the match", || {
            page = table.page("");
            due(&page).is_some() || is_over(&page)
        });
        if is_over(&page) {
            break;
        }
        // Each table has the hand of seat 1, the cards on the table, and the hand of seat 2.
        for hands in hands(&page, "tables few").chunks(3) {
            assert!(!hands[0].contains("<b"), "hidden from seat 2: {hands:?}");
            assert!(!hands[2].contains("<i"), "{hands:?}");
            turns += 1;
        }
        assert!(!page.contains("<div class=\"message\"><span class=\"who seat1\">"), "{page}");
        let turn = due(&page).unwrap().to_owned();
        let bad = table.post("play", &format!("seat=2&turn={turn}&answer=move=W9 W9"));
        assert_eq!(bad.status, 422);
        let cards = (1..=2).filter_map(|number| {
            let name = format!("card-{number}");
            values(&page, &name).next().map(|card| format!("&{name}={card}"))
        });
        table.done("play", &format!("seat=2&turn={turn}{}", cards.collect::<String>()));
    }
    assert!(turns >= 18, "{turns}");
    check_result(&table, &page);
    table.close();
}

#[test]
fn a_person_plays_bitwa() {
    let settings = ["bots/bitwa/rush", "--set", "board=przyklad", "--set", "rounds=3"];
    let table = Table::open("bitwa", &settings);
    table.done("new", "seat1=human&seat2=0");
    let page = table.turn();
    assert_eq!(values(&page, "at").count(), 8 * 6, "every square can be clicked");
    let style = table.browser.page("/assets/playground.css");
    assert!(style.contains("grid-template-columns: repeat(8, 1fr)"), "{style}");
    let bad = table.post("play", "seat=1&turn=1&at=9+9");
    assert!(bad.status == 422 && bad.body.contains("off the board"), "{}", bad.body);
    let (_, page) = table.play(|page| {
        assert!(page.contains("Your order to division"), "{page}");
        format!("a=1&dx=1&dy=-1&p=0&at={}", encoded(values(page, "at").nth(30).unwrap()))
    });
    check_result(&table, &page);
    table.close();
}

#[test]
fn people_play_blackjack() {
    let table = Table::open("blackjack", &["bots/blackjack/lim17", "--set", "hands=3"]);
    table.done("new", "seat1=human&seat2=0&seat3=human&seed=s");
    table.done("pace", "do=speed&speed=0");
    let mut page = String::new();
    loop {
        let mut whose = None;
        wait_until("a person's turn, or the end", || {
            whose = ["1", "3"].into_iter().find(|seat| {
                page = table.page(&format!("?seat={seat}"));
                due(&page).is_some()
            });
            whose.is_some() || is_over(&page)
        });
        let Some(seat) = whose else { break };
        assert!(page.contains("\"face down\""), "the dealer's second card lies face down: {page}");
        let turn = due(&page).unwrap().to_owned();
        let actions: Vec<_> = values(&page, "answer").collect();
        assert_eq!(actions[..2], ["H", "S"]);
        let refused = table.post("play", &format!("seat={seat}&turn={turn}&bet=100000"));
        assert_eq!(refused.status, 422);
        assert!(refused.body.contains("a bet is 1 to "), "{}", refused.body);
        let play = if actions.contains(&"D") { "D" } else { "S" };
        table.done("play", &format!("seat={seat}&turn={turn}&answer={play}"));
    }
    check_result(&table, &page);
    assert!(page.contains("human-2"), "bots of the same name are numbered");
    table.close();
}

#[test]
fn people_may_have_a_clock() {
    let settings = ["--human-clock", "--set", "move_limit=1ms", "--set", "hands=1"];
    let table = Table::open("blackjack", &[&["bots/blackjack/lim17"][..], &settings].concat());
    table.done("new", "seat1=human&seat2=&seed=s");
    let mut page = String::new();
    wait_until("the person is too late", || {
        page = table.page("");
        is_over(&page)
    });
    assert!(page.contains("human: <span class=\"forfeit\">clock: "), "{page}");
    let records = files(&table.records());
    succeed(&["verify", records[0].to_str().unwrap()]);
    table.close();
}

#[test]
fn bots_are_watched() {
    let table = Table::open("gomoku", &["bots/gomoku/center", "bots/gomoku/center"]);
    let picture = |page: &str| -> usize {
        page.split("data-step=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    };
    table.done("new", "seat1=0&seat2=1&seed=s");
    table.done("pace", "do=pause");
    let mut live = table.browser.events(&table.path("live"));
    let mut event = live.next().unwrap();
    while !event.contains("data-step") {
        event = live.next().unwrap();
    }
    let first = picture(&event);
    assert!(event.contains("Paused."), "{event}");
    table.done("pace", "do=step");
    while picture(&event) == first {
        event = live.next().unwrap();
    }
    assert_eq!(picture(&event), first + 1, "each step changes the picture");
    table.done("pace", "do=speed&speed=0");
    table.done("pace", "do=go");
    while !is_over(&event) {
        event = live.next().unwrap();
    }
    assert!(event.contains("1&gt; ") && event.contains("2&gt; "), "{event}");
    assert!(event.contains("center-2"), "{event}");
    assert_eq!(table.post("pace", "do=what").status, 400);
    // The same seed gives the same match. Then the bots change seats.
    table.done("new", "seat1=1&seat2=0&seed=s");
    let page = table.page("");
    assert!(page.contains("center-2, center"), "{page}");
    table.close();
}

#[test]
fn a_failing_bot_is_reported() {
    let bots = Bots::new();
    let rascal = bots.rascal("rascal", "exit", 0, "");
    let table = Table::open("gomoku", &[&rascal]);
    table.done("new", "seat1=0&seat2=human");
    let page = table.turn();
    assert!(is_over(&page) && page.contains("gone: "), "{page}");
    // If a changed bot cannot be built, the next match reports it.
    fs::write(format!("{rascal}/rascal.c"), "nonsense").unwrap();
    let refused = table.post("new", "seat1=0&seat2=human");
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains("cannot build"), "{}", refused.body);
    for (form, why) in [
        ("seat1=human&seat2=7", "there is no such bot"),
        ("seat1=human", "takes 2 bots"),
        ("", "takes 2 bots"),
    ] {
        let refused = table.post("new", form);
        assert!(refused.status == 422, "{form}");
        // Missing settings are reported before the bots are built, unless a bot is missing.
        assert!(refused.body.contains(why) || refused.body.contains("cannot build"), "{form}");
    }
    table.close();
}

/// The response of a server to a raw request.
fn raw(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    String::from_utf8_lossy(&response).into_owned()
}

#[test]
fn requests_without_the_secret_are_refused() {
    let table = Table::open("gomoku", &["bots/gomoku/center"]);
    let browser = &table.browser;
    let address = table.browser.address;
    let wrong = table.root.replace(|c: char| c.is_ascii_digit(), "x");
    for path in ["/", "/new", &wrong, &format!("{wrong}new"), table.root.trim_end_matches('/')] {
        let response = browser.get(path);
        assert_eq!(response.status, 403, "{path}");
        assert!(!response.body.contains("center"), "{}", response.body);
    }
    assert_eq!(browser.post("/new", "seat1=human&seat2=0", &[]).status, 403);
    let root = &table.root;
    for (host, status) in [
        ("evil.example", "403"),
        ("127.0.0.1.evil.example:80", "403"),
        (&address.to_string(), "303"),
        ("localhost:1", "303"),
    ] {
        let request = format!("GET {root} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let response = raw(address, &request);
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{host}: {response}");
    }
    let new = table.path("new");
    let foreign = browser.post(&new, "seat1=human&seat2=0", &["Origin: http://evil.example"]);
    assert_eq!(foreign.status, 403);
    let own_origin = format!("Origin: http://{address}");
    assert_eq!(browser.post(&new, "seat1=human&seat2=0", &[&own_origin]).status, 303);
    assert_eq!(browser.post(&new, &format!("seed={}", "x".repeat(300_000)), &[]).status, 413);
    assert_eq!(browser.get(&table.path("play")).status, 405);
    assert_eq!(browser.get(&table.path("console/1")).status, 404);
    assert_eq!(browser.get(&table.path("elsewhere")).status, 404);
    let page = browser.get(&table.path("new"));
    assert!(page.headers["content-security-policy"].contains("default-src 'none'"));
    assert_eq!(page.headers["cache-control"], "no-store");
    // Ctrl-C during a match, with an open console, leaves no process or file.
    table.turn();
    table.done("console/0/say", &format!("line={}", encoded("A []")));
    assert!(!descendants(table.running.pid()).is_empty(), "bots are running");
    table.close();
}

#[test]
fn the_browser_console_shows_replies() {
    let bots = Bots::new();
    let bot = bots.file("echo.py", "#!/usr/bin/env python3\nimport sys\nfor line in sys.stdin:\n    if line.startswith('EXIT'):\n        break\n    print('one', file=sys.stderr, flush=True)\n    print('first ' + line.strip(), flush=True)\n");
    fs::set_permissions(&bot, executable()).unwrap();
    let table = Table::open("gomoku", &[&bot]);
    let console = |page: &str| format!("console/0{page}");
    let page = table.page(&console(""));
    assert!(page.contains("Open the game. Reply:") && page.contains("EXIT TIE"), "{page}");
    assert!(table.page(&console("?line=A+%5B%5D")).contains("A []</textarea>"));
    table.done(&console("/say"), &format!("line={}", encoded("anything <at> all")));
    let page = table.page(&console(""));
    assert!(page.contains("first anything &lt;at&gt; all"), "{page}");
    assert!(page.contains("Standard error") && page.contains("one"), "{page}");
    // A restart uses the current files of the bot.
    let text = fs::read_to_string(&bot).unwrap();
    fs::write(&bot, text.replace("first", "second")).unwrap();
    table.done(&console("/say"), "line=x");
    table.done(&console("/end"), "");
    table.done(&console("/say"), "line=x");
    let page = table.page(&console(""));
    assert!(page.contains("first x") && page.contains("second x"), "{page}");
    table.done(&console("/say"), &format!("line={}", encoded("EXIT TIE")));
    let page = table.page(&console(""));
    assert!(page.contains("The bot has ended: exited with code 0"), "{page}");
    table.done(&console("/say"), "line=x");
    let page = table.page(&console(""));
    assert!(page.contains("gone: exited with code 0"), "{page}");
    // The page shows the bot's standard error beside the table.
    table.done("new", "seat1=0&seat2=human");
    let page = table.turn();
    assert!(page.contains("Standard error of echo</summary><pre>one"), "{page}");
    assert!(page.contains("illegal: "), "{page}");
    table.close();
}

/// The permissions of a program.
fn executable() -> fs::Permissions {
    fs::Permissions::from_mode(0o755)
}

/// Sends lines to a bot on the terminal.
fn talk(game: &str, bot: &str, more: &[&str], lines: &str) -> Output {
    let mut command = arbiter();
    command.args(["try", game, bot, "--console"]).args(more);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// The replies to lines, as JSON.
fn answers(game: &str, bot: &str, lines: &str) -> Vec<Value> {
    let output = talk(game, bot, &["--json"], lines);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{game}: {stderr}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_terminal_console_speaks_each_protocol() {
    let replies = answers("gomoku", "bots/gomoku/center", "A []\n\nEXIT TIE\n");
    assert_eq!(replies[0]["reply"], "(5,5)(9,9)(7,7)");
    assert!(replies[0]["wall_us"].as_i64().unwrap() > 0);
    assert_eq!(
        (&replies[1]["reply"], &replies[1]["exit"]),
        (&Value::Null, &"exited with code 0".into())
    );
    assert_eq!(replies[2]["ended"], true);

    let bids = "your_number 1\nsetdeck 4 1 2 3 4\nsetstate 2 2 1 1\ntopcard 1 4\ngenmove 1\n";
    let replies = answers("wojna", "bots/wojna/caller", bids);
    assert_eq!(replies[0]["reply"].as_str().map(str::trim_end), Some("="));
    assert!(replies[4]["reply"].as_str().unwrap().starts_with("= "), "{replies:?}");

    let board = "set_game 8 6 100 2 ######## #.A..a.# #AA#.aa# #BB.#bb# #.B..b.# ########";
    let replies = answers("bitwa", "bots/bitwa/rush", &format!("{board}\ngen_move A\nquit\n"));
    assert_eq!(replies[1]["reply"].as_str().unwrap().split_whitespace().count(), 7, "{replies:?}");

    let dealt = "states: X3Y7Z5Z3W8Z6X2Z1W7:W _\\nscores: 0:0 0:0\n";
    for bot in ["bots/tricks/lowest", "bots/tricks/http"] {
        let replies = answers("tricks", bot, dealt);
        assert!(replies[0]["reply"].as_str().unwrap().starts_with("move="), "{bot}: {replies:?}");
        assert_eq!(replies[0]["told"].as_str().unwrap().lines().count(), 2);
    }

    let replies =
        answers("blackjack", "bots/blackjack/lim17", "10 73 J#Q72A39 10 170\n20 TK J# 10 0\n");
    assert_eq!((&replies[0]["reply"], &replies[1]["reply"]), (&"H".into(), &"S".into()));

    let output =
        talk("gomoku", "bots/gomoku/center", &[], "A []\n:restart\n:help\nA []\n:quit\nx\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "(5,5)(9,9)(7,7)\n(5,5)(9,9)(7,7)\n");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains(" ms, CPU ") && stderr.contains("Open the game."), "{stderr}");
}

/// The text between the first `before` and the next `behind`.
fn between<'a>(text: &'a str, before: &str, behind: &str) -> &'a str {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("no {before:?}")).1;
    rest.split_once(behind).unwrap().0
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the examples run in a shell")]
fn documented_examples_work() {
    for game in ["wojna", "bitwa", "tricks", "blackjack", "gomoku"] {
        let page = format!("{}/docs/bots/{game}.md", env!("CARGO_MANIFEST_DIR"));
        let page = fs::read_to_string(page).unwrap();
        let bots = Bots::new();
        let bot = bots.file("mybot.py", between(&page, "```python\n", "```"));
        fs::set_permissions(&bot, executable()).unwrap();
        let example = page.split("### In a browser, and line by line").nth(1).unwrap();
        let example = between(example, "\n$ ", "```");
        let (command, answers) = example.split_once('\n').unwrap();
        let command =
            command.replace("| arbiter ", &format!("| {} ", env!("CARGO_BIN_EXE_arbiter")));
        let mut shell = Command::new("sh");
        let output = shell.arg("-c").arg(&command).current_dir(bots.path()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), answers, "{command}: {output:?}");
    }
}

#[test]
fn an_invalid_reply_on_the_terminal_exits_with_1() {
    let bots = Bots::new();
    let rascal = bots.rascal("rascal", "exit", 0, "");
    let output = talk("gomoku", &rascal, &[], "A []\n");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("forfeit: gone: "));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("1 of 1 lines had no valid reply"), "{stderr}");
}

#[test]
fn invalid_requests_are_explained() {
    let bots = Bots::new();
    let broken = bots.rascal("broken", "honest", 0, "");
    fs::write(format!("{broken}/rascal.c"), "nonsense").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    for (arguments, code, why) in [
        (&["try", "chess", "x"][..], 2, "there is no game `chess`"),
        (&["try", "gomoku", "no/such/bot"], 2, "no/such/bot: "),
        (&["try", "gomoku"], 2, "see --help"),
        (&["try", "gomoku", &broken], 2, "cannot build"),
        (&["try", "gomoku", "bots/gomoku/center", "--http", &address], 3, "choose another"),
        (&["try", "gomoku", "bots/gomoku/center", "--set", "x=1"], 2, "its parameters are"),
        (&["try", "wojna", "bots/wojna/caller", "bots/wojna/miser", "--console"], 2, "one bot"),
        (&["try", "gomoku", "bots/gomoku/center", "--limit", "0s"], 2, "--limit"),
    ] {
        let output = run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(why), "{arguments:?}: {stderr}");
    }
}
