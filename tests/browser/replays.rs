//! Replays: step, play, jump and link, by mouse and keyboard.

use serde_json::Value;

use crate::chrome::{Chrome, keys};
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
                && document.querySelector('.player output').innerText === '{step} of {last}'
                && document.querySelector('.player input').value === '{step}'
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
                .map((cell) => cell.innerText.split(' ').map(Number));",
        );
        assert_eq!(scores, result["scores"], "{}", self.game);
    }
}

#[test]
fn replays_can_be_stepped_through_and_played() {
    let Some(chrome) = Chrome::start() else { return };
    let server = TestServer::played();
    server.log_in(&chrome);
    for game in GAMES {
        let path = format!("/t/{game}-quick/matches/0");
        server.visit(&chrome, &path);
        let last = chrome.run("return Number(document.getElementById('replay').dataset.total) - 1");
        let replay = Replay { chrome: &chrome, game, last: last.as_u64().unwrap() };
        assert!(replay.last > 5, "{game}: {last} steps");
        replay.steps_by_mouse_and_keys();
        replay.plays();
        replay.links(&format!("{}{path}", server.pages));
        server.visit(&chrome, &path);
        replay.ends_with(&server.up.json(&format!("match {game}-quick/0"))[0]);
    }
}
