//! Replays: step, play, jump and link, by mouse and keyboard; in frames, on a projector, and as
//! pages without a server.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::thread;

use serde_json::Value;

use crate::axe::Axe;
use crate::chrome::{Chrome, keys};
use crate::support::{Bots, files, succeed};
use crate::test_server::{GAMES, TestServer};

/// The number of the current step.
const STEP: &str = "Number(document.querySelector('.step-view .step')?.dataset.step)";

/// An open replay.
struct Replay<'a> {
    chrome: &'a Chrome,
    game: &'static str,
    /// Its last step.
    last: u64,
}

impl Replay<'_> {
    /// Waits until a step is shown everywhere: the view, the counter, the slider, the URL.
    fn wait_for_step(&self, step: u64, after: &str) {
        let game = self.game;
        let last = self.last;
        let body = format!(
            "return {STEP} === {step}
                && document.querySelector('.player output').innerText === 'Step {step} of {last}'
                && document.querySelector('.player input').value === '{step}'
                && document.querySelector('[data-link]').hash === '#step={step}'
                && (location.hash === '#step={step}' || location.search === '?step={step}')"
        );
        self.chrome.wait(&format!("{game}: step {step} after {after}"), &body);
    }

    fn click(&self, label: &str) {
        self.chrome.click(&format!("a[aria-label='{label}']"));
    }

    /// The markup of the current step.
    fn shown_step(&self) -> Value {
        self.chrome.run("return document.querySelector('.step-view .step').outerHTML")
    }

    fn button(&self) -> String {
        self.chrome.text("[data-play]")
    }

    fn steps_by_mouse_and_keys(&self) {
        let last = self.last;
        self.chrome.press(keys::RIGHT);
        self.wait_for_step(1, "the right key");
        self.click("Next step");
        self.wait_for_step(2, "a click at next step");
        self.chrome.press(keys::LEFT);
        self.wait_for_step(1, "the left key");
        self.click("Previous step");
        self.wait_for_step(0, "a click at previous step");
        self.chrome.press(keys::LEFT);
        self.wait_for_step(0, "the left key at the beginning");
        self.chrome.press(keys::END);
        self.wait_for_step(last, "the end key");
        self.chrome.press(keys::HOME);
        self.wait_for_step(0, "the home key");
        self.click("Last step");
        self.wait_for_step(last, "a click at last step");
        self.click("First step");
        self.wait_for_step(0, "a click at first step");
        // The slider handles keys itself.
        self.chrome.run("document.querySelector('.player input').focus()");
        self.chrome.press(keys::RIGHT);
        self.wait_for_step(1, "the slider");
    }

    /// Jumps by chapters, if the game has any. Returns whether it has.
    fn jumps_by_chapters(&self) -> bool {
        let chapters = self.chrome.run(
            "return [...document.querySelectorAll('.chapter option')].map((option) => Number(option.value))",
        );
        let chapters: Vec<u64> = serde_json::from_value(chapters).unwrap();
        let [first, second, third, ..] = chapters[..] else { return false };
        self.chrome.run("document.activeElement.blur()");
        self.chrome.press(keys::HOME);
        self.wait_for_step(0, "the home key");
        self.chrome.press(keys::PAGE_DOWN);
        self.wait_for_step(second, "page down");
        self.chrome.press_all(&[keys::SHIFT, keys::RIGHT]);
        self.wait_for_step(third, "shift and the right key");
        self.chrome.press(keys::PAGE_UP);
        self.wait_for_step(second, "page up");
        self.chrome.press_all(&[keys::SHIFT, keys::LEFT]);
        self.wait_for_step(first, "shift and the left key");
        self.click("Next chapter");
        self.wait_for_step(second, "a click at next chapter");
        self.click("Previous chapter");
        self.wait_for_step(first, "a click at previous chapter");
        self.chrome.run(
            "const chapter = document.querySelector('.chapter select');
            chapter.selectedIndex = 2;
            chapter.dispatchEvent(new Event('change'));",
        );
        self.wait_for_step(third, "the choice of a chapter");
        true
    }

    /// The key `?` shows the list of keyboard shortcuts.
    fn explains_keys(&self) {
        self.chrome.run("document.activeElement.blur()");
        assert!(!self.chrome.has(".keys[open]"));
        self.chrome.press("?");
        assert!(self.chrome.text(".keys[open]").contains("previous or next chapter"));
        self.chrome.press("?");
        assert!(!self.chrome.has(".keys[open]"));
    }

    fn plays(&self) {
        let last = self.last;
        self.chrome.call(
            "const select = document.querySelector('.player select'); select.value = argument;",
            &"25".into(),
        );
        self.chrome.run(&format!("location.hash = '#step={}'", last - 3));
        self.wait_for_step(last - 3, "a link");
        self.chrome.click("[data-play]");
        self.wait_for_step(last, "playing to the end");
        self.chrome.wait(
            "playback stops at the end",
            "return document.querySelector('[data-play]').innerText === 'Play'",
        );
        // Playing at the end starts again, slowly so that the test sees it. The space bar works
        // without the focus on the button.
        self.chrome.call(
            "const select = document.querySelector('.player select'); select.value = argument;",
            &"1".into(),
        );
        self.chrome.run("document.activeElement.blur()");
        self.chrome.press(" ");
        self.chrome.wait("playback starts again", &format!("return {STEP} > 1 && {STEP} < {last}"));
        assert_eq!(self.button(), "Pause");
        self.chrome.press(" ");
        assert_eq!(self.button(), "Play");
    }

    /// A link to a step shows the same step with and without scripts.
    fn links(&self, address: &str) {
        self.click("First step");
        self.wait_for_step(0, "a click at first step");
        let middle = self.last / 2;
        self.chrome.run(&format!("location.hash = '#step={middle}'"));
        self.wait_for_step(middle, "a link");
        let step = self.shown_step();
        let link = self.chrome.address();
        self.chrome.open("about:blank");
        self.chrome.open(&link);
        self.wait_for_step(middle, "opening the link");
        assert_eq!(self.shown_step(), step, "{}", self.game);
        self.chrome.allow_scripts(false);
        self.chrome.open(&format!("{address}?step={middle}"));
        assert_eq!(self.shown_step(), step, "{}", self.game);
        self.chrome.allow_scripts(true);
    }

    /// The last step shows the stored result.
    fn ends_with(&self, result: &Value) {
        self.chrome.press(keys::END);
        self.wait_for_step(self.last, "the end key");
        let scores = self.chrome.run(
            "return [...document.querySelectorAll('.step-view table.result [data-score]')]
                .map((cell) => cell.dataset.score.split(' ').map(Number));",
        );
        assert_eq!(scores, result["scores"], "{}", self.game);
    }
}

#[test]
fn replays_can_be_stepped_through_and_played() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::played();
    server.log_in(&chrome);
    let mut with_chapters = Vec::new();
    for game in GAMES {
        let path = format!("/t/{game}-quick/matches/0");
        server.visit(&chrome, &path);
        let last = chrome.run("return Number(document.getElementById('replay').dataset.total) - 1");
        let replay = Replay { chrome: &chrome, game, last: last.as_u64().unwrap() };
        assert!(replay.last > 5, "{game}: {last} steps");
        replay.steps_by_mouse_and_keys();
        if replay.jumps_by_chapters() {
            with_chapters.push(game);
        }
        replay.explains_keys();
        replay.plays();
        replay.links(&format!("{}{path}", server.pages));
        server.visit(&chrome, &path);
        replay.ends_with(&server.up.json(&format!("match {game}-quick/0"))[0]);
    }
    assert!(with_chapters.contains(&"bitwa"), "{with_chapters:?}");
}

#[test]
fn a_replay_plays_two_hundred_steps_a_second() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::played();
    server.log_in(&chrome);
    server.visit(&chrome, "/t/wojna-quick/matches/0");
    let last = chrome.run("return Number(document.getElementById('replay').dataset.total) - 1");
    let last = last.as_f64().unwrap();
    chrome.run(
        "document.querySelector('.speed select').value = '200';
        const button = document.querySelector('[data-play]');
        new MutationObserver(() => {
            if (button.innerText === 'Play') window.ended = performance.now();
        }).observe(button, { childList: true });
        window.began = performance.now();
        button.click();",
    );
    chrome.wait("the end is shown", &format!("return {STEP} === {last} && window.ended > 0"));
    let milliseconds = chrome.run("return window.ended - window.began").as_f64().unwrap();
    let rate = 1000.0 * last / milliseconds;
    // A busy machine is slower, but never faster.
    assert!((60.0..220.0).contains(&rate), "{last} steps in {milliseconds} ms: {rate} a second");
}

/// Answers the requests of a page with the status `window.answer` and counts them. The delays of
/// the page are short for the test.
const REFUSE_REQUESTS: &str = "window.answer = 503;
    window.requested = [];
    const later = window.setTimeout;
    window.setTimeout = (action, delay) => later(action, Math.min(delay, 20));
    const send = window.fetch;
    window.fetch = async (address) => {
        window.requested.push(address);
        return Number(window.answer) === 200 ? send(address) : new Response('', { status: Number(window.answer) });
    };";

/// The server fails while the replay is open. Requests are counted by their address.
#[test]
fn steps_that_fail_are_requested_a_few_times_and_again_on_request() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::played();
    server.log_in(&chrome);
    server.visit(&chrome, "/t/wojna-quick/matches/0");
    let last = chrome.run("return Number(document.getElementById('replay').dataset.total) - 1");
    let last = last.as_u64().unwrap();
    chrome.run(REFUSE_REQUESTS);
    let refused = "return !!document.querySelector('#replay .error-message button')";
    let requests = || chrome.run("return window.requested.length").as_u64().unwrap();
    chrome.press(keys::END);
    chrome.wait("the failure is shown", refused);
    let message = chrome.text("#replay .error-message");
    let cause = format!("Step {last} could not be loaded. The server refused the request");
    assert!(message.starts_with(&cause) && message.contains("Reload the page"), "{message}");
    assert_eq!(chrome.run(&format!("return {STEP}")), 0, "the step before remains");
    assert_eq!(requests(), 5, "once, and four times again");
    chrome.press(keys::END);
    chrome.wait("the failure is still shown", refused);
    assert_eq!(requests(), 5, "no more without the button");
    // A refusal will not pass, so it is not asked for again.
    chrome.run("window.answer = 403");
    chrome.click("#replay .error-message button");
    chrome.wait("one more request", "return window.requested.length === 6");
    chrome.wait("the refusal is shown", refused);
    chrome.run("window.answer = 200");
    chrome.click("#replay .error-message button");
    chrome.wait("the last step is shown", &format!("return {STEP} === {last}"));
    assert!(!chrome.has("#replay .error-message"));
}

#[test]
fn a_page_that_is_loaded_again_shows_the_step_that_failed() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::played();
    server.log_in(&chrome);
    server.visit(&chrome, "/t/wojna-quick/matches/0");
    let last = chrome.run("return Number(document.getElementById('replay').dataset.total) - 1");
    let last = last.as_u64().unwrap();
    chrome.run(REFUSE_REQUESTS);
    chrome.run(&format!("location.hash = '#step={last}'"));
    chrome.wait(
        "the failure is shown",
        "return !!document.querySelector('#replay .error-message button')",
    );
    assert_eq!(chrome.run(&format!("return {STEP}")), 0, "the step before remains");
    let is_kept = format!("return location.hash === '#step={last}'");
    chrome.wait("the address keeps the step that failed", &is_kept);
    chrome.click("#replay .error-message button:last-child");
    chrome.wait("the step that failed is shown", &format!("return {STEP} === {last}"));
    chrome.wait("the address still names the step", &is_kept);
}

/// A server of another site, whose one page has this frame. It ends with the test.
fn other_site(frame: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let body = format!(
                "<!DOCTYPE html><title>Other</title><iframe src=\"{frame}\" width=700 height=600></iframe>"
            );
            let mut request = [0; 4096];
            drop(stream.read(&mut request));
            let length = body.len();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
            drop(write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{body}"));
        }
    });
    address
}

#[test]
fn a_public_replay_is_shown_in_a_frame_of_another_site() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::played();
    let path = "/t/gomoku-quick/matches/0";
    chrome.open(&format!("http://{}/", other_site(format!("{}{path}/embed", server.pages))));
    chrome.enter_frame(true);
    chrome.wait("the replay is shown", &format!("return {STEP} === 0"));
    chrome.click("a[aria-label='Last step']");
    chrome.wait("the script runs", "return !!document.querySelector('.step-view table.result')");
    let link = chrome.run("return document.querySelector('[data-link]').href");
    let link = link.as_str().unwrap();
    assert!(link.starts_with(&format!("{}{path}?step=", server.pages)), "{link}");
    // The page itself is in no frame.
    chrome.enter_frame(false);
    chrome.open(&format!("http://{}/", other_site(format!("{}{path}", server.pages))));
    chrome.enter_frame(true);
    assert!(!chrome.has("#replay"));
    chrome.enter_frame(false);
    server.visit(&chrome, path);
    let code = chrome.run("return document.querySelector('.embed pre').textContent");
    let address = format!("{}{path}/embed", server.pages);
    assert!(code.as_str().unwrap().contains(&address), "{code}");
}

#[test]
fn a_projector_plays_one_replay_after_the_other() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::played();
    chrome.size(1920, 1080);
    server.visit(&chrome, "/t/gomoku-quick/projector");
    let rows = chrome.rows("table.ranking");
    assert_eq!(rows.len(), server.up.json("ranking gomoku-quick").len());
    let shown = chrome.text("main h2");
    assert!(shown.contains(" – ") && shown.contains(", match "), "{shown}");
    chrome.wait("the replay plays", &format!("return {STEP} > 0"));
    let next = chrome.run("return document.getElementById('replay').dataset.next");
    assert!(next.as_str().unwrap().contains("?after="), "{next}");
    server.visit(&chrome, next.as_str().unwrap());
    assert_ne!(chrome.text("main h2"), shown);
}

#[test]
fn equal_numbers_have_bars_of_equal_length_on_phones() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::played();
    server.log_in(&chrome);
    chrome.size(360, 800);
    for game in ["blackjack", "bitwa", "tricks", "wojna"] {
        server.visit(&chrome, &format!("/t/{game}-quick/matches/0"));
        chrome.press(keys::END);
        let result = "return !!document.querySelector('.step-view table.result')";
        chrome.wait(&format!("{game}: the last step is shown"), result);
        let widths = chrome.run(
            "const bars = [...document.querySelectorAll('.step-view li:not(.pot) > .amount svg')];
            return [...new Set(bars.map((bar) => Math.round(bar.getBoundingClientRect().width)))];",
        );
        assert_eq!(widths.as_array().unwrap().len(), 1, "{game}: {widths}");
        let precedes = chrome.run(
            "const top = (part) => document.querySelector(part).getBoundingClientRect().top;
            const many = document.querySelector('.step-view ul.tables:not(.few)');
            return many ? top('.step .beside') < top('.step figure') : null;",
        );
        let expected = if game == "tricks" { Value::Bool(true) } else { Value::Null };
        assert_eq!(precedes, expected, "{game}: the result precedes many tables");
    }
}

#[test]
fn the_clocks_stand_beside_the_board() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::played();
    server.log_in(&chrome);
    chrome.size(1280, 1000);
    server.visit(&chrome, "/t/gomoku-quick/matches/0");
    let spare = chrome.run(
        "const width = (part) => document.querySelector(part).getBoundingClientRect().width;
        return width('.step figure') - width('.step svg.board');",
    );
    assert!(spare.as_f64().unwrap().abs() < 1.0, "{spare} px between the board and the clocks");
    let beside = chrome.run(
        "const place = (part) => document.querySelector(part).getBoundingClientRect();
        const [figure, clocks] = [place('.step figure'), place('.step .beside')];
        return clocks.left >= figure.right && clocks.top < figure.bottom;",
    );
    assert_eq!(beside, true, "the clocks are beside the board");
}

/// Plays a match in which the second bot forfeits, and writes its record as a page.
fn forfeited_match(bots: &Bots) -> String {
    let good = bots.rascal("ada", "honest", 0, "");
    let bad = bots.python("bob", "for line in sys.stdin: print('nonsense', flush=True)");
    let folder = bots.path().join("records");
    let records = folder.to_str().unwrap();
    succeed(&["play", "gomoku", &good, &bad, "--record", records, "--sandbox", "off"]);
    let record = files(&folder).remove(0);
    page_of(bots.path(), record.to_str().unwrap())
}

/// Writes the page of a record, and returns its URL.
fn page_of(folder: &Path, record: &str) -> String {
    let page = folder.join("replay.html");
    let page = page.to_str().unwrap();
    succeed(&["replay", record, "--html", page]);
    format!("file://{page}")
}

#[test]
fn a_page_of_a_replay_works_from_a_file_without_a_network() {
    let Some(chrome) = Chrome::start() else { return };
    let bots = Bots::new();
    chrome.go_offline(true);
    let page = forfeited_match(&bots);
    chrome.open(&page);
    let last = chrome.run("return Number(document.getElementById('replay').dataset.total) - 1");
    let last = last.as_u64().unwrap();
    chrome.press(keys::END);
    let result = "return !!document.querySelector('.step-view table.result')";
    chrome.wait("the last step is shown", result);
    chrome.wait("its address", &format!("return location.hash === '#step={last}'"));
    chrome.open("about:blank");
    chrome.open(&format!("{page}#step={last}"));
    chrome.wait("the link leads there", result);
    assert_eq!(chrome.run("return performance.getEntriesByType('resource').length"), 0);

    // The forfeit is named, and its step has the evidence.
    let line = chrome.text("p.forfeited");
    assert!(line.contains("2\u{a0}bob forfeits – illegal, in step "), "{line}");
    chrome.click("p.forfeited a");
    chrome.wait("the forfeit is shown", "return !!document.querySelector('.step .evidence')");
    let said = chrome.text(".step .said");
    assert!(
        said.contains("sent: nonsense; it forfeits – illegal: its reply breaks the rules"),
        "{said}"
    );
    let evidence = chrome.text(".step .evidence");
    for part in ["Evidence", "Limit", "for this reply", "Time", "; processor "] {
        assert!(evidence.contains(part), "{part}: {evidence}");
    }
    chrome.go_offline(false);
    let violations = Axe::find().map(|axe| axe.violations(&chrome)).unwrap_or_default();
    assert!(violations.is_empty(), "{violations:?}");
}
